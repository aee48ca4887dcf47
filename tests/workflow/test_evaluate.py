"""The studies of generators: described, run, gone on with, and put together."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import tomli_w
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata

from discreet import Microdata
from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.protect import Band, Plan
from discreet.synth import Sequential
from discreet.utility.detection import detection
from discreet.workflow.evaluation import (
    DataSet,
    Generator,
    Metric,
    Model,
    Study,
    evaluate,
    evaluating,
    usual_metrics,
)
from discreet.workflow.evaluation import evaluating as the_call
from discreet.workflow.evaluation.evaluation_result import _ranks
from discreet.workflow.evaluation.study_cells import used_by
from discreet.workflow.evaluation.study_data import Split, parts_of
from discreet.workflow.evaluation.study_metrics import measures_known

EXAMPLE = """
title = "Four ways to synthesize Adult"
seeds = [1, 2]

[[data]]
name = "adult"
rows = 1500
columns = ["age", "education", "marital-status", "occupation", "sex", "hours-per-week", "income"]
roles = { keys = ["age", "sex", "marital-status"], sensitive = ["income"] }

[[generator]]
name = "cart"
synthesizer = "sequential"

[[generator]]
name = "parametric"
synthesizer = "sequential"
parameters = { method = "parametric" }

[[generator]]
name = "copula"
synthesizer = "gaussian-copula"

[[generator]]
name = "margins"
synthesizer = "sequential"
parameters = { method = "sample" }

[[generator]]
name = "floor"
reference = "uniform"

[[model]]
name = "who earns more"
formula = "income ~ age + sex"
family = "logistic"
"""


@pytest.fixture
def folder(tmp_path):
    draw = np.random.default_rng(5)
    n = 240
    age = draw.integers(18, 80, n)
    frame = pl.DataFrame(
        {
            "id": np.arange(n),
            "home": np.arange(n) // 3,
            "age": age,
            "sex": draw.choice(["f", "m"], n),
            "pay": np.where(age + draw.normal(0, 15, n) > 50, "high", "low"),
        }
    )
    frame.write_csv(tmp_path / "people.csv")
    return tmp_path


def people(**more):
    return DataSet(
        "people",
        source="people.csv",
        roles={"keys": ["age", "sex"], "sensitive": ["pay"], "identifiers": ["id", "home"]},
        **more,
    )


def small(folder, **changes):
    given = {
        "data": [people()],
        "generators": {"cart": Sequential(), "margins": Sequential(method="sample")},
        "metrics": ["margins", "dependence"],
        "seeds": [1, 2],
        "folder": folder,
    }
    return Study(**{**given, **changes})


@pytest.fixture
def counted(monkeypatch):
    """Count the cells that are run."""
    ran = []
    real = the_call.run

    def run(cells, workers, limits):
        ran.extend((*cell.name, tuple(metric.name for metric in cell.metrics)) for cell in cells)
        return real(cells, workers, limits)

    monkeypatch.setattr(the_call, "run", run)
    return ran


def figures(evaluation):
    return evaluation.cells.filter(pl.col("metric") != "cost")


def test_a_study_runs_every_generator_on_every_data_set_with_every_seed(folder):
    found = evaluate(small(folder))
    cells = found.cells.select("generator", "seed").unique().sort("generator", "seed").rows()
    assert cells == [("cart", 1), ("cart", 2), ("holdout", 1), ("margins", 1), ("margins", 2)]
    table = found.table().filter(pl.col("figure") == "mean_change")
    assert table["runs"].to_list() == [1, 2, 2]
    by = {row["generator"]: row for row in table.iter_rows(named=True)}
    assert by["cart"]["mean"] < by["margins"]["mean"]
    assert (by["cart"]["rank"], by["margins"]["rank"], by["holdout"]["rank"]) == (1, 2, None)
    assert by["cart"]["lowest"] <= by["cart"]["mean"] <= by["cart"]["highest"]
    assert "identifiers" not in found.records[0]
    assert found.failures.is_empty()


def test_the_same_study_gives_the_same_figures_again(folder):
    first, second = evaluate(small(folder)), evaluate(small(folder))
    assert figures(first).equals(figures(second))
    assert not figures(first).equals(figures(evaluate(small(folder), seed=9)))


@pytest.mark.slow
def test_the_number_of_workers_changes_no_figure(folder):
    asked = small(folder, metrics=["margins", "neighbors"], seeds=[1])
    alone, together = evaluate(asked), evaluate(asked, workers=2)
    assert figures(alone).equals(figures(together))
    assert figures(alone).height > 50


def test_a_study_that_was_stopped_goes_on_and_computes_nothing_again(folder, tmp_path, counted):
    whole = small(folder)
    evaluate(
        replace(whole, generators=[whole.generators[0]], seeds=(1,), references=False), out=tmp_path / "out"
    )
    assert [cell[:3] for cell in counted] == [("people", "cart", 1)]
    counted.clear()
    found = evaluate(whole, out=tmp_path / "out")
    assert [cell[:3] for cell in counted] == [
        ("people", "holdout", 1),
        ("people", "cart", 2),
        ("people", "margins", 1),
        ("people", "margins", 2),
    ]
    counted.clear()
    again = evaluate(tmp_path / "out" / "study.toml", out=tmp_path / "out")
    assert counted == []
    assert found.cells.equals(again.cells)
    assert figures(found).equals(figures(evaluate(whole)))


def test_a_new_metric_is_measured_alone_and_changed_parameters_again(folder, tmp_path, counted):
    whole = small(folder, generators={"margins": Sequential(method="sample")}, seeds=[1], references=False)
    evaluate(whole, out=tmp_path)
    counted.clear()
    evaluate(replace(whole, metrics=(*whole.metrics, Metric("tabular"))), out=tmp_path)
    assert counted == [("people", "margins", 1, ("tabular",))]
    counted.clear()
    other = Metric("tabular", parameters={"ways": 1})
    found = evaluate(replace(whole, metrics=(*whole.metrics, other)), out=tmp_path)
    assert counted == [("people", "margins", 1, ("tabular",))]
    assert found.cells.filter(figure="tables")["value"].to_list() == [3.0]
    counted.clear()
    found = evaluate(
        replace(whole, metrics=(replace(other, figures=("max_S_pMSE",)), *whole.metrics)), out=tmp_path
    )
    assert counted == []
    assert found.table()["figure"][0] == "max_S_pMSE"


def test_other_data_behind_the_same_name_is_run_again(folder, tmp_path, counted):
    whole = small(folder, seeds=[1], references=False)
    first = evaluate(whole, out=tmp_path / "out")
    counted.clear()
    frame = pl.read_csv(folder / "people.csv")
    frame.with_columns(pl.col("pay").reverse()).write_csv(folder / "people.csv")
    second = evaluate(whole, out=tmp_path / "out")
    assert len(counted) == 2
    strength = [found.cells.filter(figure="mean_before")["value"][0] for found in (first, second)]
    assert strength[1] < strength[0]


def test_half_a_line_of_a_killed_study_is_cut_off_and_its_cell_run_again(folder, tmp_path, counted):
    whole = small(folder, seeds=[1])
    first = evaluate(whole, out=tmp_path)
    results = tmp_path / "results.jsonl"
    lines = results.read_text().splitlines(keepends=True)
    results.write_text("".join(lines[:-1]) + lines[-1][:40])
    counted.clear()
    second = evaluate(whole, out=tmp_path)
    assert [cell[1] for cell in counted] == ["margins"]
    assert figures(first).equals(figures(second))
    assert all(json.loads(line) for line in results.read_text().splitlines())


def test_results_that_are_none_are_refused_and_a_fresh_start_throws_them_away(folder, tmp_path):
    (tmp_path / "results.jsonl").write_text("something else\n")
    with pytest.raises(InputError, match="does not hold results of a study"):
        evaluate(small(folder, seeds=[1]), out=tmp_path)
    assert evaluate(small(folder, seeds=[1]), out=tmp_path, resume=False).failures.is_empty()


def test_a_generator_that_fails_is_a_result_and_the_others_go_on(folder, tmp_path, counted):
    broken = Sequential(method={"nobody": "cart"})
    whole = small(folder, generators={"broken": broken, "cart": Sequential()}, seeds=[1])
    found = evaluate(whole, out=tmp_path)
    failed = found.failures.row(0, named=True)
    assert (failed["generator"], failed["metric"]) == ("broken", None)
    assert "nobody" in failed["reason"]
    assert "cart" in found.table()["generator"].to_list()
    assert "1 failed" in str(found)
    counted.clear()
    evaluate(whole, out=tmp_path)
    assert counted == []
    evaluate(whole, out=tmp_path, retry=True)
    assert [cell[1] for cell in counted] == ["broken"]


def test_a_metric_that_cannot_answer_leaves_the_others_alone(folder):
    bare = DataSet("people", source="people.csv", columns=("age", "sex"), roles={"keys": ["age"]})
    found = evaluate(
        small(folder, data=[bare], metrics=["margins", "disclosure", "train_on_synthetic"], seeds=[1])
    )
    assert set(found.failures["metric"]) == {"train_on_synthetic"}
    assert "no target was named" in found.failures["reason"][0]
    assert not found.table().filter(metric="margins").is_empty()


@pytest.mark.slow
def test_a_cell_that_takes_too_much_is_given_up(folder):
    endless = Metric("pmse", parameters={"model": "cart", "n_perm": 200_000})
    asked = small(
        folder,
        generators={"cart": Sequential()},
        metrics=[endless],
        seeds=[1],
        references=False,
        time_limit=0.5,
    )
    assert "longer than 0.5 seconds" in evaluate(asked).failures["reason"][0]


@pytest.mark.skipif(used_by(1) is None, reason="this system does not tell what memory a process uses")
@pytest.mark.slow
def test_a_cell_that_takes_too_much_memory_is_given_up(folder):
    asked = small(folder, generators={"cart": Sequential()}, seeds=[1], references=False, memory_limit=1)
    assert "more than 1 MB of memory" in evaluate(asked).failures["reason"][0]


def test_files_that_another_tool_made_are_measured_like_the_rest(folder):
    whole = small(folder, split="by seed")
    written = whole.write_training(folder / "parts")
    assert [path.name for path in written] == [
        "people-1-training.csv", "people-1-holdout.csv", "people-2-training.csv", "people-2-holdout.csv",
    ]  # fmt: skip
    for seed in (1, 2):
        training = pl.read_csv(folder / "parts" / f"people-{seed}-training.csv")
        # As other tools write: another order, whole numbers as decimals, a column too many.
        training.select("pay", pl.col("age").cast(pl.Float64), "sex", row=pl.lit(1)).write_csv(
            folder / f"ctgan-people-{seed}.csv"
        )
    ctgan = Generator("ctgan", files="ctgan-{data}-{seed}.csv")
    found = evaluate(replace(whole, generators=(*whole.generators, ctgan)))
    assert found.failures.is_empty()
    moved = found.table().filter(generator="ctgan", figure="mean_distance")
    assert moved["mean"].to_list() == [0.0]
    assert any("Made by other tools: ctgan" in caveat for caveat in found.caveats)
    assert any("'row'" in note for record in found.records for note in record["notes"])


def test_files_that_are_missing_or_of_the_wrong_kind_are_failures_with_the_reason(folder):
    (folder / "odd.csv").write_text("age,sex,pay\nXVII,f,low\n")
    (folder / "short.csv").write_text("age\n3\n")
    makers = [Generator(name, files=f"{name}.csv") for name in ("gone", "odd", "short")]
    reasons = evaluate(small(folder, generators=makers, references=False)).failures["reason"].to_list()
    assert "there is no file 'gone.csv'" in reasons[0]
    assert "Column 'age' of 'odd.csv'" in reasons[1]
    assert "XVII" not in reasons[1]
    assert "lacks 'sex', 'pay'" in reasons[2]


def test_plans_of_treatments_are_generators_too(folder):
    Plan([Band(widths={"age": 10})]).save(folder / "plan.toml")
    makers = [Generator.of("ten", Band(widths={"age": 10})), Generator("file", plan="plan.toml")]
    found = evaluate(small(folder, generators=makers, metrics=["k_anonymity"], seeds=[1], references=False))
    assert found.failures.is_empty()
    ks = found.table().filter(figure="value")
    assert ks["mean"].n_unique() == 1
    assert ks["better"].to_list() == ["higher", "higher"]


def test_copies_are_averaged_or_given_together(folder):
    makers = {"margins": Sequential(method="sample")}
    found = evaluate(
        small(
            folder, generators=makers, metrics=["margins", "new_rows"], copies=3, seeds=[1], references=False
        )
    )
    assert found.cells.filter(metric="margins", figure="copies")["value"].to_list() == [3.0]
    assert not found.cells.filter(metric="new_rows", figure="new_share").is_empty()


def test_synthetic_files_and_detail_tables_are_kept_where_the_study_says_so(folder, tmp_path):
    asked = small(
        folder,
        generators={"a b": Sequential(method="sample")},
        metrics=[Metric("margins", detail=("variables",))],
        seeds=[1],
        keep_files=True,
    )
    found = evaluate(asked, out=tmp_path / "out")
    kept = tmp_path / "out" / "synthetic" / "people-a b-1-1.parquet"
    assert pl.read_parquet(kept).columns == ["age", "sex", "pay"]
    assert set(found.detail("margins", "variables")["generator"]) == {"holdout", "a b"}
    with pytest.raises(ParameterError, match="keeps no detail of 'tabular'"):
        found.detail("tabular", "tables")
    with pytest.raises(ParameterError, match="say where with out"):
        evaluate(asked)


def test_the_result_is_json_a_page_and_two_pictures(folder, tmp_path):
    found = evaluate(small(folder, metrics=["margins", "new_rows"]))
    document = json.loads(found.to_json())
    assert {"study", "summary", "ranks", "failures", "caveats", "cells"} <= set(document)
    page = found.to_html(tmp_path / "report.html").read_text()
    assert all(words in page for words in ("Fit for purpose", "What failed", "<svg"))
    assert found.axes() == ("margins.mean_distance", "new_rows.excess_matches")
    assert len(found.plot().axes) == 1
    assert len(found.plot("figures").axes) == 6
    with pytest.raises(ParameterError, match=r"Did you mean 'margins.mean_distance'"):
        found.plot(utility="margins.mean_distanc", risk="new_rows.excess_matches")


def test_households_are_never_split(folder):
    data = DataSet("people", source="people.csv", roles={"household": "home"})
    parts = parts_of(data, Split(0.3, 1), 1, folder)
    ours, theirs = (set(part.frame["home"]) for part in (parts.training, parts.holdout))
    assert not ours & theirs
    assert len(theirs) == 24


@given(st.floats(0.1, 0.6), st.integers(0, 50), st.booleans(), st.booleans())
@settings(
    max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_training_part_and_hold_out_are_the_file_and_keep_the_shares_of_the_target(
    folder, share, seed, by_seed, has_target
):
    columns = ("id", "age", "pay")
    data = DataSet("people", source="people.csv", target="pay" if has_target else None, columns=columns)
    parts = parts_of(data, Split(share, seed, by_seed), 1, folder)
    ours, theirs = (part.frame for part in (parts.training, parts.holdout))
    assert sorted([*ours["id"], *theirs["id"]]) == list(range(240))
    assert abs(theirs.height - share * 240) <= 2
    high = [(frame["pay"] == "high").sum() for frame in (ours, theirs)]
    assert not has_target or abs(high[1] - share * sum(high)) <= 1


def test_a_published_hold_out_is_used_as_it_is(folder):
    frame = pl.read_csv(folder / "people.csv")
    frame.head(50).write_csv(folder / "test.csv")
    frame.tail(-50).write_csv(folder / "train.csv")
    data = replace(people(holdout="test.csv"), source="train.csv")
    parts = parts_of(data, Split(0.2, 1), 1, folder)
    assert (parts.training.frame.height, parts.holdout.frame.height) == (190, 50)


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True),
    st.integers(1, 5),
    st.floats(0, 0.9),
    st.sampled_from(["once", "by seed"]),
    st.sampled_from([None, 10.0]),
    st.booleans(),
)
def test_a_study_is_the_same_after_a_round_trip(seeds, copies, share, split, limit, keep):
    study = Study(
        data=[DataSet("adult", rows=100, roles={"keys": ["age"]}), "company_values"],
        generators=[
            Generator.of("cart", Sequential(method={"age": "norm"}, method_options={"cart": {"min_leaf": 10}})),
            Generator.of("plan", Band(widths={"age": 10})),
            Generator("other", files=("a-{seed}.csv",), data=("adult",)),
            Generator("floor", reference="uniform"),
        ],
        metrics=[Metric("cart", "pmse", {"model": "cart"}, better=1.0), "margins"],
        models=[Model("pay", "income ~ age", family="logistic", data=("adult",))],
        seeds=seeds, copies=copies, holdout=share, split=split, time_limit=limit, keep_files=keep,
    )  # fmt: skip
    assert Study.from_dict(tomllib.loads(tomli_w.dumps(study.to_dict()))) == study


def test_a_study_saved_elsewhere_still_finds_its_files(folder, tmp_path):
    (tmp_path / "deep" / "er").mkdir(parents=True)
    plan = Generator("p", plan="plan.toml")
    study = small(folder, generators=[plan, Generator("f", files="x-{seed}.csv")])
    path = study.save(tmp_path / "deep" / "er" / "study.toml")
    loaded = Study.load(path)
    assert (loaded.folder / loaded.data[0].source).resolve() == (folder / "people.csv").resolve()
    assert (loaded.folder / loaded.generators[0].plan).resolve() == (folder / "plan.toml").resolve()
    assert loaded.generators[1].files[0].endswith("x-{seed}.csv")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('titel = "x"', "no entry 'titel'. Did you mean 'title'"),
        ('[[data]]\nname = "adlut"\n[[generator]]\nname = "a"\nreference = "copy"', "Did you mean 'adult'"),
        ('[[data]]\nname = "adult"\nrolls = {}', r"no entry 'rolls'. Did you mean 'roles'"),
        ('[[data]]\nsource = "adult"', "needs a name"),
        ('[[data]]\nname = "adult"\nroles = { key = ["age"] }', "no role 'key'. Did you mean 'keys'"),
        ('[[generator]]\nname = "a"\nsynthesizer = "sequentiel"', "Did you mean 'sequential'"),
        ('[[generator]]\nname = "a"\nsynthesizer = "sequential"\nparameters = { methd = "cart" }', "'method'"),
        ('[[generator]]\nname = "a"\nreference = "unifrom"', "Did you mean 'uniform'"),
        ('[[generator]]\nname = "a"', "it says none"),
        ('[[generator]]\nname = "a"\nfiles = "a"\nplan = "b"', "plan and files"),
        ('[[generator]]\nname = "a"\nstep = [{ treatment = "bnad" }]', "Did you mean 'band'"),
        ('[[metric]]\nname = "margin"', "Did you mean 'margins'"),
        ('[[metric]]\nname = "a"\nmeasure = "utility.pmce"', "Did you mean 'utility.pmse'"),
        ('[[metric]]\nname = "pmse"\nparameters = { modell = "cart" }', "Did you mean 'model'"),
        ('[[metric]]\nname = "pmse"\nparameters = { n_perm = "many" }', "n_perm must be a"),
        ('[[metric]]\nname = "margins"\nbetter = "smaller"', "better must be 'lower' or 'higher', a number"),
        ('seeds = []\n[[data]]\nname = "adult"', "seeds must be whole numbers"),
        ("holdout = 1.5", "holdout must be a share"),
        ('[[data]]\nname = "adult"\n[[data]]\nname = "adult"\n[[generator]]\nname = "a"\nreference = "copy"',
         "'adult' stands twice among the data"),
        ('[[data]]\nname = "adult"\n[[generator]]\nname = "a"\nreference = "copy"\ndata = ["adlt"]',
         "no data set 'adlt'. Did you mean 'adult'"),
        ("title = ", "is not valid TOML"),
    ],
)  # fmt: skip
def test_a_slip_in_a_study_file_is_refused_with_the_near_misses(text, said, tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(text)
    with pytest.raises((ParameterError, InputError), match=said):
        evaluate(path)


def test_a_missing_study_data_file_or_column_is_said_plainly(folder):
    with pytest.raises(InputError, match=r"no study file 'nowhere.toml'"):
        evaluate(folder / "nowhere.toml")
    with pytest.raises(InputError):
        evaluate(small(folder, data=[DataSet("x", source="x.csv")]))
    found = evaluate(small(folder, data=[replace(people(), columns=("age", "sexx"))], seeds=[1]))
    assert "Did you mean 'sex'" in found.failures["reason"][0]
    with pytest.raises(ParameterError, match="workers"):
        evaluate(small(folder), workers=0)
    with pytest.raises(ParameterError, match="must be a Study"):
        evaluate(3)


@given(st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.5, 2.0]), min_size=1, max_size=6))
def test_ranks_agree_with_those_of_scipy(values):
    means = {str(place): value for place, value in enumerate(values)}
    assert list(_ranks(means, "lower").values()) == rankdata(values).tolist()
    assert list(_ranks(means, "higher").values()) == rankdata([-v for v in values]).tolist()
    assert list(_ranks(means, 0.5).values()) == rankdata([abs(v - 0.5) for v in values]).tolist()


def test_every_usual_metric_is_known_and_has_its_direction():
    for metric in usual_metrics():
        assert metric.measure in measures_known()
        assert all(better is not None for better in metric.headlines.values())


@pytest.mark.slow
def test_detection_knows_a_coin_a_giveaway_and_copies():
    draw = np.random.default_rng(2)
    ours, others = (
        Microdata(pl.DataFrame({"x": draw.normal(size=600), "c": draw.choice(["a", "b", "c"], 600)}))
        for _ in range(2)
    )
    fair = detection(ours, others)
    assert abs(fair.figures["excess"]) < 0.07
    assert not fair.caveats
    copied = detection(ours, ours)
    assert copied.value < 0.35
    assert "privacy warning" in copied.caveats[0]
    shifted = detection(ours, Microdata(others.frame.with_columns(pl.col("x") + 10)))
    assert shifted.value > 0.99
    assert detection(ours, [others, others]).figures["copies"] == 2
    assert detection(ours, others, most=300).figures["sampled"] is True
    with pytest.raises(ParameterError, match="folds"):
        detection(ours, others, folds=1)
    with pytest.raises((ColumnError, InputError)):
        detection(ours, Microdata(pl.DataFrame({"y": [1, 2, 3]})))


def test_the_study_file_of_the_manual_is_the_study_of_its_code():
    page = (Path(__file__).parents[2] / "docs" / "howto" / "evaluate-generators.md").read_text()
    blocks = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    study = Study.from_dict(tomllib.loads(blocks[0]))
    names: dict[str, object] = {}
    code = re.search(r"```python\n(.*?)study.save", page, re.DOTALL)
    assert code is not None
    exec(code[1], names)
    assert names["study"] == study
    assert Generator(**tomllib.loads(blocks[1])["generator"][0]).files == ("ctgan/{data}-{seed}.csv",)
    assert Metric(**tomllib.loads(blocks[2])["metric"][0]).headlines == {"ratio": "lower", "auc": "lower"}
    assert [data.is_linked for data in Study.from_dict(tomllib.loads(blocks[-1])).data] == [True, False]


@pytest.mark.slow
def test_the_example_study_puts_the_generators_in_the_published_order(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(EXAMPLE)
    found = evaluate(path)
    assert found.failures.is_empty()
    ratio = dict(found.table().filter(metric="pmse", figure="ratio").select("generator", "mean").rows())
    assert ratio["cart"] < ratio["margins"] < ratio["floor"]
    assert ratio["cart"] < 3
    auc = dict(found.table().filter(metric="detection").select("generator", "mean").rows())
    assert auc["cart"] < auc["margins"] < auc["floor"]
    assert auc["floor"] > 0.9
    assert figures(found).equals(figures(evaluate(path, workers=2)))


def test_a_figure_that_the_metric_does_not_have_is_told_and_not_silently_missing(folder):
    found = evaluate(small(folder, metrics=[Metric("margins", figures=["mean_distanc"])], seeds=[1]))
    assert any("no figure 'mean_distanc'" in caveat for caveat in found.caveats)
    assert "Did you mean 'mean_distance'" in str(found)


def test_a_study_of_a_file_that_is_not_there_leaves_no_folder(folder, tmp_path):
    with pytest.raises(InputError):
        evaluate(small(folder, data=[DataSet("gone", source="gone.csv")]), out=tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_one_reason_for_many_failures_is_told_once(folder):
    found = str(evaluate(small(folder, models=[Model("m", "nosuch ~ age")])))
    assert found.count("The formula speaks of it") == 1
    assert "cart (seed 2)" in found


def test_a_small_sample_is_an_anchor_and_the_page_says_what_each_is_good_for(tmp_path):
    from discreet.workflow.evaluation import Generator, Study, evaluate

    study = Study(
        data=[DataSet("adult", rows=400, columns=["age", "sex", "income"])],
        generators=[
            Generator("subsample", reference="subsample"),
            Generator("independent", synthesizer="independent"),
            Generator("bootstrap", synthesizer="bootstrap"),
            Generator("cart", synthesizer="sequential"),
        ],
        metrics=["margins", "dependence"],
    )
    found = evaluate(study, progress=False)
    sizes = {record["generator"]: record["rows"]["released"] for record in found.records}
    assert sizes["subsample"] == round(0.05 * 320)
    said = found.good_for()
    assert any("time and memory" in line for line in said)
    assert "What each is good for" in str(found)
    assert "What each is good for" in found.to_html(tmp_path / "page.html").read_text()


@pytest.mark.slow
def test_under_limits_every_cell_has_a_process_of_its_own(folder, monkeypatch):
    made = []
    real = evaluating._Worker

    def worker():
        made.append(real())
        return made[-1]

    monkeypatch.setattr(evaluating, "_Worker", worker)
    asked = small(folder, metrics=["margins"], seeds=[1], references=False, time_limit=300.0)
    found = evaluate(asked, progress=False)
    assert found.failures.is_empty()
    assert len(made) == 2
