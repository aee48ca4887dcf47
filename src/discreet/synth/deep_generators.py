"""Synthesis by networks that draw whole records: a conditional GAN, an autoencoder, and diffusion."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from discreet.core.arrays import Flags
from discreet.core.constraints import Above, AtLeast, Between, HoldsValues, Public
from discreet.core.errors import load_extra
from discreet.core.method_cards import method
from discreet.core.progress import track
from discreet.core.randomness import Seed
from discreet.core.roles import Columns
from discreet.dp.entropy import Stream
from discreet.microdata import Microdata
from discreet.synth.deep_model import FittedNetwork, NumberCoding, TableCoding
from discreet.synth.synthesizer import Synthesizer, seed_of
from discreet.synth.whole_records import Prepared, Weights, prepare

if TYPE_CHECKING:
    from discreet.networks.tables import CodedTable
    from discreet.networks.training import Trainer


_XU = (
    "Xu, L., Skoularidou, M., Cuesta-Infante, A. and Veeramachaneni, K. (2019). Modeling tabular data using "
    "conditional GAN. Advances in Neural Information Processing Systems 32."
)


def documented(kind: type) -> type:
    """Write the parameters that all networks share into the docstring of one."""
    kind.__doc__ = re.sub(r"\n    <shared>\n", lambda _: SHARED_PARAMETERS, kind.__doc__ or "")
    return kind


@dataclass(frozen=True)
class _Network(Synthesizer):
    """A generator that is a network; its subclasses say which."""

    number_coding: ClassVar[NumberCoding] = "modes"
    smaller: ClassVar[str] = "batch, width or max_levels"

    epochs: Annotated[int, AtLeast(1)] = 300
    batch: Annotated[int, AtLeast(1)] = 500
    learning_rate: Annotated[float, Above(0)] = 1e-3
    held_out: Annotated[float, Between(0, 1, below=True)] = 0.0
    patience: Annotated[int, AtLeast(1)] = 5
    time_limit: Annotated[float, Above(0)] | None = None
    checkpoint: Annotated[str, Public()] | None = None
    device: Annotated[str, Public()] = "auto"
    threads: Annotated[int, AtLeast(1)] = 1
    max_levels: Annotated[int, AtLeast(2)] = 200
    special_codes: Annotated[Mapping[str, Any], HoldsValues(by_column=True)] | None = None
    semicontinuous: Annotated[Mapping[str, Any], HoldsValues(by_column=True)] | None = None
    constraints: Annotated[Sequence[str], HoldsValues(in_expressions=True)] = ()
    max_rounds: Annotated[int, AtLeast(1)] = 100
    weights: Weights = "use"
    few_values: Annotated[int, AtLeast(0)] = 20
    leave_out: Annotated[Columns, Public()] = None

    def _network(self) -> tuple[Any, Any]:
        """Return the class of its shape and that of its trainer; both need torch."""
        raise TypeError(type(self).__name__)

    def _shape(self) -> Any:
        """Return the sizes and rates of the network."""
        return _made_of(self, self._network()[0])

    def _trained(self, make: Callable[[Any], Trainer], stream: Stream, *, progress: bool) -> tuple[Any, Any]:
        """Train what is made on a device; return its weights and what happened."""
        from discreet.networks.training import Course, train

        course = _made_of(self, Course, seed=int(stream("training").integers(2**62)))
        with _told(self.epochs, progress) as hear:
            return train(make, course, hear=hear, smaller=self.smaller)

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
        file = prepare(self, data)
        stream = Stream(seed_of(seed), self.name)
        coding, table = coded(self, file, stream)
        learned, held = table, None
        if self.held_out and len(table) > 10:
            learned, held = table.split(self.held_out, stream("held out"))
        _, trainer = self._network()
        weights, report = self._trained(
            lambda device: trainer(learned, self._shape(), self.batch, device, held),
            stream,
            progress=progress,
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


def _made_of(plan: Any, kind: Any, **also: Any) -> Any:
    """Fill in a class of settings from the parameters of the same names."""
    return kind(
        **also, **{one.name: getattr(plan, one.name) for one in fields(kind) if hasattr(plan, one.name)}
    )


# What all generators that are networks share: their parameters, and how a file becomes a trained model.
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


@method(aim="records", work="whole-file", references=(_XU,))
@documented
@dataclass(frozen=True)
class CTGAN(_Network):
    """Which records does a generator make that a critic cannot tell from real ones?

    A generator turns noise into records, a critic learns to tell packs of them from packs of real ones, and the
    generator learns from its judgement. Numbers are written as a mode of their distribution and a place within it; in
    training the generator is asked for one level of one category at a time, rare levels more often than they occur.

    Also known as: conditional tabular GAN; conditional GAN.

    Parameters
    ----------
    width, layers
        Of generator and critic.
    noise
        How many random numbers a record is made from.
    pack
        How many records the critic judges at once; against a generator that makes the same record again and again.
    match
        How much the generator learns from the tables of all pairs of columns beside what the critic says; 0 is the
        method as it was published. Left out where the columns have more than 1,000 levels together.
    modes
        The most modes of a number.
    <shared>

    When not to use it
    ------------------
    Where trees do: on most files `Sequential` and `AdversarialForest` are closer to the original in a fraction of the
    time (see the results page of the manual). A GAN gives no guarantee and may repeat records it has learned by heart.

    Examples
    --------
    >>> import polars as pl
    >>> from discreet import Microdata
    >>> people = pl.DataFrame({"sex": ["f", "m"] * 100, "size": [160, 180] * 100})
    >>> model = CTGAN(epochs=1).fit(Microdata(people), seed=1)  # doctest: +SKIP
    >>> model.sample(3, seed=1).frame.shape  # doctest: +SKIP
    (3, 2)
    """

    learning_rate: Annotated[float, Above(0)] = 2e-4
    width: Annotated[int, AtLeast(1)] = 256
    layers: Annotated[int, AtLeast(1)] = 2
    noise: Annotated[int, AtLeast(1)] = 128
    pack: Annotated[int, AtLeast(1)] = 10
    match: Annotated[float, AtLeast(0)] = 30.0
    modes: Annotated[int, AtLeast(1)] = 10

    def _network(self) -> tuple[Any, Any]:
        from discreet.networks.adversarial import GanShape, GanTrainer

        return GanShape, GanTrainer


@method(
    aim="records",
    work="whole-file",
    references=(
        _XU,
        "Akrami, H., Joshi, A. A., Li, J., Aydöre, S. and Leahy, R. M. (2022). A robust variational autoencoder using "
        "beta divergence. Knowledge-Based Systems 238, 107886.",
    ),
)
@documented
@dataclass(frozen=True)
class TVAE(_Network):
    """Which records lie near the points that a network has put real ones at?

    An encoder turns a record into a point and how certain it is; a decoder gives the law of every column at a point.
    Synthetic records come from random points, each column drawn from its law.

    Also known as: tabular variational autoencoder; variational autoencoder.

    Parameters
    ----------
    width, layers
        Of encoder and decoder.
    latent
        How many coordinates a point has.
    beta
        0 is the usual autoencoder. Above 0 the fit is measured by a beta-divergence, in which a record that the network
        finds impossible counts a bounded amount: outliers are left aside rather than learned.
    modes
        The most modes of a number.
    <shared>

    When not to use it
    ------------------
    Where rare levels or combinations matter: points between groups give records between groups. With ``beta`` rare
    records are left aside on purpose. It gives no guarantee.

    Examples
    --------
    >>> import polars as pl
    >>> from discreet import Microdata
    >>> people = pl.DataFrame({"sex": ["f", "m"] * 100, "size": [160, 180] * 100})
    >>> TVAE(epochs=1).fit(Microdata(people), seed=1).sample(3, seed=1).frame.shape  # doctest: +SKIP
    (3, 2)
    """

    width: Annotated[int, AtLeast(1)] = 256
    layers: Annotated[int, AtLeast(1)] = 2
    latent: Annotated[int, AtLeast(1)] = 128
    beta: Annotated[float, AtLeast(0)] = 0.0
    modes: Annotated[int, AtLeast(1)] = 10

    def _network(self) -> tuple[Any, Any]:
        from discreet.networks.autoencoder import VaeShape, VaeTrainer

        return VaeShape, VaeTrainer


@method(
    aim="records",
    work="whole-file",
    references=(
        "Kotelnikov, A., Baranchuk, D., Rubachev, I. and Babenko, A. (2023). TabDDPM: modelling tabular data with "
        "diffusion models. Proceedings of Machine Learning Research 202, 17564–17579.",
        "Hoogeboom, E., Nielsen, D., Jaini, P., Forré, P. and Welling, M. (2021). Argmax flows and multinomial "
        "diffusion: learning categorical distributions. Advances in Neural Information Processing Systems 34.",
    ),
)
@documented
@dataclass(frozen=True)
class TabularDiffusion(_Network):
    """Which records are left when a network takes noise off, step by step?

    Records are blurred in many steps, numbers by normal noise and categories by levels drawn at random, until nothing
    is left of them. A network learns to undo a step; a synthetic record is noise of which all steps were undone.

    Also known as: TabDDPM; DDPM; denoising diffusion.

    Parameters
    ----------
    steps
        How many steps the noise comes in. Drawing takes as many passes through the network.
    width, layers
        Of the network.
    <shared>

    When not to use it
    ------------------
    Where a file is small (below some thousand records): it learns slowly, and what it has learned by heart it repeats.
    It gives no guarantee.

    Examples
    --------
    >>> import polars as pl
    >>> from discreet import Microdata
    >>> people = pl.DataFrame({"sex": ["f", "m"] * 100, "size": [160, 180] * 100})
    >>> TabularDiffusion(epochs=1).fit(Microdata(people), seed=1).sample(3).frame.shape  # doctest: +SKIP
    (3, 2)
    """

    number_coding: ClassVar[NumberCoding] = "scores"

    batch: Annotated[int, AtLeast(1)] = 1024
    learning_rate: Annotated[float, Above(0)] = 2e-3
    steps: Annotated[int, AtLeast(2)] = 200
    width: Annotated[int, AtLeast(1)] = 512
    layers: Annotated[int, AtLeast(1)] = 2

    def _network(self) -> tuple[Any, Any]:
        from discreet.networks.diffusion import DiffusionShape, DiffusionTrainer

        return DiffusionShape, DiffusionTrainer
