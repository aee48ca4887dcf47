"""Who saw what? The list of all messages of a run, by kind and size, with their contents only where asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from discreet.federated.messages import Message


@dataclass(frozen=True)
class Passed:
    """One message that was passed: all of it but its contents."""

    protocol: str
    sender: str
    receiver: str
    name: str
    fields: tuple[tuple[str, str], ...]
    size: int


@dataclass
class Transcript:
    """The messages of a run in their order.

    The contents are dropped once they are delivered. A transcript that keeps them (``keep=True``, for teaching and
    tests in one process) holds everything that the protocol hides, and is to be kept as the data are kept.

    Examples
    --------
    >>> seen = Transcript()
    >>> seen.note(Message("secure-sum", "r", "a", "b", "partial", {"sum": 3}))
    >>> len(seen), seen.seen_by("b")[0].name, seen.bytes_seen_by("b")
    (1, 'partial', 10)
    """

    keep: bool = False
    passed: list[Passed] = field(default_factory=list)
    contents: list[Message] = field(default_factory=list)

    def note(self, message: Message) -> None:
        """Enter a message."""
        self.enter(
            Passed(
                message.protocol, message.sender, message.receiver, message.name,
                tuple(message.fields.items()), message.size,
            )
        )  # fmt: skip
        if self.keep:
            self.contents.append(message)

    def enter(self, one: Passed) -> None:
        """Enter the outside of a message whose contents are sealed."""
        self.passed.append(one)

    def seen_by(self, party: str) -> list[Passed]:
        """Return what a party received."""
        return [one for one in self.passed if one.receiver == party]

    def bytes_seen_by(self, party: str) -> int:
        """Return how many bytes a party received."""
        return sum(one.size for one in self.seen_by(party))

    def table(self) -> pl.DataFrame:
        """Count messages and bytes by who sent what to whom."""
        rows = [(one.protocol, one.sender, one.receiver, one.name, one.size) for one in self.passed]
        schema = ["protocol", "sender", "receiver", "message", "bytes"]
        frame = (
            pl.DataFrame(rows, schema=schema, orient="row")
            if rows
            else pl.DataFrame(schema={**dict.fromkeys(schema[:4], pl.String), "bytes": pl.Int64})
        )
        return frame.group_by(schema[:4], maintain_order=True).agg(
            pl.len().alias("messages"), pl.col("bytes").sum()
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the counts, ready for JSON."""
        return {"messages": len(self.passed), "bytes": sum(one.size for one in self.passed),
                "by_message": self.table().to_dicts()}  # fmt: skip

    def __len__(self) -> int:
        return len(self.passed)

    def __iter__(self) -> Iterator[Passed]:
        return iter(self.passed)

    def __repr__(self) -> str:
        return f"Transcript({len(self.passed):,} messages, {sum(one.size for one in self.passed):,} bytes)"
