"""Trees whose leaves hold observed values: a synthetic record falls into a leaf and borrows a value there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from discreet.errors import ParameterError
from discreet.synth.methods.method import Conditional, Floats, Method
from discreet.synth.variables import Variable
from discreet.trees import Tree, grow_classification, grow_regression


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
