import json
import subprocess
import sys

import polars as pl
import pytest

from discreet import datasets

ADULT = str(datasets.adult_path())
KEYS = "age,sex,race,marital-status,native-country"


def discreet(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "discreet", *map(str, arguments)], capture_output=True, text=True, check=False
    )


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    pl.DataFrame({"sex": ["f", "f", "m", "m"], "ill": ["y", "n", "y", "n"], "w": [1, 0, 2, 3]}).write_csv(
        path
    )
    return path


def test_json_is_one_document_and_nothing_else():
    done = discreet("assess", ADULT, "--keys", KEYS, "--sensitive", "income", "--json")
    assert done.returncode == 0
    document = json.loads(done.stdout)
    for name in ("k_anonymity", "l_diversity", "t_closeness", "uniqueness", "reidentification"):
        assert {"value", "figures", "meaning", "caveats"} <= set(document[name])
    assert done.stderr == ""


def test_a_file_that_meets_its_policy_exits_with_0(people):
    done = discreet("assess", people, "--keys", "sex", "--sensitive", "ill", "--policy", "safe-setting")
    assert done.returncode == 0
    assert "Meets policy 'Safe setting'" in done.stdout


def test_a_file_that_does_not_exits_with_3(people):
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
def test_bad_input_is_one_paragraph_and_exit_code_2(people, arguments, says):
    done = discreet("assess", people, *arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_an_empty_file_and_a_missing_file_are_refused(tmp_path):
    (tmp_path / "empty.csv").touch()
    for name in ("empty.csv", "missing.csv"):
        done = discreet("assess", tmp_path / name, "--keys", "sex")
        assert done.returncode == 2
        assert name in done.stderr
        assert "Traceback" not in done.stderr


def test_the_report_option_writes_a_report(people, tmp_path):
    done = discreet("assess", people, "--keys", "sex", "--html", tmp_path / "r.html")
    assert done.returncode == 0
    assert (tmp_path / "r.html").read_text().startswith("<!DOCTYPE html>")


def test_key_values_are_shown_only_when_asked_for(people):
    hidden = discreet("assess", people, "--keys", "sex", "--json").stdout
    asked = discreet("assess", people, "--keys", "sex", "--json", "--show-values").stdout
    assert '"f"' not in hidden
    assert '"f"' in asked


def test_inspect_writes_a_roles_file_that_assess_then_uses(people):
    done = discreet("inspect", people)
    assert done.returncode == 0
    assert people.with_name("people.roles.toml").exists()
    assert discreet("assess", people).returncode in (0, 2)


def test_inspect_leaves_a_roles_file_alone_that_is_there(people):
    sidecar = people.with_name("people.roles.toml")
    sidecar.write_text("[roles]\nkeys = ['sex']\n")
    assert "left as it is" in discreet("inspect", people).stdout
    assert sidecar.read_text() == "[roles]\nkeys = ['sex']\n"


def test_methods_lists_every_measure_with_its_question():
    done = discreet("methods")
    assert "risk.k_anonymity" in done.stdout
    assert "rarest combination" in done.stdout


def test_a_float_key_is_a_note_on_stderr(tmp_path):
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
