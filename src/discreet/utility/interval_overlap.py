"""How far do two sets of estimates agree? Overlap of intervals and of ellipsoids, standardized differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Annotated, Any, Literal, overload

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy

from discreet.core.arrays import Floats, numbers_of
from discreet.core.constraints import AtLeast, Share
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.core.randomness import Seed, generator
from discreet.utility.combining_rules import combine
from discreet.utility.model_fits import ModelFit


@overload
def interval_overlap(a: tuple[float, float], b: tuple[float, float]) -> float: ...
@overload
def interval_overlap(a: npt.ArrayLike, b: npt.ArrayLike) -> Any: ...
@checked
def interval_overlap(a: npt.ArrayLike, b: npt.ArrayLike) -> Any:
    """How much of two confidence intervals is shared?

    The shared length is divided by the length of either interval, and the two shares are averaged.

    Also known as: confidence interval overlap; CIO; IO; J_k.

    Parameters
    ----------
    a, b
        Lower and upper end; or tables of two columns, one interval a row.

    Returns
    -------
    float or numpy.ndarray
        1 for the same interval; negative, and the more so the wider the gap, for intervals apart; NaN where an
        interval has no length.

    How to read it
    --------------
    An overlap of 1 says that both files give the same answer with the same certainty. About 0.75 is a difference of
    one standard error, 0.5 of two. Below 0 the two intervals share nothing, and a reader of the release would be
    misled. Look at the smallest of a model, not only at the mean.

    When not to trust it
    --------------------
    Two wide intervals overlap whatever they say: an overlap of 0.9 between useless estimates is no virtue. It is no
    test. A release with too small standard errors may overlap well and still be too sure of itself.

    Examples
    --------
    >>> round(interval_overlap((1, 3), (2, 5)), 6), interval_overlap((0, 1), (2, 4))
    (0.416667, -0.75)
    """
    one = numbers_of(a, "a", missing=True, infinite=True)
    other = numbers_of(b, "b", missing=True, infinite=True)
    if one.shape[-1:] != (2,) or other.shape[-1:] != (2,):
        raise ParameterError("An interval is a lower and an upper end; give pairs, or tables of two columns.")
    if (one[..., 0] > one[..., 1]).any() or (other[..., 0] > other[..., 1]).any():
        raise ParameterError("The lower end of an interval lies above its upper end.")
    if one.ndim > 1 and other.ndim > 1 and one.shape != other.shape:
        raise ParameterError("a and b must be one interval each, or tables of as many intervals.")
    shared = np.minimum(one[..., 1], other[..., 1]) - np.maximum(one[..., 0], other[..., 0])
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = [
            np.where(width > 0, shared / width, np.nan)
            for width in (one[..., 1] - one[..., 0], other[..., 1] - other[..., 0])
        ]
    overlap = (shares[0] + shares[1]) / 2
    return float(overlap) if overlap.ndim == 0 else overlap


@checked
def ellipsoid_overlap(
    estimates: npt.ArrayLike,
    covariance: npt.ArrayLike,
    other_estimates: npt.ArrayLike,
    other_covariance: npt.ArrayLike,
    *,
    level: Annotated[float, Share(above=True, below=True)] = 0.95,
    draws: Annotated[int, AtLeast(2)] = 10_000,
    seed: Seed = 0,
) -> tuple[float, float]:
    """How much do the joint confidence regions of two fits share?

    Estimates are drawn from the normal distribution of either fit; the share that falls into the confidence ellipsoid
    of the other is divided by the level, and the two are averaged.

    Also known as: ellipsoid overlap.

    Parameters
    ----------
    estimates, covariance, other_estimates, other_covariance
        Of the two fits, for the same coefficients.
    level
        Of the confidence region.
    draws
        How many estimates are drawn; both fits use the same random numbers.
    seed
        For the draws.

    Returns
    -------
    tuple
        The overlap, between 0 and about 1, and its Monte Carlo error; NaN where a covariance is singular.

    How to read it
    --------------
    About 1 says that both files support the same sets of coefficients. Intervals may overlap one by one while the
    ellipsoids do not: then the files disagree about coefficients together.

    When not to trust it
    --------------------
    With many coefficients small differences add up and the overlap falls towards 0 quickly. It is no test. It needs
    full covariances; where one is singular there is no answer.

    Examples
    --------
    >>> ellipsoid_overlap([0, 0], [[1, 0], [0, 1]], [0, 0], [[1, 0], [0, 1]])[0] > 0.99
    True
    """
    b, v = _fit_of(estimates, covariance, "")
    c, w = _fit_of(other_estimates, other_covariance, "other_")
    if len(b) != len(c):
        raise ParameterError(
            f"estimates holds {len(b):,} coefficients and other_estimates {len(c):,}; give the same ones."
        )
    if not all(np.isfinite(part).all() for part in (b, c, v, w)):
        return float("nan"), float("nan")
    try:
        low, high = np.linalg.cholesky(v), np.linalg.cholesky(w)
    except np.linalg.LinAlgError:
        return float("nan"), float("nan")
    noise = generator(seed, "ellipsoid").standard_normal((draws, len(b)))
    limit = scipy.stats.chi2.ppf(level, len(b))
    shares = []
    for center, root, to, other in ((b, low, c, high), (c, high, b, low)):
        away = np.linalg.solve(other, (center + noise @ root.T - to).T)
        shares.append((away**2).sum(axis=0) <= limit)
    each = (shares[0].astype(np.float64) + shares[1]) / (2 * level)
    return float(each.mean()), float(each.std(ddof=1) / np.sqrt(draws))


def _fit_of(estimates: npt.ArrayLike, covariance: npt.ArrayLike, prefix: str) -> tuple[Floats, Floats]:
    """Read the coefficients of a fit and their covariance, which belong together."""
    b = numbers_of(estimates, f"{prefix}estimates", missing=True, infinite=True)
    v = numbers_of(covariance, f"{prefix}covariance", missing=True, infinite=True)
    if b.ndim != 1 or v.shape != (len(b), len(b)):
        raise ParameterError(
            f"{prefix}estimates must be a list of coefficients, and {prefix}covariance a square table with a row and a "
            "column for each."
        )
    return b, v


# Do the copies give the answers of the original? Coefficient by coefficient, and all together.


SeSynthetic = Literal["plugin", "original", "combined"]
_SCHEMA = {
    "term": pl.String,
    "original": pl.Float64,
    "se_original": pl.Float64,
    "low_original": pl.Float64,
    "high_original": pl.Float64,
    "released": pl.Float64,
    "se_released": pl.Float64,
    "low_released": pl.Float64,
    "high_released": pl.Float64,
    "overlap": pl.Float64,
    "standardized_difference": pl.Float64,
    "intervals_meet": pl.Boolean,
    "same_sign": pl.Boolean,
    "same_significance": pl.Boolean,
    "same_conclusion": pl.Boolean,
}


@dataclass(frozen=True)
class Settings:
    """How copies are held against the original; see `compare_fits`."""

    level: float = 0.95
    se_synthetic: SeSynthetic = "plugin"
    target: Literal["observed", "population"] = "observed"
    synthesis: Literal["complete", "partial"] = "complete"
    posterior: bool = False
    denominator: Literal["original", "synthetic"] = "original"
    draws: int = 10_000
    seed: Seed = 0

    @property
    def rule(self) -> Any:
        """The combining rule for the variance of the copies' mean."""
        if self.target == "observed" and self.se_synthetic != "combined":
            return "observed"
        if self.synthesis == "partial":
            return "partial"
        return "proper" if self.posterior else "simple"


@dataclass(frozen=True)
class Agreement:
    """A fit of the original beside fits of the copies."""

    original: ModelFit
    copies: Sequence[ModelFit]
    settings: Settings

    @cached_property
    def common(self) -> tuple[str, ...]:
        """Coefficients that every fit has."""
        return tuple(name for name in self.original.names if all(name in copy.names for copy in self.copies))

    @cached_property
    def lonely(self) -> tuple[str, ...]:
        """Coefficients that some fit lacks."""
        every = dict.fromkeys(name for one in (self.original, *self.copies) for name in one.names)
        return tuple(name for name in every if name not in self.common)

    @cached_property
    def together(self) -> Any:
        """The copies, combined by the rule."""
        parts = [copy.at(self.common) for copy in self.copies]
        sizes = [self.original.records, *(copy.records for copy in self.copies)]
        known = all(size for size in sizes)
        return combine(
            np.array([b for b, _ in parts]),
            np.array([v for _, v in parts]),
            self.settings.rule,
            n=float(sizes[0] or 0) if known else None,
            n_syn=float(np.mean([size or 0 for size in sizes[1:]])) if known else None,
        )

    @cached_property
    def estimates(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Coefficients and covariance of the original, and of the copies, for the common names."""
        b, v = self.original.at(self.common)
        w = v if self.settings.se_synthetic == "original" else np.atleast_2d(self.together.variance)
        return b, v, np.atleast_1d(self.together.estimate), w

    def table(self) -> pl.DataFrame:
        """Compare the coefficients one by one; those that only one side has have no overlap."""
        if not self.common:
            return pl.DataFrame(schema=_SCHEMA)
        b, v, c, w = self.estimates
        z = NormalDist().inv_cdf((1 + self.settings.level) / 2)
        se, other = _errors(v), _errors(w)
        low, high, low_c, high_c = b - z * se, b + z * se, c - z * other, c + z * other
        overlap = np.full(len(b), np.nan)
        fine = np.isfinite(se) & np.isfinite(other) & np.isfinite(b) & np.isfinite(c)
        overlap[fine] = interval_overlap(
            np.column_stack([low, high])[fine], np.column_stack([low_c, high_c])[fine]
        )
        by = se if self.settings.denominator == "original" else other
        with np.errstate(divide="ignore", invalid="ignore"):
            difference = np.where(by > 0, np.abs(b - c) / by, np.nan)
        sure, sure_c = (low > 0) | (high < 0), (low_c > 0) | (high_c < 0)
        same_sign = np.sign(b) == np.sign(c)
        one = pl.DataFrame(
            {
                "term": list(self.common),
                "original": b,
                "se_original": se,
                "low_original": low,
                "high_original": high,
                "released": c,
                "se_released": other,
                "low_released": low_c,
                "high_released": high_c,
                "overlap": overlap,
                "standardized_difference": difference,
                "intervals_meet": np.minimum(high, high_c) >= np.maximum(low, low_c),
                "same_sign": same_sign,
                "same_significance": sure == sure_c,
                # An effect that neither file is sure of may have either sign.
                "same_conclusion": (sure == sure_c) & (same_sign | ~sure),
            },
            schema=_SCHEMA,
        )
        rest = [self._alone(name) for name in self.lonely]
        table = pl.concat([one, pl.DataFrame(rest, schema=_SCHEMA)]) if rest else one
        return table.with_columns(pl.col(pl.Float64).fill_nan(None))

    def figures(self) -> dict[str, Any]:
        """Summarize over coefficients."""
        table = self.table()
        overlap = table["overlap"].drop_nulls()
        away = table["standardized_difference"].drop_nulls()
        joint = self._joint()
        shares = {
            f"share_{name}": _mean(table[name].drop_nulls())
            for name in ("same_sign", "same_significance", "same_conclusion")
        }
        return {
            "overlap_mean": _mean(overlap),
            "overlap_median": overlap.median() if len(overlap) else None,
            "overlap_min": overlap.min() if len(overlap) else None,
            "difference_mean": _mean(away),
            "difference_median": away.median() if len(away) else None,
            "difference_max": away.max() if len(away) else None,
            **joint,
            **shares,
            "coefficients": len(self.common),
            "coefficients_in_one_only": len(self.lonely),
            "copies": len(self.copies),
        }

    def caveats(self) -> list[str]:
        """Say when the comparison must not be trusted."""
        said = [note for one in (self.original, *self.copies) for note in one.notes]
        if self.lonely:
            said.append(
                f"{len(self.lonely)} coefficients are in some fits only (levels that a file lacks) and have no overlap."
            )
        if not all(one.converged for one in (self.original, *self.copies)):
            said.append("A fit did not converge; its coefficients mean little.")
        if any(one.separated for one in (self.original, *self.copies)):
            said.append("A logistic fit is sure of some records; its standard errors mean little.")
        if self.common:
            said += list(self.together.notes)
        if self.p_value_holds:
            said.append(
                "The Wald test asks whether the copies were drawn from a correct model fitted to the original. It does "
                "not hold for masked files."
            )
        else:
            said.append("Original and release are dependent, so the Wald statistic comes without a p-value.")
        return list(dict.fromkeys(said))

    @property
    def p_value_holds(self) -> bool:
        """Whether the whole difference has a known distribution: complete synthesis without draws of parameters."""
        fits = (self.original, *self.copies)
        sure = all(one.converged and not one.separated for one in fits)
        return (
            self.settings.synthesis == "complete"
            and not self.settings.posterior
            and sure
            and bool(self.common)
        )

    def _joint(self) -> dict[str, Any]:
        empty = dict.fromkeys(
            ("ellipsoid_overlap", "ellipsoid_error", "wald", "wald_df", "wald_ratio", "wald_p_value")
        )
        if not self.common:
            return empty
        b, v, c, w = self.estimates
        overlap, error = ellipsoid_overlap(
            b, v, c, w, level=self.settings.level, draws=self.settings.draws, seed=self.settings.seed
        )
        # Given the original, the mean of m copies varies by their own variance over m.
        within = np.atleast_2d(self.together.within) / len(self.copies)
        try:
            wald = float((c - b) @ np.linalg.solve(within, c - b))
        except np.linalg.LinAlgError:
            return {**empty, "ellipsoid_overlap": overlap, "ellipsoid_error": error}
        df = len(b)
        return {
            "ellipsoid_overlap": overlap,
            "ellipsoid_error": error,
            "wald": wald,
            "wald_df": df,
            "wald_ratio": wald / df,
            "wald_p_value": float(scipy.stats.chi2.sf(wald, df)) if self.p_value_holds else None,
        }

    def _alone(self, name: str) -> dict[str, Any]:
        row: dict[str, Any] = dict.fromkeys(_SCHEMA)
        row["term"] = name
        if name in self.original.names:
            at = self.original.names.index(name)
            row["original"] = float(self.original.coefficients[at])
            row["se_original"] = float(self.original.standard_errors[at])
        held = [copy.coefficients[copy.names.index(name)] for copy in self.copies if name in copy.names]
        row["released"] = float(np.mean(held)) if held else None
        return row


def _errors(covariance: Floats) -> Floats:
    variances = np.diag(covariance)
    # A variance of zero is no certainty but a fit that failed.
    return np.where(variances > 0, np.sqrt(np.maximum(variances, 0.0)), np.nan)


def _mean(values: pl.Series) -> float | None:
    return float(values.cast(pl.Float64).mean()) if len(values) else None  # type: ignore[arg-type]
