"""Who is alone: the share of classes and of records that are unique on the keys, in the file and beyond."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.cards import Figure, KeyNumber, KeyNumbers, OfFile, measure
from discreet.core.citations import SKINNER_ELLIOT_2002
from discreet.core.constraints import ColumnNames, HoldsValues
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.core.results import Measure
from discreet.core.wording import percent, shown
from discreet.engine import Missing
from discreet.engine.classes import Recoding
from discreet.microdata import Microdata
from discreet.risk.equivalence_classes import (
    company_figures,
    company_parameters,
    heads_of,
    identity_detail,
    nobody_knows,
)
from discreet.risk.k_anonymity import key_caveats, records_below

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
@checked
def uniqueness(
    data: Microdata,
    *,
    keys: ColumnNames | None = None,
    population: Microdata | None = None,
    recoding: Annotated[Recoding, HoldsValues(by_column=True)] | None = None,
    population_size: int | None = None,
    method: Method = "bayes",
    missing: Missing = "category",
) -> Measure:
    """How many records are the only one with their combination of key values?

    Two shares are often mixed up: ``pue``, the share of *classes* with one record, and ``unique_share``, the
    share of *records* that are alone. ``rfue`` is the share of the file's uniques that are unique in the
    population too. With a population file it is counted. With only the population's size it is estimated from
    the class sizes of the file: by the hypergeometric chance that exactly one of i people was drawn
    (``bayes``), or that all of them were (``thesis``, the formula of the literature, which is not the
    probability it is meant to be).

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
    if missing == "wildcard":
        raise ParameterError(
            "uniqueness needs classes that do not overlap, and missing='wildcard' has none. Use missing='category' "
            "or 'drop'; k_anonymity(missing='wildcard') counts the records without any match."
        )
    if method not in ("bayes", "thesis"):
        raise ParameterError("method must be 'bayes' or 'thesis'.")
    keys = engine.resolve_keys(data, keys)
    caveats = key_caveats(data, keys)
    spectrum = engine.size_spectrum(data, keys, missing)
    records, classes = int(spectrum["records"].sum()), int(spectrum["classes"].sum())
    unique = records_below(spectrum, 2)
    rfue: float | None = None
    if population is not None:
        rfue = _counted_rfue(data, population, keys, missing, recoding)
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
            **company_figures(data, keys, missing),
        },
        meaning=(
            f"{unique:,} of {records:,} {heads_of(data).many} ({percent(unique / records)}) are the only one with "
            f"their combination of key values{beyond}.{nobody_knows(data, keys)}"
        ),
        caveats=caveats,
        parameters={
            "keys": list(keys),
            "missing": missing,
            "population_file": population is not None,
            "population_size": population_size,
            "method": method if population_size is not None and population is None else None,
            **company_parameters(data),
        },
        detail=identity_detail(data, keys, missing),
    )


def _counted_rfue(
    data: Microdata,
    population: Microdata,
    keys: Sequence[str],
    missing: Missing,
    recoding: Recoding | None,
) -> float | None:
    matched = engine.matched_classes(data, population, keys, missing, recoding=recoding)
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
