"""The verdict in plain words, rule by rule."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.report.words import SHORT_LABELS, counted, label_of
from discreet.results import Assessment, Check
from discreet.wording import title_of, worded

_MOST_REASONS = 5
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
        sentence = f"{len(failed)} of {counted(count, 'rule')} of the policy {_is(len(failed))} not met."
        if undecided:
            sentence += f" {counted(len(undecided), 'rule')} could not be checked."
        heading = f"Does not meet policy “{verdict.policy}”"
        return Answer("fail", "✗", heading, sentence, _reasons(failed), rows)
    if undecided:
        sentence = (
            f"No rule is broken, but {len(undecided)} of {counted(count, 'rule')} could not be checked. "
            "Until they are, the file does not meet the policy."
        )
        heading = f"Cannot say yet whether the file meets policy “{verdict.policy}”"
        return Answer("open", "?", heading, sentence, _reasons(undecided), rows)
    sentence = f"All {counted(count, 'rule')} of the policy {_is(count)} met."
    return Answer("pass", "✓", f"Meets policy “{verdict.policy}”", sentence, (), rows)


def _reasons(checks: list[Check]) -> tuple[str, ...]:
    first = tuple(check.reason for check in checks[:_MOST_REASONS])
    more = len(checks) - len(first)
    return (*first, f"and {more} more; the table below has them all") if more else first


def _row(check: Check) -> Row:
    state, mark, result = _RESULTS[check.passed]
    figure = SHORT_LABELS.get(check.figure, label_of(check.figure, measure=check.measure))
    found = worded(check.figure, check.actual, measure=check.measure) if check.actual is not None else "–"
    rule = title_of(check.measure)
    if check.figure != "value" and figure.lower() != rule.lower():
        rule = f"{rule}: {figure[:1].lower()}{figure[1:]}"
    return Row(rule, check.scenario, check.limit, found, check.reason, state, mark, result)


def _is(count: int) -> str:
    return "is" if count == 1 else "are"
