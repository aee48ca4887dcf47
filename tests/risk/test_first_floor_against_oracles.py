"""Every measure of the first floor equals its plain definition, on random files with missing values."""

from __future__ import annotations

import polars as pl
import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet import Hierarchy, Microdata
from discreet import risk as measured

from . import oracles

close = pytest.approx
quiet = settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
KEYS = ["sex", "area"]


@st.composite
def files(draw, max_rows=25):
    rows = draw(st.integers(1, max_rows))
    some = lambda values: st.lists(st.sampled_from(values), min_size=rows, max_size=rows)  # noqa: E731
    columns = {
        "sex": draw(some(["f", "m", None])),
        "area": draw(some([1, 2, 3, None])),
        "ill": draw(some(["a", "b", "c", "d", None])),
        "pay": draw(some([10, 20, 30, 45, 50, None])),
    }
    for name, filler in (("sex", "f"), ("area", 1), ("ill", "a"), ("pay", 10)):
        if all(value is None for value in columns[name]):
            columns[name][0] = filler
    return columns


def keys_of(columns):
    return list(zip(columns["sex"], columns["area"], strict=True))


def microdata(columns, sensitive):
    frame = pl.DataFrame(
        columns, schema={"sex": pl.String, "area": pl.Int64, "ill": pl.String, "pay": pl.Int64}
    )
    return Microdata(frame, keys=KEYS, sensitive=sensitive)


def by_class(measure, column):
    return {(row["sex"], row["area"]): row[column] for row in measure.detail["classes"].to_dicts()}


def expected_by_class(columns, sensitive, figure):
    return {
        key: figure(members)
        for key, members in oracles.classes_of(keys_of(columns), columns[sensitive]).items()
    }


@quiet
@given(files())
def test_identity_measures_follow_from_the_class_sizes(columns):
    every, data = keys_of(columns), microdata(columns, "ill")
    keys = oracles.telling(every)
    sizes = oracles.Counter(keys)
    assert measured.k_anonymity(data).figures["all_suppressed"] == len(every) - len(keys)
    assert measured.k_anonymity(data).value == oracles.k(keys)
    assert measured.uniqueness(data).figures["pue"] == close(oracles.pue(keys), abs=1e-12)
    risks = [1 / sizes[key] for key in keys]
    figures = measured.reidentification(data, threshold=0.4).figures
    assert figures["prosecutor_max"] == close(max(risks), abs=1e-12)
    assert figures["prosecutor_mean"] == close(sum(risks) / len(risks), abs=1e-12)
    assert figures["expected_matches"] == close(sum(risks), abs=1e-12)
    assert figures["records_above_threshold"] == sum(risk > 0.4 for risk in risks)
    assert measured.k_anonymity(data).detail["records"]["class_size"].to_list() == [
        sizes.get(key) for key in every
    ]


@quiet
@given(files())
def test_dropping_missing_keys_counts_the_complete_records_only(columns):
    keys = [key for key in keys_of(columns) if None not in key]
    if not keys:
        return
    found = measured.k_anonymity(microdata(columns, "ill"), missing="drop")
    assert found.value == oracles.k(keys)
    assert found.figures["records_left_out"] == len(columns["sex"]) - len(keys)
    sizes = [None if None in key else oracles.Counter(keys)[key] for key in keys_of(columns)]
    assert found.detail["records"]["class_size"].to_list() == sizes


@quiet
@given(files())
def test_a_wildcard_counts_every_record_that_agrees_wherever_both_are_known(columns):
    found = measured.k_anonymity(microdata(columns, "ill"), missing="wildcard")
    expected = oracles.neighborhoods(keys_of(columns))
    assert found.figures["smallest_neighborhood"] == min(size for size in expected if size is not None)
    assert found.detail["records"]["class_size"].to_list() == expected


@quiet
@given(files())
def test_with_wildcards_a_complete_record_has_complete_company(columns):
    data = microdata(columns, "ill")
    found, expected = measured.k_anonymity(data, missing="wildcard"), oracles.company(keys_of(columns))
    assert found.value == min(expected)
    assert found.figures["unique_records"] == expected.count(1)
    assert found.detail["records"]["company"].drop_nulls().to_list() == expected
    risks = [1 / size for size in expected]
    figures = measured.reidentification(data, missing="wildcard").figures
    assert figures["prosecutor_max"] == close(max(risks))
    assert figures["prosecutor_mean"] == close(sum(risks) / len(risks))


@quiet
@given(files(), st.sampled_from([0.5, 1.0, 2.0, 3.5]))
def test_diversity_is_that_of_each_class(columns, c):
    data = microdata(columns, "ill")
    for kind, figure in {
        "distinct": oracles.l_distinct,
        "entropy": oracles.l_entropy,
        "recursive": lambda members: oracles.l_recursive(members, c),
    }.items():
        found, expected = (
            measured.l_diversity(data, kind=kind, c=c),
            expected_by_class(columns, "ill", figure),
        )
        assert by_class(found, "l") == close(expected, abs=1e-12)
        assert found.value == close(min(expected.values()), abs=1e-12)
    expected = expected_by_class(columns, "ill", oracles.alpha)
    assert by_class(measured.alpha_k(data), "alpha") == close(expected, abs=1e-12)
    expected = expected_by_class(columns, "ill", lambda members: oracles.alpha(members, {"a", "b"}))
    if {"a", "b"} & set(columns["ill"]):
        assert by_class(measured.alpha_k(data, values=["a", "b"]), "alpha") == close(expected, abs=1e-12)


@quiet
@given(files(), st.sampled_from([5.0, 10.0, 10.5, 20.0]))
def test_values_closer_than_the_tolerance_count_as_one(columns, tolerance):
    def greedy(members):
        groups, first = 0, None
        for value in sorted(value for value in members if value is not None):
            if first is None or value - first >= tolerance:
                groups, first = groups + 1, value
        return groups + (None in members)

    found = measured.l_diversity(microdata(columns, "pay"), tolerance=tolerance)
    assert by_class(found, "l") == expected_by_class(columns, "pay", greedy)


@quiet
@given(files())
def test_bins_join_values_between_two_breaks_and_leave_missing_apart(columns):
    found = measured.l_diversity(microdata(columns, "pay"), groups=[20, 45])
    banded = [None if pay is None else sum(pay >= x for x in (20, 45)) for pay in columns["pay"]]
    expected = {
        key: len(set(members)) for key, members in oracles.classes_of(keys_of(columns), banded).items()
    }
    assert by_class(found, "l") == expected


@quiet
@given(files())
def test_distances_from_the_whole_file_are_those_of_their_definitions(columns):
    everyone, data = columns["ill"], microdata(columns, "ill")
    for distance, figure in {"tv": oracles.total_variation, "kl": oracles.kullback_leibler}.items():
        expected = expected_by_class(columns, "ill", lambda members, f=figure: f(members, everyone))
        found = measured.t_closeness(data, distance=distance)
        assert by_class(found, "t") == close(expected, abs=1e-12)
        assert found.value == close(max(expected.values()), abs=1e-12)
    equal = expected_by_class(columns, "ill", lambda m: oracles.earth_mover(m, everyone, lambda a, b: a != b))
    assert by_class(measured.t_closeness(data, ground="equal"), "t") == close(equal, abs=1e-9)


@quiet
@given(files())
def test_the_ordered_earth_mover_is_the_cheapest_transport_along_the_ranks(columns):
    everyone = columns["pay"]
    distance = oracles.ordered_distance(everyone)
    expected = expected_by_class(columns, "pay", lambda m: oracles.earth_mover(m, everyone, distance))
    assert by_class(measured.t_closeness(microdata(columns, "pay")), "t") == close(expected, abs=1e-9)


TREE = {"all": {"left": {"l1": ["a"], "l2": ["b"]}, "right": {"r1": ["c", "d"]}}}
PATHS = {
    "a": ("a", "l1", "left", "all"),
    "b": ("b", "l2", "left", "all"),
    "c": ("c", "r1", "right", "all"),
    "d": ("d", "r1", "right", "all"),
    None: ("?", "?", "?", "all"),
}


@quiet
@given(files())
def test_the_hierarchical_earth_mover_is_the_cheapest_transport_in_the_tree(columns):
    everyone = columns["ill"]
    hierarchy = Hierarchy.from_tree(TREE)
    distance = oracles.tree_distance(PATHS, 3)
    expected = expected_by_class(columns, "ill", lambda m: oracles.earth_mover(m, everyone, distance))
    found = measured.t_closeness(microdata(columns, "ill"), ground="hierarchical", hierarchy=hierarchy)
    assert by_class(found, "t") == close(expected, abs=1e-9)


@quiet
@given(files())
def test_gains_and_ratios_are_the_extremes_over_the_values_of_a_class(columns):
    everyone, data = columns["ill"], microdata(columns, "ill")
    basic = expected_by_class(columns, "ill", lambda m: oracles.beta(m, everyone))
    assert by_class(measured.beta_likeness(data), "beta") == close(basic, abs=1e-12)
    enhanced = measured.beta_likeness(data, enhanced=True)
    assert by_class(enhanced, "beta") == close(basic, abs=1e-12)
    over = expected_by_class(columns, "ill", lambda m: oracles.breaks_cap(m, everyone))
    assert by_class(enhanced, "over_cap") == over
    assert enhanced.figures["enhanced_holds"] == (not any(over.values()))
    delta = expected_by_class(columns, "ill", lambda m: oracles.delta(m, everyone))
    assert by_class(measured.delta_disclosure(data), "delta") == close(delta, abs=1e-12)


@quiet
@given(files(), st.data())
def test_measures_against_a_population_follow_from_both_class_sizes(columns, data):
    everybody = population = keys_of(columns)
    chosen = data.draw(
        st.lists(st.sampled_from(range(len(population))), min_size=1, unique=True).filter(
            lambda rows: all(any(population[i][j] is not None for i in rows) for j in (0, 1))
        )
        if all(any(key[j] is not None for key in population) for j in (0, 1))
        else st.nothing()
    )
    sample = oracles.telling([everybody[i] for i in chosen])
    population = oracles.telling(population)
    town = microdata(columns, "ill")
    file = Microdata(town.frame[chosen], keys=KEYS)
    most, mean = oracles.journalist(sample, population)
    figures = measured.reidentification(file, population=town).figures
    assert (figures["journalist_max"], figures["journalist_mean"]) == close((most, mean), abs=1e-12)
    low, high = oracles.presence(sample, population)
    figures = measured.delta_presence(file, town).figures
    assert (figures["delta_min"], figures["delta_max"]) == close((low, high), abs=1e-12)
    theirs = oracles.Counter(population)
    assert measured.k_map(file, town).value == min(theirs[key] for key in sample)
    alone = [key for key in sample if sample.count(key) == 1]
    rfue = sum(theirs[key] == 1 for key in alone) / len(alone) if alone else None
    assert measured.uniqueness(file, population=town).figures["rfue"] == (
        None if rfue is None else close(rfue)
    )


@quiet
@given(files())
def test_distinction_and_separation_are_shares_of_records_and_of_pairs(columns):
    keys = oracles.telling(keys_of(columns))
    if len(keys) < 2:
        return
    found = measured.key_contributions(microdata(columns, "ill"))
    assert found.figures["distinction"] == close(oracles.distinction(keys), abs=1e-12)
    assert found.figures["separation"] == close(oracles.separation(keys), abs=1e-12)
    for row in found.detail["variables"].to_dicts():
        alone = oracles.telling(columns[row["key"]])
        rest = oracles.telling(columns["area" if row["key"] == "sex" else "sex"])
        assert row["distinction"] == close(oracles.distinction(alone), abs=1e-12)
        assert row["separation"] == close(oracles.separation(alone) if len(alone) > 1 else 1.0, abs=1e-12)
        assert row["k_without"] == oracles.k(rest)
