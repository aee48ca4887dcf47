import duckdb
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.report.excerpts import class_excerpt, variable_excerpt

from .sample import SECRET, classes

KEYS = ("age", "sex")


def as_engine(table, engine):
    if engine == "duckdb":
        return duckdb.from_arrow(table.to_arrow())
    return {"polars": table, "lazy": table.lazy(), "pandas": table.to_pandas(), "pyarrow": table.to_arrow()}[
        engine
    ]


@pytest.mark.parametrize("show_values", [False, True])
@pytest.mark.parametrize("engine", ["polars", "lazy", "pandas", "pyarrow", "duckdb"])
def test_every_engine_gives_the_same_excerpt(engine, show_values):
    table = classes(KEYS)
    expected = class_excerpt(table, private=KEYS, keys=KEYS, show_values=show_values)
    found = class_excerpt(as_engine(table, engine), private=KEYS, keys=KEYS, show_values=show_values)
    assert found == expected


def test_the_riskiest_classes_come_first():
    table = pl.DataFrame(
        {"age": [1, 2, 3], "class_size": [5, 9, 5], "l": [2, 1, 2], "best_guess": [0.6, 1.0, 0.9]}
    )
    rows = class_excerpt(table, private=["age"], keys=["age"], show_values=True).rows
    assert [row[1] for row in rows] == ["2", "3", "1"]


def test_only_a_few_rows_are_taken_and_the_rest_is_counted():
    table = pl.DataFrame({"age": range(1000), "class_size": range(1, 1001)})
    excerpt = class_excerpt(table, private=["age"], keys=["age"], show_values=True, limit=10)
    assert (len(excerpt.rows), excerpt.total, excerpt.left_out) == (10, 1000, 990)


def test_text_that_is_not_a_name_never_shows():
    table = pl.DataFrame({"age": [1], "class_size": [1], "commonest": [SECRET], "income": [7777]})
    excerpt = class_excerpt(table, private=["age", "income"], keys=["age"], show_values=False)
    assert "commonest" not in " ".join(excerpt.headings).lower()
    assert excerpt.rows == (("1", "1"),)


def test_key_values_are_written_as_they_are():
    table = pl.DataFrame({"year": [1962], "class_size": [1962]})
    [row] = class_excerpt(table, private=["year"], keys=["year"], show_values=True).rows
    assert row == ("1", "1962", "1,962")


def test_missing_keys_and_figures_are_kept_and_marked():
    table = pl.DataFrame({"age": [None, 3], "class_size": [1, 2], "t": [None, 0.5]})
    rows = class_excerpt(table, private=["age"], keys=["age"], show_values=True).rows
    assert rows == (("1", "3", "2", "0.5"), ("2", "–", "1", "–"))


def test_classes_without_figures_show_nothing():
    assert (
        class_excerpt(pl.DataFrame({"age": [1]}), private=["age"], keys=["age"], show_values=True).rows == ()
    )


def test_a_table_by_column_keeps_its_order_and_names():
    table = pl.DataFrame(
        {"sensitive": ["b", "a"], "t": [0.5, 0.1], "distance": ["equal", "ordered"], "example": SECRET}
    )
    excerpt = variable_excerpt(table)
    assert excerpt.rows == (("b", "0.5", "equal"), ("a", "0.1", "ordered"))


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(10**6, 10**7), st.integers(1, 9)),
        min_size=1,
        max_size=30,
        unique_by=lambda p: p[0],
    )
)
def test_masked_excerpts_never_hold_a_key_value_and_count_every_class(pairs):
    ages, sizes = zip(*pairs, strict=True)
    table = pl.DataFrame({"age": ages, "class_size": sizes})
    excerpt = class_excerpt(table, private=["age"], keys=["age"], show_values=False)
    cells = {cell for row in excerpt.rows for cell in row}
    assert not cells & {str(age) for age in ages}
    assert sum(int(row[0]) for row in excerpt.rows) == len(pairs)


def test_numbers_too_small_to_matter_are_not_written_with_powers_of_ten():
    tiny = pl.DataFrame({"column": ["a", "b", "c"], "JSD": [5.9e-05, 0.25, 0.0]})
    assert [row[1] for row in variable_excerpt(tiny, limit=5).rows] == ["under 0.0001", "0.25", "0"]
