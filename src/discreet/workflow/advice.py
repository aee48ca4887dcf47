"""What to do next, in plain words, from what the measures found: this file's columns, its numbers, and the command."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from discreet.core.results import Scenario
from discreet.core.verdicts import Verdict
from discreet.core.wording import percent
from discreet.microdata import Microdata
from discreet.policy import Policy
from discreet.workflow.coarsening.coarser_keys import CoarserKeys, coarser_keys


def next_steps(data: Microdata, main: Scenario, verdict: Verdict | None) -> list[str]:
    """List the steps that would help most, the most useful first; the last ones are commands to copy."""
    steps = []
    if data.roles.identifiers:
        names = ", ".join(f"'{name}'" for name in data.roles.identifiers)
        steps.append(
            f"Drop the direct identifiers ({names}) or replace them with keyed pseudonyms before release."
        )
    exposed = bool(main.measures["k_anonymity"].figures["records_below_3"])
    coarser = coarser_keys(data, main.keys) if exposed else None
    steps += _about_keys(main, coarser)
    steps += _about_sensitive(main)
    steps += _commands(data, main, verdict, coarser)
    if verdict is None:
        steps.append(
            "Name a policy to get a verdict: a template ('public-use-file', 'scientific-use-file', 'safe-setting') "
            "or a TOML file of your own."
        )
    elif verdict.meets is None:
        steps.append(
            f"Have the rest of policy '{verdict.policy}' judged, {verdict.left}: until then it clears nothing."
        )
    elif verdict.meets:
        steps.append(
            "Think of what else a recipient may know or link to. If other columns are known outside, "
            "add them to the keys and assess again."
        )
        steps.append("Keep this report with the release decision.")
    else:
        steps.append("After each change assess again and compare; stop when the policy is met.")
    return steps


def _about_keys(main: Scenario, coarser: CoarserKeys | None) -> list[str]:
    steps = []
    uniques, drivers = main.measures.get("uniqueness"), main.measures.get("key_contributions")
    exposed = main.measures["k_anonymity"].figures["records_below_3"]
    if exposed and drivers is not None and len(main.keys) > 1:
        best = drivers.detail["variables"]
        key = best["key"][0] if hasattr(best, "columns") else "the strongest key"
        before = uniques.figures["unique_share"] if uniques else None
        after = drivers.figures["best_unique_share_without"]
        if isinstance(before, float) and isinstance(after, float) and before > after:
            steps.append(
                f"Coarsen or drop '{key}' first: without it {percent(after)} of the records would be unique "
                f"instead of {percent(before)}."
            )
    if coarser is not None:
        steps += coarser.sentences
        fewer = f" instead of {coarser.alone:,}" if coarser.alone_then != coarser.alone else ", as now"
        steps.append(
            f"With that {coarser.alone_then:,} records would be alone with their keys{fewer}; suppress single key "
            "cells in what remains."
        )
    elif exposed:
        steps.append(
            f"Recode rare key values into groups, then suppress key cells in what remains of the {exposed:,} records "
            "in groups of one or two."
        )
    return steps


def _about_sensitive(main: Scenario) -> list[str]:
    diversity = main.measures.get("l_diversity")
    if diversity is None:
        if "l_diversity" in main.skipped:
            return [
                "Name the sensitive columns: without them nobody knows what can be learned about a group."
            ]
        return []
    alike = diversity.figures["homogeneous_records"]
    if alike:
        return [
            f"{alike:,} records are in groups where everyone has the same sensitive value. Merge such groups by "
            "coarser keys, or perturb the sensitive column; k alone does not help."
        ]
    return []


def _commands(
    data: Microdata, main: Scenario, verdict: Verdict | None, coarser: CoarserKeys | None
) -> list[str]:
    """Give the commands that do it, where the file has a name: the steps above, and a plan that is looked for."""
    source = data.metadata.source
    if not source:
        return []
    steps = list(coarser.steps) if coarser is not None else []
    if data.roles.identifiers:
        steps.insert(0, {"treatment": "drop-identifiers", "columns": list(data.roles.identifiers)})
    roles = {**data.roles.to_dict(), "keys": list(main.keys)}
    found = []
    if steps:
        found.append(f"These steps as one command: {steps_command(source, steps, roles)}")
    if verdict is None or verdict.meets is False:
        policy = _template(verdict)
        found.append(f"A plan that meets the policy, looked for: {auto_command(source, policy, roles)}")
    return found


def steps_command(file: str, steps: Sequence[Mapping[str, Any]], roles: Mapping[str, Any]) -> str:
    """Write the command that applies steps to a file.

    Examples
    --------
    >>> print(steps_command("my.csv", [{"treatment": "round", "base": {"pay": 100}}], {"keys": ["age"]}))
    discreet protect my.csv --step '{treatment = "round", base = {pay = 100}}' --keys age --out release.csv
    """
    parts = [f"--step {shlex.quote(_inline(step))}" for step in steps]
    return f"discreet protect {shlex.quote(file)} {' '.join(parts)}{_roles(roles)} --out {_release(file)}"


def auto_command(file: str, policy: str, roles: Mapping[str, Any]) -> str:
    """Write the command that looks for a plan and applies it."""
    return (
        f"discreet protect {shlex.quote(file)} --auto --policy {shlex.quote(policy)}{_roles(roles)} "
        f"--out {_release(file)}"
    )


def _template(verdict: Verdict | None) -> str:
    if verdict is None:
        return "scientific-use-file"
    named = {Policy.load(name).name: name for name in Policy.templates()}
    return named.get(verdict.policy, "POLICY.toml")


def _roles(roles: Mapping[str, Any]) -> str:
    """Write roles as options; a name with a comma stands in quotation marks."""
    parts = []
    for role, columns in roles.items():
        names = [columns] if isinstance(columns, str) else list(columns)
        listed = ",".join(f'"{name}"' if "," in name else name for name in names)
        parts.append(f" --{role} {shlex.quote(listed)}")
    return "".join(parts)


def _release(file: str) -> str:
    name = PurePath(file).name
    suffix = ".parquet" if name.endswith(".parquet") else ".csv"
    return f"release{suffix}"


def _inline(value: Any) -> str:
    """Write a value of a plan as TOML on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(str(name))} = {_inline(held)}" for name, held in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    plain = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if plain else json.dumps(name, ensure_ascii=False)
