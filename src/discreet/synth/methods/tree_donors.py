"""Trees whose leaves hold observed values: a synthetic record falls into a leaf and borrows a value there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.stats import rankdata

from discreet.core.arrays import Array, Codes, Flags, Floats, Integers
from discreet.core.constraints import AtLeast, Between
from discreet.core.errors import ParameterError
from discreet.numerics.alias_tables import places_within
from discreet.numerics.trees.conditional_inference import grow_conditional
from discreet.numerics.trees.forest import Forest, grow_forest
from discreet.numerics.trees.growing import grow_classification, grow_regression
from discreet.numerics.trees.tree import FEATURE, LEFT, RIGHT, START, STOP, Tree
from discreet.synth.column_forms import Variable, code_table, features_of
from discreet.synth.methods.method import Conditional, Method, Task
from discreet.synth.saved_models import stored, stored_as


@dataclass(frozen=True)
class Cart(Method):
    """Classification and regression tree (Breiman and others 1984); the default.

    A number is split by groups of its values in their order: a split lowers the sum of the impurities of all questions
    "up to this group, or above?". Donors must have the right spread and spikes, not only the right mean, and a shift of
    the whole distribution counts for more than one among its groups. Records of one group are then told apart by rank,
    so that a relation finer than the groups is kept. ``groups=0`` gives the classical tree.

    Parameters
    ----------
    min_leaf
        Fewest records in a leaf.
    min_split
        Fewest records in a node that is split; three times ``min_leaf`` unless given.
    cp
        A split must lower the impurity by at least this share of that of the whole column.
    max_depth
        Most splits on the way to a leaf.
    level_penalty
        How many times the gain that pure chance gives to so many levels or cuts is taken off before predictors are
        compared. Without it predictors of many values are preferred on noise and hide those of few: an occupation of
        500 levels what age and sex have to do with pay, an amount what a telephone has to do with it.
    groups
        Number of groups of equal size that a numeric column is split by; heaped values are groups of their own.
        0 splits by variance instead.
    shared_by
        Fewest people of a leaf who must have a value (of a number: one of its groups) for it to be drawn there. Rarer
        ones come from the smallest larger group in which so many have them, to all of its leaves alike; what fewer have
        in the whole file is not drawn at all. 1 draws every value where it was found.
    """

    name = "cart"
    gives_observed_values = True
    min_leaf: Annotated[int, AtLeast(1)] = 5
    min_split: Annotated[int, AtLeast(1)] | None = None
    cp: Annotated[float, AtLeast(0)] = 1e-8
    max_depth: Annotated[int, AtLeast(0)] = 60
    level_penalty: Annotated[float, AtLeast(0)] = 1.0
    groups: Annotated[int, AtLeast(0)] = 20
    shared_by: Annotated[int, AtLeast(1)] = 1

    def __post_init__(self) -> None:
        if self.shared_by > 1 and self.groups == 0:
            raise ParameterError("shared_by counts the groups of a number: leave groups at 1 or more.")

    def fit(self, task: Task) -> TreeDonors | SharedDonors:
        """Grow the tree."""
        features = features_of(task.predictors)
        codes = code_table(task.predictors, len(task.target), len(features))
        limits: dict[str, Any] = {
            "weights": task.weights,
            "rng": task.rng,
            "min_leaf": self.min_leaf,
            "min_split": self.min_split,
            "cp": self.cp,
            "max_depth": self.max_depth,
            "level_penalty": self.level_penalty,
        }
        outcome, n_classes, fine = _outcome(task.target, self.groups)
        if n_classes:
            tree = grow_classification(codes, features, outcome, n_classes, fine=fine, **limits)
        else:
            tree = grow_regression(codes, features, outcome, **limits)
        if self.shared_by > 1:
            return SharedDonors.of(tree, task.target.values, self.shared_by)
        return TreeDonors(tree, task.target.values)


@dataclass(frozen=True)
class Ctree(Method):
    """Conditional inference tree (Hothorn, Hornik and Zeileis 2006): splits only where a test finds a relation.

    Parameters
    ----------
    mincriterion
        One minus the p-value that a split must exceed.
    min_leaf
        Fewest records in a leaf.
    max_depth
        Most splits on the way to a leaf.
    """

    name = "ctree"
    gives_observed_values = True
    mincriterion: Annotated[float, Between(0, 1, below=True)] = 0.9
    min_leaf: Annotated[int, AtLeast(1)] = 5
    max_depth: Annotated[int, AtLeast(0)] = 60

    def fit(self, task: Task) -> TreeDonors:
        """Grow the tree."""
        tree = grow_conditional(
            code_table(task.predictors, len(task.target)),
            [variable.feature for variable in task.predictors],
            task.target.values,
            rng=task.rng,
            n_classes=task.target.levels,
            weights=task.weights,
            mincriterion=self.mincriterion,
            min_leaf=self.min_leaf,
            max_depth=self.max_depth,
        )
        return TreeDonors(tree, task.target.values)


@dataclass(frozen=True)
class Rf(Method):
    """Random forest (Breiman 2001): a tree at random, and a donor in the leaf that a record falls into there.

    Because every split sees only a few columns, a column that follows exactly from another one loses that tie (an
    income and its decile); prefer `Cart` or `Bag` there.

    Parameters
    ----------
    n_trees
        Number of trees.
    features_per_split
        How many predictors a split may choose from; the usual share unless given.
    min_leaf
        Fewest records in a leaf.
    groups
        As in `Cart`.
    """

    name = "rf"
    also: ClassVar[tuple[str, ...]] = ("forest", "ranger")
    gives_observed_values = True
    n_trees: Annotated[int, AtLeast(1)] = 10
    features_per_split: Annotated[int, AtLeast(1)] | None = None
    min_leaf: Annotated[int, AtLeast(1)] = 5
    groups: Annotated[int, AtLeast(0)] = 20

    def fit(self, task: Task) -> ForestDonors:
        """Grow the forest."""
        per_split = "auto" if self.features_per_split is None else self.features_per_split
        return self._grown(task, per_split)

    def _grown(self, task: Task, per_split: Any) -> ForestDonors:
        outcome, n_classes, fine = _outcome(task.target, self.groups)
        features = features_of(task.predictors)
        forest = grow_forest(
            code_table(task.predictors, len(task.target), len(features)),
            features,
            outcome,
            rng=task.rng,
            n_classes=n_classes,
            fine=fine,
            n_trees=self.n_trees,
            features_per_split=per_split,
            weights=task.weights,
            min_leaf=self.min_leaf,
        )
        return ForestDonors(forest, task.target.values)


@dataclass(frozen=True)
class Bag(Rf):
    """Bagging (Breiman 1996): a random forest whose splits may choose from all predictors."""

    name = "bag"
    also: ClassVar[tuple[str, ...]] = ()

    def fit(self, task: Task) -> ForestDonors:
        """Grow the trees."""
        return self._grown(task, None)


stored_as("tree", Tree, dict[str, Array], Tree.to_arrays, Tree.from_arrays)
stored_as("forest", Forest, dict[str, Array], Forest.to_arrays, Forest.from_arrays)


@stored("tree-donors")
@dataclass(frozen=True, eq=False)
class TreeDonors(Conditional):
    """A tree and the observed values in its leaves."""

    tree: Tree
    values: Array

    def draw(self, predictors: Sequence[Variable], size: int, rng: np.random.Generator) -> Array:
        """Drop the records down the tree and borrow a value in each leaf."""
        leaves = self.tree.leaves(code_table(predictors, size, self.tree.n_columns), rng)
        # The values of a leaf lie side by side, so that one look finds the drawn one.
        return np.asarray(self.values[self.tree.rows][self.tree.places(leaves, rng)])


@stored("forest-donors")
@dataclass(frozen=True, eq=False)
class ForestDonors(Conditional):
    """A forest and the observed values in its leaves."""

    forest: Forest
    values: Array

    def draw(self, predictors: Sequence[Variable], size: int, rng: np.random.Generator) -> Array:
        """Drop each record down one of the trees and borrow a value there."""
        columns = self.forest.trees[0].n_columns
        return np.asarray(self.values[self.forest.draw(code_table(predictors, size, columns), rng)])


def _outcome(target: Variable, groups: int) -> tuple[Array, int, Floats | None]:
    """Say what a tree splits by: its outcome, the number of classes (0: a number) and what tells one class apart."""
    if not target.is_number:
        return target.values, target.levels, None
    if groups == 0:
        return target.values, 0, None
    return *_grouped(target.values, groups), _ranked(target.values)


def _grouped(values: Floats, groups: int) -> tuple[Codes, int]:
    """Put numbers into groups of about equal size; a value that would fill a group by itself is one."""
    distinct, place, held = np.unique(values, return_inverse=True, return_counts=True)
    if len(distinct) <= groups:
        return place.astype(np.int32), len(distinct)
    middle = (np.cumsum(held) - held / 2) / len(values)
    group = np.minimum((middle * groups).astype(np.int64), groups - 1)
    heaped = held > len(values) / groups
    # A heap within a group divides it, so that groups are in the order of their values.
    opens = np.ones(len(distinct), dtype=bool)
    opens[1:] = (group[1:] != group[:-1]) | heaped[1:] | heaped[:-1]
    codes = np.cumsum(opens) - 1
    return codes[place].astype(np.int32), int(codes[-1]) + 1


def _ranked(values: Floats) -> Floats:
    """Replace numbers by their ranks, brought to mean 0 and variance 1."""
    ranks = rankdata(values)
    spread = ranks.std()
    return np.asarray((ranks - ranks.mean()) / (spread if spread > 0 else 1.0))


# Leaves whose rare values come from larger groups: who is alone with a value in a leaf lends it to nobody there.
#
# A leaf of 200 people in which one is a priest tells that such a person exists: the synthetic file has about one
# priest of that kind, too. Values that enough people of the leaf share are drawn there. The others are handed up the
# tree until they meet enough people who have the same, and from there they come down to every leaf alike, as often as
# they occur in the larger group. What too few people have in the whole file is not drawn at all.


@stored("shared-donors")
@dataclass(frozen=True, eq=False)
class SharedDonors(Conditional):
    """A tree, groups of donors (of leaves, and of larger groups), and how often each leaf draws from which group."""

    tree: Tree
    values: Array
    groups: Groups

    @classmethod
    def of(cls, tree: Tree, values: Array, shared_by: int) -> SharedDonors:
        """Take a tree as it was grown, and share out its donors."""
        return cls(tree, values, Groups.of(tree, shared_by))

    def draw(self, predictors: Sequence[Variable], size: int, rng: np.random.Generator) -> Array:
        """Drop the records down the tree, and borrow a value from the leaf or from a group around it."""
        leaves = self.tree.leaves(code_table(predictors, size, self.tree.n_columns), rng)
        return np.asarray(self.values[self.groups.donors(leaves.astype(np.int64), rng)])


@stored("donor-groups")
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
        share = rng.random(len(leaves))
        return self.rows[places_within(self.ends, self.starts[group], self.starts[group + 1], share)]


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
