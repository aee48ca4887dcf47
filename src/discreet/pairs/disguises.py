"""Which released columns say what a column of the original says, in another writing or under another name?

A copy of everybody stays one when texts are put in lower case, amounts into another currency, dates on another day,
labels exchanged one for one, or columns renamed. Here the release is read back into the writing of the original, so
that copies can be looked for in it. Reading back is a guess that errs on one side: where it is wrong, the values fit
nobody, and no copy is found that is none.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.optimize import linear_sum_assignment

from discreet.core.arrays import Flags, Floats
from discreet.engine.comparable import as_text, plain_text

_ALIKE = 0.8  # two columns whose values overlap by so much are taken for one another
_KNOWN = 0.98  # from this share of known labels on, a column is written as in the original
_MOST_LEVELS = 200
_MOST_VALUES = 1_500
_MOST_RECORDS = 20_000
_FEWEST_HITS = 8
_FEW_HITS = 0.02
_SHIFTS = 20
_SAME = 0.5  # from this share of values of the original on, numbers are those of one of its columns
_AMOUNT = r"[+-]?\d{1,3}(?:[ ,']\d{3})*(?:[.,]\d+)?|[+-]?\d+(?:[.,]\d+)?(?:[eE][+-]?\d+)?"
_NUMBER = rf"^(?:[€$£]|[A-Z]{{3}})?\s*({_AMOUNT})\s*(?:[€$£%]|[A-Z]{{3}})?$"
_DATES = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y%m%d", "%d-%m-%Y", "%Y/%m/%d", "%d %b %Y")


@dataclass(frozen=True)
class Disguise:
    """A released column that says, in some writing, what a column of the original says."""

    column: str
    released: str
    how: str

    @property
    def sentence(self) -> str:
        """What was found, without a value."""
        if self.column == self.released:
            return f"column '{self.column}' was read {self.how}"
        how = f", {self.how}" if self.how else ""
        return f"column '{self.released}' of the release was read as '{self.column}'{how}"


@dataclass(frozen=True)
class Undisguised:
    """A release in the writing of the original, and what had to be read for it."""

    frame: pl.DataFrame
    disguises: tuple[Disguise, ...]
    sure: bool = True
    """False where labels were matched that could as well be others: what is found so may be chance."""


def undisguised(
    original: pl.DataFrame, released: pl.DataFrame, *, but: str | None = None
) -> Iterator[Undisguised]:
    """Read a release back: columns under their own names first, then columns that only the release has.

    The column ``but``, which links the records, is left as it is.

    Examples
    --------
    >>> people = pl.DataFrame({"town": ["Bergen", "Ålesund", "Oslo"] * 9, "pay": range(27)})
    >>> written = people.select(pl.col("town").str.to_uppercase(), salary=pl.col("pay") * 12 + 100)
    >>> [one.sentence for read in undisguised(people, written) for one in read.disguises]
    ["column 'town' was read in another spelling",
     "column 'salary' of the release was read as 'pay', scaled or shifted"]
    """
    with np.errstate(all="ignore"):
        yield from _undisguised(original, released, but)


def _undisguised(original: pl.DataFrame, released: pl.DataFrame, but: str | None) -> Iterator[Undisguised]:
    same = [name for name in original.columns if name in released.columns and name != but]
    read = {name: found for name in same if (found := _read(original[name], released[name])) is not None}
    rest = [name for name in same if name not in read]
    exchanged = _exchanged(
        original,
        released,
        [name for name in rest if _has_values(original[name]) and _has_values(released[name])],
    )
    guessed = {name: labels for name, labels in exchanged.items() if labels.sure.ne_missing(labels.all).any()}
    for sure in (True, False) if guessed else (True,):
        shown = {name: labels.sure if sure else labels.all for name, labels in exchanged.items()}
        back = read | {name: (values, "with its labels exchanged") for name, values in shown.items()}
        if back:
            frame = released.with_columns(values.alias(name) for name, (values, _) in back.items())
            yield Undisguised(
                frame, tuple(Disguise(name, name, how) for name, (_, how) in back.items()), sure
            )
    extra = [name for name in released.columns if name not in original.columns]
    if others := _under_other_names(original, released, extra):
        frame = released.with_columns(values.alias(name) for name, (_, values, _) in others.items())
        told = tuple(Disguise(name, other, how) for name, (other, _, how) in others.items())
        yield Undisguised(frame.drop(other for other, _, _ in others.values()), told)


def unexplained(original: pl.DataFrame, released: pl.DataFrame) -> list[str]:
    """Name the columns that only the release has and of which nobody can say from the files what they hold.

    A column that never varies says nothing about anybody, and one that another released column tells says nothing more.

    Examples
    --------
    >>> ages = pl.DataFrame({"age": [30, 31, 47, 30]})
    >>> unexplained(ages, ages.with_columns(band=pl.col("age") // 10, code=pl.Series([1, 2, 3, 4]), source=pl.lit("x")))
    ['code']
    """
    extra = [name for name in released.columns if name not in original.columns]
    known = {name: released[name].n_unique() for name in released.columns if name in original.columns}
    return [
        name
        for name in extra
        if not _has_values(released[name])
        or (
            released[name].drop_nulls().n_unique() > 1
            and not any(
                count < released.height and released.select(other, name).n_unique() == count
                for other, count in known.items()
            )
        )
    ]


def folded(values: pl.Series) -> pl.Series:
    """Write texts without case, accents, spaces and punctuation.

    Examples
    --------
    >>> folded(pl.Series(["São Paulo", "SAO-PAULO "])).to_list()
    ['saopaulo', 'saopaulo']
    """
    known = values.unique().drop_nulls()
    plain = [
        "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if c.isalnum()) for text in known
    ]
    return values.replace_strict(
        known, pl.Series(plain, dtype=pl.String), default=None, return_dtype=pl.String
    )


def _is_measured(values: pl.Series) -> bool:
    return values.dtype.is_numeric() or values.dtype in (pl.Date, pl.Datetime)


def _has_values(values: pl.Series) -> bool:
    """Whether a column holds numbers, dates or texts, and not lists or bytes."""
    odd = values.dtype.is_nested() or values.dtype in (pl.Binary, pl.Object, pl.Null)
    return not odd and values.null_count() < len(values)


def _read(ours: pl.Series, theirs: pl.Series) -> tuple[pl.Series, str] | None:
    """Read a released column in the writing of the original; None where it is written so already, or cannot be."""
    if not (_has_values(ours) and _has_values(theirs)):
        return None
    return _read_numbers(ours, theirs) if _is_measured(ours) else _read_texts(ours, theirs)


def _read_texts(ours: pl.Series, theirs: pl.Series) -> tuple[pl.Series, str] | None:
    texts, others = as_text(plain_text(ours)).rename("v"), as_text(plain_text(theirs)).rename("v")
    known = texts.drop_nulls()
    before = int(others.is_in(known.implode()).sum()) / max(len(others) - others.null_count(), 1)
    if before >= _KNOWN:
        return None
    levels, mapped = known.unique().sort(), pl.Series("v", [None] * len(others), dtype=pl.String)
    for fold in (_lowered, folded):
        spelling = pl.DataFrame({"v": levels, "f": fold(levels)})
        usual = spelling.group_by("f").agg(pl.col("v").first(), many=pl.len()).filter(pl.col("many") == 1)
        read = fold(others).replace_strict(usual["f"], usual["v"], default=None, return_dtype=pl.String)
        mapped = pl.DataFrame({"m": mapped, "r": read}).select(pl.coalesce("m", "r")).to_series()
    after = float(mapped.is_not_null().sum() / max(others.len() - others.null_count(), 1))
    if after <= before + 0.02:
        return None
    written = pl.DataFrame({"m": mapped, "v": others}).select(pl.coalesce("m", "v")).to_series()
    return written.rename(theirs.name), "in another spelling"


def _lowered(values: pl.Series) -> pl.Series:
    return values.str.strip_chars().str.to_lowercase()


def _numbers(values: pl.Series) -> pl.Series | None:
    """Read a column as numbers (days for dates); None where most of it is none."""
    plain = plain_text(values)
    if plain.dtype in (pl.Date, pl.Datetime):
        # Days, whether dates or times: a release may have cut the one to the other.
        return plain.cast(pl.Datetime("us"), strict=False).cast(pl.Int64).cast(pl.Float64) / 86_400e6
    if plain.dtype.is_numeric() or plain.dtype == pl.Boolean:
        return plain.cast(pl.Float64)
    text = as_text(plain).str.strip_chars()
    enough = 0.9 * (len(text) - text.null_count())
    bare = (
        text.str.extract(_NUMBER, 1)
        .str.replace_all(r"[ ,'](\d{3})", "$1")
        .str.replace(",", ".", literal=True)
    )
    read = bare.cast(pl.Float64, strict=False)
    dates = (text.str.to_date(pattern, strict=False) for pattern in _DATES)
    best = max(dates, key=lambda one: len(one) - one.null_count())
    if len(best) - best.null_count() >= enough:
        return _numbers(best)
    return read if len(read) - read.null_count() >= enough else None


def _finite(values: pl.Series | None) -> pl.Series | None:
    return None if values is None else values.set(~values.is_finite().fill_null(False), None)


def _read_numbers(ours: pl.Series, theirs: pl.Series) -> tuple[pl.Series, str] | None:
    numbers, others = _finite(_numbers(ours)), _finite(_numbers(theirs))
    if numbers is None or others is None:
        return None
    a, b = (np.unique(side.drop_nulls().to_numpy()) for side in (numbers, others))
    if len(a) < 3 or len(b) < 3:
        return None
    changes = [(1.0, 0.0), *_changes(a, b), *_straight(numbers, others)]
    hits = [_hits(a, (b - shift) / scale) for scale, shift in changes]
    best = int(np.argmax(hits))
    written = theirs.dtype.is_numeric() if ours.dtype.is_numeric() else theirs.dtype == ours.dtype
    x, y = (_some(side.drop_nulls().to_numpy()) for side in (numbers, others))
    apart = [_apart(x, (y - shift) / scale) for scale, shift in changes]
    far = apart[0]
    chance = max(hits[0], *(_hits(a, b - shift) for shift in _any_shifts(a, b)))
    exact = hits[best] > max(2 * chance + _FEWEST_HITS, _FEW_HITS * len(b))
    nearer = best if exact else int(np.argmin(apart))
    sure = 2 / np.sqrt(min(len(x), len(y)))
    if nearer and (
        exact or (apart[nearer] < far / 3 and far - apart[nearer] > sure and apart[nearer] < 2 * sure)
    ):
        scale, shift = changes[nearer]
        # What fits a number of the original but for the last digits is that number.
        read = _on_values(a, (others.to_numpy() - shift) / scale)
        return _written(read, ours).rename(theirs.name), "scaled or shifted"
    if far > 1 - _ALIKE + sure and len(a) > 20:
        place = others.rank("average").to_numpy() / max(len(others) - others.null_count(), 1)
        read = np.quantile(numbers.drop_nulls().to_numpy(), np.nan_to_num(np.clip(place, 0, 1)))
        return _written(np.where(np.isnan(place), np.nan, read), ours).rename(theirs.name), "by its ranks"
    return None if written else (_written(others.to_numpy(), ours).rename(theirs.name), "in another format")


def _written(numbers: Floats, ours: pl.Series) -> pl.Series:
    """Write numbers as a column of the original has them."""
    made = pl.Series(numbers, dtype=pl.Float64).fill_nan(None)
    if ours.dtype in (pl.Date, pl.Datetime):
        return (made * 86_400e6).round().cast(pl.Int64).cast(pl.Datetime("us")).cast(ours.dtype, strict=False)
    return made


def _straight(ours: pl.Series, theirs: pl.Series) -> list[tuple[float, float]]:
    """Lay a line through the quantiles of both, upwards and downwards: exact where everybody was copied."""
    at = np.linspace(0, 1, 101)
    x, y = (np.quantile(side.drop_nulls().to_numpy(), at, method="nearest") for side in (ours, theirs))
    lines = []
    for down in (y, y[::-1]):
        scale = float(((x - x.mean()) * (down - down.mean())).sum() / ((x - x.mean()) ** 2).sum())
        ends = float((down[-1] - down[0]) / (x[-1] - x[0]))
        lines += [(scale, float(down.mean() - scale * x.mean())), (ends, float(down[0] - ends * x[0]))]
    return [(scale, shift) for scale, shift in lines if np.isfinite(scale + shift) and scale]


def _changes(ours: Floats, theirs: Floats) -> list[tuple[float, float]]:
    """Find the shift and the factor that the most pairs of values agree on."""
    rng = np.random.default_rng([len(ours), len(theirs)])
    a, b = (
        side if len(side) <= _MOST_VALUES else np.sort(rng.choice(side, _MOST_VALUES, replace=False))
        for side in (ours, theirs)
    )
    found = [(1.0, _most_common(np.subtract.outer(b, a)))]
    if (a > 0).all() and (b > 0).all():
        found.append((float(np.exp(_most_common(np.subtract.outer(np.log(b), np.log(a))))), 0.0))
    return [change for change in found if change != (1.0, 0.0)]


def _any_shifts(ours: Floats, theirs: Floats) -> Floats:
    """Draw shifts that bring some value onto another: what one of them hits is chance."""
    rng = np.random.default_rng([len(theirs), len(ours)])
    return np.asarray(rng.choice(theirs, _SHIFTS) - rng.choice(ours, _SHIFTS))


def _most_common(gaps: Floats) -> float:
    size = float(np.abs(gaps).max()) or 1.0
    values, counts = np.unique(np.round(gaps.ravel() / size, 9), return_counts=True)
    return float(values[np.argmax(counts)]) * size


def _nearest(values: Floats, asked: Floats) -> Floats:
    place = np.clip(np.searchsorted(values, asked), 1, len(values) - 1)
    left, right = values[place - 1], values[place]
    return np.asarray(np.where(np.abs(asked - left) <= np.abs(right - asked), left, right))


def _close(values: Floats, asked: Floats) -> Flags:
    """Allow the rounding of both: a thousandth of the usual distance between values."""
    if len(values) < 2:
        return np.asarray(asked == values[0])
    gap = float(np.median(np.diff(values)))
    return np.asarray(np.abs(_nearest(values, asked) - asked) <= 1e-3 * gap + 1e-9 * np.abs(asked))


def _hits(values: Floats, asked: Floats) -> int:
    """Count how many values are among those of the original."""
    return int(_close(values, asked).sum())


def _on_values(values: Floats, asked: Floats) -> Floats:
    known = ~np.isnan(asked)
    read = asked.copy()
    hit = np.zeros_like(known)
    hit[known] = _close(values, asked[known])
    read[hit] = _nearest(values, asked[hit])
    return read


def _some(values: Floats) -> Floats:
    """Take some values of a long column at even distances: enough to see how it is spread."""
    return values[:: max(len(values) // _MOST_RECORDS, 1)]


def _apart(ours: Floats, theirs: Floats) -> float:
    """The largest distance of two distributions (Kolmogorov and Smirnov)."""
    both = np.concatenate([ours, theirs])
    places = [np.searchsorted(np.sort(side), both, "right") / len(side) for side in (ours, theirs)]
    return float(np.abs(places[0] - places[1]).max())


class _Labels(NamedTuple):
    """A column with its labels exchanged back: all of them, and those that any half of the records shows alike."""

    all: pl.Series
    sure: pl.Series


def _exchanged(original: pl.DataFrame, released: pl.DataFrame, names: Sequence[str]) -> dict[str, _Labels]:
    """Read labels that were exchanged one for one, by how often they occur and with which other values."""
    labels = [name for name in names if not _is_measured(original[name])]
    odd = [name for name in labels if _is_odd(original[name], released[name])]
    held = [name for name in names if name not in odd]
    read: dict[str, _Labels] = {}
    halves = [np.arange(released.height) % 2 == half for half in (0, 1)]
    for name in odd:
        ours, theirs = (as_text(plain_text(side[name])) for side in (original, released))
        parts = [(theirs, released), *((theirs.filter(half), released.filter(half)) for half in halves)]
        pairs, *others = [
            _by_profile(ours, part, original.select(held), beside.select(held)) for part, beside in parts
        ]
        sure = {label: known for label, known in pairs.items() if all(o.get(label) == known for o in others)}
        read[name] = _Labels(*(theirs.replace(known).rename(name) for known in (pairs, sure)))
    return read


def _shares(values: pl.Series) -> dict[str | None, float]:
    counted = values.rename("v").value_counts()
    return dict(zip(counted["v"], counted["count"] / len(values), strict=True))


def _is_odd(ours: pl.Series, theirs: pl.Series) -> bool:
    """Whether labels fit far better when they are put in the order of how often they occur."""
    a, b = (_shares(as_text(plain_text(side))) for side in (ours, theirs))
    if not 1 < len(a) <= _MOST_LEVELS or abs(len(a) - len(b)) > 0.1 * len(a):
        return False
    as_named = sum(min(share, b.get(label, 0.0)) for label, share in a.items())
    in_order = sum(map(min, sorted(a.values(), reverse=True), sorted(b.values(), reverse=True)))
    luck = float(np.sqrt(len(a) / min(len(ours), len(theirs))))
    return as_named < min(_ALIKE, 1 - 2 * luck) and in_order > as_named + 0.1 + luck


def _by_profile(
    ours: pl.Series, theirs: pl.Series, beside: pl.DataFrame, beside_theirs: pl.DataFrame
) -> dict[str, str]:
    """Map each released label to the one of the original that is as frequent and stands beside the same values."""
    profiles = [_profile(side, others, beside) for side, others in ((ours, beside), (theirs, beside_theirs))]
    (labels, mine), (others, their) = profiles
    # A number of the original that became bands has a mean on one side only.
    both = [name for name in mine.columns if name in their.columns]
    first, second = (side.select(both).to_numpy().astype(np.float64) for side in (mine, their))
    cost = np.abs(first[:, None, :] - second[None, :, :]).sum(axis=2)
    rows, columns = linear_sum_assignment(cost)
    return {others[column]: labels[row] for row, column in zip(rows, columns, strict=True)}


def _profile(labels: pl.Series, beside: pl.DataFrame, like: pl.DataFrame) -> tuple[list[str], pl.DataFrame]:
    """Give each label its share, weighted most, and the means or commonest values that stand beside it."""
    known = labels.drop_nulls().unique().sort().to_list()
    frame = beside.with_columns(labels.alias("·label"))
    parts = [pl.len().cast(pl.Float64).alias("·share") / len(labels) * 4]
    for name in beside.columns:
        if _is_measured(like[name]) and beside.schema[name].is_numeric():
            spread = float(np.nanstd(like[name].cast(pl.Float64, strict=False).to_numpy())) or 1.0
            parts.append((pl.col(name).cast(pl.Float64).mean() / spread).alias(name))
        elif not _is_measured(like[name]):
            top = like[name].drop_nulls().mode().sort()
            if len(top):
                parts.append((pl.col(name).cast(pl.String) == str(top[0])).mean().alias(name))
    made = pl.DataFrame({"·label": known}, schema={"·label": pl.String}).join(
        frame.group_by("·label").agg(parts), on="·label", how="left", maintain_order="left"
    )
    return known, made.drop("·label").cast(pl.Float64).fill_null(0).fill_nan(0)


def _under_other_names(
    original: pl.DataFrame, released: pl.DataFrame, extra: Sequence[str]
) -> dict[str, tuple[str, pl.Series, str]]:
    """Find for columns that only the release has the column of the original whose values they hold."""
    offers: list[tuple[float, str, str, pl.Series, str]] = []
    for other in extra:
        for name in original.columns:
            ours, theirs = original[name], released[other]
            if not (_has_values(ours) and _has_values(theirs)):
                continue
            read = _read(ours, theirs)
            values, how = (theirs, "") if read is None else read
            alike = 0.0 if how == "by its ranks" else _overlap(ours, values)
            if alike >= _ALIKE:
                offers.append((alike, name, other, values, how))
    found: dict[str, tuple[str, pl.Series, str]] = {}
    for _, name, other, values, how in sorted(offers, key=lambda offer: -offer[0]):
        if name not in found and other not in {taken for taken, _, _ in found.values()}:
            found[name] = other, values, how
    return found


def _overlap(ours: pl.Series, theirs: pl.Series) -> float:
    """Say how much two columns have in common: of their distributions, where they are of one kind."""
    if _is_measured(ours):
        sides = [_numbers(side) for side in (ours, theirs)]
        if any(side is None or side.null_count() == len(side) for side in sides):
            return 0.0
        x, y = (_some(side.drop_nulls().to_numpy()) for side in sides if side is not None)
        return 1 - _apart(x, y) if _close(np.unique(x), y).mean() >= _SAME else 0.0
    if _is_measured(theirs):
        return 0.0
    a, b = (_shares(as_text(plain_text(side))) for side in (ours, theirs))
    return sum(min(share, b.get(label, 0.0)) for label, share in a.items())
