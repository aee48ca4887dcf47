from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import dp
from discreet.core.errors import DiscreetError, InputError, ParameterError
from discreet.dp import Cost, Ledger
from discreet.policy import Policy

PURE = st.builds(Cost, st.just("laplace"), st.just("pure"), epsilon=st.floats(0.01, 2.0))
APPROXIMATE = st.builds(
    Cost,
    st.just("gaussian"),
    st.just("approximate"),
    epsilon=st.floats(0.01, 2.0),
    delta=st.floats(1e-9, 1e-5),
)
RHO = st.builds(Cost, st.just("gaussian"), st.just("zcdp"), rho=st.floats(1e-4, 0.5))
COSTS = st.lists(st.one_of(PURE, APPROXIMATE, RHO), min_size=1, max_size=12)


@given(COSTS)
def test_no_sequence_of_releases_passes_the_budget(costs):
    ledger = Ledger(3.0, 1e-5)
    taken = []
    for cost in costs:
        try:
            ledger.spend(cost)
        except ParameterError:
            continue
        taken.append(cost)
    spent = dp.together(taken, delta=1e-5)
    assert spent.epsilon <= 3.0 * (1 + 1e-12)
    assert spent.delta <= 1e-5 * (1 + 1e-12)
    assert ledger.spent == spent


@given(COSTS)
def test_releases_together_never_cost_less_than_the_dearest_nor_more_than_their_sum(costs):
    delta = 1e-3
    price = dp.together(costs, delta=delta).epsilon
    pure = [cost.epsilon for cost in costs if cost.definition == "pure"]
    alone = sum(dp.together([cost], delta=delta / len(costs)).epsilon for cost in costs)
    assert price <= alone * (1 + 1e-9)
    if len(pure) == len(costs) == 1:
        assert price <= pure[0]


@given(st.lists(PURE, min_size=1, max_size=8))
def test_disjoint_people_cost_as_much_as_the_dearest(costs):
    assert dp.together([costs]).epsilon == max(cost.epsilon for cost in costs)
    two = sorted((2 * cost.epsilon for cost in costs), reverse=True)[:2]
    assert dp.together([costs], adjacency="replace").epsilon == pytest.approx(sum(two))


def test_a_ledger_outlives_the_program(tmp_path):
    source = tmp_path / "survey.csv"
    source.write_text("a\n1\n", encoding="utf-8")
    ledger = Ledger.beside(source, 1.0)
    dp.laplace(10, sensitivity=1, epsilon=0.75, ledger=ledger, purpose="people")
    again = Ledger.load(tmp_path / "survey.privacy.toml", source=source)
    assert again.left == pytest.approx(0.25)
    assert again.table()["purpose"].to_list() == ["people"]
    with pytest.raises(ParameterError, match="does not allow"):
        dp.laplace(10, sensitivity=1, epsilon=0.5, ledger=Ledger.beside(source, 1.0))
    assert Ledger.load(again.path).left == pytest.approx(0.25)


def test_an_edited_a_foreign_and_a_closed_ledger_are_refused(tmp_path):
    source, other = tmp_path / "survey.csv", tmp_path / "other.csv"
    source.write_text("a\n1\n", encoding="utf-8")
    other.write_text("a\n2\n", encoding="utf-8")
    ledger = Ledger.beside(source, 1.0)
    ledger.spend(Cost("laplace", "pure", epsilon=0.5))
    with pytest.raises(InputError, match="another file"):
        Ledger.load(ledger.path, source=other)
    with pytest.raises(InputError, match="another epsilon"):
        Ledger.beside(source, 2.0)
    ledger.close()
    with pytest.raises(ParameterError, match="closed"):
        Ledger.load(ledger.path).spend(Cost("laplace", "pure", epsilon=0.1))
    text = ledger.path.read_text(encoding="utf-8")
    for edited in (
        text.replace("epsilon = 0.5", "epsilon = 0.1"),
        text.split("[[record]]")[0],
        text.replace("format = 2", "format = 3"),
        text.replace("[[record]]", "[record]"),
        "nonsense",
    ):
        ledger.path.write_text(edited, encoding="utf-8")
        with pytest.raises(DiscreetError):
            Ledger.load(ledger.path)


def test_two_writers_never_spend_more_than_there_is(tmp_path):
    path = tmp_path / "x.privacy.toml"
    Ledger(1.0, path=path)
    refused = []

    def spend() -> None:
        ledger = Ledger(1.0, path=path)
        for _ in range(5):
            try:
                ledger.spend(Cost("laplace", "pure", epsilon=0.125))
            except ParameterError:
                refused.append(1)

    writers = [threading.Thread(target=spend) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    kept = Ledger.load(path)
    assert kept.spent.epsilon == 1.0
    assert kept.table().height == 8
    assert len(refused) == 12


def test_a_crash_after_the_record_has_counted_the_release(tmp_path, monkeypatch):
    ledger = Ledger(1.0, path=tmp_path / "x.privacy.toml")

    def crash(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(dp.mechanisms, "discrete_laplace", crash)
    with pytest.raises(KeyboardInterrupt):
        dp.laplace(1, sensitivity=1, epsilon=0.25, ledger=ledger)
    assert Ledger.load(ledger.path).left == 0.75


def test_units_and_neighbors_are_never_mixed_in_silence():
    people = Ledger(1.0, unit="person")
    with pytest.raises(ParameterError, match="every person"):
        people.spend(Cost("laplace", "pure", epsilon=0.1))
    replacing = Ledger(1.0, adjacency="replace")
    replacing.spend(Cost("laplace", "pure", epsilon=0.25))
    assert replacing.spent.epsilon == 0.5
    with pytest.raises(ParameterError, match="adding or removing"):
        Ledger(1.0).spend(Cost("laplace", "pure", epsilon=0.1, adjacency="replace"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0},
        {"epsilon": -1.0},
        {"epsilon": True},
        {"epsilon": 1.0, "delta": 1.0},
        {"epsilon": 1.0, "delta": "much"},
        {"epsilon": 1.0, "adjacency": "none"},
        {"epsilon": 1.0, "unit": "cow"},
        {"epsilon": 1.0, "source": "no-such-file.csv"},
    ],
)
def test_a_budget_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(DiscreetError):
        Ledger(**wrong)


@pytest.mark.parametrize("place", ["", ".", "/"])
def test_a_ledger_lies_beside_a_file(place):
    with pytest.raises(InputError, match="name the file"):
        Ledger.place_beside(place)


@pytest.mark.parametrize("delta", [0.11, 0.5, 0.9])
def test_a_budget_whose_delta_would_pay_for_a_leak_is_refused(delta, tmp_path, monkeypatch):
    with pytest.raises(ParameterError, match="delta of a budget must be"):
        Ledger(10.0, delta, path=tmp_path / "a.privacy.toml")
    assert not list(tmp_path.iterdir())
    with pytest.raises(ParameterError, match="delta of a budget must be"):
        Policy.from_dict(
            {"rules": {"k_anonymity": {"at_least": 3}}, "budget": {"epsilon": 1.0, "delta": delta}}
        )
    # A file that was opened before there was a limit can be looked at, and takes nothing more.
    monkeypatch.setattr("discreet.dp.ledger.LARGEST_DELTA", 1.0)
    Ledger(10.0, delta, path=tmp_path / "a.privacy.toml")
    monkeypatch.undo()
    old = Ledger.load(tmp_path / "a.privacy.toml")
    assert old.budget == (10.0, delta)
    with pytest.raises(ParameterError, match="delta of a budget must be"):
        old.spend(Cost("laplace", "pure", epsilon=2.0))
    assert old.table().height == 0


@given(epsilon=st.floats(0.5, 50.0), delta=st.floats(1e-12, 0.1))
def test_under_any_budget_that_is_taken_one_release_of_half_an_epsilon_or_more_counts_in_full(epsilon, delta):
    ledger = Ledger(100.0, delta)
    ledger.spend(Cost("laplace", "pure", epsilon=epsilon))
    assert ledger.spent.epsilon == epsilon
