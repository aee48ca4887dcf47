"""How near do a synthetic survey's estimates, numbers and households come to a population that is known?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats, need_pairs, numbers_of
from discreet.core.cards import Figure, measure
from discreet.core.constraints import Above, ColumnName, ColumnNames, HoldsValues, Public
from discreet.core.errors import ColumnError, ParameterError, need_known
from discreet.core.findings import OfReleaseStudy, ReleaseFacts
from discreet.core.parameters import checked
from discreet.core.results import Measure
from discreet.microdata import Microdata
from discreet.synth.household_surveys import weighted_quantiles
from discreet.utility.plausible_households import household_rules

TEMPL = (
    "Templ, M., Meindl, B., Kowarik, A. and Dupriez, O. (2017). Simulation of synthetic complex data: the R package "
    "simPop. Journal of Statistical Software 79(10), 1–38. doi:10.18637/jss.v079.i10"
)
_MOST_VALUES = 20
_POPULATION = 0.5
_PLAIN = (
    "households",
    "without an adult",
    "mixed",
    "size that is not its number of members",
    "more than one stratum",
)


@measure(
    room="utility",
    title="Estimates of a known population",
    question="How near are estimated tables to the population?",
    headline="mean error of an estimated count",
    chapter="specific",
    place=41,
    work="whole-file",
    references=(TEMPL,),
    figures={
        "value": Figure("Mean error of an estimated count, in percent", better="lower", summary=True),
        "mae": Figure("Mean absolute error of a count, in people", better="lower"),
        "rmse": Figure("Root mean squared error of a count, in people", better="lower"),
        "aitchison": Figure("Aitchison distance", better="lower", summary=True),
        "cells": Figure("Cells of the table"),
        "empty_truth": Figure("Cells that are empty in truth"),
        "replaced": Figure("Empty cells replaced for the distance"),
    },
)
def population_tables(
    original: Microdata,
    released: Microdata,
    *,
    by: ColumnName | ColumnNames,
    population: Microdata | None = None,
    class_width: Annotated[float, Above(0)] = 5.0,
) -> Measure:
    """How near are tables estimated from a release to those of the population?

    Parameters
    ----------
    original, released
        The survey before and after. The release is expanded by its weight, where it has one; a release of persons
        without weights counts as a population if it is about as large, and is expanded evenly otherwise.
    by
        Columns of the table, e.g. region, age and sex.
    population
        The population that the survey was drawn from; without it the truth is what the weights of the original say.
    class_width
        Numbers with more than 20 values (age) are cut into classes of this width.

    Returns
    -------
    Measure
        ``value`` is the mean error of a cell in percent of the true count (MAPE). ``figures``: ``mae``, ``rmse``,
        ``aitchison``, ``cells``, ``empty_truth``, ``replaced``. ``detail``: ``cells``.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"area": ["a"] * 60 + ["b"] * 40}))
    >>> sample = Microdata(pl.DataFrame({"area": ["a", "b"], "w": [66.0, 34.0]}), weight="w")
    >>> found = population_tables(sample, sample, by="area", population=people)
    >>> found.figures["mae"], round(found.value, 1)
    (6.0, 12.5)
    """
    names = [by] if isinstance(by, str) else list(by)
    truth = population if population is not None else original
    for name in names:
        for file in (truth, released):
            need_known([name], file.columns)
    if not names:
        raise ParameterError("Name at least one column under by, and a class_width above 0.")
    real, real_weight = engine.collect(truth), weights_of(truth)
    made = engine.collect(released)
    weight, caveats = stands_for(released, made.height, float(real_weight.sum()))
    cut = [name for name in names if real.schema[name].is_numeric() and real[name].n_unique() > _MOST_VALUES]
    tables = [
        engine.added_by(
            frame.lazy()
            .select(
                (pl.col(name).cast(pl.Float64) // class_width * class_width if name in cut else pl.col(name))
                .cast(pl.String)
                .alias(name)
                for name in names
            )
            .with_columns(pl.Series("weight", own)),
            names,
            None,
            **{which: ("weight", "sum")},
        )
        for frame, own, which in ((real, real_weight, "truth"), (made, weight, "estimate"))
    ]
    both = tables[0].join(tables[1], on=names, how="full", coalesce=True, nulls_equal=True)
    both = both.with_columns(pl.col("truth", "estimate").fill_null(0.0)).sort(names)
    found = table_accuracy(both["estimate"].to_numpy(), both["truth"].to_numpy())
    value = found.pop("mape")
    return Measure(
        "population_tables",
        value,
        {**found, "cells": both.height},
        f"{both.height:,} cells of {' x '.join(names)} are off by {value:.3g} % of the true count on average.",
        caveats=caveats,
        detail={"cells": both},
        parameters={"by": names, "class_width": class_width},
    )


def weights_of(data: Microdata) -> Floats:
    """Return what each record counts: its weight, or one."""
    frame = engine.collect(data)
    if data.roles.weight is None or data.roles.weight not in frame.columns:
        return np.ones(frame.height)
    return frame[data.roles.weight].cast(pl.Float64).to_numpy()


def stands_for(released: Microdata, rows: int, total: float) -> tuple[Floats, list[str]]:
    """Return what each released record stands for, and what must be said about it."""
    weight = released.roles.weight
    if weight is not None and weight in released.columns:
        return weights_of(released), []
    if rows > _POPULATION * total:
        return np.ones(rows), []
    return np.full(rows, total / max(rows, 1)), [
        "The release has no weights: all of its records stand for equally many people."
    ]


def _of_households(facts: ReleaseFacts) -> dict[str, Any] | None:
    return dict(facts.population or {}) if facts.roles.get("household") else None


@measure(
    room="utility",
    title="Households",
    headline="change of the number of households",
    chapter="specific",
    place=42,
    work="whole-file",
    references=(
        TEMPL,
        "Thees, O., Novák, J. and Templ, M. (2024). Evaluation of synthetic data generators on complex "
        "tabular data. Privacy in Statistical Databases, Lecture Notes in Computer Science 14915. "
        "doi:10.1007/978-3-031-69651-0",
    ),
    figures={
        "value": Figure("Change of the number of households", unit="share", better="lower", summary=True),
        "without_adult": Figure(
            "Share of households without an adult", unit="share", better="lower", summary=True
        ),
        "mixed_change": Figure(
            "Change of the number of households with adults of two sexes",
            unit="share",
            better="lower",
            summary=True,
        ),
        "wrong_size": Figure(
            "Share of households of another size than they say", unit="share", better="lower"
        ),
        "two_strata": Figure("Share of households in more than one stratum", unit="share", better="lower"),
        "rules_broken": Figure(
            "Largest share of households that break another rule", unit="share", better="lower", summary=True
        ),
        "households": Figure("Households estimated"),
        "households_true": Figure("Households in truth"),
    },
    of_release=OfReleaseStudy(12, _of_households),
)
def household_plausibility(
    original: Microdata,
    released: Microdata,
    *,
    age: ColumnName = "age",
    sex: ColumnName | None = None,
    size: ColumnName | None = None,
    adult_age: float = 16.0,
    ages: Annotated[Sequence[float], Public()] | None = None,
    reference: ColumnName | None = None,
    no_income: ColumnName | ColumnNames | None = None,
    parts: Annotated[Mapping[str, Sequence[str]], Public()] | None = None,
    rules: Annotated[Mapping[str, str], HoldsValues(in_expressions=True)] | None = None,
    population: Microdata | None = None,
) -> Measure:
    """Are released households plausible, and as many as there should be?

    Parameters
    ----------
    original, released
        The file before and after, with the role ``household``.
    age, sex, size
        Columns of the age, of the sex, and of the number of members.
    adult_age
        From which age on somebody is an adult.
    ages, reference, no_income, parts, rules
        Further rules, see `discreet.utility.household_rules`.
    population
        The population that the file stands for; without it the truth is what the weights of the original say.

    Returns
    -------
    Measure
        ``value`` is the change of the number of households as a share of the true one, without its sign. ``figures``:
        ``without_adult``, ``mixed_change``, ``wrong_size``, ``two_strata``, ``rules_broken``, ``households``,
        ``households_true``. ``detail``: ``rules`` (`discreet.utility.household_rules`).

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"home": [1, 1, 2], "age": [40, 10, 30]}), household="home")
    >>> made = Microdata(pl.DataFrame({"home": [1, 2, 3], "age": [40, 10, 30]}), household="home")
    >>> found = household_plausibility(people, made)
    >>> found.value, round(found.figures["without_adult"], 3)
    (0.5, 0.333)
    """
    truth = population if population is not None else original
    home = truth.roles.household or original.roles.household
    if home is None or home not in released.columns:
        raise ParameterError(
            "The release does not say which records belong together: its household is not set."
        )
    made = released if released.roles.household else released.with_roles(household=home)
    real = truth if truth.roles.household else truth.with_roles(household=home)
    counted = household_rules(
        made, age=age, sex=sex, size=size, adult_age=adult_age, ages=ages, reference=reference,
        no_income=no_income, parts=parts, rules=rules, truth=real,
    )  # fmt: skip
    found = {row["rule"]: row for row in counted.iter_rows(named=True)}
    homes, true = found["households"]["estimate"], found["households"]["truth"]
    scaled = 1.0
    caveats: list[str] = []
    people = float(weights_of(truth).sum())
    if not (made.roles.weight and made.roles.weight in made.columns):
        stands, caveats = stands_for(made, engine.overview(made, ()).rows, people)
        scaled = float(stands[0]) if len(stands) else 1.0

    def share(rule: str) -> float | None:
        return found[rule]["estimate"] / homes if rule in found and homes else None

    mixed: Any = found.get("mixed")
    change = None
    if mixed and mixed["truth"]:
        change = abs(mixed["estimate"] * scaled / mixed["truth"] - 1)
    value = abs(homes * scaled / true - 1) if true else None
    return Measure(
        "household_plausibility",
        value,
        {
            "without_adult": share("without an adult"),
            "mixed_change": change,
            "wrong_size": share("size that is not its number of members"),
            "two_strata": share("more than one stratum"),
            "rules_broken": max((share(rule) or 0.0 for rule in found if rule not in _PLAIN), default=None),
            "households": homes * scaled,
            "households_true": true,
        },
        f"{homes * scaled:,.0f} households where there are {true:,.0f}.",
        caveats=caveats,
        detail={"rules": counted},
        parameters={"age": age, "sex": sex, "size": size, "adult_age": adult_age},
    )


# How near are estimated tables to those of a population that is known?
_HALF = 0.5


@checked
def aitchison(a: npt.ArrayLike, t: npt.ArrayLike) -> float:
    """How far apart are two tables if only the ratios between their cells count?

    The distance of the centered logarithms of the cells. Empty cells are taken for half a person (in the smaller of the
    two totals).

    Also known as: Aitchison distance; compositional data.

    Parameters
    ----------
    a, t
        Estimated and true counts of the same cells.

    Examples
    --------
    >>> round(aitchison([110, 190, 280, 420], [100, 200, 300, 400]), 6)
    0.136798
    """
    return float(table_accuracy(a, t)["aitchison"])


@checked
def table_accuracy(a: npt.ArrayLike, t: npt.ArrayLike) -> dict[str, float]:
    """How far are estimated counts from true ones?

    Parameters
    ----------
    a, t
        Estimated and true counts of the same cells.

    Returns
    -------
    dict
        ``mae``, ``rmse``, ``mape`` (in percent, over cells that are not empty in truth), ``aitchison``, ``empty_truth``
        and ``replaced`` (numbers of cells that are empty in truth, and of zeros that were replaced for the distance).

    Examples
    --------
    >>> found = table_accuracy([110, 190, 280, 420], [100, 200, 300, 400])
    >>> found["mae"], round(found["rmse"], 4), round(found["mape"], 4)
    (15.0, 15.8114, 6.6667)
    """
    here, there = np.atleast_1d(numbers_of(a, "a")), np.atleast_1d(numbers_of(t, "t"))
    need_pairs(here, there, ("a", "t"))
    if not len(here) or (here < 0).any() or (there < 0).any() or not here.sum() or not there.sum():
        raise ParameterError("a and t must be counts that are not negative and not all zero.")
    off = np.abs(here - there)
    known = there > 0
    least = min(float(here.sum()), float(there.sum()))
    zeros = int((here == 0).sum() + (there == 0).sum())
    logs = []
    for counts in (here, there):
        filled = np.where(counts == 0, _HALF * counts.sum() / least, counts)
        own = np.log(filled)
        logs.append(own - own.mean())
    return {
        "mae": float(off.mean()),
        "rmse": float(np.sqrt((off**2).mean())),
        "mape": float(100 * (off[known] / there[known]).mean()),
        "aitchison": float(np.linalg.norm(logs[0] - logs[1])),
        "empty_truth": float((~known).sum()),
        "replaced": float(zeros),
    }


# How near do the numbers of a synthetic survey come to those of a population: distributions, zeros, quantiles?


_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)


@measure(
    room="utility",
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
            need_known([name], frame.columns)
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
