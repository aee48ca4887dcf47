"""Which role fits one column? One question after the other, each with its reason.

Names and looks of values go before uniqueness; what no question claims is proposed as sensitive, because
leaving it out of sight would be the unsafe mistake.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import narwhals as nw
import polars as pl

from discreet.core.usual_names import (
    is_half_of_a_place,
    is_numbered,
    is_replicate_weight,
    meaning_of,
    numbers_people,
    structure_of,
    suggests_weight,
)
from discreet.core.wording import percent

Confidence = Literal["sure", "likely", "please check"]

_TOO_FEW = 20
_NEARLY_UNIQUE = 0.98
_SOME_REPEAT = 0.2


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
        _several_records,
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


def may_repeat_people(name: str, values: int, distinct: int) -> bool:
    """Whether a column seems to number people of whom some have several records.

    Examples
    --------
    >>> [may_repeat_people(name, 1_000, 400) for name in ("patient_id", "caseNo", "postcode", "household_id", "age")]
    [True, True, False, False, False]
    >>> may_repeat_people("patient_id", 1_000, 1_000), may_repeat_people("school_no", 1_000, 30)
    (False, False)
    """
    if not _TOO_FEW < distinct < _NEARLY_UNIQUE * values or structure_of(name):
        return False
    meaning = meaning_of(name)
    bare = meaning is None or (meaning.role == "identifiers" and meaning.concept != "a name")
    return numbers_people(name) or (bare and is_numbered(name) and distinct > _SOME_REPEAT * values)


def _several_records(column: Column, doubts: list[str]) -> Proposal | None:
    """Take a number of people as the person, where it repeats: then people are counted, not their records."""
    countable = column.is_text or column.dtype.is_integer()
    if not countable or not may_repeat_people(column.name, column.values, column.distinct):
        return None
    sure = "likely" if numbers_people(column.name) else "please check"
    reason = (
        f"its name says it numbers people, and {column.values - column.distinct:,} records repeat a number: people "
        "are counted by it, and it is dropped like other identifiers"
    )
    return Proposal("person", sure, (reason,))  # type: ignore[arg-type]


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
    if numbered and column.distinction > _SOME_REPEAT:
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


# What the texts of a column look like: e-mail addresses, phone numbers, names, national ids; and what is in free text.
#
# Each look is judged on a sample; a share of the texts is all that leaves this module, never a text.


@dataclass(frozen=True)
class Look:
    """A pattern, how it is called in a sentence, and from which share on it is believed."""

    words: str
    pattern: str
    least: float


# Patterns that random digits may meet are believed only when nearly every text meets them.
LOOKS = (
    Look("e-mail addresses", r"^[^@\s]+@[^@\s]+\.[A-Za-z]{2,}$", 0.05),
    Look("web addresses", r"^(?:https?://|www\.)\S+$", 0.3),
    Look("IP addresses", r"^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)$", 0.5),
    Look(
        "IP addresses",
        r"^(?:[0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}$|^(?:[0-9A-Fa-f]{1,4}:){1,7}:[0-9A-Fa-f:]{0,34}$",
        0.5,
    ),
    Look("bank account numbers (IBAN)", r"^[A-Z]{2}\d{2} ?[A-Z0-9]{4} ?(?:[A-Z0-9] ?){7,26}$", 0.3),
    Look("payment card numbers", r"^\d{4}(?:[ -]\d{4}){3}$", 0.3),
    Look("US social security numbers", r"^\d{3}-\d{2}-\d{4}$", 0.3),
    Look(
        "French social security numbers (NIR)",
        r"^[12] ?\d{2} ?(?:0[1-9]|1[0-2]|[2-9]\d) ?(?:\d{2}|2[AB]) ?\d{3} ?\d{3}(?: ?\d{2})?$",
        0.8,
    ),
    Look("Spanish identity numbers (DNI, NIE)", r"^(?:\d{8}|[XYZ]\d{7})-?[A-Z]$", 0.5),
    Look("Italian tax codes", r"^[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z]$", 0.3),
    Look("British national insurance numbers", r"^[A-CEGHJ-PR-TW-Z]{2} ?\d{2} ?\d{2} ?\d{2} ?[A-D]$", 0.5),
    Look(
        "Nordic personal numbers",
        r"^(?:19|20)?\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]|6[1-9]|[78]\d|9[01])[-+]?\d{4}$",
        0.9,
    ),
    Look(
        "Nordic personal numbers",
        r"^(?:0[1-9]|[12]\d|3[01])(?:0[1-9]|1[0-2])\d{2}(?:[-+A]\d{3}[0-9A-Z]|\d{4,5})$",
        0.9,
    ),
    Look(
        "unique identifiers (UUID)",
        r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$",
        0.5,
    ),
)
_DATE = r"^\d{1,4}[-./]\d{1,2}[-./]\d{1,4}$"
_PHONE = "|".join(
    (
        r"^(?:\+|00)[\d\s().\-/]{7,20}$",
        r"^\(?0\d[\d\s().\-/]{7,16}$",
        r"^\(?\d{2,4}\)?[\s.\-/]\d{2,4}[\s.\-/][\d\s.\-/]{4,12}$",
    )
)

_TITLE = r"(?:Mrs?|Ms|Miss|Dr|Prof|Herrn?|Frau|Fr|Hr|Mme|Mlle|Sra?|Sig(?:ra)?|Dhr|Mevr|Pan[i]?)\.?"
_CAPITALIZED = r"\p{Lu}[\p{L}'’-]*\p{Ll}[\p{L}'’-]*"
_PARTICLE = r"(?:van|von|de|den|der|del|della|da|di|du|la|le|bin|ibn|al|el|zu|ten|ter)"
_NAME = rf"^(?:{_TITLE} )*{_CAPITALIZED}(?:,? (?:{_CAPITALIZED}|\p{{Lu}}\.?|{_PARTICLE}))*,? {_CAPITALIZED}$"
_COORDINATES = r"^\(?[+-]?\d{1,3}\.\d{3,}°?\s?[NS]?\s?[,; ]\s?[+-]?\d{1,3}\.\d{3,}°?\s?[EWO]?\)?$"
_VARIED = 0.5
_WITHIN = (
    ("e-mail addresses", r"[^@\s]+@[^@\s]+\.[A-Za-z]{2,}"),
    (
        "phone numbers",
        r"(?:\+|\b00)\d[\d\s().\-/]{6,}\d|\b0\d{2,4}[\s/.-]?\d{3,}[\s.-]?\d{2,}|\b\d{3}[-.\s]\d{3}[-.\s]\d{4}\b",
    ),
    ("names of people", rf"\b{_TITLE}\s{_CAPITALIZED}"),
)
_FULL_NAME = rf"[^.!?:;\s]\s(?:{_CAPITALIZED})\s(?:{_CAPITALIZED})"
_LEAST_WITHIN = 2
_MANY_NAMES = 50
_RECOMBINED = 0.7


def held_within(texts: pl.Series) -> list[tuple[str, float]]:
    """Tell what the texts of a column hold beside other words, and which share of them does.

    Examples
    --------
    >>> held_within(pl.Series(["please call 0664 123 45 67", "fine", "Dr. Weber asked for a scan", "Dr Ott saw her"]))
    [('names of people', 0.5)]
    """
    texts = texts.drop_nulls().cast(pl.String).str.strip_chars()
    worded = texts.str.contains(r"\p{L}{2,}\s|\s\p{L}{2,}")
    found = []
    for words, pattern in _WITHIN:
        held = worded & texts.str.contains(pattern)
        if words == "names of people" and _is_free_text(texts):
            held |= texts.str.contains(_FULL_NAME)
        if held.sum() >= _LEAST_WITHIN:
            found.append((words, _share(held)))
    return found


def look_of(texts: pl.Series) -> tuple[str, float] | None:
    """Tell what the texts of a column look like, and which share of them does.

    Examples
    --------
    >>> look_of(pl.Series(["ann@example.org", "bo@example.org"]))
    ('e-mail addresses', 1.0)
    >>> look_of(pl.Series(["red", "green"])) is None
    True
    """
    texts = texts.drop_nulls().cast(pl.String).str.strip_chars()
    if texts.is_empty():
        return None
    for look in LOOKS:
        share = _share(texts.str.contains(look.pattern))
        if share >= look.least:
            return look.words, share
    share = _share(texts.str.contains(_PHONE) & ~texts.str.contains(_DATE))
    # Codes of places and goods also have blanks and dots; phone numbers hardly ever repeat.
    if share >= 0.5 and texts.n_unique() >= 0.5 * len(texts):
        return "phone numbers", share
    for words, pattern in (("coordinates", _COORDINATES), ("names of people", _NAME)):
        share = _share(texts.str.contains(pattern))
        # Towns, trades and diagnoses are written like names, but come again and again as they are.
        varied = texts.n_unique() >= max(_VARIED * len(texts), 2) or (pattern == _NAME and _recombine(texts))
        if share >= 0.8 and varied:
            return words, share
    return ("free text", 1.0) if _is_free_text(texts) else None


def may_weigh_bodies(numbers: pl.Series) -> bool:
    """Tell whether numbers could be the weights of people, in kilograms or pounds.

    Bodies differ by more than a quarter and are weighed to a tenth; calibrated survey weights have many decimals, and
    those of a simple sample hardly differ.

    Examples
    --------
    >>> may_weigh_bodies(pl.Series([54.5, 61.0, 70.2, 81.9, 97.0]))
    True
    >>> may_weigh_bodies(pl.Series([54.5127, 61.0442, 70.2871, 81.9016])), may_weigh_bodies(pl.Series([100, 100, 101]))
    (False, False)
    """
    numbers = numbers.drop_nulls().cast(pl.Float64)
    numbers = numbers.filter(numbers.is_finite())
    if numbers.is_empty():
        return False
    low, middle, high = (float(numbers.quantile(share)) for share in (0.05, 0.5, 0.95))  # type: ignore[arg-type]
    rounded = _share((numbers * 10 - (numbers * 10).round()).abs() < 1e-6)
    return low >= 2 and 10 <= middle <= 220 and high <= 400 and high >= 1.25 * low and rounded >= 0.95


def digits_look(numbers: pl.Series) -> tuple[str, float] | None:
    """Tell whether long whole numbers are personal numbers."""
    numbers = numbers.drop_nulls()
    if numbers.is_empty() or numbers.cast(pl.Float64).quantile(0.05) < 1e8:  # type: ignore[operator]
        return None
    texts = numbers.cast(pl.String)
    for look in LOOKS:
        if look.least >= 0.8 and (share := _share(texts.str.contains(look.pattern))) >= look.least:
            return look.words, share
    return None


def _recombine(texts: pl.Series) -> bool:
    """Say whether the same first and last words meet in many ways, as the names of people do."""
    distinct = texts.unique()
    ends = [distinct.str.extract(pattern).n_unique() for pattern in (r"^(\S+)", r"(\S+)$")]
    return len(distinct) >= _MANY_NAMES and max(ends) <= _RECOMBINED * len(distinct)


def _is_free_text(texts: pl.Series) -> bool:
    words = texts.str.count_matches(r"\S+").mean()
    length = texts.str.len_chars().mean()
    varied = texts.n_unique() >= 0.3 * len(texts) and texts.n_unique() > 1
    return bool(varied and float(words) >= 4 and float(length) >= 20)  # type: ignore[arg-type]


def _share(flags: pl.Series) -> float:
    return float(flags.sum()) / len(flags)
