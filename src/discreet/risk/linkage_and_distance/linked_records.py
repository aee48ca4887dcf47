"""Two files and who is who in them: by their rows, or by a column of both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Integers
from discreet.core.errors import ColumnError, ParameterError
from discreet.engine.frames import has_row_order
from discreet.microdata import Microdata


@dataclass(frozen=True)
class LinkedFiles:
    """Two files and, for each released record, the original it belongs to (-1: none)."""

    released: Microdata
    ours: pl.DataFrame
    theirs: pl.DataFrame
    truth: Integers
    notes: tuple[str, ...] = ()

    @property
    def caveats(self) -> list[str]:
        """What was left out of the comparison: columns, and records without a counterpart."""
        return [*self.notes, *unlinked(self.truth)]

    @property
    def linkable(self) -> int:
        """Released records that have an original."""
        return int((self.truth >= 0).sum())


def true_originals(
    original: Microdata, released: Microdata, ids: str | None, ours: int, theirs: int
) -> Integers:
    """Say for each released record which original it belongs to; -1 where there is none."""
    if ids is None:
        if ours != theirs:
            raise ParameterError(
                f"The original has {ours:,} records and the release {theirs:,}, so rows cannot correspond. Name the "
                "column that says who is who with ids='id', or use risk.neighbors for files that are not linked."
            )
        for data in (original, released):
            if not has_row_order(data):
                raise ParameterError(
                    f"Records in {engine.engine_name(data)} have no order, so rows cannot correspond. Name the column "
                    "that says who is who with ids='id'."
                )
        return np.arange(ours, dtype=np.int64)
    for data in (original, released):
        if ids not in data.schema:
            raise ColumnError(f"The column '{ids}' that links the files must be in both of them.")
    left = engine.collect(original, [ids])[ids].cast(pl.String)
    right = engine.collect(released, [ids])[ids].cast(pl.String)
    for column, which in ((left, "original"), (right, "released")):
        if column.null_count() or column.n_unique() < len(column):
            raise ColumnError(
                f"The column '{ids}' that links the files is missing or not unique for some records of the {which} "
                "file. It must name each record once."
            )
    known = pl.DataFrame({"id": left, "at": np.arange(ours)})
    lined = pl.DataFrame({"id": right}).join(known, on="id", how="left", maintain_order="left")
    truth = lined["at"].fill_null(-1).to_numpy().astype(np.int64)
    if not (truth >= 0).any():
        raise ColumnError(f"No record of the release has a counterpart in the original by '{ids}'.")
    return truth


def unlinked(truth: Integers) -> list[str]:
    """Say how many released records belong to nobody."""
    alone = int((truth < 0).sum())
    return [f"{alone:,} released records have no original and cannot be linked rightly."] if alone else []
