"""Gaps in the data of a site: what can be filled in without the others, and the full likelihood for comparison.

Over sites only *marginal* imputation is possible: a site knows its own variables. Pooled data can use all of them
(`full_information_likelihood`); the difference is what the partition costs. Fits to several imputed copies
are put together by the rules of Rubin (1987).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Floats
from discreet.core.errors import ColumnError, ParameterError, need_known
from discreet.core.parameters import checked
from discreet.core.randomness import Seed, generator
from discreet.federated.covariance_models import CovarianceModel
from discreet.federated.fits import Fit, _fit
from discreet.federated.normal_likelihood import Objective, minus_two_log_likelihood
from discreet.federated.parties import as_frame


@checked
def marginal_imputation(
    data: Any, columns: Sequence[str], *, seed: Seed = None
) -> tuple[pl.DataFrame, dict[str, float]]:
    """Which values could stand where a site has gaps, by its own variables alone?

    Each variable is regressed on those before it, and a normal residual is added; the first one is filled with its
    mean, and drawn again from the others at the end. Returned are the table and the share that was missing in each
    column, which belongs into every report: filled values make standard errors too small.

    Parameters
    ----------
    data
        The table of one site.
    columns
        The variables, in the order in which they are filled.
    seed
        For the same values again.

    Examples
    --------
    >>> frame = pl.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": [2.0, None, 6.0, 8.0]})
    >>> filled, share = marginal_imputation(frame, ["a", "b"], seed=1)
    >>> filled["b"].null_count(), share
    (0, {'a': 0.0, 'b': 0.25})
    """
    columns = [columns] if isinstance(columns, str) else list(columns)
    if not columns or len(set(columns)) < len(columns):
        raise ParameterError("columns must name at least one column, and each once.")
    frame = as_frame(data)
    for name in columns:
        need_known([name], frame.columns)
        if not frame[name].dtype.is_numeric():
            raise ColumnError(f"'{name}' does not hold numbers.")
    table = frame.select(pl.col(list(columns)).cast(pl.Float64)).to_numpy().copy()
    gone = ~np.isfinite(table)
    if gone.all(axis=0).any():
        raise ColumnError(f"'{columns[int(gone.all(axis=0).argmax())]}' has no values at all.")
    rng = generator(seed, "imputation")
    for at in range(table.shape[1]):
        if not gone[:, at].any():
            continue
        if at == 0:
            table[gone[:, 0], 0] = table[~gone[:, 0], 0].mean()
        else:
            _draw(table, gone[:, at], at, list(range(at)), rng)
    if gone[:, 0].any() and table.shape[1] > 1:
        _draw(table, gone[:, 0], 0, list(range(1, table.shape[1])), rng)
    shares = {name: float(gone[:, at].mean()) for at, name in enumerate(columns)}
    made = [pl.Series(name, table[:, at]) for at, name in enumerate(columns) if gone[:, at].any()]
    return frame.with_columns(made), shares


def _draw(table: Floats, gone: Any, at: int, others: list[int], rng: np.random.Generator) -> None:
    known = ~gone
    design = np.column_stack([np.ones(len(table)), table[:, others]])
    slopes, *_ = np.linalg.lstsq(design[known], table[known, at], rcond=None)
    left = table[known, at] - design[known] @ slopes
    spread = math.sqrt(float(left @ left) / max(1, int(known.sum()) - len(slopes)))
    table[gone, at] = design[gone] @ slopes + rng.normal(scale=spread, size=int(gone.sum()))


@checked
def full_information_likelihood(
    data: Any, columns: Sequence[str], model: CovarianceModel, *, start: Any = None, bounds: Any = None,
    tol: float = 1e-8,
) -> Fit:  # fmt: skip
    """Which parameters fit pooled rows with gaps best? Every row counts with the values it has (FIML).

    It needs the rows in one place, and is here to say what marginal imputation over sites costs.

    Also known as: FIML; full-information maximum likelihood.

    Parameters
    ----------
    data
        The pooled table.
    columns
        The variables, in the order of the model.
    model
        The model.
    start, bounds, tol
        As in `fit_from_moments`.
    """
    frame = as_frame(data)
    table = frame.select(pl.col(list(columns)).cast(pl.Float64)).to_numpy()
    there = np.isfinite(table)
    if table.shape[1] != model.size:
        raise ParameterError(f"The model has {model.size} variables: name as many columns.")
    if not there.any(axis=0).all():
        raise ColumnError(f"'{columns[int((~there.any(axis=0)).argmax())]}' has no values at all.")
    some = there.any(axis=1)
    patterns, which = np.unique(there[some], axis=0, return_inverse=True)
    parts = [
        (pattern, table[some][which.reshape(-1) == at][:, pattern]) for at, pattern in enumerate(patterns)
    ]

    def value(mu: Floats, sigma: Floats) -> float:
        return math.fsum(
            minus_two_log_likelihood(rows, mu[pattern], sigma[np.ix_(pattern, pattern)])
            for pattern, rows in parts
        )

    spread = np.array([table[there[:, at], at].std() for at in range(table.shape[1])])
    objective = Objective(model, int(some.sum()), value, lambda: 1e-11 * max(1, table.size))
    return _fit(objective, int(some.sum()), start, bounds, "observed", spread, tol, "scoring", None)


# What do fits to several imputed copies say together? Rubin's rules (1987).


@dataclass(frozen=True, repr=False)
class PooledImputations:
    """Estimates over imputed copies.

    Attributes
    ----------
    estimates, standard_errors
        Means over the copies, and errors that count how much the copies differ.
    df
        Degrees of freedom of each estimate's t law.
    missing_information
        Share of the information about each parameter that was missing.
    copies
        How many fits there were.
    """

    estimates: Mapping[str, float]
    standard_errors: Mapping[str, float]
    df: Mapping[str, float]
    missing_information: Mapping[str, float]
    copies: int
    caveats: tuple[str, ...] = ()

    def __str__(self) -> str:
        width = max(map(len, self.estimates))
        lines = [
            f"{name:<{width}}  {value: .4f}  (standard error {self.standard_errors[name]:.4f}, "
            f"{self.missing_information[name]:.0%} of the information missing)"
            for name, value in self.estimates.items()
        ]
        return "\n".join([*lines, f"{self.copies} imputed copies", *self.caveats])

    __repr__ = __str__


@checked
def pool_imputations(fits: Sequence[Any]) -> PooledImputations:
    """What do fits of one model to several imputed copies say together?

    A single copy takes filled values for observed ones, and its standard errors are too small. With several copies
    (`marginal_imputation` under other seeds) the differences between them are counted: T = W + (1 + 1/m) B.

    Parameters
    ----------
    fits
        Two or more fits of the same model: of `SecureMLE`, `fit_from_moments` or `regression_over_sites`.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> made = [SimpleNamespace(estimates={"b": b}, standard_errors={"b": 0.3}) for b in (1.0, 1.2, 0.8)]
    >>> found = pool_imputations(made)
    >>> found.estimates["b"], round(found.standard_errors["b"], 4), round(found.df["b"], 2)
    (1.0, 0.3786, 14.45)
    """
    if len(fits) < 2:
        raise ParameterError("fits: the rules need two or more imputed copies.")
    tables = [_estimates(fit) for fit in fits]
    names = list(tables[0])
    if any(list(table) != names for table in tables):
        raise ParameterError("fits: all copies must be fitted with the same model.")
    values = np.array([[table[name] for name in names] for table in tables])
    errors = np.array([[fit.standard_errors[name] for name in names] for fit in fits])
    copies = len(fits)
    within, between = (errors**2).mean(axis=0), values.var(axis=0, ddof=1)
    added = (1 + 1 / copies) * between
    total = within + added
    with np.errstate(divide="ignore", invalid="ignore"):
        df = np.where(added > 0, (copies - 1) * (total / added) ** 2, math.inf)
        share = np.where(total > 0, added / total, 0.0)
        lost = np.where(np.isfinite(df), (share * (df + 1) + 2) / (df + 3), 0.0)

    def named(row: Any) -> dict[str, float]:
        return dict(zip(names, map(float, row), strict=True))

    return PooledImputations(
        named(values.mean(axis=0)), named(np.sqrt(total)), named(df), named(lost), copies,
        ("Copies filled within each site alone ignore what other sites know: relations between sites come out weaker "
         "than they are, and no rule for pooling mends that.",),
    )  # fmt: skip


def _estimates(fit: Any) -> Mapping[str, float]:
    found: Mapping[str, float] | None = getattr(fit, "estimates", None) or getattr(fit, "coefficients", None)
    if not isinstance(found, Mapping) or not isinstance(getattr(fit, "standard_errors", None), Mapping):
        raise ParameterError("fits: a copy is no fitted model.")
    return found
