"""The classes of a file at any node of its generalization lattice, rolled up from finer nodes.

Every key is coded once at every level of its hierarchy. From then on only the distinct combinations of key
values, with their counts, are looked at: a class at a coarser node is a union of classes at a finer one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Array, Codes, Flags, Floats, Integers
from discreet.engine import ClassCounts
from discreet.engine.comparable import distinct_values
from discreet.hierarchy import Hierarchy
from discreet.microdata import Microdata
from discreet.numerics import loss
from discreet.protect import coded_columns
from discreet.protect.privacy_models import Classes, KMap, PrivacyModel

Node = tuple[int, ...]
"""A level for each key."""

_CACHED_BYTES = 256 * 2**20


@dataclass(frozen=True)
class ClassTable:
    """The classes of a file at one node.

    Attributes
    ----------
    node
        The level of each key.
    rows, sizes
        A base row and the number of records of each class; classes without records (known only from a
        population) come last.
    extras
        Sums over the classes: weights, or people of the population.
    entries
        For each sensitive column class, value and count of every combination that occurs, in order.
    domains
        The distinct values of each sensitive column.
    """

    node: Node
    rows: Integers
    all_sizes: Integers
    extras: Mapping[int, Floats]
    entries: Mapping[str, tuple[Integers, Integers, Integers]]
    domains: Mapping[str, pl.Series]
    slots: Mapping[KMap, int]

    @cached_property
    def sizes(self) -> Integers:
        """The number of records of each class that has any."""
        if not self.extras:
            return self.all_sizes
        return self.all_sizes[: int(np.count_nonzero(self.all_sizes))]

    def values(self, column: str) -> ClassCounts:
        """Give the sparse counts of a sensitive column."""
        owners, codes, counts = self.entries[column]
        starts = np.searchsorted(owners, np.arange(len(self.sizes) + 1)).astype(np.int64)
        return ClassCounts(pl.DataFrame, self.domains[column], starts, codes, counts)

    def population(self, model: KMap) -> Floats:
        """Give the number of people behind each class."""
        return self.extras[self.slots[model]][: len(self.sizes)]

    @property
    def nbytes(self) -> int:
        """Roughly what it takes to keep the table."""
        return 16 * len(self.rows) + 24 * sum(len(owners) for owners, _, _ in self.entries.values())


class Lattice:
    """All levels of all keys of a file, and the classes at each of its nodes.

    ``columns`` has a row for every record; or, ``by_classes``, for every combination of keys and sensitive values that
    occurs, and ``many`` says how many records have it: nothing else of the file is brought home then. Neither people
    with several records nor weights are known that way.
    """

    def __init__(
        self,
        data: Microdata,
        keys: Sequence[str],
        hierarchies: Mapping[str, Hierarchy],
        models: Sequence[PrivacyModel] = (),
        others: Sequence[str] = (),
        *,
        by_classes: bool = False,
    ) -> None:
        maps = list(dict.fromkeys(model for model in models if isinstance(model, KMap)))
        sensitive = list(dict.fromkeys([c for model in models for c in model.columns] + list(others)))
        people = [coded_columns.people_of(model, keys) for model in maps]
        self.columns, self.many = _read(data, [*keys, *sensitive], by_classes=by_classes)
        self.keys = [
            coded_columns.coded_key(
                self.columns[key],
                hierarchies.get(key),
                [frame[key] for frame in people if frame is not None],
                self.many,
            )
            for key in keys
        ]
        self.records = int(self.many.sum())
        self.units = None if by_classes else engine.unit_column(data)
        self.heights: Node = tuple(key.height for key in self.keys)
        self.nodes = int(np.prod([height + 1 for height in self.heights], dtype=object))
        self._first = np.concatenate([[0], np.cumsum([h + 1 for h in self.heights])]).astype(np.int64)
        self._widths = [[int(codes.max()) + 1 for codes in key.codes] for key in self.keys]
        weights = {
            name: engine.collect(data, [str(engine.resolve_weight(data, name))]).to_series().cast(pl.Float64)
            for name in (model.weight for model in maps)
            if name
        }
        self._watched = coded_columns.Watched(
            {name: distinct_values(self.columns[name]) for name in sensitive},
            {name: weight.to_numpy() for name, weight in weights.items()},
            self.units,
        )
        self._build(people, maps)

    def judged(self, table: ClassTable) -> Classes:
        """Give the classes of a table as models are to see them: in people, where a role says whose records are."""
        if self.units is None:
            return table
        owners = self.owners_of_base(table.node)
        # The table numbers its classes in its own way; each has a base row by which it is recognized.
        number = np.empty(int(owners.max()) + 1, dtype=np.int64)
        number[owners[table.rows]] = np.arange(len(table.rows))
        return coded_columns.Pieces(
            number[owners[self.base_of_record]], len(table.sizes), self._watched, table
        )

    def _build(self, people: Sequence[pl.DataFrame | None], maps: Sequence[KMap]) -> None:
        """Find the distinct combinations of key values of the file, and of the population beyond it."""
        populations = [frame for frame in people if frame is not None]
        leaves = np.column_stack([key.records for key in self.keys])
        blocks = [leaves] + [
            np.column_stack([key.outsiders[i] for key in self.keys]) for i in range(len(populations))
        ]
        leaf_codes = np.vstack(blocks).astype(np.int32)
        n = self.columns.height
        present = np.zeros(len(leaf_codes), dtype=np.int64)
        present[:n] = self.many
        first_columns = np.arange(len(self.keys), dtype=np.int64)
        widths = [len(key.counts) for key in self.keys]
        owners, rows, sizes = _merged(leaf_codes, first_columns, widths, np.arange(len(leaf_codes)), present)
        self.base_of_record: Integers = owners[:n]
        gone = pl.select(pl.all_horizontal(self.columns[key.name].is_null() for key in self.keys)).to_series()
        silent = gone.arg_max() if gone.any() else None
        # The base row of records without a single known key, which are in no class.
        self._silent = -1 if silent is None else int(owners[silent])
        base = leaf_codes[rows]
        self._codes = np.ascontiguousarray(
            np.column_stack([codes[base[:, j]] for j, key in enumerate(self.keys) for codes in key.codes]),
            dtype=np.int32,
        )
        extras: dict[int, Floats] = {}
        after = n
        for slot, (frame, model) in enumerate(zip(people, maps, strict=True)):
            if frame is not None:
                extras[slot] = _sums(owners[after : after + frame.height], np.ones(frame.height), len(rows))
                after += frame.height
            elif model.weight:
                extras[slot] = _sums(owners[:n], self._watched.weights[model.weight], len(rows))
        watched = self._watched.sensitive
        bottom = ClassTable(
            (0,) * len(self.keys),
            np.arange(len(rows), dtype=np.int64),
            sizes,
            extras,
            {
                name: _tallied(owners[:n], codes, self.many, len(domain))
                for name, (domain, codes) in watched.items()
            },
            {name: domain for name, (domain, _) in watched.items()},
            {model: slot for slot, model in enumerate(maps)},
        )
        self._keep([bottom])

    @property
    def base(self) -> ClassTable:
        """The classes at the bottom node."""
        return self._tables[0]

    def columns_at(self, node: Node) -> Integers:
        """Give the code column of each key at a node."""
        return self._first[:-1] + np.asarray(node, dtype=np.int64)

    def table(self, node: Node) -> ClassTable:
        """Give the classes at a node, merged from the smallest finer table at hand."""
        source: ClassTable = self._by_size.first_finer(node)
        if source.node == node:
            return source
        widths = [self._widths[j][level] for j, level in enumerate(node)]
        owners, rows, sizes = _merged(
            self._codes, self.columns_at(node), widths, source.rows, source.all_sizes
        )
        table = (
            self._joined(source, owners, node)
            if source.entries or source.extras
            else ClassTable(node, rows, sizes, {}, {}, {}, {})
        )
        self._remember(table)
        return table

    def _remember(self, table: ClassTable) -> None:
        """Keep the table to roll up from; when they fill their space, the older half goes."""
        self._tables.append(table)
        self._by_size.add(len(table.rows), table.node, table)
        self._kept_bytes += table.nbytes
        if self._kept_bytes > _CACHED_BYTES:
            self._keep([self.base, *self._tables[len(self._tables) // 2 + 1 :]])

    def _keep(self, tables: list[ClassTable]) -> None:
        self._tables = tables
        self._kept_bytes = sum(table.nbytes for table in tables)
        self._by_size = RankedNodes(len(self.keys))
        for table in tables:
            self._by_size.add(len(table.rows), table.node, table)

    def owners_of_base(self, node: Node) -> Integers:
        """Say to which class at a node each base row belongs, in the numbering of `fresh_table`."""
        widths = [self._widths[j][level] for j, level in enumerate(node)]
        owners, _, _ = _merged(
            self._codes, self.columns_at(node), widths, self.base.rows, self.base.all_sizes
        )
        return owners

    def fresh_table(self, node: Node) -> ClassTable:
        """Give the classes at a node merged straight from the bottom, which fixes their numbering."""
        return self._joined(self.base, self.owners_of_base(node), node)

    def violations_together(self, node: Node, models: Sequence[PrivacyModel]) -> tuple[str, ...]:
        """Name the models that all violating classes of a node, taken as one, still do not meet."""
        table = self.fresh_table(node)
        violating = self.violating(table, models)
        if not violating.any():
            return ()
        gathered = np.ones(len(table.rows), dtype=np.int64)
        gathered[: len(violating)] = np.where(violating, 0, 1)
        # The suppressed must come first, where classes with records are expected.
        together: Classes = self._joined(table, gathered, node)
        if self.units is not None:
            of_record = gathered[self.owners_of_base(node)[self.base_of_record]]
            together = coded_columns.Pieces(of_record, len(together.sizes), self._watched, together)
        return tuple(model.name for model in models if model.violations(together)[0])

    def violating(self, table: ClassTable, models: Sequence[PrivacyModel]) -> Flags:
        """Say which classes of a table violate some of the models."""
        judged = self.judged(table) if models else table
        violating = np.zeros(len(table.sizes), dtype=np.bool_)
        for model in models:
            violating |= model.violations(judged)
        if all(level < height for level, height in zip(table.node, self.heights, strict=True)):
            violating[table.rows[: len(violating)] == self._silent] = False
        return violating

    def _joined(self, source: ClassTable, owners: Integers, node: Node) -> ClassTable:
        """Merge classes as numbered by ``owners``."""
        many = int(owners.max()) + 1
        rows = np.empty(many, dtype=np.int64)
        rows[owners[::-1]] = source.rows[::-1]
        return ClassTable(
            node,
            rows,
            _sums(owners, source.all_sizes, many).astype(np.int64),
            {slot: _sums(owners, extra, many) for slot, extra in source.extras.items()},
            {
                column: _tallied(owners[old], codes, counts, len(source.domains[column]))
                for column, (old, codes, counts) in source.entries.items()
            },
            source.domains,
            source.slots,
        )

    def cell_costs(self, kind: str, weights: Sequence[float]) -> list[loss.CellCosts]:
        """Work out the costs of a cell loss for each key, with weights that add up to one."""
        total = float(sum(weights))
        return [
            loss.cell_costs(kind, key.codes, key.counts, key.shares).scaled(weight / total)
            for key, weight in zip(self.keys, weights, strict=True)
        ]

    def flat_costs(self, costs: Sequence[loss.CellCosts]) -> tuple[Integers, Floats]:
        """Lay the costs out for the kernel: where each code column begins, and all costs."""
        parts = [kept for key in costs for kept in key.kept]
        offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])])[:-1].astype(np.int64)
        return offsets, np.concatenate(parts)

    def total_cost(
        self, table: ClassTable, offsets: Integers, costs: Floats, violating: Flags, suppressed: float
    ) -> float:
        """Add up what all records cost at the node of the table, those of violating classes suppressed."""
        from discreet.protect.lattice_kernels import total_cost

        columns = self.columns_at(table.node)
        return float(
            total_cost(self._codes, columns, offsets, costs, table.rows, table.sizes, violating, suppressed)
        )


def _read(data: Microdata, columns: Sequence[str], *, by_classes: bool) -> tuple[pl.DataFrame, Integers]:
    """Read the columns record by record, or every combination of them with the number of its records."""
    names = list(dict.fromkeys(columns))
    if by_classes:
        return engine.counted_combinations(data, names)
    table = engine.collect(data, names)
    return table, np.ones(table.height, dtype=np.int64)


def _merged(
    codes: Codes, columns: Integers, widths: Sequence[int], rows: Integers, sizes: Integers
) -> tuple[Integers, Integers, Integers]:
    from discreet.protect.lattice_kernels import merge_classes

    radix, place = [], 1
    for width in widths:
        radix.append(place)
        place *= width
    exact = place <= 2**64
    if not exact:
        # Any odd multipliers make a hash; these are powers of one that mixes well.
        radix = [pow(0xD1342543DE82EF95, j + 1, 2**64) for j in range(len(widths))]
    owners, new_rows, new_sizes = merge_classes(
        codes, columns, np.array(radix, dtype=np.uint64), exact, rows, sizes
    )
    return owners, new_rows, new_sizes


def _sums(owners: Integers, amounts: Array, many: int) -> Floats:
    return np.asarray(np.bincount(owners, weights=amounts, minlength=many), dtype=np.float64)


def _tallied(
    owners: Integers, codes: Integers, counts: Integers, width: int
) -> tuple[Integers, Integers, Integers]:
    """Add up the counts by class and value, in that order."""
    pairs = owners * width + codes
    order = np.argsort(pairs)
    ranked = pairs[order]
    begin = np.flatnonzero(np.diff(ranked, prepend=-1))
    return ranked[begin] // width, ranked[begin] % width, np.add.reduceat(counts[order], begin)


# Nodes of a lattice in order of a number, asked for the first one that is finer than another.


class RankedNodes:
    """Nodes with a rank and an item each, smallest rank first.

    Examples
    --------
    >>> known = RankedNodes(keys=2)
    >>> known.add(3.0, (0, 0), "bottom")
    >>> known.add(1.0, (1, 0), "one up")
    >>> known.first_finer((1, 1)), known.first_finer((0, 1)), known.first_finer((0, -1))
    ('one up', 'bottom', None)
    """

    def __init__(self, keys: int) -> None:
        self._ranks: list[float] = []
        self._items: list[Any] = []
        self._nodes = np.empty((64, keys), dtype=np.int64)

    def __len__(self) -> int:
        return len(self._items)

    def add(self, rank: float, node: tuple[int, ...], item: Any) -> None:
        """Put a node in its place."""
        many = len(self._items)
        if many == len(self._nodes):
            self._nodes = np.concatenate([self._nodes, np.empty_like(self._nodes)])
        at = bisect_right(self._ranks, rank)
        self._nodes[at + 1 : many + 1] = self._nodes[at:many]
        self._nodes[at] = node
        self._ranks.insert(at, rank)
        self._items.insert(at, item)

    def first_finer(self, node: tuple[int, ...]) -> Any:
        """Give the item of the first node that is nowhere coarser, None where there is none."""
        from discreet.protect.lattice_kernels import first_finer

        at = first_finer(self._nodes, len(self._items), np.array(node, dtype=np.int64))
        return None if at < 0 else self._items[at]
