"""Which cells of two outputs are about almost the same people?

Whoever has both can subtract: all staff less graduates are the four who are not, and a mean of 1,000 less a mean of 999
is the pay of one. A pair of cells is *close* when the people who are in one of them and not in the other are fewer than
the threshold, and there are any. Cells that can be added up are also compared as sums: over whole dimensions, and over
neighboring bins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.engine import collect, scan
from discreet.microdata import Microdata
from discreet.outputs.question import Question, is_category, let_in, recoded

Texts = tuple[str, ...]
Axes = tuple[int, ...]

_MOST_DIMENSIONS = 6
_MOST_PAIRS = 400
_MOST_BINS = 60


@dataclass(frozen=True)
class Part:
    """What is published of one output: levels of its dimensions, cells that are hidden, whether cells add up."""

    levels: tuple[Texts, ...]
    hidden: frozenset[Texts] = frozenset()
    adds_up: bool = True
    has_bins: bool = False

    def sums(self) -> list[Axes]:
        """The sets of dimensions by which it is known: as published, and added up over the others."""
        whole = tuple(range(len(self.levels)))
        if not self.adds_up:
            return [whole]
        if len(whole) > _MOST_DIMENSIONS // 2:
            return list(dict.fromkeys([whole, *((axis,) for axis in whole), ()]))
        return [axes for size in range(len(whole), -1, -1) for axes in combinations(whole, size)]


@dataclass(frozen=True)
class Close:
    """The close cells of a new output: how many, and which ones where they are cells as published."""

    number: int = 0
    cells: tuple[Texts, ...] = ()
    is_nested: bool = True


def close_cells(joint: Joint, new: Part, earlier: Part, threshold: int) -> Close:
    """Find the cells (and sums of cells) of the new output that differ by few people from those of the earlier one.

    Examples
    --------
    >>> frame = pl.DataFrame({"a in": [True, True], "b in": [True, False], "n": [41, 4]})
    >>> close_cells(Joint(frame, True), Part(()), Part(()), 10).number
    1
    """
    frame = shown(shown(joint.frame, "a", new), "b", earlier)
    nested = not (
        frame.filter(pl.col("a in") & ~pl.col("b in")).height
        and frame.filter(~pl.col("a in") & pl.col("b in")).height
    )
    for size in range(len(new.levels), -1, -1):
        found: set[Texts] = set()
        for ours in (axes for axes in new.sums() if len(axes) == size):
            for theirs in earlier.sums():
                found |= _close(frame, ours, theirs, threshold, joint.counts_people)
        if found:
            return Close(len(found), tuple(sorted(found)) if size == len(new.levels) else (), nested)
    if new.has_bins and earlier.has_bins and not joint.counts_people:
        number = _close_stretches(frame, new.levels[-1], earlier.levels[-1], threshold)
        return Close(number, (), nested)
    return Close(0, (), nested)


def shown(frame: pl.DataFrame, tag: str, part: Part) -> pl.DataFrame:
    """Write levels as text, and take out of an output the people in cells that it hides."""
    names = [f"{tag}{i}" for i in range(len(part.levels))]
    for i, name in enumerate(names):
        seen = frame[name].unique().to_list()
        # A bin comes as its place, a level as its value.
        is_bin = part.has_bins and i == len(names) - 1
        texts = [str(part.levels[i][v]) if is_bin and v is not None else str(v) for v in seen]
        labels = pl.DataFrame(
            {name: pl.Series(seen, dtype=frame.schema[name]), f"{name} text": texts}, strict=False
        )
        frame = frame.join(labels, on=name, how="left", nulls_equal=True)
        frame = frame.drop(name).rename({f"{name} text": name})
    if part.hidden and names:
        gone = pl.DataFrame([list(cell) for cell in part.hidden], schema=names, orient="row").with_columns(
            gone=pl.lit(True)
        )
        frame = frame.join(gone, on=names, how="left", nulls_equal=True)
        frame = frame.with_columns((pl.col(f"{tag} in") & pl.col("gone").is_null()).alias(f"{tag} in")).drop(
            "gone"
        )
    return frame


def _close(frame: pl.DataFrame, ours: Axes, theirs: Axes, threshold: int, counts_people: bool) -> set[Texts]:
    a, b = [f"a{i}" for i in ours], [f"b{i}" for i in theirs]
    pairs = _people_apart(frame, a, b, threshold) if counts_people else _records_apart(frame, a, b, threshold)
    return (
        {tuple(str(text) for text in row) for row in pairs.select(a).rows()}
        if a
        else ({()} if pairs.height else set())
    )


def _records_apart(frame: pl.DataFrame, a: list[str], b: list[str], threshold: int) -> pl.DataFrame:
    n = pl.col("n").sum()
    one, two = pl.lit(1).alias("one"), pl.lit(1).alias("two")
    mine = frame.filter(pl.col("a in")).with_columns(one).group_by("one", *a).agg(n.alias("mine"))
    other = frame.filter(pl.col("b in")).with_columns(two).group_by("two", *b).agg(n.alias("other"))
    both = frame.filter(pl.col("a in") & pl.col("b in")).with_columns(one, two)
    both = both.group_by("one", "two", *a, *b).agg(n)
    both = both.join(mine, on=["one", *a], nulls_equal=True).join(other, on=["two", *b], nulls_equal=True)
    apart = pl.col("mine") + pl.col("other") - 2 * pl.col("n")
    return both.filter((apart > 0) & (apart < threshold))


def _people_apart(frame: pl.DataFrame, a: list[str], b: list[str], threshold: int) -> pl.DataFrame:
    """As for records, where somebody may have several: those whose records are in one cell and not in the other."""
    pairs = frame.filter(pl.col("a in") & pl.col("b in")).select(*a, *b, pl.lit(1).alias("one")).unique()
    kept = []
    for row in pairs.sort(pl.all()).head(_MOST_PAIRS).iter_rows(named=True):
        mine = _is(row, "a", a)
        other = _is(row, "b", b)
        apart = frame.filter(mine != other)["p"].n_unique()
        kept.append(0 < apart < threshold)
    kept += [False] * (pairs.height - len(kept))
    return pairs.sort(pl.all()).filter(pl.Series(kept, dtype=pl.Boolean))


def _is(row: dict[str, Any], tag: str, names: Sequence[str]) -> pl.Expr:
    found = pl.col(f"{tag} in")
    for name in names:
        found = found & pl.col(name).eq_missing(pl.lit(row[name]))
    return found


def _close_stretches(frame: pl.DataFrame, bins: Texts, of_other: Texts, threshold: int) -> int:
    """Count the stretches of neighboring bins that differ by few people from a stretch of the other output."""
    ours, theirs = len(bins), len(of_other)
    if max(ours, theirs) > _MOST_BINS:
        return 0
    mine, other = _stretches(ours), _stretches(theirs)
    table = np.zeros((ours + 1, theirs + 1))
    places = [{text: i for i, text in enumerate(labels)} for labels in (bins, of_other)]
    # One row a pair of bins, not a record.
    for row in frame.iter_rows(named=True):
        at = places[0].get(row["a0"], ours) if row["a in"] else ours
        to = places[1].get(row["b0"], theirs) if row["b in"] else theirs
        table[at, to] += row["n"]
    down, across = table[:-1].sum(axis=1), table[:, :-1].sum(axis=0)
    both = _block_sums(table[:-1, :-1], mine, other)
    apart = _line_sums(down, mine)[:, None] + _line_sums(across, other)[None, :] - 2 * both
    return int(((both > 0) & (apart > 0) & (apart < threshold)).any(axis=1).sum())


def _stretches(bins: int) -> Integers:
    return np.array([(i, j) for i in range(bins) for j in range(i + 1, bins + 1)], dtype=np.int64)


def _line_sums(line: Floats, ends: Integers) -> Floats:
    sums = np.concatenate([[0.0], np.cumsum(line)])
    return np.asarray(sums[ends[:, 1]] - sums[ends[:, 0]])


def _block_sums(table: Floats, down: Integers, across: Integers) -> Floats:
    sums = np.zeros((table.shape[0] + 1, table.shape[1] + 1))
    sums[1:, 1:] = table.cumsum(axis=0).cumsum(axis=1)
    (i, j), (k, last) = down.T, across.T
    whole = sums[np.ix_(j, last)] - sums[np.ix_(i, last)] - sums[np.ix_(j, k)] + sums[np.ix_(i, k)]
    return np.asarray(whole)


# Whose records stand behind an output, and how do those of two outputs lie to each other?
#
# Numbers of people say little: two outputs on 1,000 people each may be about the same people, about 999 that they
# share, or about nobody in common. So the records themselves are compared. Within one file a record is in an output
# when it fits its filter and has the values that the statistic needs; that is asked of the engine, and only the cells
# come back. Two files are laid beside each other by the content of the columns they share.


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
        rows = marked(one.data, {"a": one, "b": other}, person=subject)
        return Joint(_gathered(rows, subject is not None), certain=True)
    return _aligned(one, other)


def marked(
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
        rows = marked(file, {tag: Side(file, side.question, side.edges)}, person=subject, kept=[_RECORD])
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
