"""Is an output about almost the same people as one that went out of an earlier session?

Within a session records are compared themselves (`discreet.outputs.output_differencing`). Of an earlier session the
register of releases keeps no record, but keyed sketches of sets of people (`discreet.register.people_sketch`): one of
all that an output is about and one of each of its cells; by who they are, and by what the output is about. So a mean
is held against the same mean before one value was changed, and a table against one of all people but three.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from discreet.core.files.journals import digest_of
from discreet.engine import collect
from discreet.io.fingerprints import keyed_words
from discreet.microdata import Microdata
from discreet.outputs.check_results import CheckResult, Finding, Status
from discreet.outputs.output_differencing import Side, marked, shown
from discreet.outputs.register import CUSTOM, OutputRegister, Registered, cuts_of, kinship_of, part_of
from discreet.register import PeopleSketch, Register, people_sketch
from discreet.register.people_sketches import key_mark

if TYPE_CHECKING:
    from discreet.outputs.package import Package

_MOST_CELLS = 200
_ROW = "·row"
_MOSTLY = 0.95


@dataclass(frozen=True)
class PeopleSets:
    """Who an output is about, behind the key of the register: all that it is about, and each of its cells.

    Attributes
    ----------
    sets
        For each the sketches ``who`` they are and ``what`` is said of them.
    known_by, what_by
        The columns by which people are known again, and those that the output is of.
    changed
        Whether the records are others than those that the session read: then nobody is known again.
    """

    sets: list[dict[str, str]]
    known_by: list[str]
    what_by: list[str]
    changed: bool


def sets_of(entry: Registered, register: Register, source: Microdata | None) -> PeopleSets | None:
    """Sketch the people of an output; None where its records are not at hand."""
    if entry.data is None or entry.question is None or source is None:
        return None
    held, question = collect(entry.data), entry.question
    person = source.roles.person or source.roles.contributor
    person = person if person in held.columns else None
    known_by = [person] if person else [name for name in source.columns if name in held.columns]
    numbered = Microdata(held.with_row_index(_ROW))
    rows = collect(marked(numbered, {"a": Side(numbered, question, cuts_of(entry))}, kept=[_ROW]))
    rows = shown(rows, "a", part_of(entry)).filter("a in")
    cells = [name for name in rows.columns if name not in (_ROW, "a in")]
    groups = [rows[_ROW]]
    # Series have too many cells for all of them: then each dimension by itself, as the groups over all times.
    whole = bool(cells) and rows.select(pl.struct(cells).n_unique()).item() <= _MOST_CELLS
    for names in [cells] if whole else [[name] for name in cells]:
        if 1 < rows.select(pl.struct(names).n_unique()).item() <= _MOST_CELLS:
            groups += [part[_ROW] for part in rows.partition_by(names)]
    asked = dict.fromkeys((*question.columns(), *question.known))
    what = sorted(name for name in asked if name in held.columns) or known_by
    made = []
    for places in groups:
        records = held[places]
        who = records.unique(person) if person else records
        made.append(
            {
                "who": people_sketch(who, known_by, register.key, person=person).to_text(),
                "what": people_sketch(records, what, register.key, person=person).to_text(),
            }
        )
    return PeopleSets(made, known_by, what, _changed(held, source, known_by))


def _changed(held: pl.DataFrame, source: Microdata, names: Sequence[str]) -> bool:
    """Whether fewer records than nearly all are among those that were read."""
    if not names or not held.height:
        return True
    ours, theirs = (keyed_words(frame.select(names), (1, 2, 3, 4)) for frame in (held, collect(source)))
    return bool(np.isin(ours, theirs).mean() < _MOSTLY)


def told_of(entry: Registered, sets: PeopleSets, register: Register) -> dict[str, Any]:
    """What a line of the register says of an output: the question, without the values of its filter, and its people."""
    question = entry.question
    return {
        "columns": list(entry.variables or (question.columns() if question else ())),
        "records": int(entry.people),
        "statistic": entry.statistic,
        "by": list(entry.by),
        "filter": sorted(entry.where),
        "additive": entry.additive,
        "key": key_mark(register.key),
        "known_by": sets.known_by,
        "what_by": sets.what_by,
        "sets": sets.sets,
    }


def found_in(
    register: Register, entry: Registered, sets: PeopleSets, threshold: int, barn: str
) -> Iterator[Finding]:
    """Hold an output against all that went out of earlier sessions."""
    for line in register.of_kind("output"):
        if line["statistic"] == CUSTOM:
            reason = f"{_named(line)} was made elsewhere, and does not say whose records it was made of. A human looks."
            yield Finding("differencing", barn, "review", reason)
            continue
        same = line["statistic"] == entry.statistic and list(entry.variables) == line["columns"]
        if not (same or (entry.additive and line["additive"])):
            continue
        name = _named(line)
        if line["key"] != key_mark(register.key):
            reason = f"Whom {name} was about is not known any more: the key of the register was lost. A human looks."
            yield Finding("differencing", barn, "review", reason)
            continue
        told = (
            same and sets.what_by == line["what_by"]
        )  # then what is said of everybody decides, else who they are
        if not told and (sets.changed or sets.known_by != line["known_by"]):
            reason = (
                f"Nobody in these records is known again from {name}: they were changed since they were read."
            )
            yield Finding("differencing", barn, "review", f"{reason} A human looks.")
            continue
        apart = _apart(sets.sets, line, "what" if told else "who", threshold)
        if not apart:
            continue
        # A record that was corrected is another one, unless both outputs show what was corrected.
        certain = told or line["version"] == register.version
        status: Status = "fail" if certain else "review"
        human = "" if certain else "; the data have changed since, and a human must say whether that is all"
        counts = "1 count differs" if apart == 1 else f"{apart:,} counts differ"
        reason = f"{counts} from {name} in the register by fewer than {threshold} people{human}."
        yield Finding("differencing", barn, status, reason, figures={"close": apart})


def _named(line: Mapping[str, Any]) -> str:
    return f"output '{line['output']}' of {line['time'][:10]}"


def entries_of(packages: Sequence[str | Path]) -> list[Registered]:
    """Read what went out in some packages."""
    from discreet.outputs.package import Package

    found: list[Registered] = []
    for path in packages:
        package = Package.load(path)
        withheld = {o["name"] for o in package if o["status"] == "fail" and not o["exception"]}
        label = Path(path).name
        found += [
            replace(entry, name=f"{entry.name} of {label}")
            for entry in package.register
            if entry.name not in withheld
        ]
    return found


def between(package: Package, earlier: Sequence[str | Path]) -> list[Finding]:
    """Hold a package against earlier ones, by what they say of people and counts: no record is at hand."""
    policy, known = package.policy, OutputRegister(entries_of(earlier))
    limit = policy.difference_threshold or policy.threshold
    found = [one for entry in package.register for one in known.differences(entry, threshold=limit)]
    for entry in package.register:
        for other in known:
            if _asks_the_same(entry, other) and kinship_of(entry.population, other.population) == "update":
                reason = (
                    f"'{entry.name}' asks what '{other.name}' asked, of data that have changed since: a human must say "
                    "whether the difference gives away whose values changed."
                )
                found.append(Finding("differencing", "a", "review", reason))
    return list({finding.reason: finding for finding in found}.values())


def entered_files(
    register: Register, packages: Sequence[Package], files: Mapping[Path, CheckResult]
) -> tuple[list[str], list[Status]]:
    """Enter what passes; a file that is not in the register does not say whom it is about, and a human looks."""
    known = {line["checksum"] for line in register.releases}
    before = len(register.releases)
    said: list[str] = []
    statuses: list[Status] = []
    held = [(p.path, p.checksum, p.status) for p in packages]
    held += [(path, digest_of(path), result.status) for path, result in files.items() if path.is_file()]
    for path, mark, status in held:
        if mark in known:
            continue
        if before:
            said.append(
                f"{path.name} does not say whose records it was made of: a human holds it against the {before} "
                f"releases in '{register.path.name}'."
            )
            statuses.append("review")
        elif status == "pass":
            people: dict[str, Any] = {
                "statistic": CUSTOM,
                "by": [],
                "additive": True,
                "key": key_mark(register.key),
                "known_by": [],
                "sets": [],
            }
            register.enter(
                "output", columns=[], records=0, file=path.name, checksum=mark, output=path.name, **people
            )
    return said, statuses


def _asks_the_same(one: Registered, other: Registered) -> bool:
    return (one.statistic, one.variables, dict(one.where)) == (
        other.statistic,
        other.variables,
        dict(other.where),
    )


def _apart(sets: Sequence[Mapping[str, str]], line: Mapping[str, Any], side: str, threshold: int) -> int:
    """Count the cells that differ from one of the earlier output by somebody, and by too few."""
    earlier = [PeopleSketch.of_text(known[side]) for known in line["sets"]]
    found = 0
    for one in (PeopleSketch.of_text(known[side]) for known in sets):
        numbers = [one.apart(other) for other in earlier]
        found += any(number is not None and 0 < number < threshold for number in numbers)
    return found
