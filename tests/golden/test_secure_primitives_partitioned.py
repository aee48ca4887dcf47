"""Worked examples of methods/secure-primitives-partitioned.md, section 5, and of the ranked element (discoleaf, 5)."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.federated import ranked_element, secure_matrix_product, secure_sum
from discreet.federated.sufficient_statistics import balanced_directions, equations

X1 = np.array([[1.0, 2], [3, 4], [5, 6], [7, 9]])
X2 = np.array([1.0, 0, 2, -1])


@pytest.mark.parametrize("seed", range(5))
def test_any_direction_outside_gives_the_same_product(seed):
    product, transcript, _ = secure_matrix_product(X1, X2, a=1, keep=True, seed=seed)
    np.testing.assert_allclose(product.ravel(), (4, 5), atol=1e-12)
    basis = transcript.contents[0].values["basis"]
    np.testing.assert_allclose(basis.T @ X1, 0, atol=1e-12)


def test_the_printed_direction_gives_the_printed_rest():
    z = np.array([[0.446645, -0.734738, 0.499495, -0.105701]]).T
    rest = X2[:, None] - z @ (z.T @ X2[:, None])
    np.testing.assert_allclose(rest.ravel(), (0.307104, 1.139826, 1.225115, -0.836023), atol=2e-6)
    np.testing.assert_allclose(X1.T @ rest, [[4], [5]], atol=2e-5)


def test_balanced_constraints():
    a = balanced_directions(1000, 4, 6, 4)
    assert a == 600
    assert [(one.constraints, one.unknowns) for one in equations("one", "two", 1000, 4, 6, a)] == [
        (2400, 4000),
        (2400, 6000),
    ]


@pytest.mark.parametrize(
    "options", [{}, {"mask": "gaussian"}, {"rounds": 3}, {"ring_bits": 128}, {"coordinator": True}]
)
def test_the_sum_of_three_numbers(options):
    total, transcript, _ = secure_sum([10.5, -3, 7.25], keep=True, **options)
    assert total == pytest.approx(14.75, abs=1e-9)
    partial = [10.5, -3, 7.25, 7.5, 17.75, 4.25, 14.75]
    for message in transcript.contents:
        if message.name in ("partial", "total") and isinstance(message.values["sum"], np.ndarray):
            seen = message.values["sum"]
            decoded = seen.astype(np.int64) / 2**24 if seen.dtype == np.uint64 else seen
            assert not np.isclose(decoded[0], partial).any()


def test_ranked_elements():
    parties = [[17, 23, 90], [19, 45], [20, 73, 88, 31]]
    found = {rank: ranked_element(parties, rank, domain=(0, 120)).value for rank in (1, 9, 5)}
    assert found == {1: 17, 9: 90, 5: 31}
    two = [[3, 8, 12, 20], [1, 9, 15, 30]]
    assert ranked_element(two, 4) == 9
    assert ranked_element(two, 5) == 12
