"""How often does somebody single out a person by guessing blindly, and how often with a release in hand?

A description *isolates* when exactly one record of the file fits it. Even with no release at all a well-chosen
description of probability p does so with chance n p (1-p)^(n-1), at best (1-1/n)^(n-1), about 37 %. What a
release does beyond that is its isolation gain. The formulas here are exact and computed in logarithms, so they
hold for files of 10^9 records and probabilities of 10^-15.

References
----------
Cohen and Nissim (2020), Towards formalizing the GDPR's notion of singling out; and the isolation baseline and
gain built on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats, Integers
from discreet.core.constraints import AtLeast, Share
from discreet.core.errors import ColumnError, ParameterError, need_known
from discreet.core.parameters import checked
from discreet.microdata import Microdata

_Count = Annotated[int, AtLeast(1)]


@checked
def isolation_chance(p: npt.ArrayLike, n: _Count) -> Floats:
    """Return the chance that a description of probability p fits exactly one of n records.

    Examples
    --------
    >>> isolation_chance([0.1, 0.0, 1.0], 10).round(6).tolist()
    [0.38742, 0.0, 0.0]
    """
    chance = _probabilities(p)
    return _exactly_one(np.float64(n), chance)


@checked
def blind_isolations(n: _Count, k: _Count = 1) -> float:
    """Return how many records k disjoint blind guesses isolate at best, in expectation.

    Each guess has probability 1/max(k, n).

    Examples
    --------
    >>> round(blind_isolations(5), 4), round(blind_isolations(5, 10), 4)
    (0.4096, 3.2805)
    """
    return float(k * isolation_chance(1 / max(k, n), n))


@checked
def guesses_needed(n: _Count, share: Annotated[float, Share(above=True)]) -> float:
    """Return how many blind guesses isolate a share of the n records, in expectation.

    Not rounded up. A share of 1 is never reached: infinity (but for n = 1, where one guess is enough).

    Examples
    --------
    >>> round(guesses_needed(10_000, 0.95), 2)
    194938.26
    """
    if n == 1:
        return share
    if share == 1:
        return float("inf")
    needed = -1 / np.expm1(np.log(share) / (n - 1))
    return float(needed) if needed >= n else float(share * n / isolation_chance(1 / n, n))


@checked
def partition_isolations(probabilities: npt.ArrayLike, n: _Count, k: _Count | None = None) -> float:
    """Return the expected isolations of k cells drawn at random from a partition that is not quite even.

    Parameters
    ----------
    probabilities
        Those of the cells; they add up to 1.
    n
        The number of records.
    k
        The number of cells guessed; all of them unless given.

    Examples
    --------
    >>> round(partition_isolations([0.2] * 5, n=5, k=3), 4)
    1.2288
    """
    chance = _probabilities(probabilities)
    if abs(chance.sum() - 1) > 1e-9:
        raise ParameterError("The probabilities of a partition must add up to 1.")
    guesses = _guesses(k, chance.size)
    return float(guesses / chance.size * isolation_chance(chance, n).sum())


@checked
def partition_bound(
    deviation: Annotated[float, AtLeast(0)],
    cells: _Count,
    n: _Count,
    k: _Count | None = None,
) -> float:
    """Bound the expected isolations from below when only the spread of the cell probabilities is known.

    ``deviation`` is their standard deviation (over the cells). From half an average cell upwards the bound says
    nothing and is 0.

    Examples
    --------
    >>> round(partition_bound(0.25 / 100, cells=100, n=100) / 100, 6)
    0.228305
    """
    guesses = _guesses(k, cells)
    spread = deviation * cells
    if spread >= 0.5:
        return 0.0
    low, high = (float((1 - half / cells) ** (n - 1)) for half in (0.5, 1.5))
    return float((1 - 4 * spread**2) * guesses * n / (2 * cells) * min(low, 3 * high))


def population_unique(p: npt.ArrayLike, others: int) -> Floats:
    """Return the chance that a description of probability p fits nobody among so many others.

    Examples
    --------
    >>> population_unique(1e-8, 1_000_000 - 10_000).round(7).item()
    0.9901488
    """
    chance = _probabilities(p)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(others == 0, 1.0, np.exp(others * np.log1p(-chance))))


def best_guess(count: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Return for exact counts m the weight 1/m of the best guess inside the cell, and its chance to isolate.

    Nothing can be isolated in an empty cell: both are 0.
    """
    m = np.asarray(count, dtype=np.float64)
    with np.errstate(divide="ignore"):
        weight = np.where(m > 0, 1 / m, 0.0)
    return weight, _exactly_one(m, weight)


def best_noisy_guess(count: npt.ArrayLike, p: npt.ArrayLike, n: int, noise: Any) -> tuple[Floats, Floats]:
    """Return for noisy counts the weight of the best guess inside each cell, and its chance to isolate.

    The true count has the binomial distribution of n records and probability p before the release, and its
    posterior given the published count after it.

    Parameters
    ----------
    count
        The published counts.
    p
        The probabilities of the cells.
    n
        The number of records.
    noise
        The noise added to a count, unimodal around 0: a frozen SciPy distribution (``dlaplace(1)``,
        ``norm(scale=2)``) or a function that gives the probability of an array of noise values.

    Examples
    --------
    >>> from scipy.stats import dlaplace
    >>> weight, chance = best_noisy_guess([1], [0.001], 1000, dlaplace(1))
    >>> weight.round(3).tolist(), chance.round(3).tolist()
    ([1.0], [0.634])
    """
    pairs = np.column_stack([np.asarray(count, dtype=np.float64), _probabilities(p)])
    cells, of = np.unique(pairs, axis=0, return_inverse=True)
    _, high, low = _windows(cells[:, 0], cells[:, 1], n)
    found = np.empty((len(cells), 2))
    by_width = np.argsort(high - low, kind="stable")
    for block in np.split(by_width, _block_ends((high - low)[by_width])):
        found[block] = _best_weights(*posterior(cells[block, 0], cells[block, 1], n, noise))
    return found[of.ravel(), 0], found[of.ravel(), 1]


def posterior(count: npt.ArrayLike, p: npt.ArrayLike, n: int, noise: Any) -> tuple[Floats, Floats]:
    """Return the true counts that noisy ones leave possible, and their probabilities: one row a noisy count.

    What is cut off at both ends holds less than 10^-12.

    Examples
    --------
    >>> from scipy.stats import dlaplace
    >>> counts, chances = posterior([1], [0.001], 1000, dlaplace(1))
    >>> counts[0, :4].tolist(), chances[0, :4].round(5).tolist()
    ([0.0, 1.0, 2.0, 3.0], [0.23316, 0.63443, 0.1167, 0.0143])
    """
    from scipy.stats import binom

    published, chance = np.asarray(count, dtype=np.float64), _probabilities(p)
    width, high, low = _windows(published, chance, n)
    counts = low[:, None] + np.arange(width, dtype=np.float64)
    logs = binom.logpmf(counts, n, chance[:, None]) + _log_noise(noise)(published[:, None] - counts)
    logs = np.where(counts <= high[:, None], logs, -np.inf)
    peak = logs.max(axis=1, keepdims=True)
    if not np.isfinite(peak).all():
        raise ParameterError(
            "A published count is impossible under the stated noise and probability. Check the noise distribution "
            "and the probabilities."
        )
    weights = np.exp(logs - peak)
    return counts, weights / weights.sum(axis=1, keepdims=True)


def _windows(published: Floats, chance: Floats, n: int) -> tuple[int, Floats, Floats]:
    """Place the true counts worth looking at: between the published and the expected one, and well beyond."""
    expected = n * chance
    around = 40 + 10 * np.sqrt(expected + np.abs(published) + 1)
    low = np.maximum(0, np.floor(np.minimum(published, expected) - around))
    high = np.minimum(n, np.ceil(np.maximum(published, expected) + around))
    low = np.minimum(low, high)
    return int((high - low).max(initial=0)) + 1, high, low


def _block_ends(widths: Floats, budget: int = 1_000_000) -> Integers:
    """Cut sorted widths where a block of equally wide rows would pass the budget."""
    used = np.cumsum(widths + 1)
    return np.flatnonzero(np.diff(used // budget)) + 1


def _best_weights(counts: Floats, chances: Floats) -> Floats:
    """Look on a grid first, because the chance can have two peaks: one at weight 1, one below."""
    with np.errstate(divide="ignore"):
        fixed = np.log(chances) + np.log(counts)

    def isolated(log_weight: Floats) -> Floats:
        # A weight of 1 is taken a hair below it, so that (1-w)^0 is 1 without a case of its own.
        misses = np.log1p(-np.minimum(np.exp(log_weight), 1 - 1e-16))[:, None]
        total: Floats = np.exp(fixed + log_weight[:, None] + (counts - 1) * misses).sum(axis=1)
        return total

    lowest = -np.log(counts.max(axis=1) + 1)
    steps = np.linspace(1, 0, 65)
    heights = np.stack([isolated(lowest * step) for step in steps])
    best = heights.argmax(axis=0)
    left, right = (lowest * steps[np.clip(best + side, 0, 64)] for side in (-1, 1))
    golden = (np.sqrt(5) - 1) / 2
    for _ in range(50):
        first, second = right - golden * (right - left), left + golden * (right - left)
        falling = isolated(first) > isolated(second)
        left, right = np.where(falling, left, first), np.where(falling, second, right)
    middle = (left + right) / 2
    on_grid, refined = heights.max(axis=0), isolated(middle)
    log_weight = np.where(refined > on_grid, middle, lowest * steps[best])
    return np.column_stack([np.exp(log_weight), np.maximum(refined, on_grid)])


def _log_noise(noise: Any) -> Callable[[Floats], Floats]:
    # A frozen SciPy distribution is callable too, so its own methods come first.
    family = getattr(noise, "dist", noise)
    own = noise.logpmf if hasattr(family, "_logpmf") else noise.logpdf if hasattr(family, "_logpdf") else None
    if own is not None:
        return lambda x: np.asarray(own(x), dtype=np.float64)
    if not callable(noise):
        raise ParameterError(
            "noise must be a frozen SciPy distribution, e.g. scipy.stats.dlaplace(1), or a function that gives the "
            "probability of a noise value."
        )

    def logs(x: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(np.asarray(noise(x), dtype=np.float64))

    return logs


def _exactly_one(n: Any, p: Floats) -> Floats:
    """Compute n p (1-p)^(n-1) in logarithms; (1-p)^0 is 1 also for p = 1."""
    n = np.asarray(n, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(n) + np.log(p) + np.where(n == 1, 0.0, (n - 1) * np.log1p(-p))
    return np.asarray(np.where((n > 0) & (p > 0), np.exp(logs), 0.0))


def _guesses(k: int | None, cells: int) -> int:
    guesses = cells if k is None else k
    if guesses > cells:
        raise ParameterError(f"k ({guesses:,}) is larger than the number of cells ({cells:,}) to guess from.")
    return guesses


def _probabilities(p: npt.ArrayLike) -> Floats:
    chance = np.asarray(p, dtype=np.float64)
    if not ((chance >= 0) & (chance <= 1)).all():
        raise ParameterError("A probability must lie between 0 and 1.")
    return chance


# How probable is each combination of key values in the population?
#
# From a column of the user's, from a reference file, or from the margins of the file itself. Each function takes a
# class table (``k0``… and ``records``) and hands it back with a column ``P_A``.


def given_probabilities(
    classes: pl.DataFrame, keys: Sequence[str], missing: engine.Missing, data: Microdata, probability: str
) -> pl.DataFrame:
    """Take the probabilities from a column, which gives every record that of its combination."""
    need_known([probability], data.schema, "It was named under 'probability'.")
    names = _names(classes)
    rows = engine.keyed_rows(data, keys, missing, {"p": probability}).group_by(*names)
    found = engine.collect(
        rows.agg(
            nw.col("p").cast(nw.Float64).min().alias("P_A"), nw.col("p").cast(nw.Float64).max().alias("most")
        )
    )
    uneven = found.filter((pl.col("most") - pl.col("P_A") > 1e-12) | pl.col("P_A").is_null()).height
    if uneven:
        raise ColumnError(
            f"Column '{probability}' is missing or takes several values within {uneven:,} key combinations. It must "
            "give every record the probability of its combination."
        )
    return classes.join(found.drop("most"), on=names, how="left", nulls_equal=True)


def population_probabilities(
    classes: pl.DataFrame,
    keys: Sequence[str],
    missing: engine.Missing,
    population: Microdata,
    recoding: engine.Recoding | None = None,
) -> tuple[pl.DataFrame, int, int]:
    """Estimate the probabilities by (weighted) counts; also the size of the population and the unseen cells."""
    for key in keys:
        if key not in population.schema:
            raise ColumnError(
                f"The population file has no column '{key}', which is a key. Rename or drop it."
            )
    names = _names(classes)
    theirs = _weighted_classes(population, keys, missing)
    size = float(theirs["hits"].sum())
    ours = classes
    for name, key in zip(names, keys, strict=True):
        theirs = engine.recoded(theirs, name, key, (recoding or {}).get(key))
        ours, theirs = engine.comparable_keys(ours, theirs, name, key, ("file", "population file"))
    hits = theirs.group_by(names).agg(pl.col("hits").sum())
    joined = ours.join(hits, on=names, how="left", nulls_equal=True, maintain_order="left")
    found = joined["hits"].fill_null(0.0)
    unseen = int((found == 0).sum())
    estimate = pl.when(pl.col("hits") > 0).then(pl.col("hits") / size).otherwise(0.5 / (size + 1))
    with_chance = classes.with_columns(hits=found).with_columns(P_A=estimate).drop("hits")
    return with_chance, round(size), unseen


def independent_probabilities(
    classes: pl.DataFrame, keys: Sequence[str], missing: engine.Missing, data: Microdata
) -> pl.DataFrame:
    """Multiply the (weighted) margins of the file."""
    names = _names(classes)
    weighted = _weighted_classes(data, keys, missing)
    size = float(weighted["hits"].sum())
    joined = classes.sort(names, nulls_last=True)
    joined = joined.join(weighted, on=names, how="left", nulls_equal=True, maintain_order="left")
    shares = [pl.col("hits").sum().over(name) / size for name in names]
    return joined.with_columns(P_A=pl.reduce(lambda a, b: a * b, shares)).drop("hits")


def _weighted_classes(data: Microdata, keys: Sequence[str], missing: engine.Missing) -> pl.DataFrame:
    weight = engine.resolve_weight(data)
    if weight is None:
        table = engine.class_table(data, keys, missing)
        return table.select(pl.exclude("records", "class_size"), hits=pl.col("records").cast(pl.Float64))
    rows = engine.weighted_rows(data, keys, missing, weight)
    names = [f"k{i}" for i in range(len(keys))]
    return engine.added_by(rows, names, data, hits=("w", "sum"))


def _names(classes: pl.DataFrame) -> list[str]:
    return [name for name in classes.columns if name.startswith("k") and name[1:].isdigit()]
