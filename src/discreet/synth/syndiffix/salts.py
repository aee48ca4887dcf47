"""The secret that noise sticks to: read from a file, made where there is none, and bound to one data source.

The noise of a range protects because nobody can repeat it and because it is always the same. If the data change under
the same salt, the difference between two releases is no longer hidden by noise: the salt remembers, beside its file,
a keyed fingerprint of every column it was used for, and is refused for others.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import warnings
from collections.abc import Mapping
from pathlib import Path

from discreet.core.arrays import Floats
from discreet.core.errors import DiscreetWarning, InputError, ParameterError
from discreet.core.files.atomic import replacing
from discreet.core.files.inputs import note_read
from discreet.core.files.texts import parsed_json
from discreet.synth.syndiffix.hashing import SHORTEST_SALT

_FORMAT = "discreet salt 1"


def salt_of_file(path: str) -> bytes:
    """Read a salt; where there is no such file, make one that only its owner can read."""
    place = Path(path)
    if not place.exists():
        if not place.parent.is_dir():
            raise InputError(
                f"The folder of the salt file '{place.name}' is not there. Make it, or name another."
            )
        with replacing(place) as draft:
            draft.touch(mode=0o600)
            draft.write_text(secrets.token_hex(32), encoding="ascii")
            os.chmod(draft, 0o600)
        warnings.warn(
            f"A new salt was made and stored in '{place.name}'. Keep it secret and keep it: further tables of the same "
            "data need the same salt.",
            DiscreetWarning,
            stacklevel=4,
        )
    note_read(place)
    try:
        salt = place.read_bytes().strip()
    except OSError as error:
        raise InputError(f"The salt file '{place.name}' cannot be read.") from error
    if len(salt) < SHORTEST_SALT:
        raise ParameterError(
            f"The salt in '{place.name}' has {len(salt)} bytes and needs at least {SHORTEST_SALT}. Name a file that is "
            "not there yet, and a good one is made."
        )
    return salt


def salt_of_seed(seed: int) -> bytes:
    """Make a salt for one run: whoever knows the seed can repeat it."""
    return hashlib.sha256(f"discreet salt of seed {seed}".encode()).digest()


def fingerprints(salt: bytes, columns: Mapping[str, tuple[Floats, list[str]]]) -> dict[str, str]:
    """Return a keyed fingerprint of every column: its numbers, and the texts they stand for."""
    made = {}
    for name, (values, texts) in columns.items():
        digest = hmac.new(salt, name.encode(), "sha256")
        digest.update(values.tobytes())
        for text in texts:
            digest.update(f"{len(text)}:{text}".encode())
        made[hmac.new(salt, b"name" + name.encode(), "sha256").hexdigest()] = digest.hexdigest()
    return made


def bind(path: str, found: Mapping[str, str], *, new_release: bool) -> None:
    """Refuse a salt that was used for other data; remember the columns it is used for now."""
    place = Path(f"{path}.data")
    known: dict[str, str] = {}
    if place.exists() and not new_release:
        try:
            document = parsed_json(place.read_bytes())
            known = {str(name): str(value) for name, value in document["columns"].items()}
        except Exception as error:
            raise InputError(
                f"'{place.name}' says which data the salt belongs to and cannot be read. Put it back, or use a new one."
            ) from error
        changed = sum(known.get(name, value) != value for name, value in found.items())
        if changed:
            raise InputError(
                f"The data have changed since the salt '{Path(path).name}' was first used: {changed:,} of "
                f"{len(found):,} columns are not what they were. Noise that sticks does not hide a difference between "
                "two versions of a file: name a new salt file, or say new_release=True if the earlier tables are "
                "withdrawn."
            )
    if {**known, **found} != known:
        with replacing(place) as draft:
            draft.write_text(json.dumps({"format": _FORMAT, "columns": {**known, **found}}), encoding="utf-8")
