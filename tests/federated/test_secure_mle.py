"""The joint likelihood over holders equals the pooled one; what it gives away is what the report says."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.core.errors import ColumnError, DiscreetWarning, InputError, ParameterError
from discreet.federated import (
    ProtocolError,
    SecureMLE,
    complex_layout,
    fit_from_moments,
    horizontal,
    latent_growth,
    likelihood_ratio,
    saturated,
    vertical,
)
from discreet.federated.likelihood_leakage import determining
from discreet.federated.masking import Masks
from discreet.federated.normal_likelihood import minus_two_log_likelihood
from discreet.federated.vertical_likelihood import Noise


def law(rng, size):
    factor = np.tril(rng.normal(size=(size, size))) * 0.4 + np.eye(size)
    return rng.normal(size=size), factor @ factor.T


def table(x, names=None):
    return pl.DataFrame(
        {name: x[:, at] for at, name in enumerate(names or [f"x{i + 1}" for i in range(x.shape[1])])}
    )


@st.composite
def layouts(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    rows, size = draw(st.integers(6, 40)), draw(st.integers(2, 5))
    mu, sigma = law(rng, size)
    x = (
        rng.normal(size=(rows, size)) @ np.linalg.cholesky(sigma).T * draw(st.sampled_from([0.1, 1.0, 100.0]))
        + mu
    )
    frame = table(x)
    kind = draw(st.sampled_from(["vertical", "horizontal", "complex"]))

    def split(columns, many):
        order = [columns[i] for i in rng.permutation(len(columns))]
        cuts = sorted(rng.choice(np.arange(1, len(order)), size=min(many, len(order)) - 1, replace=False))
        return [order[a:b] for a, b in zip([0, *cuts], [*cuts, len(order)], strict=True)]

    if kind == "vertical":
        parts = [frame.select(part) for part in split(frame.columns, 3)]
        made = partial(vertical, parts)
    elif kind == "horizontal":
        made = partial(horizontal, [frame[: rows // 3], frame[rows // 3 : rows // 2], frame[rows // 2 :]])
    else:
        groups = []
        for at, part in enumerate((frame[: rows // 2], frame[rows // 2 :])):
            parts = split(frame.columns, 2 + at)
            groups.append({f"site {(at + i) % 3}": part.select(own) for i, own in enumerate(parts)})
        made = partial(complex_layout, groups)
    return made(seed=draw(st.integers(0, 99))), x, mu, sigma, frame.columns, draw(st.integers(1, 50))


@settings(max_examples=examples(40))
@given(layouts())
def test_secure_equals_pooled_for_every_layout_seed_order_and_split(case):
    layout, x, mu, sigma, names, chunk = case
    secure = SecureMLE(layout, chunk_rows=chunk, seed=chunk)
    order = [names.index(name) for name in secure.variables]
    pooled = minus_two_log_likelihood(x, mu, sigma)
    found = secure.log_likelihood(mu[order], sigma[np.ix_(order, order)])
    assert found == pytest.approx(pooled, abs=1e-5, rel=1e-9)


@settings(max_examples=examples(40))
@given(layouts())
def test_sufficient_and_plain_modes_give_the_same(case):
    layout, x, mu, sigma, names, chunk = case
    pooled = minus_two_log_likelihood(x, mu, sigma)
    for mode in ("sufficient", "plain"):
        secure = SecureMLE(layout, mode=mode, chunk_rows=chunk, seed=chunk)
        order = [names.index(name) for name in secure.variables]
        found = secure.log_likelihood(mu[order], sigma[np.ix_(order, order)])
        assert found == pytest.approx(pooled, abs=1e-5, rel=1e-9)


@pytest.fixture(scope="module")
def growth():
    model = latent_growth(5)
    moments = model.implied(np.array([0.4, 0.5, 0.05, 0.1, 2.0, -0.1]))
    x = np.random.default_rng(11).multivariate_normal(*moments, 150)
    return model, x, fit_from_moments(150, x.mean(axis=0), np.cov(x.T, bias=True), model)


@pytest.mark.parametrize("optimizer", ["scoring", pytest.param("L-BFGS-B", marks=pytest.mark.slow)])
def test_a_secure_fit_is_the_pooled_fit(growth, optimizer):
    model, x, pooled = growth
    fit = SecureMLE([x[:, :2], x[:, 2:3], x[:, 3:]], optimizer=optimizer, seed=1).fit(model)
    assert fit.converged
    for name in model.names:
        assert fit.estimates[name] == pytest.approx(pooled.estimates[name], abs=1e-5)
        assert fit.standard_errors[name] == pytest.approx(pooled.standard_errors[name], rel=5e-3)
    assert fit.minus_two_ll == pytest.approx(pooled.minus_two_ll, abs=1e-5)
    assert fit.n_evaluations == fit.leakage.evaluations


def test_a_horizontal_fit_and_a_sufficient_fit_are_the_pooled_fit(growth):
    model, x, pooled = growth
    rows = horizontal([table(x[:50]), table(x[50:70]), table(x[70:])])
    fits = [
        SecureMLE(rows, seed=1).fit(model, hessian="expected"),
        SecureMLE(np.hsplit(x, [2, 4]), mode="sufficient", seed=1).fit(model),
    ]
    for fit in fits:
        assert list(fit.estimates.values()) == pytest.approx(list(pooled.estimates.values()), abs=1e-5)


def test_likelihood_ratios_over_sites_are_the_pooled_ones(growth):
    model, x, pooled = growth
    secure = SecureMLE(np.hsplit(x, [2, 4]), seed=1)
    reduced = latent_growth(5, slope_mean=False)
    ratio = likelihood_ratio(secure.fit(model, hessian="expected"), secure.fit(reduced, hessian="expected"))
    moments = x.mean(axis=0), np.cov(x.T, bias=True)
    assert ratio.chi2 == pytest.approx(
        likelihood_ratio(pooled, fit_from_moments(150, *moments, reduced)).chi2, abs=1e-4
    )


def test_a_fit_goes_on_where_a_failed_site_ended_it(growth, tmp_path):
    model, x, pooled = growth
    path = tmp_path / "fit.jsonl"
    first = SecureMLE(np.hsplit(x, [2, 4]), evaluations=path, seed=1)
    holder = first.layout.holders["node 3"]
    answer, left = holder.receive, iter(range(70))

    def failing(message):
        if message.name == "masks" and next(left, None) is None:
            raise ProtocolError("node 3 does not answer")
        return answer(message)

    holder.receive = failing
    with pytest.raises(ProtocolError, match="does not answer"):
        first.fit(model)
    made, kept = first.evaluations, path.read_text().splitlines()
    again = SecureMLE(np.hsplit(x, [2, 4]), evaluations=path, seed=2)
    fit = again.fit(model)
    assert list(fit.estimates.values()) == pytest.approx(list(pooled.estimates.values()), abs=1e-5)
    added = path.read_text().splitlines()
    assert added[: len(kept)] == kept
    assert len(set(added)) == len(added)  # no place was asked for twice
    assert len(added) - len(kept) == again.evaluations
    # What was learned before the failure is still known.
    assert fit.leakage.evaluations == len(added) - 1
    assert made > 60
    other = SecureMLE(np.hsplit(x[:100], [2, 4]), evaluations=path)
    with pytest.raises(InputError, match="other data"):
        other.fit(model)


def test_evaluations_end_where_the_noise_no_longer_hides(growth):
    _, x, _ = growth
    secure = SecureMLE(np.hsplit(x, [2, 4]), max_evaluations=2)
    law = np.zeros(5), np.eye(5)
    secure.log_likelihood(*law)
    secure.log_likelihood(*law)
    with pytest.raises(ProtocolError, match="all that the noise hides"):
        secure.log_likelihood(*law)
    with pytest.raises(ParameterError, match="hides the rows from averaging over 4 evaluations"):
        SecureMLE(np.hsplit(x, [2, 4]), noise_scale=20.0, max_evaluations=5).log_likelihood(*law)


@pytest.mark.parametrize(
    ("layout", "match"),
    [
        (lambda x: [x[:, :1], x[:9, 1:]], "same number of rows"),
        (lambda x: vertical([table(x), table(x[:, :1])]), "lies with two holders"),
        (lambda x: [table(x), table(x[:, :1], ["x2"])], "lie with several holders"),
        (lambda x: [], "empty"),
        (lambda x: vertical([table(x[:, :2]).with_columns(id=pl.Series(range(10))),
                             table(x[:, 2:], ["b"]).with_columns(id=pl.Series(range(1, 11)))], ids="id"),
         "same people"),
    ],
)  # fmt: skip
def test_data_that_do_not_fit_together_are_refused(layout, match):
    x = np.random.default_rng(0).normal(size=(10, 3))
    with pytest.raises((ParameterError, InputError), match=match):
        SecureMLE(layout(x)).log_likelihood(np.zeros(3), np.eye(3))


def test_missing_values_and_bad_laws_are_refused_or_infinite():
    x = np.random.default_rng(0).normal(size=(10, 2))
    gaps = pl.DataFrame({"y": [None, *map(float, range(9))]})
    with pytest.raises(ColumnError, match="'y' has missing or infinite values"):
        SecureMLE([table(x), gaps]).log_likelihood(np.zeros(3), np.eye(3))
    secure = SecureMLE([x[:, :1], x[:, 1:]])
    assert secure.log_likelihood(np.zeros(2), np.array([[1.0, 2.0], [2.0, 1.0]])) == math.inf
    assert secure.evaluations == 0
    with pytest.raises(ParameterError, match="mu must hold 2"):
        secure.log_likelihood(np.zeros(3), np.eye(3))
    with pytest.raises(ParameterError, match="symmetric"):
        secure.log_likelihood(np.zeros(2), np.array([[1.0, 0.2], [0.1, 1.0]]))


def test_one_holder_needs_no_protocol():
    x = np.random.default_rng(0).normal(size=(10, 2))
    with pytest.warns(DiscreetWarning, match="no protocol is needed"):
        found = SecureMLE([x]).log_likelihood(np.zeros(2), np.eye(2))
    assert found == pytest.approx(minus_two_log_likelihood(x, np.zeros(2), np.eye(2)))


def test_the_wrong_shape_from_a_node_ends_the_run():
    x = np.random.default_rng(0).normal(size=(10, 3))
    secure = SecureMLE(np.hsplit(x, [1, 2]))
    holder = secure.layout.holders["node 2"]
    answer = holder.receive

    def wrong(message):
        replies = answer(message)
        for reply in replies:
            if "a1" in reply.values:
                reply.values["a1"] = reply.values["a1"][:5]
        return replies

    holder.receive = wrong
    with pytest.raises(ProtocolError, match="another shape"):
        secure.log_likelihood(np.zeros(3), np.eye(3))


# What leaks, played as attacks.


def recovered_moments(secure, size, rng):
    """Solve for the sums behind the likelihood from evaluations at different parameters."""
    rows, values = [], []
    for _ in range(determining(size)):
        mu, sigma = law(rng, size)
        inverse = np.linalg.inv(sigma)
        constant = secure.rows * (
            size * math.log(2 * math.pi) + np.linalg.slogdet(sigma)[1] + mu @ inverse @ mu
        )
        upper = np.triu_indices(size)
        weights = np.where(upper[0] == upper[1], 1.0, 2.0) * inverse[upper]
        rows.append(np.concatenate([weights, -2 * inverse @ mu]))
        values.append(secure.log_likelihood(mu, sigma) - constant)
    return np.linalg.solve(np.array(rows), np.array(values))


def test_nine_evaluations_recover_the_moments_of_three_variables():
    """The leak that cannot be helped: the report says when it has happened."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(60, 3)) @ np.array([[1, 0.3, 0], [0, 1, 0.2], [0, 0, 1]]) + 2
    secure = SecureMLE(np.hsplit(x, [1, 2]))
    secure.log_likelihood(np.zeros(3), np.eye(3))
    assert secure.leakage.evaluations < secure.leakage.determining == 9
    assert "was not reached" in secure.leakage.meaning
    secure = SecureMLE(np.hsplit(x, [1, 2]), seed=1)
    secure._start()
    found = recovered_moments(secure, 3, rng)
    products = (x.T @ x)[np.triu_indices(3)]
    np.testing.assert_allclose(found, np.concatenate([products, x.sum(axis=0)]), atol=1e-3)
    assert secure.evaluations == 9
    assert "knows them" in secure.leakage.meaning
    assert secure.leakage.learned[0].determined


class Bounded(Noise):
    """The noise of the published code: uniform on (500, 2000), new in every evaluation."""

    def fresh(self, name, shape, scales):
        return np.random.default_rng(int(self.masks.whole(60))).uniform(500, 2000, shape)

    def same(self, name, shape, scales, label):
        return self.fresh(name, shape, scales)


def averaged(noise, estimate, times=200):
    """What the coordinator makes of everything that it sees of the first holder in many evaluations."""
    x = np.random.default_rng(6).normal(size=(400, 2))
    secure = SecureMLE(
        np.hsplit(x, [1]), noise_scale=1000.0, max_evaluations=times, margin=1.0, keep=True, seed=8
    )
    if noise is not None:
        for party in (secure.central, *secure.layout.holders.values()):
            party.noise = noise(party.masks)
    sigma = np.eye(2)
    for _ in range(times):
        secure.log_likelihood(np.zeros(2), sigma)
        if noise is not None:
            for role in secure.layout.holders["node 1"]._roles.values():
                role._kept.clear()
    messages = secure.transcript.contents
    sent = [one.values["mean"] for one in messages if one.name == "first"]
    back = [one.values["a1"] for one in messages if one.name == "answers" and one.sender == "node 1"]
    seen = np.array([a1 + mean for a1, mean in zip(back, sent, strict=True)])[:, :, 0]
    return float(np.sqrt(np.mean((estimate(seen) - x[:, 0]) ** 2)))


def test_bounded_noise_averages_out_as_the_theory_says():
    middle = averaged(Bounded, lambda seen: (seen.max(axis=0) + seen.min(axis=0)) / 2 - 1250)
    expected = 1500 / math.sqrt(2 * 201 * 202)
    assert expected == pytest.approx(5.3, abs=0.05)
    assert middle == pytest.approx(expected, rel=0.2)  # 6 percent is one standard error


def test_averaging_takes_nothing_off_the_first_holder_here():
    """The same noise comes every time, so that 200 evaluations tell what one tells."""
    error = averaged(None, lambda seen: seen.mean(axis=0))
    assert error > 500


class Kept(Noise):
    """A plausible mistake: the first holder keeps Q, but not on the scale of its data."""

    def divided(self, noise, inverse):
        return noise


def solved_by_two_covariances(noise):
    x = np.random.default_rng(7).normal(size=(25, 2))
    secure = SecureMLE(np.hsplit(x, [1]), noise_scale=1000.0, max_evaluations=2, keep=True, seed=1)
    if noise is not None:
        for holder in secure.layout.holders.values():
            holder.noise = noise(holder.masks)
    seen = []
    for size in (1.0, 2.0):
        secure.log_likelihood(np.zeros(2), np.eye(2) * size)
        messages = secure.transcript.contents
        mean = [one.values["mean"] for one in messages if one.name == "first"][-1]
        answers = [one.values for one in messages if one.name == "answers" and one.sender == "node 1"][-1]
        seen.append((answers["a1"] * size + mean, answers["a2"] + mean / size))
    minus = (seen[0][1] - seen[1][1]) / (1 - 1 / 2)
    return float(np.abs((seen[0][0] + minus) / 2 - x[:, :1]).max())


def test_two_covariances_solve_for_the_rows_where_kept_noise_is_not_on_the_scale_of_the_data():
    assert solved_by_two_covariances(Kept) < 1e-6
    assert solved_by_two_covariances(None) > 10


class OpenTotals(Noise):
    """The source's running total, which is passed on in the clear."""

    def whole(self):
        return 0


def equations_of_the_next_holder(noise):
    """The second holder is told P_1: each evaluation is a linear equation about the rows of the first."""
    rows = 6
    x = np.random.default_rng(8).normal(size=(rows, 2))
    secure = SecureMLE(np.hsplit(x, [1]), noise_scale=1000.0, max_evaluations=rows + 1, keep=True, seed=1)
    if noise is not None:
        for holder in secure.layout.holders.values():
            holder.noise = noise(holder.masks)
    for _ in range(rows + 1):
        secure.log_likelihood(np.zeros(2), np.eye(2))
    messages = secure.transcript.contents
    totals = [int(one.values["total"], 16) for one in messages if one.name == "masks"]
    totals = np.array([(one - (1 << 192) if one >> 191 else one) / 2**64 for one in totals])
    told = np.array([one.values["noise"][:, 0] for one in messages if one.name == "conditional"])
    right = totals - rows * math.log(2 * math.pi) - (told**2).sum(axis=1)
    solved = np.linalg.solve(np.hstack([np.ones((rows + 1, 1)), -2 * told]), right)
    return float(np.abs(solved[1:] - x[:, 0]).max())


def test_an_open_total_gives_the_rows_away_after_as_many_evaluations_as_there_are_values():
    assert equations_of_the_next_holder(OpenTotals) < 1e-3
    assert equations_of_the_next_holder(None) > 10


def test_the_coordinator_and_the_next_holder_together_recover_rows():
    """The collusion that the report names: A1, P and R of the same evaluation."""
    x = np.random.default_rng(9).normal(size=(20, 3))
    secure = SecureMLE(np.hsplit(x, [1, 2]), keep=True, seed=1)
    secure.log_likelihood(np.zeros(3), np.eye(3))
    messages = secure.transcript.contents
    mean = next(one.values["mean"] for one in messages if one.name == "first")
    a1 = next(one.values["a1"] for one in messages if one.name == "answers" and one.sender == "node 1")
    r = next(one.values["r"] for one in messages if one.name == "masks" and one.sender == "node 1")
    np.testing.assert_allclose(a1 + mean - r, x[:, :1], atol=1e-8)
    assert any(
        "coordinator and node 2 recover the rows of node 1" in one for one in secure.leakage.collusions
    )


def test_a_seed_makes_runs_repeatable_and_is_warned_of():
    x = np.random.default_rng(0).normal(size=(10, 3))
    runs = [SecureMLE(np.hsplit(x, [1, 2]), seed=4, keep=True) for _ in range(2)]
    for run in runs:
        run.log_likelihood(np.zeros(3), np.eye(3))
    one, other = (run.transcript.contents for run in runs)
    assert all(
        np.array_equal(a.values.get("a1"), b.values.get("a1")) for a, b in zip(one, other, strict=True)
    )
    assert "seed" in runs[0].leakage.meaning
    assert isinstance(runs[0].central.masks, Masks)


def test_saturated_fits_by_secure_evaluations():
    x = np.random.default_rng(1).normal(size=(40, 2)) @ np.array([[1.0, 0.5], [0, 1.0]])
    fit = SecureMLE(np.hsplit(x, [1]), seed=1).fit(saturated(2), hessian="expected")
    np.testing.assert_allclose(fit.implied[1], np.cov(x.T, bias=True), atol=1e-4)
