"""What do measures of equivalence classes share? In whom company is counted, who is in no class, and detail tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from discreet import engine
from discreet.core.results import Detail
from discreet.core.wording import percent
from discreet.engine import Missing
from discreet.microdata import Microdata


@dataclass(frozen=True)
class Heads:
    """What a class counts: records, or the people (contributors) whom a role names."""

    one: str = "record"
    many: str = "records"
    whose: str = "its"
    who: str = "that"

    def number(self, count: int) -> str:
        """Word a number of them.

        Examples
        --------
        >>> Heads("person", "people").number(1), Heads().number(1200)
        ('1 person', '1,200 records')
        """
        return f"{count:,} {self.one if count == 1 else self.many}"


Partition = Literal["category", "drop"]
"""What is done with missing keys where classes must not overlap."""

_HEADS = {
    None: Heads(),
    "person": Heads("person", "people", "their", "who"),
    "contributor": Heads("contributor", "contributors", "their", "who"),
}


GAPS_COUNT = (
    "With missing='wildcard' the gaps of others count as company here, as in the literature; a complete record is "
    "hidden by its complete equals only, so that more may stand out than is shown (missing='category' counts them)."
)


def heads_of(data: Microdata) -> Heads:
    """Say what the classes of a file count."""
    return _HEADS[engine.counted_role(data)]


def company_parameters(data: Microdata) -> dict[str, Any]:
    """Name the column in whose values company is counted, where there is one."""
    unit = engine.counted_unit(data)
    return {} if unit is None else {"counted_in": engine.unit_in_words(data)}


def company_figures(data: Microdata, keys: Sequence[str], missing: Missing) -> dict[str, int]:
    """Count who is in no class, and the records behind the people where people are counted."""
    rows = engine.overview(data, keys).rows
    found = {
        "records_left_out": engine.left_out(data, keys, missing),
        "all_suppressed": engine.all_suppressed(data, keys),
    }
    return found if engine.counted_unit(data) is None else found | {"records_in_file": rows}


def nobody_knows(data: Microdata, keys: Sequence[str]) -> str:
    """Say how many records are in no class, to end a sentence with; nothing where there are none."""
    count = engine.all_suppressed(data, keys)
    if not count:
        return ""
    records = "1 record of which no key is" if count == 1 else f"{count:,} records of which no key is"
    return f" Not counted: {records} known."


def company_caveats(data: Microdata, keys: Sequence[str], *, classes: bool = True) -> list[str]:
    """Word what the reader must know about who was counted and who was not.

    Measures that take missing as a value, whatever else is known, have no ``classes`` that leave anybody out.
    """
    rows, caveats = engine.overview(data, keys).rows, []
    silent = engine.all_suppressed(data, keys) if classes else 0
    if silent:
        caveats.append(
            f"{_records(silent)} ({percent(silent / rows)}) without a single known key {_are(silent)} in no class and "
            "left out of all figures. Somebody known to be in the file who fits no class must be among them."
        )
    heads = heads_of(data)
    unnamed = engine.units_without_name(data)
    if unnamed:
        caveats.append(
            f"{_records(unnamed)} do not say whose they are; in each class they count as one {heads.one} together, "
            "the cautious reading."
        )
    alike, members = engine.single_households(data, keys)
    if alike:
        caveats.append(
            f"{alike:,} {'class' if alike == 1 else 'classes'} of several records ({_records(members)}) "
            f"{'consists' if alike == 1 else 'consist'} of one household only: whoever looks for that household "
            "finds it, however many its members are."
        )
    if data.lost_roles and engine.counted_role(data) is None:
        caveats.append(
            f"The column that said whose the records are (role '{data.lost_roles[0]}') is no longer in the file, so "
            "that records were counted. If one person has several, there is less company than it seems."
        )
    return caveats


def records_only(data: Microdata) -> list[str]:
    """Word that a measure looks at records though the file says whose they are; nothing where each has its own."""
    unit, rows = engine.counted_unit(data), engine.overview(data, ()).rows
    people = engine.head_count(data)
    if unit is None or people == rows:
        return []
    return [
        f"Records were compared, not {heads_of(data).many}: there are {people:,} of them in {rows:,} records, and the "
        f"other records of a {heads_of(data).one} count here as somebody else's: they are worse hidden than it seems."
    ]


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count:,} records"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


# Detail tables: class sizes, classes and records.


def identity_detail(data: Microdata, keys: Sequence[str], missing: Missing) -> Detail:
    """Tables of measures that rest on class sizes: ``sizes``, ``classes`` and ``records`` with the risk 1/size."""

    def classes() -> Any:
        return class_rows(data, keys, _with_risk(engine.class_table(data, keys, missing), missing), by="risk")

    def records() -> Any:
        if missing == "wildcard":
            table = engine.class_table(data, keys, missing).drop("records")
            return engine.carry_back(data, keys, missing, _with_risk(table, missing))
        return engine.carry_back(data, keys, missing, risk=True)

    return engine.tables_like(
        data,
        sizes=lambda: engine.size_spectrum(data, keys, missing),
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

    return engine.tables_like(
        data,
        variables=variables,
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
