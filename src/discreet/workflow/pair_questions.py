"""Which measures a comparison asks for, what each needs, and how large files are kept from taking long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from discreet import engine
from discreet.core.cards import Card, OfPair, all_cards, card_of
from discreet.core.errors import DiscreetError, InputError, ParameterError, unknown_name
from discreet.core.randomness import Seed, generator
from discreet.core.requests import FileRole, Request, check_settings, worst_of
from discreet.core.results import Measure
from discreet.engine import Missing
from discreet.engine.precision import Setting
from discreet.microdata import Microdata
from discreet.policy import Rule
from discreet.utility.sampled_measures import with_interval, without_tenth
from discreet.workflow.aligning import AlignedFiles
from discreet.workflow.questions import HOLDOUT, HOLDOUT_OR_MODEL, IN_MEMORY, LABELS, MODEL, TARGET, Lack


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
    whole: PairCase | None = None
    """Where the files are too large to hold and this is a sample of them: the files where they are, to be counted."""
    sampled_only: tuple[str, ...] = ()
    """Columns of the sample that cannot be counted over the whole files."""
    readings: tuple[Reading, ...] = ()
    """The same files with the release in the writing of the original, where it is written otherwise."""
    unexplained: tuple[str, ...] = ()
    """Columns that only the release has and of which nobody can say what they hold."""
    jointly: int = 1
    """Over how many attacks together what is sure must hold."""

    def a_sample_of(self, files: AlignedFiles, sampled_only: tuple[str, ...]) -> PairCase:
        """Say of which files this is a sample."""
        whole = replace(
            self,
            files=files,
            keys=tuple(key for key in self.keys if key not in sampled_only),
            sensitive=tuple(name for name in self.sensitive if name not in sampled_only),
        )
        return replace(self, whole=whole, sampled_only=sampled_only)

    def without_tenth(self, own: int) -> PairCase:
        """Leave a tenth of the records out, of linked files the same one."""

        def rest(data: Microdata | None) -> Microdata | None:
            return None if data is None else without_tenth(data, own, self.ids)

        files = self.files
        original, copies = rest(files.original), tuple(rest(copy) for copy in files.copies)
        fewer: dict[str, Any] = {"original": original, "copies": copies, "holdout": rest(files.holdout)}
        return replace(
            self,
            files=replace(files, recoded=rest(files.recoded), told=rest(files.told), **fewer),
            whole=None,
        )

    def of_copy(self, place: int) -> PairCase:
        """Look at one copy of the release by itself."""
        return replace(
            self,
            files=replace(self.files, copies=(self.files.copies[place],)),
            whole=None if self.whole is None else self.whole.of_copy(place),
            readings=tuple(replace(one, case=one.case.of_copy(place)) for one in self.readings),
        )

    @property
    def linked(self) -> bool:
        """Whether the records of both files belong together."""
        return self.files.alignment.linked

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that can be compared."""
        return tuple(self.files.columns)

    @property
    def wanted(self) -> tuple[str, ...]:
        """The columns that were to be compared, also those that one file lacks."""
        return tuple(self.files.wanted)

    @property
    def holdout(self) -> Microdata | None:
        """People who were not used to make the release."""
        return self.files.holdout

    @cached_property
    def sizes(self) -> tuple[int, int]:
        """The numbers of records."""
        return (
            engine.overview(self.files.original, ()).rows,
            engine.overview(self.files.copies[0], ()).rows,
        )

    def of_one_type(self, *, dates_alone: bool = False) -> tuple[PairCase, str | None]:
        """Leave the columns out that hold numbers in one file and labels in the other, and say so.

        With ``dates_alone`` only dates beside labels: numbers and labels can be compared as labels, dates cannot.
        """
        schema = self.files.original.schema
        mixed = [name for name in self.files.mixed if not dates_alone or schema[name].is_temporal()]
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
            return engine.drawn_from(data.with_frame(engine.collect(data, data.columns)[chosen]), data)

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
class Reading:
    """A release read back into the writing of the original, and what was read how."""

    case: PairCase
    how: str
    sure: bool = True
    """False where it rests on a guess: what is found so leaves a rule open, and refuses nothing."""


@dataclass(frozen=True)
class PairQuestion:
    """One measure of a comparison, and what its card says it needs."""

    card: Card
    needs: OfPair

    @property
    def name(self) -> str:
        """The name of the measure."""
        return self.card.name

    @property
    def side(self) -> str:
        """Whether it speaks of utility or of risk."""
        return self.needs.side

    @property
    def any_size(self) -> bool:
        """Whether it can be asked of files that are too large to hold, because it counts them where they are."""
        return self.card.work == "class-wise" or self.needs.any_size

    def wants(self, setting: str, parameters: Mapping[str, Any] = MappingProxyType({})) -> bool:
        """Whether it cannot do without a setting that nobody has named."""
        return setting in self.card.takes.needed and setting not in parameters

    def gap(self, case: PairCase, parameters: Mapping[str, Any]) -> str | None:
        """Say what is missing for this question, or None when it can be asked."""
        if case.whole is not None:
            if self.any_size:
                return self.gap(case.whole, parameters)
            if self._needs_memory(case):
                return (
                    "the files are too large to hold, and in a sample hardly anybody meets the records that give them "
                    "away: ask it of files in memory"
                )
        if self.needs.keys and not case.keys:
            return "no keys were named that both files have"
        if self.needs.sensitive and not case.sensitive:
            return "no sensitive column was named that both files have"
        unread = self.unread(case)
        if unread:
            return f"the release has labels of its own in {unread[0]!r}, and the files do not show what they stand for"
        if self.needs.linked and not case.linked:
            return "the records of the two files are not linked"
        if self.wants("formula", parameters) and not case.models:
            return "no model was named: models=… in Python, --model on the command line"
        if self.wants("target", parameters):
            return f"no target was named (measures={{'{self.name}': {{'target': …}}}})"
        if self.needs.two_columns and len(case.files.columns) < 2:
            return "it needs two columns or more"
        if self.needs.one_type and set(case.files.columns) <= set(case.files.mixed):
            return "every column holds numbers in one file and labels in the other"
        return None

    def _needs_memory(self, case: PairCase) -> bool:
        return case.whole is not None and not self.any_size and self.side == "risk"

    def unread(self, case: PairCase) -> list[str]:
        """Name the columns of the question whose labels in the release nobody can hold against the original."""
        asked = [*(case.keys if self.needs.keys else ()), *(case.sensitive if self.needs.sensitive else ())]
        unread = set(case.files.unread)
        unread = unread.intersection(*(one.case.files.unread for one in case.readings if one.sure))
        return [name for name in asked if name in unread]

    def input_lacking(self, case: PairCase, parameters: Mapping[str, Any]) -> Lack | None:
        """Name the input that only whoever asks can give, and has not; what the files themselves lack is a gap."""
        if self._needs_memory(case):
            rows = max((case.whole or case).sizes)
            return replace(
                IN_MEMORY, command=f"discreet compare ORIGINAL RELEASE --policy POLICY --rows {rows}"
            )
        if self.wants("formula", parameters) and not case.models:
            return MODEL
        if self.wants("target", parameters):
            return TARGET
        if self.needs.judged_by_holdout and case.files.holdout is None:
            return HOLDOUT_OR_MODEL if self.needs.without == "cross-fit" else HOLDOUT
        if self.unread(case):
            return LABELS
        return None

    def check_parameters(self, parameters: Mapping[str, Any], where: str) -> None:
        """Refuse a setting that the measure does not have."""
        check_settings(self.card.function, parameters, where)

    def answer(self, case: PairCase, parameters: Mapping[str, Any]) -> Measure:
        """Ask the question, with the parameters of the user or the policy before the usual ones.

        What is given away about people is asked of each copy by itself, and also of the release as it can be read back;
        the worst answer counts.
        """
        copies = len(case.files.copies)
        if copies > 1 and self.side == "risk":
            answers = [self.answer(case.of_copy(place), parameters) for place in range(copies)]
            return worst_of(answers, self.card.badness)
        readings = [
            one
            for one in case.readings
            if one.sure and self.side == "risk" and self.gap(one.case, parameters) is None
        ]
        found: Measure | None = None
        try:
            found = self._answer(case, parameters)
        except DiscreetError:
            # As it is written nothing can be looked up in it; read back it can.
            if not readings:
                raise
        for reading in readings:
            other = self._answer(reading.case, parameters)
            if found is None or self.card.badness(other) > self.card.badness(found):
                found = replace(other, caveats=[f"For this answer {reading.how}.", *other.caveats])
        assert found is not None
        return found

    def _answer(self, case: PairCase, parameters: Mapping[str, Any]) -> Measure:
        if case.whole is not None:
            return self._of_large(case, case.whole, parameters)
        case, mixed = self._as_seen(case)
        case, note = (
            (case, None) if self.needs.most is None else case.at_most(self.needs.most, together=case.linked)
        )
        found = self.card.ask(self._request(case, parameters))
        if note:
            found = replace(found, caveats=[note, *found.caveats])
        return replace(found, name=self.name, caveats=[*([mixed] if mixed else []), *found.caveats])

    def _as_seen(self, case: PairCase) -> tuple[PairCase, str | None]:
        """Give the files in the form in which the measure sees them, and say which columns that leaves out."""
        seen = case.files.told if self.needs.keys and case.files.told is not None else case.files.recoded
        if seen is not None and not self.needs.as_it_was:
            holdout = case.files.coarse_holdout or case.files.holdout
            case = replace(case, files=replace(case.files, original=seen, holdout=holdout))
        return case.of_one_type(dates_alone=not self.needs.one_type)

    def _request(self, case: PairCase, parameters: Mapping[str, Any]) -> Request:
        """Give the files with what is known of them; the settings of the user or the policy go before."""
        files: dict[FileRole, Any] = {
            "original": case.files.original,
            "released": list(case.files.copies),
            "holdout": case.files.holdout,
        }
        defaults = {
            "formula": case.models,
            "columns": list(case.files.columns),
            "categorical": [name for name in case.categorical if name in case.files.columns],
            "keys": list(case.keys) or None,
            "sensitive": list(case.sensitive) or None,
            "missing": case.missing if case.missing != "wildcard" else None,
            "precision": case.precision,
            "seed": case.seed,
            "jointly": case.jointly,
            "progress": False,
        }
        usual = self.needs.settings(case) if self.needs.settings else {}
        return Request(files, {**defaults, **usual}, parameters)

    def _of_large(self, case: PairCase, whole: PairCase, parameters: Mapping[str, Any]) -> Measure:
        """Let a measure of any size count the whole files, or measure the sample and say how far off that may be."""
        if self.any_size:
            return self._of_whole(case, whole, parameters)
        held = replace(case, whole=None)
        sizes = min(zip(held.sizes, whole.sizes, strict=True), key=lambda pair: pair[0] / pair[1])

        def without(own: int) -> Measure:
            return self._answer(held.without_tenth(own), parameters)

        found = self._answer(held, parameters)
        return with_interval(found, None if self.needs.by_size else without, [sizes])

    def _of_whole(self, case: PairCase, whole: PairCase, parameters: Mapping[str, Any]) -> Measure:
        """Ask about the files where they are, but for columns whose values cannot be brought to one form there."""
        if self.needs.as_it_was:
            # Whoever sees the values of before needs no labels for them.
            files = replace(whole.files, alignment=case.files.alignment, mixed=case.files.mixed)
            return self.answer(
                replace(whole, files=files, keys=case.keys, sensitive=case.sensitive), parameters
            )
        if not case.sampled_only:
            return self.answer(whole, parameters)
        named = parameters.get("columns")
        if named is not None:
            named = [named] if isinstance(named, str) else named
            parameters = {
                **parameters,
                "columns": [name for name in named if name not in case.sampled_only],
            }
        if not (whole.files.columns if named is None else parameters["columns"]):
            raise InputError("The values of no column can be brought to one form where the data is.")
        found = self.answer(whole, parameters)
        listed = ", ".join(map(repr, case.sampled_only))
        said = (
            f"Left out here, because their values cannot be brought to one form where the data is: {listed}."
        )
        return replace(found, caveats=[said, *found.caveats])


def as_ruled(case: PairCase, rules: Sequence[Rule]) -> PairCase:
    """Let what attacks show be sure over all attack rules of a policy, all copies, and all ways to read them."""
    attacks = {rule.measure for rule in rules if (card := card_of(rule.measure)) and card.room == "attack"}
    jointly = max(len(attacks), 1) * len(case.files.copies) * (1 + len(case.readings))
    readings = tuple(replace(one, case=replace(one.case, jointly=jointly)) for one in case.readings)
    return replace(case, jointly=jointly, readings=readings)


def by_name() -> dict[str, PairQuestion]:
    """Return what a comparison can ask, in the order in which it is asked and shown."""
    asked = [
        PairQuestion(card, card.compare) for card in all_cards(asked="compare") if card.compare is not None
    ]
    return {question.name: question for question in sorted(asked, key=lambda one: one.needs.order)}


def chosen(
    measures: str | Sequence[str] | Mapping[str, Mapping[str, Any] | None] | None,
    needed: Sequence[str],
    parameters: Mapping[str, Mapping[str, Any]],
    *,
    attacks: bool = False,
) -> list[tuple[PairQuestion, dict[str, Any], bool]]:
    """List the questions, the settings of each, and whether the user named it; a policy adds what its rules need.

    With ``attacks`` the attacks are among them that a comparison leaves out otherwise.
    """
    named: dict[str, dict[str, Any]] = {}
    if isinstance(measures, str):
        named = {measures: {}}
    elif isinstance(measures, Mapping):
        named = {name: dict(settings or {}) for name, settings in measures.items()}
    elif measures is not None:
        named = {name: {} for name in measures}
    known = by_name()
    for name in (*named, *needed):
        if name not in known:
            raise ParameterError(unknown_name(name, known, what="measure of a comparison"))
    whole = measures is None or isinstance(measures, Mapping)
    found = []
    for question in known.values():
        usual = whole and question.needs.usual
        tried = attacks and question.card.room == "attack"
        wanted = question.name in named or question.name in needed or usual or tried
        if not wanted:
            continue
        own = named.get(question.name, {})
        question.check_parameters(own, f"measures, '{question.name}'")
        ruled = dict(parameters.get(question.name, {})) if question.name in needed else {}
        question.check_parameters(ruled, f"The policy, under [parameters.{question.name}]")
        found.append((question, {**own, **ruled}, question.name in named))
    return found
