"""What a propensity model found, put into figures, words and tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.microdata import Microdata
from discreet.results import shown
from discreet.utility.propensity.drivers import (
    coefficient_table,
    score_histogram,
    score_table,
    variable_table,
)
from discreet.utility.propensity.fitting import Fit, Prepared, score_distances
from discreet.utility.propensity.logistic import PreparedLogit
from discreet.utility.propensity.nulls import Null
from discreet.utility.propensity.stacking import Stack

_RECORDS_PER_COEFFICIENT = 5
_GOOD, _ACCEPTABLE = 3, 10
_MODELS = {
    "logit": "A logistic model",
    "linear": "A one-pass linear model",
    "cart": "A classification tree",
    "boosting": "A boosted model",
}


@dataclass(frozen=True)
class Findings:
    """What was found, put into figures, words and tables."""

    ready: Sequence[Prepared]
    fits: Sequence[Fit]
    null: Null
    kept: tuple[str, ...]
    weighted: bool
    aligned: bool

    @property
    def pmse(self) -> float:
        """The mean over copies."""
        return float(np.mean([fit.pmse for fit in self.fits]))

    @property
    def stacked(self) -> Stack:
        """The original and the first copy."""
        return self.ready[0].stacked

    @property
    def ratio(self) -> float | None:
        """How many times the pMSE of a correct synthesis it is."""
        return self.pmse / self.null.mean if self.null.mean else None

    def k(self) -> tuple[int | None, int | None]:
        """Count the coefficients, and those that involve a synthesized column; None for models without."""
        first = self.ready[0]
        if isinstance(first, PreparedLogit):
            return first.design.size, 1 + first.coefficients_of(self.kept)
        return None, None

    def figures(self) -> dict[str, Any]:
        """Return every number by its short name."""
        k, k_star = self.k()
        null = self.null
        distances = [score_distances(fit) for fit in self.fits]
        means = {name: float(np.mean([each[name] for each in distances])) for name in distances[0]}
        leaves = [fit.leaves for fit in self.fits if fit.leaves is not None]
        standardized = (self.pmse - null.mean) / null.sd if null.sd and null.mean is not None else None
        figures: dict[str, Any] = {
            "pmse": self.pmse,
            "null_mean": null.mean,
            "null_sd": null.sd,
            "ratio": self.ratio,
            "standardized": standardized,
            **means,
            "largest_possible": self.stacked.share * (1 - self.stacked.share),
            "null_factor": null.factor,
            "n_original": self.stacked.original_records,
            "n_released": self.stacked.released_records,
            "copies": len(self.fits),
        }
        if k is not None:
            figures |= {"k": k, "k_star": k_star, "p_value": self.p_value(k_star)}
        if leaves:
            figures |= {
                "leaves": float(np.mean(leaves)),
                "null_leaves": null.leaves,
                "share_null_without_split": null.unsplit,
            }
        if null.distances:
            figures |= {
                f"{name}_ratio": means[name] / null.distances[name] if null.distances[name] else None
                for name in ("specks", "po50")
            }
        return figures

    def p_value(self, k_star: int | None) -> float | None:
        """Give the chance of so large a distance under correct synthesis, only where the theory holds."""
        from scipy.stats import chi2

        stacked, k = self.stacked, self.k()[0]
        sure = all(fit.converged and not fit.separated for fit in self.fits)
        enough = k is not None and stacked.records >= _RECORDS_PER_COEFFICIENT * k
        if self.null.kind != "theory" or self.weighted or not sure or not enough or not k_star or k_star < 2:
            return None
        unit = (1 - stacked.share) ** 2 * stacked.share / stacked.records
        total = sum(fit.pmse for fit in self.fits) / unit
        return float(chi2.sf(total, len(self.fits) * (k_star - 1)))

    def meaning(self, model: object) -> str:
        """Say it in one sentence."""
        who = _MODELS.get(model, "The model") if isinstance(model, str) else "The model"
        worst = self._worst()
        if self.pmse == 0:
            return f"{who} cannot tell the release from the original at all: pMSE is 0."
        told = f"{who} tells the release from the original with a pMSE of {shown(self.pmse)}"
        if self.ratio is None:
            return f"{told}; there is no reference to hold it against.{worst}"
        if self.ratio < _GOOD:
            judged = "good; about 1 is ideal"
        elif self.ratio < _ACCEPTABLE:
            judged = "acceptable; below 3 would be good"
        else:
            judged = "poor; below 10 would be acceptable"
        return f"{told}, {shown(float(f'{self.ratio:.3g}'))} times what a correct synthesis gives ({judged}).{worst}"

    def _pairs(self) -> list[tuple[Prepared, Fit]]:
        return list(zip(self.ready, self.fits, strict=True))

    def _worst(self) -> str:
        rows = (
            variable_table(self.stacked, self.fits[0])
            if "importances_later" not in self.fits[0].details
            else None
        )
        if rows is None or rows.is_empty() or not self.pmse or "importance" not in rows.columns:
            return ""
        name, importance = rows.row(0)[:2]
        return f" '{name}' drives it most." if importance and importance > 0 else ""

    def caveats(self, model: object) -> list[str]:
        """Say when the number must not be trusted."""
        said = list(dict.fromkeys(note for each in self.ready for note in each.stacked.notes))
        null, stacked = self.null, self.stacked
        k = self.k()[0]
        if null.note:
            said.append(null.note)
        if null.kind == "none":
            said.append(
                "There is no null for a partly synthetic file with this model: give several copies (null='pairs') or "
                "the synthesizer, or use model='logit'."
            )
        elif self.aligned:
            said.append(
                "The records are linked, so the files are dependent: the null swaps labels within pairs, which holds "
                "for noise that is symmetric, and there is no p-value."
            )
        else:
            said.append(
                "The reference is a file drawn from a correct model that was fitted to the original. For masked files, "
                "whose records are the original ones with noise, it does not hold: a ratio below 1 is then no sign of "
                "quality."
            )
        if null.kind == "permutation":
            said.append(
                "SPECKS, PO50, U and AUC are printed bare: permutation gives no valid reference for them."
            )
        if self.weighted and null.kind == "theory":
            said.append("With survey weights the theory is approximate, so there is no p-value.")
        if null.kind == "theory" and k is not None and stacked.records < _RECORDS_PER_COEFFICIENT * k:
            said.append(
                f"There are fewer than {_RECORDS_PER_COEFFICIENT} records for each of the {k:,} coefficients: the "
                "theory is rough. Use fewer columns or interactions=0."
            )
        if any(fit.separated for fit in self.fits):
            said.append(
                "Some records are told apart for sure (a level or combination that only one file has); a small ridge "
                "keeps the fit finite, and there is no p-value."
            )
        if not all(fit.converged for fit in self.fits):
            said.append("The logistic fit did not settle; take the number as a lower bound.")
        if model == "linear":
            said.append("The linear step is close for good releases and too low for bad ones.")
        if null.unsplit:
            said.append(
                f"{null.unsplit:.0%} of the null fits found no split, so the null is too small: lower cp, "
                "e.g. tree={'cp': 1e-4}."
            )
        if (
            any(fit.leaves == 1 and not each.stacked.identical for each, fit in self._pairs())
            and not null.unsplit
        ):
            said.append(
                "The tree found no first question, as where every column keeps exactly its values and only their "
                "relations are broken: that is no sign of quality. Use model='logit', whose interactions see it."
            )
        half = stacked.share * (1 - stacked.share) / 2
        if null.mean is not None and null.factor and null.mean / null.factor > half and k is None:
            said.append(
                "The null is more than half of the largest possible value: the model fits noise, and any release "
                "looks alike to it. Raise cp or minbucket."
            )
        return said

    def tables(self, original: Microdata) -> dict[str, Callable[[], Any]]:
        """Name the detail tables and how to make them."""
        pairs = [(each.stacked, fit) for each, fit in self._pairs()]

        def variables() -> pl.DataFrame:
            parts = [
                variable_table(stacked, fit).with_columns(copy=pl.lit(place))
                for place, (stacked, fit) in enumerate(pairs)
            ]
            table = pl.concat(parts)
            if len(parts) == 1:
                return table.drop("copy")
            numbers = [name for name in table.columns if name not in ("variable", "copy")]
            return (
                table.group_by("variable", maintain_order=True)
                .agg(pl.col(numbers).mean())
                .sort("importance", descending=True, maintain_order=True)
            )

        def copies() -> pl.DataFrame:
            rows = [
                {
                    "copy": place,
                    "pmse": fit.pmse,
                    "ratio": fit.pmse / self.null.mean if self.null.mean else None,
                    **score_distances(fit),
                    "leaves": fit.leaves,
                    "separated": fit.separated,
                }
                for place, fit in enumerate(self.fits)
            ]
            return pl.DataFrame(rows, infer_schema_length=None)

        makers: dict[str, Callable[[], Any]] = {
            "variables": lambda: engine.like(original, variables()),
            "scores": lambda: engine.like(original, score_table(pairs)),
            "histogram": lambda: engine.like(original, score_histogram(self.fits)),
            "copies": lambda: engine.like(original, copies()),
        }
        if "terms" in self.fits[0].details:
            makers["coefficients"] = lambda: engine.like(original, coefficient_table(self.fits[0]))
        if self.null.values:
            makers["null"] = lambda: engine.like(original, pl.DataFrame({"pmse": list(self.null.values)}))
        return makers
