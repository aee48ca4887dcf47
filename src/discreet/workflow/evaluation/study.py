"""A study: which generators are tried on which data, how often, and what is measured; kept in a TOML file.

A study file holds everything that is needed to run the study again, but the data::

    title = "Three ways to synthesize Adult"
    seeds = [1, 2]
    holdout = 0.2

    [[data]]
    name = "adult"
    rows = 2000

    [[generator]]
    name = "cart"
    synthesizer = "sequential"

    [[generator]]
    name = "ctgan"
    files = "ctgan/{data}-{seed}.csv"

    [[metric]]
    name = "margins"

    [[model]]
    name = "pay"
    formula = "income ~ age + sex"
    family = "logistic"
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, overload

from discreet.core.errors import DiscreetError, ParameterError, unknown_name
from discreet.core.files.untrusted import read_toml
from discreet.core.parameters import check, check_fields
from discreet.microdata import Microdata
from discreet.protect import Treatment
from discreet.synth import Synthesizer
from discreet.synth.table_schema import LinkedTables
from discreet.workflow.evaluation.study_data import BUNDLED, DataSet, Split, parts_of
from discreet.workflow.evaluation.study_generators import Generator
from discreet.workflow.evaluation.study_metrics import Metric, Model, usual_metrics

Part = TypeVar("Part", DataSet, Generator, Metric, Model)

_TABLES = {"data": DataSet, "generator": Generator, "metric": Metric, "model": Model}
_NUMBERS = {"copies": 1, "rows": 1, "seed": 0, "time_limit": 0, "memory_limit": 1}


@dataclass(frozen=True)
class Study:
    """Which generators are tried on which data, how often, and what is measured.

    Parameters
    ----------
    data
        The data sets, as `DataSet` or by the name of bundled data.
    generators
        The generators, as `Generator`, or synthesizers, treatments and plans by name.
    metrics
        What is measured, as `Metric` or by name; a usual set unless given.
    models
        Regressions that are fitted to original and copies, as `Model`.
    title
        What the study is about.
    seeds
        The repetitions: each is a fit and a sample of its own.
    copies
        How many files a generator makes in one repetition.
    rows
        How many records a synthetic file has; as many as the training part unless given.
    holdout
        The share of each data set that no generator sees. It is what models are tested on, and the baseline of risk.
    split
        ``"once"``: all repetitions share one hold-out, as in most publications; ``"by seed"``: each has its own.
    references
        Whether the hold-out itself is measured like a release, to show what a perfect generator could reach.
    seed
        What the split, the sample of rows and all repetitions start from.
    time_limit, memory_limit
        Seconds, and megabytes, after which a generator on a data set is given up; not limited unless given.
    keep_files
        Whether the synthetic files are kept beside the results.
    folder
        Where relative paths start; a study file's own folder when it was loaded.

    Examples
    --------
    >>> from discreet.synth import Sequential
    >>> study = Study(data=["adult"], generators={"margins": Sequential(method="sample")}, metrics=["margins"])
    >>> [cell for cell in study.cells()]
    [('adult', 'holdout', 1), ('adult', 'margins', 1)]
    >>> Study.from_dict(study.to_dict()) == study
    True
    """

    data: Sequence[DataSet | str]
    generators: Sequence[Generator] | Mapping[str, Generator | Synthesizer | Treatment]
    metrics: Sequence[Metric | str] = ()
    models: Sequence[Model] = ()
    title: str = ""
    seeds: Sequence[int] = (1,)
    copies: int = 1
    rows: int | None = None
    holdout: float = 0.2
    split: Literal["once", "by seed"] = "once"
    references: bool = True
    time_limit: float | None = None
    memory_limit: float | None = None
    keep_files: bool = False
    folder: Path = field(default=Path(), compare=False)
    seed: int = 1

    def __post_init__(self) -> None:
        # One seed may stand for a list of them, and a path for a folder may be a text.
        check_fields(self, plain=True, but=("seeds", "folder"))
        check(self.seeds, int | Sequence[int], "seeds")
        made = {
            "data": tuple(DataSet(item) if isinstance(item, str) else item for item in _listed(self.data)),
            "generators": tuple(Generator.of(name, maker) for name, maker in self.generators.items())
            if isinstance(self.generators, Mapping)
            else tuple(self.generators),
            "metrics": tuple(
                Metric(item) if isinstance(item, str) else item for item in _listed(self.metrics)
            ),
            "models": tuple(self.models),
            "seeds": tuple([self.seeds] if isinstance(self.seeds, int) else self.seeds),
            "folder": Path(self.folder),
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        for name, least in _NUMBERS.items():
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool | str) or value < least):
                raise ParameterError(f"{name} must be a number of {least} or more.")
        if not isinstance(self.title, str):
            raise ParameterError("title must be a text.")
        if not isinstance(self.holdout, int | float) or not 0 <= self.holdout < 1:
            raise ParameterError("holdout must be a share from 0 to below 1, e.g. 0.2.")
        if self.split not in ("once", "by seed"):
            raise ParameterError("split must be 'once' or 'by seed'.")
        if not self.seeds or any(isinstance(s, bool) or not isinstance(s, int) or s < 0 for s in self.seeds):
            raise ParameterError("seeds must be whole numbers of zero or above, e.g. [1, 2, 3].")
        for what in ("data", "generators"):
            if not getattr(self, what):
                raise ParameterError(f"The study has no {what}. Write them as [[{what.removesuffix('s')}]].")
        every = {"seeds": [str(seed) for seed in self.seeds]}
        every |= {what: [item.name for item in getattr(self, what)] for what in ("data", "generators")}
        every["metrics and models"] = [metric.name for metric in self.asked]
        for what, names in every.items():
            twice = [name for name in names if names.count(name) > 1]
            if twice:
                raise ParameterError(f"'{twice[0]}' stands twice among the {what}. Give each its own name.")
        for item in (*self.generators, *self.asked):
            for name in item.data:
                if name not in every["data"]:
                    raise ParameterError(
                        f"In '{item.name}': {unknown_name(name, every['data'], what='data set')}"
                    )

    @property
    def asked(self) -> tuple[Metric, ...]:
        """The metrics in order, models among them."""
        metrics: Sequence[Any] = self.metrics or usual_metrics()
        return (*metrics, *(model.metric() for model in self.models))

    @property
    def division(self) -> Split:
        """How the data sets are divided."""
        return Split(float(self.holdout), self.seed, self.split == "by seed")

    @property
    def makers(self) -> tuple[Generator, ...]:
        """The generators in order, the hold-out first where it is measured too."""
        given: tuple[Any, ...] = tuple(self.generators)
        has_one = any(item.reference == "holdout" or item.name == "holdout" for item in given)
        if not self.references or self.holdout == 0 or has_one:
            return given
        return (Generator("holdout", reference="holdout"), *given)

    def cells(self) -> list[tuple[str, str, int]]:
        """List what has to be run: data set, generator and seed.

        Files that do not depend on the seed, and references that the seed does not move, are one cell.
        """
        return [
            (data.name, maker.name, seed)
            for data in self.data
            if isinstance(data, DataSet)
            for maker in self.makers
            if not maker.data or data.name in maker.data
            for seed in (self.seeds[:1] if self._is_constant(maker) and not data.design else self.seeds)
        ]

    def _is_constant(self, maker: Generator) -> bool:
        if self.split == "by seed":
            return False
        return maker.reference in ("holdout", "copy") or (
            bool(maker.files) and not any("{seed" in name for name in maker.files)
        )

    @overload
    def named(self, what: Literal["data"], name: str) -> DataSet: ...
    @overload
    def named(self, what: Literal["makers"], name: str) -> Generator: ...
    def named(self, what: Literal["data", "makers"], name: str) -> Any:
        """Return the data set or the generator of that name."""
        return next(item for item in getattr(self, what) if item.name == name)

    def write_training(self, folder: str | Path, *, overwrite: bool = False) -> list[Path]:
        """Write what generators may learn from, and the hold-outs, as CSV files for other tools; return the paths."""
        from discreet.core.files.atomic import make_folder
        from discreet.io import write_together

        place = Path(folder)
        parted: dict[Path, Microdata] = {}
        linked: dict[Path, LinkedTables] = {}
        for data in self.data:
            assert isinstance(data, DataSet)
            anew = self.split == "by seed" or bool(data.design)
            for seed in self.seeds if anew else self.seeds[:1]:
                parts = parts_of(data, self.division, seed, self.folder)
                mark = f"-{seed}" if anew else ""
                for kind, part in (("training", parts.training), ("holdout", parts.holdout)):
                    if isinstance(part, LinkedTables):
                        linked[place / f"{data.name}{mark}-{kind}"] = part
                    elif part is not None:
                        parted[place / f"{data.name}{mark}-{kind}.csv"] = part
        make_folder(place)
        folders = [tables.save(there, overwrite=overwrite) for there, tables in linked.items()]
        return folders + write_together(list(parted.values()), list(parted), overwrite=overwrite)

    def to_dict(self) -> dict[str, Any]:
        """Return the study as it stands in TOML."""
        given: dict[str, Any] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name in ("data", "generators", "metrics", "models", "folder") or value == item.default:
                continue
            given[item.name] = list(value) if isinstance(value, tuple) else value
        for entry, items in (
            ("data", self.data),
            ("generator", self.generators),
            ("metric", self.metrics),
            ("model", self.models),
        ):
            if items:
                given[entry] = [item.to_dict() for item in items]  # type: ignore[union-attr]
        return given

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], *, folder: str | Path = "") -> Study:
        """Make a study from the content of a TOML file."""
        plain = [item.name for item in fields(cls) if item.name not in (*_PLURAL.values(), "folder")]
        given: dict[str, Any] = {"data": (), "generators": (), "folder": Path(folder)}
        for name, value in document.items():
            if name in _TABLES:
                given[_PLURAL[name]] = tuple(_part(name, entry) for entry in _tables(name, value))
            elif name in plain:
                given[name] = value
            else:
                raise ParameterError(f"In the study: {unknown_name(name, (*plain, *_TABLES), what='entry')}")
        return cls(**given)

    @classmethod
    def load(cls, path: str | Path) -> Study:
        """Read a study from a TOML file; relative paths in it start where it lies."""
        place = Path(path)
        document = read_toml(place, "study file")
        try:
            return cls.from_dict(document, folder=place.parent)
        except DiscreetError as error:
            raise type(error)(f"In '{place.name}': {error}") from error

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the study to a TOML file; relative paths are written as seen from there."""
        import tomli_w

        from discreet.io.sidecar import save_text

        moved = self._seen_from(Path(path).parent)
        return save_text(tomli_w.dumps(moved.to_dict()), path, overwrite=overwrite)

    def _seen_from(self, folder: Path) -> Study:
        if folder.resolve() == self.folder.resolve():
            return self

        def seen(name: str) -> str:
            from discreet.io.naming import is_address

            if is_address(name) or Path(name).is_absolute():
                return name
            if name in BUNDLED and not (self.folder / name).exists():
                return name
            return os.path.relpath(self.folder.resolve() / name, folder.resolve())

        data = [
            replace(item, source=seen(item.source), holdout=item.holdout and seen(item.holdout))
            for item in self.data
            if isinstance(item, DataSet)
        ]
        given: tuple[Any, ...] = tuple(self.generators)
        makers = [
            replace(item, plan=item.plan and seen(item.plan), files=tuple(map(seen, item.files)))
            for item in given
        ]
        return replace(self, data=data, generators=makers, folder=folder)


_PLURAL = {"data": "data", "generator": "generators", "metric": "metrics", "model": "models"}


def _listed(items: Any) -> Any:
    return (items,) if isinstance(items, str | DataSet | Metric) else items


def _tables(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
        raise ParameterError(f"In the study: '{name}' is written as tables, [[{name}]], each with a name.")
    return value


def _part(name: str, entry: Mapping[str, Any]) -> Any:
    kind = _TABLES[name]
    given = dict(entry)
    if "step" in given and kind is Generator:
        given["steps"] = tuple(given.pop("step"))
    options = [item.name for item in fields(kind)]
    shown = ["step" if option == "steps" else option for option in options]
    if not isinstance(given.get("name"), str) or not given["name"]:
        raise ParameterError(f'Each [[{name}]] of the study needs a name: name = "…".')
    for option in given:
        if option not in options:
            raise ParameterError(
                f"In [[{name}]] '{given['name']}': {unknown_name(option, shown, what='entry')}"
            )
    try:
        return kind(**given)
    except TypeError as error:
        raise ParameterError(f"[[{name}]] '{given['name']}' cannot be made from this: {error}.") from error
