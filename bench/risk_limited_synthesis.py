"""What does it cost to keep attackers out of a synthetic file? The frontier of risk, two-way distance and prediction.

    DISCREET_TEST_DATA=PATH python bench/risk_limited_synthesis.py [--files adult survey ...] [--plot frontier.svg]
                                                                   [--attacks 8000] [--rows 40000] [--seed 1]

Every file is cut in a training part and people who are no part of anything (for Adult the test file that comes with
it). From the training part `Sequential` draws a file at each rung of the ladder of `discreet.workflow.attacked_drafts`:
as given, numbers between those of others, values that few share from larger groups, leaves of 20, 60, 200 and 500,
and ``limit``, what `synthesize_within_risk` hands back at 0.05 with people of the training part set aside. Each file
is then attacked with seeds of its own, and held against those people whom neither a model nor a step has seen.
``worst`` is the highest risk of all ways that were tried, ``tv2`` the mean distance of the tables of two columns,
``tstr`` the accuracy on real people of boosted trees trained on the synthetic file (``real``: trained on the real
one). Two files (``credit``, ``incomes``) were not looked at while the ladder was made.

Adult (1,000 attacks for the first line, 4,000 for the first limit, 8,000 for the others; risks are points,
and the upper ends of their intervals lie 0.01 to 0.06 above them; real people as training data give 0.8716):

    rung                   one column  several  tree    income  marital  age     tv2     tstr
    as given                 0.769      0.215   0.070    0.163    0.083  0.115  0.0096  0.8630
    leaf 60, shared by 10   -0.008      0.031   0.022    0.043    0.055  0.023  0.0136  0.8605
    leaf 200, shared by 10  -0.009      0.027  -0.013    0.040    0.039  0.005  0.0127  0.8498
    limit, by upper ends    -0.007     -0.038  -0.011   -0.055   -0.012  0.022  0.0181  0.8408
    limit, by what is found -0.010      0.009   0.028   -0.036    0.006  0.009  0.0165  0.8374
    limit, sure gains only  -0.005      0.027   0.024   -0.040    0.018  0.023  0.0156  0.8378
    limit, as it is         -0.007      0.015   0.061   -0.014    0.007  0.015  0.0144  0.8535
    the same with seed 2    -0.004      0.029   0.021    0.022    0.016  0.022  0.0145  0.8539

(The first three limits: every leaf of 500 records, when the upper ends had to be shown; those of income and marital
status alone, when an estimate above the limit was enough for a step; and income at 500, marital status at 200 and the
others at 60, since a gain that may be none asks for no step where an interval is too wide to show anything. The last
two: steps go from cheap to dear, labels are shared and numbers are not, and looks attack other people every time. Five
more files are in ``docs/about/what-keeping-attackers-out-costs.md``.)

How wide intervals are: where a secret is guessed right about 80 of 100 strangers, 6,500 people set aside leave the risk
0.06 to either side, and all 32,561 and 16,281 people of Adult 0.038. Only a file without any risk is shown to be below
0.05, and that by luck. Different controls differ as much: one file of the bank's clients (leaf 60, shared by 10)
gave -0.084 (-0.231 to 0.046) for guessing ``y`` beside 3,000 people of its own file and 0.055 (-0.067 to 0.164) beside
3,000 others, since 86 of 100 strangers are guessed right; by one column it gave 0.014 and 0.019.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl

from discreet import Microdata, utility
from discreet.attack.attack_battery import attacked
from discreet.synth import Sequential
from discreet.workflow.synthesis_within_risk import synthesize_within_risk

FOLDER = Path(os.environ.get("DISCREET_TEST_DATA", "."))


def read(name: str, without: str = "", **options: object) -> pl.DataFrame:
    """Read a CSV file as it is, less the columns that name a record."""
    return pl.read_csv(FOLDER / name, infer_schema_length=None, **options).drop(without.split())  # type: ignore[arg-type]


def adult() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Give the training file, and the test file as control."""
    train, test = (read(f"adult/adult_{part}.csv.gz", null_values="?") for part in ("train", "test"))
    return train, test.with_columns(pl.col("income").str.strip_chars("."))


# Name: how it is read, the column that is predicted, the secrets.
FILES: dict[str, tuple[Callable[[], pl.DataFrame], str, list[str]]] = {
    "adult": (lambda: pl.concat(adult()), "income", ["income", "marital-status", "age"]),
    "survey": (lambda: read("SD2011.csv", null_values=["", "NA"]), "smoke", ["smoke", "income", "edu"]),
    "bank": (lambda: read("tabular/bank_marketing.csv.gz"), "y", ["y", "balance", "job"]),
    "census": (
        lambda: read("nist-dce/national2019.csv", "PWGTP WGTP", null_values=["N"]),
        "SEX",
        ["MSP", "PINCP_DECILE", "RAC1P"],
    ),
    "credit": (
        lambda: read("tabular/creditcard_default.csv.gz"),
        "has_default",
        ["has_default", "education", "limit_bal"],
    ),
    "incomes": (
        lambda: pl.read_parquet(FOLDER / "tabular/acs_income_2018_holdout.parquet"),
        "Insurance through a current or former employer or union",
        ["Marital Status", "Income", "Race"],
    ),
    "silc": (lambda: read("laeken_eusilc.csv.gz", "rb030 db030"), "pl030", ["pl030", "age", "py010n"]),
}


def ladder() -> dict[str, Sequential]:
    """Name the rungs."""
    rungs = {"as given": Sequential(), "between": Sequential(smoothing="between")}
    for leaf, shared in ((5, 10), (20, 10), (60, 10), (200, 10), (500, 20)):
        options = {"cart": {"min_leaf": leaf, "shared_by": shared}}
        rungs[f"leaf {leaf}, shared by {shared}"] = Sequential(smoothing="between", method_options=options)
    options = {"cart": {"min_leaf": 200, "shared_by": 10}}
    rungs["leaf 200, shared by 10, adaptive"] = Sequential(smoothing="adaptive", method_options=options)
    return rungs


def parts(name: str, rows: int, seed: int) -> tuple[Microdata, Microdata, str, list[str]]:
    """Cut a file in what models learn from and people who are no part of anything."""
    reader, target, secrets = FILES[name]
    if name == "adult":
        train, test = adult()
    else:
        frame = reader()
        frame = frame.sample(min(rows, frame.height), shuffle=True, seed=seed)
        cut = int(frame.height * 2 / 3)
        train, test = frame[:cut], frame[cut:]
    target = target or train.columns[-1]
    return (
        Microdata(train),
        Microdata(test),
        target,
        [one for one in secrets or [target] if one in train.columns],
    )


def accuracy(learned: pl.DataFrame, asked: pl.DataFrame, target: str) -> float:
    """Train boosted trees on one file and predict another."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    learned, asked = (frame.drop_nulls(target) for frame in (learned, asked))
    columns = [name for name in learned.columns if name != target]
    texts = [name for name in columns if not learned[name].dtype.is_numeric()]
    coded = []
    for frame in (learned, asked):
        lines = []
        for name in columns:
            if name in texts:
                levels = pl.concat([learned[name], asked[name]]).cast(pl.String).drop_nulls().unique().sort()
                codes = frame[name].cast(pl.String).cast(pl.Enum(levels)).to_physical()
                # Trees of scikit-learn take up to 255 levels as such.
                lines.append(codes.cast(pl.Float64).fill_null(float("nan")).to_numpy())
            else:
                lines.append(frame[name].cast(pl.Float64).fill_null(float("nan")).to_numpy())
        coded.append(np.column_stack(lines))
    few = [name in texts and learned[name].n_unique() < 200 for name in columns]
    model = HistGradientBoostingClassifier(categorical_features=few, early_stopping=False, random_state=1)
    model.fit(coded[0], learned[target].cast(pl.String).to_list())
    return float(np.mean(model.predict(coded[1]) == np.array(asked[target].cast(pl.String).to_list())))


def drawn(
    train: Microdata, secrets: list[str], asked: argparse.Namespace
) -> Iterator[tuple[str, Microdata, Microdata]]:
    """Draw a file on each rung, and the one that keeps the limit, each with the people its model learned from."""
    chosen = ladder()
    for name, synthesizer in chosen.items():
        if asked.rungs is None or name in asked.rungs:
            yield name, synthesizer.fit(train, seed=asked.seed).sample(seed=asked.seed + 1), train
    if asked.rungs is None or "limit" in asked.rungs:
        found = synthesize_within_risk(train, 0.05, secrets=secrets, attacks=asked.attacks, seed=asked.seed)
        for line in found.lines:
            print(f"<!-- {line} -->")
        yield "limit", found.file, found.used


def main() -> None:
    """Print one table, and draw the frontier."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--files", nargs="+", default=list(FILES), choices=list(FILES))
    options.add_argument("--rungs", nargs="+", help="only these, e.g. 'as given' limit")
    options.add_argument("--attacks", type=int, default=8_000)
    options.add_argument("--rows", type=int, default=40_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--plot", type=Path)
    asked = options.parse_args()
    points: dict[str, list[tuple[float, float]]] = {}
    print("| file | rung | worst | upper end | by | each way | tv2 | tstr | real | CPU s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for file in asked.files:
        train, others, target, secrets = parts(file, asked.rows, asked.seed)
        real = accuracy(train.frame, others.frame, target)
        began = time.process_time()
        for rung, made, learned in drawn(train, secrets, asked):
            spent = time.process_time() - began
            gains = attacked(
                learned,
                made,
                others,
                secrets=secrets,
                attacks=asked.attacks,
                seed=asked.seed + 1_000,
                all_kinds=True,
            )
            pairs = utility.tabular(train, made, ways=2).figures["mean_SPECKS"]
            by = gains.table.sort("risk_high", descending=True)["attack"][0]
            each = "; ".join(
                f"{row['way']} {row['risk']:.3f} ({row['risk_high']:.3f})"
                for row in gains.table.iter_rows(named=True)
            )
            tstr = accuracy(made.frame, others.frame, target)
            print(
                f"| {file} | {rung} | {gains.worst:.3f} | {gains.top:.3f} | {by} | {each} | {pairs:.4f} | "
                f"{tstr:.4f} | {real:.4f} | {spent:.1f} |",
                flush=True,
            )
            points.setdefault(file, []).append((float(pairs), gains.worst))  # type: ignore[arg-type]
            began = time.process_time()
    if asked.plot:
        draw(points, asked.plot)


def draw(points: dict[str, list[tuple[float, float]]], path: Path) -> None:
    """Draw risk against distance, one line a file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.add_subplot()
    for file, line in points.items():
        axes.plot(*zip(*line, strict=True), marker="o", label=file)
    axes.axhline(0.05, color="grey", linewidth=0.8)
    axes.set_xlabel("records in other cells of the tables of two columns (mean)")
    axes.set_ylabel("highest risk beyond the control")
    axes.legend()
    figure.savefig(path)


if __name__ == "__main__":
    main()
