"""Draw between the observed values: records of the interpolated distribution function of the data."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ColumnError, DiscreetWarning, ParameterError, unknown_name
from discreet.core.randomness import Seed, generator
from discreet.synth.distributions.draws import Draws, count_of
from discreet.synth.distributions.records import Records

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
    for given, what in ((lower, "lower"), (spikes, "spikes")):
        for name in given if isinstance(given, Mapping) else ():
            if name not in names:
                raise ColumnError(f"{unknown_name(name, names)} It was named under '{what}'.")
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
