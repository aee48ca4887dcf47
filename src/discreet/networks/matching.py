"""How far do the tables of drawn records lie from those of real ones, in a form that a generator can learn from?

A critic judges packs of records; that a level comes in 12 percent of them instead of 10 it hardly sees. The products of
all pairs of inputs, averaged over records, are the one- and two-way tables of all categories, and with numbers the
means by level and the covariances. Their squared distance from those of the file is the second thing a generator learns
by (as the information loss of Zhao, Kunar, Birke and Chen 2021, for pairs instead of single columns).
"""

from __future__ import annotations

import torch

from discreet.networks.blocks import Records

MOST_INPUTS = 1_000  # beyond, the table of all pairs would be larger than the networks
_AT_ONCE = 8_192


def with_one(records: torch.Tensor) -> torch.Tensor:
    """Put a one before every record, so that products of pairs contain the single inputs too."""
    return torch.cat([records.new_ones(len(records), 1), records], 1)


def pair_products(records: Records, weights: torch.Tensor) -> torch.Tensor:
    """Return the products of all pairs of inputs, averaged over the records by weights that sum to one."""
    total = torch.zeros((), device=records.device)
    for rows in torch.arange(len(records), device=records.device).split(_AT_ONCE):
        own = with_one(records.dense(rows))
        total = total + own.T @ (own * weights[rows, None])
    return total


def table_distance(drawn: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Return the squared distance between the products of drawn records and those wanted, by a fair estimate.

    The square of one noisy estimate would reward a generator for drawing with less variety than the file has; the
    product of the errors of two halves does not.

    Examples
    --------
    >>> rows = torch.tensor([[1.0, 0.0], [0.0, 1.0]]).repeat(4, 1)
    >>> own = with_one(rows)
    >>> float(table_distance(rows, own.T @ own / 8))
    0.0
    """
    half = len(drawn) // 2
    errors = [own.T @ own / len(own) - wanted for own in with_one(drawn).split([half, len(drawn) - half])]
    return (errors[0] * errors[1]).sum()
