"""Normal models that were drawn privately, from which synthetic files are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats
from discreet.microdata import Microdata
from discreet.synth.column_forms import from_numbers
from discreet.synth.synthesizer import Fitted, Stream


class FittedNormal(Fitted):
    """Means and covariances, one pair a dataset.

    Attributes
    ----------
    repaired
        How many noisy covariances had to be made positive.
    left_out
        Columns that the synthetic file does not have, and why.
    """

    def __init__(
        self,
        like: Microdata,
        rows: int,
        *,
        names: Sequence[str],
        centers: Floats,
        means: Floats,
        covariances: Floats,
        repaired: int,
        left_out: Mapping[str, str],
    ) -> None:
        super().__init__(like, rows)
        self.names = list(names)
        self.centers = np.asarray(centers, dtype=np.float64)
        self.means = np.asarray(means, dtype=np.float64)
        self.covariances = np.asarray(covariances, dtype=np.float64)
        self.repaired = int(repaired)
        self.left_out = dict(left_out)

    def draw(self, n: int, stream: Stream) -> pl.DataFrame:
        """Draw a file from one of the models."""
        at = int(stream("which").integers(len(self.means)))
        values = self.centers + stream("records").multivariate_normal(
            self.means[at], self.covariances[at], size=n
        )
        none = np.zeros(n, dtype=bool)
        empty = engine.collect(self.like)
        made = []
        for j, name in enumerate(self.names):
            dtype = empty[name].dtype
            own = np.round(values[:, j]) if dtype.is_integer() else values[:, j]
            made.append(from_numbers(own, none, dtype, name))
        return pl.DataFrame(made)

    def state(self) -> dict[str, Any]:
        """Return the model for a file."""
        return {
            "names": list(self.names),
            "centers": self.centers,
            "means": self.means,
            "covariances": self.covariances,
            "repaired": self.repaired,
            "left_out": dict(self.left_out),
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any], like: Microdata, rows: int) -> Self:
        """Make the model again."""
        return cls(like, rows, **{name: state[name] for name in _PARTS})


_PARTS = ("names", "centers", "means", "covariances", "repaired", "left_out")
