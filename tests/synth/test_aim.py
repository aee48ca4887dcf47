"""Private synthesis from tables chosen where the model is worst, and what it shares with the tree of pairs."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata, dp, synth
from discreet.core.errors import DiscreetError, ParameterError
from discreet.synth.graphical_model import GraphicalModel, cells_needed, junction_tree

PRIVATE = [synth.MST, synth.AIM]
DRAW = np.random.default_rng(5)


def people(n: int = 4000) -> pl.DataFrame:
    sex = DRAW.integers(0, 2, n)
    age = DRAW.integers(0, 100, n)
    pregnant = (sex == 0) & (age > 15) & (age < 50) & (DRAW.random(n) < 0.3)
    job = np.where(age < 16, 0, DRAW.integers(1, 4, n))
    return pl.DataFrame(
        {
            "sex": pl.Series(np.array(["f", "m"])[sex]),
            "age": age,
            "pregnant": pregnant,
            "job": pl.Series(np.array(["none", "a", "b", "c"])[job]),
        }
    )


DOMAIN = {"sex": ["f", "m"], "age": (0, 99), "job": ["none", "a", "b", "c"]}
NEVER = ["sex", "age", "pregnant", "job"]

tables = st.lists(
    st.lists(st.integers(0, 5), min_size=2, max_size=3, unique=True).map(lambda c: tuple(sorted(c))),
    max_size=7,
)


@given(tables, st.lists(st.integers(1, 4), min_size=6, max_size=6))
def test_cliques_hold_every_table_and_columns_lie_together_in_the_tree(chosen, sizes):
    tree = junction_tree(chosen, sizes)
    for table in chosen:
        assert set(table) <= set(tree.cliques[tree.holder(table)])
    for column in range(6):
        places = [place for place, clique in enumerate(tree.cliques) if column in clique]
        # All but the first clique of a column are reached from one that has it: the running intersection.
        assert sum(column not in tree.shared(place) for place in places) == 1
    assert cells_needed(chosen, sizes) == sum(
        int(np.prod([sizes[column] for column in clique])) for clique in tree.cliques
    )


@settings(max_examples=40)
@given(tables, st.integers(0, 2**32 - 1))
def test_a_model_has_the_tables_of_the_law_it_is_fitted_to(chosen, seed):
    sizes = [2, 3, 2, 2, 3, 2]
    law = np.random.default_rng(seed).random(sizes) + 0.2
    law /= law.sum()

    def margin(columns):
        return law.sum(axis=tuple(at for at in range(6) if at not in columns))

    targets = {(at,): margin((at,)) for at in range(6)} | {columns: margin(columns) for columns in chosen}
    model = GraphicalModel.fitted(junction_tree(chosen, sizes), sizes, targets, 200)
    for columns, wanted in targets.items():
        assert np.abs(model.margin(columns) - wanted).max() < 1e-3


def test_three_columns_in_a_circle_are_as_raking_makes_them():
    law = np.random.default_rng(1).random((2, 3, 2))
    law /= law.sum()
    pairs = {c: law.sum(axis=({0, 1, 2} - set(c)).pop()) for c in itertools.combinations(range(3), 2)}
    alone = {(at,): law.sum(axis=tuple({0, 1, 2} - {at})) for at in range(3)}
    model = GraphicalModel.fitted(junction_tree(list(pairs), [2, 3, 2]), [2, 3, 2], alone | pairs, 500)
    raked = np.full((2, 3, 2), 1 / 12)
    for _ in range(500):
        for columns, wanted in pairs.items():
            axis = ({0, 1, 2} - set(columns)).pop()
            raked *= np.expand_dims(wanted / raked.sum(axis=axis), axis)
    assert model.tables[0] == pytest.approx(raked, abs=1e-4)


def test_circles_of_tables_are_learnt_that_a_tree_cannot_hold():
    a, b = DRAW.integers(0, 2, 20_000), DRAW.integers(0, 2, 20_000)
    noise = DRAW.random((3, 20_000)) < 0.1
    frame = pl.DataFrame({"a": a == 1, "b": (a ^ noise[0]) == 1, "c": (a ^ noise[1]) == 1, "d": b == 1})
    made = (
        synth.AIM(epsilon=2.0, never_missing=["a", "b", "c", "d"])
        .fit(Microdata(frame), seed=1)
        .sample(seed=2)
    )
    for one, other in itertools.combinations("abc", 2):
        same = (frame[one] == frame[other]).mean()
        assert (made.frame[one] == made.frame[other]).mean() == pytest.approx(same, abs=0.02)


@pytest.mark.parametrize("order", [2, 3])
def test_what_is_drawn_has_the_types_and_survives_a_file(tmp_path, order):
    frame = people(500)
    plan = synth.AIM(epsilon=3.0, domain=DOMAIN, order=order, max_seconds=2.0)
    model = plan.fit(Microdata(frame), seed=1)
    made = model.sample(300, seed=2).frame
    assert made.schema == frame.schema
    assert made["age"].drop_nulls().is_between(0, 99).all()
    model.save(tmp_path / "model")
    again = synth.load(tmp_path / "model")
    assert again.sample(300, seed=2).frame.equals(made)
    assert again.guarantee is None
    synth.save_plan(plan, tmp_path / "plan.toml")
    assert (
        synth.load_plan(tmp_path / "plan.toml")
        .fit(Microdata(frame), seed=1)
        .sample(300, seed=2)
        .frame.equals(made)
    )


@pytest.mark.parametrize("kind", PRIVATE)
def test_a_combination_that_cannot_occur_is_never_drawn(kind, tmp_path):
    never = [{"sex": "m", "pregnant": True}, {"age": (0, 15), "job": ["a", "b", "c"]}]
    model = kind(epsilon=0.3, domain=DOMAIN, impossible=never, never_missing=NEVER).fit(
        Microdata(people(600)), seed=3
    )
    model.save(tmp_path / "model")
    for one in (model, synth.load(tmp_path / "model")):
        made = one.sample(5000, seed=1).frame
        assert made.height == 5000
        assert not ((made["sex"] == "m") & made["pregnant"]).any()
        assert not ((made["age"] <= 15) & (made["job"] != "none")).any()


@pytest.mark.parametrize("kind", PRIVATE)
def test_public_borders_are_used_as_they_are(kind):
    borders = {"age": [0, 16, 50, 99]}
    domain = {name: values for name, values in DOMAIN.items() if name != "age"}
    model = kind(epsilon=5.0, domain=domain, borders=borders, never_missing=NEVER).fit(
        Microdata(people(3000)), seed=1
    )
    assert model.groupings[1].size == 3
    made = model.sample(20_000, seed=1).frame["age"]
    assert made.is_between(0, 99).all()
    assert (made < 16).mean() == pytest.approx(0.16, abs=0.03)


@pytest.mark.parametrize("kind", PRIVATE)
def test_a_person_with_many_records_counts_as_often_as_was_said(kind):
    frame = people(2000).with_columns(who=pl.Series([1] * 1500 + list(range(2, 502))))
    data = Microdata(frame, person="who")
    with pytest.warns(UserWarning, match="belong together"):
        model = kind(epsilon=3.0, domain=DOMAIN, records_per_person=2).fit(data, seed=1)
    assert "who" not in model.sample(5, seed=1).frame.columns
    assert 480 <= model.rows <= 530  # 500 persons of one record, and one of two
    ledger = dp.Ledger(5.0, 1e-4, unit="person")
    with pytest.warns(UserWarning, match="belong together"):
        claimed = kind(epsilon=3.0, domain=DOMAIN).fit(data, ledger=ledger)
    assert "one person with all their records" in claimed.guarantee
    # Whoever stands behind records without a name could not be bounded, and a refusal would tell of them.
    unknown = frame.with_columns(who=pl.when(pl.col("who") > 250).then("who"))
    with pytest.warns(UserWarning, match="belong together"):
        few = kind(epsilon=3.0, domain=DOMAIN).fit(Microdata(unknown, person="who"), seed=1)
    assert 230 <= few.rows <= 270


@pytest.mark.parametrize("kind", [synth.MST, synth.AIM])
def test_a_pandas_category_comes_back_with_declared_levels_only(kind):
    values = pd.Categorical(["a", "b", "seen once"] + ["a", "b"] * 100)
    data = Microdata(pd.DataFrame({"place": values, "sex": ["f", "m", "f"] + ["f", "m"] * 100}))
    made = kind(epsilon=1.0, domain={"place": ["a", "b"], "sex": ["f", "m"]}).fit(data).sample(5).frame
    assert list(made["place"].cat.categories) == ["a", "b"]


def test_noise_grows_with_the_records_of_a_person():
    frame = people(2000).with_columns(who=pl.int_range(2000))
    data = Microdata(frame, person="who")
    spread = []
    for most in (1, 8):
        with pytest.warns(UserWarning, match="belong together"):
            made = synth.MST(epsilon=1.0, domain=DOMAIN, records_per_person=most).fit(data, seed=1)
        spread.append(abs(made.rows - 2000))
    assert spread[1] > 3 * spread[0]


def test_the_ledger_is_asked_before_noise_and_takes_no_seed():
    data = Microdata(pl.DataFrame({"a": [True, False] * 200, "b": [True, True, False, False] * 100}))
    ledger = dp.Ledger(1.0, 1e-5)
    fitted = synth.AIM(epsilon=0.75, delta=1e-6).fit(data, ledger=ledger)
    assert fitted.guarantee.startswith(
        "(0.75, 1e-06)-differential privacy against adding or removing one record"
    )
    assert [record["mechanism"] for record in ledger.table().to_dicts()] == ["aim"]
    with pytest.raises(ParameterError, match="does not allow"):
        synth.AIM(epsilon=0.75, delta=1e-6).fit(data, ledger=ledger)
    with pytest.raises(ParameterError, match="seed"):
        synth.AIM(epsilon=0.1).fit(data, ledger=ledger, seed=1)
    seeded = synth.AIM(epsilon=0.5).fit(data, seed=1)
    assert seeded.guarantee is None
    assert "seed" in seeded.why_none


def test_shares_of_the_budget_add_up_to_it_and_a_limit_of_time_ends_the_rounds(monkeypatch):
    from discreet.synth import aim

    spent = []

    def remembered(rho, tables, most=1):
        spent.append(rho)
        return variance_of(rho, tables, most)

    variance_of = aim.variance_of
    monkeypatch.setattr(aim, "variance_of", remembered)
    rounds = []
    for seconds in (60.0, 1e-6):
        spent.clear()
        synth.AIM(epsilon=1.0, delta=1e-5, domain=DOMAIN, max_seconds=seconds).fit(
            Microdata(people(1000)), seed=1
        )
        rounds.append(len(spent))
        # A tenth of every round pays for the choice.
        assert sum(spent) / 0.9 == pytest.approx(0.8 * dp.largest_rho(1.0, 1e-5), rel=1e-9)
        assert sum(spent) / 0.9 <= 0.8 * dp.largest_rho(1.0, 1e-5) * (1 + 1e-12)
    assert rounds[1] <= 3 <= rounds[0]


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.5, 1.0, 7.25, 40.0]),
    st.integers(1, 60),
)
def test_one_record_moves_a_score_by_one_at_most(seed, spread, cells):
    from discreet.synth.aim import _score

    rng = np.random.default_rng(seed)
    counts, expected = rng.integers(0, 50, cells), rng.random(cells) * 50
    more = counts.copy()
    more[rng.integers(cells)] += 1
    assert abs(_score(more, expected, spread) - _score(counts, expected, spread)) <= 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0},
        {"epsilon": 1.0, "delta": 0.0},
        {"epsilon": 1.0, "order": 4},
        {"epsilon": 1.0, "max_seconds": 0},
        {"epsilon": 1.0, "max_cells": 4, "groups": 50},
        {"epsilon": 1.0, "max_cells": 12},
        {"epsilon": 1e-6},
        {"epsilon": 1.0, "records_per_person": 2},
        {"epsilon": 1.0, "borders": {"age": [5, 1]}},
        {"epsilon": 1.0, "borders": {"ages": [1, 2]}},
        {"epsilon": 1.0, "impossible": [{"ages": 1}]},
        {"epsilon": 1.0, "impossible": [{"sex": "x"}]},
        {"epsilon": 1.0, "impossible": [{}]},
        {"epsilon": 1.0, "impossible": [{"age": (9, 1)}]},
        {"epsilon": 1.0, "domain": {}},
    ],
)
def test_what_cannot_be_promised_is_refused_and_nothing_is_spent(wrong):
    ledger = dp.Ledger(5.0, 1e-4)
    with pytest.raises(DiscreetError):
        synth.AIM(**{"domain": DOMAIN, **wrong}).fit(Microdata(people(3000)), ledger=ledger)
    if "max_cells" not in wrong:  # how many groups stand out is told by noisy counts, which are paid for
        assert not ledger.table().height
