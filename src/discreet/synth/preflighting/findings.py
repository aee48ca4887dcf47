"""What a look at a file finds: one finding, and how findings are named, written and read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from discreet.core.errors import ParameterError, unknown_name
from discreet.core.values import jsonable

Confidence = Literal["high", "medium", "low"]
CONFIDENCES: tuple[Confidence, ...] = ("high", "medium", "low")

_FIELDS = (
    "name", "kind", "columns", "confidence", "action", "reversible", "accepted", "evidence", "parameters",
)  # fmt: skip
_SHOWN = 4


@dataclass(frozen=True)
class Finding:
    """One thing about a file that its synthesis should know.

    Attributes
    ----------
    kind
        What was found: ``coded-missing``, ``look-up``, ``sum``, ``product``, ``outliers``, ``spikes``,
        ``number-as-text``, ``few-values``, ``identifier``, ``constant``, ``all-missing``, ``many-levels``,
        ``date-as-text``, ``near-unique-text``, ``given-value``, ``inequality``, ``household``.
    columns
        The column it speaks of, then those it depends on.
    evidence
        The numbers behind it.
    confidence
        ``high`` is acted on unless you say otherwise; ``medium`` and ``low`` are for you to judge.
    action
        What is proposed, in plain words.
    reversible
        Whether the synthetic file gets it back exactly as the original had it.
    parameters
        What the action needs: codes, an expression, a look-up table.
    accepted
        Your own decision; None leaves it to the confidence.
    name
        How it is called, e.g. ``coded-missing:income``.
    """

    kind: str
    columns: tuple[str, ...]
    evidence: Mapping[str, Any]
    confidence: Confidence
    action: str
    reversible: bool = True
    parameters: Mapping[str, Any] = field(default_factory=dict)
    accepted: bool | None = None
    name: str = ""

    @property
    def column(self) -> str:
        """The column it speaks of."""
        return self.columns[0]

    def is_accepted(self, accept: str | Sequence[str]) -> bool:
        """Whether it is acted on: as decided in the finding, by its name, or by its confidence."""
        if self.accepted is not None:
            return self.accepted
        if isinstance(accept, str) and accept in CONFIDENCES:
            return CONFIDENCES.index(self.confidence) <= CONFIDENCES.index(accept)
        return self.name in ([accept] if isinstance(accept, str) else accept)

    def to_dict(self) -> dict[str, Any]:
        """Return the finding, ready for JSON or TOML."""
        held = {name: jsonable(getattr(self, name)) for name in _FIELDS}
        return {name: value for name, value in held.items() if value is not None and value != {}}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Finding:
        """Make a finding from the content of a plan file."""
        for option in given:
            if option not in _FIELDS:
                raise ParameterError(f"In a finding: {unknown_name(option, _FIELDS, what='entry')}")
        for needed in ("kind", "columns", "confidence"):
            if needed not in given:
                raise ParameterError(
                    f"A finding of the plan has no '{needed}'. Add it, or take the finding out."
                )
        if given["confidence"] not in CONFIDENCES:
            raise ParameterError(unknown_name(str(given["confidence"]), CONFIDENCES, what="confidence"))
        return cls(
            kind=str(given["kind"]),
            columns=tuple(given["columns"]),
            evidence=dict(given.get("evidence", {})),
            confidence=given["confidence"],
            action=str(given.get("action", "")),
            reversible=bool(given.get("reversible", True)),
            parameters=dict(given.get("parameters", {})),
            accepted=given.get("accepted"),
            name=str(given.get("name", f"{given['kind']}:{given['columns'][0]}")),
        )

    @property
    def words(self) -> str:
        """The evidence in one line."""
        told = [
            (name, value)
            for name, value in self.evidence.items()
            if not isinstance(value, list | tuple | dict)
        ]
        return ", ".join(f"{name.replace('_', ' ')} {_said(value)}" for name, value in told[:_SHOWN])


def named(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Give every finding a name of its own: its kind and column, with a number from the second one on."""
    seen: dict[str, int] = {}
    done = []
    for finding in findings:
        name = f"{finding.kind}:{finding.column}"
        seen[name] = seen.get(name, 0) + 1
        done.append(replace(finding, name=name if seen[name] == 1 else f"{name}-{seen[name]}"))
    return tuple(done)


def _said(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)
