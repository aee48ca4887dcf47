"""Can the people who stand out be found again in the release?

A fuzzy linkage attack on outliers (Trindade, Antunes, Carvalho and Moniz): extreme people of the original are matched
with released records that agree on the keys up to a tolerance. One possible match is the highest risk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Floats
from discreet.core.cards import Figure, OfPair, measure
from discreet.core.charts import Bars, figure_bars
from discreet.core.constraints import Above, ColumnNames, HoldsValues, Public, Share
from discreet.core.errors import ColumnError, ParameterError
from discreet.core.results import Measure
from discreet.core.wording import percent
from discreet.microdata import Microdata
from discreet.numerics.distance.boxes import Likeness
from discreet.numerics.distance.space import as_float
from discreet.pairs.side_by_side import check_categorical, compared_columns, tables_of
from discreet.risk.equivalence_classes import records_only
from discreet.risk.fuzzy_match import Attack, Comparison, Kind, attack, is_complete

_OUTLIERS = {
    "matched_share": "Have a possible match",
    "single_share": "Have exactly one",
    "matched_share_holdout": "Strangers with a match",
    "single_share_holdout": "Strangers with exactly one",
}


def _pictures(found: Measure, show_values: bool) -> Iterator[Bars]:
    yield from figure_bars(
        found,
        _OUTLIERS,
        "People who stand out and can be looked for",
        "Share of the people who stand out",
        risky=("single_share",),
    )


@measure(
    room="risk",
    work="whole-file",
    headline="outliers with exactly one match",
    chapter="found",
    place=5,
    references=(
        "Trindade, C., Antunes, L., Carvalho, T. and Moniz, N. (2024). Synthetic data outliers: "
        "navigating identity disclosure. Privacy in Statistical Databases.",
    ),
    figures={
        "value": Figure(better="lower"),
        "outliers": Figure("People who stand out"),
        "outlier_share": Figure("Share of people who stand out", unit="share"),
        "released_outliers": Figure("Outliers of the release"),
        "numeric_pairs": Figure("Possible matches on numbers alone"),
        "pairs": Figure("Possible matches"),
        "matched": Figure("Outliers with a possible match"),
        "matched_share": Figure(unit="share", better="lower", summary=True),
        "single_match": Figure("Outliers with exactly one match"),
        "single_share": Figure("Share with exactly one match", unit="share"),
        "single_both_ways": Figure("Pairs that match only each other"),
        "excluded_original": Figure("Originals left out (missing values)"),
        "excluded_released": Figure("Released records left out (missing values)"),
        "holdout_outliers": Figure("Outliers among people not used"),
        "matched_share_holdout": Figure("Share of people not used with a match", unit="share"),
        "single_share_holdout": Figure("Share of people not used with exactly one match", unit="share"),
        "matched_share_excess": Figure("Share with a match, beyond chance", unit="share"),
    },
    columns={"variant": Figure("Release")},
    compare=OfPair(17, "risk", usual=False, one_type=True),
    pictures=_pictures,
)
def outliers(
    original: Microdata,
    released: Microdata | Mapping[str, Microdata],
    *,
    columns: ColumnNames | None = None,
    categorical: ColumnNames = (),
    rule: Rule = "zscore",
    combine: Literal["any", "all"] = "any",
    cutoff: Annotated[float, Above(0)] | None = None,
    targets: Annotated[Sequence[bool], HoldsValues()] | None = None,
    kind: Kind = "gauss",
    offset: float | Annotated[Mapping[str, float], Public()] | None = None,
    scale: float | Annotated[Mapping[str, float], Public()] | None = None,
    threshold: Annotated[float, Share(above=True)] = 0.5,
    likeness: Likeness = "exact",
    likeness_threshold: Annotated[float, Share(above=True)] = 1.0,
    sides: Literal["original", "both"] = "original",
    collapse: bool = False,
    holdout: Microdata | None = None,
) -> Measure:
    """Can the people who stand out be found again in the release?

    A released record is a possible match when every number is similar enough and every category equal. With the
    default threshold of 0.5 that means a difference of at most ``offset + scale``.

    Also known as: outlier linkage; fuzzy matching attack.

    Parameters
    ----------
    original, released
        The original, and a release of it or several by name (the riskiest is reported, all are in the detail).
    columns
        What the intruder knows; the keys of the original, or all columns where it has none.
    categorical
        Numeric columns whose numbers are codes.
    rule, combine, cutoff
        Who stands out: ``zscore`` (more than ``cutoff`` = 3 standard deviations from the mean), ``tukey`` (more than
        1.5 interquartile ranges outside the quartiles), ``mad`` (more than 3 scaled median deviations from the
        median), in ``any`` or in ``all`` numeric columns.
    targets
        Who is attacked, one true or false a record; instead of the rule.
    kind, offset, scale, threshold
        Similarity of numbers by difference: ``gauss``, ``linear``, ``exp``, ``squared`` or ``step``; one up to the
        offset and one half at ``offset + scale``. Each 0.1 standard deviations unless given, for all columns or by
        column; dates in days.
    likeness, likeness_threshold
        Categories must be equal (``exact``), or alike by ``levenshtein`` or ``jaro_winkler`` at least so much.
    sides
        Match with all released records (``original``), or only with those that stand out in the release (``both``).
    collapse
        Count released records that are equal in all columns once.
    holdout
        People who were not used to make the release: how often their outliers find a match is chance.

    Returns
    -------
    Measure
        ``value`` is ``single_match``, the number of outliers with exactly one possible match. ``figures``:
        ``outliers``, ``outlier_share``, ``released_outliers``, ``numeric_pairs`` (matches on numbers alone),
        ``pairs``, ``matched`` (outliers with a match), ``matched_share``, ``single_match``, ``single_share``,
        ``single_both_ways`` (whose match has no other outlier either), ``excluded_original`` and
        ``excluded_released`` (records with a missing value), ``holdout_outliers``, ``matched_share_holdout``,
        ``single_share_holdout``, ``matched_share_excess``. ``detail``: ``records`` (candidates by outlier),
        ``pairs`` (with the scores), ``variants``.

    How to read it
    --------------
    People who stand out (a very high income, an unusual age) are the easiest to recognize. ``single_match``
    counts those who have exactly one possible match in the release: an intruder would be sure of it. With a
    hold-out, compare ``matched_share`` with ``matched_share_holdout``: strangers find matches too, by chance,
    and only the excess speaks of the people in the file.

    When not to trust it
    --------------------
    Who stands out depends on the rule: try ``tukey`` or ``mad`` where the column is skewed, because a few
    extreme values hide others from the z-score. What counts as a match depends on ``offset`` and ``scale``:
    too wide and everyone matches, too narrow and nobody does. A match is a possibility and no proof. With a
    handful of outliers the shares jump; look at the counts.

    Examples
    --------
    >>> real = pl.DataFrame({"age": [54, 70, 33], "income": [170_000, 40_000, 900_000]})
    >>> fake = pl.DataFrame({"age": [54, 60, 62], "income": [170_262, 40_500, 41_900]})
    >>> found = outliers(
    ...     Microdata(real), Microdata(fake), targets=[True] * 3,
    ...     offset={"age": 5, "income": 1000}, scale={"age": 5, "income": 1000},
    ... )
    >>> found.figures["single_match"], found.figures["pairs"]
    (1, 3)
    """
    variants = released if isinstance(released, Mapping) else {"released": released}
    if not variants:
        raise ParameterError("There is no release to attack; give one, or several by name.")
    if columns is None and original.roles.keys:
        columns = original.roles.keys
    others = [*variants.values(), *([holdout] if holdout is not None else [])]
    compared = compared_columns(original, others, columns)
    names = compared.names
    codes = check_categorical(names, categorical)
    tables = tables_of([original, *others], names)
    numeric = _numeric(tables, names, codes)
    labels = [name for name in names if name not in numeric]
    complete = is_complete(tables[0])
    ours = tables[0].filter(complete)
    if not ours.height:
        raise ColumnError("Every record of the original has a missing value in a column that is compared.")
    comparison = Comparison(
        numeric=tuple(numeric),
        labels=tuple(labels),
        kind=kind,
        offsets=_by_column(offset, ours, numeric, "offset"),
        scales=_by_column(scale, ours, numeric, "scale"),
        threshold=threshold,
        likeness=likeness,
        likeness_threshold=likeness_threshold,
    )
    picked, skipped, fitted = outlier_flags(
        ours, numeric, rule=rule, combine=combine, cutoff=cutoff, given=_given(targets, complete)
    )
    position = np.flatnonzero(complete)[picked]
    attacks: dict[str, Attack] = {}
    for at, name in enumerate(variants, start=1):
        attacks[name] = attack(
            comparison, ours.filter(picked), tables[at], fitted, sides=sides, collapse=collapse
        )
    worst = max(attacks, key=lambda name: (attacks[name].single, attacks[name].matched))
    found, outlying = attacks[worst], int(picked.sum())
    control: Attack | None = None
    if holdout is not None:
        strangers = tables[-1].filter(is_complete(tables[-1]))
        strangers = strangers.filter(fitted(strangers)) if targets is None else strangers
        at = list(variants).index(worst) + 1
        control = attack(comparison, strangers, tables[at], fitted, sides=sides, collapse=collapse)
    figures = _figures(found, control, outlying, ours.height, tables[0].height)
    excluded = int((~complete).sum())
    return Measure(
        name="outliers",
        value=found.single,
        figures=figures,
        meaning=_in_words(figures, worst if len(variants) > 1 else None),
        caveats=[
            *records_only(original),
            *compared.caveats,
            *_caveats(figures, skipped, excluded, outlying, control),
        ],
        parameters={
            "columns": list(names),
            "categorical": list(codes),
            "rule": rule if targets is None else "targets",
            "combine": combine,
            "cutoff": cutoff,
            "kind": kind,
            "offset": dict(zip(numeric, comparison.offsets.tolist(), strict=True)),
            "scale": dict(zip(numeric, comparison.scales.tolist(), strict=True)),
            "threshold": threshold,
            "likeness": likeness,
            "likeness_threshold": likeness_threshold,
            "sides": sides,
            "collapse": collapse,
        },
        detail=engine.tables_like(
            original,
            records={"record": position, "candidates": found.boxes.counts},
            pairs=lambda: comparison.pairs(found, position),
            variants=lambda: pl.DataFrame(
                [
                    {"variant": name, **_figures(each, None, outlying, ours.height, tables[0].height)}
                    for name, each in attacks.items()
                ]
            ).select(pl.exclude("^.*holdout.*$", "matched_share_excess")),
        ),
    )


def _figures(found: Attack, control: Attack | None, outlying: int, known: int, rows: int) -> dict[str, Any]:
    def share(count: int, total: int) -> float | None:
        return count / total if total else None

    strangers = control.ours.height if control else 0
    chance = share(control.matched, strangers) if control else None
    matched = share(found.matched, outlying)
    return {
        "outliers": outlying,
        "outlier_share": outlying / known,
        "released_outliers": found.standing_out,
        "numeric_pairs": found.numeric_pairs,
        "pairs": int(found.boxes.counts.sum()),
        "matched": found.matched,
        "matched_share": matched,
        "single_match": found.single,
        "single_share": share(found.single, outlying),
        "single_both_ways": found.boxes.unique_both_ways,
        "excluded_original": rows - known,
        "excluded_released": found.excluded,
        "holdout_outliers": strangers if control else None,
        "matched_share_holdout": chance,
        "single_share_holdout": share(control.single, strangers) if control else None,
        "matched_share_excess": matched - chance if matched is not None and chance is not None else None,
    }


def _in_words(figures: Mapping[str, Any], variant: str | None) -> str:
    where = f"the release '{variant}', the riskiest," if variant else "the release"
    if not figures["outliers"]:
        return "No person of the original stands out by this rule, so there is nobody to look for."
    text = (
        f"Of {figures['outliers']:,} people who stand out, {figures['matched']:,} "
        f"({percent(figures['matched_share'])}) have a possible match in {where} and {figures['single_match']:,} have "
        "exactly one"
    )
    if figures["matched_share_holdout"] is not None:
        text += f"; of comparable people who were not used, {percent(figures['matched_share_holdout'])} have a match"
    return f"{text}."


def _caveats(
    figures: Mapping[str, Any],
    skipped: Sequence[str],
    excluded: int,
    outlying: int,
    control: Attack | None,
) -> list[str]:
    caveats = []
    if control is None:
        caveats.append(
            "A possible match may be chance: without a hold-out file (holdout=…) it is not known how often people who "
            "were never used find one."
        )
    elif not control.ours.height:
        caveats.append("No person of the hold-out file stands out, so there is no figure for chance.")
    if skipped:
        caveats.append(f"Without spread in the original and not used to find outliers: {', '.join(skipped)}.")
    if excluded or figures["excluded_released"]:
        caveats.append(
            f"{excluded:,} original and {figures['excluded_released']:,} released records have a missing value in a "
            "compared column and were left out."
        )
    if outlying:
        caveats.append(
            "One possible match is not proof: nothing here says that the match is the same person."
        )
    return caveats


def _numeric(tables: Sequence[pl.DataFrame], names: Sequence[str], codes: Sequence[str]) -> list[str]:
    def is_number(table: pl.DataFrame, name: str) -> bool:
        return bool(table.schema[name].is_numeric() or table.schema[name].is_temporal())

    for name in names:
        if len({is_number(table, name) for table in tables}) > 1:
            raise ColumnError(
                f"Column '{name}' holds numbers in one file and text in another. Convert it to one type in both."
            )
    return [name for name in names if is_number(tables[0], name) and name not in codes]


def _given(targets: Sequence[bool] | None, complete: Flags) -> Flags | None:
    if targets is None:
        return None
    flags = np.asarray(targets)
    if flags.shape != complete.shape or flags.dtype != bool:
        raise ParameterError(
            f"targets must hold one true or false for each of the {len(complete):,} original records."
        )
    return np.asarray(flags[complete])


def _by_column(
    given: float | Mapping[str, float] | None, ours: pl.DataFrame, numeric: Sequence[str], parameter: str
) -> Floats:
    default = {name: 0.1 * float(as_float(ours[name]).std()) for name in numeric}
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in numeric]
        if unknown:
            raise ColumnError(
                f"{parameter} names '{unknown[0]}', which is not a numeric column that is compared."
            )
        default |= {name: float(value) for name, value in given.items()}
    elif given is not None:
        default = dict.fromkeys(numeric, float(given))
    values = np.array([default[name] for name in numeric], dtype=np.float64)
    explicit = given is not None
    if parameter == "offset" and (values < 0).any():
        raise ParameterError("offset must not be negative.")
    if parameter == "scale" and explicit and (values <= 0).any():
        raise ParameterError("scale must be above zero.")
    return values


# Who stands out? Rules for outliers, fitted on one file and applied to it or to others.


Rule = Literal["zscore", "tukey", "mad"]

CUTOFFS = {"zscore": 3.0, "tukey": 1.5, "mad": 3.0}


def outlier_flags(
    table: pl.DataFrame,
    numeric: Sequence[str],
    *,
    rule: Rule,
    combine: str,
    cutoff: float | None,
    given: Flags | None,
) -> tuple[Flags, list[str], Callable[..., Flags]]:
    """Flag the records that stand out; also name the columns without spread and give the rule for other files.

    The rule takes a table and, with ``own=True``, that table's own centre and spread instead of the first's.
    """
    limit = CUTOFFS[rule] if cutoff is None else cutoff
    fences = {name: _fences(as_float(table[name]), rule, limit) for name in numeric}
    flat = [name for name, fence in fences.items() if fence is None]
    if given is None and len(flat) == len(fences):
        raise ColumnError(
            "No numeric column with spread is among the compared columns, so nobody can stand out. Name one in "
            "columns=[…], or say who is attacked with targets=[…]."
        )

    def flags_of(other: pl.DataFrame, *, own: bool = False) -> Flags:
        found: list[Any] = []
        for name, fence in fences.items():
            values = as_float(other[name])
            bounds = _fences(values, rule, limit) if own and other.height else fence
            if bounds is not None:
                found.append((values < bounds[0]) | (values > bounds[1]))
        if not found:
            return np.zeros(other.height, dtype=bool)
        stacked = np.column_stack(found)
        return np.asarray(stacked.any(axis=1) if combine == "any" else stacked.all(axis=1))

    return (flags_of(table) if given is None else given), flat, flags_of


def _fences(values: Floats, rule: str, limit: float) -> tuple[float, float] | None:
    """Give the values beyond which a number stands out, or None where there is no spread."""
    if rule == "zscore":
        centre, spread = values.mean(), values.std()
        low, high = centre - limit * spread, centre + limit * spread
    elif rule == "tukey":
        first, third = np.quantile(values, [0.25, 0.75])
        spread = third - first
        low, high = first - limit * spread, third + limit * spread
    else:
        centre = np.median(values)
        spread = 1.4826 * np.median(np.abs(values - centre))
        low, high = centre - limit * spread, centre + limit * spread
    return (float(low), float(high)) if spread > 0 else None
