"""Company is counted in people: several records of one person hide nobody, and a record without keys tells nothing."""

from __future__ import annotations

import polars as pl
import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet import Microdata, assess, risk
from discreet.core.errors import ColumnError

close = pytest.approx
quiet = settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))

NINE = pl.DataFrame(
    {
        "who": [1, 1, 1, 2, 2, 2, 3, 3, 3],
        "sex": ["f"] * 3 + ["m"] * 6,
        "age": [30] * 3 + [40] * 3 + [50] * 3,
        "ill": ["flu"] * 3 + ["cold"] * 3 + ["gout"] * 3,
        "w": [100.0] * 9,
    }
)


def nine(**roles):
    """Three people with three records each, each alone with their keys."""
    return Microdata(NINE, keys=["sex", "age"], sensitive="ill", **({"person": "who"} | roles))


TOWN = Microdata(NINE.select("sex", "age", "who").unique(), person="who")


@pytest.mark.parametrize(
    ("measure", "figures"),
    [
        (risk.k_anonymity, {"k": 1, "unique_records": 3, "records": 3, "records_in_file": 9}),
        (risk.uniqueness, {"unique_share": 1.0, "pue": 1.0}),
        (risk.reidentification, {"prosecutor_max": 1.0, "expected_matches": 3.0}),
        (risk.key_contributions, {"k": 1, "unique_share": 1.0}),
        (risk.l_diversity, {"l": 1, "best_guess": 1.0, "homogeneous_records": 3}),
        (risk.alpha_k, {"alpha": 1.0, "k": 1}),
        (risk.unsafe_combinations, {"unsafe_share": 1.0, "unsafe_records": 3}),
        (risk.special_uniques, {"special_unique_share": 1.0, "unique_records": 3}),
        (risk.overlapping_tables, {"records_recovered": 3}),
        (lambda data: risk.k_map(data, TOWN), {"k_map": 1, "share_below_threshold": 1.0}),
        (lambda data: risk.delta_presence(data, TOWN), {"delta_max": 1.0, "certain_records": 3}),
        (lambda data: risk.known_population(data, TOWN), {"B": 1.0, "tau1": 3, "records": 3}),
        (lambda data: risk.isolation(data, population_size=1000), {"cells_of_one": 3, "records": 3}),
        (
            lambda data: risk.population(data, population_size=300, estimator="zayatz"),
            {"sample_uniques": 3, "records": 3},
        ),
        (
            lambda data: risk.individual(data.with_roles(weight="w")),
            {"records": 3, "population_estimate": 300.0, "records_in_file": 9},
        ),
        (lambda data: risk.replicated_uniques(data, data), {"repU": 100.0}),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_three_people_who_are_alone_are_alone_however_often_they_are_recorded(measure, figures):
    found = measure(nine()).figures
    assert {name: found[name] for name in figures} == close(figures)


def test_without_the_role_records_are_counted_as_before():
    found = risk.k_anonymity(nine(person=None))
    assert (found.value, found.figures["records"]) == (3, 9)
    assert "records_in_file" not in found.figures


def test_the_order_of_roles_is_person_then_contributor_then_record():
    by_firm = risk.k_anonymity(nine(person=None, contributor="who"))
    assert by_firm.value == 1
    assert "contributors" in by_firm.meaning
    both = pl.concat([NINE, NINE.with_columns(who=pl.col("who") + 3)]).with_columns(firm=pl.lit(1))
    data = Microdata(both, keys=["sex", "age"], person="who", contributor="firm")
    assert risk.k_anonymity(data).value == 2


def test_a_household_alone_counts_persons_and_says_which_classes_are_one_household():
    data = Microdata(NINE, keys=["sex", "age"], household="who")
    found = risk.k_anonymity(data)
    assert (found.value, found.figures["single_household_classes"]) == (3, 3)
    assert found.figures["single_household_records"] == 9
    assert any("one household only" in caveat for caveat in found.caveats)


def test_the_meaning_speaks_of_people_only_where_people_are_counted():
    assert "of 3 people" in risk.k_anonymity(nine()).meaning
    assert "of 9 records" in risk.k_anonymity(nine(person=None)).meaning


def test_somebody_with_several_values_stands_for_the_one_that_most_of_the_class_have():
    visits = pl.DataFrame(
        {"who": [1, 1, 2, 2, 3], "sex": ["f"] * 5, "ill": ["flu", "gout", "flu", "cold", "flu"]}
    )
    found = risk.l_diversity(Microdata(visits, keys="sex", sensitive="ill", person="who"))
    assert (found.value, found.figures["best_guess"]) == (1, 1.0)
    assert any("2 people have several values" in caveat for caveat in found.caveats)


def test_records_that_do_not_say_whose_they_are_count_as_one():
    frame = NINE.with_columns(who=pl.lit(None, dtype=pl.Int64))
    found = risk.k_anonymity(Microdata(frame, keys=["sex", "age"], person="who"))
    assert found.value == 1
    assert any("9 records do not say whose they are" in caveat for caveat in found.caveats)


def test_a_file_that_lost_its_persons_says_so():
    data = nine().with_frame(NINE.drop("who"))
    assert data.lost_roles == ("person",)
    assert any("role 'person'" in caveat for caveat in risk.k_anonymity(data).caveats)
    assert not nine().lost_roles


def test_an_identifier_that_repeats_is_a_hint_that_people_do():
    found = risk.k_anonymity(nine(person=None, identifiers="who"))
    assert any("person='who'" in caveat and "6 records" in caveat for caveat in found.caveats)
    assert not any("person='who'" in caveat for caveat in risk.k_anonymity(nine(identifiers="who")).caveats)


def test_an_assessment_judges_people():
    found = assess(nine(), "safe-setting")
    assert not found.verdict.meets
    assert found.main.riskiest[0]["class_size"] == 1
    assert assess(nine(person=None), "safe-setting")["k_anonymity"].value == 3


def test_persons_under_wildcards_are_not_counted_twice():
    frame = pl.DataFrame({"who": [1, 1, 2], "sex": ["f", None, "f"], "age": [30, 30, None]})
    found = risk.k_anonymity(Microdata(frame, keys=["sex", "age"], person="who"), missing="wildcard")
    assert found.detail["records"]["class_size"].to_list() == [1, 1, 2]  # at most the two people there are
    assert found.value == 1


MEASURES = {
    "k_anonymity": ("k", "unique_records", "share_below_threshold"),
    "uniqueness": ("pue", "unique_share"),
    "reidentification": ("prosecutor_mean", "share_above_threshold"),
    "key_contributions": ("k", "best_k_without", "separation"),
    "l_diversity": ("l", "best_guess", "share_below_threshold"),
    "t_closeness": ("t", "share_above"),
    "alpha_k": ("alpha", "k", "share_above"),
    "beta_likeness": ("beta", "share_above"),
    "delta_disclosure": ("delta", "share_above"),
    "attribution": ("cap_original", "baseline"),
    "unsafe_combinations": ("unsafe_share", "unsafe_combinations"),
    "special_uniques": ("special_unique_share", "max_suda"),
}


@st.composite
def visits(draw):
    rows = draw(st.integers(1, 15))
    some = lambda values: st.lists(st.sampled_from(values), min_size=rows, max_size=rows)  # noqa: E731
    schema = {"who": pl.Int64, "sex": pl.String, "age": pl.Int64, "ill": pl.String}
    columns = {
        "who": draw(some([1, 2, 3, 4, 5, None])),
        "sex": ["f", *draw(some(["f", "m", None]))[1:]],
        "age": [30, *draw(some([30, 40, None]))[1:]],
        "ill": ["a", *draw(some(["a", "b", "c", None]))[1:]],
    }
    return pl.DataFrame(columns, schema=schema)


def figures_of(frame, **roles):
    data = Microdata(frame, keys=["sex", "age"], sensitive="ill", **roles)
    return {
        name: [getattr(risk, name)(data).figures[figure] for figure in figures]
        for name, figures in MEASURES.items()
    }


@quiet
@given(visits(), st.integers(2, 4))
def test_repeating_the_records_of_people_never_changes_a_measure(frame, times):
    repeated = pl.concat([frame] * times)
    once, again = (figures_of(file, person="who") for file in (frame, repeated))
    for name, figures in once.items():
        assert again[name] == close(figures, nan_ok=True), name


@quiet
@given(visits())
def test_with_one_record_each_people_and_records_are_the_same(frame):
    numbered = frame.with_columns(who=pl.int_range(pl.len()))
    by_person, by_record = figures_of(numbered, person="who"), figures_of(numbered)
    for name, figures in by_record.items():
        assert by_person[name] == close(figures, nan_ok=True), name


@quiet
@given(visits(), st.integers(1, 5), st.booleans())
def test_records_without_a_known_key_never_change_who_is_hidden(frame, silent, people):
    extra = pl.DataFrame(
        {"who": [9] * silent, "sex": [None] * silent, "age": [None] * silent, "ill": ["a"] * silent},
        schema=frame.schema,
    )
    roles = {"person": "who"} if people else {}
    for missing in ("category", "wildcard"):
        before, after = (
            risk.k_anonymity(Microdata(file, keys=["sex", "age"], **roles), missing=missing)
            for file in (frame, pl.concat([frame, extra]))
        )
        assert after.value == before.value
        assert after.figures["unique_records"] == before.figures["unique_records"]
        assert after.figures["all_suppressed"] == before.figures["all_suppressed"] + silent
        assert f"{after.figures['all_suppressed']:,} record" in after.meaning
        assert any("in no class" in caveat for caveat in after.caveats)


def test_a_file_of_which_no_key_is_left_is_refused_not_cleared():
    frame = NINE.with_columns(sex=pl.lit(None, dtype=pl.String), age=pl.lit(None, dtype=pl.Int64))
    with pytest.raises(ColumnError, match="no values at all"):
        risk.k_anonymity(Microdata(frame, keys=["sex", "age"]))
    with pytest.raises(ColumnError, match="no values at all"):
        assess(Microdata(frame, keys=["sex", "age"]), "safe-setting")


def test_a_suppressed_record_still_belongs_to_the_file_with_which_classes_are_compared():
    frame = pl.DataFrame({"sex": ["f", "f", None, None], "ill": ["a", "a", "b", "b"]})
    found = risk.t_closeness(Microdata(frame, keys="sex", sensitive="ill"))
    assert found.value == 0.5
