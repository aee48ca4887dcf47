"""The same cells, contributors and sensitive cells on every engine."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet.tables import Dominance, MinimumContributors, PPercent, RequestRule, Table, Threshold, primary
from engines.agreement import IN_PROCESS, KINDS, in_kind


def firms() -> pl.DataFrame:
    rng = np.random.default_rng(3)
    rows = 400
    region = rng.integers(0, 6, rows)
    return pl.DataFrame(
        {
            "region": pl.Series([f"r{i}" for i in region]).scatter(np.arange(0, rows, 97), None),
            "county": [f"c{i // 2}" for i in region],
            "size": rng.integers(1, 4, rows),
            "firm": [f"f{i}" for i in rng.integers(0, 90, rows)],
            "turnover": np.round(np.exp(rng.normal(2, 2, rows)), 2),
            "jobs": rng.integers(0, 50, rows),
            "w": rng.integers(2, 9, rows) / 2,
            "asks": rng.integers(0, 3, rows),
        }
    )


RULES = (
    Threshold(3),
    Dominance(1, 60),
    PPercent(20, negative="absolute"),
    MinimumContributors(3, waiver="asks", waived=(1,)),
    RequestRule("asks", {1: 30, 2: 50}),
)


OPTIONS = {"plain": {}, "weighted": {"weight": "w"}, "firms": {"contributor": "firm"}}
# Spark takes seconds a query; one way shows that all of them run there.
CASES = [(kind, way) for kind in KINDS for way in OPTIONS if kind != "pyspark"]
CASES += [pytest.param("pyspark", "firms", marks=pytest.mark.slow)]


@pytest.mark.parametrize(("kind", "way"), CASES)
def test_every_engine_builds_and_judges_the_same_table(kind, way, session_of):
    data, options = firms(), OPTIONS[way]

    def made(frame):
        tree = {"c0": ["r0", "r1"], "c1": ["r2", "r3"], "c2": ["r4", "r5"]}
        table = Table.from_microdata(
            frame, "region*size + size", measure=["turnover", "jobs"], hierarchies={"region": tree}, **options
        )
        return primary(table, *RULES)

    expected = made(data)
    found = made(in_kind(data, kind, session_of(kind)))
    exact = [name for name, dtype in expected.cells.schema.items() if not dtype.is_float()]
    assert found.cells.select(exact).equals(expected.cells.select(exact))
    assert found.inner.schema == expected.inner.schema
    for name in set(expected.cells.columns) - set(exact):
        np.testing.assert_allclose(found.cells[name], expected.cells[name], rtol=1e-12, atol=1e-9)
    assert found.notes == expected.notes


@pytest.mark.parametrize("kind", [*IN_PROCESS, pytest.param("pyspark", marks=pytest.mark.slow)])
def test_hierarchies_given_as_columns_are_the_same_everywhere(kind, session_of):
    data = firms().drop_nulls()
    expected = Table.from_microdata(data, "region*size", hierarchies={"region": "county"})
    found = Table.from_microdata(
        in_kind(data, kind, session_of(kind)), "region*size", hierarchies={"region": "county"}
    )
    assert found.cells.equals(expected.cells)
