"""Each measure as its definition says it, in plain Python and without a thought for speed.

Records are tuples of key values; ``None`` is missing. A class is the list of sensitive values of its records.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from itertools import combinations

import numpy as np
from scipy.optimize import linprog


def classes_of(keys, sensitive=None):
    """Gather the records of each combination, and what they say."""
    found = defaultdict(list)
    for i, key in enumerate(keys):
        if not tells(key):
            continue
        found[key].append(sensitive[i] if sensitive is not None else i)
    return dict(found)


def tells(key):
    """Whether a record says anything about whom it belongs to: one of which no key is known is in no class."""
    return any(value is not None for value in key) if isinstance(key, tuple) else key is not None


def telling(keys):
    return [key for key in keys if tells(key)]


def k(keys):
    return min(Counter(keys).values())


def pue(keys):
    sizes = Counter(keys).values()
    return sum(size == 1 for size in sizes) / len(sizes)


def agree(one, other):
    return all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))


def neighborhoods(keys):
    """Count, for each record, the records it agrees with wherever both are known; None for one in no class."""
    others = telling(keys)
    return [sum(agree(one, other) for other in others) if tells(one) else None for one in keys]


def company(keys):
    """What a record can rely on: complete equals where it is complete, else its neighborhood."""
    found = zip(keys, neighborhoods(keys), strict=True)
    return [keys.count(one) if None not in one else size for one, size in found if size is not None]


def shares(values):
    return {value: count / len(values) for value, count in Counter(values).items()}


def l_distinct(members):
    return len(set(members))


def l_entropy(members):
    return math.exp(-sum(p * math.log(p) for p in shares(members).values()))


def l_recursive(members, c):
    ranked = sorted(Counter(members).values(), reverse=True)
    held = [i + 1 for i in range(len(ranked)) if ranked[0] < c * sum(ranked[i:])]
    return max(held, default=0)


def total_variation(members, everyone):
    p, q = shares(members), shares(everyone)
    return sum(abs(p.get(value, 0) - q[value]) for value in q) / 2


def kullback_leibler(members, everyone):
    p, q = shares(members), shares(everyone)
    return sum(p[value] * math.log(p[value] / q[value]) for value in p)


def earth_mover(members, everyone, distance):
    """Move one distribution onto the other at least cost, as a linear program."""
    p, q = shares(members), shares(everyone)
    values = list(q)
    m = len(values)
    cost = [distance(a, b) for a in values for b in values]
    leaves = np.kron(np.eye(m), np.ones(m))
    arrives = np.kron(np.ones(m), np.eye(m))
    bound = [p.get(value, 0.0) for value in values] + [q[value] for value in values]
    return linprog(cost, A_eq=np.vstack([leaves, arrives]), b_eq=bound, method="highs").fun


def ordered_distance(everyone):
    """Ranks of the values, missing last, over the number of steps there are."""
    known = sorted({value for value in everyone if value is not None})
    rank = {value: i for i, value in enumerate([*known, None])}
    steps = max(len(set(everyone)) - 1, 1)
    return lambda a, b: abs(rank[a] - rank[b]) / steps


def tree_distance(paths, height):
    """Height at which two values meet over the full height; ``paths`` list the groups of a value, bottom up."""

    def meet(a, b):
        return next((i for i in range(height + 1) if paths[a][i] == paths[b][i]), height) / height

    return meet


def beta(members, everyone):
    p, q = shares(members), shares(everyone)
    return max((p[value] - q[value]) / q[value] for value in p)


def breaks_cap(members, everyone):
    p, q = shares(members), shares(everyone)
    return any((p[value] - q[value]) / q[value] > -math.log(q[value]) + 1e-12 for value in p)


def delta(members, everyone):
    p, q = shares(members), shares(everyone)
    return max(abs(math.log(p[value] / q[value])) for value in p)


def alpha(members, protected=None):
    p = shares(members)
    return max((p[value] for value in p if protected is None or value in protected), default=0.0)


def journalist(sample, population):
    """Risks of the records when the intruder knows only the population: maximum and mean."""
    theirs = Counter(population)
    risks = [1 / theirs[key] for key in sample]
    return max(risks), sum(risks) / len(risks)


def presence(sample, population):
    ours, theirs = Counter(sample), Counter(population)
    chances = [ours[key] / theirs[key] for key in theirs]
    return min(chances), max(chances)


def distinction(keys):
    return len(set(keys)) / len(keys)


def separation(keys):
    pairs = list(combinations(keys, 2))
    return sum(a != b for a, b in pairs) / len(pairs)
