"""Pictures of the groups of a file: their sizes, what can be learned in them, and the keys that make them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from discreet.core.charts import Bars, Frame, columns_of, finite, gathered, rows_of
from discreet.core.results import Measure
from discreet.core.wording import is_share, label_of, words_at
from discreet.report.ink import nice_step

SIZE_GROUPS = ((1, 1), (2, 2), (3, 4), (5, 9), (10, 19), (20, 99), (100, math.inf))

_RISKS = ("prosecutor_max", "prosecutor_mean", "journalist_max", "journalist_mean", "marketer")
_PER_CLASS = {
    "l": ("Records by number of different sensitive values in their group", "number of values (l)"),
    "t": ("Records by distance of their group from the whole file", "distance (t)"),
    "best_guess": ("Records by an intruder's best guess in their group", "chance that the guess is right"),
    "alpha": ("Records by share of the commonest sensitive value in their group", "share (alpha)"),
    "beta": ("Records by gain in confidence about a sensitive value in their group", "gain (beta)"),
    "delta": ("Records by shift in the odds of a sensitive value in their group", "shift (delta)"),
    "presence": (
        "Records by chance that a member of their group is in the file",
        "chance of being in the file",
    ),
}
_WHOLE_NUMBERS = frozenset({"l"})
_MOST_BARS = 12
_ENDLESS = 1e300


def of_groups(measure: Measure) -> Iterator[Bars]:
    """Choose the picture of a measure that rests on groups: the first that fits."""
    for choose in (_key_bars, _variable_bars, _class_histogram, _risk_bars, _size_bars, _figure_bars):
        chart = choose(measure)
        if chart is not None:
            yield chart
            return


def _key_bars(measure: Measure) -> Bars | None:
    rows = rows_of(measure, "variables")
    if not rows or "key" not in rows[0]:
        return None
    without = [row.get("unique_share_without") for row in rows]
    if any(finite(value) for value in without):
        title, column = "Records alone in their group if one key is dropped", "unique_share_without"
        axis = "Share of records alone without this key; a short bar means the key matters"
    else:
        title, column = "How well each key tells records apart", "distinction"
        axis = label_of(column)
    return _by_name(rows, "key", column, title, axis, descending=column == "distinction")


def _variable_bars(measure: Measure) -> Bars | None:
    rows = rows_of(measure, "variables")
    if len(rows) < 2 or "sensitive" not in rows[0]:
        return None
    candidates = (measure.name.split("_", maxsplit=1)[0], *_PER_CLASS, "value")
    column = next((name for name in candidates if finite(rows[0].get(name))), None)
    # Bars of one length tell nothing; the spread within the worst column does.
    if column is None or len({row.get(column) for row in rows}) == 1:
        return None
    title = f"{measure.title} by sensitive column"
    return _by_name(
        rows, "sensitive", column, title, label_of(column), descending=column not in _WHOLE_NUMBERS
    )


def _class_histogram(measure: Measure) -> Bars | None:
    if "classes" not in measure.detail:
        return None
    table = measure.detail["classes"]
    names = columns_of(table)
    initial = measure.name.split("_", maxsplit=1)[0]
    column = next((name for name in (initial, *_PER_CLASS) if name in _PER_CLASS and name in names), None)
    held = next((name for name in ("class_size", "records") if name in names), None)
    if column is None or held is None:
        return None
    frame: Frame = nw.from_native(table)
    at = nw.col("at")
    frame = frame.select(nw.col(column).cast(nw.Float64).alias("at"), nw.col(held).alias("held"))
    frame = frame.filter(~at.is_null() & ~at.is_nan())
    endless = gathered(frame.filter(at >= _ENDLESS).select(nw.col("held").sum())).item() or 0
    frame = frame.filter(at < _ENDLESS)
    low, high = gathered(frame.select(at.min().alias("low"), at.max().alias("high"))).row(0)
    if not finite(low) or not finite(high):
        return None
    edges = _edges(float(low), float(high), whole=column in _WHOLE_NUMBERS and _all_whole(frame))
    step = edges[1] - edges[0]
    # A hair is added before rounding down, so that 0.3 / 0.1 falls into the bin that starts at 0.3.
    place = ((at - edges[0]) / step + 1e-9).floor().clip(0, len(edges) - 2)
    binned = gathered(
        frame.with_columns(place.alias("bin")).group_by("bin").agg(nw.col("held").sum().alias("records"))
    )
    records = np.zeros(len(edges) - 1)
    records[binned["bin"].to_numpy().astype(int)] = binned["records"].to_numpy()
    labels = _bin_labels(edges, whole=step == 1 and column in _WHOLE_NUMBERS)
    risky = [column in _WHOLE_NUMBERS and edge < 2 for edge in edges[:-1]]
    if endless:
        labels, records, risky = (*labels, "unbounded"), np.append(records, endless), [*risky, True]
    return Bars(
        title=_PER_CLASS[column][0],
        labels=labels,
        values=tuple(float(share) for share in records / max(records.sum(), 1)),
        axis=f"Share of records; {_PER_CLASS[column][1]} along the bottom",
        at_risk=tuple(risky),
    )


def _risk_bars(measure: Measure) -> Bars | None:
    names = [name for name in _RISKS if finite(measure.figures.get(name))]
    if len(names) < 3:
        return None
    return Bars(
        title="Chance that an intruder points at the right record",
        labels=tuple(words_at("axis", name) or label_of(name) for name in names),
        values=tuple(float(measure.figures[name] or 0) for name in names),
        axis="Chance from 0 to 100 %; 100 % means certain to be found",
        at_risk=tuple(name.endswith("_max") for name in names),
        horizontal=True,
    )


def _size_bars(measure: Measure) -> Bars | None:
    table = next((measure.detail[name] for name in ("sizes", "classes") if name in measure.detail), None)
    if table is None:
        return None
    names = columns_of(table)
    column = next((name for name in ("population", "class_size") if name in names), None)
    if column is None:
        return None
    frame: Frame = nw.from_native(table)
    records = nw.col("records") if "records" in names else nw.col(column)
    counted = gathered(
        frame.select(nw.col(column).alias("size"), records.alias("held"))
        .group_by("size")
        .agg(nw.col("held").sum())
    )
    sizes, held = counted["size"].to_numpy(), counted["held"].to_numpy().astype(float)
    if not held.sum():
        return None
    totals = [float(held[(sizes >= low) & (sizes <= high)].sum()) for low, high in SIZE_GROUPS]
    where = " in the population" if column == "population" else ""
    return Bars(
        title=f"Records by size of their group{where}",
        labels=tuple(_range_label(low, high) for low, high in SIZE_GROUPS),
        values=tuple(total / float(held.sum()) for total in totals),
        axis="Share of records; size of the group along the bottom, 1 means alone",
        at_risk=tuple(low == 1 for low, _ in SIZE_GROUPS),
    )


def _figure_bars(measure: Measure) -> Bars | None:
    names = [name for name, figure in measure.figures.items() if is_share(name) and finite(figure)]
    if len(names) < 2:
        return None
    return Bars(
        title=f"{measure.title}: the shares",
        labels=tuple(_beside_bars(name, measure.name) for name in names),
        values=tuple(float(measure.figures[name] or 0) for name in names),
        axis="Share",
        at_risk=(False,) * len(names),
        horizontal=True,
    )


def _beside_bars(name: str, measure: str) -> str:
    short = words_at("bars", name, measure=measure) or words_at("axis", name)
    return short or label_of(name, measure=measure)


def _by_name(
    rows: Sequence[dict[str, Any]], name: str, column: str, title: str, axis: str, *, descending: bool
) -> Bars | None:
    pairs = [(str(row[name]), float(row[column])) for row in rows if finite(row.get(column))]
    if not pairs:
        return None
    pairs.sort(key=lambda pair: pair[1], reverse=descending)
    kept = pairs[:_MOST_BARS]
    more = f" ({len(kept)} of {len(pairs)})" if len(kept) < len(pairs) else ""
    return Bars(
        title=title + more,
        labels=tuple(label for label, _ in kept),
        values=tuple(value for _, value in kept),
        axis=axis,
        at_risk=(False,) * len(kept),
        horizontal=True,
        as_share=is_share(column) and all(0 <= value <= 1 for _, value in kept),
    )


def _edges(low: float, high: float, *, whole: bool) -> list[float]:
    if whole:
        width = max(1, math.ceil((high - low + 1) / _MOST_BARS))
        count = max(1, math.ceil((high - low + 1) / width))
        return [low + width * place for place in range(count + 1)]
    # The axis starts at zero unless that would leave its first half empty.
    start = 0.0 if 0 <= low < high / 2 or low == high >= 0 else low
    spread = max(high - start, 1e-9)
    step = nice_step(spread, 8)
    start = math.floor(start / step + 1e-9) * step
    spread = max(high - start, 1e-9)
    return [start + step * place for place in range(max(1, math.ceil(spread / step - 1e-9)) + 1)]


def _bin_labels(edges: Sequence[float], *, whole: bool) -> tuple[str, ...]:
    if whole:
        return tuple(f"{edge:g}" for edge in edges[:-1])
    return tuple(f"{low:.3g}–{high:.3g}" for low, high in itertools.pairwise(edges))


def _all_whole(frame: Frame) -> bool:
    off = frame.select((nw.col("at") - nw.col("at").floor()).max().alias("off"))
    return bool(gathered(off).item() == 0)


def _range_label(low: float, high: float) -> str:
    if low == high:
        return f"{low:g}"
    return f"{low:g}+" if math.isinf(high) else f"{low:g}–{high:g}"
