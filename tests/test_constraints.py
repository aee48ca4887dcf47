"""What a parameter must be stands on its annotation, and the gate holds it there, whoever asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.core.constraints import Above, AtLeast, Between, Entries, OneOf, Share
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked, fault, typed_parameters


@checked
def asked(
    k: Annotated[int, AtLeast(2)] = 2,
    share: Annotated[float, Share(above=True)] = 0.5,
    limit: Annotated[float, Above(0)] | None = None,
    method: Annotated[str, OneOf("mean", "median")] = "mean",
    weights: Annotated[Sequence[Annotated[float, AtLeast(0)]], Entries(1)] = (1.0,),
    bounds: Mapping[str, Annotated[float, Between(-1, 1)]] | None = None,
) -> int:
    return k


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"k": 1}, "asked: k must be a whole number of at least 2."),
        ({"k": "3"}, "asked: k must be a whole number, not a text."),
        ({"k": 2.5}, "asked: k must be a whole number, not a float."),
        ({"share": 0}, "asked: share must be a share above 0 and at most 1."),
        ({"share": 1.01}, "asked: share must be a share above 0 and at most 1."),
        ({"limit": 0.0}, "asked: limit must be a number above 0 or nothing."),
        ({"method": "mode"}, "asked: method must be 'mean' or 'median'."),
        ({"weights": []}, "asked: weights must be a list of numbers of at least 0, at least one of them."),
        (
            {"weights": [1, -1]},
            "asked: weights must be a list of numbers of at least 0, at least one of them.",
        ),
    ],
)
def test_a_value_beyond_its_limits_is_refused_by_name_and_without_being_shown(settings, words):
    with pytest.raises(ParameterError) as refused:
        asked(**settings)
    assert str(refused.value) == words


def test_an_entry_beyond_its_limits_is_named():
    with pytest.raises(ParameterError, match="entry of 'pay'"):
        asked(bounds={"age": 1, "pay": 2})


def test_a_dataclass_of_parameters_is_held_to_its_limits_before_its_own_rule():
    @dataclass(frozen=True)
    @typed_parameters
    class Step:
        size: Annotated[int, AtLeast(1)] = 1

        def __post_init__(self) -> None:
            assert self.size >= 1

    with pytest.raises(ParameterError, match="size must be a whole number of at least 1"):
        Step(0)
    assert Step(1).size == 1


@given(st.floats(allow_nan=False), st.floats(-1e6, 1e6), st.floats(0, 1e6), st.booleans(), st.booleans())
def test_a_number_is_let_through_exactly_where_it_lies_between_the_ends(value, least, width, above, below):
    held = Between(least, least + width, above=above, below=below)
    inside = least <= value <= least + width
    at_an_open_end = (above and value == least) or (below and value == least + width)
    assert held.holds(value) == (inside and not at_an_open_end)
    if abs(value) < 1e300:
        assert (fault(value, Annotated[float, held]) is None) == held.holds(value)
