"""How are values written into the columns of a file, and read from what a user or a file says?

A plan file knows numbers, texts, dates and truth values; a rule of it may speak of a column of any type. What a formula
gives is written as the column is, and numbers that stand as texts are read with the codes among them.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Array
from discreet.core.errors import ColumnError
from discreet.core.values import jsonable
from discreet.synth.column_forms import NumberForm, Variable, decimals_of
from discreet.synth.saved_models import stored

_SECONDS = re.compile(r"PT(-?\d+(?:\.\d+)?)S")


def typed(value: Any, dtype: pl.DataType, column: str, setting: str) -> pl.Series:
    """Return a value as a column of one record of that type; what does not fit the type is refused.

    Examples
    --------
    >>> typed("2024-12-31", pl.Date(), "born", "rules").item()
    datetime.date(2024, 12, 31)
    """
    if value is None:
        return pl.Series([None], dtype=dtype)
    wanted = _read(value, dtype)
    fits = wanted is not None
    if fits:
        try:
            series = pl.Series([wanted], strict=False).cast(dtype)
            # Records and lists are cast part by part, and stay what they are.
            fits = series.dtype == dtype
        except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError):
            fits = False
    if not fits or (dtype.is_integer() and series.item() != wanted):
        levels = " and one of its levels" if isinstance(dtype, pl.Enum) else ""
        kind = str(dtype.base_type())
        raise ColumnError(
            f"The {setting} of column '{column}' give it a value that the column cannot hold. Write it in the type of "
            f"the column ({kind}){levels}."
        )
    return series


def written(value: Any) -> Any:
    """Return a value as JSON and TOML both can hold it, so that `typed` reads it again."""
    if isinstance(value, dt.timedelta):
        return f"PT{value.total_seconds()}S"
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else jsonable(value)


def _read(value: Any, dtype: pl.DataType) -> Any:
    """Bring a value to the Python type that goes with a column; None where there is no way."""
    if isinstance(dtype, pl.Categorical | pl.Enum | pl.String):
        return value if isinstance(value, str) else None
    if dtype == pl.Boolean:
        return value if isinstance(value, bool) else None
    if dtype.is_temporal():
        return _time(value, dtype)
    if isinstance(dtype, pl.Decimal):
        return _decimal(value)
    if isinstance(value, bool | str) and dtype.is_numeric():
        return None
    return value


def _time(value: Any, dtype: pl.DataType) -> Any:
    kinds: dict[Any, Any] = {pl.Date: dt.date, pl.Datetime: dt.datetime, pl.Time: dt.time}
    kind = kinds.get(dtype.base_type())
    if kind is None:
        found = _SECONDS.fullmatch(value) if isinstance(value, str) else None
        return (
            dt.timedelta(seconds=float(found[1]))
            if found
            else value
            if isinstance(value, dt.timedelta)
            else None
        )
    if isinstance(value, str):
        try:
            value = kind.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(dtype, pl.Datetime) and isinstance(value, dt.date):
        moment = value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time())
        return _in_zone(moment, dtype.time_zone)
    return (
        value
        if isinstance(value, kind) and not (kind is dt.date and isinstance(value, dt.datetime))
        else None
    )


def _in_zone(moment: dt.datetime, zone: str | None) -> dt.datetime | None:
    """Read a time without a zone as one of the column's own; refuse a zone where the column has none."""
    if zone is None:
        return moment if moment.tzinfo is None else None
    from zoneinfo import ZoneInfo

    return (
        moment.replace(tzinfo=ZoneInfo(zone)) if moment.tzinfo is None else moment.astimezone(ZoneInfo(zone))
    )


def _decimal(value: Any) -> Decimal | None:
    if isinstance(value, bool):
        return None
    try:
        return Decimal(str(value))
    except ArithmeticError:
        return None


# How is a number that was computed from others written into its column?
#
# A formula gives 2.9999999999 where the file says 3, and 1.3333333333 where it says 1.33. A column of whole numbers
# takes the nearest one, never the one below, and other columns take the decimals that they are written with.


def as_computed(values: pl.Series, dtype: pl.DataType, decimals: int | None = None) -> pl.Series:
    """Return computed values in the type of their column; what a formula cannot compute is missing.

    Parameters
    ----------
    values
        What a formula gave.
    dtype
        The type of the column.
    decimals
        Decimal places that the column is written with; None where there is no end to them.

    Examples
    --------
    >>> as_computed(pl.Series("n", [2.9999999999, float("inf")]), pl.Int64()).to_list()
    [3, None]
    """
    if not values.dtype.is_numeric():
        return values.cast(dtype, strict=False)
    numbers = values.cast(pl.Float64).fill_nan(None)
    numbers = numbers.set(numbers.is_infinite().fill_null(False), None)
    if dtype.is_integer() or dtype.is_temporal():
        decimals = 0
    if decimals is not None:
        numbers = numbers.round(decimals) + 0.0  # no negative zero
    if dtype.is_temporal():
        numbers = numbers.cast(pl.Int32 if dtype == pl.Date else pl.Int64, strict=False)
    return numbers.cast(dtype, strict=False)


# Numbers that stand in a file as texts, with a few codes among them: ``"1200"``, ``"-45"``, ``"N"``.
#
# A code keeps a whole column of numbers from being read as such. Here the column is split into what it is: a state
# (an ordinary number, which code, or missing) and a number, and drawn values are written as the file writes them.


def way_of_writing(texts: pl.Series) -> str | None:
    """Say how numbers are written, so that they can be written again; None where there is no one way.

    Examples
    --------
    >>> [way_of_writing(pl.Series(t)) for t in (["1", "-20"], ["1.5", "2"], ["1.50", "2.00"], ["007", "1"])]
    ['whole', 'shortest', 'decimals 2', None]
    """
    numbers = as_read(texts)
    if not len(texts) or numbers.null_count():
        return None
    places = decimals_of(numbers.to_numpy())
    ways = ["whole", "float", "shortest", *([f"decimals {places}"] if places else [])]
    ways += [f"decimals {more}" for more in range((places or 0) + 1, (places or 0) + 4)]
    for way in ways:
        if way == "whole" and places != 0:
            continue
        if bool((as_written(numbers, way) == texts).all()):
            return way
    return None


def as_read(texts: pl.Series) -> pl.Series:
    """Read texts as numbers; what is none is missing."""
    numbers = texts.cast(pl.String).str.strip_chars().cast(pl.Float64, strict=False)
    return numbers.set(~numbers.is_finite().fill_null(True), None)


def as_written(numbers: pl.Series, way: str) -> pl.Series:
    """Write numbers as texts.

    Examples
    --------
    >>> as_written(pl.Series([1.5, 2.0]), "shortest").to_list()
    ['1.5', '2']
    """
    if way == "whole":
        return numbers.cast(pl.Float64).round(0).cast(pl.Int64).cast(pl.String)
    texts = numbers.cast(pl.Float64).cast(pl.String)
    if way == "shortest":
        return texts.str.replace(r"\.0$", "")
    if way.startswith("decimals "):
        return _with_places(numbers.cast(pl.Float64), int(way.removeprefix("decimals ")))
    return texts


def _with_places(numbers: pl.Series, places: int) -> pl.Series:
    units = (pl.col("n").abs() * 10**places).round(0).cast(pl.Int64)
    sign = pl.when((pl.col("n") < 0) & (units > 0)).then(pl.lit("-")).otherwise(pl.lit(""))
    after = (units % 10**places).cast(pl.String).str.zfill(places)
    written = pl.concat_str(sign, (units // 10**places).cast(pl.String), pl.lit("."), after)
    return numbers.to_frame("n").select(written.alias("n")).to_series().rename(numbers.name)


@stored("written-number-form")
@dataclass(frozen=True, eq=False)
class WrittenNumberForm(NumberForm):
    """A column of texts that are numbers, but for the codes.

    Attributes
    ----------
    texts
        The codes; ``fixed`` has a place for each.
    way
        How numbers are written.
    """

    texts: tuple[str, ...] = ()
    way: str = "whole"

    @classmethod
    def of_texts(
        cls, series: pl.Series, *, codes: Sequence[Any] = (), missing: bool = False
    ) -> WrittenNumberForm:
        """Read the form off a column; every text is a number or one of the codes."""
        texts = tuple(dict.fromkeys(str(code) for code in codes))
        distinct = series.drop_nulls().unique()
        ordinary = distinct.filter(~distinct.is_in(pl.Series(texts, dtype=pl.String).implode()))
        numbers = as_read(ordinary)
        unread = int(series.is_in(ordinary.filter(numbers.is_null()).implode()).sum())
        if unread:
            raise ColumnError(
                f"Column '{series.name}' stands under special_codes and is text, so all else in it must be numbers; in "
                f"{unread:,} records it is not. Name all its codes, or take it out of special_codes."
            )
        way = way_of_writing(ordinary) if len(ordinary) else "whole"
        if way is None:
            raise ColumnError(
                f"Column '{series.name}' holds numbers that are written in several ways or with leading zeros, and "
                "would not come back as they were. Convert it to numbers, or take it out of special_codes to have it "
                "taken for a category."
            )
        found = numbers.to_numpy()
        return cls(
            series.name,
            series.dtype,
            tuple(float(place) for place in range(len(texts))),
            missing or series.null_count() > 0,
            (),
            0 if way == "whole" else decimals_of(found),
            float(found.min()) if len(found) else 0.0,
            float(found.max()) if len(found) else 0.0,
            texts=texts,
            way=way,
        )

    def split(self, series: pl.Series) -> tuple[Variable, ...]:
        """Return the column as variables: its state, where it has more than one, and its value."""
        plain = series.rename("text")
        numbers = as_read(plain)
        states = np.zeros(len(plain), dtype=np.int32)
        for place, text in enumerate(self.texts):
            states[(plain == text).fill_null(False).to_numpy()] = self.n_ordinary + place
        missing = plain.is_null().to_numpy()
        if self.has_missing:
            states[missing] = self.n_states - 1
        if (numbers.is_null().to_numpy() & (states < self.n_ordinary)).any():
            raise ColumnError(
                f"Column '{self.name}' has texts that are neither numbers nor codes of the fitted file. Fit the model "
                "to the file that holds them."
            )
        return self.variables(states, numbers.fill_null(0.0).to_numpy())

    def joined(self, parts: Sequence[Array]) -> pl.Series:
        """Turn drawn states and values into texts."""
        values = np.asarray(parts[-1], dtype=np.float64)
        if self.decimals is not None:
            values = np.round(values, self.decimals) + 0.0  # no negative zero
        texts = as_written(pl.Series(values), self.way)
        if len(parts) == 2:
            for place, text in enumerate(self.texts):
                texts = texts.set(pl.Series(parts[0] == self.n_ordinary + place), text)
            if self.has_missing:
                texts = texts.set(pl.Series(parts[0] == self.n_states - 1), None)
        return texts.cast(self.dtype).rename(self.name)
