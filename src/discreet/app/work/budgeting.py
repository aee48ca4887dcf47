"""The privacy budget of a file: what was spent on it, what is left, and what that promises."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet.app.jobs import caused_by
from discreet.app.work.bench import Bench
from discreet.core.errors import ParameterError
from discreet.dp import Ledger
from discreet.io.naming import is_address


def show_budget(bench: Bench, *, source: Mapping[str, Any]) -> dict[str, Any]:
    """Say what the ledger beside the file holds; nothing where there is none."""
    place = source["place"]
    if is_address(place) or not Ledger.place_beside(place).is_file():
        return {"there": False}
    with caused_by("ledger"):
        return _view(Ledger.load(Ledger.place_beside(place), source=place))


def open_budget(
    bench: Bench, *, source: Mapping[str, Any], epsilon: float | None, delta: float, unit: str
) -> dict[str, Any]:
    """Set the budget of a file, once; the ledger lies beside it."""
    with caused_by("epsilon"):
        if epsilon is None:
            raise ParameterError("Give epsilon: the budget of all releases together.")
        return _view(Ledger.beside(Path(source["place"]), float(epsilon), float(delta or 0.0), unit=unit))


def _view(ledger: Ledger) -> dict[str, Any]:
    epsilon, delta = ledger.budget
    spent = ledger.spent
    return {
        "there": True,
        "epsilon": epsilon,
        "delta": delta,
        "spent": spent.epsilon,
        "left": ledger.left,
        "meaning": ledger.meaning,
        "unproved": ledger.unproved,
        "closed": ledger.closed,
        "records": [
            {
                name: str(row[name])
                for name in ("release", "time", "mechanism", "epsilon", "purpose")
                if name in row
            }
            for row in ledger.table().iter_rows(named=True)
        ],
    }
