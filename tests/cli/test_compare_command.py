"""The command on an application of its own, so that it can be tried before it is registered."""

import json

import numpy as np
import polars as pl
import pytest
import typer
from typer.testing import CliRunner

from discreet.cli.compare import compare
from discreet.core.errors import DiscreetError

app = typer.Typer()
app.command()(compare)


@app.callback()
def _several():
    """Keep the name of the command."""


def people(seed):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 60, 200)
    return pl.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["f", "m"], 200),
            "ill": np.where(rng.random(200) < age / 100, "y", "n"),
        }
    )


@pytest.fixture
def files(tmp_path):
    for name, seed in (("original", 1), ("a", 2), ("b", 3), ("holdout", 4)):
        people(seed).write_csv(tmp_path / f"{name}.csv")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


ROLES = ("--keys", "age,sex", "--sensitive", "ill")


def test_it_says_what_went_wrong_first(files):
    done = run(files / "original.csv", files / "a.csv", *ROLES)
    assert done.exit_code == 0
    assert "What went wrong first" in done.stdout
    assert "What it gives away" in done.stdout


def test_json_is_one_document_and_nothing_else(files):
    done = run(files / "original.csv", files / "a.csv", "--holdout", files / "holdout.csv", *ROLES, "--json")
    document = json.loads(done.stdout)
    assert {"utility", "risk", "verdict", "worst"} <= set(document)
    assert document["risk"]["neighbors"]["figures"]["dcr_share_closer_than_holdout"] is not None


def test_several_releases_are_put_side_by_side_and_copies_are_averaged(files):
    done = run(
        files / "original.csv", files / "a.csv", files / "b.csv", *ROLES, "--json", "--measure", "margins"
    )
    assert list(json.loads(done.stdout)["releases"]) == ["b.csv"]
    done = run(files / "original.csv", files / "a.csv", files / "b.csv", *ROLES, "--json", "--copies")
    assert json.loads(done.stdout)["released"]["copies"] == 2
    done = run(
        files / "original.csv", files / "a.csv", files / "b.csv", *ROLES, "--measure", "margins,tabular"
    )
    assert "Side by side" in done.stdout


def test_a_release_that_does_not_meet_its_policy_exits_with_3(files):
    policy = files / "policy.toml"
    policy.write_text('name = "Strict"\n[comparison]\n"margins.max_distance" = { at_most = 0 }\n')
    done = run(files / "original.csv", files / "a.csv", *ROLES, "--policy", policy, "--check")
    assert done.exit_code == 3
    assert done.stdout.startswith("Does not meet policy 'Strict'")
    assert len(done.stdout.splitlines()) == 1
    policy.write_text('name = "Lax"\n[comparison]\n"margins.max_distance" = { at_most = 0.99 }\n')
    done = run(files / "original.csv", files / "a.csv", *ROLES, "--policy", policy)
    assert done.exit_code == 0
    assert "Meets policy 'Lax'" in done.stdout


def test_report_and_map_are_written(files):
    done = run(
        files / "original.csv", files / "a.csv", *ROLES, "--html", files / "r.html", "--plot", files / "m.svg"
    )
    assert done.exit_code == 0
    assert (files / "r.html").read_text().startswith("<!DOCTYPE html>")
    assert "<svg" in (files / "m.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--keys", "agee"], "Did you mean 'age'"),
        (["--json", "--check"], "exclude each other"),
        (["--html", "report.txt"], ".html"),
        (["--measure", "margin"], "Did you mean 'margins'"),
        (["--policy", "nowhere"], "no policy file"),
        (["--missing", "wildcard"], "category"),
    ],
)
def test_bad_input_is_refused_in_one_paragraph(files, arguments, says):
    done = run(files / "original.csv", files / "a.csv", *arguments)
    assert isinstance(done.exception, DiscreetError)
    assert says in str(done.exception)


def test_the_same_file_twice_is_refused(files):
    done = run(files / "original.csv", files / "a.csv", files / "a.csv")
    assert "named twice" in str(done.exception)


def test_the_precision_of_numbers_can_be_set(tmp_path):
    values = [25 + place / 7 for place in range(60)]
    keys = {"age": [20 + place % 5 for place in range(60)]}
    ours, theirs = tmp_path / "ours.csv", tmp_path / "theirs.csv"
    pl.DataFrame({**keys, "bmi": values}).write_csv(ours)
    pl.DataFrame({**keys, "bmi": [float(f"{value:.12g}") for value in values]}).write_csv(theirs)

    def alone(*options):
        found = run(ours, theirs, "-k", "age,bmi", "--measure", "replicated_uniques", "--json", *options)
        return json.loads(found.stdout)["risk"]["replicated_uniques"]

    assert alone()["figures"]["repU"] == 100
    assert alone()["parameters"]["precision"] == {"bmi": "12 significant digits"}
    assert alone("--precision", "exact")["figures"]["repU"] < 20  # whole ones are equal anyway
    assert alone("--precision", "bmi=0")["figures"]["repU"] < 100
    done = run(ours, theirs, "-k", "age", "--precision", "rough")
    assert isinstance(done.exception, DiscreetError)
    assert "precision is" in str(done.exception)


def test_files_of_more_records_than_rows_are_counted_where_they_are(tmp_path):
    for name, seed in (("original", 1), ("released", 2)):
        pl.concat([people(seed * 20 + part) for part in range(20)]).write_parquet(
            tmp_path / f"{name}.parquet"
        )
    asked = (tmp_path / "original.parquet", tmp_path / "released.parquet", *ROLES, "--rows", "1000", "--json")
    document = json.loads(run(*asked).stdout)
    assert document["utility"]["information_loss"]["parameters"]["sample"]["of_records"] == 4000
    assert "sample" not in document["utility"]["tabular"]["parameters"]
    assert any("where the data is" in said for said in document["alignment"]["notes"])
    assert "too large to hold" in document["skipped"]["near_copies"]
    assert document["risk"]["new_rows"]["figures"]["new_share_exact"] <= 1
