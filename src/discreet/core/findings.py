"""What the verbs of the front door read from the card of a measure, so that they know no measure by name.

What it says about a release first, what it advises, what helps, how releases stand side by side by it, how ready-made
studies ask it, and the caveats of its result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self

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
    keys
        What the intruder is assumed to know.
    """

    measures: Mapping[str, Measure]
    linked: bool = False
    show_values: bool = False
    keys: tuple[str, ...] = ()


FIRST = 1e9
"""The weight of what an attack is sure to find: nothing else comes before it."""

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
    looks_for
        What it looks for behind the figures: without such a measure nobody can say that nothing stands out.
    """

    order: int
    findings: Callable[[Measure, Beside], Iterable[Finding]]
    tables: Mapping[str, Rows] = field(default_factory=dict)
    nothing_differs: Callable[[Measure], bool] | None = None
    looks_for: Literal["", "copies", "attacks"] = ""


@dataclass(frozen=True)
class OfAdvice:
    """What a measure of one file advises to do next.

    Attributes
    ----------
    order
        The place among the steps.
    steps
        What would help, by this answer.
    where_skipped
        What would help where the question could not be asked.
    standing_out
        How many records stand out by their keys, by this answer. Where coarser keys can be proposed for them, the
        proposal takes the place of ``steps``.
    """

    order: int
    steps: Callable[[Measure, Beside], Iterable[str]]
    where_skipped: str = ""
    standing_out: Callable[[Measure], int] | None = None


@dataclass(frozen=True)
class OfSynthesis:
    """What can be done about a synthetic file that breaks a rule on a measure.

    Attributes
    ----------
    by_donors
        Whether values that are taken over from donors may be why, so that drawing them otherwise may help.
    helped_by
        What helps beyond that: larger groups of donors for sensitive columns, or other records in place of those that
        seem to be one person.
    would_give
        What would have to give where nothing helps.
    """

    by_donors: bool = False
    helped_by: Literal["", "larger groups", "other records"] = ""
    would_give: str = ""


@dataclass(frozen=True)
class Headline:
    """The figure of a release that a page shows large: what it counts, and a sentence about it or about the answer."""

    figure: str
    label: str
    sentence: str | Callable[[Measure], str]


@dataclass(frozen=True)
class MapAxis:
    """A figure on the risk-utility map.

    Attributes
    ----------
    figure, words
        The figure, and what the axis is called.
    order
        Of several costs (or risks) the first that all releases have is drawn.
    original, guessing
        The figures of the original itself, and of a guess without the release, to hold the releases against.
    """

    figure: str
    words: str
    order: int = 1
    original: str = ""
    guessing: str = ""


@dataclass(frozen=True)
class OfReleases:
    """How a measure holds releases side by side.

    Attributes
    ----------
    order
        The place among the measures.
    rows
        The figures that stand side by side, and what they are called there.
    headline
        The figure that is shown large.
    best_at
        A figure by which the best release is named, and what that release is best at.
    axis
        The figure that is drawn on the map of costs and risks.
    says_nothing
        Whether the answer, beside the others, is no ground to compare releases.
    """

    order: int
    rows: Mapping[str, str]
    headline: Headline | None = None
    best_at: tuple[str, str] | None = None
    axis: MapAxis | None = None
    says_nothing: Callable[[Measure, Mapping[str, Measure]], bool] | None = None


# Caveats
#
# A caveat is a text like any other: it prints, sorts and goes into JSON as one. Where a measure must leave one out or a
# study must pass one on, it asks for the code and never searches the sentence, which may be reworded any day.


WEIGHTS_UNUSED = "weights unused"
NEAR_COPIES = "near copies"


class Caveat(str):
    """A sentence with a code.

    Examples
    --------
    >>> said = Caveat("Survey weights are not used here.", code=WEIGHTS_UNUSED)
    >>> said.startswith("Survey"), said.code
    (True, 'weights unused')
    """

    __slots__ = ("code",)
    code: str

    def __new__(cls, sentence: str, code: str) -> Self:
        """Make a text of the sentence, and remember its code."""
        made = super().__new__(cls, sentence)
        made.code = code
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return str(self), self.code


def code_of(caveat: str) -> str | None:
    """Return the code of a caveat; a plain sentence has none."""
    return caveat.code if isinstance(caveat, Caveat) else None


def without(caveats: Iterable[str], code: str) -> list[str]:
    """Leave the caveats of one code out.

    Examples
    --------
    >>> without(["Mind the gap.", Caveat("No weights.", code=WEIGHTS_UNUSED)], WEIGHTS_UNUSED)
    ['Mind the gap.']
    """
    return [caveat for caveat in caveats if code_of(caveat) != code]


# Ready-made studies: of one release beside its original, and of many generators


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
