"""Synthesis by a Gaussian copula: margins as they are, dependence by correlated normal variables.

The latent correlations come from normal scores, or from what pairs of columns share of information.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Any, Literal, cast

import numpy as np

from discreet.core.arrays import Flags, Floats
from discreet.core.constraints import AtLeast, HoldsValues, Public
from discreet.core.errors import ParameterError
from discreet.core.method_cards import method
from discreet.core.progress import track
from discreet.core.randomness import Seed
from discreet.core.roles import Columns
from discreet.dp.entropy import Stream
from discreet.microdata import Microdata
from discreet.numerics.copula import Matching, fit_gaussian
from discreet.numerics.correlation import nearest_correlation
from discreet.numerics.mutual_information import BOUND
from discreet.synth.copula_columns import FAMILIES, Dimension, MarginKind, mean_scores
from discreet.synth.copula_model import Coupling, FittedCopula, NormalCoupling, Preparation, fit_copula
from discreet.synth.from_aggregates.latent_correlation import LatentPairs
from discreet.synth.synthesizer import Synthesizer, seed_of
from discreet.synth.whole_records import Weights


@method(
    aim="records",
    work="whole-file",
    references=(
        "Patki, N., Wedge, R. and Veeramachaneni, K. (2016). The synthetic data vault. IEEE International "
        "Conference on Data Science and Advanced Analytics, 399–410.",
    ),
)
@dataclass(frozen=True)
class GaussianCopula(Synthesizer):
    """Which records have the same columns, and pairs of columns that go together as much?

    Behind every column stands a normal variable that is cut at the quantiles of the column; the normal variables are
    correlated. Margins are kept as they are, relations of two columns as far as one number can say them: shape
    (curves, peaks, empty cells) and relations of three columns are not. A number with missing values or special codes
    has two variables behind it, one for its state and one for its value, so that missingness has relations of its own;
    a category without an order has several where one scale cannot hold it (see ``splits``).

    Also known as: Gaussian copula; SDV GaussianCopulaSynthesizer.

    Parameters
    ----------
    dependence
        How correlations are found. ``"latent"``: those that give grouped normal scores the correlations they have,
        close to polychoric ones. ``"mutual-information"``: those at which the cut variables share as much information
        as the columns do (Jiang and others 2022); they have the sign of the rank correlation. Either way pairs may
        contradict each other; the nearest correlation matrix is taken.
    margins
        Of numbers: ``"empirical"`` gives observed values only; ``"smoothed"`` also values between them;
        ``"parametric"`` those of the best family (then no value of a record is kept); or ``{column: kind}``.
    families
        What ``"parametric"`` chooses from by Akaike's criterion, in scipy's names.
    level_order
        A copula sees categories on a scale. ``"associated"`` puts the levels of those without an order of their own in
        the order in which they go best with the other columns, ``"given"`` takes them as they are sorted.
    splits
        Whether a category without an order is divided where one scale cannot hold what its levels tell about the
        other columns (husband and wife are alike as to marriage, and opposites as to sex). Each part has a normal
        variable of its own. It takes ``level_order="associated"`` and ``dependence="latent"``; information is
        matched on one variable a column.
    groups
        Numbers are matched on so many quantile groups, for mutual information.
    matching
        How information is matched; see `discreet.numerics.copula.fit_gaussian`.
    special_codes
        ``{column: [codes]}``: values that are no numbers, or at which numbers pile up (0 for amounts).
    strata
        Columns within whose values everything is fitted and drawn separately.
    min_stratum
        Strata with fewer records are pooled with one another; ten plus ten for each column unless given.
    weights
        ``"use"`` weights margins and relations by the survey weights, so that the synthetic file is like a simple
        random sample of the population; ``"ignore"`` leaves them aside. The synthetic file has no weights.
    few_values
        Numbers with at most this many distinct values are taken for categories.
    leave_out
        Columns that the synthetic file shall not have.

    When not to use it
    ------------------
    Do not use it where relations are not monotone (a peak in the middle, rules between columns); trees
    (`Sequential`) follow those. Do not take it for anonymous: extreme values of empirical margins are those of people.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"size": [1, 1, 2, 2, 3, 3] * 50, "kind": ["a", "a", "b", "b", "c", "b"] * 50})
    >>> model = GaussianCopula().fit(Microdata(people), seed=1)
    >>> model.labels
    ('size', 'kind')
    >>> model.sample(4, seed=1).frame.shape
    (4, 2)
    """

    dependence: Dependence = "latent"
    margins: Annotated[MarginKind, Public()] | Annotated[Mapping[str, MarginKind], Public()] = "empirical"
    families: Annotated[Sequence[str], Public()] = FAMILIES
    level_order: Literal["associated", "given"] = "associated"
    splits: bool = True
    groups: Annotated[int, AtLeast(2)] = 20
    matching: Matching = "auto"
    special_codes: Annotated[Mapping[str, Any], HoldsValues(by_column=True)] | None = None
    strata: Annotated[Columns, Public()] = None
    min_stratum: int | None = None
    weights: Weights = "use"
    few_values: Annotated[int, AtLeast(0)] = 2
    leave_out: Annotated[Columns, Public()] = None

    def __post_init__(self) -> None:
        Preparation.of(self).check()

    def fit(self, data: Microdata, *, progress: bool = False, seed: Seed = None) -> FittedCopula:
        """Fit margins and correlations.

        Parameters
        ----------
        data
            The file; its identifiers are left out, its weight is used (see ``weights``).
        seed
            For the drawn pairs by which the information of sparse tables is matched.
        progress
            Show how far it is, on a terminal.
        """

        def fitter(
            dimensions: Sequence[Dimension], weights: Floats | None, stream: Stream
        ) -> tuple[Coupling, tuple[str, ...]]:
            if self.dependence == "latent":
                found = latent_correlations(dimensions, weights)
            else:
                found = shared_information(
                    dimensions,
                    weights,
                    groups=self.groups,
                    matching=self.matching,
                    stream=stream,
                    progress=progress,
                )
            return NormalCoupling(found.correlation), found.notes

        stream = Stream(seed_of(seed), "gaussian copula")
        return fit_copula(
            data,
            Preparation.of(self),
            fitter,
            kind="gaussian",
            mixed=False,
            stream=stream,
            splits=self.splits and self.dependence == "latent",
        )


# The latent correlations of a Gaussian copula, from normal scores or from shared information.
Dependence = Literal["latent", "mutual-information"]

_LEAST_RECORDS = 10
_LARGE_REPAIR = 0.05
_CHUNK = 50_000  # records
#: What a pair without correlation weighs when correlations are mended, beside one that is as strong as can be.
_WEAK = 0.2


@dataclass(frozen=True, eq=False)
class Latent:
    """A correlation matrix of latent normal variables and what had to be done to get it."""

    correlation: Floats
    notes: tuple[str, ...] = ()


def latent_correlations(dimensions: Sequence[Dimension], weights: Floats | None) -> Latent:
    """Match correlations of normal scores.

    The scores of a column are the means of a normal variable between the quantiles of its values. Grouping weakens
    their correlation; the latent one is that which gives grouped scores the correlation they have (for two categories
    this is close to the polychoric correlation). Pairs with gaps use the records in which both are there.
    """
    observed, counts = _score_correlations(dimensions, weights)
    pairs = LatentPairs(cast(Any, [_ScoreMargin(dimension) for dimension in dimensions]))
    wanted = np.eye(len(dimensions))
    for i, j in combinations(range(len(dimensions)), 2):
        if counts[i, j] >= _LEAST_RECORDS and observed[i, j]:
            found = pairs.of(i, j, float(observed[i, j])).correlation
            wanted[i, j] = wanted[j, i] = np.clip(found, -BOUND, BOUND)
    return _mended(wanted, _trust(dimensions, counts, wanted))


def shared_information(
    dimensions: Sequence[Dimension],
    weights: Floats | None,
    *,
    groups: int,
    matching: Matching,
    stream: Stream,
    progress: bool,
) -> Latent:
    """Match mutual information pair by pair (`fit_gaussian`), long columns in quantile groups."""
    coarse = [dimension.grouped(groups) for dimension in dimensions]
    wanted = np.eye(len(coarse))
    beyond = 0
    pairs = list(combinations(range(len(coarse)), 2))
    for i, j in track(pairs, description="Matching pairs", progress=progress):
        one, other = coarse[i], coarse[j]
        both = _both(one, other)
        ranks = [d.ranks if both is None else d.ranks[both] for d in (one, other)]
        if len(ranks[0]) < _LEAST_RECORDS or any((r == r[0]).all() for r in ranks):
            continue
        share = weights if weights is None or both is None else weights[both]
        found = fit_gaussian(
            ranks,
            ordered=[one.ordered, other.ordered],
            weights=share,
            matching=matching,
            seed=stream("pair", one.label, other.label),
        )
        wanted[i, j] = wanted[j, i] = found.correlation[0, 1]
        beyond += len(found.unreached)
    mended = _mended(wanted, None)
    if not beyond:
        return mended
    note = (
        f"Pairs of columns that share more information than a Gaussian copula can give them: {beyond}. They come out "
        "weaker than they are."
    )
    return Latent(mended.correlation, (*mended.notes, note))


@dataclass(frozen=True, eq=False)
class _ScoreMargin:
    """A dimension as a quantile function of scores, in the shape that `LatentPairs` asks for."""

    dimension: Dimension
    family: str = "observed"
    zero: float = 0.0

    def quantile(self, uniform: Floats) -> Floats:
        upto = np.minimum(np.cumsum(self.dimension.shares), 1.0)
        return np.asarray(mean_scores(upto)[np.searchsorted(upto[:-1], uniform, side="right")])


def _score_correlations(dimensions: Sequence[Dimension], weights: Floats | None) -> tuple[Floats, Floats]:
    """Return the correlation of every pair over the records in which both are there, and how many these are."""
    size, width = len(dimensions[0].ranks), len(dimensions)
    values = [mean_scores(np.minimum(np.cumsum(d.shares), 1.0)) for d in dimensions]
    mass, first, second, cross, counts = (np.zeros((width, width)) for _ in range(5))
    # Block by block, so that a long file needs little memory.
    for start in range(0, size, _CHUNK):
        rows = slice(start, min(start + _CHUNK, size))
        share = np.ones(rows.stop - start) if weights is None else weights[rows]
        there: Floats = np.column_stack(
            [np.ones(len(share)) if d.there is None else d.there[rows] for d in dimensions]
        )
        scores: Floats = there * np.column_stack(
            [score[d.ranks[rows]] for score, d in zip(values, dimensions, strict=True)]
        )
        weighted = there * share[:, None]
        mass += there.T @ weighted
        first += scores.T @ weighted
        second += (scores**2).T @ weighted
        cross += scores.T @ (scores * share[:, None])
        counts += there.T @ there
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = first / mass
        variance = np.maximum(second / mass - mean**2, 0.0)
        covariance = cross / mass - mean * mean.T
        found = covariance / np.sqrt(variance * variance.T)
    # Scores are means of normal quantiles within (0, 1), below 9 in size: without records in common there is no mean,
    # and a level that everybody has does not vary. Nothing else stands for "unrelated".
    flat = (mass == 0) | (variance < 1e-12) | (variance.T < 1e-12)
    lost = ~flat & ~np.isfinite(found)
    if lost.any():
        one, other = (dimensions[int(place)].label for place in np.argwhere(lost)[0])
        raise ParameterError(
            f"The relation of '{one}' and '{other}' cannot be computed in floating point. Check their weights and "
            "values."
        )
    return np.where(flat, 0.0, np.clip(found, -1.0, 1.0)), counts


def _both(one: Dimension, other: Dimension) -> Flags | None:
    if one.there is None:
        return other.there
    return one.there if other.there is None else one.there & other.there


def _trust(dimensions: Sequence[Dimension], counts: Floats, wanted: Floats) -> Floats | None:
    """Return how much each pair weighs when correlations are mended.

    It weighs by the records behind it and by its strength: a strong relation that gets lost shows more than a weak one.
    What a column's own variables have to do with each other is not seen, and may be whatever suits the others. Where
    there are none, all pairs weigh alike.
    """
    own = np.array([dimension.column or dimension.label for dimension in dimensions])
    trust = np.where(
        own[:, None] == own[None, :], 0.0, counts / counts.max() * (_WEAK + (1 - _WEAK) * wanted**2)
    )
    np.fill_diagonal(trust, 1.0)
    return None if len(set(own)) == len(own) else trust


def _mended(wanted: Floats, trust: Floats | None) -> Latent:
    mended = nearest_correlation(wanted, weights=trust)
    weights = np.ones_like(wanted) if trust is None else trust
    moved = np.abs(mended - wanted) * (weights > 0)
    if moved.max() <= _LARGE_REPAIR:
        return Latent(mended)
    between = weights * (1 - np.eye(len(wanted)))
    return Latent(
        mended,
        (
            "The correlations of pairs contradict each other; the nearest matrix differs from them by "
            f"{float((between * moved).sum() / between.sum()):.2f} on average and by up to {moved.max():.2f}"
            + ("." if trust is None else "; pairs that few records tell about give way first."),
        ),
    )
