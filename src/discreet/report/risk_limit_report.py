"""The page of a synthesis that was attacked: what was gained from it, what was done about it, and the price."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from discreet._version import __version__
from discreet.core.wording import percent
from discreet.report.templating import rendered, written_page

if TYPE_CHECKING:
    from discreet.workflow.synthesis_within_risk import SynthesisWithinRisk


def write_risk_limit_report(found: SynthesisWithinRisk, path: str | Path) -> Path:
    """Write the page and return its path; it holds no rows and no values."""
    page = rendered(
        "risk_limit.html",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        version=__version__,
        limit=percent(found.limit),
        verdict=found.verdict,
        price=found.price,
        steps=found.steps,
        notes=found.gains.notes,
        attacks=[
            {
                "attack": row["attack"],
                "risk": percent(row["risk"]),
                "interval": f"{percent(row['risk_low'])} to {percent(row['risk_high'])}",
                "keeps": "yes" if row["risk_high"] <= found.limit else "no",
            }
            for row in found.gains.table.iter_rows(named=True)
        ],
        tries=[
            {
                **row,
                "risk": percent(row["risk"]),
                "risk_high": percent(row["risk_high"]),
                "distance": percent(row["distance"]),
                "by": "people whom no step was chosen by"
                if row["judged"]
                else "people by whom steps are chosen",
                "chosen": "this file" if row["chosen"] else "",
            }
            for row in found.frontier.iter_rows(named=True)
        ],
    )
    return written_page(path, page)
