"""How mixed are the leaves of a tree? Gini impurity, of trees trained on either file and tried on the original."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.errors import ColumnError, InputError, unknown_name
from discreet.microdata import Microdata, require_microdata
from discreet.randomness import generator
from discreet.results import Detail, Measure, shown
from discreet.utility.propensity.cart import Cart
from discreet.utility.propensity.stacking import Floats, Stack, compared_columns, stack


def tree_impurity(
    original: Microdata,
    released: Microdata,
    target: str,
    *,
    columns: str | Sequence[str] | None = None,
    categorical: str | Sequence[str] = (),
    tree: Mapping[str, Any] | None = None,
) -> Measure:
    """Does a tree trained on the release sort the original's people as cleanly as one trained on the original?

    A classification tree for ``target`` is grown on each file. The original's records are dropped through both, and
    the Gini impurity 1 - Σ p² of the leaves, weighted by the records in them, says how mixed they are.

    Parameters
    ----------
    original, released
        The two files.
    target
        A category (or a number of few values) to sort people by.
    columns, categorical
        What to sort by (every other column but identifiers and weights unless named), and which are codes.
    tree
        ``cp``, ``minsplit``, ``minbucket``, ``maxdepth``, as for `pmse`.

    Returns
    -------
    Measure
        ``value`` is the difference: impurity left by the release's tree less that left by the original's tree.
        ``figures``: ``root``, ``original``, ``released``, ``difference``, ``leaves_original``, ``leaves_released``.
        ``detail``: ``leaves`` with size and impurity of every leaf of both trees.

    How to read it
    --------------
    ``root`` is how mixed the file is before any question is asked; ``original`` is what the original's own tree
    leaves of it. A difference of 0 says that the release teaches the same questions. A difference as large as
    ``root`` less ``original`` says that it teaches nothing.

    When not to trust it
    --------------------
    The original's tree is tried on the records it was trained on and looks better than it is. Trees are unstable: two
    samples of one population give different ones, so that small differences mean nothing. It is no test.

    Examples
    --------
    >>> town = pl.DataFrame({"age": [20, 21, 22, 60, 61, 62] * 5, "works": ["n", "n", "n", "y", "y", "y"] * 5})
    >>> found = tree_impurity(Microdata(town), Microdata(town), "works", tree={"minsplit": 2, "minbucket": 1})
    >>> found.figures["root"], found.figures["original"], found.value
    (0.5, 0.0, 0.0)
    """
    require_microdata(original, "original")
    if target not in original.schema:
        raise ColumnError(f"{unknown_name(target, original.columns)} It was named as target.")
    names = [name for name in compared_columns(original, released, columns) if name != target]
    if not names:
        raise ColumnError(
            "There is no column to sort people by besides the target. Name some with columns=[…]."
        )
    coded = [categorical] if isinstance(categorical, str) else list(categorical)
    stacked = stack(original, released, [*names, target], categorical=[*coded, target], aggregate=False)
    held = {column.name: column for column in stacked.columns}
    if target not in held:
        raise InputError(f"'{target}' has the same value in every record, so there is nothing to sort by.")
    outcome = held.pop(target)
    classes, levels = np.asarray(outcome.values), len(outcome.levels)
    predictors = Stack(tuple(held.values()), stacked.released, None, None)
    settings = Cart.of(dict(tree or {}))
    real = ~stacked.released
    found = {
        file: _leaves(predictors, classes, levels, rows, real, settings)
        for file, rows in (("original", real), ("released", stacked.released))
    }
    root = gini_impurity(np.bincount(classes[real], minlength=levels))
    left = {file: float(sizes @ impurity / sizes.sum()) for file, (sizes, impurity) in found.items()}
    gap = left["released"] - left["original"]

    def leaves() -> pl.DataFrame:
        return pl.concat(
            pl.DataFrame({"tree": [file] * len(sizes), "records": sizes, "impurity": impurity})
            for file, (sizes, impurity) in found.items()
        )

    return Measure(
        name="tree_impurity",
        value=gap,
        figures={
            "root": root,
            **left,
            "difference": gap,
            "leaves_original": len(found["original"][0]),
            "leaves_released": len(found["released"][0]),
        },
        meaning=(
            f"Before any question the people of the original are mixed by {shown(root)} in '{target}'; a tree trained "
            f"on the original leaves {shown(left['original'])}, one trained on the release {shown(left['released'])}."
        ),
        caveats=[*stacked.notes, "The original's tree is tried on the records it was trained on."],
        parameters={"target": target, "columns": names, "tree": dict(tree or {})},
        detail=Detail(leaves=lambda: engine.like(original, leaves())),
    )


def _leaves(  # noqa: PLR0917
    predictors: Stack, classes: Any, levels: int, train: Any, test: Any, settings: Cart
) -> tuple[Floats, Floats]:
    """Grow a tree on some records; count and judge the others that end in each leaf."""
    from discreet.trees.pruning import grow_pruned

    ready = settings.prepare(predictors)
    rng = generator(0)
    grown = grow_pruned(
        np.asfortranarray(ready.codes[train]),
        ready.features,
        classes[train].astype(np.int32),
        levels,
        rng=rng,
        min_leaf=int(settings.minbucket),
        min_split=int(settings.minsplit),
        cp=float(settings.cp),
        max_depth=int(settings.maxdepth),
    )
    leaf = grown.leaves(np.asfortranarray(ready.codes[test]), rng)
    counts = np.bincount(leaf * np.int64(levels) + classes[test], minlength=grown.n_leaves * levels)
    table = counts.reshape(grown.n_leaves, levels).astype(np.float64)
    reached = table[table.sum(axis=1) > 0]
    return reached.sum(axis=1), gini_impurity(reached)


def gini_impurity(counts: Any) -> Any:
    """Give the Gini impurity 1 - Σ p² of class counts, one row a node.

    Examples
    --------
    >>> gini_impurity([[5, 5], [2, 0], [1, 3]]).tolist()
    [0.5, 0.0, 0.375]
    """
    table = np.atleast_2d(np.asarray(counts, dtype=np.float64))
    impurity = 1 - ((table / table.sum(axis=1, keepdims=True)) ** 2).sum(axis=1)
    return float(impurity[0]) if np.ndim(counts) == 1 else impurity
