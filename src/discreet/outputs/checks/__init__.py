"""One module a statbarn: pure functions on counts and contributions."""

from discreet.outputs.checks.aggregates import check_dominance, check_totals
from discreet.outputs.checks.concentration import check_concentration, herfindahl
from discreet.outputs.checks.endpoints import check_extremes, check_ties
from discreet.outputs.checks.frequencies import check_counts, check_margins, check_proportions
from discreet.outputs.checks.indicators import check_contributors, check_few_values, check_values
from discreet.outputs.checks.inequality import check_inequality, gini_of, lorenz_points
from discreet.outputs.checks.models import check_correlation, check_dof, check_model, check_per_unit
from discreet.outputs.checks.modes import check_modes
from discreet.outputs.checks.position import check_quantiles
from discreet.outputs.checks.ratios import check_ratio, odds_ratio_of, risk_ratio_of
from discreet.outputs.checks.shape import check_shape
from discreet.outputs.checks.significance import check_test
from discreet.outputs.checks.survival import check_survival, kaplan_meier, publishable

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
