"""A session with statsmodels on real people."""

from __future__ import annotations

import polars as pl
import pytest

from discreet import Microdata, datasets, read
from discreet.outputs import Package, Session


@pytest.fixture(scope="module")
def eusilc(test_data):
    data = read(test_data / "laeken_eusilc.csv.gz", roles={})
    return data.with_roles(household="db030", weight="rb050")


@pytest.mark.slow
def test_a_session_on_adult(tmp_path):
    adult = datasets.adult().frame.rename({"hours-per-week": "hours", "marital-status": "marital"})
    adult = adult.with_columns(rich=(pl.col("income") == ">50K").cast(pl.Int8))
    with Session("research-data-centre", data=adult, researcher="R", purpose="test") as s:
        assert s.crosstab("sex", "income", margins=True).status == "pass"
        assert s.crosstab("race", "workclass").status == "fail"
        assert s.crosstab("race", "workclass", mitigate="secondary-suppress", margins=True).status == "pass"
        model = s.logit("rich ~ age + hours + C(sex)")
        assert model.status == "pass"
        assert model.result.params["age"] > 0
        # A logit on one factor only recasts a table.
        assert "a" in s.logit("rich ~ C(race)").barns
        assert s.ols("hours ~ age + C(marital) + C(race)").status == "pass"
        assert s.summary("hours", ["marital", "race"], statistics=["mean", "sd"]).status == "fail"
        package = Package.load(s.save(tmp_path / "adult.zip"))
    assert [output["status"] for output in package][:3] == ["pass", "fail", "pass"]


@pytest.mark.slow
def test_a_session_on_eusilc(eusilc):
    with Session(data=eusilc) as s:
        assert s.crosstab("db040", "rb090").status == "pass"
        regions = s.summary("eqIncome", "db040", statistics=["count", "mean", "total", "sd"])
        assert regions.status == "pass"
        assert s.summary("eqIncome", "db040", statistics=["max"]).status == "fail"
        assert s.gini("eqIncome").table["gini"][0] == pytest.approx(0.2648, abs=0.0005)
        assert s.quantiles("eqIncome", "db040").status in ("pass", "review")
        assert s.ols("eqIncome ~ age + C(rb090) + C(db040)").status == "pass"
        assert s.poisson("hsize ~ age").status == "pass"


def test_households_are_fewer_than_people(eusilc):
    with Session(data=Microdata(eusilc.frame, person="db030")) as s:
        by_household = s.crosstab("db040", margins=True)
    frame = eusilc.frame if isinstance(eusilc.frame, pl.DataFrame) else eusilc.frame.collect()
    assert by_household.table["count"][-1] == frame["db030"].n_unique()
