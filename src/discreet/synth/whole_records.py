"""What generators share that model all columns of a record at once: columns in, columns out, rules and conditions.

A category is one variable of codes. A number is one variable of values; where it has missing values, special codes or
values at which it piles up (0 for most amounts), a variable of states stands beside it. A column that a constraint
defines (``total == a + b``) is not modelled: it is computed from the others. `take_in` reads the columns, their forms
and the weights off a file.
"""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Literal

import narwhals as nw
import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Array, Flags, Floats
from discreet.core.errors import ColumnError, DiscreetWarning, ParameterError
from discreet.core.randomness import Seed
from discreet.core.roles import Columns
from discreet.dp.entropy import Stream
from discreet.microdata import Microdata, require_microdata
from discreet.synth import column_forms, record_rules
from discreet.synth.column_forms import listed
from discreet.synth.saved_models import stored
from discreet.synth.sequential.whole_units import units_left_out
from discreet.synth.synthesizer import Fitted, empty_like

_PILE = 0.2  # the share of records with one value from which a column of numbers is taken for semicontinuous


@stored("blueprint")
@dataclass(frozen=True, eq=False)
class Blueprint:
    """The columns that are modelled, in order, and the rules that records keep.

    Attributes
    ----------
    forms
        How each modelled column becomes variables.
    constraints
        The rules, as they were written.
    schema
        Names and types of all columns of a drawn file, in the order of the original.
    """

    forms: Mapping[str, column_forms.Form]
    constraints: tuple[str, ...]
    schema: Mapping[str, pl.DataType]

    @property
    def rules(self) -> tuple[record_rules.RecordRule, ...]:
        """The constraints, read."""
        return record_rules.read_rules(self.constraints, self.schema)

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of variables of each modelled column: one, or two where it has states."""
        return tuple(
            2 if isinstance(form, column_forms.NumberForm) and form.n_states > 1 else 1
            for form in self.forms.values()
        )

    def variables(self, frame: pl.DataFrame) -> list[column_forms.Variable]:
        """Return the variables of all modelled columns, one after the other."""
        return [variable for name, form in self.forms.items() for variable in form.split(frame[name])]

    def joined(self, parts: Sequence[Array]) -> pl.DataFrame:
        """Turn drawn variables into records; what a rule defines is computed, broken inequalities are mended."""
        columns, at = [], 0
        for form, width in zip(self.forms.values(), self.widths, strict=True):
            columns.append(form.joined(_within(form, parts[at : at + width])))
            at += width
        frame = pl.DataFrame(columns)
        rules = self.rules
        if rules:
            missing = [
                pl.Series(name, [None], dtype=kind).new_from_index(0, frame.height)
                for name, kind in self.schema.items()
                if name not in frame.columns
            ]
            frame = record_rules.recomputed(frame.with_columns(missing), rules)
            frame = record_rules.recomputed(record_rules.repaired(frame, rules), rules)
        return pl.DataFrame({name: frame[name] for name in self.schema})

    def broken(self, frame: pl.DataFrame) -> pl.Series:
        """Say of each drawn record whether it still breaks a rule."""
        return record_rules.broken_records(frame, self.rules)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A file as a generator of whole records takes it."""

    blueprint: Blueprint
    variables: Sequence[column_forms.Variable]
    weights: Floats | None
    like: Microdata
    rows: int
    left_out: Mapping[str, str]


def prepare(plan: Any, data: Microdata) -> Prepared:
    """Read a file for a generator with the parameters all of them have.

    Examples
    --------
    >>> from discreet.synth import AdversarialForest
    >>> people = pl.DataFrame({"pay": [0.0] * 6 + [900.0, 1000.0, 1100.0, 1200.0], "sex": ["f", "m"] * 5})
    >>> [variable.name for variable in prepare(AdversarialForest(), Microdata(people)).variables]
    ['pay: state', 'pay', 'sex']
    """
    computed = _computed(plan.constraints, data)
    piled = dict(plan.semicontinuous or {})
    codes = {name: _listed(own) for name, own in (plan.special_codes or {}).items()}
    intake = take_in(
        data,
        leave_out=plan.leave_out,
        weights=plan.weights,
        special_codes=plan.special_codes,
        few_values=plan.few_values,
        apart=computed,
    )
    column_forms.check_named({"semicontinuous": piled}, intake.forms)
    forms: dict[str, column_forms.Form] = {}
    for name, form in intake.forms.items():
        series = intake.frame[name]
        if isinstance(form, column_forms.NumberForm) and column_forms.is_numeric(series.dtype):
            fixed = [*codes.get(name, ()), *_listed(piled[name] if name in piled else piles(series))]
            if any(not isinstance(value, Real) or isinstance(value, bool) for value in fixed):
                raise ColumnError(f"Column '{name}' holds numbers: name numbers for it under semicontinuous.")
            forms[name] = (
                column_forms.NumberForm.of(series, fixed=[float(value) for value in fixed]) if fixed else form
            )
        else:
            forms[name] = form
    kept = [name for name in data.columns if name in forms or name in computed]
    frame = intake.frame.select(kept)
    blueprint = Blueprint(forms, tuple(plan.constraints), dict(frame.schema))
    return Prepared(
        blueprint,
        blueprint.variables(intake.frame),
        intake.weights,
        empty_like(data, frame),
        intake.rows,
        intake.left_out,
    )


def piles(series: pl.Series) -> list[float]:
    """Name the values that a fifth of the records or more have, in a column of numbers.

    Examples
    --------
    >>> piles(pl.Series([0, 0, 0, 5, 7, 8, 9, 11]))
    [0.0]
    """
    numbers = column_forms.as_numbers(series).drop_nulls()
    if len(numbers) < 5:
        return []
    values, counts = np.unique(numbers.to_numpy(), return_counts=True)
    return [float(value) for value in values[counts >= _PILE * len(numbers)]]


def _computed(constraints: Sequence[str], data: Microdata) -> list[str]:
    """Name the columns that rules define, of those that the file has."""
    if not constraints:
        return []
    from discreet import engine

    rules = record_rules.read_rules(constraints, engine.collect(data).schema)
    return [name for name in record_rules.derived_columns(rules) if name in data.schema]


def _within(form: column_forms.Form, parts: Sequence[Array]) -> Sequence[Array]:
    """Keep drawn numbers within the range of the observed ones."""
    if not isinstance(form, column_forms.NumberForm):
        return parts
    return [*parts[:-1], np.clip(np.asarray(parts[-1], dtype=np.float64), form.low, form.high)]


def _listed(value: Any) -> list[Any]:
    return [value] if np.isscalar(value) else list(value)


# Records drawn until there are enough that keep the rules and meet what was asked for.
_MOST_AT_ONCE = 200_000
_MOST_TRIES = 200


@dataclass(eq=False, repr=False, kw_only=True)
class FittedRecords(Fitted):
    """A model of whole records.

    Attributes
    ----------
    left_out
        Columns that the synthetic file does not have, and why.
    notes
        What the user should know about the fit.
    """

    blueprint: Blueprint
    max_rounds: int = 100
    left_out: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    weighted: bool = False

    def __post_init__(self) -> None:
        self.combining_rule = "pseudo-likelihood" if self.weighted else "simple"
        self._given: dict[str, Any] = {}

    @abstractmethod
    def propose(self, n: int, stream: Stream, wanted: Mapping[str, Flags]) -> list[Array]:
        """Draw the variables of n records.

        ``wanted`` says of some categories which codes were asked for; a model that can, draws those. Whatever is not
        as asked is thrown away afterwards.
        """

    def sample(
        self,
        n: int | None = None,
        *,
        given: Mapping[str, Any] | None = None,
        copies: int = 1,
        progress: bool = False,
        seed: Seed = None,
        **in_parts: Any,
    ) -> Any:
        """Draw synthetic files.

        Parameters
        ----------
        n
            Number of records; as many as the original has unless given.
        given
            What all records shall have: ``{"sex": "f"}``, several values as a list, a range of a number as
            ``(low, high)``; None stands for missing.
        copies
            Number of files, each drawn anew.
        progress
            Show how far it is, on a terminal.
        seed
            Same model, same seed: same bytes out.
        **in_parts
            For files larger than memory: ``to``, ``rows_per_part``, ``workers``, ``cluster`` and ``resume`` of
            `Fitted.sample`.
        """
        if given and (in_parts.get("workers", 1) != 1 or in_parts.get("cluster") is not None):
            raise ParameterError(
                "Other processes do not know what is given. Draw with workers=1, and no cluster."
            )
        column_forms.check_named({"given": given}, self.blueprint.schema)
        self._given = dict(given or {})
        try:
            return super().sample(n, copies=copies, progress=progress, seed=seed, **in_parts)
        finally:
            self._given = {}

    def draw(self, n: int, stream: Stream) -> pl.DataFrame:
        """Draw records, again and again until there are n that keep the rules and are as asked."""
        wanted = self._wanted()
        kept: list[pl.DataFrame] = []
        have, drawn, size = 0, 0, n
        for number in range(max(self.max_rounds, 1)):
            frame = self.blueprint.joined(self.propose(size, stream.child(f"round {number}"), wanted))
            drawn += frame.height
            fit = self._fits(frame)
            if fit is not None:
                frame = frame.filter(pl.Series(fit))
            kept.append(frame)
            have += frame.height
            if have >= n:
                return pl.concat(kept).head(n) if len(kept) > 1 else kept[0].head(n)
            if drawn >= _MOST_TRIES * n and not have:
                break
            rate = max(have / drawn, 1 / drawn)
            size = min(max(math.ceil(1.1 * (n - have) / rate), 100), _MOST_AT_ONCE)
        return self._short(pl.concat(kept), n, drawn, stream)

    def _short(self, kept: pl.DataFrame, n: int, drawn: int, stream: Stream) -> pl.DataFrame:
        """Refuse, or fill up where only a part was found."""
        if self._given:
            raise ParameterError(
                f"Only {kept.height:,} of {drawn:,} drawn records are as given asks and keep the constraints; {n:,} "
                "are wanted. Ask for fewer records, widen given, or raise max_rounds."
            )
        lacking = n - kept.height
        rest = self.blueprint.joined(self.propose(lacking, stream.child("rest"), {}))
        warnings.warn(
            f"{lacking:,} of {n:,} records break a constraint still, after {self.max_rounds} rounds. Raise max_rounds, "
            "or see with check_rules which rule it is.",
            DiscreetWarning,
            stacklevel=2,
        )
        return pl.concat([kept, rest])

    def _fits(self, frame: pl.DataFrame) -> Flags | None:
        """Say which records keep the rules and are as asked; None where nothing is asked."""
        if not self._given and not self.blueprint.constraints:
            return None
        fit = np.ones(frame.height, dtype=np.bool_)
        if self.blueprint.constraints:
            fit &= ~self.blueprint.broken(frame).to_numpy()
        for name, asked in self._given.items():
            fit &= _as_asked(frame[name], asked)
        return fit

    def _wanted(self) -> dict[str, Flags]:
        """Turn what was asked of categories into their codes."""
        wanted: dict[str, Flags] = {}
        for name, asked in self._given.items():
            form = self.blueprint.forms.get(name)
            if isinstance(form, column_forms.CategoryForm):
                levels = form.levels.cast(form.dtype)
                codes = np.append(
                    _as_asked(levels, asked), [_asks_missing(asked)] if form.has_missing else []
                )
                wanted[name] = codes.astype(np.bool_)
                if not wanted[name].any():
                    raise ParameterError(
                        f"No value of column '{name}' that the model knows is as given asks."
                    )
            elif (
                isinstance(form, column_forms.NumberForm) and isinstance(asked, tuple) and asked[0] > asked[1]
            ):
                raise ParameterError(f"given asks for a range of '{name}' that ends before it begins.")
        return wanted


def _asks_missing(asked: Any) -> bool:
    return asked is None or (isinstance(asked, list) and None in asked)


def _as_asked(series: pl.Series, asked: Any) -> Flags:
    """Say of each value whether it is one of those asked for."""
    plain = column_forms.plain_text(series)
    try:
        if isinstance(asked, tuple) and len(asked) == 2:
            found = plain.is_between(asked[0], asked[1]).fill_null(False)
        else:
            listed = asked if isinstance(asked, list) else [asked]
            values = pl.Series(
                [value for value in listed if value is not None], dtype=plain.dtype, strict=True
            )
            found = plain.is_in(values.implode()).fill_null(False)
            if _asks_missing(asked):
                found |= plain.is_null()
    except (TypeError, pl.exceptions.PolarsError) as error:
        raise ParameterError(
            f"given asks for values of another type than column '{series.name}' has. Write them in its type."
        ) from error
    return found.to_numpy()


# What a synthesizer of whole columns takes from a file: the columns it models, their forms and the weights.
Weights = Literal["use", "ignore"]


@dataclass(frozen=True, eq=False)
class Intake:
    """A file as a synthesizer sees it.

    Attributes
    ----------
    frame
        The whole file, in memory.
    forms
        How each column that is synthesized becomes variables, in the order of the file.
    weights
        Positive numbers that sum to the number of records, or None.
    left_out
        Columns that are not synthesized, and why.
    """

    frame: pl.DataFrame
    forms: Mapping[str, column_forms.Form]
    weights: Floats | None
    left_out: Mapping[str, str]

    @property
    def rows(self) -> int:
        """Number of records."""
        return self.frame.height

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are synthesized."""
        return tuple(self.forms)


def take_in(
    data: Microdata,
    *,
    leave_out: Columns = None,
    weights: Weights = "use",
    special_codes: Mapping[str, Any] | None = None,
    few_values: int = 2,
    max_levels: int | None = None,
    least_columns: int = 1,
    apart: Sequence[str] = (),
) -> Intake:
    """Read a file for a synthesizer; ``apart`` are columns that it deals with itself.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"id": [1, 2, 3], "age": [20, 30, 40]}), identifiers="id")
    >>> intake = take_in(people)
    >>> intake.columns, dict(intake.left_out)
    (('age',), {'id': 'an identifier'})
    """
    require_microdata(data)
    frame = engine.collect(data)
    columns, left_out = columns_of(data, leave_out, weights, frame=frame)
    columns = [name for name in columns if name not in apart]
    column_forms.check_named({"special_codes": special_codes}, columns)
    if len(columns) < least_columns:
        raise ParameterError(
            f"There {'is' if len(columns) == 1 else 'are'} {len(columns)} column{'s' * (len(columns) != 1)} to "
            f"synthesize; this needs at least {least_columns}. Name fewer columns in leave_out."
        )
    if frame.height < 2:
        raise ParameterError(f"A synthesis needs at least two records; the file has {frame.height}.")
    forms = {
        name: _form(data, frame[name], (special_codes or {}).get(name), few_values, max_levels)
        for name in columns
    }
    return Intake(frame, forms, weights_of(data, frame) if weights == "use" else None, left_out)


def columns_of(
    data: Microdata, leave_out: Columns, weights: Weights = "use", *, frame: pl.DataFrame
) -> tuple[list[str], dict[str, str]]:
    """Return the columns to synthesize, and those that are left out with the reason; ``frame`` is the file."""
    left_out = _left_out(data, leave_out)
    left_out |= units_left_out(data, frame, left_out)
    return [name for name in data.columns if name not in left_out], left_out


def weights_of(data: Microdata, frame: pl.DataFrame) -> Floats | None:
    """Return the survey weights, scaled to sum to the number of records; None where the file has none."""
    column = data.roles.weight
    if column is None:
        return None
    way_out = "Correct or remove them, or set weights='ignore'."
    return column_forms.scaled(column_forms.positive_weights(frame[column], way_out))


def _left_out(data: Microdata, leave_out: Columns) -> dict[str, str]:
    asked = listed(leave_out)
    column_forms.check_named({"leave_out": asked}, data.columns)
    reasons = dict.fromkeys(asked, "as asked for")
    for name in data.roles.identifiers:
        reasons.setdefault(name, "an identifier")
    if data.roles.weight:
        reasons.setdefault(data.roles.weight, "the weight")
    return {name: reasons[name] for name in data.columns if name in reasons}


def _form(
    data: Microdata, series: pl.Series, codes: Any, few_values: int, max_levels: int | None
) -> column_forms.Form:
    given: list[Any] = [] if codes is None else [codes] if np.isscalar(codes) else list(codes)
    distinct = series.n_unique() - (series.null_count() > 0)
    if column_forms.is_numeric(series.dtype) and (given or distinct > few_values):
        if series.dtype.is_float() and series.is_infinite().any():
            raise ColumnError(
                f"Column '{series.name}' has infinite values. Make them missing, or leave it out."
            )
        try:
            fixed = [float(code) for code in given]
        except (TypeError, ValueError) as error:
            raise ColumnError(
                f"The special codes of column '{series.name}' must be numbers, as the column is."
            ) from error
        return column_forms.NumberForm.of(series, fixed=fixed)
    if given:
        raise ColumnError(
            f"Column '{series.name}' is no number, so special_codes cannot name it: its codes are levels already."
        )
    form = column_forms.CategoryForm.of(series, ordered=isinstance(data.schema[series.name], nw.Enum))
    if max_levels is not None and form.size > max_levels:
        raise ColumnError(
            f"Column '{series.name}' has {form.size:,} levels, more than max_levels={max_levels}. Group its levels, "
            "leave it out, or raise max_levels."
        )
    return form
