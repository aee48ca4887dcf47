"""The HTML report of an assessment: one file, nothing loaded from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.core.cards import KeyNumber, card_of
from discreet.core.charts import Chart, columns_of
from discreet.core.results import Assessment, Measure, Scenario
from discreet.core.wording import figures_of, label_of, title_of, worded
from discreet.report import page_words
from discreet.report.excerpts import Excerpt, chosen_excerpt, class_excerpt, variable_excerpt
from discreet.report.page_words import (
    GLOSSARY,
    answer_of,
    chapters_of,
    citations,
    flat,
    known_columns,
    leading_of,
)
from discreet.report.plots import charts_of
from discreet.report.templating import rendered, written_page


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
        cards=key_numbers_of(assessment.main) if assessment.scenarios else [],
        citations={title_of(name): texts for name, texts in citations(measures).items()},
        comparison=comparison_of(assessment),
        facts=page_words.file_facts(assessment.about),
        glossary=GLOSSARY,
        not_judged=assessment.not_judged,
        parameters=page_words.parameter_rows(assessment),
        parts=list(parts_of(assessment)),
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


# The findings, worked out from an assessment before any HTML is written.
#
# A measure this module has never heard of is shown by its own words; the template only lays out what it is given.


_FOLDED = (
    ("variables", "By column"),
    ("targets", "By column"),
    ("attributes", "By column"),
    ("sets", "Sets of keys"),
    ("estimates", "The estimates"),
    ("models", "The models tried"),
    ("by_k", "By size of the groups"),
    ("classes", "The riskiest groups"),
    ("cells", "The groups with the largest gain"),
)
_MOST_ROWS = 15
_MOST_NUMBERS = 4


_NUMBERS = ("class", "rank")


@dataclass(frozen=True)
class Finding:
    """One measure of one scenario, ready to be shown."""

    anchor: str
    name: str
    title: str
    question: str
    value: str
    unit: str
    meaning: str
    guarantee: str | None
    caveats: tuple[str, ...]
    figures: tuple[tuple[str, str, str], ...]
    charts: tuple[Chart, ...]
    tables: tuple[tuple[str, Excerpt], ...]
    leading: bool
    plain_words: str = ""
    """What a guarantee means for one person."""

    @property
    def folded(self) -> str:
        """What is folded away under the finding, in words."""
        parts = (
            ["picture" if len(self.charts) == 1 else "pictures"] if self.charts and not self.leading else []
        )
        parts += ["when not to trust it"] if self.caveats and not self.leading else []
        parts += ["all figures"] if self.figures else []
        parts += ["tables"] if self.tables else []
        words = ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else "".join(parts)
        return words[:1].upper() + words[1:]


@dataclass(frozen=True)
class Section:
    """The findings of one scenario that answer one plain question."""

    anchor: str
    question: str
    introduction: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Part:
    """One intruder scenario, ready to be shown."""

    anchor: str
    name: str
    keys: tuple[str, ...]
    sections: tuple[Section, ...]
    skipped: tuple[tuple[str, str], ...]
    riskiest: Excerpt | str | None


def key_numbers_of(scenario: Scenario) -> list[KeyNumber]:
    """Choose the few numbers a reader should remember, each with a sentence."""
    told = []
    for name, measure in scenario.measures.items():
        card = card_of(name)
        if card is not None and card.key_numbers is not None:
            told.append((card.key_numbers, measure))
    told.sort(key=lambda item: item[0].order)
    numbers = [number for by, measure in told for number in by.of(measure)]
    if not any(by.enough for by, _ in told):
        numbers += [
            KeyNumber(worded("value", measure.value, measure=measure.name), measure.title, measure.meaning)
            for measure in list(scenario.measures.values())[:_MOST_NUMBERS]
        ]
    return numbers


def comparison_of(assessment: Assessment) -> Excerpt:
    """Put the scenarios side by side."""
    scenarios = assessment.scenarios.values()
    measured = dict.fromkeys(name for scenario in scenarios for name in scenario.measures)
    present = [
        (name, figure, said.words["scenarios"])
        for _, names in chapters_of(measured)
        for name in sorted(names, key=list(measured).index)
        for figure, said in figures_of(name).items()
        if "scenarios" in said.words
    ]
    rows = [
        (scenario.name, ", ".join(scenario.keys), *(_compared(scenario, *item[:2]) for item in present))
        for scenario in scenarios
    ]
    return Excerpt(
        headings=("Scenario", "The intruder knows", *(item[2] for item in present)),
        numeric=(False, False, *(True for _ in present)),
        rows=tuple(rows),
        total=len(rows),
    )


def parts_of(assessment: Assessment) -> Iterator[Part]:
    """Work out every scenario in turn."""
    for place, scenario in enumerate(assessment.scenarios.values(), start=1):
        anchor = f"scenario-{place}"
        yield Part(
            anchor=anchor,
            name=scenario.name,
            keys=scenario.keys,
            sections=tuple(_sections(assessment, scenario, anchor, main=place == 1)),
            skipped=tuple((title_of(name), reason) for name, reason in scenario.skipped.items()),
            riskiest=_riskiest(scenario.riskiest, scenario.keys, assessment.show_values),
        )


@dataclass(frozen=True)
class _ShownBefore:
    """Pictures (in words) and tables that the scenario has shown already."""

    pictures: set[str]
    tables: set[Excerpt]


def _sections(assessment: Assessment, scenario: Scenario, anchor: str, *, main: bool) -> Iterator[Section]:
    shown_before = _ShownBefore(set(), set())
    for chapter, names in chapters_of(scenario.measures):
        # Only the main scenario opens with pictures; the others are read by whoever wants to compare.
        leading = leading_of(names)
        yield Section(
            anchor=f"{anchor}-{chapter.slug}",
            question=chapter.question,
            introduction=chapter.introduction,
            findings=tuple(
                _finding(
                    assessment,
                    scenario,
                    name,
                    anchor,
                    shown_before=shown_before,
                    leading=main and name in leading,
                )
                for name in names
            ),
        )


def _finding(
    assessment: Assessment,
    scenario: Scenario,
    name: str,
    anchor: str,
    *,
    shown_before: _ShownBefore,
    leading: bool,
) -> Finding:
    measure, card = scenario.measures[name], card_of(name)
    # Measures that rest on the same classes would show the same picture again and again.
    charts = tuple(chart for chart in charts_of(measure) if chart.text not in shown_before.pictures)
    shown_before.pictures.update(chart.text for chart in charts)
    return Finding(
        anchor=f"{anchor}-{re.sub(r'[^A-Za-z0-9_-]', '-', name)}",
        name=name,
        title=measure.title,
        question=card.question if card else "",
        value=worded("value", measure.value, measure=name),
        unit=card.headline if card and measure.value is not None else "",
        meaning=measure.meaning,
        guarantee=measure.guarantee,
        plain_words=measure.private.in_plain_words if measure.private else "",
        caveats=tuple(measure.caveats),
        figures=tuple(
            (label_of(n, measure=name), n, worded(n, figure, measure=name))
            for n, figure in measure.figures.items()
            if figure is not None
        ),
        charts=charts,
        tables=tuple(
            _tables(measure, scenario, known_columns(assessment), assessment.show_values, shown_before.tables)
        ),
        leading=leading,
    )


def _tables(
    measure: Measure, scenario: Scenario, private: frozenset[str], show_values: bool, seen: set[Excerpt]
) -> Iterator[tuple[str, Excerpt]]:
    card = card_of(measure.name)
    chosen = card.tables if card else ()
    for one in chosen:
        excerpt = (
            chosen_excerpt(measure.detail[one.table], one.columns, limit=_MOST_ROWS, measure=measure.name)
            if one.table in measure.detail
            else None
        )
        if excerpt is not None and excerpt.rows:
            yield one.caption, excerpt
    for name, caption in _FOLDED:
        if name not in measure.detail or chosen:
            continue
        table = measure.detail[name]
        if name == "cells" and "gain" not in columns_of(table):
            continue
        if name in ("classes", "cells"):
            keys = tuple(measure.parameters.get("keys") or scenario.keys)
            excerpt = class_excerpt(table, private=private, keys=keys, show_values=show_values)
        else:
            excerpt = variable_excerpt(table, limit=_MOST_ROWS, measure=measure.name)
        # Measures that rest on the same classes would show the same table again and again.
        if excerpt.rows and excerpt not in seen:
            seen.add(excerpt)
            yield caption, excerpt


def _riskiest(
    given: Sequence[Mapping[str, Any]], keys: Sequence[str], show_values: bool
) -> Excerpt | str | None:
    """Lay out the riskiest groups; where they all look the same, one sentence says it."""
    if not given:
        return None
    rows = [_opened(row, show_values) for row in given]
    alike = {tuple((name, str(value)) for name, value in row.items() if name not in _NUMBERS) for row in rows}
    if len(rows) > 1 and len(alike) == 1:
        figures = {name: value for name, value in rows[0].items() if name not in (*_NUMBERS, *keys)}
        said = ", ".join(f"{label_of(name).lower()} {worded(name, value)}" for name, value in figures.items())
        return f"The {len(rows)} riskiest groups look the same: {said}."
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = tuple(tuple(_plainly(name, row.get(name), keys) for name in names) for row in rows)
    numeric = tuple(
        name not in keys and all(isinstance(row.get(name), int | float) for row in rows) for name in names
    )
    headings = tuple(name if name in keys else label_of(name) for name in names)
    return Excerpt(headings, numeric, cells, len(cells))


def _opened(row: Mapping[str, Any], show_values: bool) -> dict[str, Any]:
    """Put the values of a class, which come as a mapping of their own, beside its figures."""
    flat_row = {name: value for name, value in row.items() if not isinstance(value, Mapping)}
    if show_values:
        for values in row.values():
            flat_row.update(values if isinstance(values, Mapping) else {})
    return flat_row


def _plainly(name: str, value: Any, keys: Sequence[str]) -> str:
    if value is None:
        return "–"
    return str(value) if name in keys else flat(worded(name, value))


def _compared(scenario: Scenario, measure: str, figure: str) -> str:
    if measure not in scenario.measures:
        return "left out" if measure in scenario.skipped else "–"
    found = scenario.measures[measure]
    return worded(figure, found.figures.get(figure, found.value), measure=measure)
