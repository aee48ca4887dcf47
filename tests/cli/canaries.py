"""Values that stand nowhere but in the data, one kind for every role, and how to find them in whatever is written.

Every text begins with ``zq``, every number lies in a range of its own and is checked digit by digit, every date lies in
1937 or 1938. A figure that is computed from several people does not look like any of them.
"""

from __future__ import annotations

import datetime
import re

import numpy as np
import polars as pl

ROLES = (
    "--keys", "region,sex,age", "--sensitive", "pay", "--identifiers", "name,person", "--weight", "w",
    "--household", "home", "--strata", "stratum", "--location", "x,y", "--contributor", "firm", "--time", "seen",
)  # fmt: skip
PEOPLE = (
    "--keys",
    "region,sex,age",
    "--sensitive",
    "illness,pay",
    "--identifiers",
    "name",
    "--person",
    "person",
)


def people(rows: int = 160, seed: int = 7391) -> pl.DataFrame:
    """Make a file in which every value is a canary."""
    rng = np.random.default_rng(seed)
    homes = np.sort(rng.integers(0, rows // 2, rows))
    region = rng.integers(0, 5, rows // 2)[homes]
    sex, age = rng.integers(0, 2, rows), 918_201 + 2 * rng.integers(9, 40, rows)
    age += 2 * (age % 5 == 0)  # round and even numbers are limits of groups, and nobody's age
    pay = np.round(7391.4471 + rng.lognormal(9, 1, rows) + 0.0007, 4)
    bonus = np.round(1000 + rng.lognormal(7, 1, rows) + 0.0003, 4)
    days = rng.integers(0, 600, rows)
    seen = [datetime.date(1937, 1, 1) + datetime.timedelta(days=int(day)) for day in days]
    left = [
        day + datetime.timedelta(days=int(more))
        for day, more in zip(seen, rng.integers(0, 90, rows), strict=True)
    ]
    rent = np.where(rng.random(rows) < 0.2, 7_391_888.25, np.round(2000 + rng.lognormal(8, 1, rows), 4))
    answers = np.where(sex == 1, 7_391_004.5, np.round(2000 + rng.lognormal(8, 1, rows), 4))
    written = [
        f"{value:.4f}" if at % 5 else "zqrefused" for at, value in enumerate(1000 + rng.lognormal(8, 1, rows))
    ]
    return pl.DataFrame(
        {
            "name": [f"zqname{row:04}" for row in range(rows)],
            "person": [f"zqperson{row:04}" for row in range(rows)],
            "home": 5_550_000_001 + homes * 37,
            "region": [f"zqregion{'ABCDE'[at]}" for at in region],
            "district": [f"zqdistrict{'VWXYZ'[at]}" for at in region],
            "sex": [("zqwoman", "zqman")[at] for at in sex],
            "age": age,
            "illness": [f"zqillness{at}" for at in rng.integers(0, 4, rows)],
            "pay": pay,
            "bonus": bonus,
            "total": np.round(pay + bonus, 4),
            "rent": rent,
            "answer": answers,
            "written": written,
            "always": ["zqconstant"] * rows,
            "w": np.round(7391 + 5000 * rng.random(rows), 4),
            "stratum": [f"zqstratum{at}" for at in rng.integers(0, 3, rows)],
            "firm": [f"zqfirm{at:02}" for at in rng.integers(0, 12, rows)],
            "x": np.round(4_417_391.4471 + 900 * rng.random(rows), 4),
            "y": np.round(5_517_391.4471 + 900 * rng.random(rows), 4),
            "seen": seen,
            "left": left,
        }
    )


_UNMISTAKABLE = 6


class Canaries:
    """Knows every value of a frame in the ways a program may write it."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.numbers = {
            text
            for name, dtype in frame.schema.items()
            if dtype.is_numeric()
            for value in frame[name].drop_nulls().unique().to_list()
            for text in _written(value)
        }

    def found_in(self, text: str) -> set[str]:
        """List the values that stand in a text."""
        words = set(re.findall(r"zq\w+", text))
        days = set(re.findall(r"193[78]-\d\d-\d\d", text))
        without_marks = re.sub(r"(?<=\d)[,'\u00a0\u202f](?=\d{3})", "", text)
        numbers = {number for way in (text, without_marks) for number in re.findall(r"\d+(?:\.\d+)?", way)}
        return words | days | (numbers & self.numbers)


def _written(value: float) -> set[str]:
    """Write a number in full and with fewer decimals, as long as nothing else looks like it."""
    texts = {repr(value), f"{value:.4f}", f"{value:.3f}", f"{value:.2f}"}
    texts |= {text.rstrip("0").rstrip(".") for text in texts if "." in text}
    return {text for text in texts if len(text) >= _UNMISTAKABLE}
