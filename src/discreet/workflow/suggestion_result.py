"""What was found, and why: the plan to take, what each step buys and costs, and what else could be done."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from discreet import engine
from discreet.core.errors import ParameterError
from discreet.core.values import jsonable
from discreet.core.verdicts import Verdict
from discreet.core.wording import percent, shown
from discreet.microdata import Microdata
from discreet.policy import Policy
from discreet.protect import Plan
from discreet.workflow.plan_search import Search
from discreet.workflow.recipe_trials import Bench
from discreet.workflow.recipes import Frame, Recipe
from discreet.workflow.trials import Trial
from discreet.workflow.usual_treatments import in_a_row, listed

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure as Picture

    from discreet.core.roles import Roles


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
    """

    step: str
    words: str
    loss: float
    cost: float
    alone: int | None
    exposed: int | None


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
    losses
        The share that is lost, column by column.
    search
        Every plan that was tried, as `discreet.search` gives them.
    """

    policy: str
    verdict: Verdict | None
    loss: float | None
    steps: tuple[StepEffect, ...]
    alternatives: tuple[Alternative, ...]
    sentences: tuple[str, ...]
    roles: Roles
    proposed: bool
    losses: Mapping[str, float]
    search: Search
    chosen: Plan | None = None
    obstacles: tuple[str, ...] = ()
    caveats: tuple[str, ...] = field(default=())

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
            "obstacles": list(self.obstacles),
            "sentences": list(self.sentences),
            "caveats": list(self.caveats),
            "roles": self.roles.to_dict(),
            "roles_proposed": self.proposed,
            "tried": len(self.search.trials),
        }

    def __str__(self) -> str:
        lines = list(self.sentences)
        if self.steps:
            lines.append("")
            for number, step in enumerate(self.steps, 1):
                left = (
                    "" if step.exposed is None else f"; {step.exposed:,} records are then in too small groups"
                )
                lines.append(f"{number}. {step.words} Costs {shown(step.cost)}{left}.")
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
    bench: Bench, plan: Plan, frame: Frame, recipe: Recipe
) -> tuple[tuple[StepEffect, ...], Microdata]:
    """Apply the plan afresh, and say after each step what was lost and who still stands out; also give the release."""
    found, before, made = [], 0.0, bench.data
    stages = plan.stages(bench.data, seed=bench.seed)
    for (step, words), release in zip(recipe.steps(frame), stages, strict=True):
        made = release.data
        losses = bench.losses(made)
        loss = sum(bench.weights[column] * lost for column, lost in losses.items())
        alone, exposed = _standing_out(made, frame)
        found.append(StepEffect(step.name, words, loss, max(0.0, loss - before), alone, exposed))
        before = loss
    return tuple(found), made


def _standing_out(made: Microdata, frame: Frame) -> tuple[int | None, int | None]:
    keys = [key for key in frame.keys if key in made.schema]
    if not keys:
        return None, None
    sizes = engine.class_table(made, keys)["records"].to_numpy()
    return int((sizes == 1).sum()), int(sizes[sizes < frame.aims.k].sum())


def alternatives(
    bench: Bench, search: Search, best: Trial, plans: Mapping[str, Plan]
) -> tuple[Alternative, ...]:
    """Pick two plans on the frontier beside the best: the next in loss below it, and one that leaves less risk."""
    loss, risk = best.loss or 0.0, best.risk or 0.0
    known = [trial for trial in search.trials if trial.loss is not None and trial.name != best.name]
    cheaper = [trial for trial in known if trial.on_frontier and (trial.loss or 0.0) < loss and trial.reasons]
    found = []
    if cheaper:
        trial = max(cheaper, key=lambda t: t.loss or 0.0)
        found.append(
            _alternative(
                trial,
                plans,
                f"The plan below it in loss ({percent(trial.loss)}) does not pass: {_lowered(trial.reasons[0])}.",
            )
        )
    safer = [
        t for t in known if t.meets is not False and (t.risk or 0.0) < 0.9 * risk and (t.loss or 0.0) > loss
    ]
    # One that was judged already before one that would have to be.
    for trial in sorted(safer, key=lambda t: (not t.meets, t.loss or 0.0))[:1]:
        if (
            trial.meets
            or bench.judged(
                plans[trial.name].apply(bench.data, seed=bench.seed).data, stop_at_failure=True
            ).meets
        ):
            more = percent((trial.loss or 0.0) - loss)
            sentence = (
                f"For {more} more in loss ({percent(trial.loss)}) another plan that passes lowers the mean chance to "
                f"pick out the right record from {percent(risk)} to {percent(trial.risk)}."
            )
            found.append(_alternative(replace(trial, meets=True, not_judged=""), plans, sentence))
            break
    return tuple(found)


def obstacles_of(bench: Bench, frame: Frame, plans: Mapping[str, Plan], search: Search) -> tuple[str, ...]:
    """Say which rules the plan that came nearest breaks, by how much, in which column, and what would have to give."""
    missed = [trial for trial in search.trials if trial.miss is not None and trial.loss is not None]
    if not missed:
        failed = [trial.failed for trial in search.trials if trial.failed]
        return (f"No plan could be applied: {failed[0]}",) if failed else ()
    nearest = min(missed, key=lambda trial: (trial.miss or 0.0, trial.loss or 0.0))
    made = plans[nearest.name].apply(bench.data, seed=bench.seed).data
    verdict = bench.judged(made)
    said = [f"The plan that came nearest costs {percent(nearest.loss or 0.0)} and breaks these rules:"]
    said += [f"{check.reason}." for check in verdict.failed]
    said += _broken_by_column(made, frame)
    said.append(
        "To pass, one of these has to give: a limit of the policy, a key that nobody outside can know, a sensitive "
        "column that need not be protected, or a column that may be left out."
    )
    return tuple(said)


def _broken_by_column(made: Microdata, frame: Frame) -> list[str]:
    """Count, by sensitive column, the records in classes of the release that break what is asked of classes."""
    keys = [key for key in frame.keys if key in made.schema]
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


def summary(
    policy: Policy,
    *,
    verdict: Any,
    loss: float | None,
    losses: Mapping[str, float],
    others: Sequence[Alternative],
    obstacles: Sequence[str],
    tried: int,
    proposed: bool,
) -> tuple[str, ...]:
    """Write the suggestion down."""
    said = []
    if verdict is not None and verdict.meets:
        said.append(
            f"This plan meets policy '{policy.name}' ({len(verdict.checks)} checks passed on a fresh application) and "
            f"costs {percent(loss or 0.0)} of the information, the least of {tried} plans that were tried."
        )
        most = sorted((item for item in losses.items() if item[1] > 0), key=lambda item: -item[1])[:3]
        if most:
            said.append(
                "Most is lost in " + in_a_row([f"'{name}' ({percent(lost)})" for name, lost in most]) + "."
            )
        erased = [name for name, lost in losses.items() if lost >= 1]
        if erased:
            said.append(f"Nothing is left of {listed(erased)}.")
        said += [other.sentence for other in others]
    else:
        said.append(f"None of the {tried} plans that were tried meets policy '{policy.name}'.")
        said += list(obstacles)
        said += [other.sentence for other in others]
    if proposed:
        said.append(
            "No roles were given: they were proposed by inspect, from names and values. Check them first; the plan "
            "protects against what they say, and nothing else."
        )
    return tuple(said)


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
