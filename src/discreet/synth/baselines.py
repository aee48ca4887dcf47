"""Two syntheses that anybody can see through, to hold the others against: no relations, and nothing but copies.

`Independent` keeps every column and no relation, `Bootstrap` keeps everything, being copies of real records. A
synthesizer is worth its trouble where it is far more useful than the first and far safer than the second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats, Integers
from discreet.core.constraints import Public
from discreet.core.errors import ParameterError
from discreet.core.method_cards import method
from discreet.core.randomness import Seed
from discreet.core.roles import Columns
from discreet.dp.entropy import Stream
from discreet.microdata import Microdata, require_microdata
from discreet.numerics.alias_tables import drawn_places
from discreet.synth.saved_models import stored
from discreet.synth.synthesizer import Fitted, Synthesizer, empty_like
from discreet.synth.whole_records import Weights, columns_of, weights_of


@dataclass(frozen=True)
class _Reference(Synthesizer):
    """Values of the file drawn with replacement, whole records together or every column by itself."""

    _together: ClassVar[bool]

    weights: Weights = "use"
    leave_out: Annotated[Columns, Public()] = None

    def fit(self, data: Microdata, *, progress: bool = False, seed: Seed = None) -> FittedDraws:
        """Take the records, to be drawn whole or column by column."""
        require_microdata(data)
        whole = engine.collect(data)
        columns, _ = columns_of(data, self.leave_out, self.weights, frame=whole)
        if not columns:
            raise ParameterError("There is no column to draw. Name fewer columns in leave_out.")
        if not whole.height:
            raise ParameterError("There are no records to draw from.")
        frame = whole.select(columns)
        shares = weights_of(data, whole) if self.weights == "use" else None
        return FittedDraws(
            empty_like(data, frame), frame.height, frame=frame, weights=shares, together=self._together
        )


@method(aim="reference", work="whole-file")
@dataclass(frozen=True)
class Independent(_Reference):
    """What is left if only the columns themselves are kept, each drawn by itself?

    Values are drawn with replacement, by survey weight where the file has one. No relation between columns survives.

    Also known as: independent marginals; marginal synthesis.

    Parameters
    ----------
    weights
        ``"use"`` draws by the survey weights, ``"ignore"`` does not. The synthetic file has no weights.
    leave_out
        Columns that the synthetic file shall not have.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"sex": ["f", "m", "m"], "age": [30, 40, 50]}))
    >>> Independent().fit(people).sample(5, seed=1).frame.shape
    (5, 2)
    """

    _together: ClassVar[bool] = False


@method(aim="reference", work="whole-file")
@dataclass(frozen=True)
class Bootstrap(_Reference):
    """What if records were simply drawn with replacement?

    Every synthetic record is a copy of a real one: a yardstick of usefulness, never a protection.

    Also known as: smoothed bootstrap; resampling.

    Parameters
    ----------
    weights
        ``"use"`` draws by the survey weights, ``"ignore"`` does not. The synthetic file has no weights.
    leave_out
        Columns that the synthetic file shall not have.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"sex": ["f", "m", "m"], "age": [30, 40, 50]}))
    >>> Bootstrap().fit(people).sample(5, seed=1).frame.shape
    (5, 2)
    """

    _together: ClassVar[bool] = True


@stored("fitted-draws")
@dataclass(eq=False, repr=False, kw_only=True)
class FittedDraws(Fitted):
    """Records to draw from, whole or column by column."""

    frame: pl.DataFrame
    weights: Floats | None
    together: bool

    def __post_init__(self) -> None:
        self.combining_rule = "simple" if self.weights is None else "pseudo-likelihood"

    def draw(self, n: int, stream: Stream) -> pl.DataFrame:
        """Draw records, or values, with replacement."""
        if self.together:
            return self.frame[self._places(n, stream("records"))]
        return pl.DataFrame([self.frame[name][self._places(n, stream(name))] for name in self.frame.columns])

    def _places(self, n: int, rng: np.random.Generator) -> Integers:
        if self.weights is None:
            return rng.integers(self.frame.height, size=n)
        return drawn_places(np.cumsum(self.weights), n, rng)
