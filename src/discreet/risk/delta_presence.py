"""What does the file say against a population file: who can be in it, and who is hidden in the crowd?"""

from __future__ import annotations

from typing import Annotated

import polars as pl

from discreet import engine
from discreet.core.cards import Figure, OfFile, measure
from discreet.core.citations import SWEENEY_2002
from discreet.core.constraints import ColumnNames, HoldsValues
from discreet.core.errors import ParameterError
from discreet.core.results import Measure
from discreet.core.wording import percent
from discreet.engine import Missing
from discreet.engine.classes import Recoding
from discreet.microdata import Microdata
from discreet.risk.equivalence_classes import EquivalenceClasses, company_caveats


@measure(
    room="risk",
    work="class-wise",
    question="How many people of the population share the rarest combination?",
    headline="smallest group in the population",
    chapter="population",
    place=6,
    leading=True,
    references=(SWEENEY_2002,),
    figures={
        "value": Figure(better="higher", words={"change": "Smallest group in the population"}),
        "population_records": Figure("Records of the population"),
        "k": Figure(words={"scenarios": "Smallest group in the population"}),
    },
    assess=OfFile(12),
)
def k_map(
    data: Microdata,
    population: Microdata,
    *,
    keys: ColumnNames | None = None,
    recoding: Annotated[Recoding, HoldsValues(by_column=True)] | None = None,
    missing: Missing = "category",
    threshold: int = 3,
) -> Measure:
    """How many people of the population share the rarest combination of key values found in the file?

    The k of k-map (Sweeney 2002) is the smallest population class among the classes present in the file. It is
    what protects a person when the intruder does not know who is in the file.

    Parameters
    ----------
    data, population
        The file and the identification file that contains its people.
    keys, missing
        As in `k_anonymity`.
    recoding
        ``{key: {population value: file value}}`` where the two are coded differently.
    threshold
        Population class size below which records are counted as too exposed.

    Returns
    -------
    Measure
        ``value`` is k. ``figures``: ``k_map``, ``classes``, ``records_below_threshold``,
        ``share_below_threshold``, ``population_records``. ``detail``: ``classes``.

    How to read it
    --------------
    k is counted in the population instead of the file: with k = 10, at least ten people of the population
    share the key values of every record, so that an intruder who finds a record cannot say who of them it is.
    It is the fair measure for a sample, and never smaller than k in the file where the population file holds
    everybody. Records whose combination has fewer than ``threshold`` people in the population are the ones to
    treat.

    When not to trust it
    --------------------
    The population file must hold the people of the file, be coded the same way (``recoding`` helps) and be as
    old as the file; a register from another year makes people look unique who are not. Combinations that do
    not occur in the population point at errors of coding; the file's own counts stand in for them, and a
    caveat says so. An intruder who knows that somebody took part in the survey is not stopped by the
    population: use `k_anonymity` for that one.

    Examples
    --------
    >>> town = Microdata(pl.DataFrame({"sex": ["f", "f", "f", "m", "m"]}))
    >>> k_map(Microdata(pl.DataFrame({"sex": ["f", "m"]}), keys="sex"), town).value
    2
    """
    groups = EquivalenceClasses.of(data, keys, missing)
    keys = groups.keys
    classes, caveats = population_classes(groups, population, recoding)
    k = int(classes["population"].min())  # type: ignore[arg-type]
    records = int(classes["records"].sum())
    below = int(classes.filter(pl.col("population") < threshold)["records"].sum())
    people = "one person" if k == 1 else f"{k:,} people"
    return Measure(
        name="k_map",
        value=k,
        figures={
            "k_map": k,
            "classes": classes.height,
            "records_below_threshold": below,
            "share_below_threshold": below / records,
            "population_records": engine.overview(population, keys).rows,
            **groups.figures,
        },
        meaning=(
            f"Each combination of key values in the file belongs to at least {people} of the population; "
            f"{below:,} of {records:,} {groups.heads.many} ({percent(below / records)}) belong to fewer than "
            f"{threshold}.{groups.not_counted}"
        ),
        caveats=[
            *company_caveats(data, keys),
            *caveats,
            "It protects only while the intruder does not know that the person is in the file.",
        ],
        parameters={"keys": list(keys), "missing": missing, "threshold": threshold},
        detail=engine.tables_like(
            data, classes=groups.rows(classes.with_columns(risk=1 / pl.col("population")), by="risk")
        ),
    )


@measure(
    room="risk",
    work="class-wise",
    question="Can an intruder tell that someone is in the file?",
    headline="highest chance of being in the file",
    chapter="population",
    place=7,
    references=(
        "Nergiz, M. E., Atzori, M. and Clifton, C. (2007). Hiding the presence of individuals from shared "
        "databases. ACM SIGMOD, 665–676. doi:10.1145/1247480.1247554",
    ),
    figures={
        "value": Figure(unit="share", better="lower"),
        "delta_min": Figure("Lowest chance of being in the file", unit="share"),
        "delta_max": Figure("Highest chance of being in the file", unit="share"),
    },
    columns={"presence": Figure("Chance of being in the file", unit="share")},
    assess=OfFile(13),
)
def delta_presence(
    data: Microdata,
    population: Microdata,
    *,
    keys: ColumnNames | None = None,
    recoding: Annotated[Recoding, HoldsValues(by_column=True)] | None = None,
    missing: Missing = "category",
) -> Measure:
    """How surely can an intruder tell that a person is in the file, or is not?

    For each class of the population the chance that one of its members is in the file is f/F; delta-presence
    (Nergiz, Atzori and Clifton 2007) is the range of that chance over all classes of the population.

    Also known as: delta-presence.

    Parameters
    ----------
    data, population, keys, recoding, missing
        As in `k_map`.

    Returns
    -------
    Measure
        ``value`` is ``delta_max``. ``figures``: ``delta_min``, ``delta_max``, ``sampling_fraction``,
        ``classes``, ``certain_classes`` (every member is in the file), ``certain_records``.

    How to read it
    --------------
    ``delta_max`` is the highest chance with which an intruder who has a list of the population can tell that
    a person on it is in your file; where being in the file is itself sensitive (a register of patients), this
    is the first thing to look at. 1 means that for some key values everyone of the population is in the file.
    ``delta_min`` above 0 means that even the least exposed group gives something away.

    When not to trust it
    --------------------
    It needs a population file that covers the same people, coded the same way; people of the file who are
    missing from it are counted and said. A chance that is simply the sampling fraction is no disclosure:
    compare with ``sampling_fraction``. It speaks of groups by key values only, so other columns of the file
    may give a person's presence away all the same.

    Examples
    --------
    >>> town = Microdata(pl.DataFrame({"sex": ["f", "f", "f", "f", "m", "m"]}))
    >>> presence = delta_presence(Microdata(pl.DataFrame({"sex": ["f", "m"]}), keys="sex"), town)
    >>> presence.figures["delta_min"], presence.value
    (0.25, 0.5)
    """
    groups = EquivalenceClasses.of(data, keys, missing)
    keys = groups.keys
    present, caveats = population_classes(groups, population, recoding, everyone=True)
    classes = present.with_columns(presence=pl.col("records") / pl.col("population"))
    low, high = classes.select(low=pl.col("presence").min(), high=pl.col("presence").max()).row(0)
    certain = classes.filter(pl.col("presence") >= 1)
    return Measure(
        name="delta_presence",
        value=high,
        figures={
            "delta_min": low,
            "delta_max": high,
            "sampling_fraction": int(classes["records"].sum()) / int(classes["population"].sum()),
            "classes": classes.height,
            "certain_classes": certain.height,
            "certain_records": int(certain["records"].sum()),
            **groups.figures,
        },
        meaning=(
            f"Knowing someone's key values, an intruder can put the chance that they are in the file between "
            f"{percent(low)} and {percent(high)}, depending on the person; for {certain.height:,} combinations it "
            f"is certain.{groups.not_counted}"
        ),
        caveats=[*company_caveats(data, keys), *caveats],
        parameters={"keys": list(keys), "missing": missing},
        detail=engine.tables_like(data, classes=groups.rows(classes, by="presence")),
    )


def population_classes(
    classes: EquivalenceClasses,
    population: Microdata,
    recoding: engine.Recoding | None,
    *,
    everyone: bool = False,
) -> tuple[pl.DataFrame, list[str]]:
    """Match the classes of the file with the population, those present in the file or (``everyone``) all.

    Where the population counts fewer people than the file, the file's own count is used and a caveat says so.
    """
    ours, theirs = engine.head_count(classes.data), engine.head_count(population)
    if theirs < ours:
        raise ParameterError(
            f"The population file has fewer {classes.heads.many} ({theirs:,}) than the file itself ({ours:,}); a file "
            "is part of its population. Check that the two were not swapped."
        )
    matched = engine.matched_classes(
        classes.data, population, classes.keys, classes.missing, recoding=recoding
    )
    short = matched.filter(pl.col("records") > pl.col("population"))
    caveats = []
    if short.height:
        gap = int((short["records"] - short["population"]).sum())
        caveats.append(
            f"{gap:,} {classes.heads.many} in {short.height:,} classes have no counterpart in the population file, so "
            "the file is not a part of it; there the file's own counts were used."
        )
        largest = pl.max_horizontal("records", "population")
        matched = matched.with_columns(population=largest)
    return (matched if everyone else matched.filter(pl.col("records") > 0)), caveats
