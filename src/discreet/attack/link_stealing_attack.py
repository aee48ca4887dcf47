"""How many private connections could a user of a graph service find out?"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import polars as pl

from discreet.attack.graph_convolution import GraphService, square_matrix
from discreet.attack.node_injection import (
    Baseline,
    NotApplicableError,
    Similarity,
    Strategy,
    baseline_scores,
    node_injection_scores,
    nodes_of,
    of_another_class,
)
from discreet.attack.success import RISK_FIGURES, Excess, Tally, Trial, warnings_of
from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.cards import Figure, measure
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
    control: Any = None,
    targets: Any = None,
    candidates: Any = None,
    features: Any = None,
    decision: Decision = "degree",
    density: float | None = None,
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

    Parameters
    ----------
    service
        The service: `LocalService` here, or anything with ``width``, ``predict``, ``connect`` and ``reset``.
    truth
        The private adjacency matrix, for scoring.
    strategy
        The features of the node that joins, or a baseline.
    control
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
        ``value`` is ``risk``, (attack - control) / (1 - control): ``attack_rate`` is the share of the connections that
        were found, ``control_rate`` that of the connections the service does not know, ``baseline_rate`` what as many
        claims find blindly, which takes the place of the control where there is none; ``risk_low`` and ``risk_high``
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
    target has (and of the control, how many it has there); with ``best-f1`` he knows the answer.

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
    unknown, told = _unknown(control, graph, wanted, among, open_)
    if strategy in BY_CLASS and not of_another_class(before, 0).any():
        told.append(
            f"All candidates are predicted to be of one class, so '{strategy}' found nobody of another one to imitate "
            "and took all candidates instead: the attack may be weaker than its name says."
        )
    # Each kind is looked for among pairs that are not of the other, so that neither stands in the other's way.
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
        {**parameters, "control": control is not None},
        told,
    )


class Found(NamedTuple):
    """How many connections were found, of those that the service knows and of those it does not."""

    known: Tally | None
    unknown: Tally | None


def _unknown(
    control: Any, graph: Any, wanted: Integers, among: Integers, open_: Flags
) -> tuple[Flags | None, list[str]]:
    """Read the connections that the service was not given; those of the truth are none of them."""
    if control is None:
        return None, []
    given = square_matrix(control, "control")
    if given.shape != graph.shape:
        raise InputError("control must be a matrix of the same nodes as truth.")
    there = (given[wanted][:, among].toarray() > 0) & open_
    shared = there & (graph[wanted][:, among].toarray() > 0)
    if not there.any():
        raise InputError(
            "control has no connection of a target with a candidate, so nothing can be held against it. Choose other "
            "targets, or leave control out."
        )
    if shared.sum() > there.sum() / 2:
        raise ParameterError(
            f"control is part of the truth: {int(shared.sum()):,} of its {int(there.sum()):,} connections are there. "
            "Give connections that the service does not know, or leave control out."
        )
    said = [f"{int(shared.sum()):,} connections of control are in truth too; they were left out of it."]
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
        told += warnings_of(*trial)
    f1 = 2 * hits / (said + there) if said + there else None
    table = pl.DataFrame(
        {
            "target": targets,
            "neighbors": linked.sum(axis=1),
            "claimed": claimed.sum(axis=1),
            "found": (linked & claimed).sum(axis=1),
        }
    )
    unknown = (
        ""
        if found.unknown is None
        else f"; of connections that the service does not know it finds {percent(found.unknown.rate)}"
    )
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
