"""No command writes over what it reads: the commands and their options are read off the command line itself."""

from __future__ import annotations

import os
import re

import polars as pl
import pytest
import typer

from discreet.cli import app
from discreet.cli.options import WRITTEN, WRITTEN_BY

READ = {
    "policy": "policy.html",
    "plan": "plan.toml",
    "plans": "plan.toml",
    "roles": "roles.toml",
    "schema": "schema.toml",
    "hierarchy": "age=levels.csv",
    "ledger": "budget.toml",
    "released": "released.csv",
    "release": "released.csv",
    "original": "released.csv",
    "population": "released.csv",
    "holdout": "released.csv",
    "control": "released.csv",
    "from_model": "old.model",
}
FILES = {
    "people.csv": "age,sex\n1,f\n2,m\n",
    "people.roles.toml": '[roles]\nkeys = ["age"]\n',
    "released.csv": "age,sex\n1,f\n",
    "policy.html": "",
    "plan.toml": "",
    "roles.toml": "",
    "schema.toml": "",
    "levels.csv": "1,*\n",
    "budget.toml": "",
    "old.model": "",
}
NEEDED = {
    "epsilon": "1",
    "formula": "age",
    "name": "k_anonymity",
    "site": "A=age",
    "data": "A=people.csv",
    "by": "age",
}


def commands():
    """Give every command with its words, the name of its function and its parameters."""

    def below(group, words):
        for registered in group.registered_commands:
            called = registered.name or registered.callback.__name__.replace("_", "-")
            command = typer.main.get_command_from_info(
                registered, pretty_exceptions_short=False, rich_markup_mode=None
            )
            yield [*words, called], registered.callback.__name__, command.params
        for inner in group.registered_groups:
            yield from below(inner.typer_instance, [*words, inner.typer_instance.info.name])

    return list(below(app, []))


def writes(function):
    return WRITTEN | WRITTEN_BY.get(function, {}).keys()


def is_flag(parameter):
    return getattr(parameter, "is_flag", False)


OUTPUTS = [
    (words, function, parameters, one)
    for words, function, parameters in commands()
    for one in parameters
    if one.name in writes(function) and not is_flag(one)
]


def test_every_option_that_writes_is_known_to_be_one():
    """A new option whose help says that it writes comes with a line in `discreet.cli.options`."""
    told = re.compile(r"\b[Ww]rite\b|\bWhere .* (goes?|go|is written)|Parquet parts|Keep finished")
    unknown = [
        (words, one.name)
        for words, function, parameters in commands()
        for one in parameters
        if told.search(one.help or "") and not is_flag(one) and one.name not in writes(function)
    ]
    assert unknown == [(["preflight"], "generator")], "it says of which generator a plan is written"
    assert len(OUTPUTS) > 30


def given(function, parameters, written, target):
    """Name every file that the command can read, and one that it is to write."""
    arguments, rest = [], []
    for one in parameters:
        is_argument = not one.opts[0].startswith("-")
        if one.name == written.name:
            value = f"records={target}" if one.name == "detail" else str(target)
        elif one.name in READ and one.name not in writes(function):
            value = READ[one.name]
        elif one.required or one.name == "file":
            value = NEEDED.get(one.name, "people.csv")
        elif one.name == "overwrite":
            rest.append("--overwrite")
            continue
        else:
            continue
        if is_argument:
            arguments.append(value)
        else:
            rest += [one.opts[0], value]
    return [*arguments, *rest]


@pytest.fixture
def place(tmp_path, monkeypatch):
    folder = tmp_path / "data"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text or f"# {name}\n")
    monkeypatch.chdir(folder)
    return folder


def spelled(file, folder, how):
    """Give another name of a file that leads to it."""
    other = folder / f"other{file.suffix}"
    if how == "plain":
        return file.name
    if how == "dotted":
        return os.path.join(".", "..", folder.name, ".", file.name)
    if how == "symbolic link":
        other.symlink_to(file)
    elif how == "hard link":
        os.link(file, other)
    elif how == "linked folder":
        (folder.parent / "elsewhere").symlink_to(folder)
        return str(folder.parent / "elsewhere" / file.name)
    return other.name


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("how", ["plain", "dotted", "symbolic link", "hard link", "linked folder"])
@pytest.mark.parametrize(
    ("words", "function", "parameters", "written"),
    OUTPUTS,
    ids=[f"{' '.join(words)} {one.name}" for words, _, _, one in OUTPUTS],
)
def test_no_option_writes_over_what_its_command_reads(
    discreet, place, words, function, parameters, written, how
):
    before = contents(place)
    read = [one.name for one in parameters if one.name in READ and one.name not in writes(function)]
    names = {READ[name].rpartition("=")[2] for name in read}
    if any(
        one.name in ("file", "data", "study", "source") and one.name != written.name for one in parameters
    ):
        names |= {"people.csv", "people.roles.toml"}
    if written.name == "html":
        names = {name for name in names if name.endswith(".html")}
    if function == "make_keys":
        names = {"people.csv"}  # it reads nothing; its key is written to a new place only
    for name in sorted(names):
        target = spelled(place / name, place, how)
        done = discreet(*words, *given(function, parameters, written, target))
        assert done.returncode == 2, (name, done.stdout, done.stderr)
        assert re.search(r"would be lost|already exists|is a file", " ".join(done.stderr.split())), (
            done.stderr
        )
        for link in ("other.csv", "other.toml", "other.html", "other.model"):
            (place / link).unlink(missing_ok=True)
        (place.parent / "elsewhere").unlink(missing_ok=True)
        assert contents(place) == before


def test_a_page_may_save_the_project_that_it_was_started_with(discreet, place, monkeypatch):
    """A page goes on for hours: what it was started with is no reason never to write it again."""
    from discreet.app.journey import Journey

    project = Journey(name="people.csv", place=str(place / "people.csv")).save(place / "mine")
    monkeypatch.setattr("discreet.app.serve", lambda file, **_: Journey.load(file).save(file))
    assert discreet("app", project.name).returncode == 0
    assert Journey.load(project).place == str(place / "people.csv")


def test_no_two_outputs_of_a_command_are_one_file(discreet, place):
    step = '{treatment = "round", base = {age = 1}}'
    for log in ("out.csv", "./out.csv", str(place / "out.csv")):
        done = discreet("protect", "people.csv", "--step", step, "--out", "out.csv", "--log", log)
        assert done.returncode == 2
        assert "--out and --log name the same file" in " ".join(done.stderr.split())
    done = discreet("risk", "k_anonymity", "people.csv", "-k", "age", "--detail", "classes=c.csv", "--detail",
                    "classes=./c.csv")  # fmt: skip
    assert done.returncode == 2
    assert "Two files of --detail name the same file" in " ".join(done.stderr.split())
    assert contents(place).keys() == FILES.keys()


def test_what_a_plan_names_is_not_written_over_either(discreet, place):
    """The hierarchy is not on the command line: it is noted when it is read."""
    (place / "levels.csv").write_text("1,low,*\n2,low,*\n")
    (place / "full.toml").write_text(
        '[[step]]\ntreatment = "generalize"\nhierarchies = {age = "levels.csv"}\nlevels = {age = 1}\n'
    )
    before = contents(place)
    done = discreet("protect", "people.csv", "--plan", "full.toml", "--out", "levels.csv", "--overwrite")
    assert done.returncode == 2, done.stdout
    assert contents(place) == before


def test_the_data_of_a_study_are_not_written_over(discreet, place):
    pl.DataFrame({"sex": ["f", "m"] * 60, "age": list(range(120))}).write_csv("people-training.csv")
    (place / "study.toml").write_text(
        '[[data]]\nname = "people"\nsource = "people-training.csv"\n[[generator]]\nname = "margins"\n'
        'reference = "uniform"\n[[metric]]\nname = "new_rows"\n'
    )
    before = contents(place)
    done = discreet("evaluate", "study.toml", "--training", ".")
    assert done.returncode == 2, done.stdout
    assert "would be lost" in done.stderr
    assert contents(place) == before


def test_a_trial_is_not_prepared_over_the_data_of_its_sites(discreet, place):
    (place / "A.toml").write_text("age\n1\n")
    before = contents(place)
    for folder in (".", f"../{place.name}"):
        done = discreet("federated", "prepare", folder, "--site", "A=age", "--data", "A=A.toml")
        assert done.returncode == 2
        assert "'A.toml' is the file that is read" in done.stderr
        assert contents(place) == before


def test_a_folder_that_holds_what_is_read_is_not_replaced(discreet, place):
    (place / "out").mkdir()
    (place / "out" / "manifest.json").write_text("{}")
    (place / "people.csv").rename(place / "out" / "people.csv")
    done = discreet(
        "synthesize", "out/people.csv", "--method", "multi-table", "--out", "out", "--overwrite", "--set",
        'columns=[["age"]]',
    )  # fmt: skip
    assert done.returncode == 2
    assert "holds 'people.csv'" in " ".join(done.stderr.split())
    assert (place / "out" / "people.csv").exists()


def test_nothing_is_written_into_a_folder_that_is_read(discreet, place):
    (place / "plans").mkdir()
    (place / "plans" / "one.toml").write_text("")
    done = discreet(
        "search", "people.csv", "--plan", "plans", "--policy", "public-use-file", "--out", "plans/two.toml"
    )
    assert done.returncode == 2
    assert "lies in the folder 'plans'" in " ".join(done.stderr.split())


def test_the_database_that_is_read_is_not_written_over(discreet, place):
    import sqlite3

    with sqlite3.connect("people.db") as made:
        made.execute("CREATE TABLE people (age INTEGER)")
        made.execute("INSERT INTO people VALUES (1), (2)")
    made.close()
    before = contents(place)
    step = '{treatment = "round", base = {age = 1}}'
    for out in ("sqlite:///people.db", f"sqlite:///{place}/./people.db"):
        done = discreet("protect", "sqlite:///people.db", "--query", "people", "--step", step, "--out", out,
                        "--overwrite")  # fmt: skip
        assert done.returncode == 2
        assert "would be lost" in done.stderr
        assert contents(place) == before


def test_linked_tables_replace_a_folder_of_their_own_only(discreet, place):
    (place / "schema.toml").write_text('[tables.people]\nfile = "people.csv"\nkey = "age"\n')
    (place / "thesis").mkdir()
    (place / "thesis" / "chapter.txt").write_text("all of it")
    done = discreet("synthesize", "--schema", "schema.toml", "--out", "thesis", "--overwrite")
    assert done.returncode == 2
    assert "holds more than .csv files" in " ".join(done.stderr.split())
    done = discreet("synthesize", "--schema", "schema.toml", "--out", f"../{place.name}", "--overwrite")
    assert done.returncode == 2
    assert (place / "thesis" / "chapter.txt").exists()
    assert (place / "people.csv").exists()
