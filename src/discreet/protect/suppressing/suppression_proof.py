"""What has local suppression reached? Counted again on the treated columns, and put into words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from discreet.core.arrays import Codes, Flags
from discreet.core.errors import DiscreetError
from discreet.core.wording import percent
from discreet.protect.suppressing.agreement import CountedRows, Demand
from discreet.protect.suppressing.demands_met import Problem


@dataclass(frozen=True)
class Proof:
    """What was counted on a treated file of which every demand holds.

    Attributes
    ----------
    records, cells, touched
        The records of the file, the key cells that are gone, and the records they are gone from.
    key_cells
        All key cells of the file.
    silent
        Records that show no key value; they need no company.
    wildcard, k
        Whether gaps match anything, and the company asked for on all keys.
    leaning
        Records with gaps that have their company only because the others do not show where they differ.
    findable
        Records that lost cells and whose values, as they were, fit fewer than k treated records.
    emptied
        Keys of which no value is left.
    """

    records: int
    cells: int
    touched: int
    key_cells: int
    silent: int
    wildcard: bool
    k: int | None = None
    leaning: int = 0
    findable: int = 0
    emptied: tuple[str, ...] = ()

    @property
    def notes(self) -> list[str]:
        """Say what was done, and what the promise leaves open."""
        said = [
            f"{self.cells:,} key cells ({percent(self.cells / max(self.key_cells, 1))}) were suppressed, in "
            f"{self.touched:,} of {self.records:,} records."
        ]
        if self.emptied:
            said.append(
                f"Suppressed in every record, and no key any more: {', '.join(map(repr, self.emptied))}. Coarser keys "
                "would keep more."
            )
        if self.silent:
            said.append(
                f"{self.silent:,} records show no key value at all; they tell nothing and were not asked for company."
            )
        if self.wildcard and self.leaning:
            said.append(
                f"{self.leaning:,} records with gaps agree with enough records only because these have gaps as well; "
                "missing='category' does not count on that."
            )
        if self.wildcard and self.k is not None and self.touched:
            said.append(
                f"For {self.findable:,} of the {self.touched:,} records with suppressed cells fewer than {self.k} "
                "records fit the values they had: whoever knows those can still single them out. "
                "missing='category' rules that out."
            )
        return said

    def guarantee(self, aims: Sequence[str], *, within: bool) -> str:
        """Say what holds for every record; ``aims`` are the numbers of records asked for, and on what."""
        where = " within its stratum" if within else ""
        silent = " that shows a key value" if self.silent else ""
        if not self.wildcard:
            return (
                f"k-anonymity, counted on the treated file: every record{silent} has the same key values as "
                f"{' and '.join(aims)}{where}, itself counted, a gap being a value."
            )
        return (
            "k-anonymity of complete records, counted on the treated file: every record has company of "
            f"{' and '.join(aims)}{where}, itself counted. Company of a complete record are its complete equals; of a "
            "record with gaps, the records that agree with it wherever both show a value and that show no fewer "
            "values. No k is promised against somebody who knows a suppressed value."
        )


def prove(treated: Problem, keys: Sequence[str], gone: Flags, original: Codes) -> Proof:
    """Count everything again on the treated columns; refuse to go on where a record lacks what was asked for."""
    failing = sum(_failing(treated, demand) for demand in treated.demands)
    if failing:
        raise DiscreetError(
            f"Internal error in LocalSuppression: {failing} records would be released without the company that was "
            "asked for, so nothing was released. Please report this with the parameters that were used."
        )
    touched, shown = gone.any(axis=1), treated.codes[:, : len(keys)] > 0
    many = np.ones(len(gone), dtype=np.int64) if treated.many is None else treated.many
    proof = Proof(
        records=int(many.sum()),
        cells=int((many @ gone).sum()),
        touched=int(many[touched].sum()),
        key_cells=int(many.sum()) * len(keys),
        silent=int(many[(~shown).all(axis=1)].sum()),
        wildcard=treated.wildcard,
        emptied=tuple(key for i, key in enumerate(keys) if gone[:, i].any() and not shown[:, i].any()),
    )
    whole = [demand for demand in treated.demands if len(demand.columns) == len(keys) + 1 and demand.k > 1]
    if not treated.wildcard or not whole:
        return proof
    rows = CountedRows(treated.codes, treated.weights, wildcard=True)
    k = max(demand.k for demand in whole)
    gaps = (rows.codes == 0).any(axis=1)
    leaning = gaps & (rows.company(among="showing all of it")[0] < k)
    # The treated columns are numbered anew: a value that is gone everywhere has no number there.
    left = CountedRows(np.where(gone, 0, original).astype(np.int32), treated.weights, wildcard=True)
    fitting, _ = left.company(original[touched], among="all")
    return replace(proof, k=k, leaning=int(rows.records[leaning].sum()), findable=int((fitting < k).sum()))


def _failing(treated: Problem, demand: Demand) -> int:
    columns = np.ascontiguousarray(treated.codes[:, demand.columns])
    rows = CountedRows(
        columns, treated.weights, wildcard=treated.wildcard, units=treated.units, many=treated.many
    )
    size, weight = rows.company()
    short = size < demand.k
    if len(demand.least) and treated.risk_threshold is not None:
        from discreet.risk.negative_binomial_risk import mean_reciprocal

        short |= mean_reciprocal(size, weight) > treated.risk_threshold
    telling = (rows.codes[:, :-1] > 0).any(axis=1)
    return int(rows.records[short & telling].sum())
