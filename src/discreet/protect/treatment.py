"""What every treatment is: a frozen set of parameters that turns a file into a release with a log.

A treatment says in `Treatment.treat` what becomes of which columns; everything around it (randomness, timing,
counting changed cells, putting the columns back into the user's kind of frame) is done once, here. The same
treatment has the same name in Python (``LocalSuppression``), in a plan file and on the command line
(``local-suppression``).
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, ClassVar

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Integers, Words
from discreet.core.cards import Work
from discreet.core.errors import ColumnError, ParameterError, need_known
from discreet.core.guarantees import DifferentialPrivacy, public_and_internal, settled, stands
from discreet.core.index import Registry
from discreet.core.method_cards import kebab, method_card, parameters_of
from discreet.core.native_libraries import one_thread
from discreet.core.parameters import typed_parameters
from discreet.core.randomness import Seed, fresh_seed, generator
from discreet.core.results import Release, Step
from discreet.core.roles import Columns
from discreet.core.value_gate import name_in_documents
from discreet.core.wording import type_name
from discreet.dp.entropy import Stream
from discreet.dp.ledger import Ledger
from discreet.engine import ByRecord
from discreet.io.fingerprints import watched
from discreet.microdata import Metadata, Microdata

__all__ = ["Aside", "ByRecord", "Change", "Stream", "Treatment"]


@dataclass(frozen=True)
class Change:
    """What a treatment wants done to the file.

    Attributes
    ----------
    columns
        New content by column, one value a record; a new name adds a column.
    by_record
        Instead of ``columns``: what becomes of a record by itself. A file in memory is worked on at once; a query stays
        one (`discreet.engine.by_record`).
    of_records
        Instead of ``by_record``, where the work has to know by which columns records are told apart: it is given those
        that the user named, and says what becomes of a record.
    aside
        What can be told, or has to be noted, once a file in memory was worked on record by record: it is given the
        columns as they were and as they are.
    keep
        True for the records that stay.
    order
        Positions, among the records that stay, in their new order.
    drop
        Columns to leave out.
    frame
        The released records, where they are made anew and nothing else of the file may go out: no type, level, label or
        column that is not in it.
    roles
        Roles that change with the treatment.
    notes
        Plain sentences for the public log.
    parameters
        What was chosen or learned and may be published, beside the treatment's own parameters.
    internal
        What could undo the protection; stays in the house.
    guarantee
        A guarantee about the released file (such as k-anonymity) that is proved for what was done, else None.
    private
        A claim of differential privacy, which stands where the noise was not drawn from a seed
        (`discreet.core.guarantees`); the log then holds no count.
    why_none
        Where a claim was possible and is not made: why.
    """

    columns: Mapping[str, pl.Series] = field(default_factory=dict)
    by_record: ByRecord | None = None
    keep: pl.Series | None = None
    order: Integers | None = None
    drop: tuple[str, ...] = ()
    roles: Mapping[str, Columns] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    internal: Mapping[str, Any] = field(default_factory=dict, repr=False)
    guarantee: str | None = None
    private: DifferentialPrivacy | None = None
    why_none: str = ""
    aside: Callable[[pl.DataFrame, Mapping[str, pl.Series]], Aside] | None = None
    of_records: Callable[[tuple[str, ...]], ByRecord] | None = None
    frame: pl.DataFrame | None = None


@dataclass(frozen=True)
class Aside:
    """What is found out while records are worked on: sentences for the public log, and what stays in the house."""

    notes: tuple[str, ...] = ()
    internal: Mapping[str, Any] = field(default_factory=dict)


class Treatment(ABC):
    """A protection and its parameters; subclasses are frozen dataclasses."""

    room: ClassVar[str] = "protect"
    known: ClassVar[Registry[type[Treatment]]] = Registry("discreet.protect")
    secrets: ClassVar[tuple[str, ...]] = ()
    """Parameters that are left out of logs and plan files."""
    follow_from_parameters: ClassVar[frozenset[str]] = frozenset()
    """Figures that follow from the parameters and the declared domain alone: a log may hold them beside a claim."""
    drawn_privately: ClassVar[frozenset[str]] = frozenset()
    """Figures that are themselves the outcome of a private draw, and paid for from the budget."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        typed_parameters(cls, where=lambda made: made.name)
        if not cls.__name__.startswith("_"):
            Treatment.known[kebab(cls.__name__)] = cls

    @property
    def name(self) -> str:
        """The name in plan files and on the command line, e.g. ``local-suppression``."""
        return kebab(type(self).__name__)

    @abstractmethod
    def treat(self, data: Microdata, stream: Stream) -> Change:
        """Say what becomes of the file. ``stream("name")`` opens a named child of the seed's generator."""

    @property
    def work(self) -> Work:
        """What the new value of a record depends on with these parameters: see `MethodCard.work`."""
        card = method_card(type(self))
        return "" if card is None else card.work

    def apply(
        self,
        data: Microdata,
        *,
        ledger: Ledger | None = None,
        record_key: str | Sequence[str] | None = None,
        seed: Seed = None,
    ) -> Release:
        """Treat the file.

        A query (Polars lazy, DuckDB, Spark) stays a query where the work is row-wise: nothing is read before the
        release is written or counted.

        Parameters
        ----------
        data
            The file; it is not changed.
        ledger
            The privacy budget of the data source (`discreet.dp.Ledger`): a treatment with a guarantee is entered before
            noise is drawn, or refused; one without is refused.
        record_key
            Columns that tell the records apart, by which row-wise work draws; their place in the file unless named.
            Spark keeps no places, and needs it.
        seed
            Same data, same parameters, same seed: same bytes out. What is drawn from a seed has no differential
            privacy.

        Returns
        -------
        Release
            ``data`` of the kind that came in, and ``log`` with one entry.
        """
        data.need_plain_names()
        began = time.perf_counter()
        chosen = fresh_seed() if seed is None else seed
        root = generator(chosen).integers(2**63) if isinstance(chosen, np.random.Generator) else chosen
        stream = Stream(int(root), self.name, seeded=seed is not None, ledger=ledger, data=data)
        key = (record_key,) if isinstance(record_key, str) else tuple(record_key or ())
        if engine.is_lazy(data):
            data = data.with_metadata(watched(data.metadata, data.frame))
        with one_thread():
            change = self.treat(data, stream)
            stream.account.settle(self.name)
            if change.of_records is not None:
                change = replace(change, by_record=change.of_records(key))
            wanted = change.by_record
            if wanted is not None and wanted.draws and key:
                engine.check_record_key(data, key, purpose=self.name)
            if engine.is_lazy(data) and not change.columns and change.keep is None and change.order is None:
                return self._lazily(data, change, key, int(root), began)
            if wanted is not None:
                change = _in_memory(data, change, key)
        treated = _treated(data, change)
        treated = engine.after_treatment(data, treated, change.keep, change.order)
        if change.roles:
            treated = treated.with_roles(**change.roles)
        if change.private is not None:
            # The checksum of the file and its number of rows were read from the records, and were not paid for.
            treated = treated.with_metadata(treated.metadata.without_readings())
        changed, suppressed = _changed_cells(data, change)
        emptied = [
            name for name in suppressed if change.columns[name].null_count() == len(change.columns[name])
        ]
        notes = (
            *change.notes,
            *(f"Nothing is left of '{name}': every value was suppressed." for name in emptied),
        )
        counts: dict[str, Any] = {
            "changed_cells": changed,
            "suppressed_cells": suppressed,
            "removed_records": 0 if change.keep is None else int((~change.keep).sum()),
            "seconds": time.perf_counter() - began,
        }
        secret = {"seed": int(root), **change.internal}
        if change.private is None:
            learned = {**self.to_dict(), **change.parameters}
            step = Step(self.name, learned, notes=notes, internal=secret, **counts)
            return Release(treated, (step,), change.guarantee, change.why_none)
        public, inside = public_and_internal(
            self.follow_from_parameters | self.drawn_privately, change.parameters
        )
        secret |= inside | counts | {"notes": notes[len(change.notes) :]}
        step = Step(
            self.name,
            {**self.to_dict(), **public},
            notes=tuple(change.notes),
            counts_withheld=True,
            internal=secret,
        )
        return Release(
            treated,
            (step,),
            *settled(change.private, change.why_none, seeded=stream.seeded),
            stands(change.private, seeded=stream.seeded),
            ledger.spending() if ledger else None,
        )

    def _lazily(
        self, data: Microdata, change: Change, key: tuple[str, ...], root: int, began: float
    ) -> Release:
        """Leave the work to the engine that holds the file; cells are counted when the log is asked for them."""
        wanted = change.by_record
        if wanted is None:
            frame = engine.without_columns(data, change.drop) if change.drop else data.frame
            counted = Counted(dict)
        else:
            own = key if wanted.draws else ()
            frame = engine.made_lazily(data, wanted, key=own, drop=change.drop, purpose=self.name)
            counted = Counted(lambda: engine.changed_cells(data, wanted, own))
        treated = engine.after_treatment(data, data.with_frame(frame), None, None)
        treated = treated.with_roles(**change.roles) if change.roles else treated
        engine.carry_over(data, treated, tuple(wanted.makes) if wanted else ())
        step = Step(
            self.name,
            {**self.to_dict(), **change.parameters},
            changed_cells=counted.changed,
            suppressed_cells=counted.suppressed,
            notes=change.notes,
            seconds=time.perf_counter() - began,
            internal={"seed": root, **change.internal},
        )
        return Release(treated, (step,), change.guarantee, change.why_none)

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters that differ from their defaults, ready for JSON or TOML."""
        return parameters_of(self, self.secrets)

    @staticmethod
    def named(name: str, parameters: Mapping[str, Any]) -> Treatment:
        """Make the treatment of that name with these parameters, as a plan file has them."""
        need_known([name], Treatment.known, what="treatment", kind=ParameterError)
        kind = Treatment.known[name]
        options = [item.name for item in fields(kind) if item.name not in kind.secrets]  # type: ignore[arg-type]
        need_known(parameters, options, what="parameter", before=f"In {name}: ", kind=ParameterError)
        return kind.from_dict(parameters)

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any]) -> Treatment:
        """Make the treatment from plain values; treatments with richer parameters read them here."""
        try:
            return cls(**parameters)
        except TypeError as error:
            # Python names a parameter that is needed and was left out.
            raise ParameterError(
                f"{kebab(cls.__name__)} cannot be made from these parameters: {error}."
            ) from error


name_in_documents("treatment", Treatment.known)


def _treated(data: Microdata, change: Change) -> Microdata:
    """Put what becomes of the file into a frame of its kind."""
    if change.frame is None:
        return data.with_frame(
            engine.rebuilt(data, change.columns, keep=change.keep, order=change.order, drop=change.drop)
        )
    made = data.with_frame(engine.in_kind_alone(data, change.frame))
    return made.with_metadata(Metadata(source=data.metadata.source))


def _in_memory(data: Microdata, change: Change, key: tuple[str, ...]) -> Change:
    """Do row-wise work on a file in memory, as one batch."""
    assert change.by_record is not None
    own = key if change.by_record.draws else ()
    before, columns = engine.made_in_memory(data, change.by_record, own)
    found = Aside() if change.aside is None else change.aside(before, columns)
    return replace(
        change,
        columns=columns,
        notes=(*change.notes, *found.notes),
        internal={**change.internal, **found.internal},
    )


def _changed_cells(data: Microdata, change: Change) -> tuple[dict[str, int], dict[str, int]]:
    """Count, by column, the cells that differ and those that became missing, among the records that stay."""
    there = [name for name in change.columns if name in data.schema]
    if not there:
        return {}, {}
    before = engine.collect(data, there)
    stay = pl.lit(True) if change.keep is None else pl.lit(change.keep)
    changed, suppressed = {}, {}
    for name in there:
        pair = engine.in_one_type(before[name], change.columns[name])
        differ, gone = pair.select(
            differ=(pl.col("old").ne_missing(pl.col("new")) & stay).sum(),
            gone=(pl.col("old").is_not_null() & pl.col("new").is_null() & stay).sum(),
        ).row(0)
        changed[name], suppressed[name] = int(differ), int(gone)
    return changed, {name: count for name, count in suppressed.items() if count}


class Counted:
    """Cells that are counted in one pass over the file, when somebody first asks for them."""

    def __init__(self, count: Callable[[], Mapping[str, tuple[int, int]]]) -> None:
        made = cache(count)
        self.changed = LaterCounts(lambda: {name: pair[0] for name, pair in made().items()})
        self.suppressed = LaterCounts(lambda: {name: pair[1] for name, pair in made().items() if pair[1]})


class LaterCounts(Mapping[str, int]):
    """Counts by column that are made when they are first looked at."""

    def __init__(self, make: Callable[[], dict[str, int]]) -> None:
        self._make = cache(make)

    def __getitem__(self, name: str) -> int:
        return self._make()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._make())

    def __len__(self) -> int:
        return len(self._make())


# Which columns a treatment works on, and whether they are of the kind it needs.


def existing(data: Microdata, columns: str | Iterable[str], *, treatment: str) -> tuple[str, ...]:
    """Return the named columns, each of which must be there."""
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    if not names:
        raise ParameterError(f"{treatment} needs at least one column. Name it in its parameters.")
    need_known(names, data.columns, after=f" It was named for {treatment}.")
    if len(set(names)) < len(names):
        raise ParameterError(f"A column is named twice for {treatment}. Name each once.")
    return names


def numeric(data: Microdata, columns: str | Iterable[str] | None, *, treatment: str) -> tuple[str, ...]:
    """Return the named columns, which must hold numbers; without a name, every numeric sensitive column."""
    if columns is None:
        columns = [name for name in data.roles.sensitive if data.schema[name].is_numeric()]
        if not columns:
            raise ParameterError(
                f"{treatment} was given no columns, and the file has no numeric sensitive column. "
                "Name the columns: columns=['income', …]."
            )
    names = existing(data, columns, treatment=treatment)
    for name in names:
        if not data.schema[name].is_numeric():
            raise ColumnError(
                f"{treatment} is for numbers, and column '{name}' is {type_name(data.schema[name])}. "
                "Leave it out, or convert it first."
            )
    return names


def group_column(data: Microdata, named: str | None, roles: Sequence[str], *, treatment: str) -> str | None:
    """Return the column that groups records (a person, a household): the named one, else the first such role."""
    if named is not None:
        return existing(data, named, treatment=treatment)[0]
    for role in roles:
        column: str | None = getattr(data.roles, role)
        if column:
            return column
    return None


def grouped_numbers(table: pl.DataFrame, by: str | None, records: Words) -> Words:
    """Give records that belong together one number by which they draw: that of their unit, else their own.

    Examples
    --------
    >>> numbers = grouped_numbers(pl.DataFrame({"who": ["a", "a", None]}), "who", np.arange(3, dtype=np.uint64))
    >>> bool(numbers[0] == numbers[1]), bool(numbers[1] == numbers[2])
    (True, False)
    """
    if by is None:
        return records
    units = engine.record_numbers(table, [by])
    gone = table[by].is_null().to_numpy()
    # A record of nobody draws for itself; the bit keeps it apart from a unit of the same number.
    return np.where(gone, records | np.uint64(1 << 63), units) if gone.any() else units
