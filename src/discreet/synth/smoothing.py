"""Blur numbers that were drawn from donors, so that no synthetic value is a real one, and keep their distribution."""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Flags, Floats
from discreet.core.errors import ParameterError, unknown_name
from discreet.numerics.counts_of_counts import mostly_own

SMOOTHINGS = ("spline", "density", "running-mean", "adaptive", "between")
_NEIGHBORS = 3
_SPIKE = 0.7
_COMMON = 0.1  # a value of so many is nobody\'s own: no income, no benefit
_TOP_CODED = 0.01
_KNOTS = 1000
_BINS = 1000
_HEAP = 10
_REACH = 10


def smoothed(values: Floats, kind: str, *, low: float, high: float, rng: np.random.Generator) -> Floats:
    """Blur drawn values.

    A value that holds more than 70 percent of the records (a tenth, for ``"adaptive"``), and top-coded ones (more than
    one percent at the largest value), stay as they are: they are no numbers that a neighbor could have. The others
    stay within the observed range.

    Parameters
    ----------
    values
        Drawn numbers.
    kind
        ``"spline"`` and ``"running-mean"`` smooth the sorted values; ``"density"`` adds normal noise with the
        bandwidth of Sheather and Jones (1991), and ``"adaptive"`` does so where values stand close together, but more
        where they stand apart: as much as the third next value is away. Of these four only ``"adaptive"`` leaves nobody
        of the largest with a number next to their own. ``"between"`` leaves numbers that ten records or more have as
        they are (a pay of 1,000, a week of 40 hours), and draws the others anywhere between those that stand ten places
        below and above.
    low, high
        Smallest and largest observed value.
    rng
        For the noise, and for the order of equal values.

    Examples
    --------
    >>> smoothed(np.array([1.0, 2.0, 4.0]), "running-mean", low=1, high=4, rng=np.random.default_rng(1))
    array([1.5       , 2.33333333, 3.        ])
    """
    if kind not in SMOOTHINGS:
        raise ParameterError(unknown_name(kind, SMOOTHINGS, what="smoothing"))
    free = _free(values, _COMMON if kind == "adaptive" else _SPIKE) if kind != "between" else _rare(values)
    if free.sum() < 3 or np.ptp(values[free]) == 0:
        return values
    own = values[free]
    if kind == "between":
        fresh = _between(own, rng)
    elif kind == "density":
        fresh = own + sheather_jones(own) * rng.standard_normal(len(own))
    elif kind == "adaptive":
        width = np.maximum(sheather_jones(own), _apart(own))
        # Noise beyond the range comes back into it: the ends must not collect values, for they are somebody's.
        fresh = _folded(own + width * rng.standard_normal(len(own)), low, high)
    else:
        order = np.lexsort((rng.random(len(own)), own))
        fresh = np.empty(len(own))
        fresh[order] = _spline(own[order]) if kind == "spline" else _running_mean(own[order])
    blurred = values.copy()
    blurred[free] = np.clip(fresh, low, high)
    return blurred


def sheather_jones(values: Floats) -> float:
    """Return the bandwidth of a normal kernel by the solve-the-equation rule of Sheather and Jones (1991).

    Distances between records are counted in 1,000 bins, so that a million records take no longer than a thousand.
    """
    # High powers of the bandwidth follow, so it is looked for in units of about the range.
    unit = 2.0 ** (int(np.frexp(values.max() / 2 - values.min() / 2)[1]) + 1)
    return unit * _bandwidth(values / unit)


def _bandwidth(values: Floats) -> float:
    from scipy.optimize import brentq

    n = len(values)
    low, high = float(values.min()), float(values.max())
    width = (high - low) / _BINS
    held = np.bincount(np.minimum(((values - low) / width).astype(np.int64), _BINS - 1), minlength=_BINS)
    size = 1 << (2 * _BINS - 1).bit_length()
    spectrum = np.fft.rfft(held, size)
    pairs = np.fft.irfft(np.abs(spectrum) ** 2, size)[:_BINS]
    pairs[0] -= n
    pairs[1:] *= 2
    gaps = np.arange(_BINS) * width

    def fourth(h: float) -> float:
        d = (gaps / h) ** 2
        terms = np.exp(-d / 2) * (d**2 - 6 * d + 3)
        return float((pairs @ terms + n * 3) / (n * (n - 1) * h**5 * np.sqrt(2 * np.pi)))

    def sixth(h: float) -> float:
        d = (gaps / h) ** 2
        terms = np.exp(-d / 2) * (d**3 - 15 * d**2 + 45 * d - 15)
        return float((pairs @ terms - n * 15) / (n * (n - 1) * h**7 * np.sqrt(2 * np.pi)))

    quarter = np.subtract(*np.quantile(values, [0.75, 0.25]))
    spread = min(float(values.std(ddof=1)), float(quarter) / 1.349) or float(values.std(ddof=1))
    first, second = 1.24 * spread * n ** (-1 / 7), 1.23 * spread * n ** (-1 / 9)
    ratio = fourth(first) / -sixth(second)
    normal = 1.06 * spread * n**-0.2
    if not ratio > 0:
        return float(normal)

    def equation(h: float) -> float:
        pilot = fourth(1.357 * ratio ** (1 / 7) * h ** (5 / 7))
        return float((1 / (2 * np.sqrt(np.pi) * n * pilot)) ** 0.2 - h) if pilot > 0 else -h

    small, large = normal / 20, normal * 3
    if equation(small) * equation(large) > 0:
        return float(normal)
    return float(brentq(equation, small, large))


def own_values(values: Floats) -> bool:
    """Whether most of these numbers, but for those that many share, are one record's alone and tell whose it is.

    Examples
    --------
    >>> own_values(np.array([1.0, 2.0, 3.0, 3.0])), own_values(np.array([1.0, 1.0, 2.0, 2.0]))
    (True, False)
    """
    return mostly_own(np.unique(values, return_counts=True)[1])


def _apart(values: Floats) -> Floats:
    """Return how far the third next other value is from each."""
    distinct, place = np.unique(values, return_inverse=True)
    reach = min(_NEIGHBORS, len(distinct) - 1)
    padded = np.concatenate([np.full(reach, -np.inf), distinct, np.full(reach, np.inf)])
    ranks = np.arange(len(distinct)) + reach
    gaps = np.stack([np.abs(padded[ranks + step] - distinct) for step in range(-reach, reach + 1) if step])
    return np.asarray(np.sort(gaps, axis=0)[reach - 1][place])


def _folded(values: Floats, low: float, high: float) -> Floats:
    span = high - low
    away = np.mod(values - low, 2 * span)
    return np.asarray(low + np.where(away > span, 2 * span - away, away))


def _free(values: Floats, spike: float) -> Flags:
    distinct, held = np.unique(values, return_counts=True)
    fixed = distinct[held > spike * len(values)]
    top = distinct[-1:] if held[-1] > max(_TOP_CODED * len(values), 10) else distinct[:0]
    return ~np.isin(values, np.concatenate([fixed, top]))


def _rare(values: Floats) -> Flags:
    """Say which values fewer records have than make a heap."""
    _, place, held = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray(held[place] < _HEAP)


def _between(values: Floats, rng: np.random.Generator) -> Floats:
    """Replace each value by any number between those that stand ten places below and above it, or at the ends."""
    order = np.lexsort((rng.random(len(values)), values))
    ranked, place = values[order], np.arange(len(values))
    low = ranked[np.maximum(place - _REACH, 0)]
    high = ranked[np.minimum(place + _REACH, len(values) - 1)]
    fresh = np.empty(len(values))
    fresh[order] = low + (high - low) * rng.random(len(values))
    return fresh


def _spline(ordered: Floats) -> Floats:
    """Smooth sorted values by a cubic spline of their ranks, its roughness chosen by cross-validation."""
    from scipy.interpolate import make_smoothing_spline

    if len(ordered) < 6:
        return _running_mean(ordered)
    place = np.unique(np.linspace(0, len(ordered) - 1, min(_KNOTS, len(ordered))).astype(np.int64))
    fitted = make_smoothing_spline(place.astype(np.float64), ordered[place])
    return np.asarray(np.maximum.accumulate(fitted(np.arange(len(ordered)))))


def _running_mean(ordered: Floats) -> Floats:
    """Average each sorted value with the two on either side of it, fewer at the ends."""
    total = np.concatenate([[0.0], np.cumsum(ordered)])
    at = np.arange(len(ordered))
    reach = np.minimum(2, np.minimum(at, len(ordered) - 1 - at).clip(1))
    first, last = np.maximum(at - reach, 0), np.minimum(at + reach, len(ordered) - 1)
    return np.asarray((total[last + 1] - total[first]) / (last - first + 1))
