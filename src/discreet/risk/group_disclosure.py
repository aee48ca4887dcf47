"""Which tables of the release give away a whole group, and is it true of the original?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Annotated, Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.cards import Figure, OfPair, measure
from discreet.core.charts import Bars, part_shown, rows_of
from discreet.core.citations import KOLB_2024
from discreet.core.constraints import ColumnName, ColumnNames, Public, Share
from discreet.core.errors import ParameterError
from discreet.core.results import Measure
from discreet.core.wording import percent
from discreet.engine.precision import Setting
from discreet.microdata import Microdata
from discreet.pairs.side_by_side import check_precision, grid_words, stated_precision
from discreet.risk.attribution_attack import as_copies
from discreet.risk.value_classes import overlapping

_MOST_ROWS = 15


def _pictures(found: Measure, show_values: bool) -> Iterator[Bars]:
    by_table = [
        row
        for row in rows_of(found, "tables", "keys", "common_cells", "released_cells")
        if row["common_cells"]
    ]
    if by_table:
        by_table.sort(key=lambda row: (-row["common_cells"], str(row["keys"])))
        kept = by_table[:_MOST_ROWS]
        several = len({row.get("sensitive") for row in by_table}) > 1
        yield Bars(
            title=f"Tables whose cells tell the truth about a whole group{part_shown(kept, by_table)}",
            labels=tuple(f"{row['keys']}{': ' + row['sensitive'] if several else ''}" for row in kept),
            values=tuple(float(row["common_cells"]) for row in kept),
            axis="Number of cells in which everyone has the same value, in the release and in truth",
            at_risk=(False,) * len(kept),
            horizontal=True,
            as_share=False,
        )


@measure(
    room="risk",
    work="class-wise",
    question="Which groups does the release say something true about as a whole?",
    headline="of what is told about groups is true",
    chapter="learned",
    place=9,
    references=(KOLB_2024,),
    figures={
        "value": Figure(unit="share", better="lower"),
        "risk": Figure("Chance of identification", unit="share", better="lower", summary=True),
        "released_cells": Figure("Cells of the release that tell for certain"),
        "original_cells": Figure("Cells of the original that tell for certain"),
        "common_cells": Figure("Cells that tell the same in both files"),
    },
    columns={"dimension": Figure("Number of keys")},
    compare=OfPair(16, "risk", usual=False, keys=True, sensitive=True),
    pictures=_pictures,
)
def group_disclosure(
    original: Microdata,
    released: Microdata,
    *,
    keys: ColumnNames | None = None,
    sensitive: ColumnName | ColumnNames | None = None,
    naive: Annotated[float, Share(above=True)] = 0.9,
    subsets: bool = True,
    precision: Annotated[Setting, Public()] = None,
) -> Measure:
    """Of the groups that a table of the release shows to be all alike, how many are so in the original?

    A cell of keys by target is disclosive when everyone with these keys has this target value: who knows the
    keys need not find the person. Target values so common that anybody would guess them do not count. Every
    subset of the keys makes a table of its own (Kolb, Tang and Giessing 2024).

    Also known as: group disclosure; attribute disclosure of tables.

    Parameters
    ----------
    original, released
        The two files.
    keys, sensitive
        Key and target columns; those of the original unless named.
    naive
        A target value that this share of the original or more has is a naive guess and does not count.
    subsets
        Count the tables of all subsets of the keys, or only that of all keys.
    precision
        How precisely numbers are compared: ``detected`` (as both files have them), ``exact`` (to the last bit), a
        number of decimals, or one of these by column.

    Returns
    -------
    Measure
        ``value`` is ``risk``, the share of the release's disclosive cells that are disclosive in the original
        too, of the worst target; None where the release has none. ``figures``: ``risk``, ``released_cells``,
        ``original_cells``, ``common_cells``, ``tables``. ``detail``: ``variables`` and ``tables``, one row a
        target and subset of the keys.

    How to read it
    --------------
    Tables are made from the release, and a cell counts when everyone with some key values has the same
    sensitive value. ``risk`` is the share of these cells that are true of the original: near 0 the
    certainties of the release are inventions, near 1 they can be believed. ``detail["tables"]`` has each
    table, so you see whether small tables (few keys) are affected; those are the ones that get published.

    When not to trust it
    --------------------
    A value that nearly everybody has makes certain cells in any file; values above the share ``naive`` are
    left out for that reason, so look at what was left out. Cells with one or two people dominate the count in
    tables of many keys. It counts cells and not people: one large cell can matter more than a hundred small
    ones. With ``subsets=False`` only the table of all keys is made.

    Examples
    --------
    >>> original = Microdata(pl.DataFrame({"k": list("aab"), "t": list("xxy")}), keys="k", sensitive="t")
    >>> group_disclosure(original, Microdata(pl.DataFrame({"k": list("abb"), "t": list("xyx")}))).value
    1.0
    """
    keys = engine.resolve_keys(original, keys)
    columns = engine.resolve_sensitive(original, sensitive, keys)
    if subsets and len(keys) > 16:
        raise ParameterError(
            f"{len(keys)} keys have more than 65,000 subsets. Name fewer keys, or set subsets=False."
        )
    as_copies(released, keys, columns)
    check_precision(precision, original.columns)
    shared = engine.shared_classes(original, released, keys, precision=precision)
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    for column in columns:
        joint = overlapping(engine.joint_counts(shared, (column,)), keys)
        notes += [note for note in joint.notes if note not in notes]
        sizes = range(1, len(keys) + 1) if subsets else [len(keys)]
        for size in sizes:
            for chosen in combinations(range(len(keys)), size):
                table = {"sensitive": column, "keys": " x ".join(keys[i] for i in chosen), "dimension": size}
                rows.append(table | _counted(joint, chosen, naive))
    tables = pl.DataFrame(rows).with_columns(_risk())
    variables = (
        tables.group_by("sensitive", maintain_order=True)
        .agg(
            pl.col("released_cells", "original_cells", "common_cells").sum(),
            pl.len().cast(pl.Int64).alias("tables"),
        )
        .with_columns(_risk())
        .sort("risk", "sensitive", descending=[True, False], nulls_last=True)
    )
    worst = variables.row(0, named=True)
    return Measure(
        name="group_disclosure",
        value=worst["risk"],
        figures={
            name: worst[name]
            for name in ("risk", "released_cells", "original_cells", "common_cells", "tables")
        },
        meaning=(
            f"In {worst['tables']:,} tables of the release {worst['released_cells']:,} cells show that all people "
            f"with some key values have the same '{worst['sensitive']}'; {percent(worst['risk'])} of them are true "
            "of the original."
        ),
        caveats=[
            *notes,
            f"Values that {percent(naive)} of the people or more have are not counted.",
        ],
        parameters={
            "keys": list(keys),
            "sensitive": list(columns),
            "naive": naive,
            "subsets": subsets,
            "precision": stated_precision(precision, grid_words(shared.grids)),
        },
        detail=engine.tables_like(original, variables=variables, tables=tables),
    )


def _counted(joint: engine.JointCounts, chosen: Sequence[int], naive: float) -> dict[str, int]:
    """Count the disclosive cells of the table on some of the keys, in each file and in both."""
    groups = joint.class_labels.select(f"k{i}" for i in chosen)
    labels = groups.unique(maintain_order=True)
    at = groups.join(
        labels.with_row_index("at"), on=groups.columns, how="left", nulls_equal=True, maintain_order="left"
    )
    classes = engine.Grouping(
        at["at"].to_numpy().astype(np.int64), labels, np.ones(labels.height, dtype=bool)
    )
    table, _ = joint.regrouped(classes, engine.Grouping.none(joint.value_labels))
    telling = (table.value_original < naive * table.original.sum())[table.values]
    ours = telling & (table.original > 0) & (table.original == table.class_original[table.owners])
    theirs = telling & (table.released > 0) & (table.released == table.class_released[table.owners])
    return {
        "released_cells": int(theirs.sum()),
        "original_cells": int(ours.sum()),
        "common_cells": int((ours & theirs).sum()),
    }


def _risk() -> pl.Expr:
    cells = pl.col("released_cells")
    return pl.when(cells > 0).then(pl.col("common_cells") / cells).alias("risk")
