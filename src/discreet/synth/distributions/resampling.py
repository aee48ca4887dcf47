"""Draw records from the records themselves: the bootstrap, as it is and smoothed."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.errors import ParameterError
from discreet.core.randomness import Seed, generator
from discreet.synth.distributions.draws import Draws, count_of
from discreet.synth.distributions.multivariate import covariance_root
from discreet.synth.distributions.records import Records


def bootstrap(
    data: Any,
    size: int | None = None,
    *,
    whole_records: bool = True,
    smoothing: float | Literal["silverman"] | None = None,
    seed: Seed = None,
) -> Draws[Any]:
    """Draw records with replacement.

    Every record of an unsmoothed bootstrap is a copy of a real one: a baseline, or a way to enlarge a file, never a
    protection.

    Parameters
    ----------
    data
        Microdata, a data frame, or an array with a row a record.
    size
        Number of records; as many as there are unless given.
    whole_records
        Keep records together, and with them the relations between columns. False draws each column by itself.
    smoothing
        Bandwidth in standard deviations: numbers get normal noise with the covariance of the data times the
        bandwidth squared, and are drawn together so that means and covariances stay. ``"silverman"`` takes the
        usual rule. Categories and missing values stay with their record.
    seed
        For the random numbers.

    Returns
    -------
    Draws
        ``values`` is of the kind that was given; ``diagnostics["bandwidth"]`` what was used.

    Examples
    --------
    >>> bootstrap(np.array(["a", "a", "b"]), 5, seed=1).values.tolist()
    ['a', 'a', 'b', 'b', 'a']
    """
    records = Records.of(data)
    n, rng = len(records), generator(seed)
    wanted = n if size is None else count_of(size)
    if whole_records:
        rows = rng.integers(n, size=wanted)
        columns: dict[str, Any] = {}
    else:
        if smoothing is not None:
            raise ParameterError("smoothing moves whole records. Leave whole_records=True.")
        rows = np.arange(wanted) % n
        columns = {
            name: records.table[name].gather(rng.integers(n, size=wanted)) for name in records.table.columns
        }
    diagnostics: dict[str, Any] = {"method": "bootstrap", "draws": wanted, "whole_records": whole_records}
    if smoothing is not None:
        if not records.numbers:
            raise ParameterError("smoothing needs at least one column of numbers.")
        bandwidth = _bandwidth(smoothing, n, len(records.numbers))
        columns = _smoothed(records, rows, bandwidth, rng)
        diagnostics |= {"method": "smoothed bootstrap", "bandwidth": bandwidth}
    return Draws(records.rebuilt(rows, columns), diagnostics)


def _bandwidth(smoothing: float | str, n: int, d: int) -> float:
    if smoothing == "silverman":
        return float((4 / ((d + 2) * n)) ** (1 / (d + 4)))
    if isinstance(smoothing, str) or not (np.isfinite(smoothing) and smoothing >= 0):
        raise ParameterError("smoothing must be a number of zero or above, or 'silverman'.")
    return float(smoothing)


def _smoothed(
    records: Records, rows: np.ndarray[Any, Any], bandwidth: float, rng: np.random.Generator
) -> dict[str, Floats]:
    matrix = np.column_stack(list(records.numbers.values()))
    known = ~np.isnan(matrix)
    center = np.array(
        [
            column[there].mean() if there.any() else 0.0
            for column, there in zip(matrix.T, known.T, strict=True)
        ]
    )
    away = np.where(known, matrix - center, 0.0)
    # Pairs with gaps can contradict each other; the gaps count as the mean here, which never does.
    covariance = away.T @ away / max(len(matrix) - 1, 1)
    noise = (
        rng.standard_normal((len(rows), matrix.shape[1]))
        @ covariance_root(covariance, method="spectral")[0].T
    )
    moved = center + (away[rows] + bandwidth * noise) / np.sqrt(1 + bandwidth**2)
    moved[~known[rows]] = np.nan
    return {name: records.rounded(name, moved[:, place]) for place, name in enumerate(records.numbers)}
