"""Rules of one's own: a condition on the cells, or the cells themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from discreet.core.arrays import Flags
from discreet.core.errors import ParameterError
from discreet.tables.rules.judging import Rule, flags_of

if TYPE_CHECKING:
    from discreet.tables.table import Table


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
