"""How near do the numbers of a synthetic survey come to those of a population: distributions, zeros, quantiles?"""

from __future__ import annotations

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats
from discreet.core.cards import Figure, measure
from discreet.core.constraints import ColumnName, ColumnNames
from discreet.core.errors import ColumnError, ParameterError, unknown_name
from discreet.core.parameters import checked
from discreet.core.results import Measure
from discreet.microdata import Microdata
from discreet.synth.household_surveys import weighted_quantiles
from discreet.utility.known_population import TEMPL, stands_for, weights_of

_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)


@measure(
    title="Numbers of a known population",
    question="How near are the distributions of numbers to those of the population?",
    headline="largest gap between two weighted distributions",
    chapter="specific",
    place=45,
    work="whole-file",
    references=(TEMPL,),
    figures={
        "value": Figure(
            "Largest gap between two weighted distributions", unit="share", better="lower", summary=True
        ),
        "mean_ks": Figure("Mean of the largest gaps of all columns", unit="share", better="lower"),
        "zero_gap": Figure(
            "Largest difference of a share of zeros", unit="share", better="lower", summary=True
        ),
        "missing_gap": Figure(
            "Largest difference of a share of missing values", unit="share", better="lower"
        ),
        "columns": Figure("Columns compared"),
    },
)
@checked
def population_numbers(
    original: Microdata,
    released: Microdata,
    *,
    columns: ColumnName | ColumnNames | None = None,
    population: Microdata | None = None,
) -> Measure:
    """How near are the distributions of numbers in a release to those of the population?

    Of every column the weighted distribution functions are compared (their largest gap, the Kolmogorov-Smirnov
    distance), the weighted shares of zeros and of missing values, and weighted quantiles of what is not zero. No
    p-value is given: a release is no independent sample.

    Parameters
    ----------
    original, released
        The survey before and after. Each counts by its weight, where it has one.
    columns
        Numbers to compare; all that both files have unless given.
    population
        The population that the survey was drawn from; without it the truth is what the weights of the original say.

    Returns
    -------
    Measure
        ``value`` is the largest gap between two distributions. ``figures``: ``mean_ks``, ``zero_gap``,
        ``missing_gap``, ``columns``. ``detail``: ``columns`` (one row a column: ``ks``, shares of zeros and of missing
        values on both sides) and ``quantiles``.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"pay": [0, 0, 10, 20]}))
    >>> sample = Microdata(pl.DataFrame({"pay": [0, 10, 20], "w": [1.0, 1.0, 2.0]}), weight="w")
    >>> found = population_numbers(sample, sample, population=people)
    >>> found.value, found.figures["zero_gap"]
    (0.25, 0.25)
    """
    truth = population if population is not None else original
    real, made = engine.collect(truth), engine.collect(released)
    apart = {own for file in (truth, released) for own in _without_numbers(file)}
    if columns is None:
        names = [
            n for n in real.columns if n in made.columns and n not in apart and _both_numbers(real, made, n)
        ]
    else:
        names = [columns] if isinstance(columns, str) else list(columns)
    for name in names:
        for frame in (real, made):
            if name not in frame.columns:
                raise ColumnError(unknown_name(name, frame.columns))
        if not _both_numbers(real, made, name):
            raise ColumnError(f"Column '{name}' is not a number in both files. Name columns of numbers.")
    if not names:
        raise ParameterError("There is no column of numbers that both files have. Name some under columns.")
    weight = weights_of(truth)
    other, caveats = stands_for(released, made.height, float(weight.sum()))
    rows, quantiles = [], []
    for name in names:
        here, there = _Numbers(real[name], weight), _Numbers(made[name], other)
        rows.append(
            {
                "column": name, "ks": _largest_gap(here, there),
                "zeros_true": here.zeros, "zeros": there.zeros,
                "missing_true": here.missing, "missing": there.missing,
            }
        )  # fmt: skip
        quantiles += [
            {"column": name, "share": share, "truth": a, "estimate": b}
            for share, a, b in zip(_SHARES, here.quantiles(), there.quantiles(), strict=True)
        ]
    table = pl.DataFrame(rows)
    gaps = table.drop_nulls("ks")["ks"]
    value = float(gaps.max()) if len(gaps) else None  # type: ignore[arg-type]
    zero, missing = (
        table.select((pl.col(a) - pl.col(b)).abs().max()).item()
        for a, b in (("zeros", "zeros_true"), ("missing", "missing_true"))
    )
    said = "No number can be compared." if value is None else (
        f"The distributions of {len(names):,} numbers are at most {value:.3g} apart, shares of zeros {zero:.3g}."
    )  # fmt: skip
    return Measure(
        "population_numbers",
        value,
        {
            "mean_ks": float(gaps.mean()) if len(gaps) else None,  # type: ignore[arg-type]
            "zero_gap": zero,
            "missing_gap": missing,
            "columns": len(names),
        },
        said,
        caveats=caveats,
        detail={"columns": table, "quantiles": pl.DataFrame(quantiles)},
        parameters={"columns": names},
    )


def _without_numbers(data: Microdata) -> list[str]:
    """Return columns that are numbers of somebody or something, not amounts: nobody compares their distribution."""
    roles = data.roles
    own = (roles.household, roles.person, roles.weight, *roles.identifiers, *roles.strata)
    return [name for name in own if name is not None]


def _both_numbers(real: pl.DataFrame, made: pl.DataFrame, name: str) -> bool:
    return real.schema[name].is_numeric() and made.schema[name].is_numeric()


class _Numbers:
    """The numbers of a column, sorted, with the weight of each; missing ones apart."""

    def __init__(self, series: pl.Series, weights: Floats) -> None:
        values = series.cast(pl.Float64).fill_nan(None)
        there = values.is_not_null().to_numpy()
        own = values.drop_nulls().to_numpy()
        order = np.argsort(own, kind="stable")
        self.values, self.weights = own[order], weights[there][order]
        self.total = float(self.weights.sum())
        self.missing = 1 - self.total / float(weights.sum()) if weights.sum() else None
        self.zeros = float(self.weights[self.values == 0].sum() / self.total) if self.total else None

    def upto(self, points: Floats) -> Floats:
        """Return the weighted share of numbers up to each point."""
        sums = np.concatenate([[0.0], np.cumsum(self.weights)]) / self.total
        return np.asarray(sums[np.searchsorted(self.values, points, side="right")])

    def quantiles(self) -> list[float | None]:
        """Return weighted quantiles of what is not zero."""
        own = self.values != 0
        if not self.weights[own].sum():
            return [None] * len(_SHARES)
        found = weighted_quantiles(self.values[own], self.weights[own], np.array(_SHARES))
        return [float(value) for value in found]


def _largest_gap(here: _Numbers, there: _Numbers) -> float | None:
    if not here.total or not there.total:
        return None
    points = np.unique(np.concatenate([here.values, there.values]))
    return float(np.abs(here.upto(points) - there.upto(points)).max())
