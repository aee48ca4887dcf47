"""The detail tables that the measures of this room share: class sizes, classes and records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from discreet import engine
from discreet.core.errors import ParameterError
from discreet.core.results import Detail
from discreet.engine import Missing
from discreet.microdata import Microdata
from discreet.risk.classes.company import company_parameters


def identity_detail(data: Microdata, keys: Sequence[str], missing: Missing) -> Detail:
    """Tables of measures that rest on class sizes: ``sizes``, ``classes`` and ``records`` with the risk 1/size."""

    def classes() -> Any:
        return class_rows(data, keys, _with_risk(engine.class_table(data, keys, missing), missing), by="risk")

    def records() -> Any:
        if missing == "wildcard":
            table = engine.class_table(data, keys, missing).drop("records")
            return engine.carry_back(data, keys, missing, _with_risk(table, missing))
        return engine.carry_back(data, keys, missing, risk=True)

    return Detail(
        sizes=lambda: engine.like(data, engine.size_spectrum(data, keys, missing)),
        classes=classes,
        records=records,
    )


def _with_risk(table: pl.DataFrame, missing: Missing) -> pl.DataFrame:
    """Give each class the chance to be picked out; under ``wildcard`` its company need not be its size."""
    return table.with_columns(risk=1 / pl.col("company" if missing == "wildcard" else "class_size"))


def attribute_detail(
    data: Microdata,
    keys: Sequence[str],
    variables: pl.DataFrame,
    by_class: Callable[[str], pl.DataFrame],
    *figures: str,
    descending: bool = True,
) -> Detail:
    """Tables of measures on sensitive columns: ``variables``, ``classes`` and ``records`` of the worst column.

    ``by_class`` gives, for a sensitive column, the class table with ``k0``…, sizes and the figures of the measure;
    ``variables`` has the worst column first.
    """
    worst, by = variables["sensitive"][0], variables.columns[1]

    def told() -> pl.DataFrame:
        return by_class(worst).select(pl.col(r"^k\d+$"), "class_size", *figures)

    return Detail(
        variables=lambda: engine.like(data, variables),
        classes=lambda: class_rows(data, keys, told(), by=by, descending=descending),
        records=lambda: engine.carry_back(data, keys, "category", told()),
    )


def attribute_parameters(
    data: Microdata, keys: Sequence[str], columns: Sequence[str], missing: Missing, **own: Any
) -> dict[str, Any]:
    """Name the parameters of a measure on sensitive columns: those that all have, around its own."""
    return {
        "keys": list(keys),
        "sensitive": list(columns),
        **own,
        "missing": missing,
        **company_parameters(data),
    }


def worst_column(
    data: Microdata,
    keys: Sequence[str],
    columns: Sequence[str],
    missing: Missing,
    by_class: Callable[..., pl.DataFrame],
    *,
    figure: str,
    threshold: float,
) -> tuple[pl.DataFrame, dict[str, Any], int]:
    """Summarize a per-class figure for each sensitive column, the worst first."""
    if threshold < 0:
        raise ParameterError("threshold must not be negative.")
    rows = []
    for column in columns:
        table = by_class(column, named=False)
        above = table.filter(pl.col(figure) > threshold)
        rows.append(
            {
                "sensitive": column,
                figure: table[figure].max(),
                "classes_above": above.height,
                "records_above": int(above["class_size"].sum()),
            }
        )
    variables = pl.DataFrame(rows).sort(figure, "sensitive", descending=[True, False])
    records = int(engine.size_spectrum(data, keys, missing)["records"].sum())
    return variables, variables.row(0, named=True), records


def class_rows(
    data: Microdata, keys: Sequence[str], table: pl.DataFrame, *, by: str, descending: bool = True
) -> Any:
    """Name the keys of a class table, put the riskiest first and hand it over in the user's kind of frame."""
    names = [name for name in table.columns if name.startswith("k") and name[1:].isdigit()]
    order = table.sort([by, *names], descending=[descending] + [False] * len(names), nulls_last=True)
    return engine.like(data, engine.named_classes(keys, order))
