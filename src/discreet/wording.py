"""How numbers and names are written for people who are no statisticians."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

_HUGE = 1e12
_SHARES = frozenset(
    [
        "A",
        "A_high",
        "A_low",
        "alpha",
        "B",
        "B_high",
        "B_low",
        "baseline",
        "baseline_majority",
        "best_blind_chance",
        "best_guess",
        "cap_original",
        "cap_released",
        "cap_within_released",
        "contribution",
        "dcap",
        "delta_max",
        "delta_min",
        "dis",
        "dis_file",
        "distinction",
        "dominance_1",
        "dominance_2",
        "epsilon_baseline",
        "epsilon_identifiability",
        "highest_risk",
        "hitting_rate",
        "insider_chance",
        "insider_success",
        "journalist_max",
        "journalist_mean",
        "largest_column_loss",
        "learned",
        "loss",
        "marketer",
        "max_dis",
        "max_distance",
        "max_missing_change",
        "max_SPECKS",
        "mean_distance",
        "mean_SPECKS",
        "missing",
        "missing_after",
        "missing_before",
        "p",
        "P_A",
        "P_B",
        "pr_isolate_baseline",
        "pr_isolate_given_release",
        "pr_population_unique",
        "pr_population_unique_at_least",
        "precision",
        "presence",
        "prosecutor_max",
        "prosecutor_mean",
        "pue",
        "recall",
        "rfue",
        "risk",
        "risk_above",
        "risk_up_to",
        "sampling_fraction",
        "separation",
        "sni",
        "SPECKS",
        "target_threshold",
        "tcap",
        "tcap_conditional",
        "tcap_ratio",
        "tcap_released",
        "unique_share",
        "worst",
    ]
)

_PERCENTAGES = frozenset(
    [
        "UiO",
        "UiS",
        "UiOiS",
        "repU",
        "Dorig",
        "Dsyn",
        "iS",
        "DiS",
        "DiSCO",
        "DiSDiO",
        "CAPd",
        "CAPs",
        "baseCAPd",
        "DCAP",
        "TCAP",
        "DCAP_matched",
        "DCAP_scaled",
        "TCAP_conditional",
        "TCAP_scaled",
    ]
)
"""Figures that readers of synthetic-data tables expect in percent, and that are held that way."""

_SHARE_OF_MEASURE = frozenset(
    {
        "alpha_k",
        "attribution",
        "delta_presence",
        "group_disclosure",
        "individual",
        "information_loss",
        "isolation",
        "key_contributions",
        "known_population",
        "linkage",
        "margins",
        "near_copies",
        "new_rows",
        "overlapping_tables",
        "population",
        "reidentification",
        "replicated_special_uniques",
        "series",
        "special_uniques",
        "uniqueness",
        "unsafe_combinations",
    }
)
_PERCENTAGE_OF_MEASURE = frozenset({"attribute_disclosure", "disclosure", "replicated_uniques"})


def title_of(name: str) -> str:
    """Turn a function name into the words of its title.

    Examples
    --------
    >>> title_of("k_anonymity"), title_of("alpha_k"), title_of("reidentification")
    ('k-anonymity', 'alpha-k', 'Re-identification')
    """
    if name in _TITLES:
        return _TITLES[name]
    words = name.replace("_", "-" if name.split("_", maxsplit=1)[0] in _SYMBOLS else " ")
    return words if "-" in words else words[:1].upper() + words[1:]


_TITLES = {
    "compare_model": "Answers of models",
    "dependence": "Relations between columns",
    "importance_shift": "Importance of features",
    "individual": "Individual risk",
    "gini_change": "Trees of a target",
    "margins": "Columns by themselves",
    "near_copies": "Copies of people",
    "neighbours": "Nearest neighbors",
    "population": "Population risk",
    "reidentification": "Re-identification",
    "log_linear": "Log-linear risk",
    "new_rows": "New records",
    "pmse": "Propensity (pMSE)",
    "pmse_logit": "Propensity by columns alone (pMSE)",
    "tabular": "Tables",
    "train_on_synthetic": "Training on the release",
    "transport": "Distance of whole records",
}
_SYMBOLS = frozenset({"k", "l", "t", "alpha", "beta", "delta"})


def figure_in_words(name: str) -> str:
    """Say what a figure of a rule counts, where its short name does not.

    Examples
    --------
    >>> figure_in_words("cap_released"), figure_in_words("unique_share")
    ('right guesses from the release', 'unique share')
    """
    return _FIGURES.get(name, name.replace("_", " "))


_FIGURES = {
    "by_keys_share": "found by their keys, exact or blurred, beyond chance",
    "cap_released": "right guesses from the release",
    "dcr_share_closer_than_holdout": "closer to the original than to the hold-out",
    "closer_share": "closer to the original than to the hold-out",
    "identical_share": "share equal to an original",
    "largest_share": "of the largest, with their value in the release, exactly or almost, beyond chance",
    "new_share_exact": "share that equals no real record",
    "outlying_share": "of the people farthest from all others, come back almost whole beyond chance",
    "outlying_whole_share": "of the people farthest from all others, come back whole beyond chance",
    "telling_share": "people whose own value is in the release, beyond chance",
}


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


def columns_not_judged(names: Sequence[str], most: int = 12) -> str:
    """Say which columns have no role, and what nobody has asked about them; nothing where all have one.

    Examples
    --------
    >>> columns_not_judged(["shoe size"])
    "1 column has no role and was not judged: 'shoe size'. Nobody asked whether people can be found by it ..."
    """
    if not names:
        return ""
    one = len(names) == 1
    it, was = (
        ("it", "1 column has no role and was")
        if one
        else ("them", f"{len(names):,} columns have no role and were")
    )
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return (
        f"{was} not judged: {', '.join(map(repr, names[:most]))}{more}. Nobody asked whether people can be found by "
        f"{it} (name {it} as {'a key' if one else 'keys'}) or what can be learned from {it} (name {it} as sensitive)."
    )


def type_name(dtype: Any) -> str:
    """Name the type of a column without what its values may be: the levels of a category are data.

    Examples
    --------
    >>> import polars as pl
    >>> type_name(pl.Enum(["Smith", "Jones"])), type_name(pl.Int64())
    ('Enum', 'Int64')
    """
    return str(dtype).partition("(")[0]


def is_share(name: str, *, measure: str | None = None) -> bool:
    """Say whether a figure is a share and reads best as a percentage.

    Examples
    --------
    >>> is_share("unique_share"), is_share("k"), is_share("value", measure="uniqueness")
    (True, False, True)
    """
    if name == "value":
        return measure in _SHARE_OF_MEASURE
    if name == "threshold":
        return measure in ("individual", "population", "reidentification")
    return name in _SHARES or "share" in name.split("_") or name.endswith("_risk")


def is_percentage(name: str, *, measure: str | None = None) -> bool:
    """Say whether a figure is held in percent, as readers of synthetic-data tables expect it.

    Examples
    --------
    >>> is_percentage("repU"), is_percentage("unique_share"), is_percentage("value", measure="disclosure")
    (True, False, True)
    """
    return name in _PERCENTAGES or (name == "value" and measure in _PERCENTAGE_OF_MEASURE)


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
