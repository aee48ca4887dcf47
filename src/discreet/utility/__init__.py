"""What did the protection cost?"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from discreet.core.cards import offered
from discreet.utility.cell_measures import cells
from discreet.utility.density_overlap import densities
from discreet.utility.dependence_change import dependence
from discreet.utility.detection import detection
from discreet.utility.distributions import (
    critical_ks,
    ecdf_interval,
    ks_one_sample,
    ks_two_sample,
    paired_t,
    rank_sum,
)
from discreet.utility.donut_sweep import donut_settings
from discreet.utility.estimators import estimator_quality
from discreet.utility.fits import (
    Combined,
    ModelFit,
    combine,
    compare_fits,
    compare_model,
    ellipsoid_overlap,
    fit,
    interval_overlap,
    train_on_synthetic,
)
from discreet.utility.information import information_loss
from discreet.utility.known_numbers import population_numbers
from discreet.utility.known_population import household_plausibility, population_tables
from discreet.utility.links_between_tables import linked_keys
from discreet.utility.margin_change import margins
from discreet.utility.measure_agreement import stands_in
from discreet.utility.model_shift import gini_change, importance_shift
from discreet.utility.odds_of_groups import disparity
from discreet.utility.order_cost import cost_of_order
from discreet.utility.plausible_households import household_rules
from discreet.utility.propensity import (
    permutation_test,
    pmse,
    pmse_null,
)
from discreet.utility.rare_categories import category_coverage
from discreet.utility.row_novelty import new_rows
from discreet.utility.rules_learned import compliance_lift, rule_compliance
from discreet.utility.sampled_measures import on_sample
from discreet.utility.small_tables import (
    improvement_factor,
    inconsistencies,
    k_marginal,
    rank_correlations,
    shared_components,
    subgroup_slopes,
    table_propensity,
    value_counts,
)
from discreet.utility.spatial import clark_evans, zone_shares
from discreet.utility.survey_accuracy import aitchison, table_accuracy
from discreet.utility.table_distance import table_distances
from discreet.utility.table_sensitivity import grouping_sensitivity
from discreet.utility.tables import tabular
from discreet.utility.transport_distance import transport

__all__ = [
    "rule_compliance",
    "compliance_lift",
    "linked_keys",
    "population_tables",
    "population_numbers",
    "household_plausibility",
    "category_coverage",
    "disparity",
    "aitchison",
    "cells",
    "clark_evans",
    "combine",
    "compare_fits",
    "compare_model",
    "cost_of_order",
    "critical_ks",
    "densities",
    "dependence",
    "detection",
    "donut_settings",
    "ecdf_interval",
    "ellipsoid_overlap",
    "estimator_quality",
    "fit",
    "gini_change",
    "grouping_sensitivity",
    "household_rules",
    "importance_shift",
    "improvement_factor",
    "inconsistencies",
    "information_loss",
    "interval_overlap",
    "k_marginal",
    "ks_one_sample",
    "ks_two_sample",
    "margins",
    "new_rows",
    "on_sample",
    "paired_t",
    "permutation_test",
    "pmse",
    "pmse_null",
    "rank_correlations",
    "rank_sum",
    "shared_components",
    "stands_in",
    "subgroup_slopes",
    "table_accuracy",
    "table_distances",
    "table_propensity",
    "tabular",
    "train_on_synthetic",
    "transport",
    "value_counts",
    "zone_shares",
    "Combined",
    "ModelFit",
]


def __dir__() -> list[str]:
    """Show what is public."""
    return __all__


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Callable[..., Any]:
        """Give a measure that its module declares, also where it is not listed above."""
        return offered("utility", name)
