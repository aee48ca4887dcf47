"""Can each group of records be coarsened only as far as it needs?

Mondrian multidimensional partitioning (LeFevre, DeWitt and Ramakrishnan 2006): local recoding, where the same value
may be released finely in one part of the file and coarsely in another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Integers
from discreet.core.cards import Work
from discreet.core.constraints import AtLeast, ColumnNames, HoldsValues
from discreet.core.errors import ParameterError, need_known
from discreet.core.method_cards import method
from discreet.core.parameters import keep_as_tuples
from discreet.core.values import canonical_text
from discreet.dp.entropy import Stream
from discreet.engine.comparable import distinct_values
from discreet.hierarchy import Hierarchy
from discreet.microdata import Microdata
from discreet.numerics import loss
from discreet.protect.coded_columns import Pieces, Watched, coded_key
from discreet.protect.global_recoding import hierarchies_of
from discreet.protect.mondrian_partition import Dimension, partition
from discreet.protect.privacy_models import KAnonymity, KMap, PrivacyModel, models_of
from discreet.protect.records_of_classes import by_class
from discreet.protect.treatment import Change, Treatment


@method(
    aim="company",
    work="class-wise",
    references=(
        "LeFevre, K., DeWitt, D. J. and Ramakrishnan, R. (2006). Mondrian multidimensional k-anonymity. "
        "Proceedings of the 22nd International Conference on Data Engineering. doi:10.1109/ICDE.2006.101",
    ),
)
@dataclass(frozen=True)
class Mondrian(Treatment):
    """Cut the file into groups of similar records and release the range of each group instead of its values.

    It protects against finding somebody by their keys: every group that shares its released keys meets the
    models, with no record lost.

    Starting from the whole file, the group's widest key is cut near its median, or into the labels one level down
    its hierarchy, as long as every piece meets the models; no record is suppressed.

    Also known as: multidimensional k-anonymity; multidimensional recoding.

    Parameters
    ----------
    k
        The smallest group; short for ``KAnonymity(k)`` among the models. Where the data has the role ``person``
        (else ``contributor``), groups are counted in people.
    models
        Further privacy models every group must meet.
    hierarchies
        ``{key: Hierarchy}`` for keys that are to be cut along a hierarchy and released with its labels. Other keys
        are cut by their order: that of numbers, dates and ordered categories, or of the alphabet.
    strict
        True keeps equal values together, so that groups do not overlap. False (relaxed) may put records with the
        median on either side, which gives smaller groups where values are often equal.
    keys
        The columns to recode; the keys of the data unless named.

    Notes
    -----
    Numbers and dates come out as ``[low, high]``, both ends included, other values as sets ``{a, b}``; a group in
    which all share a value shows it. Missing values are cut off from the others first; where that is not
    possible the label says ``… or missing``, or the top label of the hierarchy. A column in which no group had
    to be widened stays as it was; others become text.

    A query (Polars lazy, DuckDB, Spark) is cut on its distinct combinations of keys and sensitive values, which alone
    are collected, and stays a query with the same cells. With ``strict=False`` (equal records are told apart by their
    place in the file), k-map with weights and several records a person, the columns themselves are collected.

    What it costs
    -------------
    Detail of the keys, unevenly: fine where people are many, coarse where they are few. Bands differ from
    group to group, so that tables by age need care.

    When not to use it
    ------------------
    Do not use it where users need one coding for all records, as most published classifications do:
    `OptimalGeneralization` gives that. Do not publish the result beside a table of the same people by fixed
    age groups.

    Examples
    --------
    >>> from discreet import Microdata
    >>> people = pl.DataFrame({"age": [20, 22, 41, 45], "sex": ["f", "f", "m", "m"]})
    >>> safe = Mondrian(k=2).apply(Microdata(people, keys=["age", "sex"]))
    >>> safe.data.frame.rows()
    [('[20, 22]', 'f'), ('[20, 22]', 'f'), ('[41, 45]', 'm'), ('[41, 45]', 'm')]
    """

    k: Annotated[int, AtLeast(1)] | None = None
    models: Sequence[PrivacyModel] = ()
    hierarchies: Annotated[Mapping[str, Hierarchy], HoldsValues(by_column=True)] = field(default_factory=dict)
    strict: bool = True
    keys: ColumnNames | None = None

    def __post_init__(self) -> None:
        models = models_of(self.models) if self.models or self.k is None else ()
        object.__setattr__(self, "models", models)
        object.__setattr__(self, "hierarchies", hierarchies_of(self.hierarchies))
        keep_as_tuples(self, "keys")
        if any(isinstance(model, KMap) and model.weight is None for model in models):
            raise ParameterError(
                "Among models: Mondrian takes k-map with weight='column' only. For a population file use "
                "OptimalGeneralization."
            )

    @property
    def work(self) -> Work:
        """Class-wise where equal records stay together and count alike: the rest looks at records."""
        weighted = any(isinstance(model, KMap) for model in self.models)
        return "class-wise" if self.strict and not weighted else "whole-file"

    def treat(self, data: Microdata, stream: Stream) -> Change:
        """Cut the file into groups and label each group's keys."""
        keys = engine.resolve_keys(data, self.keys)
        need_known(self.hierarchies, keys, what="key", before="In hierarchies: ")
        models = [*([] if self.k is None else [KAnonymity(self.k)]), *self.models]
        by_classes = engine.is_lazy(data) and self.work == "class-wise" and engine.counted_unit(data) is None
        frame, watched = _classes(data, models, keys) if by_classes else _records(data, models, keys)
        coded = [_Key.of(frame[key], self.hierarchies.get(key)) for key in keys]
        boxes = partition([key.dimension for key in coded], models, watched, strict=self.strict)
        sizes = Pieces(boxes, int(boxes.max()) + 1, watched).sizes
        in_boxes = np.bincount(boxes, weights=watched.many).astype(np.int64)
        records = int(in_boxes.sum())
        heads = "records" if watched.units is None else "people"
        released = {key.column.name: key.released(boxes) for key in coded}
        columns = {name: column for name, column in released.items() if column is not None}
        names = ", ".join(model.name for model in models)
        merged_safely = all(model.closed or model.convex for model in models)
        return Change(
            columns={} if by_classes else columns,
            by_record=by_class(frame, columns) if by_classes and columns else None,
            notes=(
                f"The {records:,} records were cut into {len(sizes):,} groups of {int(sizes.min()):,} to "
                f"{int(sizes.max()):,} {heads}, each of which meets {names}; keys show the range of their group.",
            ),
            parameters={
                "groups": len(sizes),
                "smallest_group": int(sizes.min()),
                "largest_group": int(sizes.max()),
                "mean_group": records / len(sizes),
                "discernibility": loss.discernibility(in_boxes),
            },
            # Groups with the same labels read as one class; that is safe where models survive a merge.
            guarantee=f"Every class of the keys {', '.join(keys)} meets {names}." if merged_safely else None,
        )


@dataclass(frozen=True)
class _Key:
    """A key column, its distinct values in order, and the place of every record in that order (-1 missing)."""

    column: pl.Series
    ordered: pl.Series
    dimension: Dimension
    hierarchy: Hierarchy | None

    @staticmethod
    def of(column: pl.Series, hierarchy: Hierarchy | None) -> _Key:
        levels = None
        if hierarchy is None:
            ordered = column.unique().drop_nulls().sort()
        else:
            coded = coded_key(column, hierarchy)
            levels = np.column_stack([codes[coded.records] for codes in coded.codes])
            ordered = hierarchy.mapping(column, 0)["leaf"]
        table = pl.DataFrame({"value": ordered}).with_row_index("rank")
        ranks = pl.DataFrame({"value": column}).join(table, on="value", how="left", maintain_order="left")
        places = np.linspace(0.0, 1.0, max(len(ordered), 1))
        if hierarchy is None and _on_a_line(column.dtype):
            points = ordered.to_physical().cast(pl.Float64).to_numpy()
            spread = points[-1] - points[0]
            places = (points - points[0]) / spread if spread > 0 else np.zeros(len(points))
        place = ranks["rank"].cast(pl.Int64).fill_null(-1).to_numpy()
        return _Key(column, ordered, Dimension(place, places, levels), hierarchy)

    def released(self, boxes: Integers) -> pl.Series | None:
        """Label the key in every box; None where no box holds different values."""
        rows = pl.DataFrame({"box": boxes, "rank": self.dimension.ranks})
        ranges = rows.group_by("box").agg(
            low=pl.col("rank").filter(pl.col("rank") >= 0).min(),
            high=pl.col("rank").max(),
            holes=(pl.col("rank") < 0).any(),
        )
        known = pl.col("low").is_not_null()
        if ranges.filter(known & ((pl.col("low") < pl.col("high")) | pl.col("holes"))).is_empty():
            return None
        if self.hierarchy is not None:
            labels = self._hierarchy_labels(boxes)
        else:
            named = self._ranges(ranges) if _on_a_line(self.column.dtype) else self._sets(rows)
            labels = ranges.join(named, on="box", how="left").select(
                "box",
                pl.when(known & pl.col("holes"))
                .then(pl.format("{} or missing", pl.col("label")))
                .otherwise(pl.col("label"))
                .alias("label"),
            )
        found = rows.join(labels, on="box", how="left", maintain_order="left")["label"]
        return found.alias(self.column.name)

    def _ranges(self, ranges: pl.DataFrame) -> pl.DataFrame:
        text = canonical_text(self.ordered)
        low, high = (
            text.gather(ranges[end].fill_null(0).cast(pl.Int64)).alias(end) for end in ("low", "high")
        )
        one = ranges["low"] == ranges["high"]
        return pl.DataFrame({"box": ranges["box"], "low": low, "high": high, "one": one}).select(
            "box",
            pl.when(pl.col("one"))
            .then(pl.col("low"))
            .when(pl.col("one").is_not_null())
            .then(pl.format("[{}, {}]", pl.col("low"), pl.col("high")))
            .alias("label"),
        )

    def _sets(self, rows: pl.DataFrame) -> pl.DataFrame:
        text = pl.DataFrame({"text": canonical_text(self.ordered)}).with_row_index("rank")
        members = (
            rows.filter(pl.col("rank") >= 0)
            .unique()
            .join(text.cast({"rank": pl.Int64}), on="rank")
            .sort("box", "rank")
            .group_by("box", maintain_order=True)
            .agg("text")
        )
        return members.select(
            "box",
            pl.when(pl.col("text").list.len() == 1)
            .then(pl.col("text").list.first())
            .otherwise(pl.format("{{{}}}", pl.col("text").list.join(", ")))
            .alias("label"),
        )

    def _hierarchy_labels(self, boxes: Integers) -> pl.DataFrame:
        hierarchy: Any = self.hierarchy
        levels: Any = self.dimension.levels
        order = np.argsort(boxes, kind="stable")
        begin = np.flatnonzero(np.diff(boxes[order], prepend=-1))
        alike = np.maximum.reduceat(levels[order], begin, axis=0) == np.minimum.reduceat(
            levels[order], begin, axis=0
        )
        meet, first = alike.argmax(axis=1), order[begin]
        labels = pl.Series("label", [None] * len(begin), dtype=pl.String)
        for level in np.unique(meet).tolist():
            at = np.flatnonzero(meet == level)
            values = self.column.gather(first[at])
            shown = canonical_text(values) if level == 0 else hierarchy.generalize(values, level)
            shown = shown.cast(pl.String)
            if level == hierarchy.height:
                top = hierarchy.generalize(self.ordered.head(1), level).cast(pl.String).item()
                shown = shown.fill_null(top)
            labels = labels.scatter(at, shown)
        return pl.DataFrame({"box": np.arange(len(begin)), "label": labels})


def _on_a_line(dtype: pl.DataType) -> bool:
    return dtype.is_numeric() or dtype.is_temporal()


def _sensitive(data: Microdata, models: Sequence[PrivacyModel], keys: Sequence[str]) -> tuple[str, ...]:
    for model in models:
        for column in model.columns:
            engine.resolve_sensitive(data, column, keys)
    return tuple(dict.fromkeys(column for model in models for column in model.columns))


def _records(
    data: Microdata, models: Sequence[PrivacyModel], keys: Sequence[str]
) -> tuple[pl.DataFrame, Watched]:
    """Bring the keys of all records home, and what the models look at beside them."""
    sensitive = _sensitive(data, models, keys)
    weights = {}
    for model in models:
        if isinstance(model, KMap):
            name = str(engine.resolve_weight(data, model.weight))
            weights[name] = engine.collect(data, [name]).to_series().cast(pl.Float64).to_numpy()
    values = {name: distinct_values(engine.collect(data, [name])[name]) for name in sensitive}
    return engine.collect(data, keys), Watched(values, weights, engine.unit_column(data))


def _classes(
    data: Microdata, models: Sequence[PrivacyModel], keys: Sequence[str]
) -> tuple[pl.DataFrame, Watched]:
    """Bring the combinations of keys and sensitive values home, and how many records have each."""
    sensitive = _sensitive(data, models, keys)
    table, many = engine.counted_combinations(data, [*keys, *sensitive])
    values = {name: distinct_values(table[name]) for name in sensitive}
    return table.select(keys), Watched(values, {}, many=many)
