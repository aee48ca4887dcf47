"""Tables from records and from cells: margins, hierarchies, linked tables, zeros, bad input."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Hierarchy, Microdata
from discreet.core.errors import ColumnError, DiscreetWarning, InputError, ParameterError
from discreet.tables import Table, equations


def people(rows: int = 200, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    region = rng.integers(0, 6, rows)
    return pl.DataFrame(
        {
            "region": pl.Series(region).replace_strict(dict(enumerate("abcdef"))),
            "county": pl.Series(region // 2).replace_strict({0: "X", 1: "Y", 2: "Z"}),
            "kind": pl.Series(region % 2).replace_strict({0: "even", 1: "odd"}),
            "age": rng.integers(0, 4, rows),
            "sex": pl.Series(rng.integers(0, 2, rows)).replace_strict({0: "f", 1: "m"}),
            "income": rng.integers(0, 100, rows),
            "w": rng.integers(1, 5, rows) / 2,
        }
    )


def brute(table: Table, rows: pl.DataFrame, value: pl.Expr) -> list[float]:
    """Sum the records of every cell the slow way."""
    found = []
    for key in table.keys:
        kept = rows
        for name, code in zip(table.dimensions, key, strict=True):
            dimension = table.hierarchy[name]
            leaves = [dimension.leaves[leaf] for leaf in dimension.leaf_sets[code]]
            kept = kept.filter(pl.col(name).cast(pl.String).is_in(leaves))
        found.append(kept.select(value).item() or 0)
    return found


def assert_adds_up(table: Table) -> None:
    for column in ("count", *table.measures):
        sums = table.x.T @ table.inner[column].to_numpy()
        np.testing.assert_allclose(sums, table.cells[column].to_numpy(), rtol=1e-12)
    assert (np.asarray(table.x.sum(axis=0)).ravel() == table.cells["inner_cells"].to_numpy()).all()
    assert not np.any(equations(table) @ table.cells["count"].to_numpy())


FORMULAS = (
    "region*age*sex",
    "region*age + region*sex",
    "region:age + sex",
    "(region + sex)*age - 1",
    "age - 1",
)


@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 10**6), rows=st.integers(1, 60), formula=st.sampled_from(FORMULAS))
def test_every_cell_is_the_sum_of_its_records_and_of_its_inner_cells(seed, rows, formula):
    data = people(rows, seed)
    hierarchies = {"region": ["county", "kind"], "age": {"young": [0, 1], "old": [2, 3]}}
    named = {name: way for name, way in hierarchies.items() if name in formula}
    table = Table.from_microdata(data, formula, measure="income", hierarchies=named)
    assert_adds_up(table)
    assert table.cells["count"].to_list() == brute(table, data, pl.len())
    assert table.cells["income"].to_list() == brute(table, data, pl.col("income").sum())
    assert not table.cells.select(table.dimensions).is_duplicated().any()


def test_weights_weigh_sums_and_counts_and_leave_the_number_of_records():
    data = people()
    table = Table.from_microdata(data, "region*sex", measure=["income", "age"], weight="w")
    at = table.find(region="a")
    mine = data.filter(pl.col("region") == "a")
    assert table.cells["count"][at] == mine.height
    assert table.cells["weighted"][at] == pytest.approx(mine["w"].sum())
    assert table.cells["income"][at] == pytest.approx((mine["w"] * mine["income"]).sum())
    assert (table.value, table.measures) == ("income", ("income", "age"))
    assert Table.from_microdata(data, "region", weight="w").value == "weighted"


def test_the_roles_of_the_data_are_used_unless_others_are_named():
    data = Microdata(people(), weight="w", contributor="county")
    table = Table.from_microdata(data, "sex")
    assert table.cells["contributors"].to_list() == [3, 3, 3]
    assert "weighted" in table.cells.columns


def test_a_hierarchy_says_the_same_as_a_tree_as_columns_and_as_a_code_list():
    data = people()
    tree = {"X": ["a", "b"], "Y": ["c", "d"], "Z": ["e", "f"]}
    pairs = pl.DataFrame({"child": list("abcdef"), "parent": ["X", "X", "Y", "Y", "Z", "Z"]})
    tables = [
        Table.from_microdata(data, "region*sex", hierarchies={"region": given})
        for given in ("county", ("county",), tree, Hierarchy.from_tree(tree), pairs, pairs.to_pandas())
    ]
    assert all(table.cells.equals(tables[0].cells) for table in tables)
    assert tables[0].hierarchy["region"].children() == {
        "Total": ("X", "Y", "Z"),
        "X": ("a", "b"),
        "Y": ("c", "d"),
        "Z": ("e", "f"),
    }


def test_rules_make_hierarchies_too():
    table = Table.from_microdata(
        people(), "age", hierarchies={"age": Hierarchy.breaks([[2]], labels=[["young", "old"]])}
    )
    assert table.hierarchy["age"].codes == ("Total", "young", "0", "1", "old", "2", "3")


def test_a_shallow_branch_stands_once():
    tree = {"North": {"N1": ["a", "b"], "N2": ["c", "d"]}, "South": ["e", "f"]}
    table = Table.from_microdata(people(), "region", hierarchies={"region": tree})
    assert table.cells.height == 1 + 2 + 2 + 6
    assert_adds_up(table)


def test_several_dimensions_and_one_with_overlapping_hierarchies_give_the_same_cells():
    data = people()
    linked = Table.from_microdata(data, "(region + county + kind)*sex")
    overlapping = Table.from_microdata(data, "region*sex", hierarchies={"region": ["county", "kind"]})
    assert linked.cells.height == overlapping.cells.height
    assert sorted(linked.cells["count"]) == sorted(overlapping.cells["count"])
    assert_adds_up(linked)


def test_a_shared_margin_occurs_once_and_belongs_to_both_tables():
    table = Table.from_microdata(people(), "region*age + region*sex")
    total = table.find()
    assert table.cells.filter(pl.col("age") == "Total", pl.col("sex") == "Total").height == 7
    assert table.in_table("region*age")[total]
    assert table.in_table("region*sex")[total]
    assert set(table.cells["table"].unique()) == {"region*age", "region*sex"}


def test_margins_can_be_left_out():
    table = Table.from_microdata(people(), "region*sex", margins=False)
    assert (table.cells["inner_cells"] == 1).all()
    assert equations(table).shape[0] == 0


def test_zeros_that_could_occur_are_added_and_impossible_ones_are_not():
    data = pl.DataFrame({"a": ["x", "y"], "b": ["p", "q"]})
    assert Table.from_microdata(data, "a*b").inner.height == 2
    table = Table.from_microdata(data, "a*b", zeros="all")
    assert table.cells["count"].to_list() == [2, 1, 1, 1, 1, 0, 1, 0, 1]
    table = Table.from_microdata(data, "a*b", zeros="all", structural=pl.DataFrame({"a": ["x"], "b": ["q"]}))
    assert (table.inner.height, table.cells.height) == (3, 8)
    table = Table.from_microdata(data, "a", zeros="all", hierarchies={"a": {"G": ["x", "y", "z"]}})
    assert table.cells.select("a", "count").rows() == [("Total", 2), ("x", 1), ("y", 1), ("z", 0)]
    with pytest.raises(ParameterError, match="do occur"):
        Table.from_microdata(data, "a*b", zeros="all", structural=pl.DataFrame({"a": ["x"]}))


def test_missing_codes_are_a_category_are_dropped_or_are_refused():
    data = pl.DataFrame({"a": ["x", None, "x"], "v": [1, 2, None]})
    table = Table.from_microdata(data, "a", measure="v")
    assert table.cells["count"].to_list() == [3, 2, 1]
    assert table.hierarchy["a"].codes[-1] == "Missing"
    assert len(table.notes) == 2
    assert Table.from_microdata(data, "a", missing="drop").cells["count"].to_list() == [2, 2]
    with pytest.raises(ColumnError, match="missing in 'a'"):
        Table.from_microdata(data, "a", missing="refuse")


def test_numbers_keep_their_order_and_categories_theirs():
    data = pl.DataFrame(
        {"n": [10, 9, 100], "c": pl.Series(["lo", "hi", "mid"], dtype=pl.Enum(["lo", "mid", "hi"]))}
    )
    table = Table.from_microdata(data, "n*c")
    assert table.hierarchy["n"].leaves == ("9", "10", "100")
    assert table.hierarchy["c"].leaves == ("lo", "mid", "hi")


def test_columns_may_have_any_name():
    data = people().rename({"region": "cell", "sex": "key", "income": "d0", "age": "k0", "county": "place"})
    table = Table.from_microdata(data, "cell*key + k0", measure="d0", hierarchies={"cell": "place"})
    assert_adds_up(table)


def test_the_wide_view_and_the_notebook_show_the_table():
    table = Table.from_microdata(people(), "region*sex + age", hierarchies={"region": "county"})
    wide = table.wide(rows="region", columns="sex")
    assert wide.columns == ["region", "Total", "f", "m"]
    assert wide["Total"][0] == 200
    assert wide.height == 10
    assert table.wide(rows=[], columns="age").height == 1
    assert "<table>" in table._repr_html_()
    assert "200" in table._repr_html_()
    assert "6 lowest codes, 10 in all" in repr(table)
    assert json.loads(json.dumps(table.to_dict()))["value"] == "count"
    assert table.codes_of("region")["leaves"][0] == 6


def test_a_file_of_inner_cells_gives_the_same_table_as_its_records():
    data = people()
    counted = data.group_by("region", "county", "sex").agg(n=pl.len(), income=pl.col("income").sum())
    whole = Table.from_microdata(data, "region*sex", measure="income", hierarchies={"region": "county"})
    table = Table.from_cells(
        counted, ["region", "sex"], count="n", measure="income", hierarchies={"region": "county"}
    )
    assert table.cells.equals(whole.cells)


def test_a_file_with_totals_is_taken_as_it_is_and_checked():
    data = people()
    tree = {"region": {"X": ["a", "b"], "Y": ["c", "d"], "Z": ["e", "f"]}}
    whole = Table.from_microdata(data, "region*sex", measure="income", hierarchies=tree)
    published = (
        whole.cells.select("region", "sex", "count", "income")
        .rename({"count": "n"})
        .sample(fraction=1, shuffle=True, seed=1)
    )
    table = Table.from_cells(published, ["region", "sex"], count="n", measure="income", hierarchies=tree)
    assert table.cells.drop("additive").equals(whole.cells)
    assert table.cells["additive"].all()
    torn = published.with_columns(
        pl.when((pl.col("region") == "X") & (pl.col("sex") == "f"))
        .then(pl.col("n") + 5)
        .otherwise("n")
        .alias("n")
    )
    with pytest.warns(DiscreetWarning, match="1 of"):
        table = Table.from_cells(torn, ["region", "sex"], count="n", measure="income", hierarchies=tree)
    assert (~table.cells["additive"]).sum() == 1
    assert "do not equal" in table.notes[0]
    Table.from_cells(torn, ["region", "sex"], count="n", measure="income", hierarchies=tree, tolerance=5)


def test_other_codes_of_totals_are_recognized():
    cells = pl.DataFrame({"a": ["x", "y", "all"], "b": ["p", "p", "p"], "n": [1, 2, 3]})
    table = Table.from_cells(cells, ["a", "b"], count="n", total={"a": "all"})
    assert table.cells.select("a", "b", "count").rows() == [("all", "p", 3), ("x", "p", 1), ("y", "p", 2)]
    assert table.hierarchy["a"].total == "all"


def test_what_cannot_be_built_says_why():
    data = people()
    with pytest.raises(ColumnError, match="Did you mean 'region'"):
        Table.from_microdata(data, "regoin")
    with pytest.raises(ColumnError, match="cannot be summed"):
        Table.from_microdata(data, "region", measure="sex")
    with pytest.raises(ParameterError, match="no dimension"):
        Table.from_microdata(data, "region", hierarchies={"sex": "county"})
    with pytest.raises(ColumnError, match="more than one group"):
        Table.from_microdata(data, "region", hierarchies={"region": "sex"})
    with pytest.raises(ColumnError, match="code of the total"):
        Table.from_microdata(data.with_columns(sex=pl.lit("Total")).vstack(data), "sex")
    with pytest.raises(ParameterError, match="different things"):
        Table.from_microdata(data, "region", hierarchies={"region": {"a": ["a", "b"], "Y": list("cdef")}})
    with pytest.raises(ColumnError, match="both a dimension and a measure"):
        Table.from_microdata(data, "age", measure="age")
    with pytest.raises(ColumnError, match="Rename"):
        Table.from_microdata(data.rename({"age": "count"}), "count")
    with pytest.raises(ParameterError, match="zeros"):
        Table.from_microdata(data, "age", zeros="none")
    with pytest.raises(InputError):
        Table.from_microdata(data.clear(), "age")
    with pytest.raises(ParameterError, match="no such cell"):
        Table.from_microdata(data, "age").find(age="99")
    wide = pl.DataFrame({f"c{i}": range(1000) for i in range(8)})
    with pytest.raises(ParameterError, match="too many to number"):
        Table.from_microdata(wide, "*".join(wide.columns))
    cells = pl.DataFrame({"a": ["x", "x"], "n": [1, 2]})
    with pytest.raises(InputError, match="same cell"):
        Table.from_cells(cells, ["a"], count="n")
    with pytest.raises(InputError, match="no inner cells"):
        Table.from_cells(pl.DataFrame({"a": ["Total"], "n": [1]}), ["a"], count="n")
    with pytest.raises(ColumnError, match="missing in 1 cells"):
        Table.from_cells(
            pl.DataFrame({"a": ["x"], "n": [None]}, schema={"a": pl.String, "n": pl.Int64}), ["a"], count="n"
        )
    odd = pl.DataFrame({"a": ["x", "G"], "n": [1, 1]})
    with pytest.raises(InputError, match="no inner cells below"):
        Table.from_cells(odd, ["a"], count="n", hierarchies={"a": {"G": ["y"], "H": ["x"]}})


def test_errors_name_no_codes():
    data = people().with_columns(region=pl.lit("secret code"))
    with pytest.raises(ColumnError) as refused:
        Table.from_microdata(data, "region", hierarchies={"region": "sex"})
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(("rows", "columns"), list(product([1, 7], [1, 3])))
def test_a_table_of_one_code_is_a_table(rows, columns):
    data = pl.DataFrame({f"c{i}": ["only"] * rows for i in range(columns)})
    table = Table.from_microdata(data, "*".join(data.columns))
    assert table.cells.height == 2**columns
    assert (table.cells["count"] == rows).all()
    assert_adds_up(table)
