"""What an order-free synthesis did: to relations, to single values, and to the tie between records and people.

Beside it stands the Laplace switch, whose drift and missing guarantee it states.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Floats
from discreet.core.cards import pictured
from discreet.core.errors import ParameterError
from discreet.core.results import Detail, Measure
from discreet.core.wording import percent, shown
from discreet.microdata import Microdata
from discreet.risk.linkage import pictures_of_links
from discreet.synth.column_forms import NumberForm, Variable

if TYPE_CHECKING:
    from discreet.synth.all_others import FittedAllOthers


_LINKED_RECORDS = 2000


@pictured(pictures_of_links, of="all_others_diagnosis")
def diagnosis(model: FittedAllOthers, released: Microdata) -> Measure:
    """Compare a drawn file with the records of the model."""
    frame = engine.collect(released, list(model.records.forms))
    aligned = model.keeps_records
    if aligned and frame.height != model.rows:
        raise ParameterError(
            f"The released file has {frame.height:,} records, the model {model.rows:,}. Diagnose a file that was drawn "
            "from this model."
        )
    pairs = _pairs(model, frame)
    variables = _variables(model, frame)
    before = np.array([row["original"] for row in pairs])
    after = np.array([row["synthetic"] for row in pairs])
    change = float(np.abs(after - before).max()) if pairs else None
    r2 = [column.r2 for column in model.models.values()]
    switched = [row["switched_share"] for row in variables if row["switched_share"] is not None]
    figures: dict[str, Any] = {
        "max_correlation_change": change,
        "attenuation": float((after**2).sum() / (before**2).sum()) if pairs and (before**2).sum() else None,
        "mean_r2": float(np.mean(r2)),
        "max_r2": float(np.max(r2)),
        "switched_share": float(np.mean(switched)) if switched else None,
        "max_bias": max((abs(row["bias"]) for row in variables if row["bias"] is not None), default=None),
    }
    if aligned:
        figures |= _linked(model, frame)
    return Measure(
        "all_others_diagnosis",
        change,
        figures,
        _meaning(model, figures, len(pairs)),
        _caveats(model),
        dict(model.settings),
        Detail(
            correlations=lambda: pl.DataFrame(
                pairs, schema_overrides=dict.fromkeys(("original", "synthetic", "expected"), pl.Float64)
            ),
            variables=lambda: pl.DataFrame(
                variables,
                schema_overrides=dict.fromkeys(
                    ("sigma", "alignment", "agreement", "bias", "switched_share", "expected_bias"), pl.Float64
                ),
            ),
        ),
        guarantee=None,
    )


def _pairs(model: FittedAllOthers, frame: pl.DataFrame) -> list[dict[str, Any]]:
    records = model.records
    values = {name: _numbers(records.forms[name], frame[name]) for name in records.numbers}
    plain = model.keeps_records and not (
        model.settings["second_pass"] or model.settings["sweeps"] or model.scales
    )
    predicted = {name: model.models[name].predicted(records.scene) for name in records.numbers if plain}
    rows = []
    for one, other in combinations(records.numbers, 2):
        both = records.there(one) & records.there(other)
        there = ~np.isnan(values[one]) & ~np.isnan(values[other])
        if both.sum() < 3 or there.sum() < 3:
            continue
        expected = None
        if plain:
            # The noises are independent, so only the predictions covary.
            spread = [
                np.sqrt(predicted[name][both].var() + model.models[name].spread ** 2) for name in (one, other)
            ]
            covariance = float(np.cov(predicted[one][both], predicted[other][both], ddof=0)[0, 1])
            expected = covariance / float(spread[0] * spread[1]) if spread[0] and spread[1] else 0.0
        rows.append(
            {
                "one": one,
                "other": other,
                "original": _correlation(records.scene[one].values[both], records.scene[other].values[both]),
                "synthetic": _correlation(values[one][there], values[other][there]),
                "expected": expected,
            }
        )
    return rows


def _variables(model: FittedAllOthers, frame: pl.DataFrame) -> list[dict[str, Any]]:
    records, aligned = model.records, model.keeps_records
    rows = []
    for name, column in model.models.items():
        there, own = records.there(name), records.scene[name]
        row: dict[str, Any] = {
            "variable": name,
            "predictors": list(column.predictors),
            "r2": column.r2,
            "sigma": column.sigma,
            "floored": column.floored,
            "alignment": None,
            "agreement": None,
            "bias": None,
            "switched_share": None,
            "expected_bias": None,
        }
        if own.is_number:
            drawn = _numbers(records.forms[name], frame[name])
            row["bias"] = float(np.nanmean(drawn) - own.values[there].mean())
            if aligned:
                row["alignment"] = _correlation(own.values[there], drawn[there])
            if name in model.scales:
                row |= _switched(model, name, there)
        elif aligned:
            codes = records.forms[name].split(frame[name])[0].values
            row["agreement"] = float((codes[there] == own.values[there]).mean())
        rows.append(row)
    return rows


def _switched(model: FittedAllOthers, name: str, there: Flags) -> dict[str, float]:
    column = model.models[name]
    away = column.predicted(model.records.scene)[there] - model.records.scene[name].values[there]
    share, shift = switch_moments(away, column.spread, model.scales[name])
    return {"switched_share": float(share.mean()), "expected_bias": float(shift.mean())}


def _linked(model: FittedAllOthers, frame: pl.DataFrame) -> dict[str, Any]:
    """Let an intruder who knows the original values look for the nearest; on some records where there are many."""
    from discreet.risk import linkage

    rows = np.unique(np.linspace(0, model.rows - 1, min(model.rows, _LINKED_RECORDS)).astype(np.int64))
    original = model.records.released(model.records.scene)
    found = linkage(Microdata(original[rows]), Microdata(frame[rows]), columns=list(model.models))
    return {
        "linked_share": found.figures["linked_share"],
        "guess_share": found.figures["guess_share"],
        "linked_of": len(rows),
    }


def _numbers(form: Any, series: pl.Series) -> Floats:
    assert isinstance(form, NumberForm)
    parts: tuple[Variable, ...] = form.split(series)
    values = parts[-1].values.astype(np.float64)
    return np.where(parts[0].values < form.n_ordinary, values, np.nan) if len(parts) == 2 else values


def _correlation(x: Floats, y: Floats) -> float:
    if len(x) < 2 or x.std() == 0 or y.std() == 0:
        return 0.0
    return float(np.corrcoef(x, y)[0, 1])


def _meaning(model: FittedAllOthers, figures: dict[str, Any], pairs: int) -> str:
    said = []
    if pairs:
        said.append(
            f"Correlations between numbers changed by up to {shown(figures['max_correlation_change'])}; together they "
            f"keep {percent(figures['attenuation'] or 0.0)} of their squares."
        )
    if model.keeps_records:
        said.append(
            f"An intruder who knows the original values leads {percent(figures['linked_share'])} of the records back "
            f"to the right person (guessing: {percent(figures['guess_share'])})."
        )
    if figures["switched_share"] is not None:
        said.append(
            f"The Laplace switch released the true value with upward noise in "
            f"{percent(figures['switched_share'])} of the cells."
        )
    return " ".join(said) or "There are no two numbers whose correlation could be compared."


def _caveats(model: FittedAllOthers) -> list[str]:
    caveats = []
    if model.keeps_records and not model.settings["sweeps"]:
        caveats.append(
            "Synthetic records stand in the order of the original ones and can be linked to them: the correlation of a "
            "synthetic column with its original is its R² (detail['variables'])."
        )
        caveats.append(
            "Noises are independent across columns, so relations are not kept; sweeps=10 repairs that. With normal "
            "data a correlation r becomes r - p sqrt((1 - R1²)(1 - R2²)), p being the partial correlation."
        )
    if model.scales:
        caveats.append(f"No guarantee: {NO_SWITCH_IS_PRIVATE}")
    return caveats


# The Laplace switch: release a regression draw, unless Laplace noise exceeds its distance from the true value.
#
# For a value x with prediction m, draw c ~ N(m, s²) and l ~ Laplace(0, D / epsilon), where D is the length of the
# range of the variable. If |c - x| >= l, c is released, else x + l. It was proposed as a safeguard; what it does is
# stated here and tested:
#
# 1. a switch needs l > |c - x| >= 0, so the noise that is released is never negative and values drift upward; 2. the
# coefficients behind m and s are computed from the raw data without noise; 3. the log ratio of the output densities
# of two inputs is not bounded by epsilon: it grows without limit as s falls.
#
# It is therefore **not differentially private**, whatever epsilon is.
NO_SWITCH_IS_PRIVATE = (
    "the Laplace switch is not differentially private whatever epsilon is: its noise is one-sided, its models see the "
    "raw data, and its densities are not within epsilon of each other."
)


def switch(
    values: Floats, predicted: Floats, sigma: float, scale: float, rng: np.random.Generator
) -> tuple[Floats, Flags]:
    """Draw the released values and say which were switched to the noisy truth.

    Parameters
    ----------
    values, predicted
        The true values and their predictions.
    sigma
        Residual standard deviation of the regression.
    scale
        Of the Laplace noise: length of the range over epsilon.
    rng
        For the random numbers.
    """
    drawn = predicted + sigma * rng.standard_normal(len(values))
    noise = rng.laplace(0.0, scale, len(values))
    switched = np.abs(drawn - values) < noise
    return np.where(switched, values + noise, drawn), switched


def switch_moments(away: Floats, sigma: float, scale: float) -> tuple[Floats, Floats]:
    """Return the probability of a switch and the expected shift of the released value from the true one.

    ``away`` is the prediction less the true value. With d = |c - x| a switch has probability exp(-d / b) / 2 and then
    moves the value by d + b on average; both are integrated over the normal law of c.

    Examples
    --------
    >>> share, shift = switch_moments(np.zeros(1), 0.1, 1.0)
    >>> round(float(share[0]), 3), round(float(shift[0]), 3)
    (0.462, 0.498)
    """
    from scipy.special import log_ndtr, ndtr

    if sigma <= 0 or scale <= 0:
        raise ParameterError("sigma and scale must be positive.")
    tilt = sigma / scale
    share = np.zeros(len(away))
    moved = np.zeros(len(away))
    kept = np.zeros(len(away))
    for sign in (1.0, -1.0):
        # d = sign (c - x) on the side where that is positive; exp(-d / b) tilts the normal law by -sigma² / b.
        mean = sign * away
        center = mean - sigma * tilt
        weight = np.exp(tilt**2 / 2 - mean / scale + log_ndtr(center / sigma))
        density = np.exp(-((mean / sigma) ** 2) / 2) / np.sqrt(2 * np.pi)
        first = center * weight + sigma * density
        share += weight / 2
        moved += (first + scale * weight) / 2
        kept += sign * (mean * ndtr(mean / sigma) + sigma * density - first / 2)
    return share, moved + kept


def switch_density(released: Floats, value: float, predicted: float, sigma: float, scale: float) -> Floats:
    """Return the density of the released value given the true one.

    Examples
    --------
    >>> grid = np.linspace(-40, 40, 400_001)
    >>> round(float(np.trapezoid(switch_density(grid, 0.3, 0.5, 0.2, 1.0), grid)), 6)
    1.0
    """
    return np.exp(_log_density(released, value, predicted, sigma, scale))


def worst_log_ratio(epsilon: float, sigma: float, *, predicted: float = 0.0, points: int = 201) -> float:
    """Return a lower bound of the largest log ratio of densities between two true values in [0, 1].

    An epsilon-differentially private mechanism has at most epsilon. Here it is about 1 / (2 sigma²) where the
    prediction lies at an end of the range and sigma is small.

    Examples
    --------
    >>> round(worst_log_ratio(1.0, 0.5), 2), round(worst_log_ratio(1.0, 0.05))
    (1.64, 200)
    """
    if epsilon <= 0 or sigma <= 0:
        raise ParameterError("epsilon and sigma must be positive.")
    released = np.linspace(-2.0, 3.0, 20 * points)
    inputs = np.linspace(0.0, 1.0, points)
    logs = np.array([_log_density(released, x, predicted, sigma, 1 / epsilon) for x in inputs])
    return float((logs.max(axis=0) - logs.min(axis=0)).max())


def _log_density(released: Floats, value: float, predicted: float, sigma: float, scale: float) -> Floats:
    from scipy.special import log_ndtr

    away = np.abs(released - value)
    kept = (
        -((released - predicted) ** 2) / (2 * sigma**2)
        - np.log(sigma * np.sqrt(2 * np.pi))
        + np.log1p(-np.exp(-away / scale) / 2)
    )
    # The candidate lay nearer to the value than the released one: an interval around the value.
    high = (released - predicted) / sigma
    low = (2 * value - released - predicted) / sigma
    # In the upper tail the difference of two probabilities near 1 is that of two small ones on the other side.
    flip = low > 0
    high, low = np.where(flip, -low, high), np.where(flip, -high, low)
    with np.errstate(divide="ignore", invalid="ignore"):
        between = log_ndtr(high) + np.log1p(-np.exp(np.minimum(log_ndtr(low) - log_ndtr(high), 0.0)))
        noisy = np.where(released > value, -away / scale - np.log(2 * scale) + between, -np.inf)
    return np.asarray(np.logaddexp(kept, noisy))
