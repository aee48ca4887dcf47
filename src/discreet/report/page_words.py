"""The words of a page: roles, the glossary, settings, references, the verdict, and the order of the measures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.core.cards import card_of
from discreet.core.results import Assessment, Measure
from discreet.core.value_gate import Declared, countable, setting, settings_of
from discreet.core.values import jsonable
from discreet.core.verdicts import Check, Unjudged
from discreet.core.wording import label_of, percent, shown, title_of, worded, words_at
from discreet.policy import MAIN

ROLE_LABELS: dict[str, str] = {
    "keys": "Key",
    "sensitive": "Sensitive",
    "identifiers": "Direct identifier",
    "weight": "Survey weight",
    "household": "Household",
    "strata": "Stratum",
    "location": "Place",
    "person": "Person",
    "contributor": "Contributor",
    "employer": "Employer",
    "time": "Time",
    "psu": "Primary sampling unit",
}

GLOSSARY: dict[str, str] = {
    "Direct identifier": "A column that names a person by itself, such as a name or a tax number.",
    "Group (equivalence class)": "All records with the same values in all keys. Its size is the number of "
    "records an intruder cannot tell apart.",
    "Hold-out": "Real people of the same population who were not used to make the release. What is found out about "
    "them too is not the fault of the release.",
    "Intruder": "Anyone who tries to find a person in the file or to learn something about them. No bad "
    "intent is needed: a neighbor who recognizes someone is an intruder too.",
    "Intruder scenario": "What one kind of intruder is assumed to know. Each scenario has its own keys.",
    "Journalist": "An intruder who does not know who is in the file, but has a list of the population.",
    "k": "The size of the smallest group. With k = 5 every record looks like at least four others.",
    "Key (quasi-identifier)": "A column an intruder may know from elsewhere, such as age, sex or place. "
    "One alone says little; together they can point at one person.",
    "l": "The smallest number of different sensitive values in a group. With l = 1 everyone in some group "
    "has the same value: whoever finds the group knows it.",
    "Marketer": "An intruder who wants to match as many records as possible and accepts errors.",
    "Policy": "The limits an organization has set for a release.",
    "Propensity, pMSE": "The chance, estimated by a model, that a record is a released one. pMSE says how far these "
    "chances are from saying nothing.",
    "S_pMSE": "How many times as far a table is from the original's as a correct synthesis would be by chance: about 1 "
    "is ideal, below 3 good, below 10 acceptable.",
    "Prosecutor": "An intruder who knows that a certain person is in the file.",
    "Sample": "A file about some of the people of a population. Who is alone in it need not be alone in the "
    "population.",
    "Sensitive column": "What must not be learned about a person, such as income or health.",
    "Survey weight": "How many people of the population a record stands for.",
    "Synthetic file": "A file of made-up records that resembles the original. Some may still resemble real people.",
    "t": "The largest distance between the sensitive values of a group and those of the whole file. "
    "With t = 0 knowing the group tells nothing new.",
    "Unique record": "A record that is alone in its group. An intruder who knows the keys has found it.",
}


def flat(value: Any) -> str:
    """Write any value on one line."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {flat(item)}" for name, item in value.items()) or "none"
    if isinstance(value, Sequence | set | frozenset):
        return ", ".join(flat(item) for item in value) or "none"
    return shown(value)


def counted(count: int, noun: str, several: str | None = None) -> str:
    """Write a count with its noun.

    Examples
    --------
    >>> counted(1, "rule"), counted(1200, "rule")
    ('1 rule', '1,200 rules')
    """
    return f"{count:,} {noun if count == 1 else several or noun + 's'}"


# Settings
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
    return [(label, flat(fact)) for label, fact in (*facts, *versions, *reading) if fact is not None]


def parameter_rows(assessment: Assessment) -> list[tuple[str, str, str]]:
    """Return one row a measure: scenario, measure, settings; the keys are those of the scenario."""
    columns = known_columns(assessment)

    def settings(measure: Measure) -> str:
        declared = settings_of("measure", measure.name)
        given = [
            (name, value)
            for name, value in measure.parameters.items()
            if name != "keys" and value is not None
        ]
        written = [
            f"{_spaced(name)}: {_parameter(declared, name, value, columns, show_values=assessment.show_values)}"
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
    leaves = _leaves(jsonable(assessment.policy.to_dict()))
    return [(name, value) for name, value in leaves if value]


def known_columns(assessment: Assessment) -> frozenset[str]:
    """Name every column the assessment speaks of."""
    about = assessment.about
    columns = {str(column) for column in (about.get("missing") or {})}
    for named in (about.get("roles") or {}).values():
        columns.update([named] if isinstance(named, str) else (named or []))
    for scenario in assessment.scenarios.values():
        columns.update(scenario.keys)
    return frozenset(columns)


def _parameter(
    declared: Declared | None, name: str, value: Any, columns: frozenset[str], *, show_values: bool
) -> str:
    """Write a parameter, unless it may hold data values: texts that are not column names, and mappings."""
    if show_values or value is None or isinstance(value, bool | int | float):
        return "none" if value is None else flat(jsonable(value))
    hidden = countable(declared, name, jsonable(value))
    if hidden is not None:
        return counted(hidden, "entry", "entries")
    if isinstance(value, str):
        return "given" if "value" in name else str(setting(declared, name, value))
    entries = list(value) if isinstance(value, Mapping | Sequence | set | frozenset) else None
    if entries is None:
        return type(value).__name__
    safe = all(
        isinstance(entry, int | float) or (isinstance(entry, str) and entry in columns) for entry in entries
    )
    if isinstance(value, Mapping):
        safe = safe and all(isinstance(item, bool | int | float | str) for item in value.values())
    return flat(value) if safe and len(entries) <= 20 else counted(len(entries), "entry", "entries")


def _leaves(tree: Any, above: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(tree, Mapping):
        for name, branch in tree.items():
            yield from _leaves(branch, f"{above} › {_spaced(name)}" if above else _spaced(name))
    elif isinstance(tree, list) and any(isinstance(item, Mapping) for item in tree):
        for place, branch in enumerate(tree, start=1):
            yield from _leaves(branch, f"{above} {place}")
    else:
        yield above, flat(tree)


def _missing(share: Any) -> str:
    return percent(float(share)) if isinstance(share, int | float) else "–"


def _spaced(name: Any) -> str:
    return str(name).replace("_", " ")


# References
def citations(measures: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the citations of the named measures that have one, in the order given, each measure once.

    Examples
    --------
    >>> list(citations(["k_map", "something_new", "k_map"]))
    ['k_map']
    """
    cards = {name: card_of(name) for name in dict.fromkeys(measures)}
    return {name: card.references for name, card in cards.items() if card and card.references}


# The verdict in plain words, rule by rule


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
    accepted = (
        _open_row(rule, f"Accepted by {one.by}, because {one.because}") for rule, one in verdict.accepted
    )
    rows = (
        *accepted,
        *(_row(check) for check in verdict.checks),
        *(_open_row(rule) for rule in verdict.unjudged),
    )
    heading = verdict.heading.replace(f"'{verdict.policy}'", f"“{verdict.policy}”")
    left = f" {verdict.left}." if verdict.unjudged else ""
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
    if verdict.accepted:
        held = f"{counted(count, 'rule')} {_is(count)} met; the others were not judged." if count else ""
        return Answer("open", "!", heading, held, tuple(verdict.accepted_lines), rows)
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


def _open_row(rule: Unjudged, accepted: str = "") -> Row:
    measure, _, figure = rule.rule.partition(".")
    named = (
        f"{title_of(measure)}: {label_of(figure, measure=measure).lower()}" if figure else title_of(measure)
    )
    found = "–" if rule.actual is None else worded(figure or "value", rule.actual, measure=measure)
    result = "Accepted" if accepted else "Not judged" if rule.decided else "Not decided"
    reason = accepted or f"It needs {rule.needs}; {rule.way_out}"
    return Row(named, MAIN, rule.limit, found, reason, "open", "!" if accepted else "?", result)


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


# The order in which a reader meets the measures: by the question behind them, not by their names


@dataclass(frozen=True)
class Chapter:
    """One plain question; which measures answer it, and in which order, is said on their cards."""

    slug: str
    question: str
    introduction: str


CHAPTERS = (
    Chapter(
        "margins",
        "Is each column still what it was?",
        "A column that is wrong by itself is wrong in every table and every model, so columns come first.",
    ),
    Chapter(
        "pairs",
        "Do columns still hang together?",
        "Two columns can each be right and yet have lost each other. Look for a column that is bad with all others: it "
        "went wrong by itself.",
    ),
    Chapter(
        "joint",
        "Can the files be told apart as a whole?",
        "A model tries to tell released records from real ones. The harder that is, the closer the release is to "
        "the original, also where no table of two columns looks.",
    ),
    Chapter(
        "specific",
        "Would analyses come to the same answers?",
        "A release is good or bad for something. These are the analyses that were named.",
    ),
    Chapter(
        "found",
        "Can someone be found?",
        "Someone who knows the keys of a person looks for the record that fits. The fewer records fit, the surer "
        "the find.",
    ),
    Chapter(
        "learned",
        "Can something be learned without finding them?",
        "A person need not be found to be harmed: where everyone who looks like them has the same value, the value "
        "is known.",
    ),
    Chapter(
        "attackers",
        "What three attackers could do",
        "The European opinion on anonymization asks three questions: can somebody be singled out, can records of one "
        "person be linked, and can something be inferred about somebody? Here each is tried, by a program that has the "
        "release and what an attacker might know, against the people in the file and against others who are not in it. "
        "What succeeds against those, too, is general knowledge; only what goes beyond is risk.",
    ),
    Chapter(
        "population",
        "What about the population?",
        "The file may hold only some of the people it could be about. Whoever is alone in it need not be alone among "
        "all of them.",
    ),
    Chapter(
        "keys",
        "Which keys drive it?",
        "Keys do not weigh the same. Those that stand on top are the ones to make coarser first.",
    ),
    Chapter(
        "rebuilt",
        "What could be rebuilt from what is shown?",
        "Tables, explanations of predictions and answers of a service are made from records, and a program can try to "
        "go back. What it finds is held against what it would find without the person it looks for.",
    ),
)

OTHER = Chapter("other", "What else was found?", "Measures that fit under none of the questions above.")


def chapters_of(names: Iterable[str]) -> list[tuple[Chapter, tuple[str, ...]]]:
    """Sort measures into chapters, each in the order of its chapter; unknown ones come last.

    Examples
    --------
    >>> [(chapter.slug, names) for chapter, names in chapters_of(["new", "t_closeness", "l_diversity"])]
    [('learned', ('l_diversity', 't_closeness')), ('other', ('new',))]
    """
    held: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        card = card_of(name)
        held.setdefault(card.chapter if card and card.chapter else OTHER.slug, []).append(name)
    return [
        (chapter, tuple(sorted(held[chapter.slug], key=_place)))
        for chapter in (*CHAPTERS, OTHER)
        if chapter.slug in held
    ]


def leading_of(names: Sequence[str]) -> list[str]:
    """Choose the measures of a chapter that are shown with their pictures at once: the first where none leads."""
    return [name for name in names if (card := card_of(name)) and card.leading] or list(names[:1])


def _place(name: str) -> int:
    card = card_of(name)
    return card.place if card else 0
