"""Whole jobs in a real browser, each as a person does it who has never seen the tool: to the signed release.

A person needs about ten seconds for a button or a field; forty of them leave three of ten minutes to read. The pictures
go to the folder that DISCREET_SCREENSHOTS names, else to the temporary folder of the test.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from app.browsing import CHROMIUM, DRIVER, WITHOUT

from discreet.io import read, write
from discreet.microdata import Microdata

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not (CHROMIUM and DRIVER), reason=WITHOUT)]
MOST_ACTIONS = 40
TOWNS = ("Wörgl", "Bruck a. d. Mur", "Zürs", "Göfis", "Übelbach")


def messy(folder: Path) -> Path:
    """A file as spreadsheets write it: a line for the separator, Windows letters, decimal commas, codes for missing."""
    draw = np.random.default_rng(19)
    lines = ["sep=;", "Name;Geburtsdatum;Geschlecht;Gemeinde;Familienstand;Einkommen;Raucher"]
    for i in range(900):
        day = f"{1 + i % 28:02d}.{1 + i % 12:02d}.{1950 + int(draw.integers(0, 50))}"
        pay = f"{900 + float(draw.gamma(3, 500)):.2f}".replace(".", ",") if i % 17 else "-99"
        told = (
            f"zqMüller {i}",
            day,
            "wm"[int(draw.integers(0, 2))],
            TOWNS[int(draw.integers(0, 5))],
            ("ledig", "verheiratet", "geschieden", "verwitwet")[
                int(draw.choice(4, p=[0.4, 0.42, 0.12, 0.06]))
            ],
            pay,
            ("ja", "nein", "")[int(draw.choice(3, p=[0.25, 0.65, 0.1]))],
        )
        lines.append(";".join(told))
    file = folder / "Erhebung 2025.csv"
    file.write_bytes(("\r\n".join(lines) + "\r\n").encode("cp1252"))
    return file


def test_a_messy_file_is_dropped_protected_and_signed(page, pictures, tmp_path):
    page.drop(messy(tmp_path))
    page.wait(lambda: page.sees("Next: the columns"))
    assert page.sees("semicolon")
    assert page.sees("Windows-1252")
    page.readable(pictures, "job-messy-1-file")
    page.click("Next: the columns")
    page.wait(lambda: page.sees("people in the smallest group"))
    page.readable(pictures, "job-messy-2-columns")
    page.click("Read -99 as missing, in every column")
    page.wait(lambda: page.sees("Next: the columns"))
    page.click("Next: the columns")
    page.wait(lambda: page.sees("people in the smallest group"))
    page.click("Next: the risk")
    page.wait(lambda: page.sees("Key numbers"))
    page.readable(pictures, "job-messy-3-risk")
    page.click("Next: protect it")
    page.click("Suggest plans")
    page.wait(lambda: page.sees("The plan to take"))
    page.readable(pictures, "job-messy-4-suggested")
    page.click("Take this plan")
    page.wait(lambda: page.sees("What step 1 does"))
    page.readable(pictures, "job-messy-5-plan")
    page.click("Next: compare")
    page.wait(lambda: page.sees("What went wrong first"))
    page.readable(pictures, "job-messy-6-compare")
    page.click("Next: release it")
    page.type("Name", "A. Clerk")
    page.type("Role", "Head of statistics")
    page.choose("Decision", "Release with conditions")
    page.click("Write the release")
    page.wait(lambda: page.sees("State the conditions under remarks"))
    page.readable(pictures, "job-messy-7-refused")
    page.type("Remarks and conditions", "For teaching only.")
    page.click("Write the release")
    page.wait(lambda: page.sees("Everything is in"))
    page.readable(pictures, "job-messy-8-written")
    assert "zqM" not in page.text()
    folder = tmp_path / "Erhebung 2025-release"
    released = (folder / "Erhebung 2025-release.csv").read_bytes()
    assert b"zqM" not in released
    report = (folder / "release.html").read_text(encoding="utf-8")
    assert 'value="A. Clerk"' in report
    assert "For teaching only." in report
    assert "zqM" not in report
    assert {"log.json", "plan.toml", "script.py", "activity.txt"} <= {path.name for path in folder.iterdir()}
    assert page.actions <= MOST_ACTIONS


def survey(folder: Path) -> Path:
    """A household survey with weights, as SPSS has it."""
    draw = np.random.default_rng(7)
    home = np.repeat(np.arange(420), draw.integers(1, 5, 420))
    n = len(home)
    frame = pl.DataFrame(
        {
            "pid": np.arange(1, n + 1),
            "hid": home,
            "region": draw.integers(1, 5, 420)[home],
            "age": draw.integers(16, 90, n),
            "sex": draw.integers(1, 3, n),
            "marital": draw.choice(4, n, p=[0.35, 0.45, 0.12, 0.08]) + 1,
            "pweight": (80 + 60 * draw.random(420))[home].round(4),
            "income": draw.gamma(2.5, 9000, n).round(0),
        }
    )
    file = folder / "survey.sav"
    write(Microdata(frame), file)
    return file


@pytest.mark.parametrize("page", [(1280, False), (375, False)], indirect=True)
def test_a_survey_with_weights_and_households_is_protected_and_signed(page, pictures, tmp_path):
    pytest.importorskip("pyreadstat", reason="the extra 'files' is not installed")
    file = survey(tmp_path)
    page.type("File or database address", str(file))
    page.click("Open")
    page.wait(lambda: page.sees("Next: the columns"))
    page.readable(pictures, "job-spss-1-file")
    page.click("Next: the columns")
    page.wait(lambda: page.sees("people in the smallest group"))
    assert page.sees("Survey weight")
    assert page.sees("Household number")
    page.readable(pictures, "job-spss-2-columns")
    page.click("Next: the risk")
    page.wait(lambda: page.sees("Key numbers"))
    page.readable(pictures, "job-spss-3-risk")
    page.click("Next: protect it")
    page.click("Suggest plans")
    page.wait(lambda: page.sees("The plan to take"))
    page.click("Take this plan")
    page.wait(lambda: page.sees("What step 1 does"))
    page.idle()
    page.readable(pictures, "job-spss-4-plan")
    page.click("Next: compare")
    page.wait(lambda: page.sees("What went wrong first"))
    page.readable(pictures, "job-spss-5-compare")
    page.click("Next: release it")
    page.type("Name", "B. Officer")
    page.choose("Decision", "Release with conditions")
    page.type("Remarks and conditions", "Under contract, in the safe room.")
    page.click("Write the release")
    page.wait(lambda: page.sees("Everything is in"))
    page.readable(pictures, "job-spss-6-written")
    folder = tmp_path / "survey-release"
    released = read(folder / "survey-release.sav")
    assert {"pweight", "hid"} <= set(released.columns), "weights and households go out with the records"
    assert "pid" not in released.columns
    assert released.frame.lazy().collect().height == read(file).frame.lazy().collect().height
    assert 'value="B. Officer"' in (folder / "release.html").read_text(encoding="utf-8")
    assert page.actions <= MOST_ACTIONS


def firms() -> Path:
    """The enterprises of rtauargus: activity and region, each with coarser levels."""
    folder = Path(os.environ.get("DISCREET_TEST_DATA", ""))
    file = folder / "rtauargus_indiv_dt.csv.gz"
    if not file.is_file():
        pytest.skip("DISCREET_TEST_DATA names no folder with the public enterprise file")
    return file


def test_a_hierarchical_table_is_protected_audited_and_signed(page, pictures, tmp_path):
    source = pl.read_csv(firms())
    source.write_csv(tmp_path / "firms.csv", separator=";")
    levels = (
        source.select("A21", "A10").unique().sort("A21").rename({"A21": "section", "A10": "broad section"})
    )
    levels.write_csv(tmp_path / "sections.csv")
    page.drop(tmp_path / "firms.csv")
    page.wait(lambda: page.sees("Next: the columns"))
    page.click("Tables")
    page.wait(lambda: page.sees("Choose what stands in the rows and columns"))
    page.readable(pictures, "job-table-1-empty")
    page.choose("Rows and columns", "A21")
    page.click("NUTS2", among=".q-menu .q-item")
    page.press("\ue00c")  # Escape closes the list
    page.choose("Sum of", "TURNOVER")
    page.choose("A cell is sensitive if", "few units make up most of it (dominance)")
    page.click("Hierarchies of rows and columns")
    page.drop(tmp_path / "sections.csv", place=0)
    page.wait(lambda: page.sees("Taken."))
    page.choose("Coarser columns of NUTS2", "NUTS1")
    page.press("\ue00c")
    page.readable(pictures, "job-table-2-asked")
    page.click("Protect the table")
    page.wait(lambda: page.sees("The audit found nothing"))
    page.readable(pictures, "job-table-3-protected")
    page.type("Name", "C. Tabler")
    page.choose("Decision", "Release")
    page.click("Write the table")
    page.wait(lambda: page.sees("Wrote "))
    page.readable(pictures, "job-table-4-written")
    published = pl.read_csv(tmp_path / "firms-table.csv")
    hidden = published.filter(pl.col("status") == "suppressed")
    assert hidden.height
    assert hidden["TURNOVER"].null_count() == hidden.height
    broad = set(levels["broad section"].to_list()) - set(levels["section"].to_list())
    assert broad & set(published["A21"].to_list()), "the coarser levels stand in the table"
    report = (tmp_path / "firms-table-report.html").read_text(encoding="utf-8")
    assert 'value="C. Tabler"' in report
    assert page.actions <= MOST_ACTIONS


def queue(folder: Path) -> Path:
    """Packages of two researchers and a file that somebody laid beside them."""
    from discreet.outputs import Session

    draw = np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "sex": draw.choice(["f", "m"], 600),
            "smoker": draw.choice(["yes", "no"], 600),
            "region": draw.choice(["North", "South", "Isles"], 600, p=[0.6, 0.395, 0.005]),
            "pay": draw.gamma(3, 900, 600).round(2),
        }
    )
    place = folder / "queue"
    place.mkdir()
    for name, columns in (("safe", ("sex", "smoker")), ("small-cells", ("region", "sex"))):
        with Session(data=Microdata(frame), researcher=f"R. {name.title()}") as session:
            session.crosstab(*columns)
            session.save(place / name)
    (place / "note.csv").write_text("region,people\nNorth,360\nSouth,237\nIsles,3\n")
    return place


def test_a_folder_of_outputs_is_decided_in_the_browser(page, pictures, tmp_path):
    place = queue(tmp_path)
    page.click("Outputs")
    page.wait(lambda: page.sees("Outputs to check"))
    page.type("Package, or folder of packages or files", str(place))
    page.type("Your name", "C. Hecker")
    page.click("Check")
    page.wait(lambda: page.sees("The queue"))
    page.readable(pictures, "job-outputs-1-queue")
    assert "Isles" not in page.text(), "outputs are masked until somebody asks"
    page.click("Show the outputs (this is noted)")
    page.wait(lambda: page.sees("Isles"))
    page.readable(pictures, "job-outputs-2-shown")
    page.click("Reject note.csv")
    page.wait(lambda: page.sees("Say why it is rejected"))
    page.readable(pictures, "job-outputs-3-refused")
    page.type("Reason or question about note.csv", "The Isles have three people: join them with the South.")
    page.click("Reject note.csv")
    page.wait(lambda: page.sees("Decision: rejected"))
    page.idle()
    # The first package stands first, and passes every check.
    page.click("Accept output_1")
    page.wait(lambda: page.sees("Decision: accepted"))
    page.idle()
    page.readable(pictures, "job-outputs-4-decided")
    decided = {
        path.name: json.loads(path.read_text(encoding="utf-8").splitlines()[-1])
        for path in place.glob("*.jsonl")
    }
    assert {name: (one["decision"], one["checker"]) for name, one in decided.items()} == {
        "finished-files.decisions.jsonl": ("reject", "C. Hecker"),
        "safe.decisions.jsonl": ("accept", "C. Hecker"),
    }
    assert page.actions <= MOST_ACTIONS


def test_the_keyboard_alone_leads_to_a_release(page, pictures, tmp_path):
    from selenium.webdriver.common.keys import Keys

    rows = [f"zqperson{i},{20 + 5 * (i % 8)},{'mf'[i % 2]},{1000 + i % 37}" for i in range(240)]
    (tmp_path / "people.csv").write_text("name,age,sex,pay\n" + "\n".join(rows))
    page.tab_to("Skip to the content")
    page.press(Keys.ENTER)
    page.tab_to("File or database address")
    page.press(str(tmp_path / "people.csv"), Keys.ENTER)
    page.wait(lambda: page.sees("Next: the columns"))
    page.tab_to("Next: the columns")
    page.press(Keys.ENTER)
    page.wait(lambda: page.sees("people in the smallest group"))
    page.tab_to("Role of pay")
    page.press(Keys.ENTER, Keys.ARROW_UP, Keys.ENTER)
    page.shot(pictures, "keyboard-1-role")
    page.press(Keys.ESCAPE)
    page.tab_to("Next: the risk")
    page.press(Keys.SPACE)
    page.wait(lambda: page.sees("Key numbers"))
    page.tab_to("Put these steps into the plan")
    page.press(Keys.SPACE)
    page.wait(lambda: page.sees("What step 1 does"))
    page.idle()
    page.tab_to("Next: compare")
    page.press(Keys.ENTER)
    page.wait(lambda: page.sees("What went wrong first"))
    page.tab_to("Next: release it")
    page.press(Keys.ENTER)
    page.wait(lambda: page.sees("Sign-off"))
    page.tab_to("Name")
    page.press("A. Clerk")
    page.tab_to("Decision")
    page.press(Keys.ENTER, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER)
    page.tab_to("Remarks and conditions")
    page.press("In the safe room.")
    page.shot(pictures, "keyboard-2-signed")
    page.tab_to("Write the release")
    page.press(Keys.ENTER)
    page.wait(lambda: page.sees("Everything is in"))
    page.shot(pictures, "keyboard-3-written")
    folder = tmp_path / "people-release"
    assert "zqperson" not in (folder / "people-release.csv").read_text()
    assert 'value="A. Clerk"' in (folder / "release.html").read_text(encoding="utf-8")
    assert json.loads((folder / "log.json").read_text(encoding="utf-8"))
