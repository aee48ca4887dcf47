"""From a file and a policy to a plan that passes: what is suggested, from the file alone."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.errors import ColumnError, ParameterError, unknown_name
from discreet.core.randomness import fresh_seed
from discreet.core.usual_names import suggests_weight
from discreet.engine.comparable import plain_text
from discreet.microdata import Microdata
from discreet.policy import Policy
from discreet.protect import Plan
from discreet.risk.knowable_columns import PATTERN, knowable_columns
from discreet.workflow.associations_kept import Associations
from discreet.workflow.coding_ladders import Ladder, following, ladder_of, outcome_ladder, twins_of
from discreet.workflow.inspection import Inspection, inspect
from discreet.workflow.plan_search import Search, ranked
from discreet.workflow.recipe_forecast import Forecast
from discreet.workflow.recipe_search import BUDGETS, Budget, Explorer
from discreet.workflow.recipe_trials import Bench, Laboratory, Made
from discreet.workflow.recipes import (
    Aims,
    Frame,
    Recipe,
    aims_of,
    can_be_dealt_out,
    codings_needed,
    company_for_swaps,
    own_numbers,
)
from discreet.workflow.suggestion_result import (
    Suggestion,
    alternatives,
    assumed_roles,
    obstacles_of,
    step_effects,
    summary,
)
from discreet.workflow.trials import COST, RISK, Judgment, Ledger, fingerprint
from discreet.workflow.usual_treatments import DROPPED, SWAPPED, as_entries, plainly_named

Effort = Literal["quick", "normal", "thorough"]
_NO_END = 10**6
_PRECIOUS = 1_000.0  # how much more a suppressed cell costs in a column that is to be kept


def suggest(
    data: Microdata | Any,
    policy: Policy | str | Path,
    *,
    effort: Effort | float = "normal",
    keep: str | Sequence[str] | Mapping[str, Any] = (),
    importance: Mapping[str, float] | None = None,
    workers: int = 1,
    resume: str | Path | None = None,
    progress: bool = False,
    show_values: bool = False,
    seed: int | None = None,
) -> Suggestion:
    """Which plan makes this file meet the policy, at the lowest loss?

    Values become coarser first: dates months, quarters and years, codes their first characters, ages and amounts round
    bands, rare categories groups. Hundreds of such codings are forecast, a few are tried, cells are suppressed where
    somebody still stands out, and sensitive values change places between groups only where that costs much less than
    still coarser keys. The winner is applied afresh and judged by the function that judges everywhere.

    Parameters
    ----------
    data
        The file. Without keys and sensitive columns the roles that `inspect` proposes are taken, and the result says
        so.
    policy
        A `Policy`, the path of a policy file or the name of a template.
    effort
        ``quick``, ``normal`` or ``thorough``: how many plans are tried, by the size of the file and not the clock. Or a
        number of seconds after which the best plan so far is taken; which one that is depends on the machine.
    keep
        Columns that must not be touched. Or ``{column: detail}``, with the least detail that must stay: the widest
        band of a number such as an age, the fewest bands or groups of other columns, the fewest characters of a code,
        the coarsest unit of a date (``"month"``, ``"quarter"``, ``"year"``, ``"decade"``); ``True`` for as it is.
    importance
        ``{column: weight}``: how much a column counts in the loss; 1 unless named.
    workers
        Number of processes. A script that uses more than one runs it under ``if __name__ == "__main__":``.
    resume
        A file that keeps finished trials, so that an interrupted search goes on where it stopped.
    progress
        Say what is found on the way, on a terminal. Whoever interrupts the search gets the best plan so far.
    show_values
        Show values of the file in the examples; else they are masked.
    seed
        Plans that draw at random are applied with it. Same file, same policy, same seed: same plan. Without one a
        fresh seed is drawn, and a resumed search goes on with the first one's. It stays in the house.

    Returns
    -------
    Suggestion
        With ``plan``, ``meets``, ``verdict``, ``loss``, ``steps``, ``alternatives``, ``meaning``, ``table``,
        ``plot()``, ``save(path)``, ``to_dict()``. Where no plan passes, ``meets`` is False and ``obstacles`` say which
        rules stood in the way.

    When not to trust it
    --------------------
    A policy is met for the roles that were named: an intruder who knows other columns sees other groups. The plan is
    the best of those that were tried on this file, not of all there are; judge it again on next year's file. Columns
    without a role, survey weights and household numbers are released as they are.

    Examples
    --------
    >>> people = pl.DataFrame({"age": list(range(20, 60)) * 3, "ill": ["y", "n", "n"] * 40})
    >>> found = suggest(Microdata(people, keys="age", sensitive="ill"), "safe-setting")
    >>> found.meets, [step.name for step in found.plan.steps]
    (True, [])
    """
    rules = Policy.load(policy)
    budget = _budget(effort)
    given = data if isinstance(data, Microdata) else Microdata(data)
    given.need_plain_names()
    table = engine.whole_frame(given)
    proposed = inspect(given) if not given.roles.keys else None
    roles = given.roles if proposed is None else proposed.proposal
    held = Microdata(table, metadata=given.metadata, **roles.to_dict())
    details = _details(keep, held)
    weights = _weights(held, importance)
    associations = Associations.of(table, list(weights))
    frame = _frame(held, rules, details, weights, associations=associations, everything=proposed is not None)
    limits = {
        column: _lowest_allowed(frame.ladders[column], detail)
        for column, detail in details.items()
        if column in frame.ladders
    }
    untouched = tuple(column for column, detail in details.items() if detail is True)
    kept = "" if resume is None else _fingerprint(held, rules, weights, details, seed)
    done = Ledger(resume, kept)
    chosen = seed if seed is not None else done.seed if done.seed is not None else fresh_seed()
    gone = tuple(name for columns, _ in frame.drop for name in columns)
    bench = Bench(held, rules, weights, untouched, chosen, associations, gone)
    deadline = None if budget.seconds is None else time.monotonic() + budget.seconds
    forecast = Forecast(
        frame, {name: plainly_named(table[name]) for name in roles.sensitive}, weights, associations
    )
    budget = budget.on(table.height, table.width, len(roles.keys))
    with Laboratory(bench, done, workers, deadline, progress) as laboratory:
        explorer = Explorer(frame, forecast, laboratory, budget, limits)
        winner = explorer.run()
    return _explained(laboratory.bench, explorer.frame, explorer, winner, proposed, show_values=show_values)


def _explained(
    bench: Bench,
    frame: Frame,
    explorer: Explorer,
    winner: tuple[Recipe, list[Made]] | None,
    proposed: Inspection | None,
    *,
    show_values: bool,
) -> Suggestion:
    """Write down what was found."""
    title = f"Suggested for {bench.policy.name}"
    plans = {trial.name: recipe.plan(frame, title) for recipe, trial in explorer.tried.items()}
    trials = list(explorer.tried.values())
    search = Search(
        trials=ranked(trials), policy=bench.policy.name, risk=RISK, loss=COST, seed=bench.seed, plans=plans
    )
    found: dict[str, Any] = {}
    if winner is None:
        found["obstacles"] = obstacles_of(bench, frame, explorer.tried)
    else:
        recipe, stages = winner
        trial = explorer.tried[recipe]
        found["chosen"] = plans[trial.name]
        found["verdict"] = explorer.verdicts[trial.name]
        found["losses"], found["loss"] = trial.losses, trial.loss
        found["steps"] = step_effects(bench, frame, recipe, stages, show_values=show_values)
        found["associations"] = tuple(one for one in bench.strained(stages[-1]) if one.lost > 0)
        found["alternatives"] = alternatives(search, trial, plans)
    result = Suggestion(
        policy=bench.policy.name,
        roles=bench.data.roles,
        proposed=proposed is not None,
        search=search,
        assumed=() if proposed is None else assumed_roles(proposed),
        caveats=_caveats(bench.data, found.get("chosen")),
        **found,
    )
    return summary(result, len(trials))


def _budget(effort: Any) -> Budget:
    if isinstance(effort, str):
        if effort not in BUDGETS:
            raise ParameterError(f"effort: {unknown_name(effort, BUDGETS, what='effort')}")
        return BUDGETS[effort]
    if isinstance(effort, bool) or not isinstance(effort, int | float) or not 0 < effort < math.inf:
        raise ParameterError("effort is 'quick', 'normal', 'thorough' or a number of seconds above 0.")
    return Budget(BUDGETS["thorough"].forecasts, _NO_END, float(effort))


def _details(keep: Any, data: Microdata) -> dict[str, Any]:
    wanted = {keep: True} if isinstance(keep, str) else keep
    details = dict(wanted) if isinstance(wanted, Mapping) else dict.fromkeys(wanted, True)
    for column in details:
        if column not in data.schema:
            raise ColumnError(f"{unknown_name(column, data.columns)} It was named in keep.")
        if column in data.roles.identifiers:
            raise ParameterError(
                f"'{column}' identifies people by itself and cannot be kept. Take it out of keep, or change its role."
            )
    return details


def _weights(data: Microdata, importance: Mapping[str, float] | None) -> dict[str, float]:
    """Give every compared column its share in the loss: all but those that only tell units apart or weight them."""
    columns = [name for name in data.columns if name not in data.roles.technical]
    given = dict(importance or {})
    for column, weight in given.items():
        if column not in columns:
            raise ColumnError(f"{unknown_name(column, columns)} It was named in importance.")
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < math.inf:
            raise ParameterError(f"importance of '{column}' must be a number of 0 or more.")
    weights = {column: float(given.get(column, 1.0)) for column in columns}
    total = sum(weights.values())
    if not total > 0:
        raise ParameterError("importance gives every column the weight 0. Give at least one more.")
    return {column: weight / total for column, weight in weights.items()}


def _frame(
    data: Microdata,
    policy: Policy,
    details: Mapping[str, Any],
    weights: Mapping[str, float],
    *,
    associations: Associations,
    everything: bool,
) -> Frame:
    """Lay out what can be done with each column; ``everything`` says that no column was given a role by a person."""
    table, roles = engine.whole_frame(data), data.roles
    aims = aims_of(policy, roles.sensitive)
    outcomes = {name: plainly_named(table[name]) for name in roles.sensitive}
    known = _known(data, table, policy) if aims.found < 1 else []
    follows = twins_of(table, [name for name in (*roles.keys, *known) if details.get(name) is not True])
    drop = _left_out(data, aims, details, known, everything=everything)
    gone = {name for columns, _ in drop for name in columns}
    ladders = {
        name: ladder_of(table[name], outcomes) for name in (*roles.keys, *known) if name not in follows
    }
    ladders = {name: _strained(ladder, associations) for name, ladder in ladders.items()}
    ladders |= {name: following(ladders[leader], table[name]) for name, leader in follows.items()}
    ladders |= {name: outcome_ladder(values) for name, values in outcomes.items() if name not in ladders}
    mixable = [
        name
        for name in roles.sensitive
        if name not in details and name not in known and can_be_dealt_out(table[name], aims)
    ]
    swaps = aims.swaps({name: plainly_named(table[name]) for name in mixable})
    mean = sum(weights.values()) / max(1, len(weights))
    return Frame(
        drop=drop,
        keys=tuple(key for key in roles.keys if key not in follows),
        follows=follows,
        known=tuple(name for name in known if name not in follows),
        ladders=ladders,
        aims=aims,
        cautious={
            key: _PRECIOUS if details.get(key) is True else max(weights.get(key, mean) / mean, 1e-3)
            for key in roles.keys
        },
        swaps=swaps,
        company_for_swaps=company_for_swaps(
            swaps[min(1, len(swaps) - 1)], {name: table[name] for name in mixable}
        ),
        hard=tuple(
            name
            for name in roles.sensitive
            if name not in details and not can_be_dealt_out(table[name], aims)
        ),
        needed=codings_needed(ladders, aims.models, aims.companies()[0]),
        numbers=own_numbers(
            table,
            [
                name
                for name in (*weights, *([roles.weight] if roles.weight and aims.own else []))
                if name not in (*roles.keys, *known, *gone) and details.get(name) is not True
            ],
            aims,
            roles.weight,
        ),
    )


def _known(data: Microdata, table: pl.DataFrame, policy: Policy) -> list[str]:
    """Name the columns beside the keys that an intruder of the policy may know: dates, places, and what tells a key."""
    plain = table.select(plain_text(table[name]).alias(name) for name in table.columns)
    technical = [name for name in data.roles.technical if name in plain.columns]
    plain = plain.drop(technical)
    knows = [what for what in (policy.intruder or ()) if what not in ("missing", "amounts")]
    kinds = knowable_columns(data, (plain, plain), data.roles.keys, knows, np.arange(table.height))  # type: ignore[arg-type]
    return [name for name in kinds if name not in (PATTERN, *data.roles.keys)]


def _strained(ladder: Ladder, associations: Associations) -> Ladder:
    rungs = [
        replace(rung, strain=associations.strain(ladder.column, rung.codes)) for rung in ladder.rungs[1:]
    ]
    return replace(ladder, rungs=(ladder.rungs[0], *rungs))


def _left_out(
    data: Microdata, aims: Aims, details: Mapping[str, Any], known: Sequence[str], *, everything: bool
) -> tuple[tuple[tuple[str, ...], str], ...]:
    """Say which columns leave the file, and why."""
    roles = data.roles
    found = [(roles.identifiers, "people are identified by that alone")] if roles.identifiers else []
    if aims.found < 1:
        numbers = [
            name for name in (roles.person, roles.household, roles.psu) if name and name in data.schema
        ]
        together = tuple(name for name in numbers if name not in details)
        if together:
            found.append((together, "records that belong together are found by what is known of all of them"))
        if everything:
            judged = (*roles.columns(), *known, *details)
            unknown = tuple(
                name
                for name in data.columns
                if name not in judged and suggests_weight(name, data.columns) is None
            )
            if unknown:
                found.append((unknown, "nobody has said what may be known of it"))
    return tuple(found)


def _lowest_allowed(ladder: Ladder, detail: Any) -> int:
    """Find the coarsest rung that still has the detail asked for."""
    if detail is True:
        return 0
    finer_is_more = ladder.what != "age"
    allowed = 0
    for place, rung in enumerate(ladder.rungs[1:], 1):
        if isinstance(detail, str):
            if rung.detail == detail:
                return place
            allowed = place
        elif isinstance(rung.detail, int | float):
            enough = rung.detail >= detail if finer_is_more else rung.detail <= detail
            allowed = place if enough else allowed
    if isinstance(detail, str):
        raise ParameterError(f"keep: '{ladder.column}' cannot be told by '{detail}'. Name a number, or True.")
    return allowed


def _fingerprint(
    data: Microdata,
    policy: Policy,
    weights: Mapping[str, float],
    details: Mapping[str, Any],
    seed: int | None,
) -> str:
    judged = Judgment(policy, RISK, COST)
    parts = [fingerprint(data, judged, seed), sorted(weights.items()), sorted(map(str, details.items()))]
    return hashlib.sha256("; ".join(map(str, parts)).encode()).hexdigest()


def _caveats(data: Microdata, plan: Plan | None) -> tuple[str, ...]:
    said = [
        "The best of many plans on one file is not the best for every file: judge it again on next year's."
    ]
    entries = [] if plan is None else as_entries(plan.steps)
    if any(entry["treatment"] == SWAPPED for entry in entries):
        said.append(
            "The plan draws at random. The verdict is about the draw with its seed; judge every other draw again."
        )
    roles = data.roles
    touched = {name for entry in entries for name in _names_in(entry) if name in data.columns}
    if any(entry["treatment"] == DROPPED and not entry.get("columns") for entry in entries):
        touched |= set(roles.identifiers)
    if roles.weight and roles.weight not in touched:
        said.append(
            f"The survey weight '{roles.weight}' is released as it is. One that takes many values works like a number "
            "plate: round it, or leave it out."
        )
    structure = [name for name in (roles.household, roles.psu, roles.person) if name]
    if kept := [name for name in structure if name not in touched]:
        said.append(
            f"{', '.join(repr(name) for name in kept)} tell{'s' * (len(kept) == 1)} who belongs together and "
            f"{'is' if len(kept) == 1 else 'are'} released as {'it is' if len(kept) == 1 else 'they are'}. Replace "
            "numbers that others know by new ones."
        )
    judged = {*roles.keys, *roles.sensitive, *roles.identifiers, *structure, roles.weight}
    left = [name for name in data.columns if name not in judged and name not in touched]
    if left:
        said.append(
            f"{', '.join(repr(name) for name in left)} {'has' if len(left) == 1 else 'have'} no role as key, sensitive "
            f"column or identifier: no rule on keys or sensitive columns looks at {'it' if len(left) == 1 else 'them'}."
        )
    return tuple(said)


def _names_in(value: Any) -> Iterator[str]:
    """Give the texts of a step, however deep they stand: names of columns among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, held in value.items():
            yield from (name, *_names_in(held))
    elif isinstance(value, list | tuple):
        for held in value:
            yield from _names_in(held)
