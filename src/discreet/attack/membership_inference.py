"""Can somebody tell whether a person's record was used to make the release?

Two attackers need nothing but the release. The one looks how near the closest released record is. The other asks
whether the release is denser around the person than people in general are, and so is not misled by places where many
live. The third (`discreet.attack.shadow_models`) knows the generator, and refits it with and without the
person.

An attacker decides by a cut: nearer than so much, and the person was in it. Each is tried with cuts that take one in a
hundred strangers for a member, one in ten, and every second one. Nothing is fitted, so that everybody counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, NamedTuple

import numpy as np
import polars as pl

from discreet import engine
from discreet.attack.success import (
    RISK_FIGURES,
    WOULD_GIVE,
    Tally,
    Trial,
    chosen_ways,
    harmless,
    measured,
    worst_at,
    worst_trial,
)
from discreet.attack.victims import Victims, drawn, victims_of
from discreet.core.arrays import Floats, Integers
from discreet.core.cards import Figure, OfPair, measure
from discreet.core.constraints import AtLeast, ColumnNames, Entries, Public
from discreet.core.errors import ColumnError, ParameterError
from discreet.core.findings import OfBenchmark
from discreet.core.parameters import checked
from discreet.core.randomness import Seed, generator
from discreet.core.results import Detail, Measure
from discreet.engine.precision import Setting
from discreet.microdata import Microdata
from discreet.numerics.distance.search import nearest
from discreet.numerics.distance.space import Distance, MixedSpace, Points

Method = Literal["distance", "density"]
METHODS: tuple[Method, ...] = ("distance", "density")

DOMIAS = (
    "van Breugel, B., Sun, H., Qian, Z. and van der Schaar, M. (2023). Membership inference attacks against synthetic "
    "data through overfitting detection. Proceedings of AISTATS 2023, PMLR 206, 3493–3514."
)
LIRA = (
    "Carlini, N., Chien, S., Nasr, M., Song, S., Terzis, A. and Tramèr, F. (2022). Membership inference attacks from "
    "first principles. IEEE Symposium on Security and Privacy, 1897–1914. doi:10.1109/SP46214.2022.9833649"
)
FALSE_ALARMS = (0.001, 0.01)
CUTS = (0.01, 0.1, 0.5)
"""Shares of strangers who are taken for members. The larger the share, the higher the risk (on a concave ROC curve, by
its definition) and the less sure: one half says what can be ruled out, the smaller ones who is surely recognized."""
ROC_FIGURES = {
    "auc": Figure("Pairs of a member and another told apart (AUC)", unit="share", better="lower"),
    "tpr_at_fpr_001": Figure("Members recognized at 0.1 % false alarms", unit="share", better="lower"),
    "tpr_at_fpr_01": Figure("Members recognized at 1 % false alarms", unit="share", better="lower"),
}


class Scores(NamedTuple):
    """How much an attacker thinks that each person was in the file: of those who were, and of those who were not."""

    members: Floats
    others: Floats


@measure(
    room="attack",
    title="Membership",
    headline="of the people are recognized as being in the file because of the release",
    chapter="attackers",
    place=4,
    work="whole-file",
    references=(DOMIAS, LIRA),
    figures={**RISK_FIGURES, **ROC_FIGURES},
    compare=OfPair(
        63,
        "risk",
        usual=False,
        judged_by_holdout=True,
        without="cross-fit",
        one_type=True,
        settings=lambda pair: {"attacks": 20_000},
    ),
    worst=worst_at(23),
    synthesis=WOULD_GIVE,
    benchmark=OfBenchmark(2),
    tells=("chosen",),
)
@checked
def membership(
    original: Microdata,
    released: Microdata,
    *,
    holdout: Microdata | None = None,
    attacks: Annotated[int, AtLeast(1)] = 2_000,
    method: Method | Annotated[Sequence[Method], Entries()] | None = None,
    reference: Microdata | None = None,
    neighbors: Annotated[int, AtLeast(1)] = 5,
    columns: ColumnNames | None = None,
    categorical: ColumnNames = (),
    distance: Distance = "gower",
    precision: Annotated[Setting, Public()] = None,
    jointly: Annotated[int, AtLeast(1)] = 1,
    progress: bool = False,
    seed: Seed = None,
) -> Measure:
    """Can somebody tell whether a person's record was used to make the release?

    Also known as: membership inference attack; MIA.

    Parameters
    ----------
    original, released
        The file the release was made from, and the release.
    holdout
        People of the same population who were not used to make the release: without them nobody can say how often the
        attack is wrong.
    attacks
        How many people are attacked, of the original and of the hold-out each.
    method
        ``"distance"`` (to the closest released record), ``"density"`` (the release around the person against reference
        data), or both.
    reference
        Data of the population that the attacker has, for ``"density"``; a third of the hold-out unless given, who are
        then not attacked.
    neighbors
        How many neighbors a density is estimated from.
    columns, categorical, distance, precision
        What is compared, and how; see `discreet.risk.neighbors`.
    jointly
        Over how many attacks the lower end of what is sure (``risk_at_least``) holds together.
    progress
        Show a progress bar on a terminal.
    seed
        Who is attacked, and who is reference data.

    Returns
    -------
    Measure
        ``attack_rate`` is the share of members who are recognized, ``control_rate`` the share of others who are taken
        for members by the same cut (0.01, 0.1 or 0.5), ``baseline_rate`` a guess that says "member" as often, ``value``
        the risk (attack - holdout) / (1 - holdout) of the attacker and the cut that succeed most surely, with
        ``risk_low`` and ``risk_high`` (95 %, widened for the choice). ``auc``, ``tpr_at_fpr_001`` and
        ``tpr_at_fpr_01`` are those of this attacker over all cuts. ``detail``: ``records`` (scores of those of the
        original who were attacked) and ``methods``.

    How to read it
    --------------
    A release that holds copies of a tenth of the people has a risk of 0.1: they are recognized, and nobody else. To be
    known as a member of a file can be the harm itself, where the file is of the ill or of the indebted.

    When not to trust it
    --------------------
    Averages hide the few: people who stand out are recognized before all others, see ``detail["records"]``, and
    `shadow_membership`, which attacks those. A hold-out of another population makes everybody look like a member or
    nobody. At 0.1 % false alarms fewer than 1,000 people of the hold-out say nothing, and the figure is left out.

    Examples
    --------
    >>> rng = generator(1)
    >>> def people():
    ...     return pl.DataFrame(rng.normal(size=(600, 4)).round(3), schema=["a", "b", "c", "d"])
    >>> real = people()
    >>> mixed = Microdata(pl.concat([real[:120], people()[:480]]))
    >>> found = membership(Microdata(real), mixed, holdout=Microdata(people()), seed=1)
    >>> 0.1 < found.value < 0.3
    True
    """
    if holdout is None:
        raise ParameterError(
            "membership needs people who were not used to make the release (holdout=…): without them nobody can say "
            "how often the attack is wrong. Set some records aside before the release is made."
        )
    methods = chosen_ways(method, METHODS)
    victims = victims_of(
        original,
        released,
        holdout,
        columns=columns,
        categorical=categorical,
        precision=precision,
        what="holdout",
    )
    if all(victims.released[name].n_unique() < 2 for name in victims.names):
        why = "Nobody can be recognized: no column of the release varies."
        return harmless("membership", why, victims, {"attacks": attacks, "columns": list(victims.names)})
    root = int(generator(seed).integers(2**62))
    people, background = _people(victims, holdout, reference, attacks, methods, root)
    scores = _scores(victims, people, background, methods, neighbors, distance, progress)
    trials = recognized(scores)
    chosen = _method(worst_trial(trials))
    everybody = people[0]
    return measured(
        "membership",
        trials,
        doing=lambda way: f"recognizes a person as being in the file ({_WAYS[_method(way)]})",
        jointly=jointly,
        figures=roc_figures(scores[chosen]),
        caveats=victims.caveats,
        parameters={
            "attacks": attacks,
            "method": list(methods),
            "chosen": chosen,
            "reference": reference is not None,
            "neighbors": neighbors,
            "columns": list(victims.names),
            "categorical": list(categorical),
            "distance": distance,
            "seed": seed if isinstance(seed, int) else None,
        },
        detail=Detail(
            records=lambda: engine.like(
                original,
                pl.DataFrame(
                    {"record": everybody, **{f"{name}_score": one.members for name, one in scores.items()}}
                ),
            ),
            methods=lambda: engine.like(original, methods_table(scores)),
        ),
    )


_WAYS = {"distance": "by the closest released record", "density": "by the density of the release"}


def _people(  # noqa: PLR0917
    victims: Victims,
    holdout: Microdata,
    reference: Microdata | None,
    attacks: int,
    methods: Sequence[Method],
    root: int,
) -> tuple[tuple[Integers, Integers], pl.DataFrame | None]:
    """Choose who is attacked, in the original and in the hold-out, and which reference data the attacker has."""
    assert victims.holdout is not None
    inside = drawn(victims.original.height, attacks, generator(root, "original"))
    order = generator(root, "holdout").permutation(victims.holdout.height)
    background = None
    if "density" in methods:
        if reference is not None:
            background = engine.collect(reference, victims.names)
        else:
            # Records of one person, or of one home, would be near each other on both sides.
            groups = engine.groups_together(holdout)
            known = np.unique(groups)
            aside = np.isin(groups[order], generator(root, "aside").permutation(known)[: len(known) // 3])
            background, order = victims.holdout[order[aside]], order[~aside]
    outside = np.sort(order[:attacks]).astype(np.int64)
    if min(len(inside), len(outside)) < 4 or (background is not None and background.height < 2):
        raise ParameterError(
            "Too few people to attack: the original, and the hold-out beside the reference data, need four each."
        )
    return (inside, outside), background


def _scores(  # noqa: PLR0917
    victims: Victims,
    people: tuple[Integers, Integers],
    background: pl.DataFrame | None,
    methods: Sequence[Method],
    neighbors: int,
    distance: Distance,
    progress: bool,
) -> dict[str, Scores]:
    """Score everybody by each method; more means a member."""
    assert victims.holdout is not None
    asked = pl.concat([victims.original[people[0]], victims.holdout[people[1]]])
    others = [] if background is None else [background.select(victims.names)]
    space = MixedSpace.fit(
        victims.released, asked, *others, distance=distance, categorical=victims.categorical
    )
    if not space.columns:
        raise ColumnError("No column of the release varies, so nobody can be recognized. Name other columns.")
    points, released = space.place(asked), space.place(victims.released)
    cut = len(people[0])
    found: dict[str, Scores] = {}
    if "distance" in methods:
        away = nearest(space, points, released, progress=progress, description="To release").distance[:, 0]
        found["distance"] = Scores(-away[:cut], -away[cut:])
    if "density" in methods:
        near = _spread(space, points, released, neighbors, progress)
        usual = _spread(space, points, space.place(others[0]), neighbors, progress)
        ratio = np.log(usual) - np.log(near)
        found["density"] = Scores(ratio[:cut], ratio[cut:])
    return found


def _spread(space: MixedSpace, points: Points, crowd: Points, neighbors: int, progress: bool) -> Floats:
    """Give the mean distance to the nearest of a crowd: the smaller, the denser it is there; never quite zero."""
    many = min(neighbors, len(crowd))
    found = nearest(space, points, crowd, k=many, progress=progress, description="Density")
    away: Floats = found.distance.mean(axis=1)
    some = away[away > 0]
    return away + (float(np.quantile(some, 0.01)) if len(some) else 1.0)


def recognized(scores: Mapping[str, Scores]) -> dict[str, Trial]:
    """Count the members whom each attacker recognizes while a given share of strangers is taken for members.

    Of those who score just as much as the cut as many are drawn as it takes, so that the share is met.

    Examples
    --------
    >>> ways = recognized({"distance": Scores(np.array([3.0, 0.0, -1.0]), np.arange(-9.0, 1.0))})
    >>> [(way, round(trial.attack.rate, 3)) for way, trial in ways.items()]
    [('distance at 0.01', 0.367), ('distance at 0.1', 0.667), ('distance at 0.5', 1.0)]
    """
    ways = {}
    for name, one in scores.items():
        for share in CUTS:
            inside, outside = float(len(one.members)), float(len(one.others))
            alarms = Tally(share * outside, outside)
            rate, (low, high) = _rate_at(one, share), alarms.interval
            # Where many members lie about the cut, its own place among the strangers matters as much.
            steep = max(1.0, (_rate_at(one, high) - _rate_at(one, low)) / (high - low))
            # Who says "member" blindly as often as the attacker does is right about members just as often.
            guessed = (rate * inside + alarms.hits) / (inside + outside)
            ways[f"{name} at {share:g}"] = Trial(
                Tally(rate * inside, inside), alarms.worth(1 / steep**2), guessed
            )
    return ways


def _rate_at(scores: Scores, share: float) -> float:
    """Give the share of members beyond the cut that takes a share of the strangers for members."""
    alarms = share * len(scores.others)
    cut = np.sort(scores.others)[::-1][max(math.ceil(alarms) - 1, 0)]
    of_ties = (alarms - np.count_nonzero(scores.others > cut)) / np.count_nonzero(scores.others == cut)
    return float(np.mean(scores.members > cut) + of_ties * np.mean(scores.members == cut))


def _method(way: str) -> str:
    return way.partition(" at ")[0]


def roc_figures(scores: Scores) -> dict[str, float | None]:
    """Give what is usually told of an attacker over all cuts: AUC, and members found at few false alarms.

    Examples
    --------
    >>> roc_figures(Scores(np.array([3.0, 2.0]), np.arange(-999.0, 1.0)))
    {'auc': 1.0, 'tpr_at_fpr_001': 1.0, 'tpr_at_fpr_01': 1.0}
    """
    ranked = np.sort(scores.others)
    below = np.searchsorted(ranked, scores.members, side="left")
    upto = np.searchsorted(ranked, scores.members, side="right")
    told: dict[str, float | None] = {"auc": float((below + upto).mean() / 2 / len(ranked))}
    for name, rate in zip(("tpr_at_fpr_001", "tpr_at_fpr_01"), FALSE_ALARMS, strict=True):
        allowed = int(rate * len(ranked) + 1e-9)
        told[name] = None if allowed < 1 else float((scores.members > ranked[-allowed - 1]).mean())
    return told


def methods_table(scores: Mapping[str, Scores]) -> pl.DataFrame:
    """Hold what every way of attacking achieves beside the others."""
    told = [{"method": name, **roc_figures(one)} for name, one in scores.items()]
    return pl.DataFrame(told, schema_overrides={"tpr_at_fpr_001": pl.Float64, "tpr_at_fpr_01": pl.Float64})
