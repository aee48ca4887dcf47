"""Both files as the same matrix of features, for models that are fitted to either."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Array, Floats
from discreet.core.errors import ColumnError, InputError, unknown_name
from discreet.engine.grouping import Cutting, brought_to, compared_as, physical, pooled_breaks
from discreet.microdata import Microdata
from discreet.pairs.side_by_side import compared_columns


@dataclass(frozen=True)
class Design:
    """Features and target of both files.

    Numbers stay numbers, with NaN where missing; categories are the places of their levels, missing being one. Records
    without a target are left out.
    """

    columns: tuple[str, ...]
    target: str
    features: tuple[Floats, Floats]
    targets: tuple[Array, Array]
    classes: tuple[str, ...]
    """The levels of a target of categories; none where it is a number."""
    left_out: tuple[int, int]
    notes: tuple[str, ...]


def design(
    original: Microdata,
    released: Microdata,
    target: str,
    columns: str | Sequence[str] | None,
    *,
    categorical: Sequence[str] = (),
    groups: int | None = None,
) -> Design:
    """Bring features and target of both files to one coding; a numeric target is cut where ``groups`` are asked for."""
    for data, what in ((original, "original"), (released, "release")):
        if target not in data.schema:
            raise ColumnError(
                f"{unknown_name(target, data.columns)} It was named as the target; the {what} lacks it."
            )
    compared = compared_columns(original, released, columns, without=[target])
    names = tuple(name for name in compared.names if name != target)
    if not names:
        raise InputError(
            "There is no column besides the target that both files have. Name some with columns=[…]."
        )
    frames = [engine.collect(data, [*names, target]) for data in (original, released)]
    notes = list(compared.caveats)
    features = []
    for name in names:
        pair, _, said = _coded(name, frames, name in categorical)
        features.append(pair)
        notes += said
    goals, classes, said = _coded(target, frames, target in categorical)
    notes += said
    if not classes and groups is not None:
        known = [goal[~np.isnan(goal)] for goal in goals]
        breaks = pooled_breaks([(known[0], None), (known[1], None)], Cutting(groups))
        goals = [np.where(np.isnan(goal), np.nan, np.searchsorted(breaks, goal, "left")) for goal in goals]
        classes = tuple(str(group) for group in range(len(breaks) + 1))
    keep = [~np.isnan(goal) for goal in goals]
    if classes:
        keep = [
            kept & (frame[target].is_not_null().to_numpy()) for kept, frame in zip(keep, frames, strict=True)
        ]
    for kept, what in zip(keep, ("original", "release"), strict=True):
        if not kept.any():
            raise InputError(f"The target '{target}' is missing in every record of the {what}.")
    matrices = [np.column_stack([pair[side] for pair in features])[keep[side]] for side in (0, 1)]
    targets = [
        goals[side][keep[side]].astype(np.int64) if classes else goals[side][keep[side]] for side in (0, 1)
    ]
    gone = [int((~kept).sum()) for kept in keep]
    return Design(
        names,
        target,
        (matrices[0], matrices[1]),
        (targets[0], targets[1]),
        classes,
        (gone[0], gone[1]),
        tuple(notes),
    )


def _coded(
    name: str, frames: Sequence[pl.DataFrame], category: bool
) -> tuple[list[Floats], tuple[str, ...], tuple[str, ...]]:
    """Code one column of both files: numbers as they are, categories by their place; and the levels of a category."""
    kind, dtype, notes = compared_as(name, frames[0][name], frames[1][name], category=category)
    parts = [brought_to(frame[name], dtype) for frame in frames]
    if kind == "number":
        return [physical(part) for part in parts], (), notes
    levels = sorted({level for part in parts for level in part.unique().to_list() if level is not None})
    place = pl.Enum(levels)
    coded = [
        part.cast(place).to_physical().cast(pl.Float64).fill_null(float(len(levels))).to_numpy()
        for part in parts
    ]
    return coded, tuple(levels), notes
