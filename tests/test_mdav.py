"""Groups found through the tree are those of a scan of all records, to the last tie."""

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.core.compiling import Patience
from discreet.core.errors import ParameterError
from discreet.numerics import mdav_kernels
from discreet.numerics.distance.distance_kernels import Metric
from discreet.numerics.distance.space import Points
from discreet.numerics.mdav import groups_of_at_least, groups_of_variable_size, mixed_groups_of_at_least


@pytest.fixture(autouse=True, scope="module")
def _compiled_from_the_start():
    """A small file is grouped in plain Python elsewhere; here the compiled loops are tried."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mdav_kernels, "PATIENCE", Patience(-1))
        yield


def apart(points, metric, numbers, codes):
    """Distances as the definition has them, column after column."""
    total = np.zeros(len(points.numbers))
    for j, value in enumerate(numbers):
        gap = np.abs(value - points.numbers[:, j])
        total += gap * gap if metric.squared else gap
    for j, code in enumerate(codes):
        total += metric.costs[j] * (points.codes[:, j] != code)
    return total


def scanned(points, metric, k):
    """MDAV by its definition, all records looked at every time."""
    groups = np.full(len(points), -1)
    formed = 0

    def farthest_from(numbers, codes):
        return int(np.where(groups < 0, apart(points, metric, numbers, codes), -1).argmax())

    def center():
        left = groups < 0
        return (
            [points.numbers[left, j].sum() / left.sum() for j in range(points.numbers.shape[1])],
            [np.bincount(points.codes[left, j]).argmax() for j in range(points.codes.shape[1])],
        )

    def gather(start):
        nonlocal formed
        groups[start] = formed
        distance = apart(points, metric, points.numbers[start], points.codes[start])
        order = np.argsort(np.where(groups < 0, distance, np.inf), kind="stable")
        groups[order[: k - 1]] = formed
        formed += 1

    while (left := (groups < 0).sum()) >= 2 * k:
        first = farthest_from(*center())
        gather(first)
        if left >= 3 * k:
            gather(farthest_from(points.numbers[first], points.codes[first]))
    groups[groups < 0] = formed
    return groups


def plain(numbers):
    rows = np.asarray(numbers, dtype=float)
    return Points(rows, np.empty((len(rows), 0), np.int32)), Metric(
        np.ones(rows.shape[1]), np.empty(0), True, False
    )


@settings(max_examples=examples(150), deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 120), st.integers(0, 4), st.integers(0, 2), st.integers(1, 6))
def test_mdav_equals_a_scan_of_all_records_with_ties_and_categories(seed, n, p, q, k):
    if not k <= n:
        return
    rng = np.random.default_rng(seed)
    points = Points(rng.integers(0, 5, (n, p)).astype(float), rng.integers(0, 3, (n, q)).astype(np.int32))
    for squared in (True, False):
        metric = Metric(np.ones(p), np.ones(q), squared, False)
        assert mixed_groups_of_at_least(points, metric, k).tolist() == scanned(points, metric, k).tolist()


@pytest.mark.parametrize(("n", "p", "k"), [(900, 3, 2), (1200, 5, 3), (700, 12, 5)])
def test_mdav_equals_a_scan_of_all_records_on_continuous_data(n, p, k):
    rng = np.random.default_rng(n)
    points, metric = plain(np.exp(rng.normal(size=(n, p))))
    found = groups_of_at_least(points.numbers, k)
    assert found.tolist() == scanned(points, metric, k).tolist()
    assert np.bincount(found).min() >= k
    assert len(np.bincount(found)) == n // k


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 150), st.integers(0, 4), st.integers(0, 2), st.integers(1, 6))
def test_plain_python_and_compiled_loops_form_the_same_groups(seed, n, p, q, k):
    rng = np.random.default_rng(seed)
    numbers, codes = rng.integers(0, 9, (n, p)) / 4, rng.integers(0, 3, (n, q)).astype(np.int32)
    given_ = (numbers, codes, np.full(q, 0.7), bool(seed % 2))
    farthest_first = rng.permutation(n)
    found = []
    for records in (-1, 10**6):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(mdav_kernels, "PATIENCE", Patience(records))
            grouped = mdav_kernels.mdav(*given_, 3, k)
            varied = mdav_kernels.variable_mdav(*given_, farthest_first, k, 0.5)
        found.append((grouped.tolist(), varied.tolist()))
    assert found[0] == found[1]


def test_records_that_all_coincide_are_grouped_by_position():
    assert groups_of_at_least(np.ones((100, 2)), 4).tolist() == [i // 4 for i in range(100)]


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 2**32), st.integers(4, 80), st.integers(2, 5), st.sampled_from([0.0, 0.2, 1.1]))
def test_groups_of_variable_size_are_of_k_or_more(seed, n, k, gamma):
    if k > n:
        return
    points, metric = plain(np.random.default_rng(seed).integers(0, 9, (n, 2)))
    sizes = np.bincount(groups_of_variable_size(points, metric, k, gamma))
    assert sizes.sum() == n
    assert sizes.min() >= k
    # Beyond 2k-1 only by those, fewer than k, that were left at the end.
    assert sizes.max() <= 3 * k - 2


def test_groups_grow_where_records_are_clustered():
    points, metric = plain([[0.0], [0.1], [0.2], [9.0], [9.1], [9.2], [50.0], [50.1], [50.2]])
    # 50.2 is farthest from the center; 50.0 is as near to its group as to nobody else, so it joins only if gamma > 0.
    assert groups_of_variable_size(points, metric, 2, 0.2).tolist() == [1, 1, 1, 2, 2, 2, 0, 0, 0]
    assert np.bincount(groups_of_variable_size(points, metric, 2, 0.0)).max() == 3


def test_points_with_gaps_are_refused():
    with pytest.raises(ParameterError, match="missing or infinite"):
        groups_of_at_least([[1.0], [np.nan]], 2)
    with pytest.raises(ParameterError, match="k must lie between 1"):
        groups_of_at_least([[1.0], [2.0]], 3)
