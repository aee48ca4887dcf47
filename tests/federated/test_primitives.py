"""Sums, products, statistics and ranks over parties: the pooled answer, whatever the masks, and clear refusals."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.core.errors import ColumnError, DiscreetWarning, InputError, ParameterError
from discreet.federated import (
    ProtocolError,
    link,
    ranked_element,
    robust_range,
    secure_matrix_product,
    secure_sufficient_statistics,
    secure_sum,
)
from discreet.federated.masking import Masks
from discreet.federated.messages import Message, decoded, encoded
from discreet.federated.parties import Holder, Party, Transport
from discreet.federated.quantities import Ring
from discreet.federated.ranked_elements import _Judge
from discreet.federated.shared_product import joint_moments

numbers = st.floats(-1e6, 1e6, allow_nan=False)


@settings(max_examples=examples(50))
@given(st.lists(numbers, min_size=3, max_size=7), st.integers(1, 4))
def test_a_secure_sum_is_the_sum(values, rounds):
    assert secure_sum(values, rounds=rounds).value == pytest.approx(sum(values), abs=1e-5)


@settings(max_examples=examples(50))
@given(st.integers(3, 6), st.integers(0, 2**32))
def test_what_a_party_sees_of_a_sum_is_uniform_whatever_the_values(parties, seed):
    """The same masks over other values shift a message by just the values: the mask alone decides what is seen."""
    first, second = (secure_sum([shift] * parties, keep=True, seed=seed).transcript for shift in (0.0, 1.0))
    seen = [[one.values["sum"] for one in run.contents if one.name == "partial"] for run in (first, second)]
    for at, (one, other) in enumerate(zip(*seen, strict=True)):
        assert (other - one == np.uint64((at + 1) << 24)).all()


def test_two_parties_have_no_secure_sum():
    with pytest.raises(ParameterError, match="at least 3 parties"):
        secure_sum([1.0, 2.0])
    assert secure_sum([1.0, 2.0], coordinator=True).value == 3.0


@pytest.mark.parametrize(
    ("values", "options", "match"),
    [
        ([1.0, np.nan, 2.0], {}, "finite"),
        ([[1.0], [1.0, 2.0], [1.0]], {}, "."),
        ([1e30, 1.0, 1.0], {}, "too large for a ring"),
        ([1.0, 1.0, 1.0], {"rounds": 0}, "rounds"),
    ],
)
def test_bad_sums_are_refused(values, options, match):
    with pytest.raises((ParameterError, ValueError), match=match):
        secure_sum(values, **options)


def test_neighbors_of_one_round_learn_a_value_and_with_more_rounds_do_not():
    """The collusion of the leakage report, played: what comes in less what goes out."""
    values = {"a": 1.0, "b": 2.0, "c": 39.0, "d": 5.0, "e": 7.0}

    def colluding(rounds):
        messages = secure_sum(values, rounds=rounds, keep=True, seed=1).transcript.contents
        passed = [one for one in messages if one.name in ("partial", "total") and one.values["round"] == 0]
        before = next(one.values["sum"] for one in passed if one.receiver == "c")
        after = next(one.values["sum"] for one in passed if one.sender == "c")
        return Ring().decode(after - before)[0]

    assert colluding(1) == 39.0
    assert colluding(3) != 39.0


@settings(max_examples=examples(50))
@given(st.integers(0, 10_000), st.integers(5, 30), st.integers(1, 3), st.integers(1, 3))
def test_a_matrix_product_is_exact_for_every_valid_a(seed, rows, first, second):
    rng = np.random.default_rng(seed)
    x1, x2 = rng.normal(size=(rows, first)), rng.normal(size=(rows, second))
    a = int(rng.integers(1, rows - first))
    np.testing.assert_allclose(secure_matrix_product(x1, x2, a=a, seed=seed).value, x1.T @ x2, atol=1e-10)


def test_bad_products_are_refused():
    square = np.eye(3)
    with pytest.raises(ParameterError, match="no direction outside"):
        secure_matrix_product(square, np.ones(3))
    with pytest.raises(InputError, match="same number of rows"):
        secure_matrix_product(np.ones((4, 1)), np.ones((3, 1)))
    with pytest.raises(ColumnError, match="'pay' has missing"):
        secure_matrix_product(pl.DataFrame({"pay": [1.0, None, 2.0]}), np.ones(3))
    with pytest.raises(ParameterError, match="a must lie between"):
        secure_matrix_product(np.arange(8.0).reshape(4, 2), np.ones(4), a=3)
    with pytest.warns(DiscreetWarning, match="whole space"):
        secure_matrix_product(np.arange(8.0).reshape(4, 2), np.ones(4), a=2)


def test_directions_that_are_not_orthonormal_are_refused():
    holder = Holder("b", pl.DataFrame({"x": [1.0, 2.0, 3.0]}))
    values = {"basis": np.ones((3, 2)), "columns": ["x"], "center": False}
    with pytest.raises(ProtocolError, match="not orthonormal"):
        holder.receive(Message("matrix-product", "r", "a", "b", "basis", values))


def test_sufficient_statistics_are_the_sums():
    rng = np.random.default_rng(2)
    x1, x2 = rng.normal(size=(40, 2)), rng.normal(size=(40, 1))
    answer = secure_sufficient_statistics(lambda a, b: np.hstack([a * b, a, b**2]), x1, x2, s=7, keep=True)
    np.testing.assert_allclose(answer.value, np.hstack([x1 * x2, x1, x2**2]).sum(axis=0), atol=1e-7)
    assert "ideal functionality" in answer.leakage.meaning
    offered = next(one.values["offers"] for one in answer.transcript.contents if one.name == "offers")
    assert offered.shape == (40, 7, 5)


@settings(max_examples=examples(50))
@given(
    st.lists(st.lists(st.integers(-50, 50), max_size=8), min_size=2, max_size=5).filter(
        lambda lists: any(lists)
    ),
    st.randoms(),
)
def test_a_ranked_element_is_the_sorted_one_with_ties_and_empty_parties(parties, random):
    pooled = sorted(value for one in parties for value in one)
    rank = random.randint(1, len(pooled))
    assert ranked_element(parties, rank, domain=(-50, 50)).value == pooled[rank - 1]
    if len(parties) == 2:
        assert ranked_element(parties, rank).value == pooled[rank - 1]


def test_ranks_of_decimal_numbers_and_of_a_robust_range():
    assert ranked_element([[0.25, 1.5], [0.75], [9.0]], 2, domain=(0, 10), precision=0.25).value == 0.75
    with pytest.raises(ParameterError, match="finer precision"):
        ranked_element([[0.25, 1.5], [0.75], [9.0]], 2, domain=(0, 10))
    with pytest.raises(ParameterError, match="outside the agreed domain"):
        ranked_element([[1], [2], [99]], 1, domain=(0, 10))
    assert robust_range([[1, 2, 3], [4, 5], [900]], (0.0, 0.8), domain=(0, 1000)) == (1, 5)


def test_a_value_that_earlier_answers_rule_out_is_refused():
    judge = _Judge()
    assert judge.first_is_smaller(5.0, 9.0)
    with pytest.raises(ProtocolError, match="rule out"):
        judge.first_is_smaller(3.0, 7.0)


def test_shared_products_give_the_pooled_moments():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(300, 4)) @ rng.normal(size=(4, 4)) * [1, 1e4, 1e-4, 1] + [0, 1e6, 5, 1]
    x[:, 3] = 7.0
    names = ["a", "b", "c"]
    widths = [[0], [1, 2], [3]]
    holders = [
        Holder(name, pl.DataFrame({f"x{i}": x[:, i] for i in own}))
        for name, own in zip(names, widths, strict=True)
    ]
    central = Party("coordinator")
    rows, mean, covariance = joint_moments(
        Transport([central, *holders]), central, names, [[f"x{i}" for i in own] for own in widths]
    )
    size = x.std(axis=0)
    assert rows == 300
    np.testing.assert_allclose(mean, x.mean(axis=0))
    scale = np.outer(np.where(size > 0, size, 1), np.where(size > 0, size, 1))
    np.testing.assert_allclose(covariance / scale, np.cov(x.T, bias=True) / scale, atol=1e-12)


@settings(max_examples=examples(50))
@given(st.binary(max_size=200))
def test_what_is_no_message_is_refused_and_runs_nothing(data):
    with pytest.raises(InputError):
        decoded(data)


def test_messages_come_back_as_they_went():
    values = {
        "a": np.arange(6.0).reshape(2, 3),
        "b": np.array([True]),
        "c": np.array([2**63], dtype=np.uint64),
        "d": [1],
    }
    back = decoded(encoded(Message("p", "r", "a", "b", "n", values)))
    assert back.fields == {"d": "json", "a": "float64[2,3]", "b": "bool[1]", "c": "uint64[1]"}
    assert all(np.array_equal(back.values[name], values[name]) for name in "abc")
    with pytest.raises(InputError, match="do not travel"):
        encoded(Message("p", "r", "a", "b", "n", {"x": np.array(["text"])}))


def test_masks_cannot_be_drawn_again_without_a_seed():
    assert not np.array_equal(Masks().normal((5,)), Masks().normal((5,)))
    assert np.array_equal(Masks(3).normal((5,)), Masks(3).normal((5,)))
    one = Masks()
    assert not np.array_equal(one.normal((5,)), one.normal((5,)))


def test_noise_is_normal():
    from scipy.stats import kstest

    assert kstest(Masks(5).normal((50_000,)), "norm").pvalue > 1e-3


def test_rows_link_by_their_ids_or_not_at_all():
    one, two = (
        pl.DataFrame({"id": [3, 1, 2], "x": [3, 1, 2]}),
        pl.DataFrame({"id": [1, 2, 3], "y": [1, 2, 3]}),
    )
    assert [frame[:, 1].to_list() for frame in link([one, two], "id")] == [[1, 2, 3], [1, 2, 3]]
    with pytest.raises(InputError, match="same people"):
        link([one, two.with_columns(id=pl.Series([1, 2, 4]))], "id")
    with pytest.raises(InputError, match="repeated"):
        link([one, two.with_columns(id=pl.Series([1, 2, 2]))], "id")


@pytest.mark.slow
def test_mpyc_gives_the_same_sums_comparisons_and_ranks():
    from discreet.federated.mpyc_backend import mpyc_less

    assert secure_sum([10.5, -3, 7.25], backend="mpyc").value == 14.75
    parties = [[17, 23, 90], [19, 45], [20, 73, 88, 31]]
    assert ranked_element(parties, 5, domain=(0, 120), backend="mpyc").value == 31
    assert mpyc_less(2.5, 3.0)


def test_no_module_hides_a_name_of_the_room():
    """A module that is called like a function takes its place once it is imported."""
    import pkgutil

    from discreet import federated

    modules = {module.name for module in pkgutil.iter_modules(federated.__path__)}
    assert not modules & set(federated.__all__)
