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
from discreet.core.cards import card_of
from discreet.core.errors import DiscreetError, InputError
from discreet.core.files.staging import scratch_folder
from discreet.core.results import Scenario
from discreet.core.verdicts import Check, Verdict
from discreet.microdata import Microdata
from discreet.policy import MAIN, Policy
from discreet.protect import Plan
from discreet.utility.linked_files import same_cells
from discreet.workflow.trials import Ledger, Trial, plan_key
from discreet.workflow.usual_treatments import column_loss

NOT_JUDGED = "it costs more than the best plan that passes"


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
    may_erase
        Whether plans may leave nothing of a column.
    """

    data: Microdata
    policy: Policy
    weights: Mapping[str, float]
    untouched: tuple[str, ...]
    seed: int
    may_erase: bool = False

    def tried(self, name: str, plan: Plan, most: float) -> Trial:
        """Apply a plan and measure it; one that loses as much as the best so far is not judged."""
        try:
            made = plan.apply(self.data, seed=self.seed).data
            losses = self.losses(made)
            changed = [column for column in self.untouched if losses.get(column, 1.0) > 0]
            if changed:
                kept = ", ".join(f"'{column}'" for column in changed)
                return _failed(name, plan, f"it would change {kept}, which must stay")
            erased = [] if self.may_erase else [column for column, lost in losses.items() if lost >= 1]
            if erased:
                gone = ", ".join(f"'{column}'" for column in erased)
                return _failed(name, plan, f"it would leave nothing of {gone}")
            loss = sum(self.weights[column] * lost for column, lost in losses.items())
            risk = _risk(made)
            if loss >= most:
                return Trial(name, plan.to_dict(), None, risk, loss, not_judged=NOT_JUDGED, losses=losses)
            verdict = self.judged(made, stop_at_failure=True)
        except DiscreetError as error:
            return _failed(name, plan, str(error))
        except Exception as error:
            # One plan must not take the whole search down; the text of a foreign error may hold data values.
            return _failed(
                name, plan, f"it broke off with a {type(error).__name__}; apply it alone to see where"
            )
        reasons = tuple(check.reason for check in verdict.failed)
        # What was left aside after a failure is no open question.
        left = "" if reasons else verdict.left
        miss = _miss(self.policy, verdict)
        return Trial(
            name,
            plan.to_dict(),
            verdict.meets,
            risk,
            loss,
            reasons,
            not_judged=left,
            miss=miss,
            losses=losses,
        )

    def losses(self, made: Microdata) -> dict[str, float]:
        """Give the share that is lost of each compared column; all of one that was not released."""
        names = [name for name in self.weights if name in made.schema]
        before, after = engine.collect(self.data, names), engine.collect(made, names)
        return {
            name: column_loss(before[name], after[name]) if name in made.schema else 1.0
            for name in self.weights
        }

    def judged(self, made: Microdata, *, stop_at_failure: bool = False) -> Verdict:
        """Hold the release against the whole policy, by the one function that judges.

        Where keys became those of other people, who looks somebody up by their true keys may find nobody. What is
        learned is then also asked for an intruder who knows into which group a person was put, and the worse counts.
        """
        from discreet.register import History
        from discreet.workflow.policy_judgment import judge

        verdict = judge(made, self.policy, self.data, stop_at_failure=stop_at_failure, register=History())
        if verdict.failed and stop_at_failure:
            return verdict
        return replace(verdict, checks=(*verdict.checks, *self._learned_by_group(made)))

    def _learned_by_group(self, made: Microdata) -> list[Check]:
        """Check what the group of a person gives away, as far as that breaks a rule about looking people up."""
        rules = [rule for rule in self.policy.comparison if _is_asked_by_group(rule.measure)]
        keys = [key for key in self.data.roles.keys if key in made.schema]
        secret = [name for name in self.data.roles.sensitive if name in made.schema]
        before, after = engine.collect(self.data, keys), engine.collect(made, keys)
        if not rules or not secret or not any(_exchanged(before[key], after[key]) for key in keys):
            return []
        told = self.data.with_frame(
            engine.rebuilt(self.data, {key: after[key] for key in keys}), same_records=True
        )
        asked = {
            name: card.function(
                told, made, keys=keys, sensitive=secret, **self.policy.parameters.get(name, {})
            )
            for name in dict.fromkeys(rule.measure for rule in rules)
            if (card := card_of(name))
        }
        checks = [rule.check(Scenario(MAIN, (), asked), table="comparison") for rule in rules]
        return [
            replace(check, reason=f"{check.reason} for who knows the group of a person")
            for check in checks
            if isinstance(check, Check) and not check.passed
        ]


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
            )
            self._pool = ProcessPoolExecutor(self.workers, mp_context=get_context("spawn"))
        return self._pool


_HELD: dict[str, Microdata] = {}


def _tried_elsewhere(about: tuple[Any, ...], name: str, plan: Plan, most: float) -> Trial:
    file, roles, metadata, (policy, weights, untouched, seed), may_erase = about
    if file not in _HELD:
        _HELD.clear()
        _HELD[file] = Microdata(pl.read_ipc(file), **roles, metadata=metadata)
    bench = Bench(_HELD[file], policy, weights, untouched, seed, may_erase)
    return bench.tried(name, plan, most)


def _is_asked_by_group(measure: str) -> bool:
    card = card_of(measure)
    return card is not None and card.compare is not None and card.compare.by_group


def _exchanged(before: pl.Series, after: pl.Series) -> bool:
    """Say whether records have values of others in a column; labels of its own are read off by the judge already."""
    if before.dtype != after.dtype or not after.drop_nulls().is_in(before.unique().implode()).all():
        return False
    shown = after.is_not_null().to_numpy()
    return not bool(same_cells(before, after)[shown].all())


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
