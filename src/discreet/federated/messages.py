"""What is passed between parties: named messages, and the fields that each must hold.

Arrays travel as plain bytes, other values as JSON. A message can be read without running what it holds, and in the
memory that it came in: nothing is pickled, nothing is compressed, and an array is exactly as many bytes as its shape
and kind say.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from discreet.core.arrays import Array
from discreet.core.errors import DiscreetError, InputError
from discreet.core.files.untrusted import parsed_json
from discreet.federated.kinds import Field

_LENGTH = struct.Struct(">I")
_KINDS = {name: np.dtype(name).newbyteorder("<") for name in ("float64", "int64", "uint64", "bool")}
_MOST_AXES = 4
_MOST_JSON = 16 << 20  # numbers travel as arrays; JSON takes many times its length in memory
MOST_BYTES = 1 << 31


class ProtocolError(DiscreetError):
    """A party that does not answer, answers out of turn, or is asked what its owner did not allow."""


@dataclass(frozen=True)
class Message:
    """One message: who sends what to whom, in which run of which protocol.

    Examples
    --------
    >>> message = Message("secure-sum", "r1", "a", "b", "partial", {"sum": np.array([1.5]), "rounds": 1})
    >>> message.fields
    {'sum': 'float64[1]', 'rounds': 'json'}
    >>> decoded(encoded(message)).values["sum"]
    array([1.5])
    """

    protocol: str
    run: str
    sender: str
    receiver: str
    name: str
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def fields(self) -> dict[str, str]:
        """What it holds, without the contents: the kind and shape of every value."""
        return {name: _kind(value) for name, value in self.values.items()}

    @property
    def size(self) -> int:
        """How many bytes its contents are; the envelope is not counted."""
        arrays = sum(value.nbytes for value in self.values.values() if isinstance(value, np.ndarray))
        return int(arrays) + len(_plain_json(self.values))

    def array(self, name: str, shape: tuple[int | None, ...]) -> Array:
        """Return an array of the message, refusing one of another shape or with values that are no numbers."""
        value = self.values.get(name)
        fits = (
            isinstance(value, np.ndarray)
            and value.ndim == len(shape)
            and all(want in (None, has) for want, has in zip(shape, value.shape, strict=True))
        )
        if not fits or not isinstance(value, np.ndarray):
            raise ProtocolError(
                f"'{self.sender}' sent '{self.name}' with '{name}' missing or of another shape than the protocol has. "
                "The run was ended."
            )
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            raise ProtocolError(f"'{self.sender}' sent '{self.name}' with numbers in '{name}' that are none.")
        return value


def encoded(message: Message) -> bytes:
    """Write a message as bytes: lengths, JSON, then the bytes of each array."""
    head = {name: getattr(message, name) for name in ("protocol", "run", "sender", "receiver", "name")}
    return joined(json.dumps(head).encode(), contents(message.values))


def decoded(data: bytes) -> Message:
    """Read a message back; whatever is not one is refused."""
    try:
        head, body = parted(data)
        return Message(**strict_json(head), values=values_of(body))
    except (ValueError, KeyError, TypeError, struct.error) as error:
        raise InputError("What came over the wire is no message of this protocol. It was dropped.") from error


def contents(values: Mapping[str, Any]) -> bytes:
    """Write the values of a message as bytes."""
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    layout = {name: [str(value.dtype), *value.shape] for name, value in arrays.items()}
    parts = [json.dumps(layout).encode(), _plain_json(values).encode()]
    return joined(*parts, *(_raw(value) for value in arrays.values()))


def values_of(data: bytes) -> dict[str, Any]:
    """Read the values of a message from bytes."""
    try:
        layout, plain, *raws = parted(data)
        found: dict[str, Any] = dict(strict_json(plain))
        for (name, (kind, *shape)), raw in zip(strict_json(layout).items(), raws, strict=True):
            found[name] = _array(raw, kind, shape)
    except (ValueError, TypeError, AttributeError, KeyError, struct.error, IndexError) as error:
        raise InputError("The contents of a message cannot be read. It was dropped.") from error
    return found


def strict_json(text: bytes) -> Any:
    """Parse JSON of a bounded length and depth; numbers that are none are a ValueError."""
    if len(text) > _MOST_JSON:
        raise ValueError("too long")
    return parsed_json(text, finite=True)


def _plain_json(values: Mapping[str, Any]) -> str:
    return json.dumps({name: value for name, value in values.items() if not isinstance(value, np.ndarray)})


def _kind(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    return "json"


def _raw(array: Array) -> bytes:
    kind = _KINDS.get(str(array.dtype))
    if kind is None:
        raise InputError(f"Arrays of type {array.dtype} do not travel; numbers do.")
    return np.ascontiguousarray(array, dtype=kind).tobytes()


def _array(raw: bytes, kind: str, shape: list[Any]) -> Array:
    """Read an array without copying it; one that is not as many bytes as its shape says is refused."""
    dtype = _KINDS[kind]
    if len(shape) > _MOST_AXES or not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError("no shape")
    if len(raw) != math.prod(shape) * dtype.itemsize:
        raise ValueError("another size")
    found: Array = np.frombuffer(raw, dtype).reshape(shape)
    if kind == "bool" and raw.strip(b"\0\1"):
        raise ValueError("no truth values")
    return found.astype(dtype.newbyteorder("="), copy=False)


def joined(*parts: bytes) -> bytes:
    """Write parts one after the other, each with its length before it."""
    return b"".join(piece for part in parts for piece in (_LENGTH.pack(len(part)), part))


def parted(data: bytes) -> list[bytes]:
    """Read the parts that `joined` wrote; a ValueError where one is cut short."""
    parts, at = [], 0
    while at < len(data):
        (length,) = _LENGTH.unpack_from(data, at)
        part = data[at + 4 : at + 4 + length]
        if len(part) != length:
            raise ValueError("cut short")
        parts.append(part)
        at += 4 + length
    return parts


# What a message must hold: who may send it, its fields and their types, and what it asks of the data of its receiver.
#
# A role declares each message that it takes. The message is read once, and what was read is both what an owner's rules
# are held against and what the role works with. A field that is missing, of another type or not expected is refused.


From = Literal["coordinator", "site", "either"]
Reach = Literal["coordinator", "site"]
COORDINATOR = "coordinator"
"""What the analyst's program is called in every run; no site may have this name."""
MAIN = "main"
"""The block of rows of a holder that has one."""
ALONE = "no other site"
"""Stands for the sites with which numbers are added, where the numbers of a site go out without those of others."""


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
        read = replace(message, values=fitting(message.values, self.fields, message.name))
        return Request(**vars(read), asked=self.asks(role, read))


def fitting(values: Any, fields: Mapping[str, Field], what: str) -> dict[str, Any]:
    """Return the values of the declared fields, or refuse what is missing, of another type or not expected.

    Examples
    --------
    >>> from discreet.federated.kinds import whole
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
