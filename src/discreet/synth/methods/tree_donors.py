"""Trees whose leaves hold observed values: a synthetic record falls into a leaf and borrows a value there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from discreet.errors import ParameterError
from discreet.synth.methods.method import Conditional, Floats, Method
from discreet.synth.variables import Variable
from discreet.trees import Tree, grow_classification, grow_regression
from discreet.trees.conditional_inference import grow_conditional
from discreet.trees.forest import Forest, grow_forest


def code_table(predictors: Sequence[Variable], size: int) -> npt.NDArray[Any]:
    """Put the coded predictors side by side, one column after the other in memory."""
    wide = any(variable.codes.dtype == np.int32 for variable in predictors)
    table = np.empty((size, len(predictors)), dtype=np.int32 if wide else np.int16, order="F")
    for place, variable in enumerate(predictors):
        table[:, place] = variable.codes
    return table


@dataclass(frozen=True)
class Cart(Method):
    """Classification and regression tree (Breiman and others 1984); the default.

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
    """

    name = "cart"
    gives_observed_values = True
    min_leaf: int = 5
    min_split: int | None = None
    cp: float = 1e-8
    max_depth: int = 60

    def __post_init__(self) -> None:
        if self.min_leaf < 1:
            raise ParameterError("min_leaf must be at least 1.")
        if self.cp < 0:
            raise ParameterError("cp must not be negative.")

    def fit(
        self,
        target: Variable,
        predictors: Sequence[Variable],
        *,
        weights: Floats | None = None,
        proper: bool = False,
        rng: np.random.Generator,
    ) -> TreeDonors:
        """Grow the tree."""
        codes = code_table(predictors, len(target))
        features = [variable.feature for variable in predictors]
        limits: dict[str, Any] = {
            "min_leaf": self.min_leaf,
            "min_split": self.min_split,
            "cp": self.cp,
            "max_depth": self.max_depth,
        }
        if target.is_number:
            tree = grow_regression(codes, features, target.values, weights=weights, rng=rng, **limits)
        else:
            tree = grow_classification(
                codes, features, target.values, target.levels, weights=weights, rng=rng, **limits
            )
        return TreeDonors(tree, target.values)


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
    mincriterion: float = 0.9
    min_leaf: int = 5
    max_depth: int = 60

    def __post_init__(self) -> None:
        if not 0 <= self.mincriterion < 1:
            raise ParameterError("mincriterion must be at least 0 and below 1.")

    def fit(
        self,
        target: Variable,
        predictors: Sequence[Variable],
        *,
        weights: Floats | None = None,
        proper: bool = False,
        rng: np.random.Generator,
    ) -> TreeDonors:
        """Grow the tree."""
        tree = grow_conditional(
            code_table(predictors, len(target)),
            [variable.feature for variable in predictors],
            target.values,
            rng=rng,
            n_classes=target.levels,
            weights=weights,
            mincriterion=self.mincriterion,
            min_leaf=self.min_leaf,
            max_depth=self.max_depth,
        )
        return TreeDonors(tree, target.values)


@dataclass(frozen=True)
class Rf(Method):
    """Random forest (Breiman 2001): the leaves that a record falls into, over all trees, are one pool of donors.

    Parameters
    ----------
    n_trees
        Number of trees.
    features_per_split
        How many predictors a split may choose from; the usual share unless given.
    min_leaf
        Fewest records in a leaf.
    """

    name = "rf"
    also: ClassVar[tuple[str, ...]] = ("forest", "ranger")
    gives_observed_values = True
    n_trees: int = 10
    features_per_split: int | None = None
    min_leaf: int = 5

    def __post_init__(self) -> None:
        if self.n_trees < 1:
            raise ParameterError("n_trees must be at least 1.")

    def fit(
        self,
        target: Variable,
        predictors: Sequence[Variable],
        *,
        weights: Floats | None = None,
        proper: bool = False,
        rng: np.random.Generator,
    ) -> ForestDonors:
        """Grow the forest."""
        per_split = "auto" if self.features_per_split is None else self.features_per_split
        return self._grown(target, predictors, weights, rng, per_split)

    def _grown(
        self,
        target: Variable,
        predictors: Sequence[Variable],
        weights: Floats | None,
        rng: np.random.Generator,
        per_split: Any,
    ) -> ForestDonors:
        forest = grow_forest(
            code_table(predictors, len(target)),
            [variable.feature for variable in predictors],
            target.values,
            rng=rng,
            n_classes=target.levels,
            n_trees=self.n_trees,
            features_per_split=per_split,
            weights=weights,
            min_leaf=self.min_leaf,
        )
        return ForestDonors(forest, target.values)


@dataclass(frozen=True)
class Bag(Rf):
    """Bagging (Breiman 1996): a random forest whose splits may choose from all predictors."""

    name = "bag"
    also: ClassVar[tuple[str, ...]] = ()

    def fit(
        self,
        target: Variable,
        predictors: Sequence[Variable],
        *,
        weights: Floats | None = None,
        proper: bool = False,
        rng: np.random.Generator,
    ) -> ForestDonors:
        """Grow the trees."""
        return self._grown(target, predictors, weights, rng, None)


class ForestDonors(Conditional):
    """A forest and the observed values in its leaves."""

    def __init__(self, forest: Forest, values: npt.NDArray[Any]) -> None:
        self.forest = forest
        self.values = values

    def draw(self, predictors: Sequence[Variable], size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Drop the records down all trees and borrow a value from the pool."""
        drawn: npt.NDArray[Any] = self.values[self.forest.draw(code_table(predictors, size), rng)]
        return drawn

    def state(self) -> dict[str, Any]:
        """Return the forest and the values."""
        return {"forest": self.forest.to_arrays(), "values": self.values}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Self:
        """Make the law again."""
        return cls(Forest.from_arrays(state["forest"]), state["values"])


class TreeDonors(Conditional):
    """A tree and the observed values in its leaves."""

    def __init__(self, tree: Tree, values: npt.NDArray[Any]) -> None:
        self.tree = tree
        self.values = values

    def draw(self, predictors: Sequence[Variable], size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Drop the records down the tree and borrow a value in each leaf."""
        drawn: npt.NDArray[Any] = self.values[self.tree.draw(code_table(predictors, size), rng)]
        return drawn

    def state(self) -> dict[str, Any]:
        """Return the tree and the values."""
        return {"tree": self.tree.to_arrays(), "values": self.values}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Self:
        """Make the law again."""
        return cls(Tree.from_arrays(state["tree"]), state["values"])
