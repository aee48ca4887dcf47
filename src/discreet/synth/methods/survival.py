"""Survival times with their events, drawn together from the donors of a survival tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from discreet.core.arrays import Array
from discreet.core.errors import ColumnError, ParameterError
from discreet.numerics.trees.conditional_inference import grow_survival
from discreet.numerics.trees.tree import Tree
from discreet.synth.methods.method import (
    JointConditional,
    JointMethod,
    JointTask,
    check_number,
    check_whole,
)
from discreet.synth.variables import Variable, code_table


@dataclass(frozen=True)
class SurvivalTree(JointMethod):
    """A tree that splits by log-rank scores; a time and whether it ended in an event come from one donor.

    Parameters
    ----------
    mincriterion
        One minus the p-value that a split must exceed.
    min_leaf
        Fewest records in a leaf.
    """

    name = "survival-tree"
    also = ("survctree",)
    targets: ClassVar[frozenset[str]] = frozenset({"number"})
    mincriterion: float = 0.9
    min_leaf: int = 5

    def __post_init__(self) -> None:
        check_number("mincriterion", self.mincriterion)
        if not self.mincriterion < 1:
            raise ParameterError("mincriterion must be below 1: it is one minus a p-value.")
        check_whole("min_leaf", self.min_leaf, least=1)

    def fit_joint(self, task: JointTask) -> PairDonors:
        """Grow the tree."""
        time, *events = task.targets
        if not time.is_number or time.values.min() < 0:
            name = time.name.removesuffix(": state")
            raise ColumnError(
                f"The survival time '{name}' must be a number of at least 0 without missing values or special codes."
            )
        happened = events[0].values.astype(np.float64) if events else None
        # Where none of these records had the event (a stratum, a resample), nothing tells their survival apart.
        seen = task.predictors if happened is None or happened.any() else ()
        tree = grow_survival(
            code_table(seen, len(time)),
            [variable.feature for variable in seen],
            time.values,
            happened if happened is None or happened.any() else None,
            rng=task.rng,
            weights=task.weights,
            mincriterion=self.mincriterion,
            min_leaf=self.min_leaf,
        )
        return PairDonors(tree, [target.values for target in task.targets])


class PairDonors(JointConditional):
    """A tree, and the times and events of its donors."""

    def __init__(self, tree: Tree, values: Sequence[Array]) -> None:
        self.tree = tree
        self.values = list(values)

    def draw(self, predictors: Sequence[Variable], size: int, rng: np.random.Generator) -> list[Array]:
        """Drop the records down the tree and borrow time and event from one donor each."""
        rows = self.tree.draw(code_table(predictors, size), rng)
        return [values[rows] for values in self.values]

    def state(self) -> dict[str, Any]:
        """Return the tree and the values."""
        return {"tree": self.tree.to_arrays(), "values": self.values}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Self:
        """Make the law again."""
        return cls(Tree.from_arrays(state["tree"]), state["values"])
