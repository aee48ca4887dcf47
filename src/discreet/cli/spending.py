"""Which privacy budget does a command spend from? Never that of another file, and none beside that of the file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.core.errors import ParameterError

if TYPE_CHECKING:
    from discreet.dp import Ledger


LedgerFile = Annotated[
    Path | None,
    typer.Option("--ledger", help="The privacy budget to spend from (discreet budget open)."),
]


def opened(ledger: Path | None, file: str) -> Ledger | None:
    """Read the ledger that an answer from a file is to be paid from.

    A ledger of another file is refused, and so is any other than the one that lies beside the file, where there is one.
    """
    from discreet.dp import Ledger

    if ledger is None:
        _refuse_beside(file, None)
        return None
    found = Ledger.load(ledger, source=file if Path(file).is_file() else None)
    _refuse_beside(file, ledger)
    return found


def refuse_unpaid(guarantee: str | None, ledger: Path | None, file: str) -> None:
    """Refuse a release with a guarantee that no ledger knows of, although one lies beside the file.

    For commands most of whose methods claim nothing: whether one does is known when it is done, before it is written.
    """
    if guarantee is not None and ledger is None:
        _refuse_beside(file, None)


def _refuse_beside(file: str, ledger: Path | None) -> None:
    own = _beside(file)
    if own is not None and (ledger is None or not own.samefile(ledger)):
        raise ParameterError(
            f"A privacy budget lies beside the file, '{own.name}', and would not know of this release. Spend from it: "
            f"--ledger {own}."
        )


def _beside(file: str) -> Path | None:
    """The ledger that lies beside a file; one of other content is refused, for the file may have been changed."""
    from discreet.dp import Ledger

    if not file or not Path(file).is_file():
        return None
    place = Ledger.place_beside(file)
    if not place.exists():
        return None
    Ledger.load(place, source=file)
    return place if Ledger.load(place).source else None
