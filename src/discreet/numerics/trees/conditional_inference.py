"""Which column is associated with the outcome beyond chance? Conditional inference trees.

A node chooses its column by tests and its cut afterwards, so that columns with many cuts have no head start
(Hothorn, Hornik and Zeileis 2006). The test is the quadratic form of the linear statistic under permutations of
the outcomes, with its chi-square limit; p-values are corrected for the number of columns tested (1 - (1 - p)^m).
Growth stops where no column reaches the wanted confidence. The cut is the one with the greatest two-sample
statistic: for a number the greatest gain in the sum of squares, for classes the greatest chi-square.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Array, Floats
from discreet.core.errors import ParameterError
from discreet.numerics.trees.coding import Feature
from discreet.numerics.trees.growing import TreeLimits, class_outcome, grow_tree, number_outcome
from discreet.numerics.trees.tree import Tree


def grow_conditional(
    codes: Array,
    features: Sequence[Feature],
    y: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    n_classes: int = 0,
    columns: Sequence[int] | None = None,
    rows: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
    mincriterion: float = 0.9,
    **limits: Any,
) -> Tree:
    """Grow a conditional inference tree for a number, or for classes when ``n_classes`` is given.

    Parameters
    ----------
    y
        Numbers, or classes coded 0 to ``n_classes - 1``.
    weights
        Sampling weights; they are scaled to a mean of one, so that the tests see as many records as there are.
    mincriterion
        A node is split while 1 minus the corrected p-value of its best column exceeds this.
    codes, features, rng, columns, rows
        As in `discreet.numerics.trees.growing.grow_regression`.
    **limits
        ``min_leaf``, ``min_split`` (here 20) and ``max_depth`` of `discreet.numerics.trees.growing.TreeLimits`.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.numerics.trees import Feature, encode
    >>> from discreet.numerics.trees.conditional_inference import grow_conditional
    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(size=(200, 2))
    >>> features = [Feature.numeric(column) for column in x.T]
    >>> tree = grow_conditional(encode(features, list(x.T)), features, x[:, 1] > 0, n_classes=2, rng=rng)
    >>> tree.n_leaves, tree.importances.round().tolist()
    (2, [0.0, 100.0])
    """
    if not 0 < mincriterion < 1:
        raise ParameterError(
            "mincriterion must lie between 0 and 1: it is one minus the largest p-value of a split."
        )
    outcome, labels = class_outcome(y, n_classes) if n_classes else number_outcome(y)
    if weights is not None:
        weight = np.asarray(weights, dtype=np.float64)
        inside = weight if rows is None else weight[np.asarray(rows, dtype=np.int64)]
        weights = weight * ((inside > 0).sum() / inside.sum()) if inside.sum() > 0 else weight
    stop = TreeLimits(**{"min_split": 20, **limits, "cp": 0.0, "criterion": mincriterion})
    used: dict[str, Any] = {"rng": rng, "columns": columns, "rows": rows, "weights": weights}
    return grow_tree(codes, features, outcome, labels, n_classes, stop, **used)


# Who has the event when? Survival trees by log-rank scores.
#
# Each record is scored by what happened to it (1 for an event, 0 for censoring) less what was to be expected by its
# time (the Nelson-Aalen cumulative hazard of all records). A two-sample comparison of these scores is the log-rank
# test, so that a conditional inference tree on them splits where survival differs. Donors are records: draw a row and
# take its time and event together.


def log_rank_scores(
    time: npt.ArrayLike, event: npt.ArrayLike | None = None, weights: npt.ArrayLike | None = None
) -> Floats:
    """Score records by events less expected events; the (weighted) scores sum to zero.

    Examples
    --------
    >>> log_rank_scores([1, 2, 3], [1, 0, 1]).round(3).tolist()
    [0.667, -0.333, -0.333]
    """
    times = np.asarray(time, dtype=np.float64)
    happened = np.ones(len(times)) if event is None else np.asarray(event, dtype=np.float64)
    weight = np.ones(len(times)) if weights is None else np.asarray(weights, dtype=np.float64)
    if len(happened) != len(times) or len(weight) != len(times):
        raise ParameterError("time, event and weights must be of the same length.")
    if not np.isfinite(times).all():
        raise ParameterError("time must be finite: missing survival times are not censored ones.")
    if not np.isin(happened, (0.0, 1.0)).all():
        raise ParameterError("event must be 0 (censored) or 1 for every record, without missing values.")
    if not (happened * weight > 0).any():
        raise ParameterError("event has no events: without one there is nothing to tell survival apart by.")
    moments, at = np.unique(times, return_inverse=True)
    events = np.bincount(at, happened * weight, len(moments))
    leaving = np.bincount(at, weight, len(moments))
    at_risk = np.cumsum(leaving[::-1])[::-1]
    hazard = np.cumsum(np.divide(events, at_risk, out=np.zeros(len(moments)), where=at_risk > 0))
    scores: Floats = happened - hazard[at]
    return scores


def grow_survival(
    codes: Array,
    features: Sequence[Feature],
    time: npt.ArrayLike,
    event: npt.ArrayLike | None = None,
    *,
    rows: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
    **options: Any,
) -> Tree:
    """Grow a survival tree; without ``event`` no record is censored. Parameters as in `grow_conditional`.

    Examples
    --------
    >>> import numpy as np
    >>> from discreet.numerics.trees import Feature, encode
    >>> from discreet.numerics.trees.conditional_inference import grow_survival
    >>> rng = np.random.default_rng(1)
    >>> treated = np.arange(100) % 2
    >>> time = rng.exponential(1 + 4 * treated)
    >>> group = Feature.category(2)
    >>> codes = encode([group], [treated])
    >>> tree = grow_survival(codes, [group], time, np.ones(100), rng=rng)
    >>> tree.n_leaves, bool((treated[tree.draw(codes, rng)] == treated).all())
    (2, True)
    """
    taken = np.arange(len(codes)) if rows is None else np.asarray(rows, dtype=np.int64)
    times = np.asarray(time, dtype=np.float64)
    scores = np.zeros(len(times))
    scores[taken] = log_rank_scores(
        times[taken],
        None if event is None else np.asarray(event)[taken],
        None if weights is None else np.asarray(weights)[taken],
    )
    return grow_conditional(codes, features, scores, rows=rows, weights=weights, **options)
