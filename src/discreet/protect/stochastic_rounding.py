"""Small counts that nobody can pin down: rounded up or down at random, right on average, the same at every request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats, Words
from discreet.core.citations import HUNDEPOOL_2012
from discreet.core.constraints import AtLeast, ColumnName, ColumnNames, Public
from discreet.core.errors import ColumnError, ParameterError
from discreet.core.method_cards import method
from discreet.core.parameters import checked
from discreet.core.secret_keys import DEFAULT_VARIABLE, definitions, keyed_uniforms, secret_key
from discreet.dp.entropy import Stream
from discreet.engine import ByRecord
from discreet.microdata import Microdata
from discreet.protect.treatment import Aside, Change, Treatment, existing, numeric


@method(
    aim="doubt",
    work="row-wise",
    references=(
        HUNDEPOOL_2012,
        "Brenzel, H., Palm, M., Weymeirsch, J. and Münnich, R. (2024). Privacy and disclosure risks in "
        "spatial dynamic microsimulations. Privacy in Statistical Databases, Lecture Notes in Computer "
        "Science 14915. doi:10.1007/978-3-031-69651-0",
    ),
)
@dataclass(frozen=True)
class StochasticRound(Treatment):
    """Round counts below ``k`` to 0 or ``k`` at random, so that they are right on average.

    It protects against learning small counts: no released count lies between 0 and k.

    A count z with 0 < z < k becomes k with chance z/k and 0 otherwise; other counts stay. The mean over many
    records, or over the runs of a simulation, is unbiased, and no released count lies between 0 and k. The draw
    depends on a secret key and on what the count is about, not on the seed: whoever asks twice gets the same
    answer and cannot average the noise away.

    Also known as: stochastic rounding; keyed rounding.

    Parameters
    ----------
    columns
        Columns of counts: whole numbers of 0 or more.
    k
        The least count to show; at least 2.
    cell
        The columns that say what is counted (region, age, …), in any order; the keys of the data unless named.
        The same cell gets the same draw in every file, and in every table made from such a file
        (`discreet.tables.SmallCountRounding`), if its columns and their values have the same names. A table made from
        the records draws by the people in the cell, whom counts do not name, and so draws anew: publish one of the two.
    run
        The column of the simulation run, whose draws are its own.
    subset
        A name for the part of the population the file is about, where it is not all of it. A file of women and a file
        by sex show the same counts: name the part by a column (``sex``) rather than here, and they are rounded alike.
    weighted
        ``{column of weighted totals: column of counts}``: totals that follow the rounding of their count.
    weighted_rule
        ``scale`` the weighted total by rounded / true count, or ``suppress`` it: 0 for every count below k.
    key_variable, key_file
        Environment variable, or file, that holds the secret key.

    Notes
    -----
    Counts are rounded one by one, so that tables are no longer additive. Totals have to be added up from rounded
    counts: an exact total gives small counts away by subtraction. Magnitudes (turnover, income) are not counts
    and need a dominance rule instead.

    What it costs
    -------------
    Small counts are wrong by up to k, right on average; tables no longer add up.

    When not to use it
    ------------------
    Do not use it on magnitudes, nor beside exact totals, from which small counts can be subtracted out. Do
    not change the key between files about the same cells: different draws can be averaged.

    Examples
    --------
    >>> import os
    >>> os.environ["DISCREET_KEY"] = "a secret of at least sixteen bytes"
    >>> deaths = Microdata(pl.DataFrame({"age": [1, 2, 3, 4], "deaths": [0, 1, 2, 7]}), keys=["age"])
    >>> rounded = StochasticRound(columns=["deaths"], k=3).apply(deaths).data.frame["deaths"]
    >>> rounded[0], rounded[3], set(rounded[1:3]) <= {0, 3}
    (0, 7, True)
    """

    columns: ColumnName | ColumnNames
    k: Annotated[int, AtLeast(2)] = 3
    cell: ColumnName | ColumnNames | None = None
    run: Annotated[str, Public()] | None = None
    subset: Annotated[str, Public()] = ""
    weighted: Annotated[Mapping[str, str], Public()] = field(default_factory=dict)
    weighted_rule: Literal["scale", "suppress"] = "scale"
    key_variable: Annotated[str, Public()] = DEFAULT_VARIABLE
    key_file: Annotated[str, Public()] | None = None

    def __post_init__(self) -> None:
        counts = (self.columns,) if isinstance(self.columns, str) else tuple(self.columns)
        for total, count in self.weighted.items():
            if count not in counts:
                raise ParameterError(f"weighted['{total}'] names '{count}', which is not among the columns.")

    def treat(self, data: Microdata, stream: Stream) -> Change:
        """Round the counts."""
        names = numeric(data, self.columns, treatment=self.name)
        totals = numeric(data, self.weighted, treatment=self.name) if self.weighted else ()
        chosen = data.roles.keys if self.cell is None else self.cell
        if not chosen:
            raise ParameterError(
                "stochastic-round needs to know what each count is about, so that the same count is always rounded "
                "alike: cell=['region', 'age', …]."
            )
        cell = existing(data, chosen, treatment=self.name)
        run = () if self.run is None else existing(data, self.run, treatment=self.name)
        both = {*names, *totals} & {*cell, *run}
        if both:
            raise ParameterError(f"'{min(both)}' cannot be rounded and say what is counted.")
        reads = tuple(dict.fromkeys([*names, *totals, *cell, *run]))
        key = secret_key(self.name, variable=self.key_variable, file=self.key_file)
        held = engine.types_in_polars(data, [*names, *totals])
        makes = {
            name: kind if name in names or kind.is_float() else pl.Float64() for name, kind in held.items()
        }
        return Change(
            by_record=ByRecord(reads, makes, partial(self._batch, names, (cell, run), key)),
            aside=partial(self._aside, names),
            notes=(
                f"Counts below {self.k} were rounded to 0 or {self.k} at random, right on average. Add totals up from "
                "the rounded counts; exact totals would give small counts away.",
                "A cell is known by its columns, its codes and the subset: a file that names it otherwise, or a table "
                "made from the records, draws anew, and two draws for the same people can be averaged: publish one.",
            ),
        )

    def _aside(self, names: Sequence[str], table: pl.DataFrame, made: Mapping[str, pl.Series]) -> Aside:
        small = {name: int(table[name].is_between(0, self.k, closed="none").sum()) for name in names}
        return Aside(internal={"small_counts": small})

    def _batch(
        self,
        names: Sequence[str],
        about: tuple[Sequence[str], Sequence[str]],
        key: bytes,
        table: pl.DataFrame,
        records: Words,
    ) -> dict[str, pl.Series]:
        cell, run = about
        columns = {name: self._rounded(table, name, cell, run, key) for name in names}
        for total, count in self.weighted.items():
            columns[total] = self._following(table[total], table[count], columns[count])
        return columns

    def _rounded(
        self, table: pl.DataFrame, name: str, cell: Sequence[str], run: Sequence[str], key: bytes
    ) -> pl.Series:
        values = table[name]
        counts = checked_counts(values)
        small = (counts > 0) & (counts < self.k)
        texts = definitions(table.filter(pl.Series(small)), cell, run, subset=self.subset, measure=name)
        counts[small] = round_small_counts(counts[small], self.k, keyed_uniforms(texts, key))
        rounded = pl.Series(name, counts).fill_nan(None)
        return rounded.cast(values.dtype)

    def _following(self, total: pl.Series, count: pl.Series, rounded: pl.Series) -> pl.Series:
        """Let a weighted total follow the rounding of its count."""
        true, shown = count.cast(pl.Float64).fill_null(0), rounded.cast(pl.Float64).fill_null(0)
        small = (true > 0) & (true < self.k)
        factor = shown / true if self.weighted_rule == "scale" else shown * 0
        moved = total.cast(pl.Float64).zip_with(~small, total.cast(pl.Float64) * factor)
        return moved.cast(total.dtype) if total.dtype.is_float() else moved


def checked_counts(values: pl.Series) -> Floats:
    """Give the counts as numbers, missing ones as NaN; refuse what is no count."""
    counts = values.cast(pl.Float64).fill_null(float("nan")).to_numpy().copy()
    if ((counts < 0) | (np.isfinite(counts) & (counts != np.floor(counts))) | np.isinf(counts)).any():
        raise ColumnError(
            f"Column '{values.name}' holds negative or broken numbers, so it is no column of counts. Weighted totals "
            "go under weighted={total: count}; magnitudes need a dominance rule instead."
        )
    return counts


def round_small_counts(counts: npt.ArrayLike, k: int, uniforms: npt.ArrayLike) -> Floats:
    """Round counts z with 0 < z < k to k where the uniform number is below z/k, else to 0; leave the others.

    Examples
    --------
    >>> round_small_counts([0, 1, 2, 5], 3, [0.5, 0.5, 0.5, 0.5]).tolist()
    [0.0, 0.0, 3.0, 5.0]
    """
    known = np.asarray(counts, dtype=np.float64)
    small = (known > 0) & (known < k)
    return np.where(small, np.where(np.asarray(uniforms) * k < known, float(k), 0.0), known)


def rounding_variance(counts: npt.ArrayLike, k: int) -> Floats:
    """Give the variance that rounding adds to each count: z (k - z) below k, else none.

    Examples
    --------
    >>> rounding_variance([0, 1, 2, 3], 3).tolist()
    [0.0, 2.0, 2.0, 0.0]
    """
    known = np.asarray(counts, dtype=np.float64)
    return np.where((known > 0) & (known < k), known * (k - known), 0.0)


@dataclass(frozen=True)
class PublishedLaw:
    """What a published count says, given beliefs about the true one.

    Attributes
    ----------
    zero, least
        The chances that 0 and that ``k`` is published.
    true_zero
        The chance that a published 0 is a true one.
    behind_least
        The chances of the true counts 1…k behind a published ``k``.
    added_variance
        The variance that rounding adds, on average.
    """

    zero: float
    least: float
    true_zero: float
    behind_least: Floats
    added_variance: float


@checked
def published_law(prior: npt.ArrayLike, k: Annotated[int, AtLeast(2)]) -> PublishedLaw:
    """Work out what 0 and ``k`` mean when published, from the chances ``prior`` of the true counts 0, 1, 2, …

    Examples
    --------
    >>> from scipy.stats import poisson
    >>> law = published_law(poisson.pmf(np.arange(60), 1), 3)
    >>> round(law.zero, 5), round(law.least, 5), round(law.true_zero, 5)
    (0.67445, 0.30657, 0.54545)
    """
    chances = np.asarray(prior, dtype=np.float64)
    if chances.ndim != 1 or len(chances) <= k or (chances < 0).any():
        raise ParameterError(f"prior must hold chances of the true counts 0 to more than {k}.")
    small = np.arange(1, k + 1)
    up = chances[1 : k + 1] * small / k
    zero = chances[0] + float((chances[1:k] * (1 - small[:-1] / k)).sum())
    least = float(up.sum())
    return PublishedLaw(
        zero=float(zero),
        least=least,
        true_zero=float(chances[0] / zero) if zero else float("nan"),
        behind_least=up / least if least else np.full(k, np.nan),
        added_variance=float(chances @ rounding_variance(np.arange(len(chances)), k)),
    )
