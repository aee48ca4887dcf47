"""Strata: parts of a file that are fitted and drawn separately."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ParameterError
from discreet.synth.column_forms import columns_named
from discreet.synth.methods.observed_values import Stratum
from discreet.synth.sequential.plan import SynthesisPlan

if TYPE_CHECKING:
    from discreet.synth.sequential.sequential import Sequential


class Strata:
    """How a file falls into strata.

    Small strata are pooled: their records are modelled together, and which of them a synthetic record belongs to is
    drawn in proportion.
    """

    def __init__(
        self,
        rows: Sequence[Integers | None],
        members: Sequence[pl.DataFrame],
        shares: Floats,
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
        cls,
        options: Sequential,
        plan: SynthesisPlan,
        frame: pl.DataFrame,
        weight: pl.Series | None,
        *,
        weights: Floats | None = None,
    ) -> Strata:
        """Divide the file by its strata columns; without any it is one stratum.

        ``weight`` is the weight of the file, if it has any, and ``weights`` what the models are fitted with: where
        they are, strata are drawn in their shares of the population.
        """
        names = [step.name for step in plan.steps if isinstance(step.method, Stratum)]
        if options.stratum_sizes == "population" and weight is None:
            raise ParameterError('stratum_sizes="population" needs survey weights; the data have none.')
        if not names:
            return cls([None], [pl.DataFrame()], np.ones(1), options.stratum_sizes)
        mass = np.ones(frame.height)
        if weight is not None and options.stratum_sizes == "population":
            mass = weight.cast(pl.Float64).to_numpy()
        elif weights is not None and options.stratum_sizes == "drawn":
            mass = weights
        least = fewest_records(options, plan.columns)
        table, sizes = _divided(frame, names, mass)
        small, large = table.filter(sizes < least), table.filter(sizes >= least)
        rows: list[Integers | None] = [_sorted(part) for part in large["record"]]
        members = [_member(large[at], names) for at in range(large.height)]
        notes: tuple[str, ...] = ()
        if small.height:
            rows.append(_sorted(small["record"].explode()))
            members.append(_member(small, names))
            notes = (
                f"{small.height} strata with fewer than {least} records are modelled together; set min_stratum to "
                "change that.",
            )
        shares = np.array([float(member[member.columns[-1]].sum()) for member in members])
        return cls(rows, members, shares / shares.sum(), options.stratum_sizes, notes)

    def divided(
        self, n: int, kept: pl.DataFrame, rng: np.random.Generator
    ) -> tuple[list[int], list[Integers] | None]:
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
        # The mass stands last, and a stratum may be called anything.
        *names, mass = member.columns
        share = member[mass].to_numpy() / member[mass].sum()
        at = np.repeat(np.arange(member.height), rng.multinomial(size, share))
        return columns_named(member, names)[at]

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
        members = [pl.DataFrame(dict(zip(m["names"], m["columns"], strict=True))) for m in state["members"]]
        return cls(state["rows"], members, state["shares"], state["sizes"])


def fewest_records(options: Sequential, columns: Sequence[str]) -> int:
    """Say how many records a stratum needs to be modelled by itself."""
    return 10 + 10 * len(columns) if options.min_stratum is None else options.min_stratum


def some_are_small(
    options: Sequential, frame: pl.DataFrame, names: Sequence[str], columns: Sequence[str]
) -> bool:
    """Whether some strata are pooled; then the strata must predict, or their records would be alike."""
    if not names:
        return False
    _, sizes = _divided(frame, names, np.ones(frame.height))
    return bool((sizes < fewest_records(options, columns)).any())


def _divided(frame: pl.DataFrame, names: Sequence[str], mass: Floats) -> tuple[pl.DataFrame, pl.Series]:
    """Return one row a stratum (``k0``, ``k1``…, its records and its mass), and the number of its records."""
    keys = [f"k{place}" for place in range(len(names))]
    table = (
        pl.DataFrame({key: frame[name] for key, name in zip(keys, names, strict=True)} | {"mass": mass})
        .with_row_index("record")
        .group_by(keys, maintain_order=True)
        .agg(pl.col("record"), pl.col("mass").sum())
        .sort(keys)
    )
    return table, table["record"].list.len()


def _member(table: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Give the strata columns their own names again, and put the mass last."""
    mass = "mass"
    while mass in names:
        mass += " of records"
    return pl.DataFrame(
        {name: table[f"k{place}"] for place, name in enumerate(names)} | {mass: table["mass"]}
    )


def _sorted(records: pl.Series) -> Integers:
    return np.sort(records.to_numpy().astype(np.int64))
