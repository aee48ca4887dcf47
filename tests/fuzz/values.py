"""Values for parameters, drawn from what the signatures say: fitting ones, and ones that cannot be meant.

Nothing here knows a method by name. A parameter that says ``Literal["a", "b"]`` gets one of them, one that says
``Mapping[str, float]`` gets columns with numbers, and now and then any of them gets something else altogether.
"""

from __future__ import annotations

import collections.abc
import copy
import dataclasses
import datetime as dt
import decimal
import inspect
import sys
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
from hypothesis import strategies as st

from discreet.hierarchy import Hierarchy
from discreet.microdata import Microdata

_ROWS = 24
COLUMNS = ("age", "sex", "region", "pay", "day", "w", "hh", "x", "y", "name")
PEOPLE = pl.DataFrame(
    {
        "age": [20 + (i * 7) % 40 for i in range(_ROWS)],
        "sex": ["f", "m", "m"] * (_ROWS // 3),
        "region": [["north", "east", None, "south"][i % 4] for i in range(_ROWS)],
        "pay": [1000.5 + (i * 37) % 300 if i % 5 else None for i in range(_ROWS)],
        "day": [dt.date(2024, 1, 1) + dt.timedelta(i) for i in range(_ROWS)],
        "w": [1.0 + i % 3 for i in range(_ROWS)],
        "hh": [i // 3 for i in range(_ROWS)],
        "x": [float((i * 13) % 50) for i in range(_ROWS)],
        "y": [float((i * 29) % 70) for i in range(_ROWS)],
        "name": [f"person {i}" for i in range(_ROWS)],
    }
)
ROLES = {
    "keys": ["age", "sex", "region"], "sensitive": "pay", "weight": "w", "household": "hh", "location": ["x", "y"],
    "identifiers": "name", "time": "day",
}  # fmt: skip

WRONG = st.sampled_from(
    [None, float("nan"), float("inf"), -float("inf"), -1, 0, -0.5, 1.5, 10**30, 2**63, -(2**63) - 1, 1e308, "", "x",
     " ",
     "nan", "5", True, False, [], {}, (), set(), [None], [[]], {"": 1}, {"age": None}, {"age": []}, {"nope": 1},
          {1: 2},
     ["nope"], ["age", "age"], ["age", 5], b"x", object(), int, print, dt.date.max, decimal.Decimal("NaN"), 1j,
      range(3),
     np.float64("nan"), np.array([1, 2]), np.array([]), np.int8(3), pl.Series([1]), "a" * 5000, "*", "^.*$",
     {"age": "x"},
     {"age": float("nan")}, {"age": [float("nan"), 1]}, {"age": {"a": 1}}, {"age": -1}, [[1, 2], [3]], [float("inf")]]
)  # fmt: skip
PLAIN_WRONG = st.sampled_from(
    [float("nan"), float("inf"), -1, 0, -0.5, 1.5, 2**62, 1e308, "", "x", True, [], {}, [[]], {"age": []},
     {"nope": 1},
     ["nope"], ["age", "age"], ["age", 5], dt.date(9999, 12, 31), dt.time(1), "*", "^.*$", {"age": "x"}, [1, "a"],
     {"age": float("nan")}, {"age": {"a": 1}}, {"age": -1}, [[1, 2], [3]], [float("inf")], {"": ""}, "\x1b[31m",
     10**15]
)  # fmt: skip
"""Values that a TOML file can hold."""

ARRAYS = st.sampled_from(
    [[1, 2, 3], [0.5, 1.5, 2.5, 9.0], [], [1.0], [float("nan"), 1, 2], [float("inf"), 1], [0, 0, 0], [-1, 5], [1e308,
     1e308],
     [[1.0, 0.2], [0.2, 1.0]], [[1, 2, 3]], "text", ["1", "2", "3"], [[1, 2], [3]], [None, 1.0, 2.0], None, 5,
     np.array(["a", "b"]), pl.Series([1.0, None, 2.0]), (i for i in range(3)), {1.0, 2.0}, [object(), 1], [1j, 2],
     [10**400, 1], [True, False]]
)  # fmt: skip
_NUMBERS = st.one_of(st.sampled_from([0.0, 0.1, 0.5, 1.0, 2.0, 10.0]), st.floats(0, 5))
_COUNTS = st.integers(0, 12)
_COLUMN = st.sampled_from(COLUMNS)
_HIERARCHIES = st.sampled_from(
    [
        Hierarchy.intervals(widths=[10, 20]),
        Hierarchy.prefixes([1]),
        Hierarchy.from_tree({"all": ["f", "m"]}),
        Hierarchy.dates(),
    ]
)


def microdata() -> Microdata:
    """The file that parameters are tried on."""
    return Microdata(PEOPLE, **ROLES)


def fitting(annotation: Any, depth: int = 3) -> st.SearchStrategy[Any]:
    """Values of the type that a parameter says it takes."""
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is Any or annotation is inspect.Parameter.empty or depth == 0:
        return st.one_of(_COLUMN, _COUNTS, WRONG)
    if annotation is None or annotation is type(None):
        return st.none()
    if origin is Literal:
        return st.sampled_from(inner)
    if origin in (typing.Union, types.UnionType):
        return st.one_of([fitting(part, depth) for part in inner])
    if origin is typing.Annotated:
        return _at_limits(fitting(inner[0], depth), inner[0], inner[1:])
    if annotation is bool:
        return st.booleans()
    if annotation is int:
        return _COUNTS
    if annotation is float:
        return _NUMBERS
    if annotation is str:
        return st.one_of(
            _COLUMN, _COLUMN, st.sampled_from(["age * sex", "pay ~ age", "age >= 30", "EPSG:3035", "age"])
        )
    if origin is tuple:
        parts = [part for part in inner if part is not Ellipsis]
        return st.tuples(*(fitting(part, depth - 1) for part in parts)) if parts else st.just(())
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return st.dictionaries(_COLUMN, fitting(inner[1], depth - 1), max_size=3)
    if origin in (collections.abc.Sequence, collections.abc.Iterable, list):
        return st.lists(fitting(inner[0], depth - 1), max_size=4)
    if isinstance(annotation, type):
        return _of_class(annotation, depth)
    return st.one_of(_COLUMN, _COUNTS, WRONG)


def _at_limits(
    plain: st.SearchStrategy[Any], kind: Any, constraints: tuple[Any, ...]
) -> st.SearchStrategy[Any]:
    """Values of a type, and those that stand at its limits, on either side."""
    ends = [
        end
        for one in constraints
        for name in ("least", "most", "bound")
        if isinstance(end := getattr(one, name, None), int | float)
    ]
    choices = [choice for one in constraints for choice in getattr(one, "choices", ())]
    if kind in (int, float) and ends:
        step = 1 if kind is int else 1e-9
        choices += [kind(end + move) for end in ends for move in (-step, 0, step)]
    return st.one_of(plain, st.sampled_from(choices)) if choices else plain


def _of_class(kind: type, depth: int) -> st.SearchStrategy[Any]:
    if issubclass(kind, Microdata):
        return st.builds(microdata)
    if issubclass(kind, Hierarchy):
        return _HIERARCHIES
    kinds = [
        one
        for one in [kind, *kind.__subclasses__()]
        # A class that checks nothing of what it is given holds results, which nobody makes by hand.
        if dataclasses.is_dataclass(one)
        and not inspect.isabstract(one)
        and hasattr(one, "__post_init__")
        and not one.__name__.startswith("_")
    ]
    made = [st.just(one).flatmap(lambda one: _attempted(one, depth - 1)) for one in kinds]
    return st.one_of(made) if made else WRONG


@st.composite
def _attempted(draw: st.DrawFn, kind: type, depth: int) -> Any:
    """An object of a class of parameters, or something else where it refuses what was drawn for it."""
    chosen = draw(settings(kind, depth=depth))
    try:
        return kind(**chosen)
    except Exception:  # that it is refused in plain words is tried where it is the case itself
        return draw(WRONG)


def annotations(thing: Any) -> dict[str, tuple[Any, bool]]:
    """The parameters of a class or function: what each takes, and whether it must be given."""
    found = inspect.signature(thing).parameters
    namespace = dict(vars(sys.modules[thing.__module__]))
    taken = {}
    for name, parameter in found.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        annotation = parameter.annotation
        if isinstance(annotation, str):
            try:
                annotation = eval(annotation, {**vars(typing), **namespace, "Microdata": Microdata})
            except Exception:  # a name that is imported for type checkers only
                annotation = Any
        taken[name] = (annotation, parameter.default is parameter.empty)
    return taken


@st.composite
def settings(
    draw: st.DrawFn, thing: Any, *, plain: bool = False, skip: tuple[str, ...] = (), depth: int = 3
) -> dict[str, Any]:
    """Settings for some of the parameters of a class or function, most of them fitting."""
    chosen = {}
    wrong = PLAIN_WRONG if plain else WRONG
    for name, (annotation, needed) in annotations(thing).items():
        if name in skip:
            continue
        how = draw(st.sampled_from(["fits", "fits", "wrong", *["usual"] * 5]))
        if annotation is npt.ArrayLike:
            # What is no array of numbers NumPy itself refuses, in its own words.
            chosen[name] = draw(ARRAYS)
        elif how == "wrong":
            chosen[name] = copy.deepcopy(draw(wrong))
        elif how == "fits" or needed:
            chosen[name] = draw(fitting(annotation, depth))
    return chosen
