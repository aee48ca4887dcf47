"""Who is alone on the keys, in the file and beyond, and which keys make people stand out?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.cards import Figure, KeyNumber, KeyNumbers, OfFile, measure
from discreet.core.citations import SKINNER_ELLIOT_2002
from discreet.core.constraints import AtLeast, ColumnNames, HoldsValues
from discreet.core.errors import ParameterError
from discreet.core.findings import Beside, OfAdvice
from discreet.core.results import Measure
from discreet.core.wording import percent, shown
from discreet.engine.classes import Recoding
from discreet.microdata import Microdata
from discreet.risk.equivalence_classes import EquivalenceClasses, Partition
from discreet.risk.k_anonymity import key_caveats, records_almost_alone, records_below

Method = Literal["bayes", "thesis"]


def _to_remember(found: Measure) -> Iterator[KeyNumber]:
    share, count = found.figures.get("unique_share"), found.figures.get("unique_records")
    if not isinstance(share, float | int):
        return
    whose = "These records are each" if count is None else f"{shown(count)} records are each"
    whose = "One record is" if count == 1 else whose
    sentence = (
        "No record is alone with its combination of keys."
        if share == 0
        else f"{whose} the only one with that combination of keys."
    )
    yield KeyNumber(percent(float(share)), "of the records are alone", sentence)


@measure(
    room="risk",
    work="class-wise",
    question="How many people are alone with their combination of keys?",
    headline="of the records are alone",
    chapter="found",
    place=2,
    references=(
        "Bethlehem, J. G., Keller, W. J. and Pannekoek, J. (1990). Disclosure control of microdata. "
        "Journal of the American Statistical Association 85(409), 38–45. "
        "doi:10.1080/01621459.1990.10475304",
        SKINNER_ELLIOT_2002,
    ),
    figures={
        "value": Figure(unit="share", better="lower"),
        "pue": Figure("Share of groups with one record (PUE)", unit="share"),
        "unique_share": Figure(
            unit="share",
            better="lower",
            words={"scenarios": "Records alone", "change": "Share of records alone"},
        ),
        "unique_records": Figure(better="lower", words={"change": "Records alone with their keys"}),
        "rfue": Figure("Unique records that are unique in the population too (RFUE)", unit="share"),
    },
    assess=OfFile(2),
    key_numbers=KeyNumbers(1, _to_remember),
    tells=("counted_in",),
)
def uniqueness(
    data: Microdata,
    *,
    keys: ColumnNames | None = None,
    population: Microdata | None = None,
    recoding: Annotated[Recoding, HoldsValues(by_column=True)] | None = None,
    population_size: Annotated[int, AtLeast(1)] | None = None,
    method: Method = "bayes",
    missing: Partition = "category",
) -> Measure:
    """How many records are the only one with their combination of key values?

    Two shares are often mixed up: ``pue``, the share of *classes* with one record, and ``unique_share``, the
    share of *records* that are alone. ``rfue`` is the share of the file's uniques that are unique in the
    population too. With a population file it is counted. With only the population's size it is estimated from
    the class sizes of the file: by the hypergeometric chance that exactly one of i people was drawn
    (``bayes``), or that all of them were (``thesis``, the formula of the literature, which is not the
    probability it is meant to be).

    Also known as: PUE; RFUE; sample uniques; population uniques; uniqueness.

    Parameters
    ----------
    data
        The file.
    keys
        Key columns; those of the data unless named.
    population
        A population file that contains the people of this file.
    recoding
        ``{key: {population value: file value}}`` where the two are coded differently.
    population_size
        Number of people in the population, where there is no population file.
    method
        ``bayes`` or ``thesis``, for the estimate without a population file.
    missing
        ``category`` or ``drop``; a wildcard has no classes to be unique in (see `k_anonymity` for that).

    Returns
    -------
    Measure
        ``value`` is ``unique_share``. ``figures``: ``pue``, ``unique_share``, ``unique_records``, ``classes``,
        ``records``, ``rfue`` (None when it is undefined), ``records_left_out``, ``all_suppressed`` (records of
        which no key is known). Where a role names persons, people are counted. ``detail``: ``sizes``, ``classes``,
        ``records``.

    How to read it
    --------------
    ``unique_share`` is the share of people who are alone with their key values. Near 0 is what you want;
    above a few percent, coarsen the keys. ``pue`` is the share of *combinations* that occur once: it is
    higher, because rare combinations are many, and it is the one that older literature quotes. ``rfue`` says
    how many of the records that are alone are alone in the population as well, where a population file or
    size was given.

    When not to trust it
    --------------------
    Uniqueness in a sample overstates the risk, and in a file that covers everyone it does not: know which one
    you have. An estimated ``rfue`` rests on the number of singles and pairs in the file and is rough for
    small files or uneven sampling. More keys always make more uniques, so figures compare only between files
    with the same keys. It looks only at singles: groups of two or three people can be nearly as easy to tell
    apart.

    Examples
    --------
    >>> people = pl.DataFrame({"sex": ["f", "f", "m"]})
    >>> found = uniqueness(Microdata(people, keys=["sex"]))
    >>> found.figures["pue"], round(found.figures["unique_share"], 4)
    (0.5, 0.3333)
    """
    groups = EquivalenceClasses.of(data, keys, missing)
    keys, spectrum, records = groups.keys, groups.spectrum, groups.records
    classes = int(spectrum["classes"].sum())
    caveats = key_caveats(data, keys)
    unique = records_below(spectrum, 2)
    rfue: float | None = None
    if population is not None:
        rfue = _counted_rfue(groups, population, recoding)
    elif population_size is not None:
        rfue = _estimated_rfue(spectrum, population_size, method)
        caveats.append(
            "The share of population uniques is estimated from the class sizes of the file alone, which a sample "
            "shows too small; it tends to be too high."
        )
    if unique == 0 and (population is not None or population_size is not None):
        caveats.append("No record is unique in the file, so the share of population uniques is undefined.")
    known = "are" if population is not None else "are thought to be"
    beyond = f", of which {percent(rfue)} {known} unique in the population" if rfue is not None else ""
    return Measure(
        name="uniqueness",
        value=unique / records,
        figures={
            "pue": unique / classes,
            "unique_share": unique / records,
            "unique_records": unique,
            "classes": classes,
            "records": records,
            "rfue": rfue,
            **groups.figures,
        },
        meaning=(
            f"{unique:,} of {records:,} {groups.heads.many} ({percent(unique / records)}) are the only one with "
            f"their combination of key values{beyond}.{groups.not_counted}"
        ),
        caveats=caveats,
        parameters={
            "keys": list(keys),
            "missing": missing,
            "population_file": population is not None,
            "population_size": population_size,
            "method": method if population_size is not None and population is None else None,
            **groups.parameters,
        },
        detail=groups.detail(),
    )


def _counted_rfue(
    classes: EquivalenceClasses, population: Microdata, recoding: engine.Recoding | None
) -> float | None:
    matched = engine.matched_classes(
        classes.data, population, classes.keys, classes.missing, recoding=recoding
    )
    alone = matched.filter(pl.col("records") == 1)
    return int((alone["population"] == 1).sum()) / alone.height if alone.height else None


def _estimated_rfue(spectrum: pl.DataFrame, population_size: int, method: Method) -> float | None:
    """Estimate RFUE with weights of each class size i: the chance that one (bayes) or all (thesis) were drawn."""
    from scipy.special import gammaln

    sample = int(spectrum["records"].sum())
    if population_size < sample:
        raise ParameterError(
            f"population_size ({population_size:,}) is smaller than the file ({sample:,} records). "
            "Give the size of the population the file was drawn from."
        )
    size = spectrum["class_size"].to_numpy().astype(float)
    shares = spectrum["classes"].to_numpy() / spectrum["classes"].sum()
    if size[0] != 1:
        return None

    def log_choose(total: np.ndarray, chosen: np.ndarray | float) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            value = gammaln(total + 1) - gammaln(np.asarray(chosen) + 1) - gammaln(total - chosen + 1)
        return np.where((total >= chosen) & (np.asarray(chosen) >= 0), value, -np.inf)

    everyone = log_choose(np.asarray(float(population_size)), float(sample))
    if method == "bayes":
        logs = np.log(size) + log_choose(population_size - size, sample - 1.0) - everyone
    else:
        logs = log_choose(population_size - size, sample - size) - everyone
    weighted = shares * np.exp(logs)
    return float(weighted[0] / weighted.sum())


# Which keys make people stand out, and what would dropping one change?


def _coarsen_first(found: Measure, beside: Beside) -> Iterator[str]:
    smallest, uniques = beside.measures.get("k_anonymity"), beside.measures.get("uniqueness")
    if smallest is None or not records_almost_alone(smallest) or len(beside.keys) < 2:
        return
    best = found.detail["variables"]
    key = best["key"][0] if hasattr(best, "columns") else "the strongest key"
    before = uniques.figures["unique_share"] if uniques else None
    after = found.figures["best_unique_share_without"]
    if isinstance(before, float) and isinstance(after, float) and before > after:
        yield (
            f"Coarsen or drop '{key}' first: without it {percent(after)} of the records would be unique instead of "
            f"{percent(before)}."
        )


@measure(
    room="risk",
    work="class-wise",
    question="Which keys make people stand out?",
    headline="of the records no longer alone without one key",
    chapter="keys",
    place=1,
    leading=True,
    references=(
        "Motwani, R. and Xu, Y. (2007). Efficient algorithms for masking and finding quasi-identifiers. "
        "Conference on Very Large Data Bases (VLDB).",
    ),
    figures={
        "value": Figure(unit="share"),
        "best_unique_share_without": Figure(
            "Share of records alone without the key that matters most", unit="share"
        ),
        "best_k_without": Figure("Smallest group without the key that matters most"),
        "distinction": Figure("Distinction", unit="share"),
        "separation": Figure("Separation", unit="share"),
    },
    columns={
        "k_without": Figure("Smallest group without this key"),
        "unique_share_drop": Figure("Fewer records alone without this key", unit="share"),
        "unique_share_without": Figure("Share of records alone without this key", unit="share"),
    },
    assess=OfFile(4),
    advice=OfAdvice(1, _coarsen_first),
    tells=("counted_in",),
)
def key_contributions(
    data: Microdata,
    *,
    keys: ColumnNames | None = None,
    max_size: Annotated[int, AtLeast(1)] = 2,
    missing: Partition = "category",
) -> Measure:
    """Which keys drive the risk?

    For each key and each set of keys up to ``max_size``: *distinction*, the number of distinct combinations over
    the number of records, and *separation*, the share of pairs of records told apart (Motwani and Xu 2007). For
    each key also what k and the share of unique records would be without it.

    Parameters
    ----------
    data, keys
        The file and its key columns.
    max_size
        Size up to which sets of keys are looked at; 1 for single keys only.
    missing
        ``category`` or ``drop``, for missing key values.

    Returns
    -------
    Measure
        ``value`` is the largest drop of the share of unique records from leaving out one key. ``figures``:
        ``unique_share``, ``best_unique_share_without``, ``distinction``, ``separation`` (of all keys together),
        ``k``, ``all_suppressed``. ``detail``: ``variables`` (one row a key), ``sets`` (one row a set of keys).

    How to read it
    --------------
    Each key is taken away in turn: a large drop in ``unique_share`` means that this key makes people stand
    out, and it is the one to coarsen first. ``distinction`` says how close a key (or a set of keys) comes to
    naming everyone by itself, ``separation`` how many pairs of people it tells apart. Sets of two often
    explain more than single keys: look at ``detail["sets"]`` for a pair such as age and country.

    When not to trust it
    --------------------
    Keys work together, so that the key that helps most today may not be the one that helps most once another
    has been coarsened: ask again after each step. Where everybody stays alone whichever key is dropped, the
    drop is zero for all keys although all of them matter. Dropping a key is the crudest treatment; a coarser
    coding can bring most of the gain and keep most of the information. The figures say nothing about which
    keys an intruder is likely to know.

    Examples
    --------
    >>> people = pl.DataFrame({"sex": ["f", "f", "m", "m"], "age": [20, 30, 40, 50]})
    >>> drivers = key_contributions(Microdata(people, keys=["sex", "age"]))
    >>> drivers.detail["variables"]["key"].to_list(), drivers.value
    (['age', 'sex'], 1.0)
    """
    classes = EquivalenceClasses.of(data, keys, missing)
    keys = classes.keys
    max_size = min(max_size, len(keys))
    caveats = key_caveats(data, keys)
    if missing == "category" and engine.packed_table(data, keys, missing) is None:
        engine.class_table(data, keys, missing)  # every smaller set is then counted from its rows
    whole, heads = _facts(data, keys, missing), classes.heads
    rows = []
    for key in keys:
        rest = tuple(other for other in keys if other != key)
        without = _facts(data, rest, missing) if rest else None
        alone = _facts(data, (key,), missing)
        rows.append(
            {
                "key": key,
                "distinct": alone["classes"],
                "distinction": alone["distinction"],
                "separation": alone["separation"],
                "k_without": without["k"] if without else whole["records"],
                "unique_share_without": without["unique_share"] if without else 0.0,
                "unique_share_drop": whole["unique_share"] - (without["unique_share"] if without else 0.0),
            }
        )
    variables = pl.DataFrame(rows).sort(["unique_share_drop", "distinction"], descending=True)
    best = variables.row(0, named=True)
    if len(keys) == 1:
        caveats.append("There is only one key; without it nothing tells the records apart.")
    return Measure(
        name="key_contributions",
        value=best["unique_share_drop"],
        figures={
            "unique_share": whole["unique_share"],
            "best_unique_share_without": best["unique_share_without"],
            "k": whole["k"],
            "best_k_without": int(variables["k_without"].max()),  # type: ignore[arg-type]
            "distinction": whole["distinction"],
            "separation": whole["separation"],
            "all_suppressed": engine.all_suppressed(data, keys),
        },
        meaning=(
            f"'{best['key']}' contributes most: without it {percent(best['unique_share_without'])} of the "
            f"{heads.many} would be unique instead of {percent(whole['unique_share'])}."
            if best["unique_share_drop"] > 0
            else f"Leaving out one key would not change how many {heads.many} are unique "
            f"({percent(whole['unique_share'])})."
        ),
        caveats=caveats,
        parameters={"keys": list(keys), "max_size": max_size, "missing": missing, **classes.parameters},
        detail=engine.tables_like(
            data, variables=variables, sets=lambda: _sets(data, keys, max_size, missing)
        ),
    )


def _sets(data: Microdata, keys: Sequence[str], max_size: int, missing: engine.Missing) -> pl.DataFrame:
    sizes = sorted({*range(1, max_size + 1), len(keys)})
    rows = [
        {"keys": ", ".join(chosen), "size": size, **_facts(data, chosen, missing)}
        for size in sizes
        for chosen in combinations(keys, size)
    ]
    return pl.DataFrame(rows).sort(["size", "distinction"], descending=[False, True])


def _facts(data: Microdata, keys: Sequence[str], missing: engine.Missing) -> dict[str, Any]:
    """Describe one set of keys by its class sizes."""
    spectrum = engine.size_spectrum(data, keys, missing)
    records, classes = int(spectrum["records"].sum()), int(spectrum["classes"].sum())
    size = pl.col("class_size").cast(pl.Float64)
    together = float(spectrum.select((pl.col("classes") * size * (size - 1)).sum()).item())
    return {
        "records": records,
        "classes": classes,
        "k": int(spectrum["class_size"][0]),
        "unique_share": records_below(spectrum, 2) / records,
        "distinction": classes / records,
        "separation": 1 - together / (records * (records - 1)) if records > 1 else 1.0,
    }
