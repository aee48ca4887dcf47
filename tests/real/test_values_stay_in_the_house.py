"""What a look at a real survey prints and writes tells no value of it: EU-SILC, whose households tell their region."""

from __future__ import annotations

import json
import sys
import tomllib

import polars as pl
import pytest

from discreet.cli import main


@pytest.fixture
def survey(test_data):
    return test_data / "eusilcS.csv.gz"


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["discreet", *map(str, arguments)])
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    return code, capsys.readouterr().out


def lists_in(document):
    if isinstance(document, dict):
        for item in document.values():
            yield from lists_in(item)
    elif isinstance(document, list):
        yield document
        for item in document:
            yield from lists_in(item)


@pytest.mark.parametrize("shows", [False, True])
def test_the_look_up_of_households_and_regions_is_only_written_when_asked_for(
    survey, tmp_path, monkeypatch, capsys, shows
):
    asked = ("--show-values",) if shows else ()
    shared = ("preflight", survey, "--findings", tmp_path / "found.toml", "--accept", "low", *asked)
    code, printed = run(monkeypatch, capsys, *shared, "--json")
    assert code == 0
    frame = pl.read_csv(survey, infer_schema_length=None)
    regions = set(frame["db040"].drop_nulls())
    households = set(frame["db030"].to_list())
    written = (tmp_path / "found.toml").read_text(encoding="utf-8")
    for text, document in ((printed, json.loads(printed)), (written, tomllib.loads(written))):
        told = [
            item
            for item in lists_in(document)
            if len(item) > 50 and set(map(str, item)) <= set(map(str, households))
        ]
        assert bool(told) == shows
        assert any(region in text for region in regions) == shows
