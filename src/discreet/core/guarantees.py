"""What may be claimed of a release, and which figures may stand beside the claim?

One rule for every treatment, table and generator: differential privacy is claimed where a proof covers what the code
did, which takes three things. The noise is drawn in whole numbers by `discreet.dp`; its bits come from the operating
system, so whoever gives a seed gets the same law of noise and no claim; and nothing else that was published was read
off the data. A claim is worked out from parameters each time. It is never read from a file: of a model that was loaded
nobody can say how its noise was drawn.

What a public log may hold beside a claim stands on the class of the method. Exact counts of what a treatment did
(records removed, cells changed, the time it took) are facts about the data, and one of them can undo the proof: they
go to the internal log, whether or not a seed was given.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any, Literal

SEEDED = (
    "it was drawn from a seed, so that whoever has the seed can take the noise off. Leave the seed out: the draws then "
    "come from the operating system."
)
FROM_A_FILE = (
    "the model was read from a file, which cannot show how its noise was drawn. What was guaranteed is said where the "
    "model is fitted."
)
CODES_OF_THE_DATA = (
    "the codes and cells of the table were read from the data. Where they are public knowledge, build the table with "
    "hierarchies= that list all codes and with zeros='all', and say domain='public'."
)
SEVERAL_RECORDS = (
    "the noise hides one record, and the file says that a person may have several. Keep one record a person and leave "
    "out the role, or use discreet.dp.table, which bounds what a person adds."
)
NO_PROOF = "nothing is proved for how this was made."
_TELLS_ALL = 10.0  # epsilon from which the factor is no longer worth a number
NOT_COMPARED = (
    "How far it is from the original is not said here: such figures come from the data, were not paid for, and would "
    "undo the guarantee. Compute them apart, for the house alone."
)
"""What stands beside a guarantee in place of figures that compare a release with its original."""
CONFIDENTIAL = (
    "Confidential: this log holds figures of the data. Keep it as the data are kept, apart from the release."
)
"""What the internal face of a log says of itself."""
PART_OF_A_PLAN = "the plan has other steps, and none is proved for all of them together."

_FURTHER = "Further records of the same person, where what counts is a record."
NOT_COVERED = (
    "What is true of everybody: that smokers fall ill more often is learned with or without any one of them.",
    "What is published about the same people elsewhere, or without being entered into the same ledger.",
    _FURTHER,
    "Facts that were stated as public: bounds, levels, codes, that there are no gaps, and under replacement the number "
    "of records; and that a run was refused because the file contradicts what was stated.",
    "How long a run took, and copies of the data themselves.",
)
"""What a promise does not speak of."""


@dataclass(frozen=True)
class DifferentialPrivacy:
    """A claim of differential privacy, as a treatment makes it; `settled` decides whether it stands.

    Attributes
    ----------
    epsilon, delta
        The bounds, worked out from the parameters.
    against
        What may differ between two files that cannot be told apart.
    covers
        What it is true of, and what else counts as public; a clause that goes on after "against …".
    local
        Whether it holds for every record by itself, before anybody collects it.
    adjacency
        The same as ``against``, as a ledger counts it: ``"add-remove"`` or ``"replace"``.
    unit
        Whose privacy it is, as a ledger counts it.
    """

    epsilon: float | Fraction
    delta: float = 0.0
    against: str = "adding or removing one record"
    covers: str = ""
    local: bool = False
    adjacency: Literal["add-remove", "replace"] = "add-remove"
    unit: Literal["record", "person", "household", "contributor"] = "record"

    @property
    def told(self) -> str:
        """The claim in one sentence; bounds are rounded up.

        Examples
        --------
        >>> DifferentialPrivacy(1, 0.02561).told
        '(1, 0.0257)-differential privacy against adding or removing one record.'
        """
        epsilon = rounded_up(self.epsilon, 6)
        bounds = f"({epsilon}, {rounded_up(self.delta, 3)})" if self.delta else epsilon
        kind = "local differential privacy" if self.local else "differential privacy"
        return f"{bounds}-{kind} against {self.against}{self.covers}."

    @property
    def in_plain_words(self) -> str:
        """What it means for one person."""
        return in_plain_words(
            float(self.epsilon), float(self.delta), unit=self.unit, adjacency=self.adjacency
        )

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What it does not speak of.

        Examples
        --------
        >>> len(DifferentialPrivacy(1).not_covered) - len(DifferentialPrivacy(1, unit="person").not_covered)
        1
        """
        return tuple(sentence for sentence in NOT_COVERED if self.unit == "record" or sentence != _FURTHER)

    def to_dict(self) -> dict[str, Any]:
        """Return it, ready for JSON; bounds as they are."""
        return {
            "epsilon": float(self.epsilon),
            "delta": float(self.delta),
            "adjacency": self.adjacency,
            "unit": self.unit,
            "local": self.local,
            "in_plain_words": self.in_plain_words,
            "not_covered": list(self.not_covered),
        }


def stands(claim: DifferentialPrivacy | None, *, seeded: bool) -> DifferentialPrivacy | None:
    """The claim as a value, where it stands: without a seed."""
    return None if seeded else claim


def settled(claim: DifferentialPrivacy | None, why_none: str, *, seeded: bool) -> tuple[str | None, str]:
    """Decide what is said: the claim, or None and why.

    Examples
    --------
    >>> settled(DifferentialPrivacy(1), "", seeded=True)[0] is None
    True
    """
    if claim is None:
        return None, why_none or NO_PROOF
    return (None, SEEDED) if seeded else (claim.told, "")


def in_plain_words(
    epsilon: float,
    delta: float = 0.0,
    *,
    unit: str = "person",
    adjacency: Literal["add-remove", "replace"] = "add-remove",
) -> str:
    """Say what a guarantee means for one person, to somebody who is no statistician; bounds are rounded up.

    Against adding or removing a record the bound is about whether somebody is in the file. Of two answers of somebody
    who is known to be in it, one is taken out and the other put in: that is twice the epsilon, and is said as such.

    Examples
    --------
    >>> print(in_plain_words(1.0, adjacency="replace"))
    Whatever somebody believes about one person, this changes the odds by a factor of 2.72 at most: an even chance \
(50 %) can become 73.2 % at most, and not less than 26.8 %.
    >>> print(in_plain_words(0.5))
    Whatever somebody believes about whether one person is in the file, this changes the odds by a factor of 1.65 at \
most: an even chance (50 %) can become 62.3 % at most, and not less than 37.7 %. About what is true of one person who \
is known to be in it, it changes the odds by a factor of 2.72 at most: 50 % can become 73.2 % at most.
    """
    who = "one person who has one record in the file" if unit == "record" else f"one {unit}"
    if epsilon > _TELLS_ALL:
        return (
            f"This may change the odds about {who} by a factor of more than {math.exp(_TELLS_ALL):,.0f}: that promises "
            "next to nothing."
        )
    factor, high, low = _odds(epsilon)
    whole = f"an even chance (50 %) can become {high} % at most, and not less than {low:g} %."
    if adjacency == "replace":
        words = (
            f"Whatever somebody believes about {who}, this changes the odds by a factor of {factor} at most: "
            f"{whole}"
        )
    else:
        one = "a person who has at most one record" if unit == "record" else who
        words = (
            f"Whatever somebody believes about whether {one} is in the file, this changes the odds by a factor of "
            f"{factor} at most: {whole}"
        )
        if 2 * epsilon <= _TELLS_ALL:
            twice, above, _ = _odds(2 * epsilon)
            words += (
                f" About what is true of {one if unit != 'record' else 'one person'} who is known to be in it, it "
                f"changes the odds by a factor of {twice} at most: 50 % can become {above} % at most."
            )
    if delta:
        # Two steps fail more often than one: the larger chance is said for both.
        failing = delta if adjacency == "replace" else min(delta * (1 + math.exp(epsilon)), 1.0)
        words += f" That may fail with a chance of {rounded_up(failing, 3)}."
    return words


def _odds(epsilon: float) -> tuple[str, str, float]:
    """The factor by which odds change, and what an even chance can become at most and at least, in percent."""
    factor = math.exp(epsilon) * (1 + 1e-12)
    after = factor / (1 + factor)
    told = rounded_up(factor, 3) if factor < 1000 else f"{math.ceil(factor):,}"
    return told, rounded_up(100 * after, 3), math.floor(1000 * (1 - after)) / 10


@dataclass(frozen=True)
class Spending:
    """A ledger as it stood when a release was entered: what was published from the source, in rows for people.

    Attributes
    ----------
    budget, spent, left
        In words.
    rows
        One a record: ``release``, ``day``, ``mechanism``, ``price``, ``delta``, ``neighbors``, ``proved``, ``purpose``.
    """

    budget: str
    spent: str
    left: str
    rows: tuple[Mapping[str, str], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return it, ready for JSON."""
        return {
            "budget": self.budget,
            "spent": self.spent,
            "left": self.left,
            "releases": [dict(row) for row in self.rows],
        }


def public_and_internal(
    listed: Collection[str], figures: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Divide the figures of a method with a claim: what it lists as public, and what stays in the house.

    Examples
    --------
    >>> public_and_internal({"local_epsilon"}, {"local_epsilon": 1.0, "expected_changed": 0.3})
    ({'local_epsilon': 1.0}, {'expected_changed': 0.3})
    """
    public = {name: figure for name, figure in figures.items() if name in listed}
    return public, {name: figure for name, figure in figures.items() if name not in listed}


def rounded_up(bound: float | Fraction, digits: int) -> str:
    """Write a bound with so many digits, never smaller than it is.

    Examples
    --------
    >>> rounded_up(0.1, 6), rounded_up(0.0256101, 3), rounded_up(1e-6, 3)
    ('0.1', '0.0257', '1e-06')
    """
    # The shortest decimal that names the number is what the user wrote; its fraction as a float may lie above.
    exact = Decimal(repr(float(bound)))
    cut = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(exact)
    return f"{float(cut):.{digits}g}"
