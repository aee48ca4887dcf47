"""Private synthesis from tables that are chosen one after the other, where the model so far is worst."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

import numpy as np

from discreet import dp
from discreet.core.arrays import Floats, Integers
from discreet.core.constraints import Above, AtLeast
from discreet.core.errors import ParameterError
from discreet.core.method_cards import method
from discreet.dp.entropy import Stream
from discreet.synth import graphical_model
from discreet.synth.graphical_model import Clique, GraphicalModel, variance_of
from discreet.synth.marginals_model import ALONE, Alone, Prepared, _FromMargins, allowed_cells


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

    Also known as: adaptive iterative mechanism.

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

    max_cells: Annotated[int, AtLeast(4)] = 200_000
    order: Literal[2, 3] = 2
    max_seconds: Annotated[float, Above(0)] = 60.0

    def check_budget(self, file: Prepared, rho: float) -> None:
        """Refuse a budget for which noise could not be drawn exactly, also in the smallest round."""
        super().check_budget(file, rho)
        graphical_model.check_noise(smallest_share((1 - ALONE) * rho, len(file.codes)), 1, file.most)

    def measured(
        self, file: Prepared, alone: Alone, rho: float, stream: Stream
    ) -> tuple[Sequence[Clique], GraphicalModel]:
        """Choose tables where the model is worst, round by round."""
        return measured_where_worst(file, alone, rho, self, stream)


# Rounds of choosing a table where the model is worst, counting it with noise, and fitting the model again.
#
# Every round has a share of rho, most of it for the count and the rest for the choice. How large the next share is,
# which tables are still open and when the rounds end follows from noisy tables and declared limits alone, and all
# shares add up to the rho given, which is what a budget that is divided as one goes needs (Feldman and Zrnic 2021).
# Records that the model draws to be compared with the data cost nothing: the model is made of noisy tables.
_CHOICE = 0.1  # of the share of a round
_ROUNDS_A_COLUMN = 4  # at the first share; shares grow when tables teach little
_WALKS, _LAST_WALKS = 8, 50
_DRAWN = 100_000
_MEAN_SIZE = math.sqrt(2 / math.pi)  # of standard normal noise
_HIDDEN = 0.1  # of the spread: what is left of noise on an empty cell once negative counts are gone
_A_SECOND = 25e6  # cells visited or numbers drawn, about what an ordinary core does


@dataclass
class _Budget:
    """What is left of rho, and the share of the next round."""

    left: float
    share: float

    def taken(self, *, last: bool) -> float:
        """The share of this round; the last one takes all, and nothing is left that would pay for less than a round."""
        if last or self.left < 2 * self.share:
            self.share = self.left
        self.left -= self.share
        if self.left < 1e-9 * self.share:
            self.left = 0.0
        return self.share


def smallest_share(rho: float, columns: int) -> float:
    """What the count of a table gets of rho at least."""
    return (1 - _CHOICE) * rho / (_ROUNDS_A_COLUMN * columns)


def measured_where_worst(
    file: Prepared, alone: Alone, rho: float, plan: AIM, stream: Stream
) -> tuple[list[Clique], GraphicalModel]:
    """Choose and count tables for rho, and give them with the model fitted to all of them."""
    state = _Knowledge(file, alone)
    counts = _candidates(alone, plan)
    reach = max(weight for weight, _ in counts.values())
    budget = _Budget(rho, rho / (_ROUNDS_A_COLUMN * len(alone.sizes)))
    chosen: list[Clique] = []
    model = state.fitted(1)
    work = 0.0
    words = stream.words("tables")
    for number in itertools.count():
        done = number > 0 and work * (number + 1) / number > plan.max_seconds * _A_SECOND
        share = budget.taken(last=done)
        variance = variance_of((1 - _CHOICE) * share, 1, file.most)
        open_ = _within(counts, state, model, plan.max_cells, used=1 - budget.left / rho)
        drawn = model.drawn(_DRAWN, stream("drawn", str(number)))
        expected = {
            columns: graphical_model.counted(columns, drawn, alone.sizes).astype(np.float64)
            * (alone.records / _DRAWN)
            for columns in open_
        }
        scores = [
            Fraction(counts[columns][0], reach)
            * _score(counts[columns][1], expected[columns], math.sqrt(variance))
            for columns in open_
        ]
        # A choice of budget epsilon is epsilon²/8 in rho, because the exponential mechanism is bounded in range.
        epsilon = dp.rational_epsilon(math.sqrt(8 * _CHOICE * share))
        columns = open_[dp.chosen_privately(scores, epsilon, file.most, words)]
        truth = counts[columns][1]
        noise = dp.discrete_gaussian(variance, len(truth), stream.words("table", str(number)))
        state.learn(columns, (truth + noise).astype(np.float64), float(variance))
        chosen.append(columns)
        model = state.fitted(_WALKS)
        work += 4 * _WALKS * sum(table.size for table in model.tables)
        work += _DRAWN * (2 * len(alone.sizes) + len(open_))
        if budget.left <= 0:
            break
        moved = float(np.abs(model.margin(columns).ravel() * alone.records - expected[columns]).sum())
        if moved <= _spoiled(expected[columns], math.sqrt(variance)):
            budget.share *= 4
    return list(dict.fromkeys(chosen)), state.fitted(_LAST_WALKS)


class _Knowledge:
    """Noisy tables so far."""

    def __init__(self, file: Prepared, alone: Alone) -> None:
        self.file, self.alone = file, alone
        self.tables: dict[Clique, tuple[Floats, float]] = {}
        self._margins = [[margin] for margin in alone.margins]

    def learn(self, columns: Clique, counts: Floats, variance: float) -> None:
        """Take in a noisy table; one that was counted before is averaged by precision."""
        sizes = [self.alone.sizes[column] for column in columns]
        table = counts.reshape(sizes)
        for at, column in enumerate(columns):
            others = tuple(axis for axis in range(len(columns)) if axis != at)
            spread = variance * table.size / sizes[at]
            self._margins[column].append((table.sum(axis=others), np.full(sizes[at], spread)))
        if columns in self.tables:
            before, its = self.tables[columns]
            weight = its / (its + variance)
            table, variance = before + weight * (table - before), its * variance / (its + variance)
        self.tables[columns] = table, variance

    def fitted(self, walks: int) -> GraphicalModel:
        """The most even law with all tables, after they were made to agree."""
        records, sizes = self.alone.records, self.alone.sizes
        margins = [graphical_model.best_margin(estimates, records) for estimates in self._margins]
        targets: dict[Clique, Floats] = {(at,): margin / records for at, margin in enumerate(margins)}
        zeros: dict[Clique, Floats] = {}
        for columns in sorted(self.tables, key=len):
            wanted: list[tuple[tuple[int, ...], Floats]] = [
                ((at,), margins[column]) for at, column in enumerate(columns)
            ]
            for axes in itertools.combinations(range(len(columns)), 2) if len(columns) > 2 else ():
                pair = tuple(columns[axis] for axis in axes)
                if pair in targets:
                    wanted.append((axes, targets[pair] * records))
            allowed = allowed_cells(columns, self.file.impossible, self.file.attributes, self.alone.groupings)
            if allowed is not None:
                zeros[columns] = allowed
            targets[columns] = graphical_model.agreeing(self.tables[columns][0], wanted, allowed) / records
        tree = graphical_model.junction_tree(list(self.tables), sizes)
        return GraphicalModel.fitted(tree, sizes, targets, walks, zeros)


def _candidates(alone: Alone, plan: AIM) -> dict[Clique, tuple[int, Integers]]:
    """Tables that may be chosen, each with its weight and its true counts; the counts never leave the rounds.

    The weight is how many columns a table shares with the tables one wants to be right, which are all of that order.
    """
    many = len(alone.sizes)
    order = min(plan.order, many)
    found: dict[Clique, tuple[int, Integers]] = {}
    for size in range(2, order + 1):
        # Every set of as many columns is alike: the weight depends on the number of columns alone.
        weight = sum(
            shared * math.comb(size, shared) * math.comb(many - size, order - shared)
            for shared in range(1, size + 1)
        )
        for columns in itertools.combinations(range(many), size):
            cells = math.prod(alone.sizes[column] for column in columns)
            if cells <= plan.max_cells:
                found[columns] = weight, graphical_model.counted(columns, alone.codes, alone.sizes)
    if not found:
        raise ParameterError(
            f"Every table would pass max_cells={plan.max_cells:,}. Raise it, or declare fewer levels."
        )
    return found


def _within(
    counts: dict[Clique, tuple[int, Integers]],
    state: _Knowledge,
    model: GraphicalModel,
    limit: int,
    used: float,
) -> list[Clique]:
    """The tables that the model can still take: its size may grow as the budget is used up."""
    held = [set(clique) for clique in model.tree.cliques]
    needed = {
        columns: 0
        if any(set(columns) <= clique for clique in held)
        else graphical_model.cells_needed([*state.tables, columns], state.alone.sizes)
        for columns in counts
    }
    fitting = [columns for columns in counts if needed[columns] <= used * limit]
    if fitting:
        return fitting
    # Before the first table none is held yet; from then on there is always one that adds no cell.
    smallest = min(needed, key=lambda columns: needed[columns])
    if needed[smallest] > limit:
        raise ParameterError(
            f"The model would pass max_cells={limit:,} with any table. Raise it, or declare fewer levels."
        )
    return [smallest]


def _score(counts: Integers, expected: Floats, spread: float) -> int:
    """How far a table is off beyond what its noise would spoil; a record moves it by one at most.

    Both sides are whole numbers, so that nothing is rounded when a record is added.
    """
    off = int(np.abs(counts - np.rint(expected).astype(np.int64)).sum())
    return off - round(_spoiled(expected, spread))


def _spoiled(expected: Floats, spread: float) -> float:
    """About how far a noisy table is off once negative counts are gone: cells that are nearly empty gain little."""
    return float(np.minimum(_MEAN_SIZE * spread, expected + _HIDDEN * spread).sum())
