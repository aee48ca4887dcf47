"""How do attribution figures change with the width of the intervals? One row a pair of interval numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from discreet.engine.attribution_counts import JointCounts
from discreet.risk.attribution_probability.cap_scores import Unmatched, cell_scores, chances, summary
from discreet.risk.attribution_probability.intervals import Classes, Source, Strategy, coarsened, edges_of


def attribution_surface(
    exact: JointCounts,
    keys: Sequence[str],
    target: str | None,
    banded: Sequence[str],
    *,
    strategy: Strategy,
    edges_from: Source | None,
    most: int,
    unmatched: Unmatched,
    baseline: str,
    classes: Mapping[str, Classes],
) -> pl.DataFrame:
    """Measure attribution with every pair of interval numbers up to ``most``.

    ``banded`` keys and the target, where it is a number, are put into 1, 2, … intervals; all else stays as it is.
    The records are counted once: each pair merges the counted cells.
    """
    fixed = {column: drawn for column, drawn in classes.items() if column not in (*banded, target)}
    rows: list[dict[str, Any]] = []
    for j1 in range(1, most + 1) if banded else [None]:
        drawn = {
            key: _drawn(exact, f"k{keys.index(key)}", edges_from or "pooled", j1 or 1, strategy)
            for key in banded
        }
        narrowed, _ = coarsened(exact, keys, (), {**fixed, **drawn})
        for j2 in range(1, most + 1) if target else [None]:
            joint = narrowed
            if target:
                here = {target: _drawn(exact, "s0", edges_from or "released", j2 or 1, strategy)}
                joint, _ = coarsened(narrowed, (), (target,), here)
            scores = cell_scores(joint, nearest=unmatched == "nearest")
            figures = summary(
                joint,
                scores,
                chances(joint, scores, "proportional"),
                unmatched=unmatched,
                baseline=baseline,
                tolerance=None,
            )
            kept = ("cap_original", "cap_released", "gain", "worst_gain", "matched_share")
            rows.append(
                {"key_intervals": j1, "target_intervals": j2} | {name: figures[name] for name in kept}
            )
    return pl.DataFrame(rows, infer_schema_length=None)


def _drawn(exact: JointCounts, name: str, source: Source, count: int, strategy: Strategy) -> Classes:
    """Draw the intervals of one column from the counted cells."""
    labels, position = (
        (exact.class_labels, exact.owners) if name.startswith("k") else (exact.value_labels, exact.values)
    )
    numbers = labels[name].cast(pl.Float64).to_numpy()[position]
    counts = {"original": exact.original, "released": exact.released}.get(
        source, exact.original + exact.released
    )
    used = (counts > 0) & ~np.isnan(numbers)
    return Classes(edges=edges_of(np.repeat(numbers[used], counts[used]), count, strategy))
