"""Linear programs that are solved again and again with another goal, each from where the last one ended.

HiGHS keeps its basis between two runs, so that a new goal costs a few pivots. It is taken from highspy where
that is installed, else from SciPy, which brings the same library; where SciPy has moved it, `scipy.optimize.linprog`
does the work, more slowly.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from discreet.core.arrays import Array, Floats


def highs_library() -> Any:
    """The HiGHS bindings: highspy, those of SciPy, or None."""
    try:
        highspy = importlib.import_module("highspy")
    except ImportError:
        pass
    else:
        return highspy, highspy.Highs
    try:
        from scipy.optimize._highspy import _core
    except ImportError:
        return None
    return (_core, _core._Highs) if hasattr(_core, "_Highs") else None


class Program:
    """Unknowns within bounds, and sums of them that are given (or lie within bounds).

    Examples
    --------
    >>> from scipy import sparse
    >>> five = np.array([5.0])
    >>> program = Program(sparse.csc_matrix([[1.0, 1.0]]), five, five, np.zeros(2), np.full(2, np.inf))
    >>> program.extreme(np.array([0]), np.array([1.0]), largest=True)
    5.0
    """

    def __init__(self, a: Any, low: Floats, high: Floats, lower: Floats, upper: Floats) -> None:
        self._a, self._low, self._high = a.tocsc().astype(float), low, high
        self._lower, self._upper = lower, upper
        self._goal = np.zeros(len(lower))
        self.solution = np.zeros(len(lower))
        self.duals = np.zeros(len(low))
        self.reduced = np.zeros(len(lower))
        library = highs_library()
        self._highs: Any = None
        if library is not None:
            self._core, make = library
            self._highs = make()
            self._load()

    def _load(self) -> None:
        core, highs = self._core, self._highs
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("threads", 1)
        # A new goal leaves the last solution feasible but not optimal: the primal method goes on from there.
        highs.setOptionValue("simplex_strategy", 4)
        model = core.HighsLp()
        model.num_col_, model.num_row_ = self._a.shape[1], self._a.shape[0]
        model.col_cost_ = self._goal
        model.col_lower_, model.col_upper_ = self._lower, self._upper
        model.row_lower_, model.row_upper_ = self._low, self._high
        model.a_matrix_.format_ = core.MatrixFormat.kColwise
        model.a_matrix_.num_col_, model.a_matrix_.num_row_ = self._a.shape[1], self._a.shape[0]
        model.a_matrix_.start_ = self._a.indptr.astype(np.int32)
        model.a_matrix_.index_ = self._a.indices.astype(np.int32)
        model.a_matrix_.value_ = self._a.data
        highs.passModel(model)

    def extreme(self, at: Array, weight: Floats, *, largest: bool) -> float:
        """The smallest or largest value of a weighted sum of unknowns; infinite, or NaN where nothing fits.

        Afterwards ``solution`` holds the unknowns, ``duals`` and ``reduced`` the shadow prices of sums and bounds.
        """
        if self._highs is None:
            return self._by_linprog(at, weight, largest=largest)
        core, highs = self._core, self._highs
        changed = np.union1d(np.flatnonzero(self._goal), at).astype(np.int32)
        self._goal[:] = 0.0
        self._goal[at] = weight
        highs.changeColsCost(len(changed), changed, self._goal[changed])
        highs.changeObjectiveSense(core.ObjSense.kMaximize if largest else core.ObjSense.kMinimize)
        highs.run()
        status = highs.getModelStatus()
        if status == core.HighsModelStatus.kUnbounded:
            return np.inf if largest else -np.inf
        if status != core.HighsModelStatus.kOptimal:
            # A basis gone stale can mislead the solver: from scratch it knows for sure.
            highs.clearSolver()
            highs.run()
            status = highs.getModelStatus()
            if status == core.HighsModelStatus.kUnboundedOrInfeasible and self._is_feasible():
                status = core.HighsModelStatus.kUnbounded
            if status == core.HighsModelStatus.kUnbounded:
                return np.inf if largest else -np.inf
            if status != core.HighsModelStatus.kOptimal:
                return float("nan")
        found = highs.getSolution()
        self.solution = np.array(found.col_value)
        self.duals, self.reduced = np.array(found.row_dual), np.array(found.col_dual)
        return float(highs.getInfo().objective_function_value)

    def _is_feasible(self) -> bool:
        """Whether anything fits at all: a bound that is infinite says "protected", and must not come from nothing."""
        core, highs = self._core, self._highs
        places = np.arange(len(self._goal), dtype=np.int32)
        highs.changeColsCost(len(places), places, np.zeros(len(places)))
        highs.clearSolver()
        highs.run()
        fits = highs.getModelStatus() == core.HighsModelStatus.kOptimal
        highs.changeColsCost(len(places), places, self._goal)
        return bool(fits)

    def _by_linprog(self, at: Array, weight: Floats, *, largest: bool) -> float:
        from scipy import sparse
        from scipy.optimize import linprog

        goal = np.zeros(len(self._lower))
        goal[at] = -weight if largest else weight
        equal = self._low == self._high
        finite_high, finite_low = ~equal & np.isfinite(self._high), ~equal & np.isfinite(self._low)
        rows = self._a.tocsr()
        above = (
            sparse.vstack([rows[finite_high], -rows[finite_low]])
            if (finite_high | finite_low).any()
            else None
        )
        found = linprog(
            goal,
            A_ub=above,
            b_ub=None if above is None else np.concatenate([self._high[finite_high], -self._low[finite_low]]),
            A_eq=rows[equal],
            b_eq=self._low[equal],
            bounds=np.stack([self._lower, self._upper], axis=1),
            method="highs",
        )
        if found.status == 3:
            return np.inf if largest else -np.inf
        if found.status != 0:
            return float("nan")
        self.solution = found.x
        return float(-found.fun if largest else found.fun)


# How far can a sum of counts go, when every count is a whole number?
#
# A linear program may end in half a person. Where it does, an integer program says how far whole people can go; only
# what whole numbers reach protects a count.


SECONDS = 10.0
_NEAR = 1e-6


def whole_solution(solution: Floats, a: Any, right: Floats) -> Floats | None:
    """A solution in whole numbers, if the one of the linear program is one; checked against the sums."""
    rounded = np.rint(solution)
    if np.abs(solution - rounded).max(initial=0.0) > _NEAR:
        return None
    return rounded if (np.abs(rounded @ a - right) < 0.5).all() else None


def whole_extreme(
    a: Any, right: Floats, lower: Floats, upper: Floats, goal: Floats, *, largest: bool
) -> Floats | None:
    """Whole numbers that add up to what is given and make a weighted sum extreme; None where none were found in time.

    After the time limit the best ones so far are given: what they reach can be reached, though perhaps not only that.

    Examples
    --------
    >>> from scipy import sparse
    >>> a = sparse.csc_matrix([[2], [2]])
    >>> whole_extreme(a, np.array([6.0]), np.zeros(2), np.full(2, 9.0), np.array([1.0, 0.0]), largest=True).tolist()
    [3.0, 0.0]
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    answer = milp(
        -goal if largest else goal,
        constraints=[LinearConstraint(a.T, right, right)] if a.shape[1] else [],
        bounds=Bounds(lower, upper),
        integrality=np.ones(len(lower)),
        options={"time_limit": SECONDS, "mip_rel_gap": 0.0},
    )
    return None if answer.x is None else np.rint(answer.x)
