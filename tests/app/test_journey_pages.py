"""Every page of the journey, by a simulated person."""

from __future__ import annotations

from pathlib import Path

import pytest
from app.conftest import ROWS, opened, settled, texts_of

pytestmark = pytest.mark.asyncio
ODD = "<img src=x onerror=alert(1)>"


async def test_a_file_goes_from_the_first_screen_to_a_verdict(people, tmp_path, monkeypatch):
    async with opened(tmp_path, monkeypatch) as (user, desk):
        await user.open("/")
        await user.should_see("Which file is to be released?")
        user.find(marker="place").type(str(people))
        user.find(marker="open").click()
        await user.should_see("How the file was read", retries=50)
        await settled(desk)
        await user.should_see("semicolon")
        journey = desk.journeys[1]
        assert journey.rows == ROWS
        assert journey.roles["name"] == "identifiers"
        assert "zq" not in texts_of(user)
        await user.open("/1/columns")
        await settled(desk)
        await user.should_see("people in the smallest group")
        assert ODD in texts_of(user), "a strange name is shown as it is, as text"
        assert "zq" not in texts_of(user)
        await user.open("/1/risk")
        await settled(desk)
        await user.should_see(marker="verdict")
        await user.should_see("The same in Python and on the command line")
        assert "zq" not in texts_of(user), "no value is shown before somebody asks"
        user.find(marker="show-values").click()
        await settled(desk)
        assert "zq" in texts_of(user)
        assert any("Asked to see values" in one["what"] for one in journey.activity)


async def test_an_unreadable_place_is_refused_beside_its_field(tmp_path, monkeypatch):
    async with opened(tmp_path, monkeypatch) as (user, desk):
        await user.open("/")
        user.find(marker="place").type(str(tmp_path / "nothing.csv"))
        user.find(marker="open").click()
        await user.should_see("There is no file 'nothing.csv'")
        assert not desk.journeys


async def test_a_bad_file_says_what_is_wrong_and_can_be_read_another_way(tmp_path, monkeypatch):
    bad = tmp_path / "bad.csv"
    bad.write_bytes(b"")
    async with opened(tmp_path, monkeypatch) as (user, desk):
        journey = desk.begin(str(bad))
        await user.open(f"/{journey.number}/file")
        await settled(desk)
        assert journey.refused("open_file", "file")
        await user.should_see(journey.refused("open_file", "file"))
        await user.should_see("Read it another way")


async def test_roles_are_changed_one_by_one_and_many_at_once(people, tmp_path, monkeypatch):
    from discreet.app.columns_page import set_role
    from discreet.app.file_page import read

    async with opened(tmp_path, monkeypatch) as (user, desk):
        journey = desk.begin(str(people))
        read(journey)
        await settled(desk)
        await user.open("/1/columns")
        await settled(desk)
        assert "one column" in set_role(journey, ["age", "sex"], "weight")
        assert set_role(journey, ["age", "sex"], "sensitive") == ""
        await settled(desk)
        assert journey.holding("sensitive")[:2] == ["age", "sex"]
        table = next(iter(user.find(marker="columns").elements))
        table.selected = [{"column": "age"}, {"column": "sex"}]
        user.find(marker="bulk-set").click()
        await settled(desk)
        assert {"age", "sex"} <= set(journey.holding("keys"))


async def test_five_hundred_columns_are_found_and_set_together(tmp_path, monkeypatch):
    from discreet.app.file_page import read

    wide = tmp_path / "wide.csv"
    names = [f"item{i}" for i in range(498)]
    rows = [
        ",".join(["f" if i % 2 else "m", str(20 + i), *(str((i * j) % 3) for j in range(498))])
        for i in range(30)
    ]
    wide.write_text("\n".join([",".join(["sex", "age", *names]), *rows]))
    async with opened(tmp_path, monkeypatch) as (user, desk):
        journey = desk.begin(str(wide))
        read(journey)
        await settled(desk)
        await user.open("/1/columns")
        await settled(desk)
        table = next(iter(user.find(marker="columns").elements))
        assert len(table.rows) == 500
        next(iter(user.find(marker="find").elements)).value = "item7"
        assert table.filter == "item7", "the browser shows what fits"
        table.selected = [{"column": name} for name in names if name.startswith("item7")]
        next(iter(user.find(marker="bulk-role").elements)).value = ""
        user.find(marker="bulk-set").click()
        await settled(desk)
        assert not {name for name in names if name.startswith("item7")} & set(journey.roles)
        assert journey.roles["sex"] == "keys"


async def test_figures_follow_the_keys_on_the_page_of_the_risk(people, tmp_path, monkeypatch):
    from discreet.app.file_page import read

    async with opened(tmp_path, monkeypatch) as (user, desk):
        journey = desk.begin(str(people))
        read(journey)
        await settled(desk)
        await user.open("/1/risk")
        await settled(desk)
        await user.should_see("Key numbers")
        next(iter(user.find(marker="keys").elements)).value = ["sex"]
        await settled(desk)
        await user.should_see("Not assessed with these settings yet")
        await user.should_see("people in the smallest group")
        assert journey.holding("keys") == ["sex"]


async def test_a_policy_that_is_not_there_is_refused_beside_the_policy(people, tmp_path, monkeypatch):
    from discreet.app.file_page import read

    async with opened(tmp_path, monkeypatch) as (user, desk):
        journey = desk.begin(str(people))
        read(journey)
        await settled(desk)
        journey.policy = "no-such-policy"
        await user.open("/1/risk")
        await settled(desk)
        assert "no-such-policy" in journey.refused("assess_file", "policy")
        await user.should_see(journey.refused("assess_file", "policy"))


async def test_a_file_that_changes_on_disk_is_noticed(people, tmp_path, monkeypatch):
    from discreet.app.file_page import read

    async with opened(tmp_path, monkeypatch) as (user, desk):
        journey = desk.begin(str(people))
        read(journey)
        await settled(desk)
        people.write_text(people.read_text().replace("zqAville", "zqDville", 1))
        await user.open("/1/risk")
        await settled(desk)
        assert "changed on disk" in journey.refused("assess_file", "file")
        assert journey.roles, "what was set is kept"


async def test_a_dropped_file_lies_in_the_private_folder_and_is_gone_at_the_end(
    people, tmp_path, monkeypatch
):
    from nicegui import ui

    async with opened(tmp_path, monkeypatch) as (user, desk):
        await user.open("/")
        upload = next(iter(user.find(marker="upload").elements))
        file = ui.upload.SmallFileUpload("../../people.csv", "text/csv", people.read_bytes())
        await upload.handle_uploads([file])
        await user.should_see("How the file was read", retries=50)
        await settled(desk)
        journey = desk.journeys[1]
        assert journey.rows == ROWS
        assert desk.folder.path.resolve() in Path(journey.place).resolve().parents
        assert journey.to_dict()["place"] == "", "a project file does not speak of a place that will be gone"
        place = Path(journey.place)
    assert not place.exists()


async def test_a_project_file_can_be_dropped_too_and_one_without_its_data_asks_for_it(
    people, tmp_path, monkeypatch
):
    from discreet.app.journey import Journey

    async with opened(tmp_path, monkeypatch) as (user, desk):
        saved = Journey(name="people.csv", kind="upload", place=str(people), roles={"age": "keys"}).save(
            tmp_path / "p"
        )
        journey = desk.begin(str(saved))
        assert journey.place == ""
        await user.open(f"/{journey.number}/file")
        await user.should_see("Which file is to be released?")
        await user.should_see("It was made from 'people.csv'")
        user.find(marker="place").type(str(people))
        user.find(marker="open").click()
        await user.should_see("How the file was read", retries=50)
        await settled(desk)
        assert len(desk.journeys) == 1
        assert journey.roles == {"age": "keys"}
        assert journey.rows == ROWS
