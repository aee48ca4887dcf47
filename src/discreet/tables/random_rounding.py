"""Rounded counts: at random to multiples of a base, or only small ones to 0 or the least count shown.

Rounding cell by cell breaks the sums. Margins are therefore added up from rounded inner cells, or rounded on their
own; then an audit looks whether the sums give a true count away.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.constraints import AtLeast, ColumnName, Public
from discreet.core.errors import DiscreetWarning
from discreet.core.secret_keys import DEFAULT_VARIABLE, OTHER_TABLES_DIFFER, secret_key
from discreet.dp.entropy import Stream
from discreet.protect.stochastic_rounding import round_small_counts
from discreet.tables.poisson import checked_counts
from discreet.tables.record_keys import BY_DEFINITION, BY_RECORDS_WITHOUT_ID, drawn_for_cells, knows_records
from discreet.tables.table_cells import equations
from discreet.tables.table_protection import TableChange, TableProtection, Values, added_up, counts_of

if TYPE_CHECKING:
    from discreet.tables.table import Table


Margins = Literal["recompute", "independent", "none"]
Draws = Literal["keyed", "seed"]
NO_GUARANTEE = "a rounded count still says that the true one lies close by."


def round_to_base(values: npt.ArrayLike, base: float, uniforms: npt.ArrayLike) -> Floats:
    """Round to one of the two adjacent multiples of the base, up with the chance that makes it right on average.

    Examples
    --------
    >>> round_to_base([0, 1, 4, 5], 5, [0.5, 0.1, 0.5, 0.0]).tolist()
    [0.0, 5.0, 5.0, 5.0]
    """
    given = np.asarray(values, dtype=np.float64)
    below = np.floor(given / base + 1e-12)
    up = np.asarray(uniforms) * base < given - base * below - 1e-9 * base
    return np.asarray(base * (below + up))


@dataclass(frozen=True)
class _DrawnRounding(TableProtection):
    """What the roundings by draws share."""

    margins: Margins = "recompute"
    draws: Draws = "keyed"
    id: ColumnName | None = None
    subset: Annotated[str, Public()] = ""
    run: Annotated[str, Public()] = ""
    weighted: Literal["scale", "suppress"] = "scale"
    key_variable: Annotated[str, Public()] = DEFAULT_VARIABLE
    key_file: Annotated[str, Public()] | None = None

    def protect(self, table: Table, stream: Stream) -> TableChange:
        """Round the inner cells and, as asked, the margins."""
        published, small = counts_of(table, self.name)
        published, small = checked_counts(published), checked_counts(small)
        cells_drawn, inner_drawn = self._uniforms(table, stream)
        inner = self.rounded(small, inner_drawn)
        alone = self.margins == "independent"
        cells = self.rounded(published, cells_drawn) if alone else added_up(table, inner)
        figures: dict[str, int] = {"rounded": int((inner != small).sum())}
        notes = [self.words(), *self._caveats(table), OTHER_TABLES_DIFFER]
        keep = np.ones(table.cells.height, dtype=bool)
        if self.margins == "recompute":
            notes.append(
                "Margins are sums of rounded inner cells, so that the table is additive. In a table with other inner "
                "cells the same margin comes out differently, and the two can be averaged: publish it once."
            )
        elif alone:
            figures["pinned"] = int(pinned_down(table, *self.bounds(cells)).sum())
            notes.append("Margins were rounded on their own: totals need not equal the sum of their parts.")
            if figures["pinned"]:
                text = (
                    f"{figures['pinned']:,} cells can be computed exactly from the rounded ones and their rounded "
                    f"totals. Use "
                    "margins='recompute'."
                )
                warnings.warn(text, DiscreetWarning, stacklevel=4)
        else:
            keep = np.asarray(table.cells["inner_cells"] == 1)
            notes.append("Only inner cells are published, no margins.")
        made: dict[str, npt.NDArray[np.generic]] = {"count": _masked(cells, keep)}
        made_inner: Values = {"count": inner}
        if table.weight:
            made["weighted"] = _masked(self._follow(table.cells, published, cells), keep)
            made_inner = {**made_inner, "weighted": self._follow(table.inner, small, inner)}
            if self.margins == "recompute":
                made["weighted"] = added_up(table, np.asarray(made_inner["weighted"]))
        return TableChange(made, made_inner, tuple(notes), figures, why_none=NO_GUARANTEE)

    @abstractmethod
    def rounded(self, counts: Integers, drawn: Floats) -> Integers:
        """Round counts."""

    @abstractmethod
    def bounds(self, published: Integers) -> tuple[Floats, Floats]:
        """What a published count says about the true one."""

    @abstractmethod
    def words(self) -> str:
        """What was done, in one sentence."""

    def _uniforms(self, table: Table, stream: Stream) -> tuple[Floats, Floats]:
        if self.draws == "seed":
            inner = stream("inner", self.run).random(table.inner.height)
            return stream("cells", self.run).random(table.cells.height), inner
        key = secret_key(self.name, variable=self.key_variable, file=self.key_file)
        return drawn_for_cells(
            table, key, id=self.id, subset=self.subset, run=self.run, margins=self.margins == "independent"
        )

    def _caveats(self, table: Table) -> list[str]:
        """What would have to be done so that the same people are never drawn for twice."""
        if self.draws == "seed":
            return [
                "Another seed draws anew: two draws for the same people can be averaged. Publish one of them."
            ]
        if not knows_records(table):
            return [BY_DEFINITION]
        return [] if self.id else [BY_RECORDS_WITHOUT_ID]

    def _follow(self, frame: pl.DataFrame, true: Integers, shown: Integers) -> Floats:
        """Let a weighted total follow the rounding of its count."""
        totals = frame["weighted"].cast(pl.Float64).to_numpy()
        moved = shown != true
        factor = shown / np.maximum(true, 1) if self.weighted == "scale" else np.zeros(len(true))
        return np.where(moved, totals * factor, totals)


def pinned_down(table: Table, low: Floats, high: Floats) -> Flags:
    """Which cells do the sums of the table pin down to one value, though what is published of each leaves several?

    The bounds of the cells are narrowed sum by sum, until nothing changes.

    Examples
    --------
    >>> from discreet.tables import Table
    >>> table = Table.from_microdata(pl.DataFrame({"place": ["a"] * 100 + ["b"] * 2}), "place")
    >>> pinned_down(table, np.array([102.0, 100.0, 0.0]), np.array([102.0, 100.0, 2.0])).tolist()
    [False, False, True]
    """
    sums = equations(table).tocsr()
    row = np.repeat(np.arange(sums.shape[0]), np.diff(sums.indptr))
    cell, sign = sums.indices, sums.data
    least, most = low.astype(np.float64).copy(), high.astype(np.float64).copy()
    for _ in range(100):
        lows = np.where(sign > 0, least[cell], -most[cell])
        highs = np.where(sign > 0, most[cell], -least[cell])
        smallest = np.bincount(row, lows, minlength=sums.shape[0])[row] - lows
        largest = np.bincount(row, highs, minlength=sums.shape[0])[row] - highs
        # Every entry is minus the rest of its sum.
        from_rest_low = np.where(sign > 0, -largest, smallest)
        from_rest_high = np.where(sign > 0, -smallest, largest)
        before = least.sum(), most.sum()
        np.maximum.at(least, cell, from_rest_low)
        np.minimum.at(most, cell, from_rest_high)
        if (least.sum(), most.sum()) == before:
            break
    return np.asarray((high > low) & (most <= least))


def _masked(values: npt.NDArray[np.generic], keep: Flags) -> npt.NDArray[np.generic]:
    """Leave out the values of cells that are not published."""
    return values if keep.all() else np.where(keep, values.astype(np.float64), np.nan)


@dataclass(frozen=True)
class RandomRounding(_DrawnRounding):
    """Round every count at random to one of its two adjacent multiples of a base.

    It protects against learning small counts and small differences: every count could be several others.

    A count goes up with the chance that makes it right on average. Draws come from a secret key and the people in the
    cell, so that the same people are rounded alike in every table, under every filter and on every level.

    Also known as: random rounding; RR3; base 3 rounding.

    Parameters
    ----------
    base
        The base, usually 3, 5 or 10.
    margins
        ``recompute``: totals are sums of rounded inner cells. ``independent``: every total is rounded on its own,
        closer to the truth and not additive; an audit counts the cells that can then be computed. ``none``: no totals.
    draws
        ``keyed`` or ``seed``.
    id
        The column that identifies a record. Without it records are known by all they say, and a file with other columns
        draws anew.
    subset
        Of a table made from cells: a name for the part of the population it is about. Records say so themselves.
    run
        A name for the run of a simulation, whose draws are its own.
    weighted
        What becomes of weighted totals whose count moved: ``scale`` them along, or ``suppress`` (0).
    key_variable, key_file
        Environment variable, or file, that holds the secret key.

    What it costs
    -------------
    Every count moves by less than the base; sums of many rounded cells by the root of their number times half of it.

    When not to use it
    ------------------
    Do not use it beside exact totals, nor on sums such as turnover.

    Examples
    --------
    >>> from discreet.tables import Table
    >>> table = Table.from_microdata(pl.DataFrame({"place": ["a"] * 7 + ["b"] * 4}), "place")
    >>> RandomRounding(base=5, draws="seed").apply(table, seed=3).published["count"].to_list()
    [10, 5, 5]
    """

    base: Annotated[int, AtLeast(2)] = 3

    def rounded(self, counts: Integers, drawn: Floats) -> Integers:
        """Round all counts."""
        return round_to_base(counts, self.base, drawn).astype(np.int64)

    def bounds(self, published: Integers) -> tuple[Floats, Floats]:
        """The true count lies within less than the base."""
        shown = published.astype(np.float64)
        return np.maximum(shown - self.base + 1, 0.0), shown + self.base - 1

    def words(self) -> str:
        """What was done."""
        return f"Counts were rounded at random to a multiple of {self.base}, right on average."


@dataclass(frozen=True)
class SmallCountRounding(_DrawnRounding):
    """Round counts below a least count to 0 or to it, at random and right on average; leave the others.

    It protects against learning small counts: no published inner count lies between 0 and k.

    Also known as: small count rounding; SmallCountRounding.

    Parameters
    ----------
    k
        The least count to show.
    margins
        ``recompute``: totals are sums of rounded inner cells. ``independent``: every total is rounded on its own; an
        audit counts the cells that can then be computed. ``none``: no totals.
    draws, id, subset, run, weighted, key_variable, key_file
        As in `RandomRounding`.

    Notes
    -----
    A table made from a file of counts is rounded as `discreet.protect.StochasticRound` rounds that file, with the same
    secret key and the same names. The law of what is published, and what a published 0 or k says, is in
    `discreet.protect.stochastic_rounding.published_law`; runs of a simulation are put together by
    `monte_carlo_summary`.

    What it costs
    -------------
    Small counts are wrong by up to k, right on average; totals move with them.

    When not to use it
    ------------------
    Do not use it on sums such as turnover, which need a dominance rule, nor beside exact totals.

    Examples
    --------
    >>> from discreet.tables import Table
    >>> table = Table.from_microdata(pl.DataFrame({"place": ["a"] * 100 + ["b"] * 2}), "place")
    >>> SmallCountRounding(k=3, draws="seed").apply(table, seed=1).published["count"].to_list()
    [100, 100, 0]
    """

    k: Annotated[int, AtLeast(2)] = 3

    def rounded(self, counts: Integers, drawn: Floats) -> Integers:
        """Round small counts."""
        return round_small_counts(counts, self.k, drawn).astype(np.int64)

    def bounds(self, published: Integers) -> tuple[Floats, Floats]:
        """A 0 stands for 0…k-1, a k for 1…k, every other count for itself."""
        shown = published.astype(np.float64)
        low = np.where(published == self.k, 1.0, shown)
        return low, np.where(published == 0, self.k - 1.0, shown)

    def words(self) -> str:
        """What was done."""
        return f"Counts below {self.k} were rounded to 0 or {self.k} at random, right on average."
