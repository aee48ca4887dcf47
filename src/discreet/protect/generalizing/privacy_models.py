"""The privacy models: what a class of records that look alike must fulfil before it may be released."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl

from discreet.core.arrays import Flags, Floats
from discreet.core.errors import ParameterError
from discreet.core.values import named_among
from discreet.engine import ClassCounts
from discreet.hierarchy import Hierarchy
from discreet.microdata import Microdata
from discreet.protect.generalizing.privacy_model import (
    Classes,
    PrivacyModel,
    models_of,
    must_be_column,
    must_be_number,
    must_be_whole,
)

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


@dataclass(frozen=True)
class KAnonymity(PrivacyModel):
    """Every class has at least ``k`` records, or people where a role names them (Samarati and Sweeney 1998).

    Parameters
    ----------
    k
        The smallest class that may be released.
    """

    k: int
    closed: ClassVar[bool] = True  # type: ignore[misc]

    def __post_init__(self) -> None:
        must_be_whole(self.k, "k", least=1)

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

    sensitive: str
    l: float  # noqa: E741
    kind: Literal["distinct", "entropy", "recursive"] = "distinct"
    c: float = 2.0

    def __post_init__(self) -> None:
        must_be_column(self.sensitive)
        if self.kind not in ("distinct", "entropy", "recursive"):
            raise ParameterError("kind must be 'distinct', 'entropy' or 'recursive'.")
        if self.kind == "entropy":
            must_be_number(self.l, "l", least=1)
        else:
            must_be_whole(self.l, "l", least=1)
        must_be_number(self.c, "c", above=0)

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

    sensitive: str
    t: float
    distance: Literal["emd", "tv", "kl"] = "emd"
    ground: Literal["auto", "equal", "ordered", "hierarchical"] = "auto"
    hierarchy: Hierarchy | None = None
    relative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        must_be_column(self.sensitive)
        must_be_number(self.t, "t", least=0)
        if self.distance not in ("emd", "tv", "kl"):
            raise ParameterError("distance must be 'emd', 'tv' or 'kl'.")
        if self.ground not in ("auto", "equal", "ordered", "hierarchical"):
            raise ParameterError("ground must be 'auto', 'equal', 'ordered' or 'hierarchical'.")
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

    sensitive: str
    alpha: float
    k: int = 1
    values: tuple[Any, ...] | None = None
    common: float = 1.0

    def __post_init__(self) -> None:
        must_be_column(self.sensitive)
        must_be_number(self.alpha, "alpha", above=0, most=1)
        must_be_whole(self.k, "k", least=1)
        must_be_number(self.common, "common", above=0, most=1)
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

    sensitive: str
    beta: float
    enhanced: bool = False
    relative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        must_be_column(self.sensitive)
        must_be_number(self.beta, "beta", above=0)

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

    sensitive: str
    delta: float
    absent: Literal["ignore", "infinite"] = "ignore"
    relative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        must_be_column(self.sensitive)
        must_be_number(self.delta, "delta", least=0)
        if self.absent not in ("ignore", "infinite"):
            raise ParameterError("absent must be 'ignore' or 'infinite'.")

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

    k: float
    population: Microdata | str | Path | None = None
    weight: str | None = None
    closed: ClassVar[bool] = True  # type: ignore[misc]

    def __post_init__(self) -> None:
        must_be_number(self.k, "k", least=1)
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
