"""Does a value fit the parameter it is given for? One answer for Python, plan files, studies, ``--set`` and models.

What a parameter takes is what its annotation says: a frozen dataclass of parameters and a public function declare it
once, and `fault` holds a value against it. Numbers must be numbers (true is none, nor is NaN or an infinite one),
choices must be among those offered, lists and tables must hold what they are said to hold, and what a value must be
beside its type (a share, at least 1) is kept (`discreet.core.constraints`). What one parameter must be because of
another its owner checks afterwards.
"""

from __future__ import annotations

import builtins
import collections.abc
import functools
import inspect
import math
import numbers
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

import numpy as np

from discreet.core.constraints import OneOf, kept, phrase_of
from discreet.core.errors import ColumnError, ParameterError, near_misses, not_microdata

P = ParamSpec("P")
R = TypeVar("R")
Kind = TypeVar("Kind", bound=type)

_LISTS = (Sequence, list, tuple, Collection, Iterable, set, frozenset, AbstractSet)
_COLUMN_LISTS = [
    "by",
    "categorical",
    "columns",
    "keys",
    "known",
    "secrets",
    "sensitive",
    "strata",
    "variables",
]
_RENAMED = {"control": "holdout"}  # parameters of public functions that had another name
_MOST_LOOKED_AT = 1_000
_LARGEST_SIGNED = 2**63
_LARGEST = 2**64  # what the arrays can hold; a longer number is a slip or a trap


def fault(value: Any, annotation: Any, *, plain: bool = False) -> str | None:
    """Say what a value must be, where it does not fit an annotation; None where it fits.

    Parameters
    ----------
    value
        What was given.
    annotation
        The type a parameter declares.
    plain
        Whether a table of plain values may stand for a thing that can be made from one, as in a plan file.

    Examples
    --------
    >>> fault(3, int), fault("3", int), fault(True, int | None)
    (None, 'a whole number', 'a whole number or nothing')
    >>> from discreet.core.constraints import AtLeast
    >>> fault(1, typing.Annotated[int, AtLeast(2)] | None), fault("1", typing.Annotated[int, AtLeast(2)])
    ('a whole number of at least 2 or nothing', 'a whole number')
    >>> fault(float("nan"), float), fault("mean", typing.Literal["mean", "median"]), fault([1, "a"], Sequence[int])
    ('a number', None, 'a list of whole numbers')
    """
    if not _fits(value, annotation, plain):
        return _in_words(annotation)
    return None if _fits(value, annotation, plain, limits=True) else _in_words(annotation, limits=True)


def check(value: Any, annotation: Any, name: str, *, where: str = "", plain: bool = False) -> None:
    """Refuse a value that does not fit its parameter, by name and without showing the value."""
    wanted = fault(value, annotation, plain=plain)
    if wanted is None and name != "seed" and _is_whole(value) and abs(int(value)) >= _LARGEST_SIGNED:
        wanted = "a smaller number"
    if wanted is None:
        return
    if _takes_files(annotation) and not isinstance(value, list | tuple):
        raise not_microdata(value, name)
    entry = _entry_at_fault(value, annotation, plain) if isinstance(value, Mapping) else None
    if entry is not None:
        given = f"; see the entry of '{entry}'"
    else:
        of_choice = isinstance(value, str) and "'" in wanted
        given = "" if of_choice or _fits(value, annotation, plain) else f", not {_kind_of(value)}"
    close = near_misses(value, _choices(annotation)) if isinstance(value, str) else []
    meant = f" Did you mean '{close[0]}'?" if close else ""
    raise ParameterError(f"{f'{where}: ' if where else ''}{name} must be {wanted}{given}.{meant}")


def as_plain_list(value: Any, annotation: Any) -> Any:
    """Turn an array, a column or an index into a list where a list is asked for: whether it is empty must be plain.

    Examples
    --------
    >>> as_plain_list(np.array(["age", "sex"]), Sequence[str] | None), as_plain_list("age", Sequence[str])
    (['age', 'sex'], 'age')
    """
    if not hasattr(value, "__array__") or not (hasattr(value, "tolist") or hasattr(value, "to_list")):
        return value
    kinds = {get_origin(option) or option for option in _options(annotation)}
    if (
        Any in kinds
        or not kinds & set(_LISTS)
        or any(isinstance(value, kind) for kind in kinds & {np.ndarray})
    ):
        return value
    return value.tolist() if hasattr(value, "tolist") else value.to_list()


def distinct(values: Iterable[Any], name: str) -> list[Any]:
    """Give plain values each once, in their order, or refuse lists and tables where plain values are meant.

    Examples
    --------
    >>> distinct(["f", "m", "f"], "levels")
    ['f', 'm']
    """
    try:
        return list(dict.fromkeys(values))
    except TypeError as error:
        raise ParameterError(f"{name} must be texts, numbers or dates, not lists or tables.") from error


def keep_as_tuples(thing: Any, *fields: str) -> None:
    """Keep lists of names in frozen fields as tuples, and a single name as a tuple of one; nothing stays nothing."""
    for field in fields:
        value = getattr(thing, field)
        if value is not None:
            object.__setattr__(thing, field, (value,) if isinstance(value, str) else tuple(value))


def check_fields(thing: Any, *, where: str = "", plain: bool = False, but: Collection[str] = ()) -> None:
    """Refuse a dataclass one of whose parameters, but for some, is not what it declares."""
    kind: Any = type(thing)
    for name, annotation in _hints(kind).items():
        if name not in but:
            value = getattr(thing, name)
            made = as_plain_list(value, annotation)
            if made is not value:
                object.__setattr__(thing, name, made)
            check(made, annotation, name, where=where, plain=plain)


def typed_parameters(
    kind: Kind, *, where: Callable[[Any], str] = lambda _: "", own_words: bool = False
) -> Kind:
    """Let a dataclass check its parameters before its own ``__post_init__`` runs, and again after it.

    Before, a plain table may stand for a richer thing; afterwards all must be what they are declared to be. Call it
    before the class becomes a dataclass, for instance in ``__init_subclass__``. A class with ``own_words`` tells its
    faults by itself, and is asked first; its parameters may stay plain.
    """
    own = kind.__dict__.get("__post_init__")
    if getattr(own, "checks_parameters", False):
        return kind

    def checked(self: Any) -> None:
        # A subclass that calls the rule of its parent has its own annotations, which are the ones that count.
        rule = own or _next_rule(kind) or (lambda _: None)
        if not own_words:
            check_fields(self, where=where(self), plain=True)
        try:
            rule(self)
        except (TypeError, ValueError, AttributeError, KeyError):
            check_fields(self, where=where(self), plain=True)
            raise
        check_fields(self, where=where(self), plain=own_words)

    checked.checks_parameters = True  # type: ignore[attr-defined]
    kind.__post_init__ = checked  # type: ignore[attr-defined]
    return kind


def _next_rule(kind: type) -> Callable[[Any], None] | None:
    for parent in kind.__mro__[1:]:
        rule = parent.__dict__.get("__post_init__")
        if rule is not None:
            return typing.cast(Callable[[Any], None], rule)
    return None


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Let a public function check its arguments against its annotations before it does anything.

    Examples
    --------
    >>> @checked
    ... def twice(number: int) -> int:
    ...     return 2 * number
    >>> twice("2")
    Traceback (most recent call last):
    discreet.core.errors.ParameterError: twice: number must be a whole number, not a text.
    """
    if getattr(function, "checks_parameters", False):
        return function
    signature = inspect.signature(function)
    # Whoever makes an object names its class.
    where = function.__qualname__.split(".")[-2] if function.__name__ == "__init__" else function.__name__

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            _refuse_old_names(kwargs, signature, where)
            # Python words any other wrong call itself.
            return function(*args, **kwargs)
        hints = function_hints(function)
        for name, value in bound.arguments.items():
            if name in hints:
                bound.arguments[name] = as_plain_list(value, hints[name])
                check(bound.arguments[name], hints[name], name, where=where)
                if name in _COLUMN_LISTS:
                    _refuse_repeats(bound.arguments[name], name)
        return function(*bound.args, **bound.kwargs)

    run.checks_parameters = True  # type: ignore[attr-defined]
    return run


def _refuse_old_names(given: Mapping[str, Any], signature: inspect.Signature, where: str) -> None:
    for old, new in _RENAMED.items():
        if old in given and old not in signature.parameters and new in signature.parameters:
            raise ParameterError(f"{where}: '{old}' is called '{new}' now. Write {new}=….")


def _refuse_repeats(value: Any, name: str) -> None:
    """Refuse a list of columns that holds one twice: whoever named it again meant another one."""
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        again = next((item for item, times in collections.Counter(value).items() if times > 1), None)
        if again is not None:
            raise ColumnError(f"Column '{again}' is named twice under '{name}'. Name it once.")


@functools.cache
def function_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Resolve the annotations of the parameters of a function that take one value each."""
    inner = inspect.unwrap(function)
    names = _Names(inner.__globals__)
    return {
        name: eval(parameter.annotation, {}, names)  # our own annotations, never a text of somebody else
        if isinstance(parameter.annotation, str)
        else parameter.annotation
        for name, parameter in inspect.signature(inner).parameters.items()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and parameter.annotation is not parameter.empty
    }


class _Names(dict[str, Any]):
    """The names an annotation may use: those of its module, and of the packages around it.

    A module imports some names for the type checker only, to spare a circle; its package has them when it is loaded.
    """

    def __missing__(self, name: str) -> Any:
        if hasattr(builtins, name):
            return getattr(builtins, name)
        package = str(self["__package__"])
        while package:
            found = getattr(sys.modules.get(package), name, None)
            if found is not None:
                return found
            package = package.rpartition(".")[0]
        return Any


def hints_of(kind: Any) -> dict[str, Any]:
    """Resolve what a class of parameters, a table of entries or a function declares, by name.

    Examples
    --------
    >>> @checked
    ... def halved(share: float) -> float:
    ...     return share / 2
    >>> hints_of(halved)
    {'share': <class 'float'>}
    """
    if not isinstance(kind, type):
        return function_hints(kind)
    return typing.get_type_hints(kind, include_extras=True) if typing.is_typeddict(kind) else _hints(kind)


def describe(annotation: Any) -> str:
    """Say what a parameter takes, with its limits, as help and manual show it.

    Examples
    --------
    >>> from discreet.core.constraints import AtLeast
    >>> describe(typing.Annotated[int, AtLeast(2)] | None), describe(Literal["mean", "median"])
    ('a whole number of at least 2 or nothing', "'mean' or 'median'")
    """
    return _in_words(annotation, limits=True)


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    hints: dict[str, Any] = {}
    for parent in reversed(kind.__mro__):
        # Some names are there for the type checker only.
        names = _Names(vars(sys.modules[parent.__module__]))
        for name, annotation in inspect.get_annotations(parent).items():
            hints[name] = eval(annotation, {}, names) if isinstance(annotation, str) else annotation
    return {item.name: hints[item.name] for item in fields(kind)} if is_dataclass(kind) else {}


def _fits(value: Any, annotation: Any, plain: bool, *, limits: bool = False) -> bool:
    origin = get_origin(annotation)
    if annotation is Any or annotation is object or isinstance(annotation, TypeVar):
        return True
    if annotation is None or annotation is type(None):
        return value is None
    if origin in (Union, types.UnionType):
        return any(_fits(value, option, plain, limits=limits) for option in get_args(annotation))
    if origin is typing.Annotated:
        kind, *constraints = get_args(annotation)
        return _fits(value, kind, plain, limits=limits) and (not limits or kept(value, tuple(constraints)))
    if origin is Literal:
        return any(type(value) is type(option) and value == option for option in get_args(annotation))
    if annotation is bool:
        return isinstance(value, bool | np.bool_)
    if annotation is int:
        return _is_whole(value) and abs(int(value)) < _LARGEST
    if annotation is float:
        return _is_finite_number(value)
    if annotation is str:
        return isinstance(value, str)
    if annotation is Path:
        return isinstance(value, Path)
    kind = origin or annotation
    if kind is collections.abc.Callable:
        return callable(value)
    if kind is type or not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return True
    if issubclass(kind, Mapping):
        return isinstance(value, Mapping) and _all_fit_mapping(value, get_args(annotation), plain, limits)
    if kind in _LISTS:
        inside = get_args(annotation)
        if plain and inside and hasattr(inside[0], "to_dict") and _fits(value, inside[0], plain):
            return True
        return _is_list(value, kind, plain) and _all_fit_list(
            value, kind, get_args(annotation), plain, limits
        )
    if isinstance(value, kind):
        return True
    # What can be written as plain values can be read from them: whoever owns the parameter does so.
    return plain and hasattr(kind, "to_dict") and isinstance(value, Mapping)


def _entry_at_fault(table: Mapping[Any, Any], annotation: Any, plain: bool) -> str | None:
    """Name the entry of a table by column that does not fit; None where the table is not at fault by one entry."""
    for option in _options(annotation):
        kind, inside = get_origin(option), get_args(option)
        if isinstance(kind, type) and issubclass(kind, Mapping) and inside and inside[0] is str:
            wrong = (key for key, item in table.items() if not _fits(item, inside[1], plain, limits=True))
            return next((key for key in wrong if isinstance(key, str)), None)
    return None


def _takes_files(annotation: Any) -> bool:
    """Whether a parameter is a file with roles, or may be one."""
    return any(getattr(option, "__name__", "") == "Microdata" for option in _options(annotation))


def _options(annotation: Any) -> tuple[Any, ...]:
    """List the types that a parameter may have, without what is said of them."""
    if get_origin(annotation) is typing.Annotated:
        return _options(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return tuple(one for option in get_args(annotation) for one in _options(option))
    return (annotation,)


def _choices(annotation: Any) -> list[str]:
    """List the texts among which a parameter chooses."""
    if get_origin(annotation) in (Union, types.UnionType):
        return [choice for option in get_args(annotation) for choice in _choices(option)]
    if get_origin(annotation) is typing.Annotated:
        kind, *constraints = get_args(annotation)
        offered = [choice for one in constraints if isinstance(one, OneOf) for choice in one.choices]
        return [*_choices(kind), *(choice for choice in offered if isinstance(choice, str))]
    return (
        [choice for choice in get_args(annotation) if isinstance(choice, str)]
        if get_origin(annotation) is Literal
        else []
    )


def _is_whole(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_)


def _is_finite_number(value: Any) -> bool:
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        return False
    if isinstance(value, numbers.Integral):
        return abs(int(value)) < _LARGEST_SIGNED
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _is_list(value: Any, kind: Any, plain: bool) -> bool:
    if isinstance(value, str):
        # A text is a sequence of texts to Python; where names are meant, one name is a list of one.
        return plain or kind in (Sequence, Collection, Iterable)
    if isinstance(value, bytes | Mapping):
        return False
    return isinstance(value, Iterable) and hasattr(value, "__len__")


def _all_fit_list(value: Any, kind: Any, inside: tuple[Any, ...], plain: bool, limits: bool) -> bool:
    if not inside:
        return True
    if isinstance(value, str):
        return _fits(value, inside[0], plain, limits=limits)
    if isinstance(value, np.ndarray) and value.ndim != 1:
        return True
    items = list(value) if len(value) <= _MOST_LOOKED_AT else list(value)[:_MOST_LOOKED_AT]
    if kind is tuple and inside[-1] is not Ellipsis:
        return len(items) == len(inside) and all(
            _fits(item, want, plain, limits=limits) for item, want in zip(items, inside, strict=True)
        )
    return all(_fits(item, inside[0], plain, limits=limits) for item in items)


def _all_fit_mapping(value: Mapping[Any, Any], inside: tuple[Any, ...], plain: bool, limits: bool) -> bool:
    if not inside:
        return True
    # Keys of a table in a file are texts, whatever they stand for.
    keys_fit = all(
        _fits(key, inside[0], plain, limits=limits) or (plain and isinstance(key, str)) for key in value
    )
    return keys_fit and all(_fits(item, inside[1], plain, limits=limits) for item in value.values())


def _in_words(annotation: Any, *, many: bool = False, limits: bool = False) -> str:
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        parts = [_in_words(option, many=many, limits=limits) for option in get_args(annotation)]
        parts = list(dict.fromkeys(parts))
        return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}"
    if origin is typing.Annotated:
        kind, *constraints = get_args(annotation)
        words = _in_words(kind, many=many, limits=limits)
        return phrase_of(words, tuple(constraints), many=many) if limits else words
    if origin is Literal:
        options = [repr(option) for option in get_args(annotation)]
        return options[0] if len(options) == 1 else f"{', '.join(options[:-1])} or {options[-1]}"
    if annotation is None or annotation is type(None):
        return "nothing"
    simple = {
        bool: ("true or false", "true or false"),
        int: ("a whole number", "whole numbers"),
        float: ("a number", "numbers"),
        str: ("a text", "texts"),
        Path: ("a path", "paths"),
    }
    if annotation in simple:
        return simple[annotation][many]
    kind, inside = origin or annotation, get_args(annotation)
    if isinstance(kind, type) and issubclass(kind, Mapping):
        word = "tables" if many else "a table"
        return (
            f"{word} of {_in_words(inside[1], many=True, limits=limits)}"
            if inside and inside[1] is not Any
            else word
        )
    if kind in _LISTS:
        word = "lists" if many else "a list"
        if kind is tuple and inside and inside[-1] is not Ellipsis:
            alike = len(set(inside)) == 1 and len(inside) > 1
            return f"{word} of {len(inside)}{f' {_in_words(inside[0], many=True, limits=limits)}' if alike else ''}"
        return (
            f"{word} of {_in_words(inside[0], many=True, limits=limits)}"
            if inside and inside[0] is not Any
            else word
        )
    return f"{'' if many else 'a '}{getattr(kind, '__name__', str(kind))}"


def _kind_of(value: Any) -> str:
    """Name the kind of a value without showing it."""
    if value is None:
        return "nothing"
    if isinstance(value, bool | np.bool_):
        return "true or false"
    if isinstance(value, str):
        return "a text"
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple | set | np.ndarray):
        return "such a list" if len(value) else "an empty list"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN or an infinite one"
    if isinstance(value, numbers.Integral):
        return "a whole number" if abs(int(value)) < _LARGEST_SIGNED else "one of so many digits"
    return f"a {type(value).__name__}"
