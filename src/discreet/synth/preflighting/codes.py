"""Which values are no values but codes: not asked, refused, does not know?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.synth.preflighting.findings import CONFIDENCES, Confidence, Finding
from discreet.synth.preflighting.looking import Look, counted

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
    tables = {name: counted(look.numbers(name)) for name in look.numeric}
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
        for confidence in CONFIDENCES:
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
