"""Whoever looks for a method by the name under which it was published, or by its author, finds it."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from typer.testing import CliRunner

from discreet.cli import app
from discreet.core.errors import ParameterError
from discreet.workflow.catalog import methods_called

with (Path(__file__).parent / "data" / "published_names.csv").open(encoding="utf-8", newline="") as file:
    PUBLISHED = [(row["name"], row["method"]) for row in csv.DictReader(file)]


@pytest.mark.parametrize(("name", "method"), PUBLISHED, ids=[name for name, _ in PUBLISHED])
def test_a_published_name_leads_to_its_method(name, method):
    assert method in [entry.name for entry in methods_called(name)][:4]


def test_case_hyphens_and_spaces_do_not_matter():
    names = [[entry.name for entry in methods_called(name)] for name in ("dp-agd", "DP AGD", "dpagd")]
    assert names[0] == names[1] == names[2]


def test_several_words_must_all_be_met():
    assert "risk.population" not in [entry.name for entry in methods_called("vine copula")]
    assert "synth.VineCopula" in [entry.name for entry in methods_called("vine copula")]


def test_a_name_that_nobody_uses_is_refused_with_the_near_ones():
    with pytest.raises(ParameterError, match="Did you mean 'specks'"):
        methods_called("SPEKCS")


def test_the_command_says_what_it_is_called_where_it_comes_from_and_how_it_is_used():
    done = CliRunner().invoke(app, ["methods", "TCAP"])
    assert done.exit_code == 0
    assert done.stdout.startswith("risk.attribution\n")
    for said in ("Also known as: CAP;", "From: Elliot, M. (2014)", "Use: discreet risk attribution FILE"):
        assert said in done.stdout


@pytest.mark.parametrize(
    ("arguments", "pointer"),
    [
        (["risk", "cap"], "discreet risk attribution FILE"),
        (["risk", "pue"], "discreet risk uniqueness FILE"),
        (["attack", "tcap"], "discreet risk attribution FILE"),
        (["attack", "link-stealing"], "discreet.attack.link_stealing in Python"),
    ],
)
def test_a_measure_asked_by_another_name_points_to_its_own(arguments, pointer, tmp_path):
    (tmp_path / "people.csv").write_text("sex,age\nf,3\n", encoding="utf-8")
    done = CliRunner().invoke(app, [*arguments, str(tmp_path / "people.csv")])
    assert isinstance(done.exception, ParameterError)
    assert pointer in str(done.exception)
