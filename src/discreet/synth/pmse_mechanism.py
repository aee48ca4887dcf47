"""Synthetic files from parameters that are drawn privately, the likelier the harder their files are to tell apart."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from discreet import dp, engine
from discreet.core.arrays import Floats, Integers
from discreet.core.constraints import Above, AtLeast, HoldsValues, Public
from discreet.core.declared_types import as_declared, in_type
from discreet.core.errors import DiscreetWarning, ParameterError
from discreet.core.guarantees import DifferentialPrivacy
from discreet.core.method_cards import method
from discreet.core.randomness import Seed
from discreet.core.roles import Columns
from discreet.dp.costs import refuse_seeded
from discreet.dp.entropy import Stream
from discreet.dp.sensitivity import SensitivityKind, pmse_sensitivity
from discreet.microdata import Microdata, require_microdata
from discreet.synth import pmse_model
from discreet.synth.binned_columns import levels_of, pay_purely
from discreet.synth.column_forms import listed
from discreet.synth.pmse_model import FittedParameters
from discreet.synth.private_histograms import declared_columns
from discreet.synth.synthesizer import Synthesizer, empty_like, seed_of

_APPROACHED = (
    "the parameters were drawn by a sampler whose law only approaches the one that the proof speaks of, in "
    "floating-point numbers. sampler='candidates' draws exactly."
)
_GREEDY = (
    "a tree that is grown split by split moves by far more than the bound says when one record changes. Use "
    "quality='optimal-tree'."
)


@method(
    aim="guarantee",
    work="whole-file",
    references=(
        "Snoke, J. and Slavković, A. (2018). pMSE mechanism: differentially private synthetic data with maximal "
        "distributional similarity. Privacy in Statistical Databases, LNCS 11126, 138–159.",
    ),
)
@dataclass(frozen=True)
class PMSEMechanism(Synthesizer):
    """Whose parameters make a file that trees cannot tell from the original, drawn under differential privacy?

    Parameters of a sequence of regressions are drawn with chances proportional to prior times exp(-T u), where u is the
    pMSE between the original and a file made from the parameters: 0 where the best tree cannot tell them apart, 0.25
    where it can without fail. T = epsilon / (2 n_datasets sensitivity). The data need no bounds, since u has them
    (Snoke and Slavković 2018). Neighbors are files of the same size that differ in one record; the number of records
    is public.

    Also known as: pMSE mechanism; exponential mechanism on pMSE.

    Parameters
    ----------
    epsilon
        The privacy budget of all parameters that are drawn.
    prior
        ``{column: (center, spread)}`` of every number: about where its values lie, known without the data. In these
        units parameters (intercepts, slopes, log standard deviations) are normal around 0. Numbers come back as
        decimals.
    domain
        ``{column: [levels]}`` of every category.
    never_missing
        Categories that cannot be missing; all others may be.
    gaps
        Numbers that may be missing; all others cannot be. Whether one is missing is a logistic regression on the
        columns before, and a column of its own for trees.
    width
        Standard deviation of the prior of every parameter, in those units.
    n_datasets
        How many parameters are drawn, each for an equal share of epsilon; a synthetic file uses one of them. Any number
        of files from one costs nothing more.
    quality
        ``"optimal-tree"``: the best of all trees of that depth over thresholds from the synthetic file.
        ``"fixed-partition"``: a table over public cuts at quantiles of the prior. ``"greedy-tree"``: as usual tree
        programs grow it, without any guarantee, for comparison.
    depth
        Of trees, 1 to 3.
    thresholds
        How many thresholds a number has at most.
    sensitivity
        ``"published"`` (1/n) or ``"tight"`` (1/(2(n + 1)), half the noise); see `discreet.dp.sensitivity`.
    n_quality_draws
        How many files are made from a vector of parameters; u is their mean. All vectors get the same random numbers,
        so that the bound on u holds for the mean as well.
    sampler
        ``"smc"``: particles carried from the prior; ``"metropolis"``: walks at a ladder of temperatures that change
        places, started from the prior. Both come nearer to the optimum and make no claim, because they only approach
        the law of the proof. ``"candidates"``: an exact draw among ``candidates`` draws from the prior, with the
        guarantee.
    candidates, particles, steps, runs
        How many candidates, particles a run, steps of a walk and independent runs.
    leave_out
        Columns that the synthetic file shall not have.

    Notes
    -----
    A warning says when the budget is too small for the prior: nearly all mass then lies in its tail, and what is drawn
    is a draw from the prior. With ``sampler="candidates"`` it speaks of the best that any file could give, because a
    warning that depended on the records would stand outside the guarantee; ``fitted.diagnosis`` has the odds of this
    file. It was read off the data and is not for publication.

    When not to use it
    ------------------
    For more than a few columns: every column adds parameters, and the volume of the prior grows with each. `AIM` keeps
    far more of files with many columns.

    Examples
    --------
    >>> import polars as pl
    >>> rng = np.random.default_rng(1)
    >>> people = Microdata(pl.DataFrame({"height": 170 + 8 * rng.standard_normal(500)}))
    >>> model = PMSEMechanism(2.0, prior={"height": (160, 20)}, depth=1, sampler="candidates", candidates=500)
    >>> print(model.fit(people).guarantee.split(" for ")[0])
    2-differential privacy against replacing one record
    """

    epsilon: float
    prior: Annotated[Mapping[str, Any], HoldsValues(by_column=True)] | None = None
    domain: Annotated[Mapping[str, Any], Public()] | None = None
    never_missing: Annotated[Columns, Public()] = None
    gaps: Annotated[Columns, Public()] = None
    width: Annotated[float, Above(0)] = 1.0
    n_datasets: Annotated[int, AtLeast(1)] = 1
    quality: Literal["optimal-tree", "fixed-partition", "greedy-tree"] = "optimal-tree"
    depth: Annotated[int, AtLeast(1)] = 2
    thresholds: Annotated[int, AtLeast(1)] = 32
    sensitivity: SensitivityKind = "published"
    n_quality_draws: Annotated[int, AtLeast(1)] = 1
    sampler: Literal["smc", "metropolis", "candidates"] = "smc"
    candidates: Annotated[int, AtLeast(2)] = 2_000
    particles: Annotated[int, AtLeast(20)] = 200
    steps: Annotated[int, AtLeast(20)] = 1_000
    runs: Annotated[int, AtLeast(2)] = 2
    leave_out: Annotated[Columns, Public()] = None

    def __post_init__(self) -> None:
        dp.checked_epsilon(self.epsilon)
        if self.depth > DEEPEST:
            raise ParameterError(
                f"depth must be {DEEPEST} or less: deeper trees cannot all be tried, and one that is grown step by "
                "step has no guarantee."
            )

    def temperature(self, n: int) -> float:
        """T for a file of ``n`` records: how sharply the density falls with u.

        Examples
        --------
        >>> PMSEMechanism(0.25, n_datasets=10).temperature(5000)
        62.5
        """
        return float(self.epsilon) / (2 * self.n_datasets * pmse_sensitivity(n, kind=self.sensitivity))

    def best_log_odds(self, n: int) -> float:
        """The odds, as a logarithm, of one perfect candidate against all others; no file of ``n`` records has better.

        Examples
        --------
        >>> round(PMSEMechanism(1.0, candidates=2_000).best_log_odds(500), 1)
        54.9
        """
        return 0.25 * self.temperature(n) - float(np.log(self.candidates))

    def fit(
        self,
        data: Microdata,
        *,
        progress: bool = False,
        ledger: dp.Ledger | None = None,
        seed: Seed = None,
    ) -> FittedParameters:
        """Draw parameters; with a ledger the price is entered before."""
        require_microdata(data)
        why = self.why_never
        refuse_seeded(ledger, seed)
        if ledger is not None and self.quality == "greedy-tree":
            raise ParameterError(f"A ledger takes releases with a guarantee, and there is none: {why}")
        never, gaps = listed(self.never_missing), listed(self.gaps)
        names, left_out = declared_columns(
            data, self.leave_out, prior=self.prior, domain=self.domain, never_missing=never, gaps=gaps
        )
        frame = _typed(engine.collect(data, names), self.prior or {}, self.domain or {})
        generator = pmse_model.Regressions(
            tuple(pmse_model.columns_declared(frame, self.prior or {}, self.domain or {}, never, gaps))
        )
        generator.check()
        units = np.column_stack([column.units(frame[column.attribute.name]) for column in generator.columns])
        n = len(units)
        share = dp.rational_epsilon(self.epsilon, self.n_datasets)
        if n < 2:
            raise ParameterError("A file of fewer than two records has no pMSE.")
        reach = pmse_sensitivity(n, kind=self.sensitivity)
        pay_purely(
            ledger,
            data,
            "pmse-mechanism",
            self.epsilon,
            values=self.n_datasets,
            sensitivity=reach,
            proved=not why,
        )
        stream = Stream(seed_of(seed), "pmse-mechanism", seeded=seed is not None)
        quality = self._quality(generator, units, stream)
        if self.sampler == "candidates":
            tried = self.width * stream("candidates").standard_normal((self.candidates, generator.dim))
            found = np.array([quality(theta) for theta in tried])
            thetas = pmse_model.exactly(
                found,
                tried,
                epsilon=share,
                sensitivity=reach,
                draws=self.n_datasets,
                words=stream.words("draw"),
            )
            diagnosis = self._looked_at(tried, found, n)
        else:
            thetas, diagnosis = self._approached(quality, generator.dim, n, stream)
        # Beside a claim even a warning may not depend on the records: it says what no file could change.
        odds = diagnosis.log_odds if why else self.best_log_odds(n)
        if odds < pmse_model.SURE_ODDS:
            warnings.warn(
                "The privacy budget is too small for this prior: most of what can be drawn lies in its tail. Take a "
                "larger epsilon, more records, fewer datasets, fewer columns or a narrower prior that is public.",
                DiscreetWarning,
                stacklevel=3,
            )
        fitted = FittedParameters(
            empty_like(data, frame, levels_of([column.attribute for column in generator.columns])),
            n,
            generator=generator,
            thetas=thetas,
            left_out=left_out,
        )
        fitted.diagnosis = diagnosis
        claim = DifferentialPrivacy(
            self.epsilon,
            against="replacing one record",
            adjacency="replace",
            covers=" for the parameters, and so for any number of files drawn from them; the number of records, the "
            "prior and the declared levels count as public",
        )
        return fitted.promise(None if why else claim, why, seeded=stream.seeded, ledger=ledger)

    @property
    def why_never(self) -> str:  # type: ignore[override]
        """Why nothing can be claimed with this quality or this sampler; empty where something can."""
        if self.quality == "greedy-tree":
            return _GREEDY
        return "" if self.sampler == "candidates" else _APPROACHED

    def _quality(
        self, generator: pmse_model.Regressions, units: Floats, stream: Stream
    ) -> pmse_model.Quality:
        """The pMSE of a vector of parameters, with random numbers that are the same for all of them."""
        noises = [
            generator.noise(len(units), stream("noise", *([str(number)] if number else [])))
            for number in range(self.n_quality_draws)
        ]
        original = generator.split(units)
        fixed = self._public_cuts(generator) if self.quality == "fixed-partition" else None
        greedy = self.quality == "greedy-tree"

        def quality(theta: Floats) -> float:
            return float(np.mean([of_one(theta, noise) for noise in noises]))

        def of_one(theta: Floats, noise: Floats) -> float:
            made = generator.made(theta, noise)
            if not generator.usable(made):
                return 0.25
            synthetic = generator.split(made)
            if fixed is not None:
                return _table_pmse(original, synthetic, fixed)
            cuts = [quantile_cuts(synthetic[:, at], self.thresholds) for at in range(synthetic.shape[1])]
            return best_pmse(original, synthetic, cuts, depth=self.depth, greedy=greedy)

        return quality

    def _public_cuts(self, generator: pmse_model.Regressions) -> list[Floats]:
        """Cuts at quantiles of the prior, as many a column as keep the table small."""
        from scipy.special import ndtri

        many = generator.split(np.zeros((1, len(generator.columns)))).shape[1]
        pieces = max(min(self.thresholds + 1, int(4096 ** (1 / many))), 2)
        numbers = ndtri(np.arange(1, pieces) / pieces)
        cuts: list[Floats] = []
        for column in generator.columns:
            if column.is_number:
                cuts += [numbers, *([np.array([0.5])] if column.has_gaps else [])]
            else:
                cuts += [np.array([0.5])] * column.attribute.size
        return cuts

    def _approached(
        self, quality: pmse_model.Quality, dim: int, n: int, stream: Stream
    ) -> tuple[Floats, pmse_model.Diagnosis]:
        walking = self.sampler == "metropolis"
        made = [
            (pmse_model.by_walking if walking else pmse_model.by_particles)(
                quality,
                dim,
                width=self.width,
                temperature=self.temperature(n),
                many=self.steps if walking else self.particles,
                rng=stream("run", str(number)),
            )
            for number in range(self.runs)
        ]
        thetas = np.concatenate([run.thetas for run in made])
        found = np.concatenate([run.qualities for run in made])
        places = stream("draw").integers(len(thetas), size=self.n_datasets)
        diagnosis = pmse_model.Diagnosis(
            pmse_model.log_odds(
                self.temperature(n), float(found.min()), _mode_widths(thetas, found), self.width
            ),
            float(found.min()),
            float(found.mean()),
            float(np.mean([run.acceptance for run in made])),
            max(run.steps for run in made),
            pmse_model.split_r_hat([run.qualities for run in made]),
        )
        return thetas[places], diagnosis

    def _looked_at(self, tried: Floats, found: Floats, n: int) -> pmse_model.Diagnosis:
        """The odds of candidates near the best against all others, by their number and their chances."""
        weights = np.exp(-self.temperature(n) * (found - found.min()))
        near = found <= found.min() + (0.25 - found.min()) / 2
        mass = float(weights[near].sum() / weights.sum())
        odds = np.log(max(mass, 1e-300)) - np.log(max(1 - mass, 1e-300))
        return pmse_model.Diagnosis(
            float(odds), float(found.min()), float((weights * found).sum() / weights.sum())
        )


def _typed(frame: pl.DataFrame, prior: Mapping[str, Any], domain: Mapping[str, Any]) -> pl.DataFrame:
    """Numbers with a prior as decimals, all others in the type of their levels."""
    levels = {name: list(own) if isinstance(own, tuple) else own for name, own in domain.items()}
    numbers = [name for name in frame.columns if name in prior and frame[name].dtype.is_numeric()]
    typed = frame.with_columns(in_type(frame[name], pl.Float64()) for name in numbers)
    return typed.with_columns(
        as_declared(frame[name], own, ranged=False) for name, own in levels.items() if name in frame.columns
    )


def _mode_widths(thetas: Floats, qualities: Floats) -> Floats:
    """How wide the mode is in every parameter: the spread of particles that are clearly better than the tail."""
    near = qualities <= qualities.min() + (0.25 - qualities.min()) / 2
    return thetas[near].std(axis=0) if near.sum() > 1 else np.full(thetas.shape[1], 1e-6)


def _table_pmse(original: Floats, synthetic: Floats, cuts: list[Floats]) -> float:
    """The pMSE of a table over fixed cuts."""
    cells = []
    for values in (original, synthetic):
        cell = np.zeros(len(values), dtype=np.int64)
        for at, own in enumerate(cuts):
            cell = cell * (len(own) + 1) + np.searchsorted(own, values[:, at], side="right")
        cells.append(cell)
    _, places = np.unique(np.concatenate(cells), return_inverse=True)
    b, a = (
        np.bincount(part, minlength=places.max() + 1).astype(np.float64)
        for part in (places[: len(original)], places[len(original) :])
    )
    return 0.25 - float((a * b / (a + b)).sum()) / (2 * len(original))


# The pMSE of the best tree: how well can splits of the columns tell an original file from a synthetic one?
#
# Every axis-parallel tree of depth 1 to 3 over a grid of thresholds is tried, so the best is the best. Thresholds come
# from the synthetic file, or are public, and never from the original: only then does one record move the result as
# little as `discreet.dp.sensitivity` says. Growing a tree step by step (``greedy``) breaks that bound.
DEEPEST = 3


def tree_pmse(
    original: Floats, synthetic: Floats, *, depth: int = 1, thresholds: int = 32, greedy: bool = False
) -> float:
    """The pMSE of the best tree between two files of numbers with as many records.

    Examples
    --------
    >>> numbers = np.arange(1.0, 11.0)[:, None]
    >>> [round(tree_pmse(numbers, numbers + shift), 8) for shift in (0.5, 3, 6, 20)]
    [0.01315789, 0.04411765, 0.10714286, 0.25]
    """
    if original.shape != synthetic.shape or original.ndim != 2:
        raise ParameterError("Both files must have as many records and columns.")
    if depth not in range(1, DEEPEST + 1):
        raise ParameterError(f"depth must be 1, 2 or {DEEPEST}: deeper trees cannot all be tried.")
    if not np.isfinite(synthetic).all():
        return 0.25
    cuts = [quantile_cuts(synthetic[:, at], thresholds) for at in range(synthetic.shape[1])]
    return best_pmse(original, synthetic, cuts, depth=depth, greedy=greedy)


def quantile_cuts(values: Floats, many: int) -> Floats:
    """Thresholds from a synthetic column: some of its values, and one above them all."""
    n = len(values)
    places = np.unique(np.linspace(0, n - 1, min(many, n)).astype(np.int64))
    found = np.unique(np.partition(values, places)[places])
    return np.append(found, np.nextafter(found[-1], np.inf))


def best_pmse(
    original: Floats, synthetic: Floats, cuts: Sequence[Floats], *, depth: int, greedy: bool = False
) -> float:
    """The pMSE of the best tree over these thresholds; a value at a threshold is above it."""
    width = max(len(own) for own in cuts)
    padded = np.full((len(cuts), width), np.inf)
    for at, own in enumerate(cuts):
        padded[at, : len(own)] = own
    from discreet.synth.pmse_tree_kernels import codes_above

    return pmse_of(
        codes_above(original, padded), codes_above(synthetic, padded), width + 1, depth, greedy=greedy
    )


def pmse_of(original: Integers, synthetic: Integers, bins: int, depth: int, *, greedy: bool) -> float:
    """The pMSE of the best tree over codes below ``bins``."""
    from discreet.synth import pmse_tree_kernels as kernels

    n = len(original)
    if greedy:
        found = kernels.greedy(original, synthetic, bins, depth)
    elif depth == 1:
        found = kernels.best_one(original, synthetic, bins)
    elif depth == 2:
        found = kernels.best_two(kernels.crossed_counts(original, synthetic, bins))
    else:
        found = kernels.best_three(original, synthetic, bins)
    return 0.25 - float(found) / (2 * n)
