"""How cells become a table to read: rows, columns, margins, and a flag for every number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Array, Flags
from discreet.outputs.check_results import CheckResult
from discreet.outputs.result import FREE, SECONDARY

TOTAL = "Total"
MISSING = "(missing)"


@dataclass(frozen=True)
class Margins:
    """The totals of a table over its rows, its columns, and both; missing where they are not shown."""

    rows: Array
    columns: Array
    all: Any


def wide(
    by: Sequence[str],
    levels: Sequence[Sequence[Any]],
    numbers: Array,
    *,
    columns: int = 0,
    margins: Margins | None = None,
    heading: str = "count",
) -> pl.DataFrame:
    """Lay cells out: the last ``columns`` dimensions go across, the others down.

    Examples
    --------
    >>> table = wide(["sex", "job"], [["f", "m"], ["a", "b"]], np.array([[1, 2], [3, 4]]), columns=1)
    >>> table.columns, table.rows()
    (['sex', 'a', 'b'], [('f', 1, 2), ('m', 3, 4)])
    """
    down = len(by) - columns
    row_keys = list(product(*(map(text, known) for known in levels[:down]))) or [()]
    column_keys = list(product(*(map(text, known) for known in levels[down:]))) or [()]
    flat = numbers.reshape(len(row_keys), len(column_keys))
    names = _column_names(column_keys, heading, taken=set(by[:down]))
    frame: dict[str, list[Any]] = {name: [key[i] for key in row_keys] for i, name in enumerate(by[:down])}
    for j, name in enumerate(names):
        frame[name] = _plain(flat[:, j])
    if margins is not None:
        if down:
            for i, name in enumerate(by[:down]):
                frame[name].append(TOTAL if i == 0 else "")
            for j, name in enumerate(names):
                frame[name] += _plain(np.asarray(margins.columns).reshape(-1)[j : j + 1])
        if columns:
            ends = _plain(np.asarray(margins.rows).reshape(-1)) + (
                _plain(np.asarray([margins.all])) if down else []
            )
            frame[_free(TOTAL, set(frame))] = ends
    return pl.DataFrame(frame, strict=False)


def flags_of(
    shape: tuple[int, ...],
    checked: CheckResult,
    *,
    primary: Flags | None = None,
    secondary: Flags | None = None,
) -> Array:
    """Give every cell its confidentiality flag, by the rule that hit; small counts and dominance go before others.

    Examples
    --------
    >>> from discreet.outputs.checks.frequencies import check_counts
    >>> flags_of((2, 2), check_counts([[12, 9], [0, 30]])).tolist()
    [['C', 'A'], ['C', 'C']]
    """
    flags = np.full(shape, FREE, dtype=object)
    order = ["low count", "numerator", "complement", "denominator", "dominance", "p%"]
    failing = [finding for finding in checked.findings if finding.status == "fail"]
    failing.sort(key=lambda f: order.index(f.check) if f.check in order else len(order), reverse=True)
    for finding in failing:
        for cell in finding.cells:
            if len(cell) == len(shape) and all(i < n for i, n in zip(cell, shape, strict=True)):
                flags[cell] = _flag(finding.check, finding.figures.get("n"))
    if primary is not None:
        flags[primary & (flags == FREE)] = "C"
    if secondary is not None:
        flags[secondary] = SECONDARY
    return flags


def text(level: Any) -> str:
    """Write a level of a dimension."""
    return MISSING if level is None else str(level)


def _flag(check: str, n: Any) -> str:
    if check in ("low count", "numerator", "complement", "denominator"):
        return "A"
    if check == "dominance":
        return {1: "O", 2: "T"}.get(n, "M")
    return "G" if check == "p%" else "C"


def _column_names(keys: list[tuple[str, ...]], heading: str, taken: set[str]) -> list[str]:
    names: list[str] = []
    for key in keys:
        name = _free(" / ".join(key) or heading, taken)
        taken.add(name)
        names.append(name)
    return names


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += " "
    return name


def _plain(numbers: Array) -> list[Any]:
    listed = numbers.tolist()
    return [None if isinstance(n, float) and np.isnan(n) else n for n in listed]
