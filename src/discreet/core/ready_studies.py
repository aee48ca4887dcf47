"""How the studies that come ready-made ask a measure: of one release beside its original, and of many generators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Shape = Literal["file", "files", "linked tables"]
"""What is released: one file, a folder of many, or a schema of linked tables."""


@dataclass(frozen=True)
class ReleaseFacts:
    """What is known of the release that is studied.

    Attributes
    ----------
    shape
        What is released.
    roles
        The roles of its columns.
    group, slope, rules, population
        The column of groups, the columns of a slope, the conditions on records, and the columns of a population.
    target, holdout
        Whether there is something to predict, and people who were not used to make the release.
    """

    shape: Shape
    roles: Mapping[str, Any] = field(default_factory=dict)
    group: str | None = None
    slope: Sequence[str] = ()
    rules: Sequence[str] = ()
    population: Mapping[str, str] | None = None
    target: bool = False
    holdout: bool = False


def always(facts: ReleaseFacts) -> Mapping[str, Any]:
    """Ask without parameters, whatever is known."""
    return {}


@dataclass(frozen=True)
class OfReleaseStudy:
    """How the study of one release asks a measure.

    Attributes
    ----------
    order
        The place among the questions.
    given
        The parameters by what is known; None where it is not to be asked.
    shapes
        Of which releases it is asked.
    """

    order: int
    given: Callable[[ReleaseFacts], Mapping[str, Any] | None] = always
    shapes: Sequence[Shape] = ("file", "files", "linked tables")


@dataclass(frozen=True)
class OfBenchmark:
    """That the study of many generators asks a measure beyond the usual ones, at which place and for which figures."""

    order: int
    figures: tuple[str, ...] = ()
    better: Literal["lower", "higher"] | None = None
