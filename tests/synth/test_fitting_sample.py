"""Learning from a stated sample of a file larger than memory."""

import contextlib

import polars as pl
import pytest
from engines.agreement import in_kind
from engines.test_row_wise import nothing_collected

from discreet import Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.synth import Independent, Sequential, fit_on_sample, fitting_sample


def people(rows: int = 3000) -> pl.DataFrame:
    return pl.DataFrame(
        {"id": range(rows), "home": [i // 3 for i in range(rows)], "sex": ["f", "m", "m"] * (rows // 3)}
    )


@pytest.mark.parametrize("kind", ["polars-lazy", "duckdb", "pandas"])
def test_the_sample_is_the_same_on_every_engine(kind):
    expected = fitting_sample(Microdata(people()), rows=150, seed=3)
    found = fitting_sample(Microdata(in_kind(people(), kind)), rows=150, seed=3)
    assert found.data.frame["id"].to_list() == expected.data.frame["id"].to_list()
    # 150 expected, 5 standard deviations of 12.
    assert 90 < found.rows < 210


@pytest.mark.parametrize("kind", ["polars-lazy", "duckdb"])
def test_no_more_than_the_sample_is_collected(kind):
    data = Microdata(in_kind(people(), kind))
    with nothing_collected():
        fitting_sample(data, rows=120, seed=1)


def test_households_are_drawn_whole_and_it_is_said():
    found = fitting_sample(Microdata(people().lazy(), household="home"), rows=300, seed=1)
    assert found.data.frame["home"].value_counts()["count"].to_list() == [3] * (found.rows // 3)
    assert "all of a 'home' or none" in found.meaning


def test_the_size_follows_from_the_memory_and_the_report_says_what_is_lost():
    small, large = (fitting_sample(Microdata(people().lazy()), memory=m, seed=1) for m in (1e-4, 1))
    assert large.is_whole
    assert small.rows < 1200
    assert "random sample" in small.meaning


def test_a_model_of_a_sample_draws_as_many_records_as_the_file_has():
    fitted = fit_on_sample(Independent(), Microdata(people().lazy()), rows=300, seed=1)
    assert fitted.rows == 3000
    assert "of 3,000 records" in repr(fitted)
    with pytest.raises(ParameterError, match="not both"):
        fit_on_sample(Independent(), Microdata(people()), rows=300, memory=1)


def survey(rows: int = 6000) -> pl.DataFrame:
    """Young people weigh little and old ones much; one stands for a town."""
    return pl.DataFrame(
        {
            "id": range(rows),
            "age": ["old" if i % 3 == 0 else "young" for i in range(rows)],
            "sex": ["f" if i % 7 < 3 else "m" for i in range(rows)],
            "w": [5000.0 if i == 17 else 8.0 if i % 3 == 0 else 1.0 for i in range(rows)],
        }
    )


@pytest.mark.parametrize("kind", ["polars-lazy", "duckdb", "pandas"])
def test_a_sample_in_proportion_to_the_weight_is_the_same_on_every_engine(kind):
    expected = fitting_sample(Microdata(survey(), weight="w"), rows=400, design="weight", seed=3)
    data = Microdata(in_kind(survey(), kind), weight="w")
    with nothing_collected(most=600) if kind != "pandas" else contextlib.nullcontext():
        found = fitting_sample(data, rows=400, design="weight", seed=3)
    table, other = (pl.DataFrame(each.data.frame) for each in (found, expected))
    assert table["id"].to_list() == other["id"].to_list()
    assert table["w"].to_list() == pytest.approx(other["w"].to_list())
    assert 300 < found.rows < 500


def test_the_weights_of_the_sample_stand_for_the_same_population():
    table = survey()
    found = fitting_sample(Microdata(table.lazy(), weight="w"), rows=400, design="weight", seed=3)
    drawn = found.data.frame
    assert drawn["w"].sum() == pytest.approx(table["w"].sum())
    assert found.certain == 1
    assert 17 in drawn["id"].to_list()
    light = drawn.filter(pl.col("id") != 17)["w"]
    assert light.max() == pytest.approx(light.min())
    shares = [each.group_by("age").agg(pl.col("w").sum()).sort("age")["w"] for each in (table, drawn)]
    # About 400 records of equal weight: a share is off by 0.025 at most, one standard deviation.
    assert (shares[1] / drawn["w"].sum()).to_list() == pytest.approx(
        (shares[0] / table["w"].sum()).to_list(), abs=0.1
    )
    assert "in proportion to 'w' (1 that weigh most for certain)" in found.meaning
    assert "weights were divided by the chances" in found.meaning


def test_chances_are_right_on_average_over_many_seeds():
    table = survey(900)
    data = Microdata(table.lazy(), weight="w")
    estimates = []
    for seed in range(60):
        drawn = fitting_sample(data, rows=90, design="weight", seed=seed).data.frame
        estimates.append(drawn.filter(pl.col("age") == "old")["w"].sum() / drawn["w"].sum())
    truth = table.filter(pl.col("age") == "old")["w"].sum() / table["w"].sum()
    assert sum(estimates) / 60 == pytest.approx(truth, abs=0.01)


def test_a_synthesizer_of_the_population_is_fitted_to_a_sample_by_weight():
    data = Microdata(survey().drop("id").lazy(), weight="w")
    fitted = fit_on_sample(Sequential(weights="regenerate"), data, rows=1000, seed=1)
    assert "in proportion to 'w'" in fitted.learned_from
    made = fitted.sample(seed=1).frame
    assert made["w"].sum() == pytest.approx(survey()["w"].sum())
    share = made.filter(pl.col("age") == "old")["w"].sum() / made["w"].sum()
    truth = survey().filter(pl.col("age") == "old")["w"].sum() / survey()["w"].sum()
    assert share == pytest.approx(truth, abs=0.05)


def test_weights_that_are_a_column_like_others_are_drawn_with_equal_chances():
    data = Microdata(survey().drop("id").lazy(), weight="w")
    for weights in ("synthesize", "ignore"):
        fitted = fit_on_sample(Sequential(weights=weights), data, rows=1000, seed=1)
        assert "equal chances." in fitted.learned_from
    assert (
        "equal chances." in fit_on_sample(Independent(weights="ignore"), data, rows=1000, seed=1).learned_from
    )


def test_households_of_a_survey_are_drawn_whole_and_their_weights_divided():
    table = survey().with_columns(home=pl.col("id") // 3)
    found = fitting_sample(
        Microdata(table.lazy(), weight="w", household="home"), rows=900, design="weight", seed=1
    )
    assert found.data.frame["w"].sum() == pytest.approx(table["w"].sum())
    assert found.data.frame["home"].value_counts()["count"].to_list() == [3] * (found.rows // 3)
    assert "equal chances, all of a 'home' or none; weights were divided" in found.meaning


@pytest.mark.parametrize("bad", [None, -1.0, float("inf")])
def test_weights_that_are_none_are_refused(bad):
    table = survey(300).with_columns(w=pl.when(pl.col("id") == 5).then(bad).otherwise("w"))
    with pytest.raises(ColumnError, match="weight 'w'"):
        fitting_sample(Microdata(table.lazy(), weight="w"), rows=90, design="weight")


def test_a_design_by_weight_needs_a_weight_and_a_synthesizer_that_uses_it():
    with pytest.raises(ParameterError, match="no column of that role"):
        fitting_sample(Microdata(survey()), rows=90, design="weight")
    with pytest.raises(ParameterError, match="synthesizer that uses it"):
        fit_on_sample(
            Independent(weights="ignore"), Microdata(survey(), weight="w"), rows=90, design="weight"
        )


def surveyed_in_strata(rows: int = 9000) -> pl.DataFrame:
    """Nearly all live in one region; a hundred in a small one, five on an island."""
    region = ["main"] * (rows - 105) + ["small"] * 100 + ["island"] * 5
    weights = [1.0 + i % 7 for i in range(rows)]
    return pl.DataFrame(
        {"id": range(rows), "region": region, "w": weights, "x": [i % 13 for i in range(rows)]}
    )


@pytest.mark.parametrize("kind", ["polars-lazy", "duckdb", "pandas"])
def test_every_stratum_is_in_a_weighted_sample_and_its_weights_stand_for_it(kind):
    table = surveyed_in_strata()
    roles = {"weight": "w", "strata": "region"}
    found = fitting_sample(Microdata(in_kind(table, kind), **roles), rows=450, design="weight", seed=2)
    sample = (
        found.data.frame if isinstance(found.data.frame, pl.DataFrame) else pl.from_pandas(found.data.frame)
    )
    drawn = dict(sample.group_by("region").len().iter_rows())
    assert drawn["island"] == 5
    # About 20 of 100 are expected, 5 standard deviations of 4.
    assert drawn["small"] > 0
    assert 350 < found.rows < 600
    ours, theirs = (
        dict(each.group_by("region").agg(pl.col("w").sum()).iter_rows()) for each in (sample, table)
    )
    assert ours == pytest.approx(theirs)
    assert "Each of the 3 strata had chances of about 20 records at least" in found.meaning
    again = fitting_sample(Microdata(table, **roles), rows=450, design="weight", seed=2)
    assert sample["id"].to_list() == again.data.frame["id"].to_list()


def test_strata_that_an_equal_sample_lost_are_counted_aloud():
    data = Microdata(surveyed_in_strata().lazy(), strata="region")
    found = fitting_sample(data, rows=100, seed=1)
    there = found.data.frame["region"].n_unique()
    assert found.strata_lost == 3 - there > 0
    assert "which had no say in the draw" in found.meaning
    assert f"{3 - there} of them have no record in the sample" in found.meaning
