"""The whole journey in a real browser, at the width of a desk and of a phone, with pictures to look at.

Whole jobs as a person does them are in ``test_browser_jobs.py``. The pictures go to the folder that
DISCREET_SCREENSHOTS names, else to the temporary folder of the test.
"""

from __future__ import annotations

import time

import pytest
from app.browsing import CHROMIUM, DRIVER, WITHOUT

from discreet.datasets import adult
from discreet.io import write

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not (CHROMIUM and DRIVER), reason=WITHOUT)]


@pytest.mark.parametrize("page", [(1280, False), (375, False), (1280, True)], indirect=True)
def test_from_a_messy_file_to_a_signed_release(page, pictures, tmp_path):
    rows = [
        f"zqperson{i};{20 + i % 40};{'mf'[i % 2]};{('A', 'B', '<script>alert(1)</script>')[i % 3]};{1000 + i % 23},5"
        for i in range(240)
    ]
    (tmp_path / "messy.csv").write_text("name;age;sex;town;pay\n" + "\n".join(rows))
    page.readable(pictures, "first")
    page.type("File or database address", str(tmp_path / "messy.csv"))
    page.click("Open")
    page.wait(lambda: page.sees("Next: the columns"))
    assert page.sees("semicolon")
    page.readable(pictures, "file")
    page.click("Next: the columns")
    page.wait(lambda: page.sees("people in the smallest group"))
    page.readable(pictures, "columns")
    page.click("Next: the risk")
    page.wait(lambda: page.sees("Key numbers"))
    assert "zqperson" not in page.text()
    page.readable(pictures, "risk")
    page.click("Next: protect it")
    page.click("Add the step: drop identifiers")
    page.wait(lambda: page.sees("What step 1 does"))
    page.click("Add the step")
    page.wait(lambda: page.sees("What step 2 does"))
    page.click("Preview changed cells")
    page.idle()
    page.readable(pictures, "protect")
    page.click("Next: compare")
    page.wait(lambda: page.sees("What went wrong first"))
    page.readable(pictures, "compare")
    page.click("Next: release it")
    page.wait(lambda: page.sees("Sign-off"))
    page.type("Name", "A. Clerk")
    page.choose("Decision", "Release with conditions")
    page.type("Remarks and conditions", "For accredited researchers only.")
    page.click("Write the release")
    page.wait(lambda: page.sees("Everything is in"))
    page.readable(pictures, "release")
    assert "zqperson" not in (tmp_path / "messy-release" / "messy-release.csv").read_text()
    assert 'value="A. Clerk"' in (tmp_path / "messy-release" / "release.html").read_text()
    for name in ("synthesize", "tables", "outputs", "budget"):
        page.go(name)
        page.idle()
        page.readable(pictures, name)


@pytest.mark.parametrize("page", [(1280, False), (375, False)], indirect=True)
def test_the_census_file_goes_all_the_way_while_the_page_answers(page, pictures, tmp_path):
    page.click("Try the census file")
    page.wait(lambda: page.sees("Next: the columns"))
    page.click("Next: the columns")
    page.click("Next: the risk")
    # How fast is measured where the machine is known (bench/page_answers.py); here it counts that it answers at all.
    answered = 0
    while not page.sees("Key numbers"):
        assert (
            page.script("return fetch('/assets/mark.svg', {cache: 'no-store'}).then((r) => r.status)") == 200
        )
        answered += page.sees("The risk is being measured")
        time.sleep(0.3)
    assert answered > 2, "the page answered while the file was being assessed"
    page.readable(pictures, "census-risk")
    page.click("Put these steps into the plan")
    page.wait(lambda: page.sees("What step 1 does"))
    page.click("Next: compare")
    page.wait(lambda: page.sees("What went wrong first"))
    page.readable(pictures, "census-compare")
    page.click("Next: release it")
    page.type("Name", "A. Clerk")
    page.choose("Decision", "Do not release")
    page.click("Write the release")
    page.wait(lambda: page.sees("Everything is in"))
    page.readable(pictures, "census-release")
    assert {path.suffix for path in (tmp_path / "adult-release").iterdir()} >= {".html", ".toml", ".json"}
    assert not list((tmp_path / "adult-release").glob("adult*")), "what is not released is not written"


@pytest.mark.parametrize("page", [(1280, False), (375, False)], indirect=True)
def test_a_bad_file_says_what_to_do(page, pictures, tmp_path):
    with (tmp_path / "huge.csv").open("wb") as huge:
        huge.truncate(4 * 1024**3)  # takes no room on the disk
    page.drop(tmp_path / "huge.csv")
    page.wait(lambda: page.sees("The file is larger than this page takes (2,048 MB). Point to it instead"))
    page.readable(pictures, "too-large")
    (tmp_path / "bad.csv").write_bytes(b"a,b\n1,2\n3,4,5,6\n\x00\xff")
    page.type("File or database address", str(tmp_path / "bad.csv"))
    page.click("Open")
    page.wait(lambda: page.sees("Read it another way"))
    page.readable(pictures, "bad")


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
