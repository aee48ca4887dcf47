"""What may not be there to judge a rule by, and the way out; each is known by its name, not by its words."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "HOLDOUT",
    "LABELS",
    "MODEL",
    "ORIGINAL",
    "POPULATION",
    "POPULATION_SIZE",
    "TARGET",
    "WHOSE",
    "Lack",
]


@dataclass(frozen=True)
class Lack:
    """What is lacking, and where the rule can be judged."""

    needs: str
    way_out: str


ORIGINAL = Lack(
    "the original", "hold it against the original: compare(original, released, policy=…), discreet compare"
)
POPULATION = Lack("a population file", "assess it with population=…, --population")
POPULATION_SIZE = Lack("the size of the population", "assess it with population_size=…, --population-size")
MODEL = Lack(
    "a model that users would fit",
    "name one in compare with models=…, --model, or in the policy under formula",
)
TARGET = Lack("a target to predict", "name it in the policy under [parameters], target")
HOLDOUT = Lack(
    "people who were not used to make the release", "give them to compare with holdout=…, --holdout"
)
LABELS = Lack(
    "to know which values its labels stand for",
    "the files do not show it: judge it where the plan is applied, discreet protect --policy, or keep the order of the "
    "records",
)
WHOSE = Lack(
    "to know which records belong to one person",
    "several may, and the file no longer says which: judge it where the plan is applied, discreet protect --policy, or "
    "keep that column under pseudonyms",
)
