"""What could be done about the risk? Plans that are suggested, or steps that are tried one by one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import polars as pl

from discreet import engine
from discreet.app.jobs import caused_by
from discreet.app.work.bench import Bench
from discreet.core.errors import DiscreetError, ParameterError
from discreet.core.files.untrusted import parsed_toml
from discreet.core.results import Assessment, Release
from discreet.microdata import Microdata
from discreet.policy import Policy
from discreet.protect import Plan
from discreet.report.page_words import answer_of
from discreet.workflow import suggest
from discreet.workflow.aligning import columns_that_count
from discreet.workflow.trials import Numbered

_MOST_ON_MAP = 30
_MOST_CELLS = 12


def suggest_plan(
    bench: Bench,
    *,
    source: Mapping[str, Any],
    roles: Mapping[str, Any],
    policy: str,
    effort: str,
    keep: Sequence[str],
) -> dict[str, Any]:
    """Look for plans that meet the policy and lay them out on the risk-utility map."""
    data = bench.with_roles(source, roles)
    with caused_by("policy"):
        rules = Policy.load(policy)
    with caused_by("effort"):
        found = suggest(
            data,
            rules,
            effort=effort if effort in ("quick", "normal", "thorough") else _seconds(effort),  # type: ignore[arg-type]
            keep=list(keep),
            progress=True,
        )
    trials = [trial for trial in found.search.trials if trial.risk is not None and trial.loss is not None]
    shown = sorted(trials, key=lambda trial: (not trial.on_frontier, trial.loss or 0.0))[:_MOST_ON_MAP]
    letters = {trial.name: f"{place}" for place, trial in enumerate(shown, start=1)}
    plans = [
        {
            "letter": letters[trial.name],
            "name": trial.name,
            "meets": trial.meets,
            "risk": trial.risk,
            "loss": trial.loss,
            "on_frontier": trial.on_frontier,
            "reasons": list(trial.reasons),
            "steps": list(trial.plan.get("step", ())),
        }
        for trial in shown
    ]
    return {
        "meets": found.meets,
        "sentences": list(found.sentences),
        "steps": [asdict(step) for step in found.steps],
        "obstacles": list(found.obstacles),
        "caveats": list(found.caveats),
        "loss": found.loss,
        "plan": [] if found.chosen is None else found.chosen.to_dict()["step"],
        "alternatives": [
            {
                "name": other.name,
                "sentence": other.sentence,
                "meets": other.meets,
                "steps": other.plan.to_dict()["step"],
            }
            for other in found.alternatives
        ],
        "plans": plans,
        "tried": len(found.search.trials),
        "seed": found.seed,
        "answer": None
        if found.verdict is None
        else asdict(answer_of(Assessment({}, {}, verdict=found.verdict))),
    }


def try_steps(
    bench: Bench,
    *,
    source: Mapping[str, Any],
    roles: Mapping[str, Any],
    steps: Sequence[Mapping[str, Any]],
    seed: int,
) -> dict[str, Any]:
    """Apply steps one by one and say what each changes, leaves of the risk, and costs."""
    stages = stages_of(bench, source, roles, steps, seed)
    original = bench.with_roles(source, roles)
    before = _figures(original, original)
    effects = []
    for place, stage in enumerate(stages):
        known = bench.made.setdefault("effects", {})
        key = key_of(roles, steps[: place + 1], seed)
        if key not in known:
            known[key] = {
                "said": str(stage.log[-1]),
                "notes": list(stage.log[-1].notes),
                **_figures(stage.data, original),
            }
        effects.append(known[key])
    return {"before": before, "effects": effects}


def preview_step(
    bench: Bench,
    *,
    source: Mapping[str, Any],
    roles: Mapping[str, Any],
    steps: Sequence[Mapping[str, Any]],
    seed: int,
    number: int,
    show_values: bool,
) -> dict[str, Any]:
    """Show some of the cells that a step changes: where they are, and what they hold only when it was asked for."""
    stages = stages_of(bench, source, roles, steps, seed)
    numbered = Numbered.of(bench.with_roles(source, roles))
    before = numbered.data if number == 0 else stages[number - 1].data
    after = stages[number].data
    old, new = engine.whole_frame(before), engine.whole_frame(after)
    gone = [name for name in old.columns if name not in new.columns]
    if numbered.column not in old.columns or numbered.column not in new.columns:
        return {
            "rows": [],
            "gone": gone,
            "told": "The records were mixed or replaced, so single cells cannot be followed.",
        }
    both = old.join(
        new, on=numbered.column, how="inner", suffix="\N{RIGHTWARDS ARROW}", maintain_order="left"
    )
    rows: list[list[str]] = []
    for name in old.columns:
        other = f"{name}\N{RIGHTWARDS ARROW}"
        if name == numbered.column or other not in both.columns:
            continue
        pair = both.select(
            pl.col(numbered.column).alias("n"),
            pl.col(name).cast(pl.String).alias("a"),
            pl.col(other).cast(pl.String).alias("b"),
        )
        changed = pair.filter(pl.col("a").ne_missing(pl.col("b"))).head(3)
        rows += [
            [
                f"record {int(row['n']) + 1:,}",
                name,
                _cell(row["a"]) if show_values else "masked",
                _cell(row["b"]) if show_values else ("suppressed" if row["b"] is None else "changed"),
            ]
            for row in changed.iter_rows(named=True)
        ]
    removed = old.height - new.height
    told = f"{removed:,} records were removed." if removed > 0 else ""
    return {
        "rows": rows[:_MOST_CELLS],
        "gone": [name for name in gone if name != numbered.column],
        "told": told,
    }


def plan_of(steps: Sequence[Mapping[str, Any]]) -> Plan:
    """Make a plan from the steps of the page; a step that was written by hand is a line of TOML."""
    entries = []
    for step in steps:
        entry = dict(step)
        if "toml" in entry:
            try:
                entry = dict(parsed_toml(f"step = {entry['toml']}")["step"])
            except (ValueError, TypeError) as error:
                raise ParameterError(
                    'The step is no TOML table on one line, such as {treatment = "band", widths = {age = 10}}.'
                ) from error
        entries.append(entry)
    return Plan.from_dict({"step": entries}) if entries else Plan([])


def stages_of(
    bench: Bench,
    source: Mapping[str, Any],
    roles: Mapping[str, Any],
    steps: Sequence[Mapping[str, Any]],
    seed: int,
) -> list[Release]:
    """Apply the steps to the file with its records numbered; what was tried before is not done again."""
    data = bench.with_roles(source, roles)
    key = key_of(roles, steps, seed)
    held = bench.made.get("stages")
    if held is not None and held[0] == key:
        return list(held[1])
    with caused_by("step"):
        plan = plan_of(steps)
        stages = list(plan.stages(Numbered.of(data).data, seed=seed, progress=True))
    bench.made["stages"] = (key, stages)
    return stages


def _figures(data: Microdata, original: Microdata) -> dict[str, Any]:
    from discreet import risk
    from discreet.utility import information_loss
    from discreet.workflow.pairing import with_roles_of

    numbered = Numbered.of(original)
    released = with_roles_of(original, numbered.plain(data))
    found: dict[str, Any] = {"k": None, "alone": None, "loss": None}
    if released.roles.keys:
        found["k"] = risk.k_anonymity(released).value
        found["alone"] = risk.uniqueness(released).value
    if data is not original:
        followed = numbered.column in data.schema
        try:
            cost = information_loss(
                numbered.data if followed else original,
                data,
                columns=columns_that_count(original, data)[0],
                ids=numbered.column if followed else None,
            )
            found["loss"] = cost.value
        except DiscreetError:  # nothing is left to compare; the step itself says what it did
            found["loss"] = None
    return found


def key_of(roles: Mapping[str, Any], steps: Sequence[Mapping[str, Any]], seed: int) -> str:
    """Return what tells one release from another: roles, steps and seed."""
    return json.dumps([dict(roles), list(steps), seed], sort_keys=True, default=str)


def _cell(value: str | None) -> str:
    return "(empty)" if value is None else value


def _seconds(effort: str) -> float:
    try:
        return float(effort)
    except ValueError as error:
        raise ParameterError("The effort is quick, normal, thorough or a number of seconds.") from error
