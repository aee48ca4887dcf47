"""What was asked of the records: conjunctions of attributes and allowed categories, and how many records fit each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import prod
from typing import Annotated, Any

import numpy as np
import polars as pl

from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.constraints import AtLeast
from discreet.core.errors import InputError, ParameterError, need_known, unknown_name
from discreet.core.parameters import checked, distinct
from discreet.engine import collect
from discreet.microdata import Microdata

Schema = Mapping[str, Sequence[Any]]
"""Attributes in their order, each with its categories; a missing value may be one of them (None)."""

Query = Mapping[str, Any]
"""A conjunction: attribute and the category, or the set of categories, that is allowed."""


@dataclass(frozen=True)
class Coded:
    """Queries in numbers: each is a product of factors, and a factor a set of categories of one attribute.

    Attributes
    ----------
    names, categories
        The attributes and their categories.
    starts
        Where the categories of each attribute begin among all of them.
    factors
        One row a factor, one column a category of any attribute: whether it is allowed.
    of
        Which attribute each factor is about.
    queries
        One row a query: its factors, -1 where it has fewer than others.
    """

    names: tuple[str, ...]
    categories: tuple[tuple[Any, ...], ...]
    starts: Integers
    factors: Flags
    of: Integers
    queries: Integers

    @property
    def width(self) -> int:
        """How many categories there are in all."""
        return int(self.starts[-1])

    @property
    def combinations(self) -> int:
        """How many different records there could be."""
        return prod(map(len, self.categories))

    def cells(self, query: Integers) -> Flags:
        """Which of all combinations a query counts, in the order of `itertools.product`."""
        marks = [np.ones(len(own), dtype=bool) for own in self.categories]
        for factor in query[query >= 0]:
            a = self.of[factor]
            marks[a] &= self.factors[factor, self.starts[a] : self.starts[a + 1]]
        made = marks[0]
        for mark in marks[1:]:
            made = (made[:, None] & mark[None, :]).ravel()
        return made


def coded_queries(queries: Sequence[Query], schema: Schema) -> Coded:
    """Check queries against a schema and write them in numbers."""
    if not schema:
        raise InputError("schema must name the attributes and their categories.")
    categories = []
    for name, own in schema.items():
        if isinstance(own, str) or not len(own) or len(distinct(own, f"schema: '{name}'")) != len(own):
            raise ParameterError(f"schema: '{name}' must list its categories, each once.")
        categories.append(tuple(own))
    names = tuple(schema)
    starts = np.concatenate([[0], np.cumsum([len(own) for own in categories])]).astype(np.int64)
    place = [{value: i for i, value in enumerate(own)} for own in categories]
    known: dict[tuple[int, tuple[int, ...]], int] = {}
    rows = []
    for number, query in enumerate(queries):
        row = []
        for name, allowed in query.items():
            if name not in schema:
                raise ParameterError(
                    f"Query {number + 1}: {unknown_name(str(name), names, what='attribute')}"
                )
            a = names.index(name)
            values = allowed if isinstance(allowed, list | tuple | set | frozenset | range) else [allowed]
            try:
                picked = tuple(sorted({place[a][value] for value in values}))
            except (KeyError, TypeError) as error:
                raise ParameterError(
                    f"Query {number + 1} allows a category of '{name}' that the schema does not list."
                ) from error
            row.append(known.setdefault((a, picked), len(known)))
        rows.append(row)
    deepest = max((len(row) for row in rows), default=1) or 1
    table = np.full((len(rows), deepest), -1, dtype=np.int64)
    for i, row in enumerate(rows):
        table[i, : len(row)] = row
    factors = np.zeros((max(len(known), 1), int(starts[-1])), dtype=bool)
    of = np.zeros(max(len(known), 1), dtype=np.int64)
    for (a, picked), factor in known.items():
        factors[factor, starts[a] + np.asarray(picked, dtype=np.int64)] = True
        of[factor] = a
    return Coded(names, tuple(categories), starts, factors, of, table)


@checked
def marginal_queries(schema: Schema, order: Annotated[int, AtLeast(1)] = 2) -> list[dict[str, Any]]:
    """Which questions do all cross-tables of so many attributes answer?

    Examples
    --------
    >>> marginal_queries({"sex": ["f", "m"], "age": [1, 2]}, 1)
    [{'sex': 'f'}, {'sex': 'm'}, {'age': 1}, {'age': 2}]
    """
    if not 1 <= order <= len(schema):
        raise ParameterError(
            f"order must be a whole number from 1 to {len(schema)}, the number of attributes."
        )
    return [
        dict(zip(names, cell, strict=True))
        for names in combinations(schema, order)
        for cell in product(*(schema[name] for name in names))
    ]


@checked
def table_queries(
    schema: Schema,
    by: Sequence[str],
    *,
    groupings: Mapping[str, Sequence[Collection[Any]]] | None = None,
    where: Query | None = None,
) -> list[dict[str, Any]]:
    """Which questions does one published table answer?

    Parameters
    ----------
    schema
        Attributes and their categories.
    by
        The attributes that are crossed.
    groupings
        Groups of categories in which an attribute is shown, instead of single ones.
    where
        Whom the table is about: ``{"age": ["18-64", "65+"]}`` for a table of adults.

    Examples
    --------
    >>> schema = {"sex": ["f", "m"], "age": ["0-17", "18-64", "65+"]}
    >>> table_queries(schema, ["sex"], where={"age": ["18-64", "65+"]})
    [{'sex': ['f'], 'age': ['18-64', '65+']}, {'sex': ['m'], 'age': ['18-64', '65+']}]
    """
    for name in [*by, *(groupings or {}), *(where or {})]:
        if name not in schema:
            raise ParameterError(unknown_name(str(name), schema, what="attribute"))
    shown = [
        [list(group) for group in (groupings or {}).get(name, [[c] for c in schema[name]])] for name in by
    ]
    made = []
    for cell in product(*shown):
        query: dict[str, Any] = dict(zip(by, cell, strict=True))
        for name, allowed in (where or {}).items():
            values = list(allowed) if isinstance(allowed, list | tuple | set | frozenset) else [allowed]
            query[name] = [value for value in query.get(name, schema[name]) if value in values]
        made.append(query)
    return made


@checked
def schema_of(data: Any, attributes: Sequence[str] | None = None) -> dict[str, list[Any]]:
    """Read attributes and categories off a file: only where these are public knowledge.

    Examples
    --------
    >>> schema_of(pl.DataFrame({"sex": ["m", "f", "f"]}))
    {'sex': ['f', 'm']}
    """
    frame = records_of(data, attributes)
    made = {}
    for name in frame.columns:
        values = frame[name].unique().to_list()
        made[name] = sorted(v for v in values if v is not None) + ([None] if None in values else [])
    return made


def records_of(data: Any, attributes: Sequence[str] | None = None) -> pl.DataFrame:
    """The attributes of a file, in memory."""
    held = data if isinstance(data, Microdata) else Microdata(data)
    chosen = held.columns if attributes is None else attributes
    names = [chosen] if isinstance(chosen, str) else list(chosen)
    if not names or len(set(names)) < len(names):
        raise ParameterError("attributes must name at least one column, and each once.")
    need_known(names, held.columns)
    frame = collect(held, names)
    if not frame.height:
        raise InputError("The file has no records.")
    return frame


def codes_of(frame: pl.DataFrame, coded: Coded) -> Integers:
    """Records as places of their categories; refused where one is in none."""
    made = []
    for name, categories in zip(coded.names, coded.categories, strict=True):
        need_known([name], frame.columns)
        place = {value: i for i, value in enumerate(categories)}
        found = frame[name].unique(maintain_order=True)
        at = np.array([place.get(value, -1) for value in found.to_list()])
        if (at < 0).any():
            raise ParameterError(f"The file has values of '{name}' that the schema does not list.")
        known = pl.DataFrame([found, pl.Series("at", at)])
        joined = frame.select(name).join(known, on=name, how="left", nulls_equal=True, maintain_order="left")
        made.append(joined["at"].to_numpy())
    return np.stack(made, axis=1).astype(np.int64)


@checked
def answer_queries(queries: Sequence[Query], data: Any, schema: Schema) -> Floats:
    """How many records of a file fit each query?

    Examples
    --------
    >>> people = pl.DataFrame({"sex": ["f", "f", "m"]})
    >>> answer_queries([{"sex": "f"}, {"sex": ["f", "m"]}], people, {"sex": ["f", "m"]}).tolist()
    [2.0, 3.0]
    """
    coded = coded_queries(queries, schema)
    return counted(codes_of(records_of(data, list(schema)), coded), coded)


def counted(codes: Integers, coded: Coded) -> Floats:
    """Count coded records for every query; every factor is looked up once."""
    fits = np.stack([coded.factors[f][coded.starts[a] + codes[:, a]] for f, a in enumerate(coded.of)])
    made = np.empty(len(coded.queries))
    for i, query in enumerate(coded.queries):
        own = query[query >= 0]
        made[i] = len(codes) if not len(own) else np.count_nonzero(np.logical_and.reduce(fits[own]))
    return made
