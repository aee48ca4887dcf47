"""What did the protection of a table cost? Suppressed cells, deviations and distances, before against after."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from discreet.core.arrays import Floats
from discreet.core.errors import ColumnError, ParameterError
from discreet.core.parameters import checked
from discreet.core.results import Detail, Measure
from discreet.core.values import canonical_text
from discreet.tables.table import Table
from discreet.tables.table_cells import cell_numbers, equations


@checked
def information_loss(table: Table, released: Any, *, value: str | None = None) -> Measure:
    """How much of a table was lost to its protection?

    Parameters
    ----------
    table
        The table before protection.
    released
        What is published: a table, a frame with the dimension columns and the value (cells that are missing or not
        listed are suppressed), or one number a cell (NaN where suppressed).
    value
        The column that is compared; by default the value of the table.

    Returns
    -------
    Measure
        ``value`` is the share of cells that are suppressed or changed. Figures: ``cells``, ``suppressed``,
        ``suppressed_share``, ``suppressed_value`` and its share of the value of all cells, ``changed``; over the cells
        that are published ``mean_absolute``, ``largest_absolute``, ``root_mean_square``, ``mean_relative`` (cells
        that were not zero), ``false_zeros``, ``false_nonzeros``, ``hellinger``, ``jsd``; and
        ``broken_sums``, the sums between published cells that no longer hold. ``detail["cells"]`` sets before and
        after side by side, ``detail["levels"]`` counts by level.

    Examples
    --------
    >>> table = Table.from_microdata(pl.DataFrame({"place": ["a", "a", "b"]}), "place")
    >>> lost = information_loss(table, [3, float("nan"), 1])
    >>> lost.figures["suppressed"], round(lost.value, 3)
    (1, 0.333)
    """
    column = value or table.value
    before = cell_numbers(table, column, "value", missing=np.nan)
    after = _after(table, released, column)
    gone = np.isnan(after)
    kept = ~gone
    gap = np.abs(after - before)[kept]
    changed = kept & ~np.isclose(np.nan_to_num(after), before, rtol=1e-12, atol=0.0)
    filled = kept & (before != 0)
    size = np.abs(before)
    many = len(before)
    figures: dict[str, float | int | None] = {
        "cells": many,
        "suppressed": int(gone.sum()),
        "suppressed_share": float(gone.mean()) if many else 0.0,
        "suppressed_value": float(size[gone].sum()),
        "suppressed_value_share": float(size[gone].sum() / size.sum()) if size.sum() else 0.0,
        "changed": int(changed.sum()),
        "mean_absolute": float(gap.mean()) if kept.any() else None,
        "largest_absolute": float(gap.max()) if kept.any() else None,
        "root_mean_square": float(np.sqrt((gap**2).mean())) if kept.any() else None,
        "mean_relative": float((np.abs(after - before)[filled] / size[filled]).mean())
        if filled.any()
        else None,
        "false_zeros": int((kept & (before != 0) & (after == 0)).sum()),
        "false_nonzeros": int((kept & (before == 0) & (after != 0)).sum()),
        **_distances(before[kept], after[kept]),
        "broken_sums": _broken(table, after),
    }
    share = (int(gone.sum()) + int(changed.sum())) / many if many else 0.0
    return Measure(
        "information_loss",
        share,
        figures,
        _meaning(figures, column),
        caveats=_caveats(figures),
        parameters={"value": column, "tables": list(table.tables)},
        detail=Detail(
            cells=lambda: _side_by_side(table, column, before, after),
            levels=lambda: _by_level(table, before, after),
        ),
    )


def _after(table: Table, released: Any, column: str) -> Floats:
    if isinstance(released, Table):
        released = released.cells
    try:
        frame = nw.from_native(released, eager_only=True).to_polars()
    except TypeError:
        given = np.asarray(released, dtype=np.float64)
        if given.shape != (table.cells.height,):
            raise ParameterError(
                f"released has {given.size:,} numbers; the table has {table.cells.height:,} cells."
            ) from None
        return given
    for name in (*table.dimensions, column):
        if name not in frame.columns:
            raise ColumnError(f"released has no column '{name}', which the table has.")
    texts = frame.select(
        *(canonical_text(frame[name]).alias(name) for name in table.dimensions),
        pl.col(column).cast(pl.Float64, strict=False).alias("discreet after"),
    )
    if texts.select(table.dimensions).is_duplicated().any():
        raise ParameterError("released lists some cells twice. Keep one row a cell.")
    on = list(table.dimensions)
    joined = table.cells.select(on).join(texts, on=on, how="left", maintain_order="left")["discreet after"]
    return joined.fill_null(float("nan")).to_numpy().copy()


def _distances(before: Floats, after: Floats) -> dict[str, float | None]:
    """The distances between the shares of the published cells; None where values are negative."""
    from discreet.utility.table_distances import table_distances

    if not len(before) or (before < 0).any() or (after < 0).any() or not before.sum() or not after.sum():
        return {"hellinger": None, "jsd": None}
    roots = np.sqrt(before / before.sum()) - np.sqrt(after / after.sum())
    jsd = table_distances(before, after, ordered=False)["jsd"]
    return {
        "hellinger": float(np.sqrt(0.5 * (roots**2).sum())),
        "jsd": None if jsd is None else float(jsd),
    }


def _broken(table: Table, after: Floats) -> int:
    """Count the sums between cells that are all published and no longer add up, though they did before."""
    sums = equations(table)
    before = table.values.astype(np.float64)
    whole = np.abs(sums) @ np.isnan(after).astype(np.int64) == 0
    known = np.nan_to_num(after)
    room = 1e-9 * np.maximum(np.abs(sums) @ np.abs(before), 1.0)
    return int((whole & (np.abs(sums @ known) > room) & (np.abs(sums @ before) <= room)).sum())


def _meaning(figures: dict[str, float | int | None], column: str) -> str:
    parts = [f"Of {figures['cells']:,} cells {figures['suppressed']:,} are suppressed"]
    if figures["changed"]:
        parts.append(f"{figures['changed']:,} are published with another {column}")
    text = " and ".join(parts)
    if figures["changed"] and figures["mean_absolute"] is not None:
        text += f"; published cells deviate by {figures['mean_absolute']:.3g} on average"
    return text + "."


def _caveats(figures: dict[str, float | int | None]) -> list[str]:
    found = []
    if figures["suppressed"]:
        found.append(
            "Totals and inner cells count alike, and the value of a suppressed cell is often also part of a published "
            "total; compare protections of the same table only."
        )
    if figures["broken_sums"]:
        found.append(f"{figures['broken_sums']:,} published sums no longer equal the total of their parts.")
    return found


def _side_by_side(table: Table, column: str, before: Floats, after: Floats) -> pl.DataFrame:
    return table.cells.select(table.dimensions).with_columns(
        before=pl.Series(before),
        after=pl.Series(after).fill_nan(None),
        suppressed=pl.Series(np.isnan(after)),
        difference=pl.Series(after - before).fill_nan(None),
    )


def _by_level(table: Table, before: Floats, after: Floats) -> pl.DataFrame:
    rows = pl.DataFrame(
        {"level": table.cells["level"], "gone": np.isnan(after), "gap": np.abs(after - before)}
    )
    return (
        rows.group_by("level")
        .agg(
            cells=pl.len().cast(pl.Int64),
            suppressed=pl.col("gone").sum().cast(pl.Int64),
            mean_absolute=pl.col("gap").fill_nan(None).mean(),
        )
        .sort("level")
    )
