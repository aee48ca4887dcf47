"""What went wrong first: the findings of a comparison in plain sentences.

What is given away about people comes before what is lost for users, and the gravest on top of each. What there is to
say of an answer is said by the card of its measure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from discreet.core.cards import Card, card_of
from discreet.core.findings import Beside, Finding, Side
from discreet.core.results import Measure
from discreet.workflow.comparison_results import Alignment, Worst

_MOST_SENTENCES = 8
_LEAST_COSTS = 7


def worst_of(measures: Mapping[str, Measure], alignment: Alignment, *, show_values: bool) -> Worst:
    """Collect what stands out, and the tables behind it."""
    beside = Beside(measures, alignment.linked, show_values)
    found = findings_of(beside)
    lost, given_away = found["utility"], found["risk"]
    costs = _ranked(lost) if lost else [_nothing(beside, clear=not given_away)]
    if alignment.only_original:
        count = len(alignment.only_original)
        columns = f"column '{alignment.only_original[0]}'" if count == 1 else f"{count} columns"
        costs.insert(
            0, f"The release lacks {columns} of the original: nothing can be said from it about them."
        )
    # What was found out about people comes first: that a copy agrees with its original is no comfort. People who come
    # back no more often than chance would have it are said last, and always: each of them may be a copy all the same.
    grave, usual = (
        _ranked(found for found in given_away if (found.weight >= 1) is is_grave)
        for is_grave in (True, False)
    )
    room = max(_MOST_SENTENCES - len(grave) - len(usual), _LEAST_COSTS)
    return Worst(sentences=(*grave, *costs[:room], *usual), **_tables(beside))


def findings_of(beside: Beside) -> dict[Side, list[Finding]]:
    """Collect what went wrong by side, in the order of the cards."""
    found: dict[Side, list[Finding]] = {"utility": [], "risk": []}
    for card in _asked(beside):
        if card.worst and card.compare:
            for finding in card.worst.findings(beside.measures[card.name], beside):
                found[finding.side or card.compare.side].append(finding)
    return found


def _asked(beside: Beside) -> list[Card]:
    """Give the cards of the measures that have something to say, in their order."""
    cards = [card for name in beside.measures if (card := card_of(name)) and card.worst]
    return sorted(cards, key=lambda card: card.worst.order if card.worst else 0)


def _ranked(findings: Iterable[Finding]) -> list[str]:
    return [found.sentence for found in sorted(findings, key=lambda found: -found.weight)]


def _nothing(beside: Beside, *, clear: bool) -> str:
    if not beside.measures:
        return "Nothing could be measured; see what was left out."
    if any(
        card.worst and card.worst.nothing_differs and card.worst.nothing_differs(beside.measures[card.name])
        for card in _asked(beside)
    ):
        return "No column, no table and no relation differs: the release says what the original says."
    agrees = "no column, table or relation of those compared is far from the original."
    return f"Nothing stands out: {agrees}" if clear else f"{agrees[0].upper()}{agrees[1:]}"


def _tables(beside: Beside) -> dict[str, tuple[Mapping[str, Any], ...]]:
    return {
        table: tuple(rows(beside.measures[card.name], beside))
        for card in _asked(beside)
        for table, rows in (card.worst.tables if card.worst else {}).items()
    }
