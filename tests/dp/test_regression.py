from __future__ import annotations

import math
import sys
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata, dp
from discreet.core.errors import DiscreetError, InputError, ParameterError
from discreet.dp import regression_kernels
from discreet.dp.linear_regression import _Sums
from discreet.dp.noisy_gradients import Slopes, drawn_records
from discreet.dp.regression_records import KERNELS, CheckLoss, read_records

BOUNDS = {"a": (-5, 5)}


def people(n: int = 2000, **roles) -> Microdata:
    rng = np.random.default_rng(5)
    a = rng.uniform(-5, 5, n)
    frame = pl.DataFrame(
        {"a": a, "y": 1 + 2 * a + rng.normal(size=n), "w": rng.uniform(0.5, 3, n), "who": range(n)}
    )
    return Microdata(frame, **roles)


def whole_design(*asked, **more):
    return read_records(*asked, **more).whole()


def line(found) -> np.ndarray:
    return found.detail["coefficients"]["coefficient"].to_numpy()


PROVED = {
    "agd": {"mechanism": "agd", "residual_bound": 10, "steps": 100},
    "sgd": {"mechanism": "sgd", "delta": 1e-6, "records": 2000, "steps": 60, "standardize": True},
    "kng": {"mechanism": "kng", "theta_bound": 4},
}


@pytest.mark.parametrize("mechanism", PROVED)
@pytest.mark.slow
def test_a_proved_mechanism_is_near_the_line_and_says_what_is_proved(mechanism):
    data = people(300 if mechanism == "kng" else 2000)
    found = dp.quantile_regression(data, y="y", x="a", x_bounds=BOUNDS, epsilon=2.0, **PROVED[mechanism])
    assert found.guarantee is not None
    assert found.guarantee.startswith(("(2, 1e-0", "2-diff"))
    seeded = dp.quantile_regression(
        data, y="y", x="a", x_bounds=BOUNDS, epsilon=2.0, seed=1, **PROVED[mechanism]
    )
    again = dp.quantile_regression(
        data, y="y", x="a", x_bounds=BOUNDS, epsilon=2.0, seed=1, **PROVED[mechanism]
    )
    assert seeded.guarantee is None
    assert (line(seeded) == line(again)).all()
    assert line(seeded) == pytest.approx([1, 2], abs=2.5)


def test_what_is_not_proved_claims_nothing_and_is_counted_all_the_same():
    ledger = dp.Ledger(epsilon=1.0)
    found = dp.quantile_regression(people(), y="y", x="a", x_bounds=BOUNDS, epsilon=0.75, ledger=ledger)
    assert found.guarantee is None
    assert any("floating-point" in caveat for caveat in found.caveats)
    assert (ledger.spent.epsilon, ledger.unproved) == (0.75, 1)
    assert not ledger.table()["proved"][0]


def test_a_regression_that_passes_the_budget_is_refused_before_anything_is_drawn(monkeypatch):
    def drawn(*_args, **_kwargs):
        raise AssertionError("noise was drawn")

    for name in ("discrete_gaussian", "chosen_privately"):
        monkeypatch.setattr(f"discreet.dp.noisy_gradients.{name}", drawn)
    monkeypatch.setattr(sys.modules["discreet.dp.linear_regression"], "cube_noise", drawn)
    ledger = dp.Ledger(epsilon=0.5, delta=1e-5)
    with pytest.raises(ParameterError, match="does not allow"):
        dp.quantile_regression(
            people(), y="y", x="a", x_bounds=BOUNDS, epsilon=2.0, ledger=ledger, **PROVED["agd"]
        )
    with pytest.raises(ParameterError, match="does not allow"):
        dp.linear_regression(
            people(), y="y", x="a", x_bounds=BOUNDS, y_bounds=(-20, 20), epsilon=1.0, ledger=ledger
        )
    with pytest.raises(ParameterError, match="seed"):
        dp.linear_regression(
            people(), y="y", x="a", x_bounds=BOUNDS, y_bounds=(-20, 20), epsilon=0.1, ledger=ledger, seed=1
        )
    assert ledger.spent.epsilon == 0


def test_a_replaced_record_is_another_promise_than_one_more():
    ledger = dp.Ledger(epsilon=5.0)
    with pytest.raises(ParameterError, match="adjacency='replace'"):
        dp.quantile_regression(
            people(), y="y", x="a", x_bounds=BOUNDS, epsilon=1.0, adjacency="replace", ledger=ledger
        )
    assert ledger.spent.epsilon == 0


@pytest.mark.slow
def test_several_quantiles_share_the_budget_and_do_not_cross():
    ledger = dp.Ledger(epsilon=1.0, delta=1e-5)
    found = dp.quantile_regression(
        people(),
        y="y",
        x="a",
        x_bounds=BOUNDS,
        tau=[0.9, 0.1, 0.5],
        epsilon=1.0,
        mechanism="agd",
        residual_bound=10,
        at=[-5, 0, {"a": 5}],
        ledger=ledger,
    )
    assert ledger.spent.epsilon <= 1.0
    assert found.detail["constants"]["rho"].sum() == pytest.approx(ledger.table()["rho"][0])
    for _, rows in found.detail["quantiles"].group_by("a"):
        assert rows.sort("tau")["value"].is_sorted()
    assert found.detail["coefficients"].height == 6


@given(
    st.sampled_from(KERNELS),
    st.floats(0.01, 0.99),
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=2),
    st.floats(-1e12, 1e12),
    st.floats(-1e3, 1e3),
)
@settings(max_examples=200, deadline=None)
def test_no_record_moves_a_sum_by_more_than_its_bound(kernel, tau, theta, y, a):
    """What every proved mechanism rests on: sums in whole steps, with or without one record."""
    frame = pl.DataFrame({"a": [0.0, 1.0, a], "y": [0.0, 1.0, y]})
    designs = [
        whole_design(
            Microdata(rows),
            "y",
            "a",
            BOUNDS,
            intercept=True,
            standardize=False,
            missing="error",
            weight=None,
            max_weight=None,
        )
        for rows in (frame, frame.head(2))
    ]
    loss = CheckLoss(tau, 0.5, kernel)
    both = [Slopes(design, loss, 10.0, replace=False, words=dp.os_words) for design in designs]
    one, other = (slopes.sums(np.asarray(theta)) for slopes in both)
    assert (np.abs(one - other) <= both[0].most).all()
    assert int(((one - other) ** 2).sum()) <= both[0].moved
    losses = [slopes.losses(np.asarray(theta)[None], 2.0**-10, 5000)[0] for slopes in both]
    assert 0 <= losses[0] - losses[1] <= 5000
    sums = _Sums.planned(designs[0], "k-norm", 1.0, replaced=False)
    added = [sums.added_up(design, 0.0, 1.0) for design in designs]
    held = [np.clip(design.x, -5, 5) for design in designs]
    assert all((np.abs(values) <= 5).all() for values in held)
    # Terms are within -1…1 only where they were standardized, as they are before anything is added up.
    assert np.abs(added[0] - added[1]).max() <= sums.fine


def test_the_compiled_losses_are_those_of_the_formula():
    design = whole_design(
        people(50),
        "y",
        "a",
        BOUNDS,
        intercept=True,
        standardize=False,
        missing="error",
        weight="w",
        max_weight=3.0,
    )
    theta = np.array([0.3, 1.5])
    for kernel in KERNELS:
        loss = CheckLoss(0.3, 0.7, kernel)
        value, slope, bend = regression_kernels.loss_and_slopes(
            theta, design.x, design.y, design.weights, *loss.numbers
        )
        each, first, second = dp.smoothed_check_loss(design.y - design.x @ theta, 0.3, 0.7, kernel)
        assert value == pytest.approx((design.weights * each).sum())
        assert slope == pytest.approx(-(design.weights * first) @ design.x)
        assert bend == pytest.approx((design.x.T * (design.weights * second)) @ design.x)


def test_gaps_are_refused_by_column_and_left_out_only_when_asked():
    frame = pl.DataFrame({"a": [1.0, None, 3.0, -2.0], "y": [1.0, 2.0, math.inf, 0.5]})
    data = Microdata(frame)
    with pytest.raises(InputError, match="'a' has missing"):
        dp.quantile_regression(data, y="y", x="a", x_bounds=BOUNDS, epsilon=1.0)
    found = dp.quantile_regression(
        data, y="y", x="a", x_bounds=BOUNDS, mechanism="nonprivate", missing="drop", h=5.0
    )
    assert np.isfinite(line(found)).all()


def test_a_file_with_several_records_a_person_is_refused():
    with pytest.raises(ParameterError, match="one record a person"):
        dp.quantile_regression(people(person="who"), y="y", x="a", x_bounds=BOUNDS, epsilon=1.0)


def test_one_record_is_enough_and_tells_nothing():
    data = Microdata(pl.DataFrame({"a": [1.0], "y": [2.0]}))
    assert np.isfinite(line(dp.quantile_regression(data, y="y", x="a", x_bounds=BOUNDS, epsilon=1.0))).all()


CONSTANT = Microdata(pl.DataFrame({"a": [7.0, 9.0, 8.0], "y": [1.0, 2.0, 3.0]}))


def test_a_constant_column_is_refused_by_name_where_nothing_is_promised():
    with pytest.raises(DiscreetError, match="'a' is constant"):
        dp.quantile_regression(CONSTANT, y="y", x="a", x_bounds=BOUNDS, mechanism="nonprivate")


@pytest.mark.parametrize("mechanism", [*PROVED, "opm", "k-norm", "functional"])
def test_under_a_promise_no_file_is_refused_for_what_its_records_are(mechanism):
    """That all records lie beyond a bound is a fact about them, and a refusal would tell it for nothing."""
    if mechanism in {"k-norm", "functional"}:
        found = dp.linear_regression(
            CONSTANT, y="y", x="a", x_bounds=BOUNDS, y_bounds=(0, 5), epsilon=1.0, mechanism=mechanism
        )
    else:
        more = PROVED.get(mechanism, {})
        found = dp.quantile_regression(CONSTANT, y="y", x="a", x_bounds=BOUNDS, epsilon=1.0, **more)
    assert np.isfinite(line(found)).all()


def test_only_a_public_number_of_records_decides_whether_a_grid_is_too_large(monkeypatch):
    monkeypatch.setattr("discreet.dp.noisy_gradients._MOST_ON_A_GRID", 401**2 * 40)
    asked = {"y": "y", "x": "a", "x_bounds": BOUNDS, "epsilon": 1.0, "mechanism": "kng"}
    assert dp.quantile_regression(people(50), **asked).guarantee
    with pytest.raises(ParameterError, match="too long"):
        dp.quantile_regression(people(50), records=50, **asked)
    with pytest.raises(ParameterError, match="too long"):
        dp.quantile_regression(people(50), adjacency="replace", **asked)


def test_standardized_columns_give_the_same_line_without_noise():
    plain, scaled = (
        line(
            dp.quantile_regression(
                people(),
                y="y",
                x="a",
                x_bounds={"a": (-7, 9)},
                mechanism="nonprivate",
                standardize=standardize,
            )
        )
        for standardize in (False, True)
    )
    assert plain == pytest.approx(scaled, abs=1e-5)


@pytest.mark.parametrize("mechanism", ["k-norm", "functional"])
def test_the_line_of_means_is_near_and_proved(mechanism):
    found = dp.linear_regression(
        people(20_000), y="y", x="a", x_bounds=BOUNDS, y_bounds=(-15, 15), epsilon=1.0, mechanism=mechanism
    )
    assert found.guarantee == "1-differential privacy against adding or removing one record."
    assert line(found) == pytest.approx([1, 2], abs=0.25)


def test_noise_of_the_cube_has_its_law():
    rate = Fraction(1, 2)
    words = dp.seeded_words(np.random.default_rng(11))
    drawn = np.stack([dp.cube_noise(rate, 2, words) for _ in range(700)])
    largest = np.abs(drawn).max(axis=1)
    k = np.arange(60)
    weights = ((2 * k + 1) ** 2 - np.maximum(2 * k - 1, 0) ** 2) * np.exp(-k / 2)
    weights[0] = 1.0
    chances = weights / weights.sum()
    for at in range(8):
        expected = chances[at]
        assert (largest == at).mean() == pytest.approx(expected, abs=5 * math.sqrt(expected / 700) + 1e-3)


def test_records_are_drawn_each_with_the_chance_that_is_counted():
    gap = Fraction(1, 4)
    words = dp.seeded_words(np.random.default_rng(12))
    seen = np.zeros(40)
    for _ in range(800):
        rows = drawn_records(40, gap, words)
        assert (np.diff(rows) > 0).all()
        seen[rows] += 1
    chance = 1 - math.exp(-0.25)
    assert seen / 800 == pytest.approx(chance, abs=5 * math.sqrt(chance * (1 - chance) / 800))


def _divergence(p: np.ndarray, q: np.ndarray, order: int) -> float:
    return float(np.log(np.sum(np.exp(order * np.log(p) + (1 - order) * np.log(q)))) / (order - 1))


@pytest.mark.parametrize(
    ("noise", "rate", "order"), [(1.0, 0.1, 2), (2.0, 0.3, 5), (0.8, 0.02, 8), (4.0, 0.01, 32)]
)
def test_subsampled_steps_cost_no_more_than_is_counted(noise, rate, order):
    """The closed form is met by continuous noise, and the bound is not passed by discrete noise, both ways."""
    from discreet.dp.calibration import _divergence as counted

    fine = 400
    grid = np.arange(-60 * fine, 60 * fine + 1) / fine
    here = np.exp(-(grid**2) / (2 * noise**2))
    there = (1 - rate) * here + rate * np.exp(-((grid - 1) ** 2) / (2 * noise**2))
    kept = here > 1e-250
    here, there = here[kept], there[kept]
    here, there = here / here.sum(), there / there.sum()
    worst = max(_divergence(there, here, order), _divergence(here, there, order))
    assert counted(order, noise, rate, discrete=False) == pytest.approx(worst, rel=1e-4)
    whole = np.arange(-80, 81)
    moved = 2
    here = np.exp(-(whole**2) / (2 * (moved * noise) ** 2))
    there = (1 - rate) * here + rate * np.exp(-((whole - moved) ** 2) / (2 * (moved * noise) ** 2))
    kept = here > 1e-250
    here, there = here[kept] / here[kept].sum(), there[kept] / there[kept].sum()
    worst = max(_divergence(there, here, order), _divergence(here, there, order))
    assert worst <= counted(order, noise, rate, discrete=True)


def test_sums_of_products_in_pieces_are_those_of_the_whole_file(monkeypatch):
    monkeypatch.setattr("discreet.dp.regression_records._AT_ONCE", 7)
    records = read_records(
        people(50),
        "y",
        "a",
        {"a": (-3, 4)},
        intercept=True,
        standardize=True,
        missing="error",
        weight="w",
        max_weight=3.0,
        y_bounds=(-8, 8),
    )
    design = records.whole()
    sums = _Sums.planned(records, "k-norm", 1.0, replaced=False)
    share = design.weights / 3.0
    x, y = design.x, design.y / 8
    products = [x[:, 0] * x[:, 0], x[:, 0] * x[:, 1], x[:, 1] * x[:, 1], x[:, 0] * y, x[:, 1] * y]
    wanted = [int(np.rint(np.clip(own * share, -1, 1) * sums.fine).sum()) for own in products]
    assert sums.added_up(records, 0.0, 8.0).tolist() == wanted
    assert sums.added_up(design, 0.0, 8.0).tolist() == wanted
    assert np.abs(x).max() <= 1
    assert np.abs(design.y).max() <= 8


def published_design(which: int, seed: int, n: int = 2500) -> Microdata:
    """The first two designs of the literature on private quantile regression."""
    rng = np.random.default_rng(seed)
    if which == 1:
        a, b = rng.normal(0, 3, n), rng.normal(0, 1, n)
        y = 3 + 2 * a - b + rng.normal(0, 2, n)
    else:
        a, b = rng.uniform(0, 1, (2, n))
        y = 3 + 2 * a + 0.5 * b + rng.exponential(10, n)
    return Microdata(pl.DataFrame({"a": a, "b": b, "y": y}))


DESIGN_BOUNDS = {1: [(-10, 10)] * 2, 2: [(0, 1)] * 2}


@pytest.mark.parametrize("which", [1, 2])
@pytest.mark.parametrize("tau", [0.05, 0.25, 0.5, 0.75, 0.95, 0.99])
def test_objective_perturbation_settles_on_the_published_designs_at_every_quantile(which, tau):
    for seed in range(6):
        found = dp.quantile_regression(
            published_design(which, seed),
            y="y",
            x=["a", "b"],
            x_bounds=DESIGN_BOUNDS[which],
            tau=tau,
            epsilon=1.0,
            seed=seed,
        )
        assert found.figures["converged"] is True


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("h", [0.01, 0.5, 20.0])
def test_objective_perturbation_settles_with_every_kernel_and_bandwidth(kernel, h):
    """Flat losses, corners in the slope, a ridge that outweighs the records: the search has no favorites."""
    for tau in (0.01, 0.5, 0.999):
        asked = {"tau": tau, "kernel": kernel, "h": h, "epsilon": 1.0, "seed": 1}
        found = dp.quantile_regression(
            published_design(2, 3), y="y", x=["a", "b"], x_bounds=DESIGN_BOUNDS[2], **asked
        )
        assert found.figures["converged"] is True


def test_a_record_far_from_all_others_does_not_keep_the_fit_from_settling():
    """The sum of losses is then so large that no digit of it moves; slopes are bounded and still do."""
    rng = np.random.default_rng(1)
    y = np.where(rng.uniform(size=3000) < 0.01, 1e250, rng.normal(0, 1e5, 3000))
    frame = pl.DataFrame({"a": rng.uniform(0, 1e6, 3000), "b": rng.uniform(0, 1e-6, 3000), "y": y})
    for tau in (0.5, 0.99):
        found = dp.quantile_regression(
            Microdata(frame), y="y", x=["a", "b"], x_bounds=[(0, 1e6), (0, 1e-6)], epsilon=1.0, tau=tau
        )
        assert found.figures["converged"] is True


def test_a_fit_that_does_not_settle_gives_its_best_place_and_says_what_was_spent(monkeypatch):
    monkeypatch.setattr("discreet.dp.private_fits._NEWTON_STEPS", 1)
    ledger = dp.Ledger(epsilon=1.0)
    found = dp.quantile_regression(people(), y="y", x="a", x_bounds=BOUNDS, epsilon=0.75, ledger=ledger)
    assert found.figures["converged"] is False
    assert found.guarantee is None
    assert any(
        "did not settle" in caveat and "epsilon = 0.75 was spent" in caveat for caveat in found.caveats
    )
    assert ledger.spent.epsilon == 0.75
    assert np.isfinite(line(found)).all()
    with pytest.raises(InputError, match="Nothing was spent"):
        dp.quantile_regression(people(), y="y", x="a", x_bounds=BOUNDS, mechanism="nonprivate")


def test_what_is_refused_after_it_was_paid_for_says_what_was_spent(monkeypatch):
    def refused(*_args, **_kwargs):
        raise InputError("The walk was cut short.")

    monkeypatch.setattr("discreet.dp.private_fits.minimizer", refused)
    ledger = dp.Ledger(epsilon=1.0)
    with pytest.raises(InputError, match=r"cut short\. epsilon = 0.5 was spent"):
        dp.quantile_regression(people(), y="y", x="a", x_bounds=BOUNDS, epsilon=0.5, ledger=ledger)
    assert ledger.spent.epsilon == 0.5


def test_descent_whose_noise_cannot_be_drawn_is_refused_before_it_is_paid_for(monkeypatch):
    """With many columns and a budget in many parts, noise that is drawn a second time passes what samplers hold."""

    def smallest_draw(slopes, *, rho, first, bound):
        return slopes.noisy(slopes.sums(np.zeros(61)), 0.3 * first)

    monkeypatch.setattr("discreet.dp.noisy_gradients.adaptive_descent", smallest_draw)
    names = [f"x{i}" for i in range(60)]
    data = Microdata(pl.DataFrame({**{name: [0.0, 1.0] for name in names}, "y": [0.0, 1.0]}))
    asked = {"y": "y", "x": names, "x_bounds": [(0, 1)] * 60, "mechanism": "agd", "residual_bound": 10}
    refused = 0
    for power in range(16, 34):
        ledger = dp.Ledger(epsilon=1.0, delta=1e-5)
        try:
            dp.quantile_regression(data, **asked, epsilon=1.0, steps=2**power, ledger=ledger)
        except ParameterError:
            refused += 1
            assert ledger.spent.epsilon == 0
    assert refused


def test_adaptive_descent_with_the_steps_of_its_source_says_that_fewer_are_better():
    asked = {"y": "y", "x": "a", "x_bounds": BOUNDS, "mechanism": "agd", "residual_bound": 10, "epsilon": 1.0}
    assert any("Give steps" in caveat for caveat in dp.quantile_regression(people(200), **asked).caveats)
    assert not any("Give steps" in c for c in dp.quantile_regression(people(200), steps=30, **asked).caveats)
    assert "not recommended" in dp.quantile_regression.__doc__


def test_the_list_of_methods_says_which_mechanism_is_not_recommended():
    from discreet.workflow.catalog import catalog

    listed = {entry.name: entry.question for entry in catalog()}
    assert "not recommended" in listed["dp.quantile_regression, agd"]
