"""Where does a table of very many classes stay while somebody works on it? In a file that is mapped into memory.

What is mapped is read from the disk when it is looked at and forgotten when memory is short. The table is written as it
comes from the engine, put in order a piece at a time, and gone from the disk when nobody looks at it any longer.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import polars as pl

from discreet.core.errors import InputError
from discreet.core.files.atomic import full_disk, is_full

HELD_IN_MEMORY = 1_000_000
"""Rows of a table that are rather kept in memory."""
_PIECE = 250_000


def in_order(batches: Iterable[pl.DataFrame], by: Sequence[str], most: int) -> pl.DataFrame | None:
    """Put the rows of a table in order, missing values last; None where there are more than ``most``.

    A table beyond `HELD_IN_MEMORY` rows goes through files, and what is given back is mapped. (One with categories
    stays in memory: each batch numbers them in its own way, which a file of Arrow does not allow.)

    Examples
    --------
    >>> in_order([pl.DataFrame({"a": [2, 3]}), pl.DataFrame({"a": [1]})], ["a"], most=3)["a"].to_list()
    [1, 2, 3]
    """
    parts: list[pl.DataFrame] = []
    many, coming = 0, iter(batches)
    for part in coming:
        parts.append(part)
        many += part.height
        if many > most:
            return None
        if many > HELD_IN_MEMORY and pl.Categorical not in part.dtypes:
            return _through_files(parts, coming, by, most)
    return pl.concat(parts, rechunk=True).sort(*by, nulls_last=True)


def _through_files(
    held: list[pl.DataFrame], coming: Iterator[pl.DataFrame], by: Sequence[str], most: int
) -> pl.DataFrame | None:
    folder = Path(tempfile.mkdtemp(prefix="discreet-classes-"))
    found = None
    try:
        many = _written(folder / "as it comes", _handed_on(held, coming), most)
        if many <= most:
            table = _mapped(folder / "as it comes")
            order = table.select(pl.arg_sort_by(*by, nulls_last=True)).to_series()
            pieces = (table[order[at : at + _PIECE]] for at in range(0, many, _PIECE))
            _written(folder / "in order", pieces, most)
            found = _mapped(folder / "in order")
    except OSError as error:
        raise (full_disk("a table of classes") if is_full(error, folder) else _unwritable()) from error
    finally:
        # A file that is mapped outlives its name where the system allows it; elsewhere it goes with the table.
        shutil.rmtree(folder, ignore_errors=True)
        if folder.exists() and found is not None:
            weakref.finalize(found, shutil.rmtree, folder, ignore_errors=True)
    return found


def _handed_on(held: list[pl.DataFrame], coming: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Give what is held and then what comes, letting go of each part."""
    while held:
        yield held.pop(0)
    yield from coming


def _written(file: Path, parts: Iterable[pl.DataFrame], most: int) -> int:
    import pyarrow as pa

    writer, many = None, 0
    try:
        for part in parts:
            many += part.height
            if many > most:
                break
            arrow = part.to_arrow()
            writer = writer or pa.ipc.new_file(file, arrow.schema)
            writer.write_table(arrow)
    finally:
        if writer is not None:
            writer.close()
    return many


def _mapped(file: Path) -> pl.DataFrame:
    import pyarrow as pa

    return pl.DataFrame(pl.from_arrow(pa.ipc.open_file(pa.memory_map(str(file))).read_all(), rechunk=False))


def _unwritable() -> InputError:
    return InputError(
        "The table of classes cannot be written to the folder for temporary files. Name one with room by the variable "
        "TMPDIR."
    )
