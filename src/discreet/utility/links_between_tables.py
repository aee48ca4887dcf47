"""Do released tables still hang together: keys, numbers of children, order and rules?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from discreet.core.arrays import Floats
from discreet.core.cards import Figure, measure
from discreet.core.citations import PATKI_2016
from discreet.core.errors import DiscreetError, ParameterError
from discreet.core.parameters import checked
from discreet.core.ready_studies import OfReleaseStudy
from discreet.core.results import Measure
from discreet.core.wording import percent

if TYPE_CHECKING:
    from discreet.synth.table_schema import LinkedTables

_QUARTILES = (0.25, 0.5, 0.75)


@measure(
    title="Links between tables",
    question="Do the released tables hang together as the real ones do?",
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
@checked
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
