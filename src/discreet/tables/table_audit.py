"""Does a table with suppressed cells keep its secrets? Every way to break it that is known here, tried in turn."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import polars as pl
from scipy import sparse

from discreet.core.arrays import Array, Flags, Floats, Integers
from discreet.core.constraints import AtLeast
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.core.values import jsonable
from discreet.tables import table_cells
from discreet.tables.exact_disclosure import Knowledge, computable, knowledge, shared_cells
from discreet.tables.feasibility_intervals import Protection, feasible_bounds, levels

if TYPE_CHECKING:
    from discreet.tables.table import Table


# Up to so many cells intervals are a matter of seconds, and are looked at without being asked for.
INTERVALS_UP_TO = 5_000


@checked
def audit(
    table: Table,
    suppressed: Any = None,
    *,
    primary: Any = "primary",
    intervals: bool | None = None,
    protection: float | str | Protection | None = None,
    contributors: bool | Sequence[Any] = True,
    differences: int | None = None,
    previous: Sequence[tuple[Table, Any]] = (),
    successive: int = 3,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
    max_cells: Annotated[int, AtLeast(1)] = table_cells.MOST_SOLVED,
) -> Audit:
    """Does a table with suppressed cells keep its secrets?

    Tries to compute every primary cell from the published ones, exactly; lets every single contributor try with its own
    figure; bounds every primary cell by linear programs, and counts by whole numbers; and where asked looks for
    published cells that differ by a small group, and combines the table with earlier releases.

    Also known as: attacker problem; interval audit.

    Parameters
    ----------
    table
        The table, with its primary cells flagged (`discreet.tables.primary`).
    suppressed
        The cells that are left out, primary ones included: positions, a mask, codes, or the name of a flag column.
        Only the primary ones by default.
    primary
        The cells to protect, in the same ways.
    intervals
        Bound every primary cell by linear programs, and counts by integer programs where a linear one ends in a
        fraction. By default in tables of up to 5,000 cells; in larger ones the verdict says that it was not tested.
    protection
        How far the bounds of a cell must reach to both sides of its value: a share of it, the name of a column of
        levels, or a `Protection`. By default the column ``protection`` where the rules left one,
        else anything but a single value.
    contributors
        Let single contributors use their own figures (tables of sums); or who they are, for each inner cell.
    differences
        Look for published cells, one inside the other, that differ by fewer units than this.
    previous
        Earlier releases: pairs of a table and its suppressed cells. Of the same people (all cells that both have are
        equal) they are combined with this one, whatever their dimensions and levels; of others the published cells
        with the same codes that changed by fewer than ``successive`` units are listed.
    successive
        A change by fewer units than this is listed, and the audit is not safe; 0 where people come and go anyway, so
        that a small change says nothing about anybody.
    workers, progress
        Threads for the linear programs, and a function called with cells done and their total.
    max_cells
        A table with more cells is refused before the work. Raise it where you can wait.

    Examples
    --------
    >>> import polars as pl
    >>> from discreet.tables import Table, Threshold, primary
    >>> people = pl.DataFrame({"place": ["a"] * 9 + ["b"] * 8, "sex": (["f"] * 8 + ["m"]) + ["f", "m"] * 4})
    >>> table = primary(Table.from_microdata(people, "place*sex"), Threshold(3))
    >>> audit(table).safe
    False
    """
    table_cells.need_few_cells(table, max_cells)
    count = table.cells.height
    secret = table_cells.cell_places(table, primary, "primary")
    hidden = np.union1d(secret, table_cells.cell_places(table, suppressed, "suppressed"))
    published = np.ones(count, dtype=bool)
    published[hidden] = False
    held = knowledge(table, previous)
    combined = np.concatenate([published, held.open])
    known = table_cells.known_zero_rows(held.x, held.inner, combined)
    who = _contributors(table, contributors)
    if who is not None:
        # Whom the inner cells of earlier tables belong to is not known.
        who = [*who, *[None] * (len(held.inner) - len(who))]
    found = computable(
        held.x,
        combined,
        secret,
        contributors=who,
        known_rows=known,
        empty_rows=table_cells.empty_rows(table, len(held.inner)),
    )
    bounds = None
    if intervals_wanted(table, intervals):
        bounds = _intervals(table, held, combined, secret, protection, known, workers, progress)
    small = None if not differences else _small_groups(table, published, differences)
    changed = [
        successive_differences(table, earlier, published, shown, successive) for earlier, shown in held.others
    ]
    jumped = pl.concat(changed) if changed else None
    exact = _named(table, found.cells)
    pairs = _named(table, np.array([cell for cell, _ in found.by_contributors], dtype=np.int64)).with_columns(
        contributor=pl.Series([str(name) for _, name in found.by_contributors], dtype=pl.String)
    )
    figures = {
        "cells": count,
        "primary": len(secret),
        "secondary": len(hidden) - len(secret),
        "published": int(published.sum()),
        "computable": len(found.cells),
        "computable_by_contributors": len({cell for cell, _ in found.by_contributors}),
        "sums": len(found.sums),
        "narrow": None if bounds is None else int((~bounds["wide_enough"]).sum()),
        "width_asked": bool(np.max(levels(table, secret, protection), initial=0.0) > 0),
        "pinned": None if bounds is None else int((bounds["lower"] == bounds["upper"]).sum()),
        "differences": None if small is None else small.height,
        "successive": None if jumped is None else jumped.height,
        "contributors_tested": who is not None,
        "releases": 1 + len(previous),
    }
    checks = _sentences(figures, successive, differences, whole=table_cells.counts_only(table))
    return Audit(exact, pairs, len(found.sums), bounds, small, jumped, figures, checks)


def intervals_wanted(table: Table, asked: bool | None) -> bool:
    """Whether intervals are looked at: as asked, else in tables small enough."""
    return table.cells.height <= INTERVALS_UP_TO if asked is None else asked


def _small_groups(table: Table, published: Flags, threshold: int) -> pl.DataFrame:
    counts = table.inner["count"].to_numpy()
    if table.joined is None:
        return nested_differences(table.x, counts, published, threshold)
    found = []
    for view in table.joined.views:
        pairs = nested_differences(view.x, counts, published[view.cells], threshold)
        named = (pl.Series(name, view.cells[pairs[name].to_numpy()]) for name in ("larger", "smaller"))
        found.append(pairs.with_columns(named))
    return pl.concat(found).unique(maintain_order=True)


def _contributors(table: Table, given: bool | Sequence[Any]) -> Sequence[Any] | None:
    if isinstance(given, bool):
        if not given or table_cells.counts_only(table):
            return None
        return table_cells.single_contributors(table)
    if len(given) != table.inner.height:
        raise ParameterError(
            f"contributors has {len(given)} entries, but the table has {table.inner.height} inner cells."
        )
    return given


def least_values(inner: Floats, known: Integers, *, counts: bool) -> Floats | None:
    """What everybody knows of every inner cell beforehand: none is negative, and none is zero where zeros are shown."""
    if (inner < 0).any():
        return None
    least = np.zeros(len(inner))
    if counts and set(np.flatnonzero(inner == 0).tolist()) <= set(known.tolist()):
        least[inner > 0] = 1.0
    return least


def whole_values(inner: Floats) -> bool:
    """Whether all values are whole numbers: counts may also be estimates."""
    return bool((inner == np.rint(inner)).all())


def _intervals(  # noqa: PLR0917
    table: Table,
    held: Knowledge,
    published: Flags,
    secret: Integers,
    protection: float | str | Protection | None,
    known: Integers,
    workers: int,
    progress: Callable[[int, int], None] | None,
) -> pl.DataFrame:
    counts = table_cells.counts_only(table)
    found = feasible_bounds(
        held.x, held.inner, published, secret, lower=least_values(held.inner, known, counts=counts),
        whole=counts and whole_values(held.inner), workers=workers, progress=progress,
    )  # fmt: skip
    value = np.asarray(held.inner @ held.x).ravel()[secret]
    lower, upper, sliding = levels(table, secret, protection)
    slack = 1e-6 * (1.0 + np.abs(value))
    enough = (
        (found.upper - found.lower > slack)
        & (value - found.lower >= lower - slack)
        & (found.upper - value >= upper - slack)
        & (found.upper - found.lower >= sliding - 2 * slack)
    )
    return _named(table, secret).with_columns(
        value=pl.Series(value),
        lower=pl.Series(found.lower),
        upper=pl.Series(found.upper),
        wide_enough=pl.Series(enough),
    )


def _named(table: Table, cells: Integers) -> pl.DataFrame:
    codes = table.cells.select(table.dimensions)
    codes = codes[cells] if len(cells) else codes.clear()
    return codes.insert_column(0, pl.Series("cell", cells, dtype=pl.Int64))


def _many(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


def _sentences(
    figures: dict[str, Any], successive: int, differences: int | None, *, whole: bool
) -> dict[str, str]:
    cells = _many(figures["primary"], "primary cell", "primary cells")
    found = {
        "exact": (
            f"{_many(figures['computable'], 'primary cell', 'primary cells')} can be computed exactly from the "
            f"{figures['published']:,} published cells."
            if figures["computable"]
            else f"None of {cells} can be computed from the {figures['published']:,} published cells."
        )
    }
    if figures["contributors_tested"]:
        number = figures["computable_by_contributors"]
        found["contributors"] = (
            f"A single contributor who knows its own figure can compute "
            f"{_many(number, 'primary cell', 'primary cells')} of others."
            if number
            else "No single contributor who knows its own figure can compute a primary cell of others."
        )
        found["sums"] = (
            f"Of {_many(figures['sums'], 'contributor', 'contributors')} with several cells everybody knows a sum or a "
            "difference of them, though no single cell."
            if figures["sums"]
            else "Of no contributor with several cells a sum of them is known."
        )
    if figures["narrow"] is not None:
        in_whole = ", in whole numbers," if whole else ""
        single = (
            f" {_many(figures['pinned'], 'of them has', 'of them have')} one possible value left."
            if figures["pinned"]
            else ""
        )
        found["intervals"] = (
            f"The published cells pin {_many(figures['narrow'], 'primary cell', 'primary cells')} down more closely "
            f"than is allowed.{single}"
            if figures["narrow"]
            else f"The bounds{in_whole} that the published cells give for the primary ones are as wide as is asked."
            if figures["width_asked"]
            else f"The bounds{in_whole} that the published cells give leave every primary cell more than one value."
        )
    else:
        found["intervals"] = (
            "How closely the published cells bound the primary ones was not tested (intervals=True does)."
        )
    if figures["differences"] is not None:
        found["differences"] = (
            f"{_many(figures['differences'], 'pair', 'pairs')} of published cells, one inside the other, leave a group "
            f"of fewer than {differences}."
            if figures["differences"]
            else f"No two published cells, one inside the other, leave a group of fewer than {differences}."
        )
    if figures["successive"] is not None and not successive:
        found["successive"] = "Cells of earlier releases of other people were not compared (successive=0)."
    elif figures["successive"] is not None:
        found["successive"] = (
            f"{_many(figures['successive'], 'published cell', 'published cells')} changed by fewer than {successive} "
            "units since an earlier release."
            if figures["successive"]
            else f"No published cell changed by fewer than {successive} units since an earlier release."
        )
    return found


# The findings, in numbers and in words.


@dataclass(frozen=True, repr=False)
class Audit:
    """What can be learned from a table with suppressed cells.

    Attributes
    ----------
    exact
        Primary cells that everybody can compute: ``cell`` and the codes.
    by_contributors
        Primary cells that a contributor can compute from its own figure: ``cell``, the codes. Who it is stays in
        the house, in the column ``contributor``.
    sums
        How many contributors have several cells of which everybody knows a sum or a difference.
    intervals
        For every primary cell the bounds that the table pins it down to, and whether they are wide enough; None
        where they were not tested.
    differences
        Pairs of published cells, one inside the other, that leave a small group; None where not asked for.
    successive
        Published cells that changed by few units since an earlier release.
    figures
        Counts of everything above, and what was tested.
    checks
        By test the plain sentence of its outcome.
    """

    exact: pl.DataFrame
    by_contributors: pl.DataFrame
    sums: int
    intervals: pl.DataFrame | None
    differences: pl.DataFrame | None
    successive: pl.DataFrame | None
    figures: Mapping[str, Any]
    checks: Mapping[str, str] = field(default_factory=dict)

    @property
    def safe(self) -> bool:
        """Whether no test found a primary cell that is given away or too narrowly bounded.

        ``line`` says what was not tested.
        """
        return not self._failed()

    @property
    def line(self) -> str:
        """The outcome in one sentence."""
        if self.safe:
            protected = _many(self.figures["primary"], "primary cell is", "primary cells are")
            open_question = "" if self.intervals is not None else f" {self.checks['intervals']}"
            return f"The audit found nothing: {protected} protected against what was tested.{open_question}"
        return "The audit found a disclosure: " + " ".join(
            sentence for name, sentence in self.checks.items() if name in self._failed()
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was tested and found, one sentence a test."""
        return tuple(self.checks.values())

    def _failed(self) -> set[str]:
        failed = {
            "exact": self.exact.height > 0,
            "contributors": self.by_contributors.height > 0,
            "intervals": self.intervals is not None and not self.intervals["wide_enough"].all(),
            "differences": self.differences is not None and self.differences.height > 0,
            "successive": self.successive is not None and self.successive.height > 0,
        }
        return {name for name, bad in failed.items() if bad}

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome without any cell, ready for JSON."""
        return {
            "safe": self.safe,
            "line": self.line,
            "checks": dict(self.checks),
            "figures": jsonable(self.figures),
        }

    def __str__(self) -> str:
        return "\n".join([self.line, *(f"  - {sentence}" for sentence in self.sentences)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in self.sentences)
        return f"<h4>{html.escape(self.line)}</h4><ul>{items}</ul>"


# What do two releases give away together?
#
# Tables of the same people that overlap (regions and postal areas, this year's and last year's boundaries), or the
# same table before and after some people joined or left: one published cell minus another can leave a small group.


def nested_differences(x: Any, counts: Array, published: Flags, threshold: int) -> pl.DataFrame:
    """Pairs of published cells, one inside the other, that differ by few units.

    Returns ``larger``, ``smaller`` (positions) and ``difference``: between 1 and below the threshold.
    """
    x = sparse.csc_matrix(x).astype(np.int64)
    cells = np.flatnonzero(published)
    inside = x[:, cells]
    inside.data[:] = 1
    totals = np.asarray(counts @ x).ravel()[cells]
    sizes = np.diff(inside.indptr)
    found = []
    for start in range(0, len(cells), 2_000):
        shared = (inside.T @ inside[:, start : start + 2_000]).tocoo()
        small, large = shared.row, shared.col + start
        gap = totals[large] - totals[small]
        hit = (shared.data == sizes[small]) & (sizes[small] < sizes[large]) & (gap >= 1) & (gap < threshold)
        found.append(np.stack([cells[large[hit]], cells[small[hit]], gap[hit].astype(np.int64)]))
    larger, smaller, difference = np.concatenate(found, axis=1) if found else np.zeros((3, 0), dtype=np.int64)
    return pl.DataFrame({"larger": larger, "smaller": smaller, "difference": difference})


def successive_differences(
    now: Table,
    before: Table,
    published: Flags,
    published_before: Flags,
    threshold: int,
) -> pl.DataFrame:
    """Cells published in two successive releases whose counts differ by few units.

    Whoever has both learns what the few who joined or left have in common. Cells are compared where both releases have
    the same codes; a dimension that one of them lacks is at its total there. Returns ``cell``, ``before``, ``now``.
    """
    pairs = shared_cells(now, before)
    cell, old = pairs["now"].to_numpy(), pairs["before"].to_numpy()
    counts, counts_before = now.cells["count"].to_numpy()[cell], before.cells["count"].to_numpy()[old]
    change = np.abs(counts - counts_before)
    hit = published[cell] & published_before[old] & (change >= 1) & (change < threshold)
    return pl.DataFrame(
        {
            "cell": pl.Series(cell[hit], dtype=pl.Int64),
            "before": pl.Series(counts_before[hit]),
            "now": pl.Series(counts[hit]),
        }
    )
