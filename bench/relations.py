"""Are relations flatter than those of plain CART? Pair by pair, on many files, in the same order.

    DISCREET_TEST_DATA=PATH python bench/relations.py [--files court loans ...] [--draws 5] [--rows 3000] [--worst 3]

Settings were chosen looking at the files in ``GUIDES`` (and those of ``bench/synthesis_quality.py``); the others are
strangers, which guided nothing.

Four fifths of each file are synthesized ``--draws`` times by `Sequential` and by the naive reference (scikit-learn
trees on codes in alphabetical order, leaves of five), both in the order of the file and in the automatic one. The
strength of a pair is between 0 and 1: the correlation of two numbers' ranks, the correlation ratio of a number in a
category, or Cramér's V, the last two less what chance gives. Counted are the pairs that are clearly related in the
data (0.1 or more): ``lost`` is the mean of what is missing to the strength in the data, ``flatter`` and ``steeper``
how many pairs lose at least 0.05 more, or less, than with the naive trees in the same order, and ``clearly`` how many
are flatter by more than 0.05 and two standard errors of the difference, which the draws give. ``--worst`` names the
pairs that lose most.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.stats import rankdata

import discreet
from discreet import Microdata
from discreet.synth import Sequential, choose_order

FOLDER = Path(os.environ.get("DISCREET_TEST_DATA", "."))
CLEAR, MARGIN, ERRORS = 0.1, 0.05, 2.0
GUIDES = ("court", "loans", "credit", "acs", "pay")
Strengths = dict[tuple[str, str], float]
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
    "village": lambda: read("testdata.csv", "ori_hid sampling_weight"),
    "labour": lambda: read("free1.csv"),
    "taxes": lambda: read("CASCrefmicrodata.csv"),
    "companies": lambda: read("Tarragona.csv"),
    "ghana": lambda: read("ghanaS.csv.gz", "hhid weight"),
    "austria": lambda: read("eusilc13puf.csv.gz", "db030 rb050"),
    "firms": lambda: read("rtauargus_indiv_dt.csv.gz", "WEIGHT"),
    "elderly": lambda: coded("nltcs"),
    "people": lambda: coded("acs"),
}
STRANGERS = tuple(name for name in FILES if name not in GUIDES)


def prepared(name: str, *, rows: int) -> pl.DataFrame:
    """Read a sample of a file, without texts that are different in most records."""
    frame = FILES[name]()
    frame = frame.sample(min(rows, frame.height), seed=1, shuffle=True)
    texts = [column for column in frame.columns if not _is_number(frame[column])]
    return frame.drop(column for column in texts if frame[column].n_unique() > frame.height / 2)


def naive_trees(frame: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Donors from scikit-learn trees on codes in alphabetical order, in the order of the columns."""
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


def compared(frame: pl.DataFrame, *, draws: int) -> tuple[Strengths, dict[str, dict[str, list[Strengths]]]]:
    """Return the mean strengths in the data, and those of every draw: by order, and there ``ours`` and ``naive``.

    Every draw learns from four fifths of the records, the same for both: which of two columns that go together a tree
    splits on is chance, and the spread of the draws is to show it.
    """
    numbers = frozenset(
        name for name in frame.columns if _is_number(frame[name]) and frame[name].n_unique() > 2
    )
    parts = [frame.sample(fraction=0.8, seed=seed, shuffle=True) for seed in range(draws)]
    real = [strengths(part, numbers) for part in parts]
    made: dict[str, dict[str, list[Strengths]]] = {}
    for title in ("file", "auto"):
        order = frame.columns if title == "file" else list(choose_order(Microdata(frame)).order)
        way = Sequential(visit_sequence=order, together="no")
        runs = made.setdefault(title, {"naive": [], "ours": []})
        for seed, part in enumerate(parts):
            naive = naive_trees(part.select(order), seed).select(frame.columns)
            runs["naive"].append(strengths(naive, numbers))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                own = way.fit(Microdata(part), seed=seed).sample(seed=seed).frame
            runs["ours"].append(strengths(own, numbers))
    return {pair: float(np.mean([one[pair] for one in real])) for pair in real[0]}, made


def lost(real: float, made: float) -> float:
    """How much of its strength a pair has lost; a pair that became stronger has lost nothing."""
    return max(real - made, 0.0)


def mean_lost(real: Strengths, runs: list[Strengths]) -> dict[tuple[str, str], float]:
    """How much each clearly related pair has lost, by its mean strength over the draws."""
    clear = [pair for pair in real if real[pair] >= CLEAR]
    return {pair: lost(real[pair], float(np.mean([run[pair] for run in runs]))) for pair in clear}


def flatter(
    real: Strengths, runs: Mapping[str, list[Strengths]]
) -> dict[tuple[str, str], tuple[float, float]]:
    """How much more each pair has lost than with naive trees, and the standard error of that."""
    ours, naive = (mean_lost(real, runs[who]) for who in ("ours", "naive"))
    found = {}
    for pair in ours:
        apart = [one[pair] - other[pair] for one, other in zip(runs["naive"], runs["ours"], strict=True)]
        found[pair] = ours[pair] - naive[pair], float(np.std(apart, ddof=1) / np.sqrt(len(apart)))
    return found


def clearly_flatter(real: Strengths, runs: Mapping[str, list[Strengths]]) -> list[tuple[str, str]]:
    """Name the pairs that are flatter than with naive trees by more than the margin and the noise of the draws."""
    return [pair for pair, (gap, error) in flatter(real, runs).items() if gap > MARGIN + ERRORS * error]


def main() -> None:
    """Measure and print one table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--files", nargs="+", default=list(FILES), choices=list(FILES))
    options.add_argument("--draws", type=int, default=5)
    options.add_argument("--rows", type=int, default=3000)
    options.add_argument("--worst", type=int, default=0)
    chosen = options.parse_args()
    print(
        "| file | pairs | order | lost | lost, naive | flatter | clearly | steeper |\n|---|---|---|---|---|---|---|---|"
    )
    for name in chosen.files:
        real, made = compared(prepared(name, rows=chosen.rows), draws=chosen.draws)
        for order, runs in made.items():
            gaps = flatter(real, runs)
            ours, naive = (np.mean([*mean_lost(real, runs[who]).values()]) for who in ("ours", "naive"))
            over, under = (sum(sign * gap > MARGIN for gap, _ in gaps.values()) for sign in (1, -1))
            clearly = len(clearly_flatter(real, runs))
            print(
                f"| {name} | {len(gaps)} | {order} | {ours:.3f} | {naive:.3f} | {over} | {clearly} | {under} |",
                flush=True,
            )
            for pair in sorted(gaps, key=lambda pair: -gaps[pair][0])[: chosen.worst]:
                print(f"    {pair}: {real[pair]:.2f} in the data, {gaps[pair][0]:+.2f} ± {gaps[pair][1]:.2f}")


if __name__ == "__main__":
    main()
