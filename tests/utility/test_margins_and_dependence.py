"""Margins and relations of two files, held against scipy and against what must hold for any data."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from discreet import Microdata
from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.core.randomness import generator
from discreet.utility import dependence, information_loss, margins


def people(rows=300, seed=1, shift=0.0):
    random = generator(seed, "margins")
    x = random.normal(shift, 1, rows)
    return pl.DataFrame(
        {
            "x": x,
            "y": 0.8 * x + 0.6 * random.normal(size=rows),
            "n": random.integers(0, 5, rows),
            "c": pl.Series(["a", "b", "c", None])[random.integers(0, 4, rows)],
            "d": pl.Series(["low", "high"])[(x > 0).astype(int)],
        }
    )


OURS, THEIRS = people(), people(200, 2, 0.2)


def row_of(measure, column):
    return measure.detail["variables"].row(by_predicate=pl.col("column") == column, named=True)


def test_distances_of_numbers_are_those_of_scipy():
    found = margins(Microdata(OURS), Microdata(THEIRS))
    for column in ("x", "n"):
        a, b, row = OURS[column].to_numpy(), THEIRS[column].to_numpy(), row_of(found, column)
        assert row["ks"] == pytest.approx(stats.ks_2samp(a, b).statistic)
        assert row["wasserstein"] == pytest.approx(stats.wasserstein_distance(a, b))
        assert row["energy"] == pytest.approx(stats.energy_distance(a, b))
        assert row["sd_after"] == pytest.approx(b.std(ddof=1))


def test_weights_count_as_that_many_records():
    random = generator(3, "weights")
    times = random.integers(1, 5, OURS.height)
    weighted = OURS.with_columns(w=pl.Series(times, dtype=pl.Float64))
    repeated = OURS[np.repeat(np.arange(OURS.height), times).tolist()]
    found = margins(Microdata(weighted, weight="w"), Microdata(THEIRS))
    plain = margins(Microdata(repeated), Microdata(THEIRS))
    for column in ("x", "c"):
        assert row_of(found, column)["distance"] == pytest.approx(row_of(plain, column)["distance"])
    assert row_of(found, "x")["mean_before"] == pytest.approx(row_of(plain, "x")["mean_before"])


def test_identical_files_have_no_distance_and_all_means_inside():
    found = margins(Microdata(OURS), Microdata(OURS.reverse()))
    assert found.value == 0
    assert found.figures["share_means_inside"] == found.figures["share_quantiles_inside"] == 1
    relations = dependence(Microdata(OURS), Microdata(OURS.reverse()))
    assert relations.figures["largest_change"] == pytest.approx(0, abs=1e-12)


def test_lost_and_invented_levels_are_counted_with_their_shares():
    ours = pl.DataFrame({"marital": ["1"] * 55 + ["2"] * 45, "race": ["1"] * 86 + ["2"] * 14})
    theirs = pl.DataFrame({"marital": ["2"] * 100, "race": ["2"] * 90 + ["3"] * 10})
    found = margins(Microdata(ours), Microdata(theirs))
    assert found.figures["lost_share"] == pytest.approx(1.41)
    assert (found.figures["lost_levels"], found.figures["invented_levels"]) == (2, 1)
    assert found.detail["levels"].filter("lost")["level"].to_list() == ["1", "1"]


def test_the_gini_index_is_that_of_its_definition():
    pay = np.array([1.0, 2.0, 2.0, 10.0])
    expected = np.abs(pay[:, None] - pay).mean() / (2 * pay.mean())
    frame = Microdata(pl.DataFrame({"pay": pay}))
    assert row_of(margins(frame, frame), "pay")["gini_before"] == pytest.approx(expected)


def test_a_p_value_is_given_only_to_who_says_the_files_are_independent():
    plain = margins(Microdata(OURS), Microdata(THEIRS), columns="x")
    assert row_of(plain, "x")["ks_p_value"] is None
    assert plain.parameters["inference_valid"] is False
    said = margins(Microdata(OURS), Microdata(THEIRS), columns="x", assume_independent=True)
    expected = stats.ks_2samp(OURS["x"], THEIRS["x"], method="asymp").pvalue
    assert row_of(said, "x")["ks_p_value"] == pytest.approx(expected, abs=0.03)


def test_missing_shares_and_ranges_are_compared():
    ours = pl.DataFrame({"x": [0.0, 1.0, 2.0, None]})
    theirs = pl.DataFrame({"x": [1.0, 2.0, 4.0, 5.0]})
    row = row_of(margins(Microdata(ours), Microdata(theirs)), "x")
    assert (row["missing_before"], row["missing_after"]) == (0.25, 0)
    assert (row["outside_range"], row["range_coverage"]) == (0.5, 0.5)


@settings(max_examples=examples(15), deadline=None)
@given(st.integers(0, 10**6))
def test_order_of_rows_and_names_of_levels_change_nothing(seed):
    random = generator(seed, "order")
    shuffled = THEIRS[random.permutation(THEIRS.height).tolist()]
    renamed = [t.with_columns(pl.col("c").replace({"a": "z", "c": "0"})) for t in (OURS, shuffled)]
    for measure in (margins, dependence):
        plain = measure(Microdata(OURS), Microdata(THEIRS)).figures
        other = measure(*map(Microdata, renamed)).figures
        assert {k: pytest.approx(v) for k, v in plain.items() if v is not None} == {
            k: v for k, v in other.items() if v is not None
        }


def test_correlations_are_those_of_scipy():
    found = dependence(Microdata(OURS), Microdata(THEIRS)).detail["pairs"]
    row = found.row(by_predicate=(pl.col("column") == "x") & (pl.col("other") == "y"), named=True)
    assert row["pearson_before"] == pytest.approx(stats.pearsonr(OURS["x"], OURS["y"]).statistic)
    assert row["spearman_after"] == pytest.approx(stats.spearmanr(THEIRS["x"], THEIRS["y"]).statistic)


def test_cramers_v_is_that_of_scipy():
    found = dependence(Microdata(OURS), Microdata(THEIRS)).detail["pairs"]
    row = found.row(by_predicate=(pl.col("column") == "c") & (pl.col("other") == "d"), named=True)
    table = OURS.with_columns(pl.col("c").fill_null("-")).pivot(
        "d", index="c", values="x", aggregate_function="len"
    )
    expected = stats.contingency.association(table.drop("c").to_numpy(), method="cramer")
    assert row["before"] == pytest.approx(expected)


def test_the_correlation_ratio_of_the_worked_example():
    groups = [(45, 70, 29, 15, 21), (40, 20, 30, 42), (65, 95, 80, 70, 85, 73)]
    frame = pl.DataFrame(
        {
            "score": [float(x) for group in groups for x in group],
            "subject": [name for name, group in zip("abc", groups, strict=True) for _ in group],
        }
    )
    found = dependence(Microdata(frame), Microdata(frame))
    assert found.detail["pairs"]["before"].to_list() == pytest.approx([0.838641], abs=1e-6)


def test_theils_u_is_given_in_both_directions():
    counts = {("a", "x"): 20, ("a", "y"): 5, ("b", "x"): 5, ("b", "y"): 20, ("c", "x"): 10, ("c", "y"): 10}
    rows = [pair for pair, many in counts.items() for _ in range(many)]
    frame = Microdata(pl.DataFrame(rows, schema=["row", "col"], orient="row"))
    found = dependence(frame, frame).detail["theils_u"]
    assert found["before"].to_list() == pytest.approx([0.125917, 0.198623], abs=1e-6)


def test_the_matrices_are_symmetric_and_their_difference_has_the_frobenius_norm():
    found = dependence(Microdata(OURS), Microdata(THEIRS))
    matrix = found.detail["difference"].drop("column").to_numpy()
    assert np.allclose(matrix, matrix.T)
    assert np.sqrt((matrix**2).sum()) == pytest.approx(found.figures["frobenius"])


def test_noise_shrinks_a_correlation_by_the_root_of_the_reliabilities():
    random = generator(9, "noise")
    x = random.normal(size=20_000)
    ours = pl.DataFrame({"x": x, "y": 0.8 * x + 0.6 * random.normal(size=20_000)})
    theirs = ours.with_columns(pl.col("x") + pl.Series(random.normal(size=20_000)))
    found = dependence(Microdata(ours), Microdata(theirs))
    row = found.detail["pairs"].row(0, named=True)
    assert row["after"] == pytest.approx(row["before"] * np.sqrt(0.5), abs=0.02)


@pytest.mark.parametrize("measure", [margins, dependence])
def test_copies_are_averaged(measure):
    copies = [Microdata(people(200, seed)) for seed in (2, 3)]
    whole = measure(Microdata(OURS), copies)
    assert whole.figures["copies"] == whole.detail["copies"].height == 2


@pytest.mark.parametrize("measure", [margins, dependence])
def test_duckdb_gives_the_same_answer(measure):
    duckdb = pytest.importorskip("duckdb")
    ours, theirs = (Microdata(duckdb.connect().from_arrow(table.to_arrow())) for table in (OURS, THEIRS))
    expected = measure(Microdata(OURS), Microdata(THEIRS)).figures
    for name, value in measure(ours, theirs).figures.items():
        assert value == (None if expected[name] is None else pytest.approx(expected[name], abs=1e-12)), name


def test_bad_input_is_refused():
    ours = Microdata(OURS)
    empty = Microdata(pl.DataFrame({"x": pl.Series([None, None], dtype=pl.Float64)}))
    with pytest.raises(InputError, match="no values in either"):
        margins(empty, empty)
    endless = Microdata(pl.DataFrame({"x": [1.0, float("inf")]}))
    with pytest.raises(ColumnError, match="infinite"):
        margins(endless, endless)
    with pytest.raises(ParameterError, match="quantiles"):
        margins(ours, ours, quantiles=[2])
    with pytest.raises(ParameterError, match="two columns"):
        dependence(ours, ours, columns="x")
    with pytest.raises(ParameterError, match="correlation"):
        dependence(ours, ours, correlation="kendall")


def test_bins_of_whole_numbers_hold_equally_many_of_them_so_that_no_comb_is_drawn():
    months = pl.DataFrame({"month": [1 + i % 12 for i in range(240)]})
    shown = margins(Microdata(months), Microdata(months)).detail["histograms"]
    assert shown.height == 12
    assert shown["original"].n_unique() == 1


def test_pairs_say_how_many_records_know_both_columns():
    frame = pl.DataFrame({"a": [1.0, 2, None, 4], "b": [2.0, None, 3, 5]})
    row = dependence(Microdata(frame), Microdata(frame)).detail["pairs"].row(0, named=True)
    assert (row["known_before"], row["known_after"]) == (2, 2)


def heavy_tailed(seed, rows=300, related=True):
    rng = np.random.default_rng(seed)
    size = rng.normal(2, 1.6, rows)
    own = np.exp(size if related else rng.permutation(size)) * rng.lognormal(11, 0.5, rows)
    return pl.DataFrame(
        {"staff": np.exp(size).round() + 1, "sold": own, "place": rng.choice(["a", "b"], rows)}
    )


def test_files_of_other_people_differ_by_no_more_than_chance_and_lost_relations_by_more():
    beyond = [
        dependence(Microdata(heavy_tailed(seed)), Microdata(heavy_tailed(100 + seed)), samples=True)
        for seed in range(20)
    ]
    assert sum(found.value > 0.05 for found in beyond) >= 5
    assert sum(found.figures["beyond_chance"] > 0.05 for found in beyond) <= 1
    torn = dependence(
        Microdata(heavy_tailed(1, 3_000)), Microdata(heavy_tailed(2, 3_000, related=False)), samples=True
    )
    assert torn.figures["beyond_chance"] > 0.1


@pytest.mark.parametrize(
    ("measure", "given"),
    [(dependence, {}), (information_loss, {"aligned": False})],
    ids=["relations", "columns"],
)
def test_what_chance_does_depends_on_no_order_and_the_same_people_are_granted_none(measure, given):
    before, after = heavy_tailed(1), heavy_tailed(2)
    found = measure(Microdata(before), Microdata(after), samples=True, **given)
    turned = measure(
        Microdata(before.sample(fraction=1, shuffle=True, seed=1)),
        Microdata(after.select(reversed(after.columns))),
        samples=True,
        **given,
    )
    assert turned.figures["by_chance"] == pytest.approx(found.figures["by_chance"])
    assert found.figures["by_chance"] > 0
    same = measure(Microdata(before), Microdata(before.with_columns(sold=pl.col("sold").sort())))
    assert same.figures["beyond_chance"] == same.value > 0
