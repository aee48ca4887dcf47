"""The records of a private regression: columns held to public bounds, and how much one record can weigh."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from discreet.arrays import Floats
from discreet.dp.contributions import unit_of
from discreet.engine import collect, scan
from discreet.errors import ColumnError, InputError, ParameterError, unknown_name
from discreet.microdata import Microdata, require_microdata

Bounds = Mapping[str, tuple[float, float]]
Missing = Literal["error", "drop"]
INTERCEPT = "intercept"


@dataclass(frozen=True, eq=False)
class Design:
    """What a regression is fitted to, and what is public about it.

    Attributes
    ----------
    x, y
        The terms, one column each, within their bounds; the response.
    weights
        One a record, from 0 to ``max_weight``; empty where every record counts once.
    terms
        The names of the columns of ``x``.
    reach
        How large each term can be, by the bounds.
    max_weight
        How much one record can count.
    centers, widths
        What was taken off every term, and by what it was divided.
    intercept
        Whether the first term is the constant.
    """

    x: Floats
    y: Floats
    weights: Floats
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

    def on_the_scale_of_the_data(self, theta: Floats) -> Floats:
        """Coefficients of the terms as the data has them."""
        found = theta / self.widths
        if self.intercept:
            found[0] = theta[0] - float(np.sum(found[1:] * self.centers[1:]))
        return found


def read_design(
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
) -> Design:
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
    if missing not in ("error", "drop"):
        raise ParameterError("missing must be 'error' or 'drop'.")
    if not isinstance(intercept, bool) or not isinstance(standardize, bool):
        raise ParameterError("intercept and standardize must be True or False.")
    largest_weight = _public_weight(weight, max_weight)
    frame = _numbers(data, wanted)
    frame = _complete(frame, missing)
    if not frame.height:
        raise InputError("There is no record to fit a regression to.")
    columns = [_within(frame[name], *bounds[name]) for name in names]
    lows, highs = (np.asarray([bounds[name][at] for name in names]) for at in (0, 1))
    centers, widths = _scaling(lows, highs, intercept=intercept, standardize=standardize)
    if standardize:
        # Rounding may pass the bounds by a last digit.
        columns = [
            np.clip((column - center) / width, -1.0, 1.0)
            for column, center, width in zip(columns, centers, widths, strict=True)
        ]
    reach = np.maximum(np.abs((lows - centers) / widths), np.abs((highs - centers) / widths))
    if intercept:
        columns.insert(0, np.ones(frame.height))
        reach, centers, widths = (
            np.concatenate([[first], rest]) for first, rest in ((1.0, reach), (0.0, centers), (1.0, widths))
        )
    response = frame[y].to_numpy().astype(np.float64)
    if y_bounds is not None:
        response = _within(frame[y], *_pair(y_bounds, "y_bounds", y))
    weights = np.empty(0) if weight is None else _within(frame[weight], 0.0, largest_weight)
    terms = ((INTERCEPT,) if intercept else ()) + tuple(names)
    return Design(
        np.stack(columns, axis=1), response, weights, terms, reach, largest_weight, centers, widths, intercept
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
    for name in given:
        if name not in names:
            raise ColumnError(unknown_name(name, names, what="column of x"))
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
        if name not in data.columns:
            raise ColumnError(unknown_name(name, data.columns))
        if not data.schema[name].is_numeric():
            raise ColumnError(f"Column '{name}' is no number. Code it in numbers first, by public codes.")


def _numbers(data: Microdata, columns: Sequence[str]) -> pl.DataFrame:
    unique = list(dict.fromkeys(columns))
    found = collect(scan(data, {f"c{at}": name for at, name in enumerate(unique)}))
    return found.rename({f"c{at}": name for at, name in enumerate(unique)}).cast(pl.Float64)


def _complete(frame: pl.DataFrame, missing: Missing) -> pl.DataFrame:
    fine = pl.all_horizontal(pl.all().is_finite().fill_null(False))
    gaps = [name for name in frame.columns if not frame[name].is_finite().fill_null(False).all()]
    if not gaps:
        return frame
    if missing == "error":
        raise InputError(
            f"Column '{gaps[0]}' has missing or infinite values, and missing='error' states that there are none. Fill "
            "them, or say missing='drop': the records with gaps are then left out, and how many that are is not told. "
            "This refusal itself tells that there are some."
        )
    return frame.filter(fine)


def _within(column: pl.Series, low: float, high: float) -> Floats:
    """A copy of a column, held to its bounds on both sides."""
    return np.asarray(np.clip(column.to_numpy().astype(np.float64), low, high))


def _scaling(lows: Floats, highs: Floats, *, intercept: bool, standardize: bool) -> tuple[Floats, Floats]:
    """What is taken off and divided by: by public bounds, to [-1, 1]; without an intercept nothing is taken off."""
    if not standardize:
        return np.zeros(len(lows)), np.ones(len(lows))
    if intercept:
        return (lows + highs) / 2, (highs - lows) / 2
    return np.zeros(len(lows)), np.maximum(np.abs(lows), np.abs(highs))
