"""Beside a guarantee stands nothing that was read from the data and not paid for, at any door.

Noise is replaced by what covers the data altogether: whatever is counted, the same noisy numbers come out, and private
choices and samples are always the same. Two files that differ in many records and in their size then have the same
release, and every door (str, repr, notebook, public log, report, model file, command line) must say the same of both,
to the letter.
"""

from __future__ import annotations

import re
import sys
import types
import warnings
from dataclasses import fields
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from private_releases import (
    GENERATORS,
    LEVELS,
    SHARED,
    TABLES,
    TREATMENTS,
    UNLIKE,
    WITHOUT_ANY,
    all_of,
    counted,
    numbers,
)
from typer.testing import CliRunner

from discreet import Microdata, dp, protect, synth, tables
from discreet.cli import app
from discreet.core.results import Measure, Release
from discreet.synth.saved_models import Parts, encoded
from discreet.synth.synthesizer import Fitted
from discreet.tables import ProtectedTable
from discreet.workflow import document_plan, document_release

MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\+00:00)?")


class Covering(np.ndarray):
    """Noise that leaves nothing of what it is added to."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        plain = [np.asarray(own) for own in inputs]
        if ufunc in (np.add, np.subtract) and method == "__call__":
            return np.asarray(self) + np.zeros(np.broadcast_shapes(*(own.shape for own in plain)), np.int64)
        return getattr(ufunc, method)(*plain, **options)


def covering(size: int) -> Covering:
    return (25 + np.arange(size) % 7).astype(np.int64).view(Covering)


STAND_INS = {
    "discrete_laplace": lambda rate, size, words: covering(size),
    "rounded_laplace": lambda rate, size, words: covering(size),
    "discrete_gaussian": lambda variance, size, words: covering(size),
    "cube_noise": lambda rate, size, words: covering(size),
    "poisson": lambda means, which, words: np.arange(len(which)) % 5 + 20,
    "weighted_rows": lambda weights, rows, words: np.arange(len(rows)) % 2,
    "chosen_privately": lambda scores, epsilon, sensitivity, words: 0,
    "shuffled": lambda size, words: np.arange(size),
    "uniform_below": lambda bound, size, words: np.arange(size) % min(bound, SHARED),
    "bernoulli": lambda chances, which, words: (
        (np.arange(len(which)) % 2 == 0) & (np.arange(len(which)) < SHARED)
    ),
    "bernoulli_exp": lambda rates, which, words: np.ones(len(which), dtype=bool),
    "os_words": lambda size: np.arange(size, dtype=np.uint64),
}


@pytest.fixture
def covered(monkeypatch):
    """Let no draw depend on the data, and every one be the same each time."""
    import discreet.core.randomness

    own = {name: getattr(dp, name) for name in STAND_INS}
    for module in [held for key, held in list(sys.modules.items()) if key.startswith("discreet")]:
        for name, real in own.items():
            if vars(module).get(name) is real:
                monkeypatch.setattr(module, name, STAND_INS[name])
    monkeypatch.setattr(discreet.core.randomness, "secrets", types.SimpleNamespace(randbits=lambda bits: 11))


BOUNDS = {"lower": 0, "upper": 100}
# By what it is: which files are neighbors, and how it is asked.
QUERIES = {
    "count": lambda f: dp.count(all_of(f), epsilon=1.0),
    "total": lambda f: dp.total(all_of(f), "age", epsilon=1.0, **BOUNDS),
    "mean": lambda f: dp.mean(all_of(f), "age", epsilon=1.0, **BOUNDS),
    "variance": lambda f: dp.variance(all_of(f), "age", epsilon=1.0, **BOUNDS),
    "quantiles": lambda f: dp.quantiles(all_of(f), "age", epsilon=1.0, **BOUNDS),
    "histogram": lambda f: dp.histogram(all_of(f), "sex", levels=["f", "m"], epsilon=1.0),
    "table": lambda f: dp.table(
        all_of(f), ["sex", "job"], levels=LEVELS, column="age", epsilon=1.0, **BOUNDS
    ),
    "linear_regression": lambda f: dp.linear_regression(
        numbers(f), y="hours", x="age", x_bounds={"age": (0, 100)}, y_bounds=(0, 50), epsilon=1.0
    ),
    "laplace": lambda f: dp.laplace(len(f), sensitivity=1, epsilon=1.0),
    "gaussian": lambda f: dp.gaussian(len(f), sensitivity=1, epsilon=1.0, delta=1e-6),
    "choose": lambda f: dp.choose([len(f), 3 * len(f)], sensitivity=1, epsilon=1.0),
}
NOT_WALKED = {
    "quantile_regression": "its walks print R-hat, which comes from the records",
    "local_laplace": "one value a person: the number of persons is what is released",
    "randomized_response": "gives codes and no result that prints",
    "audit": "tests a mechanism",
    "Cost": "a price",
    "Total": "a price",
    "subsampled_gaussian_epsilon": "accounts for steps and sees no data",
    "gaussian_sigma": "accounts for noise and sees no data",
    "gaussian_delta": "accounts for noise and sees no data",
    "largest_rho": "accounts for noise and sees no data",
    "subsampled_gaussian_noise": "accounts for steps and sees no data",
    "discrete_laplace": "draws noise",
    "rounded_laplace": "draws noise",
    "checked_epsilon": "checks a number",
    "rational_epsilon": "checks a number",
    "zcdp_from": "accounts for noise and sees no data",
    "chosen_privately": "gives a place and no result that prints",
}


def test_everything_that_takes_an_epsilon_is_walked():
    def with_epsilon(known):
        return {name for name, kind in known.items() if "epsilon" in {own.name for own in fields(kind)}}

    mine = {n for n, k in synth.Synthesizer.known.items() if k.__module__.startswith("discreet.")}
    generators = with_epsilon({n: synth.Synthesizer.known[n] for n in mine}) | {"sequential"}
    assert generators - set(WITHOUT_ANY) == set(GENERATORS)
    kinds = {n: k for n, k in protect.Treatment.known.items() if k.__module__.startswith("discreet.")}
    assert with_epsilon(kinds) == set(TREATMENTS)
    made = {n: k for n, k in tables.TableProtection.known.items() if k.__module__.startswith("discreet.")}
    assert with_epsilon(made) - set(WITHOUT_ANY) == set(TABLES)
    asked = {n for n in dp.__all__ if "epsilon" in getattr(getattr(dp, n), "__annotations__", {})}
    assert asked - set(NOT_WALKED) == set(QUERIES)


def said_of(made, folder: Path) -> dict[str, str]:
    """What every door of a result says."""
    doors = {"str": str(made), "repr": repr(made)}
    if hasattr(made, "_repr_html_"):
        doors["notebook"] = made._repr_html_()
    if hasattr(made, "to_dict"):
        doors["log"] = str(made.to_dict())
    if isinstance(made, Measure | ProtectedTable):
        doors["report"] = made.to_html(folder / "report.html").read_text(encoding="utf-8")
    if isinstance(made, Measure):
        doors["details"] = str({name: pl.DataFrame(own).to_dicts() for name, own in made.detail.items()})
    if isinstance(made, ProtectedTable):
        doors["published"] = str(made.published.to_dict(as_series=False))
    if isinstance(made, Release):
        doors["data"] = f"{made.data!r} {made.data.metadata} {made.data.frame.to_dict(as_series=False)}"
    if isinstance(made, Fitted):
        drawn = made.sample(20, seed=1)
        doors["data"] = f"{drawn!r} {drawn.metadata} {drawn.frame.to_dict(as_series=False)}"
        ((_, document),) = encoded(made, Fitted, Parts()).items()
        doors["model"] = f"{sorted(document)} {made.rows} {made.like!r} {made.like.metadata}"
    return {door: MOMENT.sub("", text) for door, text in doors.items()}


def assert_alike(ask, files, folder: Path) -> None:
    """Ask the same of two files, and hold everything that is said against each other."""
    said = []
    for number, file in enumerate(files):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            made = ask(file)
            place = folder / str(number)
            place.mkdir()
            doors = said_of(made, place)
        said.append({**doors, "warnings": str(sorted(str(own.message) for own in caught))})
        assert made.guarantee is not None
    for door, text in said[0].items():
        assert said[1][door] == text, door


@pytest.mark.parametrize("name", QUERIES)
def test_a_private_answer_says_nothing_else(name, covered, tmp_path):
    assert_alike(QUERIES[name], UNLIKE["add-remove"], tmp_path)


@pytest.mark.parametrize("name", TABLES)
def test_a_private_table_says_nothing_else(name, covered, tmp_path):
    assert_alike(lambda f: TABLES[name]().apply(counted(f)), UNLIKE["add-remove"], tmp_path)


@pytest.mark.parametrize("name", GENERATORS)
def test_a_private_generator_says_nothing_else(name, covered, tmp_path):
    if name in ("dpgan", "pategan"):
        pytest.importorskip("torch")
    adjacency, made_of, plan = GENERATORS[name]
    assert_alike(lambda f: plan().fit(made_of(f)), UNLIKE[adjacency], tmp_path)


def files_of(name):
    # A local promise is about the values of one record: which records there are is not hidden.
    frames = UNLIKE["replace" if name == "pram" else "add-remove"]
    if name == "pram":
        same = frames[1].with_columns(frames[0]["sex"])
        return [Microdata(same.select("sex", "job"), keys=["sex", "job"]), coded_as_text(frames[1])]
    return [coded_as_text(frame) for frame in frames]


def coded_as_text(frame: pl.DataFrame) -> Microdata:
    return Microdata(frame.select("sex", "job"), keys=["sex", "job"])


@pytest.mark.parametrize("name", TREATMENTS)
def test_a_private_treatment_says_nothing_else(name, covered, tmp_path):
    assert_alike(lambda data: TREATMENTS[name]().apply(data), files_of(name), tmp_path)


@pytest.mark.parametrize("policy", [None, "safe-setting"])
@pytest.mark.parametrize("name", TREATMENTS)
def test_the_report_of_a_private_release_says_nothing_else(name, policy, covered, tmp_path):
    said = []
    for data in files_of(name):
        plan = TREATMENTS[name]()
        made = document_plan(data, plan, policy, tmp_path / "a.html")
        again = document_release(data, plan.apply(data), policy, tmp_path / "b.html")
        pages = [(tmp_path / page).read_text(encoding="utf-8") for page in ("a.html", "b.html")]
        said.append([MOMENT.sub("", str(own)) for own in (made, made.to_dict(), again, *pages)])
        assert made.release.guarantee
    assert said[0] == said[1]


COMMANDS: dict[str, str | list[str]] = {
    "dp count": ["dp", "count", "people.csv", "--epsilon", "1"],
    "dp total": "dp total people.csv --column age --lower 0 --upper 100 --epsilon 1",
    "dp mean": "dp mean people.csv --column age --lower 0 --upper 100 --epsilon 1 --json",
    "dp quantiles": "dp quantiles people.csv --column age --lower 0 --upper 100 --epsilon 1",
    "dp table": "dp table people.csv --by sex --levels sex=f,m --epsilon 1 --out made.csv",
    "dp regression": "dp regression numbers.csv --y hours --x age --bounds age=0,100 --bounds hours=0,50 "
    "--mechanism k-norm --epsilon 1",
    "noisy counts": "table protect people.csv --table sex --method noisy-counts --set epsilon=1 --set domain='public' "
    "--hierarchy sex=sex.csv --zeros --out made.csv --html report.html",
    "noisy counts, json": "table protect people.csv --table sex --method noisy-counts --set epsilon=1 "
    "--set domain='public' --hierarchy sex=sex.csv --zeros --json",
    "poisson": "table synthesize people.csv --table sex --alpha 60 --epsilon 1 --public-domain "
    "--hierarchy sex=sex.csv --out made.csv --html report.html",
    "protect": ["protect", "people.csv", "--keys", "sex,job", "--policy", "safe-setting", "--step",
                '{treatment = "sample-and-anonymize", epsilon = 2.0, delta = 1e-3, sampling_rate = 0.3}',
                "--out", "made.csv", "--log", "log.json", "--html", "report.html"],
    "protect, json": ["protect", "people.csv", "--keys", "sex,job", "--json", "--step",
                      '{treatment = "sample-and-anonymize", epsilon = 2.0, delta = 1e-3, sampling_rate = 0.3}',
                      "--out", "made.csv"],
    "mst": ["synthesize", "people.csv", "--keys", "sex,job", "--method", "mst", "--epsilon", "1", "--set",
            "domain={sex=['f', 'm'], job=['cook', 'clerk', 'judge'], age=[0, 100]}", "--out", "made.csv"],
    "mst, json": ["synthesize", "people.csv", "--method", "mst", "--epsilon", "1", "--set",
                  "domain={sex=['f', 'm'], job=['cook', 'clerk', 'judge'], age=[0, 100]}", "--out", "made.csv",
                  "--json"],
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_prints_and_writes_nothing_else(name, covered, tmp_path, monkeypatch):
    said = []
    for number, frame in enumerate(UNLIKE["add-remove"]):
        place = tmp_path / f"at {number}"
        place.mkdir()
        monkeypatch.chdir(place)
        frame.write_csv("people.csv")
        frame.select("age", hours=pl.col("age") * 0.5).write_csv("numbers.csv")
        Path("sex.csv").write_text("child,parent\nf,Total\nm,Total\n", encoding="utf-8")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            asked = COMMANDS[name]
            made = CliRunner().invoke(app, asked.split() if isinstance(asked, str) else asked)
        assert made.exit_code in (0, 1, 3, 4), made.output
        wrote = {
            own.name: MOMENT.sub("", own.read_text(encoding="utf-8"))
            for own in sorted(place.iterdir())
            if own.name not in ("people.csv", "numbers.csv", "sex.csv")
        }
        said.append(
            {
                "exit code": made.exit_code,
                "printed": made.output,
                "warned": [str(own.message) for own in caught],
            }
            | wrote
        )
        assert "ifferential privacy" in made.output.replace("\n", " ")
    for door, text in said[0].items():
        assert said[1][door] == text, door
