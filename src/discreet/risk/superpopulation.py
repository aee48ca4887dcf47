"""How likely is a match with the population when there is no population file?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.cards import Figure, OfFile, measure
from discreet.core.charts import Dots, Row, finite, number, rows_of
from discreet.core.citations import JIANG_2022
from discreet.core.constraints import AtLeast, ColumnNames, HoldsValues, Share
from discreet.core.findings import WEIGHTS_UNUSED, without
from discreet.core.randomness import Seed, generator
from discreet.core.results import Measure
from discreet.core.wording import percent
from discreet.engine import Missing
from discreet.engine.classes import Recoding
from discreet.microdata import Microdata
from discreet.risk.class_size_models import CodedSample, coded_sample
from discreet.risk.delta_presence import population_classes
from discreet.risk.equivalence_classes import EquivalenceClasses, Partition, company_caveats
from discreet.risk.k_anonymity import key_caveats
from discreet.risk.population_estimators import Answer, Estimator, answer

_MULTIPLES = (0.5, 0.75, 1.0, 1.5, 2.0)
#: The smallest sampling fraction of the published study of the copula estimators.
_STUDIED = 0.05


_SLOW_ESTIMATORS = frozenset({"average", "gaussian", "d-vine", "log-linear"})


def _pictures(found: Measure, show_values: bool) -> Iterator[Dots]:
    rows = rows_of(found, "estimates", "estimator", "B")
    estimates = tuple(
        Row(str(row["estimator"]), (number(row["B"]),), _interval(row.get("B_low"), row.get("B_high")))
        for row in rows
        if finite(row["B"])
    )
    if estimates:
        yield Dots(
            title="Chance that a record is matched to the right person",
            series=("Estimate",),
            rows=estimates,
            axis="Estimated chance (B); the line is the interval of the estimate",
        )
    # Estimators that simulate would run again for every size of the population.
    if found.parameters.get("estimator") in _SLOW_ESTIMATORS:
        return
    sizes = tuple(
        Row(f"{row['population_size']:,}", (number(row["B"]),))
        for row in rows_of(found, "sensitivity", "population_size", "B")
        if finite(row["B"])
    )
    if len(sizes) > 1:
        yield Dots(
            title="If the population were smaller or larger",
            series=("Estimate",),
            rows=sizes,
            axis="Estimated chance (B) by the number of people in the population",
        )


def _interval(low: object, high: object) -> tuple[float, float] | None:
    return (float(low), float(high)) if finite(low) and finite(high) else None


@measure(
    room="risk",
    work="class-wise",
    title="Population risk",
    question="How likely is a match between the file and the population right?",
    headline="chance that a match is right (B)",
    chapter="population",
    place=2,
    references=(
        JIANG_2022,
        "Dankar, F. K., El Emam, K., Neisa, A. and Roffey, T. (2012). Estimating the re-identification "
        "risk of clinical data sets. BMC Medical Informatics and Decision Making 12, 66. "
        "doi:10.1186/1472-6947-12-66",
    ),
    figures={
        "value": Figure(unit="share", better="lower"),
        "A_low": Figure("Lowest plausible A", unit="share"),
        "A_high": Figure("Highest plausible A", unit="share"),
        "B": Figure(unit="share", words={"scenarios": "Chance of a right match in the population"}),
        "B_low": Figure("Lowest plausible B", unit="share"),
        "B_high": Figure("Highest plausible B", unit="share"),
        "above_threshold": Figure("Above the threshold"),
        "population_unique_share": Figure("Share of the population that is unique", unit="share"),
    },
    columns={"estimator": Figure("Estimator")},
    assess=OfFile(8, population_size=True, slow=True, settings={"estimator": "dankar"}),
    pictures=_pictures,
    tells=(
        "chosen",
        "model",
    ),
)
def population(
    data: Microdata,
    *,
    keys: ColumnNames | None = None,
    estimator: Estimator = "average",
    population_size: Annotated[int, AtLeast(1)] | None = None,
    sampling_fraction: Annotated[float, Share(above=True)] | None = None,
    threshold: Annotated[float, Share()] = 0.09,
    missing: Partition = "category",
    repeats: Annotated[int, AtLeast(3)] = 10,
    progress: bool = False,
    seed: Seed = None,
) -> Measure:
    """How likely is an intruder to match a record to the right person, or a person to the right record?

    Two attacks on a sample of n records in K classes, drawn from N people. *Population to sample*: take a person
    and look for their record; the chance is ``A = K / N``, known from the sample. *Sample to population*: take a
    record and look for its person; the chance is ``B``, the mean over the records of one over the number of people
    with the same key values, which must be estimated. Under simple random sampling the expected B is the number of
    classes in the population over N.

    Also known as: copula estimator; Gaussian copula estimator; d-vine estimator; re-identification risk of synthetic
    data; Zayatz; slide negative binomial; Pitman model; Dankar rule.

    Parameters
    ----------
    data
        The file: a sample.
    keys
        Key columns; those of the data unless named. Numbers count at the detail they have in the file.
    estimator
        ``gaussian``, ``d-vine``: a population simulated from a copula that is fitted to the keys by matching
        mutual information; ``average``: the mean of the two (Jiang, Mosquera, Jiang, Kong and El Emam 2022).
        ``log-linear``: Poisson log-linear model with the minimum-error choice of Skinner and Shlomo (2008), see
        `log_linear`. From the class sizes alone: ``pitman`` (Hoshino 2001), ``ewens`` (Ewens 1972),
        ``snb``, slide negative binomial (Chen and Keller-McNulty 1998), ``zayatz`` (Zayatz 1991), ``chao``, a
        lower bound (Chao and Lin 2012), ``mu-argus`` (Benedetti and Franconi 1998), and ``dankar``, the rule of
        Dankar, El Emam, Neisa and Roffey (2012) that picks Pitman, slide negative binomial or Zayatz.
    population_size, sampling_fraction
        People in the population, or the share of them in the file. Without either the survey weights are summed.
    threshold
        Risk above which the file counts as too risky; 0.09 is common for health data.
    missing
        ``category``: missing is a value of its own. ``drop``: records with a missing key are left out.
    repeats
        Simulated populations (fewer where they have more than two million people, which vary little), and groups
        of the jackknife behind the interval.
    progress
        Show a progress bar.
    seed
        For simulation and jackknife.

    Returns
    -------
    Measure
        ``value`` is ``B``; None, with the reason as a caveat, where the model cannot be fitted. ``figures``: ``A``,
        ``A_low``, ``A_high`` (A is known once N is, so all three agree), ``B``, ``B_low``, ``B_high`` (95 %),
        ``worst`` (the larger of A and B), ``above_threshold``, ``population_classes``, ``population_uniques``,
        ``population_unique_share`` (of the people), ``tau1`` (sample uniques that are population uniques),
        ``classes``, ``sample_uniques``, ``records``, ``population_size``, ``sampling_fraction``; what an estimator
        does not give is None. ``detail``: ``estimates``, one row an estimator; ``sensitivity``, A and B if the
        population were smaller or larger; ``sizes``, classes by size in the sample and, for copulas, the population.

    How to read it
    --------------
    B is the chance that someone who takes a record and looks for its person in the population picks the right
    one; A is the chance that someone who takes a person and looks for the record does. Health data is often
    held to at most 0.09. Read the interval, not only the estimate, and look at ``detail["sensitivity"]``: it
    shows how B changes if the population is smaller or larger than you think. ``tau1`` is how many of the
    records that are alone in the file are alone in the population.

    When not to trust it
    --------------------
    It is an estimate from the sample alone; no such method can know what it has not seen. For a small
    sampling fraction all estimators are rough, and they disagree: run two or three and read the spread as
    part of the uncertainty. It assumes a simple random sample, so a survey with very uneven weights should
    use `individual`. Where the model cannot be fitted, the value is None and a caveat says why; that is not a
    risk of zero.

    Examples
    --------
    >>> people = pl.DataFrame({"sex": ["f", "m"] * 100, "age": [20 + i % 17 for i in range(200)]})
    >>> found = population(Microdata(people, keys=["sex", "age"]), population_size=2000, seed=1)
    >>> found.figures["A"], found.figures["B"]
    (0.017, 0.017)
    """
    keys = engine.resolve_keys(data, keys)
    caveats = without(key_caveats(data, keys), WEIGHTS_UNUSED)
    sample = coded_sample(
        data, keys, missing, population_size=population_size, sampling_fraction=sampling_fraction
    )
    root = int(generator(seed, "population").integers(2**62))
    answered = answer(sample, estimator, repeats, root, progress=progress)
    found, people, n = answered.estimate, sample.population, sample.records
    a = sample.classes / people
    worst = None if found.risk is None else max(a, found.risk)
    return Measure(
        name="population",
        value=found.risk,
        figures={
            "A": a,
            "A_low": a,
            "A_high": a,
            "B": found.risk,
            "B_low": answered.low,
            "B_high": answered.high,
            "worst": worst,
            "above_threshold": None if worst is None else worst > threshold,
            "population_classes": found.classes,
            "population_uniques": found.uniques,
            "population_unique_share": None if found.uniques is None else found.uniques / people,
            "tau1": found.stays_unique,
            "classes": sample.classes,
            "sample_uniques": sample.sizes().uniques,
            "records": n,
            "population_size": people,
            "sampling_fraction": n / people,
        },
        meaning=_meaning(a, answered, people),
        caveats=[
            *caveats,
            *sample.notes,
            *answered.notes,
            *_general_caveats(estimator, answered, n / people),
        ],
        parameters={
            "keys": list(keys),
            "estimator": estimator,
            "missing": missing,
            "repeats": repeats,
            "threshold": threshold,
            **(answered.settings or {}),
        },
        detail=engine.tables_like(
            data,
            estimates=lambda: _estimates(answered),
            sensitivity=lambda: _sensitivity(sample, estimator, repeats, root),
            sizes=lambda: _sizes(sample, answered),
        ),
    )


@measure(
    room="risk",
    work="class-wise",
    question="How likely is a match right, counted in the population itself?",
    headline="chance that a match is right (B)",
    chapter="population",
    place=3,
    references=(JIANG_2022,),
    figures={
        "value": Figure(unit="share", better="lower"),
        "expected_B": Figure("B on average over all samples of this size"),
    },
    assess=OfFile(11),
    tells=("counted_in",),
)
def known_population(
    data: Microdata,
    population: Microdata,
    *,
    keys: ColumnNames | None = None,
    recoding: Annotated[Recoding, HoldsValues(by_column=True)] | None = None,
    missing: Missing = "category",
) -> Measure:
    """How likely is a match between the file and its population, counted in a population file?

    The A and B of `population`, without an estimate: for studies in which the truth is known, and for stewards who
    hold the register that the file was drawn from.

    Parameters
    ----------
    data, population
        The file and the population file that contains its people.
    keys, missing
        As in `population`.
    recoding
        ``{key: {population value: file value}}`` where the two are coded differently.

    Returns
    -------
    Measure
        ``value`` is ``B``. ``figures``: ``A``, ``B``, ``worst``, ``expected_B`` (classes over people: the mean of B
        over all samples of this size), ``population_classes``, ``population_uniques``, ``classes``, ``tau1``,
        ``tau2``, ``records``, ``population_size``.

    How to read it
    --------------
    The same A and B as in `population`, but counted instead of estimated, because you hold the population
    file. B is the chance that a record is matched to the right person, ``tau1`` the number of records that
    are alone in the file and in the population. ``expected_B`` is what B would be on average over all samples
    of this size: a large difference means that your sample is unusual.

    When not to trust it
    --------------------
    The population file must really contain the people of the sample, coded the same way and of the same date.
    Where it covers only part of the population (one region, one age group), the risk is overstated for those
    inside and unknown for those outside. Key values that do not occur in the population are errors of coding;
    mend them with ``recoding`` before you believe the result. Above all it holds for the keys you named and
    for no others.

    Examples
    --------
    >>> town = Microdata(pl.DataFrame({"job": list("aaaaabbbccde")}))
    >>> found = known_population(Microdata(pl.DataFrame({"job": list("aabd")}), keys="job"), town)
    >>> found.figures["A"], round(found.figures["B"], 6)
    (0.25, 0.433333)
    """
    classes = EquivalenceClasses.of(data, keys, missing)
    table, caveats = population_classes(classes, population, recoding, everyone=True)
    present = table.filter(pl.col("records") > 0)
    alone = present.filter(pl.col("records") == 1)
    n, people = int(present["records"].sum()), int(table["population"].sum())
    a, b = present.height / people, float((present["records"] / present["population"]).sum()) / n
    return Measure(
        name="known_population",
        value=b,
        figures={
            "A": a,
            "B": b,
            "worst": max(a, b),
            "expected_B": table.height / people,
            "population_classes": table.height,
            "population_uniques": int((table["population"] == 1).sum()),
            "classes": present.height,
            "tau1": int((alone["population"] == 1).sum()),
            "tau2": float((1 / alone["population"]).sum()),
            "records": n,
            "population_size": people,
        },
        meaning=_attacks(a, people, percent(b)),
        caveats=[*company_caveats(data, classes.keys), *caveats],
        parameters={"keys": list(classes.keys), "missing": missing, **classes.parameters},
    )


def _attacks(a: float, people: int, b: str) -> str:
    return (
        f"Someone who takes a record and looks for its person among the {people:,} people of the population is right "
        f"with a chance of {b}; someone who takes a person and looks for their record, with {percent(a)}."
    )


def _meaning(a: float, answered: Answer, people: int) -> str:
    risk, low, high = answered.estimate.risk, answered.low, answered.high
    if risk is None:
        return (
            f"The chance to match a record to the right one of {people:,} people is not estimable: "
            f"{answered.estimate.reason}. The chance to match a person to the right record is {percent(a)}."
        )
    around = "" if low is None or high is None else f" (between {percent(low)} and {percent(high)})"
    return _attacks(a, people, f"about {percent(risk)}{around}")


def _general_caveats(estimator: str, answered: Answer, fraction: float) -> list[str]:
    caveats = []
    if answered.estimate.reason is not None:
        caveats.append(
            f"Not estimable by '{estimator}': {answered.estimate.reason}. Try another estimator; this is not a "
            "risk of 0."
        )
    if estimator in ("average", "gaussian", "d-vine") and fraction < _STUDIED:
        caveats.append(
            f"The file holds less than {percent(_STUDIED)} of the population, for which the copulas have not been "
            "studied: key values that the sample does not show cannot appear, and B is probably too low."
        )
    if estimator == "chao":
        caveats.append("This is a lower bound: the true B is expected to be higher.")
    if answered.low is not None:
        caveats.append(
            "The interval covers what sampling and simulation add, not an error of the model itself: compare "
            "estimators of different kinds before relying on it."
        )
    caveats.append(
        "A and B are means over everybody; single records can be at far higher risk (see k_map and individual)."
    )
    return caveats


def _estimates(answered: Answer) -> pl.DataFrame:
    rows = [answered, *answered.parts]
    return pl.DataFrame(
        {
            "estimator": [row.estimate.estimator for row in rows],
            "B": [row.estimate.risk for row in rows],
            "B_low": [row.low for row in rows],
            "B_high": [row.high for row in rows],
            "population_classes": [row.estimate.classes for row in rows],
            "population_uniques": [row.estimate.uniques for row in rows],
        },
        schema_overrides=dict.fromkeys(
            ("B", "B_low", "B_high", "population_classes", "population_uniques"), pl.Float64
        ),
    )


def _sensitivity(sample: CodedSample, estimator: str, repeats: int, seed: int) -> pl.DataFrame:
    """What A and B would be in a population of half to twice the size."""
    sizes = [max(round(sample.population * multiple), sample.records) for multiple in _MULTIPLES]
    rows = []
    for size in dict.fromkeys(sizes):
        found = answer(sample.in_population(size), estimator, repeats, seed, quick=True)
        rows.append({"population_size": size, "A": sample.classes / size, "B": found.estimate.risk})
    return pl.DataFrame(rows, schema={"population_size": pl.Int64, "A": pl.Float64, "B": pl.Float64})


def _sizes(sample: CodedSample, answered: Answer) -> pl.DataFrame:
    seen = sample.sizes()
    table = pl.DataFrame({"class_size": seen.size.astype(np.int64), "sample_classes": seen.classes})
    if answered.sizes is None:
        return table
    there = answered.sizes.rename({"classes": "population_classes"})
    both = table.join(there, on="class_size", how="full", coalesce=True)
    return both.with_columns(pl.col("sample_classes", "population_classes").fill_null(0.0)).sort("class_size")
