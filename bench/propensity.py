"""How fast is a release told from its original?

    python bench/propensity.py [--rows 5000000] [--data FOLDER]

Trees with permutations run at the sizes for which synthpop's CPU seconds are known (quoted, version 1.9-3: 20 s for 50
permutations on 5,000 × 12, 36 s for 20 permutations on 30,162 × 9); the last column is the multiple of our time. The
logit and its one-pass approximation run on ``rows`` records in each of two files with ten numbers and ten categories;
beside them stands the bare engine reading the same columns once (sums of numbers, counts of categories). Growth: the
same at a tenth, a third and all of the rows. With ``--data`` the trees run on SD2011 and Adult, else on made files of
that shape.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from discreet import Microdata
from discreet.utility import pmse


def timed(work: Callable[[], object], rounds: int = 1) -> float:
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


def made(rows: int, numbers: int, categories: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    columns = {f"n{i}": rng.normal(size=rows) for i in range(numbers)}
    columns |= {
        f"c{i}": pl.Series(rng.integers(0, 2 + i, rows).astype(str)).cast(pl.Categorical)
        for i in range(categories)
    }
    return pl.DataFrame(columns)


def reference_files(folder: Path | None) -> dict[str, tuple[pl.DataFrame, int, float]]:
    if folder is None:
        return {
            "made, 5,000 × 12": (made(5000, 4, 8, 1), 50, 20.0),
            "made, 30,162 × 9": (made(30_162, 3, 6, 1), 20, 36.0),
        }
    survey = pl.read_csv(folder / "SD2011.csv", null_values=["NA"], infer_schema_length=None)
    adult = pl.read_csv(folder / "adult" / "adult_arx_30162.csv.gz", separator=";", infer_schema_length=None)
    return {
        "SD2011, 5,000 × 12": (survey[:, :12], 50, 20.0),
        "Adult, 30,162 × 9": (adult[:30_162, :9], 20, 36.0),
    }


def shuffled(frame: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Draw every column on its own: a release that kept the margins and nothing else."""
    return frame.select(pl.col(name).shuffle(seed=seed + place) for place, name in enumerate(frame.columns))


def bare(frame: pl.DataFrame) -> None:
    """Read the columns once: sums of numbers, counts of categories."""
    numbers = [name for name in frame.columns if name.startswith("n")]
    frame.select(pl.col(numbers).mean(), pl.col(numbers).std().name.suffix(" sd"))
    for name in frame.columns[len(numbers) :]:
        frame[name].value_counts()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--data", type=Path)
    asked = parser.parse_args()

    small = Microdata(made(500, 2, 2, 1))
    for model in ("cart", "logit"):
        pmse(small, Microdata(made(500, 2, 2, 2)), model=model, n_perm=2, seed=1)
    print("Trees with permutations; the last figure is synthpop's time in multiples of ours (quoted)")
    for name, (frame, n_perm, quoted) in reference_files(asked.data).items():
        before, after = Microdata(frame), Microdata(shuffled(frame, 1))
        seconds = timed(
            lambda b=before, a=after, n=n_perm: pmse(b, a, model="cart", n_perm=n, seed=1, progress=False), 3
        )
        print(f"  {name:<24}{n_perm:>4} permutations{seconds:>9.2f} s{quoted / seconds:>9.1f} ×", flush=True)

    print(
        "Main-effects models on two large files of 20 columns; the last figure is the multiple of one bare read"
    )
    for share in (0.1, 0.3, 1.0):
        rows = int(asked.rows * share)
        frames = [made(rows, 10, 10, seed) for seed in (1, 2)]
        once = timed(lambda two=frames: [bare(frame) for frame in two])
        files = [Microdata(frame) for frame in frames]
        for model in ("linear", "logit"):
            seconds = timed(lambda f=files, m=model: pmse(*f, model=m, interactions=0))
            print(
                f"  {model:<8}{rows:>12,} records a file{seconds:>9.2f} s{seconds / once:>9.1f} ×", flush=True
            )


if __name__ == "__main__":
    main()
