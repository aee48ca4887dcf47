"""What went wrong first: the findings of a comparison in plain sentences.

What is given away about people comes before what is lost for users, and the gravest on top of each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from discreet.core.results import Measure
from discreet.core.wording import percent, shown
from discreet.workflow.comparison_results import Alignment, Worst, easiest_to_guess

_GOOD = 3.0
_MOST_SENTENCES = 8
_LEAST_COSTS = 7
_MOST_ROWS = 10
_FAR_BELOW = 0.2
_CHANCE = 3.0
_NOTABLE = {
    "distance": 0.05,
    "relation": 0.1,
    "lost": 0.01,
    "missing": 0.02,
    "gaps": 0.005,
    "closer": 0.55,
    "moved": 0.02,
    "above": 0.05,
}
"""From where on a finding is worth a sentence: shares of records, changes on a scale from 0 to 1."""


@dataclass(frozen=True)
class _Finding:
    """A sentence and how many times it exceeds what would have been worth none."""

    gravity: float
    sentence: str


def worst_of(measures: Mapping[str, Measure], alignment: Alignment, *, show_values: bool) -> Worst:
    """Collect what stands out, and the tables behind it."""
    lost = [
        *_columns(measures.get("margins")),
        *_tables(measures.get("tabular"), alignment.linked),
        *_relations(measures.get("dependence"), _with_new_gaps(measures.get("margins"))),
        *_joint(measures.get("pmse"), measures.get("tabular")),
        *_models(measures.get("compare_model")),
    ]
    copied = list(_copied(measures, alignment))
    costs = _ranked(lost) if lost else [_nothing(measures, clear=not copied)]
    if alignment.only_original:
        count = len(alignment.only_original)
        columns = f"column '{alignment.only_original[0]}'" if count == 1 else f"{count} columns"
        costs.insert(
            0, f"The release lacks {columns} of the original: nothing can be said from it about them."
        )
    # What was found out about people comes first: that a copy agrees with its original is no comfort. People who come
    # back no more often than chance would have it are said last, and always: each of them may be a copy all the same.
    grave, usual = (
        _ranked(found for found in copied if (found.gravity >= 1) is is_grave) for is_grave in (True, False)
    )
    room = max(_MOST_SENTENCES - len(grave) - len(usual), _LEAST_COSTS)
    return Worst(
        sentences=(*grave, *costs[:room], *usual),
        variables=tuple(_variables(measures)),
        pairs=tuple(_pairs(measures)),
        cells=tuple(_cells(measures.get("tabular"), show_values)),
    )


def _ranked(findings: Iterable[_Finding]) -> list[str]:
    return [found.sentence for found in sorted(findings, key=lambda found: -found.gravity)]


def _columns(margins: Measure | None) -> Iterator[_Finding]:
    every = _rows(margins, "variables")
    empty = [row["column"] for row in every if _is_emptied(row)]
    if empty:
        named = ", ".join(map(repr, empty[:_MOST_ROWS]))
        more = f" and {len(empty) - _MOST_ROWS} more" if len(empty) > _MOST_ROWS else ""
        yield _Finding(math.inf, f"Nothing is left of {named}{more}: every value was suppressed.")
    rows = [row for row in every if row["column"] not in empty]
    moved = [row for row in rows if (row["distance"] or 0) >= _NOTABLE["distance"]]
    for row in moved[:3]:
        how = (
            "the share of people below some value differs by"
            if row["kind"] == "number"
            else "the records in other levels are"
        )
        yield _Finding(
            row["distance"] / _NOTABLE["distance"],
            f"Column '{row['column']}' is not what it was: {how} {percent(row['distance'])}.",
        )
    for row in rows:
        lost = row.get("lost_share") or 0
        if lost >= _NOTABLE["lost"]:
            count = int(row.get("lost_levels") or 0)
            levels = "1 level is" if count == 1 else f"{count:,} levels are"
            yield _Finding(
                2 * lost / _NOTABLE["lost"],
                f"{levels} gone from '{row['column']}', which {percent(lost)} of the original records have.",
            )
        gap = abs((row.get("missing_after") or 0) - (row.get("missing_before") or 0))
        if gap >= _NOTABLE["missing"]:
            yield _Finding(
                gap / _NOTABLE["missing"],
                f"Missing values of '{row['column']}' went from {percent(row['missing_before'])} to "
                f"{percent(row['missing_after'])}.",
            )


def _tables(tabular: Measure | None, linked: bool) -> Iterator[_Finding]:
    # What is standardized by a synthesis says little of masked records: then many must be in other cells.
    least = _NOTABLE["moved"] if linked else 0.0
    pairs = [
        row
        for row in _rows(tabular, "tables")
        if row["ways"] > 1 and (row["S_pMSE"] or 0) >= _GOOD and row["SPECKS"] >= least
    ]
    by_column = _rows(tabular, "variables")
    for row in pairs[:3]:
        yield _Finding(
            min(row["S_pMSE"] / _GOOD, 1 + 20 * row["SPECKS"]),
            f"The table {row['variables']} differs more than a good synthesis would: {shown(row['S_pMSE'])} times what "
            f"chance gives (below 3 is good), {percent(row['SPECKS'])} of its records would have to change cells.",
        )
    if len(pairs) >= _GOOD and by_column:
        first = by_column[0]["column"]
        held = sum(first in str(row["variables"]).split(" × ") for row in pairs)
        if held > len(pairs) / 2:
            yield _Finding(
                1.5,
                f"'{first}' stands in {held:,} of the {len(pairs):,} tables that came out badly: mend that column "
                "first.",
            )


def _is_emptied(row: Mapping[str, Any]) -> bool:
    return row.get("missing_after") == 1 and (row.get("missing_before") or 0) < 1


def _with_new_gaps(margins: Measure | None) -> frozenset[str]:
    """Name the columns in which values were suppressed."""
    return frozenset(
        row["column"]
        for row in _rows(margins, "variables")
        if (row.get("missing_after") or 0) - (row.get("missing_before") or 0) >= _NOTABLE["gaps"]
    )


def _relations(dependence: Measure | None, gaps: frozenset[str]) -> Iterator[_Finding]:
    """Find relations that changed; one that seems stronger among the values suppression left is none."""
    beyond_chance = [
        row
        for row in _rows(dependence, "pairs")
        if not _is_chance(row)
        and not ({row["column"], row["other"]} & gaps and abs(row["after"] or 0) > abs(row["before"] or 0))
    ]
    for row in beyond_chance[:3]:
        change = abs(row["difference"] or 0)
        if change >= _NOTABLE["relation"]:
            verb = "weakened" if abs(row["after"]) < abs(row["before"]) else "strengthened"
            turned = row["before"] * row["after"] < 0
            yield _Finding(
                change / _NOTABLE["relation"],
                f"The relation of '{row['column']}' and '{row['other']}' {'turned round' if turned else verb}: from "
                f"{shown(round(row['before'], 3))} to {shown(round(row['after'], 3))} ({_KINDS[row['measure']]}).",
            )


def _is_chance(row: Mapping[str, Any]) -> bool:
    """Say whether two samples of so few records that know both columns differ as much by chance."""
    known = [row.get("known_before"), row.get("known_after")]
    if row["measure"] not in ("pearson", "spearman") or not all(known):
        return False
    return bool(
        abs(row["difference"] or 0) < _CHANCE * math.sqrt(sum(1 / float(many or 1) for many in known))
    )


def _joint(pmse: Measure | None, tabular: Measure | None) -> Iterator[_Finding]:
    worst = tabular.figures.get("max_S_pMSE") if tabular else None
    blind = pmse is not None and pmse.figures.get("leaves") in (1, 1.0)
    if blind and isinstance(worst, int | float) and worst >= _GOOD:
        yield _Finding(
            1,
            "The tree that is to tell the files apart found no first question, although tables of two columns differ: "
            "its pMSE of 0 is no praise.",
        )
    ratio = pmse.figures.get("ratio") if pmse else None
    if pmse is None:
        return
    first = next(iter(_rows(pmse, "variables")), None)
    by = f", first by '{first['variable']}'" if first else ""
    auc = pmse.figures.get("auc")
    told = f"it orders {percent(auc)} of pairs rightly (50 % is guessing)" if isinstance(auc, float) else ""
    if isinstance(ratio, int | float) and ratio >= _GOOD:
        times = f"{shown(float(f'{ratio:.3g}'))} times what a correct synthesis gives"
        yield _Finding(
            min(ratio / _GOOD, 5),
            f"A tree tells released records from real ones{by}: {times}{'; ' if told else ''}{told}.",
        )
    elif ratio is None and told and isinstance(auc, float) and auc - 0.5 >= _NOTABLE["above"]:
        yield _Finding(1 + 10 * (auc - 0.5), f"A tree tells released records from real ones{by}: {told}.")


def _models(fits: Measure | None) -> Iterator[_Finding]:
    if fits is None:
        return
    same = fits.figures.get("share_same_conclusion")
    if isinstance(same, int | float) and same < 1:
        yield _Finding(
            1 + 5 * (1 - same),
            f"An analyst of the release would come to another conclusion for {percent(1 - same)} of the coefficients.",
        )


def _copied(measures: Mapping[str, Measure], alignment: Alignment) -> Iterator[_Finding]:
    """Find what speaks of copying, and what is given away about people."""
    tables = measures.get("tabular")
    typical = tables.figures.get("median_S_pMSE") if tables else None
    if isinstance(typical, int | float) and 0 < typical < _FAR_BELOW and not alignment.linked:
        yield _Finding(
            2,
            f"Tables agree far better than a new sample would (median {shown(typical)}, where 1 is chance): the "
            "release may repeat the original. That is a question of risk, not of quality.",
        )
    new = measures.get("new_rows")
    if new is not None:
        exact, holdout = new.figures.get("new_share_exact"), new.figures.get("new_share_holdout")
        repeated = None if not isinstance(exact, int | float) else 1 - exact
        newcomers = new.figures.get("new_share_by_chance")
        if isinstance(holdout, int | float):
            chance, whom = 1 - holdout, "people who were not used"
        else:
            chance, whom = 1 - newcomers if isinstance(newcomers, int | float) else 0.0, "new people, about"
        if repeated is not None and repeated - chance >= _NOTABLE["above"]:
            against = f", against {percent(chance)} of {whom}" if chance else ""
            yield _Finding(
                1 + 10 * (repeated - chance),
                f"{percent(repeated)} of the released records equal a real one in every compared column{against}.",
            )
    yield from _people(measures.get("near_copies"), alignment)
    if new is not None and "near_copies" not in measures:
        yield from _equal_people(new, alignment)
    near = measures.get("neighbors")
    closer = near.figures.get("dcr_share_closer_than_holdout") if near else None
    found = measures.get("near_copies")
    least = found.figures.get("closer_low") if found else None
    leaning = not isinstance(least, float) or least > 0.5
    if isinstance(closer, int | float) and closer >= _NOTABLE["closer"] and leaning:
        yield _Finding(
            10 * (closer - 0.5),
            f"{percent(closer)} of the released records lie closer to the people they were made from than to others "
            "like them (50 % is chance).",
        )
    guess = measures.get("attribution")
    if guess is not None:
        right, blind = guess.figures.get("cap_released"), guess.figures.get("baseline")
        if isinstance(right, float) and isinstance(blind, float) and right - blind >= 4 * _NOTABLE["above"]:
            yield _Finding(
                1 + 2 * (right - blind),
                f"Who looks a person up by the keys guesses {_named(easiest_to_guess(guess))} right for "
                f"{percent(right)} of those who can be looked up{_of_all(guess)}, against {percent(blind)} without the "
                "release.",
            )
    led = measures.get("linkage")
    share, by_chance = (
        (led.figures.get("linked_share"), led.figures.get("guess_share")) if led else (None, None)
    )
    if isinstance(share, float) and share >= _NOTABLE["above"] and share > 10 * float(by_chance or 0):
        yield _Finding(
            1 + 2 * share,
            f"{percent(share)} of the released records can be led back to their person by who knows the original "
            "values.",
        )


def _people(found: Measure | None, alignment: Alignment) -> Iterator[_Finding]:
    """Say how many people come back, whole or almost: each of them is somebody, however small their share."""
    if found is None:
        return
    figures: Mapping[str, Any] = found.figures
    people, whole = figures["copied"], figures["whole"]
    how = "whole" if whole == people else "whole or almost" + (f" ({whole:,} whole)" if whole else "")
    yield from _come_back(people, how, figures["copied_by_chance"], figures["copied_share"] or 0.0, alignment)
    far, expected = figures["outlying_copied"], figures["outlying_by_chance"]
    if far > expected and not alignment.linked:
        yield _Finding(
            1 + 30 * (figures["outlying_share"] or 0.0) if figures["outlying_share"] else 0.6,
            f"Of the {figures['outlying']:,} people who are farthest from everybody else, {far:,} "
            f"{'comes' if far == 1 else 'come'} back almost unchanged (by chance: {expected:,.0f}).",
        )
    if figures["telling_found"] > figures["telling_by_chance"]:
        column = _rows(found, "telling")[0]["column"]
        yield _Finding(
            1 + 20 * (figures["telling_share"] or 0.0) if figures["telling_share"] else 0.6,
            f"{_counted(figures['telling_found'], 'finds', 'find')} in the release the exact value of '{column}' that "
            "nobody else has: who knows it knows them.",
        )
    if figures["largest_share"]:
        yield _Finding(
            1 + 20 * figures["largest_share"],
            f"Of the {figures['largest']:,} people with the largest values {figures['largest_found']:,} have theirs in "
            f"the release, exactly or almost (by chance: {figures['largest_by_chance']:,.0f}).",
        )


def _equal_people(new: Measure, alignment: Alignment) -> Iterator[_Finding]:
    """Say how many people come back whole where nobody could look for those who do so almost."""
    figures: Mapping[str, Any] = new.figures
    if figures.get("copied") is not None:
        chance, share = figures["copied_by_chance"], figures["copied_beyond_chance"]
        yield from _come_back(round(figures["copied"]), "whole", chance, share, alignment)


def _come_back(
    people: int, how: str, chance: float, share: float, alignment: Alignment
) -> Iterator[_Finding]:
    """Say how many people come back, and how many would by chance; ``share`` is that of all beyond chance."""
    if people and alignment.linked:
        yield _Finding(
            0.5,
            f"The records are those of the same people, and {_counted(people)} can be told in it from all others: what "
            "protects them is what cannot be known about them.",
        )
    elif people:
        yield _Finding(
            1 + 20 * share if share else 0.5,
            f"{_counted(people, 'who is like no other comes', 'who are like no other come')} back in the release "
            f"{how}; if it held new people, about {chance:,.0f} would.",
        )


def _counted(people: int, one: str = "", many: str = "") -> str:
    noun, verb = ("person", one) if people == 1 else ("people", many)
    return f"{people:,} {noun} {verb}".rstrip()


def _named(column: str | None) -> str:
    return "the sensitive value" if column is None else f"'{column}'"


def _of_all(guess: Measure) -> str:
    share = guess.figures.get("matched_share")
    return f" ({percent(share)} of all people)" if isinstance(share, float) and share < 1 else ""


def _nothing(measures: Mapping[str, Measure], *, clear: bool) -> str:
    if not measures:
        return "Nothing could be measured; see what was left out."
    tabular = measures.get("tabular")
    value = tabular.figures.get("max_S_pMSE") if tabular else None
    if isinstance(value, int | float) and value == 0:
        return "No column, no table and no relation differs: the release says what the original says."
    agrees = "no column, table or relation of those compared is far from the original."
    return f"Nothing stands out: {agrees}" if clear else f"{agrees[0].upper()}{agrees[1:]}"


def _variables(measures: Mapping[str, Measure]) -> Iterator[dict[str, Any]]:
    """List the columns that came off worst, by themselves and in their tables."""
    tables = {row["column"]: row for row in _rows(measures.get("tabular"), "variables")}
    for row in _rows(measures.get("margins"), "variables")[:_MOST_ROWS]:
        if row["distance"]:
            yield {
                "column": row["column"],
                "kind": row["kind"],
                "distance": row["distance"],
                "mean_S_pMSE": tables.get(row["column"], {}).get("mean_S_pMSE"),
                "lost_share": row.get("lost_share"),
            }


def _pairs(measures: Mapping[str, Measure]) -> Iterator[dict[str, Any]]:
    tables = [row for row in _rows(measures.get("tabular"), "tables") if row["ways"] == 2]
    for row in tables[:_MOST_ROWS]:
        if row["S_pMSE"]:
            yield {name: row[name] for name in ("variables", "S_pMSE", "SPECKS", "V_before", "V_after")}


def _cells(tabular: Measure | None, show_values: bool) -> Iterator[dict[str, Any]]:
    rows = sorted(_rows(tabular, "cells"), key=lambda row: -abs(row["z"] or 0))
    for row in rows[:_MOST_ROWS]:
        if row["z"]:
            names = ("variables", *(("cell",) if show_values else ()), "original", "released", "z")
            yield {name: row[name] for name in names}


def _rows(measure: Measure | None, table: str) -> list[dict[str, Any]]:
    if measure is None or table not in measure.detail:
        return []
    frame: Any = nw.from_native(measure.detail[table])
    return list(frame.iter_rows(named=True))


_KINDS = {
    "pearson": "correlation",
    "spearman": "rank correlation",
    "cramers_v": "Cramér's V",
    "correlation_ratio": "correlation ratio",
}
