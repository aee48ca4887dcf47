"""The page of a checker under attack: token, origin, path, size, broken requests, and two reviewers at once."""

from __future__ import annotations

import concurrent.futures
import contextlib
import re
import socket
import urllib.parse

import polars as pl
import pytest
from hypothesis import strategies as st

from discreet.outputs import Session, read_decisions, review, verify_register
from fuzz.campaign import fuzzed
from fuzz.harness import limited

SECRET = "qzx77kjw"


def packed(folder):
    frame = pl.DataFrame({"sex": ["f"] * 40 + ["m"] * 15})
    with Session(data=frame, researcher="R") as session:
        session.crosstab("sex", name="one")
        (folder / "secret.txt").write_text(SECRET)
        return session.save(folder / "pack.zip")


@pytest.fixture
def reviewer(tmp_path):
    with review(packed(tmp_path), wait=False, announce=lambda line: None) as running:
        yield running


def sent(reviewer, request: bytes, *, patience: float = 5) -> bytes:
    """Send bytes as they are and return all that comes back."""
    with socket.create_connection(("127.0.0.1", reviewer.port), timeout=patience) as line:
        with contextlib.suppress(OSError):
            line.sendall(request)
            line.shutdown(socket.SHUT_WR)
        found = b""
        with contextlib.suppress(OSError):
            while piece := line.recv(65536):
                found += piece
    return found


def code_of(answer: bytes) -> int:
    found = re.match(rb"HTTP/1\.[01] (\d{3})", answer)
    return int(found[1]) if found else 0


def get(reviewer, target: str | bytes, host: str | None = None) -> bytes:
    way = target if isinstance(target, bytes) else target.encode()
    name = f"127.0.0.1:{reviewer.port}" if host is None else host
    return sent(
        reviewer, b"GET " + way + b" HTTP/1.1\r\nHost: " + name.encode() + b"\r\nConnection: close\r\n\r\n"
    )


def posted(reviewer, body: bytes, **headers: str) -> bytes:
    named = {
        "Host": f"127.0.0.1:{reviewer.port}",
        "Content-Type": "application/x-www-form-urlencoded",
        "Content-Length": str(len(body)),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items() if value is not None)
    return sent(reviewer, f"POST {way(reviewer)}decide HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + body)


def way(reviewer) -> str:
    return urllib.parse.urlsplit(reviewer.url).path


def form(reviewer, **changes: str) -> bytes:
    fields = {
        "token": reviewer.form_token,
        "output": "one",
        "decision": "reject",
        "checker": "C",
        "note": "why",
    }
    return urllib.parse.urlencode({**fields, **changes}).encode()


def test_the_token_is_needed_whole(reviewer):
    token = way(reviewer).strip("/")
    assert code_of(get(reviewer, f"/{token}/")) == 200
    for guess in (
        "",
        token[:-1],
        token + "x",
        token.swapcase(),
        "%2e",
        token[::-1],
        f"x/{token}",
        f"{token}%00",
        f"..;/{token}",
    ):
        answer = get(reviewer, f"/{guess}/")
        assert code_of(answer) in (400, 404), guess
        assert b"Outputs to check" not in answer


@pytest.mark.parametrize(
    "tail",
    ["../secret.txt", "..%2fsecret.txt", "%2e%2e/%2e%2e/etc/passwd", "....//secret.txt", "/etc/passwd",
     "manifest.json",
     "results.xlsx", "one_0.csv", "secret.txt", "..\\secret.txt", "%00", "decide"],
)  # fmt: skip
def test_no_path_leads_to_a_file(reviewer, tail):
    answer = get(reviewer, way(reviewer) + tail)
    assert code_of(answer) in (400, 404)
    assert SECRET.encode() not in answer


def test_other_names_and_origins_are_refused(reviewer):
    for host in ("evil.example", "", f"127.0.0.1.evil.example:{reviewer.port}", "127.0.0.1", f"[::1]:{reviewer.port}",
                 f"evil@127.0.0.1:{reviewer.port}", f"127.0.0.1:{reviewer.port + 1}"):  # fmt: skip
        assert code_of(get(reviewer, way(reviewer), host)) in (400, 403), host
    for origin in ("null", "http://evil.example", f"http://127.0.0.1:{reviewer.port}.evil.example", "",
                   f"https://127.0.0.1:{reviewer.port}", f"http://evil@127.0.0.1:{reviewer.port}"):  # fmt: skip
        assert code_of(posted(reviewer, form(reviewer), Origin=origin)) == 403, origin
    assert code_of(sent(reviewer, f"GET {way(reviewer)} HTTP/1.0\r\n\r\n".encode())) == 403
    assert read_decisions(reviewer.register) == []


def test_a_form_without_its_token_or_of_another_kind_is_refused(reviewer):
    for changes in ({"token": ""}, {"token": reviewer.form_token[:-1]}, {"token": way(reviewer).strip("/")}):
        assert code_of(posted(reviewer, form(reviewer, **changes))) == 403
    for kind in ("text/plain", "application/json", "multipart/form-data; boundary=x", ""):
        assert code_of(posted(reviewer, form(reviewer), Content_Type=kind)) == 400
    assert read_decisions(reviewer.register) == []


@pytest.mark.parametrize("length", ["-1", "1e9", "9" * 5000, "70000", "\xb2", "", "0x10", "5 5", "5, 6"])
def test_a_size_that_cannot_be_meant_is_refused(reviewer, length, capfd):
    assert code_of(posted(reviewer, form(reviewer), Content_Length=length)) == 400
    assert read_decisions(reviewer.register) == []
    assert "Traceback" not in capfd.readouterr().err


def test_whatever_is_written_in_a_form_stays_one_escaped_line(tmp_path):
    hostile = '</td><script>alert(1)</script>\r\nSet-Cookie: x=1\n{"hash": 5}\u2028\'"\x00\x1b[31m'
    with review(packed(tmp_path), wait=False, announce=lambda line: None) as running:
        answer = posted(running, form(running, note=hostile, checker=hostile[:60]))
        assert b"<script" not in answer
        assert b"\r\nSet-Cookie" not in answer.split(b"\r\n\r\n")[0]
        assert verify_register(running.register) == len(read_decisions(running.register))
        assert b"<script" not in get(running, way(running))


def test_callers_that_hang_up_or_say_nothing_hold_up_nobody(reviewer, capfd):
    idle = [socket.create_connection(("127.0.0.1", reviewer.port)) for _ in range(30)]
    for line in idle[:15]:
        line.sendall(b"POST / HTTP/1.1\r\nContent-Le")
    for _ in range(10):
        with socket.create_connection(("127.0.0.1", reviewer.port)) as gone:
            gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
            gone.sendall(f"GET {way(reviewer)} HTTP/1.1\r\nHost: 127.0.0.1:{reviewer.port}\r\n\r\n".encode())
    assert code_of(get(reviewer, way(reviewer))) == 200
    for line in idle:
        line.close()
    printed = capfd.readouterr()
    assert "Traceback" not in printed.err
    assert reviewer.form_token not in printed.out + printed.err


def test_two_reviewers_at_once_lose_no_decision(tmp_path):
    """Two pages of one package, each asked by several callers at the same moment: one whole chain."""
    package = packed(tmp_path)
    quiet = {"wait": False, "announce": lambda line: None}
    with review(package, **quiet) as one, review(package, **quiet) as two:
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(
                pool.map(
                    lambda number: code_of(
                        posted([one, two][number % 2], form([one, two][number % 2], note=f"no {number}"))
                    ),
                    range(16),
                )
            )
        assert answers == [200] * 16
        assert verify_register(one.register) == 16
        assert {entry["note"] for entry in read_decisions(two.register)} == {
            f"no {number}" for number in range(16)
        }
        # The token of one page is worth nothing on the other.
        assert code_of(posted(one, form(two))) == 403


_WORDS = st.sampled_from(
    [b"GET ", b"POST ", b"PUT ", b"HEAD ", b"OPTIONS ", b"\r\n", b" HTTP/1.1", b" HTTP/9", b"Host: x",
     b"Content-Length: 9",
     b"Transfer-Encoding: chunked", b"Expect: 100-continue", b"/", b"\x00", b"\xff", b"a" * 70_000, b": ", b"Host:",
     b"\n"]
)  # fmt: skip


@fuzzed(st.lists(st.one_of(_WORDS, st.binary(max_size=12)), max_size=10).map(b"".join), quick=15, share=0.01)
def test_bytes_that_are_no_request_get_nothing(request: bytes) -> None:
    with limited():
        answer = sent(_running(), request)
    assert code_of(answer) != 200
    assert b"Outputs to check" not in answer


_PAGES: list[object] = []


def _running():
    """One page for all broken requests; it lasts as long as this process."""
    if not _PAGES:
        import tempfile
        from pathlib import Path

        _PAGES.append(review(packed(Path(tempfile.mkdtemp())), wait=False, announce=lambda line: None))
    return _PAGES[0]
