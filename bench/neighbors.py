"""How fast is the distance to the closest record on mixed data, and how does it compare?

    python bench/neighbors.py [--rows 50000] [--queries 2000] [--file FILE --columns 12] [--peer-python PATH]

DCR of ``rows`` released records against ``rows`` originals, exact. The peers compare all pairs, so their time grows in
step with the number of queries: they are given ``queries`` of the released records and their time is scaled up (marked
with ~). scikit-learn searches the same distance by brute force, as Manhattan distance on range-scaled numbers and 0/1
columns of one half. Anonymeter (``MixedTypeKNeighbors``) runs in an environment of its own, made beforehand with

    python -m venv .venv-anonymeter && .venv-anonymeter/bin/pip install anonymeter

With ``--file`` the records of a Parquet or CSV file are used, the first ``columns`` of them: originals from its start,
released records after them.
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

from discreet.numerics.distance.search import nearest
from discreet.numerics.distance.space import MixedSpace

LEVELS = {"sex": 2, "marital": 6, "region": 9, "education": 16, "sector": 8, "job": 40, "origin": 25}
PEER = """
import sys, time
import anonymeter.evaluators  # first: its modules import one another in a circle
import pandas as pd
from anonymeter.neighbors.mixed_types_kneighbors import MixedTypeKNeighbors
ours, theirs = pd.read_parquet(sys.argv[1]), pd.read_parquet(sys.argv[2])
search = MixedTypeKNeighbors(n_neighbors=1, n_jobs=-1).fit(ours)
search.kneighbors(theirs.head(4))  # compiles
start = time.perf_counter()
search.kneighbors(theirs, return_distance=True)
print(time.perf_counter() - start)
"""


def made_up(rows: int, seed: int) -> pl.DataFrame:
    """People with five numbers and seven categories, all related to age and standing."""
    rng = np.random.default_rng(seed)
    standing, age = rng.normal(size=rows), rng.integers(16, 95, rows)
    numbers = {
        "age": age.astype(float),
        "income": np.round(np.exp(9 + 0.7 * standing + rng.normal(0, 0.4, rows)), -1),
        "hours": np.clip(np.round(rng.normal(38, 10, rows)), 0, 99),
        "savings": np.round(np.exp(rng.normal(7 + standing, 1.5, rows))),
        "rent": np.round(rng.gamma(4, 150, rows)),
    }
    labels = {
        name: [
            f"{name}{code}"
            for code in np.clip(
                np.floor(np.abs(standing + rng.normal(size=rows)) * levels / 3), 0, levels - 1
            ).astype(int)
        ]
        for name, levels in LEVELS.items()
    }
    return pl.DataFrame({**numbers, **labels})


def read(path: Path, columns: int, rows: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Take originals and released records from a file."""
    table = pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path)
    table = table.select(table.columns[:columns]).sample(fraction=1, shuffle=True, seed=1)
    table = table.with_columns(pl.col(pl.Categorical).cast(pl.String))
    return table[:rows], table[rows : 2 * rows]


def ours_in(ours: pl.DataFrame, theirs: pl.DataFrame, distance: str) -> tuple[float, np.ndarray]:
    """Time the search of this package, from tables to distances."""
    start = time.perf_counter()
    space = MixedSpace.fit(ours, theirs, distance=distance)
    found = nearest(space, space.place(theirs), space.place(ours), k=1)
    return time.perf_counter() - start, found.distance[:, 0]


def flat(ours: pl.DataFrame, theirs: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Lay mixed columns out so that Manhattan distance is Gower's times the number of columns."""
    numeric = [name for name, dtype in ours.schema.items() if dtype.is_numeric()]
    low = ours.select(pl.col(numeric).min()).to_numpy()
    span = ours.select(pl.col(numeric).max()).to_numpy() - low
    labels = [name for name in ours.columns if name not in numeric]
    coded = pl.concat([ours, theirs]).select(labels).to_dummies().to_numpy() / 2
    return (
        np.hstack([(ours.select(numeric).to_numpy() - low) / span, coded[: ours.height]]),
        np.hstack([(theirs.select(numeric).to_numpy() - low) / span, coded[ours.height :]]),
    )


def scikit_learn(ours: pl.DataFrame, theirs: pl.DataFrame) -> tuple[float, np.ndarray]:
    """Time scikit-learn's brute force, from coordinates to distances."""
    from sklearn.neighbors import NearestNeighbors

    known, asked = flat(ours, theirs)
    start = time.perf_counter()
    search = NearestNeighbors(n_neighbors=1, algorithm="brute", metric="manhattan", n_jobs=-1).fit(known)
    found = search.kneighbors(asked)[0][:, 0]
    return time.perf_counter() - start, found / ours.width


def anonymeter(python: str, ours: pl.DataFrame, theirs: pl.DataFrame) -> float:
    """Time Anonymeter's neighbor search in its own environment."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / "ours.parquet", Path(folder) / "theirs.parquet"]
        ours.write_parquet(paths[0])
        theirs.write_parquet(paths[1])
        done = subprocess.run(
            [python, "-c", PEER, *map(str, paths)], check=True, capture_output=True, text=True
        )
    return float(done.stdout.strip().splitlines()[-1])


def main() -> None:
    """Run and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--queries", type=int, default=2_000)
    parser.add_argument("--file", type=Path)
    parser.add_argument("--columns", type=int, default=12)
    parser.add_argument("--peer-python")
    given = parser.parse_args()
    if given.file:
        ours, theirs = read(given.file, given.columns, given.rows)
    else:
        ours, theirs = made_up(given.rows, 1), made_up(given.rows, 2)
    ours_in(ours[:300], theirs[:300], "gower")  # compiles, or loads what was compiled
    some = theirs[: given.queries]
    times = theirs.height / some.height
    gower, distances = ours_in(ours, theirs, "gower")
    euclidean, _ = ours_in(ours, theirs, "euclidean")
    brute, checked = scikit_learn(ours, some)
    if not np.allclose(distances[: some.height], checked, atol=1e-9):
        raise SystemExit("The two searches disagree.")
    rows = [
        ("discreet, Gower", gower, ""),
        ("discreet, Euclidean (standardized)", euclidean, ""),
        ("scikit-learn brute force, same distance", brute * times, "~"),
    ]
    if given.peer_python:
        rows.append(
            ("Anonymeter MixedTypeKNeighbors", anonymeter(given.peer_python, ours, some) * times, "~")
        )
    source = given.file.name if given.file else "made-up people"
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    print(f"{theirs.height:,} x {ours.height:,} records, {ours.width} columns, {source}; ", end="")
    print(f"{cores} cores, load {load:.1f}; distances of scikit-learn equal ours")
    print(f"{'search':<42}{'seconds':>10}{'ratio':>9}")
    for name, seconds, mark in rows:
        print(f"{name:<42}{mark + format(seconds, '.2f'):>10}{mark + format(seconds / gower, '.1f'):>9}")


if __name__ == "__main__":
    main()
