"""How likely is a person to be found when the file is only a sample of the population?

The individual risk of a record from its survey weights, the risk of its household, the expected number of
re-identifications in the whole file, and the threshold on the risk that brings the file to a target.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.cards import Figure, KeyNumber, KeyNumbers, OfFile, measure
from discreet.core.charts import Bars, finite, rows_of
from discreet.core.constraints import ColumnName, ColumnNames, Share
from discreet.core.errors import ColumnError, ParameterError, need_known
from discreet.core.findings import WEIGHTS_UNUSED, without
from discreet.core.results import Measure
from discreet.core.wording import percent, shown
from discreet.engine import Missing
from discreet.microdata import Microdata
from discreet.risk.equivalence_classes import GAPS_COUNT, EquivalenceClasses, refuse_nobody
from discreet.risk.k_anonymity import key_caveats
from discreet.risk.negative_binomial_risk import TwoLevel, class_risks, two_level


def _people_found(found: Measure) -> Iterator[KeyNumber]:
    expected = found.figures.get("expected_reidentifications")
    if isinstance(expected, float | int):
        yield KeyNumber(
            shown(expected),
            "people expected to be found",
            "If someone tried to match every record with the whole population, by the survey weights.",
        )


def _pictures(found: Measure, show_values: bool) -> Iterator[Bars]:
    rows = rows_of(found, "distribution", "risk_above", "risk_up_to", "records")
    if not any(row["records"] for row in rows):
        return
    threshold = found.figures.get("threshold")
    limit = float(threshold) if finite(threshold) else math.inf
    words = f"; red: above the threshold of {percent(limit)}" if limit <= 1 else ""
    yield Bars(
        title="Records by their chance of being found in the population",
        labels=tuple(f"≤{percent(row['risk_up_to'])}".replace(" %", "%") for row in rows),
        values=tuple(float(row["records"]) for row in rows),
        axis=f"Number of records, each step ten times the last; chance along the bottom{words}",
        at_risk=tuple(row["risk_above"] >= limit * (1 - 1e-9) for row in rows),
        as_share=False,
        by_tens=True,
    )


@measure(
    room="risk",
    work="class-wise",
    title="Individual risk",
    question="How likely is each person to be found in the population?",
    headline="average chance of being found in the population",
    chapter="population",
    place=1,
    leading=True,
    references=(
        "Benedetti, R. and Franconi, L. (1998). Statistical and technological solutions for controlled "
        "data dissemination. New Techniques and Technologies for Statistics, Sorrento, vol. 1, 225–232.",
        "Polettini, S. (2003). Some remarks on the individual risk methodology. Joint ECE/Eurostat work "
        "session on statistical data confidentiality, Luxembourg.",
    ),
    figures={
        "value": Figure(unit="share", better="lower"),
        "expected_reidentifications": Figure(
            "People expected to be found",
            better="lower",
            words={
                "scenarios": "People expected to be found",
                "change": "People expected to be found in the population",
            },
        ),
        "global_risk": Figure("Average chance of being found", unit="share"),
        "max_risk": Figure("Highest chance of being found", unit="share"),
        "threshold": Figure(unit="share"),
        "share_above_threshold": Figure(unit="share", words={"axis": "Records above threshold"}),
        "target_share": Figure("Share to be found, at most", unit="share"),
        "target_threshold": Figure("Threshold that reaches it", unit="share"),
        "records_above_target_threshold": Figure("Records above that threshold"),
        "households": Figure("Households"),
        "expected_households": Figure("Households expected to be found"),
        "household_expected_reidentifications": Figure(
            "People expected to be found, through their household"
        ),
        "household_global_risk": Figure("Average chance of being found through the household", unit="share"),
        "employers": Figure("Employers"),
        "employer_global_risk": Figure("Average chance that an employer is found", unit="share"),
        "two_level_expected_reidentifications": Figure("People expected to be found, through their employer"),
        "two_level_global_risk": Figure("Average chance of being found through the employer", unit="share"),
        "population_estimate": Figure("People in the population (estimate)"),
    },
    columns={
        "risk_above": Figure("Chance above", unit="share"),
        "risk_up_to": Figure("Chance up to", unit="share"),
    },
    assess=OfFile(7, weight=True, partition=False),
    key_numbers=KeyNumbers(4, _people_found, enough=False),
    pictures=_pictures,
    tells=("counted_in",),
)
def individual(
    data: Microdata,
    *,
    keys: ColumnNames | None = None,
    weight: ColumnName | None = None,
    household: ColumnName | None = None,
    employer: ColumnName | None = None,
    employer_keys: ColumnNames | None = None,
    employer_weight: ColumnName | None = None,
    threshold: Annotated[float, Share()] = 0.1,
    target_share: Annotated[float, Share(above=True)] | None = None,
    missing: Missing = "category",
) -> Measure:
    """How likely is each person of a survey to be found, given how many people the weights say are like them?

    Where the data has the role ``person``, people are counted, each with the mean weight of its records in a class.

    A combination of key values with f records in the sample stands for F people in the population, F being the
    sum of their weights. The individual risk is the mean of one over the number of people given f, under a
    negative binomial with p = f / F (Benedetti and Franconi 1998; Polettini 2003; Franconi and Polettini 2004):
    ``p**f / f * 2F1(f, f; f + 1; 1 - p)``, computed without loss for classes of any size. Where the weights sum
    to no more than the records, the class counts as fully observed and the risk is 1 / f: it never exceeds 1.

    *Household.* Whoever finds one member finds all: ``1 - prod(1 - risk)`` over the members, the same for all.

    *Two levels.* In a file of employees by employer an intruder first finds the employer among the employers and
    then the employee among the employees of that employer; the risk is the product (the chain rule applied to
    the scenario of Ichim and Franconi 2007 for the Structure of Earnings Survey). Both factors are individual
    risks: of the employer on the employer's keys, with the weights of the employers; of the employee on the other
    keys within the employer, with the record's weight over the employer's.

    *Threshold.* If every record with a risk above t is treated until its risk is at most t, the expected share of
    re-identifications is at most the mean of min(risk, t). ``target_threshold`` is the t that brings this down to
    ``target_share`` (threshold setting by re-identification rate; Polettini 2003).

    Also known as: individual risk; Benedetti-Franconi; mu-Argus risk; negative binomial risk.

    Parameters
    ----------
    data
        The file: a sample with survey weights.
    keys, weight, household, employer
        Columns; those of the data unless named. The weight is needed, the others may be absent.
    employer_keys
        The keys that describe the employer; those that never vary within an employer unless named.
    employer_weight
        Column with the weight of the employer. With it and an employer the two-level risk is given.
    threshold
        Risk above which a record counts as at risk.
    target_share
        Expected share of re-identified records to aim for; gives ``target_threshold``.
    missing
        How missing key values count. ``wildcard``: they match anything, and f and F count and sum over all
        records that agree wherever both are known. ``category``: missing is a value. ``drop``: leave out.

    Returns
    -------
    Measure
        ``value`` is ``global_risk``. ``figures``: ``expected_reidentifications`` (sum of the risks),
        ``global_risk`` (their mean), ``max_risk``, ``threshold``, ``records_above_threshold``,
        ``share_above_threshold``; ``target_share``, ``target_threshold``, ``records_above_target_threshold``;
        ``households``, ``expected_households`` (households with a member found),
        ``household_expected_reidentifications`` (records in them), ``household_global_risk``; ``employers``,
        ``employer_global_risk`` (mean over employers), ``two_level_expected_reidentifications``,
        ``two_level_global_risk``; ``classes``, ``records``, ``population_estimate``, ``records_left_out``.
        What does not apply is None. ``detail``: ``classes``; ``records`` with ``class_size``,
        ``population_estimate``, ``risk`` and, where they apply, ``household_risk``, ``employer_risk``,
        ``within_risk``, ``two_level_risk``; ``distribution``, the number of records by risk.

    How to read it
    --------------
    ``expected_reidentifications`` is the number of people whom somebody with a perfect list of the whole
    population would find; ``global_risk`` is the same as a share. ``detail["records"]`` has each person's
    risk: a risk of 0.1 means that about ten people in the population share the key values. Where households
    can be recognized, read ``household_risk`` instead, because whoever finds one member finds all.
    ``target_threshold`` tells from which risk on to treat records if the expected share is to stay under your
    ``target_share``.

    When not to trust it
    --------------------
    The weights must say how many people of the population a record stands for; weights that were calibrated
    to few margins, trimmed or scaled to the sample size give wrong risks. For a combination that occurs once,
    the estimate rests on one record's weight: single risks are rough, sums are better. In samples of a few
    percent even the sum can be off by half in either direction. It assumes that the intruder does not know
    who is in the sample; for somebody who does, use `reidentification`.

    Examples
    --------
    >>> people = pl.DataFrame({"job": ["nurse", "nurse", "mayor"], "w": [50, 60, 17]})
    >>> found = individual(Microdata(people, keys=["job"], weight="w"))
    >>> found.detail["records"]["risk"].round(4).to_list()
    [0.0171, 0.0171, 0.1771]
    >>> round(found.figures["expected_reidentifications"], 4)
    0.2114
    """
    groups = EquivalenceClasses.of(data, keys, missing)
    keys = groups.keys
    weight = engine.resolve_weight(data, weight, required=True)
    household, employer = household or data.roles.household, employer or data.roles.employer
    need_known([household], data.schema, "It was named under 'household'.")
    need_known([employer], data.schema, "It was named under 'employer'.")
    if (employer_weight or employer_keys) and not employer:
        raise ParameterError("employer_weight and employer_keys need the employer itself: employer='column'.")
    employer_weight = engine.resolve_weight(data, employer_weight) if employer_weight else None
    if weight in keys:
        raise ColumnError(
            f"Column '{weight}' is the weight and cannot be a key as well. Leave it out of the keys."
        )

    units = {"h": household, "e": employer if employer_weight else None}
    cells = _cells(groups, str(weight), units, employer_weight)
    classes = class_risks(cells, list(engine.key_names(keys)), missing)
    records = int(classes["records"].sum())
    expected = float(classes.select(pl.col("records").dot("risk")).item())
    above = int(classes.filter(pl.col("risk") > threshold)["records"].sum())
    figures: dict[str, Any] = {
        "expected_reidentifications": expected,
        "global_risk": expected / records,
        "max_risk": classes["risk"].max(),
        "threshold": threshold,
        "records_above_threshold": above,
        "share_above_threshold": above / records,
        **_target(classes, target_share),
    }
    names = list(engine.key_names(keys))
    cells = cells.join(classes.drop("records"), on=names, how="left", nulls_equal=True)
    cells, of_households = _households(cells, household)
    levels: TwoLevel | None = None
    if employer and employer_weight:
        levels = two_level(
            cells,
            keys,
            missing,
            employer=employer,
            employer_keys=employer_keys,
            employer_weight=employer_weight,
        )
        cells = levels.cells
    counted = engine.overview(data, keys)
    figures |= of_households
    figures |= levels.figures if levels else TwoLevel.nothing
    figures |= {
        "classes": classes.height,
        "records": records,
        "population_estimate": float(cells["weights"].sum()),
        **groups.figures,
    }
    return Measure(
        name="individual",
        value=expected / records,
        figures=figures,
        meaning=_meaning(figures, levels) + groups.not_counted,
        caveats=[
            *_caveats(data, keys, classes, household),
            *([GAPS_COUNT] if missing == "wildcard" and any(counted.missing.values()) else []),
            *(levels.caveats if levels else _unused_employer(employer)),
        ],
        parameters={
            "keys": list(keys),
            "weight": weight,
            "household": household,
            "employer": employer if levels else None,
            "employer_keys": list(levels.employer_keys) if levels else None,
            "employer_weight": employer_weight,
            "threshold": threshold,
            "target_share": target_share,
            "missing": missing,
            **groups.parameters,
        },
        detail=engine.tables_like(
            data,
            classes=lambda: groups.rows(classes, by="risk"),
            records=lambda: _records(groups, cells, {"h": household, "e": employer}),
            distribution=lambda: _distribution(classes),
        ),
    )


def _cells(
    groups: EquivalenceClasses, weight: str, units: Mapping[str, str | None], employer_weight: str | None
) -> pl.DataFrame:
    """Count and weigh the records (or people) by keys, household ``h`` and employer ``e``, where there are such."""
    extra = {name: column for name, column in {**units, "v": employer_weight}.items() if column}
    figures = {"records": ("", "len"), "weights": ("w", "sum")}
    if employer_weight:
        figures |= {"v_low": ("v", "min"), "v_high": ("v", "max")}
    by = [*engine.key_names(groups.keys), *(name for name, column in units.items() if column)]
    rows = engine.weighted_rows(groups.data, groups.keys, groups.missing, weight, extra)
    cells = engine.added_by(rows, by, groups.data, **figures)
    refuse_nobody(cells, "Use missing='category' or 'wildcard'")
    if not np.isfinite(cells["weights"].to_numpy()).all():
        raise ColumnError(f"The weight column '{weight}' holds an infinite weight. Mend the weights.")
    return cells


def _target(classes: pl.DataFrame, target_share: float | None) -> dict[str, Any]:
    """Find the threshold t at which the mean of min(risk, t) is the target."""
    found: dict[str, Any] = {
        "target_share": target_share,
        "target_threshold": None,
        "records_above_target_threshold": None,
    }
    if target_share is None:
        return found
    by_risk = classes.sort("risk")
    risk, records = by_risk["risk"].to_numpy(), by_risk["records"].to_numpy().astype(np.float64)
    below = np.concatenate([[0.0], np.cumsum(risk * records)])
    above = records.sum() - np.concatenate([[0.0], np.cumsum(records)])
    kept = np.concatenate([[0.0], below[1:] + risk * above[1:]])
    room = target_share * records.sum()
    last = int(np.searchsorted(kept, room, side="right")) - 1
    reached = last < len(risk)
    threshold = (room - below[last]) / above[last] if reached else risk[-1]
    over = int(records[last:].sum()) if reached else 0
    return found | {"target_threshold": float(threshold), "records_above_target_threshold": over}


def _households(cells: pl.DataFrame, household: str | None) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Give every cell the risk that some member of its household is found; a record without one stands alone."""
    if not household:
        names = ("households", "expected_households", "household_expected_reidentifications")
        return cells, dict.fromkeys((*names, "household_global_risk"))
    hidden = pl.col("records") * pl.col("risk").neg().log1p()
    by_household = cells.group_by("h", maintain_order=True).agg(household_risk=hidden.sum())
    # expm1 keeps the digits of a small risk, which 1 - exp would lose.
    by_household = by_household.with_columns(
        household_risk=-np.expm1(by_household["household_risk"].to_numpy())
    )
    own = pl.when(pl.col("h").is_null()).then("risk").otherwise("household_risk")
    alone = cells.filter(pl.col("h").is_null())
    cells = cells.join(by_household, on="h", how="left", nulls_equal=True).with_columns(household_risk=own)
    known = by_household.filter(pl.col("h").is_not_null())
    expected = float(cells.select(pl.col("records").dot("household_risk")).item())
    found = float(known["household_risk"].sum()) + float(
        alone.select(pl.col("records").dot("risk")).item() or 0
    )
    return cells, {
        "households": known.height + int(alone["records"].sum()),
        "expected_households": found,
        "household_expected_reidentifications": expected,
        "household_global_risk": expected / int(cells["records"].sum()),
    }


def _records(groups: EquivalenceClasses, cells: pl.DataFrame, units: Mapping[str, str | None]) -> Any:
    """Carry the risks back to the records, joined by the keys and by the units that are not keys already."""
    names, by = list(engine.key_names(groups.keys)), list(groups.keys)
    for name, column in units.items():
        if column and name in cells.columns and column not in by:
            cells = cells.rename({name: f"k{len(by)}"})
            names.append(f"k{len(by)}")
            by.append(column)
    new = ("class_size", "population_estimate", "risk")
    more = ("household_risk", "employer_risk", "within_risk", "two_level_risk")
    table = cells.select(*names, *new, *(column for column in more if column in cells.columns))
    return engine.carry_back(groups.data, by, groups.missing, table)


def _distribution(classes: pl.DataFrame) -> pl.DataFrame:
    """Count the records in steps of the risk that suit a logarithmic axis."""
    edges = [0.0, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0]
    place = np.searchsorted(edges, classes["risk"].to_numpy(), side="left").clip(1) - 1
    counts = np.bincount(place, weights=classes["records"].to_numpy(), minlength=len(edges) - 1)
    return pl.DataFrame(
        {"risk_above": edges[:-1], "risk_up_to": edges[1:], "records": counts.astype(np.int64)}
    )


def _meaning(figures: dict[str, Any], levels: TwoLevel | None) -> str:
    text = (
        f"Someone who matches everybody on the keys against the whole population is expected to find "
        f"{shown(figures['expected_reidentifications'])} of the {figures['records']:,} people "
        f"({percent(figures['global_risk'])}); for {figures['records_above_threshold']:,} the risk is above "
        f"{percent(figures['threshold'])}"
    )
    if figures["household_global_risk"] is not None:
        text += (
            f"; counting everybody in the household of a person found, "
            f"{shown(figures['household_expected_reidentifications'])} ({percent(figures['household_global_risk'])})"
        )
    if levels:
        text += (
            f"; going by way of the employer, {shown(figures['two_level_expected_reidentifications'])} "
            f"({percent(figures['two_level_global_risk'])})"
        )
    return f"{text}."


def _caveats(data: Microdata, keys: Sequence[str], classes: pl.DataFrame, household: str | None) -> list[str]:
    caveats = without(key_caveats(data, keys), WEIGHTS_UNUSED)
    full = classes.filter(pl.col("population_estimate") < pl.col("class_size"))
    if full.height:
        caveats.append(
            f"In {full.height:,} classes ({int(full['records'].sum()):,} records) the weights sum to fewer people than "
            "there are records; there the class counts as fully observed, with risk 1 over its size."
        )
    if household:
        gone = engine.overview(data, [household]).missing[household]
        if gone:
            caveats.append(f"{gone:,} records have no household; each counts as a household of its own.")
        caveats.append(
            "The household risk takes its members as found independently of one another, and the household as "
            "recognized from any one of them."
        )
    caveats.append(
        "Each weight is taken to tell how many people share that combination. For a combination met once that is a "
        "guess from one record: single risks are rough, and in samples of a few percent even their sum can be off by "
        "half, up or down. It also assumes an intruder with error-"
        "free knowledge of the keys for the whole population, who does not know who is in the sample."
    )
    return caveats


def _unused_employer(employer: str | None) -> list[str]:
    if not employer:
        return []
    return [
        f"The file has employers ('{employer}'), but their weights were not named (employer_weight), so the risk of "
        "finding an employee by way of the employer is left out."
    ]
