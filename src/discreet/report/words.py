"""Plain words for roles, the glossary, and how values and counts are written on a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet.core.wording import shown

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
