"""What every treatment is: a frozen set of parameters that turns a file into a release with a log.

A treatment says in `Treatment.treat` what becomes of which columns; everything around it (randomness, timing,
counting changed cells, putting the columns back into the user's kind of frame) is done once, here. The same
treatment has the same name in Python (``LocalSuppression``), in a plan file and on the command line
(``local-suppression``).
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np
import polars as pl

from discreet import engine
from discreet.arrays import Integers
from discreet.described import kebab, parameters_of
from discreet.dp.entropy import Stream
from discreet.dp.ledger import Ledger
from discreet.errors import ParameterError, unknown_name
from discreet.guarantees import DifferentialPrivacy, public_and_internal, settled, stands
from discreet.microdata import Columns, Microdata
from discreet.one_thread import one_thread
from discreet.parameters import typed_parameters
from discreet.randomness import Seed, fresh_seed, generator
from discreet.results import Release, Step

__all__ = ["Change", "Stream", "Treatment"]


@dataclass(frozen=True)
class Change:
    """What a treatment wants done to the file.

    Attributes
    ----------
    columns
        New content by column, one value a record; a new name adds a column.
    keep
        True for the records that stay.
    order
        Positions, among the records that stay, in their new order.
    drop
        Columns to leave out.
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
        (`discreet.guarantees`); the log then holds no count.
    why_none
        Where a claim was possible and is not made: why.
    """

    columns: Mapping[str, pl.Series] = field(default_factory=dict)
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


class Treatment(ABC):
    """A protection and its parameters; subclasses are frozen dataclasses."""

    known: ClassVar[dict[str, type[Treatment]]] = {}
    secrets: ClassVar[tuple[str, ...]] = ()
    """Parameters that are left out of logs and plan files."""

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

    def apply(self, data: Microdata, *, ledger: Ledger | None = None, seed: Seed = None) -> Release:
        """Treat the file.

        Parameters
        ----------
        data
            The file; it is not changed.
        ledger
            The privacy budget of the data source (`discreet.dp.Ledger`): a treatment with a guarantee is entered before
            noise is drawn, or refused; one without is refused.
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
        stream = Stream(int(root), self.name, seeded=seed is not None, ledger=ledger)
        with one_thread():
            change = self.treat(data, stream)
        stream.account.settle(self.name)
        treated = data.with_frame(
            engine.rebuilt(data, change.columns, keep=change.keep, order=change.order, drop=change.drop)
        )
        treated = engine.after_treatment(data, treated, change.keep, change.order)
        if change.roles:
            treated = treated.with_roles(**change.roles)
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
        public, inside = public_and_internal(self.name, change.parameters)
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

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters that differ from their defaults, ready for JSON or TOML."""
        return parameters_of(self, self.secrets)

    @staticmethod
    def named(name: str, parameters: Mapping[str, Any]) -> Treatment:
        """Make the treatment of that name with these parameters, as a plan file has them."""
        if name not in Treatment.known:
            raise ParameterError(unknown_name(name, Treatment.known, what="treatment"))
        kind = Treatment.known[name]
        options = [item.name for item in fields(kind) if item.name not in kind.secrets]  # type: ignore[arg-type]
        for option in parameters:
            if option not in options:
                raise ParameterError(f"In {name}: {unknown_name(option, options, what='parameter')}")
        try:
            return kind.from_dict(parameters)
        except TypeError as error:
            # Python names a parameter that is needed and was left out.
            raise ParameterError(f"{name} cannot be made from these parameters: {error}.") from error

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any]) -> Treatment:
        """Make the treatment from plain values; treatments with richer parameters read them here."""
        try:
            return cls(**parameters)
        except TypeError as error:
            raise ParameterError(
                f"{kebab(cls.__name__)} cannot be made from these parameters: {error}."
            ) from error


def _changed_cells(data: Microdata, change: Change) -> tuple[dict[str, int], dict[str, int]]:
    """Count, by column, the cells that differ and those that became missing, among the records that stay."""
    there = [name for name in change.columns if name in data.schema]
    if not there:
        return {}, {}
    before = engine.collect(data, there)
    stay = pl.lit(True) if change.keep is None else pl.lit(change.keep)
    changed, suppressed = {}, {}
    for name in there:
        pair = _comparable(before[name], change.columns[name])
        differ, gone = pair.select(
            differ=(pl.col("old").ne_missing(pl.col("new")) & stay).sum(),
            gone=(pl.col("old").is_not_null() & pl.col("new").is_null() & stay).sum(),
        ).row(0)
        changed[name], suppressed[name] = int(differ), int(gone)
    return changed, {name: count for name, count in suppressed.items() if count}


def _comparable(old: pl.Series, new: pl.Series) -> pl.DataFrame:
    """Bring the old and the new values to one type: numbers as numbers, everything else by its text."""
    if old.dtype == new.dtype and not old.dtype.is_float():
        return pl.DataFrame({"old": old, "new": new})
    numbers = old.dtype.is_numeric() and new.dtype.is_numeric()
    kind = pl.Float64() if numbers else pl.String()
    pair = pl.DataFrame({"old": old.cast(kind), "new": new.cast(kind)})
    return pair.fill_nan(None) if numbers else pair
