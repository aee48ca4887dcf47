"""Leaves whose rare values come from larger groups: who is alone with a value in a leaf lends it to nobody there.

A leaf of 200 people in which one is a priest tells that such a person exists: the synthetic file has about one priest
of that kind, too. Values that enough people of the leaf share are drawn there. The others are handed up the tree until
they meet enough people who have the same, and from there they come down to every leaf alike, as often as they occur in
the larger group. What too few people have in the whole file is not drawn at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from discreet.core.arrays import Array, Flags, Floats, Integers
from discreet.numerics.trees.tree import FEATURE, LEFT, RIGHT, START, STOP, Tree
from discreet.synth.methods.method import Conditional
from discreet.synth.variables import Variable, code_table


class SharedDonors(Conditional):
    """A tree, groups of donors (of leaves, and of larger groups), and how often each leaf draws from which group."""

    def __init__(self, tree: Tree, values: Array, groups: Groups) -> None:
        self.tree = tree
        self.values = values
        self.groups = groups

    @classmethod
    def of(cls, tree: Tree, values: Array, shared_by: int) -> SharedDonors:
        """Take a tree as it was grown, and share out its donors."""
        return cls(tree, values, Groups.of(tree, shared_by))

    def draw(self, predictors: Sequence[Variable], size: int, rng: np.random.Generator) -> Array:
        """Drop the records down the tree, and borrow a value from the leaf or from a group around it."""
        leaves = self.tree.leaves(code_table(predictors, size, self.tree.n_columns), rng)
        drawn: Array = self.values[self.groups.donors(leaves.astype(np.int64), rng)]
        return drawn

    def state(self) -> dict[str, Any]:
        """Return the tree, the values and the groups."""
        return {"tree": self.tree.to_arrays(), "values": self.values, "groups": self.groups.to_arrays()}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Self:
        """Make the law again."""
        return cls(
            Tree.from_arrays(state["tree"]),
            state["values"],
            Groups(**{name: np.asarray(part) for name, part in state["groups"].items()}),
        )


@dataclass(frozen=True, eq=False)
class Groups:
    """Donors by group, and for each leaf the groups it draws from.

    Attributes
    ----------
    rows, ends
        Training rows, group by group, and the running total of their weights.
    starts
        Where each group starts in ``rows``, and one end more.
    options, chances
        The groups that leaves draw from, leaf by leaf, and the leaf plus the running chance of each.
    """

    rows: Integers
    ends: Floats
    starts: Integers
    options: Integers
    chances: Floats

    @classmethod
    def of(cls, tree: Tree, shared_by: int) -> Groups:
        """Sort the donors of a grown tree into those that their leaf may lend and those that a larger group may."""
        weights = tree.weights if len(tree.weights) else np.ones(len(tree.rows))
        home = _homes(tree, shared_by)
        order = np.argsort(home, kind="stable")
        order = order[home[order] >= 0]
        nodes = len(tree.nodes)
        starts = np.append(0, np.cumsum(np.bincount(home[order], minlength=nodes))).astype(np.int64)
        ends = np.cumsum(weights[order])
        mass = np.diff(np.append(0.0, ends)[starts])
        total = np.append(0.0, np.cumsum(weights))
        whole = total[tree.nodes[:, STOP]] - total[tree.nodes[:, START]]
        options, chances = _options(
            tree, mass, np.where(whole > 0, mass / np.where(whole > 0, whole, 1), 0.0)
        )
        return cls(tree.rows[order].astype(np.int64), ends, starts, options, chances)

    def donors(self, leaves: Integers, rng: np.random.Generator) -> Integers:
        """Draw a training row for each leaf number: a group first, and then somebody of it."""
        at = np.searchsorted(self.chances, leaves + rng.random(len(leaves)), side="right")
        group = self.options[np.minimum(at, len(self.options) - 1)]
        before = np.append(0.0, self.ends)
        first, last = self.starts[group], self.starts[group + 1]
        place = np.searchsorted(
            self.ends, before[first] + rng.random(len(leaves)) * (before[last] - before[first]), side="right"
        )
        # Rounding may carry a draw past the end of its group.
        found: Integers = self.rows[np.clip(place, first, last - 1)]
        return found

    def to_arrays(self) -> dict[str, Array]:
        """Give the groups as plain arrays."""
        return {
            "rows": self.rows, "ends": self.ends, "starts": self.starts, "options": self.options,
            "chances": self.chances,
        }  # fmt: skip


def _homes(tree: Tree, shared_by: int) -> Integers:
    """Say for each donor which node may lend its value; -1 where too few of the whole file have it."""
    home = np.full(len(tree.rows), -1, dtype=np.int64)
    waiting: dict[int, Integers] = {}
    # Children come after their parents, so that going backwards every node finds what both have handed up.
    for node in range(len(tree.nodes) - 1, -1, -1):
        line = tree.nodes[node]
        places = (
            np.arange(line[START], line[STOP], dtype=np.int64)
            if line[FEATURE] < 0
            else np.concatenate([waiting.pop(int(line[LEFT])), waiting.pop(int(line[RIGHT]))])
        )
        if not len(places):
            waiting[node] = places
            continue
        classes = tree.classes[places]
        # At the root all who have a value count, also those whose leaf lends it.
        held = np.bincount(tree.classes if node == 0 else classes)
        enough: Flags = held[classes] >= shared_by
        home[places[enough]] = node
        waiting[node] = places[~enough]
    if (home < 0).all():
        home[:] = 0
    return home


def _options(tree: Tree, mass: Floats, rate: Floats) -> tuple[Integers, Floats]:
    """List for each leaf the groups on its way up that lend something, with their chances."""
    above = np.full(len(tree.nodes), -1, dtype=np.int64)
    inner = np.flatnonzero(tree.nodes[:, FEATURE] >= 0)
    above[tree.nodes[inner, LEFT]] = inner
    above[tree.nodes[inner, RIGHT]] = inner
    fallback = int(np.argmax(mass))
    options: list[int] = []
    chances: list[float] = []
    for number, leaf in enumerate(tree.leaf_nodes):
        own, shares = [], []
        node = above[leaf]
        while node >= 0:
            if rate[node] > 0:
                own.append(int(node))
                shares.append(float(rate[node]))
            node = above[node]
        if mass[leaf] > 0:
            own.append(int(leaf))
            shares.append(max(1.0 - sum(shares), 0.0) or rate[leaf])
        if not own:
            own, shares = [fallback], [1.0]
        running = np.cumsum(shares) / sum(shares)
        options += own
        chances += [*(number + running[:-1]), number + 1.0]
    return np.asarray(options, dtype=np.int64), np.asarray(chances)
