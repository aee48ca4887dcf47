"""Which combination of model, explanation, guard and attacker gives most away?"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from discreet.attack.explanations.explainers import Explainer, Explaining
from discreet.attack.explanations.guarded_explanations import Guard
from discreet.attack.explanations.inversion import Attack, Inverse, Regression
from discreet.attack.explanations.scene import (
    checked_sizes,
    guarded,
    rates,
    record_table,
    somebody_else,
    staged,
)
from discreet.attack.explanations.shapley import Predict
from discreet.attack.explanations.shapley_reconstruction import LUO_2022
from discreet.attack.explanations.sigmoid_network import Optimizer
from discreet.core.cards import Figure, measure
from discreet.core.errors import InputError, ParameterError
from discreet.core.parameters import checked
from discreet.core.progress import track
from discreet.core.randomness import generator
from discreet.core.results import Detail, Measure
from discreet.core.wording import percent

_TOLD = ("attack_rate", "control_rate", "baseline_rate", "risk", "mae", "relative_risk")


@measure(
    title="Explanations under attack, compared",
    headline="of the values found in the worst combination",
    chapter="rebuilt",
    place=2,
    work="whole-file",
    references=(LUO_2022,),
    figures={
        "value": Figure("Values found in the worst combination", unit="share", better="lower"),
        "least": Figure("Values found in the best combination", unit="share", better="lower"),
        "baseline_rate": Figure("Values found without any explanation, at most", unit="share"),
        "combinations": Figure("Combinations tried"),
    },
    columns={
        "attack_rate": Figure("Values found", unit="share", better="lower"),
        "control_rate": Figure("Values found from somebody else's explanation", unit="share"),
        "baseline_rate": Figure("Values found without any explanation", unit="share"),
        "mae": Figure("Mean error, in shares of the range", better="higher"),
    },
)
@checked
def shapley_sweep(
    models: Mapping[str, Predict],
    reference: Any,
    auxiliary: Any,
    target: Any,
    *,
    explainer: Explainer = "exact",
    attacks: Sequence[Attack | Regression] = ("linear",),
    optimizers: Sequence[Optimizer] = ("adam",),
    guards: Sequence[Guard | None] = (None,),
    sizes: Sequence[int] | None = None,
    seeds: int = 3,
    groups: Sequence[Sequence[int]] | None = None,
    names: Sequence[str] | None = None,
    categorical: Collection[str | int] = (),
    discrete: Collection[str | int] = (),
    thresholds: Mapping[str, float] | None = None,
    include_constant: bool = False,
    allow_overlap: bool = False,
    allow_nan: bool = False,
    permutations: int = 64,
    force: bool = False,
    epochs: int = 500,
    batch_size: int = 32,
    progress: bool = False,
    seed: int | None = None,
) -> Measure:
    """Which model, shown how and to whom, gives most of a record away through its explanations?

    Every model is attacked by every attack, with every number of auxiliary records and behind every guard, several
    times: each time other auxiliary records are taken and the attack is trained anew. Explanations are asked for once a
    model.

    Parameters
    ----------
    models
        Models by name, each as in `shapley_reconstruction`. A model trained on synthetic records is one of them.
    reference, auxiliary, target, explainer, groups, names, categorical, discrete, thresholds, include_constant
        As in `shapley_reconstruction`.
    attacks
        Attack models; ``mlp`` is trained by each of ``optimizers``.
    guards
        What is shown instead of the explanation; None for the explanation itself.
    sizes
        Numbers of auxiliary records; all of them unless given. A cap on queries is a smaller number.
    seeds
        How often each combination is tried.
    allow_overlap, allow_nan, permutations, force, epochs, batch_size
        As in `shapley_reconstruction`.
    progress
        Show a progress bar on a terminal.
    seed
        Opens the seeds of all tries.

    Returns
    -------
    Measure
        ``value`` is the largest success rate; ``detail["sweep"]`` has a row a combination: means over the tries,
        ``se_attack_rate`` and ``se_mae`` their standard errors, and ``fidelity`` of the guard.

    How to read it
    --------------
    Sort ``detail["sweep"]`` by ``attack_rate``. A guard is worth its price where the rate falls towards
    ``baseline_rate`` while ``fidelity`` stays high; a cap on queries is worth something where small numbers of
    auxiliary records fail.

    When not to trust it
    --------------------
    The largest of many rates is larger than what one attacker would see, and the standard errors are over tries with
    the same people under attack. No guard but noise promises anything.

    Examples
    --------
    >>> rows = np.random.default_rng(1).normal(size=(90, 3))
    >>> models = {"line": lambda x: x @ [1.0, -2.0, 0.5], "step": lambda x: 1.0 * (x[:, 0] > 0)}
    >>> found = shapley_sweep(models, rows[:30], rows[30:60], rows[60:], seeds=1)
    >>> found.detail["sweep"].sort("attack_rate")["model"].to_list()
    ['step', 'line']
    """
    if not models:
        raise InputError("models must name at least one model.")
    if seeds < 1 or not attacks or not guards or not optimizers:
        raise ParameterError("Give at least one attack, optimizer, guard and try (seeds).")
    many = len(record_table(auxiliary, "auxiliary"))
    wanted = checked_sizes(sizes, many)
    trained = [
        (attack, optimizer)
        for attack in attacks
        for optimizer in (optimizers if attack == "mlp" else optimizers[:1])
    ]
    rows: list[dict[str, Any]] = []
    told: list[str] = []
    work = list(product(models, guards))
    scenes: dict[str, Any] = {}
    for name, guard in track(work, len(work), "Attacking explanations", progress=progress):
        if name not in scenes:
            explaining = Explaining(
                explainer,
                models[name],
                record_table(reference, "reference"),
                groups,
                permutations,
                force,
                allow_nan,
                seed,
            )
            scenes[name] = staged(
                explaining,
                auxiliary,
                target,
                names=names,
                categorical=categorical,
                discrete=discrete,
                thresholds=thresholds,
                include_constant=include_constant,
                allow_overlap=allow_overlap,
            )
        scene, doubts = scenes[name]
        told += doubts
        for (attack, optimizer), size in product(trained, wanted):
            tries, kept = [], None
            for number in range(seeds):
                path = ("shapley", "sweep", str(number))
                own = int(generator(seed, *path).integers(2**62))
                shown, kept = guarded(scene, guard, own)
                picked = generator(own, "auxiliary").permutation(many)[:size]
                inverse = Inverse(attack, optimizer, epochs, batch_size, generator(own, "attack"))
                tries.append(
                    rates(shown, shown.attacked(inverse, picked, somebody_else(len(shown.truth), own)))
                )
            rows.append(
                {
                    "model": name,
                    "attack": Inverse(attack, optimizer).label,
                    "guard": "none" if guard is None else guard.label,
                    "auxiliary": size,
                    **{figure: _mean([one[figure] for one in tries]) for figure in _TOLD},
                    **{
                        f"se_{figure}": _error([one[figure] for one in tries])
                        for figure in ("attack_rate", "mae")
                    },
                    "fidelity": kept,
                }
            )
    table = pl.DataFrame(rows, infer_schema_length=None)
    worst = max(rows, key=lambda row: row["attack_rate"])
    least = min(rows, key=lambda row: row["attack_rate"])
    blind = max(row["baseline_rate"] for row in rows)
    return Measure(
        name="shapley_sweep",
        value=worst["attack_rate"],
        figures={"least": least["attack_rate"], "baseline_rate": blind, "combinations": len(rows)},
        meaning=(
            f"Of {len(rows):,} combinations, most is given away by the model '{worst['model']}' (guard: "
            f"{worst['guard']}) to the attack {worst['attack']} with {worst['auxiliary']:,} auxiliary records: "
            f"{percent(worst['attack_rate'])} of a person's values are found, without any explanation "
            f"{percent(worst['baseline_rate'])}."
        ),
        caveats=[*dict.fromkeys(told)],
        parameters={"models": list(models), "seeds": seeds, "seed": seed},
        detail=Detail(sweep=lambda: table),
    )


def _mean(numbers: Sequence[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return float(np.mean(known)) if known else None


def _error(numbers: Sequence[float]) -> float | None:
    return float(np.std(numbers, ddof=1) / np.sqrt(len(numbers))) if len(numbers) > 1 else None
