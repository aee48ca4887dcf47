"""Targets laid out flat for the compiled search: columns, blocks and conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.synth.from_outputs.bound import (
    Bound,
    BoundCorrelation,
    BoundGroups,
    BoundTable,
)
from discreet.synth.from_outputs.bound_model import BoundModel
from discreet.synth.from_outputs.columns import Column, Columns


@dataclass(frozen=True, eq=False)
class Layout:
    """The soft targets laid out for the compiled search.

    Attributes
    ----------
    bounds
        One block each.
    plan
        Their columns and conditions.
    """

    bounds: tuple[Bound, ...]
    plan: Any

    @classmethod
    def of(cls, bounds: Sequence[Bound]) -> Layout:
        """Lay out the targets."""
        from discreet.synth.from_outputs import search_kernels as kernels

        columns: list[Column] = []
        blocks: dict[str, list[int]] = {
            name: [] for name in ("kind", "base", "outcome", "c0", "c1", "k0", "k1", "entry")
        }
        about: list[int] = []
        which: list[int] = []
        share_of: list[int] = []
        entries = 0
        for bound in bounds:
            own, outcome, conditions = _block_of(bound)
            shares = [form.share_of for form in bound.forms] if isinstance(bound, BoundTable) else []
            blocks["k0"].append(len(about))
            blocks["c0"].append(len(columns))
            columns += own
            blocks["c1"].append(len(columns))
            about += [kind for kind, _ in conditions]
            which += [index for _, index in conditions]
            blocks["k1"].append(len(about))
            blocks["kind"].append(_kind(bound))
            # Groups and cells carry the base inside their own columns.
            with_base = bool(bound.base) and isinstance(bound, BoundModel | BoundCorrelation)
            blocks["base"].append(len(columns) if with_base else -1)
            columns += [bound.base] if with_base else []
            blocks["outcome"].append(len(columns) if outcome is not None else -1)
            columns += [outcome] if outcome is not None else []
            known: dict[Column, int] = {}
            for share in shares:
                if share is not None and share not in known:
                    known[share] = len(columns)
                    columns.append(share)
            share_of += [known[share] if share is not None else -1 for share in shares]
            share_of += [-1] * (len(conditions) - len(shares))
            blocks["entry"].append(entries)
            entries += len(own) ** 2 if isinstance(bound, BoundModel) else 0
        whole = {name: np.array(values, dtype=np.int64) for name, values in blocks.items()}
        plan = kernels.Plan(
            Columns.laid_out(columns),
            whole["kind"],
            whole["base"],
            whole["outcome"],
            whole["c0"],
            whole["c1"],
            whole["k0"],
            whole["k1"],
            whole["entry"],
            np.array(about, dtype=np.int64),
            np.array(which, dtype=np.int64),
            np.array(share_of, dtype=np.int64),
        )
        return cls(tuple(bounds), plan)


def _kind(bound: Bound) -> int:
    from discreet.synth.from_outputs import search_kernels as kernels

    if isinstance(bound, BoundModel):
        return kernels.LOGIT if bound.family == "logit" else kernels.LINEAR
    if isinstance(bound, BoundGroups):
        return kernels.MEDIANS if bound.median else kernels.MEANS
    return kernels.TABLE if isinstance(bound, BoundTable) else kernels.CORRELATION


def _block_of(bound: Bound) -> tuple[list[Column], Column | None, list[tuple[int, int]]]:
    """Return the columns, the outcome and the conditions of a target."""
    from discreet.synth.from_outputs import search_kernels as kernels

    if isinstance(bound, BoundModel):
        conditions = [(kernels.COEFFICIENT, place) for place in range(len(bound.terms))]
        conditions += [(kernels.RESIDUAL, 0)] if np.isfinite(bound.residual_sd) else []
        conditions += [(kernels.EXPLAINED, 0)] if np.isfinite(bound.r2) else []
        conditions += [(kernels.ERROR, int(place)) for place in np.flatnonzero(np.isfinite(bound.se))]
        return list(bound.matrix), (bound.outcome,), conditions
    if isinstance(bound, BoundGroups):
        times = 2 if bound.median else 1
        return list(bound.groups), (bound.outcome,), [(0, 0)] * (times * len(bound.groups))
    if isinstance(bound, BoundTable):
        return [form.cell for form in bound.forms], None, [(0, 0)] * len(bound.forms)
    if isinstance(bound, BoundCorrelation):
        return [(bound.first,), (bound.second,)], None, [(0, 0)]
    raise TypeError(type(bound).__name__)
