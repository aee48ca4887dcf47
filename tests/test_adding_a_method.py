"""How many files does a new method touch? A treatment: its module, its test and its manual page; nothing else knows it.

That a measure is one new module is shown in `test_cards`. A line in the stub of the room (``__init__.pyi``) makes the
name public; plans, the command line and lists find the treatment without it.
"""

from __future__ import annotations

import importlib
import sys

import polars as pl
import pytest
from typer.testing import CliRunner

from discreet import Microdata, Plan, protect
from discreet.cli import app
from discreet.core.index import load
from discreet.core.method_cards import method_card
from discreet.protect import Treatment

MADE_UP = '''
"""Which way round is a name written?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from discreet import engine
from discreet.core.method_cards import method
from discreet.protect.treatment import Change, Stream, Treatment
from discreet.microdata import Microdata


@method(aim="doubt", work="whole-file", references=("Nobody (2026). Letters backwards.",))
@dataclass(frozen=True)
class WriteBackwards(Treatment):
    """Write the values of some columns from the last letter to the first."""

    columns: Sequence[str] = ()

    def treat(self, data: Microdata, stream: Stream) -> Change:
        frame = engine.collect(data)
        return Change(columns={name: frame[name].str.reverse() for name in self.columns})
'''
PEOPLE = pl.DataFrame({"name": ["ab", "cd", "ef"], "sex": ["f", "m", "f"]})


@pytest.fixture
def one_new_treatment(tmp_path):
    """Put one module into the room, as if somebody had added a file, and take it out again."""
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "write_backwards.py").write_text(MADE_UP, encoding="utf-8")
    protect.__path__.append(str(folder))
    importlib.invalidate_caches()
    load("discreet.protect")
    yield
    protect.__path__.remove(str(folder))
    sys.modules.pop("discreet.protect.write_backwards", None)
    vars(protect).pop("write_backwards", None)
    del Treatment.known["write-backwards"]


def test_a_treatment_in_one_new_module_is_known_to_plans_and_to_the_command_line(one_new_treatment, tmp_path):
    assert "write-backwards" in Treatment.known
    kind = Treatment.known["write-backwards"]
    assert method_card(kind).work == "whole-file"

    plan = Plan.from_dict({"step": [{"treatment": "write-backwards", "columns": ["name"]}]})
    plan.save(tmp_path / "plan.toml")
    assert Plan.load(tmp_path / "plan.toml") == plan
    released = plan.apply(Microdata(PEOPLE, keys=["sex"]), seed=1)
    assert released.data.frame["name"].to_list() == ["ba", "dc", "fe"]
    assert "write-backwards" in str(released.log)

    PEOPLE.write_csv(tmp_path / "people.csv")
    command = [
        "protect",
        str(tmp_path / "people.csv"),
        "--keys",
        "sex",
        "--plan",
        str(tmp_path / "plan.toml"),
    ]
    done = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "out.csv")])
    assert done.exit_code in (0, 4), done.output
    assert pl.read_csv(tmp_path / "out.csv")["name"].to_list() == ["ba", "dc", "fe"]


def test_a_treatment_that_was_taken_out_is_refused_with_those_that_are_near():
    with pytest.raises(Exception, match="treatment"):
        Plan.from_dict({"step": [{"treatment": "write-backwards"}]})
