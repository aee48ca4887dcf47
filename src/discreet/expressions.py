"""Short texts that speak of columns: ``age < 16 and status == 'child'``, ``costs + profit``, ``pay is missing``.

A rule of a file is written as a text, and a text may come from a plan file that somebody else wrote. It is read
with Python's own parser into a tree, each node of which must be one of those listed here, and turned into a Polars
expression; nothing is ever evaluated as code.
"""

from __future__ import annotations

import ast
import datetime as dt
import re
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import polars as pl

from discreet.core.errors import ColumnError, ParameterError, unknown_name
from discreet.core.wording import type_name
from discreet.expression_functions import (
    ARITHMETIC,
    COMPARISONS,
    EXACT,
    FUNCTIONS,
    MANY_FUNCTIONS,
    MISSING_FUNCTIONS,
    NUMBER_FUNCTIONS,
    both_hold,
    either_holds,
    halved,
    joined,
)

T = TypeVar("T")
Kind = Literal["condition", "number", "text", "date", "time of day", "duration", "any"]
Schema = Mapping[str, Any] | Iterable[str]

_LONGEST = 10_000
_QUOTED = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|`([^`]+)`""")


_READ_AS: Mapping[str, tuple[Callable[[str], dt.datetime | dt.time], str]] = {
    "date": (dt.datetime.fromisoformat, "2024-12-31"),
    "time of day": (dt.time.fromisoformat, "18:30:00"),
}


@dataclass(frozen=True)
class Expression:
    """A text that was read: what it computes, and from which columns.

    Attributes
    ----------
    text
        As it was written.
    columns
        The columns it speaks of, in the order of their first mention.
    kind
        ``"condition"`` (true or false), ``"number"``, ``"text"``, ``"date"``, ``"time of day"``, ``"duration"``, or
        ``"any"`` where the types of the columns were not told.
    value
        The Polars expression; missing where a part that matters is missing.
    """

    text: str
    columns: tuple[str, ...]
    kind: Kind
    value: pl.Expr = field(repr=False, compare=False)

    @property
    def condition(self) -> pl.Expr:
        """The Polars expression of a condition: true where it certainly holds, false where it is not known."""
        if self.kind not in ("condition", "any"):
            raise ParameterError(
                f"'{self.text}' is a {self.kind}, not a condition. Compare it with something."
            )
        return self.value.fill_null(False)


@dataclass(frozen=True)
class _Node:
    value: pl.Expr
    kind: Kind
    constant: Any = None
    column: str | None = None
    whole: bool = False
    """Whether it is certainly a whole number, whose sums and products must not run over."""


def parse(text: str, schema: Schema) -> Expression:
    """Read a text about columns.

    Parameters
    ----------
    text
        Comparisons (``==``, ``!=``, ``<``, ``<=``, ``>``, ``>=``, also in chains: ``0 <= x < 10``), ``in [..]`` and
        ``not in [..]``, ``is missing`` and ``is not missing`` (or ``isnull(x)``), ``and``, ``or``, ``not``, arithmetic
        with ``+ - * / // % **`` and the functions abs, min, max, sum, round, floor, ceil, sqrt, exp and log. Texts
        stand in quotes, dates as ``'2024-12-31'``; a column whose name is no plain word stands in backticks:
        ```marital-status` == 'Divorced'``.
    schema
        The columns there are, best with their Polars types (``frame.schema``): then a number is not compared with
        a text, small integers do not overflow, whole numbers that grow beyond 64 bits are an error when the expression
        is computed, and NaN counts as missing.

    Returns
    -------
    Expression
        Comparisons with something missing are neither true nor false, as in SQL; ``.condition`` counts them as
        false.

    Examples
    --------
    >>> people = pl.DataFrame({"age": [12, 40, None], "status": ["child", "x", "x"]})
    >>> young = parse("age < 16 and status == 'child'", people.schema)
    >>> young.columns, people.select(young.condition).to_series().to_list()
    (('age', 'status'), [True, False, False])
    >>> parse("agee < 16", people.schema)
    Traceback (most recent call last):
    discreet.core.errors.ColumnError: There is no column 'agee'. Did you mean 'age'? It stands in 'agee < 16'.
    """
    if not isinstance(text, str) or not text.strip():
        raise ParameterError("An expression must be a text that is not empty, e.g. 'age >= 16'.")
    if len(text) > _LONGEST:
        raise ParameterError(f"An expression may have {_LONGEST:,} characters; this one has {len(text):,}.")
    types = dict(schema) if isinstance(schema, Mapping) else dict.fromkeys(schema)
    reader = _Reader(text, types)
    node = reader.read()
    reader.try_on_nothing(node)
    return Expression(text, tuple(reader.used), node.kind, node.value)


def split_outside_quotes(text: str, separator: str) -> list[str]:
    r"""Split a text at a regular expression, but not inside quotes or backticks.

    Examples
    --------
    >>> split_outside_quotes("name == 'a then b' then x > 0", r"\bthen\b")
    ["name == 'a then b' ", ' x > 0']
    """
    masked = _QUOTED.sub(lambda found: "\0" * len(found[0]), text)
    cuts = [found.span() for found in re.finditer(separator, masked)]
    starts, stops = [0, *(stop for _, stop in cuts)], [*(start for start, _ in cuts), len(text)]
    return [text[start:stop] for start, stop in zip(starts, stops, strict=True)]


class _Reader:
    """Walks the tree of one text; keeps the columns it met."""

    def __init__(self, text: str, types: Mapping[str, Any]) -> None:
        self.text = text
        self.types = types
        self.used: dict[str, None] = {}
        self.quoted: dict[str, str] = {}

    def read(self) -> _Node:
        plain = _QUOTED.sub(self._unquoted, self.text.strip())
        self._check_marks(_QUOTED.sub("", plain))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)
                tree = ast.parse(plain, mode="eval")
            return self._visit(tree.body)
        except (SyntaxError, ValueError, OverflowError) as error:
            raise ParameterError(
                f"'{self.text}' cannot be read. Compare with '==', join with 'and', 'or', 'not', put texts in quotes "
                "and column names that are no plain word in backticks."
            ) from error
        except (RecursionError, MemoryError) as error:
            raise ParameterError("The expression is nested too deeply. Write it as several rules.") from error

    def try_on_nothing(self, node: _Node) -> None:
        """Compute it on no records where the types are known, so that one that fits them not is refused here."""
        types = {name: self.types[name] for name in self.used}
        if any(dtype is None for dtype in types.values()):
            return
        try:
            pl.DataFrame(schema=types).select(node.value)
        except pl.exceptions.PolarsError as error:
            raise ParameterError(
                f"'{self.text}' cannot be computed from columns of these types. Compare like with like, and write "
                "whole numbers without a point where the column has whole numbers."
            ) from error

    def _check_marks(self, outside: str) -> None:
        """Refuse what Python would pass over or change: comments, and letters that it takes for others."""
        if "#" in outside:
            raise ParameterError(
                f"'{self.text}' holds a '#', behind which nothing would be read. Put names with a '#' in backticks."
            )
        if unicodedata.normalize("NFKC", outside) != outside:
            raise ParameterError(
                f"'{self.text}' holds letters that have another form. Put names with such letters in backticks."
            )

    def _unquoted(self, found: re.Match[str]) -> str:
        """Give a name in backticks a stand-in that Python can parse; leave texts as they are."""
        if found[2] is None:
            return found[0]
        stand_in = f"column_{len(self.quoted)}_"
        while stand_in in self.types:
            stand_in += "_"
        self.quoted[stand_in] = found[2]
        return stand_in

    def _visit(self, node: ast.expr) -> _Node:
        match node:
            case ast.Constant():
                return self._constant(node.value)
            case ast.Name():
                return self._column(node.id)
            case ast.BoolOp():
                parts = [self._truth(value) for value in node.values]
                both = isinstance(node.op, ast.And)
                return _Node(joined(parts, both_hold if both else either_holds), "condition")
            case ast.UnaryOp(op=ast.Not()):
                return _Node(~self._truth(node.operand), "condition")
            case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
                inner = self._number(node.operand)
                negative = isinstance(node.op, ast.USub)
                if inner.constant is not None:
                    return self._constant(-inner.constant if negative else inner.constant)
                return self._computed(ast.Sub, self._constant(0), inner) if negative else inner
            case ast.BinOp() if type(node.op) in ARITHMETIC:
                return self._computed(type(node.op), self._number(node.left), self._number(node.right))
            case ast.Compare():
                return self._compare(node)
            case ast.Call(func=ast.Name(id=name), keywords=[]):
                return self._call(name, node.args)
        raise self._refused(node)

    def _computed(self, how: type[ast.operator], left: _Node, right: _Node) -> _Node:
        """Compute with two numbers; whole ones stay exact or are refused, rather than run over into others."""
        whole = left.whole and right.whole and how in (ast.Add, ast.Sub, ast.Mult, ast.Mod)
        compute = ARITHMETIC[how]
        if not whole or how is ast.Mod:
            return _Node(compute(left.value, right.value), "number", whole=whole)
        if left.constant is not None and right.constant is not None:
            return self._constant(EXACT[how](left.constant, right.constant))
        exact = compute(left.value.cast(pl.Int128), right.value.cast(pl.Int128))
        return _Node(exact.map_batches(self._within, return_dtype=pl.Int64), "number", whole=True)

    def _within(self, exact: pl.Series) -> pl.Series:
        """Bring whole numbers back to 64 bits where they fit."""
        low, high = exact.min(), exact.max()
        if low is not None and (int(low) < -(2**63) or int(high) >= 2**63):  # type: ignore[arg-type]
            raise ParameterError(
                f"'{self.text}' computes whole numbers beyond 9.2 quintillion, which cannot be told exactly. Compute "
                "with fractions instead: multiply by 1.0 first."
            )
        return exact.cast(pl.Int64)

    def _constant(self, value: Any) -> _Node:
        if isinstance(value, bool):
            return _Node(pl.lit(value), "condition", value)
        if isinstance(value, int | float):
            fits = isinstance(value, float) or abs(value) < 2**63
            return _Node(
                pl.lit(value if fits else float(value)),
                "number",
                value,
                whole=fits and isinstance(value, int),
            )
        if isinstance(value, str):
            return _Node(pl.lit(value), "text", value)
        raise ParameterError(
            f"'{self.text}' holds something that is neither number nor text. Missing is 'is missing'."
        )

    def _column(self, name: str) -> _Node:
        column = self.quoted.get(name, name)
        if column not in self.types:
            raise ColumnError(f"{unknown_name(column, self.types)} It stands in '{self.text}'.")
        self.used.setdefault(column)
        # Polars takes '*' and '^..$' for patterns.
        pattern = column == "*" or (column.startswith("^") and column.endswith("$"))
        value = pl.col(f"^{re.escape(column)}$" if pattern else column)
        return _typed(column, value, self.types[column])

    def _truth(self, node: ast.expr) -> pl.Expr:
        found = self._visit(node)
        if found.kind not in ("condition", "any"):
            raise ParameterError(
                f"In '{self.text}' a {found.kind} stands where a condition is needed. Compare it with something."
            )
        return found.value

    def _number(self, node: ast.expr) -> _Node:
        found = self._visit(node)
        if found.kind == "condition" and found.constant is None:
            return _Node(found.value.cast(pl.Int64), "number", whole=True)
        if found.kind not in ("number", "any"):
            raise ColumnError(f"In '{self.text}' a {found.kind} stands where a number is needed.")
        return found

    def _compare(self, node: ast.Compare) -> _Node:
        parts: list[pl.Expr] = []
        for left, operator, right in zip(
            [node.left, *node.comparators[:-1]], node.ops, node.comparators, strict=True
        ):
            if isinstance(operator, ast.Is | ast.IsNot):
                missing = self._is_missing(left, right)
                parts.append(missing if isinstance(operator, ast.Is) else ~missing)
            elif isinstance(operator, ast.In | ast.NotIn):
                inside = self._inside(left, right)
                parts.append(inside if isinstance(operator, ast.In) else ~inside)
            else:
                parts.append(self._pair(self._visit(left), type(operator), self._visit(right)))
        return _Node(joined(parts, both_hold), "condition")

    def _is_missing(self, left: ast.expr, right: ast.expr) -> pl.Expr:
        if not (_says_missing(right) or (isinstance(right, ast.Constant) and right.value is None)):
            raise ParameterError(
                f"In '{self.text}', 'is' goes with 'missing' only. Compare values with '=='."
            )
        return self._visit(left).value.is_null()

    def _inside(self, left: ast.expr, right: ast.expr) -> pl.Expr:
        if not isinstance(right, ast.List | ast.Tuple | ast.Set) or not right.elts:
            raise ParameterError(
                f"In '{self.text}', 'in' needs a list that is not empty, e.g. in ['a', 'b']."
            )
        found = self._visit(left)
        known = [self._visit(item) for item in right.elts if not _says_missing(item)]
        if any(item.constant is None for item in known):
            raise ParameterError(f"In '{self.text}', the list after 'in' may hold numbers and texts only.")
        hits = self._any_of(found, known)
        if len(known) < len(right.elts):
            missing = found.value.is_null()
            return missing if hits is None else hits.fill_null(False) | missing
        assert hits is not None
        return hits

    def _any_of(self, found: _Node, known: Sequence[_Node]) -> pl.Expr | None:
        """Look a value up in a list at once where all of it is of one kind, and item by item elsewhere."""
        if not known:
            return None
        kinds = {item.kind for item in known}
        if kinds == {found.kind} and found.kind in ("text", "number"):
            values = [item.constant for item in known]
            whole = all(isinstance(value, int) and abs(value) < 2**63 for value in values)
            if found.kind == "text" or (whole and not isinstance(found.constant, float)):
                return found.value.is_in(values)
        return joined([self._pair(found, ast.Eq, item) for item in known], either_holds)

    def _pair(self, left: _Node, operator: type[ast.cmpop], right: _Node) -> pl.Expr:
        if operator not in COMPARISONS:
            raise ParameterError(
                f"'{self.text}' compares in a way that is not known. Use ==, !=, <, <=, > or >=."
            )
        left, right = self._as_time(left, right), self._as_time(right, left)
        kinds = {left.kind, right.kind} - {"any"}
        if len(kinds) > 1:
            raise ColumnError(
                f"'{self.text}' compares a {left.kind} with a {right.kind}, which are never equal. Put texts in "
                "quotes, write numbers without them."
            )
        if operator not in (ast.Eq, ast.NotEq):
            left, right = self._ranked(left, right), self._ranked(right, left)
        return COMPARISONS[operator](left.value, right.value)

    def _as_time(self, node: _Node, other: _Node) -> _Node:
        """Read a text as a date, or as a time of the day, where it is compared with one."""
        if other.kind not in _READ_AS or not isinstance(node.constant, str):
            return node
        read, example = _READ_AS[other.kind]
        try:
            return _Node(pl.lit(read(node.constant)), other.kind, node.constant)
        except ValueError as error:
            raise ParameterError(
                f"In '{self.text}' a {other.kind} is compared with a text that is none. Write it as '{example}'."
            ) from error

    def _ranked(self, node: _Node, other: _Node) -> _Node:
        """Put a text in its place among the levels of the ordered column it is compared with."""
        levels = next(
            (
                self.types[part.column].categories
                for part in (node, other)
                if part.column is not None and isinstance(self.types[part.column], pl.Enum)
            ),
            None,
        )
        if levels is None or node.kind != "text":
            return node
        if isinstance(node.constant, str) and node.constant not in levels.to_list():
            raise ParameterError(
                f"'{self.text}' compares an ordered column with a text that is none of its levels."
            )
        return _Node(node.value.cast(pl.Enum(levels)).to_physical(), "number")

    def _call(self, name: str, arguments: Sequence[ast.expr]) -> _Node:
        if name in MISSING_FUNCTIONS and len(arguments) == 1:
            return _Node(self._visit(arguments[0]).value.is_null(), "condition")
        if name in NUMBER_FUNCTIONS and len(arguments) == 1:
            number = self._number(arguments[0])
            if name == "abs" and number.whole and number.constant is None:
                other = self._computed(ast.Sub, self._constant(0), number)
                return _Node(pl.max_horizontal(number.value, other.value), "number", whole=True)
            return _Node(NUMBER_FUNCTIONS[name](number.value), "number")
        if name in MANY_FUNCTIONS and len(arguments) > 1:
            numbers = [self._number(part) for part in arguments]
            whole = all(number.whole for number in numbers)
            if name == "sum":
                return halved(numbers, lambda a, b: self._computed(ast.Add, a, b))
            return _Node(MANY_FUNCTIONS[name]([n.value for n in numbers]), "number", whole=whole)
        if name in FUNCTIONS:
            raise ParameterError(f"In '{self.text}' the function '{name}' has the wrong number of arguments.")
        raise ParameterError(f"{unknown_name(name, FUNCTIONS, what='function')} It stands in '{self.text}'.")

    def _refused(self, node: ast.expr) -> ParameterError:
        if isinstance(node, ast.BinOp):
            return ParameterError(
                f"In '{self.text}' write 'and', 'or', 'not' instead of '&', '|', '~', and '**' for powers."
            )
        return ParameterError(
            f"'{self.text}' holds something that is not allowed ({type(node).__name__}). Use columns, numbers, texts, "
            f"comparisons, and/or/not, arithmetic and the functions {', '.join(FUNCTIONS)}."
        )


def _says_missing(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "missing"


def _typed(column: str, value: pl.Expr, dtype: Any) -> _Node:
    """Bring a column to the one type of its kind, so that sums do not overflow and NaN is missing."""
    if dtype is None:
        return _Node(value, "any", column=column)
    if dtype == pl.Boolean:
        return _Node(value, "condition", column=column)
    if dtype.is_float():
        return _Node(value.fill_nan(None), "number", column=column)
    if dtype.is_integer() and dtype != pl.UInt64:
        return _Node(value.cast(pl.Int64), "number", column=column, whole=True)
    if dtype.is_numeric():
        return _Node(value.cast(pl.Float64), "number", column=column)
    if dtype.is_temporal():
        if isinstance(dtype, pl.Datetime) and dtype.time_zone is not None:
            value = value.dt.replace_time_zone(None)  # rules speak of the clock on the wall
        kind: Kind = "time of day" if dtype == pl.Time else "duration" if dtype == pl.Duration else "date"
        return _Node(value, kind, column=column)
    if dtype in (pl.String, pl.Categorical, pl.Enum):
        return _Node(value.cast(pl.String), "text", column=column)
    if dtype == pl.Null:
        return _Node(value, "any", column=column)
    raise ColumnError(f"Column '{column}' holds {type_name(dtype)} values, which no rule can speak of.")
