"""Two files that differ in columns, order or types, brought together; and what had to be done for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import narwhals as nw
import numpy as np
import polars as pl

from discreet import engine
from discreet.core.errors import ColumnError, InputError, ParameterError, unknown_name
from discreet.engine import MOST_CELLS
from discreet.engine.comparable import as_text, plain_text
from discreet.engine.frames import has_row_order
from discreet.microdata import Microdata
from discreet.pairs.coarser_labels import (
    Groups,
    coarser_alike,
    recoded_alike,
    recoded_like,
    regrouped_alike,
    with_new_labels,
)
from discreet.utility.linked_files import same_cells
from discreet.workflow.comparison_results import Alignment
from discreet.workflow.inspection import inspect

_SURE = 6.0  # standard errors by which rows must agree more often than shuffled ones would


@dataclass(frozen=True)
class AlignedFiles:
    """An original and the copies of one release, with the columns that can be compared in one type each.

    ``wanted`` are the columns of the original that should have been released, ``columns`` those that were, and
    ``mixed`` those of them that hold numbers in one file and labels in the other. ``recoded`` is the original with the
    coarser labels of the release where each value became one label, so that labels meet their like. ``told`` also has
    the labels of the record itself where one value became several labels (groups of records with ranges of their own):
    what an intruder finds who knows into which group a person was put. ``unread`` are columns with labels of which
    nobody can tell from the files which values they stand for. ``coarse_holdout`` is the holdout as coarse as
    ``recoded``.
    """

    original: Microdata
    copies: tuple[Microdata, ...]
    holdout: Microdata | None
    wanted: tuple[str, ...]
    alignment: Alignment
    mixed: tuple[str, ...] = ()
    recoded: Microdata | None = None
    told: Microdata | None = None
    unread: tuple[str, ...] = ()
    coarse_holdout: Microdata | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The compared columns."""
        return self.alignment.columns


def align(
    original: Microdata,
    copies: Sequence[Microdata],
    holdout: Microdata | None,
    *,
    columns: Sequence[str] | None,
    ids: str | None,
    aligned: bool | None,
    labels: pl.DataFrame | None = None,
) -> AlignedFiles:
    """Find the columns that both files have, give them one type, and see whether the records are linked.

    ``labels`` has the released values of each original record, where whoever made the release still knows them: they
    say which values a label stands for, and nothing else is taken from them.
    """
    _same_shape(copies)
    released = copies[0]
    wanted = _wanted(original, released, columns, ids)
    held, left_out = _comparable_columns(original, copies, wanted)
    converted: dict[str, str] = {}
    mixed: set[str] = set()
    copies = tuple(_converted(original, copy, held, converted, mixed) for copy in copies)
    notes = _constants(original, copies[0], held)
    if holdout is not None:
        lacking = [name for name in held if name not in holdout.schema]
        if lacking:
            raise ColumnError(
                f"The hold-out lacks {', '.join(map(repr, lacking[:5]))}, which the other two files have. It must "
                "hold the same columns, about people who were not used."
            )
        holdout = _converted(original, holdout, held, {}, mixed)
    linked, said = _linked(original, copies, held, ids=ids, aligned=aligned)
    ours = engine.collect(original, held)
    if linked and ids is None:
        labels = engine.collect(copies[0], held)
    recoded = (
        recoded_alike(ours, labels, held, converted) if labels is not None and linked and ids is None else {}
    )
    shown = engine.collect(copies[0], held)
    recoded |= coarser_alike(ours, shown, [name for name in held if name not in recoded], converted)
    rest = [name for name in held if name not in recoded]
    fresh = with_new_labels(ours, copies, rest)
    new = [name for name in rest if name in fresh or name in mixed]
    recoded |= {} if labels is None else recoded_alike(ours, labels, new, converted)
    coarse = [name for name in new if name not in recoded and name in original.roles.keys]
    regrouped = {} if labels is None else regrouped_alike(ours, labels, coarse, converted)
    groups = Groups.of(ours, shown, [key for key in original.roles.keys if key in held], coarse)
    groups = None if regrouped else groups
    if groups is not None:
        recoded |= groups.labels_of(ours)
        converted |= dict.fromkeys(coarse, _GROUPED)
    unread = tuple(name for name in new if name not in recoded and name not in regrouped)
    said += [_UNREAD.format(_quoted(unread))] if unread else []
    technical = {*original.roles.technical, ids}
    no_loss = () if columns is not None else columns_that_count(original, released)[1]
    shared = [name for name in original.columns if name in released.schema]
    seen, told = (
        _as_seen(original, labels) if labels else None
        for labels in (recoded, {**recoded, **regrouped} if regrouped else {})
    )
    return AlignedFiles(
        original,
        copies,
        holdout,
        wanted,
        Alignment(
            columns=held,
            only_original=tuple(name for name in wanted if name not in released.schema),
            only_released=tuple(
                name for name in released.columns if name not in original.schema and name not in technical
            ),
            left_out=left_out,
            converted=converted,
            reordered=shared != [name for name in released.columns if name in original.schema],
            linked=linked,
            notes=(*notes, *said, *map(_no_loss, no_loss)),
        ),
        tuple(name for name in held if name in mixed and name not in recoded),
        seen,
        told,
        unread,
        _recoded_too(original, holdout, recoded, groups),
    )


def _as_seen(original: Microdata, labels: dict[str, pl.Series]) -> Microdata:
    """Give the original the labels of the release, and let it remember what it was."""
    seen = original.with_frame(engine.rebuilt(original, labels), same_records=True)
    seen.memory["as_it_was"] = original
    return seen


def _recoded_too(
    original: Microdata, holdout: Microdata | None, recoded: Mapping[str, pl.Series], groups: Groups | None
) -> Microdata | None:
    """Make the holdout as coarse as the original was made."""
    if holdout is None or not recoded:
        return holdout
    ours, theirs = (engine.collect(file, list(recoded)) for file in (original, holdout))
    told = {} if groups is None else groups.labels_of(engine.collect(holdout, groups.shown.columns))
    made = told | {
        name: recoded_like(ours[name], after, theirs[name])
        for name, after in recoded.items()
        if name not in told
    }
    return holdout.with_frame(engine.rebuilt(holdout, made), same_records=True)


def columns_that_count(original: Microdata, released: Microdata) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Name the columns whose loss is a loss, and those that only name people and are rightly gone from the release.

    Columns without a role that the release has left out are looked at as `inspect` does.
    """
    names = [name for name in original.columns if name not in original.roles.technical]
    unnamed = set(original.roles.columns())
    gone = [name for name in names if name not in released.schema and name not in unnamed]
    identifying: tuple[str, ...] = ()
    if gone:
        found = inspect(Microdata(engine.collect(original, gone))).columns
        sure = found.filter(pl.col("role").eq("identifiers") & pl.col("confidence").ne("please check"))
        identifying = tuple(sure["column"])
    return tuple(name for name in names if name not in identifying), identifying


def _no_loss(name: str) -> str:
    return (
        f"'{name}' names people by itself, as far as can be seen: that the release lacks it is no loss (give it the "
        "role of an identifier)."
    )


def in_memory(data: Microdata, rows: int | None = None) -> Microdata:
    """Collect what a query holds, once, because many measures are going to look at it; a large one stays a query."""
    if isinstance(data.wrapped, nw.DataFrame):
        return data
    most = MOST_CELLS // max(len(data.columns), 1) if rows is None else rows
    if engine.overview(data, ()).rows > most:
        return data
    held = data.with_frame(engine.collect(data, data.columns), same_records=True)
    # A database hands its records over in any order, so that the order must not be taken for a link.
    held.memory["unordered"] = not has_row_order(data)
    return held


def _wanted(
    original: Microdata, released: Microdata, columns: Sequence[str] | None, ids: str | None
) -> tuple[str, ...]:
    if columns is not None:
        names = (columns,) if isinstance(columns, str) else tuple(dict.fromkeys(columns))
        if not names:
            raise ParameterError("columns is empty: name what to compare, or leave it out for all columns.")
        for name in names:
            if name not in original.schema:
                raise ColumnError(f"{unknown_name(name, original.columns)} It was named in columns.")
        return names
    names = columns_that_count(original, released)[0]
    names = tuple(name for name in names if name != ids)
    if not any(name in released.schema for name in names):
        raise InputError(
            "The two files have no column in common that could be compared. Rename those of the release as the "
            "original has them."
        )
    return names


def _same_shape(copies: Sequence[Microdata]) -> None:
    """Refuse copies that cannot be of one synthesis."""
    first = copies[0]
    rows = [engine.overview(copy, ()).rows for copy in copies]
    for place, copy in enumerate(copies[1:], 2):
        if set(copy.columns) != set(first.columns):
            odd = sorted(set(copy.columns) ^ set(first.columns))
            raise ColumnError(
                f"Copy {place} does not have the columns of the first: they differ in {', '.join(map(repr, odd[:5]))}. "
                "A list holds copies of one synthesis; give different releases as {'name': release}."
            )
        if rows[place - 1] != rows[0]:
            raise InputError(
                f"Copy {place} has {rows[place - 1]:,} records and the first {rows[0]:,}. A list holds copies of one "
                "synthesis; give different releases as {'name': release}."
            )


def _comparable_columns(
    original: Microdata, copies: Sequence[Microdata], wanted: Sequence[str]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Keep what both files have; a column without any value in either says nothing."""
    released = copies[0]
    both = [name for name in wanted if name in released.schema]
    if not both:
        raise InputError(
            "The two files have no column in common that could be compared. Rename those of the release as the "
            "original has them."
        )
    ours, theirs = (engine.overview(data, both) for data in (original, released))
    for counted, what in ((ours, "original"), (theirs, "release")):
        if counted.rows < 2:
            raise InputError(
                f"The {what} has {counted.rows} record; a comparison needs two or more in each file."
            )
    left_out = {
        name: "it has no value in either file"
        for name in both
        if ours.missing[name] == ours.rows and theirs.missing[name] == theirs.rows
    }
    held = tuple(name for name in both if name not in left_out)
    if not held:
        raise InputError("None of the shared columns has a value in either file, so nothing can be compared.")
    return held, left_out


def _constants(original: Microdata, released: Microdata, columns: Sequence[str]) -> list[str]:
    """Say which columns do not vary, because most measures pass over them."""
    ours, theirs = (engine.collect(data, columns) for data in (original, released))
    same = [
        name for name in columns if ours[name].drop_nulls().n_unique() == 1 == ours[name].n_unique()
        and theirs[name].n_unique() == 1
    ]  # fmt: skip
    gone = [name for name in columns if theirs[name].null_count() == theirs.height]
    told = []
    if same:
        told.append(f"Constant in both files, so that measures of distance pass over them: {_quoted(same)}.")
    if gone:
        told.append(f"Without any value in the release: {_quoted(gone)}.")
    return told


def _converted(
    original: Microdata, released: Microdata, columns: Sequence[str], said: dict[str, str], mixed: set[str]
) -> Microdata:
    """Bring released columns to the type of the original, where that loses nothing; say which are left mixed."""
    new: dict[str, pl.Series] = {}
    for name in columns:
        if original.schema[name] == released.schema[name] or _both_numbers(original, released, name):
            continue
        ours, theirs = (engine.collect(data, [name])[name] for data in (original, released))
        if ours.dtype == theirs.dtype:
            continue
        brought = _brought(theirs, ours)
        how = f"is {_kind(ours)} in the original and {_kind(theirs)} in the release"
        if brought is None:
            mixed.add(name)
            if plain_text(theirs).dtype != theirs.dtype:
                # Labels as text are compared as labels; a category against a number is not, everywhere.
                new[name] = plain_text(theirs)
            said.setdefault(name, f"{how}; the two were compared as labels where a measure can do that")
        else:
            new[name] = brought
            if _kind(ours) != _kind(theirs):
                said.setdefault(name, f"{how}; the release was read as {_kind(ours)}")
    return released.with_frame(engine.rebuilt(released, new), same_records=True) if new else released


def _brought(theirs: pl.Series, like: pl.Series) -> pl.Series | None:
    """Read one column as the type of another; None where a value would be lost on the way."""
    if theirs.null_count() == len(theirs):
        return pl.Series(theirs.name, [None] * len(theirs), dtype=plain_text(like).dtype)
    ours = plain_text(like)
    text = as_text(plain_text(theirs))
    try:
        if ours.dtype == pl.String:
            found = text
        elif ours.dtype == pl.Boolean:
            found = text.str.to_lowercase().replace_strict(_TRUTH, default=None, return_dtype=pl.Boolean)
        elif ours.dtype.is_numeric():
            found = text.cast(pl.Float64, strict=False)
        elif ours.dtype == pl.Date:
            found = text.str.to_date(strict=False)
        elif isinstance(ours.dtype, pl.Datetime):
            found = text.str.to_datetime(strict=False, time_unit="us").cast(ours.dtype)
        else:
            return None
    except pl.exceptions.PolarsError:
        return None
    return found.rename(theirs.name) if found.null_count() == theirs.null_count() else None


def _linked(
    original: Microdata,
    copies: Sequence[Microdata],
    columns: Sequence[str],
    *,
    ids: str | None,
    aligned: bool | None,
) -> tuple[bool, list[str]]:
    """Find out whether record i of one file is record i of the other."""
    if ids is not None:
        return True, [f"Records were linked by '{ids}' where a measure can do that."]
    rows = [engine.overview(data, ()).rows for data in (original, *copies)]
    ordered = not any(data.memory.get("unordered") for data in (original, *copies))
    if aligned is not None:
        if aligned and (len(set(rows)) > 1 or not ordered):
            raise ParameterError(
                "aligned=True needs files with the same number of records in the same order. Name a column that links "
                "them (ids='column'), or leave it out."
            )
        return aligned, []
    if len(copies) > 1 or len(set(rows)) > 1 or not ordered:
        return False, []
    ours, theirs = (engine.collect(data, columns) for data in (original, copies[0]))
    if agrees_by_row(ours, theirs, columns):
        return True, [
            "The records of the two files belong together row by row, as their values show, so they were also "
            "compared one by one (aligned=False denies it)."
        ]
    return False, []


def agrees_by_row(ours: pl.DataFrame, theirs: pl.DataFrame, columns: Sequence[str]) -> bool:
    """Say whether rows agree far more often than shuffled ones would.

    Where both files are sorted by one column, rows agree somewhat by the sorting alone; then most cells must be equal.
    """
    n = ours.height
    same = {name: same_cells(ours[name], theirs[name]) for name in columns}
    by_sorting = any(
        ours[name].n_unique() > 1 and _in_order(ours[name]) and _in_order(theirs[name]) for name in columns
    )
    if by_sorting or n < _FEW:
        return float(np.mean([cells.mean() for cells in same.values()])) > 0.5
    return any(_beyond_chance(ours[name], theirs[name], float(same[name].mean()), n) for name in columns)


def _beyond_chance(ours: pl.Series, theirs: pl.Series, same: float, n: int) -> bool:
    shares = [
        as_text(plain_text(series)).to_frame("v").group_by("v").agg(p=pl.len() / n)
        for series in (ours.alias("v"), theirs.alias("v"))
    ]
    joined = shares[0].join(shares[1], on="v", nulls_equal=True)
    chance = float((joined["p"] * joined["p_right"]).sum())
    if same > chance + _SURE * np.sqrt(max(chance * (1 - chance), 1 / n) / n):
        return True
    if not (ours.dtype.is_numeric() and theirs.dtype.is_numeric()):
        return False
    # Noise leaves no value as it was, but the order of the values by and large.
    pair = (
        pl.DataFrame({"a": ours.cast(pl.Float64), "b": theirs.cast(pl.Float64)}).fill_nan(None).drop_nulls()
    )
    related = pair.select(pl.corr("a", "b", method="spearman")).item() if pair.height >= _FEW else None
    return related is not None and related > _SURE / np.sqrt(pair.height)


def _in_order(series: pl.Series) -> bool:
    plain = plain_text(series)
    return bool(plain.is_sorted() or plain.is_sorted(descending=True))


def _both_numbers(original: Microdata, released: Microdata, name: str) -> bool:
    return bool(original.schema[name].is_numeric() and released.schema[name].is_numeric())


def _kind(series: pl.Series) -> str:
    dtype = plain_text(series).dtype
    if series.null_count() == len(series):
        return "empty"
    if dtype.is_numeric():
        return "a number"
    if dtype == pl.Boolean:
        return "yes or no"
    return "a date or time" if dtype.is_temporal() else "text"


def _quoted(names: Sequence[str]) -> str:
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return ", ".join(map(repr, names[:10])) + more


_FEW = 30
_UNREAD = (
    "The release has labels of its own in {}. Which values they stand for cannot be seen from the files, so that "
    "nothing can be looked up by these columns."
)
_GROUPED = (
    "is coarser in the release, group by group; everybody of the original was put into the narrowest group that holds "
    "them, except for information loss"
)
_TRUTH = {
    "true": True,
    "false": False,
    "1": True,
    "0": False,
    "yes": True,
    "no": False,
    "1.0": True,
    "0.0": False,
}
