"""Survival curves by group, as whole tables or at the times that may be published."""

from __future__ import annotations

import narwhals as nw
import numpy as np
import polars as pl

from discreet.engine import collect
from discreet.errors import ColumnError, unknown_name
from discreet.microdata import Microdata
from discreet.outputs.cells import Where, population
from discreet.outputs.checks.survival import SurvivalCurve, check_survival, grouped, kaplan_meier, publishable
from discreet.outputs.findings import CheckResult, Finding
from discreet.outputs.layout import text
from discreet.outputs.protecting import require_mitigation
from discreet.outputs.register import Registered
from discreet.outputs.result import Draft
from discreet.outputs.settings import OutputPolicy

_OFFERED = ("group-times", "drop-tail")


def survival_table(
    data: Microdata,
    policy: OutputPolicy,
    *,
    time: str,
    event: str,
    by: str | None = None,
    where: Where | None = None,
    show_counts: bool = True,
    mitigate: str | None = None,
) -> Draft:
    """Estimate survival by group, check every curve, and publish only safe times if asked."""
    if mitigate is not None:
        require_mitigation(mitigate, ["f"], _OFFERED)
    columns = [name for name in (time, event, by) if name is not None]
    for name in (*columns, *(where or {})):
        if name not in data.schema:
            raise ColumnError(unknown_name(name, data.columns))
    for name, what in ((time, "time, a number"), (event, "event, true or false (or 1 and 0)")):
        if not (data.schema[name].is_numeric() or data.schema[name] == nw.Boolean):
            raise ColumnError(
                f"Column '{name}' is {data.schema[name]}; a survival curve needs there the {what}."
            )
    rows = collect(data, list(dict.fromkeys([*columns, *(where or {})])))
    for name, wanted in (where or {}).items():
        many = list(wanted) if isinstance(wanted, list | tuple | set) else [wanted]
        rows = rows.filter(pl.col(name).is_in(many))
    known = rows.drop_nulls([time, event])
    notes = []
    if known.height < rows.height:
        notes.append(f"{rows.height - known.height:,} of {rows.height:,} records have no time or event.")
    parts = (
        {"": known}
        if by is None
        else {text(v): known.filter(pl.col(by).eq_missing(v)) for v in _values(known, by)}
    )
    frames: list[pl.DataFrame] = []
    findings: list[Finding] = []
    sizes: list[float] = []
    for label, part in parts.items():
        curve = kaplan_meier(part[time].cast(pl.Float64).to_numpy(), part[event].cast(pl.Boolean).to_numpy())
        curve = _mended(curve, policy, mitigate)
        found = check_survival(curve, policy)
        for finding in found.findings:
            where_at = f" ({by} {len(frames) + 1})" if by is not None and finding.status != "pass" else ""
            reason = finding.reason[:-1] + where_at + "."
            findings.append(Finding(finding.check, "f", finding.status, reason, finding.cells))
        frames.append(_frame(curve, label, by, show_counts))
        sizes.append(float(part.height))
    if mitigate == "group-times":
        notes.append("Times are grouped so that enough people left between them; the tail is cut.")
    entry = Registered(
        "survival curve",
        population(data, columns),
        where or {},
        (by,) if by else (),
        (tuple(parts),) if by else (),
        np.array(sizes) if by else np.array(sizes[0] if sizes else 0.0),
    )
    table = pl.concat(frames) if frames else pl.DataFrame()
    return Draft(
        "survival curve",
        {"survival curve": table},
        CheckResult(findings),
        entries=(entry,) if show_counts else (),
        variables=tuple(columns),
        notes=tuple(notes),
        mitigation=mitigate,
        offered=_OFFERED,
    )


def _mended(curve: SurvivalCurve, policy: OutputPolicy, mitigate: str | None) -> SurvivalCurve:
    if mitigate == "group-times":
        return grouped(curve, publishable(curve, policy))
    if mitigate == "drop-tail":
        return grouped(curve, curve.at_risk >= policy.survival_threshold)
    return curve


def _frame(curve: SurvivalCurve, label: str, by: str | None, show_counts: bool) -> pl.DataFrame:
    frame = {by: [label] * len(curve.times)} if by is not None else {}
    counts = {"at risk": curve.at_risk, "events": curve.events, "exits": curve.exits} if show_counts else {}
    schema = {by: pl.String} if by is not None else {}
    return pl.DataFrame(
        {**frame, "time": curve.times, **counts, "survival": curve.survival}, schema_overrides=schema
    )


def _values(rows: pl.DataFrame, by: str) -> list[object]:
    return rows[by].unique().sort(nulls_last=True).to_list()
