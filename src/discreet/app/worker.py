"""The other end of a job: a process of its own that holds the file and does the work.

It reads one JSON document a line from its standard input and answers the same way: how far it is, the result, the
sentence of a refusal. Whoever started it may kill it at any time; when they are gone it ends by itself, with all the
processes it has started.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import signal
import sys
import threading
import time
import warnings
from typing import IO, Any

from discreet.app.jobs import field_of
from discreet.app.work import TASKS
from discreet.core.errors import DiscreetError, DiscreetWarning, gave_up
from discreet.core.files.inputs import note_read, one_run
from discreet.core.progress import listening
from discreet.core.values import jsonable

_OFTEN = 0.2  # seconds between two words about the progress
_GIVES_WAY = 5  # a job takes what processors the page does not need: somebody waits for an answer there


def main() -> None:
    """Answer requests until nobody asks any more."""
    if hasattr(os, "nice"):
        os.nice(_GIVES_WAY)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints must not be read as an answer
    requests: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    from discreet.app.work.bench import Bench

    bench = Bench()
    while True:
        request = requests.get()
        said = answered(bench, request, answers)
        _say(answers, {"id": request["id"], "holds": bench.holds, **said})


def answered(bench: Any, request: dict[str, Any], answers: IO[str] | None = None) -> dict[str, Any]:
    """Do one piece of work and say how it went."""
    teller = _Teller(request["id"], answers)
    notes: list[str] = []
    try:
        with one_run(), listening(teller), warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always", DiscreetWarning)
            for place in request.get("reads", ()):
                note_read(place)
            module = importlib.import_module(TASKS[request["task"]])
            result = getattr(module, request["task"])(bench, **request["given"])
            notes = [str(one.message) for one in heard if issubclass(one.category, DiscreetWarning)]
    except DiscreetError as error:
        return {"refused": str(error), "field": field_of(error)}
    except MemoryError:
        return {
            "refused": "There is not enough memory for this file on this machine. Use fewer columns or rows."
        }
    except BaseException as error:
        if not gave_up(error):
            raise
        if os.environ.get("DISCREET_TRACEBACK"):
            import traceback

            traceback.print_exc()
        return {"failed": type(error).__name__}
    return {"result": jsonable(result), "notes": list(dict.fromkeys(notes))}


class _Teller:
    """Passes on how far the work is, not more often than somebody can read it."""

    def __init__(self, number: int, answers: IO[str] | None) -> None:
        self._number = number
        self._answers = answers
        self._last = 0.0

    def __call__(self, what: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        if self._answers is not None and (now - self._last >= _OFTEN or done in (0, total)):
            self._last = now
            _say(self._answers, {"id": self._number, "what": what, "done": done, "total": total})


def _say(answers: IO[str], document: dict[str, Any]) -> None:
    answers.write(json.dumps(document, ensure_ascii=True, allow_nan=False) + "\n")
    answers.flush()


def _listen(requests: queue.Queue[dict[str, Any]]) -> None:
    for line in sys.stdin:
        requests.put(json.loads(line))
    # Nobody asks any more. The work of this process, and of those it started, is of no use to anybody.
    if hasattr(os, "killpg"):
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(0)


if __name__ == "__main__":
    main()
