"""Fitted sequential syntheses, from which synthetic files are drawn: of records, and of whole units.

Of records, it is one chain of steps a stratum; of units, a synthesis of units and one of their other records.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.core.errors import DiscreetWarning, ParameterError
from discreet.core.guarantees import DifferentialPrivacy
from discreet.core.native_libraries import in_threads, one_thread
from discreet.core.progress import track
from discreet.dp.entropy import Stream
from discreet.expressions import parse
from discreet.microdata import Microdata
from discreet.synth.column_forms import Form, columns_named
from discreet.synth.methods.method import JointMethod
from discreet.synth.methods.observed_values import Keep, Near, Numbered, Passive, Stratum
from discreet.synth.saved_models import stored, unstored
from discreet.synth.sequential import fitting_records, whole_units
from discreet.synth.sequential.method_choice import default_methods
from discreet.synth.sequential.steps import JointStep, ModelStep, NearStep, PassiveStep, Step
from discreet.synth.sequential.synthesis_plan import ColumnPlan, SynthesisPlan
from discreet.synth.sequential.synthesis_planning import left_out_of, plan_synthesis
from discreet.synth.sequential.whole_units import Divided, Unit, copies_of
from discreet.synth.synthesizer import Fitted, empty_like

if TYPE_CHECKING:
    from discreet.synth.sequential.sequential import Sequential


Chain = tuple[Step, ...]


@stored("fitted-sequential")
@dataclass(eq=False, repr=False, kw_only=True)
class FittedSequential(Fitted):
    """A sequential synthesis that was fitted.

    Attributes
    ----------
    plan
        Order, methods and predictors as they were used, with the warnings of the fit.
    """

    plan: SynthesisPlan
    forms: Mapping[str, Form]
    shapes: Mapping[str, fitting_records.Shape]
    chains: Sequence[Chain]
    strata: fitting_records.Strata
    kept: pl.DataFrame
    constraints: Sequence[str]
    max_rounds: int
    weight: tuple[str, float] | None
    least_weight: tuple[str, float] | None = None
    refit: Refit | None = field(
        default=None,
        metadata=unstored(
            "A proper synthesis is fitted anew for every copy and cannot be saved without the data. Save its plan (the "
            "parameters of Sequential) instead, or fit with proper=False."
        ),
    )

    def __post_init__(self) -> None:
        self.keeps_records = self.kept.width > 0
        self.combining_rule = _combining_rule(self.plan, self.keeps_records)

    @classmethod
    def fit(
        cls,
        options: Sequential,
        plan: SynthesisPlan,
        forms: Mapping[str, Form],
        data: Microdata,
        frame: pl.DataFrame,
        *,
        weights: Floats | None,
        stream: Stream,
        progress: bool,
    ) -> FittedSequential:
        """Fit all chains."""
        training = fitting_records.Scene(frame.height)
        for name in plan.columns:
            training.add(frame[name], forms[name].split(frame[name]))
        _code_predictors(plan, training)
        shapes = {
            name: tuple(part.take(slice(0, 0)) for part in training.parts[name]) for name in plan.columns
        }
        weight = frame[data.roles.weight] if data.roles.weight else None
        strata = fitting_records.Strata.of(options, plan, frame, weight, weights=weights)
        units = fitting_records.SampledUnits.of(data, frame) if options.proper == "bootstrap" else None
        again = Refit(options, plan, forms, shapes, training, weights, strata, units)
        stream.enter(
            _claim(plan),
            "only method='catall' with an epsilon, for all columns in one table, has one.",
            purpose="synthetic file",
        )
        chains = again.chains(stream, progress=progress)
        kept = [step.name for step in plan.steps if isinstance(step.method, Keep)]
        if kept:
            # Records that stay the original ones stay in their strata, also where small strata are pooled.
            kept += [step.name for step in plan.steps if isinstance(step.method, Stratum)]
        regenerated, least = _drawn_weight(options, weight)
        shown = [*plan.columns, *([regenerated[0]] if regenerated else [])]
        ordered = [name for name in data.columns if name in shown]
        private = _noisy_table(plan, chains)
        fitted = cls(
            empty_like(data, columns_named(frame, ordered)),
            frame.height if private is None else private[0],
            plan=_as_used(plan, chains, training, strata, private),
            forms=forms,
            shapes=shapes,
            chains=chains,
            strata=strata,
            kept=columns_named(frame, kept),
            constraints=options.constraints,
            max_rounds=options.max_rounds,
            weight=regenerated,
            least_weight=least,
            refit=again if options.proper else None,
        )
        if private is not None:
            fitted.promise(private[1], seeded=stream.seeded, ledger=stream.account.ledger)
        return fitted

    def draw(self, n: int, stream: Stream) -> pl.DataFrame:
        """Draw one synthetic file, stratum by stratum; a proper synthesis fits its models anew for each file."""
        with one_thread():
            return self._file(n, stream)

    def draw_given(self, kept: pl.DataFrame, stream: Stream) -> pl.DataFrame:
        """Draw records whose kept columns are these, and not those that the model was fitted to."""
        (chain,) = self.chains if self.refit is None else self.refit.chains(stream.child("refit"))
        with one_thread():
            return self._drawn(chain, kept.height, kept, pl.DataFrame(), stream)

    def draw_within(self, kept: pl.DataFrame, stream: Stream) -> tuple[pl.DataFrame, Integers]:
        """Draw records whose kept columns are these; returns also which of them break a constraint to the end."""
        (chain,) = self.chains if self.refit is None else self.refit.chains(stream.child("refit"))
        with one_thread():
            return self._settled(chain, kept.height, kept, pl.DataFrame(), stream)

    def _file(self, n: int, stream: Stream) -> pl.DataFrame:
        chains = self.chains if self.refit is None else self.refit.chains(stream.child("refit"))
        sizes, places = self.strata.divided(n, self.kept, stream("strata", "sizes"))
        parts = []
        for number, chain in enumerate(chains):
            own = stream.child(f"stratum {number}") if len(chains) > 1 else stream
            if sizes[number]:
                kept = self.kept if places is None else self.kept[places[number]]
                fixed = (
                    pl.DataFrame()
                    if self.keeps_records
                    else self.strata.values(number, sizes[number], own("strata", "values"))
                )
                parts.append(self._drawn(chain, sizes[number], kept, fixed, own))
        table = pl.concat(parts) if len(parts) > 1 else parts[0]
        if places is not None and len(parts) > 1:
            table = table[np.argsort(np.concatenate([place for place in places if len(place)]))]
        if self.weight is not None:
            name, total = self.weight
            table = table.with_columns(pl.lit(total / n).alias(name))
        return table if self.least_weight is None else fitting_records.above_zero(table, *self.least_weight)

    def _drawn(
        self, chain: Chain, size: int, kept: pl.DataFrame, fixed: pl.DataFrame, stream: Stream
    ) -> pl.DataFrame:
        """Draw records and draw again those that break a constraint; refuse if that does not help."""
        table, bad = self._settled(chain, size, kept, fixed, stream)
        if not len(bad):
            return table
        raise ParameterError(
            f"{len(bad):,} of {size:,} synthetic records still break a constraint after {self.max_rounds} rounds. "
            "Check that the data meet the constraints, write them as rules, or raise max_rounds."
        )

    def _settled(
        self, chain: Chain, size: int, kept: pl.DataFrame, fixed: pl.DataFrame, stream: Stream
    ) -> tuple[pl.DataFrame, Integers]:
        table = self._once(chain, size, kept, fixed, stream)
        if not self.constraints:
            return table, np.empty(0, dtype=np.int64)
        # A record with a missing value breaks no constraint that speaks of it: nobody can say that it does.
        holds = pl.all_horizontal(
            *(parse(text, table.schema).value.fill_null(True) for text in self.constraints)
        )
        for number in range(self.max_rounds + 1):
            bad = np.flatnonzero(~table.select(holds.alias("holds"))["holds"].to_numpy())
            if not len(bad) or number == self.max_rounds:
                break
            own_kept = kept[bad] if kept.width else kept
            own_fixed = fixed[bad] if fixed.width else fixed
            fresh = self._once(chain, len(bad), own_kept, own_fixed, stream.child(f"again {number}"))
            place = np.arange(size)
            place[bad] = size + np.arange(len(bad))
            table = pl.concat([table, fresh])[place]
        return table, bad

    def _once(
        self, chain: Chain, size: int, kept: pl.DataFrame, fixed: pl.DataFrame, stream: Stream
    ) -> pl.DataFrame:
        scene = fitting_records.Scene(size)
        for series in (*kept.get_columns(), *fixed.get_columns()):
            parts = self.forms[series.name].split(series)
            shape = self.shapes[series.name]
            scene.add(series, tuple(s.redrawn(p.values) for s, p in zip(shape, parts, strict=True)))
        for step in chain:
            step.draw(scene, stream)
        return columns_named(scene.frame(), self.plan.columns)


@dataclass(frozen=True, eq=False)
class Refit:
    """The data and the plan, from which the chains are fitted: once, or anew for every copy."""

    options: Sequential
    plan: SynthesisPlan
    forms: Mapping[str, Form]
    shapes: Mapping[str, fitting_records.Shape]
    training: fitting_records.Scene
    weights: Floats | None
    strata: fitting_records.Strata
    units: fitting_records.SampledUnits | None = None

    def chains(self, stream: Stream, *, progress: bool = False) -> list[Chain]:
        """Fit one chain a stratum; columns are fitted in parallel, each with a random stream of its own."""
        jobs = []
        for number, rows in enumerate(self.strata.rows):
            scene = self.training if rows is None else self.training.taken(rows, self.plan.columns)
            weights = self.weights if rows is None or self.weights is None else self.weights[rows]
            own = stream.child(f"stratum {number}") if len(self.strata.rows) > 1 else stream
            times = None if self.units is None else self.units.drawn_again(rows, own("bootstrap"))
            fitting = fitting_records.Fitting(
                self.forms,
                self.shapes,
                weights,
                self.options.proper,
                default_methods(self.options),
                own,
                times,
            )
            jobs += [
                (number, step, scene, fitting)
                for step in self.plan.steps
                if not isinstance(step.method, Keep | Stratum)
            ]
        work = in_threads(lambda job: (job[0], _fitted_step(*job[1:])), jobs)
        fitted = list(track(work, total=len(jobs), description="Fitting columns", progress=progress))
        return [tuple(step for at, step in fitted if at == number) for number in range(len(self.strata.rows))]


def _drawn_weight(
    options: Sequential, weight: pl.Series | None
) -> tuple[tuple[str, float] | None, tuple[str, float] | None]:
    """The sum of weights that are made anew, and the least of those that are drawn as a column; with their name."""
    if weight is None or options.weights not in ("regenerate", "synthesize"):
        return None, None
    numbers = weight.cast(pl.Float64)
    if options.weights == "regenerate":
        return (weight.name, float(numbers.sum())), None
    return None, (weight.name, float(numbers.min()))  # type: ignore[arg-type]


def _code_predictors(plan: SynthesisPlan, training: fitting_records.Scene) -> None:
    """Learn how trees see each predictor once, before threads share it; synthetic values are coded alike."""
    for name in {name for step in plan.steps for name in step.predictors}:
        for part in training.parts[name]:
            _ = part.codes


def _fitted_step(
    entry: ColumnPlan, training: fitting_records.Scene, fitting: fitting_records.Fitting
) -> Step:
    if isinstance(entry.method, Passive):
        name = entry.name
        return PassiveStep(name, entry.method.expression, fitting.forms[name], fitting.shapes[name])
    if isinstance(entry.method, Near):
        return NearStep.fit(entry, training, fitting)
    if isinstance(entry.method, JointMethod):
        return JointStep.fit(entry, training, fitting)
    return ModelStep.fit(entry, training, fitting)


def _as_used(
    plan: SynthesisPlan,
    chains: Sequence[Chain],
    training: fitting_records.Scene,
    strata: fitting_records.Strata,
    private: tuple[int, DifferentialPrivacy] | None,
) -> SynthesisPlan:
    """Take out predictors that no fit could use, and add what the fits have to say."""
    if private is not None:
        # The plan travels with a private model, so it must not tell the number of records either.
        return replace(plan, rows=private[0], warnings=())
    notes = dict.fromkeys(note for chain in chains for step in chain for note in step.notes)
    unused: dict[str, set[str]] = {}
    for chain in chains:
        for step in chain:
            if isinstance(step, ModelStep):
                gone = {
                    name
                    for name in step.predictors
                    if all(part.name in step.dropped for part in training.parts[name])
                }
                unused[step.name] = unused.get(step.name, gone) & gone
    steps = tuple(
        replace(step, predictors=tuple(p for p in step.predictors if p not in unused.get(step.name, ())))
        for step in plan.steps
    )
    return replace(plan, steps=steps, warnings=(*plan.warnings, *strata.notes, *notes))


def _noisy_table(plan: SynthesisPlan, chains: Sequence[Chain]) -> tuple[int, DifferentialPrivacy] | None:
    """Return the noisy number of records and the claim, where the whole synthesis is one private table."""
    claim, step = _claim(plan), chains[0][0]
    if claim is None or not isinstance(step, JointStep):
        return None
    return int(getattr(step.law, "total", 1)), claim


def _claim(plan: SynthesisPlan) -> DifferentialPrivacy | None:
    """What a noisy table of all columns promises; a plan check sees to it that such a table stands alone."""
    epsilon = getattr(plan.steps[0].method, "epsilon", None)
    if epsilon is None:
        return None
    return DifferentialPrivacy(
        epsilon, covers=" for the noisy table, and so for any number of files drawn from it"
    )


def _combining_rule(plan: SynthesisPlan, partial: bool) -> str:
    if partial:
        return "partial"
    # Weights that are all the same change nothing, and the rule is that of a file without.
    if plan.settings.get("design_effect", 1.0) > fitting_records.SAME_WEIGHTS:
        return "bootstrap" if plan.settings.get("proper") == "bootstrap" else "pseudo-likelihood"
    return "proper" if plan.settings.get("proper") else "simple"


# A fitted synthesis of whole units: households with all their members, persons with all their entries.
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
        weight, least = _drawn_weight(options, frame[data.roles.weight] if data.roles.weight else None)
        columns = [*(() if weight is None else (weight[0],)), unit.column, *parts.copies, *base.columns]
        shown = [name for name in data.columns if name in columns]
        return cls(
            empty_like(data, columns_named(frame, shown)),
            frame.height,
            plan=_units_as_used(base, homes, others, unit, parts),
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
        return table if self.least_weight is None else fitting_records.above_zero(table, *self.least_weight)

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
    base = whole_units.base_plan(options, unit, data, frame)
    out = left_out_of(options, data)
    numbers = (unit.column, *(name for name in copies_of(frame, unit.column) if name not in out))
    columns = tuple(name for name in data.columns if name in numbers or name in base.columns)
    parts = whole_units.divided(options, unit, data, frame, columns)
    whole_units.check_whole_units(options, base, parts)
    homes = whole_units.options_of_homes(options, parts, base.order, columns)
    return base, parts, (homes, whole_units.options_of_others(options, parts, base.order, columns))


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
        weights=fitting_records.fit_weights(options, data, frame),
        stream=stream,
        progress=progress,
    )


def _units_as_used(
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
