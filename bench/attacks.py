"""How long do the attacks on a release take, and what do they say beside Anonymeter?

    python bench/attacks.py [--data FOLDER] [--peer-python PATH]

UCI Adult: the training file is the original, a release is drawn from `Sequential`, the test file is the control. Timed
are 500 + 500 predicates of singling out, 2,000 people of linkability, 1,000 people for three secrets and for all 15, by
the nearest record as there, and the three secrets once more with forest and boosted trees. Anonymeter 1.1.0 runs the
same tasks on the same files in an environment of its own:

    python -m venv .venv-peers && .venv-peers/bin/pip install anonymeter

Where the two differ, and why:

- Its naive attack pairs guesses and people by their row labels, so that only labels drawn on both sides can be right: a
  fair coin is guessed in 0.027 of the cases on a large file, and in 0.238 with 500 of 1,000 people. The blind guess
  here is the one answer that fits most people: 0.5 for a coin.
- Its tolerance divides by the guess with its sign: a guess below zero is right, however far off (-7 for 100, still
  so in 1.1.0). Here the distance counts in both directions, as a share of the true number.
- It takes no seed. Here the same seed gives the same answer.
- It fits a curve to correct for the size of the control; here the counts of a smaller control are extrapolated without
  a form (`discreet.attack.singling_out_attack`).
- Its multivariate predicates are random tries; here they are searched greedily and down random trees.

Seconds are of the clock and of the processor: on a busy machine only the latter mean something. Seen on two cores:

    task                                  here: CPU s, risk (95 %)            Anonymeter 1.1.0: CPU s, risk (95 %)
    singling out (500 + 500)              1.0, 0.721 (0.654 to 0.776)
      by one column                                                           1.6, 0.782 (0.743 to 0.821)
      by several columns                                                      91.1, 0.187 (0.137 to 0.236)
    linkability (2,000)                   0.1, 0.001 (-0.002 to 0.003)        not finished within the time given
    inference of three (nearest)          0.6, 0.161 (0.114 to 0.208)         not finished within the time given
    inference of three (all methods)      4.2, 0.161 (0.106 to 0.215)         has none
    inference of all 15 (nearest)         3.1, 0.161 (0.103 to 0.218)         not run

Intervals here are wider where the worst of several searches or secrets is told: they hold for the choice, too.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl

from discreet import Microdata, attack, synth
from discreet.core.results import Measure

SIDES = (["age", "education", "race", "sex"], ["workclass", "occupation", "hours-per-week", "native-country"])
SECRETS = ["income", "marital-status", "age"]
THEIRS = """
import sys, time, warnings
import pandas as pd
warnings.simplefilter("ignore")
from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator
folder, sides, secrets = sys.argv[1], eval(sys.argv[2]), eval(sys.argv[3])
ori, syn, control = (pd.read_csv(f"{folder}/{name}.csv") for name in ("original", "released", "control"))
def run(name, evaluator, **options):
    began, used = time.perf_counter(), time.process_time()
    try:
        evaluator.evaluate(**options)
        risk = evaluator.risk(confidence_level=0.95)
        said = f"risk {risk.value:.3f} ({risk.ci[0]:.3f} to {risk.ci[1]:.3f})"
    except Exception as error:
        said = f"failed ({type(error).__name__})"
    print(f"  Anonymeter {name}: {time.perf_counter() - began:.1f} s, {time.process_time() - used:.1f} s CPU, {said}")
for mode in ("univariate", "multivariate"):
    run(f"singling out, {mode}", SinglingOutEvaluator(ori=ori, syn=syn, control=control, n_attacks=500), mode=mode)
run("linkability", LinkabilityEvaluator(
    ori=ori, syn=syn, control=control, n_attacks=2000, aux_cols=sides, n_neighbors=1), n_jobs=2)
for secret in secrets:
    run(f"inference of {secret}", InferenceEvaluator(
        ori=ori, syn=syn, control=control, aux_cols=[c for c in ori if c != secret], secret=secret, n_attacks=1000),
        n_jobs=2)
"""


def main() -> None:
    """Print a line a task, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", default=os.environ.get("DISCREET_TEST_DATA"))
    parser.add_argument("--peer-python", default=os.environ.get("DISCREET_PEER_PYTHON"))
    parser.add_argument("--peer-limit", type=float, default=600.0)
    asked = parser.parse_args()
    if not asked.data:
        parser.error("name the folder of the real files with --data or DISCREET_TEST_DATA")
    original, control = (
        Microdata(pl.read_csv(Path(asked.data) / "adult" / f"adult_{name}.csv.gz", null_values="?"))
        for name in ("train", "test")
    )
    control = control.with_frame(control.frame.with_columns(pl.col("income").str.strip_chars(".")))
    released = synth.Sequential().fit(original, seed=1).sample(seed=2)
    few = [data.with_frame(data.frame[:400]) for data in (original, released, control)]
    attack.singling_out(few[0], few[1], holdout=few[2], attacks=20, seed=1)
    attack.inference(few[0], few[1], holdout=few[2], attacks=20, secret=SECRETS, seed=1)

    def inferred(**given: object) -> Measure:
        return attack.inference(original, released, holdout=control, seed=1, **given)  # type: ignore[arg-type]

    tasks: dict[str, Callable[[], Measure]] = {
        "singling out": lambda: attack.singling_out(original, released, holdout=control, seed=1),
        "linkability": lambda: attack.linkability(original, released, columns=SIDES, holdout=control, seed=1),
        "inference of three": lambda: inferred(secret=SECRETS, method="nearest"),
        "inference of all 15": lambda: inferred(secret=list(original.columns), method="nearest"),
        "inference of three, all methods": lambda: inferred(secret=SECRETS),
    }
    spent = {}
    for name, run in tasks.items():
        began, used = time.perf_counter(), time.process_time()
        found = run().figures
        spent[name] = (time.perf_counter() - began, time.process_time() - used)
        print(
            f"  {name}: {spent[name][0]:.1f} s, {spent[name][1]:.1f} s CPU, risk {found['risk']:.3f} "
            f"({found['risk_low']:.3f} to {found['risk_high']:.3f})"
        )
    first = list(spent)[:3]
    print(
        f"The five tasks of Anonymeter: {sum(spent[name][0] for name in first):.1f} s, "
        f"{sum(spent[name][1] for name in first):.1f} s CPU (70 s there on two cores, when it was last run)."
    )
    if not asked.peer_python:
        print("Anonymeter was not run: name the Python of its environment with --peer-python.")
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, data in (("original", original), ("released", released), ("control", control)):
            data.frame.write_csv(Path(folder) / f"{name}.csv")
        command = [asked.peer_python, "-c", THEIRS, folder, repr(SIDES), repr(SECRETS)]
        try:
            ended = subprocess.run(command, timeout=asked.peer_limit, check=False).returncode
        except subprocess.TimeoutExpired:
            print(f"Anonymeter did not come to an end within {asked.peer_limit:.0f} s.")
        else:
            if ended:
                print(f"Anonymeter crashed (exit code {ended}): nothing is compared with it.")


if __name__ == "__main__":
    main()
