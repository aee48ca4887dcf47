"""People drawn from one law, for attacks whose right answer is known."""

from __future__ import annotations

import numpy as np
import polars as pl


def people(rng: np.random.Generator, rows: int) -> pl.DataFrame:
    """Draw people with numbers, dates of none, labels of few and of many levels, and a fair coin."""
    z = rng.normal(size=rows)
    return pl.DataFrame(
        {
            "pay": np.round(np.exp(8 + z), 2),
            "age": np.clip(rng.normal(45 + 5 * z, 15, rows), 16, 95).astype(int),
            "job": rng.choice(list("abcdefgh"), rows, p=[0.3, 0.2, 0.15, 0.1, 0.1, 0.08, 0.05, 0.02]),
            "hours": rng.integers(1, 80, rows),
            "town": rng.integers(0, 60, rows).astype(str),
            "coin": rng.choice(["heads", "tails"], rows),
        }
    )


def copying(
    original: pl.DataFrame, fresh: pl.DataFrame, share: float, rng: np.random.Generator
) -> pl.DataFrame:
    """Make a release that copies a share of the people, and draws the others anew."""
    copied = int(share * original.height)
    return pl.concat([original[np.sort(rng.permutation(original.height)[:copied])], fresh[copied:]])
