"""What a measure takes, and the one way in which it is asked.

Every door (an assessment, a comparison, a study, a policy, the command line) fills a `Request` with its files, with
what it says to all measures, and with the settings that somebody chose. `ask` hands a measure what it takes of it.
Signatures are read here and nowhere else, once, when a measure gets its card.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, Protocol

from discreet.core.errors import DiscreetError, ParameterError, unknown_name
from discreet.core.parameters import check, function_hints

if TYPE_CHECKING:
    from discreet.core.results import Measure

FileRole = Literal["original", "released", "holdout", "population", "reference"]

_PARAMETERS: Mapping[FileRole, tuple[str, ...]] = {
    "original": ("original", "data", "previous"),
    "released": ("released", "next"),
    "holdout": ("holdout",),
    "population": ("population",),
    "reference": ("reference",),
}
_FILES = ("Microdata", "LinkedTables", "Any")


@dataclass(frozen=True)
class Takes:
    """What a measure takes.

    Attributes
    ----------
    files
        The parameter of each file: the one that is measured (``original``), its release, people who were not used to
        make it (``holdout``), the population, and a reference.
    settings
        All other parameters, in their order.
    needed
        Parameters without a default.
    copies
        Whether it takes one copy of a release at a time, one or several, or only several.
    whole_release
        Whether it takes a release of many tables as it is.
    linked_tables
        Whether its original is several linked tables.
    measures
        Whether it returns a measure.
    """

    files: Mapping[FileRole, str]
    settings: tuple[str, ...]
    needed: frozenset[str]
    copies: Literal["one", "any", "several"] = "one"
    whole_release: bool = False
    linked_tables: bool = False
    measures: bool = True


@cache
def takes_of(function: Callable[..., Any]) -> Takes:
    """Read what a measure takes from its signature.

    Examples
    --------
    >>> from discreet.risk import k_anonymity, k_map
    >>> takes_of(k_anonymity).files, takes_of(k_anonymity).settings
    ({'original': 'data'}, ('keys', 'missing', 'threshold'))
    >>> takes_of(k_map).files["population"] in takes_of(k_map).needed
    True
    """
    signature = inspect.signature(function)
    kinds = {name: str(parameter.annotation) for name, parameter in signature.parameters.items()}
    files: dict[FileRole, str] = {}
    for role, names in _PARAMETERS.items():
        for name in names:
            if any(kind in kinds.get(name, "") for kind in _FILES):
                files.setdefault(role, name)
    released = kinds.get(files.get("released", ""), "")
    one = released.replace("Sequence[Microdata]", "")
    return Takes(
        files,
        tuple(name for name in kinds if name not in files.values()),
        frozenset(
            name for name, parameter in signature.parameters.items() if parameter.default is parameter.empty
        ),
        copies="one" if one == released else "any" if "Microdata" in one else "several",
        whole_release="Any" in released,
        linked_tables="LinkedTables" in kinds.get(files.get("original", ""), ""),
        measures="Measure" in str(signature.return_annotation),
    )


@dataclass(frozen=True)
class Request:
    """What a door gives to a measure.

    Attributes
    ----------
    files
        The files by what they are; None where there is none. A release may be a list of copies.
    defaults
        What the door says to every measure: the roles of columns, how missing keys count, the seed. A measure takes of
        it what it has parameters for; None is not given.
    settings
        What was chosen for this measure. It goes before all else.
    """

    files: Mapping[FileRole, Any]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)


def ask_each(measure: Callable[..., Measure], request: Request) -> list[Measure]:
    """Ask a measure; one that takes one copy of a release at a time gives an answer about each."""
    takes = takes_of(measure)
    given = {name: value for name, value in request.defaults.items() if value is not None}
    files = {
        parameter: request.files[role]
        for role, parameter in takes.files.items()
        if request.files.get(role) is not None
    }
    if takes.files.get("population") in files:
        # The population itself tells its size.
        given.pop("population_size", None)
    given = {name: value for name, value in given.items() if name in takes.settings}
    released = takes.files.get("released", "")
    held = files.pop(released, None)
    if held is None:
        return [measure(**{**files, **given, **request.settings})]
    copies = list(held) if isinstance(held, list | tuple) else [held]
    apart = takes.copies == "one" or (takes.copies == "any" and len(copies) == 1)
    return [
        measure(**{**files, released: one, **given, **request.settings})
        for one in (copies if apart else [copies])
    ]


class Asked(Protocol):
    """A question about one file or about two."""

    def gap(self, case: Any, parameters: Mapping[str, Any], /) -> str | None:
        """Say what is missing, or None when it can be asked."""

    def answer(self, case: Any, parameters: Mapping[str, Any], /) -> Measure:
        """Ask it."""


def answer_of(
    question: Asked, case: Any, settings: Mapping[str, Any], *, must: tuple[type[DiscreetError], ...] = ()
) -> Measure | str:
    """Ask a question; what cannot be answered for these files is said, unless such a refusal must end it all."""
    gap = question.gap(case, settings)
    if gap is not None:
        return gap
    try:
        return question.answer(case, settings)
    except must:
        raise
    except DiscreetError as error:
        return str(error)


def worst_of(measures: Sequence[Measure], badness: Callable[[Measure], Any]) -> Measure:
    """Give of the answers about several copies that about the worst, and say which copy it is.

    A mean would let one copy that is the original hide among others.
    """
    if len(measures) == 1:
        return measures[0]
    place = max(range(len(measures)), key=lambda one: badness(measures[one]))
    found, many = measures[place], len(measures)
    told = {**found.parameters, "copies": many, "copy": place + 1}
    return replace(
        found,
        meaning=f"{in_which_copy(replace(found, parameters=told))}{found.meaning}",
        parameters=told,
        caveats=[f"Of {many} copies the worst is shown, copy {place + 1}.", *found.caveats],
    )


def in_which_copy(found: Measure) -> str:
    """Start a sentence about the worst of several copies; nothing where there is one."""
    told = found.parameters
    return f"In copy {told['copy']}, the worst of {told['copies']}: " if "copy" in told else ""


def check_settings(
    measure: Callable[..., Any], settings: Mapping[str, Any], where: str, *, but: Sequence[str] = ()
) -> None:
    """Refuse settings that a measure does not have, that are not for users here, or whose values do not fit."""
    options = [name for name in takes_of(measure).settings if name not in but]
    for name, value in settings.items():
        if name not in options:
            raise ParameterError(f"{where}: {unknown_name(name, options, what='parameter')}")
        check(value, function_hints(measure).get(name, Any), name, where=where)
