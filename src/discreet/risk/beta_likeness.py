"""By what factor does a class change the frequency of a sensitive value?

beta-likeness and delta-disclosure.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.cards import Figure, OfFile, measure
from discreet.core.constraints import AtLeast, ColumnName, ColumnNames
from discreet.core.results import Measure
from discreet.core.wording import shown
from discreet.engine import Missing
from discreet.microdata import Microdata
from discreet.risk.equivalence_classes import EquivalenceClasses, SensitiveColumns


@measure(
    room="risk",
    work="class-wise",
    question="How much more confident can an intruder become about a sensitive value?",
    headline="largest gain (beta)",
    chapter="learned",
    place=5,
    references=(
        "Cao, J. and Karras, P. (2012). Publishing microdata with a robust privacy guarantee. Proceedings "
        "of the VLDB Endowment 5(11), 1388–1399. doi:10.14778/2350229.2350255",
    ),
    figures={
        "value": Figure(better="lower", words={"change": "Largest gain about a sensitive value (beta)"}),
        "beta": Figure("Largest gain in confidence (beta)"),
        "enhanced_holds": Figure("Enhanced beta holds"),
        "classes_over_cap": Figure("Groups over the cap"),
    },
    columns={"over_cap": Figure("Over the cap")},
    assess=OfFile(17, sensitive=True),
    tells=("counted_in",),
)
def beta_likeness(
    data: Microdata,
    *,
    keys: ColumnNames | None = None,
    sensitive: ColumnName | ColumnNames | None = None,
    enhanced: bool = False,
    threshold: Annotated[float, AtLeast(0)] = 1.0,
    missing: Missing = "category",
) -> Measure:
    """By what factor does a class raise the chance of a sensitive value?

    Basic beta-likeness (Cao and Karras 2012) is the largest relative gain (p_class - p)/p of any value in any
    class. The enhanced form also caps the gain of each value at -ln p, so that frequent values may not rise to
    certainty: a value of beta is then kept only if every gain is within min(beta, -ln p).

    Also known as: beta-likeness.

    Parameters
    ----------
    data, keys, sensitive, missing
        As in `t_closeness`.
    enhanced
        Also check the cap of the enhanced form.
    threshold
        Gain above which classes and records are counted.

    Returns
    -------
    Measure
        ``value`` is beta, infinite under ``enhanced`` when some value breaks its cap. ``figures``: ``beta``
        (basic), ``enhanced_holds``, ``classes_over_cap``, ``classes_above``, ``records_above``, ``share_above``.
        ``detail``: ``variables``, ``classes``, ``records``.

    How to read it
    --------------
    A beta of 3 means that in some group a sensitive value is four times as frequent as in the whole file, so
    that an intruder's confidence in it rises that much. Unlike `t_closeness` it looks at gains only and in
    relative terms, so that it protects rare values, which are usually the ones that hurt. ``enhanced=True``
    also limits how sure an intruder can become about common values.

    When not to trust it
    --------------------
    For a very rare value one person in a small group is enough for a huge beta; look at how many records are
    concerned before acting. It ignores losses: that a value is certain *not* to occur in a group can be told
    too, and is not counted. The whole file is taken as what everybody knows already; where the file is itself
    special (only patients of one clinic), that is too kind.

    Examples
    --------
    >>> people = pl.DataFrame({"sex": ["f", "f", "m", "m"], "ill": ["yes", "yes", "yes", "no"]})
    >>> round(beta_likeness(Microdata(people, keys=["sex"], sensitive=["ill"])).value, 4)
    1.0
    """
    classes = EquivalenceClasses.of(data, keys, missing)

    def by_class(column: str) -> pl.DataFrame:
        if enhanced:
            return _capped_gains(asked.counts(column))
        profile = engine.attribute_profile(data, classes.keys, column, missing)
        return profile.with_columns(beta=pl.col("max_lift") - 1, over_cap=pl.lit(False))

    asked = SensitiveColumns(classes, engine.resolve_sensitive(data, sensitive, classes.keys), by_class)
    variables, worst, above = asked.above("beta", threshold)
    over = sum(int(by_class(column)["over_cap"].sum()) for column in asked.columns) if enhanced else None
    return Measure(
        name="beta_likeness",
        value=float("inf") if over else worst["beta"],
        figures={
            "beta": worst["beta"],
            "enhanced_holds": None if over is None else over == 0,
            "classes_over_cap": over,
            **above,
            **classes.figures,
        },
        meaning=(
            f"In the worst class some value of '{worst['sensitive']}' is {shown(worst['beta'] + 1)} times as frequent "
            f"as in the whole file; {worst['records_above']:,} of {classes.everybody} are in classes where "
            f"a value is more than {threshold + 1:g} times as frequent.{classes.not_counted}"
        ),
        caveats=[
            *asked.caveats,
            "Rare values in small classes dominate this figure; it is strict by design.",
        ],
        parameters=asked.parameters(enhanced=enhanced, threshold=threshold),
        detail=asked.detail(variables, "beta", "over_cap"),
    )


@measure(
    room="risk",
    work="class-wise",
    question="How far does a group move the odds of a sensitive value?",
    headline="largest shift (delta)",
    chapter="learned",
    place=6,
    references=(
        "Brickell, J. and Shmatikov, V. (2008). The cost of privacy: destruction of data-mining utility "
        "in anonymized data publishing. ACM SIGKDD, 70–78. doi:10.1145/1401890.1401904",
    ),
    figures={
        "value": Figure(better="lower", words={"change": "Largest shift in the odds (delta)"}),
        "delta": Figure("Largest shift in the odds (delta)"),
        "classes_without_some_value": Figure("Groups that lack some sensitive value"),
    },
    columns={"lacks_some_value": Figure("Lacks some sensitive value")},
    assess=OfFile(18, sensitive=True),
    tells=("counted_in",),
)
def delta_disclosure(
    data: Microdata,
    *,
    keys: ColumnNames | None = None,
    sensitive: ColumnName | ColumnNames | None = None,
    absent: Literal["ignore", "infinite"] = "ignore",
    threshold: Annotated[float, AtLeast(0)] = 1.0,
    missing: Missing = "category",
) -> Measure:
    """By how much, up or down, does a class change the odds of a sensitive value?

    delta (Brickell and Shmatikov 2008) is the largest absolute ln(p_class / p) of any value in any class. A value
    that does not occur in a class at all has p_class = 0 and an infinite ratio; in practice such values are
    ignored, the strict reading counts them.

    Also known as: delta-disclosure privacy.

    Parameters
    ----------
    data, keys, sensitive, missing
        As in `t_closeness`.
    absent
        ``ignore`` values that do not occur in a class, or let them make delta ``infinite``.
    threshold
        delta above which classes and records are counted.

    Returns
    -------
    Measure
        ``value`` is delta. ``figures``: ``delta``, ``classes_without_some_value``, ``classes_above``,
        ``records_above``, ``share_above``. ``detail``: ``variables``, ``classes``, ``records``.

    How to read it
    --------------
    The figure is the logarithm of a factor: 0 means that all groups mirror the file, 0.7 that some value is
    twice (or half) as frequent in a group as in the file, 2.3 ten times. It is the strictest of the measures
    of this kind, because it counts losses as well as gains. ``share_above`` says how many people are in
    groups beyond the threshold.

    When not to trust it
    --------------------
    Groups that lack a value altogether have an unbounded figure; by default they are left out of it and
    counted, because hardly any real file would pass otherwise. With ``absent="infinite"`` nearly every file
    with small groups fails. Rare values in small groups dominate the result, by chance alone. Use it to
    compare two treatments of one file rather than as a limit of its own.

    Examples
    --------
    >>> people = pl.DataFrame({"sex": ["f", "f", "m", "m"], "ill": ["yes", "no", "yes", "no"]})
    >>> delta_disclosure(Microdata(people, keys=["sex"], sensitive=["ill"])).value
    0.0
    """
    classes = EquivalenceClasses.of(data, keys, missing)
    columns = engine.resolve_sensitive(data, sensitive, classes.keys)
    known = engine.distinct_counts(data, columns)

    def by_class(column: str) -> pl.DataFrame:
        table = engine.attribute_profile(data, classes.keys, column, missing)
        change = pl.max_horizontal(pl.col("max_lift").log().abs(), pl.col("min_lift").log().abs())
        lacks = pl.col("distinct") < known[column]
        if absent == "infinite":
            change = pl.when(lacks).then(float("inf")).otherwise(change)
        return table.with_columns(delta=change, lacks_some_value=lacks)

    asked = SensitiveColumns(classes, columns, by_class)
    variables, worst, above = asked.above("delta", threshold)
    lacking = int(by_class(worst["sensitive"])["lacks_some_value"].sum())
    caveats = asked.caveats
    if lacking and absent == "ignore":
        caveats.append(
            f"{lacking:,} classes lack some value of '{worst['sensitive']}' altogether, which rules it out for their "
            "people; in the strict reading (absent='infinite') delta has no bound then."
        )
    return Measure(
        name="delta_disclosure",
        value=worst["delta"],
        figures={
            "delta": worst["delta"],
            "classes_without_some_value": lacking,
            **above,
            **classes.figures,
        },
        meaning=(
            f"In the worst class the share of some value of '{worst['sensitive']}' differs from the whole file by a "
            f"factor of {_factor(worst['delta'])}; {worst['records_above']:,} of {classes.everybody} are in "
            f"classes with a factor above {np.exp(threshold):.3g}.{classes.not_counted}"
        ),
        caveats=caveats,
        parameters=asked.parameters(absent=absent, threshold=threshold),
        detail=asked.detail(variables, "delta", "lacks_some_value"),
    )


def _capped_gains(counts: engine.ClassCounts) -> pl.DataFrame:
    base = counts.overall[counts.codes]
    gain = counts.counts / counts.sizes[counts.owners] / base - 1
    over = gain > -np.log(base) + 1e-12
    begin = counts.starts[:-1]
    return pl.DataFrame(
        {
            "class_size": counts.sizes,
            "beta": np.maximum.reduceat(gain, begin),
            "over_cap": np.logical_or.reduceat(over, begin),
        }
    )


def _factor(delta: float) -> str:
    return "no bound" if np.isinf(delta) else f"{np.exp(delta):,.3g}"
