"""How far is a file from the published figures, in units that make all targets comparable?

Each condition is measured as a chi-square would be: coefficients by the score statistic s'H⁻¹s, the others by their
squared distance over its variance. Functions that are not sums over records (standard errors, R2, correlations) are
replaced by their first-order expansion around the file as it stands, and refreshed as it changes.

`Layout` lays the targets out flat for the compiled search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from discreet.core.arrays import Floats
from discreet.synth.from_outputs import bound_targets
from discreet.synth.from_outputs.bound_targets import Bound, BoundGroups, BoundModel, BoundTable, Column

Phase = Literal["rough", "fine", "intervals"]

_LEAST = 1e-12
_INSIDE = 0.9
_PRINTED = 100.0


class Standing(NamedTuple):
    """Where a file stands: the metric, what each record adds, the open sums, and expected errors of coefficients."""

    metric: Any
    added: Floats
    sums: Floats
    misfit: float
    near: bool
    """Whether every condition is within printing precision to first order."""


class _Gauge:
    """Collects the metric block by block."""

    def __init__(self, layout: Layout, file: Floats, phase: Phase) -> None:
        plan = layout.plan
        self.plan = plan
        self.bounds = layout.bounds
        self.file = file
        self.phase = phase
        self.beta = np.zeros(len(plan.columns.start) - 1)
        (self.low, self.high, self.importance, self.slack, self.offset, self.tolerance) = np.zeros(
            (6, len(plan.about))
        )
        size = int(sum((b - a) ** 2 for a, b in zip(plan.first_column, plan.last_column, strict=True)))
        self.entries = np.zeros(max(size, 1))
        self.inverses = np.zeros(max(size, 1))
        self.center = np.zeros((len(plan.kind), 4))
        self.stated = np.full(len(plan.about), np.nan)

    def model(self, bound: BoundModel, block: int) -> None:
        """Measure a model by its score at the published coefficients."""
        plan = self.plan
        x, y = bound.design(self.file)
        beta = completed(bound, x, y)
        size = len(beta)
        starts = (plan.first_column, plan.first_condition, plan.first_entry)
        first, start, entry = (int(own[block]) for own in starts)
        self.beta[first : first + size] = beta
        line = x @ beta
        if bound.family == "logit":
            chance = 1 / (1 + np.exp(-np.clip(line, -500, 500)))
            rest, spread, variance = y - chance, chance * (1 - chance), 1.0
        else:
            rest, spread = y - line, np.ones(len(y))
            freedom = max(len(y) - size, 1)
            variance = max(float(rest @ rest) / freedom, _LEAST)
        inverse = bound_targets.inverted(x.T @ (x * spread[:, None]))
        scale = bound.residual_sd**2 if np.isfinite(bound.residual_sd) else variance
        form = inverse / scale
        published = np.isfinite(bound.beta)
        halves = np.where(published, bound.halves[0], np.inf)
        if self.phase == "fine":
            # Coefficients with large standard errors count little in the score statistic; towards the end all are
            # also measured in printing units.
            typical = np.median(1 / np.maximum(np.diag(inverse) * scale, _LEAST)) * bound.halves[0] ** 2
            form = form + _PRINTED * typical * (inverse / halves**2) @ inverse
        if self.phase == "intervals":
            self.entries[entry : entry + size**2] = (inverse / halves[:, None]).ravel()
            self.importance[start : start + size] = bound.weight
            self.slack[start : start + size] = _INSIDE
        else:
            self.entries[entry : entry + size**2] = (bound.weight * form).ravel()
        self.inverses[entry : entry + size**2] = inverse.ravel()
        self.tolerance[start : start + size] = np.nan
        self._fit_measures(bound, block, y, rest=rest, variance=variance, inverse=inverse)

    def _fit_measures(
        self,
        bound: BoundModel,
        block: int,
        y: Floats,
        *,
        rest: Floats,
        variance: float,
        inverse: Floats,
    ) -> None:
        from discreet.synth.from_outputs import search_kernels as kernels

        size = len(inverse)
        freedom = max(len(y) - size, 1)
        squares = float(rest @ rest)
        self.center[block, :3] = variance, freedom, y.mean() if len(y) else 0.0
        halves = dict(zip(bound.labels, bound.halves, strict=True))
        for k in range(int(self.plan.first_condition[block]) + size, int(self.plan.last_condition[block])):
            about, j = self.plan.about[k], self.plan.which[k]
            if about == kernels.RESIDUAL:
                wanted = bound.residual_sd**2
                self.stated[k] = squares - wanted * freedom
                self.importance[k] = bound.weight / (2 * wanted**2 * freedom)
                self.tolerance[k] = 2 * bound.residual_sd * halves["residual SD"] * freedom
            elif about == kernels.EXPLAINED:
                around = float(((y - y.mean()) ** 2).sum())
                self.low[k] = 1 - bound.r2
                self.stated[k] = squares - (1 - bound.r2) * around
                self.importance[k] = bound.weight / (2 * variance**2 * freedom)
                self.tolerance[k] = halves["R2"] * around
            else:
                now = max(float(np.sqrt(inverse[j, j] * variance)), _LEAST)
                self.high[k] = 1 / (2 * now)
                self.stated[k] = now - bound.se[j]
                self.importance[k] = bound.weight * 2 * freedom / bound.se[j] ** 2
                self.tolerance[k] = halves[f"SE of {bound.terms[j]}"]

    def table(self, bound: BoundTable, block: int) -> None:
        """Measure a table as a chi-square does."""
        for k, form in enumerate(bound.forms, start=int(self.plan.first_condition[block])):
            whole = (
                1.0
                if form.share_of is None
                else float(bound_targets.evaluated(form.share_of, self.file).sum())
            )
            expected = form.value * whole
            self.low[k] = form.value
            self.offset[k] = form.value if form.share_of is None else 0.0
            self.importance[k] = bound.weight / max(expected, 0.5)
            self.tolerance[k] = max(form.half * whole, 0.5)

    def groups(self, bound: BoundGroups, block: int) -> None:
        """Measure means by their variance, medians by the records on the wrong side."""
        values = bound.outcome.of(self.file)
        start = int(self.plan.first_condition[block])
        for place, group in enumerate(bound.groups):
            inside = bound_targets.evaluated(group, self.file) > 0
            size = max(int(inside.sum()), 1)
            published, half = bound.published[place], bound.halves[place]
            if bound.median:
                k = start + 2 * place
                self.low[k : k + 2] = published - half
                self.high[k : k + 2] = published + half
                self.importance[k : k + 2] = bound.weight * 4 / size
                self.tolerance[k : k + 2] = -0.5
            else:
                k = start + place
                spread = max(float(values[inside].var()) if inside.any() else 1.0, _LEAST)
                self.low[k] = published
                self.importance[k] = bound.weight / (size * spread)
                self.tolerance[k] = half * size

    def correlation(self, bound: bound_targets.BoundCorrelation, block: int) -> None:
        """Measure a correlation by its large-sample variance."""
        rows = bound.rows(self.file)
        x, y = bound.first.of(rows), bound.second.of(rows)
        k = int(self.plan.first_condition[block])
        self.center[block] = x.mean(), max(x.std(), _LEAST), y.mean(), max(y.std(), _LEAST)
        self.low[k] = bound.published[0]
        self.importance[k] = bound.weight / (len(rows) * max(1 - bound.published[0] ** 2, 1e-3) ** 2)
        self.tolerance[k] = bound.halves[0] * len(rows)

    def in_printing_units(self) -> None:
        """Let what rounds to the printed figure cost nothing, and the rest count by printing units."""
        others = self.tolerance > 0
        weight = np.zeros(len(others))
        for block, bound in enumerate(self.bounds):
            weight[self.plan.first_condition[block] : self.plan.last_condition[block]] = bound.weight
        self.importance[others] = weight[others] / self.tolerance[others] ** 2
        self.slack[others] = _INSIDE * self.tolerance[others]
        # A median is off by whole records.
        medians = self.tolerance < 0
        self.importance[medians] = weight[medians]


def standing(layout: Layout, file: Floats, phase: Phase = "rough") -> Standing:
    """Measure a file against the targets of the search.

    ``rough`` measures as chi-squares do; ``fine`` adds the errors of coefficients in printing units; ``intervals``
    measures everything in printing units, and what rounds to the printed figure costs nothing.
    """
    from discreet.synth.from_outputs import search_kernels as kernels

    gauge = _Gauge(layout, file, phase)
    for block, bound in enumerate(layout.bounds):
        if isinstance(bound, BoundModel):
            gauge.model(bound, block)
        elif isinstance(bound, BoundTable):
            gauge.table(bound, block)
        elif isinstance(bound, BoundGroups):
            gauge.groups(bound, block)
        elif isinstance(bound, bound_targets.BoundCorrelation):
            gauge.correlation(bound, block)
    if phase == "intervals":
        gauge.in_printing_units()
    metric = kernels.Metric(*(getattr(gauge, name) for name in kernels.Metric._fields))
    added = kernels.contributions(file, layout.plan, metric)
    sums = np.where(np.isnan(gauge.stated), added.sum(axis=0) - gauge.offset, gauge.stated)
    return Standing(
        metric,
        added,
        sums,
        float(kernels.misfit(sums, layout.plan, metric)),
        _is_near(layout, gauge, sums),
    )


def completed(bound: BoundModel, x: Floats, y: Floats) -> Floats:
    """Return the published coefficients, with unpublished ones at the value that suits the file best."""
    free = ~np.isfinite(bound.beta)
    beta = np.nan_to_num(bound.beta)
    if not free.any():
        return beta
    part = x[:, free]
    if bound.family == "linear":
        beta[free] = np.linalg.lstsq(part, y - x @ beta, rcond=None)[0]
        return beta
    for _ in range(25):
        chance = 1 / (1 + np.exp(-np.clip(x @ beta, -30, 30)))
        spread = np.maximum(chance * (1 - chance), 1e-9)
        step = np.linalg.lstsq((part * spread[:, None]).T @ part, part.T @ (y - chance), rcond=None)[0]
        beta[free] += np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-10:
            break
    return beta


def _is_near(layout: Layout, gauge: _Gauge, sums: Floats) -> bool:
    plan = layout.plan
    for block, bound in enumerate(layout.bounds):
        start, end = int(plan.first_condition[block]), int(plan.last_condition[block])
        if isinstance(bound, BoundModel):
            size = len(bound.beta)
            entry = int(plan.first_entry[block])
            inverse = gauge.inverses[entry : entry + size**2].reshape(size, size)
            error = np.abs(inverse @ sums[start : start + size])[np.isfinite(bound.beta)]
            if (error > bound.halves[: len(error)]).any():
                return False
            start += size
        off = sums[start:end]
        is_median = isinstance(bound, BoundGroups) and bound.median
        if ((off if is_median else np.abs(off)) > gauge.tolerance[start:end]).any():
            return False
    return True


# Targets laid out flat for the compiled search: columns, blocks and conditions.


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
        blocks: list[tuple[int, ...]] = []
        about: list[int] = []
        which: list[int] = []
        share_of: list[int] = []
        entries = 0
        for bound in bounds:
            own, outcome, conditions = _block_of(bound)
            shares = [form.share_of for form in bound.forms] if isinstance(bound, BoundTable) else []
            first, first_condition = len(columns), len(about)
            columns += own
            last = len(columns)
            about += [kind for kind, _ in conditions]
            which += [index for _, index in conditions]
            # Groups and cells carry the base inside their own columns.
            with_base = bool(bound.base) and isinstance(bound, BoundModel | bound_targets.BoundCorrelation)
            base = len(columns) if with_base else -1
            columns += [bound.base] if with_base else []
            place = len(columns) if outcome is not None else -1
            columns += [outcome] if outcome is not None else []
            blocks.append((_kind(bound), base, place, first, last, first_condition, len(about), entries))
            known: dict[Column, int] = {}
            for share in shares:
                if share is not None and share not in known:
                    known[share] = len(columns)
                    columns.append(share)
            share_of += [known[share] if share is not None else -1 for share in shares]
            share_of += [-1] * (len(conditions) - len(shares))
            entries += len(own) ** 2 if isinstance(bound, BoundModel) else 0
        plan = kernels.Plan(  # type: ignore[call-arg]
            bound_targets.Columns.laid_out(columns),
            *np.array(blocks, dtype=np.int64).reshape(-1, 8).T.copy(),
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
    if isinstance(bound, bound_targets.BoundCorrelation):
        return [(bound.first,), (bound.second,)], None, [(0, 0)]
    raise TypeError(type(bound).__name__)
