"""Private synthesis from tables that are chosen one after the other, where the model so far is worst."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from discreet import dp
from discreet.dp.entropy import refuse_seeded
from discreet.errors import ParameterError
from discreet.method_cards import method
from discreet.microdata import Columns, Microdata
from discreet.randomness import Seed
from discreet.synth.bayesian_network.coding import levels_of
from discreet.synth.private_marginals.adaptive import Limits, measured_where_worst, smallest_share
from discreet.synth.private_marginals.fitted_marginals import FittedMarginals
from discreet.synth.private_marginals.measuring import check_noise
from discreet.synth.private_marginals.preparing import check_parameters, measured_alone, prepared
from discreet.synth.synthesizer import Stream, Synthesizer, empty_like, seed_of

_ALONE = 0.2  # of rho: columns by themselves


@method(
    aim="guarantee",
    work="class-wise",
    references=(
        "McKenna, R., Mullins, B., Sheldon, D. and Miklau, G. (2022). AIM: an adaptive and iterative "
        "mechanism for differentially private synthetic data. Proceedings of the VLDB Endowment 15(11), "
        "2599–2612.",
    ),
)
@dataclass(frozen=True)
class AIM(Synthesizer):
    """Which records would agree with noisy tables, each chosen where the records so far were farthest off?

    Every column is counted by itself. Then, round by round, records are drawn from the model so far; the table in
    which they are farthest from the data, beyond what its noise would spoil, is chosen privately; it is counted with
    noise; and the model is fitted again to all tables. Where a table taught little, later rounds get more of the
    budget. The model is the most even law with these tables, worked out exactly on a junction tree; unlike `MST` its
    tables may overlap in circles. Counts carry Gaussian noise, choices are made by the exponential mechanism, and the
    price is added up in zero-concentrated differential privacy (McKenna, Mullins, Sheldon and Miklau 2022).

    Parameters
    ----------
    epsilon, delta
        The privacy budget.
    domain
        ``{column: [levels]}``, or ``(low, high)`` for a number. Every column needs one unless its type has it (Enum,
        Boolean) or it is given under ``borders``: what is read off the data is not protected. Numbers beyond the range
        count as its end, undeclared levels as missing.
    never_missing
        Columns that cannot be missing. All others may be, whatever the data say.
    bins
        How many fine bins a number is counted in at most; whole numbers of a smaller range have one each.
    borders
        ``{column: [numbers]}``: bins of a number that are public, and are used as they are.
    groups
        About how many groups of bins a number has in tables; which bins go together is told by the noisy counts.
    impossible
        Combinations that cannot occur, as ``{column: level, column: (low, high)}`` each: public knowledge, never drawn.
    order
        Tables of how many columns are chosen from, 2 or 3.
    max_cells
        How many cells the model may have in all; memory and time follow from it.
    max_seconds
        About how many seconds of an ordinary core the rounds may take. Work is counted (cells visited, records drawn)
        and no clock is read, because how long something takes depends on the data, and what depends on the data
        without noise is not protected. Counting the records themselves comes on top.
    records_per_person
        How many records of one person (role ``person`` or ``contributor``) are counted at most, chosen at random; the
        guarantee is then one for persons, and noise grows with this number. Records that do not say whose they are
        count nowhere.
    leave_out
        Columns that the synthetic file shall not have.

    When not to use it
    ------------------
    Numbers are kept only as finely as their bins. Under a very small budget, or with few records, `MST` is about as
    good and faster. Without a need for a guarantee `Sequential` keeps far more.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"sex": ["f", "m"] * 500, "works": [True, False] * 500})
    >>> fitted = AIM(epsilon=1.0, domain={"sex": ["f", "m"]}).fit(Microdata(people))
    >>> print(fitted.guarantee.split(" for ")[0])
    (1, 1e-06)-differential privacy against adding or removing one record
    >>> fitted.sample(3).frame.shape
    (3, 2)
    """

    epsilon: float
    delta: float = 1e-6
    domain: Mapping[str, Any] | None = None
    never_missing: Columns = None
    bins: int = 128
    borders: Mapping[str, Sequence[Any]] | None = None
    groups: int = 16
    impossible: Sequence[Mapping[str, Any]] | None = None
    order: Literal[2, 3] = 2
    max_cells: int = 200_000
    max_seconds: float = 60.0
    records_per_person: int = 1
    leave_out: Columns = None

    def __post_init__(self) -> None:
        check_parameters(self, {"max_cells": 4})
        if not self.max_seconds > 0:
            raise ParameterError("max_seconds must be a number of more than 0.")

    def fit(
        self,
        data: Microdata,
        *,
        progress: bool = False,
        ledger: dp.Ledger | None = None,
        seed: Seed = None,
    ) -> FittedMarginals:
        """Measure the file; with a ledger the price is entered before noise is drawn."""
        refuse_seeded(ledger, seed)
        file = prepared(self, data, fewest=2)
        rho = dp.largest_rho(self.epsilon, self.delta)
        check_noise(_ALONE * rho, len(file.codes), file.most)
        check_noise(smallest_share((1 - _ALONE) * rho, len(file.codes)), 1, file.most)
        if ledger is not None:
            ledger.spend(file.cost("aim", self))
        stream = Stream(seed_of(seed), "aim", seeded=seed is not None)
        codes = file.bounded(stream.words("whose"))
        alone = measured_alone(self, file, codes, _ALONE * rho, stream)
        limits = Limits(self.order, self.max_cells, self.max_seconds)
        chosen, model = measured_where_worst(file, alone, (1 - _ALONE) * rho, limits, stream)
        fitted = FittedMarginals(
            empty_like(data, file.frame, levels_of(file.attributes)),
            max(round(alone.records), 1),
            attributes=file.attributes,
            groupings=alone.groupings,
            chosen=chosen,
            model=model,
            impossible=file.impossible,
            left_out=file.left_out,
        )
        return fitted.promise(file.claim(self), seeded=stream.seeded, ledger=ledger)
