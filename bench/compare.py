"""How long does a whole comparison take, beside the reports of SDMetrics and the attacks of Anonymeter?

    python bench/compare.py [--rows 48842] [--attacks 500] [--peer-python PATH]

Adult (48,842 x 15) against a synthesis by trees, with a quarter of the original as hold-out. Ours: `compare` with
everything it asks for by default, and its HTML page. The peers run in an environment of their own, made beforehand with

    python -m venv .venv-peers && .venv-peers/bin/pip install sdmetrics anonymeter

SDMetrics: quality report and diagnostic report. Anonymeter: singling out (univariate and multivariate), linkability and
inference of the income, each with ``attacks`` guesses. Each side is run once to warm up on 2,000 records, then timed.
Without the peers only our side is timed, and the last line says so.

The two sides do not do the same work: SDMetrics has no standardized measure and no risk, Anonymeter attacks by
guessing, and ours measures. On a few thousand records the peers are faster. The multivariate singling-out attack
takes most of the peers' time, so the ratio is given with and without their slowest part.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

import discreet
from discreet import Microdata
from discreet.synth import Sequential
from discreet.workflow.comparison import compare

KEYS, SENSITIVE = ["age", "sex", "race", "education"], "income"
PEER = """
import sys, time, warnings
warnings.filterwarnings("ignore")
import pandas as pd
from sdmetrics.reports.single_table import DiagnosticReport, QualityReport
import anonymeter.evaluators
from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator
folder, attacks = sys.argv[1], int(sys.argv[2])
files = [pd.read_parquet(f"{folder}/{name}.parquet") for name in ("original", "released", "holdout")]
categories = [c for c in files[0] if not pd.api.types.is_numeric_dtype(files[0][c])]
meta = {"columns": {c: {"sdtype": "categorical" if c in categories else "numerical"} for c in files[0]}}

def timed(name, work):
    start = time.perf_counter()
    try:
        work()
        print(name, time.perf_counter() - start, flush=True)
    except Exception as error:
        print(name, "failed", type(error).__name__, flush=True)

def run(original, released, holdout, attacks, timed):
    timed("quality", lambda: QualityReport().generate(original, released, meta, verbose=False))
    timed("diagnostic", lambda: DiagnosticReport().generate(original, released, meta, verbose=False))
    for mode in ("univariate", "multivariate"):
        timed(f"singling_out_{mode}", lambda: SinglingOutEvaluator(
            ori=original, syn=released, control=holdout, n_attacks=attacks).evaluate(mode=mode))
    half = [["age", "sex", "race"], ["education", "occupation", "income"]]
    timed("linkability", lambda: LinkabilityEvaluator(
        ori=original, syn=released, control=holdout, aux_cols=half, n_attacks=attacks).evaluate())
    known = [c for c in original if c != "income"]
    timed("inference", lambda: InferenceEvaluator(
        ori=original, syn=released, control=holdout, aux_cols=known, secret="income", n_attacks=attacks).evaluate())

run(*(f.head(2000) for f in files), 50, lambda name, work: timed(f"warm_{name}", work))
run(*files, attacks, timed)
"""


def main() -> None:
    """Time both sides and print one line a part, and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=48_842)
    parser.add_argument("--attacks", type=int, default=500)
    parser.add_argument("--peer-python", default=os.environ.get("DISCREET_PEER_PYTHON"))
    given = parser.parse_args()
    adult = discreet.datasets.adult(keys=KEYS, sensitive=SENSITIVE)
    whole = adult.frame.sample(given.rows, seed=1)
    held = np.zeros(whole.height, dtype=bool)
    held[: whole.height // 4] = True
    holdout, original = whole.filter(pl.Series(held)), whole.filter(pl.Series(~held))
    data = Microdata(original, keys=KEYS, sensitive=SENSITIVE)
    released = Sequential().fit(data, seed=1).sample(seed=2)
    print(f"{original.height:,} original, {holdout.height:,} held out, {original.width} columns")
    with tempfile.TemporaryDirectory() as folder:
        ours = _ours(data, released, Microdata(holdout), Path(folder))
        if not given.peer_python:
            print("peers: not timed; name an environment that has them with --peer-python")
            return
        for name, frame in (("original", original), ("released", released.frame), ("holdout", holdout)):
            frame.write_parquet(Path(folder) / f"{name}.parquet")
        theirs = _theirs(given.peer_python, folder, given.attacks)
    if theirs:
        slowest = max(theirs, key=lambda name: theirs[name])
        total = sum(theirs.values())
        print(f"ratio (peers / ours): {total / ours:.1f}")
        print(f"ratio without {slowest}: {(total - theirs[slowest]) / ours:.1f}")


def _ours(data: Microdata, released: Microdata, holdout: Microdata, folder: Path) -> float:
    few = [Microdata(frame.frame.head(2000), **roles) for frame, roles in (
        (data, {"keys": KEYS, "sensitive": SENSITIVE}), (released, {}), (holdout, {}))]  # fmt: skip
    compare(few[0], few[1], holdout=few[2])
    start = time.perf_counter()
    found = compare(data, released, holdout=holdout, policy="scientific-use-file")
    compared = time.perf_counter() - start
    start = time.perf_counter()
    found.to_html(folder / "report.html")
    paged = time.perf_counter() - start
    print(f"discreet compare       {compared:8.2f} s  ({len(found.main.measures)} measures)")
    print(f"discreet page          {paged:8.2f} s")
    return compared + paged


def _theirs(python: str, folder: str, attacks: int) -> dict[str, float]:
    done = subprocess.run(
        [python, "-c", PEER, folder, str(attacks)], capture_output=True, text=True, check=False
    )
    found: dict[str, float] = {}
    for line in done.stdout.splitlines():
        name, *rest = line.split()
        if name.startswith("warm_"):
            continue
        said = f"{float(rest[0]):8.2f} s" if len(rest) == 1 else " ".join(rest)
        print(f"peer {name:<18}{said}")
        if len(rest) == 1:
            found[name] = float(rest[0])
    if done.returncode:
        said = done.stderr.strip().splitlines()
        print(
            f"peers crashed (exit code {done.returncode}), so there is no ratio: {said[-1] if said else 'no reason'}"
        )
        return {}
    return found


if __name__ == "__main__":
    main()
