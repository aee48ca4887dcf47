"""Which variables give a release away? Tables of what a propensity model used."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from discreet.arrays import Floats
from discreet.utility.propensity.design import Term
from discreet.utility.propensity.fitting import Fit
from discreet.utility.propensity.stacking import Stack

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
