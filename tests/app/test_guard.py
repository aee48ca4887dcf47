"""The security list of the page, one test a promise."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from app.conftest import HOST, opened, until
from hypothesis import given
from hypothesis import strategies as st

from discreet.app.desk import Desk, PrivateFolder, kept_copy, plain_name, swept
from discreet.app.frame import BESIDE, JOURNEY
from discreet.app.guard import Direct, Door, Guard, policy
from discreet.app.jobs import Job
from discreet.app.journey import Journey
from discreet.app.serving import PASSWORD, _lock_when_idle, serve
from discreet.core.errors import InputError, ParameterError

SELF = f"http://{HOST}"
PAGES = [name for name, _ in (*JOURNEY, *BESIDE)]


async def plain_app(scope, receive, send):
    """An application that reads what it is sent and greets."""
    if scope["type"] == "http":
        while (await receive()).get("more_body"):
            pass
        headers = [(b"content-type", b"text/html")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"<script>1</script><p>hello</p>"})


def asked(door, method="GET", path="/", **options):
    async def ask():
        transport = httpx.ASGITransport(Guard(plain_app, door))
        async with httpx.AsyncClient(transport=transport, base_url=SELF) as client:
            return await client.request(method, path, **options)

    return asyncio.run(ask())


@pytest.fixture
def door():
    return Door(hosts=(HOST,), largest_upload=1000)


def entered(door):
    answer = asked(door, path=door.address.removeprefix(SELF))
    return {"cookie": answer.headers["set-cookie"].split(";")[0]}


def test_nothing_is_shown_without_the_address(door):
    assert asked(door).status_code == 403
    assert "hello" not in asked(door).text


def test_the_address_works_once_and_sets_a_cookie_for_this_site_only(door):
    path = door.address.removeprefix(SELF)
    first = asked(door, path=path)
    assert first.status_code == 303
    assert "HttpOnly" in first.headers["set-cookie"]
    assert "SameSite=Strict" in first.headers["set-cookie"]
    assert asked(door, path=path).status_code == 403
    assert path not in door.address, "a new address was made"


def test_a_page_that_was_opened_elsewhere_closes_the_first(door):
    first = entered(door)
    assert asked(door, headers=first).status_code == 200
    second = entered(door)
    assert asked(door, headers=second).status_code == 200
    assert asked(door, headers=first).status_code == 403


def test_two_pages_on_two_ports_do_not_lock_each_other_out():
    """A browser sends the cookies of a machine to all its ports: no page may take the name of another's."""
    first, second = Door(hosts=(HOST,)), Door(hosts=("127.0.0.1:4322",))
    assert first.cookie != second.cookie
    cookies = entered(first)["cookie"] + f"; {second.cookie}=of-the-other-page"
    assert asked(first, headers={"cookie": cookies}).status_code == 200
    assert asked(first, headers={"cookie": cookies.partition("; ")[2]}).status_code == 403


FORWARDED = {
    "X-Forwarded-Prefix": "//evil.example/",
    "X-Forwarded-Host": "evil.example",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-For": "10.0.0.1",
    "X_Forwarded_Prefix": "//evil.example/",
    "Forwarded": "host=evil.example",
    "X-Script-Name": "/evil.example",
    "X-Original-URL": "/evil.example",
    "X-Original-Host": "evil.example",
    "X-Rewrite-URL": "/evil.example",
    "X-Real-IP": "10.0.0.1",
    "X-HTTP-Method-Override": "DELETE",
}


@pytest.mark.parametrize("guard", [Guard, lambda app, _: Direct(app)])
def test_nothing_behind_the_guard_sees_what_only_a_proxy_may_say(door, guard):
    seen = {}

    async def looking(scope, receive, send):
        seen.update(scope)
        await plain_app(scope, receive, send)

    async def ask():
        transport = httpx.ASGITransport(guard(looking, door), root_path="/evil.example")
        async with httpx.AsyncClient(transport=transport, base_url=SELF) as client:
            return await client.get("/", headers={**held, **FORWARDED})

    held = entered(door)
    assert asyncio.run(ask()).status_code == 200
    assert seen["root_path"] == ""
    assert {name.decode() for name, _ in seen["headers"]} >= {"host", "cookie"}
    assert "evil" not in str(seen["headers"])
    assert not {name.lower() for name in FORWARDED} & {name.decode() for name, _ in seen["headers"]}


@pytest.mark.asyncio
async def test_a_prefix_that_a_request_makes_up_reaches_no_script(people, tmp_path, monkeypatch):
    async with opened(tmp_path, monkeypatch) as (user, desk):
        desk.begin(str(people))
        for path in ("/", "/1/file", "/1/columns", "/nowhere"):
            answer = await user.http_client.get(path, headers=FORWARDED)
            assert "evil" not in answer.text + str(answer.headers)


@pytest.mark.asyncio
async def test_the_end_button_ends_all_work_and_removes_what_is_left(people, tmp_path, monkeypatch):
    from nicegui import app

    ended = []
    monkeypatch.setattr(app, "shutdown", lambda: ended.append(True))
    monkeypatch.setattr("discreet.app.serving._FAREWELL", 0.0)
    async with opened(tmp_path, monkeypatch) as (user, desk):
        upload = desk.folder.place_for("people.csv")
        upload.write_bytes(people.read_bytes())
        desk.begin(str(upload), kind="upload")
        await user.open("/1/file")
        user.find(marker="end").click()
        await user.should_see(marker="end-now")
        user.find(marker="end-now").click()
        await until(lambda: ended)
        assert not desk.folder.path.exists()
        assert desk.door.session is None
        assert (await user.http_client.get("/1/file")).status_code == 403
        assert "uploads are removed" in (await user.http_client.get("/ended")).text


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil:4321"])
def test_another_name_of_this_machine_is_refused(door, host):
    assert asked(door, headers={**entered(door), "host": host}).status_code == 403


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "https://127.0.0.1:4321", "http://127.0.0.1:4322", f"{SELF}.evil"],
)
def test_a_request_from_another_page_is_refused(door, origin):
    assert asked(door, "POST", headers={**entered(door), "origin": origin}).status_code == 403
    assert asked(door, headers={**entered(door), "origin": origin}).status_code == 403


def test_a_change_must_say_where_it_comes_from(door):
    assert asked(door, "POST", headers=entered(door)).status_code == 403
    assert asked(door, "POST", headers={**entered(door), "origin": SELF}).status_code == 200
    cross = {**entered(door), "sec-fetch-site": "cross-site"}
    assert asked(door, headers=cross).status_code == 403


def test_what_is_too_large_is_refused_by_its_word_and_by_its_weight(door):
    headers = {**entered(door), "origin": SELF}
    assert asked(door, "POST", headers=headers, content=b"x" * 1001).status_code == 413
    heavy = asked(door, "POST", headers=headers, content=iter_bytes(3000))
    assert heavy.status_code == 413, "also what does not say how much it is"
    assert "larger than this page takes" in heavy.text
    assert asked(door, "POST", headers=headers, content=iter_bytes(1000)).status_code == 200
    assert asked(door, "POST", headers={**headers, "content-length": "-5"}).status_code == 400


async def iter_bytes(size):
    for _ in range(size // 100):
        yield b"x" * 100


def test_a_disk_without_room_for_an_upload_is_said_and_nothing_is_sent_half(door):
    async def full(scope, receive, send):
        raise OSError(errno.ENOSPC, "No space left on device")

    async def ask():
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(Guard(full, door)), base_url=SELF
        ) as client:
            return await client.post("/upload", headers={**entered_headers, "origin": SELF}, content=b"x")

    entered_headers = entered(door)
    answer = asyncio.run(ask())
    assert answer.status_code == 507
    assert "room on the disk" in answer.text


@pytest.mark.asyncio
async def test_an_upload_that_cannot_be_kept_leaves_nothing(tmp_path):
    class File:
        name = "../x.csv"

        def __init__(self, size):
            self._size = size

        def size(self):
            return self._size

        async def save(self, place):
            place.write_text("half of it")
            raise OSError(errno.ENOSPC, "No space left on device")

    with PrivateFolder(tmp_path) as folder:
        desk = Desk(folder, Door(hosts=(HOST,)))
        before = sorted(folder.path.rglob("*"))
        with pytest.raises(InputError, match="disk may be full"):
            await kept_copy(desk, File(10))
        with pytest.raises(InputError, match="not enough room"):
            await kept_copy(desk, File(10**18))
        assert sorted(folder.path.rglob("*")) == before


def test_a_certificate_makes_the_cookie_travel_encrypted_only():
    door = Door(hosts=(HOST,), scheme="https", password="correct horse battery")
    origin = f"https://{HOST}"
    path = door.address.removeprefix(origin)
    right = {"password": "correct horse battery"}
    answer = asked(door, "POST", path=path, headers={"origin": origin}, data=right)
    assert answer.status_code == 303
    assert "; Secure" in answer.headers["set-cookie"]


def test_a_page_that_nobody_uses_is_locked_and_masked_unless_it_works(tmp_path):
    with PrivateFolder(tmp_path) as folder:
        desk = Desk(folder, Door(hosts=(HOST,)))
        journey = desk.add(Journey(name="x", values_shown=True, assessment={"show_values": True, "x": "zq"}))
        desk.review.values_shown = True
        desk.door.session = "somebody"
        desk.door.used = time.monotonic() - 100
        journey.jobs.append(Job("assess_file", "Assessing", state="running"))
        _lock_when_idle(desk, 60)
        assert desk.door.session == "somebody", "work that runs is waited for"
        journey.jobs.clear()
        _lock_when_idle(desk, 1000)
        assert desk.door.session == "somebody"
        _lock_when_idle(desk, 60)
        assert desk.door.session is None
        assert not journey.values_shown
        assert not journey.assessment, "what was found with values is gone with them"
        assert not desk.review.values_shown


def test_a_browser_runs_only_scripts_that_bear_the_mark(door):
    answer = asked(door, headers=entered(door))
    rule = answer.headers["content-security-policy"]
    nonce = re.search(r"'nonce-([^']+)'", rule)[1]
    assert answer.text.startswith(f'<script nonce="{nonce}">')
    scripts = rule.split("script-src")[1].split(";")[0]
    assert "unsafe-inline" not in scripts
    assert "http" not in scripts
    assert asked(door, headers=entered(door)).headers["content-security-policy"] != rule, (
        "a mark is used once"
    )
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "default-src 'none'" in policy("x")


def test_a_socket_needs_cookie_and_origin(door):
    async def ask(**headers):
        said = []
        scope = {
            "type": "websocket",
            "path": "/_nicegui_ws/socket.io/",
            "headers": [(k.encode(), v.encode()) for k, v in {"host": HOST, **headers}.items()],
        }

        async def passed(scope, receive, send):
            said.append("let in")

        async def send(message):
            said.append(message["type"])

        await Guard(passed, door)(scope, None, send)
        return said

    cookie = entered(door)["cookie"]
    assert asyncio.run(ask(cookie=cookie, origin=SELF)) == ["let in"]
    assert asyncio.run(ask(cookie=cookie)) == ["websocket.close"]
    assert asyncio.run(ask(origin=SELF)) == ["websocket.close"]
    assert asyncio.run(ask(cookie=cookie, origin="http://evil.example")) == ["websocket.close"]


def test_a_locked_page_lets_nobody_in_and_keeps_its_new_address(door):
    headers = entered(door)
    said = []
    door.announce = said.append
    door.lock()
    assert asked(door, headers=headers).status_code == 403
    assert asked(door, path="/locked").status_code == 200
    assert door.address in said[0]


def test_a_password_is_asked_for_and_few_tries_are_left():
    door = Door(hosts=(HOST,), password="correct horse battery")
    path = door.address.removeprefix(SELF)
    assert "Password" in asked(door, path=path).text
    for _ in range(5):
        wrong = asked(door, "POST", path=path, headers={"origin": SELF}, data={"password": "wrong"})
        assert wrong.status_code == 403
    assert path not in door.address, "after five tries there is another address"
    right = {"password": "correct horse battery"}
    assert asked(door, "POST", path=path, headers={"origin": SELF}, data=right).status_code == 403
    path = door.address.removeprefix(SELF)
    assert asked(door, "POST", path=path, headers={"origin": SELF}, data=right).status_code == 303


def test_other_machines_need_permission_certificate_and_password(tmp_path, monkeypatch):
    monkeypatch.delenv(PASSWORD, raising=False)
    with pytest.raises(ParameterError, match="--allow-network"):
        serve(host="0.0.0.0")
    with pytest.raises(ParameterError, match="--tls-certificate"):
        serve(host="0.0.0.0", allow_network=True)
    file = tmp_path / "c.pem"
    file.write_text("")
    with pytest.raises(ParameterError, match=PASSWORD):
        serve(host="0.0.0.0", allow_network=True, tls_certificate=file, tls_key=file)
    monkeypatch.setenv(PASSWORD, "short")
    with pytest.raises(ParameterError, match="at least 12"):
        serve(host="0.0.0.0", allow_network=True, tls_certificate=file, tls_key=file)
    with pytest.raises(ParameterError, match="belong together"):
        serve(tls_certificate=file)


def test_uploads_lie_in_a_folder_of_this_user_that_is_removed(tmp_path):
    with PrivateFolder(tmp_path) as folder:
        assert folder.path.stat().st_mode & 0o077 == 0
        place = folder.place_for("../../evil.csv")
        place.write_text("x")
        assert place.resolve().is_relative_to(folder.path.resolve())
    assert not folder.path.exists()


def test_what_a_killed_page_has_left_is_swept_at_the_next_start(tmp_path):
    code = (
        "import sys, os, signal; from pathlib import Path; from discreet.app.desk import PrivateFolder\n"
        "folder = PrivateFolder(Path(sys.argv[1])); folder.place_for('a.csv').write_text('secret')\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    (left,) = tmp_path.glob("discreet-page-*")
    with PrivateFolder(tmp_path) as mine:
        assert not left.exists()
        assert mine.path.exists()
        assert swept(tmp_path) == [], "the folder of a page that runs is left alone"


@given(st.text(max_size=300))
def test_a_name_of_an_upload_never_leaves_its_folder(name):
    kept = plain_name(name)
    assert kept
    assert not {"/", "\\", "\0"} & set(kept)
    assert kept not in (".", "..")
    assert len(kept) <= 120
    assert Path("/private", kept).resolve().parent == Path("/private")


@pytest.mark.asyncio
async def test_pages_are_closed_to_whoever_did_not_enter(tmp_path, monkeypatch):
    async with opened(tmp_path, monkeypatch) as (user, _):
        user.http_client.cookies.clear()
        for path in ("/", "/1/file", "/_nicegui_ws/socket.io/?EIO=4", "/assets/page.css", "/openapi.json"):
            assert (await user.http_client.get(path)).status_code == 403


@pytest.mark.asyncio
async def test_no_page_loads_anything_from_elsewhere(people, tmp_path, monkeypatch):
    async with opened(tmp_path, monkeypatch) as (user, desk):
        desk.begin(str(people))
        for name in PAGES:
            answer = await user.http_client.get(f"/1/{name}")
            assert answer.status_code == 200
            found = re.findall(
                r"""(?:src|href|url|from|import)\s*[=(]?\s*["'(](?:https?:)?//[^"')]+""", answer.text
            )
            assert not found, name
            rule = answer.headers["content-security-policy"]
            assert "default-src 'none'" in rule
            assert "connect-src 'self'" in rule
            assert "http:" not in rule.replace("'self'", "")
            assert "https:" not in rule


@pytest.mark.asyncio
async def test_names_that_are_markup_come_back_as_text(people, tmp_path, monkeypatch):
    strange = tmp_path / "<script>alert(7)<.csv"
    os.rename(people, strange)
    async with opened(tmp_path, monkeypatch) as (user, desk):
        desk.begin(str(strange))
        answer = await user.http_client.get("/1/columns")
        assert "<script>alert(7)" not in answer.text
        assert answer.text.count("<script") == answer.text.count("<script nonce=")


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"discreet": 2}', '{"discreet": 1, "roles": []}', '{"discreet": 1, "steps": [1]}',
             '{"discreet": 1, "columns": [{"column": 5}]}', '{"discreet": 1, "roles": {"a": "boss"}}', "[" * 5000],
)  # fmt: skip
def test_what_is_no_project_file_is_refused_with_a_sentence(text):
    with pytest.raises(InputError, match="no project file"):
        Journey.from_text(text, "x.discreet")


def test_a_project_file_keeps_the_journey_without_data_and_seed(people, tmp_path):
    journey = Journey(
        name="people.csv", place=str(people), roles={"age": "keys"}, columns=[{"column": "age"}]
    )
    journey.steps = [{"treatment": "local-suppression", "k": 3}]
    written = journey.save(tmp_path / "mine")
    text = written.read_text()
    assert written.suffix == ".discreet"
    assert "zq" not in text
    assert str(journey.seed) not in text
    again = Journey.load(written)
    assert (again.roles, again.steps, again.place) == (journey.roles, journey.steps, journey.place)
