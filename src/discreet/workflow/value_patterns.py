"""What the texts of a column look like: e-mail addresses, phone numbers, names, national ids; and what is in free text.

Each look is judged on a sample; a share of the texts is all that leaves this module, never a text.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl


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
