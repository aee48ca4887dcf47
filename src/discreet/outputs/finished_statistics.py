"""Statistics in finished files: extremes, quantiles and spread, survival curves and models, printed models included."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from discreet.core.errors import DiscreetError
from discreet.core.files.untrusted import parsed_json
from discreet.outputs.check_results import Finding
from discreet.outputs.checks.frequencies import counted
from discreet.outputs.checks.models_and_tests import check_dof, check_per_unit
from discreet.outputs.finished_counts import View, at
from discreet.outputs.finished_sheets import quantile_of, words_of
from discreet.outputs.output_policy import OutputPolicy
from discreet.outputs.survival_curves import check_survival, of_table


def endpoints(view: View) -> list[Finding]:
    """Fail minima, maxima and ranges: a file cannot say that they are structural or shared."""
    here = view.having("endpoint")
    # "18-94" is no number, and yet both ends; only the first column of words is always a label.
    for j in np.flatnonzero(view.sheet.is_text)[1:]:
        here[:, j] |= view.sheet.column_roles[j] == "endpoint"
    places = [
        (int(i), int(j))
        for i, j in np.argwhere(here)
        if any(sign.isdigit() for sign in view.sheet.texts[i][j])
    ]
    if not places:
        return []
    reason = (
        f"{counted(len(places), 'minimum or maximum').replace('maximums', 'maxima')}: usually one person's value. Not "
        f"to be released unless it is structural or shared by {view.policy.threshold} people, which the file does "
        "not say."
    )
    return [at(view.sheet, Finding("endpoints", "c", "fail", reason), places, view.show_values)]


def quantiles(view: View) -> list[Finding]:
    """Judge quantiles by the people between them, where the number of people is there."""
    sheet = view.sheet
    shares = {j: q for j in view.numeric if (q := quantile_of(sheet.names[j])) and 0 < q < 1}
    by_row = {i: q for i, row in enumerate(sheet.texts) if (q := _row_quantile(view, row)) and 0 < q < 1}
    # The places of quantiles that belong together, and those of the numbers of people behind them.
    lines: list[tuple[list[tuple[int, int]], list[tuple[int, int]]]] = []
    if shares:
        rows = range(len(sheet.texts))
        lines = [([(i, j) for j in shares], [(i, j) for j in view.named_counts]) for i in rows]
    elif by_row:
        counts = [i for i, role in enumerate(sheet.row_roles) if role == "count"]
        lines = [([(i, j) for i in by_row], [(i, j) for i in counts]) for j in view.numeric]
    steps = np.diff([0.0, *sorted(set((shares or by_row).values())), 1.0]).min()
    cells: list[tuple[int, int, float]] = []
    unknown = False
    for marks, people in lines:
        some = [place for place in marks if view.known[place]]
        base = [sheet.numbers[place] for place in people if view.known[place]]
        unknown |= bool(some) and not base
        cells += [(*place, max(np.floor(steps * base[0] + 1e-9), 1)) for place in some if base]
    found = [view.low("between quantiles", cells, "b", "quantile with people around it")] if cells else []
    if unknown:
        reason = "Quantiles without the number of people behind them. A human asks for it."
        found.append(Finding("quantiles without counts", "b", "review", reason))
    return found


def _row_quantile(view: View, row: tuple[str, ...]) -> float | None:
    labels = np.flatnonzero(view.sheet.is_text)
    return next((q for j in labels if (q := quantile_of(row[j])) is not None), None)


def spread(view: View) -> list[Finding]:
    """Fail a spread of zero: everybody has the same value."""
    flat = view.having("spread") & view.known & (view.sheet.numbers == 0)
    if not flat.any():
        return []
    reason = f"{counted(int(flat.sum()), 'group')} without spread: everybody has the same value."
    places = [(int(i), int(j)) for i, j in np.argwhere(flat)]
    return [at(view.sheet, Finding("no spread", "i", "fail", reason), places, view.show_values)]


# What a finished table says of models: degrees of freedom, fit, ratios, correlations; and of survival curves.


_MODEL_WORDS = {"intercept", "const", "adjusted", "coef", "coefficient", "wald", "constant"}


def survival(view: View) -> list[Finding]:
    """Judge numbers at risk and events by the rules of survival tables, group by group."""
    roles = view.sheet.column_roles
    if "at risk" not in roles:
        return []
    risk = view.sheet.numbers[:, roles.index("at risk")]
    events = view.sheet.numbers[:, roles.index("events")] if "events" in roles else np.zeros(len(risk))
    both = np.isfinite(risk) & np.isfinite(events)
    rows = np.flatnonzero(both)
    # A new group begins where the number at risk rises again.
    starts = [0, *(np.flatnonzero(np.diff(risk[rows]) > 0) + 1).tolist(), len(rows)]
    found: list[Finding] = []
    for first, last in pairwise(starts):
        part = rows[first:last]
        try:
            curve = of_table(np.arange(len(part)), np.round(risk[part]), np.round(events[part]))
        except DiscreetError:
            reason = "The numbers at risk and the events do not fit each other. A human looks."
            return [Finding("survival table", "f", "review", reason)]
        for finding in check_survival(curve, view.policy, counts="events" in roles).findings:
            hit = [(int(part[c[0]]), roles.index("at risk")) for c in finding.cells]
            found.append(at(view.sheet, finding, hit, view.show_values))
    merged: dict[tuple[str, str], Finding] = {}
    for finding in found:
        key = (finding.check, finding.status)
        merged[key] = (
            replace(finding, places=(*merged[key].places, *finding.places)) if key in merged else finding
        )
    return list(merged.values())


def models(view: View) -> list[Finding]:
    """Judge what is said of a model: degrees of freedom, fit, values per person, ratios, correlations."""
    sheet = view.sheet
    found = []
    for i, j in np.argwhere(view.having("dof") & view.known):
        found.append(at(sheet, check_dof(float(sheet.numbers[i, j]), view.policy), [(int(i), int(j))]))
    found = [f for f in found if f.status == "fail"] or found[:1]
    perfect = view.having("fit") & view.known & (sheet.numbers >= 1) & (sheet.numbers < 1 + 1e-9)
    if perfect.any():
        places = [(int(i), int(j)) for i, j in np.argwhere(perfect)]
        reason = "R-squared is 1: the predictions are the data."
        found.append(at(sheet, Finding("perfect fit", "g", "fail", reason), places))
    owned = [j for j in view.numeric if sheet.column_roles[j] == "per unit"]
    if owned:
        named = set(words_of(" ".join(sheet.names[j] for j in owned)))
        sure = (
            bool(named - {"predicted", "prediction", "predictions", "fitted", "hat"}) and len(sheet.texts) > 2
        )
        many = len(sheet.texts) >= 15
        reason = (
            f"{counted(len(owned), 'column')} of values that models have for every person: that is microdata."
        )
        found.append(Finding("values per person", "g", "fail" if sure or many else "review", reason))
    found += _ratios(view)
    return [*found, *_correlations(view)]


def _ratios(view: View) -> list[Finding]:
    here = view.having("ratio") & view.known
    if not here.any():
        return []
    said = set(words_of(" ".join([*view.sheet.names, *(cell for row in view.sheet.texts for cell in row)])))
    if said & _MODEL_WORDS:
        reason = "Ratios of a model: whether it is a table in disguise, a human looks."
        return [Finding("ratios", "g", "review", reason)]
    places = [(int(i), int(j)) for i, j in np.argwhere(here)]
    if view.counts:
        reason = "Ratios beside counts: the counts are what is judged, and must be those behind the ratios."
        return [Finding("table behind it", "e", "review", reason)]
    reason = "Supply the table of counts behind the ratio: the ratio alone cannot be assessed."
    return [at(view.sheet, Finding("table behind it", "e", "fail", reason), places)]


def _correlations(view: View) -> list[Finding]:
    """Find a matrix whose rows are named like its columns, with ones on the diagonal."""
    sheet = view.sheet
    names = [sheet.names[j] for j in view.numeric]
    labels = [row[j] for row in sheet.texts for j in np.flatnonzero(sheet.is_text)[:1]]
    if len(names) < 2 or labels[: len(names)] != names:
        return []
    table = sheet.numbers[: len(names)][:, view.numeric]
    known = np.isfinite(table)
    if not (np.abs(table[known]) <= 1 + 1e-9).all():
        return []
    off = ~np.eye(len(names), dtype=bool) & known & (np.abs(table) >= 1 - 1e-12)
    if not off.any():
        return []
    places = [(int(i), view.numeric[int(j)]) for i, j in np.argwhere(off)]
    reason = "Variables are perfectly correlated: one gives the other away."
    return [at(sheet, Finding("perfect correlation", "g", "fail", reason), places)]


# What a printed or saved model says of itself: degrees of freedom, observations, fit, values per person.


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

    @property
    def is_model(self) -> bool:
        """Whether the text says anything of a model."""
        return bool(self.dof or self.people or self.fit)

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
