"""Do columns still hang together as they did? Correlations and mixed associations before and after."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats
from discreet.core.cards import Figure, OfPair, OfStudy, Shown, TwoFiles, measure
from discreet.core.charts import Chart, Dots, Grid, Row, finite, rows_of
from discreet.core.constraints import ColumnName, ColumnNames
from discreet.core.errors import InputError, ParameterError
from discreet.core.findings import Beside, Finding, Headline, OfReleases, OfSynthesis, OfWorst
from discreet.core.results import Measure
from discreet.core.wording import shown
from discreet.engine.shared_tables import shared_tables
from discreet.microdata import Microdata
from discreet.pairs.side_by_side import DEPENDENT, compared_columns, copies_of, names_checked, weights_of
from discreet.utility import associations
from discreet.utility.margin_change import columns_with_new_gaps
from discreet.utility.sampled_measures import beyond_chance

Correlation = Literal["pearson", "spearman"]
_BY_CHANCE = 3.0
_KINDS = ("pearson", "spearman", "cramers_v", "correlation_ratio", "theils_u")


_CHANCE = 3.0
_CHANGED = 0.1
_CALLED = {
    "pearson": "correlation",
    "spearman": "rank correlation",
    "cramers_v": "Cramér's V",
    "correlation_ratio": "correlation ratio",
}


def _what_changed(found: Measure, beside: Beside) -> Iterator[Finding]:
    """Find relations that changed; one that seems stronger among the values suppression left is none."""
    gaps = columns_with_new_gaps(beside.measures.get("margins"))
    beyond_chance = [
        row
        for row in rows_of(found, "pairs")
        if not _is_chance(row)
        and not ({row["column"], row["other"]} & gaps and abs(row["after"] or 0) > abs(row["before"] or 0))
    ]
    for row in beyond_chance[:3]:
        change = abs(row["difference"] or 0)
        if change >= _CHANGED:
            verb = "weakened" if abs(row["after"]) < abs(row["before"]) else "strengthened"
            turned = row["before"] * row["after"] < 0
            yield Finding(
                "relation changed",
                change / _CHANGED,
                f"The relation of '{row['column']}' and '{row['other']}' {'turned round' if turned else verb}: from "
                f"{shown(round(row['before'], 3))} to {shown(round(row['after'], 3))} ({_CALLED[row['measure']]}).",
            )


def _is_chance(row: Mapping[str, Any]) -> bool:
    """Say whether two samples of so few records that know both columns differ as much by chance."""
    known = [row.get("known_before"), row.get("known_after")]
    if row["measure"] not in ("pearson", "spearman") or not all(known):
        return False
    return bool(
        abs(row["difference"] or 0) < _CHANCE * math.sqrt(sum(1 / float(many or 1) for many in known))
    )


_MOST_COLUMNS = 30
_MOST_PAIRS = 12


def _pictures(found: Measure, show_values: bool) -> Iterator[Chart]:
    rows = [
        row
        for row in rows_of(found, "pairs", "column", "other", "before", "after")
        if finite(row["before"]) and finite(row["after"])
    ]
    if not rows:
        return
    kept = rows[:_MOST_PAIRS]
    first = f" (the {len(kept)} that changed most)" if len(kept) < len(rows) else ""
    yield Dots(
        title=f"Relations of two columns before and after{first}",
        series=("Released", "Original"),
        rows=tuple(
            Row(f"{row['column']}, {row['other']}", (float(row["after"]), float(row["before"])))
            for row in kept
        ),
        axis="Correlation of numbers (-1 to 1), Cramér's V of categories, correlation ratio of one of each (0 to 1)",
        as_share=False,
        mark=0.0,
    )
    names = list(found.parameters.get("columns", ()))
    if not 3 <= len(names) <= _MOST_COLUMNS:
        return
    for table, title in (
        ("before", "How strongly columns hang together in the original"),
        ("after", "How strongly columns hang together in the release"),
        ("difference", "By how much the relations changed"),
    ):
        matrix = [tuple(row.values())[1:] for row in rows_of(found, table)]
        yield Grid(
            title=title,
            row_labels=tuple(names),
            column_labels=tuple(names),
            values=tuple(
                tuple(
                    None if i == j or not finite(value) else round(abs(float(value)), 2)
                    for j, value in enumerate(row)
                )
                for i, row in enumerate(matrix)
            ),
            axis="Without signs; the stronger the color, the larger",
            as_share=False,
            extra=table != "difference",
        )


def _of_samples(pair: TwoFiles) -> Mapping[str, Any]:
    return {"samples": not (pair.linked or pair.ids)}


@measure(
    room="utility",
    work="whole-file",
    title="Relations between columns",
    question="Are relations between two columns as strong as they were?",
    headline="mean change of a relation",
    chapter="pairs",
    place=2,
    leading=True,
    figures={
        "value": Figure(better="lower", interval=("beyond_chance", "mean_change"), tries="records"),
        "mean_change": Figure(
            "Mean change of a relation",
            better="lower",
            summary=True,
            interval=("beyond_chance", "mean_change"),
            tries="records",
        ),
        "by_chance": Figure("What two samples of as many records reach by chance (95 %)"),
        "beyond_chance": Figure("Mean change of a relation beyond that", better="lower"),
        "records": Figure("Records of the smaller file"),
        "largest_change": Figure("Largest change of a relation"),
        "frobenius": Figure("Distance of the two matrices of relations"),
        "pearson_change": Figure("Change of correlations, mean"),
        "spearman_change": Figure("Change of rank correlations, mean"),
        "cramers_v_change": Figure("Change of relations of two categories (Cramér's V), mean"),
        "correlation_ratio_change": Figure(
            "Change of relations of a number and a category (correlation ratio), mean"
        ),
        "theils_u_change": Figure("Change of Theil's U, mean"),
        "mean_before": Figure("Mean strength of relations before"),
        "mean_after": Figure("Mean strength of relations after"),
        "sign_changes": Figure("Relations that turned round"),
        "pairs": Figure("Pairs of columns"),
        "undefined_pairs": Figure("Pairs without a defined relation"),
    },
    tables=(
        Shown(
            "pairs",
            "Pairs, the largest change first",
            (
                "column",
                "other",
                "measure",
                "before",
                "after",
                "difference",
            ),
        ),
    ),
    compare=OfPair(
        4, "utility", at_once=True, two_columns=True, effort=2, any_size=True, settings=_of_samples
    ),
    study=OfStudy(5),
    worst=OfWorst(3, _what_changed),
    pictures=_pictures,
    releases=OfReleases(
        4,
        {"largest_change": "Largest change of a relation"},
        headline=Headline(
            "largest_change",
            "largest change of a relation",
            "On a scale from 0 to 1 (correlations: 2).",
        ),
    ),
    synthesis=OfSynthesis(would_give="the columns would have to be coarser beforehand, or the limit wider"),
)
def dependence(
    original: Microdata,
    released: Microdata | Sequence[Microdata],
    *,
    columns: ColumnName | ColumnNames | None = None,
    categorical: ColumnName | ColumnNames = (),
    correlation: Correlation = "pearson",
    weight: ColumnName | None = None,
    max_levels: int = 200,
    samples: bool = False,
) -> Measure:
    """Do columns still hang together as they did?

    Two numbers are compared by their correlation, two categories by Cramér's V (and Theil's U in both directions), a
    number and a category by the correlation ratio. The difference of a pair is the one of its usual measure, after
    minus before.

    Also known as: Cramer's V; correlation ratio; pairwise correlation difference; PCD.

    Parameters
    ----------
    original, released
        The file before and after; or a list of copies, over which the associations are averaged.
    columns
        What to compare; all columns that both files have, but identifiers and the weight, unless named.
    categorical
        Columns of numbers that are codes.
    correlation
        Which correlation of numbers counts in the headline and the matrices; both are in the table of pairs.
    weight
        Survey weight; the one of the original unless named.
    max_levels
        Categories with more levels than this are left out, and named in a caveat.
    samples
        Whether the release is of other people than the original, so that small files differ by chance: halves of each
        file tell by how much.

    Returns
    -------
    Measure
        ``value`` is the mean absolute difference over all pairs. ``figures``: ``mean_change``, ``largest_change``,
        ``frobenius`` (of the difference of the two matrices, both halves); ``pearson_change``, ``spearman_change``,
        ``cramers_v_change``, ``correlation_ratio_change``, ``theils_u_change`` (means over their pairs);
        ``mean_before``, ``mean_after`` (mean strength), ``sign_changes``, ``pairs``; of ``samples``, ``by_chance``
        (reached by files of one population in one case of twenty) and ``beyond_chance``, what is left of ``value``.
        ``detail``: ``pairs``, the largest difference first; ``before``, ``after`` and ``difference``, the matrices;
        ``theils_u``; ``copies``.

    How to read it
    --------------
    Associations lie between 0 and 1 (correlations between -1 and 1), so a difference of 0.1 is a tenth of the scale.
    Protection usually weakens relations: ``mean_after`` below ``mean_before`` says by how much, and added noise alone
    shrinks a correlation by the root of the product of the two reliabilities. Start with the first pairs of
    ``detail["pairs"]``, and with sign changes: they turn conclusions round.

    When not to trust it
    --------------------
    A correlation sees straight lines only, and one outlier can make or break it: hold it against Spearman's. Cramér's
    V and the correlation ratio of categories with many levels are large by chance in small files, before and after
    alike. A gap counts as a level of its own, unless the release has more of them than the original (suppression):
    then the relation is that of the known values, in both files. All of them look at two columns at a time; three can
    lose what no pair shows. No p-value is given, for the files are dependent.

    Examples
    --------
    >>> before = Microdata(pl.DataFrame({"a": [1, 2, 3, 4], "b": [2, 4, 6, 8], "c": ["x", "x", "y", "y"]}))
    >>> after = Microdata(pl.DataFrame({"a": [1, 2, 3, 4], "b": [8, 6, 4, 2], "c": ["x", "x", "y", "y"]}))
    >>> found = dependence(before, after)
    >>> found.figures["largest_change"], found.figures["sign_changes"]
    (2.0, 1)
    """
    copies = copies_of(released, original)
    coded = names_checked(original, categorical, "categorical")
    compared = compared_columns(original, copies[0], columns, without=[weight])
    if len(compared.names) < 2:
        raise ParameterError("Relations need two columns at least. Name more with columns=[…].")
    notes = dict.fromkeys(compared.caveats)
    found = []
    for copy in copies:
        weights, said = weights_of(original, copy, weight)
        shared = shared_tables(
            original, copy, compared.names, engine.Cutting(), categorical=coded, weights=weights
        )
        kept, left_out = _kept(shared, max_levels)
        gaps = _gaps_added(shared, kept)
        notes |= dict.fromkeys([*said, *left_out, *([_gaps_in_words(gaps)] if gaps else [])])
        notes |= dict.fromkeys(associations.sampled_in_words(shared, kept))
        found.append(_pairs(shared, kept, correlation, gaps))
    whole = _averaged(found)
    kept = [name for name in compared.names if name in {*whole["column"], *whole["other"]}]
    figures = _figures(whole)
    asked = {"columns": kept, "categorical": coded, "correlation": correlation, "weight": weight}
    figures |= (
        beyond_chance(dependence, (original, copies[0]), asked, figures["mean_change"])
        if samples
        else {"beyond_chance": figures["mean_change"]}
    )
    copied = pl.DataFrame([{"copy": i, **_figures(table)} for i, table in enumerate(found, 1)])
    worst = whole.row(0, named=True)
    pairs = whole.drop("u_before", "u_after", "v_before", "v_after")
    return Measure(
        name="dependence",
        value=figures["mean_change"],
        figures={**figures, "copies": len(copies)},
        meaning=(
            "All relations between two columns are what they were."
            if not figures["largest_change"]
            else f"Relations between two columns changed by {shown(figures['mean_change'])} on average, on a scale "
            f"from 0 to 1; most of all that of '{worst['column']}' and '{worst['other']}', from "
            f"{shown(worst['before'])} to {shown(worst['after'])}."
        ),
        caveats=[*notes, DEPENDENT],
        parameters={
            "columns": kept,
            "categorical": list(coded),
            "correlation": correlation,
            "weight": weight or original.roles.weight,
            "max_levels": max_levels,
            "samples": samples,
            "needs_alignment": False,
            "inference_valid": False,
        },
        detail=engine.tables_like(
            original,
            pairs=pairs,
            before=lambda: _matrix(whole, kept, pl.col("before")),
            after=lambda: _matrix(whole, kept, pl.col("after")),
            difference=lambda: _matrix(whole, kept, pl.col("after") - pl.col("before"), diagonal=0.0),
            theils_u=lambda: _directed(whole),
            copies=copied,
        ),
    )


def _kept(shared: engine.SharedTables, max_levels: int) -> tuple[list[str], list[str]]:
    kept, many, constant = [], [], []
    for name, groups in shared.groups.items():
        if groups.size < 2:
            constant.append(name)
        elif groups.kind == "category" and groups.size > max_levels:
            many.append(name)
        else:
            kept.append(name)
    notes = []
    if constant:
        notes.append(f"Constant in both files, and left out: {', '.join(map(repr, constant))}.")
    if many:
        notes.append(f"More than {max_levels:,} levels, and left out: {', '.join(map(repr, many))}.")
    if len(kept) < 2:
        raise InputError(
            "Fewer than two columns vary and have few enough levels, so there is no relation to compare."
        )
    return kept, notes


def _gaps_added(shared: engine.SharedTables, kept: Sequence[str]) -> frozenset[str]:
    """Name the categories that have more gaps after than before, beyond chance: there a gap is no value of its own."""
    words = [name for name in kept if shared.groups[name].kind == "category" and shared.groups[name].missing]
    if not words:
        return frozenset()
    ours, theirs = (engine.overview(file.data, words) for file in (shared.original, shared.released))
    added = set()
    for name in words:
        before, after = ours.missing[name] / ours.rows, theirs.missing[name] / theirs.rows
        chance = np.sqrt(before * (1 - before) * (1 / ours.rows + 1 / theirs.rows))
        if after > before + _BY_CHANCE * chance:
            added.add(name)
    return frozenset(added)


def _gaps_in_words(names: frozenset[str]) -> str:
    listed = ", ".join(map(repr, sorted(names)))
    return f"The release has gaps of its own in {listed}: relations of these columns are those of their known values."


def _pairs(
    shared: engine.SharedTables, kept: Sequence[str], correlation: Correlation, gaps: frozenset[str]
) -> pl.DataFrame:
    """Measure all pairs in both files; where the release added ``gaps``, among the known values."""
    numbers = [name for name in kept if shared.groups[name].kind == "number"]
    words = [name for name in kept if shared.groups[name].kind == "category"]
    rows: dict[tuple[str, str], dict[str, Any]] = {
        pair: {"column": pair[0], "other": pair[1]} for pair in itertools.combinations(kept, 2)
    }
    for side, file in (("before", shared.original), ("after", shared.released)):
        if numbers and file.frame is None and not file.by_rows:
            told = associations.counted_relations(file, numbers, words, correlation=correlation, gaps=gaps)
            for (one, other), found in told.items():
                row = rows[(one, other) if (one, other) in rows else (other, one)]
                row |= {"measure": found.pop("measure"), side: found.pop("value")}
                row |= {f"{name}_{side}": value for name, value in found.items()}
            continue
        columns = [*numbers, *(words if numbers else [])]
        held = file.frame if file.frame is not None else _fetched(file, columns) if numbers else None
        weights = None if held is None or file.weight is None else held[file.weight].cast(pl.Float64)
        if held is None or not numbers:
            continue
        table = pl.DataFrame(
            {
                name: engine.physical(engine.brought_to(held[name], shared.groups[name].dtype))
                for name in numbers
            }
        ).fill_nan(None)
        known = table.select(pl.all().is_not_null()).to_numpy().astype(np.float32)
        both = known.T @ known
        for kind in ("pearson", "spearman"):
            matrix = associations.correlations(table, numbers, weights, ranked=kind == "spearman")
            for (i, a), (j, b) in itertools.combinations(enumerate(numbers), 2):
                row = rows[a, b]
                row[f"{kind}_{side}"] = float(matrix[i, j])
                row[f"known_{side}"] = float(both[i, j])
                if kind == correlation:
                    row |= {"measure": kind, side: float(matrix[i, j])}
        values = table.to_numpy().T
        mass = None if weights is None else weights.to_numpy()
        for word in words:
            codes, size = shared.groups[word].codes(held[word]), shared.groups[word].size
            there = codes < size - 1 if word in gaps else np.ones(len(codes), dtype=np.bool_)
            ratios = associations.correlation_ratios(
                codes[there], size, values[:, there], None if mass is None else mass[there]
            )
            for name, ratio in zip(numbers, ratios, strict=True):
                row = rows[(name, word) if (name, word) in rows else (word, name)]
                row |= {"measure": "correlation_ratio", side: ratio}
    for pair, cells, o, s in shared.counted(list(itertools.combinations(words, 2))):
        shape = tuple(shared.groups[name].size for name in pair)
        for side, counts in (("before", o), ("after", s)):
            filled = np.zeros(shape)
            filled.ravel()[cells] = counts
            if gaps & set(pair):
                filled = filled[
                    tuple(slice(0, size - (name in gaps)) for name, size in zip(pair, shape, strict=True))
                ]
                at = np.flatnonzero(filled).astype(np.int64)
                v = associations.cramers_v(at, filled.ravel()[at], filled.shape)
                u = associations.theils_u(filled) if filled.sum() else (None, None)
            else:
                v, u = associations.cramers_v(cells, counts, shape), associations.theils_u(filled)
            rows[pair[0], pair[1]] |= {"measure": "cramers_v", side: v, f"u_{side}": u[0], f"v_{side}": u[1]}
    table = pl.DataFrame(list(rows.values()), schema=_COLUMNS).fill_nan(None)
    return table.with_columns(difference=pl.col("after") - pl.col("before"))


def _fetched(file: Any, columns: Sequence[str]) -> pl.DataFrame:
    """Bring the columns of a query engine into memory: ranks need every value."""
    return engine.collect(file.data, [*columns, *([file.weight] if file.weight else [])])


def _figures(table: pl.DataFrame) -> dict[str, Any]:
    moved = table["difference"].abs().drop_nulls()

    def mean(values: pl.Series) -> float | None:
        known = values.drop_nulls()
        return float(known.mean()) if len(known) else None  # type: ignore[arg-type]

    def change(kind: str) -> float | None:
        if kind in ("pearson", "spearman"):
            return mean((table[f"{kind}_after"] - table[f"{kind}_before"]).abs())
        if kind == "theils_u":
            return mean(pl.concat([(table[f"{x}_after"] - table[f"{x}_before"]).abs() for x in ("u", "v")]))
        return mean(table.filter(pl.col("measure") == kind)["difference"].abs())

    turned = table.filter(
        pl.col("measure").is_in(["pearson", "spearman"]) & (pl.col("before") * pl.col("after") < 0)
    )
    return {
        "mean_change": mean(moved),
        "largest_change": float(moved.max()) if len(moved) else None,  # type: ignore[arg-type]
        "frobenius": float(np.sqrt(2 * (moved.to_numpy() ** 2).sum())) if len(moved) else None,
        **{f"{kind}_change": change(kind) for kind in _KINDS},
        "mean_before": mean(table["before"].abs()),
        "mean_after": mean(table["after"].abs()),
        "sign_changes": turned.height,
        "pairs": table.height,
        "undefined_pairs": table["difference"].null_count(),
    }


def _averaged(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    whole = tables[0]
    if len(tables) > 1:
        grouped = pl.concat(tables).group_by("column", "other", maintain_order=True)
        whole = grouped.agg(pl.col("measure").first(), pl.col(pl.Float64).mean()).select(whole.columns)
    return whole.sort(pl.col("difference").abs(), descending=True, nulls_last=True, maintain_order=True)


def _matrix(
    pairs: pl.DataFrame, names: Sequence[str], what: pl.Expr, *, diagonal: float = 1.0
) -> pl.DataFrame:
    place = {name: i for i, name in enumerate(names)}
    matrix: Floats = np.full((len(names), len(names)), np.nan)
    np.fill_diagonal(matrix, diagonal)
    for a, b, value in pairs.select("column", "other", what.alias("value")).iter_rows():
        if value is not None:
            matrix[place[a], place[b]] = matrix[place[b], place[a]] = value
    columns = {name: matrix[:, i] for name, i in place.items()}
    first = "column" if "column" not in columns else "column "
    return pl.DataFrame({first: list(names), **columns}).fill_nan(None)


def _directed(pairs: pl.DataFrame) -> pl.DataFrame:
    """List Theil's U of each category given another."""
    held = pairs.filter(pl.col("measure") == "cramers_v")
    parts = [
        held.select(
            pl.col(of).alias("column"), pl.col(given).alias("given"), before=f"{x}_before", after=f"{x}_after"
        )
        for of, given, x in (("column", "other", "u"), ("other", "column", "v"))
    ]
    return pl.concat(parts).with_columns(difference=pl.col("after") - pl.col("before"))


_COLUMNS = {
    "column": pl.String,
    "other": pl.String,
    "measure": pl.String,
    **dict.fromkeys(
        ("before", "after", "pearson_before", "pearson_after", "spearman_before", "spearman_after", "u_before",
         "u_after", "v_before", "v_after", "known_before", "known_after"),
        pl.Float64,
    ),
}  # fmt: skip
