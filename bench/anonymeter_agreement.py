"""Do the attacks here find what Anonymeter finds? The same files, releases and people set aside, cell by cell.

    python bench/anonymeter_agreement.py [--peer-python PATH]

Without a peer the recorded reference (`anonymeter_reference.json`: risks, intervals, versions) is used. It was made by
this script with Anonymeter in an environment of its own:

    python -m venv .venv-peers && .venv-peers/bin/pip install anonymeter==1.1.0
    python bench/anonymeter_agreement.py --peer-python .venv-peers/bin/python

Two figures agree where they differ by no more than both intervals allow (the root of the sum of the squares of their
half widths). Both search descriptions at random, so that no run is the same as another; Anonymeter takes no seed.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from verdicts.people_files import drawn
from verdicts.planted import planted

from discreet import Microdata, attack, synth
from discreet.core.results import Measure

REFERENCE = Path(__file__).with_name("anonymeter_reference.json")
ROWS = 1_000
ATTACKS = {"singling out": 400, "linkability": ROWS, "inference": ROWS}
FEW = {"levels": 50}
"""Values of one record alone that a file has; asked for more than there are, Anonymeter divides by those asked for."""
FILES = {
    "census": (["income", "age"], (["age", "education", "race"], ["occupation", "hours-per-week", "income"])),
    "firms": (["region", "exports"], (["branch", "staff"], ["region", "turnover"])),
    "levels": (["party", "car"], (["town", "birth"], ["job", "car"])),
}
RELEASES = ("fresh people", "three in ten real", "trees")
Release = tuple[Microdata, Microdata, Microdata]

THEIRS = """
import json, sys, time, warnings
from importlib.metadata import version
import pandas as pd
warnings.simplefilter("ignore")
from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator
folder = sys.argv[1]
found = {}
for cell in json.load(open(f"{folder}/cells.json")):
    ori, syn, control = (pd.read_csv(f"{folder}/{cell['folder']}-{part}.csv") for part in ("ori", "syn", "control"))
    files, what = dict(ori=ori, syn=syn, control=control, n_attacks=cell["attacks"]), cell["what"]
    began = time.process_time()
    if what[0] == "singling out":
        made = SinglingOutEvaluator(**files)
        made.evaluate(mode=what[1])
    elif what[0] == "linkability":
        made = LinkabilityEvaluator(**files, aux_cols=what[1], n_neighbors=1)
        made.evaluate(n_jobs=1)
    else:
        known = [name for name in ori if name != what[1]]
        made = InferenceEvaluator(
            **files, aux_cols=known, secret=what[1], regression=pd.api.types.is_numeric_dtype(ori[what[1]])
        )
        made.evaluate(n_jobs=1)
    risk = made.risk(confidence_level=0.95)
    found[cell["name"]] = [round(float(x), 4) for x in (risk.value, *risk.ci)] + [round(time.process_time() - began, 1)]
    print(cell["name"], found[cell["name"]], file=sys.stderr, flush=True)
versions = {name: version(name) for name in ("anonymeter", "numpy", "pandas", "scipy", "scikit-learn", "numba")}
print(json.dumps({"versions": {"python": sys.version.split()[0], **versions}, "cells": found}))
"""


def released(name: str, kind: str) -> Release:
    """Draw an original, make the release, and set people aside."""
    original, fresh, aside, _ = drawn(name, ROWS, seed=7)
    people = Microdata(original)
    made = {
        "fresh people": lambda: fresh,
        "three in ten real": lambda: planted("as they are", 0.3, original, fresh, seed=7),
        "trees": lambda: synth.Sequential().fit(people, seed=7).sample(seed=8).frame.select(original.columns),
    }[kind]()
    return people, Microdata(made), Microdata(aside)


def cells() -> Iterator[tuple[str, str, str, list[object]]]:
    """Name every cell: file, release and attack."""
    for name, (secrets, sides) in FILES.items():
        for kind in RELEASES:
            for mode in ("univariate", "multivariate"):
                yield f"{name}, {kind}, singling out, {mode}", name, kind, ["singling out", mode]
            yield f"{name}, {kind}, linkability", name, kind, ["linkability", sides]
            for secret in secrets:
                yield f"{name}, {kind}, inference of {secret}", name, kind, ["inference", secret]


def ours(files: Release, what: list) -> Measure:
    """Run one attack here."""
    original, made, aside = files
    given = {"holdout": aside, "attacks": ATTACKS[what[0]], "seed": 1}
    if what[0] == "singling out":
        return attack.singling_out(original, made, predicates=what[1], **given)
    if what[0] == "linkability":
        return attack.linkability(original, made, columns=tuple(what[1]), **given)
    return attack.inference(original, made, secret=what[1], method="nearest", **given)


def agree(figures: dict[str, float | None], theirs: list[float]) -> bool:
    """Whether two risks differ by no more than their intervals allow; Anonymeter cuts its own at zero."""
    risk, low, high = (figures[name] for name in ("risk", "risk_low", "risk_high"))
    if risk is None:
        return True
    half = math.hypot((high - low) / 2, theirs[2] - theirs[0])
    return abs(max(risk, 0.0) - theirs[0]) <= half


def record(peer: str) -> dict:
    """Run Anonymeter on every cell."""
    with tempfile.TemporaryDirectory() as folder:
        asked = []
        for at, (cell, name, kind, what) in enumerate(cells()):
            for part, data in zip(("ori", "syn", "control"), released(name, kind), strict=True):
                data.frame.write_csv(Path(folder) / f"{at}-{part}.csv")
            many = FEW.get(name, ATTACKS[what[0]]) if "univariate" in what else ATTACKS[what[0]]
            asked.append({"name": cell, "folder": at, "what": what, "attacks": many})
        (Path(folder) / "cells.json").write_text(json.dumps(asked))
        ran = subprocess.run([peer, "-c", THEIRS, folder], stdout=subprocess.PIPE, check=True)
    return json.loads(ran.stdout)


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--peer-python")
    peer = options.parse_args().peer_python
    if peer:
        REFERENCE.write_text(json.dumps(record(peer), indent=1) + "\n")
    reference = json.loads(REFERENCE.read_text())
    print(f"Anonymeter {reference['versions']['anonymeter']}\n")
    print("| file, release and attack | here | Anonymeter | agree |\n|---|---|---|---|")
    began, apart = time.process_time(), 0
    for cell, name, kind, what in cells():
        figures, theirs = ours(released(name, kind), what).figures, reference["cells"][cell]
        told = [figures[one] for one in ("risk", "risk_low", "risk_high")]
        here = "undefined" if told[0] is None else f"{told[0]:.2f} ({told[1]:.2f} to {told[2]:.2f})"
        same = agree(figures, theirs)
        apart += not same
        said = f"{theirs[0]:.2f} ({theirs[1]:.2f} to {theirs[2]:.2f})"
        print(f"| {cell} | {here} | {said} | {'yes' if same else '**no**'} |", flush=True)
    spent = sum(theirs[3] for theirs in reference["cells"].values())
    print(f"\n{apart} cells apart; {time.process_time() - began:.0f} CPU s here, {spent:.0f} there.")


if __name__ == "__main__":
    main()
