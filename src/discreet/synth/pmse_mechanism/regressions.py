"""Files from parameters: every column by a regression on the columns before it.

Numbers are taken in units that the user declares (a center and a spread, public), so that one proper prior fits all
parameters: they are normal around 0. Categories are drawn by logits over declared levels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ColumnError, ParameterError
from discreet.synth.coded_columns import Attribute, declared_attribute
from discreet.synth.column_forms import as_numbers, is_numeric

MOST_PARAMETERS = 60


@dataclass(frozen=True, eq=False)
class Column:
    """One column: a number with its center and spread, or a category with its levels.

    Attributes
    ----------
    attribute
        What it may be.
    center, spread
        Units of a number.
    """

    attribute: Attribute
    center: float = 0.0
    spread: float = 1.0

    @property
    def is_number(self) -> bool:
        """Whether it is a number."""
        return self.attribute.levels is None

    @property
    def features(self) -> int:
        """How many numbers tell later columns about it."""
        return 1 + self.has_gaps if self.is_number else self.attribute.size - 1

    @property
    def has_gaps(self) -> bool:
        """Whether it is a number that may be missing."""
        return self.is_number and self.attribute.has_missing

    def units(self, series: pl.Series) -> Floats:
        """The column in its units, or as codes."""
        if not self.is_number:
            return self.attribute.encode(series).astype(np.float64)
        values = as_numbers(series).to_numpy().astype(np.float64)
        good = np.isfinite(values) | (np.isnan(values) & self.has_gaps)
        if not good.all():
            raise ColumnError(
                f"Column '{series.name}' has missing or infinite values, and was declared without. Name it under gaps, "
                "fill them, or leave the column out. This refusal itself tells that there are some."
            )
        return np.asarray((values - self.center) / self.spread)

    def state(self) -> dict[str, Any]:
        """Return the column for a model file."""
        return {"attribute": self.attribute.state(), "center": self.center, "spread": self.spread}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Column:
        """Make the column again."""
        return cls(Attribute.restored(state["attribute"]), float(state["center"]), float(state["spread"]))


def columns_declared(
    frame: pl.DataFrame,
    prior: Mapping[str, Any],
    domain: Mapping[str, Any],
    never_missing: Sequence[str],
    gaps: Sequence[str] = (),
) -> list[Column]:
    """Make columns from what was declared alone."""
    for name in gaps:
        if name not in prior:
            raise ColumnError(
                f"Column '{name}' was named under gaps, which is for numbers that have a prior."
            )
    made = []
    for name in frame.columns:
        series = frame[name]
        if name not in prior:
            if is_numeric(series.dtype) and name not in domain:
                raise ColumnError(
                    f"Column '{name}' needs a prior that does not come from the data: prior={{'{name}': (center, "
                    "spread)}} says about where its values lie. Or declare its levels under domain."
                )
            made.append(
                Column(
                    declared_attribute(
                        series,
                        list(own) if isinstance(own := domain.get(name), tuple) else own,
                        bins=2,
                        never_missing=name in never_missing,
                    )
                )
            )
            continue
        given = prior[name]
        if not is_numeric(series.dtype) or series.dtype.is_temporal():
            raise ColumnError(f"Column '{name}' is no number: declare its levels under domain.")
        numbers = list(given) if isinstance(given, list | tuple) else []
        good = len(numbers) == 2 and all(
            isinstance(each, int | float) and not isinstance(each, bool) and np.isfinite(each)
            for each in numbers
        )
        if not good or not numbers[1] > 0:
            raise ColumnError(f"The prior of column '{name}' must be (center, spread) with a spread above 0.")
        whole = 0 if series.dtype.is_integer() else None
        made.append(
            Column(
                Attribute(name, series.dtype, None, np.array([0.0, 1.0]), name in gaps, whole),
                float(numbers[0]),
                float(numbers[1]),
            )
        )
    return made


@dataclass(frozen=True, eq=False)
class Regressions:
    """A generator of files from one vector of parameters."""

    columns: tuple[Column, ...]

    @property
    def dim(self) -> int:
        """How many parameters there are."""
        total = features = 0
        for column in self.columns:
            if column.is_number:
                total += features + 2 + (features + 1) * column.has_gaps
            else:
                total += (column.attribute.size - 1) * (features + 1)
            features += column.features
        return total

    @property
    def noises(self) -> int:
        """How many random numbers a record takes."""
        return sum(
            1 + column.has_gaps if column.is_number else column.attribute.size for column in self.columns
        )

    def check(self) -> None:
        """Refuse more parameters than a sampler can explore."""
        if self.dim > MOST_PARAMETERS:
            raise ParameterError(
                f"The regressions have {self.dim} parameters, more than the {MOST_PARAMETERS} that can be drawn well. "
                "Leave columns out, or declare fewer levels."
            )

    def noise(self, n: int, rng: np.random.Generator) -> Floats:
        """Random numbers for so many records: normal for numbers, logistic for their gaps, Gumbel for levels."""
        parts: list[Floats] = []
        for column in self.columns:
            if not column.is_number:
                parts.append(rng.gumbel(size=(n, column.attribute.size)))
                continue
            parts.append(rng.standard_normal((n, 1)))
            if column.has_gaps:
                parts.append(rng.logistic(size=(n, 1)))
        return np.concatenate(parts, axis=1)

    def usable(self, units: Floats) -> bool:
        """Whether a file has numbers where it should: what passed all bounds is none, and a gap only where declared."""
        gaps = np.array([column.has_gaps for column in self.columns])
        return bool((np.isfinite(units) | (np.isnan(units) & gaps)).all())

    def held(self, units: Floats) -> Floats:
        """The file within what a column can hold: a draw from the tail of a wide prior may pass it."""
        gaps = np.array([column.has_gaps for column in self.columns])
        return np.asarray(np.clip(np.where(np.isnan(units) & ~gaps, 0.0, units), -1e12, 1e12))

    def made(self, theta: Floats, noise: Floats) -> Floats:
        """The file of these parameters and random numbers, in units and codes; may hold numbers beyond any bound."""
        n = len(noise)
        known = np.ones((n, 1))
        out = np.empty((n, len(self.columns)))
        at = place = 0
        with np.errstate(all="ignore"):
            for j, column in enumerate(self.columns):
                wide = known.shape[1]
                if column.is_number:
                    mean = known @ theta[at : at + wide]
                    value = mean + np.exp(theta[at + wide]) * noise[:, place]
                    at, place = at + wide + 1, place + 1
                    out[:, j] = value
                    if column.has_gaps:
                        gone = known @ theta[at : at + wide] + noise[:, place] > 0
                        at, place = at + wide, place + 1
                        # What is no number because it passed all bounds is no gap.
                        out[:, j] = np.where(gone, np.nan, np.where(np.isnan(value), np.inf, value))
                        known = np.column_stack([known, np.where(gone, 0.0, value), gone])
                    else:
                        known = np.column_stack([known, value])
                    continue
                size = column.attribute.size
                slopes = theta[at : at + wide * (size - 1)].reshape(wide, size - 1)
                logits = np.column_stack([np.zeros(n), known @ slopes]) + noise[:, place : place + size]
                codes = np.argmax(logits, axis=1)
                out[:, j] = codes
                at, place = at + wide * (size - 1), place + size
                known = np.column_stack([known, codes[:, None] == np.arange(1, size)])
        return out

    def split(self, units: Floats) -> Floats:
        """Columns that trees split: numbers as they are, their gaps, one for every level of a category."""
        parts: list[Floats] = []
        for j, column in enumerate(self.columns):
            own = units[:, j]
            if not column.is_number:
                parts += [np.asarray(own == code, dtype=np.float64) for code in range(column.attribute.size)]
            elif column.has_gaps:
                gone = np.isnan(own)
                parts += [np.where(gone, 0.0, own), gone.astype(np.float64)]
            else:
                parts.append(own)
        return np.column_stack(parts)

    def frame(self, units: Floats) -> pl.DataFrame:
        """The file for people."""
        made = []
        for j, column in enumerate(self.columns):
            if column.is_number:
                # The last code of a number is a gap.
                codes: Integers = np.isnan(units[:, j]).astype(np.int64)
                made.append(column.attribute.decode(codes, column.center + column.spread * units[:, j]))
            else:
                made.append(column.attribute.decode(units[:, j].astype(np.int64), None))
        return pl.DataFrame(made)
