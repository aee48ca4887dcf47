"""What texts that speak of columns may compute: comparisons, arithmetic and a few functions, as Polars expressions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from operator import add, mul, sub
from typing import TypeVar

import polars as pl

T = TypeVar("T")

COMPARISONS: Mapping[type[ast.cmpop], Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
}


def _quotient(divide: Callable[[pl.Expr, pl.Expr], pl.Expr]) -> Callable[[pl.Expr, pl.Expr], pl.Expr]:
    """Divide where the divisor is not zero: elsewhere there is no value, and infinity would be larger than all."""
    return lambda a, b: divide(a.cast(pl.Float64), pl.when(b != 0).then(b)).fill_nan(None)


def _power(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    found = a.cast(pl.Float64) ** b
    return pl.when(found.is_finite()).then(found)


def joined(parts: Sequence[pl.Expr], both: Callable[[pl.Expr, pl.Expr], pl.Expr]) -> pl.Expr:
    """Join many conditions two by two: a chain that is nested as deep as it is long takes the engine minutes."""
    return halved(parts, both)


def halved(parts: Sequence[T], both: Callable[[T, T], T]) -> T:
    """Join parts two by two."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return both(halved(parts[:half], both), halved(parts[half:], both))


ARITHMETIC: Mapping[type[ast.operator], Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: _quotient(lambda a, b: a / b),
    ast.FloorDiv: _quotient(lambda a, b: a // b),
    ast.Mod: lambda a, b: a % pl.when(b != 0).then(b),
    ast.Pow: _power,
}


EXACT: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: add,
    ast.Sub: sub,
    ast.Mult: mul,
}


NUMBER_FUNCTIONS: Mapping[str, Callable[[pl.Expr], pl.Expr]] = {
    "abs": lambda a: a.abs(),
    "floor": lambda a: a.cast(pl.Float64).floor(),
    "ceil": lambda a: a.cast(pl.Float64).ceil(),
    "round": lambda a: a.cast(pl.Float64).round(0),
    "sqrt": lambda a: a.cast(pl.Float64).sqrt().fill_nan(None),
    "exp": lambda a: a.cast(pl.Float64).exp(),
    "log": lambda a: a.cast(pl.Float64).log().fill_nan(None),
}


MANY_FUNCTIONS: Mapping[str, Callable[[Sequence[pl.Expr]], pl.Expr]] = {
    "min": pl.min_horizontal,
    "max": pl.max_horizontal,
    "sum": lambda parts: halved(parts, lambda a, b: a + b),
}


MISSING_FUNCTIONS = ("isnull", "ismissing")


FUNCTIONS = (*NUMBER_FUNCTIONS, *MANY_FUNCTIONS, *MISSING_FUNCTIONS)


def both_hold(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    """One condition and the other."""
    return a & b


def either_holds(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    """One condition or the other."""
    return a | b
