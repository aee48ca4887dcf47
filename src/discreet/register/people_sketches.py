"""How many people make the difference between two sets of people, when nobody may look at either?

The records of a set are spread over buckets by a secret key, and each bucket holds the sum of what the key makes of its
records. Two sketches of the same records are the same; where few people differ, few buckets do. Records of the same
person, where there is a column for it, share a bucket, so that a person counts once however many of its records change.

Nothing of a record can be read off a sum without the key. With it, guesses can be tried out: register and key are as
confidential as the data.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from discreet.core.arrays import Words
from discreet.core.errors import InputError
from discreet.io.fingerprints import keyed_words

_BUCKETS = 128
_SATURATED = 0.75  # of the buckets differ: then how many people do can no longer be told


@dataclass(frozen=True)
class PeopleSketch:
    """A set of people, and what is known of them, behind a key.

    Attributes
    ----------
    people
        How many there are.
    by_person
        Whether records were told apart by who they belong to; else by what they hold, and a record that changed counts
        as one that left and one that joined.
    buckets
        The sums.
    """

    people: int
    by_person: bool
    buckets: Words

    def apart(self, other: PeopleSketch) -> int | None:
        """Say how many people are in one set only, or known otherwise; never more than there are, None for many.

        Examples
        --------
        >>> staff = pl.DataFrame({"who": range(1000), "pay": range(1000)})
        >>> key = b"a secret of at least sixteen bytes"
        >>> all_of_them = people_sketch(staff, ["pay"], key)
        >>> all_of_them.apart(people_sketch(staff[:-1], ["pay"], key))
        1
        >>> changed = staff.with_columns(pay=pl.when(pl.col("who") == 7).then(0).otherwise("pay"))
        >>> all_of_them.apart(people_sketch(changed, ["pay"], key))
        1
        """
        differing = int((self.buckets != other.buckets).sum())
        if self.by_person != other.by_person or differing > _SATURATED * _BUCKETS:
            return None
        if self.by_person:
            return differing
        return math.ceil((differing + min(abs(self.people - other.people), differing)) / 2)

    def to_text(self) -> str:
        """Write it for a line of the register."""
        sums = self.buckets.astype("<u4").tobytes().hex()
        return f"{self.people}:{'p' if self.by_person else 'r'}:{sums}"

    @classmethod
    def of_text(cls, text: str) -> PeopleSketch:
        """Read it back."""
        try:
            people, kind, sums = text.split(":")
            buckets = np.frombuffer(bytes.fromhex(sums), dtype="<u4").astype(np.uint64)
            if len(buckets) != _BUCKETS:
                raise ValueError("another number of buckets")
            return cls(int(people), kind == "p", buckets)
        except (ValueError, AttributeError) as error:
            raise InputError("A set of people in the register cannot be read: it is damaged.") from error


def people_sketch(
    frame: pl.DataFrame, columns: Sequence[str], key: bytes, *, person: str | None = None
) -> PeopleSketch:
    """Sketch a set of people.

    Parameters
    ----------
    frame
        Their records.
    columns
        What of them matters: two sets that agree on these columns are the same.
    key
        The secret key.
    person
        The column that says whose a record is.
    """
    names = list(dict.fromkeys([*columns, *([person] if person else [])]))
    secret = _secret(key, "content")
    held = keyed_words(frame.select(names), secret)
    if person:
        place = keyed_words(frame.select(person), _secret(key, "person"))
    else:  # two records that hold the same are two people
        again = pl.DataFrame({"held": held, "again": 0}).select(
            "held", pl.int_range(pl.len()).over("held").alias("n")
        )
        held = place = keyed_words(again, secret)
    sums = np.zeros(_BUCKETS, dtype=np.uint64)
    np.add.at(sums, (place >> np.uint64(32)) % np.uint64(_BUCKETS), held)
    people = frame[person].n_unique() if person else frame.height
    return PeopleSketch(people, person is not None, sums & np.uint64(0xFFFFFFFF))


def key_mark(key: bytes) -> str:
    """Tell a key from others without giving it away."""
    return hashlib.sha256(b"discreet register key " + key).hexdigest()[:16]


def _secret(key: bytes, purpose: str) -> tuple[int, ...]:
    digest = hashlib.blake2b(purpose.encode(), key=hashlib.sha256(key).digest(), digest_size=32).digest()
    return tuple(int.from_bytes(digest[at : at + 8], "little") for at in range(0, 32, 8))
