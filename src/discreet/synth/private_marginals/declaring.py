"""Columns by their declared domain alone, numbers in fine bins."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from discreet.synth.bayesian_network.coding import Attribute, declared_attribute
from discreet.synth.forms import is_numeric


def declared(series: pl.Series, domain: Any, *, bins: int, never_missing: bool) -> Attribute:
    """Make an attribute from its declared levels or range; whole numbers get bins of whole numbers.

    Examples
    --------
    >>> declared(pl.Series("age", [30]), (0, 3), bins=128, never_missing=True).edges.tolist()
    [-0.5, 0.5, 1.5, 2.5, 3.5]
    """
    # A plan file has no tuples: two numbers for a column of numbers are its range.
    if (
        is_numeric(series.dtype)
        and isinstance(domain, Sequence)
        and len(domain) == 2
        and not isinstance(domain, str)
    ):
        domain = tuple(domain)
    attribute = declared_attribute(series, domain, bins=bins, never_missing=never_missing)
    if attribute.edges is None or attribute.decimals != 0:
        return attribute
    low, high = float(attribute.edges[0]), float(attribute.edges[-1])
    width = math.ceil((high - low + 1) / bins)
    count = math.ceil((high - low + 1) / width)
    return dataclasses.replace(attribute, edges=low - 0.5 + width * np.arange(count + 1, dtype=np.float64))
