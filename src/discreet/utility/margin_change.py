"""Is each column, by itself, still what it was? Distances between distributions, moments, gaps, ranges and levels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats
from discreet.core.cards import Figure, OfPair, OfStudy, Shown, measure
from discreet.core.charts import rows_of
from discreet.core.citations import RAAB_2021
from discreet.core.constraints import ColumnName, ColumnNames, Entries, Public, Share
from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.core.findings import Beside, Finding, Headline, OfReleases, OfWorst
from discreet.core.results import Measure
from discreet.core.wording import percent
from discreet.microdata import Microdata
from discreet.pairs.side_by_side import DEPENDENT, compared_columns, copies_of, names_checked, weights_of
from discreet.utility import column_distributions as distributions
from discreet.utility.column_pictures import pictures_of_margins
from discreet.utility.table_distances import table_distances

_MOST_ROWS = 10
_WORTH_SAYING = {"distance": 0.05, "lost": 0.01, "missing": 0.02, "gaps": 0.005}
"""From which share of the records on a change is worth a sentence."""


def _what_moved(found: Measure, beside: Beside) -> Iterator[Finding]:
    every = rows_of(found, "variables")
    empty = [
        row["column"]
        for row in every
        if row.get("missing_after") == 1 and (row.get("missing_before") or 0) < 1
    ]
    if empty:
        named = ", ".join(map(repr, empty[:_MOST_ROWS]))
        more = f" and {len(empty) - _MOST_ROWS} more" if len(empty) > _MOST_ROWS else ""
        yield Finding(
            "column emptied", math.inf, f"Nothing is left of {named}{more}: every value was suppressed."
        )
    rows = [row for row in every if row["column"] not in empty]
    moved = [row for row in rows if (row["distance"] or 0) >= _WORTH_SAYING["distance"]]
    for row in moved[:3]:
        how = (
            "the share of people below some value differs by"
            if row["kind"] == "number"
            else "the records in other levels are"
        )
        yield Finding(
            "column moved",
            row["distance"] / _WORTH_SAYING["distance"],
            f"Column '{row['column']}' is not what it was: {how} {percent(row['distance'])}.",
        )
    for row in rows:
        lost = row.get("lost_share") or 0
        if lost >= _WORTH_SAYING["lost"]:
            count = int(row.get("lost_levels") or 0)
            levels = "1 level is" if count == 1 else f"{count:,} levels are"
            yield Finding(
                "levels lost",
                2 * lost / _WORTH_SAYING["lost"],
                f"{levels} gone from '{row['column']}', which {percent(lost)} of the original records have.",
            )
        gap = abs((row.get("missing_after") or 0) - (row.get("missing_before") or 0))
        if gap >= _WORTH_SAYING["missing"]:
            yield Finding(
                "missing values",
                gap / _WORTH_SAYING["missing"],
                f"Missing values of '{row['column']}' went from {percent(row['missing_before'])} to "
                f"{percent(row['missing_after'])}.",
            )


def columns_with_new_gaps(found: Measure | None) -> frozenset[str]:
    """Name the columns in which values were suppressed."""
    return frozenset(
        row["column"]
        for row in rows_of(found, "variables")
        if (row.get("missing_after") or 0) - (row.get("missing_before") or 0) >= _WORTH_SAYING["gaps"]
    )


def _columns_by_distance(found: Measure, beside: Beside) -> Iterator[dict[str, Any]]:
    """List the columns that came off worst, by themselves and in their tables."""
    tables = {row["column"]: row for row in rows_of(beside.measures.get("tabular"), "variables")}
    for row in rows_of(found, "variables")[:_MOST_ROWS]:
        if row["distance"]:
            yield {
                "column": row["column"],
                "kind": row["kind"],
                "distance": row["distance"],
                "mean_S_pMSE": tables.get(row["column"], {}).get("mean_S_pMSE"),
                "lost_share": row.get("lost_share"),
            }


@measure(
    room="utility",
    work="class-wise",
    title="Columns by themselves",
    question="Does each column, by itself, have the shares and quantiles it had?",
    headline="largest distance of a column",
    chapter="margins",
    place=1,
    leading=True,
    references=(RAAB_2021,),
    figures={
        "value": Figure(unit="share", better="lower"),
        "max_distance": Figure("Largest distance of a column", unit="share"),
        "mean_distance": Figure("Mean distance of a column", unit="share", better="lower", summary=True),
        "mean_ks_complement": Figure("Agreement of numeric columns (1 is complete), mean"),
        "mean_tv_complement": Figure("Agreement of columns of categories (1 is complete), mean"),
        "mean_wasserstein_sd": Figure("Columns moved by (standard deviations), mean"),
        "mean_hellinger": Figure("Distance of columns (Hellinger), mean"),
        "sum_hellinger": Figure("Distance of columns (Hellinger), sum"),
        "share_means_inside": Figure("Means within the original's confidence interval", unit="share"),
        "share_variances_inside": Figure("Variances within the original's confidence interval", unit="share"),
        "share_quantiles_inside": Figure("Quantiles within the original's confidence interval", unit="share"),
        "max_missing_change": Figure("Largest change of a share of missing values", unit="share"),
        "lost_levels": Figure("Levels lost"),
        "lost_share": Figure(
            "Share of the original in lost levels", unit="share", better="lower", summary=True
        ),
        "invented_levels": Figure("Levels that the original does not have"),
        "max_gini_change": Figure("Largest change of inequality (Gini coefficient)"),
        "columns": Figure("Columns compared"),
    },
    columns={
        "missing_after": Figure("Missing after", unit="share"),
        "missing_before": Figure("Missing before", unit="share"),
        "wasserstein_sd": Figure("Moved by (standard deviations)"),
    },
    tables=(
        Shown(
            "variables",
            "By column, worst first",
            (
                "column",
                "kind",
                "distance",
                "wasserstein_sd",
                "lost_levels",
                "lost_share",
                "missing_before",
                "missing_after",
            ),
        ),
    ),
    compare=OfPair(2, "utility", at_once=True),
    study=OfStudy(4),
    worst=OfWorst(
        1,
        _what_moved,
        {"variables": _columns_by_distance},
        nothing_differs=lambda found: found.value == 0,
    ),
    pictures=pictures_of_margins,
    releases=OfReleases(
        2,
        {"max_distance": "Worst column moved by"},
        headline=Headline(
            "max_distance",
            "farthest that a column moved",
            "Share of records; 0 % is the column as it was.",
        ),
        best_at=("mean_distance", "columns by themselves"),
    ),
)
def margins(
    original: Microdata,
    released: Microdata | Sequence[Microdata],
    *,
    columns: ColumnName | ColumnNames | None = None,
    categorical: ColumnName | ColumnNames = (),
    quantiles: Annotated[Sequence[Annotated[float, Share()]], Public(), Entries()] = (
        0.05,
        0.25,
        0.5,
        0.75,
        0.95,
    ),
    level: Annotated[float, Share(above=True, below=True)] = 0.95,
    weight: ColumnName | None = None,
    assume_independent: bool = False,
) -> Measure:
    """Is each column, by itself, still what it was?

    Numbers and dates are compared by their distribution functions (Kolmogorov-Smirnov, Wasserstein, energy distance),
    moments and quantiles; categories by their shares (total variation, Hellinger, Jensen-Shannon). The distance of a
    column in the headline is Kolmogorov-Smirnov for numbers and total variation for categories: both are shares of
    records, between 0 and 1.

    Also known as: total variation distance; TVD.

    Parameters
    ----------
    original, released
        The file before and after; or a list of copies, over which the numbers are averaged.
    columns
        What to compare; all columns that both files have, but identifiers and the weight, unless named.
    categorical
        Columns of numbers that are codes.
    quantiles
        The levels of the quantiles to compare.
    level
        Of the original's confidence intervals, into which the released means, variances and quantiles should fall.
    weight
        Survey weight; the one of the original unless named.
    assume_independent
        Say that the two files are independent samples, which an original and its release never are, to have the
        p-value of the Kolmogorov-Smirnov test.

    Returns
    -------
    Measure
        ``value`` is the largest distance of a column. ``figures``: ``max_distance``, ``mean_distance``,
        ``mean_ks_complement``, ``mean_tv_complement``, ``mean_wasserstein_sd`` (in standard deviations),
        ``mean_hellinger``, ``sum_hellinger``; the shares of means, variances and quantiles within the original's
        intervals; ``max_missing_change``; ``lost_levels``, ``lost_share`` (the original shares of the lost levels,
        summed over columns, so that it can exceed 1), ``invented_levels``; ``max_gini_change``. ``detail``:
        ``variables``, one row a column, worst first; ``quantiles`` with intervals; ``levels`` of categories;
        ``ecdf``, ``qq`` and ``histograms`` for pictures; ``copies``.

    How to read it
    --------------
    A distance of 0.03 means: for no value does the share of people at or below it differ by more than 3 percentage
    points. The Wasserstein distance says how far, on average, a number would have to be moved, in the units of the
    column; ``wasserstein_sd`` says it in standard deviations, so that columns can be compared. Look at lost levels
    first: a category that is gone can no longer be analyzed at all. Means that leave the original's interval have
    moved by more than what another sample of the same people would have done.

    When not to trust it
    --------------------
    Every margin can be right while all relations between columns are lost: see `tabular` and `dependence`. Whether a
    mean lies in the interval is a check, not a test, and in large files the intervals are so narrow that harmless
    changes leave them. Distances of a few records are mostly chance. The p-value that `assume_independent` gives is
    wrong for an original and its release, in either direction.

    Examples
    --------
    >>> before = Microdata(pl.DataFrame({"pay": [1.0, 2.0, 3.0, 4.0], "sex": ["f", "f", "m", "m"]}))
    >>> after = Microdata(pl.DataFrame({"pay": [1.0, 2.0, 3.0, 6.0], "sex": ["f", "f", "f", "m"]}))
    >>> found = margins(before, after)
    >>> found.value, found.detail["variables"]["column"].to_list()
    (0.25, ['pay', 'sex'])
    """
    copies = copies_of(released, original)
    at = np.asarray(list(quantiles), dtype=np.float64)
    coded = names_checked(original, categorical, "categorical")
    compared = compared_columns(original, copies[0], columns, without=[weight])
    tables, notes, pairs = [], dict.fromkeys(compared.caveats), []
    for copy in copies:
        weights, said = weights_of(original, copy, weight)
        if assume_independent and weights != (None, None):
            raise ParameterError("There is no p-value for weighted samples. Leave assume_independent out.")
        held = [
            distributions.sample_pair(original, copy, name, weights, category=name in coded)
            for name in compared.names
        ]
        _comparable(held)
        notes |= dict.fromkeys([*said, *(note for pair in held for note in pair.notes)])
        tables.append(
            pl.DataFrame([_row(pair, level, at, assume_independent) for pair in held], schema=_COLUMNS)
        )
        pairs.append(held)
    whole = _averaged(tables)
    figures = _figures(whole)
    worst = whole.row(0, named=True)
    summed = pl.DataFrame([{"copy": i, **_figures(table)} for i, table in enumerate(tables, 1)])
    caveats = [*notes]
    caveats.append(
        "The p-values hold only if the two files are independent samples, as you said."
        if assume_independent
        else DEPENDENT
    )
    caveats.append("Each column is looked at by itself: relations between columns may be lost all the same.")
    first = pairs[0]
    return Measure(
        name="margins",
        value=figures["max_distance"],
        figures={**figures, "columns": whole.height, "copies": len(copies)},
        meaning=(
            "Every column has the distribution it had."
            if not figures["max_distance"]
            else f"The column that changed most is '{worst['column']}': its shares differ by up to "
            f"{percent(worst['distance'])}. On average over {whole.height:,} columns it is "
            f"{percent(figures['mean_distance'])}"
            + (f"; {_levels(figures['lost_levels'])} lost." if figures["lost_levels"] else ".")
        ),
        caveats=caveats,
        parameters={
            "columns": list(compared.names),
            "categorical": list(coded),
            "quantiles": at.tolist(),
            "level": level,
            "weight": weight or original.roles.weight,
            "assume_independent": assume_independent,
            "needs_alignment": False,
            "inference_valid": assume_independent,
        },
        detail=engine.tables_like(
            original,
            variables=whole,
            quantiles=lambda: distributions.quantiles_table(first, level, at),
            levels=lambda: distributions.levels_table(first),
            ecdf=lambda: distributions.ecdf_table(first),
            qq=lambda: distributions.qq_table(first),
            histograms=lambda: distributions.histograms_table(first),
            copies=summed,
        ),
    )


def _row(pair: distributions.SamplePair, level: float, at: Floats, p_value: bool) -> dict[str, Any]:
    ours, theirs = pair.ours, pair.theirs
    row: dict[str, Any] = {
        "column": pair.column,
        "kind": "date" if pair.temporal else pair.kind,
        "missing_before": ours.missing,
        "missing_after": theirs.missing,
    }
    if pair.kind == "category":
        return row | _category(pair)
    if not (len(ours.values) and len(theirs.values)):
        gone = len(ours.values) != len(theirs.values)
        return row | {"distance": float(gone)}
    row |= (found := pair.distances())
    inside = ours.intervals(level, at)
    before, after = ours.central[0], theirs.central[0]
    spread = np.sqrt(before) if before > 0 else np.nan
    low, high = inside["quantiles"]
    moved = theirs.quantile(at)
    outside = theirs.shares[(theirs.values < ours.values[0]) | (theirs.values > ours.values[-1])]
    width = ours.values[-1] - ours.values[0]
    overlap = min(ours.values[-1], theirs.values[-1]) - max(ours.values[0], theirs.values[0])
    row |= {
        "distance": found["ks"],
        "ks_complement": 1 - found["ks"],
        "wasserstein_sd": found["wasserstein"] / spread,
        "mean_before": ours.mean,
        "mean_after": theirs.mean,
        "mean_inside": _within(theirs.mean, *inside["mean"]),
        "sd_before": np.sqrt(before),
        "sd_after": np.sqrt(after),
        "variance_inside": _within(after, *inside["variance"]),
        "share_quantiles_inside": float(((moved >= low) & (moved <= high)).mean()),
        "outside_range": float(outside.sum()),
        "range_coverage": max(0.0, overlap) / width if width > 0 else None,
        "gini_before": ours.gini,
        "gini_after": theirs.gini,
    }
    if p_value:
        from scipy.special import kolmogorov

        size = ours.size * theirs.size / (ours.size + theirs.size)
        row["ks_p_value"] = float(kolmogorov(found["ks"] * np.sqrt(size)))
    return row


def _category(pair: distributions.SamplePair) -> dict[str, Any]:
    """Compare shares of levels, missing being one."""
    p, q = distributions.shares_of(pair)
    found = table_distances(p, q, ordered=False)
    there, kept = p[:-1] > 0, q[:-1] > 0
    tv = float(np.abs(p - q).sum()) / 2
    return {
        "distance": tv,
        "tv": tv,
        "tv_complement": 1 - tv,
        "hellinger": float(np.sqrt(((np.sqrt(p) - np.sqrt(q)) ** 2).sum() / 2)),
        "jsd": found["jsd"],
        "levels": int(there.sum()),
        "lost_levels": int((there & ~kept).sum()),
        "lost_share": float(p[:-1][there & ~kept].sum()),
        "invented_levels": int((kept & ~there).sum()),
        "invented_share": float(q[:-1][kept & ~there].sum()),
        "level_coverage": float((there & kept).sum() / there.sum()) if there.any() else None,
    }


def _figures(table: pl.DataFrame) -> dict[str, Any]:
    def of(name: str, how: str) -> float | None:
        known = table[name].cast(pl.Float64).drop_nulls()
        return float(getattr(known, how)()) if len(known) else None

    moved = (table["missing_after"] - table["missing_before"]).abs()
    unequal = (table["gini_after"] - table["gini_before"]).abs().drop_nulls()
    return {
        "max_distance": of("distance", "max"),
        "mean_distance": of("distance", "mean"),
        "mean_ks_complement": of("ks_complement", "mean"),
        "mean_tv_complement": of("tv_complement", "mean"),
        "mean_wasserstein_sd": of("wasserstein_sd", "mean"),
        "mean_hellinger": of("hellinger", "mean"),
        "sum_hellinger": of("hellinger", "sum"),
        "share_means_inside": of("mean_inside", "mean"),
        "share_variances_inside": of("variance_inside", "mean"),
        "share_quantiles_inside": of("share_quantiles_inside", "mean"),
        "max_missing_change": float(moved.max()),  # type: ignore[arg-type]
        "lost_levels": of("lost_levels", "sum") or 0,
        "lost_share": of("lost_share", "sum") or 0.0,
        "invented_levels": of("invented_levels", "sum") or 0,
        "max_gini_change": float(unequal.max()) if len(unequal) else None,  # type: ignore[arg-type]
    }


def _averaged(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    if len(tables) == 1:
        whole = tables[0]
    else:
        grouped = pl.concat(tables).group_by("column", maintain_order=True)
        whole = grouped.agg(pl.col("kind").first(), pl.exclude("column", "kind").cast(pl.Float64).mean())
    return whole.fill_nan(None).sort("distance", descending=True, nulls_last=True, maintain_order=True)


def _within(value: float, low: float, high: float) -> bool | None:
    if not np.isfinite([value, low, high]).all():
        return None
    return bool(low <= value <= high)


def _comparable(pairs: Sequence[distributions.SamplePair]) -> None:
    for pair in pairs:
        if not (len(pair.ours.values) or len(pair.theirs.values)):
            raise InputError(f"Column '{pair.column}' holds no values in either file. Leave it out.")
        for sample in (pair.ours, pair.theirs):
            if not np.isfinite(sample.values).all():
                raise ColumnError(
                    f"Column '{pair.column}' holds infinite numbers, which have no mean or distance. Make them missing "
                    "or finite first."
                )


_COLUMNS = {
    "column": pl.String,
    "kind": pl.String,
    **dict.fromkeys(
        ("distance", "ks", "ks_complement", "wasserstein", "wasserstein_sd", "energy", "ks_p_value"), pl.Float64
    ),
    **dict.fromkeys(("mean_before", "mean_after"), pl.Float64),
    "mean_inside": pl.Boolean,
    **dict.fromkeys(("sd_before", "sd_after"), pl.Float64),
    "variance_inside": pl.Boolean,
    **dict.fromkeys(
        ("share_quantiles_inside", "outside_range", "range_coverage", "gini_before", "gini_after", "tv",
         "tv_complement", "hellinger", "jsd"),
        pl.Float64,
    ),
    **dict.fromkeys(("levels", "lost_levels", "invented_levels"), pl.Int64),
    **dict.fromkeys(("lost_share", "invented_share", "level_coverage", "missing_before", "missing_after"), pl.Float64),
}  # fmt: skip


def _levels(count: float) -> str:
    return "1 level of a category was" if count == 1 else f"{count:,.0f} levels of categories were"
