"""Do columns still hang together in one table or in many small ones? Looks that evaluations of excerpts take.

Kendall's rank correlation of every pair, slopes in every group of people, principal components, and a small tree
that tells released records from real ones.
"""

from __future__ import annotations

from itertools import combinations
from typing import Annotated, Any

import numpy as np
import polars as pl
import scipy

from discreet.core.arrays import Floats
from discreet.core.cards import Figure, measure
from discreet.core.citations import FRANCIS_2024, SNOKE_2018
from discreet.core.constraints import AtLeast, ColumnName, ColumnNames
from discreet.core.errors import ColumnError, ParameterError
from discreet.core.findings import OfReleaseStudy, ReleaseFacts
from discreet.core.progress import track
from discreet.core.results import Measure
from discreet.microdata import Microdata
from discreet.utility.table_codes import Released, as_numbers


@measure(
    room="utility",
    title="Rank correlations",
    headline="median change of a rank correlation (Kendall)",
    chapter="pairs",
    place=40,
    work="whole-file",
    references=(
        "Kendall, M. G. (1938). A new measure of rank correlation. Biometrika 30, 81–93.",
        FRANCIS_2024,
    ),
    figures={
        "value": Figure("Median change of a rank correlation", better="lower", summary=True),
        "mean_change": Figure("Mean change of a rank correlation", better="lower"),
        "highest_change": Figure("Largest change of a rank correlation", better="lower"),
        "pairs": Figure("Pairs of columns compared"),
    },
    of_release=OfReleaseStudy(3),
)
def rank_correlations(
    original: Microdata, released: Any, *, columns: ColumnName | ColumnNames | None = None
) -> Measure:
    """Do columns still rise and fall together?

    Kendall's tau-b of every pair of columns, before and after. Texts are taken in alphabetical order and missing
    values as smaller than all others, which makes the correlation of categories a mere fingerprint: it must be the
    same, whatever it means.

    Also known as: Kendall's tau; Spearman's rho.

    Parameters
    ----------
    original, released
        The file before and after. The release may also be one of many tables, whose ``table_for`` gives the table of
        two columns.
    columns
        The columns; all that both files have unless named.

    Returns
    -------
    Measure
        ``value`` is the median absolute change. ``figures``: ``mean_change``, ``highest_change``, ``pairs``.
        ``detail``: ``pairs``, the worst first.

    Examples
    --------
    >>> real = Microdata(pl.DataFrame({"age": [20, 30, 40, 50], "pay": [1, 2, 3, 4]}))
    >>> made = Microdata(pl.DataFrame({"age": [20, 30, 40, 50], "pay": [4, 3, 2, 1]}))
    >>> rank_correlations(real, made).value
    2.0
    """
    files = Released(original, released)
    names = files.named(columns)
    if len(names) < 2:
        raise ParameterError("Two columns are needed.")
    rows = []
    for one, other in combinations(names, 2):
        table = files.table([one, other])
        sides = [as_numbers(files.real[name], table[name]) for name in (one, other)]
        before, after = (tau(sides[0][which], sides[1][which]) for which in (0, 1))
        rows.append((one, other, before, after, abs(before - after)))
    schema = ["column", "other", "tau_original", "tau_released", "change"]
    table = pl.DataFrame(rows, schema=schema, orient="row").sort("change", descending=True)
    change = table["change"].to_numpy()
    value = float(np.median(change))
    return Measure(
        "rank_correlations",
        value,
        {"mean_change": float(change.mean()), "highest_change": float(change.max()), "pairs": len(rows)},
        f"Half of {len(rows):,} rank correlations changed by at most {value:.2g}.",
        detail={"pairs": table},
    )


def tau(one: Floats, other: Floats) -> float:
    """Return Kendall's tau-b; 0 where a column does not vary."""
    if len(one) < 2 or not np.ptp(one) or not np.ptp(other):
        return 0.0
    return float(scipy.stats.kendalltau(one, other).statistic)


# Does a line through two columns still rise as steeply, in every group of people?
_FEWEST = 3


def _of_named_columns(facts: ReleaseFacts) -> dict[str, Any] | None:
    return dict(zip(("y", "x", "by"), facts.slope, strict=False)) if facts.slope else None


@measure(
    room="utility",
    title="Slopes by group",
    question="Does a line through two columns rise as steeply in every group?",
    headline="mean change of a slope",
    chapter="specific",
    place=40,
    work="whole-file",
    references=(FRANCIS_2024,),
    figures={
        "value": Figure("Mean change of a slope", better="lower", summary=True),
        "highest_change": Figure("Largest change of a slope", better="lower"),
        "groups": Figure("Groups compared"),
        "lost": Figure("Groups in which the release has no slope", better="lower"),
    },
    of_release=OfReleaseStudy(9, _of_named_columns),
)
def subgroup_slopes(
    original: Microdata, released: Any, *, y: ColumnName, x: ColumnName, by: ColumnName | None = None
) -> Measure:
    """Does a line through two columns rise as steeply in every group of people?

    Also known as: Simpson's paradox; group fits.

    Parameters
    ----------
    original, released
        The file before and after, or a release of many tables.
    y, x
        The columns of numbers: what is explained, and by what.
    by
        The column that says the group; everybody is one unless given.

    Returns
    -------
    Measure
        ``value`` is the mean absolute difference of the slopes. ``figures``: ``highest_change``, ``groups``, ``lost``
        (groups that have a slope in the original and none in the release). ``detail``: ``groups``.

    Examples
    --------
    >>> real = Microdata(pl.DataFrame({"school": [8, 10, 12, 14], "pay": [1, 2, 3, 4]}))
    >>> made = Microdata(pl.DataFrame({"school": [8, 10, 12, 14], "pay": [1, 3, 5, 7]}))
    >>> subgroup_slopes(real, made, y="pay", x="school").value
    0.5
    """
    if len({y, x, by}) < 3:
        raise ParameterError("y, x and by must be different columns.")
    files = Released(original, released)
    names = files.named([y, x, *([by] if by else [])])
    for name in (y, x):
        if not files.real.schema[name].is_numeric():
            raise ColumnError(f"Column '{name}' holds no numbers; a line needs two columns of numbers.")
    before, after = _slopes(files.real, y, x, by), _slopes(files.table(names), y, x, by)
    if not before.height:
        raise ParameterError("No group has enough different values for a line. Name a coarser group with by.")
    both = before.join(after, on="group", how="left", suffix="_released", maintain_order="left")
    both = both.with_columns((pl.col("slope_released") - pl.col("slope")).abs().alias("change"))
    known = both.drop_nulls("change")["change"].to_numpy()
    lost = both["change"].null_count()
    value = float(known.mean()) if len(known) else float("nan")
    return Measure(
        "subgroup_slopes",
        value if np.isfinite(value) else None,
        {
            "highest_change": float(known.max()) if len(known) else None,
            "groups": both.height,
            "lost": lost,
        },
        f"The slope of '{y}' on '{x}' differs by {value:.3g} on average over {len(known)} groups."
        if len(known)
        else f"The release has no slope of '{y}' on '{x}' in any group.",
        detail={"groups": both.sort("change", descending=True, nulls_last=True)},
        parameters={"y": y, "x": x, "by": by},
    )


def _slopes(frame: pl.DataFrame, y: str, x: str, by: str | None) -> pl.DataFrame:
    """Fit a line by group; groups of fewer than three records, or of one value, have none."""
    group = pl.col(by).cast(pl.String) if by else pl.lit("all")
    plain = frame.select(
        group.alias("group"), pl.col(x).cast(pl.Float64).alias("x"), pl.col(y).cast(pl.Float64).alias("y")
    ).drop_nulls(["x", "y"])
    found = plain.group_by("group").agg(
        pl.len().alias("records"), pl.cov("x", "y").alias("both"), pl.col("x").var().alias("spread")
    )
    found = found.filter((pl.col("records") >= _FEWEST) & (pl.col("spread") > 0)).sort("group")
    return found.select("group", "records", (pl.col("both") / pl.col("spread")).alias("slope"))


# Do the records lie in the same directions? Principal components of the original, and both files seen along them.
@measure(
    room="utility",
    title="Principal components",
    headline="mean distance along the main components (KS)",
    chapter="joint",
    place=41,
    work="whole-file",
    references=(FRANCIS_2024,),
    figures={
        "value": Figure("Mean distance along a component (KS)", better="lower", summary=True),
        "highest": Figure("Largest distance along a component (KS)", better="lower"),
        "explained": Figure("Variance that the components explain", unit="share"),
        "components": Figure("Components"),
    },
    of_release=OfReleaseStudy(6, shapes=("file",)),
)
def shared_components(
    original: Microdata,
    released: Any,
    *,
    columns: ColumnName | ColumnNames | None = None,
    components: Annotated[int, AtLeast(1)] = 5,
) -> Measure:
    """Do the records spread in the same directions?

    Columns are coded (texts in alphabetical order, missing as -1) and brought to mean 0 and deviation 1 of the
    original. Both files are then seen along the main components of the original; along each, the largest distance of
    their distribution functions is taken (Kolmogorov and Smirnov).

    Parameters
    ----------
    original, released
        The file before and after. A release of many tables needs one that has all columns together.
    columns
        The columns; all that both files have unless named.
    components
        How many components.

    Returns
    -------
    Measure
        ``value`` is the mean distance. ``figures``: ``highest``, ``explained``, ``components``. ``detail``:
        ``components``.

    Examples
    --------
    >>> data = Microdata(pl.DataFrame({"a": [1, 2, 3, 4], "b": [2, 4, 6, 9]}))
    >>> shared_components(data, data, components=1).value
    0.0
    """
    files = Released(original, released)
    names = files.named(columns)
    table = files.table(names)
    pairs = [as_numbers(files.real[name], table[name]) for name in names]
    kept = [pair for pair in pairs if np.ptp(pair[0]) > 0]
    if len(kept) < 2 or not table.height:
        raise ParameterError("Two columns that vary are needed, and a release that is not empty.")
    real, made = (np.column_stack([pair[which] for pair in kept]) for which in (0, 1))
    mean, deviation = real.mean(axis=0), real.std(axis=0)
    real, made = (real - mean) / deviation, (made - mean) / deviation
    values, directions = np.linalg.eigh(np.cov(real, rowvar=False))
    chosen = np.argsort(values)[::-1][:components]
    distances = [
        float(
            scipy.stats.ks_2samp(real @ directions[:, at], made @ directions[:, at], method="asymp").statistic
        )
        for at in chosen
    ]
    shares = values[chosen] / values.sum()
    value = float(np.mean(distances))
    return Measure(
        "shared_components",
        value,
        {
            "highest": float(max(distances)),
            "explained": float(shares.sum()),
            "components": len(distances),
        },
        f"Along {len(distances)} main components the distributions are {value:.3g} apart on average (at most 1).",
        detail={
            "components": pl.DataFrame(
                {
                    "component": np.arange(1, len(distances) + 1),
                    "explained": shares,
                    "distance": distances,
                }
            )
        },
        parameters={"components": components},
    )


# Can a small tree tell released records from real ones, table by table?


@measure(
    room="utility",
    title="Propensity by table",
    headline="mean squared propensity difference, mean over tables",
    chapter="joint",
    place=42,
    work="whole-file",
    references=(SNOKE_2018, FRANCIS_2024),
    figures={
        "value": Figure("pMSE, mean over tables", better="lower", summary=True),
        "highest": Figure("pMSE of the worst table", better="lower"),
        "tables": Figure("Tables compared"),
        "empty": Figure("Released tables without a record", better="lower"),
    },
    of_release=OfReleaseStudy(4),
)
def table_propensity(
    original: Microdata,
    released: Any,
    *,
    columns: ColumnName | ColumnNames | None = None,
    depth: Annotated[int, AtLeast(1)] = 6,
    most: Annotated[int, AtLeast(1)] | None = None,
    progress: bool = False,
) -> Measure:
    """Can a small tree tell released records from real ones, table by table?

    A classification tree of some depth learns to tell the records of a table from the same columns of the original;
    pMSE is the mean squared distance of its shares from the share of released records. Files that are the same have
    0; the tree is fitted to the records it judges, so even a perfect release has a little more.

    Also known as: pMSE of tables.

    Parameters
    ----------
    original, released
        The file before and after. Of a release of many tables every table is judged, and the mean taken.
    columns
        The columns; all that both files have unless named.
    depth
        How many questions the tree may ask one after the other.
    most
        Judge only the first so many tables of a release of many.
    progress
        Show a progress bar on a terminal.

    Returns
    -------
    Measure
        ``value`` is the mean over tables. ``figures``: ``highest``, ``tables``, ``empty``. ``detail``: ``tables``,
        the worst first.

    Examples
    --------
    >>> data = Microdata(pl.DataFrame({"a": [1, 2] * 20, "b": [1, 2, 3, 4] * 10}))
    >>> table_propensity(data, data).value
    0.0
    """
    from sklearn.tree import DecisionTreeClassifier

    files = Released(original, released)
    names = files.named(columns)
    sets = files.tables(names)[:most]
    if not sets:
        raise ParameterError("The release has no table of these columns.")
    rows, empty = [], 0
    for own in track(sets, description="Telling tables apart", progress=progress and len(sets) > 1):
        table = files.table(own)
        if not table.height:
            empty += 1
            continue
        pairs = [as_numbers(files.real[name], table[name]) for name in own]
        x = np.column_stack([np.concatenate(pair) for pair in pairs])
        real = files.real.height
        is_made = np.arange(len(x)) >= real
        grown = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(x, is_made)
        score = grown.predict_proba(x)[:, 1]
        rows.append((", ".join(own), len(own), float(((score - table.height / len(x)) ** 2).mean())))
    if not rows:
        raise ParameterError("Every released table is empty: there is nothing to tell apart.")
    table = pl.DataFrame(rows, schema=["table", "columns", "pmse"], orient="row").sort(
        "pmse", descending=True
    )
    value = float(np.mean([row[2] for row in rows]))
    return Measure(
        "table_propensity",
        value,
        {"highest": float(table["pmse"][0]), "tables": len(rows), "empty": empty},
        f"Over {len(rows):,} tables the mean squared propensity difference is {value:.2g} (0 at best, 0.25 at worst "
        "for files of one size).",
        detail={"tables": table},
        parameters={"depth": depth},
    )
