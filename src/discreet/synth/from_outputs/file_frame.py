"""From numbers and level positions back to a data frame with readable labels."""

from __future__ import annotations

import numpy as np
import polars as pl

from discreet.core.arrays import Floats
from discreet.microdata import Metadata, Microdata
from discreet.synth.from_outputs.codebook import Codebook, Variable


def frame_of(codebook: Codebook, file: Floats) -> pl.DataFrame:
    """Write the levels and numbers in their own types."""
    return pl.DataFrame([_series(variable, file[:, place]) for place, variable in enumerate(codebook)])


def file_of(codebook: Codebook, frame: pl.DataFrame) -> Floats:
    """Read a frame of the codebook back into numbers and level positions."""
    parts = []
    for variable in codebook:
        series = frame[variable.name]
        if variable.is_number:
            parts.append(series.cast(pl.Float64).to_numpy())
            continue
        known = [str(level) for level in variable.levels]
        text = series.cast(pl.String)
        parts.append(text.replace_strict(known, list(range(len(known))), return_dtype=pl.Float64).to_numpy())
    return np.column_stack(parts)


def empty_file(codebook: Codebook) -> Microdata:
    """Return a file without records that knows what its columns and values mean."""
    metadata = Metadata(
        column_labels={variable.name: variable.label for variable in codebook if variable.label},
        value_labels={
            variable.name: {
                variable.levels[variable.position(value)] if variable.is_categorical else value: label
                for value, label in variable.labels.items()
            }
            for variable in codebook
            if variable.labels
        },
    )
    frame = frame_of(codebook, np.zeros((0, len(codebook.columns))))
    if codebook.weight:
        return Microdata(
            frame.with_columns(pl.Series(codebook.weight, [], dtype=pl.Float64)),
            weight=codebook.weight,
            metadata=metadata,
        )
    return Microdata(frame, metadata=metadata)


def _series(variable: Variable, values: Floats) -> pl.Series:
    if variable.kind == "integer":
        return pl.Series(variable.name, np.rint(values).astype(np.int64))
    if variable.is_number:
        return pl.Series(variable.name, values)
    levels = pl.Series(variable.name, list(variable.levels))
    if levels.dtype == pl.String:
        levels = levels.cast(pl.Enum(levels))
    return levels.gather(values.astype(np.int64))
