from __future__ import annotations

import re
import urllib.error
import urllib.parse
import urllib.request

import polars as pl
import pytest

from discreet.core.errors import InputError, ParameterError
from discreet.outputs import Session, read_decisions, review, verify_register

LOCAL = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@pytest.fixture
def package(tmp_path):
    frame = pl.DataFrame({"sex": ["f"] * 40 + ["<script>"] * 5})
    with Session(data=frame, researcher="R") as s:
        s.crosstab("sex", name="one")
        picture = tmp_path / "plot.png"
        picture.write_bytes(b"\x89PNG")
        s.custom(picture, name="two")
        return s.save(tmp_path / "pack.zip")


@pytest.fixture
def reviewer(package):
    with review(package, wait=False, announce=lambda line: None) as running:
        yield running


def get(url, **headers):
    return LOCAL.open(urllib.request.Request(url, headers=headers), timeout=10)


def post(reviewer, headers=None, **form):
    token = re.search(r'name="token" value="([^"]+)"', get(reviewer.url).read().decode())[1]
    body = urllib.parse.urlencode({"token": token, **form}).encode()
    request = urllib.request.Request(f"{reviewer.url}decide", data=body, headers=headers or {})
    return LOCAL.open(request, timeout=10)


def code(call):
    with pytest.raises(urllib.error.HTTPError) as caught:
        call()
    return caught.value.code


def test_the_page_shows_outputs_escaped_and_loads_nothing(reviewer):
    answer = get(reviewer.url)
    page = answer.read().decode()
    assert "&lt;script&gt;" in page
    assert "<script" not in page
    assert "below the threshold" in page
    assert not re.search(r"(src|href)='(?!data:|#)", page)
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Cache-Control"] == "no-store"


def test_a_decision_is_written_to_the_register(reviewer):
    page = post(reviewer, output="one", decision="reject", checker="C. Hecker", note="small").read().decode()
    assert "reject" in page
    post(reviewer, output="two", decision="accept", checker="C. Hecker", note="a map of regions")
    entries = read_decisions(reviewer.register)
    assert [(e["output"], e["decision"], e["checker"]) for e in entries] == [
        ("one", "reject", "C. Hecker"),
        ("two", "accept", "C. Hecker"),
    ]
    assert entries[0]["package"] == reviewer.package.checksum
    assert verify_register(reviewer.register) == 2


def test_it_listens_on_this_machine_only_and_needs_the_token(reviewer):
    assert reviewer.url.startswith("http://127.0.0.1:")
    base = f"http://127.0.0.1:{reviewer.port}/"
    assert code(lambda: get(base)) == 404
    assert code(lambda: get(base + "guess/")) == 404
    assert code(lambda: get(reviewer.url + "manifest.json")) == 404


def test_other_hosts_origins_and_forms_are_refused(reviewer):
    form = {"output": "one", "decision": "accept", "checker": "C"}
    assert code(lambda: get(reviewer.url, Host="evil.example")) == 403
    assert code(lambda: post(reviewer, headers={"Origin": "http://evil.example"}, **form)) == 403
    assert code(lambda: post(reviewer, **{**form, "token": "wrong"})) == 403
    assert code(lambda: post(reviewer, headers={"Content-Type": "text/plain"}, **form)) == 400
    assert read_decisions(reviewer.register) == []


def test_a_decision_that_is_incomplete_is_told_and_not_written(reviewer):
    assert code(lambda: post(reviewer, output="one", decision="reject", checker="C")) == 400
    assert code(lambda: post(reviewer, output="nine", decision="accept", checker="C")) == 400
    assert code(lambda: post(reviewer, output="one", decision="maybe", checker="C")) == 400
    assert code(lambda: post(reviewer, output="one", decision="accept", checker="C")) == 400
    assert code(lambda: post(reviewer, output="two", decision="accept", checker="C", note=" ")) == 400
    assert read_decisions(reviewer.register) == []


def test_a_register_that_was_tampered_with_stops_the_review(package, reviewer):
    post(reviewer, output="one", decision="accept", checker="C", note="public knowledge")
    reviewer.register.write_text(reviewer.register.read_text().replace("accept", "reject"))
    with pytest.raises(InputError, match="tampered"):
        review(package, wait=False)
    with pytest.raises(ParameterError, match="port"):
        review(package, 70000)
