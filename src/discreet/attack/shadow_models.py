"""Would the generator give away that a person was in the file? Shadow models answer for those who stand out.

The attacker knows the generator. Many shadow files are drawn from people of the original, every second person in each;
the generator is fitted to each and releases a file. For a target, half of the releases were made with it and half
without, so that how near a release comes to the target has two laws, and a likelihood ratio tells for any release which
of them it follows. The targets are those farthest from everybody else: whoever is safe among many says nothing about
them.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Annotated

import numpy as np
import polars as pl

from discreet import engine
from discreet.attack.membership_inference import LIRA, ROC_FIGURES, Scores, roc_figures
from discreet.attack.success import RISK_FIGURES, Tally, Trial, measured
from discreet.core.arrays import Flags, Floats, Integers
from discreet.core.cards import Figure, measure
from discreet.core.constraints import AtLeast
from discreet.core.errors import ParameterError
from discreet.core.parameters import checked
from discreet.core.progress import track
from discreet.core.randomness import Seed, generator
from discreet.core.results import Detail, Measure
from discreet.microdata import Microdata
from discreet.numerics.distance.search import nearest
from discreet.numerics.distance.space import MixedSpace
from discreet.pairs.side_by_side import compared_columns
from discreet.risk.equivalence_classes import records_only

if TYPE_CHECKING:
    from discreet.synth.synthesizer import Synthesizer


_NEIGHBORS = 5


@measure(
    room="attack",
    title="Membership by shadow models",
    headline="of the people who stand out are recognized by somebody who knows the generator",
    chapter="attackers",
    place=5,
    work="whole-file",
    references=(
        LIRA,
        "Stadler, T., Oprisanu, B. and Troncoso, C. (2022). Synthetic data: anonymisation groundhog day. USENIX "
        "Security Symposium, 1451–1468.",
    ),
    figures={
        **RISK_FIGURES,
        **ROC_FIGURES,
        "auc": Figure("Releases with and without the target told apart (AUC)", unit="share", better="lower"),
        "worst_target_risk": Figure(
            "Risk of the target that is recognized best", unit="share", better="lower"
        ),
    },
)
@checked
def shadow_membership(
    original: Microdata,
    *,
    synthesizer: Synthesizer | str,
    targets: Annotated[int, AtLeast(1)] = 40,
    shadows: Annotated[int, AtLeast(8)] = 64,
    records: Annotated[int, AtLeast(10)] = 500,
    progress: bool = False,
    seed: Seed = None,
) -> Measure:
    """Would the generator give away that a person who stands out was in the file?

    Also known as: shadow models; shadow-model attack.

    Parameters
    ----------
    original
        The people; shadow files are drawn from them.
    synthesizer
        The generator with its parameters, or its name (``"sequential"``).
    targets
        How many people are attacked: those farthest from everybody else.
    shadows
        How many times the generator is fitted, each time to every second person of those drawn; even, and 8 or more.
    records
        How many people a shadow file has. A small file gives more away than a large one.
    progress
        Show a progress bar on a terminal.
    seed
        Who is drawn, and all fits and draws of the generator.

    Returns
    -------
    Measure
        ``attack_rate``: releases made with the target that are recognized; ``control_rate``: releases made without it
        that are taken for such; ``baseline_rate`` is one half, a coin; ``value`` the risk (attack - holdout) /
        (1 - holdout) with ``risk_low`` and ``risk_high`` (95 %; targets that were attacked in one release are likely to
        be recognized together, and count for fewer accordingly). ``auc``, ``tpr_at_fpr_001``, ``tpr_at_fpr_01`` over
        all cuts, ``worst_target_risk``.
        ``detail``: ``records`` (the targets).

    How to read it
    --------------
    It speaks of the generator and of those who stand out, not of one release and everybody. A generator that gives
    nobody away has an AUC of one half; ``tpr_at_fpr_001`` is what somebody learns who accuses nobody lightly.

    When not to trust it
    --------------------
    The likelihood ratio looks at how near a release comes to the target. A generator may leak in other ways.

    Examples
    --------
    >>> from discreet import synth
    >>> rng = generator(1)
    >>> people = Microdata(pl.DataFrame(rng.normal(size=(200, 3)), schema=["a", "b", "c"]))
    >>> found = shadow_membership(people, synthesizer="bootstrap", targets=10, shadows=16, records=50, seed=1)
    >>> found.figures["auc"] > 0.7
    True
    """
    from discreet.synth.synthesizer import Synthesizer  # every generator comes with it

    made = Synthesizer.named(synthesizer, {}) if isinstance(synthesizer, str) else synthesizer
    if not isinstance(made, Synthesizer):
        raise ParameterError("synthesizer must be a generator of discreet.synth, or the name of one.")
    if shadows % 2:
        raise ParameterError("shadows must be an even number: half of them hold each target.")
    table = engine.collect(original, original.columns)
    names = compared_columns(original, original).names
    if table.height < 2 * records:
        raise ParameterError(
            f"A shadow file of {records:,} people is drawn from twice as many, and there are {table.height:,}: set "
            f"records to {table.height // 2:,} or less."
        )
    root = int(generator(seed).integers(2**62))
    space = MixedSpace.fit(table.select(names))
    chosen = _outlying(space, table.select(names), targets)
    others = np.setdiff1d(np.arange(table.height), chosen)
    rest = generator(root, "pool").permutation(others)[: 2 * records - len(chosen)]
    pool = np.concatenate([chosen, rest]).astype(np.int64)
    held, nearness = _shadows(
        original, table, names, pool, made, targets=len(chosen), shadows=shadows, root=root, progress=progress
    )
    scores = _likelihood_ratios(nearness, held)
    told = Scores(scores[held], scores[~held])
    by_target = np.array(
        [_gain(scores[at][held[at]] >= 0, scores[at][~held[at]] >= 0) for at in range(len(chosen))]
    )
    return measured(
        "shadow_membership",
        Trial(*_tallies(scores >= 0, held), 0.5),
        doing="recognizes a person who stands out as being in the file (by shadow models)",
        figures={**roc_figures(told), "worst_target_risk": float(by_target.max())},
        caveats=records_only(original),
        parameters={
            "synthesizer": made.name,
            "targets": len(chosen),
            "shadows": shadows,
            "records": records,
            "seed": seed if isinstance(seed, int) else None,
        },
        detail=Detail(
            records=lambda: engine.like(original, pl.DataFrame({"record": chosen, "risk": by_target}))
        ),
    )


def _outlying(space: MixedSpace, table: pl.DataFrame, wanted: int) -> Integers:
    """Give the records farthest from their nearest others."""
    points = space.place(table)
    away = nearest(space, points, k=min(_NEIGHBORS, len(points) - 1)).distance.mean(axis=1)
    return np.sort(np.argsort(-away, kind="stable")[:wanted]).astype(np.int64)


def _shadows(
    original: Microdata,
    table: pl.DataFrame,
    names: tuple[str, ...],
    pool: Integers,
    made: Synthesizer,
    *,
    targets: int,
    shadows: int,
    root: int,
    progress: bool,
) -> tuple[Flags, Floats]:
    """Fit the generator to halves of the pool, and note for each target who had it and how near the release came."""
    half = len(pool) // 2
    held = np.zeros((targets, shadows), dtype=bool)
    nearness = np.empty((targets, shadows, 2))
    split = np.zeros(len(pool), dtype=bool)
    for number in track(range(shadows), description="Shadow models", progress=progress):
        if number % 2 == 0:
            split = np.zeros(len(pool), dtype=bool)
            split[generator(root, "split", str(number)).permutation(len(pool))[:half]] = True
        inside = split if number % 2 == 0 else ~split
        held[:, number] = inside[:targets]
        draw = generator(root, "shadow", str(number))
        with warnings.catch_warnings(action="ignore"):
            data = original.with_frame(engine.in_kind(original, table[np.sort(pool[inside])]))
            fitted = made.fit(data, seed=int(draw.integers(2**62)))
            release = fitted.sample(int(inside.sum()), seed=int(draw.integers(2**62)))
        nearness[:, number] = _near(table[pool[:targets]], engine.collect(release, names), names)
    return held, nearness


def _near(people: pl.DataFrame, release: pl.DataFrame, names: tuple[str, ...]) -> Floats:
    """Write how near a release comes to each person: the logs of the distances to its first and its nearest few."""
    space = MixedSpace.fit(people.select(names), release)
    asked, crowd = space.place(people.select(names)), space.place(release)
    found = nearest(space, asked, crowd, k=min(_NEIGHBORS, release.height)).distance
    return np.asarray(np.log(np.column_stack([found[:, 0], found.mean(axis=1)]) + 1e-3))


def _likelihood_ratios(nearness: Floats, held: Flags) -> Floats:
    """Weigh for every target and release whether it was made with the target, by the releases of other splits.

    The releases of one split, one made with the target and one without, are left out together. Were only the one left
    out that is judged, the mean of its own kind would move away from it, and the attack would do worse than a coin.
    """
    total = np.zeros(held.shape)
    for figure in range(nearness.shape[2]):
        values = nearness[:, :, figure]
        logs = {}
        for inside in (True, False):
            use = held == inside
            count = use.sum(axis=1, keepdims=True) - _of_split(use)
            sums = (values * use).sum(axis=1, keepdims=True) - _of_split(values * use)
            squares = (values**2 * use).sum(axis=1, keepdims=True) - _of_split(values**2 * use)
            mean = sums / count
            spread = np.maximum(squares / count - mean**2, 0) + 1e-4
            logs[inside] = -0.5 * np.log(spread) - (values - mean) ** 2 / (2 * spread)
        total += logs[True] - logs[False]
    return total


def _of_split(values: Floats | Flags) -> Floats:
    """Sum the two releases of each split, and give each of them the sum."""
    halves = values.reshape(len(values), -1, 2).sum(axis=2)
    return np.asarray(np.repeat(halves, 2, axis=1))


def _tallies(told: Flags, held: Flags) -> tuple[Tally, Tally]:
    """Count whom the attack takes for a member: in releases made with them, and in releases made without.

    All targets share the releases, and all releases of a target are judged by nearly the same laws. How far that makes
    the difference of the two rates vary from split to split and from target to target says how many independent tries
    they are worth (clusters in both directions: Cameron, Gelbach and Miller 2011); few clusters say it badly, and count
    for fewer still.
    """
    from scipy.stats import t

    targets, splits = len(held), held.shape[1] // 2
    inside, outside = ((told & use).reshape(targets, splits, 2).any(axis=2) for use in (held, ~held))
    gain = inside.astype(np.float64) - outside
    attack, control = float(inside.mean()), float(outside.mean())
    tries = float(gain.size)
    alone = (attack * (1 - attack) + control * (1 - control)) / tries
    by_split = float(gain.mean(axis=0).var(ddof=1)) / splits
    # One target says nothing of how targets differ; its laws are as uncertain as its tries.
    by_target = float(gain.mean(axis=1).var(ddof=1)) / targets if targets > 1 else 2 * alone
    together = max(by_split, by_target, by_split + by_target - alone, alone)
    worth = together / alone if alone > 0 else 1.0
    worth *= float(t.ppf(0.975, min(splits, max(targets, 2)) - 1) / 1.959964) ** 2
    tries = max(tries / worth, 1.0)
    return Tally(attack * tries, tries), Tally(control * tries, tries)


def _gain(inside: Flags, outside: Flags) -> float:
    attack, control = float(inside.mean()), float(outside.mean())
    return 0.0 if control >= 1 else (attack - control) / (1 - control)
