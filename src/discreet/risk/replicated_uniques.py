"""Who is alone with their key values in the original and again in the release?

Alone on all keys, or already on a few of many columns: the second are the special uniques that come back.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.cards import Figure, OfPair, measure
from discreet.core.charts import Bars, figure_bars
from discreet.core.citations import KOLB_2024, RAAB_2024, RAAB_NOWOK_DIBBEN_2024
from discreet.core.constraints import AtLeast, ColumnNames, HoldsValues, Public
from discreet.core.errors import ParameterError
from discreet.core.findings import Headline, MapAxis, OfReleases, OfSynthesis
from discreet.core.parameters import checked
from discreet.core.results import Measure, Release, Step
from discreet.core.wording import named, percent
from discreet.engine.comparable import comparable
from discreet.engine.precision import Setting
from discreet.microdata import Microdata
from discreet.numerics.counts_of_counts import alone_in_both
from discreet.pairs.side_by_side import check_precision, files_alike, grid_words, stated_precision
from discreet.risk.copy_counts import Found
from discreet.risk.disclosure_cells import identity_shares, missing_key
from discreet.risk.key_sets import CodedKeys, checked_size, coded_keys, minimal_uniques
from discreet.risk.synthetic_pairs import Groups, PairedFiles, key_caveats, mean_of
from discreet.risk.value_classes import coarsened, overlapping

Which = Literal["original", "released"]
PROVES_ABSENCE = (
    "Which records were dropped depends on who is in the original: a record that is alone and has somebody's keys now "
    "proves that they are not in it alone. A synthesis for a policy drops records by the synthetic file alone."
)


_UNIQUES = {
    "UiO": "Alone in the original",
    "UiS": "Alone in the release",
    "UiOiS": "Alone there, found in the release",
    "repU": "Alone in both",
}


def _pictures(found: Measure, show_values: bool) -> Iterator[Bars]:
    yield from figure_bars(
        found,
        _UNIQUES,
        "Records alone with their keys",
        "Share of all records",
        risky=("repU",),
        percent=True,
    )


@measure(
    room="risk",
    work="class-wise",
    question="How many people alone in the original are alone in the release too?",
    headline="of the records are alone in both files",
    chapter="found",
    place=10,
    leading=True,
    references=(
        RAAB_2024,
        RAAB_NOWOK_DIBBEN_2024,
    ),
    figures={
        "value": Figure(unit="percent", better="lower"),
        "repU": Figure(unit="percent", better="lower", summary=True),
        "replicated_by_chance": Figure("Records alone in both files, if the release were new people"),
        "repU_beyond_chance": Figure(
            "Alone in both files, beyond chance",
            unit="percent",
            better="lower",
            words={"rule": "alone in both files, beyond what new people give"},
        ),
    },
    compare=OfPair(12, "risk", at_once=True, keys=True, effort=1),
    pictures=_pictures,
    releases=OfReleases(
        8,
        {"repU": "Alone in both files"},
        headline=Headline("repU", "alone in both files", "A released record seems to be them."),
        best_at=("repU", "hiding people who are alone"),
        axis=MapAxis("repU", "people alone in both files", order=3, original="UiO"),
    ),
    synthesis=OfSynthesis(helped_by="other records", would_give="keys would have to be fewer or coarser"),
)
def replicated_uniques(
    original: Microdata,
    released: Microdata | Sequence[Microdata],
    *,
    keys: ColumnNames | None = None,
    missing_keys: bool | ColumnNames = True,
    groups_keys: Annotated[Groups, Public()] = None,
    special_values: Annotated[Mapping[str, Sequence[float]], HoldsValues(by_column=True)] | None = None,
    denominator: Which = "original",
    precision: Annotated[Setting, Public()] = None,
) -> Measure:
    """How many people are alone with their key values in the original and again in the release?

    Somebody who finds a single released record with the keys of a person they know to be alone may believe that
    it is that person. All shares are in percent.

    Also known as: repU; replicated uniques; identity disclosure.

    Parameters
    ----------
    original, released
        The two files; several synthetic copies are given as a list and averaged.
    keys
        Key columns; those of the original unless named.
    missing_keys
        Whether a class with a missing key may count: True, False, or the keys whose missing values may.
    groups_keys, special_values
        Group numeric keys before counting; see `disclosure`.
    denominator
        ``original``: ``repU`` is a share of the original records. ``released``: of the released ones.
    precision
        How precisely numbers are compared: ``detected`` (as both files have them), ``exact`` (to the last bit), a
        number of decimals, or one of these by column.

    Returns
    -------
    Measure
        ``value`` is ``repU``. ``figures``: ``UiO`` (alone in the original), ``UiS`` (alone in the release),
        ``UiOiS`` (alone in the original, and the release has the keys), ``repU`` (alone in both), in percent;
        ``uniques_original``, ``uniques_released``, ``unique_matches``, ``replicated``, in records;
        ``replicated_by_chance``, how many of as many new people would be alone in both, and ``repU_beyond_chance``, in
        percent: 0 where chance gives as many now and then (once in a hundred files).
        ``detail``: ``records`` of the original, ``released_records`` and, for several, ``copies``.

    How to read it
    --------------
    ``repU`` is the percentage of people who are alone with their keys in the original and also in the
    release, so that a released record seems to be them. ``UiO`` is the starting point: how many are alone in
    the original at all. A repU of 0 is easy to reach with `remove_replicated_uniques`. Whether the *other*
    columns of such a record are right is another question: see `disclosure`.

    ``repU_beyond_chance`` says what is more than new people would give. How many they would is told by the original
    alone, by how many combinations are shared by two, three and more of its people.

    When not to trust it
    --------------------
    In synthetic data a record that is alone in both files was mostly not copied; it looks like a person by
    chance, but the person will not see it that way. In a file of the same people, treated, it is that person: chance
    is no excuse there, so read ``repU``. An original from which repeated combinations were removed knows of no chance.
    In a file of many keys nearly everyone is alone, and repU
    then falls because the release seldom hits the exact combination, not because it protects. Coarser coding
    in one of the two files makes the combinations differ and the figure zero without meaning. Missing keys
    count as values unless you leave them out.

    Examples
    --------
    >>> original = Microdata(pl.DataFrame({"age": [30, 31, 31, 40]}), keys="age")
    >>> replicated_uniques(original, Microdata(pl.DataFrame({"age": [30, 31, 40, 40]}))).figures["repU"]
    25.0
    """
    files = PairedFiles.of(
        original,
        released,
        keys,
        groups_keys=groups_keys,
        special_values=special_values,
        precision=precision,
    )
    left_out = not_counted(missing_keys, files.keys)
    rows = [identity_of(files, i, left_out, denominator) for i in range(len(files.copies))]
    rows = [
        row | _beyond_chance(files, i, left_out, denominator, row["replicated"]) for i, row in enumerate(rows)
    ]
    figures = mean_of(rows)
    tables: dict[str, Any] = {
        "records": lambda: _unique_records(files, left_out, "original"),
        "released_records": lambda: _unique_records(files, left_out, "released"),
    }
    if len(rows) > 1:
        tables["copies"] = pl.DataFrame(rows).with_row_index("copy", offset=1)
    people = engine.overview(original, files.keys).rows
    base = "them all" if denominator == "original" else "the released records"
    return Measure(
        name="replicated_uniques",
        value=figures["repU"],
        figures=figures,
        meaning=(
            f"{percent(figures['UiO'] / 100)} of the {people:,} people of the original are alone with their "
            f"combination of {named(files.keys)}; {percent(figures['repU'] / 100)} of {base} are alone with it in the "
            "release too, so that a single released record seems to be them. If the release were new people, about "
            f"{figures['replicated_by_chance']:,.0f} would be alone in both"
            f"{' in each copy' if len(rows) > 1 else ''}; beyond chance it is "
            f"{percent(figures['repU_beyond_chance'] / 100)}."
        ),
        caveats=[*key_caveats(files), *files.notes, *files.key_cells[0].notes],
        parameters={
            "keys": list(files.keys),
            "copies": len(rows),
            "missing_keys": missing_keys,
            "groups_keys": groups_keys,
            "denominator": denominator,
            "precision": stated_precision(precision, files.rounded),
        },
        detail=engine.tables_like(original, **tables),
    )


@checked
def remove_replicated_uniques(
    original: Microdata,
    released: Microdata,
    keys: ColumnNames | None = None,
    *,
    rule: Literal["replicated", "matched"] = "replicated",
    precision: Annotated[Setting, Public()] = None,
) -> Release:
    """Drop the released records that seem to be somebody; this tells who is not in the original.

    Parameters
    ----------
    original, released
        The two files.
    keys
        Key columns; those of the original unless named.
    rule
        ``replicated``: drop records alone in the release whose keys belong to one person of the original.
        ``matched``: drop records alone in the release whose keys occur in the original at all.
    precision
        How precisely numbers are compared: ``detected`` (as both files have them), ``exact`` (to the last bit), a
        number of decimals, or one of these by column.

    Returns
    -------
    Release
        The released file without those records, and how many were dropped.

    How to read it
    --------------
    The result is the release without the records that are alone with their keys in both files. The log says
    how many were dropped. Measure `replicated_uniques` again afterwards: it is 0, because no record that is
    left is alone in both. ``rule="matched"`` is stricter: it drops every record that is alone in the release
    and whose keys occur in the original at all.

    When not to trust it
    --------------------
    Dropping records changes the release, most of all for rare groups, which lose most of their members: check
    utility afterwards. Doing it for one set of keys does nothing for another. It proves absence: afterwards no
    single record matches anybody who is alone in the original, while single records still match people who are not
    in it. Whoever finds a single record with their own keys knows that they were not used. It is no guarantee of
    any kind against what can be learned about groups.

    Examples
    --------
    >>> original = Microdata(pl.DataFrame({"age": [30, 31, 31, 40]}), keys="age")
    >>> release = remove_replicated_uniques(original, Microdata(pl.DataFrame({"age": [30, 31, 40, 40]})))
    >>> release.data.frame["age"].to_list(), release.log[0].removed_records
    ([31, 40, 40], 1)
    """
    started = time.perf_counter()
    keys = engine.resolve_keys(original, keys)
    engine.must_be_released(released, keys, "key")
    engine.overview(released, keys)
    check_precision(precision, original.columns)
    shared = engine.shared_classes(original, released, keys, precision=precision)
    joint = overlapping(engine.key_counts(shared), keys)
    known = joint.original == 1 if rule == "replicated" else joint.original > 0
    gone = np.flatnonzero((joint.released == 1) & known)
    doomed = shared.released.members.filter(pl.col("q").is_in(pl.Series(gone, dtype=pl.Int64).implode()))
    frame = engine.without_classes(released, keys, doomed) if len(gone) else released.frame
    step = Step(
        treatment="remove-replicated-uniques",
        parameters={
            "keys": list(keys),
            "rule": rule,
            "precision": stated_precision(precision, grid_words(shared.grids)),
        },
        removed_records=len(gone),
        notes=(*joint.notes, PROVES_ABSENCE),
        seconds=time.perf_counter() - started,
    )
    return Release(released.with_frame(frame), (step,))


def identity_of(files: PairedFiles, copy: int, left_out: Sequence[str], denominator: Which) -> dict[str, Any]:
    """Count the uniques of the original and one copy; classes in which a key of ``left_out`` is missing do not."""
    joint = files.key_cells[copy]
    return identity_shares(
        joint.original,
        joint.released,
        (int(joint.original.sum()), int(joint.released.sum())),
        left_out=missing_key(joint, files.keys, left_out),
        denominator=denominator,
    )


def _beyond_chance(
    files: PairedFiles, copy: int, left_out: Sequence[str], denominator: Which, replicated: int
) -> dict[str, float]:
    """Hold those alone in both files against how many of as many new people would be."""
    joint = files.key_cells[copy]
    counted = ~missing_key(joint, files.keys, left_out)
    people, released = int(joint.original.sum()), int(joint.released.sum())
    expected, unsure = alone_in_both(joint.original[counted], released / max(people, 1))
    base = people if denominator == "original" else released
    # Drawn again, the fitted rates vary about half as much as they are off.
    found = Found(replicated, expected, base, unsure=2 * unsure)
    return {"replicated_by_chance": expected, "repU_beyond_chance": 100 * found.share_beyond_chance}


def not_counted(missing_keys: bool | Sequence[str], keys: Sequence[str]) -> tuple[str, ...]:
    """Name the keys whose missing values must not count."""
    if isinstance(missing_keys, bool):
        return () if missing_keys else tuple(keys)
    for key in missing_keys:
        if key not in keys:
            raise ParameterError(f"missing_keys names '{key}', which is not one of the keys.")
    return tuple(key for key in keys if key not in missing_keys)


def _unique_records(files: PairedFiles, left_out: Sequence[str], which: Which) -> Any:
    """Say of every record whether it is alone, whether the other file has its keys, and whether both are."""
    shared = files.links[0]
    joint, position = coarsened(engine.key_counts(shared), files.keys, (), files.classes)
    side = shared.original if which == "original" else shared.released
    ours, theirs = (
        (joint.original, joint.released) if which == "original" else (joint.released, joint.original)
    )
    counted = ~missing_key(joint, files.keys, left_out)
    at = position[side.members["q"].to_numpy()]
    table = side.members.drop("q", "records").with_columns(
        pl.Series("unique", ((ours == 1) & counted)[at]),
        pl.Series("in_other_file", (theirs > 0)[at]),
        pl.Series("replicated", ((ours == 1) & (theirs == 1) & counted)[at]),
    )
    return engine.carry_back(side.data, files.keys, "category", table)


# Do the people who stand out on few columns stand out again in the release?


@measure(
    room="risk",
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
    compare=OfPair(15, "risk", usual=False, keys=True),
)
def replicated_special_uniques(
    original: Microdata,
    released: Microdata,
    *,
    keys: ColumnNames | None = None,
    max_size: Annotated[int, AtLeast(1)] = 3,
    precision: Annotated[Setting, Public()] = None,
    progress: bool = False,
) -> Measure:
    """How many released records stand out in the very way that somebody of the original does?

    A minimal sample unique is a set of column values that exactly one record has, while no part of the set is
    unique. The risk is the share, among the released records that have one, of those with one that is also a
    minimal unique of the original.

    Also known as: SUDA of synthetic data.

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
    engine.must_be_released(released, keys, "key")
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
        detail=engine.tables_like(original, sets=sets),
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
    for name, key in engine.key_names(keys).items():
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
