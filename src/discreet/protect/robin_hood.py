"""Hide an attribute of a few of the many so that the few need not be coarsened: Robin Hood.

The arithmetic stands at the end, the light generalization before it in `discreet.protect.lattice_search`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet import engine
from discreet.core.arrays import Flags, Integers, Words
from discreet.core.constraints import AtLeast, ColumnName, ColumnNames, HoldsValues, Share
from discreet.core.errors import ColumnError, DiscreetError, ParameterError, need_known
from discreet.core.method_cards import method
from discreet.core.wording import percent, type_name
from discreet.dp.entropy import Stream
from discreet.engine import ByRecord
from discreet.hierarchy import Hierarchy
from discreet.microdata import Microdata
from discreet.protect.global_recoding import hierarchies_of
from discreet.protect.lattice_classes import Lattice
from discreet.protect.records_of_classes import DrawnRecords
from discreet.protect.treatment import Change, Treatment

_MOST_DRAWN_FROM = 10**9
"""NumPy draws without replacement from fewer than so many."""


@method(
    aim="company",
    work="class-wise",
    references=(
        "Brown, J. T., Clayton, E. W., Matheny, M., Kantarcioglu, M., Vorobeychik, Y. and Malin, B. A. "
        "(2024). Robin Hood: a de-identification method to preserve minority representation for "
        "disparities research. Privacy in Statistical Databases, LNCS 14915. "
        "doi:10.1007/978-3-031-69651-0",
    ),
)
@dataclass(frozen=True)
class RobinHood(Treatment):
    """Mask one attribute of random records, mostly of large groups, so that small groups can stay visible.

    It protects against finding members of small groups, by making an intruder go through masked members of
    large ones too.

    Instead of coarsening everybody until the rarest group reaches k, the keys are generalized lightly (to
    ``k_initial``), and then the fairness attribute (race, religion) of some records is replaced by ``mask_value``.
    Whoever looks for a person of a small class must now also go through the masked records of the same other keys,
    and needs on average as many attempts as in a class of ``k_target``.

    Also known as: Robin Hood de-identification; fair de-identification.

    Parameters
    ----------
    fairness
        The key that is masked. Several attributes: make one joint column first.
    k_target
        The protection to reach: the effort of finding a person in a class of that size.
    k_initial
        The class size that generalization must reach before anything is masked; it bounds the chance that a single
        try is right, which masking does not lower.
    threshold_majority
        The largest share of the records in large classes (k_target or more) that may be masked.
    threshold_minority
        The largest share of a small class that may be masked.
    hierarchies
        ``{key: Hierarchy}`` for the light generalization; keys without one stay as they are. Not needed where the
        file has classes of k_initial already.
    mask_value
        What is written; it must not occur in the column.
    on_infeasible
        When some class cannot be protected: ``"report"`` (mask for the others and say so), ``"raise"``, or
        ``"generalize"`` (go on to the next coarser recoding until every class can be protected).
    keys
        Columns; those of the data unless named.

    Notes
    -----
    The public log says whether the target was reached (``feasible``), how many classes miss it, and the chosen
    ``levels``. The internal log has ``classes``, one entry a class (its size A, unmasked B, masked C, masked
    elsewhere D, masked in all E, effective k, expected attempts), and ``masked_by_group``: together with the file
    they say what is behind the masks, so they stay in the house.

    All is planned on the distinct combinations of key values and their counts; of a query (Polars lazy, DuckDB, Spark)
    nothing else is collected but one draw for each class of which some records are masked, and it stays a query. The
    draw of a record belongs to its place in the file, or to its ``record_key``, which Spark needs: the same records
    are masked on every engine.

    What it costs
    -------------
    The masked attribute of some records, mostly of the majority, and the light generalization of the other
    keys. Small groups keep their detail.

    When not to use it
    ------------------
    Do not use it on files with several records a person (it refuses them where the role ``person`` says so),
    nor where a single try must not succeed: the chance of one try is that of ``k_initial``. Do not
    use it where other columns predict the masked attribute well, and do not release two versions with
    different seeds.

    Examples
    --------
    >>> from discreet import Microdata
    >>> people = pl.DataFrame({"race": ["M"] * 7 + ["m"] * 3, "sex": ["f"] * 10})
    >>> data = Microdata(people, keys=["race", "sex"])
    >>> release = RobinHood(fairness="race", k_initial=3, k_target=4).apply(data, seed=1)
    >>> release.data.frame["race"].value_counts(sort=True).sort("race").rows()
    [('?', 4), ('M', 4), ('m', 2)]
    >>> release.log[0].internal["classes"]["effective_k"]
    [7.428571428571429, 4.0]
    """

    fairness: ColumnName
    k_target: Annotated[int, AtLeast(1)]
    k_initial: Annotated[int, AtLeast(1)] = 3
    threshold_majority: Annotated[float, Share(above=True)] = 1.0
    threshold_minority: Annotated[float, Share(above=True)] = 0.5
    hierarchies: Annotated[Mapping[str, Hierarchy], HoldsValues(by_column=True)] = field(default_factory=dict)
    mask_value: Annotated[str | int, HoldsValues()] = "?"
    on_infeasible: Literal["report", "raise", "generalize"] = "report"
    keys: ColumnName | ColumnNames | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "hierarchies", hierarchies_of(self.hierarchies))
        if self.k_target < self.k_initial:
            raise ParameterError(
                "k_target must be at least k_initial: masking adds to the protection that generalization gives."
            )

    def treat(self, data: Microdata, stream: Stream) -> Change:
        """Generalize lightly, then mask."""
        keys = engine.resolve_keys(data, self.keys)
        must_be = " The fairness attribute must be one of the keys."
        need_known([self.fairness], keys, what="key", after=must_be)
        need_known(self.hierarchies, keys, what="key", before="In hierarchies: ")
        if engine.unit_column(data) is not None:
            raise ColumnError(
                f"'{engine.unit_in_words(data)}' has several records for some people, and RobinHood masks records: one "
                "that stays unmasked gives the masked ones away. Bring the file to one record a person first."
            )
        lattice = Lattice(data, keys, self.hierarchies, by_classes=True)
        _must_be_new(lattice.columns[self.fairness], self.mask_value, self.fairness)

        levels, table, classes, plan = self._planned(lattice, keys)
        if plan.infeasible.any() and self.on_infeasible == "raise":
            raise ParameterError(_infeasible(plan, classes))
        masked = classes.split(plan, self.k_target, stream("masked by class"))
        report = classes.report(masked, plan, self.k_target)
        raised = {key: table[key] for key in keys if levels[key] or key == self.fairness}
        drawn = DrawnRecords(
            lattice.columns, classes.of_combination, classes.sizes, stream.keyed("masked records")
        )

        def of_records(record_key: tuple[str, ...]) -> ByRecord:
            last = _last_masked(data, drawn, masked, record_key)
            work = _Masking(drawn, raised, self.fairness, self.mask_value, last)
            nobody = _masked(table[self.fairness].head(0), np.zeros(0, dtype=np.bool_), self.mask_value)
            makes = {key: column.dtype for key, column in raised.items()} | {self.fairness: nobody.dtype}
            return ByRecord(tuple(keys), makes, work, draws=True)

        return Change(
            of_records=of_records,
            notes=self._notes(classes, plan, masked),
            parameters={
                "feasible": not plan.infeasible.any(),
                "infeasible_classes": int(plan.infeasible.sum()),
                "infeasible_records": int(classes.sizes[plan.infeasible].sum()),
                "masked_records": int(masked.sum()),
                "levels": levels,
            },
            internal={
                "classes": report.to_dict(as_series=False),
                "masked_by_group": _by_group(table[self.fairness], classes, masked),
            },
        )

    def _planned(
        self, lattice: Lattice, keys: Sequence[str]
    ) -> tuple[dict[str, int], pl.DataFrame, _Classes, Allotment]:
        """Take the first recoding, or the first that leaves no class unprotected, with its plan of masking."""
        for levels, table in self._generalized(lattice, keys):
            classes = _Classes.of(table, keys, self.fairness, lattice.many)
            plan = allot(
                classes.sizes,
                classes.masking_class,
                k_target=self.k_target,
                threshold_majority=self.threshold_majority,
                threshold_minority=self.threshold_minority,
            )
            if not plan.infeasible.any() or self.on_infeasible != "generalize":
                return levels, table, classes, plan
        raise ParameterError(
            f"No generalization with the given hierarchies allows k_target={self.k_target}. Lower k_target, raise the "
            "thresholds, or give hierarchies for more keys."
        )

    def _generalized(
        self, lattice: Lattice, keys: Sequence[str]
    ) -> Iterator[tuple[dict[str, int], pl.DataFrame]]:
        """List the recodings that give every class k_initial records, by rising loss."""
        from discreet.protect.lattice_search import nodes_by_loss

        original = lattice.columns
        heights = [key.height if key.name in self.hierarchies else 0 for key in lattice.keys]
        found = False
        for node, _ in nodes_by_loss(lattice, self.k_initial, heights):
            found = True
            columns = [
                key.released(original[key.name], level) for key, level in zip(lattice.keys, node, strict=True)
            ]
            yield dict(zip(keys, node, strict=True)), original.with_columns(columns)
        if not found:
            small = lattice.base.sizes < self.k_initial
            raise ParameterError(
                f"{int(lattice.base.sizes[small].sum()):,} records are in classes smaller than k_initial="
                f"{self.k_initial}, and no generalization with the given hierarchies changes that. Give hierarchies "
                "for more keys, or lower k_initial."
            )

    def _notes(self, classes: _Classes, plan: Allotment, masked: Integers) -> tuple[str, ...]:
        smallest, records, hidden = (
            int(number) for number in (classes.sizes.min(), classes.sizes.sum(), masked.sum())
        )
        notes = [
            f"'{self.fairness}' was masked in {hidden:,} of {records:,} records ({percent(hidden / records)}).",
            f"A single try points at the right record with a chance of up to {percent(1 / smallest)} (one over the "
            "smallest class); masking raises the expected number of attempts, not this.",
        ]
        if plan.infeasible.any():
            notes.append(_infeasible(plan, classes))
        notes += [
            "Do not release two versions with different seeds: whoever compares them sees behind the masks.",
            f"Other columns may tell what '{self.fairness}' was; check how well it can be predicted from them.",
        ]
        return tuple(notes)


@dataclass(frozen=True)
class _Classes:
    """The classes of a file on all keys, the masking class of each, and the class of each combination of values."""

    sizes: Integers
    masking_class: Integers
    of_combination: Integers

    @classmethod
    def of(cls, table: pl.DataFrame, keys: Sequence[str], fairness: str, many: Integers) -> _Classes:
        """Number the classes in the order of their keys, which settles ties between classes of one size."""
        named = table.select(pl.col(key).alias(f"k{i}") for i, key in enumerate(keys))
        fair = f"k{list(keys).index(fairness)}"
        names = [name for name in named.columns if name != fair] + [fair]
        counted = named.with_columns(pl.Series("records", many))
        classes = counted.group_by(names).agg(pl.col("records").sum()).sort(names).with_row_index("number")
        # Sorted by the other keys first, a masking class is a run of classes.
        new = np.zeros(classes.height, dtype=np.bool_)
        for name in names[:-1]:
            new |= classes[name].ne_missing(classes[name].shift()).to_numpy()
        new[0] = False
        inside = np.cumsum(new)
        joined = named.join(classes, on=names, how="left", nulls_equal=True, maintain_order="left")
        return cls(
            classes["records"].to_numpy().astype(np.int64),
            inside.astype(np.int64),
            joined["number"].to_numpy().astype(np.int64),
        )

    def split(self, plan: Allotment, k_target: int, random: np.random.Generator) -> Integers:
        """Say how many records of each class are masked.

        What is allotted to the large classes of a masking class falls on them as if it was drawn from all their
        records, each with the same chance.
        """
        masked = plan.minority.copy()
        large = np.flatnonzero(self.sizes >= k_target)
        inside = self.masking_class[large]
        begins = np.flatnonzero(np.diff(inside, prepend=-1))
        for begin, end in pairwise([*begins, len(large)]):
            allotted = int(plan.majority[inside[begin]])
            if allotted:
                members = large[begin:end]
                masked[members] = _drawn_from(self.sizes[members], allotted, random)
        return masked

    def report(self, masked: Integers, plan: Allotment, k_target: int) -> pl.DataFrame:
        """Work out from what is masked how well each class is protected."""
        table = protection(self.sizes, masked, self.masking_class)
        reached = table["effective_k"].to_numpy() >= k_target - 1e-9
        if (~reached & ~plan.infeasible).any():
            raise DiscreetError(
                "Internal error in RobinHood: a class would be released with less protection than was planned, so "
                "nothing was released. Please report this with the parameters that were used."
            )
        return table.with_columns(
            pl.Series("masking_class", self.masking_class), pl.Series("feasible", reached)
        )


def _drawn_from(sizes: Integers, drawn: int, random: np.random.Generator) -> Integers:
    if int(sizes.sum()) >= _MOST_DRAWN_FROM:
        raise ParameterError(
            f"More than {_MOST_DRAWN_FROM:,} records share all keys but the fairness attribute, more than can be drawn "
            "from. Name more keys, or treat the file in parts."
        )
    return random.multivariate_hypergeometric(sizes, drawn, method="marginals").astype(np.int64)


def _last_masked(
    data: Microdata, drawn: DrawnRecords, masked: Integers, record_key: tuple[str, ...]
) -> Integers:
    """Find the highest draw of each class that is still masked; -1 where none is."""
    last = np.where(masked == drawn.sizes, np.iinfo(np.int64).max, -1)
    some = np.flatnonzero((masked > 0) & (masked < drawn.sizes))
    ranks = pl.DataFrame({"class": some, "rank": masked[some]})
    last[some] = drawn.last(data, ranks, record_key, purpose="robin-hood")
    return last


@dataclass(frozen=True, eq=False)
class _Masking:
    """Gives the records of a batch the coarser keys of their class, and masks those with low draws."""

    drawn: DrawnRecords
    raised: Mapping[str, pl.Series]
    fairness: str
    mask_value: str | int
    last: Integers

    def __call__(self, rows: pl.DataFrame, records: Words) -> Mapping[str, pl.Series]:
        place = self.drawn.places(rows)
        masked = self.drawn.draw(records) <= self.last[self.drawn.numbers[place]]
        made = {key: column.gather(place) for key, column in self.raised.items()}
        return made | {self.fairness: _masked(made[self.fairness], masked, self.mask_value)}


def _must_be_new(column: pl.Series, mask_value: str | int, name: str) -> None:
    is_text = column.dtype in (pl.String, pl.Categorical, pl.Enum)
    fits = (
        isinstance(mask_value, str) if is_text else isinstance(mask_value, int) and column.dtype.is_integer()
    )
    if not fits:
        raise ColumnError(
            f"mask_value must be of the type of column '{name}' ({type_name(column.dtype)}): text for text or "
            "categories, a whole number for whole numbers. Choose another mask_value, or convert the column."
        )
    text = column.cast(pl.String)
    if bool((text == str(mask_value)).any()):
        raise ColumnError(
            f"Column '{name}' already has the mask_value in it. A masked file must not be masked again (comparing the "
            "two would show what is behind the masks); if it is another value, choose another mask_value."
        )


def _masked(column: pl.Series, masked: Flags, mask_value: str | int) -> pl.Series:
    dtype = column.dtype
    if isinstance(dtype, pl.Enum):
        dtype = pl.Enum([*dtype.categories, str(mask_value)])
    is_text = dtype in (pl.String, pl.Categorical, pl.Enum)
    plain = column.cast(pl.String) if is_text else column
    mask = pl.Series([str(mask_value) if is_text else mask_value], dtype=plain.dtype).new_from_index(
        0, len(plain)
    )
    return plain.zip_with(pl.Series(~masked), mask).cast(dtype).alias(column.name)


def _by_group(column: pl.Series, classes: _Classes, masked: Integers) -> dict[str, float]:
    """Give the share of masked records by value of the fairness attribute."""
    of_class = pl.DataFrame({"class": classes.of_combination, "group": column.cast(pl.String)}).unique(
        "class"
    )
    counts = pl.DataFrame({"class": np.arange(len(masked)), "masked": masked, "records": classes.sizes})
    shares = (
        counts.join(of_class, on="class", how="left")
        .group_by("group")
        .agg(share=pl.col("masked").sum() / pl.col("records").sum())
        .sort("group")
    )
    return {"missing" if group is None else group: share for group, share in shares.rows()}


def _infeasible(plan: Allotment, classes: _Classes) -> str:
    failed = plan.infeasible
    message = (
        f"{int(failed.sum()):,} classes with {int(classes.sizes[failed].sum()):,} records cannot reach k_target under "
        "the thresholds; nothing was masked for them. Lower k_target, raise the thresholds, or use "
        "on_infeasible='generalize'."
    )
    if bool((classes.sizes[failed] == 1).any()):
        message += " Some of these classes have a single record: use k_initial of 2 or more."
    return message


# How many records must hide one attribute so that small groups are as safe as large ones?
#
# The arithmetic of Robin Hood. A *class* shares all keys; a *masking class* shares all but the attribute that is
# hidden. Of a class with A records C are masked, B are not; in its masking class D are masked outside the class and
# E in all. An intruder who goes through the unmasked records of the class first, then through the masked ones of the
# masking class, needs (A + 1) / 2 + C D / (2 A) attempts on average: as many as in a class of A + C D / A.


@dataclass(frozen=True)
class Allotment:
    """How many records to mask.

    Attributes
    ----------
    minority
        In each class with fewer than k records (0 for the others).
    majority
        Among all records of the large classes of each masking class.
    infeasible
        Classes that cannot be protected under the thresholds; nothing is masked for them.
    """

    minority: Integers
    majority: Integers
    infeasible: Flags


def allot(
    sizes: npt.ArrayLike,
    masking_class: npt.ArrayLike,
    *,
    k_target: int,
    threshold_majority: float = 1.0,
    threshold_minority: float = 0.5,
) -> Allotment:
    """Decide how many records of each class are masked.

    Small classes are served by rising size, those of one size in the order given. Each masks as few of its own
    records as it can (C = 1, 2, ...) such that the masked records outside it, together with as many more of the
    large classes as are needed, reach ``ceil(A (k_target - A) / C)``.

    Parameters
    ----------
    sizes, masking_class
        Records of each class, and the number of its masking class.
    k_target
        The class size whose protection is to be reached.
    threshold_majority, threshold_minority
        The largest share that may be masked: of the records in large classes of a masking class, and of a small
        class.

    Examples
    --------
    >>> plan = allot([40, 6, 3], [0, 0, 0], k_target=10)
    >>> plan.minority.tolist(), plan.majority.tolist()
    ([0, 1, 1], [23])
    """
    size, inside = np.asarray(sizes, dtype=np.int64), np.asarray(masking_class, dtype=np.int64)
    minority = np.zeros(len(size), dtype=np.int64)
    majority = np.zeros(int(inside.max()) + 1, dtype=np.int64)
    infeasible = np.zeros(len(size), dtype=np.bool_)
    large = np.bincount(inside, weights=np.where(size >= k_target, size, 0))
    # Shares such as 0.1 are not exact: 0.1 * 30 must allow 3 records.
    room = np.floor(large * threshold_majority + 1e-9).astype(np.int64)
    own_room = np.floor(size * threshold_minority + 1e-9).astype(np.int64)
    masked = np.zeros_like(majority)
    small = np.flatnonzero(size < k_target)
    for index in small[np.lexsort((small, size[small]))]:
        group = inside[index]
        own = np.arange(1, own_room[index] + 1)
        needed = -(-size[index] * (k_target - size[index]) // own)
        extra = np.maximum(needed - masked[group], 0)
        possible = np.flatnonzero(majority[group] + extra <= room[group])
        if not len(possible):
            infeasible[index] = True
            continue
        first = possible[0]
        minority[index] = own[first]
        majority[group] += extra[first]
        masked[group] += own[first] + extra[first]
    return Allotment(minority, majority, infeasible)


def protection(sizes: npt.ArrayLike, masked: npt.ArrayLike, masking_class: npt.ArrayLike) -> pl.DataFrame:
    """Say how well each class is protected by what is masked in it and around it.

    Columns: ``A``, ``B``, ``C``, ``D``, ``E`` as above, ``effective_k``, ``single_attempt_risk`` (the chance that
    one try is right, which masking does not lower), and the expected number of attempts of an intruder who tries
    the unmasked records first (never the worst order for them), the masked ones first, or all mixed.

    Examples
    --------
    >>> protection([7, 3], [3, 1], [0, 0])["effective_k"].round(4).to_list()
    [7.4286, 4.0]
    """
    size, hidden = np.asarray(sizes, dtype=np.int64), np.asarray(masked, dtype=np.int64)
    inside = np.asarray(masking_class, dtype=np.int64)
    everywhere = np.bincount(inside, weights=hidden)[inside].astype(np.int64)
    A, C, E = size, hidden, everywhere
    B, D = A - C, E - C
    return pl.DataFrame(
        {
            "A": A,
            "B": B,
            "C": C,
            "D": D,
            "E": E,
            "effective_k": A + C * D / A,
            "single_attempt_risk": 1 / A,
            "attempts_unmasked_first": (A + 1) / 2 + C * D / (2 * A),
            "attempts_masked_first": (A + 1) / 2 + D * (A + B) / (2 * A),
            "attempts_mixed": (A + 1) / 2 + D / 2,
        }
    )
