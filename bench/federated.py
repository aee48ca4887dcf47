"""What does a secure likelihood cost, by rows and by sites, beside the pooled one? And merging trees, and growth?

    python bench/federated.py [--rows 1000000]

The yardstick is the same likelihood of pooled rows (NumPy and LAPACK) in the same run. Processor seconds depend less on
who else uses the machine.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from discreet.federated import SecureMLE, latent_growth, merge_trees
from discreet.federated.conditional_normal import minus_two_log_likelihood


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
    moments = latent_growth(7).implied(np.array([0.3646, 0.447, 0.0, 0.0462, 2.0722, -0.075]))
    x = np.random.default_rng(3).multivariate_normal(*moments, 244)
    seconds, wall, fit = cpu(lambda: SecureMLE(np.hsplit(x, [3, 5])).fit(latent_growth(7)), times=2)
    print(
        f"growth model, 244 rows, 7 waves, 3 sites, in process: {seconds:.2f} s of processor, {wall:.2f} s on the "
        f"clock, {fit.n_evaluations} evaluations"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    asked = parser.parse_args()
    for rows in (asked.rows // 100, asked.rows // 10, asked.rows):
        evaluation(rows, 3)
    for sites in (2, 4, 8):
        evaluation(asked.rows // 10, sites)
    trees()
    growth()


if __name__ == "__main__":
    main()
