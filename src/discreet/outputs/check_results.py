"""What the checks found: pass, review or fail, with the reason and the cells it is about, and where they stand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from discreet.core.values import jsonable
from discreet.outputs.statbarns import barns

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
        asked = self._questions() if questions is None else tuple(questions)
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
        failing = dict.fromkeys(f.barn for f in self.findings if f.status != "pass")
        listed = [how for barn in failing if barn in barns() for how in barns()[barn].mitigations]
        return tuple(dict.fromkeys(listed))

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

    def _questions(self) -> tuple[str, ...]:
        listed = [question for barn in self.barns if barn in barns() for question in barns()[barn].questions]
        return tuple(dict.fromkeys(listed))


def worst(statuses: Iterable[Status]) -> Status:
    """Return the most severe of several statuses; nothing checked is for a human.

    Examples
    --------
    >>> worst(["pass", "fail", "review"]), worst([])
    ('fail', 'review')
    """
    return max(statuses, key=_RANK.__getitem__, default="review")


# Where in a finished file does a number stand?


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
