"""Do tables made from the release say what those of the original say? All one-, two- and three-way margins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import polars as pl

from discreet import engine
from discreet.core.cards import Figure, OfPair, OfStudy, Shown, TwoFiles, measure
from discreet.core.charts import Bars, Chart, Grid, finite, rows_of
from discreet.core.citations import RAAB_2021
from discreet.core.constraints import AtLeast, ColumnName, ColumnNames, HoldsValues, Public
from discreet.core.errors import ColumnError, ParameterError
from discreet.core.findings import Beside, Finding, Headline, MapAxis, OfReleases, OfWorst
from discreet.core.results import Measure
from discreet.core.wording import percent, shown
from discreet.engine.grouping import Closed, Style
from discreet.engine.shared_tables import shared_tables
from discreet.microdata import Microdata
from discreet.pairs.side_by_side import DEPENDENT, compared_columns, copies_of, names_checked, weights_of
from discreet.utility import compared_tables
from discreet.utility.table_distances import ACCEPTABLE, GOOD, SpecksOrder

_LONGEST = 5


def _in_a_comparison(pair: TwoFiles) -> dict[str, Any]:
    return {"ways": (1, 2) if len(pair.columns) > 1 else 1}


_FAR_BELOW = 0.2
_MANY_MOVED = 0.02
_MOST_ROWS = 10


def _what_differs(found: Measure, beside: Beside) -> Iterator[Finding]:
    typical = found.figures.get("median_S_pMSE")
    if isinstance(typical, int | float) and 0 < typical < _FAR_BELOW and not beside.linked:
        yield Finding(
            "tables too alike",
            2,
            f"Tables agree far better than a new sample would (median {shown(typical)}, where 1 is chance): the "
            "release may repeat the original. That is a question of risk, not of quality.",
            side="risk",
        )
    # What is standardized by a synthesis says little of masked records: then many must be in other cells.
    least = _MANY_MOVED if beside.linked else 0.0
    pairs = [
        row
        for row in rows_of(found, "tables")
        if row["ways"] > 1 and (row["S_pMSE"] or 0) >= GOOD and row["SPECKS"] >= least
    ]
    for row in pairs[:3]:
        yield Finding(
            "table differs",
            min(row["S_pMSE"] / GOOD, 1 + 20 * row["SPECKS"]),
            f"The table {row['variables']} differs more than a good synthesis would: {shown(row['S_pMSE'])} times what "
            f"chance gives (below 3 is good), {percent(row['SPECKS'])} of its records would have to change cells.",
        )
    columns = rows_of(found, "variables")
    if len(pairs) >= 3 and columns:
        first = columns[0]["column"]
        held = sum(first in str(row["variables"]).split(" × ") for row in pairs)
        if held > len(pairs) / 2:
            yield Finding(
                "column behind tables",
                1.5,
                f"'{first}' stands in {held:,} of the {len(pairs):,} tables that came out badly: mend that column "
                "first.",
            )


def _nothing_differs(found: Measure) -> bool:
    worst = found.figures.get("max_S_pMSE")
    return isinstance(worst, int | float) and worst == 0


def _worst_pairs(found: Measure, beside: Beside) -> Iterator[dict[str, Any]]:
    tables = [row for row in rows_of(found, "tables") if row["ways"] == 2]
    for row in tables[:_MOST_ROWS]:
        if row["S_pMSE"]:
            yield {name: row[name] for name in ("variables", "S_pMSE", "SPECKS", "V_before", "V_after")}


def _worst_cells(found: Measure, beside: Beside) -> Iterator[dict[str, Any]]:
    rows = sorted(rows_of(found, "cells"), key=lambda row: -abs(row["z"] or 0))
    for row in rows[:_MOST_ROWS]:
        if row["z"]:
            names = ("variables", *(("cell",) if beside.show_values else ()), "original", "released", "z")
            yield {name: row[name] for name in names}


_MOST_COLUMNS = 30
_MOST_BARS = 15


def _pictures(found: Measure, show_values: bool) -> Iterator[Chart]:
    rows = [row for row in rows_of(found, "tables", "variables", "S_pMSE", "ways") if finite(row["S_pMSE"])]
    yield from _pairs([row for row in rows if row["ways"] == 2], found)
    for ways, name in ((1, "column"), (3, "table of three"), (4, "table of four"), (5, "table of five")):
        kept = [row for row in rows if row["ways"] == ways][:_MOST_BARS]
        if not kept:
            continue
        yield Bars(
            title=f"Standardized difference of each {name}, worst first",
            labels=tuple(str(row["variables"]) for row in kept),
            values=tuple(float(row["S_pMSE"]) for row in kept),
            axis="About 1 for a correct synthesis, below 3 is good; darker from there",
            at_risk=tuple(float(row["S_pMSE"]) >= GOOD for row in kept),
            horizontal=True,
            as_share=False,
        )


def _pairs(rows: Sequence[dict[str, Any]], found: Measure) -> Iterator[Grid]:
    """Draw a heat map of all two-way tables; the columns that come off worst where there are too many."""
    columns = list(found.parameters.get("columns", ()))
    held = {str(row["variables"]): float(row["S_pMSE"]) for row in rows}
    worst: dict[str, float] = {}
    cells: dict[tuple[str, str], float] = {}
    for place, first in enumerate(columns):
        for second in columns[place + 1 :]:
            worth = held.get(f"{first} × {second}")
            if worth is not None:
                cells[first, second] = cells[second, first] = worth
                for name in (first, second):
                    worst[name] = max(worst.get(name, 0), worth)
    if len(cells) < 2:
        return
    chosen = sorted(worst, key=lambda name: -worst[name])[:_MOST_COLUMNS]
    names = [name for name in columns if name in chosen]
    first = f" (the {len(names)} worst of {len(worst)} columns)" if len(names) < len(worst) else ""
    yield Grid(
        title=f"Standardized difference of every pair of columns{first}",
        row_labels=tuple(names),
        column_labels=tuple(names),
        values=tuple(tuple(_rounded(cells.get((a, b))) for b in names) for a in names),
        axis="The stronger the color, the worse, by tens: about 1 for a correct synthesis, below 3 is good",
        as_share=False,
        by_tens=True,
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.2g}")


@measure(
    room="utility",
    work="class-wise",
    title="Tables",
    question="Do tables of one and two columns say what they said?",
    headline="worst standardized difference (S_pMSE)",
    chapter="pairs",
    place=1,
    leading=True,
    references=(
        "Voas, D. and Williamson, P. (2001). Evaluating goodness-of-fit measures for synthetic microdata. "
        "Geographical and Environmental Modelling 5(2), 177–200.",
        RAAB_2021,
    ),
    figures={
        "value": Figure(better="lower"),
        "max_S_pMSE": Figure("Worst table (S_pMSE)"),
        "mean_S_pMSE": Figure("Mean of the tables (S_pMSE)", better="lower", summary=True),
        "median_S_pMSE": Figure("Median over tables (S_pMSE)"),
        "mean_JSD": Figure("Jensen-Shannon divergence, mean of tables"),
        "mean_SPECKS": Figure(
            "Records in other cells, mean of tables", unit="share", better="lower", summary=True
        ),
        "max_SPECKS": Figure("Most records in other cells", unit="share"),
        "mean_Hellinger": Figure("Distance of tables (Hellinger), mean"),
        "mean_MabsDD": Figure("Change of a cell, in shares of the table, summed, mean of tables"),
        "mean_ROC": Figure("Smaller over larger share of a cell (1 is equal), mean of tables"),
        "mean_V_change": Figure("Change of Cramér's V, mean of tables"),
        "sparse_tables": Figure("Tables with too few records for a reference"),
        "tables_above_3": Figure("Tables beyond good (3)"),
        "tables_above_10": Figure("Tables beyond acceptable (10)"),
        "tables": Figure("Tables compared"),
        "tables_left_out": Figure("Tables left out"),
        "columns": Figure("Columns compared"),
        "released_records": Figure("Records of the release"),
        "c": Figure("Share of the release in both files together"),
    },
    columns={
        "JSD": Figure("Jensen-Shannon divergence"),
        "SPECKS": Figure("Records in other cells", unit="share"),
        "S_pMSE": Figure("Standardized difference (S_pMSE)"),
        "V_after": Figure("Cramér's V after"),
        "V_before": Figure("Cramér's V before"),
        "df": Figure("Degrees of freedom"),
    },
    tables=(
        Shown(
            "tables",
            "Tables, worst first",
            (
                "variables",
                "S_pMSE",
                "SPECKS",
                "JSD",
                "df",
                "V_before",
                "V_after",
            ),
        ),
        Shown(
            "variables",
            "By column",
            (
                "column",
                "mean_S_pMSE",
                "max_S_pMSE",
                "mean_SPECKS",
                "tables",
            ),
        ),
    ),
    compare=OfPair(3, "utility", at_once=True, settings=_in_a_comparison),
    study=OfStudy(3),
    worst=OfWorst(
        2,
        _what_differs,
        {"pairs": _worst_pairs, "cells": _worst_cells},
        nothing_differs=_nothing_differs,
    ),
    pictures=_pictures,
    releases=OfReleases(
        3,
        {"mean_SPECKS": "Records in other cells (mean of tables)", "max_S_pMSE": "Worst table (S_pMSE)"},
        headline=Headline(
            "mean_SPECKS",
            "of the records in other cells",
            "Mean over all tables of one and two columns: so many would have to change cells to make a table right.",
        ),
        best_at=("mean_SPECKS", "tables of one and two columns"),
        axis=MapAxis("mean_SPECKS", "records in other cells, mean of all tables"),
    ),
)
def tabular(
    original: Microdata,
    released: Microdata | Sequence[Microdata],
    *,
    columns: ColumnName | ColumnNames | None = None,
    ways: int | Annotated[Sequence[int], Public()] = 2,
    groups: int = 5,
    style: Style = "quantile",
    closed: Closed = "right",
    breaks: Annotated[Mapping[str, Sequence[float]], Public()] | None = None,
    special_codes: Annotated[Mapping[str, Sequence[Any]], HoldsValues(by_column=True)] | None = None,
    categorical: ColumnName | ColumnNames = (),
    synthesized: ColumnName | ColumnNames | None = None,
    by: ColumnName | ColumnNames = (),
    weight: ColumnName | None = None,
    max_cells: Annotated[float, AtLeast(2)] = 1e6,
    k_syn: bool | float = False,
    specks_order: SpecksOrder = "score",
) -> Measure:
    """Do tables made from the release say what those of the original say?

    Every table of so many variables is counted in both files over the same cells, and the counts are compared
    (Voas and Williamson 2001; Raab, Nowok and Dibben 2021). Numbers and dates are cut at breaks found in both files
    together; missing values and special codes are groups of their own.

    Also known as: utility.tables; Voas-Williamson; VW; Freeman-Tukey; SPECKS of tables; MabsDD; WMabsDD;
    Bhattacharyya distance; dBhatt; Jensen-Shannon divergence; JSD.

    Parameters
    ----------
    original, released
        The file before and after; or a list of synthetic copies, over which the measures are averaged.
    columns
        What to compare; all columns that both files have, but identifiers and the weight, unless named.
    ways
        How many variables a table has, 1 to 5; or several such numbers.
    groups
        Number of groups of numbers and dates. As many distinct values or fewer stay apart.
    style
        ``"quantile"``: groups equally filled in both files together; ``"equal"``: equally wide. A column most of
        whose values are the same is cut into equally wide groups anyway.
    closed
        Whether a value on a break belongs to the group below (``"right"``) or above it (``"left"``).
    breaks
        ``{column: [break, …]}`` where the breaks are to be others.
    special_codes
        ``{column: [code, …]}``: values that mean something else, such as -9 for "refused"; each a group of its own.
        Those that a file declares as missing and holds on to are taken over.
    categorical
        Columns of numbers that are codes.
    synthesized
        The columns that were replaced: tables without any of them are left out, for they cannot differ.
    by
        Columns, such as regions, by each of which every table is crossed in addition.
    weight
        Survey weight; the one of the original unless named. Cells are weighted and scaled to the number of records
        that they are worth.
    max_cells
        Tables that could have more cells are left out, and counted in ``tables_left_out``.
    k_syn
        Whether the size of the synthetic file came about by chance; see `cells`.
    specks_order
        See `cells`.

    Returns
    -------
    Measure
        ``value`` is the largest ``S_pMSE``. ``figures``: ``max_S_pMSE``, ``mean_S_pMSE``, ``median_S_pMSE``,
        ``tables_above_3``, ``tables_above_10``; the means of ``JSD``, ``SPECKS``, ``Hellinger`` and ``MabsDD``,
        ``max_SPECKS``, ``mean_V_change``; ``tables``, ``tables_left_out``, ``sparse_tables``, ``columns``, ``copies``,
        ``records``, ``released_records``, ``c``. ``detail``: ``tables``, one row a table, worst first, with the
        measures of `cells` and, for two variables, Cramér's V before and after; ``variables``, the mean and the
        largest ``S_pMSE`` of the tables of each column; ``cells``, z for each cell of the worst tables; ``groups``,
        what the groups are; ``copies``, one row a copy.

    How to read it
    --------------
    ``S_pMSE`` is about 1 where the table is a correct draw, below 3 is good and below 10 acceptable, whatever the
    sizes of file and table. Start with the first rows of ``detail["tables"]``: a variable that stands in all of them
    went wrong by itself, two that stand there only together lost their relation. Then see in ``detail["cells"]``
    which cells have too many (z above 3) or too few. ``SPECKS`` is the share of records that would have to change
    cells to make the tables equal, and says more to a user of the data than any standardized number. Values far below
    1 say that the release repeats the original, which is a question of risk.

    When not to trust it
    --------------------
    The standardized forms suppose that the release was drawn from a model of the original; a file with a few cells
    suppressed, or partly synthesized, comes out far below 1, and then only the plain distances tell. Values depend on
    the groups (one group: always 0; very fine ones: always bad): repeat with others (`grouping_sensitivity`), and
    compare releases with the same groups. Tables with more cells than half the records are too sparse for the
    standardized forms. Tables of two variables cannot see what three of them lost together. It is no test: with many
    records the smallest difference gives large values, with few a grave one hides.

    Examples
    --------
    >>> import discreet
    >>> adult = discreet.datasets.adult()
    >>> found = tabular(adult, adult, columns=["age", "sex", "education"], ways=[1, 2])
    >>> found.value, found.figures["tables"]
    (0.0, 6)
    """
    copies = copies_of(released, original)
    chosen = _ways(ways)
    coded, levels = names_checked(original, categorical, "categorical"), names_checked(original, by, "by")
    compared = compared_columns(original, copies[0], columns, without=[weight])
    if columns is not None:
        compared = compared_columns(original, copies[0], [*compared.names, *levels])
    cutting = engine.Cutting(groups, style, closed, breaks, _special(original, compared.names, special_codes))
    for what, named in (("breaks", breaks), ("special_codes", special_codes)):
        for name in named or {}:
            if name not in compared.names:
                raise ColumnError(f"{what} names '{name}', which is not among the compared columns.")
    found, notes = [], dict.fromkeys(compared.caveats)
    for copy in copies:
        weights, said = weights_of(original, copy, weight)
        shared = shared_tables(original, copy, compared.names, cutting, categorical=coded, weights=weights)
        tables = compared_tables.wanted_tables(shared, chosen, levels, synthesized, original)
        one = compared_tables.ComparedTables(
            shared, tables, k_syn=k_syn, specks_order=specks_order, max_cells=max_cells
        )
        found.append(one)
        notes |= dict.fromkeys([*said, *one.notes])
    return _measure(
        original,
        found,
        list(notes),
        {
            "columns": list(compared.names),
            "ways": list(chosen),
            "groups": groups,
            "style": style,
            "closed": closed,
            "breaks": None if breaks is None else {name: list(own) for name, own in breaks.items()},
            "special_codes": sorted(special_codes or {}),
            "categorical": list(coded),
            "synthesized": None
            if synthesized is None
            else list(names_checked(original, synthesized, "synthesized")),
            "by": list(levels),
            "weight": found[0].shared.original.weight,
            "max_cells": max_cells,
            "k_syn": k_syn,
            "specks_order": specks_order,
            "needs_alignment": False,
            "inference_valid": False,
        },
    )


def _measure(
    original: Microdata,
    found: list[compared_tables.ComparedTables],
    notes: list[str],
    parameters: dict[str, Any],
) -> Measure:
    whole = compared_tables.averaged([one.figures for one in found])
    worst = whole.row(0, named=True)
    standard = whole["S_pMSE"].drop_nulls()
    above = {limit: int((standard >= limit).sum()) for limit in (GOOD, ACCEPTABLE)}
    sparse = int(whole["sparse"].sum())
    first = found[0]
    n, m = first.sizes
    value = float(standard.max()) if len(standard) else None  # type: ignore[arg-type]
    columns = compared_tables.by_column(whole, first.tables)
    copies = pl.DataFrame(
        [{"copy": place, **compared_tables.summary(one.figures)} for place, one in enumerate(found, 1)]
    )
    caveats = [*notes, DEPENDENT]
    caveats.append(
        "Values depend on the groups: compare releases with the same ones (see grouping_sensitivity)."
    )
    if sparse:
        caveats.append(
            f"{sparse:,} of {whole.height:,} tables have more cells than half the number of original records: their "
            "standardized measures drift away from 1 also for a correct synthesis. Use fewer groups."
        )
    if first.left_out:
        caveats.append(
            f"{first.left_out:,} tables could have more than {parameters['max_cells']:,.0f} cells and were left out."
        )
    constant = [name for name, own in first.shared.groups.items() if own.size < 2]
    if constant:
        caveats.append(f"Constant in both files, and left out: {', '.join(map(repr, constant))}.")
    return Measure(
        name="tabular",
        value=value,
        figures={
            **compared_tables.summary(whole),
            "tables_above_3": above[GOOD],
            "tables_above_10": above[ACCEPTABLE],
            "tables": whole.height,
            "tables_left_out": first.left_out,
            "columns": len(parameters["columns"]) - len(constant),
            "copies": len(found),
            "records": n,
            "released_records": m,
            "c": m / (n + m),
        },
        meaning=_meaning(whole, worst, above, value),
        caveats=caveats,
        parameters=parameters,
        detail=engine.tables_like(
            original,
            tables=whole,
            variables=columns,
            cells=lambda: first.cells(compared_tables.shown_first(first, whole)),
            groups=lambda: compared_tables.groups_of(first.shared),
            copies=copies,
        ),
    )


def _meaning(whole: pl.DataFrame, worst: dict[str, Any], above: dict[float, int], value: float | None) -> str:
    if not value:
        return f"All {whole.height:,} tables of the release equal those of the original."
    said = "1 table" if whole.height == 1 else f"{whole.height:,} tables"
    return (
        f"Of {said}, {above[GOOD]:,} differ more than a good synthesis would (standardized difference of 3 or more), "
        f"{above[ACCEPTABLE]:,} beyond what is acceptable (10 or more). The worst is {worst['variables']} with "
        f"{shown(value)}: {percent(worst['SPECKS'])} of its records would have to change cells."
    )


def _ways(ways: int | Sequence[int]) -> tuple[int, ...]:
    chosen = (ways,) if isinstance(ways, int) else tuple(dict.fromkeys(ways))
    if not chosen or any(isinstance(way, bool) or way not in range(1, _LONGEST + 1) for way in chosen):
        raise ParameterError("ways must be a number of variables a table, 1 to 5, or several of them.")
    return chosen


def _special(
    original: Microdata, columns: Sequence[str], given: Mapping[str, Sequence[Any]] | None
) -> dict[str, Sequence[Any]]:
    declared = {
        name: [code for code in codes if isinstance(code, int | float | str)]
        for name, codes in original.metadata.user_missing.items()
        if name in columns
    }
    return {**declared, **(given or {})}
