"""Orderings of methods/node-injection-link-stealing-lapgraph.md, section 6, on the Twitch network."""

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
    graph = sparse.csr_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(people, people))
    graph = sparse.csr_array(((graph + graph.T) > 0).astype(float))
    labels = users["mature"].cast(pl.Int64).to_numpy()
    days, views = (
        pl.Series(users[name]).qcut(8, allow_duplicates=True).to_physical().to_numpy()
        for name in ("days", "views")
    )
    features = np.hstack(
        [
            np.eye(8)[days],
            np.eye(8)[np.minimum(views, 7)],
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
