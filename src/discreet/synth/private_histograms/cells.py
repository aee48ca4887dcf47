"""A file as cells of a box: every column in bins or levels that are declared, and all of them crossed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Integers
from discreet.core.declared_types import all_declared, is_range
from discreet.core.errors import ParameterError
from discreet.core.roles import Columns
from discreet.dp.contributions import refuse_several_records
from discreet.microdata import Microdata, require_microdata
from discreet.synth.coded_columns import Attribute
from discreet.synth.declared_columns import declared, left_out_of, listed
from discreet.synth.synthesizer import Stream

MOST_CELLS = 10_000_000


@dataclass(frozen=True, eq=False)
class Box:
    """Columns in bins, and the cells of all of them together."""

    attributes: tuple[Attribute, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """How many codes every column has."""
        return tuple(attribute.size for attribute in self.attributes)

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return math.prod(self.shape)

    def check(self) -> None:
        """Refuse more cells than can be held."""
        if self.cells > MOST_CELLS:
            raise ParameterError(
                f"The columns have {self.cells:,} cells together, more than {MOST_CELLS:,}. Take fewer bins or leave "
                "columns out; AIM is made for many columns."
            )

    def encode(self, frame: pl.DataFrame) -> Integers:
        """The cell of every record; values beyond a declared range are held to it."""
        codes = [attribute.encode(frame[attribute.name]) for attribute in self.attributes]
        return np.asarray(np.ravel_multi_index(codes, self.shape), dtype=np.int64)

    def frame(self, cells: Integers, stream: Stream) -> pl.DataFrame:
        """Records within cells; numbers are spread evenly over their bins."""
        made = []
        for attribute, codes in zip(self.attributes, np.unravel_index(cells, self.shape), strict=True):
            if attribute.edges is None:
                made.append(attribute.decode(codes, None))
                continue
            bins = np.minimum(codes, attribute.bins - 1)
            low, high = attribute.edges[bins], attribute.edges[bins + 1]
            part = stream("within", attribute.name).random(len(bins)) * (1 - 2**-20) + 2**-21
            made.append(attribute.decode(codes, low + part * (high - low)))
        return pl.DataFrame(made)


def boxed(
    data: Microdata, domain: Mapping[str, Any] | None, bins: int, never_missing: Columns, leave_out: Columns
) -> tuple[Box, pl.DataFrame, dict[str, str]]:
    """Declare the box of a file; everything that can be refused is refused here."""
    require_microdata(data)
    names, left_out = declared_columns(data, domain, never_missing, leave_out)
    frame = all_declared(engine.collect(data, names), domain or {})
    never = listed(never_missing)
    box = Box(
        tuple(
            declared(frame[name], (domain or {}).get(name), bins=bins, never_missing=name in never)
            for name in names
        )
    )
    box.check()
    if not frame.height:
        raise ParameterError("The file has no record.")
    return box, frame, left_out


def declared_columns(
    data: Microdata, domain: Mapping[str, Any] | None, never_missing: Columns, leave_out: Columns
) -> tuple[list[str], dict[str, str]]:
    """The columns to synthesize, and those left out with the reason; records must be a person each."""
    named = {
        "leave_out": listed(leave_out),
        "domain": tuple(domain or ()),
        "never_missing": listed(never_missing),
    }
    refuse_several_records(data)
    left_out = left_out_of(data, named)
    names = [name for name in data.columns if name not in left_out]
    if not names:
        raise ParameterError("There is no column to synthesize. Name fewer columns in leave_out.")
    return names, left_out


def cells_declared(domain: Mapping[str, Any] | None, bins: int, never_missing: Columns) -> int:
    """How many cells a declared domain has: ``bins`` for a range, and one for missing where it may be."""
    many = 1
    for name, values in (domain or {}).items():
        many *= (bins if is_range(values) else len(set(values))) + (name not in listed(never_missing))
    return many
