"""One question under a budget: what it may spend, where its random bits come from, how its answer is worded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from discreet.core.arrays import Integers
from discreet.core.guarantees import SEEDED, DifferentialPrivacy, settled, stands
from discreet.core.randomness import generator
from discreet.core.results import Measure
from discreet.dp.calibration import checked_epsilon, noise_rate, rational_epsilon
from discreet.dp.costs import Cost
from discreet.dp.entropy import Words, os_words, refuse_seeded, seeded_words
from discreet.dp.ledger import Ledger
from discreet.dp.mechanisms import Noisy, with_laplace_noise
from discreet.dp.sensitivity import unit_of
from discreet.microdata import Microdata


class Ask:
    """One question: its budget, where its random bits come from, and how its answer is worded."""

    def __init__(
        self, data: Microdata, epsilon: float, ledger: Ledger | None, purpose: str, seed: int | None
    ) -> None:
        checked_epsilon(epsilon)
        refuse_seeded(ledger, seed)
        self.data, self.epsilon, self.ledger, self.purpose, self.seed = data, epsilon, ledger, purpose, seed
        self.unit = unit_of(data)
        self.delta = 0.0

    def words(self, name: str) -> Words:
        """Open a source of bits: the operating system, unless the user gave a seed."""
        return os_words if self.seed is None else seeded_words(generator(self.seed, "dp", name))

    def enter(
        self,
        query: str,
        sensitivity: float,
        parts: int,
        *,
        moved: Sequence[int] = (),
        delta: float = 0.0,
        mechanism: str = "laplace",
    ) -> None:
        """Enter the whole price before any noise is drawn, for answers that one unit can move by so many steps each."""
        share = float(rational_epsilon(self.epsilon, parts))
        for steps in moved:
            noise_rate(share, steps)
        self.delta = delta
        if self.ledger is not None:
            self.ledger.spend(
                Cost(
                    f"{query}, {mechanism}",
                    "approximate" if delta else "pure",
                    epsilon=float(self.epsilon),
                    delta=delta,
                    unit=self.unit,  # type: ignore[arg-type]
                    sensitivity=sensitivity,
                    purpose=self.purpose,
                ),
                data=self.data,
            )

    def unweighted(self) -> list[str]:
        """Say that survey weights do not count, where the file has some: one record would move an answer by its own."""
        weight = self.data.roles.weight
        return (
            [f"Weights do not count here, also not those of '{weight}': every record is one."]
            if weight
            else []
        )

    def noise(self, values: Integers, moved: int, parts: int, name: str) -> Noisy:
        """Add noise to whole numbers that one unit can move by so many, for one of several shares of the budget."""
        seed = None if self.seed is None else int(generator(self.seed, "dp", name).integers(2**62))
        share = float(rational_epsilon(self.epsilon, parts))
        return with_laplace_noise(values.astype(np.int64), sensitivity=moved, epsilon=share, seed=seed)

    def answer(
        self,
        name: str,
        value: float | int,
        margin: float | None,
        meaning: str,
        more: Mapping[str, float] | None = None,
        *,
        delta: float = 0.0,
    ) -> Measure:
        """Word the answer and what is claimed of it."""
        claim = DifferentialPrivacy(
            self.epsilon,
            delta,
            against=f"adding or removing one {self.unit}",
            unit=self.unit,  # type: ignore[arg-type]
        )
        guarantee, why = settled(claim, "", seeded=self.seed is not None)
        figures: dict[str, Any] = {"epsilon": float(self.epsilon), **(more or {})}
        if delta:
            figures["delta"] = delta
        if margin is not None:
            figures["margin"] = margin
        caveats = [*self.unweighted(), *([f"No guarantee: {why or SEEDED}"] if guarantee is None else [])]
        return Measure(
            name,
            value,
            figures,
            meaning,
            caveats=caveats,
            parameters={"epsilon": self.epsilon, "delta": delta, "unit": self.unit, "purpose": self.purpose},
            guarantee=guarantee,
            private=stands(claim, seeded=self.seed is not None),
        )
