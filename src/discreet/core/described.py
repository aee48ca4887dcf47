"""Things made of parameters (treatments, synthesizers, methods) and their form in plan files.

A frozen dataclass is written as the parameters that differ from their defaults and read back by name, so that the
same thing has the same name in Python (``LocalSuppression``) and in a plan file (``local-suppression``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from discreet.core.errors import ParameterError, unknown_name
from discreet.core.values import jsonable

Kind = TypeVar("Kind")


def kebab(name: str) -> str:
    """Write a class name as it stands in plan files.

    Examples
    --------
    >>> kebab("LocalSuppression"), kebab("KAnonymity"), kebab("MST")
    ('local-suppression', 'k-anonymity', 'mst')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower()


def parameters_of(thing: Any, secrets: Sequence[str] = ()) -> dict[str, Any]:
    """Return the parameters of a frozen dataclass that differ from their defaults, ready for JSON or TOML."""
    given = {}
    for item in fields(thing):
        value = getattr(thing, item.name)
        usual = item.default if item.default_factory is MISSING else item.default_factory()
        if item.name in secrets or value is None or _is_usual(value, usual):
            continue
        given[item.name] = nested(value)
    return given


def made_from(kind: type[Kind], name: str, parameters: Mapping[str, Any]) -> Kind:
    """Make a frozen dataclass from plain values; unknown names and wrong values are refused by name."""
    options = [item.name for item in fields(kind)]  # type: ignore[arg-type]
    for option in parameters:
        if option not in options:
            raise ParameterError(f"In {name}: {unknown_name(option, options, what='parameter')}")
    try:
        return kind(**parameters)
    except TypeError as error:
        raise ParameterError(f"{name} cannot be made from these parameters: {error}.") from error


def nested(value: Any) -> Any:
    """Turn parameters that hold other described things into plain values."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(name): nested(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [nested(item) for item in value]
    return jsonable(value)


def _is_usual(value: Any, usual: Any) -> bool:
    same = value == usual
    return same if isinstance(same, bool) else False
