"""What goes wrong with files past memory at the command line: one paragraph, exit code 2, nothing half-written."""

import polars as pl
import pytest

from discreet.engine import classes, packing
from discreet.protect import Round


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source"
    folder.mkdir()
    rows = range(3000)
    table = {"id": rows, "age": [i % 90 for i in rows], "job": ["cook", "clerk", "spy"] * 1000}
    pl.DataFrame({**table, "pay": [float(i) for i in rows]}).write_parquet(folder / "people.parquet")
    return folder / "people.parquet"


@pytest.fixture
def asked(source, tmp_path):
    def command(steps: str, *more):
        plan = tmp_path / "source" / "plan.toml"
        plan.write_text(steps)
        return ["protect", source, "--plan", plan, "-k", "age,job", *more]

    return command


ROUNDED = '[[step]]\ntreatment = "round"\nbase = { pay = 100 }\n'
SUPPRESSED = '[[step]]\ntreatment = "local-suppression"\nk = 3\n'


def refused(done, folder, *words):
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    told = " ".join(done.stderr.replace("│", " ").split())
    for word in words:
        assert word in told
    assert [each.name for each in folder.iterdir() if each.name != "source"] == []


def test_more_classes_than_the_limit_name_the_limit_and_the_way_out(discreet, asked, tmp_path, monkeypatch):
    monkeypatch.setattr(classes, "MOST_CLASSES", 50)
    monkeypatch.setattr(packing, "HELD_IN_MEMORY", 10)
    done = discreet(*asked(SUPPRESSED, "--out", tmp_path / "out.parquet"))
    refused(done, tmp_path, "more than 50 different combinations", "Coarsen")


@pytest.mark.parametrize("parts", [False, True])
def test_a_source_that_changes_between_two_passes_is_noticed(
    discreet, asked, source, tmp_path, parts, monkeypatch
):
    treat = Round.treat

    def meanwhile(self, data, stream):
        found = treat(self, data, stream)
        pl.DataFrame({"id": [1], "age": [2], "job": ["spy"], "pay": [3.0]}).write_parquet(source)
        return found

    monkeypatch.setattr(Round, "treat", meanwhile)
    target = ["--parts", tmp_path / "out"] if parts else ["--out", tmp_path / "out.parquet"]
    done = discreet(*asked(ROUNDED, *target))
    refused(done, tmp_path, "was changed or removed since it was opened", "Read it again")


@pytest.mark.parametrize("parts", [False, True])
def test_a_sink_that_is_there_stays_as_it_is(discreet, asked, source, parts):
    there = source.parent / ("out" if parts else "out.parquet")
    if parts:
        there.mkdir()
    mine = there / "mine" if parts else there
    mine.write_text("mine")
    done = discreet(*asked(ROUNDED, "--parts" if parts else "--out", there))
    refused(done, source.parent.parent, "already exists")
    assert mine.read_text() == "mine"
    assert not there.with_name("out.unfinished").exists()
