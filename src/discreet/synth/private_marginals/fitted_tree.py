"""A tree of noisy tables that was fitted, from which synthetic files are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import polars as pl

from discreet.arrays import Floats, Integers
from discreet.microdata import Microdata
from discreet.synth.bayesian_network.coding import Attribute
from discreet.synth.private_marginals.measuring import Grouping
from discreet.synth.synthesizer import Fitted, Stream


class FittedTree(Fitted):
    """A tree that was fitted.

    Attributes
    ----------
    pairs
        The pairs of columns that were measured, in the order in which they were chosen.
    left_out
        Columns that the synthetic file does not have, and why.
    """

    def __init__(
        self,
        like: Microdata,
        rows: int,
        *,
        attributes: Sequence[Attribute],
        groupings: Sequence[Grouping],
        edges: Sequence[tuple[int, int]],
        tables: Sequence[Floats],
        left_out: Mapping[str, str],
    ) -> None:
        super().__init__(like, rows)
        self.attributes = list(attributes)
        self.groupings = list(groupings)
        self.edges = [(int(a), int(b)) for a, b in edges]
        self.tables = [np.asarray(table, dtype=np.float64) for table in tables]
        self.left_out = dict(left_out)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The pairs of columns that were measured, in the order in which they were chosen."""
        return [(self.attributes[a].name, self.attributes[b].name) for a, b in self.edges]

    def draw(self, n: int, stream: Stream) -> pl.DataFrame:
        """Draw one column, then its neighbors given it, and so on along the tree."""
        groups: dict[int, Integers] = {}
        for place, ((a, b), table) in enumerate(self._walked()):
            if not groups:
                groups[a] = _drawn(table.sum(axis=1)[None, :], np.zeros(n, dtype=np.int64), stream("first"))
            groups[b] = _drawn(table, groups[a], stream("pair", str(place)))
        columns = [self._column(place, groups[place], stream) for place in range(len(self.attributes))]
        return pl.DataFrame(columns)

    def _walked(self) -> list[tuple[tuple[int, int], Floats]]:
        """The pairs in an order in which the first column of each is drawn before the second."""
        left = list(zip(self.edges, self.tables, strict=True))
        reached, walked = {self.edges[0][0]}, []
        while left:
            place = next(i for i, ((a, b), _) in enumerate(left) if a in reached or b in reached)
            (a, b), table = left.pop(place)
            walked.append(((a, b), table) if a in reached else ((b, a), table.T))
            reached |= {a, b}
        return walked

    def _column(self, place: int, groups: Integers, stream: Stream) -> pl.Series:
        attribute, grouping = self.attributes[place], self.groupings[place]
        within = np.full((grouping.size, len(grouping.group)), 0.0)
        within[grouping.group, np.arange(len(grouping.group))] = grouping.shares + 1e-9
        codes = _drawn(within, groups, stream("level", attribute.name))
        if attribute.edges is None:
            return attribute.decode(codes, None)
        bins = np.minimum(codes, attribute.bins - 1)
        low, high = attribute.edges[bins], attribute.edges[bins + 1]
        # Strictly inside, so that rounding to whole numbers never leaves the bin.
        part = stream("within", attribute.name).random(len(bins)) * (1 - 2**-20) + 2**-21
        return attribute.decode(codes, low + part * (high - low))

    def state(self) -> dict[str, Any]:
        """Return the model for a file."""
        return {
            "attributes": [attribute.state() for attribute in self.attributes],
            "groupings": [
                {"group": one.group, "shares": one.shares, "size": one.size} for one in self.groupings
            ],
            "edges": [list(edge) for edge in self.edges],
            "tables": list(self.tables),
            "left_out": dict(self.left_out),
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any], like: Microdata, rows: int) -> Self:
        """Make the model again."""
        return cls(
            like,
            rows,
            attributes=[Attribute.restored(own) for own in state["attributes"]],
            groupings=[
                Grouping(np.asarray(one["group"]), np.asarray(one["shares"]), int(one["size"]))
                for one in state["groupings"]
            ],
            edges=[(a, b) for a, b in state["edges"]],
            tables=state["tables"],
            left_out=state["left_out"],
        )


def _drawn(table: Floats, rows: Integers, rng: np.random.Generator) -> Integers:
    """Draw a column of the table for every row given."""
    width = table.shape[1]
    running = np.cumsum(table + 1e-12, axis=1)
    flat = (running / running[:, -1:] + np.arange(len(table))[:, None]).ravel()
    hit = np.searchsorted(flat, rows + rng.random(len(rows)), side="right")
    return np.asarray(np.clip(hit - rows * width, 0, width - 1), dtype=np.int64)
