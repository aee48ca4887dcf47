"""What the package can do, read off the rooms themselves."""

from __future__ import annotations

import importlib
import inspect as python_inspect
from dataclasses import asdict, dataclass

from discreet.cards import all_cards

_ROOMS = ("risk", "protect", "synth", "utility", "tables", "outputs")

_MACHINERY = ("Change", "Draft", "Treatment")


@dataclass(frozen=True)
class Entry:
    """One measure or treatment: its room, its name in Python and the question it answers."""

    room: str
    about: str
    name: str
    question: str

    def to_dict(self) -> dict[str, str]:
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
            Entry(room, about, f"{room}.{name}", _first_line(things[name])) for name in sorted(things)
        ]
    return entries


def _first_line(thing: object) -> str:
    return (python_inspect.getdoc(thing) or "").partition("\n")[0]
