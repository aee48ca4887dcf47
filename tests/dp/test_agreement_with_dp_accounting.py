"""Another accountant comes to the same budgets, or to smaller ones where ours are bounds."""

from __future__ import annotations

import math

import pytest

from discreet import dp

accounting = pytest.importorskip("dp_accounting", reason="the extra dp is not installed")
PRICES = [(0.3, 1e-5), (1.0, 1e-6), (4.0, 1e-8)]


def spent(noise, delta):
    accountant = accounting.pld.PLDAccountant()
    accountant.compose(accounting.GaussianDpEvent(noise))
    return accountant.get_epsilon(delta)


@pytest.mark.parametrize(("epsilon", "delta"), PRICES)
def test_the_analytic_gaussian_spends_what_it_says_and_no_less(epsilon, delta):
    noise = dp.gaussian_sigma(1, epsilon, delta, calibration="analytic")
    assert spent(noise, delta) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), PRICES)
def test_the_rho_of_a_budget_never_spends_more_than_the_budget(epsilon, delta):
    rho = dp.zcdp_from(epsilon, delta)
    found = spent(math.sqrt(1 / (2 * rho)), delta)
    assert 0.6 * epsilon < found <= epsilon


@pytest.mark.parametrize("rate", [0.005, 0.02, 0.2])
def test_many_draws_from_samples_add_up_alike(rate):
    event = accounting.PoissonSampledDpEvent(rate, accounting.GaussianDpEvent(1.3))
    accountant = accounting.rdp.RdpAccountant()
    accountant.compose(event, 800)
    ours = dp.subsampled_gaussian_epsilon(1.3, rate, 800, 1e-6, discrete=False)
    assert ours == pytest.approx(accountant.get_epsilon(1e-6), rel=0.02)


@pytest.mark.parametrize("rhos", [[0.005], [0.01, 0.02, 0.05], [0.5, 1.5]])
@pytest.mark.parametrize("delta", [1e-8, 1e-5, 1e-3])
def test_several_releases_with_a_rho_cost_together_what_another_accountant_says(rhos, delta):
    ours = dp.together([dp.Cost("gaussian", "zcdp", rho=rho) for rho in rhos], delta=delta).epsilon
    # Among orders as fine as ours; its own are coarse, and give a little more.
    orders = [1 + step / 20 for step in range(1, 20)] + [2 + step / 4 for step in range(1200)]
    accountant = accounting.rdp.RdpAccountant(orders)
    for rho in rhos:
        accountant.compose(accounting.GaussianDpEvent(math.sqrt(1 / (2 * rho))))
    theirs = accountant.get_epsilon(delta)
    assert ours == pytest.approx(theirs, rel=2e-3)
    assert ours <= theirs * (1 + 1e-9)
