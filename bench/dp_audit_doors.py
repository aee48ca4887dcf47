"""The doors of this package that promise differential privacy, each with two neighbors that put it to the test.

`bench/dp_audit.py` audits them. What answers for many cells or records at once is run a hundred thousand times in one
call; everything else is asked again and again, on files as small as they can be.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet import Microdata, dp, protect, synth, tables

SURE = 1 - 1e-9
"""The confidence of every bound: among all lines of the table none is refuted by chance."""


@dataclass(frozen=True)
class Claim:
    """A mechanism, two neighbors, and what is claimed of it."""

    draw: Callable[[Any, int], npt.ArrayLike]
    neighbors: tuple[Any, Any]
    epsilon: float
    delta: float = 0.0

    def audited(self, runs: int) -> Any:
        return dp.audit(
            self.draw, self.neighbors, epsilon=self.epsilon, delta=self.delta, runs=runs, level=SURE
        )


def again_and_again(ask: Callable[[Any], npt.ArrayLike]) -> Callable[[Any, int], npt.ArrayLike]:
    """Ask once a run."""

    def draw(data: Any, runs: int) -> npt.ArrayLike:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.stack([np.ravel(ask(data)) for _ in range(runs)])

    return draw


def _many_cells(records: int, runs: int) -> Microdata:
    """A file with so many records in each of ``runs`` cells: every cell is a run of its own."""
    return Microdata(pl.DataFrame({"cell": np.repeat(np.arange(runs), records)}))


def _public_table(records: int, runs: int) -> npt.ArrayLike:
    asked = dp.table(_many_cells(records, runs), "cell", levels={"cell": range(runs)}, epsilon=1.0)
    return asked.detail["table"]["count"].to_numpy()


def _table_of(figure: str) -> Callable[[int, int], npt.ArrayLike]:
    """A total or a mean of so many cells, in each of which so many records have the value 1."""

    def draw(records: int, runs: int) -> npt.ArrayLike:
        people = _many_cells(records, runs).frame.with_columns(x=pl.lit(1.0))
        asked = dp.table(
            Microdata(people), "cell", levels={"cell": range(runs)}, column="x", lower=0, upper=1, epsilon=1.0
        )
        return asked.detail["table"][figure].to_numpy()

    return draw


def _unknown_table(records: int, runs: int) -> npt.ArrayLike:
    """The noisy count of a cell, and -1 where it is not shown at all."""
    asked = dp.table(_many_cells(records, runs), "cell", epsilon=1.0, delta=1e-3).detail["table"]
    counts = np.full(runs, -1.0)
    counts[asked["cell"].cast(pl.Int64).to_numpy()] = asked["count"].to_numpy()
    return counts


def _cells_of(method: Any) -> Callable[[int, int], npt.ArrayLike]:
    """The inner cells of a protected table in which every cell has so many records."""

    def draw(records: int, runs: int) -> npt.ArrayLike:
        codes = [f"c{at:06d}" for at in range(runs)]
        # One cell more, with somebody in it: a file without a record is none.
        people = pl.DataFrame({"cell": [*np.repeat(codes, records).tolist(), "other"]})
        levels = {"Total": [*codes, "other"]}
        table = tables.Table.from_microdata(people, "cell", hierarchies={"cell": levels}, zeros="all")
        with warnings.catch_warnings():
            # A pseudocount for so many empty cells is much, as the method says.
            warnings.simplefilter("ignore")
            shown = method.apply(table).table.inner
        return shown.filter(pl.col("cell") != "other").sort("cell")["count"].to_numpy()

    return draw


_PRAM = protect.Pram(
    columns="x",
    matrix={"x": {"a": {"a": 0.7, "b": 0.3}, "b": {"a": 0.3, "b": 0.7}}},
    invariant=False,
)


def _pram(level: str, runs: int) -> npt.ArrayLike:
    """Every record is drawn by itself, so that a file of one value is as many runs as it has records."""
    data = Microdata(pl.DataFrame({"x": pl.repeat(level, runs, eager=True)}), keys=["x"])
    return (_PRAM.apply(data).data.frame["x"] == "a").to_numpy().astype(np.float64)


AT_ONCE = {
    "table, public levels": Claim(_public_table, (8, 9), 1.0),
    "table, totals": Claim(_table_of("total"), (8, 9), 1.0),
    "table, means": Claim(_table_of("mean"), (1, 2), 1.0),
    "table, unknown cells: one record or none": Claim(_unknown_table, (0, 1), 1.0, 1e-3),
    "table, unknown cells near the threshold": Claim(_unknown_table, (6, 7), 1.0, 1e-3),
    "tables.NoisyCounts": Claim(
        _cells_of(tables.NoisyCounts(epsilon=1.0, domain="public", nonnegative=False)), (3, 4), 1.0
    ),
    "tables.PoissonSynthesis, alpha 1": Claim(
        _cells_of(tables.PoissonSynthesis(alpha=1, epsilon=2.0, domain="public")), (0, 1), 2.0, 0.025611
    ),
    "protect.Pram": Claim(_pram, ("a", "b"), float(np.log(0.7 / 0.3)) + 1e-9),
}


def _records(many: int) -> Microdata:
    return Microdata(pl.DataFrame({"x": [1.0] * many, "y": [1.0] * many}))


def heights(*y: float) -> Microdata:
    return Microdata(pl.DataFrame({"x": [1.0] * len(y), "y": [float(one) for one in y]}))


def _bounded(query: Callable[..., Any]) -> Callable[[Any, int], npt.ArrayLike]:
    return again_and_again(lambda data: query(data, "x", lower=0, upper=1, epsilon=1.0).value)


def _line(regression: Callable[..., Any], **asked: Any) -> Callable[[Any, int], npt.ArrayLike]:
    """The coefficients, rounded: floating point works them out of noisy whole numbers."""
    bounds = {"x": (-1, 1)}

    def ask(data: Microdata) -> npt.ArrayLike:
        found = regression(data, y="y", x="x", x_bounds=bounds, epsilon=1.0, **asked)
        return np.round(found.detail["coefficients"]["coefficient"].to_numpy(), 6)

    return again_and_again(ask)


def _graph(edge: bool) -> npt.NDArray[np.int64]:
    """Thirty people, of whom neighbors in a ring of five are connected, and two more or not."""
    people = np.arange(30)
    apart = (people[:, None] - people) % 30
    ties = (np.minimum(apart, 30 - apart) <= 2).astype(np.int64) - np.eye(30, dtype=np.int64)
    ties[0, 15] = ties[15, 0] = int(edge)
    return ties


def _drawn_edges(ties: npt.NDArray[np.int64]) -> npt.ArrayLike:
    """Whether the two are connected, and among how many: few tell more."""
    made = protect.LapGraph(1.0).apply(ties)
    there = bool(made.adjacency[0, 15])
    return [there, made.edges if there else 1_000]


def _sampled(data: Microdata) -> npt.ArrayLike:
    """How many records of the cell are released, and whether any were."""
    frame = protect.SampleAndAnonymize(epsilon=1.0, delta=0.05, sampling_rate=0.3).apply(data).data.frame
    return [frame.height, (frame["x"] == "b").sum(), (frame["x"] == "*").sum()]


def _people(first: int, second: int) -> Microdata:
    levels = pl.Enum(["a", "b"])
    frame = pl.DataFrame({"x": pl.Series(["a"] * first + ["b"] * second, dtype=levels)})
    return Microdata(frame, keys=["x"])


ONE_BY_ONE = {
    "count": Claim(
        again_and_again(lambda data: dp.count(data, epsilon=1.0).value), (_records(8), _records(9)), 1.0
    ),
    "total": Claim(_bounded(dp.total), (_records(8), _records(9)), 1.0),
    "mean": Claim(_bounded(dp.mean), (_records(8), _records(9)), 1.0),
    "variance": Claim(_bounded(dp.variance), (_records(8), _records(9)), 1.0),
    "quantiles": Claim(
        again_and_again(
            lambda data: dp.quantiles(data, "x", [1.0], lower=0, upper=2, epsilon=1.0, points=3).value
        ),
        (_records(3), _records(4)),
        1.0,
    ),
    "histogram": Claim(
        again_and_again(
            lambda data: dp.histogram(data, "x", levels=[0.0, 1.0], epsilon=1.0).detail["table"]["count"]
        ),
        (_records(8), _records(9)),
        1.0,
    ),
    "linear regression, k-norm": Claim(
        _line(dp.linear_regression, y_bounds=(-1, 1)), (_records(8), _records(9)), 1.0
    ),
    "linear regression, functional": Claim(
        _line(dp.linear_regression, y_bounds=(-1, 1), mechanism="functional"), (_records(8), _records(9)), 1.0
    ),
    "quantile regression, agd": Claim(
        _line(dp.quantile_regression, mechanism="agd", residual_bound=1, steps=2, delta=1e-3),
        (_records(8), _records(9)),
        1.0,
        1e-3,
    ),
    "quantile regression, sgd": Claim(
        _line(dp.quantile_regression, mechanism="sgd", records=8, steps=2, delta=1e-3),
        (_records(8), _records(9)),
        1.0,
        1e-3,
    ),
    # Slopes above 3.6 are rare, and a record at 4 makes them as likely as one record can.
    "quantile regression, kng": Claim(
        _line(dp.quantile_regression, mechanism="kng", intercept=False, theta_bound=4, proper="box", h=0.02),
        (heights(-5, 5, 3.6), heights(-5, 5, 3.6, 5)),
        1.0,
    ),
    "protect.LapGraph": Claim(again_and_again(_drawn_edges), (_graph(False), _graph(True)), 1.0),
    "protect.SampleAndAnonymize": Claim(
        again_and_again(_sampled), (_people(30, 5), _people(30, 6)), 1.0, 0.05
    ),
}
"""Doors that answer once a call: milliseconds each."""


PLACES = pl.Enum(["a", "b"])


def _small_file(first: int, second: int) -> Microdata:
    """So many records in each of two cells of a table of two by two."""
    levels = {"x": ["a"] * first + ["b"] * second, "y": ["a"] * first + ["b"] * second}
    return Microdata(pl.DataFrame({name: pl.Series(own, dtype=PLACES) for name, own in levels.items()}))


def _crossed(more: int) -> Microdata:
    """Two hundred records in each cell of a table of two by two, far above the noise, and so many more in the last."""
    x = np.repeat(["a", "a", "b", "b"], [200, 200, 200, 200 + more])
    y = np.repeat(["a", "b", "a", "b"], [200, 200, 200, 200 + more])
    return Microdata(pl.DataFrame([pl.Series("x", x, dtype=PLACES), pl.Series("y", y, dtype=PLACES)]))


def _at_an_end(last: float) -> Microdata:
    """A thousand records at the lower bound, and the last one there or at the upper."""
    return Microdata(pl.DataFrame({"x": [-1.0] * 999 + [last]}))


def _places(*names: str) -> Microdata:
    return Microdata(pl.DataFrame([pl.Series("x", names, dtype=PLACES)]))


BEFORE, AFTER = (1, 1, 0), (1, 0, 1)
"""A record that makes two of three columns agree with each other, in codes, and one for which it is another pair."""


def _one_apart(codes: tuple[int, ...]) -> Microdata:
    """Nine records at the first level of three columns, and one that is not: choices change as far as they can."""
    columns = {
        name: pl.Series(["a"] * 9 + ["ab"[code]], dtype=PLACES)
        for name, code in zip("xyz", codes, strict=True)
    }
    return Microdata(pl.DataFrame(columns))


def _fitted(
    plan: synth.Synthesizer, told: Callable[[Any], npt.ArrayLike]
) -> Callable[[Any, int], npt.ArrayLike]:
    """Fit a generator again and again, and take what it released as numbers."""
    return again_and_again(lambda data: told(plan.fit(data)))


def _tables(fitted: Any) -> npt.ArrayLike:
    """The estimated number of records, of those with each level of either column, and of both."""
    alone = [one.shares for one in fitted.groupings]
    return np.concatenate([[fitted.rows], *alone, *(own.ravel() for own in fitted.model.tables)])


def _network(fitted: Any) -> npt.ArrayLike:
    """The order of the columns, and the noisy counts of the cells that the record leaves and comes to.

    By pairs of columns; -1 for the pair that has no table.
    """
    told = np.full((3, 2), -1.0)
    first, second, third = fitted.network
    pairs = ((first.child, second.child), (third.parents[0], third.child))
    for (above, below), law in zip(pairs, fitted.laws, strict=True):
        table = np.diff(law.mass, prepend=0.0).reshape(2, 2)
        told[above + below - 1] = [table[one[above], one[below]] for one in (BEFORE, AFTER)]
    return [first.child, 3 * first.child + second.child, *told.ravel()]


def _drawn_cells(fitted: Any) -> npt.ArrayLike:
    """How many of twenty synthetic records fall into each cell."""
    made = fitted.sample(20).frame
    return [((made["x"] == x) & (made["y"] == y)).sum() for x in ("a", "b") for y in ("a", "b")]


NEVER = ["x", "y"]
UNIT = {"x": (-1, 1)}
GENERATORS = {
    "MST": Claim(
        _fitted(synth.MST(3.0, delta=0.01, never_missing=NEVER), _tables),
        (_crossed(0), _crossed(1)),
        3.0,
        0.01,
    ),
    "AIM": Claim(
        # A short time limit makes it two rounds, which share the whole budget.
        _fitted(synth.AIM(3.0, delta=0.01, never_missing=NEVER, max_seconds=1e-3), _tables),
        (_crossed(0), _crossed(1)),
        3.0,
        0.01,
    ),
    "BayesianNetwork": Claim(
        _fitted(synth.BayesianNetwork(epsilon=4.0, never_missing=["x", "y", "z"]), _network),
        (_one_apart(BEFORE), _one_apart(AFTER)),
        4.0,
    ),
    "PerturbedHistogram": Claim(
        _fitted(synth.PerturbedHistogram(2, 1.0, never_missing=NEVER), lambda fitted: fitted.counts),
        (_small_file(10, 0), _small_file(9, 1)),
        1.0,
    ),
    "SmoothHistogram": Claim(
        _fitted(
            synth.SmoothHistogram(2, 1.0, never_missing=NEVER),
            lambda fitted: np.bincount(fitted.drawn, minlength=4),
        ),
        (_small_file(10, 0), _small_file(9, 1)),
        1.0,
    ),
    "NoisyBayes": Claim(
        _fitted(
            synth.NoisyBayes(1.0, bounds=UNIT, n_datasets=1),
            lambda fitted: np.concatenate([fitted.means.ravel(), fitted.covariances.ravel()]),
        ),
        (_at_an_end(-1.0), _at_an_end(1.0)),
        1.0,
    ),
    "PMSEMechanism, candidates": Claim(
        _fitted(
            synth.PMSEMechanism(
                4.0,
                never_missing="x",
                # Nearly every candidate has one level alone.
                width=10.0,
                depth=1,
                sensitivity="tight",
                sampler="candidates",
                candidates=8,
            ),
            lambda fitted: fitted.thetas[0],
        ),
        (_places("b", "b", "b"), _places("b", "b", "a")),
        4.0,
    ),
    "Sequential, catall with noise": Claim(
        _fitted(synth.Sequential(method="catall", method_options={"catall": {"epsilon": 1.0}}), _drawn_cells),
        (_small_file(9, 0), _small_file(9, 1)),
        1.0,
    ),
}
"""Generators, fitted to either neighbor again and again."""

DOORS = {
    "dp/queries.py": ("count", "total", "mean", "variance", "quantiles"),
    "dp/private_tables.py": ("histogram", "table, public levels"),
    "dp/mechanisms.py": ("laplace, a decimal number", "gaussian, a decimal number", "local Laplace"),
    "dp/selection.py": (
        "choose: permute-and-flip",
        "choose: exponential",
        "choose: noisy-max",
        "sparse vector",
    ),
    "dp/linear_regression.py": ("linear regression, k-norm", "linear regression, functional"),
    "dp/quantile_regression.py": (
        "quantile regression, agd",
        "quantile regression, sgd",
        "quantile regression, kng",
    ),
    "protect/lapgraph.py": ("protect.LapGraph",),
    "protect/pram.py": ("protect.Pram",),
    "protect/sample_and_anonymize.py": ("protect.SampleAndAnonymize",),
    "synth/bayesian_network.py": ("BayesianNetwork",),
    "synth/pmse_mechanism.py": ("PMSEMechanism, candidates",),
    "synth/noisy_bayes.py": ("NoisyBayes",),
    "synth/private_histograms.py": ("PerturbedHistogram", "SmoothHistogram"),
    "synth/marginals_model.py": (
        "MST",
        "AIM",
    ),  # and the networks of dp_audit_networks.py
    "synth/sequential/sequential_model.py": ("Sequential, catall with noise",),
    "tables/noisy_counts.py": ("tables.NoisyCounts",),
    "tables/count_synthesis.py": ("tables.PoissonSynthesis, alpha 1",),
}
"""Every module that makes a claim, and the lines of the audit that put it to the test."""
