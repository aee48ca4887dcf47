"""How numbers, figures and measures are named and written for people who are no statisticians."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from discreet.core import index
from discreet.core.cards import Figure, Place, card_of, in_words, new_cards

_HUGE = 1e12


def shown(figure: Any) -> str:
    """Write a number as a person reads it: thousands marked, four significant digits.

    Examples
    --------
    >>> shown(48842), shown(0.123456), shown(None), shown(float("inf")), shown(2.0), shown(1e20)
    ('48,842', '0.1235', 'undefined', 'unbounded', '2', '1e+20')
    """
    if figure is None or (isinstance(figure, float) and math.isnan(figure)):
        return "undefined"
    if isinstance(figure, bool):
        return "yes" if figure else "no"
    if isinstance(figure, int):
        return f"{figure:,}"
    if isinstance(figure, float):
        if math.isinf(figure):
            return "unbounded"
        if abs(figure) >= _HUGE:
            return f"{figure:.3g}"
        if figure.is_integer():
            return f"{int(figure):,}"
        return f"{figure:,.1f}" if abs(figure) >= 1000 else f"{figure:.4g}"
    return str(figure)


def percent(share: float | None) -> str:
    """Write a share as a percentage a person reads, never rounding something to nothing.

    Examples
    --------
    >>> percent(0.1234), percent(0.00001), percent(0.2), percent(0.99999), percent(1)
    ('12.3 %', 'under 0.01 %', '20 %', 'over 99.99 %', '100 %')
    """
    if share is None or math.isnan(share):
        return "an undefined share"
    if 0 < share < 1e-4:
        return "under 0.01 %"
    if 0.9999 < share < 1:
        return "over 99.99 %"
    digits = 2 if share < 0.01 or 0.99 < share < 1 else 1
    text = f"{share * 100:,.{digits}f}"
    return f"{text.rstrip('0').rstrip('.')} %"


def named(names: Iterable[str]) -> str:
    """List names as a sentence does.

    Examples
    --------
    >>> named(["age"]), named(["age", "sex", "zip"])
    ("'age'", "'age', 'sex' and 'zip'")
    """
    quoted = [f"'{name}'" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"


def columns_not_judged(names: Sequence[str], most: int = 12) -> str:
    """Say which columns have no role, and what nobody has asked about them; nothing where all have one.

    Examples
    --------
    >>> columns_not_judged(["shoe size"])
    "1 column has no role: 'shoe size'. No rule on keys or sensitive columns looked at it. Name it as a key if ..."
    """
    if not names:
        return ""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    listed = f"{', '.join(map(repr, names[:most]))}{more}"
    if len(names) == 1:
        return (
            f"1 column has no role: {listed}. No rule on keys or sensitive columns looked at it. Name it as a key if "
            "others may know it, as sensitive if it must not be learned."
        )
    return (
        f"{len(names):,} columns have no role: {listed}. No rule on keys or sensitive columns looked at them. Name "
        "them as keys if others may know them, as sensitive if they must not be learned."
    )


def not_judged_of(about: Mapping[str, Any]) -> str:
    """Say which columns nobody has asked about, and what is known of earlier releases."""
    return "\n".join(filter(None, [columns_not_judged(about.get("without_role") or ()), about.get("before")]))


def type_name(dtype: Any) -> str:
    """Name the type of a column without what its values may be: the levels of a category are data.

    Examples
    --------
    >>> import polars as pl
    >>> type_name(pl.Enum(["Smith", "Jones"])), type_name(pl.Int64())
    ('Enum', 'Int64')
    """
    return str(dtype).partition("(")[0]


# Figures: by the card of their measure, or by words that many share


SHARED = {
    "A": Figure("Chance that a person of the population is matched to their record (A)", unit="share"),
    "after": Figure("After"),
    "all_suppressed": Figure("Records without a known key, in no group"),
    "auc": Figure("Pairs of records ordered rightly (AUC)"),
    "B": Figure("Chance that a record is matched to its person (B)", unit="share"),
    "before": Figure("Before"),
    "cells": Figure("Groups"),
    "chosen": Figure("Chosen"),
    "class": Figure("Group"),
    "class_size": Figure("Group size"),
    "classes": Figure("Groups"),
    "classes_above": Figure("Groups above the threshold"),
    "classes_below": Figure("Groups below the limit"),
    "company": Figure("People like them who may be relied on"),
    "copies": Figure("Copies"),
    "difference": Figure("Change"),
    "DiSCO": Figure("Told for certain by the release, and right (DiSCO)", unit="percent"),
    "distance": Figure("Distance"),
    "distinct": Figure("Different values"),
    "expected_matches": Figure("Expected number of correct matches"),
    "fit_seconds": Figure("Seconds to fit"),
    "highest_risk": Figure("Highest chance", unit="share"),
    "homogeneous_share": Figure("Share of records in groups with one sensitive value", unit="share"),
    "k": Figure("Smallest group (k)"),
    "key": Figure("Key"),
    "keys": Figure("Keys"),
    "m": Figure("Records in the group"),
    "matched_share": Figure("Share with a match", unit="share"),
    "max_size": Figure("Largest number of keys"),
    "measure": Figure("Measure"),
    "memory_mb": Figure("Memory on top, in megabytes"),
    "missing": Figure(unit="share"),
    "order": Figure("Number of columns"),
    "other": Figure("And"),
    "population": Figure("Group size in the population"),
    "population_classes": Figure("Groups in the population"),
    "population_size": Figure("Group size in the population"),
    "population_uniques": Figure("People unique in the population"),
    "records": Figure("Records"),
    "records_above": Figure("Records in groups above the threshold"),
    "records_above_threshold": Figure("Records above the risk threshold"),
    "records_below": Figure("Records below the limit"),
    "records_below_threshold": Figure("Records in groups below the threshold"),
    "records_in_file": Figure("Records of the file"),
    "records_left_out": Figure("Records left out (missing keys)"),
    "replicated": Figure("Records alone in both files"),
    "repU": Figure("Alone in both files (repU)", unit="percent"),
    "sample_seconds": Figure("Seconds to draw a file"),
    "sample_uniques": Figure("Records unique in the file"),
    "sampling_fraction": Figure("Share of the population in the file", unit="share"),
    "sensitive": Figure("Sensitive column"),
    "share_above": Figure("Share of records in groups above the threshold", unit="share"),
    "share_above_threshold": Figure("Share of records above the risk threshold", unit="share"),
    "share_below_threshold": Figure("Share of records in groups below the threshold", unit="share"),
    "size": Figure("Number of keys"),
    "tables": Figure("Tables"),
    "target": Figure("Column"),
    "tau1": Figure("Records unique in file and population (tau1)"),
    "tau2": Figure("Right matches on unique records (tau2)"),
    "threshold": Figure("Threshold"),
    "UiO": Figure("Alone in the original (UiO)", unit="percent"),
    "UiOiS": Figure("Alone in the original and present in the release (UiOiS)", unit="percent"),
    "UiS": Figure("Alone in the release (UiS)", unit="percent"),
    "unique_matches": Figure("Unique records present in the release"),
    "unique_records": Figure("Records alone in their group"),
    "unique_share": Figure("Share of records alone in their group", unit="share"),
    "uniques_original": Figure("Records alone in the original"),
    "uniques_released": Figure("Records alone in the release"),
    "variables": Figure("Table"),
    "worst": Figure("The worse of A and B", unit="share"),
}
"""Figures, and columns of tables, that mean the same wherever they are found."""


def title_of(name: str) -> str:
    """Return the title of a measure, or its name in words where it has no card.

    Examples
    --------
    >>> title_of("k_anonymity"), title_of("alpha_k"), title_of("reidentification")
    ('k-anonymity', 'alpha-k', 'Re-identification')
    """
    card = card_of(name)
    return card.title if card else in_words(name)


def label_of(name: str, *, measure: str = "") -> str:
    """Return the words for a figure (of a measure, where that matters) or a column of a detail table.

    Examples
    --------
    >>> label_of("pue"), label_of("records_below_3"), label_of("some_figure")
    ('Share of groups with one record (PUE)', 'Records in groups smaller than 3', 'Some figure')
    """
    for figure in _said(name, measure):
        if figure.label:
            return figure.label
    start, _, end = name.rpartition("_")
    if start == "records_below" and end.isdigit():
        return f"Records in groups smaller than {end}"
    words = name.replace("_", " ").strip()
    return words[:1].upper() + words[1:]


def heading_of(name: str, *, measure: str) -> str:
    """Return the heading of a column in a table of a measure; a column need not be the figure of that name."""
    card = card_of(measure)
    own = card.columns.get(name) if card else None
    return own.label if own and own.label else label_of(name)


def figures_of(measure: str) -> Mapping[str, Figure]:
    """Return the figures that the card of a measure speaks of, by name; none where it has no card."""
    card = card_of(measure)
    return card.figures if card else {}


def words_at(place: Place, name: str, *, measure: str = "") -> str | None:
    """Return what a figure is called at one place; None where it goes by its label there.

    Examples
    --------
    >>> words_at("axis", "marketer"), words_at("axis", "pue"), words_at("rule", "cap_released", measure="attribution")
    ('Average, marketer', None, 'right guesses from the release')
    """
    own = _own(name, measure)
    if own is not None:
        # What others call a figure of the same name does not count where its own measure speaks of it.
        return own.words.get(place)
    return next((figure.words[place] for figure in _said(name, "") if place in figure.words), None)


def is_share(name: str, *, measure: str | None = None) -> bool:
    """Say whether a figure is a share and reads best as a percentage.

    Examples
    --------
    >>> is_share("unique_share"), is_share("k"), is_share("value", measure="uniqueness")
    (True, False, True)
    """
    own = _own(name, measure)
    if own is not None or name == "value":
        return own is not None and own.unit == "share"
    if "share" in name.split("_") or name.endswith("_risk"):
        return True
    return _unit_elsewhere(name) == "share"


def is_percentage(name: str, *, measure: str | None = None) -> bool:
    """Say whether a figure is held in percent, as readers of synthetic-data tables expect it.

    Examples
    --------
    >>> is_percentage("repU"), is_percentage("unique_share"), is_percentage("value", measure="disclosure")
    (True, False, True)
    """
    own = _own(name, measure)
    if own is not None or name == "value":
        return own is not None and own.unit == "percent"
    return _unit_elsewhere(name) == "percent"


def signed(name: str, figure: Any, *, measure: str | None = None) -> str:
    """Write a figure as it is held: a fraction as a fraction, and a percentage with its sign.

    Examples
    --------
    >>> signed("repU", 1.9), signed("unique_share", 0.048), signed("replicated", 38)
    ('1.9 %', '0.048', '38')
    """
    is_number = isinstance(figure, int | float) and not isinstance(figure, bool)
    return f"{shown(figure)} %" if is_number and is_percentage(name, measure=measure) else shown(figure)


def worded(name: str, figure: Any, *, measure: str | None = None) -> str:
    """Write a figure as a person reads it: shares in percent, other numbers as they are.

    Examples
    --------
    >>> worded("unique_share", 0.253), worded("k", 3), worded("t", 0.123456), worded("pue", None)
    ('25.3 %', '3', '0.1235', 'undefined')
    >>> worded("repU", 0.45)
    '0.45 %'
    """
    is_number = isinstance(figure, int | float) and not isinstance(figure, bool)
    if is_number and is_percentage(name, measure=measure):
        return percent(figure / 100) if 0 <= figure <= 100 else signed(name, figure, measure=measure)
    if is_number and is_share(name, measure=measure) and 0 <= figure <= 1:
        return percent(figure)
    return shown(figure)


def _own(name: str, measure: str | None) -> Figure | None:
    """Return what the card of the measure itself says about a figure."""
    card = card_of(measure) if measure else None
    return card.figure(name) if card else None


def _unit_elsewhere(name: str) -> str:
    """Return the unit of a figure whose measure does not speak of it."""
    return next((figure.unit for figure in _said(name, "")), "")


def _said(name: str, measure: str) -> Iterator[Figure]:
    """Tell what is said about a figure: by its measure, by the words that many share, by the cards of others."""
    own = _own(name, measure)
    if own is not None:
        yield own
    if name == "value":
        return
    if name in SHARED:
        yield SHARED[name]
    elsewhere = index.figures().get(name)
    if elsewhere is not None:
        yield Figure(**elsewhere)
    yield from (figure for card in new_cards() if (figure := card.figure(name)) is not None)
