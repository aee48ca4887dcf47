"""How risky is the file? The whole assessment, and a few figures at once while keys change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from discreet.app.jobs import caused_by
from discreet.app.work.bench import Bench
from discreet.core.errors import ParameterError
from discreet.core.results import Assessment
from discreet.core.wording import percent
from discreet.microdata import Microdata
from discreet.policy import Policy
from discreet.report.assessment_report import key_numbers_of, parts_of
from discreet.report.excerpts import Excerpt
from discreet.report.page_words import answer_of
from discreet.report.plots import chart_svg
from discreet.workflow import assess
from discreet.workflow.advice import coarser_keys
from discreet.workflow.usual_treatments import as_entries, without_identifiers

_MOST_PICTURES = 2


def live_figures(bench: Bench, *, source: Mapping[str, Any], roles: Mapping[str, Any]) -> dict[str, Any]:
    """Say the few numbers that keys decide, at once."""
    from discreet import risk

    data = bench.with_roles(source, roles)
    if not data.roles.keys:
        return {"keys": [], "numbers": []}
    k = risk.k_anonymity(data)
    alone = risk.uniqueness(data)
    found = risk.reidentification(data)
    return {
        "keys": list(data.roles.keys),
        "numbers": [
            {"number": f"{k.value:,}", "label": "people in the smallest group", "sentence": k.meaning},
            {
                "number": percent(float(alone.value or 0)),
                "label": "of the records are alone",
                "sentence": alone.meaning,
            },
            {
                "number": percent(float(found.figures.get("prosecutor_mean") or 0)),
                "label": "average chance of being found",
                "sentence": found.meaning,
            },
        ],
    }


def assess_file(
    bench: Bench,
    *,
    source: Mapping[str, Any],
    roles: Mapping[str, Any],
    policy: str,
    scenarios: Mapping[str, Sequence[str]],
    show_values: bool = False,
) -> dict[str, Any]:
    """Assess the file and lay it out as the report does."""
    data = bench.with_roles(source, roles)
    with caused_by("policy"):
        rules = Policy.load(policy)
    if not data.roles.keys:
        with caused_by("roles"):
            raise ParameterError(
                "No column is a key. Say on the page Columns which columns somebody else may know about a person."
            )
    # Advice on a file that has a name ends in commands; the page has buttons for them.
    nameless = Microdata(data.frame, metadata=replace(data.metadata, source=None), **dict(roles))
    with caused_by("scenarios"):
        found = assess(
            nameless,
            rules,
            scenarios={name: list(keys) for name, keys in scenarios.items()} or None,
            show_values=show_values,
            progress=True,
        )
    return {**assessment_view(found), "steps": _advised(data, found)}


def assessment_view(found: Assessment) -> dict[str, Any]:
    """Lay out an assessment as plain texts: verdict, numbers, findings by chapter, advice."""
    return {
        "answer": asdict(answer_of(found)),
        "line": found.line,
        "numbers": [asdict(number) for number in key_numbers_of(found.main)],
        "not_judged": found.not_judged,
        "advice": list(found.advice),
        "scenarios": [_scenario(part, place) for place, part in enumerate(parts_of(found))],
        "show_values": found.show_values,
    }


def _advised(data: Microdata, found: Assessment) -> list[dict[str, Any]]:
    """Return what the assessment advises as steps of a plan."""
    if found.verdict is not None and found.verdict.meets:
        return []
    dropped = as_entries([without_identifiers()]) if data.roles.identifiers else ()
    coarser = coarser_keys(data, found.main.keys)
    return [*dropped, *(dict(step) for step in (coarser.steps if coarser else ()))]


def _scenario(part: Any, place: int) -> dict[str, Any]:
    chapters = []
    for section in part.sections:
        pictures = [chart for finding in section.findings if finding.leading for chart in finding.charts]
        chapters.append(
            {
                "question": section.question,
                "introduction": section.introduction,
                "findings": [
                    {
                        "title": finding.title,
                        "question": finding.question,
                        "value": finding.value,
                        "unit": finding.unit,
                        "meaning": finding.meaning,
                        "caveats": list(finding.caveats),
                    }
                    for finding in section.findings
                ],
                "pictures": [
                    {"title": chart.title, "svg": chart_svg(chart, name=f"{section.anchor}-{number}")}
                    for number, chart in enumerate(pictures[:_MOST_PICTURES])
                ]
                if place == 0
                else [],
            }
        )
    return {
        "name": part.name,
        "keys": list(part.keys),
        "chapters": chapters,
        "skipped": [list(pair) for pair in part.skipped],
        "riskiest": excerpt_view(part.riskiest),
    }


def excerpt_view(excerpt: Excerpt | str | None) -> Any:
    """Lay out a small table of a report, or the sentence that stands for it."""
    if excerpt is None or isinstance(excerpt, str):
        return excerpt
    return {
        "headings": list(excerpt.headings),
        "numeric": list(excerpt.numeric),
        "rows": [list(row) for row in excerpt.rows],
    }
