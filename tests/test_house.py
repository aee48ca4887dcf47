"""The house keeps its order: rooms call the rooms above them, and what is shared is said once."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parent.parent / "src" / "discreet"
# From the foundations to the roof; what stands in one line is one floor, and its rooms do not call each other.
FLOORS = (
    "core expression_functions _version",
    "microdata expressions formula policy policies networks",
    "engine",
    "hierarchy io numerics",
    "datasets pairs dp register",
    "risk",
    "protect",
    "synth federated",
    "utility",
    "tables",
    "attack",
    "outputs workflow",
    "report",
    "app",
    "cli",
    "__main__",
)
FLOOR = {room: level for level, floor in enumerate(FLOORS) for room in floor.split()}


class Import(NamedTuple):
    module: str
    wants: str
    inside: str  # the function that imports when it is called, or nothing


@cache
def modules() -> dict[str, Path]:
    names = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def room(module: str) -> str:
    return [*module.split("."), ""][1]


@cache
def trees() -> dict[str, ast.Module]:
    return {name: ast.parse(path.read_text()) for name, path in modules().items()}


@cache
def imports() -> list[Import]:
    return [found for name, tree in trees().items() for found in _imports(name, tree)]


def _imports(module: str, node: ast.AST, inside: str = "") -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):  # no import stands within one
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        if isinstance(child, ast.ImportFrom) and (child.module or "").split(".")[0] == "discreet":
            for name in child.names:
                full = f"{child.module}.{name.name}"
                yield Import(module, full if full in modules() else str(child.module), inside)
        elif isinstance(child, ast.FunctionDef):
            yield from _imports(module, child, inside or child.name)
        else:
            yield from _imports(module, child, inside)


def test_every_room_has_its_floor():
    assert {room(module) for module in modules()} - {""} - set(FLOOR) == set()


def test_the_list_of_rooms_in_the_guide_is_the_real_one():
    guide = (SOURCE.parent.parent / "CONTRIBUTING.md").read_text()
    listed = "".join(line for line in guide.splitlines(keepends=True) if line.startswith("|"))
    named = {name.rstrip("/") for name in re.findall(r"`([\w/]+)`", listed)}
    inner = {path.name for path in SOURCE.glob("*/*/") if path.is_dir() and path.name != "__pycache__"}
    alone = {path.stem for path in SOURCE.glob("*/*.py")}
    assert set(FLOOR) - named - {"_version", "__main__"} == set()
    assert inner - named == set()
    assert named - set(FLOOR) - inner - alone == set()


def test_rooms_call_the_rooms_above_them_only():
    """A result may hand over to `report` when it is asked for a picture or a page; nothing else climbs down."""
    wrong = [
        f"{one.module} imports {one.wants}"
        for one in imports()
        if room(one.module) and room(one.wants) and room(one.module) != room(one.wants)
        if FLOOR[room(one.wants)] >= FLOOR[room(one.module)]
        if not (room(one.wants) == "report" and one.inside)
    ]
    assert not wrong, "\n".join(wrong)


def folder(module: str) -> str:
    """The folder that a module lies in; a door is a folder's own module and lies in none."""
    path = modules()[module]
    return "" if path.name == "__init__.py" else str(path.parent.relative_to(SOURCE))


def test_no_room_is_entered_again_from_a_room_it_calls():
    """Whoever follows imports and leaves a folder for another never comes back to the first.

    Doors, which show all of a room, and the courtesy of results to `report` are no steps of a walk. A module that lies
    beside the sub-rooms of its room (`synth/synthesizer.py` beside `synth/sequential`) stands for itself.
    """
    inner = {folder(name) for name in modules()}

    def place(module: str) -> str:
        own = folder(module)
        alone = any(other != own and other.startswith(own + "/") for other in inner) or own == "."
        return module if alone else own

    calls: dict[str, set[str]] = {}
    for one in imports():
        courtesy = room(one.wants) == "report" and one.inside
        if not (courtesy or "" in (folder(one.module), folder(one.wants))):
            calls.setdefault(place(one.module), set()).add(place(one.wants))

    def reached(start: str) -> set[str]:
        found, waiting = set(), [start]
        while waiting:
            for other in calls.get(waiting.pop(), set()) - found:
                found.add(other)
                waiting.append(other)
        return found

    beyond = {each: reached(each) for each in calls}
    again = sorted(
        f"{one} and {other}"
        for one, found in beyond.items()
        for other in found
        if one < other and one in beyond.get(other, set())
        if (modules()[one].parent if one in modules() else SOURCE / one)
        != (modules()[other].parent if other in modules() else SOURCE / other)
    )
    assert not again, "\n".join(again)


def test_only_the_engine_room_asks_which_engine_it_is():
    """`microdata` lies below the engine room: it names the engine in a sentence, and looks for names Arrow repeats."""
    asking = re.compile(r"\.implementation\b|\bis_(polars|pandas|pyarrow|duckdb|pyspark)\(")
    asked = {name for name, path in modules().items() if asking.search(path.read_text())}
    assert {name for name in asked if room(name) not in ("engine", "microdata")} == set()


def test_array_types_are_named_once():
    named = [
        name
        for name, path in modules().items()
        if re.search(r"^\s*\w+(: TypeAlias)? = npt\.NDArray\[[\w.]+\]$", path.read_text(), re.MULTILINE)
    ]
    assert named == ["discreet.core.arrays"]


def functions(node: ast.AST) -> Iterator[ast.FunctionDef]:
    """Functions and methods; what is defined inside one belongs to it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield child
        elif isinstance(child, ast.ClassDef | ast.If):
            yield from functions(child)


def logic(function: ast.FunctionDef, lines: list[str]) -> list[tuple[str, int]]:
    """The lines of a function that do something, each with its number.

    Left out are docstring, comments, punctuation, imports, and arguments that are only handed on (``weight=weight,``).
    """
    body = function.body[1:] if ast.get_docstring(function) else function.body
    if not body:
        return []
    numbered = range(body[0].lineno, (body[-1].end_lineno or 0) + 1)
    told = [(lines[number - 1].split("  # ")[0].strip(), number) for number in numbered]
    silent = re.compile(r"#.*|[\W_]*|(from|import) .*|\w+(=(not )?[\w.]+)?,")
    return [(line, number) for line, number in told if not silent.fullmatch(line)]


def test_no_two_places_share_six_lines_of_logic():
    seen: dict[tuple[str, ...], tuple[Path, str, int]] = {}
    twice = []
    for name, path in modules().items():
        lines = path.read_text().splitlines()
        for function in functions(trees()[name]):
            told = logic(function, lines)
            for start in range(len(told) - 5):
                run = tuple(line for line, _ in told[start : start + 6])
                place = (path, function.name, told[start][1])
                first = seen.setdefault(run, place)
                if first[:2] != place[:2] or place[2] - first[2] >= 6:
                    twice.append(
                        f"{first[0].stem}.{first[1]}:{first[2]} and {path.stem}.{place[1]}:{place[2]}"
                    )
    assert not twice, "\n".join(twice)


def test_nothing_is_there_that_nothing_refers_to():
    """Every function and class is named somewhere else: in the house, its tests, the manual or the benchmarks.

    What a decorator or a parent class registers is found by other names, and is left out.
    """
    root = SOURCE.parent.parent
    places = [
        path
        for room in ("src", "tests", "docs", "bench")
        for ending in ("*.py", "*.pyi", "*.md")
        for path in (root / room).rglob(ending)
    ]
    named = Counter(word for path in places for word in re.findall(r"\w+", path.read_text(encoding="utf-8")))
    forgotten = []
    for name, path in modules().items():
        lines = path.read_text().splitlines()
        for one in trees()[name].body:
            if not isinstance(one, ast.FunctionDef | ast.ClassDef) or one.decorator_list:
                continue
            if (isinstance(one, ast.ClassDef) and one.bases) or one.name.startswith("__"):
                continue
            own = len(re.findall(rf"\b{one.name}\b", "\n".join(lines[one.lineno - 1 : one.end_lineno])))
            if named[one.name] <= own:
                forgotten.append(f"{name}.{one.name}")
    assert not forgotten, "\n".join(forgotten)
