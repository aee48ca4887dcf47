"""Synthesis by networks that draw whole records: a conditional GAN, an autoencoder, and diffusion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.core.errors import ParameterError
from discreet.core.method_cards import method
from discreet.synth.deep.coding import NumberCoding
from discreet.synth.deep.training_plan import _Network, documented

if TYPE_CHECKING:
    from discreet.networks.tables import CodedTable
    from discreet.networks.training import Trainer

_XU = (
    "Xu, L., Skoularidou, M., Cuesta-Infante, A. and Veeramachaneni, K. (2019). Modeling tabular data using "
    "conditional GAN. Advances in Neural Information Processing Systems 32."
)


@method(aim="records", work="whole-file", references=(_XU,))
@documented
@dataclass(frozen=True)
class CTGAN(_Network):
    """Which records does a generator make that a critic cannot tell from real ones?

    A generator turns noise into records, a critic learns to tell packs of them from packs of real ones, and the
    generator learns from its judgement. Numbers are written as a mode of their distribution and a place within it; in
    training the generator is asked for one level of one category at a time, rare levels more often than they occur.

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

    learning_rate: float = 2e-4
    width: int = 256
    layers: int = 2
    noise: int = 128
    pack: int = 10
    match: float = 30.0
    modes: int = 10

    def _check(self) -> None:
        _at_least_one(self, "width", "layers", "noise", "pack", "modes")
        if not self.match >= 0:
            raise ParameterError("ctgan: match must not be negative.")

    def _shape(self) -> Any:
        from discreet.networks.adversarial import GanShape

        return GanShape(
            noise=self.noise,
            width=self.width,
            layers=self.layers,
            pack=self.pack,
            match=self.match,
            learning_rate=self.learning_rate,
        )

    def _trainer(self, table: CodedTable, device: Any, held: CodedTable | None) -> Trainer:
        from discreet.networks.adversarial import GanTrainer

        return GanTrainer(table, self._shape(), self.batch, device, held)


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

    width: int = 256
    layers: int = 2
    latent: int = 128
    beta: float = 0.0
    modes: int = 10

    def _check(self) -> None:
        _at_least_one(self, "width", "layers", "latent", "modes")
        if self.beta < 0:
            raise ParameterError("tvae: beta must not be negative.")

    def _shape(self) -> Any:
        from discreet.networks.autoencoder import VaeShape

        return VaeShape(
            latent=self.latent,
            width=self.width,
            layers=self.layers,
            learning_rate=self.learning_rate,
            beta=self.beta,
        )

    def _trainer(self, table: CodedTable, device: Any, held: CodedTable | None) -> Trainer:
        from discreet.networks.autoencoder import VaeTrainer

        return VaeTrainer(table, self._shape(), self.batch, device, held)


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

    batch: int = 1024
    learning_rate: float = 2e-3
    steps: int = 200
    width: int = 512
    layers: int = 2

    def _check(self) -> None:
        _at_least_one(self, "width", "layers")
        if self.steps < 2:
            raise ParameterError("tabular-diffusion: steps must be a whole number of at least 2.")

    def _shape(self) -> Any:
        from discreet.networks.diffusion import DiffusionShape

        return DiffusionShape(
            steps=self.steps, width=self.width, layers=self.layers, learning_rate=self.learning_rate
        )

    def _trainer(self, table: CodedTable, device: Any, held: CodedTable | None) -> Trainer:
        from discreet.networks.diffusion import DiffusionTrainer

        return DiffusionTrainer(table, self._shape(), self.batch, device, held)


def _at_least_one(plan: Any, *names: str) -> None:
    for name in names:
        if getattr(plan, name) < 1:
            raise ParameterError(f"{plan.name}: {name} must be a whole number of at least 1.")
