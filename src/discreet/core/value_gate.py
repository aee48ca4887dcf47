"""The gate that values of the data do not pass: which fields of a document may hold them, and what is said instead.

Results, logs, findings and plans are documents of plain lists, numbers and texts. Most of their fields hold names of
columns, counts and settings; some hold values, because a treatment recodes levels or a finding is a look-up table. Only
this module knows which. Whatever is printed, reported or logged passes it; the two things that do not are files of
instructions (plans, saved models, internal logs), which are of no use without their values and are kept as the data are
kept, and what somebody asks for with ``show_values``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# Settings of treatments, synthesizers and measures, by column: who they are for may be said, what they hold may not.
BY_COLUMN = frozenset(
    {
        "mapping", "hierarchies", "top_codes", "special_codes", "special_values", "semicontinuous", "bounds", "matrix",
        "ghosts", "means", "sds", "zeros", "recoding", "borders", "prior", "limit", "censor", "calibrate",
    }
)  # fmt: skip
# Settings that are values, or are by value.
WHOLE = frozenset(
    {
        "value", "values", "exclude_values", "exclude_pairs", "knows", "hierarchy", "mask_value", "targets", "codebook",
        "polygons", "population_polygons", "population_counts", "codes", "internal", "impossible",
    }
)  # fmt: skip
# Settings that are a number or a name, or a list by value.
WHEN_LISTED = frozenset({"records", "table", "levels"})
# What a look at a file before its synthesis finds has names of its own.
OF_FINDINGS = frozenset({"codes", "keys", "values", "value", "cuts"})
EXPRESSIONS = frozenset({"when", "where", "rule", "rules", "constraint", "constraints", "condition"})

_SETTINGS, _FINDINGS = "settings", "findings"
_CONTEXTS = {
    "parameters": _SETTINGS,
    "step": _SETTINGS,
    "steps": _SETTINGS,
    "settings": _SETTINGS,
    "plan": _SETTINGS,
    "generator": _SETTINGS,
    "finding": _FINDINGS,
}
_MARK = "withheld"
MARK = "# This file holds values of the data: keep it as the data are kept.\n"
_LITERAL = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|(?<![\w`])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w`])"""
)
_QUOTED_NAME = re.compile(r"(`[^`]*`)")


def gated(document: Any, *, show_values: bool = False, within: str | None = None) -> Any:
    """Return a JSON-ready document without the values of the data; with ``show_values`` as it is.

    Parameters
    ----------
    document
        Plain mappings, lists, numbers and texts.
    show_values
        Whether the user asked for values.
    within
        Where the document comes from when it is a part of one: ``"parameters"``, ``"finding"``, ``"plan"``; fields
        that may hold values are only looked for in these.

    Examples
    --------
    >>> gated({"value": 3, "parameters": {"k": 3, "mapping": {"town": {"Ulm": "South", "Hof": "North"}}}})
    {'value': 3, 'parameters': {'k': 3, 'mapping': {'town': {'withheld': 2}}}}
    >>> gated({"when": "town == 'Ulm' and age > 17"}, within="finding")
    {'when': 'town == … and age > …'}
    """
    if show_values:
        return document
    return _walked(document, None if within is None else _CONTEXTS[within])


def setting(name: str, value: Any, *, show_values: bool = False) -> Any:
    """Return one setting of a treatment or measure without the values of the data.

    Examples
    --------
    >>> setting("special_codes", {"pay": [-8, -9]})
    {'pay': {'withheld': 2}}
    """
    return value if show_values else _field(name, value, _SETTINGS)


def countable(name: str, value: Any) -> int | None:
    """Return how many values a setting holds, where it is one of those that are nothing but values; else None."""
    found = _field(name, value, _SETTINGS)
    return int(found[_MARK]) if isinstance(found, Mapping) and set(found) == {_MARK} else None


def holds_values(document: Any, within: str) -> bool:
    """Whether a document has fields with values of the data in it, so that it is to be kept as the data are kept."""
    return bool(gated(document, within=within) != document)


def is_withheld(value: Any) -> bool:
    """Whether something stands where values were taken out."""
    if isinstance(value, Mapping):
        return set(value) == {_MARK} or any(is_withheld(item) for item in value.values())
    if isinstance(value, str):
        return "…" in value
    return isinstance(value, list | tuple) and any(is_withheld(item) for item in value)


def without_literals(expression: str) -> str:
    """Write an expression with its columns and signs, but not the values in it.

    Examples
    --------
    >>> without_literals("`rent 2` in ['a', 'b'] or pay2 >= 7391.4471")
    '`rent 2` in […, …] or pay2 >= …'
    """
    parts = _QUOTED_NAME.split(expression)
    return "".join(part if at % 2 else _LITERAL.sub("…", part) for at, part in enumerate(parts))


def _walked(document: Any, context: str | None) -> Any:
    if isinstance(document, Mapping):
        return {name: _field(str(name), item, context) for name, item in document.items()}
    if isinstance(document, list | tuple):
        return [_walked(item, context) for item in document]
    return document


def _field(name: str, value: Any, context: str | None) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if context is not None:
        if name in EXPRESSIONS:
            return _expressions(value)
        if name in (OF_FINDINGS if context == _FINDINGS else WHOLE):
            return _count(value)
        if name in WHEN_LISTED and isinstance(value, Mapping | list | tuple):
            return _count(value)
        if context == _SETTINGS and name in BY_COLUMN:
            if isinstance(value, Mapping):
                return {column: _count(item) for column, item in value.items()}
            return _count(value)
    inner = context if context == _FINDINGS else _CONTEXTS.get(name, context)
    return _walked(value, inner)


def _count(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    return {_MARK: len(value) if isinstance(value, Mapping | list | tuple | set | frozenset) else 1}


def _expressions(value: Any) -> Any:
    if isinstance(value, str):
        return without_literals(value)
    if isinstance(value, Mapping):
        # A rule is a condition and the value that follows from it.
        return {name: _count(item) if name in WHOLE else _expressions(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_expressions(item) for item in value]
    return _count(value)
