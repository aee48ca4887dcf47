"""What is done before a synthetic file leaves the house, and whether it keeps its rules better than chance would."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, TypedDict

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.constraints import ColumnName, HoldsValues, Public
from discreet.core.errors import ColumnError, ParameterError, unknown_name
from discreet.core.parameters import checked
from discreet.core.randomness import Seed, generator
from discreet.core.results import Detail, Measure, Release, Step
from discreet.core.value_gate import name_in_documents, without_literals
from discreet.core.wording import percent
from discreet.microdata import Microdata, require_microdata
from discreet.synth.column_forms import as_numbers, check_named, decimals_of, from_numbers
from discreet.synth.record_rules import RecordRule, read_rules
from discreet.synth.synthesizer import seed_of

_SHUFFLES = 5

Values = Mapping[str, Sequence[float]]


@checked
def finish(
    synthetic: Microdata,
    original: Microdata | None = None,
    *,
    label: str | None = None,
    label_column: str = "source",
    prefix: str = "",
    suffix: str = "",
    top: Mapping[str, float] | None = None,
    bottom: Mapping[str, float] | None = None,
    codes: Values | None = None,
    smoothing: Mapping[str, str] | None = None,
    remove_uniques: bool | Sequence[str] = False,
    constraints: str | Sequence[str] = (),
    seed: Seed = None,
) -> Release:
    """Make a synthetic file ready to leave: blurred, top-coded, without lookalikes, checked and labelled.

    Parameters
    ----------
    synthetic
        The synthetic file.
    original
        The file it was made from; needed for ``remove_uniques``, and shown beside in the check of the constraints.
    label, label_column
        A text that marks every record, e.g. ``"synthetic, 2026"``, and the column that holds it.
    prefix, suffix
        Added to every column name, so that nobody takes the file for the real one.
    top, bottom
        ``{column: limit}``: values beyond are replaced by the limit.
    codes
        ``{column: [values]}``: codes that are neither blurred nor cut (-8 for "refused").
    smoothing
        ``{column: "spline" | "density" | "running-mean" | "adaptive" | "between"}``: blur numbers that are values of
        real people.
    remove_uniques
        Drop synthetic records that are alone with their keys and match one person of the original who is alone too;
        True takes the keys of the original, or name them. Where the original has the role ``household``, columns that
        hold its number of members are counted anew. It tells who was not in the original (see below).
    constraints
        Rules of the file (see `check_rules`); how often they are broken, against chance, is written into the log.
    seed
        Of the blurring and the comparison with chance.

    Returns
    -------
    Release
        The finished file, and a log with one entry for each thing that was done.

    When not to trust it
    --------------------
    ``remove_uniques`` proves who was not in the original: afterwards no single record matches a member who is alone,
    while it still matches strangers. Where membership is to stay secret, leave it out; `discreet.synth` draws others by
    a rule on the synthetic file alone where a policy asks for it. It makes no file anonymous. Measure with
    `discreet.compare` or `discreet.risk.disclosure` what is left.

    Examples
    --------
    >>> made = Microdata(pl.DataFrame({"pay": [900, -8, 99_000], "sex": ["f", "m", "f"]}))
    >>> release = finish(made, top={"pay": 10_000}, codes={"pay": [-8]}, label="synthetic")
    >>> release.data.frame["pay"].to_list(), [step.treatment for step in release.log]
    ([900, -8, 10000], ['top-bottom-code', 'label'])
    """
    require_microdata(synthetic, "synthetic")
    if original is not None:
        require_microdata(original, "original")
    check_named({"top": top, "bottom": bottom, "codes": codes, "smoothing": smoothing}, synthetic.columns)
    root = seed_of(seed)
    data, log = synthetic, []
    if smoothing:
        data, step = _blurred(data, original, smoothing, codes or {}, root)
        log.append(step)
    if top or bottom:
        data, step = _cut(data, top or {}, bottom or {}, codes or {})
        log.append(step)
    if remove_uniques is not False:
        data, step = without_lookalikes(data, original, remove_uniques)
        log.append(step)
    if constraints:
        log.append(_constraints_step(data, original, constraints, root))
    if label is not None:
        data, step = _labelled(data, label, label_column)
        log.append(step)
    if prefix or suffix:
        data, step = _renamed(data, prefix, suffix)
        log.append(step)
    return Release(data, tuple(log))


class PreparationSettings(TypedDict, total=False):
    """What the log of a preparation tells."""

    smoothing: Annotated[Mapping[str, str], Public()]
    constraints: Annotated[Sequence[str], HoldsValues(in_expressions=True)]
    label: Annotated[str, Public()]
    label_column: ColumnName
    prefix: Annotated[str, Public()]
    suffix: Annotated[str, Public()]


name_in_documents(
    "treatment", dict.fromkeys(("smoothing", "constraint-check", "label", "rename"), PreparationSettings)
)


def rules_against_chance(
    synthetic: Microdata,
    rules: str | Sequence[str],
    *,
    original: Microdata | None = None,
    tolerance: float = 1e-6,
    seed: Seed = None,
) -> Measure:
    """Does a synthetic file keep the rules of the real one better than columns thrown together at random would?

    A rule that is hardly ever broken says little where chance would hardly break it either. The columns of each rule
    are shuffled on their own and the rule is counted again.

    Parameters
    ----------
    synthetic
        The synthetic file.
    rules
        Texts, see `check_rules`.
    original
        The real file, whose own violations are shown beside.
    tolerance
        Difference of two numbers that still counts as equal.
    seed
        Of the shuffling.

    Returns
    -------
    Measure
        ``value`` is the least ``kept_beyond_chance`` over the rules: 1 where no record breaks it, 0 where as many do as
        by chance, negative where more do. ``detail["rules"]`` has every rule.

    How to read it
    --------------
    Values near 1 say that the generator has learned the rule. A value near 0 says that it has not: write the rule into
    the synthesis (``rules`` or ``constraints`` of `Sequential`). A rule that speaks of one column only is neither kept
    nor broken by relations, and is left out of the value.

    When not to trust it
    --------------------
    Rules that the original itself breaks cannot be kept by a good synthetic file: look at ``share_original``.

    Examples
    --------
    >>> made = Microdata(pl.DataFrame({"start": list(range(100)), "end": list(range(1, 101))}))
    >>> rules_against_chance(made, "start <= end", seed=1).value
    1.0
    """
    require_microdata(synthetic, "synthetic")
    table = _rule_table(synthetic, original, rules, tolerance=tolerance, root=seed_of(seed))
    told = table.drop_nulls("kept_beyond_chance")
    worst = told.sort("kept_beyond_chance").row(0, named=True) if told.height else None
    meaning = "None of the rules could be broken by chance, so keeping them says nothing."
    if worst is not None:
        meaning = (
            f"The rule kept worst, '{without_literals(worst['rule'])}', is broken by {percent(worst['share'])} of the "
            f"records, against {percent(worst['share_by_chance'])} if its columns had nothing to do with one another."
        )
    return Measure(
        name="rules_against_chance",
        value=None if worst is None else worst["kept_beyond_chance"],
        figures={
            "rules": table.height,
            "rules_broken": int((table["share"] > 0).sum()),
            "largest_share": float(table["share"].max()),  # type: ignore[arg-type]
            "largest_share_by_chance": float(table["share_by_chance"].max()),  # type: ignore[arg-type]
        },
        meaning=meaning,
        caveats=[
            f"'{without_literals(rule)}' is not broken by chance either; that it is kept says nothing."
            for rule in table.filter(pl.col("kept_beyond_chance").is_null())["rule"]
        ],
        parameters={"rules": table["rule"].to_list(), "tolerance": tolerance},
        detail=Detail(rules=lambda: engine.like(synthetic, table)),
    )


def _rule_table(
    synthetic: Microdata,
    original: Microdata | None,
    rules: str | Sequence[str],
    *,
    tolerance: float,
    root: int,
) -> pl.DataFrame:
    frame = engine.whole_frame(synthetic)
    read = read_rules(rules, frame.schema, tolerance=tolerance)
    if not read:
        raise ParameterError("There is no rule to check. Give at least one text.")
    real = None if original is None else engine.whole_frame(original)
    rows = [_against_chance(frame, real, rule, root) for rule in read]
    return pl.DataFrame(
        rows, schema_overrides={"share_original": pl.Float64, "kept_beyond_chance": pl.Float64}
    )


def _against_chance(
    frame: pl.DataFrame, real: pl.DataFrame | None, rule: RecordRule, root: int
) -> dict[str, Any]:
    share = _broken_share(frame, rule)
    by_chance = 0.0
    for number in range(_SHUFFLES):
        rng = generator(root, "chance", rule.text, str(number))
        mixed = pl.DataFrame([frame[name].gather(rng.permutation(frame.height)) for name in rule.columns])
        by_chance += _broken_share(mixed, rule) / _SHUFFLES
    single = len(rule.columns) < 2
    return {
        "rule": rule.text,
        "share": share,
        "share_by_chance": by_chance,
        "share_original": None if real is None else _broken_share(real, rule),
        "kept_beyond_chance": None if single or not by_chance else 1 - share / by_chance,
    }


def _broken_share(frame: pl.DataFrame, rule: RecordRule) -> float:
    """Share of the records that break a rule, of those where it can be checked; for if-then rules of all records."""
    asked = frame.select(
        broken=(~rule.holds).fill_null(False).sum(), checked=rule.holds.is_not_null().sum()
    ).row(0, named=True)
    total = frame.height if rule.given is not None else asked["checked"]
    return float(asked["broken"] / total) if total else 0.0


def _blurred(
    data: Microdata, original: Microdata | None, smoothing: Mapping[str, str], codes: Values, root: int
) -> tuple[Microdata, Step]:
    from discreet.synth.smoothing import smoothed

    began = time.perf_counter()
    frame = engine.collect(data, list(smoothing))
    columns, changed = {}, {}
    for name, kind in smoothing.items():
        series = frame[name]
        if not series.dtype.is_numeric():
            raise ColumnError(f"Column '{name}' is no number, so it cannot be smoothed.")
        numbers = as_numbers(series)
        free = (numbers.is_not_null() & ~_is_code(numbers, name, codes)).to_numpy()
        values = numbers.fill_null(0.0).to_numpy().copy()
        if free.any():
            seen = values[free] if original is None else _ordinary(original, name, codes)
            fresh = smoothed(
                values[free],
                kind,
                low=float(seen.min()),
                high=float(seen.max()),
                rng=generator(root, "smoothing", name),
            )
            decimals = 0 if series.dtype.is_integer() else decimals_of(values[free])
            values[free] = fresh if decimals is None else np.round(fresh, decimals)
        columns[name] = from_numbers(values, numbers.is_null().to_numpy(), series.dtype, name)
        changed[name] = int(columns[name].ne_missing(series).sum())
    step = Step(
        "smoothing",
        {"smoothing": dict(smoothing)},
        changed_cells=changed,
        seconds=time.perf_counter() - began,
        internal={"seed": root},
    )
    return data.with_frame(engine.rebuilt(data, columns)), step


def _ordinary(original: Microdata, name: str, codes: Values) -> np.ndarray[Any, np.dtype[np.float64]]:
    if name not in original.schema:
        raise ColumnError(
            f"{unknown_name(name, original.columns)} The original must have the columns to smooth."
        )
    numbers = as_numbers(engine.collect(original, [name])[name]).drop_nulls()
    kept = numbers.filter(~_is_code(numbers, name, codes))
    return (kept if len(kept) else numbers).to_numpy()


def _is_code(series: pl.Series, name: str, codes: Values) -> pl.Series:
    listed = pl.Series([float(code) for code in codes.get(name, ())], dtype=pl.Float64)
    return as_numbers(series).is_in(listed.implode()).fill_null(False)


def _cut(
    data: Microdata, top: Mapping[str, float], bottom: Mapping[str, float], codes: Values
) -> tuple[Microdata, Step]:
    """Top- and bottom-code with the codes set aside, then put the codes back."""
    from discreet.protect import TopBottomCode

    began = time.perf_counter()
    names = list(dict.fromkeys([*top, *bottom]))
    before = engine.collect(data, names)
    aside = {
        name: before[name].set(_is_code(before[name], name, codes), None) for name in names if codes.get(name)
    }
    shown = data.with_frame(engine.rebuilt(data, aside)) if aside else data
    treated = TopBottomCode(top=dict(top), bottom=dict(bottom)).apply(shown)
    after = engine.collect(treated.data, names)
    columns = {
        name: pl.select(
            pl.when(pl.lit(_is_code(before[name], name, codes)))
            # A limit of 10.5 makes whole numbers decimals; to cut it to 10 would bring it below what was asked for.
            .then(pl.lit(before[name].cast(after[name].dtype)))
            .otherwise(pl.lit(after[name]))
        )
        .to_series()
        .rename(name)
        for name in aside
    }
    data = treated.data if not columns else treated.data.with_frame(engine.rebuilt(treated.data, columns))
    own = treated.log[0]
    step = Step(
        own.treatment,
        {**own.parameters, **({"codes": {n: list(codes[n]) for n in aside}} if aside else {})},
        changed_cells=own.changed_cells,
        notes=own.notes,
        seconds=time.perf_counter() - began,
    )
    return data, step


def _constraints_step(
    data: Microdata, original: Microdata | None, constraints: str | Sequence[str], root: int
) -> Step:
    began = time.perf_counter()
    table = _rule_table(data, original, constraints, tolerance=1e-6, root=root)
    lines = []
    for row in table.iter_rows(named=True):
        real = "" if row["share_original"] is None else f", {percent(row['share_original'])} in the original"
        lines.append(
            f"'{row['rule']}' is broken by {percent(row['share'])} of the records "
            f"({percent(row['share_by_chance'])} by chance{real})."
        )
    return Step(
        "constraint-check",
        {"constraints": table["rule"].to_list()},
        notes=tuple(lines),
        seconds=time.perf_counter() - began,
    )


def _labelled(data: Microdata, label: str, column: str) -> tuple[Microdata, Step]:
    if column in data.schema:
        raise ColumnError(f"The file already has a column '{column}'. Name another with label_column.")
    rows = engine.collect(data, [data.columns[0]]).height
    frame = engine.rebuilt(
        data, {column: pl.Series(column, [label], dtype=pl.String).new_from_index(0, rows)}
    )
    return data.with_frame(frame), Step("label", {"label": label, "label_column": column})


def _renamed(data: Microdata, prefix: str, suffix: str) -> tuple[Microdata, Step]:
    """Give every column its new name; roles follow."""
    fresh = {name: f"{prefix}{name}{suffix}" for name in data.columns}
    roles: dict[str, Any] = {
        role: fresh[own] if isinstance(own, str) else [fresh[name] for name in own]
        for role, own in data.roles.to_dict().items()
    }
    told: dict[str, Any] = {
        part: {fresh.get(name, name): value for name, value in getattr(data.metadata, part).items()}
        for part in ("column_labels", "value_labels", "user_missing", "formats")
    }
    frame = data.wrapped.rename(fresh).to_native()
    step = Step("rename", {"prefix": prefix, "suffix": suffix})
    return Microdata(frame, **roles, metadata=replace(data.metadata, **told)), step


# Which synthetic records look like one person of the original, and what is left of their households without them?
_ROUNDS = 50
_SINGLE = "Records were dropped that were alone with their keys in this file, whoever is in the original."


def without_lookalikes(
    data: Microdata, original: Microdata | None, keys: bool | Sequence[str]
) -> tuple[Microdata, Step]:
    """Drop the records that are alone with the keys of one person who is alone too; households are counted anew."""
    from discreet.risk import remove_replicated_uniques

    if original is None:
        raise ParameterError("remove_uniques compares with the original: give it as the second argument.")
    chosen = None if keys is True else ([keys] if isinstance(keys, str) else list(keys))  # type: ignore[arg-type]
    return _dropped(
        data, original.roles.household, lambda held: remove_replicated_uniques(original, held, chosen)
    )


def without_single_records(
    data: Microdata, keys: Sequence[str], household: str | None = None
) -> tuple[Microdata, Step]:
    """Drop the records that are alone with their keys in this file; households are counted anew.

    Nobody's original decides it, so that a record that is left says nothing about who was in the original.

    Examples
    --------
    >>> made = Microdata(pl.DataFrame({"age": [30, 31, 31, 40]}))
    >>> without_single_records(made, ["age"])[0].frame["age"].to_list()
    [31, 31]
    """
    return _dropped(data, household, lambda held: _without_single(held, keys))


def _without_single(data: Microdata, keys: Sequence[str]) -> Release:
    keep = engine.collect(data, list(keys)).select(pl.len().over(list(keys)) > 1).to_series()
    step = Step(
        "remove-single-records", {"keys": list(keys)}, removed_records=int((~keep).sum()), notes=(_SINGLE,)
    )
    return Release(data.with_frame(engine.rebuilt(data, {}, keep=keep)), (step,))


def _dropped(
    data: Microdata, unit: str | None, drop: Callable[[Microdata], Release]
) -> tuple[Microdata, Step]:
    """Drop records until none is left to drop, and count households anew each time."""
    if unit is None or unit not in data.schema:
        release = drop(data)
        return release.data, release.log[0]
    began = time.perf_counter()
    before = engine.overview(data, ()).rows
    counting = _counting(data, unit)
    for _ in range(_ROUNDS):
        release = drop(data)
        data, gone = release.data, release.log[0].removed_records
        if gone and counting:
            # A household that lost a member says so, and its other members may be alone with their keys now.
            homes = engine.collect(data, [unit])
            number = homes.select(pl.len().over(unit)).to_series()
            kinds = engine.collect(data, list(counting)).schema
            fresh = {name: number.cast(kinds[name]).rename(name) for name in counting}
            data = data.with_frame(engine.rebuilt(data, fresh))
        if not gone or not counting:
            break
    own = release.log[0]
    names = ", ".join(f"'{name}'" for name in counting)
    told = f"{names} of households that lost members were counted anew. " if counting else ""
    step = Step(
        own.treatment,
        {**own.parameters, "household": unit},
        removed_records=before - engine.overview(data, ()).rows,
        notes=(
            *own.notes,
            f"{told}Other columns that speak of a household as a whole are as they were.",
        ),
        seconds=time.perf_counter() - began,
    )
    return data, step


def _counting(data: Microdata, unit: str) -> list[str]:
    """Name the columns that hold the number of records of every household."""
    whole = [name for name, kind in data.schema.items() if kind.is_integer() and name != unit]
    table = engine.collect(data, [unit, *whole])
    number = table.select(pl.len().over(unit)).to_series().cast(pl.Int64)
    return [name for name in whole if (table[name].cast(pl.Int64) == number).all() and number.n_unique() > 1]
