"""A single column of any eager engine, and answers in its kind."""

from __future__ import annotations

from typing import Any, NamedTuple

import narwhals as nw
import polars as pl

from discreet.core.errors import ColumnError, ParameterError


class Received(NamedTuple):
    """A series as it came, and the same as Polars with NaN turned into missing."""

    native: nw.Series[Any]
    polars: pl.Series

    @property
    def column(self) -> str:
        """The name for error messages."""
        return str(self.native.name or "values")

    def give_back(self, answer: pl.Series) -> Any:
        """Turn a Polars series of the same length into the kind that came in, with its name and index."""
        answer = answer.alias(self.polars.name)
        wrapped = nw.from_native(answer, series_only=True)
        kind = self.native.implementation
        if kind.is_polars():
            return answer
        if kind.is_pandas():
            pandas = wrapped.to_pandas()
            original = self.native.to_native()
            pandas.index = original.index
            return pandas.rename(original.name)
        if kind.is_pyarrow():
            import pyarrow as pa

            return pa.chunked_array([wrapped.to_arrow()])
        return nw.new_series(answer.name, answer.to_list(), backend=kind).to_native()

    def give_back_frame(self, frame: pl.DataFrame) -> Any:
        """Turn a Polars frame into the kind of frame that belongs to the series that came in."""
        kind = self.native.implementation
        if kind.is_polars():
            return frame
        if kind.is_pandas():
            return nw.from_native(frame).to_pandas()
        if kind.is_pyarrow():
            return nw.from_native(frame).to_arrow()
        return nw.from_dict(frame.to_dict(as_series=False), backend=kind).to_native()


def receive(values: Any) -> Received:
    """Wrap a native series; anything Narwhals does not know as an eager series is refused."""
    try:
        native = nw.from_native(values, series_only=True)
    except TypeError as error:
        raise ParameterError(
            f"values must be a Polars, pandas or PyArrow series, not {type(values).__name__}. "
            "Take one column of the frame, or collect a lazy one first."
        ) from error
    try:
        polars = native.to_polars()
    except Exception as error:  # Arrow and pandas raise several kinds for a column of mixed types
        raise ColumnError(
            f"Column '{native.name or 'values'}' mixes types that have no common one. "
            "Convert it to a single type, for instance text, first."
        ) from error
    if polars.dtype == pl.Object:
        raise ColumnError(
            f"Column '{native.name or 'values'}' holds Python objects. Convert it to text, numbers or dates."
        )
    return Received(native, polars.fill_nan(None) if polars.dtype.is_float() else polars)
