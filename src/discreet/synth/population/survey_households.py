"""The households of a survey: members, size, stratum and weight, checked before anything is drawn from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ColumnError, ParameterError
from discreet.microdata import Microdata, require_microdata


@dataclass(frozen=True, eq=False)
class SurveyHouseholds:
    """A survey, one household after the other.

    Attributes
    ----------
    frame
        The records, members of a household together and in the order of the file.
    first
        Where each household begins, and at the end the number of records.
    stratum, strata
        The stratum of each household, and the values of all strata.
    weight
        Of each household.
    """

    frame: pl.DataFrame
    first: Integers
    stratum: Integers
    strata: pl.DataFrame
    weight: Floats

    @property
    def size(self) -> Integers:
        """Number of members of each household."""
        return np.diff(self.first)

    @classmethod
    def of(
        cls, data: Microdata, *, different_weights: Literal["refuse", "mean"] = "refuse"
    ) -> SurveyHouseholds:
        """Read the households off the roles of the data."""
        require_microdata(data)
        unit, weight, strata = data.roles.household, data.roles.weight, list(data.roles.strata)
        if unit is None:
            raise ParameterError("Say which records belong together: the role household is not set.")
        whole = engine.collect(data)
        if not whole.height:
            raise ParameterError("There are no records to learn from.")
        if whole[unit].null_count():
            raise ColumnError(
                f"The household '{unit}' is missing in {whole[unit].null_count():,} records. Fill it in or remove them."
            )
        number = whole[unit].rename("u").rank("dense").cast(pl.Int64).to_numpy()
        order = np.argsort(number, kind="stable")
        frame, number = whole[order], number[order]
        starts = np.flatnonzero(np.concatenate([[True], number[1:] != number[:-1]]))
        first = np.concatenate([starts, [len(number)]])
        weights = np.ones(frame.height)
        if weight is not None:
            column = frame[weight].cast(pl.Float64)
            bad = int((column.is_null() | ~column.is_finite() | (column <= 0)).fill_null(True).sum())
            if bad:
                raise ColumnError(
                    f"The weight '{weight}' is missing, zero, negative or not finite in {bad:,} records. Correct or "
                    "remove them."
                )
            weights = column.to_numpy()
        of_household = np.add.reduceat(weights, starts) / np.diff(first)
        differ = int(
            (np.abs(np.maximum.reduceat(weights, starts) - of_household) > 1e-6 * of_household).sum()
        )
        if differ and different_weights == "refuse":
            raise ColumnError(
                f"The weight '{weight}' differs between members of {differ:,} households. Correct it, or take the mean "
                "of each with different_weights='mean'."
            )
        codes = np.zeros(len(starts), dtype=np.int64)
        values = pl.DataFrame()
        if strata:
            table = frame.select(strata)
            ranks = table.select(pl.struct(pl.all()).rank("dense").cast(pl.Int64) - 1).to_series().to_numpy()
            low, high = np.minimum.reduceat(ranks, starts), np.maximum.reduceat(ranks, starts)
            if (low != high).any():
                raise ColumnError(
                    f"{int((low != high).sum()):,} households are in more than one stratum ({', '.join(strata)}). "
                    "Every household needs one stratum: correct them, or name other strata."
                )
            codes = low
            values = table[starts][np.unique(codes, return_index=True)[1]]
        return cls(frame, first, codes, values, of_household)

    def members(self, households: Integers) -> Integers:
        """Return the places of all members of some households, household after household."""
        sizes = self.size[households]
        begin = np.repeat(self.first[households], sizes)
        upto = np.cumsum(sizes)
        return np.asarray(begin + np.arange(len(begin)) - np.repeat(upto - sizes, sizes))


def weighted_quantiles(values: Floats, weights: Floats, shares: Floats) -> Floats:
    """Return the smallest values up to which at least these shares of the weight lie.

    Examples
    --------
    >>> weighted_quantiles(np.array([5.0, 1.0, 3.0]), np.array([2.0, 1.0, 1.0]), np.array([0.25, 0.5, 0.75])).tolist()
    [1.0, 3.0, 5.0]
    """
    order = np.argsort(values, kind="stable")
    upto = np.cumsum(weights[order])
    at = np.searchsorted(upto / upto[-1], shares - 1e-12, side="left")
    return np.asarray(values[order][np.minimum(at, len(values) - 1)])
