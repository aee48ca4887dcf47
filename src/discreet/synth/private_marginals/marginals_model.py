"""What generators from noisy margins have in common: parameters, the order of a fit, and what is claimed of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import polars as pl

from discreet import dp
from discreet.core.arrays import Integers
from discreet.core.constraints import AtLeast, Between, HoldsValues, Public
from discreet.core.errors import ParameterError
from discreet.core.randomness import Seed
from discreet.core.roles import Columns
from discreet.dp.costs import refuse_seeded
from discreet.dp.entropy import Stream
from discreet.microdata import Microdata
from discreet.synth.binned_columns import Attribute, levels_of
from discreet.synth.private_marginals.graphical_model import (
    Clique,
    GraphicalModel,
    drawn_columns,
)
from discreet.synth.private_marginals.marginals_preparation import (
    Alone,
    Combination,
    Prepared,
    found,
    measured_alone,
    prepared,
)
from discreet.synth.private_marginals.noisy_margins import Grouping, check_noise
from discreet.synth.saved_models import stored
from discreet.synth.synthesizer import Fitted, Synthesizer, empty_like, seed_of

ALONE = 0.2  # of rho: columns by themselves


@dataclass(frozen=True)
class _Counted(Synthesizer):
    """Columns are counted by themselves, with noise; a model is fitted to their groups with the rest of the budget."""

    epsilon: float
    delta: Annotated[float, Between(0, 1, above=True, below=True)] = 1e-6
    domain: Annotated[Mapping[str, Any], Public()] | None = None
    never_missing: Annotated[Columns, Public()] = None
    bins: Annotated[int, AtLeast(2)] = 128
    borders: Annotated[Mapping[str, Sequence[Any]], HoldsValues(by_column=True)] | None = None
    groups: Annotated[int, AtLeast(2)] = 16
    impossible: Annotated[Sequence[Mapping[str, Any]], HoldsValues()] | None = None
    records_per_person: Annotated[int, AtLeast(1)] = 1
    leave_out: Annotated[Columns, Public()] = None

    def __post_init__(self) -> None:
        dp.checked_epsilon(self.epsilon)

    @abstractmethod
    def modelled(
        self, data: Microdata, file: Prepared, alone: Alone, rho: float, stream: Stream, *, progress: bool
    ) -> FittedMarginals:
        """Fit a model to the groups of all records, for what is left of rho."""

    def check_budget(self, file: Prepared, rho: float) -> None:
        """Refuse a budget for which noise could not be drawn exactly, before anything is spent."""
        check_noise(ALONE * rho, len(file.codes), file.most)

    def fit(
        self,
        data: Microdata,
        *,
        progress: bool = False,
        ledger: dp.Ledger | None = None,
        seed: Seed = None,
    ) -> FittedMarginals:
        """Measure the file; with a ledger the price is entered before noise is drawn."""
        refuse_seeded(ledger, seed)
        file = prepared(self, data, fewest=2)
        rho = dp.largest_rho(self.epsilon, self.delta)
        self.check_budget(file, rho)
        if ledger is not None:
            ledger.spend(file.cost(self.name, self), data=data)
        stream = Stream(seed_of(seed), self.name, seeded=seed is not None)
        codes = file.bounded(stream.words("whose"))
        alone = measured_alone(self, file, codes, ALONE * rho, stream)
        fitted = self.modelled(data, file, alone, (1 - ALONE) * rho, stream, progress=progress)
        return fitted.promise(file.claim(self), seeded=stream.seeded, ledger=ledger)


_TRIES = 200


@stored("fitted-marginals")
@dataclass(eq=False, repr=False, kw_only=True)
class FittedMarginals(Fitted):
    """A model of noisy tables.

    Attributes
    ----------
    measured
        The tables that were measured, as columns, in the order in which they were chosen.
    left_out
        Columns that the synthetic file does not have, and why.
    """

    attributes: Sequence[Attribute]
    groupings: Sequence[Grouping]
    chosen: Sequence[tuple[int, ...]]
    model: GraphicalModel
    impossible: Sequence[Combination]
    left_out: Mapping[str, str]

    @property
    def measured(self) -> list[tuple[str, ...]]:
        """The tables that were measured, as columns, in the order in which they were chosen."""
        return [tuple(self.attributes[column].name for column in columns) for columns in self.chosen]

    @property
    def pairs(self) -> list[tuple[str, ...]]:
        """The pairs of columns among the tables that were measured."""
        return [columns for columns in self.measured if len(columns) == 2]

    def draw(self, n: int, stream: Stream) -> pl.DataFrame:
        """Draw table by table; records with a combination that cannot occur are drawn again."""
        frame = self._drawn(n, stream)
        again = np.flatnonzero(found(self.impossible, frame)) if self.impossible else ()
        tries = 0
        while len(again):
            tries += 1
            if tries > _TRIES:
                raise ParameterError(
                    "Nearly every record that is drawn has a combination declared as impossible. Declare less."
                )
            new = self._drawn(len(again), stream.child("again", str(tries)))
            place = np.arange(n)
            place[again] = n + np.arange(len(again))
            frame = pl.concat([frame, new])[place]
            again = again[found(self.impossible, new)]
        return frame

    def _drawn(self, n: int, stream: Stream) -> pl.DataFrame:
        groups = self.model.drawn(n, stream("groups"))
        return pl.DataFrame([self._column(at, own, stream) for at, own in enumerate(groups)])

    def _column(self, place: int, groups: Integers, stream: Stream) -> pl.Series:
        attribute, grouping = self.attributes[place], self.groupings[place]
        within = np.zeros((grouping.size, len(grouping.group)))
        within[grouping.group, np.arange(len(grouping.group))] = grouping.shares + 1e-9
        codes = drawn_columns(within, groups, stream("level", attribute.name))
        if attribute.edges is None:
            return attribute.decode(codes, None)
        bins = np.minimum(codes, attribute.bins - 1)
        low, high = attribute.edges[bins], attribute.edges[bins + 1]
        # Strictly inside, so that rounding to whole numbers never leaves the bin.
        part = stream("within", attribute.name).random(len(bins)) * (1 - 2**-20) + 2**-21
        return attribute.decode(codes, low + part * (high - low))


@dataclass(frozen=True)
class _FromMargins(_Counted):
    """Tables of several columns are counted besides; the model agrees with all of them."""

    max_cells: Annotated[int, AtLeast(4)] = 10_000_000

    @abstractmethod
    def measured(
        self, file: Prepared, alone: Alone, rho: float, stream: Stream
    ) -> tuple[Sequence[Clique], GraphicalModel]:
        """Choose and count tables for rho, and give them with the model fitted to them."""

    def modelled(
        self, data: Microdata, file: Prepared, alone: Alone, rho: float, stream: Stream, *, progress: bool
    ) -> FittedMarginals:
        """Choose and count tables, and fit a model to them."""
        chosen, model = self.measured(file, alone, rho, stream)
        return FittedMarginals(
            empty_like(data, file.frame, levels_of(file.attributes)),
            max(round(alone.records), 1),
            attributes=file.attributes,
            groupings=alone.groupings,
            chosen=chosen,
            model=model,
            impossible=file.impossible,
            left_out=file.left_out,
        )
