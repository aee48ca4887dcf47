"""What a statistic enters into the register, so that every later one can be held against it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from discreet.microdata import Microdata
from discreet.outputs.cells import count_cells, population
from discreet.outputs.question import Question
from discreet.outputs.register import CUSTOM, Registered


def entered(
    statistic: str,
    data: Microdata,
    question: Question,
    *,
    additive: bool = False,
    hidden: Sequence[int] = (),
) -> Registered:
    """Enter a statistic by group: whose records it is about, and how many people each group has.

    Parameters
    ----------
    additive
        Whether what it publishes can be subtracted: counts, totals, means.
    hidden
        The groups, in order of their levels, that are not shown.

    Examples
    --------
    >>> import polars as pl
    >>> data = Microdata(pl.DataFrame({"sex": ["f", "f", "m"], "pay": [1.0, None, 3.0]}))
    >>> entered("median", data, Question(("sex",), value="pay")).counts.tolist()
    [1.0, 1.0]
    """
    needed = (*question.known, *([question.value] if question.value is not None else []))
    found = count_cells(data, replace(question, value=None, weight=None, known=tuple(dict.fromkeys(needed))))
    counts = found.people.astype(np.float64)
    if hidden:
        counts.reshape(-1)[list(hidden)] = np.nan
    columns = tuple(dict.fromkeys((*question.columns(), *question.known)))
    return Registered(
        statistic,
        population(data, columns),
        question.where,
        question.by,
        found.levels,
        counts if question.by else counts.reshape(()),
        adds_up=additive and question.subject is None,
        additive=additive,
        statistic=statistic,
        variables=question.measured(),
        question=replace(question, weight=None),
        data=data,
    )


def entered_people(people: Sequence[float]) -> tuple[Registered, ...]:
    """Enter what a file made elsewhere tells of the people behind it: their number, for each of its models.

    Examples
    --------
    >>> [entry.people for entry in entered_people([1000.0, 400.0])]
    [1000.0, 400.0]
    """
    return tuple(
        Registered(CUSTOM, {}, {}, (), (), np.array(float(n)), additive=False, statistic=CUSTOM)
        for n in dict.fromkeys(people)
    )
