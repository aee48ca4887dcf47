"""Whose records stand behind an output, and how do those of two outputs lie to each other?

Numbers of people say little: two outputs on 1,000 people each may be about the same people, about 999 that they share,
or about nobody in common. So the records themselves are compared. Within one file a record is in an output when it fits
its filter and has the values that the statistic needs; that is asked of the engine, and only the cells come back. Two
files are laid beside each other by the content of the columns they share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from discreet.engine import collect, scan
from discreet.microdata import Microdata
from discreet.outputs.question import Question, is_category, let_in, recoded

_RECORD = "record of the file"
_MOSTLY = 0.5


@dataclass(frozen=True)
class Side:
    """The records of one output: the file, the question, and the cut points where a variable is put into bins."""

    data: Microdata
    question: Question
    edges: tuple[float, ...] = ()

    @property
    def dimensions(self) -> int:
        """How many dimensions its cells have."""
        return len(self.question.by) + bool(self.edges)


@dataclass(frozen=True)
class Joint:
    """The records of two outputs together.

    Attributes
    ----------
    frame
        One row for every combination that occurs of ``a in``, ``a0``…, ``b in``, ``b0``…; with the records ``n``, or
        one row a person ``p`` where somebody may have several records.
    certain
        Whether the records of the one are known in the other, or only alike on few columns.
    """

    frame: pl.DataFrame
    certain: bool

    @property
    def counts_people(self) -> bool:
        """Whether there is one row a person."""
        return "p" in self.frame.columns


def joined(one: Side, other: Side) -> Joint | None:
    """Lay the records of two outputs beside each other; None where the files share no column.

    Examples
    --------
    >>> staff = Microdata(pl.DataFrame({"degree": ["yes"] * 41 + ["no"] * 4}))
    >>> both = joined(Side(staff, Question(())), Side(staff, Question((), where={"degree": "yes"})))
    >>> both.frame.sort("n").select("a in", "b in", "n").rows()
    [(True, False, 4), (True, True, 41)]
    """
    if one.data.frame is other.data.frame:
        subject = one.question.subject or other.question.subject
        rows = _marked(one.data, {"a": one, "b": other}, person=subject)
        return Joint(_gathered(rows, subject is not None), certain=True)
    return _aligned(one, other)


def _marked(
    data: Microdata, sides: dict[str, Side], *, person: str | None = None, kept: Sequence[str] = ()
) -> nw.LazyFrame[Any]:
    """Say of every record whether each side has it, and in which of its cells."""
    named = dict.fromkeys(
        name for side in sides.values() for name in (*side.question.columns(), *side.question.known)
    )
    short = {name: f"c{i}" for i, name in enumerate(named)}
    extra = {"p": person} if person is not None else {}
    rows = scan(data, {**{alias: name for name, alias in short.items()}, **extra, **{k: k for k in kept}})
    columns = [nw.col(name) for name in (*extra, *kept)]
    for tag, side in sides.items():
        columns += _of_side(tag, side, short, data)
    return rows.select(*columns) if columns else rows


def _of_side(tag: str, side: Side, short: dict[str, str], data: Microdata) -> list[nw.Expr]:
    question = side.question
    tests = [let_in(short[name], wanted) for name, wanted in question.where.items()]
    tests += [~nw.col(short[name]).is_null() for name in question.known]
    if not question.keep_missing:
        tests += [~nw.col(short[name]).is_null() for name in question.by]
    cells: list[nw.Expr] = []
    for name in question.by:
        column = nw.col(short[name])
        column = column.cast(nw.String) if is_category(data.schema[name]) else column
        changes = question.recode.get(name)
        cells.append(recoded(short[name], changes, column) if changes else column)
    if question.value is not None:
        value = nw.col(short[question.value]).cast(nw.Float64)
        tests.append(~value.is_null())
        if question.cap is not None and question.drops_above:
            tests.append(value <= question.cap)
        if side.edges:
            tests += [value >= side.edges[0], value <= side.edges[-1]]
            # The last bin takes its upper end, as in every histogram.
            steps = [(value >= edge).cast(nw.Int64) for edge in side.edges[1:-1]]
            cells.append(reduce(lambda left, right: left + right, steps, nw.lit(0).cast(nw.Int64)))
    # A comparison with a missing value is neither true nor false; a record with one is not in.
    inside = reduce(lambda left, right: left & right, tests, nw.lit(True)).fill_null(False)
    found = [inside.alias(f"{tag} in")]
    return found + [nw.when(inside).then(cell).alias(f"{tag}{i}") for i, cell in enumerate(cells)]


def _gathered(rows: nw.LazyFrame[Any], with_people: bool) -> pl.DataFrame:
    rows = rows.filter(nw.col("a in") | nw.col("b in"))
    names = rows.collect_schema().names()
    if with_people:
        return collect(rows.unique(subset=names))
    return collect(rows.group_by(*names).agg(nw.len().cast(nw.Int64).alias("n")))


def _aligned(one: Side, other: Side) -> Joint | None:
    """Lay two files beside each other by what their records hold in the columns they share."""
    shared = [name for name in one.data.columns if name in other.data.schema]
    shared = [name for name in shared if _alike(one.data, other.data, name)]
    subject = one.question.subject if one.question.subject == other.question.subject else None
    # Many outputs are held against the same two files: they are laid beside each other once.
    known = other.data.memory.setdefault("aligned files", {})
    key = (id(one.data.frame), subject)
    if key not in known:
        known[key] = (one.data.frame, _beside(one.data, other.data, shared, subject))
    files = known[key][1]
    if files is None:
        return None
    left, right, certain = files
    parts = []
    for tag, side, file in (("a", one, left), ("b", other, right)):
        rows = _marked(file, {tag: Side(file, side.question, side.edges)}, person=subject, kept=[_RECORD])
        parts.append(collect(rows))
    both = parts[0].join(parts[1], on=_RECORD, how="full", coalesce=True, suffix=" too")
    if subject is not None:
        both = both.with_columns(p=pl.coalesce("p", "p too")).drop("p too")
    both = both.with_columns(pl.col("a in", "b in").fill_null(False)).drop(_RECORD)
    return Joint(_gathered(nw.from_native(both).lazy(), subject is not None), certain=certain)


def _beside(
    one: Microdata, other: Microdata, shared: Sequence[str], subject: str | None
) -> tuple[Microdata, Microdata, bool] | None:
    """Number the records of two files alike where they hold the same, and say whether that can be relied on."""
    if not shared:
        return None
    left, right = collect(one), collect(other)
    if subject is not None and not _overlap(left, right, subject):
        return None
    # A column that was recoded under its old name agrees nowhere: without it the records can still be known.
    unchanged = [name for name in shared if _overlap(left, right, name) >= _MOSTLY]
    for names in (shared, unchanged):
        if not names:
            return None
        first, second = _numbered(left, names), _numbered(right, names)
        certain = subject is not None or min(_distinct(left, names), _distinct(right, names)) >= _MOSTLY
        if certain and np.isin(first.to_numpy(), second.to_numpy()).mean() >= _MOSTLY:
            break
    numbered = [
        Microdata(frame.with_columns(record.alias(_RECORD)))
        for frame, record in ((left, first), (right, second))
    ]
    return numbered[0], numbered[1], certain


def _alike(one: Microdata, other: Microdata, name: str) -> bool:
    first, second = one.schema[name], other.schema[name]
    return bool(first == second) or bool(first.is_numeric() and second.is_numeric())


def _plain(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    numbers = [name for name in names if frame.schema[name].is_numeric()]
    texts = [name for name in names if isinstance(frame.schema[name], pl.Categorical | pl.Enum)]
    return frame.select(names).with_columns(
        *(pl.col(name).cast(pl.Float64) for name in numbers),
        *(pl.col(name).cast(pl.String) for name in texts),
    )


def _numbered(frame: pl.DataFrame, names: Sequence[str]) -> pl.Series:
    """Give every record a number made of its content; the second of two equal ones gets another."""
    content = _plain(frame, names).hash_rows(seed=0).alias("content")
    table = content.to_frame().with_columns(again=pl.int_range(pl.len()).over("content"))
    return table.hash_rows(seed=1)


def _distinct(frame: pl.DataFrame, names: Sequence[str]) -> float:
    """Return the share of records whose content nobody else has."""
    keys = _plain(frame, names).hash_rows(seed=0)
    return float((~keys.is_duplicated()).to_numpy().mean()) if len(keys) else 0.0


def _overlap(left: pl.DataFrame, right: pl.DataFrame, name: str) -> float:
    """Return the share of the smaller file whose values of a column occur in the other, each as often as there."""
    first, second = (
        _plain(frame, [name]).group_by(name).agg(pl.len().alias("·n")) for frame in (left, right)
    )
    both = first.join(second, on=name, how="inner", nulls_equal=True, suffix=" too")
    size = min(left.height, right.height)
    return float(both.select(pl.min_horizontal("·n", "·n too").sum()).item() or 0) / max(size, 1)


def typed(data: Microdata, question: Question, texts: Sequence[str]) -> Question:
    """Give a question that was read from a file the values of the data for the texts it has in its filter."""
    where = {}
    for name, wanted in question.where.items():
        if name not in texts:
            where[name] = wanted
            continue
        values = collect(scan(data, {"v": name}).unique(subset=["v"]))["v"].to_list()
        where[name] = [value for value in values if str(value) in wanted]
    return replace(question, where=where)


def bin_labels(edges: Sequence[float]) -> tuple[str, ...]:
    """Name the bins between cut points.

    Examples
    --------
    >>> bin_labels([0, 10, 20])
    ('[0, 10)', '[10, 20]')
    """
    ends = [f"{float(edge):g}" if np.isfinite(edge) else "" for edge in edges]
    last = len(ends) - 2
    return tuple(f"[{ends[i]}, {ends[i + 1]}{']' if i == last else ')'}" for i in range(last + 1))
