"""Draw records from the records themselves: the bootstrap, interpolation between observed values, and SMOTE.

`closeness` tells how close the drawn records are to the real ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.core.arrays import Array, Floats, Integers
from discreet.core.errors import ColumnError, DiscreetWarning, ParameterError, unknown_name
from discreet.core.randomness import Seed, generator
from discreet.core.results import Measure
from discreet.microdata import Microdata
from discreet.numerics.distance.search import nearest
from discreet.numerics.distance.space import MixedSpace
from discreet.synth.column_forms import check_named
from discreet.synth.distributions.draws import Draws, Records, count_of
from discreet.synth.distributions.rejection_sampling import covariance_root


def bootstrap(
    data: Any,
    size: int | None = None,
    *,
    whole_records: bool = True,
    smoothing: float | Literal["silverman"] | None = None,
    seed: Seed = None,
) -> Draws[Any]:
    """Draw records with replacement.

    Every record of an unsmoothed bootstrap is a copy of a real one: a baseline, or a way to enlarge a file, never a
    protection.

    Parameters
    ----------
    data
        Microdata, a data frame, or an array with a row a record.
    size
        Number of records; as many as there are unless given.
    whole_records
        Keep records together, and with them the relations between columns. False draws each column by itself.
    smoothing
        Bandwidth in standard deviations: numbers get normal noise with the covariance of the data times the
        bandwidth squared, and are drawn together so that means and covariances stay. ``"silverman"`` takes the
        usual rule. Categories and missing values stay with their record.
    seed
        For the random numbers.

    Returns
    -------
    Draws
        ``values`` is of the kind that was given; ``diagnostics["bandwidth"]`` what was used.

    Examples
    --------
    >>> bootstrap(np.array(["a", "a", "b"]), 5, seed=1).values.tolist()
    ['a', 'a', 'b', 'b', 'a']
    """
    records = Records.of(data)
    n, rng = len(records), generator(seed)
    wanted = n if size is None else count_of(size)
    if whole_records:
        rows = rng.integers(n, size=wanted)
        columns: dict[str, Any] = {}
    else:
        if smoothing is not None:
            raise ParameterError("smoothing moves whole records. Leave whole_records=True.")
        rows = np.arange(wanted) % n
        columns = {
            name: records.table[name].gather(rng.integers(n, size=wanted)) for name in records.table.columns
        }
    diagnostics: dict[str, Any] = {"method": "bootstrap", "draws": wanted, "whole_records": whole_records}
    if smoothing is not None:
        if not records.numbers:
            raise ParameterError("smoothing needs at least one column of numbers.")
        bandwidth = _bandwidth(smoothing, n, len(records.numbers))
        columns = _smoothed(records, rows, bandwidth, rng)
        diagnostics |= {"method": "smoothed bootstrap", "bandwidth": bandwidth}
    return Draws(records.rebuilt(rows, columns), diagnostics)


def _bandwidth(smoothing: float | str, n: int, d: int) -> float:
    if smoothing == "silverman":
        return float((4 / ((d + 2) * n)) ** (1 / (d + 4)))
    if isinstance(smoothing, str) or not (np.isfinite(smoothing) and smoothing >= 0):
        raise ParameterError("smoothing must be a number of zero or above, or 'silverman'.")
    return float(smoothing)


def _smoothed(
    records: Records, rows: np.ndarray[Any, Any], bandwidth: float, rng: np.random.Generator
) -> dict[str, Floats]:
    matrix = np.column_stack(list(records.numbers.values()))
    known = ~np.isnan(matrix)
    center = np.array(
        [
            column[there].mean() if there.any() else 0.0
            for column, there in zip(matrix.T, known.T, strict=True)
        ]
    )
    away = np.where(known, matrix - center, 0.0)
    # Pairs with gaps can contradict each other; the gaps count as the mean here, which never does.
    covariance = away.T @ away / max(len(matrix) - 1, 1)
    noise = (
        rng.standard_normal((len(rows), matrix.shape[1]))
        @ covariance_root(covariance, method="spectral")[0].T
    )
    moved = center + (away[rows] + bandwidth * noise) / np.sqrt(1 + bandwidth**2)
    moved[~known[rows]] = np.nan
    return {name: records.rounded(name, moved[:, place]) for place, name in enumerate(records.numbers)}


# Draw between the observed values: records of the interpolated distribution function of the data.
Within = Literal["uniform", "triangular", "truncnorm"] | tuple[Literal["beta"], float, float]


def interpolate(
    data: Any,
    size: int | None = None,
    *,
    variant: Literal["I", "II"] = "II",
    columns: str | Sequence[str] | None = None,
    lower: float | Mapping[str, float] | None = None,
    within: Within = "uniform",
    spikes: Sequence[float] | Mapping[str, Sequence[float]] = (),
    seed: Seed = None,
) -> Draws[Any]:
    """Draw records near those of the file: each number from the gap between it and the next smaller one observed.

    A record is chosen at random; each of its numbers is replaced by one from the interval that ends at it and begins
    at the next smaller value of its column. Categories stay with the record. It is a smoothed bootstrap whose
    bandwidth follows the data: narrow where records are dense, wide where they are sparse.

    Parameters
    ----------
    data
        Microdata, a data frame, or an array with a row a record.
    size
        Number of records; as many as there are unless given.
    variant
        ``II``: the smallest value draws from the gap above it, so that nothing leaves the observed range. ``I``: it
        draws from below, down to ``lower``.
    columns
        Columns to interpolate; all of numbers, dates and times unless named. The others stay with the record.
    lower
        For variant I, where the gap below the smallest value begins; as far below it as the second smallest is above
        it unless given.
    within
        Where in its gap a value falls: ``uniform``; ``triangular`` or ``truncnorm`` around the middle, to stay away
        from real values; ``("beta", a, b)``.
    spikes
        Values that are kept as they are, e.g. ``[0]`` for amounts of which many are nothing.
    seed
        For the random numbers.

    Returns
    -------
    Draws
        ``values`` is of the kind that was given, with missing values, types and decimal places kept. Rounding goes
        towards the value that the gap belongs to, so that the distribution function is right at every value.

    Examples
    --------
    >>> drawn = interpolate(np.array([1.5, 2.25, 4.0]), 1000, seed=1).values
    >>> float(drawn.min()) >= 1.5, float(drawn.max()) <= 4.0
    (True, True)
    """
    if variant not in ("I", "II"):
        raise ParameterError("variant must be 'I' or 'II'.")
    if variant == "II" and lower is not None:
        raise ParameterError("lower is for variant 'I'; variant 'II' stays within the observed range.")
    records = Records.of(data)
    names = _chosen(records, columns)
    for given, what in ((lower, "'lower'"), (spikes, "'spikes'")):
        check_named({what: given if isinstance(given, Mapping) else ()}, names)
    rng = generator(seed)
    wanted = len(records) if size is None else count_of(size)
    rows = rng.integers(len(records), size=wanted)
    drawn: dict[str, Floats] = {}
    constant: list[str] = []
    for name in names:
        floor = lower.get(name) if isinstance(lower, Mapping) else lower
        kept = spikes.get(name, ()) if isinstance(spikes, Mapping) else spikes
        start, stop, upwards = _gaps(records.numbers[name], variant, floor, kept)
        if start is None:
            constant.append(name)
            continue
        share = _shares(within, wanted, rng)
        low, high = start[rows], stop[rows]
        moved = low + share * (high - low)
        drawn[name] = np.clip(_on_grid(moved, records.decimals[name], upwards[rows]), low, high)
    if constant:
        warnings.warn(
            f"Nothing to interpolate in {', '.join(map(repr, constant))}: there is at most one distinct value. "
            "It is kept.",
            DiscreetWarning,
            stacklevel=2,
        )
    return Draws(
        records.rebuilt(rows, drawn),
        {
            "method": f"interpolation, variant {variant}",
            "draws": wanted,
            "interpolated": tuple(drawn),
            "kept": tuple(name for name in records.table.columns if name not in drawn),
            "within": within,
        },
    )


def _chosen(records: Records, columns: str | Sequence[str] | None) -> tuple[str, ...]:
    if columns is None:
        return tuple(records.numbers)
    columns = (columns,) if isinstance(columns, str) else columns
    for name in columns:
        if name not in records.table.columns:
            raise ColumnError(unknown_name(name, records.table.columns))
        if name not in records.numbers:
            raise ColumnError(f"Column '{name}' holds no numbers, so there is nothing between its values.")
    return tuple(columns)


def _gaps(
    values: Floats, variant: str, lower: float | None, spikes: Sequence[float]
) -> tuple[Floats | None, Floats, Integers]:
    """Give each record its interval, and whether rounding goes up (to the value it ends at) or down."""
    ordinary = ~np.isnan(values) & ~np.isin(values, np.asarray(spikes, dtype=np.float64))
    levels, place = np.unique(values[ordinary], return_inverse=True)
    if not len(levels) or (len(levels) == 1 and (variant == "II" or lower is None)):
        return None, values, np.ones(len(values), dtype=np.int64)
    starts, stops, upwards = np.roll(levels, 1), levels.copy(), np.ones(len(levels), dtype=np.int64)
    if variant == "II":
        starts[0], stops[0], upwards[0] = levels[0], levels[1], 0
    else:
        starts[0] = 2 * levels[0] - levels[1] if lower is None else lower
        if starts[0] >= levels[0]:
            raise ParameterError("lower must lie below the smallest value of the column.")
    low, high, up = values.copy(), values.copy(), np.ones(len(values), dtype=np.int64)
    low[ordinary], high[ordinary], up[ordinary] = starts[place], stops[place], upwards[place]
    return low, high, up


def _shares(within: Within, n: int, rng: np.random.Generator) -> Floats:
    if within == "uniform":
        return 1.0 - rng.random(n)
    if within == "triangular":
        return rng.triangular(0.0, 0.5, 1.0, n)
    if within == "truncnorm":
        from scipy.special import ndtr, ndtri

        # Three standard deviations to either side of the middle.
        inside = ndtr(-3.0) + rng.random(n) * (ndtr(3.0) - ndtr(-3.0))
        return np.asarray(0.5 + ndtri(inside) / 6.0)
    is_beta = isinstance(within, tuple) and len(within) == 3 and within[0] == "beta"
    if is_beta and all(isinstance(shape, int | float) and shape > 0 for shape in within[1:]):
        return rng.beta(float(within[1]), float(within[2]), n)
    raise ParameterError("within must be 'uniform', 'triangular', 'truncnorm' or ('beta', a, b).")


def _on_grid(values: Floats, places: int | None, upwards: Integers) -> Floats:
    if places is None:
        return values
    scaled = values * 10.0**places
    return np.round(np.where(upwards, np.ceil(scaled - 1e-9), np.floor(scaled + 1e-9)) / 10.0**places, places)


# How close are drawn records to the real ones? The distances of `discreet.risk`, for files and arrays alike.
def closeness(original: Any, drawn: Any, *, holdout: Any = None, seed: Seed = None) -> Measure:
    """Which share of the drawn records are exact copies, and how far are the others from the closest real one?

    It is `discreet.risk.neighbors` for whatever the samplers take: Microdata, data frames or arrays.

    Examples
    --------
    >>> people = np.array([[20.0, 1.0], [30.0, 5.0], [44.0, 2.0], [60.0, 9.0]])
    >>> from discreet.synth.distributions.resampled_records import bootstrap
    >>> closeness(people, bootstrap(people, 10, seed=1)).figures["identical_share"]
    1.0
    """
    from discreet.risk import neighbors

    others = None if holdout is None else _file(holdout)
    return neighbors(_file(original), _file(drawn), holdout=others, seed=seed)


def _file(data: Any) -> Microdata:
    if isinstance(data, Draws):
        data = data.values
    if isinstance(data, Microdata):
        return data
    return Microdata(Records.of(data).table if isinstance(data, np.ndarray | list | tuple) else data)


# Draw on the segments between a record and its neighbors: SMOTE, and SMOTE-NC for mixed columns.


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

    Also known as: SMOTE; SMOTE-NC; synthetic minority oversampling technique.

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
    members = _classes(records, classes)
    features = [name for name in records.table.columns if not (isinstance(classes, str) and name == classes)]
    if not features:
        raise ParameterError("smote needs a column besides the classes.")
    space = _space(records, features, standardize)
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


def _classes(records: Records, classes: str | npt.ArrayLike | None) -> dict[Any, Integers]:
    """The rows of every class, by its name and in the order of the names."""
    if classes is None:
        return {None: np.arange(len(records))}
    if isinstance(classes, str):
        if classes not in records.table.columns:
            raise ColumnError(f"{unknown_name(classes, records.table.columns)} It was named under 'classes'.")
        series = records.table[classes]
    else:
        series = pl.Series(np.asarray(classes))
    if len(series) != len(records):
        raise ParameterError(f"classes has {len(series):,} labels for {len(records):,} records.")
    levels = series.unique().sort()
    keyed = pl.DataFrame({"level": levels, "place": np.arange(len(levels))})
    found = series.to_frame("level").join(
        keyed, on="level", how="left", nulls_equal=True, maintain_order="left"
    )
    return {level: np.flatnonzero(found["place"] == place) for place, level in enumerate(levels.to_list())}


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
    return np.asarray(near[np.arange(len(near)), votes.argmax(axis=1)])
