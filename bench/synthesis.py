"""How fast is sequential synthesis by trees, how does it grow, and what does it take from memory?

    python bench/synthesis.py [--rows 48842 200000 1000000] [--order file|auto] [--file SD2011.csv]
                              [--methods cart rf bag copula] [--naive]
                              [--peer-python PATH] [--sdv-python PATH] [--peer-limit 600]

Adult (48,842 records, 15 columns) is synthesized by CART in a process of its own: fit, sample, peak memory. Larger
files are Adult resampled, with age and fnlwgt jittered. ``--naive`` does the same with scikit-learn trees on codes in
alphabetical order, used as a reader of their manual would. The method ``copula`` is our `GaussianCopula`. The peers
py-synthpop and SDV (GaussianCopulaSynthesizer, as it comes) run in environments of their own, made beforehand with

    python -m venv .venv-synthpop && .venv-synthpop/bin/pip install py-synthpop "pandas<2" "numpy<2" "pyarrow<15"
    python -m venv .venv-sdv && .venv-sdv/bin/pip install sdv pyarrow

and are stopped after ``--peer-limit`` seconds. Seconds are wall clock on an otherwise idle machine; the compiled
kernels are warm (their first use on a machine takes some ten seconds more, once).

Quoted, for other machines of this size (synthpop 1.9-3 for R, CPU seconds): Adult 30,162 x 9 in a favorable order 6.8,
in file order not finished; SD2011 5,000 x 35 in file order not finished after 25 minutes, reordered 15; SD2011 seven
columns: cart 0.6, rf 27, bag 21. SynDiffix on Adult, 15 columns: 250. DataSynthesizer, correlated: 600.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from discreet import datasets

OURS = """
import sys, time
def peak_kb():
    # The peak of this program alone; getrusage would count the one that started it too.
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
import polars as pl
from discreet import Microdata
from discreet.synth import GaussianCopula, Sequential
path, order, method = sys.argv[1:4]
data = Microdata(pl.read_parquet(path))
small = Microdata(data.frame.head(500))
model = GaussianCopula() if method == "copula" else Sequential(method=method, visit_sequence=order)
model.fit(small, seed=1).sample(seed=1)
before = peak_kb()
start, cpu = time.perf_counter(), time.process_time()
fitted = model.fit(data, seed=1)
fit = time.perf_counter() - start
start = time.perf_counter()
fitted.sample(seed=1)
draw = time.perf_counter() - start
peak = peak_kb()
print(fit, draw, time.process_time() - cpu, (peak - before) / 1024, data.frame.estimated_size() / 2**20)
"""
NAIVE = """
import sys, time
def peak_kb():
    # The peak of this program alone; getrusage would count the one that started it too.
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
import numpy as np, polars as pl
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
frame = pl.read_parquet(sys.argv[1])
before = peak_kb()
start, cpu = time.perf_counter(), time.process_time()
rng, n = np.random.default_rng(1), frame.height
numbers = [c for c in frame.columns if frame[c].dtype.is_numeric()]
coded = {c: (frame[c].cast(pl.Float64).fill_null(-1e6) if c in numbers else
             frame[c].fill_null("missing").rank("dense").cast(pl.Float64)).to_numpy() for c in frame.columns}
drawn, fit = {}, 0.0
for at, name in enumerate(frame.columns):
    if at == 0:
        drawn[name] = coded[name][rng.integers(n, size=n)]
        continue
    x = np.column_stack([coded[c] for c in frame.columns[:at]])
    began = time.perf_counter()
    kind = DecisionTreeRegressor if name in numbers else DecisionTreeClassifier
    tree = kind(min_samples_leaf=5, min_samples_split=15, random_state=1).fit(x, coded[name])
    home = tree.apply(x)
    order = np.argsort(home, kind="stable")
    fit += time.perf_counter() - began
    fall = tree.apply(np.column_stack([drawn[c] for c in frame.columns[:at]]))
    first = np.searchsorted(home[order], fall, "left")
    size = np.searchsorted(home[order], fall, "right") - first
    drawn[name] = coded[name][order[first + (rng.random(n) * size).astype(int)]]
peak = peak_kb()
print(fit, time.perf_counter() - start - fit, time.process_time() - cpu, (peak - before) / 1024,
      frame.estimated_size() / 2**20)
"""
PEER = """
import sys, time
def peak_kb():
    # The peak of this program alone; getrusage would count the one that started it too.
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
import pandas as pd
from synthpop import Synthpop
frame = pd.read_parquet(sys.argv[1])
kinds = {}
for name in frame.columns:
    if pd.api.types.is_numeric_dtype(frame[name]):
        kinds[name] = "int" if pd.api.types.is_integer_dtype(frame[name]) else "float"
    else:
        frame[name] = frame[name].fillna("missing").astype("category")
        kinds[name] = "category"
before = peak_kb()
model = Synthpop()
start, cpu = time.perf_counter(), time.process_time()
model.fit(frame, kinds)
fit = time.perf_counter() - start
start = time.perf_counter()
model.generate(len(frame))
draw = time.perf_counter() - start
peak = peak_kb()
print(fit, draw, time.process_time() - cpu, (peak - before) / 1024, frame.memory_usage(deep=True).sum() / 2**20)
"""

SDV = """
import sys, time, warnings
warnings.filterwarnings("ignore")
def peak_kb():
    # The peak of this program alone; getrusage would count the one that started it too.
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
import pandas as pd
from sdv.metadata import Metadata
from sdv.single_table import GaussianCopulaSynthesizer
frame = pd.read_parquet(sys.argv[1])
kinds = Metadata.detect_from_dataframes({"file": frame})
before = peak_kb()
start, cpu = time.perf_counter(), time.process_time()
model = GaussianCopulaSynthesizer(kinds)
model.fit({"file": frame})
fit = time.perf_counter() - start
start = time.perf_counter()
model.sample(len(frame))
draw = time.perf_counter() - start
peak = peak_kb()
print(fit, draw, time.process_time() - cpu, (peak - before) / 1024, frame.memory_usage(deep=True).sum() / 2**20)
"""


def enlarged(rows: int) -> pl.DataFrame:
    """Adult itself, or Adult resampled to more records with two columns jittered."""
    adult = datasets.adult().frame
    adult = adult.collect() if isinstance(adult, pl.LazyFrame) else adult
    if rows == adult.height:
        return adult
    rng = np.random.default_rng(1)
    return adult[rng.integers(adult.height, size=rows)].with_columns(
        (pl.col("age") + pl.Series(rng.integers(-2, 3, rows))).clip(17, 90),
        pl.col("fnlwgt") + pl.Series(rng.integers(-3000, 3000, rows)),
    )


def measured(python: str, code: str, *arguments: str, limit: float) -> str:
    """Run one job in a process of its own and write its figures as a table row."""
    try:
        done = subprocess.run(
            [python, "-c", code, *arguments], capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return f"| stopped after {limit:.0f} s | | | | |"
    if done.returncode:
        said = done.stderr.strip().splitlines()
        return f"| crashed (exit code {done.returncode}): {said[-1][:60] if said else ''} | | | | |"
    fit, draw, cpu, memory, size = (float(figure) for figure in done.stdout.strip().splitlines()[-1].split())
    return f"| {fit:.2f} | {draw:.2f} | {fit + draw:.2f} | {cpu:.2f} | {memory:.0f} ({memory / size:.1f} x) |"


def main() -> None:
    """Measure and print one table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--rows", type=int, nargs="+", default=[48_842, 200_000])
    options.add_argument("--order", default="file")
    options.add_argument("--methods", nargs="+", default=["cart"])
    options.add_argument("--file", help="a CSV file to be synthesized as it is")
    options.add_argument("--columns", nargs="+", help="columns of that file")
    options.add_argument("--naive", action="store_true")
    options.add_argument("--peer-python", help="Python of an environment that has py-synthpop")
    options.add_argument("--sdv-python", help="Python of an environment that has SDV")
    options.add_argument("--peer-limit", type=float, default=600.0)
    chosen = options.parse_args()
    print("| job | fit s | draw s | both s | CPU s | peak memory above the data, MB (x data) |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        files = {f"Adult, {rows:,} x 15": enlarged(rows) for rows in chosen.rows}
        if chosen.file:
            own = pl.read_csv(chosen.file, null_values=["", "NA"], infer_schema_length=None)
            own = own.select(chosen.columns) if chosen.columns else own
            files = {f"{Path(chosen.file).name}, {own.height:,} x {own.width}": own}
        for title, frame in files.items():
            path = Path(folder) / "data.parquet"
            frame.write_parquet(path)
            for method in chosen.methods:
                row = measured(sys.executable, OURS, str(path), chosen.order, method, limit=3600)
                print(f"| {title}, {method}, {chosen.order} order {row}", flush=True)
            if chosen.naive:
                print(
                    f"| {title}, scikit-learn naively {measured(sys.executable, NAIVE, str(path), limit=3600)}",
                    flush=True,
                )
            peers = [
                ("py-synthpop", chosen.peer_python, PEER),
                ("SDV GaussianCopula", chosen.sdv_python, SDV),
            ]
            for name, python, code in peers:
                if python:
                    row = measured(python, code, str(path), limit=chosen.peer_limit)
                    print(f"| {title}, {name} {row}", flush=True)


if __name__ == "__main__":
    main()
