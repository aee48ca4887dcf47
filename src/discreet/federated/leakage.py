"""What did each party see and learn? The transcript of a run, and its honest account in numbers and plain words.

A protocol hides records; it does not hide everything. For each party the account says how many independent equations
it holds about the values of another (and how many values there are), how many evaluations were answered against the
number after which the moments are known, and which parties would know more if they put their heads together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from discreet.core.randomness import Seed
from discreet.core.wording import percent, shown
from discreet.federated.messages import Message


@dataclass(frozen=True)
class Learned:
    """What one party knows about the data of another after a run.

    Attributes
    ----------
    party, about
        Who learned, and whose data it is about.
    sentence
        What, in plain words.
    constraints, unknowns
        Independent equations that the party holds, and how many unknown numbers they are about; where the first
        reaches the second, the data are determined.
    """

    party: str
    about: str
    sentence: str
    constraints: int | None = None
    unknowns: int | None = None

    @property
    def determined(self) -> bool:
        """Whether the party can work out all the unknown numbers."""
        return (
            self.constraints is not None and self.unknowns is not None and self.constraints >= self.unknowns
        )

    @property
    def line(self) -> str:
        """The sentence, with the count where there is one."""
        if self.constraints is None or self.unknowns is None:
            return self.sentence
        known = min(1.0, self.constraints / self.unknowns) if self.unknowns else 1.0
        end = "they are determined" if self.determined else f"{percent(known)} of what would determine them"
        counted = f"{shown(self.constraints)} equations about {shown(self.unknowns)} unknown numbers"
        return f"{self.sentence} ({counted}: {end})"


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


# Who saw what? The list of all messages of a run, by kind and size, with their contents only where asked for.


@dataclass(frozen=True)
class Passed:
    """One message that was passed: all of it but its contents."""

    protocol: str
    sender: str
    receiver: str
    name: str
    fields: tuple[tuple[str, str], ...]
    size: int


@dataclass(frozen=True)
class Leakage:
    """The account of a run.

    ``subsets`` says what sums over some of the same sites would tell beside the one that was made.

    Examples
    --------
    >>> account = Leakage("secure-sum", (Learned("a", "b", "a learns the sum."),), ("b's neighbors together learn b",))
    >>> print(account.meaning)
    a learns the sum. Together they could do more: b's neighbors together learn b.
    """

    protocol: str
    learned: tuple[Learned, ...] = ()
    collusions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    evaluations: int | None = None
    determining: int | None = None
    subsets: tuple[str, ...] = ()
    transcript: Transcript = field(default_factory=Transcript, repr=False, compare=False)

    @property
    def determined(self) -> tuple[Learned, ...]:
        """What can be worked out completely."""
        return tuple(one for one in self.learned if one.determined)

    @property
    def headline(self) -> str:
        """The gravest of it in one sentence: whether the moments are known, or else what was learned first."""
        if self.evaluations is not None and self.determining is not None:
            enough = self.evaluations >= self.determining
            return (
                f"The likelihood was evaluated {_times(self.evaluations)}; {_times(self.determining)} are enough to "
                "work out all means, variances and covariances exactly, "
                + ("so whoever ran the fit knows them." if enough else "which was not reached.")
            )
        return _sentence(self.learned[0].line) if self.learned else ""

    @property
    def lines(self) -> list[str]:
        """Everything in plain words, one thing a line."""
        said = [_sentence(one.line) for one in self.learned]
        if self.evaluations is not None and self.determining is not None:
            said.append(self.headline)
        if self.collusions:
            said.append(f"Together they could do more: {'; '.join(self.collusions)}.")
        if self.subsets:
            said.append(f"Sums over some of the sites would tell: {'; '.join(self.subsets)}.")
        return said + [_sentence(note) for note in self.notes]

    @property
    def meaning(self) -> str:
        """Everything in plain words."""
        return " ".join(self.lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the account, ready for JSON; it holds no data."""
        return {
            "protocol": self.protocol,
            "learned": [
                {"party": one.party, "about": one.about, "what": one.sentence, "constraints": one.constraints,
                 "unknowns": one.unknowns, "determined": one.determined}
                for one in self.learned
            ],
            "collusions": list(self.collusions),
            "notes": list(self.notes),
            "subsets": list(self.subsets),
            "evaluations": self.evaluations,
            "determining": self.determining,
            "transcript": self.transcript.to_dict(),
        }  # fmt: skip

    def to_html(
        self, path: str | Path, *, title: str = "a joint analysis", figures: Mapping[str, Any] | None = None
    ) -> Path:
        """Write the account as a page: what was learned by whom, and how much was passed."""
        from discreet.report.short_reports import write_leakage_report

        return write_leakage_report(self, path, title=title, figures=figures or {})

    def __str__(self) -> str:
        return self.meaning


def told_by_subsets(sites: Sequence[str]) -> tuple[str, ...]:
    """Say what further sums over some of the sites would tell beside the one over all.

    Examples
    --------
    >>> told_by_subsets(["A", "B", "C"])[0]
    "one over all but 'A', 'B' or 'C' gives the number of that site by subtraction"
    """
    named = [f"'{name}'" for name in sites]
    if len(named) < 2:
        return ()
    if len(named) == 2:
        return (f"each of {named[0]} and {named[1]} learns the number of the other by taking its own off",)
    one_out = f"{', '.join(named[:-1])} or {named[-1]}" if len(named) <= 6 else "one site, any one,"
    return (
        f"one over all but {one_out} gives the number of that site by subtraction",
        f"the {len(named)} sums over all but one give the number of every site, without the one over all",
        f"all but one of the {len(named)} sites together know the number of the last one",
        "a site on a network adds a column over one set of sites only (other_site_sets), and over at least as many as "
        "its owner says (least_sites)",
    )


def seeded_note(seeded: bool) -> tuple[str, ...]:
    """Warn where masks can be drawn again."""
    if not seeded:
        return ()
    return (
        "The masks were drawn from a seed: whoever knows it takes every one of them off. Use none outside tests.",
    )


def account_of_sums(  # noqa: PLR0917
    learned: str, together: str, note: str, subsets: tuple[str, ...], transcript: Transcript, seed: Seed
) -> Leakage:
    """Say what a coordinator learns from secure sums over sites, and what two neighbors in the ring could do."""
    return Leakage(
        "secure-sum",
        (Learned("coordinator", "all sites", f"coordinator learns {learned}"),),
        (f"the two neighbors of a site in the ring {together}",),
        (note, *seeded_note(seed is not None)),
        subsets=subsets,
        transcript=transcript,
    )


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"


# What a joint computation hands back: the number, who saw what, and what that tells.


class Answer(NamedTuple):
    """The result of a protocol with its transcript and its leakage; where it is one number it counts as that number.

    Examples
    --------
    >>> answer = Answer(3.0, Transcript(), Leakage("secure-sum"))
    >>> value, transcript, leakage = answer
    >>> value, float(answer), answer == 3.0
    (3.0, 3.0, True)
    """

    value: Any
    transcript: Transcript
    leakage: Leakage

    def __float__(self) -> float:
        return float(self.value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.value, dtype=dtype)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Answer):
            return bool(np.array_equal(self.value, other.value)) and self.transcript == other.transcript
        return bool(np.array_equal(self.value, np.asarray(other)))

    def __hash__(self) -> int:
        return id(self)
