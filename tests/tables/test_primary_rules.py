"""Which cells are sensitive: every rule against its definition, record by record."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.core.errors import ParameterError
from discreet.numerics import dominance
from discreet.tables import (
    PQ,
    Custom,
    Dominance,
    GroupDisclosure,
    KDisclosure,
    Listed,
    MinimumContributors,
    Ones,
    PPercent,
    RequestRule,
    Table,
    Threshold,
    Zeros,
    primary,
)


def firms(rows: int = 120, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    region = rng.integers(0, 4, rows)
    return pl.DataFrame(
        {
            "region": pl.Series(region).replace_strict(dict(enumerate("abcd"))),
            "county": pl.Series(region // 2).replace_strict({0: "X", 1: "Y"}),
            "sector": pl.Series(rng.integers(0, 5, rows)).replace_strict(dict(enumerate("pqrst"))),
            "firm": [f"f{i}" for i in rng.integers(0, 25, rows)],
            "turnover": np.round(np.exp(rng.normal(3, 2, rows)), 3),
            "w": rng.integers(1, 9, rows) / 2,
            "asks": rng.integers(0, 3, rows),
            "waived": rng.random(rows) < 0.5,
        }
    )


def flagged(table: Table, *rules, **options) -> list[tuple[str, ...]]:
    return primary(table, *rules, **options).cells.filter("primary").select(table.dimensions).rows()


def records_of(table: Table, data: pl.DataFrame, cell: int) -> pl.DataFrame:
    for name in table.dimensions:
        dimension = table.hierarchy[name]
        leaves = [dimension.leaves[leaf] for leaf in dimension.leaf_sets[table.cells[name][cell]]]
        data = data.filter(pl.col(name).is_in(leaves))
    return data


SHARES = (
    (Dominance(1, 60), lambda c: dominance.dominated(c, 1, 0.6)),
    (Dominance(3, 90), lambda c: dominance.dominated(c, 3, 0.9)),
    (PPercent(15), lambda c: dominance.p_percent(c, 0.15)),
    (PQ(15, 40), lambda c: dominance.prior_posterior(c, 0.15, 0.4)),
)


@settings(max_examples=examples(20), deadline=None)
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(1, 80),
    which=st.integers(0, len(SHARES) - 1),
    weighting=st.sampled_from([None, "expand", "multiply", "own"]),
    contributor=st.booleans(),
)
def test_rules_on_shares_see_every_contribution_of_every_cell(seed, rows, which, weighting, contributor):
    data = firms(rows, seed)
    contributor = contributor and weighting in (None, "multiply")
    table = Table.from_microdata(
        data,
        "region*sector",
        measure="turnover",
        hierarchies={"region": "county"},
        weight="w" if weighting else None,
        contributor="firm" if contributor else None,
    )
    rule, oracle = SHARES[which]
    rule = type(rule)(
        **{**{n: getattr(rule, n) for n in rule.__dataclass_fields__}, "weighting": weighting or "expand"}
    )
    found = primary(table, rule).cells["primary"].to_list()
    for cell, sensitive in enumerate(found):
        mine = records_of(table, data, cell)
        entries = dominance.contributions(
            np.zeros(mine.height),
            mine["turnover"],
            contributor=mine["firm"].to_numpy() if contributor else None,
            weight=mine["w"] if weighting else None,
            weighting=weighting or "expand",
        )
        assert sensitive == oracle(entries)[0], (table.keys[cell], weighting, contributor)


def test_weights_below_one_still_find_enough_respondents():
    data = pl.DataFrame({"a": ["x"] * 40, "v": list(range(1, 41)), "w": [0.1] * 40})
    table = Table.from_microdata(data, "a", measure="v", weight="w")
    entries = dominance.contributions(np.zeros(40), data["v"], weight=data["w"])
    assert table.contributions(2).top(2)[0] == pytest.approx(entries.top(2)[0])


def test_negative_contributions_are_refused_or_judged_by_absolute_values():
    data = pl.DataFrame({"a": ["x"] * 3, "v": [100.0, -99.0, 5.0], "who": ["p", "q", "r"]})
    for contributor in (None, "who"):
        table = Table.from_microdata(data, "a", measure="v", contributor=contributor)
        with pytest.raises(ParameterError, match="negative"):
            primary(table, Dominance(1, 60))
        assert flagged(table, Dominance(1, 60, negative="absolute")) == []
        assert flagged(table, Dominance(1, 40, negative="absolute")) == [("Total",), ("x",)]


def test_a_coalition_against_the_largest_needs_more_of_a_remainder():
    data = pl.DataFrame({"a": ["x"] * 4, "v": [100, 50, 20, 8]})
    table = Table.from_microdata(data, "a", measure="v")
    assert flagged(table, PPercent(10)) == []
    assert len(flagged(table, PPercent(10, coalition=2))) == 2


def test_holdings_can_be_judged_instead_of_firms():
    data = pl.DataFrame(
        {"a": ["x"] * 4, "v": [30, 30, 30, 10], "firm": [1, 2, 3, 4], "holding": [1, 1, 1, 2]}
    )
    table = Table.from_microdata(data, "a", measure="v", contributor="firm")
    assert flagged(table, Dominance(1, 85)) == []
    assert len(flagged(table, Dominance(1, 85, contributor="holding"))) == 2
    assert len(flagged(table, MinimumContributors(3, contributor="holding"))) == 2
    assert flagged(table, MinimumContributors(3)) == []


def test_records_without_a_contributor_stand_for_themselves():
    data = pl.DataFrame({"a": ["x"] * 4, "v": [1, 1, 1, 1], "firm": ["f", "f", None, None]})
    table = Table.from_microdata(data, "a", measure="v", contributor="firm")
    assert table.cells["contributors"].to_list() == [3, 3]
    assert table.contributions(1).top(1).tolist() == [2.0, 2.0]


def test_thresholds_hit_small_cells_and_zeros_only_where_asked():
    data = pl.DataFrame({"a": ["x", "x", "x", "y", "y", "z", "u"], "n": [1, 1, 1, 1, 1, 1, 0]})
    table = Table.from_microdata(data, "a", count="n")
    assert flagged(table, Threshold(3)) == [("y",), ("z",)]
    assert flagged(table, Threshold.up_to(3)) == [("x",), ("y",), ("z",)]
    assert flagged(table, Threshold(2, zeros=True)) == [("u",), ("z",)]
    assert flagged(table, Zeros()) == [("u",)]
    assert flagged(table, Ones()) == [("z",)]
    both = primary(table, Ones(), Threshold(3)).cells
    assert both.filter(a="z")["rule"].item() == "ones + threshold(3)"
    assert primary(primary(table, Ones()), Threshold(3)).cells["rule"].to_list() == both["rule"].to_list()
    assert flagged(table, Threshold(3), safe=pl.DataFrame({"a": ["y"]})) == [("z",)]


def test_a_threshold_can_count_weights_or_contributors():
    data = firms()
    table = Table.from_microdata(data, "region*sector", weight="w", contributor="firm")
    for of in ("weighted", "contributors"):
        few = table.cells.filter(pl.col(of) < 5).height
        assert len(flagged(table, Threshold(5, of=of))) == few


def test_a_waiver_opens_a_cell_only_where_all_have_signed():
    data = pl.DataFrame(
        {
            "a": ["x", "x", "y", "y", "z", "z", "z"],
            "firm": [1, 2, 3, 4, 5, 6, 7],
            "signed": [True, True, True, False, False, False, None],
        }
    )
    table = Table.from_microdata(data, "a", contributor="firm")
    assert flagged(table, MinimumContributors(3)) == [("x",), ("y",)]
    assert flagged(table, MinimumContributors(3, waiver="signed")) == [("y",)]
    assert flagged(table, MinimumContributors(4, waiver="signed")) == [("y",), ("z",)]


def test_a_request_is_granted_where_the_largest_asks_and_is_large_enough():
    data = pl.DataFrame(
        {
            "a": ["x"] * 2 + ["y"] * 2 + ["z"] * 2 + ["u"] * 2,
            "v": [80, 20, 80, 20, 60, 40, 60, 40],
            "asks": ["1", "0", "0", "1", "1", "0", "2", "0"],
        }
    )
    table = Table.from_microdata(data, "a", measure="v")
    assert flagged(table, RequestRule("asks", {"1": 70, "2": 50})) == [("u",), ("x",)]
    assert flagged(table, RequestRule("asks", {"9": 70})) == []


def test_group_disclosure_and_k_disclosure_find_who_gives_away_the_rest():
    data = pl.DataFrame(
        {
            "place": ["a"] * 5 + ["b"] * 5 + ["c"] * 5,
            "ill": ["y"] * 5 + ["y"] * 4 + ["n"] + ["y"] * 3 + ["n"] * 2,
        }
    )
    table = Table.from_microdata(data, "place*ill")
    assert flagged(table, GroupDisclosure(["ill"])) == [("a", "y")]
    assert flagged(table, GroupDisclosure(["ill"], share=80)) == [("Total", "y"), ("a", "y"), ("b", "y")]
    assert flagged(table, GroupDisclosure(["ill"], share=80, largest=5)) == [("a", "y"), ("b", "y")]
    assert flagged(table, KDisclosure(0, ["ill"])) == [("a", "y")]
    assert flagged(table, KDisclosure(1, ["ill"])) == [("a", "y"), ("b", "y")]
    left = KDisclosure(1, ["ill"]).differences(table)
    assert (left.T @ table.inner["count"].to_numpy()).tolist() == [0, 1]


def test_a_group_of_one_category_gives_nothing_away():
    data = pl.DataFrame({"region": ["a", "b"], "county": ["X", "X"]})
    table = Table.from_microdata(data, "region", hierarchies={"region": "county"})
    assert flagged(table, GroupDisclosure()) == []


def test_ones_own_conditions_and_listed_cells():
    table = Table.from_microdata(firms(), "region*sector", measure="turnover")
    assert flagged(table, Custom(pl.col("turnover") < 0)) == []
    assert len(flagged(table, Custom(lambda t: t.cells["level"] == 0))) == 1
    assert flagged(table, Listed(pl.DataFrame({"region": ["a"]}))) == [("a", "Total")]
    assert flagged(table, Listed([0])) == [("Total", "Total")]
    with pytest.raises(ParameterError, match="does not have"):
        primary(table, Listed(pl.DataFrame({"region": ["zz"]})))
    with pytest.raises(ParameterError, match="cannot be evaluated"):
        primary(table, Custom(pl.col("nowhere") > 1))
    with pytest.raises(ParameterError, match="judged 1 cells"):
        primary(table, Custom(lambda t: [True]))


def test_protection_levels_are_what_the_rules_lack():
    data = pl.DataFrame({"a": ["x"] * 3, "v": [90.0, 8.0, 2.0]})
    table = Table.from_microdata(data, "a", measure="v")
    assert primary(table, PPercent(10)).cells["protection"][1] == pytest.approx(9 - 2)
    assert primary(table, Dominance(1, 80)).cells["protection"][1] == pytest.approx(90 / 0.8 - 100)
    assert primary(table, Threshold(5, safety=20)).cells["protection"][1] == pytest.approx(20)


def test_largest_contributions_of_an_aggregated_file_are_enough_for_dominance():
    cells = pl.DataFrame(
        {"a": ["x", "y", "Total"], "n": [3, 4, 7], "v": [100, 100, 200], "max": [90, 30, 90]}
    )
    table = Table.from_cells(cells, ["a"], count="n", measure="v", largest="max")
    assert flagged(table, Dominance(1, 85)) == [("x",)]
    with pytest.raises(ParameterError, match="2 largest"):
        primary(table, PPercent(10))
    with pytest.raises(ParameterError, match="made from cells"):
        primary(table, RequestRule("asks", 50))


@pytest.mark.parametrize(
    "make",
    [
        lambda: PPercent(0.1),
        lambda: Dominance(0, 85),
        lambda: Dominance(1, 101),
        lambda: PQ(20, 10),
        lambda: Threshold(0),
        lambda: KDisclosure(-1),
        lambda: RequestRule("asks", {}),
        lambda: GroupDisclosure(share=0.5),
        lambda: MinimumContributors(0),
    ],
)
def test_parameters_without_sense_are_refused(make):
    with pytest.raises(ParameterError):
        make()


def test_what_is_no_rule_is_refused():
    table = Table.from_microdata(firms(), "region")
    with pytest.raises(ParameterError, match="no rule"):
        primary(table, 3)
    with pytest.raises(ParameterError, match="at least one"):
        primary(table)
    with pytest.raises(ParameterError, match="only counts"):
        primary(table, PPercent(10))


def test_two_rules_of_one_name_both_count():
    table = Table.from_microdata(pl.DataFrame({"place": ["a", "b", "b", "c", "c", "c"]}), "place")
    found = primary(
        table, Custom(pl.col("count") == 1), Custom(pl.col("count") == 2), Threshold(2), Threshold(2)
    )
    assert found.cells.filter("primary")["place"].to_list() == ["a", "b"]
    assert found.cells["rule"].to_list() == [None, "custom + threshold(2)", "custom", None]


def test_a_rule_of_ones_own_that_fails_is_named():
    table = Table.from_microdata(pl.DataFrame({"place": ["a", "a", "b"]}), "place")
    with pytest.raises(ParameterError, match=r"the rule 'custom' ended with an error \(TypeError\)"):
        primary(table, Custom(int))


def test_a_span_of_time_is_a_dimension_as_others_are():
    stays = pl.DataFrame({"stay": [dt.timedelta(days=1), dt.timedelta(days=1), None]})
    assert Table.from_microdata(stays, "stay").cells["count"].to_list() == [3, 2, 1]
