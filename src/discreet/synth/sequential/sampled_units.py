"""Which units the bootstrap of a survey draws again: records, or whole clusters, within the strata of the design."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from discreet.core.arrays import Array, Integers
from discreet.microdata import Microdata


@dataclass(frozen=True, eq=False)
class SampledUnits:
    """The unit and the design stratum of every record, as numbers.

    Attributes
    ----------
    unit
        Records with the same number were drawn together (the role ``psu``); records themselves without the role.
    stratum
        Units are drawn again within these (the role ``strata``).
    """

    unit: Integers
    stratum: Integers

    @classmethod
    def of(cls, data: Microdata, frame: pl.DataFrame) -> SampledUnits:
        """Read the units off the roles of the data."""
        strata, psu = list(data.roles.strata), data.roles.psu
        stratum = _numbered(frame, strata) if strata else np.zeros(frame.height, dtype=np.int64)
        # Clusters are often numbered anew in every stratum.
        unit = _numbered(frame, [*strata, psu]) if psu else np.arange(frame.height)
        return cls(unit, stratum)

    def drawn_again(self, rows: Array | None, rng: np.random.Generator) -> Integers:
        """Draw as many units of each stratum as there are, with replacement; return how often each record comes.

        ``rows`` are the records that are modelled together; None are all.

        Examples
        --------
        >>> pairs = SampledUnits(np.array([0, 0, 1, 1]), np.zeros(4, dtype=np.int64))
        >>> times = pairs.drawn_again(None, np.random.default_rng(1))
        >>> bool(times[0] == times[1]), int(times.sum())
        (True, 4)
        """
        unit = self.unit if rows is None else self.unit[rows]
        stratum = self.stratum if rows is None else self.stratum[rows]
        names, first, place = np.unique(unit, return_index=True, return_inverse=True)
        times = np.zeros(len(names), dtype=np.int64)
        of_unit = stratum[first]
        for one in np.unique(of_unit):
            own = np.flatnonzero(of_unit == one)
            times[own] = np.bincount(rng.integers(len(own), size=len(own)), minlength=len(own))
        return np.asarray(times[place])


def _numbered(frame: pl.DataFrame, names: list[str]) -> Integers:
    keys = pl.DataFrame({f"k{place}": frame[name] for place, name in enumerate(names)})
    return keys.select(pl.struct(pl.all()).rank("dense")).to_series().to_numpy().astype(np.int64)
