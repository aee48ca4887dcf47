"""An original and its synthetic copies, made comparable once for all targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from discreet import engine
from discreet.core.arrays import Integers
from discreet.core.errors import ParameterError
from discreet.engine.attribution_counts import (
    JointCounts,
    SharedClasses,
    joint_counts,
    key_counts,
    shared_classes,
)
from discreet.engine.precision import Setting
from discreet.microdata import Microdata
from discreet.pairs.side_by_side import check_precision
from discreet.risk.attribution_attack import as_copies
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
    def links(self) -> list[SharedClasses]:
        """The classes of the original and of each copy, numbered alike."""
        return [
            shared_classes(self.original, copy, self.keys, precision=self.precision) for copy in self.copies
        ]

    @property
    def rounded(self) -> dict[str, str]:
        """The precision at which numbers were compared, by column, as far as they were counted yet."""
        return {name: grid.words for link in self.links for name, grid in link.grids.items()}

    @cached_property
    def key_cells(self) -> list[JointCounts]:
        """The counts of the (grouped) key combinations of the original and each copy."""
        counted = [coarsened(key_counts(link), self.keys, (), self.classes)[0] for link in self.links]
        return [overlapping(joint, self.keys) for joint in counted]

    def exact(self, target: str, copy: int = 0) -> JointCounts:
        """Count keys by one target as the values stand in the files."""
        return joint_counts(self.links[copy], (target,), self.weight)

    def cells(self, target: str, copy: int = 0) -> tuple[JointCounts, Integers]:
        """Count keys by one target in the groups; also say where each exact cell went."""
        return self.grouped(self.exact(target, copy), target)

    def grouped(self, exact: JointCounts, target: str) -> tuple[JointCounts, Integers]:
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
