"""What the disclosure measures are to be computed on: the targets, the exclusions and the checked cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.errors import ColumnError, ParameterError
from discreet.microdata import Microdata
from discreet.risk.synthetic_copies.disclosure_table import (
    REASONS,
    DisclosureCells,
    Exclusions,
    identity_shares,
)
from discreet.risk.synthetic_copies.paired_files import PairedFiles, mean_of
from discreet.risk.synthetic_copies.replicated_uniques import Which

Pair = tuple[str, Any, Any]


@dataclass(frozen=True)
class Checked:
    """The cells of one target and copy, with the two checks and the figures."""

    cells: DisclosureCells
    one_way: pl.DataFrame
    two_way: pl.DataFrame
    figures: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        files: PairedFiles,
        target: str,
        copy: int,
        exclusions: Exclusions,
        *,
        thresh_1way: tuple[float, float],
        thresh_2way: tuple[float, float],
    ) -> Checked:
        """Count, decide and check one target in the original and one copy."""
        joint, _ = files.cells(target, copy)
        cells = DisclosureCells.of(joint, files.keys, exclusions)
        one, two = cells.one_way(thresh_1way), cells.two_way(thresh_2way)
        over = cells.correct & (cells.sizes > exclusions.denom_lim)
        figures = {
            **cells.shares(),
            "one_way_flag": int(one["flagged"].sum()),
            "two_way_pairs": two.height,
            "records_over_denom": int(joint.original[over].sum()),
        }
        return cls(cells, one, two, figures)

    def thinned_identity(self) -> dict[str, Any]:
        """Count the uniques on tables from which the excluded cells were emptied, as synthpop does."""
        joint, reason = self.cells.joint, self.cells.reason_both
        kept = (reason == 0) | (reason == len(REASONS))
        sizes = [
            np.bincount(
                joint.owners, weights=np.where(kept, counts, 0), minlength=joint.class_labels.height
            ).astype(np.int64)
            for counts in (joint.original, joint.released)
        ]
        return identity_shares(sizes[0], sizes[1], (int(joint.original.sum()), int(joint.released.sum())))


def learnable(
    original: Microdata,
    released: Microdata | Sequence[Microdata],
    targets: str | Sequence[str] | None,
    keys: Sequence[str],
) -> tuple[tuple[str, ...], list[str]]:
    """Return the targets: those named, else the sensitive columns, else all that can be learned from both files."""
    if targets is not None:
        return engine.resolve_sensitive(original, targets, keys), []
    sensitive = [column for column in original.roles.sensitive if column not in keys]
    copies = [released] if isinstance(released, Microdata) else list(released)
    taken = (*keys, *original.roles.identifiers, original.roles.weight)
    found = sensitive or [column for column in original.columns if column not in taken]
    shared = [column for column in found if all(column in copy.schema for copy in copies)]
    empty = [
        column
        for column in shared
        for data in (original, *copies)
        if engine.overview(data, [column]).missing[column] == engine.overview(data, [column]).rows
    ]
    notes = (
        []
        if sensitive
        else ["No column has the role of a sensitive one, so every column beside the keys is a target."]
    )
    lost = [column for column in found if column not in shared or column in empty]
    if lost:
        named = ", ".join(f"'{column}'" for column in lost)
        notes.append(f"{named} is not in both files, or empty in one, and was left out of the targets.")
    columns = tuple(column for column in shared if column not in empty)
    if not columns:
        raise ColumnError(
            "The two files have no sensitive column, or none beside the keys, in common: there is no target to learn. "
            "Name some with targets=[…]."
        )
    return columns, notes


def refuse_unknown(
    values: Mapping[str, Any] | None, pairs: Mapping[str, Any] | None, columns: Sequence[str]
) -> None:
    """Refuse exclusions that are not given by target, or for a column that is none."""
    for name, given in (("exclude_values", values), ("exclude_pairs", pairs)):
        if given is not None and not isinstance(given, Mapping):
            raise ParameterError(f"{name} is given by target here: {{'target': […]}}.")
        for target in given or {}:
            if target not in columns:
                raise ParameterError(f"{name} names '{target}', which is not one of the targets.")


def exclusions_of(
    values: Sequence[Any],
    pairs: Sequence[Pair],
    *,
    missing_target: bool,
    missing_keys: tuple[str, ...],
    denom_lim: int | None,
    exclude_over: bool,
    denominator: Which,
) -> Exclusions:
    """Check what a user wants left out."""
    limit = 5 if denom_lim is None else denom_lim
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ParameterError("denom_lim must be a whole number of 1 or more.")
    if denominator not in ("released", "original"):
        raise ParameterError("denominator must be 'released' or 'original'.")
    if any(len(pair) != 3 for pair in pairs):
        raise ParameterError("Each excluded pair has three parts: (key, key value, target value).")
    return Exclusions(
        values=(values,) if isinstance(values, str) else tuple(values),
        pairs=tuple(pairs),
        missing_target=missing_target,
        missing_keys=missing_keys,
        denom_lim=limit,
        exclude_over=exclude_over,
        denominator=denominator,
    )


def specific_risk(training: float, holdout: float) -> float:
    """How much is disclosed about the people in the file beyond what is about anybody?

    ``(training - holdout) / (1 - holdout)``, both as fractions (Giomi et al. 2023).

    Examples
    --------
    >>> round(specific_risk(0.3450, 0.2130), 4), round(specific_risk(0.4928, 0.3130), 4)
    (0.1677, 0.2617)
    """
    if holdout >= 1:
        raise ParameterError(
            "Everything about the held-out records is disclosed, so no risk specific to the file can be told apart."
        )
    return (training - holdout) / (1 - holdout)


def against_holdout(
    files: PairedFiles,
    holdout: Microdata,
    target: str,
    exclusions: Exclusions,
    figures: Mapping[str, Any],
) -> dict[str, float]:
    """Measure the same for people who were not used, and what goes beyond it."""
    for column in (*files.keys, target):
        if column not in holdout.schema:
            raise ColumnError(
                f"The hold-out file has no column '{column}'. It needs the keys and the targets."
            )
    held_out = files.with_original(holdout)
    shares = [
        DisclosureCells.of(
            held_out.cells(target, i)[0], files.keys, replace(exclusions, strict=False)
        ).shares()
        for i in range(len(files.copies))
    ]
    mean = mean_of(shares)
    return {
        "DiSCO_control": mean["DiSCO"],
        "R": specific_risk(figures["DiSCO"] / 100, mean["DiSCO"] / 100),
        "DCAP_control": mean["DCAP"],
        "R_DCAP": specific_risk(figures["DCAP"] / 100, mean["DCAP"] / 100),
    }
