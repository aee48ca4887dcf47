"""Data are not written over what they came from, however that is spelled, and nothing else takes a data file's name."""

from __future__ import annotations

import os
import sqlite3

import polars as pl
import pytest

from discreet import Microdata, Plan, assess, protect, read, synth
from discreet.core.errors import InputError
from discreet.core.files import inputs
from discreet.core.files.atomic import replacing, replacing_folder, replacing_together
from discreet.core.files.inputs import check_not_read, is_same, note_made, note_read, one_run, place_of
from discreet.io import save_roles, write, write_together

PEOPLE = pl.DataFrame({"age": [30, 40, 50, 60] * 5, "sex": ["f", "m"] * 10})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["people.csv", "people.csv.gz", "people.parquet", "people.arrow", "people.xlsx",
                                  "people.sav", "people.dta"])  # fmt: skip
def test_data_are_not_written_over_their_own_file(folder, name):
    write(PEOPLE, name)
    before = (folder / name).read_bytes()
    data = read(name, keys=["age"])
    treated = protect.Round({"age": 10}).apply(data).data
    for out in (data, treated):
        with pytest.raises(InputError, match="would be lost"):
            write(out, f"./{name}", overwrite=True)
    with pytest.raises(InputError, match="would be lost"):
        write_together([treated, treated], ["other.csv", name], overwrite=True)
    assert (folder / name).read_bytes() == before
    assert not (folder / "other.csv").exists()
    assert write(treated, f"released-{name}").exists()


@pytest.mark.parametrize("how", ["symbolic", "hard", "folder"])
def test_links_are_no_way_around(folder, how):
    (folder / "data").mkdir()
    write(PEOPLE, "data/people.csv")
    if how == "symbolic":
        (folder / "other.csv").symlink_to(folder / "data" / "people.csv")
    elif how == "hard":
        os.link(folder / "data" / "people.csv", folder / "other.csv")
    else:
        (folder / "linked").symlink_to(folder / "data")
    out = "linked/people.csv" if how == "folder" else "other.csv"
    for one, other in (("data/people.csv", out), (out, "data/people.csv")):
        with pytest.raises(InputError, match="would be lost"):
            write(read(one), other, overwrite=True)


def test_a_query_is_not_written_over_a_file_that_it_reads(folder):
    PEOPLE.write_parquet("people.parquet")
    query = pl.scan_parquet("people.parquet").with_columns(pl.col("age") // 10)
    with pytest.raises(InputError, match="would be lost"):
        write(query, "people.parquet", overwrite=True)
    with pytest.raises(InputError, match="would be lost"):
        write(Microdata(query), "people.parquet", overwrite=True)
    assert pl.read_parquet("people.parquet").equals(PEOPLE)


@pytest.mark.parametrize("parted", [False, True])
def test_a_data_set_in_several_files_is_not_written_into(folder, parted):
    places = [folder / "set" / (f"sex={sex}" if parted else "") / f"{sex}.parquet" for sex in "fmx"]
    for place in places:
        place.parent.mkdir(parents=True, exist_ok=True)
        PEOPLE.write_parquet(place)
    query = pl.scan_parquet("set/**/*.parquet" if parted else "set/*.parquet", hive_partitioning=False)
    for place in (*places, folder / "set" / "new.parquet"):
        with pytest.raises(InputError, match=r"would be lost|lies in the folder 'set'"):
            write(query, place, overwrite=True)
    assert write(query, "out.parquet").exists()


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_data_are_not_written_over_their_own_table(folder, engine):
    if engine == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        with duckdb.connect("people.db") as made:
            made.execute("CREATE TABLE people AS SELECT 30 AS age UNION ALL SELECT 40")
    else:
        made = sqlite3.connect("people.db")
        made.executescript("CREATE TABLE people (age INTEGER); INSERT INTO people VALUES (30), (40);")
        made.close()
    uri = f"{engine}:///people.db"
    for query in ("people", "SELECT age FROM people WHERE age > 0"):
        data = read(uri, query=query)
        data = data.with_frame(data.frame.to_polars() if hasattr(data.frame, "to_polars") else data.frame)
        with pytest.raises(InputError, match="would be lost"):
            write(data, f"{engine}:///./people.db", table="PEOPLE", overwrite=True)


@pytest.mark.parametrize("name", ["people.csv", "people.parquet", "PEOPLE.CSV"])
def test_no_plan_report_log_or_model_takes_the_name_of_a_data_file(folder, name):
    PEOPLE.write_csv(name)
    before = (folder / name).read_bytes()
    data = Microdata(PEOPLE, keys=["age"])
    plan = Plan([protect.Round({"age": 10})])
    for save in (
        lambda: plan.save(name, overwrite=True),
        lambda: assess(data).to_html(name),
        lambda: save_roles(data, name, overwrite=True),
        lambda: synth.save_plan(synth.Sequential(), name, overwrite=True),
        lambda: synth.Sequential().fit(data, seed=1).save(name),
    ):
        with pytest.raises(InputError, match="is the name of a data file"):
            save()
    assert (folder / name).read_bytes() == before


def test_what_a_run_reads_is_not_replaced_and_what_it_made_may_be(folder):
    (folder / "in.csv").write_text("1")
    with one_run():
        note_read("in.csv")
        for put in (replacing, replacing_folder):
            with pytest.raises(InputError, match="would be lost"), put("in.csv"):
                raise AssertionError("it was begun")
        with replacing("out.csv") as unfinished:
            unfinished.write_text("1")
        note_read("out.csv")
        with replacing("out.csv") as unfinished:
            unfinished.write_text("2")
        with pytest.raises(InputError, match="Two files are to be written"), replacing_together(["a", "./a"]):
            raise AssertionError("it was begun")
    with replacing("in.csv") as unfinished:
        unfinished.write_text("2")
    assert (folder / "in.csv").read_text() == "2", "outside of a run the caller knows"


def test_what_a_run_keeps_is_its_own_to_write_and_no_output(folder):
    (folder / "budget.toml").write_text("")
    with one_run():
        note_read("budget.toml", kept=True)
        check_not_read("budget.toml")
        with pytest.raises(InputError, match=r"--log 'budget\.toml' is the file that is read"):
            check_not_read("budget.toml", named="--log 'budget.toml'", declared=True)


def test_folders_hold_and_lie_in_what_is_read(folder):
    (folder / "data").mkdir()
    (folder / "data" / "in.csv").write_text("1")
    with one_run():
        note_read("data/in.csv")
        check_not_read("data/out.csv")
        check_not_read("data")
        with pytest.raises(InputError, match=r"holds 'in\.csv'"):
            check_not_read("data", replaced=True)
    with one_run():
        note_read("data")
        with pytest.raises(InputError, match="lies in the folder 'data'"):
            check_not_read("data/part/out.csv")
        note_made("data/part/out.csv")
        check_not_read("data/part/out.csv")


def test_names_are_told_apart_as_the_system_does(folder, monkeypatch):
    (folder / "Tables").mkdir()
    pairs = [
        ("Tables/Out.csv", "Tables/out.CSV"),
        ("Tables/out.csv.", "Tables/out.csv"),
        ("Tables/caf\u00e9.csv", "Tables/cafe\u0301.csv"),
    ]
    for ignores, expected in ((True, True), (False, False)):
        monkeypatch.setattr(inputs, "_ignores_case", lambda _, ignores=ignores: ignores)
        for one, other in pairs:
            assert is_same(place_of(one), place_of(other)) is expected
        assert not is_same(place_of("Tables/a.csv"), place_of("Tables/b.csv"))
        assert not is_same(place_of("Tables/a.csv"), place_of("a.csv"))


def test_whether_a_folder_looks_at_case_is_tried_out_on_it(folder, monkeypatch):
    place = folder / "Some"
    place.mkdir()
    really = (folder / "sOME").exists()
    assert inputs._ignores_case(str(place)) is really
    assert inputs._ignores_case(str(place / "1" / "2")) is really, "nothing need be there"
    monkeypatch.setattr(os.path, "samefile", lambda one, other: one.lower() == other.lower())
    assert inputs._ignores_case(str(place)) is True


def test_linked_tables_do_not_replace_the_folder_that_they_came_from(folder):
    from discreet.synth import LinkedTables

    (folder / "tables").mkdir()
    pl.DataFrame({"id": [1, 2], "sex": ["f", "m"]}).write_parquet("tables/person.parquet")
    pl.DataFrame({"who": [1, 1], "pay": [5, 6]}).write_parquet("tables/visit.parquet")
    (folder / "schema.toml").write_text(
        '[tables.person]\nfile = "tables/person.parquet"\nkey = "id"\n'
        '[tables.visit]\nfile = "tables/visit.parquet"\nparents = { who = "person" }\n'
    )
    both = LinkedTables.read(folder / "schema.toml")
    with pytest.raises(InputError, match="which is read: it would be lost"):
        both.save("tables", overwrite=True)
    assert both.save("copy").is_dir()
    assert both.save("copy", overwrite=True).is_dir()
    (folder / "copy" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="holds more than"):
        both.save("copy", overwrite=True)
    assert (folder / "copy" / "notes.txt").exists()
