"""What was found: the plan to take, what each step buys and costs, and what else could be done."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from discreet.core.errors import ParameterError
from discreet.core.values import jsonable
from discreet.core.verdicts import Verdict
from discreet.core.wording import shown
from discreet.protect import Plan
from discreet.workflow.plan_search import Search

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
                left = "" if step.exposed is None else f"; {step.exposed:,} records then lack company"
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
