"""Who stands out on just a few keys? Special uniques and their SUDA and DIS scores."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats, Integers
from discreet.core.cards import Figure, OfFile, measure
from discreet.core.charts import Bars, finite, row_bars, rows_of
from discreet.core.citations import SKINNER_ELLIOT_2002
from discreet.core.constraints import AtLeast, ColumnNames, Share
from discreet.core.findings import WEIGHTS_UNUSED, without
from discreet.core.results import Measure
from discreet.core.wording import percent, shown
from discreet.engine import Missing
from discreet.microdata import Microdata
from discreet.risk import key_sets
from discreet.risk.equivalence_classes import GAPS_COUNT, EquivalenceClasses, Heads
from discreet.risk.k_anonymity import key_caveats

_SETS_UNLESS_TOLD = 5_000
_FRACTION_UNLESS_TOLD = 0.1


_MOST_KEYS = 12


def _pictures(found: Measure, show_values: bool) -> Iterator[Bars]:
    rows = [row for row in rows_of(found, "variables", "key", "contribution") if finite(row["contribution"])]
    if not rows:
        return
    rows = sorted(rows, key=lambda row: -row["contribution"])[:_MOST_KEYS]
    axis = "Share of the score of all records that a key takes part in"
    yield row_bars("Which keys make people stand out", rows, "key", "contribution", axis)
    sizes = rows_of(found, "sizes", "size", "msus")
    if sizes:
        yield Bars(
            title="How many key values it takes to stand alone",
            labels=tuple(f"{row['size']:g}" for row in sizes),
            values=tuple(float(row["msus"]) for row in sizes),
            axis="Number of smallest combinations that are alone; number of keys in them along the bottom",
            at_risk=tuple(row["size"] <= 1 for row in sizes),
            as_share=False,
        )


@measure(
    room="risk",
    work="class-wise",
    question="Who stands out on few keys already, and which keys do it?",
    headline="of the records are alone on few keys",
    chapter="keys",
    place=2,
    leading=True,
    references=(
        "Elliot, M. J., Manning, A. M. and Ford, R. W. (2002). A computational algorithm for handling the "
        "special uniques problem. International Journal of Uncertainty, Fuzziness and Knowledge-Based "
        "Systems 10(5), 493–509.",
        "Manning, A. M., Haglin, D. J. and Keane, J. A. (2008). A recursive search algorithm for "
        "statistical disclosure assessment. Data Mining and Knowledge Discovery 16(2), 165–196.",
        SKINNER_ELLIOT_2002,
    ),
    figures={
        "value": Figure(unit="share", better="lower"),
        "special_unique_share": Figure("Share alone on fewer than all keys", unit="share"),
        "special_unique_records": Figure("Records alone on fewer than all keys"),
        "scored_records": Figure("Records with a score"),
        "msus": Figure("Smallest combinations that are alone"),
        "smallest_msu": Figure("Fewest keys that single someone out"),
        "max_suda": Figure("Highest score (SUDA)"),
        "total_suda": Figure("Sum of the scores"),
        "max_suda_normalized": Figure("Highest score, as a share of the possible"),
        "dis_file": Figure("Average chance that a match on a unique is right (DIS)", unit="share"),
        "max_dis": Figure("Highest chance that a match is right (DIS)", unit="share"),
        "dis_capped_records": Figure("Records whose DIS was capped"),
    },
    columns={
        "contribution": Figure("Share of the score", unit="share"),
        "dis": Figure("Chance that a match is right (DIS)", unit="share"),
    },
    assess=OfFile(6, partition=False, slow=True),
    pictures=_pictures,
    tells=(
        "counted_in",
        "scale",
    ),
)
def special_uniques(
    data: Microdata,
    *,
    keys: ColumnNames | None = None,
    max_size: Annotated[int, AtLeast(1)] | None = None,
    sampling_fraction: Annotated[float, Share(above=True)] | None = None,
    missing: Missing = "category",
    show_values: bool = False,
    progress: bool = True,
) -> Measure:
    """Whose record is alone on only a few of the keys?

    A minimal sample unique (MSU) of a record is a set of keys on which nobody else has its values, while on every
    part of the set somebody does. A record that is alone on fewer than all keys is a *special unique*: rare in the
    population too, more often than others that are alone in the sample (Elliot, Manning and Ford 2002). All MSUs
    up to ``max_size`` are found, with the pruning of SUDA2 (Manning, Haglin and Keane 2008).

    *SUDA score.* With K keys, a record gets ``(K - s)!`` for each of its MSUs of size s: fewer and smaller keys
    that suffice, more points. The scale depends on K, so ``suda_normalized`` divides it by its largest possible
    value, ``K!`` (alone on every single key), so that it is in [0, 1]. (Elliot et al. 2005 multiply ``K - i`` for
    i from s up to the size limit M: the same score over the constant ``(K - M - 1)!``.)

    *DIS score.* The chance that a match on a record alone in the sample is right, for the whole file, is estimated
    by data intrusion simulation as ``d U / (d U + (1 - d) P)``, with U records alone, P records in pairs and the
    sampling fraction d (Skinner and Elliot 2002). The U records share U times that chance in proportion to their
    SUDA score: ``dis = min(1, chance * U * suda / total suda)``.

    Also known as: SUDA; SUDA2; special unique detection algorithm; DIS-SUDA; minimal sample uniques; MSU.

    Parameters
    ----------
    data, keys
        The file and its key columns.
    max_size
        Size up to which sets of keys are searched. Unless told, all sizes, or as many as give no more than 5,000
        sets; ``parameters`` says which.
    sampling_fraction
        Share of the population that is in the file, for DIS. Unless told, records over the sum of the survey
        weights, or 0.1 where there are none.
    missing
        ``category``: missing is a value of its own. ``wildcard``: it matches anything; a record is never alone by
        a key it misses. ``drop``: records with a missing key are left out.
    show_values
        Name the key values in ``detail["values"]``.
    progress
        Show a progress bar on a terminal.

    Returns
    -------
    Measure
        ``value`` is ``special_unique_share``. ``figures``: ``special_unique_share``, ``special_unique_records``
        (alone on fewer than all keys), ``scored_records`` (with an MSU up to ``max_size``), ``unique_records``
        (alone on all keys), ``msus``, ``smallest_msu``, ``max_suda``, ``total_suda``, ``max_suda_normalized``,
        ``dis_file`` (the chance for the whole file), ``max_dis``, ``dis_capped_records``, ``sampling_fraction``,
        ``max_size``, ``records``, ``records_left_out``. ``detail``: ``records`` with ``suda``,
        ``suda_normalized``, ``dis``, ``msus``, ``smallest_msu``; ``contributions``, the share of each record's
        score that rests on each key; ``variables``, the share of the file's score in MSUs with that key;
        ``values``, the same by value; ``sets``, by set of keys; ``sizes``, by size.

    How to read it
    --------------
    A record with a high SUDA score is alone on few keys and in many ways, like a widow of sixteen: such
    people tend to be rare in the population too and should be treated first. Sort ``detail["records"]`` by
    ``suda``. ``detail["variables"]`` says which keys cause it, ``detail["sets"]`` which combinations. ``dis``
    puts the scores on a scale of chances: a DIS of 0.1 means that about one match in ten on such a record
    would be right, in a simple random sample.

    When not to trust it
    --------------------
    The scores rank records within one file with one set of keys; they do not compare between files or after
    keys are added. DIS assumes a simple random sample and spreads one chance for the whole file over the
    records, so that a single DIS is a ranking with a scale, not an estimate. In a file that covers the whole
    population everybody who is alone is at risk, special or not. Cutting ``max_size`` short leaves out
    records that are alone on many keys only.

    Examples
    --------
    >>> people = pl.DataFrame({"sex": ["f", "m", "m"], "job": ["a", "b", "a"], "town": ["x", "y", "x"]})
    >>> found = special_uniques(Microdata(people, keys=["sex", "job", "town"]))
    >>> found.detail["records"]["suda"].to_list()
    [2.0, 4.0, 2.0]
    >>> found.detail["variables"].select("key", "contribution").rows()
    [('sex', 0.5), ('job', 0.375), ('town', 0.375)]
    """
    classes = EquivalenceClasses.of(data, keys, missing)
    keys = classes.keys
    asked = max_size is not None
    max_size = (
        key_sets.checked_size(max_size, len(keys)) if max_size is not None else _affordable_size(len(keys))
    )
    fraction, from_weights = _sampling_fraction(data, sampling_fraction)
    caveats = without(key_caveats(data, keys), WEIGHTS_UNUSED)
    coded = key_sets.coded_keys(data, keys, missing)
    scores = _scores(coded, max_size, progress=progress)
    # The scores go by agreement under a wildcard, and so must the uniques over which DIS spreads them.
    spectrum = (engine.class_table if missing == "wildcard" else engine.size_spectrum)(data, keys, missing)
    unique, paired = (int(spectrum.filter(pl.col("class_size") == size)["records"].sum()) for size in (1, 2))
    chance = fraction * unique / (fraction * unique + (1 - fraction) * paired) if unique else 0.0
    total, highest = float(scores.suda.sum()), math.factorial(len(keys))
    share = scores.suda * (chance * unique / total) if total else scores.suda
    dis = np.minimum(share, 1.0)
    capped = int((share > 1).sum())
    records = int(coded.records.sum())
    special = int((scores.smallest < len(keys)).sum())
    table = coded.table.with_columns(
        suda=scores.suda,
        suda_normalized=scores.suda / highest,
        dis=dis,
        msus=scores.msus,
        smallest_msu=pl.Series(scores.smallest).replace(_NONE, None),
    )
    figures: dict[str, Any] = {
        "special_unique_share": special / records,
        "special_unique_records": special,
        "scored_records": int((scores.msus > 0).sum()),
        "unique_records": unique,
        "msus": int(scores.msus.sum()),
        "smallest_msu": int(scores.smallest.min()) if total else None,
        "max_suda": float(scores.suda.max()),
        "total_suda": total,
        "max_suda_normalized": float(scores.suda.max()) / highest,
        "dis_file": chance,
        "max_dis": float(dis.max()),
        "dis_capped_records": capped,
        "sampling_fraction": fraction,
        "max_size": max_size,
        "records": records,
        **classes.figures,
    }
    return Measure(
        name="special_uniques",
        value=special / records,
        figures=figures,
        meaning=_meaning(figures, len(keys), classes.heads) + classes.not_counted,
        caveats=[
            *caveats,
            *([GAPS_COUNT] if coded.wild else []),
            *_size_caveat(max_size, len(keys), figures, asked=asked),
            *_dis_caveats(figures, paired, from_weights=from_weights, asked=sampling_fraction is not None),
        ],
        parameters={
            "keys": list(keys),
            "max_size": max_size,
            "sampling_fraction": fraction,
            "scale": f"(K - s)! with K = {len(keys)}; normalized: over K!",
            "missing": missing,
            **classes.parameters,
        },
        detail=engine.tables_like(
            data,
            records=lambda: engine.carry_back(data, keys, missing, table),
            contributions=lambda: engine.carry_back(data, keys, missing, _by_record(coded, scores, keys)),
            variables=lambda: _variables(scores, keys),
            values=lambda: _values(coded, scores, keys, show_values=show_values),
            sets=lambda: _sets(scores, keys),
            sizes=lambda: _sets(scores, keys).group_by("size").agg(pl.col("msus").sum()).sort("size"),
        ),
    )


_NONE = np.iinfo(np.int64).max


@dataclass(frozen=True)
class _Scores:
    """What the search adds up: by row of the class table, by key and row, by key and value, by set of keys."""

    suda: Floats
    msus: Integers
    smallest: Integers
    by_key: Floats
    by_value: tuple[Floats, ...]
    msus_by_value: tuple[Integers, ...]
    by_set: dict[key_sets.KeySet, int]


def _scores(coded: key_sets.CodedKeys, max_size: int, *, progress: bool) -> _Scores:
    keys, rows = coded.codes.shape
    scores = _Scores(
        suda=np.zeros(rows),
        msus=np.zeros(rows, dtype=np.int64),
        smallest=np.full(rows, _NONE),
        by_key=np.zeros((keys, rows)),
        by_value=tuple(np.zeros(len(values)) for values in coded.values),
        msus_by_value=tuple(np.zeros(len(values), dtype=np.int64) for values in coded.values),
        by_set={},
    )
    for chosen, found in key_sets.minimal_uniques(coded, max_size, progress=progress):
        points = float(math.factorial(keys - len(chosen)))
        scores.suda[found] += points
        scores.msus[found] += 1
        scores.smallest[found] = np.minimum(scores.smallest[found], len(chosen))
        scores.by_set[chosen] = len(found)
        for key in chosen:
            scores.by_key[key, found] += points
            times = np.bincount(coded.codes[key, found], minlength=len(coded.values[key]))
            scores.by_value[key][:] += points * times
            scores.msus_by_value[key][:] += times
    return scores


def _affordable_size(keys: int) -> int:
    size = keys
    while size > 1 and key_sets.number_of_sets(keys, size) > _SETS_UNLESS_TOLD:
        size -= 1
    return size


def _sampling_fraction(data: Microdata, given: float | None) -> tuple[float, bool]:
    if given is not None:
        return float(given), False
    weight = engine.resolve_weight(data)
    if weight is None:
        return _FRACTION_UNLESS_TOLD, False
    return min(1.0, engine.head_count(data) / engine.people_of_weights(data, weight)), True


def _variables(scores: _Scores, keys: Sequence[str]) -> pl.DataFrame:
    total = scores.suda.sum() or 1.0
    places = range(len(keys))
    return pl.DataFrame(
        {
            "key": list(keys),
            "contribution": scores.by_key.sum(axis=1) / total,
            "msus": [
                sum(count for chosen, count in scores.by_set.items() if key in chosen) for key in places
            ],
            "records": (scores.by_key > 0).sum(axis=1),
        }
    ).sort("contribution", descending=True, maintain_order=True)


def _values(
    coded: key_sets.CodedKeys, scores: _Scores, keys: Sequence[str], *, show_values: bool
) -> pl.DataFrame:
    total = scores.suda.sum() or 1.0
    parts = []
    for place, key in enumerate(keys):
        part = pl.DataFrame(
            {
                "key": [key] * len(coded.values[place]),
                "value": coded.values[place].cast(pl.String).fill_null("(missing)"),
                "contribution": scores.by_value[place] / total,
                "msus": scores.msus_by_value[place],
            }
        ).sort("contribution", descending=True, maintain_order=True)
        if not show_values:
            part = part.with_columns(value=pl.format("value {}", pl.int_range(1, pl.len() + 1)))
        parts.append(part)
    return pl.concat(parts).sort("contribution", descending=True, maintain_order=True)


def _sets(scores: _Scores, keys: Sequence[str]) -> pl.DataFrame:
    rows = [(", ".join(keys[key] for key in chosen), len(chosen), n) for chosen, n in scores.by_set.items()]
    table = pl.DataFrame(rows, schema={"keys": pl.String, "size": pl.Int64, "msus": pl.Int64}, orient="row")
    return table.sort(["size", "msus"], descending=[False, True], maintain_order=True)


def _by_record(coded: key_sets.CodedKeys, scores: _Scores, keys: Sequence[str]) -> pl.DataFrame:
    scored = np.where(scores.suda > 0, scores.suda, np.nan)
    shares = {f"contribution of {key}": scores.by_key[place] / scored for place, key in enumerate(keys)}
    return coded.table.with_columns(
        **{name: pl.Series(share).fill_nan(0.0) for name, share in shares.items()}, suda=scores.suda
    ).select(*engine.key_names(keys), "suda", *shares)


def _meaning(figures: dict[str, Any], keys: int, heads: Heads) -> str:
    if not figures["msus"]:
        size = figures["max_size"]
        return (
            f"No {heads.one} of {figures['records']:,} is alone on a set of up to {size} of the {keys} keys."
        )
    if not figures["special_unique_records"]:
        return (
            f"{figures['scored_records']:,} of {figures['records']:,} {heads.many} are alone, but only on all {keys} "
            "keys together; none stands out on fewer."
        )
    return (
        f"{figures['special_unique_records']:,} of {figures['records']:,} {heads.many} "
        f"({percent(figures['special_unique_share'])}) are alone on fewer than all {keys} keys, some on only "
        f"{figures['smallest_msu']}; a match on a record that is alone is right with a chance of "
        f"{percent(figures['dis_file'])} on average, and of up to {percent(figures['max_dis'])} for the record that "
        f"stands out most (score {shown(figures['max_suda'])})."
    )


def _size_caveat(max_size: int, keys: int, figures: dict[str, Any], *, asked: bool) -> list[str]:
    if max_size == keys:
        return []
    rest = figures["unique_records"] - figures["scored_records"]
    reason = "" if asked else " (chosen to keep the search short; name max_size for more)"
    return [
        f"Only sets of up to {max_size} of the {keys} keys were searched{reason}; {rest:,} records are alone on more "
        "keys than that and have a score of 0."
    ]


def _dis_caveats(figures: dict[str, Any], paired: int, *, from_weights: bool, asked: bool) -> list[str]:
    caveats = []
    if not (asked or from_weights):
        caveats.append(
            f"The sampling fraction is not known and was taken as {_FRACTION_UNLESS_TOLD:g}; DIS rests on it. Name "
            "sampling_fraction, or a weight."
        )
    if figures["unique_records"] and not paired:
        caveats.append("No two records form a pair on all keys, so DIS has nothing to compare with and is 1.")
    if figures["dis_capped_records"]:
        caveats.append(
            f"For {figures['dis_capped_records']:,} records the share of DIS by score came out above 1 and was cut off "
            "there; read such scores as an order, not as probabilities."
        )
    caveats.append(
        "DIS assumes a simple random sample; the scores rank records within one file and set of keys and do not "
        "compare between files with different keys."
    )
    return caveats
