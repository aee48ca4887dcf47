"""What does a ranking of rebuilt records really disclose?

Sánchez et al.: a rebuilt record that exists is no find where many people have it. The audit holds how often records
were rebuilt against how many people have them: are the top ones merely the common ones, are rare ones found, how many
are invented, and would anything be learned about somebody for certain?
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import polars as pl

from discreet.attack.counting_queries import records_of
from discreet.attack.ranked_reconstruction import DICK_2023, FREQUENCY
from discreet.core.arrays import Floats
from discreet.core.cards import Figure, measure
from discreet.core.constraints import ColumnName, ColumnNames
from discreet.core.errors import ColumnError, InputError, ParameterError, unknown_name
from discreet.core.parameters import checked
from discreet.core.results import Detail, Measure
from discreet.core.wording import percent

SANCHEZ_2024 = (
    "Sánchez, D., Jebreel, N. M., Muralidhar, K., Domingo-Ferrer, J. and Blanco-Justicia, A. (2024). An examination of "
    "the alleged privacy threats of confidence-ranked reconstruction of Census microdata. Privacy in Statistical "
    "Databases."
)
MULTIPLICITY = "mult"
_NOT_ATTRIBUTES = (FREQUENCY, "runs", "rank")


@measure(
    room="attack",
    title="Audit of a reconstruction",
    question="What does a ranking of rebuilt records disclose?",
    headline="of the records rebuilt once belong to exactly one person",
    chapter="rebuilt",
    place=4,
    work="class-wise",
    references=(SANCHEZ_2024, DICK_2023),
    figures={
        "value": Figure("Rebuilt once and one person's", unit="share", better="lower", summary=True),
        "pearson": Figure("Correlation of rebuilt and real numbers"),
        "spearman": Figure("Rank correlation of rebuilt and real numbers"),
        "unique_share": Figure("People alone with their record", unit="share", better="lower"),
        "smallest_chance": Figure("Smallest chance to pick the right person", unit="share", better="lower"),
        "top_chance": Figure(
            "Chance to pick the right person for the top record", unit="share", better="lower"
        ),
        "match_rate": Figure("Rebuilt records that exist", unit="share", better="lower"),
        "attack_rate": Figure("Top records that exist", unit="share", better="lower"),
        "baseline_rate": Figure("Top records of the hold-out that exist", unit="share"),
        "rare_precision_1": Figure("Rebuilt once and one person's", unit="share", better="lower"),
        "rare_precision_2": Figure("Rebuilt at most twice and two people's", unit="share", better="lower"),
        "rare_precision_3": Figure(
            "Rebuilt at most three times and three people's", unit="share", better="lower"
        ),
        "invented": Figure("Invented records, for every real one"),
        "missed": Figure("Real records never rebuilt", unit="share", better="higher"),
        "disclosed": Figure("People about whom something right is certain", unit="share", better="lower"),
        "majority_right": Figure(
            "People whose value the most frequent guess hits", unit="share", better="lower"
        ),
        "majority_baseline": Figure("People whose value the most common one hits", unit="share"),
    },
    tells=("attributes",),
)
@checked
def audit_reconstruction(
    original: Any,
    ranking: Any,
    *,
    public: ColumnNames | None = None,
    confidential: ColumnNames | None = None,
    exhaustive: bool = False,
    strata: ColumnName | None = None,
    holdout: Any = None,
    top: int | None = None,
    least: int = 1,
    weight: Literal["prototype", "occurrence"] = "prototype",
) -> Measure:
    """What does a ranking of rebuilt records disclose about the people of the file?

    Parameters
    ----------
    original
        The records that the published counts were made from.
    ranking
        What `reconstruct` found (the answer, or its ``detail["ranking"]``): a row a rebuilt record with ``freq``; or a
        table from records (tuples, in the order of the columns of the original) to numbers.
    public, confidential
        What the attacker knows of people and what he wants to learn; asked about where both are named.
    exhaustive
        Whether the file holds everybody of the population. Where it does not, nothing is certain about anybody.
    strata
        A column of areas that were rebuilt one by one, in both files: everything is counted in each area and pooled.
    holdout
        Other records (of last year, of a neighbor): the ranking by how common records are there is the baseline.
    top, least
        Believe only so many of the ranking, and only what was rebuilt at least so often, when something is inferred.
    weight
        Whether a rebuilt record counts once in the rare precision (``prototype``) or as often as it was rebuilt
        (``occurrence``).

    Returns
    -------
    Measure
        ``value`` is ``rare_precision_1``: of the records rebuilt once, the share that exactly one person has.
        ``pearson`` and ``spearman`` over the records of the file; ``invented`` and ``missed`` as shares of the
        different records of the file (``invented`` can exceed 1); ``match_rate`` of the whole ranking, ``attack_rate``
        and ``baseline_rate`` of as many top records as there are different ones in the file. ``detail``: ``match``
        (cumulative, a row a tie group), ``prototypes`` (numbers of people and of rebuilt records, without values),
        ``inference``, ``areas``.

    How to read it
    --------------
    A high correlation says that what is rebuilt often is common, and common records point to nobody. Fear the rare
    precision: records that one person has, found as rare. ``disclosed`` needs that all people like a person share the
    value, that the file is complete, and that all rebuilt records like the person's agree on it, too.

    When not to trust it
    --------------------
    The audit is about the ranking it was given; a better reconstruction may find more. Records are compared on the
    attributes of the ranking only.

    Examples
    --------
    >>> people = pl.DataFrame({"x": list("AAAAABBCDE")})
    >>> found = audit_reconstruction(people, {("A",): 9, ("B",): 5, ("C",): 2, ("F",): 2, ("E",): 1, ("G",): 1})
    >>> round(found.figures["pearson"], 4), round(found.figures["spearman"], 4), found.figures["rare_precision_1"]
    (0.9499, 0.8944, 0.5)
    >>> found.figures["invented"], found.figures["missed"], found.figures["unique_share"]
    (0.4, 0.2, 0.3)
    """
    file, rebuilt, attributes = _both(original, ranking, strata)
    keys = [*([strata] if strata else []), *attributes]
    both = _held_together(file, rebuilt, keys)
    figures = _figures(both, weight)
    told = ["Only what the ranking holds is audited; a better reconstruction may find more."]
    real = both.filter(pl.col(MULTIPLICITY) > 0)
    if figures["pearson"] is None:
        told.append(
            "The correlation is undefined: all records of the file are alike, or all were rebuilt equally often."
        )
    if figures["rare_precision_1"] is None:
        told.append("No record was rebuilt just once, so the headline number is undefined, not zero.")
    size = real.height
    figures["attack_rate"] = _top_matches(both, size)
    if holdout is not None:
        prior = _counts(records_of(holdout, keys), keys).rename({MULTIPLICITY: FREQUENCY})
        figures["baseline_rate"] = _top_matches(_held_together(file, prior, keys), size)
    inferred = None
    if public or confidential:
        inferred, more = _inference(
            file, rebuilt, _named(public, attributes, "public"), _named(confidential, attributes, "confidential"),
            strata, top, least, exhaustive=exhaustive,
        )  # fmt: skip
        figures.update(more)
        if not exhaustive:
            told.append(
                "The file does not hold everybody (exhaustive=False), so nothing is certain about anybody: 'disclosed' "
                "is 0 for that reason alone."
            )
    return Measure(
        name="audit_reconstruction",
        value=figures["rare_precision_1"],
        figures=figures,
        meaning=_in_words(figures, real.height),
        caveats=told,
        parameters={
            "attributes": attributes,
            "strata": strata,
            "weight": weight,
            "exhaustive": exhaustive,
            "top": top,
            "least": least,
        },
        detail=Detail(
            match=lambda: _match_table(both),
            prototypes=lambda: both.select(MULTIPLICITY, FREQUENCY).sort(
                FREQUENCY, MULTIPLICITY, descending=True
            ),
            **({"inference": lambda: inferred} if inferred is not None else {}),
            **({"areas": lambda: _by_area(both, strata, weight)} if strata else {}),
        ),
    )


def _both(original: Any, ranking: Any, strata: str | None) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    """The file and the ranking on the same columns, as texts, whatever types they had."""
    if isinstance(ranking, Measure):
        if "ranking" not in ranking.detail:
            raise ParameterError("ranking must be what reconstruct found, and this answer has no ranking.")
        ranking = ranking.detail["ranking"]
    if isinstance(ranking, Mapping):
        everything = records_of(original)
        rows = [(*(key if isinstance(key, tuple) else (key,)), int(value)) for key, value in ranking.items()]
        if any(len(row) != len(everything.columns) + 1 for row in rows):
            raise ParameterError(
                f"Every record of the ranking must have {len(everything.columns)} values, one a column of the original."
            )
        ranking = pl.DataFrame(
            rows, schema=[*everything.columns, FREQUENCY], orient="row", infer_schema_length=None
        )
    frame = records_of(ranking) if not isinstance(ranking, pl.DataFrame) else ranking
    if FREQUENCY not in frame.columns:
        raise ColumnError(
            f"The ranking has no column '{FREQUENCY}', which says how often each record was rebuilt."
        )
    attributes = [name for name in frame.columns if name not in (*_NOT_ATTRIBUTES, strata)]
    if not attributes:
        raise InputError("The ranking has no attributes to compare.")
    if strata is not None and strata not in frame.columns:
        raise ColumnError(f"The ranking has no column '{strata}' of areas.")
    keys = [*([strata] if strata else []), *attributes]
    file = records_of(original, keys)
    rebuilt = frame.group_by(keys).agg(pl.col(FREQUENCY).cast(pl.Float64).sum()).filter(pl.col(FREQUENCY) > 0)
    return (
        file.with_columns(pl.col(keys).cast(pl.String)),
        rebuilt.with_columns(pl.col(keys).cast(pl.String)),
        attributes,
    )


def _counts(file: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    return (
        file.with_columns(pl.col(keys).cast(pl.String))
        .group_by(list(keys))
        .agg(pl.len().cast(pl.Float64).alias(MULTIPLICITY))
    )


def _held_together(file: pl.DataFrame, rebuilt: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Every record that is real or rebuilt, with how many people have it and how often it was rebuilt."""
    return (
        _counts(file, keys)
        .join(rebuilt, on=list(keys), how="full", coalesce=True, nulls_equal=True)
        .with_columns(pl.col(MULTIPLICITY, FREQUENCY).fill_null(0.0))
        .sort(FREQUENCY, *keys, descending=[True, *([False] * len(keys))])
    )


def _figures(both: pl.DataFrame, weight: str) -> dict[str, Any]:
    mult, freq = both[MULTIPLICITY].to_numpy(), both[FREQUENCY].to_numpy()
    real, made = mult > 0, freq > 0
    people, kinds = mult.sum(), int(real.sum())
    first = int(np.argmax(freq))
    most = float(mult[first])
    return {
        "pearson": _correlation(mult[real], freq[real]),
        "spearman": _correlation(_ranks(mult[real]), _ranks(freq[real])),
        "unique_share": float((mult == 1).sum() / people),
        "smallest_chance": float(1 / mult.max()),
        "top_chance": 1 / most if most and made.any() else None,
        "top_is_most_common": bool(most == mult.max()) if made.any() else None,
        "match_rate": float((real & made).sum() / made.sum()) if made.any() else None,
        **{f"rare_precision_{j}": _rare(mult, freq, j, weight) for j in (1, 2, 3)},
        "invented": float((made & ~real).sum() / kinds),
        "missed": float((real & ~made).sum() / kinds),
        "records": int(people),
        "prototypes": kinds,
        "rebuilt": int(made.sum()),
        "invented_count": int((made & ~real).sum()),
        "missed_count": int((real & ~made).sum()),
    }


def _rare(mult: Floats, freq: Floats, j: int, weight: str) -> float | None:
    """Of what was rebuilt at most j times, the share that exactly j people have; None where nothing was."""
    rare = (freq >= 1) & (freq <= j)
    if not rare.any():
        return None
    weights = np.where(rare, freq if weight == "occurrence" else 1.0, 0.0)
    return float(weights[mult == j].sum() / weights.sum())


def _correlation(x: Floats, y: Floats) -> float | None:
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return float(np.corrcoef(x, y)[0, 1])


def _ranks(values: Floats) -> Floats:
    from scipy.stats import rankdata

    return np.asarray(rankdata(values), dtype=np.float64)


def _top_matches(both: pl.DataFrame, size: int) -> float | None:
    """The share of the top records that exist; a tie group at the end counts by its own share."""
    table = _match_table(both)
    if not table.height:
        return None
    before = table.filter(pl.col("ranked") <= size)
    last = table.filter(pl.col("ranked") > size).head(1)
    hits, ranked = (float(before["matched"][-1]), int(before["ranked"][-1])) if before.height else (0.0, 0)
    if last.height and ranked < size:
        group = int(last["ranked"][0]) - ranked
        hits += (float(last["matched"][0]) - hits) / group * (size - ranked)
        ranked = size
    return hits / ranked if ranked else None


def _match_table(both: pl.DataFrame) -> pl.DataFrame:
    """Cumulative match rates, a whole tie group at a time."""
    return (
        both.filter(pl.col(FREQUENCY) > 0)
        .group_by(FREQUENCY)
        .agg(pl.len().alias("group"), (pl.col(MULTIPLICITY) > 0).sum().alias("found"))
        .sort(FREQUENCY, descending=True)
        .select(
            FREQUENCY,
            pl.col("group").cum_sum().cast(pl.Int64).alias("ranked"),
            pl.col("found").cum_sum().cast(pl.Int64).alias("matched"),
        )
        .with_columns((pl.col("matched") / pl.col("ranked")).alias("match_rate"))
    )


def _named(given: Sequence[str] | None, attributes: Sequence[str], what: str) -> list[str]:
    names = [given] if isinstance(given, str) else list(given or ())
    if not names:
        raise ParameterError(
            "Inference needs both: public= (what is known) and confidential= (what is wanted)."
        )
    for name in names:
        if name not in attributes:
            raise ParameterError(f"{what}: {unknown_name(name, attributes)}")
    return names


def _inference(  # noqa: PLR0917
    file: pl.DataFrame,
    rebuilt: pl.DataFrame,
    public: list[str],
    confidential: list[str],
    strata: str | None,
    top: int | None,
    least: int,
    *,
    exhaustive: bool,
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """About whom would something be certain, and how often is the attacker's best guess right?"""
    if set(public) & set(confidential):
        raise ParameterError("A column cannot be public and confidential at once.")
    known = [*([strata] if strata else []), *public]
    believed = rebuilt.filter(pl.col(FREQUENCY) >= least).sort(
        FREQUENCY, *rebuilt.columns[:-1], descending=[True, *([False] * (len(rebuilt.columns) - 1))]
    )
    if top is not None:
        believed = believed.head(top)
    values = pl.struct(confidential)
    guesses = (
        believed.group_by([*known, *confidential])
        .agg(pl.col(FREQUENCY).sum())
        .sort(FREQUENCY, *confidential, descending=[True, *([False] * len(confidential))])
        .group_by(known, maintain_order=True)
        .agg(pl.len().alias("kinds"), values.first().alias("guess"))
    )
    people = (
        file.with_columns(values.alias("truth"))
        .with_columns(pl.col("truth").n_unique().over(known).alias("own"))
        .join(guesses, on=known, how="left", nulls_equal=True)
        .with_columns(
            alike=pl.col("own") == 1,
            agreed=(pl.col("kinds") == 1).fill_null(value=False),
            right=pl.col("guess").eq_missing(pl.col("truth")) & pl.col("kinds").is_not_null(),
        )
    )
    usual = file.group_by(confidential).agg(pl.len().alias("many"))["many"].max()
    both = pl.col("alike") & pl.col("agreed")
    told = people.select(
        alike=pl.col("alike").mean(),
        agreed=pl.col("agreed").mean(),
        both=both.mean(),
        both_right=(both & pl.col("right")).mean(),
        right=pl.col("right").mean(),
    ).row(0, named=True)
    kinds = guesses["kinds"].mean()
    figures = {
        "all_alike": told["alike"],
        "all_rebuilt_agree": told["agreed"],
        "alike_and_agree": told["both"],
        "alike_agree_and_right": told["both_right"],
        "disclosed": told["both_right"] if exhaustive else 0.0,
        "majority_right": told["right"],
        "majority_baseline": float(usual) / file.height,  # type: ignore[arg-type]
        "mean_kinds": None if kinds is None else float(kinds),  # type: ignore[arg-type]
    }
    table = people.select("alike", "agreed", "right", "kinds").with_row_index("record")
    return table, figures


def _by_area(both: pl.DataFrame, strata: str, weight: str) -> pl.DataFrame:
    rows = [
        {"area": str(group[strata][0]), **_figures(group, weight)}
        for _, group in both.group_by(strata)
        if float(group[MULTIPLICITY].sum()) > 0
    ]
    return pl.DataFrame(rows, infer_schema_length=None).sort("area")


def _in_words(figures: Mapping[str, Any], kinds: int) -> str:
    rare = figures["rare_precision_1"]
    if not figures["rebuilt"]:
        return f"No record was rebuilt; the file has {kinds:,} different ones."
    said = (
        f"Of {figures['rebuilt']:,} different rebuilt records {percent(figures['match_rate'])} exist in the file, "
        f"which has {kinds:,} different ones; {percent(figures['missed'])} of these were never rebuilt, and "
        f"{figures['invented_count']:,} were invented. "
    )
    said += (
        "No record was rebuilt just once."
        if rare is None
        else f"Of the records rebuilt once, {percent(rare)} belong to exactly one person."
    )
    if "disclosed" in figures:
        said += f" Something right is certain about {percent(figures['disclosed'])} of the people."
    return said
