"""How many cells does local suppression cost, and how long does it take?

Run: ``python bench/local_suppression.py DATA_FOLDER`` with the folder of ghanaS.csv.gz, testdata.csv and adult/.

Every record that lacks company (that has fewer than k complete equals) needs a gap of its own, so their number is the
least that any method can reach; it is printed as the bound, and the ratio is cells to bound. Under both rules a record
that is complete afterwards has k complete equals. With ``category`` a gap is a value and every class has k records.
With ``wildcard`` a record with gaps agrees with k records that show no fewer values, a gap matching anything.

The peer's figures are quoted, not measured here: sdcMicro (5.8.1 for testdata; the version behind the other two was
not stated), CPU seconds on a 2-core machine of this kind. How the peer's run cut age into 16 (Ghana) and 12 (Adult)
groups was not stated either (its bound on Ghana was 8,911); here they are of equal width over the range, or of nearly
equal size with ``--equal-size``. The wildcard lines are to be held against the peer.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl

from discreet import Microdata
from discreet.protect.local_suppression import LocalSuppression

EQUAL_SIZE = "--equal-size" in sys.argv


def main(folder: Path) -> None:
    cut = "size" if EQUAL_SIZE else "width"
    print(f"{os.cpu_count()} cores; age in groups of equal {cut}; peer: sdcMicro, quoted")
    print(
        f"{'file':<22}{'k':>3} {'gaps':<9}{'bound':>8}{'cells':>8}{'ratio':>8}{'CPU s':>8}{'wall s':>8}"
        f"{'peer cells':>12}{'peer s':>8}"
    )
    warm_up()
    for name, frame, k, peer_cells, peer_seconds in files(folder):
        data = Microdata(frame, keys=frame.columns)
        sizes = frame.group_by(frame.columns).len()["len"]
        bound = int(sizes.filter(sizes < k).sum())
        for missing in ("wildcard", "category"):
            cpu, wall = time.process_time(), time.perf_counter()
            release = LocalSuppression(k=k, missing=missing).apply(data)
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            cells = sum(release.log[0].suppressed_cells.values())
            peer = f"{peer_cells:>12}{peer_seconds:>8}" if missing == "wildcard" else f"{'':>20}"
            label = name if missing == "wildcard" else ""
            print(
                f"{label:<22}{k:>3} {missing:<9}{bound:>8,}{cells:>8,}{cells / bound:>8.4f}{cpu:>8.2f}{wall:>8.2f}"
                f"{peer}",
                flush=True,
            )


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
    yield "made up 1,000,000 x 6", made_up(1_000_000), 5, "", ""


def banded(frame: pl.DataFrame, groups: int) -> pl.DataFrame:
    age = frame["age"].to_numpy()
    shares = np.arange(1, groups) / groups
    inner = np.quantile(age, shares) if EQUAL_SIZE else age.min() + shares * (age.max() - age.min())
    return frame.with_columns(age=pl.Series(np.searchsorted(inner, age, side="left")))


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
    named = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    main(Path(named[0] if named else os.environ["DISCREET_TEST_DATA"]))
