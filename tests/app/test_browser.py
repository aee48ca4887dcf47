"""The whole journey in a real browser, at the width of a desk and of a phone, with pictures to look at.

The pictures go to the folder that DISCREET_SCREENSHOTS names, else to the temporary folder of the test.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import polars as pl
import pytest
from app.browsing import CHROMIUM, DRIVER, WITHOUT, Page

from discreet.datasets import adult
from discreet.io import read, write
from discreet.microdata import Microdata

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not (CHROMIUM and DRIVER), reason=WITHOUT)]


@pytest.fixture
def pictures(tmp_path):
    folder = Path(os.environ.get("DISCREET_SCREENSHOTS") or tmp_path / "pictures")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def page(tmp_path, request):
    width, dark = getattr(request, "param", (1280, False))
    opened = Page(tmp_path, width, dark=dark)
    yield opened
    opened.close()


def readable(page, pictures, name):
    """Keep a picture; nothing may hinder a reader, and the browser may have nothing to complain about."""
    page.shot(pictures, f"{page.width}-{name}")
    assert not page.faults(), name
    assert not page.complaints(), name


@pytest.mark.parametrize("page", [(1280, False), (375, False), (1280, True)], indirect=True)
def test_from_a_messy_file_to_a_signed_release(page, pictures, tmp_path):
    rows = [
        f"zqperson{i};{20 + i % 40};{'mf'[i % 2]};{('A', 'B', '<script>alert(1)</script>')[i % 3]};{1000 + i % 23},5"
        for i in range(240)
    ]
    (tmp_path / "messy.csv").write_text("name;age;sex;town;pay\n" + "\n".join(rows))
    readable(page, pictures, "first")
    page.type("File or database address", str(tmp_path / "messy.csv"))
    page.click("Open")
    page.wait(lambda: page.sees("Next: the columns"))
    assert page.sees("semicolon")
    readable(page, pictures, "file")
    page.click("Next: the columns")
    page.wait(lambda: page.sees("people in the smallest group"))
    readable(page, pictures, "columns")
    page.click("Next: the risk")
    page.wait(lambda: page.sees("Key numbers"))
    assert "zqperson" not in page.text()
    readable(page, pictures, "risk")
    page.click("Next: protect it")
    page.click("Add the step: drop identifiers")
    page.wait(lambda: page.sees("What step 1 does"))
    page.click("Add the step")
    page.wait(lambda: page.sees("What step 2 does"))
    page.click("Preview changed cells")
    page.idle()
    readable(page, pictures, "protect")
    page.click("Next: compare")
    page.wait(lambda: page.sees("What went wrong first"))
    readable(page, pictures, "compare")
    page.click("Next: release it")
    page.wait(lambda: page.sees("Sign-off"))
    page.type("Name", "A. Clerk")
    page.choose("Decision", "Release with conditions")
    page.type("Remarks and conditions", "For accredited researchers only.")
    page.click("Write the release")
    page.wait(lambda: page.sees("Everything is in"))
    readable(page, pictures, "release")
    assert "zqperson" not in (tmp_path / "messy-release" / "messy-release.csv").read_text()
    assert 'value="A. Clerk"' in (tmp_path / "messy-release" / "release.html").read_text()
    for name in ("synthesize", "tables", "outputs", "budget"):
        page.go(name)
        page.idle()
        readable(page, pictures, name)


def test_the_census_file_is_assessed_while_the_page_answers(page, pictures):
    page.click("Try the census file")
    page.wait(lambda: page.sees("Next: the columns"))
    page.click("Next: the columns")
    page.click("Next: the risk")
    slowest = 0.0
    for _ in range(10):
        began = time.monotonic()
        page.script("return fetch('/assets/mark.svg', {cache: 'no-store'}).then((r) => r.status)")
        slowest = max(slowest, time.monotonic() - began)
        time.sleep(0.3)
    page.wait(lambda: page.sees("Key numbers"))
    readable(page, pictures, "census-risk")
    assert slowest < 2.0, "also on a machine that is busy with other things"


def test_an_spss_survey_keeps_weights_and_households(page, pictures, tmp_path):
    pytest.importorskip("pyreadstat", reason="the extra 'files' is not installed")
    people = pl.DataFrame(
        {
            "hid": [i // 3 for i in range(300)],
            "age": [18 + (i * 7) % 60 for i in range(300)],
            "sex": [1 + i % 2 for i in range(300)],
            "weight": [100.0 + i % 7 for i in range(300)],
            "income": [1000.0 + 13 * (i % 91) for i in range(300)],
        }
    )
    write(Microdata(people), tmp_path / "survey.sav")
    page.type("File or database address", str(tmp_path / "survey.sav"))
    page.click("Open")
    page.wait(lambda: page.sees("Next: the columns"))
    page.click("Next: the columns")
    page.wait(lambda: page.sees("Survey weight"))
    assert page.sees("Household number")
    readable(page, pictures, "spss-columns")
    assert read(tmp_path / "survey.sav").columns == tuple(people.columns)


def test_a_bad_file_says_what_to_do(page, pictures, tmp_path):
    (tmp_path / "bad.csv").write_bytes(b"a,b\n1,2\n3,4,5,6\n\x00\xff")
    page.type("File or database address", str(tmp_path / "bad.csv"))
    page.click("Open")
    page.wait(lambda: page.sees("Read it another way"))
    readable(page, pictures, "bad")


def test_a_page_survives_the_loss_of_its_connection(page, tmp_path):
    write(adult(), tmp_path / "adult.csv")
    page.type("File or database address", str(tmp_path / "adult.csv"))
    page.click("Open")
    page.browser.execute_cdp_cmd("Network.enable", {})
    lost = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    page.browser.execute_cdp_cmd("Network.emulateNetworkConditions", lost)
    time.sleep(3)
    back = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    page.browser.execute_cdp_cmd("Network.emulateNetworkConditions", back)
    page.browser.refresh()
    page.wait(lambda: page.sees("Next: the columns"))
    assert page.sees("48,842")
