"""What the leaves of a forest know of their real records: shares of levels, means, spreads and borders of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from discreet.core.arrays import Array, Codes, Flags, Floats, Integers
from discreet.numerics.trees.coding import Feature
from discreet.numerics.trees.tree import CUT, DEPTH, FEATURE, LEFT, LEFT_SHARE, MEMBERS_END, RIGHT, Tree
from discreet.synth.adversarial_forest.contest import MOST_BINS
from discreet.synth.variables import Variable

Numbers = Literal["normal", "uniform", "observed"]


@dataclass(frozen=True, eq=False)
class Leaves:
    """All leaves of a forest, one after the other.

    Attributes
    ----------
    shares
        How often each is drawn; they sum to one.
    starts, rows
        Where the records of each leaf begin, and the records, by number.
    counted
        What each of ``rows`` counts: its survey weight, or 1.
    codes
        Of the real records, by category.
    values
        Of the real records, by number; nothing where a leaf keeps only means and spreads.
    means, spreads, lows, highs
        By leaf and number.
    """

    shares: Floats
    starts: Integers
    rows: Codes
    counted: Floats
    codes: Codes
    values: Floats
    means: Floats
    spreads: Floats
    lows: Floats
    highs: Floats

    def chosen(self, n: int, likely: Floats | None, rng: np.random.Generator) -> Integers:
        """Draw leaves by their shares, or by shares times how likely each is to hold what was asked for."""
        mass = self.shares if likely is None else self.shares * likely
        upto = np.cumsum(mass)
        if not upto[-1] > 0:
            return np.empty(0, dtype=np.int64)
        found = np.searchsorted(upto, rng.random(n) * upto[-1], side="right")
        return np.asarray(np.minimum(found, len(mass) - 1), dtype=np.int64)

    def likely(self, category: int, wanted: Flags) -> Floats:
        """Return the share of the records of each leaf whose code is one of those wanted."""
        hits = np.append(0.0, np.cumsum(self.counted * wanted[self.codes[self.rows, category]]))
        every = np.append(0.0, np.cumsum(self.counted))
        return np.asarray(
            (hits[self.starts[1:]] - hits[self.starts[:-1]])
            / np.maximum(every[self.starts[1:]] - every[self.starts[:-1]], 1e-300)
        )

    def donors(self, leaves: Integers, rng: np.random.Generator, only: Floats | None = None) -> Codes:
        """Draw a real record of each leaf, of those that count where only some do."""
        ends = np.cumsum(self.counted if only is None else self.counted * only)
        before = np.append(0.0, ends)
        low, high = before[self.starts[leaves]], before[self.starts[leaves + 1]]
        at = np.searchsorted(ends, low + rng.random(len(leaves)) * (high - low), side="right")
        found: Codes = self.rows[np.clip(at, self.starts[leaves], self.starts[leaves + 1] - 1)]
        return found

    def numbers(self, number: int, leaves: Integers, rng: np.random.Generator) -> Floats:
        """Draw a number for each leaf: normal or uniform within its borders."""
        low, high = self.lows[leaves, number], self.highs[leaves, number]
        u = rng.random(len(leaves))
        spread = self.spreads[leaves, number]
        even = low + u * (high - low)
        if not np.isfinite(spread).any():
            return np.asarray(even)
        from scipy.special import ndtr, ndtri

        mean = self.means[leaves, number]
        scale = np.where(spread > 0, spread, 1.0)
        below, above = ndtr((low - mean) / scale), ndtr((high - mean) / scale)
        drawn = mean + scale * ndtri(below + u * (above - below))
        drawn = np.where(np.isfinite(drawn), np.clip(drawn, low, high), np.clip(mean, low, high))
        return np.asarray(np.where(spread > 0, drawn, np.where(np.isfinite(spread), mean, even)))

    def state(self) -> dict[str, Any]:
        """Return the leaves for a model file."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Leaves:
        """Make the leaves again."""
        made = cls(**{field.name: np.asarray(state[field.name]) for field in fields(cls)})
        count = len(made.shares)
        records = len(made.codes)
        fits = (
            count > 0
            and len(made.starts) == count + 1
            and int(made.starts[-1]) == len(made.rows) == len(made.counted)
            and bool((np.diff(made.starts) > 0).all())
            and made.starts[0] == 0
            and bool(((made.rows >= 0) & (made.rows < records)).all())
            and bool((made.counted > 0).all() and (made.shares >= 0).all())
            and all(getattr(made, name).shape[0] == count for name in ("means", "spreads", "lows", "highs"))
        )
        if not fits:
            raise ValueError("leaves that do not fit together")
        return made


def leaves_of(
    forest: Sequence[Tree],
    codes: Array,
    *,
    variables: Sequence[Variable],
    widths: Sequence[int],
    weights: Floats | None,
    min_leaf: int,
    kind: Numbers,
) -> Leaves:
    """Read the leaves off a forest, those with too few real records joined to their neighbors."""
    rng = np.random.default_rng(
        0
    )  # an unseen code never comes up: the records are those the trees were grown on
    mass = np.ones(len(codes)) if weights is None else weights
    numbers = [place for place, one in enumerate(variables) if one.is_number]
    stated = _stated(variables, widths)
    cuts = {place: Feature.numeric(variables[place].values, max_bins=MOST_BINS).cuts for place in numbers}
    parts: list[tuple[Array, ...]] = []
    for tree in forest:
        node, lows, highs = _pruned(tree, codes, numbers=numbers, cuts=cuts, min_leaf=min_leaf, rng=rng)
        found, leaf = np.unique(node, return_inverse=True)
        order = np.argsort(leaf, kind="stable").astype(np.int32)
        sizes = np.bincount(leaf)
        parts.append((np.bincount(leaf, mass), sizes, order, lows[found], highs[found], leaf))
    laws = [
        _laws(part, variables=variables, numbers=numbers, stated=stated, mass=mass, kind=kind)
        for part in parts
    ]
    total = np.concatenate([part[0] for part in parts])
    rows = np.concatenate([part[2] for part in parts])
    return Leaves(
        shares=total / total.sum(),
        starts=np.append(0, np.cumsum(np.concatenate([part[1] for part in parts]))).astype(np.int64),
        rows=rows,
        counted=mass[rows],
        codes=_stacked([one.values for one in variables if not one.is_number], len(codes), np.int32),
        values=_stacked(
            [variables[place].values for place in numbers] if kind == "observed" else [], len(codes), float
        ),
        means=np.concatenate([law[0] for law in laws]),
        spreads=np.concatenate([law[1] for law in laws]),
        lows=np.concatenate([law[2] for law in laws]),
        highs=np.concatenate([law[3] for law in laws]),
    )


def _stacked(columns: Sequence[Array], rows: int, kind: Any) -> Array:
    return np.column_stack(columns).astype(kind) if columns else np.empty((rows, 0), dtype=kind)


def _stated(variables: Sequence[Variable], widths: Sequence[int]) -> dict[int, int]:
    """Name, for each number that has states, the variable that holds them; state 0 is an ordinary number."""
    found, at = {}, 0
    for width in widths:
        if width == 2:
            found[at + 1] = at
        at += width
    return found


def _laws(
    part: tuple[Array, ...],
    *,
    variables: Sequence[Variable],
    numbers: Sequence[int],
    stated: Mapping[int, int],
    mass: Floats,
    kind: Numbers,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return means, spreads and borders of the ordinary numbers in each leaf of one tree."""
    _, sizes, _, lows, highs, leaf = part
    count = len(sizes)
    shape = (count, len(numbers))
    means, spreads = np.zeros(shape), np.full(shape, np.nan)
    for at, place in enumerate(numbers):
        values = variables[place].values
        state = stated.get(place)
        w = mass if state is None else mass * (variables[state].values == 0)
        held = np.bincount(leaf, w, count)
        safe = np.maximum(held, 1e-300)
        middle = np.bincount(leaf, w * values, count) / safe
        with np.errstate(over="ignore"):  # Where no float holds the square, a leaf is as wide as its borders.
            around = np.bincount(leaf, w * (values - middle[leaf]) ** 2, count) / safe
        means[:, at] = middle
        if kind == "normal":
            # An unbiased spread where leaves are small; one record has none.
            n = np.bincount(leaf, w > 0, count)
            wide = np.sqrt(around * n / np.maximum(n - 1, 1))
            spreads[:, at] = np.where(np.isfinite(wide), wide, np.nan)
        ordinary = w > 0
        least, most = (values[ordinary].min(), values[ordinary].max()) if ordinary.any() else (0.0, 0.0)
        lows[:, at] = np.clip(lows[:, at], least, most)
        highs[:, at] = np.clip(highs[:, at], least, most)
    return means, spreads, lows, highs


def _pruned(
    tree: Tree,
    codes: Array,
    *,
    numbers: Sequence[int],
    cuts: Mapping[int, Floats],
    min_leaf: int,
    rng: np.random.Generator,
) -> tuple[Codes, Floats, Floats]:
    """Return the node that each real record ends in, and the borders of all nodes, without leaves of few records.

    Where a branch has fewer real records than a leaf must have, the split above it goes: its other branch takes all.
    """
    from discreet.numerics.trees.walk_kernels import walk

    nodes, by_level = tree.nodes.copy(), tree.by_level.copy()
    shares = np.ascontiguousarray(tree.figures[:, LEFT_SHARE]).copy()
    counts = np.zeros(len(nodes), dtype=np.int64)
    counts[tree.leaf_nodes] = np.diff(tree.starts)
    levels = [np.flatnonzero(tree.nodes[:, DEPTH] == depth) for depth in range(tree.depth + 1)]
    moved = [FEATURE, CUT, MEMBERS_END, LEFT, RIGHT]
    for level in reversed(levels):
        split = level[nodes[level, FEATURE] >= 0]
        left, right = nodes[split, LEFT], nodes[split, RIGHT]
        counts[split] = counts[left] + counts[right]
        few_left, few_right = counts[left] < min_leaf, counts[right] < min_leaf
        nodes[split[few_left & few_right], FEATURE] = -1
        for few, takes in ((few_left & ~few_right, right), (few_right & ~few_left, left)):
            at, source = split[few], takes[few]
            nodes[np.ix_(at, moved)] = nodes[np.ix_(source, moved)]
            by_level[at], shares[at] = by_level[source], shares[source]
    lows = np.full((len(nodes), len(numbers)), -np.inf)
    highs = np.full((len(nodes), len(numbers)), np.inf)
    place_of = {place: at for at, place in enumerate(numbers)}
    here = np.zeros(1, dtype=np.int64)
    while len(here):
        here = here[nodes[here, FEATURE] >= 0]
        left, right = nodes[here, LEFT].astype(np.int64), nodes[here, RIGHT].astype(np.int64)
        for child in (left, right):
            lows[child], highs[child] = lows[here], highs[here]
        for place, at in place_of.items():
            cut = nodes[here, FEATURE] == place
            border = cuts[place][nodes[here[cut], CUT]] if cut.any() else np.empty(0)
            highs[left[cut], at] = np.minimum(highs[left[cut], at], border)
            lows[right[cut], at] = np.maximum(lows[right[cut], at], border)
        here = np.concatenate([left, right])
    reached = walk(
        codes,
        nodes,
        shares,
        tree.members,
        by_level,
        np.arange(len(nodes), dtype=np.int32),
        int(rng.integers(2**62)),
    )
    return reached, lows, highs
