"""A person at the page, simulated: no browser, the same pages, the same guard at the door.

Jobs are done in a thread instead of a process of their own, so that the tests need not wait for imports; the processes
have tests of their own.
"""

from __future__ import annotations

import asyncio
import gc
import os
from contextlib import asynccontextmanager
from pathlib import Path

import polars as pl
import pytest

pytest.importorskip("nicegui", reason="the extra 'app' (NiceGUI) is not installed")

from app.browsing import Page

HOST = "127.0.0.1:4321"
ROWS = 120
_LOOK = 0.03  # seconds between two looks of a page at its journey


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A small messy file: semicolons, decimal commas, markup in a value and in the name of a column."""
    frame = pl.DataFrame(
        {
            "name": [f"zqperson{i}" for i in range(ROWS)],
            "age": [20 + i % 40 for i in range(ROWS)],
            "sex": ["f" if i % 2 else "m" for i in range(ROWS)],
            "town": [("zqAville", "zqBville", "<b>zqCville")[i % 3] for i in range(ROWS)],
            "illness": [("zqnone", "zqflu", "zqrare")[0 if i % 5 else 1 + i % 2] for i in range(ROWS)],
            "<img src=x onerror=alert(1)>": [f"{1000 + 7 * (i % 23)},5" for i in range(ROWS)],
        }
    )
    place = tmp_path / "people.csv"
    frame.write_csv(place, separator=";")
    return place


@pytest.fixture
def pictures(tmp_path):
    """Where a real browser's pictures go, to be looked at."""
    folder = Path(os.environ.get("DISCREET_SCREENSHOTS") or tmp_path / "pictures")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def page(tmp_path, request):
    """A running page, entered by a real browser."""
    width, dark = getattr(request, "param", (1280, False))
    opened_page = Page(tmp_path, width, dark=dark)
    yield opened_page
    opened_page.close()


class ThreadLane:
    """Does jobs where the tests run."""

    def __init__(self) -> None:
        from discreet.app.work.bench import Bench

        self.bench = Bench()

    async def do(self, job):
        from discreet.app.jobs import RefusedError
        from discreet.app.worker import answered

        job.lane, job.state, job.began = self, "running", 0.0
        request = {"id": 1, "task": job.task, "given": job.given}
        said = await asyncio.to_thread(answered, self.bench, request)
        if job.state == "cancelled":
            raise RefusedError("Cancelled.")
        if "result" in said:
            job.state = "done"
            return said["result"]
        job.state = "refused" if "refused" in said else "failed"
        raise RefusedError(said.get("refused") or f"failed: {said['failed']}", said.get("field", ""))

    def drop(self, job) -> None:
        pass

    def close(self) -> None:
        pass


@asynccontextmanager
async def opened(folder: Path, monkeypatch=None):
    """Open the page for a simulated person who has entered by the address."""
    from nicegui import app
    from nicegui.testing import user_simulation

    from discreet.app import frame, journey
    from discreet.app.desk import Desk, PrivateFolder
    from discreet.app.frame import root_of
    from discreet.app.guard import Door, Guard

    if monkeypatch is not None:
        monkeypatch.setattr(journey, "Lane", ThreadLane)
        monkeypatch.setattr(frame, "_EVERY", _LOOK)  # pages look often, so that nobody has to wait for them
    desk = Desk(PrivateFolder(folder), Door(hosts=(HOST,)))
    gc.freeze()  # the simulation looks twice for what is no longer needed: not among all that was there before
    broken = []  # the library logs what a page raises while it is drawn, and goes on with half of it
    async with user_simulation(root_of(desk)) as user:
        app.on_exception(broken.append)
        app.middleware_stack = None
        app.add_middleware(Guard, door=desk.door)
        user.http_client.base_url = f"http://{HOST}"
        answer = await user.http_client.get(desk.door.address)
        assert answer.status_code == 303
        try:
            yield user, desk
        finally:
            desk.close()
            await asyncio.sleep(0.05)
    assert not broken, broken


async def settled(desk, *, seconds: float = 300.0) -> None:
    """Wait until no job runs, and let the pages look once more."""
    for _ in range(int(seconds / 0.02)):
        if not desk.busy:
            await asyncio.sleep(4 * _LOOK)
            return
        await asyncio.sleep(0.02)
    raise AssertionError("a job did not end")


async def until(condition, *, seconds: float = 60.0) -> None:
    """Wait until something holds; a page that is drawn again as a whole takes its time on a busy machine."""
    for _ in range(int(seconds / 0.02)):
        if condition():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it did not come to hold")


def texts_of(user) -> str:
    """Return every text on the page, and every value in its fields and tables."""
    from nicegui import ElementFilter

    with user.client:
        found = []
        for element in ElementFilter(local_scope=False):
            found.append(str(getattr(element, "text", "")))
            found.append(str({name: value for name, value in element.props.items() if name != "innerHTML"}))
            found.append(str(getattr(element, "content", "")))
    return "\n".join(found)
