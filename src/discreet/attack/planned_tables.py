"""What could be rebuilt from tables that are to be published, before and after they are protected?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import polars as pl

from discreet.attack.counting_queries import Schema, records_of
from discreet.attack.ranked_reconstruction import DICK_2023, ONLY_WHAT_IS_BEHIND, Device, reconstruct
from discreet.attack.reconstruction_audit import SANCHEZ_2024, audit_reconstruction
from discreet.core.cards import Figure, measure
from discreet.core.constraints import ColumnName, ColumnNames
from discreet.core.errors import InputError, ParameterError, unknown_name
from discreet.core.parameters import checked
from discreet.core.progress import track
from discreet.core.randomness import fresh_seed, generator
from discreet.core.results import Detail, Measure
from discreet.core.wording import percent

if TYPE_CHECKING:
    from discreet.tables import ProtectedTable, SuppressionResult, Table
    from discreet.tables.table_protection import TableProtection


Published: TypeAlias = "Table | ProtectedTable | SuppressionResult"


@dataclass(frozen=True)
class Asked:
    """What a table tells: questions, their answers (None where suppressed), the codes, and how many records."""

    queries: tuple[dict[str, list[str]], ...]
    answers: tuple[float | None, ...]
    schema: Schema
    n: int


@checked
def queries_of(table: Published, *, area: str | None = None, place: str | None = None) -> Asked:
    """Which questions does a table answer, and how?

    Parameters
    ----------
    table
        A table of counts, as it is or protected.
    area, place
        Only what is published about one place, a code of the dimension ``area``.

    Examples
    --------
    >>> people = pl.DataFrame({"place": ["a", "a", "b"], "sex": ["f", "m", "f"]})
    >>> from discreet.tables import Table
    >>> asked = queries_of(Table.from_microdata(people, "place*sex"))
    >>> asked.n, asked.queries[1], asked.answers[1], dict(asked.schema)
    (3, {'sex': ['f']}, 2.0, {'place': ['a', 'b'], 'sex': ['f', 'm']})
    """
    shown, plain = _shown(table)
    _need_counts(plain)
    names = [name for name in plain.dimensions if name != area]
    if area is not None and area not in plain.dimensions:
        raise ParameterError(f"area: {unknown_name(area, plain.dimensions, what='dimension')}")
    inner = plain.inner
    if area is not None:
        shown = shown.filter(pl.col(area) == place)
        inner = inner.filter(pl.col(area) == place)
    n = int(inner["count"].sum())
    queries, answers = [], []
    sets = {name: plain.hierarchy[name].leaf_sets for name in names}
    for row in shown.iter_rows(named=True):
        query = {}
        for name in names:
            dimension = plain.hierarchy[name]
            if row[name] != dimension.total:
                query[name] = [dimension.leaves[leaf] for leaf in sorted(sets[name][row[name]])]
        queries.append(query)
        answers.append(None if row["answer"] is None else float(row["answer"]))
    schema = {name: list(plain.hierarchy[name].leaves) for name in names}
    return Asked(tuple(queries), tuple(answers), schema, n)


@measure(
    room="attack",
    title="Tables under attack",
    question="What could be rebuilt from the tables that are to be published?",
    headline="of the records rebuilt once belong to exactly one person",
    chapter="rebuilt",
    place=5,
    work="whole-file",
    references=(DICK_2023, SANCHEZ_2024),
    figures={
        "value": Figure("Rebuilt once and one person's", unit="share", better="lower", summary=True),
        "rare_precision_1": Figure("Rebuilt once and one person's", unit="share", better="lower"),
        "match_rate": Figure("Rebuilt records that exist", unit="share", better="lower"),
        "before_rare_precision_1": Figure("Rebuilt once and one person's, unprotected", unit="share"),
        "before_match_rate": Figure("Rebuilt records that exist, unprotected", unit="share"),
        "certain": Figure("People in a combination whose count is certain", unit="share", better="lower"),
        "before_certain": Figure("People whose count is certain, unprotected", unit="share"),
    },
)
@checked
def table_reconstruction(
    original: Any,
    table: Table | str,
    protected: ProtectedTable | SuppressionResult | Table | TableProtection | str | None = None,
    *,
    area: ColumnName | None = None,
    method: Literal["relaxed", "exact"] = "relaxed",
    tolerance: float = 0.0,
    public: ColumnNames | None = None,
    confidential: ColumnNames | None = None,
    exhaustive: bool = False,
    runs: int = 100,
    rows: int = 1000,
    steps: int = 1000,
    holdout: Any = None,
    device: Device = "auto",
    progress: bool = False,
    seed: int | None = None,
) -> Measure:
    """What could be rebuilt from these tables, and how much less once they are protected?

    Parameters
    ----------
    original
        The records that the tables were made from.
    table
        The tables as they are (counts; `discreet.tables.Table`), or a formula such as ``"place*sex*age + place*job"``.
    protected
        The tables as they would be published; or the protection to apply, also by its name
        (``"controlled-rounding"``).
    area
        A dimension whose places are rebuilt one by one from what is published about each; the audit pools them.
    method
        As in `reconstruct`: ``relaxed``, or ``exact`` for small areas.
    tolerance
        How far protected counts may be from the truth, as far as the attacker knows: 2 for rounding to 5.
    public, confidential, exhaustive, holdout
        As in `audit_reconstruction`.
    runs, rows, steps, device, progress
        As in `reconstruct`.
    seed
        Opens the streams of all areas.

    Returns
    -------
    Measure
        Figures of `audit_reconstruction` for what would be published, and those of the tables as they are with
        ``before_`` in front. ``detail``: ``audit`` (both side by side), ``areas_before`` and ``areas`` where there are
        areas, ``ranking_before`` and ``ranking``.

    How to read it
    --------------
    A protection is worth its price where ``rare_precision_1``, ``certain`` and ``disclosed`` fall. A match rate that
    stays high may be that of common records only: look at ``pearson``.

    When not to trust it
    --------------------
    The number of records of every area is taken as known. Attackers who know more (last year's tables, a prior) may do
    better, and a failed fit proves nothing: see the errors of `reconstruct`.

    Examples
    --------
    >>> people = pl.DataFrame({"place": list("aaab"), "sex": list("ffmf"), "age": list("1211")})
    >>> from discreet.tables import Table
    >>> planned = Table.from_microdata(people, "place*sex*age")
    >>> found = table_reconstruction(people, planned, area="place", method="exact")
    >>> found.figures["certain"], found.figures["match_rate"]
    (1.0, 1.0)
    """
    from discreet.tables import Table
    from discreet.tables.dimension import MISSING

    if isinstance(table, str):
        table = Table.from_microdata(original, table)
    if not isinstance(table, Table):
        raise ParameterError("table must be a Table of discreet.tables, or a formula such as 'place*sex'.")
    _need_counts(table)
    published_as = _protected(table, protected, seed)
    names = list(table.dimensions)

    def in_texts(data: Any) -> pl.DataFrame:
        return records_of(data, names).with_columns(pl.col(names).cast(pl.String).fill_null(MISSING))

    file = in_texts(original)
    root = fresh_seed() if seed is None else seed
    setting = {"runs": runs, "rows": rows, "steps": steps, "device": device, "method": method}
    sides: dict[str, tuple[Measure, Mapping[str, Any], pl.DataFrame]] = {}
    planned: dict[str, tuple[Published, float]] = {"before": (table, 0.0)}
    if published_as is not None:
        planned["after"] = (published_as, tolerance)
    for side, (published, off) in planned.items():
        ranking, more = _rebuilt(published, area, off, setting, root, progress=progress)
        audit = audit_reconstruction(
            file,
            ranking,
            public=public,
            confidential=confidential,
            exhaustive=exhaustive,
            strata=area,
            holdout=None if holdout is None else in_texts(holdout),
        )
        sides[side] = (audit, {**audit.figures, **more}, ranking)
    last = sides.get("after", sides["before"])
    first = sides["before"]
    figures = dict(last[1])
    if protected is not None:
        figures |= {f"before_{name}": value for name, value in first[1].items()}
    return Measure(
        name="table_reconstruction",
        value=last[0].value,
        figures=figures,
        meaning=_in_words(first[1], None if protected is None else last[1]),
        caveats=[ONLY_WHAT_IS_BEHIND, *last[0].caveats],
        parameters={"area": area, "method": method, "runs": runs, "rows": rows, "steps": steps, "seed": seed},
        detail=Detail(
            audit=lambda: pl.DataFrame(
                {
                    "figure": list(first[1]),
                    **{
                        side: [_number(told.get(name)) for name in first[1]]
                        for side, (_, told, _) in sides.items()
                    },
                }
            ),
            ranking=lambda: last[2],
            ranking_before=lambda: first[2],
            **(
                {"areas": lambda: last[0].detail["areas"], "areas_before": lambda: first[0].detail["areas"]}
                if area
                else {}
            ),
        ),
    )


def _rebuilt(
    table: Published,
    area: str | None,
    tolerance: float,
    setting: Mapping[str, Any],
    root: int,
    *,
    progress: bool,
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """The rankings of all areas under each other, and what the programs say together."""
    _, plain = _shown(table)
    places: list[str | None] = [None] if area is None else list(plain.hierarchy[area].leaves)
    parts, certain, people, skipped, errors = [], 0.0, 0, 0, []
    noisy = not hasattr(table, "cells")
    for place in track(places, len(places), "Rebuilding areas", progress=progress):
        asked = queries_of(table, area=area, place=place)
        if not asked.n or all(answer is None for answer in asked.answers):
            skipped += 1
            continue
        found = reconstruct(
            asked.queries,
            list(asked.answers),
            asked.schema,
            asked.n,
            tolerance=tolerance,
            noisy=noisy,
            seed=int(generator(root, "tables", str(place)).integers(2**62)),
            **setting,
        )
        people += asked.n
        certain += float(found.figures.get("certain") or 0.0) * asked.n
        errors.append(float(found.figures.get("mean_error") or 0.0))
        ranking = found.detail["ranking"].drop("runs", "rank", strict=False)
        parts.append(ranking if area is None else ranking.with_columns(pl.lit(place).alias(str(area))))
    if not parts:
        raise InputError(
            "Nothing can be rebuilt: every area is empty, or all that is published of it is suppressed."
        )
    names = [name for name in plain.dimensions if name != area]
    nothing = pl.DataFrame(
        schema={**dict.fromkeys([*names, *([area] if area else [])], pl.String), "freq": pl.Int64}
    )
    # Where nothing is certain nothing is claimed, and the audit says that nothing was found.
    filled = [nothing, *(part for part in parts if part.height)]
    more: dict[str, Any] = {"areas": len(parts), "areas_left_out": skipped}
    if setting["method"] == "exact":
        more["certain"] = certain / people
    else:
        more["mean_error"] = sum(errors) / len(errors)
    return pl.concat([part.select(nothing.columns).cast(nothing.schema) for part in filled]), more


def _protected(table: Table, protected: Any, seed: int | None) -> Published | None:
    """The tables as they would be published, where a protection was named instead of them."""
    from discreet.tables.table_protection import TableProtection

    if isinstance(protected, str):
        known = TableProtection.known
        if protected not in known:
            raise ParameterError(unknown_name(protected, known, what="protection of tables"))
        protected = known[protected]()
    if isinstance(protected, TableProtection):
        return protected.apply(table, seed=seed)
    if protected is not None:
        _shown(protected)
    return protected  # type: ignore[no-any-return]


def _shown(table: Published) -> tuple[pl.DataFrame, Table]:
    """The cells with what is published in them, and the table with its codes and inner cells."""
    from discreet.tables import ProtectedTable, SuppressionResult, Table

    if not isinstance(table, Table | ProtectedTable | SuppressionResult):
        raise ParameterError("table must be a Table, or one that was protected: see discreet.tables.")
    if isinstance(table, SuppressionResult):
        kept = pl.when(pl.col("suppressed").is_null()).then(pl.col(table.table.value))
        return table.table.cells.with_columns(answer=kept), table.table
    if isinstance(table, ProtectedTable):
        return table.table.cells.with_columns(answer=pl.col(table.table.value)), table.original
    return table.cells.with_columns(answer=pl.col(table.value)), table


def _need_counts(table: Table) -> None:
    if table.value != "count":
        raise ParameterError(
            f"The table publishes '{table.value}'; records are rebuilt from counts. Build it without measure= and "
            "weight=."
        )


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _in_words(before: Mapping[str, Any], after: Mapping[str, Any] | None) -> str:
    told = f"From the tables as they are, {_side(before)}."
    return told if after is None else f"{told} After protection {_side(after)}."


def _side(figures: Mapping[str, Any]) -> str:
    if not figures["rebuilt"]:
        said = "no record is rebuilt"
    elif figures["rare_precision_1"] is None:
        said = f"{percent(figures['match_rate'])} of the rebuilt records exist in the file; none was rebuilt just once"
    else:
        said = (
            f"{percent(figures['match_rate'])} of the rebuilt records exist in the file and "
            f"{percent(figures['rare_precision_1'])} of those rebuilt once belong to exactly one person"
        )
    if "certain" in figures:
        said += f"; {percent(figures['certain'])} of the people stand in a combination whose count is certain"
    return said
