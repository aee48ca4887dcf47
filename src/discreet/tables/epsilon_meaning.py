"""What does a chosen epsilon promise? The odds it allows, and how sure it lets anybody become."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

import polars as pl

from discreet.core.constraints import Public, Share
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.core.results import Detail, Measure
from discreet.core.wording import percent


@checked
def epsilon_meaning(
    epsilon: float | Annotated[Sequence[float], Public()],
    *,
    prior: Annotated[float, Share(above=True, below=True)] = 0.5,
) -> Measure:
    """What does a privacy loss of epsilon allow somebody to learn about one person?

    Under pure differential privacy no released number is more than e^epsilon times as likely with one person's record
    as with another in its place. Whoever held something about a person for true with the chance ``prior`` can be led
    by the release to hold it for true with at most ``p e^epsilon / (1 - p + p e^epsilon)``, and at least
    ``p / (p + (1 - p) e^epsilon)``.

    Parameters
    ----------
    epsilon
        One or several values; for several releases of the same people, their sum.
    prior
        How sure somebody was before, strictly between 0 and 1.

    Returns
    -------
    Measure
        ``value`` is the highest chance the largest epsilon allows, ``figures`` has ``epsilon``, ``odds`` (e^epsilon)
        and ``posterior``; ``detail["epsilons"]`` one row a value: ``epsilon``, ``odds``, ``posterior``, ``lowest``.

    How to read it
    --------------
    0.5 means nothing can be learned; 0.525 (epsilon 0.1 from a prior of a half) a little; 1.0 means the promise does
    not exclude certainty. The number bounds the worst case; what is learned in fact is usually less.

    When not to trust it
    --------------------
    It holds for pure differential privacy. A delta, or zero-concentrated privacy turned into one epsilon, leaves a
    small chance that the bound is broken. It says nothing about what follows from statistics of everybody else.

    Examples
    --------
    >>> found = epsilon_meaning([0.1, 4.2])
    >>> [round(odds, 4) for odds in found.detail["epsilons"]["odds"]]
    [1.1052, 66.6863]
    >>> round(found.value, 4)
    0.9852
    """
    values = [float(epsilon)] if isinstance(epsilon, int | float) else [float(value) for value in epsilon]
    if not values or any(math.isnan(value) or value < 0 for value in values):
        raise ParameterError("epsilon must be one or several numbers, none of them negative.")
    rows = [
        {
            "epsilon": value,
            "odds": _odds(value),
            "posterior": prior / (prior + (1 - prior) * math.exp(-value)),
            "lowest": prior * math.exp(-value) / (prior * math.exp(-value) + 1 - prior),
        }
        for value in values
    ]
    worst = max(rows, key=lambda row: row["epsilon"])
    return Measure(
        name="epsilon_meaning",
        value=worst["posterior"],
        figures={"epsilon": worst["epsilon"], "odds": worst["odds"], "posterior": worst["posterior"]},
        meaning=(
            f"With epsilon {worst['epsilon']:g} a released number may be {worst['odds']:,.5g} times as likely with one "
            f"record as with another in its place: somebody {percent(prior)} sure of something about a person may "
            f"become {percent(worst['posterior'])} sure."
        ),
        caveats=["This is what the promise does not rule out, not what happens."],
        parameters={"epsilon": values, "prior": prior},
        detail=Detail(epsilons=lambda: pl.DataFrame(rows)),
    )


def _odds(epsilon: float) -> float:
    try:
        return math.exp(epsilon)
    except OverflowError:
        return math.inf
