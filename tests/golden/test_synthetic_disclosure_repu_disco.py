"""The worked example of the repU/DiSCO spec, checked there against the reference implementation.

Source: G. M. Raab, "Privacy Risk from Synthetic Data: Practical Proposals" (2024), misprints corrected as the
spec says.
"""

import polars as pl
import pytest

from discreet import Microdata
from discreet.risk.attribute_disclosure import attribute_disclosure, specific_risk
from discreet.risk.replicated_uniques import remove_replicated_uniques, replicated_uniques
from discreet.risk.synthetic_disclosure import disclosure


def file(text):
    rows = [tuple(item) for item in text.split()]
    return Microdata(pl.DataFrame(rows, schema=["k", "t"], orient="row"), keys="k")


original = file("ax ax ay bx bx cy cz dz ex fy gx gx")
synthetic = file("ax bx bx bx cy dz ey ey gx gy hz hz hz")
IDENTITY = {"UiO": 25, "UiS": 23.0769, "UiOiS": 16.6667, "repU": 8.3333}
TARGETS = {
    "Dorig": 58.3333,
    "Dsyn": 84.6154,
    "iS": 91.6667,
    "DiS": 75,
    "DiSCO": 50,
    "DiSDiO": 25,
    "CAPd": 80.5556,
    "baseCAPd": 43.0556,
    "DCAP": 58.3333,
    "TCAP": 54.5455,
    "denom_max": 3,
    "denom_mean": 1.5,
}


def picked(figures, expected):
    return {name: figures[name] for name in expected}


def test_identity_figures():
    figures = replicated_uniques(original, synthetic).figures
    assert picked(figures, IDENTITY) == pytest.approx(IDENTITY, abs=5e-5)
    assert figures["replicated"] == 1


def test_the_table_of_all_targets_has_the_published_columns_and_figures():
    measure = disclosure(original, synthetic)
    assert picked(measure.figures, IDENTITY) == pytest.approx(IDENTITY, abs=5e-5)
    table = measure.detail["targets"]
    assert table.columns == ["target", *TARGETS]
    assert table.drop("target").row(0, named=True) == pytest.approx(TARGETS, abs=5e-5)


def test_companion_figures():
    figures = attribute_disclosure(original, synthetic, "t").figures
    expected = {"CAPs": 92.3077, "DCAP_scaled": 26.83, "TCAP_conditional": 66.67}
    assert picked(figures, expected) == pytest.approx(expected, abs=5e-3)


def test_denominators_can_be_counted_in_the_original():
    figures = attribute_disclosure(original, synthetic, "t", denominator="original").figures
    assert (figures["denom_max"], figures["denom_mean"]) == (2, 1.5)


def test_excluding_a_target_value():
    figures = attribute_disclosure(original, synthetic, "t", exclude_values=["x"]).figures
    expected = {
        "Dorig": 16.6667,
        "Dsyn": 53.8462,
        "iS": 33.3333,
        "DiS": 33.3333,
        "DiSCO": 16.6667,
        "DiSDiO": 8.3333,
    }
    assert picked(figures, expected) == pytest.approx(expected, abs=5e-5)
    assert picked(figures, IDENTITY) == pytest.approx(IDENTITY, abs=5e-5)


@pytest.mark.parametrize(("denominator", "disco"), [("released", 33.3333), ("original", 16.6667)])
def test_excluding_cells_over_a_denominator_of_one(denominator, disco):
    figures = attribute_disclosure(
        original, synthetic, "t", denom_lim=1, exclude_over_denom=True, denominator=denominator
    ).figures
    assert figures["DiSCO"] == pytest.approx(disco, abs=5e-5)
    assert figures["Dorig"] == pytest.approx(25)


def test_specific_risk_of_the_published_control_figures():
    assert specific_risk(0.3450, 0.2130) == pytest.approx(0.1677, abs=5e-5)
    assert specific_risk(0.4928, 0.3130) == pytest.approx(0.2617, abs=5e-5)


def test_the_replicated_unique_is_removed_and_no_other_record():
    release = remove_replicated_uniques(original, synthetic)
    assert release.log[0].removed_records == 1
    left = release.data.frame["k"].to_list()
    assert left == [k for k in synthetic.frame["k"] if k != "d"]
    assert replicated_uniques(original, release.data).value == 0
    matched = remove_replicated_uniques(original, synthetic, rule="matched")
    assert matched.log[0].removed_records == 3
