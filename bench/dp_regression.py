"""How long do private regressions take, and how far are they off?

    python bench/dp_regression.py [--rows 10000000] [--replications 20]

The first table has the three designs of the literature on private quantile regression (n = 2,500, epsilon = 1, logistic
kernel, h = 0.5): CPU seconds of one quantile beside those that were published for the same design (quoted: replication
code in R), and the mean Euclidean error of the median beside that of the fit without noise. The second table fits
``rows`` records of two columns; the last figure is the multiple of one bare pass over the data (a matrix product).
The last line says how many times as long the line of means takes as for a tenth of the records.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from discreet import Microdata, dp

PUBLISHED = {
    "opm": (4.2, 2.8, 3.2),
    "kng": (79.3, 135.1, 121.5),
    "sgd": (435.1, 420.5, 423.0),
    "agd": (12.9, 27.5, 17.9),
}
MORE: dict[str, dict[str, Any]] = {
    "nonprivate": {},
    "opm": {"epsilon": 1.0},
    "kng": {"epsilon": 1.0},
    "sgd": {"epsilon": 1.0, "delta": 1e-6, "records": 2500, "standardize": True},
    "agd": {"epsilon": 1.0, "residual_bound": 15},
}


def first(rng: np.random.Generator, n: int) -> tuple[pl.DataFrame, list[tuple[float, float]], list[float]]:
    a, b = rng.normal(0, 3, n), rng.normal(0, 1, n)
    return (
        pl.DataFrame({"a": a, "b": b, "y": 3 + 2 * a - b + rng.normal(0, 2, n)}),
        [(-10, 10)] * 2,
        [3, 2, -1],
    )


def second(rng: np.random.Generator, n: int) -> tuple[pl.DataFrame, list[tuple[float, float]], list[float]]:
    a, b = rng.uniform(0, 1, (2, n))
    y = 3 + 2 * a + 0.5 * b + rng.exponential(10, n)
    return pl.DataFrame({"a": a, "b": b, "y": y}), [(0, 1)] * 2, [3 + 10 * np.log(2), 2, 0.5]


def third(rng: np.random.Generator, n: int) -> tuple[pl.DataFrame, list[tuple[float, float]], list[float]]:
    a = rng.uniform(0, 2, n)
    return pl.DataFrame({"a": a, "y": 1 + 2 * a + a * rng.normal(0, 1, n)}), [(0, 2)], [1, 2]


def spent(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--replications", type=int, default=20)
    asked = parser.parse_args()
    rng = np.random.default_rng(0)
    print("design  mechanism    seconds  published    error")
    for place, design in enumerate((first, second, third)):
        for mechanism, more in MORE.items():
            taken, errors = [], []
            for _ in range(asked.replications + 1):
                frame, bounds, truth = design(rng, 2500)
                data = Microdata(frame)
                names = [name for name in frame.columns if name != "y"]
                found, seconds = spent(
                    lambda data=data, names=names, bounds=bounds, mechanism=mechanism, more=more: (
                        dp.quantile_regression(
                            data, y="y", x=names, x_bounds=bounds, mechanism=mechanism, **more
                        )
                    )
                )
                taken.append(seconds)
                errors.append(np.linalg.norm(found.detail["coefficients"]["coefficient"].to_numpy() - truth))
            quoted = f"{PUBLISHED[mechanism][place]:>9.1f}" if mechanism in PUBLISHED else f"{'':>9}"
            print(
                f"{place + 1:>6}  {mechanism:<11}{np.median(taken[1:]):>9.4f}  {quoted}{np.mean(errors[1:]):>9.3f}",
                flush=True,
            )
    if not asked.rows:
        return
    frame, bounds, _ = third(rng, asked.rows)
    data = Microdata(frame)
    x = np.column_stack([np.ones(asked.rows), frame["a"].to_numpy()])
    _, bare = spent(lambda: x.T @ x)
    print(f"{asked.rows:,} records; bare pass {bare:.2f} s")
    common: dict[str, Any] = {"y": "y", "x": "a", "x_bounds": bounds, "epsilon": 1.0}
    for name, more in (
        ("opm", {"mechanism": "opm"}),
        ("agd", {"mechanism": "agd", "residual_bound": 15, "steps": 10}),
        ("sgd", {"mechanism": "sgd", "delta": 1e-8, "records": asked.rows, "batch": 4096}),
    ):
        _, seconds = spent(lambda more=more: dp.quantile_regression(data, **common, **more))
        print(f"  {name:<12}{seconds:>9.2f} s{seconds / bare:>9.1f} ×", flush=True)
    _, seconds = spent(lambda: dp.linear_regression(data, y_bounds=(-10, 10), **common))
    print(f"  {'k-norm mean':<12}{seconds:>9.2f} s{seconds / bare:>9.1f} ×")
    tenth = Microdata(frame.head(asked.rows // 10))
    _, before = spent(lambda: dp.linear_regression(tenth, y_bounds=(-10, 10), **common))
    print(f"  {'a tenth':<12}{before:>9.2f} s{seconds / before:>9.1f} × for ten times the records")


if __name__ == "__main__":
    main()
