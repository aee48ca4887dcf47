"""Post-randomization: replace categories by others at random, with known chances."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet import dp, engine
from discreet.arrays import Floats, Integers, Words
from discreet.cards import Work
from discreet.errors import ColumnError, ParameterError, unknown_name
from discreet.guarantees import DifferentialPrivacy
from discreet.method_cards import method
from discreet.microdata import Microdata
from discreet.protect.coded_columns import Units, coded, crossed
from discreet.protect.columns import existing
from discreet.protect.drawn_records import changed
from discreet.protect.perturbing.transition_matrices import (
    even_change,
    expected_change,
    local_epsilon,
    one_step_invariant,
    theta_for_epsilon,
    two_stage_invariant,
    whole_local_epsilon,
    whole_weights,
)
from discreet.protect.treatment import ByRecord, Change, Stream, Treatment
from discreet.randomness import KeyedDraws
from discreet.wording import type_name

Matrix = Mapping[Any, Mapping[Any, float]]
PerColumn = float | Mapping[str, float]

_MOST_LEVELS = 2_000
_MOST_ENTRIES = 50_000_000
_ROW = "discreet row"


@method(
    aim="doubt",
    work="class-wise",
    references=(
        "Gouweleeuw, J. M., Kooiman, P., Willenborg, L. C. R. J. and de Wolf, P.-P. (1998). Post "
        "randomisation for statistical disclosure control: theory and implementation. Journal of Official "
        "Statistics 14(4), 463–478.",
    ),
)
@dataclass(frozen=True)
class Pram(Treatment):
    """Replace values by others at random, with known chances (post-randomization method).

    It protects against being sure of a value: whoever finds a record cannot know whether its category is the
    true one.

    Every record draws its new value by the transition matrix, from the row of its old value. An invariant matrix
    keeps the expected counts: tables of a released column are right on average, without correction. Nobody can
    say of one record whether its value is the true one.

    Parameters
    ----------
    columns
        The columns to randomize; the keys of the data unless named.
    invariant
        Keep the expected counts: the matrix P is followed by the one that undoes it on average, Q = P R with
        R_kl = p_lk t_l / sum_m p_mk t_m for counts t.
    change
        The chance that a value is changed by P, to any other value with the same chance; one number, or
        ``{column: number}``. R changes values a second time: rare ones nearly always, frequent ones seldom. The
        internal log says how many changes are expected in the end.
    matrix
        A matrix P of your own, ``{column: {from: {to: chance}}}``; chances of a row add up to 1. With
        ``invariant=False`` it is used as it is.
    strata
        Columns within whose groups values are randomized, each group with its own matrix.
    theta
        Instead of ``change``, the strength in [0, 1] of the one-step invariant matrix P_ii = 1 - theta t_min / t_i:
        every value leaves as many records as the rarest.
    epsilon
        Instead of ``theta``, the local epsilon that this matrix is to have, for each column.
    jointly
        Randomize the columns together as one crossed variable; only combinations that occur are drawn. Otherwise
        each column is drawn on its own.
    by
        Column whose equal values change together, e.g. the household, for columns that describe it.
    missing
        ``keep`` missing values missing and draw none, or treat missing as a ``category`` like any other.

    Notes
    -----
    The internal log has for every column ``expected_changed``, the share of values expected to change, and
    ``local_epsilon``, the largest log ratio in a column of the matrix (infinite where there are zeros); columns
    drawn on their own add up for a record. Beside the parameters both give away how often the values occur, so they
    stay in the house, as the matrices do. A matrix made from the counts of the file depends on everybody in it:
    this epsilon is a guarantee only for a ``matrix`` of your own with ``invariant=False``, from which values are drawn
    exactly (`discreet.dp`), and without a seed. It is then public.

    What it costs
    -------------
    Categories of single records are wrong with known chances. Expected counts stay right for an invariant
    matrix, but relations with columns that were not randomized grow weaker.

    When not to use it
    ------------------
    Do not use it where impossible combinations do harm (a married child): randomize such columns ``jointly``.
    Do not use it on columns with very many rare values, which are exchanged nearly always. It does not hide
    that a person is in the file.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"job": ["nurse", "clerk", "clerk", "cook"] * 500}))
    >>> release = Pram(columns=["job"], change=0.2).apply(people, seed=1)
    >>> round(release.log[0].internal["expected_changed"]["job"], 3)
    0.328
    >>> sorted(release.data.frame["job"].unique())
    ['clerk', 'cook', 'nurse']
    """

    columns: Sequence[str] | None = None
    invariant: bool = True
    change: PerColumn = 0.1
    matrix: Mapping[str, Matrix] | None = None
    strata: str | Sequence[str] | None = None
    theta: PerColumn | None = None
    epsilon: PerColumn | None = None
    jointly: bool = False
    by: str | None = None
    missing: Literal["keep", "category"] = "keep"

    def __post_init__(self) -> None:
        for name, least, most in (("change", 0, 1), ("theta", 0, 1), ("epsilon", 0, math.inf)):
            _check_numbers(name, getattr(self, name), least, most)
        if self.theta is not None and self.epsilon is not None:
            raise ParameterError("pram takes theta or epsilon, not both: one determines the other.")
        if not self.invariant and not (self.theta is None and self.epsilon is None):
            raise ParameterError("theta and epsilon are for the invariant matrix. Set invariant=True.")
        if self.missing not in ("keep", "category"):
            raise ParameterError("missing must be 'keep' or 'category'.")
        if self.jointly and self.matrix is not None:
            raise ParameterError("A matrix is for one column; it cannot be given with jointly=True.")
        if self.jointly and any(isinstance(v, Mapping) for v in (self.change, self.theta, self.epsilon)):
            raise ParameterError("With jointly=True, change, theta and epsilon are one number each.")
        for column, rows in (self.matrix or {}).items():
            for row in rows.values():
                if not all(0 <= chance <= 1 for chance in row.values()) or abs(sum(row.values()) - 1) > 1e-9:
                    raise ParameterError(
                        f"matrix: a row for '{column}' does not hold chances that add up to 1."
                    )

    def treat(self, data: Microdata, stream: Stream) -> Change:
        """Draw the new values."""
        chosen = data.roles.keys if self.columns is None else self.columns
        names = existing(data, chosen, treatment=self.name)
        for name in self.matrix or {}:
            if name not in names:
                raise ParameterError(f"matrix has rows for '{name}', which is not among the columns of pram.")
        for option in ("change", "theta", "epsilon"):
            given = getattr(self, option)
            for name in given if isinstance(given, Mapping) else ():
                if name not in names:
                    raise ParameterError(f"In {option}: {unknown_name(name, names)}")
        strata = () if self.strata is None else existing(data, self.strata, treatment=self.name)
        both = set(strata) & set(names)
        if both:
            raise ParameterError(f"'{min(both)}' cannot be randomized and be among the strata.")
        by = [] if self.by is None else list(existing(data, self.by, treatment=self.name))
        if self.work == "class-wise":
            return self._by_record(data, names, strata, stream)
        table = engine.collect(data, list(dict.fromkeys([*names, *strata, *by])))
        units = Units.of(table[by[0]] if by else None, table.height)
        if by:
            units.check_same(table, [*names, *strata], by[0])
            table = table[units.first]
        groups = crossed(table.select(strata))[0] if strata else None
        blocks = [names] if self.jointly else [(name,) for name in names]
        drawn = [_Block(self, block, table, groups) for block in blocks]
        fixed = all(block.weights is not None for block in drawn)
        claim = self._claim(drawn, data)
        stream.enter(claim, self._why_none(fixed), purpose=f"randomized {', '.join(names)}")
        columns = {}
        for block in drawn:
            for name, series in block.randomized(stream.child(*block.names)).items():
                columns[name] = series.gather(units.of_record) if by else series
        return replace(self._told(drawn, claim, fixed=fixed), columns=columns)

    @property
    def work(self) -> Work:
        """Class-wise, unless records change together or a guarantee rests on draws that nobody can repeat."""
        repeated = self.matrix is None or self.invariant
        return "class-wise" if repeated and self.by is None else "whole-file"

    def _by_record(
        self, data: Microdata, names: Sequence[str], strata: Sequence[str], stream: Stream
    ) -> Change:
        """Make the matrices from the counts of the values, and draw by the number of the record."""
        drawn = []
        for names_of_block in [tuple(names)] if self.jointly else [(name,) for name in names]:
            counted = engine.combinations(data, [*names_of_block, *strata])
            groups = crossed(counted.select(strata))[0] if strata else None
            drawn.append(_Block(self, names_of_block, counted, groups, counted["records"].to_numpy()))
        claim = self._claim(drawn, data)
        stream.enter(claim, self._why_none(False), purpose=f"randomized {', '.join(names)}")
        lookups = tuple(_Lookup.of(block, strata, stream.keyed(*block.names)) for block in drawn)
        makes = {name: block.levels[name].dtype for block in drawn for name in block.names}
        reads = tuple(dict.fromkeys([*names, *strata]))
        return replace(
            self._told(drawn, claim, fixed=False),
            by_record=ByRecord(reads, makes, partial(_looked_up, lookups), draws=True),
        )

    def _told(self, drawn: Sequence[_Block], claim: DifferentialPrivacy | None, *, fixed: bool) -> Change:
        epsilons = {
            "local_epsilon": {block.label: block.epsilon for block in drawn},
            "local_epsilon_of_record": sum(block.epsilon for block in drawn),
        }
        return Change(
            notes=self._notes(claim),
            # Of a matrix that was made from the counts of the file, epsilon tells these counts.
            parameters={
                **(epsilons if fixed else {}),
                **({"matrix": "see the internal log"} if self.matrix else {}),
            },
            internal={
                "expected_changed": {block.label: block.expected for block in drawn},
                **({} if fixed else epsilons),
                "matrices": {block.label: block.described() for block in drawn},
            },
            private=claim,
            why_none="" if claim else self._why_none(fixed),
        )

    def _notes(self, claim: DifferentialPrivacy | None) -> tuple[str, ...]:
        notes = ["Values were exchanged at random, with chances that the internal log holds."]
        if self.invariant:
            notes.append("Expected counts of the released values equal the counts of the file.")
        if claim is None:
            fixed = not self.invariant and self.matrix is not None
            notes.append(f"No privacy guarantee is claimed: {self._why_none(fixed)}")
        return tuple(notes)

    @staticmethod
    def _why_none(fixed: bool) -> str:
        if fixed:
            return (
                "some values can never come from some others (local epsilon is infinite), or not every column has a "
                "matrix of its own."
            )
        return (
            "the matrix was made from the file itself, and local epsilon holds for a matrix fixed beforehand."
        )

    def _claim(self, drawn: Sequence[_Block], data: Microdata) -> DifferentialPrivacy | None:
        total = sum(block.epsilon for block in drawn)
        if not drawn or any(block.weights is None for block in drawn) or math.isinf(total):
            return None
        who = "record" if self.by is None else f"'{self.by}'"
        hidden = "; whether a value is missing is not hidden" if self.missing == "keep" else ""
        return DifferentialPrivacy(
            total,
            against=f"changing the values of one {who}",
            covers=f" in {', '.join(block.label for block in drawn)}, among the values that the matrix names{hidden}; "
            "other columns are not covered",
            local=True,
            # The number of records is not hidden, and neither is whose they are.
            adjacency="replace",
            unit=self._unit(data),
        )

    def _unit(self, data: Microdata) -> Literal["record", "person", "household", "contributor"]:
        """Whose values are drawn together: the records of a unit that a role names, or one record."""
        for role in ("person", "household", "contributor"):
            if self.by is not None and getattr(data.roles, role) == self.by:
                return role
        return "record"


class _Block:
    """One column, or several crossed, with its levels, its laws and what they amount to."""

    def __init__(
        self,
        asked: Pram,
        names: Sequence[str],
        table: pl.DataFrame,
        groups: Integers | None,
        records: Integers | None = None,
    ) -> None:
        self.records = records
        self.names, self.table, self.asked = tuple(names), table.select(names), asked
        self.counted = table
        self.label = " × ".join(names)
        self.gone = np.zeros(table.height, dtype=np.bool_)
        if asked.missing == "keep" and sum(self.table.null_count().row(0)):
            self.gone = self.table.select(pl.any_horizontal(pl.all().is_null())).to_series().to_numpy()
        whole = not self.gone.any()
        present = self.table if whole else self.table.filter(pl.Series(~self.gone))
        if len(self.names) == 1:
            codes, distinct = coded(present.to_series())
            self.levels = distinct.to_frame()
        else:
            codes, self.levels = crossed(present)
        self.codes = codes if whole else np.full(table.height, -1, dtype=np.int64)
        if not whole:
            self.codes[~self.gone] = codes
        self.groups = groups
        if self.levels.height > _MOST_LEVELS:
            raise ColumnError(
                f"'{self.label}' has {self.levels.height:,} different values, more than the {_MOST_LEVELS:,} that "
                "pram draws from. Recode or band it first."
            )
        self._set_laws()

    def _set_laws(self) -> None:
        """Make the matrix of every group, in the order of the levels."""
        first = self._own_matrix()
        self.weights: npt.NDArray[np.uint64] | None = None
        size = self.levels.height
        many = 1 if self.groups is None or not len(self.groups) else int(self.groups.max()) + 1
        if many * size * size > _MOST_ENTRIES:
            raise ParameterError(
                f"'{self.label}' has {size:,} values in {many:,} strata: too many matrices. Use coarser strata."
            )
        self.rows = self.codes if self.groups is None else self.groups * size + self.codes
        if self.gone.any():
            self.rows = np.where(self.gone, -1, self.rows)
        # Missing values are row -1; shifted by one they are counted first, and left out.
        holes = int(self.gone.any())
        # A row of the table is one record, or a combination of values with the number of records that have it.
        tally = np.bincount(
            self.rows + 1 if holes else self.rows, weights=self.records, minlength=many * size + holes
        ).astype(np.int64)
        counts = tally[holes:].reshape(many, size)
        self.laws = np.zeros((many, size, size))
        moved, epsilons = 0.0, [0.0]
        for group in range(many):
            there = np.flatnonzero(counts[group])
            known = counts[group, there]
            law = self._law(first, there, known)
            targets = there if law.shape[1] == len(there) else np.arange(size)
            self.laws[group][np.ix_(there, targets)] = law
            moved += expected_change(self.laws[group][np.ix_(there, there)], known) * known.sum()
            epsilons.append(local_epsilon(law))
        if first is not None and not self.asked.invariant:
            self.weights = whole_weights(first)
            epsilons = [whole_local_epsilon(self.weights)]
        total = counts.sum()
        self.expected = float(moved / total) if total else 0.0
        self.epsilon = max(epsilons)

    def _law(self, first: Floats | None, there: Integers, counts: Integers) -> Floats:
        asked, size = self.asked, len(there)
        if first is not None:
            return two_stage_invariant(first[there], counts) if asked.invariant else first[there]
        theta = _of(asked.theta, self.label)
        target = _of(asked.epsilon, self.label)
        if target is not None and size > 1:
            theta = theta_for_epsilon(counts, target, column=f"'{self.label}'")
        if theta is not None or target is not None:
            return one_step_invariant(counts, theta or 0.0)
        chance = _of(asked.change, self.label)
        if chance is None:
            raise ParameterError(
                f"change does not name '{self.label}'. Give it a number, or leave it out of pram."
            )
        matrix = even_change(size, chance)
        return two_stage_invariant(matrix, counts) if asked.invariant and size else matrix

    def _own_matrix(self) -> Floats | None:
        """Read the matrix the user gave for this column; values only named in it become levels."""
        given = (self.asked.matrix or {}).get(self.label)
        if given is None:
            return None
        column = self.levels.to_series()
        sources = _typed(list(given), column)
        targets = _typed(list(dict.fromkeys(to for row in given.values() for to in row)), column)
        named = pl.concat([sources, targets]).unique(maintain_order=True)
        lost = int((~column.is_in(sources.implode(), nulls_equal=True)).sum())
        if lost:
            raise ColumnError(
                f"The matrix for '{self.label}' has no row for {lost:,} of its values. Give every value a row."
            )
        if self.asked.invariant:
            fresh = named.filter(~named.is_in(column.implode(), nulls_equal=True))
            self.levels = pl.concat([column, fresh]).to_frame()
        else:
            # The order of the matrix, not of the file: which values did not occur must not show in a list of levels.
            self.levels = named.alias(column.name).to_frame()
        place = {value: at for at, value in enumerate(self.levels.to_series().to_list())}
        if len(column):
            moved = np.asarray([place[value] for value in column.to_list()], dtype=np.int64)
            self.codes = np.where(self.codes < 0, -1, moved[np.maximum(self.codes, 0)])
        matrix = np.zeros((len(place), len(place)))
        for source, row in zip(sources.to_list(), given.values(), strict=True):
            for target, chance in zip(_typed(list(row), column).to_list(), row.values(), strict=True):
                matrix[place[source], place[target]] += chance / sum(row.values())
        return matrix

    def randomized(self, stream: Stream) -> dict[str, pl.Series]:
        """Draw the new values of every record."""
        from discreet.alias_tables import alias_tables, draw

        if not self.levels.height:
            return {name: self.table[name] for name in self.names}
        if self.weights is not None:
            drawn = np.full(self.table.height, -1, dtype=np.int64)
            drawn[~self.gone] = dp.weighted_rows(self.weights, self.codes[~self.gone], stream.words())
        else:
            cut, other = alias_tables(self.laws.reshape(-1, self.levels.height))
            drawn = draw(self.rows, stream().random(self.table.height), cut, other)
        if not self.gone.any():
            return {name: self.levels[name].gather(drawn) for name in self.names}
        stay = pl.Series(self.gone)
        at = np.maximum(drawn, 0)
        return {
            name: self.table[name].zip_with(stay, self.levels[name].gather(at)).alias(name)
            for name in self.names
        }

    def described(self) -> dict[str, Any]:
        """Give levels and matrices for the internal log."""
        return {
            "levels": [list(row) if len(row) > 1 else row[0] for row in self.levels.rows()],
            "matrices": self.laws,
        }


@dataclass(frozen=True)
class _Lookup:
    """What a batch of records needs to draw from the laws of a block: whose law is which, and tables to draw from."""

    names: tuple[str, ...]
    known: pl.DataFrame
    levels: pl.DataFrame
    cut: Floats
    other: npt.NDArray[np.int32]
    draws: KeyedDraws

    @classmethod
    def of(cls, block: _Block, strata: Sequence[str], draws: KeyedDraws) -> _Lookup:
        from discreet.alias_tables import alias_tables

        cut, other = alias_tables(block.laws.reshape(-1, max(block.levels.height, 1)))
        known = block.counted.select(*block.names, *strata).with_columns(pl.Series(_ROW, block.rows))
        return cls(block.names, known, block.levels, cut, other, draws)

    def drawn(self, table: pl.DataFrame, records: Words) -> dict[str, pl.Series]:
        """Draw the new values of a batch."""
        from discreet.alias_tables import draw

        if not self.levels.height:
            return {name: table[name] for name in self.names}
        keys = [name for name in self.known.columns if name != _ROW]
        typed = table.select(pl.col(name).cast(self.known.schema[name]) for name in keys)
        found = typed.join(self.known, on=keys, how="left", nulls_equal=True, maintain_order="left")
        if found[_ROW].null_count():
            # Without a law it would be released as it is.
            raise changed()
        rows = found[_ROW].to_numpy()
        at = draw(rows, self.draws.uniforms(records), self.cut, self.other)
        stay = pl.Series(at < 0)
        fresh = {name: self.levels[name].gather(np.maximum(at, 0)) for name in self.names}
        if not stay.any():
            return fresh
        return {name: found[name].zip_with(stay, column).alias(name) for name, column in fresh.items()}


def _looked_up(lookups: Sequence[_Lookup], table: pl.DataFrame, records: Words) -> dict[str, pl.Series]:
    columns: dict[str, pl.Series] = {}
    for lookup in lookups:
        columns |= lookup.drawn(table, records)
    return columns


def _check_numbers(name: str, given: Any, least: float, most: float) -> None:
    if given is None:
        return
    for value in given.values() if isinstance(given, Mapping) else [given]:
        fits = isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most
        if not fits:
            bound = f"between {least:g} and {most:g}" if most < math.inf else f"of at least {least:g}"
            raise ParameterError(f"{name} must be a number {bound}, or such a number for each column.")


def _of(given: PerColumn | None, column: str) -> float | None:
    if isinstance(given, Mapping):
        return given.get(column)
    return given


def _typed(values: Sequence[Any], column: pl.Series) -> pl.Series:
    """Bring values of a matrix to the type of its column (plan files hold text only)."""
    wrong = f"The matrix for '{column.name}' names values that its type, {type_name(column.dtype)}, does not have."
    if column.dtype == pl.Boolean:
        return pl.Series([str(value).lower() == "true" for value in values], dtype=pl.Boolean)
    texts = column.dtype in (pl.Categorical, pl.Enum, pl.String)
    given = pl.Series([str(value) for value in values]) if texts else pl.Series(list(values))
    try:
        fitted = given.cast(column.dtype)
    except pl.exceptions.PolarsError as error:
        raise ParameterError(wrong) from error
    if given.dtype.is_float() and column.dtype.is_integer() and (given != fitted).any():
        raise ParameterError(wrong)
    return fitted
