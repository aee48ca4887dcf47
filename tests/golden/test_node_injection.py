"""Worked example of methods/node-injection-link-stealing-lapgraph.md, section 5 (recomputed there)."""

import numpy as np
import pytest

from discreet import attack

EDGES = [(0, 1), (1, 2), (2, 3), (3, 4), (1, 5)]
FEATURES = np.array(
    [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1]], dtype=float
)
MODEL = attack.GraphConvolution(
    (np.array([[1, -1], [0.5, 1], [-1, 0.5]]), np.array([[1, -1], [-0.5, 2]])), normalization="row"
)
CHANGES = {
    "all-ones": [0.020977, 0.122811, 0.014863, 0, 0, 0.024990, 0],
    "all-zeros": [0.010436, 0.105315, 0.007452, 0, 0, 0.012492, 0],
    "identity": [0.075195, 0.210135, 0.051283, 0, 0, 0.087431, 0],
}


@pytest.fixture
def graph():
    matrix = np.zeros((7, 7))
    for a, b in EDGES:
        matrix[a, b] = matrix[b, a] = 1
    return matrix


def test_predictions_of_the_network(graph):
    shown = MODEL.predict(graph, FEATURES)[:, 0]
    assert shown == pytest.approx(
        [0.705785, 0.564739, 0.339244, 0.260829, 0.219115, 0.515620, 0.437823], abs=5e-7
    )


@pytest.mark.parametrize("strategy", list(CHANGES))
def test_changes_after_a_node_joins_next_to_node_1(graph, strategy):
    service = attack.LocalService(graph, FEATURES, MODEL)
    found = attack.node_injection_scores(service, 1, np.arange(7), strategy, features=FEATURES)
    assert found == pytest.approx(CHANGES[strategy], abs=5e-7)
    stolen = attack.link_stealing(
        service, graph, strategy=strategy, features=FEATURES, targets=[1], candidates=range(7)
    )
    assert stolen.figures["precision"] == stolen.figures["recall"] == 1.0
