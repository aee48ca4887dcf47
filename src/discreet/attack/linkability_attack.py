"""Can two things that are known about a person be brought together by the release?

The attacker holds two files: one knows some columns about people, the other knows others. For a person in both, the
released records nearest by the one and nearest by the other are looked up; where the same record is among both, the two
files are linked for that person.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import polars as pl

from discreet import engine
from discreet.attack.success import (
    OPINION,
    REFERENCE,
    RISK_FIGURES,
    WOULD_GIVE,
    Tally,
    Trial,
    harmless,
    measured,
    worst_at,
)
from discreet.attack.victims import Victims, drawn, victims_of
from discreet.core.arrays import Flags, Integers
from discreet.core.cards import OfPair, TwoFiles, measure
from discreet.core.constraints import AtLeast, ColumnNames, Public
from discreet.core.errors import ColumnError, ParameterError
from discreet.core.findings import OfBenchmark
from discreet.core.parameters import checked
from discreet.core.randomness import Seed, generator
from discreet.core.results import Detail, Measure
from discreet.engine.precision import Setting
from discreet.microdata import Microdata
from discreet.numerics.distance.search import nearest
from discreet.numerics.distance.space import Distance, MixedSpace


def _settings(pair: TwoFiles) -> Mapping[str, Any]:
    first, second = _halves(pair.keys, pair.columns)
    return {"columns": (list(first), list(second)) if second else None}


def _halves(keys: Sequence[str], names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Give the keys to one side and the rest to the other, or every second column to each where that is not two."""
    first = tuple(name for name in keys if name in names)
    if not first or len(first) == len(names):
        first = tuple(names[::2])
    return first, tuple(name for name in names if name not in first)


@measure(
    room="attack",
    title="Linkability",
    headline="of the people could be linked because of the release",
    chapter="attackers",
    place=2,
    leading=True,
    work="whole-file",
    references=(OPINION, REFERENCE),
    figures=RISK_FIGURES,
    compare=OfPair(
        61,
        "risk",
        usual=False,
        judged_by_holdout=True,
        without="cross-fit",
        one_type=True,
        settings=_settings,
    ),
    worst=worst_at(21),
    synthesis=WOULD_GIVE,
    benchmark=OfBenchmark(4),
)
@checked
def linkability(
    original: Microdata,
    released: Microdata,
    *,
    columns: Annotated[tuple[Sequence[str], Sequence[str]], Public()] | None = None,
    neighbors: Annotated[int, AtLeast(1)] = 1,
    holdout: Microdata | None = None,
    attacks: Annotated[int, AtLeast(1)] = 2_000,
    categorical: ColumnNames = (),
    distance: Distance = "gower",
    precision: Annotated[Setting, Public()] = None,
    jointly: Annotated[int, AtLeast(1)] = 1,
    progress: bool = False,
    seed: Seed = None,
) -> Measure:
    """Can two things that are known about a person be brought together by the release?

    Also known as: Anonymeter linkability.

    Parameters
    ----------
    original, released
        The file the release was made from, and the release.
    columns
        What each of the two files of the attacker knows, ``(["age", "sex"], ["town", "illness"])``. Unless given: the
        keys in the one and all other columns in the other, or every second column where there are no keys.
    neighbors
        How many nearest released records are looked up on each side.
    holdout
        People of the same population who were not used to make the release.
    attacks
        How many people are attacked, in the file and in the holdout.
    categorical
        Columns of numbers that are codes.
    distance
        ``gower`` or ``euclidean``; see `discreet.numerics.distance`.
    precision
        How precisely numbers are compared; as both files have them unless set.
    jointly
        Over how many attacks the lower end of what is sure (``risk_at_least``) holds together.
    progress
        Show a progress bar on a terminal.
    seed
        Which people are attacked, and which of equally near records come first.

    Returns
    -------
    Measure
        ``value`` is the risk (attack - holdout) / (1 - holdout), with ``attack_rate``, ``control_rate``,
        ``baseline_rate`` (two draws of released records meet by chance), ``risk_low`` and ``risk_high`` (95 %).
        ``detail``: ``records`` (who of the original was attacked, and with what success).

    How to read it
    --------------
    A risk of 0.05 means: for one person in twenty the release is the bridge between two files that nobody could have
    joined before. What links people who are not in the file as often is no bridge.

    When not to trust it
    --------------------
    The answer is about these two sets of columns; others may link better. Where a set has few different values, many
    released records are equally near, and the attack is weak: see the blind guess beside it.

    Examples
    --------
    >>> rng = generator(1)
    >>> people, others = (
    ...     Microdata(pl.DataFrame(rng.normal(size=(300, 4)).round(3), schema=["a", "b", "c", "d"])) for _ in range(2)
    ... )
    >>> linkability(people, people, columns=(["a", "b"], ["c", "d"]), holdout=others, seed=1).value > 0.95
    True
    """
    sides = _sides(original, released, holdout, columns)
    victims = victims_of(
        original,
        released,
        holdout,
        columns=[*sides[0], *sides[1]],
        categorical=categorical,
        precision=precision,
    )
    if neighbors >= victims.released.height:
        raise ParameterError(
            f"neighbors is {neighbors:,}, but the release has {victims.released.height:,} records: everybody would be "
            "linked. Look up fewer."
        )
    still = [side for side in sides if all(victims.released[name].n_unique() < 2 for name in side)]
    if still:
        listed = ", ".join(map(repr, still[0]))
        why = f"Nobody can be linked: the release says the same of everybody in {listed}."
        return harmless("linkability", why, victims, {"columns": [list(side) for side in sides]})
    root = int(generator(seed).integers(2**62))
    # Equally near records come in the order of the file, which may say something; a shuffled file says nothing.
    shuffled = generator(root, "order").permutation(victims.released.height)
    victims = Victims(**{**vars(victims), "released": victims.released[shuffled]})
    inside = drawn(victims.original.height, attacks, generator(root, "original"))
    groups = [victims.original[inside]]
    if victims.holdout is not None:
        outside = drawn(victims.holdout.height, attacks, generator(root, "control"))
        groups.append(victims.holdout[outside])
    hits = _linked(
        victims, pl.concat(groups), sides, neighbors=neighbors, distance=distance, progress=progress
    )
    success = hits[: len(inside)]
    return measured(
        "linkability",
        Trial(
            Tally.of(success),
            Tally.of(hits[len(inside) :]) if holdout is not None else None,
            _by_chance(victims.released.height, neighbors),
        ),
        doing="links two things that are known about a person",
        jointly=jointly,
        caveats=victims.caveats,
        parameters={
            "columns": [list(side) for side in sides],
            "neighbors": neighbors,
            "attacks": attacks,
            "categorical": list(categorical),
            "distance": distance,
            "holdout": holdout is not None,
            "seed": seed if isinstance(seed, int) else None,
        },
        detail=Detail(
            records=lambda: engine.like(original, pl.DataFrame({"record": inside, "linked": success}))
        ),
    )


def _sides(
    original: Microdata,
    released: Microdata,
    holdout: Microdata | None,
    columns: tuple[Sequence[str], Sequence[str]] | None,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if columns is not None:
        first, second = (tuple(dict.fromkeys([side] if isinstance(side, str) else side)) for side in columns)
        if not first or not second:
            raise ParameterError("columns must name what each of two files knows: neither may be empty.")
        both = [name for name in first if name in second]
        if both:
            raise ColumnError(
                f"Column '{both[0]}' is on both sides of columns: what both files know links them without the release. "
                "Name it on one side."
            )
        return first, second
    from discreet.pairs.side_by_side import compared_columns

    names = compared_columns(original, [released, *([] if holdout is None else [holdout])]).names
    first, second = _halves(original.roles.keys, names)
    if not second:
        raise ParameterError(
            "Linking needs two columns at least. Name what each file knows with columns=([…], […])."
        )
    return first, second


def _linked(
    victims: Victims,
    people: pl.DataFrame,
    sides: tuple[Sequence[str], Sequence[str]],
    **search: Any,
) -> Flags:
    """Say for whom the same released record is among the nearest of both sides."""
    found = [_nearest(victims, people, side, **search) for side in sides]
    met: Flags = (found[0][:, :, None] == found[1][:, None, :]).any(axis=(1, 2))
    return met


def _nearest(
    victims: Victims,
    people: pl.DataFrame,
    side: Sequence[str],
    *,
    neighbors: int,
    distance: Distance,
    progress: bool,
) -> Integers:
    codes = [name for name in victims.categorical if name in side]
    space = MixedSpace.fit(
        victims.released.select(side), people.select(side), distance=distance, categorical=codes
    )
    if not space.columns:
        raise ColumnError(
            f"Nothing varies in the release in {', '.join(map(repr, side))}, so nobody can be looked up by it. Name "
            "other columns."
        )
    return nearest(
        space,
        space.place(people.select(side)),
        space.place(victims.released.select(side)),
        k=neighbors,
        progress=progress,
        description="Looking up",
    ).index


def _by_chance(records: int, neighbors: int) -> float:
    """Give the chance that two draws of so many different records share one.

    Examples
    --------
    >>> _by_chance(100, 1), _by_chance(4, 3)
    (0.01, 1.0)
    """
    if 2 * neighbors > records:
        return 1.0
    none = (
        math.lgamma(records - neighbors + 1) * 2
        - math.lgamma(records - 2 * neighbors + 1)
        - math.lgamma(records + 1)
    )
    return round(1 - math.exp(none), 12)
