"""Survey weights in a synthesis: what becomes of them, what models are fitted with, and how unequal they are."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from discreet.core.arrays import Floats
from discreet.core.errors import ColumnError, DiscreetWarning, ParameterError, unknown_name
from discreet.microdata import Microdata

if TYPE_CHECKING:
    from discreet.synth.sequential.sequential import Sequential

SAME_WEIGHTS = 1.0 + 1e-9
"""Up to this design effect all weights are the same."""
_LARGE_DESIGN_EFFECT = 3.0


def weight_use(options: Sequential, data: Microdata) -> str:
    """Say what becomes of the survey weights; ``none`` where the file has none."""
    if options.weights not in ("use", "regenerate", "synthesize", "ignore"):
        raise ParameterError(
            unknown_name(
                str(options.weights), ("use", "regenerate", "synthesize", "ignore"), what="use of weights"
            )
        )
    return options.weights if data.roles.weight else "none"


def design_effect(options: Sequential, data: Microdata, frame: pl.DataFrame) -> dict[str, float]:
    """Return how much unequal weights blow variances up (Kish 1965), where weights are used."""
    if data.roles.weight is None or weight_use(options, data) not in ("use", "regenerate"):
        return {}
    weights = frame[data.roles.weight].cast(pl.Float64).drop_nulls().drop_nans().to_numpy()
    if not len(weights) or not 0 < weights.sum() < np.inf:
        return {}
    return {"design_effect": float(len(weights) * np.square(weights).sum() / weights.sum() ** 2)}


def weight_notes(
    options: Sequential, data: Microdata, frame: pl.DataFrame, strata: Sequence[str]
) -> list[str]:
    """Say where the weights make a file other than what it may be taken for."""
    notes = []
    if strata and options.stratum_sizes == "fixed" and weight_use(options, data) in ("use", "regenerate"):
        notes.append(
            "Every stratum is like a simple random sample of its population, but the file is not: strata are as large "
            'as in the sample. Use stratum_sizes="drawn" or "population" for a file that is analyzed as a whole.'
        )
    effect = design_effect(options, data, frame).get("design_effect", 1.0)
    if effect <= _LARGE_DESIGN_EFFECT:
        return notes
    return [
        *notes,
        f"The weights are very unequal (design effect {effect:.1f}): variances combined from copies by the rule "
        "'pseudo-likelihood' are too small. Fit with proper='bootstrap' and combine by that rule, or trim the weights.",
    ]


def fit_weights(options: Sequential, data: Microdata, frame: pl.DataFrame) -> Floats | None:
    """Return the weights that models are fitted with, adding up to the number of records; None where all are alike."""
    use = weight_use(options, data)
    if use in ("none", "ignore") or data.roles.weight is None:
        return None
    column = data.roles.weight
    weights = frame[column].cast(pl.Float64)
    bad = int((weights.is_null() | ~weights.is_finite() | (weights <= 0)).fill_null(True).sum())
    if bad:
        raise ColumnError(
            f"The weight '{column}' is missing, zero, negative or not finite in {bad:,} records. A weighted synthesis "
            "needs a positive weight for every record: correct or remove them, or set weights='ignore'."
        )
    values = weights.to_numpy()
    if use == "synthesize" or values.min() == values.max():
        return None
    return np.asarray(values * (len(values) / values.sum()))


def above_zero(table: pl.DataFrame, weight: str, least: float) -> pl.DataFrame:
    """Raise synthetic weights that no record can have to the smallest one of the data, and say how many."""
    bad = (table[weight].cast(pl.Float64) > 0).not_().fill_null(True)
    count = int(bad.sum())
    if not count:
        return table
    warnings.warn(
        f"{count:,} of {table.height:,} synthetic weights in '{weight}' were not above zero and are now the smallest "
        f"weight of the data. A method with positive values avoids it: method={{'{weight}': 'cart'}} or 'lognorm'.",
        DiscreetWarning,
        stacklevel=5,
    )
    smallest = pl.Series([least]).cast(table[weight].dtype)
    return pl.DataFrame(
        {
            name: table[name].set(bad, smallest.item()) if name == weight else table[name]
            for name in table.columns
        }
    )
