"""Where do random numbers come from? The operating system, or a seed for draws that must be repeated."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from discreet.core.errors import ParameterError
from discreet.core.guarantees import DifferentialPrivacy
from discreet.core.randomness import KeyedDraws, generator
from discreet.dp.costs import Cost
from discreet.dp.ledger import Ledger
from discreet.microdata import Microdata

Words = Callable[[int], npt.NDArray[np.uint64]]
"""Gives so many uniform words of 64 bits; every call gives new ones."""

_WORDS_AT_ONCE = 1 << 22


def refuse_seeded(ledger: Ledger | None, seed: object) -> None:
    """Refuse to spend on draws that can be repeated: whoever has the seed can undo them.

    Examples
    --------
    >>> refuse_seeded(None, 1)
    """
    if ledger is not None and seed is not None:
        raise ParameterError(
            "A ledger takes releases with a guarantee, and a seed voids it. Leave out one of the two."
        )


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
        self.ledger.spend(
            Cost(
                mechanism,
                "approximate" if claim.delta else "pure",
                epsilon=float(claim.epsilon),
                delta=float(claim.delta),
                adjacency=claim.adjacency,
                unit=claim.unit,
                purpose=purpose,
            ),
            data=self.data,
        )
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
