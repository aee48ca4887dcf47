from discreet.engine.attributes import (
    ClassCounts as ClassCounts,
)
from discreet.engine.attributes import (
    attribute_profile as attribute_profile,
)
from discreet.engine.attributes import (
    class_counts as class_counts,
)
from discreet.engine.attributes import (
    equal_breaks as equal_breaks,
)
from discreet.engine.attributes import (
    value_shares as value_shares,
)
from discreet.engine.attribution_counts import Grouping as Grouping
from discreet.engine.attribution_counts import JointCounts as JointCounts
from discreet.engine.attribution_counts import SharedClasses as SharedClasses
from discreet.engine.attribution_counts import carry_scores as carry_scores
from discreet.engine.attribution_counts import joint_counts as joint_counts
from discreet.engine.attribution_counts import key_counts as key_counts
from discreet.engine.attribution_counts import original_only as original_only
from discreet.engine.attribution_counts import shared_classes as shared_classes
from discreet.engine.attribution_counts import without_classes as without_classes
from discreet.engine.by_record import (
    carry_over as carry_over,
)
from discreet.engine.by_record import (
    changed_cells as changed_cells,
)
from discreet.engine.by_record import (
    check_record_key as check_record_key,
)
from discreet.engine.by_record import (
    extremes as extremes,
)
from discreet.engine.by_record import (
    in_one_type as in_one_type,
)
from discreet.engine.by_record import (
    made_in_memory as made_in_memory,
)
from discreet.engine.by_record import (
    made_lazily as made_lazily,
)
from discreet.engine.by_record import (
    spread as spread,
)
from discreet.engine.by_record import (
    types_in_polars as types_in_polars,
)
from discreet.engine.by_record import (
    without_columns as without_columns,
)
from discreet.engine.class_places import ClassPlaces as ClassPlaces
from discreet.engine.class_places import lowest_numbers as lowest_numbers
from discreet.engine.classes import (
    Missing as Missing,
)
from discreet.engine.classes import Recoding as Recoding
from discreet.engine.classes import (
    class_table as class_table,
)
from discreet.engine.classes import (
    combinations as combinations,
)
from discreet.engine.classes import (
    counted_combinations as counted_combinations,
)
from discreet.engine.classes import (
    counted_rows as counted_rows,
)
from discreet.engine.classes import (
    cross_counts as cross_counts,
)
from discreet.engine.classes import (
    crowded as crowded,
)
from discreet.engine.classes import (
    distinct_counts as distinct_counts,
)
from discreet.engine.classes import (
    distinct_values as distinct_values,
)
from discreet.engine.classes import key_names as key_names
from discreet.engine.classes import (
    keyed_rows as keyed_rows,
)
from discreet.engine.classes import (
    left_out as left_out,
)
from discreet.engine.classes import (
    matched_classes as matched_classes,
)
from discreet.engine.classes import (
    packed_table as packed_table,
)
from discreet.engine.classes import (
    size_spectrum as size_spectrum,
)
from discreet.engine.classes import (
    smallest_classes as smallest_classes,
)
from discreet.engine.classes import (
    weighted_rows as weighted_rows,
)
from discreet.engine.comparable import as_text as as_text
from discreet.engine.comparable import comparable_keys as comparable_keys
from discreet.engine.comparable import must_be_released as must_be_released
from discreet.engine.comparable import plain_text as plain_text
from discreet.engine.comparable import recoded as recoded
from discreet.engine.frames import collect as collect
from discreet.engine.frames import declared_levels as declared_levels
from discreet.engine.frames import drawn_from as drawn_from
from discreet.engine.frames import engine_name as engine_name
from discreet.engine.frames import has_places as has_places
from discreet.engine.frames import has_row_order as has_row_order
from discreet.engine.frames import in_declared_order as in_declared_order
from discreet.engine.frames import is_lazy as is_lazy
from discreet.engine.frames import known_by as known_by
from discreet.engine.frames import like as like
from discreet.engine.frames import need_record_key as need_record_key
from discreet.engine.frames import sample_of as sample_of
from discreet.engine.frames import scan as scan
from discreet.engine.frames import tables_like as tables_like
from discreet.engine.frames import whole_of as whole_of
from discreet.engine.grouping import Cutting as Cutting
from discreet.engine.grouping import brought_to as brought_to
from discreet.engine.grouping import compared_as as compared_as
from discreet.engine.grouping import physical as physical
from discreet.engine.grouping import pooled_breaks as pooled_breaks
from discreet.engine.precision import agreed_grid as agreed_grid
from discreet.engine.precision import equal_only_so as equal_only_so
from discreet.engine.precision import of_writing as of_writing
from discreet.engine.precision import on_grid as on_grid
from discreet.engine.precision import stored_alike as stored_alike
from discreet.engine.precision import wanted_precision as wanted_precision
from discreet.engine.rebuild import beside_classes as beside_classes
from discreet.engine.rebuild import carry_back as carry_back
from discreet.engine.rebuild import in_kind as in_kind
from discreet.engine.rebuild import in_kind_alone as in_kind_alone
from discreet.engine.rebuild import named_classes as named_classes
from discreet.engine.rebuild import queried as queried
from discreet.engine.rebuild import rebuilt as rebuilt
from discreet.engine.rebuild import whole_frame as whole_frame
from discreet.engine.rebuild import without_records as without_records
from discreet.engine.record_batches import ByRecord as ByRecord
from discreet.engine.record_batches import record_numbers as record_numbers
from discreet.engine.record_digests import THERE as THERE
from discreet.engine.record_digests import EqualRecords as EqualRecords
from discreet.engine.record_digests import RecordDigests as RecordDigests
from discreet.engine.record_digests import added_up as added_up
from discreet.engine.record_digests import equal_records as equal_records
from discreet.engine.record_digests import linked_rows as linked_rows
from discreet.engine.resolved_roles import MOST_CELLS as MOST_CELLS
from discreet.engine.resolved_roles import Overview as Overview
from discreet.engine.resolved_roles import added_by as added_by
from discreet.engine.resolved_roles import after_treatment as after_treatment
from discreet.engine.resolved_roles import all_suppressed as all_suppressed
from discreet.engine.resolved_roles import counted_role as counted_role
from discreet.engine.resolved_roles import counted_unit as counted_unit
from discreet.engine.resolved_roles import float_key_caveat as float_key_caveat
from discreet.engine.resolved_roles import float_keys as float_keys
from discreet.engine.resolved_roles import groups_together as groups_together
from discreet.engine.resolved_roles import head_count as head_count
from discreet.engine.resolved_roles import overview as overview
from discreet.engine.resolved_roles import people_of_weights as people_of_weights
from discreet.engine.resolved_roles import repeated_identifiers as repeated_identifiers
from discreet.engine.resolved_roles import resolve_keys as resolve_keys
from discreet.engine.resolved_roles import resolve_sensitive as resolve_sensitive
from discreet.engine.resolved_roles import resolve_weight as resolve_weight
from discreet.engine.resolved_roles import seldom_repeated as seldom_repeated
from discreet.engine.resolved_roles import single_households as single_households
from discreet.engine.resolved_roles import too_large as too_large
from discreet.engine.resolved_roles import total as total
from discreet.engine.resolved_roles import unit_column as unit_column
from discreet.engine.resolved_roles import unit_in_words as unit_in_words
from discreet.engine.resolved_roles import unit_pairs as unit_pairs
from discreet.engine.resolved_roles import units_without_name as units_without_name
from discreet.engine.sampled_records import (
    Strata as Strata,
)
from discreet.engine.sampled_records import (
    chance_by_unit as chance_by_unit,
)
from discreet.engine.sampled_records import (
    record_sample as record_sample,
)
from discreet.engine.shared_tables import CodedFile as CodedFile
from discreet.engine.shared_tables import SharedTables as SharedTables
from discreet.engine.spark import spark_tasks as spark_tasks
from discreet.engine.summary_statistics import added_correlations as added_correlations
from discreet.engine.summary_statistics import added_ratios as added_ratios
from discreet.engine.summary_statistics import known_numbers as known_numbers
from discreet.engine.summary_statistics import number_range as number_range
from discreet.engine.summary_statistics import values_at as values_at
from discreet.engine.wildcard import neighborhood_sizes as neighborhood_sizes
from discreet.engine.wildcard import neighborhood_units as neighborhood_units
