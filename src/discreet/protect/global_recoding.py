"""Coarser values: recode, generalize, band, round, top- and bottom-code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from decimal import Decimal
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Words
from discreet.core.citations import HUNDEPOOL_2012, SAMARATI_SWEENEY_1998
from discreet.core.constraints import Above, HoldsValues, Public
from discreet.core.errors import ColumnError, ParameterError
from discreet.core.method_cards import method
from discreet.core.wording import type_name
from discreet.dp.entropy import Stream
from discreet.engine import ByRecord
from discreet.hierarchy import Hierarchy
from discreet.hierarchy.enumerated import is_categorical
from discreet.microdata import Microdata
from discreet.protect.treatment import Change, Treatment, existing, numeric

_SINGLE_VALUES = (str, bool, int, float, Decimal, date, time, timedelta, np.generic)


@method(aim="coarser values", work="row-wise", references=(HUNDEPOOL_2012,))
@dataclass(frozen=True)
class Recode(Treatment):
    """Replace values by others, by a table.

    It protects against recognizing somebody by a rare category, by joining it with others.

    Also known as: global recoding.

    Parameters
    ----------
    mapping
        ``{column: {old value: new value}}``.
    other
        What becomes of values that the table does not name: ``"keep"`` them, make them ``"missing"``, or raise an
        ``"error"``.

    What it costs
    -------------
    The differences between the joined categories.

    When not to use it
    ------------------
    Do not put data values that nobody may see into a plan file that is shared: the table names them. For many
    values use a hierarchy and `Generalize`.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"region": ["Nord", "Nordwest", "Süd"]}))
    >>> Recode({"region": {"Nordwest": "Nord"}}).apply(people).data.frame["region"].to_list()
    ['Nord', 'Nord', 'Süd']
    """

    mapping: Annotated[Mapping[str, Mapping[Any, Any]], HoldsValues(by_column=True)]
    other: Literal["keep", "missing", "error"] = "keep"

    def treat(self, data: Microdata, stream: Stream) -> Change:
        """Look every value up in the table."""
        names = existing(data, self.mapping, treatment=self.name)
        kinds = {}
        if engine.is_lazy(data):
            # The type of the new column depends on which values there are, and these are a table of classes.
            held = engine.types_in_polars(data, names)
            kinds = {name: self._recoded(self._telling(data, name, held[name])).dtype for name in names}
        return Change(by_record=ByRecord(names, kinds, partial(self._batch, kinds)))

    def _telling(self, data: Microdata, name: str, kind: pl.DataType) -> pl.Series:
        """Give values that tell which type the recoded column has: its distinct ones where it depends on them."""
        new = _plain_codes(self.mapping[name], name).dtype
        mixed = self.other == "keep" and new != kind and not (new.is_numeric() and kind.is_numeric())
        if mixed or is_categorical(kind):
            return engine.distinct_values(data, name)
        return pl.Series(name, [], dtype=kind)

    def _batch(
        self, kinds: Mapping[str, pl.DataType], table: pl.DataFrame, records: Words
    ) -> dict[str, pl.Series]:
        return {column.name: self._recoded(column, kinds.get(column.name)) for column in table}

    def _recoded(self, values: pl.Series, kind: pl.DataType | None = None) -> pl.Series:
        codes = self.mapping[values.name]
        plain = values.cast(pl.String) if values.dtype in (pl.Categorical, pl.Enum) else values
        old = _like(plain, codes, values.name)
        new = _plain_codes(codes, values.name)
        distinct = plain.unique().drop_nulls()
        uncovered = int((~distinct.is_in(old.implode())).sum())
        if uncovered and self.other == "error":
            raise ColumnError(
                f"The recoding of '{values.name}' does not name {uncovered:,} of its values. "
                "Add them, or set other='keep' or 'missing'."
            )
        both_numeric = new.dtype.is_numeric() and plain.dtype.is_numeric()
        as_text = bool(uncovered) if kind is None else kind in (pl.String, pl.Enum, pl.Categorical)
        if self.other == "keep" and as_text and new.dtype != plain.dtype and not both_numeric:
            new, plain, old = new.cast(pl.String), plain.cast(pl.String), old.cast(pl.String)
        default = plain if self.other == "keep" else None
        recoded = plain.replace_strict(old, new, default=default)
        return _as_before(recoded, values)


@method(aim="coarser values", work="row-wise", references=(SAMARATI_SWEENEY_1998,))
@dataclass(frozen=True)
class Generalize(Treatment):
    """Raise columns to a level of their hierarchies.

    It protects against recognizing somebody by a detailed value, such as a town or an occupation, by showing
    the group it belongs to.

    Parameters
    ----------
    levels
        ``{column: level}``; 0 leaves the column as it is.
    hierarchies
        ``{column: Hierarchy}``.

    What it costs
    -------------
    Everything below the chosen level is gone, for everybody in the file, also for those who never stood out.

    When not to use it
    ------------------
    Do not use it to hide a few rare records: `LocalSuppression` costs less there. Where you do not know which
    levels are needed, let `OptimalGeneralization` find them.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"age": [31, 38, 52]}))
    >>> by_ten = Generalize({"age": 1}, {"age": Hierarchy.intervals([10])})
    >>> by_ten.apply(people).data.frame["age"].cast(pl.String).to_list()
    ['[30, 40)', '[30, 40)', '[50, 60)']
    """

    levels: Annotated[Mapping[str, int], HoldsValues()]
    hierarchies: Annotated[Mapping[str, Hierarchy], HoldsValues(by_column=True)]

    def treat(self, data: Microdata, stream: Stream) -> Change:
        """Generalize each column."""
        names = existing(data, self.levels, treatment=self.name)
        for name in names:
            if name not in self.hierarchies:
                raise ParameterError(
                    f"generalize has a level for '{name}' but no hierarchy. Give hierarchies['{name}']."
                )
        kinds = label_kinds(data, {name: (self.hierarchies[name], self.levels[name]) for name in names})
        return Change(by_record=ByRecord(names, kinds, self._batch))

    def _batch(self, table: pl.DataFrame, records: Words) -> dict[str, pl.Series]:
        for column in table:
            self.hierarchies[column.name].check(column, column=column.name)
        return {
            column.name: self.hierarchies[column.name].generalize(column, self.levels[column.name])
            for column in table
        }

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any]) -> Treatment:
        """Read hierarchies from their description in a plan file."""
        given = dict(parameters)
        if isinstance(given.get("hierarchies"), Mapping):  # else the check of parameters says what it must be
            given["hierarchies"] = hierarchies_of(given["hierarchies"])
        return super().from_dict(given)


@method(aim="coarser values", work="row-wise", references=(HUNDEPOOL_2012,))
@dataclass(frozen=True)
class Band(Treatment):
    """Put numbers into bands: by breaks of your own, or by bands of one width.

    It protects against recognizing somebody by an exact number, such as an age or a day, by making many
    people share one label.

    No value is ever lost: what lies below the first or above the last break falls into an open-ended band.

    Parameters
    ----------
    breaks
        ``{column: [break, …]}``, in increasing order.
    widths
        ``{column: width}``, for bands of equal width from 0.
    labels
        ``{column: [label, …]}``, one more than there are breaks.
    closed
        Whether a value that equals a break belongs to the band above it (``"left"``: ``[18, 30)``) or below it
        (``"right"``).

    What it costs
    -------------
    Differences within a band are gone, and with them exact means and correlations; the wider the band, the
    more. Tables by band stay exact.

    When not to use it
    ------------------
    Do not use it where users need the number itself, for example for regressions on income: noise or
    microaggregation keep a number. Bands of one width leave the few at the far end alone; give breaks of your
    own, or top-code first.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"age": [17, 18, 65, None]}))
    >>> made = Band(breaks={"age": [18, 65]}, labels={"age": ["minor", "adult", "senior"]}).apply(people)
    >>> made.data.frame["age"].cast(pl.String).to_list()
    ['minor', 'adult', 'senior', None]
    """

    breaks: Annotated[Mapping[str, Sequence[float]], Public()] = field(default_factory=dict)
    widths: Annotated[Mapping[str, float], Public()] = field(default_factory=dict)
    labels: Annotated[Mapping[str, Sequence[str]], Public()] = field(default_factory=dict)
    closed: Literal["left", "right"] = "left"

    def __post_init__(self) -> None:
        both = set(self.breaks) & set(self.widths)
        if both:
            raise ParameterError(f"band has both breaks and a width for '{min(both)}'. Give one of them.")
        for name in self.labels:
            if name not in self.breaks:
                raise ParameterError(f"band has labels for '{name}' but no breaks. Labels go with breaks.")

    def treat(self, data: Microdata, stream: Stream) -> Change:
        """Band each column."""
        names = numeric(data, [*self.breaks, *self.widths], treatment=self.name)
        kinds = label_kinds(data, {name: (self._hierarchy(name), 1) for name in names})
        return Change(by_record=ByRecord(names, kinds, self._batch))

    def _batch(self, table: pl.DataFrame, records: Words) -> dict[str, pl.Series]:
        return {column.name: self._hierarchy(column.name).generalize(column, 1) for column in table}

    def _hierarchy(self, name: str) -> Hierarchy:
        if name in self.widths:
            return Hierarchy.intervals([self.widths[name]], closed=self.closed)
        labels = [list(self.labels[name])] if name in self.labels else None
        return Hierarchy.breaks([list(self.breaks[name])], labels=labels, closed=self.closed)


@method(aim="coarser values", work="row-wise", references=(HUNDEPOOL_2012,))
@dataclass(frozen=True)
class Round(Treatment):
    """Round numbers to a multiple of a base, halves away from zero.

    It protects against recognizing somebody by an exact number, as far as several people share the rounded
    one.

    Parameters
    ----------
    base
        ``{column: base}``, e.g. ``{"income": 100}``.

    What it costs
    -------------
    Up to half a base for each value; means are nearly right, small differences are not.

    When not to use it
    ------------------
    Do not use it for large values alone: a rounded fortune is still the only one of its size. The base must
    be wide compared with the distances between people, or nothing is hidden; check with k-anonymity.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"income": [1249, 1250, -1250, None]}))
    >>> Round({"income": 500}).apply(people).data.frame["income"].to_list()
    [1000, 1500, -1500, None]
    """

    base: Annotated[Mapping[str, Annotated[float, Above(0)]], Public()]

    def treat(self, data: Microdata, stream: Stream) -> Change:
        """Round each column."""
        names = numeric(data, self.base, treatment=self.name)
        kinds = engine.types_in_polars(data, names) if engine.is_lazy(data) else {}
        makes = {name: self._kind(name, kind) for name, kind in kinds.items()}
        return Change(by_record=ByRecord(names, makes, self._batch))

    def _kind(self, name: str, kind: pl.DataType) -> pl.DataType:
        keeps = kind.is_float() or (kind.is_integer() and float(self.base[name]).is_integer())
        return kind if keeps else pl.Float64()

    def _batch(self, table: pl.DataFrame, records: Words) -> dict[str, pl.Series]:
        columns = {}
        for values in table:
            base = self.base[values.name]
            steps = (values.cast(pl.Float64) / base).abs()
            rounded = (steps + 0.5).floor() * base * values.cast(pl.Float64).sign()
            columns[values.name] = rounded.cast(self._kind(values.name, values.dtype))
        return columns


def label_kinds(data: Microdata, wanted: Mapping[str, tuple[Hierarchy, int]]) -> dict[str, Any]:
    """Say which types the labels of columns have, for files that are not in memory; no record is read."""
    if not engine.is_lazy(data):
        return {}
    held = engine.types_in_polars(data, list(wanted))
    kinds: dict[str, Any] = {}
    for name, (hierarchy, level) in wanted.items():
        if level == 0:
            kinds[name] = held[name]
            continue
        fixed = hierarchy.fixed_labels(level)
        if hierarchy.ordered:
            kinds[name] = pl.Enum(fixed) if fixed else "labels"
        else:
            kinds[name] = pl.Enum(fixed) if fixed and is_categorical(held[name]) else pl.String()
    return kinds


def _plain_codes(codes: Mapping[Any, Any], column: str) -> pl.Series:
    """Give the new codes as a column; refuse what no column of a file could hold."""
    if not all(code is None or isinstance(code, _SINGLE_VALUES) for code in codes.values()):
        raise ParameterError(
            f"mapping of '{column}' has new codes that are no single values. Name a text, a number, a date, or None."
        )
    return pl.Series(list(codes.values()), strict=False)


def _like(values: pl.Series, codes: Mapping[Any, Any], column: str) -> pl.Series:
    """Bring the old codes of a recoding to the type of the column (plan files hold text only)."""
    kind = type_name(values.dtype)
    wrong = f"The recoding of '{column}' names values of another type than the column, which is {kind}."
    return fitted_to(pl.Series(list(codes)), values.dtype, wrong, " Name whole numbers.")


def fitted_to(given: pl.Series, kind: pl.DataType, wrong: str, way_out: str = "") -> pl.Series:
    """Bring values that a user named to the type of a column, or refuse them."""
    try:
        fitted = given.cast(kind)
    except pl.exceptions.PolarsError as error:
        raise ParameterError(wrong) from error
    if given.dtype.is_float() and kind.is_integer() and (given != fitted).any():
        # Cut to a whole number, 1.5 would stand for 1.
        raise ParameterError(wrong + way_out)
    return fitted


def hierarchies_of(hierarchies: Mapping[str, Any]) -> dict[str, Hierarchy]:
    """Take hierarchies as a user or a plan file gives them: as objects or descriptions, by column."""
    return {
        str(name): Hierarchy.from_dict(item) if isinstance(item, Mapping) else item
        for name, item in hierarchies.items()
    }


def _as_before(recoded: pl.Series, values: pl.Series) -> pl.Series:
    """Keep the type of the column, and the order of its levels, where the new values allow it."""
    if isinstance(values.dtype, pl.Enum):
        levels = values.dtype.categories
        fresh = recoded.cast(pl.String).unique(maintain_order=True).drop_nulls()
        known = [level for level in levels if level in set(fresh)]
        added = [level for level in fresh if level not in set(levels)]
        return recoded.cast(pl.String).cast(pl.Enum([*known, *added]))
    if values.dtype == pl.Categorical:
        return recoded.cast(pl.String).cast(values.dtype)
    if recoded.dtype.is_numeric() and values.dtype.is_numeric():
        return recoded.cast(values.dtype, strict=False) if recoded.dtype.is_integer() else recoded
    return recoded
