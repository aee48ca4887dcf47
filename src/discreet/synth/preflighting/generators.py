"""Which generators does a file call for, beside the one that draws its columns one after the other?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from discreet.microdata import Microdata
from discreet.synth.preflighting.findings import Finding
from discreet.synth.preflighting.restoring import left_out
from discreet.synth.record_units import same_within

_FEW_LEVELS = 20
_MANY_COLUMNS = 10
_STRUCTURE = 2
_USUAL = ("age", "sex", "gender")


def fitting_generators(
    data: Microdata, frame: pl.DataFrame, findings: Sequence[Finding]
) -> dict[str, dict[str, Any]]:
    """Name the generators that suit the file: why, and with which parameters; column names only, no values."""
    made: dict[str, dict[str, Any]] = {}
    household = next((f for f in findings if f.kind == "household" and f.confidence == "high"), None)
    unit = household.column if household is not None else None
    person = data.roles.person
    if unit is not None and unit != person:
        made["households"] = {
            "why": f"records that share '{unit}' are a household, which any generator can keep whole",
            "parameters": {},
        }
        parameters = _population(data, frame, findings, unit)
        if data.roles.weight is not None and parameters is not None:
            made["population"] = {
                "why": f"'{unit}' are households and '{data.roles.weight}' says how many each stands for: a population",
                "parameters": parameters,
            }
    if person is not None and person in frame.columns and frame[person].n_unique() < frame.height:
        ordered = f", in the order of '{data.roles.time}'" if data.roles.time else ""
        made["relational"] = {
            "why": f"a person has several records (by '{person}'): persons as parents, records as children{ordered}",
            "parameters": {},
        }
        made["syndiffix"] = {
            "why": f"a person has several records (by '{person}'), and persons are what it counts",
            "parameters": {"person": person},
        }
    gone = {*left_out(findings, with_derived=False), *data.roles.identifiers, data.roles.weight, unit, person}
    if len([name for name in frame.columns if name not in gone]) >= _MANY_COLUMNS:
        made["multi-table"] = {
            "why": "one wide table of so many columns loses most; tables of what an analysis needs lose less",
            "parameters": {"size": 2},
        }
    return made


def _population(
    data: Microdata, frame: pl.DataFrame, findings: Sequence[Finding], unit: str
) -> dict[str, Any] | None:
    """Say what of a household is copied and what is simulated; None where nothing can be copied."""
    counted = {name for f in findings if f.kind == "household" for name in f.columns}
    roles = data.roles
    out = {
        *left_out(findings, with_derived=False),
        *counted,
        *roles.identifiers,
        *roles.strata,
        roles.weight,
        roles.person,
        unit,
    }
    names = [name for name in frame.columns if name not in out]
    shared = set(same_within(frame, unit, names))
    complete = [name for name in names if name not in shared and not frame[name].null_count()]
    # Age and sex by their usual names, else what stands first.
    complete.sort(key=lambda name: (not any(usual in name.lower() for usual in _USUAL), names.index(name)))
    structure = complete[:_STRUCTURE]
    if not structure:
        return None
    rest = [name for name in names if name not in structure]
    numbers = [
        name for name in rest if frame.schema[name].is_numeric() and frame[name].n_unique() > _FEW_LEVELS
    ]
    parameters: dict[str, Any] = {"structure": structure}
    categories = [name for name in rest if name not in numbers]
    if categories:
        parameters["categorical"] = categories
    if numbers:
        parameters["continuous"] = numbers
    return parameters


def words_of(generators: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Say in lines which generators suit."""
    return [f"It also suits {name}: {own['why']}." for name, own in generators.items()]
