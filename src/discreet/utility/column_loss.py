"""How much of one column is lost? A share between 0 (unchanged) and 1 (nothing is left of it).

What a released cell loses is, roughly, the share of the people with other values from whom its person can no longer
be told apart:

- a *label* (a band, a group of categories) loses the share of those people whose value the label also covers;
- a *number* that was moved loses four times the share of people it passed on its way: as much as a band in which
  values lie just as far from the middle;
- a *wrong category* loses everything, and the right ones a little, because one cannot know which are right;
- a suppressed cell, a removed record and a value invented for a gap lose everything.

The first three agree where they meet: rounding to fives costs about as much as bands of five.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.errors import ColumnError
from discreet.engine.comparable import distinct_values
from discreet.hierarchy import Hierarchy
from discreet.microdata import Microdata
from discreet.numerics import loss
from discreet.utility.linked_files import LinkedFiles

Kind = Literal["number", "bands", "category"]

_BINS = 64
_MOST_CELLS = 20_000_000
_QUANTILES = 10_000


@dataclass(frozen=True, eq=False)
class Known:
    """The different known numbers of a column, in order, and how many records have each."""

    values: Floats
    counts: Integers

    @classmethod
    def of(cls, values: Floats) -> Known:
        """Count the numbers of a column."""
        return cls(*np.unique(values, return_counts=True))

    @cached_property
    def records(self) -> int:
        """How many records have a number."""
        return int(self.counts.sum())

    @cached_property
    def _below(self) -> Integers:
        return np.append(0, np.cumsum(self.counts))

    def below(self, values: Floats) -> Integers:
        """Count the records below each value."""
        return self._below[np.searchsorted(self.values, values, "left")]

    def up_to(self, values: Floats) -> Integers:
        """Count the records up to each value."""
        return self._below[np.searchsorted(self.values, values, "right")]

    def places(self, values: Floats, *, own: bool) -> tuple[Floats, Floats]:
        """Count the records below each value, and those up to it; ``own`` says that they are numbers of the column."""
        return self.below(values).astype(np.float64), self.up_to(values).astype(np.float64)

    def at(self, ranks: Integers) -> Floats:
        """Give the numbers at some places, the first being 0."""
        return self.values[np.searchsorted(self._below[1:], ranks, "right")]


def comparable_kind(
    ours: pl.Series, theirs: pl.Series, *, category: bool = False
) -> tuple[Kind, pl.Series, pl.Series]:
    """Decide how a column is compared, and bring both files to what that needs: numbers or text."""
    if not category and _has_order(ours):
        if theirs.dtype == pl.String and ours.dtype.is_numeric() and _reads_as_numbers(theirs):
            return "number", _numbers(ours), theirs.cast(pl.Float64)
        if theirs.dtype == pl.Null:
            return "number", _numbers(ours), theirs.cast(pl.Float64)
        if ours.dtype.is_numeric() and theirs.dtype.is_numeric():
            return "number", _numbers(ours), _numbers(theirs)
        if ours.dtype.is_temporal() and theirs.dtype.is_temporal():
            if ours.dtype != theirs.dtype and pl.Time not in (ours.dtype, theirs.dtype):
                ours, theirs = ours.cast(pl.Datetime("us")), theirs.cast(pl.Datetime("us"))
            return "number", _numbers(ours), _numbers(theirs)
        return "bands", _numbers(ours), engine.as_text(engine.plain_text(theirs))
    return "category", engine.as_text(engine.plain_text(ours)), engine.as_text(engine.plain_text(theirs))


def linked_loss(kind: Kind, ours: pl.Series, theirs: pl.Series, gone: Flags, same: Flags) -> float:
    """Average what the cells of one column lose, record by record.

    Parameters
    ----------
    kind, ours, theirs
        As `comparable_kind` gave them, one row an original record.
    gone
        True for removed records.
    same
        True where the two cells are equal as they stand in the files.
    """
    if same.all():
        return 0.0
    known, shown = ours.is_not_null().to_numpy(), theirs.is_not_null().to_numpy()
    lost = int((gone | (known != shown)).sum())
    both = known & shown & ~gone
    if not both.any():
        return lost / len(gone)
    values, released = ours.drop_nulls(), theirs.filter(pl.Series(both))
    if kind == "number":
        moved = pl.Series(both & ~same)
        x, y = ours.filter(moved).to_numpy(), theirs.filter(moved).to_numpy()
        partly = float(moved_loss(Known.of(values.to_numpy()), x, y).sum()) if len(x) else 0.0
    elif kind == "bands":
        moved = pl.Series(both & ~same)
        pairs = _counted(ours.filter(moved), theirs.filter(moved))
        partly = banded_loss(Known.of(values.to_numpy()), pairs)
    else:
        own = values.rename("x").value_counts(name="own")
        partly = recoded_loss(own, _counted(ours.filter(pl.Series(both)), released))
    return (lost + partly) / len(gone)


def unlinked_loss(kind: Kind, ours: pl.Series, theirs: pl.Series, removed: float) -> float:
    """Give the least loss of one column that two samples, not linked record by record, allow for.

    ``removed`` is the share of records that the release has lost.
    """
    share, shown = _known_share(ours), _known_share(theirs)
    if share == 0:
        return removed
    gap = max(0.0, share - shown) / share
    x, y = ours.drop_nulls(), theirs.drop_nulls()
    if y.is_empty():
        apart = 0.0
    elif kind == "number":
        steps = min(_QUANTILES, max(len(x), len(y)))
        levels = (np.arange(steps) + 0.5) / steps
        known, other = Known.of(x.to_numpy()), np.sort(y.to_numpy())
        at = known.at((levels * known.records).astype(np.int64))
        apart = float(moved_loss(known, at, other[(levels * len(other)).astype(np.int64)]).mean())
    else:
        apart = _apart(x, y, labels_are_new=kind == "bands")
    return min(1.0, removed + (1 - removed) * (gap + (1 - gap) * apart))


def moved_loss(known: Known, before: Floats, after: Floats) -> Floats:
    """Cost of numbers that moved, from the share of all records between the two places."""
    low_before, high_before = known.places(before, own=True)
    low_after, high_after = known.places(after, own=False)
    own, met = high_before - low_before, high_after - low_after
    between = np.where(after > before, low_after - high_before, low_before - high_after)
    # A value that nobody has is taken for no other person's; one that somebody has is midway among its owners.
    passed = between + np.where(met > 0, (own + met) / 2, 0.5)
    cost: Floats = np.minimum(1.0, 4 * passed / known.records) * (before != after)
    return cost


def _counted(before: pl.Series, after: pl.Series) -> pl.DataFrame:
    return pl.DataFrame({"x": before, "y": after}).group_by("x", "y").agg(count=pl.len())


def banded_loss(known: Known, pairs: pl.DataFrame) -> float:
    """Cost of numbers that became labels: the share of people with other numbers under the same label.

    ``pairs`` has the number ``x``, the label ``y`` and the ``count`` of the cells that are not the same as they were.
    """
    if pairs.is_empty():
        return 0.0
    pairs = pairs.sort("x", "y")
    codes = pairs["y"].rank("dense").to_numpy().astype(np.int64) - 1
    x, count = pairs["x"].to_numpy(), pairs["count"].to_numpy().astype(np.float64)
    runs = np.flatnonzero(np.diff(codes, prepend=-1))
    if len(np.unique(x)) < len(x) or len(runs) > codes.max() + 1:
        return _overlapping(known, x, codes, count)
    # A number all of whose cells are suppressed may belong to the band below it or to the one above: to both,
    # so that suppression never makes a band look narrower.
    last = np.append(runs[1:], len(x)) - 1
    begin = np.append(-np.inf, x[last[:-1]])
    end = np.append(x[runs[1:]], np.inf)
    under = known.below(end) - known.up_to(begin)
    own = known.up_to(x) - known.below(x)
    covered = under[np.cumsum(np.isin(np.arange(len(x)), runs)) - 1] - own
    return float((count * covered / np.maximum(known.records - own, 1)).sum())


def _overlapping(known: Known, x: Floats, codes: Integers, count: Floats) -> float:
    """Cost of labels that overlap: a number counts under a label by how readily it is shown as that label."""
    labels = int(codes.max()) + 1
    bins = max(4, min(_BINS, _MOST_CELLS // labels))
    edges = np.unique(known.at((np.arange(1, bins) * known.records) // bins))
    of_x, size = np.searchsorted(edges, x, "right"), len(edges) + 1
    people = np.bincount(
        np.searchsorted(edges, known.values, "right"), weights=known.counts, minlength=size
    ).astype(np.float64)
    shown = np.zeros((size, labels))
    np.add.at(shown, (of_x, codes), count)
    counts = shown.copy()
    shown /= np.maximum(shown.sum(axis=1, keepdims=True), 1.0)
    shown /= shown.max(axis=0, keepdims=True)
    # Between two numbers under a label all others are under it, too.
    fits = np.minimum(np.maximum.accumulate(shown, axis=0), np.maximum.accumulate(shown[::-1], axis=0)[::-1])
    others = (people @ fits)[None, :] - people[:, None] * fits
    covered = others / np.maximum(known.records - people, 1.0)[:, None]
    return float((counts * (fits * covered + 1 - fits)).sum())


def recoded_loss(own: pl.DataFrame, pairs: pl.DataFrame) -> float:
    """Cost of categories: by how readily each of the other values is shown under the same label.

    ``own`` has every known value ``x`` and how many records have it (``own``); ``pairs`` the value ``x``, the label
    ``y`` and the ``count`` of the cells that are known before and after.
    """
    n = float(own["own"].sum())
    pairs = pairs.join(own, on="x")
    new = ~pairs["y"].is_in(own["x"].implode())
    own_count, count = pairs["own"].to_numpy(), pairs["count"].to_numpy().astype(np.float64)
    shown = (pl.col("count") / pl.col("count").sum().over("x")).alias("shown")
    pairs = pairs.with_columns(shown).with_columns(most=pl.col("shown").max().over("y"))
    fits = (pairs["shown"] / pairs["most"]).to_numpy()
    # A value all of whose cells are suppressed may be under any label, unless the label is a value itself.
    orphans = n - float(own.filter(pl.col("x").is_in(pairs["x"].implode()))["own"].sum())
    reach = (
        pairs.with_columns(part=own_count * fits)
        .select(pl.col("part").sum().over("y"))
        .to_series()
        .to_numpy()
    )
    reach = reach + orphans * new.to_numpy()
    covered = (reach - own_count * fits) / np.maximum(n - own_count, 1.0)
    # One record alone does not show that a value is usually told as another one: it may have been swapped.
    grouped = pairs["x"].n_unique() == pairs.height and pairs["y"].n_unique() < pairs.height
    changed = (pairs["x"] != pairs["y"]).to_numpy() & ~new.to_numpy() & (not grouped)
    trusted = np.where(changed, fits * (count - 1) / count, fits)
    return float((count * (trusted * covered + 1 - trusted)).sum())


def _apart(x: pl.Series, y: pl.Series, *, labels_are_new: bool) -> float:
    """Least loss between two samples of categories: what must have moved, and how much new labels cover."""
    p = (x.unique_counts() / len(x)).to_numpy()
    alone = float((p**2).sum())
    if labels_are_new:
        q, new = (y.unique_counts() / len(y)).to_numpy(), None
    else:
        both = (
            x.rename("v")
            .value_counts(name="a")
            .join(y.rename("v").value_counts(name="b"), on="v", how="full", coalesce=True)
        )
        before = (both["a"].fill_null(0) / len(x)).to_numpy()
        after = (both["b"].fill_null(0) / len(y)).to_numpy()
        new = before == 0
        q = after[new]
    moved = 0.0 if new is None else max(0.0, float(np.maximum(before - after, 0).sum()) - float(q.sum()))
    covered = np.maximum(0.0, q - alone) / (1 - alone) if alone < 1 else np.zeros_like(q)
    return min(1.0, moved + float((q * covered).sum()))


def _has_order(values: pl.Series) -> bool:
    return values.dtype.is_numeric() or values.dtype.is_temporal()


def _numbers(values: pl.Series) -> pl.Series:
    return (values.to_physical() if values.dtype.is_temporal() else values).cast(pl.Float64)


def _reads_as_numbers(text: pl.Series) -> bool:
    return bool((text.cast(pl.Float64, strict=False).is_null() == text.is_null()).all())


def _known_share(values: pl.Series) -> float:
    return 1 - values.null_count() / len(values)


# How coarse did the keys become? Losses of classes and of generalized cells, by `discreet.numerics.loss`.


Figures = dict[str, float | None]


def class_losses(
    original: Microdata, released: Microdata, keys: Sequence[str], target: str | None, removed: int
) -> tuple[Figures, list[str]]:
    """Say who can no longer be told apart on the keys, and how well the classes still predict the target."""
    names = (
        "discernibility",
        "discernibility_original",
        "average_class_size",
        "average_class_size_original",
        "misclassification",
        "misclassification_original",
    )
    found: Figures = dict.fromkeys(names)
    there = [key for key in keys if key in released.schema]
    if not there:
        return found, ["No keys were named (or none was released), so losses of classes are undefined."]
    original, released = _by_record(original), _by_record(released)
    sizes, before = _sizes(released, there), _sizes(original, there)
    found["discernibility"] = loss.discernibility(sizes, removed)
    found["discernibility_original"] = loss.discernibility(before)
    found["average_class_size"] = float(sizes.mean())
    found["average_class_size_original"] = float(before.mean())
    if target is None or target not in released.schema:
        return found, []
    for name, data in (("misclassification", released), ("misclassification_original", original)):
        profile = engine.attribute_profile(data, there, target)
        largest = (profile["top_share"] * profile["class_size"]).to_numpy()
        rows, silent = int(profile["class_size"].sum()), engine.class_counts(data, there, target).outside
        if silent is not None:
            largest, rows = np.append(largest, silent.max()), rows + int(silent.sum())
        found[name] = loss.classification_loss(largest, rows + (removed if data is released else 0))
    return found, []


def _by_record(data: Microdata) -> Microdata:
    """What a file has lost is counted in its records, whoever they belong to."""
    return data if engine.counted_unit(data) is None else data.with_roles(person=None, contributor=None)


def _sizes(data: Microdata, keys: Sequence[str]) -> Integers:
    """Count the records of each class; those without a known key cannot be told apart and are one more."""
    sizes = engine.class_table(data, keys)["records"].to_numpy()
    silent = engine.all_suppressed(data, keys)
    return np.append(sizes, silent) if silent else sizes


def cell_losses(
    files: LinkedFiles, keys: Sequence[str], hierarchies: Mapping[str, Hierarchy]
) -> tuple[Figures, list[str]]:
    """Say how much the labels of linked records cover: normalized entropy, granularity, intensity."""
    found: Figures = dict.fromkeys(("normalized_entropy", "granularity", "generalization_intensity"))
    there = [key for key in keys if key in files.kept]
    if not there or not files.aligned:
        return found, []
    for name in hierarchies:
        if name not in files.columns:
            raise ColumnError(f"hierarchies names '{name}', which is not among the compared columns.")
    altered = [key for key in there if not files.same[key].all()]
    values = {key: _codes(files.original[key]) for key in altered}
    labels = {key: _codes(files.released[key], gaps=True) for key in altered}
    bits = [loss.normalized_entropy([values[key]], [labels[key]]) for key in altered]
    found["normalized_entropy"] = float(sum(bits)) / len(there)
    climbed = {key: _levels(files, key, hierarchies[key]) for key in there if key in hierarchies}
    shares = [
        _shares(files.original[key], hierarchies[key], climbed[key])
        if key in hierarchies
        else _seen_shares(values[key], labels[key])
        if key in altered
        else _own_shares(files.original[key])
        for key in there
    ]
    found["granularity"] = loss.coverage(np.column_stack(shares))
    caveats = []
    if climbed:
        intensity = [np.where(np.isnan(up), 1.0, up / hierarchies[key].height) for key, up in climbed.items()]
        found["generalization_intensity"] = float(np.mean([part.mean() for part in intensity]))
        strange = [
            key
            for key, up in climbed.items()
            if (np.isnan(up) & files.released[key].is_not_null().to_numpy()).any()
        ]
        if strange:
            caveats.append(
                f"Some released labels of {', '.join(map(repr, strange))} are on no level of the hierarchy; they count "
                "as fully generalized."
            )
    else:
        caveats.append("Generalization intensity needs hierarchies={column: Hierarchy} and is undefined.")
    return found, caveats


def _codes(values: pl.Series, *, gaps: bool = False) -> Integers:
    codes = distinct_values(engine.plain_text(values))[1]
    return np.where(values.is_null().to_numpy(), -1, codes) if gaps else codes


def _own_shares(values: pl.Series) -> Floats:
    """Share of the distinct values of the file that each record's own value is."""
    return np.where(values.is_null().to_numpy(), np.nan, 1 / max(1, values.n_unique()))


def _seen_shares(values: Integers, labels: Integers) -> Floats:
    """Share of the distinct values of the file that each record's label stands for."""
    shown = labels >= 0
    pairs = pl.DataFrame({"x": values[shown], "y": labels[shown]}).unique()
    covered = np.bincount(pairs["y"].to_numpy(), minlength=int(labels.max(initial=0)) + 1)
    share = covered[np.maximum(labels, 0)] / (values.max() + 1)
    return np.where(shown, share, np.nan)


def _levels(files: LinkedFiles, key: str, hierarchy: Hierarchy) -> Floats:
    """Find for each record the lowest level at which its value has the released label; NaN where there is none."""
    pairs = pl.DataFrame(
        {"x": files.original[key], "y": engine.as_text(engine.plain_text(files.released[key]))}
    )
    distinct = pairs.unique()
    level = pl.Series(np.full(distinct.height, np.nan))
    for step in reversed(range(hierarchy.height + 1)):
        label = engine.as_text(engine.plain_text(hierarchy.generalize(distinct["x"], step)))
        level = pl.select(pl.when(label.eq(distinct["y"])).then(float(step)).otherwise(level)).to_series()
    found = pairs.join(
        distinct.with_columns(level=level), on=["x", "y"], how="left", nulls_equal=True, maintain_order="left"
    )
    levels: Floats = found["level"].to_numpy()
    return levels


def _shares(values: pl.Series, hierarchy: Hierarchy, levels: Floats) -> Floats:
    share = np.full(len(levels), np.nan)
    for step in np.unique(levels[~np.isnan(levels)]):
        at = levels == step
        share[at] = hierarchy.leaf_share(values, int(step)).cast(pl.Float64).to_numpy()[at]
    return share
