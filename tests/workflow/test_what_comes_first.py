"""What went wrong first: disclosure before utility, and no false alarm from gaps and names that were left out."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata, compare
from discreet.core.findings import Beside
from discreet.core.results import Detail, Measure
from discreet.protect import DropIdentifiers, Plan
from discreet.utility import dependence, information_loss
from discreet.workflow import document_plan
from discreet.workflow.comparison_results import Alignment, findings_of, worst_of


def people(rows=400, seed=1):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "patient": [f"Person {i:05d}" for i in range(rows)],
            "sex": rng.choice(["f", "m"], rows),
            "region": rng.choice(list("abcdef"), rows),
            "job": rng.choice(list("uvwxyz"), rows),
            "pay": rng.normal(100, 10, rows).round(2),
        }
    )


@settings(max_examples=examples(30), deadline=None)
@given(linked=st.floats(0.06, 1), distance=st.floats(0.06, 1), lost=st.floats(0.02, 1))
def test_whatever_is_given_away_stands_before_whatever_is_lost(linked, distance, lost):
    rows = [{"column": "a", "kind": "category", "distance": distance, "lost_share": lost, "lost_levels": 2}]
    measures = {
        "linkage": Measure("linkage", linked, {"linked_share": linked, "guess_share": 0.0}, ""),
        "margins": Measure("margins", distance, {}, "", detail=Detail(variables=lambda: pl.DataFrame(rows))),
    }
    alignment = Alignment(("a",), only_original=("b",))
    given_away = [finding.sentence for finding in findings_of(Beside(measures))["risk"]]
    told = worst_of(measures, alignment, show_values=False).sentences
    assert given_away
    assert list(told[: len(given_away)]) == given_away
    assert "lacks column 'b'" in told[len(given_away)]


@settings(max_examples=examples(10), deadline=None)
@given(share=st.floats(0.05, 0.5), seed=st.integers(0, 1000))
def test_gaps_of_suppression_are_no_relation(share, seed):
    frame = people(seed=seed).drop("patient")
    gone = np.random.default_rng(seed).random(frame.height) < share
    released = frame.with_columns(
        pl.when(pl.lit(gone)).then(None).otherwise(pl.col(name)).alias(name) for name in ("region", "job")
    )
    found = dependence(Microdata(frame), Microdata(released), columns=["region", "job"])
    row = found.detail["pairs"].row(0, named=True)
    # As a level of their own the common gaps would make a V of 0.4 and more out of nothing.
    assert abs(row["difference"]) < 0.15
    assert any("known values" in caveat for caveat in found.caveats)
    told = compare(Microdata(frame), Microdata(released), measures=["margins", "dependence"]).worst.sentences
    assert not any("strengthened" in sentence for sentence in told)


def test_gaps_that_were_there_before_are_levels_as_ever():
    frame = people().with_columns(region=pl.when(pl.col("job") == "u").then(None).otherwise(pl.col("region")))
    found = dependence(Microdata(frame), Microdata(frame), columns=["region", "job"])
    assert found.detail["pairs"]["before"][0] > 0.3
    assert found.value == 0


def test_a_column_of_which_nothing_is_left_is_a_headline():
    frame = people()
    released = frame.with_columns(job=pl.lit(None, dtype=pl.String))
    found = compare(Microdata(frame, identifiers="patient"), Microdata(released), measures=["margins"])
    assert found.worst.sentences[0] == "Nothing is left of 'job': every value was suppressed."
    cost = information_loss(Microdata(frame, identifiers="patient"), Microdata(released))
    assert cost.meaning.startswith("Nothing is left of 'job'. The release has lost")


@pytest.mark.parametrize("roles", [{}, {"identifiers": "patient"}])
def test_a_dropped_identifier_is_no_loss(roles):
    data = Microdata(people(), keys=["sex", "region"], sensitive="pay", **roles)
    released = Microdata(people().drop("patient"))
    found = compare(data, released, measures=["information_loss", "margins"])
    assert found["information_loss"].value == 0
    assert not any("lacks" in sentence for sentence in found.worst.sentences)
    assert any("no loss" in note for note in found.alignment.notes) == (not roles)
    report = document_plan(data, Plan([DropIdentifiers(columns=["patient"])]), "safe-setting", seed=1)
    assert report.cost.value == 0
    assert {check.measure: check.actual for check in report.verdict.checks}["information_loss"] == 0


def test_numbers_of_units_are_no_content_either():
    frame = people().with_columns(house=pl.int_range(pl.len()) // 2)
    data = Microdata(frame, keys=["sex"], household="house", identifiers="patient")
    assert information_loss(data, Microdata(frame.drop("house", "patient"))).value == 0
    as_key = data.with_roles(keys=["sex", "house"])
    assert information_loss(as_key, Microdata(frame.drop("house", "patient"))).value == pytest.approx(0.2)


def test_that_all_is_well_is_no_item_of_what_went_wrong():
    frame = people().drop("patient")
    original = Microdata(frame, keys=["region", "job"])
    found = compare(original, Microdata(frame), aligned=False)
    worst = found.worst
    assert worst.clear
    assert worst.clear not in worst.sentences
    assert f"- {worst.clear}" not in str(found)
    assert worst.clear in str(found)
    assert f"<li>{worst.clear}" not in found._repr_html_()
    lost = compare(original, Microdata(frame.with_columns(job=pl.lit("x"))))
    assert lost.worst.sentences
    assert lost.worst.clear == ""


def test_a_column_that_is_less_precise_is_named_and_nobody_says_that_nothing_differs():
    rng = np.random.default_rng(1)
    frame = people().with_columns(age=pl.Series(rng.integers(18, 90, people().height))).drop("patient", "pay")
    decade = pl.col("age") // 10 * 10
    banded = frame.with_columns(pl.format("{}-{}", decade, decade + 9).alias("age"))
    found = compare(Microdata(frame, keys=["age", "sex"]), Microdata(banded))
    assert found["information_loss"].value > 0
    assert any("'age' has lost" in sentence for sentence in found.worst.sentences)
    assert not any("says what the original says" in sentence for sentence in found.worst.sentences)


def test_nothing_stands_out_is_not_said_where_nobody_asked():
    frame = people(6_000).drop("patient")
    fresh = people(6_000, seed=5).drop("patient")
    worst = compare(Microdata(frame), Microdata(fresh), measures=["margins", "tabular"]).worst
    told = (*worst.sentences, worst.clear)
    assert not any("Nothing stands out" in sentence for sentence in told)
    assert any("no attack was tried" in sentence and "copies of people" in sentence for sentence in told)
    worst = compare(
        Microdata(frame),
        Microdata(fresh),
        holdout=Microdata(people(seed=6).drop("patient")),
        measures=["margins", "near_copies"],
        attacks=True,
    ).worst
    assert not any("tried" in sentence for sentence in (*worst.sentences, worst.clear))


def test_what_an_attack_is_sure_of_comes_before_any_other_weight():
    figures = {"risk_at_least": 0.06, "control_rate": 0.1}
    measures = {
        "membership": Measure("membership", 0.1, figures, "An attacker recognizes people."),
        "linkage": Measure("linkage", 1.0, {"linked_share": 1.0, "guess_share": 0.0}, ""),
    }
    told = worst_of(measures, Alignment(("a",)), show_values=False).sentences
    assert told[0] == "An attacker recognizes people."
    without = {"membership": replace(measures["membership"], figures={"risk_at_least": 0.9})}
    assert worst_of(without, Alignment(("a",)), show_values=False).sentences[-1].startswith("Without people")
