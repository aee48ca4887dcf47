"""Settled parameters of a synthesis from aggregates, and the records drawn from them, brought to published totals."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats, Integers
from discreet.core.errors import DiscreetWarning, ParameterError
from discreet.core.results import Measure
from discreet.dp.entropy import Stream
from discreet.microdata import Microdata
from discreet.numerics.correlation import root_of
from discreet.synth import record_rules
from discreet.synth.from_aggregates.latent_correlation import (
    NATURES,
    Dependence,
    Nature,
    UnitMargin,
    described,
)
from discreet.synth.from_aggregates.published_aggregates import Aggregates, Knowledge
from discreet.synth.saved_models import stored
from discreet.synth.synthesizer import Fitted

if TYPE_CHECKING:
    from discreet.synth.from_aggregates.macro_to_micro import MacroToMicro


_ROUNDS = 50


@dataclass(frozen=True, eq=False)
class _Draft:
    """Records as they were drawn, unit after unit, and the totals they are to be brought to."""

    latent: Floats
    values: Floats
    counts: Integers
    totals: Floats
    of_unit: Integers


@stored("fitted-macro-to-micro")
@dataclass(eq=False, repr=False, kw_only=True)
class FittedMacroToMicro(Fitted):
    """A synthesis from aggregates with all its parameters.

    Attributes
    ----------
    parameters
        A table of every number that is used: unit, variable, family, parameter, value and provenance.
    latent
        The correlation matrix of the latent normal variables, for each unit.
    notes
        What was assumed, clipped or mended.
    """

    units: pl.DataFrame
    variables: Sequence[str]
    columns: Sequence[str]
    margins: Sequence[Sequence[UnitMargin]]
    records: Integers
    totals: Floats
    latent: Floats
    whole: Sequence[str]
    match_totals: bool
    rules: tuple[str, ...]
    repair: Literal["projection", "reject"] | None
    notes: tuple[str, ...]
    parameters: pl.DataFrame

    @classmethod
    def made(
        cls,
        file: Microdata,
        read: Aggregates,
        known: Knowledge,
        dependence: Dependence,
        *,
        columns: Sequence[str],
        rules: Sequence[str],
        options: MacroToMicro,
    ) -> Self:
        """Put the parts of a fit together."""
        schema = {"unit": pl.String, "variable": pl.String, "family": pl.String, "parameter": pl.String}
        parameters = pl.DataFrame(
            [*known.rows(read), *described(dependence, read.variables)],
            schema={**schema, "value": pl.Float64, "provenance": pl.String},
        )
        whole = [
            name
            for d, name in enumerate(read.variables)
            if name in options.whole or NATURES[known.families[d]] in ("count", "flag")
        ]
        empty = pl.DataFrame(
            schema={
                **read.units.schema,
                **{name: pl.Int64 if name in whole else pl.Float64 for name in columns},
            }
        )
        like = Microdata(engine.in_kind(file, empty), strata=read.units.columns)
        return cls(
            like,
            int(known.records.sum()),
            units=read.units,
            variables=read.variables,
            columns=columns,
            margins=known.margins,
            records=known.records,
            totals=known.totals.values,
            latent=dependence.latent,
            whole=whole,
            match_totals=options.match_totals,
            rules=tuple(rules),
            repair=options.repair,
            notes=(*known.notes, *dependence.notes),
            parameters=parameters,
        )

    def draw(self, n: int, stream: Stream) -> pl.DataFrame:
        """Draw ``n`` records; other numbers than the published one keep the means instead of the totals."""
        counts = self.records
        if n != self.rows:
            counts = largest_remainder(self.records.astype(np.float64) * (n / self.rows), n)
        draft = _Draft(
            latent=np.empty((n, len(self.variables))),
            values=np.empty((n, len(self.variables))),
            counts=counts,
            totals=self.totals * (counts / self.records)[:, None],
            of_unit=np.repeat(np.arange(len(counts)), counts),
        )
        rng = stream("records")
        self._draw_into(draft, np.arange(n), rng)
        frame = self._finished(draft)
        rules = self._rules(frame)
        if not rules:
            return frame
        frame = record_rules.recomputed(frame, rules)
        return frame if self.repair is None else self._mended(frame, draft, rules, rng)

    def check(self, data: Microdata, *, original: Microdata | None = None) -> Measure:
        """Report how many records of a file break the rules, beside the real file's own where it is given."""
        if not self.rules:
            raise ParameterError("There are no rules to check. Name some with rules=[…].")
        return record_rules.check_rules(data, self.rules, original=original)

    def _draw_into(self, draft: _Draft, rows: Integers, rng: np.random.Generator) -> None:
        """Draw some of the records anew, unit by unit."""
        from scipy.special import ndtr

        fresh = rng.standard_normal((len(rows), len(self.variables)))
        # Records stand unit after unit, so those of a unit are a slice.
        present, starts = np.unique(draft.of_unit[rows], return_index=True)
        for u, start, stop in zip(present, starts, [*starts[1:], len(rows)], strict=True):
            z = fresh[start:stop] @ root_of(self.latent[u]).T
            draft.latent[rows[start:stop]] = z
            for d, margin in enumerate(self.margins[u]):
                draft.values[rows[start:stop], d] = margin.quantile(ndtr(z[:, d]))

    def _finished(self, draft: _Draft) -> pl.DataFrame:
        """Bring the units to their totals and label the records."""
        made = draft.values.copy()
        whole = [name in self.whole for name in self.variables]
        stops = np.cumsum(draft.counts)
        for u, (stop, count) in enumerate(zip(stops, draft.counts, strict=True)):
            mine = slice(stop - count, stop)
            if not self.match_totals:
                break
            for d, margin in enumerate(self.margins[u]):
                made[mine, d] = brought_to_total(
                    made[mine, d],
                    float(draft.totals[u, d]),
                    margin.nature,
                    draft.latent[mine, d],
                    whole=whole[d],
                )
        columns = {
            name: np.round(made[:, d]).astype(np.int64) if whole[d] else made[:, d]
            for d, name in enumerate(self.variables)
        }
        frame = pl.DataFrame(columns)
        return pl.concat([self.units[draft.of_unit], frame], how="horizontal") if self.units.width else frame

    def _rules(self, frame: pl.DataFrame) -> tuple[record_rules.RecordRule, ...]:
        schema = {
            **frame.schema,
            **{name: pl.Float64() for name in self.columns if name not in frame.schema},
        }
        return record_rules.read_rules(list(self.rules), schema)

    def _mended(
        self,
        frame: pl.DataFrame,
        draft: _Draft,
        rules: Sequence[record_rules.RecordRule],
        rng: np.random.Generator,
    ) -> pl.DataFrame:
        """Move or redraw the records that break a rule, bring all to their totals again, and so on."""
        for _ in range(_ROUNDS):
            broken = np.flatnonzero(record_rules.broken_records(frame, rules).to_numpy())
            if not len(broken):
                return frame
            if self.repair == "projection":
                moved = record_rules.repaired(frame, rules)
                values = np.column_stack([moved[name].cast(pl.Float64).to_numpy() for name in self.variables])
                draft = replace(draft, values=values)
            else:
                self._draw_into(draft, broken, rng)
            frame = record_rules.recomputed(self._finished(draft), rules)
        left = int(record_rules.broken_records(frame, rules).sum())
        if left:
            warnings.warn(
                f"{left:,} of {frame.height:,} records still break a rule after {_ROUNDS} rounds; fitted.check(file) "
                "says which.",
                DiscreetWarning,
                stacklevel=3,
            )
        return frame

    @property
    def derived(self) -> tuple[str, ...]:
        """The columns that are computed by rules and not drawn."""
        return tuple(record_rules.derived_columns(self._rules(self._drawn_columns)))

    @property
    def _drawn_columns(self) -> pl.DataFrame:
        """An empty frame of the columns that are drawn."""
        numbers = {name: pl.Int64() if name in self.whole else pl.Float64() for name in self.variables}
        return pl.DataFrame(schema={**self.units.schema, **numbers})


# Bring drawn values to a published total: amounts scaled, signed ones shifted, whole numbers by largest remainder.


def brought_to_total(
    values: Floats, total: float, nature: Nature, ranks: Floats, *, whole: bool = False
) -> Floats:
    """Return the values changed as little as their nature allows so that they sum to the total.

    Parameters
    ----------
    values
        Drawn values of one variable in one unit.
    total
        What they are to sum to.
    nature
        ``amount``: multiplied. ``signed``: shifted, zeros left alone. ``share``: shifted on the logit scale. ``flag``:
        as many ones as the total says, for those with the largest latent value. ``count``: multiplied and rounded by
        largest remainder.
    ranks
        Latent values, for who gets a one, or the amount where all drawn are zero.
    whole
        Round amounts to whole numbers, by largest remainder.

    Examples
    --------
    >>> brought_to_total(np.array([1.0, 3.0]), 12.0, "amount", np.zeros(2)).tolist()
    [3.0, 9.0]
    >>> brought_to_total(np.array([1.0, 1.0, 1.0]), 10.0, "count", np.zeros(3)).tolist()
    [4.0, 3.0, 3.0]
    """
    if not len(values):
        return values
    if nature == "flag":
        return _largest(ranks, round(total))
    if nature == "share":
        return _on_logit_scale(values, total / len(values))
    if nature == "signed":
        movable = values != 0 if (values != 0).any() else np.ones(len(values), dtype=bool)
        moved = np.where(movable, values + (total - values.sum()) / movable.sum(), values)
        return _rounded(moved, total) if whole else _exact(moved, total)
    scaled = _scaled(values, total, ranks)
    return _rounded(scaled, total) if whole or nature == "count" else _exact(scaled, total)


def largest_remainder(values: Floats, total: int) -> Integers:
    """Round to whole numbers that sum to the total: down, and then up where most was cut off.

    Examples
    --------
    >>> largest_remainder(np.array([1.2, 2.7, 0.1]), 4).tolist()
    [1, 3, 0]
    """
    down = np.floor(values + 1e-9)
    missing = round(float(total - down.sum()))
    whole = down.astype(np.int64)
    if missing > 0:
        order = np.argsort(-(values - down), kind="stable")
        whole += missing // len(values)
        whole[order[: missing % len(values)]] += 1
    return whole


def _scaled(values: Floats, total: float, ranks: Floats) -> Floats:
    held = values.sum()
    # Sums so small that dividing by them overflows are no amounts either.
    if abs(held) > 1e-280:
        return np.asarray(values * (total / held))
    return _largest(ranks, 1) * total


def _exact(values: Floats, total: float) -> Floats:
    """Let the largest value take up what rounding has left."""
    values = values.copy()
    values[np.abs(values).argmax()] += total - values.sum()
    return values


def _rounded(values: Floats, total: float) -> Floats:
    return largest_remainder(values, round(total)).astype(np.float64)


def _largest(ranks: Floats, how_many: int) -> Floats:
    chosen = np.zeros(len(ranks))
    chosen[np.argsort(-ranks, kind="stable")[: max(0, min(how_many, len(ranks)))]] = 1.0
    return chosen


def _on_logit_scale(values: Floats, mean: float) -> Floats:
    from scipy.optimize import brentq
    from scipy.special import expit, logit

    inside = (values > 0) & (values < 1)
    rest = mean * len(values) - values[~inside].sum()
    if not inside.any() or not 0 < rest < inside.sum():
        return values
    at = logit(values[inside])
    shift = brentq(lambda by: float(expit(at + by).sum() - rest), -60.0, 60.0, xtol=1e-13)
    moved = values.copy()
    moved[inside] = expit(at + shift)
    return moved
