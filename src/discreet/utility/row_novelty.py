"""Are the released records new, or real ones in disguise? Shares of new rows over a range of tolerances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats
from discreet.core.cards import Figure, OfPair, OfStudy, measure
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.core.results import Detail, Measure
from discreet.core.wording import percent
from discreet.engine.precision import Setting
from discreet.microdata import Microdata
from discreet.numerics.distance.boxes import Reach, reach_to_nearest
from discreet.numerics.distance.space import as_float
from discreet.pairs.side_by_side import plain_rows, side_by_side, stated_precision
from discreet.utility.counted_novelty import equal_rows

Scale = Literal["value", "range"]

_SLACK = 1e-12


@measure(
    work="whole-file",
    title="New records",
    question="How many released records match no real one?",
    headline="of the records are new",
    chapter="found",
    place=9,
    figures={
        "value": Figure(unit="share", better="higher"),
        "new_share": Figure("Records that match no real one", unit="share"),
        "new_share_exact": Figure(
            "Records that equal no real one", unit="share", words={"rule": "share that equals no real record"}
        ),
        "copied_share": Figure("Unlike any other real record, and come back whole", unit="share"),
        "new_share_holdout": Figure("The same of the hold-out", unit="share"),
        "excess_matches": Figure("Matches beyond those of the hold-out", better="lower", summary=True),
        "median_tolerance": Figure("Tolerance of a number, median"),
        "new_share_by_chance": Figure("The same of new people, about", unit="share"),
        "copied": Figure("People like no other who come back whole", better="lower"),
        "copied_by_chance": Figure("By chance, if the release held new people"),
        "copied_beyond_chance": Figure("Of those people, beyond chance", unit="share", better="lower"),
    },
    compare=OfPair(20, "risk", takes_copies=False, one_type=True, effort=2, past_memory=equal_rows),
    study=OfStudy(9),
)
@checked
def new_rows(
    original: Microdata,
    released: Microdata,
    *,
    tolerance: float = 0.01,
    tolerances: Sequence[float] | None = None,
    scale: Scale = "value",
    holdout: Microdata | None = None,
    columns: Sequence[str] | None = None,
    categorical: Sequence[str] = (),
    precision: Setting = None,
) -> Measure:
    """Which share of the released records matches no real one?

    A released record is matched if some real one agrees with it in every column: equal categories, missing where it is
    missing, and numbers that differ by at most the tolerance (the definition of SDMetrics' new-row score). One search
    finds the smallest tolerance that matches a record, and with it the whole curve.

    A comparison of files that are too large to hold counts equal records alone, over all of both files, where they are.

    Parameters
    ----------
    original, released
        The real file and the release.
    tolerance
        Where to read the headline off the curve.
    tolerances
        Where to compute the curve; 0 to 1 in steps of 0.05, with 0.01, unless given.
    scale
        ``value``: a share of the released number itself, so that zero matches only zero and a tolerance of 1 matches
        anything from 0 to its double. ``range``: a share of the range of the real column, the same for all records.
    holdout
        Real people who were not used to make the release. Their share of new rows is the baseline: people are alike,
        so not every match is a copy.
    columns
        Columns to compare; all but identifiers, weights and the like unless named.
    categorical
        Numeric columns whose numbers are codes.
    precision
        How precisely numbers are compared: ``detected`` (as both files have them), ``exact`` (to the last bit), a
        number of decimals, or one of these by column.

    Returns
    -------
    Measure
        ``value`` is the share of new records at ``tolerance``: 1 when all are new. ``figures``: ``new_share``,
        ``new_share_exact`` (tolerance 0), ``copied_share`` (the share of real records that are like no other and
        come back whole), ``new_share_holdout``, ``excess_matches`` (matched share beyond that of the hold-out),
        ``median_tolerance``. ``detail``: ``curve`` and ``records`` (nearest real record and the tolerance it takes).
        In a comparison of files that are too large to hold, what depends on a tolerance is undefined unless that is 0.
        There are also ``new_share_by_chance`` (of new people, about), ``copied`` (how many people who are like no other
        come back whole), ``copied_by_chance`` (how many would if the release held new people) and
        ``copied_beyond_chance`` (the share of those people beyond that).

    Examples
    --------
    >>> real = Microdata(pl.DataFrame({"x": [100.0, 200.0, 0.0], "c": ["a", "b", "a"]}))
    >>> fakes = Microdata(pl.DataFrame({"x": [101.0, 230.0, 0.0, 0.5, -100.0], "c": ["a", "b", "a", "a", "a"]}))
    >>> [new_rows(real, fakes, tolerance=t).value for t in (0, 0.01, 0.15, 0.5)]
    [0.8, 0.6, 0.4, 0.4]
    """
    steps = _checked(tolerance, tolerances, scale)
    compared, codes, tables, agreed = side_by_side(
        original, released, holdout, columns, categorical=categorical, precision=precision, writing_only=True
    )
    names = compared.names
    reaches = [_reach(tables[0], table, codes, scale) for table in tables[1:]]
    found = reaches[0]
    figures: dict[str, Any] = {
        "new_share": _new(found, tolerance),
        "new_share_exact": _new(found, 0.0),
        "copied_share": _copied_uniques(tables[0], found),
        "new_share_holdout": None,
        "excess_matches": None,
        "median_tolerance": float(np.median(found.tolerance))
        if np.isfinite(np.median(found.tolerance))
        else None,
    }
    if holdout is not None:
        figures["new_share_holdout"] = _new(reaches[1], tolerance)
        figures["excess_matches"] = figures["new_share_holdout"] - figures["new_share"]
    return Measure(
        name="new_rows",
        value=figures["new_share"],
        figures=figures,
        meaning=_in_words(figures, tables[1].height, tolerance, scale),
        caveats=[*compared.caveats, *agreed.caveats, *_caveats(scale, holdout)],
        parameters={
            "tolerance": tolerance,
            "scale": scale,
            "columns": list(names),
            "categorical": list(codes),
            "holdout": holdout is not None,
            "precision": stated_precision(precision, agreed.parameters),
        },
        detail=Detail(
            curve=lambda: engine.like(released, _curve(reaches, steps)),
            records=lambda: engine.like(
                released,
                pl.DataFrame(
                    {
                        "record": np.arange(len(found.tolerance)),
                        "nearest_original": found.nearest,
                        "tolerance": found.tolerance,
                    }
                ),
            ),
        ),
    )


def _checked(tolerance: float, tolerances: Sequence[float] | None, scale: str) -> Floats:
    if scale not in ("value", "range"):
        raise ParameterError("scale must be 'value' or 'range'.")
    steps = [0.01, *np.arange(21) / 20] if tolerances is None else list(tolerances)
    every = np.unique(np.array([tolerance, *steps], dtype=np.float64))
    if not np.isfinite(every).all() or (every < 0).any():
        raise ParameterError("A tolerance must be a number of zero or above.")
    return every


def _reach(original: pl.DataFrame, released: pl.DataFrame, codes: Sequence[str], scale: Scale) -> Reach:
    numeric = [
        name
        for name, dtype in original.schema.items()
        if (dtype.is_numeric() or dtype.is_temporal()) and name not in codes
    ]
    others, numbers = (_numbers(table, numeric) for table in (original, released))
    ours, theirs = plain_rows(original), plain_rows(released)
    equal = [(theirs[name], ours[name]) for name in original.columns if name not in numeric]
    # Missing agrees with missing and with nothing else.
    equal += [
        (pl.Series(np.isnan(a)), pl.Series(np.isnan(b))) for a, b in zip(numbers.T, others.T, strict=True)
    ]
    if scale == "value":
        units = np.abs(numbers)
    else:
        spans = [
            np.nanmax(column) - np.nanmin(column) if (~np.isnan(column)).any() else 0.0 for column in others.T
        ]
        units = np.broadcast_to(np.array(spans, dtype=np.float64), numbers.shape)
    return reach_to_nearest(np.nan_to_num(numbers), np.nan_to_num(units), np.nan_to_num(others), equal=equal)


def _numbers(table: pl.DataFrame, names: Sequence[str]) -> Floats:
    columns = [as_float(table[name]) for name in names]
    return np.column_stack(columns) if columns else np.empty((table.height, 0))


def _new(found: Reach, tolerance: float) -> float:
    return float((found.tolerance > tolerance * (1 + _SLACK) + _SLACK).mean())


def _copied_uniques(original: pl.DataFrame, found: Reach) -> float:
    alone = plain_rows(original).is_unique().to_numpy()
    whole = np.unique(found.nearest[found.tolerance <= _SLACK])
    return float(alone[whole].sum() / len(alone))


def _curve(reaches: Sequence[Reach], steps: Floats) -> pl.DataFrame:
    table = {"tolerance": steps}
    for name, found in zip(("new", "new_holdout"), reaches, strict=False):
        ordered = np.sort(found.tolerance)
        matched = np.searchsorted(ordered, steps * (1 + _SLACK) + _SLACK, side="right")
        table[name] = 1 - matched / len(ordered)
    return pl.DataFrame(table)


def _in_words(figures: dict[str, Any], n: int, tolerance: float, scale: Scale) -> str:
    of_what = "of their own size" if scale == "value" else "of the range of the column"
    text = (
        f"{percent(figures['new_share'])} of {n:,} released records match no real one when numbers may differ by "
        f"{percent(tolerance)} {of_what}"
    )
    if figures["copied_share"] > 0:
        text += f"; {percent(figures['copied_share'])} of the real ones are like no other and come back whole"
    if figures["new_share_holdout"] is not None:
        text += f"; of real people who were not used it is {percent(figures['new_share_holdout'])}"
    return f"{text}."


def _caveats(scale: Scale, holdout: Microdata | None) -> list[str]:
    caveats = []
    if scale == "value":
        caveats.append(
            "The tolerance is relative to the released number: zero matches only zero, and large numbers match widely."
        )
    if holdout is None:
        caveats.append("Without a hold-out nobody knows how many matches are mere chance.")
    return caveats
