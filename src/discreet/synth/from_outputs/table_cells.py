"""Cells of published tables as conditions on counts, and what all targets check about their figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from discreet.core.arrays import Flags, Floats
from discreet.core.errors import ParameterError
from discreet.synth.from_outputs.bound import BoundTable, Form
from discreet.synth.from_outputs.codebook import Codebook
from discreet.synth.from_outputs.columns import BETWEEN, Column, Factor, filter_columns, level_column
from discreet.synth.from_outputs.printed import printed_unit

Counted = Literal["counts", "proportions", "row_proportions"]


@dataclass(frozen=True)
class Cells:
    """What a table and a distribution have in common: labeled cells with a value each, in rows."""

    title: str
    labels: Sequence[str]
    cells: Sequence[Column]
    rows: Sequence[Column]
    values: Floats
    counted: Counted

    def bind(
        self, codebook: Codebook, n: int, where: Mapping[str, Any], unit: float | None, weight: float
    ) -> BoundTable:
        """Turn the published cells into conditions on counts."""
        there = np.isfinite(self.values)
        check_published(there, self.title)
        base = filter_columns(codebook, where)
        values, half, notes = self._rounding(
            n, there, base, checked_unit(unit, self.values[there], self.title)
        )
        # Without a filter a proportion of the whole is a count in n.
        in_records = self.counted == "counts" or (self.counted == "proportions" and not base)
        per = float(n) if self.counted == "proportions" and in_records else 1.0
        forms = []
        for place in np.flatnonzero(there).tolist():
            whole = base if self.counted == "proportions" else (*self.rows[place], *base)
            share_of = None if in_records else whole
            cell = (*self.cells[place], *base)
            forms.append(Form(cell, share_of, float(values[place]) * per, half * per))
        size = len(forms)
        counts = self.counted == "counts"
        return BoundTable(
            self.title,
            tuple(label for label, kept in zip(self.labels, there, strict=True) if kept),
            values[there],
            np.full(size, max(half, 0.5) if counts else half),
            np.full(size, 1.0 / n if counts else 1.0),
            checked_weight(weight, self.title),
            base,
            tuple(forms),
            all(factor.table for form in forms for column in form.columns() for factor in column),
            per,
            notes,
        )

    def _rounding(
        self, n: int, there: Flags, base: Column, unit: float
    ) -> tuple[Floats, float, tuple[str, ...]]:
        """Return the values, how far from them the file may be, and what was changed about them."""
        values, title, half = self.values, self.title, unit / 2
        if (values[there] < 0).any():
            raise ParameterError(f"The table '{title}' has a negative cell.")
        if self.counted != "counts":
            if (values[there] > 1).any():
                raise ParameterError(
                    f"The table '{title}' has proportions above 1; divide percentages by 100."
                )
            return values, half, ()
        if (values[there] != np.round(values[there])).any():
            raise ParameterError(
                f"The table '{title}' has counts that are no whole numbers. Say counted='proportions' for shares of "
                "the whole (divide percentages by 100), or round weighted counts."
            )
        # A count printed as a whole number is that number; only coarser rounding leaves room.
        half = 0.0 if unit <= 1 else half
        total = float(values[there].sum())
        if base or not there.all() or abs(total - n) <= half * len(values):
            return values, half, ()
        if total <= 0:
            raise ParameterError(f"The table '{title}' is empty.")
        note = (
            f"The table '{title}' adds up to {total:,.0f} and the file is to have {n:,} records: "
            "its counts were rescaled."
        )
        return values * (n / total), max(1.0, max(half, 0.5) * n / total), (note,)


def side_of(
    codebook: Codebook, name: str, bands: Mapping[str, Sequence[float]], title: str
) -> tuple[list[str], list[Factor]]:
    """Return the labels and indicators of one side of a table."""
    variable = codebook[name]
    if variable.is_categorical:
        sides = [level_column(codebook, name, [place]) for place in range(len(variable.levels))]
        return [f"{name}={level}" for level in variable.levels], sides
    edges = [float(edge) for edge in bands.get(name, ())]
    if len(edges) < 2 or edges != sorted(set(edges)):
        raise ParameterError(
            f"'{title}' uses the number '{name}' as a category. Say how it is cut: bands={{'{name}': [edge, edge, …]}}."
        )
    uppers = [np.nextafter(edge, -np.inf) for edge in edges[1:-1]] + [edges[-1]]
    sides = [
        Factor(codebook.index(name), BETWEEN, low, float(high))
        for low, high in zip(edges[:-1], uppers, strict=True)
    ]
    return [f"{name} {low:g}-{high:g}" for low, high in pairwise(edges)], sides


def checked_unit(unit: float | None, published: Iterable[float], title: str) -> float:
    """Return the printing unit; read off the figures unless named."""
    if unit is None:
        return printed_unit(published)
    if isinstance(unit, bool) or not unit > 0:
        raise ParameterError(f"The printing unit of '{title}' must be above 0, e.g. 0.001.")
    return float(unit)


def checked_weight(weight: float, title: str) -> float:
    """Return the weight of a target, or refuse it."""
    if isinstance(weight, bool) or not (weight >= 0 and math.isfinite(weight)):
        raise ParameterError(f"The weight of '{title}' must be a number of at least 0.")
    return float(weight)


def check_published(there: Flags, title: str) -> None:
    """Refuse a target without any figure."""
    if not there.any():
        raise ParameterError(f"'{title}' has no published figure.")
