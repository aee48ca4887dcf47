"""Texts that a spreadsheet would take for formulas.

A cell that begins with ``=``, ``+``, ``-`` or ``@`` is computed when a CSV file is opened in a spreadsheet, and a
formula can send what stands beside it elsewhere. An apostrophe before it makes it a text again; numbers need none.
"""

from __future__ import annotations

import re

import polars as pl

from discreet.core.errors import ParameterError

_BEGINS = r"^[=+\-@\t\r\n＝＋－＠]"
_NUMBER = r"^[+-]?(\d+([.,]\d+)*|[.,]\d+)([eE][+-]?\d+)?%?$"
SIGN = "'"


def guarded(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Put an apostrophe before texts and column names that a spreadsheet would compute.

    Examples
    --------
    >>> guarded(pl.LazyFrame({"=a": ["=1+1", "-5", "- none", "plain", None]})).collect().to_dict(as_series=False)
    {"'=a": ["'=1+1", '-5', "'- none", 'plain', None]}
    """
    schema = frame.collect_schema()
    texts = [name for name, dtype in schema.items() if dtype in (pl.String, pl.Categorical, pl.Enum)]
    plain = [pl.col(name).cast(pl.String) for name in texts]
    safe = [
        pl.when(text.str.contains(_BEGINS) & ~text.str.contains(_NUMBER))
        .then(pl.concat_str(pl.lit(SIGN), text))
        .otherwise(text)
        .alias(name)
        for name, text in zip(texts, plain, strict=True)
    ]
    renamed = {name: f"{SIGN}{name}" for name in schema if computes(name)}
    taken = [new for new in renamed.values() if new in schema]
    if taken:
        raise ParameterError(
            f"Column '{taken[0][1:]}' would be called '{taken[0]}' for a spreadsheet, which is there already. "
            "Rename one of them."
        )
    return frame.with_columns(safe).rename(renamed)


def computes(text: str) -> bool:
    """Whether a spreadsheet would compute a text."""
    return bool(re.search(_BEGINS, text)) and not re.search(_NUMBER, text)
