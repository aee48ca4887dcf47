"""Try recipes on the file: apply, measure the loss, judge what may win; in several processes, kept for a restart."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from types import TracebackType
from typing import Any

import polars as pl

from discreet import engine
from discreet.core.errors import DiscreetError, InputError
from discreet.core.files.staging import scratch_folder
from discreet.core.verdicts import Verdict
from discreet.microdata import Microdata
from discreet.policy import Policy
from discreet.protect import Plan
from discreet.workflow.associations_kept import Association, Associations, price_of_strain
from discreet.workflow.pairing import with_roles_of
from discreet.workflow.trials import Ledger, Numbered, Trial, plan_key
from discreet.workflow.usual_treatments import column_loss

COSTLIER = "it costs more than the best plan so far"
NOT_JUDGED = "the release beside its original"


@dataclass(frozen=True)
class Bench:
    """The file and what every plan is measured by.

    Attributes
    ----------
    data
        The file, in memory.
    policy
        What is judged by.
    weights
        The weight of each compared column in the loss; they add up to 1.
    untouched
        Columns that no plan may change.
    seed
        What every plan is applied with.
    associations
        Those of the file that are worth keeping.
    left_out
        Columns that every plan leaves out.
    may_erase
        Whether plans may leave nothing of another column.
    """

    data: Microdata
    policy: Policy
    weights: Mapping[str, float]
    untouched: tuple[str, ...]
    seed: int
    associations: Associations
    left_out: tuple[str, ...] = ()
    may_erase: bool = False

    def applied(self, plan: Plan) -> Made:
        """Apply a plan to the file with its records numbered, so that they can be followed."""
        numbered = Numbered.of(self.data)
        return self.made(numbered, plan.apply(numbered.data, seed=self.seed).data)

    def staged(self, plan: Plan) -> list[Made]:
        """Give the file as it is, and as each step of a plan leaves it."""
        numbered = Numbered.of(self.data)
        stages = plan.stages(numbered.data, seed=self.seed)
        return [self.made(numbered, numbered.data), *(self.made(numbered, stage.data) for stage in stages)]

    def made(self, numbered: Numbered, data: Microdata) -> Made:
        """Put what a plan, or a part of it, made of the numbered file beside the original."""
        followed = numbered.labels(data)
        released = with_roles_of(self.data, numbered.plain(data))
        return Made(released, engine.whole_frame(released) if followed is None else followed)

    def tried(self, name: str, plan: Plan, most: float) -> Trial:
        """Apply a plan and measure it; only the rules about the release by itself are judged, which takes no time.

        One that loses as much as the best so far is not judged at all.
        """
        try:
            made = self.applied(plan)
            losses = self.losses(made)
            changed = [column for column in self.untouched if losses.get(column, 1.0) > 0]
            if changed:
                kept = ", ".join(f"'{column}'" for column in changed)
                return _failed(name, plan, f"it would change {kept}, which must stay")
            erased = [column for column, lost in losses.items() if lost >= 1 and column not in self.left_out]
            erased = [] if self.may_erase else erased
            if erased:
                gone = ", ".join(f"'{column}'" for column in erased)
                return _failed(name, plan, f"it would leave nothing of {gone}")
            loss = self.total(losses)
            strained = self.strained(made)
            worst = strained[0].lost if strained else 0.0
            gaps = self.total({name: made.share_of_new_gaps(self.data, name) for name in losses})
            trial = Trial(name, plan.to_dict(), None, None, loss, losses=losses, weakened=worst, blank=gaps)
            if felt(trial) >= most:
                return replace(trial, not_judged=COSTLIER)
            verdict = self.quickly(made)
            risk = _risk(made.released)
        except DiscreetError as error:
            return _failed(name, plan, str(error))
        except Exception as error:
            # One plan must not take the whole search down; the text of a foreign error may hold data values.
            return _failed(
                name, plan, f"it broke off with a {type(error).__name__}; apply it alone to see where"
            )
        if not verdict.failed:
            return replace(trial, risk=risk, not_judged=NOT_JUDGED)
        return self.judged_as(replace(trial, risk=risk), verdict)

    def judged_as(self, trial: Trial, verdict: Verdict) -> Trial:
        """Note a verdict on a trial."""
        reasons = tuple(check.reason for check in verdict.failed)
        miss = _miss(self.policy, verdict)
        # What was left aside after a failure is no open question.
        left = "" if reasons else verdict.left
        return replace(trial, meets=verdict.meets, reasons=reasons, miss=miss, not_judged=left)

    def total(self, losses: Mapping[str, float]) -> float:
        """Weigh the losses of the columns."""
        return sum(self.weights[column] * lost for column, lost in losses.items())

    def losses(self, made: Made) -> dict[str, float]:
        """Give the share that is lost of each compared column; all of one that was not released."""
        before = engine.collect(self.data, list(self.weights))
        return {
            name: column_loss(before[name], made.followed[name]) if name in made.followed.columns else 1.0
            for name in self.weights
        }

    def strained(self, made: Made) -> list[Association]:
        """Measure the associations in the release, those that lost most first."""
        return self.associations.kept(made.followed)

    def quickly(self, made: Made) -> Verdict:
        """Hold the release against the rules about a file by itself, and the loss that was measured already."""
        from discreet.register import History
        from discreet.workflow.policy_judgment import judge

        if not self.policy.rules:
            return Verdict(self.policy.name, (), ())
        alone = replace(self.policy, comparison=(), intruder=None)
        verdict = judge(made.released, alone, register=History())
        return replace(verdict, unjudged=())

    def judged(self, made: Made) -> Verdict:
        """Hold the release against the whole policy, by the one function that judges.

        What is said about finding people is also asked while the records still stand in the order of the file, when
        nothing has to be left to chance: what fails there fails.
        """
        from discreet.register import History
        from discreet.workflow.policy_judgment import judge

        nothing = History()  # a draft goes nowhere, and what went out is asked when the release does
        verdict = judge(made.released, self.policy, self.data, labels=made.followed, register=nothing)
        asked = [
            rule for rule in self.policy.comparison if rule.said is not None and rule.said.aim == "found"
        ]
        same = made.followed.height == engine.overview(made.released, ()).rows
        if verdict.failed or not asked or not same:
            return verdict
        ordered = self.data.with_frame(made.followed, same_records=True)
        rules = replace(self.policy, rules=(), comparison=tuple(asked))
        followed = judge(ordered, rules, self.data, register=nothing)
        stricter = [check for check in followed.failed if check.measure in {rule.measure for rule in asked}]
        return replace(verdict, checks=(*verdict.checks, *stricter))


@dataclass(frozen=True)
class Made:
    """What a plan made: the release, and its records in the order of the original, empty where one was removed."""

    released: Microdata
    followed: pl.DataFrame

    def share_of_new_gaps(self, original: Microdata, name: str) -> float:
        """Say which share of a column became missing."""
        if name not in self.followed.columns:
            return 0.0
        before = engine.overview(original, [name]).missing[name]
        return max(0, self.followed[name].null_count() - before) / max(1, self.followed.height)


def felt(trial: Trial) -> float:
    """Give what analysts feel: the information that is lost, gaps twice, and the association that suffers most."""
    return float("inf") if trial.loss is None else trial.loss + trial.blank + price_of_strain(trial.weakened)


@dataclass
class Laboratory:
    """Tries plans, several at a time, until the budget is spent; remembers those that were tried before."""

    bench: Bench
    ledger: Ledger
    workers: int = 1
    deadline: float | None = None
    progress: bool = False
    _opened: ExitStack = field(default_factory=ExitStack, repr=False)
    _pool: ProcessPoolExecutor | None = field(default=None, repr=False)
    _about: tuple[Any, ...] = field(default=(), repr=False)

    def __enter__(self) -> Laboratory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        self._opened.close()

    @property
    def out_of_time(self) -> bool:
        """Whether the time limit is over."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    def run(self, plans: Mapping[str, Plan], most: float) -> list[Trial]:
        """Try the plans and return the trials in the order given; after the time limit the rest is left out."""
        waiting = {name: plan for name, plan in plans.items() if (name, plan_key(plan)) not in self.ledger}
        for trial in self._fresh(waiting, most):
            self.ledger.add(trial, plan_key(plans[trial.name]), self.bench.seed)
        return [
            self.ledger.trial_of(name, plan)
            for name, plan in plans.items()
            if (name, plan_key(plan)) in self.ledger
        ]

    def _fresh(self, plans: Mapping[str, Plan], most: float) -> Sequence[Trial]:
        if self.workers == 1 or len(plans) < 2:
            found = []
            for name, plan in plans.items():
                if self.out_of_time:
                    break
                found.append(self.bench.tried(name, plan, most))
            return found
        pool = self._started()
        about = (*self._about, self.bench.may_erase)
        futures = [pool.submit(_tried_elsewhere, about, name, plan, most) for name, plan in plans.items()]
        try:
            return [future.result() for future in futures]
        except BrokenProcessPool as error:
            raise InputError(
                "A worker process ended before its time: it may have run out of memory (use fewer workers), or the "
                "script lacks the line if __name__ == '__main__': around its calls."
            ) from error

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            file = self._opened.enter_context(scratch_folder()) / "data.arrow"
            bench = self.bench
            engine.whole_frame(bench.data).write_ipc(file)
            self._about = (
                str(file),
                bench.data.roles.to_dict(),
                bench.data.metadata,
                (bench.policy, dict(bench.weights), bench.untouched, bench.seed),
                (bench.associations, bench.left_out),
            )
            self._pool = ProcessPoolExecutor(self.workers, mp_context=get_context("spawn"))
        return self._pool


_HELD: dict[str, Microdata] = {}


def _tried_elsewhere(about: tuple[Any, ...], name: str, plan: Plan, most: float) -> Trial:
    file, roles, metadata, settings, (associations, left_out), may_erase = about
    if file not in _HELD:
        _HELD.clear()
        _HELD[file] = Microdata(pl.read_ipc(file), **roles, metadata=metadata)
    policy, weights, untouched, seed = settings
    bench = Bench(_HELD[file], policy, weights, untouched, seed, associations, left_out, may_erase)
    return bench.tried(name, plan, most)


def _risk(made: Microdata) -> float | None:
    from discreet.risk import reidentification

    if not made.roles.keys:
        return None
    risk = reidentification(made).figures["prosecutor_mean"]
    return float(risk) if isinstance(risk, int | float) else None


def _miss(policy: Policy, verdict: Verdict) -> float | None:
    """Say by which part of its limit the worst of the rules that failed was missed; 1 where nobody can say."""
    limits = {("rules", rule.measure, rule.figure): rule for rule in policy.rules}
    limits |= {("comparison", rule.measure, rule.figure): rule for rule in policy.comparison}
    misses = []
    for check in verdict.failed:
        rule = limits.get((check.table, check.measure, check.figure))
        if rule is None or not isinstance(check.actual, int | float):
            misses.append(1.0)
            continue
        over = 0.0 if rule.at_most is None else (check.actual - rule.at_most) / max(rule.at_most, 0.05)
        under = 0.0 if rule.at_least is None else (rule.at_least - check.actual) / max(rule.at_least, 0.05)
        misses.append(max(over, under))
    return max(misses) if misses else None


def _failed(name: str, plan: Plan, reason: str) -> Trial:
    return Trial(name, plan.to_dict(), False, None, None, failed=reason)
