"""Is a table too large for the work that is asked for? Said before the work, with the number of cells."""

from __future__ import annotations

from discreet.core.errors import ParameterError


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
