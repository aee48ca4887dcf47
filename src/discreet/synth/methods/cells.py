"""Records that agree on all predictors, as cells: how they are keyed and how donors are drawn from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Array, Flags, Floats, Integers
from discreet.synth.variables import Variable


def cell_frame(predictors: Sequence[Variable]) -> pl.DataFrame:
    """Return the predictors as columns ``k0``, ``k1``…, to be grouped and joined by."""
    return pl.DataFrame({f"k{place}": variable.values for place, variable in enumerate(predictors)})


class Cells:
    """The cells of observed records, each with its donors."""

    def __init__(self, keys: pl.DataFrame, starts: Integers, donors: Array, mass: Floats | None) -> None:
        self.keys = keys
        self.starts = starts
        self.donors = donors
        self.mass = mass

    @classmethod
    def of(cls, predictors: Sequence[Variable], values: Array, weights: Floats | None) -> Cells:
        """Group the records; ``mass`` is the running total of the weights, cell after cell."""
        frame = cell_frame(predictors)
        sized = frame.group_by(frame.columns).agg(pl.len().alias("·many")).sort(frame.columns)
        keys = sized.drop("·many").with_row_index("cell")
        at = frame.join(keys, on=frame.columns, how="left", maintain_order="left")["cell"].to_numpy()
        order = np.argsort(at, kind="stable")
        starts = np.concatenate([[0], np.cumsum(sized["·many"].to_numpy())]).astype(np.int64)
        mass = None if weights is None else np.cumsum(weights[order])
        return cls(keys, starts, values[order], mass)

    def find(self, predictors: Sequence[Variable]) -> tuple[Integers, Flags]:
        """Return the cell of every record and whether it has one."""
        frame = cell_frame(predictors)
        cell = frame.join(self.keys, on=frame.columns, how="left", maintain_order="left")["cell"]
        return cell.fill_null(0).to_numpy().astype(np.int64), cell.is_not_null().to_numpy()

    def draw(self, cells: Integers, rng: np.random.Generator) -> Array:
        """Draw one donor of each cell, in proportion to the weights where there are any."""
        low, high = self.starts[cells], self.starts[cells + 1]
        if self.mass is None:
            return self.donors[low + (rng.random(len(cells)) * (high - low)).astype(np.int64)]
        below = np.where(low > 0, self.mass[low - 1], 0.0)
        aim = below + rng.random(len(cells)) * (self.mass[high - 1] - below)
        return self.donors[np.clip(np.searchsorted(self.mass, aim, side="right"), low, high - 1)]

    def state(self) -> dict[str, Any]:
        """Return the cells for a model file."""
        return {
            "columns": self.keys.columns,
            "keys": self.keys.get_columns(),
            "starts": self.starts,
            "donors": self.donors,
            "mass": self.mass,
        }

    @classmethod
    def restored(cls, state: Any) -> Cells:
        """Make the cells again."""
        named = zip(state["columns"], state["keys"], strict=True)
        keys = pl.DataFrame([series.rename(name) for name, series in named])
        return cls(keys, state["starts"], state["donors"], state["mass"])


def resampled_within(predictors: Sequence[Variable], rng: np.random.Generator) -> Array:
    """Draw as many records with replacement, each from those of its own cell, so that no cell is lost."""
    cells = Cells.of(predictors, np.arange(len(predictors[0])), None)
    return cells.draw(cells.find(predictors)[0], rng)
