"""Where do random numbers come from? The operating system, or a seed for draws that must be repeated; exact coins."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Flags, Integers
from discreet.core.errors import ParameterError
from discreet.core.guarantees import DifferentialPrivacy
from discreet.core.randomness import KeyedDraws, generator
from discreet.dp.costs import Spend, refuse_seeded
from discreet.dp.ledger import Ledger
from discreet.microdata import Microdata

Words = Callable[[int], npt.NDArray[np.uint64]]
"""Gives so many uniform words of 64 bits; every call gives new ones."""

_WORDS_AT_ONCE = 1 << 22


def os_words(size: int) -> npt.NDArray[np.uint64]:
    """Draw words from the operating system; only such draws carry a guarantee.

    Examples
    --------
    >>> len(os_words(3)), bool((os_words(4) == os_words(4)).all())
    (3, False)
    """
    if size == 1:
        return np.frombuffer(bytearray(os.urandom(8)), dtype=np.uint64)
    # One call may be cut short by the kernel's limit; pieces of 32 MB are below it everywhere.
    parts = [
        np.frombuffer(os.urandom(8 * min(_WORDS_AT_ONCE, size - start)), dtype=np.uint64)
        for start in range(0, size, _WORDS_AT_ONCE)
    ]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)


def seeded_words(rng: np.random.Generator) -> Words:
    """Draw words from a seeded generator: the same law of the draws, and no guarantee.

    Examples
    --------
    >>> one, other = (seeded_words(np.random.default_rng(1)) for _ in range(2))
    >>> bool((one(5) == other(5)).all())
    True
    """

    def words(size: int) -> npt.NDArray[np.uint64]:
        return rng.integers(0, 2**64, size=size, dtype=np.uint64)

    return words


class Account:
    """The ledger that a treatment, table or model is entered into, and whether it was.

    Noise that a guarantee rests on is not drawn before the price is entered: who would draw first, and be refused, has
    looked at the data for nothing that was paid.
    """

    def __init__(self, ledger: Ledger | None, *, seeded: bool, data: Microdata | None = None) -> None:
        refuse_seeded(ledger, True if seeded else None)
        self.ledger = ledger
        self.data = data
        self.entered = False

    def enter(self, claim: DifferentialPrivacy | None, why_none: str, mechanism: str, purpose: str) -> None:
        """Enter the price of a claim, or refuse what claims nothing."""
        if self.ledger is None:
            return
        if claim is None:
            raise ParameterError(
                f"A ledger takes releases with a guarantee, and {mechanism} makes none here: {why_none}"
            )
        spend = Spend(
            float(claim.epsilon),
            claim.delta,
            self.ledger,
            purpose,
            unit=claim.unit,
            adjacency=claim.adjacency,
        )
        spend.enter(spend.cost(mechanism), data=self.data)
        self.entered = True

    def settle(self, mechanism: str) -> None:
        """Refuse what was to be entered into a ledger and was not."""
        if self.ledger is not None and not self.entered:
            raise ParameterError(
                f"A ledger takes releases with a guarantee, and {mechanism} makes none. Leave out the ledger."
            )


class Stream:
    """The random numbers of one treatment, table or file.

    ``stream("name")`` opens a named child generator, ``stream.keyed("name")`` draws that belong to records;
    ``stream.words("name")`` gives bits for the draws that a guarantee rests on: from the operating system, unless the
    user gave a seed. Where there is a ledger, ``stream.enter(claim)`` must have entered the price before.

    Parameters
    ----------
    root, path
        The seed, and the names under which this stream stands.
    seeded
        Whether the user gave the seed, so that whoever knows it can draw again.
    ledger, data
        The budget that the release is entered into, and the data that it is made of, which must be those of the ledger.

    Examples
    --------
    >>> stream = Stream(1, "noise", seeded=True)
    >>> bool((stream.words("a")(3) == stream.words("a")(3)).all())
    True
    """

    def __init__(
        self,
        root: int,
        *path: str,
        seeded: bool = True,
        ledger: Ledger | Account | None = None,
        data: Microdata | None = None,
    ) -> None:
        self.root = root
        self.path = path
        self.seeded = seeded
        self.account = ledger if isinstance(ledger, Account) else Account(ledger, seeded=seeded, data=data)

    def __call__(self, *path: str) -> np.random.Generator:
        """Open a named child generator."""
        return generator(self.root, *self.path, *path)

    def keyed(self, *path: str) -> KeyedDraws:
        """Open the draws that belong to records, whatever part of the file they are read with."""
        return KeyedDraws.of(self.root, *self.path, *path)

    def child(self, *path: str) -> Stream:
        """Return the stream of a part."""
        return Stream(self.root, *self.path, *path, seeded=self.seeded, ledger=self.account)

    def enter(self, claim: DifferentialPrivacy | None, why_none: str = "", *, purpose: str = "") -> None:
        """Enter the price of what is about to be drawn, where there is a ledger; refused is what claims nothing."""
        self.account.enter(claim, why_none, self._whose, purpose)

    def words(self, *path: str) -> Words:
        """Open a source of bits; with a ledger only after the price was entered."""
        self.account.settle(self._whose)
        return seeded_words(self(*path)) if self.seeded else os_words

    @property
    def _whose(self) -> str:
        """The treatment, table or model whose stream this is."""
        return self.path[0] if self.path else "this release"


# A coin is tossed with uniform words of 64 bits by comparisons of whole numbers. Where a chance is a fraction, its
# first 64 binary digits are compared with a word; in the one case of 2^64 where they are equal the remaining digits
# decide, in Python's whole numbers. Noise is made of such coins (`discreet.dp.samplers`), and so is a private choice.


WORD = 2**64


def uniform_below(bound: int, size: int, words: Words) -> Integers:
    """Draw whole numbers from 0 to ``bound`` - 1, each with the same chance; ``bound`` is at most 2^63.

    Examples
    --------
    >>> from discreet.dp import os_words
    >>> bool((uniform_below(6, 1000, os_words) < 6).all())
    True
    """
    if not 1 <= bound <= 2**63:
        raise ParameterError("bound must be a whole number from 1 to 2^63.")
    unused = np.uint64(64 - max((bound - 1).bit_length(), 1))
    drawn = words(size) >> unused
    open_ = np.flatnonzero(drawn >= np.uint64(bound))
    while len(open_):
        again = words(len(open_)) >> unused
        drawn[open_] = again
        open_ = open_[again >= np.uint64(bound)]
    return drawn.astype(np.int64)


def bernoulli(chances: Sequence[Fraction], which: Integers, words: Words) -> Flags:
    """Say yes with the chance ``chances[i]`` for every ``i`` of ``which``.

    Examples
    --------
    >>> from discreet.dp import os_words
    >>> bernoulli([Fraction(0), Fraction(1)], np.array([0, 1, 1]), os_words).tolist()
    [False, True, True]
    """
    return Chances([chance.as_integer_ratio() for chance in chances]).drawn(which, words)


class Chances:
    """Fractions between 0 and 1 with their first 64 binary digits, worked out once for many draws.

    Parameters
    ----------
    parts
        Numerators and denominators; whole numbers are compared several times as fast as fractions.
    """

    def __init__(self, parts: Sequence[tuple[int, int]]) -> None:
        if any(not 0 <= above <= below for above, below in parts):
            raise ParameterError("A chance must lie between 0 and 1.")
        self.exact = parts
        self.sure = np.asarray([above == below for above, below in parts], dtype=bool)
        self.first = [0 if above == below else above * WORD // below for above, below in parts]
        self.heads = np.asarray(self.first, dtype=np.uint64)

    def drawn(self, which: Integers, words: Words) -> Flags:
        """Say yes or no for every place of ``which``."""
        heads, sure = self.heads[which], self.sure[which]
        drawn = words(len(which))
        yes = (drawn < heads) | sure
        for tie in np.flatnonzero((drawn == heads) & ~sure):
            at = int(which[tie])
            rest = Fraction(*self.exact[at]) * WORD - self.first[at]
            yes[tie] = bool(rest) and bool(bernoulli([rest], np.zeros(1, dtype=np.int64), words)[0])
        return np.asarray(yes)


def bernoulli_exp(rates: Sequence[Fraction], which: Integers, words: Words) -> Flags:
    """Say yes with the chance exp(-``rates[i]``) for every ``i`` of ``which``; rates are 0 or more.

    Examples
    --------
    >>> from discreet.dp import os_words
    >>> bool(bernoulli_exp([Fraction(0)], np.zeros(100, dtype=np.int64), os_words).all())
    True
    """
    ratios = [rate.as_integer_ratio() for rate in rates]
    if any(above < 0 for above, _ in ratios):
        raise ParameterError("A rate must be 0 or more.")
    # Nothing beyond 2^40 is ever said yes to, and the number stays within a machine word.
    whole = np.asarray([min(above // below, 2**40) for above, below in ratios], dtype=np.int64)[which]
    parts = Chances([(above % below, below) for above, below in ratios])
    yes = np.ones(len(which), dtype=bool)
    large = np.flatnonzero(whole > 0)
    yes[large] = runs_of_one_in_e(len(large), words) >= whole[large]
    left = np.flatnonzero(yes)
    own = which[left]
    yes[left] = alternating(lambda open_: parts.drawn(own[open_], words), len(left), words)
    return yes


def runs_of_one_in_e(size: int, words: Words) -> Integers:
    """How often a coin of chance 1/e comes up before it first fails."""
    runs = np.zeros(size, dtype=np.int64)
    own = np.arange(size)
    while len(own):
        own = own[alternating(lambda open_: np.ones(len(open_), dtype=bool), len(own), words)]
        runs[own] += 1
    return runs


def alternating(yes: Callable[[Integers], Flags], size: int, words: Words) -> Flags:
    """Say yes with chance exp(-p), where ``yes(places)`` says yes with chance p: von Neumann's game.

    In round k one goes on with chance p/k; who stops in an odd round has said yes.
    """
    stopped = np.zeros(size, dtype=np.int64)
    own = np.arange(size)
    k = 1
    while len(own):
        on = yes(own)
        if k > 1:
            on &= uniform_below(k, len(own), words) == 0
        stopped[own[~on]] = k
        own = own[on]
        k += 1
    return np.asarray(stopped % 2 == 1)


def leading_ones(size: int, words: Words) -> Integers:
    """How often a fair coin comes up before it first fails."""
    runs = np.zeros(size, dtype=np.int64)
    own = np.arange(size)
    while len(own):
        own = own[uniform_below(2, len(own), words) == 1]
        runs[own] += 1
    return runs


# Choose one of several candidates privately: a better score makes it likelier, never certain.
_FEWEST_AT_ONCE, _MOST_AT_ONCE = 64, 4096  # the first proposals often have one that is taken


def chosen_privately(
    scores: Sequence[int | Fraction] | Integers, epsilon: Fraction, sensitivity: int | Fraction, words: Words
) -> int:
    """Choose with chances proportional to exp(epsilon score / (2 sensitivity)): the exponential mechanism, exactly.

    A candidate is proposed at random and taken with the chance exp(-epsilon (best - score) / (2 sensitivity)), until
    one is taken; scores are whole numbers or fractions, so that nothing is rounded.

    Parameters
    ----------
    scores
        One a candidate; higher is better.
    epsilon
        The budget of this choice.
    sensitivity
        How far one person can move any score.
    words
        The source of bits; `discreet.dp.os_words` where a guarantee is claimed.

    Returns
    -------
    int
        The place of the candidate.

    Examples
    --------
    >>> from discreet.dp import os_words
    >>> chosen_privately([0, 100_000, 3], Fraction(1), 1, os_words)
    1
    """
    if not len(scores):
        raise ParameterError("There is no candidate to choose from.")
    if epsilon < 0 or sensitivity <= 0:
        raise ParameterError("epsilon must not be negative and sensitivity must be more than 0.")
    best = scores.max().item() if isinstance(scores, np.ndarray) else max(scores)
    unit = Fraction(epsilon) / (2 * Fraction(sensitivity))
    many = min(2 * len(scores), _FEWEST_AT_ONCE)
    while True:
        proposed = uniform_below(len(scores), many, words)
        # Of long lists only those that were proposed are worked out.
        different, which = np.unique(proposed, return_inverse=True)
        own = [scores[at].item() if isinstance(scores, np.ndarray) else scores[at] for at in different]
        taken = np.flatnonzero(bernoulli_exp([unit * (best - score) for score in own], which, words))
        if len(taken):
            return int(proposed[taken[0]])
        many = min(2 * many, _MOST_AT_ONCE)
