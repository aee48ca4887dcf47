"""The steps of a synthesis: what is fitted for a column, and how its synthetic values are drawn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from discreet.core.arrays import Array, Flags
from discreet.dp.entropy import Stream
from discreet.expressions import parse
from discreet.synth.column_forms import Form, NumberForm, Rows, Variable, as_numbers
from discreet.synth.methods.method import (
    Conditional,
    JointConditional,
    JointMethod,
    JointTask,
)
from discreet.synth.methods.observed_values import Near, Nested
from discreet.synth.saved_models import stored
from discreet.synth.sequential.fitting_records import Fitting, Scene, Shape
from discreet.synth.sequential.method_choice import state_method
from discreet.synth.sequential.synthesis_plan import ColumnPlan, Rule, covered, parsed
from discreet.synth.written_values import as_computed


class Step(ABC):
    """One step, fitted."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know about the fit, in plain sentences."""
        return ()

    @abstractmethod
    def draw(self, scene: Scene, stream: Stream) -> None:
        """Draw the column or columns of this step and add them to the scene."""


@stored("model-step")
@dataclass(frozen=True, eq=False)
class ModelStep(Step):
    """A column that is drawn from its law given earlier columns."""

    name: str
    predictors: tuple[str, ...]
    rules: tuple[Rule, ...]
    smoothing: str | None
    form: Form
    shape: Shape
    state_law: Conditional | None
    value_law: Conditional | None

    @property
    def notes(self) -> tuple[str, ...]:
        """What the fits have to say."""
        laws = [law for law in (self.state_law, self.value_law) if law is not None]
        return tuple(f"'{self.name}': {note}" for law in laws for note in law.notes)

    @property
    def dropped(self) -> tuple[str, ...]:
        """Names of variables that the fit of the value could not use."""
        law = self.value_law or self.state_law
        return () if law is None else law.dropped

    @classmethod
    def fit(cls, entry: ColumnPlan, training: Scene, fitting: Fitting) -> ModelStep:
        """Fit the column; records that a rule covers are left out."""
        form, parts = fitting.forms[entry.name], training.parts[entry.name]
        free = _uncovered(entry, training)
        predictors = training.predictors(entry.predictors, free)
        parts = parts if free is None else tuple(part.take(free) for part in parts)
        state_law = None
        rows: Rows | None = free
        if len(parts) == 2:
            chosen = state_method(fitting.defaults, entry.method, parts[0])
            state_law = fitting.law(chosen, parts[0], predictors, rows, entry.name, "state")
            assert isinstance(form, NumberForm)
            ordinary = parts[0].values < form.n_ordinary
            rows = ordinary if free is None else np.flatnonzero(free)[ordinary]
            parts = tuple(part.take(ordinary) for part in parts)
            predictors = [variable.take(ordinary) for variable in predictors]
        value_law = None
        if len(parts[-1]):
            grouped = isinstance(form, NumberForm) and bool(form.breaks)
            method = Nested() if grouped else entry.method
            given = [parts[0]] if grouped else predictors
            value_law = fitting.law(method, parts[-1], given, rows, entry.name)
        return cls(
            entry.name, entry.predictors, entry.rules, entry.smoothing, form, fitting.shapes[entry.name],
            state_law, value_law,
        )  # fmt: skip

    def draw(self, scene: Scene, stream: Stream) -> None:
        """Draw the values of the records that no rule covers, and give the others the value of their rule."""
        hit = None
        if self.rules:
            frame = scene.frame()
            hit = covered(self.rules, parsed(self.rules, self.name, frame.schema), frame)
        free = None if hit is None or (hit < 0).all() else hit < 0
        size = scene.size if free is None else int(free.sum())
        drawn = self._drawn(scene.predictors(self.predictors, free), size, stream)
        if free is None or hit is None:
            series = self.form.joined(drawn)
            scene.add(series, tuple(part.redrawn(v) for part, v in zip(self.shape, drawn, strict=True)))
            return
        series = _spread(self.form.joined(drawn), free)
        for number, rule in enumerate(self.rules):
            value = rule.typed(self.name, series.dtype)
            given = pl.when(pl.Series(hit == number)).then(pl.lit(value).first()).otherwise(pl.lit(series))
            series = pl.select(given).to_series().rename(self.name)
        parts = self.form.split(series)
        scene.add(series, tuple(s.redrawn(p.values) for s, p in zip(self.shape, parts, strict=True)))

    def _drawn(self, predictors: list[Variable], size: int, stream: Stream) -> list[Array]:
        rng = stream(self.name)
        if self.state_law is None:
            assert self.value_law is not None
            return [self._finished(self.value_law.draw(predictors, size, rng), rng)]
        states = self.state_law.draw(predictors, size, stream(self.name, "state")).astype(np.int32)
        values = np.zeros(size)
        assert isinstance(self.form, NumberForm)
        ordinary = states < self.form.n_ordinary
        if self.value_law is not None and ordinary.any():
            given = [self.shape[0].redrawn(states[ordinary])] if self.form.breaks else [
                variable.take(ordinary) for variable in predictors
            ]  # fmt: skip
            values[ordinary] = self._finished(self.value_law.draw(given, int(ordinary.sum()), rng), rng)
        return [states, values]

    def _finished(self, values: Array, rng: np.random.Generator) -> Array:
        if not isinstance(self.form, NumberForm):
            return values
        if self.smoothing is not None:
            from discreet.synth.smoothing import smoothed

            values = smoothed(values, self.smoothing, low=self.form.low, high=self.form.high, rng=rng)
        return values if self.form.decimals is None else np.round(values, self.form.decimals)


@stored("joint-step")
@dataclass(frozen=True, eq=False)
class JointStep(Step):
    """Columns that are drawn together; numbers among them by their groups first and then within the group."""

    names: tuple[str, ...]
    predictors: tuple[str, ...]
    law: JointConditional
    within: Mapping[str, Conditional]
    forms: Mapping[str, Form]
    shapes: Mapping[str, Shape]

    @property
    def notes(self) -> tuple[str, ...]:
        """What the fit has to say."""
        return self.law.notes

    @classmethod
    def fit(cls, entry: ColumnPlan, training: Scene, fitting: Fitting) -> JointStep:
        """Fit the joint law."""
        assert isinstance(entry.method, JointMethod)
        names = (entry.name, *entry.with_columns)
        predictors = training.predictors(entry.predictors)
        targets = [training.parts[name][0] for name in names]
        rng = fitting.stream("fit", entry.name)
        words = fitting.stream.words("noise", entry.name)
        weights = fitting.weights
        if fitting.proper:
            again = rng.integers(training.size, size=training.size)
            if fitting.times is not None:
                again = np.repeat(np.arange(training.size), fitting.times)
            targets = [target.take(again) for target in targets]
            predictors = [variable.take(again) for variable in predictors]
            weights = None if weights is None else weights[again]
        law = entry.method.fit_joint(
            JointTask(targets, predictors, rng, words, weights, bool(fitting.proper))
        )
        within = {}
        for name in names:
            form, parts = fitting.forms[name], training.parts[name]
            if isinstance(form, NumberForm) and len(parts) == 2:
                rows = parts[0].values < form.n_ordinary
                given = [parts[0].take(rows)]
                within[name] = fitting.law(Nested(), parts[1].take(rows), given, rows, name)
        forms = {name: fitting.forms[name] for name in names}
        return cls(
            names, entry.predictors, law, within, forms, {name: fitting.shapes[name] for name in names}
        )

    def draw(self, scene: Scene, stream: Stream) -> None:
        """Draw all columns of the step."""
        drawn = self.law.draw(scene.predictors(self.predictors), scene.size, stream(self.names[0]))
        for name, codes in zip(self.names, drawn, strict=True):
            form, shape = self.forms[name], self.shapes[name]
            parts: list[Array] = [codes]
            if name in self.within and isinstance(form, NumberForm):
                values = np.zeros(scene.size)
                ordinary = codes < form.n_ordinary
                given = [shape[0].redrawn(codes[ordinary])]
                values[ordinary] = self.within[name].draw(given, int(ordinary.sum()), stream(name, "within"))
                parts = [codes, values]
            series = form.joined(parts)
            scene.add(series, tuple(p.redrawn(v) for p, v in zip(shape, parts, strict=True)))


@stored("passive-step")
@dataclass(frozen=True, eq=False)
class PassiveStep(Step):
    """A column that is computed from synthetic values."""

    name: str
    expression: str
    form: Form
    shape: Shape

    def draw(self, scene: Scene, stream: Stream, rest: pl.Series | None = None) -> None:
        """Compute the column, plus a rest; a value it never had before is taken as it comes."""
        frame = scene.frame()
        computed = frame.select(parse(self.expression, frame.schema).value.alias(self.name))[self.name]
        if rest is not None:
            computed = as_numbers(computed) + rest
        series = as_computed(computed, self.form.dtype, self.form.decimals).rename(self.name)
        parts = self._parts(series)
        scene.add(series, tuple(s.redrawn(p.values) for s, p in zip(self.shape, parts, strict=True)))

    def _parts(self, series: pl.Series) -> Shape:
        """Code the column for later predictors; what no observed record had counts as the first level, or as zero."""
        if isinstance(self.form, NumberForm):
            return self.form.split(series if self.form.has_missing else series.fill_null(0))
        levels = self.form.levels.cast(series.dtype)
        known = series.is_in(levels.implode()).fill_null(self.form.has_missing)
        return self.form.split(series.set(~known, levels[0]) if len(levels) else series)


@stored("near-step")
@dataclass(frozen=True, eq=False)
class NearStep(Step):
    """A column that is computed from synthetic values, plus a drawn rest."""

    computed: PassiveStep
    rest: ModelStep

    @property
    def notes(self) -> tuple[str, ...]:
        """What the fit of the rest has to say."""
        return self.rest.notes

    @classmethod
    def fit(cls, entry: ColumnPlan, training: Scene, fitting: Fitting) -> NearStep:
        """Fit what the expression leaves over."""
        from discreet.synth.methods.tree_donors import Cart

        assert isinstance(entry.method, Near)
        name = f"{entry.name}: rest"
        frame = training.frame()
        value = frame.select(parse(entry.method.expression, frame.schema).value.alias(name))[name]
        left = (as_numbers(training.columns[entry.name]) - as_numbers(value)).rename(name)
        form = fitting.forms[entry.name]
        left = left if form.decimals is None else left.round(form.decimals)
        own = NumberForm.of(left)
        shape = own.split(left)
        scene = Scene(training.size)
        scene.columns, scene.parts = {**training.columns, name: left}, {**training.parts, name: shape}
        empty = tuple(part.take(slice(0, 0)) for part in shape)
        around = replace(fitting, forms={**fitting.forms, name: own}, shapes={**fitting.shapes, name: empty})
        step = ModelStep.fit(ColumnPlan(name, Cart(), entry.predictors), scene, around)
        passive = PassiveStep(entry.name, entry.method.expression, form, fitting.shapes[entry.name])
        return cls(passive, step)

    def draw(self, scene: Scene, stream: Stream) -> None:
        """Draw the rest and add it to what is computed."""
        self.rest.draw(scene, stream)
        left = scene.columns.pop(self.rest.name)
        scene.parts.pop(self.rest.name)
        self.computed.draw(scene, stream, left)


def _uncovered(entry: ColumnPlan, training: Scene) -> Flags | None:
    if not entry.rules:
        return None
    frame = training.frame()
    hit = covered(entry.rules, parsed(entry.rules, entry.name, frame.schema), frame)
    # Where the rules cover all records (of a stratum), those are all there is to learn from.
    return None if (hit < 0).all() or (hit >= 0).all() else hit < 0


def _spread(series: pl.Series, rows: Flags) -> pl.Series:
    """Put the values of some records at their places, the others missing."""
    at = pl.Series(np.cumsum(rows) - 1).set(pl.Series(~rows), None)
    return series.rename("values").gather(at)
