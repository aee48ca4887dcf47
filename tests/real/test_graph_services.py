"""Orderings of methods/node-injection-link-stealing-lapgraph.md, section 6, on Twitch, LastFM, Facebook and Deezer."""

import numpy as np
import polars as pl
import pytest
from scipy import sparse

from discreet import attack, protect


@pytest.mark.slow
def test_a_node_of_ones_steals_more_than_one_of_zeros_and_lapgraph_stops_both(test_data):
    edges = pl.read_csv(test_data / "graph" / "twitch_engb_edges.csv").to_numpy()
    users = pl.read_csv(test_data / "graph" / "twitch_engb_target.csv").sort("new_id")
    people = users.height
    graph = undirected(edges, people)
    labels = users["mature"].cast(pl.Int64).to_numpy()
    days, views = (
        np.searchsorted(np.quantile(values, np.arange(1, 8) / 8), values)
        for values in (users[name].to_numpy() for name in ("days", "views"))
    )
    features = np.hstack(
        [
            np.eye(8)[days],
            np.eye(8)[views],
            users["partner"].cast(pl.Int64).to_numpy()[:, None],
        ]
    )
    model = attack.train_graph_convolution(graph, features, labels, epochs=40, seed=1)
    rng = np.random.default_rng(1)
    degree = np.asarray(graph.sum(axis=1))
    hubs = np.argsort(-degree)[:150]
    targets = np.sort(rng.permutation(hubs)[:25])
    setting = {"targets": targets, "candidates": np.sort(hubs), "features": features, "seed": 1}
    service = attack.LocalService(graph, features, model)
    f1 = {
        strategy: attack.link_stealing(service, graph, strategy=strategy, **setting).figures["f1"]
        for strategy in ("all-ones", "all-zeros")
    }
    assert f1["all-ones"] > f1["all-zeros"]
    shown = protect.LapGraph(epsilon=1.0).apply(graph, seed=1).adjacency
    private = attack.link_stealing(attack.LocalService(shown, features, model), graph, **setting)
    assert private.figures["f1"] < f1["all-ones"] / 2


INJECTED = ("all-ones", "max-attributes", "class-representative", "identity", "all-zeros")


class Hubs:
    """Attacks on the 300 people of most friends, from a network whose members share interests with their like."""

    def __init__(self, edges, groups):
        people = len(groups)
        self.graph = undirected(edges, people)
        self.groups = groups
        rng = np.random.default_rng(1)
        liked = rng.beta(0.3, 3, size=(int(groups.max()) + 1, 64))
        self.features = (rng.random((people, 64)) < liked[groups]).astype(float)
        hubs = np.argsort(-np.asarray(self.graph.sum(axis=1)), kind="stable")[:300]
        targets = np.sort(rng.permutation(hubs)[:30])
        self.setting = {"candidates": np.sort(hubs), "targets": targets, "features": self.features, "seed": 1}

    def trained(self, *hidden):
        more = {"hidden": hidden} if hidden else {}
        return attack.train_graph_convolution(
            self.graph, self.features, self.groups, epochs=30, seed=1, **more
        )

    def f1(self, model, strategy="all-ones", shown=None, **service):
        asked = attack.LocalService(self.graph if shown is None else shown, self.features, model, **service)
        return attack.link_stealing(asked, self.graph, strategy=strategy, **self.setting).figures["f1"]

    def private(self, epsilon):
        shown = protect.LapGraph(epsilon=epsilon).apply(self.graph, seed=1).adjacency
        kept = self.graph.multiply(shown).sum() / self.graph.nnz
        expected = protect.lapgraph_expected_recall(len(self.groups), self.graph.nnz // 2, epsilon)
        assert kept == pytest.approx(expected, abs=0.005)
        return shown


def undirected(edges, people):
    graph = sparse.csr_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(people, people))
    return sparse.csr_array(((graph + graph.T) > 0).astype(float))


@pytest.mark.slow
def test_orderings_of_attacks_and_defences_on_listeners_of_asia(test_data):
    """LastFM's users by country; the file has no features, so interests are drawn that countrymen share."""
    edges = pl.read_csv(test_data / "graph" / "lastfm_asia_edges.csv").to_numpy()
    countries = pl.read_csv(test_data / "graph" / "lastfm_asia_target.csv").sort("id")["target"].to_numpy()
    hubs = Hubs(edges, countries)
    two = hubs.trained()
    strategies = ("all-ones", "max-attributes", "all-zeros", "linkteller", "posterior", "attributes")
    found = {name: hubs.f1(two, name) for name in strategies}
    # Measured: 0.88, 0.88, 0.82, 0.58, 0.45, 0.30.
    assert found["all-ones"] > 0.8
    assert found["max-attributes"] == pytest.approx(found["all-ones"], abs=0.03)
    assert found["all-ones"] > found["all-zeros"] + 0.02
    assert found["all-ones"] > found["linkteller"] + 0.15
    assert found["linkteller"] > found["posterior"] + 0.05 > found["attributes"] + 0.1
    assert hubs.f1(two, decimals=2) < found["all-ones"] / 2
    three = hubs.trained(16, 16)
    assert hubs.f1(three) < found["all-ones"] - 0.2
    assert hubs.f1(three, shown=hubs.private(1.0)) < 0.2


@pytest.mark.slow
def test_orderings_of_attacks_and_defences_on_friends_around_ten_students(test_data):
    """Facebook's ego networks have no labels: everybody belongs to the hub with whom he has most friends in common.

    Measured: all-ones 0.987, max-attributes 0.989, class-representative 0.976, identity 0.985, all-zeros 0.958,
    LinkTeller 0.869, posterior 0.778, attributes 0.603; with three layers 0.853 and LinkTeller 0.866. Of what was
    published, that the identity finds less than a representative of a class does not hold (by 0.009), nor that
    LinkTeller finds much less in a deeper network (0.003). A third of all pairs are friends: so much is found blindly.
    """
    edges = pl.read_csv(test_data / "graph" / "facebook_ego_edges.csv.gz").to_numpy()
    friends = undirected(edges, int(edges.max()) + 1)
    most = np.argsort(-np.asarray(friends.sum(axis=1)), kind="stable")[:8]
    hubs = Hubs(edges, (friends + friends @ friends)[:, most].toarray().argmax(axis=1))
    two = hubs.trained()
    found = {name: hubs.f1(two, name) for name in (*INJECTED, "linkteller", "posterior", "attributes")}
    assert found["all-ones"] > 0.95
    assert found["max-attributes"] == pytest.approx(found["all-ones"], abs=0.02)
    assert found["all-ones"] > found["class-representative"]
    assert min(found[name] for name in INJECTED) == found["all-zeros"] > found["linkteller"] + 0.05
    assert found["linkteller"] > found["posterior"] + 0.05 > found["attributes"] + 0.1
    assert hubs.f1(two, decimals=2) < found["all-ones"] / 2
    assert hubs.f1(hubs.trained(16, 16)) < found["all-ones"] - 0.1
    # Measured: 0.39 and 0.92. Nine of ten friends are hidden at a budget of 1, and most come through at 7.
    assert hubs.f1(two, shown=hubs.private(1.0)) < found["all-ones"] / 2
    assert hubs.f1(two, shown=hubs.private(7.0)) > 0.8


@pytest.mark.slow
def test_orderings_of_attacks_and_defences_where_the_label_says_nothing_about_friends(test_data):
    """Deezer's users by gender, which says little about who knows whom: what is found, the graph itself gave away.

    Measured: all-ones 0.926, max-attributes 0.986, class-representative 0.991, identity 0.986, all-zeros 0.769,
    LinkTeller 0.435, posterior 0.032, attributes 0.023; with three layers 0.880 and LinkTeller 0.824. Of what was
    published, two things do not hold: all-ones is behind all others but zeros (by 0.06; two classes share most
    interests), and LinkTeller finds more in a deeper network, not less (by 0.39).
    """
    edges = pl.read_csv(test_data / "graph" / "deezer_gendered_edges.csv").to_numpy()
    genders = pl.read_csv(test_data / "graph" / "deezer_gendered_target.csv").sort("id")["target"].to_numpy()
    hubs = Hubs(edges, genders)
    two = hubs.trained()
    found = {name: hubs.f1(two, name) for name in (*INJECTED, "linkteller", "posterior", "attributes")}
    assert found["all-ones"] > 0.85
    assert found["max-attributes"] > 0.95
    assert found["class-representative"] > 0.95
    assert min(found[name] for name in INJECTED) == found["all-zeros"] < found["all-ones"] - 0.1
    assert found["all-zeros"] > found["linkteller"] + 0.2
    assert found["linkteller"] > found["posterior"] + 0.3
    assert max(found["posterior"], found["attributes"]) < 0.1
    assert hubs.f1(two, decimals=2) < found["all-ones"] / 2
    assert hubs.f1(hubs.trained(16, 16)) < found["all-ones"] - 0.02
    # Measured: 0.04 and 0.34.
    assert hubs.f1(two, shown=hubs.private(1.0)) < 0.1
    assert hubs.f1(two, shown=hubs.private(7.0)) < found["all-ones"] / 2
