"""Products and sums over people whose columns two parties hold, when neither shows them.

*X1'X2* of columns X1 and X2: party 1 sends an orthonormal basis Z of random directions in which none of its columns has
any part; party 2 takes these directions out of its columns and sends back the rest; the product with X1 has lost
nothing. What each learns about the other is counted in equations.

*The sum of t(x1, x2)*: party 1 hides its value among decoys; party 2 computes t for each of them, less a random number
of its own; party 1 takes the entry of its true value by oblivious transfer, so that party 2 does not learn which, and
party 1 nothing of the others (Lin and Karr). The transfer is an *ideal functionality* here: a third party, assumed to
be trusted, that hands over exactly one entry. It shows what the protocol gives and costs; it is no cryptographic
transfer.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Annotated, Any, ClassVar

import numpy as np
import polars as pl

from discreet.core.arrays import Array, Floats, Integers
from discreet.core.constraints import AtLeast
from discreet.core.errors import DiscreetWarning, InputError, ParameterError
from discreet.core.parameters import checked
from discreet.core.randomness import Seed, generator
from discreet.federated.kinds import flag, floats, texts
from discreet.federated.leakage import Answer, Leakage, Learned, seeded_note
from discreet.federated.masking import Masks, child_seed
from discreet.federated.messages import Message, ProtocolError, Request, Takes, rows_asked
from discreet.federated.parties import Holder, Party, Role, Transport, as_frame, by_party, plays

_MOST_ENTRIES = 200_000_000


@plays
class Projecting(Role):
    """The part of party 2: take the directions of Z out of one's own columns."""

    protocol = "matrix-product"
    takes: ClassVar = {
        "basis": Takes({"basis": floats, "columns": texts, "center": flag}, "site", rows_asked(moments=False))
    }
    sends: ClassVar = {"rest": "site"}

    def on_basis(self, message: Request) -> list[Message]:
        """Return (I - ZZ') X2, computed without the square matrix."""
        own = _centred(
            self.party.matrix(message.asked.columns, message.asked.block), message.values["center"]
        )
        basis = message.array("basis", (len(own), None))
        gram = basis.T @ basis
        if not np.allclose(gram, np.eye(len(gram)), atol=1e-8):
            raise ProtocolError(
                f"'{message.sender}' sent directions that are not orthonormal. The run was ended."
            )
        return [self.send(message.sender, "rest", rest=own - basis @ (basis.T @ own))]


class Multiplying(Role):
    """The part of party 1: send random directions outside its columns, and multiply what comes back."""

    protocol = "matrix-product"
    takes: ClassVar = {"rest": Takes({"rest": floats}, "site")}
    sends: ClassVar = {"basis": "site"}

    def __init__(self, party: Any, run: str, columns: list[str], *, center: bool) -> None:
        super().__init__(party, run)
        self.own = _centred(party.matrix(columns), center)
        self.center = center
        self.product: Floats | None = None

    def begin(self, other: str, columns: list[str], directions: int) -> list[Message]:
        """Draw Z and send it."""
        basis = outside(self.own, directions, self.party.masks)
        self.expected = (len(self.own), len(columns))
        return [self.send(other, "basis", basis=basis, columns=columns, center=self.center)]

    def on_rest(self, message: Request) -> list[Message]:
        """Form X1'W, which is X1'X2."""
        self.product = self.own.T @ message.array("rest", self.expected)
        return []


def outside(own: Floats, directions: int, masks: Masks) -> Floats:
    """Draw orthonormal directions at random among those in which no column has any part.

    Normal columns with the span of the data taken out are a uniformly random subspace of the rest; the square matrix
    of a complete factorization is never made.

    Examples
    --------
    >>> own = np.array([[1.0, 2], [3, 4], [5, 6], [7, 9]])
    >>> found = outside(own, 1, Masks(1))
    >>> bool(np.abs(found.T @ own).max() < 1e-12)
    True
    """
    left, sizes, _ = np.linalg.svd(own, full_matrices=False)
    span = left[:, sizes > sizes.max(initial=0.0) * max(own.shape) * np.finfo(float).eps]
    drawn = masks.normal((len(own), directions))
    for _ in range(2):
        # Twice, because one pass leaves rounding errors of the size of the draw.
        drawn = drawn - span @ (span.T @ drawn)
        drawn, upper = np.linalg.qr(drawn)
        drawn = drawn * np.where(np.diag(upper) < 0, -1.0, 1.0)
    return np.asarray(drawn)


@checked
def secure_matrix_product(
    X1: Any, X2: Any, *, a: int | None = None, center: bool = False, force: bool = False, keep: bool = False,
    seed: Seed = None,
) -> Answer:  # fmt: skip
    """What is the matrix of cross-products of the columns of two parties?

    Also known as: secure matrix multiplication; Karr null-space product.

    Parameters
    ----------
    X1, X2
        The columns of party 1 and of party 2, for the same people in the same order.
    a
        How many directions party 1 sends: many protect party 2, few protect party 1. Unless given, both give away
        the same number of equations: a = n p2 / (p1 + p2).
    center
        Let each party subtract its own means first; the product divided by n - 1 is then the covariance.
    force
        Go on although somebody's file would be determined.
    keep
        Keep the contents of the messages in the transcript, for a lesson.
    seed
        For the same directions again; only for tests.

    Returns
    -------
    Answer
        X1'X2, the transcript and the leakage: equations that each party holds about the file of the other.

    Examples
    --------
    >>> product, _, leakage = secure_matrix_product([[1, 2], [3, 4], [5, 6], [7, 9]], [1, 0, 2, -1], a=1)
    >>> product.round(9).tolist(), [one.constraints for one in leakage.learned]
    ([[4.0], [5.0]], [2, 3])
    """
    parties = [
        Holder(name, as_frame(data), masks=Masks(child_seed(seed, name)))
        for name, data in (("party 1", X1), ("party 2", X2))
    ]
    first, second = parties
    one, two = (party.matrix(party.frame().columns) for party in parties)
    check_rows([len(one), len(two)])
    directions = checked_directions(_centred(one, center), two.shape[1], a)
    learned = equations("party 1", "party 2", len(one), one.shape[1], two.shape[1], directions)
    if any(item.determined for item in learned) and not force:
        raise ParameterError(determined_file(next(item for item in learned if item.determined).about))
    transport = Transport(parties, keep=keep)
    role = Multiplying(first, transport.new_run(), first.frame().columns, center=center)
    first.plays(role)
    transport.carry(role.begin("party 2", second.frame().columns, directions))
    if role.product is None:
        raise ProtocolError("The product did not come back: a party fell silent.")
    account = Leakage(
        "matrix-product", learned, (), seeded_note(seed is not None), transcript=transport.transcript
    )
    return Answer(role.product, transport.transcript, account)


def balanced_directions(rows: int, first: int, second: int, rank: int) -> int:
    """Choose how many directions give away as much of one file as of the other.

    Examples
    --------
    >>> balanced_directions(1000, 4, 6, 4)
    600
    """
    return int(min(max(1, round(rows * second / (first + second))), rows - rank))


def equations(one: str, two: str, rows: int, first: int, second: int, directions: int) -> tuple[Learned, ...]:  # noqa: PLR0917
    """Count what each of two parties learns about the file of the other.

    Examples
    --------
    >>> [item.constraints for item in equations("a", "b", 1000, 4, 6, 600)]
    [2400, 2400]
    """
    return (
        Learned(
            two, one, f"{two} learns directions in which the columns of {one} have no part", directions * first,
            rows * first,
        ),
        Learned(
            one, two, f"{one} learns the columns of {two} but for some directions, and the product",
            (rows - directions) * second, rows * second,
        ),
    )  # fmt: skip


def checked_directions(own: Floats, second: int, asked: int | None) -> int:
    """Check or choose the number of directions for the columns of party 1."""
    rows, rank = len(own), int(np.linalg.matrix_rank(own)) if own.size else 0
    if rows - rank < 1:
        raise ParameterError(
            "X1 has as many independent columns as rows: there is no direction outside of them to hide behind. Use "
            "more rows or fewer columns."
        )
    directions = balanced_directions(rows, own.shape[1], second, rank) if asked is None else asked
    if not 1 <= directions <= rows - rank:
        raise ParameterError(f"a must lie between 1 and {rows - rank} (rows less the rank of X1).")
    if rows * directions > _MOST_ENTRIES:
        raise ParameterError(
            f"a={directions:,} directions of {rows:,} rows are too many to send. Give a small a (it protects party 1 "
            "more than party 2), or take federated.secure_covariance, which multiplies secret shares."
        )
    if directions == rows - rank:
        warnings.warn(
            "a is as large as it can be: party 2 learns the whole space that the columns of party 1 span.",
            DiscreetWarning,
            stacklevel=3,
        )
    return directions


def check_rows(rows: list[int]) -> None:
    """Refuse blocks that cannot be about the same people."""
    if len(set(rows)) != 1:
        raise InputError(
            "The parties do not have the same number of rows. Link the rows one to one first (federated.link)."
        )
    if rows[0] < 2:
        raise InputError("One row is no file: there is nothing to hide behind. Use more rows.")


def determined_file(about: str) -> str:
    """Word the refusal of a run that would give a file away."""
    return (
        f"The equations that the others would hold determine the whole file of '{about}'. Choose another a, take "
        "federated.secure_covariance, which multiplies secret shares, or say force=True."
    )


@checked
def link(frames: Any, ids: str) -> list[pl.DataFrame]:
    """Bring the rows of several holders into one order by a column that tells them apart, refusing what does not link.

    Examples
    --------
    >>> one = pl.DataFrame({"id": [2, 1], "x": [20, 10]})
    >>> two = pl.DataFrame({"id": [1, 2], "y": [1, 2]})
    >>> [frame[:, 1].to_list() for frame in link([one, two], "id")]
    [[10, 20], [1, 2]]
    """
    named = by_party(frames, "frames")
    ordered = [Holder(name, as_frame(frame), ids=ids).frame() for name, frame in named.items()]
    check_rows([frame.height for frame in ordered])
    if not all(frame[ids].equals(ordered[0][ids]) for frame in ordered[1:]):
        raise InputError(
            f"The rows do not link one to one: '{ids}' does not name the same people at every holder."
        )
    return ordered


def _centred(matrix: Floats, center: bool) -> Floats:
    return matrix - matrix.mean(axis=0) if center else matrix


# The sum of a statistic of pairs


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
        found = self.both(message, ("chosen", "rest"))
        if not found:
            return []
        part = found["chosen"].array("chosen", (None, None)).sum(axis=0)
        self.total = part + found["rest"].array("rest", part.shape)
        return [self.send("party 2", "total", total=self.total)]

    on_rest = on_chosen


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
        found = self.both(message, ("choices", "offers"))
        if not found:
            return []
        offers = found["offers"].array("offers", (None, None, None))
        choices = found["choices"].array("choices", (len(offers),))
        return [self.send("party 1", "chosen", chosen=offers[np.arange(len(offers)), choices])]

    on_offers = on_choices


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
    holders = [Holder(name, as_frame(data)) for name, data in (("party 1", X1), ("party 2", X2))]
    one, two = (holder.matrix(holder.frame().columns) for holder in holders)
    check_rows([len(one), len(two)])
    rng = generator(seed, "decoys")
    drawn = (decoy_sampler or _rows_at_random)(one, len(one) * (s - 1), rng)
    decoys = np.asarray(drawn, dtype=np.float64).reshape(len(one), s - 1, one.shape[1])
    true = rng.integers(0, s, len(one))
    candidates = np.empty((len(one), s, one.shape[1]))
    candidates[np.arange(s)[None, :] != true[:, None]] = decoys.reshape(-1, one.shape[1])
    candidates[np.arange(len(one)), true] = one
    masks = Masks(child_seed(seed, "offsets"))
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


def _rows_at_random(own: Floats, size: int, rng: np.random.Generator) -> Floats:
    return np.asarray(own[rng.integers(0, len(own), size)])


def _computed(statistic: Statistic, one: Floats, two: Floats) -> Floats:
    found = np.asarray(statistic(one, two), dtype=np.float64)
    if len(found) != len(two) or not np.isfinite(found).all():
        raise ParameterError("t must return one row of finite numbers for each person.")
    return found.reshape(len(two), -1)
