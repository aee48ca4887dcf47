"""How near is a SynDiffix table of Adult, and how fast; how long do all small tables of a NIST excerpt take?

tv1, tv2 and TSTR are those of `private_synthesis`, for three salts. The package syndiffix (1.0.8) is quoted: 251 s,
0.0126, 0.0315, 0.857. Needs the folder DISCREET_TEST_DATA.
"""

from __future__ import annotations

import itertools
import os
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import private_synthesis as shared

from discreet import Microdata, synth, utility


def print_k_marginals(nist: pl.DataFrame) -> None:
    """Print the k-marginal score of a table for each area and pair of columns, with the industry codes and without.

    264 codes in 20 areas leave about three people in a cell, too few to be shown.
    """
    data = Microdata(nist.with_columns(pl.col("PINCP", "POVPIP").cast(pl.Int64, strict=False)))
    others = [name for name in data.columns if name != "PUMA"]
    sets = [["PUMA", *pair] for pair in itertools.combinations(others, 2)]
    release = synth.MultiTable(columns=sets).release(data, seed=1)
    for left_out in ((), ("INDP",)):
        columns = [name for name in others if name not in left_out]
        found = utility.k_marginal(
            data, release, group="PUMA", columns=columns, top_codes={"POVPIP": 501}, sampling=False
        )
        print(f"k-marginal of {found.figures['tables']} tables: {found.value:.1f}", flush=True)


def main() -> None:
    folder = os.environ.get("DISCREET_TEST_DATA")
    if not folder:
        sys.exit("Set DISCREET_TEST_DATA to the folder of the test data.")
    train, test = (pl.read_csv(Path(folder) / "adult" / f"adult_{part}.csv.gz") for part in ("train", "test"))
    # A text that may not be shown comes out with a star: one more level.
    levels = {
        name: [*sorted({*train[name].to_list(), *test[name].to_list()}), "*"]
        for name in train.columns
        if name not in shared.RANGES
    }
    real, held = (shared.coded(frame, train, levels) for frame in (train, test))
    pairs = list(itertools.combinations(train.columns, 2))
    print("SynDiffix on Adult  salt   CPU s     tv1     tv2    TSTR")
    for target in (None, "income"):
        synth.SynDiffix(target=target).fit(Microdata(train.head(2000)), seed=0).sample(seed=0)  # compiled
        for salt in (1, 2, 3):
            start = time.process_time()
            made = synth.SynDiffix(target=target).fit(Microdata(train), seed=salt).sample(seed=salt).frame
            spent = time.process_time() - start
            made = made.with_columns(
                pl.when(pl.col(name).is_in(own)).then(pl.col(name)).otherwise(pl.lit("*")).alias(name)
                for name, own in levels.items()
            )
            copy = shared.coded(made, train, levels)
            one = np.mean([shared.distance(real[name], copy[name]) for name in train.columns])
            two = np.mean(
                [shared.distance(real[a] * 100 + real[b], copy[a] * 100 + copy[b]) for a, b in pairs]
            )
            right = shared.accuracy(made, copy, test, held)
            print(
                f"target {target or 'none':<12} {salt:4} {spent:7.2f} {one:7.4f} {two:7.4f} {right:7.3f}",
                flush=True,
            )
    nist = Microdata(pl.read_csv(Path(folder) / "nist-dce" / "national2019.csv", infer_schema_length=None))
    start = time.process_time()
    release = synth.MultiTable(size=2).release(nist, seed=1)
    print(f"{len(release.tables)} tables of national2019: {time.process_time() - start:.1f} CPU s")
    print_k_marginals(nist.frame)
    for rows, columns in ((10_000_000, 1), (1_000_000, 5), (10_000_000, 5)):
        rng = np.random.default_rng(0)
        many = Microdata(pl.DataFrame({f"x{at}": rng.normal(0, 1, rows).round(4) for at in range(columns)}))
        start = time.process_time()
        synth.SynDiffix(strategy="single").fit(many, seed=1)
        print(f"{rows:,} records, {columns} columns: {time.process_time() - start:.1f} CPU s", flush=True)


if __name__ == "__main__":
    main()
