from __future__ import annotations

import itertools
import json
import math
import os
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.hierarchy import Hierarchy

# The first call of a test pays for loading engines, which says nothing about the code.
patiently = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

REGION = {"Europe": {"North": ["SE", "NO"], "South": ["IT"]}, "Asia": ["JP", "CN"]}

EVERY_KIND = {
    "tree": Hierarchy.from_tree(REGION),
    "intervals": Hierarchy.intervals([5, 10, 20], lower=0, upper=90),
    "open intervals": Hierarchy.intervals([0.1, 0.5], origin=0.05, closed="right"),
    "breaks": Hierarchy.breaks([[18, 30, 65], [18, 65], [18]]),
    "named breaks": Hierarchy.breaks([[18, 65]], labels=[["child", "adult", "senior"]], closed="right"),
    "prefixes": Hierarchy.prefixes([4, 2]),
    "cut prefixes": Hierarchy.prefixes([3, 1], mask=""),
    "dates": Hierarchy.dates(),
}

numbers = st.one_of(st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6), st.just(float("nan")))
VALUES = {
    "tree": st.sampled_from(["SE", "NO", "IT", "JP", "CN"]),
    "intervals": st.integers(-(2**40), 2**40),
    "open intervals": numbers,
    "breaks": numbers,
    "named breaks": numbers,
    "prefixes": st.text("ab1*$ä\n", max_size=6),
    "cut prefixes": st.text("ab1*$ä\n", max_size=6),
    "dates": st.dates(date(1, 1, 1), date(9999, 1, 1)),
}
DTYPES = {"tree": pl.String, "prefixes": pl.String, "cut prefixes": pl.String, "dates": pl.Date}


@st.composite
def a_hierarchy_and_its_column(draw: st.DrawFn) -> tuple[Hierarchy, pl.Series]:
    kind = draw(st.sampled_from(sorted(EVERY_KIND)))
    drawn = draw(st.lists(st.none() | VALUES[kind], max_size=30))
    dtype = DTYPES.get(kind, pl.Int64 if kind == "intervals" else pl.Float64)
    if dtype == pl.Float64:
        drawn = [None if value is None else float(value) for value in drawn]
    return EVERY_KIND[kind], pl.Series("x", drawn, dtype=dtype)


def missing(values: pl.Series) -> pl.Series:
    return values.fill_nan(None).is_null() if values.dtype.is_float() else values.is_null()


@patiently
@given(a_hierarchy_and_its_column())
def test_values_equal_at_one_level_are_equal_at_every_level_above(case):
    hierarchy, values = case
    levels = [hierarchy.generalize(values, level).cast(pl.String) for level in range(1, hierarchy.height + 1)]
    for below, above in itertools.pairwise(levels):
        pairs = pl.DataFrame({"below": below, "above": above}).unique()
        assert pairs["below"].is_unique().all()
    assert set(levels[-1].drop_nulls()) <= {"*"}


@patiently
@given(a_hierarchy_and_its_column())
def test_missing_stays_missing_and_nothing_else_goes_missing(case):
    hierarchy, values = case
    for level in range(1, hierarchy.height + 1):
        answer = hierarchy.generalize(values, level)
        assert answer.is_null().to_list() == missing(values).to_list()
        assert answer.name == "x"


@patiently
@given(a_hierarchy_and_its_column())
def test_level_zero_is_the_column_itself(case):
    hierarchy, values = case
    assert hierarchy.generalize(values, 0) is values


@patiently
@given(a_hierarchy_and_its_column())
def test_leaf_shares_are_positive_grow_with_the_level_and_are_one_at_the_top(case):
    hierarchy, values = case
    shares = [hierarchy.leaf_share(values, level).drop_nulls() for level in range(hierarchy.height + 1)]
    for share in shares:
        assert len(share) == len(values) - missing(values).sum()
        assert ((share > 0) & (share <= 1)).all()
    assert (shares[-1] == 1).all()
    for below, above in itertools.pairwise(shares[1:]):
        assert (above >= below * (1 - 1e-9)).all()


@patiently
@given(a_hierarchy_and_its_column())
def test_the_levels_matrix_numbers_the_rows_of_the_table(case):
    hierarchy, values = case
    table, matrix = hierarchy.table(values), hierarchy.levels_matrix(values)
    assert matrix.shape == (table.height, hierarchy.height + 1)
    assert matrix[:, 0].tolist() == list(range(table.height))
    for level in range(1, hierarchy.height + 1):
        labels = table[f"level_{level}"].cast(pl.String).to_list()
        assert len(set(labels)) == len(set(zip(labels, matrix[:, level].tolist(), strict=True)))
        if hierarchy.ordered:
            assert (np.diff(matrix[:, level]) >= 0).all()


@patiently
@given(a_hierarchy_and_its_column())
def test_the_table_and_the_mapping_say_what_generalize_says(case):
    hierarchy, values = case
    table = hierarchy.table(values)
    for level in range(1, hierarchy.height + 1):
        mapping = hierarchy.mapping(values, level)
        assert mapping["label"].to_list() == table[f"level_{level}"].to_list()
        again = hierarchy.generalize(table["leaf"], level)
        assert again.to_list() == mapping["label"].to_list()


@patiently
@given(st.lists(st.integers(-1000, 1000), min_size=1), st.integers(1, 50), st.integers(-20, 20))
def test_an_interval_label_contains_its_value(values, width, origin):
    for closed in ("left", "right"):
        hierarchy = Hierarchy.intervals([width], origin=origin, closed=closed)
        for value, label in zip(values, hierarchy.generalize(pl.Series(values), 1), strict=True):
            low, high = map(int, label[1:-1].split(", "))
            assert low <= value < high if closed == "left" else low < value <= high
            assert (low - origin) % width == 0


@patiently
@given(st.integers(-10_000, 10_000), st.sampled_from([0.1, 0.2, 0.25, 0.01, 0.7]))
def test_a_value_on_an_edge_is_never_put_beside_it_by_rounding(step, width):
    edge = float(f"{step * width:.10g}")
    label = Hierarchy.intervals([width]).generalize(pl.Series([edge]), 1).item()
    assert float(label[1:].split(",")[0]) == edge


def test_a_tree_of_uneven_depth_repeats_the_outermost_group():
    table = EVERY_KIND["tree"].table()
    assert table.rows() == [
        ("SE", "North", "Europe", "*"),
        ("NO", "North", "Europe", "*"),
        ("IT", "South", "Europe", "*"),
        ("JP", "Asia", "Asia", "*"),
        ("CN", "Asia", "Asia", "*"),
    ]
    assert EVERY_KIND["tree"].labels(1) == ["North", "South", "Asia"]
    assert EVERY_KIND["tree"].labels(3) == ["*"]


def test_a_leaf_outside_any_group_stands_for_itself():
    hierarchy = Hierarchy.from_tree([{"North": ["SE"]}, "IT"])
    assert hierarchy.table().rows() == [("SE", "North", "*"), ("IT", "IT", "*")]


def test_a_list_of_leaves_has_only_the_top_above_it():
    assert Hierarchy.from_tree(["a", "b"]).table().rows() == [("a", "*"), ("b", "*")]


def test_a_top_of_one_label_is_not_topped_again():
    assert Hierarchy.from_table(pl.DataFrame({"a": ["x", "y"], "b": ["Any", "Any"]})).height == 1
    assert Hierarchy.from_table(pl.DataFrame({"a": ["x"]})).height == 1


@pytest.mark.parametrize(
    "values",
    [
        pl.Series([1, 2, None], dtype=pl.UInt8),
        pl.Series([1.0, 2.0, None]),
        pl.Series([1.0, 2.0, math.nan]),
        pl.Series(["1", "2", None]),
        pl.Series([Decimal("1.00"), Decimal("2.00"), None]),
        pl.Series(["1", "2", None], dtype=pl.Categorical),
        pl.Series(["1", "2", None], dtype=pl.Enum(["2", "1", "7"])),
    ],
)
def test_values_match_leaves_by_their_canonical_text_whatever_their_type(values):
    hierarchy = Hierarchy.from_table(pl.DataFrame({"leaf": ["2", "1"], "parity": ["even", "odd"]}))
    assert hierarchy.generalize(values, 1).to_list() == ["odd", "even", None]
    assert hierarchy.leaf_share(values, 1).to_list() == [0.5, 0.5, None]
    assert hierarchy.table(values).rows()[0][1] == "even"


def test_dates_and_booleans_match_by_their_text():
    days = Hierarchy.from_table(
        pl.DataFrame({"leaf": ["2024-01-01", "2024-07-14"], "group": ["ny", "other"]})
    )
    assert days.generalize(pl.Series([date(2024, 1, 1)]), 1).to_list() == ["ny"]
    assert days.generalize(pl.Series([datetime(2024, 7, 14)]), 1).to_list() == ["other"]
    assert Hierarchy.from_tree({"yes": [True], "no": [False]}).generalize(
        pl.Series([False]), 1
    ).to_list() == ["no"]


def test_categories_stay_categories():
    values = pl.Series(["SE", "JP"], dtype=pl.Categorical)
    assert EVERY_KIND["tree"].generalize(values, 2).dtype == pl.Enum(["Europe", "Asia"])


def test_interval_labels_are_ordered_categories():
    values = pl.Series([99, 3, 12, 3, -1])
    answer = EVERY_KIND["intervals"].generalize(values, 1)
    assert answer.dtype == pl.Enum(["<0", "[0, 5)", "[10, 15)", ">=90"])
    assert answer.sort().to_list() == ["<0", "[0, 5)", "[0, 5)", "[10, 15)", ">=90"]
    assert EVERY_KIND["breaks"].generalize(values, 2).dtype == pl.Enum(["<18", "[18, 65)", ">=65"])


def test_intervals_end_at_the_bounds_when_these_are_off_the_grid():
    age = Hierarchy.intervals([5, 20], lower=17, upper=90)
    assert age.table(pl.Series([16, 17, 19, 89, 90])).rows() == [
        (16, "<17", "<17", "*"),
        (17, "[17, 20)", "[17, 20)", "*"),
        (19, "[17, 20)", "[17, 20)", "*"),
        (89, "[85, 90)", "[80, 90)", "*"),
        (90, ">=90", ">=90", "*"),
    ]


def test_right_closed_bounds_and_breaks_keep_their_boundary_values():
    age = Hierarchy.intervals([10], lower=0, upper=20, closed="right")
    assert age.generalize(pl.Series([0, 1, 10, 20, 21]), 1).to_list() == [
        "<=0", "(0, 10]", "(0, 10]", "(10, 20]", ">20",
    ]  # fmt: skip
    income = Hierarchy.breaks([[0, 10.5]], closed="right")
    assert income.generalize(pl.Series([0.0, 10.5, 10.6]), 1).to_list() == ["<=0", "(0, 10.5]", ">10.5"]


def test_single_precision_numbers_fall_where_their_digits_say():
    values = pl.Series([0.7, 0.3, 16777215.0], dtype=pl.Float32)
    assert Hierarchy.breaks([[0.3, 0.7]]).generalize(values, 1).to_list() == [">=0.7", "[0.3, 0.7)", ">=0.7"]


def test_parameters_from_numpy_are_kept_as_plain_numbers():
    hierarchy = Hierarchy.intervals(np.array([5.0, 10.0]), lower=np.float64(0.5))
    assert json.loads(json.dumps(hierarchy.to_dict())) == {
        "kind": "intervals", "widths": [5, 10], "origin": 0, "lower": 0.5, "closed": "left",
    }  # fmt: skip
    assert json.dumps(Hierarchy.prefixes(np.array([3, 1])).to_dict())


def test_large_whole_numbers_stay_exact():
    value = 2**60 + 1
    label = Hierarchy.intervals([2]).generalize(pl.Series([value]), 1).item()
    assert label == f"[{2**60}, {2**60 + 2})"


def test_interval_shares_are_widths_over_the_range():
    age = Hierarchy.intervals([5, 10], lower=0, upper=20)
    assert age.leaf_share(pl.Series([3, 12, None]), 2).to_list() == [0.5, 0.5, None]
    assert age.leaf_share(pl.Series([3, 12]), 0).to_list() == [0.05, 0.05]
    cut = Hierarchy.breaks([[10, 20]])
    assert cut.leaf_share(pl.Series([0, 15, 29]), 1).to_list() == [10 / 30] * 3


def test_prefix_shares_count_the_codes_seen():
    codes = pl.Series(["101", "102", "201", "101"])
    assert Hierarchy.prefixes([1]).leaf_share(codes, 1).to_list() == pytest.approx(
        [2 / 3, 2 / 3, 1 / 3, 2 / 3]
    )


def test_date_shares_count_days():
    days = pl.Series([date(2023, 1, 1), date(2023, 12, 31)])
    assert Hierarchy.dates(["month"]).leaf_share(days, 1).to_list() == [31 / 365, 31 / 365]


def test_prefixes_mask_or_cut_and_leave_short_codes_alone():
    codes = pl.Series(["10115", "80", "", None])
    assert Hierarchy.prefixes([2]).generalize(codes, 1).to_list() == ["10***", "80", "", None]
    assert Hierarchy.prefixes([2], mask="").generalize(codes, 1).to_list() == ["10", "80", "", None]
    assert Hierarchy.prefixes([2], mask="$").generalize(pl.Series(["äöü"]), 1).to_list() == ["äö$"]
    assert Hierarchy.prefixes([2]).generalize(pl.Series([10115]), 1).to_list() == ["10***"]


def test_dates_before_1970_and_datetimes_with_a_time_zone_keep_their_calendar_day():
    hierarchy = Hierarchy.dates()
    assert hierarchy.table(pl.Series([date(1969, 12, 31)])).row(0)[1:] == (
        "1969-12-31", "1969-12", "1969-Q4", "1969", "1960s", "*",
    )  # fmt: skip
    late = pl.Series([datetime(2023, 12, 31, 23, 30)]).dt.replace_time_zone("UTC")
    assert hierarchy.generalize(late, 4).to_list() == ["2023"]
    assert hierarchy.generalize(late.dt.convert_time_zone("Europe/Berlin"), 4).to_list() == ["2024"]


def test_pandas_gets_pandas_back_with_name_and_index():
    values = pd.Series([3, None, 12], index=[7, 8, 9], name="age")
    answer = Hierarchy.intervals([5]).generalize(values, 1)
    assert isinstance(answer, pd.Series)
    assert (list(answer.index), answer.name) == ([7, 8, 9], "age")
    assert answer.isna().tolist() == [False, True, False]
    assert answer.cat.ordered
    table = EVERY_KIND["tree"].table(pd.Series(["SE", "JP"], dtype="category"))
    assert isinstance(table, pd.DataFrame)


def test_pyarrow_gets_pyarrow_back():
    values = pa.chunked_array([["SE", None], ["IT"]])
    answer = EVERY_KIND["tree"].generalize(values, 1)
    assert isinstance(answer, pa.ChunkedArray)
    assert answer.to_pylist() == ["North", None, "South"]
    assert isinstance(EVERY_KIND["tree"].mapping(values, 1), pa.Table)
    assert EVERY_KIND["tree"].leaf_share(values, 1).to_pylist() == [0.4, None, 0.2]


@pytest.mark.parametrize("kind", sorted(EVERY_KIND))
@pytest.mark.parametrize("values", [pl.Series([]), pl.Series([None, None]), pl.Series([], dtype=pl.String)])
def test_a_column_without_values_is_no_problem(kind, values):
    hierarchy = EVERY_KIND[kind]
    for level in range(hierarchy.height + 1):
        assert hierarchy.generalize(values, level).null_count() == len(values)
        assert hierarchy.leaf_share(values, level).null_count() == len(values)
        assert hierarchy.mapping(values, level).height == 0
    assert hierarchy.levels_matrix(values).shape == (0, hierarchy.height + 1)
    hierarchy.check(values, column="x")


@pytest.mark.parametrize("kind", sorted(EVERY_KIND))
def test_every_kind_survives_json(kind):
    hierarchy = EVERY_KIND[kind]
    again = Hierarchy.from_dict(json.loads(json.dumps(hierarchy.to_dict())))
    assert again == hierarchy
    assert hash(again) == hash(hierarchy)
    assert None not in hierarchy.to_dict().values()


@pytest.mark.parametrize("kind", sorted(EVERY_KIND))
@pytest.mark.parametrize("level", [-1, 99, True, 1.5, "1"])
def test_a_level_out_of_range_is_refused_with_the_range(kind, level):
    hierarchy = EVERY_KIND[kind]
    with pytest.raises(ParameterError, match=f"from 0 to {hierarchy.height}"):
        hierarchy.generalize(pl.Series([None]), level)


def test_a_numpy_integer_is_a_level():
    assert EVERY_KIND["tree"].generalize(pl.Series(["SE"]), np.int64(2)).to_list() == ["Europe"]


def test_uncovered_values_are_counted_and_placed_but_not_shown():
    values = pl.Series("country", ["SE", "secret", None, "IT", "secret", "hidden"])
    for ask in (lambda: EVERY_KIND["tree"].check(values), lambda: EVERY_KIND["tree"].generalize(values, 1)):
        with pytest.raises(ColumnError) as caught:
            ask()
        message = str(caught.value)
        assert (
            "'country' does not cover 3 of 6 records (2 distinct values), first at positions 1, 4, 5"
            in message
        )
        assert "secret" not in message
    with pytest.raises(ColumnError, match=r"'place' .*'secret', 'hidden'"):
        EVERY_KIND["tree"].check(values, column="place", show_values=True)


def test_infinite_numbers_are_not_covered():
    with pytest.raises(ColumnError, match=r"1 of 2 distinct values"):
        Hierarchy.intervals([5]).generalize(pl.Series("x", [1.0, math.inf]), 1)
    with pytest.raises(ColumnError, match=r"1 of 1 distinct values"):
        EVERY_KIND["breaks"].check(pl.Series([-math.inf]), column="x")
    with pytest.raises(ColumnError):
        Hierarchy.intervals([1]).check(pl.Series([1e300]), column="x")
    assert Hierarchy.intervals([1], upper=9).generalize(pl.Series([1e300]), 1).to_list() == [">=9"]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("intervals", pl.Series("x", ["a"])),
        ("breaks", pl.Series("x", [date(2020, 1, 1)])),
        ("dates", pl.Series("x", ["2020-01-01"])),
        ("tree", pl.Series("x", [["a"]])),
        ("prefixes", pl.Series("x", [{"a": 1}])),
    ],
)
def test_a_column_of_the_wrong_type_is_refused_by_name(kind, values):
    with pytest.raises(ColumnError, match="Column 'x' is of type"):
        EVERY_KIND[kind].generalize(values, 1)


def test_what_is_no_series_is_refused():
    with pytest.raises(ParameterError, match="not list"):
        EVERY_KIND["tree"].generalize(["SE"], 1)
    with pytest.raises(ColumnError, match="'mixed'"):
        EVERY_KIND["tree"].generalize(pd.Series(["SE", 1], dtype=object, name="mixed"), 1)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Hierarchy.from_tree({"A": {"x": [1]}, "B": {"x": [2]}}), "1 labels of level 1"),
        (lambda: Hierarchy.from_table(pl.DataFrame({"a": [1, 1], "b": ["x", "y"]})), "1 leaves"),
        (lambda: Hierarchy.from_table(pl.DataFrame({"a": []})), "empty"),
        (lambda: Hierarchy.from_table(pl.DataFrame({"a": [1, None]})), "1 missing"),
        (lambda: Hierarchy.from_table(pl.DataFrame({"a": [[1]]})), "List"),
        (lambda: Hierarchy.from_table([1]), "not list"),
        (lambda: Hierarchy.from_tree({}), "no leaves"),
        (lambda: Hierarchy.from_tree("abc"), "nested"),
        (lambda: Hierarchy.from_tree([None]), "label must be"),
        (lambda: Hierarchy.intervals([]), "at least one"),
        (lambda: Hierarchy.intervals([0]), "above 0"),
        (lambda: Hierarchy.intervals([5, 12]), "not a multiple"),
        (lambda: Hierarchy.intervals([5, 5]), "not a multiple"),
        (lambda: Hierarchy.intervals([5], lower=3, upper=3), "below upper"),
        (lambda: Hierarchy.intervals([5], origin=math.inf), "origin"),
        (lambda: Hierarchy.intervals([5], origin=1e308), "too far away"),
        (lambda: Hierarchy.intervals([5], lower=10**400), "finite"),
        (lambda: Hierarchy.intervals([5], closed="both"), "closed"),
        (lambda: Hierarchy.breaks([[3, 1]]), "Sort"),
        (lambda: Hierarchy.breaks([[1, 2], [3]]), "do not nest"),
        (lambda: Hierarchy.breaks([1, 2]), "breaks of a level must be a list"),
        (lambda: Hierarchy.breaks([[]]), "at least one"),
        (lambda: Hierarchy.breaks([[1]], labels=[["a"]]), "2 different texts"),
        (lambda: Hierarchy.breaks([[1]], labels=[]), "one list a level"),
        (lambda: Hierarchy.intervals(5), "widths must be a list, not int"),
        (lambda: Hierarchy.prefixes(3), "keep must be a list, not int"),
        (lambda: Hierarchy.dates("year"), "levels must be a list, not str"),
        (lambda: Hierarchy.from_dict({"kind": ["table"]}), "There is no hierarchy kind"),
        (lambda: Hierarchy.prefixes([2, 3]), "smaller"),
        (lambda: Hierarchy.prefixes([0]), "at least 1"),
        (lambda: Hierarchy.prefixes([1], mask="**"), "one character"),
        (lambda: Hierarchy.dates(["week"]), "Weeks"),
        (lambda: Hierarchy.dates(["year", "month"]), "fine to coarse"),
        (lambda: Hierarchy.from_dict({"kind": "interval"}), "'intervals'"),
        (lambda: Hierarchy.from_dict({"kind": "prefixes", "width": 3}), "does not fit"),
        (lambda: Hierarchy.from_dict({"kind": "table", "rows": [["a"], ["b", "c"]]}), "one length"),
        (lambda: EVERY_KIND["dates"].table(), "Pass values"),
        (lambda: EVERY_KIND["prefixes"].labels(1), "no fixed list"),
    ],
)
def test_nonsense_is_refused_with_the_way_out(build, message):
    with pytest.raises(ParameterError, match=message):
        build()


def test_identical_duplicate_rows_are_one_leaf():
    assert Hierarchy.from_table(pl.DataFrame({"a": [1, 1, 2], "b": ["x", "x", "y"]})).labels(0) == ["1", "2"]


@pytest.mark.parametrize("separator", [";", ",", "\t", "|"])
def test_a_csv_file_is_read_back_as_it_was_written(tmp_path, separator):
    path = tmp_path / "region.csv"
    EVERY_KIND["tree"].to_csv(path, separator=separator)
    assert Hierarchy.from_csv(path) == EVERY_KIND["tree"]
    assert os.listdir(tmp_path) == ["region.csv"]


def test_separators_inside_labels_survive(tmp_path):
    hierarchy = Hierarchy.from_tree({"[0, 5)": ["1;2", 'say "x"'], "[5, 10)": ["a,b"]})
    hierarchy.to_csv(tmp_path / "h.csv")
    assert Hierarchy.from_csv(tmp_path / "h.csv") == hierarchy


def test_a_rule_is_written_for_the_values_at_hand(tmp_path):
    EVERY_KIND["breaks"].to_csv(tmp_path / "age.csv", pl.Series([70.0, 20.0]))
    assert (tmp_path / "age.csv").read_text() == "20;[18, 30);[18, 65);>=18;*\n70;>=65;>=65;>=18;*\n"


def test_header_encoding_and_byte_order_mark_are_handled(tmp_path):
    path = tmp_path / "h.csv"
    path.write_bytes("\ufeffland;kontinent\nÖsterreich;Europa\n\nJapan;Asien\n".encode())
    assert Hierarchy.from_csv(path, header=True).labels(0) == ["Österreich", "Japan"]
    path.write_bytes("Österreich;Europa\n".encode("latin-1"))
    assert Hierarchy.from_csv(path, encoding="latin-1").labels(0) == ["Österreich"]
    with pytest.raises(InputError, match="encoding="):
        Hierarchy.from_csv(path)


@pytest.mark.parametrize(
    ("text", "message"), [("", "no rows"), ("a;b;*\nc;*\nd;b;*\n", "first on line 2"), (None, "Cannot read")]
)
def test_a_broken_file_is_refused(tmp_path, text, message):
    path = tmp_path / "h.csv"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=message):
        Hierarchy.from_csv(path)


def test_nothing_is_left_behind_when_writing_fails(tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        EVERY_KIND["tree"].to_csv(tmp_path / "nowhere" / "h.csv")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", sorted(EVERY_KIND))
def test_a_hierarchy_cannot_be_changed_and_prints_no_leaves(kind):
    hierarchy = EVERY_KIND[kind]
    with pytest.raises(AttributeError):
        hierarchy.kind = "other"
    assert f"height {hierarchy.height}" in repr(hierarchy)
    assert "SE" not in repr(hierarchy)


def test_values_asked_about_once_are_not_called_records():
    hierarchy = Hierarchy.from_tree({"Europe": ["AT", "FR"]})
    with pytest.raises(ColumnError, match=r"does not cover 2 of 3 distinct values\. Add"):
        hierarchy.generalize(pl.Series("country", ["AT", "XX", "YY"]), 1)
