"""Can the record behind an explanation be rebuilt? The attack of somebody who may ask for explanations himself.

Luo, Jiang and Xiao (2022): the attacker asks for explanations of records he knows, learns the way from explanation to
record, and then sees the explanation of somebody else. Success is held against the same attack with the explanation of
another person (the control) and against guesses that see no explanation at all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import product
from typing import Annotated, Any

import numpy as np
import polars as pl

from discreet.attack.explanation_inversion import Attack, Inverse, Optimizer, Regression
from discreet.attack.explanation_scene import (
    Guard,
    Outcome,
    by_feature,
    by_record,
    checked_sizes,
    guarded,
    rates,
    record_table,
    somebody_else,
    staged,
)
from discreet.attack.shapley import Explainer, Explaining, Predict
from discreet.attack.success import RISK_FIGURES
from discreet.core.cards import Figure, measure
from discreet.core.constraints import Above, AtLeast, ColumnNames, Entries, Public
from discreet.core.errors import InputError
from discreet.core.parameters import checked
from discreet.core.progress import track
from discreet.core.randomness import generator
from discreet.core.results import Detail, Measure
from discreet.core.wording import percent

LUO_2022 = (
    "Luo, X., Jiang, Y. and Xiao, X. (2022). Feature inference attack on Shapley values. Proceedings of the 2022 ACM "
    "SIGSAC Conference on Computer and Communications Security, 2233–2247. doi:10.1145/3548606.3560573"
)
LUNDBERG_2017 = (
    "Lundberg, S. M. and Lee, S.-I. (2017). A unified approach to interpreting model predictions. Advances in Neural "
    "Information Processing Systems 30."
)


@measure(
    room="attack",
    title="Reconstruction from Shapley explanations",
    headline="of the values found beyond what somebody else's explanation tells",
    chapter="rebuilt",
    place=1,
    work="whole-file",
    references=(
        LUO_2022,
        LUNDBERG_2017,
        "Toma, R. and Kikuchi, H. (2024). Combinations of AI models and XAI metrics vulnerable to record "
        "reconstruction risk. Privacy in Statistical Databases, Lecture Notes in Computer Science 14915. "
        "doi:10.1007/978-3-031-69651-0",
    ),
    figures={
        **RISK_FIGURES,
        "attack_rate": Figure("Values found from the explanation", unit="share", better="lower"),
        "control_rate": Figure("Values found from somebody else's explanation", unit="share"),
        "baseline_rate": Figure("Values found without any explanation", unit="share"),
        "attacks": Figure("Records under attack"),
        "control_attacks": Figure("Records in the control"),
        "mae": Figure("Mean error, in shares of the range", better="higher"),
        "mae_original": Figure("Mean error of the numbers, in their own units", better="higher"),
        "mae_mean": Figure("Mean error of guessing the mean or mode"),
        "mae_random": Figure("Mean error of a value drawn at random"),
        "relative_risk": Figure("How much smaller the error is than blind", better="lower"),
        "fidelity": Figure("Rank correlation of what is shown with the explanation", better="higher"),
    },
)
@checked
def shapley_reconstruction(
    predict: Predict,
    reference: Any,
    auxiliary: Any,
    target: Any,
    *,
    explainer: Explainer = "exact",
    attack: Attack | Regression = "linear",
    guard: Guard | None = None,
    sizes: Annotated[Sequence[int], Public()] | None = None,
    groups: Annotated[Sequence[Sequence[int]], Public()] | None = None,
    names: ColumnNames | None = None,
    categorical: Annotated[Collection[str | int], Public()] = (),
    discrete: Annotated[Collection[str | int], Public()] = (),
    thresholds: Annotated[Mapping[str, Annotated[float, Above(0)]], Public()] | None = None,
    include_constant: bool = False,
    allow_overlap: bool = False,
    allow_nan: bool = False,
    permutations: int = 64,
    force: bool = False,
    optimizer: Optimizer = "adam",
    epochs: Annotated[int, AtLeast(1)] = 500,
    batch_size: Annotated[int, AtLeast(1)] = 32,
    seed: int | None = None,
) -> Measure:
    """How much of a person's record can be rebuilt from the explanation of a prediction?

    Also known as: Shapley record reconstruction; SHAP inversion; Luo et al. attack; explanation inversion.

    Parameters
    ----------
    predict
        The model: takes rows of numbers, gives a score a row, or one for every class. Where probabilities saturate,
        explanations of logits say more.
    reference
        The background records of the explanations.
    auxiliary
        Records of the attacker, of which he asks explanations and learns; from the same population.
    target
        Records under attack: their explanations are seen, they themselves are used for scoring only.
    explainer
        ``exact``, ``permutation`` or ``linear``; a function of model, records and references; or an explainer of the
        package shap (see `shap_explainer`).
    attack
        ``linear`` (least squares), ``affine-per-feature`` (a straight line from each score to its feature: two records
        are enough against a linear model), ``tree``, ``mlp``, or an object with ``fit`` and ``predict``.
    guard
        What is shown instead of the explanation, to the attacker and of the people under attack alike:
        `RoundedExplanation`, `TopFeatures`, `NoisyExplanation`.
    sizes
        Numbers of auxiliary records to run the attack with; the figures are those of all of them.
    groups
        Columns that form one feature: a block of indicators of a categorical variable.
    names
        The names of the features.
    categorical, discrete
        Features whose numbers are codes (guessed by the likeliest code), and those whose numbers are levels (guessed as
        the nearest level seen); found means equal. All others are continuous.
    thresholds
        How far off the guess of a continuous feature may be, in its own units; a tenth of the range unless given.
    include_constant
        Count features that are constant among the attacker's records, too.
    allow_overlap
        Let records under attack be among the attacker's own.
    allow_nan
        Let records hold NaN, for a model that takes them.
    permutations, force
        As in `explain`.
    optimizer, epochs, batch_size
        Of ``mlp``.
    seed
        For what is random in explaining, training and the control.

    Returns
    -------
    Measure
        ``value`` is ``risk``: the share found beyond the control, where the explanation is that of another person
        under attack. ``attack_rate`` is the success rate over all records and features; ``mae`` the mean error in
        shares of the range (0 or 1 for categories), ``relative_risk`` = 1 - ``mae`` / the smaller error of the two
        blind guesses. The interval takes a record, not a value, as one try. ``detail``: ``features``, ``records``,
        ``sizes``.

    How to read it
    --------------
    Compare ``attack_rate`` with ``baseline_rate``: what is between them the explanation gave away. A linear model gives
    everything away. Run it again with a ``guard``, and weigh the drop against ``fidelity``.

    When not to trust it
    --------------------
    A failed attack is no proof: try other attack models and more auxiliary records. Explanations that were estimated
    carry their own noise, which hides some of the record.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> rows = rng.normal(size=(60, 3))
    >>> found = shapley_reconstruction(lambda x: x @ [1.0, -2.0, 0.5], rows[:20], rows[20:40], rows[40:])
    >>> found.figures["attack_rate"], round(found.figures["mae"], 6)
    (1.0, 0.0)
    """
    scene, told = staged(
        Explaining(
            explainer,
            predict,
            record_table(reference, "reference"),
            groups,
            permutations,
            force,
            allow_nan,
            seed,
        ),
        auxiliary,
        target,
        names=names,
        categorical=categorical,
        discrete=discrete,
        thresholds=thresholds,
        include_constant=include_constant,
        allow_overlap=allow_overlap,
    )
    scene, kept = guarded(scene, guard, seed)
    many = len(scene.known)
    wanted = checked_sizes(sizes, many)
    order = generator(seed, "shapley", "auxiliary").permutation(many)
    other = somebody_else(len(scene.truth), seed)

    def run(size: int) -> Outcome:
        inverse = Inverse(attack, optimizer, epochs, batch_size, generator(seed, "shapley", "attack"))
        return scene.attacked(inverse, order[:size] if size < many else slice(None), other)

    outcome = run(many)
    label = Inverse(attack, optimizer).label
    figures = rates(scene, outcome)
    return Measure(
        name="shapley_reconstruction",
        value=figures["risk"],
        figures={**figures, **({} if kept is None else {"fidelity": kept})},
        meaning=_in_words(figures, label, kept),
        caveats=[*told, *outcome.doubts, *_warnings(figures)],
        parameters={
            "explainer": Explaining(explainer, predict, scene.known).label,
            "attack": label,
            "guard": None if guard is None else guard.label,
            "auxiliary": many,
            "seed": seed,
        },
        detail=Detail(
            features=lambda: by_feature(scene, outcome),
            records=lambda: by_record(scene, outcome),
            sizes=lambda: pl.DataFrame(
                [
                    {"auxiliary": size, **rates(scene, outcome if size == many else run(size))}
                    for size in wanted
                ]
            ),
        ),
    )


def _in_words(figures: Mapping[str, Any], attack: str, kept: float | None) -> str:
    shown = "what is shown of the explanation" if kept is not None else "the explanation"
    said = (
        f"From {shown} of a prediction the attack ({attack}) finds {percent(figures['attack_rate'])} of a person's "
        f"values, {percent(figures['control_rate'])} from the explanation of somebody else and "
        f"{percent(figures['baseline_rate'])} without any."
    )
    if kept is not None:
        said += f" What is shown keeps a rank correlation of {kept:.2f} with the explanation."
    return said


def _warnings(figures: Mapping[str, Any]) -> list[str]:
    told = []
    if figures["attacks"] < 100:
        told.append(
            f"The rates rest on {figures['attacks']} records, fewer than 100: read the interval, not the number."
        )
    if figures["attack_rate"] <= figures["baseline_rate"]:
        told.append(
            "The attack does no better than a guess without any explanation: that it failed says little about what a "
            "better one would achieve."
        )
    if figures["risk"] is None:
        told.append(
            "Somebody else's explanation tells every value as well, so that nothing is left that the person's own "
            "could add; the risk is undefined, not zero."
        )
    return told


# Which combination of model, explanation, guard and attacker gives most away?


_TOLD = ("attack_rate", "control_rate", "baseline_rate", "risk", "mae", "relative_risk")


@measure(
    room="attack",
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
    attacks: Annotated[Sequence[Attack | Regression], Entries()] = ("linear",),
    optimizers: Annotated[Sequence[Optimizer], Entries()] = ("adam",),
    guards: Annotated[Sequence[Guard | None], Entries()] = (None,),
    sizes: Annotated[Sequence[int], Public()] | None = None,
    seeds: Annotated[int, AtLeast(1)] = 3,
    groups: Annotated[Sequence[Sequence[int]], Public()] | None = None,
    names: ColumnNames | None = None,
    categorical: Annotated[Collection[str | int], Public()] = (),
    discrete: Annotated[Collection[str | int], Public()] = (),
    thresholds: Annotated[Mapping[str, Annotated[float, Above(0)]], Public()] | None = None,
    include_constant: bool = False,
    allow_overlap: bool = False,
    allow_nan: bool = False,
    permutations: int = 64,
    force: bool = False,
    epochs: Annotated[int, AtLeast(1)] = 500,
    batch_size: Annotated[int, AtLeast(1)] = 32,
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
