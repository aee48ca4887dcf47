"""Can something be learned about somebody from the release, beyond what is true of people in general?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.attack.releases.guessing import (
    METHODS,
    Clues,
    Method,
    Secret,
    blind_guess,
    guesses,
    is_right,
    secrets_of,
)
from discreet.attack.releases.victims import Victims, drawn, victims_of
from discreet.attack.success import (
    OPINION,
    REFERENCE,
    RISK_FIGURES,
    Tally,
    Trial,
    measured,
    trials_table,
    worst_trial,
)
from discreet.core.arrays import Flags
from discreet.core.cards import OfPair, TwoFiles, measure
from discreet.core.errors import ColumnError, InputError, ParameterError
from discreet.core.parameters import checked
from discreet.core.progress import track
from discreet.core.randomness import Seed, generator
from discreet.core.results import Detail, Measure
from discreet.engine.precision import Setting
from discreet.microdata import Microdata
from discreet.pairs.side_by_side import names_checked


def _settings(pair: TwoFiles) -> Mapping[str, Any]:
    return {"control": pair.holdout, "secret": list(pair.sensitive) or None, "known": list(pair.columns)}


@measure(
    title="Inference",
    headline="of the secrets are guessed because of the release",
    chapter="attackers",
    place=3,
    leading=True,
    work="whole-file",
    references=(OPINION, REFERENCE),
    figures=RISK_FIGURES,
    compare=OfPair(
        62, "risk", usual=False, judged_by_holdout=True, takes_copies=False, one_type=True, settings=_settings
    ),
)
@checked
def inference(
    original: Microdata,
    released: Microdata,
    *,
    secret: str | Sequence[str] | None = None,
    known: Sequence[str] | None = None,
    control: Microdata | None = None,
    attacks: int = 1_000,
    method: Method | Sequence[Method] | None = None,
    tolerance: float = 0.05,
    categorical: Sequence[str] = (),
    precision: Setting = None,
    progress: bool = False,
    seed: Seed = None,
) -> Measure:
    """Can something be learned about somebody from the release, beyond what is true of people in general?

    The attacker knows some columns of a person and guesses another from the release: by the nearest released record, by
    a forest and by boosted trees. What is guessed as often about people who are not in the file is knowledge about
    people, and no harm that a record does to its owner.

    Parameters
    ----------
    original, released
        The file the release was made from, and the release.
    secret
        The column, or columns, to be guessed; the sensitive ones of the original unless named, or else all.
    known
        What the attacker knows; all columns but the secret unless named.
    control
        People of the same population who were not used to make the release.
    attacks
        How many people are attacked, in the file and in the control.
    method
        ``"nearest"``, ``"forest"``, ``"boosted"``, or several; all three unless named.
    tolerance
        How far the guess of a number may be off, in either direction, as a share of the true number; for dates, as a
        share of the days between the first and the last.
    categorical
        Columns of numbers that are codes.
    precision
        How precisely numbers are compared; as both files have them unless set.
    progress
        Show a progress bar on a terminal.
    seed
        Which people are attacked, and the draws of the forest.

    Returns
    -------
    Measure
        ``value`` is the risk of the secret and the method that succeed most surely, (attack - control) / (1 - control),
        with ``attack_rate``, ``control_rate``, ``baseline_rate`` (the one answer that fits most: 0.5 for a fair coin),
        ``risk_low`` and ``risk_high`` (95 %, widened for the choice). ``detail``: ``secrets`` (each by each method)
        and ``records`` (who was attacked by the worst, and with what success).

    How to read it
    --------------
    A risk of 0.2 means: of five people whose secret nobody could have guessed, one lost it because they were in the
    file. Look at ``detail["secrets"]``: where nearest neighbors succeed, records came through almost as they were.

    When not to trust it
    --------------------
    A control from another population, or one that was used to tune the generator, moves the answer either way. Secrets
    that follow from a known column (a code and its name) are guessed about everybody, and the risk is undefined.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> def people():
    ...     known = {name: rng.normal(size=400) for name in ("x", "y")}
    ...     return Microdata(pl.DataFrame({**known, "coin": rng.integers(0, 2, 400)}))
    >>> real, others = people(), people()
    >>> found = inference(real, real, secret="coin", categorical=["coin"], method="nearest", control=others, seed=1)
    >>> found.figures["attack_rate"], round(found.figures["baseline_rate"], 1)
    (1.0, 0.5)
    """
    if not 0 <= tolerance < 1:
        raise ParameterError("tolerance must be a share from 0 to below 1.")
    methods = (
        METHODS if method is None else (method,) if isinstance(method, str) else tuple(dict.fromkeys(method))
    )
    if not methods:
        raise ParameterError("method is empty: name one of 'nearest', 'forest', 'boosted', or leave it out.")
    victims, secrets, knowns = _plan(original, released, control, secret, known, categorical, precision)
    root = int(generator(seed).integers(2**62))
    trials: dict[str, Trial] = {}
    rows: dict[str, pl.DataFrame] = {}
    said: list[str] = []
    for name in track(secrets, description="Guessing", progress=progress and len(secrets) > 1):
        told, hits, caveats = _attacked(
            victims, name, knowns[name], methods=methods, attacks=attacks, tolerance=tolerance, root=root
        )
        trials |= {f"{name} by {one}": trial for one, trial in told.items()}
        rows |= {f"{name} by {one}": table for one, table in hits.items()}
        said += caveats
    worst = worst_trial(trials)
    return measured(
        "inference",
        *trials[worst],
        doing=f"guesses a person's '{worst.rpartition(' by ')[0]}' ({_WAYS[worst.rpartition(' by ')[2]]})",
        many=len(trials),
        caveats=[*victims.caveats, *said],
        parameters={
            "secret": list(secrets),
            "known": list(known) if known is not None else "all others",
            "attacks": attacks,
            "method": list(methods),
            "tolerance": tolerance,
            "categorical": list(categorical),
            "control": control is not None,
            "seed": seed if isinstance(seed, int) else None,
        },
        detail=Detail(
            secrets=lambda: engine.like(original, _side_by_side(trials)),
            records=lambda: engine.like(original, rows[worst]),
        ),
    )


_WAYS = {"nearest": "by the nearest record", "forest": "by a forest", "boosted": "by boosted trees"}


def _plan(  # noqa: PLR0917
    original: Microdata,
    released: Microdata,
    control: Microdata | None,
    secret: str | Sequence[str] | None,
    known: Sequence[str] | None,
    categorical: Sequence[str],
    precision: Setting,
) -> tuple[Victims, tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Settle which columns are guessed from which, and bring the files together."""
    named = None if secret is None else names_checked(original, secret, "secret")
    if named is not None and not named:
        raise ParameterError("secret is empty: name the columns to be guessed, or leave it out.")
    given = None if known is None else names_checked(original, known, "known")
    wanted = (
        None if named is None or given is None else [*named, *(name for name in given if name not in named)]
    )
    victims = victims_of(
        original, released, control, columns=wanted, categorical=categorical, precision=precision
    )
    if named is not None:
        for name in named:
            if name not in victims.names:
                raise ColumnError(
                    f"Column '{name}' is named as secret, but another file lacks it, or it identifies people by itself."
                )
    sensitive = tuple(name for name in original.roles.sensitive if name in victims.names)
    secrets = named or sensitive or victims.names
    knowns = {
        name: tuple(other for other in (given or victims.names) if other != name and other in victims.names)
        for name in secrets
    }
    for name, columns in knowns.items():
        if not columns:
            raise ParameterError(f"Nothing is known from which '{name}' could be guessed. Name known=[…].")
    return victims, secrets, knowns


def _attacked(
    victims: Victims,
    name: str,
    known: Sequence[str],
    *,
    methods: Sequence[Method],
    attacks: int,
    tolerance: float,
    root: int,
) -> tuple[dict[Method, Trial], dict[Method, pl.DataFrame], list[str]]:
    """Guess one secret by each method, about people in the file and in the control alike."""
    tables = victims.tables
    coded = secrets_of([table[name] for table in tables], categorical=name in victims.categorical)
    released = coded[1]
    if np.isnan(released.values).all():
        raise InputError(
            f"Column '{name}' is missing in every released record: nothing can be learned of it."
        )
    chosen = []
    for which, at in (("original", 0), *((("control", 2),) if len(tables) > 2 else ())):
        there = np.flatnonzero(~np.isnan(coded[at].values))
        if not len(there):
            raise InputError(
                f"Column '{name}' is missing for everybody in the {which}: no guess could be checked."
            )
        chosen.append(there[drawn(len(there), attacks, generator(root, name, which))])
    truths = [coded[at].values[rows] for at, rows in zip((0, 2), chosen, strict=False)]
    people = pl.concat([tables[at][rows].select(known) for at, rows in zip((0, 2), chosen, strict=False)])
    clues = Clues.of(tables[1].select(known), people, victims.categorical)
    reach = _reach(victims, name, coded[0])
    truth = np.concatenate(truths)
    cut = len(truths[0])
    blind = is_right(
        np.full(cut, blind_guess(released, tolerance, reach)), truths[0], released, tolerance, reach
    )
    trials: dict[Method, Trial] = {}
    rows: dict[Method, pl.DataFrame] = {}
    for method in methods:
        guess = guesses(method, clues, released, generator(root, name, method))
        right: Flags = is_right(guess, truth, released, tolerance, reach)
        control = Tally.of(right[cut:]) if len(chosen) > 1 else None
        trials[method] = Trial(Tally.of(right[:cut]), control, Tally.of(blind))
        rows[method] = pl.DataFrame({"record": chosen[0], "guessed": right[:cut]})
    gone = int(np.isnan(coded[0].values).sum())
    said = (
        [f"'{name}' is missing for {gone:,} people of the original; they were not attacked."] if gone else []
    )
    return trials, rows, said


def _reach(victims: Victims, name: str, secret: Secret) -> float:
    """Give the days between the first and the last date of a column of dates; 0 for numbers and labels."""
    if not victims.original.schema[name].is_temporal() or not secret.is_number:
        return 0.0
    return float(np.nanmax(secret.values) - np.nanmin(secret.values))


def _side_by_side(trials: Mapping[str, Trial]) -> pl.DataFrame:
    table = trials_table(trials, heading="secret")
    parts = [name.rpartition(" by ") for name in trials]
    return table.with_columns(
        pl.Series("secret", [secret for secret, _, _ in parts]),
    ).insert_column(1, pl.Series("method", [method for _, _, method in parts]))
