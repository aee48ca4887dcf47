"""The HTML report of a release: what was done, what is left of the risk, what it cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from discreet.core.method_cards import works_behind
from discreet.core.wording import label_of, title_of, worded
from discreet.protect import Treatment
from discreet.report import page_words, release_view
from discreet.report.page_words import GLOSSARY, citations
from discreet.report.plots import own_charts
from discreet.report.templating import rendered, written_page

if TYPE_CHECKING:
    from discreet.workflow import ReleaseReport


_NEEDED_WORDS = (
    "Group (equivalence class)",
    "k",
    "Key (quasi-identifier)",
    "l",
    "Policy",
    "Sensitive column",
    "t",
)
_COST_WORDS = {
    "Information loss": "How much less the released file says than the original, column by column: 0 % is the file as "
    "it was, 100 % a file that says nothing.",
    "Suppressed": "Made empty, because the value would have made somebody stand out.",
}


def render_release(report: ReleaseReport) -> str:
    """Return the report of a release as HTML text.

    Examples
    --------
    >>> import polars as pl
    >>> from discreet import Microdata
    >>> from discreet.protect import Band
    >>> from discreet.workflow import document_release
    >>> data = Microdata(pl.DataFrame({"age": [30, 31, 45, 46]}), keys="age")
    >>> page = render_release(document_release(data, Band(widths={"age": 20}).apply(data)))
    >>> "What was done" in page
    True
    """
    before, after = release_view.answers_of(report)
    found = report.after or report.before
    measures = list(found.measures) if found else []
    return rendered(
        "release.html",
        about=report.about,
        after=after,
        before=before,
        cards=release_view.cost_cards(report.cost),
        caveats=report.caveats,
        charts=own_charts(report.cost, show_values=report.show_values),
        citations={
            **works_behind(Treatment.known[step.treatment] for step in report.release.log),
            **{title_of(name): texts for name, texts in citations(measures).items()},
        },
        columns=release_view.column_losses(report.cost),
        cost=report.cost,
        facts=_facts(report),
        figures=[
            (label_of(name), name, worded(name, figure, measure=report.cost.name))
            for name, figure in report.cost.figures.items()
            if figure is not None
        ],
        glossary={**{word: GLOSSARY[word] for word in _NEEDED_WORDS}, **_COST_WORDS},
        guarantee=report.release.guarantee,
        private=report.release.private,
        spending=report.release.spending,
        why_none=report.release.why_none,
        not_judged=report.not_judged,
        policy=page_words.policy_rows(report.after) if report.after else [],
        provenance=_provenance(report),
        risks=release_view.risk_rows(report),
        rules=release_view.rule_rows(report),
        show_values=report.show_values,
        skipped=release_view.skipped_words(report),
        source=report.about.get("source") or "this file",
        steps=release_view.steps_of(report),
        untouched=release_view.untouched_words(report.cost),
    )


def write_release(report: ReleaseReport, path: str | Path) -> Path:
    """Write the report of a release and return its path; an older report there is replaced.

    Raises
    ------
    InputError
        When the folder is missing or cannot be written to. Nothing half-written is left behind.
    """
    from discreet.core.files.atomic import check_target

    check_target(Path(path), overwrite=True)
    return written_page(path, render_release(report))


def _facts(report: ReleaseReport) -> list[tuple[str, str]]:
    about = report.about
    kept = [
        (label, f"{about[name]:,} → {about[f'{name}_released']:,}")
        for label, name in (("Records", "rows"), ("Columns", "columns"))
        if isinstance(about.get(name), int) and isinstance(about.get(f"{name}_released"), int)
    ]
    if "rows" not in about:
        kept.append(("Records released", f"{about['rows_released']:,}"))
    gone = ", ".join(about.get("columns_left_out") or ())
    roles = about.get("roles") or {}
    named = [
        (label, ", ".join([roles[role]] if isinstance(roles[role], str) else roles[role]))
        for label, role in (("Keys", "keys"), ("Sensitive columns", "sensitive"))
        if roles.get(role)
    ]
    return [
        ("Original", str(about.get("source") or "not from a file")),
        *([("Release", str(about["released_file"]))] if about.get("released_file") else []),
        *kept,
        *([("Columns left out", gone)] if gone else []),
        *named,
    ]


def _provenance(report: ReleaseReport) -> list[tuple[str, str]]:
    first, *rest = page_words.provenance(report.about)
    if report.release.private:
        first = (first[0], "left out: it would tell about the records")
    told = report.about.get("released_checksum")
    return [
        first,
        ("SHA-256 of the release", told or "not available: the release was not written to a file"),
        *rest,
    ]
