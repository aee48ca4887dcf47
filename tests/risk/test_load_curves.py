"""Averaged series: flags, insiders, peaks, against loops that spell the definitions out."""

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from discreet import Microdata
from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.numerics.mdav import groups_of_at_least
from discreet.risk.averaged_series import series


def long(values, groups=None):
    n, m = values.shape
    table = pl.DataFrame(
        {
            "meter": np.repeat(np.arange(n), m),
            "slot": np.tile(np.arange(m), n),
            "kwh": values.ravel(),
            "street": np.repeat(np.zeros(n, int) if groups is None else groups, m),
        },
        nan_to_null=True,
    )
    return Microdata(table, sensitive="kwh", contributor="meter", time="slot")


def random_file(seed, n=30, m=6, gaps=0.2):
    rng = np.random.default_rng(seed)
    values = rng.lognormal(size=(n, m)).round(3)
    values[rng.random((n, m)) < gaps] = np.nan
    values[:, 0] = np.where(np.isnan(values[:, 0]), 0.5, values[:, 0])
    return values, rng.integers(0, 5, n)


points = st.integers(1, 25).flatmap(lambda n: arrays(np.int64, (n, 2), elements=st.integers(0, 9)))


@settings(deadline=None)
@given(points, st.integers(1, 6))
def test_mdav_groups_have_between_k_and_2k_minus_1_members(table, k):
    if k > len(table):
        return
    sizes = np.bincount(groups_of_at_least(table, k))
    assert len(sizes) == max(len(table) // k, 1)
    assert k <= sizes.min()
    assert sizes.max() <= 2 * k - 1


@pytest.mark.parametrize("seed", range(3))
def test_the_flags_of_every_cell_are_those_of_a_loop(seed):
    values, groups = random_file(seed)
    found = series(long(values, groups), group="street")
    for row in found.detail["cells"].iter_rows(named=True):
        cell = values[groups == row["group"], row["time"]]
        cell = sorted(cell[~np.isnan(cell)], reverse=True)
        total = sum(cell)
        assert row["size"] == len(cell)
        assert row["mean"] == pytest.approx(total / len(cell))
        assert row["dominance_1"] == (cell[0] > 0.6 * total)
        assert row["dominance_2"] == (sum(cell[:2]) > 0.6 * total)
        assert row["p"] == (sum(cell[2:]) < 2 / 3 * cell[0])
        assert row["small"] == (len(cell) < 3)


def published(values, groups):
    means = np.array(
        [
            [np.nanmean(c) if (~np.isnan(c)).any() else np.nan for c in values[groups == g].T]
            for g in np.unique(groups)
        ]
    )
    return np.where(np.isnan(means), np.nanmean(values, axis=0), means)


@pytest.mark.filterwarnings("ignore:Mean of empty slice")
@pytest.mark.parametrize("seed", range(3))
def test_insiders_find_the_nearest_group_and_bound_the_others_as_a_loop_does(seed):
    values, groups = random_file(seed)
    found = series(long(values, groups), group="street")
    centers = published(values, groups)
    within = exact = 0
    for a, row in enumerate(found.detail["attackers"].iter_rows(named=True)):
        here = ~np.isnan(values[a])
        distances = ((values[a, here] - centers[:, here]) ** 2).sum(axis=1)
        assert row["guess"] == distances.argmin()
        assert row["success"] == (distances.argmin() == groups[a])
        for t in np.flatnonzero(here):
            others = np.delete(values[:, t], a)[np.delete(groups, a) == groups[a]]
            others = others[~np.isnan(others)]
            exact += len(others) == 1
            within += len(others) > 0 and others.sum() / others.max() - 1 < 2 / 3
    assert (found.figures["exact_readings"], found.figures["readings_within_p"]) == (exact, within)


@settings(max_examples=examples(15), deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([[0], [0, 3]]), st.booleans())
def test_just_above_the_peak_the_group_is_found_and_just_below_it_is_not(seed, slots, standardize):
    values, groups = random_file(seed, n=12, m=4, gaps=0.0)
    groups = np.unique(groups, return_inverse=True)[1]
    found = series(long(values, groups), group="street", peak=slots, standardize=standardize)
    scale = values.std(axis=0) if standardize else np.ones(4)

    def finds(a, h):
        raised = values.copy()
        raised[a, slots] += h
        distances = (((raised[a] - published(raised, groups)) / scale) ** 2).sum(axis=1)
        return distances.argmin() == groups[a]

    for a, peak in enumerate(found.detail["attackers"]["peak_needed"]):
        if peak == 0:
            assert finds(a, 0)
        else:
            assert finds(a, peak * (1 + 1e-6) + 1e-9)
            assert not any(finds(a, h) for h in np.linspace(0, peak * (1 - 1e-6), 20))


def test_identical_series_tie_and_success_is_the_chance_to_pick_the_own_group():
    found = series(long(np.ones((6, 3))), k=3)
    assert found.figures["insider_success"] == pytest.approx(0.5)
    assert found.figures["information_loss"] is None


def test_a_cell_of_zeros_is_never_flagged_and_a_lone_member_always_is():
    values = np.array([[0.0, 5.0], [0.0, np.nan], [0.0, np.nan]])
    cells = series(long(values), k=3).detail["cells"].sort("time")
    assert cells["p"].to_list() == [False, True]
    assert cells["top_1_share"].to_list() == [None, 1.0]
    assert cells["small"].to_list() == [False, True]


def test_random_groups_and_drawn_attackers_repeat_with_the_seed():
    values, _ = random_file(1)
    one, two = (
        series(long(values), grouping="random", k=[3, 5], attackers=10, seed=7).detail["by_k"]
        for _ in range(2)
    )
    assert one.equals(two)
    assert one["groups"].to_list() == [10, 6]


def test_flags_fall_as_groups_grow():
    values, _ = random_file(3, n=120, gaps=0.0)
    table = series(long(values), k=[2, 5, 10, 20]).detail["by_k"]
    assert table["share_p"].to_list() == sorted(table["share_p"], reverse=True)
    assert table["share_dominance_2"][0] == 1


def test_the_protected_file_keeps_every_total():
    values, _ = random_file(4)
    found = series(long(values), k=4)
    protected = found.detail["protected"]
    by_time = protected.group_by("slot").agg(pl.col("kwh").sum()).sort("slot")["kwh"]
    np.testing.assert_allclose(by_time.to_numpy(), np.nansum(values, axis=0))
    assert protected.height == (~np.isnan(values)).sum()


def test_two_readings_of_one_meter_at_one_time_are_added_and_said():
    table = pl.DataFrame({"meter": [1, 1, 2, 3], "slot": [1, 1, 1, 1], "kwh": [1.0, 2.0, 3.0, 4.0]})
    found = series(Microdata(table, sensitive="kwh", person="meter", time="slot"))
    assert found.detail["cells"]["total"].item() == 10
    assert any("were added" in caveat for caveat in found.caveats)


def test_negative_readings_are_refused_or_taken_by_size():
    values = np.array([[-1.0], [2.0], [3.0]])
    with pytest.raises(ParameterError, match="1 readings in 'kwh' are negative"):
        series(long(values))
    assert series(long(values), negative="absolute").detail["cells"]["total"].item() == 6


def test_pandas_in_gives_pandas_out():
    pytest.importorskip("pandas")
    values, groups = random_file(5)
    ours = long(values, groups)
    theirs = Microdata(ours.frame.to_pandas(), sensitive="kwh", contributor="meter", time="slot")
    assert series(theirs, group="street").figures == series(ours, group="street").figures
    assert type(series(theirs).detail["groups"]).__module__.startswith("pandas")


FINE = long(np.ones((4, 2)))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: series(FINE, k=1), ParameterError, "k must be"),
        (lambda: series(FINE, k=5), ParameterError, "larger than the number of contributors"),
        (lambda: series(FINE, share=60), ParameterError, "share must be a share strictly between 0 and 1"),
        (lambda: series(FINE, share=0.3), ParameterError, "name it"),
        (lambda: series(FINE, grouping="street"), ParameterError, "grouping must be"),
        (lambda: series(FINE, attackers=0), ParameterError, "attackers must be"),
        (lambda: series(FINE, peak=99), ParameterError, "do not occur in 'slot'"),
        (lambda: series(FINE, time="hour"), ColumnError, "no column 'hour'"),
        (lambda: series(FINE, time="meter"), ParameterError, "different columns"),
        (lambda: series(FINE.with_roles(time=None)), ParameterError, "named as 'time'"),
        (lambda: series(FINE.with_roles(sensitive=None)), ParameterError, "0 sensitive columns"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_meter_in_two_groups_or_without_a_time_is_refused():
    table = pl.DataFrame(
        {"meter": [1, 1, 2], "slot": [1, 2, None], "kwh": [1.0, 1.0, 1.0], "street": [1, 2, 1]}
    )
    data = Microdata(table, sensitive="kwh", contributor="meter", time="slot")
    with pytest.raises(InputError, match="have no meter or no slot"):
        series(data)
    with pytest.raises(InputError, match="more than one group"):
        series(
            Microdata(table.drop_nulls(), sensitive="kwh", contributor="meter", time="slot"), group="street"
        )
    empty = Microdata(
        table.drop_nulls().with_columns(kwh=pl.lit(None, pl.Float64)), contributor="meter", time="slot"
    )
    with pytest.raises(InputError, match="no reading at all"):
        series(empty, reading="kwh")
