"""Plain words for short names: measures, roles, and the glossary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet.report.figure_words import LABELS, OWN_LABELS
from discreet.wording import shown

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
    "individual": "How likely is each person to be found in the population?",
    "special_uniques": "Who stands out on few keys already, and which keys do it?",
    "unsafe_combinations": "Which few keys taken together are too rare?",
    "population": "How likely is a match between the file and the population right?",
    "known_population": "How likely is a match right, counted in the population itself?",
    "log_linear": "How many of those alone in the file are alone in the population?",
    "isolation": "How much better than a blind guess does the file single people out?",
    "attribution": "How often can a sensitive value be guessed from the keys?",
    "attribute_disclosure": "What can be learned about one column from a synthetic file?",
    "disclosure": "What can be learned about every column from a synthetic file?",
    "replicated_uniques": "How many people alone in the original are alone in the release too?",
    "replicated_special_uniques": "How many released records stand out just as somebody of the original does?",
    "group_disclosure": "Which groups does the release say something true about as a whole?",
    "near_copies": "How many people come back in the release, whole or almost?",
    "neighbours": "Does the release keep too close to the people it was made from?",
    "linkage": "How many released records can be led back to their person?",
    "spatial_k": "How many places are as near to a released point as the right one?",
    "outliers": "Can the people who stand out be found again in the release?",
    "series": "What do averaged curves give away about one contributor?",
    "differencing": "Who becomes identifiable when two releases are compared?",
    "overlapping_tables": "Can records be rebuilt from tables that overlap?",
    "information_loss": "How much less do the columns say than before?",
    "margins": "Does each column, by itself, have the shares and quantiles it had?",
    "tabular": "Do tables of one and two columns say what they said?",
    "dependence": "Are relations between two columns as strong as they were?",
    "pmse": "Can a tree tell released records from real ones?",
    "pmse_logit": "Can a model that looks at each column by itself tell them apart?",
    "transport": "How far would whole records have to be moved?",
    "compare_model": "Would an analyst of the release come to the same conclusions?",
    "train_on_synthetic": "Does a model trained on the release predict real people as well?",
    "importance_shift": "Does a model rely on the same features?",
    "gini_change": "Does a tree grown on the release separate real groups as well?",
    "new_rows": "How many released records match no real one?",
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
    "individual": "average chance of being found in the population",
    "special_uniques": "of the records are alone on few keys",
    "unsafe_combinations": "of the records have a rare combination",
    "population": "chance that a match is right (B)",
    "known_population": "chance that a match is right (B)",
    "log_linear": "right matches on unique records (tau2)",
    "isolation": "times the blind guess, at most",
    "attribution": "of the guesses are right",
    "attribute_disclosure": "of the people (DiSCO)",
    "disclosure": "of the people, worst column (DiSCO)",
    "replicated_uniques": "of the records are alone in both files",
    "replicated_special_uniques": "of those who stand out do so like a real person",
    "group_disclosure": "of what is told about groups is true",
    "linkage": "of the released records led back",
    "near_copies": "of the people come back, beyond chance",
    "neighbours": "distance to the closest original, median",
    "outliers": "outliers with exactly one match",
    "spatial_k": "records that too few places hide",
    "series": "of the averages give the largest away",
    "differencing": "people become identifiable",
    "overlapping_tables": "of the records rebuilt",
    "information_loss": "of the information is lost",
    "margins": "largest distance of a column",
    "tabular": "worst standardized difference (S_pMSE)",
    "dependence": "mean change of a relation",
    "pmse": "mean squared propensity difference (pMSE)",
    "pmse_logit": "mean squared propensity difference (pMSE)",
    "transport": "mean cost a record",
    "compare_model": "mean overlap of intervals",
    "train_on_synthetic": "loss of predictive power",
    "importance_shift": "of the importance moved",
    "gini_change": "more impurity",
    "new_rows": "of the records are new",
}
"""What the headline value of a measure counts."""

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


def label_of(name: str, *, measure: str = "") -> str:
    """Return the words for a figure (of a measure, where that matters) or a column of a detail table.

    Examples
    --------
    >>> label_of("pue"), label_of("records_below_3"), label_of("some_figure")
    ('Share of groups with one record (PUE)', 'Records in groups smaller than 3', 'Some figure')
    """
    if (measure, name) in OWN_LABELS:
        return OWN_LABELS[measure, name]
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
