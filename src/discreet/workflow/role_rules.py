"""Which role fits one column? One question after the other, each with its reason.

Names and looks of values go before uniqueness; what no question claims is proposed as sensitive, because
leaving it out of sight would be the unsafe mistake.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import narwhals as nw
import polars as pl

from discreet.core.wording import percent
from discreet.workflow.usual_names import (
    is_half_of_a_place,
    is_numbered,
    is_replicate_weight,
    meaning_of,
    structure_of,
    suggests_weight,
)
from discreet.workflow.value_patterns import digits_look, held_within, look_of, may_weigh_bodies

Confidence = Literal["sure", "likely", "please check"]

_TOO_FEW = 20
_NEARLY_UNIQUE = 0.98


@dataclass(frozen=True)
class Proposal:
    """The role proposed for one column (None: no role), how sure that is, and why."""

    role: str | None
    confidence: Confidence
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Column:
    """What is counted of one column; `sample` holds its values, which never leave the inspection."""

    name: str
    dtype: Any
    rows: int
    distinct: int
    missing: int
    low: float | None
    high: float | None
    sample: pl.Series = field(repr=False)

    @property
    def values(self) -> int:
        """How many values are not missing."""
        return self.rows - self.missing

    @property
    def distinction(self) -> float:
        """Distinct values per value: 1 when every value occurs once."""
        return self.distinct / self.values if self.values else 0.0

    @property
    def separation(self) -> float | None:
        """The share of pairs of sampled records that the column tells apart; missing counts as a value."""
        n = len(self.sample)
        if n < 2:
            return None
        sizes = self.sample.unique_counts().cast(pl.Float64)
        return float(1 - (sizes * (sizes - 1)).sum() / (n * (n - 1)))

    @property
    def is_text(self) -> bool:
        """Whether the values are texts or categories."""
        return self.dtype in (nw.String, nw.Categorical, nw.Enum, nw.Object)

    @property
    def is_sequence(self) -> bool:
        """Whether the values are the whole numbers from one to another, each once."""
        if self.low is None or self.high is None:
            return False
        return self.distinct == self.rows and self.high - self.low == self.rows - 1


def propose(column: Column, all_columns: tuple[str, ...]) -> Proposal:
    """Propose a role for one column: ask one question after the other, the first answer counts."""
    questions = (
        _empty,
        _structure,
        _looks_like_an_identifier,
        _named_as_an_identifier,
        _named_as_key_or_sensitive,
        _numbered_or_unique,
        _tells_apart,
    )
    doubts: list[str] = []
    given = _weight(column, all_columns, doubts) or _coordinate(column, all_columns)
    if given:
        return given
    for question in questions:
        answer = question(column, doubts)
        if answer:
            return answer
    reasons = (*doubts, "it is what is left: neither identifier nor usual key")
    return Proposal("sensitive", "please check", reasons)


def _empty(column: Column, doubts: list[str]) -> Proposal | None:
    if column.values == 0:
        return Proposal(None, "sure", ("it has no values at all",))
    if column.distinct == 1 and not column.missing:
        return Proposal(None, "likely", ("it has the same value in every record",))
    if column.distinct == 1:
        doubts.append("it has one value only, but not in every record: whether it is there says something")
    return None


def _weight(column: Column, all_columns: tuple[str, ...], doubts: list[str]) -> Proposal | None:
    if not column.dtype.is_numeric() or column.values == 0:
        return None
    if is_replicate_weight(column.name):
        return Proposal(
            None, "sure", ("its name is that of a replicate weight, which only serves variances",)
        )
    others = (name for name in all_columns if name != column.name)
    confidence = suggests_weight(column.name, others)
    if confidence is None:
        return None
    if column.missing or column.low is None or column.low <= 0:
        if confidence != "sure":
            return None
        fault = "its name is that of a survey weight, but some values are missing or not above zero"
        return Proposal(None, "please check", (fault,))
    if confidence != "sure" and may_weigh_bodies(column.sample):
        # People that a file does not stand for would make it look safer than it is.
        doubts.append(
            "its name may be that of a survey weight, but its values could weigh people in kilograms or pounds: make "
            "it the weight if it says how many people a record stands for"
        )
        return None
    reason = "its name is that of a survey weight and every value is above zero"
    return Proposal("weight", "sure" if confidence == "sure" else "likely", (reason,))


def _coordinate(column: Column, all_columns: tuple[str, ...]) -> Proposal | None:
    """Take x and y, or a latitude and a longitude under other names, as a place where both are there."""
    if not column.dtype.is_numeric() or column.distinct <= _TOO_FEW:
        return None
    if not is_half_of_a_place(column.name, all_columns):
        return None
    return Proposal("location", "likely", ("its name and that of another column are those of coordinates",))


def _structure(column: Column, doubts: list[str]) -> Proposal | None:
    role = structure_of(column.name)
    if role is None or (role == "location" and not column.dtype.is_numeric()):
        return None
    words = {
        "household": "its name is that of a household number",
        "strata": "its name is that of a sampling stratum",
        "psu": "its name is that of a primary sampling unit",
        "location": "its name is that of a coordinate",
    }
    return Proposal(role, "likely", (words[role],))


def _looks_like_an_identifier(column: Column, doubts: list[str]) -> Proposal | None:
    if column.is_text:
        look = look_of(column.sample)
    elif column.dtype.is_integer() and column.distinction > 0.5:
        look = digits_look(column.sample)
    else:
        return None
    within = [f"{percent(share)} of the sampled texts hold {words}" for words, share in _within(column)]
    if look is None:
        return Proposal("identifiers", "likely", tuple(within)) if within else None
    words, share = look
    if words == "free text":
        reason = "its texts are long and varied: free text may name people"
        return Proposal("identifiers", "sure" if within else "likely", (*within, reason))
    sure: Confidence = "sure" if share >= 0.8 else "likely"
    return Proposal("identifiers", sure, (f"{percent(share)} of the sampled values look like {words}",))


def _within(column: Column) -> list[tuple[str, float]]:
    return held_within(column.sample) if column.is_text else []


def _named_as_an_identifier(column: Column, doubts: list[str]) -> Proposal | None:
    meaning = meaning_of(column.name)
    if meaning is None or meaning.role != "identifiers":
        return None
    if meaning.concept == "a name" and column.is_text and column.distinct > 2:
        reason = f"its name suggests {meaning.concept}, and a name tells who it is however many share it"
        sure = meaning.exact and column.distinct > _TOO_FEW
        return Proposal("identifiers", "sure" if sure else "likely", (reason,))
    if column.rows > 2 * _TOO_FEW and column.distinct <= _TOO_FEW:
        doubts.append(
            f"its name suggests {meaning.concept}, but it has only {column.distinct} different values"
        )
        return None
    reason = f"its name suggests {meaning.concept}"
    return Proposal("identifiers", "sure" if meaning.exact else "likely", (reason,))


def _named_as_key_or_sensitive(column: Column, doubts: list[str]) -> Proposal | None:
    meaning = meaning_of(column.name)
    if meaning is None or meaning.role == "identifiers":
        return None
    if is_numbered(column.name) and column.is_sequence:
        return None
    confidence: Confidence = "sure" if meaning.exact else "likely"
    if meaning.role == "keys":
        reasons = [f"its name suggests {meaning.concept}, which others often know"]
        if meaning.concept == "a visible trait":
            confidence = "please check"
            reasons = ["its name suggests a trait that others may see, though it may also be one to protect"]
        if column.dtype.is_float() and column.distinct > column.rows / 10:
            confidence = "please check"
            reasons.append("its decimal numbers make nearly every record unique")
        if column.rows >= _TOO_FEW and column.distinction >= _NEARLY_UNIQUE and not column.dtype.is_float():
            confidence = "please check"
            reasons.append("nearly every value occurs once: it may be an identifier")
        return Proposal("keys", confidence, tuple(reasons))
    return Proposal(
        "sensitive", "likely", (f"its name suggests {meaning.concept}, which people keep to themselves",)
    )


def _numbered_or_unique(column: Column, doubts: list[str]) -> Proposal | None:
    unique = column.distinction >= _NEARLY_UNIQUE
    numbered = is_numbered(column.name)
    # A person number such as 30.1 (household 30, person 1) reads as a decimal number.
    if not (column.is_text or column.dtype.is_integer() or (numbered and unique)):
        return None
    if column.rows < _TOO_FEW:
        if numbered and unique:
            return Proposal(
                "identifiers", "likely", ("its name says it numbers records, and no value repeats",)
            )
        return None
    if numbered and (unique or column.is_sequence):
        return Proposal("identifiers", "sure", (f"its name says it numbers records; {_once(column)}",))
    if column.is_sequence:
        return Proposal("identifiers", "sure", ("it numbers the records one by one",))
    if column.is_text and unique:
        return Proposal("identifiers", "likely", (f"{_once(column)}, and they are texts",))
    if numbered and column.distinction > 0.2:
        return Proposal(
            "identifiers", "likely", ("its name says it numbers people, some of them repeatedly",)
        )
    if column.distinct == column.values and column.rows >= 5 * _TOO_FEW:
        return Proposal(
            "identifiers", "please check", ("no value occurs twice, as with numbers given to people",)
        )
    if unique:
        doubts.append(f"{_once(column)}: if it is a number given to people it is an identifier")
    return None


def _tells_apart(column: Column, doubts: list[str]) -> Proposal | None:
    separation = column.separation
    if column.rows < _TOO_FEW or separation is None or separation < 0.95:
        return None
    reason = f"it tells {percent(separation)} of the pairs of sampled records apart"
    if column.is_text or column.dtype.is_temporal():
        kind = "a date" if column.dtype.is_temporal() else "a text"
        return Proposal("keys", "please check", (f"{reason}, and {kind} like that is often known", *doubts))
    doubts.append(f"{reason}: make it a key if an intruder could know it")
    return None


def _once(column: Column) -> str:
    return f"{percent(column.distinction)} as many different values as values"
