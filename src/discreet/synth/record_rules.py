"""Do records keep the rules of their file, and how can they be made to?

A rule is a short text about columns: ``total == a + b``, ``costs <= revenue``, ``pay >= 0``, ``if age < 16 then
status == 'child'``. Sums and equalities *define* a column: it is left out of a synthesis and computed afterwards, so
that the rule holds by construction. The other rules are reported, and can be enforced by moving numbers or by
dropping records. Real files break their own rules, too: the target need not be zero.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.errors import ParameterError
from discreet.core.results import Detail, Measure
from discreet.core.wording import percent
from discreet.expressions import Expression, parse, split_outside_quotes
from discreet.microdata import Microdata

RuleKind = Literal["non-negative", "summation", "equality", "inequality", "if-then", "condition"]
Repair = Literal["projection", "reject"]
KINDS: tuple[RuleKind, ...] = (
    "summation",
    "non-negative",
    "equality",
    "inequality",
    "if-then",
    "condition",
)

_OPERATOR = r"==|!=|<=|>=|<|>"


@dataclass(frozen=True)
class RecordRule:
    """One rule that was read.

    Attributes
    ----------
    text
        As it was written.
    kind
        What sort of rule it is.
    columns
        The columns it speaks of.
    left, right, operator
        The two sides of a comparison, where it is a single one.
    given, then
        The parts of an if-then rule.
    target
        The column that a sum or an equality defines.
    """

    text: str
    kind: RuleKind
    columns: tuple[str, ...]
    holds: pl.Expr = field(repr=False, compare=False)
    given: pl.Expr | None = field(default=None, repr=False, compare=False)
    left: Expression | None = field(default=None, repr=False)
    right: Expression | None = field(default=None, repr=False)
    operator: str = ""
    target: str | None = None
    then: pl.Expr | None = field(default=None, repr=False, compare=False)


def read_rules(
    rules: str | Sequence[str], schema: Mapping[str, Any], *, tolerance: float = 1e-6
) -> tuple[RecordRule, ...]:
    """Read rules about the columns of a file.

    Parameters
    ----------
    rules
        Texts as `discreet.expressions.parse` reads them; ``if … then …`` may stand around two of them, and a single
        ``=`` is read as ``==``.
    schema
        The columns and their Polars types.
    tolerance
        Difference of two numbers that still counts as equal, relative to their size where that is above 1.

    Examples
    --------
    >>> columns = {"total": pl.Float64, "a": pl.Float64, "b": pl.Float64}
    >>> [(rule.kind, rule.target) for rule in read_rules(["total = a + b", "a >= 0", "a <= b"], columns)]
    [('summation', 'total'), ('non-negative', None), ('inequality', None)]
    """
    if not tolerance >= 0:
        raise ParameterError("tolerance must not be negative.")
    texts = [rules] if isinstance(rules, str) else list(rules)
    return tuple(_read(text, schema, tolerance) for text in texts)


def check_rules(
    data: Microdata,
    rules: str | Sequence[str],
    *,
    original: Microdata | None = None,
    tolerance: float = 1e-6,
) -> Measure:
    """How many records break the rules of the file?

    Parameters
    ----------
    data
        The file to check.
    rules
        Texts, see `read_rules`.
    original
        The real file, whose own violations are shown beside.
    tolerance
        Difference of two numbers that still counts as equal, relative to their size where that is above 1.

    Returns
    -------
    Measure
        ``value`` is the share of records that break at least one rule. ``figures`` has the mean share over the rules
        of each kind (of the records where the rule can be checked), with ``original`` also ``…_original``.
        ``detail["rules"]`` has every rule; a rule about missing values can be neither kept nor broken.

    Examples
    --------
    >>> file = Microdata(pl.DataFrame({"total": [3.0, 5.0], "a": [1.0, 2.0], "b": [2.0, 2.0]}))
    >>> check_rules(file, ["total == a + b", "a >= 0"]).value
    0.5
    """
    frame, table, anyone = _checked(data, rules, tolerance)
    figures: dict[str, Any] = {
        "records": frame.height,
        "records_breaking_a_rule": int(anyone.sum()),
        **_by_kind(table),
    }
    if original is not None:
        _, theirs, their_records = _checked(original, rules, tolerance)
        figures["share_original"] = float(their_records.mean()) if len(their_records) else 0.0
        figures |= {f"{name}_original": share for name, share in _by_kind(theirs).items()}
        table = table.with_columns(share_original=theirs["share"])
    share = float(anyone.mean()) if len(anyone) else 0.0
    worst = table.sort("share", descending=True, nulls_last=True).row(0, named=True)
    meaning = f"{percent(share)} of {frame.height:,} records break at least one of {table.height} rules"
    meaning += f"; most often '{worst['rule']}' ({percent(worst['share'])})." if worst["share"] else "."
    return Measure(
        name="check_rules",
        value=share,
        figures=figures,
        meaning=meaning,
        caveats=_caveats(table),
        parameters={"rules": table["rule"].to_list(), "tolerance": tolerance},
        detail=Detail(
            rules=lambda: engine.like(data, table),
            records=lambda: engine.like(
                data, pl.DataFrame({"record": np.arange(frame.height), "breaks_a_rule": anyone})
            ),
        ),
    )


def derived_columns(rules: Sequence[RecordRule]) -> dict[str, RecordRule]:
    """Return the columns that sums and equalities define, each after those it is computed from.

    Examples
    --------
    >>> columns = dict.fromkeys(["all", "part", "a", "b", "c"], pl.Int64)
    >>> list(derived_columns(read_rules(["all == part + c", "part == a + b"], columns)))
    ['part', 'all']
    """
    defining: dict[str, RecordRule] = {}
    for rule in rules:
        if rule.target is None:
            continue
        if rule.target in defining:
            raise ParameterError(
                f"Column '{rule.target}' is defined by two rules, '{defining[rule.target].text}' and '{rule.text}'. "
                "Solve one of them for another column."
            )
        defining[rule.target] = rule
    ordered: dict[str, RecordRule] = {}
    waiting = dict(defining)
    while waiting:
        ready = [
            name for name, rule in waiting.items() if not ((set(rule.columns) - {rule.target}) & set(waiting))
        ]
        if not ready:
            raise ParameterError(
                f"The rules for {', '.join(map(repr, waiting))} define each other in a circle. Solve one of them for a "
                "column that no rule defines."
            )
        ordered |= {name: waiting.pop(name) for name in ready}
    return ordered


def recomputed(frame: pl.DataFrame, rules: Sequence[RecordRule]) -> pl.DataFrame:
    """Compute the columns that the rules define, in the type they have where they are there."""
    for name, rule in derived_columns(rules).items():
        assert rule.right is not None
        dtype = frame.schema.get(name)
        value = rule.right.value
        if dtype is not None and dtype.is_integer():
            value = value.round(0).cast(dtype) if rule.right.kind == "number" else value
        elif dtype is not None:
            value = value.cast(dtype)
        frame = frame.with_columns(value.alias(name))
    return frame


def enforce_rules(
    data: Microdata, rules: str | Sequence[str], *, repair: Repair = "projection", tolerance: float = 1e-6
) -> Microdata:
    """Make a file keep its rules: compute what sums and equalities define, then repair the rest.

    Parameters
    ----------
    data
        The file, e.g. a synthetic one.
    rules
        Texts, see `read_rules`.
    repair
        ``projection`` moves the numbers of a broken inequality by the least amount that mends it; if-then rules and
        rules about texts stay as they are. ``reject`` drops the records that break a rule.
    tolerance
        Difference of two numbers that still counts as equal.

    Examples
    --------
    >>> file = Microdata(pl.DataFrame({"total": [9.0, 9.0], "a": [-1.0, 2.0], "b": [2.0, 2.0]}))
    >>> enforce_rules(file, ["total == a + b", "a >= 0"]).frame["total"].to_list()
    [2.0, 4.0]
    """
    if repair not in ("projection", "reject"):
        raise ParameterError("repair must be 'projection' or 'reject'.")
    frame = engine.whole_frame(data)
    read = read_rules(rules, frame.schema, tolerance=tolerance)
    frame = (
        recomputed(repaired(recomputed(frame, read), read), read)
        if repair == "projection"
        else recomputed(frame, read)
    )
    if repair == "reject":
        frame = frame.filter(~broken_records(frame, read))
    return data.with_frame(engine.in_kind(data, frame))


def repaired(frame: pl.DataFrame, rules: Sequence[RecordRule], *, rounds: int = 50) -> pl.DataFrame:
    """Move numbers by the least amount that mends the broken inequalities, one after the other, until all hold."""
    linear = [
        rule
        for rule in rules
        if rule.kind in ("inequality", "non-negative") and rule.left and rule.right and rule.operator != "!="
    ]
    fixed = set(derived_columns(rules))
    for _ in range(rounds):
        broken = [rule for rule in linear if frame.select(_broken(rule).any()).item()]
        if not broken:
            break
        for rule in broken:
            frame = projected(frame, rule.left, rule.operator, rule.right, frozenset(fixed))  # type: ignore[arg-type]
        frame = recomputed(frame, rules)
    return frame


def broken_records(frame: pl.DataFrame, rules: Sequence[RecordRule]) -> pl.Series:
    """Say of each record whether it breaks a rule."""
    if not rules:
        return pl.Series("broken", np.zeros(frame.height, dtype=bool))
    return frame.select(pl.any_horizontal(_broken(rule) for rule in rules).alias("broken")).to_series()


def _read(text: str, schema: Mapping[str, Any], tolerance: float) -> RecordRule:
    if not isinstance(text, str):
        raise ParameterError("A rule must be a text, e.g. 'total == a + b'.")
    plain = "==".join(split_outside_quotes(text.strip(), r"(?<![<>=!])=(?!=)"))
    implication = re.match(r"if\b", plain)
    if implication:
        parts = split_outside_quotes(plain[2:], r"\bthen\b")
        if len(parts) != 2:
            raise ParameterError(f"'{text}' must read 'if … then …', with one 'then'.")
        given, then = parse(parts[0].strip(), schema), _read(parts[1].strip(), schema, tolerance)
        columns = tuple(dict.fromkeys([*given.columns, *then.columns]))
        # Where the if-part is not true, or not known, there is nothing to check.
        holds = pl.when(given.condition).then(then.holds)
        return RecordRule(text, "if-then", columns, holds, given=given.condition, then=then.holds)
    whole = parse(plain, schema)
    sides = split_outside_quotes(plain, _OPERATOR)
    if len(sides) == 2 and not any(re.search(r"\b(and|or|not|in|is)\b", side) for side in _unquoted(sides)):
        operator = plain[len(sides[0]) : len(plain) - len(sides[1])]
        left, right = (parse(side.strip(), schema) for side in sides)
        return _comparison(text, (left, operator, right), whole, tolerance)
    _ = whole.condition
    return RecordRule(text, "condition", whole.columns, whole.value)


def _comparison(
    text: str, sides: tuple[Expression, str, Expression], whole: Expression, tolerance: float
) -> RecordRule:
    left, operator, right = sides
    columns = tuple(dict.fromkeys([*left.columns, *right.columns]))
    numbers = left.kind in ("number", "any") and right.kind in ("number", "any")
    if not numbers:
        one_each = len(left.columns) == 1 == len(right.columns)
        target = left.columns[0] if operator == "==" and _is_column(left) and one_each else None
        plain: RuleKind = "equality" if operator == "==" else "condition"
        return RecordRule(text, plain, columns, whole.value, None, left, right, operator, target)
    a, b = left.value.cast(pl.Float64), right.value.cast(pl.Float64)
    slack = tolerance * pl.max_horizontal(a.abs(), b.abs(), pl.lit(1.0))
    holds = {
        "==": (a - b).abs() <= slack,
        "!=": (a - b).abs() > slack,
        "<=": a <= b + slack,
        "<": a < b + slack,
        ">=": a >= b - slack,
        ">": a > b - slack,
    }[operator]
    if operator == "==":
        if not _is_column(left) and _is_column(right):
            left, right = right, left
        free = _is_column(left) and left.columns[0] not in right.columns
        kind: RuleKind = "summation" if len(right.columns) > 1 else "equality"
        target = left.columns[0] if free and right.columns else None
        return RecordRule(text, kind, columns, holds, None, left, right, operator, target)
    zero = (_is_zero(right) and _is_column(left) and operator in (">=", ">")) or (
        _is_zero(left) and _is_column(right) and operator in ("<=", "<")
    )
    return RecordRule(
        text, "non-negative" if zero else "inequality", columns, holds, None, left, right, operator
    )


def _unquoted(sides: Sequence[str]) -> list[str]:
    return [re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`", "", side) for side in sides]


def _is_column(side: Expression) -> bool:
    return len(side.columns) == 1 and side.text.strip("` ") == side.columns[0]


def _is_zero(side: Expression) -> bool:
    return not side.columns and re.fullmatch(r"[+-]?0+(\.0*)?", side.text) is not None


def _broken(rule: RecordRule) -> pl.Expr:
    return (~rule.holds).fill_null(False)


def _checked(
    data: Microdata, rules: str | Sequence[str], tolerance: float
) -> tuple[pl.DataFrame, pl.DataFrame, np.ndarray[Any, Any]]:
    read = read_rules(rules, engine.whole_frame(data).schema, tolerance=tolerance)
    if not read:
        raise ParameterError("There is no rule to check. Give at least one text.")
    needed = tuple(dict.fromkeys(name for rule in read for name in rule.columns))
    frame = engine.whole_frame(data).select(needed) if needed else engine.whole_frame(data)
    counts = frame.select(
        *(rule.holds.is_not_null().sum().alias(f"checked {i}") for i, rule in enumerate(read)),
        *(_broken(rule).sum().alias(f"broken {i}") for i, rule in enumerate(read)),
    ).row(0, named=True)
    checked = [counts[f"checked {i}"] for i in range(len(read))]
    broken = [counts[f"broken {i}"] for i in range(len(read))]
    # An if-then rule says something about every record; where the if-part is false it is kept.
    base = [frame.height if rule.kind == "if-then" else n for rule, n in zip(read, checked, strict=True)]
    table = pl.DataFrame(
        {
            "rule": [rule.text for rule in read],
            "kind": [rule.kind for rule in read],
            "checked": checked,
            "broken": broken,
            "share": [b / n if n else None for b, n in zip(broken, base, strict=True)],
            "share_where_it_applies": [b / n if n else None for b, n in zip(broken, checked, strict=True)],
        },
        schema_overrides={"share": pl.Float64, "share_where_it_applies": pl.Float64},
    )
    return frame, table, broken_records(frame, read).to_numpy()


def _by_kind(table: pl.DataFrame) -> dict[str, float | None]:
    means = dict(table.group_by("kind").agg(pl.col("share").mean()).iter_rows())
    return {kind.replace("-", "_"): means[kind] for kind in KINDS if kind in means}


def _caveats(table: pl.DataFrame) -> list[str]:
    never = table.filter(pl.col("checked") == 0).height
    return [f"{never} of {table.height} rules could not be checked on any record."] if never else []


# Move numbers onto the right side of a linear inequality, by the least amount.


def projected(
    frame: pl.DataFrame, left: Expression, operator: str, right: Expression, fixed: frozenset[str]
) -> pl.DataFrame:
    """Return the frame with each record moved onto ``left operator right`` where it is off.

    The step of each column is its slope in the gap between the sides, found by moving it by one; so it is exact for
    sums and differences, and left alone where the gap is no plain sum of columns.
    """
    names = [
        name
        for name in dict.fromkeys([*left.columns, *right.columns])
        if name not in fixed and frame.schema[name].is_numeric()
    ]
    if not names:
        return frame
    gap = (left.value.cast(pl.Float64) - right.value.cast(pl.Float64)).alias("gap")
    if operator in (">", ">="):
        gap = -gap
    whole = frame.with_columns(pl.col(names).cast(pl.Float64))
    here = whole.select(gap).to_series().to_numpy()
    slopes = {}
    for name in names:
        moved = [
            whole.with_columns(pl.col(name) + step).select(gap).to_series().to_numpy() - here
            for step in (1.0, 2.0)
        ]
        known = ~np.isnan(moved[0])
        slope = float(np.median(moved[0][known])) if known.any() else 0.0
        scale = 1e-6 * np.maximum(np.abs(here[known]), 1.0)
        if (np.abs(moved[0][known] - slope) > scale).any() or (
            np.abs(moved[1][known] - 2 * slope) > 2 * scale
        ).any():
            return frame
        slopes[name] = slope
    length = sum(slope**2 for slope in slopes.values())
    if length == 0:
        return frame
    excess = np.where(np.isnan(here), 0.0, np.maximum(here, 0.0)) / length
    columns = []
    for name, slope in slopes.items():
        values = whole[name] - pl.Series(excess * slope)
        dtype = frame.schema[name]
        if dtype.is_integer():
            # Whole numbers go to the next one on the right side.
            off = pl.Series(excess > 0)
            stepped = (values - 1e-9).ceil() if slope < 0 else (values + 1e-9).floor()
            columns.append(
                pl.select(
                    pl.when(off).then(stepped).otherwise(whole[name]).cast(dtype).alias(name)
                ).to_series()
            )
        else:
            columns.append(values.cast(dtype).alias(name))
    return frame.with_columns(columns)
