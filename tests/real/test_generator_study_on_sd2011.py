"""A small study of generators on the Social Diagnosis 2011 survey."""

from __future__ import annotations

import pytest

from discreet.synth import Sequential
from discreet.workflow.evaluation import DataSet, Generator, Model, Study, evaluate


@pytest.mark.slow
def test_trees_beat_margins_and_uniform_draws_on_social_diagnosis(test_data, tmp_path):
    study = Study(
        title="SD2011",
        data=[
            DataSet(
                "SD2011",
                source=str(test_data / "SD2011.csv"),
                columns=("sex", "age", "placesize", "edu", "socprof", "marital", "income", "ls", "smoke"),
                roles={"keys": ["sex", "age", "placesize"], "sensitive": ["income", "ls"]},
                reading={"missing": ["NA"]},
                rows=2500,
                target="smoke",
            )
        ],
        generators=[
            Generator.of("cart", Sequential()),
            Generator.of("margins", Sequential(method="sample")),
            Generator("floor", reference="uniform"),
        ],
        models=[Model("smokers", "smoke ~ age + sex", family="logistic")],
        seeds=[1, 2],
    )
    found = evaluate(study, out=tmp_path)
    assert found.failures.is_empty(), found.failures["reason"].to_list()
    means = {
        (row["metric"], row["figure"], row["generator"]): row["mean"]
        for row in found.table().iter_rows(named=True)
    }
    for metric, figure in (("pmse", "ratio"), ("tabular", "mean_S_pMSE"), ("dependence", "mean_change")):
        assert means[metric, figure, "cart"] < means[metric, figure, "margins"]
    assert means["detection", "auc", "floor"] > 0.9
    assert means["smokers", "overlap_mean", "cart"] > means["smokers", "overlap_mean", "margins"]
    # Better than real people who were not used is no praise but copying, and risk shows it.
    assert means["neighbors", "identical_share", "cart"] > means["neighbors", "identical_share", "margins"]
    assert found.to_html(tmp_path / "report.html").stat().st_size > 50_000
