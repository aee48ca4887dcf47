"""Messages on the wire: an outside that may be seen (who, to whom, what, how large), and contents, sealed or not."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discreet.core.errors import InputError
from discreet.federated.leakage import Passed
from discreet.federated.messages import Message, contents, joined, parted, strict_json, values_of
from discreet.federated.sealing import Sealer

_FIELDS = {"protocol": str, "run": str, "sender": str, "receiver": str, "name": str, "fields": dict, "size": int,
           "number": int, "time": float, "sealed": bool}  # fmt: skip
# The outside of a message is short: names and shapes. What is longer is nothing that this protocol writes.
_MOST_OUTSIDE = 1 << 16
_LONGEST_NAME = 200
_MOST_ENVELOPES = 10_000


@dataclass(frozen=True)
class Envelope:
    """A message as it travels."""

    outside: Mapping[str, Any]
    inside: bytes

    @property
    def receiver(self) -> str:
        """Whom it is for."""
        return str(self.outside["receiver"])

    @property
    def passed(self) -> Passed:
        """What a transcript says of it."""
        out = self.outside
        return Passed(
            out["protocol"],
            out["sender"],
            out["receiver"],
            out["name"],
            tuple(out["fields"].items()),
            out["size"],
        )

    def opened(self, sealer: Sealer | None = None) -> Message:
        """Return the message; what is sealed needs the receiver's keys."""
        out = self.outside
        inner = self.inside
        if out["sealed"]:
            if sealer is None:
                raise InputError("A sealed message came to somebody who cannot open it.")
            inner = sealer.open(out["sender"], out, self.inside)
        message = Message(
            out["protocol"], out["run"], out["sender"], out["receiver"], out["name"], values_of(inner)
        )  # fmt: skip
        if message.fields != dict(out["fields"]) or message.size != out["size"]:
            raise InputError("A message holds something else than its outside says. It was dropped.")
        return message


def put_in(message: Message, number: int, sealer: Sealer | None = None) -> Envelope:
    """Put a message into an envelope, sealed where a sealer is given."""
    outside = {
        "protocol": message.protocol, "run": message.run, "sender": message.sender, "receiver": message.receiver,
        "name": message.name, "fields": message.fields, "size": message.size, "number": number, "time": time.time(),
        "sealed": sealer is not None,
    }  # fmt: skip
    # JSON orders nothing by itself: the outside is bound to the contents as it will be read.
    outside = json.loads(json.dumps(outside))
    inner = contents(message.values)
    return Envelope(outside, inner if sealer is None else sealer.seal(message.receiver, outside, inner))


def packed(envelopes: list[Envelope]) -> bytes:
    """Write envelopes as bytes."""
    return joined(*(part for one in envelopes for part in (json.dumps(one.outside).encode(), one.inside)))


def unpacked(data: bytes) -> list[Envelope]:
    """Read envelopes from bytes, refusing whatever else they are."""
    try:
        parts = parted(data)
        if len(parts) % 2 or len(parts) > 2 * _MOST_ENVELOPES:
            raise ValueError("half an envelope, or too many of them")
        return [Envelope(_checked(parts[at]), parts[at + 1]) for at in range(0, len(parts), 2)]
    except (ValueError, TypeError, struct.error) as error:
        raise InputError("What came over the wire is no message of this protocol. It was dropped.") from error


def _checked(data: bytes) -> dict[str, Any]:
    if len(data) > _MOST_OUTSIDE:
        raise ValueError("too long")
    outside = strict_json(data)
    if not isinstance(outside, dict) or set(outside) != set(_FIELDS):
        raise ValueError("other fields")
    for name, kind in _FIELDS.items():
        if type(outside[name]) is not kind and not (kind is float and type(outside[name]) is int):
            raise ValueError("another type")
        if kind is str and len(outside[name]) > _LONGEST_NAME:
            raise ValueError("a long name")
    if not all(isinstance(value, str) for value in outside["fields"].values()):
        raise ValueError("another type")
    return outside
