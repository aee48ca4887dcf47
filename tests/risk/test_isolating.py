"""Isolation: blind guesses, the gain of a release, noisy counts, and records rebuilt from tables."""

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, dlaplace, norm

from discreet import Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.risk.isolation import IDENTIFYING, ISOLATING, NONE, UNDECIDED, isolation, isolation_of_counts
from discreet.risk.overlapping_tables import overlapping_tables
from discreet.risk.singling_out import (
    best_noisy_guess,
    blind_isolations,
    guesses_needed,
    isolation_chance,
    partition_bound,
    partition_isolations,
)

FILE = pl.DataFrame({"age": [30] * 60 + [40] * 39 + [99], "sex": ["f", "m"] * 50})
TOWN = pl.DataFrame({"age": [30] * 6000 + [40] * 3990 + [99] * 10, "sex": ["f", "m"] * 5000})


def file(**roles):
    return Microdata(FILE, keys=["age", "sex"], **roles)


@settings(deadline=None)
@given(st.integers(1, 200), st.floats(0, 1))
def test_the_chance_to_isolate_is_the_binomial_chance_of_exactly_one(n, p):
    assert isolation_chance(p, n).item() == pytest.approx(n * p * (1 - p) ** (n - 1), abs=1e-12)


@settings(deadline=None)
@given(st.integers(1, 60), st.integers(1, 200))
def test_no_even_guess_beats_the_best_one(n, k):
    weights = np.linspace(0, 1 / k, 50)
    assert blind_isolations(n, k) >= (k * isolation_chance(weights, n)).max() - 1e-12


@settings(deadline=None)
@given(st.integers(2, 1000), st.floats(0.01, 0.99))
def test_the_guesses_needed_isolate_the_share_asked_for(n, share):
    k = guesses_needed(n, share)
    p = 1 / max(k, n)
    assert k * isolation_chance(p, n).item() / n == pytest.approx(share, rel=1e-9)


@settings(deadline=None)
@given(st.lists(st.floats(0.5, 1.5), min_size=2, max_size=30), st.integers(1, 40))
def test_the_bound_lies_below_the_exact_partition(parts, n):
    p = np.array(parts) / sum(parts)
    exact = partition_isolations(p, n)
    if n >= len(p):
        assert partition_bound(float(p.std()), len(p), n) <= exact + 1e-9


def test_one_record_is_isolated_for_certain():
    assert (blind_isolations(1), guesses_needed(1, 1.0)) == (1.0, 1)
    assert guesses_needed(5, 1.0) == float("inf")


def test_the_formulas_hold_for_a_billion_records_and_tiny_probabilities():
    assert blind_isolations(10**9) == pytest.approx(np.exp(-1), rel=1e-8)
    assert isolation_chance(1e-15, 10**9).item() == pytest.approx(1e-6, rel=1e-5)


def test_a_rare_cell_gains_and_a_common_one_does_not():
    found = isolation(file(), population=Microdata(TOWN))
    cells = found.detail["cells"]
    rare = cells.filter(pl.col("age") == 99).row(0, named=True)
    assert rare["P_A"] == pytest.approx(5 / 10_000)
    assert rare["flag"] == ISOLATING
    assert set(cells.filter(pl.col("age") != 99)["flag"]) == {NONE}
    assert found.figures["population_size"] == 10_000
    assert found.figures["max_gain_at_half"] > found.figures["max_gain"] > found.figures["max_gain_at_double"]
    assert found.figures["expected_isolations"] == pytest.approx(cells["pr_isolate_given_release"].sum())
    assert found.detail["records"].height == 100


def test_weights_of_the_population_file_count_as_people():
    weighted = TOWN.group_by("age", "sex").len("w")
    plain = isolation(file(), population=Microdata(TOWN))
    by_weight = isolation(file(), population=Microdata(weighted, weight="w"))
    assert by_weight.figures == plain.figures


def test_a_cell_that_the_population_lacks_gets_half_a_person_and_a_caveat():
    found = isolation(file(), population=Microdata(TOWN.with_columns(pl.col("age").replace(99, 98))))
    cell = found.detail["cells"].filter(pl.col("age") == 99)
    assert cell["P_A"].item() == pytest.approx(0.5 / 10_001)
    assert any("half a person" in caveat for caveat in found.caveats)


def test_known_membership_flags_on_the_chance_alone():
    unknown = isolation(file(), factor=2)
    known = isolation(file(), membership_known=True)
    assert unknown.figures["flagged_cells"] == 0
    assert set(unknown.detail["cells"]["flag"]) == {NONE, UNDECIDED}
    flagged = known.detail["cells"].filter(pl.col("flag") == IDENTIFYING)
    assert flagged["m"].to_list() == [1]
    assert known.detail["cells"]["pr_population_unique"].null_count() == known.figures["cells"]


def test_given_probabilities_are_those_of_the_records():
    table = FILE.with_columns(p=pl.len().over("age", "sex") / 1e6)
    found = isolation(Microdata(table, keys=["age", "sex"]), probability="p", population_size=10**6)
    assert found.detail["cells"].sort("m")["P_A"].to_list()[0] == pytest.approx(1e-6)
    with pytest.raises(ColumnError, match="several values within"):
        isolation(Microdata(table.with_row_index("r"), keys=["age", "sex"]), probability="r")


def test_pandas_in_gives_pandas_out_with_the_same_figures():
    pytest.importorskip("pandas")
    ours = isolation(file(), population_size=10_000)
    theirs = isolation(Microdata(FILE.to_pandas(), keys=["age", "sex"]), population_size=10_000)
    assert ours.figures == theirs.figures
    assert type(theirs.detail["cells"]).__module__.startswith("pandas")


def test_an_empty_cell_has_nothing_to_isolate():
    found = isolation_of_counts([0, 1], [0.0, 0.1], records=10).detail["cells"]
    assert found["gain"].to_list()[0] == 0


@settings(deadline=None)
@given(st.integers(1, 60), st.floats(1e-6, 0.99))
def test_noise_that_is_always_zero_gives_the_exact_gain(m, p):
    exact = isolation_of_counts([m], [p], records=100).detail["cells"]
    noisy = isolation_of_counts([m], [p], records=100, noise=lambda x: (x == 0) * 1.0).detail["cells"]
    assert noisy["pr_isolate_given_release"].item() == pytest.approx(
        exact["pr_isolate_given_release"].item(), abs=1e-9
    )


@pytest.mark.parametrize("noise", [dlaplace(0.5), norm(scale=2)])
def test_the_best_noisy_guess_beats_every_weight_of_a_fine_grid(noise):
    m, p, n = np.array([0, 1, 3, 12, -2]), np.array([0.01, 0.002, 0.05, 0.02, 0.01]), 300
    _, chance = best_noisy_guess(m, p, n, noise)
    h = np.arange(n + 1)
    logs = binom.logpmf(h, n, p[:, None])
    weights = np.exp(logs) * np.exp(
        noise.logpmf(m[:, None] - h) if hasattr(noise.dist, "_logpmf") else noise.logpdf(m[:, None] - h)
    )
    weights /= weights.sum(axis=1, keepdims=True)
    grid = np.linspace(1e-3, 1, 2000)
    alone = h * grid[:, None] * (1 - grid[:, None]) ** np.maximum(h - 1, 0)
    best = (alone @ weights.T).max(axis=0)
    np.testing.assert_allclose(chance, best, rtol=1e-5)
    assert (chance >= best - 1e-12).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: blind_isolations(0), "n must be"),
        (lambda: blind_isolations(5, 0), "k must be"),
        (lambda: guesses_needed(5, 1.5), "share must be"),
        (lambda: isolation_chance(1.2, 5), "between 0 and 1"),
        (lambda: partition_isolations([0.5, 0.4], 5), "add up to 1"),
        (lambda: partition_isolations([0.5, 0.5], 5, 3), "larger than the number of cells"),
        (lambda: isolation_of_counts([1], [0.0], records=5), "Impossible cell"),
        (lambda: isolation_of_counts([1.5], [0.1], records=5), "whole numbers"),
        (lambda: isolation_of_counts([1], [0.1], records=5, population_size=4), "smaller than the file"),
        (lambda: isolation_of_counts([1], [0.1], records=5, noise=3), "frozen SciPy"),
        (lambda: isolation_of_counts([1, 2], [0.1], records=5), "one each a cell"),
        (lambda: isolation(file(), missing="wildcard"), "missing must be 'category' or 'drop'"),
        (lambda: isolation(file(), specificity=0), "specificity must be a number above 0"),
        (lambda: overlapping_tables(file(), max_order=0), "max_order"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(call, message):
    with pytest.raises(ParameterError, match=message):
        call()


def test_files_coded_differently_are_refused_until_a_recoding_is_given():
    town = TOWN.with_columns(pl.col("sex").replace({"f": "1", "m": "2"}))
    with pytest.raises(ColumnError, match="no value in common"):
        isolation(file(), population=Microdata(town))
    found = isolation(file(), population=Microdata(town), recoding={"sex": {"1": "f", "2": "m"}})
    assert found.figures == isolation(file(), population=Microdata(TOWN)).figures
    with pytest.raises(ColumnError, match="no column 'sex'"):
        isolation(file(), population=Microdata(TOWN.drop("sex")))


records = st.lists(st.tuples(*[st.integers(0, 2)] * 4), min_size=1, max_size=25)


@settings(deadline=None)
@given(records, st.integers(1, 4))
def test_the_records_rebuilt_are_those_unique_on_fewer_attributes_than_a_table_has(rows, order):
    table = pl.DataFrame(rows, schema=list("abcd"), orient="row")
    found = overlapping_tables(Microdata(table, keys=list("abcd")), max_order=order)
    largest = order if order == 4 else order - 1
    sets = [s for size in range(1, largest + 1) for s in combinations(range(4), size)]
    alone = {row for row in rows for s in sets if sum(all(r[i] == row[i] for i in s) for r in rows) == 1}
    assert found.figures["records_recovered"] == len(alone)
    assert set(found.detail["records"].select(list("abcd")).rows()) == alone


def test_only_the_named_tables_are_read_and_suppressed_cells_are_not():
    table = pl.DataFrame({"a": [1, 1, 2], "b": [1, 2, 2], "c": [1, 2, 3]})
    data = Microdata(table, keys=["a", "b", "c"])
    pair = overlapping_tables(data, tables=[["a", "b"]])
    assert (pair.figures["records_recovered"], pair.figures["isolating_cells"]) == (0, 2)
    chain = overlapping_tables(data, tables=[["a", "b"], ["a", "c"]])
    assert chain.figures["records_recovered"] == 1
    assert overlapping_tables(data, minimum=3).figures["records_recovered"] == 0
    with pytest.raises(ColumnError, match="no key 'd'"):
        overlapping_tables(data, tables=[["a", "d"]])
