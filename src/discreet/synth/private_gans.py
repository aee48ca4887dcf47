"""Synthesis by adversarial networks with differential privacy: noisy gradients (DPGAN), or noisy votes (PATEGAN).

Columns are coded by what was declared of them and counted by themselves with noise; levels that drown in it are put
together. The networks see these groups only. What they learn of records are whole numbers with exact noise: sums of
clipped gradients, or votes of teachers. Weights, drawn records and batches of a generator follow from those and cost
nothing more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Annotated, Any

import numpy as np

from discreet import dp
from discreet.core.arrays import Array, Integers
from discreet.core.constraints import Above, AtLeast, Between
from discreet.core.errors import ParameterError, load_extra
from discreet.core.method_cards import method
from discreet.core.progress import track
from discreet.core.randomness import Seed
from discreet.dp.entropy import Stream
from discreet.dp.noisy_gradients import drawn_records
from discreet.dp.samplers import LARGEST_VARIANCE
from discreet.microdata import Microdata
from discreet.synth.deep_model import check_shape
from discreet.synth.graphical_model import on_simplex, variance_of
from discreet.synth.marginals_model import ALONE, Alone, FittedMarginals, Prepared, _Counted
from discreet.synth.saved_models import stored

_ROOM = 19  # powers of two of noise that the samplers can draw
_FINE = 13  # powers of two between a step and the longest gradient
_DECLARED = """
    epsilon, delta
        The privacy budget.
    domain
        ``{column: [levels]}``, or ``(low, high)`` for a number. Every column needs one unless its type has it (Enum,
        Boolean): what is read off the data is not protected. Whole ends or levels declare whole
        numbers and ``(0.0, 1.0)`` decimals: what is drawn has the declared types.
    never_missing
        Columns that cannot be missing. All others may be, whatever the data say.
    bins, borders, groups
        Of numbers: how many fine bins they are counted in, bins that are public, and about how many groups the networks
        see.
    impossible
        Combinations that cannot occur, as ``{column: level, column: (low, high)}`` each: public knowledge, never drawn.
    steps
        How many steps the generator learns in; the budget is shared by all of them.
    width, critic, noise
        Of the generator and of what judges it, and how many random numbers a record is made from.
    learning_rate
        How far a step goes.
    leave_out
        Columns that the synthetic file shall not have.
"""


@stored("group-network")
@dataclass(frozen=True, eq=False)
class GroupNetwork:
    """A generator of groups: its sizes and its weights."""

    shape: Mapping[str, Any]
    weights: Mapping[str, Array]
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        check_shape(self.shape)

    def fits(self, sizes: list[int]) -> bool:
        """Say whether the weights are those of a generator of these sizes, for so many groups."""
        noise, width, out = int(self.shape["noise"]), int(self.shape["width"]), sum(sizes)
        wanted = {
            f"{place}.{name}": shape
            for place, (to, before) in {0: (width, noise), 2: (width, width), 4: (out, width)}.items()
            for name, shape in {"weight": (to, before), "bias": (to,)}.items()
        }
        return list(self.sizes) == sizes and {n: w.shape for n, w in self.weights.items()} == wanted

    def drawn(self, n: int, rng: np.random.Generator) -> list[Integers]:
        """Draw the groups of every column."""
        load_extra("torch", extra="deep", purpose="Drawing from a network")
        from discreet.networks.private_adversarial import PrivateShape, drawn_codes
        from discreet.networks.training import drawing_memory_told, quiet_threads

        with drawing_memory_told(), quiet_threads(1):
            codes = drawn_codes(
                PrivateShape(**self.shape), dict(self.weights), self.sizes, n, seed=int(rng.integers(2**62))
            )
        return [own.astype(np.int64) for own in codes.T]


@stored("fitted-private-network")
@dataclass(eq=False, repr=False, kw_only=True)
class FittedPrivateNetwork(FittedMarginals):
    """A generator that has learned from noise alone.

    Attributes
    ----------
    model
        The generator.
    left_out
        Columns that the synthetic file does not have, and why.
    """

    model: GroupNetwork  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if not self.model.fits([one.size for one in self.groupings]):
            raise ValueError("weights of another network")


@dataclass(frozen=True)
class _PrivateNetwork(_Counted):
    """An adversarial network that learns from noise; its subclasses say by which."""

    steps: Annotated[int, AtLeast(1)] = 500
    width: Annotated[int, AtLeast(1)] = 64
    critic: Annotated[int, AtLeast(1)] = 32
    noise: Annotated[int, AtLeast(1)] = 32
    learning_rate: Annotated[float, Above(0)] = 2e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.records_per_person != 1:
            raise ParameterError(
                f"{self.name} learns from one record of every person. Leave records_per_person at 1."
            )

    def fit(
        self, data: Microdata, *, progress: bool = False, ledger: dp.Ledger | None = None, seed: Seed = None
    ) -> FittedMarginals:
        """Train the networks; with a ledger the price is entered before noise is drawn."""
        load_extra("torch", extra="deep", purpose=f"Training {type(self).__name__}")
        return super().fit(data, progress=progress, ledger=ledger, seed=seed)

    def modelled(
        self, data: Microdata, file: Prepared, alone: Alone, rho: float, stream: Stream, *, progress: bool
    ) -> FittedMarginals:
        """Train on the groups of all records."""
        import torch

        from discreet.networks.private_adversarial import PrivateGan, PrivateShape
        from discreet.networks.training import memory_told, own_noise, quiet_threads

        shape = PrivateShape(self.noise, self.width, self.critic, learning_rate=self.learning_rate)
        codes = np.column_stack(alone.codes).astype(np.int64)
        shares = [on_simplex(counts, alone.records) / alone.records for counts, _ in alone.margins]
        seed = int(stream("network").integers(2**62))
        here = torch.device("cpu")
        with (
            memory_told("width, critic, groups or teachers", here),
            quiet_threads(1),
            own_noise(seed, here),
        ):
            gan = PrivateGan(tuple(alone.sizes), np.concatenate(shares), shape)
            self._train(gan, codes, alone.records, rho, stream, progress=progress)
            weights = gan.weights()
        if not all(np.isfinite(own).all() for own in weights.values()):
            raise ParameterError(f"Training of {self.name} broke down. Lower learning_rate.")
        model = GroupNetwork(asdict(shape), weights, tuple(alone.sizes))
        return file.fitted(FittedPrivateNetwork, data, alone, [], model)

    def _train(
        self, gan: Any, codes: Integers, records: float, rho: float, stream: Stream, *, progress: bool
    ) -> None:
        """Let the networks learn; codes are those of all records, their number is an estimate."""
        raise TypeError(type(self).__name__)


def _documented(kind: type) -> type:
    kind.__doc__ = (kind.__doc__ or "").replace("\n    <declared>\n", _DECLARED)
    return kind


@method(
    aim="guarantee",
    work="whole-file",
    references=(
        "Xie, L., Lin, K., Wang, S., Wang, F. and Zhou, J. (2018). Differentially private generative adversarial "
        "network. arXiv:1802.06739.",
        "Abadi, M., Chu, A., Goodfellow, I., McMahan, H. B., Mironov, I., Talwar, K. and Zhang, L. (2016). Deep "
        "learning with differential privacy. Proceedings of the 2016 ACM SIGSAC Conference, 308–318.",
    ),
)
@_documented
@dataclass(frozen=True)
class DPGAN(_PrivateNetwork):
    """Which records does a generator make whose critic has seen real ones through noisy gradients only?

    In every step each record is drawn by itself with the chance ``rate``. The gradients by which the critic would learn
    from the records drawn are clipped one by one, cut to whole steps and added up, and discrete Gaussian noise is added
    to the sum. The generator learns from the critic, and from the noisy counts of single columns.

    Also known as: DP-GAN; differentially private GAN; DP-SGD.

    Parameters
    ----------
    rate
        The chance of a record to be in a step. A number of the plan, not of the file.
    <declared>

    When not to use it
    ------------------
    Where a guarantee is wanted and nothing else: try `AIM` and `MST` first, whose budget goes into the tables that one
    looks at rather than into some hundred gradients. It is here so that it can be compared (``discreet evaluate``).

    Examples
    --------
    >>> import polars as pl
    >>> from discreet import Microdata
    >>> people = Microdata(pl.DataFrame({"sex": ["f", "m"] * 500, "works": [True, False] * 500}))
    >>> fitted = DPGAN(epsilon=1.0, domain={"sex": ["f", "m"]}, steps=5).fit(people)  # doctest: +SKIP
    >>> print(fitted.guarantee.split(" for ")[0])  # doctest: +SKIP
    (1, 1e-06)-differential privacy against adding or removing one record
    """

    rate: Annotated[float, Between(0, 0.5, above=True)] = 0.02

    def check_budget(self, file: Prepared, rho: float) -> None:
        """Refuse a budget for which noise could not be drawn exactly."""
        super().check_budget(file, rho)
        self._noise(rho * ALONE)

    def _noise(self, besides: float) -> tuple[Fraction, float, int, Fraction]:
        """The gap that the chance of a record follows from, that chance, steps to a length of 1, and the variance.

        None of them depends on the file, so that the price of all steps is known before the first.
        """
        gap = dp.rational_epsilon(-math.log1p(-self.rate))
        share = -math.expm1(-float(gap)) * (1 + 1e-12)
        noise = dp.subsampled_gaussian_noise(self.epsilon, self.delta, share, self.steps, besides=besides)
        fine = min(_FINE, _ROOM - math.ceil(math.log2(max(noise, 1.0))))
        if fine < 4:
            raise ParameterError(
                "So little budget for so many steps cannot be drawn exactly. Take fewer steps, or raise epsilon."
            )
        most = 2**fine
        return gap, share, most, Fraction(math.ceil((noise * most) ** 2 * (1 + 1e-12)))

    def _train(
        self, gan: Any, codes: Integers, records: float, rho: float, stream: Stream, *, progress: bool
    ) -> None:
        from discreet.networks.private_adversarial import Gradients

        gap, share, most, variance = self._noise(rho * ALONE / (1 - ALONE))
        expected = max(share * records, 1.0)
        batch = min(max(round(expected), 16), 512)
        chosen, noise = stream.words("records"), stream.words("gradients")
        gradients = Gradients(gan.critic, gan.blocks.starts.numpy(), most)
        for _ in track(range(self.steps), description="Training", progress=progress):
            total = gradients.total(codes[drawn_records(len(codes), gap, chosen)])
            total = total + dp.discrete_gaussian(variance, len(total), noise)
            gan.critic_step(total / (most * expected), batch)
            gan.generator_step(batch)


@method(
    aim="guarantee",
    work="whole-file",
    references=(
        "Jordon, J., Yoon, J. and van der Schaar, M. (2019). PATE-GAN: generating synthetic data with differential "
        "privacy guarantees. International Conference on Learning Representations.",
        "Papernot, N., Song, S., Mironov, I., Raghunathan, A., Talwar, K. and Erlingsson, Ú. (2018). Scalable private "
        "learning with PATE. International Conference on Learning Representations.",
    ),
)
@_documented
@dataclass(frozen=True)
class PATEGAN(_PrivateNetwork):
    """Which records does a generator make that many critics, each with records of its own, cannot tell from real ones?

    Every record belongs to one of the teachers, drawn at random. Teachers learn to tell their records from drawn ones
    and vote on new ones; discrete Gaussian noise is added to the number of votes, and a student learns from what the
    majority then seems to be. The generator learns from the student, and from the noisy counts of single columns. One
    record changes one teacher, and so every number of votes by one at most: the price is that of the noise, whatever
    the votes are (no account that depends on the data is used, which would have to be protected itself).

    Also known as: PATE-GAN; private aggregation of teacher ensembles.

    Parameters
    ----------
    teachers
        How many parts the records are divided into. Many teachers are sure against noise, but each knows little.
    questions
        How many drawn records are voted on in a step.
    <declared>

    When not to use it
    ------------------
    Below an epsilon of about 3 the standard deviation of the noise is larger than the number of teachers, and little is
    left but the counts of single columns. Try `AIM` and `MST` first.

    Examples
    --------
    >>> import polars as pl
    >>> from discreet import Microdata
    >>> people = Microdata(pl.DataFrame({"sex": ["f", "m"] * 500, "works": [True, False] * 500}))
    >>> fitted = PATEGAN(epsilon=8.0, domain={"sex": ["f", "m"]}, steps=5).fit(people)  # doctest: +SKIP
    >>> print(fitted.guarantee.split(" for ")[0])  # doctest: +SKIP
    (8, 1e-06)-differential privacy against adding or removing one record
    """

    steps: Annotated[int, AtLeast(1)] = 200
    teachers: Annotated[int, AtLeast(1)] = 100
    questions: Annotated[int, AtLeast(1)] = 16

    def check_budget(self, file: Prepared, rho: float) -> None:
        """Refuse a budget for which noise could not be drawn exactly."""
        super().check_budget(file, rho)
        if variance_of((1 - ALONE) * rho, self.steps * self.questions) > LARGEST_VARIANCE:
            raise ParameterError(
                "So little budget for so many votes cannot be drawn exactly. Take fewer steps, or raise epsilon."
            )

    def _train(
        self, gan: Any, codes: Integers, records: float, rho: float, stream: Stream, *, progress: bool
    ) -> None:
        import torch

        from discreet.networks.private_adversarial import Teachers

        variance = variance_of(rho, self.steps * self.questions)
        whose = dp.uniform_below(self.teachers, len(codes), stream.words("whose teacher"))
        parts = [np.flatnonzero(whose == one) for one in range(self.teachers)]
        teachers = Teachers(parts, gan.blocks.one_hot(torch.from_numpy(codes)), gan.shape)
        words = stream.words("votes")
        batch = min(max(round(records / self.teachers), 8), 64)
        for _ in track(range(self.steps), description="Training", progress=progress):
            for _ in range(_LESSONS):
                teachers.learn(gan.drawn(batch).detach(), batch)
            asked = gan.drawn(self.questions).detach()
            votes = teachers.votes(asked) + dp.discrete_gaussian(variance, self.questions, words)
            gan.student_step(asked, (2 * votes > self.teachers).astype(np.float64))
            gan.generator_step(64)


_LESSONS = 2  # steps that teachers learn before they vote
