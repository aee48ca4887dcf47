"""How would data lie if every site had its own kind of people? One file split into unlike parts, for trials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, numbers_of
from discreet.core.constraints import Above
from discreet.core.errors import ParameterError, need_known
from discreet.core.parameters import checked
from discreet.core.randomness import Seed, generator
from discreet.federated.parties import as_frame


@checked
def dirichlet_split(
    data: Any, target: str, clients: int, *, alpha: Annotated[float, Above(0)] = 0.5, seed: Seed = None
) -> list[pl.DataFrame]:
    """Split rows over clients with unlike shares of each class: the smaller alpha, the more unlike.

    Examples
    --------
    >>> parts = dirichlet_split(pl.DataFrame({"y": [0, 1] * 50, "x": range(100)}), "y", 3, alpha=0.5, seed=1)
    >>> sum(part.height for part in parts)
    100
    """
    frame = _with(data, target, clients)
    rng = generator(seed, "dirichlet split")
    home = np.empty(frame.height, dtype=np.int64)
    for level in frame[target].unique().sort().to_list():
        rows = rng.permutation(np.flatnonzero(frame[target].eq_missing(level).to_numpy()))
        cuts = np.round(np.cumsum(rng.dirichlet(np.full(clients, alpha)))[:-1] * len(rows)).astype(int)
        for at, part in enumerate(np.split(rows, cuts)):
            home[part] = at
    return [frame.filter(pl.Series(home == at)) for at in range(clients)]


@checked
def split_by_class_shares(
    data: Any, target: str, shares: Sequence[Any], *, sizes: Sequence[int] | None = None, seed: Seed = None
) -> list[pl.DataFrame]:
    """Split rows over clients whose shares of each class are given, as nearly as the file allows.

    How many rows of each class a client gets is the least-squares solution under the totals of the classes and of the
    clients. The source cites an optimization for this without printing it: this is a reconstruction.

    Parameters
    ----------
    data
        The file.
    target
        The column of classes.
    shares
        One row for each client: the wanted share of each class, in the order of the sorted classes.
    sizes
        Rows of each client; alike unless given.
    seed
        For the same split again.

    Examples
    --------
    >>> frame = pl.DataFrame({"y": [0] * 60 + [1] * 40})
    >>> parts = split_by_class_shares(frame, "y", [[0.9, 0.1], [0.3, 0.7]], seed=1)
    >>> [part["y"].mean() for part in parts]
    [0.1, 0.7]
    """
    wanted = numbers_of(shares, "shares")
    frame = _with(data, target, len(wanted))
    levels = frame[target].unique().sort().to_list()
    if (
        wanted.ndim != 2
        or wanted.shape[1] != len(levels)
        or (wanted < 0).any()
        or (wanted.sum(axis=1) <= 0).any()
    ):
        raise ParameterError(
            f"shares must hold a share for each of the {len(levels)} classes, for every client."
        )
    wanted = wanted / wanted.sum(axis=1, keepdims=True)
    even = [frame.height // len(wanted) + (at < frame.height % len(wanted)) for at in range(len(wanted))]
    rows = np.asarray(sizes if sizes is not None else even, dtype=np.float64)
    totals = np.array([int(frame[target].eq_missing(level).sum()) for level in levels], dtype=np.float64)
    if len(rows) != len(wanted) or (rows < 0).any() or rows.sum() != frame.height:
        raise ParameterError("sizes must be one number for each client, and add up to the rows of the file.")
    counts = _whole(_solved(wanted * rows[:, None], rows, totals), totals)
    rng = generator(seed, "class shares")
    home = np.empty(frame.height, dtype=np.int64)
    for at, level in enumerate(levels):
        places = rng.permutation(np.flatnonzero(frame[target].eq_missing(level).to_numpy()))
        for client, part in enumerate(np.split(places, np.cumsum(counts[:, at])[:-1])):
            home[part] = client
    return [frame.filter(pl.Series(home == at)) for at in range(len(wanted))]


def _solved(wanted: Floats, rows: Floats, totals: Floats) -> Floats:
    """Come as near as possible to the wanted counts, none negative, with these sums of rows and columns (Dykstra)."""
    made = wanted.copy()
    corrections = np.zeros_like(made)
    many, few = wanted.shape
    for _ in range(5_000):
        off_rows, off_columns = rows - made.sum(axis=1), totals - made.sum(axis=0)
        flat = (
            made + (off_rows / few)[:, None] + (off_columns / many)[None, :] - off_rows.sum() / (many * few)
        )
        lifted = np.maximum(flat + corrections, 0.0)
        corrections = flat + corrections - lifted
        if np.abs(lifted - made).max() < 1e-9:
            return np.asarray(lifted)
        made = lifted
    return np.asarray(made)


def _whole(counts: Floats, totals: Floats) -> Any:
    """Round so that every class is given out exactly."""
    made = np.floor(counts).astype(np.int64)
    for at, total in enumerate(totals.astype(int)):
        left = int(total - made[:, at].sum())
        order = np.argsort(-(counts[:, at] - made[:, at]), kind="stable")
        for step in range(abs(left)):
            made[order[step % len(order)], at] += 1 if left > 0 else -1
    return made


def _with(data: Any, target: str, clients: int) -> pl.DataFrame:
    frame = as_frame(data)
    need_known([target], frame.columns)
    if clients < 1:
        raise ParameterError("There must be at least one client.")
    return frame
