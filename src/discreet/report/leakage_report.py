"""The page of a joint analysis: what came out, what every party learned, and how much was passed between them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet._version import __version__
from discreet.core.wording import shown
from discreet.report.templating import rendered, written_page

if TYPE_CHECKING:
    from discreet.federated.leakage import Leakage


def write_leakage_report(
    account: Leakage, path: str | Path, *, title: str, figures: Mapping[str, Any]
) -> Path:
    """Write the page and return its path; it holds no rows."""
    table = account.transcript.to_dict()
    page = rendered(
        "leakage.html",
        title=title,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        version=__version__,
        protocol=account.protocol,
        figures=list(figures.items()),
        headline=account.headline,
        determined=[one.about for one in account.determined],
        learned=[
            {
                "party": one.party,
                "about": one.about,
                "sentence": one.sentence,
                "equations": "" if one.constraints is None else shown(one.constraints),
                "unknowns": "" if one.unknowns is None else shown(one.unknowns),
                "determined": "yes" if one.determined else ("no" if one.constraints is not None else ""),
            }
            for one in account.learned
        ],
        collusions=account.collusions,
        notes=account.notes,
        subsets=account.subsets,
        messages=shown(table["messages"]),
        bytes=shown(table["bytes"]),
        passed=[
            {**row, "messages": shown(row["messages"]), "bytes": shown(row["bytes"])}
            for row in table["by_message"]
        ],
    )
    return written_page(path, page)
