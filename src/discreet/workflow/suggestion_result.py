"""What was found, and why: the plan to take, what each step buys and costs, and what else could be done."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from discreet import engine
from discreet.core.cards import card_of
from discreet.core.errors import ParameterError
from discreet.core.values import jsonable
from discreet.core.verdicts import Verdict
from discreet.core.wording import percent, shown
from discreet.engine.comparable import as_text, plain_text
from discreet.microdata import Microdata
from discreet.protect import Plan
from discreet.workflow.associations_kept import WEAKENED, Association
from discreet.workflow.inspection import Inspection
from discreet.workflow.plan_search import Search
from discreet.workflow.recipe_trials import Bench, Made
from discreet.workflow.recipes import Frame, Recipe
from discreet.workflow.trials import Trial
from discreet.workflow.usual_treatments import in_a_row, listed

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure as Picture

    from discreet.core.roles import Roles

_MOST_EXAMPLES = 6
_MOST_SAID = 3


@dataclass(frozen=True)
class StepEffect:
    """What one step of the plan buys and costs.

    Attributes
    ----------
    step
        The treatment.
    words
        What it does, with the columns it does it to.
    loss
        What the release has lost up to and including this step.
    cost
        What this step adds to the loss.
    alone
        Records that are alone with their keys after it.
    exposed
        Records in groups smaller than the policy asks for.
    examples
        Cells that it changes, before and after; before they are masked unless values may be shown.
    """

    step: str
    words: str
    loss: float
    cost: float
    alone: int | None
    exposed: int | None
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class Alternative:
    """Another plan worth a look, and why it was not taken."""

    name: str
    plan: Plan
    meets: bool | None
    risk: float | None
    loss: float | None
    sentence: str


@dataclass(frozen=True, repr=False)
class Suggestion:
    """A plan that meets the policy at a low loss, or the reasons why none was found.

    Attributes
    ----------
    verdict
        Of the one function that judges, on a fresh application of the plan; None where no plan passes.
    loss
        What the plan costs: the mean, over columns and by their importance, of the share that is lost.
    steps
        What each step buys and costs, in order.
    alternatives
        Two plans on the frontier beside the one suggested: one that costs less, and one that leaves less risk.
    sentences
        All of it in plain words.
    roles
        The roles the file was protected by; ``proposed`` says whether they were only proposed by `inspect`.
    assumed
        The proposed roles in words, and why.
    losses
        The share that is lost, column by column.
    associations
        The associations of two columns that the plan weakens, those that lose most first.
    search
        Every plan that was tried, as `discreet.search` gives them.
    """

    policy: str
    roles: Roles
    proposed: bool
    search: Search
    verdict: Verdict | None = None
    loss: float | None = None
    steps: tuple[StepEffect, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    sentences: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    losses: Mapping[str, float] = field(default_factory=dict)
    associations: tuple[Association, ...] = ()
    chosen: Plan | None = None
    obstacles: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()

    @property
    def meets(self) -> bool:
        """Whether a plan was found that meets the policy."""
        return bool(self.verdict is not None and self.verdict.meets)

    @property
    def plan(self) -> Plan:
        """The plan to take; it names its columns, so that it runs without roles."""
        if self.chosen is None:
            raise ParameterError(
                f"No plan was found that meets policy '{self.policy}': {self.obstacles[0] if self.obstacles else ''} "
                "See .meaning for what would have to give."
            )
        return self.chosen

    @property
    def seed(self) -> int:
        """What the plan was judged with; it stays in the house."""
        return self.search.seed

    @property
    def meaning(self) -> str:
        """The suggestion in plain sentences."""
        return "\n".join(self.sentences)

    @property
    def table(self) -> pl.DataFrame:
        """One row a plan that was tried: whether it meets the policy, its risk and its loss."""
        return self.search.table

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the plan to a TOML file that ``discreet protect --plan`` runs; it holds no seed and no secret."""
        return self.plan.save(path, overwrite=overwrite)

    def plot(self) -> Picture:
        """Draw the risk-utility map of the plans that were tried."""
        return self.search.plot()

    def to_dict(self) -> dict[str, Any]:
        """Return the suggestion, ready for JSON; without the seed, which stays in the house."""
        return {
            "policy": self.policy,
            "meets": self.meets,
            "verdict": None if self.verdict is None else self.verdict.line,
            "loss": self.loss,
            "losses": jsonable(self.losses),
            "plan": None if self.chosen is None else jsonable(self.chosen.to_dict()),
            "steps": [jsonable(step.__dict__) for step in self.steps],
            "alternatives": [
                {
                    **{
                        name: jsonable(getattr(other, name))
                        for name in ("name", "meets", "risk", "loss", "sentence")
                    },
                    "plan": jsonable(other.plan.to_dict()),
                }
                for other in self.alternatives
            ],
            "associations": [jsonable(one.__dict__) for one in self.associations],
            "assumed": list(self.assumed),
            "obstacles": list(self.obstacles),
            "sentences": list(self.sentences),
            "caveats": list(self.caveats),
            "roles": self.roles.to_dict(),
            "roles_proposed": self.proposed,
            "tried": len(self.search.trials),
        }

    def __str__(self) -> str:
        lines = list(self.sentences)
        lines += (
            ["", "Roles that were assumed:", *(f"  {line}" for line in self.assumed)] if self.assumed else []
        )
        if self.steps:
            lines.append("")
            for number, step in enumerate(self.steps, 1):
                left = (
                    "" if step.exposed is None else f"; {step.exposed:,} records are then in too small groups"
                )
                lines.append(f"{number}. {step.words} Costs {percent(step.cost)}{left}.")
                lines += [f"   {example}" for example in step.examples]
        lines += ["", *(f"Note: {caveat}" for caveat in self.caveats)] if self.caveats else []
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        steps = "".join(
            f"<li>{html.escape(step.words)} Costs {html.escape(str(shown(step.cost)))}.</li>"
            for step in self.steps
        )
        said = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in self.sentences)
        return f"{said}<ol>{steps}</ol>"


# What does each step buy and cost, what else lies on the frontier, and what stands in the way? In plain sentences.


def step_effects(
    bench: Bench, frame: Frame, recipe: Recipe, stages: Sequence[Made], *, show_values: bool = False
) -> tuple[StepEffect, ...]:
    """Say after each step what was lost, who still stands out, and what the cells look like that it changes."""
    loss, found = 0.0, []
    for (step, words), before, made in zip(recipe.steps(frame), stages, stages[1:], strict=False):
        now = bench.total(bench.losses(made))
        alone, exposed = _standing_out(made.released, frame)
        examples = () if now == loss else tuple(_examples(before, made, show_values=show_values))
        found.append(StepEffect(step.name, words, now, max(0.0, now - loss), alone, exposed, examples))
        loss = now
    return tuple(found)


def _examples(before: Made, after: Made, *, show_values: bool) -> Iterator[str]:
    """Give one changed cell of each of a few columns; a gap says no more than that there is one."""
    there = [name for name in before.followed.columns if name in after.followed.columns]
    given = 0
    for name in there:
        old, new = (as_text(plain_text(side.followed[name])) for side in (before, after))
        changed = (old.is_not_null() & new.is_not_null() & (old != new)).arg_true()
        if given < _MOST_EXAMPLES and len(changed):
            given += 1
            shown_as = (
                old[changed[0]] if show_values else re.sub(r"\w", "x", re.sub(r"\d", "9", old[changed[0]]))
            )
            yield f"'{name}': {shown_as} → {new[changed[0]] if show_values or _is_label(old, new) else 'another value'}"


def _is_label(old: pl.Series, new: pl.Series) -> bool:
    """Whether what is shown instead are labels that no record had before: bands, periods, groups."""
    return not bool(new.is_in(old.unique().implode()).any())


def _standing_out(made: Microdata, frame: Frame) -> tuple[int | None, int | None]:
    keys = [key for key in frame.all_keys if key in made.schema]
    if not keys:
        return None, None
    sizes = engine.class_table(made, keys)["records"].to_numpy()
    return int((sizes == 1).sum()), int(sizes[sizes < frame.aims.k].sum())


def alternatives(search: Search, best: Trial, plans: Mapping[str, Plan]) -> tuple[Alternative, ...]:
    """Pick two plans beside the best: the next in loss below it, which keeps more, and one that leaves less risk."""
    loss, risk = best.loss or 0.0, best.risk or 0.0
    known = [trial for trial in search.trials if trial.loss is not None and trial.name != best.name]
    found = []
    keeping = [trial for trial in known if (trial.loss or 0.0) < loss and trial.reasons]
    if keeping:
        trial = max(keeping, key=lambda t: t.loss or 0.0)
        why = _lowered(trial.reasons[0])
        said = f"Keeps more: a plan that costs {percent(trial.loss)} does not pass, for {why}."
        found.append(_alternative(trial, plans, said))
    safer = [t for t in known if t.meets is not False and t.risk is not None and t.risk < 0.9 * risk]
    if safer:
        trial = min(safer, key=lambda t: t.loss or 0.0)
        said = (
            f"Protects more: for a loss of {percent(trial.loss)} the mean chance to pick out the right record falls "
            f"from {percent(risk)} to {percent(trial.risk)}; this plan was not judged beside the original."
        )
        found.append(_alternative(trial, plans, said))
    return tuple(found)


def obstacles_of(bench: Bench, frame: Frame, tried: Mapping[Recipe, Trial]) -> tuple[str, ...]:
    """Say which rules the plan that came nearest breaks, by how much, in which column, and what would have to give."""
    missed = {recipe: trial for recipe, trial in tried.items() if trial.miss is not None}
    if not missed:
        failed = [trial.failed for trial in tried.values() if trial.failed]
        return (f"No plan could be applied: {failed[0]}",) if failed else ()
    nearest = min(missed, key=lambda recipe: (missed[recipe].miss or 0.0, missed[recipe].loss or 0.0))
    made = bench.applied(nearest.plan(frame))
    verdict = bench.judged(made)
    said = [f"The plan that came nearest costs {percent(missed[nearest].loss)} and breaks these rules:"]
    said += [f"{check.reason}." for check in verdict.failed]
    said += [f"Open: {open_.rule} needs {open_.needs}." for open_ in verdict.unjudged]
    said += _broken_by_column(made.released, frame)
    said.append(
        "To pass, one of these has to give: a limit of the policy, a key that nobody outside can know, a sensitive "
        "column that need not be protected, or a column that may be left out."
    )
    return tuple(said)


def _broken_by_column(made: Microdata, frame: Frame) -> list[str]:
    """Count, by sensitive column, the records in classes of the release that break what is asked of classes."""
    keys = [key for key in frame.all_keys if key in made.schema]
    if not keys:
        return []
    counted: dict[str, int] = {}
    for model in frame.aims.models:
        for column in model.columns:
            if column in made.schema:
                counts = engine.class_counts(made, keys, column)
                broken = model.violations(_One(counts))
                counted[column] = max(counted.get(column, 0), int(counts.sizes[broken].sum()))
    worst = sorted((item for item in counted.items() if item[1]), key=lambda item: -item[1])[:3]
    if not worst:
        return []
    parts = [f"'{column}' ({count:,} records)" for column, count in worst]
    return [f"Groups give away most of {in_a_row(parts)}."]


class _One:
    """The classes of one sensitive column, as a privacy model asks for them."""

    def __init__(self, counts: engine.ClassCounts) -> None:
        self.counts = counts
        self.sizes = counts.sizes

    def values(self, column: str) -> engine.ClassCounts:
        """Give the counts."""
        return self.counts

    def population(self, model: Any) -> Any:
        """Not asked for here: no aim is about the population."""
        return self.sizes


def _alternative(trial: Trial, plans: Mapping[str, Plan], sentence: str) -> Alternative:
    return Alternative(trial.name, plans[trial.name], trial.meets, trial.risk, trial.loss, sentence)


def assumed_roles(proposed: Inspection) -> tuple[str, ...]:
    """Say which role each column was given, and why."""
    return tuple(
        f"'{row['column']}': {_ROLE_WORDS.get(row['role'], row['role'] or 'no role')} ({row['reasons']})"
        for row in proposed.columns.iter_rows(named=True)
    )


_ROLE_WORDS = {
    "keys": "others may know it",
    "sensitive": "must not become known",
    "identifiers": "says who somebody is",
    "weight": "survey weight",
}


def summary(found: Suggestion, tried: int) -> Suggestion:
    """Write the suggestion down."""
    said = list(_what_suffers(found))
    verdict = found.verdict
    if verdict is not None and verdict.meets:
        said.append(
            f"This plan meets policy '{found.policy}' ({len(verdict.checks)} checks passed on a fresh application) and "
            f"costs {percent(found.loss or 0.0)} of the information, the least of {tried} plans that were tried."
        )
        most = sorted((item for item in found.losses.items() if item[1] > 0), key=lambda item: -item[1])[:3]
        if most:
            said.append(
                "Most is lost in " + in_a_row([f"'{name}' ({percent(lost)})" for name, lost in most]) + "."
            )
        erased = [name for name, lost in found.losses.items() if lost >= 1]
        if erased:
            said.append(f"Nothing is left of {listed(erased)}.")
        left = [
            check.reason
            for check in verdict.checks
            if check.table == "comparison" and _is_risk(check.measure)
        ]
        if left:
            said.append(f"What an intruder can still do: {'; '.join(_lowered(one) for one in left)}.")
    else:
        said.append(f"None of the {tried} plans that were tried meets policy '{found.policy}'.")
        said += list(found.obstacles)
    said += [other.sentence for other in found.alternatives]
    if found.proposed:
        said.append(
            "No roles were given: they were proposed by inspect, from names and values. Check them first; the plan "
            "protects against what they say, and nothing else."
        )
    return replace(found, sentences=tuple(said))


def _what_suffers(found: Suggestion) -> Iterator[str]:
    """Say first which associations lose more than a third, and which turn round."""
    worst = [one for one in found.associations if one.lost > WEAKENED]
    if worst:
        more = f"; so do {len(worst) - _MOST_SAID} more pairs of columns" if len(worst) > _MOST_SAID else ""
        yield f"Mind this first: {'; '.join(one.sentence for one in worst[:_MOST_SAID])}{more}."
    elif found.associations:
        one = found.associations[0]
        yield (
            f"Associations stay: the one that suffers most, of '{one.column}' and '{one.other}', keeps "
            f"{percent(1 - one.lost)} of its strength."
        )


def _is_risk(measure: str) -> bool:
    card = card_of(measure)
    return card is not None and card.compare is not None and card.compare.side == "risk"


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
