"""What the rooms hand back: a Measure for one question, a Verdict against a policy, an Assessment of a file.

A result says its number, what it means in plain words, and when it must not be trusted. Tables that are
expensive to make (one row a record) are computed when they are first asked for.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from discreet.core.errors import ParameterError, unknown_name
from discreet.core.guarantees import CONFIDENTIAL
from discreet.core.value_gate import gated
from discreet.core.values import jsonable, plain
from discreet.core.verdicts import Check, Figure, Unjudged, Verdict
from discreet.core.wording import columns_not_judged, is_percentage, percent, shown, signed, title_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

    from discreet.core.guarantees import DifferentialPrivacy, Spending
    from discreet.microdata import Microdata
    from discreet.policy import Policy


__all__ = [
    "Assessment",
    "Check",
    "Detail",
    "Figure",
    "Measure",
    "Release",
    "Scenario",
    "Step",
    "Unjudged",
    "Verdict",
    "jsonable",
    "percent",
    "plain",
    "shown",
    "title_of",
]


class Detail(Mapping[str, Any]):
    """Named tables of a result, each computed when it is first asked for.

    Examples
    --------
    >>> detail = Detail(classes=lambda: "computed now")
    >>> list(detail), detail["classes"]
    (['classes'], 'computed now')
    """

    def __init__(self, **makers: Callable[[], Any]) -> None:
        self._makers = makers
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._makers:
            raise ParameterError(unknown_name(name, self._makers, what="detail table"))
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._makers

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def __repr__(self) -> str:
        return f"Detail({', '.join(self._makers)})"


@dataclass(frozen=True, repr=False)
class Measure:
    """The answer to one question about a file.

    Attributes
    ----------
    name
        The name of the function that gave it, e.g. ``"k_anonymity"``.
    value
        The headline number; None where it is undefined (a caveat says why).
    figures
        Every other number by its usual short name.
    meaning
        One plain sentence with the numbers in it.
    caveats
        When the number must not be trusted.
    parameters
        What it was computed with.
    detail
        Named tables: ``"classes"``, ``"records"``, ``"variables"``; computed when asked for.
    guarantee
        A privacy guarantee that is proved for what was done, else None.
    private
        The same as a value, where it is differential privacy.
    """

    name: str
    value: float | int | None
    figures: Mapping[str, Figure]
    meaning: str
    caveats: Sequence[str] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    detail: Mapping[str, Any] = field(default_factory=Detail)
    guarantee: str | None = None
    private: DifferentialPrivacy | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", plain(self.value))
        object.__setattr__(self, "figures", MappingProxyType({k: plain(v) for k, v in self.figures.items()}))
        object.__setattr__(self, "caveats", tuple(self.caveats))
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))

    @property
    def title(self) -> str:
        """The name as a reader would write it: ``k_anonymity`` is ``k-anonymity``."""
        return title_of(self.name)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the detail tables, ready for JSON.

        ``in_percent`` names the figures that are percentages; all other shares are fractions.
        """
        return {
            "name": self.name,
            "value": jsonable(self.value),
            "figures": jsonable(self.figures),
            "in_percent": [
                name for name in ("value", *self.figures) if is_percentage(name, measure=self.name)
            ],
            "meaning": self.meaning,
            "caveats": list(self.caveats),
            "parameters": jsonable(self.parameters),
            "guarantee": self.guarantee,
            **({"private": self.private.to_dict()} if self.private else {}),
        }

    def plot(self) -> Picture:
        """Draw the measure, where a picture helps."""
        from discreet.report.plots import draw

        return draw(self)

    def to_html(self, path: str | Path, *, about: Mapping[str, Any] | None = None) -> Path:
        """Write a report of this measure alone, with its picture and tables, and return its path.

        ``about`` says which file it speaks of, as in `Assessment`.
        """
        scenario = Scenario(self.title, tuple(self.parameters.get("keys", ())), {self.name: self})
        return Assessment(about or {}, {scenario.name: scenario}).to_html(path)

    def __str__(self) -> str:
        width = max((len(name) for name in self.figures), default=0)
        lines = [f"{self.title}: {signed('value', self.value, measure=self.name)}"]
        lines += [f"  {name:<{width}}  {signed(name, figure)}" for name, figure in self.figures.items()]
        lines += ["", self.meaning]
        lines += [f"Caveat: {caveat}" for caveat in self.caveats]
        if len(self.detail):
            lines.append(f"Detail: {', '.join(self.detail)}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th scope='row'>{html.escape(name)}</th><td>{html.escape(signed(name, figure))}</td></tr>"
            for name, figure in self.figures.items()
        )
        caveats = "".join(f"<li>{html.escape(caveat)}</li>" for caveat in self.caveats)
        return (
            f"<h4>{html.escape(self.title)}: {html.escape(signed('value', self.value, measure=self.name))}</h4>"
            f"<p>{html.escape(self.meaning)}</p><table>{rows}</table>"
            + (f"<p>When not to trust it:</p><ul>{caveats}</ul>" if caveats else "")
        )


@dataclass(frozen=True)
class Scenario:
    """What one intruder is assumed to know, and what the measures say about it.

    ``skipped`` names the measures that were left out and why; ``riskiest`` is a table of the classes
    (or the records without a class) most at risk, with key values masked unless asked for.
    """

    name: str
    keys: tuple[str, ...]
    measures: Mapping[str, Measure]
    skipped: Mapping[str, str] = field(default_factory=dict)
    riskiest: Sequence[Mapping[str, Any]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the scenario, ready for JSON."""
        return {
            "keys": list(self.keys),
            **{name: measure.to_dict() for name, measure in self.measures.items()},
            "skipped": dict(self.skipped),
            "riskiest": jsonable(self.riskiest),
        }


@dataclass(frozen=True, repr=False)
class Assessment:
    """Everything `discreet.assess` found out about a file.

    Attributes
    ----------
    about
        The file: ``source``, ``rows``, ``columns``, ``roles``, ``without_role`` (the columns nobody asked about),
        ``missing`` (share by role column), ``engine``, ``checksum``, ``created``, ``versions``.
    scenarios
        The intruder scenarios by name; the first is the main one.
    verdict
        Held against the policy; None where none was named.
    advice
        What to do next, most useful first.
    """

    about: Mapping[str, Any]
    scenarios: Mapping[str, Scenario]
    policy: Policy | None = None
    verdict: Verdict | None = None
    advice: Sequence[str] = ()
    show_values: bool = False

    @property
    def main(self) -> Scenario:
        """The first scenario."""
        return next(iter(self.scenarios.values()))

    @property
    def measures(self) -> Mapping[str, Measure]:
        """The measures of the main scenario by function name."""
        return self.main.measures

    def __getitem__(self, name: str) -> Measure:
        if name not in self.measures:
            reason = self.main.skipped.get(name)
            raise ParameterError(
                f"'{name}' was left out: {reason}"
                if reason
                else unknown_name(name, self.measures, what="measure")
            )
        return self.measures[name]

    @property
    def not_judged(self) -> str:
        """The columns without a role, and what was not judged about them; empty where every column has one."""
        return columns_not_judged(self.about.get("without_role") or ())

    @property
    def line(self) -> str:
        """The answer in one line."""
        return (
            self.verdict.line
            if self.verdict
            else "No policy was named, so there is no verdict; see the findings."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return one JSON-ready document; the measures of the main scenario stand under their names."""
        others = [scenario for scenario in self.scenarios.values() if scenario is not self.main]
        return {
            "about": jsonable(self.about),
            "verdict": self.verdict.to_dict() if self.verdict else None,
            "scenario": self.main.name,
            **self.main.to_dict(),
            "scenarios": {scenario.name: scenario.to_dict() for scenario in others},
            "advice": list(self.advice),
            "policy": self.policy.to_dict() if self.policy else None,
        }

    def to_json(self) -> str:
        """Return `to_dict` as text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def plot(self) -> Picture:
        """Draw what leads each chapter of the report, for the main scenario: no value of the data is in it."""
        from discreet.report.plots import draw_assessment

        return draw_assessment(self)

    def to_html(self, path: str | Path) -> Path:
        """Write the report as one self-contained HTML file and return its path."""
        from discreet.report.assessment_report import write_assessment

        return write_assessment(self, Path(path))

    def __str__(self) -> str:
        lines = [self.line, ""]
        for scenario in self.scenarios.values():
            lines.append(f"Scenario '{scenario.name}': keys {', '.join(scenario.keys)}")
            lines += [
                f"  {measure.title}: {signed('value', measure.value, measure=measure.name)}. {measure.meaning}"
                for measure in scenario.measures.values()
            ]
            lines += [f"  {title_of(name)}: left out, {reason}" for name, reason in scenario.skipped.items()]
        lines += ["", self.not_judged] if self.not_judged else []
        lines += ["", "What to do next:", *(f"  - {item}" for item in self.advice)] if self.advice else []
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        body = "".join(measure._repr_html_() for measure in self.measures.values())
        left = f"<p>{html.escape(self.not_judged)}</p>" if self.not_judged else ""
        return f"<h3>{html.escape(self.line)}</h3>{left}{body}"


@dataclass(frozen=True, repr=False)
class Step:
    """What one treatment did to a file.

    ``internal`` holds what could undo the protection (seeds, keys, transition matrices); it stays in the house
    and is left out of the public log, of everything that is printed, and of a pickle.
    """

    treatment: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    changed_cells: Mapping[str, int] = field(default_factory=dict)
    suppressed_cells: Mapping[str, int] = field(default_factory=dict)
    removed_records: int = 0
    notes: Sequence[str] = ()
    seconds: float = 0.0
    counts_withheld: bool = False
    """Whether the counts are kept in the internal log, because a guarantee would not survive them."""
    internal: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self, *, internal: bool = False) -> dict[str, Any]:
        """Return the step, ready for JSON; with ``internal`` also what must not leave the house."""
        names = [name for name in self.__dataclass_fields__ if internal or name != "internal"]
        document: dict[str, Any] = {name: jsonable(getattr(self, name)) for name in names}
        # What is recoded is in the internal log only: the public one travels with the data.
        shown: dict[str, Any] = gated(document, show_values=internal)
        return shown

    def __str__(self) -> str:
        changed = {name: count for name, count in self.changed_cells.items() if count}
        parts = [f"{sum(changed.values()):,} cells changed ({_counts(changed)})"] if changed else []
        suppressed = sum(self.suppressed_cells.values())
        parts += [f"{suppressed:,} of them suppressed"] if suppressed else []
        parts += [f"{self.removed_records:,} records removed"] if self.removed_records else []
        none = "counts are in the internal log only" if self.counts_withheld else "no cell changed"
        return f"{self.treatment}: {', '.join(parts) or none}"

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        values = [getattr(self, name) for name in self.__dataclass_fields__ if name != "internal"]
        return Step, tuple(dict(value) if isinstance(value, Mapping) else value for value in values)

    def __deepcopy__(self, memo: Any) -> Step:
        return self


@dataclass(frozen=True, repr=False)
class Release:
    """A treated file and the log of what was done to it.

    Attributes
    ----------
    data
        The treated file, of the kind that came in.
    log
        One entry a step.
    guarantee
        A privacy guarantee that is proved for what was done, else None.
    why_none
        Where a treatment could give one and did not: why.
    private
        The same guarantee as a value, where it is differential privacy: bounds, neighbors, unit, what it means in plain
        words and what it does not cover.
    spending
        The ledger as it stood once the release was entered, where there is one.
    """

    data: Microdata
    log: tuple[Step, ...] = ()
    guarantee: str | None = None
    why_none: str = ""
    private: DifferentialPrivacy | None = None
    spending: Spending | None = None

    @property
    def guarantee_in_words(self) -> str:
        """The guarantee, or ``none`` and why."""
        return self.guarantee or (f"none: {self.why_none}" if self.why_none else "none")

    def to_dict(self, *, internal: bool = False) -> dict[str, Any]:
        """Return the log, ready for JSON: the public one, or the internal one that stays in the house."""
        return {
            "steps": [step.to_dict(internal=internal) for step in self.log],
            "guarantee": self.guarantee,
            "why_none": self.why_none,
            "private": self.private.to_dict() if self.private else None,
            "spending": self.spending.to_dict() if self.spending else None,
            **({"confidential": CONFIDENTIAL} if internal else {}),
        }

    def __str__(self) -> str:
        lines = [f"Release of {self.data.size_in_words}"]
        for number, step in enumerate(self.log, start=1):
            lines += [f"  {number}. {step}", *(f"     {note}" for note in step.notes)]
        lines += [] if self.log else ["  Nothing was done to the file."]
        words = [self.private.in_plain_words] if self.private else []
        return "\n".join([*lines, f"Guarantee: {self.guarantee_in_words}", *words])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        steps = "".join(
            f"<li>{html.escape(str(step))}<br>{html.escape(' '.join(step.notes))}</li>" for step in self.log
        )
        return (
            f"<h4>Release of {html.escape(self.data.size_in_words)}</h4><ol>{steps}</ol>"
            f"<p>Guarantee: {html.escape(self.guarantee_in_words)}</p>"
        )


def _counts(cells: Mapping[str, int], most: int = 6) -> str:
    named = [f"{name} {count:,}" for name, count in list(cells.items())[:most]]
    more = [f"and {len(cells) - most} more columns"] if len(cells) > most else []
    return ", ".join([*named, *more])
