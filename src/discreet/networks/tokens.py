"""Records as short texts: a few tokens a column, in a fixed order, for a language model.

A level is written as its code, a number in groups of three digits, each group one token (so that most values take a
single one); names of columns are not written, because order and place say them. A number that may be longer ends with a
mark, or is filled up to its own longest length (middle padding).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.core.arrays import Array, Flags, Integers

PAD, END, MINUS, FIRST = 0, 1, 2, 3
GROUP = 1000
VOCABULARY = FIRST + GROUP


@dataclass(frozen=True)
class TokenColumn:
    """How one column is written.

    Attributes
    ----------
    groups
        The most groups of three digits.
    signed
        Whether it may be negative.
    size
        How many levels a category has; 0 for a number.
    low, high
        The range of a number; what lies beyond is not accepted.
    """

    groups: int
    signed: bool = False
    size: int = 0
    low: int = 0
    high: int = 0

    @classmethod
    def level(cls, size: int) -> TokenColumn:
        """Describe a category."""
        return cls(_groups(max(size - 1, 0)), size=size)

    @classmethod
    def number(cls, values: Integers) -> TokenColumn:
        """Describe whole numbers."""
        low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
        return cls(_groups(max(abs(low), abs(high))), low < 0, 0, low, high)

    @property
    def is_level(self) -> bool:
        """Whether it is a category."""
        return self.size > 0

    def to_list(self) -> list[int]:
        """Return it as plain numbers."""
        return [self.groups, int(self.signed), self.size, self.low, self.high]


class RowTokenizer:
    """Writes and reads records.

    Parameters
    ----------
    columns
        How each column is written.
    middle_padding
        Fill every number up to its longest length in place of a mark at its end.

    Examples
    --------
    >>> rows = np.array([[2, -12345], [0, 7]])
    >>> tokenizer = RowTokenizer([TokenColumn.level(3), TokenColumn.number(rows[:, 1])])
    >>> tokens = tokenizer.encode(rows)
    >>> tokens.tolist()
    [[5, 2, 15, 348, 1], [3, 10, 1, 0, 0]]
    >>> values, read = tokenizer.decode(tokens)
    >>> values.tolist(), read.tolist()
    ([[2, -12345], [0, 7]], [True, True])
    """

    def __init__(self, columns: Sequence[TokenColumn], *, middle_padding: bool = False) -> None:
        self.columns = tuple(columns)
        self.middle_padding = middle_padding
        # A state is a place within a column: what the next token will say.
        self.lengths = [self._length(one) for one in self.columns]
        self.starts = np.append(0, np.cumsum(self.lengths)).astype(np.int64)
        self.states = int(self.starts[-1])
        self.owner = np.repeat(np.arange(len(self.columns)), self.lengths)
        self.seen: Integers = np.tile(np.array([FIRST, VOCABULARY - 1]), (self.states, 1))

    def learn(self, tokens: Array) -> None:
        """Remember the smallest and the largest group of digits at every place, to be held to in writing."""
        states = self.state_of(tokens)
        digits = (tokens >= FIRST) & (states < self.states)
        low, high = np.full(self.states, VOCABULARY), np.zeros(self.states, dtype=np.int64)
        np.minimum.at(low, states[digits], tokens[digits])
        np.maximum.at(high, states[digits], tokens[digits])
        self.seen = np.column_stack([low, high])

    @property
    def longest(self) -> int:
        """The most tokens of a record."""
        return self.states

    def _varies(self, column: TokenColumn) -> bool:
        """Whether the number of tokens of a column is marked by an end."""
        return not self.middle_padding and not column.is_level and (column.groups > 1 or column.signed)

    def _length(self, column: TokenColumn) -> int:
        if column.is_level:
            return column.groups
        return column.groups + column.signed + self._varies(column)

    def encode(self, values: Integers) -> Array:
        """Write records, one row of tokens each, filled up at the end."""
        tokens, there = [], []
        for place, column in enumerate(self.columns):
            own, used = self._written(values[:, place].astype(np.int64), column)
            tokens.append(own)
            there.append(used)
        every, used = np.concatenate(tokens, axis=1), np.concatenate(there, axis=1)
        order = np.argsort(~used, axis=1, kind="stable")
        short = np.take_along_axis(np.where(used, every, PAD), order, axis=1)
        return short[:, : int(used.sum(axis=1).max(initial=1))].astype(np.int16)

    def _written(self, values: Integers, column: TokenColumn) -> tuple[Array, Flags]:
        """Write one column: tokens, and which of the places are used."""
        size = np.abs(values)
        powers = GROUP ** np.arange(column.groups - 1, -1, -1, dtype=np.int64)
        groups = size[:, None] // powers % GROUP
        if column.is_level:
            return groups + FIRST, np.ones(groups.shape, dtype=np.bool_)
        count = np.maximum((size[:, None] >= powers).sum(axis=1), 1)
        at = np.arange(column.groups)
        shifted = np.minimum(at + (column.groups - count)[:, None], column.groups - 1)
        used = at < count[:, None]
        tokens = np.where(used, np.take_along_axis(groups, shifted, axis=1) + FIRST, PAD)
        parts, there = [tokens], [used]
        if column.signed:
            negative = (values < 0)[:, None]
            parts.insert(0, np.where(negative, MINUS, PAD))
            there.insert(0, negative)
        if self._varies(column):
            parts.append(np.full((len(values), 1), END))
            there.append(np.ones((len(values), 1), dtype=np.bool_))
        made, filled = np.concatenate(parts, axis=1), np.concatenate(there, axis=1)
        return made, np.ones_like(filled) if self.middle_padding else filled

    def state_of(self, tokens: Array) -> Integers:
        """Say of every token which state it answers to; ``states`` where the record has ended."""
        state = np.zeros(len(tokens), dtype=np.int64)
        made = np.empty(tokens.shape, dtype=np.int64)
        for place in range(tokens.shape[1]):
            made[:, place] = state
            state = self.after(state, tokens[:, place])
        return made

    def after(self, state: Integers, token: Array) -> Integers:
        """Return the state that follows a token."""
        table = self.tables()
        ends = table["last"][state] | (table["varies"][state] & (token == END))
        return np.where(ends, table["next"][state], np.minimum(state + 1, self.states))

    def tables(self) -> dict[str, Any]:
        """Return, by state: is it the last of its column, may an end mark stand there, and what follows."""
        last = np.zeros(self.states + 1, dtype=np.bool_)
        last[self.starts[1:] - 1] = True
        varies = np.zeros(self.states + 1, dtype=np.bool_)
        following = np.full(self.states + 1, self.states, dtype=np.int64)
        for place, column in enumerate(self.columns):
            own = slice(self.starts[place], self.starts[place + 1])
            varies[own] = self._varies(column)
            following[own] = self.starts[place + 1]
        return {"last": last, "varies": varies, "next": following}

    def allowed(self) -> Flags:
        """Say, by state, which tokens can stand there."""
        made = np.zeros((self.states + 1, VOCABULARY), dtype=np.bool_)
        made[self.states, PAD] = True
        for place, column in enumerate(self.columns):
            for at in range(self.lengths[place]):
                row = made[self.starts[place] + at]
                if column.is_level:
                    most = (column.size - 1) // GROUP ** (column.groups - 1) if at == 0 else GROUP - 1
                    row[FIRST : FIRST + most + 1] = True
                    continue
                if at < column.signed + column.groups:
                    row[FIRST:] = True
                if column.signed and at == 0:
                    row[MINUS] = True
                    row[PAD] = self.middle_padding
                    if self.middle_padding:
                        row[FIRST:] = False
                if self._varies(column) and at > 0:
                    row[END] = True
                if self.middle_padding and at > column.signed:
                    row[PAD] = True
        tokens = np.arange(VOCABULARY)
        beyond = (tokens < self.seen[:, :1]) | (tokens > self.seen[:, 1:])
        made[:-1] &= ~beyond | (tokens < FIRST)
        return made

    def decode(self, tokens: Array) -> tuple[Integers, Flags]:
        """Read records; say of each whether it can be read and all its values are known ones."""
        rows = len(tokens)
        values = np.zeros((rows, len(self.columns)), dtype=np.int64)
        groups = np.zeros_like(values)
        negative = np.zeros(values.shape, dtype=np.bool_)
        good = np.ones(rows, dtype=np.bool_)
        closed = np.zeros(values.shape, dtype=np.bool_)  # a filled place came: no digit may follow
        state, every = np.zeros(rows, dtype=np.int64), np.arange(rows)
        owner = np.append(self.owner, 0)
        for place in range(tokens.shape[1]):
            token = tokens[:, place].astype(np.int64)
            open_ = state < self.states
            column = owner[state]
            digit = open_ & (token >= FIRST)
            at = every[digit], column[digit]
            good[digit] &= ~closed[at]
            values[at] = values[at] * GROUP + token[digit] - FIRST
            groups[at] += 1
            sign = open_ & (token == MINUS)
            first = np.append(self.starts[:-1], 0)[column] == state
            good &= ~sign | first
            negative[every[sign], column[sign]] = True
            gap = open_ & (token == PAD)
            if self.middle_padding:
                closed[every[gap & ~first], column[gap & ~first]] = True
                good &= token != END
            else:
                good &= ~gap
            state = self.after(state, token)
        good &= state == self.states
        for place, column_ in enumerate(self.columns):
            own = np.where(negative[:, place], -values[:, place], values[:, place])
            values[:, place] = own
            good &= groups[:, place] > 0
            low, high = (0, column_.size - 1) if column_.is_level else (column_.low, column_.high)
            good &= (own >= low) & (own <= high)
            if not column_.signed:
                good &= ~negative[:, place]
        return values, good

    def to_dict(self) -> dict[str, Any]:
        """Return the tokenizer as plain numbers."""
        return {
            "columns": [one.to_list() for one in self.columns],
            "middle_padding": self.middle_padding,
            "seen": self.seen,
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> RowTokenizer:
        """Make the tokenizer again."""
        columns = [
            TokenColumn(int(groups), bool(signed), int(size), int(low), int(high))
            for groups, signed, size, low, high in state["columns"]
        ]
        if any(not 0 < one.groups <= 7 for one in columns):
            raise ValueError("columns that are written in no tokens, or too many")
        made = cls(columns, middle_padding=bool(state["middle_padding"]))
        if "seen" in state:
            made.seen = np.asarray(state["seen"], dtype=np.int64).reshape(made.states, 2)
        return made


def _groups(most: int) -> int:
    """How many groups of three digits a whole number takes."""
    return max(1, (len(str(most)) + 2) // 3)
