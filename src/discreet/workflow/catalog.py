"""What the package can do, read off the rooms themselves."""

from __future__ import annotations

import importlib
import inspect as python_inspect
from dataclasses import asdict, dataclass
from typing import Any

from discreet.core.cards import all_cards, card_of
from discreet.core.method_cards import method_card

_ROOMS = ("risk", "protect", "synth", "utility", "tables", "attack", "outputs")

_QUERIES = (
    "count", "total", "mean", "variance", "quantiles", "histogram", "table", "linear_regression", "quantile_regression",
)  # fmt: skip
_MACHINERY = ("Change", "Draft", "Treatment")


@dataclass(frozen=True)
class Entry:
    """One measure, treatment or generator: its room, its name in Python and the question it answers.

    ``work`` says what a figure or a new value depends on, where its card says so: ``row-wise``, ``class-wise`` or
    ``whole-file``.
    """

    room: str
    about: str
    name: str
    question: str
    work: str = ""
    references: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the entry, ready for JSON."""
        return asdict(self)


def catalog() -> list[Entry]:
    """List everything the rooms offer, room by room.

    Examples
    --------
    >>> next(entry.question for entry in catalog() if entry.name == "risk.k_anonymity")
    'How many people share the rarest combination of key values?'
    """
    entries = []
    for room in _ROOMS:
        module = importlib.import_module(f"discreet.{room}")
        about = _first_line(module)
        things = {name: getattr(module, name) for name in module.__all__ if name not in _MACHINERY}
        things |= {card.name: card.function for card in all_cards(room) if not card.is_second_name}
        entries += [
            Entry(room, about, f"{room}.{name}", _first_line(things[name]), *_on_card(things[name]))
            for name in sorted(things)
        ]
    return [*entries, *_private()]


def _private() -> list[Entry]:
    """List the private queries and, where one of several mechanisms is chosen, which of them is for what."""
    from discreet import dp
    from discreet.dp.regression.quantile_regression import ADVICE

    about = "Questions answered under a privacy budget (discreet dp)."
    listed = [Entry("dp", about, f"dp.{name}", _first_line(getattr(dp, name))) for name in _QUERIES]
    return listed + [
        Entry("dp", about, f"dp.quantile_regression, {name}", advice) for name, advice in ADVICE.items()
    ]


def _on_card(thing: object) -> tuple[str, tuple[str, ...]]:
    """Give what the card of a measure, a treatment or a generator says of its work and where it comes from."""
    card = method_card(thing) if isinstance(thing, type) else card_of(getattr(thing, "__name__", ""))
    return ("", ()) if card is None else (card.work, card.references)


def _first_line(thing: object) -> str:
    return (python_inspect.getdoc(thing) or "").partition("\n")[0]
