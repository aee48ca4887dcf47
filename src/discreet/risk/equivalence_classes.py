"""What do measures of equivalence classes share? In whom company is counted, who is in no class, and detail tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import polars as pl

from discreet import engine
from discreet.core.errors import ParameterError
from discreet.core.results import Detail
from discreet.core.wording import percent
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


@dataclass(frozen=True)
class EquivalenceClasses:
    """The groups of records (or people) that agree on some keys, and what every measure of them reports."""

    data: Microdata
    keys: tuple[str, ...]
    missing: engine.Missing = "category"

    @classmethod
    def of(
        cls, data: Microdata, keys: Sequence[str] | None, missing: engine.Missing = "category"
    ) -> EquivalenceClasses:
        """Take the keys that are named, or those of the file."""
        return cls(data, engine.resolve_keys(data, keys), missing)

    @property
    def heads(self) -> Heads:
        """What the classes count."""
        return heads_of(self.data)

    @property
    def parameters(self) -> dict[str, Any]:
        """The column whose values are counted instead of records, where there is one."""
        return (
            {} if engine.counted_unit(self.data) is None else {"counted_in": engine.unit_in_words(self.data)}
        )

    @cached_property
    def figures(self) -> dict[str, int]:
        """Who is in no class, and the records behind the people where people are counted."""
        rows = engine.overview(self.data, self.keys).rows
        found = {
            "records_left_out": engine.left_out(self.data, self.keys, self.missing),
            "all_suppressed": engine.all_suppressed(self.data, self.keys),
        }
        return found if engine.counted_unit(self.data) is None else found | {"records_in_file": rows}

    @property
    def not_counted(self) -> str:
        """How many records are in no class, to end a sentence with; nothing where there are none."""
        count = engine.all_suppressed(self.data, self.keys)
        return f" Not counted: {_records(count)} of which no key is known." if count else ""

    @property
    def spectrum(self) -> pl.DataFrame:
        """How many classes there are of each size, the smallest first."""
        return engine.size_spectrum(self.data, self.keys, self.missing)

    @property
    def records(self) -> int:
        """How many records (or people) are in a class."""
        return int(self.spectrum["records"].sum())

    @property
    def everybody(self) -> str:
        """Everybody who is in a class, in words."""
        return f"{self.records:,} {self.heads.many}"

    @property
    def smallest(self) -> int:
        """The size of the smallest class."""
        return int(self.spectrum["class_size"][0])

    def rows(self, table: pl.DataFrame, *, by: str, descending: bool = True) -> pl.DataFrame:
        """Name the keys of a class table and put the riskiest first."""
        names = [name for name in table.columns if name.startswith("k") and name[1:].isdigit()]
        order = table.sort([by, *names], descending=[descending] + [False] * len(names), nulls_last=True)
        return engine.named_classes(self.keys, order)

    def detail(self) -> Detail:
        """Tables of measures that rest on class sizes: ``sizes``, ``classes`` and ``records`` with the risk 1/size."""
        wildcard = self.missing == "wildcard"
        # Under a wildcard the company of a class need not be its size.
        risk = 1 / pl.col("company" if wildcard else "class_size")

        def classes() -> pl.DataFrame:
            return engine.class_table(self.data, self.keys, self.missing).with_columns(risk=risk)

        def records() -> Any:
            table = classes().drop("records") if wildcard else None
            return engine.carry_back(self.data, self.keys, self.missing, table, risk=not wildcard)

        return engine.tables_like(
            self.data,
            sizes=self.spectrum,
            classes=lambda: self.rows(classes(), by="risk"),
            records=records,
        )


def company_caveats(data: Microdata, keys: Sequence[str], *, classes: bool = True) -> list[str]:
    """Word what the reader must know about who was counted and who was not.

    Measures that take missing as a value, whatever else is known, have no ``classes`` that leave anybody out.
    """
    rows, caveats = engine.overview(data, keys).rows, []
    silent = engine.all_suppressed(data, keys) if classes else 0
    if silent:
        caveats.append(
            f"{_records(silent)} ({percent(silent / rows)}) without a single known key "
            f"{'is' if silent == 1 else 'are'} in no class and left out of all figures. "
            "Somebody known to be in the file who fits no class must be among them."
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


def refuse_nobody(classes: pl.DataFrame, instead: str) -> None:
    """Refuse a file of which no record is in a class."""
    if classes.is_empty():
        raise ParameterError(
            "No record is left: every one misses some key, and missing='drop' leaves those out. "
            f"{instead}, or drop the key with the most missing values."
        )


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count:,} records"


@dataclass(frozen=True)
class SensitiveColumns:
    """Sensitive columns in equivalence classes: the worst column, its tables, and what all such measures report.

    Attributes
    ----------
    by_class
        Gives, for a column, one row a class with ``class_size`` and the figures of the measure.
    breaks
        The breaks by which the numbers of a column are grouped, where it has any.
    """

    classes: EquivalenceClasses
    columns: tuple[str, ...]
    by_class: Callable[[str], pl.DataFrame]
    breaks: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def above(self, figure: str, threshold: float) -> tuple[pl.DataFrame, dict[str, Any], dict[str, Any]]:
        """Rank the columns by their largest figure: all of them, the worst, and who is in classes above a threshold."""
        rows = []
        for column in self.columns:
            table = self.by_class(column)
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
        worst = variables.row(0, named=True)
        counted = {name: worst[name] for name in ("classes_above", "records_above")}
        return variables, worst, counted | {"share_above": worst["records_above"] / self.classes.records}

    def counts(self, column: str) -> engine.ClassCounts:
        """Count the values of a column in each class."""
        classes = self.classes
        return engine.class_counts(
            classes.data, classes.keys, column, classes.missing, self.breaks.get(column, ())
        )

    def parameters(self, **own: Any) -> dict[str, Any]:
        """Name the parameters that all measures on sensitive columns have, around those of one."""
        return {
            "keys": list(self.classes.keys),
            "sensitive": list(self.columns),
            **own,
            "missing": self.classes.missing,
            **self.classes.parameters,
        }

    def detail(self, variables: pl.DataFrame, *figures: str, descending: bool = True) -> Detail:
        """Tables of the columns, and of the classes and records of the worst, the first of ``variables``."""
        classes, worst = self.classes, variables["sensitive"][0]

        def of_worst() -> pl.DataFrame:
            table = pl.concat([self.counts(worst).classes, self.by_class(worst)], how="horizontal")
            return table.select(pl.col(r"^k\d+$"), "class_size", *figures)

        return engine.tables_like(
            classes.data,
            variables=variables,
            classes=lambda: classes.rows(of_worst(), by=variables.columns[1], descending=descending),
            records=lambda: engine.carry_back(classes.data, classes.keys, "category", of_worst()),
        )

    @property
    def caveats(self) -> list[str]:
        """What the reader must know about who is counted, missing sensitive values and persons with several."""
        classes = self.classes
        caveats = company_caveats(classes.data, classes.keys)
        counted = engine.overview(classes.data, self.columns)
        gaps = [column for column in self.columns if counted.missing[column]]
        if gaps:
            named = ", ".join(f"'{column}'" for column in gaps)
            caveats.append(
                f"{named} has missing values; 'missing' counts as one of the values an intruder may learn."
            )
        if engine.counted_unit(classes.data) is None:
            return caveats
        for column in self.columns:
            if several := self.counts(column).several:
                caveats.append(
                    f"{classes.heads.number(several)} {'has' if several == 1 else 'have'} several values of "
                    f"'{column}' in a class; each counts with the one that most of the class have. What is learned "
                    "about the others comes on top."
                )
        return caveats
