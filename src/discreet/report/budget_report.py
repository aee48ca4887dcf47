"""The page of a privacy budget: what is promised in plain words, what was published, what is not covered."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from discreet._version import __version__
from discreet.core.guarantees import NOT_COVERED
from discreet.report.templating import rendered, written_page

if TYPE_CHECKING:
    from discreet.dp.ledger import Ledger


def write_budget_report(ledger: Ledger, path: str | Path) -> Path:
    """Write the page of a ledger and return its path; it holds no data."""
    spending = ledger.spending()
    page = rendered(
        "budget.html",
        title=ledger.path.name if ledger.path else "a data source",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        version=__version__,
        meaning=ledger.meaning,
        spending=spending,
        closed=ledger.closed,
        not_covered=NOT_COVERED,
    )
    return written_page(path, page)
