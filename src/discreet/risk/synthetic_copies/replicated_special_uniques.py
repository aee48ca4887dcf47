"""Do the people who stand out on few columns stand out again in the release?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.cards import Figure, OfPair, measure
from discreet.core.citations import KOLB_2024
from discreet.core.parameters import checked
from discreet.core.results import Detail, Measure
from discreet.core.wording import percent
from discreet.engine.classes import key_names
from discreet.engine.comparable import comparable, must_be_released
from discreet.engine.precision import Setting
from discreet.microdata import Microdata
from discreet.pairs.side_by_side import files_alike, stated_precision
from discreet.risk.key_sets import CodedKeys, checked_size, coded_keys, minimal_uniques


@measure(
    work="whole-file",
    question="How many released records stand out just as somebody of the original does?",
    headline="of those who stand out do so like a real person",
    chapter="found",
    place=11,
    references=(KOLB_2024,),
    figures={
        "value": Figure(unit="share", better="lower"),
        "msu_risk": Figure(
            "Share that stands out like a real person", unit="share", better="lower", summary=True
        ),
        "msu_records_released": Figure("Released records that stand out"),
        "msu_records_original": Figure("Originals that stand out"),
        "shared_records": Figure("Released records that stand out like a real person"),
        "shared_msus": Figure("Ways to stand out that both files have"),
    },
    compare=OfPair(15, "risk", usual=False, keys=True, takes_copies=False),
)
@checked
def replicated_special_uniques(
    original: Microdata,
    released: Microdata,
    *,
    keys: Sequence[str] | None = None,
    max_size: int = 3,
    precision: Setting = None,
    progress: bool = False,
) -> Measure:
    """How many released records stand out in the very way that somebody of the original does?

    A minimal sample unique is a set of column values that exactly one record has, while no part of the set is
    unique. The risk is the share, among the released records that have one, of those with one that is also a
    minimal unique of the original.

    Parameters
    ----------
    original, released
        The two files.
    keys
        Columns to look at; the keys of the original unless named.
    max_size
        Largest number of columns of a set.
    precision
        How precisely numbers are compared: ``detected`` (as both files have them), ``exact`` (to the last bit), a
        number of decimals, or one of these by column.
    progress
        Show a progress bar on a terminal.

    Returns
    -------
    Measure
        ``value`` is the share. ``figures``: ``msu_risk``, ``msu_records_released``, ``msu_records_original``,
        ``shared_records``, ``shared_msus``. ``detail``: ``sets``, one row a set of columns.

    How to read it
    --------------
    Near 0, the release has outsiders of its own making. Near 1, whoever stands out in the release stands out in the
    same way as a real person, and an intruder who recognizes the combination will believe that it is them. Compare
    with a sample of the same population that the release was not made from, where you have one.

    When not to trust it
    --------------------
    With very few released records that stand out the share jumps; look at the counts. A release that suppresses or
    coarsens columns has other values and shares little by construction. Sets larger than ``max_size`` are not looked
    at.

    Examples
    --------
    >>> people = pl.DataFrame({"a": [1, 1, 2], "b": [5, 5, 5]})
    >>> replicated_special_uniques(Microdata(people, keys=["a", "b"]), Microdata(people)).value
    1.0
    """
    keys = engine.resolve_keys(original, keys)
    must_be_released(released, keys, "key")
    size = checked_size(max_size, len(keys))
    original, released, agreed = files_alike(original, released, keys, precision)
    ours, theirs = coded_keys(original, keys, "category"), coded_keys(released, keys, "category")
    coded, notes = _one_coding(ours, theirs, keys)
    found_ours = dict(minimal_uniques(ours, size, progress=progress))
    found_theirs = dict(minimal_uniques(theirs, size, progress=progress))
    rows, shared_rows = [], np.zeros(len(theirs.records), dtype=bool)
    for chosen, mine in found_theirs.items():
        known = coded[0].select(f"k{i}" for i in chosen)[found_ours[chosen]] if chosen in found_ours else None
        shared = np.zeros(len(mine), dtype=bool)
        if known is not None:
            here = coded[1].select(f"k{i}" for i in chosen)[mine].with_row_index("row")
            matched = here.join(known, on=known.columns, how="semi")["row"]
            shared[matched.to_numpy()] = True
        shared_rows[mine[shared]] = True
        rows.append(
            {
                "keys": ", ".join(keys[i] for i in chosen),
                "size": len(chosen),
                "msus_original": len(found_ours.get(chosen, ())),
                "msus_released": len(mine),
                "shared": int(shared.sum()),
            }
        )
    standing_out = _standing_out(found_theirs, len(theirs.records))
    shared_count = int(shared_rows.sum())
    risk = shared_count / standing_out if standing_out else None
    sets = pl.DataFrame(rows, schema=_SETS).sort("shared", "keys", descending=[True, False])
    return Measure(
        name="replicated_special_uniques",
        value=risk,
        figures={
            "msu_risk": risk,
            "msu_records_released": standing_out,
            "msu_records_original": _standing_out(found_ours, len(ours.records)),
            "shared_records": shared_count,
            "shared_msus": int(sets["shared"].sum()),
        },
        meaning=(
            f"{standing_out:,} released records stand out on at most {size} columns; {shared_count:,} of them"
            f"{f' ({percent(risk)})' if risk is not None else ''} do so in the very way that somebody of the "
            "original does."
        ),
        caveats=[
            *agreed.caveats,
            *notes,
            *(["No released record stands out, so the share is undefined."] if risk is None else []),
        ],
        parameters={
            "keys": list(keys),
            "max_size": size,
            "precision": stated_precision(precision, agreed.parameters),
        },
        detail=Detail(sets=lambda: engine.like(original, sets)),
    )


_SETS = {
    "keys": pl.String,
    "size": pl.Int64,
    "msus_original": pl.Int64,
    "msus_released": pl.Int64,
    "shared": pl.Int64,
}


def _one_coding(
    ours: CodedKeys, theirs: CodedKeys, keys: Sequence[str]
) -> tuple[tuple[pl.DataFrame, pl.DataFrame], list[str]]:
    """Number the values of both files together, missing as a value, so that equal ones have equal numbers."""
    left, right, notes = {}, {}, []
    for name, key in key_names(keys).items():
        both, said = comparable(ours.table[name], theirs.table[name], key)
        numbers = both.rank("dense").cast(pl.Int64).fill_null(0)
        left[name], right[name] = numbers[: ours.table.height], numbers[ours.table.height :]
        notes += said
    return (pl.DataFrame(left), pl.DataFrame(right)), notes


def _standing_out(found: dict[tuple[int, ...], np.ndarray], rows: int) -> int:
    alone = np.zeros(rows, dtype=bool)
    for where in found.values():
        alone[where] = True
    return int(alone.sum())
