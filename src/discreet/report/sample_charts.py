"""Pictures of what a sample says about its people and about its population."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import narwhals as nw

from discreet.core.detail_rows import Frame, columns_of, finite, gathered, number, rows_of
from discreet.core.results import Measure
from discreet.core.wording import percent, shown
from discreet.report.chart_kinds import Bars, Chart, Dots, Point, Points, Row

_MOST_SETS = 15
_MOST_KEYS = 12
_SLOW_ESTIMATORS = frozenset({"average", "gaussian", "d-vine", "log-linear"})
_HIGHEST_GAIN = 1e6
_LOWEST_CHANCE = 1e-9
_FLAGGED = "may enable identification"


def of_sample(measure: Measure) -> Iterator[Chart]:
    """Choose the pictures of a measure that looks beyond the sample."""
    yield from _risk_distribution(measure)
    yield from _standing_out(measure)
    yield from _sets(measure)
    yield from _estimates(measure)
    yield from _models(measure)
    yield from _gains(measure)


def _risk_distribution(measure: Measure) -> Iterator[Bars]:
    rows = rows_of(measure, "distribution", "risk_above", "risk_up_to", "records")
    if not any(row["records"] for row in rows):
        return
    threshold = measure.figures.get("threshold")
    limit = float(threshold) if finite(threshold) else math.inf
    words = f"; red: above the threshold of {percent(limit)}" if limit <= 1 else ""
    yield Bars(
        title="Records by their chance of being found in the population",
        labels=tuple(f"≤{percent(row['risk_up_to'])}".replace(" %", "%") for row in rows),
        values=tuple(float(row["records"]) for row in rows),
        axis=f"Number of records, each step ten times the last; chance along the bottom{words}",
        at_risk=tuple(row["risk_above"] >= limit * (1 - 1e-9) for row in rows),
        as_share=False,
        by_tens=True,
    )


def _standing_out(measure: Measure) -> Iterator[Bars]:
    rows = [
        row for row in rows_of(measure, "variables", "key", "contribution") if finite(row["contribution"])
    ]
    if not rows:
        return
    rows = sorted(rows, key=lambda row: -row["contribution"])[:_MOST_KEYS]
    yield Bars(
        title="Which keys make people stand out",
        labels=tuple(str(row["key"]) for row in rows),
        values=tuple(float(row["contribution"]) for row in rows),
        axis="Share of the score of all records that a key takes part in",
        at_risk=(False,) * len(rows),
        horizontal=True,
    )
    sizes = rows_of(measure, "sizes", "size", "msus")
    if sizes:
        yield Bars(
            title="How many key values it takes to stand alone",
            labels=tuple(f"{row['size']:g}" for row in sizes),
            values=tuple(float(row["msus"]) for row in sizes),
            axis="Number of smallest combinations that are alone; number of keys in them along the bottom",
            at_risk=tuple(row["size"] <= 1 for row in sizes),
            as_share=False,
        )


def _sets(measure: Measure) -> Iterator[Bars]:
    rows = [
        row for row in rows_of(measure, "sets", "keys", "unsafe_combinations") if row["unsafe_combinations"]
    ]
    if not rows:
        return
    rows = sorted(rows, key=lambda row: (-row["unsafe_combinations"], str(row["keys"])))
    kept = rows[:_MOST_SETS]
    more = f" ({len(kept)} of {len(rows)})" if len(kept) < len(rows) else ""
    threshold = measure.figures.get("threshold")
    few = f"fewer than {shown(threshold)}" if finite(threshold) else "too few"
    yield Bars(
        title=f"Sets of keys with the most rare combinations{more}",
        labels=tuple(str(row["keys"]) for row in kept),
        values=tuple(float(row["unsafe_combinations"]) for row in kept),
        axis=f"Number of combinations of values that {few} records share",
        at_risk=(False,) * len(kept),
        horizontal=True,
        as_share=False,
    )


def _estimates(measure: Measure) -> Iterator[Dots]:
    rows = rows_of(measure, "estimates", "estimator", "B")
    estimates = tuple(
        Row(str(row["estimator"]), (number(row["B"]),), _interval(row.get("B_low"), row.get("B_high")))
        for row in rows
        if finite(row["B"])
    )
    if estimates:
        yield Dots(
            title="Chance that a record is matched to the right person",
            series=("Estimate",),
            rows=estimates,
            axis="Estimated chance (B); the line is the interval of the estimate",
        )
    # Estimators that simulate would run again for every size of the population.
    if measure.parameters.get("estimator") in _SLOW_ESTIMATORS:
        return
    sizes = tuple(
        Row(f"{row['population_size']:,}", (number(row["B"]),))
        for row in rows_of(measure, "sensitivity", "population_size", "B")
        if finite(row["B"])
    )
    if len(sizes) > 1:
        yield Dots(
            title="If the population were smaller or larger",
            series=("Estimate",),
            rows=sizes,
            axis="Estimated chance (B) by the number of people in the population",
        )


def _models(measure: Measure) -> Iterator[Dots]:
    rows = rows_of(measure, "models", "added", "error_tau2", "chosen")
    if len(rows) < 2:
        return
    kept = rows[:_MOST_SETS]
    yield Dots(
        title="How far each model is from the counts of the file",
        series=("Unique in the population (tau1)", "Right matches (tau2)"),
        rows=tuple(
            Row(
                f"{'+ ' if place else ''}{row['added']}{' (chosen)' if row['chosen'] else ''}",
                (number(row.get("error_tau1")), number(row["error_tau2"])),
            )
            for place, row in enumerate(kept)
        ),
        axis="Test of over- or underfit of each step; the closer to 0, the better the model fits",
        as_share=False,
        mark=0.0,
    )


def _gains(measure: Measure) -> Iterator[Points]:
    """Gather the groups of a release on a grid by tens, in the engine: there can be millions of them."""
    if "cells" not in measure.detail or not {"P_A", "gain"} <= set(columns_of(measure.detail["cells"])):
        return
    flagged = "flag" in columns_of(measure.detail["cells"])
    frame: Frame = nw.from_native(measure.detail["cells"])
    frame = frame.select(
        nw.col("P_A").clip(_LOWEST_CHANCE, 1.0).alias("across"),
        nw.col("gain").clip(1 / _HIGHEST_GAIN, _HIGHEST_GAIN).alias("up"),
        (nw.col("flag") == _FLAGGED if flagged else nw.lit(value=False)).alias("risky"),
    ).filter(~nw.col("up").is_null() & ~nw.col("up").is_nan() & ~nw.col("across").is_null())
    held = gathered(
        frame.with_columns(
            (nw.col("across").log(10) * 4).round(0).alias("across"),
            (nw.col("up").log(10) * 2).round(0).alias("up"),
        )
        .group_by("across", "up", "risky")
        .agg(nw.len().alias("count"))
    )
    counts = Counter[tuple[float, float, bool]]()
    for row in held.iter_rows(named=True):
        # On some engines minus zero is a group of its own.
        counts[10 ** (row["across"] / 4), 10 ** (row["up"] / 2), bool(row["risky"])] += int(row["count"])
    if not counts:
        return
    records = measure.figures.get("records")
    yield Points(
        title="What the release adds to a blind guess",
        points=tuple(
            Point(across, up, counts[across, up, risky], risky) for across, up, risky in sorted(counts)
        ),
        across="chance of the key values in the population",
        up="gain",
        axis=(
            "Each dot stands for groups, a large one for many; up: how much likelier the release makes it to single "
            f"someone out (drawn up to {shown(int(_HIGHEST_GAIN))} times); red: may enable identification"
        ),
        mark=1 / records if finite(records) and records else None,
        mark_name="1 / records",
    )


def _interval(low: object, high: object) -> tuple[float, float] | None:
    return (float(low), float(high)) if finite(low) and finite(high) else None
