"""Does the house answer its tests as it did at an earlier revision, on this machine?

::

    python tests/repeatable/comparing.py BASE [tests/risk src/discreet/risk ...]

The tree of the revision is laid beside this one and its own tests are run there, twice: what differs between two runs
of the same code (ciphertexts, timings) tells nothing and is left out, by number. What they answered is kept, so that
other trees are held against the same revision at a third of the time. Then the tests of this tree are run,
and every answer is held against the earlier one. A changed answer is printed as ``bits`` where only the last digits of
floats differ, and as ``answer`` where more does; tests that are gone are printed too, and so is every name, signature,
card and help text that reads differently (`surface`).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

TREE = Path(__file__).parent.parent.parent


class Answer(NamedTuple):
    """What came back to a test at one place."""

    what: str
    raw: str
    rounded: str


Record = dict[str, list[Answer]]


def read_record(file: Path) -> Record:
    """Read the answers by test, in their order; test processes that ran beside each other wrote a file each."""
    found: Record = defaultdict(list)
    for part in sorted({*file.parent.glob(f"{file.stem}.*{file.suffix}"), *file.parent.glob(file.name)}):
        for line in part.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            found[entry["test"]].append(Answer(entry["what"], entry["raw"], entry["rounded"]))
    return dict(found)


def unsteady(one: Record, other: Record) -> set[tuple[str, int]]:
    """Name the places that differ between two runs of the same code."""
    places = set()
    for test in {*one, *other}:
        first, second = one.get(test, []), other.get(test, [])
        if len(first) != len(second):
            places |= {(test, at) for at in range(max(len(first), len(second)))}
        places |= {(test, at) for at, (a, b) in enumerate(zip(first, second, strict=False)) if a.raw != b.raw}
    return places


def differences(before: Record, after: Record, without: set[tuple[str, int]]) -> list[tuple[str, str]]:
    """Name every test whose answers changed, and in what way."""
    found = []
    for test, first in before.items():
        if test not in after:
            found.append((test, "gone"))
            continue
        second = after[test]
        steady = [at for at in range(len(first)) if (test, at) not in without]
        if len(first) != len(second) and steady:
            found.append((test, f"{len(second)} answers instead of {len(first)}"))
            continue
        for at in steady:
            if first[at].rounded != second[at].rounded:
                found.append((test, f"answer {at} of {first[at].what}"))
            elif first[at].raw != second[at].raw:
                found.append((test, f"bits {at} of {first[at].what}"))
    return found


def recorded(tree: Path, file: Path, what: list[str]) -> None:
    """Run the tests of a tree, two processes of them, and write down what it answered and what it shows."""
    paths = os.pathsep.join([str(tree / "src"), str(tree / "tests"), str(TREE / "tests")])
    settings = {**os.environ, "PYTHONPATH": paths}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "2",
        "--dist",
        "loadfile",
        "-p",
        "repeatable.recorder",
        "--rootdir",
        str(tree),
        "-c",
        str(tree / "pyproject.toml"),
    ]
    done = subprocess.run([*command, "--record", str(file), *what], cwd=tree, env=settings, check=False)
    if done.returncode > 1:
        sys.exit(f"The tests of {tree.name} could not be run.")
    shown = subprocess.run(
        [sys.executable, str(TREE / "tests" / "repeatable" / "surface.py")],
        cwd=tree,
        env={**settings, "PYTHONPATH": str(tree / "src")},
        stdout=subprocess.PIPE,
        check=True,
    )
    file.with_name(f"{file.stem}-surface.json").write_bytes(shown.stdout)


def surface_beside(file: Path) -> dict[str, str]:
    """Read what the tree of a record shows."""
    return dict(json.loads(file.with_name(f"{file.stem}-surface.json").read_text(encoding="utf-8")))


def of_base(base: str, what: list[str], kept: Path) -> tuple[Path, Path]:
    """Give the two records of an earlier revision: those that are kept, or new ones."""
    revision = subprocess.run(
        ["git", "rev-parse", base], cwd=TREE, check=True, capture_output=True, text=True
    ).stdout.strip()
    mark = hashlib.sha256(" ".join(what).encode()).hexdigest()[:8]
    folder = kept / f"{revision}-{mark}"
    records = folder / "one.jsonl", folder / "two.jsonl"
    if not (folder / "complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as name:
            tree = Path(name) / "base"
            subprocess.run(["git", "worktree", "add", "--detach", str(tree), revision], cwd=TREE, check=True)
            try:
                for file in records:
                    recorded(tree, file, [one for one in what if (tree / one).exists()])
            finally:
                subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=TREE, check=True)
        (folder / "complete").touch()
    return records


def main() -> None:
    """Compare, print what changed, and end with 1 where anything did."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("base")
    options.add_argument("what", nargs="*", default=["tests", "src"])
    options.add_argument("--kept", type=Path, default=TREE / "build" / "fingerprints")
    given = options.parse_args()
    one, two = of_base(given.base, given.what, given.kept)
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "after.jsonl"
        recorded(TREE, file, given.what)
        after, seen = read_record(file), surface_beside(file)
    before, shown = read_record(one), surface_beside(one)
    left_out = unsteady(before, read_record(two))
    changed = differences(before, after, left_out)
    for test, how in changed:
        print(f"{test}: {how}")
    texts = sorted(name for name in {*shown, *seen} if shown.get(name) != seen.get(name))
    for name in texts:
        print(f"shown otherwise: {name}")
    kinds = Counter(
        how.split()[0] if how.startswith(("answer", "bits", "gone")) else "number" for _, how in changed
    )
    held = sum(map(len, before.values())) - len(left_out)
    print(f"{held:,} answers of {len(before):,} tests and {len(shown):,} texts held against {given.base}; "
          f"{len(left_out):,} left out as different in two runs of the same code; "
          f"changed: {dict(kinds) or 'none'}, {len(texts)} texts.")  # fmt: skip
    sys.exit(bool(changed or texts))


if __name__ == "__main__":
    main()
