"""Attribution and disclosure between two files give the same answer on every engine, whichever holds which."""

from __future__ import annotations

import polars as pl
import pytest

from discreet import Microdata
from discreet.core.randomness import generator
from discreet.risk.correct_attribution import attribution
from discreet.risk.replicated_uniques import remove_replicated_uniques, replicated_uniques
from discreet.risk.synthetic_disclosure import disclosure
from engines.agreement import IN_PROCESS, in_kind, in_polars, plain, same

pytestmark = pytest.mark.filterwarnings("ignore:.*[Pp]andas.*")
ENGINES = [*IN_PROCESS, pytest.param("pyspark", marks=pytest.mark.slow)]
ROLES = {"keys": ["Age", "sex", "day"], "sensitive": ["ill", "pay"]}


def drawn(seed: int, rows: int = 200) -> pl.DataFrame:
    random = generator(seed, "two files")
    day = pl.Series([None, "2020-01-01", "2021-02-03"]).str.to_date()
    return pl.DataFrame(
        {
            "Age": pl.Series(random.integers(20, 26, rows)).cast(pl.Int32),
            "sex": pl.Series(["f", "m", None, ""])[random.integers(0, 4, rows)],
            "day": day[random.integers(0, 3, rows)],
            "ill": pl.Series([True, False, None])[random.integers(0, 3, rows)],
            "pay": pl.Series([1.5, 2.0, None, 40.25, -3.0])[random.integers(0, 5, rows)],
            "id": range(rows),
        }
    )


OURS, THEIRS = drawn(1), drawn(2, 150)


def agree(found, expected, tables):
    assert found.figures.keys() == expected.figures.keys()
    for name, figure in expected.figures.items():
        assert same(found.figures[name], figure), name
    assert (found.meaning, found.caveats) == (expected.meaning, expected.caveats)
    for name in tables:
        columns = [column for column in expected.detail[name].columns if column != "record"]
        assert written(found.detail[name], columns) == written(expected.detail[name], columns), name


def written(table, columns):
    rows = in_polars(table).select(columns).iter_rows()
    return sorted(
        tuple(plain(round(cell, 10) if isinstance(cell, float) else cell) for cell in row) for row in rows
    )


@pytest.mark.parametrize("kind", ENGINES)
def test_measures_between_two_files_agree_on_every_engine(kind, session_of):
    session = session_of(kind)
    original, released = Microdata(OURS, **ROLES), Microdata(THEIRS, **ROLES)
    ours = Microdata(in_kind(OURS, kind, session), **ROLES)
    theirs = Microdata(in_kind(THEIRS, kind, session), **ROLES)
    for options in ({}, {"unmatched": "nearest"}, {"intervals": {"Age": 3, "pay": 2}}, {"missing": "drop"}):
        agree(attribution(ours, theirs, **options), attribution(original, released, **options), ("records",))
    agree(disclosure(ours, theirs), disclosure(original, released), ("targets", "two_way", "exclusions"))
    agree(
        replicated_uniques(ours, theirs),
        replicated_uniques(original, released),
        ("records", "released_records"),
    )


@pytest.mark.parametrize("kind", ENGINES)
def test_the_same_records_are_removed_on_every_engine(kind, session_of):
    expected = remove_replicated_uniques(Microdata(OURS, **ROLES), Microdata(THEIRS))
    frame = in_kind(THEIRS, kind, session_of(kind))
    found = remove_replicated_uniques(Microdata(OURS, **ROLES), Microdata(frame))
    assert found.log[0].removed_records == expected.log[0].removed_records > 0
    assert type(found.data.frame) is type(frame)
    left = in_polars(found.data.frame)
    assert left.columns == THEIRS.columns
    assert sorted(left["id"].to_list()) == sorted(expected.data.frame["id"].to_list())


@pytest.mark.parametrize("kind", ["pandas", "duckdb"])
def test_the_two_files_may_be_on_different_engines(kind):
    expected = attribution(Microdata(OURS, **ROLES), Microdata(THEIRS))
    found = attribution(Microdata(OURS, **ROLES), Microdata(in_kind(THEIRS, kind)))
    agree(found, expected, ("records", "classes"))


@pytest.mark.parametrize("kind", ENGINES)
def test_the_precision_of_two_files_is_found_alike_on_every_engine(kind, session_of):
    session = session_of(kind)
    random = generator(3, "precision")
    values = random.choice(random.normal(25, 4, 60), 150)
    ours = OURS.head(150).with_columns(bmi=pl.Series(values))
    theirs = ours.reverse().with_columns(pl.col("bmi").map_elements(lambda x: float(f"{x:.14g}"), pl.Float64))
    roles = {"keys": ["Age", "bmi"], "sensitive": "ill"}
    original, released = Microdata(ours, **roles), Microdata(theirs, **roles)
    held, given = (Microdata(in_kind(frame, kind, session), **roles) for frame in (ours, theirs))
    expected = replicated_uniques(original, released)
    assert expected.figures["repU"] == expected.figures["UiO"] > 0
    agree(replicated_uniques(held, given), expected, ("records", "released_records"))
    agree(attribution(held, given), attribution(original, released), ("records",))
    assert remove_replicated_uniques(held, given).log[0].removed_records == expected.figures["replicated"]
