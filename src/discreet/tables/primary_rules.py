"""Which cells must not be published as they are? Rules judge the cells, and every cell keeps which rule hit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from discreet.core.arrays import Flags, Floats, rows_of
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked, typed_parameters

if TYPE_CHECKING:
    from discreet.tables.table import Table


class Rule(ABC):
    """A rule that says which cells are sensitive; write your own by giving `sensitive`, or use `Custom`."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        typed_parameters(cls, where=lambda made: type(made).__name__)

    @property
    @abstractmethod
    def name(self) -> str:
        """What stands in the column ``rule`` of a cell that was hit."""

    @abstractmethod
    def sensitive(self, table: Table) -> Flags:
        """Flag the sensitive cells."""

    def protection(self, table: Table) -> Floats:
        """How far from its value an estimate of each sensitive cell must stay able to lie; zero if not said."""
        return np.zeros(table.cells.height)


@checked
def primary(table: Table, *rules: Rule, safe: Any = None) -> Table:
    """Find the sensitive cells of a table.

    Also known as: primary suppression; sensitivity rules.

    Parameters
    ----------
    table
        The table.
    rules
        The rules; a cell that any of them hits is sensitive. Cells found sensitive before stay so.
    safe
        Cells that may be published whatever the rules say: flags, or a frame with their codes.

    Returns
    -------
    Table
        The table whose cells have ``primary``, ``rule`` (the names of all rules that hit, joined by `` + ``) and
        ``protection`` (how far an intruder's estimate must be able to lie from the value, where a rule says so).

    Examples
    --------
    >>> from discreet.tables import Table, Threshold
    >>> people = pl.DataFrame({"place": ["a", "a", "a", "b"]})
    >>> primary(Table.from_microdata(people, "place"), Threshold(3)).cells.select("place", "count", "primary", "rule")
    shape: (3, 4)
    ┌───────┬───────┬─────────┬──────────────┐
    │ place ┆ count ┆ primary ┆ rule         │
    │ ---   ┆ ---   ┆ ---     ┆ ---          │
    │ str   ┆ i64   ┆ bool    ┆ str          │
    ╞═══════╪═══════╪═════════╪══════════════╡
    │ Total ┆ 4     ┆ false   ┆ null         │
    │ a     ┆ 3     ┆ false   ┆ null         │
    │ b     ┆ 1     ┆ true    ┆ threshold(3) │
    └───────┴───────┴─────────┴──────────────┘
    """
    if not rules:
        raise ParameterError("primary needs at least one rule, for example Threshold(3).")
    for rule in rules:
        if not isinstance(rule, Rule):
            raise ParameterError(
                f"'{type(rule).__name__}' is no rule. Use Threshold(3), PPercent(10), Dominance(1, 85), or "
                "wrap a condition in Custom."
            )
    cells = table.cells
    hits = [_checked(rule, table) for rule in rules]
    # Rules may share a name (two conditions of one's own): each counts, and the name is said once.
    by_name: dict[str, Any] = {}
    for rule, hit in zip(rules, hits, strict=True):
        by_name[rule.name] = hit | by_name.get(rule.name, False)
    names = pl.DataFrame({f"{i}": pl.Series(hit) for i, hit in enumerate(by_name.values())})
    worded = names.select(
        pl.concat_str(
            *(pl.when(pl.col(f"{i}")).then(pl.lit(name)) for i, name in enumerate(by_name)),
            separator=" + ",
            ignore_nulls=True,
        ).alias("rule")
    )["rule"]
    found = np.logical_or.reduce(hits)
    protection = np.zeros(cells.height)
    for rule, hit in zip(rules, hits, strict=True):
        asked = rule.protection(table)
        if (hit & ~np.isfinite(asked)).any():
            # Taken for zero, the cell would count as protected by any interval at all.
            raise ParameterError(
                f"The rule {rule.name} gives {int((hit & ~np.isfinite(asked)).sum()):,} sensitive cells no finite "
                "protection: their values, or the contributions behind them, are missing or infinite. Correct them "
                "first, or choose a rule without protection."
            )
        protection = np.maximum(protection, np.where(hit, asked, 0.0))
    if "primary" in cells.columns:
        before = cells["primary"].to_numpy()
        worded = _both(cells["rule"], worded)
        protection = np.maximum(
            protection, cells["protection"].to_numpy() if "protection" in cells.columns else 0.0
        )
        found = found | before
    if safe is not None:
        found = found & ~flags_of(table, safe, "safe")
    rule_names = pl.select(pl.when(pl.Series(found) & (worded != "")).then(worded)).to_series()
    judged = table.with_cells(primary=found, rule=rule_names, protection=np.where(found, protection, 0.0))
    return judged.with_rules(tuple(by_name))


def _both(before: pl.Series, now: pl.Series) -> pl.Series:
    two = pl.DataFrame({"before": before, "now": now})
    joined = pl.concat_str(
        "before", pl.when(pl.col("now") != "").then("now"), separator=" + ", ignore_nulls=True
    )
    return two.select(joined.alias("rule"))["rule"]


def _checked(rule: Rule, table: Table) -> Flags:
    found = np.asarray(rule.sensitive(table))
    if found.shape != (table.cells.height,):
        raise ParameterError(
            f"The rule {rule.name} judged {found.size:,} cells; the table has {table.cells.height:,}."
        )
    return found.astype(bool)


def flags_of(table: Table, cells: Any, parameter: str) -> Flags:
    """Take cells as flags, as positions, or as a frame with (some of) the dimension columns.

    Dimensions that a frame leaves out are at their total.
    """
    import narwhals as nw

    from discreet.core.values import canonical_text

    try:
        frame = nw.from_native(cells, eager_only=True).to_polars()
    except TypeError:
        given = rows_of(cells, parameter, empty=True)
        if given.dtype == bool and given.shape == (table.cells.height,):
            return given
        if given.ndim == 1 and (given.size == 0 or np.issubdtype(given.dtype, np.integer)):
            if given.size and (given.min() < 0 or given.max() >= table.cells.height):
                raise ParameterError(f"{parameter} names positions beyond the table.") from None
            found = np.zeros(table.cells.height, dtype=bool)
            found[given.astype(np.int64)] = True
            return found
        raise ParameterError(
            f"{parameter} must be one flag a cell, positions of cells, or a frame with the dimension columns."
        ) from None
    unknown = [column for column in frame.columns if column not in table.dimensions]
    if unknown:
        raise ParameterError(
            f"{parameter} has columns that are no dimensions of the table: {', '.join(unknown)}."
        )
    wanted = pl.DataFrame(
        [
            canonical_text(frame[name]).alias(name)
            if name in frame.columns
            else pl.Series(name, [table.hierarchy[name].total] * frame.height, dtype=pl.String)
            for name in table.dimensions
        ]
    ).unique()
    keyed = table.cells.select(table.dimensions).with_row_index("discreet cell")
    hit = keyed.join(wanted, on=list(table.dimensions), how="inner")["discreet cell"].to_numpy()
    if len(hit) < wanted.height:
        raise ParameterError(
            f"{parameter} names {wanted.height - len(hit):,} cells that the table does not have. Check the codes."
        )
    found = np.zeros(table.cells.height, dtype=bool)
    found[hit] = True
    return found


# Rules of one's own: a condition on the cells, or the cells themselves.


@dataclass(frozen=True)
class Custom(Rule):
    """A condition of one's own.

    Parameters
    ----------
    condition
        A Polars expression on the columns of ``table.cells``, or a function that takes the table and returns one
        flag a cell.
    label
        What stands in the column ``rule``.

    Examples
    --------
    >>> from discreet.tables import Table, primary
    >>> table = Table.from_microdata(pl.DataFrame({"place": ["a", "a", "b"]}), "place")
    >>> primary(table, Custom(pl.col("count") == 2, "pairs")).cells["rule"].to_list()
    [None, 'pairs', None]
    """

    condition: pl.Expr | Callable[[Table], Any]
    label: str = "custom"

    @property
    def name(self) -> str:
        """The label."""
        return self.label

    def sensitive(self, table: Table) -> Flags:
        """Flag the cells that meet the condition."""
        if isinstance(self.condition, pl.Expr):
            try:
                found = table.cells.select(self.condition.alias("flag"))["flag"]
            except pl.exceptions.PolarsError as error:
                raise ParameterError(
                    f"The condition of the rule '{self.label}' cannot be evaluated on the cells "
                    f"({type(error).__name__}). They have the columns {', '.join(table.cells.columns)}."
                ) from error
            if found.dtype != pl.Boolean:
                raise ParameterError(
                    f"The condition of the rule '{self.label}' must be true or false for each cell."
                )
            return found.fill_null(False).to_numpy()
        try:
            return np.asarray(self.condition(table), dtype=bool)
        except Exception as error:  # whatever a user's own function may do
            raise ParameterError(
                f"The function of the rule '{self.label}' ended with an error ({type(error).__name__}). It takes the "
                "table and gives true or false for each of its cells."
            ) from error


@dataclass(frozen=True)
class Listed(Rule):
    """Cells named one by one, as an a-priori file does.

    Parameters
    ----------
    cells
        A frame with the codes of the cells (dimensions left out are at their total), positions, or flags.
    label
        What stands in the column ``rule``.
    """

    cells: Any
    label: str = "listed"

    @property
    def name(self) -> str:
        """The label."""
        return self.label

    def sensitive(self, table: Table) -> Flags:
        """Flag the cells that are named."""
        return flags_of(table, self.cells, "cells")
