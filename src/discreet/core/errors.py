"""What goes wrong, said so that the reader can mend it.

Every message names the column or parameter and the way out. Data values never appear in a message.
"""

from __future__ import annotations

import difflib
import importlib
import os
import re
from collections.abc import Iterable, Mapping
from types import ModuleType


class DiscreetError(Exception):
    """Anything discreet refuses to do, with the reason and the way out."""


class ColumnError(DiscreetError):
    """A column that is not there, not of the right type, or in two roles."""


class ParameterError(DiscreetError):
    """A parameter that makes no sense, alone or with the others."""


class InputError(DiscreetError):
    """A file, database or frame that cannot be read or holds nothing."""


class ExtraMissingError(DiscreetError):
    """A feature whose optional dependency is not installed."""


class DiscreetWarning(UserWarning):
    """Something the user should know, though the work goes on."""


class NothingLeftWarning(DiscreetWarning):
    """The protection left nothing that could be published."""


def gave_up(error: BaseException) -> bool:
    """Say whether something failed, an engine's panic included, and nobody asked the program to end."""
    return isinstance(error, Exception) or is_panic(error)


def is_panic(error: BaseException) -> bool:
    """Whether an engine written in Rust gave up in the middle of its work; that is no `Exception` to Python."""
    return type(error).__name__ == "PanicException"


_CARRIED = re.compile(r"\[discreet (\w+)\] (.*?) \[/discreet\]", re.DOTALL)


def carried(error: DiscreetError) -> RuntimeError:
    """Pack a refusal so that it survives the engine inside which it was raised, of whose error only the text is left.

    Examples
    --------
    >>> unpacked(ValueError(f"UDF failed: {carried(ColumnError('No such column.'))} at line 1"))
    ColumnError('No such column.')
    """
    return RuntimeError(f"[discreet {type(error).__name__}] {error} [/discreet]")


def unpacked(error: BaseException) -> DiscreetError | None:
    """Give the refusal that an engine's error carries; None where the engine itself failed."""
    found = _CARRIED.search(str(error))
    if found is None:
        return None
    kinds = {kind.__name__: kind for kind in DiscreetError.__subclasses__()}
    return kinds.get(found[1], DiscreetError)(found[2])


def near_misses(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names closest to a mistyped one, ignoring case and separators.

    Examples
    --------
    >>> near_misses("Marital_Status", ["age", "marital-status"])
    ['marital-status']
    """
    folded = {_fold(column): column for column in known}
    return [folded[match] for match in difflib.get_close_matches(_fold(name), folded, n=3, cutoff=0.6)]


def unknown_name(name: str, known: Iterable[str], *, what: str = "column") -> str:
    """Word the message for a name that does not exist, with the near misses or the whole list.

    Examples
    --------
    >>> unknown_name("agee", ["age", "sex"])
    "There is no column 'agee'. Did you mean 'age'?"
    """
    known = list(known)
    close = near_misses(name, known)
    if close:
        return f"There is no {what} '{name}'. Did you mean {_listed(close, 'or')}?"
    shown = _listed(known[:20], "and") if known else "none"
    more = f" and {len(known) - 20} more" if len(known) > 20 else ""
    return f"There is no {what} '{name}'. There is: {shown}{more}."


def need_known(
    names: Iterable[str | None],
    known: Iterable[str],
    said: str = "",
    *,
    what: str = "column",
    before: str = "",
    after: str = "",
    kind: type[DiscreetError] = ColumnError,
) -> None:
    """Refuse the first name that does not exist, a column unless told otherwise; None is no name.

    ``before`` and ``after`` say where it stands; ``said`` is a sentence of its own.

    Examples
    --------
    >>> need_known(["agee"], ["age", "sex"], "It was named in columns.")
    Traceback (most recent call last):
    discreet.core.errors.ColumnError: There is no column 'agee'. Did you mean 'age'? It was named in columns.
    """
    there = known if isinstance(known, Mapping) else set(known)
    for name in names:
        if name is not None and name not in there:
            raise kind(f"{before}{unknown_name(name, known, what=what)}{after} {said}".rstrip())


def not_microdata(value: object, what: str = "data") -> ParameterError:
    """Word the refusal of a bare frame, or a path, where a file with roles is needed, and say how to make one."""
    way_out = (
        "Read a file with discreet.read(path, keys=[…])."
        if isinstance(value, str | os.PathLike)
        else "Wrap a frame first: discreet.Microdata(frame, keys=[…])."
    )
    return ParameterError(f"{what} must be Microdata, not a {type(value).__name__}. {way_out}")


def load_extra(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import an optional dependency, or say which extra brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ExtraMissingError(
            f"{purpose} needs the package '{module.split('.', maxsplit=1)[0]}', which is not installed. "
            f"Install it with: pip install 'discreet[{extra}]'."
        ) from error


def _fold(name: str) -> str:
    return str(name).lower().replace("-", "").replace("_", "").replace(" ", "").replace(".", "")


def _listed(names: list[str], conjunction: str) -> str:
    quoted = [f"'{name}'" for name in names]
    if len(quoted) < 2:
        return "".join(quoted)
    return f"{', '.join(quoted[:-1])} {conjunction} {quoted[-1]}"


# Is a table too large for the work that is asked for? Said before the work, with the number of cells.


def refuse_too_many_cells(cells: int, most: int, *, what: str, instead: str) -> None:
    """Refuse work on more cells than it is meant for.

    Parameters
    ----------
    cells, most
        How many there are, or would be, and how many may be.
    what
        What has them, up to the number: ``zeros='all' would make``.
    instead
        The way out, in a sentence.

    Examples
    --------
    >>> refuse_too_many_cells(8_000, 1_000, what="The table has", instead="Take fewer columns.")
    Traceback (most recent call last):
    discreet.core.errors.ParameterError: The table has 8,000 cells, more than 1,000. Take fewer columns.
    """
    if cells > most:
        raise ParameterError(f"{what} {cells:,} cells, more than {most:,}. {instead}")
