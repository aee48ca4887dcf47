"""Private synthesis from a histogram with noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet import dp
from discreet.core.errors import ParameterError
from discreet.core.guarantees import DifferentialPrivacy
from discreet.core.method_cards import method
from discreet.core.randomness import Seed
from discreet.core.roles import Columns
from discreet.dp.entropy import refuse_seeded
from discreet.microdata import Microdata
from discreet.synth.coded_columns import levels_of
from discreet.synth.declared_columns import pay_purely
from discreet.synth.private_histograms.cells import boxed
from discreet.synth.private_histograms.fitted_cells import FittedCells
from discreet.synth.synthesizer import Stream, Synthesizer, empty_like, seed_of


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
class PerturbedHistogram(Synthesizer):
    """Which records come from a histogram whose counts carry noise?

    Counts of all cells get discrete Laplace noise of scale 2 / epsilon, counts below zero become zero, and any number
    of records is drawn from what is left. Neighbors are files of the same size that differ in one record, which moves
    two counts by one.

    Parameters
    ----------
    bins_per_dim
        How many bins a number has.
    epsilon
        The privacy budget.
    domain
        ``{column: (low, high)}`` of a number, ``[levels]`` of a category; public. Values beyond are held to it. Whole
        ends or levels declare whole numbers and ``(0.0, 1.0)`` decimals: what is drawn has the declared types.
    never_missing
        Columns that cannot be missing.
    leave_out
        Columns that the synthetic file shall not have.

    When not to use it
    ------------------
    With more than a few columns: cells outnumber records, and noise outweighs them. `AIM` is made for that.

    Examples
    --------
    >>> import polars as pl
    >>> people = Microdata(pl.DataFrame({"works": [True] * 900 + [False] * 100}))
    >>> model = PerturbedHistogram(2, 1.0, never_missing="works").fit(people)
    >>> print(model.guarantee.split(" for ")[0])
    1-differential privacy against replacing one record
    """

    bins_per_dim: int
    epsilon: float
    domain: Mapping[str, Any] | None = None
    never_missing: Columns = None
    leave_out: Columns = None

    def __post_init__(self) -> None:
        dp.checked_epsilon(self.epsilon)
        many = self.bins_per_dim
        if isinstance(many, bool) or not isinstance(many, int) or many < 1:
            raise ParameterError("bins_per_dim must be a whole number of 1 or more.")

    def fit(
        self,
        data: Microdata,
        *,
        progress: bool = False,
        ledger: dp.Ledger | None = None,
        seed: Seed = None,
    ) -> FittedCells:
        """Count with noise; with a ledger the price is entered before."""
        refuse_seeded(ledger, seed)
        box, frame, left_out = boxed(data, self.domain, self.bins_per_dim, self.never_missing, self.leave_out)
        rate = dp.rational_epsilon(self.epsilon, 2)
        counts = np.bincount(box.encode(frame), minlength=box.cells)
        pay_purely(ledger, data, "perturbed-histogram", self.epsilon, values=box.cells, sensitivity=2.0)
        stream = Stream(seed_of(seed), "perturbed-histogram", seeded=seed is not None)
        noisy = counts + dp.discrete_laplace(rate, box.cells, stream.words("counts"))
        fitted = FittedCells(
            empty_like(data, frame, levels_of(box.attributes)),
            frame.height,
            box=box,
            counts=np.maximum(noisy, 0).astype(np.float64),
            left_out=left_out,
        )
        claim = DifferentialPrivacy(
            self.epsilon,
            against="replacing one record",
            adjacency="replace",
            covers=" for the noisy counts, and so for any number of files drawn from them; the number of records and "
            "the declared domain count as public",
        )
        return fitted.promise(claim, seeded=stream.seeded, ledger=ledger)
