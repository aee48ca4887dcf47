"""Private synthesis from a histogram that is mixed with an even one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import dp
from discreet.core.arrays import Floats
from discreet.core.errors import ParameterError
from discreet.core.guarantees import DifferentialPrivacy
from discreet.core.method_cards import method
from discreet.core.randomness import Seed
from discreet.core.roles import Columns
from discreet.dp.entropy import refuse_seeded
from discreet.microdata import Microdata
from discreet.synth.coded_columns import levels_of
from discreet.synth.declared_columns import pay_purely
from discreet.synth.private_histograms.cells import boxed, cells_declared
from discreet.synth.private_histograms.fitted_cells import FittedCells
from discreet.synth.synthesizer import Stream, Synthesizer, empty_like, seed_of

_GRID = 2**60


@method(
    aim="guarantee",
    work="class-wise",
    references=(
        "Wasserman, L. and Zhou, S. (2010). A statistical framework for differential privacy. Journal of the "
        "American Statistical Association 105(489), 375–389.",
        "Bowen, C. M. and Liu, F. (2020). Comparative study of differentially private data synthesis methods. "
        "Statistical Science 35(2), 280–307.",
    ),
)
@dataclass(frozen=True)
class SmoothHistogram(Synthesizer):
    """Which records come from a histogram that is mixed with an even one until one record no longer shows?

    Every record is drawn from (1 - w) histogram + w even, with w so large that one record of the original changes the
    chance of a drawn one by no more than exp(epsilon / rows); all rows together then keep epsilon (Wasserman and Zhou
    2010). The rows are drawn once, when the model is fitted: drawing more would cost more, so a synthetic file has at
    most so many. Neighbors are files of the same size that differ in one record; the number of records is public.

    Parameters
    ----------
    bins_per_dim
        How many bins a number has.
    epsilon
        The privacy budget of all rows.
    domain
        ``{column: (low, high)}`` of a number, ``[levels]`` of a category; public. Values beyond are held to it. Whole
        ends or levels declare whole numbers and ``(0.0, 1.0)`` decimals: what is drawn has the declared types.
    never_missing
        Columns that cannot be missing.
    n_rows
        How many rows are drawn; as many as the file has unless given. Fewer rows leave each more of the budget, which
        is the only way to a small weight.
    leave_out
        Columns that the synthetic file shall not have.

    When not to use it
    ------------------
    Nearly always: the weight of the even part is about K / (K + epsilon) for K cells, whatever the number of records.
    `PerturbedHistogram` is far better at the same epsilon. It is here because others are compared with it.

    Examples
    --------
    >>> plan = SmoothHistogram(3, 1.0, domain={"x": (0, 1), "y": (0, 1)}, never_missing=["x", "y"])
    >>> round(plan.mixing_weight(5000), 5)
    0.89999
    """

    bins_per_dim: int
    epsilon: float
    domain: Mapping[str, Any] | None = None
    never_missing: Columns = None
    n_rows: int | None = None
    leave_out: Columns = None

    def __post_init__(self) -> None:
        dp.checked_epsilon(self.epsilon)
        for name, value in (("bins_per_dim", self.bins_per_dim), ("n_rows", self.n_rows)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise ParameterError(f"{name} must be a whole number of 1 or more.")

    def mixing_weight(self, n: int) -> float:
        """The weight of the even part for a file of ``n`` records with the declared domain."""
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise ParameterError("n must be a whole number of 1 or more.")
        cells = cells_declared(self.domain, self.bins_per_dim, self.never_missing)
        return float(exact_weight(cells, n, self.n_rows or n, self.epsilon))

    def fit(
        self,
        data: Microdata,
        *,
        progress: bool = False,
        ledger: dp.Ledger | None = None,
        seed: Seed = None,
    ) -> FittedCells:
        """Draw the rows; with a ledger the price is entered before."""
        refuse_seeded(ledger, seed)
        box, frame, left_out = boxed(data, self.domain, self.bins_per_dim, self.never_missing, self.leave_out)
        cells = box.encode(frame)
        rows = self.n_rows or len(cells)
        weight = exact_weight(box.cells, len(cells), rows, self.epsilon)
        pay_purely(ledger, data, "smooth-histogram", self.epsilon, values=rows)
        stream = Stream(seed_of(seed), "smooth-histogram", seeded=seed is not None)
        words = stream.words("rows")
        even = dp.bernoulli([weight], np.zeros(rows, dtype=np.int64), words)
        own = cells[dp.uniform_below(len(cells), rows, words)]
        drawn = np.where(even, dp.uniform_below(box.cells, rows, words), own)
        fitted = FittedCells(
            empty_like(data, frame, levels_of(box.attributes)), rows, box=box, drawn=drawn, left_out=left_out
        )
        claim = DifferentialPrivacy(
            self.epsilon,
            against="replacing one record",
            adjacency="replace",
            covers=f" for the {rows:,} rows that were drawn; the number of records and the declared domain count as "
            "public",
        )
        return fitted.promise(claim, seeded=stream.seeded, ledger=ledger)


def exact_weight(cells: int, n: int, rows: int, epsilon: float) -> Fraction:
    """The weight of the even part, never less than K / (K + n (exp(epsilon / rows) - 1)), as a fraction.

    Examples
    --------
    >>> [round(float(exact_weight(100, 5000, 5000, epsilon)), 4) for epsilon in (1, 4)]
    [0.9901, 0.9615]
    """
    # The exponential is lowered by more than its error: the weight is never too small.
    grown = Fraction(math.expm1(min(float(epsilon) / rows, 40.0)) * (1 - 2**-40))
    weight = Fraction(cells) / (cells + n * grown)
    return min(Fraction(math.ceil(weight * _GRID), _GRID), Fraction(1))


def mixed_law(counts: Floats, weight: float) -> Floats:
    """The chances of cells for one drawn row."""
    return np.asarray((1 - weight) * counts / counts.sum() + weight / len(counts))
