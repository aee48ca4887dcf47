"""Doors that answer once a call, asked so that one call is many runs.

A call that costs milliseconds cannot be made two hundred thousand times. Where a method draws its noise for cells,
classes, rows, lines or datasets independently of each other, each with a share of the budget that its proof names, one
call with many of them is as many runs of the part: the claim put to the test is that of the part. Where one file must
not be told from another by its size, runs are pairs of cells, and the neighbor has a record of every pair in the other
cell.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from dp_audit_doors import UNIT, Claim, heights

from discreet import Microdata, dp, protect, synth

_CALL = 100
"""How many lines or datasets one call is asked for."""
_FEW = 8
"""How many where the slopes of so many losses are kept from call to call."""
_PAIRS = 5_000
"""How many pairs of cells one file has."""


def _in_parts(
    part: int, ask: Callable[[Any, int], npt.ArrayLike]
) -> Callable[[Any, int], npt.NDArray[np.float64]]:
    """Ask for so many runs a call, until there are enough."""

    def draw(data: Any, runs: int) -> npt.NDArray[np.float64]:
        with warnings.catch_warnings():
            # A budget of a hundred is warned of, or so many cells with so few records.
            warnings.simplefilter("ignore")
            made = [np.asarray(ask(data, part)) for _ in range(-(-runs // part))]
        return np.concatenate(made)[:runs]

    return draw


def _lines(mechanism: str, **asked: Any) -> Callable[[Any, int], npt.ArrayLike]:
    """Coefficients for quantiles that hardly differ, each with an epsilon of 1; rounded, as they are worked out."""

    def ask(data: Microdata, many: int) -> npt.ArrayLike:
        found = dp.quantile_regression(
            data,
            y="y",
            x="x",
            tau=(0.5 + 1e-6 * np.arange(many)).tolist(),
            x_bounds={"x": (-1, 1)},
            mechanism=mechanism,  # type: ignore[arg-type]
            **asked,
        )
        return np.round(found.detail["coefficients"]["coefficient"].to_numpy(), 6).reshape(many, -1)

    return ask


def _records(many: int) -> Microdata:
    return Microdata(pl.DataFrame({"x": [1.0] * many, "y": [1.0] * many}))


def _histogram(records: int, runs: int) -> npt.ArrayLike:
    """Every level is a run of its own."""
    data = Microdata(pl.DataFrame({"x": np.repeat(np.arange(runs), records)}))
    return dp.histogram(data, "x", levels=range(runs), epsilon=1.0).detail["table"]["count"].to_numpy()


def _classes(records: int, runs: int) -> npt.ArrayLike:
    """How many records of a class are released; classes are sampled and suppressed each by itself."""
    data = Microdata(pl.DataFrame({"x": np.repeat(np.arange(runs), records)}).cast(pl.String), keys=["x"])
    with warnings.catch_warnings():
        # The delta is chosen to be seen.
        warnings.simplefilter("ignore")
        plan = protect.SampleAndAnonymize(epsilon=1.0, delta=0.01, sampling_rate=0.3)
        shown = plan.apply(data).data.frame["x"]
    counts = shown.filter(shown != "*").cast(pl.Int64).to_numpy()
    return np.bincount(counts, minlength=runs)[:runs]


def _pairs(cells: tuple[int, int]) -> Microdata:
    """So many records in the first and in the second cell of every pair."""
    names = [f"c{at:05d}" for at in range(2 * _PAIRS)]
    x = pl.Series("x", np.repeat(names, np.tile(cells, _PAIRS)).tolist(), dtype=pl.Enum(names))
    return Microdata(pl.DataFrame([x, pl.Series("y", ["a"] * len(x), dtype=pl.Enum(["a", "b"]))]))


def _by_pair(cells: npt.ArrayLike) -> npt.ArrayLike:
    first, second = np.asarray(cells).reshape(-1, 2).T
    return np.column_stack([first, second, first - second])


def _perturbed(data: Microdata, many: int) -> npt.ArrayLike:
    fitted: Any = synth.PerturbedHistogram(2, 1.0, never_missing=["x", "y"]).fit(data)
    return _by_pair(fitted.counts.reshape(-1, 2)[:, 0])[:many]  # type: ignore[index]


def _network_counts(data: Microdata, many: int) -> npt.ArrayLike:
    """The noisy table of both columns that the network is drawn from."""
    fitted: Any = synth.BayesianNetwork(epsilon=1.0, never_missing=["x", "y"]).fit(data)
    table = np.diff(fitted.laws[-1].mass, prepend=0.0)
    table = table.reshape(-1, 2) if fitted.network[-1].child == 1 else table.reshape(2, -1).T
    return _by_pair(table[:, 0])[:many]  # type: ignore[index]


def _drawn_from_table(data: Microdata, many: int) -> npt.ArrayLike:
    """How many of about forty synthetic records a pair fall into either cell."""
    fitted = synth.Sequential(method="catall", method_options={"catall": {"epsilon": 1.0}}).fit(data)
    drawn = fitted.sample(40 * _PAIRS).frame
    codes = drawn.filter(pl.col("y") == "a")["x"].drop_nulls().to_physical().to_numpy()
    return _by_pair(np.bincount(codes, minlength=2 * _PAIRS))[:many]  # type: ignore[index]


def _rows(cells: tuple[int, int], many: int) -> npt.ArrayLike:
    """Rows are drawn one by one, each for its share of the budget."""
    x = pl.Series("x", ["a"] * cells[0] + ["b"] * cells[1], dtype=pl.Enum(["a", "b"]))
    plan = synth.SmoothHistogram(2, float(many), never_missing=["x"], n_rows=many)
    return np.asarray(plan.fit(Microdata(pl.DataFrame([x]))).drawn, dtype=np.float64)  # type: ignore[attr-defined]


def _noisy_normal(last: float, many: int) -> npt.ArrayLike:
    """A thousand records at the lower bound, and the last one there or at the upper."""
    data = Microdata(pl.DataFrame({"x": [-1.0] * 999 + [last]}))
    fitted: Any = synth.NoisyBayes(float(many), bounds=UNIT, n_datasets=many).fit(data)
    return np.concatenate([fitted.means, fitted.covariances.reshape(many, -1)], axis=1)


_EIGHT_OR_NINE = (_records(8), _records(9))
_MOVED = (_pairs((2, 1)), _pairs((1, 2)))
DELTA = 1e-3
CLAIMS = {
    "histogram, level by level": Claim(_histogram, (8, 9), 1.0),
    "SampleAndAnonymize, class by class": Claim(_classes, (12, 13), 1.0, 0.01),
    "SmoothHistogram, row by row": Claim(_in_parts(500, _rows), ((10, 0), (9, 1)), 1.0),
    "PerturbedHistogram, pairs of cells": Claim(_in_parts(_PAIRS, _perturbed), _MOVED, 1.0),
    "BayesianNetwork, pairs of its counts": Claim(_in_parts(_PAIRS, _network_counts), _MOVED, 1.0),
    # Its epsilon of 1 is one against a record more or less; a moved record is one less and one more.
    "catall, pairs of cells drawn": Claim(_in_parts(_PAIRS, _drawn_from_table), _MOVED, 2.0),
    "NoisyBayes, dataset by dataset": Claim(_in_parts(_CALL, _noisy_normal), (-1.0, 1.0), 1.0),
    "quantile regression, kng, line by line": Claim(
        _in_parts(
            _FEW, _lines("kng", intercept=False, theta_bound=4, proper="box", h=0.02, epsilon=float(_FEW))
        ),
        (heights(-5, 5, 3.6), heights(-5, 5, 3.6, 5)),
        1.0,
    ),
    "quantile regression, sgd, line by line": Claim(
        _in_parts(_CALL, _lines("sgd", records=8, steps=2, epsilon=float(_CALL), delta=_CALL * DELTA)),
        _EIGHT_OR_NINE,
        1.0,
        DELTA,
    ),
    "quantile regression, agd, line by line": Claim(
        _in_parts(
            _CALL,
            _lines("agd", residual_bound=1, steps=2, rho=_CALL * dp.largest_rho(1.0, DELTA), delta=DELTA),
        ),
        _EIGHT_OR_NINE,
        1.0,
        DELTA,
    ),
    "quantile regression, opm, line by line": Claim(
        _in_parts(_CALL, _lines("opm", epsilon=float(_CALL), delta=_CALL * DELTA)),
        _EIGHT_OR_NINE,
        1.0,
        DELTA,
    ),
}
"""What many cells, classes, rows, lines or datasets of one call show."""
