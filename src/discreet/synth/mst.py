"""Private synthesis from a tree of two-way margins."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet import dp
from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ParameterError
from discreet.core.method_cards import method
from discreet.dp.entropy import Stream
from discreet.synth import graphical_model
from discreet.synth.graphical_model import Clique, GraphicalModel
from discreet.synth.marginals_model import Alone, Prepared, _FromMargins, allowed_cells

_CHOICE = 0.125  # of the rho of pairs: a tenth of all of it
_KEPT = (
    2**14
)  # cells up to which the table of a pair is kept until one is chosen; larger ones are counted again


@method(
    aim="guarantee",
    work="class-wise",
    references=(
        "McKenna, R., Miklau, G. and Sheldon, D. (2021). Winning the NIST contest: a scalable and general "
        "approach to differentially private synthetic data. Journal of Privacy and Confidentiality 11(3).",
    ),
)
@dataclass(frozen=True)
class MST(_FromMargins):
    """Which records would agree with noisy tables of pairs of columns, chosen so that they say most?

    Every column is counted by itself; pairs of columns are chosen one by one, those that differ most from
    independence first, until they connect all columns in a tree; the pairs are counted; and records are drawn along
    the tree. Counts carry Gaussian noise, choices are made by the exponential mechanism, and the price is added up
    in zero-concentrated differential privacy (McKenna, Miklau and Sheldon 2021, winner of the NIST 2018 challenge).
    Numbers are counted in fine bins that are put together until they stand out from the noise, so that no borders
    need be guessed.

    Also known as: maximum spanning tree; NIST-MST; private-PGM; PGM.

    Parameters
    ----------
    epsilon, delta
        The privacy budget.
    domain
        ``{column: [levels]}``, or ``(low, high)`` for a number. Every column needs one unless its type has it (Enum,
        Boolean): what is read off the data is not protected. Numbers beyond the range count as its end, undeclared
        levels as missing. Whole ends or levels declare whole numbers and ``(0.0, 1.0)``
        decimals: what is drawn has the declared types.
    never_missing
        Columns that cannot be missing. All others may be, whatever the data say.
    bins
        How many fine bins a number is counted in at most; whole numbers of a smaller range have one each.
    borders
        ``{column: [numbers]}``: bins of a number that are public, and are used as they are.
    groups
        About how many groups of bins a number has in the tables of pairs; which bins go together is told by the noisy
        counts.
    impossible
        Combinations that cannot occur, as ``{column: level, column: (low, high)}`` each: public knowledge, never drawn.
    max_cells
        Largest table of a pair.
    records_per_person
        How many records of one person (role ``person`` or ``contributor``) are counted at most, chosen at random; the
        guarantee is then one for persons, and noise grows with this number. Records that do not say whose they are
        count nowhere.
    leave_out
        Columns that the synthetic file shall not have.

    When not to use it
    ------------------
    Relations of three columns at once are kept only as far as they follow from pairs, and numbers only as finely as
    their bins. Under a small budget or with few records most of what is left is the columns by themselves. Without a
    need for a guarantee `Sequential` keeps far more.

    Examples
    --------
    >>> import polars as pl
    >>> from discreet import Microdata
    >>> people = pl.DataFrame({"sex": ["f", "m"] * 500, "works": [True, False] * 500})
    >>> fitted = MST(epsilon=1.0, domain={"sex": ["f", "m"]}).fit(Microdata(people))
    >>> print(fitted.guarantee.split(" for ")[0])
    (1, 1e-06)-differential privacy against adding or removing one record
    >>> fitted.sample(3).frame.shape
    (3, 2)
    """

    def measured(
        self, file: Prepared, alone: Alone, rho: float, stream: Stream
    ) -> tuple[Sequence[Clique], GraphicalModel]:
        """Choose pairs until they connect all columns, and count them."""
        chosen = _tree(self, file, alone, _CHOICE * rho, stream)
        variance = graphical_model.variance_of((1 - _CHOICE) * rho, len(chosen), file.most)
        tables = {
            (a, b): graphical_model.noisy(counts, variance, stream.words("pair", str(place))).reshape(
                alone.sizes[a], alone.sizes[b]
            )
            for place, ((a, b), counts) in enumerate(chosen.items())
        }
        return list(chosen), _model(file, alone, tables, float(variance))


def _model(
    file: Prepared, alone: Alone, pairs: Mapping[tuple[int, int], Floats], variance: float
) -> GraphicalModel:
    """The tables of the tree, made to agree with each other."""
    known = [[margin] for margin in alone.margins]
    for (a, b), table in pairs.items():
        rows, columns = table.shape
        known[a].append((table.sum(axis=1), np.full(rows, variance * columns)))
        known[b].append((table.sum(axis=0), np.full(columns, variance * rows)))
    margins = [graphical_model.best_margin(estimates, alone.records) for estimates in known]
    tree = graphical_model.junction_tree(list(pairs), alone.sizes)
    tables = [
        graphical_model.agreeing(
            pairs[a, b],
            [((0,), margins[a]), ((1,), margins[b])],
            allowed_cells((a, b), file.impossible, file.attributes, alone.groupings),
        )
        for a, b in tree.cliques
    ]
    return GraphicalModel(tree, tuple(tables))


def _tree(
    plan: MST, file: Prepared, alone: Alone, rho: float, stream: Stream
) -> dict[tuple[int, int], Integers]:
    """Choose pairs privately until they connect all columns, and count them; farthest from independence first.

    The distance is the sum of absolute differences from a table of whole numbers that carries noise already; a record
    moves it by one at most.
    """
    codes, sizes = alone.codes, alone.sizes
    estimates = [graphical_model.on_simplex(counts, alone.records) for counts, _ in alone.margins]
    pairs = [
        (a, b)
        for a, b in itertools.combinations(range(len(codes)), 2)
        if sizes[a] * sizes[b] <= plan.max_cells
    ]
    scores = dict.fromkeys(pairs, 0)
    kept: dict[tuple[int, int], Integers] = {}
    for (a, b), counts in graphical_model.counted_pairs(pairs, codes, sizes):
        if len(counts) <= _KEPT:
            kept[a, b] = counts
        expected = np.rint(np.outer(estimates[a], estimates[b]).ravel() / alone.records).astype(np.int64)
        scores[a, b] = int(np.abs(counts - expected).sum())
    # A choice of budget epsilon is epsilon²/8 in rho, because the exponential mechanism is bounded in range.
    each = dp.rational_epsilon(math.sqrt(8 * rho / (len(codes) - 1)))
    component = list(range(len(codes)))
    chosen: list[tuple[int, int]] = []
    words = stream.words("pairs")
    while len(chosen) < len(codes) - 1:
        open_ = [pair for pair in scores if component[pair[0]] != component[pair[1]]]
        if not open_:
            raise ParameterError(
                f"Tables of pairs would pass max_cells={plan.max_cells:,}. Raise it, or declare fewer levels."
            )
        pair = open_[dp.chosen_privately([scores[one] for one in open_], each, file.most, words)]
        chosen.append(pair)
        old, new = component[pair[0]], component[pair[1]]
        component = [new if each_ == old else each_ for each_ in component]
    return {
        pair: kept[pair] if pair in kept else graphical_model.counted(pair, codes, sizes) for pair in chosen
    }
