"""Checks by statbarn: pure functions on counts and contributions."""

from discreet.outputs.checks.frequencies import (
    check_counts,
    check_margins,
    check_proportions,
    check_ratio,
    odds_ratio_of,
    risk_ratio_of,
)
from discreet.outputs.checks.models_and_tests import (
    check_correlation,
    check_dof,
    check_model,
    check_per_unit,
    check_test,
)
from discreet.outputs.checks.statistic_checks import (
    check_extremes,
    check_inequality,
    check_modes,
    check_quantiles,
    check_shape,
    check_ties,
    gini_of,
    lorenz_points,
)
from discreet.outputs.checks.survival_curves import check_survival, kaplan_meier, publishable
from discreet.outputs.checks.total_checks import (
    check_concentration,
    check_contributors,
    check_dominance,
    check_few_values,
    check_totals,
    check_values,
    herfindahl,
)

__all__ = [
    "check_concentration",
    "check_contributors",
    "check_correlation",
    "check_counts",
    "check_dof",
    "check_dominance",
    "check_extremes",
    "check_few_values",
    "check_inequality",
    "check_margins",
    "check_model",
    "check_modes",
    "check_per_unit",
    "check_proportions",
    "check_quantiles",
    "check_ratio",
    "check_shape",
    "check_survival",
    "check_test",
    "check_ties",
    "check_totals",
    "check_values",
    "gini_of",
    "herfindahl",
    "kaplan_meier",
    "lorenz_points",
    "odds_ratio_of",
    "publishable",
    "risk_ratio_of",
]
