"""Data shuffling: give the values of a column to other records, as what is known of each record suggests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.core.arrays import Floats, Integers
from discreet.core.constraints import ColumnName, ColumnNames
from discreet.core.errors import ParameterError
from discreet.core.method_cards import method
from discreet.core.parameters import keep_as_tuples
from discreet.dp.entropy import Stream
from discreet.microdata import Microdata
from discreet.protect.number_blocks import (
    NumberBlock,
    Predictors,
    alike,
    groups,
    normal_scores,
    own_strata,
    rank_correlation,
    stratum_codes,
    to_records,
    unit_column,
)
from discreet.protect.treatment import Change, Treatment, numeric


@method(
    aim="statistics",
    work="whole-file",
    references=(
        "Muralidhar, K. and Sarathy, R. (2006). Data shuffling: a new masking approach for numerical "
        "data. Management Science 52(5), 658–670.",
    ),
)
@dataclass(frozen=True)
class Shuffle(Treatment):
    """Hand the values of columns round among the records, keeping how they go together.

    It protects against learning somebody's number: the released value comes from the given columns and from
    other people, not from their own value.

    For each record a value is drawn from what the ``given`` columns say about it, not from its own value; then the
    drawn values are replaced by the file's own values of the same rank. Every column keeps exactly the values it
    had, so means, quantiles and all one-way tables are untouched; rank correlations among the columns, and with the
    given ones, are kept as well as a sample of that size can. Given what is in ``given``, the new value of a record
    says nothing about its old one.

    Parameters
    ----------
    columns
        Numeric columns to shuffle; the numeric sensitive ones unless named.
    given
        Columns that stay as they are and that the shuffled ones go together with. Numbers, dates and categories
        with an order (Enum) count by their rank, other categories by one 0/1 column for each level. Without any,
        only the correlations of the shuffled columns among themselves are kept.
    strata
        Columns within whose groups values are handed round. Strata too small for that are put together; the log
        says how many.
    by
        Column whose equal values change together, e.g. the household, for columns that describe it.

    Notes
    -----
    Normal scores of the shuffled columns are drawn from their conditional normal distribution given those of the
    other columns. Its correlations are 2 sin(pi r / 6) of the rank correlations r, repaired to the nearest
    correlation matrix where they contradict one another. A missing value stays missing and only known values are
    handed round; a record with missing given values is drawn from those it has, and rank correlations are taken
    from the records that know both columns.

    All values of the file are published, the largest too: a value that says by itself whose it is wants top-coding
    first.

    What it costs
    -------------
    What is not monotone or not in ``given``: other relations are lost. Every column keeps exactly its values.

    When not to use it
    ------------------
    Do not use it where one value says by itself whose it is: all values are still published, so top-code
    first. Do not leave columns out of ``given`` that users will relate to the shuffled ones.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"age": [20, 30, 40, 50, 60], "pay": [10, 35, 30, 55, 60]})
    >>> shuffled = Shuffle(["pay"], given=["age"]).apply(Microdata(people), seed=2).data.frame
    >>> shuffled["pay"].to_list() != people["pay"].to_list(), sorted(shuffled["pay"]) == sorted(people["pay"])
    (True, True)
    """

    columns: ColumnNames | None = None
    given: ColumnNames | None = None
    strata: ColumnNames | None = None
    by: ColumnName | None = None

    def __post_init__(self) -> None:
        keep_as_tuples(self, "columns", "given", "strata")
        both = set(self.given or ()) & set(self.strata or ())
        if both:
            raise ParameterError(f"'{min(both)}' is both given and among the strata. Decide for one.")

    def treat(self, data: Microdata, stream: Stream) -> Change:
        """Draw new ranks and hand the values out by them."""
        names = numeric(data, self.columns, treatment=self.name)
        strata = own_strata(data, self.strata, names, treatment=self.name)
        given = Predictors.read(data, self.given, names, ordered=True, treatment=self.name)
        unit = unit_column(data, self.by, names, treatment=self.name)
        beside = dict.fromkeys([*strata, *given.names, *unit])
        block = NumberBlock.read(data, names, beside=list(beside), treatment=self.name)
        block, units = block.once_a_unit(self.by, [*strata, *given.names])
        if units is not None:
            given = given.at(units.first)
        matrix = block.matrix()
        least = max(10, len(names) + given.matrix.shape[1] + 2)
        parts, pooled = groups(stratum_codes(block.table, strata), least)
        source = np.tile(np.arange(len(matrix)), (len(names), 1))
        repaired = 0.0
        for number, rows in enumerate(parts):
            scores, change = _drawn(matrix[rows], given, rows, stream("scores", str(number)))
            repaired = max(repaired, change)
            for at in range(len(names)):
                _hand_out(source[at], rows, matrix[rows, at], scores[:, at])
        columns = {
            name: block.table[name].gather(source[at]).cast(block.kinds[name])
            for at, name in enumerate(names)
        }
        return Change(columns=to_records(columns, units), notes=tuple(self._notes(given, pooled, repaired)))

    def _notes(self, given: Predictors, pooled: int, repaired: float) -> list[str]:
        beside = f" given {len(given.names)} columns" if given.names else ""
        notes = [f"Values were handed round among the records{beside}; each column keeps exactly its values."]
        if pooled:
            notes.append(f"{pooled:,} strata too small to be shuffled on their own were put together.")
        gaps = int((~given.known).any(axis=1).sum()) if given.names else 0
        if gaps:
            notes.append(f"{gaps:,} records with missing given values were drawn from those they have.")
        if repaired > 1e-6:
            notes.append(
                f"Correlations that contradicted one another were repaired (largest change {repaired:.2g})."
            )
        return notes


def _drawn(
    values: Floats, given: Predictors, rows: Integers, rng: np.random.Generator
) -> tuple[Floats, float]:
    """Draw normal scores for the records, given what they know; also how much the correlations were repaired."""
    from discreet.numerics.correlation import nearest_correlation, root_of

    p, beside = values.shape[1], given.matrix[rows]
    raw = 2 * np.sin(np.pi / 6 * rank_correlation(np.hstack([values, beside])))
    np.fill_diagonal(raw, 1.0)
    whole = nearest_correlation(raw)
    scores = np.column_stack([normal_scores(beside[:, at]) for at in range(beside.shape[1])] or [beside])
    drawn = rng.standard_normal((len(values), p))
    for known, records in alike(given.known[rows]):
        use = np.flatnonzero(known[given.source])
        across, within = whole[p + use][:, :p], whole[np.ix_(p + use, p + use)]
        slope = np.linalg.pinv(within, rcond=1e-10, hermitian=True) @ across
        rest = whole[:p, :p] - across.T @ slope
        drawn[records] = scores[np.ix_(records, use)] @ slope + drawn[records] @ root_of(rest).T
    return drawn, float(np.abs(whole - raw).max())


def _hand_out(source: Integers, rows: Integers, values: Floats, scores: Floats) -> None:
    """Note for each record with a known value which record's value it gets: the one of the same rank."""
    known = np.flatnonzero(~np.isnan(values))
    # Of equal values it does not matter which goes where, so a stable order is as good as any.
    by_value = known[np.argsort(values[known], kind="stable")]
    by_score = known[np.argsort(scores[known], kind="stable")]
    source[rows[by_score]] = rows[by_value]
