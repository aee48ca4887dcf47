"""Leaks, planted into a file of fresh people: what a careless or a hostile hand puts into a release."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

Leak = Callable[[pl.DataFrame, pl.DataFrame, np.random.Generator], pl.DataFrame]


def _texts(frame: pl.DataFrame) -> list[str]:
    return [name for name, kind in frame.schema.items() if kind == pl.String]


def _numbers(frame: pl.DataFrame) -> list[str]:
    return [name for name, kind in frame.schema.items() if kind.is_numeric()]


def as_they_are(real: pl.DataFrame, fresh: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """Real records, unchanged."""
    return real


def in_capitals(real: pl.DataFrame, fresh: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """Texts in capitals."""
    return real.with_columns(pl.col(_texts(real)).str.to_uppercase())


def in_other_units(real: pl.DataFrame, fresh: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """Numbers scaled and shifted, each column in its own way."""
    return real.with_columns(
        (pl.col(name) * (1.7 + place) + 11 * place).alias(name) for place, name in enumerate(_numbers(real))
    )


def blurred(real: pl.DataFrame, fresh: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """Noise of a thousandth on every number."""
    return real.with_columns(
        (pl.col(name) * (1 + 0.001 * pl.Series(rng.uniform(-1, 1, real.height)))).alias(name)
        for name in _numbers(real)
    )


def with_codes(real: pl.DataFrame, fresh: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """Labels exchanged for codes, one for one."""
    new = {}
    for name in _texts(real):
        known = pl.concat([real[name], fresh[name]]).drop_nulls().unique().sort()
        codes = [f"c{number}" for number in rng.permutation(len(known))]
        new[name] = real[name].replace_strict(known, pl.Series(codes), default=None, return_dtype=pl.String)
    return real.with_columns(**new)


LEAKS: dict[str, Leak] = {
    "as they are": as_they_are,
    "in capitals": in_capitals,
    "in other units": in_other_units,
    "blurred": blurred,
    "with codes": with_codes,
}


def planted(
    leak: str, share: float, original: pl.DataFrame, fresh: pl.DataFrame, seed: int = 0
) -> pl.DataFrame:
    """Put a share of real people among fresh ones; a change of writing is made to all of the file, as a hand would."""
    rng = np.random.default_rng(seed)
    rows = original.height
    real = original[rng.permutation(rows)[: round(share * rows)]]
    both = pl.concat([real, fresh[: rows - real.height]])
    changed = LEAKS[leak](both, fresh, rng)
    return changed[rng.permutation(changed.height)]


def beside(original: pl.DataFrame, fresh: pl.DataFrame, seed: int = 0) -> pl.DataFrame:
    """Fresh people, and every real column under a new name beside theirs."""
    rng = np.random.default_rng(seed)
    rows = min(original.height, fresh.height)
    real, fresh = original[rng.permutation(original.height)[:rows]], fresh[:rows]
    return fresh.hstack(real.rename({name: f"v{place}" for place, name in enumerate(real.columns)}))


def renamed(original: pl.DataFrame, fresh: pl.DataFrame, seed: int = 0) -> pl.DataFrame:
    """Real people, and every other column under a new name."""
    rng = np.random.default_rng(seed)
    return original[rng.permutation(original.height)].rename(
        {name: f"v{place}" for place, name in enumerate(original.columns) if place % 2}
    )
