"""Post-randomization: replace categories by others at random, with known chances."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import polars as pl

from discreet import engine
from discreet.core.cards import Work
from discreet.core.constraints import AtLeast, ColumnName, ColumnNames, HoldsValues, Public
from discreet.core.errors import ParameterError, need_known
from discreet.core.guarantees import DifferentialPrivacy
from discreet.core.method_cards import method
from discreet.dp.entropy import Stream
from discreet.engine import ByRecord
from discreet.microdata import Microdata
from discreet.protect.coded_columns import Units, crossed
from discreet.protect.transition_matrices import Block, Chances, Lookup, looked_up
from discreet.protect.treatment import Change, Treatment, existing

Matrix = Mapping[Any, Mapping[Any, float]]


@method(
    aim="doubt",
    work="class-wise",
    references=(
        "Gouweleeuw, J. M., Kooiman, P., Willenborg, L. C. R. J. and de Wolf, P.-P. (1998). Post "
        "randomisation for statistical disclosure control: theory and implementation. Journal of Official "
        "Statistics 14(4), 463–478.",
    ),
    tells=("local_epsilon", "local_epsilon_of_record"),
)
@dataclass(frozen=True)
class Pram(Treatment):
    """Replace values by others at random, with known chances (post-randomization method).

    It protects against being sure of a value: whoever finds a record cannot know whether its category is the
    true one.

    Every record draws its new value by the transition matrix, from the row of its old value. An invariant matrix
    keeps the expected counts: tables of a released column are right on average, without correction. Nobody can
    say of one record whether its value is the true one.

    Also known as: PRAM; post-randomization; invariant PRAM.

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
    >>> import polars as pl
    >>> people = Microdata(pl.DataFrame({"job": ["nurse", "clerk", "clerk", "cook"] * 500}))
    >>> release = Pram(columns=["job"], change=0.2).apply(people, seed=1)
    >>> round(release.log[0].internal["expected_changed"]["job"], 3)
    0.328
    >>> sorted(release.data.frame["job"].unique())
    ['clerk', 'cook', 'nurse']
    """

    follow_from_parameters: ClassVar[frozenset[str]] = frozenset(
        {"local_epsilon", "local_epsilon_of_record", "matrix"}
    )

    columns: ColumnNames | None = None
    invariant: bool = True
    change: Annotated[Chances, Public()] = 0.1
    matrix: Annotated[Mapping[str, Matrix], HoldsValues(by_column=True)] | None = None
    strata: ColumnName | ColumnNames | None = None
    theta: Annotated[Chances, Public()] | None = None
    epsilon: (
        Annotated[float, AtLeast(0), Public()]
        | Annotated[Mapping[str, Annotated[float, AtLeast(0)]], Public()]
        | None
    ) = None
    jointly: bool = False
    by: ColumnName | None = None
    missing: Literal["keep", "category"] = "keep"

    def __post_init__(self) -> None:
        if self.theta is not None and self.epsilon is not None:
            raise ParameterError("pram takes theta or epsilon, not both: one determines the other.")
        if not self.invariant and not (self.theta is None and self.epsilon is None):
            raise ParameterError("theta and epsilon are for the invariant matrix. Set invariant=True.")
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
            named = given if isinstance(given, Mapping) else ()
            need_known(named, names, before=f"In {option}: ", kind=ParameterError)
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
        drawn = [Block(self, block, table, groups) for block in blocks]
        fixed = all(block.weights is not None for block in drawn)
        claim = self._claim(drawn, data)
        stream.enter(claim, self._why_none(fixed), purpose=f"randomized {', '.join(names)}")
        columns = {}
        for block in drawn:
            for name, drawn_values in block.randomized(stream.child(*block.names)).items():
                series = _listed_anew(drawn_values, block.levels[name]) if claim else drawn_values
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
            drawn.append(Block(self, names_of_block, counted, groups, counted["records"].to_numpy()))
        claim = self._claim(drawn, data)
        stream.enter(claim, self._why_none(False), purpose=f"randomized {', '.join(names)}")
        lookups = tuple(Lookup.of(block, strata, stream.keyed(*block.names)) for block in drawn)
        makes = {name: block.levels[name].dtype for block in drawn for name in block.names}
        reads = tuple(dict.fromkeys([*names, *strata]))
        return replace(
            self._told(drawn, claim, fixed=False),
            by_record=ByRecord(reads, makes, partial(looked_up, lookups), draws=True),
        )

    def _told(self, drawn: Sequence[Block], claim: DifferentialPrivacy | None, *, fixed: bool) -> Change:
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

    def _claim(self, drawn: Sequence[Block], data: Microdata) -> DifferentialPrivacy | None:
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


def _listed_anew(series: pl.Series, levels: pl.Series) -> pl.Series:
    """Give a category the levels of its matrix: those of the file, and their order, may have been read off the data."""
    if series.dtype not in (pl.Categorical, pl.Enum):
        return series
    return series.cast(pl.String).cast(pl.Enum(levels.cast(pl.String)))
