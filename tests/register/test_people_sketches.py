from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.core.errors import InputError
from discreet.register import PeopleSketch, people_sketch

KEY = b"a secret of at least sixteen bytes"


def sketch(frame, columns=("pay",), **options):
    return people_sketch(frame, list(columns), KEY, **options)


@given(
    st.integers(20, 200),
    st.integers(0, 8),
    st.integers(0, 8),
    st.booleans(),
    st.integers(1, 60),
    st.integers(0, 9),
)
def test_never_more_people_are_said_to_differ_than_do(rows, gone, changed, by_person, levels, seed):
    frame = pl.DataFrame({"who": range(rows), "pay": [(7 * n + seed) % levels for n in range(rows)]})
    later = frame.with_columns(pay=pl.when(pl.int_range(pl.len()) < changed).then(-1).otherwise("pay"))[
        : rows - gone
    ]
    person = "who" if by_person else None
    apart = sketch(frame, person=person).apart(sketch(later, person=person))
    different = min(changed, rows - gone) + gone
    assert apart is not None
    assert apart <= different
    assert (apart > 0) == (different > 0)


def test_sets_that_have_nothing_in_common_are_far_apart():
    frame = pl.DataFrame({"who": range(2_000), "pay": range(2_000)})
    assert sketch(frame[:1_000]).apart(sketch(frame[1_000:])) is None


def test_cells_in_which_everybody_has_one_value_are_told_apart():
    frame = pl.DataFrame({"region": ["n"] * 300 + ["s"] * 290})
    one, other = (sketch(frame.filter(region=name), ["region"]) for name in "ns")
    assert one.apart(other) is None
    assert one.apart(sketch(frame[1:300], ["region"])) == 1


def test_all_records_of_a_person_count_once():
    stays = pl.DataFrame({"who": [n // 5 for n in range(500)], "cost": range(500)})
    later = stays.with_columns(cost=pl.when(pl.col("who") == 3).then(0).otherwise("cost"))
    assert sketch(stays, ["cost"], person="who").apart(sketch(later, ["cost"], person="who")) == 1
    assert sketch(stays, ["cost"]).apart(sketch(later, ["cost"])) == 5


def test_another_key_gives_another_sketch_and_a_damaged_one_is_refused():
    frame = pl.DataFrame({"pay": range(100)})
    text = sketch(frame).to_text()
    assert PeopleSketch.of_text(text).apart(sketch(frame)) == 0
    assert people_sketch(frame, ["pay"], b"another secret of sixteen bytes").to_text() != text
    with pytest.raises(InputError, match="damaged"):
        PeopleSketch.of_text(text[:-8])
