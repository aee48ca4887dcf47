"""What do several releases of the same people give away together that none does alone?

Noise and draws that differ from release to release average out: the attacker guesses a secret from each release and
takes the middle of the guesses (of numbers), or what most of them say (of labels).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
import polars as pl

from discreet import engine
from discreet.attack.attribute_inference import (
    Clues,
    Method,
    Secret,
    blind_guess,
    guesses,
    is_right,
    not_attacked,
    reach_of,
    secrets_of,
)
from discreet.attack.success import OPINION, RISK_FIGURES, Tally, Trial, measured
from discreet.attack.victims import drawn, victims_of
from discreet.core.arrays import Floats
from discreet.core.cards import Figure, measure
from discreet.core.constraints import AtLeast, ColumnName, ColumnNames, Share
from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.core.parameters import checked
from discreet.core.randomness import Seed, generator
from discreet.core.results import Detail, Measure
from discreet.microdata import Microdata
from discreet.pairs.side_by_side import copies_of, names_checked


@measure(
    room="attack",
    title="Attribute reconstruction",
    headline="of the secrets are rebuilt from several releases together",
    chapter="attackers",
    place=6,
    work="whole-file",
    references=(
        OPINION,
        "Dinur, I. and Nissim, K. (2003). Revealing information while preserving privacy. Proceedings of PODS, "
        "202–210. doi:10.1145/773153.773173",
    ),
    figures={
        **RISK_FIGURES,
        "one_release_rate": Figure("Successes by one release, on average", unit="share", better="lower"),
        "gain": Figure("Successes that only several releases together give", unit="share", better="lower"),
    },
)
@checked
def attribute_reconstruction(
    original: Microdata,
    released: Sequence[Microdata],
    *,
    secret: ColumnName,
    known: ColumnNames | None = None,
    holdout: Microdata | None = None,
    attacks: Annotated[int, AtLeast(1)] = 1_000,
    method: Method = "nearest",
    tolerance: Annotated[float, Share(below=True)] = 0.05,
    categorical: ColumnNames = (),
    seed: Seed = None,
) -> Measure:
    """What do several releases of the same people give away together that none does alone?

    Parameters
    ----------
    original
        The file the releases were made from.
    released
        Two releases or more: synthetic copies, or the same file perturbed several times.
    secret
        The column to be rebuilt.
    known
        What the attacker knows; all columns but the secret unless named.
    holdout
        People of the same population who were not used to make the releases.
    attacks
        How many people are attacked, in the file and in the holdout.
    method
        How a secret is guessed from one release: ``"nearest"``, ``"forest"`` or ``"boosted"``.
    tolerance
        How far the guess of a number may be off, in either direction, as a share of the true number.
    categorical
        Columns of numbers that are codes.
    seed
        Which people are attacked, and the draws of the forest.

    Returns
    -------
    Measure
        As `inference`, for all releases together; ``one_release_rate`` is the mean success by one of them, ``gain``
        what the others add. ``detail``: ``records``.

    How to read it
    --------------
    A gain above zero is the price of publishing another version: what was hidden in one is not hidden in five. Publish
    one release, or draw the noise from a key so that it is the same in all.

    When not to trust it
    --------------------
    Guesses are combined in the simplest way. An attacker who knows how the releases were made can do better.

    Examples
    --------
    >>> rng = generator(1)
    >>> people = pl.DataFrame({"id": rng.normal(size=300), "pay": rng.uniform(1000, 2000, 300)})
    >>> noisy = [people.with_columns(pay=pl.col("pay") + rng.normal(0, 150, 300)) for _ in range(9)]
    >>> found = attribute_reconstruction(Microdata(people), [Microdata(one) for one in noisy], secret="pay", seed=1)
    >>> found.figures["gain"] > 0.2
    True
    """
    copies = copies_of(released, original)
    if len(copies) < 2:
        raise ParameterError(
            "attribute_reconstruction needs two releases or more; for one, inference asks the same question."
        )
    names_checked(original, secret, "secret")
    given = None if known is None else names_checked(original, known, "known")
    columns = None if given is None else [secret, *(name for name in given if name != secret)]
    fields = [
        victims_of(original, copy, holdout, columns=columns, categorical=categorical) for copy in copies
    ]
    first = fields[0]
    if secret not in first.names or len(first.names) < 2:
        raise ColumnError(
            f"Column '{secret}' is named as secret: it and a column that is known must be in all files, and it must "
            "not identify people by itself."
        )
    clue_names = [name for name in first.names if name != secret]
    root = int(generator(seed).integers(2**62))
    people = [first.original, *([] if first.holdout is None else [first.holdout])]
    coded = secrets_of(
        [table[secret] for table in (*people, *(field.released for field in fields))],
        categorical=secret in categorical,
    )
    for place, held in enumerate(coded[len(people) :], start=1):
        if np.isnan(held.values).all():
            raise InputError(
                f"Column '{secret}' is missing in every record of release {place}: nothing can be learned of it there. "
                "Leave that release out."
            )
    chosen = []
    for which, held in enumerate(coded[: len(people)]):
        there = np.flatnonzero(~np.isnan(held.values))
        if not len(there):
            raise InputError(f"Column '{secret}' is missing for everybody: no guess could be checked.")
        chosen.append(there[drawn(len(there), attacks, generator(root, "people", str(which)))])
    asked = pl.concat([table[rows].select(clue_names) for table, rows in zip(people, chosen, strict=True)])
    truth = np.concatenate([held.values[rows] for held, rows in zip(coded, chosen, strict=False)])
    told = np.stack(
        [
            guesses(
                method,
                Clues.of(field.released.select(clue_names), asked, categorical),
                held,
                generator(root, method, str(place)),
            )
            for place, (field, held) in enumerate(zip(fields, coded[len(people) :], strict=True))
        ]
    )
    reach = reach_of(first, secret, coded[0])
    cut = len(chosen[0])
    right = is_right(_together(told, coded[0]), truth, coded[0], tolerance, reach)
    alone = float(np.mean([is_right(one, truth, coded[0], tolerance, reach)[:cut].mean() for one in told]))
    constant = np.full(cut, blind_guess(coded[len(people)], tolerance, reach))
    return measured(
        "attribute_reconstruction",
        Trial(
            Tally.of(right[:cut]),
            Tally.of(right[cut:]) if holdout is not None else None,
            Tally.of(is_right(constant, truth[:cut], coded[0], tolerance, reach)),
        ),
        doing=f"rebuilds a person's '{secret}' from {len(copies)} releases",
        figures={"one_release_rate": alone, "gain": float(right[:cut].mean()) - alone},
        caveats=[
            *dict.fromkeys(said for field in fields for said in field.caveats),
            *not_attacked(coded[0], secret),
        ],
        parameters={
            "secret": secret,
            "known": clue_names,
            "releases": len(copies),
            "attacks": attacks,
            "method": method,
            "tolerance": tolerance,
            "categorical": list(categorical),
            "holdout": holdout is not None,
            "seed": seed if isinstance(seed, int) else None,
        },
        detail=Detail(
            records=lambda: engine.like(original, pl.DataFrame({"record": chosen[0], "guessed": right[:cut]}))
        ),
    )


def _together(told: Floats, secret: Secret) -> Floats:
    """Take the middle of the guesses of a number, and what most guesses of a label say (of two, the first)."""
    if secret.is_number:
        return np.asarray(np.median(told, axis=0))
    votes = (told[:, :, None] == np.arange(secret.levels)).sum(axis=0)
    return np.asarray(votes.argmax(axis=1).astype(np.float64))
