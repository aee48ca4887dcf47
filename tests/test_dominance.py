"""Dominance, p% and p/q on many cells at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.core.errors import ParameterError
from discreet.numerics.dominance import contributions, dominated, p_percent, prior_posterior


def one_cell(*values, **options):
    return contributions([0] * len(values), values, **options)


def test_the_output_checking_examples_come_out_as_published():
    """Spec ``statbarn-output-checking``, example 2: twelve firms."""
    safe = one_cell(500, 420, *[8] * 10)
    assert dominated(safe, 2, 0.9)[0]
    assert not p_percent(safe, 0.1)[0]
    both = one_cell(900, 50, *[5] * 10)
    assert dominated(both, 2, 0.9)[0]
    assert p_percent(both, 0.1)[0]


def test_the_worked_cells_of_the_smart_meter_spec_are_judged_as_recomputed():
    """Spec ``smart-meter-attribute-disclosure``, section 5, r = 0.6 and p = 2/3."""
    worked = {
        (50, 30, 10, 6, 4): (False, True, True),
        (30, 20, 20, 15, 15): (False, False, False),
        (60, 20, 20): (False, True, True),
        (10, 10): (False, True, True),
        (5, 0, 0): (True, True, True),
        (0, 0, 0): (False, False, False),
    }
    ids = np.repeat(np.arange(len(worked)), [len(values) for values in worked])
    cells = contributions(ids, [value for values in worked for value in values])
    flags = zip(dominated(cells, 1, 0.6), dominated(cells, 2, 0.6), p_percent(cells, 2 / 3), strict=True)
    assert [tuple(map(bool, found)) for found in flags] == list(worked.values())


def test_a_share_equal_to_the_limit_up_to_rounding_is_not_sensitive():
    assert not dominated(one_cell(0.1 + 0.2, 0.1, 0.1), 1, 0.6)[0]
    assert not p_percent(one_cell(1.0, 1.0, 0.1 + 0.2 - 0.3 + 0.1), 0.1)[0]


def test_the_parts_of_one_contributor_are_added():
    cells = contributions([1, 1, 1, 1, 2], [30, 31, 20, 19, 5], contributor=["a", "a", "b", "c", "a"])
    assert cells.size.tolist() == [3, 1]
    assert cells.top(1).tolist() == [61, 5]
    assert dominated(cells, 1, 0.6).tolist() == [True, True]


def test_a_weight_makes_several_respondents_a_larger_contribution_or_only_a_larger_total():
    """The weighted example of the handbook: values 100 and 10 with weights 4 and 7, total 470."""
    expanded = one_cell(100, 10, weight=[4, 7])
    assert (expanded.total[0], expanded.top(1)[0], expanded.top(2)[0], expanded.rest(2)[0]) == (
        470,
        100,
        200,
        270,
    )
    assert expanded.top(5)[0] == 410
    multiplied = one_cell(100, 10, weight=[4, 7], weighting="multiply")
    assert (multiplied.top(1)[0], multiplied.rest(2)[0]) == (400, 0)
    own = one_cell(100, 10, weight=[4, 7], weighting="own")
    assert (own.total[0], own.top(2)[0], own.rest(2)[0]) == (470, 110, 360)


def test_whole_weights_expand_exactly_as_repeated_records_do():
    rng = np.random.default_rng(1)
    cell, value, weight = rng.integers(0, 20, 100), rng.lognormal(size=100), rng.integers(1, 5, 100)
    repeated = contributions(np.repeat(cell, weight), np.repeat(value, weight))
    expanded = contributions(cell, value, weight=weight)
    for n in (1, 2, 5):
        np.testing.assert_allclose(expanded.top(n), repeated.top(n))
        np.testing.assert_allclose(expanded.rest(n), repeated.rest(n), atol=1e-12)


def test_negative_contributions_are_refused_or_taken_by_size():
    with pytest.raises(ParameterError, match="2 contributions are negative"):
        one_cell(-5, 3, -1)
    cells = one_cell(-50, 30, 20, negative="absolute")
    assert (cells.total[0], cells.top(1)[0]) == (100, 50)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: one_cell(1, float("nan")), "missing or not finite"),
        (lambda: contributions([1, 2], [1]), "value has 1 entries, cell has 2"),
        (lambda: one_cell(1, 2, weight=[1, -1]), "below zero"),
        (lambda: one_cell(1, 2, weight=[1, 1], weighting="other"), "weighting must be"),
        (lambda: one_cell(1, 2, weight=[1, 1], contributor=[1, 1]), "weighting='multiply'"),
        (lambda: one_cell(1, 2, contributor=[1]), "contributor has 1 entries"),
        (lambda: one_cell(1, 2, negative="drop"), "negative must be"),
        (lambda: dominated(one_cell(1), 0, 0.5), "n must be"),
        (lambda: dominated(one_cell(1), 1, 75), "0.75 for 75 percent"),
        (lambda: p_percent(one_cell(1), 10), "0.1 for 10 percent"),
        (lambda: prior_posterior(one_cell(1), 0.5, 0.1), "smaller than p"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(call, message):
    with pytest.raises(ParameterError, match=message):
        call()


def test_no_cells_give_no_flags():
    assert dominated(contributions([], []), 1, 0.5).tolist() == []


amounts = st.lists(st.integers(0, 50), min_size=1, max_size=8)


@settings(deadline=None)
@given(st.lists(amounts, min_size=1, max_size=6), st.integers(1, 4), st.integers(1, 99), st.integers(1, 99))
def test_the_flags_are_those_of_a_loop_in_whole_numbers(cells, n, k, p):
    ids = np.repeat(np.arange(len(cells)), [len(cell) for cell in cells])
    found = contributions(ids, [value for cell in cells for value in cell])
    ordered = [sorted(cell, reverse=True) for cell in cells]
    assert dominated(found, n, k / 100).tolist() == [100 * sum(c[:n]) > k * sum(c) for c in ordered]
    assert p_percent(found, p / 100).tolist() == [100 * sum(c[2:]) < p * c[0] for c in ordered]


@settings(deadline=None)
@given(amounts, st.floats(0.5, 0.99))
def test_one_dominant_or_a_close_estimate_implies_two_dominant(values, r):
    cell = one_cell(*values)
    p = (1 - r) / r
    # A cell on the very edge may fall either way of two different roundings.
    share = cell.share(2)[0]
    if not abs(share - r) < 1e-9:
        assert dominated(cell, 2, r)[0] >= max(dominated(cell, 1, r)[0], p_percent(cell, p)[0])
