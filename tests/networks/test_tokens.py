"""Records as tokens: whatever is written can be read again, and whatever cannot be is said so."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.networks.tokens import END, FIRST, MINUS, PAD, VOCABULARY, RowTokenizer, TokenColumn


def tokenizer_of(values, levels, middle_padding):
    columns = [
        TokenColumn.level(levels),
        *(TokenColumn.number(values[:, at]) for at in range(1, values.shape[1])),
    ]
    return RowTokenizer(columns, middle_padding=middle_padding)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 1499), st.integers(-(10**15), 10**15), st.integers(0, 999)),
        min_size=1,
        max_size=20,
    ),
    st.booleans(),
)
def test_rows_come_back_as_they_were(rows, middle_padding):
    values = np.array(rows, dtype=np.int64)
    tokenizer = tokenizer_of(values, 1500, middle_padding)
    tokens = tokenizer.encode(values)
    assert tokens.max() < VOCABULARY
    read, good = tokenizer.decode(tokens)
    assert good.all()
    assert (read == values).all()


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(-5000, 5000)), min_size=1, max_size=20), st.booleans()
)
def test_what_is_written_is_always_allowed(rows, middle_padding):
    values = np.array(rows, dtype=np.int64)
    tokenizer = tokenizer_of(values, 21, middle_padding)
    tokens = tokenizer.encode(values)
    states, allowed = tokenizer.state_of(tokens), tokenizer.allowed()
    assert allowed[states, tokens].all()


def test_a_level_and_a_short_number_take_one_token_each():
    values = np.array([[3, 45], [0, 999]])
    assert tokenizer_of(values, 4, False).encode(values).tolist() == [
        [FIRST + 3, FIRST + 45],
        [FIRST, FIRST + 999],
    ]


def test_numbers_that_differ_in_length_are_marked_or_filled():
    values = np.array([[0, -12_345], [0, 7]])
    marked = tokenizer_of(values, 1, False).encode(values)
    assert marked.tolist() == [
        [FIRST, MINUS, FIRST + 12, FIRST + 345, END],
        [FIRST, FIRST + 7, END, PAD, PAD],
    ]
    filled = tokenizer_of(values, 1, True).encode(values)
    assert filled.tolist() == [[FIRST, MINUS, FIRST + 12, FIRST + 345], [FIRST, PAD, FIRST + 7, PAD]]


def test_what_cannot_be_read_is_rejected():
    values = np.array([[1, 100], [0, 2000]])
    tokenizer = tokenizer_of(values, 2, False)
    good = tokenizer.encode(values)
    for place, token in ((0, FIRST + 2), (0, END), (1, END), (2, FIRST + 999), (1, FIRST + 1), (1, MINUS)):
        bad = good.copy()
        bad[0, place] = token
        assert not tokenizer.decode(bad)[1][0]
    assert not tokenizer.decode(good[:, :1])[1].any()


def test_the_tokenizer_comes_back_from_plain_numbers():
    values = np.array([[1, -7], [0, 2000]])
    tokenizer = tokenizer_of(values, 2, True)
    again = RowTokenizer.from_dict(tokenizer.to_dict())
    assert (again.encode(values) == tokenizer.encode(values)).all()
    with pytest.raises(ValueError, match="no tokens"):
        RowTokenizer.from_dict({"columns": [[0, 0, 1, 0, 0]], "middle_padding": False})
