"""Bring drawn values to a published total: amounts scaled, signed ones shifted, whole numbers by largest remainder."""

from __future__ import annotations

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.synth.from_aggregates.unit_margins import Nature


def brought_to_total(
    values: Floats, total: float, nature: Nature, ranks: Floats, *, whole: bool = False
) -> Floats:
    """Return the values changed as little as their nature allows so that they sum to the total.

    Parameters
    ----------
    values
        Drawn values of one variable in one unit.
    total
        What they are to sum to.
    nature
        ``amount``: multiplied. ``signed``: shifted, zeros left alone. ``share``: shifted on the logit scale. ``flag``:
        as many ones as the total says, for those with the largest latent value. ``count``: multiplied and rounded by
        largest remainder.
    ranks
        Latent values, for who gets a one, or the amount where all drawn are zero.
    whole
        Round amounts to whole numbers, by largest remainder.

    Examples
    --------
    >>> brought_to_total(np.array([1.0, 3.0]), 12.0, "amount", np.zeros(2)).tolist()
    [3.0, 9.0]
    >>> brought_to_total(np.array([1.0, 1.0, 1.0]), 10.0, "count", np.zeros(3)).tolist()
    [4.0, 3.0, 3.0]
    """
    if not len(values):
        return values
    if nature == "flag":
        return _largest(ranks, round(total))
    if nature == "share":
        return _on_logit_scale(values, total / len(values))
    if nature == "signed":
        movable = values != 0 if (values != 0).any() else np.ones(len(values), dtype=bool)
        moved = np.where(movable, values + (total - values.sum()) / movable.sum(), values)
        return _rounded(moved, total) if whole else _exact(moved, total)
    scaled = _scaled(values, total, ranks)
    return _rounded(scaled, total) if whole or nature == "count" else _exact(scaled, total)


def largest_remainder(values: Floats, total: int) -> Integers:
    """Round to whole numbers that sum to the total: down, and then up where most was cut off.

    Examples
    --------
    >>> largest_remainder(np.array([1.2, 2.7, 0.1]), 4).tolist()
    [1, 3, 0]
    """
    down = np.floor(values + 1e-9)
    missing = round(float(total - down.sum()))
    whole = down.astype(np.int64)
    if missing > 0:
        order = np.argsort(-(values - down), kind="stable")
        whole += missing // len(values)
        whole[order[: missing % len(values)]] += 1
    return whole


def _scaled(values: Floats, total: float, ranks: Floats) -> Floats:
    held = values.sum()
    # Sums so small that dividing by them overflows are no amounts either.
    if abs(held) > 1e-280:
        return np.asarray(values * (total / held))
    return _largest(ranks, 1) * total


def _exact(values: Floats, total: float) -> Floats:
    """Let the largest value take up what rounding has left."""
    values = values.copy()
    values[np.abs(values).argmax()] += total - values.sum()
    return values


def _rounded(values: Floats, total: float) -> Floats:
    return largest_remainder(values, round(total)).astype(np.float64)


def _largest(ranks: Floats, how_many: int) -> Floats:
    chosen = np.zeros(len(ranks))
    chosen[np.argsort(-ranks, kind="stable")[: max(0, min(how_many, len(ranks)))]] = 1.0
    return chosen


def _on_logit_scale(values: Floats, mean: float) -> Floats:
    from scipy.optimize import brentq
    from scipy.special import expit, logit

    inside = (values > 0) & (values < 1)
    rest = mean * len(values) - values[~inside].sum()
    if not inside.any() or not 0 < rest < inside.sum():
        return values
    at = logit(values[inside])
    shift = brentq(lambda by: float(expit(at + by).sum() - rest), -60.0, 60.0, xtol=1e-13)
    moved = values.copy()
    moved[inside] = expit(at + shift)
    return moved
