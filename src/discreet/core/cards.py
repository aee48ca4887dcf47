"""What a measure, a treatment or a generator says about itself, once, beside its own code.

A card holds the question, the title, the figures with their unit and the words for them, what is needed before it can
be asked, and where it comes from. Whatever lists, asks, judges or prints (`discreet.workflow`, `discreet.policy`,
`discreet.report`, the command line, the manual) reads the card, so that a new measure is one new module: its function
under ``@measure(...)``.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, cast

from discreet.core import index
from discreet.core.parameters import checked, fault, function_hints
from discreet.core.requests import Request, Takes, ask_each, takes_of, worst_of

if TYPE_CHECKING:
    from discreet.core.charts import Pictures
    from discreet.core.findings import OfAdvice, OfBenchmark, OfReleases, OfReleaseStudy, OfSynthesis, OfWorst
    from discreet.core.results import Measure


Better = Literal["lower", "higher"] | float
"""Which way a figure is better; a number is the value to be close to."""

Unit = Literal["", "share", "percent"]
"""How a figure is held: a plain number, a fraction of one, or (as readers of synthetic-data tables expect) percent."""

Place = Literal["axis", "bars", "rule", "scenarios", "change"]
"""Where a figure goes by other words than its label: on the axis of a picture, beside bars, in a rule of a policy,
where intruder scenarios stand side by side, and where a file stands before and after."""

Aim = Literal["", "learned", "own values", "found"]
"""What a plan aims at for a rule on a figure: that less can be learned about people, that values of one person only do
not come back, or that fewer are found by a few things that others know."""

Work = Literal["", "row-wise", "class-wise", "whole-file"]
"""What must be in memory: nothing but the record itself, the table of classes, or the whole file."""


_SYMBOLS = frozenset({"k", "l", "t", "alpha", "beta", "delta"})


@dataclass(frozen=True)
class Figure:
    """One figure of a measure, or one column of its tables.

    Attributes
    ----------
    label
        What a report calls it; its name in words unless given.
    unit
        ``"share"`` for a fraction in [0, 1] that is read as a percentage, ``"percent"`` for one that is held so.
    better
        Which way it is better.
    summary
        Whether a study shows it unless it names others.
    words
        What it is called elsewhere. Only figures with words for ``"scenarios"`` or ``"change"`` are shown in these
        tables.
    aim
        What a plan aims at to keep a rule on it.
    interval
        The figures that are the lower and the upper end of what it may really be: a rule on it holds, fails or is not
        decided by them.
    middle, tries
        The figure that the upper end of the interval is about, where it is another than this one, and the figure that
        counts what the interval rests on.
    least
        The least that a figure without a unit can be: 1 for the people of a group.
    """

    label: str = ""
    unit: Unit = ""
    better: Better | None = None
    summary: bool = False
    words: Mapping[Place, str] = field(default_factory=dict)
    aim: Aim = ""
    interval: tuple[str, str] | None = None
    middle: str = ""
    tries: str = ""
    least: float = 0.0

    @property
    def most(self) -> float:
        """The most that it can be."""
        return {"share": 1.0, "percent": 100.0, "": float("inf")}[self.unit]


@dataclass(frozen=True)
class OfFile:
    """How an assessment of one file asks a measure, and what it needs before it can.

    Attributes
    ----------
    order
        The place among the questions.
    sensitive, weight, roles
        The roles that columns must have.
    population_size
        Whether the size of the population must be known.
    partition
        Whether it needs classes, which missing values as wildcards do not give.
    slow
        Whether it takes long where there are many classes.
    counts_company
        Whether the answer rests on how many people share something, so that it must be known whose records are.
    settings
        Parameters that differ from the defaults of the measure, because here it is one of many.
    """

    order: int
    sensitive: bool = False
    weight: bool = False
    population_size: bool = False
    partition: bool = True
    slow: bool = False
    counts_company: bool = True
    roles: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)


class TwoFiles(Protocol):
    """What an original and one release have to offer to a measure."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that both files have."""

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The sensitive columns that both files have."""

    @property
    def ids(self) -> str | None:
        """The column that links the records."""

    @property
    def linked(self) -> bool:
        """Whether the records of both files belong together."""

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of records."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that can be compared."""

    @property
    def wanted(self) -> tuple[str, ...]:
        """The columns that were to be compared, also those that one file lacks."""


@dataclass(frozen=True)
class OfPair:
    """How a comparison of an original and a release asks a measure, and what it needs before it can.

    Attributes
    ----------
    order
        The place among the questions.
    side
        Whether it speaks of what the release costs or of what it gives away.
    usual
        Whether it is asked unless measures are named.
    keys, sensitive, linked, two_columns
        What must be there: named columns that both files have, linked records, two columns.
    judged_by_holdout
        Whether a rule on it can be judged only where there are people who were not used to make the release.
    without
        What judges such a rule where there are none: ``"cross-fit"`` where whoever makes the release can fit the same
        model to each half of the people and attack it with the other half; nothing unless said.
    one_type
        Whether columns that are numbers in one file and labels in the other are left out.
    as_it_was
        Whether it sees the original before its values were brought to the labels of the release.
    most
        The most records it is asked about; larger files are sampled.
    effort
        How long it takes, roughly: 1 for counts, 2 for tables, 3 for models. A policy is judged the quick way first.
    any_size
        Whether it answers for files of any size, although it looks at records together: what it cannot count where the
        data is it takes from a sample by itself, or leaves undefined, and says so.
    by_size
        Whether its headline depends on the number of records, so that a sample has another one than the whole files.
    at_once
        Whether the page asks it at once, and not only where a reader wants all that can be asked.
    settings
        Parameters that differ from the defaults of the measure, because here it is one of many; None takes away what
        the comparison would give.
    """

    order: int
    side: Literal["utility", "risk"]
    usual: bool = True
    keys: bool = False
    sensitive: bool = False
    linked: bool = False
    two_columns: bool = False
    judged_by_holdout: bool = False
    without: Literal["cross-fit", "chance-model", "not-judged"] = "not-judged"
    one_type: bool = False
    as_it_was: bool = False
    most: int | None = None
    effort: int = 3
    any_size: bool = False
    by_size: bool = False
    at_once: bool = False
    settings: Callable[[TwoFiles], Mapping[str, Any]] | None = None


@dataclass(frozen=True)
class OfStudy:
    """That a study asks it unless it names its metrics, at which place and with which parameters."""

    order: int
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class KeyNumber:
    """One number to remember, with a plain sentence."""

    number: str
    label: str
    sentence: str


@dataclass(frozen=True)
class KeyNumbers:
    """The few numbers of a measure that a reader should remember.

    ``of`` makes them from the answer; ``enough`` says whether a file can be summed up by them alone.
    """

    order: int
    of: Callable[[Measure], Iterable[KeyNumber]]
    enough: bool = True


@dataclass(frozen=True)
class Shown:
    """One detail table of which a report shows some columns only."""

    table: str
    caption: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Card:
    """Everything that is said about one measure.

    Attributes
    ----------
    name
        The name in Python, in policies and on the command line.
    room
        ``"risk"``, ``"utility"`` or ``"attack"``.
    function
        The measure itself.
    takes
        The files and settings it takes, as its signature has them.
    title
        The name as a reader would write it.
    question
        The question it answers, as a report asks it; the first line of its docstring unless given.
    headline
        What its headline value counts.
    chapter, place, leading
        The chapter of a report (`discreet.report.page_words`), the place in it, and whether it is shown with its
        picture at once.
    work
        What must be in memory.
    references
        Where it comes from.
    tells
        What its answers tell of how they came about beside its own parameters and single numbers, and is no value of
        the data.
    figures
        Its figures by name, ``"value"`` for the headline value.
    columns
        The columns of its tables that have words or a unit of their own.
    tables
        Detail tables that are too wide to be shown whole.
    assess, compare, study
        How these ask it; None where they do not.
    of_release, benchmark
        How the studies that come ready-made ask it.
    key_numbers
        The numbers that a reader should remember.
    advice
        What it advises to do next with one file.
    synthesis
        What can be done about a synthetic file that breaks a rule on it.
    worst
        What it says where a comparison says what went wrong first.
    releases
        How it holds several releases side by side.
    pictures
        What draws its answers, the most telling picture first.
    """

    name: str
    room: str
    function: Callable[..., Measure]
    takes: Takes
    title: str
    question: str
    headline: str = ""
    chapter: str = ""
    place: int = 0
    leading: bool = False
    work: Work = ""
    references: tuple[str, ...] = ()
    tells: tuple[str, ...] = ()
    figures: Mapping[str, Figure] = field(default_factory=dict)
    columns: Mapping[str, Figure] = field(default_factory=dict)
    tables: tuple[Shown, ...] = ()
    assess: OfFile | None = None
    compare: OfPair | None = None
    study: OfStudy | None = None
    of_release: OfReleaseStudy | None = None
    benchmark: OfBenchmark | None = None
    key_numbers: KeyNumbers | None = None
    advice: OfAdvice | None = None
    synthesis: OfSynthesis | None = None
    worst: OfWorst | None = None
    releases: OfReleases | None = None
    pictures: Pictures | None = None

    @property
    def is_second_name(self) -> bool:
        """Whether it is another question to a function that has a card under its own name."""
        return self.function.__name__ != self.name

    def ask(self, request: Request) -> Measure:
        """Ask the measure: every door does so here. Of several copies it is asked one by one, the worst is shown."""
        return worst_of(ask_each(self.function, request), self.badness)

    def badness(self, found: Measure) -> tuple[float, float]:
        """Order answers by their headline and what rules are made on, and then by all shares of which less is better.

        A headline that is a little larger must not hide what another reading or copy gives away.
        """
        shares: dict[str, float] = {}
        for name, figure in self.figures.items():
            number = found.figures.get(name)
            if figure.unit and figure.better != "higher" and isinstance(number, int | float):
                shares[name] = number / figure.most
        ruled = sum(share for name, share in shares.items() if "rule" in self.figures[name].words)
        head = self.figures.get("value")
        most = head.most if head is not None and head.unit else 1.0
        value = float(found.value) / most if isinstance(found.value, int | float) else 0.0
        return (-value if head is not None and head.better == "higher" else value) + ruled, sum(
            shares.values()
        )

    def fits(self, name: str, value: Any) -> bool:
        """Whether a setting may have this value; of one that the measure does not have nothing is said here."""
        return fault(value, function_hints(self.function).get(name, Any)) is None

    def figure(self, name: str) -> Figure | None:
        """Return what the card says about a figure, or about a column of its tables."""
        return self.figures.get(name) or self.columns.get(name)


_CARDS: dict[str, Card] = {}
_PICTURES: dict[str, Pictures] = {}
_NOTHING: Mapping[str, Figure] = MappingProxyType({})
_Function = TypeVar("_Function", bound=Callable[..., Any])


def measure(
    *,
    room: str,
    name: str = "",
    title: str = "",
    question: str = "",
    headline: str = "",
    chapter: str = "",
    place: int = 0,
    leading: bool = False,
    work: Work = "",
    references: tuple[str, ...] = (),
    tells: tuple[str, ...] = (),
    figures: Mapping[str, Figure] = _NOTHING,
    columns: Mapping[str, Figure] = _NOTHING,
    tables: tuple[Shown, ...] = (),
    assess: OfFile | None = None,
    compare: OfPair | None = None,
    study: OfStudy | None = None,
    of_release: OfReleaseStudy | None = None,
    benchmark: OfBenchmark | None = None,
    key_numbers: KeyNumbers | None = None,
    advice: OfAdvice | None = None,
    synthesis: OfSynthesis | None = None,
    worst: OfWorst | None = None,
    releases: OfReleases | None = None,
    pictures: Pictures | None = None,
) -> Callable[[_Function], _Function]:
    """Give a measure its card; `Card` says what each entry is.

    The name is that of the function (a second name for one function is a question of its own), the title the name in
    words, and the question the first line of the docstring, unless given. A measure checks its parameters
    (`discreet.core.parameters.checked`).
    """

    def declared(unchecked: _Function) -> _Function:
        function = cast(_Function, checked(unchecked))
        called = name or function.__name__
        _CARDS[called] = Card(
            name=called,
            room=room,
            function=function,
            takes=takes_of(function),
            title=title or in_words(called),
            question=question or (inspect.getdoc(function) or "").partition("\n")[0],
            headline=headline,
            chapter=chapter,
            place=place,
            leading=leading,
            work=work,
            references=references,
            tells=tells,
            figures=figures,
            columns=columns,
            tables=tables,
            assess=assess,
            compare=compare,
            study=study,
            of_release=of_release,
            benchmark=benchmark,
            key_numbers=key_numbers,
            advice=advice,
            synthesis=synthesis,
            worst=worst,
            releases=releases,
            pictures=pictures,
        )
        return function

    return declared


def pictured(pictures: Pictures, *, of: str = "") -> Callable[[_Function], _Function]:
    """Say what draws the answers of a function that has no card, because nobody asks it but by its name.

    The answers have the name of the function unless ``of`` gives it.
    """

    def declared(function: _Function) -> _Function:
        _PICTURES[of or function.__name__] = pictures
        return function

    return declared


def pictures_of(name: str) -> Pictures | None:
    """Return what draws the answers of a measure; None where nothing of its own does."""
    card = card_of(name)
    return card.pictures if card else _PICTURES.get(name)


def in_words(name: str) -> str:
    """Turn a function name into the words of its title.

    Examples
    --------
    >>> in_words("k_anonymity"), in_words("alpha_k"), in_words("replicated_uniques")
    ('k-anonymity', 'alpha-k', 'Replicated uniques')
    """
    words = name.replace("_", "-" if name.split("_", maxsplit=1)[0] in _SYMBOLS else " ")
    return words if "-" in words else words[:1].upper() + words[1:]


def card_of(name: str) -> Card | None:
    """Find a card by the name of its measure; None where there is none.

    Examples
    --------
    >>> card_of("reidentification").title, card_of("shoe_size")
    ('Re-identification', None)
    """
    if name not in _CARDS:
        for room in index.MEASURING:
            entry = index.entry_of(f"{room}.{name}")
            if entry is not None:
                importlib.import_module(entry.module)
    if name not in _CARDS:
        load_cards()
    return _CARDS.get(name)


def all_cards(room: str | None = None, *, asked: str = "") -> tuple[Card, ...]:
    """List the cards of a room, or of all; with ``asked`` those that a verb asks (``assess``, ``compare``, ``study``).

    Only the modules of these cards are imported.

    Examples
    --------
    >>> sorted({card.room for card in all_cards()})
    ['attack', 'risk', 'utility']
    """
    named = [
        entry
        for entry in index.entries().values()
        if entry.kind == "measure" and room in (None, entry.room) and (not asked or asked in entry.asked)
    ]
    for module in dict.fromkeys(entry.module for entry in named):
        importlib.import_module(module)
    load_cards()
    place = {entry.name: number for number, entry in enumerate(index.entries().values())}
    cards = [card for card in _CARDS.values() if room in (None, card.room)]
    wanted = [card for card in cards if not asked or getattr(card, asked) is not None]
    return tuple(sorted(wanted, key=lambda card: place.get(f"{card.room}.{card.name}", len(place))))


@cache
def load_cards() -> None:
    """Import the modules that were added since the index was written, so that their cards are there."""
    for room in index.MEASURING:
        for module in index.new_modules(room):
            importlib.import_module(module)


def new_cards() -> list[Card]:
    """List the cards of modules that were added since the index was written."""
    load_cards()
    return [card for card in _CARDS.values() if index.entry_of(f"{card.room}.{card.name}") is None]


def measure_names() -> list[str]:
    """Name every measure, importing none that the index knows.

    Examples
    --------
    >>> "k_anonymity" in measure_names()
    True
    """
    load_cards()
    listed = [entry.name.partition(".")[2] for entry in index.entries().values() if entry.kind == "measure"]
    return list(dict.fromkeys([*listed, *_CARDS]))
