"""Which columns does a private generator synthesize? Those of the file, less what a role or the user takes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from discreet.core.errors import ColumnError, unknown_name
from discreet.core.roles import Columns
from discreet.microdata import Microdata
from discreet.synth.record_units import units_left_out


def listed(columns: Columns) -> tuple[str, ...]:
    """Columns as the user names them: one, several or none.

    Examples
    --------
    >>> listed("age"), listed(None)
    (('age',), ())
    """
    return (columns,) if isinstance(columns, str) else tuple(columns or ())


def left_out_of(data: Microdata, named: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Columns that are not synthesized, and why; by roles and parameters, never by what the records are.

    ``named`` has the columns by the parameter under which the user named them.
    """
    for setting, columns in named.items():
        for name in columns:
            if name not in data.schema:
                raise ColumnError(f"{unknown_name(name, data.columns)} It was named under {setting}.")
    left_out = dict.fromkeys(named["leave_out"], "as asked for")
    left_out |= {name: "an identifier" for name in data.roles.identifiers if name not in left_out}
    for column, why in (
        (data.roles.weight, "the weight: one record would count many times"),
        (data.roles.contributor, "it says whose the records are"),
    ):
        if column and column not in left_out:
            left_out[column] = why
    return left_out | units_left_out(data, None, left_out)
