"""Suppressed tables that went out one after the other: what do they give away together, and what must the new one hide?

A table says 301 patients, and another of the same people 205 and 94: the cell that both left out is 2. So the tables
are linked (`discreet.tables.Table.link`), what the earlier ones published stays published, and the new one leaves out
what it takes so that no combination of all published cells gives a suppressed cell of any of them: an elimination in
whole numbers over all inner cells, and intervals over all published cells, as for a single table.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from discreet.core.arrays import Flags, Integers
from discreet.core.errors import ParameterError
from discreet.core.files.journals import digest_of
from discreet.core.parameters import checked
from discreet.core.values import jsonable
from discreet.engine import collect
from discreet.microdata import Microdata
from discreet.register import History
from discreet.tables.exact_disclosure import people_are_the_same
from discreet.tables.primary_rules import flags_of
from discreet.tables.table_audit import Audit
from discreet.tables.table_cells import cell_places
from discreet.tables.table_suppression import PRIMARY, SECONDARY, Suppression, SuppressionResult

if TYPE_CHECKING:
    from discreet.tables.table import Table

_MOST_NAMED = 5


@dataclass(frozen=True)
class TableRequest:
    """Which table was asked for, as a register keeps it, so that it can be built anew from the same records.

    Attributes
    ----------
    formula
        Which tables: ``region*age + region*sex``.
    measure, count, largest, total
        As `discreet.tables.Table` takes them.
    hierarchies
        For each column its sources: the name of a file, or a list of coarser columns.
    cells
        Whether the data are cells already.
    zeros
        Whether all empty cells are shown.

    Examples
    --------
    >>> people = pl.DataFrame({"place": ["a", "a", "b"], "sex": ["f", "m", "f"]})
    >>> TableRequest("place*sex").built(people).cells.height
    8
    """

    formula: str
    measure: Sequence[str] | None = None
    count: str | None = None
    hierarchies: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    cells: bool = False
    largest: Sequence[str] | None = None
    zeros: bool = False
    total: str = "Total"

    def built(self, data: Any) -> Table:
        """Build the table."""
        from discreet.tables.table import Table

        read = {
            column: [Path(one) if isinstance(one, str) else tuple(one) for one in sources]
            for column, sources in self.hierarchies.items()
        }
        shared: dict[str, Any] = {
            "measure": self.measure,
            "count": self.count,
            "hierarchies": {name: one if len(one) > 1 else one[0] for name, one in read.items()},
            "zeros": "all" if self.zeros else "observed",
            "total": self.total,
        }
        if self.cells:
            return Table.from_cells(
                getattr(data, "frame", data), self.formula, largest=self.largest, **shared
            )
        return Table.from_microdata(data, self.formula, **shared)

    def to_dict(self) -> dict[str, Any]:
        """Return it, ready for JSON."""
        return {name: jsonable(getattr(self, name)) for name in self.__dataclass_fields__}


def earlier_tables(
    history: History,
    data: Microdata,
    asked: TableRequest,
    method: str,
) -> tuple[list[EarlierTable], list[str]]:
    """Build what went out anew from the records, and name what cannot be held against a new table.

    Parameters
    ----------
    history
        What went out.
    data
        The records.
    asked, method
        The new table, and how it is protected.
    """
    found, left = [], []
    held = history.register
    lines = {} if held is None else {line["checksum"]: line for line in held.of_kind("table")}
    files = {digest_of(Path(one)): one for one in history.given if Path(one).is_file()}
    for mark in {**lines, **files}:
        line = lines.get(mark)
        name = Path(files[mark]).name if mark in files else str(line and line["file"])
        made = dict(line["parameters"]) if line is not None else {}
        comparable = line is None or (
            made["method"] == "suppression" and held is not None and line["version"] == held.version
        )
        if not comparable or method != "suppression":
            left.append(name)
        elif line is None:
            published = collect(history.read_file(files[mark]))
            table = replace(asked, formula=_formula_of(published, data, asked)).built(data)
            found.append(EarlierTable.of(table, published, name))
        else:
            own = {key: value for key, value in made.items() if key not in ("method", "rules")}
            table = TableRequest(**{**own, "measure": asked.measure, "count": asked.count}).built(data)
            found.append(EarlierTable.of_marks(table, line["suppressed"], name))
    return found, left


def not_held(name: str) -> str:
    """Say that a person has to hold an earlier table against a new one."""
    return f"Not held against this table, which a person has to do: '{name}'."


def _formula_of(published: pl.DataFrame, data: Microdata, asked: TableRequest) -> str:
    """Which table a published file is: the columns of the records before its figures."""
    sums = {*(asked.measure or ()), asked.count, "count", "weighted", "status"}
    names = [name for name in published.columns if name in data.columns and name not in sums]
    if not names:
        raise ParameterError("An earlier file has none of the columns of the data, so that it is no table.")
    return "*".join(f"`{name}`" for name in names)


def enter_table(history: History, result: Any, out: str | Path, told: Mapping[str, Any]) -> None:
    """Enter which cells of a table went out, by the marks of those that did not; ``told`` is how it was made."""
    suppressed = getattr(result, "suppressed", None)
    history.enter(
        "table",
        None,
        out,
        columns=result.table.dimensions,
        records=int(result.table.inner["count"].sum()),
        parameters=told,
        suppressed=[] if suppressed is None else cell_marks(result.table, suppressed),
    )


@dataclass(frozen=True)
class EarlierTable:
    """A table that went out: the cells it published, and those it left out.

    Attributes
    ----------
    table
        The table, built from the same records.
    published, suppressed
        Masks over its cells; what is neither went out with no table and needs no protection there.
    name
        How to speak of it.
    """

    table: Table
    published: Flags
    suppressed: Flags
    name: str = "an earlier table"

    @classmethod
    def of_marks(
        cls, table: Table, suppressed: Sequence[str], name: str = "an earlier table"
    ) -> EarlierTable:
        """Take the cells that were left out by their marks (`cell_marks`), as a register keeps them."""
        gone = np.isin(cell_marks(table), list(suppressed))
        return cls(table, ~gone, gone, name)

    @classmethod
    def of(cls, table: Table, published: Any, name: str = "an earlier table") -> EarlierTable:
        """Read which cells a file published, by the codes and the column ``status``; counts and sums must agree.

        Parameters
        ----------
        table
            The table, built anew from the records it was made of.
        published
            The file that went out: one row a cell, empty or with another status than ``published`` where left out.
        """
        dimensions = [name for name in table.dimensions if name in published.columns]
        if not dimensions:
            raise ParameterError(f"'{name}' has none of the columns of its table, so that it names no cell.")
        figure = table.value if table.value in published.columns else "count"
        shown = pl.col(figure).is_not_null() if figure in published.columns else pl.lit(True)
        if "status" in published.columns:
            shown &= pl.col("status") == "published"
        out, gone = (published.filter(part) for part in (shown, ~shown))
        mine = cls(
            table,
            flags_of(table, out.select(dimensions), name) if out.height else _none(table),
            flags_of(table, gone.select(dimensions), name) if gone.height else _none(table),
            name,
        )
        if figure in published.columns and figure in table.cells.columns:
            codes = [pl.col(name).cast(pl.String) for name in dimensions]
            both = table.cells.with_columns(codes).join(
                out.select(*codes, pl.col(figure).alias("·out")), on=dimensions, how="inner"
            )
            apart = (pl.col(figure).cast(pl.Float64) - pl.col("·out").cast(pl.Float64)).abs() > 1e-6
            if wrong := both.filter(apart).height:
                raise ParameterError(
                    f"{wrong:,} cells of '{name}' are not what these records say: it was made of other records, or "
                    "changed by more than suppression. Only suppressed tables of the same records are combined."
                )
        return mine


@checked
def suppressed_beside(
    plan: Suppression, table: Table, earlier: Sequence[EarlierTable], **options: Any
) -> SuppressionResult:
    """Protect a table so that it and earlier ones of the same people give no suppressed cell of any of them.

    Parameters
    ----------
    plan
        How; its ``previous`` are releases of other people.
    table
        The new table, with its primary cells flagged.
    earlier
        What went out. Cells that it left out stay protected, whatever the rules of the new table are; a cell that it
        published and that is sensitive now cannot be taken back and is named.

    Examples
    --------
    >>> from discreet.tables import Table, Threshold, primary
    >>> people = pl.DataFrame({"place": ["a"] * 9 + ["b"] * 8, "sex": (["f"] * 8 + ["m"]) + ["f", "m"] * 4})
    >>> first = primary(Table.from_microdata(people, "place*sex"), Threshold(3))
    >>> out = Suppression().apply(first)
    >>> again = suppressed_beside(Suppression(), first, [EarlierTable(out.table, ~out.suppressed, out.suppressed)])
    >>> bool((again.suppressed == out.suppressed).all()), again.audit.safe
    (True, True)
    """
    from discreet.tables.table import Table

    if not earlier:
        return plan.apply(table, **options)
    for one in earlier:
        if one.table.value != table.value:
            raise ParameterError(
                f"'{one.name}' publishes '{one.table.value}' and this table '{table.value}'."
            )
        if not people_are_the_same(table, one.table):
            raise ParameterError(f"'{one.name}' is not about the records of this table.")
    bare = [one.table.with_cells(primary=pl.Series(one.suppressed)) for one in earlier]
    union = Table.link([table, *bare])
    assert union.joined is not None
    views = [view.cells for view in union.joined.views[: 1 + len(earlier)]]
    out, gone = np.zeros(union.cells.height, dtype=bool), np.zeros(union.cells.height, dtype=bool)
    for one, at in zip(earlier, views[1:], strict=True):
        out[at[one.published]] = True
        gone[at[one.suppressed]] = True
    mine = np.zeros(union.cells.height, dtype=bool)
    mine[views[0]] = True
    secret = np.zeros(union.cells.height, dtype=bool)
    secret[views[0][cell_places(table, "primary", "primary")]] = True
    open_now = (secret | gone) & out
    moved = {name: views[0][cell_places(table, getattr(plan, name), name)] for name in ("forced", "hidden")}
    union_plan = replace(
        plan,
        forced=np.union1d(moved["forced"], np.flatnonzero(out)),
        hidden=np.union1d(moved["hidden"], np.flatnonzero(~(mine | out | gone))),
    )
    flagged = union.with_cells(primary=pl.Series((secret | gone) & ~out))
    made = union_plan.apply(flagged, **options)
    return _of_new(made, table, views[0], secret, np.flatnonzero(open_now), earlier)


def _of_new(  # noqa: PLR0917
    made: SuppressionResult,
    table: Table,
    at: Integers,
    secret: Flags,
    taken: Integers,
    earlier: Sequence[EarlierTable],
) -> SuppressionResult:
    """What was decided over all tables, for the new one: its own cells, and the audit of all of them."""
    left_out = made.suppressed[at]
    status = np.full(table.cells.height, None, dtype=object)
    status[left_out] = SECONDARY
    status[left_out & secret[at]] = PRIMARY
    protected = table.with_cells(suppressed=pl.Series(status.tolist(), dtype=pl.String))
    still = np.union1d(made.unsafe, taken)
    worth = np.abs(np.asarray(table.values, dtype=float))
    extra = np.flatnonzero(left_out & ~secret[at])
    figures = {
        **made.figures,
        "cells": table.cells.height,
        "primary": int(secret[at].sum()),
        "secondary": len(extra),
        "published": int((~left_out).sum()),
        "secondary_value": float(worth[extra].sum()),
    }
    return replace(
        made,
        table=protected,
        audit=_with_open_cells(made, still, taken, earlier),
        reasons=(),
        unsafe=np.flatnonzero(np.isin(at, still)),
        figures=figures,
    )


def _with_open_cells(
    made: SuppressionResult, still: Integers, taken: Integers, earlier: Sequence[EarlierTable]
) -> Audit:
    """Say what the tables give away together, and name the cells that remain open."""
    names = made.table.dimensions
    cells = made.table.cells.select(names)
    named = [
        ", ".join(f"{name} {code}" for name, code in zip(names, row, strict=True))
        for row in cells[still[:_MOST_NAMED]].rows()
    ]
    listed = "; ".join(named) + (
        f"; and {len(still) - _MOST_NAMED:,} more" if len(still) > _MOST_NAMED else ""
    )
    beside = ", ".join(f"'{one.name}'" for one in earlier)
    said = (
        f"Together with {beside}, these cells remain open: {listed}. No choice of cells in this table closes them, "
        "because of what is out already."
        if len(still)
        else f"Together with {beside}, no combination of all published cells gives a suppressed cell of any table."
    )
    known = cells[taken].insert_column(0, pl.Series("cell", taken, dtype=pl.Int64))
    audit = made.audit
    exact = pl.concat([audit.exact, known.select(audit.exact.columns)]).unique("cell", maintain_order=True)
    figures = {**audit.figures, "releases": 1 + len(earlier), "computable": exact.height}
    return replace(audit, exact=exact, figures=figures, checks={**audit.checks, "exact": said})


def cell_marks(table: Table, where: Flags | None = None) -> list[str]:
    """Name cells by hashes of their codes."""
    cells = table.cells.select(table.dimensions)
    rows = (cells if where is None else cells.filter(pl.Series(where))).rows()
    return [hashlib.sha256(json.dumps([str(code) for code in row]).encode()).hexdigest()[:16] for row in rows]


def _none(table: Table) -> Flags:
    return np.zeros(table.cells.height, dtype=bool)
