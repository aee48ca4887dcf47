"""How were missing values, decimals and true or false written? A file that goes out has them as they came.

Looked up in the head of a text file, column by column: the text of a missing value (``?``, ``NA``), how many decimals
every number has (``2.50``), and the words for true and false. A column that has several ways takes the commonest, and
numbers with more decimals than the original had keep them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import polars as pl

_HEAD = 20_000
_DECIMALS = r"^-?[0-9]+[.,]([0-9]+)$"


def spellings_of(
    fields: pl.LazyFrame, kinds: Mapping[str, str], missing: Collection[str]
) -> dict[str, dict[str, Any]]:
    """Find how the columns of a file were written, where it is not the usual way.

    Parameters
    ----------
    fields
        The fields as they stand in the file.
    kinds
        What each column holds, as `discreet.io.column_types.kinds_of` tells.
    missing
        The texts of missing values.

    Examples
    --------
    >>> fields = pl.LazyFrame({"pay": ["2.50", "?"], "works": ["TRUE", "FALSE"]})
    >>> spellings_of(fields, {"pay": "number", "works": "truth"}, ["", "?"])
    {'missing_as': {'pay': '?'}, 'decimals': {'pay': 2}, 'truth_as': {'works': ['TRUE', 'FALSE']}}
    """
    head = fields.head(_HEAD).collect()
    found: dict[str, dict[str, Any]] = {"missing_as": {}, "decimals": {}, "truth_as": {}}
    for series in head.get_columns():
        name, column = series.name, series.alias("field").fill_null("").str.strip_chars()
        absent = column.is_in(list(missing))
        ways = Counter(column.filter(absent).to_list())
        if ways and (commonest := ways.most_common(1)[0][0]):
            found["missing_as"][name] = commonest
        values = column.filter(~absent).unique()
        if kinds.get(name) == "number" and len(values):
            decimals = values.str.extract(_DECIMALS).str.len_chars()
            if decimals.null_count() == 0 and decimals.n_unique() == 1:
                found["decimals"][name] = int(decimals[0])
        elif kinds.get(name) == "truth" and values.str.to_lowercase().n_unique() == len(values):
            words = {value.lower(): value for value in values}
            spelt = [words.get("true", ""), words.get("false", "")]
            if all(spelt) and spelt != ["true", "false"]:
                found["truth_as"][name] = spelt
    return {what: columns for what, columns in found.items() if columns}


def as_written(
    frame: pl.LazyFrame, reading: Mapping[str, Any], *, decimal: str = ".", missing: str | None = None
) -> pl.LazyFrame:
    """Turn columns into the texts that the original had for such values.

    Parameters
    ----------
    frame
        What is to be written.
    reading
        How the original was read, with what `spellings_of` found.
    decimal
        The decimal mark.
    missing
        The text of a missing value in all columns, where it was named.

    Examples
    --------
    >>> frame = pl.LazyFrame({"pay": [2.5, None, 1.125]})
    >>> as_written(frame, {"missing_as": {"pay": "?"}, "decimals": {"pay": 2}}).collect()["pay"].to_list()
    ['2.50', '?', '1.125']
    """
    schema = frame.collect_schema()
    tokens = {} if missing is not None else reading.get("missing_as", {})
    written = []
    for name, kind in schema.items():
        if name == "*" or name.startswith("^"):  # the engine takes these for patterns
            continue
        column, places = pl.col(name), reading.get("decimals", {}).get(name)
        text = column.cast(pl.String)
        if places is not None and kind.is_float():
            fixed = column.round(places)
            exact = (fixed == column) & (column.abs() < 1e15)
            text = pl.when(exact).then(fixed.cast(pl.Decimal(38, places)).cast(pl.String)).otherwise(text)
        elif kind == pl.Boolean and name in reading.get("truth_as", {}):
            true, false = reading["truth_as"][name]
            text = pl.when(column).then(pl.lit(true)).when(~column).then(pl.lit(false))
        elif name not in tokens:
            continue
        if kind.is_numeric() and decimal != ".":
            text = text.str.replace(".", decimal, literal=True)
        written.append((text.fill_null(pl.lit(tokens[name])) if name in tokens else text).alias(name))
    return frame.with_columns(written)
