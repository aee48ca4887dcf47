"""An original and one release, made ready for the questions of a comparison; and how one of them is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet.engine import Missing
from discreet.errors import DiscreetError
from discreet.microdata import Microdata
from discreet.pairs.precision import Setting
from discreet.randomness import Seed
from discreet.results import Measure
from discreet.workflow.aligning import align, in_memory
from discreet.workflow.pair_questions import PairCase, PairQuestion


def pair_of(
    original: Microdata,
    copies: Sequence[Microdata],
    holdout: Microdata | None = None,
    *,
    columns: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    models: Any = None,
    ids: str | None = None,
    aligned: bool | None = None,
    missing: Missing = "category",
    precision: Setting = None,
    seed: Seed = None,
) -> PairCase:
    """Bring an original and the copies of one release together; the roles are those of the original."""
    files = align(
        in_memory(original),
        [in_memory(copy) for copy in copies],
        None if holdout is None else in_memory(holdout),
        columns=columns,
        ids=ids,
        aligned=aligned,
    )
    there = files.copies[0].schema
    return PairCase(
        files,
        tuple(key for key in original.roles.keys if key in there),
        tuple(column for column in original.roles.sensitive if column in there),
        tuple(categorical),
        ids,
        missing,
        0 if seed is None else seed,
        models,
        precision,
    )


def answer_of(
    question: PairQuestion,
    case: PairCase,
    settings: Mapping[str, Any],
    *,
    must: tuple[type[DiscreetError], ...] = (),
) -> Measure | str:
    """Ask a question; what cannot be answered for these files is said, unless such a refusal must end it all."""
    gap = question.gap(case, settings)
    if gap is not None:
        return gap
    try:
        return question.answer(case, settings)
    except DiscreetError as error:
        if isinstance(error, must):
            raise
        return str(error)
