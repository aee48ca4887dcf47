"""Whether a file meets a policy: rule by rule, and what was not judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
    """One rule of a policy that was not judged here, and what would judge it.

    ``needs`` is what was not there to judge it by (``"the original"``, ``"a population file"``); ``way_out`` says where
    it can be judged.
    """

    rule: str
    limit: str
    needs: str
    way_out: str
    table: str = "comparison"

    @property
    def line(self) -> str:
        """The rule and what would judge it, in one line."""
        return f"{self.rule} ({self.limit}): it needs {self.needs}; {self.way_out}"

    def to_dict(self) -> dict[str, Any]:
        """Return it, ready for JSON."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class Verdict:
    """Whether a file meets a policy, check by check. It never says that a file "is anonymous".

    ``checks`` are the rules that were judged, ``unjudged`` those that were not, because something that only another
    door has (the original, a population file) was not there. A verdict with unjudged rules clears nothing.
    """

    policy: str
    checks: tuple[Check, ...]
    unjudged: tuple[Unjudged, ...] = ()

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that do not hold, and those whose figure could not be had."""
        return tuple(check for check in self.checks if not check.passed)

    @property
    def meets(self) -> bool | None:
        """True only when every rule of the policy was judged and holds.

        False as soon as one does not hold or could not be checked; None while all that could be judged here holds and
        something is left to judge.
        """
        if self.failed:
            return False
        return None if self.unjudged else True

    @property
    def heading(self) -> str:
        """The verdict without its reasons."""
        if self.failed:
            return f"Does not meet policy '{self.policy}'"
        if not self.unjudged:
            return f"Meets policy '{self.policy}'"
        if not self.checks:
            return f"Nothing could be judged here of policy '{self.policy}'"
        return f"Meets what could be judged here of policy '{self.policy}'"

    @property
    def line(self) -> str:
        """The verdict in one line; records about which it says nothing are part of it."""
        silent = max((check.left_out for check in self.checks), default=0)
        if not silent:
            return self._told
        records = "1 record" if silent == 1 else f"{silent:,} records"
        return f"{self._told} It says nothing about {records} of which no key is known."

    @property
    def _told(self) -> str:
        passed = "1 check" if len(self.checks) == 1 else f"{len(self.checks)} checks"
        if self.failed:
            reasons = [check.reason for check in self.failed]
            rest = f"; and {len(reasons) - 3} more" if len(reasons) > 3 else ""
            told = f"{self.heading}, because {'; '.join(reasons[:3])}{rest}."
            return f"{told} Not judged here: {self.left}." if self.unjudged else told
        if not self.unjudged:
            return f"{self.heading} ({passed} passed)."
        if not self.checks:
            return f"{self.heading}; not judged here: {self.left}."
        return f"{self.heading} ({passed} passed); not judged here: {self.left}."

    @property
    def left(self) -> str:
        """What was not judged here, counted by what it needs: ``4 rules that need the original``."""
        needs = dict.fromkeys(rule.needs for rule in self.unjudged)
        counts = {need: sum(rule.needs == need for rule in self.unjudged) for need in needs}
        return " and ".join(
            f"{count} {'rule that needs' if count == 1 else 'rules that need'} {need}"
            for need, count in counts.items()
        )

    @property
    def left_lines(self) -> list[str]:
        """What was not judged here, one line for each thing that is lacking: the rules, and what would judge them."""
        lines = []
        for needs in dict.fromkeys(rule.needs for rule in self.unjudged):
            rules = [rule for rule in self.unjudged if rule.needs == needs]
            named = ", ".join(dict.fromkeys(f"{rule.rule} ({rule.limit})" for rule in rules))
            it = "it needs" if len(rules) == 1 else "they need"
            lines.append(f"{named}: {it} {needs}; {rules[0].way_out}")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict, ready for JSON; ``meets`` is null while something is left to judge."""
        return {
            "policy": self.policy,
            "meets": self.meets,
            "line": self.line,
            "checks": [check.to_dict() for check in self.checks],
            "not_judged": [rule.to_dict() for rule in self.unjudged],
        }
