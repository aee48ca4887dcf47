"""The generators of a study: synthesizers, plans of treatments, files that other tools made, and reference points."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.errors import ColumnError, InputError, ParameterError, unknown_name
from discreet.core.files.untrusted import parsed_toml
from discreet.core.method_cards import nested
from discreet.core.parameters import typed_parameters
from discreet.core.randomness import generator
from discreet.io.naming import checked_name, filled_in
from discreet.microdata import Microdata
from discreet.protect import Plan, Treatment
from discreet.synth import Sequential, Synthesizer, load_plan
from discreet.workflow.evaluation.linked_releases import Linked, ManyTables, described, read_folder, several
from discreet.workflow.evaluation.study_data import Parts, listed
from discreet.workflow.synthesis_within_risk import synthesize_within_risk

REFERENCES = ("holdout", "uniform", "copy", "subsample")
SMALL_SAMPLE = 0.05
_KINDS = ("synthesizer", "steps", "plan", "files", "reference")


@dataclass(frozen=True)
class Made:
    """What a generator brought forth, how long it took, and what is to be known about it."""

    copies: tuple[Any, ...]
    fit_seconds: float
    sample_seconds: float
    notes: tuple[str, ...] = ()
    guarantee: str | None = None
    why_none: str = ""


@dataclass(frozen=True)
@typed_parameters
class Generator:
    """One generator of a study; it is one of five kinds.

    Parameters
    ----------
    name
        What it is called in the results.
    synthesizer, parameters
        The name of a synthesizer (``"sequential"``) and its parameters, as a plan file has them; ``"multi-table"`` for
        many tables of the file, ``"relational"`` for a data set of linked tables.
    steps
        Treatments of `discreet.protect`, as the steps of a plan file.
    plan
        The path of a plan file: of treatments, or of a synthesizer.
    files
        Files that another tool has made, one a copy; ``{data}``, ``{seed}`` and ``{copy}`` in their names are filled
        in. The tool must have learned from the training part only (`Study.write_training` writes it). A folder is a
        release of many tables (with its manifest) or of linked ones (one file for each).
    reading
        How to read the files; as the data set is read unless given.
    reference
        A point to hold the others against: ``"holdout"``, real people the generators have not seen (what a perfect
        generator could reach); ``"uniform"``, every column drawn from its values as if all were equally frequent (what
        a worthless one has); ``"copy"``, the training part itself; ``"subsample"``, five in a hundred of its records.
    data
        The data sets it is for; all of them unless named.
    """

    name: str
    synthesizer: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    steps: tuple[Mapping[str, Any], ...] = ()
    plan: str | None = None
    files: tuple[str, ...] = ()
    reading: Mapping[str, Any] = field(default_factory=dict)
    reference: str | None = None
    data: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("files", "data"):
            object.__setattr__(self, name, listed(getattr(self, name)))
        object.__setattr__(self, "steps", tuple(self.steps))
        checked_name(self.name, "generator")
        for pattern in self.files:
            self._file_name(pattern, "data", 1, 1)
        kinds = [kind for kind in _KINDS if getattr(self, kind)]
        if len(kinds) != 1:
            said = f"it says {' and '.join(kinds)}" if kinds else "it says none"
            raise ParameterError(
                f"Generator '{self.name}' must say one of synthesizer, step, plan, files and reference; {said}."
            )
        if self.reference is not None and self.reference not in REFERENCES:
            raise ParameterError(
                f"Generator '{self.name}': {unknown_name(self.reference, REFERENCES, what='reference')}"
            )
        if self.parameters and not self.synthesizer:
            raise ParameterError(f"Generator '{self.name}': parameters belong to a synthesizer.")
        try:
            if self.synthesizer:
                self._named()
            elif self.steps:
                Plan.from_dict({"step": list(self.steps)})
        except (ParameterError, ColumnError) as error:
            raise ParameterError(f"Generator '{self.name}': {error}") from error

    def _named(self) -> Synthesizer | ManyTables | Linked:
        assert self.synthesizer is not None
        more = several(self.synthesizer, self.parameters)
        return more or Synthesizer.named(self.synthesizer, dict(self.parameters))

    @classmethod
    def of(cls, name: str, maker: Any) -> Generator:
        """Describe a synthesizer (of records, of many tables, of linked ones), a treatment or a plan.

        Examples
        --------
        >>> from discreet.synth import Sequential
        >>> Generator.of("margins", Sequential(method="sample")).to_dict()
        {'name': 'margins', 'synthesizer': 'sequential', 'parameters': {'method': 'sample'}}
        """
        if isinstance(maker, Generator):
            return maker
        if isinstance(maker, Synthesizer):
            return cls(name, synthesizer=maker.name, parameters=maker.to_dict())
        more = described(maker)
        if more is not None:
            return cls(name, synthesizer=more[0], parameters=more[1])
        if isinstance(maker, Treatment):
            plan = maker if isinstance(maker, Plan) else Plan([maker])
            return cls(name, steps=tuple(plan.to_dict()["step"]))
        raise ParameterError(
            f"'{name}' must be a synthesizer, a treatment, a plan or a Generator, not {type(maker).__name__}."
        )

    def maker(self, folder: Path) -> Synthesizer | ManyTables | Linked | Plan | None:
        """Make the synthesizer or the plan; None for files and references."""
        if self.synthesizer:
            return self._named()
        if self.steps:
            return Plan.from_dict({"step": list(self.steps)})
        if self.plan is None:
            return None
        place = folder / self.plan
        return load_plan(place) if _is_synthesis(place) else Plan.load(place)

    def paths(self, data: str, seed: int, copies: int, folder: Path) -> list[Path]:
        """Name the files of one cell."""
        named = [
            self._file_name(pattern, data, seed, copy)
            for pattern in self.files
            for copy in range(1, copies + 1)
        ]
        return [folder / name for name in dict.fromkeys(named)]

    def _file_name(self, pattern: str, data: str, seed: int, copy: int) -> str:
        try:
            return filled_in(pattern, {"data": data, "seed": seed, "copy": copy})
        except ParameterError as error:
            raise ParameterError(f"Generator '{self.name}': {error}") from error

    def describe(self, data: str, seed: int, copies: int, folder: Path) -> dict[str, Any]:
        """Say what the files of one cell depend on: the parameters in full, or the checksums of its files."""
        if self.files:
            paths = self.paths(data, seed, copies, folder)
            return {
                "files": [_print_of(path) for path in paths],
                **self._read_as(),
            }
        if self.reference:
            return {"reference": self.reference}
        maker = self.maker(folder)
        assert maker is not None
        return {"maker": maker.name, "parameters": maker.to_dict()}

    def _read_as(self) -> dict[str, Any]:
        return {"reading": dict(self.reading)} if self.reading else {}

    def make(self, parts: Parts, request: Request, folder: Path, reading: Mapping[str, Any]) -> Made:
        """Bring forth the copies of one cell."""
        if self.files:
            paths = self.paths(request.data, request.seed, request.copies, folder)
            return _from_files(self, paths, parts.training, self.reading or reading)
        if self.reference:
            return _reference(self.reference, parts, request)
        maker = self.maker(folder)
        if isinstance(maker, ManyTables | Linked):
            return _several(maker, parts, request)
        if not isinstance(parts.training, Microdata):
            raise ParameterError(
                "The data set is several linked tables: use synthesizer = 'relational' (strategy = 'separate' draws "
                "every table by itself)."
            )
        if isinstance(maker, Plan):
            return _treated(maker, parts.training, request)
        assert maker is not None
        began = time.perf_counter()
        notes: tuple[str, ...] = ()
        rows = request.rows
        if isinstance(maker, Sequential) and maker.risk_limit is not None:
            within = synthesize_within_risk(parts.training, synthesizer=maker, n=rows, seed=request.stream)
            fitted, notes, rows = within.fitted, within.lines, within.rows
        else:
            fitted = maker.fit(parts.training, seed=request.stream)
        middle = time.perf_counter()
        drawn = fitted.sample(rows, copies=request.copies, seed=request.stream)
        copies = tuple(drawn) if isinstance(drawn, list) else (drawn,)
        return Made(
            copies,
            middle - began,
            time.perf_counter() - middle,
            (*notes, *_warnings(fitted)),
            guarantee=fitted.guarantee,
            why_none=fitted.why_none,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what differs from the defaults, ready for TOML."""
        given: dict[str, Any] = {"name": self.name}
        for name in ("synthesizer", "plan", "files", "reference", "data", "parameters", "reading", "steps"):
            value = getattr(self, name)
            if value:
                given["step" if name == "steps" else name] = nested(value)
        return given


@dataclass(frozen=True)
class Request:
    """What is wanted of a generator: how many copies of how many records, and with which random numbers."""

    data: str
    seed: int
    stream: int
    copies: int = 1
    rows: int | None = None


def _print_of(path: Path) -> Any:
    """Return the checksum of a file, or those of the files of a folder; None for what is not there."""
    from discreet.io.naming import checksum

    if path.is_dir():
        return [checksum(file) for file in sorted(path.iterdir()) if file.is_file()]
    return checksum(path) if path.is_file() else None


def _several(maker: ManyTables | Linked, parts: Parts, request: Request) -> Made:
    began = time.perf_counter()
    seeds = [
        request.stream if number == 1 else int(generator(request.stream, f"copy {number}").integers(2**62))
        for number in range(1, request.copies + 1)
    ]
    copies = tuple(maker.made(parts.training, seed, request.rows) for seed in seeds)
    return Made(copies, time.perf_counter() - began, 0.0)


def _is_synthesis(plan: Path) -> bool:
    """Whether a plan file describes a synthesizer; one that cannot be read is left to whoever reads plans."""
    try:
        return "step" not in parsed_toml(plan.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False


def _warnings(fitted: Any) -> tuple[str, ...]:
    plan = getattr(fitted, "plan", None)
    return tuple(str(said) for said in getattr(plan, "warnings", ()))


def _treated(plan: Plan, training: Microdata, request: Request) -> Made:
    began = time.perf_counter()
    done = [
        plan.apply(training, seed=int(generator(request.stream, f"copy {number}").integers(2**62)))
        for number in range(1, request.copies + 1)
    ]
    seconds = time.perf_counter() - began
    first = done[0]
    files = tuple(release.data for release in done)
    return Made(files, 0.0, seconds, guarantee=first.guarantee, why_none=first.why_none)


def _reference(kind: str, parts: Parts, request: Request) -> Made:
    if kind == "copy":
        return Made((parts.training,), 0.0, 0.0)
    if kind != "holdout" and not isinstance(parts.training, Microdata):
        raise ParameterError(
            f"The reference '{kind}' is for one file, and the data set is several linked tables."
        )
    if kind == "holdout":
        if parts.holdout is None:
            raise ParameterError("There is no hold-out: the study sets holdout = 0.")
        return Made((parts.holdout,), 0.0, 0.0)
    began = time.perf_counter()
    frame = engine.whole_frame(parts.training)
    if kind == "subsample":
        some = [
            frame[
                np.sort(generator(request.stream, "subsample", str(number)).permutation(frame.height)[:size])
            ]
            for number in range(1, request.copies + 1)
            if (size := max(round(SMALL_SAMPLE * frame.height), 1))
        ]
        made = tuple(parts.training.with_frame(part) for part in some)
        return Made(made, 0.0, time.perf_counter() - began)
    rows = request.rows or frame.height
    copies = [
        _uniform(frame, rows, generator(request.stream, "uniform", str(number)))
        for number in range(1, request.copies + 1)
    ]
    made = tuple(parts.training.with_frame(copy) for copy in copies)
    return Made(made, 0.0, time.perf_counter() - began)


def _uniform(frame: pl.DataFrame, rows: int, rng: np.random.Generator) -> pl.DataFrame:
    """Draw every column by itself, each of its values (missing among them) equally likely."""
    columns = []
    for name in frame.columns:
        values = frame[name].unique(maintain_order=True)
        columns.append(values.gather(rng.integers(len(values), size=rows)))
    return pl.DataFrame(columns)


def _from_files(made_by: Generator, paths: Sequence[Path], training: Any, reading: Mapping[str, Any]) -> Made:
    from discreet.io import options_for, read

    copies: list[Any] = []
    notes: list[str] = []
    for path in paths:
        if path.is_dir():
            copies.append(read_folder(path, training))
            continue
        if not path.is_file():
            raise InputError(
                f"Generator '{made_by.name}': there is no file '{path.name}'. Make it, and run again."
            )
        fitting = {name: value for name, value in reading.items() if name in options_for(path)}
        frame = engine.whole_frame(read(path, roles={}, **fitting))
        lacking = [name for name in training.columns if name not in frame.columns]
        if lacking:
            raise ColumnError(
                f"Generator '{made_by.name}': '{path.name}' lacks {', '.join(map(repr, lacking[:5]))}."
            )
        extra = [name for name in frame.columns if name not in training.schema]
        if extra:
            notes.append(f"Left out of '{path.name}': {', '.join(map(repr, extra[:5]))}.")
        copies.append(training.with_frame(_like(frame.select(training.columns), training, path.name)))
    return Made(tuple(copies), 0.0, 0.0, tuple(dict.fromkeys(notes)))


def _like(frame: pl.DataFrame, training: Microdata, file: str) -> pl.DataFrame:
    """Give the columns of a file the types of the data it imitates."""
    model = engine.whole_frame(training)
    columns = []
    for name, kind in model.schema.items():
        column = frame[name]
        if column.dtype == kind or (column.dtype.is_numeric() and kind.is_numeric()):
            columns.append(column)
            continue
        text = column.cast(pl.String)
        try:
            if kind in (pl.Categorical, pl.Enum):
                columns.append(text.cast(pl.Categorical))
            elif kind.is_temporal():
                columns.append(text.str.strptime(kind))  # type: ignore[arg-type]
            elif kind == pl.Boolean:
                lower = text.str.to_lowercase()
                columns.append(lower.replace_strict(_TRUTH, return_dtype=pl.Boolean))
            else:
                columns.append(text.cast(kind))
        except pl.exceptions.PolarsError as error:
            raise ColumnError(
                f"Column '{name}' of '{file}' holds values that do not fit its type in the data ({kind}). Write the "
                "file as the data are written, or name reading options for it."
            ) from error
    return pl.DataFrame(columns)


_TRUTH = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}
