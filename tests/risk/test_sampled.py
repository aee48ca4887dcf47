"""Individual, household and two-level risk from survey weights."""

import math
from decimal import Decimal, getcontext

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.risk.individual_risk import individual
from discreet.risk.negative_binomial_risk import mean_reciprocal

PEOPLE = pl.DataFrame(
    {
        "job": ["nurse", "nurse", "mayor", "clerk", "clerk", "clerk"],
        "town": ["a", "a", "a", "b", "b", None],
        "w": [50.0, 60.0, 17.0, 5.0, 0.4, 2.0],
        "home": [1, 2, 1, 3, 3, None],
    }
)


def survey(**roles):
    return Microdata(PEOPLE, keys=["job", "town"], weight="w", **roles)


def precise(f: int, people: Decimal) -> float:
    """The risk to 50 digits: the closed form of f = 1 stepped up where p is small, else the plain series."""
    getcontext().prec = 60
    p = Decimal(f) / people
    if p >= 1:
        return 1 / f
    missed = 1 - p
    if p < Decimal("0.3") and f <= 100:
        risk = -p / missed * p.ln()
        for step in range(1, f):
            risk = p / missed * (Decimal(1) / step - risk)
        return float(risk)
    term = total = Decimal(1)
    k = 0
    while term > Decimal(10) ** -45:
        k += 1
        term = term * missed * k / (f + k)
        total += term
    return float(p / f * total)


@pytest.mark.parametrize("f", [1, 2, 3, 4, 7, 15, 16, 17, 60, 100, 101, 1000, 5000, 10**6])
@pytest.mark.parametrize("ratio", [1 + 1e-12, 1.000001, 1.01, 1.5, 1.999, 2, 2.001, 3.3, 50, 1e4, 1e8])
def test_the_risk_has_twelve_right_digits_for_any_class_size_and_sampling_rate(f, ratio):
    people = float(f * ratio)
    assert mean_reciprocal(f, people) == pytest.approx(precise(f, Decimal(people)), rel=1e-12)


@pytest.mark.parametrize(("f", "people"), [(1, 17.0), (2, 84.5), (3, 40.0), (5, 6.5), (20, 130.0)])
def test_the_risk_is_the_mean_of_one_over_a_negative_binomial_count(f, people):
    p = f / people
    counts = np.arange(f, 20_000)
    logs = [math.lgamma(h) - math.lgamma(f) - math.lgamma(h - f + 1) for h in counts]
    chances = np.exp(np.array(logs) + f * math.log(p) + (counts - f) * math.log1p(-p))
    assert mean_reciprocal(f, people) == pytest.approx((chances / counts).sum(), rel=1e-9)


@given(
    st.integers(1, 10**6),
    st.floats(1e-3, 1e9, allow_nan=False),
)
def test_the_risk_is_never_above_one_over_f_nor_below_one_over_the_people(f, people):
    risk = float(mean_reciprocal(f, people))
    assert 0 < risk <= 1 / f
    assert risk >= min(1 / people, 1 / f) * (1 - 1e-12)


@given(st.integers(1, 200), st.lists(st.floats(1, 1e6), min_size=2, max_size=6))
def test_more_people_behind_a_class_never_raise_its_risk(f, ratios):
    risks = mean_reciprocal(f, f * np.sort(ratios))
    assert (np.diff(risks) <= 1e-15).all()


def test_an_empty_table_of_classes_has_no_risks():
    assert mean_reciprocal([], []).tolist() == []


def test_weights_that_sum_to_less_than_the_records_give_one_over_the_class_size():
    found = individual(
        Microdata(pl.DataFrame({"a": [1, 1, 2], "w": [0.2, 0.3, 0.5]}), keys=["a"], weight="w")
    )
    assert found.detail["records"]["risk"].to_list() == [0.5, 0.5, 1.0]
    assert any("fully observed" in caveat for caveat in found.caveats)


def test_the_figures_add_up_to_the_records():
    found = individual(survey())
    records = found.detail["records"]
    assert found.figures["expected_reidentifications"] == pytest.approx(records["risk"].sum())
    assert found.figures["global_risk"] == pytest.approx(records["risk"].mean())
    assert found.figures["population_estimate"] == pytest.approx(PEOPLE["w"].sum())
    assert found.figures["records_above_threshold"] == (records["risk"] > 0.1).sum()
    assert found.detail["distribution"]["records"].sum() == 6
    assert records["class_size"].to_list() == [2, 2, 1, 2, 2, 1]
    assert records["population_estimate"].to_list() == pytest.approx([110, 110, 17, 5.4, 5.4, 2])


def test_a_household_is_found_when_any_of_its_members_is():
    found = individual(survey(household="home"))
    records = found.detail["records"]
    r = records["risk"].to_list()
    first, second, third = 1 - (1 - r[0]) * (1 - r[2]), r[1], 1 - (1 - r[3]) * (1 - r[4])
    assert records["household_risk"].to_list() == pytest.approx([first, second, first, third, third, r[5]])
    assert found.figures["households"] == 4
    assert found.figures["expected_households"] == pytest.approx(first + second + third + r[5])
    expected = 2 * first + second + 2 * third + r[5]
    assert found.figures["household_expected_reidentifications"] == pytest.approx(expected)
    assert found.figures["household_global_risk"] == pytest.approx(expected / 6)
    assert any("no household" in caveat for caveat in found.caveats)


def test_small_household_risks_keep_their_digits():
    people = pl.DataFrame({"a": ["x"] * 4, "w": [1e12] * 4, "home": [1, 1, 2, 2]})
    found = individual(Microdata(people, keys=["a"], weight="w", household="home"))
    risk = found.detail["records"]["risk"][0]
    assert found.detail["records"]["household_risk"][0] == pytest.approx(2 * risk, rel=1e-10)


def test_without_households_and_employers_their_figures_are_undefined():
    figures = individual(survey()).figures
    assert figures["household_global_risk"] is None
    assert figures["two_level_global_risk"] is None


def test_a_household_column_may_be_a_key():
    found = individual(Microdata(PEOPLE, keys=["job", "home"], weight="w", household="home"))
    assert found.detail["records"]["household_risk"].null_count() == 0


def test_a_missing_key_as_wildcard_counts_and_weighs_the_whole_neighborhood():
    records = individual(survey(), missing="wildcard").detail["records"]
    assert records["class_size"].to_list() == [2, 2, 1, 3, 3, 3]
    assert records["population_estimate"].to_list() == pytest.approx([110, 110, 17, 7.4, 7.4, 7.4])


def test_dropped_records_have_no_risk_and_are_counted():
    found = individual(survey(household="home"), missing="drop")
    assert found.figures["records_left_out"] == 1
    assert found.detail["records"]["risk"].to_list()[5] is None
    assert found.figures["records"] == 5


@given(
    st.lists(st.tuples(st.integers(0, 3), st.floats(0.3, 500)), min_size=1, max_size=30),
    st.floats(0.001, 1),
)
def test_the_target_threshold_brings_the_mean_of_the_capped_risks_to_the_target(rows, target):
    people = pl.DataFrame(rows, schema=["a", "w"], orient="row")
    found = individual(Microdata(people, keys=["a"], weight="w"), target_share=target)
    risk, threshold = found.detail["records"]["risk"].to_numpy(), found.figures["target_threshold"]
    reached = np.minimum(risk, threshold).mean()
    if risk.mean() <= target:
        assert found.figures["records_above_target_threshold"] == 0
    else:
        assert reached == pytest.approx(target, rel=1e-9)
        assert found.figures["records_above_target_threshold"] == (risk > threshold * (1 + 1e-12)).sum()


STAFF = pl.DataFrame(
    {
        "region": ["n", "n", "n", "n", "s", "s"],
        "sex": ["f", "f", "m", "f", "m", "m"],
        "firm": [1, 1, 1, 2, 3, None],
        "firm_weight": [4.0, 4.0, 4.0, 6.0, 2.0, 1.0],
        "w": [8.0, 8.0, 12.0, 6.0, 10.0, 3.0],
    }
)


def staff(**more):
    data = Microdata(STAFF, keys=["region", "sex"], weight="w", employer="firm")
    return individual(data, employer_weight="firm_weight", **more)


def test_the_two_level_risk_is_that_of_the_employer_times_that_of_the_employee_within():
    found = staff()
    records = found.detail["records"]
    north, south = mean_reciprocal([2, 1], [10, 2])
    assert records["employer_risk"].to_list()[:5] == pytest.approx([north] * 4 + [south])
    women, man, second, third = mean_reciprocal([2, 1, 1, 1], [4, 3, 1, 5])
    assert records["within_risk"].to_list()[:5] == pytest.approx([women, women, man, second, third])
    products = [north * women, north * women, north * man, north * second, south * third]
    assert records["two_level_risk"].to_list()[:5] == pytest.approx(products)
    assert records["two_level_risk"][5] is None
    assert found.figures["two_level_expected_reidentifications"] == pytest.approx(sum(products))
    assert found.figures["two_level_global_risk"] == pytest.approx(sum(products) / 5)
    assert found.figures["employer_global_risk"] == pytest.approx((2 * north + south) / 3)
    assert found.parameters["employer_keys"] == ["region"]
    assert any("name no employer" in caveat for caveat in found.caveats)


def test_employer_keys_can_be_named_and_must_describe_the_employer():
    assert staff(employer_keys=["region"]).parameters["employer_keys"] == ["region"]
    with pytest.raises(ColumnError, match="'sex' differs between records of one employer"):
        staff(employer_keys=["sex"])
    with pytest.raises(ColumnError, match="employer_keys"):
        staff(employer_keys=["county"])


def test_an_employer_weight_that_varies_within_an_employer_is_refused():
    data = Microdata(STAFF, keys=["region", "sex"], weight="w", employer="firm")
    with pytest.raises(ColumnError, match="differs between records of one employer"):
        individual(data, employer_weight="w")


def test_keys_that_say_nothing_about_the_employer_are_refused():
    with pytest.raises(ParameterError, match="tell the employers apart"):
        staff(keys=["sex"])


def test_employers_without_their_weights_are_left_out_with_a_caveat():
    found = individual(Microdata(STAFF, keys=["region", "sex"], weight="w", employer="firm"))
    assert found.figures["employers"] is None
    assert any("employer_weight" in caveat for caveat in found.caveats)


def test_an_employer_weight_needs_an_employer():
    with pytest.raises(ParameterError, match="employer='column'"):
        individual(survey(), employer_weight="w")


def test_no_weights_is_an_error_that_says_how_to_name_them():
    with pytest.raises(ParameterError, match="weight='column'"):
        individual(Microdata(PEOPLE, keys=["job"]))


@pytest.mark.parametrize("bad", [0.0, -1.0, None, float("inf")])
def test_a_weight_that_is_no_weight_is_refused(bad):
    people = pl.DataFrame({"a": [1, 2], "w": [1.0, bad]})
    with pytest.raises(ColumnError, match="weight"):
        individual(Microdata(people, keys=["a"], weight="w"))


@pytest.mark.parametrize("bad", [{"threshold": 1.5}, {"target_share": 0}, {"target_share": 2}])
def test_shares_outside_their_range_are_refused(bad):
    with pytest.raises(ParameterError, match=next(iter(bad))):
        individual(survey(), **bad)


def test_an_unknown_household_or_a_weight_among_the_keys_is_refused():
    with pytest.raises(ColumnError, match="Did you mean 'home'"):
        individual(survey(), household="hom")
    with pytest.raises(ColumnError, match="cannot be a key"):
        individual(Microdata(PEOPLE, keys=["job", "w"]), weight="w")


def test_when_drop_leaves_nobody_the_error_says_so():
    people = pl.DataFrame({"a": [1, None], "b": [None, 1], "w": [1.0, 1.0]})
    with pytest.raises(ParameterError, match="No record is left"):
        individual(Microdata(people, keys=["a", "b"], weight="w"), missing="drop")


@pytest.mark.parametrize("missing", ["category", "wildcard", "drop"])
@pytest.mark.parametrize("kind", ["pandas", "pyarrow", "duckdb"])
def test_every_engine_gives_the_same_risks(kind, missing):
    pytest.importorskip(kind)
    arrow = PEOPLE.to_arrow()
    if kind == "duckdb":
        import duckdb

        frame = duckdb.connect().from_arrow(arrow)
    else:
        frame = arrow.to_pandas() if kind == "pandas" else arrow
    roles = {"keys": ["job", "town"], "weight": "w", "household": "home"}
    found = individual(Microdata(frame, **roles), missing=missing)
    expected = individual(Microdata(PEOPLE, **roles), missing=missing)
    assert dict(found.figures) == pytest.approx(dict(expected.figures), nan_ok=True)
    records = found.detail["records"]
    records = pl.from_arrow(records.to_arrow_table()) if kind == "duckdb" else pl.DataFrame(records)
    left, right = (
        sorted(x for x in table["household_risk"].to_list() if x is not None and not math.isnan(x))
        for table in (records, expected.detail["records"])
    )
    assert left == pytest.approx(right)
