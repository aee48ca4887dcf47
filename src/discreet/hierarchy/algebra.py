"""The algebra of hierarchies: what can be asked of every kind, in terms of three questions to the kind."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import numpy as np
import polars as pl

from discreet.core.errors import ColumnError, ParameterError, unknown_name
from discreet.core.parameters import check, function_hints
from discreet.core.wording import type_name
from discreet.engine.series import Received, receive

if TYPE_CHECKING:
    from numpy.typing import NDArray

TOP = "*"
_SHOWN = 5

Column = TypeVar("Column")
"""A Polars, pandas or PyArrow series; what goes in comes out in its kind."""


class Hierarchy(ABC):
    """A chain of ever coarser views of one column, from the value itself (level 0) to ``*`` (the top).

    Build one with `from_csv`, `from_table`, `from_tree`, `intervals`, `breaks`, `prefixes` or `dates`.
    Hierarchies are immutable, compare equal when they say the same, and nest by construction: values that
    share a label at one level share one at every level above. Missing values (NaN among them) belong to no
    label and stay missing; an infinite number is covered by no interval.

    Examples
    --------
    >>> region = Hierarchy.from_tree({"Europe": {"North": ["SE", "NO"], "South": ["IT"]}, "Asia": ["JP"]})
    >>> region
    <Hierarchy table: 4 leaves, height 3, labels per level 4, 3, 2, 1>
    >>> region.generalize(pl.Series(["SE", "IT", None, "JP"]), 1).to_list()
    ['North', 'South', None, 'Asia']
    >>> Hierarchy.intervals([5, 10]).generalize(pl.Series([4, 5, -1]), 1).to_list()
    ['[0, 5)', '[5, 10)', '[-5, 0)']
    """

    kind: ClassVar[str]
    ordered: ClassVar[bool] = False

    @staticmethod
    def from_csv(
        path: str | Path, separator: str | None = None, header: bool = False, encoding: str = "utf-8"
    ) -> Hierarchy:
        """Read an ARX-style file: one line a leaf, the leaf first, then its label at each level above.

        Parameters
        ----------
        path
            The file.
        separator
            One character; by default whichever of ``;``, ``,``, tab and ``|`` splits every line alike.
        header
            Whether the first line names the levels.
        encoding
            The text encoding; a byte order mark is skipped.
        """
        from discreet.hierarchy.enumerated import read_rows, tabulated

        return tabulated(read_rows(Path(path), separator=separator, header=header, encoding=encoding))

    @staticmethod
    def from_table(frame: Any) -> Hierarchy:
        """Take a data frame whose first column holds the leaves and the next ones levels 1, 2, ...

        Examples
        --------
        >>> Hierarchy.from_table(pl.DataFrame({"leaf": [1, 2, 3], "parity": ["odd", "even", "odd"]})).height
        2
        """
        from discreet.hierarchy.enumerated import from_frame

        return from_frame(frame)

    @staticmethod
    def from_tree(tree: Mapping[Any, Any] | Sequence[Any]) -> Hierarchy:
        """Take nested dictionaries of groups with lists of leaves at the ends.

        Where branches differ in depth, the outermost group of a shallow branch repeats on the levels above
        it: in ``{"Europe": {"North": ["SE"]}, "Asia": ["JP"]}`` the labels of JP are Asia, Asia, ``*``.
        A leaf outside any group stands for itself until the top.
        """
        from discreet.hierarchy.enumerated import planted

        return planted(tree)

    @staticmethod
    def intervals(
        widths: Sequence[float],
        origin: float = 0,
        lower: float | None = None,
        upper: float | None = None,
        closed: str = "left",
    ) -> Hierarchy:
        """Cut numbers into intervals of equal width, each width a multiple of the one before.

        Parameters
        ----------
        widths
            One width a level, growing.
        origin
            A point where intervals of every level meet.
        lower, upper
            Numbers beyond fall into one open-ended interval; intervals that straddle a bound end there.
        closed
            ``"left"`` for ``[a, b)``, ``"right"`` for ``(a, b]``.

        Examples
        --------
        >>> age = Hierarchy.intervals([5, 20], lower=18, upper=90)
        >>> age.generalize(pl.Series([17, 18, 34, 90]), 1).to_list()
        ['<18', '[18, 20)', '[30, 35)', '>=90']
        """
        from discreet.hierarchy.intervals import Intervals

        return Intervals(widths, origin, lower, upper, closed)

    @staticmethod
    def breaks(
        breaks: Sequence[Sequence[float]], labels: Sequence[Sequence[str]] | None = None, closed: str = "left"
    ) -> Hierarchy:
        """Cut numbers at given points, one list a level, each list part of the one before.

        The outer intervals are open-ended, so that no number is lost; a number on a break belongs to the
        interval it opens (``closed="left"``) or closes (``closed="right"``).

        Examples
        --------
        >>> age = Hierarchy.breaks([[18, 40, 65], [18, 65]], labels=[["0-17", "18-39", "40-64", "65+"],
        ...                                                          ["child", "adult", "senior"]])
        >>> age.generalize(pl.Series([17, 18, 65]), 2).to_list()
        ['child', 'adult', 'senior']
        """
        from discreet.hierarchy.intervals import Breaks

        return Breaks(breaks, labels, closed)

    @staticmethod
    def prefixes(keep: Sequence[int], mask: str = TOP) -> Hierarchy:
        """Keep the first characters of a code and mask the others, or with ``mask=""`` cut them off.

        Examples
        --------
        >>> Hierarchy.prefixes([4, 2]).generalize(pl.Series(["10115", "80331"]), 2).to_list()
        ['10***', '80***']
        """
        from discreet.hierarchy.enumerated import Prefixes

        return Prefixes(keep, mask)

    @staticmethod
    def dates(levels: Sequence[str] = ("day", "month", "quarter", "year", "decade")) -> Hierarchy:
        """Coarsen dates and datetimes along the calendar, in local time where there is a time zone.

        For a column of dates ``day`` only turns the date into text; leave it out to save a level.

        Examples
        --------
        >>> from datetime import date
        >>> Hierarchy.dates().table(pl.Series([date(2024, 3, 9)])).row(0)[1:]
        ('2024-03-09', '2024-03', '2024-Q1', '2024', '2020s', '*')
        """
        from discreet.hierarchy.intervals import Dates

        return Dates(levels)

    @staticmethod
    def from_dict(description: Mapping[str, Any]) -> Hierarchy:
        """Build the hierarchy that `to_dict` described; ``kind`` may also be ``tree`` or ``csv``.

        Examples
        --------
        >>> Hierarchy.from_dict({"kind": "prefixes", "keep": [3, 1]})
        <Hierarchy prefixes: height 3, keep 3, 1>
        """
        from discreet.hierarchy.enumerated import tabulated

        makers: dict[str, Callable[..., Hierarchy]] = {
            "table": tabulated,
            "tree": Hierarchy.from_tree,
            "csv": Hierarchy.from_csv,
            "intervals": Hierarchy.intervals,
            "breaks": Hierarchy.breaks,
            "prefixes": Hierarchy.prefixes,
            "dates": Hierarchy.dates,
        }
        check(description, Mapping, "The description of a hierarchy")
        parameters = {str(name): value for name, value in description.items()}
        kind = parameters.pop("kind", None)
        if not isinstance(kind, str) or kind not in makers:
            raise ParameterError(unknown_name(str(kind)[:80], makers, what="hierarchy kind"))
        takes = function_hints(makers[kind])
        for name, value in parameters.items():
            check(value, takes.get(name, Any), name, where=f"In a hierarchy of kind '{kind}'", plain=True)
        try:
            return makers[kind](**parameters)
        except RecursionError as error:
            raise ParameterError(f"A hierarchy of kind '{kind}' is nested too deeply.") from error
        except TypeError as error:
            raise ParameterError(
                f"The description of a hierarchy of kind '{kind}' does not fit: it has "
                f"{', '.join(sorted(parameters)) or 'no parameters'}. See Hierarchy.{kind}."
            ) from error

    @property
    @abstractmethod
    def height(self) -> int:
        """The number of levels above the value itself; the level that says nothing has this number."""

    def generalize(self, values: Column, level: int) -> Column:
        """Replace each value by its label at a level.

        Parameters
        ----------
        values
            A Polars, pandas or PyArrow series; the same kind comes back.
        level
            From 0, which gives the series back as it is, to `height`. Labels of ordered hierarchies, and of
            categorical columns, come as an ordered category type.

        Raises
        ------
        ColumnError
            When a value is not covered, or of a type the hierarchy is not for.
        """
        level = self._level(level)
        received = receive(values)
        if level == 0:
            return values
        return cast(Column, received.give_back(self._covered_ancestors(received, level)))

    def mapping(self, values: Any, level: int) -> Any:
        """Pair each distinct value (``leaf``) with its label at one level (``label``)."""
        level = self._level(level)
        received = receive(values)
        leaves = self._distinct(received)
        labels = leaves if level == 0 else self._ancestors(leaves, level)
        return received.give_back_frame(pl.DataFrame({"leaf": leaves, "label": labels}))

    def table(self, values: Any = None) -> Any:
        """Lay out the distinct values (``leaf``) with their labels (``level_1``, ``level_2``, ...).

        Rows follow the order of the values, or that of the hierarchy's own table where it has one. Only a
        hierarchy with its own table can do without `values`.
        """
        received = receive(self._own_leaves() if values is None else values)
        return received.give_back_frame(self._table(received))

    def levels_matrix(self, values: Any = None) -> NDArray[np.int64]:
        """Turn the table into numbers: a row for each row of `table`, a column for each level from 0.

        Two leaves meet at the first level where their numbers agree, which is what a hierarchical distance
        needs. Numbers run from 0 in the order of the rows.

        Examples
        --------
        >>> Hierarchy.intervals([2, 4]).levels_matrix(pl.Series([5, 1, 0, 2])).tolist()
        [[0, 0, 0, 0], [1, 0, 0, 0], [2, 1, 0, 0], [3, 2, 1, 0]]
        """
        frame = self._table(receive(self._own_leaves() if values is None else values))
        if frame.is_empty():
            return np.empty((0, self.height + 1), dtype=np.int64)
        return np.column_stack([_numbered(column) for column in frame.get_columns()])

    def leaf_share(self, values: Column, level: int) -> Column:
        """Say for each value which share of the domain its label at a level covers, in (0, 1].

        The domain is the leaves of the table, the distinct values seen (prefixes), or the range seen
        together with the bounds of the hierarchy (intervals, dates); the label covers its part of it.

        Examples
        --------
        >>> Hierarchy.intervals([5], lower=0, upper=20).leaf_share(pl.Series([3, 12]), 1).to_list()
        [0.25, 0.25]
        """
        level = self._level(level)
        received = receive(values)
        self._covered_ancestors(received, self.height)
        return cast(Column, received.give_back(self._shares(received.polars, level)))

    def labels(self, level: int) -> list[str]:
        """List the labels of a level, where the hierarchy fixes them without looking at data."""
        level = self._level(level)
        found = [TOP] if level == self.height and level > 0 else None
        found = self._fixed_labels(level) or found
        if found is None:
            raise ParameterError(
                f"Level {level} of this hierarchy ({self.kind}) has no fixed list of labels. "
                "Use table(values) to see the labels of the values at hand."
            )
        return found

    def fixed_labels(self, level: int) -> list[str]:
        """List the labels of a level that the hierarchy fixes without looking at data; none where it does not."""
        level = self._level(level)
        return [TOP] if self.ordered and level == self.height else list(self._fixed_labels(level) or ())

    def check(self, values: Any, *, column: str | None = None, show_values: bool = False) -> None:
        """Raise a `ColumnError` unless every value is of a fitting type and covered.

        Parameters
        ----------
        values
            The series to check.
        column
            The name to use in the message; by default that of the series.
        show_values
            Whether the message may name uncovered values.
        """
        received = receive(values)
        self._covered_ancestors(received, self.height, column=column, show_values=show_values)

    def covers(self, values: Any) -> pl.Series:
        """Say of every value whether the hierarchy knows it; a missing value it need not know.

        Examples
        --------
        >>> Hierarchy.from_tree({"fruit": ["apple", "pear"]}).covers(pl.Series(["pear", "leek", None])).to_list()
        [True, False, True]
        """
        received = receive(values)
        column = received.polars
        if column.null_count() == len(column):
            return column.is_null()
        self._check_type(column, received.column)
        return column.is_null() | self._ancestors(column, self.height).is_not_null()

    def to_csv(self, path: str | Path, values: Any = None, separator: str = ";") -> None:
        """Write the table, ARX style and without header; other kinds need the `values` to write.

        The file appears under its name only when it is complete.
        """
        from discreet.core.values import canonical_text
        from discreet.hierarchy.enumerated import write_rows

        frame = self._table(receive(self._own_leaves() if values is None else values))
        text = pl.DataFrame([canonical_text(column) for column in frame.get_columns()])
        write_rows(Path(path), text.rows(), separator=separator)

    def to_dict(self) -> dict[str, Any]:
        """Describe the hierarchy in plain lists, numbers and texts, ready for JSON and TOML."""
        return {"kind": self.kind, **self._parameters()}

    # What each kind answers.

    @abstractmethod
    def _ancestors(self, values: pl.Series, level: int) -> pl.Series:
        """Label each value at a level of 1 or more; null where missing or not covered."""

    @abstractmethod
    def _shares(self, values: pl.Series, level: int) -> pl.Series:
        """Give the share of the domain under each value's label; null where missing."""

    @abstractmethod
    def _parameters(self) -> dict[str, Any]:
        """Give the arguments that build this hierarchy again, without those that are None."""

    def _misfit(self, values: pl.Series) -> str | None:
        """Say what type of values is wanted, when these are of another."""
        return None

    def _fixed_labels(self, level: int) -> list[str] | None:
        return None

    def _own_leaves(self) -> pl.Series:
        raise ParameterError(
            f"A hierarchy of kind '{self.kind}' follows a rule and has no table of its own. Pass values."
        )

    def _in_order(self, leaves: pl.Series) -> pl.Series:
        return leaves.sort()

    # Shared by the public methods.

    def _level(self, level: int) -> int:
        try:
            number = -1 if isinstance(level, bool) else operator.index(level)
        except TypeError:
            number = -1
        if not 0 <= number <= self.height:
            raise ParameterError(f"level must be a whole number from 0 to {self.height}, not {level!r}.")
        return number

    def _distinct(self, received: Received) -> pl.Series:
        self._covered_ancestors(received, self.height)
        return self._in_order(received.polars.unique().drop_nulls())

    def _table(self, received: Received) -> pl.DataFrame:
        leaves = self._distinct(received)
        levels = {f"level_{level}": self._ancestors(leaves, level) for level in range(1, self.height + 1)}
        return pl.DataFrame({"leaf": leaves, **levels})

    def _check_type(self, values: pl.Series, column: str) -> None:
        if misfit := self._misfit(values):
            raise ColumnError(f"Column '{column}' is of type {type_name(values.dtype)}, but {misfit}")

    def _covered_ancestors(
        self, received: Received, level: int, *, column: str | None = None, show_values: bool = False
    ) -> pl.Series:
        values, column = received.polars, column or received.column
        if values.null_count() == len(values):
            # A column without a single value has no type worth objecting to.
            return pl.repeat(None, len(values), dtype=pl.String, eager=True)
        self._check_type(values, column)
        labels = self._ancestors(values, level)
        if labels.null_count() > values.null_count():
            raise ColumnError(_uncovered(values, labels, column, show_values))
        return labels


def _uncovered(values: pl.Series, labels: pl.Series, column: str, show_values: bool) -> str:
    lost = values.is_not_null() & labels.is_null()
    positions = lost.arg_true()
    distinct = values.filter(lost).unique(maintain_order=True)
    first = ", ".join(map(str, positions.head(_SHOWN).to_list()))
    # Rooms that count ask about each distinct value once: these are no records.
    told = (
        f"{len(positions)} of {len(values)} distinct values. "
        if values.n_unique() == len(values)
        else f"{len(positions)} of {len(values)} records ({len(distinct)} distinct values), first at positions {first} "
        "(counting from 0). "
    )
    message = (
        f"The hierarchy for column '{column}' does not cover {told}"
        "Add these values to the hierarchy, or recode them to missing first."
    )
    if not show_values:
        return message + " To see the values, call check with show_values=True."
    shown = ", ".join(repr(value) for value in distinct.head(_SHOWN).to_list())
    return message + f" Uncovered: {shown}{', ...' if len(distinct) > _SHOWN else ''}."


def _numbered(labels: pl.Series) -> NDArray[np.int64]:
    distinct = labels.unique(maintain_order=True)
    numbers = pl.Series(np.arange(len(distinct), dtype=np.int64))
    return labels.to_physical().replace_strict(distinct.to_physical(), numbers).to_numpy()
