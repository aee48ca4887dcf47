"""Measures for releases of one file or of many small tables, as evaluations of census excerpts use them."""

from discreet.utility.small_tables.counted_values import value_counts
from discreet.utility.small_tables.improvements import improvement_factor
from discreet.utility.small_tables.inconsistent_records import inconsistencies
from discreet.utility.small_tables.k_marginals import k_marginal
from discreet.utility.small_tables.kendall import rank_correlations
from discreet.utility.small_tables.principal_components import shared_components
from discreet.utility.small_tables.propensity_by_table import table_propensity
from discreet.utility.small_tables.slopes import subgroup_slopes

__all__ = [
    "improvement_factor",
    "inconsistencies",
    "k_marginal",
    "rank_correlations",
    "shared_components",
    "subgroup_slopes",
    "table_propensity",
    "value_counts",
]
