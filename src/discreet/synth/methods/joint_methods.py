"""Several columns at once: categories as a table, and survival times with their events.

A table is drawn as it is, every combination, or as its margins say. Times and events come together from the donors of a
survival tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, ClassVar

import numpy as np

from discreet import dp
from discreet.core.arrays import Array, Floats
from discreet.core.constraints import AtLeast, Between, Public
from discreet.core.errors import ColumnError, ParameterError, unknown_name
from discreet.numerics.alias_tables import drawn_places
from discreet.numerics.codes import CodedColumns
from discreet.numerics.proportional_fitting import AxisMargin, fit_margins
from discreet.numerics.trees.conditional_inference import grow_survival
from discreet.numerics.trees.tree import Tree
from discreet.synth.column_forms import Variable, code_table
from discreet.synth.methods.method import JointConditional, JointMethod, JointTask
from discreet.synth.saved_models import stored

_CATEGORIES = frozenset({"number", "binary", "category", "ordered"})


@dataclass(frozen=True)
class Catall(JointMethod):
    """The saturated table of the first columns: any combination, as often as in the data.

    Combinations that cannot be are ruled out with ``constraints`` of the synthesis, which redraws them.

    Parameters
    ----------
    prior
        Records that are spread evenly over all cells before drawing, so that unseen combinations can occur.
    epsilon
        Add discrete Laplace noise of scale 1/epsilon to every cell. The noisy table is epsilon-differentially private
        (one record more or less) only where the levels were declared beforehand and no other column is synthesized;
        otherwise the synthesis refuses it. With a seed the noise is the same and nothing is guaranteed.
    max_cells
        The largest table that is made.
    """

    name = "catall"
    targets: ClassVar[frozenset[str]] = _CATEGORIES
    needs_predictors = False
    prior: Annotated[float, AtLeast(0)] = 1.0
    epsilon: float | None = None
    max_cells: Annotated[float, AtLeast(0)] = 1e8

    def __post_init__(self) -> None:
        if self.epsilon is not None:
            dp.checked_epsilon(self.epsilon)

    def fit_joint(self, task: JointTask) -> TableLaw:
        """Count the cells."""
        shape = _shape(task.targets, self.max_cells)
        counts = _counts(task.targets, shape, task.weights)
        total = counts.sum()
        if self.epsilon is not None:
            counts = counts + dp.discrete_laplace(dp.rational_epsilon(self.epsilon), len(counts), task.words)
            # The number of records is itself told by the table; it is read off the noisy one.
            total = max(counts.sum(), 1.0)
            counts = np.maximum(counts, 0.0)
        return TableLaw(shape, np.cumsum(counts + self.prior / len(counts)), total=round(float(total)))


@dataclass(frozen=True)
class Ipf(JointMethod):
    """A log-linear table of the first columns that has the margins of the data and nothing else.

    Parameters
    ----------
    margins
        Lists of columns whose joint counts are kept; all pairs unless given.
    prior
        Records that are spread evenly over all cells of each margin.
    tolerance
        Largest difference of a margin, in records, at which the fitting ends.
    max_rounds
        Of the fitting.
    max_cells
        The largest table that is made.
    """

    name = "ipf"
    targets: ClassVar[frozenset[str]] = _CATEGORIES
    needs_predictors = False
    margins: Annotated[Sequence[Sequence[str]], Public()] | None = None
    prior: Annotated[float, AtLeast(0)] = 1.0
    tolerance: Annotated[float, AtLeast(0)] = 1e-3
    max_rounds: Annotated[int, AtLeast(1)] = 1000
    max_cells: Annotated[float, AtLeast(0)] = 1e8

    def fit_joint(self, task: JointTask) -> TableLaw:
        """Fit the margins in turn, from a table of ones."""
        shape = _shape(task.targets, self.max_cells)
        names = [target.name.removesuffix(": state") for target in task.targets]
        sets = self._margins(names)
        margins = []
        for axes in sets:
            own = tuple(levels if axis in axes else 1 for axis, levels in enumerate(shape))
            counts = _counts(
                [task.targets[axis] for axis in axes], tuple(shape[axis] for axis in axes), task.weights
            )
            margins.append(AxisMargin(axes, (counts + self.prior / len(counts)).reshape(own)))
        fit = fit_margins(np.ones(shape), margins, tolerance=self.tolerance, rounds=self.max_rounds)
        return TableLaw(
            shape,
            np.cumsum(fit.cells.ravel()),
            total=len(task.targets[0]),
            left=fit.gap,
            tolerance=self.tolerance,
        )

    def _margins(self, names: Sequence[str]) -> list[tuple[int, ...]]:
        if self.margins is None:
            return list(combinations(range(len(names)), min(2, len(names))))
        sets = []
        for given in self.margins:
            margin = [given] if isinstance(given, str) else given
            for name in margin:
                if name not in names:
                    raise ColumnError(f"{unknown_name(name, names)} It was named in a margin of ipf.")
            sets.append(tuple(sorted(names.index(name) for name in margin)))
        covered = {axis for axes in sets for axis in axes}
        absent = [name for axis, name in enumerate(names) if axis not in covered]
        if absent:
            raise ParameterError(f"No margin of ipf speaks of column '{absent[0]}'. Add one that does.")
        return sets


@stored("table-law")
@dataclass(frozen=True, eq=False)
class TableLaw(JointConditional):
    """A table from which combinations are drawn; ``mass`` is the running total of its cells."""

    shape: tuple[int, ...]
    mass: Floats
    total: int
    left: float = 0.0
    tolerance: Annotated[float, AtLeast(0)] = 0.0

    @property
    def notes(self) -> tuple[str, ...]:
        """Whether the margins were reached."""
        if self.left <= self.tolerance:
            return ()
        return (
            f"ipf left a margin {self.left:.3g} records off; the margins may contradict one another, or max_rounds is "
            "too small.",
        )

    def draw(self, predictors: Sequence[Variable], size: int, rng: np.random.Generator) -> list[Array]:
        """Draw cells and read the levels off them."""
        levels = np.unravel_index(drawn_places(self.mass, size, rng), self.shape)
        return [level.astype(np.int32) for level in levels]


def _shape(targets: Sequence[Variable], most: float) -> tuple[int, ...]:
    shape = tuple(target.levels for target in targets)
    cells = float(np.prod([float(levels) for levels in shape]))
    if cells > most:
        raise ParameterError(
            f"The joint table of {len(shape)} columns has {cells:.3g} cells, more than max_cells={most:.3g}. Put fewer "
            "columns in it, or group their levels."
        )
    return shape


def _counts(targets: Sequence[Variable], shape: tuple[int, ...], weights: Floats | None) -> Floats:
    return CodedColumns([target.values for target in targets], shape).counted(weights).ravel()


# Survival times with their events, drawn together from the donors of a survival tree.


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
    mincriterion: Annotated[float, Between(0, 1, below=True)] = 0.9
    min_leaf: Annotated[int, AtLeast(1)] = 5

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


@stored("pair-donors")
@dataclass(frozen=True, eq=False)
class PairDonors(JointConditional):
    """A tree, and the times and events of its donors."""

    tree: Tree
    values: Sequence[Array]

    def draw(self, predictors: Sequence[Variable], size: int, rng: np.random.Generator) -> list[Array]:
        """Drop the records down the tree and borrow time and event from one donor each."""
        rows = self.tree.draw(code_table(predictors, size), rng)
        return [values[rows] for values in self.values]
