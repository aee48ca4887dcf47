"""An adversarial forest that was fitted, from whose leaves synthetic records are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from discreet.core.arrays import Array, Flags, Floats
from discreet.microdata import Microdata
from discreet.synth.adversarial_forest.leaves import Leaves
from discreet.synth.column_forms import CategoryForm
from discreet.synth.synthesizer import Stream
from discreet.synth.whole_records import Blueprint, FittedRecords


class FittedForest(FittedRecords):
    """A forest that was fitted.

    Attributes
    ----------
    leaves
        What the leaves of all trees know.
    accuracies
        How often each forest of the contest was right on records it was not grown on: 0.5 is no better than chance.
    """

    def __init__(
        self,
        like: Microdata,
        rows: int,
        *,
        blueprint: Blueprint,
        leaves: Leaves,
        accuracies: Sequence[float],
        left_out: Mapping[str, str] | None = None,
        weighted: bool = False,
    ) -> None:
        super().__init__(like, rows, blueprint=blueprint, left_out=left_out, weighted=weighted)
        self.leaves = leaves
        self.accuracies = tuple(accuracies)

    def propose(self, n: int, stream: Stream, wanted: Mapping[str, Flags]) -> list[Array]:
        """Choose leaves, those that are likely to hold what was asked for where something was; then every column."""
        places = self._categories()
        likely: Floats | None = None
        for name, codes in wanted.items():
            own = self.leaves.likely(places[name], codes)
            likely = own if likely is None else likely * own
        leaves = self.leaves.chosen(n, likely, stream("leaves"))
        parts: list[Array] = []
        category = number = 0
        for (name, form), width in zip(self.blueprint.forms.items(), self.blueprint.widths, strict=True):
            rng = stream("column", name)
            if isinstance(form, CategoryForm):
                only = None
                if name in wanted:
                    only = wanted[name][self.leaves.codes[self.leaves.rows, category]].astype(np.float64)
                donors = self.leaves.donors(leaves, rng, only)
                parts.append(self.leaves.codes[donors, category])
                category += 1
                continue
            donors = self.leaves.donors(leaves, rng)
            if width == 2:
                parts.append(self.leaves.codes[donors, category])
                category += 1
            observed = self.leaves.values.shape[1] > 0
            parts.append(
                self.leaves.values[donors, number] if observed else self.leaves.numbers(number, leaves, rng)
            )
            number += 1
        return parts

    def _categories(self) -> dict[str, int]:
        """Say in which column of the codes each category stands; states of numbers stand among them."""
        found, at = {}, 0
        for (name, form), width in zip(self.blueprint.forms.items(), self.blueprint.widths, strict=True):
            if isinstance(form, CategoryForm):
                found[name] = at
                at += 1
            elif width == 2:
                at += 1
        return found

    def state(self) -> dict[str, Any]:
        """Return the model for a file; it holds the categories of real records."""
        return {
            "blueprint": self.blueprint.state(),
            "leaves": self.leaves.state(),
            "accuracies": list(self.accuracies),
            "left_out": dict(self.left_out),
            "weighted": self.weighted,
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any], like: Microdata, rows: int) -> Self:
        """Make the model again."""
        return cls(
            like,
            rows,
            blueprint=Blueprint.restored(state["blueprint"]),
            leaves=Leaves.restored(state["leaves"]),
            accuracies=state["accuracies"],
            left_out=state["left_out"],
            weighted=state["weighted"],
        )
