from __future__ import annotations

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from discreet.core.errors import ParameterError
from discreet.outputs import OutputPolicy
from discreet.outputs.checks import (
    check_concentration,
    check_correlation,
    check_counts,
    check_extremes,
    check_inequality,
    check_margins,
    check_model,
    check_modes,
    check_per_unit,
    check_proportions,
    check_quantiles,
    check_ratio,
    check_shape,
    check_survival,
    check_test,
    check_totals,
    gini_of,
    herfindahl,
    kaplan_meier,
    publishable,
)
from discreet.outputs.checks.frequencies import _peeled, determined
from discreet.outputs.mitigations import merged_levels, rounded, secondary_cells
from discreet.outputs.survival_curves import grouped

TABLES = arrays(np.int64, st.tuples(st.integers(1, 5), st.integers(1, 5)), elements=st.integers(0, 40))


@given(TABLES, st.integers(1, 15))
def test_a_table_passes_the_low_count_check_exactly_when_no_cell_is_small(table, threshold):
    found = check_counts(table, OutputPolicy(threshold=threshold))
    small = (table > 0) & (table < threshold)
    assert {tuple(c) for c in np.argwhere(small).tolist()} == set(found.cells("low count")) or not (
        table > 0
    ).any()


def test_exactly_the_threshold_passes():
    assert check_counts([[10, 10], [10, 10]]).status == "pass"


def test_structural_zeros_say_nothing_and_a_line_with_one_possible_cell_is_not_full():
    table, impossible = [[20, 0], [30, 40]], [[False, True], [False, False]]
    assert check_counts(table, structural=impossible).status == "pass"
    assert check_counts(table).status == "fail"


def test_somebody_in_an_impossible_cell_is_shown_to_a_human():
    assert check_counts([[20, 11], [30, 40]], structural=[[False, True], [False, False]]).status == "review"


def test_trivial_full_lines_can_be_declared():
    table = [[20, 0], [30, 40]]
    assert check_counts(table).cells("full line") == ((0, 0), (1, 1))
    found = check_counts(table, trivial=[[True, False], [False, False]])
    assert found.cells("full line") == ((1, 1),)


def test_where_zeros_are_not_disclosive_only_low_counts_matter():
    assert check_counts([[20, 0], [0, 40]], OutputPolicy(zeros_are_disclosive=False)).status == "pass"


def test_a_table_in_three_dimensions_has_lines_in_three_directions():
    table = np.full((2, 2, 2), 20)
    table[0, 0, 1] = 0
    assert check_counts(table).cells("full line") == ((0, 0, 0), (0, 1, 1), (1, 0, 1))


@pytest.mark.parametrize("wrong", [[[1, -2]], [[1.5, 2]], [[np.nan, 2]]])
def test_what_no_count_can_be_is_refused(wrong):
    with pytest.raises(ParameterError):
        check_counts(wrong)


def test_an_empty_table_is_for_a_human():
    assert check_counts([[0, 0]]).status == "review"
    assert check_counts(np.zeros((0, 2))).status == "review"


def test_proportions_are_judged_by_numerator_denominator_and_complement():
    found = check_proportions([4, 96, 5], [100, 100, 8])
    assert found.cells("numerator") == ((0,), (2,))
    assert found.cells("denominator") == ((2,),)
    assert found.cells("complement") == ((1,), (2,))
    with pytest.raises(ParameterError, match="numerator"):
        check_proportions([5], [4])


def test_one_hidden_cell_in_a_line_follows_from_the_margin():
    counts = np.array([[4, 20, 30], [25, 35, 40]])
    hide = np.array([[True, False, False], [False, False, False]])
    assert check_margins(counts, hide).status == "fail"
    square = np.array([[True, True, False], [True, True, False]])
    assert check_margins(counts, square).cells("margins") == ()


@settings(max_examples=examples(60), deadline=None)
@given(arrays(bool, st.tuples(st.integers(1, 5), st.integers(1, 5))))
def test_what_line_by_line_solving_finds_the_rank_test_finds_too(hidden):
    by_rank = determined(hidden)
    by_lines = hidden & ~_peeled(hidden)
    assert (by_lines <= by_rank).all()


@settings(max_examples=examples(40), deadline=None)
@given(arrays(np.int64, st.tuples(st.integers(2, 5), st.integers(2, 5)), elements=st.integers(0, 60)))
def test_after_secondary_suppression_no_margin_gives_a_cell_away(table):
    policy = OutputPolicy()
    counts = table.astype(float)
    primary = (counts > 0) & (counts < policy.threshold)
    hidden = primary | secondary_cells(counts, primary, policy)
    found = check_margins(counts, hidden, policy)
    assert found.status == "pass" or hidden.all()


@given(st.lists(st.integers(0, 60), min_size=1, max_size=12))
def test_merging_levels_keeps_the_total_and_ends_with_cells_that_are_large_enough(counts):
    table = np.array(counts, dtype=float)
    names = merged_levels(table, [list(range(len(counts)))], lambda t: (t > 0) & (t < 10))[0]
    sums = {new: sum(table[old] for old in names if names[old] == new) for new in names.values()}
    assert sum(sums.values()) == table.sum()
    assert len(sums) == 1 or all(n == 0 or n >= 10 for n in sums.values())


def test_rounding_goes_to_the_nearest_multiple():
    assert rounded(np.array([0, 2, 3, 7, 8]), 5).tolist() == [0, 0, 5, 5, 10]


@given(st.lists(st.floats(0, 1e6), min_size=12, max_size=40), st.integers(0, 30))
def test_dominance_does_not_depend_on_the_order_of_contributions(values, shift):
    turned = values[shift % len(values) :] + values[: shift % len(values)]
    cells = np.zeros(len(values))
    assert check_totals(cells, values).status == check_totals(cells, turned).status


def test_a_total_of_zeros_is_not_disclosive():
    assert check_totals(np.zeros(12), np.zeros(12)).status == "pass"


def test_negative_contributions_are_for_a_human_unless_the_policy_takes_absolute_values():
    values = [-5.0] + [3.0] * 14
    assert check_totals(np.zeros(15), values).status == "review"
    assert check_totals(np.zeros(15), values, OutputPolicy(negative="absolute")).status == "pass"


def test_the_contributions_of_one_holding_are_added_first():
    values, firms = [50.0] * 2 + [1.0] * 14, ["a", "a", *range(14)]
    together = check_totals(np.zeros(16), values, OutputPolicy(nk_n=1, nk_k=0.8), contributor=firms)
    apart = check_totals(np.zeros(16), values, OutputPolicy(nk_n=1, nk_k=0.8))
    assert together.cells("dominance")
    assert not apart.cells("dominance")


def test_public_weights_let_a_respondent_be_sought_by_the_own_value():
    values, weights = [10.0] + [1.0] * 19, [50.0] + [20.0] * 19
    secret, public = (OutputPolicy(nk_n=1, nk_k=0.5, weights_public=known) for known in (False, True))
    assert check_totals(np.zeros(20), values, secret, weight=weights).cells("dominance")
    assert not check_totals(np.zeros(20), values, public, weight=weights).cells("dominance")


def test_quantiles_count_people_between_them_with_ties():
    many = [0] * 50 + [1] * 50
    assert check_quantiles(many, [0.25, 0.5, 0.75]).status == "pass"
    assert check_quantiles(range(9), [0.5]).status == "fail"
    assert check_quantiles([np.nan, np.nan], [0.5]).status == "review"
    with pytest.raises(ParameterError, match="minimum"):
        check_quantiles(range(40), [0, 0.5])


def test_a_quantile_that_is_one_persons_value_is_for_a_human_unless_rounded():
    values = np.arange(41) + 0.5
    assert check_quantiles(values, [0.5]).status == "review"
    assert check_quantiles(values, [0.5], rounded=True).status == "pass"


def test_extremes_pass_when_shared_or_structural():
    assert check_extremes([0] * 10 + [1] * 10).status == "pass"
    assert check_extremes([0] * 10 + [7], which=["minimum"]).status == "pass"
    assert check_extremes([0] * 10 + [7], which=["maximum"], structural=[7]).status == "pass"
    with pytest.raises(ParameterError):
        check_extremes([1], which=["middle"])


def test_a_ratio_without_its_table_fails():
    assert check_ratio(None).status == "fail"
    assert check_ratio([[20, 40], [30, 60]]).status == "pass"


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 12), st.booleans()), min_size=1, max_size=150),
    st.integers(1, 12),
)
def test_the_published_points_of_a_survival_curve_pass_the_check_themselves(people, limit):
    policy = OutputPolicy(survival_threshold=limit)
    curve = kaplan_meier([t for t, _ in people], [e for _, e in people])
    shown = publishable(curve, policy)
    short = grouped(curve, shown)
    assert check_survival(short, policy).status in (("pass",) if shown.any() else ("review",))
    assert (short.exits >= limit).all()
    assert (short.survival == curve.survival[shown]).all()


def test_a_curve_that_ends_with_everybody_gone_shows_its_last_time():
    curve = kaplan_meier([1] * 20 + [2] * 20, [True] * 40)
    assert publishable(curve).tolist() == [True, True]
    assert curve.survival.tolist() == [0.5, 0.0]


def test_models_fail_on_few_degrees_of_freedom_people_count_not_records():
    rng = np.random.default_rng(0)
    x = np.column_stack([np.ones(60), rng.normal(size=60)])
    y = rng.normal(size=60)
    assert check_model(x, outcome=y).status == "pass"
    assert check_model(x, outcome=y, subject=np.repeat(np.arange(6), 10)).status == "fail"


def test_one_binary_regressor_is_a_table_and_judged_as_one():
    treated = np.repeat([0, 1], [50, 20])
    died = np.concatenate([np.tile([0, 1], 25), np.repeat([0, 1], [15, 5])])
    found = check_model(np.column_stack([np.ones(70), treated]), outcome=died)
    assert found.cells("low count") == ((1, 1),)


def test_a_continuous_regressor_is_no_table():
    rng = np.random.default_rng(2)
    found = check_model(np.column_stack([np.ones(70), rng.normal(size=70)]), outcome=rng.normal(size=70))
    assert found.barns == ("g",)


def test_a_parameter_of_few_records_is_noted():
    rare = np.zeros(80)
    rare[:4] = 1
    x = np.column_stack([np.ones(80), rare, np.random.default_rng(3).normal(size=80)])
    found = check_model(x, outcome=np.random.default_rng(4).normal(size=80), names=["const", "rare", "x"])
    assert found.status == "review"
    assert "rare" in found.reasons[0]


def test_collinear_columns_count_once():
    rng = np.random.default_rng(5)
    one = rng.normal(size=30)
    x = np.column_stack([np.ones(30), one, 2 * one])
    dof = check_model(x, outcome=rng.normal(size=30)).findings[0].figures["dof"]
    assert dof == 28


def test_perfect_fit_and_values_per_person_fail():
    rng = np.random.default_rng(6)
    x = np.column_stack([np.ones(50), rng.normal(size=50)])
    assert check_model(x, outcome=x[:, 1], is_perfect=True).status == "fail"
    assert check_model(x, outcome=rng.normal(size=50), shown=["Residuals"]).status == "fail"
    assert check_per_unit(["coefficients", "R2"]) == []


def test_correlations_fail_when_perfect_or_of_few():
    assert check_correlation([[1, 0.4], [0.4, 1]], 12).status == "pass"
    assert check_correlation([[1, 0.4], [0.4, 1]], 11).status == "fail"
    assert check_correlation([[1, -1.0], [-1.0, 1]], 500).status == "fail"


def test_tests_shape_mode_and_concentration():
    assert check_test(10).status == "pass"
    assert check_shape([50, 5], [1.0, 1.0]).cells() == ((1,),)
    assert check_modes([2, 1], modes=[2, 1]).status == "fail"
    assert check_concentration([50], [0.5], OutputPolicy(largest_share_limit=0.4)).status == "fail"
    assert check_concentration([5], [0.5]).status == "fail"
    assert check_inequality([50], steps=[25, 25]).status == "pass"


@given(st.lists(st.floats(0.01, 1e4), min_size=2, max_size=60))
def test_the_herfindahl_index_bounds_the_largest_share(values):
    index = herfindahl(values)
    share = max(values) / sum(values)
    assert index <= share + 1e-9
    assert share <= index**0.5 + 1e-9


@given(st.lists(st.floats(0.01, 1e4), min_size=2, max_size=60), st.floats(0.1, 10))
def test_the_gini_coefficient_does_not_change_with_the_currency(values, factor):
    assert gini_of(values) == pytest.approx(gini_of([v * factor for v in values]), abs=1e-9)
    assert 0 <= gini_of(values) < 1
