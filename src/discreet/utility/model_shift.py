"""Does a model learn the same from the release? Impurity of trees, and which features a forest relies on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Array, Floats, Integers
from discreet.core.cards import Figure, OfPair, measure
from discreet.core.charts import Chart, Dots, Row, number, rows_of
from discreet.core.constraints import AtLeast, ColumnName, ColumnNames
from discreet.core.errors import InputError, need_known
from discreet.core.randomness import Seed, generator, some_rows
from discreet.core.results import Measure
from discreet.core.wording import percent, shown
from discreet.microdata import Microdata
from discreet.pairs.side_by_side import DEPENDENT, compared_columns, copies_of, names_checked

Importance = Literal["impurity", "permutation"]

_MOST_BARS = 15


def _importance_pictures(found: Measure, show_values: bool) -> Iterator[Chart]:
    rows = rows_of(found, "variables", "column", "importance_before", "importance_after")
    kept = rows[:_MOST_BARS]
    if kept:
        yield Dots(
            title="What a model relies on, before and after",
            series=("Released", "Original"),
            rows=tuple(
                Row(str(row["column"]), (number(row["importance_after"]), number(row["importance_before"])))
                for row in kept
            ),
            axis="Share of a feature in the importance of all",
        )


@measure(
    room="utility",
    work="whole-file",
    title="Trees of a target",
    question="Does a tree grown on the release separate real groups as well?",
    headline="more impurity",
    chapter="specific",
    place=4,
    figures={"value": Figure(better="lower"), "change": Figure(better="lower", summary=True)},
    compare=OfPair(10, "utility", usual=False, one_type=True),
)
def gini_change(
    original: Microdata,
    released: Microdata,
    target: ColumnName,
    *,
    columns: ColumnName | ColumnNames | None = None,
    categorical: ColumnName | ColumnNames = (),
    max_leaves: Annotated[int, AtLeast(2)] = 16,
    min_leaf: Annotated[int, AtLeast(1)] = 5,
    groups: int = 5,
    seed: Seed = 0,
) -> Measure:
    """Does a tree grown on the release separate the original's groups as well as one grown on the original?

    A classification tree of the target is grown on each file, and both are held against the original: the Gini
    impurity of a leaf is 1 - Σp², that of a tree the mean over its leaves, weighted by records.

    Also known as: Gini coefficient; Lorenz curve.

    Parameters
    ----------
    original, released
        The file before and after.
    target
        What the tree is to predict; numbers are cut into groups.
    columns
        The features; all columns that both files have unless named.
    categorical
        Columns of numbers that are codes.
    max_leaves, min_leaf
        How large the trees grow, and how many records a leaf needs.
    groups
        Groups of a numeric target.
    seed
        Decides between splits that are equally good.

    Returns
    -------
    Measure
        ``value`` is the impurity, on the original, of the tree grown on the release minus that of the tree grown on
        the original. ``figures``: ``root``, ``gini_original``, ``gini_released``, ``change``, ``gini_released_own``
        (of the release's tree on the release), ``explained_original``, ``explained_released`` (share of the root's
        impurity that is gone), ``leaves_original``, ``leaves_released``. ``detail``: ``leaves``, one row a leaf of
        either tree, with records and impurity on the original.

    How to read it
    --------------
    0 means that the release teaches a tree as much about the target as the original does. A change as large as
    ``root`` minus ``gini_original`` means that it teaches nothing. Compare ``explained_released`` with
    ``explained_original``: both say which share of the disorder the tree takes away.

    When not to trust it
    --------------------
    Trees are fickle: a small change of the data moves the first split, and the tree of the original has seen the
    records it is held against while that of the release has not, so a small loss is to be expected. A target with one
    dominant level has little impurity to begin with. See `importance_shift` for a steadier picture.

    Examples
    --------
    >>> people = pl.DataFrame({"age": list(range(40)), "old": ["no"] * 20 + ["yes"] * 20})
    >>> found = gini_change(Microdata(people), Microdata(people), "old")
    >>> found.value, found.figures["root"], found.figures["gini_original"]
    (0.0, 0.5, 0.0)
    """
    from sklearn.tree import DecisionTreeClassifier

    copies_of(released, original)
    coded = names_checked(original, categorical, "categorical")
    held = design(original, released, target, columns, categorical=coded, groups=groups)
    x, y = held.features[0], held.targets[0]
    trees, rows = [], []
    for side, name in ((0, "original"), (1, "release")):
        state = int(generator(seed, "gini").integers(2**31))
        tree = DecisionTreeClassifier(
            max_leaf_nodes=max_leaves, min_samples_leaf=min_leaf, random_state=state
        )
        tree.fit(held.features[side], held.targets[side])
        trees.append(tree)
        records, impurity = leaf_impurity(tree.apply(x), y)
        rows += [
            {"tree": name, "leaf": place, "records": int(many), "impurity": float(gini)}
            for place, (many, gini) in enumerate(zip(records, impurity, strict=True))
        ]
    root = tree_impurity(np.zeros(len(y), dtype=np.int64), y)
    ours, theirs = (tree_impurity(tree.apply(x), y) for tree in trees)
    own = tree_impurity(trees[1].apply(held.features[1]), held.targets[1])
    table = pl.DataFrame(rows)
    return Measure(
        name="gini_change",
        value=theirs - ours,
        figures={
            "root": root,
            "gini_original": ours,
            "gini_released": theirs,
            "change": theirs - ours,
            "gini_released_own": own,
            "explained_original": 1 - ours / root if root > 0 else None,
            "explained_released": 1 - theirs / root if root > 0 else None,
            "leaves_original": int(trees[0].get_n_leaves()),
            "leaves_released": int(trees[1].get_n_leaves()),
        },
        meaning=(
            f"A tree for '{target}' grown on the original leaves an impurity of {shown(ours)} of {shown(root)}, one "
            f"grown on the release {shown(theirs)}, both on the original."
        ),
        caveats=[*_said(held), DEPENDENT],
        parameters={
            "target": target,
            "columns": list(held.columns),
            "categorical": list(coded),
            "max_leaves": max_leaves,
            "min_leaf": min_leaf,
            "groups": groups,
            "needs_alignment": False,
            "inference_valid": False,
        },
        detail=engine.tables_like(original, leaves=table),
    )


@measure(
    room="utility",
    work="whole-file",
    title="Importance of features",
    question="Does a model rely on the same features?",
    headline="of the importance moved",
    chapter="specific",
    place=3,
    figures={"value": Figure(better="lower"), "shift": Figure(better="lower", summary=True)},
    compare=OfPair(9, "utility", usual=False, one_type=True),
    pictures=_importance_pictures,
)
def importance_shift(
    original: Microdata,
    released: Microdata | Sequence[Microdata],
    target: ColumnName,
    *,
    columns: ColumnName | ColumnNames | None = None,
    categorical: ColumnName | ColumnNames = (),
    importance: Importance = "impurity",
    trees: Annotated[int, AtLeast(2)] = 200,
    min_leaf: Annotated[int, AtLeast(1)] = 5,
    max_records: Annotated[int, AtLeast(10)] = 100_000,
    seed: Seed = 0,
) -> Measure:
    """Does a model of a target rely on the same features after protection?

    A random forest of the target is fitted to each file, and the importances of its features, as shares, are compared.

    Parameters
    ----------
    original, released
        The file before and after; or a list of copies, over which the importances are averaged.
    target
        What the forest is to predict: classes, or a number.
    columns
        The features; all columns that both files have unless named.
    categorical
        Columns of numbers that are codes.
    importance
        ``"impurity"``: what splits on a feature gained, summed over the trees; ``"permutation"``: how much worse the
        forest predicts the original once the feature's values there are shuffled.
    trees, min_leaf
        Of the forest.
    max_records
        Larger files are sampled down to this many records.
    seed
        Of the forests and the sample.

    Returns
    -------
    Measure
        ``value`` is half the sum of the absolute differences of the shares, from 0 to 1. ``figures``: ``shift``,
        ``shift_by_chance`` (between two forests of the original with other seeds), ``rank_correlation``,
        ``same_first``, ``largest_shift``, ``score_original``, ``score_released`` (out of bag: accuracy or R²).
        ``detail``: ``variables``, importances before and after, the largest shift first; ``copies``.

    How to read it
    --------------
    The value is the share of the importance that sits on other features than before. Hold it against
    ``shift_by_chance``: what lies near it is only the forests' own randomness. A feature that loses its importance
    has lost its relation with the target; one that gains may have taken over from a correlated one, which is harmless.

    When not to trust it
    --------------------
    Importances of correlated features are shared out by chance. Those by impurity favor features with many values.
    Where ``score_original`` is near that of a guess, importances mean nothing. It is about one target: a release can
    pass here and fail for another.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(200) % 20
    >>> people = Microdata(pl.DataFrame({"a": x, "b": np.arange(200) % 7, "y": (x > 9).astype(int)}))
    >>> found = importance_shift(people, people, "y", categorical="y", trees=20)
    >>> found.value, found.figures["same_first"]
    (0.0, True)
    """
    copies = copies_of(released, original)
    coded = names_checked(original, categorical, "categorical")
    options = {
        "trees": trees,
        "min_leaf": min_leaf,
        "most": max_records,
        "importance": importance,
        "seed": seed,
    }
    held = [design(original, copy, target, columns, categorical=coded) for copy in copies]
    first = held[0]
    before, score = _importances(first, 0, "forest", **options)
    again, _ = _importances(first, 0, "another forest", **options)
    fitted = [_importances(each, 1, "forest", **options) for each in held]
    after = np.mean([shares for shares, _ in fitted], axis=0)
    shift, chance = (float(np.abs(other - before).sum()) / 2 for other in (after, again))
    table = pl.DataFrame(
        {
            "column": first.columns,
            "importance_before": before,
            "importance_after": after,
            "shift": after - before,
        }
    ).sort(pl.col("shift").abs(), descending=True, maintain_order=True)
    each = pl.DataFrame(
        [
            {"copy": i, "shift": float(np.abs(shares - before).sum()) / 2, "score": scored}
            for i, (shares, scored) in enumerate(fitted, 1)
        ]
    )
    leader = [first.columns[int(np.argmax(shares))] for shares in (before, after)]
    scores = [scored for _, scored in fitted if scored is not None]
    return Measure(
        name="importance_shift",
        value=shift,
        figures={
            "shift": shift,
            "shift_by_chance": chance,
            "rank_correlation": _rank_correlation(before, after),
            "same_first": leader[0] == leader[1],
            "largest_shift": float(np.abs(after - before).max()),
            "score_original": score,
            "score_released": float(np.mean(scores)) if scores else None,
            "features": len(first.columns),
            "copies": len(copies),
        },
        meaning=(
            f"{percent(shift)} of what a model of '{target}' relies on sits on other features after protection (by "
            f"chance alone: {percent(chance)}); the most important one "
            + (
                f"is still '{leader[0]}'."
                if leader[0] == leader[1]
                else f"was '{leader[0]}' and is '{leader[1]}'."
            )
        ),
        caveats=[*_said(first), DEPENDENT],
        parameters={
            "target": target,
            "columns": list(first.columns),
            "categorical": list(coded),
            "importance": importance,
            "trees": trees,
            "min_leaf": min_leaf,
            "max_records": max_records,
            "needs_alignment": False,
            "inference_valid": False,
        },
        detail=engine.tables_like(original, variables=table, copies=each),
    )


def leaf_impurity(leaves: Array, classes: Array) -> tuple[Integers, Floats]:
    """Count the records of each leaf that holds some, and give its Gini impurity.

    Examples
    --------
    >>> leaves = np.array([0, 0, 0, 0, 1, 1, 2, 2, 2, 2])
    >>> sex = np.array([0, 0, 1, 1, 0, 0, 0, 1, 1, 1])
    >>> leaf_impurity(leaves, sex)[1].tolist()
    [0.5, 0.0, 0.375]
    """
    found, place = np.unique(leaves, return_inverse=True)
    width = int(classes.max()) + 1
    counts = np.bincount(place * width + classes, minlength=len(found) * width).reshape(len(found), width)
    records = counts.sum(axis=1)
    impurity: Floats = 1 - ((counts / records[:, None]) ** 2).sum(axis=1)
    return records, impurity


def tree_impurity(leaves: Array, classes: Array) -> float:
    """Average the impurity of the leaves by their records."""
    records, impurity = leaf_impurity(leaves, classes)
    return float((records * impurity).sum() / records.sum())


def _importances(held: Design, side: int, stream: str, **options: Any) -> tuple[Floats, float | None]:
    """Fit a forest to one file: the shares of importance, and its out-of-bag score."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    from sklearn.inspection import permutation_importance

    random = generator(options["seed"], "importance", stream)
    state = int(random.integers(2**31))
    x, y = _thinned(held, side, options["most"], random)
    kind = RandomForestClassifier if held.classes else RandomForestRegressor
    # With few trees some records are in every bag, and have no score.
    with_bag = len(y) >= 50 and options["trees"] >= 30
    forest = kind(
        options["trees"],
        min_samples_leaf=options["min_leaf"],
        oob_score=with_bag,
        random_state=state,
        max_features="sqrt",
    )
    forest.fit(x, y)
    if options["importance"] == "impurity":
        raw = np.asarray(forest.feature_importances_)
    else:
        seen, truth = _thinned(held, 0, options["most"], random)
        raw = permutation_importance(forest, seen, truth, n_repeats=5, random_state=state).importances_mean
    raw = np.maximum(raw, 0.0)
    shares: Floats = raw / raw.sum() if raw.sum() > 0 else np.full(len(raw), 1 / len(raw))
    return shares, float(forest.oob_score_) if with_bag else None


def _thinned(held: Design, side: int, most: int, random: np.random.Generator) -> tuple[Floats, Array]:
    x, y = held.features[side], held.targets[side]
    some = some_rows(len(y), most, random)
    return x[some], y[some]


def _rank_correlation(before: Floats, after: Floats) -> float | None:
    from scipy.stats import rankdata

    ranks = rankdata(before), rankdata(after)
    if len(before) < 3 or any(np.ptp(rank) == 0 for rank in ranks):
        return None
    return float(np.corrcoef(*ranks)[0, 1])


def _said(held: Design) -> list[str]:
    caveats = list(held.notes)
    for gone, what in zip(held.left_out, ("original", "release"), strict=True):
        if gone:
            caveats.append(f"{gone:,} records of the {what} have no '{held.target}' and were left out.")
    return caveats


# Both files as the same matrix of features, for models that are fitted to either.


@dataclass(frozen=True)
class Design:
    """Features and target of both files.

    Numbers stay numbers, with NaN where missing; categories are the places of their levels, missing being one. Records
    without a target are left out.
    """

    columns: tuple[str, ...]
    target: str
    features: tuple[Floats, Floats]
    targets: tuple[Array, Array]
    classes: tuple[str, ...]
    """The levels of a target of categories; none where it is a number."""
    left_out: tuple[int, int]
    notes: tuple[str, ...]


def design(
    original: Microdata,
    released: Microdata,
    target: str,
    columns: str | Sequence[str] | None,
    *,
    categorical: Sequence[str] = (),
    groups: int | None = None,
) -> Design:
    """Bring features and target of both files to one coding; a numeric target is cut where ``groups`` are asked for."""
    for data, what in ((original, "original"), (released, "release")):
        need_known([target], data.schema, f"It was named as the target; the {what} lacks it.")
    compared = compared_columns(original, released, columns, without=[target])
    names = tuple(name for name in compared.names if name != target)
    if not names:
        raise InputError(
            "There is no column besides the target that both files have. Name some with columns=[…]."
        )
    frames = [engine.collect(data, [*names, target]) for data in (original, released)]
    notes = list(compared.caveats)
    features = []
    for name in names:
        pair, _, said = _coded(name, frames, name in categorical)
        features.append(pair)
        notes += said
    goals, classes, said = _coded(target, frames, target in categorical)
    notes += said
    if not classes and groups is not None:
        known = [goal[~np.isnan(goal)] for goal in goals]
        breaks = engine.pooled_breaks([(known[0], None), (known[1], None)], engine.Cutting(groups))
        goals = [np.where(np.isnan(goal), np.nan, np.searchsorted(breaks, goal, "left")) for goal in goals]
        classes = tuple(str(group) for group in range(len(breaks) + 1))
    keep = [~np.isnan(goal) for goal in goals]
    if classes:
        keep = [
            kept & (frame[target].is_not_null().to_numpy()) for kept, frame in zip(keep, frames, strict=True)
        ]
    for kept, what in zip(keep, ("original", "release"), strict=True):
        if not kept.any():
            raise InputError(f"The target '{target}' is missing in every record of the {what}.")
    matrices = [np.column_stack([pair[side] for pair in features])[keep[side]] for side in (0, 1)]
    targets = [
        goals[side][keep[side]].astype(np.int64) if classes else goals[side][keep[side]] for side in (0, 1)
    ]
    gone = [int((~kept).sum()) for kept in keep]
    return Design(
        names,
        target,
        (matrices[0], matrices[1]),
        (targets[0], targets[1]),
        classes,
        (gone[0], gone[1]),
        tuple(notes),
    )


def _coded(
    name: str, frames: Sequence[pl.DataFrame], category: bool
) -> tuple[list[Floats], tuple[str, ...], tuple[str, ...]]:
    """Code one column of both files: numbers as they are, categories by their place; and the levels of a category."""
    kind, dtype, notes = engine.compared_as(name, frames[0][name], frames[1][name], category=category)
    parts = [engine.brought_to(frame[name], dtype) for frame in frames]
    if kind == "number":
        return [engine.physical(part) for part in parts], (), notes
    levels = sorted({level for part in parts for level in part.unique().to_list() if level is not None})
    place = pl.Enum(levels)
    coded = [
        part.cast(place).to_physical().cast(pl.Float64).fill_null(float(len(levels))).to_numpy()
        for part in parts
    ]
    return coded, tuple(levels), notes
