"""Groups of at least k, one value a group, totals kept."""

from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.numerics.distance.space import MixedSpace
from discreet.protect.microaggregation import Microaggregate
from discreet.protect.microaggregation_groups import (
    best_of_one_column,
    clusters_of_at_least,
    nearest_members,
    ranks_of_one_column,
)
from discreet.protect.treatment import Treatment

JOINT = ("mdav", "v-mdav", "projection", "clustering", "random")


def treated(table, *, seed=1, **options):
    return Microaggregate(**options).apply(Microdata(table), seed=seed)


def squares(values, groups):
    return sum(((values[groups == g] - values[groups == g].mean()) ** 2).sum() for g in np.unique(groups))


def cheapest_by_trying_all(values, k):
    """The least sum of squares over all cuts of the sorted values into groups of k or more."""
    ordered, n = np.sort(values), len(values)

    def best(start):
        if start == n:
            return 0.0
        stops = [stop for stop in range(start + k, n + 1) if stop == n or n - stop >= k]
        return min((((part := ordered[start:stop]) - part.mean()) ** 2).sum() + best(stop) for stop in stops)

    return best(0)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.integers(-50, 50), min_size=2, max_size=12), st.integers(2, 4))
def test_the_best_groups_of_one_column_cost_what_trying_all_costs(values, k):
    if len(values) < k:
        return
    column = np.array(values, dtype=float)
    groups = best_of_one_column(column, k)
    assert squares(column, groups) == pytest.approx(cheapest_by_trying_all(column, k), abs=1e-9)
    assert np.bincount(groups).min() >= k
    assert squares(column, groups) <= squares(column, ranks_of_one_column(column, k)) + 1e-9


@settings(max_examples=examples(40), deadline=None)
@given(
    st.integers(0, 2**32),
    st.integers(6, 90),
    st.integers(2, 5),
    st.sampled_from([*JOINT, "univariate", "ranking"]),
)
def test_totals_are_kept_and_each_released_value_stands_for_k_records(seed, n, k, method):
    rng = np.random.default_rng(seed)
    table = pl.DataFrame(
        {"a": rng.normal(size=n), "b": rng.integers(0, 9, n), "c": np.exp(rng.normal(size=n))}
    )
    release = treated(table, k=k, method=method, columns=["a", "b", "c"])
    shown = release.data.frame
    for name in table.columns:
        assert shown[name].sum() == pytest.approx(table[name].sum(), abs=1e-9)
        assert shown[name].value_counts()["count"].min() >= k
    if method in JOINT:
        assert shown.group_by(pl.all()).len()["len"].min() >= k
        assert f"at least {k} records" in release.guarantee
    else:
        assert release.guarantee is None
    assert 0 <= release.log[0].parameters["sse_share"] <= 1 + 1e-12


@pytest.mark.parametrize("method", ["mdav", "projection", "random", "univariate", "ranking"])
def test_groups_stay_under_2k_where_the_method_says_so(method):
    values = np.random.default_rng(3).normal(size=(101, 1 if method in ("univariate", "ranking") else 3))
    table = pl.DataFrame(values)
    shown = treated(table, k=4, method=method, columns=table.columns).data.frame
    sizes = shown.group_by(pl.all()).len()["len"]
    assert 4 <= sizes.min() <= sizes.max() <= 7


def test_strata_are_never_mixed():
    table = pl.DataFrame({"x": [1.0, 2, 3, 4, 5, 6], "sex": ["f", "m"] * 3})
    shown = treated(table, k=3, columns=["x"], strata="sex").data.frame
    assert shown["x"].to_list() == [3.0, 4.0] * 3
    with pytest.raises(ParameterError, match="1 of the strata have fewer than k = 3"):
        treated(table.head(5), k=3, columns=["x"], strata="sex")


def test_whole_numbers_become_floats_unless_rounding_is_asked_for():
    table = pl.DataFrame({"n": [1, 2, 5, 10, 11, 13]}, schema={"n": pl.Int32})
    assert treated(table, columns=["n"]).data.frame["n"].dtype == pl.Float64
    rounded = treated(table, columns=["n"], round=True).data.frame["n"]
    assert (rounded.dtype, rounded.to_list()) == (pl.Int32, [3, 3, 3, 11, 11, 11])


def test_dates_and_categories_are_grouped_with_gower_and_keep_their_types():
    days = pl.Series("day", [1, 2, 3, 100, 101, 105]).cast(pl.Date)
    level = pl.Series("level", ["lo", "lo", "mid", "hi", "hi", "mid"], dtype=pl.Enum(["lo", "mid", "hi"]))
    table = pl.DataFrame([days, level, pl.Series("town", ["a", "a", "a", "c", "c", "c"])])
    shown = treated(table, columns=["day", "level", "town"]).data.frame
    assert shown.schema == table.schema
    assert shown["day"].to_physical().to_list() == [2, 2, 2, 102, 102, 102]
    assert shown["level"].to_list() == ["lo"] * 3 + ["hi"] * 3
    assert shown["town"].to_list() == ["a"] * 3 + ["c"] * 3
    ordered = table.with_columns(pl.col("town").cast(pl.Enum(["a", "c"])))
    middle = treated(ordered, columns=ordered.columns, categories="median").data.frame["level"]
    assert middle.to_list() == ["lo"] * 3 + ["hi"] * 3
    with pytest.raises(ColumnError, match="'town' has no order"):
        treated(table, columns=["town"], categories="median")


def test_of_equally_frequent_categories_the_first_level_is_shown():
    table = pl.DataFrame({"x": pl.Series(["b", "a", "b", "a"], dtype=pl.Enum(["b", "a"]))})
    assert treated(table, k=4, columns=["x"]).data.frame["x"].to_list() == ["b"] * 4
    assert treated(table.cast(pl.String), k=4, columns=["x"]).data.frame["x"].to_list() == ["a"] * 4


def test_weighted_totals_are_kept_when_a_weight_is_named():
    rng = np.random.default_rng(5)
    table = pl.DataFrame({"x": rng.normal(size=40), "w": rng.integers(1, 9, 40)})
    shown = treated(table, k=4, columns=["x"], weight="w").data.frame
    assert (shown["x"] * shown["w"]).sum() == pytest.approx((table["x"] * table["w"]).sum())
    zero = treated(pl.DataFrame({"x": [1.0, 3.0], "w": [0, 0]}), k=2, columns=["x"], weight="w")
    assert zero.data.frame["x"].to_list() == [2.0, 2.0]


def test_missing_values_stay_missing_and_no_value_of_fewer_than_k_is_shown():
    rng = np.random.default_rng(11)
    cells = rng.normal(size=(200, 3))
    cells[rng.random(cells.shape) < 0.1] = np.nan
    table = pl.DataFrame(cells, schema=["a", "b", "c"]).fill_nan(None)
    for missing in ("apart", "observed"):
        release = treated(table, columns=table.columns, missing=missing)
        hidden = release.log[0].suppressed_cells
        for name in table.columns:
            shown = release.data.frame[name]
            assert shown.filter(table[name].is_null()).null_count() == table[name].null_count()
            assert shown.null_count() - table[name].null_count() == hidden.get(name, 0)
            assert shown.drop_nulls().value_counts()["count"].min() >= 3
        if hidden:
            assert f"{sum(hidden.values()):,} cells became missing" in release.log[0].notes[1]
    alone = treated(table, columns=["a"], method="univariate").data.frame["a"]
    assert alone.null_count() == table["a"].null_count()
    assert alone.sum() == pytest.approx(table["a"].sum())


def test_a_rare_pattern_of_gaps_joins_the_frequent_one():
    table = pl.DataFrame({"a": [1.0, 2, 3, 4, 5, None], "b": [1.0, 2, 3, 4, 5, 6]})
    shown = treated(table, columns=["a", "b"]).data.frame
    assert shown["a"].to_list()[-1] is None
    assert shown["b"].sum() == 21
    assert shown.group_by("b").len()["len"].to_list() == [3, 3]


def test_given_groups_are_shown_as_they_are():
    table = pl.DataFrame({"x": [1.0, 9.0, 2.0, 4.0], "street": ["s", "s", "t", "t"]})
    shown = treated(table, k=2, method="labels", labels="street", columns=["x"]).data.frame
    assert shown["x"].to_list() == [5.0, 5.0, 3.0, 3.0]
    with pytest.raises(ParameterError, match="2 of the groups have fewer than k = 3"):
        treated(table, k=3, method="labels", labels="street", columns=["x"])


CURVES = [
    (1, 10, 0), (2, 12, 1), (1, 50, 2), (100, 5, 9), (110, 1, 10), (105, 2, 1), (300, 3, 30), (120, 2, 11),
]  # fmt: skip


def test_load_curves_are_averaged_as_in_the_published_example():
    """Navarro-Arribas and Torra: groups {7, 8, 5} and {1, 2, 3, 4, 6}."""
    long = pl.DataFrame(
        [(meter, slot, kwh) for meter, curve in enumerate(CURVES, 1) for slot, kwh in enumerate(curve)],
        schema=["meter", "slot", "kwh"],
        orient="row",
    )
    release = treated(long, columns=["kwh"], series="meter", time="slot")
    means = release.data.frame.pivot("slot", index="meter", values="kwh").sort("meter")
    first, second = (41.8, 15.8, 2.6), (176.6667, 2.0, 17.0)
    for meter, *curve in means.iter_rows():
        assert curve == pytest.approx(second if meter in (5, 7, 8) else first, abs=1e-4)
    assert release.log[0].notes[0] == "2 groups of 3 to 5 series (mdav)."
    wide = pl.DataFrame(CURVES, schema=["s0", "s1", "s2"], orient="row")
    same = treated(wide, columns=wide.columns, standardize=False).data.frame
    assert same.rows() == [tuple(row[1:]) for row in means.iter_rows()]
    role = Microdata(long.sample(fraction=1.0, shuffle=True, seed=4), sensitive="kwh", time="slot")
    assert (
        Microaggregate(series="meter").apply(role).data.frame.sort("meter", "slot")["kwh"].to_list()
        == release.data.frame["kwh"].to_list()
    )


def test_a_reading_that_too_few_series_have_is_not_shown():
    long = pl.DataFrame({"m": ["a", "b", "c", "a"], "t": [1, 1, 1, 2], "x": [1.0, 2.0, 3.0, 7.0]})
    release = treated(long, columns=["x"], series="m", time="t")
    assert release.data.frame["x"].to_list() == [2.0, 2.0, 2.0, None]
    with pytest.raises(ColumnError, match="several readings at one time"):
        treated(pl.concat([long, long]), columns=["x"], series="m", time="t")
    with pytest.raises(ParameterError, match="time="):
        treated(long, columns=["x"], series="m")


@pytest.mark.parametrize("method", JOINT)
def test_the_same_seed_gives_the_same_file(method):
    table = pl.DataFrame(np.random.default_rng(2).normal(size=(60, 3)))
    one, two = (treated(table, method=method, columns=table.columns, seed=9).data.frame for _ in range(2))
    assert one.equals(two)


def test_pandas_frames_come_back_as_pandas():
    table = pd.DataFrame({"x": [1, 2, 3, 10, 11, 12], "g": pd.Categorical(["a", "a", "a", "b", "b", "b"])})
    shown = treated(table, columns=["x", "g"]).data.frame
    assert isinstance(shown, pd.DataFrame)
    assert shown["x"].tolist() == [2.0, 2.0, 2.0, 11.0, 11.0, 11.0]
    assert shown["g"].dtype == table["g"].dtype


def test_a_plan_file_rebuilds_it():
    given = Microaggregate(k=5, method="v-mdav", columns=["x"], gamma=1.1)
    assert Treatment.named("microaggregate", given.to_dict()) == given


def test_columns_without_spread_are_no_obstacle():
    table = pl.DataFrame({"x": [4.0] * 7, "y": [None] * 7}, schema={"x": pl.Float64, "y": pl.Float64})
    release = treated(table, columns=["x", "y"])
    assert release.data.frame.equals(table)
    assert release.log[0].parameters["sse_share"] == 0


def test_clusters_under_k_are_dissolved():
    rows = np.array([[0.0], [0.1], [0.2], [9.0], [9.1], [9.2], [500.0]])
    found = clusters_of_at_least(rows, 3, 3, np.random.default_rng(1))
    assert np.bincount(found).min() >= 3


def test_sorted_groups_of_one_column_do_not_overlap():
    values = np.random.default_rng(8).normal(size=200)
    groups = best_of_one_column(values, 3)
    spans = [(values[groups == g].min(), values[groups == g].max()) for g in range(groups.max() + 1)]
    assert all(high <= low for (_, high), (low, _) in pairwise(spans))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"k": 1}, "k must be a whole number"),
        ({"method": "mdva"}, "mdav"),
        ({"measure": "max"}, "measure must be 'mean', 'median' or 'member'"),
        ({"method": "labels"}, "labels="),
        ({"time": "t"}, "series="),
        ({"series": "m", "method": "ranking"}, "one column at a time"),
        ({"gamma": -1}, "gamma"),
        ({"clusters": 0}, "clusters"),
        ({"distance": "cosine"}, "distance must be"),
    ],
)
def test_bad_parameters_are_refused_by_name(options, says):
    with pytest.raises(ParameterError, match=says):
        Microaggregate(**options)


def test_bad_columns_are_refused_by_name():
    table = pl.DataFrame({"pay": [1.0, 2.0, 3.0], "town": ["a", "b", "c"]})
    with pytest.raises(ColumnError, match="pay"):
        treated(table, columns=["pya"])
    with pytest.raises(ColumnError, match="is for numbers"):
        treated(table, columns=["town"], method="univariate")
    with pytest.raises(ParameterError, match="given no columns"):
        treated(table)
    with pytest.raises(ParameterError, match="fewer than k = 4"):
        treated(table, columns=["pay"], k=4)
    with pytest.raises(ParameterError, match="cannot be treated as well"):
        treated(table, columns=["pay"], weight="pay")


def test_columns_may_have_any_name():
    names = ["group", "value", "number", "weight", "time", "block", "0"]
    table = pl.DataFrame({name: [float(i + j) for i in range(6)] for j, name in enumerate(names)})
    table = table.with_columns(order=pl.Series(["a", "b"] * 3))
    shown = treated(table, columns=names, strata="order").data.frame
    assert shown.select(names).unique().height == 2


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10**6), st.integers(4, 40), st.integers(2, 5), st.booleans())
def test_a_member_that_stands_for_its_group_is_the_nearest_to_the_others(seed, n, k, mixed):
    rng = np.random.default_rng(seed)
    table = pl.DataFrame({"a": rng.integers(0, 9, n), "b": rng.normal(size=n)})
    table = table.with_columns(c=pl.Series(rng.choice(["x", "y", "z"], n))) if mixed else table
    space = MixedSpace.fit(table, distance="gower" if mixed else "euclidean")
    points, groups = space.place(table), rng.integers(0, 1 + n // k, n)
    groups = np.unique(groups, return_inverse=True)[1]
    found, apart = nearest_members(points, space.metric, groups), space.matrix(points, points)
    apart = apart if mixed else apart**2
    for group in range(groups.max() + 1):
        rows = np.flatnonzero(groups == group)
        sums = apart[np.ix_(rows, rows)].sum(axis=1)
        assert set(found[rows]) == {found[rows[0]]}
        assert sums[rows == found[rows[0]]][0] == pytest.approx(sums.min(), abs=1e-6)


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 10**6), st.integers(6, 60), st.integers(2, 6))
def test_members_make_every_shown_combination_one_of_the_file_and_shared_by_k(seed, n, k):
    rng = np.random.default_rng(seed)
    table = pl.DataFrame(
        {
            "age": [None if rng.random() < 0.1 else int(x) for x in rng.integers(0, 90, n)],
            "town": rng.choice(["a", "b", "c"], n),
            "pay": rng.integers(0, 10**6, n),
        },
        schema_overrides={"age": pl.Int64},
    )
    release = treated(table, k=k, columns=["age", "town"], measure="member")
    shown = release.data.frame
    assert shown.schema == table.schema
    assert shown["pay"].equals(table["pay"])
    assert shown.group_by("age", "town").len()["len"].min() >= min(k, n)
    assert set(shown.select("age", "town").rows()) <= set(table.select("age", "town").rows())
    assert release.guarantee is not None


def test_a_member_cannot_stand_for_one_column_at_a_time():
    with pytest.raises(ParameterError, match="whole records"):
        Microaggregate(method="univariate", measure="member")
