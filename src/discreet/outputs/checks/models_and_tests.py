"""Statbarns g and h: is this model really a model, and may a test go out?

A coefficient mixes all records with weights that nobody can undo, given enough degrees of freedom. What fails is what
is not really a model: too few degrees of freedom, a table in disguise (as many parameters as there are combinations of
the regressors), a perfect fit, or values per person.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.core.errors import ParameterError
from discreet.core.wording import percent
from discreet.outputs.check_results import CheckResult, Finding, Status
from discreet.outputs.checks.frequencies import check_counts, counted, flagged
from discreet.outputs.checks.total_checks import check_totals, has_few_values
from discreet.outputs.output_policy import OutputPolicy

_PER_UNIT = (
    "residual",
    "fitted",
    "predicted",
    "prediction",
    "influence",
    "leverage",
    "cook",
    "score of a person",
)
_MOST_CLASSES = 20
_SAME = 1e-9


@dataclass(frozen=True)
class Design:
    """What the regressors of a model amount to: records, rank, distinct combinations, and which each record has."""

    records: int
    rank: int
    patterns: int
    pattern: Integers
    identifying: Integers

    @property
    def is_saturated(self) -> bool:
        """Whether there is a parameter for every combination, so that the model is a table."""
        return self.patterns == self.rank


def design_of(regressors: npt.ArrayLike) -> Design:
    """Find rank, combinations, and how many records identify each column of a design matrix.

    Examples
    --------
    >>> sex = np.repeat([0, 1], 20)
    >>> found = design_of(np.column_stack([np.ones(40), sex]))
    >>> found.rank, found.patterns, found.is_saturated, found.identifying.tolist()
    (2, 2, True, [40, 20])
    """
    matrix = np.asarray(regressors, dtype=np.float64)
    if matrix.ndim != 2 or not matrix.size:
        raise ParameterError(
            "The regressors of a model are a matrix with one row a record, intercept included."
        )
    if not np.isfinite(matrix).all():
        raise ParameterError(
            "The regressors have missing or infinite entries. Leave those records out first."
        )
    triangle = np.linalg.qr(_scaled(matrix), mode="r")
    rank = int(np.linalg.matrix_rank(triangle, tol=_SAME * max(matrix.shape[1], 1)))
    names = [f"x{i}" for i in range(matrix.shape[1])]
    frame = pl.DataFrame({name: matrix[:, i] for i, name in enumerate(names)})
    ids = frame.select(pl.struct(names).rank("dense").alias("id"))["id"].to_numpy().astype(np.int64) - 1
    common = frame.select(
        pl.col(name).value_counts(sort=True).struct.field("count").first().alias(name) for name in names
    )
    alike = np.array(common.row(0), dtype=np.int64)
    constant = alike == len(matrix)
    return Design(len(matrix), rank, int(ids.max()) + 1, ids, np.where(constant, alike, len(matrix) - alike))


def _scaled(matrix: Floats) -> Floats:
    size = np.linalg.norm(matrix, axis=0)
    return np.asarray(matrix / np.where(size > 0, size, 1.0))


def check_dof(dof: float, policy: OutputPolicy | None = None, *, barn: str = "g") -> Finding:
    """Check residual degrees of freedom.

    Examples
    --------
    >>> check_dof(25 - 16).status, check_dof(26 - 16).status
    ('fail', 'pass')
    """
    limit = (policy or OutputPolicy()).dof_threshold
    fails = not dof >= limit
    reason = f"{dof:g} residual degrees of freedom" + (
        f", fewer than {limit}." if fails else f" ({limit} are enough)."
    )
    return Finding(
        "degrees of freedom", barn, "fail" if fails else "pass", reason, figures={"dof": float(dof)}
    )


def check_model(
    regressors: npt.ArrayLike,
    policy: OutputPolicy | None = None,
    *,
    outcome: npt.ArrayLike | None = None,
    subject: npt.ArrayLike | None = None,
    names: Sequence[str] = (),
    is_perfect: bool = False,
    shown: Sequence[str] = (),
    weights: npt.ArrayLike | None = None,
) -> CheckResult:
    """Check a fitted model from its regressors and outcome.

    Parameters
    ----------
    regressors
        The design matrix, intercept and dummies included.
    outcome
        The outcome, needed to judge a saturated model as the table it is.
    subject
        Who each record belongs to, where a person has several: people count, not records.
    names
        Names of the columns, for the notes.
    is_perfect
        Whether the model fits perfectly (R2 of 1, no residual variance, complete separation).
    shown
        What is shown beside the coefficients: values per person fail.
    weights
        Weights of the fit, where it has them: who has none is not in the model, and where a few have nearly all, the
        model is theirs.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> x = np.column_stack([np.ones(26), rng.normal(size=(26, 15))])
    >>> check_model(x, outcome=rng.normal(size=26)).status, check_model(x[:25], outcome=rng.normal(size=25)).status
    ('pass', 'fail')
    """
    policy = policy or OutputPolicy()
    effective = np.inf
    if weights is not None:
        heavy = np.asarray(weights, dtype=np.float64).ravel()
        used = heavy > 0
        regressors = np.asarray(regressors, dtype=np.float64)[used]
        outcome = None if outcome is None else np.asarray(outcome)[used]
        subject = None if subject is None else np.asarray(subject)[used]
        # Kish's effective number of records: equal weights give all of them, one heavy record gives one.
        effective = float(np.floor(heavy.sum() ** 2 / max(np.square(heavy).sum(), 1e-300) + 1e-9))
    design = design_of(regressors)
    people = design.records if subject is None else len(np.unique(np.asarray(subject)))
    findings = [check_dof(min(people, effective) - design.rank, policy)]
    perfect = "The model fits perfectly: its predictions are the data."
    findings.append(
        Finding("perfect fit", "g", "fail", perfect)
        if is_perfect
        else Finding("perfect fit", "g", "pass", "The fit is not perfect.")
    )
    findings += check_per_unit(shown)
    if design.is_saturated:
        findings += _as_table(design, outcome, subject, policy)
    else:
        reason = (
            f"{design.rank} parameters for {design.patterns:,} combinations of the regressors: not a table."
        )
        findings.append(Finding("saturation", "g", "pass", reason))
        findings += _alone(regressors, design.rank) + _rare_outcome(outcome, subject, policy)
    findings += _few(design, names, policy)
    return CheckResult(findings)


def _alone(regressors: npt.ArrayLike, rank: int) -> list[Finding]:
    """Find the records that have a parameter to themselves: the model gives their outcome back exactly."""
    scaled = _scaled(np.asarray(regressors, dtype=np.float64))
    left, spread, _ = np.linalg.svd(np.asarray(np.linalg.qr(scaled, mode="r")).T, full_matrices=False)
    kept = left[:, :rank] / spread[:rank]
    number = int((np.square(scaled @ kept).sum(axis=1) > 1 - _SAME).sum())
    if not number:
        return []
    reason = f"{counted(number, 'record')} with a parameter of their own: the model gives their outcome back as it is."
    return [Finding("own parameter", "g", "fail", reason)]


def _rare_outcome(
    outcome: npt.ArrayLike | None, subject: npt.ArrayLike | None, policy: OutputPolicy
) -> list[Finding]:
    """Show a human an outcome that only a few people have: the model is about those few."""
    if outcome is None:
        return []
    values = np.asarray(outcome, dtype=np.float64).ravel()
    if subject is not None and len(np.asarray(subject)) == len(values):
        pairs = np.unique(
            np.column_stack([values, np.unique(np.asarray(subject), return_inverse=True)[1]]), axis=0
        )
        values = pairs[:, 0]
    classes, counts = np.unique(values, return_counts=True)
    if not has_few_values(len(classes), len(values)) or len(values) - counts.max() >= policy.threshold:
        return []
    reason = (
        f"Fewer than {policy.threshold} people have another outcome than all the others; a human looks whether the "
        "model says something about those few."
    )
    return [Finding("rare outcome", "g", "review", reason)]


def check_correlation(
    coefficients: npt.ArrayLike,
    people: npt.ArrayLike,
    policy: OutputPolicy | None = None,
    *,
    controls: int = 0,
) -> CheckResult:
    """Check a matrix of correlations, with the number of people behind each.

    Examples
    --------
    >>> check_correlation([[1, 1], [1, 1]], 50).reasons
    ('1 pair of variables is perfectly correlated: one gives the other away.',)
    """
    policy = policy or OutputPolicy()
    matrix = np.atleast_2d(np.asarray(coefficients, dtype=np.float64))
    behind = np.broadcast_to(np.asarray(people, dtype=np.float64), matrix.shape)
    above = (
        np.triu(np.ones(matrix.shape, dtype=bool), 1) if matrix.shape[0] > 1 else np.ones((1, 1), dtype=bool)
    )
    fewest = float(behind[above].min()) if above.any() else float(behind.min())
    perfect = above & (np.abs(matrix) >= 1 - 1e-12)
    pairs = flagged(
        "perfect correlation",
        "g",
        perfect,
        "{} perfectly correlated: one gives the other away.",
        "No two variables are perfectly correlated.",
        of=("pair of variables is", "pairs of variables are"),
    )
    return CheckResult([check_dof(fewest - 2 - controls, policy), pairs])


def check_per_unit(shown: Sequence[str]) -> list[Finding]:
    """Fail what is shown per person beside a model: residuals, predictions and the like are microdata.

    Examples
    --------
    >>> [finding.status for finding in check_per_unit(["coefficients", "residuals"])]
    ['fail']
    """
    return [
        Finding("values per person", "g", "fail", f"'{name}' has a value for every person: it is microdata.")
        for name in shown
        if any(word in name.lower() for word in _PER_UNIT)
    ]


def _as_table(
    design: Design, outcome: npt.ArrayLike | None, subject: npt.ArrayLike | None, policy: OutputPolicy
) -> list[Finding]:
    note = (
        f"The model is saturated ({design.rank} parameters for {design.patterns} combinations of the regressors): "
        "it is a table in disguise and judged as one."
    )
    if outcome is None:
        return [Finding("saturation", "g", "review", f"{note} The outcome was not given, so a human judges.")]
    values = np.asarray(outcome, dtype=np.float64).ravel()
    classes, coded = np.unique(values, return_inverse=True)
    is_count = len(classes) <= _MOST_CLASSES and bool(np.all(classes == np.round(classes)))
    if is_count:
        cells = design.pattern * len(classes) + coded
        if subject is not None:
            people, who = np.unique(np.asarray(subject), return_inverse=True)
            cells = np.unique(cells * len(people) + who) // len(people)
        table = np.bincount(cells, minlength=design.patterns * len(classes)).reshape(design.patterns, -1)
        found = check_counts(table, policy)
    else:
        found = check_totals(design.pattern, values, policy, contributor=subject)
    return [Finding("saturation", "g", "pass", note), *found.findings]


def _few(design: Design, names: Sequence[str], policy: OutputPolicy) -> list[Finding]:
    thin = np.flatnonzero(design.identifying < policy.threshold)
    if not len(thin):
        return []
    listed = [names[i] if i < len(names) else f"column {i + 1}" for i in thin[:5]]
    more = f" and {len(thin) - 5} more" if len(thin) > 5 else ""
    reason = (
        f"{counted(len(thin), 'parameter')} ({', '.join(listed)}{more}) identified by fewer than {policy.threshold} "
        "records; a human looks whether they say something about those few."
    )
    return [Finding("identified by few", "g", "review", reason, tuple((int(i),) for i in thin))]


# Statbarn h: may a test go out?
#
# A test statistic is one number of many records; only tests on very few fail. Group counts printed beside it are
# frequencies and checked as such.
def check_test(
    dof: float,
    policy: OutputPolicy | None = None,
    *,
    counts: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
) -> CheckResult:
    """Check a test by the degrees of freedom that the data leave it, and the counts printed beside it.

    Parameters
    ----------
    dof
        People minus estimated means or groups. For a test of independence it is the people behind the table, less
        its fitted margins: (r - 1)(c - 1) says how large the table is, not how many stand behind it.
    counts
        Group sizes or the table, where they are printed.
    groups
        Sizes of the groups that are compared: a test against a few is about those few.

    Examples
    --------
    >>> check_test(38).status, check_test(38, counts=[35, 5]).status, check_test(8).status
    ('pass', 'fail', 'fail')
    """
    found = CheckResult([check_dof(dof, policy, barn="h")])
    limit = (policy or OutputPolicy()).threshold
    if groups is not None and (np.asarray(groups, dtype=np.float64) < limit).any():
        reason = (
            f"A group of fewer than {limit} people is compared; a human looks whether it is about those few."
        )
        found = found.with_more([Finding("small group", "h", "review", reason)])
    return found if counts is None else found.with_more(check_counts(counts, policy).findings)


# A trained model: what it holds of people, and whether it gives away who they are.


_SEED = 0  # the same model is judged the same each time
_BLACK_BOX = 0.05
"""The risk of being recognized, lower end of its interval, from which on a model is refused."""


def structure_findings(model: Any, X: Any, y: Any, policy: OutputPolicy) -> list[Finding]:
    """Read the model: records it carries, leaves of few people, too few degrees of freedom."""
    from discreet.attack.structural_attack import model_structure

    found: Mapping[str, Any] = model_structure(model, X, y, threshold=policy.threshold).figures
    said = []
    if found["memorized_rows"]:
        reason = (
            f"The model carries {found['memorized_rows']:,} training records as they are: it is microdata."
        )
        figures = {"memorized_rows": found["memorized_rows"]}
        said.append(Finding("values per person", "g", "fail", reason, figures=figures))
    if found["leaves_below"]:
        reason = (
            f"{found['leaves_below']:,} of {found['leaves']:,} leaves hold fewer than {policy.threshold} people, "
            f"and isolate {percent(found['exposed_share'])} of the training records: set min_samples_leaf to "
            f"{policy.threshold} or more."
        )
        figures = {name: found[name] for name in ("leaves_below", "smallest_leaf")}
        said.append(Finding("small leaves", "a", "fail", reason, figures=figures))
    elif found["leaves"]:
        reason = f"Every leaf holds {policy.threshold} people or more."
        said.append(Finding("small leaves", "a", "pass", reason))
    freedom = found["degrees_of_freedom"]
    if freedom is not None and freedom < policy.dof_threshold:
        reason = (
            f"The model has learned {found['model_parameters']:,} numbers, which leaves {freedom:,} degrees of "
            f"freedom; {policy.dof_threshold} are needed."
        )
        figures = {"degrees_of_freedom": freedom}
        said.append(Finding("degrees of freedom", "g", "fail", reason, figures=figures))
    return said


def membership_finding(model: Any, X: Any, y: Any, others: tuple[Any, Any]) -> Finding:
    """Attack the model with people it was not trained on: are members recognized?"""
    from discreet.attack.model_membership_inference import model_membership

    found = model_membership(model, X, y, others=others, seed=_SEED)
    told: Mapping[str, Any] = found.figures
    low, high = told["risk_low"], told["risk_high"]
    figures = {name: told[name] for name in ("risk", "risk_low", "risk_high", "auc")}
    status: Status = "review"
    if low is None or high is None:
        reason = "The attack says the same of everybody: nothing was shown."
    elif low > _BLACK_BOX:
        status = "fail"
        reason = (
            f"Training records are recognized by what the model says: the risk beyond false alarms is at least "
            f"{percent(low)}."
        )
    else:
        status = "review" if high > 2 * _BLACK_BOX else "pass"
        reason = (
            f"Training records could not be told from others by what the model says; a risk of up to "
            f"{percent(max(high, 0.0))} cannot be ruled out."
        )
    return Finding("membership", "g", status, reason, figures=figures)
