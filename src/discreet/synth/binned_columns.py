"""Columns as codes for a network: categories as they are, numbers in bins, missing as one more code.

Under differential privacy nothing may be read off the data, not even which values occur: levels and ranges then come
from the type of the column or from the user, and every column may be missing unless declared otherwise. Columns that
a role or the user takes out stay out, and the price of a synthetic file enters the budget before anything is drawn.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet import dp
from discreet.core.arrays import Floats, Integers
from discreet.core.declared_types import is_range
from discreet.core.errors import ColumnError
from discreet.core.parameters import distinct
from discreet.core.roles import Columns
from discreet.core.wording import type_name
from discreet.dp.entropy import Stream
from discreet.engine.counting_kernels import place_among
from discreet.microdata import Microdata
from discreet.synth import bin_kernels, column_forms
from discreet.synth.column_forms import as_numbers, from_numbers, is_numeric, plain_text
from discreet.synth.saved_models import stored
from discreet.synth.sequential.whole_units import units_left_out

_COMPANY = 5  # records that a bin cut by quantiles holds at least, and a heap
_MANY = 100_000  # records from which on texts are told apart by their hashes, and whole numbers looked up


@stored("binned-column")
@dataclass(frozen=True, eq=False)
class Attribute:
    """One column of the network.

    Attributes
    ----------
    name, dtype
        Of the column.
    levels
        The categories; None where the column is a number.
    edges
        Borders of the bins of a number.
    has_missing
        Whether missing is a code (the last one).
    decimals
        Decimal places that drawn numbers are rounded to.
    heaps
        Values of a number that have a code of their own, in order; their codes follow those of the bins.
    """

    name: str
    dtype: pl.DataType
    levels: pl.Series | None
    edges: Floats | None
    has_missing: bool
    decimals: int | None = None
    heaps: Floats | None = None

    @property
    def size(self) -> int:
        """Number of codes."""
        return self.bins + self.has_missing

    @property
    def bins(self) -> int:
        """Number of codes that are no missing."""
        return self.ordinary + (0 if self.heaps is None else len(self.heaps))

    @property
    def ordinary(self) -> int:
        """Number of codes that are neither missing nor a heap: levels, or bins between edges."""
        if self.levels is not None:
            return len(self.levels)
        assert self.edges is not None
        return len(self.edges) - 1

    @property
    def small_type(self) -> type[np.unsignedinteger[Any]]:
        """The smallest whole numbers that hold all codes: counting millions of records is a matter of memory."""
        return np.uint8 if self.size <= 2**8 else np.uint16 if self.size <= 2**16 else np.uint32

    def encode(self, series: pl.Series) -> Integers:
        """Return the code of every value; a category that was not declared counts as missing."""
        return self.encode_small(series).astype(np.int64)

    def encode_small(self, series: pl.Series) -> npt.NDArray[np.integer[Any]]:
        """Return the codes in the smallest type that holds them; sums and products of them do not fit into it."""
        if self.levels is not None:
            values = plain_text(series)
            if len(values) >= _MANY and (keys := _hashes(self.levels, values)) is not None:
                found = np.empty(len(values), dtype=self.small_type)
                if place_among(values.hash().to_numpy(), keys, found) and not self.has_missing:
                    raise self._undeclared()
                # What is no level, missing or not declared, has the place after the last: that of missing.
                return found
            codes = _places(self.levels, values)
        else:
            assert self.edges is not None
            if (quick := self._whole(series)) is not None:
                return quick
            numbers = as_numbers(series)
            # Values beyond a declared range belong to its first or last bin.
            filled = numbers.fill_null(0.0) if numbers.null_count() else numbers
            plain = filled.to_numpy()
            places: npt.NDArray[np.integer[Any]] = bin_kernels.bins_of(plain, self.edges, self.small_type)
            if self.heaps is not None:
                near = np.minimum(np.searchsorted(self.heaps, plain), len(self.heaps) - 1)
                places = np.where(self.heaps[near] == plain, self.ordinary + near, places)
            codes = pl.Series(places)
            codes = codes.set(numbers.is_null(), None) if numbers.null_count() else codes
        return _filled(self, codes)

    def _whole(self, series: pl.Series) -> npt.NDArray[np.integer[Any]] | None:
        """Return the codes of many whole numbers, none of them missing; None where there is no short way to them."""
        assert self.edges is not None
        signed = series.dtype in (pl.Int8, pl.Int16, pl.Int32, pl.Int64)
        if len(series) < _MANY or not signed or series.null_count() or self.heaps is not None:
            return None
        return bin_kernels.bins_of_whole(series.cast(pl.Int64).to_numpy(), self.edges, self.small_type)

    def _undeclared(self) -> ColumnError:
        return ColumnError(
            f"Column '{self.name}' has missing or undeclared values, but was declared without. Take it out of "
            "never_missing, or widen its domain."
        )

    def decode(self, codes: Integers, numbers: Floats | None) -> pl.Series:
        """Turn codes, and for a number the values that were drawn within the bins, into the column."""
        missing = codes >= self.bins if self.has_missing else None
        if self.levels is not None:
            at = pl.Series(codes) if missing is None else pl.Series(codes).set(pl.Series(missing), None)
            return self.levels.gather(at).cast(self.dtype).rename(self.name)
        assert numbers is not None
        values = numbers if self.decimals is None else np.round(numbers, self.decimals)
        if self.heaps is not None:
            piled = np.clip(codes - self.ordinary, 0, len(self.heaps) - 1)
            values = np.where(codes >= self.ordinary, self.heaps[piled], values)
        if missing is not None:
            values = np.where(missing, 0.0, values)
        return from_numbers(values, missing, self.dtype, self.name)

    def drawn_within(self, codes: Integers, stream: Stream) -> pl.Series:
        """Return values of codes; numbers are spread evenly over their bins."""
        if self.edges is None:
            return self.decode(codes, None)
        bins = np.minimum(codes, self.bins - 1)
        low, high = self.edges[bins], self.edges[bins + 1]
        # Strictly inside, so that rounding to whole numbers never leaves the bin.
        part = stream("within", self.name).random(len(bins)) * (1 - 2**-20) + 2**-21
        return self.decode(codes, low + part * (high - low))


def levels_of(attributes: Sequence[Attribute]) -> dict[str, pl.Series | None]:
    """The levels of categories by column, None for numbers."""
    return {attribute.name: attribute.levels for attribute in attributes}


def observed_attribute(
    series: pl.Series,
    *,
    threshold: int,
    bins: int,
    by: str,
    heap: float | None = None,
    declared: Sequence[Any] = (),
) -> Attribute:
    """Read an attribute off the data: few values are categories, more numbers come in bins.

    A value that a share of ``heap`` have, and those that are ``declared`` to pile up, have a code of their own: spread
    over a bin, they would make up values that nobody has.
    """
    has_missing = as_numbers(series).null_count() > 0 if series.dtype.is_float() else series.null_count() > 0
    there = series.drop_nulls()
    distinct = there.n_unique()
    if not is_numeric(series.dtype) or distinct <= threshold:
        plain = plain_text(there)
        plain = plain.drop_nans() if plain.dtype.is_float() else plain
        levels = plain.unique().sort().rename("level")
        if isinstance(series.dtype, pl.Enum):
            seen = set(levels.to_list())
            levels = pl.Series("level", [v for v in series.dtype.categories.to_list() if v in seen])
        return Attribute(series.name, series.dtype, levels, None, has_missing)
    values = as_numbers(there).drop_nulls().to_numpy()
    whole = series.dtype.is_integer() or series.dtype.is_temporal()
    decimals = 0 if whole else column_forms.decimals_of(values)
    heaps = _heaps(series, values, heap, declared)
    rest = values if heaps is None else values[~np.isin(values, heaps)]
    rest = rest if len(rest) else values
    even = np.linspace(rest.min(), rest.max(), bins + 1)
    edges = _quantiles(rest, bins, decimals) if by == "quantile" else even
    if len(np.unique(edges)) < 2:
        edges = np.array([rest.min(), np.nextafter(rest.max(), np.inf)])
    return Attribute(series.name, series.dtype, None, edges, has_missing, decimals, heaps)


def _heaps(series: pl.Series, values: Floats, heap: float | None, declared: Sequence[Any]) -> Floats | None:
    """The values that pile up, in order; None where there are none."""
    found = _declared_heaps(series, declared)
    if heap is not None:
        known, counts = np.unique(values, return_counts=True)
        found = np.append(found, known[counts >= max(heap * len(values), _COMPANY)])
    return np.unique(found) if len(found) else None


def _declared_heaps(series: pl.Series, declared: Sequence[Any]) -> Floats:
    if not len(declared):
        return np.empty(0)
    try:
        own = as_numbers(pl.Series(list(declared), dtype=series.dtype, strict=True)).drop_nulls().to_numpy()
    except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError) as error:
        raise ColumnError(
            f"semicontinuous names values of column '{series.name}' that are no numbers of its type."
        ) from error
    return np.unique(np.asarray(own, dtype=np.float64))


def _quantiles(values: Floats, bins: int, decimals: int | None) -> Floats:
    """Borders of bins that are about equally full, with some company in each.

    Values are drawn evenly between borders and rounded: borders that lie half a step below a value give every value
    of a bin the same chance, and none to a value of the next.
    """
    bins = max(min(bins, len(values) // _COMPANY), 1)
    edges = np.quantile(values, np.linspace(0, 1, bins + 1), method="higher")
    if decimals is not None:
        step = 10.0**-decimals
        edges = np.append(edges[:-1] - step / 2, edges[-1] + step / 2)
    return np.unique(edges)


def declared_attribute(
    series: pl.Series, domain: Any, *, bins: int, never_missing: bool, heaps: Sequence[Any] = ()
) -> Attribute:
    """Make an attribute from its declared levels or range, and the values declared to pile up, alone."""
    name, dtype = series.name, series.dtype
    if domain is None and isinstance(dtype, pl.Enum):
        domain = dtype.categories.to_list()
    elif domain is None and dtype == pl.Boolean:
        domain = [False, True]
    if domain is None:
        raise ColumnError(
            f"epsilon cannot be honored: the values of column '{name}' would be read off the data. Declare them with "
            f"domain={{'{name}': [levels]}} or (low, high) for a number, or cast the column to an Enum."
        )
    if is_numeric(dtype) and isinstance(domain, tuple):
        ends = as_numbers(pl.Series(list(domain), dtype=dtype, strict=False)).drop_nulls().to_list()
        if len(ends) != 2 or not ends[0] < ends[1]:
            raise ColumnError(f"The domain of column '{name}' must be (low, high) with low below high.")
        edges = np.linspace(ends[0], ends[1], bins + 1)
        decimals = 0 if dtype.is_integer() or dtype.is_temporal() else None
        piles = _declared_heaps(series, heaps) if len(heaps) else None
        return Attribute(name, dtype, None, edges, not never_missing, decimals, piles)
    if isinstance(domain, str) or not isinstance(domain, Sequence) or not domain:
        raise ColumnError(
            f"The domain of column '{name}' must be a list of levels, or (low, high) for a number."
        )
    try:
        levels = pl.Series("level", distinct(domain, "domain"), strict=False)
        levels = levels.cast(pl.String if isinstance(dtype, pl.Categorical | pl.Enum) else dtype)
    except pl.exceptions.PolarsError as error:
        raise ColumnError(
            f"The domain of column '{name}' holds levels of another type than the column, {type_name(dtype)}."
        ) from error
    return Attribute(name, dtype, levels, None, not never_missing)


def _filled(attribute: Attribute, codes: pl.Series) -> npt.NDArray[np.integer[Any]]:
    if attribute.has_missing:
        codes = codes.fill_null(attribute.bins)
    elif codes.null_count():
        raise attribute._undeclared()
    return codes.to_numpy().astype(attribute.small_type, copy=False)


def _places(levels: pl.Series, values: pl.Series) -> pl.Series:
    """The place of every value among the levels; null where it is none of them."""
    if levels.dtype == pl.String and values.dtype == pl.String and not levels.null_count():
        return values.cast(pl.Enum(levels), strict=False).to_physical()
    return column_forms.places_among(values, levels)


def _hashes(levels: pl.Series, values: pl.Series) -> Any:
    """The hashes of levels of text, where they tell them apart; None where texts have to be compared.

    Three times as fast as to compare letters; another text has the hash of a level once in 2^64 times.
    """
    if levels.dtype != pl.String or values.dtype != pl.String or levels.null_count():
        return None
    keys = levels.hash().to_numpy()
    return keys if len(np.unique(keys)) == len(keys) else None


# What private generators are told of their columns: which ones, in which declared bins, and at what price.
#
# Columns are those of the file, less what a role or the user takes out; nothing of them is read off the data.


def left_out_of(data: Microdata, leave_out: Columns, **named: Iterable[str] | None) -> dict[str, str]:
    """Columns that are not synthesized, and why; by roles and parameters, never by what the records are.

    ``named`` has the columns by the other parameters under which the user named some.
    """
    asked = column_forms.listed(leave_out)
    column_forms.check_named({"leave_out": asked, **named}, data.columns)
    left_out = dict.fromkeys(asked, "as asked for")
    left_out |= {name: "an identifier" for name in data.roles.identifiers if name not in left_out}
    for column, why in (
        (data.roles.weight, "the weight: one record would count many times"),
        (data.roles.contributor, "it says whose the records are"),
    ):
        if column and column not in left_out:
            left_out[column] = why
    return left_out | units_left_out(data, None, left_out)


# Columns by their declared domain alone, numbers in fine bins.
def declared(
    series: pl.Series, domain: Any, *, bins: int, never_missing: bool, borders: Sequence[Any] | None = None
) -> Attribute:
    """Make an attribute from its declared levels, range or borders; whole numbers get bins of whole numbers.

    Examples
    --------
    >>> declared(pl.Series("age", [30]), (0, 3), bins=128, never_missing=True).edges.tolist()
    [-0.5, 0.5, 1.5, 2.5, 3.5]
    """
    if borders is not None:
        return _with_borders(series, borders, never_missing=never_missing)
    if is_range(domain):
        domain = tuple(domain)
    attribute = declared_attribute(series, domain, bins=bins, never_missing=never_missing)
    if attribute.edges is None or attribute.decimals != 0:
        return attribute
    low, high = float(attribute.edges[0]), float(attribute.edges[-1])
    width = math.ceil((high - low + 1) / bins)
    count = math.ceil((high - low + 1) / width)
    return dataclasses.replace(attribute, edges=low - 0.5 + width * np.arange(count + 1, dtype=np.float64))


def _with_borders(series: pl.Series, borders: Sequence[Any], *, never_missing: bool) -> Attribute:
    """A number in bins that are public; a border belongs to the bin above it, the last one to the bin below."""
    if not is_numeric(series.dtype):
        raise ColumnError(f"Column '{series.name}' is no number, so it has levels and no borders.")
    given = as_numbers(pl.Series(list(borders), dtype=series.dtype, strict=False)).to_numpy()
    if len(given) < 2 or not np.isfinite(given).all() or not (np.diff(given) > 0).all():
        raise ColumnError(f"The borders of column '{series.name}' must be two or more numbers, rising.")
    edges = given.astype(np.float64)
    whole = series.dtype.is_integer() or series.dtype.is_temporal()
    if whole:
        # Between whole numbers, so that each belongs to one bin; the last border is a value of its bin.
        edges = np.concatenate([edges[:-1] - 0.5, edges[-1:] + 0.5])
    return Attribute(series.name, series.dtype, None, edges, not never_missing, 0 if whole else None)


# Enter the price of a synthetic file into a budget, before anything is drawn.
def pay_purely(
    ledger: dp.Ledger | None,
    data: Microdata,
    mechanism: str,
    epsilon: float,
    *,
    values: int,
    sensitivity: float | None = None,
    proved: bool = True,
) -> None:
    """Enter what it costs that one record could be any other (pure differential privacy); nothing without a ledger."""
    if ledger is not None:
        ledger.spend(
            dp.Cost(
                mechanism,
                "pure",
                epsilon=float(epsilon),
                adjacency="replace",
                sensitivity=sensitivity,
                values=values,
                purpose="synthetic file",
                proved=proved,
            ),
            data=data,
        )
