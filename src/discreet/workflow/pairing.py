"""An original and one release, made ready for the questions of a comparison; and how one of them is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from discreet import engine
from discreet.core.errors import DiscreetError
from discreet.core.randomness import Seed
from discreet.core.results import Measure
from discreet.core.roles import ROLES
from discreet.engine import Missing
from discreet.engine.frames import has_row_order
from discreet.engine.precision import Setting
from discreet.engine.resolved_roles import unit_numbers
from discreet.microdata import Microdata
from discreet.workflow.aligning import agrees_by_row, align, in_memory
from discreet.workflow.large_pairs import ROWS, WholeFiles, drawn
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
    labels: pl.DataFrame | None = None,
    rows: int | None = None,
    seed: Seed = None,
) -> PairCase:
    """Bring an original and the copies of one release together; the roles are those of the original.

    Queries of more records than ``rows`` (or of too many to hold) are not collected: a sample of about as many is, and
    the rest is counted where it is. ``labels`` has the released values of each original record, where they are known:
    see `align`.
    """
    for file in (original, *copies):
        file.need_plain_names()
    original = in_memory(original, rows)
    copies = [with_roles_of(original, in_memory(copy, rows)) for copy in copies]
    holdout = None if holdout is None else in_memory(holdout, rows)
    seed = 0 if seed is None else seed
    whole = [original, *copies, *([] if holdout is None else [holdout])]
    large = any(engine.is_lazy(data) for data in whole)
    held = drawn(whole, rows or ROWS, ids=ids, seed=seed) if large else whole
    files = align(
        held[0],
        held[1 : len(copies) + 1],
        None if holdout is None else held[-1],
        columns=columns,
        ids=ids,
        aligned=aligned,
        labels=None if large else labels,
    )
    there = files.copies[0].schema
    case = PairCase(
        files,
        tuple(key for key in original.roles.keys if key in there),
        tuple(column for column in original.roles.sensitive if column in there),
        tuple(categorical),
        ids,
        missing,
        seed,
        models,
        precision,
    )
    if not large:
        return case
    counted = WholeFiles.of(files, held[1], original, copies, holdout)
    return case.a_sample_of(counted.files, counted.left_out)


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


def with_roles_of(original: Microdata, released: Microdata) -> Microdata:
    """Give a release the roles of its original; columns that only the release has keep theirs.

    A key or sensitive column that lost every value is no longer one, as if it had been left out.

    Examples
    --------
    >>> import polars as pl
    >>> people = Microdata(pl.DataFrame({"age": [30, 41], "zip": ["1", "2"], "ill": ["y", "n"]}), keys=["age", "zip"])
    >>> with_roles_of(people, Microdata(pl.DataFrame({"age": [30, 40], "ill": ["y", "n"]}))).roles.keys
    ('age',)
    """
    told = [name for name in (*original.roles.keys, *original.roles.sensitive) if name in released.schema]
    counted = engine.overview(released, told)
    emptied = {name for name in told if counted.missing[name] == counted.rows}
    there = [name for name in released.schema if name not in emptied]
    roles: dict[str, Any] = {}
    for role in ROLES:
        ours, theirs = getattr(original.roles, role), getattr(released.roles, role)
        if isinstance(ours, tuple):
            new = tuple(name for name in theirs if name not in original.schema)
            roles[role] = (*(name for name in ours if name in there), *new)
        else:
            roles[role] = ours if ours in there else theirs if theirs not in original.schema else None
    return _with_persons_of(original, released.with_roles(**roles))


def _with_persons_of(original: Microdata, released: Microdata) -> Microdata:
    """Let a release that left out whose its records are know it, where its rows are plainly those of the original."""
    role, unit = engine.counted_role(original), engine.counted_unit(original)
    rows = engine.overview(original, ()).rows
    if role is None or engine.counted_role(released) or engine.head_count(original) == rows:
        return released
    common = [name for name in released.columns if name in original.schema]
    files = (original, released)
    # Whoever is too large to hold is too large to look at row by row.
    ordered = all(has_row_order(data) and not engine.is_lazy(data) for data in files)
    if not common or not ordered or engine.overview(released, ()).rows != rows:
        return released.remembering(role, None)
    ours, theirs = (engine.collect(data, common) for data in (original, released))
    if not agrees_by_row(ours, theirs, common):
        return released.remembering(role, None)
    return released.remembering(role, unit_numbers(engine.collect(original, [str(unit)]).to_series()))
