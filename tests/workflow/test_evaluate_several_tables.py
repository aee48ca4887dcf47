"""Studies of releases with more than one table, of households, and of samples from a known population."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from discreet import Microdata
from discreet.cli import app
from discreet.core.errors import ParameterError
from discreet.synth import MultiTable, MultiTableRelease, Relational, Sequential
from discreet.workflow.evaluation import DataSet, Generator, Metric, Study, evaluate, released_study

SCHEMA = """
[tables.account]
file = "account.csv"
key = "account_id"

[tables.entry]
file = "entry.csv"
key = "entry_id"
parents = { account_id = "account" }
order = "day"
rules = ["day >= `account.opened`"]
"""


@pytest.fixture
def bank(tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    kind = rng.choice(["gold", "plain"], 150)
    account = pl.DataFrame({"account_id": np.arange(150), "opened": rng.integers(0, 300, 150), "kind": kind})
    at = np.repeat(np.arange(150), rng.poisson(np.where(kind == "gold", 5, 2)))
    entry = pl.DataFrame(
        {
            "entry_id": np.arange(len(at)),
            "account_id": at,
            "day": account["opened"].to_numpy()[at] + rng.integers(0, 60, len(at)),
            "amount": np.round(rng.gamma(2, 50, len(at)) * np.where(kind[at] == "gold", 4, 1), 2),
        }
    )
    account.write_csv(tmp_path / "account.csv")
    entry.write_csv(tmp_path / "entry.csv")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_linked_tables_are_synthesized_and_measured_side_by_side(bank):
    study = Study(
        data=[DataSet("bank", "schema.toml", target="entry.amount")],
        generators=[
            Generator("together", synthesizer="relational"),
            Generator("apart", synthesizer="relational", parameters={"strategy": "separate"}),
            Generator("cart", synthesizer="sequential"),
        ],
        metrics=[
            "linked_keys",
            "value_counts",
            Metric("train_on_synthetic", parameters={"learners": "linear"}),
            Metric("rank_correlations", tables=("entry",)),
        ],
        folder=bank,
    )
    assert Study.from_dict(study.to_dict(), folder=bank) == study
    found = evaluate(study, out=bank / "results", progress=False)
    cells = {(r["generator"]): r for r in found.records}
    assert "relational" in cells["cart"]["failed"]
    keys = cells["together"]["measures"]["linked_keys"]["figures"]
    assert (keys["orphans"], keys["double_keys"], keys["rules_broken"]) == (0, 0, 0)
    assert cells["apart"]["measures"]["linked_keys"]["figures"]["rules_broken"] > 0
    by = found.by_table()
    assert set(by["table"]) == {"account", "entry"}
    assert by.filter(metric="rank_correlations")["table"].unique().to_list() == ["entry"]
    changes = dict(by.filter(metric="rank_correlations", table="entry").select("generator", "mean").rows())
    assert changes["together"] < changes["apart"]
    gaps = dict(by.filter(metric="train_on_synthetic", figure="gap").select("generator", "mean").rows())
    assert gaps["together"] < gaps["apart"]
    assert "table by table" in str(found)
    page = found.to_html(bank / "report.html").read_text(encoding="utf-8")
    assert "Tables side by side on bank" in page
    again = evaluate(study, out=bank / "results", progress=False)
    assert again.by_table().equals(by)


def test_a_release_of_linked_tables_is_measured_from_its_folder(bank):
    runner = CliRunner()
    made = runner.invoke(app, ["synthesize", "--schema", "schema.toml", "--out", "made", "--seed", "1"])
    assert made.exit_code == 0, made.output
    done = runner.invoke(app, ["evaluate", "schema.toml", "--release", "made", "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.output)
    assert not document["failures"]
    orphans = [row["mean"] for row in document["summary"] if row["figure"] == "orphans"]
    assert orphans == [0.0]
    assert {row["table"] for row in document["by_table"]} == {"account", "entry"}


def test_a_release_of_many_tables_is_measured_table_by_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    people = pl.DataFrame(
        {
            "area": rng.choice(["a", "b"], 300),
            "age": rng.integers(20, 24, 300),
            "sex": rng.choice(["f", "m"], 300),
        }
    )
    people.write_csv("people.csv")
    sets = [
        ["area"],
        ["age"],
        ["sex"],
        ["area", "age"],
        ["area", "sex"],
        ["age", "sex"],
        ["area", "age", "sex"],
    ]
    MultiTableRelease({frozenset(own): Microdata(people.select(own)) for own in sets}).save("release")
    study = released_study(
        "people.csv",
        "release",
        roles={"keys": ["area"]},
        group="area",
        rules=["age >= 20"],
    )
    found = evaluate(study, progress=False)
    table = {(m, f): v for m, f, v in found.table().select("metric", "figure", "mean").rows()}
    assert table["value_counts", "value"] == 0
    assert table["k_marginal", "value"] == 1000
    assert table["inconsistencies", "value"] == 0
    assert found.failures.is_empty()
    short = MultiTableRelease({frozenset(own): Microdata(people.select(own)) for own in sets[:3]})
    short.save("short")
    lacking = evaluate(
        Study(
            data=[DataSet("people", "people.csv")],
            generators=[Generator("short", files="short")],
            metrics=["value_counts", "pmse"],
            holdout=0.0,
        ),
        progress=False,
    )
    assert "many tables" in lacking.failures.row(0)[-1]


def test_makers_of_several_tables_are_described_and_checked():
    links = {"tables": {"a": {"key": "id"}}}
    assert Generator.of("r", Relational(links, strategy="separate")).parameters == {"strategy": "separate"}
    assert Generator.of("m", MultiTable(size=2)).to_dict()["parameters"] == {"size": 2}
    with pytest.raises(ParameterError, match="schema"):
        Generator("r", synthesizer="relational", parameters={"schema": "x.toml"})
    with pytest.raises(ParameterError, match="Say which tables"):
        Generator("m", synthesizer="multi-table")
    with pytest.raises(ParameterError, match="linked tables"):
        DataSet("bank", "schema.toml", rows=100)
    with pytest.raises(ParameterError, match=r"table\.column"):
        DataSet("bank", "schema.toml", target="pay")
    with pytest.raises(ParameterError, match="households"):
        DataSet("people", design={"allocation": "equal"})


def test_samples_of_a_known_population_are_drawn_by_design_and_judged_by_it(tmp_path):
    rng = np.random.default_rng(1)
    size = rng.choice([1, 2, 3], 900, p=[0.4, 0.4, 0.2])
    home = np.repeat(np.arange(900), size)
    first = np.arange(len(home)) == np.searchsorted(home, home)
    frame = pl.DataFrame(
        {
            "home": home,
            "region": np.repeat(rng.choice(["n", "s", "w"], 900, p=[0.7, 0.2, 0.1]), size),
            "age": np.where(first, rng.integers(20, 80, len(home)), rng.integers(0, 80, len(home))),
            "sex": rng.choice(["f", "m"], len(home)),
        }
    )
    frame.write_parquet(tmp_path / "population.parquet")
    roles = {"household": "home", "strata": ["region"]}
    data = [
        DataSet(
            name,
            "population.parquet",
            roles=roles,
            design={"households": 200, "allocation": name, "rake": "sex"},
        )
        for name in ("proportional", "equal")
    ]
    study = Study(
        data=data,
        generators={"persons": Sequential(together="no")},
        metrics=[
            Metric("population_tables", parameters={"by": ["region", "sex"]}),
            Metric("household_plausibility", parameters={"sex": "sex"}),
        ],
        seeds=(1, 2),
        folder=tmp_path,
    )
    found = evaluate(study, progress=False)
    # Every repetition has a sample of its own, also where the hold-out is measured.
    assert len(found.records) == 2 * 2 * 2
    real = found.table().filter(generator="holdout", metric="population_tables", figure="value")["mean"]
    # Real samples miss the cells by chance alone: 200 households, the smallest region some 20 of them.
    assert real.max() < 60
    mixed = found.table().filter(metric="household_plausibility", figure="without_adult")
    assert mixed.filter(generator="holdout")["mean"].max() == 0
