"""How is work on numbered pieces handed to the executors of a Spark cluster?

Each piece is one task; what all of them need travels once. Pieces come back wave by wave, so that the caller can note
what is finished before the next wave begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from discreet.core.errors import DiscreetError, InputError, ParameterError

T = TypeVar("T")
_TASKS_PER_CORE = 2


@dataclass(frozen=True)
class _Task:
    work: Callable[[bytes, int], Any]
    shared: Any

    def __call__(self, numbers: Iterator[int]) -> Iterator[Any]:
        for number in numbers:
            yield self.work(self.shared.value, number)


def spark_tasks(
    session: Any, work: Callable[[bytes, int], T], shared: bytes, numbers: Sequence[int]
) -> Iterator[T]:
    """Call ``work(shared, number)`` for every number on the executors of a session, in waves."""
    try:
        context = session.sparkContext
        wave = max(_TASKS_PER_CORE * context.defaultParallelism, 1)
    except Exception as error:
        raise ParameterError(
            "cluster takes a classic Spark session that is running (a session of Spark Connect hands out no tasks). "
            "Leave it out, and give workers for processes of this machine."
        ) from error
    sent = context.broadcast(shared)
    try:
        for start in range(0, len(numbers), wave):
            some = list(numbers[start : start + wave])
            yield from context.parallelize(some, len(some)).mapPartitions(_Task(work, sent)).collect()
    except DiscreetError:
        raise
    except Exception as error:
        raise InputError(
            "A task of Spark failed more often than Spark tries: an executor may be lost, out of memory or out of "
            "disk, or discreet may not be installed there. What was finished before stays."
        ) from error
    finally:
        sent.unpersist()
