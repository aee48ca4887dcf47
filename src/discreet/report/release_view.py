"""The parts of a release report, worked out before any HTML is written."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.core.cards import Figure, card_of
from discreet.core.charts import finite, rows_of
from discreet.core.results import Assessment, Measure, Step
from discreet.core.value_gate import Declared, countable, holds_expressions, setting, settings_of
from discreet.core.values import jsonable
from discreet.core.verdicts import Check
from discreet.core.wording import percent, shown, title_of, worded
from discreet.protect import Treatment
from discreet.report.excerpts import Excerpt
from discreet.report.page_words import Answer, answer_of, counted, flat
from discreet.workflow import ReleaseReport

_KINDS = {
    "bands": "numbers to labels",
    "category": "categories",
    "dropped": "not released",
    "number": "numbers",
}
_MOST_NUMBERS = 12
_MOST_NAMED = 6
_MOST_COLUMNS = 40
_MOST_ENTRIES = 12
_COLUMN_HEADINGS = (
    "Column",
    "Compared as",
    "Loss",
    "Cells changed",
    "Of them suppressed",
    "Mean moved by",
    "Spread kept",
)


@dataclass(frozen=True)
class StepView:
    """One step of the plan, ready to be shown."""

    number: int
    name: str
    purpose: str
    settings: tuple[tuple[str, str], ...]
    cells: Excerpt
    removed: int
    notes: tuple[str, ...]
    withheld: bool = False

    @property
    def done(self) -> str:
        """What the step did, in one line."""
        parts = []
        if self.cells.rows:
            named = [f"{changed} in {name}" for name, changed, _ in self.cells.rows[:_MOST_NAMED]]
            more = len(self.cells.rows) - len(named)
            parts.append(f"Cells changed: {', '.join(named)}{f' and {more} more columns' if more else ''}")
        if self.removed:
            parts.append(f"{counted(self.removed, 'record')} removed")
        none = "How much it changed is in the internal log only" if self.withheld else "No cell changed"
        return f"{'; '.join(parts) or none}."


@dataclass(frozen=True)
class RiskRow:
    """One figure before and after, and in which direction it went."""

    label: str
    before: str
    after: str
    change: str
    state: str


@dataclass(frozen=True)
class RuleRow:
    """One rule of the policy, held against both files."""

    rule: str
    limit: str
    before: str
    after: str
    state: str
    mark: str
    result: str


def steps_of(report: ReleaseReport) -> list[StepView]:
    """Lay out every step: what it is for, its settings, and what it changed."""
    columns = frozenset(
        [
            *(name for step in report.release.log for name in step.changed_cells),
            *report.release.data.columns,
            *(report.about.get("columns_left_out") or ()),
        ]
    )
    return [
        _step(number, step, columns, report.show_values)
        for number, step in enumerate(report.release.log, start=1)
    ]


def risk_rows(report: ReleaseReport) -> list[RiskRow]:
    """Put the figures of both files side by side; a figure that neither has is left out."""
    rows = []
    held = [found.measures for found in (report.before, report.after) if found is not None]
    for measure, figure, said_by in _told(dict.fromkeys(name for measures in held for name in measures)):
        numbers = [_figure(found, measure, figure) for found in (report.before, report.after)]
        if numbers == [None, None]:
            continue
        change, state = _direction(*numbers, larger_is_riskier=said_by.better == "lower")
        said = [
            _said(found, measure, figure, value)
            for found, value in zip((report.before, report.after), numbers, strict=True)
        ]
        rows.append(RiskRow(said_by.words["change"], said[0], said[1], change, state))
    return rows


def answers_of(report: ReleaseReport) -> tuple[Answer | None, Answer]:
    """Return the verdict on the original (None without a policy) and on the release."""
    before = answer_of(report.before) if report.before and report.before.verdict else None
    if report.verdict is not None:
        return before, answer_of(Assessment({}, {}, verdict=report.verdict))
    if report.after is None:
        sentence = "The release has no key columns, so there is nothing an intruder could be assumed to know."
        return None, Answer("none", "–", "No verdict: the release has no keys", sentence, (), ())
    return before, answer_of(report.after)


def rule_rows(report: ReleaseReport) -> list[RuleRow]:
    """Hold every rule of the policy against both files."""
    if report.verdict is None:
        return []
    _, answer = answers_of(report)
    earlier: dict[tuple[str, ...], Check] = {}
    if report.before and report.before.verdict:
        earlier = {_place(check): check for check in report.before.verdict.checks}
    rows = []
    checks: list[Check | None] = [*report.verdict.checks]
    checks += [None] * (len(answer.rows) - len(checks))
    for check, row in zip(checks, answer.rows, strict=True):
        then = earlier.get(_place(check)) if check is not None else None
        was = "–" if then is None or then.actual is None else _worded(then)
        rows.append(RuleRow(row.rule, row.limit, was, row.found, row.state, row.mark, row.result))
    return rows


def column_losses(cost: Measure) -> Excerpt:
    """Lay out what each column that was changed has lost, the most first."""
    rows = rows_of(cost, "variables", "column", "loss")
    rows = [row for row in rows if row["loss"] or row.get("changed")]
    rows.sort(key=lambda row: (-(row["loss"] or 0.0), str(row["column"])))
    cells = tuple(
        (
            str(row["column"]),
            _KINDS.get(str(row.get("kind")), str(row.get("kind"))),
            percent(row["loss"]),
            _counted(row.get("changed")),
            _counted(row.get("suppressed")),
            _mean_move(row),
            _spread(row),
        )
        for row in rows[:_MOST_COLUMNS]
    )
    return Excerpt(_COLUMN_HEADINGS, (False, False, *(True,) * 5), cells, len(rows))


def untouched_words(cost: Measure) -> str:
    """Say how many columns have lost nothing."""
    rows = rows_of(cost, "variables", "column", "loss")
    same = sum(1 for row in rows if not row["loss"] and not row.get("changed"))
    return f"{counted(same, 'column')} left untouched." if same else ""


def cost_cards(cost: Measure) -> list[tuple[str, str, str]]:
    """Choose the few numbers about the cost that a reader should remember."""
    figures = cost.figures
    if not figures:
        return []
    cards = [
        (
            percent(float(cost.value)) if cost.value is not None else "undefined",
            "of the information is lost",
            "0 % is the file as it was, 100 % a file that says nothing. The mean over all columns.",
        )
    ]
    if finite(figures.get("share_cells_changed")):
        changed, empty = shown(figures["cells_changed"]), shown(figures["cells_suppressed"])
        cards.append(
            (
                worded("share_cells_changed", figures["share_cells_changed"]),
                "of the cells were changed",
                f"{changed} cells, of which {empty} are empty now.",
            )
        )
    if finite(figures.get("records_removed")):
        removed, records = int(figures["records_removed"] or 0), int(figures["records"] or 0)
        sentence = "Every record is still there." if not removed else f"Of {records:,} records."
        cards.append((shown(removed), "record removed" if removed == 1 else "records removed", sentence))
    if finite(figures.get("share_means_in_interval")):
        cards.append(
            (
                worded("share_means_in_interval", figures["share_means_in_interval"]),
                "of the means hold",
                "Numeric columns whose mean lies within the confidence interval of the original mean.",
            )
        )
    if finite(figures.get("largest_correlation_change")):
        cards.append(
            (
                shown(figures["largest_correlation_change"]),
                "largest change of a correlation",
                "Between two numeric columns, on a scale from 0 to 2.",
            )
        )
    return cards


def setting_words(value: Any, columns: frozenset[str], *, show_values: bool) -> str:
    """Write a setting of a treatment; what may hold data values is counted, not shown.

    Examples
    --------
    >>> setting_words({"age": 10}, frozenset({"age"}), show_values=False)
    'age: 10'
    >>> setting_words({"town": {"Ulm": "South"}}, frozenset({"town"}), show_values=False)
    'town: 1 entry'
    """
    plain = jsonable(value)
    if show_values or plain is None or isinstance(plain, bool | int | float | str):
        return flat(plain)
    if isinstance(plain, Mapping):
        if not set(plain) <= columns and not all(_number(item) for item in plain.values()):
            return counted(len(plain), "entry", "entries")
        if len(plain) > _MOST_ENTRIES:
            return counted(len(plain), "entry", "entries")
        named = {name if name in columns else name.replace("_", " "): item for name, item in plain.items()}
        return ", ".join(f"{name}: {_inner(item, columns)}" for name, item in named.items())
    if all(isinstance(item, Mapping) and "model" in item for item in plain):
        return "; ".join(_model(item, columns) for item in plain)
    return _inner(plain, columns)


def _step(number: int, step: Step, columns: frozenset[str], show_values: bool) -> StepView:
    declared = settings_of("treatment", step.treatment)
    kind = Treatment.known.get(step.treatment)
    purpose = (inspect.getdoc(kind) or "").partition("\n")[0] if kind else ""
    changed = [(name, count) for name, count in step.changed_cells.items() if count]
    rows = tuple(
        (name, f"{count:,}", f"{step.suppressed_cells.get(name, 0):,}")
        for name, count in sorted(changed, key=lambda item: -item[1])
    )
    return StepView(
        number=number,
        name=step.treatment,
        purpose=purpose,
        settings=tuple(
            (name.replace("_", " "), _setting(declared, name, value, columns, show_values=show_values))
            for name, value in step.parameters.items()
            if value is not None
        ),
        cells=Excerpt(
            ("Column", "Cells changed", "Of them suppressed"), (False, True, True), rows, len(rows)
        ),
        removed=step.removed_records,
        notes=tuple(step.notes),
        withheld=step.counts_withheld,
    )


def _setting(
    declared: Declared | None, name: str, value: Any, columns: frozenset[str], *, show_values: bool
) -> str:
    """Write a setting as its treatment declares it."""
    plain = jsonable(value)
    if not show_values:
        hidden = countable(declared, name, plain)
        if hidden is not None:
            return counted(hidden, "entry", "entries")
        if holds_expressions(declared, name):
            plain = setting(declared, name, plain)
    return setting_words(plain, columns, show_values=show_values)


def _inner(value: Any, columns: frozenset[str]) -> str:
    if isinstance(value, bool | int | float):
        return shown(value)
    if isinstance(value, str):
        return value if value in columns else "given"
    if isinstance(value, Mapping):
        return f"hierarchy ({value['kind']})" if "kind" in value else counted(len(value), "entry", "entries")
    if isinstance(value, list):
        if all(_number(item) for item in value) and len(value) <= _MOST_NUMBERS:
            # Breaks and widths are set by the plan; years must not get a thousands mark.
            return ", ".join(f"{item:g}" if isinstance(item, float) else str(item) for item in value)
        if all(isinstance(item, str) and item in columns for item in value):
            return ", ".join(value)
        if all(isinstance(item, list) for item in value) and len(value) <= _MOST_NUMBERS:
            return "; ".join(_inner(item, columns) for item in value)
        return counted(len(value), "entry", "entries")
    return "given"


def _model(item: Mapping[str, Any], columns: frozenset[str]) -> str:
    rest = ", ".join(
        f"{name.replace('_', ' ')} {value if isinstance(value, str) else _inner(value, columns)}"
        for name, value in item.items()
        if name != "model"
    )
    return f"{item['model']} ({rest})" if rest else str(item["model"])


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _told(names: Iterable[str]) -> list[tuple[str, str, Figure]]:
    """List the figures that are held against each other before and after, in the order in which they were asked."""
    cards = [card for name in names if (card := card_of(name)) is not None and card.assess is not None]
    cards.sort(key=lambda card: card.assess.order if card.assess else 0)
    return [
        (card.name, figure, said)
        for card in cards
        for figure, said in card.figures.items()
        if "change" in said.words
    ]


def _figure(found: Assessment | None, measure: str, figure: str) -> float | None:
    if found is None or measure not in found.measures:
        return None
    held = found.measures[measure]
    value = held.value if figure == "value" else held.figures.get(figure)
    return value if isinstance(value, int | float) else None


def _said(found: Assessment | None, measure: str, figure: str, value: float | None) -> str:
    if value is not None:
        return worded(figure, value, measure=measure)
    return "left out" if found is not None and measure in found.main.skipped else "–"


def _direction(before: float | None, after: float | None, *, larger_is_riskier: bool) -> tuple[str, str]:
    if before is None or after is None:
        return "cannot be compared", "none"
    if before == after:
        return "no change", "none"
    riskier = (after > before) == larger_is_riskier
    return ("riskier", "fail") if riskier else ("safer", "pass")


def _place(check: Check) -> tuple[str, ...]:
    return check.table, check.measure, check.figure, check.scenario


def _worded(check: Check) -> str:
    return worded(check.figure, check.actual, measure=check.measure)


def _counted(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else "–"


def _mean_move(row: Mapping[str, Any]) -> str:
    before, after, spread = row.get("mean_before"), row.get("mean_after"), row.get("sd_before")
    if not (finite(before) and finite(after) and finite(spread)) or not spread:
        return "–"
    return f"{shown(round(abs(after - before) / spread, 4))} sd"


def _spread(row: Mapping[str, Any]) -> str:
    before, after = row.get("sd_before"), row.get("sd_after")
    if not (finite(before) and finite(after)) or not before:
        return "–"
    return percent(after / before)


def skipped_words(report: ReleaseReport) -> Sequence[tuple[str, str]]:
    """Name the measures that were left out of the assessment of the release, and why."""
    if report.after is None:
        return ()
    return [(title_of(name), reason) for name, reason in report.after.main.skipped.items()]
