"""Margins of statistics by group, and counts with noise that is the same for the same people."""

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.core.errors import ParameterError
from discreet.outputs import OutputPolicy, Session


@pytest.fixture
def people():
    rng = np.random.default_rng(3)
    n = 400
    return pl.DataFrame(
        {
            "id": np.arange(n),
            "sex": rng.choice(["f", "m"], n),
            "region": rng.choice(["north", "south", "east"], n),
            "pay": rng.lognormal(7, 0.3, n),
        }
    )


@pytest.fixture
def secret(monkeypatch):
    monkeypatch.setenv("DISCREET_KEY", "a secret of at least sixteen bytes")


def test_margins_of_a_summary_are_computed_from_their_own_records(people):
    with Session(data=people) as s:
        found = s.summary("pay", "region", statistics=["count", "mean", "median"], margins=True)
    total = found.table.row(-1)
    assert total[0] == "Total"
    assert total[1] == people.height
    assert total[2:] == pytest.approx((people["pay"].mean(), people["pay"].median()))


def test_rows_and_columns_have_margins_where_a_dimension_goes_across(people):
    with Session(data=people) as s:
        found = s.summary("pay", "region", columns="sex", statistics=["mean"], margins=True)
    table = found.tables["mean"]
    women = people.filter(pl.col("sex") == "f")
    assert table.columns == ["region", "f", "m", "Total"]
    assert table.filter(pl.col("region") == "Total")["f"][0] == pytest.approx(women["pay"].mean())
    north = people.filter(pl.col("region") == "north")
    assert table.filter(pl.col("region") == "north")["Total"][0] == pytest.approx(north["pay"].mean())
    assert table["Total"][-1] == pytest.approx(people["pay"].mean())


def test_lines_that_would_give_a_hidden_group_away_are_hidden_too(people):
    rare = people.with_columns(
        region=pl.when(pl.col("id") < 3).then(pl.lit("isle")).otherwise("region")
    ).with_columns(sex=pl.when(pl.col("id") < 3).then(pl.lit("f")).otherwise("sex"))
    with Session(OutputPolicy(zeros_are_disclosive=False), data=rare) as s:
        found = s.summary(
            "pay", "region", columns="sex", statistics=["count", "mean"], margins=True, mitigate="suppress"
        )
    counts = found.tables["count"]
    isle, total = counts.filter(pl.col("region") == "isle"), counts.filter(pl.col("region") == "Total")
    assert isle["f"][0] is None
    assert isle["Total"][0] is None
    assert total["f"][0] is None
    assert total["Total"][0] is None
    assert total["m"][0] == rare.filter(pl.col("sex") == "m").height


def test_a_margin_that_one_person_dominates_is_found(people):
    rich = people.with_columns(pay=pl.when(pl.col("id") == 0).then(1e9).otherwise("pay"))
    with Session(data=rich) as s:
        alone = s.summary("pay", "region", statistics=["total"])
        found = s.summary("pay", "region", statistics=["total"], margins=True)
    assert any(reason.startswith("In the margins:") for reason in found.reasons)
    assert not any(reason.startswith("In the margins:") for reason in alone.reasons)


def test_rounded_summaries_have_rounded_margins_and_none_without_groups(people):
    with Session(data=people) as s:
        found = s.summary("pay", "region", statistics=["total"], margins=True, mitigate="round")
        assert all(number % 5 == 0 for number in found.table["total"])
        assert s.summary("pay", statistics=["mean"], margins=True).table.height == 1


def test_noise_is_the_same_for_the_same_people_in_every_table(people, secret):
    data = Microdata(people, identifiers=["id"])
    with Session(data=data) as s:
        both = s.crosstab("region", "sex", mitigate="noise", margins=True)
        alone = s.crosstab("region", mitigate="noise", margins=True)
        only = s.crosstab("sex", where={"region": "north"}, mitigate="noise")
    for region in ("north", "south", "east"):
        there = both.table.filter(pl.col("region") == region)["Total"][0]
        assert there == alone.table.filter(pl.col("region") == region)["count"][0]
    assert both.table["Total"][-1] == alone.table["count"][-1]
    north = both.table.filter(pl.col("region") == "north")
    assert only.table["count"].to_list() == [north["f"][0], north["m"][0]]
    true = people.group_by("region").len()
    gap = (
        alone.table.join(true, on="region")
        .select((pl.col("count") - pl.col("len").cast(pl.Int64)).abs().max())
        .item()
    )
    assert 0 <= gap <= 5


def test_noisy_counts_that_look_small_or_empty_go_to_a_human(people, secret):
    rare = people.with_columns(region=pl.when(pl.col("id") < 6).then(pl.lit("isle")).otherwise("region"))
    with Session(data=rare) as s:
        found = s.crosstab("region", subject="id", mitigate="noise")
        assert found.status == "review"
        assert "noise" in s.crosstab("region", subject="id").mitigations
    with Session(OutputPolicy(threshold=2), data=rare) as s:
        assert s.crosstab("sex", subject="id", mitigate="noise").status == "pass"


def test_noise_needs_people_who_can_be_told_apart_and_a_secret(people, monkeypatch):
    monkeypatch.delenv("DISCREET_KEY", raising=False)
    with Session(data=people) as s:
        with pytest.raises(ParameterError, match="role person or identifiers"):
            s.crosstab("sex", mitigate="noise")
        with pytest.raises(ParameterError, match="DISCREET_KEY"):
            s.crosstab("sex", subject="id", mitigate="noise")
        monkeypatch.setenv("DISCREET_KEY", "a secret of at least sixteen bytes")
        twice = people.with_columns(id=pl.col("id") // 2)
        with pytest.raises(ParameterError, match="several cells"):
            s.crosstab("sex", "region", data=twice, subject="id", mitigate="noise")
        with pytest.raises(ParameterError, match="counts of people"):
            s.crosstab("sex", subject="id", weight="pay", mitigate="noise")


def test_one_policy_file_may_hold_rules_for_microdata_and_for_outputs(tmp_path):
    from discreet.policy import Policy

    path = tmp_path / "house.toml"
    path.write_text(
        'name = "House"\n[rules]\nk_anonymity = { at_least = 3 }\n[outputs]\nthreshold = 7\n',
        encoding="utf-8",
    )
    assert OutputPolicy.load(path).threshold == 7
    assert Policy.load(path).name == "House"
