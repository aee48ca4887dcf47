"""Links stolen from a graph service: what locality says must be found, and what must be refused."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import attack
from discreet.core.errors import InputError, ParameterError

STRATEGIES = (
    "all-ones", "all-zeros", "identity", "max-attributes", "class-representative", "influence", "influence-multiplied"
)  # fmt: skip


def network(people=40, share=0.1, seed=1, layers=2, normalization="row", **options):
    rng = np.random.default_rng(seed)
    graph = np.triu(rng.random((people, people)) < share, 1)
    graph = (graph | graph.T).astype(float)
    features = rng.random((people, 4)) + 0.5
    sizes = [4, *([6] * (layers - 1)), 3]
    model = attack.GraphConvolution(tuple(rng.normal(size=(a, b)) for a, b in pairwise(sizes)), normalization)
    return graph, features, attack.LocalService(graph, features, model, **options)


def reach(graph, target, hops):
    near = np.zeros(len(graph), dtype=bool)
    near[target] = True
    for _ in range(hops):
        near |= (graph[near].sum(axis=0)) > 0
    return near


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32), st.integers(1, 3))
def test_a_node_changes_nobody_further_than_the_layers_reach(seed, layers):
    for normalization, hops in (("row", layers - 1), ("sym", layers), ("first-order", layers)):
        graph, _, service = network(seed=seed, layers=layers, normalization=normalization)
        scores = attack.node_injection_scores(service, 0, np.arange(len(graph)))
        assert (scores[~reach(graph, 0, hops)] <= 1e-12).all()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_two_layers_of_means_give_every_neighbor_away_where_anything_changes(strategy):
    graph, features, service = network()
    found = attack.link_stealing(service, graph, strategy=strategy, features=features, seed=1)
    assert found.figures["auc"] > 0.75
    assert found.figures["precision"] == found.figures["recall"]
    assert found.figures["precision"] > 5 * found.figures["baseline_rate"]


def test_rounding_defends_and_depth_and_roots_blur():
    graph, _, service = network()
    plain = attack.link_stealing(service, graph, seed=1).figures["f1"]
    rounded = attack.link_stealing(network(decimals=1)[2], graph, seed=1).figures["f1"]
    assert rounded < plain
    deep = network(layers=3, normalization="sym")[2]
    assert attack.link_stealing(deep, graph, seed=1).figures["f1"] < plain


@pytest.mark.parametrize("baseline", ["linkteller", "posterior", "attributes"])
def test_baselines_run_and_linkteller_beats_likeness(baseline):
    graph, features, service = network()
    found = attack.link_stealing(service, graph, strategy=baseline, features=features, seed=1)
    assert found.figures["f1"] is not None
    injected = attack.link_stealing(service, graph, seed=1).figures["f1"]
    assert found.figures["f1"] < injected
    if baseline == "linkteller":
        # Other features of the target reach one step further than a new neighbor does.
        assert found.figures["f1"] > 0.5


def test_decisions_differ_and_the_target_is_never_claimed():
    graph, _, service = network()
    density = graph.sum() / graph.size
    for options in ({"decision": "top-k", "density": density}, {"decision": "threshold", "threshold": 1e-9},
                    {"decision": "best-f1"}):  # fmt: skip
        found = attack.link_stealing(service, graph, seed=1, **options)
        assert found.figures["precision"] > 0.5
    assert (
        attack.link_stealing(service, graph, decision="threshold", threshold=0.0).figures["claims"] == 40 * 39
    )
    with pytest.raises(ParameterError, match="density"):
        attack.link_stealing(service, graph, decision="top-k")


def test_nodes_are_taken_out_again_unless_they_stay():
    _, _, service = network()
    before = service.predict(np.arange(40))
    attack.node_injection_scores(service, 0, np.arange(40))
    assert (service.predict(np.arange(40)) == before).all()
    attack.node_injection_scores(service, 0, np.arange(40), keep=True)
    assert (service.predict(np.arange(40)) != before).any()


class Stubborn:
    """Answers as before, whoever joins."""

    def __init__(self, service):
        self.service, self.width = service, service.width

    def predict(self, nodes):
        return self.service.predict(nodes)

    def connect(self, features, target):
        return 99

    def reset(self):
        pass


def test_a_service_that_refuses_or_keeps_its_answers_is_no_silent_zero():
    graph, _, service = network(allows_new_nodes=False)
    refused = attack.link_stealing(service, graph)
    assert refused.value is None
    assert "refused to add a node" in refused.caveats[0]
    cached = attack.link_stealing(Stubborn(network()[2]), graph)
    assert cached.value is None
    assert "keeps its answers" in cached.caveats[0]
    fixed = attack.link_stealing(Stubborn(service), graph, strategy="linkteller", features=network()[1])
    assert fixed.value is None
    assert "LinkTeller is not applicable" in fixed.caveats[0]


def test_isolated_targets_have_no_recall():
    graph, features, _ = network()
    graph[:5] = graph[:, :5] = 0
    service = attack.LocalService(graph, features, network()[2].model)
    alone = attack.link_stealing(service, graph, targets=range(5), candidates=range(40))
    assert alone.value is None
    assert alone.figures["recall"] is None
    assert any("undefined, not zero" in caveat for caveat in alone.caveats)
    some = attack.link_stealing(service, graph, targets=range(10), candidates=range(40))
    assert some.figures["isolated_targets"] == 5


def test_bad_input_is_refused_by_name():
    graph, features, service = network()
    with pytest.raises(ParameterError, match="features="):
        attack.node_injection_scores(service, 0, np.arange(40), "identity")
    with pytest.raises(ParameterError, match="strategy"):
        attack.node_injection_scores(service, 0, np.arange(40), "magic", features=features)
    with pytest.raises(ParameterError, match="numbers of nodes"):
        attack.link_stealing(service, graph, targets=[99])
    with pytest.raises(ParameterError, match="twice"):
        attack.link_stealing(service, graph, targets=[1, 1])


def test_a_trained_network_learns_its_labels():
    _, features, _ = network(people=60)
    labels = (features[:, 0] > 1.0).astype(int)
    model = attack.train_graph_convolution(
        np.zeros((60, 60)), features, labels, dropout=0.0, epochs=400, seed=1
    )
    right = model.predict(np.zeros((60, 60)), features).argmax(axis=1) == labels
    assert right.mean() > max(labels.mean(), 1 - labels.mean()) + 0.2


def strangers(seed, *, known, people=50):
    """A service over its own graph, links that were or were not given to it, and links that never were."""
    rng = np.random.default_rng(seed)

    def links():
        upper = np.triu(rng.random((people, people)) < 0.1, 1)
        return (upper | upper.T).astype(float)

    truth, others, own = links(), links(), links()
    features = rng.random((people, 4)) + 0.5
    model = attack.GraphConvolution((rng.normal(size=(4, 6)), rng.normal(size=(6, 3))))
    service = attack.LocalService(truth if known else own, features, model)
    return attack.link_stealing(service, truth, holdout=others * (1 - truth), seed=seed)


def test_links_the_service_knows_are_found_and_those_it_does_not_know_are_the_control():
    known = strangers(1, known=True).figures
    assert known["attack_rate"] > 0.8
    assert known["control_rate"] < 0.35
    assert known["risk_low"] > 0.6
    nothing = strangers(1, known=False).figures
    assert nothing["risk_low"] <= 0 <= nothing["risk_high"]
    assert nothing["attacks"] < nothing["connections"]


def test_a_control_that_is_the_truth_is_refused_and_one_that_overlaps_is_said():
    graph, _, service = network()
    with pytest.raises(ParameterError, match="part of the truth"):
        attack.link_stealing(service, graph, holdout=graph)
    with pytest.raises(InputError, match="no connection"):
        attack.link_stealing(service, graph, holdout=np.zeros_like(graph))
    with pytest.raises(InputError, match="same nodes"):
        attack.link_stealing(service, graph, holdout=np.zeros((3, 3)))
    mixed = network(seed=2)[0]
    found = attack.link_stealing(service, graph, holdout=mixed)
    assert any("left out" in caveat for caveat in found.caveats)


@pytest.mark.parametrize("strategy", ["max-attributes", "class-representative"])
def test_a_strategy_that_needs_another_class_says_where_there_is_none(strategy):
    graph, features, _ = network()
    one_class = attack.GraphConvolution((np.eye(4), np.column_stack([np.full(4, 5.0), np.zeros(4)])))
    service = attack.LocalService(graph, features, one_class)
    found = attack.link_stealing(service, graph, strategy=strategy, features=features, seed=1)
    assert any("of one class" in caveat for caveat in found.caveats)
    mixed = attack.link_stealing(network()[2], graph, strategy=strategy, features=features, seed=1)
    assert not any("of one class" in caveat for caveat in mixed.caveats)
