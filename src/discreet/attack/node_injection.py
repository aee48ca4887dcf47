"""Whose predictions change when somebody joins next to a target? The neighbors of the target give themselves away."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from discreet.attack.graph_convolution import GraphService
from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.errors import ParameterError, unknown_name
from discreet.core.number_arrays import numbers_of, rows_of
from discreet.core.parameters import checked

Strategy = Literal[
    "all-ones",
    "all-zeros",
    "identity",
    "max-attributes",
    "class-representative",
    "influence",
    "influence-multiplied",
]
Baseline = Literal["linkteller", "posterior", "attributes"]
Similarity = Literal["correlation", "cosine", "euclidean"]


class NotApplicableError(ParameterError):
    """The service does not let the attack be run."""


@checked
def node_injection_scores(
    service: GraphService,
    target: int,
    candidates: npt.ArrayLike,
    strategy: Strategy = "all-ones",
    *,
    features: npt.ArrayLike | None = None,
    alpha: float = 1e-4,
    before: Floats | None = None,
    keep: bool = False,
) -> Floats:
    """How much do the predictions of candidates change when a node joins next to the target?

    Parameters
    ----------
    service
        The service under attack.
    target
        The node whose neighbors are wanted.
    candidates
        The nodes whose predictions the attacker sees.
    strategy
        The features of the node that joins: ``all-ones``, ``all-zeros``; those of the target (``identity``), these a
        little larger (``influence`` adds ``alpha``, ``influence-multiplied`` multiplies by 1 + ``alpha``); the largest
        of every feature among candidates of another class (``max-attributes``), or those of the surest of them
        (``class-representative``). Where all candidates are of one class, these two look at all of them.
    features
        The features of the candidates, one row each; only the first two strategies need none.
    alpha
        How much larger.
    before
        The predictions of the candidates before, where they were asked for already.
    keep
        Leave the node in the network, as a real attacker must; else it is taken out again.

    Returns
    -------
    The sums of absolute changes, one a candidate. That of the target itself is usually the largest and no sign of
    anything: leave it out.

    Examples
    --------
    >>> from discreet.attack.graph_convolution import GraphConvolution, LocalService
    >>> line = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    >>> model = GraphConvolution((np.eye(2), np.diag([1.0, 2.0])))
    >>> service = LocalService(line, np.eye(3)[:, :2], model)
    >>> scores = node_injection_scores(service, 0, [1, 2])
    >>> bool(scores[0] > 0), float(scores[1])
    (True, 0.0)
    """
    nodes = nodes_of(candidates, "candidates")
    shown = _asked(service, nodes) if before is None else before
    own = None if features is None else numbers_of(features, "features")
    if own is not None and (own.ndim != 2 or len(own) != len(nodes)):
        raise ParameterError("features must have one row a candidate.")
    joined = _joining(service, int(target), nodes, strategy, own, alpha, shown)
    try:
        service.connect(joined, int(target))
    except Exception as error:
        raise NotApplicableError(
            f"The service refused to add a node ({type(error).__name__}): the attack is not applicable to it."
        ) from error
    try:
        changed = _asked(service, nodes)
    finally:
        if not keep:
            service.reset()
    return np.asarray(np.abs(changed - shown).sum(axis=1))


@checked
def baseline_scores(
    service: GraphService,
    target: int,
    candidates: npt.ArrayLike,
    baseline: Baseline,
    *,
    features: npt.ArrayLike | None = None,
    alpha: float = 1e-4,
    similarity: Similarity = "correlation",
    before: Floats | None = None,
) -> Floats:
    """How strongly do attacks without a new node connect candidates with the target?

    ``linkteller`` changes the features of the target itself (the service must allow it); ``posterior`` and
    ``attributes`` compare predictions, or features, of candidates with those of the target, which must be one of them.
    """
    nodes = nodes_of(candidates, "candidates")
    at = np.flatnonzero(nodes == target)
    if not len(at):
        raise ParameterError("The target must be one of the candidates for a baseline.")
    shown = _asked(service, nodes) if before is None else before
    if baseline == "posterior":
        return _alike(shown, int(at[0]), similarity)
    if features is None:
        raise ParameterError(f"{baseline} needs the features of the candidates: give features=.")
    own = numbers_of(features, "features")
    if baseline == "attributes":
        return _alike(own, int(at[0]), similarity)
    if baseline != "linkteller":
        raise ParameterError(unknown_name(str(baseline), get_args(Baseline), what="baseline"))
    replaced = getattr(service, "replaced", None)
    if replaced is None:
        raise NotApplicableError(
            "The service does not let the features of a node be changed: LinkTeller is not applicable to it."
        )
    changed = np.asarray(replaced(int(target), own[at[0]] * (1 + alpha), nodes), dtype=np.float64)
    return np.asarray(np.sqrt((((changed - shown) / alpha) ** 2).sum(axis=1)))


def of_another_class(shown: Floats, at: int) -> Flags:
    """Say which candidates are predicted to be of another class than the one at a place."""
    classes = shown.argmax(axis=1)
    other: Flags = classes != classes[at]
    return other


def nodes_of(given: Any, name: str) -> Integers:
    """Read numbers of nodes."""
    nodes = rows_of(list(given) if hasattr(given, "__len__") else given, name)
    if nodes.ndim != 1 or nodes.dtype.kind not in "iu":
        raise ParameterError(f"{name} must be a list of numbers of nodes.")
    if len(np.unique(nodes)) < len(nodes):
        raise ParameterError(f"{name} names a node twice.")
    return nodes.astype(np.int64)


def _asked(service: GraphService, nodes: Integers) -> Floats:
    try:
        answer = np.asarray(service.predict(nodes), dtype=np.float64)
    except Exception as error:
        raise NotApplicableError(
            f"The service refused to predict ({type(error).__name__}): the attack is not applicable to it."
        ) from error
    if answer.ndim != 2 or len(answer) != len(nodes) or not np.isfinite(answer).all():
        raise ParameterError("The service must give one row of finite class probabilities a node.")
    return answer


def _joining(  # noqa: PLR0917
    service: GraphService,
    target: int,
    nodes: Integers,
    strategy: str,
    features: Floats | None,
    alpha: float,
    shown: Floats,
) -> Floats:
    """The features of the node that joins."""
    if strategy == "all-ones":
        return np.ones(service.width)
    if strategy == "all-zeros":
        return np.zeros(service.width)
    if strategy not in get_args(Strategy):
        raise ParameterError(unknown_name(str(strategy), get_args(Strategy), what="strategy"))
    at = np.flatnonzero(nodes == target)
    if features is None or not len(at):
        raise ParameterError(f"{strategy} needs features= of the candidates, and the target among them.")
    own = features[at[0]]
    if strategy == "identity":
        return np.asarray(own)
    if strategy == "influence":
        return np.asarray(own + alpha)
    if strategy == "influence-multiplied":
        return np.asarray(own * (1 + alpha))
    others = of_another_class(shown, int(at[0]))
    if not others.any():
        # The best that is left are all candidates.
        others = np.ones(len(nodes), dtype=bool)
    if strategy == "max-attributes":
        return np.asarray(features[others].max(axis=0))
    return np.asarray(features[others][shown[others].max(axis=1).argmax()])


def _alike(rows: Floats, at: int, similarity: Similarity) -> Floats:
    if similarity == "euclidean":
        return np.asarray(-np.sqrt(((rows - rows[at]) ** 2).sum(axis=1)))
    held = rows - rows.mean(axis=0) if similarity == "correlation" else rows
    size = np.sqrt((held**2).sum(axis=1))
    divisor = size * size[at]
    return np.asarray(np.divide(held @ held[at], divisor, out=np.zeros(len(rows)), where=divisor > 0))
