"""Dependence apart from margins: Gaussian and D-vine copulas on discrete and mixed columns.

Shared by `discreet.risk` (a synthetic population to read risk from) and `discreet.synth`. Fit on columns of codes
or values with `fit_gaussian` or `fit_d_vine`; the `Copula` that comes back draws records with ``sample(n, rng)``.
"""

from __future__ import annotations

from discreet.numerics.copula.correlation import correlation_of_vine, nearest_correlation
from discreet.numerics.copula.fitting import Copula, fit_d_vine, fit_gaussian
from discreet.numerics.copula.information import conditional_information, mutual_information
from discreet.numerics.copula.margins import EmpiricalMargin, Margin

__all__ = [
    "Copula",
    "EmpiricalMargin",
    "Margin",
    "conditional_information",
    "correlation_of_vine",
    "fit_d_vine",
    "fit_gaussian",
    "mutual_information",
    "nearest_correlation",
]
