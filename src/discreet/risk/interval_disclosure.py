"""Is the original value inside a small interval around the released one?

Interval disclosure for masked numbers of linked records: by standard deviations (SDID), by ranks (RID; both
Mateo-Sanz, Sebé and Domingo-Ferrer 2004), and with intervals that grow with how far out a person is (robust
Mahalanobis distances, after Templ and Meindl 2008).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from discreet.core.arrays import Flags, Floats
from discreet.core.errors import ColumnError, ParameterError
from discreet.core.randomness import Seed, generator
from discreet.numerics.distance.boxes import in_boxes
from discreet.numerics.distance.space import as_float


@dataclass(frozen=True)
class Disclosed:
    """Which original values lie inside the interval of their released record, cell by cell.

    ``outlyingness`` (squared robust distances of the originals) and ``crowded`` (records that enough other released
    records hide) are there for the robust variant only.
    """

    columns: tuple[str, ...]
    inside: Flags
    known: Flags
    outlyingness: Floats | None = None
    crowded: Flags | None = None

    @property
    def records(self) -> Flags:
        """Records with every known value inside (and at least one known)."""
        return np.asarray((self.inside | ~self.known).all(axis=1) & self.known.any(axis=1))

    @property
    def by_column(self) -> Floats:
        """Share of the known values of each column that lie inside."""
        known = self.known.sum(axis=0)
        shares = np.full(len(known), np.nan)
        np.divide((self.inside & self.known).sum(axis=0), known, out=shares, where=known > 0)
        return shares


def by_standard_deviation(ours: pl.DataFrame, theirs: pl.DataFrame, width: float) -> Disclosed:
    """Ask whether the original lies within ``width`` standard deviations of the released value."""
    x, y = numeric_columns(ours), numeric_columns(theirs)
    reach = width * np.nanstd(x, axis=0)
    known = ~(np.isnan(x) | np.isnan(y))
    return Disclosed(tuple(ours.columns), np.abs(x - y) <= reach * (1 + 1e-12), known)


def by_rank(ours: pl.DataFrame, theirs: pl.DataFrame, width: float) -> Disclosed:
    """Ask whether the original lies between the values ``width`` of all ranks below and above the released one.

    Ranks are those of the released values; the bounds are the released values at the ends of the rank window.
    """
    x, y = numeric_columns(ours), numeric_columns(theirs)
    inside = np.zeros(x.shape, dtype=bool)
    for j in range(x.shape[1]):
        ordered = np.sort(y[~np.isnan(y[:, j]), j])
        steps = int(np.floor(width * len(ordered)))
        first = np.searchsorted(ordered, y[:, j], side="left")
        last = np.searchsorted(ordered, y[:, j], side="right") - 1
        low = ordered[np.clip(first - steps, 0, len(ordered) - 1)]
        high = ordered[np.clip(last + steps, 0, len(ordered) - 1)]
        inside[:, j] = (x[:, j] >= low) & (x[:, j] <= high)
    return Disclosed(tuple(ours.columns), inside, ~(np.isnan(x) | np.isnan(y)))


def by_robust_distance(
    ours: pl.DataFrame, theirs: pl.DataFrame, width: float, *, crowd: int, crowd_width: float, seed: Seed
) -> Disclosed:
    """Ask the same with intervals as wide as the person is far out.

    The half-width is ``width`` times the squared robust Mahalanobis distance of the original (minimum covariance
    determinant) times the robust standard deviation of the column. A record that more than ``crowd`` other released
    records lie close to (within ``crowd_width`` robust standard deviations in every column) is hidden in a crowd.
    """
    x, y = numeric_columns(ours), numeric_columns(theirs)
    complete = np.asarray(~np.isnan(x + y).any(axis=1))
    squared, scales = _robust_distances(x, complete, ours.columns, seed)
    reach = width * squared[:, None] * scales
    inside = (np.abs(x - y) <= reach * (1 + 1e-12)) & complete[:, None]
    near = in_boxes(y[complete], y[complete], crowd_width * scales)
    crowded = np.zeros(len(x), dtype=bool)
    crowded[complete] = near.counts - 1 > crowd
    return Disclosed(
        tuple(ours.columns), inside, np.broadcast_to(complete[:, None], x.shape), squared, crowded
    )


def numeric_columns(table: pl.DataFrame) -> Floats:
    """Return the columns as numbers; refuse categories."""
    for name, dtype in table.schema.items():
        if not (dtype.is_numeric() or dtype.is_temporal()):
            raise ColumnError(
                f"Column '{name}' is not numeric, and intervals need numbers. Leave it out with columns=[…], or use "
                "method='distance'."
            )
    return np.column_stack([as_float(table[name]) for name in table.columns])


def _robust_distances(x: Floats, complete: Flags, names: Sequence[str], seed: Seed) -> tuple[Floats, Floats]:
    from sklearn.covariance import MinCovDet

    rows, columns = int(complete.sum()), x.shape[1]
    if rows < max(10, 2 * columns + 1):
        raise ParameterError(
            f"Robust distances on {columns} columns need more complete records than there are ({rows}). Name fewer "
            "columns, or use method='interval'."
        )
    spread = x[complete].std(axis=0)
    scaled = (x - x[complete].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    state = int(generator(seed, "linkage", "robust").integers(2**31))
    flat = (spread == 0) | (np.ptp(np.quantile(scaled[complete], [0.25, 0.75], axis=0), axis=0) == 0)
    if flat.any():
        raise ColumnError(
            f"At least half of the values of '{names[int(np.argmax(flat))]}' are the same, so it has no robust "
            "spread. Leave it out with columns=[…], or use method='interval'."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a singular covariance is refused below, in our words
        shape = MinCovDet(random_state=state).fit(scaled[complete])
    if np.linalg.cond(shape.covariance_) > 1e10:
        raise ParameterError(
            "The columns are (nearly) functions of one another, so robust distances are not defined. Leave one of them "
            "out with columns=[…], or use method='interval'."
        )
    squared = np.full(len(x), np.nan)
    squared[complete] = shape.mahalanobis(scaled[complete])
    return squared, np.sqrt(np.diag(shape.covariance_)) * spread
