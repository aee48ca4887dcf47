"""Is every column of the type it should be, how many levels has it, and which values are codes?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.io.column_types import Wanted, dates_of
from discreet.synth.column_forms import as_numbers
from discreet.synth.preflighting import preflight_findings
from discreet.synth.preflighting.preflight_findings import Confidence, Finding, Look
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
            evidence, action = {"missing_share": 1.0}, "leave out and put back all missing"
            found.append(Finding("all-missing", (name,), evidence, "high", action))
        elif look.distinct[name] == 1:
            found.append(Finding("constant", (name,), {"distinct": 1}, "high", "repeat the value"))
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
    if len(values) <= preflight_findings.Thresholds().many_levels:
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


# Which values are no values but codes: not asked, refused, does not know?
_REPEATED = tuple(float(digit * places) for digit in "89" for places in range(1, 8))
_NEGATIVE = (*(-float(v) for v in range(1, 10)), *(-float(d * k) for d in "789" for k in range(2, 8)))
PATTERNS = frozenset((*_REPEATED, *_NEGATIVE))
TEXT_CODES = frozenset(("", "NA", "N/A", "NULL", "NAN", ".", "-", "?"))
_FAR = 3.0
_MOST_CODES = 6


def coded_missing(look: Look, declared: dict[str, Sequence[Any]]) -> list[Finding]:
    """Find values that stand for "missing"; codes of high and medium confidence are set aside in the look.

    ``declared`` are codes that the file itself or its codebook names.
    """
    tables = {name: preflight_findings.counted(look.numbers(name)) for name in look.numeric}
    legal = {name: _floats(look.codebook.get(name, {}).get("legal", ())) for name in look.numeric}
    repeated = _repeated_extremes(tables)
    found = []
    for name, (values, counts) in tables.items():
        sorted_out: dict[float, Confidence] = {}
        for code in _floats(declared.get(name, ())):
            if code in values:
                sorted_out[code] = "high"
        for code, confidence in _looks_like_codes(values, counts, look, repeated).items():
            sorted_out.setdefault(code, "low" if code in legal[name] else confidence)
        for confidence in preflight_findings.CONFIDENCES:
            codes = sorted(code for code, own in sorted_out.items() if own == confidence)
            if codes:
                found.append(_finding(look, name, codes, counts[np.isin(values, codes)], confidence))
        certain = tuple(code for code, own in sorted_out.items() if own != "low")
        if certain:
            look.codes[name] = certain
    return [*found, *_text_codes(look)]


def _looks_like_codes(
    values: Floats, counts: Integers, look: Look, repeated: frozenset[float]
) -> dict[float, Confidence]:
    if len(values) < 3:
        return {}
    share = look.limits.sentinel_min_share
    often = dict(zip(values.tolist(), (counts / look.rows >= share).tolist(), strict=True))
    found: dict[float, Confidence] = {}
    negative = values[values < 0].tolist()
    whole = all(value == round(value) for value in negative)
    if negative and whole and len(negative) <= _MOST_CODES and len(values) > len(negative):
        fits = len(negative) == 1 or all(value in PATTERNS for value in negative)
        if fits:
            # Temperatures and balances run on below zero without a gap; codes rarely do.
            run_on = len(negative) >= 3 and negative == [-float(v) for v in range(len(negative), 0, -1)]
            three_way = len(values) - len(negative) <= 2
            confidence: Confidence = "medium" if run_on or three_way else "high"
            found |= {value: confidence for value in negative if often[value]}
    for value, rest in ((values[-1], values[:-1]), (values[0], values[1:])):
        if value in found or value not in PATTERNS or not often[value] or (found and value < 0):
            continue
        near = abs(rest[-1] - value) if value == values[-1] else abs(rest[0] - value)
        own = counts[:-1] if value == values[-1] else counts[1:]
        if _is_far(near, rest, own) or (value in repeated and near > np.median(np.diff(values))):
            found[value] = "medium" if value >= 0 or not (rest < 0).any() else "low"
        elif abs(value) > 9:
            found[value] = "low"
    return found


def _is_far(near: float, rest: Floats, counts: Integers) -> bool:
    low, high = (_weighted_quantile(rest, counts, share) for share in (0.25, 0.75))
    spread = _FAR * (high - low)
    # Where most values are one and the same, the middle half has no width; the whole range stands in for it.
    return bool(near > (spread if spread > 0 else rest[-1] - rest[0]))


def _weighted_quantile(values: Floats, counts: Integers, share: float) -> float:
    running = np.cumsum(counts)
    return float(values[np.searchsorted(running, share * running[-1])])


def _repeated_extremes(tables: dict[str, tuple[Floats, Integers]]) -> frozenset[float]:
    extremes = [v for values, _ in tables.values() if len(values) > 2 for v in {values[0], values[-1]}]
    return frozenset(float(v) for v in extremes if v in PATTERNS and extremes.count(v) > 1)


def _finding(
    look: Look, name: str, codes: Sequence[float], counts: Integers, confidence: Confidence
) -> Finding:
    values = look.numbers(name)
    there = values[~np.isnan(values)]
    bins, _ = np.histogram(there, bins=int(look.limits.n_bins))
    shown = [int(code) if code == round(code) else code for code in codes]
    return Finding(
        "coded-missing",
        (name,),
        {
            "codes": shown,
            "records": int(counts.sum()),
            "share": float(counts.sum() / look.rows),
            "code": ", ".join(map(str, shown))
            if look.show_values or all(is_usual_code(code) for code in shown)
            else f"{len(shown)} number{'s' * (len(shown) != 1)}",
            "counts": counts.tolist(),
            "bins": bins.tolist(),
        },
        confidence,
        "treat as states of their own, not as numbers (special_codes)"
        if confidence == "high"
        else "check the codebook; if it is a code, treat it as a state of its own (special_codes)",
        parameters={"codes": shown},
    )


def is_usual_code(code: float | str) -> bool:
    """Whether a code is one that surveys everywhere use, so that it tells nothing of anybody.

    Examples
    --------
    >>> is_usual_code(-8), is_usual_code("n/a"), is_usual_code(7391.4471)
    (True, True, False)
    """
    if isinstance(code, str):
        return code.strip().upper() in TEXT_CODES
    return code == 0 or code in PATTERNS


def _text_codes(look: Look) -> list[Finding]:
    found = []
    for name, dtype in look.frame.schema.items():
        if dtype != pl.String and not isinstance(dtype, pl.Categorical | pl.Enum):
            continue
        texts = look.frame[name].cast(pl.String).drop_nulls().rename("code").value_counts()
        hits = texts.filter(pl.col("code").str.strip_chars().str.to_uppercase().is_in(list(TEXT_CODES)))
        if hits.height:
            hits = hits.sort("code")
            records = int(hits["count"].sum())
            found.append(
                Finding(
                    "coded-missing",
                    (name,),
                    {"records": records, "share": records / look.rows, "codes": hits["code"].to_list()},
                    "high",
                    "convert to missing, and write back afterwards",
                    parameters={"codes": hits["code"].to_list(), "text": True},
                )
            )
    return found


def _floats(values: Any) -> tuple[float, ...]:
    listed = values if isinstance(values, Sequence) and not isinstance(values, str) else [values]
    return tuple(
        float(value) for value in listed if isinstance(value, int | float) and not isinstance(value, bool)
    )
