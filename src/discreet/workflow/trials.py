"""Try plans on a file: apply, assess, compare with the original; in several processes, and kept for a restart."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.errors import DiscreetError, InputError, ParameterError, unknown_name
from discreet.core.files.journals import append_line, lines_of
from discreet.core.files.staging import scratch_folder
from discreet.core.files.untrusted import parsed_json
from discreet.core.results import Measure
from discreet.core.values import jsonable
from discreet.engine import Missing
from discreet.microdata import Metadata, Microdata
from discreet.policy import Policy
from discreet.protect import Plan
from discreet.workflow.questions import by_name

COST = "information_loss"
RISK = "reidentification.prosecutor_mean"
"""What plans are weighed by unless a search is told otherwise."""


@dataclass(frozen=True)
class Trial:
    """One plan, tried: what it leaves of the risk, what it costs, and whether the policy is met.

    ``meets`` is None where all that could be judged holds and ``not_judged`` names the rest. ``reasons`` say why the
    policy is not met, ``miss`` by which part of its limit the rule that failed was missed; ``failed`` why the plan
    could not be applied or measured. ``losses`` are the shares lost of single columns, where they were kept, and
    ``weakened`` is the part that is gone of the association that lost most, ``blank`` the share of cells suppressed.
    """

    name: str
    plan: Mapping[str, Any]
    meets: bool | None
    risk: float | None
    loss: float | None
    reasons: tuple[str, ...] = ()
    failed: str | None = None
    on_frontier: bool = False
    not_judged: str = ""
    miss: float | None = None
    losses: Mapping[str, float] = field(default_factory=dict)
    weakened: float = 0.0
    blank: float = 0.0


@dataclass(frozen=True)
class Judgment:
    """What every plan of a search is judged by."""

    rules: Policy
    risk: str
    loss: str
    columns: tuple[str, ...] | None = None
    missing: Missing = "category"

    def __post_init__(self) -> None:
        measure = self.risk.partition(".")[0]
        names = [question.name for question in by_name().values()]
        if measure not in names:
            raise ParameterError(f"risk: {unknown_name(measure, names, what='measure')}")
        if self.loss.partition(".")[0] != COST:
            raise ParameterError(f"loss must be '{COST}' or '{COST}.figure', e.g. '{COST}.il1s_per_cell'.")

    def to_dict(self) -> dict[str, Any]:
        """Return what is judged by, ready for JSON."""
        return {**asdict(self), "rules": self.rules.to_dict()}


@dataclass(frozen=True)
class Job:
    """One plan to try."""

    name: str
    plan: Plan
    judgment: Judgment
    seed: int


class Ledger:
    """Finished trials, kept in a file of one JSON line each when a search is to be resumable."""

    def __init__(self, path: str | Path | None, fingerprint: str) -> None:
        self._path = None if path is None else Path(path)
        self._fingerprint = fingerprint
        self._trials: dict[tuple[str, str], Trial] = {}
        self.seed: int | None = None
        if self._path is not None and self._path.exists():
            self._open(self._path)

    def _open(self, path: Path) -> None:
        # A search that was killed while it wrote leaves half a line; that plan is tried again.
        for line in lines_of(path, begins='{"fingerprint"', what="trials of a search"):
            self._read(line, path.name)

    def _read(self, line: str, file: str) -> None:
        try:
            entry = parsed_json(line)
            given = entry["trial"]
            if entry["fingerprint"] != self._fingerprint:
                return
            numbers = {name: _number(given[name]) for name in ("risk", "loss")}
            trial = Trial(**{**given, **numbers, "reasons": tuple(given["reasons"])})
            self._trials[trial.name, entry["plan"]] = trial
            self.seed = int(entry["seed"])
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"The file '{file}' does not hold trials of a search. Name another file for resume, or delete it."
            ) from error

    def __contains__(self, at: tuple[str, str]) -> bool:
        return at in self._trials

    def trial_of(self, name: str, plan: Plan) -> Trial:
        """Return what came of a plan; the file of trials holds no plan, for a plan may hold values of the data."""
        return replace(self._trials[name, plan_key(plan)], plan=plan.to_dict())

    def add(self, trial: Trial, plan: str, seed: int) -> None:
        """Note a trial; one that failed is not written down, so that it is tried again next time."""
        self._trials[trial.name, plan] = trial
        if self._path is not None and trial.failed is None:
            entry = {
                "fingerprint": self._fingerprint,
                "plan": plan,
                "seed": seed,
                "trial": {**jsonable(trial.__dict__), "plan": {}},
            }
            append_line(self._path, json.dumps(entry))


@dataclass(frozen=True)
class Numbered:
    """A file whose records carry a number through every treatment, so that removed ones are missed afterwards."""

    data: Microdata
    column: str = field(default="")

    @classmethod
    def of(cls, data: Microdata) -> Numbered:
        """Number the records, in a text column without a role that no treatment looks at."""
        column = "record"
        while column in data.columns:
            column = f"{column}_"
        rows = engine.overview(data, ()).rows
        numbers = pl.Series(column, np.arange(rows)).cast(pl.String)
        return cls(data.with_frame(engine.rebuilt(data, {column: numbers}), same_records=True), column)

    def labels(self, made: Microdata) -> pl.DataFrame | None:
        """Give the released values of each original record, empty where it was removed; None where nobody knows."""
        if self.column not in made.schema:
            return None
        after = engine.whole_frame(made)
        rows = engine.overview(self.data, ()).rows
        numbers = pl.DataFrame({self.column: pl.Series(np.arange(rows)).cast(pl.String)})
        return numbers.join(after, on=self.column, how="left", maintain_order="left").drop(self.column)

    def plain(self, data: Microdata) -> Microdata:
        """Take the numbers out again."""
        if self.column not in data.schema:
            return data
        return data.with_frame(engine.rebuilt(data, {}, drop=[self.column]), same_records=True)


def run(data: Microdata, jobs: Sequence[Job], workers: int) -> Iterator[Trial]:
    """Try the plans, in this process or in several."""
    if workers < 1:
        raise ParameterError("workers must be 1 or more.")
    if not jobs:
        return
    numbered = Numbered.of(data)
    if workers == 1 or len(jobs) < 2:
        for job in jobs:
            yield tried(numbered, job)
        return
    with scratch_folder() as folder:
        file = folder / "data.arrow"
        engine.whole_frame(numbered.data).write_ipc(file)
        about = (str(file), data.roles.to_dict(), data.metadata, numbered.column)
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            waiting = [pool.submit(_tried_on_file, *about, job) for job in jobs]
            try:
                for future in as_completed(waiting):
                    yield future.result()
            except BrokenProcessPool as error:
                raise InputError(
                    "A worker process ended before its time: it may have run out of memory (use fewer workers), or "
                    "the script lacks the line if __name__ == '__main__': around its calls. With resume the plans "
                    "already tried are kept."
                ) from error


def _tried_on_file(file: str, roles: Mapping[str, Any], metadata: Metadata, column: str, job: Job) -> Trial:
    return tried(Numbered(Microdata(pl.read_ipc(file), **roles, metadata=metadata), column), job)


def tried(numbered: Numbered, job: Job) -> Trial:
    """Apply one plan, assess what comes out and compare it with the original."""
    from discreet.register import History
    from discreet.utility import information_loss
    from discreet.workflow.aligning import columns_that_count
    from discreet.workflow.assessment import assess
    from discreet.workflow.pairing import with_roles_of
    from discreet.workflow.policy_judgment import judge

    about, plan = job.judgment, job.plan.to_dict()
    try:
        made = job.plan.apply(numbered.data, seed=job.seed).data
        before = numbered.plain(numbered.data)
        after = with_roles_of(before, numbered.plain(made))
        found = assess(after, about.rules, missing=about.missing)
        verdict = judge(
            after,
            about.rules,
            before,
            missing=about.missing,
            measured=found.scenarios,
            labels=numbered.labels(made),
            register=History(),  # it is asked once, about the plan that is applied
        )
        ids = numbered.column if numbered.column in made.schema else None
        original = numbered.data if ids else before
        columns = about.columns or columns_that_count(before, made)[0]
        cost = information_loss(original, made, columns=columns, ids=ids)
    except DiscreetError as error:
        return Trial(job.name, plan, False, None, None, failed=str(error))
    except Exception as error:
        # One plan must not take the whole search down; the text of a foreign error may hold data values.
        reason = f"it broke off with a {type(error).__name__}; apply it alone to see where"
        return Trial(job.name, plan, False, None, None, failed=reason)
    measure = about.risk.partition(".")[0]
    if measure in found.main.skipped:
        exposed, failed = None, f"{measure} was left out: {found.main.skipped[measure]}"
    else:
        exposed, failed = _figure(found.measures[measure], about.risk), None
    return Trial(
        job.name,
        plan,
        verdict.meets,
        exposed,
        _figure(cost, about.loss),
        tuple(check.reason for check in verdict.failed),
        failed,
        not_judged=verdict.left,
    )


def plan_key(plan: Plan) -> str:
    """Tell plans apart by their content."""
    return hashlib.sha256(json.dumps(plan.to_dict(), sort_keys=True).encode()).hexdigest()


def fingerprint(data: Microdata, judgment: Judgment, seed: int | None) -> str:
    """Tell one search from another: the same records, roles, policy, figures and seed."""
    table = engine.whole_frame(data)
    texts = [name for name, kind in table.schema.items() if kind in (pl.Categorical, pl.Enum)]
    rows = table.with_columns(pl.col(texts).cast(pl.String)).hash_rows(seed=0).to_numpy()
    content = hashlib.sha256(np.ascontiguousarray(rows).tobytes()).hexdigest()
    parts = [content, list(data.columns), data.roles.to_dict(), judgment.to_dict(), seed]
    return hashlib.sha256(json.dumps(jsonable(parts), sort_keys=True).encode()).hexdigest()


def _figure(measure: Measure, path: str) -> float | None:
    figure = path.partition(".")[2]
    if figure and figure not in measure.figures:
        raise ParameterError(f"{measure.name}: {unknown_name(figure, measure.figures, what='figure')}")
    value = measure.figures[figure] if figure else measure.value
    if value is not None and not isinstance(value, int | float):
        raise ParameterError(f"The figure '{figure}' of {measure.name} is not a number.")
    return None if value is None else float(value)


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
