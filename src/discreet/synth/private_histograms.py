"""Private synthesis from a histogram, with noise or mixed with an even one.

A file is then cells of a box: every column in bins or levels that are declared, and all of them crossed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
import polars as pl

from discreet import dp, engine
from discreet.core.arrays import Floats, Integers
from discreet.core.constraints import AtLeast, Public
from discreet.core.declared_types import all_declared, is_range
from discreet.core.errors import ParameterError
from discreet.core.guarantees import DifferentialPrivacy
from discreet.core.method_cards import method
from discreet.core.randomness import Seed
from discreet.core.roles import Columns
from discreet.dp.costs import refuse_seeded
from discreet.dp.entropy import Stream
from discreet.dp.sensitivity import refuse_several_records
from discreet.microdata import Microdata, require_microdata
from discreet.numerics.alias_tables import drawn_places
from discreet.numerics.codes import CodedColumns
from discreet.synth import binned_columns
from discreet.synth.binned_columns import Attribute, declared, levels_of, pay_purely
from discreet.synth.column_forms import listed
from discreet.synth.saved_models import stored
from discreet.synth.synthesizer import Fitted, Synthesizer, empty_like, seed_of

_REFERENCES = (
    "Wasserman, L. and Zhou, S. (2010). A statistical framework for differential privacy. Journal of the "
    "American Statistical Association 105(489), 375–389.",
    "Bowen, C. M. and Liu, F. (2020). Comparative study of differentially private data synthesis methods. "
    "Statistical Science 35(2), 280–307.",
)


@dataclass(frozen=True)
class _Histogram(Synthesizer):
    """What both histograms are told of the columns and of the budget."""

    bins_per_dim: Annotated[int, AtLeast(1)]
    epsilon: float
    domain: Annotated[Mapping[str, Any], Public()] | None = None
    never_missing: Annotated[Columns, Public()] = None

    def __post_init__(self) -> None:
        dp.checked_epsilon(self.epsilon)

    def _boxed(self, data: Microdata, leave_out: Columns) -> tuple[Box, pl.DataFrame, dict[str, str]]:
        """Declare the box of a file; everything that can be refused is refused here."""
        require_microdata(data)
        domain, never = self.domain or {}, listed(self.never_missing)
        names, left_out = declared_columns(data, leave_out, domain=domain, never_missing=never)
        frame = all_declared(engine.collect(data, names), domain)
        box = Box(
            tuple(
                declared(frame[name], domain.get(name), bins=self.bins_per_dim, never_missing=name in never)
                for name in names
            )
        )
        box.check()
        if not frame.height:
            raise ParameterError("The file has no record.")
        return box, frame, left_out


@method(aim="guarantee", work="class-wise", references=_REFERENCES)
@dataclass(frozen=True)
class PerturbedHistogram(_Histogram):
    """Which records come from a histogram whose counts carry noise?

    Counts of all cells get discrete Laplace noise of scale 2 / epsilon, counts below zero become zero, and any number
    of records is drawn from what is left. Neighbors are files of the same size that differ in one record, which moves
    two counts by one.

    Also known as: perturbed histogram; noisy histogram.

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

    leave_out: Annotated[Columns, Public()] = None

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
        box, frame, left_out = self._boxed(data, self.leave_out)
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


# Private synthesis from a histogram that is mixed with an even one.
_GRID = 2**60


@method(aim="guarantee", work="class-wise", references=_REFERENCES)
@dataclass(frozen=True)
class SmoothHistogram(_Histogram):
    """Which records come from a histogram that is mixed with an even one until one record no longer shows?

    Every record is drawn from (1 - w) histogram + w even, with w so large that one record of the original changes the
    chance of a drawn one by no more than exp(epsilon / rows); all rows together then keep epsilon (Wasserman and Zhou
    2010). The rows are drawn once, when the model is fitted: drawing more would cost more, so a synthetic file has at
    most so many. Neighbors are files of the same size that differ in one record; the number of records is public.

    Also known as: smooth histogram.

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

    n_rows: Annotated[int, AtLeast(1)] | None = None
    leave_out: Annotated[Columns, Public()] = None

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
        box, frame, left_out = self._boxed(data, self.leave_out)
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


MOST_CELLS = 10_000_000


@stored("histogram-box")
@dataclass(frozen=True, eq=False)
class Box:
    """Columns in bins, and the cells of all of them together."""

    attributes: tuple[Attribute, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """How many codes every column has."""
        return tuple(attribute.size for attribute in self.attributes)

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return math.prod(self.shape)

    def check(self) -> None:
        """Refuse more cells than can be held."""
        if self.cells > MOST_CELLS:
            raise ParameterError(
                f"The columns have {self.cells:,} cells together, more than {MOST_CELLS:,}. Take fewer bins or leave "
                "columns out; AIM is made for many columns."
            )

    def encode(self, frame: pl.DataFrame) -> Integers:
        """The cell of every record; values beyond a declared range are held to it."""
        codes = [attribute.encode(frame[attribute.name]) for attribute in self.attributes]
        return CodedColumns(codes, self.shape).crossed()

    def frame(self, cells: Integers, stream: Stream) -> pl.DataFrame:
        """Records within cells; numbers are spread evenly over their bins."""
        codes = np.unravel_index(cells, self.shape)
        return pl.DataFrame(
            [a.drawn_within(own, stream) for a, own in zip(self.attributes, codes, strict=True)]
        )


def declared_columns(
    data: Microdata, leave_out: Columns, **named: Iterable[str] | None
) -> tuple[list[str], dict[str, str]]:
    """The columns to synthesize, and those left out with the reason; records must be a person each."""
    refuse_several_records(data)
    left_out = binned_columns.left_out_of(data, leave_out, **named)
    names = [name for name in data.columns if name not in left_out]
    if not names:
        raise ParameterError("There is no column to synthesize. Name fewer columns in leave_out.")
    return names, left_out


def cells_declared(domain: Mapping[str, Any] | None, bins: int, never_missing: Columns) -> int:
    """How many cells a declared domain has: ``bins`` for a range, and one for missing where it may be."""
    many = 1
    for name, values in (domain or {}).items():
        many *= (bins if is_range(values) else len(set(values))) + (name not in listed(never_missing))
    return many


@stored("fitted-cells")
@dataclass(eq=False, repr=False, kw_only=True)
class FittedCells(Fitted):
    """Noisy counts of cells, or the cells of rows that were drawn once.

    Attributes
    ----------
    counts
        Noisy counts, none below zero; None where rows were drawn.
    drawn
        The cells of the rows that were drawn; None where counts are known.
    left_out
        Columns that the synthetic file does not have, and why.
    """

    box: Box
    left_out: Mapping[str, str]
    counts: Floats | None = None
    drawn: Integers | None = None

    def draw(self, n: int, stream: Stream) -> pl.DataFrame:
        """Draw from the noisy counts, or hand out the rows that were drawn."""
        if self.drawn is not None:
            if n > len(self.drawn):
                raise ParameterError(
                    f"The {len(self.drawn):,} rows were drawn when the model was fitted, and more would cost more of "
                    "the budget. Ask for fewer, or fit again with n_rows."
                )
            return self.box.frame(self.drawn[:n], stream)
        assert self.counts is not None
        weights = self.counts if self.counts.sum() > 0 else np.ones_like(self.counts)
        return self.box.frame(drawn_places(np.cumsum(weights), n, stream("cells")), stream)
