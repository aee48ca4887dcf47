"""The security list again, on a page as it is started: what a probe from outside and a file that is too large meet."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

pytest.importorskip("nicegui", reason="the extra 'app' (NiceGUI) is not installed")

MEGABYTE = 1024**2
_LISTENS = "0A"


class Server:
    """A running page that takes at most one megabyte, and the folder that it has for uploads."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.log = home / "page.log"
        # A collector of traces that the environment names, as that of an office may: it must never be called.
        self.collector = socket.create_server(("127.0.0.1", 0))
        self.collector.setblocking(False)
        told = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self.collector.getsockname()[1]}",
            "FASTAPI_OTEL_AUTO_CONFIGURE": "true",
            "TMPDIR": str(home),
        }
        plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
        with self.log.open("w") as written:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "discreet", "app", "--no-browser", "--max-upload", "1"],
                stdout=written,
                stderr=written,
                cwd=home,
                env={**plain, **told},
            )
        for _ in range(1200):
            found = re.search(r"http://127\.0\.0\.1:(\d+)(/enter/\S+)", self.log.read_text())
            if found:
                break
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.1)
        assert found
        self.port, self.entrance = int(found[1]), found[2]
        self.address = f"http://127.0.0.1:{self.port}"
        self.client = httpx.Client(base_url=self.address, timeout=60)

    @property
    def folders(self) -> list[Path]:
        return list(self.home.glob("discreet-page-*"))

    def kept(self) -> int:
        """Return how many bytes of uploads lie in the private folder."""
        return sum(
            path.stat().st_size for folder in self.folders for path in folder.rglob("*") if path.is_file()
        )

    def end(self) -> None:
        self.client.close()
        self.collector.close()
        self.process.terminate()
        self.process.wait(timeout=60)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("page")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left = home / "discreet-page-left"
    left.mkdir()
    (left / "owner").write_text(str(gone.pid))
    (left / "upload.csv").write_text("secret")
    running = Server(home)
    assert not left.exists(), "what a killed page has left is gone when the next one has started"
    assert running.client.get("/").status_code == 403, "nobody has entered yet"
    first = running.client.get(running.entrance)
    assert first.status_code == 303
    assert {"HttpOnly", "SameSite=Strict"} <= set(first.headers["set-cookie"].split("; "))
    yield running
    running.end()
    assert running.folders == [], "uploads are gone with the page"


def sockets(family: str = "tcp") -> list[list[str]]:
    place = Path("/proc/net") / family
    if not place.is_file():
        pytest.skip("this system does not list its sockets under /proc/net")
    return [line.split() for line in place.read_text().splitlines()[1:]]


def test_it_listens_on_this_machine_only(server):
    ends = f":{server.port:04X}"
    heard = [row[1] for row in sockets() if row[3] == _LISTENS and row[1].endswith(ends)]
    assert heard == [f"0100007F{ends}"], "127.0.0.1 and no other address"
    assert not [row for row in sockets("tcp6") if row[3] == _LISTENS and row[1].endswith(ends)]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(
                ("192.0.2.1", 9)
            )  # sends nothing; tells by which address others would reach this machine
        except OSError:
            return
        outside = probe.getsockname()[0]
    if not outside.startswith("127."):
        with pytest.raises(OSError, match=r"refused|timed out"):
            socket.create_connection((outside, server.port), timeout=5)


def test_its_address_works_once(server):
    assert httpx.get(server.address + server.entrance).status_code == 403
    assert httpx.get(server.address + "/0/file").status_code == 403
    assert server.client.get("/0/file").status_code == 200


def test_a_name_that_points_here_does_not_open_it(server):
    answer = server.client.get("/0/file", headers={"host": f"evil.example:{server.port}"})
    assert answer.status_code == 403


@pytest.mark.parametrize("says_its_length", [True, False])
def test_an_upload_over_the_limit_is_refused_and_nothing_of_it_is_kept(server, says_its_length):
    def parts():
        yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
        for _ in range(48):
            yield b"x" * (MEGABYTE // 16)
        yield b"\r\n--b--\r\n"

    (place,) = set(re.findall(r"/_nicegui/client/[\w-]+/upload/\d+", server.client.get("/0/file").text))
    before = server.kept()
    whole = b"".join(parts())
    origin = {"origin": server.address, "content-type": "multipart/form-data; boundary=b"}
    try:
        answer = server.client.post(place, content=whole if says_its_length else parts(), headers=origin)
    except httpx.TransportError:  # it hangs up on what does not stop
        assert not says_its_length
    else:
        assert answer.status_code == 413
        assert "larger than this page takes (1 MB)" in answer.text
    assert server.kept() == before
    assert server.client.get("/0/file").status_code == 200, "the page goes on"


def test_a_post_from_another_page_and_one_that_does_not_say_are_refused(server):
    for headers in ({"origin": "http://evil.example"}, {}):
        assert server.client.post("/_nicegui/client/none/upload/1", headers=headers).status_code == 403


def test_pages_bind_the_browser_and_name_no_other_place(server):
    answer = server.client.get("/0/file")
    rule = answer.headers["content-security-policy"]
    assert "default-src 'none'" in rule
    assert "unsafe-inline" not in rule.split("script-src")[1].split(";")[0]
    assert answer.text.count("<script") == answer.text.count("<script nonce=")
    assert not re.findall(r"""(?:src|href)=["'](?:https?:)?//""", answer.text)


def test_it_talks_to_nobody_else(server):
    mine = set()
    for held in (Path("/proc") / str(server.process.pid) / "fd").glob("*"):
        try:
            mine |= set(re.findall(r"socket:\[(\d+)\]", os.readlink(held)))
        except OSError:
            continue
    elsewhere = [row[2] for row in sockets() if row[9] in mine and row[2][:8] not in ("00000000", "0100007F")]
    assert elsewhere == []
    with pytest.raises(BlockingIOError):
        server.collector.accept()


def test_the_private_folder_is_for_this_user_alone(server):
    (folder,) = server.folders
    assert folder.stat().st_mode & 0o077 == 0


def test_the_library_hears_of_no_proxy_that_a_request_makes_up(server):
    told = {
        "x-forwarded-prefix": "//evil.example",
        "x-forwarded-proto": "https",
        "x-script-name": "/evil.example",
    }
    for path in ("/", "/0/file", "/nowhere"):
        answer = server.client.get(path, headers=told)
        assert "evil.example" not in answer.text + str(answer.headers)
    # The library has a middleware of its own that writes the prefix before an address to go to.
    refused = httpx.get(server.address + "/enter/wrong", headers=told)
    assert "evil.example" not in refused.text + str(refused.headers)
    server.log.write_text("")
    again = server.client.post("/enter/wrong", headers={**told, "origin": server.address})
    assert again.status_code == 403


def test_the_page_ends_by_its_button_and_leaves_nothing(tmp_path):
    """What the button calls, on a server as it is started; with a worker at work and an upload in the folder."""
    script = """
import asyncio, json
from discreet.app import serving
from discreet.app.jobs import Job, Lane
real = serving._opened

async def opened(desk, *given, **named):
    await real(desk, *given, **named)
    upload = desk.folder.place_for("a.csv")
    upload.write_text("a\\n1\\n")
    journey = desk.begin(str(upload), kind="upload")
    journey.start("open_file", "Reading", lambda found: None, source=journey.source)
    await asyncio.sleep(0.5)
    print("worker", journey.lanes["long"]._process.pid, flush=True)
    await serving.end(desk)

serving._opened = opened
serving.serve(show=False)
"""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env={**plain, "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert "Ended. Uploads are removed." in done.stdout
    worker = int(re.search(r"worker (\d+)", done.stdout)[1])
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)
    assert list(tmp_path.glob("**/*")) == []


def test_a_page_that_is_entered_through_a_made_up_proxy_leads_to_itself(tmp_path):
    running = Server(tmp_path)
    try:
        answer = running.client.get(running.entrance, headers={"x-forwarded-prefix": "//evil.example"})
        assert answer.headers["location"] == "/"
        assert answer.headers["set-cookie"].startswith(f"discreet_page_{running.port}=")
    finally:
        running.end()
