"""A model of noisy tables that was fitted, from which synthetic files are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import polars as pl

from discreet.core.arrays import Integers
from discreet.core.errors import ParameterError
from discreet.microdata import Microdata
from discreet.synth.coded_columns import Attribute
from discreet.synth.private_marginals.graphical_model import GraphicalModel, drawn_columns
from discreet.synth.private_marginals.impossible import Combination, Condition, found
from discreet.synth.private_marginals.junction_tree import JunctionTree
from discreet.synth.private_marginals.measuring import Grouping
from discreet.synth.synthesizer import Fitted, Stream

_TRIES = 200


class FittedMarginals(Fitted):
    """A model of noisy tables.

    Attributes
    ----------
    measured
        The tables that were measured, as columns, in the order in which they were chosen.
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
        chosen: Sequence[tuple[int, ...]],
        model: GraphicalModel,
        impossible: Sequence[Combination],
        left_out: Mapping[str, str],
    ) -> None:
        super().__init__(like, rows)
        self.attributes = list(attributes)
        self.groupings = list(groupings)
        self.chosen = [tuple(int(column) for column in columns) for columns in chosen]
        self.model = model
        self.impossible = list(impossible)
        self.left_out = dict(left_out)

    @property
    def measured(self) -> list[tuple[str, ...]]:
        """The tables that were measured, as columns, in the order in which they were chosen."""
        return [tuple(self.attributes[column].name for column in columns) for columns in self.chosen]

    @property
    def pairs(self) -> list[tuple[str, ...]]:
        """The pairs of columns among the tables that were measured."""
        return [columns for columns in self.measured if len(columns) == 2]

    def draw(self, n: int, stream: Stream) -> pl.DataFrame:
        """Draw table by table; records with a combination that cannot occur are drawn again."""
        frame = self._drawn(n, stream)
        again = np.flatnonzero(found(self.impossible, frame)) if self.impossible else ()
        tries = 0
        while len(again):
            tries += 1
            if tries > _TRIES:
                raise ParameterError(
                    "Nearly every record that is drawn has a combination declared as impossible. Declare less."
                )
            new = self._drawn(len(again), stream.child("again", str(tries)))
            place = np.arange(n)
            place[again] = n + np.arange(len(again))
            frame = pl.concat([frame, new])[place]
            again = again[found(self.impossible, new)]
        return frame

    def _drawn(self, n: int, stream: Stream) -> pl.DataFrame:
        groups = self.model.drawn(n, stream("groups"))
        return pl.DataFrame([self._column(at, own, stream) for at, own in enumerate(groups)])

    def _column(self, place: int, groups: Integers, stream: Stream) -> pl.Series:
        attribute, grouping = self.attributes[place], self.groupings[place]
        within = np.zeros((grouping.size, len(grouping.group)))
        within[grouping.group, np.arange(len(grouping.group))] = grouping.shares + 1e-9
        codes = drawn_columns(within, groups, stream("level", attribute.name))
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
            "chosen": [list(columns) for columns in self.chosen],
            "cliques": [list(clique) for clique in self.model.tree.cliques],
            "parents": list(self.model.tree.parents),
            "tables": list(self.model.tables),
            "impossible": [[each.state() for each in combination] for combination in self.impossible],
            "left_out": dict(self.left_out),
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any], like: Microdata, rows: int) -> Self:
        """Make the model again."""
        tree = JunctionTree(
            tuple(tuple(int(column) for column in clique) for clique in state["cliques"]),
            tuple(int(parent) for parent in state["parents"]),
        )
        return cls(
            like,
            rows,
            attributes=[Attribute.restored(own) for own in state["attributes"]],
            groupings=[
                Grouping(np.asarray(one["group"]), np.asarray(one["shares"]), int(one["size"]))
                for one in state["groupings"]
            ],
            chosen=state["chosen"],
            model=GraphicalModel(
                tree, tuple(np.asarray(table, dtype=np.float64) for table in state["tables"])
            ),
            impossible=[
                tuple(Condition.restored(each) for each in combination) for combination in state["impossible"]
            ],
            left_out=state["left_out"],
        )
