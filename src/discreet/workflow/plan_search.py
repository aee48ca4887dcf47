"""Which plan costs least and meets the policy? Run many, mark the frontier, recommend one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from discreet.core.errors import ParameterError
from discreet.core.progress import track
from discreet.core.randomness import fresh_seed
from discreet.core.values import jsonable
from discreet.core.wording import shown
from discreet.engine import Missing
from discreet.microdata import Microdata
from discreet.policy import Policy
from discreet.protect import Plan, Treatment
from discreet.workflow.trials import COST, RISK, Job, Judgment, Ledger, Trial, fingerprint, plan_key, run

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture


_STANDS = {True: "meets", None: "open", False: "fails"}


@dataclass(frozen=True, repr=False)
class Search:
    """The plans that were tried, and the one to take.

    Attributes
    ----------
    trials
        Every plan: those that meet the policy first, the least costly first; equal ones in the order given.
    policy, risk, loss
        What they were judged by; ``risk`` and ``loss`` name the figures on the axes of the map.
    seed
        What every plan was applied with; ``search.plan.apply(data, seed=search.seed)`` gives the file that was judged.
        It stays in the house: whoever has it can undo noise.
    plans
        The plans by name.
    """

    trials: tuple[Trial, ...]
    policy: str
    risk: str
    loss: str
    seed: int
    plans: Mapping[str, Plan] = field(default_factory=dict)
    caveats: tuple[str, ...] = ()

    @property
    def recommended(self) -> Trial | None:
        """The least costly plan that fails no rule of the policy; None where there is none.

        Its ``not_judged`` names what could not be judged here.
        """
        passing = [trial for trial in self.trials if trial.meets is not False and trial.loss is not None]
        return min(passing, key=_by_loss) if passing else None

    @property
    def plan(self) -> Plan:
        """The recommended plan, ready to apply."""
        if self.recommended is None:
            raise ParameterError(
                f"None of the {len(self.trials)} plans meets policy '{self.policy}'. Try stronger ones."
            )
        return self.plans[self.recommended.name]

    @property
    def frontier(self) -> tuple[Trial, ...]:
        """The plans that no other beats in both risk and loss, by falling risk."""
        chosen = [trial for trial in self.trials if trial.on_frontier]
        return tuple(sorted(chosen, key=lambda trial: (-(trial.risk or 0.0), trial.loss or 0.0)))

    @property
    def table(self) -> pl.DataFrame:
        """One row a plan."""
        return pl.DataFrame(
            [
                {
                    "plan": trial.name,
                    "meets": trial.meets,
                    "risk": trial.risk,
                    "loss": trial.loss,
                    "on_frontier": trial.on_frontier,
                    "failed": trial.failed,
                }
                for trial in self.trials
            ],
            schema_overrides={"risk": pl.Float64, "loss": pl.Float64, "failed": pl.String},
        )

    def plot(self) -> Picture:
        """Draw the risk-utility map."""
        from discreet.report.risk_utility_map import draw_map

        return draw_map(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the search, ready for JSON; without the seed, which stays in the house."""
        return {
            "policy": self.policy,
            "risk": self.risk,
            "loss": self.loss,
            "recommended": self.recommended.name if self.recommended else None,
            "trials": [
                {name: jsonable(getattr(trial, name)) for name in Trial.__dataclass_fields__}
                for trial in self.trials
            ],
            "caveats": list(self.caveats),
        }

    def __str__(self) -> str:
        best = self.recommended
        head = f"None of the {len(self.trials)} plans meets policy '{self.policy}'."
        if best is not None:
            what = "what could be judged here of policy" if best.not_judged else "policy"
            left = f" {best.not_judged}." if best.not_judged else ""
            head = f"Take '{best.name}': it meets {what} '{self.policy}' at the lowest loss ({shown(best.loss)}).{left}"
        width = max((len(trial.name) for trial in self.trials), default=0)
        lines = [
            f"  {trial.name:<{width}}  {_STANDS[trial.meets]:<5}  risk {shown(trial.risk):<8}  "
            f"loss {shown(trial.loss):<8}{'  on the frontier' if trial.on_frontier else ''}"
            f"{f'  ({trial.failed})' if trial.failed else ''}"
            for trial in self.trials
        ]
        return "\n".join([head, "", *lines])

    __repr__ = __str__


def search(
    data: Microdata,
    plans: Sequence[Treatment] | Mapping[str, Treatment],
    policy: Policy | str | Path,
    *,
    risk: str = RISK,
    loss: str = COST,
    columns: str | Sequence[str] | None = None,
    missing: Missing = "category",
    workers: int = 1,
    resume: str | Path | None = None,
    progress: bool = False,
    seed: int | None = None,
) -> Search:
    """Which plan meets the policy at the lowest cost?

    Every plan is applied, the result assessed against the policy and compared with the original; the plans that no
    other beats in both risk and loss form the frontier of the risk-utility map.

    Parameters
    ----------
    data
        The file.
    plans
        Plans or single treatments, by name or in order; `plan_grid` makes many from one.
    policy
        A `Policy`, the path of a policy file or the name of a template.
    risk
        The figure on the risk axis: ``measure`` or ``measure.figure``.
    loss
        The figure on the loss axis: ``information_loss`` or ``information_loss.figure``.
    columns
        The columns whose loss counts; all but identifiers and the weight unless named.
    missing
        How missing key values count in the assessment: ``category``, ``wildcard`` or ``drop``.
    workers
        Number of processes. A script that uses more than one runs it under ``if __name__ == "__main__":``.
    resume
        A file that keeps finished trials, so that an interrupted search goes on where it stopped.
    progress
        Show a progress bar on a terminal.
    seed
        Every plan uses it. Without one a fresh seed is drawn, and a resumed search goes on with the first one's.

    Returns
    -------
    Search
        With ``recommended``, ``plan``, ``frontier``, ``table`` and ``plot()``. A plan that cannot be applied is among
        the trials, with the reason under ``failed``.

    Notes
    -----
    The records carry a number through every plan, so that removed and reordered ones are compared with themselves and
    the losses of all plans can be ranked. Each release is judged by all rules of the policy, those about the release by
    itself and those about the release and its original, as `judge` and `compare` do.

    Examples
    --------
    >>> from discreet.protect import Band
    >>> people = pl.DataFrame({"age": [30, 31, 32, 45, 46, 47] * 20, "ill": ["y", "n", "n", "n"] * 30})
    >>> plans = {f"by {width}": Band(widths={"age": width}) for width in (5, 20)}
    >>> found = search(Microdata(people, keys="age", sensitive="ill"), plans, "scientific-use-file", seed=1)
    >>> found.recommended.name
    'by 5'
    """
    named = _named(plans)
    kept = None if columns is None else ((columns,) if isinstance(columns, str) else tuple(columns))
    judgment = Judgment(Policy.load(policy), risk, loss, kept, missing)
    done = Ledger(resume, "" if resume is None else fingerprint(data, judgment, seed))
    chosen = seed if seed is not None else done.seed if done.seed is not None else fresh_seed()
    todo = {name: plan for name, plan in named.items() if (name, plan_key(plan)) not in done}
    jobs = [Job(name, plan, judgment, chosen) for name, plan in todo.items()]
    for trial in track(run(data, jobs, workers), len(jobs), "Trying plans", progress=progress):
        done.add(trial, plan_key(named[trial.name]), chosen)
    trials = [done.trial_of(name, plan) for name, plan in named.items()]
    return Search(
        trials=ranked(trials),
        policy=judgment.rules.name,
        risk=risk,
        loss=loss,
        seed=chosen,
        plans=named,
        caveats=_caveats(named, missing),
    )


def plan_grid(make: Callable[..., Treatment], **choices: Sequence[Any]) -> dict[str, Treatment]:
    """Make one plan for each combination of choices.

    Examples
    --------
    >>> from discreet.protect import Band
    >>> list(plan_grid(lambda width: Band(widths={"age": width}), width=[5, 10]))
    ['width=5', 'width=10']
    """
    names = list(choices)
    combinations = itertools.product(*choices.values())
    return {
        ", ".join(f"{name}={value}" for name, value in zip(names, values, strict=True)): make(
            **dict(zip(names, values, strict=True))
        )
        for values in combinations
    }


def _named(plans: Sequence[Treatment] | Mapping[str, Treatment]) -> dict[str, Plan]:
    if isinstance(plans, Mapping):
        named = dict(plans)
    else:
        named = {(getattr(p, "title", "") or f"plan {i}"): p for i, p in enumerate(plans, start=1)}
        if len(named) < len(plans):
            raise ParameterError("Two plans have the same title. Give each a name: {'name': plan, …}.")
    if not named:
        raise ParameterError("There is no plan to try. Give at least one.")
    return {name: plan if isinstance(plan, Plan) else Plan([plan]) for name, plan in named.items()}


def ranked(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """Mark the frontier and put the trials in order: those that pass first, the least costly first."""
    return _ranked(_with_frontier(trials))


def _with_frontier(trials: Sequence[Trial]) -> list[Trial]:
    """Mark the trials that no other beats: none has less risk and no more loss, or less loss and no more risk."""
    usable = [(t.risk, t.loss) for t in trials if t.risk is not None and t.loss is not None]
    frontier, best = set(), float("inf")
    for risk, loss in sorted(usable):
        if loss < best:
            best = loss
            frontier.add((risk, loss))
    return [replace(trial, on_frontier=(trial.risk, trial.loss) in frontier) for trial in trials]


def _ranked(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    return tuple(sorted(trials, key=lambda trial: (trial.meets is False, *_by_loss(trial))))


def _by_loss(trial: Trial) -> tuple[float, float]:
    worst = float("inf")
    return worst if trial.loss is None else trial.loss, worst if trial.risk is None else trial.risk


def _caveats(plans: Mapping[str, Plan], missing: Missing) -> tuple[str, ...]:
    said = ["The best of many plans on one file is not the best for every file: try it again on next year's."]
    gaps = any(step.to_dict().get("missing") == "wildcard" for plan in plans.values() for step in plan.steps)
    if gaps and missing == "category":
        said.append(
            "Suppressed cells count as a value of their own here, though some plans suppress with missing='wildcard'; "
            "say missing='wildcard' here as well to let them match anything."
        )
    return tuple(said)
