"""The arithmetic of attribution on counted cells: how often is a guess of the target right?

Every function works on `JointCounts`; the record-level averages of the literature are sums over cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Array, Flags, Floats, Integers

Unmatched = Literal["exclude", "zero", "nearest"]
Guess = Literal["proportional", "majority"]

_ENOUGH = 30  # people with company who tell what is guessed of those without


@dataclass(frozen=True)
class CellScores:
    """What an intruder gets right in each cell.

    Attributes
    ----------
    hits_original, size_original
        Original records of the class whose target counts as equal to that of the cell, and all of them.
    hits_released, size_released
        The same among the released records an intruder would look at.
    hits_own
        Released records of the class that agree with a *released* record of the cell (for WEAP).
    matched
        Whether there are released records to look at.
    """

    hits_original: Integers
    size_original: Integers
    hits_released: Integers
    size_released: Integers
    hits_own: Integers
    matched: Flags


def cell_scores(
    joint: engine.JointCounts, *, tolerance: float | None = None, nearest: bool = False
) -> CellScores:
    """Count, for every cell, the records that agree with it in both files."""
    owners = joint.owners
    countable = joint.value_inside[joint.values] & joint.class_inside[owners]
    if tolerance is None:
        ours, theirs = joint.original, joint.released
    else:
        ours = within_tolerance(joint, joint.original, tolerance)
        theirs = within_tolerance(joint, joint.released, tolerance)
    size_released = np.where(joint.class_inside, joint.class_released, 0)[owners]
    hits_released = np.where(countable, theirs, 0)
    if nearest:
        found, size = _nearest(joint, tolerance)
        alone = size_released == 0
        hits_released = np.where(alone & countable, found, hits_released)
        size_released = np.where(alone, size, size_released)
    return CellScores(
        hits_original=np.where(countable, ours, 0),
        size_original=joint.class_original[owners],
        hits_released=hits_released,
        size_released=size_released,
        hits_own=theirs,
        matched=size_released > 0,
    )


def within_tolerance(joint: engine.JointCounts, counts: Integers, tolerance: float) -> Integers:
    """Count, for every cell, the records of its class whose target is at most ``tolerance`` away.

    One sorted list and two searches in it: no pairs are formed. A missing target agrees with missing only.
    """
    numbers = joint.value_labels["s0"].cast(pl.Float64).to_numpy()[joint.values]
    known = ~np.isnan(numbers)
    levels = np.unique(numbers[known])
    if not len(levels):
        return counts
    # Differences of decimal numbers carry rounding noise; 48.01 - 48 must not miss a tolerance of 0.01.
    reach = tolerance * (1 + 1e-9) + 1e-12 * float(np.abs(levels).max())
    span = len(levels) + 1
    order = np.lexsort((numbers, joint.owners))
    order = order[known[order]]
    listed = joint.owners[order] * span + np.searchsorted(levels, numbers[order])
    running = np.concatenate([[0], np.cumsum(counts[order])])
    low = joint.owners * span + np.searchsorted(levels, np.where(known, numbers, 0) - reach, side="left")
    high = joint.owners * span + np.searchsorted(levels, np.where(known, numbers, 0) + reach, side="right")
    hits = running[np.searchsorted(listed, high)] - running[np.searchsorted(listed, low)]
    return np.where(known, hits, counts).astype(np.int64)


def chances(joint: engine.JointCounts, scores: CellScores, guess: Guess) -> Floats:
    """Give the chance that the guess is right in each cell; not a number where there is nothing to guess from."""
    if guess == "majority":
        peak = np.zeros(joint.class_labels.height, dtype=np.int64)
        np.maximum.at(peak, joint.owners, joint.released)
        top = (joint.released == peak[joint.owners]) & (joint.released > 0)
        ties = np.bincount(joint.owners[top], minlength=len(peak))[joint.owners]
        right = top & (scores.hits_released > 0)
        return _ratio(right.astype(np.float64), np.where(scores.matched, ties, 0))
    return _ratio(scores.hits_released, scores.size_released)


def own_chances(scores: CellScores) -> Floats:
    """Give the chance of a right guess in each cell if the original file itself were released."""
    return _ratio(scores.hits_original, scores.size_original)


def chances_by_others(joint: engine.JointCounts, scores: CellScores, guess: Guess) -> Floats:
    """Give the chance that the other people of the class tell a person's target; not a number where there are none.

    It is the same guess, made from the original without the person: right about people whom nobody used, too.
    """
    others = scores.size_original - 1
    if guess == "proportional":
        return _ratio(np.maximum(scores.hits_original - 1, 0), others)
    classes = joint.class_labels.height
    most, second = np.zeros((2, classes), dtype=np.int64)
    np.maximum.at(most, joint.owners, joint.original)
    leads = joint.original == most[joint.owners]
    np.maximum.at(second, joint.owners, np.where(leads, 0, joint.original))
    rival = second[joint.owners]
    follows = np.bincount(joint.owners[joint.original == rival], minlength=classes)[joint.owners]
    alone = leads & (np.bincount(joint.owners[leads], minlength=classes)[joint.owners] == 1)
    left = joint.original - 1
    right = np.where(left > rival, 1.0, np.where(left == rival, 1 / (1 + follows), 0.0))
    return np.where(others > 0, np.where(alone & (scores.hits_original > 0), right, 0.0), np.nan)


def by_chance(
    joint: engine.JointCounts, scores: CellScores, others: Floats, blind: float
) -> tuple[Floats, float]:
    """Give what is guessed right in each cell if the release were new people, and how much that differs by chance.

    Of people with company in their class the others tell it. Those alone whom new people meet are in classes like those
    that two people share (as Good and Turing reckon with the unseen), and so the smallest classes with company tell it
    of them; where nobody has company, or only like people are looked up, a blind guess does. The second is the standard
    error of the mean over those who can be looked up, a bound: pairs of people agree or do not.
    """
    counted, size = np.where(joint.original > 0, joint.mass, 0.0), scores.size_original
    company = ~np.isnan(others)
    people = np.cumsum(np.bincount(size[company], weights=joint.original[company], minlength=3))
    small = company & (size <= np.searchsorted(people, min(_ENOUGH, people[-1])))
    told = float(joint.original[small].sum())
    lonely = float((others * counted)[small].sum() / counted[small].sum()) if told else blind
    usual = np.where(company, np.nan_to_num(others), lonely)
    met = scores.matched & (joint.class_released[joint.owners] > 0)
    usual = np.where(met, usual, blind)
    mass = np.bincount(joint.owners, weights=counted * scores.matched, minlength=joint.class_labels.height)
    total = mass.sum()
    if not total:
        return usual, 0.0
    ours, theirs = np.maximum(joint.class_original, 1), np.maximum(joint.class_released, 1)
    unsure = mass**2 * (1 / np.minimum(ours, theirs) + np.where(ours > 1, 2 / ours, 0.0))
    alone = float(mass[ours == 1].sum())
    spread = unsure.sum() + (2 * alone**2 / told if told else 0.0)
    # A share that few tell may be any: one right and one wrong are added to what was seen, and to the pairs.
    careful = np.where(company, usual, (lonely * told / 2 + 1) / (told / 2 + 2))
    seen = float(joint.original[scores.matched].sum())
    share = (float((careful * counted)[scores.matched].sum()) / total * seen + 1) / (seen + 2)
    return usual, float(np.sqrt(share * (1 - share) * spread) / total)


def target_baseline(joint: engine.JointCounts, tolerance: float | None = None) -> float:
    """Give the chance that two people of the original agree on the target: guessing without any key."""
    totals = _value_mass(joint)
    shares = totals / totals.sum()
    if tolerance is None:
        return float((shares**2)[joint.value_inside].sum())
    numbers = joint.value_labels["s0"].cast(pl.Float64).to_numpy()
    order = np.argsort(numbers)
    numbers, ordered = numbers[order], shares[order]
    known = ~np.isnan(numbers)
    running = np.concatenate([[0.0], np.cumsum(ordered[known])])
    levels = numbers[known]
    reach = tolerance * (1 + 1e-9)
    near = (
        running[np.searchsorted(levels, levels + reach, "right")]
        - running[np.searchsorted(levels, levels - reach)]
    )
    return float((ordered[known] * near).sum() + (ordered[~known] ** 2).sum())


def summary(
    joint: engine.JointCounts,
    scores: CellScores,
    chance: Floats,
    *,
    unmatched: Unmatched,
    baseline: str,
    tolerance: float | None,
) -> dict[str, Any]:
    """Add the cells up to the figures of one target."""
    occupied = joint.original > 0
    mass = np.where(occupied, joint.mass, 0.0)
    matched = scores.matched
    everyone, linked = mass.sum(), mass[matched].sum()
    people = linked if unmatched == "exclude" else everyone
    own = np.nan_to_num(own_chances(scores))
    plain = np.nan_to_num(_ratio(scores.hits_released, scores.size_released))
    over = matched if baseline == "matched" else np.ones_like(matched)
    cap_original = _mean(own, mass * over)
    cap_released = _share((np.nan_to_num(chance) * mass).sum(), people) if linked else None
    sure = matched & (scores.hits_released == scores.size_released) & (scores.hits_released > 0)
    compared = occupied & matched & joint.value_inside[joint.values]
    difference = (own - np.nan_to_num(chance))[compared]
    seen = matched & joint.class_inside[joint.owners] & ((joint.original > 0) | (joint.released > 0))
    raw = np.where(occupied, np.nan_to_num(chance), 0.0) - np.where(occupied, own, 0.0)
    return {
        "cap_original": cap_original,
        "cap_released": cap_released,
        "dcap": _share((plain * mass).sum(), people) if linked else None,
        "tcap": _share(mass[sure].sum(), people) if linked else None,
        **_weap(joint, scores, mass, sure, unmatched),
        "gain": None if cap_released is None or cap_original is None else cap_original - cap_released,
        "worst_gain": float(difference.min()) if len(difference) else None,
        "cap_change": None if cap_released is None or cap_original is None else cap_released - cap_original,
        "cap_min": float(raw[seen].min()) if seen.any() else None,
        "cap_within_released": _mean(
            np.nan_to_num(_ratio(scores.hits_own, joint.class_released[joint.owners])),
            joint.released.astype(np.float64),
        ),
        "baseline": target_baseline(joint, tolerance),
        "baseline_majority": float(_value_mass(joint).max() / _value_mass(joint).sum()),
        "matched_share": _share(linked, everyone),
        "matched_records": int(joint.original[matched].sum()),
    }


def _weap(
    joint: engine.JointCounts, scores: CellScores, mass: Floats, sure: Flags, unmatched: Unmatched
) -> dict[str, Any]:
    """Follow Taub and Elliot: how sure a released record looks (WEAP), and how often that is true (TCAP)."""
    size = joint.class_released[joint.owners]
    certain = (joint.released > 0) & (scores.hits_own == size)
    known = certain & (scores.size_original > 0)
    over = known if unmatched == "exclude" else certain
    truth = np.nan_to_num(own_chances(scores))
    classes = np.zeros(joint.class_labels.height, dtype=bool)
    classes[joint.owners[certain]] = True
    right = np.zeros_like(classes)
    right[joint.owners[certain & (truth == 1)]] = True
    apparent = mass[classes[joint.owners]].sum()
    return {
        "tcap_released": _mean(truth, joint.released * over),
        "tcap_conditional": _share(mass[sure & classes[joint.owners]].sum(), apparent),
        "tcap_ratio": _share(float(right.sum()), float(classes.sum())),
        "weap_share": _share(float(joint.released[certain].sum()), float(joint.released.sum())),
    }


def _nearest(joint: engine.JointCounts, tolerance: float | None) -> tuple[Integers, Integers]:
    """Look up, for cells whose keys nobody released has, the released records that differ in the fewest keys.

    Released records at distance d agree on exactly one set of K - d keys, so summing over those sets counts
    each once; no pair of classes is formed.
    """
    names = joint.class_labels.columns
    released = joint.released > 0
    source = joint.class_labels[joint.owners[released]].with_columns(
        v=pl.Series(joint.values[released]), n=pl.Series(joint.released[released])
    )
    hits = np.zeros(len(joint.owners), dtype=np.int64)
    sizes = np.zeros(joint.class_labels.height, dtype=np.int64)
    waiting = (joint.class_original > 0) & (np.where(joint.class_inside, joint.class_released, 0) == 0)
    for distance in range(1, len(names) + 1):
        found = np.zeros_like(sizes)
        for kept in combinations(names, len(names) - distance):
            at, cell_hits, class_sizes = _agreeing(joint, source, list(kept), waiting, tolerance)
            hits[at] += cell_hits
            found += class_sizes
        sizes = np.where(waiting, found, sizes)
        waiting = waiting & (found == 0)
        if not waiting.any():
            break
    return hits, sizes[joint.owners]


def _agreeing(
    joint: engine.JointCounts, source: pl.DataFrame, kept: list[str], waiting: Flags, tolerance: float | None
) -> tuple[Integers, Integers, Integers]:
    """Count released records that agree on the kept keys, by waiting cell and by waiting class."""
    at = np.flatnonzero(waiting[joint.owners] & (joint.original > 0))
    labels = joint.class_labels.with_columns(waits=pl.Series(waiting), one=pl.lit(1))
    on = kept or ["one"]
    source = source.with_columns(one=pl.lit(1))
    # Groups of the kept keys are numbered once; within them the cells are counted like any other classes.
    groups = (
        pl.concat([labels.filter("waits").select(on), source.select(on)]).unique().with_row_index("group")
    )
    here = labels.join(groups, on=on, how="left", nulls_equal=True, maintain_order="left")["group"]
    there = source.join(groups, on=on, how="left", nulls_equal=True, maintain_order="left")[
        "group"
    ].to_numpy()
    group_of = here.fill_null(0).to_numpy().astype(np.int64)
    count = source["n"].to_numpy()
    class_sizes = np.bincount(there, weights=count, minlength=groups.height)[group_of].astype(np.int64)
    pooled = engine.JointCounts(
        owners=np.concatenate([there.astype(np.int64), group_of[joint.owners[at]]]),
        values=np.concatenate([source["v"].to_numpy(), joint.values[at]]),
        original=np.zeros(len(count) + len(at), dtype=np.int64),
        released=np.concatenate([count, np.zeros(len(at), dtype=np.int64)]),
        mass=np.zeros(len(count) + len(at)),
        class_labels=groups,
        value_labels=joint.value_labels,
        class_inside=np.ones(groups.height, dtype=bool),
        value_inside=joint.value_inside,
    )
    merged, position = pooled.regrouped(
        engine.Grouping.none(groups),
        engine.Grouping(np.arange(len(joint.value_inside)), joint.value_labels, joint.value_inside),
    )
    counted = merged.released if tolerance is None else within_tolerance(merged, merged.released, tolerance)
    return at, counted[position[len(count) :]], np.where(waiting, class_sizes, 0)


def _value_mass(joint: engine.JointCounts) -> Floats:
    return np.bincount(joint.values, weights=joint.mass, minlength=joint.value_labels.height).astype(
        np.float64
    )


def _ratio(part: Array, whole: Array) -> Floats:
    ratio: Floats = np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)
    return ratio


def _share(part: float, whole: float) -> float | None:
    return float(part / whole) if whole > 0 else None


def _mean(values: Floats, weights: Array) -> float | None:
    return _share(float((values * weights).sum()), float(weights.sum()))
