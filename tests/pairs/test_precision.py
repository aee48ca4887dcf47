"""Two files hold the same number when they do so at the precision that both have."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.engine.precision import Grid, agreed_grid, grid_of, on_grid, stored_alike
from discreet.pairs.side_by_side import precise_alike
from discreet.risk import (
    attribution,
    delta_presence,
    disclosure,
    k_map,
    near_copies,
    remove_replicated_uniques,
    replicated_special_uniques,
    replicated_uniques,
)
from discreet.utility.linked_files import same_cells
from discreet.utility.row_novelty import new_rows

SIZES = st.floats(min_value=1e-6, max_value=1e12)
NUMBERS = st.one_of(st.just(0.0), SIZES, SIZES.map(lambda size: -size))


def written(values, digits):
    return [float(f"{value:.{digits}g}") for value in values]


@pytest.mark.parametrize("digits", [3, 7, 12, 14, 15])
@given(values=st.lists(NUMBERS, min_size=1, max_size=30))
def test_digits_are_rounded_as_decimal_arithmetic_does(digits, values):
    rounded = Grid(digits=digits).rounded(np.array(values))
    assert rounded.tolist() == written(values, digits)


@given(values=st.lists(NUMBERS, min_size=1, max_size=30), decimals=st.integers(0, 6))
def test_decimals_are_rounded_as_decimal_arithmetic_does(values, decimals):
    rounded = Grid(decimals=decimals).rounded(np.array(values))
    assert rounded.tolist() == [round(value, decimals) for value in values]


@given(values=st.lists(NUMBERS, min_size=1, max_size=30))
def test_what_is_on_its_own_grid_stays_there(values):
    column = pl.Series(values, dtype=pl.Float64)
    grid = grid_of(column)
    assert on_grid(column, grid).to_list() == pytest.approx(values, rel=0, abs=0)


def test_the_grid_of_a_file_is_seen():
    rng = np.random.default_rng(1)
    values = rng.lognormal(3, 2, 500)
    singles = values.astype(np.float32)
    assert grid_of(pl.Series(values)) == Grid()
    assert grid_of(pl.Series(values.round(2))) == Grid(decimals=2)
    assert grid_of(pl.Series([1, None, 3])) == Grid(decimals=0)
    assert grid_of(pl.Series(written(values, 15))) == Grid(digits=15)
    assert grid_of(pl.Series(written(values, 7))) == Grid(digits=7)
    assert grid_of(pl.Series(singles)) == Grid(single=True)
    assert grid_of(pl.Series([float(str(value)) for value in singles])) == Grid(single=True)
    assert grid_of(pl.Series([None, float("nan")], dtype=pl.Float64)) == Grid(decimals=0)


@pytest.mark.parametrize("how", ["fifteen digits", "single", "single as text", "two decimals", "text"])
def test_a_file_that_another_program_wrote_gives_the_figures_of_the_file_itself(how):
    rng = np.random.default_rng(2)
    bmi = rng.choice(rng.normal(25, 4, 150), 400)
    if how == "two decimals":
        bmi = bmi.round(2)
    ours = pl.DataFrame({"age": rng.integers(20, 60, 400), "bmi": bmi, "ill": rng.choice(["y", "n"], 400)})
    release = ours.sample(fraction=1, with_replacement=True, seed=3)
    changed = {
        "fifteen digits": lambda x: pl.Series(written(x, 15)),
        "single": lambda x: x.cast(pl.Float32),
        "single as text": lambda x: pl.Series([float(str(v)) for v in x.cast(pl.Float32).to_numpy()]),
        "two decimals": lambda x: x.cast(pl.Float32),
        "text": lambda x: pl.Series([f"{v:.15g}" for v in x]),
    }[how](release["bmi"])
    rewritten = release.with_columns(changed.alias("bmi"))
    keyed = Microdata(ours, keys=["age", "bmi"], sensitive="ill")
    aimed = Microdata(ours, keys=["age", "ill"], sensitive="bmi")
    for measure, original in ((replicated_uniques, keyed), (attribution, keyed), (disclosure, aimed)):
        as_it_was, found = (measure(original, Microdata(file)) for file in (release, rewritten))
        assert found.figures == pytest.approx(as_it_was.figures)
        if how != "two decimals":
            assert any("'bmi'" in caveat and "precision" in caveat for caveat in found.caveats)
            assert "bmi" in found.parameters["precision"]
    assert remove_replicated_uniques(keyed, Microdata(rewritten)).log[0].removed_records == (
        remove_replicated_uniques(keyed, Microdata(release)).log[0].removed_records
    )
    if how != "text":
        assert replicated_special_uniques(keyed, Microdata(rewritten)).figures == (
            replicated_special_uniques(keyed, Microdata(release)).figures
        )
        assert new_rows(keyed, Microdata(rewritten)).figures["new_share_exact"] == 0
        assert (
            near_copies(keyed, Microdata(rewritten)).figures["whole"]
            == (near_copies(keyed, Microdata(release)).figures["whole"])
        )
        if how.startswith("single"):
            assert new_rows(keyed, Microdata(rewritten), precision="exact").figures["new_share_exact"] > 0.5


@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 2**20), decimals=st.integers(0, 3))
def test_noise_below_the_precision_of_the_original_changes_nothing(seed, decimals):
    rng = np.random.default_rng(seed)
    size = 60
    ours = pl.DataFrame(
        {
            "x": rng.integers(0, 40, size) / 10**decimals,
            "y": rng.integers(0, 3, size),
            "t": rng.integers(0, 9, size) / 10**decimals,
        }
    )
    assert grid_of(ours["x"]).decimals <= decimals
    release = ours.sample(fraction=1, with_replacement=True, seed=seed)
    finest = max(grid_of(ours[name]).decimals for name in ("x", "t"))
    noise = [rng.uniform(-0.49, 0.49, size) / 10**finest for _ in "xt"]
    noisy = release.with_columns(pl.col("x") + noise[0], pl.col("t") + noise[1])
    original = Microdata(ours, keys=["x", "y"], sensitive="t")
    settled = dict.fromkeys(("x", "t"), finest)
    for measure in (replicated_uniques, disclosure):
        found = measure(original, Microdata(noisy), precision=settled)
        assert found.figures == pytest.approx(
            measure(original, Microdata(release), precision=settled).figures
        )
    if all(grid_of(ours[name]).decimals == finest for name in ("x", "t")):
        assert replicated_uniques(original, Microdata(noisy)).figures == pytest.approx(
            replicated_uniques(original, Microdata(release)).figures
        )


def test_precision_can_be_set():
    ours = pl.DataFrame({"x": [1.26, 1.31, 2.0, *(n / 100 + 5 for n in range(0, 400, 16))]})
    theirs = ours.with_columns(pl.col("x").round(1))
    original = Microdata(ours, keys="x")
    assert replicated_uniques(original, Microdata(theirs)).figures["replicated"] == 26
    assert replicated_uniques(original, Microdata(theirs)).figures["uniques_original"] == 26
    exact = replicated_uniques(original, Microdata(theirs), precision="exact").figures
    assert exact["uniques_original"] == 28
    assert replicated_uniques(original, Microdata(theirs), precision={"x": 0}).parameters["precision"] == {
        "x": "whole numbers"
    }
    with pytest.raises(ColumnError, match="precision"):
        replicated_uniques(original, Microdata(theirs), precision={"z": 1})
    for wrong in ("fine", -1, True):
        with pytest.raises(ParameterError, match="precision"):
            replicated_uniques(original, Microdata(theirs), precision=wrong)


def test_codes_stay_as_they_are():
    codes = [pl.Series("code", [n + part for n in range(1, 9)]) for part in (0.5, 0.0)]
    tables = [code.to_frame() for code in codes]
    assert precise_alike(tables, categorical=["code"])[0][0]["code"].to_list() == codes[0].to_list()
    assert agreed_grid(*codes, "code") == Grid(decimals=0)


def test_a_file_that_has_lost_its_halves_is_no_file_of_whole_numbers():
    ours, theirs = pl.Series([0.5, 1.0, 1.5, 2.0, 2.5, 3.0]), pl.Series([1.0, 2.0, 3.0])
    assert agreed_grid(ours, theirs, "x") is None


def test_a_population_meets_a_file_at_the_precision_of_both():
    rng = np.random.default_rng(3)
    values = rng.normal(25, 4, 40)
    file = Microdata(pl.DataFrame({"x": values[:20]}), keys="x")
    people = np.concatenate([values, values])
    exact = Microdata(pl.DataFrame({"x": people}))
    rewritten = Microdata(pl.DataFrame({"x": written(people, 15)}))
    assert k_map(file, rewritten).value == k_map(file, exact).value == 2
    assert delta_presence(file, rewritten).figures == delta_presence(file, exact).figures


def test_cells_are_the_same_when_only_their_writing_changed():
    values = pl.Series(np.random.default_rng(4).normal(50, 9, 100))
    assert same_cells(values, pl.Series(written(values, 15))).all()
    assert same_cells(values, values.cast(pl.Float32)).all()
    assert not same_cells(values, values.round(1)).any()  # a change of the data, not of its writing
    assert stored_alike(values, values.round(1))[0] is values
