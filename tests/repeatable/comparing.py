"""Does the house answer its tests as it did at an earlier revision, on this machine?

::

    python tests/repeatable/comparing.py BASE [tests/risk src/discreet/risk ...]

The tree of the revision is laid beside this one and its own tests are run there, twice: what differs between two runs
of the same code (ciphertexts, timings) tells nothing and is left out, by number. Then the tests of this tree are run,
and every answer is held against the earlier one. A changed answer is printed as ``bits`` where only the last digits of
floats differ, and as ``answer`` where more does; tests that are gone are printed too.
"""

from __future__ import annotations

import argparse
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
    """Read the answers by test, in their order."""
    found: Record = defaultdict(list)
    for line in file.read_text(encoding="utf-8").splitlines():
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


def recorded(tree: Path, file: Path, what: list[str]) -> Record:
    """Run the tests of a tree and read what it answered."""
    paths = os.pathsep.join([str(tree / "src"), str(tree / "tests"), str(TREE / "tests")])
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "repeatable.recorder",
        "--record",
        str(file),
        *what,
    ]
    done = subprocess.run(command, cwd=tree, env={**os.environ, "PYTHONPATH": paths}, check=False)
    if done.returncode > 1:
        sys.exit(f"The tests of {tree.name} could not be run.")
    return read_record(file)


def main() -> None:
    """Compare, print what changed, and end with 1 where anything did."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("base")
    options.add_argument("what", nargs="*", default=["tests", "src"])
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        base = Path(name) / "base"
        subprocess.run(["git", "worktree", "add", "--detach", str(base), given.base], cwd=TREE, check=True)
        try:
            there = [one for one in given.what if (base / one).exists()]
            runs = [recorded(base, Path(name) / f"before{number}.jsonl", there) for number in (1, 2)]
            after = recorded(TREE, Path(name) / "after.jsonl", given.what)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(base)], cwd=TREE, check=True)
    left_out = unsteady(*runs)
    changed = differences(runs[0], after, left_out)
    for test, how in changed:
        print(f"{test}: {how}")
    kinds = Counter(
        how.split()[0] if how.startswith(("answer", "bits", "gone")) else "number" for _, how in changed
    )
    held = sum(map(len, runs[0].values())) - len(left_out)
    print(f"{held:,} answers of {len(runs[0]):,} tests held against {given.base}; {len(left_out):,} left out as "
          f"different in two runs of the same code; changed: {dict(kinds) or 'none'}.")  # fmt: skip
    sys.exit(bool(changed))


if __name__ == "__main__":
    main()
