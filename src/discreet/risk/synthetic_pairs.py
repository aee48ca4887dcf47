"""An original and its synthetic copies, made comparable once for all targets, and what is said of them in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Integers
from discreet.core.errors import ParameterError
from discreet.core.wording import named, percent
from discreet.engine.precision import Setting
from discreet.microdata import Microdata
from discreet.pairs.side_by_side import check_precision, stated_precision
from discreet.risk.attribution_attack import as_copies
from discreet.risk.disclosure_cells import Exclusions
from discreet.risk.equivalence_classes import company_caveats
from discreet.risk.value_classes import Classes, coarsened, grouped, overlapping

Groups = int | Mapping[str, int] | None


@dataclass(frozen=True)
class PairedFiles:
    """The original, its copies, the keys, and the groups that numeric columns were put into."""

    original: Microdata
    copies: tuple[Microdata, ...]
    keys: tuple[str, ...]
    classes: Mapping[str, Classes] = field(default_factory=dict)
    weight: str | None = None
    notes: tuple[str, ...] = ()
    precision: Setting = None

    @classmethod
    def of(
        cls,
        original: Microdata,
        released: Microdata | Sequence[Microdata],
        keys: Sequence[str] | None,
        targets: Sequence[str] = (),
        *,
        groups_keys: Groups = None,
        groups_target: Groups = None,
        special_values: Mapping[str, Sequence[float]] | None = None,
        weight: str | None = None,
        precision: Setting = None,
    ) -> PairedFiles:
        """Check the files against each other and draw the groups, from all of them together."""
        keys = engine.resolve_keys(original, keys)
        check_precision(precision, original.columns)
        copies = as_copies(released, keys, targets)
        wanted = {
            **_by_column(groups_keys, keys, "groups_keys"),
            **_by_column(groups_target, targets, "groups_target"),
        }
        special = dict(special_values or {})
        for column in special:
            if column not in wanted:
                raise ParameterError(
                    f"special_values names '{column}', which is not grouped: there every value stands alone anyway."
                )
        classes: dict[str, Classes] = {}
        notes: list[str] = []
        for column, count in wanted.items():
            drawn, note = grouped(column, count, original, copies, special.get(column, ()))
            notes += note
            if drawn is not None:
                classes[column] = drawn
        weight = None if weight is None else engine.resolve_weight(original, weight)
        return cls(original, tuple(copies), tuple(keys), classes, weight, tuple(notes), precision)

    @cached_property
    def links(self) -> list[engine.SharedClasses]:
        """The classes of the original and of each copy, numbered alike."""
        return [
            engine.shared_classes(self.original, copy, self.keys, precision=self.precision)
            for copy in self.copies
        ]

    @property
    def rounded(self) -> dict[str, str]:
        """The precision at which numbers were compared, by column, as far as they were counted yet."""
        return {name: grid.words for link in self.links for name, grid in link.grids.items()}

    @cached_property
    def key_cells(self) -> list[engine.JointCounts]:
        """The counts of the (grouped) key combinations of the original and each copy."""
        counted = [coarsened(engine.key_counts(link), self.keys, (), self.classes)[0] for link in self.links]
        return [overlapping(joint, self.keys) for joint in counted]

    def exact(self, target: str, copy: int = 0) -> engine.JointCounts:
        """Count keys by one target as the values stand in the files."""
        return engine.joint_counts(self.links[copy], (target,), self.weight)

    def cells(self, target: str, copy: int = 0) -> tuple[engine.JointCounts, Integers]:
        """Count keys by one target in the groups; also say where each exact cell went."""
        return self.grouped(self.exact(target, copy), target)

    def grouped(self, exact: engine.JointCounts, target: str) -> tuple[engine.JointCounts, Integers]:
        """Put exact cells into the groups."""
        if not any(column in self.classes for column in (*self.keys, target)):
            return exact, np.arange(len(exact.owners))
        return coarsened(exact, self.keys, (target,), self.classes)

    def with_original(self, other: Microdata) -> PairedFiles:
        """Set other records (a hold-out set) in the place of the original, in the same groups."""
        counted = engine.overview(other, ())
        if not counted.rows:
            raise ParameterError("The hold-out file has no records.")
        return replace(self, original=other, weight=None)


def mean_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Average figures over copies; what is undefined in one of them is left out of its mean."""
    if len(rows) == 1:
        return dict(rows[0])
    found: dict[str, Any] = {}
    for name in rows[0]:
        known = [row[name] for row in rows if row[name] is not None]
        found[name] = float(np.mean(known)) if known else None
    return found


def _by_column(groups: Groups, columns: Sequence[str], parameter: str) -> dict[str, int]:
    if groups is None:
        return {}
    if isinstance(groups, Mapping):
        for column in groups:
            if column not in columns:
                raise ParameterError(
                    f"{parameter} names '{column}', which is not one of: {', '.join(columns)}."
                )
        return {column: count for column, count in groups.items() if count}
    return dict.fromkeys(columns, groups) if groups else {}


# What the disclosure measures say to someone who is no statistician.


def meaning_of(target: str, figures: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Say for how many people a target is disclosed, beside the original."""
    return (
        f"Someone who knows {named(keys)} and trusts the release would learn '{target}' correctly for "
        f"{percent(figures['DiSCO'] / 100)} of the people, against {percent(figures['Dorig'] / 100)} "
        "with the original itself."
    )


def guessable(
    target: str,
    one: pl.DataFrame,
    pairs: pl.DataFrame,
    figures: Mapping[str, Any],
    exclusions: Exclusions,
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
        keys_named = named(pairs["key"].unique(maintain_order=True).to_list())
        warnings.append(
            f"{pairs.height:,} pairs of a value of {keys_named} and of '{target}' go together for more than "
            f"{exclusions.two_way[1]:g} % of the people in the original: such a disclosure may be common knowledge. "
            "See detail['two_way']; exclude_pairs leaves them out."
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
