"""The engine room: the only place that knows data-frame engines.

Everything that counts is written once, against Narwhals, and runs where the data is: in Polars (also for
pandas and PyArrow frames, whose columns are handed over through Arrow), in DuckDB or in PySpark. What comes
out is a small Polars table; only what is asked for record by record stays lazy in the engine of the source.
"""

from discreet.engine.attributes import (
    ClassCounts,
    attribute_profile,
    class_counts,
    equal_breaks,
    value_shares,
)
from discreet.engine.classes import (
    Missing,
    class_table,
    counted_rows,
    cross_counts,
    distinct_counts,
    keyed_rows,
    left_out,
    matched_classes,
    packed_table,
    size_spectrum,
    smallest_classes,
    weighted_rows,
)
from discreet.engine.frames import collect, engine_name, in_declared_order, like, scan
from discreet.engine.rebuild import in_kind, rebuilt, whole_frame
from discreet.engine.records import carry_back, named_classes
from discreet.engine.roles import (
    Overview,
    float_key_caveat,
    float_keys,
    overview,
    resolve_keys,
    resolve_sensitive,
    resolve_weight,
    seldom_repeated,
    total,
)
from discreet.engine.units import (
    after_treatment,
    all_suppressed,
    counted_role,
    counted_unit,
    head_count,
    people_of_weights,
    repeated_identifiers,
    single_households,
    unit_column,
    unit_in_words,
    units_without_name,
)

__all__ = [
    "ClassCounts",
    "Missing",
    "Overview",
    "after_treatment",
    "all_suppressed",
    "attribute_profile",
    "carry_back",
    "class_counts",
    "class_table",
    "collect",
    "counted_role",
    "counted_rows",
    "counted_unit",
    "cross_counts",
    "distinct_counts",
    "engine_name",
    "equal_breaks",
    "float_key_caveat",
    "float_keys",
    "seldom_repeated",
    "head_count",
    "in_declared_order",
    "in_kind",
    "keyed_rows",
    "left_out",
    "like",
    "matched_classes",
    "named_classes",
    "overview",
    "packed_table",
    "people_of_weights",
    "rebuilt",
    "repeated_identifiers",
    "resolve_keys",
    "resolve_sensitive",
    "resolve_weight",
    "scan",
    "single_households",
    "size_spectrum",
    "smallest_classes",
    "total",
    "unit_column",
    "unit_in_words",
    "units_without_name",
    "value_shares",
    "weighted_rows",
    "whole_frame",
]
