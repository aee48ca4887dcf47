"""Is a protected release still possible? Counts that were promised exact, and things that cannot be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import narwhals as nw
import polars as pl

from discreet.core.constraints import ColumnName
from discreet.core.errors import ColumnError, InputError, ParameterError, need_known
from discreet.core.parameters import checked
from discreet.core.results import Detail, Measure
from discreet.core.wording import percent

_CLOSE = 1e-6


@checked
def invariant_violations(
    persons: Any,
    *,
    unit: ColumnName,
    count: ColumnName = "count",
    original: Any = None,
    invariants: Mapping[str, pl.Expr | bool] | None = None,
    households: Any = None,
    living_in: ColumnName | None = None,
    elsewhere: ColumnName | None = None,
    adults: pl.Expr | None = None,
    uninhabitable: Sequence[Any] = (),
    groups: Sequence[Any] = (),
) -> Measure:
    """Where does a protected release break a promise, or say what cannot be?

    Noise, rounding and swapping can leave places with people and no households, places where only children live,
    parts that do not add up, counts below zero. Each such place tells readers that the figures were changed, and some
    tell them how.

    Parameters
    ----------
    persons
        The released counts of people: one row a unit (place) and combination of whatever else.
    unit
        The column of the place.
    count
        The column of counts, in all tables.
    original
        The counts before protection, of the same layout: what the invariants are held against.
    invariants
        By name the rows whose sum in every place was promised to be exact: ``True`` for all people, or a condition
        such as ``pl.col("age") >= 18``. With an original and no invariants the total population.
    households
        The released counts of households by place.
    living_in
        The column of ``households`` that says how many people live in them: their sum in a place must be that of the
        people released there.
    elsewhere
        The column of ``households`` that says how many people of a place live in no household (institutions).
    adults
        The condition for rows of adults: a place with people and without adults is reported.
    uninhabitable
        Places where nobody can live.
    groups
        Released counts of larger places: frames with the columns ``unit`` (the small place), ``group`` and a count of
        the group under ``count``, one row a small place; the parts of a group must add up to it.

    Returns
    -------
    Measure
        ``value`` is the share of places with any violation. ``figures`` counts places by kind of violation.
        ``detail["violations"]``: ``check``, ``unit`` (or the group), ``released`` and ``expected``.

    How to read it
    --------------
    0 means that every check passed. A check that was not asked for, for want of a table, is not among the figures.

    When not to trust it
    --------------------
    A release can pass all checks and be wrong everywhere: this is about what is promised and possible, not about error.

    Examples
    --------
    >>> people = pl.DataFrame({"block": ["a", "a", "b"], "age": [40, 5, 7], "count": [3, 2, 1]})
    >>> homes = pl.DataFrame({"block": ["a", "b"], "count": [2, 0]})
    >>> found = invariant_violations(people, unit="block", households=homes, adults=pl.col("age") >= 18)
    >>> found.value, found.figures["children_only"], found.figures["persons_without_households"]
    (0.5, 1, 1)
    """
    people = _frame(persons, "persons", [unit, count])
    if not people.height:
        raise InputError("persons has no rows: there is nothing to check.")
    totals = _by_place(people, unit, count)
    found = {
        "negative": _rows(people.filter(pl.col(count) < 0), unit, count, None),
        "not_whole": _rows(
            people.filter((pl.col(count) - pl.col(count).round()).abs() > _CLOSE), unit, count, None
        ),
    }
    if original is not None:
        before = _frame(original, "original", [unit, count])
        for name, rows in (invariants or {"total": True}).items():
            found[f"invariant {name}"] = _changed(people, before, unit, count, rows)
    elif invariants:
        raise ParameterError(
            "invariants are held against the counts before protection: give them as original."
        )
    if households is not None:
        wanted = [unit, count, *(name for name in (living_in, elsewhere) if name)]
        homes = _frame(households, "households", wanted)
        found |= _housed(totals, homes, unit, count, living_in, elsewhere)
    elif living_in or elsewhere:
        raise ParameterError("living_in and elsewhere are columns of households: give that table.")
    if adults is not None:
        grown = _by_place(people.filter(adults), unit, count, name="grown")
        alone = totals.join(grown, on=unit, how="left").filter(
            (pl.col("people") > 0) & (pl.col("grown").fill_null(0) <= 0)
        )
        found["children_only"] = _rows(alone, unit, "people", 0.0)
    if len(uninhabitable):
        there = totals.filter(pl.col(unit).is_in(list(uninhabitable)) & (pl.col("people") > 0))
        found["uninhabitable"] = _rows(there, unit, "people", 0.0)
    for number, level in enumerate(groups, 1):
        name = "not_additive" if len(groups) == 1 else f"not_additive level {number}"
        found[name] = _torn(
            totals, _frame(level, f"groups[{number - 1}]", [unit, "group", count]), unit, count
        )
    listed = pl.concat([frame.with_columns(check=pl.lit(name)) for name, frame in found.items()])
    listed = listed.select("check", "unit", "released", "expected")
    places = totals[unit].cast(pl.String)
    broken = listed["unit"].unique()
    share = int(places.is_in(broken.implode()).sum()) / totals.height
    figures = {name: frame["unit"].n_unique() for name, frame in found.items()}
    kinds = sum(1 for number in figures.values() if number)
    return Measure(
        name="invariant_violations",
        value=share,
        figures={"units": totals.height, **figures},
        meaning=(
            f"All {len(figures)} checks hold in all {totals.height:,} places."
            if not kinds
            else f"{kinds} of {len(figures)} checks fail somewhere; {percent(share)} of {totals.height:,} places have "
            "a violation."
        ),
        caveats=["A release that passes every check can still be wrong everywhere: this is not about error."],
        parameters={"unit": unit, "checks": list(figures)},
        detail=Detail(violations=lambda: listed),
    )


def _frame(given: Any, what: str, columns: Sequence[str]) -> pl.DataFrame:
    try:
        frame: pl.DataFrame = nw.from_native(given, eager_only=True).to_polars()
    except TypeError as error:
        raise InputError(f"{what} must be a data frame, not {type(given).__name__}.") from error
    need_known(columns, frame.columns, before=f"{what}: ")
    for name in columns[1:]:
        if name != "group" and not frame.schema[name].is_numeric():
            raise ColumnError(f"{what}: column '{name}' is not numeric. Convert it first.")
        if frame[name].null_count():
            raise ColumnError(f"{what}: column '{name}' is missing in {frame[name].null_count():,} rows.")
    return frame


def _by_place(frame: pl.DataFrame, unit: str, count: str, *, name: str = "people") -> pl.DataFrame:
    return frame.group_by(unit, maintain_order=True).agg(pl.col(count).sum().cast(pl.Float64).alias(name))


def _rows(frame: pl.DataFrame, unit: str, released: str, expected: float | str | None) -> pl.DataFrame:
    """Violations in one layout: the place, what was released, what it should be."""
    should: pl.Expr = pl.col(expected) if isinstance(expected, str) else pl.lit(expected, dtype=pl.Float64)
    return frame.select(
        pl.col(unit).cast(pl.String).alias("unit"),
        pl.col(released).cast(pl.Float64).alias("released"),
        should.cast(pl.Float64).alias("expected"),
    )


def _changed(
    people: pl.DataFrame, before: pl.DataFrame, unit: str, count: str, rows: pl.Expr | bool
) -> pl.DataFrame:
    if isinstance(rows, bool) and not rows:
        raise ParameterError(
            "An invariant is True (all people) or a condition on rows, such as pl.col('age') >= 18."
        )
    chosen: Callable[[pl.DataFrame], pl.DataFrame] = (
        (lambda frame: frame) if isinstance(rows, bool) else (lambda frame: frame.filter(rows))
    )
    now = _by_place(chosen(people), unit, count, name="now")
    then = _by_place(chosen(before), unit, count, name="then")
    both = then.join(now, on=unit, how="full", coalesce=True).with_columns(
        pl.col("now", "then").fill_null(0.0)
    )
    return _rows(both.filter((pl.col("now") - pl.col("then")).abs() > _CLOSE), unit, "now", "then")


def _housed(  # noqa: PLR0917
    totals: pl.DataFrame,
    homes: pl.DataFrame,
    unit: str,
    count: str,
    living_in: str | None,
    elsewhere: str | None,
) -> dict[str, pl.DataFrame]:
    """People and households of every place held against each other."""
    sums = [
        (pl.col(column).sum() if column else pl.lit(0)).cast(pl.Float64).alias(name)
        for name, column in (("homes", count), ("elsewhere", elsewhere), ("living", living_in))
    ]
    both = (
        totals.join(homes.group_by(unit, maintain_order=True).agg(sums), on=unit, how="full", coalesce=True)
        .with_columns(pl.col("people", "homes", "elsewhere", "living").fill_null(0.0))
        .with_columns(
            housed=pl.col("people") - pl.col("elsewhere"), derived=pl.col("living") + pl.col("elsewhere")
        )
    )
    found = {
        "persons_without_households": _rows(
            both.filter((pl.col("housed") > 0) & (pl.col("homes") <= 0)), unit, "people", None
        ),
        "households_without_persons": _rows(
            both.filter((pl.col("housed") <= 0) & (pl.col("homes") > 0)), unit, "people", None
        ),
    }
    if living_in:
        apart = both.filter((pl.col("people") - pl.col("derived")).abs() > _CLOSE)
        found["persons_not_those_of_households"] = _rows(apart, unit, "people", "derived")
    return found


def _torn(totals: pl.DataFrame, level: pl.DataFrame, unit: str, count: str) -> pl.DataFrame:
    """Groups that are not the sum of their places."""
    stated = level.group_by("group", maintain_order=True).agg(
        pl.col(count).first().cast(pl.Float64).alias("stated"), pl.col(count).n_unique().alias("many")
    )
    if (stated["many"] > 1).any():
        raise InputError(
            "A group has different counts in different rows of groups. Give each group one count."
        )
    added = (
        level.select(unit, "group")
        .join(totals, on=unit, how="left")
        .group_by("group", maintain_order=True)
        .agg(pl.col("people").fill_null(0.0).sum())
    )
    both = stated.join(added, on="group").filter((pl.col("stated") - pl.col("people")).abs() > _CLOSE)
    return _rows(both, "group", "stated", "people")
