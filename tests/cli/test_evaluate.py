"""The command line of studies."""

import json

import polars as pl
import pytest
import typer
from typer.testing import CliRunner

from discreet.cli.evaluate import evaluate
from discreet.core.errors import ParameterError


@pytest.fixture
def study(tmp_path):
    frame = pl.DataFrame(
        {"sex": ["f", "m"] * 60, "age": list(range(120)), "pay": [i % 3 for i in range(120)]}
    )
    frame.write_csv(tmp_path / "people.csv")
    path = tmp_path / "study.toml"
    path.write_text(
        'title = "Ours"\nseeds = [1, 2]\n'
        '[[data]]\nname = "people"\nsource = "people.csv"\nroles = { keys = ["sex", "age"] }\n'
        '[[generator]]\nname = "margins"\nsynthesizer = "sequential"\nparameters = { method = "sample" }\n'
        '[[metric]]\nname = "margins"\nmeasure = "utility.margins"\n'
        '[[metric]]\nname = "new_rows"\n'
    )
    return path


def run(*arguments):
    app = typer.Typer()
    app.command()(evaluate)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_a_study_is_run_printed_reported_and_kept(study, tmp_path):
    done = run(study, "--out", tmp_path / "out", "--html", tmp_path / "r.html", "--plot", tmp_path / "m.svg")
    assert done.exit_code == 0, done.output
    assert "1 generator on 1 data set, 2 seeds: 3 cells, none failed." in done.stdout
    assert (tmp_path / "out" / "results.jsonl").read_text().count("\n") == 3
    assert "Ours" in (tmp_path / "r.html").read_text()
    assert "<svg" in (tmp_path / "m.svg").read_text()


def test_json_is_one_document_and_a_second_run_adds_nothing(study, tmp_path):
    first = run(study, "--out", tmp_path / "out", "--json")
    kept = (tmp_path / "out" / "results.jsonl").read_bytes()
    second = run(study, "--out", tmp_path / "out", "--json")
    assert json.loads(first.stdout) == json.loads(second.stdout)
    assert (tmp_path / "out" / "results.jsonl").read_bytes() == kept
    run(study, "--out", tmp_path / "out", "--json", "--fresh")
    assert (tmp_path / "out" / "results.jsonl").read_bytes() != kept


def test_a_dry_run_lists_the_cells_and_the_training_parts_are_written_for_other_tools(study, tmp_path):
    done = run(study, "--dry-run")
    assert done.stdout.splitlines() == [
        "people  holdout  seed 1",
        "people  margins  seed 1",
        "people  margins  seed 2",
    ]
    assert json.loads(run(study, "--dry-run", "--json").stdout)[0]["generator"] == "holdout"
    assert "people-training.csv" in run(study, "--training", tmp_path / "parts").stdout
    assert pl.read_csv(tmp_path / "parts" / "people-training.csv").height == 96


def test_slips_on_the_command_line_are_refused(study):
    assert isinstance(run(study, "--fresh", "--retry").exception, ParameterError)
    assert isinstance(run(study, "--html", "report.txt").exception, ParameterError)


def test_generators_are_compared_on_any_file_with_anchors_beside(study, tmp_path):
    people = tmp_path / "people.csv"
    listed = run(people, "--generators", "default", "--keys", "sex,age", "--repetitions", "1", "--dry-run")
    assert listed.exit_code == 0, listed.output
    cells = [line.split()[1] for line in listed.stdout.splitlines()]
    assert cells[:6] == ["holdout", "uniform", "independent", "bootstrap", "subsample", "cart"]
    assert {"adversarial-forest", "ctgan", "tvae", "tabular-diffusion", "language-model"} <= set(cells)


def test_the_study_of_a_comparison_can_be_kept_and_changed(study, tmp_path):
    kept = tmp_path / "kept.toml"
    done = run(
        tmp_path / "people.csv", "--generators", "tvae", "--set", "tvae.epochs=3", "--save-study", kept, "--dry-run",
        "--time-limit", "60", "--no-attacks",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    from discreet.workflow.evaluation import Study

    read = Study.load(kept)
    tvae = read.named("makers", "tvae")
    assert tvae.parameters == {"epochs": 3, "time_limit": 30.0}
    assert read.time_limit == 60.0


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (["--generators", "gan"], "generator"),
        (["--generators", "tvae", "--set", "epochs=3"], "name the generator"),
        (["--generators", "tvae", "--set", "mst.epsilon=3"], "generator"),
        (["--keys", "sex"], "--generators"),
    ],
)
def test_what_does_not_fit_a_comparison_is_refused(study, tmp_path, more, named):
    done = run(tmp_path / "people.csv", *more)
    assert isinstance(done.exception, ParameterError)
    assert named in str(done.exception)
