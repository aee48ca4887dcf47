"""Pictures of single columns before and after: how far each moved, what it has lost, how its values are spread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from discreet.core.charts import Bars, Chart, Dots, Line, Lines, Row, finite, number, rows_of
from discreet.core.results import Measure
from discreet.core.wording import shown

_MOST_COLUMNS = 15
_MOST_HISTOGRAMS = 6
_MOST_PAIRS = 10
_NO_CHANGE = 5e-4
_MOST_LINES = 4


def pictures_of_margins(found: Measure, show_values: bool) -> Iterator[Chart]:
    """Draw how far the columns moved, and how the values of those that moved most are spread; none of their ends."""
    rows = rows_of(found, "variables", "column", "distance")
    changed = {str(row["column"]): float(row["distance"]) for row in rows if finite(row["distance"])}
    names = [name for name in changed if changed[name] > 0]
    if not names:
        return
    kept = names[:_MOST_COLUMNS]
    yield Bars(
        title="How far the shares of each column moved",
        labels=tuple(kept),
        values=tuple(changed[name] for name in kept),
        axis="Largest difference of cumulated shares (numbers), share of records in other levels (categories)",
        at_risk=(False,) * len(kept),
        horizontal=True,
    )
    yield from _cumulated(found, names)
    yield from _histograms(found, names, show_values=False)
    yield from _quantiles(found, names)


def _cumulated(found: Measure, names: Sequence[str]) -> Iterator[Lines]:
    for name, rows in _by_column(found, "ecdf", "value", names):
        low, high = rows[0]["value"], rows[-1]["value"]
        if len(rows) < 2 or not high > low:
            continue
        yield Lines(
            title=f"Cumulated shares of “{name}”",
            kind="cumulated shares",
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


def _quantiles(found: Measure, names: Sequence[str]) -> Iterator[Lines]:
    """Draw each quantile of the release over that of the original; equal files give the diagonal."""
    for name, rows in _by_column(found, "qq", "level", names):
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
            kind="quantiles",
            extra=True,
            places=places,
            lines=(Line("Released", heights), Line("No change", places)),
            axis="To the right the original's quantiles, upwards the released ones, both as shares of the range",
            places_as_share=True,
            ends=("smallest", "largest"),
        )


def _by_column(
    found: Measure, table: str, along: str, names: Sequence[str]
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    rows = rows_of(found, table, "column", along, "original", "released")
    held = {str(name): list(part) for name, part in groupby(rows, key=lambda row: row["column"])}
    for name in [name for name in names if name in held][:_MOST_LINES]:
        yield name, held[name]


def pictures_of_loss(found: Measure, show_values: bool) -> Iterator[Chart]:
    """Draw what each column has lost, and those that lost most before and after.

    The ends of a distribution are somebody's values: they are named only with ``show_values``.
    """
    columns = rows_of(found, "variables", "column", "loss")
    if not columns:
        return
    losses = {str(row["column"]): number(row["loss"]) or 0.0 for row in columns}
    changed = sorted((name for name in losses if losses[name] > 0), key=lambda name: -losses[name])
    yield from _losses(losses, changed)
    yield from _histograms(found, changed, show_values)
    yield from _correlations(found)


def _losses(losses: dict[str, float], changed: Sequence[str]) -> Iterator[Bars]:
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


def _histograms(found: Measure, changed: Sequence[str], show_values: bool) -> Iterator[Lines]:
    """Draw the histograms of the columns that changed most, before and after."""
    rows = rows_of(found, "histograms", "column", "from", "to", "original", "released")
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
            kind="histograms",
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


def _correlations(found: Measure) -> Iterator[Dots]:
    rows = [
        row
        for row in rows_of(
            found, "correlations", "column", "other", "correlation_before", "correlation_after"
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
