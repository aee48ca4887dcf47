"""How much information did a file lose that is too large to hold? Added up over all records, where they are.

Nearly everything that `information_loss` says of linked files is a sum over records: cells that changed, errors of
numbers, moments, and how often each value became which label. A sample of the files says how each column is compared;
the sums are those of all records. What is left to the sample, and how far off anything may be, is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.results import Measure
from discreet.core.wording import percent
from discreet.engine.comparable import distinct_values
from discreet.microdata import Microdata
from discreet.utility.associations import Moments, changes, pairs_table
from discreet.utility.column_loss import Known, banded_loss, class_losses, recoded_loss
from discreet.utility.comparisons import summed_errors
from discreet.utility.information_sums import (
    BatchSums,
    ComparedColumn,
    InIntervals,
    counted_pairs,
    numbers_known,
)

LISTED = 1_000_000
"""Records up to which all different values are listed, whatever the sample shows."""
_PAIRED = ("mse", "r2", "il1", "il1_left_out", "il1s", "il1s_per_cell")


def over_all_records(
    found: Measure,
    sample: tuple[Microdata, Microdata],
    files: tuple[Microdata, Microdata],
    settings: Mapping[str, Any],
) -> Measure | None:
    """Say of all records what `information_loss` has said of a sample; None where the files cannot be linked there.

    Parameters
    ----------
    found
        The loss of the sample, whose parameters are those of the answer.
    sample, files
        The sample of the original and of the release, and the two queries they are of.
    settings
        What the measure was given.
    """
    asked = found.parameters
    if not asked["aligned"]:
        return None
    original, released = files
    columns = {
        name: ComparedColumn.of(place, name, sample, asked["categorical"])
        for place, name in enumerate(asked["columns"])
        if name in released.schema
    }
    rows, many = _linked(original, released, columns, asked)
    if rows is None:
        return None
    listed = {name for name, column in columns.items() if many <= LISTED or column.repeated}
    told = pl.DataFrame(found.detail["variables"].select("column", "changed"))
    changed = {name for name, cells in told.iter_rows() if cells}
    while True:
        known = numbers_known(
            original, {name: columns[name] for name in columns if name in changed}, listed, rows
        )
        work = BatchSums(tuple(columns.values()), known, asked["weight"] is not None)
        sums = work.read(engine.added_up(rows, work, work.size))
        seen = {name for name in columns if sums[f"changed {name}"] or sums["there"] < many}
        # What the sample showed unchanged is not ranked, unless some record of the file did change.
        if all(name in known for name in seen - changed if columns[name].kind != "category"):
            break
        changed |= seen
    if any(sums[f"unread {name}"] for name in columns):
        return None
    wanted = [name for name in seen & listed if columns[name].labelled or name in asked["keys"]]
    tables = {name: counted_pairs(rows, columns[name]) for name in wanted}
    return _Counted(found, original, released, columns, many, sums, known, tables, seen - listed).measure(
        settings
    )


def _linked(
    original: Microdata, released: Microdata, columns: Mapping[str, ComparedColumn], asked: Mapping[str, Any]
) -> tuple[Any, int]:
    """Put the records side by side, with their weights; None where the engine cannot."""
    many = [engine.overview(data, ()).rows for data in (original, released)]
    if not columns or (asked["ids"] is None and many[0] != many[1]):
        return None, many[0]
    weight = asked["weight"]
    ours = {f"x{column.place}": name for name, column in columns.items()}
    theirs = {f"y{column.place}": name for name, column in columns.items()}
    if weight is not None:
        ours |= {"w": weight}
        theirs |= {"v": weight} if weight in released.schema else {}
    return engine.linked_rows(original, released, ours, theirs, asked["ids"]), many[0]


@dataclass(frozen=True)
class _Counted:
    """The sums of all records, and what follows from them."""

    sample: Measure
    original: Microdata
    released: Microdata
    columns: Mapping[str, ComparedColumn]
    records: int
    sums: Mapping[str, Any]
    known: Mapping[str, Known | InIntervals]
    tables: Mapping[str, pl.DataFrame]
    unlisted: set[str]

    @cached_property
    def numeric(self) -> tuple[str, ...]:
        return tuple(name for name, column in self.columns.items() if column.numeric)

    @cached_property
    def removed(self) -> int:
        return self.records - int(self.sums["there"])

    @cached_property
    def from_sample(self) -> tuple[str, ...]:
        """Columns whose loss only the sample tells: labels that hardly repeat."""
        return tuple(name for name in self.columns if self.columns[name].labelled and name in self.unlisted)

    @cached_property
    def losses(self) -> dict[str, float]:
        told = dict(self.sample.detail["variables"].select("column", "loss").iter_rows())
        return {
            name: 1.0
            if name not in self.columns
            else told[name]
            if name in self.from_sample
            else self._loss(self.columns[name])
            for name in self.sample.parameters["columns"]
        }

    def _loss(self, column: ComparedColumn) -> float:
        name = column.name
        if not self.sums[f"changed {name}"] and not self.removed:
            return 0.0
        partly = self.sums[f"partly {name}"]
        if column.labelled:
            pairs = self.tables[name]
            both = pairs.filter(pl.col("there").is_not_null()).drop_nulls(["x", "y"])
            both = both.group_by("x", "y", "same").agg(pl.col("count").sum())
            if both.is_empty():
                partly = 0.0
            elif column.kind == "bands":
                known = self.known[name]
                assert isinstance(known, Known)
                partly = banded_loss(known, both.filter(~pl.col("same")))
            else:
                own = pairs.drop_nulls("x").group_by("x").agg(own=pl.col("count").sum())
                partly = recoded_loss(own, both.group_by("x", "y").agg(pl.col("count").sum()))
        return float((self.sums[f"lost {name}"] + partly) / self.records)

    def moments(self, side: str, divisor: str) -> Moments:
        """Means, variances and covariances, from the sums about the centers."""
        place = 0 if side == "before" else 1
        centers = np.array([self.columns[name].centers[place] for name in self.numeric])
        pairs, mass, sums, cross = (
            self.sums[f"{side} {what}"] for what in ("pairs", "mass", "sums", "cross")
        )
        total = np.diagonal(mass)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.where(total > 0, centers + np.diagonal(sums) / total, np.nan)
            covariance = (cross - sums * sums.T / mass) / mass
            covariance = covariance * (pairs / (pairs - 1) if divisor == "n-1" else 1.0)
            covariance = np.where(pairs > 1, covariance, np.nan)
            effective = total**2 / self.sums[f"{side} squared weights"]
            errors = np.sqrt(np.diagonal(covariance) / effective)
        return Moments(self.numeric, np.diagonal(pairs), means, errors, covariance)

    def paired(self, before: Moments) -> dict[str, dict[str, float | None]]:
        """MSE, R², IL1 and IL1s of each numeric column."""
        spread = np.sqrt(before.variances)
        found: dict[str, dict[str, float | None]] = {}
        for place, name in enumerate(self.numeric):
            n, away, squares, relative, zero, x, xx = (
                self.sums[f"{what} of {name}"]
                for what in ("n", "away", "squares", "relative", "zero", "x", "xx")
            )
            if not n:
                found[name] = dict.fromkeys(_PAIRED)
                continue
            total = xx - x**2 / n
            scaled = float(away / (np.sqrt(2) * spread[place])) if spread[place] > 0 else None
            found[name] = {
                "mse": squares / n,
                "r2": 1 - squares / total if total > 0 else None,
                "il1": relative,
                "il1_left_out": zero,
                "il1s": scaled,
                "il1s_per_cell": None if scaled is None else scaled / n,
            }
        return found

    def measure(self, settings: Mapping[str, Any]) -> Measure:
        """Put the answer together; what only records together tell is that of the sample, and is named."""
        asked = self.sample.parameters
        losses = self.losses
        value = float(np.mean(list(losses.values())))
        before, after = (self.moments(side, asked["divisor"]) for side in ("before", "after"))
        moved, _ = changes(before, after, asked["level"])
        paired = self.paired(before)
        by_class, _ = class_losses(self.original, self.released, asked["keys"], asked["target"], self.removed)
        by_cell = {} if settings.get("hierarchies") else self._cell_losses()
        remaining = max(1, self.records - self.removed)
        cells = sum(int(self.sums[f"changed {name}"]) for name in self.columns)
        changed = int(self.sums["records changed"])
        figures = {
            **self.sample.figures,
            "loss": value,
            "beyond_chance": value,
            "largest_column_loss": max(losses.values()),
            "records": self.records,
            "records_removed": self.removed,
            "records_changed": changed,
            "share_records_changed": changed / remaining,
            "cells_changed": cells,
            "share_cells_changed": cells / max(1, remaining * len(self.columns)),
            "cells_suppressed": sum(int(self.sums[f"suppressed {name}"]) for name in self.columns),
            **summed_errors(paired),
            **moved,
            **by_class,
            **by_cell,
        }
        return replace(
            self.sample,
            value=value,
            figures=figures,
            meaning=self._meaning(value, changed, changed / remaining),
            caveats=[self._said(), *self.sample.caveats],
            parameters={
                **asked,
                "counted": {"records": self.records, "off": self._off, "sampled": self.from_sample},
            },
            detail=engine.tables_like(
                self.original,
                variables=lambda: self._variables(before, after, paired),
                correlations=lambda: pairs_table(before, after),
                **{
                    name: partial(self.sample.detail.__getitem__, name)
                    for name in ("distances", "tables", "histograms", "quantiles")
                },
            ),
        )

    def _cell_losses(self) -> dict[str, float | None]:
        """Say how much the labels of the keys cover; nothing where a key that changed has no table."""
        keys = [key for key in self.sample.parameters["keys"] if key in self.columns]
        altered = [key for key in keys if self.sums[f"changed {key}"] or self.removed]
        if not keys or not all(key in self.tables for key in altered):
            return {}
        bits, covered = 0.0, []
        for key in keys:
            if key not in altered:
                different = engine.distinct_counts(self.original, [key])[key]
                missing = engine.overview(self.original, [key]).missing[key]
                covered.append((missing + (self.records - missing) / max(1, different)) / self.records)
                continue
            entropy, share = _coded_losses(self.tables[key], self.records)
            bits += entropy
            covered.append(share)
        return {"normalized_entropy": bits / len(keys), "granularity": float(np.mean(covered))}

    @cached_property
    def _off(self) -> float:
        return max(
            (known.off for known in self.known.values() if isinstance(known, InIntervals)), default=0.0
        )

    def _meaning(self, value: float, changed: int, share: float) -> str:
        from discreet.utility.loss_of_information import told_of_loss

        empty = [name for name in self.losses if name not in self.columns or not self.sums[f"shown {name}"]]
        return told_of_loss(
            self.losses,
            value,
            empty,
            f"; {changed:,} of {self.records:,} records ({percent(share)}) were changed"
            + (f", and {self.removed:,} were removed." if self.removed else "."),
        )

    def _said(self) -> str:
        said = [f"Counted over all {self.records:,} records, where they are."]
        if self._off:
            said.append(
                "Numbers with very many different values were placed in intervals: their loss is off by at most "
                f"{percent(self._off)}."
            )
        if self.from_sample:
            listed = ", ".join(map(repr, self.from_sample))
            said.append(f"The loss of {listed}, whose values hardly repeat, is that of a random sample.")
        said.append("Tables of cells, distances between them and quantiles are those of a random sample.")
        return " ".join(said)

    def _variables(
        self, before: Moments, after: Moments, paired: Mapping[str, Mapping[str, float | None]]
    ) -> pl.DataFrame:
        moved = before.beside(after, self.sample.parameters["level"])
        told = pl.DataFrame(self.sample.detail["variables"])
        rows = []
        for name in told["column"]:
            row = told.row(by_predicate=pl.col("column") == name, named=True)
            row["loss"] = self.losses[name]
            if name in self.columns:
                row["changed"] = int(self.sums[f"changed {name}"])
                row["share_changed"] = row["changed"] / max(1, self.records - self.removed)
                row["suppressed"] = int(self.sums[f"suppressed {name}"])
            if name in moved:
                row |= {**paired[name], **moved[name]}
            rows.append(row)
        return pl.DataFrame(rows, schema=told.schema).fill_nan(None)


def _coded_losses(pairs: pl.DataFrame, records: int) -> tuple[float, float]:
    """Normalized entropy and granularity of one key, from how often each value became which label."""
    pairs = pairs.group_by("x", "y", "there").agg(pl.col("count").sum())
    shown = (pl.Series(pairs["y"].is_not_null()) & pairs["there"].is_not_null()).to_numpy()
    value = distinct_values(pairs["x"])[1]
    label = distinct_values(pairs["y"])[1]
    count = pairs["count"].to_numpy().astype(np.float64)
    own = np.bincount(value, weights=count)
    once = np.unique(np.stack([label[shown], value[shown]]), axis=1)
    size = int(label.max(initial=0)) + 1
    members = np.bincount(once[0], weights=own[once[1]], minlength=size)
    covers = np.bincount(once[0], minlength=size) / len(own)
    stands_for = np.where(shown, members[label], records)
    lost = float((count * np.log2(stands_for / own[value])).sum())
    every = float((count * np.log2(records / own[value])).sum())
    share = float((count * np.where(shown, covers[label], 1.0)).sum() / records)
    return (lost / every if every > 0 else 0.0), share
