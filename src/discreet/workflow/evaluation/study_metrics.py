"""The metrics of a study: which measures of the rooms are asked, about what, and which way is better."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from inspect import isfunction
from typing import Any

from discreet.core.cards import Better, all_cards, card_of
from discreet.core.errors import DiscreetError, ParameterError, unknown_name
from discreet.core.findings import NEAR_COPIES, code_of
from discreet.core.method_cards import nested
from discreet.core.parameters import typed_parameters
from discreet.core.randomness import generator
from discreet.core.requests import FileRole, Request, Takes, ask_each, check_settings, takes_of
from discreet.core.results import Measure
from discreet.core.values import jsonable
from discreet.microdata import Microdata
from discreet.synth.table_schema import LinkedTables
from discreet.workflow.evaluation.linked_releases import as_file, seen_apart
from discreet.workflow.evaluation.study_data import Parts, listed

LAYERS = ("global utility", "fit for purpose", "specific utility", "risk", "cost")

_ROOMS = ("utility", "risk", "attack")
_GIVEN = ("seed", "progress")
_WARNINGS = (NEAR_COPIES,)
_BY_CHAPTER = {"joint": LAYERS[0], "specific": LAYERS[2]}


@dataclass(frozen=True)
@typed_parameters
class Metric:
    """One metric of a study.

    Parameters
    ----------
    name
        What it is called in the results.
    measure
        The function: ``"utility.pmse"``, or just ``"pmse"``; the name unless given.
    parameters
        Its parameters, but for the files, the hold-out and the seed, which the study gives.
    figures
        Which of its figures the summary shows; all are kept in the results.
    better
        ``"lower"``, ``"higher"`` or the number to be close to, for the figures whose usual direction is not known.
    detail
        Detail tables to keep with the results. They may hold values of the data.
    data
        The data sets it is for; all of them unless named.
    tables
        Of linked tables: those it is asked about; all that are not public unless named.
    """

    name: str
    measure: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    figures: tuple[str, ...] = ()
    better: Better | None = None
    detail: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("figures", "detail", "data", "tables"):
            object.__setattr__(self, name, listed(getattr(self, name)))
        object.__setattr__(self, "measure", measure_called(self.measure or self.name))
        if self.better is not None and self.better not in ("lower", "higher"):
            if isinstance(self.better, str | bool):
                raise ParameterError(f"Metric '{self.name}': better is 'lower', 'higher' or a number.")
            object.__setattr__(self, "better", float(self.better))
        check_settings(self._function, self.parameters, f"Metric '{self.name}'", but=_GIVEN)

    @property
    def _function(self) -> Callable[..., Measure]:
        return measures_known()[self.measure]

    @property
    def _takes(self) -> Takes:
        return takes_of(self._function)

    @property
    def layer(self) -> str:
        """What it speaks of: global utility, fit for purpose, specific utility or risk."""
        room, _, function = self.measure.partition(".")
        card = card_of(function)
        if room in ("risk", "attack") or (card and card.compare and card.compare.side == "risk"):
            return "risk"
        return _BY_CHAPTER.get(card.chapter if card else "", LAYERS[1])

    @property
    def headlines(self) -> dict[str, Better | None]:
        """The figures of the summary, and which way each is better."""
        card = card_of(self.measure.partition(".")[2])
        figures = card.figures if card else {}
        usual = tuple(name for name, figure in figures.items() if figure.summary)
        return {
            name: self.better
            if self.better is not None
            else (figures[name].better if name in figures else None)
            for name in self.figures or usual or ("value",)
        }

    @property
    def is_about_target(self) -> bool:
        """Whether it needs a target that the study must name."""
        return "target" in self._takes.needed and "target" not in self.parameters

    def describe(self) -> dict[str, Any]:
        """Say what its answer depends on."""
        return {
            "measure": self.measure,
            "parameters": nested(dict(self.parameters)),
            "detail": list(self.detail),
            **({"tables": list(self.tables)} if self.tables else {}),
        }

    def answer(
        self, parts: Parts, copies: Sequence[Any], seed: int, *, is_holdout: bool = False
    ) -> dict[str, Any]:
        """Ask the measure, and give what it says or why it says nothing, ready for JSON."""
        began = time.perf_counter()
        try:
            if self.is_about_target and parts.target is None:
                raise ParameterError("no target was named, and no column is sensitive.")
            if isinstance(parts.training, LinkedTables) and not self._takes.linked_tables:
                return self._table_by_table(parts, copies, seed, is_holdout)
            found = self._asked(parts, copies, seed, is_holdout)
        except DiscreetError as error:
            return {"failed": str(error), "seconds": time.perf_counter() - began}
        except Exception as error:
            # One measure must not take the others down; the text of a foreign error may hold data values.
            reason = f"it broke off with a {type(error).__name__}"
            return {"failed": reason, "seconds": time.perf_counter() - began}
        caveats = sorted({caveat for measure in found for caveat in measure.caveats})
        return {
            "failed": None,
            "figures": jsonable(_figures(found)),
            "caveats": caveats,
            "warnings": [caveat for caveat in caveats if code_of(caveat) in _WARNINGS],
            "detail": {name: _rows(found, name) for name in self.detail},
            "seconds": time.perf_counter() - began,
        }

    def _table_by_table(
        self, parts: Parts, copies: Sequence[Any], seed: int, is_holdout: bool
    ) -> dict[str, Any]:
        """Ask about each of several linked tables, seen with what its parents say; the figures are their means."""
        began = time.perf_counter()
        about, _, column = (parts.target or "").partition(".")
        names = [name for name in parts.training.own if not self.tables or name in self.tables]
        if self.is_about_target:
            names = [name for name in names if name == about]
        answers = {}
        for name in names:
            own, tables = seen_apart(parts, copies, name, column if name == about else None)
            answers[name] = self.answer(own, tables, seed, is_holdout=is_holdout)
        good = {name: answer for name, answer in answers.items() if not answer["failed"]}
        if not good:
            why = next((answer["failed"] for answer in answers.values()), "it was asked about no table.")
            return {"failed": why, "seconds": time.perf_counter() - began}
        kinds = list(dict.fromkeys(figure for answer in good.values() for figure in answer["figures"]))
        return {
            "failed": None,
            "figures": {
                kind: _mean([answer["figures"].get(kind) for answer in good.values()]) for kind in kinds
            },
            "caveats": sorted({said for answer in good.values() for said in answer["caveats"]}),
            "warnings": sorted({said for answer in good.values() for said in answer["warnings"]}),
            "detail": {
                kind: [
                    {"table": name, **row} for name, answer in good.items() for row in answer["detail"][kind]
                ]
                for kind in self.detail
            },
            "tables": {
                name: answer["figures"] if not answer["failed"] else {"failed": answer["failed"]}
                for name, answer in answers.items()
            },
            "seconds": time.perf_counter() - began,
        }

    def _asked(self, parts: Parts, copies: Sequence[Any], seed: int, is_holdout: bool) -> list[Measure]:
        takes, holdout = self._takes, parts.holdout
        if isinstance(parts.training, Microdata):
            copies = [as_file(copy, parts.training, takes.whole_release) for copy in copies]
        if is_holdout and "holdout" in takes.files:
            # Real people stand in for the release, so other real people must be the hold-out.
            copies, holdout = _halves(copies[0])
        defaults = {
            "target": parts.target if self.is_about_target else None,
            "seed": int(generator(seed, "metric", self.measure).integers(2**62)),
            "progress": False,
        }
        pair: dict[FileRole, Any] = {"original": parts.training, "released": list(copies), "holdout": holdout}
        alone: list[dict[FileRole, Any]] = [{"original": copy} for copy in copies]
        return [
            found
            for files in ([pair] if "released" in takes.files else alone)
            for found in ask_each(
                self._function,
                Request({**files, "population": parts.population}, defaults, self.parameters),
            )
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return what differs from the defaults, ready for TOML."""
        given: dict[str, Any] = {"name": self.name}
        if self.measure.partition(".")[2] != self.name:
            given["measure"] = self.measure
        for name in ("figures", "better", "detail", "data", "tables", "parameters"):
            value = getattr(self, name)
            if value not in (None, (), {}):
                given[name] = nested(value)
        return given


@dataclass(frozen=True)
@typed_parameters
class Model:
    """A regression that users of the data would fit; see `discreet.utility.compare_model`.

    Parameters
    ----------
    name
        What it is called in the results.
    formula
        ``"income ~ age + sex"``.
    family
        ``"linear"``, ``"logistic"``, ``"poisson"`` or ``"multinomial"``.
    data
        The data sets it is for; all of them unless named.
    parameters
        Other parameters of `discreet.utility.compare_model`.
    """

    name: str
    formula: str
    family: str = "linear"
    data: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", listed(self.data))
        self.metric()

    def metric(self) -> Metric:
        """Return the metric that fits it to both files and compares the coefficients."""
        given = {"formula": self.formula, "family": self.family, **self.parameters}
        return Metric(self.name, "utility.compare_model", given, data=self.data)

    def to_dict(self) -> dict[str, Any]:
        """Return what differs from the defaults, ready for TOML."""
        given: dict[str, Any] = {"name": self.name, "formula": self.formula}
        if self.family != "linear":
            given["family"] = self.family
        for name in ("data", "parameters"):
            if getattr(self, name):
                given[name] = nested(getattr(self, name))
        return given


def usual_metrics() -> tuple[Metric, ...]:
    """Return the metrics of a study that names none.

    Examples
    --------
    >>> [metric.name for metric in usual_metrics()][:4]
    ['pmse', 'detection', 'tabular', 'margins']
    """
    asked = [(card, card.study) for card in all_cards(asked="study") if card.study is not None]
    return tuple(
        Metric(card.name, parameters=study.parameters)
        for card, study in sorted(asked, key=lambda one: one[1].order)
    )


@cache
def measures_known() -> dict[str, Callable[..., Measure]]:
    """Return the measures that a study can ask, by their full names."""
    offered = [
        (room, getattr(importlib.import_module(f"discreet.{room}"), name)) for room, name in _offered()
    ]
    offered += [(card.room, card.function) for card in all_cards()]
    return {
        f"{room}.{thing.__name__}": thing for room, thing in offered if isfunction(thing) and _compares(thing)
    }


def _offered() -> Iterator[tuple[str, str]]:
    for room in _ROOMS:
        for name in importlib.import_module(f"discreet.{room}").__all__:
            yield room, name


def measure_called(name: str) -> str:
    """Find the full name of a measure, or say which there are."""
    known = measures_known()
    if name in known:
        return name
    short = {full.partition(".")[2]: full for full in known}
    if name in short:
        return short[name]
    raise ParameterError(unknown_name(name, known if "." in name else short, what="measure"))


def _compares(thing: Callable[..., Any]) -> bool:
    """Whether a function takes an original and its release, or one released file."""
    takes = takes_of(thing)
    pair = {"original", "released"} <= {*takes.files.values()}
    return takes.measures and (pair or takes.files.get("original") == "data")


def _halves(data: Microdata) -> tuple[list[Microdata], Microdata]:
    from discreet import engine

    frame = engine.whole_frame(data)
    # Every second record: the file may be sorted.
    return [data.with_frame(frame.gather_every(2))], data.with_frame(frame.gather_every(2, offset=1))


def _figures(found: Sequence[Measure]) -> dict[str, Any]:
    """Average the figures over copies; words and answers of yes and no are those of the first."""
    tables = [{"value": measure.value, **measure.figures} for measure in found]
    averaged: dict[str, Any] = {}
    for name, first in tables[0].items():
        values = [table.get(name) for table in tables]
        numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
        if len(values) == 1 or isinstance(first, bool | str):
            averaged[name] = first
        else:
            averaged[name] = sum(numbers) / len(numbers) if numbers else None
    return averaged


def _mean(values: Sequence[Any]) -> Any:
    """Average what numbers there are; other answers are those of the first table."""
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    return sum(numbers) / len(numbers) if numbers else next((v for v in values if v is not None), None)


def _rows(found: Sequence[Measure], name: str) -> list[dict[str, Any]]:
    import narwhals as nw

    return [
        {"copy": copy, **{column: jsonable(value) for column, value in row.items()}}
        for copy, measure in enumerate(found, start=1)
        for row in nw.from_native(measure.detail[name], eager_only=True).iter_rows(named=True)
    ]
