"""Records that belong together are drawn together: a household first, with one of its members, then the others.

One record a unit holds what all its records share, how many they are, and all else of the first of them; it is
synthesized like any file. The other records are drawn given their unit, their place in it and its first record. So
every synthetic household has as many records as it says, and what members share they still share.

A role says which records belong together. Where none does, a number that several records in a row share, and that
another column counts (how many live in the household), gives it away.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from discreet.core.errors import ColumnError, DiscreetWarning, ParameterError, unknown_name
from discreet.expressions import parse
from discreet.microdata import Microdata
from discreet.synth.column_forms import columns_named, listed
from discreet.synth.methods.method import JointMethod
from discreet.synth.methods.observed_values import Collinear, Keep
from discreet.synth.saved_models import stored
from discreet.synth.sequential.synthesis_plan import SynthesisPlan, read_rules
from discreet.synth.sequential.synthesis_planning import plan_synthesis, predictor_sets

if TYPE_CHECKING:
    from discreet.synth.sequential.sequential import Sequential


_BY_COLUMN = (
    "rules", "special_codes", "semicontinuous", "number_groups", "events", "denominators", "smoothing",
)  # fmt: skip


@stored("divided-units")
@dataclass(frozen=True, eq=False)
class Divided:
    """A file taken apart into its units and the further records of each.

    Attributes
    ----------
    unit
        The column that numbers the units.
    copies
        Columns that repeat its numbers.
    shared, own
        Columns that all records of a unit share, and all others.
    counting
        Those of the shared columns that hold the number of records.
    homes, others
        One record a unit, and the records after the first of each unit, with what is known of their unit.
    size, place
        What the columns are called that hold the number of records of a unit, and which of them this is.
    first
        What the columns of the first record are called where they stand beside another record.
    """

    unit: str
    copies: tuple[str, ...]
    shared: tuple[str, ...]
    own: tuple[str, ...]
    homes: pl.DataFrame
    others: pl.DataFrame
    size: str
    place: str
    first: Mapping[str, str]
    counting: tuple[str, ...] = ()

    @property
    def given(self) -> tuple[str, ...]:
        """What is known of a further record before it is drawn."""
        return (self.size, self.place, *self.shared, *self.first.values())

    def known_of_others(self, homes: pl.DataFrame) -> pl.DataFrame:
        """Return what is known of the further records of these units, one row a record, unit by unit."""
        sizes = homes[self.size].to_numpy()
        at = np.repeat(np.arange(homes.height), sizes - 1)
        before = np.repeat(np.cumsum(sizes - 1) - (sizes - 1), sizes - 1)
        known = {self.size: homes[self.size].gather(at)}
        known[self.place] = pl.Series(self.place, np.arange(len(at)) - before + 2)
        known |= {name: homes[name].gather(at) for name in self.shared}
        known |= {shown: homes[name].gather(at).rename(shown) for name, shown in self.first.items()}
        return pl.DataFrame(known)

    def put_together(self, homes: pl.DataFrame, others: pl.DataFrame, dtype: pl.DataType) -> pl.DataFrame:
        """Number the units anew and put every record behind the first of its unit."""
        sizes = homes[self.size].to_numpy()
        units = pl.Series(np.arange(1, homes.height + 1))
        at = np.repeat(np.arange(homes.height), sizes - 1)
        columns = {name: _numbered(units, dtype, name) for name in (self.unit, *self.copies)}
        heads = pl.DataFrame({**columns, **{name: homes[name] for name in (*self.shared, *self.own)}})
        rest = pl.DataFrame(
            {
                **{name: series.gather(at) for name, series in columns.items()},
                **{name: homes[name].gather(at) for name in self.shared},
                **{name: others[name] for name in self.own},
            }
        )
        order = np.argsort(np.concatenate([np.arange(homes.height), at]), kind="stable")
        return pl.concat([heads, rest])[order]


def divided(
    options: Sequential, unit: Unit, data: Microdata, frame: pl.DataFrame, columns: Sequence[str]
) -> Divided:
    """Take a file apart; ``columns`` are those that the synthetic file will have."""
    if frame[unit.column].null_count():
        raise ColumnError(
            f"Column '{unit.column}' says which records belong together and is missing in "
            f"{frame[unit.column].null_count():,} of them. Fill it in, leave it out with leave_out, or draw records "
            "one by one with together='no'."
        )
    free = [name for name in columns if name != unit.column]
    copies = copies_of(columns_named(frame, columns), unit.column)
    free = [name for name in free if name not in copies]
    if not free:
        raise ParameterError(f"There is nothing to synthesize beside '{unit.column}'.")
    alike = same_within(frame, unit.column, free)
    shared = [name for name in alike if not _computed_from_others(options, name, alike, frame)]
    own = [name for name in free if name not in shared]
    taken = set(frame.columns)
    size, place = (_unused(text, taken) for text in (f"records of {unit.column}", f"place in {unit.column}"))
    first = {name: _unused(f"first: {name}", taken) for name in own}
    weight = data.roles.weight
    used = options.weights in ("use", "regenerate")
    with_weight = [weight] if weight and weight not in columns and used else []
    records = pl.DataFrame(
        {"discreet unit": frame[unit.column].rename("u").rank("dense")}
        | {name: frame[name] for name in (*shared, *own, *with_weight)}
    ).with_row_index("discreet record")
    records = records.with_columns(
        pl.len().over("discreet unit").cast(pl.Int64).alias(size),
        (pl.int_range(pl.len()).over("discreet unit") + 1).cast(pl.Int64).alias(place),
    )
    for name in with_weight:
        records = records.with_columns(
            pl.col(name).cast(pl.Float64).mean().over("discreet unit").alias("discreet w")
        )
    heads = records.filter(pl.col(place) == 1).sort("discreet record")
    homes = columns_named(heads, [size, *shared, *own])
    for name in with_weight:
        homes = homes.with_columns(heads["discreet w"].alias(name))
    further = records.filter(pl.col(place) > 1).sort("discreet record")
    beside = pl.DataFrame(
        {"discreet unit": heads["discreet unit"]} | {shown: heads[name] for name, shown in first.items()}
    )
    further = further.join(beside, on="discreet unit", how="left", maintain_order="left")
    others = columns_named(further, [size, place, *shared, *first.values(), *own, *with_weight])
    counting = [
        name
        for name in shared
        if homes[name].dtype.is_integer()
        and homes[size].n_unique() > 1
        and (homes[name] == homes[size]).all()
    ]
    return Divided(
        unit.column,
        tuple(copies),
        tuple(shared),
        tuple(own),
        _at_least_two(homes),
        _at_least_two(others),
        size,
        place,
        first,
        tuple(counting),
    )


def options_of_homes(
    options: Sequential, parts: Divided, order: Sequence[str], columns: Sequence[str]
) -> Sequential:
    """Return the parameters by which units and their first records are synthesized: the user's, and the size first."""
    kept = (*parts.shared, *parts.own)
    free = tuple(name for name in kept if name not in parts.counting)
    other = options.otherwise if isinstance(options.method, Mapping) else options.method
    allowed = predictor_sets(options, columns)
    return replace(
        options,
        together="no",
        visit_sequence=(parts.size, *(name for name in order if name in kept)),
        method={**_named(options, free), **{name: Collinear(of=parts.size) for name in parts.counting}}
        or other,
        otherwise=other,
        leave_out=None,
        predictor_matrix=None
        if allowed is None
        else {
            name: (parts.size, *(other for other in predictors if other in kept))
            for name, predictors in allowed.items()
            if name in free
        },
        weights=_weights(options),
        **{setting: _restricted(options, setting, free) for setting in _BY_COLUMN},
    )


def options_of_others(
    options: Sequential, parts: Divided, order: Sequence[str], columns: Sequence[str]
) -> Sequential:
    """Return the parameters by which the further records of a unit are synthesized, given what is known of it."""
    allowed = predictor_sets(options, columns)
    behind = {
        name: (name, parts.first[name]) if name in parts.first else (name,)
        for name in (*parts.shared, *parts.own)
    }
    given = {shown: name for name, shown in parts.first.items()}
    settings = {setting: _restricted(options, setting, parts.own) for setting in _BY_COLUMN}
    for setting in ("special_codes", "semicontinuous"):
        # What is a code in a column is one in its twin of the first record, and in what all records share.
        named = getattr(options, setting) or {}
        also = {name: named[name] for name in parts.shared if name in named}
        also |= {shown: named[name] for shown, name in given.items() if name in named}
        settings[setting] = {**(settings[setting] or {}), **also} or None
    return replace(
        options,
        together="no",
        visit_sequence=(*parts.given, *(name for name in order if name in parts.own)),
        method={**_named(options, parts.own), **dict.fromkeys(parts.given, "keep")},
        otherwise=options.otherwise if isinstance(options.method, Mapping) else options.method,
        strata=None,
        leave_out=None,
        predictor_matrix=None
        if allowed is None
        else {
            name: (
                parts.size, parts.place, *(parts.first[name],),
                *(shown for other in predictors if other in behind for shown in behind[other]),
            )
            for name, predictors in allowed.items()
            if name in parts.own
        },
        weights=_weights(options),
        **settings,
    )  # fmt: skip


def check_whole_units(options: Sequential, base: SynthesisPlan, parts: Divided) -> None:
    """Refuse what cannot be done to units as a whole, and say what can."""
    unit = parts.unit
    way_out = f"Draw records one by one without '{unit}' (together='no')"
    kept = [step.name for step in base.steps if isinstance(step.method, Keep)]
    if kept:
        raise ParameterError(
            f"Column '{kept[0]}' is kept as it is, so records are the original ones, and those that share '{unit}' "
            f"still do where it is kept too: method={{'{unit}': 'keep'}}."
        )
    joint = [
        step
        for step in base.steps
        if isinstance(step.method, JointMethod) and step.method.name in ("catall", "ipf")
    ]
    if joint:
        raise ParameterError(
            f"A joint table ({joint[0].method.name}) knows no units: records that share '{unit}' cannot be kept "
            f"together. {way_out}, or choose another method."
        )
    if options.proper == "bootstrap":
        raise ParameterError(
            f"proper='bootstrap' draws records again, and those that share '{unit}' belong together. Use proper=True, "
            f"or: {way_out[0].lower()}{way_out[1:]}."
        )
    loose = [name for name in base.settings.get("strata", ()) if name in parts.own]
    if loose:
        raise ParameterError(
            f"Column '{loose[0]}' is a stratum, but records that share '{unit}' differ in it. {way_out}, or take it "
            "out of strata."
        )
    if base.settings.get("strata") and options.stratum_sizes != "drawn":
        raise ParameterError(f"stratum_sizes must be 'drawn' where whole units ('{unit}') are synthesized.")


def base_plan(options: Sequential, unit: Unit, data: Microdata, frame: pl.DataFrame) -> SynthesisPlan:
    """Plan the synthesis without the numbers of the units, record by record; it checks all that was asked."""
    numbers = (unit.column, *copies_of(frame, unit.column))
    gone = listed(options.leave_out)
    asked = options.visit_sequence
    if not isinstance(asked, str) and asked is not None:
        asked = tuple(name for name in asked if name not in numbers)
    method = options.method
    if isinstance(method, Mapping):
        method = {name: own for name, own in method.items() if name not in numbers} or options.otherwise
    matrix = options.predictor_matrix
    # A square counts the unit among its columns; it is read where all columns are known.
    named = matrix if isinstance(matrix, Mapping) else None
    return plan_synthesis(
        replace(
            options,
            together="no",
            method=method,
            leave_out=(*gone, *(name for name in numbers if name not in gone)),
            visit_sequence=asked,
            predictor_matrix=_without(named, numbers),
        ),
        data,
        frame,
    )[0]


def _without(matrix: Mapping[str, Any] | None, numbers: Sequence[str]) -> Any:
    if matrix is None:
        return None
    return {
        name: [other for other in ([given] if isinstance(given, str) else given) if other not in numbers]
        for name, given in matrix.items()
        if name not in numbers
    }


def _named(options: Sequential, names: Sequence[str]) -> dict[str, Any]:
    """Return the methods that the user named; a column without one may still turn out to be constant or looked up."""
    given = options.method if isinstance(options.method, Mapping) else {}
    return {name: given[name] for name in names if name in given}


def _weights(options: Sequential) -> Any:
    # A weight that is synthesized is one more column here, and a constant one is added in the end.
    return {"synthesize": "ignore", "regenerate": "use"}.get(options.weights, options.weights)


def _restricted(options: Sequential, setting: str, names: Sequence[str]) -> Any:
    given = read_rules(options.rules) if setting == "rules" else getattr(options, setting)
    if not isinstance(given, Mapping):
        return given
    return {name: value for name, value in given.items() if name in names} or None


def _computed_from_others(options: Sequential, name: str, alike: Sequence[str], frame: pl.DataFrame) -> bool:
    """Whether a column is computed from one in which the records of a unit differ."""
    asked = options.method.get(name) if isinstance(options.method, Mapping) else None
    text = (
        asked[1:] if isinstance(asked, str) and asked.startswith("~") else getattr(asked, "expression", None)
    )
    return text is not None and any(other not in alike for other in parse(text, frame.schema).columns)


def _numbered(units: pl.Series, dtype: pl.DataType, name: str) -> pl.Series:
    """Write the numbers of units in the type of their column where it can hold them."""
    fits = dtype.is_numeric() or dtype == pl.String
    try:
        return (units.cast(dtype) if fits else units).rename(name)
    except pl.exceptions.InvalidOperationError:
        return units.rename(name)


def _unused(text: str, taken: set[str]) -> str:
    while text in taken:
        text += " "
    taken.add(text)
    return text


def _at_least_two(frame: pl.DataFrame) -> pl.DataFrame:
    """A single record is all there is to learn from; twice the same says no more."""
    return pl.concat([frame, frame]) if frame.height == 1 else frame


# Which records belong together: the members of a household, the entries of one person?
_FEWEST_RECORDS = 50
_FEWEST_GROUPS = 10
_SMALLEST_SHARE, _LARGEST_SHARE = 0.05, 0.9
_LARGEST_UNIT = 100
_BY_CHANCE = 0.5


@dataclass(frozen=True)
class Unit:
    """A column that says which records belong together.

    Attributes
    ----------
    column
        Its name.
    told_by
        Whether the user said so (a role, or the option ``together``), or the data.
    counted_by
        Columns that hold the number of its records.
    same
        Other columns that all records of a unit share, more than chance would make them.
    """

    column: str
    told_by: Literal["user", "data"]
    counted_by: tuple[str, ...] = ()
    same: tuple[str, ...] = ()


def unit_of(options: Sequential, data: Microdata, frame: pl.DataFrame) -> Unit | None:
    """Return the unit that records are drawn by: named by the option, by a role, or given away by the data.

    A column that was given a method of its own, or is left out, is none.
    """
    if options.together == "no":
        return None
    columns = candidates(options, data)
    if options.together != "auto":
        if options.together not in columns:
            raise ColumnError(
                f"{unknown_name(options.together, columns)} It was named under together; columns that are left out, "
                "or have a method of their own, cannot be."
            )
        return Unit(options.together, "user")
    for role in (data.roles.household, data.roles.person):
        if role is not None and role in columns:
            return Unit(role, "user")
    if data.roles.household or data.roles.person:
        return None
    return next((unit for unit in units_seen(frame, columns) if unit.counted_by), None)


def units_left_out(data: Microdata, frame: pl.DataFrame | None, without: Collection[str]) -> dict[str, str]:
    """Return what a synthesizer that draws records one by one leaves out, and why; a warning says so.

    ``frame`` is the file in memory, None where nothing may be read off it; ``without`` are columns that are out anyway.
    """
    declared = [name for name in (data.roles.household, data.roles.person) if name is not None]
    names = [name for name in declared if name not in without]
    if not declared and frame is not None:
        free = [name for name in frame.columns if name not in without]
        names = [unit.column for unit in units_seen(frame, free) if unit.counted_by]
    for name in names:
        warnings.warn(
            f"Records that share '{name}' belong together, and this synthesizer draws records one by one: the column "
            "is left out, and what its records had to do with each other is lost. Sequential draws them together.",
            DiscreetWarning,
            stacklevel=5,
        )
    return dict.fromkeys(names, "it says which records belong together, and they are drawn one by one")


def candidates(options: Sequential, data: Microdata) -> list[str]:
    """Name the columns that may say which records belong together."""
    gone = listed(options.leave_out)
    named = options.method if isinstance(options.method, Mapping) else ()
    out = {*gone, *named, *data.roles.identifiers, data.roles.weight}
    return [name for name in data.columns if name not in out]


def units_seen(frame: pl.DataFrame, columns: Sequence[str]) -> list[Unit]:
    """Find columns that number groups of records which stand together and share values, surest first.

    A column counts that is whole or text, has each of its values in one run of records, neither nearly as many values
    as records nor very few, and beside which others are the same within every run though they change between runs. It
    is sure where another column says how many records a run has.

    Examples
    --------
    >>> home = [number // 2 for number in range(100)]
    >>> size, age = [2] * 100, list(range(100))
    >>> area = [number % 7 for number in home]
    >>> file = pl.DataFrame({"home": home, "size": size, "area": area, "age": age})
    >>> [(unit.column, unit.counted_by, unit.same) for unit in units_seen(file, file.columns)]
    [('home', ('size',), ('area',))]
    """
    if frame.height < _FEWEST_RECORDS:
        return []
    found = [unit for name in columns if (unit := _as_unit(frame, name, columns)) is not None]
    return sorted(
        found, key=lambda unit: (-len(unit.counted_by), -len(unit.same), columns.index(unit.column))
    )


def same_within(frame: pl.DataFrame, unit: str, columns: Sequence[str]) -> list[str]:
    """Return the columns that have one value in all records of each unit, missing being one."""
    others = [name for name in columns if name != unit]
    table = pl.DataFrame({"unit": frame[unit]} | {f"c{at}": frame[name] for at, name in enumerate(others)})
    many = table.group_by("unit").agg(pl.exclude("unit").n_unique()).drop("unit").max()
    return [name for at, name in enumerate(others) if many[f"c{at}"].item() == 1]


def copies_of(frame: pl.DataFrame, unit: str) -> list[str]:
    """Return the columns that repeat the numbers of the units."""
    same = frame[unit].rename("v")
    return [
        name
        for name in frame.columns
        if name != unit and frame[name].dtype == same.dtype and frame[name].rename("v").eq_missing(same).all()
    ]


def _as_unit(frame: pl.DataFrame, name: str, columns: Sequence[str]) -> Unit | None:
    series = frame[name].rename("unit")
    if not (series.dtype.is_integer() or series.dtype == pl.String) or series.null_count():
        return None
    distinct = series.n_unique()
    if not _SMALLEST_SHARE * len(series) <= distinct <= _LARGEST_SHARE * len(series):
        return None
    runs = series.rle()
    if len(runs) != distinct:
        return None
    sizes = runs.struct.field("len")
    if int((sizes > 1).sum()) < _FEWEST_GROUPS or int(sizes.max()) > _LARGEST_UNIT:  # type: ignore[arg-type]
        return None
    alike = same_within(frame, name, columns)
    first = pl.Series(sizes.cum_sum() - sizes)
    number = pl.Series("n", sizes)
    counted = [
        other
        for other in alike
        if frame[other].dtype.is_integer() and (frame[other].gather(first).rename("n") == number).all()
    ]
    changing = [other for other in alike if other not in counted and _changes(frame[other].gather(first))]
    if not counted and not changing:
        return None
    return Unit(name, "data", tuple(counted), tuple(changing))


def _changes(of_units: pl.Series) -> bool:
    """Whether neighbors mostly differ, so that to be the same within all units is no chance."""
    plain = of_units.rename("v")
    same = plain.slice(1).eq_missing(plain.slice(0, len(plain) - 1))
    return bool(same.mean() <= _BY_CHANCE)  # type: ignore[operator]
