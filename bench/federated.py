"""What does a secure likelihood cost, by rows and by sites, beside the pooled one? And merging trees, and growth?

    python bench/federated.py [--rows 1000000] [--many]

The yardstick is the same likelihood of pooled rows (NumPy and LAPACK) in the same run. Processor seconds depend less on
who else uses the machine: these were taken on two cores with twenty jobs waiting, where the clock says five times as
much.

| evaluation | processor | pooled | off by |
|---|---|---|---|
| 10,000 rows, 3 sites of 2 columns | 0.01 s | 0.004 s | 4e-7 |
| 100,000 rows, 3 sites of 2 columns | 0.10 s | 0.022 s | 3e-7 |
| 1,000,000 rows, 3 sites of 2 columns | 0.74 s | 0.128 s | 2e-6 |
| 10,000,000 rows, in chunks of 16,384 | 16.7 s (the first, with reading) | | 5e-7 |
| 100,000 rows, 16 columns at 2, 4, 8, 16 sites | 0.53, 0.36, 0.29, 0.55 s | 0.03 s | 3e-6 |
| 100,000 rows, 2, 4, 8 sites of 2 columns | 0.05, 0.09, 0.29 s | 0.009, 0.011, 0.029 s | 6e-7 |

Cost is linear in rows, and no more than linear in the sites that hold the same columns. Where every further site
brings columns of its own it grows faster than the sites: each holder masks and passes on the conditional means of all
columns that come after it, n × (p - 1)(K - 1)/2 numbers or so, and the pooled likelihood grows by the square of the
columns as well. The masks of means that are passed on are what the time goes into; the protocol cannot do without
them, because the coordinator would read the means of single rows.

Merging ten trees of depth 3: 0.002 s (81 nodes). Growth model, 244 rows, 7 waves, 3 sites: 0.34 s in process (115
evaluations); over HTTPS on loopback, where one waits for the other, 2.7 s of all four processes together right after
the start of the sites (73 evaluations, expected standard errors) and 3.5 s with observed ones (115 evaluations). On the
clock it was 13 and 18 s while thirty jobs waited for the two cores.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from discreet.federated import SecureMLE, latent_growth, merge_trees
from discreet.federated.normal_likelihood import minus_two_log_likelihood


def cpu(work, times: int = 3) -> tuple[float, float, object]:
    best, wall, found = float("inf"), float("inf"), None
    for _ in range(times):
        started, clock = time.process_time(), time.perf_counter()
        found = work()
        best = min(best, time.process_time() - started)
        wall = min(wall, time.perf_counter() - clock)
    return best, wall, found


def evaluation(rows: int, sites: int, columns: int = 2) -> None:
    size = sites * columns
    rng = np.random.default_rng(1)
    x = rng.normal(size=(rows, size))
    mu, sigma = np.zeros(size), np.eye(size) * 0.9 + 0.1
    secure = SecureMLE(np.hsplit(x, sites))
    secure.log_likelihood(mu, sigma)
    seconds, wall, value = cpu(lambda: secure.log_likelihood(mu, sigma))
    bare, _, direct = cpu(lambda: minus_two_log_likelihood(x, mu, sigma))
    print(
        f"{rows:>10,} rows x {sites:>2} sites x {columns} columns: {seconds:.2f} s of processor, {wall:.2f} s on the "
        f"clock, pooled {bare:.3f} s, off by {abs(value - direct):.1e}"
    )


def trees() -> None:
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(1)
    grown = []
    for _ in range(10):
        x = rng.normal(size=(2000, 6))
        y = (x[:, 0] + x[:, 1] * x[:, 2] + rng.normal(size=2000) > 0).astype(int)
        grown.append(DecisionTreeClassifier(max_depth=3, random_state=0).fit(x, y))
    seconds, _, merged = cpu(lambda: merge_trees(grown))
    print(f"merging ten trees of depth 3: {seconds:.3f} s of processor, {merged.nodes} nodes")


def growth() -> None:
    x = grown_people()
    seconds, wall, fit = cpu(lambda: SecureMLE(np.hsplit(x, [3, 5])).fit(latent_growth(7)), times=2)
    print(
        f"growth model, 244 rows, 7 waves, 3 sites, in process: {seconds:.2f} s of processor, {wall:.2f} s on the "
        f"clock, {fit.n_evaluations} evaluations"
    )


def grown_people() -> np.ndarray:
    moments = latent_growth(7).implied(np.array([0.3646, 0.447, 0.0, 0.0462, 2.0722, -0.075]))
    return np.random.default_rng(3).multivariate_normal(*moments, 244)


def growth_over_loopback() -> None:
    """Three sites in processes of their own, HTTPS on loopback; the fit alone, not the start of the sites."""
    import socket
    import subprocess
    import sys
    import tempfile
    from pathlib import Path

    import polars as pl

    from discreet.federated.layouts import Group, Layout
    from discreet.federated.remote_transport import SitesOnNetwork
    from discreet.federated.trial_certificates import prepare

    columns = {"a": ["w0", "w1", "w2"], "b": ["w3", "w4"], "c": ["w5", "w6"]}
    x, folder, port = grown_people(), Path(tempfile.mkdtemp()), 21_441
    for name, own in columns.items():
        pl.DataFrame({wave: x[:, int(wave[1])] for wave in own}).write_csv(folder / f"{name}.csv")
    prepare(folder, {name: f"{name}.csv" for name in columns}, columns=columns, port=port,
            limits={"max_evaluations": 5_000})  # fmt: skip
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "discreet", "federated", "serve", str(folder / f"{name}.toml")],
            stderr=subprocess.DEVNULL,
        )
        for name in columns
    ]
    try:
        for at in range(3):
            while socket.socket().connect_ex(("127.0.0.1", port + at)):
                time.sleep(0.1)
        files = {"certificate": "analyst.pem", "key": "analyst.key", "authority": "authority.pem"}
        layout = Layout("vertical", (Group(tuple(columns), tuple(map(tuple, columns.values()))),))
        addresses = {name: f"https://127.0.0.1:{port + at}" for at, name in enumerate(columns)}
        for hessian in ("expected", "observed"):
            before = [_processor_seconds(process.pid) for process in started]
            here, clock = time.process_time(), time.perf_counter()
            with SitesOnNetwork(
                addresses, **{name: folder / file for name, file in files.items()}
            ) as transport:
                fit = SecureMLE(layout, transport=transport).fit(latent_growth(7), hessian=hessian)
            here, clock = time.process_time() - here, time.perf_counter() - clock
            there = sum(_processor_seconds(one.pid) for one in started) - sum(before)
            print(
                f"growth model over loopback, {hessian} errors: {here:.2f} s of processor at the analyst, "
                f"{there:.2f} s at the sites together, {clock:.2f} s on the clock, {fit.n_evaluations} evaluations"
            )
    finally:
        for process in started:
            process.terminate()
            process.wait()


def _processor_seconds(pid: int) -> float:
    import os
    from pathlib import Path

    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--many", action="store_true", help="ten times the rows as well (some gigabytes)")
    asked = parser.parse_args()
    for rows in (asked.rows // 100, asked.rows // 10, asked.rows, *([asked.rows * 10] if asked.many else [])):
        evaluation(rows, 3)
    print("the same 16 columns over more sites:")
    for sites in (2, 4, 8, 16):
        evaluation(asked.rows // 10, sites, 16 // sites)
    print("more sites, each with two columns more:")
    for sites in (2, 4, 8):
        evaluation(asked.rows // 10, sites)
    trees()
    growth()
    growth_over_loopback()


if __name__ == "__main__":
    main()
