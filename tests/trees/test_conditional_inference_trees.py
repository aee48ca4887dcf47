"""Conditional inference trees test columns as the permutation theory says, and survival trees as the log-rank test."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from discreet.core.errors import ParameterError
from discreet.numerics.trees.coding import Feature, encode
from discreet.numerics.trees.conditional_inference import grow_conditional, grow_survival, log_rank_scores
from discreet.numerics.trees.node_kernels import log_chi2_tail


def reference_p(g, h):
    """P-value of the quadratic form from the definition (Strasser and Weber), with matrices and pseudo-inverses."""
    n = len(g)
    mean = h.mean(axis=0)
    v = (h - mean).T @ (h - mean) / n
    t = (g.T @ h).T.reshape(-1)
    mu = np.outer(mean, g.sum(axis=0)).reshape(-1)
    sigma = n / (n - 1) * np.kron(v, g.T @ g) - 1 / (n - 1) * np.kron(
        v, np.outer(g.sum(axis=0), g.sum(axis=0))
    )
    inverse = np.linalg.pinv(sigma, rcond=1e-10, hermitian=True)
    rank = np.linalg.matrix_rank(sigma, tol=1e-8 * np.abs(sigma).max(), hermitian=True)
    return stats.chi2.sf((t - mu) @ inverse @ (t - mu), rank)


def indicators(codes):
    return (codes[:, None] == np.unique(codes)).astype(float)


@pytest.mark.parametrize("n_classes", [0, 2, 4])
@pytest.mark.parametrize("seed", range(4))
def test_a_node_is_split_exactly_when_the_corrected_p_value_allows_it(seed, n_classes):
    rng = np.random.default_rng(seed)
    n = 80
    x, z, u = rng.integers(0, 12, n).astype(float) ** 2, rng.integers(0, 5, n), rng.normal(size=n)
    y = 0.02 * x + 0.3 * (z == 1) + rng.normal(size=n)
    if n_classes:
        y = np.digitize(y, np.quantile(y, np.linspace(0, 1, n_classes + 1)[1:-1]))
    h = indicators(y) if n_classes else y[:, None]
    p = np.array([reference_p(g, h) for g in (x[:, None], indicators(z), u[:, None])])
    confidence = (1 - p.min()) ** 3
    features = [Feature.numeric(x), Feature.category(5), Feature.numeric(u)]
    codes = encode(features, [x, z, u])
    options = {"n_classes": n_classes, "min_leaf": 1, "max_depth": 1, "rng": rng}
    below = grow_conditional(codes, features, y, mincriterion=confidence * (1 - 1e-7), **options)
    assert below.nodes[0, 0] == p.argmin()
    above = confidence + (1 - confidence) * 1e-6
    if above < 1 and 1 - confidence > 1e-9:
        assert grow_conditional(codes, features, y, mincriterion=above, **options).n_leaves == 1


def test_the_chi_square_tail_is_right_far_out():
    for df in (1, 2, 7, 60, 3000):
        for x in (1e-6, 0.5, 3.0, df - 0.9, df + 2.0, 1.3 * df + 40.0):
            assert log_chi2_tail(float(x), float(df)) == pytest.approx(
                stats.chi2.logsf(x, df), rel=1e-8, abs=1e-12
            )
    # Where the tail itself is no longer a float, by its asymptotic series.
    assert log_chi2_tail(1e5, 1.0) == pytest.approx(-5e4 - 0.5 * np.log(np.pi * 5e4), abs=1e-4)


def test_noise_is_rarely_split_and_many_levels_have_no_head_start():
    split, wide = 0, 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        x, z = rng.normal(size=100), rng.integers(0, 20, 100)
        features = [Feature.numeric(x), Feature.category(20)]
        tree = grow_conditional(encode(features, [x, z]), features, rng.normal(size=100), rng=rng)
        split += tree.n_leaves > 1
        wide += tree.nodes[0, 0] == 1
    assert split < 35  # 10 percent of 200, and three standard deviations
    assert wide < 20


def test_the_cut_for_classes_has_the_greatest_chi_square():
    rng = np.random.default_rng(4)
    x = rng.integers(0, 15, 200)
    y = np.minimum((x + rng.integers(0, 8, 200)) // 6, 2)
    feature = Feature.numeric(x)
    tree = grow_conditional(
        encode([feature], [x]), [feature], y, n_classes=3, min_leaf=10, max_depth=1, rng=rng
    )
    squares = {}
    for cut in range(1, 15):
        table = np.array([np.bincount(y[x < cut], minlength=3), np.bincount(y[x >= cut], minlength=3)])
        if table.sum(axis=1).min() >= 10:
            squares[cut] = stats.contingency.chi2_contingency(table).statistic
    where = max(squares, key=squares.__getitem__)
    assert tree.nodes[0, 1] == where - 1


def test_log_rank_scores_sum_to_observed_less_expected_events():
    rng = np.random.default_rng(0)
    time, event, group = rng.integers(1, 9, 60), rng.integers(0, 2, 60), rng.integers(0, 2, 60)
    observed_less_expected = 0.0
    for moment in np.unique(time):
        at_risk, events = time >= moment, (time == moment) & (event == 1)
        observed_less_expected += events[group == 1].sum() - events.sum() * (group[at_risk] == 1).mean()
    scores = log_rank_scores(time, event)
    assert scores[group == 1].sum() == pytest.approx(observed_less_expected)
    assert scores.sum() == pytest.approx(0)
    twice = log_rank_scores(np.repeat(time, 2), np.repeat(event, 2))
    assert log_rank_scores(time, event, np.full(60, 2.0)) == pytest.approx(twice[::2])


def test_a_survival_tree_keeps_the_survival_of_groups_and_draws_pairs():
    rng = np.random.default_rng(1)
    n = 3000
    group, noise = rng.integers(0, 3, n), rng.normal(size=n)
    latent, censoring = rng.exponential(1.0 + 2 * (group == 2)), rng.exponential(3.0, n)
    time, event = np.minimum(latent, censoring), latent <= censoring
    features = [Feature.category(3), Feature.numeric(noise)]
    codes = encode(features, [group, noise])
    tree = grow_survival(codes, features, time, event, rng=rng)
    drawn = tree.draw(codes, rng)
    assert tree.importances[0] > 10 * tree.importances[1]
    for g in range(3):
        assert time[drawn][group == g].mean() == pytest.approx(time[group == g].mean(), rel=0.1)
        assert event[drawn][group == g].mean() == pytest.approx(event[group == g].mean(), abs=0.06)


def test_bad_survival_input_is_refused():
    with pytest.raises(ParameterError, match="no events"):
        log_rank_scores([1, 2], [0, 0])
    with pytest.raises(ParameterError, match="event must be"):
        log_rank_scores([1, 2], [0, np.nan])
    with pytest.raises(ParameterError, match="finite"):
        log_rank_scores([1, np.nan], [0, 1])
    codes, features = np.zeros((2, 1), np.int16), [Feature.category(1)]
    with pytest.raises(ParameterError, match="mincriterion"):
        grow_conditional(codes, features, [1, 2], mincriterion=1.0, rng=np.random.default_rng())
