"""Private synthesis from tables that are chosen one after the other, where the model so far is worst."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from discreet.core.errors import ParameterError
from discreet.core.method_cards import method
from discreet.synth.private_marginals.adaptive import Limits, measured_where_worst, smallest_share
from discreet.synth.private_marginals.from_margins import ALONE, _FromMargins
from discreet.synth.private_marginals.graphical_model import GraphicalModel
from discreet.synth.private_marginals.junction_tree import Clique
from discreet.synth.private_marginals.measuring import check_noise
from discreet.synth.private_marginals.preparing import Alone, Prepared
from discreet.synth.synthesizer import Stream


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
class AIM(_FromMargins):
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
        count as its end, undeclared levels as missing. Whole ends or levels declare whole numbers and ``(0.0, 1.0)``
        decimals: what is drawn has the declared types.
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
    >>> from discreet import Microdata
    >>> people = pl.DataFrame({"sex": ["f", "m"] * 500, "works": [True, False] * 500})
    >>> fitted = AIM(epsilon=1.0, domain={"sex": ["f", "m"]}).fit(Microdata(people))
    >>> print(fitted.guarantee.split(" for ")[0])
    (1, 1e-06)-differential privacy against adding or removing one record
    >>> fitted.sample(3).frame.shape
    (3, 2)
    """

    max_cells: int = 200_000
    order: Literal[2, 3] = 2
    max_seconds: float = 60.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.max_seconds > 0:
            raise ParameterError("max_seconds must be a number of more than 0.")

    def check_budget(self, file: Prepared, rho: float) -> None:
        """Refuse a budget for which noise could not be drawn exactly, also in the smallest round."""
        super().check_budget(file, rho)
        check_noise(smallest_share((1 - ALONE) * rho, len(file.codes)), 1, file.most)

    def measured(
        self, file: Prepared, alone: Alone, rho: float, stream: Stream
    ) -> tuple[Sequence[Clique], GraphicalModel]:
        """Choose tables where the model is worst, round by round."""
        limits = Limits(self.order, self.max_cells, self.max_seconds)
        return measured_where_worst(file, alone, rho, limits, stream)
