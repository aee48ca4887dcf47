"""Which data does a ledger belong to? Files are known by their bytes, data by their content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet.core.errors import DiscreetError, InputError
from discreet.dp.ledger_files import well_formed
from discreet.io.fingerprints import check_unchanged
from discreet.microdata import Microdata

Source = str | Path | Microdata
_INCOMPARABLE = "-"
"""The content of a file that cannot be read as a table, or holds what has no canonical form."""


def fingerprints(source: Source) -> dict[str, str]:
    """By what a source is known: its name, the checksum of its bytes and the fingerprint of its content."""
    if isinstance(source, Microdata):
        about = source.metadata
        content = _content(source)
        if about.checksum is None and content == _INCOMPARABLE:
            raise InputError(
                "These data hold values by which they cannot be recognized, such as lists. Leave those columns out, or "
                "give the file as the source of the ledger."
            )
        name = about.source or "data"
        return {"source": well_formed(name), "fingerprint": about.checksum or "", "content": content}
    return {
        "source": well_formed(Path(source).name),
        "fingerprint": _checksum(source),
        "content": _content(source),
    }


def known_by(header: Mapping[str, Any], source: Source) -> bool:
    """Whether a source is that of a ledger, or was declared to be."""
    own = [header, *header["same"]]
    files = {known["fingerprint"] for known in own} - {""}
    contents = {known["content"] for known in own} - {"", _INCOMPARABLE}
    if not header["fingerprint"] and not header["content"]:
        return True
    if not isinstance(source, Microdata):
        return _checksum(source) in files or (bool(contents) and _content(source) in contents)
    if source.metadata.checksum in files:
        check_unchanged(source.metadata, source.frame)
        return True
    if not contents:  # an older ledger, which was not opened with its file since
        return False
    return any(known in contents for known in source.content_marks()) or _content(source) in contents


def _content(source: Source) -> str:
    from discreet.io.fingerprints import content_of

    if isinstance(source, Microdata):
        try:
            return content_of(source)
        except DiscreetError:
            return _INCOMPARABLE
    from discreet.io import read

    try:
        return content_of(read(source, roles={}))
    except Exception:  # a ledger can belong to a file of any kind, which is then known by its bytes alone
        return _INCOMPARABLE


def _checksum(source: str | Path) -> str:
    try:
        with Path(source).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"The file '{Path(source).name}' cannot be read: {error.strerror}.") from error
