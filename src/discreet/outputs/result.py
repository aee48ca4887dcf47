"""One output of a session: its numbers, its status, and what a checker needs to know."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from discreet.outputs.check_results import CheckResult, Finding, Status
from discreet.outputs.register import Registered

MARKS: dict[Status, str] = {"pass": "✓", "review": "?", "fail": "✗"}
FREE, SECONDARY = "F", "D"
FLAG_NAMES = {
    "F": "free for publication",
    "A": "primary confidentiality: small count",
    "O": "primary confidentiality: dominance by one unit",
    "T": "primary confidentiality: dominance by two units",
    "G": "primary confidentiality: dominance by one or two units",
    "M": "primary confidentiality: other measures of concentration",
    "C": "confidential: other rule",
    "D": "secondary confidentiality, set by the sender",
}


@dataclass(frozen=True)
class Draft:
    """What an analysis hands to the session: numbers, checks, and what the register keeps.

    Attributes
    ----------
    kind
        Name of the statistic.
    tables
        What would go out, by name.
    flags
        For each table, one of the same shape with an SDMX-style confidentiality flag for every number.
    result
        What the researcher works on with; the first table unless given.
    offered
        The mitigations that this analysis can do by itself.
    """

    kind: str
    tables: Mapping[str, pl.DataFrame]
    checked: CheckResult
    flags: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    entries: tuple[Registered, ...] = ()
    result: Any = None
    variables: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    mitigation: str | None = None
    offered: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()


@dataclass(frozen=True, repr=False)
class Output:
    """An output with its status.

    Attributes
    ----------
    name
        Its name in the session.
    status
        ``pass``, ``review`` or ``fail``.
    reasons
        Why it does not pass, failures first.
    mitigations
        What could mend it.
    questions
        What only a human can judge.
    result
        The numbers to work on with: a table of the kind of the data, or the fitted model.
    tables
        What would go out.
    exception
        The researcher's reason why it should go out although it does not pass; empty unless asked for.
    """

    name: str
    draft: Draft
    checked: CheckResult
    command: str
    created: str
    result: Any
    comments: tuple[str, ...] = ()
    exception: str = ""

    @property
    def status(self) -> Status:
        """Fail if any check fails, else review if any needs a human, else pass."""
        return self.checked.status

    @property
    def kind(self) -> str:
        """Name of the statistic."""
        return self.draft.kind

    @property
    def barns(self) -> tuple[str, ...]:
        """The statbarns whose rules were checked."""
        return self.checked.barns

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Check by check."""
        return self.checked.findings

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it does not pass, failures first."""
        return self.checked.reasons

    @property
    def mitigations(self) -> tuple[str, ...]:
        """What could mend it, of what the analysis can do by itself."""
        return tuple(how for how in self.checked.mitigations if how in self.draft.offered)

    @property
    def questions(self) -> tuple[str, ...]:
        """What only a human can judge."""
        return self.checked.questions

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """What would go out, by name."""
        return self.draft.tables

    @property
    def table(self) -> pl.DataFrame:
        """The first table."""
        return next(iter(self.draft.tables.values()), pl.DataFrame())

    @property
    def flags(self) -> pl.DataFrame:
        """The confidentiality flags of the first table."""
        return next(iter(self.draft.flags.values()), pl.DataFrame())

    @property
    def line(self) -> str:
        """Status and reasons in one line."""
        why = f" {' '.join(self.reasons)}" if self.reasons else ""
        how = (
            f" Could help: {', '.join(self.mitigations)}."
            if self.status == "fail" and self.mitigations
            else ""
        )
        return f"{self.name} ({self.kind}): {self.status}.{why}{how}"

    def but(self, **changes: Any) -> Output:
        """Return the output with something changed."""
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the numbers, ready for JSON."""
        return {
            "name": self.name,
            "kind": self.kind,
            "command": self.command,
            "created": self.created,
            "variables": list(self.draft.variables),
            "notes": list(self.draft.notes),
            "mitigation": self.draft.mitigation,
            "comments": list(self.comments),
            "exception": self.exception,
            **self.checked.to_dict(),
        }

    def __str__(self) -> str:
        lines = [f"{MARKS[self.status]} {self.line}"]
        with pl.Config(
            tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True, tbl_rows=40, tbl_cols=20
        ):
            lines += [str(table) for table in self.tables.values()]
        lines += [f"Note: {note}" for note in self.draft.notes]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = [f"<p><strong>{MARKS[self.status]} {html.escape(self.line)}</strong></p>"]
        parts += [table._repr_html_() for table in self.tables.values()]
        parts += [f"<p>{html.escape(note)}</p>" for note in self.draft.notes]
        return "".join(parts)
