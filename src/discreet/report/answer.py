"""The verdict in plain words, rule by rule."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.core.results import Assessment
from discreet.core.verdicts import Check, Unjudged
from discreet.core.wording import label_of, title_of, worded, words_at
from discreet.policy import MAIN
from discreet.report.page_words import counted

_MOST_REASONS = 5
_RESULTS = {True: ("pass", "✓", "Met"), False: ("fail", "✗", "Not met"), None: ("open", "?", "Not checked")}


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
    rows = (*(_row(check) for check in verdict.checks), *(_open_row(rule) for rule in verdict.unjudged))
    heading = verdict.heading.replace(f"'{verdict.policy}'", f"“{verdict.policy}”")
    left = f" Not judged here: {verdict.left}." if verdict.unjudged else ""
    count = len(verdict.checks)
    if verdict.failed:
        broken = [check for check in verdict.checks if check.passed is False]
        undecided = [check for check in verdict.checks if check.passed is None]
        sentence = f"{len(broken)} of {counted(count, 'rule')} of the policy {_is(len(broken))} not met."
        if undecided:
            rest = "could not be checked, which counts as not met"
            sentence = (
                f"{sentence} {counted(len(undecided), 'rule')} {rest}."
                if broken
                else (f"No rule is broken, but {len(undecided)} of {counted(count, 'rule')} {rest}.")
            )
        return Answer("fail", "✗", heading, sentence + left, _reasons([*broken, *undecided]), rows)
    if verdict.unjudged:
        held = f"{counted(count, 'rule')} {_is(count)} met. " if count else ""
        sentence = f"{held}That clears nothing yet.{left}"
        return Answer("open", "?", heading, sentence, tuple(verdict.left_lines), rows)
    sentence = f"All {counted(count, 'rule')} of the policy {_is(count)} met."
    return Answer("pass", "✓", heading, sentence, (), rows)


def _reasons(checks: list[Check]) -> tuple[str, ...]:
    first = tuple(check.reason for check in checks[:_MOST_REASONS])
    more = len(checks) - len(first)
    return (*first, f"and {more} more; the table below has them all") if more else first


def _row(check: Check) -> Row:
    state, mark, result = _RESULTS[check.passed]
    figure = words_at("axis", check.figure) or label_of(check.figure, measure=check.measure)
    found = worded(check.figure, check.actual, measure=check.measure) if check.actual is not None else "–"
    rule = title_of(check.measure)
    if check.figure != "value" and figure.lower() != rule.lower():
        rule = f"{rule}: {figure[:1].lower()}{figure[1:]}"
    return Row(rule, check.scenario, check.limit, found, check.reason, state, mark, result)


def _open_row(rule: Unjudged) -> Row:
    measure, _, figure = rule.rule.partition(".")
    named = (
        f"{title_of(measure)}: {label_of(figure, measure=measure).lower()}" if figure else title_of(measure)
    )
    return Row(
        named, MAIN, rule.limit, "–", f"It needs {rule.needs}; {rule.way_out}", "open", "?", "Not judged"
    )


def _is(count: int) -> str:
    return "is" if count == 1 else "are"
