"""Check files that are finished: tables, summaries of models, whole folders of them.

A finished file does not say what stands behind its numbers, so what can be judged is judged (low counts, shares of few
people, minima and maxima, records, suppressed cells that follow from totals, few degrees of freedom) and the rest is
left to a human. Nothing is unpickled, and no file is executed.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np

from discreet.core.errors import DiscreetError, InputError
from discreet.core.files.staging import scratch_folder
from discreet.outputs.check_results import CheckResult, Finding, barns
from discreet.outputs.checks.frequencies import counted
from discreet.outputs.finished_counts import View, counts_in_rows, frequencies, indicator_means, shares
from discreet.outputs.finished_grids import DATA_FILES, Grid, decoded, hidden_records, read_grids, text_of
from discreet.outputs.finished_sheets import Sheet, sheet_of, words_of
from discreet.outputs.finished_statistics import (
    Facts,
    close_numbers,
    endpoints,
    facts_of,
    models,
    quantiles,
    spread,
    survival,
)
from discreet.outputs.output_policy import OutputPolicy

TABLES = (".csv", ".tsv", ".xlsx", ".xlsm", ".xls", ".ods", *DATA_FILES)
TEXTS = (".txt", ".md", ".log", ".json", ".html", ".htm", ".tex", ".rst", ".out", ".lst")
_WORKBOOKS = (".xlsx", ".xlsm", ".xls", ".ods")
Figures = tuple[Facts, list[dict[tuple[str, ...], float]]]
_SCRIPTED = re.compile(
    r"Plotly\.newPlot|vegaEmbed|vega-lite/v\d|Bokeh\.|bokehjs|echarts\.init|Highcharts\.|htmlwidget|L\.map\(",
    re.IGNORECASE,
)
_MOST_BYTES = 64 * 1024 * 1024
UNSAID = Finding(
    "what a file cannot say",
    "a",
    "review",
    "Whether counts are of distinct people, unweighted, and what other outputs say, the file does not tell.",
)
UNSAID_OF_MODELS = Finding(
    "saturation",
    "g",
    "review",
    "Whether the model is a table in disguise, its summary does not say. A human looks at the regressors.",
)


def check(
    path: str | Path, policy: OutputPolicy | str | Path | None = None, *, show_values: bool = False
) -> CheckResult:
    r"""Check a finished table or model summary.

    Also known as: statbarn; ACRO; SACRO; output checking.

    Parameters
    ----------
    path
        CSV, TSV or Excel (every sheet); text, HTML, LaTeX or JSON with tables or the summary of a model.
    policy
        The thresholds; the defaults unless given.
    show_values
        Whether the places of what fails come with the numbers that stand there.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = file.write_text("region,women,men\nnorth,40,7\nsouth,35,50\n")
    >>> found = check(file)
    >>> found.status, [str(place) for place in found.findings[0].places]
    ('fail', ["C2 (row 2), column 'men'"])
    """
    return _checked(path, OutputPolicy.load(policy), show_values)[0]


def check_many(
    paths: Sequence[str | Path],
    policy: OutputPolicy | str | Path | None = None,
    *,
    show_values: bool = False,
) -> dict[Path, CheckResult]:
    r"""Check several finished files, each by itself and all against each other.

    A folder stands for all files in it. Two tables with the same labels are compared cell by cell, two models by their
    numbers of observations: where they differ by few people, a human looks.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name, n in (("a.txt", 1000), ("b.txt", 999)):
    ...     _ = (folder / name).write_text(f"No. Observations: {n}\nDf Residuals: {n - 3}\n")
    >>> [f.status for f in check_many([folder])[folder / "b.txt"].findings if f.check == "differencing"]
    ['review']
    """
    rules = OutputPolicy.load(policy)
    found: dict[Path, CheckResult] = {}
    known: dict[Path, Figures] = {}
    for file in _files(paths):
        found[file], facts, grids = _checked(file, rules, show_values)
        figures = facts, [counts for grid in grids if (counts := counts_in(grid))]
        for earlier, other in known.items():
            finding = nearly_the_same(earlier.name, figures, other, rules)
            if finding is not None:
                found[file] = found[file].with_more([finding])
        known[file] = figures
    return found


def figures_of(files: Mapping[str, bytes]) -> Figures:
    """Read the numbers of people and the counts that some files hold, by name and content."""
    people: list[float] = []
    tables: list[dict[tuple[str, ...], float]] = []
    for name, content in files.items():
        ending = Path(name).suffix.lower()
        if ending not in (".csv", ".tsv", *TEXTS):
            continue
        try:
            grids = read_grids(Path(name), content)
        except DiscreetError:
            continue
        text = decoded(content) if ending in TEXTS else text_of(grids)
        people += facts_of(text, is_json=ending == ".json").people
        tables += [counts for grid in grids if (counts := counts_in(grid))]
    return Facts(people=tuple(people)), tables


def _files(paths: Sequence[str | Path]) -> list[Path]:
    """List files, and those of folders; hidden ones are left out."""
    listed: dict[Path, None] = {}
    for path in map(Path, paths):
        if path.is_dir():
            inside = sorted(
                file for file in path.rglob("*") if file.is_file() and not file.name.startswith(".")
            )
            if not inside:
                raise InputError(f"The folder '{path.name}' has no files to check.")
            listed.update(dict.fromkeys(inside))
        else:
            listed[path] = None
    return list(listed)


def nearly_the_same(earlier: str, new: Figures, old: Figures, policy: OutputPolicy) -> Finding | None:
    """Say where two files are about almost the same numbers of people."""
    limit = policy.difference_threshold or policy.threshold
    models = close_numbers(new[0].people, old[0].people, policy)
    cells = 0
    for ours in new[1]:
        for theirs in old[1]:
            shared = [key for key in ours if key in theirs]
            cells += sum(0 < abs(ours[key] - theirs[key]) < limit for key in shared)
            if len(ours) == len(theirs) == 1:
                cells += sum(
                    0 < abs(a - b) < limit for a in ours.values() for b in theirs.values() if not shared
                )
    if not models and not cells:
        return None
    what = [f"{models} of its models"] * bool(models) + [f"{cells} of its counts"] * bool(cells)
    reason = (
        f"{' and '.join(what)} differ by fewer than {limit} people from '{earlier}': if they are the same people but "
        "for a few, those few can be worked out. A human looks."
    )
    return Finding("differencing", "a" if cells else "g", "review", reason)


def _checked(
    path: str | Path, rules: OutputPolicy, show_values: bool
) -> tuple[CheckResult, Facts, list[Grid]]:
    file = Path(path)
    if not file.is_file():
        raise InputError(f"There is no file '{file.name}' there.")
    blocked = rules.blocks(file)
    if blocked:
        return _only(Finding("file kind", "a", "fail", f"Not to be released: {blocked}."))
    ending = file.suffix.lower()
    if ending == ".gz" and file.with_suffix("").suffix.lower() in (".csv", ".tsv", *TEXTS):
        return _unpacked(file, rules, show_values)
    if ending not in (*TABLES, *TEXTS):
        reason = f"Files of kind '{ending or 'without ending'}' cannot be read by the checker; a human looks."
        return _only(Finding("file kind", "a", "review", reason))
    if file.stat().st_size > _MOST_BYTES:
        return _only(_too_large(file))
    read = _table if ending in TABLES else _text
    return read(file, rules, show_values)


def _too_large(file: Path) -> Finding:
    return Finding("file", "a", "fail", f"'{file.name}' is far too large for an output: look for records.")


def _unpacked(file: Path, rules: OutputPolicy, show_values: bool) -> tuple[CheckResult, Facts, list[Grid]]:
    """Judge what a compressed file holds; what it unpacks to is never larger than an output may be."""
    try:
        with gzip.open(file) as stream:
            content = stream.read(_MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error):
        return _only(Finding("file", "a", "review", f"'{file.name}' cannot be unpacked. A human looks."))
    if len(content) > _MOST_BYTES:
        return _only(_too_large(file))
    with scratch_folder() as folder:
        inner = folder / file.with_suffix("").name
        inner.write_bytes(content)
        return _checked(inner, rules, show_values)


def _only(finding: Finding) -> tuple[CheckResult, Facts, list[Grid]]:
    return CheckResult([finding]), Facts(), []


def _table(file: Path, policy: OutputPolicy, show_values: bool) -> tuple[CheckResult, Facts, list[Grid]]:
    behind = hidden_records(file) if file.suffix.lower() in _WORKBOOKS else []
    findings = [
        Finding("hidden content", "a", "fail", f"The workbook holds {what}. Copy the values into a new one.")
        for what in behind
    ]
    try:
        grids = read_grids(file)
    except DiscreetError as error:
        findings.append(Finding("file", "a", "review", f"{error} A human looks."))
        return CheckResult(findings), Facts(), []
    findings += judged(grids, policy, show_values=show_values)
    if not findings:
        reason = (
            "No column looks like counts of people, so the file cannot be judged by itself. A human looks."
        )
        return (
            CheckResult([Finding("no counts", "a", "review", reason)], barns()["a"].questions),
            Facts(),
            grids,
        )
    if not any(finding.check in ("records", "no counts") for finding in findings):
        findings.append(UNSAID)
    return CheckResult(findings), Facts(), grids


def judged(
    grids: Sequence[Grid],
    policy: OutputPolicy,
    *,
    are_counts: bool = False,
    named_only: bool = False,
    show_values: bool = False,
) -> list[Finding]:
    """Judge all tables of a file; a finding says which sheet it is about where there are several."""
    sheets = {grid.sheet for grid in grids}
    findings: list[Finding] = []
    for grid in grids:
        for finding in judge(
            grid, policy, are_counts=are_counts, named_only=named_only, show_values=show_values
        ):
            where = f"Sheet '{grid.sheet}': " if len(sheets) > 1 else ""
            findings.append(replace(finding, reason=f"{where}{finding.reason}"))
    return list({(f.check, f.status, f.reason, f.places): f for f in findings}.values())


def _drawn(text: str, policy: OutputPolicy) -> list[Finding]:
    """Find graphs in a page that hold the points they draw: vector graphics, and those of a script."""
    drawn = ["An interactive graph"] if _SCRIPTED.search(text) else []
    drawn += ["A vector graphic in the page"] if "<svg" in text.lower() and policy.blocks("graph.svg") else []
    reason = "holds the data points it draws; save it as .png."
    return [Finding("file kind", "a", "fail", f"Not to be released: {what} {reason}") for what in drawn]


def _text(file: Path, policy: OutputPolicy, show_values: bool) -> tuple[CheckResult, Facts, list[Grid]]:
    try:
        text = decoded(file.read_bytes())
    except OSError as error:
        raise InputError(f"'{file.name}' cannot be read: {error.strerror}.") from error
    ending = file.suffix.lower()
    facts = facts_of(text, is_json=ending == ".json")
    findings = [*facts.findings(policy), *_drawn(text, policy)]
    grids = read_grids(file, text.encode("utf-8"))
    drawn = ending in (".html", ".htm", ".tex", ".json", ".md", ".rst")
    tables = judged(grids, policy, named_only=facts.is_model or not drawn, show_values=show_values)
    known = {(finding.check, finding.reason) for finding in findings}
    findings += [finding for finding in tables if (finding.check, finding.reason) not in known]
    if not findings:
        reason = "Nothing in the file could be judged: no degrees of freedom, no counts. A human looks."
        return CheckResult([Finding("nothing to judge", "g", "review", reason)]), facts, grids
    if facts.is_model:
        findings.append(UNSAID_OF_MODELS)
    if tables and not any(finding.check == "records" for finding in tables):
        findings.append(UNSAID)
    return CheckResult(findings), facts, grids


# Every number of a table is held against the rules of the statbarn that its name (or that of its row) puts it into:
# counts and shares as frequencies, minima and maxima as endpoints, quantiles by the people between them, numbers at
# risk as survival tables. What cannot be judged from the file is left to a human.


MOST_ROWS = 500


def judge(
    grid: Grid,
    policy: OutputPolicy,
    *,
    are_counts: bool = False,
    named_only: bool = False,
    show_values: bool = False,
) -> list[Finding]:
    """Judge one table.

    Parameters
    ----------
    are_counts
        Whether it is known from elsewhere that its numbers are counts of people.
    named_only
        Whether only what is named is judged: a text is cut into a table by its gaps, which may be none.
    show_values
        Whether the places of what fails come with the numbers.
    """
    sheet = sheet_of(grid)
    if sheet is None or not np.isfinite(sheet.numbers).any():
        return []
    records = check_records(sheet)
    if records is not None:
        first = sheet.place(0, 0)
        return [replace(records, places=(replace(first, name="", value=None),))]
    view = View(sheet, policy, are_counts=are_counts, named_only=named_only, show_values=show_values)
    rules = (survival, frequencies, counts_in_rows, shares, endpoints, quantiles, models, spread)
    found = [finding for rule in rules for finding in rule(view)]
    return found if named_only else [*found, *_left_over(view, bool(found))]


def counts_in(grid: Grid) -> dict[tuple[str, ...], float]:
    """Return the counts of a table by the texts of their labels and the name of their column.

    Examples
    --------
    >>> counts_in(Grid((("region", "n"), ("north", "40"), ("south", "35"))))
    {('north', 'n'): 40.0, ('south', 'n'): 35.0}
    """
    sheet = sheet_of(grid)
    if sheet is None or check_records(sheet) is not None:
        return {}
    seen = View(sheet, OutputPolicy(), are_counts=False, named_only=False, show_values=False)
    labels = np.flatnonzero(sheet.is_label)
    return {
        (*(row[j] for j in labels), sheet.names[column]): float(sheet.numbers[i, column])
        for i, row in enumerate(sheet.texts)
        for column in seen.counts
        if np.isfinite(sheet.numbers[i, column])
    }


def _left_over(view: View, something: bool) -> list[Finding]:
    """Say what was not judged."""
    sheet = view.sheet
    judged = ("count", "share", "endpoint", "quantile", "dof", "fit", "at risk", "events")
    other = [
        j
        for j in view.numeric
        if j not in view.counts
        and sheet.column_roles[j] not in judged
        and not indicator_means(view)[:, j].any()
    ]
    rows = any(role and role not in judged for role in sheet.row_roles)
    found = []
    if other or rows:
        number = len(other) or sum(bool(role) for role in sheet.row_roles)
        what = counted(number, "column" if other else "row")
        reason = f"{what} of other numbers: what stands behind them is for a human to say."
        found.append(Finding("other numbers", "d", "review", reason))
    if not view.counts and not something and not found:
        reason = (
            "No column looks like counts of people, so the table cannot be judged by itself. A human looks."
        )
        found.append(Finding("no counts", "a", "review", reason))
    if len(sheet.texts) > MOST_ROWS:
        reason = f"{len(sheet.texts):,} rows: a very fine table. A human looks."
        found.append(Finding("many rows", "a", "review", reason))
    return found


# Is this file a table of results, or are its rows people?
#
# A table has one row a cell: its labels name each row once, and nearly every combination of them is there. Records
# repeat their categories, or are told apart by an identifier only, or have a value of their own in column after column.
_FEW_ROWS = 15
_FILLED, _FILLED_BY_RESULTS = 0.4, 0.02
_MOST_LABELS = 4
_RESULTS = {
    "mean", "average", "avg", "median", "coef", "coefficient", "estimate", "pvalue", "percent", "percentage", "pct",
    "mittelwert", "moyenne", "media", "mediana", "prozent", "stderr", "se", "freq", "gini", "survival",
}  # fmt: skip
_MANY_LEVELS = 60


def check_records(sheet: Sheet) -> Finding | None:
    """Fail a table whose rows are people; None where it looks like a table.

    Examples
    --------
    >>> from discreet.outputs.finished_grids import Grid
    >>> from discreet.outputs.finished_sheets import sheet_of
    >>> rows = [("pid", "sex", "pay")] + [(f"P{i}", "f", str(1000 + 7 * i)) for i in range(30)]
    >>> check_records(sheet_of(Grid(tuple(rows)))).status
    'fail'
    """
    rows = len(sheet.texts)
    why = _named_people(sheet) or (_not_crossed(sheet) if rows >= _FEW_ROWS else "")
    if not why:
        return None
    reason = (
        f"The {rows:,} rows look like records of people, not like results: {why}. Records are not an output."
    )
    return Finding("records", "a", "fail", reason)


def _named_people(sheet: Sheet) -> str:
    """Find a column that identifies people and has a value of its own in (nearly) every row."""
    rows = len(sheet.texts)
    if rows < 3:
        return ""
    for j, role in enumerate(sheet.column_roles):
        values = [row[j] for row in sheet.texts if row[j]]
        numbered = bool(np.isfinite(sheet.numbers[:, j]).all()) and bool(
            (np.diff(sheet.numbers[:, j]) == 1).all()
        )
        if numbered and _has_results(sheet):
            # The rows of a table of results, numbered.
            continue
        if role == "identifier" and len(values) >= 0.8 * rows and len(set(values)) >= 0.5 * len(values):
            return f"column '{sheet.names[j]}' identifies them"
    return ""


def _not_crossed(sheet: Sheet) -> str:
    """Say why no labels name the rows as those of a table; empty where some do."""
    body = [
        j for j in range(len(sheet.names)) if not sheet.is_index[j] and any(row[j] for row in sheet.texts)
    ]
    rows = [
        row for i, row in enumerate(sheet.texts) if not sheet.is_total_row[i] and any(row[j] for j in body)
    ]
    if len(rows) < _FEW_ROWS or len(body) < 2:
        return ""
    statistics = [j for j in body if sheet.column_roles[j] not in ("", "identifier") and not sheet.is_text[j]]
    labels = [j for j in body if sheet.is_label[j]]
    # Numbers with few values may be codes of a dimension, as long as nothing says that they are results.
    codes = [
        j
        for j in body
        if j not in labels
        and j not in statistics
        and _levels(rows, j) <= min(_MANY_LEVELS // 2, len(rows) - 1)
    ]
    if _is_curve(sheet, body):
        return ""
    results = _has_results(sheet)
    if results and labels and len(_distinct(rows, labels)) == len(rows):
        return ""
    for chosen in (labels, [*labels, *codes]):
        if chosen and _names_rows(rows, chosen, _FILLED_BY_RESULTS if results else _FILLED):
            return ""
    if any(_levels(rows, j) == len(rows) for j in labels):
        # One column names every row. The others are results, or what is known of each.
        others = [j for j in labels if _levels(rows, j) < len(rows)]
        return (
            ""
            if len(others) < 2 or results
            else "one column names them, and the others repeat their categories"
        )
    if len(_distinct(rows, labels)) < len(rows) and labels:
        return "the same labels come again and again"
    return "nothing in them names the rows as the cells of a table"


def _has_results(sheet: Sheet) -> bool:
    """Whether some column says of itself that it holds a result: a count, a mean, a percentage.

    A total or a rate may just as well be something that every person has.
    """
    named = ("count", "spread", "quantile", "at risk", "events")
    return any(
        (role in named or bool(set(words_of(sheet.names[j])) & _RESULTS)) and not sheet.is_text[j]
        for j, role in enumerate(sheet.column_roles)
    )


def _names_rows(rows: list[tuple[str, ...]], columns: list[int], filled: float) -> bool:
    """Whether some of these columns name every row once, and most of their combinations are there."""
    wanted = columns[:_MOST_LABELS]
    for size in range(1, len(wanted) + 1):
        chosen = wanted[:size]
        if len(_distinct(rows, chosen)) < len(rows):
            continue
        if size == 1:
            return len(columns) == 1 or all(_levels(rows, j) == len(rows) for j in columns[1:])
        return len(rows) >= filled * prod(_levels(rows, j) for j in chosen)
    return False


def _is_curve(sheet: Sheet, body: list[int]) -> bool:
    """Whether the rows follow a number that rises (or falls) from row to row: a time, the end of a bin, a share."""
    if any(sheet.is_text[j] for j in body):
        return False
    first = sheet.numbers[:, body[0]]
    known = first[np.isfinite(first)]
    steps = np.diff(known)
    return len(known) > 2 and (bool((steps > 0).all()) or bool((steps < 0).all()))


def _levels(rows: list[tuple[str, ...]], column: int) -> int:
    return len({row[column] for row in rows})


def _distinct(rows: list[tuple[str, ...]], columns: list[int]) -> set[tuple[str, ...]]:
    return {tuple(row[j] for j in columns) for row in rows}
