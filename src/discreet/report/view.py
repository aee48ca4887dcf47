"""What the report says, worked out from an assessment before any HTML is written.

Every key of ``assessment.about`` may be missing, and a measure this module has never heard of is shown by its
own words; the template only lays out what it is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.errors import ParameterError
from discreet.report.charts import Chart, chart_of
from discreet.report.excerpts import Excerpt, class_excerpt, variable_excerpt
from discreet.report.words import QUESTIONS, ROLE_LABELS, SHORT_LABELS, label_of, worded
from discreet.results import Assessment, Check, Measure, Scenario, jsonable, percent, shown, title_of

_FOLDED = (
    ("variables", "By column"),
    ("sets", "Sets of keys"),
    ("classes", "The riskiest groups"),
)
_RESULTS = {True: ("pass", "✓", "Met"), False: ("fail", "✗", "Not met"), None: ("open", "?", "Not decided")}


@dataclass(frozen=True)
class Row:
    """One rule of the policy, ready to be shown."""

    rule: str
    scenario: str
    limit: str
    found: str
    reason: str
    state: str
    mark: str
    result: str


@dataclass(frozen=True)
class Answer:
    """The verdict: its state (``pass``, ``fail``, ``open`` or ``none``), mark, heading, reasons and rules."""

    state: str
    mark: str
    heading: str
    sentence: str
    reasons: tuple[str, ...]
    rows: tuple[Row, ...]


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
    meaning: str
    guarantee: str | None
    caveats: tuple[str, ...]
    figures: tuple[tuple[str, str, str], ...]
    chart: Chart | None
    tables: tuple[tuple[str, Excerpt], ...]


@dataclass(frozen=True)
class Part:
    """One intruder scenario, ready to be shown."""

    anchor: str
    name: str
    keys: tuple[str, ...]
    findings: tuple[Finding, ...]
    skipped: tuple[tuple[str, str], ...]
    riskiest: Excerpt | None


def answer_of(assessment: Assessment) -> Answer:
    """Say whether the file meets the policy, and why not."""
    verdict = assessment.verdict
    if verdict is None:
        return Answer(
            "none",
            "–",
            "No verdict: no policy was named",
            "The report shows the risk. To get a verdict, assess the file again and name a policy.",
            (),
            (),
        )
    failed = [check for check in verdict.checks if check.passed is False]
    undecided = [check for check in verdict.checks if check.passed is None]
    rows = tuple(_row(check) for check in verdict.checks)
    count = len(rows)
    if failed:
        sentence = f"{len(failed)} of {_counted(count, 'rule')} of the policy {_is(len(failed))} not met."
        if undecided:
            sentence += f" {_counted(len(undecided), 'rule')} could not be checked."
        heading = f"Does not meet policy “{verdict.policy}”"
        return Answer("fail", "✗", heading, sentence, tuple(check.reason for check in failed), rows)
    if undecided:
        sentence = (
            f"No rule is broken, but {len(undecided)} of {_counted(count, 'rule')} could not be checked. "
            "Until they are, the file does not meet the policy."
        )
        heading = f"Cannot say yet whether the file meets policy “{verdict.policy}”"
        return Answer("open", "?", heading, sentence, tuple(check.reason for check in undecided), rows)
    sentence = f"All {_counted(count, 'rule')} of the policy {_is(count)} met."
    return Answer("pass", "✓", f"Meets policy “{verdict.policy}”", sentence, (), rows)


def file_facts(about: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what is known about the file, as pairs of words."""
    facts = [
        ("Name", about.get("source")),
        ("Records", about.get("rows")),
        ("Columns", about.get("columns")),
    ]
    return [(label, shown(fact)) for label, fact in facts if fact is not None]


def role_rows(about: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return one row a column that has a role: column, role, share missing."""
    roles, missing = about.get("roles") or {}, about.get("missing") or {}
    rows = []
    for role, columns in roles.items():
        for column in [columns] if isinstance(columns, str) else (columns or []):
            share = missing.get(column)
            rows.append((str(column), ROLE_LABELS.get(role, label_of(role)), _missing(share)))
    named = {row[0] for row in rows}
    rows += [
        (str(column), "No role", _missing(share)) for column, share in missing.items() if column not in named
    ]
    return rows


def provenance(about: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what fixes this very run: checksum, time, engine, versions, how the file was read."""
    facts = [
        ("SHA-256 of the input", about.get("checksum") or "not available: the data did not come from a file"),
        ("Report made", about.get("created")),
        ("Engine", about.get("engine")),
    ]
    versions = [(f"Version of {name}", version) for name, version in (about.get("versions") or {}).items()]
    reading = [(f"Reading: {_spaced(name)}", how) for name, how in (about.get("reading") or {}).items()]
    return [(label, _flat(fact)) for label, fact in (*facts, *versions, *reading) if fact is not None]


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
            findings=tuple(_findings(assessment, scenario, anchor)),
            skipped=tuple((title_of(name), reason) for name, reason in scenario.skipped.items()),
            riskiest=_riskiest(scenario.riskiest, scenario.keys),
        )


def parameter_rows(assessment: Assessment) -> list[tuple[str, str, str]]:
    """Return one row a measure: scenario, measure, settings; the keys are those of the scenario."""
    columns = _known_columns(assessment)

    def settings(measure: Measure) -> str:
        given = [
            (name, value)
            for name, value in measure.parameters.items()
            if name != "keys" and value is not None
        ]
        written = [
            f"{_spaced(name)}: {_parameter(name, value, columns, assessment.show_values)}"
            for name, value in given
        ]
        return "; ".join(written) or "none"

    return [
        (scenario.name, measure.title, settings(measure))
        for scenario in assessment.scenarios.values()
        for measure in scenario.measures.values()
    ]


def policy_rows(assessment: Assessment) -> list[tuple[str, str]]:
    """Return the policy, one row a setting."""
    if assessment.policy is None:
        return []
    return [(name, shown(value)) for name, value in _leaves(jsonable(assessment.policy.to_dict()))]


def _row(check: Check) -> Row:
    state, mark, result = _RESULTS[check.passed]
    figure = SHORT_LABELS.get(check.figure, label_of(check.figure))
    found = worded(check.figure, check.actual, measure=check.measure) if check.actual is not None else "–"
    rule = title_of(check.measure)
    if check.figure != "value" and figure.lower() != rule.lower():
        rule = f"{rule}: {figure[:1].lower()}{figure[1:]}"
    return Row(rule, check.scenario, check.limit, found, check.reason, state, mark, result)


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
            else f"Every record looks like at least {_counted(others, 'other')}."
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


def _findings(assessment: Assessment, scenario: Scenario, anchor: str) -> Iterator[Finding]:
    private = _known_columns(assessment)
    drawn: set[str] = set()
    seen: set[Excerpt] = set()
    for name, measure in scenario.measures.items():
        chart = _chart(measure)
        if chart is not None and chart.text in drawn:
            chart = None
        if chart is not None:
            drawn.add(chart.text)
        tables = tuple(_tables(measure, scenario, private, assessment.show_values, seen))
        yield Finding(
            anchor=f"{anchor}-{re.sub(r'[^A-Za-z0-9_-]', '-', name)}",
            name=name,
            title=measure.title,
            question=QUESTIONS.get(name, ""),
            value=worded("value", measure.value, measure=name),
            meaning=measure.meaning,
            guarantee=measure.guarantee,
            caveats=tuple(measure.caveats),
            figures=tuple(
                (label_of(n), n, worded(n, figure, measure=name)) for n, figure in measure.figures.items()
            ),
            chart=chart,
            tables=tables,
        )


def _tables(
    measure: Measure, scenario: Scenario, private: frozenset[str], show_values: bool, seen: set[Excerpt]
) -> Iterator[tuple[str, Excerpt]]:
    for name, caption in _FOLDED:
        if name not in measure.detail:
            continue
        table = measure.detail[name]
        if name == "classes":
            keys = tuple(measure.parameters.get("keys") or scenario.keys)
            excerpt = class_excerpt(table, private=private, keys=keys, show_values=show_values)
        else:
            excerpt = variable_excerpt(table)
        # Measures that rest on the same classes would show the same table again and again.
        if excerpt.rows and excerpt not in seen:
            seen.add(excerpt)
            yield caption, excerpt


def _chart(measure: Measure) -> Chart | None:
    try:
        return chart_of(measure)
    except ParameterError:
        return None


def _riskiest(rows: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> Excerpt | None:
    if not rows:
        return None
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = tuple(tuple(_plainly(name, row.get(name), keys) for name in names) for row in rows)
    numeric = tuple(
        name not in keys and all(isinstance(row.get(name), int | float) for row in rows) for name in names
    )
    headings = tuple(name if name in keys else label_of(name) for name in names)
    return Excerpt(headings, numeric, cells, len(cells))


def _plainly(name: str, value: Any, keys: Sequence[str]) -> str:
    if value is None:
        return "–"
    return str(value) if name in keys else _flat(worded(name, value))


def _compared(scenario: Scenario, measure: str, figure: str) -> str:
    if measure not in scenario.measures:
        return "left out" if measure in scenario.skipped else "–"
    found = scenario.measures[measure]
    return worded(figure, found.figures.get(figure, found.value), measure=measure)


def _known_columns(assessment: Assessment) -> frozenset[str]:
    about = assessment.about
    columns = {str(column) for column in (about.get("missing") or {})}
    for named in (about.get("roles") or {}).values():
        columns.update([named] if isinstance(named, str) else (named or []))
    for scenario in assessment.scenarios.values():
        columns.update(scenario.keys)
    return frozenset(columns)


def _parameter(name: str, value: Any, columns: frozenset[str], show_values: bool) -> str:
    """Write a parameter, unless it may hold data values: texts that are not column names, and mappings."""
    if show_values or value is None or isinstance(value, bool | int | float):
        return "none" if value is None else _flat(jsonable(value))
    if isinstance(value, str):
        return "given" if "value" in name else value
    entries = list(value) if isinstance(value, Mapping | Sequence | set | frozenset) else None
    if entries is None:
        return type(value).__name__
    safe = all(isinstance(entry, int | float) or entry in columns for entry in entries)
    if isinstance(value, Mapping):
        safe = safe and all(isinstance(item, bool | int | float | str) for item in value.values())
    return _flat(value) if safe and len(entries) <= 20 else _counted(len(entries), "entry", "entries")


def _leaves(tree: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(tree, Mapping):
        for name, branch in tree.items():
            yield from _leaves(branch, f"{above} › {_spaced(name)}" if above else _spaced(name))
    elif isinstance(tree, list) and any(isinstance(item, Mapping) for item in tree):
        for place, branch in enumerate(tree, start=1):
            yield from _leaves(branch, f"{above} {place}")
    else:
        yield above, _flat(tree)


def _flat(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_flat(item)}" for name, item in value.items()) or "none"
    if isinstance(value, Sequence | set | frozenset):
        return ", ".join(_flat(item) for item in value) or "none"
    return shown(value)


def _missing(share: Any) -> str:
    return percent(float(share)) if isinstance(share, int | float) else "–"


def _spaced(name: Any) -> str:
    return str(name).replace("_", " ")


def _counted(count: int, noun: str, several: str | None = None) -> str:
    return f"{count:,} {noun if count == 1 else several or noun + 's'}"


def _is(count: int) -> str:
    return "is" if count == 1 else "are"
