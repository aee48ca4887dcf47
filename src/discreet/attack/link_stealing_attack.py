"""How many private connections could a user of a graph service find out?

Whoever lets a node join next to a target sees whose predictions change: the neighbors of the target give themselves
away.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.attack.graph_convolution import GraphService, square_matrix
from discreet.attack.success import RISK_FIGURES, Excess, Tally, Trial, warnings_of
from discreet.core.arrays import Flags, Floats, Integers, numbers_of, rows_of
from discreet.core.cards import Figure, measure
from discreet.core.constraints import Share
from discreet.core.errors import InputError, ParameterError
from discreet.core.parameters import checked
from discreet.core.progress import track
from discreet.core.randomness import generator
from discreet.core.results import Detail, Measure
from discreet.core.wording import percent

INJECTION = (
    "Zari, O., Parra-Arnau, J., Ünsal, A. and Önen, M. (2024). Node injection link stealing attack. Privacy in "
    "Statistical Databases, LNCS 14915, 358 ff. Springer."
)
LINKTELLER = (
    "Wu, F., Long, Y., Zhang, C. and Li, B. (2022). LinkTeller: recovering private edges from graph neural networks "
    "via influence analysis. IEEE Symposium on Security and Privacy, 2005–2024. doi:10.1109/SP46214.2022.9833806"
)
BY_CLASS = ("max-attributes", "class-representative")
Decision = Literal["degree", "top-k", "threshold", "best-f1"]


@measure(
    room="attack",
    title="Stolen links",
    question="How many private connections could a user of the service find out?",
    headline="of the connections are found because the service knows them",
    chapter="rebuilt",
    place=6,
    work="whole-file",
    references=(INJECTION, LINKTELLER),
    figures={
        **RISK_FIGURES,
        "attack_rate": Figure("Connections that were found (recall)", unit="share", better="lower"),
        "control_rate": Figure("Connections found that the service does not know", unit="share"),
        "baseline_rate": Figure("Pairs that were claimed (a blind claim finds as many)", unit="share"),
        "precision": Figure("Claimed connections that exist", unit="share", better="lower"),
        "recall": Figure("Connections that were claimed", unit="share", better="lower"),
        "f1": Figure("F1 of claims and connections", better="lower"),
        "auc": Figure("Chance that a connected pair scores higher", better="lower"),
    },
)
@checked
def link_stealing(
    service: GraphService,
    truth: Any,
    *,
    strategy: Strategy | Baseline = "all-ones",
    holdout: Any = None,
    targets: Any = None,
    candidates: Any = None,
    features: Any = None,
    decision: Decision = "degree",
    density: Annotated[float, Share(above=True, below=True)] | None = None,
    threshold: float | None = None,
    alpha: float = 1e-4,
    similarity: Similarity = "correlation",
    keep: bool = False,
    progress: bool = False,
    seed: int | None = None,
) -> Measure:
    """How many private connections could a user of this service find out?

    For every target a node joins next to it, and the candidates whose predictions change most are claimed to be its
    neighbors (`node_injection_scores`); ``linkteller``, ``posterior`` and ``attributes`` are attacks without a node.

    Also known as: NILS; node injection link stealing; LinkTeller; LSA2-post; LSA2-attr; link stealing.

    Parameters
    ----------
    service
        The service: `LocalService` here, or anything with ``width``, ``predict``, ``connect`` and ``reset``.
    truth
        The private adjacency matrix, for scoring.
    strategy
        The features of the node that joins, or a baseline.
    holdout
        Connections among the same people that the service was not given, as a matrix like ``truth``: what the attack
        finds of them it would find without the service's graph, because people who are alike know each other.
    targets, candidates
        Whose neighbors are wanted, and among whom; 500 nodes by lot unless given, and the same ones.
    features
        The features of all nodes, one row each, for strategies that need them.
    decision
        Who is claimed: as many as the target has neighbors among the candidates (``degree``), as many as a known
        ``density`` says (``top-k``), who changes by at least ``threshold``, or what the truth says is best
        (``best-f1``, for comparisons only).
    density
        The share of pairs that are connected, as the attacker estimates it.
    threshold
        The least change that counts.
    alpha, similarity
        As in `node_injection_scores` and `baseline_scores`.
    keep
        Leave the nodes that joined, as a real attacker must.
    progress
        Show a progress bar on a terminal.
    seed
        For the lot.

    Returns
    -------
    Measure
        ``value`` is ``risk``, (attack - holdout) / (1 - holdout): ``attack_rate`` is the share of the connections that
        were found, ``control_rate`` that of the connections the service does not know, ``baseline_rate`` what as many
        claims find blindly, which takes the place of the holdout where there is none; ``risk_low`` and ``risk_high``
        (95 %; a connection between two targets counts once). ``precision``, ``recall`` and ``f1`` are pooled over all
        pairs of a target and another candidate; isolated targets count in the precision only. Where the attack cannot
        be run, ``value`` is None and a caveat says why. ``detail``: ``targets``, ``scores``.

    How to read it
    --------------
    A precision near 1 at the known degree means that the service answers who knows whom. Rounding its answers
    (`LocalService` with ``decimals``) or a private graph (`discreet.protect.LapGraph`) lowers it.

    When not to trust it
    --------------------
    Deeper networks and other models leak in other patterns. With ``degree`` the attacker knows how many neighbors a
    target has (and of the holdout, how many it has there); with ``best-f1`` he knows the answer.

    Examples
    --------
    >>> from discreet.attack.graph_convolution import GraphConvolution, LocalService
    >>> ring = np.roll(np.eye(8), 1, axis=1) + np.roll(np.eye(8), -1, axis=1)
    >>> rng = np.random.default_rng(1)
    >>> model = GraphConvolution((rng.normal(size=(3, 4)), rng.normal(size=(4, 2))))
    >>> found = link_stealing(LocalService(ring, rng.random((8, 3)), model), ring, targets=range(8))
    >>> found.figures["precision"], found.figures["recall"]
    (1.0, 1.0)
    """
    graph = square_matrix(truth, "truth")
    people = graph.shape[0]
    drawn = np.sort(generator(seed, "link-stealing").permutation(people)[: min(500, people)])
    wanted = drawn if targets is None else nodes_of(targets, "targets")
    among = wanted if candidates is None else nodes_of(candidates, "candidates")
    if max(wanted.max(), among.max()) >= people or min(wanted.min(), among.min()) < 0:
        raise ParameterError(f"targets and candidates must be numbers of nodes, from 0 to {people - 1}.")
    if decision == "top-k" and not (density is not None and 0 < density < 1):
        raise ParameterError("decision='top-k' needs density: the share of pairs that are connected.")
    if decision == "threshold" and threshold is None:
        raise ParameterError("decision='threshold' needs threshold.")
    own = None if features is None else np.asarray(features, dtype=np.float64)[among]
    parameters = {
        "strategy": strategy,
        "decision": decision,
        "targets": len(wanted),
        "candidates": len(among),
        "seed": seed,
    }
    asked = {"features": own, "alpha": alpha}
    scores = np.zeros((len(wanted), len(among)))
    try:
        before = np.asarray(service.predict(among), dtype=np.float64)
        for i, target in enumerate(track(wanted, len(wanted), "Stealing links", progress=progress)):
            if strategy in get_args(Baseline):
                scores[i] = baseline_scores(
                    service, int(target), among, strategy, similarity=similarity, before=before, **asked  # type: ignore[arg-type]
                )  # fmt: skip
            else:
                now = None if keep else before
                scores[i] = node_injection_scores(
                    service, int(target), among, strategy, before=now, keep=keep, **asked  # type: ignore[arg-type]
                )  # fmt: skip
    except NotApplicableError as error:
        return _not_applicable(str(error), parameters)
    if strategy not in get_args(Baseline) and not scores.any():
        return _not_applicable(
            "No prediction changed after a node had joined, not even that of the target: the service keeps its answers "
            "or ignores new nodes.",
            parameters,
        )
    open_ = wanted[:, None] != among[None, :]
    linked = (graph[wanted][:, among].toarray() > 0) & open_
    unknown, told = _unknown(holdout, graph, wanted, among, open_)
    if strategy in BY_CLASS and not of_another_class(before, 0).any():
        told.append(
            f"All candidates are predicted to be of one class, so '{strategy}' found nobody of another one to imitate "
            "and took all candidates instead: the attack may be weaker than its name says."
        )
    # Each kind of connection is looked for among the pairs that are not of the other kind.
    pairs = open_ if unknown is None else open_ & ~unknown
    claimed = _claimed(scores, linked, pairs, decision, density, threshold)
    attacked = _found(claimed, linked, wanted, among)
    others = None
    if unknown is not None:
        spared = open_ & ~linked
        others = _found(
            _claimed(scores, unknown, spared, decision, density, threshold), unknown, wanted, among
        )
    return _told(
        scores,
        linked,
        pairs,
        claimed,
        Found(attacked, others),
        wanted,
        {**parameters, "holdout": holdout is not None},
        told,
    )


class Found(NamedTuple):
    """How many connections were found, of those that the service knows and of those it does not."""

    known: Tally | None
    unknown: Tally | None


def _unknown(
    holdout: Any, graph: Any, wanted: Integers, among: Integers, open_: Flags
) -> tuple[Flags | None, list[str]]:
    """Read the connections that the service was not given; those of the truth are none of them."""
    if holdout is None:
        return None, []
    given = square_matrix(holdout, "holdout")
    if given.shape != graph.shape:
        raise InputError("holdout must be a matrix of the same nodes as truth.")
    there = (given[wanted][:, among].toarray() > 0) & open_
    shared = there & (graph[wanted][:, among].toarray() > 0)
    if not there.any():
        raise InputError(
            "holdout has no connection of a target with a candidate, so nothing can be held against it. Choose other "
            "targets, or leave holdout out."
        )
    if shared.sum() > there.sum() / 2:
        raise ParameterError(
            f"holdout is part of the truth: {int(shared.sum()):,} of its {int(there.sum()):,} connections are there. "
            "Give connections that the service does not know, or leave holdout out."
        )
    said = [f"{int(shared.sum()):,} connections of holdout are in truth too; they were left out of it."]
    return there & ~shared, said if shared.any() else []


def _found(claimed: Flags, linked: Flags, wanted: Integers, among: Integers) -> Tally | None:
    """Count the connections that were claimed; one between two targets is asked about twice and counts once."""
    at, other = np.nonzero(linked)
    if not len(at):
        return None
    ends = np.sort(np.column_stack([wanted[at], among[other]]), axis=1)
    once = len(np.unique(ends, axis=0))
    return Tally(once * float((claimed & linked).sum()) / len(at), once)


def _claimed(  # noqa: PLR0917
    scores: Floats, linked: Flags, open_: Flags, decision: str, density: float | None, threshold: float | None
) -> Flags:
    """Whom the attacker claims; a target is never its own neighbor, and ties go by place."""
    held = np.where(open_, scores, -np.inf)
    if decision == "threshold":
        return np.asarray(held >= float(threshold or 0.0))
    if decision == "best-f1":
        order = np.argsort(-held, axis=None, kind="stable")
        hits = np.cumsum((linked & open_).ravel()[order])
        f1 = 2 * hits / (np.arange(1, len(order) + 1) + max(int((linked & open_).sum()), 1))
        chosen = np.zeros(held.size, dtype=bool)
        chosen[order[: int(f1.argmax()) + 1]] = True
        return chosen.reshape(held.shape) & open_
    if decision == "degree":
        many = (linked & open_).sum(axis=1)
    else:
        many = np.full(len(held), round(float(density or 0.0) * int(open_.sum(axis=1).max())))
    places = np.argsort(np.argsort(-held, axis=1, kind="stable"), axis=1, kind="stable")
    return np.asarray((places < many[:, None]) & open_)


def _told(  # noqa: PLR0917
    scores: Floats,
    linked: Flags,
    open_: Flags,
    claimed: Flags,
    found: Found,
    targets: Integers,
    parameters: dict[str, Any],
    told: list[str],
) -> Measure:
    hits, said, there, pairs = (int(x.sum()) for x in (linked & claimed, claimed, linked, open_))
    lonely = int((~linked.any(axis=1)).sum())
    if not there:
        told.append(
            "No target has a neighbor among the candidates: recall and risk are undefined, not zero. Choose targets "
            "with connections."
        )
    elif lonely:
        told.append(
            f"{lonely:,} of {len(targets):,} targets have no neighbor among the candidates, so no recall."
        )
    if not said:
        told.append("Nobody was claimed, so there is no precision.")
    if parameters["decision"] == "best-f1":
        told.append("The best cut was chosen by the truth, which no attacker has.")
    blind = said / pairs if pairs else 0.0
    precision = hits / said if said else None
    recall = hits / there if there else None
    risk = Excess(None, None, None)
    if found.known is not None:
        trial = Trial(found.known, found.unknown, float(blind))
        risk = trial.beyond()
        told += warnings_of(*trial[:3])
    f1 = 2 * hits / (said + there) if said + there else None
    table = pl.DataFrame(
        {
            "target": targets,
            "neighbors": linked.sum(axis=1),
            "claimed": claimed.sum(axis=1),
            "found": (linked & claimed).sum(axis=1),
        }
    )
    unknown = ""
    if found.unknown is not None:
        unknown = f"; of connections that the service does not know it finds {percent(found.unknown.rate)}"
    return Measure(
        name="link_stealing",
        value=risk.risk,
        figures={
            "attack_rate": recall,
            "control_rate": None if found.unknown is None else found.unknown.rate,
            "baseline_rate": blind,
            "risk": risk.risk,
            "risk_low": risk.low,
            "risk_high": risk.high,
            "attacks": 0 if found.known is None else round(found.known.tries),
            "control_attacks": 0 if found.unknown is None else round(found.unknown.tries),
            "precision": precision,
            "recall": recall,
            "f1": f1,
            "auc": _auc(scores[open_], linked[open_]),
            "connections": there,
            "claims": said,
            "isolated_targets": lonely,
        },
        meaning=(
            f"Of {said:,} connections that the attack claims {percent(precision)} exist, and it claims "
            f"{percent(recall)} of the {there:,} that there are, of all pairs {percent(blind)}{unknown}."
        ),
        caveats=told,
        parameters=parameters,
        detail=Detail(targets=lambda: table, scores=lambda: scores),
    )


def _not_applicable(why: str, parameters: dict[str, Any]) -> Measure:
    return Measure(
        name="link_stealing",
        value=None,
        figures={},
        meaning="The attack is not applicable to this service; that says nothing about other attacks.",
        caveats=[why],
        parameters=parameters,
    )


def _auc(scores: Floats, linked: Flags) -> float | None:
    """The chance that a connected pair has the higher score, ties counted half."""
    from scipy.stats import rankdata

    yes = int(linked.sum())
    no = len(linked) - yes
    if not yes or not no:
        return None
    return float((rankdata(scores)[linked].sum() - yes * (yes + 1) / 2) / (yes * no))


# Whose predictions change when somebody joins next to a target? The neighbors of the target give themselves away.


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
    return np.asarray(classes != classes[at])


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
