"""Densities, transport and models of two files."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import wasserstein_distance

from discreet import Microdata
from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.core.randomness import generator
from discreet.utility import densities, gini_change, importance_shift, transport
from discreet.utility.density_overlap import kernel_density
from discreet.utility.model_shift import leaf_impurity, tree_impurity


def people(rows=400, seed=1):
    random = generator(seed, "models")
    x, z = random.normal(size=(2, rows))
    return pl.DataFrame(
        {
            "x": x,
            "y": 0.8 * x + 0.6 * z,
            "noise": random.normal(size=rows),
            "c": pl.Series(["a", "b", None])[random.integers(0, 3, rows)],
            "goal": pl.Series(["no", "yes"])[(x + 0.2 * z > 0).astype(int)],
        }
    )


OURS, THEIRS = people(), people(300, 2)
BROKEN = OURS.with_columns(pl.col("goal").shuffle(seed=1), pl.col("y").shuffle(seed=2))


def test_the_density_is_the_product_kernel_estimate():
    points = OURS.select("x", "y").to_numpy()
    axes, wide = [np.linspace(-3, 3, 7)] * 2, np.array([0.4, 0.3])
    found = kernel_density(points, np.ones(len(points)), axes, wide)
    by_hand = np.array(
        [
            [
                np.mean(
                    np.exp(-0.5 * ((points[:, 0] - a) / 0.4) ** 2 - 0.5 * ((points[:, 1] - b) / 0.3) ** 2)
                )
                / (2 * np.pi * 0.4 * 0.3)
                for b in axes[1]
            ]
            for a in axes[0]
        ]
    )
    assert np.allclose(found, by_hand)


def test_binned_densities_are_those_of_the_plain_sum():
    points = people(5000).select("x", "y").to_numpy()
    wide = np.array([0.25, 0.25])
    axes = [np.linspace(points[:, k].min() - 1, points[:, k].max() + 1, 40) for k in (0, 1)]
    plain, binned = (kernel_density(points, np.ones(5000), axes, wide, binned=b) for b in (False, True))
    assert np.abs(plain - binned).max() < 0.01 * plain.max()


def test_equal_files_overlap_wholly_and_distant_ones_not_at_all():
    assert densities(Microdata(OURS), Microdata(OURS), ["x", "y"]).figures["overlap"] == 1
    far = OURS.with_columns(pl.col("x", "y") + 100)
    assert densities(Microdata(OURS), Microdata(far), ["x", "y"], grid=200).value == pytest.approx(
        2, abs=0.01
    )


def test_a_lost_relation_shows_in_the_density():
    kept = densities(Microdata(OURS), Microdata(THEIRS), ["x", "y"])
    lost = densities(Microdata(OURS), Microdata(BROKEN), ["x", "y"])
    assert lost.figures["overlap"] < kept.figures["overlap"]
    assert lost.figures["region_overlap_50"] <= 1


def test_each_contour_holds_its_share():
    found = densities(Microdata(OURS), Microdata(THEIRS), ["x", "y"])
    grid = found.detail["grid"]
    for row in found.detail["levels"].to_dicts():
        held = grid.filter(pl.col("original") >= row["original"])["original"].sum() / grid["original"].sum()
        assert held == pytest.approx(row["level"], abs=0.02)


def test_weights_count_as_records_in_a_density():
    twice = pl.concat([OURS, OURS.head(100)])
    weighted = OURS.with_columns(w=pl.when(pl.int_range(pl.len()) < 100).then(2.0).otherwise(1.0))
    options = {"columns": ["x", "y"], "bandwidth": (0.3, 0.3)}
    one = densities(Microdata(twice), Microdata(THEIRS), **options).value
    assert densities(Microdata(weighted, weight="w"), Microdata(THEIRS), **options).value == pytest.approx(
        one
    )


def test_transport_of_the_worked_example():
    before = pl.DataFrame({"x": [0.0, 0.5, 1.0, 0.25], "c": ["a", "a", "b", "c"]})
    after = pl.DataFrame({"x": [0.0, 0.75, 1.0, 0.25], "c": ["a", "b", "b", "a"]})
    found = transport(Microdata(before), Microdata(after), cost="euclidean")
    assert found.value == pytest.approx(0.4375)
    assert transport(Microdata(before), Microdata(after)).value == pytest.approx(0.578125)
    assert found.figures["exact"] is True


def test_transport_of_one_number_is_the_wasserstein_distance():
    a, b = OURS["x"].head(200), THEIRS["x"].head(200)
    width = a.max() - a.min()
    frames = [Microdata(pl.DataFrame({"x": x})) for x in (a, b)]
    found = transport(*frames, cost="euclidean").value
    assert found == pytest.approx(wasserstein_distance(a / width, b / width))


def test_transport_of_fresh_data_costs_as_much_as_between_samples_of_the_original():
    data = Microdata(people(2000, 5))
    fresh = transport(data, Microdata(people(2000, 6)), most=300)
    assert fresh.figures["exact"] is False
    assert abs(fresh.figures["excess"]) < 0.4 * fresh.figures["baseline"]
    assert transport(data, data, most=300, seed=3).value == transport(data, data, most=300, seed=3).value


def test_the_impurity_of_the_worked_tree():
    age = np.array([22, 25, 28, 30, 40, 40, 45, 50, 55, 60])
    income = np.array([30, 35, 40, 40, 50, 60, 80, 80, 85, 90])
    sex = np.array([0, 1, 0, 1, 0, 0, 0, 1, 1, 1])
    leaves = np.where(age < 40, 0, np.where(income < 75, 1, 2))
    records, impurity = leaf_impurity(leaves, sex)
    assert (records.tolist(), impurity.tolist()) == ([4, 2, 4], [0.5, 0.0, 0.375])
    assert tree_impurity(leaves, sex) == pytest.approx(0.35)
    assert tree_impurity(np.zeros(10, dtype=int), sex) == 0.5


def test_a_release_that_lost_the_relation_teaches_a_tree_less():
    kept = gini_change(Microdata(OURS), Microdata(THEIRS), "goal")
    lost = gini_change(Microdata(OURS), Microdata(BROKEN), "goal")
    assert gini_change(Microdata(OURS), Microdata(OURS), "goal").value == 0
    assert 0 <= kept.value < lost.value
    assert lost.figures["explained_released"] < kept.figures["explained_released"]
    leaves = lost.detail["leaves"].filter(pl.col("tree") == "release")
    assert leaves["records"].sum() == OURS.height


@pytest.mark.parametrize("importance", ["impurity", "permutation"])
def test_importance_moves_where_the_relation_is_lost(importance):
    options = {"target": "goal", "trees": 30, "importance": importance}
    kept = importance_shift(Microdata(OURS), Microdata(OURS), **options)
    lost = importance_shift(Microdata(OURS), Microdata(BROKEN), **options)
    assert kept.value == 0
    assert lost.value > max(0.2, lost.figures["shift_by_chance"])
    assert lost.detail["variables"]["importance_after"].sum() == pytest.approx(1)


def test_importance_of_a_numeric_target_over_copies():
    found = importance_shift(Microdata(OURS), [Microdata(THEIRS), Microdata(BROKEN)], "y", trees=40)
    assert found.detail["copies"]["shift"].to_list()[1] > found.detail["copies"]["shift"].to_list()[0]
    assert found.figures["score_original"] > 0.4


def test_bad_input_is_refused():
    ours = Microdata(OURS)
    with pytest.raises(ParameterError, match="two different columns"):
        densities(ours, ours, ["x"])
    with pytest.raises(ColumnError, match="numbers or dates"):
        densities(ours, ours, ["x", "c"])
    with pytest.raises(ColumnError, match="does not vary"):
        densities(Microdata(OURS.with_columns(x=pl.lit(1.0))), ours, ["x", "y"])
    with pytest.raises(InputError, match="Fewer than two"):
        densities(ours, Microdata(OURS.head(1)), ["x", "y"])
    with pytest.raises(ColumnError, match="target"):
        gini_change(ours, ours, "goals")
    with pytest.raises(ParameterError, match="cost"):
        transport(ours, ours, cost="free")
