"""What every synthesizer is: a frozen set of parameters that is fitted to a file, and a model that is sampled.

``Sequential(...).fit(data, seed=1).sample(n=1000, copies=5, seed=2)`` reads the same for all of them. The fitted
model can be saved and loaded (`load`); the file holds numbers and arrays, never code. Synthetic files larger than
memory are Parquet parts in a folder, drawn one by one, in processes or by Spark.
"""

from __future__ import annotations

import contextlib
import hashlib
import html
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, overload

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.errors import DiscreetError, InputError, ParameterError, gave_up, unknown_name
from discreet.core.files.atomic import replacing
from discreet.core.files.journals import PartsManifest, digest_of
from discreet.core.files.staging import scratch_folder
from discreet.core.files.untrusted import read_toml
from discreet.core.guarantees import FROM_A_FILE, NO_PROOF, DifferentialPrivacy, Spending, settled, stands
from discreet.core.index import Registry
from discreet.core.method_cards import kebab, made_from, parameters_of
from discreet.core.native_libraries import on_one_thread, one_thread
from discreet.core.parameters import typed_parameters
from discreet.core.progress import track
from discreet.core.randomness import Seed, fresh_seed, generator
from discreet.core.roles import Roles
from discreet.core.value_gate import MARK, holds_values, name_in_documents
from discreet.dp.entropy import Stream
from discreet.dp.ledger import Ledger
from discreet.microdata import Metadata, Microdata
from discreet.synth.saved_models import MisfitError, damaged, load_model, save_model, stored_as

__all__ = ["USUAL", "Fitted", "Stream", "Synthesizer", "load", "load_plan", "save_plan", "seed_of"]

USUAL = "sequential"
"""The generator that is taken where none is named."""


class Synthesizer(ABC):
    """A way of making synthetic records, with its parameters; subclasses are frozen dataclasses."""

    room: ClassVar[str] = "synth"
    known: ClassVar[Registry[type[Synthesizer]]] = Registry("discreet.synth")
    needs_data: ClassVar[bool] = True
    """Whether it learns from a file; one that works from published results alone does not."""
    plan_name: ClassVar[str] = ""
    """Its name in plan files, where it is not that of the class with hyphens."""
    why_never: ClassVar[str] = ""
    """Why nothing can be guaranteed with these parameters, where they have an epsilon all the same."""
    own_words: ClassVar[bool] = False
    """Whether it checks its parameters by itself, in words of its own, before they are held against their types."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        typed_parameters(cls, where=lambda made: made.name, own_words=cls.own_words)
        if not cls.__name__.startswith("_"):
            Synthesizer.known[cls.plan_name or kebab(cls.__name__)] = cls
        if "fit" in cls.__dict__:
            cls.fit = on_one_thread(cls.fit)  # type: ignore[method-assign]

    @property
    def name(self) -> str:
        """The name in plan files and on the command line, e.g. ``all-others``."""
        return self.plan_name or kebab(type(self).__name__)

    @abstractmethod
    def fit(self, data: Microdata, *, progress: bool = False, seed: Seed = None) -> Fitted:
        """Learn from the file. The same data, parameters and seed give the same model."""

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters that differ from their defaults, ready for JSON or TOML."""
        return parameters_of(self)

    @staticmethod
    def named(name: str, parameters: Mapping[str, Any]) -> Synthesizer:
        """Make the synthesizer of that name with these parameters, as a plan file has them."""
        if name not in Synthesizer.known:
            raise ParameterError(unknown_name(name, Synthesizer.known, what="synthesizer"))
        return Synthesizer.known[name].from_dict(parameters)

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any]) -> Self:
        """Make the synthesizer from plain values; those with richer parameters read them here."""
        return made_from(cls, cls.plan_name or kebab(cls.__name__), parameters)


_MOST_NAMED = 12
_FEW = 20


# Synthetic files larger than memory: Parquet parts in a folder, drawn one by one, in processes or by Spark.
#
# A part has a fixed number of records and a random stream of its own, so that the bytes do not depend on who draws and
# how many there are. A manifest beside the parts says which are finished; a run that was stopped goes on from there.
ROWS_PER_PART = 250_000


@dataclass(eq=False, repr=False)
class Fitted(ABC):
    """A fitted synthesizer; subclasses are dataclasses whose fields are all that they are made of.

    Attributes
    ----------
    like
        An empty file of the user's kind; synthetic files come back in that kind of frame with its roles.
    rows
        Number of records of the file it was fitted to, and of a synthetic file unless another is asked for.
    guarantee
        A privacy guarantee that is proved for what was done, else None.
    why_none
        Where there is no guarantee: why.
    private
        The guarantee as a value: bounds, neighbors, unit, what it means in plain words and what it does not cover.
    spending
        The ledger as it stood once the model was entered, where there is one.
    keeps_records
        Whether synthetic records are the original ones with some columns replaced (partial synthesis).
    numbered_units
        The column of households or the like that are numbered from 1; drawn in parts, each goes on from those before.
    combining_rule
        The rule of `discreet.utility.combine` that fits copies of this model.
    learned_from
        Where the model was learned from a sample of the file: how it was drawn, and what it cannot show.
    loaded_from
        The name of the model file it was read from; what does not fit together in it is the fault of the file then.
    """

    like: Microdata
    rows: int
    guarantee: str | None = field(default=None, init=False)
    why_none: str = field(default=NO_PROOF, init=False)
    private: DifferentialPrivacy | None = field(default=None, init=False)
    spending: Spending | None = field(default=None, init=False)
    keeps_records: bool = field(default=False, init=False)
    numbered_units: str | None = field(default=None, init=False)
    combining_rule: str = field(default="simple", init=False)
    learned_from: str = field(default="", init=False)
    loaded_from: str | None = field(default=None, init=False)

    def promise(
        self,
        claim: DifferentialPrivacy | None,
        why_none: str = "",
        *,
        seeded: bool,
        ledger: Ledger | None = None,
    ) -> Self:
        """Take on what is claimed of the model, where it stands."""
        self.guarantee, self.why_none = settled(claim, why_none, seeded=seeded)
        self.private = stands(claim, seeded=seeded)
        self.spending = ledger.spending() if ledger else None
        return self

    @abstractmethod
    def draw(self, n: int, stream: Stream) -> pl.DataFrame:
        """Draw one synthetic file of ``n`` records; ``stream("name")`` opens a named child of the seed."""

    @overload
    def sample(
        self,
        n: int | None = None,
        *,
        copies: Literal[1] = 1,
        to: None = None,
        rows_per_part: int = ROWS_PER_PART,
        workers: int = 1,
        cluster: None = None,
        resume: bool = False,
        progress: bool = False,
        seed: Seed = None,
    ) -> Microdata: ...
    @overload
    def sample(
        self,
        n: int | None = None,
        *,
        copies: int = 1,
        to: str | Path | None = None,
        rows_per_part: int = ROWS_PER_PART,
        workers: int = 1,
        cluster: Any = None,
        resume: bool = False,
        progress: bool = False,
        seed: Seed = None,
    ) -> Any: ...
    def sample(
        self,
        n: int | None = None,
        *,
        copies: int = 1,
        to: str | Path | None = None,
        rows_per_part: int = ROWS_PER_PART,
        workers: int = 1,
        cluster: Any = None,
        resume: bool = False,
        progress: bool = False,
        seed: Seed = None,
    ) -> Any:
        """Draw synthetic files.

        Parameters
        ----------
        n
            Number of records; as many as the original has unless given.
        copies
            Number of files, each drawn anew.
        to
            A folder for Parquet parts, for files larger than memory: only ``rows_per_part`` records are held at a time.
            What a model keeps of a whole file (exact totals, say) holds part by part.
        rows_per_part
            Records of a part; another number draws other records.
        workers
            Processes that draw parts; the bytes do not depend on it.
        cluster
            A Spark session whose executors draw the parts instead, the same bytes; ``to`` is on a disk that they share.
        resume
            Go on with a folder in which a run with the same model, ``n`` and seed was stopped.
        seed
            Same model, same seed: same bytes out.
        progress
            Show how far it is, on a terminal.

        Returns
        -------
        Microdata
            One synthetic file with the roles of the original, or a list of them where ``copies`` is more than one; with
            ``to`` a Polars query of the parts.
        """
        size = self.rows if n is None else n
        for what, value in (("n", size), ("copies", copies)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise ParameterError(f"{what} must be a whole number of at least 1.")
        if self.keeps_records and size != self.rows:
            raise ParameterError(
                f"Some columns are kept as they are, so a synthetic file has the {self.rows:,} records of the "
                "original. Leave n out, or synthesize those columns too."
            )
        root = seed_of(seed)
        if to is None and cluster is not None:
            raise ParameterError("A cluster draws parts into a folder. Name it under to.")
        if to is not None:
            if copies != 1:
                raise ParameterError(
                    "A folder takes one copy. Name a folder for each, with seeds of their own."
                )
            if resume and seed is None:
                raise ParameterError("resume=True goes on with the seed of the first run: give it.")
            with self._trusted():
                parts = Parts(Path(to), int(size), rows_per_part, root)
                return write_parts(
                    self, parts, workers=workers, cluster=cluster, resume=resume, progress=progress
                )
        with one_thread(), self._trusted():
            files = [
                self._in_kind(self.draw(int(size), Stream(root, f"copy {number}")))
                for number in track(
                    range(copies), description="Drawing copies", progress=progress and copies > 1
                )
            ]
        return files[0] if copies == 1 else files

    def try_out(self) -> None:
        """Draw a few records, so that a model file whose parts do not fit together is refused when it is read."""
        with contextlib.suppress(ParameterError), warnings.catch_warnings(), self._trusted():
            warnings.simplefilter("ignore")
            self._in_kind(
                self.draw(self.rows if self.keeps_records else min(self.rows, _FEW), Stream(0, "trial"))
            )

    @contextlib.contextmanager
    def _trusted(self) -> Iterator[None]:
        """Take an error for what it is, unless the model comes from a file: then the file is not what it says."""
        try:
            yield
        except DiscreetError:
            raise
        except BaseException as error:
            if self.loaded_from is None or not gave_up(error):
                raise
            raise damaged(self.loaded_from) from error

    def __repr__(self) -> str:
        """Say what the model draws and from how many records it was made; no value and no seed."""
        columns = ", ".join(self.like.columns[:_MOST_NAMED])
        more = len(self.like.columns) - _MOST_NAMED
        plan = getattr(self, "plan", None)
        lines = [
            f"{type(self).__name__}: a model of {self.rows:,} records, {len(self.like.columns):,} columns",
            f"  It draws {columns}{f' and {more:,} more' if more > 0 else ''}: sample(n, copies=…, seed=…)",
            "  It may hold values of real records: keep it as the data are kept.",
            f"Guarantee: {self.guarantee or f'none: {self.why_none}'}",
            *([self.private.in_plain_words] if self.private else []),
            *([self.learned_from] if self.learned_from else []),
        ]
        return "\n".join([*lines, *([str(plan)] if plan is not None and not callable(plan) else [])])

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"

    def save(self, path: str | Path) -> Path:
        """Write the model to one file and return its path.

        A model of donors (trees, resampling) holds values of real records: keep the file as the data are kept.
        """
        return save_model(self, path)

    def _in_kind(self, frame: pl.DataFrame) -> Microdata:
        return self.like.with_frame(engine.in_kind(self.like, self._in_order(frame)))

    def _in_order(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Put columns in the order of the file, and those that it does not have behind them."""
        there = [name for name in self.like.columns if name in frame.columns]
        fresh = [name for name in frame.columns if name not in there]
        return pl.DataFrame({name: frame[name] for name in (*there, *fresh)})


def seed_of(seed: Seed) -> int:
    """Turn what a user gives as seed into one whole number."""
    if seed is None:
        return fresh_seed()
    rng = generator(seed)  # which refuses what is no seed
    return int(rng.integers(2**62)) if isinstance(seed, np.random.Generator) else int(seed)


def load(path: str | Path) -> Fitted:
    """Read a fitted model that `Fitted.save` has written; its synthetic files come as Polars frames.

    A model that was loaded has no guarantee, whatever the file says: how its noise was drawn cannot be seen from it.
    """
    fitted, name = load_model(path, Fitted), Path(path).name  # type: ignore[type-abstract]
    if fitted.rows < 1:
        raise damaged(name)
    # What can never be claimed of a model is said of it also where it was read from a file.
    fitted.promise(None, FROM_A_FILE if fitted.why_none == NO_PROOF else fitted.why_none, seeded=False)
    fitted.loaded_from = name
    fitted.try_out()
    return fitted


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
        drawn = ((number, _drawn(fitted, parts, number)) for number in waiting)
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


def _drawn(fitted: Fitted, parts: Parts, number: int) -> str:
    """Draw one part and put it in place whole."""
    with one_thread():
        frame = fitted.draw(parts.size(number), Stream(parts.root, "part", str(number)))
    if fitted.numbered_units is not None:
        # A part may have a few records more than asked for, to keep units whole, and never twice as many.
        before = 2 * number * parts.rows_per_part
        frame = frame.with_columns(pl.col(fitted.numbered_units).cast(pl.Int64) + before)
    path = parts.path(number)
    with replacing(path) as unfinished:
        fitted._in_order(frame).write_parquet(unfinished)
    return digest_of(path)


_model: Fitted | None = None


def _open_model(path: str) -> None:
    global _model  # noqa: PLW0603 - a worker process reads the model once

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
    with scratch_folder() as folder:
        place = folder / "model.zip"
        place.write_bytes(model)
        return load(place)


name_in_documents("synthesizer", Synthesizer.known)


def save_plan(synthesizer: Synthesizer, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a synthesizer and its parameters to a TOML file; it holds no seed and no records.

    Rules and codes among the parameters are values of the data: the first line of the file says so.
    """
    import tomli_w

    from discreet.io.sidecar import save_text

    document = {"synthesizer": synthesizer.name, **synthesizer.to_dict()}
    marked = MARK if holds_values(document) else ""
    never = f"# No guarantee: {synthesizer.why_never}\n" if synthesizer.why_never else ""
    return save_text(marked + never + tomli_w.dumps(document), path, overwrite=overwrite)


def load_plan(path: str | Path) -> Synthesizer:
    """Read a synthesizer from a TOML file: ``synthesizer = "sequential"`` and its parameters."""
    place = Path(path)
    document = read_toml(place, "plan file")
    if "step" in document:
        raise InputError(
            f"'{place.name}' is a plan of treatments; use it with discreet protect. A plan of a synthesis starts with "
            'synthesizer = "sequential".'
        )
    name = str(document.pop("synthesizer", USUAL))
    try:
        return Synthesizer.named(name, document)
    except DiscreetError as error:
        raise type(error)(f"In '{place.name}': {error}") from error


def empty_like(
    data: Microdata, frame: pl.DataFrame, levels: Mapping[str, pl.Series | None] | None = None
) -> Microdata:
    """Return the file without its records: same kind of frame, same columns, same roles.

    ``frame`` is the file in memory, or some columns of it. ``levels`` are what was declared of columns under a
    guarantee: the types are then those of ``frame``, and neither levels nor what was read from the records (checksum,
    number of rows) comes along.
    """
    made = data.with_frame(engine.without_records(data, frame, levels))
    return made if levels is None else made.with_metadata(data.metadata.without_readings())


def _form_of(data: Microdata) -> tuple[pl.DataFrame, dict[str, Any]]:
    return engine.collect(data), data.roles.to_dict()


def _of_form(form: tuple[pl.DataFrame, dict[str, Any]]) -> Microdata:
    frame, roles = form
    if frame.height:
        raise MisfitError("records where a model has the form of its file")
    return Microdata(frame, **Roles.of(**roles).to_dict(), metadata=Metadata())


stored_as("form-of-a-file", Microdata, tuple[pl.DataFrame, dict[str, Any]], _form_of, _of_form)
