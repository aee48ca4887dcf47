"""What is no array of numbers is refused by the name of the parameter, at every door that takes arrays."""

import contextlib
import inspect

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from discreet import Microdata, dp, protect, tables, utility
from discreet.core.arrays import numbers_of
from discreet.core.errors import DiscreetError, InputError, ParameterError
from discreet.core.parameters import function_hints
from discreet.utility import ks_two_sample

FINE = {
    "a": (0, 1), "b": (0, 2), "covariance": [[1.0]], "other_covariance": [[1.0]], "estimates": [1.0],
    "other_estimates": [1.0], "variances": [1.0], "codes": [0, 1], "t": [1.0, 2.0],
}  # fmt: skip
MORE = {
    "aitchison": {"a": [1.0, 2.0], "t": [1.0, 2.0]}, "table_accuracy": {"a": [1.0, 2.0], "t": [1.0, 2.0]},
    "ks_one_sample": {"cdf": lambda x: np.clip(x / 9, 0, 1)}, "ecdf_interval": {"at": 2.0},
    "permutation_test": {"statistic": lambda x, y: abs(x.mean() - y.mean()), "n_perm": 3},
    "choose": {"sensitivity": 1, "epsilon": 1}, "smoothed_check_loss": {"tau": 0.5, "h": 0.5},
    "laplace": {"sensitivity": 1, "epsilon": 1}, "gaussian": {"sensitivity": 1, "epsilon": 1, "delta": 1e-6},
    "local_laplace": {"lower": 0, "upper": 9, "epsilon": 1}, "randomized_response": {"levels": 2, "epsilon": 1},
}  # fmt: skip
FUNCTIONS = [
    getattr(room, name)
    for room in (utility, dp)
    for name in room.__all__
    if inspect.isfunction(getattr(room, name))
    and any(hint is npt.ArrayLike for hint in function_hints(getattr(room, name)).values())
]
DOORS = [
    (function, name)
    for function in FUNCTIONS
    for name, hint in function_hints(function).items()
    if hint is npt.ArrayLike
]
WRONG = [
    "text",
    ["1", "2", "3", "4"],
    [[1, 2], [3]],
    [object()] * 4,
    {1, 2, 3, 4},
    [1j] * 4,
    np.array(["2020"], "M8[D]"),
    None,
]


def asked(function, name, value):
    settings = {
        other: FINE.get(other, [1.0, 2.0, 3.0, 4.0])
        for other, hint in function_hints(function).items()
        if hint is npt.ArrayLike
    }
    return function(**{**settings, **MORE.get(function.__name__, {}), name: value})


def test_every_door_that_takes_arrays_is_known_here():
    assert len(DOORS) >= 22
    for function, name in DOORS:
        asked(function, name, FINE.get(name, [1.0, 2.0, 3.0, 4.0]))


@pytest.mark.parametrize(
    "wrong", WRONG, ids=[str(type(one).__name__) + str(at) for at, one in enumerate(WRONG)]
)
@pytest.mark.parametrize(("function", "name"), DOORS, ids=[f"{f.__name__}-{n}" for f, n in DOORS])
def test_what_is_no_number_is_refused_by_name(function, name, wrong):
    if function is utility.permutation_test and not isinstance(wrong, str | set | None):
        # What a record is, the statistic knows.
        return
    with pytest.raises(ParameterError, match=rf"\b{name}\b"):
        asked(function, name, wrong)


@pytest.mark.parametrize(("function", "name"), DOORS, ids=[f"{f.__name__}-{n}" for f, n in DOORS])
@pytest.mark.parametrize(
    "odd", [[], [np.nan], [np.inf, 1.0, 2.0, 3.0], [1.0, 2.0], [-1.0] * 4, [1e308] * 4, 5, [None, 1, 2, 3]]
)
@pytest.mark.filterwarnings("ignore")
def test_odd_numbers_give_an_answer_or_a_refusal(function, name, odd):
    if function is utility.permutation_test and odd == [None, 1, 2, 3]:
        return  # the statistic of this test cannot take gaps
    with contextlib.suppress(DiscreetError):
        asked(function, name, odd)


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (("text", None), r"weights\[0\] must be numbers"),
        ((None, [1, 2]), r"released has 3 numbers and weights\[1\] 2"),
        (([1, np.nan, 1], None), r"weights\[0\] has missing"),
        ((None, [1, -1, 1]), r"weights\[1\] has numbers below 0"),
        (([1, np.inf, 1], None), r"weights\[0\] has infinite"),
    ],
)
def test_weights_are_held_to_be_weights(weights, said):
    with pytest.raises(ParameterError, match=said):
        ks_two_sample([1, 2, 3], [1, 2, 4], weights=weights)


def test_weights_given_as_arrays_leave_no_critical_value():
    ones = np.ones(3)
    assert ks_two_sample([1, 2, 3], [1, 2, 3], weights=(ones, ones))["ks"] == 0
    with pytest.raises(ParameterError, match="no critical value"):
        ks_two_sample([1, 2, 3], [1, 2, 3], weights=(ones, ones), assume_independent=True)


def test_a_distribution_must_give_shares():
    with pytest.raises(ParameterError, match="cdf"):
        utility.ks_one_sample([1.0, 2.0], lambda x: x)
    with pytest.raises(ParameterError, match="cdf"):
        utility.ks_one_sample([1.0, 2.0], lambda x: 0.5)


@given(arrays.arrays(np.float64, st.integers(1, 8), elements=st.floats(width=64)))
def test_numbers_come_through_as_they_are(values):
    read = [values, values.tolist(), pl.Series(values)]
    for given_as in read:
        assert np.array_equal(
            numbers_of(given_as, "values", missing=True, infinite=True), values, equal_nan=True
        )
    if not np.isfinite(values).all():
        with pytest.raises(ParameterError, match=r"values has (missing|infinite)"):
            numbers_of(values, "values")


def test_nothing_is_refused_where_something_is_needed():
    with pytest.raises(InputError, match="values holds nothing"):
        numbers_of([], "values")


def test_rows_of_unlike_length_are_refused_wherever_cells_are_named():
    table = tables.Table.from_microdata(pl.DataFrame({"place": ["a"] * 9 + ["b"] * 6}), "place")
    for ask in (
        lambda: tables.primary(table, tables.Listed([[1, 2], [3]])),
        lambda: tables.Suppression(hidden=[[1, 2], [3]]).apply(tables.primary(table, tables.Threshold(7))),
    ):
        with pytest.raises(ParameterError, match="length"):
            ask()


def test_a_number_that_no_array_holds_is_refused_unless_it_is_a_seed():
    people = Microdata(pl.DataFrame({"a": [1, 2, 3, 4], "b": [1, 1, 2, 2]}))
    with pytest.raises(ParameterError, match="depth must be a smaller number"):
        utility.table_propensity(people, people, depth=2**63)
    protect.AddNoise(["a"]).apply(people, seed=2**63)
