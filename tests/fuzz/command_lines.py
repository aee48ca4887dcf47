"""Command lines drawn from the commands themselves: whatever is added to the command line is tried as well.

The options and their types are read off the command tree. A value is drawn by the name of the option where a file, a
column or a policy is meant, by its type elsewhere, and now and then it is nonsense.
"""

from __future__ import annotations

import datetime as dt
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import typer
from hypothesis import strategies as st

from discreet.cli import app
from fuzz.documents import PLANS, POLICIES, STUDIES, SYNTHESES

_ROWS = 40
# Values that nobody would print by chance; texts and amounts of people, never codes of a table.
CANARIES = tuple(f"qzx{number:02d}kjw" for number in range(_ROWS))
AMOUNTS = tuple(7_700_111 + 1_013 * number for number in range(_ROWS))
PEOPLE = pl.DataFrame(
    {
        "age": [20 + (i * 7) % 30 for i in range(_ROWS)],
        "sex": ["f", "m"] * (_ROWS // 2),
        "region": [["north", "east", "south", None][i % 4] for i in range(_ROWS)],
        "job": [CANARIES[i % 9] for i in range(_ROWS)],
        "pay": AMOUNTS,
        "name": [CANARIES[i] for i in range(_ROWS)],
        "day": [dt.date(2024, 1, 1) + dt.timedelta(i) for i in range(_ROWS)],
        "w": [2.5] * _ROWS,
        "hh": [i // 4 for i in range(_ROWS)],
    }
)
COLUMNS = st.sampled_from(["age", "sex", "region", "job", "pay", "name", "day", "w", "hh"])
_FEW = st.lists(COLUMNS, min_size=1, max_size=3, unique=True).map(",".join)
_FILES = st.sampled_from(
    ["people.csv", "people.parquet", "other.csv", "sqlite:///people.db", "empty.csv", "one.csv", "broken.parquet",
     "nowhere.csv", "people",
     "sqlite:///people.db", "duckdb:///nowhere.duckdb", "."]
)  # fmt: skip
_GOOD = {
    "out": ["out.csv", "out.parquet", "out.xlsx", "out.csv.gz", "out.sav", "out.dta"],
    "html": ["report.html"],
    "plot": ["plot.svg", "plot.png"],
    "log": ["log.json"],
    "internal_log": ["inside.json"],
    "model": ["new.model"],
    "from_model": ["m.model"],
    "save_plan": ["saved.toml"],
    "findings": ["findings.toml"],
    "training": ["parts"],
    "policy": ["public-use-file", "scientific-use-file", "synthetic-file", "safe-setting", "policy.toml"],
    "plan": ["plan.toml"],
    "method": ["cart", "sample", "parametric", "norm", "ctree"],
    "missing": ["category", "wildcard", "drop"],
    "effort": ["quick"],
    "accept": ["high", "medium", "low"],
    "encoding": ["utf-8"],
    "separator": [","],
    "decimal": ["."],
    "dates": ["dmy", "text", "day=%Y-%m-%d"],
    "query": ["people", "SELECT * FROM people"],
    "formula": ["sex*region", "sex", "age*sex*region", "sex+region", "hh*sex"],
    "hierarchy": ["region=region.hrc"],
    "rule": ["threshold=3", "zeros", "minimum-contributors=3", "group-disclosure", "ones"],
    "scenario": ["a=age,sex", "b=region,hh"],
    "detail": ["classes=classes.csv", "records=records.parquet"],
    "write_as": ["separator=;", "dates=iso", "missing=NA", "newline=crlf"],
    "step": ['{treatment = "band", widths = {age = 10}}', '{treatment = "drop-identifiers"}',
             '{treatment = "top-bottom-code", top_share = {pay = 0.1}}', '{treatment = "local-suppression", k = 2}',
             '{treatment = "add-noise", columns = ["pay"]}', '{treatment = "pram", columns = ["job"]}',
             '{treatment = "microaggregate", columns = ["pay"]}', '{treatment = "rank-swap", columns = ["pay"]}',
             '{treatment = "round", base = {pay = 5}}', '{treatment = "shuffle", columns = ["pay"], given = ["age"]}',
             '{treatment = "recode", mapping = {sex = {f = "w"}}, other = "error"}', '{treatment = "shift-dates"}',
             '{treatment = "random-swap", columns = ["job"], share = 0.5}', '{treatment = "mondrian", k = 3}',
             '{treatment = "spectral-anonymize", columns = ["age", "pay"]}', '{treatment = "reorder-records"}'],
    "setting": [],
    "constraint": ["age >= 0", "pay > age"],
    "smooth": ["pay", "pay=adaptive"],
    "top": ["pay=7710000"],
    "bottom": ["pay=7701000"],
    "code": ["pay=9"],
    "importance": ["age=2"],
    "precision": ["2", "pay=1", "0"],
    "barn": ["a"],
    "law": ["poisson", "negative-binomial", "poisson-inverse-gaussian", "multinomial-dirichlet"],
    "study": ["study.toml"],
    "package": ["pack.zip"],
    "output": ["one"],
    "reason": ["because"],
    "checker": ["C"],
    "decision": ["accept", "reject", "ask"],
    "roles": ["people.roles.toml"],
    "missing_token": ["-9", "NA"],
    "search": ["mean", "table"],
    "keys": ["age,sex", "sex,region", "age", "age,sex,region,hh", "age,job"],
    "sensitive": ["job", "pay", "job,pay"],
    "identifiers": ["name"],
    "weight": ["w"],
    "household": ["hh"],
    "time": ["day"],
    "strata": ["region", "sex"],
    "person": ["name"],
    "measure": ["pay", "w"],
    "count": ["hh"],
    "keep": ["age"],
    "seed": ["1", "2"],
    "copies": ["1", "2"],
    "rows": ["10", "60"],
    "population_size": ["4000"],
    "epsilon": ["1.0"],
    "alpha": ["0.5"],
    "original": ["other.csv"],
    "resume": ["trials.json"],
    "files": ["table.csv", "pack.zip", "text.txt"],
    "source": ["people.csv", "people.parquet"],
    "ledger": ["people.privacy.toml"],
    "adjacency": ["add-remove", "replace-one"],
    "unit": ["record", "person"],
    "purpose": ["a test"],
    "delta": ["1e-6", "0"],
    "column": ["age", "pay", "w"],
    "lower": ["0"],
    "upper": ["100", "9000000"],
    "by": ["sex", "region", "sex,region"],
    "levels": ["sex=f,m", "region=north,east,south"],
    "at": ["0.5", "0.1"],
    "y": ["pay"],
    "x": ["age"],
    "bounds": ["age=0,100", "pay=0,9000000", "pay=7700000,7800000"],
    "tau": ["0.5"],
    "mechanism": ["opm", "k-norm", "functional", "sgd"],
    "control": ["other.csv"],
    "secret": ["job", "sex", "pay"],
    "known": ["age,sex", "region"],
    "columns": ["age,sex", "pay", "age,sex;region,hh"],
    "attacks": ["20"],
    "schema": ["schema.toml"],
    "ids": ["name"],
    "record_key": ["name"],
    "target": ["sex"],
    "total": ["all"],
}  # fmt: skip
_METHODS = {
    ("table", "protect"): [
        "suppression",
        "cell-key",
        "noisy-counts",
        "random-rounding",
        "controlled-rounding",
    ],
    ("synthesize",): [
        *(
            "cart",
            "sample",
            "parametric",
            "norm",
            "ctree",
            "mst",
            "aim",
            "bayesian-network",
            "pmse-mechanism",
        ),
        *(
            "perturbed-histogram",
            "smooth-histogram",
            "noisy-bayes",
            "gaussian-copula",
            "syndiffix",
            "population",
        ),
        *("households", "adversarial-forest", "independent"),
    ],
}
_SETTINGS = {
    ("synthesize",): ["proper=true", "synthesizer=independent", "synthesizer=bootstrap", "few_values=3"],
    ("risk",): ["threshold=5", "missing=drop", "seed=3"],
    ("table", "protect"): ["epsilon=1.0", "base=3", "method=gauss"],
    ("table", "synthesize"): ["domain=public"],
}
_BAD = {
    "out": ["out.odd", "people.csv", "no/out.csv", "."],
    "html": ["report.txt", "no/report.html", "people.csv"],
    "plot": ["plot.gif", "no/plot.svg"],
    "log": ["people.csv", "no/log.json"],
    "internal_log": ["log.json"],
    "model": ["broken.parquet", "no/x"],
    "from_model": ["broken.parquet", "nowhere.model", "people.csv"],
    "save_plan": ["people.csv"],
    "policy": ["nope", "people.csv", "broken.parquet"],
    "plan": ["synthesis.toml", "policy.toml", "nowhere.toml", "broken.parquet"],
    "encoding": ["latin-1", "rot13", "nope", "utf-16", "idna", "base64"],
    "separator": [";", "", "\t", "ab", "\x00", '"'],
    "decimal": [",", "", "x"],
    "dates": ["day=%", "nope=%d", "x", "age=%Y"],
    "query": ["SELECT 1; DROP TABLE people", "nope", "", "DELETE FROM people",
    "SELECT * FROM people; ATTACH 'x' AS y"],
    "formula": ["sex*", "nope", "", "**", "sex*sex", "pay*name*day"],
    "hierarchy": ["region=nope.csv", "region", "=", "age=broken.parquet", "region=sex", "nope=region.hrc"],
    "rule": ["nope", "threshold=", "threshold=nan", "threshold=-1", "threshold=1e400", "dominance=1", "p-percent=x",
         "pq=1",
             "dominance=1,85", "p-percent=10"],
    "scenario": ["a=", "a", "b=nope"],
    "detail": ["nope=x.csv", "classes", "classes=people.csv", "classes=c.odd", "classes=no/x.csv"],
    "write_as": ["encoding=rot13", "nope=1", "separator=", "separator=ab", "decimal=;", "dates=dmy"],
    "step": ['{treatment = "nope"}', "{", "{}", '{treatment = "top-bottom-code", top = {pay = "x"}}',
         '{treatment = 5}', "5",
             '{treatment = "plan"}', '{treatment = "band", widths = {name = 10}}', '{treatment = "round"}'],
    "setting": ["threshold=nan", "nope=1", "x", "=", "k=x", "domain=5", "keys=[1]", "epsilon=-1",
         "method={age = 'nope'}",
                "base=0", "synthesizer=nope", "data=x"],
    "constraint": ["nope > 1", "age >", "job == 5"],
    "files": ["people.csv", "broken.parquet", "nowhere.csv", ".", "m.model", "empty.csv"],
    "package": ["people.csv", "nowhere", "m.model"],
    "source": ["nowhere.csv", "people.privacy.toml", "."],
    "ledger": ["nowhere.toml", "people.csv", "broken.parquet", "schema.toml"],
    "schema": ["people.csv", "people.privacy.toml", "nowhere.toml", "broken.parquet"],
    "levels": ["sex=", "sex", "nope=1", "age=f", "sex=f,f"],
    "bounds": ["age=0", "age", "age=9,1", "pay=nan,1", "nope=0,1"],
    "control": ["people.csv", "one.csv", "nowhere.csv"],
}  # fmt: skip
_APART = (
    ("plan", "step", "auto"), ("json", "check"), ("plan", "setting"), ("plan", "method"), ("fresh", "retry"),
    ("training", "dry_run"), ("sheet", "query"), ("roles", "keys"), ("from_model", "plan"), ("from_model", "setting"),
    ("from_model", "method"), ("from_model", "save_plan"), ("from_model", "policy"),
)  # fmt: skip
_FILE_OPTIONS = {
    "file",
    "released",
    "population",
    "holdout",
    "original",
    "suppressed",
    "other",
    "files",
    "release",
    "previous",
}
# Options that fit few files or none of these: they come with trouble only.
_ODD = {
    "employer",
    "contributor",
    "psu",
    "location",
    "query",
    "sheet",
    "count",
    "largest",
    "cells",
    "suppressed",
    "time",
}
_ONCE = {"keys", "sensitive", "identifiers", "strata"}
_NONSENSE = st.sampled_from(
    ["", " ", "x", "-1", "nan", "\x1b[31m", "a" * 300, "*", "^.*$", "age,,sex", '"', "é", "0", "../x"]
)
_INTEGERS = st.sampled_from(["0", "1", "2", "5", "-1", "x", "1.5", "9" * 25, "nan", ""])
_NUMBERS = st.sampled_from(["0.5", "1", "0", "-1", "nan", "inf", "1e400", "1e-20", "x", ""])
# Searches and studies take seconds even on forty records: they are drawn now and then.
_SLOW = ("suggest", "search", "evaluate")
# The page waits for a browser; what it can be asked is attacked in the tests of the page.
_WAITS = ("app",)


@dataclass(frozen=True)
class Line:
    """A command line and the TOML files that lie beside the data."""

    arguments: tuple[str, ...]
    documents: tuple[tuple[str, str], ...]


def commands() -> dict[tuple[str, ...], Any]:
    """Every command of the command line, by the words that call it."""
    found: dict[tuple[str, ...], Any] = {}

    def walk(group: Any, words: tuple[str, ...]) -> None:
        for name, inner in group.commands.items():
            if hasattr(inner, "commands"):
                walk(inner, (*words, name))
            else:
                found[(*words, name)] = inner

    walk(typer.main.get_command(app), ())
    return found


@st.composite
def command_lines(draw: st.DrawFn) -> Line:
    """One command with some of its options; as it is meant to be, or with some trouble."""
    every = commands()
    every = {words: command for words, command in every.items() if words[0] not in _WAITS}
    usual = [words for words in every if words[-1] not in _SLOW]
    words = draw(st.sampled_from([*usual, *usual, *usual, *every]))
    trouble = draw(st.sampled_from([0, 0, 0, 1, 1, 4]))
    # Options in tenths: how likely each is given.
    often = {
        "keys": 8,
        "step": 7,
        "rule": 7,
        "out": 8,
        "sensitive": 4,
        "plan": 3,
        "html": 3,
        "json": 3,
        "policy": 3,
    }
    taken: set[str] = set()
    arguments: list[str] = []
    for parameter in every[words].params:
        name = parameter.name
        if name in ("help", "workers", "port") or (name == "auto" and draw(st.integers(0, 9))):
            continue
        is_option = parameter.param_type_name == "option"
        rare = name in ("query", "sheet", "encoding", "separator", "decimal", "show_values", "dates")
        if (
            is_option
            and not parameter.required
            and draw(st.integers(0, 19)) >= (1 if rare else 2 * often.get(name, 1))
        ):
            continue
        if not trouble and name in _ODD:
            continue
        if trouble < 4 and any(name in group and taken & set(group) for group in _APART):
            continue
        taken.add(name)
        if is_option and parameter.is_flag:
            arguments.append(draw(st.sampled_from([*parameter.opts, *parameter.secondary_opts])))
            continue
        several = (getattr(parameter, "multiple", False) or parameter.nargs == -1) and name not in _ONCE
        for _ in range(draw(st.sampled_from([1, 1, 2])) if several else 1):
            value = draw(_value(words, parameter, bad=draw(st.integers(0, 9)) < trouble))
            arguments += [draw(st.sampled_from(parameter.opts)), value] if is_option else [value]
    if words[-1] == "review" and "--verify" not in arguments:
        arguments.append("--verify")  # the page itself would wait for ever; it is attacked elsewhere
    if any(parameter.name == "workers" for parameter in every[words].params):
        arguments += ["--workers", "1"]
    documents = {
        name: draw(texts)
        for name, texts in (
            ("plan.toml", SYNTHESES if words == ("synthesize",) else PLANS),
            ("policy.toml", POLICIES),
            ("study.toml", STUDIES),
        )
        if name in arguments
    }
    return Line((*words, *arguments), tuple(documents.items()))


def _value(words: tuple[str, ...], parameter: Any, *, bad: bool) -> st.SearchStrategy[str]:
    name = parameter.name
    kind = _kind(parameter)
    if bad:
        numbers = {int: _INTEGERS, float: _NUMBERS}.get(kind)
        if name in _FILE_OPTIONS:
            return _FILES
        return st.one_of(
            *([st.sampled_from(_BAD[name])] * 3 if name in _BAD else []),
            _NONSENSE if numbers is None else numbers,
            _NONSENSE,
        )
    if name == "name":
        return st.sampled_from(_names_for(words[0]))
    if name == "method" and words in _METHODS:
        return st.sampled_from(_METHODS[words])
    if name == "setting":
        return st.sampled_from(_SETTINGS.get(words, ["k=3"]))
    if name == "plan" and words == ("preflight",):
        return st.just("saved.toml")
    if name in _GOOD:
        return st.sampled_from(_GOOD[name])
    if name in _FILE_OPTIONS:
        first = "people.csv" if name == "file" else "other.csv"
        return st.sampled_from([*[first] * 8, "people.parquet", "one.csv"])
    if kind is int:
        return st.sampled_from(["1", "2", "5"])
    if kind is float:
        return st.sampled_from(["0.5", "1"])
    return st.one_of(COLUMNS, _FEW)


def _kind(parameter: Any) -> Any:
    """The type of an option, which versions of typer keep in two places."""
    described = getattr(parameter, "type_descriptor", None)
    if described is not None:
        return described.annotation
    return {"integer": int, "float": float}.get(parameter.type.name, str)


@functools.cache
def _names_for(command: str) -> list[str]:
    """What ``discreet risk NAME``, ``attack NAME`` and ``outputs classify NAME`` take."""
    from discreet import attack, risk

    return {
        "risk": [*risk.__all__, "nope", "k-anonymity"],
        "attack": [*(name.replace("_", "-") for name in attack.__all__), "nope"],
    }.get(command, ["mean", "kaplan meier", "odds ratio"])


_MADE = ("people.db", "pack.zip", "m.model", "people.privacy.toml")


@functools.cache
def _beside() -> dict[str, bytes]:
    """The files that lie in the folder of every command."""
    import io
    import sqlite3
    import tempfile
    import warnings

    from discreet.dp import Ledger
    from discreet.outputs import Session
    from discreet.synth import Synthesizer

    files = {
        "people.csv": PEOPLE.write_csv().encode(),
        "other.csv": PEOPLE.reverse().head(30).write_csv().encode(),
    }
    files |= {
        "empty.csv": b"age,sex\n",
        "one.csv": PEOPLE.head(1).write_csv().encode(),
        "broken.parquet": b"PAR1xxPAR1",
    }
    files["schema.toml"] = (
        b'[tables.people]\nfile = "people.csv"\nkey = "name"\n[tables.visit]\nfile = "visit.csv"\nkey = "visit"\n'
        b'parents = { name = "people" }\n'
    )
    files["visit.csv"] = (
        pl.DataFrame(
            {
                "visit": range(60),
                "name": [CANARIES[i % 30] for i in range(60)],
                "cost": [i % 7 for i in range(60)],
            }
        )
        .write_csv()
        .encode()
    )
    files["region.hrc"] = b"all\n@north\n@south\n"
    files["table.csv"] = b"sex,north,south\nf,12,14\nm,3,20\n"
    files["text.txt"] = b"OLS Regression Results\nNo. Observations: 8\n"
    files["people.roles.toml"] = (
        b'[roles]\nkeys = ["age", "sex"]\nsensitive = ["job"]\nidentifiers = ["name"]\n'
    )
    stream = io.BytesIO()
    PEOPLE.write_parquet(stream)
    files["people.parquet"] = stream.getvalue()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        base = sqlite3.connect(Path(folder) / "people.db")
        base.execute("CREATE TABLE people (age, sex, pay)")
        base.executemany("INSERT INTO people VALUES (?, ?, ?)", PEOPLE.select("age", "sex", "pay").rows())
        base.commit()
        base.close()
        with Session(data=PEOPLE, researcher="R") as session:
            session.crosstab("sex", "region", name="one")
            session.save(Path(folder) / "pack.zip")
        from discreet.microdata import Microdata

        (Path(folder) / "people.csv").write_bytes(files["people.csv"])
        Ledger.beside(Path(folder) / "people.csv", 50.0, 1e-3)
        fitted = Synthesizer.known["independent"]().fit(Microdata(PEOPLE.select("age", "sex")), seed=1)
        fitted.save(Path(folder) / "m.model")
        files |= {name: (Path(folder) / name).read_bytes() for name in _MADE}
    return files


def furnish(folder: Path, line: Line) -> None:
    """Put everything into the folder that a command may name."""
    for name, content in _beside().items():
        (folder / name).write_bytes(content)
    for name, text in line.documents:
        (folder / name).write_text(text, encoding="utf-8", errors="replace")


def canaries() -> list[str]:
    """What must never be printed: the texts, and the amounts as they are written."""
    return [*CANARIES, *(str(number) for number in AMOUNTS), *(f"{number:,}" for number in AMOUNTS)]
