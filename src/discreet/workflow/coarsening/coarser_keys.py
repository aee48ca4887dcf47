"""Which keys of this file could be told less precisely, how far, and who would still stand out then?

The proposals name the file's own columns and numbers and become steps of a command; data values are in none of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet import engine
from discreet.core.arrays import Integers
from discreet.microdata import Microdata
from discreet.workflow.coarsening.coding import BAND, CUT
from discreet.workflow.coarsening.ladders import Ladder, Rung, ladder_of
from discreet.workflow.usual_names import meaning_of

_MOST_RECORDS = 200_000
_DEAREST = 0.12  # the share of a column that a proposal may cost
_FEWEST_LABELS = 4
_FEWEST_VALUES = 10


@dataclass(frozen=True)
class CoarserKeys:
    """What is proposed for the keys of a file.

    Attributes
    ----------
    sentences
        What to do to which column.
    steps
        The same as entries of a plan; groups of categories are left out, for their table would name values.
    alone, alone_then
        Records alone with their keys, before and after.
    """

    sentences: tuple[str, ...]
    steps: tuple[Mapping[str, Any], ...]
    alone: int
    alone_then: int


def coarser_keys(data: Microdata, keys: Sequence[str]) -> CoarserKeys | None:
    """Propose a coarser coding for every detailed key; None where there is none, or the file is too large to try."""
    if engine.overview(data, ()).rows > _MOST_RECORDS or len(keys) > 40:
        return None
    table = engine.collect(data, list(keys), any_names=True)
    ages = [key for key in keys if _means(key, "age")]
    chosen: dict[str, tuple[Ladder, Rung]] = {}
    dropped = []
    codes: dict[str, Integers] = {}
    for key in keys:
        # What a key is called says what it is; the marks of a pattern would be taken for other columns.
        ladder = ladder_of(table[key].alias(key.strip("*^$") or "key"), {})
        codes[key] = ladder.rungs[0].codes
        if ladder.what == "date" and _means(key, "birth") and ages:
            dropped.append(key)
        elif (rung := _fitting(ladder)) is not None:
            chosen[key] = (ladder, rung)
    if not chosen and not dropped:
        return None
    then = {
        key: chosen[key][1].codes if key in chosen else held
        for key, held in codes.items()
        if key not in dropped
    }
    return CoarserKeys(
        sentences=(
            *(f"Drop the date of birth '{key}': '{ages[0]}' says enough." for key in dropped),
            *(_sentence(key, ladder, rung) for key, (ladder, rung) in chosen.items()),
        ),
        steps=_steps(dropped, chosen),
        alone=_alone(list(codes.values())),
        alone_then=_alone(list(then.values())),
    )


def _fitting(ladder: Ladder) -> Rung | None:
    """Take the coarsest coding that keeps most of the column, of a key with many values."""
    if ladder.rungs[0].labels < _FEWEST_VALUES:
        return None
    fitting = [rung for rung in ladder.rungs[1:] if rung.loss <= _DEAREST and rung.labels >= _FEWEST_LABELS]
    return fitting[-1] if fitting else None


def _sentence(key: str, ladder: Ladder, rung: Rung) -> str:
    before = ladder.rungs[0].labels
    if ladder.what == "code":
        characters = "character" if rung.detail == 1 else "characters"
        return (
            f"Cut '{key}' to its first {rung.detail} {characters}: {before:,} codes become {rung.labels:,}."
        )
    if ladder.what == "date":
        return f"Tell '{key}' by {rung.detail}: {before:,} dates become {rung.labels:,} periods."
    if ladder.what == "number":
        by_number = rung.detail == len(rung.setting) + 1
        by = f"{rung.labels} bands" if by_number else f"bands of {rung.detail}"
        return f"Put '{key}' into {by}: {before:,} values become {rung.labels:,}."
    return f"Join the rare values of '{key}': {before:,} become {rung.labels:,} groups (suggest finds which)."


def _steps(
    dropped: Sequence[str], chosen: Mapping[str, tuple[Ladder, Rung]]
) -> tuple[Mapping[str, Any], ...]:
    steps: list[Mapping[str, Any]] = []
    if dropped:
        steps.append({"treatment": "drop-identifiers", "columns": list(dropped)})
    bands = {key: list(rung.setting) for key, (_, rung) in chosen.items() if rung.kind == BAND}
    if bands:
        steps.append({"treatment": "band", "breaks": bands})
    cuts = {key: rung.setting for key, (_, rung) in chosen.items() if rung.kind == CUT}
    if cuts:
        levels = {key: level for key, (_, level) in cuts.items()}
        described = {key: hierarchy.to_dict() for key, (hierarchy, _) in cuts.items()}
        steps.append({"treatment": "generalize", "levels": levels, "hierarchies": described})
    return tuple(steps)


def _alone(codes: Sequence[Integers]) -> int:
    if not codes:
        return 0
    packed, room = np.zeros(len(codes[0]), dtype=np.int64), 1
    for column in codes:
        width = int(column.max(initial=0)) + 1
        if room > 2**62 // width:
            _, packed = np.unique(packed, return_inverse=True)
            room = int(packed.max(initial=0)) + 1
        packed = packed * width + column
        room *= width
    _, sizes = np.unique(packed, return_counts=True)
    return int((sizes == 1).sum())


def _means(name: str, concept: str) -> bool:
    meaning = meaning_of(name)
    return meaning is not None and meaning.concept == concept
