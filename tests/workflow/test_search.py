from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Microdata, Policy
from discreet.core.errors import InputError, ParameterError
from discreet.datasets import adult
from discreet.policy import Rule
from discreet.protect import Band, Change, LocalSuppression, Plan, Pram, ReorderRecords, Treatment
from discreet.utility import information_loss
from discreet.workflow.plan_search import _ranked, _with_frontier, plan_grid, search
from discreet.workflow.trials import Trial

POLICY = Policy("k three", rules=[Rule("k_anonymity", at_least=3)])


@dataclass(frozen=True)
class _Trim(Treatment):
    """Removes records, or breaks off with a value of the data in the message."""

    stay: int = 10
    broken: bool = False

    def treat(self, data, stream):
        if self.broken:
            raise ZeroDivisionError("secret value 4711")
        return Change(keep=pl.Series(np.arange(data.frame.height) < self.stay))


@pytest.fixture(scope="module")
def people():
    draw = np.random.default_rng(3)
    n = 300
    return Microdata(
        pl.DataFrame(
            {
                "age": draw.integers(18, 80, n),
                "region": draw.choice(["n", "e", "s", "w"], n),
                "ill": draw.choice(["yes", "no"], n),
            }
        ),
        keys=["age", "region"],
        sensitive="ill",
    )


def banded(width, k=None):
    steps = [Band(widths={"age": width})]
    return Plan([*steps, LocalSuppression(k=k, missing="category")] if k else steps)


def beaten(trial, others):
    return any(
        o.risk <= trial.risk and o.loss <= trial.loss and (o.risk < trial.risk or o.loss < trial.loss)
        for o in others
    )


NUMBERS = st.one_of(st.none(), st.sampled_from([0.0, 0.1, 0.2, 0.5, 1.0]))


@given(st.lists(st.tuples(NUMBERS, NUMBERS, st.booleans()), max_size=12))
def test_the_frontier_and_the_order_agree_with_brute_force(points):
    trials = [Trial(str(i), {}, meets, risk, loss) for i, (risk, loss, meets) in enumerate(points)]
    usable = [t for t in trials if t.risk is not None and t.loss is not None]
    marked = _with_frontier(trials)
    assert [t.name for t in marked] == [t.name for t in trials]
    expected = {t.name for t in usable if not beaten(t, usable)}
    assert {t.name for t in marked if t.on_frontier} == expected
    passing = [t for t in _ranked(marked) if t.meets]
    assert [t.meets for t in _ranked(marked)] == [True] * len(passing) + [False] * (
        len(trials) - len(passing)
    )
    losses = [float("inf") if t.loss is None else t.loss for t in passing]
    assert losses == sorted(losses)


def test_the_least_costly_plan_that_passes_is_recommended_and_can_be_applied_again(people):
    plans = plan_grid(banded, width=[1, 5, 20, 62], k=[None, 3])
    found = search(people, plans, POLICY, seed=1)
    assert len(found.trials) == 8
    passing = [trial for trial in found.trials if trial.meets]
    assert passing
    assert found.recommended.loss == min(trial.loss for trial in passing)
    assert {t.name for t in found.frontier} == {t.name for t in found.trials if not beaten(t, found.trials)}
    assert [t.risk for t in found.frontier] == sorted((t.risk for t in found.frontier), reverse=True)
    again = found.plan.apply(people, seed=found.seed).data
    assert information_loss(people, again).value == pytest.approx(found.recommended.loss)
    assert "Take 'width=" in str(found)
    assert found.table.height == 8
    json.dumps(found.to_dict())
    assert "seed" not in found.to_dict()


def test_a_plan_that_fails_is_reported_and_not_raised(people):
    plans = {
        "good": banded(20),
        "unknown column": Band(widths={"agee": 5}),
        "broken": _Trim(broken=True),
    }
    found = search(people, plans, POLICY, seed=1)
    failed = {trial.name: trial.failed for trial in found.trials}
    assert failed["good"] is None
    assert "Did you mean 'age'" in failed["unknown column"]
    assert "ZeroDivisionError" in failed["broken"]
    assert "4711" not in str(found)
    assert {t.name for t in found.trials if t.loss is None} == {"unknown column", "broken"}


def test_removed_and_reordered_records_are_ranked_by_what_they_really_lost(people):
    plans = {"kept": Band(widths={"age": 1}), "half": _Trim(stay=150), "mixed": ReorderRecords()}
    losses = {t.name: t.loss for t in search(people, plans, POLICY, seed=1).trials}
    assert losses["half"] == pytest.approx(0.5)
    assert losses["mixed"] == 0
    assert losses["kept"] == 0


@pytest.mark.slow
def test_the_same_seed_gives_the_same_search_and_two_processes_the_same_as_one(people):
    plans = {"pram": Pram(columns=["ill"], change=0.3), "bands": banded(30, 3)}
    first, second = (search(people, plans, POLICY, seed=7) for _ in range(2))
    assert first.trials == second.trials
    assert search(people, plans, POLICY, seed=8).trials != first.trials
    assert search(people, plans, POLICY, seed=7, workers=2).trials == first.trials


def test_a_search_goes_on_where_it_stopped(people, tmp_path, monkeypatch):
    file = tmp_path / "trials.jsonl"
    plans = plan_grid(banded, width=[5, 20, 62])
    first = search(people, dict(list(plans.items())[:2]), POLICY, resume=file)
    lines = file.read_text().splitlines()
    assert len(lines) == 2
    file.write_text("\n".join([*lines, lines[0][:40]]))

    asked = []
    from discreet.workflow import trials

    real = trials.tried
    monkeypatch.setattr(trials, "tried", lambda data, job: asked.append(job.name) or real(data, job))
    second = search(people, plans, POLICY, resume=file)
    assert asked == ["width=62"]
    assert second.seed == first.seed
    assert {t.name for t in second.trials} == set(plans)
    assert len(file.read_text().splitlines()) == 3
    search(people, plans, POLICY, resume=file)
    assert asked == ["width=62"]
    other = people.with_frame(people.frame.with_columns(pl.col("age") + 1))
    search(other, plans, POLICY, resume=file)
    assert len(asked) == 4


def test_a_file_that_holds_no_trials_is_refused_and_left_alone(people, tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("my notes")
    with pytest.raises(InputError, match="does not hold trials"):
        search(people, [banded(5)], POLICY, resume=file)
    assert file.read_text() == "my notes"


def test_mistakes_in_what_is_asked_for_are_raised_at_once(people):
    for wrong in (
        {"risk": "k_anonimity"},
        {"risk": "k_anonymity.kk"},
        {"loss": "pmse"},
        {"loss": "information_loss.il1z"},
        {"workers": 0},
    ):
        with pytest.raises(ParameterError):
            search(people, [banded(5)], POLICY, **wrong)
    with pytest.raises(ParameterError, match="at least one"):
        search(people, [], POLICY)
    with pytest.raises(ParameterError, match="same title"):
        search(people, [Plan([Band(widths={"age": 5})], "a")] * 2, POLICY)
    found = search(people, [Plan([Band(widths={"age": 2})])], POLICY)
    assert found.recommended is None
    with pytest.raises(ParameterError, match="stronger"):
        _ = found.plan


def test_gaps_can_match_anything_when_asked(people):
    plan = {"gaps": Plan([Band(widths={"age": 10}), LocalSuppression(k=3, missing="wildcard")])}
    assert search(people, plan, POLICY, missing="wildcard", seed=1).recommended is not None
    assert any("wildcard" in caveat for caveat in search(people, plan, POLICY, seed=1).caveats)
    by_default = {"gaps": Plan([Band(widths={"age": 10}), LocalSuppression(k=3)])}
    found = search(people, by_default, POLICY, seed=1)
    assert found.recommended is not None
    assert not any("wildcard" in caveat for caveat in found.caveats)


@pytest.mark.slow
def test_a_pandas_file_is_searched_like_a_polars_one(people):
    other = Microdata(people.frame.to_pandas(), keys=["age", "region"], sensitive="ill")
    plans = plan_grid(banded, width=[5, 20], k=[None, 3])
    assert search(other, plans, POLICY, seed=1).trials == search(people, plans, POLICY, seed=1).trials


def test_the_map_shows_every_plan_that_could_be_measured(people):
    figure = search(
        people, {**plan_grid(banded, width=[5, 62]), "bad": _Trim(broken=True)}, POLICY, seed=1
    ).plot()
    points = sum(len(part.get_offsets()) for part in figure.axes[0].collections)
    assert points == 2


@pytest.mark.slow
def test_adult_end_to_end_in_two_processes_and_resumed(tmp_path):
    data = adult()
    data = data.with_frame(data.frame.select(*data.roles.keys, *data.roles.sensitive))

    def plan(width, k):
        return Plan([Band(widths={"age": width}), LocalSuppression(k=k, missing="category")])

    plans = plan_grid(plan, width=[5, 10, 20, 40], k=[3, 5])
    file = tmp_path / "adult.jsonl"
    found = search(data, plans, POLICY, workers=2, resume=file, seed=1)
    assert all(trial.failed is None and trial.meets for trial in found.trials)
    assert found.recommended.loss == min(trial.loss for trial in found.trials)
    by_name = {trial.name: trial for trial in found.trials}
    for width in (5, 10, 20, 40):
        assert by_name[f"width={width}, k=5"].loss >= by_name[f"width={width}, k=3"].loss
    assert search(data, plans, POLICY, workers=2, resume=file, seed=1).trials == found.trials
