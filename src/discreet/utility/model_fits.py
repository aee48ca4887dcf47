"""A regression, fitted to a file: names, coefficients and their covariance."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Floats, numbers_of
from discreet.core.errors import ColumnError, InputError, ParameterError, load_extra, unknown_name
from discreet.core.parameters import checked
from discreet.microdata import Microdata

Family = Literal["linear", "logistic", "poisson", "multinomial"]
_EXTREME = 1e-8
_UNKNOWN_NAME = re.compile(r"NameError: name '(\w+)' is not defined")


@dataclass(frozen=True, eq=False)
class ModelFit:
    """Coefficients and their covariance; make one yourself from any routine, e.g. of a survey design.

    Attributes
    ----------
    names, coefficients, covariance
        One name a coefficient; a covariance matrix of the same size.
    records
        How many were used.
    levels
        The levels of categories, the first of each as reference, so that other files are fitted with the same ones.
    converged, separated
        Whether the fit settled, and whether a logistic one found records it is sure of.

    Examples
    --------
    >>> ModelFit(("x",), [1.0], [[0.25]]).standard_errors
    array([0.5])
    """

    names: tuple[str, ...]
    coefficients: Floats
    covariance: Floats
    records: int | None = None
    formula: str = ""
    family: str = ""
    levels: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    converged: bool = True
    separated: bool = False
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        for name, axes in (("coefficients", 1), ("covariance", 2)):
            numbers = numbers_of(getattr(self, name), name, missing=True, infinite=True, empty=True)
            object.__setattr__(self, name, numbers if axes == 1 else np.atleast_2d(numbers))
        size = len(self.names)
        if self.coefficients.shape != (size,) or self.covariance.shape != (size, size):
            raise ParameterError(
                f"A fit of {size} names needs {size} coefficients and a {size} × {size} covariance."
            )
        twice = [name for name in self.names if self.names.count(name) > 1]
        if twice:
            raise ParameterError(
                f"A fit has two coefficients of the name '{twice[0]}'. Give each a name of its own."
            )

    @property
    def standard_errors(self) -> Floats:
        """Roots of the variances."""
        with np.errstate(invalid="ignore"):
            return np.sqrt(np.diag(self.covariance))

    def at(self, names: tuple[str, ...]) -> tuple[Floats, Floats]:
        """Return coefficients and covariance of some names."""
        place = [self.names.index(name) for name in names]
        return self.coefficients[place], self.covariance[np.ix_(place, place)]


@checked
def fit(
    formula: str,
    data: Microdata,
    family: Family = "linear",
    *,
    like: ModelFit | None = None,
    weight: str | None = None,
) -> ModelFit:
    """Fit a regression to a file, by a formula as in R: ``"income ~ age + sex"``.

    Parameters
    ----------
    formula
        Response and predictors, as statsmodels reads them (``C(code)``, ``a * b``, ``np.log(x)``).
    data
        The file; records with missing values in the formula's columns are left out and counted.
    family
        ``"linear"``, ``"logistic"`` (a response of two values; the later one in order is the event), ``"poisson"`` or
        ``"multinomial"`` (coefficients for each level against the first).
    like
        A fit of the original: the same reference levels are then used, whatever levels this file has.
    weight
        A column of survey weights; the role of the data unless named (``data.with_roles(weight=None)`` takes it
        away). They are scaled to the number of records, and the covariance is the sandwich.

    Returns
    -------
    ModelFit
        ``names``, ``coefficients``, ``covariance``, ``standard_errors`` and whether it converged.

    How to read it
    --------------
    Each coefficient says how the response (its log odds, its logarithm) moves with one predictor while the others
    stay. It is the ingredient of `compare_fits`, which says whether a release gives the same answers.

    When not to trust it
    --------------------
    A fit that did not converge, or that is sure of some records (``separated``), has standard errors that mean
    little. Standard errors of a weighted fit know nothing of clusters and strata: bring your own `ModelFit` then.

    Examples
    --------
    >>> points = Microdata(pl.DataFrame({"x": [1.0, 2, 3, 4, 5], "y": [2.1, 3.9, 6.2, 7.8, 10.1]}))
    >>> found = fit("y ~ x", points)
    >>> found.names, found.coefficients.round(2).tolist()
    (('Intercept', 'x'), [0.05, 1.99])
    """
    if formula.count("~") != 1:
        raise ParameterError(
            "A formula names the response, a tilde and the predictors: 'income ~ age + sex'."
        )
    load_extra("statsmodels", extra="models", purpose="Fitting a regression by a formula")
    response = formula.split("~", maxsplit=1)[0].strip()
    weight = engine.resolve_weight(data, weight)
    frame, levels, used = _frame(formula, data, like, weight)
    frame, outcomes = _response(frame, response, family, levels)
    exog, endog, names, rows = _matrices(formula, frame, response, family, known=data.columns)
    keep = _independent(exog)
    notes = []
    if used > len(endog):
        notes.append(f"{used - len(endog):,} records with missing values were left out.")
    dropped = [name for name, kept in zip(names, keep, strict=True) if not kept]
    if dropped:
        notes.append(
            f"{len(dropped)} coefficients cannot be had from a file: it lacks their levels, or others say it."
        )
    exog, names = exog[:, keep], [name for name, kept in zip(names, keep, strict=True) if kept]
    shifted = _without_reference(frame, like, response)
    if shifted:
        notes.append(
            f"A file lacks the reference level of {', '.join(map(repr, shifted))}: what is measured against it cannot "
            "be compared."
        )
        names = [_of_other_reference(name, shifted) for name in names]
    if len(endog) <= len(names):
        raise InputError(
            f"The formula has {len(names)} coefficients and the file only {len(endog)} complete records. Use fewer "
            "predictors."
        )
    weights = None if weight is None else frame.loc[rows, "discreet weight"].to_numpy()
    found = _fitted(exog, endog, family, weights)
    if family == "multinomial":
        base, *others = (outcomes[int(code)] for code in np.unique(endog))
        against = "" if base == outcomes[0] else f" against {base}"
        names = [f"{name} [{outcome}{against}]" for outcome in others for name in names]
    return replace(
        found,
        names=tuple(names),
        formula=formula,
        family=family,
        levels=levels,
        records=len(endog),
        notes=tuple(notes),
    )


def _frame(
    formula: str, data: Microdata, like: ModelFit | None, weight: str | None
) -> tuple[Any, dict[str, tuple[Any, ...]], int]:
    """Collect the columns of a formula as pandas wants them, categories with the reference levels of the original."""
    import pandas as pd

    columns = [
        name for name in data.columns if re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", formula) is not None
    ]
    if not columns:
        raise ColumnError(
            f"The formula names no column of the file. There is: {', '.join(map(repr, data.columns[:20]))}."
        )
    engine.overview(data, ())
    table = engine.collect(data, [*columns, *([weight] if weight and weight not in columns else [])])
    rows = table.height
    table = table.drop_nulls(columns)
    if table.is_empty():
        raise InputError("Every record misses a value in the columns of the formula.")
    levels: dict[str, tuple[Any, ...]] = {}
    frame = {}
    response = formula.split("~", maxsplit=1)[0].strip()
    for name in columns:
        values = table[name]
        is_number = values.dtype.is_numeric() or values.dtype.is_temporal()
        if like and like.formula == formula and name != response and is_number == (name in like.levels):
            here, there = ("a number", "a category") if is_number else ("a category", "a number")
            raise ColumnError(
                f"Column '{name}' is {here} in a file and {there} in the original, so their coefficients cannot be "
                "compared. Give it the type that it has in the original."
            )
        if values.dtype.is_numeric():
            frame[name] = pd.Series(values.cast(pl.Float64).to_numpy())
            continue
        if values.dtype.is_temporal():
            frame[name] = pd.Series(values.to_physical().cast(pl.Float64).to_numpy())
            continue
        ordered = values.dtype.categories.to_list() if isinstance(values.dtype, pl.Enum) else None
        text = values.cast(pl.String)
        seen = set(text.unique().to_list())
        base = list(like.levels.get(name, ())) if like else []
        fresh = [level for level in ordered if level in seen] if ordered else sorted(seen)
        levels[name] = (*base, *(level for level in fresh if level not in base))
        frame[name] = pd.Series(pd.Categorical(text.to_list(), categories=list(levels[name])))
    made = pd.DataFrame(frame)
    if weight:
        each = table[weight].cast(pl.Float64).to_numpy()
        made["discreet weight"] = each * (len(each) / each.sum())
    return made, levels, rows


def _response(
    frame: Any, response: str, family: str, levels: Mapping[str, tuple[Any, ...]]
) -> tuple[Any, list[str]]:
    """Turn a response of categories into the numbers that a model needs."""
    if response not in frame.columns:
        return frame, []
    column = frame[response]
    if response not in levels:
        if family == "multinomial":
            found = sorted(column.unique().tolist())
            return frame.assign(
                **{response: column.map({v: i for i, v in enumerate(found)}).astype(float)}
            ), [f"{value:g}" for value in found]
        return frame, []
    if family in ("linear", "poisson"):
        raise ColumnError(
            f"The response '{response}' is a category; family='{family}' needs a number. Use 'logistic' or "
            "'multinomial'."
        )
    if family == "logistic" and len(levels[response]) != 2:
        raise ColumnError(
            f"The response '{response}' has {len(levels[response])} levels; family='logistic' needs two. Use "
            "'multinomial'."
        )
    return frame.assign(**{response: column.cat.codes.astype(float)}), [
        str(level) for level in levels[response]
    ]


def _matrices(
    formula: str, frame: Any, response: str, family: str, *, known: Sequence[str]
) -> tuple[Floats, Floats, list[str], Any]:
    import statsmodels.formula.api as smf

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = smf.ols(formula, frame)
    except Exception as error:
        unknown = _UNKNOWN_NAME.search(str(error))
        if unknown:
            raise ColumnError(f"{unknown_name(unknown[1], known)} The formula speaks of it.") from error
        raise ParameterError(
            f"The formula cannot be read ({type(error).__name__}). Name columns of the file as they are written there, "
            "and wrap odd names: Q('marital-status')."
        ) from error
    endog = np.asarray(model.endog, dtype=np.float64)
    if endog.ndim != 1:
        raise ColumnError(f"The response '{response}' is a category; family='{family}' needs a number.")
    if family == "logistic" and not set(np.unique(endog)) <= {0.0, 1.0}:
        raise ColumnError(
            f"The response '{response}' must be 0 or 1, or have two levels, for family='logistic'."
        )
    if family == "poisson" and (endog < 0).any():
        raise ColumnError(f"The response '{response}' holds negative numbers, which are no counts.")
    if len(np.unique(endog)) < 2:
        raise InputError(
            f"The response '{response}' is the same in every record, so there is nothing to explain."
        )
    return np.asarray(model.exog, dtype=np.float64), endog, list(model.exog_names), model.data.row_labels


def _independent(exog: Floats) -> Flags:
    """Keep the columns that the ones before do not already say, as R does."""
    keep = np.zeros(exog.shape[1], dtype=np.bool_)
    basis = np.empty((len(exog), 0))
    for place in range(exog.shape[1]):
        column = exog[:, place]
        length = float(np.linalg.norm(column))
        if not length:
            continue
        left = column / length
        for _ in range(2):
            left = left - basis @ (basis.T @ left)
        size = float(np.linalg.norm(left))
        if size > 1e-7:
            keep[place] = True
            basis = np.column_stack([basis, left / size])
    return keep


def _without_reference(frame: Any, like: ModelFit | None, response: str) -> list[str]:
    """Name the categories whose reference level of the original this file does not have."""
    return [
        name
        for name, levels in (like.levels if like else {}).items()
        if name != response and name in frame.columns and not (frame[name] == levels[0]).any()
    ]


def _of_other_reference(term: str, shifted: Sequence[str]) -> str:
    """Give a coefficient that is measured against another level than in the original a name of its own."""
    of = [
        name
        for name in shifted
        if term == "Intercept" or re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", term)
    ]
    return f"{term} [other reference of {', '.join(of)}]" if of else term


def _fitted(exog: Floats, endog: Floats, family: str, weights: Floats | None) -> ModelFit:
    import statsmodels.api as sm

    robust = {} if weights is None else {"cov_type": "HC0"}
    names = tuple(f"c{place}" for place in range(exog.shape[1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if family == "linear":
            model = sm.OLS(endog, exog) if weights is None else sm.WLS(endog, exog, weights=weights)
            found = model.fit(**robust)
            return ModelFit(names, found.params, found.cov_params())
        if family == "multinomial":
            if weights is not None:
                beta, covariance, converged = weighted_multinomial(exog, endog, weights)
                names = tuple(f"c{place}" for place in range(len(beta)))
                return ModelFit(names, beta, covariance, converged=converged)
            found = sm.MNLogit(endog, exog).fit(disp=False, maxiter=200, method="newton")
            flat = np.asarray(found.params).ravel(order="F")
            return ModelFit(
                tuple(f"c{place}" for place in range(len(flat))),
                flat,
                np.asarray(found.cov_params()),
                converged=bool(found.mle_retvals["converged"]),
            )
        kind = sm.families.Binomial() if family == "logistic" else sm.families.Poisson()
        found = sm.GLM(endog, exog, family=kind, var_weights=weights).fit(maxiter=100, **robust)
    chance = np.asarray(found.fittedvalues)
    separated = family == "logistic" and bool((np.minimum(chance, 1 - chance) < _EXTREME).any())
    return ModelFit(
        names, found.params, found.cov_params(), converged=bool(found.converged), separated=separated
    )


# Multinomial logistic regression of a weighted survey, by pseudo-likelihood.


_MOST_STEPS = 100


def weighted_multinomial(exog: Floats, endog: Floats, weights: Floats) -> tuple[Floats, Floats, bool]:
    """Fit outcome by outcome against the first; return coefficients, their sandwich covariance, and whether it settled.

    Newton steps are halved until the likelihood does not fall.
    """
    outcomes, place = np.unique(endog, return_inverse=True)
    width, others = exog.shape[1], len(outcomes) - 1
    hits = (place[:, None] == np.arange(1, others + 1)).astype(np.float64)

    def at(beta: Floats) -> tuple[float, Floats]:
        scores = exog @ beta.reshape(others, width).T
        top = np.maximum(scores.max(axis=1), 0.0)
        log_total = top + np.log(np.exp(-top) + np.exp(scores - top[:, None]).sum(axis=1))
        value = float(weights @ ((hits * scores).sum(axis=1) - log_total))
        return value, np.exp(scores - log_total[:, None])

    def bread(shares: Floats) -> Floats:
        blocks = np.empty((others, width, others, width))
        for one in range(others):
            for other in range(others):
                spread = weights * shares[:, one] * (float(one == other) - shares[:, other])
                blocks[one, :, other, :] = exog.T @ (exog * spread[:, None])
        return blocks.reshape(others * width, others * width)

    beta = np.zeros(others * width)
    value, shares = at(beta)
    converged = False
    for _ in range(_MOST_STEPS):
        gradient = ((hits - shares) * weights[:, None]).T @ exog
        step = np.linalg.lstsq(bread(shares), gradient.ravel(), rcond=None)[0]
        for _half in range(30):
            next_value, next_shares = at(beta + step)
            if next_value >= value - 1e-12 * abs(value):
                break
            step = step / 2
        beta, gained, value, shares = beta + step, next_value - value, next_value, next_shares
        if abs(gained) <= 1e-10 * (abs(value) + 1) and np.abs(step).max() < 1e-6:
            converged = True
            break
    scores = ((hits - shares) * weights[:, None])[:, :, None] * exog[:, None, :]
    flat = scores.reshape(len(exog), -1)
    inverse = np.linalg.pinv(bread(shares))
    return beta, inverse @ (flat.T @ flat) @ inverse, converged
