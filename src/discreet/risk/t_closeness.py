"""How much does a class tell beyond what everybody can read off the whole file?

t-closeness: the distance of the sensitive values of each class from those of the whole file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import narwhals as nw
import polars as pl

from discreet import engine
from discreet.core.cards import Figure, KeyNumber, KeyNumbers, OfFile, measure
from discreet.core.constraints import AtLeast, ColumnName, ColumnNames, HoldsValues, Public
from discreet.core.errors import ParameterError
from discreet.core.results import Measure
from discreet.core.wording import percent, shown
from discreet.engine import Missing
from discreet.hierarchy import Hierarchy
from discreet.microdata import Microdata
from discreet.numerics.earth_mover import hierarchical_emd, ordered_emd
from discreet.risk.equivalence_classes import EquivalenceClasses, SensitiveColumns
from discreet.risk.l_diversity import breaks_of

Distance = Literal["emd", "kl", "tv"]
Ground = Literal["auto", "equal", "ordered", "hierarchical"]


def _to_remember(found: Measure) -> Iterator[KeyNumber]:
    if found.value is not None:
        yield KeyNumber(
            shown(found.value),
            "largest distance from the whole file (t)",
            "0 means that knowing the group tells nothing new about the sensitive value.",
        )


@measure(
    room="risk",
    work="class-wise",
    question="How much does knowing the group tell about the sensitive value?",
    headline="largest distance (t)",
    chapter="learned",
    place=3,
    references=(
        "Li, N., Li, T. and Venkatasubramanian, S. (2007). t-closeness: privacy beyond k-anonymity and "
        "l-diversity. IEEE International Conference on Data Engineering, 106–115. "
        "doi:10.1109/ICDE.2007.367856",
    ),
    figures={
        "value": Figure(better="lower", words={"change": "Largest distance from the whole file (t)"}),
        "t": Figure(
            "Distance from the whole file (t)", words={"axis": "Distance (t)", "scenarios": "Distance (t)"}
        ),
    },
    assess=OfFile(15, sensitive=True),
    key_numbers=KeyNumbers(6, _to_remember),
    tells=(
        "counted_in",
        "ground",
    ),
)
def t_closeness(
    data: Microdata,
    *,
    keys: ColumnNames | None = None,
    sensitive: ColumnName | ColumnNames | None = None,
    distance: Distance = "emd",
    ground: Ground = "auto",
    hierarchy: Annotated[Hierarchy, HoldsValues()] | None = None,
    groups: Annotated[int, AtLeast(1)] | Annotated[Sequence[float], Public()] | None = None,
    threshold: Annotated[float, AtLeast(0)] = 0.2,
    missing: Missing = "category",
) -> Measure:
    """How far are the sensitive values of a class from those of the whole file?

    t is the largest distance over all classes (Li, Li and Venkatasubramanian 2007).

    Also known as: earth mover's distance; EMD.

    Parameters
    ----------
    data
        The file.
    keys, sensitive
        Columns; those of the data unless named.
    distance
        ``emd``, the earth mover's distance, in [0, 1]; ``tv``, half the summed differences of shares, in [0, 1];
        ``kl``, the Kullback-Leibler divergence in nats, without an upper bound.
    ground
        How far two values are apart, for ``emd``: ``equal`` (any two values: the same as ``tv``), ``ordered``
        (by the number of distinct values between them), ``hierarchical`` (by the level at which they meet in a
        hierarchy). ``auto`` takes ``ordered`` for numbers, dates and ordered categories, else ``equal``.
    hierarchy
        The hierarchy of the sensitive column, for the hierarchical ground.
    groups
        For numeric columns: number of groups of equal width, or their inner breaks.
    threshold
        t above which classes and records are counted.
    missing
        ``category`` or ``drop``, for missing key values.

    Returns
    -------
    Measure
        ``value`` is t. ``figures``: ``t``, ``classes_above``, ``records_above``, ``share_above``, ``threshold``.
        ``detail``: ``variables``, and ``classes`` and ``records`` of the worst column.

    How to read it
    --------------
    0 means that knowing somebody's group tells nothing new; 1 means that it tells everything. It compares the
    sensitive values of each group with those of the whole file and reports the group that is furthest off.
    ``share_above`` says how many people are in groups beyond the threshold; a single small group can drive
    the worst value, so look at both.

    When not to trust it
    --------------------
    Small groups are far from the whole file by chance, so a strict t mostly asks for larger groups. With the
    earth mover's distance on numbers a shift matters by its size; with the equal ground distance all
    differences between categories count the same: choose the one that fits the column. Values of one file
    compare; values with different ground distances or groups do not. A small t does not protect from being
    found, only from what is learned.

    Examples
    --------
    >>> people = pl.DataFrame({"sex": ["f", "f", "m", "m"], "ill": ["yes", "no", "yes", "no"]})
    >>> t_closeness(Microdata(people, keys=["sex"], sensitive=["ill"])).value
    0.0
    """
    if distance == "emd" and ground == "hierarchical" and hierarchy is None:
        raise ParameterError("ground='hierarchical' needs the hierarchy of the sensitive column: hierarchy=…")
    classes = EquivalenceClasses.of(data, keys, missing)
    columns = engine.resolve_sensitive(data, sensitive, classes.keys)
    if hierarchy is not None and len(columns) > 1:
        raise ParameterError("A hierarchy belongs to one sensitive column; name it with sensitive='column'.")
    breaks = {column: breaks_of(data, column, groups) for column in columns}
    grounds = {column: _ground_of(data, column, ground) for column in columns}

    def by_class(column: str) -> pl.DataFrame:
        if distance == "emd" and grounds[column] != "equal":
            counts = asked.counts(column)
            moved = (
                ordered_emd(counts)
                if grounds[column] == "ordered"
                else hierarchical_emd(counts, hierarchy, column)  # type: ignore[arg-type]
            )
            return pl.DataFrame({"class_size": counts.sizes, "t": moved})
        profile = engine.attribute_profile(data, classes.keys, column, missing, breaks[column])
        return profile.with_columns(t=pl.col("kl" if distance == "kl" else "tv"))

    asked = SensitiveColumns(classes, columns, by_class, breaks)
    variables, worst, above = asked.above("t", threshold)
    unit = "" if distance != "kl" else " nats"
    return Measure(
        name="t_closeness",
        value=worst["t"],
        figures={
            "t": worst["t"],
            **above,
            "threshold": threshold,
            **classes.figures,
        },
        meaning=(
            f"Knowing someone's key values can shift what is known about '{worst['sensitive']}' by up to "
            f"{worst['t']:.3g}{unit} (0 is nothing{', 1 is everything' if distance != 'kl' else ''}); "
            f"{worst['records_above']:,} of {classes.everybody} ({percent(above['share_above'])}) are in classes "
            f"further than {threshold:g} from the whole file.{classes.not_counted}"
        ),
        caveats=[
            *asked.caveats,
            *(
                ["'kl' has no upper bound; a threshold for 'emd' does not carry over."]
                if distance == "kl"
                else []
            ),
            "Small classes are far from the whole file by chance alone: a class of one always is.",
        ],
        parameters=asked.parameters(
            distance=distance,
            ground=grounds if distance == "emd" else None,
            groups=groups,
            threshold=threshold,
        ),
        detail=asked.detail(variables, "t"),
    )


def _ground_of(data: Microdata, column: str, ground: Ground) -> str:
    if ground != "auto":
        return ground
    dtype = data.schema[column]
    ordered = dtype.is_numeric() or dtype.is_temporal() or isinstance(dtype, nw.Enum)
    return "ordered" if ordered else "equal"
