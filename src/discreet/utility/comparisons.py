"""Two files side by side: the counts, errors and tables behind an information-loss measure, each made once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
import polars as pl

from discreet.core.arrays import Flags
from discreet.core.constraints import AtLeast
from discreet.core.errors import ColumnError, ParameterError
from discreet.utility.associations import Moments, moments, paired_errors, pairs_table
from discreet.utility.column_distributions import bin_edges, stacked
from discreet.utility.column_loss import Kind
from discreet.utility.linked_files import LinkedFiles
from discreet.utility.table_distances import Closed, group_breaks, grouped, side_by_side, table_distances
from discreet.utility.two_sample_tests import ks_two_sample

Groups = Annotated[int, AtLeast(1)] | Mapping[str, Sequence[float]]
Pair = tuple[Kind, pl.Series, pl.Series]

_POINTS = 101


@dataclass(frozen=True)
class Comparisons:
    """Everything that is asked about two linked (or unlinked) files."""

    files: LinkedFiles
    pairs: Mapping[str, Pair]
    losses: Mapping[str, float]
    coded: tuple[str, ...]
    weight: str | None
    groups: Groups
    closed: Closed
    level: float
    divisor: str

    def __post_init__(self) -> None:
        if not isinstance(self.groups, Mapping):
            return
        for name, breaks in self.groups.items():
            if name not in self.pairs:
                raise ColumnError(f"groups names '{name}', which is not among the compared columns.")
            if list(breaks) != sorted(set(breaks)):
                raise ParameterError(f"The breaks of '{name}' in groups must be in increasing order.")

    @cached_property
    def numeric(self) -> tuple[str, ...]:
        """Columns that are numbers in both files; dates and codes are none."""
        return tuple(
            name
            for name, (kind, _, _) in self.pairs.items()
            if kind == "number" and self.files.original[name].dtype.is_numeric() and name not in self.coded
        )

    @cached_property
    def unmeasured(self) -> tuple[str, ...]:
        """Columns that were numbers and became labels."""
        return tuple(
            name
            for name, (kind, _, _) in self.pairs.items()
            if kind == "bands" and self.files.original[name].dtype.is_numeric()
        )

    @cached_property
    def weights(self) -> tuple[pl.Series | None, pl.Series | None]:
        """The survey weights of both files; those of the original where the release has none and is aligned."""
        if self.weight is None:
            return None, None
        ours = self.files.original[self.weight]
        if self.weight in self.files.released.columns:
            return ours, self.files.released[self.weight].fill_null(0)
        return ours, (ours if self.files.aligned else None)

    @cached_property
    def before(self) -> Moments:
        """Moments of the original."""
        return self._moments(0)

    @cached_property
    def after(self) -> Moments:
        """Moments of the release."""
        return self._moments(1)

    def _moments(self, side: int) -> Moments:
        table = pl.DataFrame({name: self.pairs[name][1 + side] for name in self.numeric})
        return moments(table, self.numeric, self.weights[side], divisor=self.divisor)

    @cached_property
    def changed(self) -> dict[str, Flags] | None:
        """For each column which of the remaining records changed; None without linked records."""
        if self.files.gone is None:
            return None
        stay = ~self.files.gone
        return {name: ~same & stay for name, same in self.files.same.items()}

    @cached_property
    def counts(self) -> dict[str, Any]:
        """How many records and cells changed among those that remain."""
        suppressed = sum(self._suppressed(name) for name in self.pairs)
        if self.changed is None or self.files.gone is None:
            nothing = ("records_changed", "share_records_changed", "cells_changed", "share_cells_changed")
            return {**dict.fromkeys(nothing), "cells_suppressed": suppressed}
        remaining = max(1, self.files.records - self.files.removed)
        any_change = np.zeros(self.files.records, dtype=np.bool_)
        for flags in self.changed.values():
            any_change |= flags
        records = int(any_change.sum())
        cells = sum(int(flags.sum()) for flags in self.changed.values())
        return {
            "records_changed": records,
            "share_records_changed": records / remaining,
            "cells_changed": cells,
            "share_cells_changed": cells / max(1, remaining * len(self.pairs)),
            "cells_suppressed": suppressed,
        }

    @cached_property
    def paired(self) -> dict[str, dict[str, float | None]]:
        """MSE, R², IL1 and IL1s of each numeric column, where records are linked."""
        if not self.files.aligned:
            return {}
        spread = np.sqrt(self.before.variances)
        return {
            name: paired_errors(*self.pairs[name][1:], float(spread[i]))
            for i, name in enumerate(self.numeric)
        }

    @cached_property
    def errors(self) -> dict[str, float | None]:
        """IL1 and IL1s summed over the numeric columns."""
        return summed_errors(self.paired)

    def variables(self) -> pl.DataFrame:
        """One row a column."""
        moved = self.before.beside(self.after, self.level)
        distances = {row["column"]: row for row in self.distances().to_dicts()}
        rows = []
        for name, loss in self.losses.items():
            row: dict[str, Any] = {"column": name, "loss": loss, "kind": "dropped"}
            if name in self.pairs:
                row["kind"] = self.pairs[name][0]
                row["suppressed"] = self._suppressed(name)
                row |= (
                    {key: distances[name][key] for key in ("jsd", "pearson_protected")}
                    if name in distances
                    else {}
                )
            if self.changed is not None and name in self.changed:
                row["changed"] = int(self.changed[name].sum())
                row["share_changed"] = row["changed"] / max(1, self.files.records - self.files.removed)
            if name in moved:
                row |= {**self.paired.get(name, {}), **moved[name], "ks": self._ks(name)}
            rows.append(row)
        return pl.DataFrame(rows, schema=_VARIABLES).fill_nan(None)

    def correlations(self) -> pl.DataFrame:
        """One row a pair of numeric columns."""
        return pairs_table(self.before, self.after)

    def tables(self) -> pl.DataFrame:
        """One row a column and cell: counts (or sums of weights) and shares before and after."""
        parts = [
            cells.select(
                pl.lit(name).alias("column"),
                pl.col("cell").cast(pl.String),
                "original",
                "released",
                share_before=pl.col("original") / pl.col("original").sum(),
                share_after=pl.col("released") / pl.col("released").sum(),
            )
            for name, cells in self._tables.items()
        ]
        return pl.concat(parts) if parts else pl.DataFrame(schema={"column": pl.String, "cell": pl.String})

    def distances(self) -> pl.DataFrame:
        """One row a column: the distances between its tables before and after."""
        rows = []
        for name, cells in self._tables.items():
            ordered = self.pairs[name][0] == "number" or isinstance(self.files.original[name].dtype, pl.Enum)
            # Missing has no place in an order: KS looks at the known cells only.
            found = table_distances(cells["original"], cells["released"], ordered=False)
            known = cells.filter(pl.col("cell").is_not_null())
            if ordered and known["original"].sum() > 0 and known["released"].sum() > 0:
                found["ks"] = table_distances(known["original"], known["released"])["ks"]
            rows.append({"column": name, "cells": cells.height, **found})
        numbers = dict.fromkeys(("pearson_protected", "jsd", "ks", "kl"), pl.Float64)
        return pl.DataFrame(
            rows, schema={"column": pl.String, "cells": pl.Int64, **numbers, "zero_cells": pl.Int64}
        )

    def histograms(self) -> pl.DataFrame:
        """Counts of each numeric column in common bins, for overlaid histograms."""
        parts = []
        for name in self.numeric:
            ours, theirs = (values.drop_nulls().to_numpy() for values in self.pairs[name][1:])
            if not len(ours):
                continue
            edges = bin_edges(np.concatenate([ours, theirs]).astype(np.float64))
            masses = [self._mass(values, i) for i, values in enumerate(self.pairs[name][1:])]
            counts = [
                np.histogram(v, edges, weights=w)[0] for v, w in zip((ours, theirs), masses, strict=True)
            ]
            parts.append(
                pl.DataFrame(
                    {"from": edges[:-1], "to": edges[1:], "original": counts[0], "released": counts[1]}
                ).select(pl.lit(name).alias("column"), pl.all().cast(pl.Float64))
            )
        return stacked(parts, "from", "to", "original", "released")

    def quantiles(self) -> pl.DataFrame:
        """Interpolated quantiles of each numeric column in both files, for a QQ plot."""
        levels = np.linspace(0, 1, _POINTS)
        parts = []
        for name in self.numeric:
            ours, theirs = (values.drop_nulls().to_numpy() for values in self.pairs[name][1:])
            if len(ours) and len(theirs):
                both = {"original": np.quantile(ours, levels), "released": np.quantile(theirs, levels)}
                parts.append(pl.DataFrame({"column": [name] * _POINTS, "level": levels, **both}))
        return stacked(parts, "level", "original", "released")

    def records(self) -> pl.DataFrame:
        """One row an original record: how many of its cells changed, and whether it was removed."""
        if self.changed is None or self.files.gone is None:
            raise ParameterError(
                "There is no table of records: those of the two files are not linked. Name a column that links them "
                "with ids='column'."
            )
        changed = np.zeros(self.files.records, dtype=np.int64)
        for flags in self.changed.values():
            changed += flags
        return pl.DataFrame({"cells_changed": changed, "removed": self.files.gone}).with_row_index("record")

    @cached_property
    def _tables(self) -> dict[str, pl.DataFrame]:
        """Cells of each column in both files, in the same groups; columns that became labels have none."""
        stay = None if self.files.gone is None else pl.Series(~self.files.gone)
        before, after = self.weights
        if after is not None and stay is not None:
            after = after.filter(stay)
        found = {}
        for name, (kind, _, _) in self.pairs.items():
            ours, theirs = self._celled(name)
            if stay is not None:
                theirs = theirs.filter(stay)
            if kind != "bands" and len(theirs) and (after is None or after.sum() > 0):
                found[name] = side_by_side(ours, theirs, (before, after))
        return found

    def _celled(self, name: str) -> tuple[pl.Series, pl.Series]:
        """Put numbers into groups; categories stay, with the order of their levels where they have one."""
        kind, ours, theirs = self.pairs[name]
        if kind == "number":
            breaks = self._breaks(name, ours)
            return grouped(ours, breaks, self.closed), grouped(theirs, breaks, self.closed)
        ordered = isinstance(self.files.original[name].dtype, pl.Enum)
        return (self.files.original[name] if ordered else ours), theirs

    def _breaks(self, name: str, values: pl.Series) -> Sequence[float]:
        if isinstance(self.groups, Mapping):
            return self.groups[name] if name in self.groups else group_breaks(values, 5)
        return group_breaks(values, self.groups)

    def _suppressed(self, name: str) -> int:
        ours, theirs = self.files.original[name], self.files.released[name]
        if self.files.gone is None:
            return max(0, theirs.null_count() - ours.null_count())
        gap = theirs.is_null() & ours.is_not_null() & pl.Series(~self.files.gone)
        return int(gap.sum())

    def _ks(self, name: str) -> float | None:
        ours, theirs = self.pairs[name][1:]
        if ours.null_count() == len(ours) or theirs.null_count() == len(theirs):
            return None
        left, right = (None if w is None else w.cast(pl.Float64).to_numpy() for w in self.weights)
        found = ks_two_sample(ours.to_numpy(), theirs.to_numpy(), weights=(left, right))["ks"]
        return None if found is None else float(found)

    def _mass(self, values: pl.Series, side: int) -> Any:
        weight = self.weights[side]
        return None if weight is None else weight.filter(values.is_not_null()).cast(pl.Float64).to_numpy()


def summed_errors(paired: Mapping[str, Mapping[str, float | None]]) -> dict[str, float | None]:
    """Sum IL1 and IL1s over columns; IL1s of a cell is their mean."""
    how: Mapping[str, Callable[[Any], Any]] = {"il1": sum, "il1s": sum, "il1s_per_cell": np.mean}
    known = {name: [each[name] for each in paired.values() if each[name] is not None] for name in how}
    return {name: float(how[name](known[name])) if known[name] else None for name in how}


_VARIABLES = {
    "column": pl.String,
    "kind": pl.String,
    "loss": pl.Float64,
    "changed": pl.Int64,
    "share_changed": pl.Float64,
    "suppressed": pl.Int64,
    **dict.fromkeys(("mse", "r2", "il1", "il1_left_out", "il1s", "il1s_per_cell"), pl.Float64),
    **dict.fromkeys(("mean_before", "mean_after", "mean_low", "mean_high"), pl.Float64),
    "mean_inside": pl.Boolean,
    **dict.fromkeys(("sd_before", "sd_after", "ks", "jsd", "pearson_protected"), pl.Float64),
}
