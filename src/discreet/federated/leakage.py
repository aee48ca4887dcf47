"""What did each party learn? The honest account of a run, in numbers and in plain words.

A protocol hides records; it does not hide everything. For each party the account says how many independent equations
it holds about the values of another (and how many values there are), how many evaluations were answered against the
number after which the moments are known, and which parties would know more if they put their heads together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from discreet.core.wording import percent, shown
from discreet.federated.transcript import Transcript


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
        from discreet.report.leakage_report import write_leakage_report

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


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"
