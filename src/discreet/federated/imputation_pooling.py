"""What do fits to several imputed copies say together? Rubin's rules (1987)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.core.errors import ParameterError
from discreet.core.parameters import checked


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
