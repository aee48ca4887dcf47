"""Jobs in processes of their own: they end, are cancelled and crash without taking the page along."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("nicegui", reason="the extra 'app' (NiceGUI) is not installed")

from discreet.app.jobs import Job, Lane
from discreet.app.refusals import RefusedError


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
