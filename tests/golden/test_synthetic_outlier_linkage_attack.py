"""Worked examples of the linkage attack on outliers of synthetic data.

Source: Trindade, Antunes, Carvalho and Moniz, as specified in synthetic-outlier-linkage-attack (section 5). The
published counts on the Kaggle credit risk file cannot be checked: that file is not at hand, and the paper does not say
which 80 percent of it were used.
"""

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.risk.fuzzy_match import similarity
from discreet.risk.outliers import outliers

NAMES = ["age", "income", "home", "intent"]
REAL = [
    (54, 170000, "MORTGAGE", "PERSONAL"),
    (70, 40000, "OWN", "MEDICAL"),
    (33, 900000, "RENT", "VENTURE"),
    (25, 50000, "RENT", "PERSONAL"),
]
FAKE = [
    (54, 170262, "MORTGAGE", "PERSONAL"),
    (60, 40500, "OWN", "MEDICAL"),
    (62, 41900, "OWN", "MEDICAL"),
    (34, 901500, "RENT", "VENTURE"),
    (40, 899000, "RENT", "PERSONAL"),
    (26, 50100, "RENT", "PERSONAL"),
]
TOLERANCE = {"age": 5, "income": 1000}


def file(rows):
    return Microdata(pl.DataFrame(rows, schema=NAMES, orient="row"))


@pytest.mark.parametrize(
    ("offset", "differences", "scores"),
    [
        (5, [5, 7, 10, 11], [1, 0.8950, 0.5, 0.3686]),
        (1000, [262, 1500, 2000, 2001], [1, 0.8409, 0.5, 0.4993]),
    ],
)
def test_gauss_similarities(offset, differences, scores):
    found = similarity(np.array(differences, dtype=float), offset=offset, scale=offset)
    np.testing.assert_allclose(found, scores, atol=5e-5)


@pytest.mark.parametrize("kind", ["gauss", "exp", "linear", "squared"])
def test_every_kind_is_one_half_at_offset_plus_scale(kind):
    assert similarity(np.array([10.0]), kind=kind, offset=5, scale=5)[0] == 0.5


def test_the_pair_of_the_paper_scores_one_in_every_column():
    found = outliers(
        file(REAL[:1]), file(FAKE[:1]), targets=[True], offset=TOLERANCE, scale=TOLERANCE
    ).detail["pairs"]
    assert found.height == 1
    assert found.row(0)[2:] == (1, 1, 1, 1, 1)


def test_four_targets_and_six_released_records():
    found = outliers(file(REAL), file(FAKE), targets=[True] * 4, offset=TOLERANCE, scale=TOLERANCE)
    assert found.figures["numeric_pairs"] == 6
    assert found.figures["pairs"] == 5
    assert found.detail["records"]["candidates"].to_list() == [1, 2, 1, 1]
    assert found.value == found.figures["single_match"] == 3
    assert found.figures["single_both_ways"] == 3
