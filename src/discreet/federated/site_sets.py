"""With which other sites were a site's data added up so far? Sums over different sites give one of them away.

The sums over {A, B}, {B, C} and {A, C} give B exactly. So a site adds each of its columns over one set of sites,
whatever is computed from it and whatever it is called, in this run and in every later one. A column is known by its
name and by what it holds. The list is kept beside the owner's ledger.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from discreet.core.errors import InputError
from discreet.core.files.atomic import replacing
from discreet.federated.messages import ALONE, ProtocolError
from discreet.federated.parties import Holder

Uses = Sequence[tuple[str, tuple[str, ...]]]


class SiteSets:
    """The list of one site.

    Parameters
    ----------
    path
        The file.
    key
        The site's own key: what a column holds is kept as a keyed digest, so that nobody can try out values.
    free
        Whether the owner lets the same column be added over other sites as well.
    """

    def __init__(self, path: Path, key: bytes, *, free: bool = False) -> None:
        self.path, self._key, self._free = path, key, free
        self._known: dict[str, list[str]] = {}
        self._digests: dict[tuple[str, str], str] = {}
        if path.exists():
            try:
                known = json.loads(path.read_text(encoding="utf-8"))["columns"]
                self._known = {str(name): [str(site) for site in sites] for name, sites in known.items()}
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                raise InputError(
                    f"'{path.name}' cannot be read: without it the site does not know with whom its data were added."
                ) from error

    def check(self, holder: Holder, uses: Uses, sites: Sequence[str]) -> None:
        """Refuse columns that were released over other sites before."""
        wanted = sorted(sites)
        for name, key in self._keys(holder, uses):
            known = self._known.get(key, wanted)
            if known != wanted and not self._free:
                raise ProtocolError(
                    f"'{holder.name}' has released '{name}' over {_said(known)} before, and does not release it over "
                    f"{_said(wanted)}: two sums over different sites give one of them away by subtraction. Ask the "
                    "same sites; the owner may allow others (other_site_sets)."
                )

    def enter(self, holder: Holder, uses: Uses, sites: Sequence[str]) -> None:
        """Enter over which sites columns are released, before the answer goes out."""
        new = {key: sorted(sites) for _, key in self._keys(holder, uses) if key not in self._known}
        if new:
            self._known.update(new)
            self._write()

    def _keys(self, holder: Holder, uses: Uses) -> list[tuple[str, str]]:
        return [
            (name, key)
            for block, columns in uses
            for name in columns
            for key in (f"name {block}/{name}", f"rows {self._digest(holder, block, name)}")
        ]

    def _digest(self, holder: Holder, block: str, name: str) -> str:
        if (block, name) not in self._digests:
            told = hmac.new(self._key, digestmod=hashlib.sha256)
            values = holder.frame(block)[name].cast(str).to_list()
            people: Sequence[Any] = holder.row_ids(block) or holder.row_texts(block)
            for line in sorted(f"{who}\x1f{value}" for who, value in zip(people, values, strict=True)):
                told.update(line.encode() + b"\x1e")
            self._digests[block, name] = told.hexdigest()[:32]
        return self._digests[block, name]

    def _write(self) -> None:
        try:
            with replacing(self.path) as unfinished:
                unfinished.write_text(json.dumps({"columns": self._known}, indent=1), encoding="utf-8")
        except OSError as error:
            raise InputError(
                "The site cannot keep the list of sites with whom its data were added, and answers nothing without it."
            ) from error


def _said(sites: Sequence[str]) -> str:
    if tuple(sites) == (ALONE,):
        return ALONE
    return "the sites " + ", ".join(f"'{site}'" for site in sites)
