"""Who belongs to whom in two files: by rows or a column, paired once, by probability, or within an interval.

Probabilistic linkage follows Fellegi and Sunter (1969), trained by EM in `splink`. Interval disclosure asks whether
a masked number of a linked record lies near the original one.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import scipy

from discreet import engine
from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.errors import ColumnError, ParameterError, load_extra, need_known
from discreet.core.randomness import Seed, generator
from discreet.microdata import Microdata
from discreet.numerics.distance.boxes import in_boxes
from discreet.numerics.distance.search import nearest, ties_within
from discreet.numerics.distance.space import MixedSpace, Points, as_float
from discreet.pairs.side_by_side import numbers_among


@dataclass(frozen=True)
class LinkedFiles:
    """Two files and, for each released record, the original it belongs to (-1: none)."""

    released: Microdata
    ours: pl.DataFrame
    theirs: pl.DataFrame
    truth: Integers
    notes: tuple[str, ...] = ()

    @property
    def caveats(self) -> list[str]:
        """What was left out of the comparison: columns, and records without a counterpart."""
        return [*self.notes, *unlinked(self.truth)]

    @property
    def linkable(self) -> int:
        """Released records that have an original."""
        return int((self.truth >= 0).sum())


def true_originals(
    original: Microdata, released: Microdata, ids: str | None, ours: int, theirs: int
) -> Integers:
    """Say for each released record which original it belongs to; -1 where there is none."""
    if ids is None:
        if ours != theirs:
            raise ParameterError(
                f"The original has {ours:,} records and the release {theirs:,}, so rows cannot correspond. Name the "
                "column that says who is who with ids='id', or use risk.neighbors for files that are not linked."
            )
        for data in (original, released):
            if not engine.has_row_order(data):
                raise ParameterError(
                    f"Records in {engine.engine_name(data)} have no order, so rows cannot correspond. Name the column "
                    "that says who is who with ids='id'."
                )
        return np.arange(ours, dtype=np.int64)
    for data in (original, released):
        if ids not in data.schema:
            raise ColumnError(f"The column '{ids}' that links the files must be in both of them.")
    left = engine.collect(original, [ids])[ids].cast(pl.String)
    right = engine.collect(released, [ids])[ids].cast(pl.String)
    for column, which in ((left, "original"), (right, "released")):
        if column.null_count() or column.n_unique() < len(column):
            raise ColumnError(
                f"The column '{ids}' that links the files is missing or not unique for some records of the {which} "
                "file. It must name each record once."
            )
    known = pl.DataFrame({"id": left, "at": np.arange(ours)})
    lined = pl.DataFrame({"id": right}).join(known, on="id", how="left", maintain_order="left")
    truth = lined["at"].fill_null(-1).to_numpy().astype(np.int64)
    if not (truth >= 0).any():
        raise ColumnError(f"No record of the release has a counterpart in the original by '{ids}'.")
    return truth


def unlinked(truth: Integers) -> list[str]:
    """Say how many released records belong to nobody."""
    alone = int((truth < 0).sum())
    return [f"{alone:,} released records have no original and cannot be linked rightly."] if alone else []


# Who belongs to whom if everybody is paired once? The cheapest one-to-one pairing of two files.
FULL_ASSIGNMENT = 5_000  # records on the longer side for which all pairs are weighed
CANDIDATES = 20  # nearest originals (and released records) that are weighed beyond that


def cheapest_pairs(
    space: MixedSpace, points: Points, queries: Points, truth: Integers, *, progress: bool, seed: Seed
) -> tuple[pl.DataFrame, str]:
    """Pair all records at the lowest total distance; the order of the originals is shuffled, as it may be the truth."""
    order = generator(seed, "linkage", "assignment").permutation(len(points)).astype(np.int64)
    shuffled = points.take(order)
    if max(len(points), len(queries)) <= FULL_ASSIGNMENT:
        costs = space.matrix(queries, shuffled)
        costs[~np.isfinite(costs)] = 1 + costs[np.isfinite(costs)].max(initial=0.0)
        rows, partners = scipy.optimize.linear_sum_assignment(costs)
        how = "on all pairs"
    else:
        rows, partners = _sparse_assignment(space, shuffled, queries, progress)
        how = (
            f"among the {CANDIDATES} nearest of each record on either side, not all pairs; records that could not be "
            "paired that way stay unlinked"
        )
    assigned = np.full(len(queries), -1, dtype=np.int64)
    assigned[rows] = order[partners]
    both = (assigned >= 0) & (truth >= 0)
    pairs = np.flatnonzero(both)
    # An original that looks exactly like the true one is as good a guess: its class shares the hit.
    apart = np.full(len(queries), np.inf)
    apart[pairs] = space.between(points.take(assigned[pairs]), points.take(truth[pairs]))
    same = np.flatnonzero(apart == 0)
    twins = np.ones(len(queries))
    twins[same] = ties_within(space, points.take(truth[same]), points, np.zeros(len(same)), progress=progress)
    distances = np.full(len(queries), np.nan)
    placed_rows = np.flatnonzero(assigned >= 0)
    distances[placed_rows] = space.between(queries.take(placed_rows), points.take(assigned[placed_rows]))
    return pl.DataFrame(
        {
            "record": np.arange(len(queries)),
            "linked_to": assigned,
            "true_original": truth,
            "distance": distances,
            "probability": np.where(apart == 0, 1 / np.maximum(twins, 1), 0.0),
        }
    ), how


def _sparse_assignment(
    space: MixedSpace, points: Points, queries: Points, progress: bool
) -> tuple[Integers, Integers]:
    """Pair records among near candidates; one costly stand-in a record makes a full pairing possible."""
    k = min(CANDIDATES, len(points), len(queries))
    ahead = nearest(space, queries, points, k=k, progress=progress, description="Candidates")
    back = nearest(space, points, queries, k=k, progress=progress, description="Candidates, the other way")
    n, m = len(queries), len(points)
    left = np.concatenate([np.repeat(np.arange(n), k), back.index.ravel()])
    right = np.concatenate([ahead.index.ravel(), np.repeat(np.arange(m), k)])
    cost = np.concatenate([ahead.distance.ravel(), back.distance.ravel()])
    real = np.isfinite(cost) & (left >= 0) & (right >= 0)
    cells, first = np.unique(left[real] * m + right[real], return_index=True)
    near = cost[real][first]
    # A stored zero reads as "no edge", hence the one on top of every cost.
    stand_in = np.full(n, 1 + (near.max(initial=1.0) + 1) * 4)
    weights = scipy.sparse.coo_array(
        (
            np.concatenate([near + 1, stand_in]),
            (np.concatenate([cells // m, np.arange(n)]), np.concatenate([cells % m, m + np.arange(n)])),
        ),
        shape=(n, m + n),
    )
    rows, partners = scipy.sparse.csgraph.min_weight_full_bipartite_matching(weights.tocsr())
    kept = partners < m
    return rows[kept].astype(np.int64), partners[kept].astype(np.int64)


# Probabilistic record linkage after Fellegi and Sunter (1969), trained by EM; the work is done by `splink`.


MOST_PAIRS = 20_000_000  # compared in full; beyond that, blocking columns must be named
STEPS = (0.05, 0.2, 0.5)  # standard deviations within which two numbers count as close, nearer and nearest


@dataclass(frozen=True)
class Linked:
    """The best originals of each released record by match weight, and the pairs above a probability.

    ``ties`` counts the originals of the same (highest) weight and ``includes_truth`` says whether the true one is
    among them; ``links`` and ``right_links`` count the pairs at or above the threshold.
    """

    best: Integers
    weight: Floats
    ties: Integers
    includes_truth: Flags
    links: int
    right_links: int
    compared: int


def probabilistic_links(
    ours: pl.DataFrame,
    theirs: pl.DataFrame,
    truth: Integers,
    *,
    categorical: Sequence[str],
    blocking: Sequence[str],
    threshold: float,
    seed: int,
) -> Linked:
    """Train the model on the two files and give the best original of each released record."""
    load_extra("splink", extra="linkage", purpose="Probabilistic record linkage")
    need_known(blocking, ours.columns, "It was named under 'blocking'.")
    if not blocking and ours.height * theirs.height > MOST_PAIRS:
        raise ParameterError(
            f"Comparing all {ours.height:,} × {theirs.height:,} pairs is too much for method='probabilistic'. Name "
            "columns that must agree with blocking=['region', …], or use method='distance'."
        )
    names = {name: f"c{i}" for i, name in enumerate(ours.columns)}
    numeric = numbers_among(ours, categorical)
    compared = [name for name in names if name not in blocking]
    if not compared:
        raise ParameterError("All columns are named under 'blocking'; leave at least one to be compared.")
    spreads = {name: float(np.nanstd(as_float(ours[name]))) for name in numeric}
    with _quiet():
        pairs = _predicted(
            _coded(ours, names, numeric),
            _coded(theirs, names, numeric),
            comparisons=[_comparison(names[name], spreads.get(name)) for name in compared],
            blocking=[names[name] for name in blocking],
            prior=1 / max(ours.height, theirs.height),
            seed=seed,
        )
    return _summarized(pairs, truth, threshold)


def _coded(table: pl.DataFrame, names: dict[str, str], numeric: Sequence[str]) -> pl.DataFrame:
    columns = [
        pl.Series(alias, as_float(table[name])).fill_nan(None)
        if name in numeric
        else table[name].cast(pl.String).alias(alias)
        for name, alias in names.items()
    ]
    return pl.DataFrame(columns).with_columns(unique_id=pl.int_range(pl.len(), dtype=pl.Int64))


def _comparison(column: str, spread: float | None) -> Any:
    from splink import comparison_level_library as levels
    from splink import comparison_library as comparisons

    if not spread:
        return comparisons.ExactMatch(column)
    return comparisons.CustomComparison(
        output_column_name=column,
        comparison_levels=[
            levels.NullLevel(column),
            levels.ExactMatchLevel(column),
            *(levels.AbsoluteDifferenceLevel(column, step * spread) for step in STEPS),
            levels.ElseLevel(),
        ],
    )


def _predicted(
    ours: pl.DataFrame,
    theirs: pl.DataFrame,
    *,
    comparisons: Sequence[Any],
    blocking: Sequence[str],
    prior: float,
    seed: int,
) -> pl.DataFrame:
    from splink import Linker, SettingsCreator, block_on
    from splink.backends.duckdb import DuckDBAPI

    rule: Any = block_on(*blocking) if blocking else "1=1"
    settings = SettingsCreator(
        link_type="link_only",
        comparisons=list(comparisons),
        blocking_rules_to_generate_predictions=[rule],
        probability_two_random_records_match=min(prior, 0.5),
        retain_matching_columns=False,
        retain_intermediate_calculation_columns=False,
    )
    database = DuckDBAPI()
    # Both are named so that the original is always on the left of a pair.
    tables = [
        database.register(ours.to_arrow(), dataset_display_name="a_original"),
        database.register(theirs.to_arrow(), dataset_display_name="b_released"),
    ]
    linker = Linker(tables, settings, log_level=logging.ERROR)
    linker.training.estimate_u_using_random_sampling(max_pairs=1e6, seed=seed)
    linker.training.estimate_parameters_using_expectation_maximisation(
        rule,
        # Nothing here is adjusted for frequent values, so EM can work on counts of agreement patterns.
        estimate_without_term_frequencies=True,
        fix_probability_two_random_records_match=True,
    )
    found = linker.inference.predict(threshold_match_probability=0.0)
    pairs: Any = found
    table = pl.DataFrame(pairs.as_pyarrow_table())
    swapped = pl.col("source_dataset_l") == "b_released"
    return table.select(
        original=pl.when(swapped).then("unique_id_r").otherwise("unique_id_l"),
        released=pl.when(swapped).then("unique_id_l").otherwise("unique_id_r"),
        weight="match_weight",
        probability="match_probability",
    )


def _summarized(pairs: pl.DataFrame, truth: Integers, threshold: float) -> Linked:
    rows = len(truth)
    true_pair = pl.DataFrame({"released": np.arange(rows), "truth": truth})
    pairs = pairs.join(true_pair, on="released").with_columns(right=pl.col("original") == pl.col("truth"))
    above = pairs.filter(pl.col("probability") >= threshold)
    highest = pl.col("weight").max().over("released")
    best = (
        pairs.filter(pl.col("weight") >= highest - 1e-9)
        .group_by("released")
        .agg(
            best=pl.col("original").min(),
            weight=pl.col("weight").max(),
            ties=pl.len(),
            hit=pl.col("right").any(),
        )
    )
    lined = pl.DataFrame({"released": np.arange(rows)}).join(best, on="released", how="left").sort("released")
    return Linked(
        best=lined["best"].fill_null(-1).to_numpy().astype(np.int64),
        weight=lined["weight"].fill_null(float("nan")).to_numpy(),
        ties=lined["ties"].fill_null(0).to_numpy().astype(np.int64),
        includes_truth=lined["hit"].fill_null(False).to_numpy(),
        links=above.height,
        right_links=int(above["right"].sum()),
        compared=pairs.height,
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the training log of the library off the screen."""
    logger = logging.getLogger("splink")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


# Is the original value inside a small interval around the released one?
#
# Interval disclosure for masked numbers of linked records: by standard deviations (SDID), by ranks (RID; both
# Mateo-Sanz, Sebé and Domingo-Ferrer 2004), and with intervals that grow with how far out a person is (robust
# Mahalanobis distances, after Templ and Meindl 2008).


@dataclass(frozen=True)
class Disclosed:
    """Which original values lie inside the interval of their released record, cell by cell.

    ``outlyingness`` (squared robust distances of the originals) and ``crowded`` (records that enough other released
    records hide) are there for the robust variant only.
    """

    columns: tuple[str, ...]
    inside: Flags
    known: Flags
    outlyingness: Floats | None = None
    crowded: Flags | None = None

    @property
    def records(self) -> Flags:
        """Records with every known value inside (and at least one known)."""
        return np.asarray((self.inside | ~self.known).all(axis=1) & self.known.any(axis=1))

    @property
    def by_column(self) -> Floats:
        """Share of the known values of each column that lie inside."""
        known = self.known.sum(axis=0)
        shares = np.full(len(known), np.nan)
        np.divide((self.inside & self.known).sum(axis=0), known, out=shares, where=known > 0)
        return shares


def by_standard_deviation(ours: pl.DataFrame, theirs: pl.DataFrame, width: float) -> Disclosed:
    """Ask whether the original lies within ``width`` standard deviations of the released value."""
    x, y = numeric_columns(ours), numeric_columns(theirs)
    reach = width * np.nanstd(x, axis=0)
    known = ~(np.isnan(x) | np.isnan(y))
    return Disclosed(tuple(ours.columns), np.abs(x - y) <= reach * (1 + 1e-12), known)


def by_rank(ours: pl.DataFrame, theirs: pl.DataFrame, width: float) -> Disclosed:
    """Ask whether the original lies between the values ``width`` of all ranks below and above the released one.

    Ranks are those of the released values; the bounds are the released values at the ends of the rank window.
    """
    x, y = numeric_columns(ours), numeric_columns(theirs)
    inside = np.zeros(x.shape, dtype=bool)
    for j in range(x.shape[1]):
        ordered = np.sort(y[~np.isnan(y[:, j]), j])
        steps = int(np.floor(width * len(ordered)))
        first = np.searchsorted(ordered, y[:, j], side="left")
        last = np.searchsorted(ordered, y[:, j], side="right") - 1
        low = ordered[np.clip(first - steps, 0, len(ordered) - 1)]
        high = ordered[np.clip(last + steps, 0, len(ordered) - 1)]
        inside[:, j] = (x[:, j] >= low) & (x[:, j] <= high)
    return Disclosed(tuple(ours.columns), inside, ~(np.isnan(x) | np.isnan(y)))


def by_robust_distance(
    ours: pl.DataFrame, theirs: pl.DataFrame, width: float, *, crowd: int, crowd_width: float, seed: Seed
) -> Disclosed:
    """Ask the same with intervals as wide as the person is far out.

    The half-width is ``width`` times the squared robust Mahalanobis distance of the original (minimum covariance
    determinant) times the robust standard deviation of the column. A record that more than ``crowd`` other released
    records lie close to (within ``crowd_width`` robust standard deviations in every column) is hidden in a crowd.
    """
    x, y = numeric_columns(ours), numeric_columns(theirs)
    complete = np.asarray(~np.isnan(x + y).any(axis=1))
    squared, scales = _robust_distances(x, complete, ours.columns, seed)
    reach = width * squared[:, None] * scales
    inside = (np.abs(x - y) <= reach * (1 + 1e-12)) & complete[:, None]
    near = in_boxes(y[complete], y[complete], crowd_width * scales)
    crowded = np.zeros(len(x), dtype=bool)
    crowded[complete] = near.counts - 1 > crowd
    return Disclosed(
        tuple(ours.columns), inside, np.broadcast_to(complete[:, None], x.shape), squared, crowded
    )


def numeric_columns(table: pl.DataFrame) -> Floats:
    """Return the columns as numbers; refuse categories."""
    for name, dtype in table.schema.items():
        if not (dtype.is_numeric() or dtype.is_temporal()):
            raise ColumnError(
                f"Column '{name}' is not numeric, and intervals need numbers. Leave it out with columns=[…], or use "
                "method='distance'."
            )
    return np.column_stack([as_float(table[name]) for name in table.columns])


def _robust_distances(x: Floats, complete: Flags, names: Sequence[str], seed: Seed) -> tuple[Floats, Floats]:
    from sklearn.covariance import MinCovDet

    rows, columns = int(complete.sum()), x.shape[1]
    if rows < max(10, 2 * columns + 1):
        raise ParameterError(
            f"Robust distances on {columns} columns need more complete records than there are ({rows}). Name fewer "
            "columns, or use method='interval'."
        )
    spread = x[complete].std(axis=0)
    scaled = (x - x[complete].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    state = int(generator(seed, "linkage", "robust").integers(2**31))
    flat = (spread == 0) | (np.ptp(np.quantile(scaled[complete], [0.25, 0.75], axis=0), axis=0) == 0)
    if flat.any():
        raise ColumnError(
            f"At least half of the values of '{names[int(np.argmax(flat))]}' are the same, so it has no robust "
            "spread. Leave it out with columns=[…], or use method='interval'."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a singular covariance is refused below, in our words
        shape = MinCovDet(random_state=state).fit(scaled[complete])
    if np.linalg.cond(shape.covariance_) > 1e10:
        raise ParameterError(
            "The columns are (nearly) functions of one another, so robust distances are not defined. Leave one of them "
            "out with columns=[…], or use method='interval'."
        )
    squared = np.full(len(x), np.nan)
    squared[complete] = shape.mahalanobis(scaled[complete])
    return squared, np.sqrt(np.diag(shape.covariance_)) * spread
