"""Plain words for short names: figures, columns of detail tables, roles, and the glossary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet.wording import shown

LABELS: dict[str, str] = {
    "alpha": "Commonest sensitive value in a group, at most",
    "best_guess": "Best guess of an intruder",
    "best_k_without": "Smallest group without the key that matters most",
    "best_unique_share_without": "Share of records alone without the key that matters most",
    "beta": "Largest gain in confidence (beta)",
    "class": "Group",
    "class_size": "Group size",
    "classes": "Groups",
    "classes_above": "Groups above the threshold",
    "classes_below": "Groups below the limit",
    "classes_below_threshold": "Groups below the threshold",
    "classes_over_cap": "Groups over the cap",
    "classes_without_some_value": "Groups that lack some sensitive value",
    "delta": "Largest shift in the odds (delta)",
    "delta_max": "Highest chance of being in the file",
    "delta_min": "Lowest chance of being in the file",
    "distance": "Distance",
    "distinct": "Different values",
    "distinction": "Distinction",
    "enhanced_holds": "Enhanced beta holds",
    "entropy": "Effective number of values (entropy)",
    "expected_matches": "Expected number of correct matches",
    "highest_risk": "Highest chance",
    "homogeneous_classes": "Groups with one sensitive value",
    "homogeneous_records": "Records in groups with one sensitive value",
    "homogeneous_share": "Share of records in groups with one sensitive value",
    "journalist_max": "Highest chance, found in the population (journalist)",
    "journalist_mean": "Average chance, found in the population (journalist)",
    "k": "Smallest group (k)",
    "k_without": "Smallest group without this key",
    "key": "Key",
    "lacks_some_value": "Lacks some sensitive value",
    "keys": "Keys",
    "l": "Different sensitive values in a group, at least (l)",
    "marketer": "Expected share of correct matches (marketer)",
    "measure": "Measure",
    "over_cap": "Over the cap",
    "population": "Group size in the population",
    "population_records": "Records of the population",
    "population_size": "Group size in the population",
    "presence": "Chance of being in the file",
    "prosecutor_max": "Highest chance, known to be in the file (prosecutor)",
    "prosecutor_mean": "Average chance, known to be in the file (prosecutor)",
    "pue": "Share of groups with one record (PUE)",
    "records": "Records",
    "records_above": "Records in groups above the threshold",
    "records_above_threshold": "Records above the risk threshold",
    "records_below": "Records below the limit",
    "records_below_threshold": "Records in groups below the threshold",
    "records_left_out": "Records left out (missing keys)",
    "rfue": "Unique records that are unique in the population too (RFUE)",
    "risk": "Chance of identification",
    "sampling_fraction": "Share of the population in the file",
    "sensitive": "Sensitive column",
    "separation": "Separation",
    "share_above": "Share of records in groups above the threshold",
    "share_above_threshold": "Share of records above the risk threshold",
    "share_below_threshold": "Share of records in groups below the threshold",
    "size": "Number of keys",
    "t": "Distance from the whole file (t)",
    "threshold": "Threshold",
    "unique_records": "Records alone in their group",
    "unique_share": "Share of records alone in their group",
    "unique_share_drop": "Fewer records alone without this key",
    "unique_share_without": "Share of records alone without this key",
}

SHORT_LABELS: dict[str, str] = {
    "journalist_max": "Highest, journalist",
    "journalist_mean": "Average, journalist",
    "l": "Different values (l)",
    "marketer": "Average, marketer",
    "prosecutor_max": "Highest, prosecutor",
    "prosecutor_mean": "Average, prosecutor",
    "share_above_threshold": "Records above threshold",
    "t": "Distance (t)",
}


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

QUESTIONS: dict[str, str] = {
    "uniqueness": "How many people are alone with their combination of keys?",
    "k_anonymity": "How many people share the rarest combination of keys?",
    "reidentification": "How likely is an intruder to point at the right record?",
    "l_diversity": "Can the sensitive value be read off once the group is known?",
    "t_closeness": "How much does knowing the group tell about the sensitive value?",
    "alpha_k": "How common is one sensitive value within a group?",
    "beta_likeness": "How much more confident can an intruder become about a sensitive value?",
    "delta_disclosure": "How far does a group move the odds of a sensitive value?",
    "k_map": "How many people of the population share the rarest combination?",
    "delta_presence": "Can an intruder tell that someone is in the file?",
    "key_contributions": "Which keys make people stand out?",
}

HEADLINES: dict[str, str] = {
    "uniqueness": "of the records are alone",
    "k_anonymity": "smallest group (k)",
    "reidentification": "highest chance",
    "l_diversity": "fewest values in a group (l)",
    "t_closeness": "largest distance (t)",
    "alpha_k": "commonest value, at most (alpha)",
    "beta_likeness": "largest gain (beta)",
    "delta_disclosure": "largest shift (delta)",
    "k_map": "smallest group in the population",
    "delta_presence": "highest chance of being in the file",
    "key_contributions": "of the records no longer alone without one key",
}
"""What the headline value of a measure counts."""

GLOSSARY: dict[str, str] = {
    "Direct identifier": "A column that names a person by itself, such as a name or a tax number.",
    "Group (equivalence class)": "All records with the same values in all keys. Its size is the number of "
    "records an intruder cannot tell apart.",
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
    "Prosecutor": "An intruder who knows that a certain person is in the file.",
    "Sensitive column": "What must not be learned about a person, such as income or health.",
    "t": "The largest distance between the sensitive values of a group and those of the whole file. "
    "With t = 0 knowing the group tells nothing new.",
    "Unique record": "A record that is alone in its group. An intruder who knows the keys has found it.",
}


def label_of(name: str) -> str:
    """Return the words for a figure or a column of a detail table.

    Examples
    --------
    >>> label_of("pue"), label_of("records_below_3"), label_of("some_figure")
    ('Share of groups with one record (PUE)', 'Records in groups smaller than 3', 'Some figure')
    """
    if name in LABELS:
        return LABELS[name]
    start, _, end = name.rpartition("_")
    if start == "records_below" and end.isdigit():
        return f"Records in groups smaller than {end}"
    words = name.replace("_", " ").strip()
    return words[:1].upper() + words[1:]


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
