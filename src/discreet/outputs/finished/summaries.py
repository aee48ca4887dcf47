"""What a printed or saved model says of itself: degrees of freedom, observations, fit, values per person."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discreet.core.files.texts import parsed_json
from discreet.outputs.checks.models_and_tests import check_dof, check_per_unit
from discreet.outputs.findings import Finding
from discreet.outputs.settings import OutputPolicy

_NUMBER = r"([\d][\d.,]*)"
_DOF = (
    re.compile(rf"Df Residuals:\s*{_NUMBER}", re.IGNORECASE),
    re.compile(
        rf"on\s+(?:\d+\s+and\s+)?{_NUMBER}\s+(?:residual\s+)?(?:degrees of freedom|DF)", re.IGNORECASE
    ),
    re.compile(rf"residual deviance:.*?on\s+{_NUMBER}", re.IGNORECASE),
    re.compile(rf"Residual\s*\|\s*[\d.e+]+\s+{_NUMBER}\s", re.IGNORECASE),
    re.compile(rf"(?:residual df|df_resid|df\.residual)\s*[:=]\s*{_NUMBER}", re.IGNORECASE),
)
_PEOPLE = re.compile(
    r"(?:No\.? Observations:|Number of obs(?:ervations)?\s*[=:]|\bnobs\s*[=:]|Observations:?\s+(?=\d)|\bN\s*=)\s*"
    + _NUMBER,
    re.IGNORECASE,
)
_R2 = re.compile(
    r"(?<!pseudo )(?<!adjusted )(?<!adj )(?<!adj\. )R-?\s?squared(?: \(uncentered\))?\s*[:=]\s*([\d.]+)",
    re.IGNORECASE,
)
_PER_PERSON = ("residuals per case", "fitted values", "predicted values", "cook's distance")


@dataclass(frozen=True)
class Facts:
    """All that a file says of its models; several where it has several."""

    dof: tuple[float, ...] = ()
    people: tuple[float, ...] = ()
    fit: tuple[float, ...] = ()
    shown: tuple[str, ...] = ()

    def findings(self, policy: OutputPolicy) -> list[Finding]:
        """Judge them; the worst of several models counts."""
        found: list[Finding] = []
        if self.dof:
            found.append(check_dof(min(self.dof), policy))
        if any(number >= 1 for number in self.fit):
            found.append(Finding("perfect fit", "g", "fail", "R-squared is 1: the predictions are the data."))
        if self.people and min(self.people) < policy.threshold:
            found.append(Finding("low count", "g", "fail", f"Fewer than {policy.threshold} observations."))
        found += check_per_unit(self.shown)
        close = close_numbers(self.people, self.people, policy)
        if close:
            reason = (
                f"Two models of the file are on numbers of people that differ by fewer than "
                f"{policy.difference_threshold}: if they are the same people but for a few, those few can be worked "
                "out. A human looks."
            )
            found.append(Finding("differencing", "g", "review", reason))
        return found


def close_numbers(one: tuple[float, ...], other: tuple[float, ...], policy: OutputPolicy) -> int:
    """Count the pairs of numbers that differ, and by fewer than the threshold.

    Examples
    --------
    >>> close_numbers((1000.0,), (999.0, 400.0), OutputPolicy())
    1
    """
    limit = policy.difference_threshold or policy.threshold
    return sum(0 < abs(a - b) < limit for a in set(one) for b in set(other))


def facts_of(text: str, *, is_json: bool) -> Facts:
    """Read what a file says of its models."""
    return _of_json(text) if is_json else _of_text(text)


def _of_text(text: str) -> Facts:
    plain = re.sub(r"<[^>]+>", " ", text)
    lowered = plain.lower()
    dof = [_figure(found) for pattern in _DOF for found in pattern.findall(plain)]
    return Facts(
        tuple(number for number in dof if number is not None),
        tuple(number for found in _PEOPLE.findall(plain) if (number := _figure(found)) is not None),
        tuple(number for found in _R2.findall(plain) if (number := _figure(found)) is not None),
        tuple(word for word in _PER_PERSON if word in lowered),
    )


def _of_json(text: str) -> Facts:
    try:
        document = parsed_json(text)
    except ValueError:
        return Facts()
    flat: dict[str, list[float]] = {}
    lists: list[str] = []

    def walk(item: Any, name: str) -> None:
        if isinstance(item, Mapping):
            for key, value in item.items():
                walk(value, str(key).lower())
        elif isinstance(item, list):
            lists.append(name)
            for value in item:
                if isinstance(value, Mapping):
                    walk(value, name)
        elif isinstance(item, int | float) and not isinstance(item, bool):
            flat.setdefault(name, []).append(float(item))

    walk(document, "")

    def of(*names: str) -> tuple[float, ...]:
        return tuple(number for name in names for number in flat.get(name, ()))

    people = of("nobs", "n_obs", "observations") or (of("n") if of("df_resid", "dof", "rsquared") else ())
    dof = of("df_resid", "df_residual", "residual_df", "dof")
    return Facts(dof, people, of("rsquared", "r2", "r_squared"), tuple(lists))


def _figure(text: str) -> float | None:
    try:
        return float(text.replace(",", "").rstrip("."))
    except ValueError:
        return None
