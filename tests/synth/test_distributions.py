"""Samplers: laws, edge cases, bad input, kinds and types that survive."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from discreet import Microdata
from discreet.core.errors import DiscreetError, DiscreetWarning, InputError, ParameterError
from discreet.synth.distributions import (
    Draws,
    accept_reject,
    bootstrap,
    closeness,
    condition,
    conditional_inverse,
    discrete_inverse,
    discrete_inverse_unbounded,
    fit_family,
    fit_sample,
    from_moments,
    interpolate,
    inverse_transform,
    mixture,
    multivariate_normal,
    smote,
    transform,
)

PEOPLE = pl.DataFrame(
    {
        "age": [20, 31, 45, 45, None, 62, 70, 33],
        "pay": [0.0, 10.25, 99.5, 12.75, 30.0, None, 1.25, 0.0],
        "sex": pl.Series(["f", "m", "m", "f", "f", None, "m", "f"], dtype=pl.Enum(["m", "f"])),
        "born": [dt.date(1990 + i, 1, 1 + i) for i in range(8)],
        "here": [True, False] * 4,
    }
)
chances = st.lists(st.floats(0, 1), min_size=1, max_size=30).filter(lambda p: sum(p) > 0.01)


# --- inverse transform --------------------------------------------------------------------------------------------


def test_numeric_inversion_agrees_with_the_closed_form_to_the_last_digits():
    shares = np.array([1e-9, 0.01, 0.5, 0.975, 1 - 1e-9])
    for law in (stats.norm(3, 2), stats.gamma(0.3), stats.t(2)):
        found = inverse_transform(cdf=law.cdf, uniform=shares).values
        assert found == pytest.approx(law.ppf(shares), rel=1e-7)


def test_the_quantile_of_0_is_the_left_end_of_the_support():
    assert inverse_transform(
        cdf=lambda x: np.clip(x, 0, 1), support=(0, 1), uniform=[0.0, 1.0]
    ).values.tolist() == [0, 1]
    assert discrete_inverse([7, 8, 9], [0, 0.5, 0.5], uniform=[0.0]).values.tolist() == [8]


def test_a_jump_of_the_distribution_function_is_hit_exactly():
    def cdf(x):
        return np.where(x < 2, 0.25 * np.clip(x, 0, 1), 1.0)

    found = inverse_transform(cdf=cdf, support=(0, 3), uniform=[0.125, 0.25, 0.26, 0.9]).values
    assert found == pytest.approx([0.5, 1.0, 2.0, 2.0], abs=1e-12)


def test_a_falling_function_is_no_distribution_function():
    with pytest.raises(ParameterError, match="falls"):
        inverse_transform(cdf=lambda x: np.sin(x) ** 2, support=(0, 3), size=5, seed=1)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"quantile": np.sqrt, "cdf": np.sqrt},
        {"quantile": np.sqrt},
        {"quantile": np.sqrt, "size": -1},
        {"quantile": np.sqrt, "uniform": [1.5]},
        {"quantile": np.sqrt, "uniform": [np.nan]},
        {"cdf": np.sqrt, "support": (1, 0), "size": 2},
        {"cdf": lambda x: np.full(len(x), 0.5), "size": 2},
        {"quantile": lambda u: 3.0, "size": 2},
    ],
)
def test_bad_arguments_of_inversion_are_refused(arguments):
    with pytest.raises(ParameterError):
        inverse_transform(**arguments)


def test_a_size_may_be_a_shape_and_the_same_seed_gives_the_same_draws():
    draws = [inverse_transform(stats.norm.ppf, (3, 4), seed=5).values for _ in range(2)]
    assert draws[0].shape == (3, 4)
    assert (draws[0] == draws[1]).all()


@given(chances, st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_linear_and_binary_search_agree_and_follow_the_definition(weights, shares):
    p = np.array(weights) / sum(weights)
    values = np.arange(len(p))
    found = [
        discrete_inverse(values, p, uniform=shares, search=search).values for search in ("linear", "binary")
    ]
    assert (found[0] == found[1]).all()
    assert (p[found[0]] > 0).all()
    below = np.cumsum(p)
    assert (below[found[0]] >= np.array(shares) - 1e-9).all()


@given(chances)
@settings(max_examples=examples(30), deadline=None)
def test_the_alias_table_has_the_same_law(weights):
    from discreet.numerics.alias_tables import alias_tables

    p = np.array(weights) / sum(weights)
    (own,), (other,) = alias_tables(p[np.newaxis])
    made = own / len(p)
    made += np.bincount(other, 1 - own, minlength=len(p)) / len(p)
    assert made == pytest.approx(p, abs=1e-12)


def test_alias_draws_have_the_right_shares():
    drawn = discrete_inverse(["a", "b", "c"], [0.1, 0.2, 0.7], 100_000, search="alias", seed=1).values
    assert [(drawn == level).mean() for level in "abc"] == pytest.approx([0.1, 0.2, 0.7], abs=0.006)


@pytest.mark.parametrize("p", [[0.5, 0.6], [-0.1, 1.1], [0.5, np.nan], [], [[1.0]], [1.0, 0.0, 0.0]])
def test_probabilities_that_are_none_are_refused(p):
    with pytest.raises(ParameterError):
        discrete_inverse([1, 2], p, 3, seed=1)


def test_a_two_sided_law_on_all_whole_numbers():
    law = stats.skellam(3, 5)
    drawn = discrete_inverse_unbounded(law.pmf, 50_000, start=-2, two_sided=True, seed=1).values
    assert drawn.mean() == pytest.approx(-2, abs=0.05)
    assert drawn.var() == pytest.approx(8, abs=0.2)
    exact = discrete_inverse_unbounded(law.pmf, start=4, two_sided=True, uniform=[0.01, 0.5, 0.999]).values
    assert exact.tolist() == law.ppf([0.01, 0.5, 0.999]).tolist()


@pytest.mark.parametrize("two_sided", [False, True])
def test_mass_that_does_not_sum_to_one_is_an_error(two_sided):
    with pytest.raises(ParameterError, match="too little"):
        discrete_inverse_unbounded(
            lambda x: 0.5 * 0.1 ** np.abs(x), 1000, two_sided=two_sided, max_terms=500, seed=1
        )
    with pytest.raises(ParameterError, match="more than 1"):
        discrete_inverse_unbounded(lambda x: np.ones(len(x)), 10, two_sided=two_sided, seed=1)


def test_conditional_draws_follow_the_joint_law():
    rho = 0.8
    drawn = conditional_inverse(
        [stats.norm.ppf, lambda u, x: rho * x + np.sqrt(1 - rho**2) * stats.norm.ppf(u)], 100_000, seed=1
    ).values
    assert np.corrcoef(drawn.T)[0, 1] == pytest.approx(rho, abs=0.005)
    with pytest.raises(ParameterError, match="2 columns"):
        conditional_inverse([np.sqrt, np.sqrt], uniform=[[0.1]])


# --- rejection, transformation, mixture ---------------------------------------------------------------------------


def test_a_scipy_distribution_serves_as_proposal():
    drawn = accept_reject(stats.beta(2, 2).pdf, stats.uniform(), 1.5, 20_000, seed=1)
    assert stats.kstest(drawn.values, stats.beta(2, 2).cdf).statistic < 0.015
    assert drawn.diagnostics["proposals"] == pytest.approx(30_000, rel=0.15)


@pytest.mark.parametrize("bound", [0, -1, np.nan, np.inf])
def test_a_bound_that_is_none_is_refused(bound):
    with pytest.raises(ParameterError, match="bound must be"):
        accept_reject(stats.beta(2, 2).pdf, stats.uniform(), bound, 10, seed=1)


def test_a_condition_that_never_holds_is_an_error_with_the_rate():
    with pytest.raises(ParameterError, match=r"Only 0 of 5,000 draws were kept"):
        condition(lambda rng, n: rng.random(n), lambda x: x > 2, 5, max_tries=5000, seed=1)


def test_nothing_is_drawn_when_nothing_is_wanted():
    assert len(condition(lambda rng, n: rng.random(n), lambda x: x > 0.5, 0, seed=1)) == 0
    assert len(accept_reject(stats.beta(2, 2).pdf, stats.uniform(), 1.5, 0, seed=1)) == 0


def test_samplers_compose():
    def half(rng, n):
        return condition(lambda r, m: r.standard_normal(m), lambda x: x > 0, n, seed=rng)

    squared = transform(half, lambda x: x**2, 50_000, seed=3)
    assert stats.kstest(squared.values, stats.chi2(1).cdf).statistic < 0.01


def test_a_mixture_knows_where_each_draw_came_from():
    drawn = mixture([stats.norm(0, 0.1), stats.norm(50, 0.1)], [0.25, 0.75], 10_000, seed=1)
    assert ((drawn.values > 25) == (drawn.diagnostics["component"] == 1)).all()
    assert drawn.diagnostics["counts"][1] == pytest.approx(7500, abs=200)


def test_predicates_and_functions_that_return_the_wrong_thing_are_refused():
    normal = stats.norm()
    for bad in (
        lambda: condition(normal, lambda x: x, 5, seed=1),
        lambda: transform(normal, np.sum, 5, seed=1),
        lambda: transform("normal", np.abs, 5, seed=1),
        lambda: accept_reject(lambda x: -x, stats.uniform(), 2, 5, seed=1),
        lambda: accept_reject(lambda x: x, lambda rng, n: rng.random(n), 2, 5, seed=1),
        lambda: mixture([normal], [0.4], 5, seed=1),
    ):
        with pytest.raises(ParameterError):
            bad()


# --- families -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["norm", "lognorm", "gamma", "truncnorm", "uniform", "nbinom"])
def test_parameters_from_moments_give_the_moments_back(family):
    law = getattr(stats, family)(**from_moments(family, 40.0, 30.0))
    assert [float(law.mean()), float(law.std())] == pytest.approx([40, 30], rel=1e-8)


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.9))
def test_beta_from_moments(mean, share):
    sd = share * np.sqrt(mean * (1 - mean))
    law = stats.beta(**from_moments("beta", mean, sd))
    assert [float(law.mean()), float(law.std())] == pytest.approx([mean, sd], rel=1e-6)


@pytest.mark.parametrize(
    ("family", "mean", "sd"),
    [
        ("lognorm", -1, 2),
        ("beta", 0.5, 0.6),
        ("nbinom", 5, 1),
        ("truncnorm", 1, 2),
        ("geom", 0.5, 1),
        ("normm", 1, 1),
    ],
)
def test_moments_that_a_family_cannot_have_are_refused(family, mean, sd):
    with pytest.raises(ParameterError):
        from_moments(family, mean, sd)


@pytest.mark.parametrize("method", ["ml", "moments"])
@pytest.mark.parametrize(
    ("family", "law"),
    [
        ("lognorm", stats.lognorm(0.5, scale=3)),
        ("gamma", stats.gamma(2.5, scale=4)),
        ("expon", stats.expon(scale=3)),
        ("beta", stats.beta(2, 3)),
        ("poisson", stats.poisson(4)),
        ("geom", stats.geom(0.3)),
        ("nbinom", stats.nbinom(3, 0.4)),
        ("norm", stats.norm(3, 2)),
        ("weibull_min", stats.weibull_min(1.5, scale=2)),
    ],
)
def test_fits_find_the_law_the_data_came_from(family, law, method):
    values = law.rvs(20_000, random_state=np.random.default_rng(1))
    fit = fit_family(values, family, method=method)
    assert fit.method == method
    assert [float(fit.distribution.mean()), float(fit.distribution.std())] == pytest.approx(
        [float(law.mean()), float(law.std())], rel=0.05
    )


def test_the_normal_takes_the_sample_variance_unless_told_otherwise():
    assert fit_family([1, 2, 3]).parameters["scale"] == 1
    assert fit_family([1, 2, 3], method="ml").parameters["scale"] == pytest.approx(np.sqrt(2 / 3))


def test_the_best_of_several_families_wins_by_aic():
    values = stats.gamma(2, scale=3).rvs(5000, random_state=np.random.default_rng(1))
    fit = fit_family(values, ["norm", "gamma", "lognorm", "expon"])
    assert fit.family == "gamma"
    assert set(fit.tried) == {"norm", "gamma", "lognorm", "expon"}
    assert fit_family([-1.0, 2.0, 3.0], ["lognorm", "norm"]).family == "norm"


@pytest.mark.parametrize(
    ("values", "family"),
    [([1], "norm"), ([-1.0, 2.0], "lognorm"), ([1.5, 2], "poisson"), ([1, 2], "gausss"), ([1, 2], [])],
)
def test_what_cannot_be_fitted_is_refused(values, family):
    with pytest.raises(ParameterError):
        fit_family(values, family)


def test_fit_sample_draws_as_many_as_there_are():
    drawn = fit_sample([1.0, 2.0, 4.0, 8.0], "lognorm", seed=1)
    assert len(drawn) == 4
    assert set(drawn.diagnostics["parameters"]) == {"s", "loc", "scale"}


# --- multivariate normal ------------------------------------------------------------------------------------------


def test_a_singular_covariance_needs_the_spectral_root():
    singular = [[1, 1], [1, 1]]
    with pytest.raises(ParameterError, match="spectral"):
        multivariate_normal([0, 0], singular, 5, seed=1)
    drawn = multivariate_normal([0, 0], singular, 5, method="spectral", seed=1).values
    assert drawn[:, 0] == pytest.approx(drawn[:, 1])


@pytest.mark.parametrize(
    ("mean", "covariance"),
    [
        ([0, 0], [[1, 2], [2, 1]]),
        ([0, 0], [[1, 0.5], [0.2, 1]]),
        ([0], [[1, 0], [0, 1]]),
        ([0, 0], [1, 1]),
        ([0, 0], [[1, 0, 0], [0, 1, 0]]),
        ([0, 0], [[1, np.nan], [np.nan, 1]]),
    ],
)
@pytest.mark.parametrize("method", ["cholesky", "spectral"])
def test_a_covariance_of_nothing_is_refused(mean, covariance, method):
    with pytest.raises(ParameterError):
        multivariate_normal(mean, covariance, 3, method=method, seed=1)


# --- files --------------------------------------------------------------------------------------------------------


SAMPLERS = [
    lambda data, n: bootstrap(data, n, seed=1),
    lambda data, n: bootstrap(data, n, whole_records=False, seed=1),
    lambda data, n: bootstrap(data, n, smoothing="silverman", seed=1),
    lambda data, n: interpolate(data, n, seed=1),
    lambda data, n: interpolate(data, n, variant="I", within="triangular", seed=1),
    lambda data, n: smote(data, percent=100 * n / 8, k=3, seed=1),
]


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_kinds_types_and_order_of_columns_survive(sampler):
    drawn = sampler(Microdata(PEOPLE, keys=["age"]), 20)
    assert isinstance(drawn, Draws)
    assert drawn.values.roles.keys == ("age",)
    assert drawn.values.frame.schema == PEOPLE.schema
    assert drawn.values.frame.height == 20
    assert isinstance(sampler(PEOPLE, 20).values, pl.DataFrame)
    assert isinstance(sampler(PEOPLE.to_arrow(), 20).values, pa.Table)
    frame = pd.DataFrame({"a": [1, 2, 4, 9, 3, 3, 2, 1], "b": pd.Categorical(list("xyxyxyxx"))})
    made = sampler(frame, 20).values
    assert isinstance(made, pd.DataFrame)
    assert made.dtypes.to_dict() == frame.dtypes.to_dict()
    assert made.index.tolist() == list(range(20))
    assert isinstance(sampler(PEOPLE.lazy(), 20).values, pl.LazyFrame)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_arrays_come_back_as_arrays_of_their_type(sampler):
    integers = np.arange(16).reshape(8, 2)
    made = sampler(integers, 12).values
    assert made.shape == (12, 2)
    assert made.dtype == integers.dtype
    vector = sampler(np.array([1.5, 2.0, np.nan, 4.0, 7.0, 8.0, 9.0, 11.0]), 12).values
    assert vector.shape == (12,)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_same_seed_gives_the_same_file(sampler):
    assert sampler(PEOPLE, 30).values.equals(sampler(PEOPLE, 30).values)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_decimal_places_are_kept(sampler):
    pay = sampler(PEOPLE, 50).values["pay"].drop_nulls().to_numpy()
    assert pay == pytest.approx(np.round(pay, 2), abs=1e-12)


def test_a_duckdb_relation_comes_back_as_one():
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    people = PEOPLE.select("age", "here")
    relation = connection.from_arrow(people.to_arrow())
    drawn = bootstrap(Microdata(relation), 10, seed=1).values
    assert type(drawn.frame) is type(relation)
    assert drawn.wrapped.collect().shape == (10, 2)


def test_whole_records_keep_dependence_and_single_columns_lose_it():
    x = np.random.default_rng(1).standard_normal(5000)
    both = np.column_stack([x, x])
    assert np.corrcoef(bootstrap(both, seed=1).values.T)[0, 1] == pytest.approx(1)
    assert abs(np.corrcoef(bootstrap(both, whole_records=False, seed=1).values.T)[0, 1]) < 0.05


def test_a_smoothed_bootstrap_keeps_means_and_covariances():
    data = multivariate_normal([5, 1], [[4, 1], [1, 2]], 3000, seed=1).values
    drawn = bootstrap(data, 200_000, smoothing=0.8, seed=2).values
    assert drawn.mean(axis=0) == pytest.approx(data.mean(axis=0), abs=0.02)
    assert np.cov(drawn.T) == pytest.approx(np.cov(data.T), abs=0.05)
    assert not np.isin(drawn[:100, 0], data[:, 0]).any()


def test_bootstrap_refuses_what_makes_no_sense():
    for bad in (
        lambda: bootstrap(PEOPLE, smoothing=-1, seed=1),
        lambda: bootstrap(PEOPLE, smoothing=1, whole_records=False, seed=1),
        lambda: bootstrap(np.array(["a", "b"]), smoothing=1, seed=1),
        lambda: bootstrap(np.empty((0, 2)), seed=1),
        lambda: bootstrap(np.array([1.0, np.inf]), seed=1),
        lambda: bootstrap(np.zeros((2, 2, 2)), seed=1),
    ):
        with pytest.raises(DiscreetError):
            bad()


# --- interpolation ------------------------------------------------------------------------------------------------


def test_variant_one_inverts_the_piecewise_linear_distribution_function():
    data = np.array([1.25, 1.25, 2.5, 4.0]) + 1e-9 / 3  # endless decimals: no rounding
    drawn = interpolate(data, 200_000, variant="I", seed=1).values
    below = [np.mean(drawn <= x) for x in (0.0, 0.625, 1.25, 2.0, 2.5, 3.25, 4.01)]
    assert below == pytest.approx([0, 0.25, 0.5, 0.65, 0.75, 0.875, 1.0], abs=0.005)


def test_variant_two_doubles_the_first_gap_and_stays_inside():
    data = np.array([0.0, 1.0, 2.0]) + 1 / 3
    drawn = interpolate(data, 90_000, seed=1).values
    assert drawn.min() >= data.min()
    assert drawn.max() <= data.max()
    assert np.mean(drawn < data[1]) == pytest.approx(2 / 3, abs=0.006)


def test_the_lower_end_of_variant_one_can_be_named():
    data = np.array([1.0, 3.0, 7.5]) + 1 / 3
    assert interpolate(data, 5000, variant="I", lower=0.0, seed=1).values.min() == pytest.approx(0, abs=0.01)
    assert interpolate(data, 5000, variant="I", seed=1).values.min() == pytest.approx(-1 + 1 / 3, abs=0.01)
    for bad in ({"variant": "I", "lower": 2.0}, {"lower": 0.0}, {"variant": "III"}, {"within": "gamma"}):
        with pytest.raises(ParameterError):
            interpolate(data, 5, seed=1, **bad)


@given(st.lists(st.integers(0, 30), min_size=2, max_size=60).filter(lambda v: len(set(v)) > 1))
@settings(max_examples=examples(40), deadline=None)
def test_whole_numbers_stay_whole_and_inside(values):
    data = np.array(values)
    drawn = interpolate(data, 400, seed=1).values
    assert drawn.dtype == data.dtype
    assert data.min() <= drawn.min()
    assert drawn.max() <= data.max()


def test_consecutive_whole_numbers_are_a_plain_bootstrap():
    data = np.repeat([0, 1, 2], [70, 20, 10])
    drawn = interpolate(data, 50_000, seed=1).values
    assert np.bincount(drawn) / 50_000 == pytest.approx([0.7, 0.2, 0.1], abs=0.01)


@pytest.mark.parametrize("within", ["uniform", "triangular", "truncnorm", ("beta", 4, 4)])
def test_every_law_within_a_gap_keeps_the_distribution_function_at_the_values(within):
    data = np.array([0.0, 1.0, 5.0, 6.0]) + 1 / 3
    drawn = interpolate(data, 40_000, within=within, seed=1).values
    assert [np.mean(drawn <= x) for x in data[1:]] == pytest.approx([0.5, 0.75, 1.0], abs=0.01)
    away = np.abs(drawn[:, None] - data).min(axis=1)
    assert np.median(away) > 0.2


def test_spikes_missing_values_and_categories_stay_with_their_record():
    drawn = interpolate(PEOPLE, 4000, spikes={"pay": [0.0]}, seed=1)
    frame = drawn.values
    assert frame["pay"].null_count() / 4000 == pytest.approx(1 / 8, abs=0.03)
    assert (frame["pay"] == 0).sum() / 4000 == pytest.approx(2 / 8, abs=0.03)
    assert set(frame["sex"].unique().to_list()) == {"m", "f", None}
    assert set(drawn.diagnostics["interpolated"]) == {"age", "pay", "born"}
    assert frame.filter(pl.col("age").is_null())["born"].n_unique() > 1


def test_one_distinct_value_is_kept_with_a_warning():
    with pytest.warns(DiscreetWarning, match="one distinct value"):
        assert set(interpolate(np.array([3.0, 3.0]), 5, seed=1).values) == {3.0}


def test_columns_to_interpolate_can_be_named():
    drawn = interpolate(PEOPLE, 50, columns=["age"], seed=1).values
    assert set(drawn["pay"].drop_nulls()) <= set(PEOPLE["pay"].drop_nulls())
    with pytest.raises(DiscreetError, match="sex"):
        interpolate(PEOPLE, columns=["sex"], seed=1)
    with pytest.raises(DiscreetError, match="Did you mean 'age'"):
        interpolate(PEOPLE, columns=["Age"], seed=1)


# --- SMOTE --------------------------------------------------------------------------------------------------------


def test_new_points_lie_on_segments_within_the_class():
    rng = np.random.default_rng(1)
    points = np.vstack([rng.standard_normal((40, 2)), rng.standard_normal((20, 2)) + 50])
    labels = np.repeat(["a", "b"], [40, 20])
    drawn = smote(points, classes=labels, percent={"b": 350}, k=4, seed=1)
    assert drawn.diagnostics["by_class"] == {"a": 0, "b": 70}
    base, other = points[drawn.diagnostics["base"]], points[drawn.diagnostics["neighbor"]]
    assert (drawn.values > 25).all()
    along = drawn.values - base
    across = other - base
    assert along[:, 0] * across[:, 1] == pytest.approx(along[:, 1] * across[:, 0], abs=1e-9)
    assert (np.linalg.norm(along, axis=1) <= np.linalg.norm(across, axis=1) + 1e-12).all()
    uses = np.bincount(drawn.diagnostics["base"], minlength=60)[40:]
    assert set(uses) == {3, 4}


def test_less_than_a_hundred_percent_takes_a_random_part():
    drawn = smote(np.arange(100.0)[:, None] ** 2, percent=30, seed=1)
    assert len(drawn.values) == 30
    assert len(set(drawn.diagnostics["base"])) == 30


def test_categories_take_the_majority_of_the_neighbors():
    frame = pl.DataFrame({"x": [0.0, 0.1, 0.2, 0.3, 0.4], "c": ["a", "b", "b", "b", "b"]})
    drawn = smote(frame, percent=1000, k=4, seed=1)
    assert set(drawn.values["c"]) == {"b"}
    assert drawn.diagnostics["method"] == "SMOTE-NC"


def test_ties_are_broken_at_random():
    points = np.array([[0.0, 0.0]] + [[np.cos(a), np.sin(a)] for a in np.arange(8) * np.pi / 4])
    nearest_of_center = {
        int(d.diagnostics["neighbor"][d.diagnostics["base"] == 0][0])
        for d in (smote(points, k=1, standardize=False, seed=s) for s in range(20))
    }
    assert len(nearest_of_center) > 3


def test_classes_that_are_too_small_are_said_so():
    points = np.array([[0.0], [1.0], [5.0]])
    with pytest.raises(ParameterError, match="one record"):
        smote(points, classes=["a", "a", "b"], k=1, seed=1)
    with pytest.warns(DiscreetWarning, match="copied"):
        drawn = smote(points, classes=["a", "a", "b"], k=1, alone="copy", seed=1)
    assert drawn.values[-1, 0] == 5
    with pytest.warns(DiscreetWarning, match="reduced from 5 to 2"):
        smote(points, seed=1)


def test_duplicates_give_segments_of_no_length_which_are_counted():
    drawn = smote(np.array([[1.0], [1.0], [1.0], [1.0]]), k=2, seed=1)
    assert drawn.diagnostics["zero_segments"] == 4


def test_the_class_column_of_a_file_is_kept():
    frame = pl.DataFrame({"x": np.arange(10.0), "y": np.arange(10.0) ** 2, "group": ["a", "b"] * 5})
    drawn = smote(Microdata(frame), classes="group", percent={"b": 200}, k=2, seed=1)
    assert drawn.values.frame["group"].to_list() == ["b"] * 10
    for bad in (
        {"classes": "grp"},
        {"classes": ["a"]},
        {"percent": -1},
        {"percent": {"zz": 3}},
        {"k": 0},
        {"percent": 0},
    ):
        with pytest.raises(DiscreetError):
            smote(Microdata(frame), seed=1, **bad)


# --- closeness ----------------------------------------------------------------------------------------------------


def test_a_bootstrap_copies_and_interpolation_does_not():
    data = multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], 300, seed=1).values
    copied = closeness(data, bootstrap(data, seed=1)).figures
    moved = closeness(data, interpolate(data, seed=1)).figures
    assert copied["identical_share"] == 1
    assert moved["identical_share"] == 0
    assert moved["dcr_median"] > 0


def test_an_empty_file_is_refused():
    with pytest.raises(InputError):
        bootstrap(PEOPLE.head(0), seed=1)


@pytest.mark.parametrize("option", ["lower", "spikes"])
def test_interpolation_refuses_settings_for_a_column_that_is_not_there(option):
    value = {"pya": 0.0} if option == "lower" else {"pya": [0.0]}
    with pytest.raises(DiscreetError, match=f"Did you mean 'pay'.*'{option}'"):
        interpolate(PEOPLE, variant="I", **{option: value})


def test_one_column_to_interpolate_may_be_named_without_a_list():
    assert interpolate(PEOPLE, columns="pay", seed=1).diagnostics["interpolated"] == ("pay",)


def test_a_text_among_the_values_is_refused_without_being_shown():
    with pytest.raises(ParameterError) as caught:
        fit_family(["1.5", "secret"], "norm")
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: smote(np.eye(3), k=1.5),
        lambda: smote(np.eye(3), k="2"),
        lambda: interpolate(PEOPLE, within=("beta", "a", 2)),
        lambda: inverse_transform(stats.norm(), 3),
        lambda: inverse_transform(cdf=stats.norm, size=3),
        lambda: condition(stats.norm(), lambda x: x > 0, 3, max_tries=0),
    ],
)
def test_parameters_of_the_wrong_kind_are_refused_in_words(wrong):
    with pytest.raises(ParameterError):
        wrong()


def test_a_location_of_zero_that_was_estimated_counts_as_a_parameter():
    fit = fit_family(np.array([0.0, 0.25, 0.5, 1.0]), "uniform")
    assert fit.parameters["loc"] == 0.0
    assert fit.aic == pytest.approx(2 * 2 - 2 * fit.log_likelihood)
