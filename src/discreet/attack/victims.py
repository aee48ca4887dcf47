"""Against whom is a release attacked? The original, the release and a holdout, brought to the same columns.

The holdout must be people like those of the original who were not used to make the release. A holdout that holds the
same people says of every attack that the release adds nothing, so it is looked for and refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from discreet.attack.success import Tally
from discreet.core.arrays import Floats, Integers
from discreet.core.errors import InputError, ParameterError
from discreet.core.findings import Caveat
from discreet.engine.comparable import plain_text
from discreet.engine.precision import Setting
from discreet.microdata import Microdata
from discreet.numerics.distance.space import as_float
from discreet.pairs.coarser_labels import coarsening
from discreet.pairs.side_by_side import (
    check_categorical,
    check_precision,
    compared_columns,
    plain_rows,
    precise_alike,
    tables_of,
)
from discreet.risk.equivalence_classes import records_only

OVERLAP = "control overlaps"
MISSING = -np.inf
"""How a missing value is written among numbers; it is equal to itself and lies in no interval."""


@dataclass(frozen=True)
class Victims:
    """The three files in memory, with the same columns, and what must be said of them."""

    names: tuple[str, ...]
    original: pl.DataFrame
    released: pl.DataFrame
    holdout: pl.DataFrame | None
    categorical: tuple[str, ...] = ()
    caveats: list[str] = field(default_factory=list)

    @property
    def tables(self) -> list[pl.DataFrame]:
        """The files that there are: original, release and, where there is one, holdout."""
        return [self.original, self.released, *([] if self.holdout is None else [self.holdout])]

    def is_number(self, name: str) -> bool:
        """Whether a column is compared by size; dates are."""
        dtype = self.original.schema[name]
        return name not in self.categorical and (dtype.is_numeric() or dtype.is_temporal())


def victims_of(
    original: Microdata,
    released: Microdata,
    holdout: Microdata | None,
    *,
    columns: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    precision: Setting = None,
    what: str = "holdout",
) -> Victims:
    """Bring the files together, and refuse a holdout that is part of the original."""
    others = [released, *([] if holdout is None else [holdout])]
    compared = compared_columns(original, others, columns)
    codes = check_categorical(compared.names, categorical) if columns is not None else tuple(categorical)
    check_precision(precision, original.columns)
    tables, coarser = _as_coarse(tables_of([original, *others], compared.names))
    _check_types(tables, compared.names, what)
    tables, agreed = precise_alike(tables, precision=precision, categorical=codes)
    said = [*records_only(original), *compared.caveats, *coarser, *agreed.caveats]
    if holdout is not None:
        said += _overlap(tables[0], tables[2], what)
    return Victims(
        compared.names, tables[0], tables[1], tables[2] if holdout is not None else None, codes, said
    )


def _as_coarse(tables: Sequence[pl.DataFrame]) -> tuple[list[pl.DataFrame], list[str]]:
    """Bring people to the bands, cuts and months of the release, where its labels show them."""
    ours, released, *others = tables
    ways = {name: way for name in ours.columns if (way := coarsening(ours[name], released[name]))}
    people = [
        table.with_columns(way(table[name]).alias(name) for name, way in ways.items())
        for table in (ours, *others)
    ]
    shown = released.with_columns(plain_text(released[name]).alias(name) for name in ways)
    return [people[0], shown, *people[1:]], [f"'{name}' {way.sentence}." for name, way in ways.items()]


def _check_types(tables: Sequence[pl.DataFrame], names: Sequence[str], what: str) -> None:
    """Refuse columns that are numbers in one file and labels in another: nothing would be equal."""
    for name in names:
        kinds = {
            "number" if dtype.is_numeric() else "time" if dtype.is_temporal() else "label"
            for dtype in (table.schema[name] for table in tables)
            if dtype != pl.Null
        }
        if len(kinds) > 1:
            raise InputError(
                f"Column '{name}' is of different kinds ({' and '.join(sorted(kinds))}) in original, release and "
                f"{what}. Convert it to one type in all of them, or leave it out with columns=[…]."
            )


def _overlap(original: pl.DataFrame, holdout: pl.DataFrame, what: str) -> list[str]:
    """Refuse a holdout whose records are the original's; name one that shares more than chance would have it.

    Chance is what the original itself says: how many of its records have a twin among the others.
    """
    ours, theirs = plain_rows(original), plain_rows(holdout)
    names = ours.columns
    shared = theirs.join(ours.unique(), on=names, how="semi", nulls_equal=True).height
    twins = (
        ours.height - ours.group_by(names).agg(pl.len().alias("·many")).filter(pl.col("·many") == 1).height
    )
    seen, usual = Tally(shared, theirs.height), Tally(twins, ours.height)
    if seen.interval[0] <= usual.interval[1]:
        return []
    if seen.rate - usual.rate > (1 - usual.rate) / 2:
        raise ParameterError(
            f"{what} is part of the original: {shared:,} of its {theirs.height:,} records are there in every column. "
            f"Give people who were not used to make the release, or leave {what} out."
        )
    return [
        Caveat(
            f"{shared:,} records of the {what} are in the original too, more than chance explains: if they are the "
            "same people, the risk is higher than it looks.",
            code=OVERLAP,
        )
    ]


def as_numbers(victims: Victims) -> list[Floats]:
    """Write each file as numbers, one line a column: numbers as they are, labels by their place among all labels."""
    tables = victims.tables
    written = [np.empty((len(victims.names), table.height)) for table in tables]
    for line, name in enumerate(victims.names):
        columns = [table[name] for table in tables]
        if victims.is_number(name):
            values = [as_float(column) for column in columns]
        else:
            values, _ = label_codes(columns)
        for held, column in zip(written, values, strict=True):
            held[line] = np.where(np.isnan(column), MISSING, column)
    return written


def label_codes(columns: Sequence[pl.Series]) -> tuple[list[Floats], int]:
    """Write labels as codes that several columns share, missing ones as NaN; and how many labels there are."""
    texts = [column.cast(pl.String) for column in columns]
    levels = pl.concat(texts).drop_nulls().unique().sort()
    codes = [text.cast(pl.Enum(levels)).to_physical().cast(pl.Float64) for text in texts]
    return [code.fill_null(float("nan")).to_numpy() for code in codes], len(levels)


def drawn(rows: int, wanted: int, rng: np.random.Generator) -> Integers:
    """Draw records to attack, each at most once, in the order of the file."""
    if wanted >= rows:
        return np.arange(rows, dtype=np.int64)
    return np.sort(rng.choice(rows, wanted, replace=False)).astype(np.int64)
