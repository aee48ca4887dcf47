"""Private networks: what they claim, what it costs, and that it is entered before anything is drawn."""

import math

import numpy as np
import polars as pl
import pytest

pytest.importorskip("torch", reason="the networks need torch: pip install 'discreet[deep]'")

from discreet import Microdata, dp
from discreet.core.errors import DiscreetError, ParameterError
from discreet.dp import Ledger, subsampled_gaussian_epsilon, subsampled_gaussian_noise
from discreet.synth import DPGAN, PATEGAN, load, private_gans

RNG = np.random.default_rng(7)
SEX = RNG.choice(["f", "m"], 600, p=[0.7, 0.3])
PEOPLE = Microdata(
    pl.DataFrame({"sex": SEX, "age": RNG.integers(18, 90, 600), "works": RNG.random(600) < 0.6})
)
DOMAIN = {"sex": ["f", "m"], "age": (18, 90)}
SMALL = {
    "dpgan": DPGAN(4.0, domain=DOMAIN, steps=4, width=16, critic=8),
    "pategan": PATEGAN(8.0, domain=DOMAIN, steps=3, width=16, critic=8, teachers=10),
}


@pytest.mark.parametrize("kind", SMALL)
def test_the_price_is_entered_and_claimed(kind):
    plan = SMALL[kind]
    ledger = Ledger(plan.epsilon, plan.delta)
    fitted = plan.fit(PEOPLE, ledger=ledger)
    assert fitted.guarantee.startswith(f"({plan.epsilon:g}, 1e-06)-differential privacy against adding")
    assert ledger.left == pytest.approx(0, abs=1e-9)
    made = fitted.sample(50, seed=1).frame
    assert made.schema == PEOPLE.frame.schema
    assert made["age"].drop_nulls().is_between(18, 90).all()


@pytest.mark.parametrize("kind", SMALL)
def test_a_refused_price_draws_nothing(kind, monkeypatch):
    def drawn(*_):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(dp, "discrete_gaussian", drawn)
    with pytest.raises(ParameterError, match="does not allow"):
        SMALL[kind].fit(PEOPLE, ledger=Ledger(0.5, 1e-6))


@pytest.mark.parametrize("kind", SMALL)
def test_a_seed_repeats_the_model_and_voids_the_guarantee(kind, tmp_path):
    fitted = SMALL[kind].fit(PEOPLE, seed=3)
    assert fitted.guarantee is None
    again = load(fitted.save(tmp_path / "private.model"))
    once = fitted.sample(40, seed=1).frame
    assert once.equals(again.sample(40, seed=1).frame)
    assert once.equals(SMALL[kind].fit(PEOPLE, seed=3).sample(40, seed=1).frame)
    with pytest.raises(ParameterError, match="voids"):
        SMALL[kind].fit(PEOPLE, ledger=Ledger(9.0, 1e-5), seed=3)


def test_bad_parameters_are_refused_before_a_budget_is_touched():
    for wrong, named in (
        ({"rate": 0.9}, "rate"),
        ({"steps": 0}, "steps"),
        ({"records_per_person": 2}, "person"),
    ):
        with pytest.raises(ParameterError, match=named):
            DPGAN(1.0, **wrong)
    for wrong in ({"teachers": 0}, {"questions": 0}, {"learning_rate": 0.0}):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            PATEGAN(1.0, **wrong)
    ledger = Ledger(1.0, 1e-6)
    with pytest.raises(DiscreetError, match="would be read off the data"):
        DPGAN(1.0).fit(PEOPLE, ledger=ledger)
    assert ledger.left == 1.0


def test_what_is_spent_besides_is_counted_with_the_steps():
    alone = subsampled_gaussian_epsilon(2.0, 0.02, 300, 1e-6)
    assert subsampled_gaussian_epsilon(2.0, 0.02, 300, 1e-6, besides=0.0) == alone
    more = subsampled_gaussian_epsilon(2.0, 0.02, 300, 1e-6, besides=0.01)
    assert alone < more < alone + dp.epsilon_from_zcdp(0.01, 1e-6)
    noise = subsampled_gaussian_noise(1.0, 1e-6, 0.02, 300, besides=0.01)
    assert subsampled_gaussian_epsilon(noise, 0.02, 300, 1e-6, besides=0.01) <= 1.0
    with pytest.raises(ParameterError, match="besides"):
        subsampled_gaussian_epsilon(2.0, 0.02, 300, 1e-6, besides=math.nan)


def test_the_budget_of_a_dpgan_holds_by_another_accountant():
    accounting = pytest.importorskip("dp_accounting", reason="dp-accounting is in the extra dp")
    from dp_accounting.rdp import RdpAccountant

    plan = DPGAN(1.0, steps=200)
    besides = 0.2 * dp.largest_rho(1.0, 1e-6)
    _, share, most, variance = plan._noise(besides)
    theirs = RdpAccountant()
    theirs.compose(accounting.GaussianDpEvent(1 / math.sqrt(2 * besides)))
    step = accounting.PoissonSampledDpEvent(share, accounting.GaussianDpEvent(math.sqrt(variance) / most))
    theirs.compose(accounting.SelfComposedDpEvent(step, 200))
    assert theirs.get_epsilon(1e-6) <= 1.0


@pytest.mark.parametrize("kind", SMALL)
def test_every_step_moves_the_progress_bar(kind, monkeypatch):
    seen = []

    def track(steps, *, description, progress):
        for step in steps:
            seen.append((description, progress, step))
            yield step

    monkeypatch.setattr(private_gans, "track", track)
    SMALL[kind].fit(PEOPLE, progress=True, seed=3)
    assert seen == [("Training", True, step) for step in range(SMALL[kind].steps)]
