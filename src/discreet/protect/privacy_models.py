"""The privacy models: what a class of records that look alike must fulfil before it may be released.

Each privacy model says which classes violate it. Two properties decide how a search may use it. A model is
*closed* when a class that fulfils it still does so after any other class has been merged into it (k-anonymity,
distinct l-diversity, k-map): then coarser keys never suppress more records. A model is *convex* when merging
classes that all fulfil it gives one that does (t-closeness, entropy and recursive l-diversity, ...): then coarser
keys stay safe only as long as no record had to be suppressed, because a suppressed class may spoil the class it
is merged into.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Protocol

import numpy as np
import polars as pl

from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.constraints import Above, AtLeast, ColumnName, HoldsValues, Share
from discreet.core.errors import ParameterError, need_known
from discreet.core.method_cards import kebab, made_from, parameters_of
from discreet.core.parameters import typed_parameters
from discreet.core.value_gate import name_in_documents
from discreet.core.values import named_among
from discreet.engine import ClassCounts
from discreet.hierarchy import Hierarchy
from discreet.microdata import Microdata

if TYPE_CHECKING:
    from discreet.policy import Rule

__all__ = [
    "AlphaK",
    "BetaLikeness",
    "DeltaDisclosure",
    "KAnonymity",
    "KMap",
    "LDiversity",
    "PrivacyModel",
    "TCloseness",
    "models_of",
]


_SLACK = 1e-12
"""Shares and logarithms that miss a bound by rounding only meet it."""


class Classes(Protocol):
    """What a model may ask about the classes of a file."""

    @property
    def sizes(self) -> Integers:
        """The number of records of each class; of people, where a role says whose the records are."""

    def values(self, column: str) -> ClassCounts:
        """The sparse counts of a sensitive column, class by class."""

    def population(self, model: KMap) -> Floats:
        """The (estimated) number of people in the population behind each class."""


class PrivacyModel(ABC):
    """A condition on every released class; subclasses are frozen dataclasses."""

    known: ClassVar[dict[str, type[PrivacyModel]]] = {}
    closed: bool = False
    """Whether a class that fulfils the model does so after any merge."""
    convex: bool = True
    """Whether merging classes that all fulfil the model gives one that does."""
    relative: ClassVar[bool] = False
    """Whether classes are compared with the whole file, as it was before anything was suppressed."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        typed_parameters(cls, where=lambda made: made.name)
        PrivacyModel.known[kebab(cls.__name__)] = cls

    @property
    def name(self) -> str:
        """The name in plan files, e.g. ``k-anonymity``."""
        return kebab(type(self).__name__)

    @property
    def columns(self) -> tuple[str, ...]:
        """The sensitive columns the model looks at."""
        column = getattr(self, "sensitive", None)
        return () if column is None else (column,)

    @abstractmethod
    def violations(self, classes: Classes) -> Flags:
        """Say for each class whether it violates the model."""

    def implied(self) -> tuple[PrivacyModel, ...]:
        """Name closed models that hold wherever this one does; a search may prune by them."""
        return (self,) if self.closed else ()

    def monotone(self, *, suppression: bool) -> bool:
        """Say whether a generalization of a feasible file is feasible, with or without suppressed records."""
        return self.closed or (self.convex and not suppression)

    def to_dict(self) -> dict[str, Any]:
        """Describe the model in plain values, with its kebab name under ``model``."""
        return {"model": self.name, **parameters_of(self)}

    @staticmethod
    def from_dict(description: Mapping[str, Any]) -> PrivacyModel:
        """Build the model that `to_dict` described.

        Examples
        --------
        >>> from discreet.protect.privacy_models import LDiversity
        >>> PrivacyModel.from_dict({"model": "l-diversity", "sensitive": "income", "l": 2})
        LDiversity(sensitive='income', l=2, kind='distinct', c=2.0)
        """
        parameters = dict(description)
        name = str(parameters.pop("model", None))
        need_known([name], PrivacyModel.known, what="privacy model", kind=ParameterError)
        if isinstance(parameters.get("hierarchy"), Mapping):
            parameters["hierarchy"] = Hierarchy.from_dict(parameters["hierarchy"])
        return made_from(PrivacyModel.known[name], name, parameters)


name_in_documents("model", PrivacyModel.known)


def models_of(models: Any) -> tuple[PrivacyModel, ...]:
    """Take the models as a user or a plan file gives them: one or several, as objects or descriptions."""
    if isinstance(models, PrivacyModel | Mapping):
        models = [models]
    if not models:
        raise ParameterError("models must list at least one privacy model, e.g. models=[KAnonymity(5)].")
    return tuple(PrivacyModel.from_dict(item) if isinstance(item, Mapping) else item for item in models)


@dataclass(frozen=True)
class KAnonymity(PrivacyModel):
    """Every class has at least ``k`` records, or people where a role names them (Samarati and Sweeney 1998).

    Parameters
    ----------
    k
        The smallest class that may be released.
    """

    k: Annotated[int, AtLeast(1)]
    closed: ClassVar[bool] = True  # type: ignore[misc]

    def violations(self, classes: Classes) -> Flags:
        """Flag the classes with fewer than k records (or people)."""
        return classes.sizes < self.k


@dataclass(frozen=True)
class LDiversity(PrivacyModel):
    """Behind every class stand at least ``l`` well-represented sensitive values (Machanavajjhala et al. 2007).

    Parameters
    ----------
    sensitive
        The sensitive column; missing counts as a value.
    l
        The least number of values; need not be whole for ``entropy``.
    kind
        ``distinct``: different values. ``entropy``: exp of their entropy. ``recursive``: the most frequent value
        is rarer than c times the l-th most frequent and all rarer ones together.
    c
        The constant of the recursive kind.
    """

    sensitive: ColumnName
    l: Annotated[float, AtLeast(1)]  # noqa: E741
    kind: Literal["distinct", "entropy", "recursive"] = "distinct"
    c: Annotated[float, Above(0)] = 2.0

    def __post_init__(self) -> None:
        if self.kind != "entropy" and self.l != int(self.l):
            raise ParameterError("l must be a whole number of at least 1.")

    @property
    def closed(self) -> bool:  # type: ignore[override]
        """Only the number of different values cannot fall when classes are merged."""
        return self.kind == "distinct"

    def implied(self) -> tuple[PrivacyModel, ...]:
        """Every kind needs at least l different values."""
        return (LDiversity(self.sensitive, math.ceil(self.l - 1e-9)),)

    def violations(self, classes: Classes) -> Flags:
        """Flag the classes with fewer than l values."""
        counts = classes.values(self.sensitive)
        begin = counts.starts[:-1]
        if self.kind == "distinct":
            return np.diff(counts.starts) < self.l
        if self.kind == "entropy":
            share = counts.counts / counts.sizes[counts.owners]
            entropy = -np.add.reduceat(share * np.log(share), begin)
            return np.asarray(entropy < math.log(self.l) - _SLACK)
        order = np.lexsort((-counts.counts, counts.owners))
        ranked = counts.counts[order]
        before = np.cumsum(ranked) - ranked
        rank = np.arange(len(ranked)) - begin[counts.owners]
        tail = counts.sizes[counts.owners] - (before - before[begin][counts.owners])
        from_l = np.zeros(len(begin))
        chosen = rank == self.l - 1
        from_l[counts.owners[chosen]] = tail[chosen]
        return np.asarray(ranked[begin] >= self.c * from_l)


@dataclass(frozen=True)
class TCloseness(PrivacyModel):
    """The sensitive values of every class are within ``t`` of those of the file (Li et al. 2007).

    Parameters
    ----------
    sensitive
        The sensitive column; missing counts as a value.
    t
        The largest distance.
    distance
        ``emd``, ``tv`` or ``kl``, as in `discreet.risk.t_closeness`.
    ground
        How far two values are apart, for ``emd``: ``auto`` (ordered for numbers, dates and ordered categories,
        else equal), ``equal``, ``ordered`` or ``hierarchical``.
    hierarchy
        The hierarchy of the sensitive column, for the hierarchical ground.
    """

    sensitive: ColumnName
    t: Annotated[float, AtLeast(0)]
    distance: Literal["emd", "tv", "kl"] = "emd"
    ground: Literal["auto", "equal", "ordered", "hierarchical"] = "auto"
    hierarchy: Annotated[Hierarchy, HoldsValues()] | None = None
    relative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.ground == "hierarchical" and self.hierarchy is None:
            raise ParameterError(
                "ground='hierarchical' needs the hierarchy of the sensitive column: hierarchy=…"
            )

    def violations(self, classes: Classes) -> Flags:
        """Flag the classes further than t from the file."""
        return self.distances(classes.values(self.sensitive)) > self.t + _SLACK

    def distances(self, counts: ClassCounts) -> Floats:
        """Measure the distance of each class from the file."""
        from discreet.numerics.earth_mover import hierarchical_emd, ordered_emd

        share = counts.counts / counts.sizes[counts.owners]
        base = counts.overall[counts.codes]
        begin = counts.starts[:-1]
        if self.distance == "kl":
            return np.asarray(np.add.reduceat(share * np.log(share / base), begin))
        ground = self.ground
        if ground == "auto":
            dtype = counts.values.dtype
            ordered = dtype.is_numeric() or dtype.is_temporal() or isinstance(dtype, pl.Enum)
            ground = "ordered" if ordered else "equal"
        if self.distance == "tv" or ground == "equal":
            return np.asarray(np.add.reduceat(np.maximum(share - base, 0.0), begin))
        if ground == "ordered":
            return ordered_emd(counts)
        return hierarchical_emd(counts, self.hierarchy, self.sensitive)  # type: ignore[arg-type]


@dataclass(frozen=True)
class AlphaK(PrivacyModel):
    """Every class has ``k`` records (or people) and no sensitive value more than ``alpha`` of it (Wong et al. 2006).

    Parameters
    ----------
    sensitive
        The sensitive column.
    alpha
        The largest share of one value.
    k
        The smallest class.
    values
        The values that are to be protected; all unless named.
    common
        Values that more than this share of the whole file has are not protected: who guesses them is right anyway.
    """

    sensitive: ColumnName
    alpha: Annotated[float, Share(above=True)]
    k: Annotated[int, AtLeast(1)] = 1
    values: Annotated[tuple[Any, ...], HoldsValues()] | None = None
    common: Annotated[float, Share(above=True)] = 1.0

    def __post_init__(self) -> None:
        if self.values is not None:
            object.__setattr__(self, "values", tuple(self.values))

    def implied(self) -> tuple[PrivacyModel, ...]:
        """The size part is closed; and shares of at most alpha take at least 1/alpha values."""
        fewest = LDiversity(self.sensitive, math.ceil(1 / self.alpha - 1e-9))
        all_values = self.values is None and self.common == 1
        return (KAnonymity(self.k), *((fewest,) if all_values else ()))

    def violations(self, classes: Classes) -> Flags:
        """Flag the classes that are too small or in which a value is too frequent."""
        counts = classes.values(self.sensitive)
        share = counts.counts / counts.sizes[counts.owners]
        if self.values is not None:
            protected = named_among(counts.values, self.values, self.sensitive)
            share = np.where(protected[counts.codes], share, 0.0)
        if self.common < 1:
            share = np.where((counts.overall <= self.common)[counts.codes], share, 0.0)
        too_sure = np.maximum.reduceat(share, counts.starts[:-1]) > self.alpha + _SLACK
        return np.asarray(too_sure | (classes.sizes < self.k))


@dataclass(frozen=True)
class BetaLikeness(PrivacyModel):
    """No class raises the chance of a sensitive value by more than the factor 1 + ``beta`` (Cao and Karras 2012).

    Parameters
    ----------
    sensitive
        The sensitive column.
    beta
        The largest relative gain (p_class - p)/p.
    enhanced
        Also cap the gain of each value at -ln p, so that frequent values may not rise to certainty.
    """

    sensitive: ColumnName
    beta: Annotated[float, Above(0)]
    enhanced: bool = False
    relative: ClassVar[bool] = True

    def violations(self, classes: Classes) -> Flags:
        """Flag the classes in which a value gains too much."""
        counts = classes.values(self.sensitive)
        base = counts.overall[counts.codes]
        gain = counts.counts / counts.sizes[counts.owners] / base - 1
        bound = np.minimum(self.beta, -np.log(base)) if self.enhanced else self.beta
        return np.asarray(np.logical_or.reduceat(gain > bound + _SLACK, counts.starts[:-1]))


@dataclass(frozen=True)
class DeltaDisclosure(PrivacyModel):
    """No class changes the odds of a sensitive value beyond ``exp(delta)`` (Brickell and Shmatikov 2008).

    Parameters
    ----------
    sensitive
        The sensitive column.
    delta
        The largest absolute ln(p_class / p).
    absent
        ``ignore`` values that do not occur in a class, or count them as ``infinite``, the strict reading.
    """

    sensitive: ColumnName
    delta: Annotated[float, AtLeast(0)]
    absent: Literal["ignore", "infinite"] = "ignore"
    relative: ClassVar[bool] = True

    @property
    def convex(self) -> bool:  # type: ignore[override]
        """With absent values ignored, a merge may dilute a value below the bound that was absent elsewhere."""
        return self.absent == "infinite"

    def violations(self, classes: Classes) -> Flags:
        """Flag the classes in which the share of a value is too far from the file's."""
        counts = classes.values(self.sensitive)
        lift = counts.counts / counts.sizes[counts.owners] / counts.overall[counts.codes]
        far = np.logical_or.reduceat(np.abs(np.log(lift)) > self.delta + _SLACK, counts.starts[:-1])
        if self.absent == "infinite":
            far |= np.diff(counts.starts) < len(counts.values)
        return np.asarray(far)


@dataclass(frozen=True)
class KMap(PrivacyModel):
    """Behind every class stand at least ``k`` people of the population (Sweeney 2002).

    Parameters
    ----------
    k
        The fewest people of the population with the same key values.
    population
        The people among whom the intruder searches: a `Microdata`, or the path of a file with the same key
        columns. Only a path can be kept in a plan file.
    weight
        Without a population: the survey weight, whose sum estimates the people behind a class.
    """

    k: Annotated[float, AtLeast(1)]
    population: Microdata | str | Path | None = None
    weight: ColumnName | None = None
    closed: ClassVar[bool] = True  # type: ignore[misc]

    def __post_init__(self) -> None:
        if isinstance(self.population, Path):
            object.__setattr__(self, "population", str(self.population))
        if (self.population is None) == (self.weight is None):
            raise ParameterError("k-map needs either population=… (a file of the people) or weight='column'.")

    def violations(self, classes: Classes) -> Flags:
        """Flag the classes with fewer than k people behind them."""
        return np.asarray(classes.population(self) < self.k - 1e-9)

    def to_dict(self) -> dict[str, Any]:
        """Describe the model; a population in memory is named by its source only."""
        given: dict[str, Any] = {"model": self.name, "k": self.k}
        if self.weight is not None:
            given["weight"] = self.weight
        elif isinstance(self.population, Microdata):
            given["population"] = self.population.metadata.source or "(in memory)"
        else:
            given["population"] = self.population
        return given


# What the rules of a policy ask of classes.


def class_sizes_ruled(rule: Rule, given: Mapping[str, Any]) -> Iterator[int]:
    """Give the size that every class, or nearly, must have for a rule to hold; nothing where it asks for none."""
    if rule.name == "reidentification.share_above_threshold" and (rule.at_most or 0.0) <= 0.1:
        yield math.ceil(1 / given.get("threshold", 0.2) - 1e-9)
    if rule.name in ("k_anonymity", "k_anonymity.k") and rule.at_least is not None:
        yield math.ceil(rule.at_least)
    if rule.name == "reidentification.prosecutor_max" and rule.at_most:
        yield math.ceil(1 / rule.at_most - 1e-9)
    if rule.name in ("uniqueness", "uniqueness.unique_share") and rule.at_most == 0:
        yield 2


def models_ruled(rule: Rule, column: str, given: Mapping[str, Any]) -> Iterator[PrivacyModel]:
    """Give the models of a sensitive column that make a rule hold; ``given`` are the parameters of its measure."""
    if rule.name in ("l_diversity", "l_diversity.l") and rule.at_least is not None:
        shape = {name: given[name] for name in ("kind", "c") if name in given}
        yield LDiversity(column, rule.at_least if shape else math.ceil(rule.at_least), **shape)
    if rule.name == "l_diversity.best_guess" and rule.at_most is not None and rule.at_most < 1:
        yield AlphaK(column, rule.at_most)
    if rule.name in ("alpha_k", "alpha_k.alpha") and rule.at_most is not None and rule.at_most < 1:
        shape = {name: given[name] for name in ("values", "common") if name in given}
        yield AlphaK(column, rule.at_most, **shape)
    if rule.name == "t_closeness" and rule.at_most is not None:
        shape = {name: given[name] for name in ("distance", "ground") if name in given}
        yield TCloseness(column, rule.at_most, **shape)
