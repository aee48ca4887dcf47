"""The HTML report of an assessment: one file, nothing loaded from elsewhere."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.report import settings, view
from discreet.report.answer import answer_of
from discreet.report.plots import chart_svg
from discreet.report.references import citations
from discreet.report.words import GLOSSARY
from discreet.results import title_of

if TYPE_CHECKING:
    from jinja2 import Environment

    from discreet.report.charts import Chart
    from discreet.results import Assessment


def render_assessment(assessment: Assessment) -> str:
    """Return the report of an assessment as HTML text.

    Examples
    --------
    >>> from discreet.results import Assessment, Measure, Scenario
    >>> k = Measure("k_anonymity", 1, {"k": 1}, "At least one record is alone.")
    >>> anyone = Scenario("anyone", ("age",), {"k_anonymity": k})
    >>> page = render_assessment(Assessment({"source": "survey.csv"}, {"anyone": anyone}))
    >>> "At least one record is alone." in page
    True
    """
    environment = _environment()
    script = environment.get_template("script.js").render()
    measures = [name for scenario in assessment.scenarios.values() for name in scenario.measures]
    return environment.get_template("assessment.html").render(
        about=assessment.about,
        answer=answer_of(assessment),
        advice=tuple(assessment.advice),
        cards=view.cards_of(assessment.main) if assessment.scenarios else [],
        citations={title_of(name): texts for name, texts in citations(measures).items()},
        comparison=view.comparison_of(assessment),
        facts=settings.file_facts(assessment.about),
        glossary=GLOSSARY,
        parameters=settings.parameter_rows(assessment),
        parts=list(view.parts_of(assessment)),
        policy=settings.policy_rows(assessment),
        provenance=settings.provenance(assessment.about),
        roles=settings.role_rows(assessment.about),
        script=_safe(script),
        # Only this very script may run, so that a column name can never become one.
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
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
    from discreet.io.atomic import check_target, replacing

    path = Path(path)
    check_target(path, overwrite=True)
    page = render_assessment(assessment)
    with replacing(path) as unfinished:
        unfinished.write_text(page, encoding="utf-8", newline="\n")
    return path


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("discreet.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["picture"] = _picture
    environment.filters["unbroken"] = _unbroken
    return environment


def _picture(chart: Chart, name: str) -> Any:
    return _safe(chart_svg(chart, name=name))


def _unbroken(text: str) -> str:
    """Keep a percent sign on the line of its number."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def _safe(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)
