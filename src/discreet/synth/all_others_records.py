"""A file as complete variables, and what stays in its place: missing values, special codes, constants.

The cells that are no value (missing, special codes) form a pattern that the synthetic file keeps. Behind the blanks of
numbers stand imputed ones, which serve as predictors and are never released.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from discreet.core.arrays import Array, Codes, Flags, Floats, Integers
from discreet.core.native_libraries import one_thread
from discreet.synth.all_others_models import ColumnModel, Settings, fit_column
from discreet.synth.all_others_selection import select
from discreet.synth.column_forms import CategoryForm, Form, NumberForm
from discreet.synth.methods.model_matrix import Design
from discreet.synth.model_codec import stored
from discreet.synth.modelled_columns import Intake
from discreet.synth.synthesizer import Stream
from discreet.synth.variables import Variable

Scene = dict[str, Variable]

_IMPUTATIONS = 5
#: Complete records for each column of the model matrix that a fit on complete records needs.
_RECORDS_A_COLUMN = 5
#: Share of the records of a column that must be complete; fewer would speak for the others too much.
_COMPLETE_SHARE = 0.5


@stored("all-others-records")
@dataclass(frozen=True, eq=False)
class Records:
    """The records of a file.

    Attributes
    ----------
    forms
        How columns become variables and back.
    scene
        One complete variable for each column.
    states
        The states of numbers that have missing values or special codes.
    blank
        Where a column has no value to be synthesized; only of columns that have such cells.
    constant
        Columns with one value, which are copied.
    """

    forms: Mapping[str, Form]
    scene: Scene
    states: Mapping[str, Codes]
    blank: Mapping[str, Flags]
    constant: tuple[str, ...]

    @classmethod
    def of(cls, intake: Intake, stream: Stream) -> Records:
        """Read the records; blanks of numbers are filled with draws from their column."""
        scene: Scene = {}
        states, blank, constant = {}, {}, []
        for name, form in intake.forms.items():
            parts = form.split(intake.frame[name])
            variable = parts[-1]
            if isinstance(form, NumberForm) and len(parts) == 2:
                states[name] = parts[0].values
                empty = states[name] >= form.n_ordinary
                if empty.any():
                    blank[name] = empty
                    known = variable.values[~empty]
                    values = variable.values.copy()
                    if len(known):
                        values[empty] = stream("fill", name).choice(known, int(empty.sum()))
                    variable = variable.redrawn(values)
            elif isinstance(form, CategoryForm) and form.has_missing:
                blank[name] = variable.values == len(form.levels)
            scene[name] = variable
            known = variable.values if name not in blank else variable.values[~blank[name]]
            if not len(known) or (known == known[0]).all():
                constant.append(name)
        return cls(intake.forms, scene, states, blank, tuple(constant))

    @property
    def size(self) -> int:
        """Number of records."""
        return len(next(iter(self.scene.values())))

    @property
    def modelled(self) -> tuple[str, ...]:
        """The columns that are synthesized."""
        return tuple(name for name in self.scene if name not in self.constant)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Those of them that are numbers."""
        return tuple(name for name in self.modelled if self.scene[name].is_number)

    def there(self, name: str) -> Flags:
        """Return where a column has a value."""
        return ~self.blank[name] if name in self.blank else np.ones(self.size, dtype=np.bool_)

    def taken(self, rows: Integers) -> Records:
        """Return some of the records."""
        return Records(
            self.forms,
            {name: variable.take(rows) for name, variable in self.scene.items()},
            {name: states[rows] for name, states in self.states.items()},
            {name: mask[rows] for name, mask in self.blank.items()},
            self.constant,
        )

    def patterned(self, name: str, values: Array) -> Variable:
        """Return drawn values as a variable; a category stays missing where it was."""
        form = self.forms[name]
        if isinstance(form, CategoryForm) and name in self.blank:
            values = np.where(self.blank[name], len(form.levels), values)
        return self.scene[name].redrawn(values)

    def released(self, scene: Mapping[str, Variable]) -> pl.DataFrame:
        """Turn variables into the columns of the file, blanks where they were."""
        columns = []
        for name, form in self.forms.items():
            values = scene[name].values
            if isinstance(form, NumberForm):
                if form.dtype.is_temporal():
                    # Dates and times have an end that noise does not know of.
                    values = np.clip(values, form.low, form.high)
                parts = [self.states[name], values] if name in self.states else [values]
                columns.append(form.joined(parts))
            else:
                columns.append(form.joined([values]))
        return pl.DataFrame(columns)


def fit_all(
    records: Records, settings: Settings, weights: Floats | None, stream: Stream
) -> tuple[Records, dict[str, ColumnModel], tuple[str, ...]]:
    """Fit a model of every column and impute the blanks of numbers by them.

    Fits use records in which the column and its predictors are complete. Where these are too few, imputed predictors
    serve too, and the models are fitted a second time to better imputed ones.
    """
    models, incomplete = _models(records, settings, weights, stream.child("fit"))
    blanks = [name for name in records.numbers if name in records.blank]
    if not blanks:
        return records, models, ()
    notes: tuple[str, ...] = ()
    records = _imputed(records, models, blanks, stream.child("impute"))
    if incomplete:
        models, _ = _models(records, settings, weights, stream.child("fit again"))
        records = _imputed(records, models, blanks, stream.child("impute again"))
        notes = (
            "Columns that have too few records without missing values among their predictors, and were fitted with "
            f"imputed ones: {', '.join(repr(name) for name in incomplete[:5])}"
            + (f" and {len(incomplete) - 5} more." if len(incomplete) > 5 else "."),
        )
    return records, models, notes


def _models(
    records: Records, settings: Settings, weights: Floats | None, stream: Stream
) -> tuple[dict[str, ColumnModel], list[str]]:
    # One column keeps one core busy; linear algebra that also spreads out would only get in its way.
    with (
        one_thread(),
        ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool,
    ):
        fitted = list(
            pool.map(lambda name: _model(records, name, settings, weights, stream(name)), records.modelled)
        )
    models = {model.name: model for model, _ in fitted}
    return models, [model.name for model, complete in fitted if not complete]


def _model(
    records: Records, name: str, settings: Settings, weights: Floats | None, rng: np.random.Generator
) -> tuple[ColumnModel, bool]:
    """Select the predictors of a column, fit it on them, and say whether complete records were enough."""
    others = [other for other in records.modelled if other != name]
    rows, _ = _rows(records, name, others)
    share = None if weights is None else _scaled(weights[rows])
    target = _taken(records.scene[name], rows)
    candidates = [_taken(records.scene[other], rows) for other in others]
    chosen = select(
        Design.of(candidates, weights=share),
        candidates,
        target,
        selector=settings.selector,
        alpha=settings.alpha,
        threshold=settings.threshold,
        most_columns=len(target) - 3,
        weights=share,
        rng=rng,
    )
    # In the order of the file, so that the model reads the same whatever selected it.
    given = [others[place] for place in sorted(chosen.places)]
    rows, complete = _rows(records, name, given)
    model = fit_column(
        _taken(records.scene[name], rows),
        [_taken(records.scene[other], rows) for other in given],
        settings,
        weights=None if weights is None else _scaled(weights[rows]),
        alpha=chosen.alpha,
        rng=rng,
    )
    return model, complete


def _rows(records: Records, target: str, given: Sequence[str]) -> tuple[Integers, bool]:
    """Return the records to fit on, and whether they are complete."""
    known = records.there(target)
    complete = known.copy()
    width = 1
    for name in given:
        variable = records.scene[name]
        width += 1 if variable.is_number else variable.levels - 1
        # Missing is a level of a category, so only numbers have gaps.
        if variable.is_number:
            complete &= records.there(name)
    least = max(_RECORDS_A_COLUMN * width + 10, _COMPLETE_SHARE * known.sum())
    if complete.sum() >= min(known.sum(), least):
        return np.flatnonzero(complete), True
    return np.flatnonzero(known), False


def _imputed(
    records: Records, models: Mapping[str, ColumnModel], blanks: Sequence[str], stream: Stream
) -> Records:
    """Draw what stands behind the blanks of numbers given all the rest, a few times over."""
    scene = dict(records.scene)
    for number in range(_IMPUTATIONS):
        for name in blanks:
            rows = np.flatnonzero(records.blank[name])
            there = {other: scene[other].take(rows) for other in (*models[name].predictors, name)}
            values = scene[name].values.copy()
            values[rows] = models[name].draw(there, stream(name, str(number)))
            scene[name] = scene[name].redrawn(values)
    return replace(records, scene=scene)


def _taken(variable: Variable, rows: Integers) -> Variable:
    return variable if len(rows) == len(variable) else variable.take(rows)


def _scaled(weights: Floats) -> Floats:
    return np.asarray(weights * (len(weights) / weights.sum()))
