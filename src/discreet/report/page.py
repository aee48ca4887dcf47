"""The HTML report of an assessment: one file, nothing loaded from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from discreet.core.figure_words import title_of
from discreet.report import page_words, view
from discreet.report.answer import answer_of
from discreet.report.page_words import GLOSSARY, citations
from discreet.report.templating import rendered, written_page

if TYPE_CHECKING:
    from discreet.core.results import Assessment


def render_assessment(assessment: Assessment) -> str:
    """Return the report of an assessment as HTML text.

    Examples
    --------
    >>> from discreet.core.results import Assessment, Measure, Scenario
    >>> k = Measure("k_anonymity", 1, {"k": 1}, "At least one record is alone.")
    >>> anyone = Scenario("anyone", ("age",), {"k_anonymity": k})
    >>> page = render_assessment(Assessment({"source": "survey.csv"}, {"anyone": anyone}))
    >>> "At least one record is alone." in page
    True
    """
    measures = [name for scenario in assessment.scenarios.values() for name in scenario.measures]
    return rendered(
        "assessment.html",
        about=assessment.about,
        answer=answer_of(assessment),
        advice=tuple(assessment.advice),
        cards=view.key_numbers_of(assessment.main) if assessment.scenarios else [],
        citations={title_of(name): texts for name, texts in citations(measures).items()},
        comparison=view.comparison_of(assessment),
        facts=page_words.file_facts(assessment.about),
        glossary=GLOSSARY,
        not_judged=assessment.not_judged,
        parameters=page_words.parameter_rows(assessment),
        parts=list(view.parts_of(assessment)),
        policy=page_words.policy_rows(assessment),
        provenance=page_words.provenance(assessment.about),
        roles=page_words.role_rows(assessment.about),
        show_values=assessment.show_values,
        source=assessment.about.get("source") or "this file",
    )


def write_assessment(assessment: Assessment, path: Path) -> Path:
    """Write the report of an assessment and return its path; an older report there is replaced.

    Raises
    ------
    InputError
        When the folder is missing or cannot be written to. Nothing half-written is left behind.
    """
    from discreet.core.files.atomic import check_target

    check_target(Path(path), overwrite=True)
    return written_page(path, render_assessment(assessment))
