"""How many cells does local suppression cost, and how long does it take?

Run: ``python bench/local_suppression.py DATA_FOLDER`` with the folder of ghanaS.csv.gz, testdata.csv and adult/.

The peer's figures are quoted, not measured here: sdcMicro 5.8.1, CPU seconds on a 2-core machine of this kind. Age
is cut into groups of equal width over its range (16 for Ghana, 12 for Adult). Both tools reach the same aim: every
record agrees with at least k records, a gap matching anything. The second line of each file is the stronger aim that
the peer's count does not promise: a gap is a value, and every class has at least k records.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl

from discreet import Microdata
from discreet.protect.suppression import LocalSuppression


def main(folder: Path) -> None:
    print(f"{os.cpu_count()} cores; peer: sdcMicro 5.8.1, quoted")
    print(
        f"{'file':<36}{'k':>3} {'gaps':<9}{'cells':>8}{'CPU s':>8}{'wall s':>8}{'peer cells':>12}{'peer s':>8}"
    )
    warm_up()
    for name, frame, k, peer_cells, peer_seconds in files(folder):
        data = Microdata(frame, keys=frame.columns)
        for missing in ("wildcard", "category"):
            cpu, wall = time.process_time(), time.perf_counter()
            release = LocalSuppression(k=k, missing=missing).apply(data)
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            cells = sum(release.log[0].suppressed_cells.values())
            peer = f"{peer_cells:>12}{peer_seconds:>8}" if missing == "wildcard" else f"{'':>20}"
            label = name if missing == "wildcard" else ""
            print(f"{label:<36}{k:>3} {missing:<9}{cells:>8,}{cpu:>8.2f}{wall:>8.2f}{peer}", flush=True)


def files(folder: Path):
    ghana = pl.read_csv(folder / "ghanaS.csv.gz", infer_schema_length=None)
    keys = ["region", "age", "sex", "relate", "ethnic", "religion"]
    yield "ghanaS 36,970 x 6", banded(ghana, 16).select(keys), 3, "9,188", "102"
    adult = pl.read_csv(folder / "adult" / "adult_arx_30162.csv.gz", separator=";")
    keys = ["sex", "age", "race", "marital-status", "education"]
    yield "Adult 30,162 x 5", banded(adult, 12).select(keys), 3, "1,906", "5.8"
    survey = pl.read_csv(folder / "testdata.csv", null_values="NA", infer_schema_length=None)
    keys = ["urbrur", "roof", "walls", "water", "electcon", "relat", "sex"]
    yield "testdata 4,580 x 7", survey.select(keys), 2, "157", ""
    yield "testdata 4,580 x 7", survey.select(keys), 3, "293", ""
    yield "made up 500,000 x 6", made_up(500_000), 5, "", ""


def banded(frame: pl.DataFrame, groups: int) -> pl.DataFrame:
    low, high = frame["age"].min(), frame["age"].max()
    inner = np.linspace(low, high, groups + 1)[1:-1]
    return frame.with_columns(age=pl.Series(np.searchsorted(inner, frame["age"].to_numpy(), side="left")))


def made_up(records: int) -> pl.DataFrame:
    random = np.random.default_rng(1)
    levels = [20, 16, 2, 8, 10, 12]
    columns = [random.exponential(n / 5, records).astype(int).clip(0, n - 1) for n in levels]
    return pl.DataFrame({f"key{i}": column for i, column in enumerate(columns)})


def warm_up() -> None:
    """Load the compiled kernels, which are made once and kept on disk."""
    data = Microdata(made_up(500), keys=[f"key{i}" for i in range(6)])
    for missing in ("wildcard", "category"):
        LocalSuppression(k=3, missing=missing).apply(data)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else os.environ["DISCREET_TEST_DATA"]))
