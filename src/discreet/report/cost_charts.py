"""Pictures of what a protection cost: the loss of each column, distributions and correlations before and after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from discreet.core.detail_rows import finite, number, rows_of
from discreet.core.results import Measure
from discreet.core.wording import shown
from discreet.report.chart_kinds import Bars, Chart, Dots, Line, Lines, Row

_MOST_COLUMNS = 15
_MOST_HISTOGRAMS = 6
_MOST_PAIRS = 10
_NO_CHANGE = 5e-4


def of_cost(measure: Measure, *, show_values: bool = False) -> Iterator[Chart]:
    """Choose the pictures of a measure that holds the loss of each column.

    The ends of a distribution are somebody's values: they are named only with ``show_values``.
    """
    columns = rows_of(measure, "variables", "column", "loss")
    if not columns:
        return
    losses = {str(row["column"]): number(row["loss"]) or 0.0 for row in columns}
    changed = sorted((name for name in losses if losses[name] > 0), key=lambda name: -losses[name])
    yield from _by_column(losses, changed)
    yield from histograms(measure, changed, show_values)
    yield from _correlations(measure)


def _by_column(losses: dict[str, float], changed: Sequence[str]) -> Iterator[Bars]:
    kept = changed[:_MOST_COLUMNS]
    if not kept:
        return
    rest = len(losses) - len(changed)
    said = f"; {rest} other{'s' if rest > 1 else ''} lost nothing" if rest else ""
    first = f" ({len(kept)} of {len(changed)})" if len(kept) < len(changed) else ""
    yield Bars(
        title=f"What each column has lost{first}",
        labels=tuple(kept),
        values=tuple(losses[name] for name in kept),
        axis=f"0 % is untouched, 100 % says nothing anymore{said}",
        at_risk=(False,) * len(kept),
        horizontal=True,
    )


def histograms(measure: Measure, changed: Sequence[str], show_values: bool) -> Iterator[Lines]:
    """Draw the histograms of the columns that changed most, before and after."""
    rows = rows_of(measure, "histograms", "column", "from", "to", "original", "released")
    bins = {str(name): list(held) for name, held in groupby(rows, key=lambda row: row["column"])}
    for name in [name for name in changed if name in bins][:_MOST_HISTOGRAMS]:
        held = bins[name]
        if len(held) < 2:
            continue
        shares = [_shares(held, file) for file in ("original", "released")]
        ends = (
            (shown(float(f"{held[0]['from']:.4g}")), shown(float(f"{held[-1]['to']:.4g}")))
            if show_values
            else ("smallest", "largest")
        )
        yield Lines(
            title=f"“{name}” before and after",
            places=tuple(at / len(held) for at in range(len(held) + 1)),
            lines=(Line("Released", shares[1]), Line("Original", shares[0])),
            axis=(
                "Share of the known values, upwards, in steps of equal width from the smallest value of both files "
                "to the largest"
            ),
            places_as_share=True,
            ends=ends,
            stepped=True,
        )


def _correlations(measure: Measure) -> Iterator[Dots]:
    rows = [
        row
        for row in rows_of(
            measure, "correlations", "column", "other", "correlation_before", "correlation_after"
        )
        if finite(row["correlation_before"])
        and finite(row["correlation_after"])
        and _moved(row) >= _NO_CHANGE
    ]
    rows.sort(key=lambda row: (-_moved(row), str(row["column"]), str(row["other"])))
    kept = rows[:_MOST_PAIRS]
    if not kept:
        return
    first = f" (the {len(kept)} that changed most)" if len(kept) < len(rows) else ""
    yield Dots(
        title=f"Correlations before and after{first}",
        series=("Released", "Original"),
        rows=tuple(
            Row(
                f"{row['column']}, {row['other']}",
                (float(row["correlation_after"]), float(row["correlation_before"])),
            )
            for row in kept
        ),
        axis="Correlation between -1 and 1; pairs of columns that kept theirs are left out",
        as_share=False,
        mark=0.0,
    )


def _shares(rows: Sequence[dict[str, Any]], file: str) -> tuple[float | None, ...]:
    heights = [number(row[file]) or 0.0 for row in rows]
    whole = sum(heights) or 1.0
    # A step picture needs the last height twice: where the last step begins and where it ends.
    return tuple(height / whole for height in (*heights, heights[-1]))


def _moved(row: dict[str, Any]) -> float:
    return abs(float(row["correlation_after"]) - float(row["correlation_before"]))
