"""What did the protection cost? One number to rank plans by, and the checks behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.cards import Figure, OfPair, Shown, TwoFiles, measure
from discreet.core.charts import rows_of
from discreet.core.constraints import ColumnName, ColumnNames, HoldsValues, Public, Share
from discreet.core.errors import ColumnError, need_known
from discreet.core.findings import Beside, Finding, OfReleases, OfSynthesis, OfWorst
from discreet.core.results import Measure
from discreet.core.wording import percent
from discreet.hierarchy import Hierarchy
from discreet.microdata import Microdata
from discreet.utility import column_loss
from discreet.utility.associations import changes
from discreet.utility.column_pictures import pictures_of_loss
from discreet.utility.comparisons import Comparisons, Groups
from discreet.utility.linked_files import LinkedFiles, link
from discreet.utility.sampled_measures import SAMPLED, beyond_chance, drawn_pair, of_sample
from discreet.utility.table_distances import Closed

_MOST_NAMED = 5
_MOST_CELLS, _SAMPLED = engine.MOST_CELLS, SAMPLED


def _in_a_comparison(pair: TwoFiles) -> dict[str, Any]:
    return {
        "columns": list(pair.wanted),
        "ids": pair.ids,
        "aligned": None if pair.ids else pair.linked,
        "samples": not (pair.linked or pair.ids),
    }


_WORTH_SAYING = 0.1


def _what_was_lost(found: Measure, beside: Beside) -> Iterator[Finding]:
    """Name the columns that are told less precisely, which their shares do not show."""
    moved = {
        row["column"]: row["distance"] or 0.0 for row in rows_of(beside.measures.get("margins"), "variables")
    }
    for row in rows_of(found, "variables"):
        lost = row.get("loss") or 0.0
        if lost >= _WORTH_SAYING > moved.get(row["column"], 0.0):
            yield Finding(
                "information lost",
                lost / _WORTH_SAYING,
                f"'{row['column']}' has lost {percent(lost)} of its information: it is less precise than it was.",
            )


@measure(
    room="utility",
    work="whole-file",
    question="How much less do the columns say than before?",
    headline="of the information is lost",
    chapter="margins",
    place=2,
    figures={
        "value": Figure(
            unit="share", better="lower", summary=True, interval=("beyond_chance", "loss"), tries="records"
        ),
        "loss": Figure("Information lost, mean over the columns", unit="share"),
        "by_chance": Figure(
            "What two samples of as many records seem to lose by chance (95 %)", unit="share"
        ),
        "beyond_chance": Figure("Information lost beyond that", unit="share", better="lower"),
        "records": Figure("Records"),
        "largest_column_loss": Figure("Information lost by the column that lost most", unit="share"),
        "columns": Figure("Columns compared"),
        "columns_dropped": Figure("Columns not released"),
        "records_removed": Figure("Records removed"),
        "records_changed": Figure("Records with a changed cell"),
        "share_records_changed": Figure("Share of records with a changed cell", unit="share"),
        "cells_changed": Figure("Cells changed"),
        "share_cells_changed": Figure("Share of cells changed", unit="share"),
        "cells_suppressed": Figure("Cells that became missing (suppressed)"),
        "il1": Figure("Relative error of the numbers, summed (IL1)"),
        "il1s": Figure("Error of the numbers in standard deviations, summed (IL1s)"),
        "il1s_per_cell": Figure("Error of a number in standard deviations (IL1s)"),
        "mean_change": Figure("Change of the means, in standard deviations"),
        "variance_change": Figure("Change of the variances, relative"),
        "covariance_change": Figure("Change of the covariances, relative"),
        "correlation_change": Figure("Change of the correlations, mean"),
        "largest_correlation_change": Figure("Change of the correlations, largest"),
        "share_means_in_interval": Figure(
            "Share of means within the original confidence interval", unit="share"
        ),
        "eigenvalue_change": Figure("Change of the eigenvalues of the covariance matrix"),
        "eigenvalue_loss": Figure("Eigenvalue loss"),
        "lm_loss": Figure("Change of regression coefficients (lm loss)"),
        "discernibility": Figure("Records that cannot be told apart (discernibility)"),
        "discernibility_original": Figure("The same in the original"),
        "average_class_size": Figure("Average group size"),
        "average_class_size_original": Figure("Average group size in the original"),
        "misclassification": Figure("Records outside the majority of their group"),
        "misclassification_original": Figure("Records outside the majority in the original"),
        "normalized_entropy": Figure("Entropy lost by coarser keys (normalized)"),
        "granularity": Figure("Share of the domain that a released key value covers"),
        "generalization_intensity": Figure("Share of the way up the hierarchies"),
    },
    columns={"mean_before": Figure("Mean before"), "mean_after": Figure("Mean after")},
    tables=(
        Shown(
            "variables",
            "By column",
            (
                "column",
                "kind",
                "loss",
                "changed",
                "suppressed",
                "mean_before",
                "mean_after",
            ),
        ),
    ),
    compare=OfPair(
        1,
        "utility",
        as_it_was=True,
        effort=2,
        settings=_in_a_comparison,
        any_size=True,
    ),
    worst=OfWorst(24, _what_was_lost, nothing_differs=lambda found: found.value == 0),
    pictures=pictures_of_loss,
    releases=OfReleases(1, {"loss": "Information lost"}),
    synthesis=OfSynthesis(would_give="the columns would have to be coarser beforehand, or the limit wider"),
    tells=("tables",),
)
def information_loss(
    original: Microdata,
    released: Microdata,
    *,
    columns: ColumnName | ColumnNames | None = None,
    keys: ColumnNames | None = None,
    target: ColumnName | None = None,
    categorical: ColumnName | ColumnNames = (),
    ids: ColumnName | None = None,
    aligned: bool | None = None,
    groups: Annotated[Groups, Public()] = 5,
    closed: Closed = "right",
    level: Annotated[float, Share(above=True, below=True)] = 0.95,
    divisor: Literal["n-1", "n"] = "n-1",
    hierarchies: Annotated[Mapping[str, Hierarchy], HoldsValues(by_column=True)] | None = None,
    weight: ColumnName | None = None,
    samples: bool = False,
) -> Measure:
    """What did the protection cost?

    The headline is the mean, over columns, of the share of a column that is lost. A cell that is suppressed, whose
    record was removed, or that was invented for a gap has lost 1. A *label* (a band, a group of categories) has lost
    the share of the people with other values whom it also covers: a label for everything has lost 1. A *number* that
    was moved has lost four times the share of the file that it passed, at most 1: as much as a band in which numbers
    lie that far from the middle, so that rounding to fives and bands of five cost about the same. A *category* that
    was exchanged has lost 1, and those left alone lose as much as they can be mistaken for exchanged ones. The loss is
    0 for an unchanged file and 1 for one that says nothing; it does not fall when labels are merged into coarser ones
    or when more cells are suppressed. It looks at one column at a time: relations between columns are in the figures.

    Two queries (Polars lazy, DuckDB, Spark) of more than a hundred million cells are not collected: where ``ids`` or
    their order links the records the same figures are added up over all of them, and a caveat names what a sample
    tells.

    Without linked records (other numbers of records, another order, a synthetic file) the same loss is computed for
    the closest match of the two distributions. That is a lower bound, not to be ranked against linked ones: name a
    column that links the records with ``ids`` where there is one.

    Also known as: IL1s; IL1; information loss; mean absolute error of values.

    Parameters
    ----------
    original, released
        The file before and after.
    columns
        What to compare; every column but identifiers and the weight unless named. One that was not released has
        lost everything.
    keys
        Keys for the losses of classes; those of the original unless named.
    target
        Column that the classes on the keys are to predict; the first sensitive one unless named.
    categorical
        Columns of numbers that are codes.
    ids
        A column that links the records of both files.
    aligned
        Whether record i of one file is record i of the other. Found out unless said: the same number of records that
        do not look shuffled.
    groups
        Number of groups, equally filled in the original, of numeric columns in tables; or ``{column: [break, …]}``.
    closed
        Whether a number on a break belongs to the group below (``"right"``) or above it (``"left"``).
    level
        Of the confidence intervals.
    divisor
        ``"n-1"`` or ``"n"`` for variances and covariances.
    hierarchies
        ``{column: Hierarchy}`` by which keys were generalized, for granularity and generalization intensity.
    weight
        Survey weight for moments, tables and distribution functions; the one of the original unless named. The
        headline counts records.
    samples
        Whether the release is of other people than the original, so that small files differ by chance: halves of each
        file tell by how much (``by_chance``).

    Returns
    -------
    Measure
        ``value`` is the loss in [0, 1]. ``figures``: ``records_changed``, ``cells_changed``, ``cells_suppressed``,
        ``records_removed`` and their shares; ``il1s``, ``il1s_per_cell``; ``mean_change`` (in standard deviations),
        ``variance_change`` (relative), ``covariance_change``, ``correlation_change``, ``share_means_in_interval``;
        ``eigenvalue_change``, ``eigenvalue_loss``, ``lm_loss`` (coefficients of each column on the others);
        ``discernibility``, ``average_class_size``, ``misclassification`` with what the original had;
        ``normalized_entropy``, ``granularity`` (share of the domain that a label covers), ``generalization_intensity``
        (share of the way up the hierarchy). None is undefined. ``detail``: ``variables``, ``correlations``,
        ``distances``, ``tables``, ``histograms``, ``quantiles``, ``records``.

    Examples
    --------
    >>> from discreet.protect import Band
    >>> people = Microdata(pl.DataFrame({"age": [20, 21, 30, 31], "sex": ["f", "m", "f", "m"]}), keys="age")
    >>> information_loss(people, people).value
    0.0
    >>> [
    ...     round(information_loss(people, Band(widths={"age": width}).apply(people).data).value, 3)
    ...     for width in (10, 100)
    ... ]
    [0.167, 0.5]
    """
    original.need_plain_names()
    if engine.too_large(original, released, most=_MOST_CELLS):
        asked = {name: value for name, value in locals().items() if name not in ("original", "released")}
        return _counted(original, released, asked)
    roles = original.roles
    weight = engine.resolve_weight(original, weight)
    wanted = tuple(roles.keys if keys is None else ((keys,) if isinstance(keys, str) else keys))
    files = link(original, released, columns, extra=[weight] if weight else [], ids=ids, aligned=aligned)
    coded = (categorical,) if isinstance(categorical, str) else tuple(categorical)
    need_known(
        (*coded, *wanted, *([target] if target else [])),
        original.schema,
        "It was named for information_loss.",
    )
    pairs = {
        name: column_loss.comparable_kind(files.original[name], files.released[name], category=name in coded)
        for name in files.kept
    }
    _finite(pairs)
    losses = {name: _column_loss(files, name, pairs.get(name)) for name in files.columns}
    value = float(np.mean(list(losses.values())))
    compared = Comparisons(files, pairs, losses, coded, weight, groups, closed, level, divisor)
    moved, moved_caveats = changes(compared.before, compared.after, level)
    predicted = target or (roles.sensitive[0] if roles.sensitive else None)
    if predicted in wanted:
        predicted = None
    by_class, class_caveats = column_loss.class_losses(original, released, wanted, predicted, files.removed)
    by_cell, cell_caveats = column_loss.cell_losses(files, wanted, hierarchies or {})
    return Measure(
        name="information_loss",
        value=value,
        figures={
            "loss": value,
            "largest_column_loss": max(losses.values()),
            "columns": len(files.columns),
            "columns_dropped": len(files.dropped),
            "records": files.records,
            "records_removed": files.removed,
            **compared.counts,
            **compared.errors,
            **moved,
            **by_class,
            **by_cell,
            **_beyond_chance(original, released, value, files, coded, samples=samples),
        },
        meaning=_meaning(files, losses, value, compared),
        caveats=[
            *files.notes,
            *_caveats(files, compared),
            *moved_caveats,
            *class_caveats,
            *cell_caveats,
        ],
        parameters={
            "columns": list(files.columns),
            "keys": list(wanted),
            "target": predicted,
            "categorical": list(coded),
            "ids": ids,
            "aligned": files.aligned,
            "groups": groups,
            "closed": closed,
            "level": level,
            "divisor": divisor,
            "weight": weight,
            "samples": samples,
        },
        detail=engine.tables_like(
            original,
            variables=compared.variables,
            correlations=compared.correlations,
            distances=compared.distances,
            tables=compared.tables,
            histograms=compared.histograms,
            quantiles=compared.quantiles,
            records=compared.records,
        ),
    )


def _beyond_chance(
    original: Microdata,
    released: Microdata,
    value: float,
    files: LinkedFiles,
    categorical: Sequence[str],
    *,
    samples: bool,
) -> dict[str, float | int | None]:
    if not samples or files.aligned:
        return {"beyond_chance": value}
    asked = {"columns": list(files.kept), "categorical": list(categorical), "aligned": False}
    return beyond_chance(information_loss, (original, released), asked, value)


def _counted(original: Microdata, released: Microdata, settings: Mapping[str, Any]) -> Measure:
    """Add up over all records what can be, and measure a stated sample for the rest."""
    from discreet.utility.counted_loss import over_all_records

    sample, many = drawn_pair(original, released, _SAMPLED, ids=settings["ids"], seed=0)
    found = information_loss(*sample, **settings)
    linked = settings["ids"] or len(set(many)) == 1
    counted = over_all_records(found, sample, (original, released), settings) if linked else None
    if counted is not None:
        return counted
    return of_sample(information_loss, found, sample, many, settings)


def _column_loss(
    files: LinkedFiles, name: str, pair: tuple[column_loss.Kind, pl.Series, pl.Series] | None
) -> float:
    if pair is None:
        return 1.0
    kind, ours, theirs = pair
    if files.gone is None:
        return column_loss.unlinked_loss(kind, ours, theirs, files.removed / files.records)
    return column_loss.linked_loss(kind, ours, theirs, files.gone, files.same[name])


def _meaning(files: LinkedFiles, losses: Mapping[str, float], value: float, compared: Comparisons) -> str:
    empty = [name for name in losses if name in files.dropped or _emptied(files, name)]
    if not files.aligned:
        return told_of_loss(
            losses, value, empty, ", at the least: the records of the two files are not linked."
        )
    changed, share = compared.counts["records_changed"], compared.counts["share_records_changed"]
    gone = f", and {files.removed:,} were removed" if files.removed else ""
    said = f"; {changed:,} of {files.records:,} records ({percent(share)}) were changed{gone}."
    return told_of_loss(losses, value, empty, said)


def told_of_loss(losses: Mapping[str, float], value: float, empty: Sequence[str], records: str) -> str:
    """Say what was lost, by columns; ``records`` ends the sentence."""
    worst = max(losses, key=lambda name: losses[name])
    more = f" and {len(empty) - _MOST_NAMED} more" if len(empty) > _MOST_NAMED else ""
    gone = f"Nothing is left of {', '.join(map(repr, empty[:_MOST_NAMED]))}{more}. " if empty else ""
    told = f"{gone}The release has lost {percent(value)} of what {len(losses):,} columns said"
    if losses[worst] > 0 and worst not in empty:
        told += f", most of it in '{worst}' ({percent(losses[worst])})"
    return f"{told}{records}"


def _emptied(files: LinkedFiles, name: str) -> bool:
    """Say whether a column had values and has none."""
    after = files.released[name]
    return after.null_count() == len(after) and files.original[name].null_count() < files.records


def _caveats(files: LinkedFiles, compared: Comparisons) -> list[str]:
    caveats = [
        "Original and release are dependent, so distances between them come without p-values; whether a released "
        "mean lies in the original's confidence interval is a check, not a test.",
        "Distances between tables depend on the groups: use them to compare protections, with the same groups.",
    ]
    if not files.aligned:
        caveats.append(
            "The loss is a lower bound, because the records are not linked: rank it only against others of that kind."
        )
    if files.added:
        caveats.append(f"{files.added:,} released records belong to no original one and were left aside.")
    if files.dropped:
        caveats.append(f"Not released, and counted as lost: {', '.join(map(repr, files.dropped))}.")
    if compared.unmeasured:
        caveats.append(
            f"{', '.join(map(repr, compared.unmeasured))}: numbers before and labels after, so there is no mean or "
            "correlation to compare."
        )
    return caveats


def _finite(pairs: Mapping[str, tuple[column_loss.Kind, pl.Series, pl.Series]]) -> None:
    for name, (_, *files) in pairs.items():
        for what, values in zip(("original", "release"), files, strict=True):
            if values.dtype.is_float() and values.is_infinite().any():
                raise ColumnError(
                    f"Column '{name}' of the {what} holds infinite numbers, which have no mean or distance. Make them "
                    "missing or finite first."
                )
