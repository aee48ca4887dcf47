"""What the disclosure measures say to someone who is no statistician."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from discreet import engine
from discreet.core.wording import percent
from discreet.pairs.side_by_side import stated_precision
from discreet.risk.equivalence_classes import company_caveats
from discreet.risk.synthetic_copies.disclosure_table import Exclusions
from discreet.risk.synthetic_copies.paired_files import PairedFiles


def meaning_of(target: str, figures: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Say for how many people a target is disclosed, beside the original."""
    return (
        f"Someone who knows {and_(keys)} and trusts the release would learn '{target}' correctly for "
        f"{percent(figures['DiSCO'] / 100)} of the people, against {percent(figures['Dorig'] / 100)} "
        "with the original itself."
    )


def guessable(
    target: str,
    one: pl.DataFrame,
    pairs: pl.DataFrame,
    figures: Mapping[str, Any],
    *,
    exclusions: Exclusions,
    most: float,
) -> list[str]:
    """Warn of disclosures that anybody would have guessed, and of large cells, without naming a value."""
    warnings = []
    if one.height and one["flagged"][0]:
        row = one.row(0, named=True)
        warnings.append(
            f"{percent(row['share_of_disclosive'] / 100)} of the disclosures of '{target}' are of one value, which "
            f"{percent(row['share_of_file'] / 100)} of the people have anyway: anybody would have guessed it. See "
            "detail['one_way']; exclude_values leaves it out."
        )
    if pairs.height:
        named = and_(pairs["key"].unique(maintain_order=True).to_list())
        warnings.append(
            f"{pairs.height:,} pairs of a value of {named} and of '{target}' go together for more than "
            f"{most:g} % of the people in the original: such a disclosure may be common knowledge. See "
            "detail['two_way']; exclude_pairs leaves them out."
        )
    over = figures["records_over_denom"]
    if over and not exclusions.exclude_over:
        warnings.append(
            f"{over:,.0f} of the people whose '{target}' is disclosed are in cells of more than "
            f"{exclusions.denom_lim} records: this is about a group rather than a person. exclude_over_denom=True "
            "leaves them out."
        )
    return warnings


def key_caveats(files: PairedFiles) -> list[str]:
    """Word what the reader must know about the keys and about synthetic data at large."""
    floats = engine.seldom_repeated(files.original, [key for key in files.keys if key not in files.classes])
    caveats = [
        *company_caveats(files.original, files.keys, classes=False),
        *([engine.float_key_caveat(floats)] if floats else []),
    ]
    if files.original.roles.weight and not files.weight:
        caveats.append("Survey weights are not used: every record counts as one person.")
    caveats.append(
        "The figures hold for these keys: someone who knows more, or other things, learns more. A synthetic record "
        "that looks like a person need not come from them, but who finds it may believe so."
    )
    return caveats


def parameters_of(
    files: PairedFiles,
    targets: Sequence[str],
    exclusions: Exclusions,
    **others: Any,
) -> dict[str, Any]:
    """List what the measure was computed with; excluded values are counted, not named."""
    return {
        "keys": list(files.keys),
        "targets": list(targets),
        "copies": len(files.copies),
        "grouped": sorted(files.classes),
        "missing_target": exclusions.missing_target,
        "missing_keys_left_out": list(exclusions.missing_keys),
        "denom_lim": exclusions.denom_lim,
        "exclude_over_denom": exclusions.exclude_over,
        "denominator": exclusions.denominator,
        "weight": files.weight,
        "precision": stated_precision(files.precision, files.rounded),
        **others,
    }


def and_(names: Sequence[str]) -> str:
    """List names as a sentence does."""
    quoted = [f"'{name}'" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"
