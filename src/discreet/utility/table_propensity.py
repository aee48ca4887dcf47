"""Can a small tree tell released records from real ones, table by table?"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from discreet.core.cards import Figure, measure
from discreet.core.citations import FRANCIS_2024, SNOKE_2018
from discreet.core.constraints import ColumnName, ColumnNames
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.core.progress import track
from discreet.core.ready_studies import OfReleaseStudy
from discreet.core.results import Measure
from discreet.microdata import Microdata
from discreet.utility.table_codes import Released, as_numbers


@measure(
    title="Propensity by table",
    question="Can a small tree tell released records from real ones, table by table?",
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
@checked
def table_propensity(
    original: Microdata,
    released: Any,
    *,
    columns: ColumnName | ColumnNames | None = None,
    depth: int = 6,
    most: int | None = None,
    progress: bool = False,
) -> Measure:
    """Can a small tree tell released records from real ones, table by table?

    A classification tree of some depth learns to tell the records of a table from the same columns of the original;
    pMSE is the mean squared distance of its shares from the share of released records. Files that are the same have
    0; the tree is fitted to the records it judges, so even a perfect release has a little more.

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
    if depth < 1 or (most is not None and most < 1):
        raise ParameterError("depth and most must be at least 1.")
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
