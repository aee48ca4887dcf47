"""Do rare categories come back in a release?"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from discreet import engine
from discreet.core.cards import Figure, measure
from discreet.core.citations import PATKI_2016
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.core.results import Measure
from discreet.microdata import Microdata

_RARE = 0.001


@measure(
    title="Coverage of categories",
    question="Do rare categories come back?",
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
)
@checked
def category_coverage(
    original: Microdata,
    released: Microdata,
    *,
    columns: str | Sequence[str] | None = None,
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
