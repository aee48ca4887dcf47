"""A Bayesian network that was fitted, from which synthetic files are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import polars as pl

from discreet.core.arrays import Integers
from discreet.microdata import Microdata
from discreet.synth.bayesian_network.coding import Attribute
from discreet.synth.bayesian_network.laws import CellLaw
from discreet.synth.bayesian_network.structure import Node, packed
from discreet.synth.bayesian_network.within_bins import BinLaw
from discreet.synth.synthesizer import Fitted, Stream


class FittedBayesianNetwork(Fitted):
    """A network that was fitted.

    Attributes
    ----------
    edges
        ``{column: parents}`` in the order in which columns are drawn.
    left_out
        Columns that the synthetic file does not have, and why.
    """

    def __init__(
        self,
        like: Microdata,
        rows: int,
        *,
        attributes: Sequence[Attribute],
        network: Sequence[Node],
        laws: Sequence[CellLaw],
        within: Mapping[str, BinLaw],
        keys: Mapping[str, pl.DataType],
        joint: int,
        left_out: Mapping[str, str],
    ) -> None:
        super().__init__(like, rows)
        self.attributes = list(attributes)
        self.network = list(network)
        self.laws = list(laws)
        self.within = dict(within)
        self.keys = dict(keys)
        self.joint = joint
        self.left_out = dict(left_out)

    @property
    def edges(self) -> dict[str, tuple[str, ...]]:
        """The parents of every column, in the order in which columns are drawn."""
        names = [attribute.name for attribute in self.attributes]
        return {names[node.child]: tuple(names[parent] for parent in node.parents) for node in self.network}

    def draw(self, n: int, stream: Stream) -> pl.DataFrame:
        """Draw the columns in the order of the network."""
        sizes = [attribute.size for attribute in self.attributes]
        codes: list[Integers] = [np.zeros(n, dtype=np.int64) for _ in sizes]
        start = 0
        if self.joint:
            together = [node.child for node in self.network[: self.joint + 1]]
            cell = self.laws[0].draw(np.zeros(n, dtype=np.int64), stream("joint"))
            for column in reversed(together):
                codes[column] = cell % sizes[column]
                cell = cell // sizes[column]
            start = self.joint + 1
        for place in range(start, len(self.network)):
            node = self.network[place]
            above = packed(codes, sizes, node.parents)[0] if node.parents else np.zeros(n, dtype=np.int64)
            law = self.laws[place - self.joint]
            codes[node.child] = law.draw(above, stream("column", self.attributes[node.child].name))
        columns = [self._decoded(a, own, stream) for a, own in zip(self.attributes, codes, strict=True)]
        columns += [_regenerated(name, dtype, n) for name, dtype in self.keys.items()]
        return pl.DataFrame(columns)

    def _decoded(self, attribute: Attribute, codes: Integers, stream: Stream) -> pl.Series:
        if attribute.name not in self.within:
            return attribute.decode(codes, None)
        bins = np.minimum(codes, attribute.ordinary - 1)
        numbers = self.within[attribute.name].draw(bins, stream("within", attribute.name))
        return attribute.decode(codes, numbers)

    def state(self) -> dict[str, Any]:
        """Return the model for a file."""
        return {
            "attributes": [attribute.state() for attribute in self.attributes],
            "network": [[node.child, list(node.parents)] for node in self.network],
            "laws": [law.state() for law in self.laws],
            "within": {name: law.state() for name, law in self.within.items()},
            "keys": {name: pl.Series(name, [], dtype=dtype) for name, dtype in self.keys.items()},
            "joint": self.joint,
            "left_out": dict(self.left_out),
            "combining_rule": self.combining_rule,
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any], like: Microdata, rows: int) -> Self:
        """Make the model again."""
        fitted = cls(
            like,
            rows,
            attributes=[Attribute.restored(own) for own in state["attributes"]],
            network=[Node(int(child), tuple(parents)) for child, parents in state["network"]],
            laws=[CellLaw.restored(law) for law in state["laws"]],
            within={name: BinLaw.restored(law) for name, law in state["within"].items()},
            keys={name: empty.dtype for name, empty in state["keys"].items()},
            joint=int(state["joint"]),
            left_out=state["left_out"],
        )
        fitted.combining_rule = state["combining_rule"]
        return fitted


def _regenerated(name: str, dtype: pl.DataType, n: int) -> pl.Series:
    """Number the records anew in place of a key."""
    numbers = pl.Series(name, np.arange(1, n + 1, dtype=np.int64))
    return numbers.cast(dtype)
