"""Kill writers at random moments and look at what is left: the old, or the new, and nothing between.

Run as ``python -m fuzz.killing FOLDER KILLS SEED``. One process imports everything and starts a child for every write
(forked, so that a kill costs no second start of Python); half of the children are killed at any moment of their run,
half just after the first trace of writing shows. A child reads what is left, since whoever computes with Polars must
not fork any more. Then the same thing is written again, and nothing but the file may be there.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

import discreet
from discreet import Microdata, datasets  # noqa: F401  (imported before any child is started)
from discreet.cli import main
from discreet.hierarchy import Hierarchy
from discreet.io import write
from discreet.io.sidecar import save_roles
from discreet.outputs import Package, Session, append_decision, read_decisions, verify_register
from discreet.protect import DropIdentifiers, Plan, Round
from discreet.synth import Independent, load
from discreet.workflow.evaluation import Study, evaluate

_ROWS = 3000


def people(version: int) -> pl.DataFrame:
    """Two files that differ everywhere."""
    return pl.DataFrame(
        {
            "age": [20 + (i * 7 + version) % 60 for i in range(_ROWS)],
            "sex": [["f", "m"][(i + version) % 2] for i in range(_ROWS)],
            "pay": [float(i * 31 % 9973 + version) for i in range(_ROWS)],
        }
    )


@dataclass(frozen=True)
class Writer:
    """How something is written, and what is read from it; a reader raises where it is no whole thing."""

    write: Callable[[Path, int], Any]
    read: Callable[[Path], Any]
    names: tuple[str, ...]
    grows: bool = False
    """Whether it is added to, so that what is there after a kill is any number of whole lines."""


def _file(name: str) -> Writer:
    def read(folder: Path) -> Any:
        return discreet.engine.collect(discreet.read(folder / name)).rows()[::97]

    return Writer(
        lambda folder, version: write(people(version), folder / name, overwrite=True), read, (name,)
    )


def _table(address: str, name: str) -> Writer:
    def place(folder: Path) -> str:
        return f"{address}:///{folder / name}"

    def put(folder: Path, version: int) -> None:
        write(people(version).head(400), place(folder), overwrite=True, table="people")

    def read(folder: Path) -> Any:
        return sorted(discreet.engine.collect(discreet.read(place(folder), query="people")).rows())[::17]

    return Writer(put, read, (name,))


def _bytes(name: str, put: Callable[[Path, int], Any]) -> Writer:
    return Writer(put, lambda folder: (folder / name).read_bytes().hex(), (name,))


def _command(*arguments: str) -> None:
    """Run a command of discreet here; only its success is one."""
    sys.argv = ["discreet", *arguments]
    with (
        contextlib.suppress(SystemExit),
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stdout(nowhere),
    ):
        main()


def _package(name: str) -> Writer:
    def put(folder: Path, version: int) -> None:
        with Session(data=people(version)) as session:
            session.crosstab("sex", "age", name="one")
            session.table("sex", "pay", name="two") if hasattr(session, "table") else None
            session.save(folder / name, overwrite=True)

    def read(folder: Path) -> Any:
        package = Package.load(folder / name)
        return [str(table.rows()) for output in package for table in package.tables(output["name"]).values()]

    return Writer(put, read, (name,))


def _copies() -> Writer:
    def put(folder: Path, version: int) -> None:
        people(version).head(300).write_csv(folder.parent / f"source-{version}.csv")
        _command(
            "synthesize", str(folder.parent / f"source-{version}.csv"), "--out", str(folder / "copy.csv"), "--copies",
            "3",
            "--method", "sample", "--seed", "1", "--overwrite", "--json",
        )  # fmt: skip

    names = tuple(f"copy-{number}.csv" for number in (1, 2, 3))
    # Each copy is a file of its own: every one is the old or the new.
    return Writer(put, lambda folder: [(folder / name).read_bytes().hex() for name in names], names)


def _protected() -> Writer:
    def put(folder: Path, version: int) -> None:
        source = folder.parent / f"protect-{version}.csv"
        people(version).write_csv(source)
        _command(
            "protect", str(source), "--out", str(folder / "release.parquet"), "--seed", "1", "--overwrite", "--json",
            "--step", '{treatment = "round", base = {pay = 10}}', "--log", str(folder / "log.json"),
            "--html", str(folder / "report.html"), "--keys", "age,sex",
        )  # fmt: skip

    def read(folder: Path) -> Any:
        assert "</html>" in (folder / "report.html").read_text()
        json.loads((folder / "log.json").read_text())
        return pl.read_parquet(folder / "release.parquet").rows()[::97]

    return Writer(put, read, ("release.parquet", "log.json", "report.html"))


def _model() -> Writer:
    def put(folder: Path, version: int) -> None:
        Independent().fit(Microdata(people(version)), seed=1).save(folder / "m.model")

    return Writer(put, lambda folder: load(folder / "m.model").sample(20, seed=1).frame.rows(), ("m.model",))


def _register() -> Writer:
    def put(folder: Path, version: int) -> None:
        for _ in range(3):
            append_decision(
                folder / "d.jsonl",
                output="one",
                decision="accept",
                checker="C",
                note="why" * 200,
                about={"status": "pass"},
            )

    def read(folder: Path) -> Any:
        assert verify_register(folder / "d.jsonl") == len(read_decisions(folder / "d.jsonl"))
        return "a whole chain"

    return Writer(put, read, ("d.jsonl",), grows=True)


def _study() -> Writer:
    def study(folder: Path) -> Study:
        source = folder.parent / "study.csv"
        if not source.exists():
            people(1).head(200).write_csv(source)
        roles = {"keys": ["age", "sex"], "sensitive": ["pay"]}
        return Study.from_dict(
            {
                "data": [{"name": "people", "source": str(source), "roles": roles}],
                "generator": [{"name": "margins", "synthesizer": "independent"}],
                "metric": [{"name": "margins"}],
                "seeds": [1, 2, 3],
            }
        )

    def put(folder: Path, version: int) -> None:
        evaluate(study(folder), out=folder / "kept", resume=version == 2, progress=False)

    def read(folder: Path) -> Any:
        for path in (folder / "kept").glob("*.jsonl"):
            text = path.read_text()
            whole = text[: text.rfind("\n") + 1]
            assert all(json.loads(line) for line in whole.splitlines())
        return "whole lines"

    return Writer(put, read, ("kept",), grows=True)


def writers() -> dict[str, Writer]:
    """Everything that puts something on a disk."""
    found = {
        name: _file(name)
        for name in ("a.csv", "a.csv.gz", "a.parquet", "a.arrow", "a.xlsx", "a.sav", "a.dta")
    }
    found |= {"sqlite": _table("sqlite", "a.db"), "duckdb": _table("duckdb", "a.duckdb")}
    found |= {"package folder": _package("pack"), "package zip": _package("pack.zip")}
    found |= {
        "copies": _copies(),
        "protect": _protected(),
        "model": _model(),
        "register": _register(),
        "study": _study(),
    }
    found["plan"] = _bytes(
        "plan.toml",
        lambda folder, version: Plan([DropIdentifiers()] * 30 + [Round({"pay": float(version)})]).save(
            folder / "plan.toml", overwrite=True
        ),
    )
    found["roles"] = _bytes(
        "r.roles.toml",
        lambda folder, version: save_roles(
            Microdata(people(version).head(9), keys=["age", "sex"][:version]),
            folder / "r.roles.toml",
            overwrite=True,
        ),
    )
    found["hierarchy"] = _bytes(
        "h.csv",
        lambda folder, version: Hierarchy.intervals(widths=[5 * version, 20 * version]).to_csv(
            folder / "h.csv", pl.Series(range(2000))
        ),
    )
    found["report"] = Writer(
        lambda folder, version: discreet.assess(Microdata(people(version), keys=["age", "sex"])).to_html(
            folder / "report.html"
        ),
        lambda folder: "</html>" in (folder / "report.html").read_text() or 1 / 0,
        ("report.html",),
        grows=True,
    )
    return found


def in_child(work: Callable[[], Any], *, waits: bool = True) -> Any:
    """Run something in a child; give what it returns, or its process where it is not waited for."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        code = 1
        try:
            warnings.simplefilter("ignore")
            with os.fdopen(writing, "w") as answer:
                try:
                    json.dump({"is": _print_of(work())}, answer)
                    code = 0
                except BaseException:
                    json.dump({"failed": traceback.format_exc(limit=-4)}, answer)
        finally:
            os._exit(code)
    os.close(writing)
    if not waits:
        return child, reading
    with os.fdopen(reading) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else {"failed": "the child said nothing"}


def _print_of(value: Any) -> Any:
    """A short print of what was read; lists keep their items apart, so that mixed copies can be told."""
    if isinstance(value, list):
        return [hashlib.sha256(repr(item).encode()).hexdigest()[:16] for item in value]
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


def _kill(writer: Writer, folder: Path, version: int, moment: float, *, aimed: bool) -> bool:
    """Start a write and kill it; False where it was done before."""
    before = {entry.name for entry in folder.iterdir()}
    child, reading = in_child(lambda: writer.write(folder, version), waits=False)
    until = time.monotonic() + 30
    if aimed:
        while {entry.name for entry in os.scandir(folder)} == before and time.monotonic() < until:
            if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                break
        time.sleep(moment * 0.05)
    else:
        time.sleep(moment)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(reading)
    return os.WIFSIGNALED(status)


def _is_one_of(seen: Any, versions: list[Any]) -> bool:
    if seen in versions:
        return True
    return (
        isinstance(seen, list)
        and all(len(seen) == len(version) for version in versions)
        and all(item in {version[place] for version in versions} for place, item in enumerate(seen))
    )


def campaign(place: Path, kills: int, seed: int) -> dict[str, Any]:
    """Kill so many writes, all kinds in turn, and say what was found."""
    chance = random.Random(seed)
    known: dict[str, tuple[Writer, Path, list[Any], float]] = {}
    failures: list[str] = []
    done = tried = mixed = 0
    for name, writer in writers().items():
        folder = place / name.replace(" ", "-").replace(".", "-") / "here"
        folder.mkdir(parents=True)
        versions = []
        for version in (2, 1):
            began = time.monotonic()
            found = in_child(lambda w=writer, f=folder, v=version: w.write(f, v))
            took = time.monotonic() - began
            seen = in_child(lambda w=writer, f=folder: w.read(f))
            if "failed" in found or "failed" in seen:
                failures.append(
                    f"{name} cannot be written at all: {found.get('failed') or seen.get('failed')}"
                )
                break
            versions.append(seen["is"])
        else:
            known[name] = (writer, folder, versions, took)
    names = list(known)
    while known and done < kills and tried < 3 * kills and len(failures) < 20:
        name = names[tried % len(names)]
        writer, folder, versions, took = known[name]
        tried += 1
        done += _kill(writer, folder, 2, chance.random() * took, aimed=bool(tried // len(names) % 2))
        seen = in_child(lambda w=writer, f=folder: w.read(f))
        if "failed" in seen or not _is_one_of(seen["is"], versions):
            failures.append(f"{name}: neither old nor new: {seen}")
        elif seen["is"] not in versions:
            mixed += 1
        again = in_child(lambda w=writer, f=folder: w.write(f, 1))
        if "failed" in again:
            failures.append(f"{name}: cannot be written again: {again['failed']}")
        left = sorted(entry.name for entry in folder.iterdir() if entry.name not in writer.names)
        if left:
            failures.append(f"{name}: left over after the next run: {left}")
    return {"kills": done, "writes": tried, "writers": names, "mixed": mixed, "failures": failures}


if __name__ == "__main__":
    print(json.dumps(campaign(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
