"""Class-wise treatments look at the classes of a query, and join what they found back to its records."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from discreet import Microdata
from discreet.core.errors import InputError, ParameterError
from discreet.engine import classes
from discreet.hierarchy import Hierarchy
from discreet.protect import Band, OptimalGeneralization, Plan, Pram
from discreet.protect.privacy_models import KAnonymity, LDiversity
from engines.agreement import in_kind, why_no_spark
from engines.test_row_wise import cells, nothing_collected

ROLES = {"keys": ["age", "sex"], "sensitive": "ill"}


def people(rows: int = 900) -> pl.DataFrame:
    rng = np.random.default_rng(2)
    return pl.DataFrame(
        {
            "id": np.arange(rows),
            "age": pl.Series(rng.integers(0, 60, rows)).set(pl.Series(rng.random(rows) < 0.03), None),
            "sex": rng.choice(["f", "m", "x"], rows, p=[0.5, 0.49, 0.01]),
            "ill": rng.choice(["no", "yes"], rows),
        }
    )


TREATMENTS = {
    "nothing suppressed": OptimalGeneralization([KAnonymity(3)], {"age": Hierarchy.intervals([5, 20])}),
    "some suppressed": OptimalGeneralization(
        [KAnonymity(5), LDiversity("ill", 2)], {"age": Hierarchy.intervals([5, 20])}, suppression_limit=0.2
    ),
    "in a plan": Plan(
        [
            OptimalGeneralization(
                [KAnonymity(5)], {"age": Hierarchy.intervals([5, 20])}, suppression_limit=0.1
            ),
            Band(widths={"id": 100}),
        ]
    ),
}


@pytest.mark.parametrize("kind", ["polars-lazy", "duckdb"])
@pytest.mark.parametrize("name", TREATMENTS)
def test_generalization_reads_classes_only_and_gives_the_same_cells(name, kind):
    expected = TREATMENTS[name].apply(Microdata(people(), **ROLES), seed=1)
    with nothing_collected(most=400):
        found = TREATMENTS[name].apply(Microdata(in_kind(people(), kind), **ROLES), seed=1)
        dict(found.log[0].changed_cells)
    assert cells(found.data.frame).equals(cells(expected.data.frame))
    ours, theirs = (release.log[0].parameters for release in (found, expected))
    for figure in ("levels", "suppressed_records", "proven", "nodes"):
        assert ours[figure] == theirs[figure]
    assert ours["loss_reached"] == pytest.approx(theirs["loss_reached"], rel=1e-12)
    assert dict(found.log[0].changed_cells) == dict(expected.log[0].changed_cells)
    assert found.guarantee == expected.guarantee


def test_too_many_classes_are_refused_with_the_way_out(monkeypatch):
    monkeypatch.setattr(classes, "MOST_CLASSES", 50)
    with pytest.raises(ParameterError, match="more than 50 different combinations"):
        TREATMENTS["nothing suppressed"].apply(Microdata(people().lazy(), **ROLES))


def test_a_file_that_changed_between_two_passes_is_refused(tmp_path):
    from discreet import write

    duckdb = pytest.importorskip("duckdb")
    people().write_parquet(tmp_path / "in.parquet")
    data = Microdata(duckdb.connect().read_parquet(str(tmp_path / "in.parquet")), **ROLES)
    release = TREATMENTS["nothing suppressed"].apply(data)
    people().with_columns(age=pl.col("age") + 1000).write_parquet(tmp_path / "in.parquet")
    with pytest.raises(InputError, match="was changed"):
        write(release.data, tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.skipif(why_no_spark() is not None, reason=str(why_no_spark()))
@pytest.mark.slow
@pytest.mark.parametrize("name", TREATMENTS)
def test_generalization_on_spark_gives_the_same_cells(name, spark_session, tmp_path):
    from discreet import write

    expected = TREATMENTS[name].apply(Microdata(people(), **ROLES), seed=1)
    frame = in_kind(people(), "pyspark", spark_session).repartition(4)
    with nothing_collected(most=400):
        found = TREATMENTS[name].apply(Microdata(frame, **ROLES), seed=1)
        write(found.data, tmp_path / "out.parquet")
    order = ["id", "age", "sex", "ill"]
    written = cells(pl.read_parquet(tmp_path / "out.parquet"))
    assert written.sort(order).equals(cells(expected.data.frame).sort(order))


ROW_WISE = {
    "pram": Pram(["sex"]),
    "band": Band(widths={"age": 10}),
    "classes": TREATMENTS["nothing suppressed"],
}


@pytest.mark.parametrize("name", ROW_WISE)
@pytest.mark.parametrize("how", ["read", "sql", "view", "csv", "scan", "two files"])
def test_a_query_notices_that_its_file_was_replaced(name, how, tmp_path):
    from discreet import write
    from discreet.io import write_parts

    duckdb = pytest.importorskip("duckdb")
    file = tmp_path / ("in.csv" if how == "csv" else "in.parquet")
    put = pl.DataFrame.write_csv if how == "csv" else pl.DataFrame.write_parquet
    put(people(), file)
    connection = duckdb.connect()
    if how == "read":
        frame = connection.read_parquet(str(file))
    elif how == "sql":
        frame = connection.sql(f"SELECT * FROM '{file}' WHERE id >= 0").project("id, age, sex, ill")
    elif how == "view":
        connection.sql(f"CREATE VIEW persons AS SELECT * FROM read_parquet('{file}')")
        frame = connection.table("persons")
    elif how == "csv":
        frame = connection.read_csv(str(file))
    elif how == "scan":
        frame = pl.scan_parquet(file)
    else:
        put(people(), tmp_path / "other.parquet")
        frame = connection.read_parquet(str(tmp_path / "*.parquet"))
    release = ROW_WISE[name].apply(Microdata(frame, **ROLES), seed=1)
    # The same shape and the same classes, so that nothing but the file itself tells.
    put(people().with_columns(id=pl.col("id") + 1), file)
    with pytest.raises(InputError, match="changed or removed since it was opened"):
        write(release.data, tmp_path / "out.parquet")
    with pytest.raises(InputError, match="changed or removed since it was opened"):
        write_parts(release.data, tmp_path / "parts")
    assert not (tmp_path / "out.parquet").exists()
    assert not (tmp_path / "parts").exists()
