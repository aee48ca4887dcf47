"""How large would the distance be if the synthesis were right? By theory, permutation, pairs of copies, resynthesis.

The theory and the factors are those of two draws of one distribution (permutation, pairs) against a draw from a model
that was fitted to the original (correct synthesis): the second varies less, because it shares the original's luck.
Which of them fits a model and a release is decided here too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Any, Literal

import numpy as np

from discreet.core.arrays import Flags
from discreet.core.constraints import AtLeast
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.core.progress import track
from discreet.core.randomness import Seed, generator
from discreet.microdata import Microdata
from discreet.utility.propensity_design import Stack
from discreet.utility.propensity_learners import Fit, Prepared, PreparedLogit, score_distances

_Count = Annotated[int, AtLeast(1)]

_MANY_LEAVES = 20
Prepare = Callable[[Microdata, Microdata], Prepared]


@dataclass(frozen=True)
class Null:
    """The distances of a perfect release.

    Attributes
    ----------
    kind
        ``"theory"``, ``"permutation"``, ``"pairs"``, ``"resynthesis"`` or ``"none"``.
    mean, sd
        Of pMSE under correct synthesis; None where there is no null.
    factor
        What resampled values were multiplied by.
    values
        The resampled values of pMSE, after the factor.
    leaves
        Mean number of leaves of resampled trees.
    unsplit
        Share of resampled fits that found nothing to split on; None for models without splits.
    distances
        Means of the resampled SPECKS, PO50 and U, after the factor; only where they are valid.
    """

    kind: str
    mean: float | None = None
    sd: float | None = None
    factor: float = 1.0
    values: tuple[float, ...] = ()
    leaves: float | None = None
    unsplit: float | None = None
    distances: dict[str, float] | None = None
    note: str | None = None


@checked
def pmse_null(
    k: _Count,
    n_original: _Count,
    n_released: _Count,
    *,
    k_star: int | None = None,
) -> tuple[float, float]:
    """How large is the pMSE of a correct synthesis, and how much does it vary? The theory for logistic models.

    With N records of both files, c of them released, pMSE is (1-c)² c/N times a chi-squared variable with k - 1
    degrees of freedom when the release was drawn from a correct model that was fitted to the original.

    Also known as: expected pMSE; null distribution of the pMSE.

    Parameters
    ----------
    k
        Coefficients of the propensity model, with the intercept and without aliased ones.
    n_original, n_released
        Records of the two files.
    k_star
        For partly synthetic files: one more than the number of coefficients that involve a synthesized variable.

    Returns
    -------
    tuple
        Expectation and standard deviation.

    How to read it
    --------------
    Divide a pMSE by the expectation: about 1 is what a perfect synthesis gives, below 3 is good, below 10 acceptable.
    Subtract the expectation and divide by the standard deviation for the standardized value, about 0 for a perfect
    one. Both can be compared between files of different sizes, which the bare pMSE cannot.

    When not to trust it
    --------------------
    It holds for logistic models with a fixed list of predictors, and for releases drawn from a fitted model. It does
    not hold for trees, which choose their predictors. It does not hold for masked files, whose records are copies of
    the original ones with noise, nor where some records were left as they are.

    Examples
    --------
    >>> mean, sd = pmse_null(56, 5000, 5000)
    >>> round(mean, 7), round(sd, 8)
    (0.0006875, 0.0001311)
    >>> round(pmse_null(56, 5000, 5000, k_star=20)[0], 7)
    0.0002375
    """
    freedom = (k if k_star is None else k_star) - 1
    total = n_original + n_released
    c = n_released / total
    unit = (1 - c) ** 2 * c / total
    return freedom * unit, float(np.sqrt(2 * freedom)) * unit


def swapped(stacked: Stack, rng: np.random.Generator) -> Flags:
    """Swap, for half of the linked pairs at random, which record is the released one."""
    half = stacked.original_records
    turn = rng.random(half) < 0.5
    return np.concatenate([turn, ~turn])


def _generations(
    original: Microdata, synthesizer: Any, sizes: tuple[int, int], rounds: int, base: int
) -> Iterator[tuple[Microdata, Microdata]]:
    model = _fitted(synthesizer, original, base, "first")
    for turn in range(rounds):
        first = model(sizes[0], "first", turn)
        yield first, _fitted(synthesizer, first, base, f"second {turn}")(sizes[1], "second", turn)


def _fitted(synthesizer: Any, data: Microdata, base: int, name: str) -> Callable[[int, str, int], Microdata]:
    """Fit a synthesizer; a plain function of (data, records, generator) will do, too."""

    def stream(*path: str) -> int:
        return int(generator(base, *path).integers(2**63))

    if hasattr(synthesizer, "fit"):
        fitted = synthesizer.fit(data, seed=stream("fit", name))
        return lambda rows, step, turn: fitted.sample(rows, seed=stream("sample", step, str(turn)))
    if callable(synthesizer):
        return lambda rows, step, turn: synthesizer(data, rows, generator(base, "sample", step, str(turn)))
    raise ParameterError(
        "synthesizer must have fit(data, seed=).sample(n, seed=), or be a function of data, records and generator."
    )


def _factor(
    fits: Iterable[Fit], c: float, scale: float | str, fixed_columns: bool
) -> tuple[float, str | None]:
    """Say by how much the null of two draws of one distribution is too wide for a correct synthesis."""
    if fixed_columns:
        return 1 - c, None
    if scale != "auto":
        return float(scale), f"The null was multiplied by {float(scale):.3g}, as asked."
    leaves = [fit.leaves for fit in fits if fit.leaves is not None]
    if not leaves:
        return 1.0, "The null was not scaled: how far this model's choices outweigh its fit is not known."
    mean = float(np.mean(leaves))
    if mean >= _MANY_LEAVES:
        return 1.0, f"The null was not scaled, because its trees have many leaves ({mean:.1f} on average)."
    return (
        1 - c,
        f"The null was multiplied by {1 - c:.3g}, because its trees have few leaves ({mean:.1f} on average).",
    )


def _resampled(
    kind: str, fits: Sequence[Fit], factor: float, note: str | None, *, distances: bool = False
) -> Null:
    values = np.array([fit.pmse for fit in fits]) * factor
    leaves = [fit.leaves for fit in fits if fit.leaves is not None]
    means = None
    if distances:
        found = [score_distances(fit) for fit in fits]
        # A distance goes with the standard deviation of the difference, pMSE with its square.
        root = float(np.sqrt(factor))
        means = {name: root * float(np.mean([each[name] for each in found])) for name in ("specks", "po50")}
        means["auc"] = 0.5 + root * float(np.mean([each["auc"] - 0.5 for each in found]))
    return Null(
        kind,
        float(values.mean()),
        float(values.std(ddof=1)) if len(values) > 1 else None,
        factor,
        tuple(values.tolist()),
        float(np.mean(leaves)) if leaves else None,
        float(np.mean([count == 1 for count in leaves])) if leaves else None,
        means,
        note,
    )


def _base(seed: Seed) -> int:
    return int(generator(seed, "null").integers(2**63))


@dataclass(frozen=True)
class Reference:
    """What the user asked for, to find out how large the distance of a perfect release is.

    ``fixed_columns`` says whether the model has a fixed list of predictors, ``kept`` names the unsynthesized columns.
    """

    null: str
    fixed_columns: bool
    kept: tuple[str, ...]
    copies: int
    weighted: bool
    aligned: bool
    synthesizer: Any
    n_perm: int
    n_resyntheses: int
    scale: float | Literal["auto"]
    seed: Seed
    progress: bool

    def __post_init__(self) -> None:
        if self.null == "resynthesis" and self.synthesizer is None:
            raise ParameterError("null='resynthesis' needs the synthesizer=… that made the release.")
        if self.null == "pairs" and self.copies < 2:
            raise ParameterError(
                "null='pairs' compares copies with each other and needs a list of at least two."
            )
        if self.null == "theory" and (not self.fixed_columns or self.aligned):
            raise ParameterError(
                "null='theory' holds for model='logit' and 'linear' and for files that are not linked record by "
                "record. Use null='permutation'."
            )
        if self.null == "permutation" and self.kept:
            raise ParameterError(
                "Labels of a partly synthetic file cannot be permuted: its unsynthesized columns are the same in both "
                "files. Use null='pairs' with several copies, null='resynthesis', or model='logit' with null='theory'."
            )

    @property
    def kind(self) -> str:
        """The null to use; ``"none"`` where there is none."""
        if self.null != "auto":
            return self.null
        if self.aligned:
            return "none" if self.kept else "permutation"
        if self.synthesizer is not None:
            return "resynthesis"
        if self.fixed_columns and (not self.weighted or self.kept):
            return "theory"
        if not self.kept:
            return "permutation"
        return "pairs" if self.copies > 1 else "none"

    def found(
        self,
        original: Microdata,
        copies: Sequence[Microdata],
        ready: Sequence[Prepared],
        prepare: Prepare,
    ) -> Null:
        """Compute the null."""
        stacked = ready[0].stacked
        sizes = (stacked.original_records, stacked.released_records)
        if self.kind == "none":
            return Null("none")
        if self.kind == "theory":
            first = ready[0]
            k_star = 1 + first.coefficients_of(self.kept) if isinstance(first, PreparedLogit) else 1
            mean, sd = pmse_null(k_star, *sizes)
            # Only the released file varies, given the original; its weights make it vary more.
            spread = stacked.design_effect(released=True)
            return Null("theory", mean * spread, sd * spread)
        if self.kind == "permutation":
            return self._by_permutation(ready)
        if self.kind == "pairs":
            return self._by_pairs(copies, prepare, stacked.share)
        return self._by_resynthesis(original, sizes, prepare)

    def _by_permutation(self, prepared: Sequence[Prepared]) -> Null:
        """Shuffle which record is a released one and fit again; for linked records only within each pair."""

        def shuffled(turn: int) -> Fit:
            rng = generator(base, "permutation", str(turn))
            chosen = prepared[int(rng.integers(len(prepared)))]
            labels = (
                swapped(chosen.stacked, rng) if self.aligned else rng.permutation(chosen.stacked.released)
            )
            return chosen.fit(labels)

        base = _base(self.seed)
        stacked = prepared[0].stacked
        with ThreadPoolExecutor(os.cpu_count() if not self.fixed_columns else 1) as pool:
            turns = pool.map(shuffled, range(self.n_perm))
            fits = list(track(turns, self.n_perm, description="Permutations", progress=self.progress))
        c = stacked.share
        if self.aligned:
            return _resampled("permutation", fits, 1.0, "Labels were swapped within pairs of linked records.")
        spread = stacked.design_effect(released=True) / stacked.design_effect(released=False)
        factor, note = _factor(fits, c, self.scale, self.fixed_columns)
        return _resampled("permutation", fits, factor * spread, note)

    def _by_pairs(self, copies: Sequence[Microdata], prepare: Prepare, c: float) -> Null:
        """Compare every copy with every other: two draws of one model, also where some columns were left alone."""
        pairs = list(combinations(range(len(copies)), 2))
        fits = [
            prepare(copies[one], copies[other]).fit()
            for one, other in track(pairs, description="Pairs of copies", progress=self.progress)
        ]
        factor, note = _factor(fits, c, self.scale, self.fixed_columns)
        # A pair has half its records in each file; this brings it to the shares and sizes of original and release.
        return _resampled("pairs", fits, 8 * c**2 * (1 - c) * factor, note, distances=True)

    def _by_resynthesis(self, original: Microdata, sizes: tuple[int, int], prepare: Prepare) -> Null:
        """Synthesize, synthesize from that again, and compare the two: exactly the situation of a correct synthesis."""
        base, rounds = _base(self.seed), self.n_resyntheses
        fits = []
        for first, second in track(
            _generations(original, self.synthesizer, sizes, rounds, base),
            rounds,
            description="Resynthesis",
            progress=self.progress,
        ):
            fits.append(prepare(first, second).fit())
        return _resampled("resynthesis", fits, 1.0, None, distances=True)
