"""Synthesize, tables, outputs, budget and the two-tab, two-file and theme sides of the frame."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from app.conftest import opened, settled, texts_of, until

from discreet.app import file_page, outputs_page, synthesize_page, tables_page

pytestmark = pytest.mark.asyncio


async def ready(desk, people):
    journey = desk.begin(str(people))
    file_page.read(journey)
    await settled(desk)
    journey.roles = {"name": "identifiers", "age": "keys", "sex": "keys", "illness": "sensitive"}
    return journey


async def test_a_table_is_protected_its_pattern_shown_and_values_only_when_asked(
    people, tmp_path, monkeypatch
):
    async with opened(tmp_path, monkeypatch) as (user, desk):
        journey = await ready(desk, people)
        await user.open("/1/tables")
        asked = {
            "table": "town*illness",
            "measure": "",
            "hierarchies": {},
            "kind": "threshold",
            "numbers": [5],
            "rule": "threshold=5",
        }
        tables_page.protect(journey, asked, out=str(tmp_path / "table.csv"))
        await settled(desk)
        assert not journey.refusals.get("protect_table"), journey.refusals
        assert journey.table["safe"]
        shown = {
            cell["text"]
            for sheet in journey.table["sheets"]
            for row in sheet["rows"]
            for cell in row["cells"]
        }
        assert not any(sign.isdigit() for text in shown for sign in text), "the pattern shows no number"
        await user.should_see("The audit found nothing")
        assert "zq" not in texts_of(user)
        assert (tmp_path / "table.csv").is_file()
        user.find(marker="show-values").click()
        await settled(desk)
        assert "zq" in texts_of(user)
        user.find(marker="mask").click()
        await until(lambda: "zq" not in texts_of(user))  # what was shown is masked again
        tables_page.protect(journey, {**asked, "table": "nowhere*sex"})
        await settled(desk)
        assert "nowhere" in journey.refused("protect_table", "table")
        tables_page.protect(journey, {**asked, "kind": "dominance"})
        await settled(desk)
        assert "numbers" in journey.refused("protect_table", "rule")
        tables_page.protect(journey, asked, out=str(tmp_path / "table.csv"))
        await settled(desk)
        assert "already exists" in journey.refused("protect_table", "out")


async def test_a_table_is_signed_and_written_with_its_report_or_not_at_all(people, tmp_path, monkeypatch):
    async with opened(tmp_path, monkeypatch) as (user, desk):
        journey = await ready(desk, people)
        await user.open("/1/tables")
        next(iter(user.find(marker="dimensions").elements)).value = ["town", "sex"]
        user.find(marker="protect").click()
        await settled(desk)
        assert "tables.Threshold(3)" in texts_of(user), "the text to copy follows what was asked for"
        out = tmp_path / "people-table.csv"
        user.find(marker="sign-name").type("C. Tabler")
        user.find(marker="write").click()
        await settled(desk)
        assert "Choose a decision" in journey.refused("protect_table", "signed")
        await user.should_see("Choose a decision")
        assert not out.exists()
        journey.table_signed["decision"] = "no"
        user.find(marker="write").click()
        await settled(desk)
        report = tmp_path / "people-table-report.html"
        assert report.is_file()
        assert not out.exists(), "what is not to be released is not written"
        journey.table_signed["decision"] = "release"
        user.find(marker="write").click()
        await settled(desk)
        assert "already exists" in journey.refused("protect_table", "out"), "no report is replaced unasked"
        assert not out.exists()
        next(iter(user.find(marker="overwrite").elements)).value = True
        user.find(marker="write").click()
        await settled(desk)
        assert not journey.refusals.get("protect_table"), journey.refusals
        assert out.is_file()
        assert 'value="C. Tabler"' in report.read_text(encoding="utf-8")
        await user.should_see(f"Wrote {out}.")


async def test_findings_before_a_synthesis_are_shown_without_values(people, tmp_path, monkeypatch):
    async with opened(tmp_path, monkeypatch) as (user, desk):
        journey = await ready(desk, people)
        await user.open("/1/synthesize")
        user.find(marker="look").click()
        await settled(desk)
        assert not journey.refusals.get("look_before"), journey.refusals
        await user.should_see("How it is made")
        assert "zq" not in texts_of(user)
        synthesize_page.make(
            journey,
            accepted=[],
            declined=[],
            order=[],
            rules="",
            copies=0,
            rows=None,
            out="",
            overwrite=False,
        )
        await settled(desk)
        assert "copies" in journey.refused("make_copies", "copies")
        await user.should_see(journey.refused("make_copies", "copies"))


@pytest.mark.slow
async def test_synthetic_copies_are_made_compared_and_written(people, tmp_path, monkeypatch):
    async with opened(tmp_path, monkeypatch) as (user, desk):
        journey = await ready(desk, people)
        await user.open("/1/synthesize")
        synthesize_page.look(journey)
        await settled(desk)
        out = str(tmp_path / "made.csv")
        asked = {"accepted": [], "declined": [], "order": [], "rows": None, "out": out, "overwrite": False}
        synthesize_page.make(journey, **asked, rules="not toml", copies=2)
        await settled(desk)
        assert "TOML" in journey.refused("make_copies", "rules")
        synthesize_page.make(journey, **asked, rules="", copies=2)
        await settled(desk)
        assert not journey.refusals.get("make_copies"), journey.refusals
        assert (tmp_path / "made-1.csv").is_file()
        assert (tmp_path / "made-2.csv").is_file()
        await user.should_see("What went wrong first")


async def test_outputs_are_checked_decided_and_registered(tmp_path, monkeypatch):
    from discreet.microdata import Microdata
    from discreet.outputs import Session

    frame = pl.DataFrame({"sex": ["f", "m"] * 60, "town": ["a", "b", "c"] * 40, "pay": list(range(120))})
    queue = tmp_path / "queue"
    queue.mkdir()
    with Session(data=Microdata(frame), researcher="R. Searcher") as session:
        session.crosstab("sex", "town")
        session.save(queue / "first")
    async with opened(tmp_path, monkeypatch) as (user, desk):
        await user.open("/0/outputs")
        user.find(marker="folder").type(str(queue))
        user.find(marker="checker").type("C. Hecker")
        user.find(marker="check").click()
        await settled(desk)
        found = desk.outputs["found"]
        (package,) = found["packages"]
        (output,) = package["outputs"]
        await user.should_see("The queue")
        assert "cross table" not in texts_of(user), "outputs are masked until somebody asks"
        user.find(marker="show-values").click()
        await settled(desk)
        await user.should_see("first, output_1: cross table")
        bench = desk.review
        assert any("page Outputs" in one["what"] for one in bench.activity)
        outputs_page.decide(desk, bench, package["path"], output["name"], decision="reject", note="")
        await settled(desk)
        assert bench.refused("decide_output", "decision"), "a rejection needs its reason"
        outputs_page.decide(desk, bench, package["path"], output["name"], decision="reject", note="too small")
        await settled(desk)
        await settled(desk)
        (package,) = desk.outputs["found"]["packages"]
        assert package["outputs"][0]["decision"] == "reject"
        assert "1 decision" in package["register"]
        user.find(marker="folder").clear().type(str(tmp_path / "nowhere"))
        user.find(marker="check").click()
        await settled(desk)
        await user.should_see("There is no such file or folder")


async def test_a_finished_file_is_decided_and_open_again_when_it_changes(tmp_path, monkeypatch):
    folder = tmp_path / "files"
    folder.mkdir()
    file = folder / "means.csv"
    file.write_text("region,people\nNorth,360\nSouth,237\nIsles,3\n")
    async with opened(tmp_path, monkeypatch) as (user, desk):
        await user.open("/0/outputs")
        desk.outputs |= {"folder": str(folder), "checker": "C. Hecker"}
        outputs_page.check(desk, desk.review)
        await settled(desk)
        (found,) = desk.outputs["found"]["files"]
        assert (found["status"], found["decision"]) == ("fail", "open")
        user.find(marker="accept means.csv").click()
        await settled(desk)
        assert "Say why it is accepted" in desk.review.refused("decide_output", "decision")
        outputs_page.decide(
            desk, desk.review, found["path"], "means.csv", decision="reject", note="join Isles"
        )
        await settled(desk)
        await settled(desk)
        assert desk.outputs["found"]["files"][0]["decision"] == "reject"
        assert "1 decision," in desk.outputs["found"]["register"]
        await user.should_see("Decision: rejected")
        file.write_text("region,people\nNorth,360\nSouth and Isles,240\n")
        outputs_page.check(desk, desk.review)
        await settled(desk)
        assert desk.outputs["found"]["files"][0]["decision"] == "open", "another file, another decision"


async def test_a_budget_is_set_once_and_shown(people, tmp_path, monkeypatch):
    async with opened(tmp_path, monkeypatch) as (user, desk):
        journey = await ready(desk, people)
        await user.open("/1/budget")
        await settled(desk)
        await user.should_see("There is no ledger beside this file")
        user.find(marker="set-budget").click()
        await settled(desk)
        await user.should_see("budget (epsilon)")
        assert journey.budget["left"] == 1.0


async def test_two_files_two_tabs_theme_and_project(people, tmp_path, monkeypatch):
    other = tmp_path / "other.csv"
    other.write_text("a,b\n" + "1,2\n" * 20)
    async with opened(tmp_path, monkeypatch) as (user, desk):
        first = await ready(desk, people)
        desk.begin(str(other))
        await user.open("/2/file")
        await settled(desk)
        await user.should_see(marker="which-file")
        assert desk.journeys[2].rows == 20
        await user.open("/1/columns")
        await settled(desk)
        first.roles["town"] = "keys"  # what another tab did
        first.changed()
        await settled(desk)
        await user.should_see("age, sex, town")
        user.find(marker="theme").click()
        assert desk.dark is False
        place = first.save(tmp_path / "mine.discreet")
        again = desk.begin(str(place))
        await user.open(f"/{again.number}/file")
        await settled(desk)
        assert again.roles == first.roles
        assert again.rows == first.rows
        people.write_text(people.read_text().replace("zqAville", "zqEville"))
        third = desk.begin(str(place))
        await user.open(f"/{third.number}/file")
        await settled(desk)
        await user.should_see("its content has changed")


async def test_an_address_of_nothing_says_so(tmp_path, monkeypatch):
    async with opened(tmp_path, monkeypatch) as (user, _):
        await user.open("/no/such/place")
        await user.should_see("There is nothing here")
        await user.open("/77/risk")
        await user.should_see("Which file is to be released?")


async def test_a_table_takes_its_levels_from_a_dropped_file_and_its_text_to_copy_runs(
    people, tmp_path, monkeypatch
):
    from nicegui import ui

    from discreet.app.same_in_code import command_text, python_text

    levels = "country,town\nNorth,zqAville\nNorth,zqBville\nSouth,<b>zqCville\n"
    async with opened(tmp_path, monkeypatch) as (user, desk):
        journey = await ready(desk, people)
        await user.open("/1/tables")
        next(iter(user.find(marker="dimensions").elements)).value = ["town", "sex"]
        upload = next(iter(user.find(marker="drop town").elements))
        file = ui.upload.SmallFileUpload("levels.csv", "text/csv", levels.encode())
        await upload.handle_uploads([file])
        await user.should_see("Taken.", retries=50)
        held = next(iter(user.find(marker="levels town").elements)).value
        assert desk.folder.path.resolve() in Path(held).resolve().parents
        user.find(marker="protect").click()
        await settled(desk)
        assert not journey.refusals.get("protect_table"), journey.refusals
        assert journey.table["cells"] == 6 * 3, "three towns, two countries and the total by sex"
        await user.open("/1/columns")
        await user.open("/1/tables")
        again = next(iter(user.find(marker="levels town").elements))
        assert again.value == held, "what was filled in is there again"
        journey.place = str(people)
        said: dict[str, object] = {}
        exec(python_text(journey, "tables"), said)
        assert len(said["result"].table.cells) == journey.table["cells"]
        assert f"--hierarchy town={held}" in command_text(journey, "tables")
        tables_page.protect(journey, {**journey.tabulated, "hierarchies": {"town": str(tmp_path / "no.csv")}})
        await settled(desk)
        assert "no hierarchy file 'no.csv'" in journey.refused("protect_table", "hierarchies")


async def test_a_file_that_needs_no_plan_is_judged_and_released(tmp_path, monkeypatch):
    from discreet.app import release_page

    plain = tmp_path / "plain.csv"
    pl.DataFrame({"sex": ["f", "m"] * 60, "pay": [10 + i // 2 for i in range(120)]}).write_csv(plain)
    rules = tmp_path / "pairs.toml"
    rules.write_text('name = "Pairs"\n[rules]\n"k_anonymity.k" = { at_least = 2 }\n')
    async with opened(tmp_path, monkeypatch) as (user, desk):
        journey = desk.begin(str(plain))
        file_page.read(journey)
        await settled(desk)
        journey.roles, journey.policy = {"sex": "keys", "pay": "sensitive"}, str(rules)
        await user.open("/1/release")
        await user.should_see("go out as it is")
        journey.signed = {"name": "A. Clerk", "decision": "release"}
        release_page.write(journey)
        await settled(desk)
        assert not journey.refusals.get("write_release"), journey.refusals
        names = {path.name for path in (tmp_path / "plain-release").iterdir()}
        assert {"plain-release.csv", "release.html"} <= names
        assert "plan.toml" not in names, "there is none"
