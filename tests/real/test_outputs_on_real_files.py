"""Outputs that gave somebody away on real files: extracts, shares of few, and two results on almost the same people."""

from __future__ import annotations

import polars as pl
import pytest

from discreet import read
from discreet.outputs import Session, check


def frame_of(path):
    data = read(path, roles={})
    return data.frame if isinstance(data.frame, pl.DataFrame) else data.frame.collect()


@pytest.fixture(scope="module")
def eusilc(test_data):
    return frame_of(test_data / "laeken_eusilc.csv.gz")


@pytest.mark.parametrize(
    "name",
    [
        "SD2011.csv",
        "testdata.csv",
        "CASCrefmicrodata.csv",
        "EIA.csv",
        "Tarragona.csv",
        "sdctable_microdata2.csv",
    ],
)
@pytest.mark.parametrize("rows", [40, 200])
def test_an_extract_of_a_real_file_fails_as_records(test_data, tmp_path, name, rows):
    people = frame_of(test_data / name)
    people.sample(min(rows, people.height), seed=3).write_csv(tmp_path / "extract.csv")
    found = check(tmp_path / "extract.csv")
    assert [(f.check, f.status) for f in found.findings] == [("records", "fail")]


@pytest.mark.parametrize(
    "name", ["ssb_sprt_emp.csv", "ssb_d2.csv", "ssb_d2w.csv", "ssb_d3.csv", "rtauargus_turnover_act_cj.csv"]
)
def test_a_published_table_is_not_taken_for_records(test_data, name):
    assert "records" not in [f.check for f in check(test_data / name).findings]


def test_a_share_of_three_women_of_180_is_not_printed(eusilc):
    some = eusilc.head(180).with_columns(rare=(pl.int_range(pl.len()) < 3).cast(pl.Int8))
    with Session(data=some) as s:
        for statistics in (["total"], ["mean"], ["count", "mean"]):
            assert s.summary("rare", statistics=statistics).status == "fail"


@pytest.mark.slow
def test_two_regressions_on_n_and_one_less_do_not_both_pass(eusilc):
    first = eusilc.row(0, named=True)["rb030"]
    with Session(data=eusilc) as s:
        assert s.ols("eqIncome ~ age + C(rb090)").status == "pass"
        assert s.ols("eqIncome ~ age + C(rb090)", data=eusilc.slice(1)).status == "fail"
    others = eusilc.with_columns(kept=(pl.col("rb030") != first))
    with Session(data=others) as s:
        assert s.ols("eqIncome ~ age + C(rb090)", where={"kept": True}).status == "pass"
        assert s.ols("eqIncome ~ age + C(rb090)").status == "fail"


def test_histograms_of_nested_regions_are_compared_bin_by_bin(eusilc):
    marked = eusilc.with_columns(
        old=(pl.col("age") >= 70) & (pl.int_range(pl.len()).over("db040") < 40),
        young=(pl.col("age") < 10),
    ).with_columns(out=pl.col("young") | pl.col("old"))
    edges = list(range(0, 101, 10))
    with Session(data=marked) as s:
        s.histogram("age", edges=edges)
        found = s.histogram("age", edges=edges, where={"out": False})
    small = [f for f in found.findings if f.check == "differencing"]
    assert [f.status for f in small] == ["fail"]
