"""What every protection of a table is: a frozen set of parameters that turns a table into one to be published.

A protection says in `TableProtection.protect` what becomes of the cells; everything around it (randomness, timing, the
log, what it cost) is done once, here. The same protection has the same name in Python (``ControlledRounding``) and on
the command line (``controlled-rounding``).
"""

from __future__ import annotations

import html
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl

from discreet.core import guarantees
from discreet.core.arrays import Array, Integers
from discreet.core.errors import ParameterError, unknown_name
from discreet.core.index import Registry
from discreet.core.method_cards import kebab, made_from, parameters_of
from discreet.core.native_libraries import one_thread
from discreet.core.parameters import typed_parameters
from discreet.core.randomness import Seed, fresh_seed, generator
from discreet.core.results import Detail, Measure, Step
from discreet.core.value_gate import name_in_documents
from discreet.core.values import jsonable
from discreet.dp.entropy import Stream
from discreet.dp.ledger import Ledger
from discreet.tables.poisson import checked_counts

if TYPE_CHECKING:
    from discreet.tables.table import Table


__all__ = [
    "SEVERAL_DRAWS",
    "ProtectedTable",
    "Stream",
    "TableChange",
    "TableProtection",
    "Values",
    "added_up",
    "counts_of",
    "neighbors_of",
    "on_inner_cells",
    "people_counted",
    "released",
    "why_not_claimed",
]

Values = Mapping[str, Array]
_KEPT = ("table", "level", "inner_cells")
SEVERAL_DRAWS = (
    "Drawn for this table alone: every further draw about the same people spends as much privacy again, and the mean "
    "of several comes closer to the true counts. Publish one, and use its seed for no other table: the same noise in "
    "two tables is gone when one is taken off the other."
)


@dataclass(frozen=True)
class TableChange:
    """What a protection wants published.

    Attributes
    ----------
    cells, inner
        New values by column, one a published cell and one an inner cell; columns that are not named are not published.
    notes
        Plain sentences for the public log.
    figures
        Counts of what was done that may be published.
    internal
        What could undo the protection; stays in the house.
    private
        A claim of differential privacy, which stands where the noise was not drawn from a seed
        (`discreet.core.guarantees`).
    why_none
        Where there is none: why.
    detail
        Named tables, made when asked for; they stay in the house.
    copies
        Further tables, where several were drawn.
    """

    cells: Values
    inner: Values
    notes: tuple[str, ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)
    internal: Mapping[str, Any] = field(default_factory=dict)
    private: guarantees.DifferentialPrivacy | None = None
    why_none: str = ""
    detail: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    copies: tuple[tuple[Values, Values], ...] = ()


@dataclass(frozen=True, repr=False)
class ProtectedTable:
    """A protected table with its log.

    Attributes
    ----------
    table
        The table to be published: released values only, without the records behind it.
    original
        The table as it was; it stays in the house.
    log
        What was done. ``to_dict`` gives the public face of it.
    guarantee
        A privacy guarantee that is proved for what was done, else None, and ``why_none`` says why.
    figures
        Counts of what was done.
    detail
        Named tables for whoever decides; they stay in the house.
    copies
        All tables, where several were drawn; the first is ``table``.
    private
        The guarantee as a value, where it is differential privacy.
    spending
        The ledger as it stood once the table was entered, where there is one.
    """

    table: Table
    original: Table
    log: tuple[Step, ...]
    guarantee: str | None = None
    why_none: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict)
    detail: Mapping[str, Any] = field(default_factory=Detail)
    copies: tuple[Table, ...] = ()
    private: guarantees.DifferentialPrivacy | None = None
    spending: guarantees.Spending | None = None

    @property
    def published(self) -> pl.DataFrame:
        """What may go out: the codes and the released values; cells that are not published are not listed."""
        shown = self.table.cells.drop(*_KEPT, strict=False)
        return shown.drop_nulls(self.table.value)

    @cached_property
    def information(self) -> Measure:
        """What the protection cost; made from the original, so it stays in the house."""
        from discreet.tables.information_loss import information_loss

        return information_loss(self.original, self.table, value=self.table.value)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader of the table should know."""
        return tuple(note for step in self.log for note in step.notes)

    def summary(self) -> str:
        """What was done and what it cost, in a few sentences; beside a guarantee nothing that the true table tells."""
        said = guarantees.NOT_COMPARED if self.guarantee else self.information.meaning
        assured = (
            f"Guarantee: {self.guarantee}" if self.guarantee else f"No formal guarantee: {self.why_none}"
        )
        words = f" {self.private.in_plain_words}" if self.private else ""
        return f"{self.log[-1].treatment}: {said} {assured}{words}"

    def to_dict(self, *, internal: bool = False) -> dict[str, Any]:
        """Return the log without any cell, ready for JSON: the public one, or the one that stays in the house."""
        found = {
            "steps": [step.to_dict(internal=internal) for step in self.log],
            "figures": jsonable(self.figures),
            "guarantee": self.guarantee,
            "why_none": self.why_none,
            "private": self.private.to_dict() if self.private else None,
            "spending": self.spending.to_dict() if self.spending else None,
        }
        if internal:
            found |= {"confidential": guarantees.CONFIDENTIAL, "information": self.information.to_dict()}
        return found

    def to_html(self, path: str | Path, *, show_values: bool = False) -> Path:
        """Write a report with the published table and what it cost, and return its path.

        With ``show_values`` true values stand beside published ones; handle the report like the data then. Beside a
        guarantee the cost, which comes from the true table, is in the report only with ``show_values``.
        """
        from discreet.report.table_report import write_table_report

        return write_table_report(self, path, show_values=show_values)

    def __str__(self) -> str:
        return "\n".join([self.summary(), *(f"  - {note}" for note in self.notes)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        return f"<p>{html.escape(self.summary())}</p><ul>{notes}</ul>"


class TableProtection(ABC):
    """A protection of tables and its parameters; subclasses are frozen dataclasses."""

    known: ClassVar[Registry[type[TableProtection]]] = Registry("discreet.tables")
    secrets: ClassVar[tuple[str, ...]] = ()
    """Parameters that are left out of logs."""
    follow_from_parameters: ClassVar[frozenset[str]] = frozenset()
    """Figures that follow from the parameters and the declared domain alone: a log may hold them beside a claim."""

    def __init_subclass__(cls, *, is_method: bool = True, **options: Any) -> None:
        super().__init_subclass__(**options)
        typed_parameters(cls, where=lambda made: made.name)
        if is_method and not cls.__name__.startswith("_"):
            TableProtection.known[kebab(cls.__name__)] = cls

    @property
    def name(self) -> str:
        """The name on the command line, e.g. ``controlled-rounding``."""
        return kebab(type(self).__name__)

    @abstractmethod
    def protect(self, table: Table, stream: Stream) -> TableChange:
        """Say what becomes of the cells. ``stream("name")`` opens a named child of the seed's generator."""

    def apply(self, table: Table, *, ledger: Ledger | None = None, seed: Seed = None) -> ProtectedTable:
        """Protect a table.

        Parameters
        ----------
        table
            The table; it is not changed.
        ledger
            The privacy budget of the data source (`discreet.dp.Ledger`): a protection with a guarantee is entered
            before noise is drawn, or refused; one without is refused.
        seed
            Same table, same parameters, same seed: same bytes out. Keep it secret; what is drawn from a seed has no
            differential privacy. Draws that come from a secret key
            do not depend on it.
        """
        table.need_crossing(f"The protection {self.name}")
        began = time.perf_counter()
        chosen = fresh_seed() if seed is None else seed
        root = generator(chosen).integers(2**63) if isinstance(chosen, np.random.Generator) else chosen
        stream = Stream(int(root), self.name, seeded=seed is not None, ledger=ledger)
        with one_thread():
            change = self.protect(table, stream)
        stream.account.settle(self.name)
        made = released(table, change.cells, change.inner, change.notes)
        value = made.value
        moved = {value: int((made.cells[value] != table.cells[value]).sum())} if value in table.cells else {}
        figures, inside, seconds = dict(change.figures), {}, time.perf_counter() - began
        withheld = change.private is not None
        if withheld:
            figures, more = guarantees.public_and_internal(self.follow_from_parameters, figures)
            inside = {"changed_cells": moved, "seconds": seconds, **more}
        step = Step(
            treatment=self.name,
            parameters=self.to_dict(),
            changed_cells={} if withheld else moved,
            notes=change.notes,
            seconds=0.0 if withheld else seconds,
            counts_withheld=withheld,
            internal={"seed": int(root), **inside, **change.internal},
        )
        guarantee, why_none = guarantees.settled(change.private, change.why_none, seeded=stream.seeded)
        others = tuple(released(table, cells, inner, change.notes) for cells, inner in change.copies)
        return ProtectedTable(
            made,
            table,
            (step,),
            guarantee,
            why_none,
            figures,
            Detail(**change.detail),
            (made, *others),
            guarantees.stands(change.private, seeded=stream.seeded),
            ledger.spending() if ledger else None,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters that differ from their defaults, ready for JSON or TOML."""
        return parameters_of(self, self.secrets)

    @staticmethod
    def named(name: str, parameters: Mapping[str, Any]) -> TableProtection:
        """Make the protection of that name with these parameters, as the command line has them.

        Examples
        --------
        >>> from discreet.tables import TableProtection
        >>> TableProtection.named("controlled-rounding", {"base": 3}).base
        3
        """
        if name not in TableProtection.known:
            raise ParameterError(unknown_name(name, TableProtection.known, what="protection of tables"))
        return made_from(TableProtection.known[name], name, parameters)


name_in_documents("treatment", TableProtection.known)


def released(table: Table, cells: Values, inner: Values, notes: tuple[str, ...] = ()) -> Table:
    """The table with released values in place of its own, without the records behind it.

    Columns that were not protected (sensitive flags, numbers of contributors, other measures) do not come along, nor
    do the notes of the table, which count records.
    """
    kept = [name for name in _KEPT if name in table.cells.columns]
    value = table.value if table.value in cells else next(iter(cells))
    made = replace(
        table,
        inner=table.inner.select(table.dimensions).with_columns(_series(n, v) for n, v in inner.items()),
        cells=table.cells.select(
            *table.dimensions, *(_series(name, values) for name, values in cells.items()), *kept
        ),
        value=value,
        measures=tuple(name for name in table.measures if name in cells),
        weight=table.weight if "weighted" in cells else None,
        notes=notes,
        contributing=None,
    )
    return table.carried(made)


def _series(name: str, values: Array) -> pl.Series:
    """What is left out is missing, not NaN; and counts stay whole."""
    made = pl.Series(name, values)
    if not made.dtype.is_float():
        return made
    made = made.fill_nan(None)
    return made.round().cast(pl.Int64) if name == "count" else made


def added_up(table: Table, inner: Array) -> Array:
    """Add inner values up to every published cell, so that the table stays additive."""
    return np.asarray(table.x.T @ inner)


def counts_of(table: Table, method: str) -> tuple[Integers, Integers]:
    """The counts of the published and of the inner cells; refuse tables of sums."""
    if table.measures:
        raise ParameterError(
            f"{method} works on counts, and the table holds sums of {', '.join(table.measures)}. Build it without "
            "measure=, or protect sums by suppression, cell keys or controlled rounding."
        )
    return table.cells["count"].to_numpy().astype(np.int64), table.inner["count"].to_numpy().astype(np.int64)


def people_counted(table: Table, method: str) -> tuple[Integers, Integers]:
    """Return the counts of people, published and inner; refuse tables of anything else."""
    published, inner = counts_of(table, method)
    if table.weight:
        raise ParameterError(
            f"{method} works on counts of people, and this table is weighted: one person would change it by a "
            "whole weight. Build it without weight=."
        )
    return published, checked_counts(inner)


def on_inner_cells(table: Table, values: Array, missing: float) -> Array:
    """Give every inner cell the value of the published cell with its codes; one that is not published has none."""
    place = {key: at for at, key in enumerate(table.keys)}
    at = np.array([place.get(key, -1) for key in table.inner.select(table.dimensions).rows()], dtype=np.int64)
    return np.where(at >= 0, values[at], missing)


def neighbors_of(table: Table) -> str:
    """What may differ between two tables that cannot be told apart: a record, or a unit where a row stands for many."""
    if table.counted is None:
        return "adding or removing one record"
    return f"adding or removing one of the units that '{table.counted}' counts"


def why_not_claimed(table: Table, domain: str | None) -> str:
    """Why noise on the cells of a table proves nothing; empty where it does.

    Codes must have been given with the table, so that neither a code nor a missing cell depends on the data, and a
    person must have one record.
    """
    if domain != "public" or not all(dimension.declared for dimension in table.hierarchy.values()):
        return guarantees.CODES_OF_THE_DATA
    return guarantees.SEVERAL_RECORDS if table.knows_contributors else ""
