"""Pictures of how well files are told apart, and of answers that a release gives beside the original's."""

from __future__ import annotations

from collections.abc import Iterator

from discreet.core.results import Measure
from discreet.core.wording import shown
from discreet.report.chart_kinds import Bars, Chart, Dots, Line, Lines, Row
from discreet.report.excerpts import finite, number, rows_of

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
