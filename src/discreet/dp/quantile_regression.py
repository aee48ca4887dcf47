"""Which line has a given share of the records below it, under a privacy budget?

Methods: the smoothed check loss of `smoothed_check_loss`, fitted by objective perturbation, the K-norm gradient
mechanism, stochastic descent or descent with an adaptive budget.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import polars as pl

from discreet.core.arrays import Floats, numbers_of
from discreet.core.constraints import Above, AtLeast
from discreet.core.errors import DiscreetError, ParameterError
from discreet.core.guarantees import settled, stands
from discreet.core.parameters import checked
from discreet.core.results import Measure
from discreet.dp.calibration import checked_epsilon, epsilon_from_zcdp, largest_rho, rational_epsilon
from discreet.dp.costs import Adjacency, Spend
from discreet.dp.ledger import Ledger
from discreet.dp.noisy_gradients import Proper
from discreet.dp.private_fits import Calibration, Mechanism, Settings, prepared
from discreet.dp.queries import Ask
from discreet.dp.regression_records import (
    Bounds,
    Design,
    Kernel,
    Missing,
    checked_quantile,
    checked_smoothing,
    read_records,
)
from discreet.engine import like
from discreet.microdata import Microdata

NAMES = {
    "opm": "objective perturbation",
    "kng": "K-norm gradient",
    "sgd": "stochastic descent",
    "agd": "adaptive descent",
    "nonprivate": "no noise",
}
ADVICE = {
    "opm": "Objective perturbation: near the line where bounds are narrow; nothing is proved for what is computed.",
    "kng": "K-norm gradient: nearest to the line; proved for one or two coefficients.",
    "sgd": "Stochastic descent: proved, but far from the line at quantiles near 0 and 1. Not recommended there.",
    "agd": "Adaptive descent: proved, but not recommended where another mechanism will do. With the steps of its "
    "source it errs 5 to 25 times as much as 'kng' on its first design; with steps=30 2 to 4 times.",
}
"""When to take which mechanism, as measured on the first two designs of its source (`bench/dp_regression.py`)."""
_AGREE = 1.1  # R-hat from which walks are said not to agree


@checked
def quantile_regression(
    data: Microdata,
    *,
    y: str,
    x: str | Sequence[str],
    tau: float | Sequence[float] = 0.5,
    mechanism: Mechanism = "opm",
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    x_bounds: Bounds | Sequence[tuple[float, float]] | None = None,
    intercept: bool = True,
    standardize: bool = False,
    adjacency: Adjacency = "add-remove",
    kernel: Kernel = "logistic",
    h: float = 0.5,
    theta_bound: Annotated[float, Above(0)] = 10.0,
    proper: Proper = "ridge",
    residual_bound: Annotated[float, Above(0)] | None = None,
    records: Annotated[int, AtLeast(1)] | None = None,
    batch: Annotated[int, AtLeast(1)] = 256,
    steps: Annotated[int, AtLeast(1)] | None = None,
    calibration: Calibration = "accountant",
    weight: str | None = None,
    max_weight: float | None = None,
    missing: Missing = "error",
    at: Sequence[Any] | None = None,
    ledger: Ledger | None = None,
    purpose: str = "",
    seed: int | None = None,
) -> Measure:
    """Which line has this share of the records below it, about?

    Also known as: DP-QR; private quantile regression; smoothed check loss; convolution smoothing.

    Parameters
    ----------
    data
        The file; every record is a unit of its own.
    y, x
        The column to explain, and the columns of numbers that explain it.
    tau
        The quantile, or several, which share the budget equally.
    mechanism
        ``"opm"`` (objective perturbation), ``"kng"`` (K-norm gradient), ``"sgd"`` (stochastic descent), ``"agd"``
        (descent with an adaptive budget) or ``"nonprivate"``. The guarantee is proved for what is computed by
        ``"agd"``, by ``"sgd"`` with the accountant and by ``"kng"`` with one or two coefficients; the others enter
        their price into the ledger and claim nothing. ``"opm"``: its proof needs real numbers and the exact minimizer.
        ``"kng"`` with more coefficients: its walk has no proved distance from its law. ``"agd"`` is not recommended
        where another will do: on the source's first design (2,500 records, epsilon 1) its lines are off by 0.7 at the
        median and 15 at 95 % with the steps of the source, by 0.3 and 2.1 with ``steps=30``, where those of ``"kng"``
        are off by 0.1 and 0.6. ``"opm"`` gives its figure ``converged``: where that is false the line is the best place
        found and not the minimizer, and the budget is spent all the same.
    epsilon, delta
        The budget. ``"opm"`` takes a delta and then draws normal noise; ``"sgd"`` needs one; ``"agd"`` has 1e-8 unless
        given.
    rho
        For ``"agd"``: the budget as zero-concentrated privacy, in place of epsilon.
    x_bounds
        Public bounds of every column of ``x``: ``{"age": (0, 120)}``. Values beyond them are held at them. Noise grows
        with the bounds, the ridge of ``"opm"`` with their square.
    intercept
        Whether the line has a constant.
    standardize
        Whether columns are brought to -1…1 by their bounds first; coefficients are given on the scale of the data.
    adjacency
        Which files are neighbors; under ``"replace"`` the number of records counts as public.
    kernel, h
        How the corner of the loss is rounded; never chosen from the data. At quantiles near 0 and 1 a wide h does more
        harm than the noise.
    theta_bound
        A public bound on coefficients: the reach of the grid and the ridge of ``"kng"``, the length of the first steps
        of ``"sgd"``.
    proper
        For ``"kng"``: whether a ridge or a box makes its law one.
    residual_bound
        For ``"agd"``: a public bound on how far a value lies from the line; losses beyond it are held at it.
    records, batch
        For ``"sgd"``: about how many records there are, as far as that is public (needed under ``"add-remove"``), and
        about how many are looked at in a step.
    steps
        How many steps ``"sgd"`` (1000) and the walks of ``"kng"`` (4000) take; into how many the budget of ``"agd"`` is
        divided at first. Unless given, ``"agd"`` starts as its source does, with the share of epsilon/120: thousands of
        steps, each a pass over the records and each with more noise than gradient. Give 10 to 100; 30 did best on the
        source's first two designs.
    calibration
        For ``"sgd"``: noise by an accountant, or by the closed form for n² steps.
    weight, max_weight
        A column of weights and the public number that none of them passes.
    missing
        ``"error"`` or ``"drop"``: what is done with records that have gaps.
    at
        Values of ``x`` (a list, or a list of lists) at which quantiles are given, in order for every point.
    ledger, purpose, seed
        As in `discreet.dp.count`.

    Returns
    -------
    Measure
        ``detail["coefficients"]`` has a row for every quantile and term, ``detail["constants"]`` what the noise follows
        from, ``detail["quantiles"]`` the lines at the points ``at``. There are no standard errors: they would need a
        budget of their own.

    Examples
    --------
    >>> ages = [20.0 + i % 60 for i in range(6_000)]
    >>> people = Microdata(pl.DataFrame({"age": ages, "pay": [1 + age / 20 + i % 3 for i, age in enumerate(ages)]}))
    >>> line = quantile_regression(people, y="pay", x="age", x_bounds={"age": (18, 80)}, mechanism="agd", epsilon=1.0,
    ...     residual_bound=10, standardize=True, steps=50)
    >>> line.guarantee
    '(1, 1e-08)-differential privacy against adding or removing one record.'
    """
    taus = [checked_quantile(one) for one in ([tau] if isinstance(tau, int | float) else list(tau))]
    if not taus or len(set(taus)) < len(taus):
        raise ParameterError("tau must name at least one quantile, and none twice.")
    checked_smoothing(kernel, h)
    budget = _Budget.of(mechanism, epsilon, delta, rho, len(taus))
    asked = Settings(
        kernel=kernel,
        h=float(h),
        epsilon=budget.epsilon / len(taus),
        delta=budget.delta if mechanism == "agd" else budget.delta / len(taus),
        rho=budget.rho / len(taus),
        replace=adjacency == "replace",
        theta_bound=theta_bound,
        proper=proper,
        residual_bound=residual_bound,
        records=records,
        batch=batch,
        steps=steps,
        calibration=calibration,
        seed=seed,
    )
    design = read_records(
        data,
        y,
        x,
        x_bounds,
        intercept=intercept,
        standardize=standardize,
        missing=missing,
        weight=weight,
        max_weight=max_weight,
    ).whole()
    points = _points(at, design)
    purpose = purpose or f"quantile regression of {y}"
    ask = Ask(data, Spend(budget.epsilon or 1.0, budget.delta, ledger, purpose, adjacency=adjacency), seed)
    spend = ask.spend
    fits = [prepared(mechanism, design, one, asked) for one in taus]
    if mechanism != "nonprivate":
        spend.enter(
            spend.cost(
                f"quantile-regression, {NAMES[mechanism]}",
                rho=budget.rho if mechanism == "agd" else None,
                values=len(taus) * len(design.terms),
                proved=not fits[0].why_none,
            ),
            seed=seed,
            data=data,
        )
    try:
        drawn = [fit.draw() for fit in fits]
    except DiscreetError as error:
        if ledger is None or mechanism == "nonprivate":
            raise
        # What is drawn is paid for, also where it is then refused: a refund would disclose something about the records.
        raise type(error)(f"{error} {budget.in_words} was spent.") from error
    lines = np.stack([design.on_the_scale_of_the_data(theta) for theta, _ in drawn])
    claim = None if fits[0].why_none else spend.claim
    guarantee, why = settled(claim, fits[0].why_none, seeded=seed is not None)
    caveats = [*([] if weight else ask.unweighted()), *([] if guarantee else [f"No guarantee: {why}"])]
    figures: dict[str, Any] = {"epsilon": budget.epsilon, "coefficients": lines.size}
    if budget.delta:
        figures["delta"] = budget.delta
    rhat = max((more["rhat"] for _, more in drawn if "rhat" in more), default=None)
    if rhat is not None:
        figures |= {"rhat": rhat, "steps": drawn[0][1]["steps"]}
        agree = "do not agree yet: take more steps. " if rhat > _AGREE else "agree. "
        caveats.append(
            f"The walks {agree}R-hat was computed from the records and is for the house, not to be published."
        )
    if any("converged" in more for _, more in drawn):
        figures["converged"] = all(more["converged"] for _, more in drawn)
        if not figures["converged"]:
            caveats.append(
                f"The fit did not settle: what is given is the best place that was found, and not the minimizer. "
                f"{budget.in_words} was spent on it and does not come back, since whether a fit settles is a fact "
                "about the records. Whether it did is for the house, not to be published. Use a larger h or another "
                "kernel, or bring the columns to a similar scale (standardize=True)."
            )
    if mechanism == "agd" and steps is None:
        caveats.append(
            "The number of steps is that of the source of 'agd', with which lines lie far off. Give steps, such as 30."
        )
    if len(taus) == 1:
        figures |= fits[0].constants
    detail = {
        "coefficients": like(
            data,
            pl.DataFrame(
                {
                    "tau": [one for one in taus for _ in design.terms],
                    "term": list(design.terms) * len(taus),
                    "coefficient": lines.ravel().tolist(),
                }
            ),
        ),
        "constants": pl.DataFrame([{"tau": fit.tau, **fit.constants} for fit in fits]),
    }
    if points is not None:
        detail["quantiles"] = like(data, _in_order(points, lines, taus, design))
    return Measure(
        "private_quantile_regression",
        float(lines[0, -1]),
        figures,
        _meaning(y, taus, lines, design, NAMES[mechanism]),
        caveats=caveats,
        parameters={
            "mechanism": mechanism,
            "adjacency": adjacency,
            "kernel": kernel,
            "h": h,
            "standardize": standardize,
            "unit": spend.unit,
            "purpose": spend.purpose,
        },
        detail=detail,
        guarantee=guarantee,
        private=stands(claim, seeded=seed is not None),
    )


@dataclass(frozen=True)
class _Budget:
    """What may be spent in all, and on each of several quantiles."""

    epsilon: float
    delta: float
    rho: float
    parts: int

    @property
    def in_words(self) -> str:
        """What is spent in all."""
        return f"epsilon = {self.epsilon:g}" + (f" with delta = {self.delta:g}" if self.delta else "")

    @classmethod
    def of(
        cls, mechanism: str, epsilon: float | None, delta: float | None, rho: float | None, parts: int
    ) -> _Budget:
        if mechanism == "nonprivate":
            return cls(0.0, 0.0, 0.0, parts)
        if delta is not None and not 0 < _number(delta, "delta") < 1:
            raise ParameterError("delta must lie between 0 and 1, and be neither; leave it out for none.")
        if mechanism == "kng" and delta is not None:
            raise ParameterError("mechanism='kng' needs no delta: leave it out.")
        if rho is not None and mechanism != "agd":
            raise ParameterError("rho is the budget of mechanism='agd'; give epsilon.")
        if mechanism == "sgd" and delta is None:
            raise ParameterError("mechanism='sgd' needs a delta: the failure that is accepted, e.g. 1e-6.")
        failure = delta or (1e-8 if mechanism == "agd" else 0.0)
        if rho is not None:
            if epsilon is not None:
                raise ParameterError("Give epsilon or rho, and not both.")
            if not 0 < _number(rho, "rho") < math.inf:
                raise ParameterError("rho must be a number of more than 0.")
            return cls(epsilon_from_zcdp(rho, failure), failure, rho, parts)
        if epsilon is None:
            raise ParameterError("epsilon must be given: the budget of this regression.")
        checked_epsilon(epsilon)
        rational_epsilon(epsilon, parts)
        spent = largest_rho(epsilon, failure) if mechanism == "agd" else 0.0
        return cls(float(epsilon), failure, spent, parts)


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ParameterError(f"{name} must be a number.")
    return float(value)


def _points(at: Sequence[Any] | None, design: Design) -> Floats | None:
    """The points at which lines are given, one row each, with a constant where the lines have one."""
    if at is None:
        return None
    names = list(design.terms[1:] if design.intercept else design.terms)
    rows: list[Any] = [
        [point.get(name) for name in names]
        if isinstance(point, Mapping)
        else ([point] if isinstance(point, int | float) else point)
        for point in at
    ]
    found = numbers_of(rows, "at")
    if found.ndim != 2 or found.shape[1] != len(names):
        raise ParameterError(f"at must have {len(names)} numbers for every point, one for each column of x.")
    return np.column_stack([np.ones(len(found)), found]) if len(names) < len(design.terms) else found


def _in_order(points: Floats, lines: Floats, taus: Sequence[float], design: Design) -> pl.DataFrame:
    """The lines at points, put in order of their quantiles where they cross (Chernozhukov et al. 2010)."""
    found = points @ lines.T
    order = np.argsort(taus)
    told = np.empty_like(found)
    told[:, order] = np.sort(found, axis=1)
    columns: dict[str, Any] = {
        name: np.repeat(points[:, at], len(taus))
        for at, name in enumerate(design.terms)
        if at or not design.intercept
    }
    return pl.DataFrame({**columns, "tau": list(taus) * len(points), "value": told.ravel().tolist()})


def _meaning(y: str, taus: Sequence[float], lines: Floats, design: Design, how: str) -> str:
    told = (
        f"{100 * tau:g} % of the records lie below {design.in_words(line)}"
        for tau, line in zip(taus, lines, strict=True)
    )
    return f"Of '{y}', about {'; '.join(told)} ({how})."
