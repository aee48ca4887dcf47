"""Tables of two files are the same on every engine, whichever holds which."""

from __future__ import annotations

import polars as pl
import pytest

from discreet import Microdata
from discreet.core.randomness import generator
from discreet.utility import tabular
from engines.agreement import IN_PROCESS, in_kind, in_polars, same

pytestmark = pytest.mark.filterwarnings("ignore:.*[Pp]andas.*")
ENGINES = [*IN_PROCESS, pytest.param("pyspark", marks=pytest.mark.slow)]


def drawn(seed: int, rows: int) -> pl.DataFrame:
    random = generator(seed, "utility tables")
    days = pl.Series([None, *range(18_000, 18_090)]).cast(pl.Int32).cast(pl.Date)
    return pl.DataFrame(
        {
            "Age": pl.Series(random.integers(20, 90, rows)).cast(pl.Int32),
            "pay": pl.Series(random.choice([1.5, 2.0, 40.25, -3.0, -9.0, *range(50)], rows)),
            "sex": pl.Series(["f", "m", None, ""])[random.integers(0, 4, rows)],
            "ill": pl.Series([True, False, None])[random.integers(0, 3, rows)],
            "day": days[random.integers(0, 91, rows)],
            "size": pl.Series(["s", "m", "l"])[random.integers(0, 3, rows)],
            "w": pl.Series(random.choice([0.5, 1.0, 2.0], rows)),
        }
    ).with_columns(pay=pl.when(pl.int_range(rows) % 7 > 0).then("pay"))


OURS, THEIRS = drawn(1, 300), drawn(2, 200)
SPECIAL = {"pay": [-9]}


def agree(found, expected):
    assert found.figures.keys() == expected.figures.keys()
    for name, figure in expected.figures.items():
        assert same(found.figures[name], figure), name
    assert (found.meaning, found.caveats) == (expected.meaning, expected.caveats)
    for name in ("tables", "cells", "groups", "variables"):
        ours, theirs = (in_polars(measure.detail[name]).to_dicts() for measure in (found, expected))
        order = sorted(theirs[0])
        ours, theirs = (sorted(rows, key=lambda r: [str(r[x]) for x in order[:4]]) for rows in (ours, theirs))
        for row, other in zip(ours, theirs, strict=True):
            assert row.keys() == other.keys()
            assert all(same(row[x], other[x]) for x in other), (name, row, other)


@pytest.mark.parametrize("kind", ENGINES)
@pytest.mark.parametrize(
    "options", [{"ways": [1, 2, 3]}, {"weight": "w", "closed": "left", "style": "equal"}]
)
def test_tables_agree_on_every_engine(kind, options, session_of):
    session = session_of(kind)
    # pandas knows no days without a time, so its groups have other names.
    before, after = (table.drop("day") if kind == "pandas" else table for table in (OURS, THEIRS))
    expected = tabular(Microdata(before), Microdata(after), special_codes=SPECIAL, **options)
    ours, theirs = (Microdata(in_kind(table, kind, session)) for table in (before, after))
    agree(tabular(ours, theirs, special_codes=SPECIAL, **options), expected)
    agree(tabular(ours, Microdata(after), special_codes=SPECIAL, **options), expected)


@pytest.mark.parametrize("kind", ["polars-lazy", "duckdb"])
def test_a_source_too_large_for_memory_is_counted_in_place(kind, monkeypatch):
    expected = tabular(Microdata(OURS), Microdata(THEIRS), ways=[1, 2, 3], weight="w")
    monkeypatch.setattr("discreet.engine.shared_tables._MOST_IN_MEMORY", 1)
    monkeypatch.setattr("discreet.engine.shared_tables._MOST_COUNTED", 100)
    ours, theirs = (Microdata(in_kind(table, kind)) for table in (OURS, THEIRS))
    agree(tabular(ours, theirs, ways=[1, 2, 3], weight="w"), expected)
