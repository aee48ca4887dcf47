"""Probabilistic record linkage after Fellegi and Sunter (1969), trained by EM; the work is done by `splink`."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.errors import ColumnError, ParameterError, load_extra, unknown_name
from discreet.numerics.distance.space import as_float

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
    for column in blocking:
        if column not in ours.columns:
            raise ColumnError(f"{unknown_name(column, ours.columns)} It was named under 'blocking'.")
    if not blocking and ours.height * theirs.height > MOST_PAIRS:
        raise ParameterError(
            f"Comparing all {ours.height:,} × {theirs.height:,} pairs is too much for method='probabilistic'. Name "
            "columns that must agree with blocking=['region', …], or use method='distance'."
        )
    names = {name: f"c{i}" for i, name in enumerate(ours.columns)}
    numeric = [
        name
        for name, dtype in ours.schema.items()
        if (dtype.is_numeric() or dtype.is_temporal()) and name not in categorical
    ]
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
