"""How coarse did the keys become? Losses of classes and of generalized cells, by `discreet.numerics.loss`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ColumnError
from discreet.engine.comparable import as_text, distinct_values, plain_text
from discreet.hierarchy import Hierarchy
from discreet.microdata import Microdata
from discreet.numerics import loss
from discreet.utility.linked_files import LinkedFiles

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
    codes = distinct_values(plain_text(values))[1]
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
    pairs = pl.DataFrame({"x": files.original[key], "y": as_text(plain_text(files.released[key]))})
    distinct = pairs.unique()
    level = pl.Series(np.full(distinct.height, np.nan))
    for step in reversed(range(hierarchy.height + 1)):
        label = as_text(plain_text(hierarchy.generalize(distinct["x"], step)))
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
