"""Which numbers does a label such as "30-39", "[30, 40)" or ">=90" stand for? What any reader of the file can tell.

A release that tells columns less precisely is compared with an original put into the same bands, cuts and groups.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from discreet import engine
from discreet.engine.comparable import as_text, plain_text
from discreet.microdata import Microdata

_NUMBER = r"([+-]?(?:\d{1,3}(?:[,_ ]\d{3})+|\d+)(?:\.\d+)?(?:[eE][+-]?\d+)?|[+-]?inf)"
_BETWEEN = re.compile(rf"^([\[(]?)\s*{_NUMBER}\s*(?:,|;|-|–|—|\bto\b|\.\.)\s*{_NUMBER}\s*([\])]?)$")
_BELOW = re.compile(rf"^(<=|≤|<|up to|under|below)\s*{_NUMBER}$")
_ABOVE = re.compile(rf"^(>=|≥|>|over|above|from)\s*{_NUMBER}$")
_AND_MORE = re.compile(rf"^{_NUMBER}\s*(?:\+|and more|and over|or more|and above)$")
_ALONE = re.compile(rf"^{_NUMBER}$")
_WHOLE = "*"
_USUAL = 2
_SPREAD = 4  # a label that is new by chance may come several times


class Span(NamedTuple):
    """The numbers that a label covers."""

    low: float
    high: float
    with_low: bool
    with_high: bool


def span_of(label: str) -> Span | None:
    """Read one label; None where it does not speak of numbers.

    Examples
    --------
    >>> span_of("[30, 40)")
    Span(low=30.0, high=40.0, with_low=True, with_high=False)
    >>> span_of("30-39")
    Span(low=30.0, high=39.0, with_low=True, with_high=True)
    >>> span_of("North") is None
    True
    """
    text = label.strip()
    if found := _ALONE.match(text):
        number = _number(found[1])
        return Span(number, number, True, True)
    if found := _BETWEEN.match(text):
        return Span(_number(found[2]), _number(found[3]), found[1] != "(", found[4] != ")")
    if found := _BELOW.match(text):
        return Span(-math.inf, _number(found[2]), False, found[1] in ("<=", "≤", "up to"))
    if found := _ABOVE.match(text):
        return Span(_number(found[2]), math.inf, found[1] in (">=", "≥", "from"), False)
    if found := _AND_MORE.match(text):
        return Span(_number(found[1]), math.inf, True, False)
    return None


def in_bands(values: pl.Series, labels: Sequence[str]) -> pl.Series | None:
    """Give each number the label that covers it; None where labels are no bands, overlap, or leave it unclear.

    A number that no label covers (its band was suppressed throughout) keeps its own text and so matches nothing.

    Examples
    --------
    >>> in_bands(pl.Series([31, 47, 99]), ["30-39", "40-49"]).to_list()
    ['30-39', '40-49', '99']
    >>> in_bands(pl.Series([31, 47]), ["30-39", "35-49"]) is None
    True
    """
    read = {label: span_of(label) for label in labels if label != _WHOLE}
    if not read or any(span is None for span in read.values()):
        return None
    spans = sorted((span, label) for label, span in read.items() if span is not None)
    for (first, _), (second, _) in itertools.pairwise(spans):
        if first.high > second.low or (first.high == second.low and first.with_high and second.with_low):
            return None
    numbers = values.cast(pl.Float64).to_numpy()
    lows = np.array([span.low for span, _ in spans])
    place = np.clip(np.searchsorted(lows, numbers, "right") - 1, 0, len(spans) - 1)
    # On a shared end the lower band may be the one that has it.
    on_low = (numbers == lows[place]) & (place > 0) & ~np.array([span.with_low for span, _ in spans])[place]
    place = np.where(on_low, place - 1, place)
    highs = np.array([span.high for span, _ in spans])[place]
    with_high = np.array([span.with_high for span, _ in spans])[place]
    covered = (numbers >= lows[place]) & ((numbers < highs) | (with_high & (numbers == highs)))
    known = ~np.isnan(numbers)
    between = known & ~covered & (numbers > lows[0]) & (numbers < spans[-1][0].high)
    if np.any(numbers[between] != np.floor(numbers[between])):
        # 39.5 between "30-39" and "40-49": nobody can tell which of them it went to.
        return None
    named = np.array([label for _, label in spans])[place]
    text = values.cast(pl.String)
    return (
        pl.DataFrame({"label": named, "covered": covered, "text": text})
        .select(pl.when(pl.col("covered")).then(pl.col("label")).otherwise(pl.col("text")))
        .to_series()
        .rename(values.name)
    )


def cut_to(codes: pl.Series, kept: int) -> pl.Series:
    """Keep the first characters of each code and mask the others.

    Examples
    --------
    >>> cut_to(pl.Series(["10115", "7"]), 2).to_list()
    ['10***', '7']
    """
    held = pl.DataFrame({"code": codes.rename("code")})
    hidden = (pl.col("code").str.len_chars().cast(pl.Int64) - kept).clip(0)
    masked = pl.col("code").str.slice(0, kept) + pl.lit(_WHOLE).repeat_by(hidden).list.join("")
    return held.select(masked).to_series().rename(codes.name)


def length_of_cut(codes: pl.Series, labels: pl.Series) -> int | None:
    """Say after how many characters codes were cut, where every label is a masked code or one short enough to stay.

    The text of the labels says it, whichever record has them now. None where codes have masks of their own, labels are
    cut at several places, or one is no code of the file.

    Examples
    --------
    >>> length_of_cut(pl.Series(["10115", "10999", "N"]), pl.Series(["N", "10***", "10***"]))
    2
    >>> length_of_cut(pl.Series(["10115", "10999"]), pl.Series(["101**", "10***"])) is None
    True
    """
    values, shown = codes.drop_nulls().unique(), labels.drop_nulls().unique()
    masked = shown.filter(shown.str.ends_with(_WHOLE))
    if masked.is_empty() or values.str.ends_with(_WHOLE).any():
        return None
    lengths = masked.str.strip_chars_end(_WHOLE).str.len_chars().unique().to_list()
    if len(lengths) > 1 or not lengths[0]:
        return None
    kept = int(lengths[0])
    return kept if shown.is_in(cut_to(values, kept).unique().implode()).all() else None


def _number(text: str) -> float:
    return float(re.sub(r"[,_ ]", "", text))


def with_new_labels(ours: pl.DataFrame, copies: Sequence[Microdata], columns: Sequence[str]) -> list[str]:
    """Name the columns of text in which the release has labels that are no value of the original."""
    found = []
    for name in columns:
        after = [plain_text(engine.collect(copy, [name])[name]) for copy in copies]
        if any(values.dtype != pl.String for values in after):
            continue
        texts = as_text(plain_text(ours[name])).drop_nulls()
        known = texts.unique()
        new = [values.drop_nulls() for values in after]
        new = [values.filter(~values.is_in(known.implode())) for values in new]
        # Other people of the same kind have a label that nobody here has about as often as one person alone has one.
        alone = int((texts.unique_counts() == 1).sum()) / max(len(texts), 1)
        usual = [alone * len(values) + 1 for values in after]
        most = [max(_USUAL * many, many + _SPREAD * many**0.5) for many in usual]
        if any(len(odd) > many for odd, many in zip(new, most, strict=True)):
            found.append(name)
    return found


def recoded_alike(
    ours: pl.DataFrame, theirs: pl.DataFrame, columns: Sequence[str], said: dict[str, str]
) -> dict[str, pl.Series]:
    """Find the columns in which values became new, coarser labels, one for each value, and recode the original so."""
    found = {}
    for name in columns:
        if plain_text(theirs[name]).dtype != pl.String:
            continue
        before, after = (as_text(plain_text(table[name])) for table in (ours, theirs))
        known = pl.DataFrame({"value": before, "label": after}).drop_nulls().unique()
        values, labels = known["value"].n_unique(), known["label"].n_unique()
        changed = known.filter(pl.col("value") != pl.col("label"))
        if values < known.height or labels >= values or not changed.height:
            continue
        if changed["label"].is_in(known["value"].unique().to_list()).any():
            continue
        found[name] = before.replace(known["value"], known["label"]).rename(name)
        said[name] = (
            f"is coarser in the release ({values:,} values became {labels:,}); the original was recoded in the same "
            "way, except for information loss"
        )
    return found


def banded_alike(
    original: Microdata, released: Microdata, columns: Sequence[str], said: dict[str, str]
) -> dict[str, pl.Series]:
    """Put numbers of the original into the bands that the labels of the release name, as any intruder would."""
    found = {}
    for name in columns:
        ours, theirs = (engine.collect(data, [name])[name] for data in (original, released))
        if not ours.dtype.is_numeric() or plain_text(theirs).dtype != pl.String:
            continue
        labels = plain_text(theirs).drop_nulls().unique().to_list()
        banded = in_bands(ours, labels)
        if banded is not None:
            found[name] = banded
            said[name] = (
                f"is in {len(labels):,} bands in the release; the original was put into the same bands, except for "
                "information loss"
            )
    return found


def cut_alike(
    ours: pl.DataFrame, released: Microdata, columns: Sequence[str], said: dict[str, str]
) -> dict[str, pl.Series]:
    """Cut the codes of the original where the labels of the release are cut ("10***"), as any intruder would."""
    found = {}
    for name in columns:
        before, theirs = plain_text(ours[name]), plain_text(engine.collect(released, [name])[name])
        if before.dtype == pl.String and theirs.dtype == pl.String:
            kept = length_of_cut(before, theirs)
            if kept is not None:
                found[name] = cut_to(before, kept)
                said[name] = (
                    f"is cut to its first {kept:,} characters in the release; so was the original, except for "
                    "information loss"
                )
    return found


def regrouped_alike(
    ours: pl.DataFrame, theirs: pl.DataFrame, columns: Sequence[str], said: dict[str, str]
) -> dict[str, pl.Series]:
    """Give keys that were coarsened group by group the labels of the release, record by record.

    One value became several labels, so that nobody can say which label a person has without knowing the group. To let
    the intruder know it errs on the side of caution.
    """
    found = {}
    for name in columns:
        values, after = (as_text(plain_text(table[name])) for table in (ours, theirs))
        labels = after.drop_nulls().unique()
        fresh = labels.filter(~labels.is_in(values.unique().implode()))
        own = after.is_in(fresh.implode()) | after.is_null()
        found[name] = pl.select(pl.when(own).then(after).otherwise(values).alias(name)).to_series()
        said[name] = (
            f"was coarsened group by group; for risk each person is looked up under the label of their own record "
            f"({len(fresh):,} labels are new)"
        )
    return found
