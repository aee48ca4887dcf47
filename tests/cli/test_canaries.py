"""No value of the data in anything that is printed or written beside the data, unless it was asked for.

The file is made of values that stand nowhere else (`canaries`). Every command is run on it, in its forms for people
and for machines, with reports and logs, and whatever it leaves is searched. Exempt are the released data themselves,
and the files of instructions that are of no use without values and say so: plans, saved models, the internal log.
"""

from __future__ import annotations

import json
import os
import tomllib

import polars as pl
import pytest
import tomli_w

from cli.canaries import PEOPLE, ROLES, Canaries, people
from discreet import risk
from discreet.cli import app
from discreet.core.value_gate import MARK
from discreet.dp import Ledger

KEYS = ("--keys", "region,sex,age")
RAN = (0, 3, 4)
RECODED = (
    '{treatment = "band", widths = {age = 10}}',
    '{treatment = "recode", mapping = {region = {zqregionA = "north", zqregionB = "north"}}}',
    '{treatment = "local-suppression", k = 3}',
)
CHANGED = (
    '{treatment = "add-noise", columns = ["pay"]}',
    '{treatment = "pram", columns = ["illness"]}',
    '{treatment = "microaggregate", columns = ["bonus"], k = 3}',
    '{treatment = "top-bottom-code", top = {rent = 9000}}',
)
RULED = "rules={rent = [{when = \"sex == 'zqman'\", value = 7391888.25}]}"


def steps(texts):
    return [part for text in texts for part in ("--step", text)]


# Commands by name; OUT is a file of released data, RELEASED the synthetic file that is made first.
QUICK = {
    "inspect": ["inspect", "people.csv", "--out", "roles.toml"],
    "inspect json": ["inspect", "people.csv", "--json", "--no-write"],
    "preflight": ["preflight", "people.csv", *ROLES, "--findings", "findings.toml", "--accept", "low"],
    "dry run": ["synthesize", "people.csv", *ROLES, "--dry-run", "--json", "--set", RULED],
    "synthesize": ["synthesize", "people.csv", *ROLES, "--out", "OUT.csv", "--seed", "1", "--json"],
    "finish": ["finish", "RELEASED.csv", "--original", "people.csv", *PEOPLE, "--out", "OUT.csv", "--remove-uniques",
               "--smooth", "pay", "--top", "bonus=3000", "--constraint", "pay > 9000", "--json"],
    "recode": ["protect", "people.csv", *ROLES, *steps(RECODED), "--out", "OUT.csv", "--log", "log.json",
               "--internal-log", "INTERNAL.json", "--seed", "1"],
    "table": ["table", "protect", "people.csv", "--contributor", "firm", "-t", "sex*illness", "--measure", "pay",
              "--rule", "p-percent=10", "--out", "OUT.csv", "--json"],
    "table audit": ["table", "audit", "people.csv", "-t", "region*sex", "--rule", "threshold=12", "--json"],
    "budget": ["budget", "open", "people.csv", "--epsilon", "1", "--json"],
    "declared": ["budget", "declare", "people.csv", "--same", "--ledger", "wave.privacy.toml", "--why", "late",
                 "--json"],
    "private count": ["dp", "count", "people.csv", "--epsilon", "1", "--json"],
    "private total": ["dp", "total", "people.csv", "--column", "pay", "--lower", "0", "--upper", "9e5",
                      "--epsilon", "1"],
    "private mean": ["dp", "mean", "people.csv", "--column", "pay", "--lower", "0", "--upper", "9e5", "--epsilon", "1"],
    "private variance": ["dp", "variance", "people.csv", "--column", "pay", "--lower", "0", "--upper", "9e5",
                         "--epsilon", "1", "--json"],
    "private regression": ["dp", "regression", "people.csv", "--y", "pay", "--x", "bonus", "--bounds",
                           "bonus=0,900000", "--epsilon", "1", "--missing", "drop", "--json"],
    "private quantiles": ["dp", "quantiles", "people.csv", "--column", "pay", "--lower", "0", "--upper", "9e5",
                          "--epsilon", "1", "--json"],
    "private table": ["dp", "table", "people.csv", "--by", "sex", "--levels", "sex=f,m", "--epsilon", "1", "--json"],
    "table drawn": ["table", "synthesize", "people.csv", "-t", "sex*illness", "--alpha", "1", "--out", "OUT.csv",
                    "--json"],
    "register": ["register", "add", "people.csv", *PEOPLE, "RELEASED.csv", "--register", "register.jsonl"],
    "entered": ["protect", "people.csv", *ROLES, *steps(RECODED), "--out", "OUT.csv", "--register", "register.jsonl",
                "--json"],
    "table entered": ["table", "protect", "people.csv", "-t", "sex*illness", "--rule", "threshold=3", "--out",
                      "OUT.csv", "--register", "register.jsonl", "--json"],
    "outputs check": ["outputs", "check", "RELEASED-result.csv", "RELEASED-records.csv"],
    "outputs check json": ["outputs", "check", "RELEASED-result.csv", "--json"],
    "k": ["risk", "k_anonymity", "people.csv", *KEYS, "--json"],
    "singling out": ["attack", "singling_out", "people.csv", *PEOPLE, "--released", "RELEASED.csv", "--html",
                     "report.html"],
    "inference": ["attack", "inference", "people.csv", *PEOPLE, "--released", "RELEASED.csv", "--secret", "illness,pay",
                  "--attacks", "50", "--set", "method=nearest", "--json"],
    "tables rebuilt": ["attack", "table_reconstruction", "people.csv", "--set", "table=region*sex + illness", "--set",
                       "protected=controlled-rounding", "--set", "method=exact", "--html", "report.html"],
    "methods": ["methods", "--json"],
    "linked tables": ["synthesize", "--schema", "schema.toml", "--out", "OUT-linked", "--seed", "1", "--json"],
}  # fmt: skip
SLOW = {
    "linked tables in words": ["synthesize", "--schema", "schema.toml", "--out", "OUT-linked", "--seed", "1"],
    "linked tables by a broken rule": ["synthesize", "--schema", "broken.toml", "--out", "OUT-linked"],
    "linked tables looked at": ["preflight", "--schema", "schema.toml", "--json"],
    "many tables": ["synthesize", "people.csv", *PEOPLE, "--method", "multi-table", "--out", "OUT-many", "--seed", "1",
                    "--set", 'columns=[["sex"], ["region", "sex"], ["pay"]]', "--json"],
    "a linked release": ["evaluate", "schema.toml", "--release", "RELEASED-linked", "--html", "report.html"],
    "a released file": ["evaluate", "people.csv", "--release", "RELEASED.csv", "--keys", "region,sex,age",
                        "--sensitive", "illness", "--group", "region", "--rule", "if sex == 'zqman' then pay > 0",
                        "--json"],
    "syndiffix": ["synthesize", "people.csv", *PEOPLE, "--method", "syndiffix", "--out", "OUT.csv", "--seed", "1",
                  "--json"],
    "preflight json": ["preflight", "people.csv", *ROLES, "--json"],
    "change json": ["protect", "people.csv", *KEYS, *steps(CHANGED), "--out", "OUT.csv", "--log", "log.json",
                    "--internal-log", "INTERNAL.json", "--seed", "1", "--json"],
    "synthesize with rules": ["synthesize", "people.csv", *PEOPLE, "--out", "OUT.csv", "--set", RULED],
    "preflight of people": ["preflight", "people.csv", *PEOPLE, "--json", "--accept", "medium"],
    "assess": ["assess", "people.csv", *ROLES, "--policy", "public-use-file", "--html", "report.html"],
    "assess json": ["assess", "people.csv", *PEOPLE, "--policy", "public-use-file", "--json"],
    "synthesize for a policy": ["synthesize", "people.csv", *PEOPLE, "--out", "OUT.csv", "--policy",
                                "synthetic-file", "--seed", "1", "--json"],
    "compare": ["compare", "people.csv", "RELEASED.csv", *PEOPLE, "--html", "report.html", "--seed", "1", "--policy",
                "synthetic-file", "--plot", "map.svg"],
    "compare json": ["compare", "people.csv", "RELEASED.csv", *PEOPLE, "--json", "--seed", "1"],
    "protect": ["protect", "people.csv", *ROLES, *steps(RECODED), "--out", "OUT.csv", "--html", "report.html",
                "--policy", "public-use-file", "--seed", "1"],
    "protect json": ["protect", "people.csv", *PEOPLE, *steps(CHANGED), "--out", "OUT.csv", "--policy",
                     "public-use-file", "--html", "report.html", "--seed", "1", "--json"],
    "suggest": ["suggest", "people.csv", *KEYS, "--policy", "policy.toml", "--effort", "quick", "--seed", "1",
                "--resume", "trials.jsonl", "--workers", "1", "--out", "PLAN.toml", "--plot", "map.svg"],
    "suggest json": ["suggest", "people.csv", *KEYS, "--policy", "public-use-file", "--effort", "quick", "--seed",
                     "1", "--workers", "1", "--json"],
    "protect by itself": ["protect", "people.csv", *KEYS, "--auto", "--policy", "policy.toml", "--effort",
                          "quick", "--workers", "1", "--seed", "1", "--out", "OUT.csv", "--log", "log.json", "--html",
                          "report.html", "--internal-log", "INTERNAL.json"],
    "search": ["search", "people.csv", *KEYS, "--plan", "given.toml", "--policy", "scientific-use-file", "--resume",
               "trials.jsonl", "--seed", "1", "--json"],
    "evaluate": ["evaluate", "study.toml", "--out", "results", "--html", "report.html", "--json"],
    "evaluate generators": ["evaluate", "people.csv", "--generators", "gaussian-copula", "--keys", "region,sex,age",
                            "--sensitive", "illness", "--identifiers", "name,person", "--repetitions", "1",
                            "--no-attacks", "--save-study", "saved.toml", "--out", "results", "--html", "report.html",
                            "--seed", "1", "--json"],
}  # fmt: skip
STUDY = """
[[data]]
name = "people"
source = "people.csv"
roles = { keys = ["region", "sex", "age"], sensitive = ["illness"], identifiers = ["name", "person"] }
[[generator]]
name = "trees"
synthesizer = "sequential"
parameters = { rules = { rent = [{ when = "sex == 'zqman'", value = 7391888.25 }] } }
[[generator]]
name = "recoded"
step = [{ treatment = "recode", mapping = { region = { zqregionA = "north" } } }]
[[metric]]
name = "margins"
[[metric]]
name = "new_rows"
"""
LINKED = """
[tables.people]
file = "people.csv"
key = "person"
leave_out = ["name"]

[tables.OUTvisit]
file = "visits.csv"
parents = { person = "people" }
order = "day"
rules = ["day >= `people.seen`"]
"""
FRAME = people()
CANARIES = Canaries(FRAME)


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DISCREET_KEY", "0123456789abcdef0123")
    FRAME.write_csv("people.csv")
    shuffled = FRAME.select(pl.all().shuffle(seed=1)).drop("name")
    shuffled.write_csv("RELEASED.csv")
    Ledger(1.0, path="wave.privacy.toml", source="RELEASED.csv")
    FRAME.head(30).write_csv("RELEASED-records.csv")
    largest = FRAME.group_by("region", "sex").agg(
        pl.len().alias("count"), pl.col("pay").max().alias("largest")
    )
    largest.sort("region", "sex").write_csv("RELEASED-result.csv")
    (tmp_path / "study.toml").write_text(STUDY)
    visits = FRAME.head(90).select("person", pl.col("left").alias("day"), pl.col("bonus").alias("cost"))
    visits.write_csv("visits.csv")
    (tmp_path / "RELEASED-linked").mkdir()
    FRAME.drop("name").write_csv("RELEASED-linked/people.csv")
    visits.write_csv("RELEASED-linked/OUTvisit.csv")
    (tmp_path / "schema.toml").write_text(LINKED)
    (tmp_path / "broken.toml").write_text(LINKED.replace(">=", "<"))
    (tmp_path / "policy.toml").write_text('name = "Pairs"\n[rules]\n"k_anonymity.k" = { at_least = 2 }\n')
    given = [tomllib.loads(f"step = {text}")["step"] for text in RECODED]
    (tmp_path / "given.toml").write_text(tomli_w.dumps({"step": given}))
    return tmp_path


def left_behind(folder):
    """List the values in every file that is neither data, nor given by the user, nor marked as holding values."""
    found = {}
    given = {"people.csv", "visits.csv", "study.toml", "given.toml"}
    for path in sorted(folder.rglob("*")):
        if (
            path.is_file()
            and path.name not in given
            and not path.name.startswith(("OUT", "INTERNAL", "RELEASED"))
            and not (path.suffix == ".parquet" and path.parent.name.startswith("OUT"))
        ):
            text = path.read_bytes().decode("utf-8", errors="replace")
            if not text.startswith(MARK) and CANARIES.found_in(text):
                found[path.name] = CANARIES.found_in(text)
    return found


def test_every_command_is_searched():
    """A new command comes with its line here; those that read no data need none (the page: tests/app)."""
    without_data = {"open_page", "review", "decide", "classify", "registry", "show", "close"}
    without_data |= {"serve", "fit", "keys", "prepare"}  # sites are started and searched in tests/federated
    named = {command.callback.__name__ for command in app.registered_commands}
    for group in app.registered_groups:
        named |= {command.name for command in group.typer_instance.registered_commands}
    searched = {part for command in (*QUICK.values(), *SLOW.values()) for part in command[:2]}
    assert named - without_data <= searched


def test_the_canaries_would_be_seen():
    row = FRAME.row(7, named=True)
    text = f"{row['region']} {row['pay']:,.4f} {row['pay']:.2f} {row['home']:,} {row['seen']} {row['w']}"
    assert len(CANARIES.found_in(text)) == 6
    assert not CANARIES.found_in(f"mean {FRAME['pay'].mean():.4f}, 7391 records, 2026-01-01")


@pytest.mark.parametrize("name", QUICK)
def test_no_value_leaves_unasked(discreet, place, name):
    done = discreet(*QUICK[name])
    assert done.returncode in RAN, done.stderr
    assert not CANARIES.found_in(done.stdout + done.stderr)
    assert not left_behind(place)


def test_the_report_of_a_table_names_its_codes_and_no_amount(discreet, place):
    done = discreet(*QUICK["table"][:-1], "--html", "report.html")
    assert done.returncode in RAN, done.stderr
    codes = {*FRAME["sex"], *FRAME["illness"]}
    assert CANARIES.found_in((place / "report.html").read_text()) <= codes


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_no_value_leaves_unasked_by_long_commands(discreet, place, name):
    done = discreet(*SLOW[name])
    assert done.returncode in (*RAN, *((2,) if "broken" in name else ())), done.stderr
    assert not CANARIES.found_in(done.stdout + done.stderr)
    assert not left_behind(place)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in risk.__all__ if not name.startswith("remove")])
def test_no_measure_shows_a_value(discreet, place, name):
    for roles in (ROLES, PEOPLE):
        for form in (["--json"], ["--html", "report.html"]):
            for second in ([], ["--released", "RELEASED.csv"]):
                done = discreet("risk", name, "people.csv", *roles, *second, *form)
                assert done.returncode in (*RAN, 2), done.stderr
                assert not CANARIES.found_in(done.stdout + done.stderr)
                assert not left_behind(place)


@pytest.mark.parametrize("option", ["--findings", pytest.param("--json", marks=pytest.mark.slow)])
def test_who_asks_gets_the_values(discreet, place, option):
    asked = [option, "findings.toml"] if option == "--findings" else [option]
    done = discreet("preflight", "people.csv", *ROLES, "--show-values", *asked)
    text = done.stdout if option == "--json" else (place / "findings.toml").read_text()
    assert {"zqregionA", "zqdistrictZ"} <= CANARIES.found_in(text)
    if option == "--json":
        json.loads(text)
    else:
        assert text.startswith(MARK)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["assess", "compare", "protect", "compare json"])
def test_show_values_is_understood_by_reports(discreet, place, name):
    done = discreet(*SLOW[name], "--show-values")
    assert done.returncode in RAN, done.stderr


def test_instructions_that_need_values_say_that_they_hold_them(discreet, place):
    done = discreet("preflight", "people.csv", *ROLES, "--save-plan", "PLAN.toml")
    assert not CANARIES.found_in(done.stdout + done.stderr)
    assert "keep it as the data are kept" in done.stdout
    assert (place / "PLAN.toml").read_text().startswith(MARK)
    done = discreet("synthesize", "people.csv", *ROLES, "--plan", "PLAN.toml", "--out", "OUT.csv", "--json")
    assert done.returncode == 0, done.stderr
    assert not CANARIES.found_in(done.stdout + done.stderr)


MISTAKES = {
    "an unknown column": ["assess", "people.csv", "--keys", "regoin"],
    "texts taken for numbers": ["assess", "people.csv", "--keys", "region", "--weight", "illness"],
    "a date for a weight": ["assess", "people.csv", "--keys", "region", "--weight", "seen"],
    "dates of another form": ["inspect", "people.csv", "--dates", "seen=%d.%m.%Y", "--no-write"],
    "a decimal comma": ["inspect", "people.csv", "--decimal", ",", "--no-write"],
    "a ragged file": ["inspect", "ragged.csv", "--no-write"],
    "another encoding": ["inspect", "latin.csv", "--encoding", "ascii", "--no-write"],
    "an unfinished recoding": ["protect", "people.csv", *KEYS, "--step",
                               '{treatment = "recode", other = "error", mapping = {region = {x = "y"}}}',
                               "--out", "OUT.csv"],
    "texts to be banded": ["protect", "people.csv", *KEYS, "--step", '{treatment = "band", widths = {region = 2}}',
                           "--out", "OUT.csv"],
    "noise on texts": ["protect", "people.csv", *KEYS, "--step", '{treatment = "add-noise", columns = ["illness"]}',
                       "--out", "OUT.csv"],
    "a rule of another type": ["finish", "RELEASED.csv", "--out", "OUT.csv", "--constraint", "region > 5"],
    "a text for a number": ["finish", "RELEASED.csv", "--out", "OUT.csv", "--constraint", "pay == 'zq'"],
    "texts to be smoothed": ["finish", "RELEASED.csv", "--out", "OUT.csv", "--smooth", "illness"],
    "a method that does not fit": ["synthesize", "people.csv", *PEOPLE, "--out", "OUT.csv", "--set",
                                   'method={illness = "normal"}'],
    "a rule that is broken": ["synthesize", "people.csv", *PEOPLE, "--out", "OUT.csv", "--set",
                              'rules={illness = [{when = "pay > 9000", value = "other"}]}'],
    "a hierarchy with gaps": ["table", "protect", "people.csv", "-t", "region", "--rule", "threshold=3",
                              "--hierarchy", "region=gaps.csv"],
    "sums of texts": ["table", "protect", "people.csv", "-t", "region", "--measure", "illness", "--rule",
                      "threshold=3"],
    "counts that are none": ["table", "protect", "people.csv", "-t", "region", "--count", "pay", "--rule",
                             "threshold=3"],
    "other types to compare": ["compare", "people.csv", "other.csv", *PEOPLE, "--measure", "margins"],
    "names too long for Stata": ["protect", "people.csv", *KEYS, "--step", RECODED[0], "--out", "OUT.dta"],
    "a text that is no label": ["protect", "people.csv", *KEYS, "--step", RECODED[0], "--out", "OUT.sav"],
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_no_refusal_quotes_a_value(discreet, place, name):
    text = (place / "people.csv").read_text()
    (place / "ragged.csv").write_text(text + "zqmore,zqand,zqmore\n")
    (place / "latin.csv").write_bytes(text.replace("zqman", "zqmän").encode("latin-1"))
    (place / "gaps.csv").write_text("child,parent\nzqregionA,north\nzqregionB,north\n")
    FRAME.with_columns(pay=pl.lit("zqtext"), illness=pl.lit(7391.4471)).write_csv(place / "other.csv")
    done = discreet(*MISTAKES[name])
    assert done.returncode in (*RAN, 2), done.stderr
    assert not CANARIES.found_in((done.stdout + done.stderr).replace("pay == 'zq'", ""))
    assert os.environ.get("DISCREET_TRACEBACK") is None
