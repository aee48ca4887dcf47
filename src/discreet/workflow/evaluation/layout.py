"""How the figures of a study are laid out as text: a line a figure, a column a generator."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from discreet.core.wording import shown


def written(mean: float, spread: float | None) -> str:
    """Write a mean with its spread.

    Examples
    --------
    >>> written(0.12345, 0.0123), written(2.0, None)
    ('0.1235 ± 0.012', '2')
    """
    return shown(mean) if spread is None else f"{shown(mean)} ± {spread:.2g}"


def laid_out(table: pl.DataFrame, data: str, makers: Sequence[str]) -> list[str]:
    """Lay a summary out as text: a line a figure, a column a generator, the best one starred."""
    there = set(table["generator"].to_list())
    columns = [name for name in makers if name in there]
    body: list[tuple[str, dict[str, str]]] = []
    layer = None
    for row in table.iter_rows(named=True):
        if row["layer"] != layer:
            layer = row["layer"]
            body.append((f"  {layer}", {}))
        label = f"    {row['metric']} {row['figure']}" + (f" ({row['better']})" if row["better"] else "")
        if body[-1][0] != label:
            body.append((label, {}))
        star = "*" if row["rank"] is not None and row["rank"] < 2 else ""
        body[-1][1][row["generator"]] = written(row["mean"], row["sd"]) + star
    first = max([len(data), *(len(label) for label, _ in body)])
    widths = {name: max([len(name), *(len(cells.get(name, "")) for _, cells in body)]) for name in columns}
    lines = ["  ".join([data.ljust(first), *(name.rjust(widths[name]) for name in columns)])]
    for label, cells in body:
        lines.append(
            "  ".join(
                [label.ljust(first), *(cells.get(name, "").rjust(widths[name]) for name in columns)]
            ).rstrip()
        )
    return lines


def as_layers(apart: pl.DataFrame) -> pl.DataFrame:
    """Lay figures by table out like a summary, the tables in place of the layers."""
    return apart.select(
        pl.col("table").alias("layer"),
        "metric",
        "figure",
        pl.lit(None, dtype=pl.String).alias("better"),
        "generator",
        "mean",
        "sd",
        pl.lit(None, dtype=pl.Float64).alias("rank"),
    ).sort("layer", "metric", "figure", maintain_order=True)
