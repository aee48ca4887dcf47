"""An original and what was released of it: which columns can be compared, and what may be concluded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from discreet import engine
from discreet.core.errors import ColumnError, InputError, ParameterError, unknown_name
from discreet.microdata import Microdata, require_microdata

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
    require_microdata(original, "original")
    copies = [released] if isinstance(released, Microdata) else released
    if not isinstance(copies, list | tuple):
        require_microdata(released, "released")
    if not copies:
        raise ParameterError("released is an empty list: give one release, or a list of copies.")
    for copy in copies:
        require_microdata(copy, "released")
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
    return list(copies)


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
        for name in names:
            if name not in data.schema:
                raise ColumnError(
                    f"{unknown_name(name, data.columns)} It was named in columns; the {what} lacks it."
                )
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
    for name in listed:
        if name not in original.schema:
            raise ColumnError(f"{unknown_name(name, original.columns)} It was named in {what}.")
    return listed
