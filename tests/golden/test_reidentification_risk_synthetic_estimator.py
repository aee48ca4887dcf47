"""Worked examples of the re-identification spec (section 5) and its run on Adult (section 6).

Source: Jiang, Mosquera, Jiang, Kong and El Emam, PLoS ONE 17(6):e0269097 (2022), appendices; figures computed for
the spec ``reidentification-risk-synthetic-estimator``.
"""

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import hypergeom

from discreet import Microdata, datasets
from discreet.numerics.copula import fit_gaussian
from discreet.numerics.correlation import correlation_of_vine, nearest_correlation
from discreet.numerics.mutual_information import mutual_information
from discreet.risk.population_estimators import ESTIMATORS
from discreet.risk.superpopulation import known_population, population

TOWN = Microdata(pl.DataFrame({"job": list("aaaaabbbccde")}), keys="job")
SAMPLE = Microdata(pl.DataFrame({"job": list("aabd")}), keys="job")

EDGES = np.zeros((4, 4))
EDGES[0, 1], EDGES[1, 2], EDGES[2, 3] = 0.5, 0.4, -0.3
EDGES[0, 2], EDGES[1, 3], EDGES[0, 3] = 0.2, 0.35, -0.25


def columns_of(table):
    rows, columns = np.indices(table.shape)
    return np.repeat(rows.ravel(), table.ravel()), np.repeat(columns.ravel(), table.ravel())


def h(x, v, r):
    return ndtr((ndtri(x) - r * ndtri(v)) / np.sqrt(1 - r * r))


def h_inverse(x, v, r):
    return ndtr(ndtri(x) * np.sqrt(1 - r * r) + r * ndtri(v))


def sample_by_conditioning(edges, n, rng):
    """The D-vine sampler of Aas, Czado, Frigessi and Bakken (2009, algorithm 2), for four variables or any number."""
    size = len(edges)
    w = rng.random((size, n))
    drawn = [w[0]]
    # forward[j][k] = F(x_j | the k before it); backward[j][k] = F(x_j | the k after it)
    forward, backward = [[w[0]]], [[w[0]]]
    for i in range(1, size):
        value = w[i]
        for k in range(i, 0, -1):
            value = h_inverse(value, backward[i - k][k - 1], edges[i - k, i])
        drawn.append(value)
        forward.append([value])
        backward.append([value])
        for k in range(1, i + 1):
            before, after = forward[i][k - 1], backward[i - k][k - 1]
            forward[i].append(h(before, after, edges[i - k, i]))
            backward[i - k].append(h(after, before, edges[i - k, i]))
    return np.array(drawn)


def test_the_two_attacks_on_a_sample_of_four_from_a_town_of_twelve():
    figures = known_population(SAMPLE, TOWN).figures
    assert figures["A"] == pytest.approx(0.25)
    assert figures["B"] == pytest.approx(0.433333, abs=1e-6)
    assert figures["expected_B"] == pytest.approx(0.416667, abs=1e-6)


def test_the_expected_population_to_sample_risk_is_the_expected_number_of_classes_over_n():
    sizes = np.array([5, 3, 2, 1, 1])
    expected = (1 - hypergeom.pmf(0, 12, sizes, 4)).sum() / 12
    assert expected == pytest.approx(0.243098, abs=1e-6)
    rng = np.random.default_rng(1)
    town = np.repeat(np.arange(5), sizes)
    found = [len(np.unique(rng.choice(town, 4, replace=False))) / 12 for _ in range(4000)]
    assert np.mean(found) == pytest.approx(expected, abs=0.003)


@pytest.mark.parametrize(
    ("table", "information", "correlation"),
    [
        ([[40, 10], [10, 40]], 0.192745, 0.809017),
        ([[20, 10, 5], [10, 25, 10], [2, 8, 10]], 0.103173, 0.530444),
    ],
)
def test_the_correlation_that_matches_the_information_of_a_table(table, information, correlation):
    x, y = columns_of(np.array(table))
    assert mutual_information(x, y) == pytest.approx(information, abs=1e-6)
    found = fit_gaussian([x, y], matching="exact").correlation[0, 1]
    assert found == pytest.approx(correlation, abs=1e-5)


def test_the_edges_of_a_vine_give_its_correlations():
    found = correlation_of_vine(EDGES)
    assert found[0, 2] == pytest.approx(0.358745, abs=1e-6)
    assert found[1, 3] == pytest.approx(0.186005, abs=1e-6)
    assert found[0, 3] == pytest.approx(-0.167315, abs=1e-6)


def test_sampling_the_vine_by_h_functions_gives_the_same_correlations():
    drawn = ndtri(sample_by_conditioning(EDGES, 400_000, np.random.default_rng(7)))
    assert np.corrcoef(drawn) == pytest.approx(correlation_of_vine(EDGES), abs=0.006)


def test_contradicting_correlations_are_brought_to_plus_and_minus_one_half():
    torn = np.array([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]])
    assert np.linalg.eigvalsh(torn) == pytest.approx([-0.8, 1.9, 1.9])
    wanted = np.array([[1, 0.5, -0.5], [0.5, 1, 0.5], [-0.5, 0.5, 1]])
    assert nearest_correlation(torn) == pytest.approx(wanted, abs=1e-6)


def test_a_sample_that_is_its_population_has_both_risks_equal_to_classes_over_people():
    jobs = pl.DataFrame({"job": list("aaaaabbbccde") * 3})
    for estimator in ESTIMATORS:
        figures = population(
            Microdata(jobs, keys="job"), estimator=estimator, population_size=36, seed=1
        ).figures
        assert figures["A"] == pytest.approx(5 / 36)
        assert figures["B"] == pytest.approx(5 / 36)
        assert figures["B_low"] == figures["B_high"] == pytest.approx(5 / 36)


@pytest.fixture(scope="module")
def adult():
    return datasets.adult().frame.drop_nulls()


SETS = {
    "age+race+sex": ("age", "race", "sex"),
    "five": ("age", "education", "marital-status", "race", "sex"),
    "six": ("age", "workclass", "education", "marital-status", "race", "sex"),
    "nine": (
        "age", "workclass", "education", "marital-status", "occupation", "relationship", "race", "sex",
        "native-country",
    ),
    "five without age": ("workclass", "marital-status", "relationship", "race", "sex"),
}  # fmt: skip
TRUE_B = {
    "age+race+sex": 0.012,
    "five": 0.165,
    "six": 0.274,
    "nine": 0.60,
    "five without age": 0.016,
}


@pytest.mark.parametrize("name", SETS)
def test_adult_has_the_true_risk_of_the_spec(adult, name):
    assert adult.height == 45_222
    sample = Microdata(adult.sample(fraction=0.3, seed=1), keys=SETS[name])
    found = known_population(sample, Microdata(adult, keys=SETS[name])).figures["B"]
    assert found == pytest.approx(TRUE_B[name], abs=0.008)


QUICK = [("age+race+sex", 0.1), ("nine", 0.1), ("five without age", 0.1)]
OTHERS = [
    (name, fraction) for name in SETS for fraction in (0.1, 0.3, 0.5, 0.8) if (name, fraction) not in QUICK
]


@pytest.mark.parametrize(
    ("name", "fraction"), [*QUICK, *(pytest.param(*other, marks=pytest.mark.slow) for other in OTHERS)]
)
@pytest.mark.slow
def test_the_average_of_the_copulas_is_within_005_of_the_truth_on_adult(adult, name, fraction):
    sample = Microdata(adult.sample(fraction=fraction, seed=1), keys=SETS[name])
    truth = known_population(sample, Microdata(adult, keys=SETS[name])).figures["B"]
    found = population(sample, population_size=adult.height, repeats=3, seed=1).figures["B"]
    assert abs(found - truth) < 0.05
