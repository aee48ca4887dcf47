"""Extreme values: top- and bottom-coding, one column at a time or all together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats, Words
from discreet.core.cards import Work
from discreet.core.citations import HUNDEPOOL_2012
from discreet.core.constraints import ColumnNames, Public, Share
from discreet.core.errors import ParameterError
from discreet.core.method_cards import method
from discreet.dp.entropy import Stream
from discreet.engine import ByRecord
from discreet.microdata import Microdata
from discreet.protect.treatment import Change, Treatment, numeric

Replacement = Literal["limit", "mean", "median", "missing"]


@method(aim="coarser values", work="row-wise", references=(HUNDEPOOL_2012,))
@dataclass(frozen=True)
class TopBottomCode(Treatment):
    """Pull extreme values in: the highest incomes, the oldest people.

    It protects against recognizing the few with extreme values, who are known to many.

    One column at a time, values beyond a limit are replaced. With ``joint`` columns, records that are extreme
    *together* are found by their robust Mahalanobis distance (minimum covariance determinant, Rousseeuw and Van
    Driessen 1999) and drawn towards the center until they are at the limit distance.

    Also known as: top coding; bottom coding.

    Parameters
    ----------
    top, bottom
        ``{column: limit}``.
    top_share, bottom_share
        ``{column: share}``: the limit that this share of the values lies beyond, e.g. 0.01.
    replacement
        What stands for values beyond a limit: the ``"limit"`` itself, the ``"mean"`` or ``"median"`` of the values
        beyond it (which keeps the total, or the middle), or ``"missing"``.
    joint
        Numeric columns to be looked at together.
    joint_share
        Share of a normal population that lies beyond the joint limit.

    What it costs
    -------------
    The tails: means, variances and inequality measures shrink, unless ``replacement="mean"`` keeps the total.

    When not to use it
    ------------------
    Do not use it alone: everybody in the middle stays as they were. Do not take a limit beyond which only one
    or two people lie, whose mean would then be their value.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"pay": [10, 20, 30, 1000]}))
    >>> TopBottomCode(top={"pay": 30}).apply(people).data.frame["pay"].to_list()
    [10, 20, 30, 30]
    """

    top: Annotated[Mapping[str, float], Public()] = field(default_factory=dict)
    bottom: Annotated[Mapping[str, float], Public()] = field(default_factory=dict)
    top_share: Annotated[Mapping[str, Annotated[float, Share(above=True, below=True)]], Public()] = field(
        default_factory=dict
    )
    bottom_share: Annotated[Mapping[str, Annotated[float, Share(above=True, below=True)]], Public()] = field(
        default_factory=dict
    )
    replacement: Replacement = "limit"
    joint: ColumnNames = ()
    joint_share: Annotated[float, Share(above=True, below=True)] = 0.025

    def __post_init__(self) -> None:
        for side, shares in (("top", self.top_share), ("bottom", self.bottom_share)):
            fixed = self.top if side == "top" else self.bottom
            for name in shares:
                if name in fixed:
                    raise ParameterError(f"'{name}' has both {side} and {side}_share. Give one of them.")
        for name in set(self.top) & set(self.bottom):
            if self.bottom[name] > self.top[name]:
                raise ParameterError(f"The bottom limit of '{name}' is above its top limit.")

    @property
    def work(self) -> Work:
        """Row-wise where limits are given: a limit of a share, and a mean beyond it, need all values."""
        learned = self.top_share or self.bottom_share or self.joint
        return "whole-file" if learned or self.replacement in ("mean", "median") else "row-wise"

    def treat(self, data: Microdata, stream: Stream) -> Change:
        """Replace what lies beyond the limits."""
        single = dict.fromkeys([*self.top, *self.bottom, *self.top_share, *self.bottom_share])
        names = numeric(data, [*single, *(c for c in self.joint if c not in single)], treatment=self.name)
        if self.work == "row-wise":
            kinds = engine.types_in_polars(data, names)
            makes = {name: self._kind(data, name, kind) for name, kind in kinds.items()}
            return Change(by_record=ByRecord(names, makes, partial(self._batch, makes)))
        table = engine.collect(data, names)
        columns = {name: self._coded(table[name]) for name in single}
        if self.joint:
            columns |= self._jointly(table.with_columns(**columns), stream)
        return Change(columns=columns)

    def _kind(self, data: Microdata, name: str, kind: pl.DataType) -> pl.DataType:
        """Whole numbers stay whole unless a broken limit takes the place of one of them."""
        limits = [limit[name] for limit in (self.top, self.bottom) if name in limit]
        broken = [limit for limit in limits if not float(limit).is_integer()]
        if not kind.is_integer() or self.replacement == "missing" or not broken:
            return kind
        high, low = self.top.get(name, math.inf), self.bottom.get(name, -math.inf)
        least, most = engine.extremes(data, name)
        used = (high in broken and most > high) or (low in broken and least < low)
        return pl.Float64() if used else kind

    def _batch(
        self, makes: Mapping[str, pl.DataType], table: pl.DataFrame, records: Words
    ) -> dict[str, pl.Series]:
        return {column.name: self._coded(column).cast(makes[column.name]) for column in table}

    def _coded(self, values: pl.Series) -> pl.Series:
        name, coded = values.name, values
        high, low = self.top.get(name), self.bottom.get(name)
        if name in self.top_share:
            high = values.quantile(1 - self.top_share[name], interpolation="lower")
        if name in self.bottom_share:
            low = values.quantile(self.bottom_share[name], interpolation="higher")
        if high is not None:
            coded = self._replaced(coded, values > high, high)
        if low is not None:
            coded = self._replaced(coded, values < low, low)
        return coded

    def _replaced(self, values: pl.Series, beyond: pl.Series, limit: float) -> pl.Series:
        outside = values.filter(beyond)
        stand_in: float | None = limit
        if self.replacement == "missing" or not len(outside):
            stand_in = None
        elif self.replacement != "limit":
            stand_in = getattr(outside, self.replacement)()
        fits = stand_in is None or not values.dtype.is_integer() or float(stand_in).is_integer()
        kind = values.dtype if fits else pl.Float64()
        return pl.select(
            pl.when(beyond).then(pl.lit(stand_in).cast(kind)).otherwise(values.cast(kind))
        ).to_series()

    def _jointly(self, table: pl.DataFrame, stream: Stream) -> dict[str, pl.Series]:
        from scipy.stats import chi2
        from sklearn.covariance import MinCovDet

        names = list(self.joint)
        complete = table.select(pl.all_horizontal(pl.col(names).is_not_null())).to_series()
        matrix: Floats = table.filter(complete).select(names).cast(pl.Float64).to_numpy()
        if len(matrix) <= 2 * len(names):
            raise ParameterError(
                f"joint top coding needs more than {2 * len(names)} records without missing values in these columns."
            )
        fit = MinCovDet(random_state=int(stream("joint").integers(2**31))).fit(matrix)
        distance = np.sqrt(fit.mahalanobis(matrix))
        limit = float(np.sqrt(chi2.ppf(1 - self.joint_share, df=len(names))))
        shrink = np.minimum(1.0, limit / np.maximum(distance, 1e-300))
        pulled = fit.location_ + (matrix - fit.location_) * shrink[:, None]
        moved = distance > limit
        columns = {}
        for i, name in enumerate(names):
            column = table[name].cast(pl.Float64).to_numpy().copy()
            where = np.flatnonzero(complete.to_numpy())[moved]
            column[where] = pulled[moved, i]
            fresh = pl.Series(name, column).fill_nan(None)
            columns[name] = fresh.round().cast(table[name].dtype) if table[name].dtype.is_integer() else fresh
        return columns
