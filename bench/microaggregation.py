"""How long does exact MDAV take, how does it grow, and how does it compare?

    python bench/microaggregation.py [--data FOLDER] [--largest 200000]

Seconds of processor time on one core. sdcMicro (R, 5.8.1) cannot run here: its 18.8 s on EU-SILC are quoted, CPU
seconds on a 2-core machine of the same kind. Which five columns it was given is not recorded, so three choices are
timed. A scan of all records (the definition, compiled) runs beside, on files
small enough for it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numba
import numpy as np
import polars as pl

from discreet import Microdata
from discreet.numerics.mdav import groups_of_at_least
from discreet.protect.microaggregation import Microaggregate

INCOMES = {
    "incomes": ["eqIncome", "age", "hy040n", "hy050n", "hy070n"],
    "household": ["hsize", "eqsize", "eqIncome", "age", "hy090n"],
    "benefits": ["hy040n", "hy050n", "hy070n", "hy080n", "hy090n"],
}
FILES = {
    "Tarragona.csv": ("16.9326", "2.2402"),
    "CASCrefmicrodata.csv": ("5.6922", "0.10734"),
    "EIA.csv": ("0.59193", "0.025913"),
}


@numba.njit(cache=True)
def scanned(rows, k):
    """MDAV by a scan of all records left, for each question."""
    n, p = rows.shape
    groups, left, formed, start = np.full(n, -1), n, 0, -1
    while left >= 2 * k:
        opposite = start < 0 and left >= 3 * k
        if start < 0:
            center = np.zeros(p)
            for i in range(n):
                if groups[i] < 0:
                    center += rows[i]
            start = _extreme(rows, groups, center / left, True)
        first = start
        for _ in range(k):
            groups[start] = formed
            start = _extreme(rows, groups, rows[first], False)
        left, formed = left - k, formed + 1
        start = _extreme(rows, groups, rows[first], True) if opposite else -1
    groups[groups < 0] = formed
    return groups


@numba.njit(cache=True)
def _extreme(rows, groups, center, far):
    best, winner = -1.0 if far else np.inf, -1
    for i in range(len(rows)):
        if groups[i] < 0:
            d = 0.0
            for j in range(rows.shape[1]):
                d += (center[j] - rows[i, j]) * (center[j] - rows[i, j])
            if d > best if far else d < best:
                best, winner = d, i
    return winner


def timed(work, *arguments):
    start = time.process_time()
    found = work(*arguments)
    return time.process_time() - start, found


def share_lost(rows, groups):
    sizes = np.bincount(groups)
    means = np.column_stack([np.bincount(groups, column) / sizes for column in rows.T])
    return ((rows - means[groups]) ** 2).sum() / ((rows - rows.mean(axis=0)) ** 2).sum()


def standardized(table):
    rows = table.to_numpy().astype(float)
    return (rows - rows.mean(axis=0)) / rows.std(axis=0)


def similar_people(records, columns):
    """Correlated, skewed columns, as incomes and expenditures are."""
    rng = np.random.default_rng(2024)
    common = rng.normal(size=(records, 1))
    return standardized(pl.DataFrame(np.exp(0.7 * common + 0.5 * rng.normal(size=(records, columns)))))


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--data", type=Path)
    options.add_argument("--largest", type=int, default=200_000)
    chosen = options.parse_args()
    groups_of_at_least(similar_people(100, 2), 3), scanned(similar_people(100, 2), 3)
    if chosen.data:
        print(
            f"{'k = 3, % of squares lost':<26} {'MDAV':>10} {'sdcMicro':>10} {'ranking':>10} {'sdcMicro':>10} "
            f"{'best cut':>10}"
        )
        for name, quoted in FILES.items():
            table = pl.read_csv(chosen.data / name)
            table = table.select(table.columns[5:]) if name == "EIA.csv" else table
            found = []
            for method in ("mdav", "ranking", "univariate"):
                release = Microaggregate(3, method, table.columns).apply(Microdata(table))
                found.append(100 * release.log[0].parameters["sse_share"])
            print(
                f"{name:<26} {found[0]:>10.6g} {quoted[0]:>10} {found[1]:>10.6g} {quoted[1]:>10} {found[2]:>10.6g}"
            )
        people = pl.read_csv(chosen.data / "eusilcP.csv.gz", infer_schema_length=None)
        print(
            f"\n{'eusilcP, 58,654 x 5, k = 3':<26} {'seconds':>10} {'scan':>10} {'sdcMicro':>10} {'% lost':>10} "
            "same groups"
        )
        for name, columns in INCOMES.items():
            rows = standardized(people.select(columns))
            (ours, groups), (slow, expected) = timed(groups_of_at_least, rows, 3), timed(scanned, rows, 3)
            same = (groups == expected).all()
            print(
                f"{name:<26} {ours:>10.2f} {slow:>10.2f} {'18.8':>10} {100 * share_lost(rows, groups):>10.4f} {same}"
            )
        treat = Microaggregate(3, "mdav", INCOMES["incomes"])
        print(f"{'the whole treatment':<26} {timed(treat.apply, Microdata(people))[0]:>10.2f}")
    for title, make in (
        ("independent normal", lambda n, p: np.random.default_rng(1).normal(size=(n, p))),
        ("correlated, skewed", similar_people),
    ):
        print(f"\n{title + ', k = 3':<26} {'columns':>10} {'seconds':>10} {'growth':>10}")
        for columns in (5, 10):
            before = None
            for records in (25_000, 50_000, 100_000, 200_000):
                if records > chosen.largest:
                    continue
                seconds, _ = timed(groups_of_at_least, make(records, columns), 3)
                growth = f"n^{np.log2(seconds / before):.2f}" if before else ""
                print(f"{records:<26,} {columns:>10} {seconds:>10.2f} {growth:>10}")
                before = seconds


if __name__ == "__main__":
    main()
