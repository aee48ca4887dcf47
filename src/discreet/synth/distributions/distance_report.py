"""How close are drawn records to the real ones? The distances of `discreet.risk`, for files and arrays alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.core.randomness import Seed
from discreet.core.results import Measure
from discreet.microdata import Microdata
from discreet.synth.distributions.draws import Draws
from discreet.synth.distributions.records import Records


def closeness(original: Any, drawn: Any, *, holdout: Any = None, seed: Seed = None) -> Measure:
    """Which share of the drawn records are exact copies, and how far are the others from the closest real one?

    It is `discreet.risk.neighbors` for whatever the samplers take: Microdata, data frames or arrays.

    Examples
    --------
    >>> people = np.array([[20.0, 1.0], [30.0, 5.0], [44.0, 2.0], [60.0, 9.0]])
    >>> from discreet.synth.distributions.resampling import bootstrap
    >>> closeness(people, bootstrap(people, 10, seed=1)).figures["identical_share"]
    1.0
    """
    from discreet.risk import neighbors

    others = None if holdout is None else _file(holdout)
    return neighbors(_file(original), _file(drawn), holdout=others, seed=seed)


def _file(data: Any) -> Microdata:
    if isinstance(data, Draws):
        data = data.values
    if isinstance(data, Microdata):
        return data
    return Microdata(Records.of(data).table if isinstance(data, np.ndarray | list | tuple) else data)
