"""Names and patterns of a study stay inside its folder, and what is said about written files is true."""

import json

import polars as pl
import pytest

STUDY = """
[[data]]
name = "people"
source = "people.csv"
[[generator]]
name = "margins"
reference = "uniform"
[[metric]]
name = "new_rows"
"""


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "deep" / "deeper"
    place.mkdir(parents=True)
    pl.DataFrame({"sex": ["f", "m"] * 60, "age": list(range(120))}).write_csv(place / "people.csv")
    return place


@pytest.mark.parametrize("name", ["../../x", "/abs/x", "..", "a\\b", "x\u001b[2J"])
@pytest.mark.parametrize("was", ["people", "margins"])
def test_names_in_a_study_cannot_lead_out_of_the_folder(discreet, folder, tmp_path, name, was):
    study = folder / "study.toml"
    study.write_text(STUDY.replace(f'name = "{was}"', f"name = {json.dumps(name)}", 1))
    before = sorted(tmp_path.rglob("*"))
    done = discreet("evaluate", study, "--training", folder / "parts")
    assert done.returncode == 2, done.stderr
    assert "becomes a file name" in done.stderr
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "files",
    [
        "{data.__class__}",
        "{data!r}",
        "{0}",
        "{other}",
        "{seed:{copy}}",
        "{data:>9999999}",
        "{",
        "{seed:9999d}",
    ],
)
def test_a_file_pattern_of_a_study_is_no_program(discreet, folder, files):
    study = folder / "study.toml"
    study.write_text(STUDY.replace('reference = "uniform"', f'files = "{files}"'))
    done = discreet("evaluate", study, "--out", folder / "out")
    assert done.returncode == 2
    assert "nothing else in braces" in done.stderr
    assert not (folder / "out").exists()


def test_a_study_whose_title_is_no_text_writes_nothing(discreet, folder):
    study = folder / "study.toml"
    study.write_text(f"title = 5\n{STUDY}")
    done = discreet("evaluate", study, "--out", folder / "out")
    assert done.returncode == 2
    assert "title must be a text" in done.stderr
    assert not (folder / "out").exists()


def test_a_refusal_names_what_is_in_place_already(discreet, folder, monkeypatch):
    """The release is written, then the disk is full."""
    from discreet.core.errors import InputError

    def full(*arguments, **options):
        raise InputError("'log.json' cannot be written: the disk is full.")

    monkeypatch.setattr("discreet.io.sidecar.save_text", full)
    step = '{treatment = "band", widths = {age = 10}}'
    done = discreet(
        "protect", folder / "people.csv", "--step", step, "--out", folder / "out.csv", "--log", folder / "l"
    )
    assert done.returncode == 2
    assert "the disk is full. Written before that, and complete: out.csv." in done.stderr
    done = discreet("protect", folder / "nobody.csv", "--step", step, "--out", folder / "out.csv")
    assert "ritten" not in done.stderr


@pytest.mark.parametrize("broken", ["write_training", "save"])
def test_a_defect_says_what_was_written_and_nothing_only_where_that_is_true(
    discreet, folder, monkeypatch, broken
):
    from discreet.workflow.evaluation import Study

    study = folder / "study.toml"
    study.write_text(STUDY)
    real = getattr(Study, broken)

    def fails_afterwards(self, *arguments, **options):
        if broken == "save":
            raise TypeError
        real(self, *arguments, **options)
        raise TypeError

    monkeypatch.setattr(Study, broken, fails_afterwards)
    option = "--training" if broken == "write_training" else "--out"
    done = discreet("evaluate", study, option, folder)
    assert done.returncode == 1
    if broken == "save":
        assert "Nothing was written." in done.stderr
    else:
        assert "people-training.csv, people-holdout.csv" in done.stderr
        assert "Nothing was written" not in done.stderr
