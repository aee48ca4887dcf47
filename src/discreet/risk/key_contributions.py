"""Which keys make people stand out, and what would dropping one change?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import polars as pl

from discreet import engine
from discreet.core.cards import Figure, OfFile, measure
from discreet.core.constraints import ColumnNames
from discreet.core.errors import ParameterError
from discreet.core.findings import Beside, OfAdvice
from discreet.core.parameters import checked
from discreet.core.results import Detail, Measure
from discreet.core.wording import percent
from discreet.engine import Missing
from discreet.microdata import Microdata
from discreet.risk.equivalence_classes import company_parameters, heads_of
from discreet.risk.k_anonymity import key_caveats, records_almost_alone, records_below


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
@checked
def key_contributions(
    data: Microdata,
    *,
    keys: ColumnNames | None = None,
    max_size: int = 2,
    missing: Missing = "category",
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
    if missing == "wildcard":
        raise ParameterError("Sets of keys are compared by their classes; use missing='category' or 'drop'.")
    keys = engine.resolve_keys(data, keys)
    if not 1 <= max_size <= len(keys):
        if max_size < 1:
            raise ParameterError("max_size must be 1 or more.")
        max_size = len(keys)
    caveats = key_caveats(data, keys)
    if missing == "category" and engine.packed_table(data, keys, missing) is None:
        engine.class_table(data, keys, missing)  # every smaller set is then counted from its rows
    whole, heads = _facts(data, keys, missing), heads_of(data)
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
        parameters={"keys": list(keys), "max_size": max_size, "missing": missing, **company_parameters(data)},
        detail=Detail(
            variables=lambda: engine.like(data, variables),
            sets=lambda: engine.like(data, _sets(data, keys, max_size, missing)),
        ),
    )


def _sets(data: Microdata, keys: Sequence[str], max_size: int, missing: Missing) -> pl.DataFrame:
    sizes = sorted({*range(1, max_size + 1), len(keys)})
    rows = [
        {"keys": ", ".join(chosen), "size": size, **_facts(data, chosen, missing)}
        for size in sizes
        for chosen in combinations(keys, size)
    ]
    return pl.DataFrame(rows).sort(["size", "distinction"], descending=[False, True])


def _facts(data: Microdata, keys: Sequence[str], missing: Missing) -> dict[str, Any]:
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
