"""Pictures of what a release gives away: about its originals, over time, or by several tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from discreet.core.detail_rows import finite, number, rows_of
from discreet.core.results import Measure
from discreet.report.chart_kinds import Bars, Chart, Dots, Grid, Line, Lines, Row

_MOST_ROWS = 15
_MOST_MOMENTS = 96
_UNIQUES = {
    "UiO": "Alone in the original",
    "UiS": "Alone in the release",
    "UiOiS": "Alone there, found in the release",
    "repU": "Alone in both",
}
_GUESSES = {
    "cap_released": "From the release",
    "cap_original": "From the original",
    "baseline": "Without either",
}
_OWN_GUESSES = {"cap_original": "With this file", "baseline": "Without it"}
_EXPOSED = {
    "exposed_joined": "Joined the file",
    "exposed_left": "Left the file",
    "exposed_stayed": "Stayed, in other groups",
}
_DISTANCES = {
    "released_to_original": "Released records",
    "holdout_to_original": "People who were not used",
    "original_to_original": "Originals among themselves",
}
_BY_K = {
    "share_p": "Second largest can estimate the largest",
    "share_dominance_1": "One dominates",
    "insider_success": "Insider finds the own group",
    "insider_chance": "Insider by guessing",
}
_LINKED = {
    "linked_share": "Led back to the right person",
    "certain_share": "Without any doubt",
    "guess_share": "By blind guessing",
}
_OUTLIERS = {
    "matched_share": "Have a possible match",
    "single_share": "Have exactly one",
    "matched_share_holdout": "Strangers with a match",
    "single_share_holdout": "Strangers with exactly one",
}
_INSIDE = {
    "interval_share": "All values that close",
    "interval_share_mean": "Mean over the columns",
    "uncrowded_share": "All that close, and no crowd",
}


def of_release(measure: Measure) -> Iterator[Chart]:
    """Choose the pictures of a measure that looks at a release."""
    yield from _targets(measure)
    yield from _attribution(measure)
    yield from _uniques(measure)
    yield from _distances(measure)
    yield from _matches(measure)
    yield from _load_curves(measure)
    yield from _releases_compared(measure)
    yield from _tables(measure)


def _targets(measure: Measure) -> Iterator[Chart]:
    rows = rows_of(measure, "targets", "target", "Dorig", "DiSCO")
    if rows:
        rows = sorted(rows, key=lambda row: -(number(row["DiSCO"]) or 0))
        kept = rows[:_MOST_ROWS]
        yield Dots(
            title=f"What can be learned about each column{_part(kept, rows)}",
            series=("From the release, rightly (DiSCO)", "From the original (Dorig)"),
            rows=tuple(
                Row(str(row["target"]), (_hundredth(row["DiSCO"]), _hundredth(row["Dorig"]))) for row in kept
            ),
            axis="Share of people whose value is told for certain by their keys",
        )
    elif {"Dorig", "DiSCO"} <= measure.figures.keys():
        told = {"Dorig": "From the original", "DiSCO": "From the release, rightly"}
        yield from _figures(
            measure,
            told,
            "What can be learned about the column",
            "Share of people whose value is told for certain by their keys",
            risky=("DiSCO",),
            percent=True,
        )


def _attribution(measure: Measure) -> Iterator[Chart]:
    rows = rows_of(measure, "variables", "sensitive", "cap_original", "baseline")
    axis = "Share of people whose value an intruder who knows the keys guesses right"
    present = [name for name in _GUESSES if any(finite(row.get(name)) for row in rows)]
    words = _GUESSES if "cap_released" in present else _OWN_GUESSES
    if len(rows) == 1 and len(present) > 1:
        yield Bars(
            title="How often an intruder guesses right",
            labels=tuple(words[name] for name in present),
            values=tuple(number(rows[0][name]) or 0.0 for name in present),
            axis=axis,
            at_risk=tuple(name == "cap_released" for name in present),
            horizontal=True,
        )
    elif len(rows) > 1 and present:
        kept = sorted(rows, key=lambda row: -(number(row[present[0]]) or 0))[:_MOST_ROWS]
        yield Dots(
            title=f"How often an intruder guesses right{_part(kept, rows)}",
            series=tuple(words[name] for name in present),
            rows=tuple(
                Row(str(row["sensitive"]), tuple(number(row[name]) for name in present)) for row in kept
            ),
            axis=axis,
        )
    yield from _surface(measure)


def _surface(measure: Measure) -> Iterator[Chart]:
    """Draw how the share of right guesses hangs on the intervals: a grid, or a line where one side has none."""
    cells = {
        (row["key_intervals"], row["target_intervals"]): number(row["cap_released"])
        for row in rows_of(measure, "surface", "key_intervals", "target_intervals", "cap_released")
    }
    up, across = (
        sorted({place[side] for place in cells}, key=lambda many: (many is not None, many)) for side in (0, 1)
    )
    if len(set(cells.values())) < 2:
        return
    title = "How often the guess is right, by how exactly things are known"
    if min(len(up), len(across)) == 1:
        steps, what = (across, "the column that is guessed") if len(up) == 1 else (up, "each key")
        places = [step for step in steps if step is not None]
        line = [cells.get((up[0], step) if len(up) == 1 else (step, across[0])) for step in places]
        yield Lines(
            title=title,
            places=tuple(map(float, places)),
            lines=(Line("From the release", tuple(line)),),
            axis=f"Share of guesses that are right, upwards, by the number of intervals of {what}",
        )
        return
    yield Grid(
        title=title,
        # Where no key (or not the target) is a number, there is one line without a number of intervals.
        row_labels=tuple("" if key is None else f"{key:g}" for key in reversed(up)),
        column_labels=tuple("" if target is None else f"{target:g}" for target in across),
        values=tuple(tuple(cells.get((key, target)) for target in across) for key in reversed(up)),
        axis="Percent of guesses that are right; the stronger the color, the more",
        across="intervals of the column that is guessed",
        up="intervals of each key",
    )


def _uniques(measure: Measure) -> Iterator[Bars]:
    if measure.name == "replicated_uniques":
        yield from _figures(
            measure,
            _UNIQUES,
            "Records alone with their keys",
            "Share of all records",
            risky=("repU",),
            percent=True,
        )


def _distances(measure: Measure) -> Iterator[Lines]:
    rows = rows_of(measure, "quantiles", "share", "released_to_original")
    present = [name for name in _DISTANCES if rows and any(finite(row.get(name)) for row in rows)]
    if len(rows) < 2 or not present:
        return
    yield Lines(
        title="How far it is to the closest original",
        places=tuple(float(row["share"]) for row in rows),
        lines=tuple(Line(_DISTANCES[name], tuple(number(row[name]) for row in rows)) for name in present),
        axis=(
            "Distance, upwards, within which the share of records along the bottom has an original; released records "
            "well below the others were made too close to real people"
        ),
        as_share=False,
        places_as_share=True,
    )


def _matches(measure: Measure) -> Iterator[Chart]:
    yield from _figures(
        measure,
        _LINKED,
        "Released records led back to their person",
        "Share of the released records",
        risky=("linked_share",),
    )
    yield from _figures(
        measure,
        _OUTLIERS,
        "People who stand out and can be looked for",
        "Share of the people who stand out",
        risky=("single_share",),
    )
    rows = [
        row for row in rows_of(measure, "variables", "column", "inside_share") if finite(row["inside_share"])
    ]
    if rows:
        yield Bars(
            title="Released values close to the original ones",
            labels=tuple(str(row["column"]) for row in rows[:_MOST_ROWS]),
            values=tuple(float(row["inside_share"]) for row in rows[:_MOST_ROWS]),
            axis="Share of the records whose original value lies within the interval around the released one",
            at_risk=(False,) * len(rows[:_MOST_ROWS]),
            horizontal=True,
        )
    else:
        yield from _figures(
            measure, _INSIDE, "Released values close to the original ones", "Share of the records"
        )


def _load_curves(measure: Measure) -> Iterator[Chart]:
    rows = rows_of(measure, "by_k", "k", "share_p")
    present = [name for name in _BY_K if rows and any(finite(row.get(name)) for row in rows)]
    if len(rows) > 1 and present:
        yield Lines(
            title="What larger groups change",
            places=tuple(float(row["k"]) for row in rows),
            lines=tuple(Line(_BY_K[name], tuple(number(row[name]) for row in rows)) for name in present),
            axis="Share of the published averages, or of the insiders; size of the groups along the bottom",
        )
    elif present:
        yield Bars(
            title="What the published averages give away",
            labels=tuple(_BY_K[name] for name in present),
            values=tuple(number(rows[0][name]) or 0.0 for name in present),
            axis="Share of the published averages, or of the insiders",
            at_risk=(False,) * len(present),
            horizontal=True,
        )
    moments = rows_of(measure, "times", "time", "p")
    shares = [number(row["p"]) for row in moments]
    if len(shares) > 1:
        step = math.ceil(len(shares) / _MOST_MOMENTS)
        pieces = [shares[place : place + step] for place in range(0, len(shares), step)]
        yield Grid(
            title="When the largest can be estimated",
            row_labels=("",),
            column_labels=tuple(str(place * step + 1) for place in range(len(pieces))),
            values=(tuple(_mean(piece) for piece in pieces),),
            axis="Moments from the first to the last; the stronger the color, the more averages give the largest away",
        )


def _releases_compared(measure: Measure) -> Iterator[Bars]:
    if _EXPOSED.keys() <= measure.figures.keys():
        yield Bars(
            title="Who becomes identifiable by comparing the releases",
            labels=tuple(_EXPOSED.values()),
            values=tuple(number(measure.figures[name]) or 0.0 for name in _EXPOSED),
            axis="Number of people hidden in each release but not in both together",
            at_risk=(True,) * len(_EXPOSED),
            horizontal=True,
            as_share=False,
        )


def _tables(measure: Measure) -> Iterator[Bars]:
    attributes = rows_of(measure, "attributes", "attribute", "records")[:_MOST_ROWS]
    if attributes:
        yield Bars(
            title="Which columns single records out in tables",
            labels=tuple(str(row["attribute"]) for row in attributes),
            values=tuple(float(row["records"]) for row in attributes),
            axis="Number of records whose smallest set of telling columns holds this one",
            at_risk=(False,) * len(attributes),
            horizontal=True,
            as_share=False,
        )
    by_table = [
        row
        for row in rows_of(measure, "tables", "keys", "common_cells", "released_cells")
        if row["common_cells"]
    ]
    if by_table:
        by_table.sort(key=lambda row: (-row["common_cells"], str(row["keys"])))
        kept = by_table[:_MOST_ROWS]
        several = len({row.get("sensitive") for row in by_table}) > 1
        yield Bars(
            title=f"Tables whose cells tell the truth about a whole group{_part(kept, by_table)}",
            labels=tuple(f"{row['keys']}{': ' + row['sensitive'] if several else ''}" for row in kept),
            values=tuple(float(row["common_cells"]) for row in kept),
            axis="Number of cells in which everyone has the same value, in the release and in truth",
            at_risk=(False,) * len(kept),
            horizontal=True,
            as_share=False,
        )


def _figures(
    measure: Measure,
    words: Mapping[str, str],
    title: str,
    axis: str,
    *,
    risky: Sequence[str] = (),
    percent: bool = False,
) -> Iterator[Bars]:
    names = [name for name in words if finite(measure.figures.get(name))]
    if len(names) < 2:
        return
    values = [number(measure.figures[name]) or 0.0 for name in names]
    yield Bars(
        title=title,
        labels=tuple(words[name] for name in names),
        values=tuple(value / 100 if percent else value for value in values),
        axis=axis,
        at_risk=tuple(name in risky for name in names),
        horizontal=True,
    )


def _part(kept: Sequence[object], rows: Sequence[object]) -> str:
    return f" ({len(kept)} of {len(rows)})" if len(kept) < len(rows) else ""


def _hundredth(value: object) -> float | None:
    """Turn a percentage into a share."""
    return float(value) / 100 if finite(value) else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
