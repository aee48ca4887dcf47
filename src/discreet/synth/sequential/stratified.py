"""Strata: parts of a file that are fitted and drawn separately."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.errors import ParameterError
from discreet.synth.methods.given import Stratum
from discreet.synth.sequential.plan import SynthesisPlan

if TYPE_CHECKING:
    from discreet.synth.sequential.sequential import Sequential

Rows = npt.NDArray[np.int64]


class Strata:
    """How a file falls into strata.

    Small strata are pooled: their records are modelled together, and which of them a synthetic record belongs to is
    drawn in proportion.
    """

    def __init__(
        self,
        rows: Sequence[Rows | None],
        members: Sequence[pl.DataFrame],
        shares: npt.NDArray[np.float64],
        sizes: str,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.rows = list(rows)
        self.members = list(members)
        self.shares = shares
        self.sizes = sizes
        self.notes = notes

    @classmethod
    def of(
        cls, options: Sequential, plan: SynthesisPlan, frame: pl.DataFrame, weight: pl.Series | None
    ) -> Strata:
        """Divide the file by its strata columns; without any it is one stratum."""
        names = [step.name for step in plan.steps if isinstance(step.method, Stratum)]
        if options.stratum_sizes == "population" and weight is None:
            raise ParameterError('stratum_sizes="population" needs survey weights; the data have none.')
        if not names:
            return cls([None], [pl.DataFrame()], np.ones(1), options.stratum_sizes)
        least = options.min_stratum
        least = 10 + 10 * len(plan.columns) if least is None else least
        mass = (
            pl.lit(1.0)
            if weight is None or options.stratum_sizes != "population"
            else weight.cast(pl.Float64)
        )
        table = (
            frame.select(names)
            .with_columns(mass.alias("mass") if isinstance(mass, pl.Expr) else mass.rename("mass"))
            .with_row_index("record")
            .group_by(names, maintain_order=True)
            .agg(pl.col("record"), pl.col("mass").sum())
            .sort(names)
        )
        size = table["record"].list.len()
        small, large = table.filter(size < least), table.filter(size >= least)
        rows: list[Rows | None] = [_sorted(part) for part in large["record"]]
        members = [large[at].select(*names, "mass") for at in range(large.height)]
        notes: tuple[str, ...] = ()
        if small.height:
            rows.append(_sorted(small["record"].explode()))
            members.append(small.select(*names, "mass"))
            notes = (
                f"{small.height} strata with fewer than {least} records are modelled together; set min_stratum to "
                "change that.",
            )
        shares = np.array([float(member["mass"].sum()) for member in members])
        return cls(rows, members, shares / shares.sum(), options.stratum_sizes, notes)

    def divided(
        self, n: int, kept: pl.DataFrame, rng: np.random.Generator
    ) -> tuple[list[int], list[Rows] | None]:
        """Say how many records each stratum gets; records that are kept stay in their own, at their places."""
        if len(self.members) == 1 and not self.members[0].width:
            return [n], None
        if kept.width:
            places = [rows for rows in self.rows if rows is not None]
            return [len(place) for place in places], places
        if self.sizes in ("fixed", "population"):
            exact = self.shares * n
            sizes = np.floor(exact).astype(np.int64)
            rest = n - int(sizes.sum())
            sizes[np.argsort(-(exact - sizes), kind="stable")[:rest]] += 1
            return [int(size) for size in sizes], None
        return [int(size) for size in rng.multinomial(n, self.shares)], None

    def values(self, number: int, size: int, rng: np.random.Generator) -> pl.DataFrame:
        """Return the strata columns of the records of one stratum."""
        member = self.members[number]
        if not member.width:
            return pl.DataFrame()
        names = [name for name in member.columns if name != "mass"]
        share = member["mass"].to_numpy() / member["mass"].sum()
        at = np.repeat(np.arange(member.height), rng.multinomial(size, share))
        return member.select(names)[at]

    def state(self) -> dict[str, Any]:
        """Return the strata for a model file."""
        return {
            "members": [{"names": m.columns, "columns": m.get_columns()} for m in self.members],
            "shares": self.shares,
            "sizes": self.sizes,
            "rows": [rows if rows is not None else np.empty(0, dtype=np.int64) for rows in self.rows],
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Strata:
        """Make the strata again."""
        members = [
            pl.DataFrame([s.rename(n) for n, s in zip(m["names"], m["columns"], strict=True)])
            for m in state["members"]
        ]
        return cls(state["rows"], members, state["shares"], state["sizes"])


def _sorted(records: pl.Series) -> Rows:
    return np.sort(records.to_numpy().astype(np.int64))
