"""How do the variables of a record hang together? A correlation from the best source there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.core.arrays import Floats
from discreet.core.errors import ParameterError
from discreet.numerics.correlation import nearest_correlation
from discreet.synth.from_aggregates.latent import LatentPairs
from discreet.synth.from_aggregates.unit_margins import UnitMargin

Matrix = npt.ArrayLike | Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, eq=False)
class Dependence:
    """Latent correlations, and what had to be done to them.

    Attributes
    ----------
    latent
        A correlation matrix of the latent normal variables for each unit.
    target
        The correlation of the data that was asked for; None where the latent one was given.
    source
        Where it came from.
    clipped
        Pairs whose target no two variables with these margins can have, and were clipped to the Fréchet limits.
    repaired
        The largest change that made a correlation matrix of what was none.
    notes
        In words.
    """

    latent: Floats
    target: Floats | None
    source: str
    clipped: tuple[tuple[str, str], ...] = ()
    repaired: float = 0.0
    notes: tuple[str, ...] = field(default=())


def as_matrix(given: Matrix, variables: Sequence[str], what: str) -> Floats:
    """Read a matrix in the order of the variables, or a mapping of mappings; pairs that are left out are 0.

    Examples
    --------
    >>> as_matrix({"a": {"b": 0.5}}, ["a", "b"], "correlation").tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    size = len(variables)
    if isinstance(given, Mapping):
        matrix = np.eye(size)
        for one, row in given.items():
            if not isinstance(row, Mapping):
                raise ParameterError(f"{what} must be a matrix or {{variable: {{variable: number}}}}.")
            for other, value in row.items():
                if one not in variables or other not in variables:
                    raise ParameterError(f"'{what}' names '{one}' and '{other}', one of which is not drawn.")
                i, j = variables.index(one), variables.index(other)
                matrix[i, j] = matrix[j, i] = value
    else:
        values = given.to_numpy() if isinstance(given, pl.DataFrame) else given
        try:
            matrix = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise ParameterError(f"{what} must be a matrix of numbers.") from None
    if matrix.shape != (size, size):
        raise ParameterError(
            f"{what} must have a row and a column for each of {', '.join(map(repr, variables))}."
        )
    if not np.isfinite(matrix).all() or np.abs(matrix - matrix.T).max(initial=0.0) > 1e-8 * max(
        np.abs(matrix).max(), 1
    ):
        raise ParameterError(f"{what} must be symmetric, without missing numbers.")
    return matrix


def correlation_of_covariance(covariance: Floats) -> tuple[Floats, Floats]:
    """Split a covariance matrix into correlations and standard deviations."""
    if (np.diag(covariance) <= 0).any():
        raise ParameterError("covariance must have variances above 0 on its diagonal.")
    sds = np.sqrt(np.diag(covariance))
    return covariance / np.outer(sds, sds), sds


def checked_correlation(matrix: Floats) -> Floats:
    """Refuse what is no table of correlations."""
    if np.abs(matrix).max() > 1 + 1e-9 or np.abs(np.diag(matrix) - 1).max() > 1e-9:
        raise ParameterError("correlation must have ones on its diagonal and numbers from -1 to 1 elsewhere.")
    return np.clip(matrix, -1.0, 1.0)


def random_correlation(size: int, rng: np.random.Generator) -> Floats:
    """Draw a correlation matrix: that of a Wishart matrix with one degree of freedom more than variables."""
    drawn = rng.standard_normal((size + 1, size))
    return correlation_of_covariance(drawn.T @ drawn)[0]


def between_units(means: Floats) -> tuple[Floats, float]:
    """Correlate the means of units, shrunk towards none as far as their number leaves in doubt.

    The intensity is Schäfer and Strimmer's (2005), with (1 - r²)² / (units - 1) for the variance of a correlation; but
    never below 1 / (units - 1), the r² that unrelated variables have by chance: few means nearly always line up.

    Examples
    --------
    >>> found, shrunk = between_units(np.array([[1.0, 2.0], [2.0, 4.1], [3.0, 5.9], [4.0, 8.0]]))
    >>> round(float(found[0, 1]), 2), round(shrunk, 2)
    (0.67, 0.33)
    """
    units, size = means.shape
    varying = np.ptp(means, axis=0) > 0
    if units < 3:
        return np.eye(size), 1.0
    found = np.eye(size)
    found[np.ix_(varying, varying)] = np.corrcoef(means[:, varying], rowvar=False)
    off = found[~np.eye(size, dtype=bool)]
    doubt = ((1 - off**2) ** 2).sum() / (units - 1)
    shrunk = float(min(1.0, doubt / (off**2).sum())) if (off**2).sum() > 0 else 1.0
    shrunk = max(shrunk, 1 / (units - 1))
    kept = (1 - shrunk) * found
    np.fill_diagonal(kept, 1.0)
    return kept, shrunk


def normal_score_correlation(table: pl.DataFrame, units: Sequence[str], variables: Sequence[str]) -> Floats:
    """Correlate the normal scores of real records, ranked within their unit."""
    from discreet.protect.perturbing.ranks import normal_scores

    parts = table.partition_by(units, maintain_order=True) if units else [table]
    scores = [
        np.column_stack(
            [
                normal_scores(part[name].cast(pl.Float64).fill_null(float("nan")).to_numpy())
                for name in variables
            ]
        )
        for part in parts
        if part.height > 2
    ]
    if not scores:
        raise ParameterError(
            "The microdata have no unit with more than two records, so nothing can be correlated."
        )
    stacked = np.nan_to_num(np.vstack(scores))
    spread = np.sqrt((stacked**2).sum(axis=0))
    found = stacked.T @ stacked / np.outer(np.maximum(spread, 1e-300), np.maximum(spread, 1e-300))
    np.fill_diagonal(found, 1.0)
    return np.asarray(np.clip(found, -1.0, 1.0))


def dependence_of(
    target: Floats,
    margins: Sequence[Sequence[UnitMargin]],
    variables: Sequence[str],
    *,
    latent: bool,
    source: str,
    notes: Sequence[str] = (),
) -> Dependence:
    """Turn one correlation matrix into a latent one for each unit, clipped and mended where it must be."""
    size, said = len(variables), list(notes)
    wanted = nearest_correlation(target)
    repaired = float(np.abs(wanted - target).max(initial=0.0))
    clipped: dict[tuple[str, str], None] = {}
    matrices = np.empty((len(margins), size, size))
    for row, unit in enumerate(margins):
        found = wanted.copy()
        if not latent:
            pairs = LatentPairs(unit)
            for i in range(size):
                for j in range(i):
                    pair = pairs.of(i, j, float(wanted[i, j]))
                    found[i, j] = found[j, i] = pair.correlation
                    if pair.clipped:
                        clipped.setdefault((variables[j], variables[i]))
        matrices[row] = nearest_correlation(found)
        repaired = max(repaired, float(np.abs(matrices[row] - found).max(initial=0.0)))
    if repaired > 1e-6:
        said.append(
            f"The correlations contradicted each other; the nearest that do not differ by up to {repaired:.3g}."
        )
    for one, other in clipped:
        said.append(
            f"No records with these margins correlate '{one}' and '{other}' as asked; the limit was taken."
        )
    return Dependence(matrices, None if latent else target, source, tuple(clipped), repaired, tuple(said))


def described(dependence: Dependence, variables: Sequence[str]) -> list[dict[str, Any]]:
    """List the correlations with their provenance, a row a pair."""
    rows = []
    for i in range(len(variables)):
        for j in range(i):
            pair = {"unit": None, "variable": f"{variables[j]} and {variables[i]}", "family": None}
            if dependence.target is not None:
                value = float(dependence.target[i, j])
                rows.append(
                    {**pair, "parameter": "correlation", "value": value, "provenance": dependence.source}
                )
            latent = float(dependence.latent[:, i, j].mean())
            how = dependence.source if dependence.target is None else "converted (NORTA)"
            rows.append({**pair, "parameter": "latent correlation", "value": latent, "provenance": how})
    return rows
