"""The plain way of synthesizing linked tables, to compare with: join them, and take the joined table apart again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from discreet.core.errors import ParameterError
from discreet.synth.relational.schema import Schema


@dataclass(frozen=True, eq=False)
class Joined:
    """A joined table.

    Attributes
    ----------
    frame
        The records that both tables have, without keys.
    parts
        ``{table: {column: column of the joined table}}``.
    lost
        ``{table: records that have no counterpart}``.
    """

    frame: pl.DataFrame
    parts: dict[str, dict[str, str]]
    lost: dict[str, int]


def joined_table(schema: Schema, frames: Mapping[str, pl.DataFrame]) -> Joined:
    """Join two tables each record of which has at most one counterpart."""
    if len(schema.tables) != 2:
        raise ParameterError(
            f"strategy='joined' joins two tables, and the schema has {len(schema.tables)}. Use strategy='relational'."
        )
    parent, child = schema.sequence()
    link = next(iter(schema.tables[child].parents.items()), None)
    if link is None or link[1] != parent:
        raise ParameterError("strategy='joined' needs a table that hangs on the other.")
    column, key = link[0], str(schema.tables[parent].key)
    repeated = frames[child].height - frames[child][column].n_unique()
    if repeated:
        raise ParameterError(
            f"strategy='joined' would repeat the records of '{parent}': {repeated:,} records of '{child}' share theirs "
            "with another. Sum the children up to one record each, or use strategy='relational'."
        )
    fixed: dict[str, set[str | None]] = {parent: {key}, child: {column, schema.tables[child].key}}
    parts = {
        name: {c: f"{name}.{c}" for c in frames[name].columns if c not in fixed[name]}
        for name in (parent, child)
    }
    sides = {
        name: frames[name].select(
            pl.col(key if name == parent else column).alias("key of both"),
            *(pl.col(c).alias(new) for c, new in parts[name].items()),
        )
        for name in (parent, child)
    }
    both = (
        sides[parent]
        .join(sides[child], on="key of both", how="inner", maintain_order="left")
        .drop("key of both")
    )
    if not both.height:
        raise ParameterError(
            "No record of one table has a counterpart in the other; there is nothing to join."
        )
    return Joined(both, parts, {name: frames[name].height - both.height for name in (parent, child)})
