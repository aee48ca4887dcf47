"""Which few keys, taken together, are met too seldom?

All sets of keys up to a size, and how many combinations of values and how many records fall under a threshold
in each: the check of low-dimensional combinations that precedes recoding and local suppression.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Integers
from discreet.core.cards import Figure, OfFile, measure
from discreet.core.charts import Bars, finite, part_shown, row_bars, rows_of
from discreet.core.constraints import AtLeast, ColumnNames
from discreet.core.results import Measure
from discreet.core.wording import percent, shown
from discreet.engine import Missing
from discreet.microdata import Microdata
from discreet.risk.equivalence_classes import GAPS_COUNT, EquivalenceClasses
from discreet.risk.k_anonymity import key_caveats
from discreet.risk.key_sets import CodedKeys, Inherited, KeySet, checked_size, coded_keys, sets_by_size

_MOST_SETS = 15


def _pictures(found: Measure, show_values: bool) -> Iterator[Bars]:
    rows = [
        row for row in rows_of(found, "sets", "keys", "unsafe_combinations") if row["unsafe_combinations"]
    ]
    if not rows:
        return
    rows = sorted(rows, key=lambda row: (-row["unsafe_combinations"], str(row["keys"])))
    kept = rows[:_MOST_SETS]
    threshold = found.figures.get("threshold")
    few = f"fewer than {shown(threshold)}" if finite(threshold) else "too few"
    title = f"Sets of keys with the most rare combinations{part_shown(kept, rows)}"
    axis = f"Number of combinations of values that {few} records share"
    yield row_bars(title, kept, "keys", "unsafe_combinations", axis, as_share=False)


@measure(
    room="risk",
    work="class-wise",
    question="Which few keys taken together are too rare?",
    headline="of the records have a rare combination",
    chapter="keys",
    place=3,
    references=(
        "Willenborg, L. and de Waal, T. (2001). Elements of statistical disclosure control. Springer, "
        "Lecture Notes in Statistics 155.",
    ),
    figures={
        "value": Figure(unit="share", better="lower"),
        "unsafe_share": Figure("Share of records with a rare combination", unit="share"),
        "unsafe_records": Figure("Records with a rare combination"),
        "unsafe_combinations": Figure("Rare combinations"),
        "unique_combinations": Figure("Combinations of one record"),
        "minimal_unsafe_combinations": Figure("Rare combinations that hold no smaller one"),
        "sets": Figure("Sets of keys"),
        "unsafe_sets": Figure("Sets of keys with a rare combination"),
    },
    columns={
        "newly_unsafe_records": Figure("Records that no smaller set exposes"),
        "combinations": Figure("Combinations of values"),
    },
    assess=OfFile(5, partition=False, slow=True),
    pictures=_pictures,
    tells=("counted_in",),
)
def unsafe_combinations(
    data: Microdata,
    *,
    keys: ColumnNames | None = None,
    max_size: Annotated[int, AtLeast(1)] = 3,
    threshold: Annotated[int, AtLeast(2)] = 3,
    missing: Missing = "category",
    show_values: bool = False,
    progress: bool = True,
) -> Measure:
    """Which combinations of a few key values are met by fewer than ``threshold`` records?

    Where a role names persons, their number counts instead, each person once a combination.

    Every set of 1 up to ``max_size`` keys is a table of counts; a combination of values is unsafe where its count
    is above zero and below the threshold (Willenborg and de Waal 1996; Hundepool et al. 2012). Whoever is in an
    unsafe combination is in one on every larger set too, so ``newly_unsafe_records`` counts those for whom no
    part of the set is unsafe already: recoding that set is what would help them.

    Parameters
    ----------
    data, keys
        The file and its key columns.
    max_size
        Size up to which sets of keys are looked at.
    threshold
        Number of records from which on a combination is safe.
    missing
        ``category``: missing is a value of its own. ``wildcard``: it matches anything, and a combination counts
        all records that agree wherever both are known; combinations of which nothing is known are left out.
        ``drop``: records with a missing key are left out.
    show_values
        List the unsafe combinations with their values in ``detail["combinations"]``; without it they are counted
        only.
    progress
        Show a progress bar on a terminal.

    Returns
    -------
    Measure
        ``value`` is ``unsafe_share``. ``figures``: ``unsafe_share`` and ``unsafe_records`` (in some unsafe
        combination), ``unsafe_combinations``, ``unique_combinations`` (met once), ``minimal_unsafe_combinations``
        (no part of them is unsafe), ``sets``, ``unsafe_sets``, ``threshold``, ``max_size``, ``records``,
        ``records_left_out``. ``detail``: ``sets`` (one row a set of keys, the worst first), ``sizes``,
        ``variables`` (by key), ``records`` (``unsafe_sets`` and ``smallest_unsafe_set`` of each record) and, with
        ``show_values``, ``combinations``.

    How to read it
    --------------
    An intruder need not know all keys. This lists which few keys taken together already leave fewer than
    ``threshold`` records, so it tells whether the file is safe from someone who knows two or three things.
    The sets on top of ``detail["sets"]`` are the ones to coarsen; ``newly_unsafe_records`` says how many
    people a set exposes whom no smaller set does. ``minimal_unsafe_combinations`` counts each rare
    combination once, without those that merely contain it.

    When not to trust it
    --------------------
    The number of combinations grows fast with ``max_size`` and with the number of keys, so counts compare
    only between files with the same keys and limits. A combination that is rare in a sample may be common in
    the population. Numbers with many values (income to the cent) make every combination rare: band them
    first. Nothing is said about sets larger than ``max_size``.

    Examples
    --------
    >>> people = pl.DataFrame({"sex": ["f", "f", "f", "m", "m", "m"], "job": ["a", "a", "b", "b", "b", "b"]})
    >>> found = unsafe_combinations(Microdata(people, keys=["sex", "job"]), threshold=2)
    >>> found.figures["unsafe_combinations"], found.figures["unsafe_records"]
    (1, 1)
    >>> found.detail["sets"].select("keys", "unsafe_combinations").row(0)
    ('sex, job', 1)
    """
    classes = EquivalenceClasses.of(data, keys, missing)
    keys = classes.keys
    max_size = checked_size(max_size, len(keys))
    caveats = key_caveats(data, keys)
    coded = coded_keys(data, keys, missing)
    found = _survey(coded, keys, max_size, threshold, listed=show_values, progress=progress)
    records, heads = int(coded.records.sum()), classes.heads
    unsafe = int(coded.records[found.hits > 0].sum())
    sets = found.sets
    worst = sets.row(0, named=True)
    unsafe_combinations = int(sets["unsafe_combinations"].sum())
    unsafe_sets = int((sets["unsafe_combinations"] > 0).sum())
    tables: dict[str, Any] = {
        "sets": sets,
        "sizes": lambda: _sizes(sets),
        "variables": lambda: _variables(found, coded, keys),
        "records": lambda: engine.carry_back(data, keys, missing, _by_row(found, coded)),
    }
    if show_values:
        tables["combinations"] = lambda: _listing(found, coded, keys)
    reason = (
        f"; the worst set is {worst['keys']} with {worst['unsafe_combinations']:,}"
        if worst["unsafe_combinations"]
        else ""
    )
    return Measure(
        name="unsafe_combinations",
        value=unsafe / records,
        figures={
            "unsafe_share": unsafe / records,
            "unsafe_records": unsafe,
            "unsafe_combinations": unsafe_combinations,
            "unique_combinations": int(sets["unique_combinations"].sum()),
            "minimal_unsafe_combinations": int(sets["minimal_unsafe_combinations"].sum()),
            "sets": sets.height,
            "unsafe_sets": unsafe_sets,
            "threshold": threshold,
            "max_size": max_size,
            "records": records,
            **classes.figures,
        },
        meaning=(
            f"{unsafe:,} of {records:,} {heads.many} ({percent(unsafe / records)}) have a combination of at most "
            f"{max_size} key values that fewer than {threshold} {heads.many} share; there are "
            f"{unsafe_combinations:,} such combinations in {unsafe_sets:,} of "
            f"{sets.height:,} sets of keys{reason}.{classes.not_counted}"
        ),
        caveats=[
            *caveats,
            *([GAPS_COUNT] if coded.wild else []),
            f"Sets of more than {max_size} keys were not looked at; see k_anonymity for all keys at once."
            if max_size < len(keys)
            else "The largest set is that of all keys, on which k_anonymity looks.",
        ],
        parameters={
            "keys": list(keys),
            "max_size": max_size,
            "threshold": threshold,
            "missing": missing,
            **classes.parameters,
        },
        detail=engine.tables_like(data, **tables),
    )


@dataclass(frozen=True)
class _Found:
    """What the sets show: one row a set, and by row of the class table how many sets are unsafe for it.

    ``smallest`` is the size of the first unsafe set (0: none), ``by_key`` whether some minimal unsafe set holds
    the key. ``listing`` names, for each set, one row for every unsafe combination and its count.
    """

    sets: pl.DataFrame
    hits: Integers
    smallest: Integers
    by_key: Flags
    listing: list[tuple[KeySet, Integers, Integers]]


def _survey(
    coded: CodedKeys, keys: Sequence[str], max_size: int, threshold: int, *, listed: bool, progress: bool
) -> _Found:
    """Look at the sets by size; what is unsafe on a set is unsafe on the larger ones."""
    records, wild = coded.records, coded.wild
    hits, smallest = np.zeros(len(records), dtype=np.int64), np.zeros(len(records), dtype=np.int64)
    by_key = np.zeros(coded.codes.shape, dtype=bool)
    rows, listing = [], []
    flags = Inherited(len(records))
    for chosen in sets_by_size(len(keys), max_size, "Unsafe combinations", progress=progress):
        numbers, counts, distinct = _counted(coded, chosen, wild=wild)
        unsafe = counts < threshold
        newly = unsafe & ~flags.from_parts(chosen)
        flags.keep(chosen, unsafe)
        hits += unsafe
        smallest[newly & (smallest == 0)] = len(chosen)
        by_key[list(chosen)] |= newly
        places = np.flatnonzero(unsafe)
        first = places[np.unique(numbers[places], return_index=True)[1]]
        if listed and len(first):
            listing.append((chosen, first, counts[first]))
        rows.append(
            {
                "keys": ", ".join(keys[key] for key in chosen),
                "size": len(chosen),
                "combinations": distinct,
                "unsafe_combinations": len(first),
                "unique_combinations": int((counts[first] == 1).sum()),
                "minimal_unsafe_combinations": int(newly[first].sum()),
                "unsafe_records": int(records[unsafe].sum()),
                "unsafe_share": int(records[unsafe].sum()) / int(records.sum()),
                "newly_unsafe_records": int(records[newly].sum()),
            }
        )
    worst_first = ["unsafe_combinations", "unsafe_records", "size"]
    sets = pl.DataFrame(rows).sort(worst_first, descending=[True, True, False], maintain_order=True)
    return _Found(sets, hits, smallest, by_key, listing)


def _counted(coded: CodedKeys, chosen: KeySet, *, wild: bool) -> tuple[Integers, Integers, int]:
    """Number the combinations of a set, and give each row the count of its own and the file how many there are."""
    if not wild:
        numbers, counts = coded.combined(chosen), coded.sizes(chosen)
        if coded.holders is not None:
            return numbers, counts, len(np.unique(numbers))
        return numbers, counts, round(float((coded.records / counts).sum()))
    names = [f"k{key}" for key in chosen]
    by = coded.table.select(names).with_columns(records=coded.records, row=np.arange(len(coded.records)))
    table = by.group_by(names, maintain_order=True).agg(pl.col("records").sum(), pl.col("row"))
    lengths = table["row"].list.len().to_numpy()
    if coded.holders is None:
        sizes = engine.neighborhood_sizes(table.drop("row"), names).to_numpy()
    else:
        who = coded.table.select(names)[coded.holders[0]].with_columns(u=coded.holders[1])
        sizes = engine.neighborhood_units(table.select(names), who, names).to_numpy()
    # Of whom nothing is known on these keys has no combination of its own, safe or unsafe.
    unknown = table.select(pl.all_horizontal(pl.col(names).is_null())).to_series().to_numpy()
    sizes = np.where(unknown, np.iinfo(np.int64).max, sizes)
    order = table["row"].explode().to_numpy()
    numbers, counts = np.empty_like(coded.records), np.empty_like(coded.records)
    numbers[order] = np.repeat(np.arange(table.height), lengths)
    counts[order] = np.repeat(sizes, lengths)
    return numbers, counts, table.height - int(unknown.sum())


def _by_row(found: _Found, coded: CodedKeys) -> pl.DataFrame:
    smallest = pl.Series(found.smallest).replace(0, None)
    return coded.table.with_columns(unsafe_sets=found.hits, smallest_unsafe_set=smallest)


def _sizes(sets: pl.DataFrame) -> pl.DataFrame:
    counted = ("combinations", "unsafe_combinations", "unique_combinations", "minimal_unsafe_combinations")
    return (
        sets.group_by("size").agg(pl.len().cast(pl.Int64).alias("sets"), pl.col(*counted).sum()).sort("size")
    )


def _variables(found: _Found, coded: CodedKeys, keys: Sequence[str]) -> pl.DataFrame:
    """Say for how many records each key is needed to make some combination unsafe."""
    needed = [int(coded.records[flags].sum()) for flags in found.by_key]
    share = [count / int(coded.records.sum()) for count in needed]
    table = pl.DataFrame({"key": list(keys), "unsafe_records": needed, "unsafe_share": share})
    return table.sort("unsafe_records", descending=True, maintain_order=True)


def _listing(found: _Found, coded: CodedKeys, keys: Sequence[str]) -> pl.DataFrame:
    parts = [pl.DataFrame(schema={"keys": pl.String, "values": pl.String, "records": pl.Int64})]
    for chosen, first, counts in found.listing:
        values = [coded.table[f"k{key}"][first].cast(pl.String).fill_null("(missing)") for key in chosen]
        joined = pl.select(pl.concat_str(*(pl.lit(value) for value in values), separator=", ")).to_series()
        names = [", ".join(keys[key] for key in chosen)] * len(first)
        parts.append(pl.DataFrame({"keys": names, "values": joined, "records": counts}))
    return pl.concat(parts)
