"""Weights that bring a made-up file to the margins of a population."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Floats
from discreet.core.described import made_from
from discreet.core.errors import ParameterError
from discreet.core.parameters import typed_parameters
from discreet.numerics.proportional_fitting import GroupMargin, fit_margins
from discreet.synth.from_outputs.codebook import Codebook


@dataclass(frozen=True)
@typed_parameters
class Raking:
    """Calibrate a weight column to population margins by iterative proportional fitting.

    Parameters
    ----------
    margins
        ``{variable: {level: number of people}}``.
    clip
        Smallest and largest weight, as a multiple of the mean weight.
    rounds
        Most rounds of fitting.

    Examples
    --------
    >>> Raking({"SEX": {1: 24_000, 2: 26_000}}).clip
    (0.3, 3.0)
    """

    margins: Mapping[str, Mapping[Any, float]]
    clip: Sequence[float] = (0.3, 3.0)
    rounds: int = 100

    def __post_init__(self) -> None:
        object.__setattr__(self, "clip", tuple(float(bound) for bound in self.clip))
        if not self.margins:
            raise ParameterError("Raking needs margins: {variable: {level: number of people}}.")
        if len(self.clip) != 2 or not 0 <= self.clip[0] < 1 < self.clip[1]:
            raise ParameterError("clip must be two multiples of the mean weight, one below 1 and one above.")
        for name, margin in self.margins.items():
            if any(not count >= 0 for count in margin.values()) or sum(margin.values()) <= 0:
                raise ParameterError(f"The population margin of '{name}' must hold counts of at least 0.")

    def check(self, codebook: Codebook) -> tuple[str, ...]:
        """Refuse margins that the codebook does not know, and tell where they contradict one another."""
        sizes = [self._wanted(codebook, name).sum() for name in self.margins]
        largest, smallest = max(sizes), min(sizes)
        if largest - smallest <= 1e-9 * largest:
            return ()
        return (
            f"The population margins of the weights add up to between {smallest:,.0f} and {largest:,.0f}; all were "
            f"brought to {sizes[0]:,.0f}, the sum of the first.",
        )

    def weigh(self, codebook: Codebook, file: Floats) -> tuple[Floats, pl.DataFrame]:
        """Return the weights, and the margins published and reached."""
        margins = [self._margin(codebook, name, file) for name in self.margins]
        mean = margins[0].wanted.sum() / len(file)
        low, high = (bound * mean for bound in self.clip)
        weights = fit_margins(
            np.full(len(file), mean),
            margins,
            tolerance=1e-10 * mean,
            rounds=self.rounds,
            empty=1.0,
            within=lambda weights: np.clip(weights, low, high),
        ).cells
        rows = []
        for margin, name in zip(margins, self.margins, strict=True):
            rows += [
                {"variable": name, "level": str(level), "population": float(people), "reached": float(got)}
                for level, people, got in zip(
                    codebook[name].levels, margin.wanted, margin.sums(weights), strict=True
                )
            ]
        return weights, pl.DataFrame(rows).with_columns(difference=pl.col("reached") - pl.col("population"))

    def _margin(self, codebook: Codebook, name: str, file: Floats) -> GroupMargin:
        wanted = self._wanted(codebook, name)
        first = next(iter(self.margins.values()))
        # Margins of different sources rarely agree on the size of the population; the first one settles it.
        wanted *= sum(first.values()) / wanted.sum()
        return GroupMargin(file[:, codebook.index(name)].astype(np.int64), wanted)

    def _wanted(self, codebook: Codebook, name: str) -> Floats:
        variable = codebook[name]
        if not variable.is_categorical:
            raise ParameterError(
                f"Weights are raked to categories; '{name}' is a number. Give it levels first."
            )
        wanted = np.zeros(len(variable.levels))
        for level, count in self.margins[name].items():
            wanted[variable.position(level)] = count
        if len(self.margins[name]) != len(variable.levels):
            raise ParameterError(f"The population margin of '{name}' must name every level of the codebook.")
        return wanted

    def to_dict(self) -> dict[str, Any]:
        """Return the raking as it stands in TOML."""
        margins = {
            name: {str(level): n for level, n in margin.items()} for name, margin in self.margins.items()
        }
        return {"margins": margins, "clip": list(self.clip), "rounds": self.rounds}

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> Raking:
        """Read a raking as it stands in TOML."""
        return made_from(cls, "weights", entries)
