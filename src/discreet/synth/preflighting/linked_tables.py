"""Linked tables before a synthesis: each looked at by itself, under the schema that ties them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.core.described import nested
from discreet.core.value_gate import MARK, holds_values
from discreet.microdata import Microdata
from discreet.synth.preflighting.inspecting import preflight
from discreet.synth.preflighting.result import Preflight
from discreet.synth.relational.linked_tables import LinkedTables
from discreet.synth.relational.relational import Relational
from discreet.synth.relational.schema import Schema

_OWN = ("visit_sequence", "together")


@dataclass(frozen=True)
class LinkedPreflight:
    """What was found in each of several linked tables.

    Attributes
    ----------
    schema
        How they hang together.
    tables
        What was found, by table; public tables stay as they are and are not looked at.
    """

    schema: Schema
    tables: Mapping[str, Preflight]

    def synthesizer(self, **options: Any) -> Relational:
        """Make the synthesizer that the accepted findings propose, table by table."""
        by = {}
        for name, found in self.tables.items():
            proposed = found.synthesizer().to_dict()
            kept = {setting: value for setting, value in proposed.items() if setting not in _OWN}
            if kept:
                by[name] = kept
        return Relational(self.schema, **{"by": by, **options})

    def save_plan(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write how every table is to be synthesized, for ``discreet synthesize --schema … --plan``.

        Codes and rules among the settings are values of the data: the first line of the file says so.
        """
        import tomli_w

        from discreet.io.sidecar import save_text

        by = {name: nested(dict(own)) for name, own in self.synthesizer().by.items()}
        marked = MARK if any(holds_values(own, "plan") for own in by.values()) else ""
        document = {"synthesizer": "relational", "by": by}
        return save_text(marked + tomli_w.dumps(document), path, overwrite=overwrite)

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return {
            "schema": self.schema.to_dict(),
            "tables": {name: found.to_dict() for name, found in self.tables.items()},
        }

    def __str__(self) -> str:
        parts = ["Linked tables: the plan is for relational, which draws them together.", ""]
        for name, found in self.tables.items():
            parts += [f"Table {name}", str(found), ""]
        return "\n".join(parts).rstrip()


def preflight_linked(
    tables: LinkedTables, *, accept: str | Sequence[str] = "high", show_values: bool = False
) -> LinkedPreflight:
    """What in these tables would silently ruin a synthetic version of them?

    Keys that are missing or repeated, orphans and circles are refused when the tables are read; here every table is
    looked at by itself, without its keys, and with what is left out of the synthesis left out.

    Parameters
    ----------
    tables
        The tables and their schema.
    accept
        Which findings are acted on, see `discreet.synth.preflight`.
    show_values
        Also tell the values of outliers.
    """
    found = {}
    for name in tables.own:
        table = tables.schema.tables[name]
        apart = {table.key, *table.parents, *table.leave_out}
        columns = [column for column in tables.tables[name].columns if column not in apart]
        if columns and tables.tables[name].height > 1:
            own = Microdata(tables.tables[name].select(columns))
            found[name] = preflight(own, accept=accept, show_values=show_values)
    return LinkedPreflight(tables.schema, found)
