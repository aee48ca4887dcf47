"""How uncertain are the estimates if the normal law does not hold, or rows have weights? Sandwich standard errors.

The usual standard errors take the model for true. The sandwich H⁻¹ B H⁻¹ puts between the curvatures what the rows'
own gradients say (Huber 1967, White 1982). It needs all variables of a row in one place: a table, or sites that hold
different people, whose parts are added by a secure sum. Over columns of different holders it cannot be had.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from discreet.core.arrays import Array, Floats
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.core.randomness import Seed
from discreet.federated.fits import Fit
from discreet.federated.kinds import numbers
from discreet.federated.layouts import Layout, laid_out
from discreet.federated.masking import Masks
from discreet.federated.messages import MAIN
from discreet.federated.moments_over_sites import WIDE, from_upper
from discreet.federated.parties import Holder, Party, Transport, as_frame
from discreet.federated.quantities import quantity, shaped
from discreet.federated.secure_sums import sum_over


@quantity("scores", dict.fromkeys(("mu", "sigma", "means", "covariances"), numbers), moments=True)
def _score_products(holder: Holder, asked: Mapping[str, Any]) -> Array:
    """The sum over rows of the products of their gradients, upper half."""
    rows = holder.matrix([str(name) for name in asked["columns"]], str(asked.get("block", MAIN)))
    size, many = rows.shape[1], len(asked["means"])
    shapes = {"mu": (size,), "sigma": (size, size), "means": (many, size), "covariances": (many, size, size)}
    law = {name: shaped(asked, name, *shape) for name, shape in shapes.items()}
    own = _scores(rows, **law)
    if holder.limits is not None:
        holder.limits.totals(own**2)
    made: Array = (own.T @ own)[np.triu_indices(own.shape[1])]
    return made


def _scores(rows: Floats, mu: Floats, sigma: Floats, means: Floats, covariances: Floats) -> Floats:
    """Return the gradient of the log-likelihood of every row in every parameter."""
    inverse = np.linalg.inv(sigma)
    pulled = (rows - mu) @ inverse
    bent = np.einsum("ni,aij,nj->na", pulled, covariances, pulled, optimize=True)
    level = np.einsum("ij,aji->a", inverse, covariances)
    return np.asarray(0.5 * (bent - level) + pulled @ means.T)


@checked
def robust_standard_errors(
    fit: Fit,
    data: Any,
    *,
    weight: str | None = None,
    columns: Sequence[str] | None = None,
    transport: Any = None,
    seed: Seed = None,
) -> dict[str, float]:
    """Which standard errors hold where the data are not normal, or rows have weights?

    Also known as: sandwich estimator; Huber-White.

    Parameters
    ----------
    fit
        The fitted model.
    data
        The table, or sites with the same columns and different people (`horizontal`).
    weight
        Column of weights, for a fit from `weighted_moments`; only with one table.
    columns
        The variables in the order of the model; all columns but the weight unless given.
    transport
        How sites are reached; in this process unless given.
    seed
        For the same masks again; only for tests.

    Returns
    -------
    dict
        By parameter; NaN for one on a bound.

    Examples
    --------
    >>> import polars as pl
    >>> from discreet.federated import fit_from_moments, saturated, weighted_moments
    >>> table = pl.DataFrame({"x": [1.0, 2.0, 4.0, 9.0]})
    >>> found = robust_standard_errors(fit_from_moments(*weighted_moments(table, ["x"]), saturated(1)), table)
    >>> round(next(iter(found.values())), 4), round(float(np.std([1, 2, 4, 9]) / 2), 4)
    (1.5411, 1.5411)
    """
    law = dict(zip(("mu", "sigma"), fit.implied, strict=True))
    law |= dict(zip(("means", "covariances"), fit.model.jacobian(fit.parameters), strict=True))
    names = fit.model.names
    size = len(names)
    if isinstance(data, Layout | list | tuple | Mapping):
        middle = _over_sites(data, law, size, weight, transport, seed)
    else:
        holder = Holder("this file", as_frame(data))
        used = [str(name) for name in columns] if columns is not None else [
            name for name in holder.frame().columns if name != weight
        ]  # fmt: skip
        if len(used) != fit.model.size:
            raise ParameterError(f"The model has {fit.model.size} variables: name as many columns.")
        own = _scores(holder.matrix(used), **law)
        if weight is not None:
            shares = holder.matrix([weight])[:, 0]
            own = own * (shares / shares.mean())[:, None]
        middle = own.T @ own
    errors = np.full(size, np.nan)
    free = np.isfinite(np.diag(fit.hessian))
    outer = np.linalg.inv(fit.hessian[np.ix_(free, free)] / 2)
    errors[free] = np.sqrt(np.diag(outer @ middle[np.ix_(free, free)] @ outer))
    return dict(zip(names, map(float, errors), strict=True))


def _over_sites(  # noqa: PLR0917
    sites: Any, law: Mapping[str, Floats], size: int, weight: str | None, transport: Any, seed: Seed
) -> Floats:  # fmt: skip
    layout = laid_out(sites, seed=seed)
    if layout.kind != "horizontal":
        raise ParameterError(
            "Robust standard errors need all variables of a row in one place; over columns of different holders they "
            "cannot be had."
        )
    if weight is not None:
        raise ParameterError("weight goes with one table; over sites weight the moments at each site first.")
    central = Party("coordinator", Masks(seed))
    carrier = transport or Transport(layout.holders.values())
    if central.name not in carrier.names:
        carrier.join(central)
    plain_law = {name: one.tolist() for name, one in law.items()}
    asked = {"kind": "scores", "columns": list(layout.variables), **plain_law}
    found = sum_over(carrier, central, layout.nodes, asked, size=size * (size + 1) // 2, ring=WIDE, seed=seed)
    return from_upper(found, size)
