"""Uniform numbers for the cells of a table: from a secret key and what a cell is about, or from a seed.

Keyed numbers are the same whenever the same cell is asked for, in whatever table it stands; nobody can average them
away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.errors import ParameterError
from discreet.protect.recodings.stochastic_rounding import definitions, keyed_uniforms

if TYPE_CHECKING:
    from discreet.tables.table import Table

Floats = npt.NDArray[np.float64]


def cell_uniforms(
    table: Table, frame: pl.DataFrame, key: bytes, *, subset: str = "", run: str = ""
) -> Floats:
    """Draw a uniform number for every row of ``frame``, cells or inner cells of the table.

    A cell is defined by its codes that are not totals, so that it is the same cell in every table with more
    dimensions.

    Examples
    --------
    >>> from discreet.tables import Table
    >>> people = pl.DataFrame({"place": ["a", "b"], "sex": ["f", "m"]})
    >>> small, large = Table.from_microdata(people, "place"), Table.from_microdata(people, "place*sex")
    >>> key = b"a secret of at least sixteen bytes"
    >>> one, other = cell_uniforms(small, small.cells, key), cell_uniforms(large, large.cells, key)
    >>> bool(one[small.find(place="a")] == other[large.find(place="a")])
    True
    """
    if not isinstance(run, str) or not isinstance(subset, str):
        raise ParameterError("run and subset must be texts.")
    named = {name: frame[name] != table.hierarchy[name].total for name in table.dimensions}
    pattern = np.zeros(frame.height, dtype=np.int64)
    for bit, flags in enumerate(named.values()):
        pattern |= flags.to_numpy().astype(np.int64) << bit
    about = f"{len(run)}:{run}{subset}"
    drawn = np.empty(frame.height)
    for which in np.unique(pattern):
        rows = np.flatnonzero(pattern == which)
        columns = [name for bit, name in enumerate(table.dimensions) if which >> bit & 1]
        texts = definitions(frame[rows], columns, subset=about, measure="count")
        # Without any column there is one text for the grand total.
        drawn[rows] = keyed_uniforms(texts.extend_constant(texts[0], len(rows) - len(texts)), key)
    return drawn
