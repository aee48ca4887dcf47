"""Can something be learned about a person without finding them? How diverse are the sensitive values of a class?

l-diversity: distinct, entropy, recursive.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.cards import Figure, KeyNumber, KeyNumbers, OfFile, measure
from discreet.core.constraints import Above, AtLeast, ColumnName, ColumnNames, Public
from discreet.core.errors import ColumnError, ParameterError
from discreet.core.findings import Beside, OfAdvice
from discreet.core.results import Measure
from discreet.core.wording import percent, shown, type_name
from discreet.engine import Missing
from discreet.microdata import Microdata
from discreet.risk.equivalence_classes import EquivalenceClasses, SensitiveColumns

Kind = Literal["distinct", "entropy", "recursive"]


def _to_remember(found: Measure) -> Iterator[KeyNumber]:
    if found.value is None:
        return
    sentence = (
        "In some group everyone has the same sensitive value: to find the group is to know it."
        if found.value < 2
        else "Even in the least varied group an intruder must choose between several values."
    )
    several = "" if found.value == 1 else "s"
    yield KeyNumber(shown(found.value), f"sensitive value{several} in the least varied group", sentence)


def _merge_groups(found: Measure, beside: Beside) -> Iterator[str]:
    if alike := found.figures["homogeneous_records"]:
        yield (
            f"{alike:,} records are in groups where everyone has the same sensitive value. Merge such groups by "
            "coarser keys, or perturb the sensitive column; k alone does not help."
        )


@measure(
    room="risk",
    work="class-wise",
    question="Can the sensitive value be read off once the group is known?",
    headline="fewest values in a group (l)",
    chapter="learned",
    place=1,
    leading=True,
    references=(
        "Machanavajjhala, A., Kifer, D., Gehrke, J. and Venkitasubramaniam, M. (2007). l-diversity: "
        "privacy beyond k-anonymity. ACM Transactions on Knowledge Discovery from Data 1(1), article 3. "
        "doi:10.1145/1217299.1217302",
    ),
    figures={
        "value": Figure(better="higher", least=1, words={"change": "Fewest sensitive values in a group (l)"}),
        "l": Figure(
            "Different sensitive values in a group, at least (l)",
            words={"axis": "Different values (l)", "scenarios": "Sensitive values in a group (l)"},
        ),
        "best_guess": Figure(
            "Best guess of an intruder",
            unit="share",
            better="lower",
            words={"change": "Best guess of a sensitive value"},
        ),
        "homogeneous_classes": Figure("Groups with one sensitive value"),
        "homogeneous_records": Figure("Records in groups with one sensitive value"),
        "classes_below_threshold": Figure("Groups below the threshold"),
    },
    columns={"entropy": Figure("Effective number of values (entropy)")},
    assess=OfFile(14, sensitive=True),
    key_numbers=KeyNumbers(5, _to_remember),
    advice=OfAdvice(
        3,
        _merge_groups,
        where_skipped="Name the sensitive columns: without them nobody knows what can be learned about a group.",
    ),
    tells=("counted_in",),
)
def l_diversity(
    data: Microdata,
    *,
    keys: ColumnNames | None = None,
    sensitive: ColumnName | ColumnNames | None = None,
    kind: Kind = "distinct",
    c: Annotated[float, Above(0)] = 2.0,
    groups: Annotated[int, AtLeast(1)] | Annotated[Sequence[float], Public()] | None = None,
    tolerance: Annotated[float, Above(0)] | None = None,
    threshold: Annotated[float, AtLeast(1)] = 2,
    missing: Missing = "category",
) -> Measure:
    """How many different sensitive values stand behind one combination of key values?

    With only one, an intruder learns it without finding the record (Machanavajjhala et al. 2007). l is that of
    the worst class and, with several sensitive columns, of the worst column.

    Also known as: distinct l-diversity; entropy l-diversity; recursive (c,l)-diversity.

    Parameters
    ----------
    data
        The file.
    keys, sensitive
        Columns; those of the data unless named.
    kind
        ``distinct``: the number of different values. ``entropy``: exp of their entropy, the number of equally
        frequent values that would be as uncertain. ``recursive``: the largest l for which the most frequent
        value is rarer than c times the l-th most frequent and all rarer ones together.
    c
        The constant of the recursive kind.
    groups
        For numeric columns: number of groups of equal width, or their inner breaks; values in one group are alike.
    tolerance
        For numeric columns: values closer than this count as one.
    threshold
        l below which classes and records are counted as too alike.
    missing
        ``category`` or ``drop``, for missing key values. A missing sensitive value counts as a value.

    Returns
    -------
    Measure
        ``value`` is l. ``figures``: ``l``, ``best_guess`` (highest share of one value in a class: the chance of
        the intruder's best guess), ``classes``, ``homogeneous_classes``, ``homogeneous_records``,
        ``records_below_threshold``, ``share_below_threshold``, ``records_left_out``, ``all_suppressed``. Where a
        role names persons, they are counted, each with one value a class: of several the one that most of the class
        have. ``detail``: ``variables``, and ``classes`` and ``records`` of the worst column.

    How to read it
    --------------
    l = 1 means that in some group everyone has the same sensitive value: to know that a person belongs there
    is to know the value. ``homogeneous_records`` says how many people are in such groups. ``best_guess`` is
    the chance of the intruder's best guess in the worst group; it says more than l when one value is much
    commoner than the others. ``kind="entropy"`` and ``"recursive"`` ask for values that are not only
    different but also evenly spread.

    When not to trust it
    --------------------
    Values that differ may still tell the same story: three kinds of cancer count as three values. With two
    values l can never exceed 2, however safe the file is. It does not ask whether the value is rare or
    harmless: a group in which everybody is healthy counts like one in which everybody is ill. For numbers,
    values a penny apart count as different unless ``groups`` or ``tolerance`` says otherwise.

    Examples
    --------
    >>> people = pl.DataFrame({"sex": ["f", "f", "m", "m"], "ill": ["yes", "no", "no", "no"]})
    >>> l_diversity(Microdata(people, keys=["sex"], sensitive=["ill"])).value
    1
    """
    classes = EquivalenceClasses.of(data, keys, missing)
    columns = engine.resolve_sensitive(data, sensitive, classes.keys)
    breaks = {column: breaks_of(data, column, groups) for column in columns}
    if tolerance is not None:
        _must_be_numeric(data, columns, "tolerance")

    def by_class(column: str) -> pl.DataFrame:
        if kind == "recursive" or tolerance is not None:
            return _sparse_diversity(asked.counts(column), kind, c, tolerance)
        profile = engine.attribute_profile(data, classes.keys, column, missing, breaks[column])
        l_value = pl.col("distinct") if kind == "distinct" else pl.col("entropy").exp()
        return profile.with_columns(l=l_value, best_guess=pl.col("top_share"))

    asked = SensitiveColumns(classes, columns, by_class, breaks)
    rows = [_summary(column, by_class(column), threshold) for column in columns]
    variables = pl.DataFrame(rows).sort("l", "sensitive")
    worst, records = variables.row(0, named=True), classes.records
    figures = {name: worst[name] for name in variables.columns if name != "sensitive"}
    figures["best_guess"] = float(variables["best_guess"].max())  # type: ignore[arg-type]
    figures["share_below_threshold"] = worst["records_below_threshold"] / records
    figures |= classes.figures
    return Measure(
        name="l_diversity",
        value=worst["l"],
        figures=figures,
        meaning=_meaning(worst, classes, kind) + classes.not_counted,
        caveats=_caveats(asked, worst, grouped=tolerance is not None or groups is not None),
        parameters=asked.parameters(
            kind=kind,
            c=c if kind == "recursive" else None,
            groups=groups,
            tolerance=tolerance,
            threshold=threshold,
        ),
        detail=asked.detail(variables, "l", "best_guess", "distinct", "entropy", descending=False),
    )


def breaks_of(data: Microdata, column: str, groups: int | Sequence[float] | None) -> tuple[float, ...]:
    """Turn the groups a user asks for into inner breaks of a numeric column."""
    if groups is None:
        return ()
    _must_be_numeric(data, [column], "groups")
    if isinstance(groups, int):
        return engine.equal_breaks(data, column, groups)
    breaks = tuple(float(x) for x in groups)
    if list(breaks) != sorted(set(breaks)):
        raise ParameterError("groups must be breaks in increasing order, each once.")
    return breaks


def _must_be_numeric(data: Microdata, columns: Sequence[str], parameter: str) -> None:
    for column in columns:
        if not data.schema[column].is_numeric():
            raise ColumnError(
                f"{parameter} is for numbers, and the sensitive column '{column}' is {type_name(data.schema[column])}. "
                f"Leave {parameter} out, or name only numeric columns."
            )


def _summary(column: str, table: pl.DataFrame, threshold: float) -> dict[str, Any]:
    below = table.filter(pl.col("l") < threshold - 1e-12)
    alike = table.filter(pl.col("distinct") == 1)
    return {
        "sensitive": column,
        "l": table["l"].min(),
        "best_guess": table["best_guess"].max(),
        "classes": table.height,
        "homogeneous_classes": alike.height,
        "homogeneous_records": int(alike["class_size"].sum()),
        "classes_below_threshold": below.height,
        "records_below_threshold": int(below["class_size"].sum()),
    }


def _sparse_diversity(
    counts: engine.ClassCounts, kind: Kind, c: float, tolerance: float | None
) -> pl.DataFrame:
    """Compute l from the sparse counts, after joining values that are within the tolerance of one another."""
    owners, sizes = counts.owners, counts.sizes
    if tolerance is None:
        starts, merged = counts.starts, counts.counts
    else:
        group = _within_tolerance(counts, tolerance)
        fresh = np.flatnonzero(np.diff(owners, prepend=-1) | np.diff(group, prepend=-1))
        merged = np.add.reduceat(counts.counts, fresh)
        owners = owners[fresh]
        starts = np.searchsorted(owners, np.arange(len(sizes) + 1))
    share = merged / sizes[owners]
    entropy = -np.add.reduceat(share * np.log(share), starts[:-1]) + 0.0
    distinct = np.diff(starts)
    if kind == "recursive":
        l_value: Any = _recursive(merged, owners, starts, sizes, c)
    else:
        l_value = distinct if kind == "distinct" else np.exp(entropy)
    top = np.maximum.reduceat(share, starts[:-1])
    return pl.DataFrame(
        {"class_size": sizes, "distinct": distinct, "entropy": entropy, "l": l_value, "best_guess": top}
    )


def _recursive(
    counts: np.ndarray, owners: np.ndarray, starts: np.ndarray, sizes: np.ndarray, c: float
) -> np.ndarray:
    """Find the largest l with r_1 < c (r_l + … + r_m); the tails shrink with l, so it is how many of them hold."""
    order = np.lexsort((-counts, owners))
    ranked = counts[order].astype(float)
    before = np.cumsum(ranked) - ranked
    tail = sizes[owners] - (before - before[starts[:-1]][owners])
    holds = ranked[starts[:-1]][owners] < c * tail
    return np.add.reduceat(holds.astype(np.int64), starts[:-1])


def _within_tolerance(counts: engine.ClassCounts, tolerance: float) -> np.ndarray:
    from discreet.numerics.earth_mover_kernels import greedy_groups

    values = counts.values.cast(pl.Float64).to_numpy()[counts.codes]
    return np.asarray(greedy_groups(values, counts.starts, tolerance))


def _meaning(worst: dict[str, Any], classes: EquivalenceClasses, kind: Kind) -> str:
    column, alike = worst["sensitive"], worst["homogeneous_records"]
    if worst["homogeneous_classes"]:
        return (
            f"For {alike:,} of {classes.everybody} ({percent(alike / classes.records)}) everyone with the same key "
            f"values has the same '{column}', so it can be read off without finding the person."
        )
    what = {"distinct": "different", "entropy": "equally likely", "recursive": "well spread"}[kind]
    return (
        f"Behind every combination of key values stand at least {worst['l']:.4g} {what} values of '{column}'; "
        f"the best guess is right for at most {percent(worst['best_guess'])} of a class."
    )


def _caveats(asked: SensitiveColumns, worst: dict[str, Any], *, grouped: bool) -> list[str]:
    caveats, classes = asked.caveats, asked.classes
    numeric = [column for column in asked.columns if classes.data.schema[column].is_numeric()]
    if numeric and not grouped:
        named = ", ".join(f"'{column}'" for column in numeric)
        caveats.append(
            f"{named} is numeric: values that differ only a little count as different, which flatters l. "
            "Give groups or a tolerance."
        )
    if worst["homogeneous_classes"] and (k := classes.smallest) > 1:
        caveats.append(
            f"Attribute disclosure in spite of k = {k}: in {worst['homogeneous_classes']:,} classes everyone has "
            f"the same '{worst['sensitive']}'."
        )
    if not worst["homogeneous_classes"]:
        caveats.append(
            "A number of different values does not bound the best guess: a class of 99 to 1 has two values."
        )
    return caveats
