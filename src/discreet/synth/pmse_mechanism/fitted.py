"""Parameters that were drawn privately, from which synthetic files are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import polars as pl

from discreet.core.arrays import Floats
from discreet.microdata import Microdata
from discreet.synth.pmse_mechanism.drawing import Diagnosis
from discreet.synth.pmse_mechanism.regressions import Column, Regressions
from discreet.synth.synthesizer import Fitted, Stream


class FittedParameters(Fitted):
    """Parameters of regressions.

    Attributes
    ----------
    thetas
        One row a vector of parameters that was drawn; as private as the files.
    diagnosis
        How the draw went. It was read off the data: not for publication, and not in a model file.
    left_out
        Columns that the synthetic file does not have, and why.
    """

    diagnosis: Diagnosis | None = None

    def __init__(
        self,
        like: Microdata,
        rows: int,
        *,
        generator: Regressions,
        thetas: Floats,
        left_out: Mapping[str, str],
    ) -> None:
        super().__init__(like, rows)
        self.generator = generator
        self.thetas = np.asarray(thetas, dtype=np.float64)
        self.left_out = dict(left_out)

    def draw(self, n: int, stream: Stream) -> pl.DataFrame:
        """Draw a file from one of the vectors of parameters."""
        theta = self.thetas[int(stream("which").integers(len(self.thetas)))]
        units = self.generator.made(theta, self.generator.noise(n, stream("records")))
        return self.generator.frame(self.generator.held(units))

    def state(self) -> dict[str, Any]:
        """Return the model for a file."""
        return {
            "columns": [column.state() for column in self.generator.columns],
            "thetas": self.thetas,
            "left_out": dict(self.left_out),
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any], like: Microdata, rows: int) -> Self:
        """Make the model again."""
        return cls(
            like,
            rows,
            generator=Regressions(tuple(Column.restored(each) for each in state["columns"])),
            thetas=state["thetas"],
            left_out=state["left_out"],
        )
