"""Enter the price of a synthetic file into a budget, before anything is drawn."""

from __future__ import annotations

from discreet import dp
from discreet.microdata import Microdata


def pay_purely(
    ledger: dp.Ledger | None,
    data: Microdata,
    mechanism: str,
    epsilon: float,
    *,
    values: int,
    sensitivity: float | None = None,
    proved: bool = True,
) -> None:
    """Enter what it costs that one record could be any other (pure differential privacy); nothing without a ledger."""
    if ledger is not None:
        ledger.spend(
            dp.Cost(
                mechanism,
                "pure",
                epsilon=float(epsilon),
                adjacency="replace",
                sensitivity=sensitivity,
                values=values,
                purpose="synthetic file",
                proved=proved,
            ),
            data=data,
        )
