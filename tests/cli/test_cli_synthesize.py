"""The command line of the synthesizer."""

import json

import polars as pl
import pytest


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    frame = pl.DataFrame(
        {"sex": ["f", "m"] * 100, "age": list(range(200)), "pay": [i * 10 for i in range(200)]}
    )
    frame.with_columns(pay=pl.col("pay") % 7).write_csv(path)
    return path


def test_a_synthetic_file_is_written(discreet, people, tmp_path):
    done = discreet("synthesize", people, "--out", tmp_path / "s.csv", "--seed", 1, "--rows", 30)
    assert done.returncode == 0
    assert pl.read_csv(tmp_path / "s.csv").shape == (30, 3)
    assert "Synthetic is not the same as safe" in done.stdout


def test_the_same_seed_gives_the_same_bytes(discreet, people, tmp_path):
    for name in ("a.csv", "b.csv"):
        discreet("synthesize", people, "--out", tmp_path / name, "--seed", 1)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_copies_are_numbered_and_the_summary_is_json(discreet, people, tmp_path):
    done = discreet("synthesize", people, "--out", tmp_path / "s.csv", "--copies", 2, "--json")
    summary = json.loads(done.stdout)
    assert summary["files"] == ["s-1.csv", "s-2.csv"]
    assert summary["plan"]["order"] == ["sex", "age", "pay"]
    assert (tmp_path / "s-2.csv").exists()


def test_a_model_is_saved_and_drawn_from_again(discreet, people, tmp_path):
    model = tmp_path / "m.discreet"
    discreet("synthesize", people, "--out", tmp_path / "a.csv", "--model", model, "--seed", 4)
    done = discreet("synthesize", "-", "--from-model", model, "--out", tmp_path / "b.csv", "--seed", 4)
    assert done.returncode == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_a_plan_file_says_how(discreet, people, tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'synthesizer = "sequential"\nvisit_sequence = ["age", "sex", "pay"]\n'
        '[[rules.pay]]\nwhen = "age < 50"\nvalue = 3\n[method]\nsex = "sample"\n'
    )
    done = discreet("synthesize", people, "--plan", plan, "--out", tmp_path / "s.csv", "--seed", 1)
    assert done.returncode == 0, done.stderr
    drawn = pl.read_csv(tmp_path / "s.csv")
    assert drawn.filter(pl.col("age") < 50)["pay"].unique().to_list() == [3]


def test_every_option_of_a_plan_survives_being_saved(discreet, people, tmp_path):
    plan, copy = tmp_path / "plan.toml", tmp_path / "copy.toml"
    plan.write_text(
        'strata = "sex"\nmin_stratum = 5\nstratum_sizes = "fixed"\nproper = "bootstrap"\nfew_values = 0\n'
        'constraints = ["age < 190"]\nmax_rounds = 40\nmax_levels = 300\nweights = "ignore"\notherwise = "ctree"\n'
        "special_codes = { pay = [0] }\nsemicontinuous = { pay = [3] }\nsmoothing = { age = 'density' }\n"
        '[[rules.pay]]\nwhen = "age < 20"\n[method.pay]\nmethod = "cart"\nmin_leaf = 7\n'
        "[method_options.ctree]\nmincriterion = 0.5\n[predictor_matrix]\npay = ['age']\n"
    )
    assert discreet("synthesize", people, "--plan", plan, "--save-plan", copy, "--dry-run").returncode == 0
    for source, name in ((plan, "a.csv"), (copy, "b.csv")):
        done = discreet("synthesize", people, "--plan", source, "--out", tmp_path / name, "--seed", 2)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    drawn = pl.read_csv(tmp_path / "a.csv")
    assert drawn.filter(pl.col("age") < 20)["pay"].null_count() == drawn.filter(pl.col("age") < 20).height > 0
    assert drawn["age"].max() < 190


def test_a_dry_run_shows_the_plan_and_writes_nothing(discreet, people, tmp_path):
    done = discreet("synthesize", people, "--dry-run", "--out", tmp_path / "s.csv")
    assert "2. age  cart from sex" in done.stdout
    assert not (tmp_path / "s.csv").exists()


def test_a_dry_run_of_a_model_shows_the_plan_it_was_fitted_by(discreet, people, tmp_path):
    model = tmp_path / "m.discreet"
    discreet(
        "synthesize", people, "--model", model, "--seed", 4, "--set", "visit_sequence=['pay', 'sex', 'age']"
    )
    done = discreet("synthesize", "-", "--from-model", model, "--dry-run", "--json")
    assert json.loads(done.stdout)["order"] == ["pay", "sex", "age"]
    assert sorted(tmp_path.iterdir()) == [model, people]


def test_options_can_be_kept_as_a_plan(discreet, people, tmp_path):
    plan = tmp_path / "plan.toml"
    discreet("synthesize", people, "--set", "few_values=10", "--save-plan", plan, "--dry-run")
    assert plan.read_text() == 'synthesizer = "sequential"\nfew_values = 10\n'


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Say where the synthetic file goes"),
        (("--out", "s.csv", "--method", "crat"), "Did you mean 'cart'"),
        (("--out", "s.csv", "--set", "synthesizer=copla"), "There is no synthesizer 'copla'"),
        (("--out", "s.csv", "--set", "stata=sex"), "Did you mean 'strata'"),
        (("--out", "s.csv", "--plan", "nope.toml"), "no plan file"),
        (("--out", "s.csv", "--copies", 0), "--copies"),
        (("--out", "s.csv", "--rows", 0), "--rows must be at least 1"),
        (("--out", "s.csv", "--set", "rules={pay=[{when='age < 9', value='x'}]}"), "cannot hold"),
        (("--out", "s.csv", "--from-model", "nope.discreet"), "no model file"),
        (("--out", "s.csv", "--from-model", "m.discreet", "--method", "rf"), "leave out --method"),
        (("--out", "s.csv", "--from-model", "m.discreet", "--save-plan", "p.toml"), "leave out --save-plan"),
        (("--out", "s.csv", "--model", "m.discreet", "--set", "proper=true"), "no model to save"),
        (("--out", "s.xyz", "--method", "crat"), "tells no format"),
        (("--out", "s.csv", "--method", "keep"), "nothing to synthesize"),
    ],
)
def test_bad_input_is_one_paragraph_and_no_file(discreet, people, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    done = discreet("synthesize", people, *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert not (tmp_path / "s.csv").exists()


@pytest.fixture
def patients(tmp_path):
    path = tmp_path / "patients.csv"
    n = pl.int_range(600, eager=True)
    ill = pl.Series(["yes", "no", "no"] * 200)
    pl.DataFrame({"age": 20 + n * 7 % 60, "town": n * n % 11, "pay": 900 + n * 3.37, "ill": ill}).write_csv(
        path
    )
    return path


ROLES = ("--keys", "age,town", "--sensitive", "ill")


def test_a_policy_takes_its_steps_and_judges(discreet, patients, tmp_path):
    made = tmp_path / "s.csv"
    done = discreet("synthesize", patients, *ROLES, "--policy", "synthetic-file", "--out", made, "--seed", 1)
    assert "blurred (smoothing): 'pay'" in done.stdout
    assert ("Meets policy" in done.stdout) == (done.returncode == 0)
    judged = discreet("compare", patients, made, *ROLES, "--policy", "synthetic-file", "--check")
    assert judged.returncode == done.returncode


def test_lookalikes_are_named_at_once_and_finish_removes_them(discreet, patients, tmp_path):
    made, ready = tmp_path / "s.csv", tmp_path / "ready.csv"
    done = discreet("synthesize", patients, *ROLES, "--out", made, "--seed", 1)
    assert "(repU)" in done.stdout
    options = (
        "--remove-uniques",
        "--smooth",
        "pay",
        "--top",
        "age=70",
        "--code",
        "age=99",
        "--label",
        "synthetic",
    )
    done = discreet("finish", made, *ROLES, "--original", patients, "--out", ready, *options, "--seed", 2)
    assert done.returncode == 0
    assert "records removed" in done.stdout
    finished, original = pl.read_csv(ready), pl.read_csv(patients)
    assert finished["age"].max() <= 70
    assert finished["source"].unique().to_list() == ["synthetic"]
    assert finished.height < 600
    assert not set(finished["pay"]) <= set(original["pay"])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--remove-uniques",), "--original"),
        (("--policy", "synthetic-file"), "--original"),
        (("--top", "age"), "COLUMN=VALUE"),
        (("--top", "age=old"), "a number"),
    ],
)
def test_a_finish_that_lacks_something_is_refused(discreet, patients, tmp_path, options, text):
    done = discreet("finish", patients, "--out", tmp_path / "f.csv", *options)
    assert done.returncode == 2
    assert text in done.stderr
    assert not (tmp_path / "f.csv").exists()


def test_parts_are_written_from_a_model_of_a_sample(discreet, people, tmp_path):
    folder = tmp_path / "parts"
    asked = ("--method", "sample", "--rows", 50, "--seed", 1)
    done = discreet("synthesize", people, "--parts", folder, "--memory", 2e-5, *asked)
    assert done.returncode == 0, done.stderr
    assert "random sample" in done.stdout
    assert pl.read_parquet(folder / "part-*.parquet").height == 50
    again = discreet("synthesize", people, "--parts", folder, "--memory", 2e-5, *asked)
    assert again.returncode == 2
    assert "is not empty" in again.stderr
    both = discreet("synthesize", people, "--parts", folder, "--out", tmp_path / "s.csv")
    assert both.returncode == 2
    assert "leave out --out" in both.stderr


def test_a_policy_says_where_no_attacker_was_tried(discreet, people, tmp_path):
    asked = ("--policy", "synthetic-file", "--keys", "sex", "--seed", 1, "--json")
    small = discreet("synthesize", people, "--out", tmp_path / "s.csv", *asked)
    told = json.loads(small.stdout)
    assert told["attackers"] is None
    assert "fewer than 2,000 records" in told["not_attacked"]
    aware = discreet("synthesize", people, "--out", tmp_path / "t.csv", *asked, "--risk-limit", 0)
    assert "--risk-limit 0" in json.loads(aware.stdout)["not_attacked"]


def test_a_risk_limit_sets_people_aside_and_writes_a_page_with_the_price(discreet, people, tmp_path):
    many = tmp_path / "many.csv"
    numbers = pl.int_range(1200, eager=True)
    pl.DataFrame({"pay": numbers * 7919 % 99991, "sex": numbers % 2, "town": numbers % 7}).write_csv(many)
    made, page = tmp_path / "s.csv", tmp_path / "page.html"
    asked = ("--out", made, "--risk-limit", 0.6, "--html", page, "--seed", 1, "--json")
    done = discreet("synthesize", many, *asked)
    told = json.loads(done.stdout)["attackers"]
    assert done.returncode == (0 if told["holds"] else 3), done.stderr
    assert pl.read_csv(made).height == 1200
    assert told["price"].startswith("The price")
    assert "What attackers gain" in page.read_text()
    refused = discreet("synthesize", people, "--out", tmp_path / "t.csv", "--html", tmp_path / "t.html")
    assert refused.returncode == 2
    assert "--risk-limit" in refused.stderr
    other = discreet(
        "synthesize", people, "--out", tmp_path / "t.csv", "--method", "syndiffix", "--risk-limit", 0.1
    )
    assert other.returncode == 2


def test_a_sample_of_a_survey_is_drawn_by_weight_and_says_so(discreet, tmp_path):
    rows = {"sex": ["f", "m"] * 500, "age": [i % 90 for i in range(1000)], "w": [1.0, 4.0] * 500}
    pl.DataFrame(rows).write_parquet(tmp_path / "survey.parquet")
    asked = ("--weight", "w", "--memory", 8e-5, "--seed", 1)
    done = discreet("synthesize", tmp_path / "survey.parquet", "--out", tmp_path / "s.csv", *asked)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "in proportion to 'w'; weights were divided by the chances" in said
    share = (pl.read_csv(tmp_path / "s.csv")["sex"] == "m").mean()
    assert abs(share - 0.8) < 0.1
