"""One text for one value, whatever type an engine or a file keeps it in."""

from __future__ import annotations

import polars as pl


def canonical_text(values: pl.Series) -> pl.Series:
    """Write values as the text a hierarchy file would hold: 1 and 1.0 are ``1``, midnight is a date.

    Examples
    --------
    >>> canonical_text(pl.Series([1.0, 2.5, -0.0, None])).to_list()
    ['1', '2.5', '0', None]
    """
    dtype = values.dtype
    if dtype.is_float():
        whole = (values == values.round(0)) & (values.abs() < 2.0**63)
        return values.cast(pl.Int64, strict=False).cast(pl.String).zip_with(whole, values.cast(pl.String))
    if isinstance(dtype, pl.Duration):
        return values.dt.to_string()
    text = values.dt.replace_time_zone(None) if isinstance(dtype, pl.Datetime) else values
    text = text.cast(pl.String)
    if dtype.is_decimal():
        return text.str.replace(r"(\.\d*?)0+$", "$1").str.strip_suffix(".")
    if isinstance(dtype, pl.Datetime):
        return text.str.replace(r" 00:00:00(\.0+)?$", "")
    return text
