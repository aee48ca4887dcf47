"""The worked examples of the Robin Hood specification (robin-hood-deidentification, sections 3.2, 5 and 6)."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.core.errors import ParameterError
from discreet.protect.lattice_search import joint_entropy_loss
from discreet.protect.robin_hood import RobinHood, allot, protection


def one_masking_class(**sizes: int) -> Microdata:
    race = [name for name, size in sizes.items() for _ in range(size)]
    return Microdata(pl.DataFrame({"race": race, "sex": ["f"] * len(race)}), keys=["race", "sex"])


def test_figure_1_masks_three_of_the_majority_and_one_of_the_minority():
    plan = allot([7, 3], [0, 0], k_target=4)
    assert plan.minority.tolist() == [0, 1]
    assert plan.majority.tolist() == [3]
    table = protection([7, 3], [3, 1], [0, 0])
    majority, minority = table.rows(named=True)
    assert (majority["B"], majority["C"], majority["E"], minority["B"], minority["D"]) == (4, 3, 4, 2, 3)
    assert minority["effective_k"] == pytest.approx(4)
    assert majority["effective_k"] == pytest.approx(7.4286, abs=5e-5)
    assert minority["attempts_unmasked_first"] == pytest.approx(2.5)
    assert minority["attempts_masked_first"] == pytest.approx(4.5)
    assert minority["attempts_mixed"] == pytest.approx(3.5)


def test_figure_1_as_a_file():
    release = RobinHood(fairness="race", k_initial=3, k_target=4).apply(one_masking_class(M=7, m=3), seed=3)
    counts = dict(release.data.frame["race"].value_counts().rows())
    assert counts == {"M": 4, "m": 2, "?": 4}
    assert release.log[0].internal["classes"]["effective_k"] == pytest.approx([7 + 3 / 7, 4])


def test_the_second_small_class_profits_from_what_was_masked_for_the_first():
    plan = allot([40, 6, 3], [0, 0, 0], k_target=10)
    assert plan.minority.tolist() == [0, 1, 1]
    assert plan.majority.tolist() == [23]
    table = protection([40, 6, 3], [23, 1, 1], [0, 0, 0])
    assert table["effective_k"].to_list() == pytest.approx([41.15, 10, 11])
    release = RobinHood(fairness="race", k_target=10).apply(one_masking_class(M=40, a=6, b=3), seed=5)
    assert release.log[0].parameters["masked_records"] == 25
    assert dict(release.data.frame["race"].value_counts().rows()) == {"M": 17, "a": 5, "b": 2, "?": 25}


def test_two_of_the_minority_are_masked_where_one_would_need_too_many_others():
    plan = allot([8, 4], [0, 0], k_target=8)
    assert plan.minority.tolist() == [0, 2]
    assert plan.majority.tolist() == [8]
    assert protection([8, 4], [8, 2], [0, 0])["effective_k"][1] == pytest.approx(8)


def test_a_class_that_cannot_be_protected_is_reported_and_left_alone():
    plan = allot([7, 3], [0, 0], k_target=8)
    # Neither class has 8 records: both are small and nothing large is there to lend.
    assert plan.infeasible.all()
    assert plan.minority.tolist() == [0, 0]
    data = one_masking_class(M=7, m=3)
    release = RobinHood(fairness="race", k_target=8).apply(data, seed=1)
    assert release.log[0].parameters["feasible"] is False
    assert release.log[0].changed_cells == {"race": 0}
    with pytest.raises(ParameterError, match="2 classes with 10 records"):
        RobinHood(fairness="race", k_target=8, on_infeasible="raise").apply(data, seed=1)


def test_seven_records_cannot_lend_fifteen():
    # The specification counts the class of 7 as the majority: with a pool of 7, C = 1 needs 15 and C = 2 is over half.
    needed = [int(np.ceil(3 * (8 - 3) / c)) for c in (1, 2)]
    assert needed == [15, 8]
    assert allot([8, 3], [0, 0], k_target=8).infeasible.tolist() == [False, True]


def test_the_loss_of_merging_classes_of_two_and_three():
    assert joint_entropy_loss([2, 3], [5]) == pytest.approx(0.970951, abs=5e-7)
    expected = (2 * np.log2(5 / 2) + 3 * np.log2(5 / 3)) / 5
    assert joint_entropy_loss([2, 3], [5]) == pytest.approx(expected, abs=1e-12)


def test_the_three_orders_of_attack_are_ranked_and_add_up_from_first_principles():
    random = np.random.default_rng(11)
    sizes = random.integers(1, 30, 200)
    masked = (sizes * random.random(200)).astype(int)
    inside = random.integers(0, 20, 200)
    table = protection(sizes, masked, inside)
    A, B, C, E = (table[name].to_numpy().astype(float) for name in "ABCE")
    first = B / A * (B + 1) / 2 + C / A * (B + (E + 1) / 2)
    second = C / A * (E + 1) / 2 + B / A * (E + (B + 1) / 2)
    mixed = (B + E + 1) / 2
    assert table["attempts_unmasked_first"].to_numpy() == pytest.approx(first)
    assert table["attempts_masked_first"].to_numpy() == pytest.approx(second)
    assert table["attempts_mixed"].to_numpy() == pytest.approx(mixed)
    assert (first <= mixed + 1e-9).all()
    assert (mixed <= second + 1e-9).all()
    assert (table["effective_k"].to_numpy() + 1) / 2 == pytest.approx(first)
