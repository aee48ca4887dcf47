"""Do the copies give the answers of the original? Coefficient by coefficient, and all together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
import polars as pl

from discreet.core.arrays import Floats
from discreet.core.errors import ParameterError
from discreet.core.randomness import Seed
from discreet.utility.fits.combining import combine
from discreet.utility.fits.model_fits import ModelFit
from discreet.utility.fits.overlapping import ellipsoid_overlap, interval_overlap

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

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise ParameterError("level must lie between 0 and 1, e.g. 0.95.")
        for name, known in (
            ("se_synthetic", ("plugin", "original", "combined")),
            ("target", ("observed", "population")),
            ("synthesis", ("complete", "partial")),
            ("denominator", ("original", "synthetic")),
        ):
            if getattr(self, name) not in known:
                raise ParameterError(f"{name} must be {' or '.join(map(repr, known))}.")

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
        from scipy.stats import chi2

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
            "wald_p_value": float(chi2.sf(wald, df)) if self.p_value_holds else None,
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
