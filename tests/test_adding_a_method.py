"""How many files does a new method touch? Its module, its test and its manual page; nothing else knows it.

That a measure is one new module is shown in `test_cards`. A line in the stub of the room (``__init__.pyi``) makes the
name of a treatment or a generator public, and ``make index`` writes it into the list of methods; plans, studies, models
and the command line find it without them. A command is its module and a line in ``cli/__init__.py``.
"""

from __future__ import annotations

import importlib
import sys

import polars as pl
import pytest
from typer.testing import CliRunner

from discreet import Microdata, Plan, Study, cli, evaluate, protect, synth
from discreet.cli import app
from discreet.core.index import load
from discreet.core.method_cards import method_card
from discreet.protect import Treatment
from discreet.synth import Synthesizer
from discreet.workflow.evaluation import DataSet, Generator, Metric

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


NEW_GENERATOR = '''
"""What if every column were written in the order of its values?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import polars as pl

from discreet import engine
from discreet.core.constraints import AtLeast
from discreet.core.method_cards import method
from discreet.core.randomness import Seed
from discreet.dp.entropy import Stream
from discreet.microdata import Microdata
from discreet.synth.saved_models import stored
from discreet.synth.synthesizer import Fitted, Synthesizer, empty_like


@method(aim="reference", work="whole-file", references=("Nobody (2026). Sorted columns.",))
@dataclass(frozen=True)
class SortColumns(Synthesizer):
    """What if every column were written in the order of its values?"""

    times: Annotated[int, AtLeast(1)] = 1

    def fit(self, data: Microdata, *, progress: bool = False, seed: Seed = None) -> SortedColumns:
        """Sort the columns."""
        frame = engine.collect(data)
        return SortedColumns(like=empty_like(data, frame), rows=frame.height, frame=frame.select(pl.all().sort()))


@stored("sorted-columns")
@dataclass(eq=False, repr=False, kw_only=True)
class SortedColumns(Fitted):
    """Columns in the order of their values."""

    frame: pl.DataFrame

    def draw(self, n: int, stream: Stream) -> pl.DataFrame:
        """Take the first records."""
        return self.frame.head(n)
'''


@pytest.fixture
def one_new_generator(tmp_path):
    """Put one module into the room of generators, and take it out again."""
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "sort_columns.py").write_text(NEW_GENERATOR, encoding="utf-8")
    synth.__path__.append(str(folder))
    importlib.invalidate_caches()
    load("discreet.synth")
    yield
    synth.__path__.remove(str(folder))
    sys.modules.pop("discreet.synth.sort_columns", None)
    vars(synth).pop("sort_columns", None)
    del Synthesizer.known["sort-columns"]


def test_a_generator_in_one_new_module_is_known_to_plans_models_studies_and_the_command_line(
    one_new_generator, tmp_path
):
    kind = Synthesizer.known["sort-columns"]
    assert (method_card(kind).room, method_card(kind).work) == ("synth", "whole-file")
    with pytest.raises(Exception, match="times must be a whole number of at least 1"):
        kind(times=0)

    synth.save_plan(kind(times=2), tmp_path / "plan.toml")
    made = synth.load_plan(tmp_path / "plan.toml")
    assert made == kind(times=2)

    fitted = made.fit(Microdata(PEOPLE, keys=["sex"]), seed=1)
    fitted.save(tmp_path / "model")
    again = synth.load(tmp_path / "model").sample(seed=1)
    assert again.frame["sex"].to_list() == fitted.sample(seed=1).frame["sex"].to_list() == ["f", "f", "m"]

    PEOPLE.write_csv(tmp_path / "people.csv")
    command = ["synthesize", str(tmp_path / "people.csv"), "--method", "sort-columns", "--set", "times=2"]
    done = CliRunner().invoke(app, [*command, "--keys", "sex", "--out", str(tmp_path / "out.csv")])
    assert done.exit_code == 0, done.output
    assert pl.read_csv(tmp_path / "out.csv")["sex"].to_list() == ["f", "f", "m"]

    pl.concat([PEOPLE] * 100).write_csv(tmp_path / "more.csv")
    study = Study(
        data=[DataSet("people", str(tmp_path / "more.csv"), roles={"keys": ["sex"]})],
        generators=[Generator("sorted", synthesizer="sort-columns")],
        metrics=[Metric("information_loss")],
        title="Sorted",
        seeds=(1,),
    )
    found = evaluate(study, progress=False)
    assert found.failures.is_empty(), found.failures["reason"].to_list()
    assert set(found.cells["generator"]) >= {"sorted"}


NEW_COMMAND = '''
"""``discreet tally FILE``: how many records are there?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.printing import say
from discreet.cli.source import Source, takes_source


@takes_source()
def tally(source: Source, out: Annotated[Path | None, typer.Option("--out", help="Write it.")] = None) -> None:
    """Count the records of a file."""
    from discreet import engine
    from discreet.cli import options

    options.check_targets(("--out", out, True))
    said = f"{engine.overview(source.read(), ()).rows} records"
    say(said)
    if out is not None:
        out.write_text(said, encoding="utf-8")
'''


@pytest.fixture
def one_new_command(tmp_path):
    """Put one module into the command line, with its line in ``cli/__init__.py``, and take it out again."""
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "tally.py").write_text(NEW_COMMAND, encoding="utf-8")
    cli.__path__.append(str(folder))
    importlib.invalidate_caches()
    cli.add(importlib.import_module("discreet.cli.tally").tally)
    yield
    cli.__path__.remove(str(folder))
    sys.modules.pop("discreet.cli.tally", None)
    vars(cli).pop("tally", None)
    app.registered_commands.pop()


def test_a_command_is_one_new_module_and_a_line(one_new_command, tmp_path):
    PEOPLE.write_csv(tmp_path / "people.csv")
    file = str(tmp_path / "people.csv")
    assert "Count the records of a file." in CliRunner().invoke(app, ["--help"]).output
    assert "--keys" in CliRunner().invoke(app, ["tally", "--help"]).output
    done = CliRunner().invoke(app, ["tally", file, "--keys", "sex", "--out", str(tmp_path / "tally.txt")])
    assert done.output.strip() == "3 records"
    assert (tmp_path / "tally.txt").read_text() == "3 records"

    refused = CliRunner().invoke(app, ["tally", file, "--keys", "sexx"])
    assert "Did you mean 'sex'?" in str(refused.exception)
    refused = CliRunner().invoke(app, ["tally", file, "--out", file])
    assert refused.exit_code != 0
    assert pl.read_csv(file).equals(PEOPLE)
