"""Pictures of what became of margins, tables and relations, and of how well files are told apart.

Heat maps, distribution functions, contours, pairs; scores of propensity, and answers beside the original's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

from discreet.core.detail_rows import finite, number, rows_of
from discreet.core.results import Measure
from discreet.core.wording import shown
from discreet.report.chart_kinds import Bars, Chart, Contours, Dots, Grid, Layer, Line, Lines, Row
from discreet.report.cost_charts import histograms

_MOST_COLUMNS = 30
_MOST_BARS = 15
_MOST_LINES = 4
_MOST_PAIRS = 12
_GOOD = 3.0


def of_utility(measure: Measure) -> Iterator[Chart]:
    """Choose the pictures of a comparison of two files, by its name."""
    choose = _BY_NAME.get(measure.name)
    if choose is not None:
        yield from choose(measure)


def _tables(measure: Measure) -> Iterator[Chart]:
    rows = [row for row in rows_of(measure, "tables", "variables", "S_pMSE", "ways") if finite(row["S_pMSE"])]
    yield from _pairs([row for row in rows if row["ways"] == 2], measure)
    for ways, name in ((1, "column"), (3, "table of three"), (4, "table of four"), (5, "table of five")):
        kept = [row for row in rows if row["ways"] == ways][:_MOST_BARS]
        if not kept:
            continue
        yield Bars(
            title=f"Standardized difference of each {name}, worst first",
            labels=tuple(str(row["variables"]) for row in kept),
            values=tuple(float(row["S_pMSE"]) for row in kept),
            axis="About 1 for a correct synthesis, below 3 is good; darker from there",
            at_risk=tuple(float(row["S_pMSE"]) >= _GOOD for row in kept),
            horizontal=True,
            as_share=False,
        )


def _pairs(rows: Sequence[dict[str, Any]], measure: Measure) -> Iterator[Grid]:
    """Draw a heat map of all two-way tables; the columns that come off worst where there are too many."""
    columns = list(measure.parameters.get("columns", ()))
    held = {str(row["variables"]): float(row["S_pMSE"]) for row in rows}
    worst: dict[str, float] = {}
    cells: dict[tuple[str, str], float] = {}
    for place, first in enumerate(columns):
        for second in columns[place + 1 :]:
            found = held.get(f"{first} × {second}")
            if found is not None:
                cells[first, second] = cells[second, first] = found
                worst[first], worst[second] = (
                    max(worst.get(first, 0), found),
                    max(worst.get(second, 0), found),
                )
    if len(cells) < 2:
        return
    chosen = sorted(worst, key=lambda name: -worst[name])[:_MOST_COLUMNS]
    names = [name for name in columns if name in chosen]
    first = f" (the {len(names)} worst of {len(worst)} columns)" if len(names) < len(worst) else ""
    yield Grid(
        title=f"Standardized difference of every pair of columns{first}",
        row_labels=tuple(names),
        column_labels=tuple(names),
        values=tuple(tuple(_rounded(cells.get((a, b))) for b in names) for a in names),
        axis="The stronger the color, the worse, by tens: about 1 for a correct synthesis, below 3 is good",
        as_share=False,
        by_tens=True,
    )


def _margins(measure: Measure) -> Iterator[Chart]:
    rows = rows_of(measure, "variables", "column", "distance")
    changed = {str(row["column"]): float(row["distance"]) for row in rows if finite(row["distance"])}
    names = [name for name in changed if changed[name] > 0]
    if not names:
        return
    kept = names[:_MOST_BARS]
    yield Bars(
        title="How far the shares of each column moved",
        labels=tuple(kept),
        values=tuple(changed[name] for name in kept),
        axis="Largest difference of cumulated shares (numbers), share of records in other levels (categories)",
        at_risk=(False,) * len(kept),
        horizontal=True,
    )
    yield from _cumulated(measure, names)
    yield from histograms(measure, names, show_values=False)
    yield from _quantiles(measure, names)


def _cumulated(measure: Measure, names: Sequence[str]) -> Iterator[Lines]:
    for name, rows in _by_column(measure, "ecdf", "value", names):
        low, high = rows[0]["value"], rows[-1]["value"]
        if len(rows) < 2 or not high > low:
            continue
        yield Lines(
            title=f"Cumulated shares of “{name}”",
            places=tuple((row["value"] - low) / (high - low) for row in rows),
            lines=tuple(
                Line(title, tuple(number(row[file]) for row in rows))
                for title, file in (("Released", "released"), ("Original", "original"))
            ),
            axis="Share of people, upwards, whose value is at most the one below",
            places_as_share=True,
            ends=("smallest", "largest"),
            stepped=True,
        )


def _quantiles(measure: Measure, names: Sequence[str]) -> Iterator[Lines]:
    """Draw each quantile of the release over that of the original; equal files give the diagonal."""
    for name, rows in _by_column(measure, "qq", "level", names):
        low = min(min(row["original"], row["released"]) for row in rows)
        high = max(max(row["original"], row["released"]) for row in rows)
        if not high > low:
            continue
        places, heights = (
            tuple((float(row[file]) - low) / (high - low) for row in rows)
            for file in ("original", "released")
        )
        yield Lines(
            title=f"Quantiles of “{name}”, released over original",
            places=places,
            lines=(Line("Released", heights), Line("No change", places)),
            axis="To the right the original's quantiles, upwards the released ones, both as shares of the range",
            places_as_share=True,
            ends=("smallest", "largest"),
        )


def _by_column(
    measure: Measure, table: str, along: str, names: Sequence[str]
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    rows = rows_of(measure, table, "column", along, "original", "released")
    held = {str(name): list(part) for name, part in groupby(rows, key=lambda row: row["column"])}
    for name in [name for name in names if name in held][:_MOST_LINES]:
        yield name, held[name]


def _relations(measure: Measure) -> Iterator[Chart]:
    rows = [
        row
        for row in rows_of(measure, "pairs", "column", "other", "before", "after")
        if finite(row["before"]) and finite(row["after"])
    ]
    if not rows:
        return
    kept = rows[:_MOST_PAIRS]
    first = f" (the {len(kept)} that changed most)" if len(kept) < len(rows) else ""
    yield Dots(
        title=f"Relations of two columns before and after{first}",
        series=("Released", "Original"),
        rows=tuple(
            Row(f"{row['column']}, {row['other']}", (float(row["after"]), float(row["before"])))
            for row in kept
        ),
        axis="Correlation of numbers (-1 to 1), Cramér's V of categories, correlation ratio of one of each (0 to 1)",
        as_share=False,
        mark=0.0,
    )
    names = list(measure.parameters.get("columns", ()))
    if not 3 <= len(names) <= _MOST_COLUMNS:
        return
    for table, title in (
        ("before", "How strongly columns hang together in the original"),
        ("after", "How strongly columns hang together in the release"),
        ("difference", "By how much the relations changed"),
    ):
        matrix = [tuple(row.values())[1:] for row in rows_of(measure, table)]
        yield Grid(
            title=title,
            row_labels=tuple(names),
            column_labels=tuple(names),
            values=tuple(
                tuple(
                    None if i == j or not finite(value) else round(abs(float(value)), 2)
                    for j, value in enumerate(row)
                )
                for i, row in enumerate(matrix)
            ),
            axis="Without signs; the stronger the color, the larger",
            as_share=False,
        )


def _contours(measure: Measure) -> Iterator[Chart]:
    points = rows_of(measure, "grid", "x", "y", "original", "released")
    heights = sorted(
        rows_of(measure, "levels", "level", "original", "released"), key=lambda row: row["level"]
    )
    if not points or not heights:
        return
    across, up = measure.parameters["columns"]
    files = {"Released": "released", "Original": "original"}
    grids = {
        title: [[float(row[file]) for row in part] for _, part in groupby(points, key=lambda row: row["x"])]
        for title, file in files.items()
    }
    levels = {title: tuple(float(row[file]) for row in heights) for title, file in files.items()}
    right, upward = _inhabited(list(grids.values()), [min(levels[title]) for title in grids])
    layers = [
        Layer(title, tuple(tuple(row[upward]) for row in grid[right]), levels[title])
        for title, grid in grids.items()
    ]
    yield Contours(
        title=f"Where people are: “{across}” and “{up}”",
        layers=tuple(layers),
        shares=tuple(float(row["level"]) for row in heights),
        across=str(across),
        up=str(up),
        axis=f"Regions of highest density with {_listed(heights)} of the people, the innermost thickest",
    )


def _inhabited(grids: Sequence[list[list[float]]], lowest: Sequence[float]) -> tuple[slice, slice]:
    """Find the part of the grids within the outermost contours, for a few far values would leave the picture empty."""
    inside = [
        (i, j)
        for grid, height in zip(grids, lowest, strict=True)
        for i, row in enumerate(grid)
        for j, value in enumerate(row)
        if value >= height
    ]
    right, upward = ([place[axis] for place in inside] for axis in (0, 1))
    return slice(max(0, min(right) - 2), max(right) + 3), slice(max(0, min(upward) - 2), max(upward) + 3)


def _listed(heights: Sequence[dict[str, Any]]) -> str:
    words = [f"{100 * float(row['level']):g} %" for row in heights]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _importances(measure: Measure) -> Iterator[Chart]:
    rows = rows_of(measure, "variables", "column", "importance_before", "importance_after")
    kept = rows[:_MOST_BARS]
    if kept:
        yield Dots(
            title="What a model relies on, before and after",
            series=("Released", "Original"),
            rows=tuple(
                Row(str(row["column"]), (number(row["importance_after"]), number(row["importance_before"])))
                for row in kept
            ),
            axis="Share of a feature in the importance of all",
        )


def _sensitivity(measure: Measure) -> Iterator[Chart]:
    rows = sorted(
        rows_of(measure, "groups", "groups", "max_S_pMSE", "mean_S_pMSE"), key=lambda row: row["groups"]
    )
    if len(rows) > 1:
        yield Lines(
            title="The same tables with other groups",
            places=tuple(float(row["groups"]) for row in rows),
            lines=(
                Line("Worst table", tuple(number(row["max_S_pMSE"]) for row in rows)),
                Line("Mean of all", tuple(number(row["mean_S_pMSE"]) for row in rows)),
            ),
            axis="Standardized difference, upwards, by number of groups of a numeric column",
            as_share=False,
        )


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.2g}")


_BY_NAME: dict[str, Callable[[Measure], Iterator[Chart]]] = {
    "tabular": _tables,
    "margins": _margins,
    "dependence": _relations,
    "densities": _contours,
    "importance_shift": _importances,
    "grouping_sensitivity": _sensitivity,
}


# How well files are told apart, and answers that a release gives beside the original's.


_MOST_VARIABLES = 15
_MOST_COEFFICIENTS = 30


def of_propensity(measure: Measure) -> Iterator[Chart]:
    """Choose the pictures of a measure that holds propensity scores, or coefficients of two files."""
    yield from _drivers(measure)
    yield from _scores(measure)
    yield from _coefficients(measure)


def _drivers(measure: Measure) -> Iterator[Bars]:
    rows = [
        row
        for row in rows_of(measure, "variables", "variable", "importance")
        if finite(row["importance"]) and row["importance"] > 0
    ]
    if not rows or "pmse" not in measure.figures:
        return
    kept = rows[:_MOST_VARIABLES]
    first = f" ({len(kept)} of {len(rows)})" if len(kept) < len(rows) else ""
    by_wald = "wald" in rows[0]
    yield Bars(
        title=f"What gives the release away{first}",
        labels=tuple(str(row["variable"]) for row in kept),
        values=tuple(float(row["importance"]) for row in kept),
        axis=(
            "Importance of a variable; 1 is what a correct synthesis gives on average"
            if by_wald
            else "Share of a variable in telling the files apart"
        ),
        at_risk=(False,) * len(kept),
        horizontal=True,
        as_share=not by_wald,
    )


def _scores(measure: Measure) -> Iterator[Lines]:
    rows = rows_of(measure, "histogram", "from", "to", "original", "released")
    if not rows or "pmse" not in measure.figures or not measure.value:
        return
    heights = {
        file: tuple(number(row[file]) or 0.0 for row in (*rows, rows[-1]))
        for file in ("released", "original")
    }
    yield Lines(
        title="Scores of the records of both files",
        places=tuple(at / len(rows) for at in range(len(rows) + 1)),
        lines=(Line("Released", heights["released"]), Line("Original", heights["original"])),
        axis=(
            "Share of the records, upwards, by the estimated chance of being a released one; the two lines of a "
            "perfect release are alike"
        ),
        places_as_share=True,
        ends=(shown(round(float(rows[0]["from"]), 3)), shown(round(float(rows[-1]["to"]), 3))),
        stepped=True,
    )


def _coefficients(measure: Measure) -> Iterator[Dots]:
    rows = [
        row
        for row in rows_of(
            measure,
            "coefficients",
            "term",
            "original",
            "se_original",
            "released",
            "low_released",
            "high_released",
        )
        if all(finite(row[name]) for name in ("original", "se_original", "released", "low_released"))
        and row["se_original"] > 0
    ]
    kept = sorted(rows, key=lambda row: row["overlap"] if finite(row["overlap"]) else 0.0)[
        :_MOST_COEFFICIENTS
    ]
    if not kept:
        return
    chosen = [row for row in rows if row in kept]
    reach = (chosen[0]["high_original"] - chosen[0]["original"]) / chosen[0]["se_original"]
    first = f" (the {len(kept)} that agree least)" if len(kept) < len(rows) else ""
    yield Dots(
        title=f"Answers of the release beside the original's{first}",
        series=("Released",),
        rows=tuple(
            Row(
                _label(row),
                ((row["released"] - row["original"]) / row["se_original"],),
                (
                    (row["low_released"] - row["original"]) / row["se_original"],
                    (row["high_released"] - row["original"]) / row["se_original"],
                ),
            )
            for row in chosen
        ),
        axis=(
            "Difference in standard errors of the original, with the confidence interval of the release; the original "
            f"stands at 0, and its own interval runs from -{reach:.3g} to {reach:.3g}"
        ),
        as_share=False,
        mark=0.0,
    )


def _label(row: dict[str, object]) -> str:
    return f"{row['model']}: {row['term']}" if row.get("model") else str(row["term"])
