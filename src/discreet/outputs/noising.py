"""Noise on counts that is the same for the same people, whatever table they are counted in: the cell-key method.

Unlike rounding it cannot be undone by asking for the same people in another table.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from discreet.core.arrays import Array, Flags, Floats
from discreet.core.errors import ParameterError
from discreet.microdata import Microdata
from discreet.outputs.check_results import CheckResult, Finding
from discreet.outputs.checks.frequencies import counted
from discreet.outputs.output import Margins
from discreet.outputs.output_cells import Cells, places_of, records_of
from discreet.outputs.question import Question
from discreet.outputs.settings import OutputPolicy


def noisy_counts(data: Microdata, question: Question, cells: Cells, across: int) -> tuple[Floats, Margins]:
    """Count people with cell-key noise: the cells, and the margins, each with its own noise."""
    from discreet.tables import CellKey, Table

    if question.weight is not None:
        raise ParameterError("Noise is for counts of people. Leave the weight out, or use mitigate='round'.")
    who = question.subject or next(iter(data.roles.identifiers), None)
    if who is None:
        raise ParameterError(
            "Noise depends on who is counted, and nothing tells people apart here. Name their column with subject=, or "
            "give the data the role person or identifiers."
        )
    rows = records_of(data, replace(question, subject=who, value=None))
    names = [f"d{i}" for i in range(len(question.by))]
    at = places_of(rows, cells.levels, names)
    columns = {name: place.astype(str).tolist() for name, place in zip(names, at, strict=True)}
    people = pl.DataFrame(columns or {"d": ["0"] * rows.height})
    people = people.with_columns(who=rows["p"]).unique(maintain_order=True)
    if people["who"].n_unique() < people.height:
        raise ParameterError(
            f"Somebody in '{who}' is in several cells of the table, so that noise on people would not be the same in "
            "the cells and in the margins. Use mitigate='round'."
        )
    table = CellKey(id="who").apply(Table.from_microdata(people, "*".join(names or ["d"]))).table
    found = {key: float(count) for key, count in zip(table.keys, table.cells["count"], strict=True)}
    total = table.hierarchy[table.dimensions[0]].total

    def laid(axes: tuple[int, ...]) -> Floats:
        """The noisy counts by some dimensions; what nobody is in stays zero."""
        shape = tuple(cells.shape[axis] for axis in axes)
        made = np.zeros(shape or (1,))
        for place in np.ndindex(*shape) if shape else [(0,)]:
            key = [total] * len(table.dimensions)
            for axis, level in zip(axes, place, strict=False):
                key[axis] = str(level)
            made[place] = found.get(tuple(key), 0.0)
        return made

    if not names:
        everything = laid(())
        return everything, Margins(_whole(everything), _whole(everything), int(everything[0]))
    down = len(names) - across
    return laid(tuple(range(len(names)))), Margins(
        _whole(laid(tuple(range(down)))), _whole(laid(tuple(range(down, len(names))))), int(laid(())[0])
    )


def noisy_check(shown: Floats, policy: OutputPolicy, barn: str) -> CheckResult:
    """Judge noisy counts: what still looks small, or empty, a human sees."""
    small = (shown > 0) & (shown < policy.threshold)
    empty = (shown == 0) if policy.zeros_are_disclosive else np.zeros(shown.shape, dtype=bool)
    findings = []
    if small.any():
        reason = (
            f"{counted(int(small.sum()), 'noisy count')} below {policy.threshold}: noise hides the exact number, not "
            "that it is small. A human judges."
        )
        findings.append(Finding("noisy count", barn, "review", reason, _cells(small)))
    if empty.any():
        reason = (
            f"{counted(int(empty.sum()), 'cell')} shown as empty: noise leaves empty cells empty, and makes some small "
            "ones so. A human judges."
        )
        findings.append(Finding("noisy count", barn, "review", reason, _cells(empty)))
    return CheckResult(
        findings or [Finding("noisy count", barn, "pass", "Counts are noisy, and none of them is small.")]
    )


def _cells(flags: Flags) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(i) for i in place) for place in np.argwhere(flags))


def _whole(numbers: Floats) -> Array:
    return numbers.astype(np.int64).astype(object)
