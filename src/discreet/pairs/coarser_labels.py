"""Which values does a label such as "30-39", ">=90", "10***" or "2020-03" stand for? What any reader can tell.

A release that tells columns less precisely is compared with an original put into the same bands, cuts and months.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
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


def coarser_alike(
    ours: pl.DataFrame, theirs: pl.DataFrame, columns: Sequence[str], said: dict[str, str]
) -> dict[str, pl.Series]:
    """Bring values of the original to the bands, cuts and dates that the release shows, as any intruder would."""
    found = {}
    for name in columns:
        way = coarsening(ours[name], theirs[name])
        if way is not None:
            found[name] = way(ours[name]).rename(name)
            said[name] = f"{way.sentence}, except for information loss"
    return found


@dataclass(frozen=True)
class Coarsening:
    """How the values of a column become those of a release, and what that is in words."""

    rule: Callable[[pl.Series], pl.Series | None]
    sentence: str

    def __call__(self, values: pl.Series) -> pl.Series:
        """Make values coarser; what the rule does not cover keeps its own text and matches nothing."""
        made = self.rule(plain_text(values))
        return as_text(plain_text(values)) if made is None else made


def coarsening(ours: pl.Series, theirs: pl.Series) -> Coarsening | None:
    """Find what made a column of a release coarser, by its labels alone; None where nothing shows it.

    Examples
    --------
    >>> from datetime import date
    >>> days = pl.Series([date(2020, 3, 17), date(2021, 7, 2)])
    >>> coarsening(days, pl.Series(["2021-07", "2020-03"]))(days).to_list()
    ['2020-03', '2021-07']
    >>> coarsening(pl.Series([31, 47]), pl.Series(["30-39", "40-49"]))(pl.Series([33])).to_list()
    ['30-39']
    """
    before, after = plain_text(ours), plain_text(theirs)
    labels = after.drop_nulls().unique()
    if labels.is_empty() or before.null_count() == len(before):
        return None
    if before.dtype.is_temporal():
        return _coarser_dates(before, labels)
    if labels.dtype.is_integer() and before.dtype.is_integer():
        return _first_digits(before, after)
    if labels.dtype != pl.String:
        return None
    if before.dtype.is_numeric():
        bands = _in_bands_of(labels, before)
        if bands is not None or not before.dtype.is_integer():
            return bands
        before = as_text(before)
    if before.dtype != pl.String:
        return None
    kept = length_of_cut(before, labels)
    if kept is not None:
        how = f"is cut to its first {kept:,} characters in the release; so was the original"
        return Coarsening(lambda values: cut_to(as_text(values), kept), how)
    first = _length_of_prefix(before, labels)
    if first is not None:
        how = f"is told by its first {first:,} characters in the release; so was the original"
        return Coarsening(lambda values: as_text(values).str.slice(0, first), how)
    return None


def _first_digits(before: pl.Series, after: pl.Series) -> Coarsening | None:
    """Find how many last digits of codes were cut off, where what is left is spread as the labels are.

    Examples
    --------
    >>> codes = pl.Series([75014, 75011, 69003, 13001])
    >>> _first_digits(codes, pl.Series([13, 75, 75, 69]))(codes).to_list()
    [75, 75, 69, 13]
    """
    known, shown = (side.drop_nulls().cast(pl.Int64) for side in (before, after))
    low, high = int(known.min()), int(known.max())  # type: ignore[arg-type]
    if low < 0 or int(shown.max()) >= high:  # type: ignore[arg-type]
        return None
    apart = {cut: _apart(known // 10**cut, shown) for cut in range(len(str(high)))}
    best = min(apart, key=lambda cut: (apart[cut], cut))
    held = shown.unique().is_in((known // 10**best).unique().implode()).mean()
    if not best or float(held or 0.0) < _NEARLY_ALL or apart[best] > min(apart[0] / 3, 0.3):  # type: ignore[arg-type]
        return None
    how = f"is told without its last {'digit' if best == 1 else f'{best} digits'} in the release; so was the original"
    return Coarsening(lambda values: (values.cast(pl.Int64) // 10**best).cast(after.dtype), how)


def _apart(ours: pl.Series, theirs: pl.Series) -> float:
    """The largest distance of two distributions."""
    both = np.concatenate([ours.to_numpy(), theirs.to_numpy()])
    places = [np.searchsorted(np.sort(side.to_numpy()), both, "right") / len(side) for side in (ours, theirs)]
    return float(np.abs(places[0] - places[1]).max())


def _in_bands_of(labels: pl.Series, before: pl.Series) -> Coarsening | None:
    names = labels.sort().to_list()
    made = in_bands(before, names)
    if made is None or not made.is_in(names).any():
        return None
    how = f"is in {len(names):,} bands in the release; the original was put into the same bands"
    return Coarsening(lambda values: in_bands(values, names), how)


def _length_of_prefix(codes: pl.Series, labels: pl.Series) -> int | None:
    """Say how many characters of each code are left, where every label is the beginning of codes and none is a code."""
    values, lengths = codes.drop_nulls().unique(), labels.str.len_chars().unique().to_list()
    if len(lengths) > 1 or not lengths[0] or values.str.len_chars().max() <= lengths[0]:
        return None
    beginnings = values.str.slice(0, lengths[0]).unique()
    known = labels.is_in(beginnings.implode()).mean()
    fewer = len(beginnings) < len(values) and not labels.is_in(values.implode()).any()
    return int(lengths[0]) if fewer and float(known or 0.0) >= _NEARLY_ALL else None  # type: ignore[arg-type]


def _coarser_dates(before: pl.Series, labels: pl.Series) -> Coarsening | None:
    """Find the year, quarter, month or day to which dates were cut, whether they are still dates or not."""
    if before.dtype not in (pl.Date, pl.Datetime):
        return None
    if labels.dtype.is_temporal():
        if labels.dtype not in (pl.Date, pl.Datetime):
            return None
        for unit, words in _UNITS.items():
            if (labels.dt.truncate(unit) == labels).all() and (before.dt.truncate(unit) != before).any():
                how = f"is told by the {words} in the release; so was the original"
                return Coarsening(lambda values, unit=unit: values.dt.truncate(unit), how)  # type: ignore[misc]
        return None
    if labels.dtype.is_numeric():
        years = before.dt.year().unique().cast(pl.Float64)
        held = labels.cast(pl.Float64).is_in(years.implode()).mean()
        if float(held or 0.0) < _NEARLY_ALL:  # type: ignore[arg-type]
            return None
        kind = labels.dtype
        return Coarsening(
            lambda values: values.dt.year().cast(kind),
            "is told by the year in the release; so was the original",
        )
    if labels.dtype != pl.String:
        return None
    for pattern in _PATTERNS:
        written = before.dt.strftime(pattern).drop_nulls().unique()
        shape = re.sub("%[A-Za-z]", lambda part: _SHAPES[part[0]], pattern)
        # Other people were born in other months: that some are the same and all are written so is enough.
        alike = float(labels.str.contains(f"^{shape}$").mean() or 0.0)  # type: ignore[arg-type]
        if alike >= _NEARLY_ALL and labels.is_in(written.implode()).any():
            how = "is a coarser date in the release; so was the original"
            return Coarsening(lambda values, pattern=pattern: values.dt.strftime(pattern), how)  # type: ignore[misc]
    for written in (_quarters, _halves):
        for mark in ("-", "", " "):
            held = labels.is_in(written(before, mark).unique().implode()).mean()
            if float(held or 0.0) >= _NEARLY_ALL:  # type: ignore[arg-type]
                how = "is told by the part of the year in the release; so was the original"
                return Coarsening(partial(written, mark=mark), how)
    bands = _in_bands_of(labels, before.dt.year())
    return bands and Coarsening(lambda values: bands.rule(values.dt.year()), bands.sentence)


def _quarters(days: pl.Series, mark: str) -> pl.Series:
    frame = pl.DataFrame({"y": days.dt.year(), "part": days.dt.quarter()})
    return frame.select(pl.format("{}" + mark + "Q{}", "y", "part")).to_series()


def _halves(days: pl.Series, mark: str) -> pl.Series:
    frame = pl.DataFrame({"y": days.dt.year(), "part": (days.dt.month() + 5) // 6})
    return frame.select(pl.format("{}" + mark + "H{}", "y", "part")).to_series()


_NEARLY_ALL = 0.9
_HELD = 0.5  # of the people must be in some group for labels to be read as groups
_MOST_PAIRS = 10**8
_UNITS = {"1y": "year", "1q": "quarter", "1mo": "month", "1d": "day"}
_SHAPES = dict.fromkeys(("%b", "%B"), "[^0-9 ]+") | dict.fromkeys(("%Y", "%G"), "[0-9]{4}")
_SHAPES |= {"%m": "(0[1-9]|1[0-2])", "%d": "(0[1-9]|[12][0-9]|3[01])", "%V": "[0-5][0-9]"}
_PATTERNS = ("%Y", "%Y-%m", "%m/%Y", "%Y/%m", "%Y%m", "%m.%Y", "%b %Y", "%B %Y", "%Y-%m-%d", "%G-W%V")


def recoded_like(before: pl.Series, after: pl.Series, values: pl.Series) -> pl.Series:
    """Recode the values of other people as those of the original were; unknown ones keep their own text.

    Examples
    --------
    >>> recoded_like(pl.Series([1, 2]), pl.Series(["low", "high"]), pl.Series([2, 7])).to_list()
    ['high', '7']
    """
    way = coarsening(before, after)
    if way is not None and way(before).equals(after, check_names=False):
        return way(values).rename(values.name)
    known = pl.DataFrame({"v": as_text(plain_text(before)), "l": after}).drop_nulls().unique("v")
    texts = as_text(plain_text(values))
    if known["l"].dtype != pl.String:
        return texts.replace_strict(known["v"], known["l"], default=None).rename(values.name)
    return texts.replace(known["v"], known["l"]).rename(values.name)


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


@dataclass(frozen=True)
class Groups:
    """The groups of records that a release shows by ranges and sets of their own, which may overlap.

    One value has several labels there. Whoever knows all keys of a person finds the groups that hold them; the
    narrowest is taken for theirs.
    """

    shown: pl.DataFrame
    columns: tuple[str, ...]

    @classmethod
    def of(
        cls, ours: pl.DataFrame, theirs: pl.DataFrame, keys: Sequence[str], columns: Sequence[str]
    ) -> Groups | None:
        """Read the groups off a release; None where ``columns`` show no ranges or sets, or hold too few people.

        Examples
        --------
        >>> people = pl.DataFrame({"age": [20, 24, 31, 38], "sex": ["f", "f", "m", "m"]})
        >>> made = pl.DataFrame({"age": ["[20, 31]", "[24, 40]"], "sex": ["f", "m"]})
        >>> Groups.of(people, made, ["age", "sex"], ["age"]).labels_of(people)["age"].to_list()
        ['[20, 31]', '[20, 31]', '[24, 40]', '[24, 40]']
        """
        names = [*columns, *(key for key in keys if key not in columns)]
        shown = theirs.select(as_text(plain_text(theirs[name])).alias(name) for name in names).unique()
        if not columns or shown.height * ours.height > _MOST_PAIRS:
            return None
        found = cls(shown.sort(names, nulls_last=True), tuple(columns))
        held = found.labels_of(ours)[columns[0]].is_in(shown[columns[0]].drop_nulls().implode())
        return found if float(held.mean() or 0.0) >= _HELD else None  # type: ignore[arg-type]

    def labels_of(self, people: pl.DataFrame) -> dict[str, pl.Series]:
        """Give everybody the labels of the narrowest group that holds them; who is in none keeps their own texts."""
        names = self.shown.columns
        texts = people.select(as_text(plain_text(people[name])).alias(name) for name in names)
        fits = np.ones((people.height, self.shown.height), dtype=bool)
        width = np.zeros(self.shown.height)
        for name in names:
            values, labels = people[name].unique().sort(), self.shown[name].unique().sort()
            covers = np.column_stack([_covered(values, label) for label in labels])
            rows = people[name].rank("dense").fill_null(0).to_numpy().astype(np.int64)
            rows -= values.null_count() == 0
            places = pl.Series(labels).index_of(None) if labels.null_count() else None
            at = self.shown[name].replace_strict(labels, range(len(labels)), default=places).to_numpy()
            fits &= covers[rows][:, at]
            width += np.log(np.maximum(covers.sum(axis=0), 1))[at]
        best = np.where(fits, width, np.inf).argmin(axis=1)
        found = pl.Series(fits.any(axis=1))
        return {
            name: pl.select(
                pl.when(found).then(self.shown[name].gather(best)).otherwise(texts[name]).alias(name)
            ).to_series()
            for name in self.columns
        }


def _covered(values: pl.Series, label: str | None) -> np.ndarray:
    """Say of each value whether a label stands for it: a range, a set in braces, the value itself, or everything."""
    texts = as_text(plain_text(values)).rename("v")
    if label is None or label == _WHOLE:
        return np.ones(len(values), dtype=bool)
    inside = (texts == label).fill_null(False)
    span = span_of(label)
    if label.startswith("{") and label.endswith("}"):
        inside |= texts.is_in(label[1:-1].split(", ")).fill_null(False)
    elif span is not None and values.dtype.is_numeric():
        above = values >= span.low if span.with_low else values > span.low
        below = values <= span.high if span.with_high else values < span.high
        inside |= (above & below).fill_null(False)
    return inside.to_numpy()
