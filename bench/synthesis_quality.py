"""Which synthesizer and which order keep a file best? Eight real files, by two-way tables and by a propensity tree.

    DISCREET_TEST_DATA=PATH python bench/synthesis_quality.py [--files adult bank ...] [--seeds 3]
                                                              [--orders] [--options cart groups 0 10]

Each file is synthesized ``--seeds`` times by every synthesizer below; printed are means over the seeds. ``worst`` and
``mean`` are those of S_pMSE over all two-way tables (1: as good as a correct synthesis), ``tree`` is the pMSE of a
propensity tree in thousandths. ``--orders`` compares the ways to choose the order of CART instead, ``--options`` values
of one option of one method. S_pMSE grows with the number of records: compare within a file.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from discreet import Microdata, datasets, utility
from discreet.synth import GaussianCopula, Independent, Sequential, Synthesizer

FOLDER = Path(os.environ.get("DISCREET_TEST_DATA", "."))
COURT = "id c_jail_in c_jail_out decile_score.1 priors_count.1 screening_date v_screening_date c_charge_desc"
TREE = {"model": "cart", "null": "permutation", "n_perm": 2, "progress": False, "seed": 1}


def read(name: str, without: str = "", **options: object) -> Microdata:
    """Read a CSV file as it is, less the columns that name a record or repeat another column."""
    frame = pl.read_csv(FOLDER / name, infer_schema_length=None, **options)  # type: ignore[arg-type]
    return Microdata(frame.drop(without.split()))


FILES: dict[str, Callable[[], Microdata]] = {
    "survey": lambda: read("SD2011.csv", null_values=["", "NA"]),
    "adult": datasets.adult,
    "bank": lambda: read("tabular/bank_marketing.csv.gz"),
    "credit": lambda: read("tabular/creditcard_default.csv.gz"),
    "census": lambda: read("nist-dce/national2019.csv", "PWGTP WGTP", null_values=["N"]),
    "incomes": lambda: read("laeken_eusilc.csv.gz", "rb030 db030"),
    "court": lambda: read(
        "compas/compas-scores-two-years.csv.gz", f"{COURT} r_charge_desc vr_charge_desc", try_parse_dates=True
    ),
    "loans": lambda: read("german-credit/german.csv"),
}


def synthesizers(chosen: argparse.Namespace) -> dict[str, Synthesizer]:
    """Name what is compared."""
    if chosen.orders:
        ways = ("file", "auto", "dependence-tree", "mutual-information", "backward")
        return {f"cart, {way}": Sequential(visit_sequence=way) for way in ways}
    if chosen.options:
        method, option, *values = chosen.options
        return {
            f"{method}, {option}={value}": Sequential(
                method=method, visit_sequence="auto", method_options={method: {option: _number(value)}}
            )
            for value in values
        }
    return {
        "cart, auto": Sequential(visit_sequence="auto"),
        "cart, file": Sequential(),
        "ctree, auto": Sequential(method="ctree", visit_sequence="auto"),
        "bag, auto": Sequential(method="bag", visit_sequence="auto"),
        "rf, auto": Sequential(method="rf", visit_sequence="auto"),
        "parametric, auto": Sequential(method="parametric", visit_sequence="auto"),
        "gaussian copula": GaussianCopula(),
        "independent": Independent(),
    }


def _number(text: str) -> float:
    return int(text) if text.isdigit() else float(text)


def main() -> None:
    """Measure and print one table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--files", nargs="+", default=list(FILES), choices=list(FILES))
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--orders", action="store_true")
    options.add_argument("--options", nargs="+", metavar="WORD")
    chosen = options.parse_args()
    print("| file | synthesizer | worst | mean | tree x 1000 | s |")
    print("|---|---|---|---|---|---|")
    for name in chosen.files:
        data = FILES[name]()
        for title, synthesizer in synthesizers(chosen).items():
            found, seconds = [], 0.0
            for seed in range(chosen.seeds):
                start = time.perf_counter()
                drawn = synthesizer.fit(data, seed=seed).sample(seed=seed)
                seconds += time.perf_counter() - start
                pairs = utility.tabular(data, drawn, ways=2)
                apart = utility.pmse(data, drawn, **TREE).value  # type: ignore[arg-type]
                found.append((pairs.value, pairs.figures["mean_S_pMSE"], 1000 * apart))
            worst, mean, tree = np.mean(found, axis=0)
            print(
                f"| {name} | {title} | {worst:.1f} | {mean:.2f} | {tree:.2f} | {seconds / chosen.seeds:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
