"""How many released records say what cannot be? Rules of the file, each checked in the table of its columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from discreet.core.cards import Figure, measure
from discreet.core.citations import FRANCIS_2024
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.core.results import Measure
from discreet.core.wording import percent
from discreet.microdata import Microdata
from discreet.utility.small_tables.table_codes import Released


@measure(
    title="Inconsistent records",
    question="How many released records say what cannot be?",
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
)
@checked
def inconsistencies(
    original: Microdata, released: Any, *, rules: str | Sequence[str], tolerance: float = 1e-6
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
