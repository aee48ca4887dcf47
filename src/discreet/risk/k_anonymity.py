"""Can a person be found in the file?

k-anonymity and the re-identification risks of the prosecutor, journalist and marketer scenarios.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import polars as pl

from discreet import engine
from discreet.core.cards import Figure, KeyNumber, KeyNumbers, OfFile, measure
from discreet.core.citations import SAMARATI_SWEENEY_1998, SWEENEY_2002
from discreet.core.constraints import AtLeast, ColumnNames, HoldsValues, Share
from discreet.core.findings import WEIGHTS_UNUSED, Beside, Caveat, OfAdvice
from discreet.core.results import Measure
from discreet.core.wording import named, percent, shown
from discreet.engine import Missing
from discreet.engine.classes import Recoding
from discreet.microdata import Microdata
from discreet.risk.delta_presence import population_classes
from discreet.risk.equivalence_classes import EquivalenceClasses, Heads, company_caveats


def _smallest_group(found: Measure) -> Iterator[KeyNumber]:
    if found.value is None:
        return
    others = int(found.value) - 1
    sentence = (
        "Someone can be singled out by the keys alone."
        if others < 1
        else f"Every record looks like at least {others:,} other{'' if others == 1 else 's'}."
    )
    several = "" if found.value == 1 else "s"
    yield KeyNumber(shown(found.value), f"record{several} in the smallest group", sentence)


def records_almost_alone(found: Measure) -> int:
    """Count the records in groups of one or two."""
    return int(found.figures["records_below_3"] or 0)


def _recode_and_suppress(found: Measure, beside: Beside) -> Iterator[str]:
    if exposed := records_almost_alone(found):
        yield (
            f"Recode rare key values into groups, then suppress key cells in what remains of the {exposed:,} records "
            "in groups of one or two."
        )


@measure(
    room="risk",
    work="class-wise",
    question="How many people share the rarest combination of keys?",
    headline="smallest group (k)",
    chapter="found",
    place=1,
    leading=True,
    references=(
        SAMARATI_SWEENEY_1998,
        SWEENEY_2002,
    ),
    figures={
        "value": Figure(
            better="higher", least=1, summary=True, words={"change": "Records in the smallest group (k)"}
        ),
        "k": Figure(better="higher", least=1, words={"scenarios": "Smallest group (k)"}),
        "single_household_classes": Figure("Groups that are one household only"),
        "single_household_records": Figure("Records in groups that are one household only"),
        "smallest_neighborhood": Figure("Smallest group, gaps of others counted"),
    },
    assess=OfFile(1, partition=False),
    key_numbers=KeyNumbers(2, _smallest_group),
    advice=OfAdvice(2, _recode_and_suppress, standing_out=records_almost_alone),
    tells=("counted_in",),
)
def k_anonymity(
    data: Microdata,
    *,
    keys: ColumnNames | None = None,
    missing: Missing = "category",
    threshold: Annotated[int, AtLeast(1)] = 3,
) -> Measure:
    """How many people share the rarest combination of key values?

    ``k`` is the size of the smallest equivalence class on the keys (Samarati and Sweeney 1998). It bounds the
    chance to pick the right record, not what can be learned from a class in which all are alike: see
    `l_diversity` for that.

    Where the data has the role ``person`` (else ``contributor``), people are counted, whatever a figure is called:
    records of one person with the same key values count once. Records without a single known key are in no class.

    Also known as: equivalence classes; smallest cell size.

    Parameters
    ----------
    data
        The file.
    keys
        Key columns; those of the data unless named.
    missing
        ``category``: missing is a value of its own. ``wildcard``: it matches anything, so every record has a
        neighborhood. The company of a record with gaps is its neighborhood; that of a complete record is its
        complete equals, because the gaps of others hide nobody; k is the smallest company. ``drop``: records with a
        missing key are left out.
    threshold
        Class size below which records are counted as too exposed.

    Returns
    -------
    Measure
        ``value`` is k. ``figures``: ``classes``, ``records``, ``unique_records``, ``records_below_2``, ``_3``,
        ``_5``, ``records_below_threshold``, ``share_below_threshold``, ``records_left_out``, ``all_suppressed``
        (records of which no key is known); under ``wildcard`` ``smallest_neighborhood``, the k of the literature,
        which lets gaps of others count; with a household ``single_household_classes`` and
        ``single_household_records``; with a person ``records_in_file``.
        ``detail``: ``sizes``, ``classes``, ``records`` (``class_size``: the neighborhood under ``wildcard``).

    How to read it
    --------------
    k = 1 means that somebody is alone with their key values: whoever knows them has found the record. k = 5
    means that everyone looks like at least four others. What k is enough is for your policy to say: the wider
    the circle of readers, the larger. One rare combination is enough to make k small, so look at
    ``records_below_threshold`` too: it says whether few or many people are concerned, and
    ``detail["classes"]`` says which.

    When not to trust it
    --------------------
    k is only as good as the list of keys: a column that an intruder knows and you left out makes it too high.
    It says nothing about what can be learned from a group, so that even with a large k everyone in a group
    may share one diagnosis. In a sample it is too gloomy, because a record alone in the file may have many
    doubles in the population. Missing key values count as a value of their own unless you say otherwise,
    which can make k look smaller than it is. Where several records belong to one person and no role says so, k is
    too high: name the person.

    Examples
    --------
    >>> people = pl.DataFrame({"sex": ["f", "f", "m"]})
    >>> k_anonymity(Microdata(people, keys=["sex"])).value
    1
    """
    classes = EquivalenceClasses.of(data, keys, missing)
    keys, spectrum, records, heads = classes.keys, classes.spectrum, classes.records, classes.heads
    below = {limit: records_below(spectrum, limit) for limit in (2, 3, 5, threshold)}
    k = classes.smallest
    return Measure(
        name="k_anonymity",
        value=k,
        figures={
            "k": k,
            "classes": int(spectrum["classes"].sum()),
            "records": records,
            "unique_records": below[2],
            **{f"records_below_{limit}": below[limit] for limit in (2, 3, 5)},
            "records_below_threshold": below[threshold],
            "share_below_threshold": below[threshold] / records,
            **classes.figures,
            **_neighborhood(data, keys, missing),
            **_households(data, keys),
        },
        meaning=(
            f"{_crowd(k, keys, heads)}; {below[threshold]:,} of {records:,} {heads.many} "
            f"({percent(below[threshold] / records)}) are in a group of fewer than {threshold}."
            f"{classes.not_counted}"
        ),
        caveats=[
            *key_caveats(data, keys),
            *_perhaps_fewer_people(data),
            "k limits how well a person can be picked out, not what is learned about a group whose members all "
            "have the same sensitive value.",
        ],
        parameters={
            "keys": list(keys),
            "missing": missing,
            "threshold": threshold,
            **classes.parameters,
        },
        detail=classes.detail(),
    )


def _chance_of_being_found(found: Measure) -> Iterator[KeyNumber]:
    mean, matches = found.figures.get("prosecutor_mean"), found.figures.get("expected_matches")
    if isinstance(mean, float | int):
        yield KeyNumber(
            percent(float(mean)),
            "average chance of being found",
            "How often an intruder who knows that a person is in the file points at the right record.",
        )
    elif isinstance(matches, float | int):
        yield KeyNumber(
            shown(matches), "correct matches expected", "If an intruder tried to match every record."
        )


@measure(
    room="risk",
    work="class-wise",
    title="Re-identification",
    headline="highest chance",
    chapter="found",
    place=3,
    leading=True,
    references=(
        "El Emam, K. and Dankar, F. K. (2008). Protecting privacy using k-anonymity. Journal of the "
        "American Medical Informatics Association 15(5), 627–637. doi:10.1197/jamia.M2716",
    ),
    figures={
        "value": Figure(unit="share", better="lower"),
        "prosecutor_max": Figure(
            "Highest chance, known to be in the file (prosecutor)",
            unit="share",
            better="lower",
            words={
                "axis": "Highest, prosecutor",
                "scenarios": "Highest chance",
                "change": "Highest chance of being found",
            },
        ),
        "prosecutor_mean": Figure(
            "Average chance, known to be in the file (prosecutor)",
            unit="share",
            better="lower",
            words={
                "axis": "Average, prosecutor",
                "scenarios": "Average chance",
                "change": "Average chance of being found",
            },
        ),
        "journalist_max": Figure(
            "Highest chance, found in the population (journalist)",
            unit="share",
            words={"axis": "Highest, journalist"},
        ),
        "journalist_mean": Figure(
            "Average chance, found in the population (journalist)",
            unit="share",
            words={"axis": "Average, journalist"},
        ),
        "marketer": Figure(
            "Expected share of correct matches (marketer)", unit="share", words={"axis": "Average, marketer"}
        ),
        "share_above_threshold": Figure(
            unit="share",
            better="lower",
            words={"axis": "Records above threshold", "change": "Records above the risk threshold"},
        ),
        "threshold": Figure(unit="share"),
    },
    assess=OfFile(3, partition=False),
    key_numbers=KeyNumbers(3, _chance_of_being_found),
    tells=("counted_in",),
)
def reidentification(
    data: Microdata,
    *,
    keys: ColumnNames | None = None,
    population: Microdata | None = None,
    recoding: Annotated[Recoding, HoldsValues(by_column=True)] | None = None,
    threshold: Annotated[float, Share()] = 0.2,
    missing: Missing = "category",
) -> Measure:
    """How likely is an intruder to point at the right record?

    Three intruders (El Emam and Dankar 2008). The *prosecutor* knows that the person is in the file: the risk of
    a record is one over its class size f. The *journalist* knows only that the person is in the population from
    which the file comes: one over the size F of the class there. The *marketer* tries to match everybody: the
    expected share of correct matches.

    Also known as: prosecutor risk; journalist risk; marketer risk.

    Parameters
    ----------
    data
        The file.
    keys
        Key columns; those of the data unless named.
    population
        The identification file that contains the people of this file, for the journalist.
    recoding
        ``{key: {population value: file value}}`` where the two files are coded differently.
    threshold
        Risk above which a record counts as at risk.
    missing
        How missing key values count; see `k_anonymity`.

    Returns
    -------
    Measure
        ``value`` is ``prosecutor_max``. ``figures``: ``prosecutor_max``, ``prosecutor_mean``, ``journalist_max``,
        ``journalist_mean``, ``marketer``, ``share_above_threshold``, ``records_above_threshold``,
        ``expected_matches``, ``threshold``, ``records_left_out``, ``all_suppressed``. ``detail``: ``sizes``,
        ``classes``, ``records``.

    How to read it
    --------------
    The prosecutor knows that the person is in the file: the chance is one over the size of their group. The
    journalist does not and has to look in the population, so the chance is lower. The marketer matches
    everybody and counts how many come out right. Look at the highest chance for the worst case, at the mean
    for the file as a whole, and at ``share_above_threshold`` for how many people are above the line that your
    policy draws.

    When not to trust it
    --------------------
    All three assume an intruder whose knowledge of the keys is free of errors and up to date; real matches
    fail more often. Without a population file the journalist's figures are missing, and the marketer is taken
    to know who is in the file. The mean hides people: a file with a mean of one percent can hold a hundred
    people who are certain to be found. Keys that you did not name are not counted.

    Examples
    --------
    >>> people = pl.DataFrame({"sex": ["f", "f", "m", "m", "m"]})
    >>> risk = reidentification(Microdata(people, keys=["sex"]))
    >>> risk.figures["prosecutor_max"], risk.figures["prosecutor_mean"]
    (0.5, 0.4)
    """
    classes = EquivalenceClasses.of(data, keys, missing)
    keys, spectrum, records, heads = classes.keys, classes.spectrum, classes.records, classes.heads
    caveats = key_caveats(data, keys)
    size = pl.col("class_size")
    expected, most, exposed = spectrum.select(
        expected=(pl.col("records") / size).sum(),
        most=(1 / size).max(),
        exposed=pl.col("records").filter(1 / size > threshold).sum(),
    ).row(0)
    figures: dict[str, float | int | None] = {
        "prosecutor_max": most,
        "prosecutor_mean": expected / records,
        "journalist_max": None,
        "journalist_mean": None,
        "marketer": expected / records,
        "share_above_threshold": exposed / records,
        "records_above_threshold": exposed,
        "expected_matches": expected,
        "threshold": threshold,
        **classes.figures,
    }
    if population is None:
        caveats.append(
            "Without a population file the journalist risk is unknown and the marketer is assumed to know who is "
            "in the file; both are at most the prosecutor risk shown."
        )
    else:
        matched, warning = population_classes(classes, population, recoding)
        caveats += warning
        matches = float((matched["records"] / matched["population"]).sum())
        figures["journalist_max"] = 1 / int(matched["population"].min())  # type: ignore[arg-type]
        figures["journalist_mean"] = matches / records
        figures["marketer"] = matches / records
        figures["expected_matches"] = matches
    return Measure(
        name="reidentification",
        value=most,
        figures=figures,
        meaning=(
            f"Someone who knows that a person is in the file and knows {named(keys)} points at the right record "
            f"with a chance of up to {percent(most)}, and of {percent(expected / records)} on average; "
            f"for {exposed:,} of {records:,} {heads.many} ({percent(exposed / records)}) the chance is above "
            f"{percent(threshold)}.{classes.not_counted}"
        ),
        caveats=caveats,
        parameters={
            "keys": list(keys),
            "missing": missing,
            "threshold": threshold,
            "population_file": population is not None,
            **classes.parameters,
        },
        detail=classes.detail(),
    )


def records_below(spectrum: pl.DataFrame, limit: int) -> int:
    """Count the records in classes smaller than a limit."""
    return int(spectrum.filter(pl.col("class_size") < limit)["records"].sum())


def key_caveats(data: Microdata, keys: Sequence[str]) -> list[str]:
    """Word what the reader must know about these keys: who is counted, decimals, missing values, survey weights."""
    caveats = company_caveats(data, keys)
    floats = engine.float_keys(data, keys)
    caveats += [engine.float_key_caveat(floats)] if floats else []
    counted = engine.overview(data, keys)
    gaps = [key for key in keys if counted.missing[key]]
    if gaps:
        most = max(counted.missing[key] for key in gaps) / counted.rows
        caveats.append(
            f"{named(gaps)} {'has' if len(gaps) == 1 else 'have'} missing values (up to {percent(most)} of the "
            "records); how they count changes the result."
        )
    if data.roles.weight:
        sentence = "Survey weights are not used here: the figure speaks of the records of the file."
        caveats.append(Caveat(sentence, code=WEIGHTS_UNUSED))
    return caveats


def _neighborhood(data: Microdata, keys: Sequence[str], missing: engine.Missing) -> dict[str, int]:
    if missing != "wildcard":
        return {}
    return {"smallest_neighborhood": int(engine.class_table(data, keys, missing)["class_size"].min())}  # type: ignore[arg-type]


def _perhaps_fewer_people(data: Microdata) -> list[str]:
    """Warn where an identifier repeats and no role says whose the records are."""
    return [
        f"'{name}' is an identifier and repeats in {count:,} records: if they belong to the same people, there is less "
        f"company than it seems. Name it as the person too (person='{name}')."
        for name, count in engine.repeated_identifiers(data).items()
    ]


def _households(data: Microdata, keys: Sequence[str]) -> dict[str, int]:
    if not data.roles.household:
        return {}
    classes, records = engine.single_households(data, keys)
    return {"single_household_classes": classes, "single_household_records": records}


def _crowd(k: int, keys: Sequence[str], heads: Heads) -> str:
    if k == 1:
        return f"There are {heads.many} {heads.who} share their combination of {named(keys)} with nobody"
    others = "one other" if k == 2 else f"{k - 1:,} others"
    return f"Every {heads.one} shares {heads.whose} combination of {named(keys)} with at least {others}"
