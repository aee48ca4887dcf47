"""Code columns less precisely, by the treatments that a plan would use, and say what that loses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from discreet.microdata import Microdata
from discreet.protect import Band, Generalize, Pram, Recode, Treatment
from discreet.utility.column_loss import comparable_kind, linked_loss
from discreet.utility.linked_files import same_cells

BAND, GROUP, CUT, EXCHANGE = "band", "group", "cut", "exchange"


def coding_steps(chosen: Mapping[str, tuple[str, Any]]) -> list[Treatment]:
    """Give the steps that code columns as their rungs say, at most one of each kind."""
    bands = {name: list(setting) for name, (kind, setting) in chosen.items() if kind == BAND}
    groups = {name: dict(setting) for name, (kind, setting) in chosen.items() if kind == GROUP}
    cuts = {name: setting for name, (kind, setting) in chosen.items() if kind == CUT}
    exchanged = {name: float(setting) for name, (kind, setting) in chosen.items() if kind == EXCHANGE}
    steps: list[Treatment] = []
    if bands:
        steps.append(Band(breaks=bands))
    if cuts:
        steps.append(
            Generalize(
                {name: level for name, (_, level) in cuts.items()},
                {name: hierarchy for name, (hierarchy, _) in cuts.items()},
            )
        )
    if groups:
        steps.append(Recode(groups))
    if exchanged:
        steps.append(Pram(columns=list(exchanged), change=exchanged))
    return steps


def recoded(values: pl.Series, shape: str, setting: Any) -> pl.Series:
    """Code a column as a rung says, by the treatment that a plan would use."""
    made = Microdata(plainly_named(values).to_frame())
    for step in coding_steps({"value": (shape, setting)}):
        made = step.apply(made, seed=0).data
    return made.frame["value"].rename(values.name)  # type: ignore[no-any-return]


def plainly_named(values: pl.Series) -> pl.Series:
    """Give a column a plain name: its own may read as a pattern of names."""
    return values.rename("value")


def column_loss(ours: pl.Series, theirs: pl.Series) -> float:
    """Give the share of one column that is lost, record by record, as `information_loss` does."""
    ours, theirs = plainly_named(ours), plainly_named(theirs)
    same = same_cells(ours, theirs)
    if same.all():
        return 0.0
    kind, before, after = comparable_kind(ours, theirs)
    lost = linked_loss(kind, before, after, np.zeros(len(ours), dtype=np.bool_), same)
    # Sums over groups may differ in the last bit from run to run, which must not decide between two plans.
    return round(lost, 12)
