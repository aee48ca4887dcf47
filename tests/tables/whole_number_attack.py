"""Random small tables of counts, and an intruder who reasons in whole numbers only: no code of the package."""

import numpy as np
import polars as pl
from scipy.optimize import Bounds, LinearConstraint, milp

from discreet.tables import Table, Threshold, primary

SHAPES = ("a*b", "a*b*c", "a*b + a*c + b*c", "hierarchy")


def random_counts(seed):
    """A small table of counts with its sensitive cells: two- and three-way, linked or hierarchical."""
    rng = np.random.default_rng(seed)
    shape = SHAPES[rng.integers(0, 4)]
    n, skew = int(rng.integers(8, 90)), rng.uniform(0.2, 1.5)

    def codes(name, many):
        chances = np.exp(-skew * np.arange(many))
        return [f"{name}{code}" for code in rng.choice(many, size=n, p=chances / chances.sum())]

    frame = pl.DataFrame(
        {
            "a": codes("a", int(rng.integers(2, 5))),
            "b": codes("b", int(rng.integers(2, 4))),
            "c": codes("c", 2),
        }
    )
    frame = frame.with_columns(
        group=pl.when(pl.col("a").is_in(["a0", "a1"])).then(pl.lit("g0")).otherwise(pl.lit("g1"))
    )
    zeros = ("observed", "all", "all")[rng.integers(0, 3)]
    table = Table.from_microdata(
        frame, "a*b" if shape == "hierarchy" else shape, zeros=zeros,
        hierarchies={"a": "group"} if shape == "hierarchy" else {},
    )  # fmt: skip
    least = int(rng.integers(2, 6))
    return primary(table, Threshold(least, zeros=bool(zeros == "all" and rng.random() < 0.4)))


def pinned(table, suppressed):
    """Sensitive cells of which only one whole number fits all that is published.

    The intruder knows that no count is negative and, where every zero is published, that no other count is zero.
    """
    x, y, shown = table.x.toarray(), table.inner["count"].to_numpy(), ~np.asarray(suppressed)
    sums = x[:, shown].T
    seen_zero = (sums[(sums @ y) == 0].sum(axis=0) > 0) if shown.any() else np.zeros(len(y), dtype=bool)
    least = np.where((y > 0) & seen_zero[y == 0].all(), 1.0, 0.0)
    rules = [LinearConstraint(sums, sums @ y, sums @ y)] if shown.any() else []
    most = np.full(len(y), 10.0 * y.sum() + 10.0)
    found = []
    for cell in np.flatnonzero(table.cells["primary"].to_numpy()).tolist():
        ends = [
            sign
            * milp(
                sign * x[:, cell], constraints=rules, bounds=Bounds(least, most), integrality=np.ones(len(y))
            ).fun
            for sign in (1.0, -1.0)
        ]
        if ends[1] - ends[0] < 0.5:
            found.append(cell)
    return found
