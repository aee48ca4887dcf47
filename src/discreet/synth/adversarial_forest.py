"""Synthesis by an adversarial random forest (Watson, Blesch, Kapar and Wright 2023).

A forest learns to tell real records from drawn ones, which are then drawn from its own leaves. A leaf keeps shares of
levels, and means, spreads and borders of numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from discreet.core.arrays import Array, Codes, Flags, Floats, Integers
from discreet.core.constraints import AtLeast, Between, HoldsValues, Public
from discreet.core.method_cards import method
from discreet.core.native_libraries import in_threads
from discreet.core.progress import track
from discreet.core.randomness import Seed, generator
from discreet.core.roles import Columns
from discreet.dp.entropy import Stream
from discreet.microdata import Microdata
from discreet.numerics.alias_tables import drawn_places, places_within
from discreet.numerics.trees.coding import Feature, encode
from discreet.numerics.trees.growing import grow_classification
from discreet.numerics.trees.tree import CUT, DEPTH, FEATURE, LEFT, LEFT_SHARE, MEMBERS_END, RIGHT, Tree
from discreet.synth.column_forms import CategoryForm, Variable
from discreet.synth.saved_models import stored
from discreet.synth.synthesizer import Synthesizer, seed_of
from discreet.synth.whole_records import FittedRecords, Weights, prepare


@method(
    aim="records",
    work="whole-file",
    references=(
        "Watson, D. S., Blesch, K., Kapar, J. and Wright, M. N. (2023). Adversarial random forests for density "
        "estimation and generative modeling. Proceedings of Machine Learning Research 206, 5357–5375.",
        "Fössing, E. and Drechsler, J. (2024). An evaluation of synthetic data generators implemented in the "
        "Python library Synthcity. Privacy in Statistical Databases, Lecture Notes in Computer Science 14915. "
        "doi:10.1007/978-3-031-69651-0",
    ),
)
@dataclass(frozen=True)
class AdversarialForest(Synthesizer):
    """Which records can a forest not tell from the real ones?

    A forest learns to tell the records from others whose columns were drawn independently; then from others whose
    columns were drawn independently within the leaves of the last forest; and so on, until it cannot tell them apart.
    Within the leaves of that last forest columns have next to nothing to do with each other, so that a record is drawn
    by choosing a tree, a leaf of it in the share of its real records, and every column by itself.

    Also known as: ARF; adversarial random forest; FORGE.

    Parameters
    ----------
    trees
        How many trees each forest has.
    min_leaf
        The fewest real records in a leaf; leaves with fewer are joined to their neighbors.
    delta
        The contest ends when the forest is right, on records it was not grown on, in at most 0.5 + delta of the cases.
    max_rounds
        How many forests are grown at most; also how often records that break a constraint are drawn again.
    numbers
        What a leaf knows of a number: ``"normal"`` its mean and spread, within the borders of the leaf; ``"uniform"``
        its borders only; ``"observed"`` the values of its records, which are then values of people.
    special_codes, semicontinuous
        ``{column: [values]}``: codes that are no numbers (-8 for "refused"), and values at which numbers pile up; a
        value that a fifth of the records have is found without being named.
    constraints
        Rules that every record keeps (see `check_rules`): columns that they define are computed, broken inequalities
        mended, and records that break others drawn again.
    weights
        ``"use"`` weights everything by the survey weights, so that the synthetic file is like a simple random sample of
        the population; ``"ignore"`` leaves them aside. The synthetic file has no weights.
    few_values
        Numbers with at most this many distinct values are taken for categories.
    leave_out
        Columns that the synthetic file shall not have.

    When not to use it
    ------------------
    Where relations are close (a total and its parts, rules between columns), leaves are too coarse: write them as
    constraints, or take `Sequential`. Do not take the result for anonymous; measure it.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"sex": ["f", "m"] * 100, "size": [160, 180] * 100})
    >>> fitted = AdversarialForest(trees=5).fit(Microdata(people), seed=1)
    >>> fitted.sample(4, given={"sex": "f"}, seed=1).frame["size"].to_list()
    [160, 160, 160, 160]
    """

    trees: Annotated[int, AtLeast(1)] = 30
    min_leaf: Annotated[int, AtLeast(1)] = 5
    delta: Annotated[float, Between(0, 0.5, below=True)] = 0.0
    max_rounds: Annotated[int, AtLeast(1)] = 10
    numbers: Literal["normal", "uniform", "observed"] = "normal"
    special_codes: Annotated[Mapping[str, Any], HoldsValues(by_column=True)] | None = None
    semicontinuous: Annotated[Mapping[str, Any], HoldsValues(by_column=True)] | None = None
    constraints: Annotated[Sequence[str], HoldsValues(in_expressions=True)] = ()
    weights: Weights = "use"
    few_values: int = 2
    leave_out: Annotated[Columns, Public()] = None

    def fit(self, data: Microdata, *, progress: bool = False, seed: Seed = None) -> FittedForest:
        """Run the contest and keep what the leaves of the last forest hold.

        Parameters
        ----------
        data
            The file; its identifiers are left out, its weight is used (see ``weights``).
        seed
            Of the trees and of the records they are held against.
        progress
            Show how far it is, on a terminal.
        """
        file = prepare(self, data)
        stream = Stream(seed_of(seed), "adversarial forest")
        contest = Contest(file.variables, file.blueprint.widths, file.weights)
        forest, accuracies = contest.run(
            trees=self.trees,
            min_leaf=self.min_leaf,
            good_enough=0.5 + self.delta,
            max_rounds=self.max_rounds,
            stream=stream,
            progress=progress,
        )
        leaves = leaves_of(
            forest,
            contest.codes,
            variables=file.variables,
            widths=file.blueprint.widths,
            weights=file.weights,
            min_leaf=self.min_leaf,
            kind=self.numbers,
        )
        return FittedForest(
            file.like,
            file.rows,
            blueprint=file.blueprint,
            leaves=leaves,
            accuracies=accuracies,
            left_out=file.left_out,
            weighted=file.weights is not None,
        )


@stored("fitted-forest")
@dataclass(eq=False, repr=False, kw_only=True)
class FittedForest(FittedRecords):
    """A forest that was fitted.

    Attributes
    ----------
    leaves
        What the leaves of all trees know.
    accuracies
        How often each forest of the contest was right on records it was not grown on: 0.5 is no better than chance.
    """

    leaves: Leaves
    accuracies: Sequence[float]

    def propose(self, n: int, stream: Stream, wanted: Mapping[str, Flags]) -> list[Array]:
        """Choose leaves, those that are likely to hold what was asked for where something was; then every column."""
        places = self._categories()
        likely: Floats | None = None
        for name, codes in wanted.items():
            own = self.leaves.likely(places[name], codes)
            likely = own if likely is None else likely * own
        leaves = self.leaves.chosen(n, likely, stream("leaves"))
        parts: list[Array] = []
        category = number = 0
        for (name, form), width in zip(self.blueprint.forms.items(), self.blueprint.widths, strict=True):
            rng = stream("column", name)
            if isinstance(form, CategoryForm):
                only = None
                if name in wanted:
                    only = wanted[name][self.leaves.codes[self.leaves.rows, category]].astype(np.float64)
                donors = self.leaves.donors(leaves, rng, only)
                parts.append(self.leaves.codes[donors, category])
                category += 1
                continue
            donors = self.leaves.donors(leaves, rng)
            if width == 2:
                parts.append(self.leaves.codes[donors, category])
                category += 1
            observed = self.leaves.values.shape[1] > 0
            parts.append(
                self.leaves.values[donors, number] if observed else self.leaves.numbers(number, leaves, rng)
            )
            number += 1
        return parts

    def _categories(self) -> dict[str, int]:
        """Say in which column of the codes each category stands; states of numbers stand among them."""
        found, at = {}, 0
        for (name, form), width in zip(self.blueprint.forms.items(), self.blueprint.widths, strict=True):
            if isinstance(form, CategoryForm):
                found[name] = at
            at += isinstance(form, CategoryForm) or width == 2
        return found


# What an adversarial forest learns, and what its leaves know of their real records.
Numbers = Literal["normal", "uniform", "observed"]


@stored("forest-leaves")
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

    def __post_init__(self) -> None:
        count, records = len(self.shares), len(self.codes)
        fits = (
            count > 0
            and len(self.starts) == count + 1
            and int(self.starts[-1]) == len(self.rows) == len(self.counted)
            and bool((np.diff(self.starts) > 0).all())
            and self.starts[0] == 0
            and bool(((self.rows >= 0) & (self.rows < records)).all())
            and bool((self.counted > 0).all() and (self.shares >= 0).all())
            and all(len(own) == count for own in (self.means, self.spreads, self.lows, self.highs))
        )
        if not fits:
            raise ValueError("leaves that do not fit together")

    def chosen(self, n: int, likely: Floats | None, rng: np.random.Generator) -> Integers:
        """Draw leaves by their shares, or by shares times how likely each is to hold what was asked for."""
        mass = self.shares if likely is None else self.shares * likely
        upto = np.cumsum(mass)
        if not upto[-1] > 0:
            return np.empty(0, dtype=np.int64)
        return drawn_places(upto, n, rng)

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
        share = rng.random(len(leaves))
        return np.asarray(self.rows[places_within(ends, self.starts[leaves], self.starts[leaves + 1], share)])

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


# The contest: a forest learns to tell real records from drawn ones, which are then drawn from its own leaves.
MOST_BINS = 256  # of a number, while telling records apart; the leaves keep the numbers themselves


class Contest:
    """Real records in the coding of trees, and how others are drawn to be told from them.

    Parameters
    ----------
    variables
        Of the real records.
    widths
        How many variables each column has; those of one column are drawn together.
    weights
        Survey weights, or None.
    """

    def __init__(self, variables: Sequence[Variable], widths: Sequence[int], weights: Floats | None) -> None:
        from discreet.numerics.trees.coding import Feature

        self.features = [
            Feature.numeric(one.values, max_bins=MOST_BINS) if one.is_number else Feature.category(one.levels)
            for one in variables
        ]
        self.codes = encode(self.features, [one.values for one in variables])
        self.columns = np.repeat(np.arange(len(widths)), widths)
        self.weights = weights
        self.rows = len(self.codes)

    def run(
        self,
        *,
        trees: int,
        min_leaf: int,
        good_enough: float,
        max_rounds: int,
        stream: Stream,
        progress: bool,
    ) -> tuple[list[Tree], list[float]]:
        """Grow forests until one cannot tell the records apart; return it and the accuracy of each.

        A third of the trees is enough to see how a round goes; the forest that stays gets the rest of them.
        """
        few = max(trees // 3, 1)
        others = self._independent(stream("independent columns"))
        accuracies: list[float] = []
        best: list[Tree] = []
        last, beside = others, stream
        for number in track(range(max_rounds), description="Forests", progress=progress):
            own = stream.child(f"round {number}")
            forest, accuracy = self._grown(others, few, min_leaf, own)
            if accuracies and accuracy >= min(accuracies):
                # It gets no better: the forest before knows as much.
                accuracies.append(accuracy)
                break
            accuracies.append(accuracy)
            best, last, beside = forest, others, own
            if accuracy <= good_enough:
                break
            others = self._from_leaves(forest, own("leaves"))
        if trees > few:
            best = best + self._grown(last, trees - few, min_leaf, beside.child("rest"))[0]
        return best, accuracies

    def _independent(self, rng: np.random.Generator) -> Array:
        made = np.empty_like(self.codes)
        for column in range(int(self.columns.max()) + 1):
            donors = self._rows(rng)
            for place in np.flatnonzero(self.columns == column):
                made[:, place] = self.codes[donors, place]
        return made

    def _rows(self, rng: np.random.Generator) -> Integers:
        if self.weights is None:
            return rng.integers(self.rows, size=self.rows)
        return drawn_places(np.cumsum(self.weights), self.rows, rng)

    def _grown(self, others: Array, trees: int, min_leaf: int, stream: Stream) -> tuple[list[Tree], float]:
        """Grow a forest on real and other records; say how often it is right on those a tree was not grown on."""
        both = np.asfortranarray(np.concatenate([self.codes, others]))
        total, real = len(both), self.rows
        is_real = (np.arange(total) < real).astype(np.int32)
        weights = None if self.weights is None else np.append(self.weights, np.ones(total - real))
        per_split = max(1, round(len(self.features) ** 0.5))

        def grow_one(seed: int) -> tuple[Tree, Floats, Array]:
            rng = generator(seed)
            taken = np.sort(rng.integers(total, size=total))
            tree = grow_classification(
                both, self.features, is_real, 2, rng=rng, rows=taken, weights=weights, min_leaf=min_leaf,
                min_split=2 * min_leaf, cp=0.0, max_depth=40, features_per_split=per_split,
            )  # fmt: skip
            leaves = tree.leaves(both, rng)
            out = np.ones(total, dtype=np.bool_)
            out[taken] = False
            share = np.where(out, tree.leaf_means[leaves], 0.0)
            kept = tree.with_donors(leaves[:real], weights=self.weights)
            return kept, share, out

        seeds = [int(seed) for seed in stream("trees").integers(2**63, size=trees)]
        votes, asked = np.zeros(total), np.zeros(total)
        forest = []
        for tree, share, out in in_threads(grow_one, seeds):
            forest.append(tree)
            votes += share
            asked += out
        seen = asked > 0
        says_real = votes[seen] > 0.5 * asked[seen]
        right = says_real == (is_real[seen] == 1)
        if weights is not None:
            return forest, float(np.average(right, weights=weights[seen]))
        return forest, float(right.mean())

    def _from_leaves(self, forest: Sequence[Tree], rng: np.random.Generator) -> Array:
        """Draw records whose columns are independent within a leaf, each leaf as often as it has real records."""
        made = np.empty_like(self.codes)
        turn = rng.integers(len(forest), size=self.rows)
        start = self._rows(rng)
        for number, tree in enumerate(forest):
            own = np.flatnonzero(turn == number)
            leaf_of_row = np.empty(self.rows, dtype=np.int64)
            leaf_of_row[tree.rows] = np.repeat(np.arange(tree.n_leaves), np.diff(tree.starts))
            leaves = leaf_of_row[start[own]]
            for column in range(int(self.columns.max()) + 1):
                donors = tree.donors(leaves, rng)
                for place in np.flatnonzero(self.columns == column):
                    made[own, place] = self.codes[donors, place]
        return made
