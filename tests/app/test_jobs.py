"""Jobs in processes of their own: they end, are cancelled and crash without taking the page along."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("nicegui", reason="the extra 'app' (NiceGUI) is not installed")

from discreet.app.jobs import MOST_WORKERS, Job, Lane, RefusedError


@pytest.mark.asyncio
async def test_a_job_runs_apart_is_cancelled_and_may_crash_while_the_page_answers(people):
    lane = Lane()
    source = {"place": str(people), "query": "", "reading": {}}
    try:
        job = Job("open_file", "Reading", {"source": source})
        work = asyncio.create_task(lane.do(job))
        turns = 0
        while not work.done():
            turns += 1
            await asyncio.sleep(0.01)
        assert (await work)["rows"] == 120
        assert job.state == "done"
        assert turns > 1, "the page goes on while a job runs; how fast it answers is measured in bench/"
        assert lane._process.pid != os.getpid()

        refused = Job("open_file", "Reading", {"source": {**source, "place": "/nowhere/at-all.csv"}})
        with pytest.raises(RefusedError, match=r"at-all\.csv") as told:
            await lane.do(refused)
        assert told.value.field == "file"

        cancelled = Job("open_file", "Reading", {"source": source})
        work = asyncio.create_task(lane.do(cancelled))
        while cancelled.state != "running":
            await asyncio.sleep(0.005)
        cancelled.cancel()
        with pytest.raises(RefusedError, match="Cancelled"):
            await work

        crashing = Job("open_file", "Reading", {"source": source})
        work = asyncio.create_task(lane.do(crashing))
        while lane._process is None:
            await asyncio.sleep(0.005)
        os.kill(lane._process.pid, signal.SIGKILL)
        with pytest.raises(RefusedError, match="ended before it was done"):
            await work
        assert crashing.state == "failed"
    finally:
        lane.close()


@given(st.integers(1, 50), st.integers(0, 50))
def test_the_part_that_is_done_is_told_by_the_first_thing_counted(total, done):
    job = Job("x", "X", state="running", began=time.monotonic() - 10)
    job.hear("Assessing", 0, total)
    job.hear("Permutations", 3, 7)
    job.hear("Assessing", min(done, total), total)
    assert job.share == min(done, total) / total
    assert job.time_left


def test_whoever_is_gone_leaves_no_process_behind(people):
    """The worker of a page that was killed ends by itself."""
    import subprocess
    import sys

    worker = subprocess.Popen(
        [sys.executable, "-m", "discreet.app.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    worker.stdin.close()
    assert worker.wait(timeout=60) == -signal.SIGKILL


@pytest.mark.asyncio
async def test_an_answer_that_comes_after_the_cancel_is_not_taken():
    class Late:
        def __init__(self, job):
            self.stdin = self.stdout = self
            self.job = job

        def write(self, _):
            self.job.cancel()

        async def drain(self):
            pass

        async def readline(self):
            return b'{"id": 1, "result": {"rows": 1}, "notes": []}'

    lane, job = Lane(), Job("open_file", "Reading")

    async def started():
        return Late(job)

    lane._started = started
    with pytest.raises(RefusedError, match="Cancelled"):
        await lane.do(job)
    assert job.state == "cancelled"


def workers():
    """Count the processes of pages that this process has started."""
    if not Path("/proc/self/stat").is_file():
        pytest.skip("this system does not list its processes under /proc")
    found = 0
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            found += parent == os.getpid() and b"discreet.app.worker" in (place / "cmdline").read_bytes()
    return found


@pytest.mark.asyncio
async def test_many_files_keep_few_processes_and_a_refused_one_keeps_none(people, tmp_path):
    wrong = tmp_path / "wrong.parquet"
    wrong.write_bytes(b"no table")
    lanes = [Lane() for _ in range(MOST_WORKERS + 2)]
    before = workers()

    async def counted(expected):
        for _ in range(400):
            if workers() - before == expected:
                return True
            await asyncio.sleep(0.05)
        return False

    def opening(place):
        return Job("open_file", "Reading", {"source": {"place": str(place), "query": "", "reading": {}}})

    try:
        with pytest.raises(RefusedError):
            await lanes[0].do(opening(wrong))
        assert await counted(0), "whoever refused a file holds nothing"
        most = 0
        for lane in lanes:
            assert (await lane.do(opening(people)))["rows"] == 120
            most = max(most, workers() - before)
        assert most <= MOST_WORKERS + 1, "the one that makes room may still be on its way out"
        assert await counted(MOST_WORKERS)
        assert lanes[0]._process is None, "the one that was used first made room"
        # It is started again when it is asked again, and reads the file again.
        job = Job(
            "live_figures", "Figures", {"source": opening(people).given["source"], "roles": {"keys": ["sex"]}}
        )
        assert await lanes[0].do(job)
        assert await counted(MOST_WORKERS)
    finally:
        for lane in lanes:
            lane.close()
    assert await counted(0)
    await asyncio.sleep(0.2)


@pytest.mark.asyncio
async def test_with_all_processes_at_work_a_job_waits_for_one(people, monkeypatch):
    monkeypatch.setattr("discreet.app.jobs.MOST_WORKERS", 1)
    first, second = Lane(), Lane()
    source = {"place": str(people), "query": "", "reading": {}}
    try:
        jobs = [Job("open_file", "Reading", {"source": source}) for _ in range(2)]
        found = await asyncio.gather(first.do(jobs[0]), second.do(jobs[1]))
        assert [one["rows"] for one in found] == [120, 120]
        assert first._process is None
        third = Job("open_file", "Reading", {"source": source})
        busy = asyncio.create_task(second.do(Job("open_file", "Reading", {"source": source})))
        await asyncio.sleep(0)
        waiting = asyncio.create_task(first.do(third))
        await asyncio.sleep(0.01)
        third.cancel()
        with pytest.raises(RefusedError, match="Cancelled"):
            await waiting
        await busy
    finally:
        first.close()
        second.close()
        await asyncio.sleep(0.2)


def test_a_process_that_starts_again_notices_that_the_file_was_changed(people):
    """The one before it was ended to make room; what it had read is what the person at the page has seen."""
    from discreet.app.work.bench import Bench, stamp_of
    from discreet.core.errors import InputError

    source = {"place": str(people), "query": "", "reading": {}, "stamp": stamp_of(str(people))}
    assert Bench().file(source).columns
    people.write_text(people.read_text() + people.read_text().splitlines()[1] + "\n")
    with pytest.raises(InputError, match="changed on disk") as told:
        Bench().file(source)
    assert told.value.field == "file"
    assert Bench().file(source, again=True).columns
