"""The tables of an original and one copy, counted over the same cells and compared."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from discreet import engine
from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ParameterError
from discreet.core.progress import track
from discreet.engine.shared_tables import Table
from discreet.microdata import Microdata
from discreet.pairs.side_by_side import names_checked
from discreet.utility.associations import cramers_v
from discreet.utility.table_distances import SpecksOrder, cell_figures, expected_size, z_scores

_MOST_CELLS_SHOWN = 1_000_000
_WHOLE = ("cells", "df", "df_G")
_FIRST = (
    "df", "VW", "FT", "JSD", "MabsDD", "WMabsDD", "dBhatt", "G", "S_pMSE", "S_FT", "S_JSD", "S_WMabsDD", "pMSE",
    "SPECKS", "PO50", "U", "AUC", "KS", "Hellinger", "Bhattacharyya", "pearson_syn", "KL", "ROC", "mean_abs",
    "max_abs", "mean_rel", "max_rel", "V_before", "V_after", "V_change", "df_G", "cells",
)  # fmt: skip


class ComparedTables:
    """The tables of the original and of one copy.

    Attributes
    ----------
    shared
        The grouped columns of both files.
    tables
        The tables that are not too large; ``left_out`` others were.
    sizes
        How many records the two files are worth.
    figures
        One row a table.
    """

    def __init__(
        self,
        shared: engine.SharedTables,
        tables: Sequence[Table],
        *,
        k_syn: bool | float,
        specks_order: SpecksOrder,
        max_cells: float,
    ) -> None:
        self.shared, self._specks_order = shared, specks_order
        self._scale = [size[1] / size[0] for size in (self.shared.original.size, self.shared.released.size)]
        self.sizes = [self.shared.original.size[1], self.shared.released.size[1]]
        self._expected = expected_size(k_syn, *self.sizes)
        self.tables = [table for table in tables if self.shared.cells_of(table) <= max_cells]
        self.left_out = len(tables) - len(self.tables)
        if not self.tables:
            raise ParameterError(
                f"Every table could have more than max_cells = {max_cells:,.0f} cells. Raise max_cells, or leave "
                "out columns with many levels."
            )
        counted = track(self.shared.counted(self.tables), len(self.tables), "Comparing tables")
        rows = [self._row(table, cells, o, s) for table, cells, o, s in counted]
        self.figures = pl.DataFrame(rows, schema=_schema(), orient="row")

    @property
    def notes(self) -> list[str]:
        """What the reader must know about how the columns were brought together."""
        return [note for groups in self.shared.groups.values() for note in groups.notes]

    def cells(self, tables: Iterable[Table]) -> pl.DataFrame:
        """Give the cells of some tables, with z."""
        parts = []
        for table, cells, o, s in self.shared.counted(list(tables)):
            a, b = o * self._scale[0], s * self._scale[1]
            parts.append(
                pl.DataFrame(
                    {
                        "variables": [named(table)] * len(cells),
                        "cell": self.shared.labels(table, cells),
                        "original": o,
                        "released": s,
                        "share_before": o / o.sum(),
                        "share_after": s / s.sum(),
                        "z": z_scores(a, b, self._expected),
                    }
                )
            )
        return pl.concat(parts).sort(pl.col("z").abs(), descending=True, maintain_order=True)

    def _row(self, table: Table, cells: Integers, o: Floats, s: Floats) -> dict[str, Any]:
        ordered = len(table) == 1 and self.shared.groups[table[0]].ordered
        figures = cell_figures(
            o * self._scale[0],
            s * self._scale[1],
            ordered=ordered,
            expected=self._expected,
            specks_order=self._specks_order,
        )
        if len(table) == 2:
            shape = tuple(self.shared.groups[name].size for name in table)
            before, after = (cramers_v(cells, counts, shape) for counts in (o, s))
            change = None if before is None or after is None else after - before
            figures |= {"V_before": before, "V_after": after, "V_change": change}
        return {
            "variables": named(table),
            "ways": len(table),
            "sparse": len(o) > self.sizes[0] / 2,
            **figures,
        }


def summary(table: pl.DataFrame) -> dict[str, Any]:
    """Sum up the figures of all tables."""

    def of(name: str, how: str) -> float | None:
        known = table[name].drop_nulls()
        return float(getattr(known, how)()) if len(known) else None

    change = table["V_change"].drop_nulls().abs()
    return {
        "max_S_pMSE": of("S_pMSE", "max"),
        "mean_S_pMSE": of("S_pMSE", "mean"),
        "median_S_pMSE": of("S_pMSE", "median"),
        "mean_JSD": of("JSD", "mean"),
        "mean_SPECKS": of("SPECKS", "mean"),
        "max_SPECKS": of("SPECKS", "max"),
        "mean_Hellinger": of("Hellinger", "mean"),
        "mean_MabsDD": of("MabsDD", "mean"),
        "mean_ROC": of("ROC", "mean"),
        "mean_V_change": float(change.mean()) if len(change) else None,  # type: ignore[arg-type]
        "sparse_tables": int(table["sparse"].sum()),
    }


def averaged(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Average over copies, the worst table first; ties by name, so that engines agree."""
    if len(tables) > 1:
        numbers = [name for name, dtype in tables[0].schema.items() if dtype.is_numeric() and name != "ways"]
        grouped = pl.concat(tables).group_by("variables", "ways", maintain_order=True)
        whole = grouped.agg(pl.col("sparse").any(), pl.col(numbers).mean()).select(tables[0].columns)
    else:
        whole = tables[0]
    return whole.sort(["S_pMSE", "variables"], descending=[True, False], nulls_last=True)


def by_column(whole: pl.DataFrame, tables: Sequence[Table]) -> pl.DataFrame:
    """Sum up the tables that each column is part of, the worst column first."""
    parts = [{"variables": named(table), "column": name} for table in tables for name in table]
    return (
        pl.DataFrame(parts)
        .join(whole, on="variables")
        .group_by("column")
        .agg(
            mean_S_pMSE=pl.col("S_pMSE").mean(),
            max_S_pMSE=pl.col("S_pMSE").max(),
            mean_SPECKS=pl.col("SPECKS").mean(),
            tables=pl.len().cast(pl.Int64),
        )
        .sort(["mean_S_pMSE", "column"], descending=[True, False], nulls_last=True)
    )


def groups_of(shared: engine.SharedTables) -> pl.DataFrame:
    """List the groups of every column."""
    return pl.DataFrame(
        [
            {"column": name, "group": place, "label": label, "kind": groups.kind}
            for name, groups in shared.groups.items()
            for place, label in enumerate(groups.labels)
        ],
        schema={"column": pl.String, "group": pl.Int64, "label": pl.String, "kind": pl.String},
    )


def shown_first(one: ComparedTables, whole: pl.DataFrame) -> list[Table]:
    """Choose the worst tables, as many as can be shown."""
    by_name = {named(table): table for table in one.tables}
    chosen: list[Table] = []
    cells = 0
    for name, many in whole.select("variables", "cells").iter_rows():
        cells += int(many)
        if chosen and cells > _MOST_CELLS_SHOWN:
            break
        chosen.append(by_name[name])
    return chosen


def wanted_tables(
    shared: engine.SharedTables,
    ways: Sequence[int],
    by: Sequence[str],
    synthesized: str | Sequence[str] | None,
    original: Microdata,
) -> list[Table]:
    """List the tables: combinations of varying columns, those that cannot differ left out, then crossed."""
    names = [name for name, groups in shared.groups.items() if groups.size > 1]
    inner = [name for name in names if name not in by]
    must = None if synthesized is None else set(names_checked(original, synthesized, "synthesized"))
    if must is not None and not must & set(inner):
        raise ParameterError(
            "None of the synthesized columns is among the compared ones, so no table can differ."
        )
    if not inner:
        raise ParameterError(
            "Every compared column is constant in both files, so there is no table to compare."
        )
    if len(inner) < min(ways):
        raise ParameterError(
            f"Tables of {min(ways)} variables need as many columns that vary, and there "
            f"{'is' if len(inner) == 1 else 'are'} {len(inner)}. Name more columns, or set ways={len(inner)}."
        )
    tables = [
        table
        for number in ways
        for table in itertools.combinations(inner, number)
        if must is None or must & set(table)
    ]
    crossed = [(level, *table) for level in by if level in names for table in tables]
    return [*tables, *crossed]


BETWEEN = " × "


def named(table: Table) -> str:
    """Name a table by its variables."""
    return BETWEEN.join(table)


def _schema() -> dict[str, Any]:
    whole = {name: pl.Int64 if name in _WHOLE else pl.Float64 for name in _FIRST}
    return {"variables": pl.String, **whole, "ways": pl.Int64, "sparse": pl.Boolean}
