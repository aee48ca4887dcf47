"""Logistic and Poisson regression over sites that hold rows: every step adds gradients and curvatures securely.

The sums over sites are the sums over pooled rows, so that every step, and with it the result, is the pooled one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from discreet.core.arrays import Array, Floats
from discreet.core.errors import ColumnError, ParameterError
from discreet.core.parameters import checked
from discreet.core.randomness import Seed
from discreet.core.wording import shown
from discreet.federated.kinds import numbers, one_of, optional, text, texts
from discreet.federated.layouts import Layout, coordinated, laid_out
from discreet.federated.leakage import Leakage, Transcript, account_of_sums, told_by_subsets
from discreet.federated.messages import MAIN, ProtocolError, used
from discreet.federated.moments_over_sites import WIDE, from_upper
from discreet.federated.parties import Holder, Party, Transport
from discreet.federated.quantities import quantity, shaped
from discreet.federated.secure_sums import sum_over

Family = Literal["logistic", "poisson"]
_LARGEST = 500.0


@quantity(
    "glm", {"family": one_of("logistic", "poisson"), "y": text, "x": texts, "beta": numbers, "block": optional(text)},
    moments=True,
    uses=lambda party, values: (used({**values, "columns": [values["y"], *values["x"]]}),),
)  # fmt: skip
def _glm(holder: Holder, asked: Mapping[str, Any]) -> Array:
    """The number of rows, deviance, gradient and curvature of the rows of one site."""
    rows = holder.matrix([str(asked["y"]), *map(str, asked["x"])], str(asked.get("block", MAIN)))
    target = rows[:, 0]
    design = np.column_stack([np.ones(len(rows)), rows[:, 1:]])
    line = np.clip(design @ shaped(asked, "beta", design.shape[1]), -_LARGEST, _LARGEST)
    if asked["family"] == "logistic":
        if not np.isin(target, (0.0, 1.0)).all():
            raise ColumnError(f"At '{holder.name}': '{asked['y']}' must be 0 or 1 for a logistic regression.")
        expected = 1 / (1 + np.exp(-line))
        loss = float((np.logaddexp(0, line) - target * line).sum())
        weights = expected * (1 - expected)
    else:
        if (target < 0).any() or (target != np.rint(target)).any():
            raise ColumnError(
                f"At '{holder.name}': '{asked['y']}' must hold counts for a Poisson regression."
            )
        from scipy.special import gammaln

        expected = np.exp(np.minimum(line, 100.0))
        loss = float((expected - target * line + gammaln(target + 1)).sum())
        weights = expected
    if holder.limits is not None:
        # A steep beta weights all rows but a few with zero.
        holder.limits.products(design, weights)
    slope = design.T @ (target - expected)
    curvature = (design * weights[:, None]).T @ design
    upper = curvature[np.triu_indices(len(slope))]
    return np.concatenate([[len(rows), loss], slope, upper])


@dataclass(frozen=True, repr=False)
class RegressionOverSites:
    """A generalized linear model over sites: coefficients and standard errors as from pooled rows."""

    family: str
    rows: int
    coefficients: Mapping[str, float]
    standard_errors: Mapping[str, float]
    log_likelihood: float
    converged: bool
    rounds: int
    transcript: Transcript = field(default_factory=Transcript)
    leakage: Leakage = field(default_factory=lambda: Leakage("secure-sum"))

    def to_dict(self) -> dict[str, Any]:
        """Return the fit, ready for JSON."""
        plain = {name: value for name, value in vars(self).items() if name != "transcript"}
        return {**plain, "leakage": self.leakage.to_dict()}

    def __str__(self) -> str:
        width = max(map(len, self.coefficients))
        lines = [
            f"{name:<{width}}  {value: .4f}  (standard error {self.standard_errors[name]:.4f})"
            for name, value in self.coefficients.items()
        ]
        lines.append(
            f"{self.family} regression, {shown(self.rows)} rows, log-likelihood {self.log_likelihood:,.3f}"
        )
        if not self.converged:
            lines.append(
                "The search did not end: the outcome may be separated by the variables. Do not use these."
            )
        return "\n".join(lines)

    __repr__ = __str__


@checked
def regression_over_sites(
    sites: Any, y: str, x: Sequence[str], *, family: Literal["logistic", "poisson"] = "logistic", tol: float = 1e-10,
    max_rounds: int = 50, min_rows: int = 10, transport: Any = None, seed: Seed = None,
) -> RegressionOverSites:  # fmt: skip
    """How does an outcome depend on other variables, over sites that hold different people?

    Newton's method: each round adds the number of rows, the likelihood, its gradient and its curvature over sites by
    one secure sum. The result equals that of pooled rows.

    Also known as: federated regression; distributed regression; DataSHIELD glm.

    Parameters
    ----------
    sites
        One table for each site, with the same columns.
    y, x
        The outcome and the variables that explain it.
    family
        ``"logistic"`` for 0 and 1, ``"poisson"`` for counts.
    tol
        Relative tolerance of the log-likelihood.
    max_rounds
        After how many rounds to give up.
    min_rows
        Refuse fewer rows in all.
    transport
        How sites are reached; in this process unless given.
    seed
        For the same masks again; only for tests.

    Examples
    --------
    >>> import polars as pl
    >>> rng = np.random.default_rng(1)
    >>> def site(n):
    ...     z = rng.normal(size=n)
    ...     return pl.DataFrame({"z": z, "ill": (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)})
    >>> fit = regression_over_sites([site(200), site(100), site(150)], "ill", ["z"])
    >>> fit.converged, fit.rows
    (True, 450)
    """
    layout = sites if isinstance(sites, Layout) else laid_out(sites, seed=seed)
    if layout.kind != "horizontal":
        raise ParameterError(
            "Every site must have the outcome and all variables: the same columns, other people."
        )
    names = [str(name) for name in ([x] if isinstance(x, str) else x)]
    if not names or y in names or len(set(names)) != len(names):
        raise ParameterError("x must name one or more columns, each once and none of them y.")
    carrier, central = coordinated(layout, transport, seed)
    size = len(names) + 1
    beta = np.zeros(size)
    before, converged, rounds, rows = math.inf, False, 0, 0
    curvature, step = np.eye(size), np.zeros(size)
    while rounds < max_rounds and not converged:
        rounds += 1
        rows, loss, slope, curvature = _asked(carrier, central, layout, y, names, family, beta)
        if rows < max(min_rows, size + 1):
            raise ProtocolError("There are fewer rows over all sites than the analysis may be made with.")
        if loss > before + 1e-9 * abs(before) and rounds > 1:
            # The step went too far: half of it is tried.
            step = step / 2
            beta = beta - step
            continue
        converged = abs(before - loss) <= tol * (abs(loss) + tol)
        before = loss
        if not converged:
            step = _step(curvature, slope)
            beta = beta + step
    errors = np.sqrt(np.diag(np.linalg.pinv(curvature)))
    labels = ["(intercept)", *names]
    account = account_of_sums(
        f"the number of rows, and in each of {rounds} rounds the sum over sites of the likelihood, its gradient and "
        "its curvature",
        "learn its share of these sums",
        "Of a site with very few rows the curvature tells much: owners set how many rows they need.",
        told_by_subsets(layout.nodes), carrier.transcript, seed,
    )  # fmt: skip
    return RegressionOverSites(
        family, rows, dict(zip(labels, map(float, beta), strict=True)),
        dict(zip(labels, map(float, errors), strict=True)), -before, converged, rounds, carrier.transcript, account,
    )  # fmt: skip


def _asked(  # noqa: PLR0917
    carrier: Transport, central: Party, layout: Layout, y: str, names: list[str], family: str, beta: Floats
) -> tuple[int, float, Floats, Floats]:
    size = len(beta)
    asked = {"kind": "glm", "family": family, "y": y, "x": names, "beta": beta.tolist()}
    found = sum_over(carrier, central, layout.nodes, asked, size=2 + size + size * (size + 1) // 2, ring=WIDE)
    curvature = from_upper(found[2 + size :], size)
    return round(float(found[0])), float(found[1]), found[2 : 2 + size], curvature


def _step(curvature: Floats, slope: Floats) -> Floats:
    size = np.sqrt(np.maximum(np.diag(curvature), 1e-300))
    scaled = curvature / np.outer(size, size)
    if np.linalg.cond(scaled) > 1e12:
        raise ParameterError(
            "The variables follow from each other over all sites, or separate the outcome: leave one of them out."
        )
    return np.asarray(np.linalg.solve(scaled, slope / size) / size)
