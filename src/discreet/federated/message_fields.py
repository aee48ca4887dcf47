"""What a message must hold: who may send it, its fields and their types, and what it asks of the data of its receiver.

A role declares each message that it takes. The message is read once, and what was read is both what an owner's rules
are held against and what the role works with. A field that is missing, of another type or not expected is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from discreet.federated.messages import Message, ProtocolError

Field = Callable[[Any], bool]
From = Literal["coordinator", "site", "either"]
Reach = Literal["coordinator", "site"]
COORDINATOR = "coordinator"
"""What the analyst's program is called in every run; no site may have this name."""
MAIN = "main"
"""The block of rows of a holder that has one."""
ALONE = "no other site"
"""Stands for the sites with which numbers are added, where the numbers of a site go out without those of others."""
_LONGEST = 1_000


@dataclass(frozen=True)
class Asked:
    """What a message asks of its receiver; a role reads its data through this and through nothing else.

    Attributes
    ----------
    uses
        The columns that are used, by block of rows.
    quantity
        What is to be added to a sum.
    counts
        Whether the answer tells something, so that it counts against the evaluations that an owner allows.
    moments
        Whether means and products of the columns follow from the answers.
    others
        The other sites that the message names; all of them must be known to the owner.
    added_with
        The sites whose numbers are added, `ALONE` where the answer is about this site; empty where nothing goes out.
    scales
        The scales of the noise under which the columns go out, where each answer has new noise.
    dealer
        Who drew the masks that protect this site, where it does not draw them itself.
    trust
        Whether the answer is safe only if the program of the analyst keeps to the protocol, which no site can check.
    """

    uses: tuple[tuple[str, tuple[str, ...]], ...] = ()
    quantity: str = ""
    counts: bool = False
    moments: bool = False
    others: tuple[str, ...] = ()
    added_with: tuple[str, ...] = ()
    scales: tuple[float, ...] = ()
    dealer: str = ""
    trust: bool = False

    @property
    def block(self) -> str:
        """The block of rows, where one is asked about."""
        return self.uses[0][0]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of that block."""
        return self.uses[0][1]


@dataclass(frozen=True)
class Request(Message):
    """A message that was read and found to be as its role declares, with what it asks for."""

    asked: Asked = field(default_factory=Asked)


@dataclass(frozen=True)
class Takes:
    """A message that a role takes: its fields, who may send it, and what it asks for."""

    fields: Mapping[str, Field]
    sender: From = "coordinator"
    asks: Callable[[Any, Message], Asked] = lambda role, message: Asked()

    def read(self, role: Any, message: Message) -> Request:
        """Read a message, or refuse it."""
        values = fitting(message.values, self.fields, message.name)
        read = Message(message.protocol, message.run, message.sender, message.receiver, message.name, values)
        return Request(
            read.protocol, read.run, read.sender, read.receiver, read.name, values, self.asks(role, read)
        )


def fitting(values: Any, fields: Mapping[str, Field], what: str) -> dict[str, Any]:
    """Return the values of the declared fields, or refuse what is missing, of another type or not expected.

    Examples
    --------
    >>> fitting({"round": 0}, {"round": whole}, "partial")
    {'round': 0}
    >>> fitting({"round": "0"}, {"round": whole}, "partial")
    Traceback (most recent call last):
    discreet.federated.messages.ProtocolError: 'partial' came with 'round' of another type than the protocol has.
    """
    if not isinstance(values, Mapping):
        raise ProtocolError(f"'{what}' came without the fields that the protocol has.")
    for name in values:
        if name not in fields:
            raise ProtocolError(f"'{what}' came with a field that the protocol does not have.")
    made: dict[str, Any] = {}
    for name, fits in fields.items():
        if name in values:
            if not fits(values[name]):
                raise ProtocolError(f"'{what}' came with '{name}' of another type than the protocol has.")
            made[name] = values[name]
        elif not getattr(fits, "optional", False):
            raise ProtocolError(f"'{what}' came without '{name}'.")
    return made


def text(value: Any) -> bool:
    """A text of moderate length."""
    return isinstance(value, str) and len(value) <= _LONGEST


def texts(value: Any) -> bool:
    """A list of texts."""
    return isinstance(value, list) and all(map(text, value))


def whole(value: Any) -> bool:
    """A whole number from 0 on that fits into a machine word."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def number(value: Any) -> bool:
    """A finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def flag(value: Any) -> bool:
    """Yes or no."""
    return isinstance(value, bool)


def numbers(value: Any, deep: int = 3) -> bool:
    """A list of finite numbers, or of lists of them, or of lists of these."""
    if not isinstance(value, list) or not deep:
        return False
    return all(numbers(one, deep - 1) if isinstance(one, list) else number(one) for one in value)


def wholes(value: Any) -> bool:
    """A list of whole numbers from 0 on."""
    return isinstance(value, list) and all(map(whole, value))


def floats(value: Any) -> bool:
    """An array of numbers; `Message.array` holds it against its shape, and refuses what is not finite."""
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def words(value: Any) -> bool:
    """An array of words of a ring."""
    return isinstance(value, np.ndarray) and value.dtype == np.uint64


def hexadecimal(value: Any) -> bool:
    """A whole number, written in base 16."""
    return text(value) and bool(value) and set(value) <= set("0123456789abcdef")


def numbers_or_words(value: Any) -> bool:
    """What a sum travels as: an array, or texts in base 16."""
    return floats(value) or words(value) or (isinstance(value, list) and all(map(hexadecimal, value)))


def one_of(*choices: str) -> Field:
    """Take one of some texts."""
    return lambda value: isinstance(value, str) and value in choices


def mapping(value: Any) -> bool:
    """Fields of its own, which are read where they are used."""
    return isinstance(value, Mapping) and all(map(text, value))


def levels(value: Any) -> bool:
    """Texts by column."""
    return mapping(value) and all(map(texts, value.values()))


def lists(value: Any) -> bool:
    """A list of lists of texts."""
    return isinstance(value, list) and all(map(texts, value))


def optional(fits: Field) -> Field:
    """Let a field be left out."""

    def maybe(value: Any) -> bool:
        return fits(value)

    maybe.optional = True  # type: ignore[attr-defined]
    return maybe


def or_none(fits: Field) -> Field:
    """Let a field be empty."""
    return lambda value: value is None or fits(value)


def rows_asked(*, moments: bool = True, alone: bool = False) -> Callable[[Any, Message], Asked]:
    """Read the columns and the block of rows that a message names."""

    def asks(role: Any, message: Message) -> Asked:
        added_with = (ALONE,) if alone else ()
        return Asked((used(message.values),), counts=True, moments=moments, added_with=added_with)

    return asks


def used(values: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Return the block and the columns, each once."""
    columns = tuple(values["columns"])
    if not columns or len(set(columns)) != len(columns):
        raise ProtocolError("A message names no column, or one of them twice.")
    return values.get("block", MAIN), columns
