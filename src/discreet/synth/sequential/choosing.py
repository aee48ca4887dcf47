"""What each column is taken for, and which method models it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import polars as pl

from discreet.errors import ColumnError, ParameterError, unknown_name
from discreet.microdata import Microdata
from discreet.synth.forms import CategoryForm, Form, NumberForm, as_numbers, is_numeric
from discreet.synth.methods.given import Collinear, Constant, Keep, Passive, Stratum
from discreet.synth.methods.method import JointMethod, Method, kind_of
from discreet.synth.methods.registry import all_methods
from discreet.synth.methods.resampling import Nested
from discreet.synth.sequential.rules import Rule
from discreet.synth.variables import Variable

if TYPE_CHECKING:
    from discreet.synth.sequential.sequential import Sequential

_SAME = 0.99999
_LOOKS_LIKE_A_NAME = 50


def column_forms(
    options: Sequential, data: Microdata, frame: pl.DataFrame, rules: Mapping[str, tuple[Rule, ...]]
) -> dict[str, Form]:
    """Take every column for numbers or categories, with its missing values, special codes and spikes."""
    forms: dict[str, Form] = {}
    groups = options.number_groups or {}
    for name in frame.columns:
        series = frame[name]
        given = [rule.value for rule in rules.get(name, ())]
        codes = [*_values(options.special_codes, name), *_values(options.semicontinuous, name)]
        distinct = series.n_unique() - (series.null_count() > 0)
        as_number = is_numeric(series.dtype) and (
            name in groups or bool(codes) or distinct > options.few_values
        )
        if as_number:
            number = NumberForm.of(
                series, fixed=_numbers(codes, series), groups=_groups(groups, name), missing=None in given
            )
            _check_codes(name, codes, number)
            forms[name] = number
        else:
            if codes or name in groups:
                setting = "special_codes or semicontinuous" if codes else "number_groups"
                raise ColumnError(f"Column '{name}' is no number, so {setting} cannot name it.")
            ordered = isinstance(data.schema[name], nw.Enum)
            private = _is_private(options)
            category = CategoryForm.of(
                series,
                ordered=ordered,
                missing=private,
                extra=[*given, *(declared_levels(series.dtype) if private else ())],
            )
            _check_levels(options, name, series, category)
            forms[name] = category
    return forms


def method_of(options: Sequential, name: str, form: Form, series: pl.Series) -> Method:
    """Find the method that was asked for and check that it can model this kind of column."""
    asked = options.method
    if isinstance(asked, Mapping):
        asked = asked.get(name, options.otherwise)
    variable = main_variable(form)
    method = _resolved(options, asked, variable, name)
    if isinstance(method, JointMethod) and isinstance(form, NumberForm) and not form.breaks:
        raise ParameterError(
            f"Column '{name}' is a number; '{method.name}' models categories. Give it groups with "
            f"number_groups={{'{name}': 5}}."
        )
    if not isinstance(method, JointMethod) and kind_of(variable) not in method.targets:
        raise ParameterError(
            f"Column '{name}' is {_said(variable)}; the method '{method.name}' cannot model it. Use "
            "method='parametric' to let the kind of column decide, or name a method for this column."
        )
    return method


def state_method(options_default: Mapping[str, str], method: Method, state: Variable) -> Method:
    """Choose how the state of a number (ordinary, a code, missing) is modelled: by the same method where it can."""
    if kind_of(state) in method.targets and not isinstance(method, JointMethod):
        return method
    return Method.named(options_default["binary" if state.levels == 2 else "category"])


def main_variable(form: Form) -> Variable:
    """Return an empty variable of the kind that the column is modelled as."""
    if isinstance(form, NumberForm):
        return Variable(form.name, np.empty(0), decimals=form.decimals)
    return Variable(form.name, np.empty(0), levels=max(form.size, 1), ordered=form.ordered)


def collinear_pairs(
    options: Sequential,
    frame: pl.DataFrame,
    forms: Mapping[str, Form],
    methods: Mapping[str, Method],
    order: Sequence[str],
) -> dict[str, Method]:
    """Find columns that are one-to-one functions of an earlier one; those that were given a method keep it."""
    chosen = set(options.method) if isinstance(options.method, Mapping) else set()
    skip = Keep | Passive | Constant | Stratum | Nested | JointMethod
    free = [name for name in order if not isinstance(methods[name], skip)]
    distinct = {name: frame[name].n_unique() for name in free}
    found: dict[str, Method] = {}
    for at, name in enumerate(free):
        if name in chosen or (options.rules and name in options.rules):
            continue
        for other in free[:at]:
            if other in found or distinct[other] != distinct[name]:
                continue
            if _same_information(frame, forms, name, other, distinct[name]):
                found[name] = Collinear(of=other)
                break
    return found


def _same_information(
    frame: pl.DataFrame, forms: Mapping[str, Form], name: str, other: str, distinct: int
) -> bool:
    pair = frame.select(name, other)
    numbers = isinstance(forms[name], NumberForm) and isinstance(forms[other], NumberForm)
    if distinct > frame.height / 2:
        # Columns without repeated values are one-to-one with everything; only a straight line says something.
        return numbers and _on_a_line(pair) and pair.n_unique() == distinct
    return pair.n_unique() == distinct


def _on_a_line(pair: pl.DataFrame) -> bool:
    both = pl.DataFrame([as_numbers(series) for series in pair.get_columns()]).drop_nulls()
    if both.height < 3:
        return False
    with np.errstate(invalid="ignore", divide="ignore"):
        return bool(abs(np.corrcoef(both.to_numpy().T)[0, 1]) >= _SAME)


def _resolved(options: Sequential, asked: Any, variable: Variable, name: str) -> Method:
    all_methods()
    if isinstance(asked, Method):
        return asked
    if isinstance(asked, Mapping):
        given = dict(asked)
        return Method.named(str(given.pop("method", "")), given)
    if not isinstance(asked, str):
        raise ParameterError(f"The method of column '{name}' must be a name or a method.")
    if asked.startswith("~"):
        return Passive(asked[1:].strip())
    if asked.startswith("nested."):
        return Nested(within=asked.removeprefix("nested."))
    if asked == "parametric":
        asked = options.defaults[kind_of(variable)]
    if asked not in Method.known:
        raise ParameterError(
            f"{unknown_name(asked, (*Method.known, 'parametric'), what='method')} It was named for column '{name}'."
        )
    return Method.named(asked, (options.method_options or {}).get(asked))


def declared_levels(dtype: pl.DataType) -> list[Any]:
    """Return the levels that the type of a column declares, whatever the data hold."""
    if isinstance(dtype, pl.Enum):
        return list(dtype.categories.to_list())
    return [False, True] if dtype == pl.Boolean else []


def _is_private(options: Sequential) -> bool:
    """Whether noise is asked for; then nothing may be read off the data, not even which levels occur."""
    given = options.method.values() if isinstance(options.method, Mapping) else [options.method]
    asked = (options.method_options or {}).get("catall", {}).get("epsilon")
    return asked is not None or any(getattr(method, "epsilon", None) is not None for method in given)


def _check_levels(options: Sequential, name: str, series: pl.Series, form: CategoryForm) -> None:
    named = isinstance(options.method, Mapping) and name in options.method
    text = series.dtype == pl.String
    if text and not named and len(series) >= _LOOKS_LIKE_A_NAME and form.size == len(series):
        raise ColumnError(
            f"Column '{name}' has another text in every record, as a name or a number of a person has. Declare it as "
            "an identifier (identifiers=) to leave it out, or name a method for it."
        )
    if options.max_levels is not None and form.size > options.max_levels:
        raise ColumnError(
            f"Column '{name}' has {form.size:,} levels, more than max_levels={options.max_levels}. Group it, leave it "
            "out, or raise max_levels."
        )


def _check_codes(name: str, codes: Sequence[Any], form: NumberForm) -> None:
    if codes and not form.fixed:
        raise ColumnError(
            f"None of the special_codes or semicontinuous values of column '{name}' occurs in it. Check them."
        )


def _groups(groups: Mapping[str, int], name: str) -> int:
    count = groups.get(name, 0)
    if name in groups and (not isinstance(count, int) or count < 2):
        raise ParameterError(f"number_groups of column '{name}' must be at least 2.")
    return count


def _numbers(codes: Sequence[Any], series: pl.Series) -> list[float]:
    try:
        return [
            float(value)
            for value in as_numbers(pl.Series(codes, dtype=series.dtype, strict=False)).drop_nulls()
        ]
    except (TypeError, ValueError) as error:
        raise ColumnError(
            f"The special codes of column '{series.name}' must be values of its own type."
        ) from error


def _values(setting: Mapping[str, Any] | None, name: str) -> list[Any]:
    given = (setting or {}).get(name, [])
    return list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]


def _said(variable: Variable) -> str:
    if variable.is_number:
        return "a number"
    kind = "an ordered category" if variable.ordered else "a category"
    return f"{kind} with {variable.levels} levels"
