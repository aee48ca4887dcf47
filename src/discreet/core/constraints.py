"""What must a parameter be, beside its type? Said once, on its annotation, and read by everybody who needs to know.

::

    k: Annotated[int, AtLeast(2)] = 3
    sampling_fraction: Annotated[float, Share(above=0)]
    mapping: Annotated[Mapping[str, Any], HoldsValues()]

The one gate (`discreet.core.parameters`) checks them before anything runs, help and manual show them, the fuzzer draws
what fits and what does not, and logs withhold what is not declared to be free of values of the data
(`discreet.core.value_gate`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Sized
from dataclasses import dataclass
from typing import Annotated, Any


class Constraint:
    """Something that a value must be, beside its type."""

    noun = ""
    """What a number under this constraint is called, where that is more than a number: ``share``."""

    def holds(self, value: Any) -> bool:
        """Whether a value of the right type keeps the constraint."""
        raise TypeError(f"{type(self).__name__} does not say when it holds")

    def phrase(self) -> str:
        """Continue "a whole number ...": what the value must be."""
        return ""


@dataclass(frozen=True)
class AtLeast(Constraint):
    """At least so much.

    Examples
    --------
    >>> AtLeast(2).holds(2), AtLeast(2).holds(1), AtLeast(2).phrase()
    (True, False, 'of at least 2')
    """

    least: float

    def holds(self, value: Any) -> bool:
        """Whether a number is large enough."""
        return bool(value >= self.least)

    def phrase(self) -> str:
        """Name the least number."""
        return f"of at least {_number(self.least)}"


@dataclass(frozen=True)
class Above(Constraint):
    """More than so much.

    Examples
    --------
    >>> Above(0).holds(0.1), Above(0).holds(0), Above(0).phrase()
    (True, False, 'above 0')
    """

    bound: float

    def holds(self, value: Any) -> bool:
        """Whether a number is above the bound."""
        return bool(value > self.bound)

    def phrase(self) -> str:
        """Name the bound."""
        return f"above {_number(self.bound)}"


@dataclass(frozen=True)
class Between(Constraint):
    """From one number to another, both allowed unless said otherwise.

    Examples
    --------
    >>> Between(0, 90).holds(90), Between(0, 1, above=True, below=True).holds(1)
    (True, False)
    >>> Between(0, 90).phrase(), Between(0, 1, above=True).phrase(), Between(0, 1, below=True).phrase()
    ('between 0 and 90', 'above 0 and at most 1', 'of at least 0 and below 1')
    """

    least: float
    most: float
    above: bool = False
    below: bool = False

    def holds(self, value: Any) -> bool:
        """Whether a number is within."""
        low = value > self.least if self.above else value >= self.least
        return bool(low and (value < self.most if self.below else value <= self.most))

    def phrase(self) -> str:
        """Name both ends, and which of them is not allowed."""
        if self.above and self.below:
            return f"strictly between {_number(self.least)} and {_number(self.most)}"
        if self.above:
            return f"above {_number(self.least)} and at most {_number(self.most)}"
        if self.below:
            return f"of at least {_number(self.least)} and below {_number(self.most)}"
        return f"between {_number(self.least)} and {_number(self.most)}"


@dataclass(frozen=True)
class Share(Between):
    """A fraction of one.

    Examples
    --------
    >>> Share().holds(1), Share(above=True).holds(0), Share(above=True).phrase()
    (True, False, 'above 0 and at most 1')
    """

    least: float = 0
    most: float = 1
    noun = "share"


@dataclass(frozen=True)
class Percent(Between):
    """A number of percent, as the rules for tables of magnitudes are written.

    Examples
    --------
    >>> Percent().holds(85), Percent().holds(0.1), Percent().phrase()
    (True, False, 'from 1 to 100, such as 10 for 10 percent')
    """

    least: float = 1
    most: float = 100
    noun = "percentage"

    def phrase(self) -> str:
        """Name both ends, and say that it is no fraction."""
        return f"from {_number(self.least)} to {_number(self.most)}, such as 10 for 10 percent"


@dataclass(frozen=True)
class OneOf(Constraint):
    """One of some texts or numbers; where the choice is fixed for good, `typing.Literal` says it as well.

    Examples
    --------
    >>> OneOf("mean", "median").holds("mode"), OneOf("mean", "median").phrase()
    (False, "'mean' or 'median'")
    """

    choices: tuple[Any, ...]

    def __init__(self, *choices: Any) -> None:
        object.__setattr__(self, "choices", choices)

    def holds(self, value: Any) -> bool:
        """Whether a value is among the choices."""
        return value in self.choices

    def phrase(self) -> str:
        """List the choices."""
        options = [repr(choice) for choice in self.choices]
        return options[0] if len(options) == 1 else f"{', '.join(options[:-1])} or {options[-1]}"


@dataclass(frozen=True)
class Entries(Constraint):
    """A list or a table of at least so many entries.

    Examples
    --------
    >>> Entries(1).holds([]), Entries(1).phrase(), Entries(2).phrase()
    (False, ', at least one of them', ', at least 2 of them')
    """

    least: int = 1

    def holds(self, value: Any) -> bool:
        """Whether there are enough entries."""
        return not isinstance(value, Sized) or len(value) >= self.least

    def phrase(self) -> str:
        """Name the least number of entries."""
        return f", at least {'one' if self.least == 1 else self.least} of them"


@dataclass(frozen=True)
class HoldsValues(Constraint):
    """The parameter holds values of the data: no log, report or finding shows them unless the user asks.

    ``by_column`` says that it is a table by column, of which the names of columns may be shown, and ``in_expressions``
    that values stand in expressions, of which columns and signs may be shown.
    """

    by_column: bool = False
    in_expressions: bool = False

    def holds(self, value: Any) -> bool:
        """Any value may be one of the data."""
        return True


@dataclass(frozen=True)
class Public(Constraint):
    """The parameter holds no values of the data, although its type would allow them: names, texts, settings."""

    def holds(self, value: Any) -> bool:
        """Any value fits."""
        return True


@dataclass(frozen=True)
class FieldsOf(Constraint):
    """A table whose entries are declared in a class, often a TypedDict."""

    kind: type

    def holds(self, value: Any) -> bool:
        """Any table fits: more entries than those declared may be in it."""
        return True


ColumnName = Annotated[str, Public()]
"""The name of a column, or of several in one formula."""

ColumnNames = Annotated[Sequence[str], Public()]
"""Names of columns."""


def _number(value: float) -> str:
    """Write a limit as a reader does.

    Examples
    --------
    >>> _number(1000), _number(0.05), _number(2.0)
    ('1,000', '0.05', '2')
    """
    return f"{int(value):,}" if value == int(value) else f"{value:g}"


def phrase_of(noun: str, constraints: tuple[Any, ...], *, many: bool = False) -> str:
    """Say what a value must be, under all its constraints.

    Examples
    --------
    >>> phrase_of("a whole number", (AtLeast(2),)), phrase_of("a number", (Share(),))
    ('a whole number of at least 2', 'a share between 0 and 1')
    """
    known = [one for one in constraints if isinstance(one, Constraint)]
    for one in known:
        if isinstance(one, OneOf):
            return one.phrase()
        if one.noun:
            noun = f"{one.noun}s" if many else f"a {one.noun}"
    phrases = " and ".join(phrase for one in known if (phrase := one.phrase()))
    return f"{noun} {phrases}".strip().replace(" ,", ",")


def kept(value: Any, constraints: tuple[Any, ...]) -> bool:
    """Whether a value of the right type keeps its constraints.

    Examples
    --------
    >>> kept(0.5, (Share(),)), kept(math.nan, (AtLeast(0),))
    (True, False)
    """
    if isinstance(value, float) and math.isnan(value):
        return not any(isinstance(one, AtLeast | Above | Between) for one in constraints)
    return all(one.holds(value) for one in constraints if isinstance(one, Constraint))
