"""What each column is taken for, and which method models it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import polars as pl

from discreet.core.errors import ColumnError, ParameterError, unknown_name
from discreet.microdata import Microdata
from discreet.synth.column_forms import (
    CategoryForm,
    Form,
    NumberForm,
    Variable,
    as_numbers,
    is_numeric,
)
from discreet.synth.methods import observed_values
from discreet.synth.methods.glm_methods import Binomial
from discreet.synth.methods.joint_methods import SurvivalTree
from discreet.synth.methods.method import JointMethod, Method, all_methods, kind_of
from discreet.synth.sequential.synthesis_plan import Rule, read_rules
from discreet.synth.written_values import WrittenNumberForm, as_read, typed

if TYPE_CHECKING:
    from discreet.synth.sequential.sequential import Sequential


_SAME = 0.99999
_FEW_TEXTS = 50
_SHARE_OF_NAMES = 0.95


def column_forms(
    options: Sequential,
    data: Microdata,
    frame: pl.DataFrame,
    rules: Mapping[str, tuple[Rule, ...]],
    known: Mapping[str, pl.Series],
) -> dict[str, Form]:
    """Take every column for numbers or categories, with its missing values, special codes and spikes.

    ``known`` are all values that a column may have where the frame has only some of them.
    """
    forms: dict[str, Form] = {}
    groups = options.number_groups or {}
    events = (options.events or {}).values()
    for name in frame.columns:
        series = known.get(name, frame[name])
        given = [rule.typed(name, series.dtype).item() for rule in rules.get(name, ())]
        codes = [*values_of(options.special_codes, name), *values_of(options.semicontinuous, name)]
        distinct = series.n_unique() - (series.null_count() > 0)
        as_number = is_numeric(series.dtype) and (
            name in groups or bool(codes) or distinct > options.few_values or _must_be_number(options, name)
        )
        if series.dtype == pl.String and name in (options.special_codes or {}) and name not in groups:
            forms[name] = _written_numbers(options, series, given)
        elif as_number:
            number = NumberForm.of(
                series, fixed=_numbers(codes, series), groups=_groups(groups, name), missing=None in given
            )
            _check_codes(name, codes, number)
            forms[name] = number
        else:
            if codes or name in groups:
                setting = "special_codes or semicontinuous" if codes else "number_groups"
                raise ColumnError(
                    f"Column '{name}' is no number, so {setting} cannot name it. Convert it to numbers first."
                )
            ordered = isinstance(data.schema[name], nw.Enum)
            private = _is_private(options)
            category = CategoryForm.of(
                series,
                ordered=ordered,
                missing=private,
                extra=[*given, *(declared_levels(series.dtype) if private or name in events else ())],
            )
            _check_levels(options, name, series, category)
            forms[name] = category
    return forms


def _written_numbers(options: Sequential, series: pl.Series, given: Sequence[Any]) -> WrittenNumberForm:
    """Take a text column that is named under special_codes for numbers; what its rules give may be a code too."""
    codes = values_of(options.special_codes, series.name)
    if codes and not series.is_in(pl.Series(codes, dtype=pl.String, strict=False).implode()).any():
        raise ColumnError(f"None of the special_codes of column '{series.name}' occurs in it. Check them.")
    ruled = [value for value in given if value is not None and as_read(pl.Series([value])).null_count()]
    return WrittenNumberForm.of_texts(series, codes=[*codes, *ruled], missing=None in given)


def method_of(options: Sequential, name: str, form: Form, series: pl.Series) -> Method:
    """Find the method that was asked for and check that it can model this kind of column."""
    asked = options.method
    if isinstance(asked, Mapping):
        asked = asked.get(name, options.otherwise)
    variable = main_variable(form)
    method = _resolved(options, asked, variable, name)
    _check_named(method, name, series)
    if isinstance(method, JointMethod) and isinstance(form, NumberForm) and not form.breaks:
        raise ParameterError(
            f"Column '{name}' is a number; '{method.name}' models categories. Give it groups with "
            f"number_groups={{'{name}': 5}}."
        )
    if not isinstance(method, JointMethod) and kind_of(variable) not in method.targets:
        raise ParameterError(
            f"Column '{name}' is {_said(variable, form)}; the method '{method.name}' cannot model it. Use "
            "method='parametric' to let the kind of column decide, or name a method for this column."
        )
    return method


def state_method(defaults: Mapping[str, Method], method: Method, state: Variable) -> Method:
    """Choose how the state of a number (ordinary, a code, missing) is modelled: by the same method where it can."""
    if kind_of(state) in method.targets and not isinstance(method, JointMethod):
        return method
    return defaults["binary" if state.levels == 2 else "category"]


def default_methods(options: Sequential) -> dict[str, Method]:
    """Return what ``"parametric"`` means for each kind of column, with the options of the methods."""
    return {kind: named_method(options, name) for kind, name in options.defaults.items()}


def named_method(options: Sequential, name: str) -> Method:
    """Make the method of that name; options may have been given under any of its names."""
    known = all_methods()
    if name not in known:
        raise ParameterError(unknown_name(name, [*filter(None, known), "parametric"], what="method"))
    given: dict[str, Any] = {}
    for other, own in (options.method_options or {}).items():
        if known.get(other) is known[name]:
            given |= own
    return Method.named(name, given)


def check_options(options: Sequential) -> None:
    """Refuse options of methods that do not exist, which would otherwise be passed over in silence."""
    known = [name for name in all_methods() if name]
    for name in options.method_options or {}:
        if name not in known:
            raise ParameterError(
                f"{unknown_name(name, known, what='method')} It was named under method_options."
            )
        named_method(options, name)
    default_methods(options)
    other = options.otherwise
    if isinstance(other, str) and other != "parametric" and not other.startswith(("~", "nested.")):
        named_method(options, other)


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
    named = set(options.method) if isinstance(options.method, Mapping) else set()
    skip = (
        observed_values.Keep
        | observed_values.Passive
        | observed_values.Near
        | observed_values.Constant
        | observed_values.Stratum
        | observed_values.Nested
        | JointMethod
    )
    free = [name for name in order if not isinstance(methods[name], skip)]
    found: dict[str, Method] = {}
    alike: dict[bytes, str] = {}
    fine: list[str] = []
    for name in free:
        partition, size = _partition(frame[name])
        rules = read_rules(options.rules).get(name, ())
        given = name in named or bool(rules)
        # A value that no record has goes with nothing in another column.
        source = not any(_is_new(rule, frame[name]) for rule in rules)
        if size > frame.height / 2:
            # Columns without repeated values are one-to-one with everything; only a straight line says something.
            twin = None if given else next((o for o in fine if _on_a_line(frame, forms, name, o)), None)
            if twin is None and source:
                fine.append(name)
        else:
            twin = None if given else alike.get(partition)
            if source:
                alike.setdefault(partition, name)
        if twin is not None:
            found[name] = observed_values.Collinear(of=twin)
    return found


def _is_new(rule: Rule, series: pl.Series) -> bool:
    value = rule.typed(series.name, series.dtype).item()
    held = series.rename("value")
    return not (held.is_null() if value is None else held == value).any()


def _partition(series: pl.Series) -> tuple[bytes, int]:
    """Return a fingerprint of which records have equal values, whatever the values are, and how many values there are.

    Two columns are one-to-one functions of each other where their records fall into the same classes.
    """
    records = pl.DataFrame({"value": series}).with_row_index("record")
    first = records.select(pl.col("record").first().over("value"))
    classes = first.to_series().to_numpy()
    return hashlib.sha256(classes.tobytes()).digest(), int((classes == np.arange(len(classes))).sum())


def _on_a_line(frame: pl.DataFrame, forms: Mapping[str, Form], name: str, other: str) -> bool:
    if not all(isinstance(forms[n], NumberForm) and is_numeric(frame[n].dtype) for n in (name, other)):
        return False
    both = pl.DataFrame({"one": as_numbers(frame[name]), "other": as_numbers(frame[other])})
    sizes = [both["one"].n_unique(), both["other"].n_unique(), both.n_unique()]
    both = both.drop_nulls()
    if both.height < 3 or len(set(sizes)) > 1:
        return False
    with np.errstate(invalid="ignore", divide="ignore"):
        return bool(abs(np.corrcoef(both.to_numpy().T)[0, 1]) >= _SAME)


def _resolved(options: Sequential, asked: Any, variable: Variable, name: str) -> Method:
    all_methods()
    if isinstance(asked, Method):
        return asked
    if isinstance(asked, Mapping):
        given = dict(asked)
        if "method" not in given:
            raise ParameterError(
                f"The options of column '{name}' do not say of which method. Write {{method = \"norm\", ...}}."
            )
        return Method.named(str(given.pop("method")), given)
    if not isinstance(asked, str):
        raise ParameterError(
            f"The method of column '{name}' must be a name or a method. Write one for all columns, or a mapping from "
            "columns to methods."
        )
    if asked.startswith("~"):
        return observed_values.Passive(asked[1:].strip())
    if asked.startswith("nested."):
        return observed_values.Nested(within=asked.removeprefix("nested."))
    if asked == "parametric":
        asked = options.defaults[kind_of(variable)]
    try:
        return named_method(options, asked)
    except ParameterError as error:
        raise ParameterError(f"{error} It was named for column '{name}'.") from error


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
    known = len(series) - series.null_count()
    if text and not named and known >= _FEW_TEXTS and len(form.levels) > _SHARE_OF_NAMES * known:
        raise ColumnError(
            f"Column '{name}' has another text in nearly every record, as names of persons have. Declare it "
            "as an identifier (identifiers=) to leave it out, turn it into a date or a number if it is one, or name a "
            "method for it."
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
    values = [
        as_numbers(typed(code, series.dtype, series.name, "special_codes or semicontinuous"))
        for code in codes
    ]
    return [float(value.item()) for value in values if value.item() is not None]


def names_in(given: Any, setting: str) -> tuple[str, ...]:
    """Return the columns that a setting names: one, several or none."""
    if given is None:
        return ()
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, Iterable) or isinstance(given, bytes):
        raise ParameterError(f"{setting} must be the name of a column, or a list of names.")
    return tuple(given)


def values_of(setting: Mapping[str, Any] | None, name: str) -> list[Any]:
    """Return what was given for a column, one value or several, as a list."""
    given = (setting or {}).get(name, [])
    many = isinstance(given, Sequence | np.ndarray | pl.Series | set | frozenset)
    return list(given) if many and not isinstance(given, str) else [given]


def _must_be_number(options: Sequential, name: str) -> bool:
    """Whether the column was given a role or a method that only a number can have, however few values it has."""
    counts, times = options.denominators or {}, options.events or {}
    if name in (*counts, *counts.values(), *times, *times.values()):
        return True
    asked: Any = options.method
    if isinstance(asked, Mapping):
        asked = asked.get(name, options.otherwise)
    if isinstance(asked, Mapping):
        asked = asked.get("method")
    kind = all_methods().get(asked) if isinstance(asked, str) else type(asked)
    return kind is not None and getattr(kind, "targets", None) == frozenset({"number"})


def _check_named(method: Method, name: str, series: pl.Series) -> None:
    """Refuse methods that need what a method alone cannot say."""
    if isinstance(method, observed_values.Numbered):
        raise ParameterError(
            f"'numbered' is no method to choose. Name column '{name}' under together, or give it the role of a "
            "household."
        )
    if isinstance(method, observed_values.Stratum):
        raise ParameterError(f"'stratum' is no method to choose. Name column '{name}' under strata instead.")
    if isinstance(method, observed_values.Constant) and series.n_unique() > 1:
        raise ParameterError(
            f"Column '{name}' has several values, so it cannot be given the method 'constant'. Name another method, or "
            "leave the column out."
        )
    if isinstance(method, SurvivalTree):
        raise ParameterError(
            f"The survival time '{name}' needs to know its event. Name it under events={{'{name}': event}}, with None "
            "where nothing is censored, and not under method."
        )
    if isinstance(method, Binomial) and not method.of:
        raise ParameterError(
            f"Column '{name}' counts out of another column: name it under denominators={{'{name}': other}}."
        )
    if isinstance(method, observed_values.Collinear) and not method.of:
        raise ParameterError(
            f"Column '{name}' is to be looked up, but not said from what. Leave it out of method: one-to-one functions "
            "of another column are found by themselves."
        )
    if isinstance(method, observed_values.Passive | observed_values.Near) and not method.expression.strip():
        raise ParameterError(
            f"Column '{name}' is to be computed, but not said how. Write an expression, e.g. '~weight / height'."
        )


def _said(variable: Variable, form: Form) -> str:
    if variable.is_number:
        return "a number"
    kind = "an ordered category" if variable.ordered else "a category"
    missing = ", missing being one," if form.has_missing else ""
    return f"{kind} with {variable.levels} levels{missing}".removesuffix(",")
