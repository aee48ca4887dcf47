"""What a parent knows of its children before they are drawn: how many, when, and what they are like on the whole.

Parents are drawn so that numbers of children are as frequent as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ColumnError
from discreet.synth.saved_models import stored

_MOST_WAVES = 40
_MOST_SUMMARIES = 4
_FEW_LEVELS = 30
_BETWEEN = "|"


@stored("table-family")
@dataclass(frozen=True, eq=False)
class Family:
    """A table and the parent that its records hang on.

    Attributes
    ----------
    child, parent, column
        The tables, and the column of the child that holds the key of the parent.
    order
        The column by which the children of a parent stand in time.
    waves
        Whether a parent has at most one child at each time, of which there are few: a panel. Parents then draw the
        pattern of times instead of a number.
    means, commonest
        Columns of the child whose mean, or commonest value, its parent draws beforehand.
    partner
        Whether it is the link to a partner and not to the owner: only numbers are drawn then.
    levels, often
        The numbers of children that there are (or the patterns of times), in order, and how many parents have each.
    """

    child: str
    parent: str
    column: str
    order: str | None = None
    waves: bool = False
    means: tuple[str, ...] = ()
    commonest: tuple[str, ...] = ()
    partner: bool = False
    levels: tuple[Any, ...] = ()
    often: tuple[int, ...] = ()

    @property
    def number(self) -> str:
        """What the column of the parent is called that says how many children there are, or which pattern."""
        return f"{self.child}.{self.column}: {'times' if self.waves else 'number'}"

    @property
    def known(self) -> tuple[str, ...]:
        """Columns of the parent that the child gives it."""
        means = tuple(f"{self.child}.{name}: mean" for name in self.means)
        return (self.number, *means, *(f"{self.child}.{name}: commonest" for name in self.commonest))

    @classmethod
    def of(  # noqa: PLR0917
        cls,
        child: str,
        parent: str,
        column: str,
        frame: pl.DataFrame,
        columns: Sequence[str],
        order: str | None,
        *,
        partner: bool,
    ) -> Family:
        """Look at the children: what can their parents say about them?"""
        if partner or not frame.height:
            return cls(child, parent, column, order, partner=partner)
        waves = False
        if order is not None:
            if frame[order].null_count():
                raise ColumnError(
                    f"Table '{child}': '{order}' gives the order and is missing in {frame[order].null_count():,} "
                    "records. Fill it in, or take it out of the schema."
                )
            alone = frame.select(pl.struct(column, order).n_unique()).item() == frame.height
            waves = alone and frame[order].n_unique() <= _MOST_WAVES
        rest = [name for name in columns if name != order]
        means = [name for name in rest if frame.schema[name].is_numeric()][:_MOST_SUMMARIES]
        few = [
            name
            for name in rest
            if not frame.schema[name].is_numeric()
            and not frame.schema[name].is_temporal()
            and frame[name].n_unique() <= _FEW_LEVELS
        ][:_MOST_SUMMARIES]
        return cls(child, parent, column, order, waves, tuple(means), tuple(few))

    def summed_up(self, keys: pl.Series, frame: pl.DataFrame) -> pl.DataFrame:
        """Give every parent what it knows of its children, one row a parent in the order of the keys."""
        asked: list[pl.Expr] = [pl.len().cast(pl.Int64).alias("number")]
        if self.waves:
            asked.append(pl.col(str(self.order)).sort().cast(pl.String).str.join(_BETWEEN).alias("times"))
        asked += [
            pl.col(name).cast(pl.Float64).mean().alias(f"mean {at}") for at, name in enumerate(self.means)
        ]
        asked += [
            pl.col(name).cast(pl.String).drop_nulls().mode().sort().first().alias(f"commonest {at}")
            for at, name in enumerate(self.commonest)
        ]
        by = frame.group_by(pl.col(self.column).alias("key")).agg(*asked)
        found = keys.rename("key").to_frame().join(by, on="key", how="left", maintain_order="left")
        made: dict[str, pl.Series] = {}
        if self.waves:
            made[self.number] = found["times"].fill_null("")
        else:
            made[self.number] = found["number"].fill_null(0)
        for kind, names in (("mean", self.means), ("commonest", self.commonest)):
            for at, name in enumerate(names):
                made[f"{self.child}.{name}: {kind}"] = _rounded(found[f"{kind} {at}"])
        return pl.DataFrame(made)

    def counted(self, numbers: pl.Series) -> Family:
        """Keep how many parents have how many children."""
        found = numbers.rename("level").value_counts(name="often")
        # Patterns of times stand in the order of their length, as numbers do.
        by = [pl.col("level").str.count_matches(_BETWEEN, literal=True), "level"] if self.waves else ["level"]
        found = found.sort(by)
        return replace(self, levels=tuple(found["level"].to_list()), often=tuple(found["often"].to_list()))

    def spread(self, parents: pl.DataFrame) -> tuple[Integers, pl.Series | None]:
        """Say for every child to come which parent it has, and at which time, where it is a panel."""
        if not self.waves:
            sizes = np.maximum(parents[self.number].to_numpy(), 0)
            return np.repeat(np.arange(parents.height), sizes), None
        times = parents[self.number].rename("times").to_frame().with_row_index("at")
        times = times.filter(pl.col("times") != "").with_columns(pl.col("times").str.split(_BETWEEN))
        flat = times.explode("times")
        return flat["at"].to_numpy().astype(np.int64), flat["times"]


def _rounded(series: pl.Series) -> pl.Series:
    """Keep four digits of a mean: it guides draws, and its further digits are nobody's business."""
    if series.dtype != pl.Float64:
        return series
    values = series.fill_null(0.0).to_numpy()
    size = np.where(
        values == 0, 1.0, 10.0 ** (np.floor(np.log10(np.abs(np.where(values == 0, 1.0, values)))) - 3)
    )
    return pl.Series(np.round(values / size) * size).set(series.is_null(), None)


# Parents drawn so that numbers of children are as frequent as they were: chance alone misses small totals widely.


_MORE = 0.5  # candidates beside those that are needed
_BINS = 8
_ROUNDS = 200


def chosen_parents(
    families: Sequence[Family], rows: int, draw: Callable[[int], pl.DataFrame], rng: np.random.Generator
) -> pl.DataFrame:
    """Draw more parents than are needed, and choose those whose numbers of children are as frequent as they were.

    Every parent is taken as it was drawn, so that what it is like and what its children are like go together.
    """
    counted = [family for family in families if family.levels]
    if not counted or rows < 2 * _BINS:
        return draw(rows)
    every = draw(rows + max(round(_MORE * rows), 2 * _BINS))
    cells, wanted = zip(*(_cells(family, every[family.number]) for family in counted), strict=True)
    codes = np.column_stack(cells)
    ends = np.cumsum([0, *(len(own) for own in wanted)])[:-1]
    codes = codes + ends
    aim = np.concatenate(wanted) * rows
    taken = np.arange(every.height) < rows
    gap = _gap(codes[taken], aim)
    size = max(1, rows // 20)
    for _ in range(_ROUNDS):
        if np.abs(gap).max() < 1 or size < 1:
            break
        worth = gap[codes].sum(axis=1) + rng.random(every.height) * 1e-3
        inside, outside = np.flatnonzero(taken), np.flatnonzero(~taken)
        leaves = inside[np.argsort(-worth[inside])[:size]]
        comes = outside[np.argsort(worth[outside])[:size]]
        tried = taken.copy()
        tried[leaves], tried[comes[: len(leaves)]] = False, True
        after = _gap(codes[tried], aim)
        if np.abs(after).sum() < np.abs(gap).sum():
            taken, gap = tried, after
        else:
            size //= 2
    return every.filter(pl.Series(taken))


def _gap(codes: Integers, aim: Floats) -> Floats:
    """Say how many parents too many (or too few) each class has."""
    found: Floats = np.bincount(codes.ravel(), minlength=len(aim)) - aim
    return found


def _cells(family: Family, drawn: pl.Series) -> tuple[Integers, Floats]:
    """Put numbers of children into a few classes; returns that of each drawn parent, and the share of each class."""
    often = np.array(family.often, dtype=np.float64)
    # A class ends where its share of the parents is reached; a number that many parents have is one by itself.
    upto = np.cumsum(often) / often.sum()
    bins = np.unique(np.floor(np.concatenate([[0.0], upto[:-1]]) * _BINS), return_inverse=True)[1]
    large = often / often.sum() >= 1 / (2 * _BINS)
    bins = np.unique(np.column_stack([bins, np.cumsum(large), large]), axis=0, return_inverse=True)[1].ravel()
    place = {level: int(own) for level, own in zip(family.levels, bins.tolist(), strict=True)}
    codes = np.array([place.get(level, 0) for level in drawn.to_list()], dtype=np.int64)
    return codes, np.bincount(bins, weights=often) / often.sum()


def balanced_children(family: Family, parents: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """Let as many of these parents have children as should, where they are children themselves and cannot be chosen.

    Who is to get the first child is one of those who are like parents with children in all their categories, and what
    is known of the children comes from one of these; who is to lose them is anybody.
    """
    if not family.levels or not parents.height:
        return parents
    none = (0, "")
    have = np.array([level not in none for level in parents[family.number].to_list()])
    share = sum(n for level, n in zip(family.levels, family.often, strict=True) if level not in none)
    missing = round(parents.height * share / sum(family.often)) - int(have.sum())
    taken = np.arange(parents.height)
    if not missing or not have.any():
        return parents
    if missing < 0:
        lose = rng.permutation(np.flatnonzero(have))[:-missing]
        if not (~have).any():
            return parents
        taken[lose] = rng.choice(np.flatnonzero(~have), size=len(lose))
    else:
        few = [
            name
            for name in parents.columns
            if name not in family.known and ": " not in name and parents[name].n_unique() <= _FEW_LEVELS
        ]
        groups = _groups(parents.select(few))
        donors, others = (
            np.bincount(groups, weights=own, minlength=groups.max() + 1) for own in (have, ~have)
        )
        chance = np.where(have, 0.0, donors[groups] / np.maximum(others[groups], 1.0))
        missing = min(missing, int((chance > 0).sum()))
        if not missing:
            return parents
        gain = rng.choice(len(chance), size=missing, replace=False, p=chance / chance.sum())
        # A donor of the same group: those with children stand together when sorted by group.
        rich = np.flatnonzero(have)
        rich = rich[np.argsort(groups[rich], kind="stable")]
        low, high = (np.searchsorted(groups[rich], groups[gain], side=side) for side in ("left", "right"))
        taken[gain] = rich[low + np.floor(rng.random(missing) * (high - low)).astype(np.int64)]
    known = [name for name in family.known if name in parents.columns]
    return parents.with_columns(parents[name].gather(taken) for name in known)


def _groups(frame: pl.DataFrame) -> Integers:
    if not frame.width:
        return np.zeros(frame.height, dtype=np.int64)
    return frame.select(pl.struct(pl.all()).rank("dense").cast(pl.Int64) - 1).to_series().to_numpy()
