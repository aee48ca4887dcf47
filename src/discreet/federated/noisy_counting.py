"""How many people of all sites are in each group, under a guarantee that every site keeps for its own people?

Every site adds noise to its own counts before they enter the secure sum, and enters the price into its own ledger
first. What comes out is protected even against all other parties together; a site whose budget is spent refuses.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Array
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.core.randomness import Seed
from discreet.core.wording import shown
from discreet.dp.budget import checked_epsilon
from discreet.dp.mechanisms import laplace
from discreet.federated.counting import cells_of, counted, declared_levels, rows_of
from discreet.federated.leakage import Leakage, Learned, seeded_note
from discreet.federated.masking import Masks
from discreet.federated.messages import levels as levels_by_column
from discreet.federated.messages import number
from discreet.federated.parties import Holder, Party, Transport
from discreet.federated.quantities import Ring, quantity
from discreet.federated.secure_sums import sum_over


@quantity("noisy-counts", {"levels": levels_by_column, "epsilon": number}, protected=True)
def _noisy_counts(holder: Holder, asked: Mapping[str, Any]) -> Array:
    """The counts of a site with noise of its own; a record is in one cell, so that it moves the answer by one."""
    exact = counted(holder, asked)
    if exact.shape != (int(asked["size"]),):  # before it is paid for
        raise ParameterError(
            f"'{holder.name}' counts {len(exact):,} cells, and another number was asked for."
        )
    purpose = f"joint counts by {', '.join(str(name) for name in asked['columns'])}"
    noisy = laplace(
        exact, sensitivity=1, epsilon=float(asked["epsilon"]), purpose=purpose, ledger=holder.ledger
    )
    return np.asarray(noisy.value, dtype=np.float64)


@dataclass(frozen=True, repr=False)
class NoisyCounts:
    """Joint counts with noise.

    Attributes
    ----------
    table
        One row for each cell of declared levels: the levels and ``count``, which may be below zero.
    undeclared
        Records outside the declared levels, with noise as well.
    epsilon
        What the release cost at every site.
    standard_deviation
        Of the noise of one count, over all sites.
    """

    table: pl.DataFrame
    undeclared: float
    epsilon: float
    standard_deviation: float
    guarantee: str
    leakage: Leakage = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return it, ready for JSON."""
        return {
            "table": self.table.to_dicts(), "undeclared": self.undeclared, "epsilon": self.epsilon,
            "standard_deviation": self.standard_deviation, "guarantee": self.guarantee,
            "leakage": self.leakage.to_dict(),
        }  # fmt: skip

    def __str__(self) -> str:
        lines = [
            f"{', '.join(map(str, row[:-1]))}: {shown(round(row[-1]))}" for row in self.table.iter_rows()
        ]
        lines.append(
            f"Standard deviation of the noise of a count: {self.standard_deviation:.3g}. {self.guarantee}"
        )
        return "\n".join(lines)

    __repr__ = __str__


@checked
def noisy_counts_over_sites(
    sites: Any, levels: Mapping[str, Any], *, epsilon: float, transport: Any = None, seed: Seed = None
) -> NoisyCounts:
    """How many people of all sites are in each group, give or take noise with a guarantee?

    Parameters
    ----------
    sites
        One table for each site, or `horizontal`.
    levels
        ``{key: levels}``, agreed beforehand and not read off the data.
    epsilon
        What the counts cost at every site. People are at one site each, so that it is also the price of the whole.
    transport
        How sites are reached; in this process unless given.
    seed
        For the same masks again; noise never takes a seed.

    Examples
    --------
    >>> one, two = pl.DataFrame({"sex": ["f", "m"] * 500}), pl.DataFrame({"sex": ["f"] * 800})
    >>> found = noisy_counts_over_sites([one, two], {"sex": ["f", "m"]}, epsilon=1.0)
    >>> found.table["sex"].to_list(), round(found.standard_deviation, 2)
    (['f', 'm'], 2.04)
    """
    checked_epsilon(epsilon)
    declared, cells = declared_levels(levels)
    layout = rows_of(sites, list(declared), seed)
    central = Party("coordinator", Masks(seed))
    carrier = transport or Transport(layout.holders.values())
    carrier.join(central)
    asked = {"kind": "noisy-counts", "columns": list(declared), "levels": declared, "epsilon": float(epsilon)}
    found = np.rint(
        sum_over(carrier, central, layout.nodes, asked, size=cells + 1, ring=Ring(64, 0), seed=seed)
    )
    every = np.arange(cells)
    table = pl.DataFrame({**cells_of(declared, every), "count": found[:-1].astype(np.int64)})
    # Laplace noise of scale 1 / epsilon, rounded to whole counts at each site: P(|N| >= k) = exp(-(k - 1/2) epsilon).
    ratio = math.exp(-epsilon)
    deviation = math.sqrt(len(layout.nodes) * math.exp(-epsilon / 2) * (1 + ratio)) / (1 - ratio)
    promise = (
        f"Every site added its own noise: {shown(epsilon)}-differential privacy for adding or removing one record, "
        "even against all other parties together. Exact answers of other protocols about the same people are not "
        "covered."
    )
    account = Leakage(
        "secure-sum",
        (
            Learned("coordinator", "all sites", f"coordinator learns the joint counts of {cells:,} cells with noise of "
                    f"{deviation:.3g} standard deviations, and no count of a single site"),
        ),
        ("the two neighbors of a site in the ring learn its counts with its own noise, and nothing without",),
        (promise, *seeded_note(seed is not None)),
        transcript=carrier.transcript,
    )  # fmt: skip
    return NoisyCounts(table, float(found[-1]), float(epsilon), deviation, promise, account)
