"""Quantities that sites with whole rows add up: likelihoods, and the sums behind means and covariances."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from discreet.core.arrays import Array, Floats
from discreet.federated.conditional_normal import minus_two_log_likelihood
from discreet.federated.layouts import Layout
from discreet.federated.messages import MAIN, numbers
from discreet.federated.parties import Holder, Party, Transport
from discreet.federated.quantities import Ring, quantity, shaped
from discreet.federated.secure_sums import sum_over

WIDE = Ring(192, 64)


@quantity("likelihood", {"mu": numbers, "sigma": numbers}, moments=True)
def _likelihood(holder: Holder, asked: Mapping[str, Any]) -> Array:
    rows = _rows(holder, asked)
    size = rows.shape[1]
    mu, sigma = shaped(asked, "mu", size), shaped(asked, "sigma", size, size)
    return np.array([minus_two_log_likelihood(rows, mu, sigma)])


@quantity("totals", {}, moments=True)
def _totals(holder: Holder, asked: Mapping[str, Any]) -> Array:
    rows = _rows(holder, asked)
    return np.concatenate([[len(rows)], rows.sum(axis=0)])


@quantity("products", {"around": numbers}, moments=True)
def _products(holder: Holder, asked: Mapping[str, Any]) -> Array:
    rows = _rows(holder, asked)
    off = rows - shaped(asked, "around", rows.shape[1])
    made: Array = (off.T @ off)[np.triu_indices(off.shape[1])]
    return made


def _rows(holder: Holder, asked: Mapping[str, Any]) -> Floats:
    return holder.matrix([str(name) for name in asked["columns"]], str(asked.get("block", MAIN)))


def horizontal_moments(transport: Transport, central: Party, layout: Layout) -> tuple[int, Floats, Floats]:
    """Work out rows, means and covariances (divided by n) over holders of rows: two secure sums."""
    columns = list(layout.variables)
    size = len(columns)
    first = sum_over(
        transport, central, layout.nodes, {"kind": "totals", "columns": columns}, size=size + 1, ring=WIDE
    )
    rows, mean = round(float(first[0])), first[1:] / first[0]
    asked = {"kind": "products", "columns": columns, "around": mean.tolist()}
    second = sum_over(transport, central, layout.nodes, asked, size=size * (size + 1) // 2, ring=WIDE)
    covariance = np.zeros((size, size))
    covariance[np.triu_indices(size)] = second / rows
    covariance = covariance + np.triu(covariance, 1).T
    return rows, mean, covariance
