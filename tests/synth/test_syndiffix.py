"""SynDiffix: noise that sticks, a salt that belongs to its data, tables that agree, and clear refusals."""

from __future__ import annotations

import datetime as dt
import hashlib
import struct
import zipfile
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Microdata, synth
from discreet.core.errors import ColumnError, DiscreetWarning, InputError, ParameterError
from discreet.synth.syndiffix.column_clusters import stitched
from discreet.synth.syndiffix.file_coding import coded, drawn_table
from discreet.synth.syndiffix.hashing import hash_words, normal, salted, set_seed
from discreet.synth.syndiffix.range_forest import Anonymizing, Forest, Persons


def people(rows=300, seed=1):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, rows)
    return pl.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["f", "m"], rows),
            "pay": np.round(age * 100 + rng.normal(0, 300, rows), 2),
            "job": [
                ["clerk", "baker", "smith", None][at] for at in rng.choice(4, rows, p=[0.5, 0.3, 0.15, 0.05])
            ],
            "since": [
                dt.date(2000, 1, 1) + dt.timedelta(days=int(day)) for day in rng.integers(0, 3000, rows)
            ],
        }
    )


def test_the_compiled_hashes_are_those_of_the_library():
    words = np.array([1, 2**63 + 5, 7], dtype=np.uint64)
    wanted = hashlib.blake2b(words.tobytes(), digest_size=8).digest()
    assert int(hash_words(words, 3)) == int.from_bytes(wanted, "little")
    for length in (8, 32, 55, 56, 100):
        salt = bytes(range(length))
        wanted = hashlib.sha256(salt + struct.pack("<Q", 2**60 + 3)).digest()[:8]
        found = salted(np.frombuffer(salt, dtype=np.uint8), np.uint64(2**60 + 3))
        assert int(found) == int.from_bytes(wanted, "little")


def test_noise_is_normal():
    seeds = np.random.default_rng(1).integers(2**64, size=4000, dtype=np.uint64)
    drawn = np.array([normal(seed) for seed in seeds])
    assert abs(drawn.mean()) < 0.08  # five standard errors of 4,000 draws
    assert abs(drawn.std() - 1) < 0.06
    assert set_seed(["a", "b"]) == set_seed(["b", "a", "a"])


@settings(max_examples=examples(12))
@given(st.integers(0, 50), st.permutations(["age", "sex", "pay", "job"]))
def test_the_same_bucket_has_the_same_count_in_every_table(seed, order):
    """Whatever else is asked for, in whichever order of columns: noise belongs to the bucket."""
    frame = people(200, seed)
    values = {name: coded(frame[name])[1] for name in order}
    settings_ = Anonymizing(b"a salt of sixteen")

    def counts(names, wanted):
        forest = Forest([values[name] for name in names], names, Persons.records(200), settings_)
        for own in combinations(range(len(names)), 2):
            forest.buckets(own)
        found = forest.buckets([names.index(name) for name in wanted])
        return found.low.tolist(), found.high.tolist(), found.count.tolist()

    wanted = order[:2]
    assert counts(sorted(order), wanted) == counts(list(order), wanted) == counts(list(wanted), wanted)


def test_a_small_table_is_the_same_whatever_else_is_released(tmp_path):
    data = Microdata(people())
    (tmp_path / "salt").write_text("0123456789abcdef")
    salt = str(tmp_path / "salt")
    alone = synth.MultiTable(columns=[["sex", "age"]], salt=salt).release(data, seed=1)
    beside = synth.MultiTable(size=2, salt=salt).release(data, seed=1)
    assert alone.table_for(["age", "sex"]).frame.equals(beside.table_for(["age", "sex"]).frame)


def test_types_survive_and_rows_are_about_as_many():
    data = Microdata(people(600))
    fitted = synth.SynDiffix().fit(data, seed=1)
    made = fitted.sample(seed=2).frame
    assert made.schema == data.frame.schema
    assert abs(made.height - 600) < 30
    assert fitted.sample(seed=2).frame.equals(made)
    assert fitted.guarantee is None
    assert "no epsilon" in fitted.why_none
    assert abs(made["pay"].mean() - data.frame["pay"].mean()) < 300
    pair = synth.SynDiffix(columns=["age", "pay"]).fit(data, seed=1).sample(seed=2).frame
    assert np.corrcoef(pair["age"], pair["pay"])[0, 1] > 0.9


def test_a_model_file_holds_no_rare_text(tmp_path):
    frame = people().with_columns(
        pl.when(pl.int_range(pl.len()) == 7).then(pl.lit("zqastronaut")).otherwise("job").alias("job")
    )
    fitted = synth.SynDiffix().fit(Microdata(frame), seed=1)
    place = fitted.save(tmp_path / "model")
    with zipfile.ZipFile(place) as box:
        assert not any(b"zqastronaut" in box.read(name) for name in box.namelist())
    again = synth.load(place).sample(seed=3).frame
    assert again.equals(fitted.sample(seed=3).frame)


def test_persons_are_counted_and_not_their_records():
    rng = np.random.default_rng(1)
    rows = pl.DataFrame(
        {
            "who": [*range(300), *[300] * 500],
            "place": [*rng.choice(["a", "b"], 300), *["lonely"] * 500],
        }
    )
    by_person = synth.SynDiffix(person="who").fit(Microdata(rows), seed=1).sample(seed=1).frame
    assert by_person.columns == ["place"]
    assert "lonely" not in by_person["place"].to_list()
    by_record = synth.SynDiffix(columns=["place"]).fit(Microdata(rows), seed=1).sample(seed=1).frame
    assert (by_record["place"] == "lonely").sum() > 450


def test_a_target_is_in_every_cluster():
    frame = people(400).with_columns(
        *(pl.Series(f"x{i}", np.random.default_rng(i).integers(0, 50, 400)) for i in range(6))
    )
    fitted = synth.SynDiffix(target="sex", max_weight=8.0).fit(Microdata(frame), seed=1)
    assert len(fitted.clusters) > 1
    assert all(1 in cluster.columns for cluster in fitted.clusters)
    assert fitted.sample(seed=1).frame.columns == frame.columns


def test_a_column_that_depends_on_nothing_takes_no_room_from_others():
    """Columns in one tree thin out each other's people: those that have nothing to say are by themselves."""
    rng = np.random.default_rng(1)
    base = rng.integers(0, 8, 8000)
    frame = pl.DataFrame(
        {
            "noise": rng.integers(0, 16, 8000),
            **{f"x{i}": np.where(rng.random(8000) < 0.8, base, rng.integers(0, 8, 8000)) for i in range(5)},
        }
    )
    fitted = synth.SynDiffix().fit(Microdata(frame), seed=1)
    (brings,) = [own for own in fitted.clusters if 0 in own.columns and 0 not in own.stitch]
    assert len(brings.columns) == 2
    made = fitted.sample(seed=1).frame
    known, drawn = (np.bincount(own["noise"], minlength=16) / own.height for own in (frame, made))
    assert 0.5 * np.abs(known - drawn).sum() < 0.01


def test_clusters_are_found_on_a_sample_and_tables_made_of_all():
    """Which columns go together is measured on some records, with persons as without; every record is counted."""
    frame = people(900).with_columns(twin=pl.col("sex"), who=pl.int_range(pl.len()) // 2)
    for person in (None, "who"):
        plan = synth.SynDiffix(sample_size=300, person=person, columns=["age", "sex", "pay", "job", "twin"])
        made = plan.fit(Microdata(frame), seed=1).sample(seed=1).frame
        assert abs(made.height - 900) < 30
        assert (made["sex"] == made["twin"]).mean() > 0.95


def test_what_does_not_help_to_predict_leaves_the_rest_as_it_is():
    """The records that predict are drawn first; a patch adds a column to them, and no record and no value else."""
    frame = people(1200).with_columns(
        *(pl.Series(f"x{i}", np.random.default_rng(i).integers(0, 50, 1200)) for i in range(3))
    )
    fitted = synth.SynDiffix(target="pay").fit(Microdata(frame), seed=1)
    patches = [own for own in fitted.clusters if own.patch]
    assert {5, 6, 7} <= {column for own in patches for column in own.columns if column not in own.stitch}
    assert all(2 in own.stitch for own in patches)
    here = [own for own in fitted.clusters if not own.patch]
    stream = lambda name: np.random.default_rng(len(name))  # noqa: E731
    names, records = drawn_table(here, fitted.codings, fitted.ranges, stream)
    wide_names, wide = drawn_table(fitted.clusters, fitted.codings, fitted.ranges, stream)
    assert wide_names[: len(names)] == names
    for place in range(len(names)):
        assert np.array_equal(np.sort(wide[:, place, 0]), np.sort(records[:, place, 0]))


@settings(max_examples=examples(15))
@given(st.integers(0, 1000), st.integers(1, 200), st.integers(1, 200), st.booleans())
def test_stitched_records_come_from_both_tables(seed, left_rows, right_rows, patch):
    rng = np.random.default_rng(seed)
    left = np.repeat(rng.integers(0, 8, (left_rows, 2, 1)).astype(float), 3, axis=2)
    right = np.repeat(rng.integers(0, 8, (right_rows, 2, 1)).astype(float), 3, axis=2)
    joined = stitched(left, right, [(0, 0)], [(0.0, 8.0)], [1], np.uint64(seed), patch=patch)
    assert joined.shape[1:] == (3, 3)
    if patch:
        assert np.array_equal(np.sort(joined[:, 0, 0]), np.sort(left[:, 0, 0]))
    else:
        assert abs(len(joined) - (left_rows + right_rows) / 2) <= 8
    assert set(map(tuple, joined[:, 1])) <= set(map(tuple, left[:, 1]))
    assert set(map(tuple, joined[:, 2])) <= set(map(tuple, right[:, 1]))


def test_a_salt_is_made_kept_and_belongs_to_its_data(tmp_path):
    place = tmp_path / "survey.salt"
    data = Microdata(people())
    with pytest.warns(DiscreetWarning, match="new salt"):
        first = synth.SynDiffix(salt=str(place), columns=["age"]).fit(data).sample(seed=1).frame
    assert place.stat().st_mode & 0o077 == 0
    assert synth.SynDiffix(salt=str(place), columns=["age"]).fit(data).sample(seed=1).frame.equals(first)
    changed = Microdata(data.frame.with_columns(age=pl.col("age") + 1))
    with pytest.raises(InputError, match="1 of 1 columns"):
        synth.SynDiffix(salt=str(place), columns=["age"]).fit(changed)
    synth.SynDiffix(salt=str(place), columns=["age"], new_release=True).fit(changed)
    with pytest.raises(InputError, match="changed"):
        synth.SynDiffix(salt=str(place), columns=["age"]).fit(data)


def test_a_short_salt_is_refused(tmp_path):
    (tmp_path / "short").write_text("abc")
    with pytest.raises(ParameterError, match="at least 8"):
        synth.SynDiffix(salt=str(tmp_path / "short")).fit(Microdata(people()))


def test_where_nothing_may_be_shown_the_table_is_empty():
    data = Microdata(pl.DataFrame({"x": [1, 500], "y": ["a", "b"]}))
    with pytest.warns(DiscreetWarning, match="Nothing of the 2 records"):
        made = synth.SynDiffix().fit(data, seed=1).sample(seed=1).frame
    assert made.shape == (0, 2)


@pytest.mark.filterwarnings("ignore:Nothing of the")
@pytest.mark.parametrize("more", [("syndiffix",), ("multi-table", "--set", "size=2")])
def test_the_command_writes_no_empty_file(tmp_path, monkeypatch, more):
    from typer.testing import CliRunner

    from discreet.cli import app

    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"x": [1, 500, 90_000], "y": ["a", "b", "c"]}).write_csv("few.csv")
    out = "made.csv" if len(more) == 1 else "made"
    done = CliRunner().invoke(app, ["synthesize", "few.csv", "--method", *more, "--out", out, "--seed", "1"])
    assert isinstance(done.exception, InputError)
    assert "written" in str(done.exception)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["few.csv"]


@pytest.mark.parametrize(
    "frame",
    [
        pl.DataFrame({"x": [5] * 40}),
        pl.DataFrame({"x": pl.Series([None] * 40, dtype=pl.Int64), "y": [1, 2] * 20}),
        pl.DataFrame({"x": [True, False, None, True] * 10, "y": [0.5, -3.25] * 20}),
        pl.DataFrame({"x": pl.Series(["a", "b"] * 20, dtype=pl.Enum(["a", "b", "c"]))}),
    ],
)
def test_columns_of_one_value_of_none_and_of_truth(frame):
    made = synth.SynDiffix().fit(Microdata(frame), seed=1).sample(seed=1).frame
    assert made.schema == frame.schema
    assert made.height > 20


@pytest.mark.parametrize("values", [[1.0, float("inf")] * 20, [2**60] * 40])
def test_numbers_that_floats_cannot_hold_are_refused(values):
    with pytest.raises(ColumnError, match="Column 'x' has"):
        synth.SynDiffix().fit(Microdata(pl.DataFrame({"x": values})), seed=1)


def test_what_makes_no_sense_is_refused():
    data = Microdata(people())
    for wrong in ({"columns": ["aeg"]}, {"person": "agee"}, {"columns": ["age"], "person": "age"}):
        with pytest.raises(ColumnError):
            synth.SynDiffix(**wrong).fit(data, seed=1)
    for bad in ({"low_threshold": 0}, {"outliers": (5, 2)}, {"alpha": 0.0}, {"layer_noise_sd": -1.0}):
        with pytest.raises(ParameterError):
            synth.SynDiffix(**bad)
    with pytest.raises(ParameterError, match="which tables"):
        synth.MultiTable()
    with pytest.raises(ColumnError):
        synth.MultiTable(columns=[["agee"]]).release(data, seed=1)


def test_a_release_is_saved_whole_and_read_again(tmp_path):
    release = synth.MultiTable(analyses=["pay ~ age + sex"], columns=[["job"]]).release(
        Microdata(people()), seed=1
    )
    place = release.save(tmp_path / "tables")
    again = synth.MultiTableRelease.load(place)
    assert [entry["columns"] for entry in again.manifest] == [["job"], ["age", "sex", "pay"]]
    assert again.table_for("sex").columns == ("age", "sex", "pay")
    with pytest.raises(ColumnError, match="No table"):
        again.table_for(["job", "sex"])
    with pytest.raises(InputError):
        release.save(tmp_path / "tables")
    (place / "table-0001.parquet").write_bytes(b"")
    with pytest.raises(InputError, match="damaged"):
        synth.MultiTableRelease.load(place)


def test_a_release_of_empty_tables_is_listed_saved_and_read(tmp_path):
    release = synth.MultiTable(size=1).release(Microdata(people(2).select("sex", "age")), seed=1)
    assert [table["rows"] for table in release.manifest] == [0, 0]
    again = synth.MultiTableRelease.load(release.save(tmp_path / "tables"))
    assert [table["rows"] for table in again.manifest] == [0, 0]


def test_the_command_makes_a_table_and_a_release(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from discreet.cli import app

    monkeypatch.chdir(tmp_path)
    people().write_csv("people.csv")
    done = CliRunner().invoke(
        app, ["synthesize", "people.csv", "--method", "syndiffix", "--out", "made.csv", "--seed", "1"]
    )
    assert done.exit_code == 0, done.output
    assert "no epsilon can be" in " ".join(done.output.split())
    assert abs(pl.read_csv("made.csv").height - 300) < 30
    done = CliRunner().invoke(
        app,
        [
            "synthesize",
            "people.csv",
            "--method",
            "multi-table",
            "--set",
            "size=2",
            "--out",
            "tables",
            "--json",
        ],
    )
    assert done.exit_code == 0, done.output
    assert len(synth.MultiTableRelease.load("tables").tables) == 15
    for wrong in (["--out", "t.csv"], ["--out", "tables"], ["--out", "x", "--rows", "5"], []):
        refused = CliRunner().invoke(
            app, ["synthesize", "people.csv", "--method", "multi-table", "--set", "size=1", *wrong]
        )
        assert isinstance(refused.exception, ParameterError)


def test_a_table_is_drawn_part_by_part_and_the_same_however_often_it_was_stopped(tmp_path):
    fitted = synth.SynDiffix(columns=["age", "sex"]).fit(Microdata(people()), seed=1)
    made = fitted.sample(700, to=tmp_path / "whole", rows_per_part=300, seed=2).frame.collect()
    assert made.height == 700
    assert set(made["sex"]) == {"f", "m"}
    again = fitted.sample(700, to=tmp_path / "again", rows_per_part=300, seed=2).frame.collect()
    assert again.equals(made)
    (tmp_path / "again" / "part-000001.parquet").unlink()
    resumed = fitted.sample(
        700, to=tmp_path / "again", rows_per_part=300, seed=2, resume=True
    ).frame.collect()
    assert resumed.equals(made)


def test_nothing_that_may_be_shown_is_no_part_either(tmp_path):
    with pytest.warns(DiscreetWarning, match="Nothing of the 20 records"):
        fitted = synth.SynDiffix(columns=["age"], low_threshold=50).fit(Microdata(people(20)), seed=1)
    assert fitted.total == 0
    assert fitted.sample(30, to=tmp_path / "out", rows_per_part=10, seed=2).frame.collect().height == 0
