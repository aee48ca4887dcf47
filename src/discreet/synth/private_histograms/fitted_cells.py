"""Cells that were drawn or counted privately, from which synthetic files are made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ParameterError
from discreet.microdata import Microdata
from discreet.synth.coded_columns import Attribute
from discreet.synth.private_histograms.cells import Box
from discreet.synth.synthesizer import Fitted, Stream


class FittedCells(Fitted):
    """Noisy counts of cells, or the cells of rows that were drawn once.

    Attributes
    ----------
    counts
        Noisy counts, none below zero; None where rows were drawn.
    drawn
        The cells of the rows that were drawn; None where counts are known.
    left_out
        Columns that the synthetic file does not have, and why.
    """

    def __init__(
        self,
        like: Microdata,
        rows: int,
        *,
        box: Box,
        left_out: Mapping[str, str],
        counts: Floats | None = None,
        drawn: Integers | None = None,
    ) -> None:
        super().__init__(like, rows)
        self.box = box
        self.counts = counts
        self.drawn = drawn
        self.left_out = dict(left_out)

    def draw(self, n: int, stream: Stream) -> pl.DataFrame:
        """Draw from the noisy counts, or hand out the rows that were drawn."""
        if self.drawn is not None:
            if n > len(self.drawn):
                raise ParameterError(
                    f"The {len(self.drawn):,} rows were drawn when the model was fitted, and more would cost more of "
                    "the budget. Ask for fewer, or fit again with n_rows."
                )
            return self.box.frame(self.drawn[:n], stream)
        assert self.counts is not None
        weights = self.counts if self.counts.sum() > 0 else np.ones_like(self.counts)
        ends = np.cumsum(weights)
        cells = np.searchsorted(ends, stream("cells").random(n) * ends[-1], side="right")
        return self.box.frame(np.minimum(cells, len(ends) - 1), stream)

    def state(self) -> dict[str, Any]:
        """Return the model for a file."""
        return {
            "attributes": [attribute.state() for attribute in self.box.attributes],
            "counts": self.counts,
            "drawn": self.drawn,
            "left_out": dict(self.left_out),
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any], like: Microdata, rows: int) -> Self:
        """Make the model again."""
        return cls(
            like,
            rows,
            box=Box(tuple(Attribute.restored(own) for own in state["attributes"])),
            counts=state["counts"],
            drawn=state["drawn"],
            left_out=state["left_out"],
        )
