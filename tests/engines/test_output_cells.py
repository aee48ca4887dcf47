from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.outputs.output_cells import count_cells, population, shared_extreme, sum_cells
from discreet.outputs.output_differencing import Side, joined
from discreet.outputs.question import Question
from engines.agreement import IN_PROCESS, in_kind


def frame():
    rng = np.random.default_rng(3)
    n = 400
    return pl.DataFrame(
        {
            "a": rng.choice(["x", "y", "z"], n, p=[0.5, 0.4, 0.1]),
            "b": rng.integers(0, 3, n),
            "v": np.round(rng.lognormal(3, 1, n)),
            "who": rng.integers(0, 90, n),
            "w": rng.uniform(1, 3, n),
        },
    ).with_columns(
        a=pl.when(pl.col("a") != "z").then("a"), v=pl.when(pl.int_range(pl.len()) % 11 > 0).then("v")
    )


@pytest.mark.parametrize("kind", [*IN_PROCESS, pytest.param("pyspark", marks=pytest.mark.slow)])
def test_cells_are_the_same_on_every_engine(kind, session_of):
    ours, theirs = Microdata(frame()), Microdata(in_kind(frame(), kind, session_of(kind)))
    for question in (
        Question(("a", "b")),
        Question(("a",), where={"b": [0, 1]}, subject="who"),
        Question(("b",), recode={"b": {0: "0 + 1", 1: "0 + 1", 2: "2"}}, keep_missing=False),
        Question((), where={"a": [None, "x"]}),
    ):
        one, two = count_cells(ours, question), count_cells(theirs, question)
        assert one.levels == two.levels
        assert one.people.tolist() == two.people.tolist()
        assert one.records.tolist() == two.records.tolist()
    for question in (
        Question(("a", "b"), value="v"),
        Question(("a",), value="v", subject="who", weight="w"),
        Question((), value="v", cap=40.0),
        Question(("b",), value="v", cap=40.0, drops_above=True),
    ):
        one, two = sum_cells(ours, question, largest=3), sum_cells(theirs, question, largest=3)
        assert one.people.tolist() == two.people.tolist()
        assert np.allclose(one.sums.top, two.sums.top)
        assert np.allclose(one.sums.total, two.sums.total)
        for name in one.values:
            assert np.allclose(one.values[name], two.values[name], equal_nan=True)
        extremes = [shared_extreme(d, question, "maximum", one).tolist() for d in (ours, theirs)]
        assert extremes[0] == extremes[1]
    assert population(ours, ["a", "v"])["columns"] == population(theirs, ["a", "v"])["columns"]


def test_the_largest_contributions_are_those_of_the_sorted_values():
    table = frame().drop_nulls("v")
    found = sum_cells(Microdata(table), Question(("b",), value="v"), largest=4)
    for level, top, total in zip(found.levels[0], found.sums.top, found.sums.total, strict=True):
        values = table.filter(pl.col("b") == level)["v"].sort(descending=True)
        assert top.tolist() == values.head(4).to_list()
        assert total == pytest.approx(values.sum())


@pytest.mark.parametrize("kind", [*IN_PROCESS, pytest.param("pyspark", marks=pytest.mark.slow)])
def test_the_records_of_two_outputs_are_the_same_on_every_engine(kind, session_of):
    ours, theirs = Microdata(frame()), Microdata(in_kind(frame(), kind, session_of(kind)))
    for one, other in (
        (Question(("a",)), Question(("a",), where={"b": [0, 1]})),
        (Question((), value="v"), Question((), known=("v", "a"), where={"b": 2})),
        (Question(("a",), subject="who"), Question((), subject="who", where={"b": [0]})),
    ):
        edges = (0.0, 10.0, 100.0) if one.value else ()
        found = [joined(Side(data, one, edges), Side(data, other)).frame for data in (ours, theirs)]
        names = sorted(found[0].columns)
        first, second = (sorted(map(str, table.select(names).rows())) for table in found)
        assert first == second
