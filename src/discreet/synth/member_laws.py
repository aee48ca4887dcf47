"""What a member of a simulated household is like: classes given other columns, and numbers within their class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import polars as pl
from scipy.special import softmax

from discreet.core.arrays import Array, Floats, Integers
from discreet.core.errors import ColumnError, ParameterError
from discreet.numerics.alias_tables import drawn_places
from discreet.synth.column_forms import decimals_of, from_numbers, places_among, plain_text
from discreet.synth.household_surveys import weighted_quantiles
from discreet.synth.saved_models import stored, unstored

REFINED = (0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.99, 1.0)
_EVEN = tuple(np.round(np.arange(1, 11) / 10, 1))
_PREDICTOR_CLASSES = 12
_LEAST_PER_CLASS = 5
Model = Literal["multinom", "distribution", "forest", "boosting"]


@stored("classing")
@dataclass(frozen=True, eq=False)
class Classing:
    """How a column becomes classes: levels of a category, or ranges of a number; missing is a class of its own.

    Attributes
    ----------
    levels
        The categories; empty for a number.
    breaks
        Ends of the ranges of a number, in ascending order; a range holds its upper end.
    zero, missing
        The class of zero and of missing; -1 where there is none.
    """

    name: str
    dtype: pl.DataType
    levels: pl.Series
    breaks: Floats
    zero: int
    missing: int
    size: int

    @classmethod
    def of_category(cls, series: pl.Series) -> Classing:
        """Take every level for a class."""
        levels = plain_text(series.rename("level")).drop_nulls().unique().sort()
        gaps = series.null_count() > 0
        return cls(
            series.name,
            series.dtype,
            levels,
            np.empty(0),
            -1,
            len(levels) if gaps else -1,
            len(levels) + gaps,
        )

    @classmethod
    def of_number(cls, series: pl.Series, weights: Floats, shares: Sequence[float]) -> Classing:
        """Cut a number at weighted quantiles of its positive values, zero apart, and its negative ones into ten."""
        values = series.cast(pl.Float64)
        there = (values.is_not_null() & values.is_not_nan()).fill_null(False).to_numpy()
        numbers = values.fill_null(0.0).fill_nan(0.0).to_numpy()
        if not np.isfinite(numbers).all():
            raise ColumnError(f"Column '{series.name}' has infinite values. Make them missing.")
        breaks: list[float] = []
        negative, positive = there & (numbers < 0), there & (numbers > 0)
        if negative.any():
            cuts = weighted_quantiles(numbers[negative], weights[negative], np.arange(1, 11) / 10)
            breaks += [float(numbers[negative].min()) - 1e-9, *np.unique(cuts).tolist()]
        if positive.any():
            cuts = np.unique(weighted_quantiles(numbers[positive], weights[positive], np.asarray(shares)))
            if not breaks or breaks[-1] < 0:
                breaks.append(0.0)
            breaks += cuts.tolist()
        ends = np.unique(np.array(breaks)) if breaks else np.empty(0)
        count = max(len(ends) - 1, 0)
        has_zero, gaps = bool((there & (numbers == 0)).any()), not there.all()
        zero_at = count if has_zero else -1
        missing = count + has_zero if gaps else -1
        count += has_zero + gaps
        return cls(
            series.name, series.dtype, pl.Series("level", [], dtype=pl.String), ends, zero_at, missing, count
        )

    def codes(self, series: pl.Series) -> Integers:
        """Return the class of every value."""
        if len(self.levels) or not (len(self.breaks) or self.zero >= 0):
            found = places_among(series.cast(self.levels.dtype), self.levels)
            return found.fill_null(max(self.missing, 0)).to_numpy().astype(np.int64)
        values = series.cast(pl.Float64)
        gone = (values.is_null() | values.is_nan()).fill_null(True).to_numpy()
        numbers = values.fill_null(0.0).fill_nan(0.0).to_numpy()
        codes = np.clip(
            np.searchsorted(self.breaks, numbers, side="left") - 1, 0, max(len(self.breaks) - 2, 0)
        )
        if self.zero >= 0:
            codes[numbers == 0] = self.zero
        codes[gone] = max(self.missing, 0)
        return codes.astype(np.int64)


def as_column(  # noqa: PLR0917
    values: Floats, decimals: int | None, codes: Integers, missing: int, dtype: pl.DataType, name: str
) -> pl.Series:
    """Write drawn numbers as a column whose records of one class are missing."""
    values = values if decimals is None else np.round(values, decimals) + 0.0
    return from_numbers(values, codes == missing if missing >= 0 else None, dtype, name)


@stored("tail")
@dataclass(frozen=True, eq=False)
class Tail:
    """The law of the largest class: a generalized Pareto distribution above a threshold, cut at the largest value."""

    threshold: float
    shape: float
    scale: float
    upper: float

    @classmethod
    def of(cls, values: Floats, threshold: float, upper: float) -> Tail:
        """Fit by maximum likelihood."""
        from scipy.stats import genpareto

        over = values[values > threshold] - threshold
        if len(over) < _LEAST_PER_CLASS:
            return cls(threshold, -1.0, max(upper - threshold, 1e-9), upper)
        shape, _, scale = genpareto.fit(over, floc=0)
        return cls(threshold, float(shape), float(scale), upper)

    def draw(self, share: Floats) -> Floats:
        """Turn even draws into values above the threshold."""
        from scipy.stats import genpareto

        most = genpareto.cdf(self.upper - self.threshold, self.shape, scale=self.scale)
        return np.asarray(
            np.clip(
                self.threshold + genpareto.ppf(share * most, self.shape, scale=self.scale),
                self.threshold,
                self.upper,
            )
        )


@stored("class-law")
@dataclass(frozen=True, eq=False)
class ClassLaw:
    """The chances of the classes of a column, for every combination of classes of other columns.

    Attributes
    ----------
    target
        The column.
    predictors
        The columns it is drawn given, as they are classed.
    tables
        For every stratum: coefficients of a model (one more row for the constant), or the law by combination.
    """

    target: Classing
    predictors: tuple[Classing, ...]
    kind: Model
    models: tuple[TableChances | LogitChances | ForestChances, ...]
    allowed: Mapping[str, Mapping[str, Sequence[Any]]]
    forbidden: Mapping[str, Mapping[str, Sequence[Any]]]
    eps: float

    def draw(self, known: Mapping[str, Integers], stratum: Integers, rng: np.random.Generator) -> Integers:
        """Draw classes for all records: the chances are worked out once for every combination that occurs."""
        columns = [known[own.name] for own in self.predictors]
        sizes = [own.size for own in self.predictors]
        drawn = np.empty(len(stratum), dtype=np.int64)
        share = rng.random(len(stratum))
        for g, model in enumerate(self.models):
            rows = np.flatnonzero(stratum == g)
            if not len(rows):
                continue
            packed = _packed([codes[rows] for codes in columns], sizes, len(rows))
            cells, at = np.unique(packed, return_inverse=True)
            example = np.empty((len(cells), len(columns)), dtype=np.int64)
            left = cells.copy()
            for place in range(len(columns) - 1, -1, -1):
                example[:, place] = left % (sizes[place] + 1)
                left //= sizes[place] + 1
            chances = self._checked(model(example), example)
            upto = np.cumsum(chances, axis=1)
            upto /= upto[:, -1:]
            own = np.zeros(len(rows), dtype=np.int64)
            for c in range(self.target.size - 1):
                own += share[rows] >= upto[at, c]
            drawn[rows] = own
        return drawn

    def _checked(self, chances: Floats, example: Array) -> Floats:
        """Set impossible classes to zero; where nothing is left, all that is possible is alike."""
        held = np.where(chances < self.eps, 0.0, chances)
        possible = np.ones_like(held, dtype=bool)
        for rules, keep in ((self.allowed, True), (self.forbidden, False)):
            for column, by_level in rules.items():
                place = next((i for i, own in enumerate(self.predictors) if own.name == column), None)
                if place is None:
                    raise ParameterError(
                        f"A rule for '{self.target.name}' goes by '{column}', which is not simulated before it."
                    )
                for level, outcomes in by_level.items():
                    rows = example[:, place] == _code(self.predictors[place], level)
                    listed = np.isin(
                        np.arange(self.target.size), [_code(self.target, own) for own in outcomes]
                    )
                    possible[np.ix_(rows, ~listed if keep else listed)] = False
        held = np.where(possible, held, 0.0)
        empty = held.sum(axis=1) <= 0
        held[empty] = np.where(possible[empty].any(axis=1, keepdims=True), possible[empty], 1.0)
        return np.asarray(held)


def _packed(columns: Iterable[Integers], sizes: Sequence[int], rows: int) -> Integers:
    """Number the combinations of codes; a code may also be one more than there are."""
    packed = np.zeros(rows, dtype=np.int64)
    for codes, size in zip(columns, sizes, strict=True):
        packed = packed * (size + 1) + codes
    return packed


def _code(classing: Classing, level: Any) -> int:
    if level is None or level == "missing":
        return classing.missing
    plain = [str(own) for own in classing.levels.to_list()]
    if str(level) not in plain:
        raise ParameterError(f"A rule names a level that column '{classing.name}' does not have.")
    return plain.index(str(level))


@stored("table-chances")
@dataclass(frozen=True, eq=False)
class TableChances:
    """Chances by combination, and the overall ones for combinations that did not occur."""

    cells: Integers
    chances: Floats
    overall: Floats
    sizes: tuple[int, ...]

    def __call__(self, example: Array) -> Floats:
        """Look the chances up."""
        packed = _packed(example.T, self.sizes, len(example))
        at = np.minimum(np.searchsorted(self.cells, packed), len(self.cells) - 1)
        return np.where((self.cells[at] == packed)[:, np.newaxis], self.chances[at], self.overall)


@stored("logit-chances")
@dataclass(frozen=True, eq=False)
class LogitChances:
    """Chances of a weighted multinomial regression on indicators of the predictors' classes."""

    slopes: Floats
    constants: Floats
    classes: Integers
    sizes: tuple[int, ...]
    size: int

    def __call__(self, example: Array) -> Floats:
        """Predict the chances of every class."""
        score = indicators(example, self.sizes) @ self.slopes.T + self.constants
        made = np.zeros((len(example), self.size))
        made[:, self.classes] = softmax(score, axis=1)
        return made


@stored("forest-chances")
@dataclass(frozen=True, eq=False)
class ForestChances:
    """Chances of a forest or of boosted trees; they are not kept in model files."""

    model: Any = field(
        metadata=unstored(
            "Forests and boosted trees are not kept in a model file. Use 'multinom' or 'distribution', or fit again."
        )
    )
    sizes: tuple[int, ...]
    size: int

    def __call__(self, example: Array) -> Floats:
        """Predict the chances of every class."""
        made = np.zeros((len(example), self.size))
        made[:, self.model.classes_.astype(np.int64)] = self.model.predict_proba(
            indicators(example, self.sizes)
        )
        return made


def indicators(example: Array, sizes: Sequence[int]) -> Array:
    """Turn classes into columns of zeros and ones; others are held against the first class of each predictor."""
    parts = [
        (example[:, [place]] == np.arange(1, size)).astype(np.float32) for place, size in enumerate(sizes)
    ]
    return np.concatenate(parts, axis=1) if parts else np.zeros((len(example), 1), dtype=np.float32)


def class_law(  # noqa: PLR0917
    target: Classing,
    codes: Integers,
    predictors: Sequence[Classing],
    known: Sequence[Integers],
    stratum: Integers,
    weights: Floats,
    *,
    kind: Model,
    limit: Mapping[str, Mapping[str, Sequence[Any]]],
    censor: Mapping[str, Mapping[str, Sequence[Any]]],
    eps: float,
    seed: int,
) -> ClassLaw:
    """Fit the law of a column, stratum by stratum."""
    sizes = tuple(own.size for own in predictors)
    models: list[Any] = []
    for g in range(int(stratum.max()) + 1):
        rows = np.flatnonzero(stratum == g)
        example = (
            np.column_stack([own[rows] for own in known])
            if known
            else np.zeros((len(rows), 0), dtype=np.int64)
        )
        there = np.unique(codes[rows])
        if len(there) == 1 or kind == "distribution" or not known:
            models.append(_table(codes[rows], example, sizes, weights[rows], target.size))
            continue
        models.append(_model(codes[rows], example, sizes, weights[rows], target.size, kind, seed))
    return ClassLaw(target, tuple(predictors), kind, tuple(models), limit, censor, eps)


def _table(
    codes: Integers, example: Array, sizes: tuple[int, ...], weights: Floats, size: int
) -> TableChances:
    cells, at = np.unique(_packed(example.T, sizes, len(codes)), return_inverse=True)
    table = np.zeros((len(cells), size))
    np.add.at(table, (at, codes), weights)
    overall = table.sum(axis=0)
    return TableChances(cells, table / table.sum(axis=1, keepdims=True), overall / overall.sum(), sizes)


def _model(  # noqa: PLR0917
    codes: Integers, example: Array, sizes: tuple[int, ...], weights: Floats, size: int, kind: str, seed: int
) -> LogitChances | ForestChances:
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    learner: Any
    if kind == "forest":
        learner = RandomForestClassifier(
            n_estimators=50, min_samples_leaf=_LEAST_PER_CLASS, random_state=seed
        )
    elif kind == "boosting":
        learner = GradientBoostingClassifier(n_estimators=50, min_samples_leaf=20, random_state=seed)
    else:
        learner = LogisticRegression(C=10.0, max_iter=200)
    learner.fit(indicators(example, sizes), codes, sample_weight=weights * (len(weights) / weights.sum()))
    if kind in ("forest", "boosting"):
        return ForestChances(learner, sizes, size)
    slopes, constants = (
        np.asarray(learner.coef_, dtype=np.float64),
        np.asarray(learner.intercept_, dtype=np.float64),
    )
    if len(slopes) == 1:
        slopes, constants = np.vstack([np.zeros_like(slopes), slopes]), np.concatenate([[0.0], constants])
    return LogitChances(slopes, constants, learner.classes_.astype(np.int64), sizes, size)


def predictor_classing(series: pl.Series, weights: Floats) -> Classing:
    """Class a column for use as predictor: a number with many values by weighted quantiles."""
    if series.dtype.is_numeric() and series.n_unique() > _PREDICTOR_CLASSES:
        shares = np.arange(1, _PREDICTOR_CLASSES + 1) / _PREDICTOR_CLASSES
        return Classing.of_number(series, weights, tuple(shares.tolist()))
    return Classing.of_category(series)


def shares_of(breaks: str) -> tuple[float, ...]:
    """Return the shares at which numbers are cut: refined at the ends, or even."""
    return REFINED if breaks == "refined" else tuple(float(share) for share in _EVEN)


# Numbers of simulated persons by a regression: linear in logarithms, of counts, or by boosted trees.
Regression = Literal["lm", "poisson", "boosting"]
REGRESSIONS = ("lm", "poisson", "boosting")
_STRATUM = "stratum"


@stored("regression-law")
@dataclass(frozen=True, eq=False)
class RegressionLaw:
    """A number given the classes of other columns, for those who have one and for whom it is not zero.

    Attributes
    ----------
    kind
        ``"lm"``: linear in the logarithm, with the rest of somebody in the survey; ``"poisson"``: counts;
        ``"boosting"``: boosted trees in place of the line.
    predictors, sizes
        Names of the columns it goes by, the stratum last, and how many classes each has.
    slopes, constant
        Of the indicators of the classes (not for boosting).
    shift
        Added before the logarithm is taken, so that it exists.
    rests, upto
        What the regression left over in the survey, and sums of weights by which a rest is drawn.
    ends
        Smallest and largest value of the survey; nothing is drawn outside.
    fine
        How the drawn numbers are classed where later columns go by them.
    missing
        The class of those who have no number; -1 where everybody has one.
    model
        The trees of a boosting.
    """

    kind: str
    predictors: tuple[str, ...]
    sizes: tuple[int, ...]
    slopes: Floats
    constant: float
    shift: float
    rests: Floats
    upto: Floats
    ends: tuple[float, float]
    decimals: int | None
    fine: Classing
    missing: int
    model: Any = field(
        default=None,
        metadata=unstored(
            "Boosted trees are not kept in a model file. Use 'lm' or 'multinom', or fit again."
        ),
    )

    @classmethod
    def of(  # noqa: PLR0917
        cls,
        kind: Regression,
        series: pl.Series,
        coarse: Classing,
        fine: Classing,
        known: Mapping[str, Integers],
        sizes: Sequence[int],
        stratum: Integers,
        weights: Floats,
        seed: int,
    ) -> RegressionLaw:
        """Fit the regression to the records that have a number."""
        values = series.cast(pl.Float64).fill_null(0.0).fill_nan(0.0).to_numpy()
        there = coarse.codes(series) == 0
        own, weight = values[there], weights[there] / weights[there].mean()
        all_sizes = (*sizes, int(stratum.max()) + 1)
        example = np.column_stack([*known.values(), stratum])[there]
        predictors, ends = (*known, _STRATUM), (float(own.min()), float(own.max()))
        places = 0 if coarse.dtype.is_integer() else decimals_of(values)
        design = indicators(example, all_sizes).astype(np.float64)
        if kind == "poisson":
            from sklearn.linear_model import PoissonRegressor

            fitted = PoissonRegressor(alpha=1e-4, max_iter=500).fit(design, own, sample_weight=weight)
            none = np.empty(0)
            return cls(
                kind, predictors, all_sizes, np.asarray(fitted.coef_, dtype=np.float64), float(fitted.intercept_),
                0.0, none, none, ends, places, fine, coarse.missing,
            )  # fmt: skip
        shift = max(0.0, 1.0 - ends[0]) if ends[0] <= 0 else 0.0
        logs = np.log(own + shift)
        slopes, constant, model = np.empty(0), 0.0, None
        if kind == "lm":
            root = np.sqrt(weight)
            wide = np.column_stack([np.ones(len(design)), design])
            solved = np.linalg.lstsq(wide * root[:, np.newaxis], logs * root, rcond=None)[0]
            constant, slopes = float(solved[0]), solved[1:]
            line = wide @ solved
        else:
            from sklearn.ensemble import GradientBoostingRegressor

            model = GradientBoostingRegressor(n_estimators=100, min_samples_leaf=20, random_state=seed)
            model.fit(example, logs, sample_weight=weight)
            line = model.predict(example)
        return cls(
            kind, predictors, all_sizes, slopes, constant, shift, logs - line, np.cumsum(weight), ends, places,
            fine, coarse.missing, model,
        )  # fmt: skip

    def draw(
        self,
        codes: Integers,
        known: Mapping[str, Integers],
        stratum: Integers,
        rng: np.random.Generator,
        name: str,
    ) -> pl.Series:
        """Draw the numbers of those whose class says that they have one."""
        values = np.zeros(len(codes))
        rows = np.flatnonzero(codes == 0)
        columns = [stratum[rows] if own == _STRATUM else known[own][rows] for own in self.predictors]
        if len(rows):
            values[rows] = self._drawn(columns, rng)
        return as_column(values, self.decimals, codes, self.missing, self.fine.dtype, name)

    def _drawn(self, columns: Sequence[Integers], rng: np.random.Generator) -> Floats:
        line = self._line(columns)
        if self.kind == "poisson":
            return rng.poisson(np.exp(np.minimum(line, np.log(2 * self.ends[1] + 10)))).astype(np.float64)
        rest = self.rests[drawn_places(self.upto, len(line), rng)]
        drawn = np.exp(np.minimum(line + rest, 700.0)) - self.shift
        return np.asarray(np.clip(drawn, *self.ends))

    def _line(self, columns: Sequence[Integers]) -> Floats:
        """What the regression says: looked up class by class, so that millions of persons need no wide table."""
        if self.kind == "boosting":
            packed = np.column_stack(columns)
            cells, at = np.unique(packed, axis=0, return_inverse=True)
            return np.asarray(self.model.predict(cells), dtype=np.float64)[at.ravel()]
        line = np.full(len(columns[0]), self.constant)
        upto = 0
        for codes, size in zip(columns, self.sizes, strict=True):
            table = np.concatenate([[0.0], self.slopes[upto : upto + size - 1]])
            line += table[np.minimum(codes, size - 1)]
            upto += size - 1
        return line


def having_a_number(series: pl.Series, kind: Regression) -> Classing | None:
    """Class a column by whether there is a number, zero apart; None where there is nothing for a regression to learn.

    Counts have zeros of their own, so these are no class apart.
    """
    values = series.cast(pl.Float64).fill_nan(None)
    known = values.drop_nulls()
    if kind == "poisson" and len(known) and (bool((known < 0).any()) or bool((known != known.round()).any())):
        raise ColumnError(
            f"cont_method='poisson' draws counts, and column '{series.name}' has values that are negative or no whole "
            "numbers. Use 'multinom' or 'lm'."
        )
    apart = kind != "poisson" and bool((known == 0).any())
    own = known.filter(known != 0) if apart else known
    if not len(own) or (kind == "poisson" and not float(own.sum())):
        return None
    ends = np.array([float(own.min()), float(own.max())])  # type: ignore[arg-type]
    gaps = len(known) < len(values)
    empty = pl.Series("level", [], dtype=pl.String)
    missing = 1 + apart if gaps else -1
    return Classing(series.name, series.dtype, empty, ends, 1 if apart else -1, missing, 1 + apart + gaps)
