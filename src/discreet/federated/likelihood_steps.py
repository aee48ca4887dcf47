"""Where in an evaluation does a message belong, and is it its turn? All rows come, each once and in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.core.arrays import Floats
from discreet.federated.kinds import Field, flag, numbers, one_of, text, texts, whole, wholes
from discreet.federated.messages import COORDINATOR, Message, ProtocolError

STEP: Mapping[str, Field] = {
    "nodes": texts, "widths": wholes, "place": whole, "start": whole, "rows": whole, "chunk": whole, "chunks": whole,
    "evaluation": whole, "block": text, "coordinator": one_of(COORDINATOR), "keep_total": flag, "scales": numbers,
}  # fmt: skip


@dataclass(frozen=True)
class Step:
    """Where in an evaluation a message belongs."""

    nodes: list[str]
    widths: list[int]
    place: int
    start: int
    rows: int
    chunk: int
    chunks: int
    evaluation: int
    block: str
    coordinator: str
    keep_total: bool
    scales: Floats
    run: str

    @classmethod
    def read(cls, message: Message, *, place: int | None = None) -> Step:
        """Read it off a message, or refuse the message; ``place`` is that of the receiver, where it is another one."""
        values: Mapping[str, Any] = {name: message.values[name] for name in STEP}
        step = cls(**{**values, "scales": np.asarray(values["scales"], dtype=np.float64)}, run=message.run)
        own = step.place if place is None else place
        fits = (
            2 <= len(step.nodes) == len(step.widths) == len(set(step.nodes))
            and 0 <= step.place < len(step.nodes) and 0 <= own < len(step.nodes)
            and step.nodes[own] == message.receiver
            and step.scales.shape == (sum(step.widths),) and (step.scales >= 0).all() and all(step.widths)
        )  # fmt: skip
        if not fits:
            raise ProtocolError(
                f"'{message.sender}' sent '{message.name}' to a place where it does not belong."
            )
        return step

    def same_as(self, other: Step) -> bool:
        """Whether both are about the same step, whoever's place it is."""
        return {**self.described(), "place": 0} == {**other.described(), "place": 0}

    def described(self) -> dict[str, Any]:
        """Write it for a message."""
        return {**{name: getattr(self, name) for name in STEP}, "scales": self.scales.tolist()}

    @property
    def width(self) -> int:
        """How many columns the holder has."""
        return self.widths[self.place]

    @property
    def own_scales(self) -> Floats:
        """The scales of the holder's noise."""
        first = sum(self.widths[: self.place])
        return self.scales[first : first + self.width]

    @property
    def is_last_chunk(self) -> bool:
        """Whether no rows come after these."""
        return self.chunk == self.chunks - 1

    @property
    def key(self) -> str:
        """Under which a holder keeps the total of an evaluation."""
        return f"{self.run} {self.evaluation}"


class Turns:
    """Holds the evaluations of a run to all rows of a group, each row once and in order.

    A likelihood of few rows tells about each of them, and rows that are asked for again under fresh noise are averaged:
    what an owner limits is the number of evaluations, so that an evaluation must be one.

    Examples
    --------
    >>> turns = Turns()
    >>> turns.take(evaluation=1, chunk=0, chunks=2, start=0, rows=6, all_rows=10)
    >>> turns.take(evaluation=1, chunk=1, chunks=2, start=6, rows=3, all_rows=10)
    Traceback (most recent call last):
    discreet.federated.messages.ProtocolError: An evaluation goes over all rows, once and in order. The run was ended.
    """

    def __init__(self) -> None:
        self._next: tuple[int, int, int] | None = None

    def take(self, *, evaluation: int, chunk: int, chunks: int, start: int, rows: int, all_rows: int) -> None:
        """Take the next rows, or refuse them."""
        expected = (evaluation, 0, 0) if chunk == 0 else self._next
        ends = start + rows
        is_last = chunk == chunks - 1
        if (evaluation, chunk, start) != expected or rows < 1 or is_last != (ends == all_rows):
            raise ProtocolError("An evaluation goes over all rows, once and in order. The run was ended.")
        self._next = None if is_last else (evaluation, chunk + 1, ends)
