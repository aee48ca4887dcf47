"""Releases one after the other: a leak that only two of them make together is reported at every door with a register.

Without a register every door says that nobody knows what went out before.
"""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner
from verdicts.people_files import drawn

from discreet import Microdata, Plan, compare, judge, outputs, read, write
from discreet.cli import app
from discreet.core.files.untrusted import parsed_toml
from discreet.register import Register
from discreet.register.releases import NOBODY_KNOWS
from discreet.workflow import document_plan

ROWS = 1_500
CODED = {  # by file: two codings of one column, each by itself fit for release
    "census": ("age", 10, 12, 5),
    "homes": ("age", 10, 12, 5),
    "levels": ("birth", 4, 5, 2),
}
KEYS = {"census": "age,sex,race", "homes": "region,age,sex", "levels": "birth,party"}


def run(*arguments):
    return CliRunner().invoke(app, [str(part) for part in arguments])


@pytest.fixture(params=CODED)
def place(request, tmp_path):
    """A file, its keys, and two releases whose bands cut at other places."""
    name = request.param
    original, *_ = drawn(name, ROWS, seed=1)
    column, width, other, shift = CODED[name]
    original.write_csv(tmp_path / "people.csv")
    for file, wide, moved in (("first.csv", width, 0), ("second.csv", other, shift)):
        band = ((pl.col(column) + moved) // wide * wide).cast(pl.String)
        original.with_columns(band.alias(column)).write_csv(tmp_path / file)
    step = f'{{treatment = "band", widths = {{{column} = %s}}}}'
    return tmp_path, KEYS[name], step, (width, other)


def entered(place):
    folder, keys, *_ = place
    done = run("register", "add", folder / "people.csv", "-k", keys, folder / "first.csv")
    assert done.exit_code == 0, done.output


def test_two_releases_whose_bands_cut_elsewhere_are_caught_by_compare_and_judge(place):
    folder, keys, *_ = place
    files = (folder / "people.csv", folder / "second.csv", "-k", keys, "--measure", "information_loss")
    alone = run("compare", *files)
    assert alone.exit_code == 0, alone.output
    assert NOBODY_KNOWS in alone.output
    entered(place)
    beside = run("compare", *files)
    assert beside.exit_code == 3, beside.output
    assert "laid beside 'first.csv'" in " ".join(beside.output.split())
    original, second, first = (
        read(folder / name, **({"keys": keys.split(",")} if name == "people.csv" else {"roles": {}}))
        for name in ("people.csv", "second.csv", "first.csv")
    )
    found = judge(second, "safe-setting", original, previous={"first.csv": first}, seed=0)
    assert "earlier_releases" in [check.measure for check in found.failed]


def test_and_by_protect_which_enters_what_meets_and_nothing_else(place):
    folder, keys, step, (width, other) = place
    register = ("--register", folder / "people.register.jsonl")
    plain = (
        "protect",
        folder / "people.csv",
        "-k",
        keys,
        "--overwrite",
        "--json",
        "--out",
        folder / "out.csv",
    )
    unknown = run(*plain, "--step", step % width)
    assert json.loads(unknown.stdout)["register"] == NOBODY_KNOWS
    assert run(*plain, "--step", step % width, *register).exit_code == 0
    (folder / "out.csv").rename(folder / "went-out.csv")
    coarser = ("--previous", folder / "went-out.csv")
    again = run(*plain, "--step", step % width, *coarser)
    assert again.exit_code == 0, "the same release again says nothing new"
    second = run(*plain, "--step", step % other, *coarser, *register)
    assert second.exit_code == 3, second.output
    assert json.loads(second.stdout)["verdict"]["outcome"] == "not met"
    assert len(Register.load(register[1]).releases) == 1
    plain = (*plain[:-1], folder / "later.csv")
    lost = run(*plain, "--step", step % width, *register)
    assert lost.exit_code == 4, "the release that went out lies elsewhere now, and nobody can look"
    accepted = ("--accept", "earlier_releases", "--because", "it was withdrawn", "--by", "A. Steward")
    plain = (*plain[:-1], folder / "last.csv")
    assert run(*plain, "--step", step % width, *register, *accepted).exit_code == 5
    assert Register.load(register[1]).releases[-1]["accepted"][0]["by"] == "A. Steward"


def read_both(place):
    folder, keys, *_ = place
    given = {"people.csv": {"keys": keys.split(",")}, "second.csv": {"roles": {}}}
    return [read(folder / name, **roles) for name, roles in given.items()]


def caught(verdict):
    return "earlier_releases" in [check.measure for check in verdict.failed]


def test_the_doors_of_python_ask_the_register_beside_the_file_without_being_told(place):
    entered(place)
    _, _, step, (_, other) = place
    original, second = read_both(place)
    assert caught(judge(second, "safe-setting", original, seed=0))
    found = compare(original, second, policy="safe-setting", measures="information_loss", seed=0)
    assert caught(found.verdict)
    assert "The register 'people.register.jsonl' holds 1 release." in str(found)
    report = document_plan(original, Plan.from_dict(parsed_toml(f"step = [{step % other}]")), "safe-setting")
    assert caught(report.verdict)
    assert "The register 'people.register.jsonl' holds 1 release." in report.not_judged


def test_the_doors_of_python_enter_what_meets_where_a_register_is_named(place):
    folder, _, step, (width, _) = place
    register = folder / "people.register.jsonl"
    original, _ = read_both(place)
    plan = Plan.from_dict(parsed_toml(f"step = [{step % width}]"))
    report = document_plan(original, plan, register=register)
    write(report.release.data, folder / "out.csv")
    assert "holds 1 release." in report.entered(folder / "out.csv").not_judged
    compare(original, read(folder / "first.csv", roles={}), measures="information_loss", register=register)
    assert [line["file"] for line in Register.load(register).releases] == ["out.csv", "first.csv"]


def test_a_register_of_another_file_in_the_folder_makes_the_missing_one_worth_saying(place):
    folder, *_ = place
    original, second = read_both(place)
    silent = compare(original, second, measures="information_loss", seed=0)
    assert NOBODY_KNOWS not in str(silent)
    Register(folder / "others.register.jsonl", second)
    assert NOBODY_KNOWS in str(compare(original, second, measures="information_loss", seed=0))


def test_the_page_asks_the_register_and_enters_what_it_writes(place):
    pytest.importorskip("nicegui", reason="the extra 'app' (NiceGUI) is not installed")
    from discreet.app.work.bench import Bench
    from discreet.app.work.releasing import compare_release, write_release

    folder, keys, step, (width, other) = place
    original, _ = read_both(place)
    Register(folder / "people.register.jsonl", original)
    bench, signed = Bench(), {"decision": "release", "name": "A", "remarks": "as a test"}
    told = {"source": {"place": str(folder / "people.csv")}, "roles": {"keys": keys.split(",")}, "seed": 1}
    plans = {wide: parsed_toml(f"step = [{step % wide}]")["step"] for wide in (width, other)}
    written = write_release(
        bench, **told, steps=plans[width], policy="safe-setting", folder=str(folder / "out"), name="first-out.csv",
        overwrite=False, guard_formulas=False, signed=signed, texts={},
    )  # fmt: skip
    assert "holds 1 release." in written["not_judged"], "signed, it goes out whatever the rules say"
    second = compare_release(bench, **told, steps=plans[other], policy="safe-setting")
    assert second["answer"]["state"] == "fail", "the release that went out is found below the register"
    assert "laid beside 'first-out.csv'" in second["line"]


ROWS_OF_TABLE = (
    [("n", "y")] * 94 + [("n", "o")] * 110 + [("s", "y")] * 95 + [("s", "o")] * 2 + [("m", "o")] * 60
)
TABLE = pl.DataFrame([*ROWS_OF_TABLE, *[("m", "y")] * 70], schema=["region", "age"], orient="row")
FIRST = {("s", "o"), ("s", "y"), ("n", "o"), ("n", "y")}


def published(folder, hidden):
    """A table with some cells left out, as an office publishes it: 301 in all, and no sign of the 2."""
    from discreet.tables import Table

    cells = Table.from_microdata(TABLE, "region*age").cells.select("region", "age", "count")
    gone = pl.Series([row[:2] in hidden for row in cells.rows()])
    cells.with_columns(
        count=pl.when(gone).then(None).otherwise("count"),
        status=pl.when(gone).then(pl.lit("suppressed")).otherwise(pl.lit("published")),
    ).write_csv(folder / "first.csv")
    TABLE.write_csv(folder / "people.csv")


def hidden_in(file):
    return set(pl.read_csv(file).filter(pl.col("status") == "suppressed").select("region", "age").rows())


def test_two_suppressed_tables_in_two_calls_do_not_give_the_cell_they_both_leave_out(tmp_path):
    published(tmp_path, FIRST)
    plain = (
        "table",
        "protect",
        tmp_path / "people.csv",
        "-t",
        "region*age",
        "-r",
        "threshold=3",
        "--overwrite",
    )
    alone = run(*plain, "--out", tmp_path / "alone.csv")
    assert hidden_in(tmp_path / "alone.csv") != FIRST
    assert NOBODY_KNOWS in alone.output
    beside = run(*plain, "--out", tmp_path / "second.csv", "--previous", tmp_path / "first.csv")
    assert beside.exit_code == 0, beside.output
    assert hidden_in(tmp_path / "second.csv") == FIRST
    assert "Together with 'first.csv', no combination" in beside.output
    stuck = run(*plain, "--out", tmp_path / "third.csv", *(
        part for name in ("first.csv", "alone.csv") for part in ("--previous", tmp_path / name)
    ))  # fmt: skip
    assert stuck.exit_code == 3
    assert "these cells remain open" in stuck.output
    assert "region s, age o" in stuck.output


def test_a_register_knows_the_tables_that_went_out_without_their_files(tmp_path):
    TABLE.with_columns(sex=pl.Series(["f", "m", "m"] * 144)[: TABLE.height]).write_csv(
        tmp_path / "people.csv"
    )
    register = ("--register", tmp_path / "people.register.jsonl")
    plain = ("table", "protect", tmp_path / "people.csv", "--json", "-r", "threshold=3")
    first = run(*plain, "-t", "region*age", "--out", tmp_path / "first.csv", *register)
    assert first.exit_code == 0, first.output
    (tmp_path / "first.csv").unlink()
    second = json.loads(run(*plain, "-t", "age*region*sex", "--out", tmp_path / "second.csv").stdout)
    assert second["audit"]["figures"]["releases"] == 2
    rounded = run(*plain[:4], "-t", "age", "-m", "controlled-rounding", "--out", tmp_path / "third.csv")
    assert rounded.exit_code == 4
    assert json.loads(rounded.stdout)["not_held_against"] == ["first.csv"]


def test_a_synthetic_table_is_not_combined_with_a_suppressed_one_and_is_entered(tmp_path):
    TABLE.write_csv(tmp_path / "people.csv")
    register = ("--register", tmp_path / "people.register.jsonl")
    plain = ("-t", "region*age", "--overwrite")
    synthesize = ("table", "synthesize", tmp_path / "people.csv", *plain, "--alpha", "0.5", "--seed", 1)
    assert NOBODY_KNOWS in run(*synthesize, "--out", tmp_path / "drawn.csv").output
    protect = ("table", "protect", tmp_path / "people.csv", *plain, "-r", "threshold=3")
    assert run(*protect, "--out", tmp_path / "first.csv", *register).exit_code == 0
    second = run(*synthesize, "--out", tmp_path / "second.csv", *register)
    assert second.exit_code == 4, second.output
    assert "Not held against this table, which a person has to do: 'first.csv'" in " ".join(
        second.output.split()
    )
    assert [line["file"] for line in Register.load(register[1]).releases] == ["first.csv", "second.csv"]
    third = run(*protect, "--out", tmp_path / "third.csv")
    assert third.exit_code == 4, "a synthetic table went out meanwhile"


def test_the_page_holds_a_table_against_those_that_went_out(tmp_path):
    pytest.importorskip("nicegui", reason="the extra 'app' (NiceGUI) is not installed")
    from discreet.app.work.bench import Bench
    from discreet.app.work.tabulating import protect_table

    rows = TABLE.with_columns(sex=pl.Series(["f", "m", "m"] * 144)[: TABLE.height])
    rows.write_csv(tmp_path / "people.csv")
    Register(tmp_path / "people.register.jsonl", read(tmp_path / "people.csv", roles={}))
    told = {"source": {"place": str(tmp_path / "people.csv")}, "roles": {}, "measure": "", "hierarchies": {}}
    told |= {"rule": "threshold", "numbers": [3], "signed": {"decision": "release", "name": "A"}}
    first = protect_table(Bench(), **told, table="region*age", out=str(tmp_path / "first.csv"))
    assert first["safe"]
    second = protect_table(Bench(), **told, table="age*region*sex", out=str(tmp_path / "second.csv"))
    assert "Together with 'first.csv'" in " ".join(second["audit"])
    assert len(Register.load(tmp_path / "people.register.jsonl").releases) == 1 + second["safe"]


@pytest.fixture
def staff():
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "region": rng.choice(list("abc"), 900),
            "grade": rng.choice(["x", "y"], 900),
            "pay": rng.lognormal(8, 0.5, 900).round(2),
        }
    )


def mean_of_pay(session):
    return session.summary("pay", ["region"], statistics=["mean"])


def test_a_mean_before_and_after_one_value_became_0_is_refused_by_a_session_with_a_register(staff, tmp_path):
    place = tmp_path / "staff.register.jsonl"
    with outputs.Session(data=staff, register=place) as before:
        assert mean_of_pay(before).status == "pass"
        before.save(tmp_path / "before")
    changed = staff.with_columns(pay=pl.when(pl.int_range(pl.len()) == 17).then(0.0).otherwise("pay"))
    alone = outputs.Session(data=changed)
    assert mean_of_pay(alone).status == "pass"
    assert NOBODY_KNOWS in repr(alone)
    found = mean_of_pay(outputs.Session(data=changed, register=place))
    assert found.status == "fail"
    assert "by fewer than 10 people" in found.reasons[0]
    assert mean_of_pay(outputs.Session(data=staff, register=place)).status == "pass", "the same mean again"
    many = staff.with_columns(pay=pl.when(pl.int_range(pl.len()) < 300).then(0.0).otherwise("pay"))
    Register.load(place).same_source(Microdata(many), why="a corrected file, said by the owner")
    assert mean_of_pay(outputs.Session(data=many, register=place)).status == "pass", (
        "300 people hide each other"
    )


@pytest.mark.parametrize(("gone", "status"), [(1, "fail"), (5, "fail"), (40, "pass")])
def test_a_count_of_all_but_a_few_is_refused_in_a_later_session(staff, tmp_path, gone, status):
    place = tmp_path / "staff.register.jsonl"
    first = outputs.Session(data=staff, register=place)
    first.crosstab("region")
    first.save(tmp_path / "first.zip")
    few = staff.with_columns(
        part=pl.when(pl.int_range(pl.len()) < gone).then(pl.lit("no")).otherwise(pl.lit("yes"))
    )
    later = outputs.Session(data=staff, register=place)
    found = later.summary("pay", data=few, statistics=["mean"], where={"part": "yes"})
    assert found.status == status


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_the_same_statistic_of_all_but_three_is_refused_in_a_later_session(staff, tmp_path, statistic):
    place = tmp_path / "staff.register.jsonl"
    data = staff.with_columns(
        part=pl.when(pl.int_range(pl.len()) < 3).then(pl.lit("no")).otherwise(pl.lit("yes"))
    )
    first = outputs.Session(data=data, register=place)
    first.explain(first.summary("pay", statistics=[statistic]), "asked for by the ministry")
    first.save(tmp_path / "first")
    found = outputs.Session(data=data, register=place).summary(
        "pay", statistics=[statistic], where={"part": "yes"}
    )
    assert any("in the register by fewer than 10 people" in reason for reason in found.reasons)
    assert found.status == "fail"


@pytest.fixture
def loads():
    rng = np.random.default_rng(0)
    meters, times = 90, 120
    return pl.DataFrame(
        {
            "meter": np.repeat(np.arange(meters), times),
            "time": np.tile(np.arange(times), meters),
            "district": np.repeat(rng.choice(list("abc"), meters), times),
            "load": rng.lognormal(1, 0.4, meters * times).round(3),
        }
    )


SERIES = {
    "one reading": pl.when((pl.col("meter") == 5) & (pl.col("time") == 17)).then(0.0).otherwise("load").alias("load"),
    "one meter": pl.when(pl.col("meter") == 5).then(0.0).otherwise("load").alias("load"),
    "one district": pl.when(pl.col("meter") == 5).then(pl.lit("c")).otherwise("district").alias("district"),
}  # fmt: skip


@pytest.mark.parametrize("changed", SERIES)
@pytest.mark.parametrize("by", [["time"], ["district", "time"]])
def test_averaged_series_of_two_sessions_do_not_tell_one_meter(loads, changed, by, tmp_path):
    if changed == "one district" and by == ["time"]:
        pytest.skip("who is in which district does not matter to averages of all")
    place = tmp_path / "loads.register.jsonl"
    first = outputs.Session(data=Microdata(loads, contributor="meter"), register=place)
    assert first.summary("load", by, statistics=["mean"]).status == "pass"
    first.save(tmp_path / "first")
    later = outputs.Session(
        data=Microdata(loads.with_columns(SERIES[changed]), contributor="meter"), register=place
    )
    assert later.summary("load", by, statistics=["mean"]).status == "fail"


def test_a_district_whose_averaged_series_went_out_is_known_again_when_one_meter_left_it(loads, tmp_path):
    place = tmp_path / "loads.register.jsonl"
    first = outputs.Session(data=Microdata(loads, contributor="meter"), register=place)
    first.summary("load", ["district", "time"], statistics=["mean"])
    first.save(tmp_path / "first")
    meter = loads.filter(pl.col("district") == "a")["meter"][0]
    fewer = loads.filter(pl.col("meter") != meter)
    later = outputs.Session(data=Microdata(fewer, contributor="meter"), register=place)
    where = {"district": ["a"]}
    assert later.summary("load", ["district", "time"], statistics=["mean"], where=where).status == "fail"


def test_a_correction_that_an_output_does_not_show_is_no_failure(staff, tmp_path):
    place = tmp_path / "staff.register.jsonl"
    first = outputs.Session(data=staff, register=place)
    first.crosstab("region")
    first.save(tmp_path / "first")
    changed = staff.with_columns(pay=pl.when(pl.int_range(pl.len()) == 17).then(0.0).otherwise("pay"))
    later = outputs.Session(data=changed, register=place)
    assert later.crosstab("region").status == "pass"


def test_records_that_were_changed_in_memory_are_for_a_human(staff, tmp_path):
    place = tmp_path / "staff.register.jsonl"
    first = outputs.Session(data=staff, register=place)
    first.crosstab("region")
    first.save(tmp_path / "first")
    other = staff.with_columns(pl.col("pay") * 1.1, pl.col("region").str.to_uppercase())
    found = outputs.Session(data=staff, register=place).summary("pay", data=other, statistics=["mean"])
    assert found.status == "review"
    assert "Nobody in these records is known again" in found.reasons[0]


def test_where_the_key_of_the_register_was_lost_a_human_looks(staff, tmp_path):
    place = tmp_path / "staff.register.jsonl"
    first = outputs.Session(data=staff, register=place)
    first.crosstab("region")
    first.save(tmp_path / "first")
    (tmp_path / "staff.register.key").unlink()
    found = outputs.Session(data=staff, register=place).crosstab("region")
    assert found.status == "review"
    assert "the key of the register was lost" in found.reasons[0]


def test_a_register_beside_the_file_is_asked_without_being_named_and_not_written(staff, tmp_path):
    staff.write_csv(tmp_path / "staff.csv")
    data = read(tmp_path / "staff.csv", roles={})
    first = outputs.Session(data=data, register=Register.place_beside(tmp_path / "staff.csv"))
    mean_of_pay(first)
    first.save(tmp_path / "first")
    known = (tmp_path / "staff.register.jsonl").read_bytes()
    later = outputs.Session(data=read(tmp_path / "staff.csv", roles={}))
    assert later.summary("pay", where={"region": ["a", "b", "c"]}, statistics=["mean"]).status == "pass"
    later.save(tmp_path / "second")
    assert (tmp_path / "staff.register.jsonl").read_bytes() == known


def test_the_door_of_finished_outputs_holds_packages_together_and_says_what_it_cannot_know(staff, tmp_path):
    changed = staff.with_columns(pay=pl.when(pl.int_range(pl.len()) == 17).then(0.0).otherwise("pay"))
    for name, frame in (("before", staff), ("after", changed)):
        session = outputs.Session(data=frame)
        mean_of_pay(session)
        session.save(tmp_path / name)
    alone = run("outputs", "check", tmp_path / "after")
    assert alone.exit_code == 0
    assert NOBODY_KNOWS in alone.output
    beside = run("outputs", "check", tmp_path / "after", "--previous", tmp_path / "before")
    assert beside.exit_code == 4
    assert "of data that have changed since" in " ".join(beside.output.split())
    place = tmp_path / "staff.register.jsonl"
    Register(place, Microdata(staff))
    assert run("outputs", "check", tmp_path / "before", "--register", place).exit_code == 0
    assert run("outputs", "check", tmp_path / "before", "--register", place).exit_code == 0
    assert run("outputs", "check", tmp_path / "after", "--register", place).exit_code == 4
