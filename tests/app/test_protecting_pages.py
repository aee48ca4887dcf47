"""Protect, compare, release: by a simulated person, on a small file."""

from __future__ import annotations

import json

import pytest
from app.conftest import opened, settled, texts_of

from discreet.app import file_page, protect_page, release_page
from discreet.app.forms import FORMS
from discreet.app.work.protecting import plan_of

LOOSE = 'name = "Pairs"\n[rules]\n"k_anonymity.k" = { at_least = 2 }\n'


async def ready(desk, people, tmp_path):
    """Read the file, with a policy that is judged quickly."""
    journey = desk.begin(str(people))
    file_page.read(journey)
    await settled(desk)
    rules = tmp_path / "pairs.toml"
    rules.write_text(LOOSE)
    journey.policy = str(rules)
    journey.roles = {"name": "identifiers", "age": "keys", "sex": "keys", "illness": "sensitive"}
    return journey


@pytest.mark.asyncio
async def test_steps_are_tried_taken_back_done_again_and_previewed(people, tmp_path, monkeypatch):
    async with opened(tmp_path, monkeypatch) as (user, desk):
        journey = await ready(desk, people, tmp_path)
        await user.open("/1/protect")
        protect_page.change_steps(journey, [{"treatment": "drop-identifiers"}])
        await settled(desk)
        protect_page.change_steps(journey, [*journey.steps, {"treatment": "band", "widths": {"age": 20}}])
        await settled(desk)
        assert [effect["k"] for effect in journey.effects] == [1, 1, 20] or journey.effects[-1]["k"] > 1
        assert journey.effects[-1]["loss"] > 0
        await user.should_see("What step 2 does")
        user.find(marker="undo").click()
        await settled(desk)
        assert len(journey.steps) == 1
        user.find(marker="redo").click()
        await settled(desk)
        assert len(journey.steps) == 2
        user.find(marker="preview-1").click()
        await settled(desk)
        await user.should_see("Some cells that step 2 changes")
        assert "masked" in texts_of(user)
        assert "zq" not in texts_of(user)
        user.find(marker="show-values").click()
        await settled(desk)
        assert "masked" not in texts_of(user)
        assert any("page Protect" in one["what"] for one in journey.activity)


@pytest.mark.asyncio
async def test_a_step_that_is_refused_says_so_beside_the_steps(people, tmp_path, monkeypatch):
    async with opened(tmp_path, monkeypatch) as (user, desk):
        journey = await ready(desk, people, tmp_path)
        await user.open("/1/protect")
        protect_page.change_steps(journey, [{"treatment": "band", "widths": {"agee": 10}}])
        await settled(desk)
        assert "agee" in journey.refused("try_steps", "step")
        await user.should_see(journey.refused("try_steps", "step"))
        protect_page.change_steps(journey, [{"toml": "band!"}])
        await settled(desk)
        assert "TOML" in journey.refused("try_steps", "step")


@pytest.mark.slow
@pytest.mark.asyncio
async def test_a_suggested_plan_is_taken_compared_signed_and_written(people, tmp_path, monkeypatch):
    async with opened(tmp_path, monkeypatch) as (user, desk):
        journey = await ready(desk, people, tmp_path)
        await user.open("/1/protect")
        user.find(marker="suggest").click()
        await settled(desk)
        assert journey.suggestion["meets"]
        await user.should_see(marker="map")
        (first, *_) = journey.suggestion["plans"]
        user.find(marker=f"point-{first['letter']}").click()
        await user.should_see(f"{first['letter']}. {first['name']}")
        user.find(marker="take").click()
        await settled(desk)
        assert journey.steps
        await user.open("/1/compare")
        await settled(desk)
        await user.should_see(marker="verdict")
        await user.should_see("What went wrong first")
        await user.open("/1/release")
        journey.folder = str(tmp_path / "out" / "release")
        journey.signed = {"name": "A. Clerk", "role": "Officer", "date": "2026-11-16", "decision": "release"}
        release_page.write(journey)
        await settled(desk)
        assert not journey.refusals.get("write_release"), journey.refusals
        await user.should_see("Written")
        names = {path.name for path in (tmp_path / "out" / "release").iterdir()}
        assert {
            "people-release.csv",
            "release.html",
            "plan.toml",
            "log.json",
            "script.py",
            "activity.txt",
        } <= names
        report = (tmp_path / "out" / "release" / "release.html").read_text()
        assert 'value="A. Clerk"' in report
        assert 'value="release" checked' in report
        assert "zq" not in report
        assert "zqperson" not in (tmp_path / "out" / "release" / "people-release.csv").read_text()
        public = (tmp_path / "out" / "release" / "log.json").read_text()
        assert json.loads(public)["steps"]
        assert "A. Clerk" not in public

        journey.signed = {"name": "", "decision": "release"}
        release_page.write(journey, overwrite=True)
        await settled(desk)
        assert "name" in journey.refused("write_release", "signed")
        journey.signed, journey.folder = {}, str(tmp_path)
        release_page.write(journey, overwrite=True)
        await settled(desk)
        assert "something else" in journey.refused("write_release", "folder")
        assert people.exists(), "a folder that is not a release is never replaced"


@pytest.mark.parametrize("treatment", FORMS)
def test_every_form_makes_a_step_that_the_library_takes(treatment):
    form = FORMS[treatment]
    numbers = {name: 2.0 if value is None else float(value) for name, _, value in form.numbers}
    step = form.step(treatment, ["age"] if form.columns else [], numbers)
    (made,) = plan_of([step]).steps
    assert made.name == treatment


@pytest.mark.asyncio
async def test_a_release_that_names_people_is_not_written_and_a_refused_one_without_data(
    people, tmp_path, monkeypatch
):
    async with opened(tmp_path, monkeypatch) as (user, desk):
        journey = await ready(desk, people, tmp_path)
        await user.open("/1/release")
        journey.steps = [{"treatment": "band", "widths": {"age": 20}}]
        journey.folder = str(tmp_path / "release")
        release_page.write(journey)
        await settled(desk)
        assert "names people: name" in journey.refused("write_release", "steps")
        assert not (tmp_path / "release").exists()
        journey.signed = {"name": "A. Clerk", "decision": "no"}
        release_page.write(journey)
        await settled(desk)
        names = {path.name for path in (tmp_path / "release").iterdir()}
        assert "release.html" in names
        assert "people-release.csv" not in names
        await user.open("/1/protect")
        user.find(marker="drop-identifiers").click()
        await settled(desk)
        assert journey.steps[0] == {"treatment": "drop-identifiers"}
        journey.signed = {}
        release_page.write(journey, overwrite=True)
        await settled(desk)
        assert "zqperson" not in (tmp_path / "release" / "people-release.csv").read_text()
