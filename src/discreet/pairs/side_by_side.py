"""An original and the files held against it: the same columns, one precision, and tables side by side in memory.

Which columns can be compared, and what may be concluded from it, depends on where the files come from. Numbers of two
files are the same when they are at the precision that both have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Floats
from discreet.core.errors import ColumnError, InputError, ParameterError, need_known
from discreet.engine.precision import Grid, Setting
from discreet.microdata import Microdata
from discreet.numerics.distance.boxes import in_boxes
from discreet.numerics.distance.space import Distance, MissingRule, MixedSpace, Points, as_float


class SideBySide(NamedTuple):
    """Files in memory, numbers at one precision: columns, which of them are codes, tables, what was rounded."""

    compared: ComparedColumns
    categorical: tuple[str, ...]
    tables: list[pl.DataFrame]
    agreed: Agreed


def side_by_side(
    original: Microdata,
    released: Microdata,
    holdout: Microdata | None,
    columns: Sequence[str] | None,
    *,
    categorical: Sequence[str] = (),
    precision: Setting = None,
    writing_only: bool = False,
) -> SideBySide:
    """Bring an original, a release and, where there is one, a hold-out to the same columns and precision in memory.

    ``writing_only``: see `discreet.pairs.side_by_side.precise_alike`.
    """
    others = [released, *([holdout] if holdout is not None else [])]
    compared = compared_columns(original, others, columns)
    codes = check_categorical(compared.names, categorical)
    check_precision(precision, original.columns)
    tables, agreed = precise_alike(
        tables_of([original, *others], compared.names),
        precision=precision,
        categorical=codes,
        writing_only=writing_only,
    )
    return SideBySide(compared, codes, tables, agreed)


def tables_of(files: Sequence[Microdata], names: Sequence[str]) -> list[pl.DataFrame]:
    """Bring the columns into memory; refuse a file without records."""
    for data in files:
        engine.overview(data, names)
    return [engine.collect(data, names) for data in files]


def placed(
    tables: Sequence[pl.DataFrame],
    *,
    distance: Distance,
    categorical: Sequence[str],
    missing: MissingRule = "category",
) -> tuple[MixedSpace, list[Points]]:
    """Fit the space on the first table (the original) and place all of them in it."""
    space = MixedSpace.fit(
        tables[0], *tables[1:], distance=distance, categorical=categorical, missing=missing
    )
    if not space.columns:
        raise ColumnError(
            f"No column of the original varies ({', '.join(repr(name) for name in space.constant)}), so no two "
            "records can be told apart. Name other columns with columns=[…]."
        )
    return space, [space.place(table) for table in tables]


def check_categorical(names: Sequence[str], categorical: Sequence[str]) -> tuple[str, ...]:
    """Refuse a categorical column that is not compared."""
    need_known(categorical, names, "It was named under 'categorical'.")
    return tuple(categorical)


def column_caveats(space: MixedSpace, tables: Sequence[pl.DataFrame], names: Sequence[str]) -> list[str]:
    """Say which columns could not count and how missing values did."""
    caveats = []
    if space.constant:
        caveats.append(
            f"Without spread in the original and left out of the distance: {', '.join(space.constant)}."
        )
    gone = sum(table.select(names).null_count().sum_horizontal().item() for table in tables)
    if gone:
        rule = (
            "counted as a value of their own"
            if space.missing == "category"
            else "left out, pair by pair, and the other columns counted for more"
        )
        caveats.append(f"{gone:,} missing values were {rule}.")
    return caveats


def plain_rows(table: pl.DataFrame) -> pl.DataFrame:
    """Write a table so that equal values are equal whatever types two files gave them."""
    return table.select(
        pl.col(name).cast(pl.Float64)
        if dtype.is_numeric()
        else pl.col(name)
        if dtype.is_temporal()
        else pl.col(name).cast(pl.String)
        for name, dtype in table.schema.items()
    )


@dataclass(frozen=True)
class Tolerances:
    """What counts as a hit: equal categories, numbers within a share of the original's range."""

    numeric: tuple[str, ...]
    categories: tuple[str, ...]
    reach: Floats

    @classmethod
    def of(
        cls,
        original: pl.DataFrame,
        tables: Sequence[pl.DataFrame],
        categorical: Sequence[str],
        share: float,
    ) -> Tolerances:
        """Take the ranges of the original."""
        numeric = tuple(numbers_among(original, categorical))
        known = number_matrix(original, numeric)
        spans = [
            np.ptp(column[~np.isnan(column)]) if (~np.isnan(column)).any() else 0.0 for column in known.T
        ]
        others = tuple(name for name in tables[0].columns if name not in numeric)
        return cls(numeric, others, np.array(spans, dtype=np.float64) * share)

    def hits(self, targets: pl.DataFrame, candidates: pl.DataFrame) -> Flags:
        """Say for each target whether some candidate agrees with it; missing agrees with missing."""
        numbers, others = (number_matrix(table, self.numeric) for table in (targets, candidates))
        ours, theirs = plain_rows(targets), plain_rows(candidates)
        found = in_boxes(
            np.nan_to_num(numbers),
            np.nan_to_num(others),
            self.reach,
            equal=[*((ours[name], theirs[name]) for name in self.categories), *gaps_alike(numbers, others)],
            first_only=True,
        )
        return found.counts > 0


def gaps_alike(numbers: Floats, others: Floats) -> list[tuple[pl.Series, pl.Series]]:
    """Pair the gaps of each column of two files: missing agrees with missing and with nothing else."""
    return [
        (pl.Series(np.isnan(a)), pl.Series(np.isnan(b))) for a, b in zip(numbers.T, others.T, strict=True)
    ]


def numbers_among(table: pl.DataFrame, categorical: Sequence[str]) -> list[str]:
    """Name the columns of numbers and dates whose values are no codes."""
    return [
        name
        for name, dtype in table.schema.items()
        if (dtype.is_numeric() or dtype.is_temporal()) and name not in categorical
    ]


def number_matrix(table: pl.DataFrame, names: Sequence[str]) -> Floats:
    """Put columns of numbers and dates side by side; missing values are not a number."""
    columns = [as_float(table[name]) for name in names]
    return np.column_stack(columns) if columns else np.empty((table.height, 0))


# An original and what was released of it: which columns can be compared, and what may be concluded.


DEPENDENT = (
    "Original and release are dependent, so distances between them come without p-values: hold them against those of "
    "another release, not against a table of critical values."
)


@dataclass(frozen=True)
class ComparedColumns:
    """The columns that are compared, those that a release lost, and those that it added."""

    names: tuple[str, ...]
    lost: tuple[str, ...] = ()
    added: tuple[str, ...] = ()

    @property
    def caveats(self) -> list[str]:
        """Say which columns could not be compared."""
        said = (
            ("Not compared, because the release does not have them", self.lost),
            ("Only in the release, and not compared", self.added),
        )
        return [f"{what}: {_listed(columns)}." for what, columns in said if columns]


def copies_of(released: Microdata | Sequence[Microdata], original: Microdata) -> list[Microdata]:
    """Give the released copies as a list, checked."""
    copies = [released] if isinstance(released, Microdata) else list(released)
    if not copies:
        raise ParameterError("released is an empty list: give one release, or a list of copies.")
    first = set(copies[0].columns)
    for place, copy in enumerate(copies[1:], 2):
        if set(copy.columns) != first:
            odd = sorted(first ^ set(copy.columns))
            raise ColumnError(
                f"Copy {place} does not have the columns of the first: they differ in {', '.join(map(repr, odd[:5]))}. "
                "Give copies of one synthesis, or compare them one by one."
            )
    for data in (original, *copies):
        engine.overview(data, ())
    return copies


def listed_files(released: Microdata | Sequence[Microdata]) -> list[Microdata]:
    """Give one release or several as a list, and refuse a list of none."""
    files = [released] if isinstance(released, Microdata) else list(released)
    if not files:
        raise ParameterError("released must be a file or a list of at least one.")
    return files


def compared_columns(
    original: Microdata,
    released: Microdata | Sequence[Microdata],
    columns: str | Sequence[str] | None = None,
    *,
    without: Sequence[str | None] = (),
) -> ComparedColumns:
    """Choose the columns in which an original and its releases are held against each other.

    Columns that are named must be in all files, and may not identify people by themselves. Otherwise all columns of
    the original count but identifiers, weights and the numbers of households and other units (of either file); one
    that a release lost or added is left out, and that is said.

    Examples
    --------
    >>> import polars as pl
    >>> people = Microdata(pl.DataFrame({"id": [1, 2], "age": [30, 41], "zip": ["1", "2"]}), identifiers="id")
    >>> compared_columns(people, Microdata(pl.DataFrame({"id": [7, 8], "age": [30, 40]})))
    ComparedColumns(names=('age',), lost=('zip',), added=())
    """
    files = [released] if isinstance(released, Microdata) else list(released)
    if columns is not None:
        return ComparedColumns(_named(original, files, columns))
    hidden = {*without, *original.roles.technical, *(name for file in files for name in file.roles.technical)}
    wanted = [name for name in original.columns if name not in hidden]
    names = tuple(name for name in wanted if all(name in file.schema for file in files))
    if not names:
        raise InputError(
            "The two files have no column in common that could be compared. Rename those of the release as the "
            "original has them, or name the columns with columns=[…]."
        )
    lost = tuple(name for name in wanted if name not in names)
    new = [name for file in files for name in file.columns if name not in original.schema]
    return ComparedColumns(names, lost, tuple(dict.fromkeys(name for name in new if name not in hidden)))


def _named(original: Microdata, files: Sequence[Microdata], columns: str | Sequence[str]) -> tuple[str, ...]:
    names = (columns,) if isinstance(columns, str) else tuple(dict.fromkeys(columns))
    if not names:
        raise ParameterError(
            "columns is empty: name the columns to compare, or leave it out for all of them."
        )
    for data in (original, *files):
        what = "original" if data is original else "release"
        need_known(names, data.schema, f"It was named in columns; the {what} lacks it.")
    for name in names:
        if name in original.roles.identifiers and name in original.roles.technical:
            raise ColumnError(
                f"Column '{name}' is a direct identifier; comparing it would say nothing about the rest. Leave it out."
            )
    return names


def _listed(columns: Sequence[str]) -> str:
    more = f" and {len(columns) - 10} more" if len(columns) > 10 else ""
    return ", ".join(map(repr, columns[:10])) + more


def weights_of(
    original: Microdata, released: Microdata, weight: str | None
) -> tuple[tuple[str | None, str | None], list[str]]:
    """Give the weight columns of both files, and what to say where only one has them."""
    ours = engine.resolve_weight(original, weight)
    if ours is None:
        return (None, None), []
    theirs = released.roles.weight or (ours if ours in released.schema else None)
    if theirs is None:
        return (ours, None), [
            "The release has no weights: its records count once each, and the original's by their weight. That is "
            "right only where the release stands for the whole population."
        ]
    return (ours, engine.resolve_weight(released, theirs)), []


def names_checked(original: Microdata, names: str | Sequence[str], what: str) -> tuple[str, ...]:
    """Check the columns that a parameter names."""
    listed = (names,) if isinstance(names, str) else tuple(names)
    need_known(listed, original.schema, f"It was named in {what}.")
    return listed


# When do two files hold the same number? Their tables brought to the precision that both have, and what to say of it.
#
# The arithmetic is the engine's (`discreet.engine.precision`); measures that count classes get it there. Measures that
# hold whole tables in memory bring them to one precision here, once, and tell their readers.


@dataclass(frozen=True)
class Agreed:
    """On which grid each rounded column was compared, and how many released values are equal only so."""

    grids: Mapping[str, Grid] = field(default_factory=dict)
    only_so: Mapping[str, int] = field(default_factory=dict)

    @property
    def caveats(self) -> list[str]:
        """One sentence that names the columns in which it mattered; none where it did not."""
        return rounding_caveats({name: (grid, self.only_so[name]) for name, grid in self.grids.items()})

    @property
    def parameters(self) -> dict[str, Any]:
        """The precision by column, for the parameters of a measure."""
        return dict(grid_words(self.grids))


def precise_alike(
    tables: Sequence[pl.DataFrame],
    *,
    precision: Setting = None,
    categorical: Sequence[str] = (),
    writing_only: bool = False,
) -> tuple[list[pl.DataFrame], Agreed]:
    """Bring the numbers of an original, a release and further files of the original's kind to one precision.

    The grid of a column is that of the first two tables; columns named as ``categorical`` are codes and stay.
    ``writing_only`` leaves grids alone that change numbers by more than a millionth, for measures with a tolerance of
    their own.

    Examples
    --------
    >>> ours, theirs = pl.DataFrame({"x": [1.26, 2.58]}), pl.DataFrame({"x": [1.3, 2.6, 9.9, 4.1, 7.7]})
    >>> tables, agreed = precise_alike([ours, theirs])
    >>> tables[0]["x"].to_list(), agreed.parameters
    ([1.3, 2.6], {'x': '1 decimal'})
    """
    ours, theirs = tables[0], tables[1]
    grids = {}
    for name in ours.columns:
        if name in categorical or name not in theirs.columns:
            continue
        grid = engine.agreed_grid(ours[name], theirs[name], name, precision)
        if grid is not None and not (writing_only and not engine.of_writing(grid, ours[name], theirs[name])):
            grids[name] = grid
    if not grids:
        return list(tables), Agreed()
    only_so = {name: engine.equal_only_so(ours[name], theirs[name], grid) for name, grid in grids.items()}
    rounded = [
        table.with_columns(
            engine.on_grid(table[name], grid) for name, grid in grids.items() if name in table.columns
        )
        for table in tables
    ]
    return rounded, Agreed(grids, only_so)


def files_alike(
    original: Microdata, released: Microdata, columns: Sequence[str], precision: Setting = None
) -> tuple[Microdata, Microdata, Agreed]:
    """Bring some columns of an original and a release to one precision, each in its own kind of frame."""
    check_precision(precision, original.columns)
    numbers = [
        name for name in columns if original.schema[name].is_numeric() and released.schema[name].is_numeric()
    ]
    tables, agreed = precise_alike(
        [engine.collect(data, numbers) for data in (original, released)], precision=_of(precision, numbers)
    )
    if not agreed.grids:
        return original, released, agreed
    found = [
        data.with_frame(engine.rebuilt(data, {name: table[name] for name in agreed.grids}))
        for data, table in zip((original, released), tables, strict=True)
    ]
    return found[0], found[1], agreed


def _of(precision: Setting, columns: Sequence[str]) -> Setting:
    if not isinstance(precision, Mapping):
        return precision
    return {name: wanted for name, wanted in precision.items() if name in columns}


def stated_precision(precision: Setting, rounded: Mapping[str, str]) -> Any:
    """Say for the parameters of a measure at which precision numbers were compared."""
    if isinstance(precision, Mapping):
        return {**precision, **rounded}
    return precision if precision is not None and precision != "detected" else dict(rounded)


def grid_words(grids: Mapping[str, Grid]) -> dict[str, str]:
    """Word the precision of each column."""
    return {name: grid.words for name, grid in grids.items()}


def check_precision(precision: Setting, columns: Sequence[str]) -> None:
    """Refuse a precision that is none, or is given for a column that is not compared."""
    if isinstance(precision, Mapping):
        for name in precision:
            need_known([name], columns, "It was named under 'precision'.")
            engine.wanted_precision(precision, name)
    else:
        engine.wanted_precision(precision, "every column")


def rounding_caveats(rounded: Mapping[str, tuple[Grid, int]]) -> list[str]:
    """Say which columns were rounded before they were compared, where that made values equal."""
    told = [
        f"'{name}' ({grid.words}; {count:,} released {'value is' if count == 1 else 'values are'} equal only so)"
        for name, (grid, count) in rounded.items()
        if count
    ]
    if not told:
        return []
    return [
        f"Compared at the precision that both files have: {', '.join(told)}. precision='exact' compares to the last "
        "bit."
    ]
