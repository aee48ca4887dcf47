"""What a measure says about a release first, and how it holds several releases side by side.

A comparison of files (`discreet.compare`) reads it from the cards, so that it knows no measure by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from discreet.core.results import Measure

Side = Literal["utility", "risk"]
"""What a release costs its users, or what it gives away about people."""


@dataclass(frozen=True)
class Finding:
    """One thing that went wrong.

    Attributes
    ----------
    code
        The name by which the program knows it; nothing searches the sentence.
    weight
        How many times it exceeds what would be worth no sentence; the heaviest is said first.
    sentence
        What is said.
    side
        Cost or risk, where it is not that of its measure.
    """

    code: str
    weight: float
    sentence: str
    side: Side | None = None


@dataclass(frozen=True)
class Beside:
    """What is known beside one answer.

    Attributes
    ----------
    measures
        The answers of all measures, by name.
    linked
        Whether the records of both files belong together.
    show_values
        Whether the reader may see data values.
    """

    measures: Mapping[str, Measure]
    linked: bool = False
    show_values: bool = False


Rows = Callable[["Measure", Beside], Iterable[Mapping[str, Any]]]
"""What makes the rows of a table from an answer."""


@dataclass(frozen=True)
class OfWorst:
    """What a measure contributes to *What went wrong first*.

    Attributes
    ----------
    order
        The place among findings that weigh the same.
    findings
        What went wrong by this answer.
    tables
        The tables behind the sentences: ``"variables"``, ``"pairs"``, ``"cells"``.
    nothing_differs
        Whether the answer says that both files say the same, in everything that was compared.
    """

    order: int
    findings: Callable[[Measure, Beside], Iterable[Finding]]
    tables: Mapping[str, Rows] = field(default_factory=dict)
    nothing_differs: Callable[[Measure], bool] | None = None
