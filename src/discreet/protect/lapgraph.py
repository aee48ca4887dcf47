"""Which graph may be published instead of the graph of who knows whom?

LapGraph (Wu et al. 2022): the number of edges gets noise, every pair of people gets noise, and as many pairs as the
noisy number says, those with the largest noisy entries, become the edges that are published.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import partial
from typing import Annotated, Any

import numpy as np

from discreet.core.arrays import Integers
from discreet.core.constraints import Share
from discreet.core.errors import InputError, ParameterError
from discreet.core.guarantees import DifferentialPrivacy, settled
from discreet.core.method_cards import method
from discreet.core.parameters import checked, typed_parameters
from discreet.core.randomness import fresh_seed
from discreet.dp import Ledger, Stream, checked_epsilon, discrete_laplace, rational_epsilon, uniform_below
from discreet.dp.entropy import Words

STEPS = 1 << 10
"""Noise is drawn in steps of this part of an entry; Laplace noise rounded to them is as private as the unrounded."""

MOST_PAIRS = 4_000_000
"""Up to so many pairs all get their noise; beyond, only those that can be among the largest are drawn."""

AGAINST = "adding or removing one edge, or one person with one edge"


@dataclass(frozen=True, repr=False)
class GraphRelease:
    """A graph that may be published.

    Attributes
    ----------
    adjacency
        Sparse, symmetric, zeros and ones.
    guarantee
        What is proved, or None.
    why_none
        Why nothing is claimed, where nothing is.
    epsilon
        The budget it cost.
    """

    adjacency: Any
    guarantee: str | None
    why_none: str
    epsilon: float

    @property
    def edges(self) -> int:
        """How many edges are published."""
        return int(self.adjacency.nnz) // 2

    def __repr__(self) -> str:
        claim = self.guarantee or f"No guarantee: {self.why_none}"
        return f"GraphRelease({self.adjacency.shape[0]:,} nodes, {self.edges:,} edges). {claim}"


@method(
    room="protect",
    aim="guarantee",
    work="whole-file",
    references=(
        "Wu, F., Long, Y., Zhang, C. and Li, B. (2022). LinkTeller: recovering private edges from graph neural "
        "networks via influence analysis. IEEE Symposium on Security and Privacy, 2005–2024. "
        "doi:10.1109/SP46214.2022.9833806",
    ),
)
@dataclass(frozen=True)
@partial(typed_parameters, where=lambda _: "LapGraph")
class LapGraph:
    """Publish a graph with noise on the number of edges and on every pair.

    It protects against telling from the published graph whether two people are connected, or whether somebody with one
    connection is in it at all. The number of people is public.

    Also known as: LapGraph; edge differential privacy; EdgeDP.

    Parameters
    ----------
    epsilon
        The budget of one release. Every release of a changed graph (after somebody joined) costs it again.
    split
        The share of it for the number of edges.
    directed
        Whether edges have a direction: then every ordered pair is an entry.
    symmetrize
        Take an edge that stands in one direction only as one in both, instead of refusing it.

    What it costs
    -------------
    True edges are lost and false ones come in: `lapgraph_expected_recall` says how many are kept. At a fixed epsilon
    the share falls with the number of people, because the false candidates grow with its square: of 500 people with
    2,000 edges 67 % are kept at epsilon 5, of a million with ten million edges about 5 % at epsilon 8.

    When not to use it
    ------------------
    Do not use it to hide people with many connections: somebody with k edges has k times the epsilon. Do not publish a
    large sparse graph with a small epsilon: what is left of it is noise.

    Examples
    --------
    >>> from scipy import sparse
    >>> ring = sparse.csr_array((np.ones(6), ([0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2])), shape=(10, 10))
    >>> shown = LapGraph(epsilon=20.0).apply(ring)
    >>> shown.guarantee
    '20-differential privacy against adding or removing one edge, or one person with one edge.'
    """

    epsilon: float
    split: Annotated[float, Share(above=True, below=True)] = 0.01
    directed: bool = False
    symmetrize: bool = False

    def __post_init__(self) -> None:
        checked_epsilon(self.epsilon)

    def apply(self, adjacency: Any, *, ledger: Ledger | None = None, seed: int | None = None) -> GraphRelease:
        """Draw the graph to be published.

        Parameters
        ----------
        adjacency
            A sparse or dense matrix of zeros and ones, without loops.
        ledger
            The budget of the graph: the release is entered before noise is drawn, or refused.
        seed
            For tests and teaching. Whoever knows it can take the noise off, so nothing is claimed.
        """
        pairs = _Pairs.of(adjacency, directed=self.directed, symmetrize=self.symmetrize)
        for_count = rational_epsilon(Fraction(self.epsilon) * Fraction(self.split))
        step = rational_epsilon((Fraction(self.epsilon) - for_count) / STEPS)
        claim = DifferentialPrivacy(self.epsilon, against=AGAINST)
        stream = Stream(
            fresh_seed() if seed is None else seed, "lap-graph", seeded=seed is not None, ledger=ledger
        )
        stream.enter(claim, purpose="release of a graph")
        # Two streams: the same bits for the number and for the pairs would void the sum of the two budgets.
        many = len(pairs.edges) + int(discrete_laplace(for_count, 1, stream.words("number of edges"))[0])
        wanted = min(max(many, 0), pairs.count)
        kept = _largest(pairs, step, wanted, stream.words("pairs"))
        guarantee, why = settled(claim, "", seeded=seed is not None)
        return GraphRelease(pairs.graph(kept), guarantee, why, self.epsilon)


@checked
def lapgraph_expected_recall(
    n: int, m: int, epsilon: float, split: Annotated[float, Share(above=True, below=True)] = 0.01
) -> float:
    """Which share of the true edges does LapGraph keep, in expectation?

    The largest entries are cut off at a height t with m S(t - 1) + M S(t) = m, where S is the chance of Laplace noise
    to be that large and M the number of pairs without an edge; S(t - 1) of the edges lie above it.

    Parameters
    ----------
    n, m
        Numbers of people and of edges.
    epsilon, split
        As in `LapGraph`.

    Examples
    --------
    >>> round(lapgraph_expected_recall(500, 2000, 5.0), 3)
    0.67
    """
    checked_epsilon(epsilon)
    if n < 2 or not 0 <= m <= n * (n - 1) // 2:
        raise ParameterError("n must be 2 or more, and m a number of edges that so many people can have.")
    others = n * (n - 1) / 2 - m
    if m == 0 or others == 0:
        return 1.0
    scale = epsilon * (1 - split)

    def above(t: float) -> float:
        return 0.5 * math.exp(-scale * t) if t >= 0 else 1 - 0.5 * math.exp(scale * t)

    low, high = -60.0 / scale, 1 + (60.0 + math.log(others)) / scale
    for _ in range(200):
        middle = (low + high) / 2
        if m * above(middle - 1) + others * above(middle) > m:
            low = middle
        else:
            high = middle
    return above(low - 1)


@dataclass(frozen=True)
class _Pairs:
    """The pairs that may be edges, numbered: those of the upper triangle, or all ordered ones."""

    people: int
    edges: Integers
    directed: bool

    @property
    def count(self) -> int:
        """How many pairs there are."""
        ordered = self.people * (self.people - 1)
        return ordered if self.directed else ordered // 2

    @staticmethod
    def of(adjacency: Any, *, directed: bool, symmetrize: bool) -> _Pairs:
        """Number the edges of a matrix, after checking that it is one of a graph."""
        matrix = _zeros_and_ones(adjacency)
        people = int(matrix.shape[0])
        turned = matrix.T.tocsr()
        if matrix.diagonal().any():
            raise ParameterError("adjacency has loops: people connected with themselves. Take them out.")
        if directed:
            row, column = _places(matrix)
            return _Pairs(people, row * (people - 1) + column - (column > row), directed=True)
        if not (
            np.array_equal(matrix.indptr, turned.indptr) and np.array_equal(matrix.indices, turned.indices)
        ):
            if not symmetrize:
                raise ParameterError(
                    "adjacency is not symmetric: some edges stand in one direction only. Say symmetrize=True to take "
                    "them as edges in both, or directed=True."
                )
            matrix = matrix + turned
        row, column = _places(matrix)
        upper = row < column
        return _Pairs(people, _number(row[upper], column[upper], people), directed=False)

    def graph(self, numbers: Integers) -> Any:
        """The matrix of some pairs."""
        from scipy import sparse

        if self.directed:
            row, column = np.divmod(numbers, self.people - 1)
            column = column + (column >= row)
        else:
            row, column = _ends(numbers, self.people)
        # The numbers are sorted, so the rows are too: where each begins is all that is left to find.
        begins = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=self.people))])
        made = sparse.csr_array(
            (np.ones(len(row), dtype=np.int8), column, begins), shape=(self.people, self.people)
        )
        return made if self.directed else made + made.T.tocsr()


def _zeros_and_ones(adjacency: Any) -> Any:
    """Read a square matrix of zeros and ones as sparse rows whose columns stand in order."""
    from scipy import sparse

    ready = sparse.issparse(adjacency) and adjacency.format == "csr" and adjacency.has_canonical_format
    try:
        matrix = sparse.csr_array(adjacency) if ready else sparse.coo_array(adjacency)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            "adjacency must be a square matrix of zeros and ones, sparse or dense."
        ) from error
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ParameterError("adjacency must be square: one row and one column a person.")
    if matrix.shape[0] < 2:
        raise InputError("A graph needs at least 2 people.")
    there = matrix.data != 0
    if not (matrix.data[there] == 1).all():
        raise ParameterError(
            "adjacency must hold zeros and ones; weights and repeated edges are not published."
        )
    if ready and there.all():
        return matrix
    matrix = matrix.tocoo()
    rows = sparse.csr_array(
        (np.ones(int(there.sum()), dtype=np.int8), (matrix.row[there], matrix.col[there])), shape=matrix.shape
    )
    if rows.nnz < int(there.sum()):
        raise ParameterError("adjacency lists an edge twice. List each once.")
    # Turned over twice, the columns of every row stand in order; a sort of all edges would take longer.
    return rows.T.tocsr().T.tocsr()


def _places(matrix: Any) -> tuple[Integers, Integers]:
    """The row and the column of every entry, row after row."""
    rows = np.repeat(np.arange(matrix.shape[0], dtype=np.int64), np.diff(matrix.indptr))
    return rows, matrix.indices.astype(np.int64)


def _number(low: Integers, high: Integers, people: int) -> Integers:
    """Number the pairs of the strict upper triangle, row after row."""
    return np.asarray(low * (2 * people - low - 1) // 2 + high - low - 1)


def _ends(numbers: Integers, people: int) -> tuple[Integers, Integers]:
    """The two people of each numbered pair."""
    # From the end the rows have 1, 2, 3 … pairs; the root of a float may be one off, which is put right.
    back = people * (people - 1) // 2 - 1 - numbers
    k = ((np.sqrt(8.0 * back + 1) - 1) / 2).astype(np.int64)
    k += (k + 1) * (k + 2) // 2 <= back
    k -= k * (k + 1) // 2 > back
    low = people - 2 - k
    return low, people - 1 - (back - k * (k + 1) // 2)


def _largest(pairs: _Pairs, step: Fraction, wanted: int, words: Words) -> Integers:
    """The pairs with the largest noisy entries, as many as wanted; among equal ones lots decide."""
    if not wanted:
        return np.empty(0, dtype=np.int64)
    own = STEPS + rounded_noise(step, len(pairs.edges), words)
    if pairs.count <= MOST_PAIRS:
        values = rounded_noise(step, pairs.count, words)
        values[pairs.edges] = own
        return _top(np.arange(pairs.count), values, wanted, words)
    height = _height(pairs.count, step, wanted)
    seen = rare_places(tail_chance(step, Fraction(height)), pairs.count, words)
    values = height + waiting_steps(fixed_rate(step), len(seen), words)
    free = ~np.isin(seen, pairs.edges)
    places, values = seen[free], values[free]
    while True:
        above = own >= height
        if len(places) + int(above.sum()) >= wanted:
            break
        # Too few lie so high: those of the next slab are drawn, given that they are in none above.
        lower = height - max(int(1 / step), 1)
        if lower < 1:
            raise ParameterError(
                "epsilon is too small for a graph of this size: almost every pair would be drawn. Raise it."
            )
        more = rare_places(slab_chance(step, Fraction(lower), Fraction(height)), pairs.count, words)
        more = more[~np.isin(more, pairs.edges) & ~np.isin(more, places)]
        places = np.concatenate([places, more])
        values = np.concatenate([values, lower + _below(step, height - lower, len(more), words)])
        height = lower
    return _top(
        np.concatenate([places, pairs.edges[above]]), np.concatenate([values, own[above]]), wanted, words
    )


def _below(step: Fraction, bound: int, size: int, words: Words) -> Integers:
    """One-sided noise, given that it is below a bound."""
    made = np.empty(size, dtype=np.int64)
    own = np.arange(size)
    while len(own):
        drawn = waiting_steps(fixed_rate(step), len(own), words)
        kept = drawn < bound
        made[own[kept]] = drawn[kept]
        own = own[~kept]
    return made


def _height(count: int, step: Fraction, wanted: int) -> int:
    """A height above which enough pairs lie by noise alone; any would do, a lower one costs more draws."""
    enough = wanted + 6 * math.sqrt(wanted) + 10
    return max(1, math.floor(0.5 + math.log(max(count / (2 * enough), 1.0)) / float(step)))


def _top(places: Integers, values: Integers, wanted: int, words: Words) -> Integers:
    if wanted >= len(places):
        return np.sort(places)
    cut = len(values) - wanted
    edge = np.partition(values, cut)[cut]
    sure, doubt = places[values > edge], np.sort(places[values == edge])
    lots = uniform_below(2**63, len(doubt), words)
    return np.sort(np.concatenate([sure, doubt[np.argsort(lots, kind="stable")[: wanted - len(sure)]]]))


# A coin of chance p is tossed for every one of 10^11 places, and only the few that come up are wanted. The gaps between
# them are geometric: at least k coins fail before one comes up with chance (1 - p)^k, so a gap is a waiting time of
# rate -log(1 - p) (`waiting_steps`), and no law of a proof is bent by rounding.


Chance = Callable[[Context], Decimal]
"""Works a chance out to the digits of a context."""

_PLACES_AT_ONCE = 1 << 20


def tail_chance(rate: Fraction, steps: Fraction) -> Chance:
    """The chance that rounded Laplace noise is at least so many steps: half of exp(-rate * (steps - 1/2)).

    Examples
    --------
    >>> float(tail_chance(Fraction(1), Fraction(1))(Context(prec=30)))
    0.3032653298563167
    """
    power = rate * (steps - Fraction(1, 2))

    def worked_out(context: Context) -> Decimal:
        exponent = context.divide(Decimal(-power.numerator), Decimal(power.denominator))
        return context.divide(context.exp(exponent), Decimal(2))

    return worked_out


def slab_chance(rate: Fraction, low: Fraction, high: Fraction) -> Chance:
    """The chance that noise is at least ``low`` steps, given that it is below ``high``."""
    above_low, above_high = tail_chance(rate, low), tail_chance(rate, high)

    def worked_out(context: Context) -> Decimal:
        upper = above_high(context)
        return context.divide(
            context.subtract(above_low(context), upper), context.subtract(Decimal(1), upper)
        )

    return worked_out


def rare_places(chance: Chance, places: int, words: Words) -> Integers:
    """The places, from 0 to ``places`` - 1 and in order, whose coins of this chance come up.

    Examples
    --------
    >>> from discreet.dp import os_words
    >>> found = rare_places(lambda context: Decimal("0.01"), 100_000, os_words)
    >>> 800 < len(found) < 1200, bool((np.diff(found) > 0).all())
    (True, True)
    """
    p = float(chance(Context(prec=40)))

    def rate(context: Context) -> Decimal:
        return -context.ln(context.subtract(Decimal(1), chance(context)))

    parts, last = [], -1
    while last < places:
        left = places - 1 - last
        many = min(int(left * p + 4 * math.sqrt(left * p) + 16), _PLACES_AT_ONCE)
        gaps = waiting_steps(rate, many, words)
        # A gap longer than all places ends the search; summing such ones would overflow.
        at = last + np.cumsum(np.minimum(gaps, places) + 1)
        parts.append(at)
        last = int(at[-1])
    found = np.concatenate(parts)
    return found[found < places]


# How many whole steps does an exponential waiting time last? Millions of draws, one logarithm each, and no law bent.
#
# A uniform number U of 64 binary digits gives the time -log U; divided by the rate of a step and rounded down it is a
# geometric number. Double precision says the whole number for certain, except where the quotient lies so near the next
# one that rounding, or the digits of U not drawn yet, could decide: there, once in some 10^10 draws, more digits of U
# are drawn and the logarithm is worked out to as many digits as it takes. So the law is exactly the one that a proof
# speaks of.
Rate = Callable[[Context], Decimal]
"""Works the rate of one step out to the digits of a context."""

_STEPS_AT_ONCE = 1 << 18  # draws that fit into the cache of a processor
_DIGITS = 64
# How far double precision may be off: in the quotient, relative to it; and in the logarithm, near one. Both are many
# times what NumPy promises.
_QUOTIENT = 2.0**-46
_LOGARITHM = 2.0**-50
# Steps: whoever waits longer is said to wait so long, and numbers stay within a machine word.
_LONGEST = 2.0**62


def fixed_rate(rate: Fraction) -> Rate:
    """The rate of a step that is a fraction."""
    return lambda context: context.divide(Decimal(rate.numerator), Decimal(rate.denominator))


def waiting_steps(rate: Rate, size: int, words: Words, *, ahead: Fraction = Fraction(0)) -> Integers:
    """Draw whole steps: the time over a step, ``ahead`` of a step added, rounded down.

    At least k steps are drawn with chance exp(-rate (k - ahead)), for every k above 0.

    Examples
    --------
    >>> from discreet.dp import os_words
    >>> 0.55 < float(waiting_steps(fixed_rate(Fraction(1)), 100_000, os_words).mean()) < 0.62
    True
    """
    near, early = float(rate(Context(prec=60))), float(ahead)
    made = np.empty(size, dtype=np.int64)
    for start in range(0, size, _STEPS_AT_ONCE):
        digits = words(min(_STEPS_AT_ONCE, size - start))
        middle = digits.astype(np.float64) + 0.5
        steps = (_DIGITS * math.log(2) - np.log(middle)) / near
        off = steps * _QUOTIENT + (_LOGARITHM + 1 / middle) / near
        least = np.minimum(np.floor(np.maximum(steps - off, 0.0) + early), _LONGEST)
        most = np.minimum(np.floor(steps + off + early), _LONGEST)
        drawn = least.astype(np.int64)
        for place in np.flatnonzero(least != most):
            drawn[place] = _worked_out(rate, int(digits[place]), ahead, words)
        made[start : start + len(drawn)] = drawn
    return made


def rounded_noise(rate: Fraction, size: int, words: Words) -> Integers:
    """Draw Laplace noise of scale 1/``rate``, rounded to the nearest whole number: the law of `dp.rounded_laplace`.

    Examples
    --------
    >>> from discreet.dp import os_words
    >>> abs(float(rounded_noise(Fraction(1), 100_000, os_words).mean())) < 0.05
    True
    """
    away = waiting_steps(fixed_rate(rate), size, words, ahead=Fraction(1, 2))
    coins = np.unpackbits(words(-(-size // _DIGITS)).view(np.uint8))[:size]
    return np.where(coins == 1, -away, away)


def _worked_out(rate: Rate, first: int, ahead: Fraction, words: Words) -> int:
    """Draw digits of the uniform number until both ends of what it can be give the same whole number of steps."""
    digits, precision = _DIGITS, 60
    while True:
        first, digits, precision = (first << 64) | int(words(1)[0]), digits + 64, 2 * precision
        if not first:
            continue
        context = Context(prec=precision)
        step = rate(context)
        early = context.divide(Decimal(ahead.numerator), Decimal(ahead.denominator))
        ends = []
        for end in (first + 1, first):
            # Both logarithms are taken of whole numbers: their difference has lost no more than twenty digits.
            time = context.subtract(context.ln(Decimal(2**digits)), context.ln(Decimal(end)))
            ends.append(context.divide(time, step))
        off = Decimal(10) ** (40 - precision) * (1 + 1 / step)
        least = math.floor(context.add(max(context.subtract(ends[0], off), Decimal(0)), early))
        if least == math.floor(context.add(context.add(ends[1], off), early)):
            return least
