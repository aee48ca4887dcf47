"""Records rebuilt from explanations: what must be found, what must not, and what a guard does to it."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import attack, dp
from discreet.core.errors import DiscreetError, InputError, ParameterError

WEIGHTS = np.array([1.0, -2.0, 0.5, 3.0])


def line(rows):
    return rows @ WEIGHTS[: rows.shape[1]]


def rows(count, columns=4, seed=1):
    return np.random.default_rng(seed).normal(size=(count, columns))


@pytest.fixture(scope="module")
def people():
    table = rows(160)
    return table[:20], table[20:60], table[60:]


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 4), st.integers(0, 2**32))
def test_a_linear_model_gives_everything_away(columns, seed):
    table = np.random.default_rng(seed).normal(size=(60, columns))
    for model in ("linear", "affine-per-feature"):
        found = attack.shapley_reconstruction(
            line, table[:10], table[10:30], table[30:], attack=model, explainer="linear"
        )
        assert found.figures["mae"] < 1e-8
        assert found.figures["attack_rate"] == 1.0
        assert found.figures["relative_risk"] == pytest.approx(1.0)


def test_two_records_are_enough_for_the_attack_on_each_feature(people):
    reference, known, hidden = people
    found = attack.shapley_reconstruction(line, reference, known[:2], hidden, attack="affine-per-feature")
    # Ranges are those of the attacker's two records; what is found is exact all the same.
    assert found.figures["mae_original"] < 1e-9
    few = attack.shapley_reconstruction(line, reference, known[:3], hidden)
    assert any("3 records for 4 scores" in caveat for caveat in few.caveats)


def test_an_explanation_that_says_nothing_gives_nothing_away(people):
    reference, known, hidden = people

    def noise(predict, records, background):
        return np.random.default_rng(len(records)).normal(size=records.shape)

    found = attack.shapley_reconstruction(line, reference, known, hidden, explainer=noise, seed=1)
    assert found.figures["risk_low"] <= 0 <= found.figures["risk_high"]
    assert any("no better than a guess" in caveat for caveat in found.caveats)
    assert any("estimates" in caveat for caveat in found.caveats)


def test_risk_is_what_goes_beyond_somebody_elses_explanation(people):
    found = attack.shapley_reconstruction(line, *people, seed=1)
    control = found.figures["control_rate"]
    assert 0 < control < 0.5
    assert found.value == pytest.approx((found.figures["attack_rate"] - control) / (1 - control))
    assert found.detail["features"].height == 4
    assert found.detail["records"]["features_found"].to_list() == [4] * 100


def test_the_attacks_get_better_with_more_records(people):
    reference, known, hidden = people
    found = attack.shapley_reconstruction(
        lambda x: np.tanh(line(x) / 4), reference, known, hidden, attack="linear", sizes=[3, 10, 40], seed=2
    )
    errors = found.detail["sizes"]["mae"].to_list()
    assert errors[0] > errors[1] > errors[2]


def test_expected_random_guesses_are_what_drawing_gives(people):
    reference, known, hidden = people
    found = attack.shapley_reconstruction(line, reference, known, hidden)
    rng = np.random.default_rng(1)
    drawn = np.stack([rng.choice(known[:, i], 200_000) for i in range(4)], axis=1)
    truth = hidden[rng.integers(len(hidden), size=200_000)]
    reach = np.ptp(known, axis=0)
    assert found.figures["mae_random"] == pytest.approx((np.abs(drawn - truth) / reach).mean(), rel=0.02)


def test_codes_levels_and_blocks_are_found_as_such():
    rng = np.random.default_rng(3)
    code, level = rng.integers(0, 3, 300).astype(float), rng.integers(1, 6, 300).astype(float)
    block = np.eye(3)[rng.integers(0, 3, 300)]
    table = np.c_[code, level, block]

    def scored(x):
        return np.choose(x[:, 0].astype(int), [0.0, 1.0, 5.0]) + x[:, 1] + x[:, 2:] @ [0.0, 2.0, 7.0]

    found = attack.shapley_reconstruction(
        scored,
        table[:50],
        table[50:200],
        table[200:],
        groups=[[0], [1], [2, 3, 4]],
        names=["code", "level", "block"],
        categorical=["code"],
        discrete=["level"],
        attack="tree",
        allow_overlap=True,
        seed=1,
    )
    assert found.figures["attack_rate"] > 0.95
    assert found.detail["features"]["kind"].to_list() == ["categorical", "discrete", "categorical"]
    assert found.figures["baseline_rate"] < 0.5
    with pytest.raises(ParameterError, match="also in auxiliary"):
        attack.shapley_reconstruction(scored, table[:50], table[50:200], table[200:], categorical=[0])


def test_constant_features_are_left_out_aloud(people):
    reference, known, hidden = (part.copy() for part in people)
    known[:, 2] = 1.0
    found = attack.shapley_reconstruction(line, reference, known, hidden)
    assert any("1 of 4 features are constant" in caveat for caveat in found.caveats)
    counted = attack.shapley_reconstruction(line, reference, known, hidden, include_constant=True)
    assert counted.figures["attack_rate"] < found.figures["attack_rate"] == 1.0


def test_every_guard_lowers_what_is_found_and_keeps_some_of_the_order(people):
    plain = attack.shapley_reconstruction(line, *people, seed=1).figures
    for guard in (
        attack.RoundedExplanation(step=2.0),
        attack.TopFeatures(t=1),
        attack.NoisyExplanation(epsilon=5.0, bound=3.0),
        attack.NoisyExplanation(epsilon=5.0, bound=3.0, noise="gaussian", delta=1e-5),
    ):
        shown = attack.shapley_reconstruction(line, *people, guard=guard, seed=1)
        assert shown.figures["attack_rate"] < plain["attack_rate"]
        assert -1 <= shown.figures["fidelity"] < 1
        assert shown.parameters["guard"] == guard.label


def test_noise_with_a_ledger_is_entered_and_claimed_and_a_seed_is_not():
    values = rows(5)
    ledger = dp.Ledger(epsilon=2.0, adjacency="replace")
    guard = attack.NoisyExplanation(epsilon=1.5, bound=1.0)
    shown = guard.apply(values, ledger=ledger)
    assert shown.guarantee.startswith("1.5-differential privacy against replacing one record")
    assert ledger.spent.epsilon == pytest.approx(1.5)
    with pytest.raises(ParameterError, match="budget"):
        guard.apply(values, ledger=ledger)
    assert guard.apply(values, seed=1).guarantee is None
    with pytest.raises(ParameterError, match="ledger"):
        attack.RoundedExplanation(0.1).apply(values, ledger=ledger)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32), st.floats(0.01, 3.0))
def test_noise_has_the_scale_of_its_sensitivity(seed, bound):
    values = np.random.default_rng(seed).normal(size=(2000, 3))
    shown = attack.NoisyExplanation(epsilon=1.0, bound=bound).apply(values, seed=seed).values
    noise = shown - np.clip(values, -bound, bound)
    assert np.abs(noise).mean() == pytest.approx(2 * 3 * bound, rel=0.1)


def test_a_sweep_tells_models_attacks_sizes_and_guards_apart(people):
    reference, known, hidden = people
    found = attack.shapley_sweep(
        {"line": line, "bumps": lambda x: np.sin(3 * x).sum(axis=1)},
        reference,
        known,
        hidden,
        attacks=["linear", "mlp"],
        optimizers=["sgd", "rmsprop"],
        guards=[None, attack.TopFeatures(2)],
        sizes=[10, 40],
        epochs=5,
        seeds=2,
        seed=1,
    )
    table = found.detail["sweep"]
    assert table.height == found.figures["combinations"] == 2 * 3 * 2 * 2
    best = table.sort("attack_rate", descending=True).row(0, named=True)
    assert (best["model"], best["attack"], best["guard"]) == ("line", "linear", "none")
    assert found.value == best["attack_rate"] == 1.0
    assert table["se_mae"].is_not_null().all()


def test_frames_name_the_features_and_objects_of_others_attack(people):
    from sklearn.neighbors import KNeighborsRegressor

    reference, known, hidden = (pl.DataFrame(part, schema=list("abcd")) for part in people)
    found = attack.shapley_reconstruction(line, reference, known, hidden, attack=KNeighborsRegressor(3))
    assert found.detail["features"]["feature"].to_list() == list("abcd")
    assert found.parameters["attack"] == "KNeighborsRegressor"


@pytest.mark.parametrize("kind", ["exact", "permutation"])
@pytest.mark.slow
def test_explainers_of_shap_give_the_same(people, kind):
    reference, known, hidden = people
    theirs = attack.shap_explainer(kind, seed=1)(line, hidden, reference)
    assert theirs == pytest.approx(attack.shapley_values(line, hidden, reference), abs=1e-6)
    found = attack.shapley_reconstruction(
        line, reference, known, hidden, explainer=attack.shap_explainer(kind, seed=1)
    )
    assert found.figures["mae"] < 1e-6


@pytest.mark.slow
def test_a_tree_explainer_of_shap_agrees_with_the_exact_engine():
    from sklearn.ensemble import RandomForestRegressor

    table = rows(300)
    forest = RandomForestRegressor(20, max_depth=4, random_state=0).fit(table[:200], line(table[:200]) ** 2)
    theirs = attack.shap_explainer("tree", model=forest)(forest.predict, table[200:210], table[:30])
    ours = attack.shapley_values(forest.predict, table[200:210], table[:30])
    assert theirs == pytest.approx(ours, abs=1e-6)


def test_bad_input_is_refused_by_name(people):
    reference, known, hidden = people
    gaps = hidden.copy()
    gaps[0, 0] = np.nan
    with pytest.raises(ParameterError, match="target has missing values"):
        attack.shapley_reconstruction(line, reference, known, gaps)
    with pytest.raises(ParameterError, match="also in auxiliary"):
        attack.shapley_reconstruction(line, reference, known, known[:5])
    assert any(
        "equal a record" in caveat
        for caveat in attack.shapley_reconstruction(
            line, reference, known, known[:5], allow_overlap=True
        ).caveats
    )
    with pytest.raises(InputError, match="at least 2"):
        attack.shapley_reconstruction(line, reference, known[:1], hidden)
    with pytest.raises(InputError, match="constant"):
        attack.shapley_reconstruction(line, reference, np.ones((4, 4)), hidden)
    with pytest.raises(DiscreetError, match="attack"):
        attack.shapley_reconstruction(line, reference, known, hidden, attack="magic")
    with pytest.raises(ParameterError, match="explainer"):
        attack.shapley_reconstruction(line, reference, known, hidden, explainer="lime")
    with pytest.raises(ParameterError, match="feature 'z'"):
        attack.shapley_reconstruction(line, reference, known, hidden, thresholds={"z": 1.0})
    with pytest.raises(ParameterError, match="predict failed"):
        attack.shapley_reconstruction(lambda x: x @ np.ones(99), reference, known, hidden)
