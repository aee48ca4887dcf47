"""How probable is each combination of key values in the population?

From a column of the user's, from a reference file, or from the margins of the file itself. Each function takes a
class table (``k0``… and ``records``) and hands it back with a column ``P_A``.
"""

from __future__ import annotations

from collections.abc import Sequence

import narwhals as nw
import polars as pl

from discreet import engine
from discreet.core.errors import ColumnError, unknown_name
from discreet.engine import Missing
from discreet.engine.classes import Recoding
from discreet.engine.comparable import comparable_keys, recoded
from discreet.microdata import Microdata


def given_probabilities(
    classes: pl.DataFrame, keys: Sequence[str], missing: Missing, data: Microdata, probability: str
) -> pl.DataFrame:
    """Take the probabilities from a column, which gives every record that of its combination."""
    if probability not in data.schema:
        raise ColumnError(f"{unknown_name(probability, data.columns)} It was named under 'probability'.")
    names = _names(classes)
    rows = engine.keyed_rows(data, keys, missing, {"p": probability}).group_by(*names)
    found = engine.collect(
        rows.agg(
            nw.col("p").cast(nw.Float64).min().alias("P_A"), nw.col("p").cast(nw.Float64).max().alias("most")
        )
    )
    uneven = found.filter((pl.col("most") - pl.col("P_A") > 1e-12) | pl.col("P_A").is_null()).height
    if uneven:
        raise ColumnError(
            f"Column '{probability}' is missing or takes several values within {uneven:,} key combinations. It must "
            "give every record the probability of its combination."
        )
    return classes.join(found.drop("most"), on=names, how="left", nulls_equal=True)


def population_probabilities(
    classes: pl.DataFrame,
    keys: Sequence[str],
    missing: Missing,
    population: Microdata,
    recoding: Recoding | None = None,
) -> tuple[pl.DataFrame, int, int]:
    """Estimate the probabilities by (weighted) counts; also the size of the population and the unseen cells."""
    for key in keys:
        if key not in population.schema:
            raise ColumnError(
                f"The population file has no column '{key}', which is a key. Rename or drop it."
            )
    names = _names(classes)
    theirs = _weighted_classes(population, keys, missing)
    size = float(theirs["hits"].sum())
    ours = classes
    for name, key in zip(names, keys, strict=True):
        theirs = recoded(theirs, name, key, (recoding or {}).get(key))
        ours, theirs = comparable_keys(ours, theirs, name, key, ("file", "population file"))
    hits = theirs.group_by(names).agg(pl.col("hits").sum())
    joined = ours.join(hits, on=names, how="left", nulls_equal=True, maintain_order="left")
    found = joined["hits"].fill_null(0.0)
    unseen = int((found == 0).sum())
    estimate = pl.when(pl.col("hits") > 0).then(pl.col("hits") / size).otherwise(0.5 / (size + 1))
    with_chance = classes.with_columns(hits=found).with_columns(P_A=estimate).drop("hits")
    return with_chance, round(size), unseen


def independent_probabilities(
    classes: pl.DataFrame, keys: Sequence[str], missing: Missing, data: Microdata
) -> pl.DataFrame:
    """Multiply the (weighted) margins of the file."""
    names = _names(classes)
    weighted = _weighted_classes(data, keys, missing)
    size = float(weighted["hits"].sum())
    joined = classes.join(weighted, on=names, how="left", nulls_equal=True, maintain_order="left")
    shares = [pl.col("hits").sum().over(name) / size for name in names]
    return joined.with_columns(P_A=pl.reduce(lambda a, b: a * b, shares)).drop("hits")


def _weighted_classes(data: Microdata, keys: Sequence[str], missing: Missing) -> pl.DataFrame:
    weight = engine.resolve_weight(data)
    if weight is None:
        table = engine.class_table(data, keys, missing)
        return table.select(pl.exclude("records", "class_size"), hits=pl.col("records").cast(pl.Float64))
    rows = engine.weighted_rows(data, keys, missing, weight)
    names = [f"k{i}" for i in range(len(keys))]
    return engine.collect(rows.group_by(*names).agg(nw.col("w").cast(nw.Float64).sum().alias("hits")))


def _names(classes: pl.DataFrame) -> list[str]:
    return [name for name in classes.columns if name.startswith("k") and name[1:].isdigit()]
