"""No job of the page writes over a file that the page has open, and what it writes is for its owner."""

from __future__ import annotations

import inspect
import os
from importlib import import_module

import pytest

pytest.importorskip("nicegui", reason="the extra 'app' (NiceGUI) is not installed")

from app.conftest import opened, settled

from discreet.app.desk import Desk, PrivateFolder
from discreet.app.guard import Door
from discreet.app.work import TASKS
from discreet.app.work.bench import Bench
from discreet.app.worker import answered

ROLES = {"keys": ["sex", "town"], "identifiers": ["name"]}
WRITING = {"folder", "out"}


def jobs(out):
    """Give every job that writes, told to write to a place."""
    signed = {"decision": "release", "name": "A", "remarks": "it is made up"}
    return {
        "write_release": {
            "roles": ROLES, "steps": [{"treatment": "drop-identifiers"}], "policy": "safe-setting", "seed": 1,
            "folder": out, "name": "release.csv", "overwrite": True, "guard_formulas": False, "signed": signed,
            "texts": {},
        },
        "make_copies": {
            "roles": ROLES, "accepted": [], "declined": [], "order": [], "rules": "", "copies": 1, "rows": 20,
            "out": out, "overwrite": True, "seed": 1,
        },
        "protect_table": {
            "roles": ROLES, "table": "sex*town", "measure": "", "hierarchies": {}, "rule": "threshold",
            "numbers": [3], "out": out, "overwrite": True, "signed": signed,
        },
    }  # fmt: skip


def asked(task, source, given, *, bench=None, **more):
    request = {"id": 1, "task": task, "given": {"source": source, **given}, **more}
    return answered(bench or Bench(), request)


def test_every_job_with_a_place_to_write_to_is_tried_here():
    named = {
        task
        for task, module in TASKS.items()
        if WRITING & set(inspect.signature(getattr(import_module(module), task)).parameters)
    }
    # The folder of these two is one that is read: they write to the register of decisions beside it, and append.
    assert named - {"check_outputs", "decide_output"} == set(jobs(""))


@pytest.mark.parametrize("task", ["make_copies", "protect_table"])
@pytest.mark.parametrize("how", ["plain", "dotted", "symbolic link", "hard link", "linked folder"])
def test_no_job_writes_over_the_file_it_reads(people, tmp_path, task, how):
    source = {"place": str(people), "query": "", "reading": {}}
    out = str(people)
    if how == "dotted":
        out = os.path.join(tmp_path, "..", tmp_path.name, ".", people.name)
    elif how == "symbolic link":
        (tmp_path / "other.csv").symlink_to(people)
        out = str(tmp_path / "other.csv")
    elif how == "hard link":
        os.link(people, tmp_path / "other.csv")
        out = str(tmp_path / "other.csv")
    elif how == "linked folder":
        (tmp_path / "linked").symlink_to(tmp_path)
        out = str(tmp_path / "linked" / people.name)
    before = people.read_bytes()
    bench = Bench()
    assert "result" in asked("open_file", source, {}, bench=bench)
    said = asked(task, source, jobs(out)[task], bench=bench)
    assert "would be lost" in said["refused"], said
    assert said["field"] == "out"
    assert people.read_bytes() == before


def test_a_release_folder_that_holds_what_is_read_is_not_replaced(people, tmp_path):
    folder = tmp_path / "release"
    source = {"place": str(people), "query": "", "reading": {}}
    first = asked("write_release", source, jobs(str(folder))["write_release"])
    assert "result" in first, first
    inside = {"place": str(folder / "release.csv"), "query": "", "reading": {}}
    before = (folder / "release.csv").read_bytes()
    given = {**jobs(str(folder))["write_release"], "roles": {"keys": ["sex"]}}
    said = asked("write_release", inside, given)
    assert "which is read: it would be lost" in said["refused"]
    assert said["field"] == "folder"
    assert (folder / "release.csv").read_bytes() == before


def test_a_release_is_for_its_owner_only(people, tmp_path):
    folder = tmp_path / "release"
    umask = os.umask(0)
    try:
        source = {"place": str(people), "query": "", "reading": {}}
        for _ in range(2):
            assert "result" in asked("write_release", source, jobs(str(folder))["write_release"])
            assert folder.stat().st_mode & 0o777 == 0o700
            assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
            folder.chmod(0o755)
    finally:
        os.umask(umask)


def test_a_model_and_a_project_are_for_their_owner_only(people, tmp_path):
    from discreet import read
    from discreet.app.journey import Journey
    from discreet.synth import Sequential

    umask = os.umask(0)
    try:
        model = tmp_path / "m.model"
        model.write_text("old")
        model.chmod(0o644)
        Sequential().fit(read(people).with_roles(identifiers="name"), seed=1).save(model)
        project = Journey(name="people.csv", place=str(people)).save(tmp_path / "mine")
    finally:
        os.umask(umask)
    assert model.stat().st_mode & 0o777 == 0o600
    assert project.stat().st_mode & 0o777 == 0o600


def test_what_another_journey_has_open_is_left_alone_too(people, tmp_path):
    other = tmp_path / "other.csv"
    other.write_bytes(people.read_bytes())
    desk = Desk(PrivateFolder(tmp_path), Door(hosts=("127.0.0.1:1",)))
    try:
        first, _ = desk.begin(str(people)), desk.begin(str(other))
        assert first.files_open() == [str(people), str(other)]
        source = {"place": str(people), "query": "", "reading": {}}
        said = asked("protect_table", source, jobs(str(other))["protect_table"], reads=first.files_open())
        assert "would be lost" in said["refused"]
        assert other.read_bytes() == people.read_bytes()
    finally:
        desk.close()


@pytest.mark.asyncio
async def test_the_pages_tables_and_synthesize_leave_the_original_alone(people, tmp_path, monkeypatch):
    from discreet.app import file_page, tables_page

    before = people.read_bytes()
    async with opened(tmp_path, monkeypatch) as (user, desk):
        journey = desk.begin(str(people))
        await user.open("/1/file")
        file_page.read(journey)
        await settled(desk)
        asked_for = {
            "table": "sex*town",
            "measure": "",
            "hierarchies": {},
            "kind": "threshold",
            "numbers": [3],
        }
        await user.open("/1/tables")
        tables_page.protect(journey, asked_for, out=str(people), overwrite=True)
        await settled(desk)
        assert "would be lost" in journey.refused("protect_table", "out")
    assert people.read_bytes() == before
