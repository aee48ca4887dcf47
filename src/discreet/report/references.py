"""Where each measure comes from, so that a reader can check the method."""

from __future__ import annotations

from collections.abc import Iterable

from discreet.core.cards import card_of


def citations(measures: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the citations of the named measures that have one, in the order given, each measure once.

    Examples
    --------
    >>> list(citations(["k_map", "something_new", "k_map"]))
    ['k_map']
    """
    cards = {name: card_of(name) for name in dict.fromkeys(measures)}
    return {name: card.references for name, card in cards.items() if card and card.references}
