"""How fast are trees grown, and do coded columns cost anything in fit?

    python bench/trees.py [records ...]

One tree (leaves of 5 or more) on 14 mixed predictors: six continuous numbers, ages, and categories of 2 to 300
levels. The peer, scikit-learn's DecisionTree, knows no categories: it sees their codes as numbers. Seconds are of
the processor, so that a busy machine changes little; coding the columns is counted apart, since a synthesizer codes
each column once for all its trees. Fit is the share of the variance, or of the Gini impurity, left in the leaves of
the training records, and for numbers the share left in as many new records.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from discreet.numerics.trees.coding import MAX_BINS, Feature, encode
from discreet.numerics.trees.forest import grow_forest
from discreet.numerics.trees.growing import grow_classification, grow_pruned, grow_regression

LEVELS = (2, 5, 7, 15, 16, 42, 300)


def records(n: int, seed: int = 0) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(seed)
    numbers = [rng.normal(size=n) for _ in range(6)] + [rng.integers(17, 90, n).astype(float)]
    categories = [rng.integers(0, levels, n) for levels in LEVELS]
    y = numbers[0] + numbers[1] * (categories[4] % 3) + np.abs(numbers[2]) + rng.normal(size=n)
    return numbers, categories, y + (categories[6] * 7919 % 11) / 5


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def compare(n: int, rng: np.random.Generator) -> None:
    numbers, categories, y = records(n)
    features = [Feature.numeric(column) for column in numbers] + [Feature.category(k) for k in LEVELS]
    coding, codes = timed(lambda: encode(features, numbers + categories))
    learning, _ = timed(lambda: [Feature.numeric(column) for column in numbers])
    table = np.column_stack(numbers + categories).astype(np.float32)
    print(f"\n{n:,} records: learning cuts {learning:.2f} s, coding {coding:.2f} s")
    print(f"{'outcome':<22} {'discreet':>9} {'sklearn':>9} {'ratio':>7} {'leaves':>16} {'left (train)':>15}")
    for title, classes in (("number", 0), ("2 classes", 2), ("9 classes", 9), ("500 classes", 500)):
        target = np.digitize(y, np.quantile(y, np.linspace(0, 1, classes + 1)[1:-1])) if classes else y
        if classes:
            ours, tree = timed(
                lambda t=target, k=classes: grow_classification(
                    codes, features, t, k, min_split=10, cp=0, rng=rng
                )
            )
            peer: Any = DecisionTreeClassifier(min_samples_leaf=5, random_state=0)
        else:
            ours, tree = timed(lambda: grow_regression(codes, features, y, min_split=10, cp=0, rng=rng))
            peer = DecisionTreeRegressor(min_samples_leaf=5, random_state=0)
        line = f"{title:<22} {ours:>9.2f} "
        if n * max(classes, 1) > 60_000_000:
            print(f"{line} {'(too long)':>9}")
            continue
        theirs, peer = timed(lambda p=peer, t=target: p.fit(table, t))
        nodes = peer.tree_
        at_leaf = nodes.children_left < 0
        left = (nodes.impurity * nodes.weighted_n_node_samples)[at_leaf].sum()
        left /= nodes.impurity[0] * nodes.weighted_n_node_samples[0]
        mine = tree.risk / tree.figures[0, 2]
        leaves = f"{tree.n_leaves:,}/{at_leaf.sum():,}"
        print(f"{line} {theirs:>9.2f} {theirs / ours:>7.1f} {leaves:>16} {mine:>7.3f}/{left:.3f}")
    seconds, _ = timed(lambda: grow_pruned(codes, features, y > np.median(y), 2, rng=rng))
    print(f"{'propensity, pruned':<22} {seconds:>9.2f}")
    seconds, tree = timed(lambda: grow_regression(codes, features, y, rng=rng))
    drawing, _ = timed(lambda: tree.draw(codes, rng))
    print(f"{'drawing donors':<22} {drawing:>9.2f}")
    if n <= 100_000:
        seconds, _ = timed(lambda: grow_forest(codes, features, y, rng=rng))
        print(f"{'forest of 10 trees':<22} {seconds:>9.2f}")


def cuts(n: int, rng: np.random.Generator) -> None:
    """Does it pay to cut a number more finely?"""
    numbers, categories, y = records(n)
    new_numbers, new_categories, new_y = records(n, seed=1)
    print(f"\ncuts of a number at most ({n:,} records; {MAX_BINS:,} is the default)")
    for most in (256, 1024, 4096, 16384):
        features = [Feature.numeric(column, max_bins=most) for column in numbers]
        features += [Feature.category(k) for k in LEVELS]
        codes = encode(features, numbers + categories)
        seconds, tree = timed(lambda f=features, c=codes: grow_regression(c, f, y, rng=rng))
        reached = tree.leaves(encode(features, new_numbers + new_categories), rng)
        left = ((new_y - tree.leaf_means[reached]) ** 2).mean() / new_y.var()
        trained = tree.risk / tree.figures[0, 2]
        print(f"{most:>8,} cuts {seconds:>7.2f} s, left {trained:.4f} (training) {left:.4f} (new records)")


def main() -> None:
    rng = np.random.default_rng(0)
    numbers, categories, y = records(500)
    features = [Feature.numeric(column) for column in numbers] + [Feature.category(k) for k in LEVELS]
    codes = encode(features, numbers + categories)
    first, tree = timed(lambda: grow_regression(codes, features, y, rng=rng))
    print(f"first tree of the process, compiling or reading compiled code: {first:.1f} s")
    tree.draw(codes, rng)
    grow_pruned(codes, features, y > 1, 2, rng=rng)
    sizes = [int(argument) for argument in sys.argv[1:]] or [50_000, 1_000_000]
    cuts(min(sizes), rng)
    for n in sizes:
        compare(n, rng)
    print(
        f"\npeak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB, scikit-learn's included"
    )


if __name__ == "__main__":
    main()
