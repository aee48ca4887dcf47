"""The contest: a forest learns to tell real records from drawn ones, which are then drawn from its own leaves."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from discreet.core.arrays import Array, Floats, Integers
from discreet.core.progress import track
from discreet.core.randomness import generator
from discreet.numerics.trees.coding import encode
from discreet.numerics.trees.growing import grow_classification
from discreet.numerics.trees.tree import Tree
from discreet.synth.synthesizer import Stream
from discreet.synth.variables import Variable

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
        upto = np.cumsum(self.weights)
        found = np.searchsorted(upto, rng.random(self.rows) * upto[-1], side="right")
        return np.asarray(np.minimum(found, self.rows - 1), dtype=np.int64)

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
        with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
            for tree, share, out in pool.map(grow_one, seeds):
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
