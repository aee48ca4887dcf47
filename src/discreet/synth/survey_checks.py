"""Does a synthetic file that is read without weights say about the population what the weighted survey says?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats
from discreet.core.errors import ColumnError, ParameterError, unknown_name
from discreet.core.results import Detail, Measure
from discreet.microdata import Microdata, require_microdata
from discreet.synth.column_forms import as_numbers

_MOST_LEVELS = 30
_LARGE_DESIGN_EFFECT = 3.0


def survey_check(
    data: Microdata,
    synthetic: Microdata | Sequence[Microdata],
    *,
    columns: Sequence[str] | None = None,
    limit: float = 3.0,
) -> Measure:
    """Are the means and shares of the synthetic file those that the weighted survey gives for the population?

    For each number its mean, for each level of a category its share: the Hájek estimate of the survey (weighted sum
    over sum of weights) beside the plain mean of the synthetic file, and their difference in standard errors.

    Parameters
    ----------
    data
        The survey, with its weight.
    synthetic
        The synthetic file, or several copies. Where it has a weight (the role), that is used.
    columns
        Which columns; all that both files have unless named.
    limit
        Differences of more standard errors than this are counted as too large.

    Returns
    -------
    Measure
        ``value`` is the largest difference in standard errors. ``figures``: ``beyond_limit``, ``compared``,
        ``design_effect`` (1 + cv² of the weights) and ``unweighted_beyond_limit``, which is what ignoring the weights
        would have given. ``detail["means"]`` has every comparison.

    How to read it
    --------------
    Among hundreds of comparisons a few beyond 3 are bad luck; many, or one far beyond, say that the synthesis has not
    carried the weights over. The standard error joins that of the weighted mean (linearized, with replacement) and that
    of the synthetic one.

    When not to trust it
    --------------------
    Strata and clusters of the design are not known here, so the standard error of a clustered survey is too small. It
    compares single columns: relations may still be wrong.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(size=2000)
    >>> survey = Microdata(pl.DataFrame({"x": x, "w": np.exp(x)}), weight="w")
    >>> bool(survey_check(survey, Microdata(pl.DataFrame({"x": rng.normal(1, 1, 2000)}))).value < 3)
    True
    """
    require_microdata(data)
    copies = [synthetic] if isinstance(synthetic, Microdata) else list(synthetic)
    if not copies:
        raise ParameterError("Give at least one synthetic file.")
    for copy in copies:
        require_microdata(copy, "synthetic")
    if data.roles.weight is None:
        raise ParameterError("The survey has no weight. Name its column: data.with_roles(weight='…').")
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit > 0:
        raise ParameterError("limit must be a number above zero, e.g. 3.")
    names = _names(data, copies, columns)
    frame = engine.collect(data, names)
    weights = _weights(data, "the survey")
    made = [
        (engine.collect(copy, names), _weights(copy, "a synthetic file") if copy.roles.weight else None)
        for copy in copies
    ]
    _check_kinds(names, frame, [table for table, _ in made])
    rows = [row for name in names for row in _compared(name, frame[name], weights, made)]
    table = pl.DataFrame(rows, infer_schema_length=None)
    worst = table.sort("standard_errors", descending=True).row(0, named=True)
    beyond = int((table["standard_errors"] > limit).sum())
    ignored = int((table["standard_errors_unweighted"] > limit).sum())
    effect = float(len(weights) * np.square(weights).sum() / weights.sum() ** 2)
    return Measure(
        name="survey_check",
        value=float(worst["standard_errors"]),
        figures={
            "compared": table.height,
            "beyond_limit": beyond,
            "unweighted_beyond_limit": ignored,
            "design_effect": effect,
        },
        meaning=(
            f"{beyond} of {table.height} means and shares of the synthetic file are more than {limit:g} standard "
            f"errors from what the weighted survey says; the largest difference, {worst['standard_errors']:.1f}, is in "
            f"'{worst['column']}'. A synthesis that ignored the weights would be off in about {ignored}."
        ),
        caveats=[
            f"The weights are very unequal (design effect {effect:.1f}): the standard errors are large, and "
            "differences may hide in them."
        ]
        if effect > _LARGE_DESIGN_EFFECT
        else [],
        parameters={"columns": list(names), "limit": limit, "copies": len(copies)},
        detail=Detail(means=lambda: engine.like(data, table)),
    )


def _names(data: Microdata, copies: Sequence[Microdata], columns: Sequence[str] | None) -> list[str]:
    hidden = (*data.roles.identifiers, data.roles.weight)
    if columns is None:
        names = [n for n in data.columns if n not in hidden and all(n in copy.schema for copy in copies)]
        if not names:
            raise ColumnError("The survey and the synthetic file have no column in common.")
        return names
    for name in columns:
        for known in (data.columns, *(copy.columns for copy in copies)):
            if name not in known:
                raise ColumnError(f"{unknown_name(name, known)} It was named under columns.")
    return list(columns)


def _weights(data: Microdata, which: str) -> Floats:
    name = str(data.roles.weight)
    weights = engine.collect(data, [name])[name].cast(pl.Float64).to_numpy()
    bad = int((~(np.isfinite(weights) & (weights > 0))).sum())
    if bad:
        raise ColumnError(
            f"The weight '{name}' of {which} must be a positive number in every record; in {bad:,} it is not. Correct "
            "or drop those records, or take the role away: with_roles(weight=None)."
        )
    return weights


def _check_kinds(names: Sequence[str], frame: pl.DataFrame, made: Sequence[pl.DataFrame]) -> None:
    """Refuse a column that is a number in one file and a category in another."""
    for name in names:
        kinds = {_is_number(table[name]) for table in (frame, *made) if table[name].dtype != pl.Null}
        if len(kinds) > 1:
            raise ColumnError(
                f"Column '{name}' is a number in one file and a category in another. Give it the type of the survey, "
                "or leave it out with columns=."
            )


def _is_number(series: pl.Series) -> bool:
    return series.dtype.is_numeric() and series.dtype != pl.Boolean


def _compared(
    name: str,
    series: pl.Series,
    weights: Floats,
    made: Sequence[tuple[pl.DataFrame, Floats | None]],
) -> list[dict[str, Any]]:
    """Compare the mean of a number (of those who have one) and the share missing, or the shares of all levels."""

    def row(what: str, ours: pl.Series, theirs: Sequence[pl.Series]) -> dict[str, Any]:
        drawn = [
            _hajek(own, np.ones(len(own)) if weight is None else weight)
            for own, (_, weight) in zip(theirs, made, strict=True)
        ]
        return {"column": name, "figure": what, **_difference(ours, weights, drawn)}

    if _is_number(series):
        ours, theirs = as_numbers(series), [as_numbers(table[name]) for table, _ in made]
        known = all(column.null_count() < len(column) for column in (ours, *theirs))
        rows = [row("mean", ours, theirs)] if known else []
        if ours.null_count() or not known:
            gaps = [own.is_null().cast(pl.Float64) for own in theirs]
            rows.append(row("share missing", ours.is_null().cast(pl.Float64), gaps))
        return rows
    plain = series.cast(pl.String)
    levels = plain.rename("level").value_counts(sort=True)["level"].head(_MOST_LEVELS).to_list()
    return [
        row(f"share of level {number}", _is(plain, level), [_is(table[name], level) for table, _ in made])
        for number, level in enumerate(levels, start=1)
    ]


def _is(series: pl.Series, level: str | None) -> pl.Series:
    return series.cast(pl.String).eq_missing(pl.Series([level], dtype=pl.String)).cast(pl.Float64)


def _difference(ours: pl.Series, weights: Floats, drawn: Sequence[tuple[float, float]]) -> dict[str, float]:
    survey, variance = _hajek(ours, weights)
    plain, _ = _hajek(ours, np.ones(len(ours)))
    synthetic = float(np.mean([mean for mean, _ in drawn]))
    error = float(np.sqrt(variance + np.mean([own for _, own in drawn]) / len(drawn)))
    return {
        "survey": survey,
        "synthetic": synthetic,
        "unweighted": plain,
        "standard_error": error,
        "standard_errors": _in_errors(survey - synthetic, error),
        "standard_errors_unweighted": _in_errors(survey - plain, float(np.sqrt(variance))),
    }


def _hajek(values: pl.Series, weights: Floats) -> tuple[float, float]:
    """Return the weighted mean and its linearized variance, over those who have a value."""
    there = values.is_not_null().to_numpy()
    y, w = values.drop_nulls().to_numpy(), weights[there]
    if not len(y):
        return float("nan"), float("nan")
    mean = float((w * y).sum() / w.sum())
    parts = w * (y - mean) / w.sum()
    return mean, float(np.square(parts).sum() * len(y) / max(len(y) - 1, 1))


def _in_errors(difference: float, error: float) -> float:
    if error > 0:
        return abs(difference) / error
    return 0.0 if difference == 0 else float("inf")
