"""Python, the command line and the page say the same of the same leak, at every door.

The page is asked through its jobs, as `tests/app` does; no browser is needed.
"""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner
from verdicts.people_files import drawn

from discreet import Plan, assess, compare, judge, outputs, read, suggest, tables
from discreet.cli import app
from discreet.workflow import document_plan

pytest.importorskip("nicegui", reason="the extra 'app' (NiceGUI) is not installed")

from discreet.app.work.bench import Bench
from discreet.app.work.checking import check_outputs
from discreet.app.work.measuring import assess_file
from discreet.app.work.protecting import suggest_plan
from discreet.app.work.releasing import compare_release, write_release
from discreet.app.work.tabulating import protect_table

pytestmark = pytest.mark.filterwarnings("ignore:The key:discreet.core.errors.DiscreetWarning")
ROWS = 1_200
STATES = {"met": "pass", "not met": "fail", "open": "open"}
CODES = {"met": 0, "not met": 3, "open": 4, "accepted": 5}


def run(*arguments):
    return CliRunner().invoke(app, [str(part) for part in arguments])


def options(roles):
    return [
        part
        for role, names in roles.items()
        for part in (f"--{role}", names if isinstance(names, str) else ",".join(names))
    ]


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("homes", "stays", "firms", "levels")]


@pytest.fixture(params=["census", "numbers", *SLOW])
def file(request, tmp_path):
    """A file on disk, its roles, and where to write."""
    original, *_, roles = drawn(request.param, ROWS, seed=1)
    roles = {**roles, "keys": roles["keys"][:3]}
    original.write_csv(tmp_path / "people.csv")
    return tmp_path / "people.csv", roles


def told(file, roles):
    return {"source": {"place": str(file)}, "roles": roles}


LEAKS = {"as it is": [], "in another order": [{"treatment": "reorder-records"}]}


@pytest.mark.parametrize("leak", LEAKS)
@pytest.mark.parametrize("policy", ["public-use-file", "synthetic-file"])
def test_the_same_plan_gets_the_same_verdict_in_python_on_the_command_line_and_on_the_page(
    file, leak, policy
):
    place, roles = file
    steps = LEAKS[leak]
    data = read(place, **roles)
    known = document_plan(data, Plan.from_dict({"step": steps}) if steps else Plan([]), policy).verdict
    page = compare_release(Bench(), **told(place, roles), steps=steps, policy=policy, seed=1)
    assert page["answer"]["state"] == STATES[known.outcome], (known.line, page["line"])
    if steps:
        out = place.with_name("out.csv")
        step = '{treatment = "reorder-records"}'
        done = run(
            "protect", place, *options(roles), "--step", step, "--policy", policy, "--out", out, "--json"
        )
        assert done.exit_code == CODES[known.outcome], done.output
        verdict = json.loads(done.stdout)["verdict"]
        assert sorted(one["measure"] for one in verdict["checks"] if not one["passed"]) == sorted(
            check.measure for check in known.failed
        )
    assert known.outcome != "met", "a leak is in it"


@pytest.mark.parametrize("leak", LEAKS)
def test_nothing_that_is_refused_is_written_by_the_page_as_released_without_remarks(file, leak, tmp_path):
    place, roles = file
    steps = LEAKS[leak]
    with pytest.raises(Exception, match="Say under remarks why it goes out"):
        write_release(
            Bench(), **told(place, roles), steps=steps, policy="public-use-file", seed=1, folder=str(tmp_path / "out"),
            name="out.csv", overwrite=False, guard_formulas=False, signed={"decision": "release", "name": "A"},
            texts={},
        )  # fmt: skip


def test_a_file_by_itself_is_assessed_alike_at_all_doors(file):
    place, roles = file
    known = assess(read(place, **roles), "public-use-file")
    done = run("assess", place, *options(roles), "--policy", "public-use-file", "--json")
    assert done.exit_code == CODES[known.verdict.outcome]
    page = assess_file(
        Bench(), **told(place, roles), policy="public-use-file", scenarios={}, show_values=False
    )
    assert page["answer"]["state"] == STATES[known.verdict.outcome]
    assert judge(read(place, **roles), "public-use-file").outcome == known.verdict.outcome


def test_a_released_file_is_compared_alike_in_python_and_on_the_command_line(file):
    place, roles = file
    data = read(place, **roles)
    half = pl.read_csv(place).with_row_index("n").filter(pl.col("n") % 2 == 0).drop("n")
    half.write_csv(place.with_name("half.csv"))
    released = read(place.with_name("half.csv"), roles={})
    for policy in ("synthetic-file", "public-use-file"):
        known = judge(released, policy, data, seed=0)
        assert compare(data, released, policy=policy, seed=0).verdict.outcome == known.outcome == "not met"
        done = run("compare", place, place.with_name("half.csv"), *options(roles), "--policy", policy)
        assert done.exit_code == CODES[known.outcome]


@pytest.mark.parametrize("name", ["homes", "firms"])
def test_what_suggest_says_meets_a_policy_meets_it_at_every_door(name, tmp_path):
    original, *_, roles = drawn(name, ROWS, seed=1)
    place = tmp_path / "people.csv"
    original.write_csv(place)
    policy = "scientific-use-file"
    found = suggest(read(place, **roles), policy, effort="quick", seed=1)
    page = suggest_plan(Bench(), **told(place, roles), policy=policy, effort="quick", keep=[])
    done = run(
        "suggest", place, *options(roles), "--policy", policy, "--effort", "quick", "--seed", 1, "--json"
    )
    assert json.loads(done.stdout)["meets"] == found.meets == page["meets"]
    if found.meets:
        report = document_plan(read(place, **found.roles.to_dict()), found.plan, policy, seed=found.seed)
        assert report.verdict.outcome == "met", report.verdict.line


def test_a_count_of_a_few_is_found_by_a_session_in_its_package_and_on_the_page(tmp_path):
    rng = np.random.default_rng(0)
    staff = pl.DataFrame({"town": rng.choice(list("ab"), 300), "job": ["x"] * 297 + ["y"] * 3})
    session = outputs.Session(data=staff)
    assert session.crosstab("town", "job").status == "fail"
    session.save(tmp_path / "package")
    assert run("outputs", "check", tmp_path / "package").exit_code == 3
    assert check_outputs(Bench(), folder=str(tmp_path / "package"))["status"] == "fail"
    counts = staff.group_by("town", "job").len().sort("town", "job")
    counts.write_csv(tmp_path / "counts.csv")
    alone = run("outputs", "check", tmp_path / "counts.csv")
    page = check_outputs(Bench(), folder=str(tmp_path / "counts.csv"))
    assert (alone.exit_code == 0) == (page["status"] == "pass") is False


def test_a_table_hides_the_same_cells_at_every_door(tmp_path):
    rng = np.random.default_rng(0)
    people = pl.DataFrame({"town": rng.choice(list("abcde"), 200), "job": rng.choice(list("xyzuvw"), 200)})
    people.write_csv(tmp_path / "people.csv")
    table = tables.primary(tables.Table.from_microdata(people, "town*job"), tables.Threshold(6))
    known = tables.Suppression().apply(table)
    done = run(
        "table",
        "protect",
        tmp_path / "people.csv",
        "-t",
        "town*job",
        "-r",
        "threshold=6",
        "--out",
        tmp_path / "t.csv",
    )
    assert done.exit_code == (0 if known.audit.safe else 3), done.output
    page = protect_table(
        Bench(), source={"place": str(tmp_path / "people.csv")}, roles={}, table="town*job", measure="",
        hierarchies={}, rule="threshold", numbers=[6], out=str(tmp_path / "page.csv"),
        signed={"decision": "release", "name": "A", "remarks": "as a test"},
    )  # fmt: skip
    assert page["safe"] == known.audit.safe
    assert page["primary"] + page["secondary"] == int(known.suppressed.sum())
    there = [
        pl.read_csv(tmp_path / name).filter(pl.col("status") == "suppressed").height
        for name in ("t.csv", "page.csv")
    ]
    assert there == [int(known.suppressed.sum())] * 2
