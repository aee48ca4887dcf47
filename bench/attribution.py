"""How long do CAP and DiSCO of all 14 targets of Adult take, beside a straightforward pandas version?

    python bench/attribution.py [--repeats 5] [--copies 1]

The original is Adult; the release redraws its records with replacement and permutes every third column, so that
some of its cells are true. Each of the 14 columns is a target in turn, with age, sex, occupation and race as keys
(without itself). The pandas version counts keys and keys by target with ``groupby`` in both files and merges them;
it gives the twelve figures of the table and nothing else (no checks, no exclusions). Both start from a pandas
frame, and from their best: pandas from categories, discreet from a Polars frame too. The figures of the two must
agree to 1e-9, or the run stops.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
import polars as pl

from discreet import Microdata, datasets
from discreet.risk.disclosure_cells import COLUMNS
from discreet.risk.synthetic_disclosure import disclosure

KEYS = ["age", "sex", "occupation", "race"]


def released(original: pl.DataFrame, copies: int) -> pl.DataFrame:
    random = np.random.default_rng(2026)
    drawn = original[random.integers(0, original.height, original.height * copies)]
    return drawn.with_columns(
        pl.Series(name, drawn[name].gather(random.permutation(drawn.height)))
        for name in drawn.columns[::3]
        if name not in KEYS
    )


def with_pandas(
    original: pd.DataFrame, release: pd.DataFrame, keys: list[str], target: str
) -> dict[str, float]:
    """Count as the definitions read, one step after the other."""
    by = {"dropna": False, "observed": True}
    ours = original.groupby([*keys, target], **by).size().rename("d").reset_index()
    theirs = release.groupby([*keys, target], **by).size().rename("s").reset_index()
    cells = ours.merge(theirs, on=[*keys, target], how="outer").fillna({"d": 0, "s": 0})
    totals = original.groupby(keys, **by).size().rename("D").reset_index()
    others = release.groupby(keys, **by).size().rename("S").reset_index()
    cells = (
        cells.merge(totals, on=keys, how="left").merge(others, on=keys, how="left").fillna({"D": 0, "S": 0})
    )
    certain = (cells.s == cells.S) & (cells.s > 0)
    alone = (cells.d == cells.D) & (cells.d > 0)
    apparent = cells.merge(cells.loc[certain, keys].drop_duplicates(), on=keys, how="inner")
    n, m, both = len(original), len(release), cells.d[cells.S > 0].sum()
    guess = (cells.s / cells.S.where(cells.S > 0)).fillna(0)
    own = (cells.d / cells.D.where(cells.D > 0)).fillna(0)
    shown = cells.s[certain & (cells.d > 0)]
    return {
        "Dorig": 100 * cells.d[alone].sum() / n,
        "Dsyn": 100 * cells.s[certain].sum() / m,
        "iS": 100 * both / n,
        "DiS": 100 * apparent.d.sum() / n,
        "DiSCO": 100 * cells.d[certain].sum() / n,
        "DiSDiO": 100 * cells.d[certain & alone].sum() / n,
        "CAPd": 100 * (own * cells.d).sum() / n,
        "baseCAPd": 100 * (original[target].value_counts(dropna=False, normalize=True) ** 2).sum(),
        "DCAP": 100 * (guess * cells.d).sum() / n,
        "TCAP": 100 * cells.d[certain].sum() / both,
        "denom_max": shown.max(),
        "denom_mean": shown.mean(),
    }


def all_with_pandas(original: pd.DataFrame, release: pd.DataFrame) -> dict[str, dict[str, float]]:
    return {
        target: with_pandas(original, release, [key for key in KEYS if key != target], target)
        for target in original.columns
    }


def all_with_discreet(original: object, release: object, columns: list[str]) -> dict[str, dict[str, float]]:
    """Measure the ten plain columns in one call and each key on the other three, with checks and warnings."""
    found = {}
    plain = [column for column in columns if column not in KEYS]
    for targets, keys in [(plain, KEYS), *(([key], [k for k in KEYS if k != key]) for key in KEYS)]:
        measure = disclosure(Microdata(original, keys=keys), Microdata(release), targets)
        table = pl.DataFrame(measure.detail["targets"])
        found |= {row["target"]: {name: row[name] for name in COLUMNS} for row in table.iter_rows(named=True)}
    return found


def best_of(repeats: int, work: Callable[[], object]) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--copies", type=int, default=1, help="how often the records are repeated in both files"
    )
    options = parser.parse_args()
    frame = datasets.adult().frame
    original = pl.DataFrame(frame).drop("fnlwgt", strict=False)
    if options.copies > 1:
        original = pl.concat([original] * options.copies)
    release = released(pl.DataFrame(frame).drop("fnlwgt", strict=False), options.copies)
    columns = original.columns
    plain = [table.to_pandas() for table in (original, release)]
    texts = [name for name, dtype in original.schema.items() if dtype == pl.String]
    levels = {name: pd.CategoricalDtype(sorted(set(plain[0][name].dropna()))) for name in texts}
    coded = [table.astype(levels) for table in plain]

    ours, theirs = all_with_discreet(original, release, columns), all_with_pandas(*plain)
    for target in columns:
        for name in COLUMNS:
            assert abs(ours[target][name] - theirs[target][name]) < 1e-9, (target, name)
    runs = {
        "pandas, text columns": lambda: all_with_pandas(*plain),
        "pandas, categories": lambda: all_with_pandas(*coded),
        "discreet, from pandas": lambda: all_with_discreet(*plain, columns),
        "discreet, from Polars": lambda: all_with_discreet(original, release, columns),
    }
    seconds = {name: best_of(options.repeats, work) for name, work in runs.items()}
    print(
        f"{len(columns)} targets, {original.height:,} and {release.height:,} records, {os.cpu_count()} cores"
    )
    print(f"{'':<24}{'seconds':>9}{'times slower than discreet from Polars':>42}")
    for name, took in seconds.items():
        print(f"{name:<24}{took:>9.3f}{took / seconds['discreet, from Polars']:>42.1f}")


if __name__ == "__main__":
    main()
