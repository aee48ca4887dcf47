"""Check a file that is finished: a table of counts, or the summary of a fitted model.

A finished file does not say what stands behind its numbers, so what can be judged is judged (low counts, suppressed
cells that follow from totals, few degrees of freedom) and the rest is left to a human. Nothing is unpickled, and no
file is executed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from discreet.errors import DiscreetError, InputError
from discreet.outputs.checks.frequencies import check_counts, check_margins, counted
from discreet.outputs.checks.models import check_dof, check_per_unit
from discreet.outputs.findings import CheckResult, Finding
from discreet.outputs.settings import OutputPolicy

TABLES = (".csv", ".tsv", ".xlsx", ".xls")
TEXTS = (".txt", ".md", ".log", ".json", ".html", ".htm", ".tex")
_TOTAL = re.compile(
    r"^\(?(total|all|sum|overall|together|margin|gesamt|insgesamt|ensemble)s?\)?$", re.IGNORECASE
)
_COUNT = re.compile(
    r"(^|[^a-z])(n|count|counts|freq|frequency|frequencies|number|cases|obs|people)([^a-z]|$)", re.IGNORECASE
)
_HIDDEN = re.compile(
    r"^\s*([*x.:–—-]{1,3}|c|s|nd|n\.?d\.?|supp(ressed)?|\(?[<≤]\s*\d+\)?|confidential)\s*$", re.IGNORECASE
)
_DOF = (
    re.compile(r"Df Residuals:\s*([\d.,]+)", re.IGNORECASE),
    re.compile(r"on\s+([\d.,]+)\s+(?:residual\s+)?degrees of freedom", re.IGNORECASE),
    re.compile(r"residual deviance:.*?on\s+([\d.,]+)", re.IGNORECASE),
    re.compile(r"Residual\s*\|\s*[\d.e+]+\s+([\d,]+)\s", re.IGNORECASE),
)
_PEOPLE = re.compile(r"(?:No\. Observations:|Number of obs(?:ervations)?\s*[=:])\s*([\d.,]+)", re.IGNORECASE)
_R2 = re.compile(r"(?<!pseudo )R-?squared(?: \(uncentered\))?\s*[:=]\s*([\d.]+)", re.IGNORECASE)
_MOST_ROWS = 500


def check(path: str | Path, policy: OutputPolicy | str | Path | None = None) -> CheckResult:
    r"""Check a finished table or model summary.

    Parameters
    ----------
    path
        CSV, TSV or Excel with counts; text, HTML or JSON with the summary of a model.
    policy
        The thresholds; the defaults unless given.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = file.write_text("region,women,men\nnorth,40,7\nsouth,35,50\n")
    >>> check(file).status
    'fail'
    """
    rules = OutputPolicy.load(policy)
    file = Path(path)
    if not file.is_file():
        raise InputError(f"There is no file '{file.name}' there.")
    blocked = rules.blocks(file)
    if blocked:
        return CheckResult([Finding("file kind", "a", "fail", f"Not to be released: {blocked}.")])
    ending = file.suffix.lower()
    if ending in TABLES:
        return _table(file, rules)
    if ending in TEXTS:
        return _text(file, rules)
    reason = f"Files of kind '{ending or 'without ending'}' cannot be read by the checker; a human looks."
    return CheckResult([Finding("file kind", "a", "review", reason)])


def _table(file: Path, policy: OutputPolicy) -> CheckResult:
    try:
        frame = _read(file)
    except DiscreetError as error:
        return CheckResult([Finding("file", "a", "review", f"{error} A human looks.")])
    if frame.height > _MOST_ROWS:
        reason = f"{frame.height:,} rows: this looks like records or a very fine table, not an output. A human looks."
        return CheckResult([Finding("many rows", "a", "review", reason)])
    columns = {name: _numbers(frame[name]) for name in frame.columns}
    counts = _count_columns(columns)
    if not counts:
        reason = (
            "No column looks like counts of people, so the file cannot be judged by itself. A human looks."
        )
        return CheckResult([Finding("no counts", "a", "review", reason)], _ask("a"))
    findings = list(_count_findings(*_crossed(frame, columns, counts), policy))
    others = [
        name for name, (numbers, _) in columns.items() if name not in counts and np.isfinite(numbers).any()
    ]
    if others:
        reason = f"{counted(len(others), 'column')} of other numbers: what stands behind them is for a human to say."
        findings.append(Finding("other numbers", "d", "review", reason))
    named = [name for name in counts if _COUNT.search(name)]
    if not named:
        reason = "The numbers look like counts, but nothing says that they are. A human confirms it."
        findings.append(Finding("taken for counts", "a", "review", reason))
    reason = "Whether counts are of distinct people, unweighted, and what other outputs say, the file does not tell."
    findings.append(Finding("what a file cannot say", "a", "review", reason))
    return CheckResult(findings)


def _count_findings(
    frame: pl.DataFrame, columns: Mapping[str, tuple[Any, Any]], policy: OutputPolicy
) -> list[Finding]:
    """Judge the counts: the inner cells by threshold, zeros and full lines; hidden ones by the totals beside them."""
    labels = [name for name in frame.columns if name not in columns]
    total_rows = np.zeros(frame.height, dtype=bool)
    for name in labels:
        texts = frame[name].cast(pl.String).fill_null("").to_list()
        total_rows |= np.array([bool(_TOTAL.match(text.strip())) for text in texts])
    total_columns = np.array([bool(_TOTAL.match(name.strip())) for name in columns])
    values = np.column_stack([numbers for numbers, _ in columns.values()])
    hidden = np.column_stack([marks for _, marks in columns.values()])
    inner_rows, inner_columns = np.flatnonzero(~total_rows), np.flatnonzero(~total_columns)
    if not len(inner_rows) or not len(inner_columns):
        inner_rows, inner_columns = np.arange(len(values)), np.arange(values.shape[1])
    inner = np.ix_(inner_rows, inner_columns)
    table, unseen = np.nan_to_num(values[inner]), hidden[inner] | np.isnan(values[inner])
    lone = inner[1].size == 1
    judged = (table[:, 0], unseen[:, 0]) if lone else (table, unseen)
    findings = list(check_counts(judged[0], policy, hidden=judged[1]).findings)
    ends = values[
        ~(np.isin(np.arange(len(values)), inner_rows))[:, None]
        | ~np.isin(np.arange(values.shape[1]), inner_columns)
    ]
    low_ends = int(((ends > 0) & (ends < policy.threshold)).sum())
    if low_ends:
        findings.append(
            Finding(
                "low total", "a", "fail", f"{counted(low_ends, 'total')} below {policy.threshold} people."
            )
        )
    if unseen.any() and total_rows.any() and lone and len(labels) > 1:
        reason = (
            "Whether hidden cells of a table of several columns can be worked out: run discreet table audit."
        )
        findings.append(Finding("margins", "a", "review", reason))
    elif unseen.any() and (total_rows.any() or total_columns.any()):
        filled = _filled(values, unseen, inner_rows, inner_columns, total_rows, total_columns)
        findings += check_margins(filled, unseen, policy).findings
    return findings


def _crossed(
    frame: pl.DataFrame, columns: Mapping[str, tuple[Any, Any]], counts: Sequence[str]
) -> tuple[pl.DataFrame, dict[str, tuple[Any, Any]]]:
    """Lay out a table that has one row a cell as rows and columns, where two columns say which cell it is."""
    as_it_is = frame, {name: columns[name] for name in counts}
    labels = [name for name in frame.columns if name not in counts]
    if len(counts) != 1 or len(labels) < 2 or frame.select(labels[0]).n_unique() == frame.height:
        return as_it_is
    rows, across = labels[:2]
    if frame.select(rows, across).n_unique() < frame.height:
        return as_it_is
    numbers, hidden = columns[counts[0]]
    cells = frame.select(rows, across).with_columns(number=pl.Series(numbers), hidden=pl.Series(hidden))
    wide = cells.pivot(across, index=rows, values=["number", "hidden"], maintain_order=True)
    codes = cells[across].cast(pl.String).unique(maintain_order=True).to_list()
    crossed = {
        code: (
            wide[f"number_{code}"].fill_null(0.0).to_numpy(),
            wide[f"hidden_{code}"].fill_null(False).to_numpy(),
        )
        for code in codes
    }
    return wide.select(rows), crossed


def _filled(  # noqa: PLR0917
    values: Any, unseen: Any, rows: Any, columns: Any, total_rows: Any, total_columns: Any
) -> Any:
    """Give hidden cells the share of what their line totals leave, enough to see where too little is left."""
    table = np.nan_to_num(values[np.ix_(rows, columns)])
    table[unseen] = 0.0
    if total_columns.any():
        ends = values[np.ix_(rows, np.flatnonzero(total_columns)[:1])][:, 0]
        left = np.maximum(np.nan_to_num(ends) - table.sum(axis=1), 0)
        first = np.argmax(unseen, axis=1)
        has = unseen.any(axis=1)
        table[np.flatnonzero(has), first[has]] = np.round(left[has])
    elif total_rows.any():
        ends = values[np.ix_(np.flatnonzero(total_rows)[:1], columns)][0]
        left = np.maximum(np.nan_to_num(ends) - table.sum(axis=0), 0)
        first = np.argmax(unseen, axis=0)
        has = unseen.any(axis=0)
        table[first[has], np.flatnonzero(has)] = np.round(left[has])
    return table


def _count_columns(columns: Mapping[str, tuple[Any, Any]]) -> list[str]:
    """Choose the columns of counts: those named so, else all that hold whole numbers and no years."""
    whole = {}
    for name, (numbers, hidden) in columns.items():
        known = numbers[np.isfinite(numbers)]
        texts = ~np.isfinite(numbers) & ~hidden
        if len(known) and not texts.any() and (known >= 0).all() and (known == np.round(known)).all():
            whole[name] = known
    named = [name for name in whole if _COUNT.search(name)]
    if named:
        return named
    return [
        n
        for n, known in whole.items()
        if not ((known >= 1800) & (known <= 2100)).all() and not n.lower().endswith("id")
    ]


def _numbers(column: pl.Series) -> tuple[Any, Any]:
    """Read a column as numbers, with flags of the entries that are suppressed (blank or a sign)."""
    if column.dtype.is_numeric():
        numbers = column.cast(pl.Float64).to_numpy()
        return numbers, np.isnan(np.where(numbers == None, np.nan, numbers).astype(float))  # noqa: E711
    texts = column.cast(pl.String).fill_null("").str.strip_chars()
    plain = texts.str.replace_all(r"[, ]", "").cast(pl.Float64, strict=False).to_numpy()
    signs = np.array([text == "" or bool(_HIDDEN.match(text)) for text in texts.to_list()])
    numbers = np.where(signs, np.nan, plain).astype(np.float64)
    return numbers, signs & bool(np.isfinite(numbers).any())


def _read(file: Path) -> pl.DataFrame:
    from discreet.io import read

    data = read(file, roles={})
    return data.frame if isinstance(data.frame, pl.DataFrame) else pl.DataFrame(data.frame.collect())


def _text(file: Path, policy: OutputPolicy) -> CheckResult:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"'{file.name}' cannot be read: {error.strerror}.") from error
    facts = _json_facts(text) if file.suffix.lower() == ".json" else _text_facts(text)
    findings: list[Finding] = []
    if facts.get("dof") is not None:
        findings.append(check_dof(float(facts["dof"]), policy))
    if facts.get("r2") is not None and float(facts["r2"]) >= 1:
        findings.append(Finding("perfect fit", "g", "fail", "R-squared is 1: the predictions are the data."))
    if facts.get("people") is not None and float(facts["people"]) < policy.threshold:
        findings.append(Finding("low count", "g", "fail", f"Fewer than {policy.threshold} observations."))
    findings += check_per_unit(facts.get("shown", ()))
    if not findings:
        reason = "Nothing in the file could be judged: no degrees of freedom, no counts. A human looks."
        return CheckResult([Finding("nothing to judge", "g", "review", reason)])
    reason = (
        "Whether the model is a table in disguise, its summary does not say. A human looks at the regressors."
    )
    findings.append(Finding("saturation", "g", "review", reason))
    return CheckResult(findings)


def _text_facts(text: str) -> dict[str, Any]:
    plain = re.sub(r"<[^>]+>", " ", text)
    dof = next((found[1] for pattern in _DOF if (found := pattern.search(plain))), None)
    people, squared = _PEOPLE.search(plain), _R2.search(plain)
    lowered = plain.lower()
    shown = [
        word
        for word in ("residuals per case", "fitted values", "predicted values", "cook's distance")
        if word in lowered
    ]
    return {
        "dof": _figure(dof),
        "people": _figure(people[1]) if people else None,
        "r2": _figure(squared[1]) if squared else None,
        "shown": shown,
    }


def _json_facts(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError:
        return {}
    flat: dict[str, Any] = {}
    lists: list[str] = []

    def walk(item: Any, name: str) -> None:
        if isinstance(item, Mapping):
            for key, value in item.items():
                walk(value, str(key).lower())
        elif isinstance(item, list):
            lists.append(name)
        elif isinstance(item, int | float) and not isinstance(item, bool):
            flat.setdefault(name, item)

    walk(document, "")
    dof = next((flat[n] for n in ("df_resid", "df_residual", "residual_df", "dof") if n in flat), None)
    people = next((flat[n] for n in ("nobs", "n_obs", "n", "observations") if n in flat), None)
    return {"dof": dof, "people": people, "r2": flat.get("rsquared", flat.get("r2")), "shown": lists}


def _figure(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return float(text.replace(",", "").rstrip("."))
    except ValueError:
        return None


def _ask(barn: str) -> tuple[str, ...]:
    from discreet.outputs.statbarns import barns

    return barns()[barn].questions
