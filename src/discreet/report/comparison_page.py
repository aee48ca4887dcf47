"""The HTML report of a comparison: what went wrong first, what it cost, what is left of the risk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from discreet.core.figure_words import title_of
from discreet.report import comparison_view, page_words
from discreet.report.comparison_charts import map_of
from discreet.report.page_words import GLOSSARY, citations
from discreet.report.templating import rendered, written_page

if TYPE_CHECKING:
    from discreet.workflow.comparison_results import Comparison

_NEEDED_WORDS = (
    "Hold-out",
    "Intruder",
    "Key (quasi-identifier)",
    "Policy",
    "Propensity, pMSE",
    "S_pMSE",
    "Sensitive column",
    "Synthetic file",
    "Unique record",
)


def render_comparison(comparison: Comparison) -> str:
    """Return the report of a comparison as HTML text.

    Examples
    --------
    >>> import polars as pl
    >>> from discreet import Microdata
    >>> from discreet.workflow.comparison import compare
    >>> people = pl.DataFrame({"sex": ["f", "m"] * 20, "ill": ["yes", "no", "no", "no"] * 10})
    >>> page = render_comparison(compare(Microdata(people, keys="sex"), Microdata(people), measures="margins"))
    >>> "What went wrong first" in page
    True
    """
    releases = comparison_view.releases_of(comparison)
    shown_as = comparison_view.as_assessment(comparison)
    measures = [name for release in comparison.releases.values() for name in release.measures]
    return rendered(
        "comparison.html",
        about=comparison.about,
        best=comparison_view.best_of(comparison),
        citations={title_of(name): texts for name, texts in citations(measures).items()},
        facts=comparison_view.file_facts(comparison),
        not_judged=comparison.not_judged,
        glossary={word: GLOSSARY[word] for word in _NEEDED_WORDS},
        map=map_of(comparison),
        parameters=page_words.parameter_rows(shown_as),
        policy=page_words.policy_rows(shown_as),
        provenance=_provenance(comparison),
        releases=releases,
        show_values=comparison.show_values,
        side_by_side=comparison_view.side_by_side(comparison),
        source=comparison.about.get("source") or "the original",
    )


def write_comparison(comparison: Comparison, path: str | Path) -> Path:
    """Write the report of a comparison and return its path; an older report there is replaced.

    Raises
    ------
    InputError
        When the folder is missing or cannot be written to. Nothing half-written is left behind.
    """
    from discreet.core.files.atomic import check_target

    check_target(Path(path), overwrite=True)
    return written_page(path, render_comparison(comparison))


def _provenance(comparison: Comparison) -> list[tuple[str, str]]:
    (_, first), *rest = page_words.provenance(comparison.about)
    released = [
        (
            f"SHA-256 of “{release.name}”",
            str(release.about.get("checksum") or "not available: the data did not come from a file"),
        )
        for release in comparison.releases.values()
    ]
    return [("SHA-256 of the original", first), *released, *rest]
