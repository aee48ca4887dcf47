import json
import subprocess
import sys

import polars as pl
import pytest

from discreet import Policy, datasets

ADULT = str(datasets.adult_path())
KEYS = "age,sex,race,marital-status,native-country"


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    pl.DataFrame({"sex": ["f", "f", "m", "m"], "ill": ["y", "n", "y", "n"], "w": [1, 0, 2, 3]}).write_csv(
        path
    )
    return path


def test_json_is_one_document_and_nothing_else(discreet):
    done = discreet("assess", ADULT, "--keys", KEYS, "--sensitive", "income", "--json")
    assert done.returncode == 0
    document = json.loads(done.stdout)
    for name in ("k_anonymity", "l_diversity", "t_closeness", "uniqueness", "reidentification"):
        assert {"value", "figures", "meaning", "caveats"} <= set(document[name])
    assert done.stderr == ""


def test_a_file_that_meets_its_policy_exits_with_0(discreet, people, tmp_path):
    policy = tmp_path / "ours.toml"
    policy.write_text('name = "Ours"\n[rules]\n"uniqueness.unique_share" = { at_most = 0.2 }\n')
    roles = ("--keys", "sex", "--sensitive", "ill", "--policy", policy)
    done = discreet("assess", people, *roles, "--strata", "w")
    assert done.returncode == 0
    assert "Meets policy 'Ours'" in done.stdout
    open_still = discreet("assess", people, *roles)
    assert open_still.returncode == 4
    assert "it needs a role for 1 column: 'w'" in " ".join(open_still.stdout.replace("│", "").split())


def test_a_policy_that_cannot_be_judged_whole_on_a_file_alone_exits_with_4(discreet, people):
    roles = ("--keys", "sex", "--sensitive", "ill", "--policy")
    done = discreet("assess", people, *roles, "safe-setting")
    assert done.returncode == 4
    assert "Meets what could be judged here of policy 'Safe setting'" in done.stdout
    assert "Not judged here: " in done.stdout
    assert "they need the original" in " ".join(done.stdout.replace("│", "").split())
    line = discreet("assess", people, *roles, "synthetic-file", "--check")
    assert line.returncode == 4
    asked = len(Policy.load("synthetic-file").comparison)
    assert line.stdout.startswith(
        f"Nothing could be judged here of policy 'Synthetic file'; not judged here: {asked} rules"
    )


def test_a_file_that_does_not_exits_with_3(discreet, people):
    done = discreet("assess", people, "--keys", "sex", "--sensitive", "ill", "--check")
    assert done.returncode == 3
    assert done.stdout.startswith("Does not meet policy 'Public use file', because k-anonymity is 2")
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--keys", "sexx"], "Did you mean 'sex'?"),
        (["--keys", "sex", "--sensitive", "sex"], "two roles"),
        (["--keys", "sex", "--weight", "ill"], "not numeric"),
        (["--keys", "sex", "--weight", "w"], "weight of zero"),
        (["--keys", "sex", "--policy", "nowhere.toml"], "no policy file"),
        (["--keys", "sex", "--scenario", "neighbor"], "name=column"),
        (["--keys", "sex", "--missing", "sometimes"], "'wildcard'"),
        ([], "No keys were named"),
        (["--keys", "sex", "--html", "no/such/folder/report.html"], "folder"),
        (["--keys", "sex", "--json", "--check"], "exclude each other"),
    ],
)
def test_bad_input_is_one_paragraph_and_exit_code_2(discreet, people, arguments, says):
    done = discreet("assess", people, *arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_an_empty_file_and_a_missing_file_are_refused(discreet, tmp_path):
    (tmp_path / "empty.csv").touch()
    for name in ("empty.csv", "missing.csv"):
        done = discreet("assess", tmp_path / name, "--keys", "sex")
        assert done.returncode == 2
        assert name in done.stderr
        assert "Traceback" not in done.stderr


def test_the_report_option_writes_a_report(discreet, people, tmp_path):
    done = discreet("assess", people, "--keys", "sex", "--html", tmp_path / "r.html")
    assert done.returncode == 0
    assert (tmp_path / "r.html").read_text().startswith("<!DOCTYPE html>")


def test_key_values_are_shown_only_when_asked_for(discreet, people):
    hidden = discreet("assess", people, "--keys", "sex", "--json").stdout
    asked = discreet("assess", people, "--keys", "sex", "--json", "--show-values").stdout
    assert '"f"' not in hidden
    assert '"f"' in asked


def test_inspect_writes_a_roles_file_that_assess_then_uses(discreet, people):
    done = discreet("inspect", people)
    assert done.returncode == 0
    assert people.with_name("people.roles.toml").exists()
    assert discreet("assess", people).returncode in (0, 2)


def test_inspect_leaves_a_roles_file_alone_that_is_there(discreet, people):
    sidecar = people.with_name("people.roles.toml")
    sidecar.write_text("[roles]\nkeys = ['sex']\n")
    assert "left as it is" in discreet("inspect", people).stdout
    assert sidecar.read_text() == "[roles]\nkeys = ['sex']\n"


def test_methods_lists_every_measure_with_its_question(discreet):
    done = discreet("methods")
    assert "risk.k_anonymity" in done.stdout
    assert "rarest combination" in done.stdout
    assert "risk.k_anonymity" in next(
        line for line in done.stdout.splitlines() if "class-wise  How many" in line
    )


def test_a_float_key_is_a_note_on_stderr(discreet, tmp_path):
    path = tmp_path / "people.csv"
    pl.DataFrame({"height": [1.71, 1.82, 1.71]}).write_csv(path)
    done = discreet("assess", path, "--keys", "height", "--json")
    assert done.returncode == 0
    assert "Note: The key 'height' holds decimal numbers" in done.stderr
    json.loads(done.stdout)


def test_help_and_import_stay_quick():
    """Half a second is the promise; what keeps it is that no heavy package is imported."""
    code = "import sys, discreet, discreet.cli; print([m for m in sys.modules if m in sys.argv[1:]])"
    heavy = ["pandas", "matplotlib", "sklearn", "scipy", "numba", "pyarrow", "duckdb", "pyspark", "polars"]
    done = subprocess.run([sys.executable, "-c", code, *heavy], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_module_can_be_run_as_a_program():
    command = [sys.executable, "-m", "discreet", "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.startswith("discreet ")


def test_a_single_measure_takes_settings_and_writes_its_detail(discreet, people, tmp_path):
    detail, plot, page = tmp_path / "classes.csv", tmp_path / "k.svg", tmp_path / "k.html"
    done = discreet(
        "risk", "k-anonymity", people, "-k", "sex", "--set", "threshold=5", "--json",
        "--detail", f"classes={detail}", "--plot", plot, "--html", page,
    )  # fmt: skip
    assert done.returncode == 0
    assert json.loads(done.stdout)["figures"]["records_below_threshold"] == 4
    assert pl.read_csv(detail)["class_size"].to_list() == [2, 2]
    assert "<svg" in plot.read_text()
    assert "k-anonymity" in page.read_text()


def test_a_measure_of_two_files_reads_both(discreet, people):
    done = discreet("risk", "replicated_uniques", people, "-k", "sex,w", "--released", people, "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["figures"]["repU"] == 100


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["k_anonimity", "-k", "sex"], "'k_anonymity'"),
        (["k_anonymity", "-k", "sex", "--set", "treshold=5"], "'threshold'"),
        (["k_anonymity", "-k", "sex", "--set", "threshold"], "name=value"),
        (["k_map", "-k", "sex"], "--population"),
        (["replicated_uniques", "-k", "sex"], "--released"),
        (["k_anonymity", "-k", "sex", "--released", "x.csv"], "x.csv"),
        (["k_anonymity", "-k", "sex", "--detail", "clases=x.csv"], "'classes'"),
        (["k_anonymity", "-k", "sex", "--plot", "x.txt"], "--plot"),
    ],
)
def test_a_wrong_measure_or_setting_is_refused(discreet, people, arguments, says):
    done = discreet("risk", arguments[0], people, *arguments[1:])
    assert done.returncode == 2
    assert says in done.stderr


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text("[[step]]\ntreatment = 'round'\nbase = { w = 10 }\n")
    return path


def test_protect_writes_the_release_and_its_logs(discreet, people, plan, tmp_path):
    out, log, inside = tmp_path / "safe.parquet", tmp_path / "log.json", tmp_path / "internal.json"
    done = discreet(
        "protect", people, "--plan", plan, "--out", out, "--seed", 1, "--log", log, "--internal-log", inside
    )
    assert done.returncode == 0
    assert pl.read_parquet(out)["w"].to_list() == [0, 0, 0, 0]
    assert json.loads(log.read_text())["steps"][0]["changed_cells"] == {"w": 3}
    assert "seed" not in log.read_text()
    assert "seed" in inside.read_text()


def test_protect_overwrites_only_when_told_to(discreet, people, plan, tmp_path):
    out = tmp_path / "safe.csv"
    out.write_text("precious")
    assert discreet("protect", people, "--plan", plan, "--out", out).returncode == 2
    assert out.read_text() == "precious"
    assert discreet("protect", people, "--plan", plan, "--out", out, "--overwrite").returncode == 0


def test_a_dry_run_writes_nothing(discreet, people, plan, tmp_path):
    before = sorted(tmp_path.iterdir())
    done = discreet("protect", people, "--plan", plan, "--dry-run")
    assert "changed cells: w 3" in done.stdout
    assert sorted(tmp_path.iterdir()) == before


def test_protect_writes_parts_that_take_their_place_together(discreet, people, plan, tmp_path):
    asked = ("protect", people, "--plan", plan, "--seed", 1, "--parts", tmp_path / "parts")
    assert discreet(*asked).returncode == 0
    assert (tmp_path / "parts" / "manifest.json").exists()
    again = discreet(*asked, "--resume")
    assert again.returncode == 2
    assert "already exists" in again.stderr
    for more in (("--out", tmp_path / "x.csv"), ("--overwrite",)):
        refused = discreet(*asked, *more)
        assert refused.returncode == 2
        assert str(more[0]) in refused.stderr
    assert "--parts" in discreet("protect", people, "--plan", plan, "--out", "x.csv", "--resume").stderr


def test_protect_without_a_place_to_write_is_refused(discreet, people, plan):
    assert "--out" in discreet("protect", people, "--plan", plan).stderr


def test_search_recommends_the_cheapest_plan_that_passes(discreet, tmp_path):
    people, best, picture = tmp_path / "people.parquet", tmp_path / "best.toml", tmp_path / "map.svg"
    pl.DataFrame({"age": [20, 21, 22, 40, 41, 42] * 4, "ill": ["y", "n"] * 12}).write_parquet(people)
    policy = tmp_path / "policy.toml"
    policy.write_text("[rules]\nk_anonymity = { at_least = 8 }\n")
    plans = tmp_path / "plans"
    plans.mkdir()
    for width in (1, 10, 100):
        step = f"[[step]]\ntreatment = 'band'\nwidths = {{ age = {width} }}\n"
        (plans / f"by-{width}.toml").write_text(step)
    arguments = ["search", people, "--plan", plans, "-p", policy, "-k", "age", "-s", "ill", "--seed", 1]
    done = discreet(*arguments, "--json", "--out", best, "--plot", picture)
    assert done.returncode == 0
    assert json.loads(done.stdout)["recommended"] == "by-10"
    assert "10" in best.read_text()
    assert "<svg" in picture.read_text()
    policy.write_text("[rules]\nk_anonymity = { at_least = 1000 }\n")
    assert discreet(*arguments).returncode == 3
