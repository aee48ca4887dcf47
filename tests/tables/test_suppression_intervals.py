"""Intervals of suppressed tables: wide enough wherever any choice of cells can make them so, and said where not."""

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.core.errors import DiscreetWarning, ParameterError
from discreet.tables import Dominance, Protection, Suppression, Table, Threshold, audit, primary
from discreet.tables.optimal_suppression import cheapest

from .test_suppression import records
from .test_table_audit import people

WISHES = [
    None,
    0.2,
    0.7,
    2.5,
    Protection(lower=0.1, upper=0.6),
    Protection(sliding=0.8),
    Protection(lower=1.0, sliding=3.0),
]


FORMULAS = ["place*kind", "place*kind", "place*kind + place*sex", "place*kind*sex"]


def random_table(seed, *, sums, zeros):
    """A hierarchical table of counts or sums, with small cells and zeros."""
    rng = np.random.default_rng(seed)
    frame = records(seed, n=int(rng.integers(25, 120)))
    hierarchies = {"place": "region"}
    formula = FORMULAS[seed % len(FORMULAS)]
    every = "all" if zeros != "absent" else "observed"
    if not sums:
        table = Table.from_microdata(frame, formula, hierarchies=hierarchies, zeros=every)
        return primary(table, Threshold.up_to(3, zeros=zeros == "primary"))
    # Firms without turnover are there, and their sums are zero.
    idle = pl.Series(rng.random(frame.height) < 0.15)
    frame = frame.with_columns(turnover=pl.when(idle).then(0.0).otherwise("turnover"))
    table = Table.from_microdata(frame, formula, measure="turnover", hierarchies=hierarchies, zeros=every)
    return primary(table, Dominance(1, 80))


def too_narrow(found):
    return set(found.intervals.filter(~pl.col("wide_enough"))["cell"].to_list())


def holds_what_can_be_had(table, plan):
    """Run a plan; every interval too narrow must be named, and be so with everything left out that may be."""
    result = plan.apply(table)
    narrow = too_narrow(result.audit)
    assert narrow <= set(result.unsafe.tolist())
    may_go = np.setdiff1d(np.arange(table.cells.height), plan.forced)
    assert narrow == too_narrow(audit(table, may_go, intervals=True, protection=plan.protection))
    assert not set(plan.forced) & set(result.secondary_cells.tolist())
    assert result.audit.figures.get("out_of_reach", 0) == len(narrow)
    assert ("No choice of further cells" in result.audit.line) == bool(narrow)
    return result


drawn = (
    st.integers(0, 1_000_000),
    st.booleans(),
    st.sampled_from(["absent", "published", "primary"]),
    st.sampled_from(WISHES),
    st.sampled_from([0.0, 0.0, 0.2, 0.6]),
)


def case_of(seed, sums, zeros, forced):
    table = random_table(seed, sums=sums, zeros=zeros)
    rng = np.random.default_rng(seed + 1)
    open_cells = np.flatnonzero(~table.cells["primary"].to_numpy())
    return table, sorted(rng.choice(open_cells, size=int(forced * len(open_cells)), replace=False).tolist())


@pytest.mark.filterwarnings("ignore::discreet.core.errors.DiscreetWarning")
@settings(max_examples=examples(25), deadline=None)
@given(*drawn)
def test_the_elimination_with_intervals_reaches_what_any_choice_can(seed, sums, zeros, wish, forced):
    table, keep = case_of(seed, sums, zeros, forced)
    holds_what_can_be_had(table, Suppression(intervals=True, protection=wish, forced=keep))


@pytest.mark.filterwarnings("ignore::discreet.core.errors.DiscreetWarning")
@settings(max_examples=examples(6), deadline=None)
@given(*drawn)
@pytest.mark.slow
def test_the_optimum_reaches_what_any_choice_can_and_costs_no_more(seed, sums, zeros, wish, forced):
    table, keep = case_of(seed, sums, zeros, forced)
    settings_of = {"protection": wish, "forced": keep, "singleton_method": "none"}
    best = holds_what_can_be_had(table, Suppression(method="optimal", time_limit=3, **settings_of))
    quick = Suppression(intervals=True, **settings_of).apply(table)
    assert best.figures["secondary_value"] <= quick.figures["secondary_value"] * (1 + 1e-6) + 1e-6


def social_assistance():
    table = Table.from_microdata(
        discreet.datasets.social_assistance(), "region*main_income", count="freq",
        hierarchies={"region": ["county", "k_group"]},
    )  # fmt: skip
    return primary(table, Threshold(4))


@pytest.mark.parametrize("method", ["gauss", "optimal"])
def test_counts_of_one_are_protected_downward_by_leaving_out_a_zero(method):
    """With all zeros published every reader knows that a suppressed count is one or more."""
    table = social_assistance()
    zeros = np.flatnonzero(table.cells["count"].to_numpy() == 0)
    every_other = np.setdiff1d(np.arange(table.cells.height), zeros)
    assert too_narrow(audit(table, every_other, intervals=True, protection=0.2)) == {24, 29}
    result = Suppression(method=method, intervals=True, protection=0.2).apply(table)
    assert result.audit.safe
    assert not len(result.unsafe)
    hidden = np.intersect1d(zeros, result.secondary_cells)
    assert len(hidden)
    wide = audit(table, result.suppressed, primary=hidden, intervals=True).intervals
    assert (wide["upper"] > 0).any()


def test_zeros_stay_published_where_intervals_can_do_without_them():
    table = social_assistance()
    zeros = np.flatnonzero(table.cells["count"].to_numpy() == 0)
    result = Suppression(intervals=True, protection=Protection(upper=0.5)).apply(table)
    assert result.audit.safe
    assert not np.intersect1d(zeros, result.secondary_cells).size


@pytest.mark.parametrize("method", ["gauss", "optimal"])
def test_protection_that_no_choice_gives_is_said_plainly(method):
    """The only small cell is a count of one, and no zero can be left out: there is none."""
    table = primary(Table.from_microdata(people((8, 1), (4, 4), (9, 7)), "place*sex"), Threshold(3))
    result = Suppression(method=method, intervals=True, protection=0.5).apply(table)
    assert result.unsafe.tolist() == [table.find(place="a", sex="m")]
    assert not result.audit.safe
    assert result.audit.figures["out_of_reach"] == 1
    assert "No choice of further cells gives it room enough" in result.summary()
    assert "know every other count to be one or more" in result.summary()
    # What can be had is still given: nobody can compute it, and it may be larger.
    assert result.audit.exact.height == 0
    assert (result.audit.intervals["upper"] > result.audit.intervals["value"]).all()


@pytest.mark.parametrize("method", ["gauss", "optimal"])
def test_a_published_total_limits_what_protection_there_is(method):
    table = primary(Table.from_microdata(people((8, 2), (4, 4), (9, 7)), "place*sex"), Threshold(3))
    cell = [{"place": "Total", "sex": "Total"}]
    wish = Protection(upper=40.0)
    kept = Suppression(method=method, intervals=True, protection=wish, forced=cell).apply(table)
    assert len(kept.unsafe) == 1
    free = Suppression(method=method, intervals=True, protection=wish).apply(table)
    assert free.audit.safe
    assert ("Total", "Total") in free.secondary


@pytest.mark.parametrize("method", ["gauss", "optimal"])
def test_negative_values_can_be_anything_once_they_cannot_be_computed(method):
    frame = records(5, n=80).with_columns(turnover=pl.col("turnover") - 20)
    table = Table.from_microdata(frame, "place*kind", measure="turnover", hierarchies={"place": "region"})
    result = Suppression(method=method, intervals=True, protection=3.0).apply(primary(table, Threshold(3)))
    assert result.figures["primary"] == 4
    assert result.audit.safe
    assert np.isinf(result.audit.intervals["lower"].to_numpy()).all()


@pytest.mark.parametrize("method", ["gauss", "optimal"])
def test_weighted_tables_are_protected_by_their_weighted_values(method):
    frame = records(5, n=80).with_columns(w=pl.lit(2.5))
    table = Table.from_microdata(frame, "place*kind", weight="w", hierarchies={"place": "region"})
    result = Suppression(method=method, intervals=True, protection=0.3).apply(primary(table, Threshold(3)))
    assert result.table.value == "weighted"
    assert result.audit.safe
    assert result.audit.by_contributors.height == 0
    assert result.published.filter(pl.col("status") == "suppressed")["weighted"].null_count() == 13


@pytest.mark.parametrize("plan", [{}, {"intervals": True}, {"method": "optimal"}])
def test_without_primary_cells_nothing_is_left_out(plan):
    table = primary(Table.from_microdata(people((8, 9), (4, 4)), "place*sex"), Threshold(3))
    result = Suppression(**plan).apply(table)
    assert result.secondary == []
    assert result.audit.safe
    assert result.published["status"].unique().to_list() == ["published"]


@pytest.mark.parametrize("plan", [{}, {"intervals": True}, {"method": "optimal"}])
def test_a_table_of_which_nothing_is_left_is_warned_about_once(plan):
    table = primary(Table.from_microdata(people((1, 1), (1, 1)), "place*sex"), Threshold(3))
    with pytest.warns(DiscreetWarning, match="Every cell is suppressed") as heard:
        result = Suppression(**plan).apply(table)
    assert len(heard) == 1
    assert result.figures["published"] == 0


@pytest.mark.parametrize("plan", [{}, {"intervals": True, "protection": 0.4}, {"method": "optimal"}])
def test_forced_hidden_and_earlier_cells_keep_their_part(plan):
    table = primary(Table.from_microdata(people((8, 2), (4, 4), (9, 7)), "place*sex"), Threshold(3))
    before = Suppression().apply(table)
    keep, drop = [{"place": "c", "sex": "m"}], [{"place": "b"}]
    result = Suppression(forced=keep, hidden=drop, **plan).apply(table)
    assert ("c", "m") not in result.secondary
    assert result.table.cells.filter(pl.col("suppressed") == "hidden").select("place", "sex").rows() == [
        ("b", "Total")
    ]
    assert result.audit.safe
    again = Suppression(previous=[before], **plan).apply(table)
    assert not (again.suppressed & ~before.suppressed).any()
    assert again.audit.safe


@pytest.mark.parametrize("plan", [{}, {"intervals": True}, {"method": "optimal"}])
def test_forced_cells_that_give_a_primary_one_away_cost_no_further_cells(plan):
    table = primary(Table.from_microdata(people((8, 1), (4, 4), (9, 7)), "place*sex"), Threshold(3))
    forced = [{"place": "a"}, {"place": "a", "sex": "f"}]
    result = Suppression(forced=forced, **plan).apply(table)
    assert result.unsafe.tolist() == [table.find(place="a", sex="m")]
    assert result.secondary == []


def test_the_optimum_with_contributors_costs_no_more_than_the_elimination():
    frame = records(5, n=80).with_columns(turnover=pl.col("turnover") - 20)
    table = Table.from_microdata(frame, "place*kind", measure="turnover", hierarchies={"place": "region"})
    table = primary(table, Threshold(3))
    best, quick = Suppression(method="optimal").apply(table), Suppression(intervals=True).apply(table)
    assert best.audit.safe
    assert best.figures["cost"] <= quick.figures["secondary_value"]
    assert best.figures["bound"] <= best.figures["cost"] * (1 + 1e-6)


def test_an_interval_of_whole_numbers_ends_at_the_last_one_inside():
    """Twice a and b make 3, b and c make 2: a lies between 0.5 and 1.5, so that a count of it can only be 1."""
    x = np.array([[1, 2, 0, 0, 0], [0, 1, 1, 1, 0], [0, 0, 1, 0, 1]])
    cost = np.array([0.0, 100.0, 3.0, 1.0, 1.0])
    part = cheapest(x, [1, 1, 1], [0], lower=0, upper=0, sliding=1, cost=cost)
    whole = cheapest(x, [1, 1, 1], [0], lower=0, upper=0, sliding=1, cost=cost, whole=True)
    assert (part.secondary.tolist(), part.proved) == ([3, 4], True)
    assert (whole.secondary.tolist(), whole.proved) == ([2, 3], True)


def test_a_small_level_in_a_large_table_is_not_lost_in_rounding():
    x = np.array([[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1]])
    found = cheapest(x, [40, 9e8, 5e9], [0], lower=10, upper=10, forced=[3])
    assert found.secondary.tolist() == [1]


def test_bad_limits_are_refused():
    with pytest.raises(ParameterError, match="time_limit"):
        Suppression(time_limit=0)
    with pytest.raises(ParameterError, match="workers"):
        Suppression(workers=0)
