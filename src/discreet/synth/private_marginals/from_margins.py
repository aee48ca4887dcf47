"""What generators from noisy margins have in common: parameters, the order of a fit, and what is claimed of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet import dp
from discreet.core.randomness import Seed
from discreet.core.roles import Columns
from discreet.dp.entropy import refuse_seeded
from discreet.microdata import Microdata
from discreet.synth.coded_columns import levels_of
from discreet.synth.private_marginals.fitted_marginals import FittedMarginals
from discreet.synth.private_marginals.graphical_model import GraphicalModel
from discreet.synth.private_marginals.junction_tree import Clique
from discreet.synth.private_marginals.measuring import check_noise
from discreet.synth.private_marginals.preparing import (
    Alone,
    Prepared,
    check_parameters,
    measured_alone,
    prepared,
)
from discreet.synth.synthesizer import Stream, Synthesizer, empty_like, seed_of

ALONE = 0.2  # of rho: columns by themselves


@dataclass(frozen=True)
class _Counted(Synthesizer):
    """Columns are counted by themselves, with noise; a model is fitted to their groups with the rest of the budget."""

    epsilon: float
    delta: float = 1e-6
    domain: Mapping[str, Any] | None = None
    never_missing: Columns = None
    bins: int = 128
    borders: Mapping[str, Sequence[Any]] | None = None
    groups: int = 16
    impossible: Sequence[Mapping[str, Any]] | None = None
    records_per_person: int = 1
    leave_out: Columns = None

    def __post_init__(self) -> None:
        check_parameters(self)

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


@dataclass(frozen=True)
class _FromMargins(_Counted):
    """Tables of several columns are counted besides; the model agrees with all of them."""

    max_cells: int = 10_000_000

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
