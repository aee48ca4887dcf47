"""Which is the k-th smallest value over all parties, when nobody shows theirs?

Two parties halve their lists by one comparison a round; many parties bisect an agreed domain by how many values lie
below and above. Only outcomes of comparisons become known. In one process the comparisons are made by an *ideal
functionality* on additive shares (a simulation of the protocol with its messages, no cryptography); `backend="mpyc"`
computes them with Shamir shares in separate processes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from discreet.core.arrays import Floats, numbers_of
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.core.randomness import Seed
from discreet.federated.leakage import Answer, Leakage, Learned, seeded_note
from discreet.federated.masking import Masks, child_seed
from discreet.federated.messages import Message, ProtocolError
from discreet.federated.parties import Transport, by_party

COMPARISON = "ideal comparison"
_WHOLE = (-(2**31), 2**31 - 1)
Backend = Literal["plain", "simulated-shares", "mpyc"]


@checked
def ranked_element(
    parties: Any, rank: int, *, domain: tuple[float, float] | None = None, precision: float = 1.0,
    backend: Literal["plain", "simulated-shares", "mpyc"] = "simulated-shares", seed: Seed = None,
) -> Answer:  # fmt: skip
    """Which value has this rank among the values of all parties together?

    Also known as: k-th ranked element; secure median; secure quantile.

    Parameters
    ----------
    parties
        The values of each party, as a list or ``{party: values}``.
    rank
        1 for the smallest, the number of all values for the largest.
    domain
        Bounds that all values are known to lie in. Two parties need none; more bisect it, and take all numbers of 32
        bits where it is not given.
    precision
        With a domain: the step between values, 1 for whole numbers.
    backend
        ``"plain"`` sorts (for comparison), ``"simulated-shares"`` runs the protocol in this process, ``"mpyc"`` runs
        it between processes with secret shares.
    seed
        For the same shares again; only for tests.

    Returns
    -------
    Answer
        The value, the transcript and the leakage.

    Examples
    --------
    >>> ranked_element([[17, 23, 90], [19, 45], [20, 73, 88, 31]], 5, domain=(0, 120)).value
    31
    >>> ranked_element([[3, 8, 12, 20], [1, 9, 15, 30]], 4).value
    9
    """
    lists = _sorted_lists(parties)
    total = sum(len(values) for values in lists.values())
    if not 1 <= rank <= total:
        raise ParameterError(f"rank must lie between 1 and the number of all values, {total}.")
    if len(lists) < 2:
        raise ParameterError("One party can rank its own values; the protocol needs two or more.")
    transport = Transport()
    if backend == "plain":
        found = float(np.sort(np.concatenate(list(lists.values())))[rank - 1])
        return Answer(
            _plain(found), transport.transcript, Leakage("ranked-element", notes=("All values were pooled.",))
        )
    if len(lists) == 2 and domain is None and backend != "mpyc":
        found, rounds = _of_two(lists, rank, transport)
    else:
        grid = Grid.of(lists, domain, precision)
        if backend == "mpyc":
            from discreet.federated.mpyc_backend import mpyc_rank

            found, rounds = grid.value(mpyc_rank(grid.places(lists), rank, grid.size)), grid.size.bit_length()
        else:
            found, rounds = _by_bisection(grid, lists, rank, transport, Masks(child_seed(seed, "shares")))
    return Answer(_plain(found), transport.transcript, _told(rounds, backend, seed, transport))


@checked
def robust_range(
    parties: Any, share: tuple[float, float] = (0.01, 0.99), *, domain: tuple[float, float] | None = None,
    precision: float = 1.0, backend: Literal["plain", "simulated-shares", "mpyc"] = "simulated-shares",
    seed: Seed = None,
) -> tuple[float, float]:  # fmt: skip
    """Between which two values do nearly all values of all parties lie?

    The smallest and the largest value are each the value of one person; the ranks ceil(share n) are not. Give
    ``share=(0, 1)`` for the exact extremes.

    Examples
    --------
    >>> robust_range([list(range(100)), list(range(100, 200)), [500]], (0.05, 0.95), domain=(0, 1000))
    (10, 190)
    """
    low, high = share
    if not 0 <= low < high <= 1:
        raise ParameterError("share must be two shares, the lower one first, e.g. (0.01, 0.99).")
    total = sum(len(values) for values in _sorted_lists(parties).values())
    ranks = [min(max(1, math.ceil(one * total)), total) for one in (low, high)]
    ends = [
        ranked_element(parties, rank, domain=domain, precision=precision, backend=backend, seed=seed).value
        for rank in ranks
    ]
    return ends[0], ends[1]


def _of_two(lists: Mapping[str, Floats], rank: int, transport: Transport) -> tuple[float, int]:
    """Halve two sorted lists by one comparison a round; ties are broken by who holds the value."""
    (name_a, all_a), (name_b, all_b) = lists.items()
    steps = math.ceil(math.log2(rank)) if rank > 1 else 0
    extra = 2**steps - rank
    a = np.concatenate([np.full(extra, -np.inf), _padded(all_a, rank)])
    b = np.concatenate([_padded(all_b, rank), np.full(extra, np.inf)])
    judge = _Judge()
    for step in range(steps - 1, -1, -1):
        size = 2**step
        for name, values in ((name_a, a), (name_b, b)):
            transport.note(_entered(name, step, values[size - 1]))
        if judge.first_is_smaller(float(a[size - 1]), float(b[size - 1])):
            a, b = a[size:], b[:size]
        else:
            a, b = a[:size], b[size:]
        _opened(transport, (name_a, name_b), step)
    for name, values in ((name_a, a), (name_b, b)):
        transport.note(_entered(name, -1, values[0]))
    judge.check(float(a[0]), float(b[0]))
    _opened(transport, (name_a, name_b), -1)
    return float(min(a[0], b[0])), steps + 1


class _Judge:
    """The ideal comparison: tells which is smaller, and refuses a value outside what earlier answers leave open."""

    def __init__(self) -> None:
        self.a, self.b = (-math.inf, math.inf), (-math.inf, math.inf)

    def check(self, one: float, other: float) -> None:
        for value, (low, high) in ((one, self.a), (other, self.b)):
            if not low <= value <= high:
                raise ProtocolError(
                    "A party compared a value that its earlier answers rule out. The run was ended."
                )

    def first_is_smaller(self, one: float, other: float) -> bool:
        self.check(one, other)
        # Equal values: the first party's counts as the smaller one, always.
        smaller = one <= other
        if smaller:
            self.a, self.b = (one, self.a[1]), (self.b[0], other)
        else:
            self.a, self.b = (self.a[0], one), (other, self.b[1])
        return smaller


class Grid:
    """The domain that many parties bisect: whole places between two bounds."""

    def __init__(self, low: float, step: float, size: int) -> None:
        self.low, self.step, self.size = low, step, size

    @classmethod
    def between(cls, domain: tuple[float, float] | None, precision: float) -> Grid:
        """Lay the places between two bounds; all numbers of 32 bits where there are none."""
        if precision <= 0:
            raise ParameterError("precision must be above 0.")
        low, high = domain if domain is not None else (_WHOLE[0] * precision, _WHOLE[1] * precision)
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise ParameterError("domain must be two numbers, the lower one first.")
        return cls(low, precision, round((high - low) / precision) + 1)

    @classmethod
    def of(cls, lists: Mapping[str, Floats], domain: tuple[float, float] | None, precision: float) -> Grid:
        """Lay the places, and hold the values of all parties against them."""
        grid = cls.between(domain, precision)
        for name, places in grid.places(lists).items():
            if len(places) and (places[0] < 0 or places[-1] >= grid.size):
                raise ParameterError(
                    f"A value of '{name}' lies outside the agreed domain. Agree on a wider one."
                )
            if not np.allclose(grid.low + places * grid.step, lists[name], rtol=1e-9, atol=precision * 1e-6):
                raise ParameterError(
                    f"Values of '{name}' lie between the steps of the domain. Give a finer precision, e.g. 0.01, or "
                    "round the values first."
                )
        return grid

    def places(self, lists: Mapping[str, Floats]) -> dict[str, Any]:
        """Tell the places of values."""
        return {
            name: np.rint((values - self.low) / self.step).astype(np.int64) for name, values in lists.items()
        }

    def clipped(self, values: Floats) -> Any:
        """Tell the places of sorted values; those beyond the domain count at its ends."""
        return np.clip(np.rint((np.sort(values) - self.low) / self.step), 0, self.size - 1).astype(np.int64)

    def value(self, place: int) -> float:
        """Tell the value at a place."""
        made = self.low + place * self.step
        decimals = max(0, math.ceil(-math.log10(self.step)) + 1) if self.step < 1 else 6
        return round(made, decimals)


def _by_bisection(
    grid: Grid, lists: Mapping[str, Floats], rank: int, transport: Transport, masks: Masks
) -> tuple[float, int]:
    held = grid.places(lists)
    total = sum(len(places) for places in held.values())
    low, high, rounds = 0, grid.size - 1, 0
    below_before: dict[int, int] = {}
    while True:
        middle = (low + high) // 2
        rounds += 1
        below = {name: int(np.searchsorted(places, middle, "left")) for name, places in held.items()}
        above = {
            name: len(places) - int(np.searchsorted(places, middle, "right")) for name, places in held.items()
        }
        less, more = _shared_sums(list(held), below, above, transport, masks, rounds)
        if (
            any(less < known for place, known in below_before.items() if place < middle)
            or less + more > total
        ):
            raise ProtocolError("The counts of the parties contradict their earlier ones. The run was ended.")
        below_before[middle] = less
        if less >= rank:
            high = middle - 1
        elif total - more < rank:
            low = middle + 1
        else:
            return grid.value(middle), rounds
        if low > high:
            raise ProtocolError("The counts of the parties contradict each other. The run was ended.")


def _shared_sums(  # noqa: PLR0917
    names: Sequence[str], below: Mapping[str, int], above: Mapping[str, int], transport: Transport, masks: Masks,
    step: int,
) -> tuple[int, int]:  # fmt: skip
    """Add counts in shares: every party sends a random share to every other, and the comparison gets the sums."""
    sums = {name: np.zeros(2, dtype=np.uint64) for name in names}
    for name in names:
        left = np.array([below[name], above[name]], dtype=np.uint64)
        for other in names:
            share = left if other == names[-1] else masks.ring(2)
            if other != names[-1]:
                left = left - share
            sums[other] = sums[other] + share
            if other != name:
                transport.note(
                    Message("ranked-element", "", name, other, "share", {"share": share, "round": step})
                )
    total = np.zeros(2, dtype=np.uint64)
    for name in names:
        transport.note(
            Message("ranked-element", "", name, COMPARISON, "sum", {"sum": sums[name], "round": step})
        )
        total = total + sums[name]
    _opened(transport, names, step)
    return int(total[0]), int(total[1])


def _entered(name: str, step: int, value: float) -> Message:
    return Message(
        "ranked-element", "", name, COMPARISON, "value", {"value": np.array([value]), "round": step}
    )


def _opened(transport: Transport, names: Sequence[str], step: int) -> None:
    for name in names:
        transport.note(Message("ranked-element", "", COMPARISON, name, "outcome", {"round": step}))


def _told(rounds: int, backend: str, seed: Seed, transport: Transport) -> Leakage:
    trust = (
        "Comparisons were made on Shamir shares by MPyC; it withstands fewer than half of the parties together."
        if backend == "mpyc"
        else "Comparisons were made by an ideal functionality: the protocol was simulated, nothing was encrypted."
    )
    return Leakage(
        "ranked-element",
        (
            Learned("every party", "the others", f"every party learns the value asked for and the outcomes of {rounds} "
                    "comparisons, which tell between which values it was looked for"),
        ),
        ("all parties but one know between which ranks the values of the last one lie",),
        ("The smallest and the largest value are each the value of one person: robust_range asks for others.", trust,
         *seeded_note(seed is not None)),
        transcript=transport.transcript,
    )  # fmt: skip


def _sorted_lists(parties: Any) -> dict[str, Floats]:
    return {
        name: np.sort(numbers_of(values, f"values of {name}", empty=True).reshape(-1))
        for name, values in by_party(parties, "parties").items()
    }


def _padded(values: Floats, size: int) -> Floats:
    return np.concatenate([values[:size], np.full(max(0, size - len(values)), np.inf)])


def _plain(value: float) -> float | int:
    return int(value) if float(value).is_integer() else value
