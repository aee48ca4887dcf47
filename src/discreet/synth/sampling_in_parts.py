"""Synthetic files larger than memory: Parquet parts in a folder, drawn one by one, in processes or by Spark.

A part has a fixed number of records and a random stream of its own, so that the bytes do not depend on who draws and
how many there are. A manifest beside the parts says which are finished; a run that was stopped goes on from there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from discreet import engine
from discreet.core.errors import InputError, ParameterError
from discreet.core.files.atomic import replacing
from discreet.core.files.journals import PartsManifest, digest_of
from discreet.core.files.staging import scratch_folder
from discreet.core.native_libraries import one_thread
from discreet.core.progress import track
from discreet.dp.entropy import Stream
from discreet.microdata import Microdata

if TYPE_CHECKING:
    from discreet.synth.synthesizer import Fitted

ROWS_PER_PART = 250_000
_CHECKED = 16
_UNITS = ("household", "person", "contributor")


@dataclass(frozen=True)
class Parts:
    """Which parts a folder is to have.

    Attributes
    ----------
    folder
        Where they go.
    rows, rows_per_part
        The records of all parts together, and of each but the last.
    root
        The seed; it is not written anywhere.
    """

    folder: Path
    rows: int
    rows_per_part: int
    root: int

    @property
    def count(self) -> int:
        """How many parts there are."""
        return -(-self.rows // self.rows_per_part)

    def path(self, number: int) -> Path:
        """Where a part goes."""
        return self.folder / f"part-{number:06d}.parquet"

    def size(self, number: int) -> int:
        """How many records a part has."""
        return min(self.rows_per_part, self.rows - number * self.rows_per_part)


def write_parts(
    fitted: Fitted, parts: Parts, *, workers: int, cluster: Any, resume: bool, progress: bool
) -> Microdata:
    """Draw all parts that are not there yet, and return the folder as a file that is read part by part."""
    _check(fitted, parts, workers)
    if cluster is not None and workers != 1:
        raise ParameterError(
            "Parts are drawn by workers of this machine or by a cluster. Give one of the two."
        )
    manifest = PartsManifest(
        parts.folder,
        {"rows": parts.rows, "rows_per_part": parts.rows_per_part, "model_and_seed": _mark(fitted, parts)},
        parts.count,
        others="another model, another seed, or another number of records",
    )
    done = manifest.finished(resume=resume)
    waiting = [number for number in range(parts.count) if number not in done]
    if cluster is not None:
        drawn = _on_cluster(fitted, parts, waiting, cluster)
    elif workers == 1:
        drawn = _here(fitted, parts, waiting)
    else:
        drawn = _elsewhere(fitted, parts, waiting, workers)
    manifest.note(done)
    for number, digest in track(drawn, total=len(waiting), description="Drawing parts", progress=progress):
        done[number] = digest
        manifest.note(done)
    return fitted.like.with_frame(pl.scan_parquet(parts.folder / "part-*.parquet"))


def _check(fitted: Fitted, parts: Parts, workers: int) -> None:
    for what, value in (("workers", workers), ("rows_per_part", parts.rows_per_part)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ParameterError(f"{what} must be a whole number of at least 1.")
    if fitted.keeps_records:
        raise ParameterError(
            "Some columns are kept as they are, so that the synthetic file has the records of the original and cannot "
            "be drawn in parts. Synthesize those columns too, or sample without a folder."
        )
    units = [role for role in _UNITS if getattr(fitted.like.roles, role)]
    if units and parts.count > 1 and fitted.numbered_units is None:
        raise ParameterError(
            f"The model draws a '{units[0]}' for its records, whose numbers would begin anew in every part. Raise "
            "rows_per_part to n, or sample without a folder."
        )


def _mark(fitted: Fitted, parts: Parts) -> str:
    """Tell model and seed apart from others by a few records that are drawn for it and kept nowhere."""
    few = fitted.draw(_CHECKED, Stream(parts.root, "check of parts"))
    written = few.with_columns(pl.all().cast(pl.String)).write_csv() + repr(dict(few.schema))
    return hashlib.sha256(written.encode()).hexdigest()


def _here(fitted: Fitted, parts: Parts, waiting: list[int]) -> Iterator[tuple[int, str]]:
    for number in waiting:
        yield number, _drawn(fitted, parts, number)


def _drawn(fitted: Fitted, parts: Parts, number: int) -> str:
    """Draw one part and put it in place whole."""
    with one_thread():
        frame = fitted.draw(parts.size(number), Stream(parts.root, "part", str(number)))
    if fitted.numbered_units is not None:
        # A part may have a few records more than asked for, to keep units whole, and never twice as many.
        before = 2 * number * parts.rows_per_part
        frame = frame.with_columns(pl.col(fitted.numbered_units).cast(pl.Int64) + before)
    there = [name for name in fitted.like.columns if name in frame.columns]
    fresh = [name for name in frame.columns if name not in there]
    path = parts.path(number)
    with replacing(path) as unfinished:
        frame.select(*there, *fresh).write_parquet(unfinished)
    return digest_of(path)


_model: Fitted | None = None


def _open_model(path: str) -> None:
    global _model  # noqa: PLW0603 - a worker process reads the model once
    from discreet.synth.synthesizer import load

    _model = load(path)


def _drawn_elsewhere(parts: Parts, number: int) -> tuple[int, str]:
    assert _model is not None
    return number, _drawn(_model, parts, number)


def _elsewhere(fitted: Fitted, parts: Parts, waiting: list[int], workers: int) -> Iterator[tuple[int, str]]:
    with scratch_folder() as folder:
        model = fitted.save(folder / "model.zip")
        pool = ProcessPoolExecutor(
            min(workers, max(len(waiting), 1)),
            mp_context=get_context("spawn"),
            initializer=_open_model,
            initargs=(str(model),),
        )
        with pool:
            drawing = [pool.submit(_drawn_elsewhere, parts, number) for number in waiting]
            try:
                for future in as_completed(drawing):
                    yield future.result()
            except BrokenProcessPool as error:
                raise InputError(
                    "A worker process ended before its time: it may have run out of memory (use fewer workers, or "
                    "fewer rows_per_part), or the script lacks the line if __name__ == '__main__': around its calls. "
                    "The parts that are finished stay; go on with resume=True and the same seed."
                ) from error


def _on_cluster(fitted: Fitted, parts: Parts, waiting: list[int], cluster: Any) -> Iterator[tuple[int, str]]:
    with scratch_folder() as folder:
        model = fitted.save(folder / "model.zip").read_bytes()
    placed = replace(parts, folder=parts.folder.resolve())
    for number, digest in engine.spark_tasks(cluster, _DrawnByTask(placed), model, waiting):
        if not placed.path(number).exists():
            raise InputError(
                f"The executors wrote to a folder '{parts.folder.name}' that this machine does not see. Name one on a "
                "disk that they share."
            )
        yield number, digest


@dataclass(frozen=True)
class _DrawnByTask:
    """The work of one task of Spark."""

    parts: Parts

    def __call__(self, model: bytes, number: int) -> tuple[int, str]:
        return number, _drawn(_received(model), self.parts, number)


@lru_cache(maxsize=1)
def _received(model: bytes) -> Fitted:
    """Read the model that was sent; a process of an executor does so once."""
    from discreet.synth.synthesizer import load

    with scratch_folder() as folder:
        place = folder / "model.zip"
        place.write_bytes(model)
        return load(place)
