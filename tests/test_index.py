"""The index of methods is the one that the cards and doors give, and nothing is imported that is only listed."""

from __future__ import annotations

import subprocess
import sys

import polars as pl
import pytest

from discreet.core.index import PLACE, entries
from discreet.workflow.catalog import build_index, catalog

_ASSESS = """
import sys, polars as pl, discreet
frame = pl.DataFrame({"sex": ["f", "m"] * 10, "age": [1, 2, 3, 4] * 5, "income": [1.0, 2.0, 3.0, 4.0] * 5})
discreet.assess(discreet.Microdata(frame, keys=["sex", "age"], sensitive=["income"]))
"""
_COMMAND = """
import sys
from discreet.cli import app
try:
    app({arguments}, standalone_mode=False)
except SystemExit:
    pass
"""
_COUNT = "\nprint(sum(name.partition('.')[0] == 'discreet' for name in sys.modules), file=sys.stderr)"


def test_the_index_is_the_one_that_cards_and_doors_give(tmp_path):
    """Run ``make index`` where it is not."""
    build_index(tmp_path / "index.json")
    assert (tmp_path / "index.json").read_text(encoding="utf-8") == PLACE.read_text(encoding="utf-8")


def test_every_entry_names_the_module_in_which_it_is_found():
    for entry in entries().values():
        if entry.kind in ("measure", "treatment", "generator"):
            assert entry.module.startswith(f"discreet.{entry.room}."), entry.name


def test_the_list_of_methods_has_each_once():
    names = [entry.name for entry in catalog()]
    assert len(names) == len(set(names)) > 250


def modules_loaded(code: str) -> int:
    done = subprocess.run([sys.executable, "-c", code + _COUNT], capture_output=True, text=True, check=True)
    return int(done.stderr.split()[-1])


def test_a_first_assessment_loads_what_it_asks_and_no_more():
    assert modules_loaded(_ASSESS) <= 250


@pytest.mark.parametrize(("arguments", "most"), [(["inspect", "people.csv"], 150), (["--help"], 40)])
def test_a_command_loads_what_it_needs_and_no_more(arguments, most, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"sex": ["f", "m"], "age": [30, 40]}).write_csv("people.csv")
    assert modules_loaded(_COMMAND.format(arguments=arguments)) <= most
