from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import discreet
from discreet import Microdata, Policy
from discreet.core.errors import ColumnError, ParameterError
from discreet.policy import Rule
from discreet.protect import Plan
from discreet.workflow import document_plan
from discreet.workflow.coding_ladders import ladder_of
from discreet.workflow.usual_treatments import column_loss, groupings

K_THREE = Policy("k three", rules=[Rule("k_anonymity", at_least=3)])


def people(n=400, seed=3):
    draw = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "name": [f"person {i}" for i in range(n)],
            "age": draw.integers(18, 90, n),
            "plz": [f"{x:05d}" for x in draw.integers(10_000, 10_400, n)],
            "job": draw.choice([f"job {i}" for i in range(12)], n, p=np.arange(12, 0, -1) / 78),
            "pay": np.round(draw.lognormal(7, 1, n), 2),
            "ill": draw.choice(["yes", "no", "unknown"], n, p=[0.3, 0.6, 0.1]),
        }
    )


@pytest.fixture(scope="module")
def data():
    return Microdata(people(), keys=["age", "plz", "job"], sensitive=["ill", "pay"], identifiers="name")


@pytest.fixture(scope="module")
def found(data):
    return discreet.suggest(data, "public-use-file", effort="quick", seed=1)


def judged_afresh(data, found, policy):
    """Apply the plan and judge what comes out, as `discreet protect --plan` does."""
    return document_plan(data, found.plan, policy, seed=found.seed)


def test_a_winner_meets_the_policy_when_judged_afresh_and_costs_what_it_says(data, found):
    assert found.meets
    report = judged_afresh(data, found, "public-use-file")
    assert report.verdict.meets
    assert report.cost.value == pytest.approx(found.loss)
    assert "name" not in report.release.data.columns


def test_no_column_is_erased_and_the_steps_say_what_they_cost(found):
    assert max(found.losses.values()) < 1
    assert sum(step.cost for step in found.steps) == pytest.approx(found.loss, abs=1e-9)
    assert found.steps[-1].exposed == 0
    assert found.steps[-1].step == "reorder-records"
    assert "'name'" in found.steps[0].words
    text = str(found)
    assert "Meets" in found.verdict.line
    assert "person 1" not in text
    assert "unknown" not in text


def test_the_plan_file_gives_the_same_release_and_holds_no_seed(data, found, tmp_path):
    file = found.save(tmp_path / "plan.toml")
    again = Plan.load(file)
    first, second = (plan.apply(data, seed=found.seed).data.frame for plan in (found.plan, again))
    assert first.equals(second)
    assert "seed" not in file.read_text()
    without_roles = again.apply(Microdata(data.frame), seed=found.seed).data.frame
    assert without_roles.equals(first)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_plan_in_one_process_and_in_two(data, found):
    again = discreet.suggest(data, "public-use-file", effort="quick", seed=1, workers=2)
    assert again.plan == found.plan
    assert again.loss == found.loss
    assert [trial.name for trial in again.search.trials] == [trial.name for trial in found.search.trials]


def test_roles_are_proposed_where_none_are_given_and_that_is_said():
    found = discreet.suggest(people(), K_THREE, effort="quick", seed=1)
    assert found.proposed
    assert "proposed by inspect" in found.meaning
    assert "name" in found.roles.identifiers


@pytest.mark.slow
def test_kept_columns_stay_as_they_are_or_as_fine_as_asked(data):
    found = discreet.suggest(data, K_THREE, effort="quick", keep=["job"], seed=1)
    made = found.plan.apply(data, seed=found.seed).data.frame
    assert made["job"].sort().equals(data.frame["job"].sort())
    detailed = discreet.suggest(data, K_THREE, effort="quick", keep={"plz": 4, "age": 5}, seed=1)
    if detailed.meets:
        codings = detailed.plan.to_dict()["step"]
        assert not any("plz" in step.get("mapping", {}) for step in codings)
    with pytest.raises(ColumnError, match="keep"):
        discreet.suggest(data, K_THREE, keep=["jb"])
    with pytest.raises(ParameterError, match="cannot be kept"):
        discreet.suggest(data, K_THREE, keep=["name"])


@pytest.mark.slow
def test_important_columns_lose_less(data):
    plain = discreet.suggest(data, K_THREE, effort="quick", seed=1)
    weighted = discreet.suggest(data, K_THREE, effort="quick", importance={"age": 20}, seed=1)
    assert weighted.losses["age"] <= plain.losses["age"]
    with pytest.raises(ParameterError, match="importance"):
        discreet.suggest(data, K_THREE, importance={"age": -1})


def test_a_file_that_meets_the_policy_needs_no_step():
    easy = Microdata(pl.DataFrame({"sex": ["f", "m"] * 50}), keys="sex")
    found = discreet.suggest(easy, K_THREE, seed=1)
    assert found.meets
    assert found.plan.steps == ()
    assert found.loss == 0


@pytest.mark.slow
def test_what_stands_in_the_way_is_said_where_nothing_passes(data):
    hard = Policy(
        "impossible",
        rules=[Rule("k_anonymity", at_least=50)],
        comparison=[Rule("information_loss", at_most=0.0)],
    )
    found = discreet.suggest(data, hard, effort="quick", seed=1)
    assert not found.meets
    assert found.obstacles
    assert "came nearest" in found.meaning
    assert "has to give" in found.meaning
    with pytest.raises(ParameterError, match="No plan"):
        _ = found.plan
    json.dumps(found.to_dict())


def test_a_search_goes_on_where_it_stopped(data, tmp_path, monkeypatch):
    file = tmp_path / "trials.jsonl"
    first = discreet.suggest(data, K_THREE, effort="quick", resume=file)
    from discreet.workflow.recipe_trials import Bench

    asked = []
    real = Bench.tried
    monkeypatch.setattr(
        Bench, "tried", lambda self, name, *rest: asked.append(name) or real(self, name, *rest)
    )
    second = discreet.suggest(data, K_THREE, effort="quick", resume=file)
    assert second.plan == first.plan
    assert second.seed == first.seed
    assert not asked


def test_seconds_end_a_search(data):
    found = discreet.suggest(data, K_THREE, effort=0.001, seed=1)
    assert len(found.search.trials) <= 1
    with pytest.raises(ParameterError, match="effort"):
        discreet.suggest(data, K_THREE, effort="hard")


@settings(max_examples=examples(6), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(0, 10_000),
    st.sampled_from([2, 3, 5]),
    st.sampled_from(["safe-setting", "scientific-use-file", None]),
)
@pytest.mark.slow
def test_whatever_is_called_a_winner_meets_the_policy_when_judged_afresh(seed, k, template):
    draw = np.random.default_rng(seed)
    n = int(draw.integers(30, 120))
    frame = pl.DataFrame(
        {
            "age": draw.integers(0, 90, n),
            "area": draw.choice(list("abcdefgh"), n),
            "sick": draw.choice(["y", "n"], n),
        }
    ).with_columns(
        pl.when(pl.Series(draw.random(n) < 0.05)).then(None).otherwise(pl.col("area")).alias("area")
    )
    data = Microdata(frame, keys=["age", "area"], sensitive="sick")
    policy = template or Policy("ours", rules=[Rule("k_anonymity", at_least=k)])
    found = discreet.suggest(data, policy, effort="quick", seed=seed)
    if found.meets:
        assert (
            found.chosen is None or not found.plan.steps or judged_afresh(data, found, policy).verdict.meets
        )
    again = discreet.suggest(data, policy, effort="quick", seed=seed)
    assert again.chosen == found.chosen


@given(st.lists(st.integers(1, 50), min_size=3, max_size=12), st.sampled_from([0.05, 0.2, 0.34]))
def test_groups_reach_the_share_or_only_two_are_left(counts, share):
    sizes = np.array(counts)
    made = [groups for _, groups in groupings(sizes, np.zeros((len(sizes), 1)), [share])]
    groups = made[-1] if made else np.arange(len(sizes))
    held = np.bincount(groups, weights=sizes)
    assert held.min() >= share * sizes.sum() or len(held) == 2


def test_every_rung_is_coarser_than_the_one_below_and_costs_what_is_measured():
    table = people()
    for name in ("age", "plz", "job", "pay"):
        ladder = ladder_of(table[name], {"ill": table["ill"]})
        assert len(ladder) > 2, name
        labels = [rung.labels for rung in ladder.rungs]
        assert labels == sorted(labels, reverse=True)
    far = ladder_of(pl.Series("far", [np.inf, -np.inf, 1e16, 1e16]), {})
    assert len(far) == len(ladder_of(pl.Series("yes", [True, False]), {}))
    codes = ladder_of(table["plz"], {})
    assert codes.what == "code"
    assert column_loss(table["plz"], table["plz"]) == 0


def test_notes_do_not_contradict_the_plan():
    from discreet.workflow.suggestion import _caveats

    frame = pl.DataFrame(
        {"home": [1, 1, 2, 3], "w": [1.5, 2.5, 3.5, 1.5], "age": [1, 2, 3, 4], "left": list("abcd")}
    )
    file = Microdata(frame, keys="age", household="home", weight="w")
    kept = " ".join(_caveats(file, Plan([])))
    assert "'home' tells who belongs together and is released as it is" in kept
    assert "'w' is released as it is" in kept
    assert "'left' has no role" in kept
    gone = Plan([discreet.protect.DropIdentifiers(["home", "w", "left"]), discreet.protect.ReorderRecords()])
    assert len(_caveats(file, gone)) <= 2
    assert not any(
        word in " ".join(_caveats(file, gone)) for word in ("home", "'w'", "left", "is that of the file")
    )


def test_what_would_be_lost_of_an_association_is_said_first(data):
    found = discreet.suggest(data, "public-use-file", effort="quick", seed=1)
    worst = found.associations[0].lost if found.associations else 0.0
    assert ("Mind this first" in found.sentences[0]) == (worst > 1 / 3)


def test_examples_are_masked_unless_values_may_be_shown(data):
    masked = discreet.suggest(data, K_THREE, effort="quick", seed=1)
    shown = discreet.suggest(data, K_THREE, effort="quick", seed=1, show_values=True)
    old, new = ([line for step in one.steps for line in step.examples] for one in (masked, shown))
    assert old
    assert all("\N{RIGHTWARDS ARROW}" in line for line in old)
    before = {line.split(": ")[1].split(" \N{RIGHTWARDS ARROW}")[0] for line in old}
    assert not before & {str(value) for name in data.columns for value in data.frame[name]}
    assert old != new


def test_the_reason_of_every_assumed_role_is_given():
    found = discreet.suggest(people(), K_THREE, effort="quick", seed=1)
    assert [line.split(":")[0] for line in found.assumed] == [f"'{name}'" for name in people().columns]
    assert "its name suggests age" in str(found)


def test_no_released_record_shows_a_day_a_finest_place_and_another_key_that_few_share():
    draw = np.random.default_rng(7)
    n = 1_500
    file = Microdata(
        pl.DataFrame(
            {
                "birthdate": pl.Series(draw.integers(-10_000, 12_000, n)).cast(pl.Int32).cast(pl.Date),
                "plz": [f"{x:05d}" for x in draw.choice([10115, 10117, 20095, 20097, 80331, 80333], n)],
                "sex": draw.choice(["f", "m"], n),
                "cost": np.round(draw.lognormal(7, 1, n), 2),
                "illness": draw.choice(list("abcdef"), n),
            }
        ),
        keys=["birthdate", "plz", "sex"],
        sensitive=["illness", "cost"],
    )
    for policy in ("scientific-use-file", "public-use-file"):
        found = discreet.suggest(file, policy, effort="quick", seed=1)
        assert found.meets, found.meaning
        made = found.plan.apply(file, seed=found.seed).data.frame
        assert (
            not made["birthdate"]
            .cast(pl.String)
            .is_in(file.frame["birthdate"].cast(pl.String).implode())
            .any()
        )
        counts = made.group_by("birthdate", "plz", "sex").len()["len"]
        assert counts.min() >= (10 if policy == "public-use-file" else 3)
        assert made["cost"].n_unique() < 0.6 * n


def test_who_interrupts_a_search_gets_the_best_plan_so_far(data, monkeypatch):
    from discreet.workflow.recipe_trials import Laboratory

    calls, real = [], Laboratory.run

    def interrupted(self, plans, most):
        if any(trial.meets is None for trials in calls for trial in trials):
            raise KeyboardInterrupt
        calls.append(real(self, plans, most))
        return calls[-1]

    monkeypatch.setattr(Laboratory, "run", interrupted)
    found = discreet.suggest(data, "scientific-use-file", seed=1)
    assert found.meets
    assert len(found.search.trials) == sum(map(len, calls))


def test_whoever_waits_hears_how_far_it_is_and_what_was_found(data):
    from discreet.core.progress import listening

    heard = []
    with listening(lambda what, done, total: heard.append((what, done, total))):
        discreet.suggest(data, "scientific-use-file", effort="quick", progress=True, seed=1)
    assert any(what == "Trying plans" and total for what, _, total in heard)
    assert any("not judged" in what for what, _, _ in heard)


def test_values_of_others_are_handed_around_only_where_coarser_keys_cost_much_more(data):
    found = discreet.suggest(data, "scientific-use-file", seed=1)
    swapped = {trial.name for trial in found.search.trials if ", swap" in trial.name}
    plain = [t.loss for t in found.search.trials if t.meets is not False and t.name not in swapped and t.loss]
    if any(step.step == "class-swap" for step in found.steps) and plain:
        assert min(plain) > found.loss
