"""The findings of the report, worked out from an assessment before any HTML is written.

A measure this module has never heard of is shown by its own words; the template only lays out what it is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.report.chapters import chapters_of
from discreet.report.charts import Chart, charts_of
from discreet.report.excerpts import Excerpt, chosen_excerpt, class_excerpt, columns_of, variable_excerpt
from discreet.report.settings import known_columns
from discreet.report.words import HEADLINES, QUESTIONS, counted, flat, label_of
from discreet.results import Assessment, Measure, Scenario
from discreet.wording import percent, shown, title_of, worded

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
_CHOSEN: dict[str, tuple[tuple[str, str, tuple[str, ...]], ...]] = {
    "margins": (
        (
            "variables",
            "By column, worst first",
            ("column", "kind", "distance", "wasserstein_sd", "lost_levels", "lost_share", "missing_before",
             "missing_after"),
        ),
    ),
    "tabular": (
        ("tables", "Tables, worst first", ("variables", "S_pMSE", "SPECKS", "JSD", "df", "V_before", "V_after")),
        ("variables", "By column", ("column", "mean_S_pMSE", "max_S_pMSE", "mean_SPECKS", "tables")),
    ),
    "dependence": (
        ("pairs", "Pairs, the largest change first", ("column", "other", "measure", "before", "after", "difference")),
    ),
    "information_loss": (
        ("variables", "By column", ("column", "kind", "loss", "changed", "suppressed", "mean_before", "mean_after")),
    ),
}  # fmt: skip
"""The few columns of the wide tables of a comparison that a reader is shown."""
_MOST_ROWS = 15


_NUMBERS = ("class", "rank")


@dataclass(frozen=True)
class Card:
    """One key number with a plain sentence."""

    number: str
    label: str
    sentence: str


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


def cards_of(scenario: Scenario) -> list[Card]:
    """Choose the few numbers a reader should remember, each with a sentence."""
    return [card for card in _cards(scenario.measures) if card is not None]


def comparison_of(assessment: Assessment) -> Excerpt:
    """Put the scenarios side by side."""
    wanted = (
        ("k_anonymity", "k", "Smallest group (k)"),
        ("uniqueness", "unique_share", "Records alone"),
        ("reidentification", "prosecutor_max", "Highest chance"),
        ("reidentification", "prosecutor_mean", "Average chance"),
        ("l_diversity", "l", "Sensitive values in a group (l)"),
        ("t_closeness", "t", "Distance (t)"),
        ("attribution", "cap_original", "Right guesses"),
        ("individual", "expected_reidentifications", "People expected to be found"),
        ("population", "B", "Chance of a right match in the population"),
        ("k_map", "k", "Smallest group in the population"),
    )
    scenarios = assessment.scenarios.values()
    present = [item for item in wanted if any(item[0] in scenario.measures for scenario in scenarios)]
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


def _cards(measures: Mapping[str, Measure]) -> Iterator[Card | None]:
    figures = {name: measure.figures for name, measure in measures.items()}
    alone = figures.get("uniqueness", {})
    if isinstance(alone.get("unique_share"), float | int):
        share, count = alone["unique_share"], alone.get("unique_records")
        whose = "These records are each" if count is None else f"{shown(count)} records are each"
        whose = "One record is" if count == 1 else whose
        sentence = (
            "No record is alone with its combination of keys."
            if share == 0
            else f"{whose} the only one with that combination of keys."
        )
        yield Card(percent(float(share)), "of the records are alone", sentence)  # type: ignore[arg-type]
    k = measures["k_anonymity"].value if "k_anonymity" in measures else None
    if k is not None:
        others = int(k) - 1
        sentence = (
            "Someone can be singled out by the keys alone."
            if others < 1
            else f"Every record looks like at least {counted(others, 'other')}."
        )
        yield Card(
            shown(k), "record in the smallest group" if k == 1 else "records in the smallest group", sentence
        )
    risks = figures.get("reidentification", {})
    mean = risks.get("prosecutor_mean")
    if isinstance(mean, float | int):
        yield Card(
            percent(float(mean)),
            "average chance of being found",
            "How often an intruder who knows that a person is in the file points at the right record.",
        )
    matches = risks.get("expected_matches")
    if isinstance(matches, float | int) and not isinstance(mean, float | int):
        yield Card(shown(matches), "correct matches expected", "If an intruder tried to match every record.")
    expected = figures.get("individual", {}).get("expected_reidentifications")
    if isinstance(expected, float | int):
        yield Card(
            shown(expected),
            "people expected to be found",
            "If someone tried to match every record with the whole population, by the survey weights.",
        )
    diversity = measures.get("l_diversity")
    if diversity is not None and diversity.value is not None:
        sentence = (
            "In some group everyone has the same sensitive value: to find the group is to know it."
            if diversity.value < 2
            else "Even in the least varied group an intruder must choose between several values."
        )
        label = "sensitive value in the least varied group"
        yield Card(
            shown(diversity.value),
            label if diversity.value == 1 else label.replace("value", "values"),
            sentence,
        )
    closeness = measures.get("t_closeness")
    if closeness is not None and closeness.value is not None:
        yield Card(
            shown(closeness.value),
            "largest distance from the whole file (t)",
            "0 means that knowing the group tells nothing new about the sensitive value.",
        )
    if not figures.keys() & {"uniqueness", "k_anonymity", "reidentification", "l_diversity", "t_closeness"}:
        for measure in list(measures.values())[:4]:
            yield Card(worded("value", measure.value, measure=measure.name), measure.title, measure.meaning)


@dataclass(frozen=True)
class _ShownBefore:
    """Pictures (in words) and tables that the scenario has shown already."""

    pictures: set[str]
    tables: set[Excerpt]


def _sections(assessment: Assessment, scenario: Scenario, anchor: str, *, main: bool) -> Iterator[Section]:
    shown_before = _ShownBefore(set(), set())
    for chapter, names in chapters_of(scenario.measures):
        # Only the main scenario opens with pictures; the others are read by whoever wants to compare.
        leading = [name for name in names if name in chapter.leading] or list(names[:1])
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
    measure = scenario.measures[name]
    # Measures that rest on the same classes would show the same picture again and again.
    charts = tuple(chart for chart in charts_of(measure) if chart.text not in shown_before.pictures)
    shown_before.pictures.update(chart.text for chart in charts)
    return Finding(
        anchor=f"{anchor}-{re.sub(r'[^A-Za-z0-9_-]', '-', name)}",
        name=name,
        title=measure.title,
        question=QUESTIONS.get(name, ""),
        value=worded("value", measure.value, measure=name),
        unit=HEADLINES.get(name, "") if measure.value is not None else "",
        meaning=measure.meaning,
        guarantee=measure.guarantee,
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
    for name, caption, columns in _CHOSEN.get(measure.name, ()):
        excerpt = (
            chosen_excerpt(measure.detail[name], columns, limit=_MOST_ROWS)
            if name in measure.detail
            else None
        )
        if excerpt is not None and excerpt.rows:
            yield caption, excerpt
    for name, caption in _FOLDED:
        if name not in measure.detail or measure.name in _CHOSEN:
            continue
        table = measure.detail[name]
        if name == "cells" and "gain" not in columns_of(table):
            continue
        if name in ("classes", "cells"):
            keys = tuple(measure.parameters.get("keys") or scenario.keys)
            excerpt = class_excerpt(table, private=private, keys=keys, show_values=show_values)
        else:
            excerpt = variable_excerpt(table, limit=_MOST_ROWS)
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
