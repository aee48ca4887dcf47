"""A few records of either outcome behind every dummy, without which its coefficient does not exist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.core.arrays import Flags, Floats
from discreet.synth.from_outputs.codebook import Codebook
from discreet.synth.from_outputs.columns import Factor, evaluated
from discreet.synth.from_outputs.counting import Condition
from discreet.synth.from_outputs.swap_search import Ties


@dataclass(frozen=True, eq=False)
class Floors:
    """What logistic models need of a file, and the tables that may not be touched to give it to them."""

    codebook: Codebook
    floors: Sequence[Condition]
    ties: Ties

    def lift(self, file: Floats, random: np.random.Generator) -> list[str]:
        """Mend the file in place, and name the terms where tables do not allow it."""
        short = []
        for floor in self.floors:
            level, outcome = floor.form.cell
            for _ in range(int(floor.form.value)):
                has_level = evaluated((level,), file) > 0
                has_outcome = evaluated((outcome,), file) > 0
                if (has_level & has_outcome).sum() >= floor.form.value:
                    break
                takers, givers = has_outcome & ~has_level, has_level & ~has_outcome
                spare = givers.sum() > floor.form.value
                if spare and self._exchange(file, level.variable, (takers, givers), random):
                    continue
                if spare and self._exchange(file, outcome.variable, (givers, takers), random):
                    continue
                if not self._give(file, level, takers, random):
                    short.append(floor.figure)
                    break
        return list(dict.fromkeys(short))

    def _exchange(
        self, file: Floats, variable: int, sides: tuple[Flags, Flags], random: np.random.Generator
    ) -> bool:
        """Exchange a variable between one record of either side that agree on all that tables tie to it."""
        tied = np.array(sorted(self.ties.partners[variable]), dtype=np.int64)
        left, right = np.flatnonzero(sides[0]), np.flatnonzero(sides[1])
        for other in random.permutation(right)[:50].tolist():
            agree = left[(file[left][:, tied] == file[other, tied]).all(axis=1)]
            if len(agree):
                one = int(random.choice(agree))
                file[[one, other], variable] = file[[other, one], variable]
                return True
        return False

    def _give(self, file: Floats, level: Factor, takers: Flags, random: np.random.Generator) -> bool:
        """Give one record the level, where no published distribution stands against it."""
        fixed = level.variable in self.ties.published or self.codebook.columns[level.variable].shares
        if fixed or not takers.any():
            return False
        file[int(random.choice(np.flatnonzero(takers))), level.variable] = level.table.index(1.0)
        return True
