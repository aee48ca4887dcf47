"""The register of a project's outputs: what two of them say together.

An output that is safe alone can give somebody away beside another: all staff less graduates are the four who are not.
The register keeps, for every output, the people it is about (a digest of the data, the filter and the columns that must
have a value), its variables and its counts, and holds each new output against all earlier ones: record by record where
the data are at hand, by counts where they are not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np

from discreet.core.arrays import Floats
from discreet.core.errors import InputError, ParameterError
from discreet.core.values import jsonable
from discreet.microdata import Microdata
from discreet.outputs.check_results import Finding, Status
from discreet.outputs.output_differencing import Close, Part, Side, close_cells, joined, typed
from discreet.outputs.question import Question

CUSTOM = "file made elsewhere"
Nesting = Literal["equal", "inside", "around", "disjoint", "overlapping"]


@dataclass(frozen=True)
class Registered:
    """What the register keeps of one output. Counts are for the checker, never for release.

    Attributes
    ----------
    name
        Name of the output.
    population
        Number of records, digests of the columns used, names of all columns.
    where
        The filter: for each column the values let in.
    by, levels
        The dimensions and their levels.
    counts
        Distinct people by cell; missing where the cell is suppressed.
    edges
        Cut points of a histogram, by variable: the edges and how many people lie below each.
    adds_up
        Whether cells add up to margins; they do not where one person is in several.
    additive
        Whether what is published can be subtracted: counts, totals, means. A model or a quantile cannot, unless the
        very same one is computed of almost the same people.
    statistic, variables
        What it is, and of what.
    question, data
        How the records are found, and the file; the file is not written with the register.
    """

    name: str
    population: Mapping[str, Any]
    where: Mapping[str, Any]
    by: tuple[str, ...]
    levels: tuple[tuple[Any, ...], ...]
    counts: Floats
    edges: Mapping[str, tuple[Sequence[float], Sequence[float]]] = field(default_factory=dict)
    adds_up: bool = True
    additive: bool = True
    statistic: str = ""
    variables: tuple[str, ...] = ()
    question: Question | None = None
    data: Microdata | None = field(default=None, repr=False, compare=False)

    @property
    def people(self) -> float:
        """How many people its cells show."""
        return float(np.nansum(self.counts))

    def margin(self, by: Sequence[str]) -> dict[tuple[str, ...], float]:
        """Return the counts on some of the dimensions, by the texts of their levels."""
        others = tuple(axis for axis, name in enumerate(self.by) if name not in by)
        order = [axis for axis, name in enumerate(self.by) if name in by]
        table = np.asarray(self.counts, dtype=np.float64).reshape(tuple(len(known) for known in self.levels))
        hidden = np.isnan(table)
        sums = np.nansum(table, axis=others) if others else np.where(hidden, np.nan, table)
        found = {}
        for place in np.ndindex(*(len(self.levels[axis]) for axis in order)):
            texts = {self.by[axis]: str(self.levels[axis][i]) for axis, i in zip(order, place, strict=True)}
            number = float(sums[place]) if place else float(sums)
            if not np.isnan(number):
                found[tuple(texts[name] for name in by)] = number
        return found

    def along(self, axes: Sequence[int], counts: Floats) -> Registered:
        """Return the entry of the same statistic along some of its dimensions only."""
        by, levels = tuple(self.by[a] for a in axes), tuple(self.levels[a] for a in axes)
        question = None if self.question is None else replace(self.question, by=by)
        return replace(self, by=by, levels=levels, counts=counts, question=question)

    def to_dict(self) -> dict[str, Any]:
        """Return the entry, ready for JSON."""
        return {
            "name": self.name,
            "population": jsonable(self.population),
            "where": {name: _texts(values) for name, values in self.where.items()},
            "by": list(self.by),
            "levels": [[str(level) for level in known] for known in self.levels],
            "counts": [
                None if np.isnan(n) else n for n in np.asarray(self.counts, dtype=float).ravel().tolist()
            ],
            "edges": jsonable(self.edges),
            "adds_up": self.adds_up,
            "additive": self.additive,
            "statistic": self.statistic,
            "variables": list(self.variables),
            "question": _question_texts(self.question),
        }

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Registered:
        """Read an entry back."""
        try:
            levels = tuple(tuple(known) for known in entry["levels"])
            counts = np.array([np.nan if n is None else n for n in entry["counts"]], dtype=np.float64)
            return cls(
                name=str(entry["name"]),
                population=dict(entry["population"]),
                where=dict(entry["where"]),
                by=tuple(entry["by"]),
                levels=levels,
                counts=counts.reshape(tuple(len(known) for known in levels)),
                edges={name: (tuple(e), tuple(n)) for name, (e, n) in entry.get("edges", {}).items()},
                adds_up=bool(entry.get("adds_up", True)),
                additive=bool(entry.get("additive", True)),
                statistic=str(entry.get("statistic", "")),
                variables=tuple(entry.get("variables", ())),
                question=_question_of(entry.get("question"), entry["where"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError("An entry of the output register cannot be read: it is damaged.") from error


class OutputRegister:
    """The outputs of a project so far, in order.

    Examples
    --------
    >>> register = OutputRegister()
    >>> people = {"rows": 45, "columns": {"degree": "45:200"}}
    >>> register.add(Registered("graduates", people, {"degree": ["yes"]}, (), (), np.array(41.0)))
    >>> staff = Registered("all staff", people, {}, (), (), np.array(45.0))
    >>> [finding.status for finding in register.differences(staff, threshold=10)]
    ['fail']
    """

    def __init__(self, entries: Iterable[Registered] = ()) -> None:
        self._entries: list[Registered] = list(entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Any:
        return iter(self._entries)

    def add(self, entry: Registered) -> None:
        """Enter an output."""
        self._entries.append(entry)

    def drop(self, name: str) -> None:
        """Take an output out again: it was withdrawn and will not be released."""
        self._entries = [entry for entry in self._entries if entry.name != name]

    def to_list(self) -> list[dict[str, Any]]:
        """Return the entries, ready for JSON."""
        return [entry.to_dict() for entry in self._entries]

    def differences(
        self, new: Registered, *, threshold: int, barn: str = "a", without: Collection[str] = ()
    ) -> list[Finding]:
        """Hold a new output against every earlier one.

        Where one population lies inside the other (or is the same), the difference of every count they share is a
        count of people, and must be zero or at least the threshold. Where a machine cannot tell, a human looks.
        ``without`` names outputs that are not meant for release.
        """
        if threshold < 1:
            raise ParameterError("threshold must be 1 or more.")
        others = (entry for entry in self._entries if entry.name not in (new.name, *without))
        return [finding for other in others for finding in _compared(new, other, threshold, barn)]


def _compared(new: Registered, earlier: Registered, threshold: int, barn: str) -> list[Finding]:
    nesting = nesting_of(new.where, earlier.where)
    if nesting == "disjoint":
        return []
    kinship = kinship_of(new.population, earlier.population)
    shared = [name for name in new.by if name in earlier.by]
    listed = ", ".join([*shared, *(n for n in new.where if n in earlier.where and n not in shared)])
    found = _by_records(new, earlier, kinship, threshold)
    if found is not None:
        close, certain = found
        certain &= _subtracts(new, earlier)
        overlap = not close.is_nested
    else:
        close, certain = _by_counts(new, earlier, kinship, nesting, shared, threshold)
        overlap = nesting == "overlapping"
    if close.number:
        if not certain and kinship == "other" and not _common(new, earlier):
            return []
        return [_named(close, new, earlier, certain, threshold, barn)]
    if overlap and kinship != "other" and listed and new.additive and earlier.additive:
        reason = (
            f"The people of this output and of '{earlier.name}' overlap without one lying inside the other; both use "
            f"{listed}. A human looks whether something follows from the two together."
        )
        return [Finding("differencing", barn, "review", reason)]
    return []


def _named(  # noqa: PLR0917
    close: Close, new: Registered, earlier: Registered, certain: bool, threshold: int, barn: str
) -> Finding:
    status: Status = "fail" if certain else "review"
    what = f"{close.number:,} count{'' if close.number == 1 else 's'}"
    if not new.additive:
        what = "It is about people who" if not new.by else f"{close.number:,} of its groups"
    one = close.number == 1 and new.additive
    how = f"differ{'s' if one else ''} from output '{earlier.name}' by fewer than {threshold} people"
    human = "" if certain else "; whether something follows from the two together, a human must say"
    cells = _cells(new, list(close.cells)) if close.cells and len(close.cells[0]) == len(new.by) else ()
    return Finding("differencing", barn, status, f"{what} {how}{human}.", cells, {"close": close.number})


def _by_records(
    new: Registered, earlier: Registered, kinship: str, threshold: int
) -> tuple[Close, bool] | None:
    """Compare the records behind two outputs; None where they are not at hand."""
    if new.data is None or new.question is None or earlier.question is None:
        return None
    file, question = earlier.data, earlier.question
    if file is None:
        columns = (*question.columns(), *question.known)
        if kinship != "same" or any(name not in new.data.schema for name in columns):
            return None
        file = new.data
        question = typed(file, question, tuple(question.where))
    same = file.frame is new.data.frame and question == new.question and cuts_of(new) == cuts_of(earlier)
    if same and not part_of(earlier).hidden and not part_of(new).hidden:
        return Close(), True
    both = joined(Side(new.data, new.question, cuts_of(new)), Side(file, question, cuts_of(earlier)))
    if both is None:
        return Close(), False
    return close_cells(both, part_of(new), part_of(earlier), threshold), both.certain


def _subtracts(new: Registered, earlier: Registered) -> bool:
    """Whether the people between two outputs can be worked out: of what adds up, and of the same statistic twice."""
    if new.additive and earlier.additive:
        return True
    return new.statistic == earlier.statistic and set(new.variables) == set(earlier.variables)


def _common(new: Registered, earlier: Registered) -> bool:
    # A file made elsewhere does not say what it is about: it may be about the same.
    if CUSTOM in (new.statistic, earlier.statistic):
        return True
    ours, theirs = {*new.by, *new.where, *new.variables}, {*earlier.by, *earlier.where, *earlier.variables}
    return bool(ours & theirs)


def cuts_of(entry: Registered) -> tuple[float, ...]:
    """The cut points of a histogram."""
    value = entry.question.value if entry.question is not None else None
    return tuple(entry.edges[value][0]) if value is not None and value in entry.edges else ()


def part_of(entry: Registered) -> Part:
    """What is published of an output."""
    levels = tuple(tuple(str(level) for level in known) for known in entry.levels)
    table = np.asarray(entry.counts, dtype=np.float64).reshape(tuple(len(known) for known in levels))
    hidden = frozenset(
        tuple(known[i] for known, i in zip(levels, place, strict=True))
        for place in np.argwhere(np.isnan(table))
    )
    return Part(levels, hidden, entry.adds_up and entry.additive, bool(cuts_of(entry)))


def _by_counts(  # noqa: PLR0917
    new: Registered, earlier: Registered, kinship: str, nesting: Nesting, shared: list[str], threshold: int
) -> tuple[Close, bool]:
    """Compare what two outputs count, where the records behind one of them are not at hand."""
    same_question = set(new.by) == set(earlier.by) and nesting == "equal"
    certain = kinship == "same" or (kinship == "update" and same_question)
    if not (new.additive and earlier.additive):
        apart = abs(new.people - earlier.people)
        alike = _subtracts(new, earlier) and certain and nesting != "overlapping"
        return Close(int(0 < apart < threshold)), alike
    if nesting == "overlapping" or (kinship == "other" and not shared):
        return Close(), False
    small, cells = _small_differences(new, earlier, shared, threshold)
    small += _small_cuts(new, earlier, threshold) if kinship == "same" and nesting == "equal" else 0
    return Close(small, cells), certain


def _small_differences(
    new: Registered, earlier: Registered, shared: list[str], threshold: int
) -> tuple[int, tuple[tuple[str, ...], ...]]:
    """Count the differences that are small, on all shared dimensions or, failing that, on fewer of them.

    Levels may have been merged in one of the two, so that only a margin can be compared.
    """
    adds_up = new.adds_up and earlier.adds_up
    for size in range(len(shared), -1, -1):
        small: list[tuple[str, ...]] = []
        for by in combinations(shared, size):
            if not adds_up and not (set(by) == set(new.by) == set(earlier.by)):
                continue
            ours, theirs = new.margin(by), earlier.margin(by)
            small += [p for p in ours if p in theirs and 0 < abs(ours[p] - theirs[p]) < threshold]
        if small:
            return len(small), tuple(small) if size == len(new.by) else ()
    return 0, ()


def _cells(new: Registered, places: list[tuple[str, ...]]) -> tuple[tuple[int, ...], ...]:
    index = [{str(level): i for i, level in enumerate(known)} for known in new.levels]
    return tuple(tuple(index[axis][text] for axis, text in enumerate(place)) for place in places)


def _small_cuts(new: Registered, earlier: Registered, threshold: int) -> int:
    """Count the slices between the cut points of two histograms that hold few people."""
    small = 0
    for variable, (edges, below) in new.edges.items():
        if variable not in earlier.edges:
            continue
        cuts = dict(zip(edges, below, strict=True))
        own = len(cuts)
        cuts.update(zip(*earlier.edges[variable], strict=True))
        if len(cuts) == own and own == len(earlier.edges[variable][0]):
            continue
        slices = np.diff([cuts[edge] for edge in sorted(cuts)])
        small += int(((slices > 0) & (slices < threshold)).sum())
    return small


def nesting_of(new: Mapping[str, Any], earlier: Mapping[str, Any]) -> Nesting:
    """Say how two filters lie to each other.

    Examples
    --------
    >>> nesting_of({"sex": "f"}, {}), nesting_of({"area": [1]}, {"area": [2]}), nesting_of({"a": 1}, {"b": 1})
    ('inside', 'disjoint', 'overlapping')
    """
    ours = {name: set(_texts(values)) for name, values in new.items()}
    theirs = {name: set(_texts(values)) for name, values in earlier.items()}
    if any(not ours[name] & theirs[name] for name in ours if name in theirs):
        return "disjoint"
    inside = all(name in ours and ours[name] <= theirs[name] for name in theirs)
    around = all(name in theirs and theirs[name] <= ours[name] for name in ours)
    if inside and around:
        return "equal"
    return "inside" if inside else "around" if around else "overlapping"


def kinship_of(new: Mapping[str, Any], earlier: Mapping[str, Any]) -> Literal["same", "update", "other"]:
    """Say whether two outputs are of the same data, of a later version of them, or of others."""
    ours, theirs = new.get("columns", {}), earlier.get("columns", {})
    both = [name for name in ours if name in theirs]
    agree = all(ours[name] == theirs[name] for name in both)
    if new.get("rows") == earlier.get("rows") and agree:
        return "same"
    return "update" if new.get("schema") == earlier.get("schema") else "other"


def _texts(values: Any) -> list[str]:
    many = values if isinstance(values, list | tuple | set | frozenset) else [values]
    return sorted(str(value) for value in many)


def _question_texts(question: Question | None) -> dict[str, Any] | None:
    """Write what finds the records of an output; its filter stands beside it."""
    if question is None:
        return None
    return {
        "by": list(question.by),
        "value": question.value,
        "subject": question.subject,
        "recode": {
            name: {str(old): str(new) for old, new in changes.items()}
            for name, changes in question.recode.items()
        },
        "keep_missing": question.keep_missing,
        "cap": question.cap,
        "drops_above": question.drops_above,
        "known": list(question.known),
    }


def _question_of(texts: Mapping[str, Any] | None, where: Mapping[str, Any]) -> Question | None:
    """Read it back; merged levels were written as texts and are not looked for again."""
    if not texts:
        return None
    if not isinstance(texts, Mapping):
        raise TypeError("a question is a mapping")
    if texts.get("recode"):
        return None
    return Question(
        tuple(texts["by"]),
        value=texts["value"],
        where=dict(where),
        subject=texts["subject"],
        keep_missing=bool(texts["keep_missing"]),
        cap=texts["cap"],
        drops_above=bool(texts["drops_above"]),
        known=tuple(texts["known"]),
    )
