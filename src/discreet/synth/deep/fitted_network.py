"""A network that was trained, from which synthetic records are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from discreet.core.arrays import Array, Flags, Floats
from discreet.core.errors import InputError, load_extra
from discreet.microdata import Microdata
from discreet.synth.deep.coding import LevelCoding, TableCoding
from discreet.synth.deep.drawing import draw_from
from discreet.synth.synthesizer import Stream
from discreet.synth.whole_records import Blueprint, FittedRecords

_LARGEST = {"layers": 1_000}
_LARGEST_SIZE = 1_000_000


def shape_of(state: Mapping[str, Any]) -> dict[str, Any]:
    """Read the sizes of a network from a model file, or refuse sizes that no network has: they would never end.

    Examples
    --------
    >>> shape_of({"shape": {"layers": 2, "width": 256}})
    {'layers': 2, 'width': 256}
    """
    shape = dict(state["shape"])
    for name, size in shape.items():
        if isinstance(size, int) and not 0 <= size <= _LARGEST.get(name, _LARGEST_SIZE):
            raise InputError(f"The model was changed: no network has such a number of {name}.")
    return shape


class FittedNetwork(FittedRecords):
    """A network that was trained.

    Attributes
    ----------
    kind
        Which network it is.
    report
        How training went: epochs, seconds, losses, device, and why it ended.
    """

    def __init__(
        self,
        like: Microdata,
        rows: int,
        *,
        blueprint: Blueprint,
        kind: str,
        shape: Mapping[str, Any],
        coding: TableCoding,
        shares: Sequence[Floats],
        weights: Mapping[str, Array],
        report: Mapping[str, Any],
        device: str = "auto",
        max_rounds: int = 100,
        left_out: Mapping[str, str] | None = None,
        weighted: bool = False,
        notes: Sequence[str] = (),
    ) -> None:
        super().__init__(
            like,
            rows,
            blueprint=blueprint,
            max_rounds=max_rounds,
            left_out=left_out,
            weighted=weighted,
            notes=notes,
        )
        self.kind = kind
        self.shape = dict(shape)
        self.coding = coding
        self.shares = [np.asarray(own, dtype=np.float64) for own in shares]
        self.weights = dict(weights)
        self.report = dict(report)
        self.device = device

    def propose(self, n: int, stream: Stream, wanted: Mapping[str, Flags]) -> list[Array]:
        """Draw numbers and codes from the network and turn them into variables."""
        asked = self._asked(wanted)
        numbers, codes = draw_from(self, n, int(stream("network").integers(2**62)), asked)
        return self.coding.decoded(numbers, codes, stream)

    def _asked(self, wanted: Mapping[str, Flags]) -> tuple[int, Floats] | None:
        """Choose the rarest of the things asked for: a column of the codes, and the chances of its places."""
        found: list[tuple[float, int, Floats]] = []
        at = 0
        for name, width in zip(self.blueprint.forms, self.blueprint.widths, strict=True):
            part = self.coding.parts[at]
            if name in wanted and isinstance(part, LevelCoding):
                column = self.coding.column_of(at)
                chances = self.shares[column] * part.wanted(wanted[name])
                if chances.sum() > 0 and column in self.coding.conditions:
                    found.append((float(chances.sum()), column, chances / chances.sum()))
            at += width
        if not found:
            return None
        _, column, chances = min(found, key=lambda one: one[0])
        return column, chances

    def state(self) -> dict[str, Any]:
        """Return the model for a file: its weights in the safetensors format, all else as numbers and texts."""
        library = load_extra("safetensors.numpy", extra="deep", purpose="Saving a network")
        plain = {name: np.ascontiguousarray(array) for name, array in self.weights.items()}
        return {
            "blueprint": self.blueprint.state(),
            "kind": self.kind,
            "shape": self.shape,
            "coding": self.coding.state(),
            "shares": self.shares,
            "weights": np.frombuffer(library.save(plain), dtype=np.uint8).copy(),
            "report": self.report,
            "left_out": dict(self.left_out),
            "weighted": self.weighted,
            "notes": list(self.notes),
            "max_rounds": self.max_rounds,
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any], like: Microdata, rows: int) -> Self:
        """Make the model again."""
        library = load_extra("safetensors.numpy", extra="deep", purpose="Loading a network")
        return cls(
            like,
            rows,
            blueprint=Blueprint.restored(state["blueprint"]),
            kind=state["kind"],
            shape=shape_of(state),
            coding=TableCoding.restored(state["coding"]),
            shares=state["shares"],
            weights=library.load(state["weights"].tobytes()),
            report=state["report"],
            left_out=state["left_out"],
            weighted=state["weighted"],
            notes=state["notes"],
            max_rounds=state["max_rounds"],
        )
