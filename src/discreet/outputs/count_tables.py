"""Tables of counts: cross tables, proportions, and what can be done where they fail, noise by cell keys included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import polars as pl

from discreet.core.arrays import Array, Floats
from discreet.core.errors import ParameterError
from discreet.microdata import Microdata
from discreet.outputs import mitigations
from discreet.outputs.check_results import CheckResult, Finding, Status
from discreet.outputs.checks.frequencies import (
    check_counts,
    check_margins,
    check_proportions,
    counted,
    positions,
)
from discreet.outputs.output import Draft, Margins, flags_of, wide
from discreet.outputs.output_cells import Cells, count_cells, places_of, records_of, registered
from discreet.outputs.output_policy import OutputPolicy
from discreet.outputs.question import Question
from discreet.outputs.register import Registered

Normalize = Literal["all", "rows", "columns"]
Declared = Sequence[Mapping[str, Any]]

KIND = "cross table"
OFFERED = ("suppress", "secondary-suppress", "round", "noise", "collapse")


def tabulate(
    data: Microdata,
    question: Question,
    policy: OutputPolicy,
    *,
    across: int = 0,
    margins: bool = False,
    normalize: Normalize | None = None,
    structural: Declared = (),
    trivial: Declared = (),
    mitigate: str | None = None,
) -> Draft:
    """Count people by cell, check, and mend if asked."""
    mitigations.require_mitigation(mitigate, ["a"], OFFERED)
    if normalize not in (None, "all", "rows", "columns"):
        raise ParameterError("normalize must be 'all', 'rows' or 'columns'.")
    cells = count_cells(data, question)
    merged: tuple[str, ...] = ()
    if mitigate == "collapse":
        question, cells = collapsed(data, question, cells, policy)
        merged = ("Levels were merged until the counts are large enough.",)
    people = cells.people.astype(np.float64)
    impossible, obvious = cells.mask(structural), cells.mask(trivial)
    checked = check_counts(people, policy, structural=impossible, trivial=obvious)
    primary = np.zeros(cells.shape, dtype=bool)
    noisy_margins: Margins | None = None
    secondary = primary.copy()
    notes = list(merged)
    if question.subject is not None:
        notes.append(f"Counts are of distinct values of '{question.subject}'.")
    if any(None in known for known in cells.levels):
        notes.append("Records with a missing value are a level of their own.")
    if structural or trivial:
        notes.append("The researcher declares some cells to be impossible or trivial; a human confirms it.")
    shown = people
    if mitigate in ("suppress", "secondary-suppress"):
        primary = mitigations.primary_cells(checked, cells.shape)
        if mitigate == "secondary-suppress":
            secondary = mitigations.secondary_cells(people, primary, policy)
        flags = flags_of(cells.shape, checked, primary=primary, secondary=secondary)
        flags[~primary & ~secondary] = "F"
        hidden = primary | secondary
        checked = check_counts(people, policy, structural=impossible, trivial=obvious, hidden=hidden)
        if mitigate == "secondary-suppress":
            checked = checked.with_more(check_margins(people, hidden, policy).findings)
            notes.append(
                f"{counted(int(secondary.sum()), 'further cell')} hidden so that margins give nothing away."
            )
        elif margins:
            notes.append("Margins are of the cells shown; hidden cells are not in them.")
        shown = np.where(hidden, np.nan, people)
    elif mitigate == "round":
        flags = np.full(cells.shape, "F", dtype=object)
        shown = mitigations.rounded(people, policy.round_base)
        checked = rounded_check(people, policy)
        notes.append(
            f"Counts are rounded to the base {policy.round_base}; margins are of the rounded counts."
        )
    elif mitigate == "noise":
        flags = np.full(cells.shape, "F", dtype=object)
        shown, noisy_margins = noisy_counts(data, question, cells, across)
        checked = noisy_check(shown, policy)
        notes.append(
            "Counts have cell-key noise: the same people always get the same; lines need not add up."
        )
    else:
        flags = flags_of(cells.shape, checked)
    if normalize is not None and mitigate is None:
        totals = _denominator(people, normalize, across)
        checked = checked.with_more(check_proportions(people, totals, policy).findings)
        flags = flags_of(cells.shape, checked)
    adds_up = question.subject is None or bool(people.sum() == _distinct(data, question))
    true_margins = mitigate == "secondary-suppress"
    ends = None
    if margins and mitigate == "noise":
        ends = noisy_margins
    elif margins:
        ends = _margins(data, question, cells, people if true_margins else shown, across, exact=not adds_up)
    numbers, heading = shown, "count"
    if question.weight is not None:
        numbers, heading = np.where(np.isnan(shown), np.nan, cells.values["weighted"]), "weighted count"
        numbers = mitigations.rounded(numbers, policy.round_base) if mitigate == "round" else numbers
        ends = _weighted_margins(numbers, across) if margins else None
        notes.append("Numbers are weighted; the threshold is held against unweighted people.")
    tables = {KIND: _laid_out(cells, numbers, across, ends, normalize, heading=heading)}
    counts = shown if mitigate == "round" else np.where(np.isnan(shown), np.nan, people)
    entry = registered(KIND, data, question, cells.levels, counts, adds_up=adds_up)
    return Draft(
        kind=KIND,
        tables=tables,
        checked=checked,
        flags={KIND: wide(question.by, cells.levels, flags, columns=across)},
        # Rounded counts differ by multiples of the base, and noisy ones by noise, which is no count of people.
        entries=()
        if mitigate in ("round", "noise")
        else (entry, *_true_margins(entry, people, across, margins and true_margins)),
        variables=question.columns(),
        notes=tuple(notes),
        mitigation=mitigate,
        offered=OFFERED,
    )


def collapsed(
    data: Microdata, question: Question, cells: Cells, policy: OutputPolicy
) -> tuple[Question, Cells]:
    """Merge adjacent levels until the counts pass, and count again."""
    if not question.by:
        raise ParameterError("There is no dimension whose levels could be merged.")
    # Merged cells are new combinations; what was impossible for one level need not be for two.
    names = mitigations.merged_levels(
        cells.people.astype(np.float64), cells.levels, lambda table: mitigations.too_small(table, policy)
    )
    recode = {
        name: changes
        for name, changes in zip(question.by, names, strict=True)
        if len(set(changes.values())) < len(changes)
    }
    order = {name: list(dict.fromkeys(changes.values())) for name, changes in recode.items()}
    again = replace(question, recode=recode, levels={**question.levels, **order})
    return again, count_cells(data, again)


def rounded_check(people: Floats, policy: OutputPolicy) -> CheckResult:
    """Judge rounded counts: a zero may be a small count and the other way round; what is left small a human sees."""
    shown = mitigations.rounded(people, policy.round_base)
    small = (shown > 0) & (shown < policy.threshold)
    number = int(small.sum())
    reason = (
        f"{counted(number, 'rounded count')} below {policy.threshold}: rounding to {policy.round_base} hides the exact "
        "number, not that it is small. A human judges."
        if number
        else f"Counts are rounded to the base {policy.round_base}: none that is small shows its number."
    )
    status: Status = "review" if number else "pass"
    return CheckResult([Finding("rounded count", "a", status, reason, positions(small))])


def missing_finding(missing: int, records: int, value: str, policy: OutputPolicy, barn: str) -> list[Finding]:
    """Show missing values of the variable to a human where the policy says so."""
    if not policy.check_missing or not missing:
        return []
    reason = f"{missing:,} of {records:,} records have no value of '{value}'; a human looks who they are."
    return [Finding("missing values", barn, "review", reason)]


def _denominator(people: Floats, normalize: Normalize, across: int) -> Floats:
    down = people.ndim - across
    axes = {
        "all": tuple(range(people.ndim)),
        "rows": tuple(range(down, people.ndim)),
        "columns": tuple(range(down)),
    }[normalize]
    if not axes:
        raise ParameterError(f"normalize='{normalize}' needs a dimension in the other direction. Use 'all'.")
    return np.broadcast_to(np.nansum(people, axis=axes, keepdims=True), people.shape)


def _laid_out(
    cells: Cells,
    shown: Floats,
    across: int,
    ends: Margins | None,
    normalize: Normalize | None,
    *,
    heading: str,
) -> Any:
    numbers: Array = _whole(shown) if heading == "count" else shown
    if normalize is not None:
        below = _denominator(shown, normalize, across)
        with np.errstate(invalid="ignore", divide="ignore"):
            numbers, heading, ends = shown / below, "share", None
    return wide(cells.by, cells.levels, numbers, columns=across, margins=ends, heading=heading)


def _weighted_margins(numbers: Floats, across: int) -> Margins:
    down = numbers.ndim - across
    over_columns, over_rows = tuple(range(down, numbers.ndim)), tuple(range(down))
    return Margins(
        np.nansum(numbers, axis=over_columns), np.nansum(numbers, axis=over_rows), float(np.nansum(numbers))
    )


def _whole(numbers: Floats) -> Array:
    """Write counts as whole numbers, None where hidden."""
    whole = np.full(numbers.shape, None, dtype=object)
    known = ~np.isnan(numbers)
    whole[known] = numbers[known].astype(np.int64)
    return whole


def _margins(
    data: Microdata,
    question: Question,
    cells: Cells,
    shown: Floats,
    across: int,
    *,
    exact: bool,
) -> Margins:
    """Add the cells up; where a person is in several cells, count the people of each line anew."""
    down = len(question.by) - across
    over_columns, over_rows = tuple(range(down, len(question.by))), tuple(range(down))
    if exact and not np.isnan(shown).any():
        rows, columns = (
            count_cells(data, along_axes(question, cells, axes)).people for axes in (over_rows, over_columns)
        )
        total = int(_distinct(data, question))
        return Margins(_whole(rows.astype(float)), _whole(columns.astype(float)), total)

    def added(axes: tuple[int, ...]) -> Floats:
        sums = np.nansum(shown, axis=axes) if axes else shown
        none = np.isnan(shown).all(axis=axes) if axes else np.isnan(shown)
        return np.where(none, np.nan, sums)

    everything = added(tuple(range(shown.ndim)))
    whole = None if np.isnan(everything) else int(everything)
    return Margins(_whole(added(over_columns)), _whole(added(over_rows)), whole)


def _true_margins(entry: Registered, people: Floats, across: int, shown: bool) -> tuple[Registered, ...]:
    """Enter the true margins of a table beside its cells, some of which are hidden."""
    if not shown or not entry.adds_up:
        return ()
    down = len(entry.by) - across
    everything = range(len(entry.by))
    return tuple(
        entry.along(kept, np.asarray(people.sum(axis=tuple(set(everything) - set(kept)))))
        for kept in (everything[:down], everything[down:], ())
    )


def along_axes(question: Question, cells: Cells, axes: Sequence[int]) -> Question:
    """Ask the same along some of the dimensions only."""
    levels = {question.by[a]: [level for level in cells.levels[a] if level is not None] for a in axes}
    return replace(question, by=tuple(question.by[a] for a in axes), levels=levels)


def _distinct(data: Microdata, question: Question) -> float:
    return float(count_cells(data, replace(question, by=(), recode={}, levels={})).people.sum())


# Noise on counts that is the same for the same people, whatever table they are counted in: the cell-key method.
#
# Unlike rounding it cannot be undone by asking for the same people in another table.


def noisy_counts(data: Microdata, question: Question, cells: Cells, across: int) -> tuple[Floats, Margins]:
    """Count people with cell-key noise: the cells, and the margins, each with its own noise."""
    from discreet.tables import CellKey, Table

    if question.weight is not None:
        raise ParameterError("Noise is for counts of people. Leave the weight out, or use mitigate='round'.")
    who = question.subject or next(iter(data.roles.identifiers), None)
    if who is None:
        raise ParameterError(
            "Noise depends on who is counted, and nothing tells people apart here. Name their column with subject=, or "
            "give the data the role person or identifiers."
        )
    rows = records_of(data, replace(question, subject=who, value=None))
    names = [f"d{i}" for i in range(len(question.by))]
    at = places_of(rows, cells.levels, names)
    columns = {name: place.astype(str).tolist() for name, place in zip(names, at, strict=True)}
    people = pl.DataFrame(columns or {"d": ["0"] * rows.height})
    people = people.with_columns(who=rows["p"]).unique(maintain_order=True)
    if people["who"].n_unique() < people.height:
        raise ParameterError(
            f"Somebody in '{who}' is in several cells of the table, so that noise on people would not be the same in "
            "the cells and in the margins. Use mitigate='round'."
        )
    table = CellKey(id="who").apply(Table.from_microdata(people, "*".join(names or ["d"]))).table
    found = {key: float(count) for key, count in zip(table.keys, table.cells["count"], strict=True)}
    total = table.hierarchy[table.dimensions[0]].total

    def laid(axes: tuple[int, ...]) -> Floats:
        """The noisy counts by some dimensions; what nobody is in stays zero."""
        shape = tuple(cells.shape[axis] for axis in axes)
        made = np.zeros(shape or (1,))
        for place in np.ndindex(*shape) if shape else [(0,)]:
            key = [total] * len(table.dimensions)
            for axis, level in zip(axes, place, strict=False):
                key[axis] = str(level)
            made[place] = found.get(tuple(key), 0.0)
        return made

    axes = tuple(range(len(names)))
    down = len(names) - across if names else 0
    rows_of_noise, columns_of_noise = (
        laid(part).astype(np.int64).astype(object) for part in (axes[:down], axes[down:])
    )
    return laid(axes), Margins(rows_of_noise, columns_of_noise, int(laid(())[0]))


def noisy_check(shown: Floats, policy: OutputPolicy) -> CheckResult:
    """Judge noisy counts: what still looks small, or empty, a human sees."""
    small = (shown > 0) & (shown < policy.threshold)
    empty = (shown == 0) & policy.zeros_are_disclosive
    said = (
        (
            small,
            "noisy count",
            f"below {policy.threshold}: noise hides the exact number, not that it is small.",
        ),
        (empty, "cell", "shown as empty: noise leaves empty cells empty, and makes some small ones so."),
    )
    findings = [
        Finding(
            "noisy count",
            "a",
            "review",
            f"{counted(int(cells.sum()), what)} {why} A human judges.",
            positions(cells),
        )
        for cells, what, why in said
        if cells.any()
    ]
    return CheckResult(
        findings or [Finding("noisy count", "a", "pass", "Counts are noisy, and none of them is small.")]
    )
