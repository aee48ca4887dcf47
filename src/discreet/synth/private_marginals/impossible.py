"""Which combinations of values cannot occur? Declared by the user, never drawn, and free of charge.

What cannot occur is public knowledge (a man is not pregnant), not something that was seen to be empty. Records drawn
with such a combination are drawn again, which is the law of the model given that they do not occur.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Flags, Floats
from discreet.core.errors import ColumnError, ParameterError
from discreet.synth.coded_columns import Attribute
from discreet.synth.column_forms import as_numbers
from discreet.synth.private_marginals.junction_tree import Clique
from discreet.synth.private_marginals.measuring import Grouping


@dataclass(frozen=True, eq=False)
class Condition:
    """Values of one column: levels, or a range of a number.

    Attributes
    ----------
    column
        The place of the column.
    levels
        Some of its levels; None for a number.
    bounds
        Smallest and largest value, for a number.
    """

    column: int
    levels: pl.Series | None = None
    bounds: tuple[float, float] | None = None

    def holds(self, values: pl.Series) -> Flags:
        """Whether values meet it; missing ones never do."""
        if self.levels is not None:
            text = isinstance(values.dtype, pl.Categorical | pl.Enum)
            plain = values.cast(pl.String) if text else values
            return plain.is_in(self.levels.implode()).fill_null(False).to_numpy()
        assert self.bounds is not None
        return as_numbers(values).is_between(*self.bounds).fill_null(False).to_numpy()

    def codes(self, attribute: Attribute) -> Flags:
        """Which codes lie wholly within it."""
        met = np.zeros(attribute.size, dtype=bool)
        if self.levels is not None and attribute.levels is not None:
            met[: attribute.bins] = attribute.levels.is_in(self.levels.implode()).to_numpy()
        elif self.bounds is not None and attribute.edges is not None:
            low, high = attribute.edges[:-1], attribute.edges[1:]
            if attribute.decimals == 0:  # whole numbers strictly between the borders
                low, high = np.ceil(low), np.floor(high)
            met[: attribute.bins] = (low >= self.bounds[0]) & (high <= self.bounds[1])
        return met

    def state(self) -> dict[str, Any]:
        """Return the condition for a model file."""
        return {
            "column": self.column,
            "levels": self.levels,
            "bounds": None if self.bounds is None else list(self.bounds),
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Condition:
        """Make the condition again."""
        bounds = state["bounds"]
        return cls(int(state["column"]), state["levels"], None if bounds is None else (bounds[0], bounds[1]))


Combination = tuple[Condition, ...]


def combinations_of(
    declared: Sequence[Mapping[str, Any]] | None, attributes: Sequence[Attribute]
) -> list[Combination]:
    """Read what was declared: one mapping a combination, from column to level, levels or (low, high)."""
    places = {attribute.name: place for place, attribute in enumerate(attributes)}
    made: list[Combination] = []
    for given in declared or ():
        if not isinstance(given, Mapping) or not given:
            raise ParameterError(
                "impossible must be a list of combinations, each {column: level} or {column: (low, high)}."
            )
        conditions = []
        for name, values in given.items():
            if name not in places:
                raise ColumnError(
                    f"Column '{name}' was named under impossible, and the synthetic file has no such column."
                )
            conditions.append(_condition(attributes[places[name]], places[name], values))
        made.append(tuple(conditions))
    return made


def _condition(attribute: Attribute, place: int, values: Any) -> Condition:
    listed = list(values) if isinstance(values, list | tuple | set) else [values]
    if attribute.levels is None:
        ends = listed if len(listed) == 2 else listed * 2
        numbers = as_numbers(pl.Series(ends, dtype=attribute.dtype, strict=False)).drop_nulls().to_list()
        if len(numbers) != 2 or numbers[0] > numbers[1]:
            raise ColumnError(
                f"Under impossible the number '{attribute.name}' needs one value or (low, high)."
            )
        return Condition(place, bounds=(float(numbers[0]), float(numbers[1])))
    known = attribute.levels.to_list()
    if not listed or any(level not in known for level in listed):
        raise ColumnError(
            f"Under impossible column '{attribute.name}' has a level that its domain does not have."
        )
    return Condition(place, levels=attribute.levels.filter(attribute.levels.is_in(listed)))


def found(combinations: Sequence[Combination], frame: pl.DataFrame) -> Flags:
    """Which records have a combination that cannot occur."""
    met = np.zeros(frame.height, dtype=bool)
    columns = frame.get_columns()
    for combination in combinations:
        every = np.ones(frame.height, dtype=bool)
        for condition in combination:
            every &= condition.holds(columns[condition.column])
        met |= every
    return met


def allowed_cells(
    columns: Clique,
    combinations: Sequence[Combination],
    attributes: Sequence[Attribute],
    groupings: Sequence[Grouping],
) -> Floats | None:
    """0 for the cells of a table whose every record would be impossible, 1 for all others; None where all may be."""
    cells = None
    for combination in combinations:
        if not {condition.column for condition in combination} <= set(columns):
            continue
        met = np.ones([groupings[column].size for column in columns], dtype=bool)
        for condition in combination:
            grouping = groupings[condition.column]
            outside = np.bincount(
                grouping.group,
                weights=~condition.codes(attributes[condition.column]),
                minlength=grouping.size,
            )
            shape = [1] * len(columns)
            shape[columns.index(condition.column)] = grouping.size
            met &= (outside == 0).reshape(shape)
        cells = np.ones(met.shape) if cells is None else cells
        cells[met] = 0.0
    return cells
