"""Swap sensitive values between groups of people until no group gives one of them away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.citations import DALENIUS_REISS_1982
from discreet.core.constraints import ColumnNames
from discreet.core.errors import ParameterError
from discreet.core.method_cards import method
from discreet.core.parameters import keep_as_tuples
from discreet.core.values import named_among
from discreet.dp.entropy import Stream
from discreet.engine.comparable import distinct_values
from discreet.microdata import Microdata
from discreet.protect.coded_columns import Pieces, Watched, crossed
from discreet.protect.privacy_models import AlphaK, KAnonymity, KMap, PrivacyModel, TCloseness, models_of
from discreet.protect.treatment import Change, Treatment

_MOST_ROUNDS, _MOST_FAILURES = 100, 12
_COMMON = 24
_MOST_CELLS = 5_000_000  # so many classes times values are counted in one array
_PART = 0.2
_WISHES = 40
_SLACK = 1e-9


@method(
    aim="sensitive values",
    work="whole-file",
    references=(
        "Wong, R. C.-W., Li, J., Fu, A. W.-C. and Wang, K. (2006). (alpha, k)-anonymity: an enhanced "
        "k-anonymity model for privacy preserving data publishing. KDD 2006, 754–759.",
        DALENIUS_REISS_1982,
    ),
    tells=("moved", "still_broken"),
)
@dataclass(frozen=True)
class ClassSwap(Treatment):
    """Swap sensitive values between classes until none gives a value away.

    It protects against being sure of a sensitive value of everybody who shares some keys, although nobody was
    picked out: a class in which all have the same illness tells it of each of them.

    A class that breaks a model gives the value that it has too often, and gets another one for it from a record of a
    class that can spare it; classes that stand near each other in the order of the keys come first. A swap that would
    make a class break the model that did not before is taken back. Only as many values move as the models need.

    Also known as: sensitive value swapping.

    Parameters
    ----------
    models
        Privacy models on sensitive columns that every class must meet, e.g. ``AlphaK("income", 0.9)``,
        ``LDiversity("illness", 2)``, ``TCloseness("pay", 0.4)``. Each column is swapped on its own.
    keys
        The columns that make the classes; the keys of the data unless named. Apply it after the keys have their
        final form: a later step on the keys makes other classes.

    Notes
    -----
    Records without any known key are in no class and stay as they are. Where the file has too few other values to
    go round (nine in ten people have one, and classes of five must not all have it) some classes are left, and the log
    says how many. Swaps are drawn at random, so that nobody can say which of the values in a class were moved.

    What it costs
    -------------
    Some values stand with another person. Counts of each column stay exactly the same; relations with the keys grow
    weaker in the classes that were too sure, and stay in the others.

    When not to use it
    ------------------
    Do not use it where single impossible combinations do harm (a child with a pension), or where several columns
    describe one fact: each is swapped on its own. An intruder who knows that this step was used may hold a lone value
    in a small class for one that was moved there. It does not make anybody harder to find.

    Examples
    --------
    >>> from discreet.protect import AlphaK
    >>> people = pl.DataFrame({"town": ["a"] * 4 + ["b"] * 4, "ill": ["y"] * 4 + ["n"] * 4})
    >>> made = ClassSwap(AlphaK("ill", 0.8)).apply(Microdata(people, keys="town"), seed=1).data.frame
    >>> made.group_by("town").agg(ill=(pl.col("ill") == "y").sum()).sort("town").rows()
    [('a', 3), ('b', 1)]
    """

    models: Sequence[PrivacyModel] | PrivacyModel
    keys: ColumnNames | None = None

    def __post_init__(self) -> None:
        models = models_of(self.models)
        object.__setattr__(self, "models", models)
        for model in models:
            if isinstance(model, KAnonymity | KMap) or not model.columns:
                raise ParameterError(
                    f"Among models: {model.name} is about the size of classes, and swaps do not change it. Name models "
                    "on sensitive columns; use local-suppression or mondrian for the size."
                )
        keep_as_tuples(self, "keys")

    def treat(self, data: Microdata, stream: Stream) -> Change:
        """Mend column after column."""
        keys = engine.resolve_keys(data, self.keys)
        by_column: dict[str, list[PrivacyModel]] = {}
        for model in models_of(self.models):
            for column in model.columns:
                engine.resolve_sensitive(data, column, keys)
                by_column.setdefault(column, []).append(model)
        table = engine.collect(data, [*keys, *by_column])
        owners = crossed(table.select(keys))[0]
        somewhere = table.select(pl.any_horizontal(pl.col(keys).is_not_null())).to_series().to_numpy()
        units = engine.unit_column(data)
        columns, moved, left = {}, {}, {}
        for column, models in by_column.items():
            mending = _Mending(owners, somewhere, units, table[column], models)
            source = mending.run(stream(column))
            moved[column] = int((source != np.arange(len(source))).sum())
            if moved[column]:
                columns[column] = table[column].gather(source)
            if mending.left:
                left[column] = mending.left
        notes = [
            f"{count:,} of {table.height:,} values of '{column}' changed places with one of another class."
            for column, count in moved.items()
            if count
        ]
        notes += [
            f"{count:,} records are in classes that still give '{column}' away: the file has too few other values, or "
            "too few classes can spare one. Ask for larger classes."
            for column, count in left.items()
        ]
        return Change(
            columns=columns,
            notes=tuple(notes) or ("Every class met the models already; nothing was swapped.",),
            parameters={"moved": moved, "still_broken": left},
        )


class _Mending:
    """One sensitive column on its way to meet its models: who stands where, and who has which value now."""

    def __init__(
        self,
        owners: Integers,
        somewhere: Flags,
        units: Integers | None,
        values: pl.Series,
        models: Sequence[PrivacyModel],
    ) -> None:
        domain, codes = distinct_values(values)
        there = np.flatnonzero(somewhere)
        _, here = np.unique(owners[there], return_inverse=True)
        self.there, self.here, self.domain = there, here.astype(np.int64), domain
        self.classes = int(here.max(initial=-1)) + 1
        self.units = None if units is None else units[there]
        self.codes, self.column, self.models = codes, values.name, models
        # Margins stay, so that what is common in the file is known from the start; gaps count as a value.
        self.overall = np.bincount(codes, minlength=len(domain)) / max(1, len(codes))
        self.source = np.arange(len(codes))
        self.left = 0

    def run(self, rng: np.random.Generator) -> Integers:
        """Swap until every class is sound or nothing helps; say from which record each has its value."""
        if not self.classes:
            return self.source
        broken, failures = self._broken(), 0
        for _ in range(_MOST_ROUNDS):
            if (
                failures == _MOST_FAILURES
                or not broken.any()
                or not (pairs := self._pairs(broken, rng, failures)).size
            ):
                break
            before, held = broken, self.source.copy()
            while pairs.size:
                self.source = held.copy()
                first, second = self.there[pairs].T
                self.source[first], self.source[second] = self.source[second], self.source[first]
                broken = self._broken()
                spoiled = broken & ~before
                if not spoiled.any():
                    break
                pairs = pairs[~(spoiled[self.here[pairs]].any(axis=1))]
            failures = 0 if pairs.size else failures + 1
            if not pairs.size:
                self.source, broken = held, before
        self.left = int(np.bincount(self.here, minlength=self.classes)[broken].sum())
        return self.source

    @property
    def by_distance(self) -> bool:
        """Whether a model is about the distance of a class from the file, not about one value."""
        return any(isinstance(model, TCloseness) for model in self.models)

    def _broken(self) -> Flags:
        # Records in no class make one of their own, so that the file that classes are compared with is whole.
        owners = np.full(len(self.codes), self.classes, dtype=np.int64)
        owners[self.there] = self.here
        many = self.classes + (len(self.there) < len(self.codes))
        watched = Watched({self.column: (self.domain, self.codes[self.source])}, {}, self._all_units())
        pieces = Pieces(owners, many, watched)
        broken = np.zeros(many, dtype=np.bool_)
        for model in self.models:
            broken |= model.violations(pieces)
        return broken[: self.classes]

    def _all_units(self) -> Integers | None:
        if self.units is None:
            return None
        units = np.full(len(self.codes), -1, dtype=np.int64)
        units[self.there] = self.units
        units[units < 0] = int(self.units.max(initial=0)) + 1 + np.arange(int((units < 0).sum()))
        return units

    def _pairs(self, broken: Flags, rng: np.random.Generator, failures: int) -> Integers:
        """Pair records that have too common a value of their class with records of classes that can spare another."""
        now, width = self.codes[self.source[self.there]], len(self.domain)
        pairs, place, held = _counted(self.here * width + now, self.classes * width)
        owner, value = pairs // width, pairs % width
        sizes = np.bincount(self.here, minlength=self.classes)
        most = self._most(sizes)
        excess = held / sizes[owner] - self.overall[value]
        protected = self._protected()[value] & broken[owner]
        # The value of each broken class that stands out most.
        order = np.flatnonzero(protected)
        order = order[np.lexsort((-excess[order], owner[order]))]
        first = order[np.flatnonzero(np.diff(owner[order], prepend=-1))]
        gives = np.zeros(len(pairs), dtype=np.int64)
        gives[first] = np.maximum(1, held[first] - np.floor(most[owner[first]] + _SLACK)).astype(np.int64)
        if self.by_distance:
            # A large class that is far from the file would take very many rounds of one swap each.
            surplus = np.floor(_PART * excess[first] * sizes[owner[first]]).astype(np.int64)
            gives[first] = np.maximum(gives[first], surplus)
        asked = np.flatnonzero(gives[place])
        giving = asked[_ranks_within(place[asked], rng) < gives[place[asked]]]
        chosen, taken = [], np.zeros(len(now), dtype=np.bool_)
        taken[giving] = True
        paired = np.zeros(len(now), dtype=np.bool_)
        top_of = np.full(self.classes, -1, dtype=np.int64)
        top_of[owner[first]] = value[first]
        if failures % 2 == 0 and self.by_distance:
            lacking = self._lacking(pairs, held, sizes)
            spare = ((excess > 0) & ~broken[owner])[place]
            by_value = np.argsort(now, kind="stable")
            begins = np.searchsorted(now[by_value], np.arange(width + 1))
            wishes = lacking[self.here[giving]] * width + now[giving]
            kinds, many = np.unique(wishes, return_counts=True)
            # The most frequent ones; the others are left to any class that has room.
            for wish in kinds[np.argsort(-many, kind="stable")[:_WISHES]]:
                missed, given = divmod(int(wish), width)
                wanting = giving[wishes == wish]
                # Who gets what the others have too much of must have too little of it.
                poor = _column(owner, value, held, given, self.classes) < self.overall[given] * sizes
                having = by_value[begins[missed] : begins[missed + 1]]
                able = spare[having] & ~taken[having] & ~paired[having] & poor[self.here[having]]
                candidates = having[able]
                if candidates.size:
                    fresh = _near(wanting, _fewer(candidates, wanting, failures, rng), self.here, rng)
                    paired[fresh.ravel()] = True
                    chosen.append(fresh)
        # A class in want of something else gladly gives what it has too much of.
        free = np.flatnonzero((~taken & ~broken[self.here]) | (taken & (top_of[self.here] == now)))
        tops, many = np.unique(now[giving], return_counts=True)
        for wanted in tops[np.argsort(-many, kind="stable")[:_WISHES]]:
            wanting = giving[(now[giving] == wanted) & ~paired[giving]]
            if not wanting.size:
                continue
            room = np.floor(most + _SLACK) - _column(owner, value, held, wanted, self.classes)
            free = free[~paired[free]]
            candidates = free[(now[free] != wanted) & (room[self.here[free]] > 0)]
            if not candidates.size:
                continue
            candidates = candidates[_ranks_within(self.here[candidates], rng) < room[self.here[candidates]]]
            fresh = _near(wanting, _fewer(candidates, wanting, failures, rng), self.here, rng)
            paired[fresh.ravel()] = True
            chosen.append(fresh)
        return np.concatenate(chosen) if chosen else np.zeros((0, 2), dtype=np.int64)

    def _lacking(self, pairs: Integers, held: Integers, sizes: Integers) -> Integers:
        """Name, among the most common values of the file, the one that each class lacks most."""
        common = np.argsort(-self.overall, kind="stable")[:_COMMON]
        width = len(self.domain)
        at = np.arange(self.classes)[:, None] * width + common
        found = np.minimum(np.searchsorted(pairs, at), len(pairs) - 1)
        there = np.where(pairs[found] == at, held[found], 0) / sizes[:, None]
        lacking: Integers = common[np.argmax(self.overall[common] - there, axis=1)]
        return lacking

    def _most(self, sizes: Integers) -> Floats:
        """Say how many records of each class may have one value, as far as a share bounds it; all but one else."""
        alphas = [model.alpha for model in self.models if isinstance(model, AlphaK)]
        bound: Floats = np.minimum(min([1.0, *alphas]) * sizes, np.maximum(sizes - 1, 1)).astype(np.float64)
        return bound

    def _protected(self) -> Flags:
        """Say which values no class may have too often."""
        protected = np.zeros(len(self.domain), dtype=np.bool_)
        for model in self.models:
            if not isinstance(model, AlphaK):
                return np.ones(len(self.domain), dtype=np.bool_)
            wanted = self.overall <= model.common
            if model.values is not None:
                wanted &= named_among(self.domain, model.values, self.column)
            protected |= wanted
        return protected


def _counted(cells: Integers, many: int) -> tuple[Integers, Integers, Integers]:
    """Give the cells that occur, the place of each record among them, and how many records each has."""
    if many > _MOST_CELLS:
        found, place, held = np.unique(cells, return_inverse=True, return_counts=True)
        return found, place.astype(np.int64), held
    counts = np.bincount(cells, minlength=many)
    found = np.flatnonzero(counts)
    places = np.empty(many, dtype=np.int64)
    places[found] = np.arange(len(found))
    return found, places[cells], counts[found]


def _column(owner: Integers, value: Integers, held: Integers, wanted: int, classes: int) -> Integers:
    found = np.zeros(classes, dtype=np.int64)
    at = value == wanted
    found[owner[at]] = held[at]
    return found


def _ranks_within(groups: Integers, rng: np.random.Generator) -> Integers:
    """Number the members of each group in random order, from 0."""
    order = np.lexsort((rng.random(len(groups)), groups))
    ordered = groups[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1 if len(ordered) else 0))
    ranks = np.empty(len(groups), dtype=np.int64)
    ranks[order] = np.arange(len(groups)) - np.repeat(starts, np.diff(np.append(starts, len(groups))))
    return ranks


def _fewer(candidates: Integers, wanting: Integers, failures: int, rng: np.random.Generator) -> Integers:
    """Draw some of the candidates where the nearest could not spare what was asked of them."""
    if not failures:
        return candidates
    return rng.permutation(candidates)[: max(len(wanting), len(candidates) // (1 + 2 * failures))]


def _near(wanting: Integers, candidates: Integers, owners: Integers, rng: np.random.Generator) -> Integers:
    """Pair each record in want with a candidate that stands near it in the order of classes, each once."""
    if len(wanting) > len(candidates):
        wanting = rng.permutation(wanting)[: len(candidates)]
    wanting = wanting[np.argsort(owners[wanting], kind="stable")]
    candidates = candidates[np.argsort(owners[candidates], kind="stable")]
    # Places follow the records in want, and move on where a candidate is taken already.
    at = np.searchsorted(owners[candidates], owners[wanting])
    steps = np.arange(len(wanting))
    at = np.maximum.accumulate(at - steps) + steps
    over = np.minimum(at, len(candidates) - len(wanting) + steps)
    return np.column_stack([wanting, candidates[over]]).astype(np.int64)
