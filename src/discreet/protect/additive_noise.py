"""Noise on numbers: every value moves a little, and the log says what that does to means and covariances."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Floats, Integers, Words
from discreet.core.cards import Work
from discreet.core.constraints import Above, ColumnName, ColumnNames, Share
from discreet.core.errors import ParameterError
from discreet.core.method_cards import method
from discreet.core.parameters import keep_as_tuples
from discreet.core.randomness import KeyedDraws
from discreet.core.wording import percent
from discreet.dp.entropy import Stream
from discreet.engine import ByRecord
from discreet.microdata import Microdata
from discreet.protect.number_blocks import (
    NumberBlock,
    groups,
    moved_basis,
    orthonormal,
    own_strata,
    rank_correlation,
    rounding_note,
    stratum_codes,
    to_records,
    unit_column,
    weight_note,
)
from discreet.protect.treatment import Aside, Change, Treatment, numeric

NoiseMethod = Literal["independent", "correlated", "restricted", "romm", "outliers", "laplace"]

_TOGETHER = ("correlated", "restricted", "romm")
_ALONE = ("independent", "laplace")

_STREAM_ROWS = 2**20
"""Rows that share a random stream: fixed, so that the bytes do not depend on the number of processors."""
_CACHE_ROWS = 2**15
"""Rows worked on at a time: noise is drawn and added while it is still in the processor's cache."""

_SHRINKAGE = 0.01
"""What is added to the diagonal of rank correlations before they are inverted."""


@method(
    aim="statistics",
    work="row-wise",
    references=(
        "Brand, R. (2002). Microdata protection through noise addition. Inference Control in Statistical "
        "Databases, LNCS 2316, 97–116.",
        "Ting, D., Fienberg, S. E. and Trottini, M. (2008). Random orthogonal matrix masking methodology "
        "for microdata release. International Journal of Information and Computer Security 2(1), 86–105.",
    ),
)
@dataclass(frozen=True)
class AddNoise(Treatment):
    """Add random noise to numbers.

    It protects against recognizing somebody by an exact number known from elsewhere, such as a salary or a
    turnover.

    How much noise is said by ``level``, a share of the standard deviation. How the noise of several columns goes
    together, and what survives it, is said by ``method``:

    ``independent``
        Normal noise, column by column. Means are right on average, variances grow by the factor 1 + level², and
        correlations shrink by it.
    ``correlated``
        Normal noise with covariance level² S, S being that of the data. Means and correlations are right on
        average; all covariances grow by 1 + level².
    ``restricted``
        Correlated noise, drawn back to the mean by the factor 1 / sqrt(1 + level²): means and covariances are both
        right on average (Kim 1986; Brand 2002).
    ``romm``
        Random orthogonal matrix masking (Ting, Fienberg and Trottini 2008): means and the covariance matrix stay
        exactly what they were, and with them every regression among the columns.
    ``outliers``
        Independent noise for outlying values only: those among the ``outlier_share`` farthest from the median of
        their column, and all values of records among the ``outlier_share`` with the largest Mahalanobis distance,
        taken from medians, median deviations and rank correlations, which outliers cannot bend. All other values
        stay as they are.
    ``laplace``
        Laplace noise, column by column, with heavier tails than the normal. It is *not* differentially private:
        its scale is read off the data, and what one person can contribute is not bounded.

    Also known as: noise addition; correlated noise; additive noise; multiplicative noise.

    Parameters
    ----------
    columns
        Numeric columns; the numeric sensitive ones unless named.
    method
        See above.
    level
        Standard deviation of the noise as a share of that of the data, e.g. 0.1.
    strata
        Columns within whose groups standard deviations and covariances are taken. Strata too small to have any
        are put together; the log says how many.
    round_integers
        Round the noisy values of whole-number columns, which keeps their type; otherwise they become decimal.
    outlier_share
        For ``method="outliers"``: the share of values, and of records, that count as outlying.
    by
        Column whose equal values change together, e.g. the household, for columns that describe it. What is kept
        is then kept among the households.

    Notes
    -----
    Missing values stay missing. The methods that look at several columns together take the covariance matrix from
    the records without gaps; the known values of the other records get the noise that belongs to them. For
    ``romm`` those records are masked like ``restricted`` and only the moments of the complete ones are kept
    exactly. A column that does not vary has no scale for noise and stays as it is, which the log says.

    Random orthogonal matrix masking multiplies the file by an n × n orthogonal matrix T with T1 = 1. It is done
    here in O(n p²): with the centered data X = U R, where the p columns of U are orthonormal and sum to 0, TX is
    (TU) R, and TU is again orthonormal with sums of 0. Conversely every such matrix W is TU for some T: map U to
    W, 1 to itself, and the rest to the rest. So T is never formed; W is the orthonormal matrix nearest to
    U + level Z, with Z centered normal noise of the size of U, and Y = W R has Y'Y = X'X and 1'Y = 0.

    What it costs
    -------------
    Every value is a little wrong. Estimates lose precision as if the file were smaller by the factor 1 +
    level²; which moments stay right depends on the method.

    When not to use it
    ------------------
    Do not use it for outliers alone: a fortune with ten percent of noise is still a fortune, so top-code
    first. Do not release the same file twice with different seeds, because the mean of both is nearer to the
    truth. Counts, codes and values that add up to a published total do not stay consistent.

    Examples
    --------
    >>> firms = Microdata(pl.DataFrame({"sales": [12.0, 15.0, 11.0, 19.0], "costs": [9.0, 13.0, 10.0, 12.0]}))
    >>> masked = AddNoise(["sales", "costs"], method="romm", level=0.5).apply(firms, seed=1).data.frame
    >>> round(masked["sales"].mean(), 9), round(masked["sales"].std(), 9) == round(firms.frame["sales"].std(), 9)
    (14.25, True)
    """

    columns: ColumnNames | None = None
    method: NoiseMethod = "independent"
    level: Annotated[float, Above(0)] = 0.1
    strata: ColumnNames | None = None
    round_integers: bool = True
    outlier_share: Annotated[float, Share(above=True, below=True)] = 0.05
    by: ColumnName | None = None

    def __post_init__(self) -> None:
        keep_as_tuples(self, "columns", "strata")

    @property
    def work(self) -> Work:
        """Row-wise where every value gets noise of one scale by itself: the rest looks at records together."""
        alone = self.method in _ALONE and self.strata is None and self.by is None
        return "row-wise" if alone else "whole-file"

    def treat(self, data: Microdata, stream: Stream) -> Change:
        """Draw the noise and add it."""
        names = numeric(data, self.columns, treatment=self.name)
        strata = own_strata(data, self.strata, names, treatment=self.name)
        unit = unit_column(data, self.by, names, treatment=self.name)
        if self.work == "row-wise":
            return self._by_itself(data, names, stream)
        block = NumberBlock.read(data, names, beside=[*strata, *unit], treatment=self.name)
        block, units = block.once_a_unit(self.by, strata)
        worker = self._together if self.method in _TOGETHER else self._one_by_one
        change = worker(block, strata, stream)
        weights = weight_note(data) if self.method in ("restricted", "romm") else ()
        notes = (*change.notes, *weights, *self._rounded_away(block, change))
        return replace(change, columns=to_records(change.columns, units), notes=notes)

    def _by_itself(self, data: Microdata, names: Sequence[str], stream: Stream) -> Change:
        """Add noise of the scale of the whole column to every value, drawn by the number of its record."""
        kinds = engine.types_in_polars(data, names)
        spreads = {name: engine.spread(data, name) for name in names}
        still = [f"Column '{name}' does not vary and stays as it is." for name in names if not spreads[name]]
        makes = {
            name: pl.Float64() if kind.is_integer() and not self.round_integers and spreads[name] else kind
            for name, kind in kinds.items()
        }
        draws = {name: stream.keyed(name) for name in names}
        return Change(
            by_record=ByRecord(tuple(names), makes, partial(self._batch, kinds, spreads, draws), draws=True),
            notes=(self._about(), *still),
            aside=partial(self._after_rounding, kinds),
        )

    def _batch(
        self,
        kinds: Mapping[str, pl.DataType],
        spreads: Mapping[str, float],
        draws: Mapping[str, KeyedDraws],
        table: pl.DataFrame,
        records: Words,
    ) -> dict[str, pl.Series]:
        block = NumberBlock(table, tuple(kinds), kinds)
        columns = {}
        for name, scale in spreads.items():
            if not scale:
                columns[name] = table[name]
                continue
            laplace = self.method == "laplace"
            noise = draws[name].laplace(records) if laplace else draws[name].normals(records)
            noise *= float(self.level) * scale / (math.sqrt(2) if laplace else 1.0)
            noisy = table[name].cast(pl.Float64).to_numpy() + noise
            columns[name] = block.column(name, noisy, round_integers=self.round_integers)
        return columns

    def _after_rounding(
        self, kinds: Mapping[str, pl.DataType], table: pl.DataFrame, made: Mapping[str, pl.Series]
    ) -> Aside:
        return Aside(tuple(self._rounded_away(NumberBlock(table, tuple(kinds), kinds), Change(columns=made))))

    def _rounded_away(self, block: NumberBlock, change: Change) -> list[str]:
        """Say where noise was so small beside the unit of whole numbers that rounding took most of it back."""
        if self.method == "outliers":
            return []
        constant = block.constant()
        notes = []
        for name in block.names:
            if not block.kinds[name].is_integer() or not self.round_integers or name in constant:
                continue
            same = (change.columns[name].cast(block.table[name].dtype) == block.table[name]).mean()
            if _or_zero(same) > 0.5:
                notes.append(
                    f"Rounding took the noise of '{name}' back for {percent(_or_zero(same))} of its values. Raise "
                    "the level, or use another treatment for counts."
                )
        return notes

    def _one_by_one(self, block: NumberBlock, strata: Sequence[str], stream: Stream) -> Change:
        notes = [self._about()]
        codes = stratum_codes(block.table, strata) if strata else None
        jointly = self._far_out_together(block) if self.method == "outliers" else None
        columns, pooled = {}, 0
        for name in block.names:
            old = block.table[name].cast(pl.Float64)
            if codes is None:
                spread: Floats = np.array([_spread_of(old.to_numpy())])
            else:
                spread, small = _spread_by_stratum(old, codes)
                pooled = max(pooled, small)
            if not spread.any():
                columns[name] = block.table[name].cast(block.kinds[name])
                notes.append(f"Column '{name}' does not vary and stays as it is.")
                continue
            if not spread.all():
                still = int((spread == 0).sum())
                notes.append(f"Column '{name}' does not vary in {still:,} strata and stays as it is there.")
            scale: Floats | float = float(spread[0]) if codes is None else spread[codes]
            values = old.to_numpy()
            chosen = None
            if jointly is not None:
                chosen = jointly | _far_out(np.abs(values - _or_zero(old.median())), self.outlier_share)
            noisy = self._noisy(values, scale, chosen, stream(name))
            columns[name] = block.column(name, noisy, round_integers=self.round_integers)
        if pooled:
            notes.append(
                f"{pooled:,} strata have too few values for a spread of their own and share that of all."
            )
        return Change(columns=columns, notes=tuple(notes))

    def _noisy(
        self, values: Floats, scale: Floats | float, chosen: Flags | None, rng: np.random.Generator
    ) -> Floats:
        """Add noise of this scale, by blocks of rows with a random stream each."""
        size = float(self.level) / (np.sqrt(2) if self.method == "laplace" else 1.0)
        fresh = np.empty(len(values))
        starts = range(0, len(values), _STREAM_ROWS)
        # A raw stream for each block: fast, and the same however many threads work on them.
        seeds = rng.bit_generator.seed_seq.spawn(len(starts))  # type: ignore[attr-defined]

        def work(task: tuple[int, np.random.SeedSequence]) -> None:
            first, seed = task
            own = np.random.Generator(np.random.SFC64(seed))
            draw = np.empty(_CACHE_ROWS)
            for start in range(first, min(first + _STREAM_ROWS, len(values)), _CACHE_ROWS):
                rows = slice(start, min(start + _CACHE_ROWS, first + _STREAM_ROWS, len(values)))
                noise = draw[: rows.stop - rows.start]
                if self.method == "laplace":
                    noise[:] = own.laplace(size=len(noise))
                else:
                    own.standard_normal(out=noise)
                noise *= size * (scale[rows] if isinstance(scale, np.ndarray) else scale)
                if chosen is not None:
                    noise *= chosen[rows]
                np.add(values[rows], noise, out=fresh[rows])

        with ThreadPoolExecutor(max_workers=min(len(starts), os.cpu_count() or 1) or 1) as pool:
            list(pool.map(work, zip(starts, seeds, strict=True)))
        return fresh

    def _far_out_together(self, block: NumberBlock) -> Flags:
        """Mark the records that are outlying in several columns together, as far as they can be judged."""
        far = np.zeros(block.table.height, dtype=bool)
        matrix = block.matrix()
        complete = np.flatnonzero(~np.isnan(matrix).any(axis=1))
        if len(block.names) > 1 and len(complete) > 2 * len(block.names):
            far[complete] = _far_out(_robust_distance(matrix[complete]), self.outlier_share)
        return far

    def _together(self, block: NumberBlock, strata: Sequence[str], stream: Stream) -> Change:
        matrix = block.matrix()
        full: Flags = np.asarray(~np.isnan(matrix).any(axis=1))
        least = len(block.names) + 2
        if len(matrix) and full.sum() < least:
            raise ParameterError(
                f"{self.method} noise needs at least {least} records without missing values in its "
                f"{len(block.names)} columns. Name fewer columns, or use method='independent'."
            )
        parts, pooled = groups(stratum_codes(block.table, strata), least, full)
        for number, rows in enumerate(parts):
            matrix[rows] = self._masked_together(matrix[rows], full[rows], stream("noise", str(number)))
        return Change(
            columns=block.columns(matrix, round_integers=self.round_integers),
            notes=(self._about(), *self._asides(block, pooled, int((~full).sum()))),
        )

    def _asides(self, block: NumberBlock, pooled: int, incomplete: int) -> list[str]:
        notes = [f"Column '{name}' does not vary and stays as it is." for name in block.constant()]
        if self.method == "romm":
            notes += rounding_note(block, round_integers=self.round_integers, what="means and covariances")
        if pooled:
            notes.append(f"{pooled:,} strata with too few records for a covariance matrix were put together.")
        if incomplete:
            like = ", masked like restricted noise" if self.method == "romm" else ""
            notes.append(
                f"{incomplete:,} records have missing values: the covariance matrix is that of the others, and "
                f"their known values got noise by it{like}."
            )
        return notes

    def _masked_together(self, part: Floats, full: Flags, rng: np.random.Generator) -> Floats:
        center = np.nanmean(part, axis=0)
        inner = part[full] - part[full].mean(axis=0)
        spread = np.sqrt((inner**2).mean(axis=0))
        spread[spread == 0] = 1.0
        basis, factor = orthonormal(inner / spread)
        factor = factor * spread
        # factor'factor is (m - 1) S for the m complete records, so this noise has covariance level² S.
        noise = rng.standard_normal((len(part), len(factor))) @ factor
        noise *= self.level / np.sqrt(len(inner) - 1)
        if self.method == "correlated":
            return np.asarray(part + noise)
        masked = center + (part - center + noise) / math.hypot(1.0, self.level)
        if self.method == "romm" and len(factor):
            masked[full] = part[full].mean(axis=0) + moved_basis(basis, self.level, rng) @ factor
        return np.asarray(masked)

    def _about(self) -> str:
        share = f"{100 * self.level:g} %"
        grown = f"{100 * self.level**2:.3g} %"
        return {
            "independent": f"Normal noise of {share} of the standard deviation, each column on its own: variances "
            f"are {grown} larger on average, correlations smaller.",
            "correlated": f"Correlated normal noise of {share} of the standard deviation: variances and covariances "
            f"are {grown} larger on average, correlations right on average.",
            "restricted": f"Correlated normal noise of {share} of the standard deviation, drawn back to the mean: "
            "means and covariances are right on average.",
            "romm": f"Random orthogonal masking with noise of {share} of the standard deviation: means and "
            "covariances of the complete records are kept exactly.",
            "outliers": f"Normal noise of {share} of the standard deviation on outlying values only (the farthest "
            f"{100 * self.outlier_share:g} %). All other values are the true ones.",
            "laplace": f"Laplace noise of {share} of the standard deviation. This is not differential privacy: the "
            "scale is read off the data, and one person's contribution is not bounded.",
        }[self.method]


def _or_zero(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _far_out(distance: Floats, share: float) -> Flags:
    """Mark the records farthest out, never more than this share of those known (ties stay inside)."""
    known = distance[~np.isnan(distance)]
    count = int(np.ceil(share * len(known)))
    if count >= len(known):
        return np.zeros(len(distance), dtype=bool)
    limit = np.partition(known, len(known) - count - 1)[len(known) - count - 1]
    return np.asarray(distance > limit)


def _robust_distance(matrix: Floats) -> Floats:
    """Give squared Mahalanobis distances by medians, median deviations and rank correlations.

    Semi-continuous business data (half of the values zero, totals beside their parts) has no covariance matrix of
    its middle half that could be inverted; ranks and a little shrinkage always do.
    """
    from discreet.numerics.correlation import nearest_correlation

    away = matrix - np.median(matrix, axis=0)
    scale = 1.4826 * np.median(np.abs(away), axis=0)
    scale = np.where(scale > 0, scale, away.std(axis=0))
    away /= np.where(scale > 0, scale, 1.0)
    related = nearest_correlation(2 * np.sin(np.pi / 6 * rank_correlation(matrix)))
    related = (related + _SHRINKAGE * np.eye(len(related))) / (1 + _SHRINKAGE)
    return np.asarray((away * np.linalg.solve(related, away.T).T).sum(axis=1))


def _spread_of(values: Floats) -> float:
    """Give the standard deviation of the known values; 0 for one value, and for values that are all the same.

    Taken from NumPy, whose sums are the same with any number of threads. Distances from the first value are exactly 0
    where nothing varies, and at most 2 after scaling, so that neither rounding nor overflow decides what is constant.
    """
    known = values[~np.isnan(values)]
    if len(known) < 2:
        return 0.0
    away = known / 2 - known[0] / 2
    reach = float(np.abs(away).max())
    return 2 * reach * float(np.std(away / reach, ddof=1)) if reach > 0 else 0.0


def _spread_by_stratum(values: pl.Series, codes: Integers) -> tuple[Floats, int]:
    """Give the standard deviation in each stratum; those with fewer than three values share that of all."""
    numbers = values.to_numpy()
    order = np.argsort(codes, kind="stable")
    starts = (
        np.searchsorted(codes[order], np.arange(int(codes.max()) + 1)) if len(codes) else np.zeros(0, int)
    )
    parts = [numbers[rows] for rows in np.split(order, starts[1:])]
    small = np.asarray([np.count_nonzero(~np.isnan(part)) < 3 for part in parts])
    pooled = _spread_of(numbers) if small.any() else 0.0
    spread = [pooled if few else _spread_of(part) for part, few in zip(parts, small, strict=True)]
    return np.asarray(spread), int(small.sum())
