"""Differentially private k-anonymity: release a random sample, coarsened, without its small classes."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import polars as pl

from discreet import dp, engine
from discreet.core.arrays import Flags
from discreet.core.constraints import Above, AtLeast, ColumnName, ColumnNames, HoldsValues, Share
from discreet.core.errors import ColumnError, DiscreetWarning, ParameterError, need_known
from discreet.core.guarantees import DifferentialPrivacy
from discreet.core.method_cards import method
from discreet.core.parameters import checked
from discreet.core.values import canonical_text
from discreet.dp.entropy import Stream
from discreet.dp.sensitivity import refuse_several_records
from discreet.hierarchy import Hierarchy
from discreet.microdata import Microdata
from discreet.protect.coded_columns import coded_key
from discreet.protect.global_recoding import hierarchies_of
from discreet.protect.lattice_classes import Lattice, Node
from discreet.protect.treatment import Change, Treatment, existing

Score = Literal["granularity", "classification", "group-size"]

_SMALL_LATTICE = 10_000
_SMALLEST_EPSILON = 1e-4
_OTHERS_KEPT = "columns that are not keys were kept, which k records need not share."


@method(
    aim="guarantee",
    work="whole-file",
    references=(
        "Li, N., Qardaji, W. and Su, D. (2012). On sampling, anonymization, and differential privacy: or, "
        "k-anonymization meets differential privacy. ASIACCS 2012, 32–33.",
        "Bild, R., Kuhn, K. A. and Prasser, F. (2018). SafePub: a truthful data anonymization algorithm "
        "with strong privacy guarantees. Proceedings on Privacy Enhancing Technologies 2018(1), 67–87. "
        "doi:10.1515/popets-2018-0004",
    ),
    tells=("heights", "ledger", "plan"),
)
@dataclass(frozen=True)
class SampleAndAnonymize(Treatment):
    """Release a random sample of true records, coarsened and without small classes, with differential privacy.

    It protects against telling from the release whether somebody was in the file at all, and so against every
    attack that needs this, with a proved bound (epsilon, delta).

    Every record is kept with the same chance, the keys are coarsened to levels chosen privately, and classes with
    fewer than k records are left out, where k follows from the budget. No value is invented and none is noisy.
    Only the keys (and targets) are released, because everything released has to be shared by k records.

    Also known as: SafePub; random sampling and k-anonymity.

    Parameters
    ----------
    epsilon, delta
        The budget of the whole release. ``delta`` should be well below one in the number of records.
    sampling_rate
        The chance of each record to be sampled; ``"auto"`` for the rate that needs the smallest classes relative
        to the sample, ``"max"`` for the largest possible, which makes k explode as epsilon grows.
    hierarchies
        ``{key: Hierarchy}``, fixed without looking at this file. A key without one is kept or becomes ``*``.
    keys
        The columns to release; the keys of the data unless named.
    score
        What a good choice of levels keeps: ``granularity`` (fine levels, few suppressed records),
        ``classification`` (the targets stay predictable), ``group-size`` (many classes).
    target
        The columns to stay predictable, for ``score="classification"``. They are released as they are, and count
        for the size of a class.
    search_fraction
        The share of epsilon spent on choosing the levels.
    steps
        Expansions of the private search, where the lattice has more than 10,000 nodes; smaller ones are drawn
        from as a whole.
    others
        ``drop`` all other columns, or ``keep`` them, which leaves no guarantee.
    arx_compatible
        Use a k larger by one, as ARX does.

    Notes
    -----
    A Bernoulli sample, coarsened in a way that does not depend on it, whose classes below k are removed, is
    differentially private (Li, Qardaji and Su 2012). For that the levels are chosen by the exponential mechanism
    on a second sample, independent of the one released; both parts then compose. Records are released in random
    order. The privacy is that of one record: a file with a role ``person`` or ``contributor`` is refused, and
    households are not covered as a whole. Samples and the choice of levels are drawn exactly (`discreet.dp`), without
    a seed from the operating system; with one nothing is guaranteed. Exact counts (removed records, changed cells) are
    in the internal log only.

    What is released is what was counted: every released column is written as text (``1`` and ``1.0`` are both ``1``),
    with ``*`` at the top of its hierarchy, and neither types, lists of levels, labels nor other columns of the file go
    out with it. No record decides whether there is a release: values that a hierarchy does not know count as missing,
    and how many they are is in the internal log. So are warnings about the size of the file, because they depend on
    the number of records.

    What it costs
    -------------
    Most of the records, all other columns, and detail of the keys. What is left is true.

    When not to use it
    ------------------
    Do not use it on small files, where nothing survives the threshold, nor where a person has several
    records: the guarantee is about one. Do not publish counts of the internal log, nor the number of records of the
    file, beside it. Hierarchies must not come from the file.

    Examples
    --------
    >>> people = pl.DataFrame({"sex": ["f", "m"] * 2000, "age": [31, 34, 42, 48] * 1000})
    >>> release = SampleAndAnonymize(epsilon=2, delta=1e-6, hierarchies={"age": Hierarchy.intervals([10, 50])}).apply(
    ...     Microdata(people, keys=["sex", "age"])
    ... )
    >>> release.log[0].parameters["k"], release.log[0].parameters["sampling_rate"]
    (14, 0.3)
    >>> release.guarantee
    '(2, 1e-06)-differential privacy against adding or removing one record, ...'
    """

    follow_from_parameters: ClassVar[frozenset[str]] = frozenset(
        {"heights", "k", "sampling_rate", "gamma", "ledger", "plan"}
    )
    drawn_privately: ClassVar[frozenset[str]] = frozenset({"levels"})

    epsilon: Annotated[float, AtLeast(_SMALLEST_EPSILON)]
    delta: Annotated[float, Share(above=True, below=True)] = 1e-6
    sampling_rate: float | Literal["auto", "max"] = "auto"
    hierarchies: Annotated[Mapping[str, Hierarchy], HoldsValues(by_column=True)] = field(default_factory=dict)
    keys: ColumnName | ColumnNames | None = None
    score: Score = "granularity"
    target: ColumnName | ColumnNames | None = None
    search_fraction: Annotated[float, Share(above=True, below=True)] = 0.1
    steps: Annotated[int, AtLeast(1)] = 300
    others: Literal["drop", "keep"] = "drop"
    arx_compatible: bool = False

    def __post_init__(self) -> None:
        dp.checked_epsilon(self.epsilon)
        object.__setattr__(self, "hierarchies", hierarchies_of(self.hierarchies))
        if (self.score == "classification") != (self.target is not None):
            raise ParameterError("score='classification' needs a target, and no other score has one.")
        if not isinstance(self.sampling_rate, str):
            smallest_k(self._release_epsilon, self.delta, self.sampling_rate)

    @property
    def _search_epsilon(self) -> float:
        return self.search_fraction * self.epsilon

    @property
    def _release_epsilon(self) -> float:
        return self.epsilon - self._search_epsilon

    def treat(self, data: Microdata, stream: Stream) -> Change:
        """Choose the levels privately, sample, coarsen, and leave small classes out."""
        keys = self._keys(data)
        need_known(self.hierarchies, keys, what="key", before="In hierarchies: ")
        targets = () if self.target is None else existing(data, self.target, treatment=self.name)
        table = engine.collect(data, list(dict.fromkeys([*keys, *targets])))
        table, unknown = self._known(table)
        rate, k, plan = self._sized()
        coded = [coded_key(table[key], self.hierarchies.get(key)) for key in keys]
        claim = self._claim(table.columns)
        stream.enter(claim, _OTHERS_KEPT, purpose=f"sample of {', '.join(keys)}")
        trial = table.filter(_sampled(rate, table.height, stream.words("trial sample")))
        heights = tuple(key.height for key in coded)
        node = _Choice(self, trial, keys, targets, heights=heights, k=k).draw(stream.words("levels"))
        # From here on there are texts: what a class is counted by is what goes out, to the last character.
        released = table.with_columns(
            _as_text(key.released(table[key.name], level), top=level == key.height)
            for key, level in zip(coded, node, strict=True)
        ).with_columns(_as_text(table[name]) for name in targets if name not in keys)
        sampled = _sampled(rate, table.height, stream.words("sample"))
        sizes = released.with_columns(sampled.alias("\0sampled")).select(
            pl.len().over([*released.columns, "\0sampled"])
        )
        keep = sampled & (sizes.to_series() >= k)
        left = int(keep.sum())
        order = dp.shuffled(left, stream.words("order"))
        if not left:
            warnings.warn(
                "Every sampled record was suppressed: the release is empty.", DiscreetWarning, stacklevel=3
            )
        return Change(
            columns={name: released[name] for name in released.columns},
            keep=keep,
            order=order,
            frame=released.filter(keep)[order] if self.others == "drop" else None,
            notes=self._notes(data, rate, k),
            parameters={
                "levels": dict(zip(keys, node, strict=True)),
                "heights": dict(zip(keys, heights, strict=True)),
                "k": k,
                "sampling_rate": rate,
                "gamma": telling_share(self._release_epsilon, rate),
                "ledger": {
                    "levels": {"epsilon": self._search_epsilon, "delta": 0.0},
                    "release": {"epsilon": self._release_epsilon, "delta": self.delta},
                },
                **({"plan": plan.to_dicts()} if plan is not None else {}),
            },
            internal={
                "sampled": int(sampled.sum()),
                "released": left,
                "suppressed": int(sampled.sum()) - left,
                "classes": released.filter(keep).n_unique() if left else 0,
                "unknown_to_hierarchies": unknown,
                "warnings": self._warnings(k, rate, table.height),
            },
            private=claim,
            why_none=_OTHERS_KEPT,
        )

    def _known(self, table: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, int]]:
        """Take values that a hierarchy does not know for missing, and count them for the house.

        To refuse the file would tell for nothing that somebody has such a value. Record by record it changes nothing in
        who is a neighbor of whom.
        """
        covered = {name: own.covers(table[name]) for name, own in self.hierarchies.items()}
        held = table.with_columns(
            pl.when(known).then(pl.col(name)).alias(name) for name, known in covered.items()
        )
        return held, {name: int((~known).sum()) for name, known in covered.items()}

    def _keys(self, data: Microdata) -> list[str]:
        """Name the columns to release; whether they hold anything is not looked at, as that would tell of records."""
        keys = list(existing(data, self.keys or data.roles.keys, treatment=self.name))
        named = [name for name in keys if name in data.roles.identifiers]
        if named:
            raise ColumnError(f"Column '{named[0]}' is a direct identifier. Leave it out of the keys.")
        if self.others == "drop":
            refuse_several_records(data)
        return keys

    def _sized(self) -> tuple[float, int, pl.DataFrame | None]:
        """Settle the sampling rate and k from the budget alone."""
        epsilon, plan = self._release_epsilon, None
        if self.sampling_rate == "auto":
            best = sampling_plan(epsilon, self.delta)
            rate, k, plan = best.rate, best.k, best.table
        else:
            top = highest_rate(epsilon)
            rate = top if self.sampling_rate == "max" else min(float(self.sampling_rate), top)
            k = smallest_k(epsilon, self.delta, rate)
        return rate, k + int(self.arx_compatible), plan

    def _warnings(self, k: int, rate: float, records: int) -> list[str]:
        """Say where the budget does not fit the file; it depends on the number of records, and stays in the house."""
        said = []
        if self.delta * records > 1:
            said.append(
                f"delta={self.delta:g} is above one in the number of records: releasing one record at random as it "
                "is would be as private. Choose a smaller delta."
            )
        if k > rate * records:
            said.append(
                f"Classes need {k:,} records, more than are sampled of this file on average: nearly everything will "
                "be suppressed. Raise epsilon or delta, or take a larger file."
            )
        return said

    def _notes(self, data: Microdata, rate: float, k: int) -> tuple[str, ...]:
        notes = [
            f"Each record was sampled with chance {rate:.4g}; classes with fewer than {k} records were left out.",
            *(["Values that a hierarchy does not know count as missing."] if self.hierarchies else []),
        ]
        if data.roles.household:
            notes.append("The file has several records for a household. The guarantee is about one record.")
        if self.others == "keep":
            notes.append(
                "Columns that are not keys were kept. They are not shared by k records, so there is no guarantee."
            )
        return tuple(notes)

    def _claim(self, released: Sequence[str]) -> DifferentialPrivacy | None:
        if self.others == "keep":
            return None
        return DifferentialPrivacy(
            self.epsilon,
            self.delta,
            against="adding or removing one record",
            covers=f", for the released columns {', '.join(released)}, with hierarchies that do not come from this "
            "file",
        )


class _Choice:
    """The private choice of a node: a better score makes it likelier, never certain."""

    def __init__(
        self,
        asked: SampleAndAnonymize,
        sample: pl.DataFrame,
        keys: Sequence[str],
        targets: Sequence[str],
        *,
        heights: Node,
        k: int,
    ) -> None:
        self.score, self.k, self.heights, self.targets = asked.score, k, heights, targets
        self.epsilon, self.steps = asked._search_epsilon, asked.steps
        self.lattice = (
            Lattice(Microdata(sample), keys, asked.hierarchies, (), targets) if sample.height else None
        )
        if asked.score == "granularity":
            self.sensitivity = max(k - 1, 1)
        else:
            self.sensitivity = k * len(targets) if asked.score == "classification" else 1
        self._scores: dict[Node, int | Fraction] = {}

    def draw(self, words: dp.Words) -> Node:
        """Choose a node with all of the budget for the search."""
        many = int(np.prod([height + 1 for height in self.heights], dtype=object))
        if many <= _SMALL_LATTICE:
            nodes = list(itertools.product(*(range(height + 1) for height in self.heights)))
            return self._mechanism(nodes, dp.rational_epsilon(self.epsilon), words)
        return self._walk(words)

    def _walk(self, words: dp.Words) -> Node:
        """Expand from the top, one private choice a step, and choose privately among the nodes visited."""
        each = dp.rational_epsilon(self.epsilon, self.steps + 1)
        pivot = self.heights
        visited, candidates = [pivot], {pivot}
        for _ in range(self.steps):
            candidates.discard(pivot)
            for key, level in enumerate(pivot):
                finer = (*pivot[:key], level - 1, *pivot[key + 1 :])
                if level and finer not in visited:
                    candidates.add(finer)
            if not candidates:
                break
            pivot = self._mechanism(sorted(candidates), each, words)
            visited.append(pivot)
        return self._mechanism(visited, each, words)

    def _mechanism(self, nodes: Sequence[Node], epsilon: Fraction, words: dp.Words) -> Node:
        """Draw a node with chances proportional to exp(epsilon score / (2 sensitivity))."""
        scores = [self._scored(node) for node in nodes]
        return nodes[dp.chosen_privately(scores, epsilon, self.sensitivity, words)]

    def _scored(self, node: Node) -> int | Fraction:
        if node not in self._scores:
            self._scores[node] = self._score(node)
        return self._scores[node]

    def _score(self, node: Node) -> int | Fraction:
        """Score a node in whole numbers and fractions: what is drawn from it is to be exact."""
        if self.lattice is None:
            return 0
        table = self.lattice.table(node)
        kept = table.sizes >= self.k
        if self.score == "group-size":
            return int(kept.sum()) + int(not kept.all())
        if self.score == "classification":
            return sum(self._predictable(table.values(target), kept) for target in self.targets)
        stay = int(table.sizes[kept].sum())
        levels = [Fraction(level, top) for level, top in zip(node, self.heights, strict=True)]
        coarse = sum(levels, Fraction(0)) / len(levels)
        return -(stay * coarse + self.lattice.records - stay)

    @staticmethod
    def _predictable(counts: Any, kept: Flags) -> int:
        """Count the records of kept classes that have the commonest target value of their class."""
        return int(np.maximum.reduceat(counts.counts, counts.starts[:-1])[kept].sum())


def _sampled(rate: float, records: int, words: dp.Words) -> pl.Series:
    """Sample every record with exactly this chance."""
    return pl.Series(dp.bernoulli([Fraction(rate)], np.zeros(records, dtype=np.int64), words))


def _as_text(column: pl.Series, *, top: bool = False) -> pl.Series:
    """Write a released column as text: neither its type nor the list of its levels is taken from the file.

    At the top of a hierarchy every value is ``*``, so that not even the label tells whether anybody had a value.
    """
    if top:
        return pl.repeat("*", len(column), dtype=pl.String, eager=True).alias(column.name)
    return canonical_text(column.fill_nan(None) if column.dtype.is_float() else column).alias(column.name)


# A Bernoulli sample, generalized in a way that does not depend on it, of which only classes of at least k records are
# released, is (epsilon, delta)-differentially private if k is large enough (Li, Qardaji, Su 2012; Bild, Kuhn, Prasser
# 2018). The smallest such k is found exactly.


_CAUTION = 1 + 1e-9
_GRID = tuple(round(0.05 * step, 2) for step in range(1, 20))


def highest_rate(epsilon: float) -> float:
    """Give the largest sampling rate that a budget admits: 1 - exp(-epsilon).

    Examples
    --------
    >>> round(highest_rate(0.9), 6)
    0.59343
    """
    # Rounded down: a rate a last digit above the bound would not be covered by the proof.
    top = -math.expm1(-epsilon)
    return math.nextafter(math.nextafter(top, 0.0), 0.0)


def telling_share(epsilon: float, rate: float) -> float:
    """Give the share gamma of a class above which its sampled size tells too much about one member.

    Examples
    --------
    >>> round(telling_share(0.9, highest_rate(0.9)), 6)
    0.834701
    """
    return 1.0 - (1.0 - rate) * math.exp(-epsilon)


def delta_of(k: int, epsilon: float, rate: float) -> float:
    """Bound the chance that a released class of at least ``k`` records tells too much.

    The largest P[Bin(n, rate) > gamma n] over all n that can give k records. Terms are added until the Chernoff
    bound exp(-n KL(gamma, rate)), which falls in n, rules out that a later one is larger.

    Examples
    --------
    >>> f"{delta_of(44, 0.9, highest_rate(0.9)):.4e}"
    '9.8983e-05'
    """
    from scipy.stats import binom

    gamma = telling_share(epsilon, rate)
    # 1 - gamma is (1 - rate) exp(-epsilon), which stays a number where gamma is rounded to 1.
    spread = gamma * math.log(gamma / rate) - (1 - rate) * math.exp(-epsilon) * epsilon
    n = max(math.ceil(k / gamma - 1 - 1e-9), 1)
    worst, length = 0.0, 64
    while True:
        sizes = np.arange(n, n + length)
        # A product that rounding lifts over a whole number must not shorten the tail.
        least = np.maximum(np.floor(gamma * sizes * (1 - 1e-13)) + 1, k)
        worst = max(worst, float(binom.sf(least - 1, sizes, rate).max()))
        n += length
        length = min(2 * length, 65_536)
        if math.exp(-n * spread) <= worst or n * spread > 745:
            return worst * _CAUTION


def smallest_k(epsilon: float, delta: float, rate: float) -> int:
    """Find the smallest class size at which a sample of this rate is (epsilon, delta)-private.

    Parameters
    ----------
    epsilon, delta
        The budget of the release; epsilon without what is spent on choosing the levels.
    rate
        The sampling rate.

    Examples
    --------
    >>> smallest_k(0.9, 1e-4, 0.2), smallest_k(0.9, 1e-4, highest_rate(0.9))
    (10, 44)
    """
    top = highest_rate(epsilon)
    if not 0 < rate <= top * (1 + 1e-12):
        raise ParameterError(
            f"sampling_rate must be above 0 and at most {top:.6f}, which is the most that epsilon={epsilon:g} for "
            "the release admits."
        )
    high = 2
    while delta_of(high, epsilon, rate) > delta:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if delta_of(middle, epsilon, rate) > delta:
            low = middle
        else:
            high = middle
    return max(high, 2)


@dataclass(frozen=True)
class SamplingPlan:
    """What sampling rates cost, and the one that gives the finest classes.

    ``table`` has for each ``rate`` the class size ``k`` and ``k_per_rate``, the size in records of the file.
    """

    rate: float
    k: int
    table: pl.DataFrame


@checked
def sampling_plan(
    epsilon: Annotated[float, Above(0)],
    delta: Annotated[float, Share(above=True, below=True)],
    rates: Sequence[float] | None = None,
) -> SamplingPlan:
    """Choose the sampling rate that needs the smallest classes, relative to what is sampled.

    Nothing of the data is looked at: k(rate) / rate is the size of the smallest class that is expected to be
    released, counted in the file.

    Parameters
    ----------
    epsilon, delta
        The budget of the release; epsilon without what is spent on choosing the levels.
    rates
        The rates to choose from; 0.05, 0.10, … and the highest possible unless given.

    Examples
    --------
    >>> plan = sampling_plan(0.9, 1e-4)
    >>> plan.rate, plan.k
    (0.25, 12)
    """
    top = highest_rate(epsilon)
    chosen = [rate for rate in _GRID if rate < top] + [top] if rates is None else list(rates)
    table = pl.DataFrame(
        {"rate": chosen, "k": [smallest_k(epsilon, delta, rate) for rate in chosen]}
    ).with_columns(k_per_rate=pl.col("k") / pl.col("rate"))
    best = table.sort("k_per_rate", "rate", descending=[False, True]).row(0, named=True)
    return SamplingPlan(best["rate"], best["k"], table)
