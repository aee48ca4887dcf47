"""Which type a column of texts has, judged on the whole column and not on its head.

A column is whole numbers, numbers, true/false, dates or times only if every value that is not missing is;
anything else stays text. Codes stay text too: a leading zero (postcode), a leading plus (phone number) or
more digits or a larger power than a number can hold would be lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

_SAMPLE_ROWS = 2_000
_CODE = r"^(?:\+|-?0[0-9])"
_TOO_LONG = r"^-?[0-9]{16,}$"
_TRUE_FALSE = ("true", "false", "True", "False", "TRUE", "FALSE")
KINDS = ("whole", "number", "truth", "day", "moment")

TYPES: dict[str, Any] = {
    "whole": pl.Int64,
    "number": pl.Float64,
    "truth": pl.Boolean,
    "day": pl.Date,
    "moment": pl.Datetime("us"),
    "text": pl.String,
}


def kinds_of(
    texts: pl.LazyFrame,
    columns: Iterable[str],
    *,
    decimal: str = ".",
    also: Mapping[str, pl.Expr] | None = None,
) -> tuple[dict[str, str], dict[str, Any]]:
    """Tell the kind of every column of texts in one streaming pass, after a look at the head.

    Parameters
    ----------
    texts
        The columns as texts, with missing values as null.
    columns
        The columns to judge.
    decimal
        The decimal mark.
    also
        Further aggregates to compute in the same pass.

    Returns
    -------
    tuple
        The kind by column (``whole``, ``number``, ``truth``, ``day``, ``moment`` or ``text``) and the values
        of the further aggregates.

    Examples
    --------
    >>> texts = pl.LazyFrame({"age": ["30", None], "zip": ["01234", "99999"], "born": ["1990-01-31", None]})
    >>> kinds_of(texts, ["age", "zip", "born"])[0]
    {'age': 'whole', 'zip': 'text', 'born': 'day'}
    """
    columns = list(columns)
    head = texts.head(_SAMPLE_ROWS).collect().lazy()
    possible = _possible(head, dict.fromkeys(columns, KINDS), decimal, is_head=True)[0]
    # What the head rules out need not be looked at again, and the likeliest kind nearly always holds to the
    # end: only where it does not, the others are tried.
    held, extra = _possible(texts, {column: kinds[:1] for column, kinds in possible.items()}, decimal, also)
    others = {column: kinds[1:] for column, kinds in possible.items() if kinds[1:] and not held[column]}
    held |= _possible(texts, others, decimal)[0] if others else {}
    return {column: next(iter(held[column]), "text") for column in columns}, extra


def typed(column: str, kind: str, *, decimal: str = ".") -> pl.Expr:
    """Convert a column of texts to its kind."""
    return _converted(pl.col(column), kind, decimal, strict=True)


def _possible(
    texts: pl.LazyFrame,
    candidates: Mapping[str, tuple[str, ...]],
    decimal: str,
    also: Mapping[str, pl.Expr] | None = None,
    *,
    is_head: bool = False,
) -> tuple[dict[str, tuple[str, ...]], dict[str, Any]]:
    tests: dict[tuple[int, str], pl.Expr] = {}
    for place, (column, kinds) in enumerate(candidates.items()):
        text = pl.col(column)
        if kinds:
            tests[place, "values"] = text.count()
        for kind in kinds:
            tests[place, kind] = (text.is_not_null() & _refused(text, kind, decimal)).any()
        if "whole" in kinds or "number" in kinds:
            tests[place, "code"] = text.str.contains(_CODE).any()
        if "number" in kinds:
            tests[place, "long"] = text.str.contains(_TOO_LONG).any()
    questions = [test.alias(f"{place}/{what}") for (place, what), test in tests.items()]
    extra = {name: expression.alias(f"also/{name}") for name, expression in (also or {}).items()}
    if not questions and not extra:
        return dict(candidates), {}
    row = texts.select(*questions, *extra.values()).collect(engine="streaming").row(0, named=True)
    answers = {key: row[f"{key[0]}/{key[1]}"] for key in tests}
    possible = {
        column: _held(place, kinds, answers, is_head=is_head)
        for place, (column, kinds) in enumerate(candidates.items())
    }
    return possible, {name: row[f"also/{name}"] for name in extra}


def _held(
    place: int, kinds: tuple[str, ...], answers: Mapping[tuple[int, str], Any], *, is_head: bool
) -> tuple[str, ...]:
    if kinds and answers[place, "values"] == 0:
        # Nothing but missing values: after the head anything may still follow, at the end nothing did.
        return kinds if is_head else ()
    held = [kind for kind in kinds if not answers[place, kind]]
    if answers.get((place, "code")):
        held = [kind for kind in held if kind not in ("whole", "number")]
    if answers.get((place, "long")) and "whole" not in held:
        held = [kind for kind in held if kind != "number"]
    return tuple(held)


def _refused(text: pl.Expr, kind: str, decimal: str) -> pl.Expr:
    if kind == "truth":
        return ~text.is_in(_TRUE_FALSE)
    converted = _converted(text, kind, decimal, strict=False)
    if kind != "number":
        return converted.is_null()
    # A number that no float holds would become infinite.
    refused = converted.is_null() | (converted.is_infinite() & text.str.contains("[0-9]"))
    # A point beside a decimal comma groups thousands; reading it as a decimal would be wrong.
    return refused | text.str.contains(".", literal=True) if decimal == "," else refused


def _converted(text: pl.Expr, kind: str, decimal: str, *, strict: bool) -> pl.Expr:
    if kind == "whole":
        return text.cast(pl.Int64, strict=strict)
    if kind == "number":
        plain = text.str.replace(",", ".", literal=True) if decimal == "," else text
        return plain.cast(pl.Float64, strict=strict)
    if kind == "truth":
        return text.str.to_lowercase() == "true"
    if kind == "day":
        return text.str.to_date("%Y-%m-%d", strict=strict)
    if kind == "moment":
        # The T of the standard and the blank that most programs write mean the same.
        blank = text.str.replace("T", " ", literal=True)
        return blank.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us", strict=strict)
    return text
