"""What a treatment or a generator says about itself, once, beside its own code; and how it stands in a plan file.

A card says what the method is for, what the new value of a record depends on, and where the method comes from. The list
of methods, the papers that go with a release and the manual read it, so that a new method is its class under
``@method(...)``, its test and its manual page.

In a plan file a frozen dataclass is written as the parameters that differ from their defaults and read back by name, so
that the same thing has the same name in Python (``LocalSuppression``) and in a plan file (``local-suppression``).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, Literal, TypeVar

from discreet.core.cards import Work
from discreet.core.errors import ParameterError, unknown_name
from discreet.core.values import jsonable

Aim = Literal[
    "identifiers",
    "coarser values",
    "company",
    "doubt",
    "sensitive values",
    "statistics",
    "guarantee",
    "places",
    "records",
    "published results",
    "reference",
]
"""What a method is taken for; `AIMS` says it in words."""

AIMS: dict[Aim, str] = {
    "identifiers": "to release no names and numbers of persons, and no order that tells",
    "coarser values": "coarser values",
    "company": "k-anonymity and its relatives",
    "doubt": "doubt about categories",
    "sensitive values": "groups that do not give a sensitive value away",
    "statistics": "numbers that keep their statistics",
    "guarantee": "a proved guarantee",
    "places": "safe places",
    "records": "new records instead of those of people",
    "published results": "records from published results, without any",
    "reference": "a reference that others must beat",
}


@dataclass(frozen=True)
class MethodCard:
    """Everything that is said about one treatment or generator.

    Attributes
    ----------
    kind
        Its class.
    aim
        What it is taken for.
    room
        The room that it stands in: ``protect`` or ``synth``.
    work
        What the new value of a record depends on: the record itself, the table of classes, or the whole file. Empty
        where there are no records to begin with.
    references
        Where it comes from.
    tells
        What its log tells beside its own parameters and single numbers, and is no value of the data.
    """

    kind: type[Any]
    aim: Aim
    room: str
    work: Work = ""
    references: tuple[str, ...] = ()
    tells: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """What it does, in one sentence: the first line of its docstring."""
        return (inspect.getdoc(self.kind) or "").partition("\n")[0]


_CARDS: dict[type[Any], MethodCard] = {}
_Kind = TypeVar("_Kind", bound=type[Any])


def method(
    *,
    aim: Aim,
    room: str = "",
    work: Work = "",
    references: tuple[str, ...] = (),
    tells: tuple[str, ...] = (),
) -> Callable[[_Kind], _Kind]:
    """Give a treatment or a generator its card; `MethodCard` says what each entry is.

    The room is that of its family (`Treatment`, `Synthesizer`) unless given.
    """

    def declared(kind: _Kind) -> _Kind:
        _CARDS[kind] = MethodCard(kind, aim, room or kind.room, work, references, tells)
        return kind

    return declared


def method_card(kind: type[Any]) -> MethodCard | None:
    """Find the card of a treatment or a generator; None where there is none.

    Examples
    --------
    >>> from discreet.protect import Recode
    >>> method_card(Recode).work, method_card(int)
    ('row-wise', None)
    """
    return _CARDS.get(kind)


def works_behind(kinds: Iterable[type[Any]]) -> dict[str, tuple[str, ...]]:
    """Give the references of methods by their names, in the order given, each method once.

    Examples
    --------
    >>> from discreet.protect import RankSwap, ReorderRecords
    >>> list(works_behind([RankSwap, ReorderRecords, RankSwap]))
    ['RankSwap']
    """
    cards = [card for kind in dict.fromkeys(kinds) if (card := method_card(kind))]
    return {card.kind.__name__: card.references for card in cards if card.references}


# Plan files


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
