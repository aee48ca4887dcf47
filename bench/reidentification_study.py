"""How close do the estimators of population risk come to the truth, at every sampling fraction?

The study design of Jiang, Mosquera, Jiang, Kong and El Emam (2022) on the Adult data: Adult (complete cases) is the
population, samples of 5 % to 95 % are drawn from it, and each estimator has to guess B, the mean of one over the
population class of a record, which is known here. Six sets of keys give true risks from 1 % to 71 %.

    python bench/reidentification_study.py                       # everything, about ten minutes on 2 cores
    python bench/reidentification_study.py --fractions 0.1 0.5   # fewer fractions
    python bench/reidentification_study.py --repeats 5           # more samples of each

Writes reidentification_study.csv, .svg and .png to bench/results (or --out) and prints the tables.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from pathlib import Path

import numpy as np
import polars as pl

from discreet import Microdata, datasets
from discreet.risk.class_size_models import CodedSample, coded_sample
from discreet.risk.population_estimators import answer
from discreet.risk.superpopulation import known_population, population

ELEVEN = (
    "age",
    "workclass",
    "education",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "native-country",
    "capital",
    "income",
)
KEY_SETS = {
    "3 keys": ("age", "race", "sex"),
    "5 keys, no age": ("workclass", "marital-status", "relationship", "race", "sex"),
    "5 keys": ("age", "education", "marital-status", "race", "sex"),
    "6 keys": ("age", "workclass", "education", "marital-status", "race", "sex"),
    "9 keys": ELEVEN[:9],
    "11 keys": ELEVEN,
}
ESTIMATORS = (
    "average", "gaussian", "d-vine", "log-linear", "pitman", "dankar", "snb", "zayatz", "ewens", "chao", "mu-argus",
)  # fmt: skip
FRACTIONS = tuple(round(0.05 * step, 2) for step in range(1, 20))
#: A full search for a log-linear model takes up to a minute on larger tables than this.
LOG_LINEAR_CELLS = 200_000


def adult() -> pl.DataFrame:
    frame = datasets.adult().frame.drop_nulls()
    return frame.with_columns(capital=pl.col("capital-gain") - pl.col("capital-loss"))


def estimates(sample: CodedSample, seed: int) -> dict[str, tuple[float | None, float]]:
    """B and seconds by estimator; None where it is not estimable, nothing where it is not tried."""
    found: dict[str, tuple[float | None, float]] = {}
    for name in ESTIMATORS:
        if name in ("gaussian", "d-vine"):
            continue
        if name == "log-linear" and np.prod([float(levels) for levels in sample.shape]) > LOG_LINEAR_CELLS:
            continue
        start = time.perf_counter()
        answered = answer(sample, name, 3, seed, quick=True)
        seconds = time.perf_counter() - start
        found[name] = (answered.estimate.risk, seconds)
        for part in answered.parts:
            found[part.estimate.estimator] = (part.estimate.risk, seconds / 2)
    return found


def study(fractions: tuple[float, ...], repeats: int, seed: int) -> pl.DataFrame:
    frame = adult()
    rows = []
    for label, keys in KEY_SETS.items():
        everybody = Microdata(frame, keys=keys)
        for fraction in fractions:
            for repeat in range(repeats):
                drawn = frame.sample(fraction=fraction, seed=seed + 1000 * repeat + round(fraction * 100))
                data = Microdata(drawn, keys=keys)
                truth = known_population(data, everybody).figures
                sample = coded_sample(
                    data, keys, "category", population_size=frame.height, sampling_fraction=None
                )
                for name, (risk, seconds) in estimates(sample, seed + repeat).items():
                    rows.append(
                        {
                            "keys": label,
                            "fraction": fraction,
                            "repeat": repeat,
                            "estimator": name,
                            "true_A": truth["A"],
                            "true_B": truth["B"],
                            "B": risk,
                            "error": None if risk is None else risk - truth["B"],
                            "seconds": seconds,
                        }
                    )
        print(f"  {label}: done", flush=True)
    return pl.DataFrame(rows, infer_schema_length=None)


def by_estimator(results: pl.DataFrame) -> pl.DataFrame:
    error = pl.col("error")
    table = results.group_by("estimator").agg(
        samples=pl.len(),
        not_estimable=error.is_null().sum(),
        median_error=error.median(),
        median_size=error.abs().median(),
        worst_size=error.abs().max(),
        below_005=(error.abs() < 0.05).sum() / error.is_not_null().sum(),
        seconds=pl.col("seconds").mean(),
    )
    order = {name: i for i, name in enumerate(ESTIMATORS)}
    return table.sort(pl.col("estimator").replace_strict(order))


def by_fraction(results: pl.DataFrame) -> pl.DataFrame:
    grouped = results.group_by("fraction", "estimator").agg(size=pl.col("error").abs().median())
    wide = grouped.pivot("estimator", index="fraction", values="size").sort("fraction")
    return wide.select("fraction", *(name for name in ESTIMATORS if name in wide.columns))


def draw(results: pl.DataFrame, out: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    names = [name for name in ESTIMATORS if name in results["estimator"].unique().to_list()]
    columns = 4
    figure, axes = plt.subplots(-(-len(names) // columns), columns, figsize=(13, 8), sharex=True, sharey=True)
    for axis, name in zip(axes.flat, names, strict=False):
        for label in KEY_SETS:
            part = results.filter(pl.col("estimator") == name, pl.col("keys") == label)
            line = part.group_by("fraction").agg(pl.col("error").median()).sort("fraction")
            axis.plot(line["fraction"], line["error"], marker=".", linewidth=1, label=label)
        axis.axhspan(-0.05, 0.05, color="0.92", zorder=0)
        axis.axhline(0, color="0.6", linewidth=0.8)
        axis.set_title(name, fontsize=10)
        axis.set_ylim(-0.35, 0.35)
    for axis in list(axes.flat)[len(names) :]:
        axis.axis("off")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    list(axes.flat)[-1].legend(handles, labels, loc="center", frameon=False)
    figure.supxlabel("sampling fraction")
    figure.supylabel("estimated minus true B (grey: within 0.05)")
    figure.suptitle("Error of the estimators of sample-to-population risk, Adult as population")
    figure.tight_layout()
    for kind in ("svg", "png"):
        figure.savefig(
            out / f"reidentification_study.{kind}",
            dpi=110,
            metadata={"Date": None} if kind == "svg" else None,
        )
    plt.close(figure)


def timing(seed: int) -> None:
    """The whole measure, with its interval, on the 11 keys of the paper."""
    frame = adult()
    for fraction in (0.3, 0.95):
        data = Microdata(frame.sample(fraction=fraction, seed=seed), keys=ELEVEN)
        start = time.perf_counter()
        found = population(data, population_size=frame.height, seed=seed).figures
        seconds = time.perf_counter() - start
        print(
            f"  copula average, 11 keys, {data.frame.height:,} of {frame.height:,} records: {seconds:.1f} s "
            f"(B {found['B']:.3f}, 95 % {found['B_low']:.3f} to {found['B_high']:.3f}); limit 120 s: "
            f"{'met' if seconds < 120 else 'NOT met'}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fractions", type=float, nargs="+", default=FRACTIONS)
    parser.add_argument("--repeats", type=int, default=1, help="samples drawn at each fraction")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    pl.Config.set_tbl_rows(40).set_tbl_cols(20).set_tbl_width_chars(160).set_float_precision(3)
    pl.Config.set_tbl_hide_column_data_types(True).set_tbl_hide_dataframe_shape(True)
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores")
    start = time.perf_counter()
    results = study(tuple(chosen.fractions), chosen.repeats, chosen.seed)
    results.write_csv(chosen.out / "reidentification_study.csv", float_precision=6)
    draw(results, chosen.out)
    print(
        f"\nError of B by estimator, {results['keys'].n_unique()} key sets, {time.perf_counter() - start:.0f} s"
    )
    print(by_estimator(results))
    print(
        f"log-linear stands only on the key sets with up to {LOG_LINEAR_CELLS:,} cells, the easier ones: "
        "do not compare its row with the others"
    )
    print("\nMedian size of the error by sampling fraction")
    print(by_fraction(results))
    print("\nTime of the whole measure")
    timing(chosen.seed)


if __name__ == "__main__":
    main()
