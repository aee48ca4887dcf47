"""What is the sum of t(x1, x2) over people, when one party has x1 and another x2?

Party 1 hides its value among decoys; party 2 computes t for each of them, less a random number of its own; party 1
takes the entry of its true value by oblivious transfer, so that party 2 does not learn which, and party 1 nothing of
the others (Lin and Karr). The transfer is an *ideal functionality* here: a third party, assumed to be trusted, that
hands over exactly one entry. It shows what the protocol gives and costs; it is no cryptographic transfer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar

import numpy as np

from discreet.core.arrays import Array, Floats, Integers
from discreet.core.constraints import AtLeast
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.core.randomness import Seed, generator
from discreet.federated.leakage import Answer, Leakage, Learned, seeded_note
from discreet.federated.masking import Masks
from discreet.federated.matrix_product import check_rows
from discreet.federated.messages import Message, Request, Takes, floats
from discreet.federated.parties import Holder, Party, Role, Transport, as_frame

Statistic = Callable[[Floats, Floats], Array]
TRANSFER = "ideal oblivious transfer"


def _places(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "i"


class _Choosing(Role):
    """Party 1: hide one's rows among decoys, and take one entry of each."""

    protocol = "sufficient-statistics"
    takes: ClassVar = {"chosen": Takes({"chosen": floats}, "site"), "rest": Takes({"rest": floats}, "site")}

    def begin(self, candidates: Floats, true: Integers) -> list[Message]:
        return [
            self.send("party 2", "candidates", candidates=candidates),
            self.send(TRANSFER, "choices", choices=true),
        ]

    def on_chosen(self, message: Request) -> list[Message]:
        return self._added(self.both(message, "rest"))

    def on_rest(self, message: Request) -> list[Message]:
        return self._added(self.both(message, "chosen"))

    def _added(self, both: tuple[Request, Request] | None) -> list[Message]:
        if both is None:
            return []
        found = {message.name: message for message in both}
        part = found["chosen"].array("chosen", (None, None)).sum(axis=0)
        self.total = part + found["rest"].array("rest", part.shape)
        return [self.send("party 2", "total", total=self.total)]


class _Offering(Role):
    """Party 2: compute the statistic for every candidate, less a random number for each person."""

    protocol = "sufficient-statistics"
    takes: ClassVar = {
        "candidates": Takes({"candidates": floats}, "site"),
        "total": Takes({"total": floats}, "site"),
    }

    def __init__(self, party: Any, run: str, statistic: Statistic, own: Floats) -> None:
        super().__init__(party, run)
        self.statistic, self.own = statistic, own

    def on_candidates(self, message: Request) -> list[Message]:
        given = message.array("candidates", (len(self.own), None, None))
        values = np.stack(
            [_computed(self.statistic, given[:, at], self.own) for at in range(given.shape[1])], axis=1
        )
        spread = float(np.abs(values).max()) * 100 + 1
        offset = self.party.masks.normal((len(values), values.shape[2])) * spread
        return [
            self.send(TRANSFER, "offers", offers=values - offset[:, None, :]),
            self.send("party 1", "rest", rest=offset.sum(axis=0)),
        ]

    def on_total(self, message: Request) -> list[Message]:
        return []


class _Transferring(Role):
    """The trusted third party that oblivious transfer replaces: hand over one entry of each row."""

    protocol = "sufficient-statistics"
    takes: ClassVar = {
        "choices": Takes({"choices": _places}, "site"),
        "offers": Takes({"offers": floats}, "site"),
    }

    def on_choices(self, message: Request) -> list[Message]:
        return self._handed(self.both(message, "offers"))

    def on_offers(self, message: Request) -> list[Message]:
        return self._handed(self.both(message, "choices"))

    def _handed(self, both: tuple[Request, Request] | None) -> list[Message]:
        if both is None:
            return []
        found = {message.name: message for message in both}
        offers = found["offers"].array("offers", (None, None, None))
        choices = found["choices"].array("choices", (len(offers),))
        return [self.send("party 1", "chosen", chosen=offers[np.arange(len(offers)), choices])]


@checked
def secure_sufficient_statistics(
    t: Callable[..., Any], X1: Any, X2: Any, *, s: Annotated[int, AtLeast(2)] = 100,
    decoy_sampler: Callable[[Any, int, np.random.Generator], Any] | None = None, keep: bool = False, seed: Seed = None,
) -> Answer:  # fmt: skip
    """What does a statistic of pairs of values add up to over the people of two parties?

    Parameters
    ----------
    t
        The statistic: takes rows of X1 and of X2 and returns one row of numbers for each.
    X1, X2
        The columns of party 1 and of party 2, for the same people in the same order.
    s
        Among how many candidates the true row is hidden; party 2 guesses it with a chance of 1 / s.
    decoy_sampler
        Called with X1, the number of decoys and a generator; must give decoys that could be rows of the file. Whole
        rows of X1, drawn at random, unless given.
    keep
        Keep the contents of the messages in the transcript, for a lesson.
    seed
        For the same decoys again; only for tests.

    Returns
    -------
    Answer
        The sum, the transcript and the leakage.

    Examples
    --------
    >>> products = lambda one, two: one * two
    >>> answer = secure_sufficient_statistics(products, [1.0, 2, 3], [4.0, 5, 6], s=5)
    >>> round(float(answer.value[0]), 6)
    32.0
    """
    one, two = (_matrix(data, name) for data, name in ((X1, "party 1"), (X2, "party 2")))
    check_rows([len(one), len(two)])
    rng = generator(seed, "decoys")
    drawn = (decoy_sampler or _rows_at_random)(one, len(one) * (s - 1), rng)
    decoys = np.asarray(drawn, dtype=np.float64).reshape(len(one), s - 1, one.shape[1])
    true = rng.integers(0, s, len(one))
    candidates = np.empty((len(one), s, one.shape[1]))
    candidates[np.arange(s)[None, :] != true[:, None]] = decoys.reshape(-1, one.shape[1])
    candidates[np.arange(len(one)), true] = one
    masks = Masks(None if seed is None else int(generator(seed, "offsets").integers(2**62)))
    parties = [Party("party 1"), Party("party 2", masks), Party(TRANSFER)]
    transport = Transport(parties, keep=keep)
    run = transport.new_run()
    choosing = _Choosing(parties[0], run)
    for party, role in zip(
        parties, (choosing, _Offering(parties[1], run, t, two), _Transferring(parties[2], run)), strict=True
    ):
        party.plays(role)
    transport.carry(choosing.begin(candidates, true))
    account = Leakage(
        "sufficient-statistics",
        (
            Learned("party 2", "party 1", f"party 2 sees every row of party 1 among {s} candidates and guesses it with "
                    f"a chance of 1 in {s}, or better where decoys are not plausible"),
            Learned("both", "the other", "both learn the sums, and from them totals of the other's columns"),
        ),
        ("party 2 and whoever runs the transfer know every row of party 1",),
        ("The oblivious transfer is an ideal functionality: a party trusted to hand over one entry of each row.",
         *seeded_note(seed is not None)),
        transcript=transport.transcript,
    )  # fmt: skip
    return Answer(choosing.total, transport.transcript, account)


def _matrix(data: Any, name: str) -> Floats:
    frame = as_frame(data)
    return Holder(name, frame).matrix(frame.columns)


def _rows_at_random(own: Floats, size: int, rng: np.random.Generator) -> Floats:
    return np.asarray(own[rng.integers(0, len(own), size)])


def _computed(statistic: Statistic, one: Floats, two: Floats) -> Floats:
    found = np.asarray(statistic(one, two), dtype=np.float64)
    if len(found) != len(two) or not np.isfinite(found).all():
        raise ParameterError("t must return one row of finite numbers for each person.")
    return found.reshape(len(two), -1)
