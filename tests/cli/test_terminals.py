"""Control characters in names never reach a terminal; spreadsheets compute nothing that was guarded."""

import json

import polars as pl
import pytest

from discreet.cli.printing import printable

CLEAR, TITLE, TURN, BREAK = "\x1b[2J", "\x1b]0;owned\x07", "\u202e", "\nVerdict: all is well"
NAMES = [
    f"region{CLEAR}",
    f"sex{TITLE}",
    f"age{TURN}",
    f"pay{BREAK}",
    "c1\x9b2J",
    "\x7fdel\r",
    "back\x08\x08",
]
OBEYED = set(CLEAR + TITLE + TURN + "\x9b\x7f\r\x08") - set("[2J]0;owned")


@pytest.fixture
def file(tmp_path):
    columns = {
        name: [f"v{row % (2 + place)}{CLEAR}" for row in range(60)] for place, name in enumerate(NAMES)
    }
    path = tmp_path / "people.parquet"
    pl.DataFrame(columns).write_parquet(path)
    return path


def assert_plain(done):
    for text in (done.stdout, done.stderr):
        assert not OBEYED & set(text)
        assert "\nVerdict: all is well" not in text


@pytest.mark.parametrize("form", [(), ("--json",)])
@pytest.mark.parametrize(
    "command",
    [
        ("inspect", "FILE", "--no-write"),
        ("assess", "FILE", "--roles", "ROLES"),
        ("preflight", "FILE"),
        ("synthesize", "FILE", "--dry-run"),
        ("risk", "k_anonymity", "FILE", "--roles", "ROLES"),
        ("assess", "FILE", "--keys", "regoin"),
        ("table", "audit", "FILE", "--roles", "ROLES", "-t", "regio", "--rule", "threshold=3"),
    ],
    ids=lambda command: " ".join(command[:2]) if isinstance(command, tuple) else command,
)
def test_names_cannot_control_a_terminal(discreet, file, tmp_path, command, form):
    import tomli_w

    roles = tmp_path / "roles.toml"
    roles.write_text(tomli_w.dumps({"roles": {"keys": NAMES[:4]}}))
    given = [{"FILE": file, "ROLES": roles}.get(part, part) for part in command]
    done = discreet(*given, *form)
    assert done.returncode in (0, 2, 3, 4), done.stderr
    assert_plain(done)
    if form and done.stdout:
        assert "\\u001b" in done.stdout or command[0] == "risk"
        json.loads(done.stdout)


def test_shown_values_cannot_control_a_terminal(discreet, file, tmp_path):
    import tomli_w

    roles = tmp_path / "roles.toml"
    roles.write_text(tomli_w.dumps({"roles": {"keys": NAMES[:4]}}))
    assert_plain(discreet("assess", file, "--roles", roles, "--show-values"))


def test_what_is_harmless_is_printed_as_it_is():
    text = "Größe\t日本\n✓ done 'ñ'"
    assert printable(text) == text


def test_formulas_are_guarded_on_demand(discreet, tmp_path):
    pl.DataFrame({"a": ["=1+1", "x"] * 30, "b": list(range(60))}).write_csv(tmp_path / "people.csv")
    step = '{treatment = "band", widths = {b = 10}}'
    shared = ["protect", tmp_path / "people.csv", "--keys", "a", "--step", step, "--guard-formulas", "--out"]
    done = discreet(*shared, tmp_path / "out.csv")
    assert done.returncode == 0, done.stderr
    assert "'=1+1" in (tmp_path / "out.csv").read_text()
    done = discreet(*shared, tmp_path / "out.parquet")
    assert done.returncode == 2
    assert "--guard-formulas is for text files and Excel" in done.stderr
    done = discreet("table", "protect", tmp_path / "people.csv", "-t", "a", "--rule", "threshold=3",
                    "--guard-formulas", "--out", tmp_path / "table.csv")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "'=1+1" in (tmp_path / "table.csv").read_text()
