"""What all generators that are networks share: their parameters, and how a file becomes a trained model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.core.arrays import Flags
from discreet.core.errors import ParameterError, load_extra
from discreet.core.progress import track
from discreet.core.randomness import Seed
from discreet.core.roles import Columns
from discreet.microdata import Microdata
from discreet.synth.deep.coding import NumberCoding, TableCoding
from discreet.synth.deep.fitted_network import FittedNetwork
from discreet.synth.modelled_columns import Weights
from discreet.synth.synthesizer import Stream, Synthesizer, seed_of
from discreet.synth.whole_records import Prepared, prepare

if TYPE_CHECKING:
    from discreet.networks.tables import CodedTable
    from discreet.networks.training import Course, Trainer

SHARED_PARAMETERS = """
    epochs
        How often every record is learned from.
    batch
        How many records one step of learning takes.
    learning_rate
        How far a step goes.
    held_out
        The share of the records that is not learned from, by which training sees when to stop; 0 runs all epochs.
    patience
        With ``held_out``: after how many looks (one every five epochs) without getting better training ends. The best
        state is kept.
    time_limit
        Seconds after which training ends with what it has learned; None sets no limit.
    checkpoint
        A file that keeps the state of training once a minute; the next fit with the same seed goes on from there. It
        is removed at the end. It holds what was learned: keep it as the data are kept.
    device
        ``"auto"`` takes an accelerator where there is one, ``"cpu"`` and ``"cuda"`` the one named.
    threads
        Processor threads; another number may change the last digits, and with them the bytes that are drawn.
    max_levels
        Levels of a category that are learned by themselves; rarer ones are learned together and drawn by frequency.
    special_codes, semicontinuous
        ``{column: [values]}``: codes that are no numbers (-8 for "refused"), and values at which numbers pile up; a
        value that a fifth of the records have is found without being named.
    constraints
        Rules that every record keeps (see `check_rules`): columns that they define are computed, broken inequalities
        mended, and records that break others drawn again, ``max_rounds`` times.
    weights
        ``"use"`` learns from records as often as their survey weights say, so that the synthetic file is like a simple
        random sample of the population; ``"ignore"`` leaves them aside. The synthetic file has no weights.
    few_values
        Numbers with at most this many distinct values are taken for categories.
    leave_out
        Columns that the synthetic file shall not have.
"""

_LEAST = {
    "epochs": 1,
    "batch": 1,
    "patience": 1,
    "threads": 1,
    "max_levels": 2,
    "max_rounds": 1,
    "few_values": 0,
}


def documented(kind: type) -> type:
    """Write the parameters that all networks share into the docstring of one."""
    kind.__doc__ = re.sub(r"\n    <shared>\n", lambda _: SHARED_PARAMETERS, kind.__doc__ or "")
    return kind


@dataclass(frozen=True)
class _Network(Synthesizer):
    """A generator that is a network; its subclasses say which."""

    number_coding: ClassVar[NumberCoding] = "modes"
    smaller: ClassVar[str] = "batch, width or max_levels"

    epochs: int = 300
    batch: int = 500
    learning_rate: float = 1e-3
    held_out: float = 0.0
    patience: int = 5
    time_limit: float | None = None
    checkpoint: str | None = None
    device: str = "auto"
    threads: int = 1
    max_levels: int = 200
    special_codes: Mapping[str, Any] | None = None
    semicontinuous: Mapping[str, Any] | None = None
    constraints: Sequence[str] = ()
    max_rounds: int = 100
    weights: Weights = "use"
    few_values: int = 20
    leave_out: Columns = None

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise ParameterError(f"{self.name}: {name} must be a whole number of at least {least}.")
        if not self.learning_rate > 0:
            raise ParameterError(f"{self.name}: learning_rate must be above 0.")
        if not 0 <= self.held_out < 1:
            raise ParameterError(f"{self.name}: held_out must be a share from 0 to below 1.")
        if self.time_limit is not None and not self.time_limit > 0:
            raise ParameterError(f"{self.name}: time_limit must be above 0 seconds, or None.")
        self._check()

    def _check(self) -> None:
        """Check what one kind of network has beside the shared parameters."""

    def _shape(self) -> Any:
        """Return the sizes and rates of the network."""
        raise TypeError(type(self).__name__)

    def _trainer(self, table: CodedTable, device: Any, held: CodedTable | None) -> Trainer:
        """Make the trainer."""
        raise TypeError(type(self).__name__)

    def fit(self, data: Microdata, *, progress: bool = False, seed: Seed = None) -> FittedNetwork:
        """Train the network.

        Parameters
        ----------
        data
            The file; its identifiers are left out, its weight is used (see ``weights``).
        seed
            Of everything that is drawn in training: same seed, same device, same model.
        progress
            Show how far it is, and how long it will take, on a terminal.
        """
        load_extra("torch", extra="deep", purpose=f"Training {type(self).__name__}")
        from discreet.networks.training import train

        file = prepare(self, data)
        stream = Stream(seed_of(seed), self.name)
        coding, table = coded(self, file, stream)
        learned, held = table, None
        if self.held_out and len(table) > 10:
            learned, held = table.split(self.held_out, stream("held out"))
        with _told(self.epochs, progress) as hear:
            weights, report = train(
                lambda device: self._trainer(learned, device, held),
                self._course(int(stream("training").integers(2**62))),
                hear=hear,
                smaller=self.smaller,
            )
        return FittedNetwork(
            file.like,
            file.rows,
            blueprint=file.blueprint,
            kind=self.name,
            shape=asdict(self._shape()),
            coding=coding,
            shares=[table.shares(column) for column in range(len(table.sizes))],
            weights=weights,
            report=report.to_dict(),
            device=self.device,
            max_rounds=self.max_rounds,
            left_out=file.left_out,
            weighted=file.weights is not None,
            notes=pooled_notes(self, file),
        )

    def _course(self, seed: int) -> Course:
        from discreet.networks.training import Course

        return Course(
            self.epochs,
            self.batch,
            seed=seed,
            device=self.device,
            held_out=self.held_out,
            patience=self.patience,
            time_limit=self.time_limit,
            checkpoint=self.checkpoint,
            threads=self.threads,
        )


def coded(plan: Any, file: Prepared, stream: Stream) -> tuple[TableCoding, CodedTable]:
    """Learn how the variables of a file are coded for a network, and code them."""
    ordinary = with_values(file)
    coding = TableCoding.of(
        file.variables,
        ordinary,
        file.weights,
        stream,
        numbers=plan.number_coding,
        max_levels=plan.max_levels,
        modes=getattr(plan, "modes", 10),
    )
    return coding, coding.table(file.variables, ordinary, file.weights, stream)


def with_values(file: Prepared) -> list[Flags | None]:
    """Say of every number with states in which records it has a value; None for all other variables."""
    found: list[Flags | None] = []
    at = 0
    for width in file.blueprint.widths:
        found += [None] if width == 1 else [None, np.asarray(file.variables[at].values) == 0]
        at += width
    return found


def pooled_notes(plan: Any, file: Prepared) -> list[str]:
    """Name the categories whose rare levels are learned together."""
    return [
        f"Column '{one.name}' has {one.levels:,} levels; the {one.levels - plan.max_levels + 1:,} rarest are learned "
        f"together and drawn by frequency (max_levels={plan.max_levels})."
        for one in file.variables
        if not one.is_number and one.levels > plan.max_levels
    ]


class _told:  # noqa: N801 - used as a statement
    """Move a progress bar, with the time that is left, by one at the end of every epoch."""

    def __init__(self, epochs: int, progress: bool) -> None:
        self._bar = iter(track(range(epochs), description="Training", progress=progress))
        next(self._bar, None)

    def __enter__(self) -> Callable[[int, int, float], None]:
        return lambda *_: (next(self._bar, None), None)[1]

    def __exit__(self, *_: object) -> None:
        self._bar.close()  # type: ignore[attr-defined]
