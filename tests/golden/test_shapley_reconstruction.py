"""Worked example of methods/shapley-record-reconstruction-attack.md, sections 3.1 and 5 (recomputed there)."""

import numpy as np
import pytest

from discreet import attack

TABLE = np.array(
    [
        [1.8, 0.1, 0.3, -0.4, 1.9],
        [0.4, 1.5, 0.6, 1.0, -0.2],
        [1.0, 0.8, 0.7, 0.7, 0.5],
        [2.2, 0.1, 0.3, -0.1, 2.2],
        [1.9, 0.4, 0.8, 1.0, 1.1],
        [-1.0, 0.3, -0.3, -0.5, -1.2],
        [1.0, 1.5, 1.4, 0.1, 0.9],
        [-0.2, -0.2, 0.0, 0.0, -0.2],
        [-0.1, 0.3, 0.0, 0.5, -0.1],
        [0.4, -0.9, -0.4, -1.3, -0.1],
    ]
)
TARGET, OTHERS = TABLE[:5, :4], TABLE[5:, :4]
SHAPLEY = [
    [1.373, 0.024, 0.063, -0.046],
    [0.293, -0.313, 0.183, 0.356],
    [0.756, -0.145, 0.222, 0.270],
    [1.681, 0.024, 0.063, 0.040],
    [1.450, -0.048, 0.262, 0.356],
]
PRINTED = [
    [1.30, 0.02, 0.06, -0.04],
    [0.28, -0.29, 0.18, 0.34],
    [0.72, -0.13, 0.21, 0.26],
    [1.59, 0.02, 0.06, 0.04],
    [1.37, -0.04, 0.25, 0.34],
]


@pytest.fixture(scope="module")
def fitted():
    line = np.linalg.solve(np.c_[np.ones(5), OTHERS], TABLE[5:, 4])
    assert line == pytest.approx([-0.093943, 0.771323, -0.241038, 0.396786, 0.286774], abs=5e-7)
    return lambda rows: line[0] + rows @ line[1:]


def test_reference_means(fitted):
    assert OTHERS.mean(axis=0) == pytest.approx([0.02, 0.20, 0.14, -0.24])


@pytest.mark.parametrize("method", ["exact", "linear"])
def test_shapley_values_of_the_five_targets(fitted, method):
    found = attack.shapley_values(fitted, TARGET, OTHERS, method=method)
    assert found == pytest.approx(np.array(SHAPLEY), abs=5.1e-4)
    # The printed table was made before the data were rounded.
    large = np.abs(PRINTED) > 0.1
    assert found[large] == pytest.approx(np.array(PRINTED)[large], rel=0.12)


def test_a_record_mixed_with_a_reference_takes_the_coalition_from_the_record():
    seen = []
    attack.shapley_values(
        lambda rows: (seen.append(rows.copy()), rows[:, 0])[1], [[2.0, 5.0, 1.0, 3.0]], [[0.0, 3.0, 2.0, 1.0]]
    )
    # Features 2 and 3 are bits 1 and 2 of the mask.
    assert seen[0][0b0110].tolist() == [0.0, 5.0, 1.0, 1.0]


@pytest.mark.parametrize("model", ["linear", "affine-per-feature"])
def test_a_linear_attack_on_a_linear_model_finds_every_value(fitted, model):
    found = attack.shapley_reconstruction(fitted, OTHERS, OTHERS, TARGET, attack=model)
    assert found.figures["mae_original"] < 1e-12
    assert found.figures["attack_rate"] == 1.0


def test_trees_on_five_records_find_little(fitted):
    tree = attack.shapley_reconstruction(fitted, OTHERS, OTHERS, TARGET, attack="tree", seed=1)
    assert tree.figures["mae_original"] > 0.3
