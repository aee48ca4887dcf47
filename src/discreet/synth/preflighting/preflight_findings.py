"""What a look at a file finds, and the file as the detectors see it.

A finding is named, written and read. Detectors see the file in memory, a sample of it, and its columns as numbers and
as codes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Annotated, Any, Literal, TypedDict

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.core.constraints import ColumnName, ColumnNames, FieldsOf, HoldsValues, Public
from discreet.core.errors import ParameterError, unknown_name
from discreet.core.randomness import generator
from discreet.core.value_gate import keep_in_documents
from discreet.core.values import jsonable
from discreet.synth.column_forms import as_numbers, decimals_of, places_among, plain_text

Confidence = Literal["high", "medium", "low"]
CONFIDENCES: tuple[Confidence, ...] = ("high", "medium", "low")

_FIELDS = (
    "name", "kind", "columns", "confidence", "action", "reversible", "accepted", "evidence", "parameters",
)  # fmt: skip
_SHOWN = 4


class Found(TypedDict, total=False):
    """What evidence and parameters of a finding hold, beside single numbers: what is not named here is withheld."""

    codes: Annotated[Sequence[Any], HoldsValues()]
    keys: Annotated[Sequence[Any], HoldsValues()]
    values: Annotated[Sequence[Any], HoldsValues()]
    value: Annotated[Any, HoldsValues()]
    cuts: Annotated[Sequence[Any], HoldsValues()]
    when: Annotated[str, HoldsValues(in_expressions=True)]
    constraint: Annotated[str, HoldsValues(in_expressions=True)]
    code: Annotated[str, Public()]  # counted, or shown because it was asked for
    of: ColumnName
    formula: Annotated[str, Public()]
    expression: Annotated[str, Public()]
    form: Annotated[str, Public()]
    way: Annotated[str, Public()]
    also_told_by: ColumnNames
    counted_by: ColumnNames
    bins: Annotated[Sequence[int], Public()]
    counts: Annotated[Sequence[int], Public()]
    z: Annotated[Sequence[float], Public()]
    exceptions: Annotated[Sequence[int] | int, Public()]


@dataclass(frozen=True)
class Finding:
    """One thing about a file that its synthesis should know.

    Attributes
    ----------
    kind
        What was found: ``coded-missing``, ``look-up``, ``sum``, ``product``, ``outliers``, ``spikes``,
        ``number-as-text``, ``few-values``, ``identifier``, ``constant``, ``all-missing``, ``many-levels``,
        ``date-as-text``, ``near-unique-text``, ``given-value``, ``inequality``, ``household``.
    columns
        The column it speaks of, then those it depends on.
    evidence
        The numbers behind it.
    confidence
        ``high`` is acted on unless you say otherwise; ``medium`` and ``low`` are for you to judge.
    action
        What is proposed, in plain words.
    reversible
        Whether the synthetic file gets it back exactly as the original had it.
    parameters
        What the action needs: codes, an expression, a look-up table.
    accepted
        Your own decision; None leaves it to the confidence.
    name
        How it is called, e.g. ``coded-missing:income``.
    """

    kind: Annotated[str, Public()]
    columns: Annotated[tuple[str, ...], Public()]
    evidence: Annotated[Mapping[str, Any], FieldsOf(Found)]
    confidence: Confidence
    action: Annotated[str, Public()]
    reversible: bool = True
    parameters: Annotated[Mapping[str, Any], FieldsOf(Found)] = field(default_factory=dict)
    accepted: bool | None = None
    name: Annotated[str, Public()] = ""

    @property
    def column(self) -> str:
        """The column it speaks of."""
        return self.columns[0]

    def is_accepted(self, accept: str | Sequence[str]) -> bool:
        """Whether it is acted on: as decided in the finding, by its name, or by its confidence."""
        if self.accepted is not None:
            return self.accepted
        if isinstance(accept, str) and accept in CONFIDENCES:
            return CONFIDENCES.index(self.confidence) <= CONFIDENCES.index(accept)
        return self.name in ([accept] if isinstance(accept, str) else accept)

    def to_dict(self) -> dict[str, Any]:
        """Return the finding, ready for JSON or TOML."""
        held = {name: jsonable(getattr(self, name)) for name in _FIELDS}
        return {name: value for name, value in held.items() if value is not None and value != {}}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Finding:
        """Make a finding from the content of a plan file."""
        for option in given:
            if option not in _FIELDS:
                raise ParameterError(f"In a finding: {unknown_name(option, _FIELDS, what='entry')}")
        for needed in ("kind", "columns", "confidence"):
            if needed not in given:
                raise ParameterError(
                    f"A finding of the plan has no '{needed}'. Add it, or take the finding out."
                )
        if given["confidence"] not in CONFIDENCES:
            raise ParameterError(unknown_name(str(given["confidence"]), CONFIDENCES, what="confidence"))
        return cls(
            kind=str(given["kind"]),
            columns=tuple(given["columns"]),
            evidence=dict(given.get("evidence", {})),
            confidence=given["confidence"],
            action=str(given.get("action", "")),
            reversible=bool(given.get("reversible", True)),
            parameters=dict(given.get("parameters", {})),
            accepted=given.get("accepted"),
            name=str(given.get("name", f"{given['kind']}:{given['columns'][0]}")),
        )

    @property
    def words(self) -> str:
        """The evidence in one line."""
        told = [
            (n, value) for n, value in self.evidence.items() if not isinstance(value, list | tuple | dict)
        ]
        return ", ".join(f"{name.replace('_', ' ')} {_said(value)}" for name, value in told[:_SHOWN])


keep_in_documents("finding", Finding)


def named(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Give every finding a name of its own: its kind and column, with a number from the second one on."""
    seen: dict[str, int] = {}
    done = []
    for finding in findings:
        name = f"{finding.kind}:{finding.column}"
        seen[name] = seen.get(name, 0) + 1
        done.append(replace(finding, name=name if seen[name] == 1 else f"{name}-{seen[name]}"))
    return tuple(done)


def _said(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


@dataclass(frozen=True)
class Thresholds:
    """When something counts as found.

    Attributes
    ----------
    sentinel_min_share
        Least share of the records that have a value for it to be a code of missing.
    fd_tol
        Largest share of the records that may break a dependency or an identity.
    fd_max_determinant_ratio
        A column with more distinct values than this share of the records determines nothing.
    outlier_gap, outlier_mad
        A gap of this share of the range, and a distance of this many robust standard deviations.
    spike_z, spike_window
        How far a count must stand out from those of the neighboring whole numbers, and how many on each side.
    many_levels, few_values
        Categories with more levels come last; numbers with at most this many values are categories.
    n_bins
        Bins of equal width that a binning generator would use.
    max_terms
        Most columns in a sum or a product; the total income of EU-SILC has eight parts.
    chance
        A rule is reported when chance alone would bring it about with at most this probability.
    sample_rows
        Records on which candidates are searched; what is found is checked on all.
    min_rows
        Below this many records neither outliers nor spikes are looked for.
    """

    sentinel_min_share: float = 0.001
    fd_tol: float = 0.002
    fd_max_determinant_ratio: float = 0.5
    outlier_gap: float = 0.5
    outlier_mad: float = 10.0
    spike_z: float = 5.0
    spike_window: int = 2
    many_levels: int = 15
    few_values: int = 5
    n_bins: int = 20
    max_terms: int = 10
    chance: float = 1e-6
    sample_rows: int = 200_000
    min_rows: int = 50

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Thresholds:
        """Read thresholds by name."""
        known = [item.name for item in fields(cls)]
        for name, value in given.items():
            if name not in known:
                raise ParameterError(unknown_name(name, known, what="threshold"))
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
                raise ParameterError(f"{name} must be a number that is not negative.")
        return cls(**given)

    def given(self) -> dict[str, float]:
        """Return those that differ from their defaults."""
        usual = Thresholds()
        return {
            item.name: getattr(self, item.name)
            for item in fields(self)
            if getattr(self, item.name) != getattr(usual, item.name)
        }


@dataclass(eq=False)
class Look:
    """A file under inspection.

    Attributes
    ----------
    frame
        The columns that are inspected (no identifiers, no weight).
    limits
        The thresholds.
    codes
        Values that are codes of missing, by column; filled in by the first detector.
    """

    frame: pl.DataFrame
    limits: Thresholds
    codebook: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    show_values: bool = False
    codes: dict[str, tuple[float, ...]] = field(default_factory=dict)
    _numbers: dict[str, Floats] = field(default_factory=dict)
    _clean: dict[str, Floats] = field(default_factory=dict)
    _levels: dict[tuple[str, int], tuple[Integers, int]] = field(default_factory=dict)
    _decimals: dict[str, int | None] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Number of records."""
        return self.frame.height

    @cached_property
    def numeric(self) -> tuple[str, ...]:
        """Columns of numbers that have at least one."""
        return tuple(
            name
            for name, dtype in self.frame.schema.items()
            if dtype.is_numeric() and self.frame[name].null_count() < self.rows
        )

    @cached_property
    def distinct(self) -> dict[str, int]:
        """Number of distinct values by column, missing included."""
        if not self.frame.width:
            return {}
        return dict(self.frame.select(pl.all().n_unique()).row(0, named=True))

    @cached_property
    def sample(self) -> Integers:
        """The records that candidates are searched on."""
        most = int(self.limits.sample_rows)
        if self.rows <= most:
            return np.arange(self.rows)
        return np.sort(generator(0, "preflight", "sample").choice(self.rows, size=most, replace=False))

    @cached_property
    def first_look(self) -> Integers:
        """A few records of the sample, to throw most candidates out at once."""
        few = 5000
        if len(self.sample) <= few:
            return self.sample
        return np.sort(generator(0, "preflight", "first look").choice(self.sample, size=few, replace=False))

    def numbers(self, name: str) -> Floats:
        """Return a column of numbers, missing as NaN."""
        if name not in self._numbers:
            found = as_numbers(self.frame[name]).fill_null(float("nan")).to_numpy()
            self._numbers[name] = np.where(np.isfinite(found), found, np.nan)
        return self._numbers[name]

    def clean(self, name: str) -> Floats:
        """Return a column of numbers, missing and codes of missing as NaN."""
        if name not in self._clean:
            found = self.numbers(name)
            if self.codes.get(name):
                found = np.where(np.isin(found, self.codes[name]), np.nan, found)
            self._clean[name] = found
        return self._clean[name]

    def decimals(self, name: str) -> int | None:
        """Return the decimal places of a column of numbers; None where there is no end to them."""
        if name not in self._decimals:
            values = self.clean(name)
            self._decimals[name] = decimals_of(values[~np.isnan(values)])
        return self._decimals[name]

    def levels(self, name: str, rows: Integers | None = None) -> tuple[Integers, int]:
        """Return codes 0, 1, … of a column, missing being 0, and how many there may be."""
        key = (name, self.rows if rows is None else len(rows))
        if key not in self._levels:
            series = self.frame[name] if rows is None else self.frame[name].gather(rows)
            self._levels[key] = dense_codes(series)
        return self._levels[key]


def dense_codes(series: pl.Series) -> tuple[Integers, int]:
    """Code a column of any type as 0, 1, …, missing being 0.

    Examples
    --------
    >>> dense_codes(pl.Series(["b", None, "a", "b"]))[0].tolist()
    [2, 0, 1, 2]
    """
    plain = plain_text(series)
    if plain.dtype.is_float():
        plain = plain.fill_nan(None)
    levels = plain.drop_nulls().unique().sort()
    return places_among(plain, levels).fill_null(-1).to_numpy() + 1, len(levels) + 1


def counted(values: Floats) -> tuple[Floats, Integers]:
    """Return the distinct numbers in order and how often each occurs; NaN is left out."""
    there = pl.Series("v", values[~np.isnan(values)])
    table = there.value_counts().sort("v")
    return table["v"].to_numpy(), table["count"].to_numpy().astype(np.int64)
