"""Every treatment whose card says row-wise gives the same bytes, every class-wise one the same cells, on every engine.

Which treatments there are is read off the registry: a new one needs an example here, and is tried by itself.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet.protect
from discreet import Microdata
from discreet.core.method_cards import method_card
from discreet.engine import classes, packing
from discreet.hierarchy import Hierarchy
from discreet.protect import (
    LocalSuppression,
    Mondrian,
    OptimalGeneralization,
    Pram,
    RecordSwap,
    RobinHood,
)
from discreet.protect.privacy_models import KAnonymity
from discreet.protect.treatment import Treatment
from engines import test_row_wise
from engines.agreement import in_kind, why_no_spark
from engines.test_row_wise import cells

ROLES: dict[str, Any] = {"keys": ["age", "job"], "identifiers": "name", "location": ["x", "y"]}
AGES = {"age": Hierarchy.intervals([10, 50])}
CLASS_WISE: dict[str, Treatment] = {
    "suppression": LocalSuppression(k=3),
    "suppression on subsets": LocalSuppression(k=2, subsets={1: 4}, strata="sex"),
    "mondrian": Mondrian(k=5),
    "generalization": OptimalGeneralization([KAnonymity(4)], AGES, suppression_limit=0.2),
    "pram": Pram(["job", "sex"], change=0.3, jointly=True),
    "robin hood": RobinHood("job", k_target=10, hierarchies=AGES, keys=["job", "age", "sex"]),
    "record swap": RecordSwap(geography=["county", "town"], keys=["job"], share=0.1, k=2),
}
ROW_WISE = {
    name: treatment for name, treatment in test_row_wise.TREATMENTS.items() if treatment.work == "row-wise"
}
EVERY = {**ROW_WISE, **CLASS_WISE}
WITHOUT_KEY = ("drop", "pseudonyms")
"""Treatments after which nobody can tell the records of Spark apart by name."""


def people(rows: int, seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    table = test_row_wise.people(rows, seed)
    return table.with_columns(
        pl.Series("county", rng.integers(0, 3, rows)), pl.Series("town", rng.integers(0, 4, rows))
    )


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("DISCREET_KEY", "a secret of at least sixteen bytes")


def known(work: str) -> set[str]:
    for name in discreet.protect.__all__:
        getattr(discreet.protect, name)
    cards = {name: method_card(kind) for name, kind in Treatment.known.items()}
    return {name for name, card in cards.items() if card is not None and card.work == work}


@pytest.mark.parametrize(("work", "examples"), [("row-wise", ROW_WISE), ("class-wise", CLASS_WISE)])
def test_every_treatment_of_a_kind_has_an_example_here(work, examples):
    assert {treatment.name for treatment in examples.values()} == known(work)
    assert {treatment.work for treatment in examples.values()} == {work}


def released(name: str, frame: Any, seed: int, record_key: str | None = None) -> pl.DataFrame:
    return cells(EVERY[name].apply(Microdata(frame, **ROLES), record_key=record_key, seed=seed).data.frame)


@pytest.mark.parametrize("name", EVERY)
@settings(max_examples=4, deadline=None)
@given(
    seed=st.integers(0, 2**40),
    cuts=st.lists(st.integers(1, 499), max_size=4),
    kind=st.sampled_from(["polars", "pandas", "pandas-arrow", "pyarrow"]),
)
def test_engines_and_partitionings_agree(name, seed, cuts, kind):
    whole = people(500, seed % 7).sort("age", "job", "sex", nulls_last=True)
    places = sorted({0, *cuts, 500})
    cut = pl.concat([whole[start:stop] for start, stop in itertools.pairwise(places)], rechunk=False)
    queries = [released(name, in_kind(cut, each), seed) for each in ("polars-lazy", "duckdb")]
    assert queries[0].equals(queries[1])
    in_memory = released(name, in_kind(cut, kind), seed)
    if isinstance(EVERY[name], LocalSuppression):
        # Which of several alike records loses a cell is settled by number in a query, and by the search in memory.
        keys = ["age", "job", "sex"]
        assert in_memory.select(keys).sort(keys).equals(queries[0].select(keys).sort(keys))
    else:
        assert in_memory.equals(queries[0])


@pytest.mark.parametrize("kind", ["polars-lazy", "duckdb"])
@pytest.mark.parametrize("name", CLASS_WISE)
def test_classes_that_go_through_files_give_the_same_cells(name, kind, monkeypatch):
    expected = released(name, in_kind(people(500), kind), 1)
    passed = []
    through = packing._through_files
    monkeypatch.setattr(packing, "_through_files", lambda *given: passed.append(1) or through(*given))
    monkeypatch.setattr(packing, "HELD_IN_MEMORY", 3)
    monkeypatch.setattr(packing, "_PIECE", 5)
    monkeypatch.setattr(classes, "_ROWS_AT_A_TIME", 7)
    assert released(name, in_kind(people(500), kind), 1).equals(expected)
    assert passed


@pytest.mark.skipif(why_no_spark() is not None, reason=str(why_no_spark()))
@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_spark_agrees_however_the_file_is_cut(name, spark_session):
    table = people(500)
    expected = released(name, table.lazy(), 3, "name")
    for parts in (1, 5):
        frame = in_kind(table, "pyspark", spark_session).repartition(parts)
        order = ["day", "x"] if name in WITHOUT_KEY else "name"
        assert released(name, frame, 3, "name").sort(order).equals(expected.sort(order))
