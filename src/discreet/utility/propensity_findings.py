"""What a propensity model found, put into figures, words and tables, and which variables give a release away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Floats
from discreet.core.wording import shown
from discreet.utility.propensity_design import Stack, Term
from discreet.utility.propensity_learners import Fit, Prepared, PreparedLogit, score_distances
from discreet.utility.propensity_nulls import Null

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

    def tables(self) -> dict[str, Any]:
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

        found: dict[str, Any] = {
            "variables": variables,
            "scores": lambda: score_table(pairs),
            "histogram": lambda: score_histogram(self.fits),
            "copies": copies,
        }
        if "terms" in self.fits[0].details:
            found["coefficients"] = lambda: coefficient_table(self.fits[0])
        if self.null.values:
            found["null"] = {"pmse": list(self.null.values)}
        return found


_STEPS = 40


def variable_table(stacked: Stack, fit: Fit) -> pl.DataFrame:
    """Rank the variables by how much they help to tell the files apart, the worst first."""
    if "beta" in fit.details:
        table = _by_wald(fit)
    else:
        later = fit.details.get("importances_later")
        given = fit.details.get("importances")
        found: Floats = np.asarray(later() if later is not None else (given if given is not None else []))
        names = [column.name for column in stacked.columns]
        total = float(found.sum()) if len(found) == len(names) else 0.0
        shares = found / total if total > 0 else np.zeros(len(names))
        table = pl.DataFrame(
            {"variable": names, "importance": shares},
            schema={"variable": pl.String, "importance": pl.Float64},
        )
    return table.sort("importance", descending=True, maintain_order=True)


def coefficient_table(fit: Fit) -> pl.DataFrame:
    """List the coefficients of a logistic model with their standard errors and z-scores."""
    terms: Sequence[Term] = fit.details["terms"]
    if "beta" not in fit.details:
        return pl.DataFrame({"term": [term.name for term in terms]})
    beta, errors = fit.details["beta"], np.sqrt(np.maximum(np.diag(fit.details["covariance"]), 0.0))
    return pl.DataFrame(
        {
            "term": [term.name for term in terms],
            "variables": [list(term.variables) for term in terms],
            "coefficient": beta,
            "standard_error": errors,
            "z": np.divide(beta, errors, out=np.zeros(len(beta)), where=errors > 0),
        },
        schema_overrides={"variables": pl.List(pl.String)},
    )


def score_table(fits: Sequence[tuple[Stack, Fit]]) -> pl.DataFrame:
    """List the score of every record of every copy and of the original beside it."""
    parts = []
    for copy, (stacked, fit) in enumerate(fits):
        by_record = stacked.cell is None or len(fit.scores) == stacked.records
        scores = fit.scores if by_record or stacked.cell is None else fit.scores[stacked.cell]
        half = stacked.original_records
        record = np.concatenate([np.arange(half), np.arange(stacked.records - half)])
        parts.append(
            pl.DataFrame(
                {
                    "copy": np.full(stacked.records, copy),
                    "file": pl.Series(stacked.released).replace_strict(
                        {False: "original", True: "released"}, return_dtype=pl.String
                    ),
                    "record": record,
                    "score": scores,
                }
            )
        )
    return pl.concat(parts)


def score_histogram(fits: Sequence[Fit]) -> pl.DataFrame:
    """Count the scores of the original and of the copies in steps of equal width, as shares."""
    low = min(float(fit.scores.min()) for fit in fits)
    high = max(float(fit.scores.max()) for fit in fits)
    edges = np.linspace(low, high if high > low else low + 1e-9, _STEPS + 1)
    total = np.zeros((2, _STEPS))
    for fit in fits:
        for row, mass in enumerate((fit.every - fit.ours, fit.ours)):
            total[row] += np.histogram(fit.scores, edges, weights=mass)[0]
    shares = total / total.sum(axis=1, keepdims=True)
    return pl.DataFrame({"from": edges[:-1], "to": edges[1:], "original": shares[0], "released": shares[1]})


def _by_wald(fit: Fit) -> pl.DataFrame:
    """Test, for each variable, all coefficients that involve it; 1 is what a correct synthesis gives on average."""
    terms: Sequence[Term] = fit.details["terms"]
    beta, covariance = fit.details["beta"], fit.details["covariance"]
    errors = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    names = list(dict.fromkeys(name for term in terms for name in term.variables))
    rows = []
    for name in names:
        at = np.array([place for place, term in enumerate(terms) if name in term.variables])
        part = covariance[np.ix_(at, at)]
        wald = float(beta[at] @ np.linalg.lstsq(part, beta[at], rcond=1e-12)[0])
        rows.append(
            {
                "variable": name,
                "importance": wald / len(at) / (1 - fit.share),
                "coefficients": len(at),
                "wald": wald,
                "largest_z": float(np.abs(beta[at] / errors[at]).max()),
            }
        )
    return pl.DataFrame(
        rows,
        schema={
            "variable": pl.String,
            "importance": pl.Float64,
            "coefficients": pl.Int64,
            "wald": pl.Float64,
            "largest_z": pl.Float64,
        },
    )
