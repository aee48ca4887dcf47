"""Order-free models: one of each column given the others, fitted to records that were made complete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl
from scipy.special import softmax

from discreet.core.arrays import Array, Codes, Flags, Floats, Integers
from discreet.core.errors import ParameterError
from discreet.core.native_libraries import in_threads
from discreet.dp.entropy import Stream
from discreet.synth.all_others_selection import select
from discreet.synth.column_forms import CategoryForm, Form, NumberForm, Variable, scaled
from discreet.synth.methods.glm_methods import ClassShares
from discreet.synth.methods.method import Conditional, Task
from discreet.synth.methods.model_matrix import Design, augmented, multinomial_fit, newton_logit
from discreet.synth.methods.normal_regression import NormalLaw, least_squares
from discreet.synth.methods.observed_values import ObservedShares, Sample
from discreet.synth.saved_models import stored
from discreet.synth.whole_records import Intake

if TYPE_CHECKING:
    from discreet.synth.all_others import AllOthers

Noise = Literal["residual", "bayes", "none"]

_MOST_COEFFICIENTS = 20_000
#: Up to this many coefficients of a multinomial fit, their covariance is computed for a Bayesian draw.
_COVARIANCE = 800
#: A category whose own level is predicted with this mean probability is as good as copied.
_AS_GOOD_AS_COPIED = 0.99


@stored("all-others-column")
@dataclass(frozen=True, eq=False)
class ColumnModel:
    """The law of one column given those that were selected.

    Attributes
    ----------
    name
        Of the column.
    predictors
        The columns it is predicted from; with none it is drawn from its observed values.
    law
        From which values are drawn.
    r2
        Share of its variance that the others explain; for a category that of its indicators together.
    sigma
        Residual standard deviation as it was estimated; None for a category.
    floored
        Whether the fit is so good that the noise was raised to its floor.
    alpha
        The penalty that selected the predictors.
    root, degrees
        A square root of the covariance of the coefficients and the residual degrees of freedom, for Bayesian draws.
    margin
        Shares of the levels that a category is mixed with where its fit is too good; else None.
    notes
        What the user should know.
    """

    name: str
    predictors: tuple[str, ...]
    law: Conditional
    r2: float
    sigma: float | None = None
    floored: bool = False
    alpha: float | None = None
    root: Floats | None = None
    degrees: int = 0
    margin: ObservedShares | None = None
    floor: float = 0.0
    notes: tuple[str, ...] = field(default=())

    def draw(self, scene: Mapping[str, Variable], rng: np.random.Generator) -> Array:
        """Draw the column for the values of the others in ``scene``."""
        given = [scene[name] for name in self.predictors]
        size = len(next(iter(scene.values())))
        drawn = self.law.draw(given, size, rng)
        if self.margin is not None:
            other = self.margin.draw((), size, rng)
            drawn = np.where(rng.random(size) < self.floor, other, drawn)
        return drawn

    def predicted(self, scene: Mapping[str, Variable]) -> Floats:
        """Return the predictions of a number; its mean where nothing predicts it."""
        if isinstance(self.law, NormalLaw):
            return self.law.predict([scene[name] for name in self.predictors])
        assert isinstance(self.law, ObservedShares)
        mass = np.diff(self.law.mass, prepend=0.0)
        mean = float(self.law.values @ mass / mass.sum())
        return np.full(len(next(iter(scene.values()))), mean)

    @property
    def spread(self) -> float:
        """The standard deviation of the noise that is added to a number."""
        if isinstance(self.law, NormalLaw):
            return self.law.sigma
        assert isinstance(self.law, ObservedShares)
        mass = np.diff(self.law.mass, prepend=0.0) / self.law.mass[-1]
        mean = float(self.law.values @ mass)
        return float(np.sqrt(((self.law.values - mean) ** 2) @ mass))

    def renewed(self, rng: np.random.Generator) -> ColumnModel:
        """Draw coefficients and residual variance from their posterior: flat prior, for logits the normal limit."""
        if self.root is None:
            return self
        change = self.root @ rng.standard_normal(self.root.shape[1])
        if isinstance(self.law, NormalLaw):
            factor = float(np.sqrt(self.degrees / rng.chisquare(self.degrees)))
            law: Conditional = NormalLaw(
                self.law.design,
                self.law.beta + factor * change,
                self.law.sigma if self.floored else factor * self.law.sigma,
                "identity",
                0.0,
            )
        else:
            assert isinstance(self.law, ClassShares)
            moved = self.law.beta.copy()
            moved[:, 1:] += change.reshape(moved.shape[0], -1)
            law = ClassShares(self.law.design, moved, self.law.there)
        return replace(self, law=law)


def fit_column(
    target: Variable,
    given: Sequence[Variable],
    plan: AllOthers,
    *,
    weights: Floats | None,
    alpha: float | None,
    rng: np.random.Generator,
) -> ColumnModel:
    """Fit a column on its predictors; without any it is drawn from its observed values."""
    if not given:
        law = Sample().fit(Task(target, (), rng, weights))
        model = ColumnModel(target.name, (), law, 0.0, alpha=alpha)
        return replace(model, sigma=model.spread) if target.is_number else model
    fitted = _number if target.is_number else _category
    return fitted(target, given, plan, weights, alpha)


def _number(
    target: Variable,
    given: Sequence[Variable],
    plan: AllOthers,
    weights: Floats | None,
    alpha: float | None,
) -> ColumnModel:
    design = Design.of(given, weights=weights)
    fit = least_squares(design, given, target.values, weights=weights)
    share = np.ones(len(target)) if weights is None else weights
    mean = float(np.average(target.values, weights=share))
    spread = float(np.sqrt(np.average((target.values - mean) ** 2, weights=share)))
    predicted = NormalLaw(design, fit.beta, 0.0, "identity", 0.0).predict(given)
    left = float(np.average((target.values - predicted) ** 2, weights=share))
    floor = plan.noise_floor * spread
    floored = fit.sigma < floor
    noise = floor if floored else 0.0 if plan.noise == "none" else fit.sigma
    notes: tuple[str, ...] = ()
    if floored:
        notes = (
            f"Column '{target.name}' is predicted almost exactly by the others, so its values would be released as "
            f"they are; noise of {plan.noise_floor:g} of its standard deviation was added. Leave it out, or leave "
            "out the column that it is computed from.",
        )
    return ColumnModel(
        target.name,
        tuple(variable.name for variable in given),
        NormalLaw(design, fit.beta, noise, "identity", 0.0),
        max(0.0, 1 - left / spread**2) if spread > 0 else 0.0,
        fit.sigma,
        floored,
        alpha,
        fit.root if plan.noise == "bayes" else None,
        max(len(target) - design.width, 1),
        notes=notes,
    )


def _category(
    target: Variable,
    given: Sequence[Variable],
    plan: AllOthers,
    weights: Floats | None,
    alpha: float | None,
) -> ColumnModel:
    design = Design.of(given, weights=weights)
    there, codes = np.unique(target.values, return_inverse=True)
    if design.width * len(there) > _MOST_COEFFICIENTS:
        raise ParameterError(
            f"Column '{target.name}' has {len(there)} levels and its predictors fill {design.width} columns, which are "
            "too many for a multinomial fit. Group its levels, leave it out, or select fewer predictors (lasso_alpha)."
        )
    whole, whole_codes, whole_weights = given, codes, weights
    if plan.max_records is not None and len(there) > 2 and len(codes) > plan.max_records:
        rows, weights = _by_level(codes, weights, plan.max_records)
        given, codes = [variable.take(rows) for variable in given], codes[rows]
        # Columns that say nothing new in fewer records have to go.
        design = Design.of(given, weights=weights)
    extra = augmented(design, given, len(there))
    notes: tuple[str, ...] = ()
    root: Floats | None = None
    if len(there) == 2:
        beta, spread = newton_logit(design, given, codes, weights=weights, extra=extra)
        law = ClassShares(design, np.column_stack([np.zeros(len(beta)), beta]), there)
        root = spread if plan.noise == "bayes" else None
    else:
        fitted, converged = multinomial_fit(design, given, codes, len(there), weights=weights, extra=extra)
        law = ClassShares(design, fitted, there, converged=converged)
        if plan.noise == "bayes":
            root, notes = _multinomial_root(design, given, fitted, weights, target.name)
    own, expected = _fit_of_shares(law, whole, whole_codes, whole_weights)
    floored = own > _AS_GOOD_AS_COPIED
    if floored:
        notes = (
            *notes,
            f"Column '{target.name}' is predicted almost without error by the others, so its values would be released "
            f"as they are; {plan.noise_floor:g} of them are drawn from all values instead. Leave it out, or leave "
            "out the column that says the same.",
        )
    return ColumnModel(
        target.name,
        tuple(variable.name for variable in given),
        law,
        expected,
        floored=floored,
        alpha=alpha,
        root=root,
        degrees=0,
        margin=ObservedShares(there, np.cumsum(np.bincount(whole_codes, whole_weights))) if floored else None,
        floor=plan.noise_floor,
        notes=notes,
    )


def _by_level(codes: Integers, weights: Floats | None, most: int) -> tuple[Integers, Floats]:
    """Choose records for a multinomial fit, all of rare levels and some of frequent ones, and weight them back."""
    sizes = np.bincount(codes)
    ordered = np.sort(sizes)
    # The largest number a level that, given to each or all it has, stays within the limit.
    kept = np.cumsum(ordered) + ordered * np.arange(len(ordered) - 1, -1, -1)
    full = int((kept <= most).sum())
    each = (most - int(ordered[:full].sum())) // max(len(ordered) - full, 1)
    by_level = np.argsort(codes, kind="stable")
    starts = np.cumsum(sizes) - sizes
    taken = np.minimum(sizes, max(each, 1))
    rows = np.concatenate(
        [
            by_level[start + (np.arange(count) * size) // count]
            for start, size, count in zip(starts, sizes, taken, strict=True)
        ]
    )
    rows = np.sort(rows)
    share = (sizes / taken)[codes[rows]] * (1.0 if weights is None else weights[rows])
    return rows, np.asarray(share * (len(rows) / share.sum()))


def _fit_of_shares(
    law: ClassShares, given: Sequence[Variable], codes: Integers, weights: Floats | None
) -> tuple[float, float]:
    """Return the mean probability of the true level, and the share of the levels' variance that is predicted."""
    levels = law.beta.shape[1]
    own = total = 0.0
    first, second = np.zeros(levels), np.zeros(levels)
    for x, w, rows in law.design.parts(given, weights):
        shares = softmax(x @ law.beta, axis=1)
        mass = np.ones(len(x)) if w is None else w
        own += float(mass @ shares[np.arange(len(x)), codes[rows]])
        total += float(mass.sum())
        first += mass @ shares
        second += mass @ shares**2
    mean = np.bincount(codes, weights, minlength=levels) / total
    explained = float(np.sum(second / total - (first / total) ** 2))
    return own / total, min(1.0, explained / float(np.sum(mean * (1 - mean))))


def _multinomial_root(
    design: Design, given: Sequence[Variable], beta: Floats, weights: Floats | None, name: str
) -> tuple[Floats | None, tuple[str, ...]]:
    """Return a square root of the inverse information of a multinomial fit."""
    width, free = design.width, beta.shape[1] - 1
    if width * free > _COVARIANCE:
        return None, (
            f"Column '{name}' has {width * free:,} coefficients, too many to draw from their posterior; they are used "
            "as fitted.",
        )
    information = np.zeros((width, free, width, free))
    for x, w, _ in design.parts(given, weights):
        shares = softmax(x @ beta, axis=1)[:, 1:]
        mass = np.ones(len(x)) if w is None else w
        for a in range(free):
            for b in range(a + 1):
                product = shares[:, a] * ((a == b) - shares[:, b]) * mass
                block = x.T @ (x * product[:, None])
                information[:, a, :, b] += block
                if a != b:
                    information[:, b, :, a] += block
    square = information.reshape(width * free, width * free)
    values, vectors = np.linalg.eigh(square + 1e-8 * np.eye(len(square)))
    return vectors / np.sqrt(np.maximum(values, 1e-8)), ()


# A file as complete variables, and what stays in its place: missing values, special codes, constants.
#
# The cells that are no value (missing, special codes) form a pattern that the synthetic file keeps. Behind the blanks
# of numbers stand imputed ones, which serve as predictors and are never released.
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
    records: Records, plan: AllOthers, weights: Floats | None, stream: Stream
) -> tuple[Records, dict[str, ColumnModel], tuple[str, ...]]:
    """Fit a model of every column and impute the blanks of numbers by them.

    Fits use records in which the column and its predictors are complete. Where these are too few, imputed predictors
    serve too, and the models are fitted a second time to better imputed ones.
    """
    models, incomplete = _models(records, plan, weights, stream.child("fit"))
    blanks = [name for name in records.numbers if name in records.blank]
    if not blanks:
        return records, models, ()
    notes: tuple[str, ...] = ()
    records = _imputed(records, models, blanks, stream.child("impute"))
    if incomplete:
        models, _ = _models(records, plan, weights, stream.child("fit again"))
        records = _imputed(records, models, blanks, stream.child("impute again"))
        notes = (
            "Columns that have too few records without missing values among their predictors, and were fitted with "
            f"imputed ones: {', '.join(repr(name) for name in incomplete[:5])}"
            + (f" and {len(incomplete) - 5} more." if len(incomplete) > 5 else "."),
        )
    return records, models, notes


def _models(
    records: Records, plan: AllOthers, weights: Floats | None, stream: Stream
) -> tuple[dict[str, ColumnModel], list[str]]:
    fitted = list(
        in_threads(lambda name: _model(records, name, plan, weights, stream(name)), records.modelled)
    )
    models = {model.name: model for model, _ in fitted}
    return models, [model.name for model, complete in fitted if not complete]


def _model(
    records: Records, name: str, plan: AllOthers, weights: Floats | None, rng: np.random.Generator
) -> tuple[ColumnModel, bool]:
    """Select the predictors of a column, fit it on them, and say whether complete records were enough."""
    others = [other for other in records.modelled if other != name]
    rows, _ = _rows(records, name, others)
    share = None if weights is None else scaled(weights[rows])
    target = _taken(records.scene[name], rows)
    candidates = [_taken(records.scene[other], rows) for other in others]
    chosen = select(
        Design.of(candidates, weights=share),
        candidates,
        target,
        selector=plan.selector,
        alpha=plan.lasso_alpha,
        threshold=plan.threshold,
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
        plan,
        weights=None if weights is None else scaled(weights[rows]),
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
