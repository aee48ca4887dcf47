from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.core.errors import ParameterError
from discreet.numerics import loss

SIZES = st.lists(st.integers(1, 50), min_size=1, max_size=20)


@given(SIZES, st.integers(0, 20))
def test_merging_two_classes_never_lowers_a_loss_of_classes(sizes, suppressed):
    merged = [sizes[0] + sizes[1], *sizes[2:]] if len(sizes) > 1 else sizes
    assert loss.discernibility(merged, suppressed) >= loss.discernibility(sizes, suppressed) - 1e-12
    assert loss.average_class_size(merged, suppressed) >= loss.average_class_size(sizes, suppressed)


@given(SIZES, st.integers(0, 20))
def test_losses_of_classes_are_shares(sizes, suppressed):
    assert 0 < loss.discernibility(sizes, suppressed) <= 1
    assert 0 < loss.average_class_size(sizes, suppressed) <= 1


@given(st.lists(st.integers(0, 7), min_size=1, max_size=40))
def test_entropy_is_nothing_for_the_values_themselves_and_everything_for_one_label(values):
    codes = np.unique(values, return_inverse=True)[1]
    assert loss.normalized_entropy([codes], [codes]) == pytest.approx(0, abs=1e-12)
    everything = 1.0 if len(set(values)) > 1 else 0.0
    assert loss.normalized_entropy([codes], [np.zeros_like(codes)]) == pytest.approx(everything)
    assert loss.normalized_entropy([codes], [codes - 100]) == pytest.approx(everything)


def test_discernibility_counts_pairs_and_suppressed_records_against_the_whole_file():
    assert loss.discernibility([2, 3], suppressed=1) == pytest.approx((4 + 9 + 6) / 36)


def test_suppressed_records_make_one_class():
    assert loss.average_class_size([2, 3], suppressed=1) == pytest.approx(1 / 3)
    assert loss.average_class_size([], suppressed=4) == 1


def test_precision_follows_sweeney():
    assert loss.precision_loss([1, 1], [2, 3]) == pytest.approx((1 / 2 + 1 / 3) / 2)


def test_weights_move_a_loss_towards_the_important_key():
    assert loss.coverage([[0.2, 0.6]], weights=[3, 1]) == pytest.approx(0.3)


def test_a_loss_of_classes_has_no_costs_of_cells():
    with pytest.raises(ParameterError, match="coverage"):
        loss.cell_costs("discernibility", [np.array([0])], np.array([1]), [np.array([1.0])])
