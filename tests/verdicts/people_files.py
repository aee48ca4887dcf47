"""Six files of different kinds, each of one law, from which fresh people can be drawn."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl

from discreet.datasets import adult

Roles = Mapping[str, Any]


def census(rng: np.random.Generator, rows: int) -> pl.DataFrame:
    """Records of Adult in a random order."""
    frame = adult().frame
    return frame[rng.permutation(frame.height)[:rows]]


def homes(rng: np.random.Generator, rows: int) -> pl.DataFrame:
    """A survey of persons in households that share region and income."""
    size = rng.choice([1, 2, 3, 4, 5], rows, p=[0.3, 0.3, 0.18, 0.14, 0.08])
    home = np.repeat(np.arange(rows), size)[:rows]
    income, region = rng.lognormal(10, 0.6, rows).round(0), rng.choice(list("ABCDEFGH"), rows)
    age = rng.integers(0, 95, rows)
    return pl.DataFrame(
        {
            "home": rng.permutation(10 * rows)[:rows][home],
            "region": region[home],
            "age": age,
            "sex": rng.choice(["f", "m"], rows),
            "work": np.where(
                age < 16, "child", rng.choice(["employed", "retired", "unemployed", "student"], rows)
            ),
            "income": income[home],
            "benefits": np.where(rng.random(rows) < 0.7, 0.0, rng.lognormal(7, 1, rows).round(2)),
        }
    )


def stays(rng: np.random.Generator, rows: int) -> pl.DataFrame:
    """Hospital stays: dates, postcodes, diagnoses, and patients who come back."""
    who = rng.integers(0, rows * 3 // 4, rows)
    born = rng.integers(0, 29_000, rows)[who]
    code, place = rng.integers(0, 120, rows), rng.integers(0, 60, rows)[who]
    return pl.DataFrame(
        {
            "patient": 100_000 + who * 7,
            "born": [date(1930, 1, 1) + timedelta(days=int(days)) for days in born],
            "sex": rng.choice(["w", "m"], rows)[who],
            "postcode": [f"{1000 + 37 * number:05d}" for number in place],
            "admitted": [date(2023, 1, 1) + timedelta(days=int(days)) for days in rng.integers(0, 365, rows)],
            "diagnosis": [f"{'AEFIJK'[number % 6]}{number:02d}" for number in code],
            "cost": rng.lognormal(8, 0.9, rows).round(2),
            "days": rng.geometric(0.2, rows),
        }
    )


def firms(rng: np.random.Generator, rows: int) -> pl.DataFrame:
    """Firms with a few very large ones."""
    size = np.exp(rng.normal(2, 1.6, rows))
    return pl.DataFrame(
        {
            "branch": rng.choice([f"{letter}{digit}" for letter in "ABCD" for digit in range(5)], rows),
            "region": rng.choice(["north", "south", "west", "east"], rows, p=[0.4, 0.3, 0.2, 0.1]),
            "staff": np.maximum(size, 1).round().astype(int),
            "turnover": (size * rng.lognormal(11, 0.5, rows)).round(0),
            "exports": (size * rng.lognormal(9, 1.2, rows) * (rng.random(rows) < 0.6)).round(0),
        }
    )


def levels(rng: np.random.Generator, rows: int) -> pl.DataFrame:
    """Columns of many levels, with a long tail of rare ones."""
    towns = np.minimum(rng.zipf(1.6, rows), 400)
    return pl.DataFrame(
        {
            "town": [f"town {number}" for number in towns],
            "job": [f"job {number}" for number in np.minimum(rng.zipf(1.5, rows), 250)],
            "birth": rng.integers(1930, 2005, rows),
            "car": [f"make {number}" for number in np.minimum(rng.zipf(1.8, rows), 90)],
            "party": rng.choice(["a", "b", "c", "d", "e"], rows, p=[0.35, 0.3, 0.2, 0.1, 0.05]),
        }
    )


def numbers(rng: np.random.Generator, rows: int) -> pl.DataFrame:
    """Nothing but numbers that hang together."""
    common = rng.normal(size=rows)
    return pl.DataFrame(
        {f"x{place}": np.exp(0.7 * common + rng.normal(size=rows) * 0.6 + 3).round(2) for place in range(6)}
    )


FILES = {
    "census": (
        census,
        {"keys": ["age", "sex", "race", "marital-status", "native-country"], "sensitive": ["income"]},
    ),
    "homes": (homes, {"keys": ["region", "age", "sex"], "sensitive": ["benefits"], "household": "home"}),
    "stays": (stays, {"keys": ["sex", "postcode"], "sensitive": ["diagnosis"], "person": "patient"}),
    "firms": (firms, {"keys": ["branch", "region"], "sensitive": ["exports"]}),
    "levels": (levels, {"keys": ["town", "job", "birth"], "sensitive": ["party"]}),
    "numbers": (numbers, {"keys": ["x0"], "sensitive": ["x5"]}),
}


def drawn(name: str, rows: int, seed: int) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame, dict[str, Any]]:
    """Draw an original, fresh people and others set aside, all of one law, and the roles of the columns."""
    law, roles = FILES[name]
    frame = law(np.random.default_rng(seed), 3 * rows)
    if name in ("homes", "stays"):
        unit = roles.get("household") or roles["person"]
        parts = frame.with_columns(pl.col(unit).rank("dense").alias("·")).sort("·")
        cut = [parts.filter(pl.col("·") % 3 == part).drop("·")[:rows] for part in range(3)]
        return cut[0], cut[1], cut[2], dict(roles)
    return frame[:rows], frame[rows : 2 * rows], frame[2 * rows :], dict(roles)
