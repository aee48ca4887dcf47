"""Which released record belongs to which original one? Two files, brought into one order where that can be done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags
from discreet.core.errors import ColumnError, InputError, ParameterError, need_known
from discreet.microdata import Microdata
from discreet.pairs.side_by_side import compared_columns

_BY_CHANCE = 1.5  # rows that agree this many times as often as shuffled rows would are no accident


@dataclass(frozen=True)
class LinkedFiles:
    """An original and its release, ready to be compared.

    Attributes
    ----------
    columns
        The columns to compare; ``dropped`` are those of them that the release no longer has.
    original
        Every record of the original.
    released
        Every record of the release. When the files are aligned there is one row an original record, in the same
        order; the rows of removed records are empty.
    gone
        True for the original records that the release no longer has; None when the files are not aligned.
    records, released_records
        How many records the two files have.
    added
        Released records that belong to no original one.
    notes
        What the reader must know about how the files were brought together.
    """

    columns: tuple[str, ...]
    dropped: tuple[str, ...]
    original: pl.DataFrame
    released: pl.DataFrame
    gone: Flags | None
    released_records: int
    added: int = 0
    notes: tuple[str, ...] = field(default=())

    @property
    def records(self) -> int:
        """How many records the original has."""
        return self.original.height

    @property
    def aligned(self) -> bool:
        """Whether row i of one file is row i of the other."""
        return self.gone is not None

    @property
    def removed(self) -> int:
        """How many records the release has lost; a lower bound when the files are not aligned."""
        if self.gone is not None:
            return int(self.gone.sum())
        return max(0, self.records - self.released_records)

    @cached_property
    def same(self) -> dict[str, Flags]:
        """For each compared column which cells are equal, where the files are aligned; a removed one never is."""
        if self.gone is None:
            return {}
        stay = ~self.gone
        return {name: same_cells(self.original[name], self.released[name]) & stay for name in self.kept}

    @property
    def kept(self) -> tuple[str, ...]:
        """The compared columns that both files have."""
        return tuple(name for name in self.columns if name not in self.dropped)


def link(
    original: Microdata,
    released: Microdata,
    columns: str | Sequence[str] | None,
    *,
    extra: Sequence[str] = (),
    ids: str | None,
    aligned: bool | None,
) -> LinkedFiles:
    """Collect both files and bring them into one order where that can be done.

    ``extra`` columns (a survey weight) are carried along where a file has them, and are not compared.
    """
    names, dropped = _compared(original, released, columns, without=[*extra, *([ids] if ids else [])])
    engine.overview(original, ())
    rows = engine.overview(released, ()).rows
    more = [*extra, *([ids] if ids else [])]
    ours = engine.collect(original, [*names, *more])
    wanted = [name for name in (*names, *more) if name in released.schema]
    # A release without any of the columns still has records; one column of its own keeps their number.
    theirs = engine.collect(released, wanted) if wanted else pl.DataFrame({"": [None] * rows})
    if ids is not None:
        return _by_ids(names, dropped, ours, theirs, ids=ids, aligned=aligned)
    notes: list[str] = []
    ordered = engine.has_row_order(original) and engine.has_row_order(released)
    if aligned and not ordered:
        raise ParameterError(
            "aligned=True needs files whose records stand in an order; those of a database have none. Name a column "
            "that links the records instead: ids='column'."
        )
    if aligned and ours.height != theirs.height:
        raise ParameterError(
            f"aligned=True, but the original has {ours.height:,} records and the release {theirs.height:,}. Name a "
            "column that links the records (ids='column'), or set aligned=False."
        )
    if aligned is None:
        aligned, notes = _seems_aligned(ours, theirs, names, ordered)
    gone = np.zeros(ours.height, dtype=np.bool_) if aligned else None
    return LinkedFiles(names, dropped, ours, theirs, gone, theirs.height, notes=tuple(notes))


def same_cells(ours: pl.Series, theirs: pl.Series) -> Flags:
    """Say for each record whether the two values are the same; missing equals missing.

    Numbers that differ only because another program wrote them (fifteen digits, single precision) are the same.
    """
    if ours.dtype.is_numeric() and theirs.dtype.is_numeric():
        ours, theirs = engine.stored_alike(ours, theirs)
    return equal_cells(ours, theirs)


def equal_cells(ours: pl.Series, theirs: pl.Series) -> Flags:
    """Say for each record whether the two values are equal as they stand; missing equals missing."""
    if ours.dtype.is_numeric() and theirs.dtype.is_numeric():
        pair = pl.DataFrame({"a": ours.cast(pl.Float64), "b": theirs.cast(pl.Float64)})
    elif ours.dtype == theirs.dtype and not isinstance(ours.dtype, pl.Enum | pl.Categorical):
        pair = pl.DataFrame({"a": ours, "b": theirs})
    else:
        texts = [engine.as_text(engine.plain_text(values)) for values in (ours, theirs)]
        pair = pl.DataFrame({"a": texts[0], "b": texts[1]})
    same: Flags = pair.select(pl.col("a").eq_missing(pl.col("b"))).to_series().to_numpy()
    return same


def _compared(
    original: Microdata, released: Microdata, columns: str | Sequence[str] | None, *, without: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Choose the columns, those that the release lost among them: here they are a loss, not left out."""
    need_known(without, original.schema, "It was named for information_loss.")
    if columns is None:
        wanted = tuple(
            name for name in original.columns if name not in original.roles.technical and name not in without
        )
    else:
        wanted = compared_columns(original, original, columns).names
    if not wanted:
        raise ParameterError("There is no column to compare. Name some with columns=[…].")
    return wanted, tuple(name for name in wanted if name not in released.schema)


def _by_ids(
    names: tuple[str, ...],
    dropped: tuple[str, ...],
    ours: pl.DataFrame,
    theirs: pl.DataFrame,
    *,
    ids: str,
    aligned: bool | None,
) -> LinkedFiles:
    if ids not in theirs.columns:
        raise ColumnError(f"The release has no column '{ids}', which was named to link the records.")
    for what, table in (("original", ours), ("release", theirs)):
        if table[ids].null_count() or table[ids].n_unique() < table.height:
            raise InputError(
                f"The column '{ids}' does not tell the records of the {what} apart: it is missing or repeated for "
                "some. Name a column with one value a record."
            )
    if aligned is False:
        raise ParameterError("ids links the records, and aligned=False says they cannot be linked. Give one.")
    left, right = engine.as_text(engine.plain_text(ours[ids])), engine.as_text(engine.plain_text(theirs[ids]))
    place = pl.DataFrame({"id": right}).with_row_index("row")
    found = pl.DataFrame({"id": left}).join(place, on="id", how="left", maintain_order="left")["row"]
    if found.null_count() == len(found):
        raise InputError(f"No value of '{ids}' is in both files, so no record can be linked.")
    if aligned and (ours.height != theirs.height or not left.equals(right)):
        raise ParameterError(
            f"aligned=True, but '{ids}' says that the records of the two files differ or stand in another order. "
            "Leave aligned out: the records are linked by that column."
        )
    linked = theirs.drop(ids)[found] if theirs.width > 1 else pl.DataFrame({"": [None] * ours.height})
    return LinkedFiles(
        names,
        dropped,
        ours.drop(ids),
        linked,
        found.is_null().to_numpy(),
        theirs.height,
        added=theirs.height - int(found.is_not_null().sum()),
    )


def _seems_aligned(
    ours: pl.DataFrame, theirs: pl.DataFrame, names: Sequence[str], ordered: bool
) -> tuple[bool, list[str]]:
    """Guess whether the rows belong together, and say what was assumed."""
    if not ordered:
        return False, [
            "The records of a database stand in no order, so the files were compared as two samples. Name a column "
            "that links the records (ids='column') to compare them one by one."
        ]
    if ours.height != theirs.height:
        return False, [
            "The files have different numbers of records and no column links them, so they were compared as two "
            "samples. Name a column that links the records (ids='column') to compare them one by one."
        ]
    if _looks_shuffled(ours, theirs, names):
        return False, [
            "The release seems to hold the records in another order: the files were compared as two samples. Say "
            "aligned=True if that is not so, or name a column that links the records (ids='column')."
        ]
    return True, [
        "The records of both files were taken to stand in the same order (aligned=False denies it)."
    ]


def _looks_shuffled(ours: pl.DataFrame, theirs: pl.DataFrame, names: Sequence[str]) -> bool:
    """Tell reordered files by columns that kept every value and yet agree row by row no more than by chance."""
    permuted = False
    for name in names:
        if name not in theirs.columns:
            continue
        same = float(same_cells(ours[name], theirs[name]).mean())
        counts = ours[name].unique_counts().to_numpy() / ours.height
        if len(counts) < 2:
            continue
        chance = float((counts**2).sum())
        if same > min(_BY_CHANCE * chance + 2 / np.sqrt(ours.height), (1 + chance) / 2):
            return False
        if ours[name].dtype == theirs[name].dtype and ours[name].sort().equals(theirs[name].sort()):
            permuted = True
    return permuted
