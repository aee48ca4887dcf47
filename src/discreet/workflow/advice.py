"""What to do next, in plain words, from what the measures found: this file's columns, its numbers, and the command.

Keys that make people stand out are coarsened: which ones, how far, and who would still stand out then.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np

from discreet import engine
from discreet.core.arrays import Integers
from discreet.core.cards import Card, card_of
from discreet.core.findings import Beside
from discreet.core.results import Scenario
from discreet.core.usual_names import meaning_of
from discreet.core.verdicts import Verdict
from discreet.microdata import Microdata
from discreet.policy import Policy
from discreet.workflow.coding_ladders import Ladder, Rung, ladder_of
from discreet.workflow.inspection import unnamed_person
from discreet.workflow.usual_treatments import BAND, CUT, as_entries, coding_steps, without_identifiers


def next_steps(data: Microdata, main: Scenario, verdict: Verdict | None) -> list[str]:
    """List the steps that would help most, the most useful first; the last ones are commands to copy."""
    steps = []
    if (person := unnamed_person(data)) is not None:
        steps.append(
            f"Say whose the records are: {person!r} seems to number people, and repeats. Name it as the person "
            f"(person={person!r}, --person {person}), else people with several records hide among themselves."
        )
    if data.roles.identifiers:
        names = ", ".join(f"'{name}'" for name in data.roles.identifiers)
        steps.append(
            f"Drop the direct identifiers ({names}) or replace them with keyed pseudonyms before release."
        )
    cards = _advising(main)
    exposed = any(
        card.advice.standing_out(main.measures[card.name])
        for card in cards
        if card.advice and card.advice.standing_out and card.name in main.measures
    )
    coarser = coarser_keys(data, main.keys) if exposed else None
    steps += _by_measures(cards, main, coarser)
    steps += _commands(data, main, verdict, coarser)
    if verdict is None:
        steps.append(
            "Name a policy to get a verdict: a template ('public-use-file', 'scientific-use-file', 'safe-setting') "
            "or a TOML file of your own."
        )
    elif verdict.meets is None:
        steps.append(
            f"Have the rest of policy '{verdict.policy}' judged: until then it clears nothing. {verdict.left}."
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


def _by_measures(cards: Sequence[Card], main: Scenario, coarser: CoarserKeys | None) -> Iterator[str]:
    """Give the advice of the measures; a proposal for these very keys is worth more than a general one."""
    beside = Beside(main.measures, keys=main.keys)
    for card in cards:
        if card.advice is None:
            continue
        if card.name not in main.measures:
            yield from [card.advice.where_skipped] if card.advice.where_skipped else []
        elif card.advice.standing_out and coarser is not None:
            yield from coarser.sentences
            fewer = f" instead of {coarser.alone:,}" if coarser.alone_then != coarser.alone else ", as now"
            yield (
                f"With that {coarser.alone_then:,} records would be alone with their keys{fewer}; suppress single key "
                "cells in what remains."
            )
        else:
            yield from card.advice.steps(main.measures[card.name], beside)


def _advising(main: Scenario) -> list[Card]:
    """Give the cards that have advice for what was asked or left out, in their order."""
    named = (*main.measures, *main.skipped)
    cards = [card for name in named if (card := card_of(name)) and card.advice]
    return sorted(cards, key=lambda card: card.advice.order if card.advice else 0)


def _commands(
    data: Microdata, main: Scenario, verdict: Verdict | None, coarser: CoarserKeys | None
) -> list[str]:
    """Give the commands that do it, where the file has a name: the steps above, and a plan that is looked for."""
    source = data.metadata.source
    if not source:
        return []
    named = [without_identifiers(data.roles.identifiers)] if data.roles.identifiers else []
    steps = [*as_entries(named), *(coarser.steps if coarser is not None else ())]
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


# Which keys of this file could be coarser, how far, and who would still stand out then?
#
# The proposals name the file's own columns and numbers and become steps of a command; data values are in none of them.


_MOST_RECORDS = 200_000
_DEAREST = 0.12  # the share of a column that a proposal may cost
_FEWEST_LABELS = 4
_FEWEST_VALUES = 10


@dataclass(frozen=True)
class CoarserKeys:
    """What is proposed for the keys of a file.

    Attributes
    ----------
    sentences
        What to do to which column.
    steps
        The same as entries of a plan; groups of categories are left out, for their table would name values.
    alone, alone_then
        Records alone with their keys, before and after.
    """

    sentences: tuple[str, ...]
    steps: tuple[Mapping[str, Any], ...]
    alone: int
    alone_then: int


def coarser_keys(data: Microdata, keys: Sequence[str]) -> CoarserKeys | None:
    """Propose a coarser coding for every detailed key; None where there is none, or the file is too large to try."""
    if engine.overview(data, ()).rows > _MOST_RECORDS or len(keys) > 40:
        return None
    table = engine.collect(data, list(keys), any_names=True)
    ages = [key for key in keys if _means(key, "age")]
    chosen: dict[str, tuple[Ladder, Rung]] = {}
    dropped = []
    codes: dict[str, Integers] = {}
    for key in keys:
        # What a key is called says what it is; the marks of a pattern would be taken for other columns.
        ladder = ladder_of(table[key].alias(key.strip("*^$") or "key"), {})
        codes[key] = ladder.rungs[0].codes
        if ladder.what == "date" and _means(key, "birth") and ages:
            dropped.append(key)
        elif (rung := _fitting(ladder)) is not None:
            chosen[key] = (ladder, rung)
    if not chosen and not dropped:
        return None
    then = {
        key: chosen[key][1].codes if key in chosen else held
        for key, held in codes.items()
        if key not in dropped
    }
    return CoarserKeys(
        sentences=(
            *(f"Drop the date of birth '{key}': '{ages[0]}' says enough." for key in dropped),
            *(_sentence(key, ladder, rung) for key, (ladder, rung) in chosen.items()),
        ),
        steps=_steps(dropped, chosen),
        alone=_alone(list(codes.values())),
        alone_then=_alone(list(then.values())),
    )


def _fitting(ladder: Ladder) -> Rung | None:
    """Take the coarsest coding that keeps most of the column, of a key with many values."""
    if ladder.rungs[0].labels < _FEWEST_VALUES:
        return None
    fitting = [rung for rung in ladder.rungs[1:] if rung.loss <= _DEAREST and rung.labels >= _FEWEST_LABELS]
    return fitting[-1] if fitting else None


def _sentence(key: str, ladder: Ladder, rung: Rung) -> str:
    before = ladder.rungs[0].labels
    if ladder.what == "code":
        characters = "character" if rung.detail == 1 else "characters"
        return (
            f"Cut '{key}' to its first {rung.detail} {characters}: {before:,} codes become {rung.labels:,}."
        )
    if ladder.what == "date":
        return f"Tell '{key}' by {rung.detail}: {before:,} dates become {rung.labels:,} periods."
    if ladder.what in ("age", "number"):
        by_number = rung.detail == len(rung.setting) + 1
        by = f"{rung.labels} bands" if by_number else f"bands of {rung.detail}"
        return f"Put '{key}' into {by}: {before:,} values become {rung.labels:,}."
    return f"Join the rare values of '{key}': {before:,} become {rung.labels:,} groups (suggest finds which)."


def _steps(
    dropped: Sequence[str], chosen: Mapping[str, tuple[Ladder, Rung]]
) -> tuple[Mapping[str, Any], ...]:
    named = [without_identifiers(dropped)] if dropped else []
    coded = {key: (rung.kind, rung.setting) for key, (_, rung) in chosen.items() if rung.kind in (BAND, CUT)}
    return as_entries([*named, *(step for step, _ in coding_steps(coded))])


def _alone(codes: Sequence[Integers]) -> int:
    if not codes:
        return 0
    packed, room = np.zeros(len(codes[0]), dtype=np.int64), 1
    for column in codes:
        width = int(column.max(initial=0)) + 1
        if room > 2**62 // width:
            _, packed = np.unique(packed, return_inverse=True)
            room = int(packed.max(initial=0)) + 1
        packed = packed * width + column
        room *= width
    _, sizes = np.unique(packed, return_counts=True)
    return int((sizes == 1).sum())


def _means(name: str, concept: str) -> bool:
    meaning = meaning_of(name)
    return meaning is not None and meaning.concept == concept
