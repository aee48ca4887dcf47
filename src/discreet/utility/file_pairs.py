"""An original and what was released of it: which columns can be compared, and what may be concluded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from discreet import engine
from discreet.errors import ColumnError, InputError, ParameterError, unknown_name
from discreet.microdata import Microdata, require_microdata

DEPENDENT = (
    "Original and release are dependent, so distances between them come without p-values: hold them against those of "
    "another release, not against a table of critical values."
)


@dataclass(frozen=True)
class ComparedColumns:
    """The columns that both files have, and those of the original that the release lacks."""

    names: tuple[str, ...]
    left_out: tuple[str, ...]

    @property
    def caveats(self) -> list[str]:
        """Say which columns could not be compared."""
        if not self.left_out:
            return []
        listed = ", ".join(map(repr, self.left_out[:10]))
        more = f" and {len(self.left_out) - 10} more" if len(self.left_out) > 10 else ""
        return [f"Not compared, because the release does not have them: {listed}{more}."]


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
    released: Microdata,
    columns: str | Sequence[str] | None,
    *,
    without: Sequence[str | None] = (),
) -> ComparedColumns:
    """Choose the columns to compare: those named, or all that both files have but identifiers and weights."""
    if columns is None:
        hidden = {*original.roles.technical, *without}
        wanted = [name for name in original.columns if name not in hidden]
        names = tuple(name for name in wanted if name in released.schema)
        left_out = tuple(name for name in wanted if name not in released.schema)
        if not names:
            raise InputError(
                "The two files have no column in common that could be compared. Rename those of the release as the "
                "original has them, or name the columns with columns=[…]."
            )
        return ComparedColumns(names, left_out)
    names = (columns,) if isinstance(columns, str) else tuple(dict.fromkeys(columns))
    if not names:
        raise ParameterError(
            "columns is empty: name the columns to compare, or leave it out for all of them."
        )
    for data, what in ((original, "original"), (released, "release")):
        for name in names:
            if name not in data.schema:
                raise ColumnError(
                    f"{unknown_name(name, data.columns)} It was named in columns; the {what} lacks it."
                )
    return ComparedColumns(names, ())


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
