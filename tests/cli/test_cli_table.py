"""The command line of tables."""

from __future__ import annotations

import json
import warnings

import polars as pl
import pytest
from typer.testing import CliRunner

from discreet import datasets
from discreet.cli.table import table
from discreet.core.errors import DiscreetError

HOW = ("--table", "region*main_income", "--count", "freq", "--hierarchy", "region=county")


@pytest.fixture
def run(tmp_path):
    path = tmp_path / "people.csv"
    datasets.social_assistance().frame.write_csv(path)

    def command(name, *arguments, file=path):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return CliRunner().invoke(table, [name, str(file), *map(str, arguments)])

    return command


def test_a_table_is_suppressed_and_its_audit_repeated_from_the_file(run, tmp_path):
    out, html = tmp_path / "out.csv", tmp_path / "out.html"
    done = run("protect", *HOW, "--rule", "up-to=3", "--out", out, "--html", html)
    assert done.exit_code == 0
    assert "The audit found nothing" in done.output
    published = pl.read_csv(out)
    assert published.filter(pl.col("status") == "suppressed")["count"].null_count() > 8
    assert html.exists()
    again = run("audit", *HOW, "--rule", "up-to=3", "--suppressed", out)
    assert again.exit_code == 0
    assert "None of" in again.output


def test_primary_cells_alone_are_not_enough_and_the_exit_code_says_so(run):
    done = run("audit", *HOW, "--rule", "up-to=3", "--json")
    assert done.exit_code == 3
    assert json.loads(done.stdout)["safe"] is False


@pytest.mark.parametrize(
    ("method", "setting"),
    [("controlled-rounding", "base=3"), ("random-rounding", "draws=seed"), ("noisy-counts", "epsilon=2")],
)
def test_other_methods_go_by_their_name(run, method, setting, tmp_path):
    out = tmp_path / "o.parquet"
    done = run("protect", *HOW, "--method", method, "--set", setting, "--out", out, "--seed", 1, "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["steps"][0]["treatment"] == method
    assert pl.read_parquet(out).columns == ["region", "main_income", "count"]


def test_a_table_is_synthesized_with_its_guarantee(run, tmp_path):
    out = tmp_path / "o.csv"
    frame = datasets.social_assistance().frame
    how = ["--alpha", 0.1, "--epsilon", 3, "--public-domain", "--out", out, "--zeros"]
    for name in ("region", "main_income"):
        codes = tmp_path / f"{name}.csv"
        pl.DataFrame({"child": frame[name].unique().sort(), "parent": "All"}).write_csv(codes)
        how += ["--hierarchy", f"{name}={codes}"]
    done = run("synthesize", "--table", "region*main_income", "--count", "freq", *how)
    assert done.exit_code == 0
    assert "(3, 0.207)-differential privacy" in done.output
    seeded = run(
        "synthesize", "--table", "region*main_income", "--count", "freq", *how, "--seed", 1, "--overwrite"
    )
    assert "drawn from a seed" in seeded.output
    believed = run(
        "synthesize",
        "--table",
        "region*main_income",
        "--count",
        "freq",
        *how[:5],
        "--out",
        tmp_path / "b.csv",
    )
    assert "read from the data" in believed.output
    assert pl.read_csv(out).height == 60


def test_an_aggregated_file_is_read_with_its_code_list(run, tmp_path):
    cells, codes = tmp_path / "cells.csv", tmp_path / "codes.csv"
    pl.DataFrame(
        {"a": ["x", "y", "z"], "n": [30, 2, 50], "t": [9.0, 8.0, 7.0], "m": [5.0, 7.5, 1.0]}
    ).write_csv(cells)
    pl.DataFrame({"child": ["x", "y", "z"], "parent": ["xy", "xy", "zz"]}).write_csv(codes)
    how = ("--table", "a", "--cells", "--count", "n", "--measure", "t", "--largest", "m")
    done = run("audit", *how, "--hierarchy", f"a={codes}", "--rule", "dominance=1,85", file=cells)
    assert done.exit_code == 3


@pytest.mark.parametrize("names", [("region", "county"), ("code", "above"), None])
@pytest.mark.parametrize("finest_first", [True, False])
def test_a_file_with_one_column_a_level_is_read_with_and_without_names(run, tmp_path, names, finest_first):
    """As the page takes it: which end is the finest, and whether the first line holds names, is found."""
    levels = datasets.social_assistance().frame.select("region", "county").unique().sort("region")
    if names:
        levels = levels.rename(dict(zip(("region", "county"), names, strict=True)))
    file, out = tmp_path / "levels.csv", tmp_path / "out.csv"
    order = levels.columns if finest_first else levels.columns[::-1]
    levels.select(order).write_csv(file, include_header=bool(names), separator=";")
    table = ("--table", "region*main_income", "--count", "freq", "--rule", "up-to=3")
    assert run("protect", *HOW, "--rule", "up-to=3", "--out", out).exit_code == 0
    expected = pl.read_csv(out)
    done = run("protect", *table, "--hierarchy", f"region={file}", "--out", out, "--overwrite")
    assert done.exit_code == 0, done.exception
    cells = ["region", "main_income"]
    assert pl.read_csv(out).sort(cells).equals(expected.sort(cells))


def test_what_a_file_of_codes_declares_does_not_hang_on_the_data(tmp_path):
    """A code that the data lack stays declared, unless its line names the column."""
    from discreet.tables.dimension_sources import hierarchy_from

    file = tmp_path / "codes.csv"
    file.write_text("n\na\nb\n")
    assert hierarchy_from(file, "x", ["a", "b"], closed=True).table().height == 3
    assert hierarchy_from(file, "n", ["a", "b"], closed=True).table().height == 2
    assert hierarchy_from(file, "x", ["a", "b"]).table().height == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("protect", *HOW), "--rule"),
        (("protect", *HOW, "--rule", "thresh=3"), "Did you mean 'threshold'"),
        (("protect", *HOW, "--rule", "dominance=1"), "needs its numbers"),
        (("protect", *HOW, "--method", "roundin"), "rounding"),
        (("protect", *HOW, "--method", "random-rounding", "--rule", "zeros"), "leave out --rule"),
        (("protect", *HOW, "--rule", "zeros", "--html", "x.csv"), "must end in .html"),
        (("protect", "--table", "regio*main_income", "--rule", "zeros"), "Did you mean 'region'"),
        (("protect", *HOW, "--hierarchy", "region"), "COLUMN=FILE"),
        (("synthesize", *HOW, "--law", "normal"), "There is no law"),
        (("synthesize", *HOW), "Give alpha"),
    ],
)
def test_mistakes_are_refused_with_the_way_out(run, arguments, message):
    done = run(*arguments)
    assert isinstance(done.exception, DiscreetError)
    assert message in str(done.exception)
