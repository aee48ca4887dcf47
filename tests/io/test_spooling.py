"""What another engine holds is written by it and streamed, never brought into this process."""

import datetime as dt

import polars as pl
import pytest

from discreet import Microdata, write
from discreet.engine import spooling


@pytest.fixture
def relation(monkeypatch):
    duckdb = pytest.importorskip("duckdb")
    table = pl.DataFrame(
        {"n": [1, None, 3], "t": ["a", "ä", None], "d": [dt.date(2020, 1, 1), None, dt.date(1999, 5, 6)]}
    )
    monkeypatch.setattr(spooling, "as_polars", None)
    arrow = table.to_arrow()
    return table, duckdb.connect().from_arrow(arrow)


@pytest.mark.parametrize(
    ("name", "read"),
    [("out.parquet", pl.read_parquet), ("out.arrow", pl.read_ipc), ("out.csv", None)],
)
def test_a_relation_is_written_without_being_collected(relation, tmp_path, name, read):
    table, frame = relation
    write(Microdata(frame), tmp_path / name)
    found = pl.read_csv(tmp_path / name, try_parse_dates=True) if read is None else read(tmp_path / name)
    assert found.equals(table)
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["in.parquet", "in.csv"])
def test_a_source_that_was_changed_since_it_was_opened_is_not_written(tmp_path, name):
    from discreet import read
    from discreet.core.errors import InputError
    from discreet.protect import Round

    source = pl.DataFrame({"pay": [101.0, 250.0, 399.0]})
    write(source, tmp_path / name)
    release = Round({"pay": 100}).apply(read(tmp_path / name))
    write(source * 2, tmp_path / name, overwrite=True)
    with pytest.raises(InputError, match="was changed or removed since it was opened"):
        write(release.data, tmp_path / "out.csv")
    assert [file.name for file in tmp_path.iterdir()] == [name]
    fresh = Round({"pay": 100}).apply(read(tmp_path / name)).data
    with pytest.raises(InputError, match="would be lost"):
        write(fresh, tmp_path / name, overwrite=True)
