"""Private synthesis from a tree of two-way margins."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet import dp, engine
from discreet.arrays import Floats, Integers
from discreet.errors import ColumnError, ParameterError, unknown_name
from discreet.guarantees import DifferentialPrivacy, settled
from discreet.microdata import Columns, Microdata, require_microdata
from discreet.randomness import Seed
from discreet.synth.belonging import units_left_out
from discreet.synth.private_marginals.declaring import declared
from discreet.synth.private_marginals.fitted_tree import FittedTree
from discreet.synth.private_marginals.measuring import (
    Grouping,
    agreeing,
    best_margin,
    grouped,
    noisy_counts,
    on_simplex,
    variance_of,
)
from discreet.synth.synthesizer import Stream, Synthesizer, empty_like, seed_of

_SPLIT = (0.2, 0.1, 0.7)  # of rho: columns by themselves, the choice of pairs, the pairs


@dataclass(frozen=True)
class MST(Synthesizer):
    """Which records would agree with noisy tables of pairs of columns, chosen so that they say most?

    Every column is counted by itself; pairs of columns are chosen one by one, those that differ most from
    independence first, until they connect all columns in a tree; the pairs are counted; and records are drawn along
    the tree. Counts carry Gaussian noise, choices are made by the exponential mechanism, and the price is added up
    in zero-concentrated differential privacy (McKenna, Miklau and Sheldon 2021, winner of the NIST 2018 challenge).
    Numbers are counted in fine bins that are put together until they stand out from the noise, so that no borders
    need be guessed.

    Parameters
    ----------
    epsilon, delta
        The privacy budget.
    domain
        ``{column: [levels]}``, or ``(low, high)`` for a number. Every column needs one unless its type has it (Enum,
        Boolean): what is read off the data is not protected. Numbers beyond the range count as its end, undeclared
        levels as missing.
    never_missing
        Columns that cannot be missing. All others may be, whatever the data say.
    bins
        How many fine bins a number is counted in at most; whole numbers of a smaller range have one each.
    groups
        About how many groups of bins a number has in the tables of pairs.
    max_cells
        Largest table of a pair.
    leave_out
        Columns that the synthetic file shall not have.

    When not to use it
    ------------------
    Relations of three columns at once are kept only as far as they follow from pairs, and numbers only as finely as
    their bins. Under a small budget or with few records most of what is left is the columns by themselves. Without a
    need for a guarantee `Sequential` keeps far more.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"sex": ["f", "m"] * 500, "works": [True, False] * 500})
    >>> fitted = MST(epsilon=1.0, domain={"sex": ["f", "m"]}).fit(Microdata(people))
    >>> print(fitted.guarantee.split(" for ")[0])
    (1, 1e-06)-differential privacy against adding or removing one record
    >>> fitted.sample(3).frame.shape
    (3, 2)
    """

    epsilon: float
    delta: float = 1e-6
    domain: Mapping[str, Any] | None = None
    never_missing: Columns = None
    bins: int = 128
    groups: int = 16
    max_cells: int = 10_000_000
    leave_out: Columns = None

    def __post_init__(self) -> None:
        dp.checked_epsilon(self.epsilon)
        if isinstance(self.delta, bool) or not isinstance(self.delta, int | float) or not 0 < self.delta < 1:
            raise ParameterError("delta must lie between 0 and 1, and be neither.")
        for name, least in (("bins", 2), ("groups", 2), ("max_cells", 4)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ParameterError(f"{name} must be a whole number of {least} or more.")

    def fit(
        self,
        data: Microdata,
        *,
        progress: bool = False,
        ledger: dp.Ledger | None = None,
        seed: Seed = None,
    ) -> FittedTree:
        """Measure the file; with a ledger the price is entered before noise is drawn."""
        require_microdata(data)
        if ledger is not None and seed is not None:
            raise ParameterError(
                "A ledger takes releases with a guarantee, and a seed voids it. Leave out one of the two."
            )
        left_out = self._left_out(data)
        names = [name for name in data.columns if name not in left_out]
        if len(names) < 2:
            raise ParameterError("A tree needs at least two columns. Name fewer columns in leave_out.")
        frame = engine.collect(data, names)
        never = _listed(self.never_missing)
        attributes = [
            declared(frame[name], (self.domain or {}).get(name), bins=self.bins, never_missing=name in never)
            for name in names
        ]
        codes = [attribute.encode(frame[attribute.name]) for attribute in attributes]
        if ledger is not None:
            ledger.spend(
                dp.Cost(
                    "mst", "approximate", epsilon=self.epsilon, delta=self.delta, purpose="synthetic file"
                )
            )
        stream = Stream(seed_of(seed), "mst", seeded=seed is not None)
        ordered = [attribute.bins if attribute.edges is not None else 0 for attribute in attributes]
        sizes = [attribute.size for attribute in attributes]
        measured = _Measured.of(self, codes, sizes, ordered, stream)
        fitted = FittedTree(
            empty_like(data, frame),
            max(round(measured.records), 1),
            attributes=attributes,
            groupings=measured.groupings,
            edges=measured.edges,
            tables=measured.tables(),
            left_out=left_out,
        )
        claim = DifferentialPrivacy(
            self.epsilon,
            self.delta,
            covers=" for the tree and its tables, and so for any number of files drawn from it; the declared domain "
            "counts as public",
        )
        fitted.guarantee, fitted.why_none = settled(claim, "", seeded=stream.seeded)
        return fitted

    def _left_out(self, data: Microdata) -> dict[str, str]:
        for setting, named in (
            ("leave_out", _listed(self.leave_out)),
            ("domain", tuple(self.domain or {})),
            ("never_missing", _listed(self.never_missing)),
        ):
            for name in named:
                if name not in data.schema:
                    raise ColumnError(f"{unknown_name(name, data.columns)} It was named under {setting}.")
        left_out = dict.fromkeys(_listed(self.leave_out), "as asked for")
        left_out |= {n: "an identifier" for n in data.roles.identifiers if n not in left_out}
        if data.roles.weight and data.roles.weight not in left_out:
            left_out[data.roles.weight] = "the weight: one record would count many times"
        return left_out | units_left_out(data, None, left_out)


@dataclass(frozen=True, eq=False)
class _Measured:
    """What was measured: columns in groups, the pairs of the tree, and their noisy tables."""

    records: float
    groupings: Sequence[Grouping]
    margins: Sequence[tuple[Floats, Floats]]
    edges: Sequence[tuple[int, int]]
    pairs: Sequence[Floats]
    variance: float

    @classmethod
    def of(
        cls,
        plan: MST,
        codes: Sequence[Integers],
        sizes: Sequence[int],
        ordered: Sequence[int],
        stream: Stream,
    ) -> _Measured:
        rho = dp.largest_rho(plan.epsilon, plan.delta)
        alone, choice, pairs = (part * rho for part in _SPLIT)
        many = len(codes)
        single = variance_of(alone, many)
        counts = [
            noisy_counts(own, size, single, stream.words("column", str(place)))
            for place, (own, size) in enumerate(zip(codes, sizes, strict=True))
        ]
        # Every table adds up to the number of records, the shorter ones with less noise.
        records = max(
            float(np.average([own.sum() for own in counts], weights=[1 / size for size in sizes])), 1.0
        )
        spread = math.sqrt(single)
        groupings = [
            grouped(own, records, spread, order, plan.groups)
            for own, order in zip(counts, ordered, strict=True)
        ]
        together = [each.group[own] for each, own in zip(groupings, codes, strict=True)]
        margins = [_margin(own, each, float(single)) for own, each in zip(counts, groupings, strict=True)]
        tree = _tree(plan, together, groupings, margins, records, choice, stream)
        both = variance_of(pairs, len(tree))
        tables = [
            noisy_counts(
                together[a] * groupings[b].size + together[b],
                groupings[a].size * groupings[b].size,
                both,
                stream.words("pair", str(place)),
            ).reshape(groupings[a].size, groupings[b].size)
            for place, (a, b) in enumerate(tree)
        ]
        return cls(records, groupings, margins, tree, tables, float(both))

    def tables(self) -> list[Floats]:
        """The tables of the tree, made to agree with each other."""
        known = [[margin] for margin in self.margins]
        for (a, b), table in zip(self.edges, self.pairs, strict=True):
            rows, columns = table.shape
            known[a].append((table.sum(axis=1), np.full(rows, self.variance * columns)))
            known[b].append((table.sum(axis=0), np.full(columns, self.variance * rows)))
        margins = [best_margin(estimates, self.records) for estimates in known]
        return [
            agreeing(table, margins[a], margins[b])
            for (a, b), table in zip(self.edges, self.pairs, strict=True)
        ]


def _margin(counts: Floats, grouping: Grouping, variance: float) -> tuple[Floats, Floats]:
    """The noisy counts of groups, and their variance."""
    levels = np.bincount(grouping.group, minlength=grouping.size).astype(np.float64)
    sums = np.bincount(grouping.group, weights=counts, minlength=grouping.size)
    return sums.astype(np.float64), levels * variance


def _tree(  # noqa: PLR0917
    plan: MST,
    codes: Sequence[Integers],
    groupings: Sequence[Grouping],
    margins: Sequence[tuple[Floats, Floats]],
    records: float,
    rho: float,
    stream: Stream,
) -> list[tuple[int, int]]:
    """Choose pairs privately until they connect all columns, those farthest from independence first.

    The distance is the sum of absolute differences from a table of whole numbers that carries noise already; a record
    moves it by one at most.
    """
    estimates = [on_simplex(counts, records) for counts, _ in margins]
    scores: dict[tuple[int, int], int] = {}
    for a in range(len(codes)):
        for b in range(a + 1, len(codes)):
            cells = groupings[a].size * groupings[b].size
            if cells > plan.max_cells:
                continue
            counts = np.bincount(codes[a] * groupings[b].size + codes[b], minlength=cells)
            expected = np.rint(np.outer(estimates[a], estimates[b]).ravel() / records).astype(np.int64)
            scores[a, b] = int(np.abs(counts - expected).sum())
    # A choice of budget epsilon is epsilon²/8 in rho, because the exponential mechanism is bounded in range.
    each = dp.rational_epsilon(math.sqrt(8 * rho / (len(codes) - 1)))
    component = list(range(len(codes)))
    chosen: list[tuple[int, int]] = []
    words = stream.words("pairs")
    while len(chosen) < len(codes) - 1:
        open_ = [pair for pair in scores if component[pair[0]] != component[pair[1]]]
        if not open_:
            raise ParameterError(
                f"Tables of pairs would pass max_cells={plan.max_cells:,}. Raise it, or declare fewer levels."
            )
        pair = open_[dp.chosen_privately([scores[one] for one in open_], each, 1, words)]
        chosen.append(pair)
        old, new = component[pair[0]], component[pair[1]]
        component = [new if each_ == old else each_ for each_ in component]
    return chosen


def _listed(columns: Columns) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else tuple(columns or ())
