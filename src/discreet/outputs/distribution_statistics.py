"""How a variable is distributed: quantiles, histograms, concentration, inequality."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from discreet.core.arrays import Array, Floats, Integers
from discreet.core.errors import ParameterError
from discreet.microdata import Microdata
from discreet.numerics.dominance import contributions
from discreet.outputs.check_results import CheckResult, Finding
from discreet.outputs.checks.frequencies import check_counts
from discreet.outputs.checks.statistic_checks import check_inequality, check_quantiles, gini_of, lorenz_points
from discreet.outputs.checks.total_checks import check_concentration, check_totals, check_values, herfindahl
from discreet.outputs.count_tables import missing_finding, rounded_check
from discreet.outputs.mitigations import primary_cells, require_mitigation, rounded, too_small
from discreet.outputs.output import Draft, flags_of, text
from discreet.outputs.output_cells import entered, records_of, registered
from discreet.outputs.output_differencing import bin_labels
from discreet.outputs.output_policy import OutputPolicy
from discreet.outputs.question import Question

_QUANTILES = ("round", "coarser-quantiles", "suppress")
_BINS = ("suppress", "round", "collapse")
_FEW_LARGEST = 3


def quantile_table(
    data: Microdata,
    question: Question,
    policy: OutputPolicy,
    probabilities: Sequence[float],
    *,
    mitigate: str | None = None,
) -> Draft:
    """Compute quantiles by group."""
    require_mitigation(mitigate, ["b"], _QUANTILES)
    shares = sorted(float(p) for p in probabilities)
    rows = records_of(data, question)
    missing, everybody = int(rows["x"].null_count()), rows.height
    known = rows.drop_nulls("x")
    groups, owners = grouped_values(known, question), grouped_owners(known, question)
    notes: list[str] = []
    if mitigate == "coarser-quantiles":
        sizes = [len(v) for _, v in groups] if owners is None else [len(np.unique(who)) for who in owners]
        shares = _coarser(sizes, shares, policy)
        notes.append(f"Quantiles are {', '.join(f'{p:g}' for p in shares)}, as the smallest group allows.")
    findings: list[Finding] = []
    lines, flags = [], []
    hidden_groups: list[int] = []
    for place, (label, values) in enumerate(groups):
        marks = np.quantile(values, shares) if len(values) else np.full(len(shares), np.nan)
        if mitigate == "round":
            marks = np.array([float(f"{m:.2g}") for m in marks])
        who = owners[place] if owners is not None else None
        found = check_quantiles(
            values, shares, policy, published=marks, rounded=mitigate == "round", owner=who
        )
        hidden = mitigate == "suppress" and found.status == "fail"
        flags.append({**label, **{f"p{100 * p:g}": "A" if found.status == "fail" else "F" for p in shares}})
        lines.append(
            {**label, **{f"p{100 * p:g}": None if hidden else m for p, m in zip(shares, marks, strict=True)}}
        )
        if hidden:
            hidden_groups.append(place)
        else:
            where = f" (group {place + 1})" if label else ""
            findings += [
                Finding(f.check, f.barn, f.status, f.reason[:-1] + where + ".", ((place,),), f.figures)
                for f in found.findings
                if f.status != "pass"
            ]
    findings = findings or [
        Finding(
            "between quantiles", "b", "pass", f"At least {policy.threshold} people lie between quantiles."
        )
    ]
    findings += missing_finding(missing, everybody, str(question.value), policy, "b")
    if mitigate == "round":
        notes.append("Quantiles are rounded to two figures.")
    return Draft(
        "quantiles",
        {"quantiles": pl.DataFrame(lines, strict=False)},
        CheckResult(findings),
        {"quantiles": pl.DataFrame(flags)},
        (entered("quantiles", data, question, hidden=hidden_groups),),
        variables=question.columns(),
        notes=tuple(notes),
        mitigation=mitigate,
        offered=_QUANTILES,
    )


def histogram_table(
    data: Microdata,
    question: Question,
    policy: OutputPolicy,
    *,
    bins: int = 10,
    edges: Sequence[float] | None = None,
    mitigate: str | None = None,
) -> Draft:
    """Count a variable in bins whose ends are round numbers, so that they show nobody's value."""
    require_mitigation(mitigate, ["a"], _BINS)
    rows = records_of(data, question)
    missing, everybody = int(rows["x"].null_count()), rows.height
    known = rows.drop_nulls("x")
    values = known["x"].to_numpy()
    if not len(values):
        raise ParameterError(f"Column '{question.value}' has no values to draw.")
    cuts = np.unique(np.asarray(edges, dtype=np.float64)) if edges is not None else round_edges(values, bins)
    if len(cuts) < 2:
        raise ParameterError("A histogram needs at least two edges.")
    outside = int(((values < cuts[0]) | (values > cuts[-1])).sum())
    if question.subject is not None:
        known = known.unique(subset=["p", "x"])
        values = known["x"].to_numpy()
    counts = np.histogram(values, cuts)[0].astype(np.float64)
    notes = [f"{outside:,} values lie outside the edges and are not counted."] if outside else []
    if mitigate == "collapse":
        while len(counts) > 1 and (wrong := np.flatnonzero(too_small(counts, policy))).size:
            at = int(wrong[np.argmin(counts[wrong])])
            joins_left = at and (at == len(counts) - 1 or counts[at - 1] <= counts[at + 1])
            cuts = np.delete(cuts, at if joins_left else at + 1)
            counts = np.histogram(values, cuts)[0].astype(np.float64)
        notes.append("Bins were merged until the counts are large enough.")
    checked = check_counts(counts, policy)
    flags = flags_of(counts.shape, checked)
    hidden = (
        primary_cells(checked, counts.shape) if mitigate == "suppress" else np.zeros(len(counts), dtype=bool)
    )
    if hidden.any():
        flags[~hidden] = "F"
        checked = check_counts(counts, policy, hidden=hidden)
    if mitigate == "round":
        checked = rounded_check(counts, policy)
        flags[:] = "F"
    if edges is None or not {float(values.min()), float(values.max())} & {float(cuts[0]), float(cuts[-1])}:
        reason = "The ends of the axis are round numbers or given by hand."
        ends = Finding("axis ends", "c", "pass", reason)
    else:
        reason = (
            "An end of the axis is the smallest or largest value; a human looks whether it is structural."
        )
        ends = Finding("axis ends", "c", "review", reason)
    gaps = missing_finding(missing, everybody, str(question.value), policy, "a")
    checked = checked.with_more([ends, *gaps])
    shown = rounded(counts, policy.round_base) if mitigate == "round" else np.where(hidden, np.nan, counts)
    below = np.concatenate([[0.0], np.cumsum(counts)]) + float((values < cuts[0]).sum())
    entry = registered(
        "histogram",
        data,
        question,
        (bin_labels(cuts.tolist()),),
        np.where(hidden, np.nan, counts),
        edges={str(question.value): (cuts.tolist(), below.tolist())},
        adds_up=question.subject is None,
    )
    entry = replace(entry, by=(f"{question.value} in bins",))
    frame = {"from": cuts[:-1].tolist(), "to": cuts[1:].tolist()}
    numbers = [None if math.isnan(n) else int(n) for n in shown.tolist()]
    return Draft(
        "histogram",
        {"histogram": pl.DataFrame({**frame, "count": numbers}, strict=False)},
        checked,
        {"histogram": pl.DataFrame({**frame, "count": flags.tolist()})},
        # Rounded counts differ by multiples of the base, which is no count of people.
        () if mitigate == "round" else (entry,),
        variables=question.columns(),
        notes=tuple(notes),
        mitigation=mitigate,
        offered=_BINS,
    )


def round_edges(values: Floats, bins: int) -> Floats:
    """Choose bins of a round width that reach beyond the values on both sides.

    Examples
    --------
    >>> round_edges(np.array([3.2, 17.9]), 4).tolist()
    [0.0, 5.0, 10.0, 15.0, 20.0]
    """
    if bins < 1:
        raise ParameterError("bins must be 1 or more.")
    low, high = float(values.min()), float(values.max())
    width = (high - low) / bins or 1.0
    size = 10.0 ** math.floor(math.log10(width))
    step = min((m * size for m in (1, 2, 5, 10)), key=lambda s: (s < width * 0.9, abs(s - width)))
    first, last = math.floor(low / step), math.floor(high / step) + 1
    return np.round(np.arange(first, last + 1) * step, 12)


def inequality_table(data: Microdata, question: Question, policy: OutputPolicy) -> Draft:
    """Compute Gini coefficients by group."""
    rows = records_of(data, question).drop_nulls("x")
    groups = grouped_values(rows, question, owners=True)
    weights: Sequence[Floats | None] = [None] * len(groups)
    if question.weight is not None and question.subject is None:
        weights = [weight for _, weight in _split(rows, question, "w")]
    numbers = [gini_of(values, weight) for (_, values), weight in zip(groups, weights, strict=True)]
    checked = check_inequality([len(values) for _, values in groups], policy)
    return _by_group(
        "gini", groups, numbers, checked.with_more(_value_findings(groups, policy, "l")), question, data
    )


def lorenz_table(
    data: Microdata, question: Question, policy: OutputPolicy, points: int, mitigate: str | None
) -> Draft:
    """Compute a Lorenz curve at equal steps."""
    require_mitigation(mitigate, ["l"], ("coarser-curve",))
    values = grouped_values(records_of(data, question).drop_nulls("x"), question, owners=True)[0][1]
    notes: tuple[str, ...] = ()
    if mitigate == "coarser-curve":
        points = min(points, max(len(values) // policy.threshold, 1))
        notes = (f"The curve has {points} points, so that enough people lie between them.",)
    shares, of_total, inside = lorenz_points(values, points)
    table = pl.DataFrame({"share of units": shares, "share of total": of_total})
    checked = check_inequality(len(values), policy, steps=inside)
    checked = checked.with_more(_value_findings([({}, values)], policy, "l"))
    return Draft(
        "lorenz curve",
        {"lorenz curve": table},
        checked,
        entries=(entered("lorenz curve", data, question),),
        variables=question.columns(),
        notes=notes,
        mitigation=mitigate,
        offered=("coarser-curve",),
    )


def herfindahl_table(data: Microdata, question: Question, policy: OutputPolicy) -> Draft:
    """Compute Herfindahl-Hirschman indexes by group."""
    groups = grouped_values(records_of(data, question).drop_nulls("x"), question, owners=True)
    numbers = [herfindahl(values) for _, values in groups]
    checked = check_concentration([len(values) for _, values in groups], numbers, policy)
    return _by_group(
        "hhi", groups, numbers, checked.with_more(_value_findings(groups, policy, "k")), question, data
    )


def top_share_table(data: Microdata, question: Question, policy: OutputPolicy, n: int) -> Draft:
    """Compute the share of the n largest units by group: a linear aggregate, with dominance."""
    groups = grouped_values(records_of(data, question).drop_nulls("x"), question, owners=True)
    cell, value = _end_to_end(groups)
    numbers = contributions(cell, value).share(n)
    checked = check_totals(cell, value, policy).with_more(_value_findings(groups, policy, "d"))
    if n < _FEW_LARGEST:
        reason = (
            f"The share of the {n} largest is their own value once the total is known. A human looks, or take more of "
            "them."
        )
        checked = checked.with_more([Finding("largest units", "d", "review", reason)])
    return _by_group("concentration ratio", groups, numbers.tolist(), checked, question, data, additive=True)


def grouped_values(
    rows: pl.DataFrame, question: Question, *, owners: bool = False
) -> list[tuple[dict[str, str], Floats]]:
    """Split values by group, in the order of the levels; with ``owners`` those of one person are added first."""
    if owners and question.subject is not None:
        rows = rows.group_by([*_keys(question), "p"]).agg(pl.col("x").sum())
    return _split(rows, question, "x")


def _keys(question: Question) -> list[str]:
    return [f"d{i}" for i in range(len(question.by))]


def _split(rows: pl.DataFrame, question: Question, column: str) -> list[tuple[dict[str, str], Array]]:
    """Split a column by group, in the order of the levels."""
    keys = _keys(question)
    if not keys:
        return [({}, rows[column].to_numpy())]
    groups = rows.group_by(keys).agg(column).sort(keys, nulls_last=True)
    return [
        ({name: text(row[key]) for name, key in zip(question.by, keys, strict=True)}, np.asarray(row[column]))
        for row in groups.iter_rows(named=True)
    ]


def grouped_owners(rows: pl.DataFrame, question: Question) -> list[Array] | None:
    """Say whom the values of `grouped_values` belong to, where a person may have several."""
    if question.subject is None:
        return None
    # The unknown are taken for one person: that can only make a count smaller.
    who = rows.with_columns(pl.col("p").rank("dense").fill_null(0).cast(pl.Int64))
    return [people for _, people in _split(who, question, "p")]


def _end_to_end(groups: Sequence[tuple[dict[str, str], Floats]]) -> tuple[Integers, Floats]:
    cell = np.repeat(np.arange(len(groups)), [len(values) for _, values in groups])
    return cell, np.concatenate([values for _, values in groups]) if groups else np.empty(0)


def _value_findings(
    groups: Sequence[tuple[dict[str, str], Floats]], policy: OutputPolicy, barn: str
) -> list[Finding]:
    """Say where few contribute, or a variable with few values makes the statistic a count."""
    cell, value = _end_to_end(groups)
    found = check_values(cell, value, len(groups), policy, barn=barn).findings
    return [finding for finding in found if finding.status != "pass"]


def _by_group(  # noqa: PLR0917
    kind: str,
    groups: Sequence[tuple[dict[str, str], Floats]],
    numbers: Sequence[float],
    checked: CheckResult,
    question: Question,
    data: Microdata,
    *,
    additive: bool = False,
) -> Draft:
    flags = flags_of((len(groups),), checked)
    lines = [{**label, kind: number} for (label, _), number in zip(groups, numbers, strict=True)]
    marks = [{**label, kind: flag} for (label, _), flag in zip(groups, flags.tolist(), strict=True)]
    return Draft(
        kind,
        {kind: pl.DataFrame(lines, strict=False)},
        checked,
        {kind: pl.DataFrame(marks)},
        (entered(kind, data, question, additive=additive),),
        variables=question.columns(),
    )


def _coarser(sizes: Sequence[int], shares: Sequence[float], policy: OutputPolicy) -> list[float]:
    """Leave out quantiles until enough people lie between those that are left, in the smallest group."""
    fewest = min(sizes, default=0)
    for number in range(len(shares), 0, -1):
        chosen = [(i + 1) / (number + 1) for i in range(number)]
        if fewest / (number + 1) >= policy.threshold:
            return chosen
    return [0.5]
