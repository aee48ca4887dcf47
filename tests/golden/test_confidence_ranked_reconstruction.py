"""Worked examples of methods/confidence-ranked-reconstruction.md (section 5) and of census-reconstruction (C1)."""

import polars as pl
import pytest

from discreet import attack

PEOPLE = pl.DataFrame({"x": list("AAAAABBCDE")})
RUNS = ["AAAAABBCFG", "AAAABBBCFE"]
FREQUENCY = {("A",): 9, ("B",): 5, ("C",): 2, ("F",): 2, ("E",): 1, ("G",): 1}


@pytest.fixture(scope="module")
def audit():
    assert {(x,): sum(run.count(x) for run in RUNS) for (x,) in FREQUENCY} == FREQUENCY
    return attack.audit_reconstruction(PEOPLE, FREQUENCY)


def test_figures_of_the_audit(audit):
    assert audit.figures["pearson"] == pytest.approx(0.9499, abs=5e-5)
    assert audit.figures["spearman"] == pytest.approx(0.8944, abs=5e-5)
    assert audit.figures["unique_share"] == pytest.approx(0.3)
    assert audit.figures["top_chance"] == pytest.approx(1 / 5)
    assert audit.figures["top_is_most_common"]
    assert [audit.figures[f"rare_precision_{j}"] for j in (1, 2, 3)] == [0.5, 0.0, 0.0]
    assert audit.figures["invented"] == pytest.approx(0.4)
    assert audit.figures["missed"] == pytest.approx(0.2)


def test_match_rates_take_whole_tie_groups(audit):
    table = audit.detail["match"]
    assert table.select("matched", "ranked").rows() == [(1, 1), (2, 2), (3, 4), (4, 6)]
    assert table["match_rate"].to_list() == pytest.approx([1.0, 1.0, 0.75, 4 / 6])


def test_occurrences_weigh_in_the_authors_notebook(audit):
    weighted = attack.audit_reconstruction(PEOPLE, FREQUENCY, weight="occurrence")
    assert weighted.figures["rare_precision_1"] == audit.figures["rare_precision_1"]


def test_women_of_22_to_24_in_one_block_are_rebuilt_by_arithmetic():
    races = ["White", "Black", "AIAN", "Asian", "NHPI", "Other", "Two or more"]
    schema = {"race": races, "ethnicity": ["NH", "H"]}
    totals = {"White": 44, "Asian": 5, "Other": 1}
    queries = [{"race": race} for race in races]
    answers = [totals.get(race, 0) for race in races]
    queries += [{"race": "White", "ethnicity": "NH"}, {"ethnicity": "H"}]
    answers += [43, 2]
    # No Hispanic Asian lives in the block.
    queries += [{"race": ["Asian", "AIAN", "NHPI"], "ethnicity": "H"}]
    answers += [0]
    found = attack.reconstruct(queries, answers, schema, 50, method="exact")
    assert found.figures["solutions"] == 1
    assert found.figures["certain"] == 1.0
    rebuilt = {row[:2]: row[2] for row in found.detail["ranking"].select("race", "ethnicity", "freq").rows()}
    assert rebuilt == {("White", "NH"): 43, ("White", "H"): 1, ("Asian", "NH"): 5, ("Other", "H"): 1}
