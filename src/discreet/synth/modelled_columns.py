"""What a synthesizer of whole columns takes from a file: the columns it models, their forms and the weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw
import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats
from discreet.core.errors import ColumnError, ParameterError, unknown_name
from discreet.core.roles import Columns
from discreet.microdata import Microdata, require_microdata
from discreet.synth.column_forms import CategoryForm, Form, NumberForm, is_numeric
from discreet.synth.record_units import units_left_out

Weights = Literal["use", "ignore"]


@dataclass(frozen=True, eq=False)
class Intake:
    """A file as a synthesizer sees it.

    Attributes
    ----------
    frame
        The whole file, in memory.
    forms
        How each column that is synthesized becomes variables, in the order of the file.
    weights
        Positive numbers that sum to the number of records, or None.
    left_out
        Columns that are not synthesized, and why.
    """

    frame: pl.DataFrame
    forms: Mapping[str, Form]
    weights: Floats | None
    left_out: Mapping[str, str]

    @property
    def rows(self) -> int:
        """Number of records."""
        return self.frame.height

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are synthesized."""
        return tuple(self.forms)


def take_in(
    data: Microdata,
    *,
    leave_out: Columns = None,
    weights: Weights = "use",
    special_codes: Mapping[str, Any] | None = None,
    few_values: int = 2,
    max_levels: int | None = None,
    least_columns: int = 1,
    apart: Sequence[str] = (),
) -> Intake:
    """Read a file for a synthesizer; ``apart`` are columns that it deals with itself.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"id": [1, 2, 3], "age": [20, 30, 40]}), identifiers="id")
    >>> intake = take_in(people)
    >>> intake.columns, dict(intake.left_out)
    (('age',), {'id': 'an identifier'})
    """
    require_microdata(data)
    frame = engine.collect(data)
    columns, left_out = columns_of(data, leave_out, weights, frame=frame)
    columns = [name for name in columns if name not in apart]
    for name in special_codes or {}:
        if name not in columns:
            raise ColumnError(f"{unknown_name(name, columns)} It was named under special_codes.")
    if len(columns) < least_columns:
        raise ParameterError(
            f"There {'is' if len(columns) == 1 else 'are'} {len(columns)} column{'s' * (len(columns) != 1)} to "
            f"synthesize; this needs at least {least_columns}. Name fewer columns in leave_out."
        )
    if frame.height < 2:
        raise ParameterError(f"A synthesis needs at least two records; the file has {frame.height}.")
    forms = {
        name: _form(data, frame[name], (special_codes or {}).get(name), few_values, max_levels)
        for name in columns
    }
    return Intake(frame, forms, weights_of(data, frame) if weights == "use" else None, left_out)


def columns_of(
    data: Microdata, leave_out: Columns, weights: Weights = "use", *, frame: pl.DataFrame
) -> tuple[list[str], dict[str, str]]:
    """Return the columns to synthesize, and those that are left out with the reason; ``frame`` is the file."""
    if weights not in ("use", "ignore"):
        raise ParameterError(unknown_name(str(weights), ("use", "ignore"), what="use of weights"))
    left_out = _left_out(data, leave_out)
    left_out |= units_left_out(data, frame, left_out)
    return [name for name in data.columns if name not in left_out], left_out


def weights_of(data: Microdata, frame: pl.DataFrame) -> Floats | None:
    """Return the survey weights, scaled to sum to the number of records; None where the file has none."""
    column = data.roles.weight
    if column is None:
        return None
    weights = frame[column].cast(pl.Float64)
    bad = int((weights.is_null() | ~weights.is_finite() | (weights <= 0)).fill_null(True).sum())
    if bad:
        raise ColumnError(
            f"The weight '{column}' is missing, zero, negative or not finite in {bad:,} records. Correct or remove "
            "them, or set weights='ignore'."
        )
    values = weights.to_numpy()
    return np.asarray(values * (len(values) / values.sum()))


def _left_out(data: Microdata, leave_out: Columns) -> dict[str, str]:
    reasons = {}
    for name in (leave_out,) if isinstance(leave_out, str) else tuple(leave_out or ()):
        if name not in data.schema:
            raise ColumnError(f"{unknown_name(name, data.columns)} It was named under leave_out.")
        reasons[name] = "as asked for"
    for name in data.roles.identifiers:
        reasons.setdefault(name, "an identifier")
    if data.roles.weight:
        reasons.setdefault(data.roles.weight, "the weight")
    return {name: reasons[name] for name in data.columns if name in reasons}


def _form(data: Microdata, series: pl.Series, codes: Any, few_values: int, max_levels: int | None) -> Form:
    given: list[Any] = [] if codes is None else [codes] if np.isscalar(codes) else list(codes)
    distinct = series.n_unique() - (series.null_count() > 0)
    if is_numeric(series.dtype) and (given or distinct > few_values):
        if series.dtype.is_float() and series.is_infinite().any():
            raise ColumnError(
                f"Column '{series.name}' has infinite values. Make them missing, or leave it out."
            )
        try:
            fixed = [float(code) for code in given]
        except (TypeError, ValueError) as error:
            raise ColumnError(
                f"The special codes of column '{series.name}' must be numbers, as the column is."
            ) from error
        return NumberForm.of(series, fixed=fixed)
    if given:
        raise ColumnError(
            f"Column '{series.name}' is no number, so special_codes cannot name it: its codes are levels already."
        )
    form = CategoryForm.of(series, ordered=isinstance(data.schema[series.name], nw.Enum))
    if max_levels is not None and form.size > max_levels:
        raise ColumnError(
            f"Column '{series.name}' has {form.size:,} levels, more than max_levels={max_levels}. Group its levels, "
            "leave it out, or raise max_levels."
        )
    return form
