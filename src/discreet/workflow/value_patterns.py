"""What the texts of a column look like: e-mail addresses, phone numbers, national ids, free text.

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
    return ("free text", 1.0) if _is_free_text(texts) else None


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


def _is_free_text(texts: pl.Series) -> bool:
    words = texts.str.count_matches(r"\S+").mean()
    length = texts.str.len_chars().mean()
    varied = texts.n_unique() >= 0.3 * len(texts) and texts.n_unique() > 1
    return bool(varied and float(words) >= 4 and float(length) >= 20)  # type: ignore[arg-type]


def _share(flags: pl.Series) -> float:
    return float(flags.sum()) / len(flags)
