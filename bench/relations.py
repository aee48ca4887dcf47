"""Are relations flatter than those of plain CART? Pair by pair, on many files.

Settings were chosen looking at ``acs``, ``pay``, ``court`` and ``loans``; the other files guided nothing.

    DISCREET_TEST_DATA=PATH python bench/relations.py [--files court loans ...] [--draws 3] [--rows 8000] [--worst 3]

Each file is synthesized ``--draws`` times by `Sequential` in the order of the file and in the automatic one, and by
the naive reference: scikit-learn trees on codes in alphabetical order, leaves of five, in the order of the file. The
strength of a pair is between 0 and 1: the correlation of two numbers' ranks, the correlation ratio of a number in a
category, or Cramér's V, the last two less what chance gives. Counted are the pairs that are clearly related in the data
(0.1 or more): ``kept`` is the mean strength over that in the data, ``lost`` the mean of what is missing to it,
``flatter`` and ``steeper`` how many pairs lose at least 0.05 more, or less, of their strength than with the naive
trees. ``--worst`` names the pairs that lose most against them.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.stats import rankdata

import discreet
from discreet import Microdata
from discreet.synth import Sequential

FOLDER = Path(os.environ.get("DISCREET_TEST_DATA", "."))
CLEAR, MARGIN = 0.1, 0.05
COURT = "id c_jail_in c_jail_out decile_score.1 priors_count.1 screening_date v_screening_date"


def read(name: str, without: str = "", **options: object) -> pl.DataFrame:
    """Read a file as users do, less the columns that name a record or repeat another column."""
    return discreet.read(FOLDER / name, **options).frame.collect().drop(without.split())


def coded(name: str) -> pl.DataFrame:
    """Read a file of the PrivBayes collection; its numbers are codes."""
    frame = pl.read_csv(FOLDER / f"privbayes/{name}.tsv.gz", separator="\t", has_header=False)
    return frame.with_columns(pl.all().cast(pl.String))


FILES: dict[str, Callable[[], pl.DataFrame]] = {
    "court": lambda: read("compas/compas-scores-two-years.csv.gz", COURT),
    "loans": lambda: read("german-credit/german.csv"),
    "credit": lambda: read("tabular/creditcard_default.csv.gz"),
    "acs": lambda: pl.read_parquet(FOLDER / "tabular/acs_income_2018_holdout.parquet").with_columns(
        pl.col(pl.Categorical).cast(pl.String)
    ),
    "pay": lambda: read("laeken_ses.csv.gz"),
    "berka": lambda: read("berka/loan.csv", "loan_id account_id"),
    "districts": lambda: read("berka/trans.csv.gz", "trans_id account_id account"),
    "utilities": lambda: read("EIA.csv", "UTILITYID UTILNAME"),
    "br2000": lambda: coded("br2000"),
    "homes": lambda: read("geo/vienna_property.csv.gz"),
    "rooms": lambda: read("geo/airbnb_nyc.csv.gz"),
    "meters": lambda: read("energy/smart_meter10.csv.gz"),
}


def prepared(name: str, *, rows: int) -> pl.DataFrame:
    """Read a sample of a file, without texts that are different in most records."""
    frame = FILES[name]()
    frame = frame.sample(min(rows, frame.height), seed=1, shuffle=True)
    texts = [column for column in frame.columns if not _is_number(frame[column])]
    return frame.drop(column for column in texts if frame[column].n_unique() > frame.height / 2)


def naive_trees(frame: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Donors from scikit-learn trees on codes in alphabetical order, in the order of the file."""
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    rng, n = np.random.default_rng(seed), frame.height
    values = {name: _code(frame[name]) for name in frame.columns}
    drawn: dict[str, npt.NDArray[np.float64]] = {}
    for at, name in enumerate(frame.columns):
        if at == 0:
            drawn[name] = rng.choice(values[name], n)
            continue
        kind = DecisionTreeRegressor if _is_number(frame[name]) else DecisionTreeClassifier
        before = frame.columns[:at]
        x, fresh = (np.column_stack([held[other] for other in before]) for held in (values, drawn))
        tree = kind(min_samples_leaf=5, random_state=seed).fit(x, values[name])
        home, new = tree.apply(x), tree.apply(fresh)
        order = np.argsort(home, kind="stable")
        low, high = (np.searchsorted(home[order], new, side=side) for side in ("left", "right"))
        drawn[name] = values[name][order[low + (rng.random(n) * (high - low)).astype(np.int64)]]
    return pl.DataFrame(
        {
            name: pl.Series(own).cast(pl.Float64 if _is_number(frame[name]) else pl.String)
            for name, own in drawn.items()
        }
    )


def _is_number(series: pl.Series) -> bool:
    return series.dtype.is_numeric() or series.dtype.is_temporal()


def _code(series: pl.Series) -> npt.NDArray[np.float64]:
    if _is_number(series):
        numbers = series.to_physical().cast(pl.Float64)
        return numbers.fill_null((numbers.min() or 0.0) - 1.0).to_numpy()  # type: ignore[operator]
    return series.cast(pl.String).fill_null("").rank("dense").to_numpy().astype(np.float64)


def strengths(frame: pl.DataFrame, numbers: frozenset[str]) -> dict[tuple[str, str], float]:
    """Measure every pair of columns."""
    held = {name: _ranks(frame[name]) if name in numbers else _levels(frame[name]) for name in frame.columns}
    found = {}
    for one, other in combinations(frame.columns, 2):
        a, b = held[one], held[other]
        if one in numbers and other in numbers:
            found[one, other] = abs(float(np.corrcoef(a, b)[0, 1])) if np.ptp(a) and np.ptp(b) else 0.0
        elif one in numbers or other in numbers:
            value, level = (a, b) if one in numbers else (b, a)
            found[one, other] = _correlation_ratio(value, level.astype(np.int64))
        else:
            found[one, other] = _cramer(a.astype(np.int64), b.astype(np.int64))
    return found


def _ranks(series: pl.Series) -> npt.NDArray[np.float64]:
    return np.asarray(rankdata(_code(series)))


def _levels(series: pl.Series) -> npt.NDArray[np.float64]:
    return series.cast(pl.String).fill_null("").rank("dense").to_numpy().astype(np.float64) - 1


def _correlation_ratio(value: npt.NDArray[np.float64], level: npt.NDArray[np.int64]) -> float:
    held = np.bincount(level)
    groups, n = int((held > 0).sum()), len(value)
    if groups in (1, n) or not np.ptp(value):
        return 0.0
    means = np.bincount(level, weights=value) / np.maximum(held, 1)
    within = float(((value - means[level]) ** 2).sum()) / (n - groups)
    return float(np.sqrt(max(1 - within / (value.var() * n / (n - 1)), 0.0)))


def _cramer(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> float:
    n, r, c = len(a), int(a.max()) + 1, int(b.max()) + 1
    if min(r, c) < 2:
        return 0.0
    cells = np.unique(a * c + b, return_counts=True)
    rows, columns = np.bincount(a, minlength=r), np.bincount(b, minlength=c)
    phi = float((cells[1] ** 2 / (rows[cells[0] // c] * columns[cells[0] % c])).sum()) - 1
    phi, r_, c_ = (
        max(phi - (r - 1) * (c - 1) / (n - 1), 0.0),
        r - (r - 1) ** 2 / (n - 1),
        c - (c - 1) ** 2 / (n - 1),
    )
    return float(np.sqrt(phi / max(min(r_, c_) - 1, 1e-9)))


def compared(
    frame: pl.DataFrame, *, draws: int
) -> tuple[dict[tuple[str, str], float], dict[str, dict[tuple[str, str], float]]]:
    """Return the strengths in the data, and the mean strengths over the draws of every synthesizer."""
    numbers = frozenset(
        name for name in frame.columns if _is_number(frame[name]) and frame[name].n_unique() > 2
    )
    real = strengths(frame, numbers)
    made: dict[str, list[dict[tuple[str, str], float]]] = {}
    for seed in range(draws):
        made.setdefault("naive", []).append(strengths(naive_trees(frame, seed), numbers))
        for title, order in (("file", "file"), ("auto", "auto")):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                own = Sequential(visit_sequence=order, together="no").fit(Microdata(frame), seed=seed)
                made.setdefault(title, []).append(strengths(own.sample(seed=seed).frame, numbers))
    return real, {
        title: {pair: float(np.mean([one[pair] for one in runs])) for pair in real}
        for title, runs in made.items()
    }


def lost(real: float, made: float) -> float:
    """How much of its strength a pair has lost; a pair that became stronger has lost nothing."""
    return max(real - made, 0.0)


def main() -> None:
    """Measure and print one table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--files", nargs="+", default=list(FILES), choices=list(FILES))
    options.add_argument("--draws", type=int, default=3)
    options.add_argument("--rows", type=int, default=8000)
    options.add_argument("--worst", type=int, default=0)
    chosen = options.parse_args()
    print("| file | pairs | synthesizer | kept | lost | flatter | steeper |\n|---|---|---|---|---|---|---|")
    for name in chosen.files:
        frame = prepared(name, rows=chosen.rows)
        real, made = compared(frame, draws=chosen.draws)
        clear = [pair for pair in real if real[pair] >= CLEAR]
        for title, own in made.items():
            kept = np.mean([own[pair] / real[pair] for pair in clear]) if clear else float("nan")
            short = np.mean([lost(real[pair], own[pair]) for pair in clear]) if clear else float("nan")
            against = {p: lost(real[p], own[p]) - lost(real[p], made["naive"][p]) for p in clear}
            flatter = sum(gap > MARGIN for gap in against.values())
            steeper = sum(gap < -MARGIN for gap in against.values())
            print(
                f"| {name} | {len(clear)} | {title} | {kept:.3f} | {short:.3f} | {flatter} | {steeper} |",
                flush=True,
            )
            for pair in sorted(against, key=against.__getitem__, reverse=True)[
                : chosen.worst if title != "naive" else 0
            ]:
                print(
                    f"    {pair}: {real[pair]:.2f} in the data, {own[pair]:.2f}, naive {made['naive'][pair]:.2f}"
                )


if __name__ == "__main__":
    main()
