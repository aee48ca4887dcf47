"""Messages on the wire: an outside that may be seen (who, to whom, what, how large), and contents, sealed or not."""

from __future__ import annotations

import base64
import json
import secrets
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.core.errors import InputError, ParameterError, load_extra
from discreet.core.files.atomic import replacing
from discreet.federated.leakage import Passed
from discreet.federated.messages import (
    Message,
    ProtocolError,
    contents,
    joined,
    parted,
    strict_json,
    values_of,
)

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
        fields = tuple(out["fields"].items())
        return Passed(out["protocol"], out["sender"], out["receiver"], out["name"], fields, out["size"])

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


# Messages between sites that travel through somebody else: only the receiver can open them.
#
# Each site has a pair of X25519 keys, and the owner of every site enters the public keys of the others into its own
# file, so that whoever relays cannot put in keys of their own. A message is sealed with AES-GCM under a key from both
# the fixed keys and one that the sender makes for the run; the outside (who, to whom, what, how large) is bound to it
# and cannot be changed.


def _x25519() -> Any:
    return load_extra(
        "cryptography.hazmat.primitives.asymmetric.x25519",
        extra="federated",
        purpose="Sealing messages between sites",
    )


def new_keys() -> tuple[str, str]:
    """Make a pair of keys, the private one first, as texts."""
    private = _x25519().X25519PrivateKey.generate()
    return _text(private.private_bytes_raw()), _text(private.public_key().public_bytes_raw())


def write_key(path: Path, text: str, *, overwrite: bool = False) -> None:
    """Write a private key so that only its owner can read it."""
    with replacing(path, overwrite=overwrite, private=True) as unfinished:
        unfinished.write_text(text + "\n", encoding="ascii")


class Sealer:
    """Seals messages of one site to others, and opens those to it.

    Parameters
    ----------
    name
        The site.
    private
        Its private key.
    peers
        The public keys of the others, by name.
    """

    def __init__(self, name: str, private: str, peers: Mapping[str, str]) -> None:
        kinds = _x25519()
        try:
            self._private = kinds.X25519PrivateKey.from_private_bytes(_bytes(private))
            self._peers = {
                peer: kinds.X25519PublicKey.from_public_bytes(_bytes(public))
                for peer, public in peers.items()
            }
        except (ValueError, TypeError) as error:
            raise ParameterError(
                "A key of the site is not one of X25519: make it with 'discreet federated keys'."
            ) from error
        self.name = name
        self._ephemeral: dict[tuple[str, str], tuple[bytes, Any]] = {}
        self._opened: dict[tuple[str, bytes, str], Any] = {}

    def seal(self, receiver: str, outside: Mapping[str, Any], contents: bytes) -> bytes:
        """Seal contents to another site."""
        run = str(outside["run"])
        if (receiver, run) not in self._ephemeral:
            own = _x25519().X25519PrivateKey.generate()
            public = own.public_key().public_bytes_raw()
            key = self._key(receiver, own.exchange(self._peer(receiver)), self.name, receiver, run)
            self._ephemeral[receiver, run] = (public, key)
        public, cipher = self._ephemeral[receiver, run]
        nonce = secrets.token_bytes(12)
        return bytes(public + nonce + cipher.encrypt(nonce, contents, _bound(outside)))

    def open(self, sender: str, outside: Mapping[str, Any], sealed: bytes) -> bytes:
        """Open what another site sealed; whatever was changed on the way is refused."""
        from cryptography.exceptions import InvalidTag

        run = str(outside["run"])
        public, nonce, cipher_text = sealed[:32], sealed[32:44], sealed[44:]
        try:
            if (sender, public, run) not in self._opened:
                theirs = _x25519().X25519PublicKey.from_public_bytes(public)
                shared = self._private.exchange(theirs)
                self._opened[sender, public, run] = self._key(sender, shared, sender, self.name, run)
            return bytes(self._opened[sender, public, run].decrypt(nonce, cipher_text, _bound(outside)))
        except (InvalidTag, ValueError) as error:
            raise ProtocolError(
                f"A message that claims to come from '{sender}' cannot be opened: it was changed on the way, or the "
                "keys do not fit."
            ) from error

    def pair_key(self, peer: str, run: str, about: str) -> bytes:
        """Make a key that only this site and another one can make, for one thing in one run."""
        info = ["discreet federated pair", sorted([self.name, peer]), about]
        return _derived(self._private.exchange(self._peer(peer)), run, info)

    def forget(self, run: str) -> None:
        """Drop the keys of a run."""
        self._ephemeral = {key: value for key, value in self._ephemeral.items() if key[-1] != run}
        self._opened = {key: value for key, value in self._opened.items() if key[-1] != run}

    def _key(self, peer: str, shared: bytes, sender: str, receiver: str, run: str) -> Any:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        both = self._private.exchange(self._peer(peer)) + shared
        return AESGCM(_derived(both, run, ["discreet federated", sender, receiver]))

    def _peer(self, name: str) -> Any:
        if name not in self._peers:
            raise ProtocolError(f"'{self.name}' has no key of '{name}'. Its owner enters it under [peers].")
        return self._peers[name]


def read_key(path: str | Path) -> str:
    """Read a private key from its file."""
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The key file '{Path(path).name}' cannot be read.") from error


def _derived(secret: bytes, run: str, about: list[Any]) -> bytes:
    """Make a key of one run for one thing from a shared secret."""
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return bytes(HKDF(SHA256(), 32, run.encode(), json.dumps(about).encode()).derive(secret))


def _bound(outside: Mapping[str, Any]) -> bytes:
    return json.dumps(outside, sort_keys=True).encode()


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
