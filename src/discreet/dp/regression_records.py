"""The records of a private regression, held to public bounds, and what a residual costs: the smoothed check loss."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.core.arrays import Floats, numbers_of
from discreet.core.errors import ColumnError, InputError, ParameterError, need_known
from discreet.core.parameters import checked
from discreet.core.wording import shown
from discreet.dp.sensitivity import Range, unit_of
from discreet.engine import collect, scan
from discreet.microdata import Microdata, require_microdata

Kernel = Literal["logistic", "gaussian", "uniform", "laplacian", "epanechnikov"]
KERNELS: tuple[str, ...] = get_args(Kernel)
"""In the order by which the compiled loops know them."""

HIGHEST = {
    "logistic": 0.25,
    "gaussian": 1 / math.sqrt(2 * math.pi),
    "uniform": 0.5,
    "laplacian": 0.5,
    "epanechnikov": 0.75,
}
"""The largest value of each kernel's density."""
Bounds = Mapping[str, tuple[float, float]]
Missing = Literal["error", "drop"]
Piece = tuple[Floats, Floats, Floats]
INTERCEPT = "intercept"
_AT_ONCE = 1 << 16


@dataclass(frozen=True, eq=False)
class _Terms:
    """What is public about a regression.

    Attributes
    ----------
    terms
        The names of the columns of the matrix.
    reach
        How large each term can be, by the bounds.
    max_weight
        How much one record can count.
    centers, widths
        What was taken off every term, and by what it was divided.
    intercept
        Whether the first term is the constant.
    """

    terms: tuple[str, ...]
    reach: Floats
    max_weight: float
    centers: Floats
    widths: Floats
    intercept: bool

    @property
    def largest(self) -> float:
        """The largest size of any term (C)."""
        return float(self.reach.max())

    @property
    def length(self) -> float:
        """The largest length of a record's terms (B)."""
        return float(np.sqrt(np.sum(self.reach**2)))

    def in_words(self, line: Floats) -> str:
        """Write coefficients as the sum that they are."""
        return " + ".join(
            shown(float(value)) if self.intercept and not at else f"{shown(float(value))} × {term}"
            for at, (term, value) in enumerate(zip(self.terms, line, strict=True))
        )

    def on_the_scale_of_the_data(self, theta: Floats) -> Floats:
        """Coefficients of the terms as the data has them."""
        found = theta / self.widths
        if self.intercept:
            found[0] = theta[0] - float(np.sum(found[1:] * self.centers[1:]))
        return found


@dataclass(frozen=True, eq=False)
class Design(_Terms):
    """What a regression is fitted to, all of it at once.

    Attributes
    ----------
    x, y
        The terms, one column each, within their bounds; the response.
    weights
        One a record, from 0 to ``max_weight``; empty where every record counts once.
    """

    x: Floats
    y: Floats
    weights: Floats

    def pieces(self) -> Iterator[Piece]:
        """Some records at a time: terms, response and weights."""
        for start in range(0, len(self.y), _AT_ONCE):
            piece = slice(start, start + _AT_ONCE)
            yield self.x[piece], self.y[piece], self.weights[piece]


@dataclass(frozen=True, eq=False)
class Records(_Terms):
    """What a regression is fitted to, as it was read: who needs one pass only takes it in pieces.

    A matrix of ten million records is fresh memory, and to touch it first takes longer than to add it up.

    Attributes
    ----------
    columns, bounds
        The columns of the terms, without the constant, and their public bounds.
    response, response_bounds
        The column that is explained, and its bounds where it has some.
    weight
        The column of weights.
    standardized
        Whether terms are brought to -1…1.
    """

    columns: tuple[pl.Series, ...]
    bounds: tuple[tuple[float, float], ...]
    response: pl.Series
    response_bounds: tuple[float, float] | None
    weight: pl.Series | None
    standardized: bool

    def pieces(self) -> Iterator[Piece]:
        """Some records at a time: terms, response and weights, held to their bounds on both sides."""
        for start in range(0, len(self.response), _AT_ONCE):
            y = _piece(self.response, start, self.response_bounds)
            weights = (
                np.empty(0) if self.weight is None else _piece(self.weight, start, (0.0, self.max_weight))
            )
            x = np.ones((len(y), len(self.terms)))
            for place, (column, bounds) in enumerate(
                zip(self.columns, self.bounds, strict=True), self.intercept
            ):
                term = _piece(column, start, bounds)
                if self.standardized:
                    # Rounding may pass the bounds by a last digit.
                    term = np.clip((term - self.centers[place]) / self.widths[place], -1.0, 1.0)
                x[:, place] = term
            yield x, y, weights

    def whole(self) -> Design:
        """All records in one matrix, for who passes over them again and again."""
        many = len(self.response)
        x, y = np.empty((many, len(self.terms))), np.empty(many)
        weights = np.empty(0 if self.weight is None else many)
        for start, (terms, response, own) in zip(range(0, many, _AT_ONCE), self.pieces(), strict=True):
            piece = slice(start, start + len(response))
            x[piece], y[piece] = terms, response
            if len(own):
                weights[piece] = own
        return Design(
            self.terms, self.reach, self.max_weight, self.centers, self.widths, self.intercept, x, y, weights
        )


def read_records(
    data: Microdata,
    y: str,
    x: str | Sequence[str],
    x_bounds: Bounds | Sequence[tuple[float, float]] | None,
    *,
    intercept: bool,
    standardize: bool,
    missing: Missing,
    weight: str | None,
    max_weight: float | None,
    y_bounds: tuple[float, float] | None = None,
) -> Records:
    """Read the columns, hold them to their bounds and refuse what cannot be meant; nothing is spent here."""
    require_microdata(data)
    if unit_of(data) != "record":
        raise ParameterError(
            "A private regression counts every record as somebody else. Take one record a person first, and leave out "
            "the role."
        )
    names = [x] if isinstance(x, str) else list(x)
    if not names or len(set(names)) < len(names):
        raise ParameterError("x must name at least one column, and none twice.")
    wanted = [*names, y, *([weight] if weight else [])]
    _check_numeric(data, wanted)
    bounds = public_bounds(names, x_bounds)
    largest_weight = _public_weight(weight, max_weight)
    frame = _numbers(data, wanted)
    frame = _complete(frame, missing)
    if not frame.height:
        raise InputError("There is no record to fit a regression to.")
    lows, highs = (np.asarray([bounds[name][at] for name in names]) for at in (0, 1))
    centers, widths = _scaling(lows, highs, intercept=intercept, standardize=standardize)
    reach = np.maximum(np.abs((lows - centers) / widths), np.abs((highs - centers) / widths))
    if intercept:
        reach, centers, widths = (
            np.concatenate([[first], rest]) for first, rest in ((1.0, reach), (0.0, centers), (1.0, widths))
        )
    return Records(
        ((INTERCEPT,) if intercept else ()) + tuple(names),
        reach,
        largest_weight,
        centers,
        widths,
        intercept,
        tuple(frame[name] for name in names),
        tuple(bounds[name] for name in names),
        frame[y],
        None if y_bounds is None else _pair(y_bounds, "y_bounds", y),
        None if weight is None else frame[weight],
        standardize,
    )


def public_bounds(
    names: Sequence[str], given: Bounds | Sequence[tuple[float, float]] | None
) -> dict[str, tuple[float, float]]:
    """The stated bounds of every column, or an error that says which are missing."""
    if given is None:
        raise ParameterError(
            "x_bounds must give the public bounds of every column of x: {'age': (0, 120)}. They are never read off the "
            "data."
        )
    if not isinstance(given, Mapping):
        pairs = list(given)
        if len(pairs) != len(names):
            raise ParameterError(f"x_bounds has {len(pairs)} pairs for {len(names)} columns of x.")
        given = dict(zip(names, pairs, strict=True))
    need_known(given, names, what="column of x")
    for name in names:
        if name not in given:
            raise ParameterError(f"x_bounds has no bounds for column '{name}'. They must be public.")
    return {name: _pair(given[name], "x_bounds", name) for name in names}


def _pair(bounds: Any, parameter: str, column: str) -> tuple[float, float]:
    pair = tuple(bounds) if isinstance(bounds, Sequence) and not isinstance(bounds, str) else ()
    if len(pair) != 2 or any(
        isinstance(bound, bool) or not isinstance(bound, int | float) or not math.isfinite(bound)
        for bound in pair
    ):
        raise ParameterError(
            f"{parameter} of column '{column}' must be two numbers that are known without the data: the lowest and the "
            "highest."
        )
    if not pair[0] < pair[1]:
        raise ParameterError(
            f"{parameter} of column '{column}': the lower bound must be less than the upper one."
        )
    Range(column, *pair)  # refuses bounds for which there is no arithmetic
    return float(pair[0]), float(pair[1])


def _public_weight(weight: str | None, largest: float | None) -> float:
    if weight is None:
        if largest is not None:
            raise ParameterError("max_weight is the largest weight of a column, and weight names none.")
        return 1.0
    number = isinstance(largest, int | float) and not isinstance(largest, bool)
    if not number or not 0 < largest < math.inf:  # type: ignore[operator]
        raise ParameterError(
            f"Weights of column '{weight}' need max_weight: a public number that no weight passes, known without the "
            "data. One record moves the answer by as much."
        )
    return float(largest)  # type: ignore[arg-type]


def _check_numeric(data: Microdata, columns: Sequence[str]) -> None:
    for name in columns:
        need_known([name], data.columns)
        if not data.schema[name].is_numeric():
            raise ColumnError(f"Column '{name}' is no number. Code it in numbers first, by public codes.")


def _numbers(data: Microdata, columns: Sequence[str]) -> pl.DataFrame:
    """Columns as floats; those of a small file are read once, however many regressions are asked for."""
    unique = tuple(dict.fromkeys(columns))
    kept = data.memory.setdefault("private numbers", {})
    if unique in kept:
        return cast(pl.DataFrame, kept[unique])
    found = collect(scan(data, {f"c{at}": name for at, name in enumerate(unique)}))
    found = found.rename({f"c{at}": name for at, name in enumerate(unique)}).cast(pl.Float64)
    if found.height <= _AT_ONCE:
        kept[unique] = found
    return found


def _complete(frame: pl.DataFrame, missing: Missing) -> pl.DataFrame:
    gaps = [
        name
        for name in frame.columns
        if frame[name].null_count() or not np.isfinite(frame[name].to_numpy()).all()
    ]
    if not gaps:
        return frame
    if missing == "error":
        raise InputError(
            f"Column '{gaps[0]}' has missing or infinite values, and missing='error' states that there are none. Fill "
            "them, or say missing='drop': the records with gaps are then left out, and how many that are is not told. "
            "This refusal itself tells that there are some."
        )
    return frame.filter(pl.all_horizontal(pl.all().is_finite().fill_null(False)))


def _piece(column: pl.Series, start: int, bounds: tuple[float, float] | None) -> Floats:
    """A copy of a part of a column, held to its bounds on both sides."""
    values = column.slice(start, _AT_ONCE).to_numpy()
    return np.array(values) if bounds is None else np.asarray(np.clip(values, *bounds))


def _scaling(lows: Floats, highs: Floats, *, intercept: bool, standardize: bool) -> tuple[Floats, Floats]:
    """What is taken off and divided by: by public bounds, to [-1, 1]; without an intercept nothing is taken off."""
    if not standardize:
        return np.zeros(len(lows)), np.ones(len(lows))
    if intercept:
        return (lows + highs) / 2, (highs - lows) / 2
    return np.zeros(len(lows)), np.maximum(np.abs(lows), np.abs(highs))


# How much does a residual cost in quantile regression, smoothed so that it has derivatives?
#
# The check loss ``|u| / 2 + (tau - 1/2) u`` has a corner at 0. Averaged over a kernel of bandwidth h it becomes
# ``(h / 2) I(u / h) + (tau - 1/2) u`` with ``I(t) = E |t + V|``, V drawn from the kernel (Fernandes, Guerre and Horta
# 2021; He, Pan, Tan and Zhou 2023). Its slope lies between tau - 1 and tau and its curvature below sup k / h, whatever
# the data are: that is what private regression rests on.


@dataclass(frozen=True)
class CheckLoss:
    """The loss of one quantile: tau, the bandwidth and the kernel."""

    tau: float
    h: float
    kernel: Kernel

    @property
    def slope(self) -> float:
        """How steep the loss can be."""
        return max(self.tau, 1 - self.tau)

    @property
    def curvature(self) -> float:
        """How far it can be curved."""
        return HIGHEST[self.kernel] / self.h

    @property
    def numbers(self) -> tuple[float, float, int]:
        """Tau, the bandwidth and the place of the kernel, as the compiled loops take them."""
        return self.tau, self.h, KERNELS.index(self.kernel)


@checked
def smoothed_check_loss(
    u: npt.ArrayLike, tau: float, h: float, kernel: Kernel = "logistic"
) -> tuple[Any, Any, Any]:
    """What does a residual cost, and how fast does that change?

    Parameters
    ----------
    u
        Residuals: the observed value less the fitted one.
    tau
        The quantile, between 0 and 1.
    h
        The bandwidth, above 0: how far from 0 the corner is rounded off. It must not come from the data where the fit
        is private.
    kernel
        ``"logistic"``, ``"gaussian"``, ``"uniform"``, ``"laplacian"`` or ``"epanechnikov"``.

    Returns
    -------
    tuple
        The loss, its first and its second derivative, each in the shape of ``u``.

    Examples
    --------
    >>> [round(value, 6) for value in smoothed_check_loss(0.3, 0.5, 0.5, "logistic")]
    [0.368744, 0.145656, 0.457568]
    """
    checked_quantile(tau)
    checked_smoothing(kernel, h)
    residuals = numbers_of(u, "u", empty=True)
    t = residuals / h
    density, below, folded = _parts(t, kernel)
    found = (h / 2 * folded + (tau - 0.5) * residuals, below + tau - 1, density / h)
    return found if residuals.ndim else tuple(float(part) for part in found)  # type: ignore[return-value]


def checked_quantile(tau: Any) -> float:
    """Refuse what is no quantile strictly between 0 and 1."""
    if isinstance(tau, bool) or not isinstance(tau, int | float) or not 0 < tau < 1:
        raise ParameterError("tau must be a number between 0 and 1, and neither of the two.")
    return float(tau)


def checked_smoothing(kernel: Any, h: Any) -> None:
    """Refuse a kernel nobody knows and a bandwidth that is no number above 0."""
    if kernel not in KERNELS:
        raise ParameterError(f"kernel must be one of {', '.join(map(repr, KERNELS))}.")
    if isinstance(h, bool) or not isinstance(h, int | float) or not 0 < h < math.inf:
        raise ParameterError("h must be a number of more than 0: the bandwidth, known without the data.")


def _parts(t: Floats, kernel: Kernel) -> tuple[Floats, Floats, Floats]:
    """The density, its distribution function and E |t + V|."""
    from scipy.special import expit, ndtr

    inside = np.abs(t) <= 1
    if kernel == "logistic":
        below = expit(t)
        # t + 2 log(1 + e^-t), which overflows nowhere in this form.
        return below * expit(-t), below, t + 2 * np.logaddexp(0.0, -t)
    if kernel == "gaussian":
        density = np.exp(-t * t / 2) / math.sqrt(2 * math.pi)
        return density, ndtr(t), 2 * density + t * (1 - 2 * ndtr(-t))
    if kernel == "uniform":
        density = np.where(inside, 0.5, 0.0)
        return density, np.clip((t + 1) / 2, 0, 1), np.where(inside, (t * t + 1) / 2, np.abs(t))
    if kernel == "laplacian":
        tail = np.exp(-np.abs(t))
        return tail / 2, 0.5 + np.sign(t) * (1 - tail) / 2, np.abs(t) + tail
    held = np.clip(t, -1, 1)
    return (
        np.where(inside, 0.75 * (1 - held * held), 0.0),
        0.75 * held - held**3 / 4 + 0.5,
        np.where(inside, 0.75 * held**2 - held**4 / 8 + 0.375, np.abs(t)),
    )
