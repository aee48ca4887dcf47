"""Synthesis by a Gaussian copula: margins as they are, dependence by correlated normal variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from discreet.core.arrays import Floats
from discreet.core.errors import ParameterError, unknown_name
from discreet.core.method_cards import method
from discreet.core.randomness import Seed
from discreet.core.roles import Columns
from discreet.microdata import Microdata
from discreet.numerics.copula import Matching
from discreet.synth.copulas.dependence import Dependence, latent_correlations, shared_information
from discreet.synth.copulas.dimensions import Dimension
from discreet.synth.copulas.fitted import Coupling, FittedCopula, NormalCoupling
from discreet.synth.copulas.margins import FAMILIES, MarginKind
from discreet.synth.copulas.preparing import Preparation, fit_copula
from discreet.synth.modelled_columns import Weights
from discreet.synth.synthesizer import Stream, Synthesizer, seed_of


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
    margins: MarginKind | Mapping[str, MarginKind] = "empirical"
    families: Sequence[str] = FAMILIES
    level_order: Literal["associated", "given"] = "associated"
    splits: bool = True
    groups: int = 20
    matching: Matching = "auto"
    special_codes: Mapping[str, Any] | None = None
    strata: Columns = None
    min_stratum: int | None = None
    weights: Weights = "use"
    few_values: int = 2
    leave_out: Columns = None

    def __post_init__(self) -> None:
        if self.dependence not in ("latent", "mutual-information"):
            raise ParameterError(
                unknown_name(str(self.dependence), ("latent", "mutual-information"), what="dependence")
            )
        if isinstance(self.groups, bool) or not isinstance(self.groups, int) or self.groups < 2:
            raise ParameterError("groups must be a whole number of at least 2.")
        if self.matching not in ("auto", "exact", "montecarlo"):
            raise ParameterError(
                unknown_name(str(self.matching), ("auto", "exact", "montecarlo"), what="matching")
            )
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
