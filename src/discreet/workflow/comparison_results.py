"""What `discreet.compare` hands back: utility and risk of one release or of several side by side."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.core.cards import Card, all_cards, card_of
from discreet.core.errors import ParameterError, unknown_name
from discreet.core.findings import Beside, Finding, MapAxis, Side
from discreet.core.requests import in_which_copy
from discreet.core.results import Measure
from discreet.core.values import jsonable
from discreet.core.verdicts import Verdict
from discreet.core.wording import not_judged_of, title_of, worded

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

    from discreet.policy import Policy


__all__ = ["Alignment", "ComparedRelease", "Comparison", "Figures", "Worst"]

Figures = tuple[str, str, str]
"""Measure, figure, and what it is called where releases stand side by side."""

Axis = tuple[str, MapAxis]
"""Measure, and its figure on the risk-utility map."""


@dataclass(frozen=True)
class Alignment:
    """How two files that differ were brought together.

    Attributes
    ----------
    columns
        What was compared.
    only_original, only_released
        Columns that one of the files lacks.
    left_out
        Columns that both have and that were left out all the same, with the reason.
    converted
        Columns whose type differed, and as what they were compared.
    reordered
        Whether the shared columns stand in another order.
    linked
        Whether record i of the release is record i of the original (or shares its id), so that records were compared
        one by one.
    notes
        Everything else, in sentences.
    """

    columns: tuple[str, ...]
    only_original: tuple[str, ...] = ()
    only_released: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    converted: Mapping[str, str] = field(default_factory=dict)
    reordered: bool = False
    linked: bool = False
    notes: tuple[str, ...] = ()

    def only_about(self, columns: Sequence[str]) -> Alignment:
        """Return the alignment of some of the columns."""
        return replace(self, columns=tuple(columns))

    @property
    def sentences(self) -> list[str]:
        """The alignment in words, most important first."""
        told = []
        if self.only_original:
            told.append(f"Only in the original, so not compared: {_listed(self.only_original)}.")
        if self.only_released:
            told.append(f"Only in the release, so not compared: {_listed(self.only_released)}.")
        told += [f"'{name}' was left out: {reason}." for name, reason in self.left_out.items()]
        told += [f"'{name}' {how}." for name, how in self.converted.items()]
        if self.reordered:
            told.append("The columns stand in another order; they were matched by name.")
        return [*told, *self.notes]

    def to_dict(self) -> dict[str, Any]:
        """Return the alignment, ready for JSON."""
        return {name: jsonable(getattr(self, name)) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class Worst:
    """What went wrong first: in sentences, and by column, pair and cell, the worst first.

    Levels of cells are data values: they are empty unless they were asked for. ``clear`` is what can be said of the use
    of the release where nothing went wrong there.
    """

    sentences: tuple[str, ...] = ()
    clear: str = ""
    variables: tuple[Mapping[str, Any], ...] = ()
    pairs: tuple[Mapping[str, Any], ...] = ()
    cells: tuple[Mapping[str, Any], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it, ready for JSON."""
        return {name: jsonable(getattr(self, name)) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class ComparedRelease:
    """One release held against its original."""

    name: str
    utility: Mapping[str, Measure]
    risk: Mapping[str, Measure]
    alignment: Alignment
    worst: Worst = Worst()
    verdict: Verdict | None = None
    skipped: Mapping[str, str] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def measures(self) -> Mapping[str, Measure]:
        """Utility and risk together."""
        return {**self.utility, **self.risk}

    def figure(self, measure: str, figure: str) -> float | None:
        """Look a figure up; None where it was not computed, is undefined, or is no ground to compare releases."""
        held, card = self.measures.get(measure), card_of(measure)
        silent = card.releases.says_nothing if card and card.releases else None
        if held is None or (silent and silent(held, self.measures)):
            return None
        value = held.figures.get(figure)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    def to_dict(self) -> dict[str, Any]:
        """Return the release, ready for JSON."""
        return {
            "utility": {name: measure.to_dict() for name, measure in self.utility.items()},
            "risk": {name: measure.to_dict() for name, measure in self.risk.items()},
            "verdict": self.verdict.to_dict() if self.verdict else None,
            "worst": self.worst.to_dict(),
            "alignment": self.alignment.to_dict(),
            "skipped": dict(self.skipped),
            "about": jsonable(self.about),
        }


@dataclass(frozen=True, repr=False)
class Comparison:
    """Everything `discreet.compare` found out.

    Attributes
    ----------
    about
        The original: ``source``, ``rows``, ``columns``, ``roles``, ``missing``, ``created``, ``versions``.
    releases
        What was compared, by name. ``utility``, ``risk``, ``verdict``, ``worst``, ``alignment`` and ``skipped`` of the
        comparison are those of the first.
    policy
        What the releases were held against; None where none was named.
    """

    about: Mapping[str, Any]
    releases: Mapping[str, ComparedRelease]
    policy: Policy | None = None
    show_values: bool = False

    @property
    def main(self) -> ComparedRelease:
        """The first release."""
        return next(iter(self.releases.values()))

    @property
    def utility(self) -> Mapping[str, Measure]:
        """What the first release costs, by the name of the measure."""
        return self.main.utility

    @property
    def risk(self) -> Mapping[str, Measure]:
        """What the first release gives away, by the name of the measure."""
        return self.main.risk

    @property
    def verdict(self) -> Verdict | None:
        """The first release held against the policy."""
        return self.main.verdict

    @property
    def worst(self) -> Worst:
        """What went wrong first in the first release."""
        return self.main.worst

    @property
    def alignment(self) -> Alignment:
        """How the first release was brought together with the original."""
        return self.main.alignment

    @property
    def skipped(self) -> Mapping[str, str]:
        """The measures that were left out, and why."""
        return self.main.skipped

    def __getitem__(self, name: str) -> Measure:
        measures = self.main.measures
        if name not in measures:
            reason = self.skipped.get(name)
            raise ParameterError(
                f"'{name}' was left out: {reason}" if reason else unknown_name(name, measures, what="measure")
            )
        return measures[name]

    @property
    def meets(self) -> bool | None:
        """Whether every release meets the policy; None without one, and while something is left to judge."""
        met = [release.verdict.meets for release in self.releases.values() if release.verdict]
        if False in met:
            return False
        return True if met and all(met) else None

    @property
    def not_judged(self) -> str:
        """The columns without a role and what was not judged about them, and what is known of earlier releases."""
        return not_judged_of(self.about)

    @property
    def line(self) -> str:
        """The answer in one line (one a release, where there are several)."""
        lines = []
        for release in self.releases.values():
            start = f"{release.name}: " if len(self.releases) > 1 else ""
            if release.verdict is not None:
                lines.append(f"{start}{release.verdict.line}")
        return "\n".join(lines) or "No policy was named, so there is no verdict; see what went wrong first."

    @property
    def side_by_side(self) -> list[dict[str, Any]]:
        """One row a release: its name, whether it meets the policy, and the figures that several releases share."""
        shared = self.shared_figures
        return [
            {
                "release": release.name,
                **({"meets": release.verdict.meets} if release.verdict else {}),
                **{f"{measure}.{figure}": release.figure(measure, figure) for measure, figure, _ in shared},
            }
            for release in self.releases.values()
        ]

    @property
    def cards(self) -> list[Card]:
        """The cards of the measures that hold releases side by side, in their order."""
        names = dict.fromkeys(name for release in self.releases.values() for name in release.measures)
        cards = [card for name in names if (card := card_of(name)) and card.releases]
        return sorted(cards, key=lambda card: card.releases.order if card.releases else 0)

    @property
    def shared_figures(self) -> list[Figures]:
        """Those of the usual figures that at least one release has, what it costs before what it gives away."""
        return [
            (card.name, figure, label)
            for card in self.cards
            for figure, label in (card.releases.rows if card.releases else {}).items()
            if any(release.figure(card.name, figure) is not None for release in self.releases.values())
        ]

    @property
    def map_axes(self) -> tuple[Axis, Axis] | None:
        """The axes of the risk-utility map: of the costs, and of the risks, the first that all releases have."""
        cost, risk = self._axis("utility"), self._axis("risk")
        return (cost, risk) if cost and risk else None

    def _axis(self, side: Side) -> Axis | None:
        axes = [
            (card.name, card.releases.axis)
            for card in self.cards
            if card.releases and card.releases.axis and card.compare and card.compare.side == side
        ]
        there = (
            (name, axis)
            for name, axis in sorted(axes, key=lambda one: one[1].order)
            if all(release.figure(name, axis.figure) is not None for release in self.releases.values())
        )
        return next(there, None)

    def to_dict(self) -> dict[str, Any]:
        """Return one JSON-ready document; the first release stands at the top, the others under ``releases``."""
        others = [release for release in self.releases.values() if release is not self.main]
        return {
            "about": jsonable(self.about),
            "release": self.main.name,
            **{name: value for name, value in self.main.to_dict().items() if name != "about"},
            "released": jsonable(self.main.about),
            "releases": {release.name: release.to_dict() for release in others},
            "side_by_side": jsonable(self.side_by_side),
            "policy": self.policy.to_dict() if self.policy else None,
        }

    def to_json(self) -> str:
        """Return `to_dict` as text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)

    def to_html(self, path: str | Path) -> Path:
        """Write the report as one self-contained HTML file and return its path."""
        from discreet.report.comparison_report import write_comparison

        return write_comparison(self, Path(path))

    def plot(self) -> Picture:
        """Draw the risk-utility map: what each release costs, and what it gives away."""
        from discreet.report.comparison_report import map_of
        from discreet.report.plots import draw_charts

        chart = map_of(self)
        if chart is None:
            raise ParameterError(
                "There is nothing to draw a risk-utility map of: it needs tables of the compared columns and a risk. "
                "Name keys (and sensitive columns), so that a risk can be measured."
            )
        return draw_charts([chart])

    def __str__(self) -> str:
        lines = [self.line]
        for release in self.releases.values():
            lines += ["", *(_told(release, titled=len(self.releases) > 1))]
        lines += ["", self.not_judged] if self.not_judged else []
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = [f"<h3>{html.escape(self.line)}</h3>"]
        for release in self.releases.values():
            worst = "".join(f"<li>{html.escape(text)}</li>" for text in release.worst.sentences)
            rows = "".join(
                f"<tr><th scope='row'>{html.escape(title_of(name))}</th>"
                f"<td>{html.escape(worded('value', measure.value, measure=measure.name))}</td>"
                f"<td>{html.escape(measure.meaning)}</td></tr>"
                for name, measure in release.measures.items()
            )
            parts.append(
                f"<h4>{html.escape(release.name)}</h4><p>What went wrong first:</p><ul>{worst}</ul>"
                f"<p>{html.escape(release.worst.clear)}</p>"
                f"<table>{rows}</table>"
            )
        parts += [f"<p>{html.escape(self.not_judged)}</p>"] if self.not_judged else []
        return "".join(parts)


def _told(release: ComparedRelease, *, titled: bool) -> list[str]:
    """Write one release for a terminal: the worst first, then a table of the measures."""
    lines = [f"Release '{release.name}'"] if titled else []
    lines += ["What went wrong first:", *(f"  - {text}" for text in release.worst.sentences)]
    lines += [f"  {release.worst.clear}"] if release.worst.clear else []
    for heading, measures in (
        ("What it costs", release.utility),
        ("What it gives away", release.risk),
    ):
        if measures:
            width = max(len(title_of(name)) for name in measures)
            lines += ["", heading]
            lines += [
                f"  {title_of(name):<{width}}  {worded('value', measure.value, measure=measure.name):>10}  "
                f"{measure.meaning}"
                for name, measure in measures.items()
            ]
    if release.alignment.sentences:
        lines += ["", "How the files were brought together:"]
        lines += [f"  - {text}" for text in release.alignment.sentences]
    lines += [f"Left out: {title_of(name)}, {reason}" for name, reason in release.skipped.items()]
    return lines


def _listed(names: Sequence[str], most: int = 10) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


# What went wrong first
#
# What is given away about people comes before what is lost for users, and the gravest on top of each. The sentence is
# that of the card of the measure.


_MOST_SENTENCES = 8
_LEAST_COSTS = 7


def worst_of(measures: Mapping[str, Measure], alignment: Alignment, *, show_values: bool) -> Worst:
    """Collect what stands out, and the tables behind it."""
    beside = Beside(measures, alignment.linked, show_values)
    found = findings_of(beside)
    lost, given_away = found["utility"], found["risk"]
    costs = _ranked(lost)
    clear = "" if lost or alignment.only_original else _nothing(beside, clear=not given_away)
    if alignment.only_original:
        count = len(alignment.only_original)
        columns = f"column '{alignment.only_original[0]}'" if count == 1 else f"{count} columns"
        costs.insert(
            0, f"The release lacks {columns} of the original: nothing can be said from it about them."
        )
    # What was found out about people comes first: that a copy agrees with its original is no comfort. People who come
    # back no more often than chance would have it are said last, and always: each of them may be a copy all the same.
    grave, usual = (
        _ranked(found for found in given_away if (found.weight >= 1) is is_grave)
        for is_grave in (True, False)
    )
    room = max(_MOST_SENTENCES - len(grave) - len(usual), _LEAST_COSTS)
    return Worst(sentences=(*grave, *costs[:room], *usual), clear=clear, **_tables(beside))


def findings_of(beside: Beside) -> dict[Side, list[Finding]]:
    """Collect what went wrong by side, in the order of the cards."""
    found: dict[Side, list[Finding]] = {"utility": [], "risk": []}
    for card in _asked(beside):
        if card.worst and card.compare:
            measure = beside.measures[card.name]
            for finding in card.worst.findings(measure, beside):
                said = f"{in_which_copy(measure)}{finding.sentence}"
                found[finding.side or card.compare.side].append(replace(finding, sentence=said))
    return found


def _asked(beside: Beside) -> list[Card]:
    """Give the cards of the measures that have something to say, in their order."""
    cards = [card for name in beside.measures if (card := card_of(name)) and card.worst]
    return sorted(cards, key=lambda card: card.worst.order if card.worst else 0)


def _ranked(findings: Iterable[Finding]) -> list[str]:
    return [found.sentence for found in sorted(findings, key=lambda found: -found.weight)]


def _nothing(beside: Beside, *, clear: bool) -> str:
    """Say that nothing was found, of what was asked; and what was not asked."""
    if not beside.measures:
        return "Nothing could be measured; see what was left out."
    cards = [card_of(name) for name in beside.measures]
    if not any(card and card.compare and card.compare.side == "utility" for card in cards):
        return "What the release costs was not asked."
    asked = _asked(beside)
    same = [card.worst.nothing_differs for card in all_cards(asked="compare") if card.worst]
    answers = [
        card.worst.nothing_differs(beside.measures[card.name])
        for card in asked
        if card.worst and card.worst.nothing_differs
    ]
    if all(answers) and len(answers) == sum(one is not None for one in same):
        return "The release agrees with the original in every column and every table that was compared."
    agrees = "no column, table or relation of those compared is far from the original"
    looked_for = {card.worst.looks_for for card in asked if card.worst}
    missing = " and ".join(said for what, said in _NOT_ASKED.items() if what not in looked_for)
    if missing:
        return f"{agrees[0].upper()}{agrees[1:]}; {missing}."
    return f"Nothing stands out: {agrees}." if clear else f"{agrees[0].upper()}{agrees[1:]}."


_NOT_ASKED = {
    "copies": "copies of people were not looked for",
    "attacks": "no attack was tried (attacks=True, --attacks, with people who were not used)",
}


def _tables(beside: Beside) -> dict[str, tuple[Mapping[str, Any], ...]]:
    return {
        table: tuple(rows(beside.measures[card.name], beside))
        for card in _asked(beside)
        for table, rows in (card.worst.tables if card.worst else {}).items()
    }
