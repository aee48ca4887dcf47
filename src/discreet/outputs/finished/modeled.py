"""What a finished table says of models: degrees of freedom, fit, ratios, correlations; and of survival curves."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from discreet.core.errors import DiscreetError
from discreet.outputs.checks.frequencies import counted
from discreet.outputs.checks.models_and_tests import check_dof
from discreet.outputs.checks.survival_curves import check_survival, of_table
from discreet.outputs.findings import Finding
from discreet.outputs.finished.names import words_of
from discreet.outputs.finished.views import View, at

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
