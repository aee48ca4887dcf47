"""Numbers of simulated persons by a regression: linear in logarithms, of counts, or by boosted trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ColumnError
from discreet.synth.column_forms import decimals_of, from_numbers
from discreet.synth.member_laws import Classing, indicators
from discreet.synth.saved_models import stored, unstored

Regression = Literal["lm", "poisson", "boosting"]
REGRESSIONS = ("lm", "poisson", "boosting")
_STRATUM = "stratum"


@stored("regression-law")
@dataclass(frozen=True, eq=False)
class RegressionLaw:
    """A number given the classes of other columns, for those who have one and for whom it is not zero.

    Attributes
    ----------
    kind
        ``"lm"``: linear in the logarithm, with the rest of somebody in the survey; ``"poisson"``: counts;
        ``"boosting"``: boosted trees in place of the line.
    predictors, sizes
        Names of the columns it goes by, the stratum last, and how many classes each has.
    slopes, constant
        Of the indicators of the classes (not for boosting).
    shift
        Added before the logarithm is taken, so that it exists.
    rests, upto
        What the regression left over in the survey, and sums of weights by which a rest is drawn.
    ends
        Smallest and largest value of the survey; nothing is drawn outside.
    fine
        How the drawn numbers are classed where later columns go by them.
    missing
        The class of those who have no number; -1 where everybody has one.
    model
        The trees of a boosting.
    """

    kind: str
    predictors: tuple[str, ...]
    sizes: tuple[int, ...]
    slopes: Floats
    constant: float
    shift: float
    rests: Floats
    upto: Floats
    ends: tuple[float, float]
    decimals: int | None
    fine: Classing
    missing: int
    model: Any = field(
        default=None,
        metadata=unstored(
            "Boosted trees are not kept in a model file. Use 'lm' or 'multinom', or fit again."
        ),
    )

    @classmethod
    def of(  # noqa: PLR0917
        cls,
        kind: Regression,
        series: pl.Series,
        coarse: Classing,
        fine: Classing,
        known: Mapping[str, Integers],
        sizes: Sequence[int],
        stratum: Integers,
        weights: Floats,
        seed: int,
    ) -> RegressionLaw:
        """Fit the regression to the records that have a number."""
        values = series.cast(pl.Float64).fill_null(0.0).fill_nan(0.0).to_numpy()
        there = coarse.codes(series) == 0
        own, weight = values[there], weights[there] / weights[there].mean()
        all_sizes = (*sizes, int(stratum.max()) + 1)
        example = np.column_stack([*known.values(), stratum])[there]
        predictors, ends = (*known, _STRATUM), (float(own.min()), float(own.max()))
        places = 0 if coarse.dtype.is_integer() else decimals_of(values)
        design = indicators(example, all_sizes).astype(np.float64)
        if kind == "poisson":
            from sklearn.linear_model import PoissonRegressor

            fitted = PoissonRegressor(alpha=1e-4, max_iter=500).fit(design, own, sample_weight=weight)
            none = np.empty(0)
            return cls(
                kind, predictors, all_sizes, np.asarray(fitted.coef_, dtype=np.float64), float(fitted.intercept_),
                0.0, none, none, ends, places, fine, coarse.missing,
            )  # fmt: skip
        shift = max(0.0, 1.0 - ends[0]) if ends[0] <= 0 else 0.0
        logs = np.log(own + shift)
        slopes, constant, model = np.empty(0), 0.0, None
        if kind == "lm":
            root = np.sqrt(weight)
            wide = np.column_stack([np.ones(len(design)), design])
            solved = np.linalg.lstsq(wide * root[:, np.newaxis], logs * root, rcond=None)[0]
            constant, slopes = float(solved[0]), solved[1:]
            line = wide @ solved
        else:
            from sklearn.ensemble import GradientBoostingRegressor

            model = GradientBoostingRegressor(n_estimators=100, min_samples_leaf=20, random_state=seed)
            model.fit(example, logs, sample_weight=weight)
            line = model.predict(example)
        return cls(
            kind, predictors, all_sizes, slopes, constant, shift, logs - line, np.cumsum(weight), ends, places,
            fine, coarse.missing, model,
        )  # fmt: skip

    def draw(
        self,
        codes: Integers,
        known: Mapping[str, Integers],
        stratum: Integers,
        rng: np.random.Generator,
        name: str,
    ) -> pl.Series:
        """Draw the numbers of those whose class says that they have one."""
        values = np.zeros(len(codes))
        rows = np.flatnonzero(codes == 0)
        columns = [stratum[rows] if own == _STRATUM else known[own][rows] for own in self.predictors]
        if len(rows):
            values[rows] = self._drawn(columns, rng)
        if self.decimals is not None:
            values = np.round(values, self.decimals) + 0.0
        missing = codes == self.missing if self.missing >= 0 else None
        return from_numbers(values, missing, self.fine.dtype, name)

    def _drawn(self, columns: Sequence[Integers], rng: np.random.Generator) -> Floats:
        line = self._line(columns)
        if self.kind == "poisson":
            return rng.poisson(np.exp(np.minimum(line, np.log(2 * self.ends[1] + 10)))).astype(np.float64)
        at = np.searchsorted(self.upto, rng.random(len(line)) * self.upto[-1], side="right")
        drawn = np.exp(np.minimum(line + self.rests[np.minimum(at, len(self.rests) - 1)], 700.0)) - self.shift
        return np.asarray(np.clip(drawn, *self.ends))

    def _line(self, columns: Sequence[Integers]) -> Floats:
        """What the regression says: looked up class by class, so that millions of persons need no wide table."""
        if self.kind == "boosting":
            packed = np.column_stack(columns)
            cells, at = np.unique(packed, axis=0, return_inverse=True)
            return np.asarray(self.model.predict(cells), dtype=np.float64)[at.ravel()]
        line = np.full(len(columns[0]), self.constant)
        upto = 0
        for codes, size in zip(columns, self.sizes, strict=True):
            table = np.concatenate([[0.0], self.slopes[upto : upto + size - 1]])
            line += table[np.minimum(codes, size - 1)]
            upto += size - 1
        return line


def having_a_number(series: pl.Series, kind: Regression) -> Classing | None:
    """Class a column by whether there is a number, zero apart; None where there is nothing for a regression to learn.

    Counts have zeros of their own, so these are no class apart.
    """
    values = series.cast(pl.Float64).fill_nan(None)
    known = values.drop_nulls()
    if kind == "poisson" and len(known) and (bool((known < 0).any()) or bool((known != known.round()).any())):
        raise ColumnError(
            f"cont_method='poisson' draws counts, and column '{series.name}' has values that are negative or no whole "
            "numbers. Use 'multinom' or 'lm'."
        )
    apart = kind != "poisson" and bool((known == 0).any())
    own = known.filter(known != 0) if apart else known
    if not len(own) or (kind == "poisson" and not float(own.sum())):
        return None
    ends = np.array([float(own.min()), float(own.max())])  # type: ignore[arg-type]
    gaps = len(known) < len(values)
    empty = pl.Series("level", [], dtype=pl.String)
    missing = 1 + apart if gaps else -1
    return Classing(series.name, series.dtype, empty, ends, 1 if apart else -1, missing, 1 + apart + gaps)
