"""Which measures a comparison asks for, what each needs, and how large files are kept from taking long."""

from __future__ import annotations

import inspect as python_inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from discreet import engine, risk, utility
from discreet.engine import Missing
from discreet.errors import ParameterError, unknown_name
from discreet.microdata import Microdata
from discreet.pairs.precision import Setting
from discreet.parameters import check, function_hints
from discreet.randomness import Seed, generator
from discreet.results import Measure
from discreet.risk.linkage_and_distance.nearest_neighbors import closeness_in_words, share_closer_than_holdout
from discreet.workflow.aligning import AlignedFiles

_MOST_FOR_TREES = 50_000
_MOST_FOR_DISTANCES = 5_000
_MOST_FOR_LOGIT = 50_000
_FILES = ("original", "released", "formula")


LABELS = "to know which values its labels stand for"


@dataclass(frozen=True)
class PairCase:
    """What an original and one release have to offer to a measure."""

    files: AlignedFiles
    keys: tuple[str, ...]
    sensitive: tuple[str, ...]
    categorical: tuple[str, ...] = ()
    ids: str | None = None
    missing: Missing = "category"
    seed: Seed = 0
    models: Any = None
    precision: Setting = None

    @property
    def linked(self) -> bool:
        """Whether the records of both files belong together."""
        return self.files.alignment.linked

    @cached_property
    def sizes(self) -> tuple[int, int]:
        """The numbers of records."""
        return (
            engine.overview(self.files.original, ()).rows,
            engine.overview(self.files.copies[0], ()).rows,
        )

    def of_one_type(self) -> tuple[PairCase, str | None]:
        """Leave the columns out that hold numbers in one file and labels in the other, and say so."""
        mixed = self.files.mixed
        if not mixed:
            return self, None
        kept = tuple(name for name in self.files.columns if name not in mixed)
        files = replace(self.files, alignment=replace(self.files.alignment, columns=kept))
        keys = tuple(key for key in self.keys if key not in mixed)
        listed = ", ".join(map(repr, mixed))
        return replace(self, files=files, keys=keys), (
            f"Left out here, because the two files hold different kinds of values in them: {listed}."
        )

    def at_most(self, most: int, *, together: bool = False) -> tuple[PairCase, str | None]:
        """Sample files that are larger than this down to it, and say so; linked ones by the same records."""
        if max(self.sizes) <= most:
            return self, None

        def sampled(data: Microdata, name: str) -> Microdata:
            rows = engine.overview(data, ()).rows
            if rows <= most:
                return data
            rng = generator(self.seed, "compare", "sample", "all" if together else name)
            chosen = np.sort(rng.choice(rows, most, replace=False))
            return data.with_frame(engine.collect(data, data.columns)[chosen])

        copies = tuple(sampled(copy, f"copy {place}") for place, copy in enumerate(self.files.copies))
        holdout = None if self.files.holdout is None else sampled(self.files.holdout, "holdout")
        files = replace(
            self.files, original=sampled(self.files.original, "original"), copies=copies, holdout=holdout
        )
        note = (
            f"For speed it was computed on {most:,} records drawn at random from each larger file; run it by itself "
            "for all of them."
        )
        return replace(self, files=files), note


@dataclass(frozen=True)
class PairQuestion:
    """One measure of a comparison: under which name, from which room, and what it needs."""

    name: str
    side: Literal["utility", "risk"]
    function: str = ""
    usual: bool = True
    keys: bool = False
    sensitive: bool = False
    linked: bool = False
    models: bool = False
    target: bool = False
    two_columns: bool = False
    takes_copies: bool = True
    one_type: bool = False
    as_it_was: bool = False
    most: int | None = None

    @property
    def ask(self) -> Callable[..., Measure]:
        """The measure itself."""
        name = self.function or self.name
        measure: Callable[..., Measure] = getattr(utility if name in utility.__all__ else risk, name)
        return measure

    def gap(self, case: PairCase, parameters: Mapping[str, Any]) -> str | None:
        """Say what is missing for this question, or None when it can be asked."""
        if self.keys and not case.keys:
            return "no keys were named that both files have"
        if self.sensitive and not case.sensitive:
            return "no sensitive column was named that both files have"
        unread = self.unread(case)
        if unread:
            return f"the release has labels of its own in {unread[0]!r}, and the files do not show what they stand for"
        if self.linked and not case.linked:
            return "the records of the two files are not linked"
        if self.models and not (case.models or "formula" in parameters):
            return "no model was named: models=… in Python, --model on the command line"
        if self.target and "target" not in parameters:
            return f"no target was named (measures={{'{self.name}': {{'target': …}}}})"
        if self.two_columns and len(case.files.columns) < 2:
            return "it needs two columns or more"
        if self.one_type and set(case.files.columns) <= set(case.files.mixed):
            return "every column holds numbers in one file and labels in the other"
        return None

    def unread(self, case: PairCase) -> list[str]:
        """Name the columns of the question whose labels in the release nobody can hold against the original."""
        asked = [*(case.keys if self.keys else ()), *(case.sensitive if self.sensitive else ())]
        return [name for name in asked if name in case.files.unread]

    def input_lacking(self, case: PairCase, parameters: Mapping[str, Any]) -> str | None:
        """Name the input that only whoever asks can give, and has not; what the files themselves lack is a gap."""
        if self.models and not (case.models or "formula" in parameters):
            return "a model that users would fit"
        if self.target and "target" not in parameters:
            return "a target to predict"
        if self.unread(case):
            return LABELS
        return None

    def check_parameters(self, parameters: Mapping[str, Any], where: str) -> None:
        """Refuse a setting that the measure does not have."""
        known = python_inspect.signature(self.ask).parameters
        for name, value in parameters.items():
            if name not in known or name in _FILES:
                options = [option for option in known if option not in _FILES]
                raise ParameterError(f"{where}: {unknown_name(name, options, what='parameter')}")
            check(value, function_hints(self.ask).get(name, Any), name, where=where)

    def answer(self, case: PairCase, parameters: Mapping[str, Any]) -> Measure:
        """Ask the question, with the parameters of the user or the policy before the usual ones."""
        seen = case.files.told if self.keys and case.files.told is not None else case.files.recoded
        if seen is not None and not self.as_it_was:
            case = replace(case, files=replace(case.files, original=seen))
        case, mixed = case.of_one_type() if self.one_type else (case, None)
        whole = case
        case, note = (case, None) if self.most is None else case.at_most(self.most, together=case.linked)
        known = python_inspect.signature(self.ask).parameters
        offered = {
            "columns": list(case.files.columns),
            "categorical": [name for name in case.categorical if name in case.files.columns],
            "keys": list(case.keys) or None,
            "sensitive": list(case.sensitive) or None,
            "holdout": case.files.holdout,
            "missing": case.missing if case.missing != "wildcard" else None,
            "precision": case.precision,
            "seed": case.seed,
            "progress": False,
        }
        given = {name: value for name, value in offered.items() if name in known and value is not None}
        given |= _usual(self.name, case)
        given |= parameters
        given = {name: value for name, value in given.items() if value is not _UNSET}
        formula = [given.pop("formula", case.models)] if self.models else []
        copies = case.files.copies
        if self.takes_copies:
            released: Any = copies[0] if len(copies) == 1 else list(copies)
            found = self.ask(*formula, case.files.original, released, **given)
        else:
            found = _mean([self.ask(case.files.original, copy, **given) for copy in copies])
        if note:
            found = replace(found, caveats=[note, *found.caveats])
            if self.name == "neighbours":
                found = _of_samples(found, whole, copies[0], given)
        return replace(found, name=self.name, caveats=[*([mixed] if mixed else []), *found.caveats])


def _usual(name: str, case: PairCase) -> dict[str, Any]:
    """Give the settings that differ from those of the measure by itself, because here it is one of many."""
    aligned = case.linked and case.ids is None
    if name == "information_loss":
        return {
            "columns": list(case.files.wanted),
            "ids": case.ids,
            "aligned": None if case.ids else case.linked,
        }
    if name == "tabular":
        return {"ways": (1, 2) if len(case.files.columns) > 1 else 1}
    if name == "pmse":
        return {"model": "cart", "n_perm": 10, "aligned": aligned}
    if name == "pmse_logit":
        large = sum(case.sizes) > _MOST_FOR_LOGIT
        return {"model": "linear" if large else "logit", "interactions": 0, "aligned": aligned}
    if name == "disclosure":
        return {"targets": list(case.sensitive) or None}
    if name == "linkage":
        # The names of the two functions for the same thing differ; the rows are in order unless there is an id.
        known = case.keys or tuple(case.files.columns)
        return {"columns": list(known), "ids": case.ids, "missing": _UNSET}
    return {}


_UNSET: Any = object()

QUESTIONS = (
    PairQuestion("information_loss", "utility", takes_copies=False, as_it_was=True),
    PairQuestion("margins", "utility"),
    PairQuestion("tabular", "utility"),
    PairQuestion("dependence", "utility", two_columns=True),
    PairQuestion("pmse", "utility", most=_MOST_FOR_TREES),
    PairQuestion("pmse_logit", "utility", function="pmse"),
    PairQuestion("compare_model", "utility", models=True),
    PairQuestion("train_on_synthetic", "utility", one_type=True, usual=False, target=True),
    PairQuestion("importance_shift", "utility", one_type=True, usual=False, target=True),
    PairQuestion("gini_change", "utility", one_type=True, usual=False, target=True, takes_copies=False),
    PairQuestion("transport", "utility", usual=False, takes_copies=False),
    PairQuestion("replicated_uniques", "risk", keys=True),
    PairQuestion("attribution", "risk", keys=True, sensitive=True),
    PairQuestion("disclosure", "risk", keys=True, sensitive=True),
    PairQuestion("replicated_special_uniques", "risk", usual=False, keys=True, takes_copies=False),
    PairQuestion("group_disclosure", "risk", usual=False, keys=True, sensitive=True, takes_copies=False),
    PairQuestion("outliers", "risk", one_type=True, usual=False, takes_copies=False),
    PairQuestion("linkage", "risk", one_type=True, linked=True, takes_copies=False, most=_MOST_FOR_DISTANCES),
    PairQuestion("near_copies", "risk", one_type=True, takes_copies=False),
    PairQuestion("new_rows", "risk", one_type=True, takes_copies=False),
    PairQuestion("neighbours", "risk", one_type=True, takes_copies=False, most=_MOST_FOR_DISTANCES),
)
"""In the order in which they are asked and shown."""

BY_NAME = {question.name: question for question in QUESTIONS}


def chosen(
    measures: str | Sequence[str] | Mapping[str, Mapping[str, Any] | None] | None,
    needed: Sequence[str],
    parameters: Mapping[str, Mapping[str, Any]],
) -> list[tuple[PairQuestion, dict[str, Any], bool]]:
    """List the questions, the settings of each, and whether the user named it; a policy adds what its rules need."""
    named: dict[str, dict[str, Any]] = {}
    if isinstance(measures, str):
        named = {measures: {}}
    elif isinstance(measures, Mapping):
        named = {name: dict(settings or {}) for name, settings in measures.items()}
    elif measures is not None:
        named = {name: {} for name in measures}
    for name in (*named, *needed):
        if name not in BY_NAME:
            raise ParameterError(unknown_name(name, BY_NAME, what="measure of a comparison"))
    whole = measures is None or isinstance(measures, Mapping)
    found = []
    for question in QUESTIONS:
        wanted = question.name in named or question.name in needed or (whole and question.usual)
        if not wanted:
            continue
        own = named.get(question.name, {})
        question.check_parameters(own, f"measures, '{question.name}'")
        ruled = dict(parameters.get(question.name, {})) if question.name in needed else {}
        question.check_parameters(ruled, f"The policy, under [parameters.{question.name}]")
        found.append((question, {**own, **ruled}, question.name in named))
    return found


def _mean(measures: Sequence[Measure]) -> Measure:
    """Average a measure over copies, where it does not do so by itself; the tables are those of the first copy."""
    first = measures[0]
    if len(measures) == 1:
        return first

    def mean(values: Sequence[Any]) -> Any:
        numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
        return float(np.mean(numbers)) if len(numbers) == len(values) else values[0]

    return replace(
        first,
        value=mean([measure.value for measure in measures]),
        figures={name: mean([measure.figures.get(name) for measure in measures]) for name in first.figures},
        caveats=[
            f"Means over {len(measures)} copies; the sentence, the pictures and the tables are of the first.",
            *first.caveats,
        ],
    )


def _of_samples(found: Measure, whole: PairCase, asked: Microdata, settings: Mapping[str, Any]) -> Measure:
    """Mend what samples get wrong: a record drawn has lost the original it may be a copy of.

    Whether the release keeps closer to the original than to the hold-out is asked again about everybody; what counts
    the originals that are hit or repeated is left out.
    """
    figures = {
        name: None
        if name.startswith(("identical", "hitting")) or name == "epsilon_identifiability"
        else figure
        for name, figure in found.figures.items()
    }
    if whole.files.holdout is None:
        return replace(
            found, figures=figures, meaning=closeness_in_words(figures, engine.overview(asked, ()).rows)
        )
    known = {name: settings[name] for name in ("columns", "categorical", "precision") if name in settings}
    closer = share_closer_than_holdout(
        whole.files.original,
        asked,
        whole.files.holdout,
        distance=settings.get("distance", "gower"),
        **known,
    )
    figures["dcr_share_closer_than_holdout"] = closer.share
    return replace(
        found,
        value=closer.share,
        figures=figures,
        meaning=closeness_in_words(figures, engine.overview(asked, ()).rows),
    )
