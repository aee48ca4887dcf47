"""A recipe: which coding each column gets, and how the rest is protected. It turns into a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from discreet.protect import (
    ClassSwap,
    DropIdentifiers,
    KAnonymity,
    LocalSuppression,
    Microaggregate,
    Mondrian,
    OptimalGeneralization,
    Plan,
    Round,
    TopBottomCode,
    Treatment,
)
from discreet.protect.generalizing.privacy_models import PrivacyModel
from discreet.workflow.coding_ladders import Ladder
from discreet.workflow.column_coding import coding_steps
from discreet.workflow.suggesting.aims import Aims

SUPPRESS, REGROUP, ALONG, GATHER, NOTHING = "suppress", "regroup", "along", "gather", "nothing"


@dataclass(frozen=True)
class Frame:
    """What is the same for all recipes of one file.

    Attributes
    ----------
    drop
        Columns that leave the file.
    keys
        The columns by which people are found.
    ladders
        The codings of the columns that may be coarsened, by name.
    aims
        What every class must fulfil.
    cautious
        ``{key: factor}``: how much more it costs to suppress a cell of that key.
    swaps
        What swaps of sensitive values between classes aim at, the weakest first; the first are none.
    company_for_swaps
        How large classes must be for swaps to reach the weakest of these aims.
    needed
        ``(column, rung)``: the codings of sensitive columns without which no class could meet the models.
    numbers
        ``{column: (base, share)}``: numbers that one person has alone, each with the base they are rounded to and the
        share of largest values that are shown as their mean.
    """

    drop: tuple[str, ...]
    keys: tuple[str, ...]
    ladders: Mapping[str, Ladder]
    aims: Aims
    cautious: Mapping[str, float]
    swaps: tuple[tuple[PrivacyModel, ...], ...] = ((),)
    company_for_swaps: int = 2
    needed: tuple[tuple[str, int], ...] = ()
    numbers: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def movable(self) -> tuple[str, ...]:
        """The columns that a recipe may code in several ways."""
        return tuple(column for column, ladder in self.ladders.items() if len(ladder) > 1)


@dataclass(frozen=True)
class Recipe:
    """One way to protect a file.

    Attributes
    ----------
    rungs
        ``(column, rung)`` for the columns that are coarsened.
    finish
        What is done about records that still stand out: ``suppress`` cells, ``regroup`` records and show the range of
        each group, do so ``along`` the codings of the columns, ``gather`` the most similar records and show the keys of
        one of them, or ``nothing``.
    k
        The company that the last step aims at.
    hide
        Whether records in classes that break another rule lose all their keys at the end.
    swap
        Which of the aims of swaps between classes is reached at the end; 0 for none.
    """

    rungs: tuple[tuple[str, int], ...] = ()
    finish: str = SUPPRESS
    k: int = 2
    hide: bool = False
    swap: int = 0

    def rung(self, column: str) -> int:
        """Give the rung of a column; 0 is the column as it is."""
        return dict(self.rungs).get(column, 0)

    def with_rung(self, column: str, rung: int) -> Recipe:
        """Return the recipe with another coding of one column."""
        rungs = {**dict(self.rungs), column: rung}
        return replace(self, rungs=tuple(sorted((name, place) for name, place in rungs.items() if place)))

    def plan(self, frame: Frame, title: str = "") -> Plan:
        """Turn the recipe into a plan that names its columns, so that it runs without roles."""
        steps: list[Treatment] = []
        if frame.drop:
            steps.append(DropIdentifiers(list(frame.drop)))
        steps += _number_steps(frame.numbers)
        chosen = {
            column: (rung.kind, rung.setting)
            for column, place in self.rungs
            if (rung := frame.ladders[column].rungs[place]).kind
        }
        steps += coding_steps(chosen)
        keys = list(frame.keys)
        swapped = frame.swaps[self.swap]
        models = [model for model in frame.aims.models if model not in swapped]
        if self.finish == SUPPRESS and keys:
            costs = {key: cost for key, cost in frame.cautious.items() if key in frame.keys and cost != 1}
            steps.append(LocalSuppression(k=self.k, importance=costs or None, missing="category", keys=keys))
        if self.finish == GATHER and keys:
            steps.append(Microaggregate(k=self.k, columns=keys, measure="member"))
        if self.finish in (SUPPRESS, GATHER) and keys and self.hide and models:
            steps.append(
                OptimalGeneralization(
                    [KAnonymity(max(2, frame.aims.k)), *models], suppression_limit=0.5, keys=keys
                )
            )
        if self.finish == REGROUP and keys:
            steps.append(Mondrian(models=[KAnonymity(self.k), *models], keys=keys))
        if self.finish == ALONG and keys:
            above = {key: frame.ladders[key].hierarchy_above(self.rung(key)) for key in keys}
            hierarchies = {key: hierarchy for key, hierarchy in above.items() if hierarchy is not None}
            steps.append(Mondrian(models=[KAnonymity(self.k), *models], hierarchies=hierarchies, keys=keys))
        if swapped and keys:
            steps.append(ClassSwap(list(swapped), keys=keys))
        return Plan(steps, title)


def _number_steps(numbers: Mapping[str, tuple[float, float]]) -> list[Treatment]:
    """Show the largest numbers as their mean, and round all of them."""
    if not numbers:
        return []
    tops = {column: share for column, (_, share) in numbers.items()}
    bases = {column: base for column, (base, _) in numbers.items()}
    return [TopBottomCode(top_share=tops, replacement="mean"), Round(bases)]
