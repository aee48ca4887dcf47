"""The worked examples of the statbarn specification (Green, Ritchie and White; the rules of 3.a to 3.l)."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.outputs.check_results import barns, classify
from discreet.outputs.checks import (
    check_counts,
    check_dof,
    check_model,
    check_quantiles,
    check_ratio,
    check_totals,
    odds_ratio_of,
    publishable,
)
from discreet.outputs.register import OutputRegister, Registered
from discreet.outputs.survival_curves import check_survival, grouped, of_table


def test_example_1_low_empty_and_full_cells():
    found = check_counts([[12, 9], [0, 30]])
    assert found.status == "fail"
    assert found.cells("low count") == ((0, 1),)
    assert found.cells("empty cell") == ((1, 0),)
    # Row 2 lies in column 2, column 1 lies in row 1.
    assert found.cells("full line") == ((0, 0), (1, 1))


@pytest.mark.parametrize(
    ("firms", "by_nk", "by_p"),
    [([500, 420] + [8] * 10, True, False), ([900, 50] + [5] * 10, True, True)],
)
def test_example_2_dominance_of_twelve_firms(firms, by_nk, by_p):
    found = check_totals(np.zeros(12), firms)
    assert bool(found.cells("dominance")) is by_nk
    assert bool(found.cells("p%")) is by_p


def test_example_3_degrees_of_freedom():
    assert check_dof(25 - 16).status == "fail"
    assert check_dof(26 - 16).status == "pass"


def test_example_4_two_factors_with_all_interactions_are_a_table():
    from discreet.outputs.checks.models_and_tests import design_of

    sex, region = np.repeat([0, 1], 90), np.tile([0, 1, 2], 60)
    dummies = [np.ones(180), sex, region == 1, region == 2, sex * (region == 1), sex * (region == 2)]
    design = design_of(np.column_stack(dummies))
    assert (design.rank, design.patterns, design.is_saturated) == (6, 6, True)
    pay = np.random.default_rng(4).lognormal(size=180)
    checks = {
        finding.check: finding for finding in check_model(np.column_stack(dummies), outcome=pay).findings
    }
    assert "table in disguise" in checks["saturation"].reason
    assert {"dominance", "p%", "low count"} <= set(checks)


def test_example_5_odds_ratio_is_judged_by_its_table():
    table = [[12, 40], [8, 60]]
    assert odds_ratio_of(table) == 2.25
    found = check_ratio(table)
    assert found.status == "fail"
    assert found.cells() == ((1, 0),)


def test_example_6_quartiles_of_35_and_40_people():
    assert check_quantiles(range(35), [0.25, 0.5, 0.75]).status == "fail"
    assert check_quantiles(range(40), [0.25, 0.5, 0.75]).status == "pass"


def test_example_7_all_staff_less_graduates():
    register = OutputRegister()
    population = {"rows": 45, "columns": {"degree": "x"}}
    earlier = Registered("graduates", population, {"degree": ["yes"]}, (), (), np.array(41.0))
    register.add(earlier)
    staff = Registered("all staff", population, {}, (), (), np.array(45.0))
    found = register.differences(staff, threshold=10)
    assert [finding.status for finding in found] == ["fail"]
    assert "4" not in found[0].reason.replace("45", "").replace("41", "")


def test_example_8_survival_table():
    at_risk = [100, 97, 94, 88, 80, 66, 60, 52, 41, 30, 18, 9]
    events = [3, 2, 4, 5, 9, 4, 5, 8, 7, 9, 6, 4]
    curve = of_table(range(1, 13), at_risk, events)
    shown = publishable(curve)
    assert curve.times[shown].tolist() == [3, 5, 7, 8, 9, 10]
    assert curve.survival[shown].round(4).tolist() == [0.9096, 0.7614, 0.6556, 0.5548, 0.4601, 0.3220]
    assert check_survival(curve).cells("tail") == ((11,),)
    assert check_survival(grouped(curve, shown)).status == "pass"


def test_there_are_twelve_barns_and_two_open_ones_each_complete():
    assert "".join(barns()) == "abcdefghijklmn"
    kinds = [barn.kind for barn in barns().values()]
    assert kinds == ["unsafe"] * 6 + ["safe"] * 6 + ["open"] * 2
    for barn in barns().values():
        assert barn.risks
        assert barn.rules
        assert barn.questions
        assert barn.rationale
        assert barn.mitigations or barn.id in "ghm"


@pytest.mark.parametrize(
    ("name", "barn"),
    [
        ("frequency table", "a"), ("histogram", "a"), ("pie", "a"), ("waterfall chart", "a"), ("alluvial", "a"),
        ("scatter plot", "a"), ("decision tree", "a"), ("proportion", "a"), ("bar chart", "a"),
        ("median", "b"), ("percentiles", "b"), ("IQR", "b"), ("box plot", "b"),
        ("max", "c"), ("range", "c"), ("minimum", "c"),
        ("sum", "d"), ("mean", "d"), ("trimmed mean", "d"), ("ratio of totals", "d"),
        ("linear concentration ratio", "d"),
        ("odds ratio", "e"), ("prevalence ratio", "e"), ("relative risk", "e"),
        ("life table", "f"), ("Kaplan-Meier", "f"), ("hazard table", "f"),
        ("logit", "g"), ("panel data", "g"), ("repeated measurement", "g"), ("SEM", "g"), ("GEE", "g"),
        ("kernel density plot", "g"), ("Pearson's r", "g"), ("adjusted odds ratio", "g"), ("hazard ratio", "g"),
        ("factor analysis", "g"), ("variance-covariance matrix", "g"), ("beta coefficient", "g"),
        ("t-test", "h"), ("chi-squared test", "h"), ("p-value", "h"), ("R2", "h"), ("AIC", "h"),
        ("standard deviation", "i"), ("kurtosis", "i"), ("mode", "j"), ("HHI", "k"), ("entropy index", "k"),
        ("Gini", "l"), ("Lorenz curve", "l"), ("cluster analysis", "m"), ("linked tables", "n"),
    ],
)  # fmt: skip
def test_every_example_lands_where_the_paper_puts_it(name, barn):
    info = classify(name)
    assert info.barn == barn
    assert info.verdict == ("review" if barn in "mn" else "unsafe" if barn < "g" else "safe")


@pytest.mark.parametrize("name", ["heat map", "random forest", "residuals", "something quite new"])
def test_what_the_paper_leaves_open_is_for_a_human(name):
    assert classify(name).barn is None
    assert classify(name).verdict == "review"
