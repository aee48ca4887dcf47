"""Which records, by which dimensions, of which variable: what a statistic asks of the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import narwhals as nw
import polars as pl

from discreet.core.errors import ColumnError, ParameterError, need_known
from discreet.core.wording import type_name
from discreet.microdata import Microdata

Where = Mapping[str, Any]
Levels = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Question:
    """Which records, by which dimensions, of which variable, counted in which units.

    Attributes
    ----------
    by
        The dimensions.
    value
        The variable that is summed, where there is one.
    where
        The records meant: for each column the values that are let in.
    subject
        Who a record belongs to; without it every record is a person.
    weight
        Sampling weight.
    recode
        New levels of a dimension: ``{column: {old: new}}``.
    levels
        Declared levels of a dimension; those that occur unless given.
    keep_missing
        Whether a missing value of a dimension is a level of its own; else its records are left out.
    cap
        Largest value let in; larger ones count as this.
    drops_above
        Whether values above ``cap`` are left out instead.
    known
        Further columns that must have a value.
    """

    by: tuple[str, ...]
    value: str | None = None
    where: Where = field(default_factory=dict)
    subject: str | None = None
    weight: str | None = None
    recode: Mapping[str, Mapping[Any, Any]] = field(default_factory=dict)
    levels: Levels = field(default_factory=dict)
    keep_missing: bool = True
    cap: float | None = None
    drops_above: bool = False
    known: tuple[str, ...] = ()

    def columns(self) -> tuple[str, ...]:
        """All columns it touches, once each."""
        named = (*self.by, self.value, self.subject, self.weight, *self.where)
        return tuple(dict.fromkeys(name for name in named if name is not None))

    def measured(self) -> tuple[str, ...]:
        """The columns a statistic is of: dimensions, the variable, what must be known; not the filter."""
        named = (*self.by, *([self.value] if self.value is not None else []), *self.known)
        return tuple(dict.fromkeys(named))

    def check(self, data: Microdata) -> None:
        """Refuse columns that are not there or cannot be summed."""
        need_known((*self.columns(), *self.known), data.columns)
        if len(set(self.by)) < len(self.by):
            raise ParameterError("A dimension of the table is named twice. Name each once.")
        for number in (self.value, self.weight):
            if number is None or data.schema[number].is_numeric() or data.schema[number] == nw.Boolean:
                continue
            raise ColumnError(
                f"Column '{number}' is {type_name(data.schema[number])}, not a number, and cannot be summed."
            )


def let_in(column: str, wanted: Any) -> nw.Expr:
    """Test whether a column has one of the values that a filter lets in."""
    values = list(wanted) if isinstance(wanted, list | tuple | set | frozenset) else [wanted]
    known = [value for value in values if value is not None]
    test = nw.col(column).is_in(known) & ~nw.col(column).is_null()
    return test | nw.col(column).is_null() if None in values else test


def fitting(rows: pl.DataFrame, where: Where | None) -> pl.DataFrame:
    """Keep the rows in memory that a filter lets in."""
    for name, wanted in (where or {}).items():
        many = list(wanted) if isinstance(wanted, list | tuple | set) else [wanted]
        rows = rows.filter(pl.col(name).is_in(many))
    return rows


def recoded(column: str, changes: Mapping[Any, Any], source: nw.Expr | None = None) -> nw.Expr:
    """Give the levels of a dimension their new names."""
    merged: dict[Any, list[Any]] = {}
    for old, new in changes.items():
        merged.setdefault(new, []).append(old)
    return reduce(
        lambda rest, item: nw.when(let_in(column, item[1])).then(nw.lit(str(item[0]))).otherwise(rest),
        merged.items(),
        (nw.col(column) if source is None else source).cast(nw.String),
    ).alias(column)


def is_category(dtype: Any) -> bool:
    """Whether a column declares its levels."""
    return isinstance(dtype, nw.Categorical | nw.Enum) or dtype in (nw.Categorical, nw.Enum)
