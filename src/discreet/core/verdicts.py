"""Whether a file meets a policy: rule by rule, what was not judged, and what a person accepted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from discreet.core.errors import ParameterError
from discreet.core.values import jsonable

Figure = float | int | bool | str | None


@dataclass(frozen=True)
class Check:
    """One rule of a policy held against one figure of a file.

    ``passed`` is None when the figure could not be had; ``reason`` then says why. ``table`` is where the rule stands in
    the policy: ``rules`` are about the file by itself, ``comparison`` about the file and its original. ``left_out``
    counts the records about which the figure says nothing, because none of their keys is known.
    """

    measure: str
    figure: str
    scenario: str
    limit: str
    actual: Figure
    passed: bool | None
    reason: str
    table: str = "rules"
    left_out: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the check, ready for JSON."""
        return {name: jsonable(getattr(self, name)) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class Unjudged:
    """One rule of a policy that is open, and what would close it.

    Attributes
    ----------
    rule, limit
        The rule, and the limit that it sets.
    needs
        What was not there to judge it by (``"the original"``, ``"a population file"``).
    way_out, command
        Where it can be judged, in words and as a command line.
    table
        Where the rule stands in the policy: ``rules`` or ``comparison``.
    decided
        False where it was judged, and the interval of the figure crosses the limit.
    actual, low, high
        The figure that was found, and the ends of its interval, where it is not decided.
    """

    rule: str
    limit: str
    needs: str
    way_out: str
    table: str = "comparison"
    command: str = ""
    decided: bool = True
    actual: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def line(self) -> str:
        """The rule and what would judge it, in one line."""
        return f"{self.rule} ({self.limit}): it needs {self.needs}; {self.way_out}"

    def to_dict(self) -> dict[str, Any]:
        """Return it, ready for JSON."""
        return {name: jsonable(getattr(self, name)) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class Acceptance:
    """A person takes responsibility for a rule that is open. A rule that failed cannot be accepted.

    Attributes
    ----------
    rule
        The rule as the policy names it, such as ``singling_out.risk``.
    because, by
        Why, and who.

    Examples
    --------
    >>> Acceptance("singling_out.risk", because="no strangers can be had", by="A. Steward").by
    'A. Steward'
    """

    rule: str
    because: str
    by: str

    def __post_init__(self) -> None:
        for name in ("rule", "because", "by"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value.strip():
                raise ParameterError(
                    f"An acceptance needs a text for {name}: which rule, why, and who says so."
                )

    def to_dict(self) -> dict[str, Any]:
        """Return it, ready for JSON."""
        return {"rule": self.rule, "because": self.because, "by": self.by}


Outcome = Literal["met", "not met", "open", "accepted"]
"""How a verdict ends: all rules hold, one does not, one is open, or a person accepted all that are open."""


@dataclass(frozen=True)
class Verdict:
    """Whether a file meets a policy, check by check. It never says that a file "is anonymous".

    ``checks`` are the rules that were judged, ``unjudged`` those that are open: something that only another door has
    (the original, a population file) was not there, or too few people to decide. A verdict with open rules clears
    nothing. ``accepted`` are open rules that a named person took responsibility for.
    """

    policy: str
    checks: tuple[Check, ...]
    unjudged: tuple[Unjudged, ...] = ()
    accepted: tuple[tuple[Unjudged, Acceptance], ...] = ()

    def accepting(self, acceptances: Iterable[Acceptance]) -> Verdict:
        """Move the open rules that a person accepts to ``accepted``; what failed or holds stays what it is."""
        by_rule = {one.rule: one for one in acceptances}
        taken = tuple((rule, by_rule[rule.rule]) for rule in self.unjudged if rule.rule in by_rule)
        left = tuple(rule for rule in self.unjudged if rule.rule not in by_rule)
        return replace(self, unjudged=left, accepted=(*self.accepted, *taken))

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that do not hold, and those whose figure could not be had."""
        return tuple(check for check in self.checks if not check.passed)

    @property
    def outcome(self) -> Outcome:
        """How it ends; ``accepted`` is no clearance by the rules."""
        if self.failed:
            return "not met"
        if self.unjudged:
            return "open"
        return "accepted" if self.accepted else "met"

    @property
    def meets(self) -> bool | None:
        """True only when every rule of the policy was judged and holds.

        False as soon as one does not hold or could not be checked; None while all that could be judged here holds and
        something is left to judge, or was accepted by a person.
        """
        return {"met": True, "not met": False}.get(self.outcome)

    @property
    def heading(self) -> str:
        """The verdict without its reasons."""
        if self.failed:
            return f"Does not meet policy '{self.policy}'"
        if self.outcome == "met":
            return f"Meets policy '{self.policy}'"
        if self.outcome == "accepted":
            names = ", ".join(dict.fromkeys(one.by for _, one in self.accepted))
            count = "1 rule" if len(self.accepted) == 1 else f"{len(self.accepted)} rules"
            return f"Accepted by {names}: {count} of policy '{self.policy}' not judged"
        if not self.checks:
            return f"Nothing could be judged here of policy '{self.policy}'"
        return f"Meets what could be judged here of policy '{self.policy}'"

    @property
    def line(self) -> str:
        """The verdict in one line; what was accepted comes first, and records about which it says nothing last."""
        silent = max((check.left_out for check in self.checks), default=0)
        said = " ".join([*self.accepted_lines, self._said])
        if not silent:
            return said
        records = "1 record" if silent == 1 else f"{silent:,} records"
        return f"{said} It says nothing about {records} of which no key is known."

    @property
    def _said(self) -> str:
        passed = "1 check" if len(self.checks) == 1 else f"{len(self.checks)} checks"
        if self.failed:
            reasons = [check.reason for check in self.failed]
            rest = f"; and {len(reasons) - 3} more" if len(reasons) > 3 else ""
            said = f"{self.heading}, because {'; '.join(reasons[:3])}{rest}."
            return f"{said} {self.left}." if self.unjudged else said
        if not self.unjudged:
            return f"{self.heading} ({passed} passed)."
        if not self.checks:
            return f"{self.heading}; {_uncapitalized(self.left)}."
        return f"{self.heading} ({passed} passed); {_uncapitalized(self.left)}."

    @property
    def accepted_lines(self) -> list[str]:
        """Who accepted which open rule, and why, one sentence each."""
        return [
            f"{rule.rule} ({rule.limit}) was not judged and is accepted by {one.by}, because {one.because}."
            for rule, one in self.accepted
        ]

    @property
    def left(self) -> str:
        """What is open, counted by what it needs: ``Not judged here: 4 rules that need the original``."""
        parts = []
        for decided, start in ((True, "Not judged here"), (False, "Not decided")):
            rules = [rule for rule in self.unjudged if rule.decided is decided]
            counts = {
                need: sum(rule.needs == need for rule in rules)
                for need in dict.fromkeys(r.needs for r in rules)
            }
            if counts:
                named = " and ".join(
                    f"{count} {'rule that needs' if count == 1 else 'rules that need'} {need}"
                    for need, count in counts.items()
                )
                parts.append(f"{start}: {named}")
        return "; ".join(parts)

    @property
    def left_lines(self) -> list[str]:
        """What is open, one line for each thing that is lacking: the rules, what would judge them, and how."""
        lines = []
        for decided, needs in dict.fromkeys((rule.decided, rule.needs) for rule in self.unjudged):
            rules = [rule for rule in self.unjudged if (rule.decided, rule.needs) == (decided, needs)]
            named = ", ".join(dict.fromkeys(f"{rule.rule} ({rule.limit})" for rule in rules))
            it = "it needs" if len(rules) == 1 else "they need"
            start = "Not judged here" if decided else "Not decided"
            lines.append(f"{start}: {named}: {it} {needs}; {rules[0].way_out}")
        return lines

    @property
    def commands(self) -> list[str]:
        """The command lines that would judge what is open."""
        return list(dict.fromkeys(rule.command for rule in self.unjudged if rule.command))

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict, ready for JSON; ``meets`` is null while something is left to judge."""
        return {
            "policy": self.policy,
            "meets": self.meets,
            "outcome": self.outcome,
            "line": self.line,
            "checks": [check.to_dict() for check in self.checks],
            "not_judged": [rule.to_dict() for rule in self.unjudged],
            "accepted": [{**rule.to_dict(), **one.to_dict()} for rule, one in self.accepted],
        }


def _uncapitalized(text: str) -> str:
    return text[:1].lower() + text[1:]
