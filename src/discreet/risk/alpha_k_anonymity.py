"""How sure can an intruder be of a sensitive value? (alpha, k)-anonymity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.cards import Figure, OfFile, measure
from discreet.core.constraints import ColumnName, ColumnNames, HoldsValues, Share
from discreet.core.results import Measure
from discreet.core.values import named_among
from discreet.core.wording import percent
from discreet.engine import Missing
from discreet.microdata import Microdata
from discreet.risk.equivalence_classes import EquivalenceClasses, SensitiveColumns


@measure(
    room="risk",
    work="class-wise",
    question="How common is one sensitive value within a group?",
    headline="commonest value, at most (alpha)",
    chapter="learned",
    place=4,
    references=(
        "Wong, R. C.-W., Li, J., Fu, A. W.-C. and Wang, K. (2006). (α, k)-anonymity: an enhanced "
        "k-anonymity model for privacy preserving data publishing. ACM SIGKDD, 754–759. "
        "doi:10.1145/1150402.1150499",
    ),
    figures={
        "value": Figure(
            unit="share", better="lower", words={"change": "Commonest sensitive value in a group (alpha)"}
        ),
        "alpha": Figure("Commonest sensitive value in a group, at most", unit="share"),
    },
    assess=OfFile(16, sensitive=True),
    tells=("counted_in",),
)
def alpha_k(
    data: Microdata,
    *,
    keys: ColumnNames | None = None,
    sensitive: ColumnName | ColumnNames | None = None,
    alpha: Annotated[float, Share(above=True)] = 0.5,
    values: Annotated[Sequence[Any], HoldsValues()] | None = None,
    common: Annotated[float, Share(above=True)] = 1.0,
    missing: Missing = "category",
) -> Measure:
    """How sure can an intruder be of a sensitive value, and how large is the smallest group?

    (alpha, k)-anonymity (Wong et al. 2006): every class has at least k people and no sensitive value holds
    more than the share alpha of a class.

    Also known as: (alpha,k)-anonymity.

    Parameters
    ----------
    data, keys, sensitive, missing
        As in `l_diversity`.
    alpha
        Share above which classes and records are counted.
    values
        The values that are to be protected; all unless named.
    common
        Values that more than this share of the whole file has are left out: who guesses them is right anyway.

    Returns
    -------
    Measure
        ``value`` is the highest share found. ``figures``: ``alpha``, ``k``, ``classes_above``,
        ``records_above``, ``share_above``. ``detail``: ``variables``, ``classes``, ``records``.

    How to read it
    --------------
    ``alpha`` is the largest share that one sensitive value has in any group: 1 means that some group has one
    value only, 0.5 that the best guess is right half of the time. Read it together with k, the size of the
    smallest group: both must hold. Name the values that matter with ``values=`` (for example the diagnoses
    that carry a stigma) to leave out those that nobody minds.

    When not to trust it
    --------------------
    A value that most people in the whole file have makes alpha high without anything being given away:
    leave it out with ``common=0.9``, or use `t_closeness`. Small groups give a high alpha by
    chance alone. It looks at the worst group only: ``records_above`` says how many people are concerned.
    Where several sensitive columns are named, each is looked at by itself, not their combination.

    Examples
    --------
    >>> people = pl.DataFrame({"sex": ["f", "f", "m", "m"], "ill": ["yes", "no", "no", "no"]})
    >>> alpha_k(Microdata(people, keys=["sex"], sensitive=["ill"]), values=["yes"]).value
    0.5
    """
    classes = EquivalenceClasses.of(data, keys, missing)

    def by_class(column: str) -> pl.DataFrame:
        if values is None and common == 1:
            profile = engine.attribute_profile(data, classes.keys, column, missing)
            return profile.with_columns(alpha=pl.col("top_share"))
        return _shares_of(asked.counts(column), values, column, common)

    asked = SensitiveColumns(classes, engine.resolve_sensitive(data, sensitive, classes.keys), by_class)
    variables, worst, above = asked.above("alpha", alpha)
    k = classes.smallest
    return Measure(
        name="alpha_k",
        value=worst["alpha"],
        figures={
            "alpha": worst["alpha"],
            "k": k,
            **above,
            **classes.figures,
        },
        meaning=(
            f"In the worst class an intruder's best guess of '{worst['sensitive']}' is right for "
            f"{percent(worst['alpha'])} of its people; {worst['records_above']:,} of "
            f"{classes.everybody} are in classes where one value holds more than {percent(alpha)}, and the smallest "
            f"class has {k:,}.{classes.not_counted}"
        ),
        caveats=asked.caveats,
        parameters=asked.parameters(
            alpha=alpha, values=None if values is None else len(values), common=common
        ),
        detail=asked.detail(variables, "alpha"),
    )


def _shares_of(
    counts: engine.ClassCounts, values: Sequence[Any] | None, column: str, common: float
) -> pl.DataFrame:
    wanted = counts.overall <= common
    if values is not None:
        wanted &= named_among(counts.values, values, column)
    share = np.where(wanted[counts.codes], counts.counts, 0) / counts.sizes[counts.owners]
    return pl.DataFrame({"class_size": counts.sizes, "alpha": np.maximum.reduceat(share, counts.starts[:-1])})
