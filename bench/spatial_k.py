"""How long does it take to shift a million locations, to count their spatial k, and to map them?

    python bench/spatial_k.py [--points 1000000]

Points lie as thick as in a city district (about 180 on a square kilometer) and are shifted by 200 to 400 meters. As a
yardstick the same discs are counted by scikit-learn's BallTree and by scipy's k-d tree asked record by record, both on
``--queries`` of the points, scaled up (marked with ~).
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import polars as pl

from discreet import Microdata
from discreet.protect.density_maps import SpatialRaster
from discreet.protect.donut_masking import DonutMask
from discreet.risk.spatial_k import counted_within, spatial_k


def timed(work):
    began = time.perf_counter()
    found = work()
    return time.perf_counter() - began, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=20_000)
    options = parser.parse_args()
    n, rng = options.points, np.random.default_rng(0)
    side = 1000 * np.sqrt(n / 180)
    frame = pl.DataFrame(
        {
            "x": 1e5 + rng.uniform(0, side, n),
            "y": 4e5 + rng.uniform(0, side, n),
            "age": rng.integers(0, 11, n),
            "sex": rng.integers(0, 2, n),
            "pay": rng.lognormal(7, 1, n),
        }
    )
    data = Microdata(frame, location=("x", "y"), keys=["age", "sex"])
    degrees = Microdata(
        frame.select(lat=48 + (pl.col("y") - 4e5) / 111_195, lon=16 + (pl.col("x") - 1e5) / 74_400),
        location=("lat", "lon"),
    )
    rows = []
    mask = DonutMask(r_min=200, r_max=400)
    seconds, released = timed(lambda: mask.apply(data, seed=1).data)
    rows.append(("shift, meters", seconds))
    seconds, _ = timed(lambda: DonutMask(r_min=200, r_max=400, geographic=True).apply(degrees, seed=1))
    rows.append(("shift, degrees on the ellipsoid", seconds))
    seconds, _ = timed(lambda: DonutMask(adaptive=(10, 40)).apply(data, seed=1))
    rows.append(("shift, adaptive to density", seconds))
    true, moved = (d.frame.select("x", "y").to_numpy() for d in (data, released))
    radius = np.sqrt(((true - moved) ** 2).sum(axis=1))
    seconds, k = timed(lambda: counted_within(moved, true, radius))
    rows.append(("spatial k, place alone (kernel)", seconds))
    seconds, _ = timed(lambda: spatial_k(data, released))
    rows.append(("risk.spatial_k, place and two keys", seconds))
    for method in ("remove", "quadtree", "smooth"):
        grid = SpatialRaster(500, value="pay", method=method)
        rows.append((f"map of 500 m cells, {method}", timed(lambda grid=grid: grid.apply(data))[0]))

    from scipy.spatial import cKDTree
    from sklearn.neighbors import BallTree

    some = rng.choice(n, min(options.queries, n), replace=False)
    ball = BallTree(moved)
    seconds, found = timed(lambda: ball.query_radius(true[some], radius[some] * (1 + 1e-12), count_only=True))
    assert (found == k[some]).all()
    rows.append(("~ scikit-learn BallTree, place alone", seconds * n / len(some)))
    tree = cKDTree(moved)
    seconds, found = timed(
        lambda: [len(tree.query_ball_point(true[i], radius[i] * (1 + 1e-12))) for i in some]
    )
    assert (np.array(found) == k[some]).all()
    rows.append(("~ k-d tree, record by record, place alone", seconds * n / len(some)))
    print(f"{n:,} points, median k {np.median(k):.0f}")
    for name, seconds in rows:
        print(f"  {name:<45}{seconds:8.2f} s")


if __name__ == "__main__":
    main()
