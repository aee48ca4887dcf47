"""Are the rules of a file, and those between its tables, kept, and were they learned or are they kept by chance?

Compliance is held against what independence would give; records that say what cannot be are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats
from discreet.core.cards import Figure, measure
from discreet.core.citations import FRANCIS_2024, PATKI_2016
from discreet.core.constraints import Between, HoldsValues
from discreet.core.errors import DiscreetError, ParameterError
from discreet.core.findings import OfReleaseStudy, ReleaseFacts
from discreet.core.parameters import checked
from discreet.core.results import Measure
from discreet.core.wording import percent
from discreet.microdata import Microdata
from discreet.utility.table_codes import Released

if TYPE_CHECKING:
    from discreet.synth.record_rules import RecordRule
    from discreet.synth.table_schema import LinkedTables


@checked
def compliance_lift(
    compliance: Annotated[float, Between(0, 100)], baseline: Annotated[float, Between(0, 100)]
) -> float:
    """How much of the way from chance to full compliance was learned?

    Parameters
    ----------
    compliance, baseline
        Percent of records that keep a rule, and percent that would by chance.

    Returns
    -------
    float
        1 where the rule is kept always, 0 where it is kept as often as by chance; not a number where chance keeps it
        always.

    Examples
    --------
    >>> round(compliance_lift(4.0, 4.1), 3), compliance_lift(100.0, 96.1)
    (-0.001, 1.0)
    """
    return (compliance - baseline) / (100 - baseline) if baseline < 100 else float("nan")


def _of_conditions(facts: ReleaseFacts) -> dict[str, Any] | None:
    conditions = [rule for rule in facts.rules if rule.strip().startswith("if ")]
    return {"rules": conditions} if conditions else None


@measure(
    room="utility",
    title="Rules learned",
    headline="of the way from chance to full compliance, worst rule",
    chapter="specific",
    place=43,
    work="whole-file",
    references=(PATKI_2016,),
    figures={
        "value": Figure("Lift of the worst rule: 1 learned, 0 chance", better="higher", summary=True),
        "mean_lift": Figure("Mean lift of the rules", better="higher"),
        "lowest_compliance": Figure("Lowest compliance", unit="percent", better="higher"),
        "rules": Figure("Rules"),
        "empty": Figure("Rules whose condition no released record meets", better="lower"),
    },
    of_release=OfReleaseStudy(11, _of_conditions, ("file", "linked tables")),
)
def rule_compliance(
    original: Microdata,
    released: Microdata,
    *,
    rules: Annotated[str | Sequence[str], HoldsValues(in_expressions=True)],
) -> Measure:
    """Were the rules of the file learned, or are they kept by chance?

    Of a rule *if A then B*, compliance is the percentage of records with A that have B. By chance, if A and B had
    nothing to do with each other, it would be the percentage of all real records that have B: a rule can be kept in 96
    of 100 records without anything having been learned.

    Parameters
    ----------
    original, released
        The file before and after.
    rules
        Texts ``"if … then …"``, e.g. ``"if benefit == 0 then since is missing"``.

    Returns
    -------
    Measure
        ``value`` is the lowest lift. ``figures``: ``mean_lift``, ``lowest_compliance``, ``rules``, ``empty``.
        ``detail``: ``rules``, with the records that meet the condition (``n``), compliance before and after, baseline
        and lift.

    Examples
    --------
    >>> real = Microdata(pl.DataFrame({"flag": [0, 0, 1, 1], "since": [None, None, 5, 7]}))
    >>> made = Microdata(pl.DataFrame({"flag": [0, 0, 1, 1], "since": [None, 3, None, 7]}))
    >>> rule_compliance(real, made, rules="if flag == 0 then since is missing").value
    0.0
    """
    from discreet.synth.record_rules import read_rules  # every generator comes with it

    frames = [engine.collect(original), engine.collect(released)]
    read = read_rules(rules, frames[0].schema)
    there = read_rules(rules, frames[1].schema)
    wrong = [rule for rule in read if rule.given is None or rule.then is None]
    if not read or wrong:
        raise ParameterError(
            "rules must read 'if … then …': compliance is among the records that meet the condition."
        )
    rows = []
    for rule, own in zip(read, there, strict=True):
        baseline = _percent(frames[0], rule)
        _, before = _percent_given(frames[0], rule)
        met, after = _percent_given(frames[1], own)
        lift = compliance_lift(after, baseline) if after is not None else None
        lift = None if lift is None or np.isnan(lift) else lift
        rows.append((rule.text, met, before, after, baseline, lift))
    kinds = {"rule": pl.String, "n": pl.Int64} | dict.fromkeys(
        ("original", "released", "baseline", "lift"), pl.Float64
    )
    table = pl.DataFrame(rows, schema=kinds, orient="row").sort("lift", nulls_last=True)
    lifts, found = (table[name].drop_nulls().to_numpy() for name in ("lift", "released"))
    value = float(lifts.min()) if len(lifts) else None
    return Measure(
        "rule_compliance",
        value,
        {
            "mean_lift": float(lifts.mean()) if len(lifts) else None,
            "lowest_compliance": float(found.min()) if len(found) else None,
            "rules": table.height,
            "empty": table["released"].null_count(),
        },
        f"Of {table.height} rules the worst is {value:.2f} of the way from chance (0) to always kept (1)."
        if value is not None
        else "No rule can be judged: no released record meets a condition, or chance keeps them always.",
        detail={"rules": table},
        parameters={"rules": [rule.text for rule in read]},
    )


def _percent(frame: pl.DataFrame, rule: RecordRule) -> float:
    assert rule.then is not None
    return 100 * float(frame.select(rule.then.fill_null(False).mean()).item() or 0.0)


def _percent_given(frame: pl.DataFrame, rule: RecordRule) -> tuple[int, float | None]:
    """Count the records that meet the condition, and the percentage of them that keep the rule."""
    assert rule.given is not None
    met = frame.filter(rule.given)
    return met.height, _percent(met, rule) if met.height else None


# How many released records say what cannot be? Rules of the file, each checked in the table of its columns.
def _of_all_rules(facts: ReleaseFacts) -> dict[str, Any] | None:
    return {"rules": list(facts.rules)} if facts.rules else None


@measure(
    room="utility",
    title="Inconsistent records",
    headline="records break a rule",
    chapter="joint",
    place=43,
    work="whole-file",
    references=(FRANCIS_2024,),
    figures={
        "value": Figure("Breaches of a rule, all rules together", better="lower", summary=True),
        "share": Figure("Breaches for each record and rule", unit="share", better="lower"),
        "original": Figure("Breaches in the original"),
        "rules": Figure("Rules checked"),
    },
    of_release=OfReleaseStudy(10, _of_all_rules),
)
def inconsistencies(
    original: Microdata,
    released: Any,
    *,
    rules: Annotated[str | Sequence[str], HoldsValues(in_expressions=True)],
    tolerance: float = 1e-6,
) -> Measure:
    """How many released records say what cannot be?

    Parameters
    ----------
    original, released
        The file before and after. In a release of many tables each rule is checked in the table that has just its
        columns.
    rules
        Texts such as ``"if age < 15 then marital == 'never'"`` or ``"pay >= 0"``; see
        `discreet.synth.record_rules.read_rules`.
    tolerance
        Difference of two numbers that still counts as equal.

    Returns
    -------
    Measure
        ``value`` is the number of breaches, over all rules. ``figures``: ``share`` (of all records and rules),
        ``original`` (breaches there), ``rules``. ``detail``: ``rules``.

    Examples
    --------
    >>> real = Microdata(pl.DataFrame({"age": [5, 40], "job": [None, "cook"]}))
    >>> made = Microdata(pl.DataFrame({"age": [5, 40], "job": ["cook", None]}))
    >>> inconsistencies(real, made, rules="if age < 15 then job is missing").value
    1
    """
    from discreet.synth.record_rules import broken_records, read_rules  # every generator comes with it

    files = Released(original, released)
    read = read_rules(rules, files.real.schema, tolerance=tolerance)
    if not read:
        raise ParameterError("Name at least one rule.")
    rows = []
    checked_records = 0
    for rule in read:
        table = files.table(files.named(rule.columns))
        own = read_rules([rule.text], table.schema, tolerance=tolerance)
        found = int(broken_records(table, own).sum())
        checked_records += table.height
        rows.append(
            (rule.text, found, table.height, int(broken_records(files.real, [rule]).sum()), files.real.height)
        )
    schema = ["rule", "broken", "records", "broken_original", "records_original"]
    table = pl.DataFrame(rows, schema=schema, orient="row").sort("broken", descending=True)
    value = int(table["broken"].sum())
    share = value / checked_records if checked_records else 0.0
    return Measure(
        "inconsistencies",
        value,
        {"share": share, "original": int(table["broken_original"].sum()), "rules": len(rows)},
        f"{value:,} breaches of {len(rows)} rules, {percent(share)} of what was checked.",
        detail={"rules": table},
        parameters={"rules": [rule.text for rule in read]},
    )


# Do released tables still hang together: keys, numbers of children, order and rules?


_QUARTILES = (0.25, 0.5, 0.75)


@measure(
    room="utility",
    title="Links between tables",
    headline="largest change of the number of children per parent",
    chapter="joint",
    place=44,
    work="whole-file",
    references=(PATKI_2016,),
    figures={
        "value": Figure(
            "Largest change of the mean number of children", unit="share", better="lower", summary=True
        ),
        "quartiles": Figure(
            "Largest change of a quartile of the number of children", better="lower", summary=True
        ),
        "orphans": Figure("Records whose parent is not there", better="lower", summary=True),
        "double_keys": Figure("Keys that are missing or repeated", better="lower"),
        "rules_broken": Figure("Records that break a rule of the schema", better="lower", summary=True),
        "links": Figure("Links between tables"),
    },
    of_release=OfReleaseStudy(1, shapes=("linked tables",)),
)
def linked_keys(original: LinkedTables, released: LinkedTables) -> Measure:
    """Do the released tables hang together as the real ones do?

    Parameters
    ----------
    original, released
        Tables under one schema.

    Returns
    -------
    Measure
        ``value`` is the largest relative change of the mean number of children per parent, over all links.
        ``figures``: ``quartiles`` (largest change of a quartile of that number, in children), ``orphans``,
        ``double_keys``, ``rules_broken``, ``links``. ``detail``: ``links`` and ``tables``.

    Examples
    --------
    >>> from discreet.synth import LinkedTables, Schema
    >>> links = Schema.from_dict({"tables": {"person": {"key": "id"}, "visit": {"parents": {"who": "person"}}}})
    >>> person, visit = pl.DataFrame({"id": [1, 2]}), pl.DataFrame({"who": [1, 1, 2, 2]})
    >>> real = LinkedTables(links, {"person": person, "visit": visit})
    >>> made = LinkedTables(links, {"person": person, "visit": pl.DataFrame({"who": [1, 1, 7]})})
    >>> found = linked_keys(real, made)
    >>> found.value, found.figures["orphans"]
    (0.5, 1)
    """
    for name, tables_given in (("original", original), ("released", released)):
        if not hasattr(tables_given, "with_parents"):
            raise ParameterError(f"{name} must be LinkedTables: tables together with their schema.")
    schema = original.schema
    lacking = [name for name in schema.tables if name not in released.tables]
    if lacking:
        raise ParameterError(f"The release lacks table '{lacking[0]}'.")
    links, tables = [], []
    for name in original.own:
        table = schema.tables[name]
        made = released.tables[name]
        double = 0
        if table.key is not None and table.key in made.columns:
            double = made.height - made[table.key].drop_nulls().n_unique()
        tables.append((name, original.tables[name].height, made.height, double, _broken(released, name)))
        for column, parent in table.parents.items():
            key = str(schema.tables[parent].key)
            orphans = int((~made[column].drop_nulls().is_in(released.tables[parent][key].implode())).sum())
            before, after = (_children(own, name, column, parent, key) for own in (original, released))
            means = [float(own.mean()) if len(own) else 0.0 for own in (before, after)]
            change = means[1] / means[0] - 1 if means[0] else 0.0
            # A table of parents without a record has children at no quartile.
            cut = [np.quantile(own if len(own) else np.zeros(1), _QUARTILES) for own in (before, after)]
            quartiles, public = float(np.abs(cut[1] - cut[0]).max()), schema.tables[parent].public
            links.append((name, parent, *means, change, quartiles, orphans, public))
    kinds = [
        "table",
        "parent",
        "children_original",
        "children_released",
        "change",
        "quartiles",
        "orphans",
        "public",
    ]
    by_link = pl.DataFrame(links, schema=kinds, orient="row")
    counted = by_link.filter(~pl.col("public"))
    by_table = pl.DataFrame(
        tables,
        schema=["table", "records_original", "records_released", "double_keys", "rules_broken"],
        orient="row",
    )
    value = float(np.abs(counted["change"].to_numpy()).max()) if counted.height else 0.0
    figures: dict[str, Any] = {
        "quartiles": float(counted["quartiles"].max()) if counted.height else 0.0,  # type: ignore[arg-type]
        "orphans": int(by_link["orphans"].sum()),
        "double_keys": int(by_table["double_keys"].sum()),
        "rules_broken": int(by_table["rules_broken"].sum()),
        "links": by_link.height,
    }
    return Measure(
        "linked_keys",
        value,
        figures,
        f"{figures['orphans']:,} records have no parent, {figures['rules_broken']:,} break a rule; numbers of children "
        f"change by at most {percent(value)}.",
        detail={"links": by_link, "tables": by_table},
    )


def _children(tables: LinkedTables, child: str, column: str, parent: str, key: str) -> Floats:
    """Count the children of every parent."""
    often = tables.tables[child].group_by(pl.col(column).alias(key)).len("children")
    found = tables.tables[parent].select(key).join(often, on=key, how="left")["children"].fill_null(0)
    return found.to_numpy().astype(np.float64)


def _broken(tables: LinkedTables, name: str) -> int:
    """Count records that break a rule of the schema, or that stand before an earlier one in time."""
    from discreet.synth.record_rules import broken_records, read_rules  # every generator comes with it

    beside = tables.with_parents(name)
    total = 0
    for rule in tables.schema.tables[name].rules:
        try:
            read = read_rules([rule], beside.schema)
        except DiscreetError:
            # A column that was left out of the release can break no rule.
            continue
        total += int(broken_records(beside, read).sum())
    return total
