"""The elimination as the method note tells it: fractions in dictionaries, topmost row first, nothing clever.

The tests and the benchmark hold the compiled version against it.
"""

from __future__ import annotations

from fractions import Fraction


def plain_secondary(x, primary, candidates, *, forced=(), zero_method="none", strict=False, special_rows=(),
                    contributors=None, singleton_method=()):  # fmt: skip
    """Secondary cells in order, for columns without duplicates. ``x`` is a dense array or a sparse matrix."""
    x = x.tocsc() if hasattr(x, "tocsc") else x
    height = x.shape[0]
    special = set(special_rows) if zero_method in {"subspace", "any_sum"} else set()
    label = contributors or [None] * height
    methods = set(singleton_method)
    if not methods & {"within", "parallel", "combinations"}:
        label = [None] * height
    last = [row for row in range(height) if row in special or label[row] is not None]
    first = [row for row in range(height) if row not in set(last)]
    orders = [first + last]
    if "parallel" in methods:
        orders.append(first + last[::-1])
    sweeps = [
        _Plain(_columns(x, [*forced, *candidates]), _columns(x, primary), order, special, label, zero_method,
               strict, methods)
        for order in orders
    ]  # fmt: skip
    found = []
    for i, cell in enumerate([*forced, *candidates]):
        if i >= len(forced) and any(sweep.rejects(i) for sweep in sweeps):
            found.append(cell)
        else:
            for sweep in sweeps:
                sweep.publish(i)
    return found


def _columns(x, cells):
    if hasattr(x, "indptr"):
        at = x.indptr
        return [
            {int(r): Fraction(int(v)) for r, v in zip(x.indices[at[j]:at[j + 1]], x.data[at[j]:at[j + 1]], strict=True)}
            for j in cells
        ]  # fmt: skip
    return [{row: Fraction(int(x[row, j])) for row in range(x.shape[0]) if x[row, j]} for j in cells]


class _Plain:
    def __init__(self, columns, primaries, order, special, label, zero_method, strict, methods):
        self.columns, self.primaries = columns, primaries
        self.place = {row: place for place, row in enumerate(order)}
        self.special, self.label, self.methods = special, label, methods
        self.zero_method, self.strict = zero_method, strict
        self.used = set()
        self.owner = [self.only_label(b) for b in primaries]

    def only_label(self, column):
        labels = {self.label[row] for row in column}
        return labels.pop() if len(labels) == 1 else None

    def rejects(self, i):
        c = self.columns[i]
        if not c:
            return False
        if self.special and all(row in self.special for row in c):
            signs = {value > 0 for value in c.values()}
            if self.zero_method == "subspace" or len(signs) == 1 or self.used & c.keys():
                return True
        labels = {self.label[row] for row in c}
        if "combinations" in self.methods and None not in labels and len(labels) <= 2:
            return True
        r = min(c, key=self.place.get)
        for b, owner in zip(self.primaries, self.owner, strict=True):
            if r not in b:
                continue
            left = _taken_off(b, c, r)
            if self.strict and r not in self.special and all(row in self.special for row in left):
                return True
            if not left:
                return True
            if "within" in self.methods:
                who = {self.label[row] for row in left}
                if len(who) == 1 and who != {None} and who != {owner}:
                    return True
        return False

    def publish(self, i):
        c = self.columns[i]
        if not c:
            return
        r = min(c, key=self.place.get)
        if self.special and all(row in self.special for row in c):
            self.used |= c.keys()
        for columns, start in ((self.columns, i + 1), (self.primaries, 0)):
            for j in range(start, len(columns)):
                if r in columns[j]:
                    columns[j] = _taken_off(columns[j], c, r)


def _taken_off(v, c, r):
    factor = v[r] / c[r]
    left = dict(v)
    for row, value in c.items():
        left[row] = left.get(row, 0) - factor * value
        if not left[row]:
            del left[row]
    return left
