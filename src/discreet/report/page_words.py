"""Plain words for roles, the glossary, how values are written on a page, what fixes an assessment, and references."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from discreet.core.cards import card_of
from discreet.core.results import Assessment, Measure
from discreet.core.value_gate import Declared, countable, setting, settings_of
from discreet.core.values import jsonable
from discreet.core.wording import label_of, percent, shown

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


# What fixes an assessment: the file, the settings of its measures, the policy and the run itself.


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


# Where each measure comes from, so that a reader can check the method.


def citations(measures: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the citations of the named measures that have one, in the order given, each measure once.

    Examples
    --------
    >>> list(citations(["k_map", "something_new", "k_map"]))
    ['k_map']
    """
    cards = {name: card_of(name) for name in dict.fromkeys(measures)}
    return {name: card.references for name, card in cards.items() if card and card.references}
