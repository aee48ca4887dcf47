"""Synthetic numbers by regression (IPSO and relatives), and data shuffling, its relative by ranks."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.constraints import ColumnName, ColumnNames, Share
from discreet.core.errors import DiscreetWarning, ParameterError
from discreet.core.method_cards import method
from discreet.core.parameters import keep_as_tuples
from discreet.dp.entropy import Stream
from discreet.microdata import Microdata
from discreet.protect import number_blocks
from discreet.protect.treatment import Change, Treatment, numeric

SynthesisMethod = Literal["exact", "coefficients", "sampled"]


@method(
    aim="statistics",
    work="whole-file",
    references=(
        "Burridge, J. (2003). Information preserving statistical obfuscation. Statistics and Computing "
        "13, 321–327. doi:10.1023/A:1025658621216",
        "Langsrud, Ø. (2019). Information preserving regression-based tools for statistical disclosure "
        "control. Statistics and Computing 29, 965–976.",
    ),
)
@dataclass(frozen=True)
class RegressionSynthesis(Treatment):
    """Replace numbers by draws from their regression on other columns, keeping the estimates exactly.

    It protects against recognizing somebody by exact numbers, and against learning what the given columns do
    not say about them.

    The columns Y are regressed on the given ones X. What is released is the fitted value plus a new residual; the
    old residual of a record, which is what the given columns do not say about it, is gone.

    ``exact``
        Information preserving (IPSO-C): new residuals are orthogonal to X and have the same cross-products. Means,
        covariances (within Y and with X), regression coefficients and their standard errors are the same to the
        last digits: who fits a regression among these columns gets the original result.
    ``coefficients``
        Means and regression coefficients are the same; residual covariances are right on average (IPSO-B).
    ``sampled``
        Plain draws from the fitted model; everything is right on average only (IPSO-A).

    Also known as: IPSO; information preserving statistical obfuscation; hybrid data.

    Parameters
    ----------
    columns
        Numeric columns to synthesize; the numeric sensitive ones unless named.
    given
        Columns that stay as they are and predict the others: numbers and dates as they are, categories as one 0/1
        column for each level but one. Collinear ones do no harm. Without any, means and covariances of the columns
        are what is kept.
    method
        See above.
    similarity
        For ``method="exact"``, the correlation of the new residuals with the old ones, in [0, 1). With 0 they have
        nothing in common; nearer to 1 the released values are nearer to the true ones (Langsrud 2019).
    round_integers
        Round the new values of whole-number columns, which keeps their type but blurs what is kept exactly;
        otherwise they become decimal.
    by
        Column whose equal values change together, e.g. the household, for columns that describe it. What is kept
        is then kept among the households.

    Notes
    -----
    With the residuals E = U T, the columns of U being orthonormal, new residuals are r E + sqrt(1 - r²) W T for
    similarity r; W is drawn evenly among the orthonormal matrices orthogonal to X and to E. The work is
    O(n (p + q)²).

    Missing values stay missing. The regression, and what is kept exactly, is that of the records without gaps in
    ``columns`` and ``given``; the known values of the other records are drawn from the regression on those given
    columns that they know.

    A record that the regression is bound to hit (the only one in its category), and a column that follows exactly
    from the given ones, get their old values back. Both are warned of.

    What it costs
    -------------
    Everything that a linear regression does not see: skewness, bounds, outliers, interactions. Means,
    covariances and regressions are kept as the method says.

    When not to use it
    ------------------
    Do not use it on strongly skewed columns, zeros with a meaning, or shares and counts: negative incomes
    will appear. Do not use it with a category of one record among ``given``: the regression gives its value
    back. It is no protection of the given columns.

    Examples
    --------
    >>> import polars as pl
    >>> firms = pl.DataFrame({"staff": [1.0, 2, 4, 5, 9], "sales": [3.0, 4, 9, 8, 20]})
    >>> made = RegressionSynthesis(["sales"], given=["staff"]).apply(Microdata(firms), seed=1).data.frame
    >>> made["sales"].to_list() != firms["sales"].to_list()
    True
    >>> [round(frame.select(pl.cov("staff", "sales")).item(), 9) for frame in (firms, made)]
    [20.55, 20.55]
    """

    columns: ColumnNames | None = None
    given: ColumnNames | None = None
    method: SynthesisMethod = "exact"
    similarity: Annotated[float, Share(below=True)] = 0.0
    round_integers: bool = True
    by: ColumnName | None = None

    def __post_init__(self) -> None:
        keep_as_tuples(self, "columns", "given")
        if self.similarity and self.method != "exact":
            raise ParameterError("similarity is for method='exact' only.")

    def treat(self, data: Microdata, stream: Stream) -> Change:
        """Fit the regression and give every record a new residual."""
        names = numeric(data, self.columns, treatment=self.name)
        given = number_blocks.Predictors.read(data, self.given, names, ordered=False, treatment=self.name)
        unit = number_blocks.unit_column(data, self.by, names, treatment=self.name)
        block = number_blocks.NumberBlock.read(data, names, beside=[*given.names, *unit], treatment=self.name)
        block, units = block.once_a_unit(self.by, given.names)
        if units is not None:
            given = given.at(units.first)
        values = block.matrix()
        if not len(values):
            return Change(columns=block.columns(values, round_integers=self.round_integers))
        known: Flags = np.asarray(~np.isnan(values))
        full: Flags = np.asarray(known.all(axis=1) & given.known.all(axis=1))
        made = values.copy()
        made[full], warned = self._synthesized(
            values[full], given.matrix[full], block.names, stream("residuals")
        )
        incomplete = np.flatnonzero(~full & known.any(axis=1))
        if len(incomplete):
            made[incomplete] = _predicted(values, given, full, incomplete, stream("incomplete"))
        for warning in warned:
            warnings.warn(warning, DiscreetWarning, stacklevel=4)
        return Change(
            columns=number_blocks.to_records(block.columns(made, round_integers=self.round_integers), units),
            notes=(*self._notes(block, len(incomplete)), *number_blocks.weight_note(data), *warned),
        )

    def _synthesized(
        self, values: Floats, predictors: Floats, names: Sequence[str], rng: np.random.Generator
    ) -> tuple[Floats, list[str]]:
        mean, spread = _center(values)
        scaled = (values - mean) / spread
        inner, scale = _center(predictors)
        within, _ = number_blocks.orthonormal((predictors - inner) / scale)
        rest = number_blocks.outside(scaled, [within])
        fitted = scaled - rest
        # Below this a residual is what rounding left of an exact fit.
        residual, factor = number_blocks.orthonormal(rest, floor=1e-11 * np.sqrt(len(values)))
        rank, freedom = len(factor), len(values) - 1 - within.shape[1]
        twice = 2 if self.method == "exact" else 1
        if freedom < max(twice * rank, 1):
            raise ParameterError(
                f"regression-synthesis with method='{self.method}' needs at least "
                f"{1 + within.shape[1] + max(twice * rank, 1):,} records without missing values for "
                f"{len(names)} columns and {within.shape[1]} predicting ones; there are {len(values):,}. "
                "Name fewer columns, group the levels of categories, or use method='sampled'."
            )
        if self.method == "exact":
            drawn = np.sqrt(1 - self.similarity**2) * number_blocks.beside([within, residual], rank, rng) + (
                self.similarity * residual
            )
        else:
            drawn = rng.standard_normal((len(values), rank)) / np.sqrt(freedom)
            drawn = number_blocks.outside(drawn, [within]) if self.method == "coefficients" else drawn
        return mean + (fitted + drawn @ factor) * spread, _unmoved(within, rest, names)

    def _notes(self, block: number_blocks.NumberBlock, incomplete: int) -> list[str]:
        kept = {
            "exact": "means, covariances and regression estimates are kept exactly",
            "coefficients": "means and regression coefficients are kept exactly",
            "sampled": "means, covariances and regressions are right on average",
        }[self.method]
        notes = [f"New residuals round the regression on {len(self.given or ())} given columns: {kept}."]
        if self.similarity:
            notes.append(f"New residuals correlate with the old ones at {self.similarity:g}.")
        if self.method != "sampled":
            notes += number_blocks.rounding_note(block, round_integers=self.round_integers, what="them")
        if incomplete:
            notes.append(
                f"{incomplete:,} records with missing values were drawn from the regression on what they know; "
                "what is kept is that of the others."
            )
        return notes


def _center(matrix: Floats) -> tuple[Floats, Floats]:
    """Give the mean and the standard deviation of each column, 1 where it does not vary."""
    if not len(matrix):
        return np.zeros(matrix.shape[1]), np.ones(matrix.shape[1])
    mean, spread = matrix.mean(axis=0), matrix.std(axis=0)
    # A constant column of large numbers has a spread of rounding errors.
    still = spread <= 1e-14 * np.abs(mean)
    return np.asarray(mean), np.where(still, 1.0, spread)


def _unmoved(within: Floats, rest: Floats, names: Sequence[str]) -> list[str]:
    """Word the warnings for records and columns that the regression hits exactly."""
    warned = []
    leverage = 1 / len(within) + (within**2).sum(axis=1)
    bound = int((leverage > 1 - 1e-9).sum())
    if bound:
        warned.append(
            f"Records that are the only ones of their kind in the given columns, {bound:,} in number, are hit exactly "
            "by the regression: their values stay as they are. Group rare levels first."
        )
    exact = [name for at, name in enumerate(names) if np.abs(rest[:, at]).max() < 1e-11]
    if exact:
        listed = ", ".join(f"'{name}'" for name in exact)
        warned.append(
            f"The values of {listed} follow exactly from the given columns (or do not vary) and stay as they are. "
            "Leave out the given columns that determine them."
        )
    return warned


def _predicted(
    values: Floats,
    given: number_blocks.Predictors,
    full: Flags,
    records: np.ndarray,
    rng: np.random.Generator,
) -> Floats:
    """Draw the known values of incomplete records from the regression of the complete ones on what they know."""
    made = values[records]
    mean, spread = _center(values[full])
    scaled = (values[full] - mean) / spread
    inner, scale = _center(given.matrix[full])
    known = np.hstack([~np.isnan(made), given.known[records]])
    for pattern, rows in number_blocks.alike(np.asarray(known)):
        own, use = pattern[: len(mean)], np.flatnonzero(pattern[len(mean) :][given.source])
        design = ((given.matrix[full] - inner) / scale)[:, use]
        slope = np.linalg.lstsq(design, scaled[:, own], rcond=1e-10)[0]
        rest, factor = number_blocks.orthonormal(scaled[:, own] - design @ slope)
        freedom = max(len(design) - 1 - len(use), 1)
        there = ((given.matrix[records[rows]] - inner) / scale)[:, use]
        noise = rng.standard_normal((len(rows), rest.shape[1])) @ factor / np.sqrt(freedom)
        made[np.ix_(rows, own)] = mean[own] + (there @ slope + noise) * spread[own]
    return np.asarray(made)


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

    Also known as: data shuffling; Muralidhar-Sarathy.

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
        strata = number_blocks.own_strata(data, self.strata, names, treatment=self.name)
        given = number_blocks.Predictors.read(data, self.given, names, ordered=True, treatment=self.name)
        unit = number_blocks.unit_column(data, self.by, names, treatment=self.name)
        beside = dict.fromkeys([*strata, *given.names, *unit])
        block = number_blocks.NumberBlock.read(data, names, beside=list(beside), treatment=self.name)
        block, units = block.once_a_unit(self.by, [*strata, *given.names])
        if units is not None:
            given = given.at(units.first)
        matrix = block.matrix()
        least = max(10, len(names) + given.matrix.shape[1] + 2)
        parts, pooled = number_blocks.groups(number_blocks.stratum_codes(block.table, strata), least)
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
        return Change(
            columns=number_blocks.to_records(columns, units),
            notes=tuple(self._notes(given, pooled, repaired)),
        )

    def _notes(self, given: number_blocks.Predictors, pooled: int, repaired: float) -> list[str]:
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
    values: Floats, given: number_blocks.Predictors, rows: Integers, rng: np.random.Generator
) -> tuple[Floats, float]:
    """Draw normal scores for the records, given what they know; also how much the correlations were repaired."""
    from discreet.numerics.correlation import nearest_correlation, root_of

    p, beside = values.shape[1], given.matrix[rows]
    raw = 2 * np.sin(np.pi / 6 * number_blocks.rank_correlation(np.hstack([values, beside])))
    np.fill_diagonal(raw, 1.0)
    whole = nearest_correlation(raw)
    scores = np.column_stack(
        [number_blocks.normal_scores(beside[:, at]) for at in range(beside.shape[1])] or [beside]
    )
    drawn = rng.standard_normal((len(values), p))
    for known, records in number_blocks.alike(given.known[rows]):
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
