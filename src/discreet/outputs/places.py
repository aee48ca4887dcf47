"""Where in a finished file does a number stand?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Place:
    """Where a number stands in a finished file; without the number, unless it was asked for."""

    row: int
    column: int
    name: str = ""
    sheet: str = ""
    value: str | None = None

    @property
    def cell(self) -> str:
        """The address as a spreadsheet writes it.

        Examples
        --------
        >>> Place(4, 28).cell
        'AB4'
        """
        letters, rest = "", self.column
        while rest > 0:
            rest, place = divmod(rest - 1, 26)
            letters = chr(65 + place) + letters
        return f"{letters}{self.row}"

    def to_dict(self) -> dict[str, Any]:
        """Return the place, ready for JSON."""
        known = {"sheet": self.sheet or None, "row": self.row, "column": self.column, "cell": self.cell}
        named = {**known, "name": self.name}
        return named if self.value is None else {**named, "value": self.value}

    def __str__(self) -> str:
        where = f"{self.sheet}!{self.cell}" if self.sheet else f"{self.cell} (row {self.row})"
        name = f", column '{self.name}'" if self.name else ""
        return f"{where}{name}" + (f": {self.value}" if self.value is not None else "")
