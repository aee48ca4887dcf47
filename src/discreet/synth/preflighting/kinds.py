"""Is every column of the type it should be, and how many levels has it?"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from discreet.synth.preflighting.findings import Finding
from discreet.synth.preflighting.looking import Look

_NEAR_UNIQUE = 0.5
_MOST_EXACT = 60


def types_and_levels(look: Look) -> list[Finding]:
    """Look at the type and the number of distinct values of every column."""
    found = []
    for name in look.frame.columns:
        series = look.frame[name]
        given = look.codebook.get(name, {}).get("kind")
        if series.null_count() == look.rows:
            found.append(_all_missing(name))
        elif look.distinct[name] == 1:
            found.append(_constant(name))
        elif given == "identifier" or _is_unique(look, series):
            found.append(_identifier(look, series, declared=given == "identifier"))
        elif series.dtype == pl.String:
            found += _text(look, series)
        elif series.dtype.is_numeric():
            found += _number(look, series, given)
        else:
            found += _category(look, name)
    return found


def exhaustive_splits(levels: int) -> int:
    """Count the ways to split a node on a category when all are tried, as older tree programs do.

    Examples
    --------
    >>> [exhaustive_splits(levels) for levels in (3, 6, 20)]
    [3, 31, 524287]
    """
    return int(2 ** (levels - 1) - 1)


def _is_unique(look: Look, series: pl.Series) -> bool:
    if look.rows < look.limits.min_rows or not (series.dtype == pl.String or series.dtype.is_integer()):
        return False
    return look.distinct[series.name] == look.rows and series.null_count() == 0


def _identifier(look: Look, series: pl.Series, *, declared: bool) -> Finding:
    running = False
    if series.dtype.is_integer():
        low, high = int(series.min()), int(series.max())  # type: ignore[arg-type]
        running = high - low + 1 == look.rows
    sure = declared or running or series.dtype == pl.String
    return Finding(
        "identifier",
        (series.name,),
        {"distinct": look.distinct[series.name], "running_number": running},
        "high" if sure else "low",
        "leave out: it names records" if sure else "leave it out if it is a number of a person",
        reversible=False,
    )


def _constant(name: str) -> Finding:
    return Finding("constant", (name,), {"distinct": 1}, "high", "repeat the value")


def _all_missing(name: str) -> Finding:
    return Finding(
        "all-missing", (name,), {"missing_share": 1.0}, "high", "leave out and put back all missing"
    )


def _text(look: Look, series: pl.Series) -> list[Finding]:
    texts = series.drop_nulls().unique()
    numbers = texts.str.strip_chars().cast(pl.Float64, strict=False)
    if numbers.null_count() == 0 and numbers.is_finite().all():
        whole = numbers.cast(pl.Int64, strict=False)
        is_whole = bool(whole.null_count() == 0 and (whole.cast(pl.String) == texts).all())
        # "007" and "1.50" do not come back as they were.
        faithful = is_whole or bool((numbers.cast(pl.String) == texts).all())
        return [
            Finding(
                "number-as-text",
                (series.name,),
                {"distinct": len(texts), "missing": series.null_count()},
                "high" if faithful else "medium",
                "convert to numbers, and write back as text afterwards",
                reversible=faithful,
                parameters={"dtype": "int" if is_whole else "float"},
            )
        ]
    for form in ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y"):
        if texts.str.strptime(pl.Date, form, strict=False).null_count() == 0:
            return [
                Finding(
                    "date-as-text",
                    (series.name,),
                    {"distinct": len(texts), "form": form},
                    "medium",
                    "convert to dates, and write back as text afterwards",
                    parameters={"form": form},
                )
            ]
    if look.rows >= look.limits.min_rows and len(texts) > _NEAR_UNIQUE * look.rows:
        return [
            Finding(
                "near-unique-text",
                (series.name,),
                {"distinct": len(texts), "share": len(texts) / look.rows},
                "medium",
                "leave out, or group: nearly every record has another text",
                reversible=False,
            )
        ]
    return _category(look, series.name)


def _category(look: Look, name: str) -> list[Finding]:
    levels = look.distinct[name]
    if levels <= look.limits.many_levels:
        return []
    evidence: dict[str, Any] = {"levels": levels, "ordered_splits": levels - 1}
    if levels <= _MOST_EXACT:
        evidence["exhaustive_splits"] = exhaustive_splits(levels)
    rare = look.frame[name].drop_nulls().value_counts()["count"].to_numpy()
    evidence["levels_below_5_records"] = int((rare < 5).sum())
    return [
        Finding(
            "many-levels",
            (name,),
            evidence,
            "high",
            "visit late; group rare levels where they are of no use",
        )
    ]


def _number(look: Look, series: pl.Series, given: str | None) -> list[Finding]:
    name = series.name
    values = look.clean(name)
    distinct = len(np.unique(values[~np.isnan(values)]))
    if given == "number" or distinct > look.limits.many_levels:
        return []
    few = given == "category" or (distinct <= look.limits.few_values and look.decimals(name) == 0)
    if not few and look.decimals(name) != 0:
        return []
    return [
        Finding(
            "few-values",
            (name,),
            {"distinct": distinct},
            "high" if few else "low",
            "take as a category" if few else "take as a category if the numbers are only labels",
            parameters={"distinct": look.distinct[name]},
        )
    ]
