"""Is every column of the type it should be, and how many levels has it?"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from discreet.io.dates import Wanted, dates_of
from discreet.synth.column_forms import as_numbers
from discreet.synth.preflighting.codes import is_usual_code
from discreet.synth.preflighting.findings import Finding
from discreet.synth.preflighting.looking import Look, Thresholds
from discreet.synth.written_values import as_read, way_of_writing

_NEAR_UNIQUE = 0.5
_MOST_EXACT = 60
_FEW_NUMBERS = 3
_MOST_TEXT_CODES = 6
_FEW_RECORDS = 5
_DENSE = 0.5
_MOST_LABELS = 50
_DIGITS_APART = 2


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
            found += _text(look, series, given)
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


def _text(look: Look, series: pl.Series, given: str | None) -> list[Finding]:
    texts = series.drop_nulls().unique()
    if given != "category":
        written = _written_numbers(look, series, texts, declared=given == "number")
        if written is not None:
            # Where they may be mere labels, they stay the category that they are until the user decides.
            return [written, *([] if written.confidence == "high" else _category(look, series.name))]
    dates = _written_dates(series.name, texts)
    if dates is not None:
        return [dates]
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


def _written_numbers(look: Look, series: pl.Series, texts: pl.Series, *, declared: bool) -> Finding | None:
    """Find numbers that stand as texts, alone or with a few codes among them ("N" for "not asked")."""
    read = as_read(texts)
    codes = texts.filter(read.is_null()).sort()
    numbers, as_texts = read.drop_nulls(), texts.filter(read.is_not_null())
    if not len(numbers) or len(codes) > _MOST_TEXT_CODES:
        return None
    # Two or three numbers among words (-8 and -9 beside yes and no) are codes, not amounts.
    if len(codes) and not declared and len(numbers) <= max(_FEW_NUMBERS, len(codes)):
        return None
    amounts = declared or _are_amounts(numbers)
    if len(codes) and not amounts and len(numbers) <= look.limits.many_levels:
        return None
    way = way_of_writing(as_texts)
    held = series.rename("code").value_counts().filter(pl.col("code").is_in(codes.implode()))
    coded = int(held["count"].sum())
    evidence: dict[str, Any] = {"distinct": len(numbers), "missing": series.null_count()}
    if len(codes):
        evidence |= {"code": _told(look, codes, held["count"]), "records_with_code": coded}
    sure = way is not None and (amounts or not len(codes))
    action = "take as numbers" if sure else "take as numbers if they are amounts, not labels"
    states = ", its codes as states of their own" if len(codes) else ""
    return Finding(
        "number-as-text",
        (series.name,),
        evidence,
        "high" if sure else "medium",
        f"{action}{states} (special_codes)"
        if way is not None
        else f"{action}{states}: convert them yourself, as they are written in ways that do not come back",
        reversible=way is not None,
        parameters={"codes": codes.to_list(), "way": way},
    )


def _written_dates(name: str, texts: pl.Series) -> Finding | None:
    """Find dates that stand as texts; an order of day and month that nothing settles is asked about, not guessed."""
    formats, doubtful = dates_of(texts.alias("c").to_frame().lazy(), {"c": name}, Wanted())
    form = formats.get("c")
    if form is None and not doubtful:
        return None
    evidence = {"distinct": len(texts), **({"form": form} if form else {})}
    return Finding(
        "date-as-text",
        (name,),
        evidence,
        "medium" if form else "low",
        "convert to dates, and write back as text afterwards"
        if form
        else "say whether the day or the month comes first when the file is read (dates='dmy' or dates='mdy')",
        reversible=form is not None,
        parameters=evidence if form else {},
    )


def _are_amounts(numbers: pl.Series) -> bool:
    """Labels are whole and positive, and few or of about as many digits; amounts are not."""
    values = numbers.to_numpy()
    if (values < 0).any() or (values != np.round(values)).any():
        return True
    if len(values) <= _MOST_LABELS:
        return False
    dense = len(values) >= _DENSE * (values.max() - values.min() + 1)
    digits = np.floor(np.log10(np.maximum(values, 1.0)))
    return bool(dense or digits.max() - digits.min() >= _DIGITS_APART)


def are_labels(numbers: pl.Series) -> bool:
    """Whether distinct numbers are rather codes (of a sex, of an industry) than amounts.

    Whole numbers of few values are, as are many of about as many digits with wide gaps between them.

    Examples
    --------
    >>> are_labels(pl.Series([1, 2, 9])), are_labels(pl.Series(range(18, 90))), are_labels(pl.Series([0.5, 1.0]))
    (True, False, False)
    >>> are_labels(pl.Series(range(1107, 9990, 37)))
    True
    """
    values = as_numbers(numbers).drop_nulls()
    if len(values) <= Thresholds().many_levels:
        return bool((values == values.round()).all())
    return len(values) > _MOST_LABELS and not _are_amounts(values)


def _told(look: Look, codes: pl.Series, counts: pl.Series) -> str:
    """Tell codes that everybody uses; another text is a value, which stays in the house."""
    if look.show_values or all(is_usual_code(code) for code in codes):
        return ", ".join(repr(code) for code in codes.to_list())
    least = max(_FEW_RECORDS, look.limits.sentinel_min_share * look.rows)
    many = counts.min() >= least  # type: ignore[operator]
    return f"{len(codes)} {'' if many else 'rare '}text{'s' * (len(codes) != 1)}"


def _category(look: Look, name: str) -> list[Finding]:
    levels = look.distinct[name]
    if levels <= look.limits.many_levels:
        return []
    evidence: dict[str, Any] = {"levels": levels, "ordered_splits": levels - 1}
    if levels <= _MOST_EXACT:
        evidence["exhaustive_splits"] = exhaustive_splits(levels)
    rare = look.frame[name].drop_nulls().unique_counts().to_numpy()
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
