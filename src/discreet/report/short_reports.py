"""The short pages: of a joint analysis, of a privacy budget, and of a synthesis that was attacked."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet._version import __version__
from discreet.core.guarantees import NOT_COVERED
from discreet.core.wording import percent, shown
from discreet.report.templating import rendered, written_page

if TYPE_CHECKING:
    from discreet.dp.ledger import Ledger
    from discreet.federated.leakage import Leakage
    from discreet.workflow.synthesis_within_risk import SynthesisWithinRisk


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


# The page of a privacy budget: what is promised in plain words, what was published, what is not covered.


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


# The page of a synthesis that was attacked: what was gained from it, what was done about it, and the price.


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
