"""The page of a privacy budget: what is promised in plain words, what was published, what is not covered."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from discreet._version import __version__
from discreet.guarantees import NOT_COVERED
from discreet.report.templating import rendered, written_page

if TYPE_CHECKING:
    from discreet.dp.ledger import Ledger


def write_budget_report(ledger: Ledger, path: str | Path) -> Path:
    """Write the page of a ledger and return its path; it holds no data."""
    epsilon, delta = ledger.budget
    spent = ledger.spent
    rows = [
        {
            "release": row["release"],
            "day": row["time"][:10],
            "mechanism": row["mechanism"],
            "price": f"rho {row['rho']:.4g}"
            if row["definition"] == "zcdp"
            else f"epsilon {row['epsilon']:g}",
            "delta": f"{row['delta']:g}" if row["delta"] else "",
            "neighbors": row["adjacency"],
            "proved": "yes" if row.get("proved", True) is not False else "no",
            "purpose": row["purpose"],
        }
        for row in ledger.table().iter_rows(named=True)
    ]
    page = rendered(
        "budget.html",
        title=ledger.path.name if ledger.path else "a data source",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        version=__version__,
        meaning=ledger.meaning,
        budget=f"epsilon {epsilon:g}" + (f", delta {delta:g}" if delta else ""),
        spent=f"epsilon {spent.epsilon:.4g}" + (f", delta {spent.delta:g}" if spent.delta else ""),
        left=f"epsilon {ledger.left:.4g}",
        closed=ledger.closed,
        rows=rows,
        not_covered=NOT_COVERED,
    )
    return written_page(path, page)
