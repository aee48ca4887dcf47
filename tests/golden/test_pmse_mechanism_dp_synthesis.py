"""Worked examples of the pMSE mechanism (Snoke and Slavković 2018; the tight bound and tail check are ours)."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_t

from discreet import dp, synth
from discreet.synth.pmse_mechanism import best_pmse, quantile_cuts, tree_pmse
from discreet.synth.pmse_model import SURE_ODDS, chances, log_odds

NUMBERS = np.arange(1.0, 11.0)[:, None]
SHIFTS = (0.5, 3, 6, 20)
QUALITIES = [0.01315789, 0.04411765, 0.10714286, 0.25]


def test_one_optimal_split_between_ten_numbers_and_their_shifts():
    found = [tree_pmse(NUMBERS, NUMBERS + shift) for shift in SHIFTS]
    assert found == pytest.approx(QUALITIES, abs=5e-9)
    assert [20 * (0.25 - u) for u in found] == pytest.approx([4.736842, 4.117647, 2.857143, 0], abs=5e-7)


@pytest.mark.parametrize(
    ("epsilon", "sensitivity", "wanted"),
    [
        (1, 1 / 10, [0.358728, 0.307282, 0.224223, 0.109766]),
        (1, 1 / 22, [0.467094, 0.332278, 0.166117, 0.034511]),
        (5, 1 / 10, [0.641332, 0.295761, 0.061186, 0.001720]),
    ],
)
def test_chances_of_four_candidates_under_the_exponential_mechanism(epsilon, sensitivity, wanted):
    assert chances(np.array(QUALITIES), epsilon, sensitivity) == pytest.approx(wanted, abs=1e-6)


def test_sensitivities_published_and_tight():
    assert dp.pmse_sensitivity(10) == 1 / 10
    assert dp.pmse_sensitivity(10, kind="tight") == 1 / 22


def test_temperatures_of_the_published_setting():
    found = [synth.PMSEMechanism(e, n_datasets=10).temperature(5000) for e in (0.25, 0.5, 1, 2, 4)]
    assert found == pytest.approx([62.5, 125, 250, 500, 1000])


def test_the_smallest_published_budget_lies_in_the_tail_of_its_prior():
    # Widths of the mode in the published setting at T = 62.5, against a normal prior of variance 100,000.
    widths = np.array([1.6, 0.14, 0.5, 0.05, 0.14])
    prior = np.sqrt(1e5)
    assert log_odds(62.5, 0.0023, widths, prior) < -5
    assert log_odds(62.5 * 5000 / 2500, 0.0023, widths / np.sqrt(2), prior) < log_odds(
        1000, 0.0023, widths / 4, prior
    )
    assert log_odds(1000, 0.0023, widths / 4, prior) > SURE_ODDS


def _shared_out(records: int, leaves: int) -> np.ndarray:
    """All ways to put so many records into so many leaves."""
    ways = [way for way in itertools.product(range(records + 1), repeat=leaves) if sum(way) == records]
    return np.array(ways, dtype=np.float64)


def _mixed(synthetic: np.ndarray, original: np.ndarray) -> np.ndarray:
    """GI: what is left of telling the two apart, the sum of a (1 - a / m) over leaves."""
    together = synthetic + original
    return (synthetic * original / np.where(together > 0, together, 1)).sum(axis=-1)


@pytest.mark.parametrize("leaves", [2, 3, 4])
def test_no_moved_record_changes_a_fixed_partition_by_more_than_the_tight_bound(leaves):
    """Section 3, by brute force: every table of up to 5 records a file, every move; the most is n/(n + 1) = 0.833."""
    for n in range(2, 6):
        tables = _shared_out(n, leaves)
        before = _mixed(tables[:, None], tables[None])
        most = 0.0
        for old, new in itertools.permutations(range(leaves), 2):
            movable = tables[:, old] > 0
            moved = tables[movable].copy()
            moved[:, old] -= 1
            moved[:, new] += 1
            change = np.abs(_mixed(tables[:, None], moved[None]) - before[:, movable])
            most = max(most, float(change.max()))
        assert most == pytest.approx(n / (n + 1), abs=1e-12)
        assert most / (2 * n) == pytest.approx(dp.pmse_sensitivity(n, kind="tight"))
    assert most == pytest.approx(0.833, abs=5e-4)


# Section 5: X1 ~ N(2, 10), X2 ~ N(-2.5 + 0.5 X1, 3), 10 and 3 as standard deviations; five parameters.
TRUTH = np.array([2.0, 10.0, -2.5, 0.5, 3.0])
PRIOR_VARIANCE = 100_000.0
N = 5000


def _distances(rng: np.random.Generator):
    """The pMSE of a grown tree of depth 5 between one file and that of any parameters, with common random numbers."""
    first = rng.normal(TRUTH[0], TRUTH[1], N)
    real = np.column_stack([first, rng.normal(TRUTH[2] + TRUTH[3] * first, TRUTH[4])])
    noise = rng.standard_normal((N, 2))

    def distance(theta: np.ndarray) -> float:
        if min(theta[1], theta[4]) <= 0:
            return 0.25
        x = theta[0] + theta[1] * noise[:, 0]
        made = np.column_stack([x, theta[2] + theta[3] * x + theta[4] * noise[:, 1]])
        cuts = [quantile_cuts(made[:, at], 32) for at in range(2)]
        return best_pmse(real, made, cuts, depth=5, greedy=True)

    return distance


@pytest.fixture(scope="module")
def modes() -> dict[float, tuple[float, float]]:
    """Mean distance within the mode, and its log odds against the prior, by temperature: importance sampling.

    Proposals have five degrees of freedom, and take center and spread from the last round; a round at half of the
    temperature starts from twice the variance.
    """
    rng = np.random.default_rng(3)
    distance = _distances(rng)
    center, spread = TRUTH, np.diag([0.8, 0.7, 0.3, 0.04, 0.35])
    found = {}
    for temperature in (1000.0, 500.0, 250.0, 125.0, 62.5):
        for draws in (250, 250, 900):
            steps = rng.standard_normal((draws, 5)) / np.sqrt(rng.chisquare(5, draws) / 5)[:, None]
            thetas = center + steps @ spread.T
            distances = np.array([distance(theta) for theta in thetas])
            proposed = multivariate_t(np.zeros(5), np.eye(5), df=5).logpdf(steps)
            logs = -temperature * distances - proposed + np.log(np.diag(spread)).sum()
            # What is nearer to the tail than to the mode is no part of it.
            logs[distances > 0.125] = -np.inf
            mass = logsumexp(logs) - np.log(draws)
            weights = np.exp(logs - logsumexp(logs))
            center = weights @ thetas
            gaps = thetas - center
            spread = np.linalg.cholesky(1.2 * (gaps.T * weights) @ gaps)
        odds = mass - 2.5 * np.log(2 * np.pi * PRIOR_VARIANCE) + temperature / 4
        found[temperature] = float(weights @ distances), float(odds)
        spread = np.sqrt(2) * spread
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("temperature", "wanted", "published"),
    [(125.0, 0.029, 0.03610), (250.0, 0.0149, 0.02107), (500.0, 0.0077, 0.01459), (1000.0, 0.0044, 0.01161)],
)
def test_mean_distance_within_the_mode_and_the_published_table(modes, temperature, wanted, published):
    """Sections 5 and 6, epsilon 0.5 to 4: E[u | mode], and with the 0.0066 of a right synthesis the published mean.

    The tolerance of section 6 is 15 %; the standard error of ours is below 3 %.
    """
    found, _ = modes[temperature]
    assert found == pytest.approx(wanted, rel=0.15)
    # Section 3, a rule of thumb: u0 + d / (2 T). The 0.029 of the specification itself is 30 % above it.
    assert found == pytest.approx(0.0023 + 5 / (2 * temperature), rel=0.35)
    assert found + 0.0066 == pytest.approx(published, rel=0.15)


@pytest.mark.slow
def test_the_smallest_published_budget_draws_from_the_prior_and_the_tight_bound_mends_it(modes):
    """Section 6: at epsilon 0.25 the mode has a chance of at most 5e-5; with the tight sensitivity nearly all of it."""
    found, odds = modes[62.5]
    assert 1 / (1 + np.exp(-odds)) <= 5e-5
    # 0.054 in section 5; where the mode ends is a matter of definition at so low a temperature.
    assert found == pytest.approx(0.054, rel=0.3)
    tight = synth.PMSEMechanism(0.25, n_datasets=10, sensitivity="tight").temperature(N)
    assert tight == pytest.approx(125, rel=1e-3)
    # 0.96 in the source: log odds of 3.2, and the volume of the mode is a matter of the file drawn.
    _, odds = modes[125.0]
    assert odds == pytest.approx(np.log(0.96 / 0.04), abs=2)


def _drawn(theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    first = rng.normal(theta[0], theta[1], N)
    return np.column_stack([first, rng.normal(theta[2] + theta[3] * first, theta[4])])


def _grown(real: np.ndarray, made: np.ndarray, depth: int | None, cp: float = 0.01) -> float:
    """The pMSE of a tree that is grown step by step and stops where a split gains less than cp of the root."""
    from sklearn.tree import DecisionTreeClassifier

    both, told = np.vstack([real, made]), np.repeat([0, 1], N)
    tree = DecisionTreeClassifier(max_depth=depth, min_impurity_decrease=cp / 2, random_state=0).fit(
        both, told
    )
    return float(((tree.predict_proba(both)[:, 1] - 0.5) ** 2).mean())


@pytest.mark.slow
def test_greedy_trees_pass_the_bound_seldom_and_by_far():
    """Section 6: shares of pairs of neighbors that differ by more than 1/n, for trees of depth 1, 2, 5 and any.

    Published, of 10^6 pairs: 0.0, 0.3, 0.6, 0.7 %; in the specification, of 1,500: 0, 0.2, 0.27, 0.33 %. How far the
    synthetic files lie from the original is not said, so that this is a fit and no confirmation: parameters are drawn
    three widths of the mode wide. Tried before were one width (no pair of 80 passed the bound) and eight (depth 5 and
    any 0.33 % of 300, depth 2 none). At depth
    1 a greedy tree is the best one, and the tight bound holds for every pair. So few pairs fix a share to within five
    standard errors of a binomial law only; that changes are rare and huge is seen all the same.
    """
    rng = np.random.default_rng(5)
    widths = 3 * np.array([0.8, 0.7, 0.3, 0.04, 0.35])
    changes: dict[int | None, list[float]] = {1: [], 2: [], 5: [], None: []}
    for _ in range(300):
        theta = np.abs(TRUTH + widths * rng.standard_normal(5)) * np.sign(TRUTH)
        real, made = _drawn(TRUTH, rng), _drawn(theta, rng)
        before = {depth: _grown(real, made, depth) for depth in changes}
        for _ in range(3):
            other = real.copy()
            other[rng.integers(N)] = _drawn(TRUTH, rng)[0]
            for depth, own in changes.items():
                own.append(abs(_grown(other, made, depth) - before[depth]))
    assert max(changes[1]) <= dp.pmse_sensitivity(N, kind="tight")
    for depth, published, specified in ((2, 0.003, 0.002), (5, 0.006, 0.0027), (None, 0.007, 0.0033)):
        found = np.asarray(changes[depth])
        share = float((found > dp.pmse_sensitivity(N)).mean())
        for wanted, pairs in ((published, 10**6), (specified, 1500)):
            error = np.sqrt(wanted * (1 - wanted) * (1 / len(found) + 1 / pairs))
            assert 0 < share == pytest.approx(wanted, abs=5 * error)
        assert found.max() > 10 * dp.pmse_sensitivity(N)


def _cut_back(real: np.ndarray, made: np.ndarray, cps: tuple[float, ...]) -> list[float]:
    """The pMSE of a tree grown by Gini, 20 records to split and 7 in a leaf, then cut back by what it gets wrong.

    As rpart documents its ``cp``: every split that stays must spare more wrong records than this share of those that
    the root gets wrong (cost-complexity pruning, worked out from the leaves up).
    """
    from sklearn.tree import DecisionTreeClassifier

    told = np.repeat([0, 1], N)
    grown = DecisionTreeClassifier(min_samples_split=20, min_samples_leaf=7, max_depth=30, random_state=0)
    tree = grown.fit(np.vstack([real, made]), told).tree_
    records, ours = tree.weighted_n_node_samples, tree.value[:, 0, 1]
    wrong = records * np.minimum(ours, 1 - ours)
    spread = records * (ours - 0.5) ** 2
    found = []
    for cp in cps:
        price = cp * wrong[0]
        cost, kept = wrong + price, spread.copy()
        # A node has a smaller number than its children.
        for node in range(tree.node_count - 1, -1, -1):
            left, right = tree.children_left[node], tree.children_right[node]
            if left >= 0 and cost[left] + cost[right] < cost[node] - 1e-9:
                cost[node], kept[node] = cost[left] + cost[right], kept[left] + kept[right]
        found.append(float(kept[0] / records[0]))
    return found


@pytest.mark.slow
def test_what_a_right_synthesis_is_given_by_the_published_measure():
    """Section 6: 0.0066 for "cp about 0.001", 0.0001 for cp = 0.01; and 0.0072 for cp = 0.001, which is not met.

    The documented rule gives 0.0066 at cp = 0.0014 and 0.0001 at 0.01. At 0.001 it gives about twice 0.0072: below a
    cp of 0.002 a right synthesis is told from the original by chance alone, and how much of that a tree keeps is a
    matter of the order in which a program cuts it back, which the documentation does not fix. What the figures are
    needed for, the size of what chance adds to the published table, is held from both sides.
    """
    rng = np.random.default_rng(6)
    found = []
    for _ in range(8):
        real = _drawn(TRUTH, rng)
        slope, intercept = np.polyfit(real[:, 0], real[:, 1], 1)
        rest = real[:, 1] - intercept - slope * real[:, 0]
        fitted = [real[:, 0].mean(), real[:, 0].std(), intercept, slope, rest.std()]
        found.append(_cut_back(real, _drawn(np.array(fitted), rng), (0.01, 0.0016, 0.0014, 0.0012, 0.001)))
    coarse, above, at, below, fine = np.mean(found, axis=0)
    assert coarse == pytest.approx(0.0001, abs=1e-4)
    assert at == pytest.approx(0.0066, abs=3 * np.std([each[2] for each in found]) / np.sqrt(8))
    assert above < 0.0066 < 0.0072 < below < fine
    assert fine == pytest.approx(2 * 0.0072, rel=0.25)
