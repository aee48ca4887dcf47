"""Is every value of every column still as frequent, and do rare ones come back?

Errors of counts are given in people or in percent, whichever is less.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.cards import Figure, measure
from discreet.core.citations import FRANCIS_2024, PATKI_2016
from discreet.core.constraints import AtLeast, ColumnName, ColumnNames, HoldsValues, Share
from discreet.core.errors import ParameterError
from discreet.core.findings import OfReleaseStudy
from discreet.core.results import Measure
from discreet.microdata import Microdata
from discreet.utility.table_codes import Coding, Released


@measure(
    room="utility",
    title="Errors of counts",
    headline="median error of a count (people or percent, the smaller)",
    chapter="margins",
    place=40,
    work="whole-file",
    references=(FRANCIS_2024,),
    figures={
        "value": Figure("Median error of a count, composite", better="lower", summary=True),
        "mean_error": Figure("Mean error of a count, composite", better="lower"),
        "highest_error": Figure("Largest error of a count, composite", better="lower"),
        "median_people": Figure("Median error of a count, in people", better="lower"),
        "median_percent": Figure("Median error of a count", unit="percent", better="lower"),
        "counts": Figure("Counts compared"),
    },
    of_release=OfReleaseStudy(2),
)
def value_counts(
    original: Microdata,
    released: Any,
    *,
    columns: ColumnName | ColumnNames | None = None,
    bins: Annotated[int, AtLeast(2)] | None = 20,
    top_codes: Annotated[Mapping[str, float], HoldsValues(by_column=True)] | None = None,
    rate: Annotated[float, Share(above=True)] = 1.0,
) -> Measure:
    """Is every value of every column still as frequent?

    For each value the count in the release is held against that in the original: the error in people, the error in
    percent of the original count, and the smaller of the two (*composite*: two people too many among three are no
    disaster, and neither are a hundred among a million). A value that only the release has counts in people.

    Parameters
    ----------
    original, released
        The file before and after. The release may also be one of many tables, whose ``table_for`` gives the table of
        one column.
    columns
        The columns; all that both files have unless named.
    bins
        Numbers with more distinct values than this are cut into so many classes of about as many records; None counts
        every value by itself.
    top_codes
        ``{column: value}``: values of numbers that are codes and a class of their own.
    rate
        For a release that is a sample: its share of the original. Counts are divided by it.

    Returns
    -------
    Measure
        ``value`` is the median composite error. ``figures``: ``mean_error``, ``highest_error``, ``median_people``,
        ``median_percent``, ``counts``. ``detail``: ``columns``, the worst first.

    Examples
    --------
    >>> real = Microdata(pl.DataFrame({"sex": ["f"] * 60 + ["m"] * 40}))
    >>> made = Microdata(pl.DataFrame({"sex": ["f"] * 57 + ["m"] * 43}))
    >>> value_counts(real, made).figures["median_people"]
    3.0
    """
    files = Released(original, released)
    names = files.named(columns)
    if not names:
        raise ParameterError("The files have no column in common that could be counted.")
    rows, errors = [], []
    for name in names:
        most = len(files.real) + 1 if bins is None else bins
        coding = Coding(files.real[name], most, (top_codes or {}).get(name))
        before = np.bincount(coding.codes(files.real[name]), minlength=coding.size)
        after = np.bincount(coding.codes(files.table([name])[name]), minlength=coding.size) / rate
        there = (before > 0) | (after > 0)
        people = np.abs(before - after)[there]
        share = np.where(before[there] > 0, 100 * people / np.maximum(before[there], 1), np.inf)
        composite = np.minimum(people, share)
        rows.append((name, int(there.sum()), float(np.median(composite)), float(composite.max())))
        errors.append(np.column_stack([people, share, composite]))
    every = np.concatenate(errors)
    table = pl.DataFrame(rows, schema=["column", "counts", "median_error", "highest_error"], orient="row")
    figures = {
        "mean_error": float(every[:, 2].mean()),
        "highest_error": float(every[:, 2].max()),
        "median_people": float(np.median(every[:, 0])),
        "median_percent": float(np.median(every[:, 1])),
        "counts": len(every),
    }
    value = float(np.median(every[:, 2]))
    return Measure(
        "value_counts",
        value,
        figures,
        f"Half of {len(every):,} counts in {len(names)} columns are off by at most {value:.3g} (people or percent, "
        "whichever is less).",
        detail={"columns": table.sort("median_error", "highest_error", descending=True)},
        parameters={"bins": bins, "rate": rate},
    )


# Do rare categories come back in a release?


_RARE = 0.001


@measure(
    room="utility",
    title="Coverage of categories",
    headline="of the rare categories are there",
    chapter="margins",
    place=41,
    work="whole-file",
    references=(PATKI_2016,),
    figures={
        "value": Figure("Rare categories that are there", unit="share", better="higher", summary=True),
        "categories": Figure("Categories in the original"),
        "categories_released": Figure("Of these, categories in the release", better="higher"),
        "minority_change": Figure(
            "Largest change of the rarer of two classes, in percent points", better="lower"
        ),
    },
    of_release=OfReleaseStudy(5, shapes=("linked tables",)),
)
def category_coverage(
    original: Microdata,
    released: Microdata,
    *,
    columns: ColumnName | ColumnNames | None = None,
    rare: float = _RARE,
) -> Measure:
    """Do rare categories come back?

    Parameters
    ----------
    original, released
        The file before and after.
    columns
        Columns of categories; all texts, truth values and columns of two values that both files have unless named.
    rare
        Below this share of the records a category is rare.

    Returns
    -------
    Measure
        ``value`` is the share of rare categories that the release has; missing where there are none. ``figures``:
        ``categories``, ``categories_released``, ``minority_change``. ``detail``: ``columns``.

    Examples
    --------
    >>> real = Microdata(pl.DataFrame({"land": ["a"] * 98 + ["b", "c"]}))
    >>> made = Microdata(pl.DataFrame({"land": ["a"] * 99 + ["b"]}))
    >>> category_coverage(real, made, rare=0.05).value
    0.5
    """
    real, made = engine.collect(original), engine.collect(released)
    names = [columns] if isinstance(columns, str) else list(columns or _categories(real, made))
    for name in names:
        if name not in real.columns or name not in made.columns:
            raise ParameterError(f"Column '{name}' is not in both files.")
    if not names:
        raise ParameterError("Neither file has a column of categories. Name some under columns.")
    rows = []
    for name in names:
        before, after = (frame[name].drop_nulls().cast(pl.String) for frame in (real, made))
        shares = before.rename("level").value_counts(normalize=True, name="share")
        there = shares["level"].is_in(after.unique().implode())
        few = shares["share"] < rare
        change = None
        if shares.height == 2:
            least = shares.sort("share", "level")["level"][0]
            change = 100 * abs(float((after == least).mean() or 0) - float((before == least).mean() or 0))
        rows.append((name, shares.height, int(there.sum()), int(few.sum()), int((few & there).sum()), change))
    kinds = {"column": pl.String} | dict.fromkeys(
        ("categories", "released", "rare", "rare_released"), pl.Int64
    )
    table = pl.DataFrame(rows, schema={**kinds, "minority_change": pl.Float64}, orient="row")
    rarely = int(table["rare"].sum())
    changes = [row[-1] for row in rows if row[-1] is not None]
    value = int(table["rare_released"].sum()) / rarely if rarely else None
    return Measure(
        "category_coverage",
        value,
        {
            "categories": int(table["categories"].sum()),
            "categories_released": int(table["released"].sum()),
            "minority_change": max(changes) if changes else None,
        },
        f"{int(table['released'].sum()):,} of {int(table['categories'].sum()):,} categories are there, of {rarely:,} "
        f"rare ones {int(table['rare_released'].sum()):,}.",
        detail={"columns": table},
        parameters={"rare": rare},
    )


def _categories(real: pl.DataFrame, made: pl.DataFrame) -> list[str]:
    both = [name for name in real.columns if name in made.columns]
    return [
        name
        for name in both
        if real.schema[name] in (pl.String, pl.Boolean, pl.Categorical, pl.Enum) or real[name].n_unique() == 2
    ]
