"""What the checks found: pass, review or fail, why and where; and the statbarns that say what has to be checked."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from discreet.core.values import jsonable

Status = Literal["pass", "review", "fail"]
Position = tuple[int, ...]

_RANK: dict[Status, int] = {"pass": 0, "review": 1, "fail": 2}


@dataclass(frozen=True)
class Finding:
    """One check and its outcome.

    Attributes
    ----------
    check
        Its name: ``"low count"``, ``"dominance"``, …
    barn
        The statbarn whose rule it is.
    status
        ``pass``, ``review`` or ``fail``.
    reason
        One sentence with the numbers; never a value of a person.
    cells
        The positions it is about, in the shape of the table; empty where it is about the whole output.
    figures
        Numbers behind it.
    places
        Where the cells stand in a finished file: sheet, row, column; without their values unless these were asked for.
    """

    check: str
    barn: str
    status: Status
    reason: str
    cells: tuple[Position, ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)
    places: tuple[Place, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the finding, ready for JSON."""
        return {
            "check": self.check,
            "barn": self.barn,
            "status": self.status,
            "reason": self.reason,
            "cells": [list(cell) for cell in self.cells],
            "figures": jsonable(self.figures),
            **({"places": [place.to_dict() for place in self.places]} if self.places else {}),
        }


@dataclass(frozen=True)
class CheckResult:
    """Everything the checks say about one output.

    Attributes
    ----------
    findings
        Check by check.
    questions
        What only a human can judge.

    Examples
    --------
    >>> CheckResult([Finding("low count", "a", "pass", "fine"), Finding("differencing", "a", "review", "look")]).status
    'review'
    """

    findings: tuple[Finding, ...]
    questions: tuple[str, ...] = ()

    def __init__(self, findings: Iterable[Finding], questions: Iterable[str] | None = None) -> None:
        object.__setattr__(self, "findings", tuple(findings))
        asked = _of_barns(self.barns, "questions") if questions is None else tuple(questions)
        object.__setattr__(self, "questions", asked)

    @property
    def status(self) -> Status:
        """Fail if any check fails, else review if any needs a human, else pass."""
        return worst(finding.status for finding in self.findings)

    @property
    def barns(self) -> tuple[str, ...]:
        """The statbarns whose rules were checked."""
        return tuple(dict.fromkeys(finding.barn for finding in self.findings))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it does not pass, failures first."""
        open_ones = [finding for finding in self.findings if finding.status != "pass"]
        return tuple(f.reason for f in sorted(open_ones, key=lambda finding: -_RANK[finding.status]))

    @property
    def mitigations(self) -> tuple[str, ...]:
        """What could mend it, by the barns whose rules fail."""
        return _of_barns((f.barn for f in self.findings if f.status != "pass"), "mitigations")

    def cells(self, check: str | None = None) -> tuple[Position, ...]:
        """Return the cells that a failing check (or the named one) is about."""
        found: dict[Position, None] = {}
        for finding in self.findings:
            if finding.status == "fail" and check in (None, finding.check):
                found.update(dict.fromkeys(finding.cells))
        return tuple(found)

    def with_more(self, findings: Iterable[Finding]) -> CheckResult:
        """Return the result with further findings."""
        return CheckResult((*self.findings, *findings))

    def to_dict(self) -> dict[str, Any]:
        """Return the result, ready for JSON."""
        return {
            "status": self.status,
            "barns": list(self.barns),
            "findings": [finding.to_dict() for finding in self.findings],
            "mitigations": list(self.mitigations),
            "questions": list(self.questions),
        }

    def __str__(self) -> str:
        lines = [f"Status: {self.status}"]
        for finding in self.findings:
            lines.append(f"  {finding.status:<6}  {finding.check}: {finding.reason}")
            lines += [f"          at {place}" for place in finding.places]
        if self.mitigations:
            lines.append(f"  Could help: {', '.join(self.mitigations)}")
        return "\n".join(lines)


def _of_barns(letters: Iterable[str], entry: str) -> tuple[str, ...]:
    """List what the statbarns say under an entry, each sentence once."""
    known = [barns()[barn] for barn in dict.fromkeys(letters) if barn in barns()]
    return tuple(dict.fromkeys(sentence for barn in known for sentence in getattr(barn, entry)))


def worst(statuses: Iterable[Status]) -> Status:
    """Return the most severe of several statuses; nothing checked is for a human.

    Examples
    --------
    >>> worst(["pass", "fail", "review"]), worst([])
    ('fail', 'review')
    """
    return max(statuses, key=_RANK.__getitem__, default="review")


@dataclass(frozen=True)
class Place:
    """Where a number stands in a finished file; without the number, unless it was asked for."""

    row: int
    column: int
    name: str = ""
    sheet: str = ""
    value: str | None = None

    @property
    def cell(self) -> str:
        """The address as a spreadsheet writes it.

        Examples
        --------
        >>> Place(4, 28).cell
        'AB4'
        """
        letters, rest = "", self.column
        while rest > 0:
            rest, place = divmod(rest - 1, 26)
            letters = chr(65 + place) + letters
        return f"{letters}{self.row}"

    def to_dict(self) -> dict[str, Any]:
        """Return the place, ready for JSON."""
        known = {"sheet": self.sheet or None, "row": self.row, "column": self.column, "cell": self.cell}
        named = {**known, "name": self.name}
        return named if self.value is None else {**named, "value": self.value}

    def __str__(self) -> str:
        where = f"{self.sheet}!{self.cell}" if self.sheet else f"{self.cell} (row {self.row})"
        name = f", column '{self.name}'" if self.name else ""
        return f"{where}{name}" + (f": {self.value}" if self.value is not None else "")


# A statbarn is a group of statistics that share four things: whether they are safe or unsafe, their risks, the
# rules to check and the ways to mend them. So one set of checks covers every statistic of the group. Form, not use,
# decides: a weighted or rounded frequency is still a frequency. A name that is not known is never passed.


Verdict = Literal["safe", "unsafe", "review"]

_MANY_SYNONYMS = 6


@dataclass(frozen=True)
class Barn:
    """One group of statistics: its class, risks, rules, mitigations and what only a human can judge."""

    id: str
    name: str
    kind: Literal["safe", "unsafe", "open"]
    risks: tuple[str, ...]
    rules: tuple[str, ...]
    mitigations: tuple[str, ...]
    questions: tuple[str, ...]
    rationale: str
    members: tuple[str, ...]


@dataclass(frozen=True)
class StatbarnInfo:
    """Where a statistic belongs and what follows from it.

    Attributes
    ----------
    name
        The name in the registry (the one asked for where it is unknown).
    barn, barn_name
        The group, ``"a"`` to ``"n"``; None where the name is unknown or can go either way.
    verdict
        ``"safe"``: only form checks; ``"unsafe"``: the data decide, so it must be inspected; ``"review"``: a human
        decides. None of the three means that an output may go out unseen.
    synonyms, risks, rules, mitigations, review_questions, rationale
        What the checker needs.
    """

    name: str
    barn: str | None
    barn_name: str
    verdict: Verdict
    synonyms: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    mitigations: tuple[str, ...] = ()
    review_questions: tuple[str, ...] = ()
    rationale: str = ""
    near: tuple[str, ...] = ()

    @property
    def safe(self) -> bool | None:
        """True or False by the class of the barn; None where a human decides."""
        return None if self.verdict == "review" else self.verdict == "safe"

    def to_dict(self) -> dict[str, Any]:
        """Return the entry, ready for JSON."""
        listed = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in listed.items()}

    def __str__(self) -> str:
        where = f"{self.barn}. {self.barn_name}" if self.barn else self.barn_name
        lines = [f"{self.name}: {where} ({self.verdict})", self.rationale]
        for title, items in (
            ("Also", self.synonyms[:_MANY_SYNONYMS]),
            ("Risks", self.risks),
            ("Rules", self.rules),
            ("Mitigation", self.mitigations),
            ("Ask", self.review_questions),
            ("Near", self.near),
        ):
            if items:
                lines.append(f"{title}: {'; '.join(items)}")
        return "\n".join(line for line in lines if line)


def classify(name: str) -> StatbarnInfo:
    """Say which statbarn a statistic or graph belongs to.

    Case, spaces, hyphens and CamelCase do not matter. A name that is not known is for a human, never passed.

    Also known as: statbarns; safe statistics; SDC handbook.

    Examples
    --------
    >>> info = classify("Kaplan Meier")
    >>> info.barn, info.barn_name, info.verdict
    ('f', 'Hazard and survival tables', 'unsafe')
    >>> classify("HHI").barn, classify("CR4").barn, classify("odds ratio").barn, classify("adjusted odds ratio").barn
    ('k', 'd', 'e', 'g')
    >>> classify("frobnication").verdict
    'review'
    """
    known = _by_name()
    found = known.get(_folded(name))
    if found is not None:
        return found
    titles = {entry.name: entry for entry in known.values()}
    close = difflib.get_close_matches(_folded(name), list(known), n=3, cutoff=0.75)
    near = tuple(dict.fromkeys(known[match].name for match in close if known[match].name in titles))
    return StatbarnInfo(
        name=name,
        barn=None,
        barn_name="not in the registry",
        verdict="review",
        review_questions=("What does one number of this output say, and about how many people?",),
        rationale="Unknown, so a human decides by the form of the statistic.",
        near=near,
    )


def registry(search: str | None = None, *, barn: str | None = None) -> list[StatbarnInfo]:
    """List the statistics and graphs that are known, or those whose name, synonym or group has the search words.

    Examples
    --------
    >>> [info.name for info in registry("survival curve")]
    ['kaplan-meier curve']
    >>> len(registry()) >= 150
    True
    """
    entries = list(dict.fromkeys(_by_name().values()))
    if barn is not None:
        entries = [entry for entry in entries if entry.barn == barn]
    if not search:
        return entries
    words = re.findall(r"[a-z0-9]+", search.lower())

    def has_all(text: str) -> bool:
        return all(word in text for word in words)

    exact = [e for e in entries if any(has_all(_spaced(t)) for t in (e.name, *e.synonyms))]
    return exact or [e for e in entries if has_all(_spaced(" ".join((e.name, *e.synonyms, e.barn_name))))]


@cache
def barns() -> Mapping[str, Barn]:
    """Return the fourteen groups by their letter.

    Examples
    --------
    >>> [barn.id for barn in barns().values() if barn.kind == "unsafe"]
    ['a', 'b', 'c', 'd', 'e', 'f']
    """
    return {
        entry["id"]: Barn(
            id=entry["id"],
            name=entry["name"],
            kind=entry["class"],
            rationale=entry["rationale"],
            members=tuple(entry["names"]),
            **{name: tuple(entry[name]) for name in ("risks", "rules", "mitigations", "questions")},
        )
        for entry in _document()["barn"]
    }


@cache
def _by_name() -> dict[str, StatbarnInfo]:
    found: dict[str, StatbarnInfo] = {}
    for barn in barns().values():
        for member in barn.members:
            name, *synonyms = member.split("|")
            info = StatbarnInfo(
                name=name,
                barn=barn.id,
                barn_name=barn.name,
                verdict="review" if barn.kind == "open" else barn.kind,
                synonyms=tuple(synonyms),
                risks=barn.risks,
                rules=barn.rules,
                mitigations=barn.mitigations,
                review_questions=barn.questions,
                rationale=barn.rationale,
            )
            _enter(found, info)
    for member, why in _document()["undecided"].items():
        name, *synonyms = member.split("|")
        _enter(found, StatbarnInfo(name, None, "a human decides", "review", tuple(synonyms), rationale=why))
    return found


def _enter(found: dict[str, StatbarnInfo], info: StatbarnInfo) -> None:
    for name in (info.name, *info.synonyms):
        found.setdefault(_folded(name), info)


@cache
def _document() -> dict[str, Any]:
    return tomllib.loads((files("discreet.outputs") / "statbarns.toml").read_text(encoding="utf-8"))


def _spaced(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", " ", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()).strip()


def _folded(name: str) -> str:
    """Reduce a name to its letters, without case, plural endings and the word for graphs of any kind."""
    words = _spaced(name.replace("'s", "s").replace("’s", "s")).split()
    words = ["plot" if word in ("graph", "chart", "diagram", "plots") else word for word in words]
    words = [
        word[:-1] if len(word) > 3 and word.endswith("s") and word[-2] != "s" else word for word in words
    ]
    return "".join(words)
