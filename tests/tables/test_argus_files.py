"""Files of tau-ARGUS go out and come back the same."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Hierarchy
from discreet.core.errors import InputError, ParameterError
from discreet.tables import Table, Threshold, argus, equations, primary

LEAVES = st.lists(st.text("abcxyz01", min_size=1, max_size=4), min_size=1, max_size=12, unique=True)


@settings(max_examples=examples(40), deadline=None)
@given(leaves=LEAVES, split=st.integers(1, 5), deeper=st.booleans())
def test_any_hierarchy_survives_the_hrc_format(tmp_path_factory, leaves, split, deeper):
    groups = {f"G{i}": leaves[i::split] for i in range(split) if leaves[i::split]}
    tree = {"top": groups} if deeper and len(groups) > 1 else groups
    tree = {**tree, "other": ["#1", "#2"]}
    hierarchy = Hierarchy.from_tree(tree)
    path = argus.write_hierarchy(hierarchy, tmp_path_factory.mktemp("hrc") / "h.hrc", lead="@@")
    assert argus.read_hierarchy(path, lead="@@") == hierarchy


def test_branches_of_different_depth_are_read(tmp_path):
    file = tmp_path / "place.hrc"
    file.write_text("Nr\n@01\n@02\n@@021\n@@022\nZd\n", encoding="utf-8-sig")
    assert argus.read_hierarchy(file).table().rows() == [
        ("01", "Nr", "Nr", "*"),
        ("021", "02", "Nr", "*"),
        ("022", "02", "Nr", "*"),
        ("Zd", "Zd", "Zd", "*"),
    ]


def test_a_dimension_is_written_one_hierarchy_at_a_time(tmp_path):
    data = pl.DataFrame({"r": ["a", "b", "c"], "g": ["X", "X", "Y"], "h": ["P", "Q", "P"]})
    dimension = Table.from_microdata(data, "r", hierarchies={"r": ["g", "h"]}).hierarchy["r"]
    assert argus.write_hierarchy(dimension, tmp_path / "g.hrc").read_text() == "X\n@a\n@b\nY\n@c\n"
    assert argus.write_hierarchy(dimension, tmp_path / "h.hrc", chain=1).read_text() == "P\n@a\n@c\nQ\n@b\n"
    with pytest.raises(ParameterError, match="chain"):
        argus.write_hierarchy(dimension, tmp_path / "i.hrc", chain=2)


@pytest.mark.parametrize("text", ["", "a\n@@b\n", "@\n", "a\na\n"])
def test_a_broken_hierarchy_file_is_refused(tmp_path, text):
    file = tmp_path / "h.hrc"
    file.write_text(text)
    with pytest.raises(InputError):
        argus.read_hierarchy(file)


def test_a_hierarchy_file_serves_a_table(tmp_path):
    file = tmp_path / "place.hrc"
    file.write_text("X\n@a\n@b\nY\n@c\n")
    table = Table.from_microdata(pl.DataFrame({"r": ["a", "b", "c"]}), "r", hierarchies={"r": file})
    assert table.cells["r"].to_list() == ["Total", "X", "a", "b", "Y", "c"]


def test_code_lists_go_out_and_come_back(tmp_path):
    labels = {"1": "Groningen", "2": "Friesland, all of it", "3": ""}
    assert argus.read_codelist(argus.write_codelist(labels, tmp_path / "a.cdl")) == labels
    (tmp_path / "b.cdl").write_text("no comma\n")
    with pytest.raises(InputError, match="Line 1"):
        argus.read_codelist(tmp_path / "b.cdl")


def sample() -> Table:
    rng = np.random.default_rng(1)
    region = rng.integers(0, 4, 40)
    data = pl.DataFrame(
        {
            "region": [f"r{i}" for i in region],
            "county": [f"c{i // 2}" for i in region],
            "age": rng.integers(0, 3, 40),
        }
    )
    return Table.from_microdata(data, "region*age", hierarchies={"region": "county"})


def test_a_priori_files_go_out_come_back_and_are_applied(tmp_path):
    (tmp_path / "a.hst").write_text("r0,1,u\nr1,2,s\nTotal,0,p\nr0,2,c,5\nr2,1,pl,10,5\n")
    known = argus.read_apriori(tmp_path / "a.hst", ["region", "age"])
    again = argus.read_apriori(
        argus.write_apriori(known, tmp_path / "b.hst", separator=";"), ["region", "age"], separator=";"
    )
    assert again.equals(known)
    table = primary(sample(), Threshold(100))
    found = argus.apply_apriori(table, known).cells
    assert found.filter(region="r0", age="1")["rule"].item() == "a priori"
    assert not found.filter(region="r1", age="2")["primary"].item()
    assert found.filter("forced").select("region", "age").rows() == [("Total", "0")]
    assert found.filter(region="r0", age="2")["cost"].item() == 5
    assert found.filter(region="r2", age="1")["protection"].item() == 10
    (tmp_path / "c.hst").write_text("r0,u\n")
    with pytest.raises(InputError, match="Line 1"):
        argus.read_apriori(tmp_path / "c.hst", ["region", "age"])


def test_jj_tables_go_out_come_back_and_add_up(tmp_path):
    table = primary(sample(), Threshold(3))
    written = argus.jj_of(table)
    again = argus.read_jj(argus.write_jj(table, tmp_path / "t.jj"))
    assert again.cells.equals(written.cells)
    assert (again.equations != equations(table)).nnz == 0
    assert again.check() == 0
    assert (again.cells["status"] == "u").sum() == table.cells["primary"].sum()
    lines = (tmp_path / "t.jj").read_text().splitlines()
    assert lines[:2] == ["0", str(table.cells.height)]


@pytest.mark.parametrize(
    "text",
    ["", "0\n1\n0 1 1 s 0\n0\n", "0\n1\n0 1 1 q 0 2 0 0 0\n0\n", "0\n1\n0 1 1 s 0 2 0 0 0\n1\n0 1 : 7 (1)\n"],
)
def test_a_broken_jj_file_is_refused(tmp_path, text):
    (tmp_path / "t.jj").write_text(text)
    with pytest.raises(InputError):
        argus.read_jj(tmp_path / "t.jj")
