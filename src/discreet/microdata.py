"""Microdata: a frame and the roles of its columns.

The frame is whatever the user has (Polars, pandas, PyArrow, a DuckDB relation, a PySpark DataFrame); it is
wrapped, never copied on entry. Roles are checked at once.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

import narwhals as nw

from discreet.core.errors import ColumnError, InputError, not_microdata
from discreet.core.roles import ROLES, Columns, Roles, columns_named
from discreet.core.wording import type_name

__all__ = ["ROLES", "Columns", "Metadata", "Microdata", "Roles", "require_microdata"]

_ROLE_WORDS = {"keys": "key", "identifiers": "identifier"}
_MOST_SHOWN = 40


@dataclass(frozen=True)
class Metadata:
    """What a file says about itself beyond its cells.

    Attributes
    ----------
    source
        Name of the file or table it came from, without its folder.
    checksum
        SHA-256 of the file, where there is one.
    column_labels, value_labels
        As SPSS, Stata and SAS keep them.
    user_missing
        Codes or ranges that the file declares as missing, by column.
    formats
        Display formats and measurement levels, by column, for writing back.
    reading
        How the file was read: format, number of rows, and for delimited text what was detected (separator,
        decimal mark, encoding, missing tokens).
    fingerprints
        Place, size and time of each file that is read when it is needed, by which a change meanwhile is noticed.
    origins
        Where the data came from: the full path of a file, or a database and the table or query. It is never written
        over.
    """

    source: str | None = None
    checksum: str | None = None
    column_labels: Mapping[str, str] = field(default_factory=dict)
    value_labels: Mapping[str, Mapping[Any, str]] = field(default_factory=dict)
    user_missing: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    formats: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    reading: Mapping[str, Any] = field(default_factory=dict)
    fingerprints: tuple[tuple[str, int, int], ...] = field(default=(), repr=False, compare=False)
    origins: tuple[tuple[str, str], ...] = field(default=(), repr=False, compare=False)

    def without_readings(self) -> Metadata:
        """The same without what was read from the records (checksum, number of rows); names and labels stay."""
        return replace(self, checksum=None, reading={}, fingerprints=())


class Microdata:
    """A frame of records and the roles of its columns; immutable.

    Parameters
    ----------
    frame
        Polars (eager or lazy), pandas, PyArrow, a DuckDB relation or a PySpark DataFrame.
    keys
        Quasi-identifiers: what an intruder may know about a person.
    sensitive
        What must not be learned about a person.
    identifiers
        Direct identifiers (name, social security number); never used as keys.
    weight
        Survey weight.
    household, strata, location, person, contributor, employer, time, psu
        How the file is built, where it applies.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"sex": ["f", "f", "m"], "pay": [1, 2, 3]})
    >>> data = Microdata(people, keys=["sex"], sensitive="pay")
    >>> data.roles.keys, data.columns
    (('sex',), ('sex', 'pay'))
    >>> Microdata(people, keys=["Sex"])
    Traceback (most recent call last):
    discreet.core.errors.ColumnError: There is no column 'Sex'. Did you mean 'sex'? It was named under 'keys'.
    """

    def __init__(
        self,
        frame: Any,
        *,
        keys: Columns = None,
        sensitive: Columns = None,
        identifiers: Columns = None,
        weight: str | None = None,
        household: str | None = None,
        strata: Columns = None,
        location: Columns = None,
        person: str | None = None,
        contributor: str | None = None,
        employer: str | None = None,
        time: str | None = None,
        psu: str | None = None,
        metadata: Metadata | None = None,
    ) -> None:
        if isinstance(frame, Microdata):
            frame = frame.frame
        wrapped = _wrapped(frame)
        schema = _schema(wrapped)
        roles = Roles.of(
            keys=keys,
            sensitive=sensitive,
            identifiers=identifiers,
            weight=weight,
            household=household,
            strata=strata,
            location=location,
            person=person,
            contributor=contributor,
            employer=employer,
            time=time,
            psu=psu,
        )
        roles.check(tuple(schema))
        if roles.weight and not schema[roles.weight].is_numeric():
            raise ColumnError(
                f"The weight column '{roles.weight}' is not numeric (it is {type_name(schema[roles.weight])}). "
                "Convert it to numbers or name another column as weight."
            )
        self._wrapped = wrapped
        self._schema = schema
        self._columns = tuple(schema)
        self._roles = roles
        self._metadata = metadata or Metadata()
        self._memory: dict[Any, Any] = {}
        self._lost_roles: tuple[str, ...] = ()
        self._whose: tuple[str, Any] | None = None
        self._content_marks: tuple[dict[str, str], ...] = ({},)

    @property
    def frame(self) -> Any:
        """The frame, of the kind that came in."""
        return self._wrapped.to_native()

    @property
    def wrapped(self) -> nw.DataFrame[Any] | nw.LazyFrame[Any]:
        """The frame as Narwhals sees it."""
        return self._wrapped

    @property
    def roles(self) -> Roles:
        """The roles of the columns."""
        return self._roles

    @property
    def metadata(self) -> Metadata:
        """Labels, user-missing codes and origin, where the file had them."""
        return self._metadata

    @property
    def columns(self) -> tuple[str, ...]:
        """The column names, in order."""
        return self._columns

    @property
    def schema(self) -> Mapping[str, Any]:
        """The Narwhals data type of every column."""
        return MappingProxyType(self._schema)

    @property
    def memory(self) -> dict[Any, Any]:
        """Where the engine room keeps what it has computed for this (immutable) file."""
        return self._memory

    @property
    def content_mark(self) -> dict[str, str]:
        """Where `discreet.io.fingerprints.content_of` keeps by what the content of this file is known."""
        return self._content_marks[0]

    def content_marks(self) -> list[str]:
        """By what this file, and those it was made of with `with_frame`, are known, as far as somebody asked before."""
        return [mark["content"] for mark in self._content_marks if "content" in mark]

    @property
    def lost_roles(self) -> tuple[str, ...]:
        """Roles that said whose the records are and whose column has gone, so that nobody can tell any longer."""
        return () if self._whose else self._lost_roles

    @property
    def whose(self) -> tuple[str, Any] | None:
        """Whose the records are, where the column that says so was left out of the file: its role, and numbers.

        They stay in the house: they are in no frame, in no file that is written and in no log, but company is counted
        by them, because leaving out a column makes nobody's records somebody else's.
        """
        return self._whose

    def remembering(self, role: str, numbers: Any) -> Microdata:
        """Return the same file with the number of the person (or contributor) of each record kept aside.

        Without numbers (None) it is only remembered that the role was there and nobody can tell any longer.
        """
        found = self.with_roles()
        found._whose = None if numbers is None else (role, numbers)
        found._lost_roles = tuple(dict.fromkeys((*self._lost_roles, role)))
        return found

    def missing_nobody(self) -> Microdata:
        """Return the same file, known to have lost no role: every record was somebody of its own."""
        found = self.with_roles()
        found._lost_roles = ()
        return found

    def with_roles(self, **roles: Columns) -> Microdata:
        """Return the same frame with some roles changed; the others stay.

        Examples
        --------
        >>> import polars as pl
        >>> data = Microdata(pl.DataFrame({"sex": ["f"], "age": [30]}), keys=["sex"])
        >>> data.with_roles(keys=["sex", "age"]).roles.keys
        ('sex', 'age')
        """
        changed = {name: getattr(Roles.of(**{name: columns}), name) for name, columns in roles.items()}
        found = Microdata(
            self.frame, **_as_arguments(replace(self._roles, **changed)), metadata=self._metadata
        )
        found._lost_roles = tuple(role for role in self._lost_roles if not changed.get(role))
        found._whose = self._whose
        found._content_marks = self._content_marks
        return found

    def with_frame(self, frame: Any, *, same_records: bool = False) -> Microdata:
        """Return another frame with the same roles; roles whose column is gone are dropped.

        ``same_records`` says that the rows are the same records in the same order, so that what is known about whose
        they are still holds.
        """
        there = set(_schema(_wrapped(frame)))
        kept = {
            role: tuple(c for c in columns_named(columns, role) if c in there)
            for role, columns in _as_arguments(self._roles).items()
        }
        found = Microdata(frame, **_as_arguments(Roles.of(**kept)), metadata=self._metadata)
        gone = [role for role in ("person", "contributor") if getattr(self._roles, role) and not kept[role]]
        also = [self._whose[0]] if self._whose and not same_records else []
        found._lost_roles = tuple(dict.fromkeys((*self._lost_roles, *gone, *also)))
        found._whose = self._whose if same_records else None
        found._content_marks = ({}, *self._content_marks)
        return found

    def with_metadata(self, metadata: Metadata) -> Microdata:
        """Return the same records and roles with something else said about the file."""
        found = copy(self)
        found._metadata = metadata
        return found

    def need_plain_names(self, names: Iterable[str] | None = None) -> None:
        """Refuse columns whose name an engine takes for a pattern: ``*`` is all of them, ``^a$`` those that match.

        Counting gives columns neutral names; where their own are used, such a name would silently stand for others.
        """
        for name in self._columns if names is None else names:
            if name == "*" or (name.startswith("^") and name.endswith("$")):
                raise ColumnError(
                    f"The column name '{name}' would be taken for a pattern that stands for several columns. Rename it "
                    "in the file first."
                )

    @property
    def size_in_words(self) -> str:
        """How large the file is, as far as that can be told without running a query."""
        many = f"{len(self.columns):,} column{'' if len(self.columns) == 1 else 's'}"
        if not isinstance(self._wrapped, nw.DataFrame):
            return f"{many} (a query of {_engine(self._wrapped)}, not run yet)"
        rows = len(self._wrapped)
        return f"{rows:,} record{'' if rows == 1 else 's'}, {many} ({_engine(self._wrapped)})"

    def __repr__(self) -> str:
        rows = [("column", "type", "role"), *self._described()]
        widths = [max(len(row[place]) for row in rows) for place in (0, 1)]
        lines = [f"  {name:<{widths[0]}}  {kind:<{widths[1]}}  {role}".rstrip() for name, kind, role in rows]
        return "\n".join([f"Microdata: {self.size_in_words}", *lines, *self._left_out()])

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><th scope='row'>{html.escape(name)}</th><td>{html.escape(kind)}</td><td>{html.escape(role)}</td></tr>"
            for name, kind, role in self._described()
        )
        more = "".join(f"<p>{html.escape(line.strip())}</p>" for line in self._left_out())
        head = "<tr><th>column</th><th>type</th><th>role</th></tr>"
        return f"<p>Microdata: {html.escape(self.size_in_words)}</p><table>{head}{cells}</table>{more}"

    def _described(self) -> list[tuple[str, str, str]]:
        """Name columns, types and roles, and no value: those with a role first."""
        parts: dict[str, list[str]] = {}
        for role in ROLES:
            for column in columns_named(getattr(self._roles, role), role):
                parts.setdefault(column, []).append(_ROLE_WORDS.get(role, role))
        ordered = [*parts, *(name for name in self._schema if name not in parts)]
        return [
            (name, type_name(self._schema[name]), ", ".join(parts.get(name, ["–"])))
            for name in ordered[:_MOST_SHOWN]
        ]

    def _left_out(self) -> list[str]:
        more = len(self.columns) - _MOST_SHOWN
        return [f"  and {more:,} more column{'' if more == 1 else 's'}"] if more > 0 else []


def _engine(wrapped: nw.DataFrame[Any] | nw.LazyFrame[Any]) -> str:
    return str(wrapped.implementation).rpartition(".")[2].lower()


def _as_arguments(roles: Roles) -> dict[str, Any]:
    return {item.name: getattr(roles, item.name) for item in fields(roles)}


def _wrapped(frame: Any) -> nw.DataFrame[Any] | nw.LazyFrame[Any]:
    names = _native_names(frame)
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        more = f" (and {len(twice) - 1} more)" if len(twice) > 1 else ""
        raise ColumnError(
            f"The column name '{twice[0]}'{more} appears more than once. "
            "Rename the columns so that each name is used once."
        )
    try:
        wrapped: nw.DataFrame[Any] | nw.LazyFrame[Any] = nw.from_native(frame)
    except TypeError as error:
        raise InputError(
            f"A {type(frame).__name__} is not a data frame discreet knows. Give a Polars, pandas, PyArrow, "
            "DuckDB or PySpark frame, or read a file with discreet.read(path)."
        ) from error
    return wrapped


def _native_names(frame: Any) -> list[str]:
    """Read the column names of the engines that allow a name twice: pandas, PyArrow and DuckDB."""
    if type(frame).__module__.startswith("polars"):
        return []
    try:
        names = getattr(frame, "column_names", None)
        names = getattr(frame, "columns", []) if names is None else names
    except Exception as error:
        raise _unreadable(error) from error
    for name in names:
        if not isinstance(name, str):
            raise ColumnError(
                f"The column name {name!r} is not a text but {type(name).__name__}. Rename the columns first, in "
                "pandas with frame.columns = frame.columns.map(str)."
            )
    return list(names)


def _schema(wrapped: nw.DataFrame[Any] | nw.LazyFrame[Any]) -> dict[str, Any]:
    """Ask the engine for names and types; a lazy source may find only now that it cannot be read."""
    try:
        schema = dict(wrapped.collect_schema())
    except Exception as error:
        raise _unreadable(error) from error
    if not wrapped.implementation.is_pyarrow():
        return schema
    declared = {name: _ordered_levels(wrapped.to_native(), name) for name in schema}
    return {name: nw.Enum(declared[name]) if declared[name] else dtype for name, dtype in schema.items()}


def _ordered_levels(table: Any, column: str) -> list[str]:
    """The levels of an ordered dictionary of Arrow, which is an ordered category; none for anything else."""
    kind = table.schema.field(column).type
    if not hasattr(kind, "ordered") or not kind.ordered or "string" not in str(kind.value_type):
        return []
    chunks = table.column(column).unify_dictionaries().chunks
    levels = chunks[0].dictionary.to_pylist() if chunks else []
    # A list that names a level twice, or a missing one, has no order that could be kept.
    return levels if None not in levels and len(set(levels)) == len(levels) else []


def _unreadable(error: Exception) -> InputError:
    return InputError(
        f"The source behind the frame cannot be read ({type(error).__name__}). Check that its file is there and "
        "its connection open."
    )


def require_microdata(data: Any, what: str = "data") -> None:
    """Refuse a bare frame, or a path, where a file with roles is needed, and say how to make one.

    Examples
    --------
    >>> require_microdata("people.csv")
    Traceback (most recent call last):
    discreet.core.errors.ParameterError: data must be Microdata, not a str. Read a file with ...
    """
    if not isinstance(data, Microdata):
        raise not_microdata(data, what)
