"""Draw on the segments between a record and its neighbors: SMOTE, and SMOTE-NC for mixed columns."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.core.arrays import Array, Floats, Integers
from discreet.core.errors import ColumnError, DiscreetWarning, ParameterError, unknown_name
from discreet.core.randomness import Seed, generator
from discreet.numerics.distance.search import nearest
from discreet.numerics.distance.space import MixedSpace
from discreet.synth.distributions.draws import Draws, Records


def smote(
    data: Any,
    *,
    classes: str | npt.ArrayLike | None = None,
    percent: float | Mapping[Any, float] = 100.0,
    k: int = 5,
    standardize: bool = True,
    alone: Literal["error", "copy"] = "error",
    seed: Seed = None,
) -> Draws[Any]:
    """Draw new records between a record and one of its nearest neighbors of the same class.

    Numbers lie on the segment between the two (Chawla et al. 2002); categories take the most frequent value among
    the neighbors (SMOTE-NC). Every new record lies on a line between two real ones: look at `closeness` before
    anything leaves the house.

    Parameters
    ----------
    data
        Microdata, a data frame, or an array with a row a record.
    classes
        Column of classes, or one label a record. Without it all records are one class.
    percent
        How many new records, in percent of the records of the class; or by class (classes left out get none). Above
        100 every record serves several times, below 100 a random part of them.
    k
        Number of neighbors to choose from.
    standardize
        Measure distance in standard deviations. False measures in the units of the columns. A different category
        counts as the median standard deviation of the numbers in either case.
    alone
        What to do with a class of one record, which has no neighbor: ``error``, or ``copy`` it with a warning.
    seed
        For the random numbers.

    Returns
    -------
    Draws
        ``values`` holds the new records only, class after class, in the kind that was given.
        ``diagnostics["zero_segments"]`` counts those drawn between a record and its duplicate: exact copies.

    Examples
    --------
    >>> points = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    >>> fresh = smote(points, percent=200, k=2, seed=1).values
    >>> fresh.shape, bool(np.allclose(fresh[:, 0], fresh[:, 1]))
    ((6, 2), True)
    """
    records = Records.of(data)
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ParameterError("k must be a whole number of at least 1.")
    if alone not in ("error", "copy"):
        raise ParameterError("alone must be 'error' or 'copy'.")
    labels = _labels(records, classes)
    features = [name for name in records.table.columns if not (isinstance(classes, str) and name == classes)]
    if not features:
        raise ParameterError("smote needs a column besides the classes.")
    space = _space(records, features, standardize)
    members = {label: np.flatnonzero(labels == place) for place, label in enumerate(_names(records, classes))}
    percents = _percents(percent, members)
    rng = generator(seed)
    bases, others, sizes = [], [], {}
    for label, rows in members.items():
        made = round(percents[label] / 100 * len(rows))
        sizes[label] = made
        if made:
            own, near = _pairs(records, space, rows, made=made, k=k, alone=alone, rng=rng)
            bases.append(own)
            others.append(near)
    if not bases:
        raise ParameterError("percent asks for no record at all.")
    width = max(near.shape[1] for near in others)
    base = np.concatenate(bases)
    near = np.concatenate(
        [np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=-1) for part in others]
    )
    return _drawn(records, features, base, near, sizes=sizes, rng=rng)


def segment(start: npt.ArrayLike, end: npt.ArrayLike, share: npt.ArrayLike) -> Floats:
    """Return the point that lies this share of the way from one point to another.

    Examples
    --------
    >>> segment([0.49671, -0.13826], [0.76743, 0.96940], 0.65).round(6).tolist()
    [0.672678, 0.581719]
    """
    first, last = np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)
    return np.asarray(first + np.asarray(share) * (last - first))


def _names(records: Records, classes: str | npt.ArrayLike | None) -> list[Any]:
    if classes is None:
        return [None]
    series = records.table[classes] if isinstance(classes, str) else pl.Series(np.asarray(classes))
    return series.unique().sort().to_list()


def _labels(records: Records, classes: str | npt.ArrayLike | None) -> Integers:
    if classes is None:
        return np.zeros(len(records), dtype=np.int64)
    if isinstance(classes, str):
        if classes not in records.table.columns:
            raise ColumnError(f"{unknown_name(classes, records.table.columns)} It was named under 'classes'.")
        series = records.table[classes]
    else:
        series = pl.Series(np.asarray(classes))
    if len(series) != len(records):
        raise ParameterError(f"classes has {len(series):,} labels for {len(records):,} records.")
    levels = series.unique().sort()
    place = pl.DataFrame({"level": levels, "place": np.arange(len(levels))})
    joined = series.to_frame("level").join(
        place, on="level", how="left", nulls_equal=True, maintain_order="left"
    )
    return joined["place"].to_numpy().astype(np.int64)


def _percents(percent: float | Mapping[Any, float], members: Mapping[Any, Integers]) -> dict[Any, float]:
    if isinstance(percent, Mapping):
        if any(label not in members for label in percent):
            raise ParameterError("percent names a class that is not in the file.")
        found = {label: float(percent.get(label, 0.0)) for label in members}
    else:
        found = dict.fromkeys(members, float(percent))
    if any(not np.isfinite(share) or share < 0 for share in found.values()):
        raise ParameterError("percent must be a number of zero or above.")
    return found


def _space(records: Records, features: list[str], standardize: bool) -> MixedSpace:
    spreads = [np.nanstd(records.numbers[name]) for name in features if name in records.numbers]
    spreads = [spread for spread in spreads if spread > 0]
    penalty = 1.0 if standardize or not spreads else float(np.median(spreads))
    # Two different categories add twice their weight to the squared distance.
    weights = {name: penalty**2 / 2 for name in features if name not in records.numbers}
    return MixedSpace.fit(
        records.table.select(features),
        distance="euclidean",
        weights=weights,
        scale="sd" if standardize else "none",
    )


def _pairs(
    records: Records,
    space: MixedSpace,
    rows: Integers,
    *,
    made: int,
    k: int,
    alone: str,
    rng: np.random.Generator,
) -> tuple[Integers, Integers]:
    """Choose the records to start from, and list the nearest of each, ties in random order."""
    n = len(rows)
    if n == 1:
        if alone == "error":
            raise ParameterError(
                "A class has one record, which has no neighbor. Use alone='copy', or merge classes."
            )
        warnings.warn(
            "A class has one record, which has no neighbor; it was copied.", DiscreetWarning, stacklevel=3
        )
        return np.repeat(rows, made), np.repeat(rows, made)[:, None]
    if k >= n:
        warnings.warn(
            f"A class has {n} records, so k was reduced from {k} to {n - 1}.", DiscreetWarning, stacklevel=3
        )
        k = n - 1
    shuffled = rng.permutation(rows)
    points = space.place(records.table[shuffled])
    found = nearest(space, points, k=k).index
    extra = rng.permutation(n)[: made % n]
    chosen = np.concatenate([np.tile(np.arange(n), made // n), extra])
    return shuffled[chosen], shuffled[found[chosen]]


def _drawn(
    records: Records,
    features: list[str],
    base: Integers,
    near: Integers,
    *,
    sizes: Mapping[Any, int],
    rng: np.random.Generator,
) -> Draws[Any]:
    many = (near >= 0).sum(axis=1)
    partner = near[np.arange(len(base)), rng.integers(many)]
    share = rng.random(len(base))
    columns: dict[str, Any] = {}
    same = np.ones(len(base), dtype=bool)
    for name in features:
        if name in records.numbers:
            values = records.numbers[name]
            own, other = values[base], values[partner]
            # There is no way between a number and a gap: the record stays what it is.
            moved = np.where(np.isnan(other), own, segment(own, other, share))
            columns[name] = records.rounded(name, moved)
            same &= (own == other) | np.isnan(own) | np.isnan(other)
        else:
            columns[name] = records.table[name].gather(_majority(records.table[name], near))
    return Draws(
        records.rebuilt(base, columns),
        {
            "method": "SMOTE" if not set(features) - set(records.numbers) else "SMOTE-NC",
            "draws": len(base),
            "by_class": dict(sizes),
            "zero_segments": int(same.sum()),
            "base": base,
            "neighbor": partner,
        },
    )


def _majority(column: pl.Series, near: Integers) -> Integers:
    """Return, for each list of neighbors, one of those with the most frequent value; the nearest of them on ties."""
    codes: Array = column.rank("dense").fill_null(0).cast(pl.Int64).to_numpy()
    listed = np.where(near >= 0, codes[near], -1)
    votes = np.zeros(listed.shape, dtype=np.int64)
    for place in range(listed.shape[1]):
        votes += listed == listed[:, place : place + 1]
    votes[near < 0] = 0
    chosen: Integers = near[np.arange(len(near)), votes.argmax(axis=1)]
    return chosen
