"""Robin Hood: everybody reaches the target where it can be reached, and the rest is said."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata
from discreet.core.errors import ColumnError, ParameterError
from discreet.hierarchy import Hierarchy
from discreet.protect.lattice_classes import Lattice
from discreet.protect.lattice_search import joint_entropy_loss, minimal_nodes, nodes_by_loss
from discreet.protect.robin_hood import RobinHood, allot
from discreet.protect.treatment import Treatment

KEYS = ["race", "sex", "age"]


def people(n: int = 3000, seed: int = 1) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "race": random.choice(["a", "b", "c"], n, p=[0.85, 0.12, 0.03]),
            "sex": random.choice(["f", "m"], n),
            "age": random.integers(18, 80, n),
            "sick": random.random(n) < 0.2,
        }
    )


HIERARCHIES = {
    "age": Hierarchy.intervals([5, 10, 20], lower=0, upper=100),
    "race": Hierarchy.from_tree({"small": ["b", "c"], "large": ["a"]}),
}


def counted(original: pl.DataFrame, released: pl.DataFrame) -> pl.DataFrame:
    """Work out the effective k of every class from the two files, by definition."""
    both = pl.DataFrame(
        {
            "race": original["race"],
            "sex": released["sex"],
            "age": released["age"],
            "m": released["race"] == "?",
        }
    )
    classes = both.group_by(KEYS).agg(A=pl.len(), C=pl.col("m").sum())
    return classes.with_columns(E=pl.col("C").sum().over("sex", "age")).with_columns(
        k=pl.col("A") + pl.col("C") * (pl.col("E") - pl.col("C")) / pl.col("A")
    )


@settings(max_examples=examples(60), deadline=None)
@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=6),
    k=st.integers(2, 40),
    majority=st.floats(0.1, 1.0),
    minority=st.floats(0.1, 1.0),
)
def test_a_feasible_class_reaches_the_target_within_the_thresholds(sizes, k, majority, minority):
    plan = allot(
        sizes, [0] * len(sizes), k_target=k, threshold_majority=majority, threshold_minority=minority
    )
    size = np.array(sizes)
    everything = plan.minority.sum() + plan.majority[0]
    small = (size < k) & ~plan.infeasible
    effective = size + plan.minority * (everything - plan.minority) / size
    assert (effective[small] >= k - 1e-9).all()
    assert (plan.minority[small] <= size[small] * minority + 1e-6).all()
    assert plan.majority[0] <= size[size >= k].sum() * majority + 1e-6
    assert (plan.minority[plan.infeasible] == 0).all()


def test_the_released_file_reaches_the_target_by_a_count_from_scratch():
    frame = people()
    data = Microdata(frame, keys=KEYS)
    treatment = RobinHood(
        "race", k_target=12, hierarchies={"age": HIERARCHIES["age"]}, on_infeasible="generalize"
    )
    release = treatment.apply(data, seed=4)
    assert release.log[0].parameters["feasible"]
    assert counted(frame, release.data.frame)["k"].min() >= 12 - 1e-9
    shown = release.data.frame["race"]
    assert bool(((shown == "?") | (shown == frame["race"])).all())
    assert release.data.frame["sick"].equals(frame["sick"])


def test_what_cannot_be_reached_is_reported_with_counts():
    frame = people(400)
    release = RobinHood("race", k_target=30, k_initial=1).apply(Microdata(frame, keys=KEYS), seed=1)
    step = release.log[0]
    assert step.parameters["feasible"] is False
    assert step.parameters["infeasible_classes"] == step.internal["classes"]["feasible"].count(False)
    assert any("k_initial of 2 or more" in note for note in step.notes)
    assert release.guarantee is None


def test_the_same_seed_masks_the_same_records_and_another_seed_others():
    data = Microdata(people(), keys=["race", "sex"])
    treatment = RobinHood("race", k_target=400)
    first, again, other = (treatment.apply(data, seed=seed).data.frame["race"] for seed in (1, 1, 2))
    assert first.equals(again)
    assert not first.equals(other)
    assert (first == "?").sum() == (other == "?").sum() > 0


@pytest.mark.slow
def test_every_record_of_a_pool_is_masked_with_the_same_chance():
    data = Microdata(pl.DataFrame({"race": ["M"] * 7 + ["m"] * 3}), keys=["race"])
    hits = np.zeros(10)
    for seed in range(600):
        release = RobinHood("race", k_target=4).apply(data, seed=seed)
        hits += (release.data.frame["race"] == "?").to_numpy()
    # 600 draws: three standard errors are 0.06.
    assert hits[:7] / 600 == pytest.approx(np.full(7, 3 / 7), abs=0.07)
    assert hits[7:] / 600 == pytest.approx(np.full(3, 1 / 3), abs=0.07)


def test_missing_is_a_group_of_its_own_and_not_the_mask():
    race = ["M"] * 40 + [None] * 6
    release = RobinHood("race", k_target=10).apply(
        Microdata(pl.DataFrame({"race": race}), keys=["race"]), seed=1
    )
    assert release.data.frame["race"].null_count() == 5
    assert release.log[0].internal["masked_by_group"]["missing"] == pytest.approx(1 / 6)


def test_the_light_generalization_is_the_best_of_all_nodes():
    frame = people(500)
    lattice = Lattice(Microdata(frame, keys=KEYS), KEYS, HIERARCHIES)
    heights = [key.height if key.name in HIERARCHIES else 0 for key in lattice.keys]
    bottom = lattice.base.sizes
    for k in (2, 3, 10, 40):
        good = {
            node: joint_entropy_loss(bottom, lattice.table(node).sizes)
            for node in product(*(range(height + 1) for height in heights))
            if lattice.table(node).sizes.min() >= k
        }
        listed = list(nodes_by_loss(lattice, k, heights))
        assert {node for node, _ in listed} == set(good)
        losses = [loss for _, loss in listed]
        assert losses == sorted(losses)
        assert losses[0] == pytest.approx(min(good.values()))
        finer = {node for node in good if not any(_below(other, node) for other in good if other != node)}
        assert set(minimal_nodes(lattice, k, heights)) == finer


def _below(finer: tuple[int, ...], coarser: tuple[int, ...]) -> bool:
    return all(low <= high for low, high in zip(finer, coarser, strict=True))


def test_generalizing_further_is_tried_until_all_can_be_protected():
    data = Microdata(people(1500), keys=KEYS)
    light = RobinHood("race", k_target=20, hierarchies=HIERARCHIES).apply(data, seed=1).log[0].parameters
    full = RobinHood("race", k_target=20, hierarchies=HIERARCHIES, on_infeasible="generalize").apply(
        data, seed=1
    )
    assert not light["feasible"]
    assert full.log[0].parameters["feasible"]
    assert sum(full.log[0].parameters["levels"].values()) > sum(light["levels"].values())
    with pytest.raises(ParameterError, match="No generalization"):
        RobinHood("race", k_target=5000, hierarchies=HIERARCHIES, on_infeasible="generalize").apply(data)


def test_types_survive():
    frame = people().with_columns(race=pl.col("race").cast(pl.Enum(["c", "b", "a"])))
    released = RobinHood("race", k_target=60, keys=["race", "sex"]).apply(Microdata(frame), seed=1).data.frame
    assert released.schema["race"] == pl.Enum(["c", "b", "a", "?"])
    numbers = frame.with_columns(race=pl.col("race").to_physical().cast(pl.Int16))
    treatment = RobinHood("race", k_target=400, keys=["race", "sex"], mask_value=-1)
    assert treatment.apply(Microdata(numbers), seed=1).data.frame.schema["race"] == pl.Int16
    table = people().to_pandas()
    table["race"] = table["race"].astype("category")
    treated = RobinHood("race", k_target=400, keys=["race", "sex"]).apply(Microdata(table), seed=1).data.frame
    assert isinstance(treated["race"].dtype, pd.CategoricalDtype)
    assert set(treated["race"].cat.categories) == {"a", "b", "c", "?"}


def test_a_plan_file_can_hold_it():
    treatment = RobinHood("race", k_target=9, hierarchies=HIERARCHIES, keys=KEYS)
    again = Treatment.named("robin-hood", treatment.to_dict())
    assert again.to_dict() == treatment.to_dict()
    assert again.hierarchies == HIERARCHIES


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"k_target": 2}, "k_target must be at least"),
        ({"k_target": 0}, "k_target must be a whole"),
        ({"k_target": 5, "threshold_majority": 0}, "threshold_majority"),
        ({"k_target": 5, "threshold_minority": 1.2}, "threshold_minority"),
        ({"k_target": 5, "on_infeasible": "ignore"}, "on_infeasible"),
        ({"k_target": 5, "hierarchies": {"age": 3}}, "Hierarchy"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ParameterError, match=message):
        RobinHood("race", **parameters)


def test_what_does_not_fit_the_file_is_refused():
    data = Microdata(people(300), keys=KEYS)
    with pytest.raises(ColumnError, match="must be one of the keys"):
        RobinHood("sick", k_target=5).apply(data)
    with pytest.raises(ColumnError, match="already has the mask_value"):
        RobinHood("race", k_target=5, mask_value="a").apply(data)
    with pytest.raises(ColumnError, match="mask_value must be of the type"):
        RobinHood("age", k_target=5).apply(data)
    with pytest.raises(ParameterError, match="smaller than k_initial"):
        RobinHood("race", k_target=5).apply(data)
    with pytest.raises(ColumnError, match="In hierarchies"):
        RobinHood("race", k_target=5, hierarchies={"sick": HIERARCHIES["age"]}).apply(data)
