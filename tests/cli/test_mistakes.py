"""What people get wrong at the command line: one paragraph, exit code 2, nothing half-written."""

import json
import os
import subprocess
import sys

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.cli import options


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    rows = 60
    pl.DataFrame(
        {
            "age": [20 + i % 10 for i in range(rows)],
            "sex": ["f", "m"] * (rows // 2),
            "ill": ["y", "n", "n"] * (rows // 3),
            "w": [2.5] * rows,
        }
    ).write_csv(path)
    return path


def refused(done, *words):
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


def test_a_population_of_nobody_is_refused_and_not_taken_for_none_given(discreet, people):
    done = discreet("assess", people, "-k", "age,sex", "--population-size", 0)
    refused(done, "population_size must be a whole number of at least 1")


def test_two_scenarios_of_one_name_are_refused_rather_than_one_lost(discreet, people):
    done = discreet("assess", people, "-k", "age,sex", "--scenario", "a=sex", "--scenario", "a=age")
    refused(done, "--scenario names 'a' twice")


def test_the_report_never_lands_on_the_data(discreet, people):
    before = people.read_bytes()
    refused(discreet("assess", people, "-k", "age,sex", "--html", people), "must end in .html")
    assert people.read_bytes() == before


def test_nothing_is_written_when_one_of_two_detail_tables_is_unknown(discreet, people, tmp_path):
    first = tmp_path / "first.csv"
    done = discreet(
        "risk", "k_anonymity", people, "-k", "age", "--detail", f"classes={first}", "--detail", "nope=x.csv"
    )
    refused(done, "no detail table 'nope'")
    assert not first.exists()


def test_a_detail_table_that_is_there_is_replaced_only_when_told(discreet, people, tmp_path):
    table = tmp_path / "classes.csv"
    table.write_text("mine")
    command = ("risk", "k_anonymity", people, "-k", "age", "--detail", f"classes={table}")
    refused(discreet(*command), "--overwrite")
    assert table.read_text() == "mine"
    assert discreet(*command, "--overwrite").returncode == 0
    assert pl.read_csv(table)["class_size"].sum() == 60


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("k_anonymity", "--set", "threshold=abc"), "threshold must be a whole number"),
        (("k_anonymity", "--set", "keys=5"), "keys must be a list of texts"),
        (("k_anonymity", "--population-size", "100"), "takes no --population-size"),
        (("population", "--set", "population_size=many"), "population_size must be a"),
        (("k_anonymity", "--plot", "picture.gif"), ".svg, .png or .pdf"),
        (("remove_replicated_uniques",), "in Python"),
    ],
)
def test_a_setting_that_cannot_be_is_named(discreet, people, arguments, words):
    name, *rest = arguments
    refused(discreet("risk", name, people, "-k", "age,sex", *rest), words)


def test_a_measure_says_which_parameter_it_cannot_do_without(discreet, people):
    done = discreet("risk", "attribute_disclosure", people, "-k", "age,sex", "--released", people)
    refused(done, "needs 'target'", "--set target=")


def test_the_size_of_the_population_has_an_option_of_its_own(discreet, people):
    command = ("risk", "uniqueness", people, "-k", "age,sex", "--json")
    by_option = discreet(*command, "--population-size", 1000)
    assert json.loads(by_option.stdout) == json.loads(
        discreet(*command, "--set", "population_size=1000").stdout
    )


def test_an_infinite_weight_is_bad_input_and_no_defect(discreet, tmp_path):
    file = tmp_path / "people.csv"
    pl.DataFrame({"sex": ["f", "m", "m"], "w": [1.0, float("inf"), 2.0]}).write_csv(file)
    refused(discreet("assess", file, "-k", "sex", "-w", "w"), "1 record with an infinite weight")


def test_scaled_weights_do_not_pass_for_the_size_of_the_population(discreet, people, tmp_path):
    scaled = tmp_path / "scaled.csv"
    pl.read_csv(people).with_columns(w=pl.lit(0.5)).write_csv(scaled)
    done = discreet("assess", scaled, "-k", "age,sex", "-w", "w", "--json")
    assert done.returncode == 0, done.stderr
    assert "no more than the file has" in done.stdout
    assert "population" not in json.loads(done.stdout)


def test_names_that_look_like_markup_or_patterns_are_just_names(discreet, tmp_path):
    names = ["[bold]z[/bold]", "[/x]", "*", "^a$", "a", "a,b", 'c"d', "größe 😀"]
    file = tmp_path / "odd.csv"
    pl.DataFrame({name: [i % (2 + place) for i in range(80)] for place, name in enumerate(names)}).write_csv(
        file
    )
    assert discreet("inspect", file).returncode == 0
    done = discreet("assess", file, *(part for name in names[:5] for part in ("-k", name)), "-k", '"a,b"')
    assert done.returncode == 0, done.stderr
    assert "[bold]z[/bold]" in done.stdout


def test_a_second_file_of_another_format_is_read_in_its_own_way(discreet, people, tmp_path):
    semicolons = tmp_path / "semicolons.csv"
    frame = pl.read_csv(people)
    frame.write_csv(semicolons, separator=";")
    population = tmp_path / "population.parquet"
    pl.concat([frame, frame]).write_parquet(population)
    for command in (("assess",), ("risk", "k_map")):
        done = discreet(
            *command, semicolons, "-k", "age,sex", "--separator", ";", "--population", population, "--json"
        )
        assert done.returncode == 0, done.stderr


def test_the_roles_of_a_population_file_do_not_matter(discreet, people, tmp_path):
    population = tmp_path / "population.csv"
    population.write_bytes(people.read_bytes())
    (tmp_path / "population.roles.toml").write_text('[roles]\nkeys = ["no such column"]\n')
    done = discreet("assess", people, "-k", "age,sex", "--population", population, "--json")
    assert done.returncode == 0, done.stderr


def test_inspect_says_how_to_go_on_with_a_roles_file_elsewhere(discreet, people, tmp_path):
    place = tmp_path / "my roles.toml"
    done = discreet("inspect", people, "--out", place)
    assert f"discreet assess {people} --roles '{place}'" in done.stdout


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission_is_refused(discreet, people):
    people.chmod(0)
    refused(discreet("assess", people, "-k", "age"), "permission")


@given(st.lists(st.text("abc,\" x'", min_size=1).map(str.strip).filter(bool), min_size=1, max_size=4))
def test_any_name_can_be_given_between_quotation_marks(names):
    quoted = ",".join('"' + name.replace('"', '""') + '"' for name in names)
    assert options.columns([quoted]) == names


def test_the_same_command_gives_the_same_figures_twice(discreet, people):
    command = ("risk", "population", people, "-k", "age,sex", "--population-size", 500, "--json")
    first = discreet(*command, "--set", "estimator=snb")
    assert first.returncode == 0, first.stderr
    assert first.stdout == discreet(*command, "--set", "estimator=snb").stdout


def test_inspect_refuses_a_taken_place_before_it_prints(discreet, people, tmp_path):
    place = tmp_path / "taken.toml"
    place.write_text("mine")
    refused(discreet("inspect", people, "--json", "--out", place), "--overwrite")
    assert place.read_text() == "mine"


@pytest.mark.parametrize(
    "encoding", ["ascii", *(pytest.param(name, marks=pytest.mark.slow) for name in ("cp1252", "utf-8"))]
)
@pytest.mark.slow
def test_a_console_of_few_characters_is_no_reason_to_stop(people, tmp_path, encoding):
    odd = tmp_path / "odd.csv"
    pl.read_csv(people).rename({"age": "größe 😀"}).write_csv(odd)
    program = [sys.executable, "-c", "from discreet.cli import main; main()"]
    command = ["assess", odd, "-k", "größe 😀,sex", "--policy", "public-use-file"]
    for extra in ((), ("--json",)):
        done = subprocess.run(
            [*program, *command, *extra],
            capture_output=True,
            env={**os.environ, "PYTHONIOENCODING": encoding},
            check=False,
        )
        assert done.returncode == 3, done.stderr
    assert json.loads(done.stdout.decode(encoding))["keys"] == ["größe 😀", "sex"]


def test_a_slip_in_the_roles_file_beside_the_data_is_found(discreet, people):
    (people.parent / "people.roles.toml").write_text('[roles]\nkeys = ["agge"]\n')
    refused(discreet("assess", people), "Did you mean 'age'", "people.roles.toml")


def test_no_output_lands_on_the_file_that_is_read_even_with_overwrite(discreet, people, tmp_path):
    before = people.read_bytes()
    plan = tmp_path / "plan.toml"
    plan.write_text('[[step]]\ntreatment = "local-suppression"\nk = 3\n')
    for command in (
        ("synthesize", people),
        ("protect", people, "--plan", plan, "-k", "age,sex"),
        ("table", "protect", people, "-t", "age*sex", "-r", "threshold=3"),
    ):
        refused(discreet(*command, "--out", people, "--overwrite"), "--out", "is the file that is read")
    refused(
        discreet("synthesize", people, "-o", tmp_path / "s.csv", "--model", people, "--overwrite"), "--model"
    )
    assert people.read_bytes() == before


def test_a_file_that_is_there_is_kept_and_the_option_that_replaces_it_named(discreet, people, tmp_path):
    there = tmp_path / "there.csv"
    there.write_text("mine")
    for command in (
        ("synthesize", people),
        ("table", "protect", people, "-t", "age*sex", "-r", "threshold=3"),
    ):
        refused(discreet(*command, "--out", there), "already exists", "--overwrite")
    assert there.read_text() == "mine"


def test_a_picture_that_cannot_be_written_is_refused_before_the_work(discreet, people, tmp_path):
    for name, words in (("map.xyz", ".svg, .png or .pdf"), ("nowhere/map.svg", "does not exist")):
        done = discreet(
            "compare",
            people,
            people,
            "-k",
            "age,sex",
            "--plot",
            tmp_path / name,
            "--html",
            tmp_path / "r.html",
        )
        refused(done, words)
        refused(discreet("evaluate", "no-study.toml", "--plot", tmp_path / name), words)
    assert not (tmp_path / "r.html").exists()


def test_a_linking_column_that_is_not_there_is_refused(discreet, people, tmp_path):
    refused(
        discreet("compare", people, people, "-k", "age", "--ids", "agee"), "'agee'", "Did you mean 'age'?"
    )
    other = tmp_path / "other.csv"
    pl.read_csv(people).drop("w").write_csv(other)
    refused(discreet("compare", people, other, "-k", "age", "--ids", "w"), "'other.csv' has no column 'w'")


def test_a_model_that_cannot_be_meant_is_refused_and_not_left_out(discreet, people):
    refused(discreet("compare", people, people, "--columns", "age,sex", "--model", "w ~ nosuch"), "'nosuch'")
    refused(discreet("compare", people, people, "--columns", "age,sex", "--model", "age"), "a tilde")


def test_a_hierarchy_file_of_bytes_is_refused(discreet, people, tmp_path):
    broken = tmp_path / "h.csv"
    broken.write_bytes(b"child,parent\n" + b"\xff\xfe\x80,\x81\n" * 20)
    done = discreet(
        "table", "protect", people, "-t", "age*sex", "-r", "threshold=3", "--hierarchy", f"age={broken}"
    )
    refused(done, "h.csv' is not utf-8 text")


def test_suppressed_cells_of_another_table_are_refused(discreet, people, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    done = discreet("table", "audit", people, "-t", "age*sex", "-r", "threshold=3", "--suppressed", other)
    refused(done, "none of the columns of the table")


def test_text_where_the_original_has_numbers_is_compared_and_reported(discreet, people, tmp_path):
    other = tmp_path / "other.csv"
    pl.read_csv(people).with_columns(w=pl.lit("much")).write_csv(other)
    page = tmp_path / "r.html"
    done = discreet("compare", people, other, "-k", "age,sex", "-s", "w", "--html", page)
    assert done.returncode == 0, done.stderr
    assert page.exists()


@pytest.mark.parametrize("option", ["--roles", "--out", "--log", "--html"])
def test_a_name_longer_than_the_system_allows_is_refused(tmp_path, option):
    pl.DataFrame({"sex": ["f", "m"] * 5}).write_csv(tmp_path / "people.csv")
    asked = ["protect", "people.csv", "--step", '{treatment = "reorder-records"}', "--out", "out.csv"]
    done = subprocess.run(
        [sys.executable, "-m", "discreet", *asked, option, "a" * 300 + ".csv"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "Error:" in done.stderr
