"""A fitted synthesis of whole units: households with all their members, persons with all their entries."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from discreet.core.errors import DiscreetWarning
from discreet.dp.entropy import Stream
from discreet.microdata import Microdata
from discreet.synth.column_forms import columns_named
from discreet.synth.methods.observed_values import Numbered
from discreet.synth.saved_models import stored
from discreet.synth.sequential.fitting_records import above_zero, fit_weights
from discreet.synth.sequential.sequential_model import FittedSequential
from discreet.synth.sequential.synthesis_plan import ColumnPlan, SynthesisPlan
from discreet.synth.sequential.synthesis_planning import left_out_of, plan_synthesis
from discreet.synth.sequential.whole_units import (
    Divided,
    Unit,
    base_plan,
    check_whole_units,
    copies_of,
    divided,
    options_of_homes,
    options_of_others,
)
from discreet.synth.synthesizer import Fitted, empty_like

if TYPE_CHECKING:
    from discreet.synth.sequential.sequential import Sequential


_ROUNDS = 20
_TRIES = 500
_GIVEN_BACK = 3


@stored("fitted-units")
@dataclass(eq=False, repr=False, kw_only=True)
class FittedUnits(Fitted):
    """A synthesis of whole units that was fitted.

    Attributes
    ----------
    plan
        Order, methods and predictors of the columns of a unit and its first record, with the warnings of the fit.
    homes, others
        The models of units with their first records, and of further records; None where units have one record each.
    """

    plan: SynthesisPlan
    parts: Divided
    homes: FittedSequential
    others: FittedSequential | None
    dtype: pl.DataType
    weight: tuple[str, float] | None
    least_weight: tuple[str, float] | None

    def __post_init__(self) -> None:
        self.combining_rule = self.homes.combining_rule

    @classmethod
    def fit(
        cls,
        options: Sequential,
        unit: Unit,
        data: Microdata,
        frame: pl.DataFrame,
        *,
        stream: Stream,
        progress: bool,
    ) -> FittedUnits:
        """Fit the model of units and that of their further records."""
        base, parts, settings = planned(options, unit, data, frame)
        weighted = data.roles.weight if options.weights in ("use", "regenerate") else None
        known = {name: frame[name] for name in (*parts.shared, *parts.own)}
        homes = _fitted(settings[0], parts.homes, known, weighted, stream.child("units"), progress=progress)
        others = None
        if parts.own and parts.others.height:
            # A further record may be of a unit, or behind a first record, of a kind that only stands alone in the data.
            known |= {shown: frame[name].rename(shown) for name, shown in parts.first.items()}
            known[parts.size] = parts.homes[parts.size]
            others = _fitted(
                settings[1], parts.others, known, weighted, stream.child("others"), progress=progress
            )
        weight, least = None, None
        name = data.roles.weight
        if name and options.weights == "regenerate":
            weight = (name, float(frame[name].cast(pl.Float64).sum()))
        if name and options.weights == "synthesize":
            least = (name, float(frame[name].cast(pl.Float64).min()))  # type: ignore[arg-type]
        columns = [*(() if weight is None else (weight[0],)), unit.column, *parts.copies, *base.columns]
        shown = [name for name in data.columns if name in columns]
        return cls(
            empty_like(data, columns_named(frame, shown)),
            frame.height,
            plan=_as_used(base, homes, others, unit, parts),
            # Records are not needed any more, and a model file shall not hold more of them than its trees do.
            parts=replace(parts, homes=parts.homes.clear(), others=parts.others.clear()),
            homes=homes,
            others=others,
            dtype=frame.schema[unit.column],
            weight=weight,
            least_weight=least,
        )

    def draw(self, n: int, stream: Stream) -> pl.DataFrame:
        """Draw units until there are ``n`` records."""
        homes = self._homes(n, stream.child("units"))
        known = self.parts.known_of_others(homes)
        if self.others is not None and known.height:
            others = self.others.draw_given(known, stream.child("others"))
        else:
            others = pl.DataFrame({name: homes[name].clear() for name in self.parts.own})
        table = self.parts.put_together(homes, others, self.dtype)
        if self.weight is not None:
            name, total = self.weight
            table = table.with_columns(pl.lit(total / table.height).alias(name))
        return table if self.least_weight is None else above_zero(table, *self.least_weight)

    def _homes(self, n: int, stream: Stream) -> pl.DataFrame:
        """Draw units; of the last ones those whose records still fit."""
        left, mean = n, max(self.rows / max(self.homes.rows, 1), 1.0)
        table = smallest = self.homes.draw(1, stream.child("first")).clear()
        for number in range(_ROUNDS):
            # Where nothing fits, the last units make room for others.
            left += int(table[self.parts.size].tail(_GIVEN_BACK).sum())
            table = table.head(max(table.height - _GIVEN_BACK, 0))
            drawn = self.homes.draw(int(1.05 * left / mean) + 20, stream.child(str(number)))
            sizes = drawn[self.parts.size].to_numpy()
            whole = int(np.searchsorted(np.cumsum(sizes), left, side="right"))
            chosen = list(range(whole))
            left -= int(sizes[:whole].sum())
            for at in range(whole, min(len(sizes), whole + _TRIES)):
                if sizes[at] <= left:
                    chosen.append(at)
                    left -= int(sizes[at])
            table = pl.concat([table, drawn[chosen]])
            if not left:
                return table
            smallest = drawn[[int(sizes.argmin())]]
        if not table.height:
            table, left = smallest, n - int(smallest[self.parts.size].item())
        more = "fewer" if left > 0 else "more"
        warnings.warn(
            f"The synthetic file has {abs(left):,} records {more} than asked for: no unit ('{self.parts.unit}') of the "
            "data is as small as what was left.",
            DiscreetWarning,
            stacklevel=4,
        )
        return table


def planned(
    options: Sequential, unit: Unit, data: Microdata, frame: pl.DataFrame
) -> tuple[SynthesisPlan, Divided, tuple[Sequential, Sequential]]:
    """Plan the synthesis of whole units: all that was asked, the file taken apart, and how each part is done."""
    base = base_plan(options, unit, data, frame)
    out = left_out_of(options, data)
    numbers = (unit.column, *(name for name in copies_of(frame, unit.column) if name not in out))
    columns = tuple(name for name in data.columns if name in numbers or name in base.columns)
    parts = divided(options, unit, data, frame, columns)
    check_whole_units(options, base, parts)
    homes = options_of_homes(options, parts, base.order, columns)
    return base, parts, (homes, options_of_others(options, parts, base.order, columns))


def plan_units(options: Sequential, unit: Unit, data: Microdata, frame: pl.DataFrame) -> SynthesisPlan:
    """Say how whole units would be synthesized, without fitting anything."""
    base, parts, (of_homes, _) = planned(options, unit, data, frame)
    weighted = data.roles.weight if options.weights in ("use", "regenerate") else None
    homes = plan_synthesis(of_homes, Microdata(parts.homes, weight=weighted), parts.homes)[0]
    return _whole_plan(base, homes, unit, parts, ())


def _fitted(
    options: Sequential,
    frame: pl.DataFrame,
    known: Mapping[str, pl.Series],
    weight: str | None,
    stream: Stream,
    *,
    progress: bool,
) -> FittedSequential:
    data = Microdata(frame, weight=weight)
    plan, forms = plan_synthesis(options, data, frame, known=known)
    return FittedSequential.fit(
        options,
        plan,
        forms,
        data,
        frame,
        weights=fit_weights(options, data, frame),
        stream=stream,
        progress=progress,
    )


def _as_used(
    base: SynthesisPlan, homes: FittedSequential, others: FittedSequential | None, unit: Unit, parts: Divided
) -> SynthesisPlan:
    models = [homes] if others is None else [homes, others]
    notes = dict.fromkeys(
        note for model in models for chain in model.chains for step in chain for note in step.notes
    )
    return _whole_plan(base, homes.plan, unit, parts, (*homes.strata.notes, *notes))


def _whole_plan(
    base: SynthesisPlan, homes: SynthesisPlan, unit: Unit, parts: Divided, notes: tuple[str, ...]
) -> SynthesisPlan:
    steps = [ColumnPlan(name, Numbered()) for name in (unit.column, *parts.copies)]
    for step in homes.steps:
        if step.name != parts.size:
            method = step.method
            steps.append(
                replace(
                    step,
                    predictors=tuple(name for name in step.predictors if name != parts.size),
                    method=method,
                )
            )
    return replace(
        base,
        columns=(unit.column, *parts.copies, *base.columns),
        left_out={
            name: why for name, why in base.left_out.items() if name not in (unit.column, *parts.copies)
        },
        steps=tuple(steps),
        warnings=(_told(unit, parts), *base.warnings, *notes),
        settings={**base.settings, "together": unit.column, "shared": list(parts.shared)},
    )


def _told(unit: Unit, parts: Divided) -> str:
    seen = (
        f"'{unit.column}' numbers records that belong together ({', '.join(map(repr, unit.counted_by))} counts them). "
        if unit.told_by == "data"
        else ""
    )
    way_out = (
        " Declare it (household=) if it does, or draw records one by one with together='no'." if seen else ""
    )
    return (
        f"{seen}Records that share '{unit.column}' are drawn together: {len(parts.shared)} columns that they share and "
        f"the first record of each at once, then the others given these. '{unit.column}' is numbered anew; relations "
        f"between members after the first are kept only through the first.{way_out}"
    )
