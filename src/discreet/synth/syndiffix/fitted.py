"""A SynDiffix table that was fitted: buckets and codings, and no record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import polars as pl

from discreet.microdata import Microdata
from discreet.synth.syndiffix.coding import Coding
from discreet.synth.syndiffix.drawn_tables import ClusterBuckets, decoded_table, drawn_table, sized
from discreet.synth.syndiffix.preparing import NOT_PRIVATE
from discreet.synth.synthesizer import Fitted, Stream


@dataclass(frozen=True)
class Suppression:
    """What a column lost.

    Attributes
    ----------
    folded
        Records whose value lies outside the range that can be shown (outliers, a few missing values): they are counted
        with the nearest value that can.
    hidden
        Records in ranges of this column that hold too few people to be shown by themselves.
    """

    folded: int
    hidden: int


class FittedSynDiffix(Fitted):
    """Buckets that records are drawn from.

    Attributes
    ----------
    suppression
        What every column lost; for the holder of the data, not for the public.
    left_out
        Columns that the table does not have, and why.
    """

    why_none = NOT_PRIVATE

    def __init__(
        self,
        like: Microdata,
        rows: int,
        *,
        clusters: Sequence[ClusterBuckets],
        codings: Sequence[Coding],
        ranges: Sequence[tuple[float, float]],
        suppression: Mapping[str, Suppression],
        left_out: Mapping[str, str],
    ) -> None:
        super().__init__(like, rows)
        self.clusters = list(clusters)
        self.codings = list(codings)
        self.ranges = list(ranges)
        self.suppression = dict(suppression)
        self.left_out = dict(left_out)

    @property
    def total(self) -> int:
        """Number of records that the first cluster shows; 0 where nothing may be shown."""
        return int(self.clusters[0].count.sum())

    def draw(self, n: int, stream: Stream) -> pl.DataFrame:
        """Draw a table; it is empty where every range held too few people."""
        here, table = drawn_table(self.clusters, self.codings, self.ranges, stream)
        return decoded_table(here, sized(table, n, stream("order")), self.codings)

    def state(self) -> dict[str, Any]:
        """Return the model for a file."""
        return {
            "clusters": [own.state() for own in self.clusters],
            "codings": [coding.state() for coding in self.codings],
            "ranges": [list(ends) for ends in self.ranges],
            "left_out": dict(self.left_out),
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any], like: Microdata, rows: int) -> Self:
        """Make the model again; what was suppressed is not in a model file."""
        return cls(
            like,
            rows,
            clusters=[ClusterBuckets.restored(own) for own in state["clusters"]],
            codings=[Coding.restored(own) for own in state["codings"]],
            ranges=[(float(low), float(high)) for low, high in state["ranges"]],
            suppression={},
            left_out=state["left_out"],
        )
