from discreet.utility.column_relations import rank_correlations as rank_correlations
from discreet.utility.column_relations import shared_components as shared_components
from discreet.utility.column_relations import subgroup_slopes as subgroup_slopes
from discreet.utility.combining_rules import Combined as Combined
from discreet.utility.combining_rules import combine as combine
from discreet.utility.density_overlap import densities as densities
from discreet.utility.dependence_change import dependence as dependence
from discreet.utility.detection import detection as detection
from discreet.utility.donut_sweep import donut_settings as donut_settings
from discreet.utility.estimators import estimator_quality as estimator_quality
from discreet.utility.fit_comparison import compare_fits as compare_fits
from discreet.utility.fit_comparison import compare_model as compare_model
from discreet.utility.interval_overlap import ellipsoid_overlap as ellipsoid_overlap
from discreet.utility.interval_overlap import interval_overlap as interval_overlap
from discreet.utility.k_marginals import k_marginal as k_marginal
from discreet.utility.known_numbers import population_numbers as population_numbers
from discreet.utility.known_population import (
    household_plausibility as household_plausibility,
)
from discreet.utility.known_population import (
    population_tables as population_tables,
)
from discreet.utility.links_between_tables import linked_keys as linked_keys
from discreet.utility.loss_of_information import information_loss as information_loss
from discreet.utility.margin_change import margins as margins
from discreet.utility.measure_agreement import improvement_factor as improvement_factor
from discreet.utility.measure_agreement import stands_in as stands_in
from discreet.utility.model_fits import ModelFit as ModelFit
from discreet.utility.model_fits import fit as fit
from discreet.utility.model_shift import gini_change as gini_change
from discreet.utility.model_shift import importance_shift as importance_shift
from discreet.utility.odds_of_groups import disparity as disparity
from discreet.utility.order_cost import cost_of_order as cost_of_order
from discreet.utility.permutation_test import permutation_test as permutation_test
from discreet.utility.plausible_households import household_rules as household_rules
from discreet.utility.propensity import pmse as pmse
from discreet.utility.propensity_nulls import pmse_null as pmse_null
from discreet.utility.row_novelty import new_rows as new_rows
from discreet.utility.rule_compliance import compliance_lift as compliance_lift
from discreet.utility.rule_compliance import inconsistencies as inconsistencies
from discreet.utility.rule_compliance import rule_compliance as rule_compliance
from discreet.utility.sampled_measures import on_sample as on_sample
from discreet.utility.spatial import clark_evans as clark_evans
from discreet.utility.spatial import zone_shares as zone_shares
from discreet.utility.survey_accuracy import aitchison as aitchison
from discreet.utility.survey_accuracy import table_accuracy as table_accuracy
from discreet.utility.table_distances import cells as cells
from discreet.utility.table_distances import table_distances as table_distances
from discreet.utility.table_propensity import table_propensity as table_propensity
from discreet.utility.table_sensitivity import grouping_sensitivity as grouping_sensitivity
from discreet.utility.tabular import tabular as tabular
from discreet.utility.train_on_synthetic import train_on_synthetic as train_on_synthetic
from discreet.utility.transport_distance import transport as transport
from discreet.utility.two_sample_tests import critical_ks as critical_ks
from discreet.utility.two_sample_tests import ecdf_interval as ecdf_interval
from discreet.utility.two_sample_tests import ks_one_sample as ks_one_sample
from discreet.utility.two_sample_tests import ks_two_sample as ks_two_sample
from discreet.utility.two_sample_tests import paired_t as paired_t
from discreet.utility.two_sample_tests import rank_sum as rank_sum
from discreet.utility.value_counts import category_coverage as category_coverage
from discreet.utility.value_counts import value_counts as value_counts
