"""The same release of a real file has one verdict at every door, also after it was written and read again."""

from __future__ import annotations

import polars as pl
import pytest

import discreet
from discreet import Microdata
from discreet.protect import Band, LocalSuppression, Plan, ReorderRecords
from discreet.workflow import document_plan

FILES = {
    "adult": (["age", "sex", "race"], "income"),
    "eusilcS": (["age", "rb090", "db040"], "pl030"),
    "SD2011": (["age", "sex", "region"], "smoke"),
}
CHEAP = ["replicated_uniques", "attribution", "information_loss", "dependence"]


def read(name, test_data):
    keys, sensitive = FILES[name]
    if name == "adult":
        return discreet.datasets.adult(keys=keys, sensitive=sensitive)
    path = test_data / ("SD2011.csv" if name == "SD2011" else f"{name}.csv.gz")
    frame = pl.read_csv(path, null_values="NA", infer_schema_length=None)
    return Microdata(frame, keys=keys, sensitive=sensitive)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["scientific-use-file", "safe-setting"])
@pytest.mark.parametrize("name", FILES)
def test_protect_search_and_compare_say_the_same(name, policy, test_data, tmp_path):
    data = read(name, test_data)
    plan = Plan([Band(widths={"age": 20}), LocalSuppression(k=3), ReorderRecords()])
    report = document_plan(data, plan, policy, seed=1)
    (trial,) = discreet.search(data, {"it": plan}, policy, seed=1).trials
    report.release.data.frame.write_csv(tmp_path / "safe.csv")
    read_again = Microdata(pl.read_csv(tmp_path / "safe.csv", infer_schema_length=None))
    found = discreet.compare(data, read_again, policy=policy, measures=CHEAP)
    assert trial.meets is report.verdict.meets is found.verdict.meets
    assert [(c.measure, c.passed) for c in found.verdict.checks] == [
        (c.measure, c.passed) for c in report.verdict.checks
    ]
    alone = discreet.assess(report.release.data, policy).verdict
    assert alone.meets in (report.verdict.meets, None)
    assert len(alone.checks) + len(alone.unjudged) == len(report.verdict.checks)
