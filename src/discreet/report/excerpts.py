"""The few rows of a detail table that a reader is shown.

A detail table can have millions of rows and can hold data values. Only the riskiest rows are taken, in the
engine that holds the table, and only columns that carry figures or names of columns: data values stay out
unless they are asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from discreet.core.charts import Frame, gathered
from discreet.core.values import plain
from discreet.core.wording import heading_of, label_of, worded

RISK_ORDER: tuple[tuple[str, bool], ...] = (
    ("risk", True),
    ("highest_risk", True),
    ("gain", True),
    ("prosecutor", True),
    ("journalist", True),
    ("alpha", True),
    ("beta", True),
    ("delta", True),
    ("presence", True),
    ("t", True),
    ("l", False),
    ("best_guess", True),
    ("population", False),
    ("class_size", False),
)
"""Columns that rank risk, the first that is there counts most; True where a large number is the risky one."""

_NAMING = frozenset(
    {
        "added",
        "attribute",
        "attributes",
        "column",
        "distance",
        "estimator",
        "flag",
        "key",
        "keys",
        "kind",
        "measure",
        "method",
        "other",
        "sensitive",
        "target",
        "variable",
        "variables",
        "variant",
    }
)
"""Text columns that hold names of columns or of methods, never data values."""


_ALIKE = "groups like this"


@dataclass(frozen=True)
class Excerpt:
    """A small table ready to be shown: headings, cells as text, and how many rows the whole table has."""

    headings: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]
    total: int

    @property
    def left_out(self) -> int:
        """How many rows are not shown."""
        return self.total - len(self.rows)


def class_excerpt(
    table: Any, *, private: Collection[str], keys: Sequence[str], show_values: bool, limit: int = 10
) -> Excerpt:
    """Take the riskiest classes of a table; without their values, classes with the same figures are one line.

    Parameters
    ----------
    table
        One row a class: key columns and figures, of any engine.
    private
        Columns whose cells are data values (keys, sensitive columns, identifiers).
    keys
        The key columns of the classes, shown only with ``show_values``.
    show_values
        Whether the reader may see the values of the keys.
    limit
        How many rows to take.

    Examples
    --------
    >>> import polars as pl
    >>> classes = pl.DataFrame({"age": [30, 81, 82], "class_size": [12, 1, 1]})
    >>> class_excerpt(classes, private=["age"], keys=["age"], show_values=False).rows
    (('2', '1'), ('1', '12'))
    >>> class_excerpt(classes, private=["age"], keys=["age"], show_values=True).rows[0]
    ('1', '81', '1')
    """
    frame: Frame = nw.from_native(table)
    schema = dict(frame.collect_schema())
    figures = [name for name in schema if name not in private and name not in keys]
    figures = [name for name in figures if _holds_figures(schema[name]) or name in _NAMING]
    if not figures:
        return Excerpt((), (), (), 0)
    shown_keys = [name for name in keys if name in schema] if show_values else []
    order = [(name, down) for name, down in RISK_ORDER if name in figures]
    # A column may be called "*", which a selection takes for all columns.
    neutral = {name: f"value of key {place}" for place, name in enumerate(shown_keys)}
    # Ties are broken by whatever else is shown, so that the same file gives the same report.
    order += [(name, False) for name in (*figures, *neutral.values()) if name not in dict(order)]
    if shown_keys:
        frame = frame.rename(neutral).select(*neutral.values(), *figures)
        rows = _top(frame, order, limit, raw=list(neutral.values()))
        rows = [(str(place), *row) for place, row in enumerate(rows, start=1)]
    else:
        # Without their values many classes look the same: one line for all that do says more.
        frame = frame.select(*figures).group_by(*figures).agg(nw.len().alias(_ALIKE)).select(_ALIKE, *figures)
        rows = _top(frame, order, limit)
    return Excerpt(
        headings=("Group" if shown_keys else "Groups like this", *shown_keys, *map(label_of, figures)),
        numeric=(True, *(False for _ in shown_keys), *(_holds_figures(schema[name]) for name in figures)),
        rows=tuple(rows),
        total=_height(frame),
    )


def variable_excerpt(table: Any, *, limit: int = 30, measure: str = "") -> Excerpt:
    """Take the first rows of a table with one row a column (or a set of columns) of the file.

    ``measure`` says whose table it is, and so what its columns are called.

    Examples
    --------
    >>> import polars as pl
    >>> variable_excerpt(pl.DataFrame({"key": ["age"], "unique_share": [0.123], "example": ["81"]})).rows
    (('age', '12.3 %'),)
    """
    frame: Frame = nw.from_native(table)
    schema = dict(frame.collect_schema())
    names = [name for name in schema if _holds_figures(schema[name]) or name in _NAMING]
    return Excerpt(
        headings=tuple(heading_of(name, measure=measure) for name in names),
        numeric=tuple(_holds_figures(schema[name]) for name in names),
        rows=tuple(_top(frame.select(*names), [], limit)),
        total=_height(frame),
    )


def chosen_excerpt(table: Any, columns: Sequence[str], *, limit: int, measure: str = "") -> Excerpt:
    """Take the first rows of some columns of a wide table, those that it has.

    Examples
    --------
    >>> import polars as pl
    >>> wide = pl.DataFrame({"column": ["age"], "distance": [0.5], "energy": [1.0]})
    >>> chosen_excerpt(wide, ["column", "distance", "gone"], limit=5).rows
    (('age', '0.5'),)
    """
    frame: Frame = nw.from_native(table)
    held = set(frame.collect_schema())
    return variable_excerpt(
        frame.select(*(name for name in columns if name in held)).to_native(), limit=limit, measure=measure
    )


def _top(
    frame: Frame, order: Sequence[tuple[str, bool]], limit: int, raw: Collection[str] = ()
) -> list[tuple[str, ...]]:
    names = list(frame.collect_schema())
    if order:
        by = [name for name, _ in order]
        frame = frame.top_k(limit, by=by, reverse=[not down for _, down in order])
        # Which rows come first is settled above; in which order they come back is not, on every engine.
        head = gathered(frame).sort(by, descending=[down for _, down in order], nulls_last=True)
    else:
        head = gathered(frame.head(limit))
    return [
        tuple(_cell(name, value, raw=name in raw) for name, value in zip(names, row, strict=True))
        for row in head.iter_rows(named=False)
    ]


def _cell(name: str, value: Any, *, raw: bool) -> str:
    value = plain(value)
    if value is None:
        return "–"
    if raw:
        # A year of birth is not a number with thousands.
        text = str(value)
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    if name == "measure" and value in _RELATIONS:
        return _RELATIONS[value]
    if isinstance(value, float) and 0 < abs(value) < _TINY:
        return "under 0.0001" if value > 0 else "over -0.0001"
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value)
    return worded(name, value)


_LONGEST = 60
_TINY = 1e-4
_RELATIONS = {
    "pearson": "correlation",
    "spearman": "rank correlation",
    "cramers_v": "Cramér's V",
    "correlation_ratio": "correlation ratio",
}


def _height(frame: Frame) -> int:
    return int(gathered(frame.select(nw.len())).item())


def _holds_figures(dtype: Any) -> bool:
    return bool(dtype.is_numeric() or dtype == nw.Boolean)
