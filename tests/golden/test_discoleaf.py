"""Worked examples of methods/discoleaf-federated-discretization-pram-trees.md, section 5, and the orderings of 6."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from discreet.core.errors import ParameterError
from discreet.federated import (
    bin_codes,
    bin_edges,
    freedman_diaconis_bins,
    invariant_pram_epsilon,
    invariant_pram_theta,
    merge_trees,
)

DATA = [1, 2, 2, 3, 4, 4, 5, 6, 7, 9, 12, 15]


def test_bins():
    assert freedman_diaconis_bins(DATA) == (4, "freedman-diaconis")
    edges = bin_edges(0, 20, 4)
    assert edges.tolist() == [0, 5, 10, 15, 20]
    assert bin_codes(DATA, edges).tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 3]


def test_epsilon_of_the_invariant_matrix():
    assert invariant_pram_epsilon([50, 30, 20], 0.3) == pytest.approx(2.590267, abs=5e-7)
    assert invariant_pram_epsilon([50, 30, 20], 0.1) == pytest.approx(3.843030, abs=5e-7)
    assert invariant_pram_theta([50, 30, 20], 3.0) == pytest.approx(0.213503, abs=5e-7)
    assert invariant_pram_epsilon([50, 30, 20], 2 / 3) == pytest.approx(1.427116, abs=5e-7)
    assert invariant_pram_epsilon([21790, 10771], 0.1) == pytest.approx(2.901818, abs=5e-7)
    assert invariant_pram_epsilon([21790, 10771], 0.2) == pytest.approx(2.090888, abs=5e-7)
    assert invariant_pram_epsilon([100] * 4, 0.3) == pytest.approx(math.log(7))
    with pytest.raises(ParameterError, match="not reachable"):
        invariant_pram_theta([50, 30, 20], 1.4)


def test_the_closed_form_is_too_small_for_a_large_theta():
    assert invariant_pram_epsilon([1000, 10, 10], 0.9) == pytest.approx(math.log(100))
    assert invariant_pram_epsilon([50, 30, 20], 1.0) == math.inf


def test_epsilon_rises_with_a_rare_level_and_falls_with_theta_and_fewer_bins():
    with_rare = [invariant_pram_epsilon([5000, 3000, rare], 0.1) for rare in (500, 50, 5)]
    assert with_rare == sorted(with_rare)
    falling = [invariant_pram_epsilon([50, 30, 20], theta) for theta in (0.05, 0.1, 0.2, 0.3)]
    assert falling == sorted(falling, reverse=True)
    few, many = np.bincount(np.arange(1000) // 250), np.bincount(np.arange(1000) // 50)
    assert invariant_pram_epsilon(few, 0.1) < invariant_pram_epsilon(many, 0.1)


def test_the_merged_tree_of_three():
    trees = [("A", 3.5, 0, ("B", 1.5, 0, 1)), ("A", 5.5, 0, 1), ("B", 2.5, 0, ("A", 4.5, 0, 1))]
    merged = merge_trees(trees)
    assert merged.root.attribute == "A"
    assert merged.root.cuts == (3.5, 5.5)
    grid = pl.DataFrame({"A": np.repeat([3.0, 4, 5, 6], 3), "B": np.tile([1.0, 2, 3], 4)})
    assert merged.predict(grid).reshape(4, 3).tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 1], [0, 1, 1]]
