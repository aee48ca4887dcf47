"""Models: fitted with statsmodels from a formula, or given by the researcher, and checked for being models at all.

What goes out of a model is its coefficients with their errors and its fit statistics; never a value per record.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Array, Floats
from discreet.core.errors import ColumnError, InputError, ParameterError, load_extra, unknown_name
from discreet.engine import collect
from discreet.microdata import Microdata
from discreet.outputs.check_results import CheckResult, Finding
from discreet.outputs.checks.frequencies import check_counts
from discreet.outputs.checks.models_and_tests import (
    check_dof,
    check_model,
    membership_finding,
    structure_findings,
)
from discreet.outputs.output import Draft
from discreet.outputs.output_cells import entered
from discreet.outputs.output_policy import OutputPolicy
from discreet.outputs.question import Question, fitting

FAMILIES = (
    "ols",
    "logit",
    "probit",
    "poisson",
    "negativebinomial",
    "mnlogit",
    "wls",
    "quantreg",
    "glm",
    "phreg",
)
_FIT = (
    "nobs",
    "df_resid",
    "df_model",
    "rsquared",
    "rsquared_adj",
    "prsquared",
    "llf",
    "aic",
    "bic",
    "fvalue",
)
_NOTHING = 1e-6
_HOLDS_RECORDS = (
    "KNeighbors",
    "SVC",
    "SVR",
    "GaussianProcess",
    "RadiusNeighbors",
    "KernelDensity",
    "LocalOutlierFactor",
)


def fit(
    family: str,
    formula: str,
    data: Microdata,
    policy: OutputPolicy,
    *,
    subject: str | None = None,
    where: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    shown: Sequence[str] = (),
) -> Draft:
    """Fit a model from a formula, such as ``"income ~ age + C(sex)"``, and check it."""
    if family not in FAMILIES:
        raise ParameterError(unknown_name(family, FAMILIES, what="model"))
    api = load_extra("statsmodels.formula.api", extra="models", purpose="Fitting a model")
    frame, who = _frame(formula, data, subject, where, options)
    given = dict(options or {})
    for name in ("weights", "freq_weights", "offset", "exposure"):
        if isinstance(given.get(name), str):
            given[name] = frame[given[name]]
    try:
        with warnings.catch_warnings(record=True, action="always") as heard:
            model = getattr(api, family)(formula, frame, **given)
            quiet = {} if family in ("ols", "wls", "quantreg", "glm", "phreg") else {"disp": 0}
            fitted = model.fit(**quiet)
    except Exception as error:
        lost = re.search(r"name '(\w+)' is not defined", str(error))
        if lost:
            raise ColumnError(unknown_name(lost.group(1), data.columns)) from error
        separated = "separation" in type(error).__name__.lower() or "singular" in str(error).lower()
        decided = " Some combination of regressors decides the outcome; leave a regressor out."
        raise InputError(
            f"The model could not be fitted ({type(error).__name__}).{decided if separated else ''} "
            "Check the formula and the columns it names."
        ) from error
    perfect = any("PerfectSeparation" in item.category.__name__ for item in heard)
    kept = _kept(model, frame)
    draft = checked_statsmodels(
        fitted, policy, subject=None if who is None else who[kept], shown=shown, is_perfect=perfect
    )
    used = tuple(name for name in data.columns if _mentions(formula, name))
    needed = tuple(dict.fromkeys((*used, *_option_columns(data, options))))
    question = Question((), where=where or {}, subject=subject, known=needed)
    entry = entered(family, data, question)
    used_records = float(len(frame[kept]))
    heavy = _weights(model, int(used_records))
    weightless = heavy is not None and bool((heavy <= _NOTHING * heavy.max()).any())
    if weightless or (who is None and entry.people != used_records):
        # The formula left out more than missing values (a logarithm of zero), or a weight of nothing did: the records
        # themselves say who is in.
        inside = frame[kept] if heavy is None else frame[kept][heavy > _NOTHING * heavy.max()]
        entry = entered(family, Microdata(pl.from_pandas(inside)), Question((), subject=subject))
    return replace(draft, kind=family, entries=(replace(entry, variables=used),), variables=used)


def checked_statsmodels(
    fitted: Any,
    policy: OutputPolicy,
    *,
    subject: Array | None = None,
    shown: Sequence[str] = (),
    is_perfect: bool = False,
) -> Draft:
    """Check a model that statsmodels has fitted."""
    model = getattr(fitted, "model", None)
    regressors = getattr(model, "exog", None)
    if regressors is None:
        raise ParameterError("This is not a fitted statsmodels model: it has no regressors to check.")
    matrix = np.asarray(regressors, dtype=np.float64)
    outcome = np.asarray(getattr(model, "endog", np.empty(0)), dtype=np.float64)
    names = [str(name) for name in getattr(model, "exog_names", [])]
    single = outcome if outcome.ndim == 1 and len(outcome) == len(matrix) else None
    checked = check_model(
        matrix,
        policy,
        outcome=single,
        subject=subject,
        names=names,
        is_perfect=is_perfect or _perfect(fitted, single),
        shown=shown,
        weights=_weights(model, len(matrix)),
    )
    stated = _number(fitted, "df_resid")
    if (
        stated is not None
        and stated < policy.dof_threshold
        and not any(f.check == "degrees of freedom" and f.status == "fail" for f in checked.findings)
    ):
        checked = checked.with_more([check_dof(stated, policy)])
    tables = {"coefficients": _coefficients(fitted), "fit": _fit_statistics(fitted)}
    kind = type(model).__name__.lower()
    named = names if len(names) == matrix.shape[1] else [f"x{i}" for i in range(matrix.shape[1])]
    entry = entered(kind, _records(matrix, named, single), Question(()))
    return Draft(kind, tables, checked, entries=(entry,), result=fitted)


def checked_sklearn(
    model: Any,
    regressors: Any,
    outcome: Any,
    policy: OutputPolicy,
    *,
    shown: Sequence[str] = (),
    others: tuple[Any, Any] | None = None,
) -> Draft:
    """Check a model that scikit-learn has fitted: linear ones as models, trees as tables, the rest by what they hold.

    Whatever it is, with ``others`` (records and outcomes of people it was not trained on) it is attacked: does it give
    its training records away?
    """
    draft = _sklearn_draft(model, regressors, outcome, policy, shown)
    if others is not None:
        if outcome is None:
            raise ParameterError("To attack the model its outcomes are needed: give y beside X.")
        found = membership_finding(model, regressors, outcome, others)
        draft = replace(draft, checked=draft.checked.with_more([found]))
    matrix, names = _matrix(regressors)
    y = None if outcome is None else _outcome(outcome)
    return replace(draft, entries=(entered(draft.kind, _records(matrix, names, y), Question(())),))


def _sklearn_draft(
    model: Any, regressors: Any, outcome: Any, policy: OutputPolicy, shown: Sequence[str]
) -> Draft:
    matrix, names = _matrix(regressors)
    kind = type(model).__name__
    y = None if outcome is None else _outcome(outcome)
    if any(word in kind for word in _HOLDS_RECORDS):
        reason = f"A fitted {kind} holds training records: it is microdata."
        return Draft(kind, {}, CheckResult([Finding("values per person", "g", "fail", reason)]), result=model)
    if hasattr(model, "tree_"):
        return _tree(model, names, policy)
    if hasattr(model, "coef_") and hasattr(model, "intercept_"):
        fits = bool(getattr(model, "fit_intercept", True))
        design = np.column_stack([np.ones(len(matrix)), matrix]) if fits else matrix
        labels = ["intercept", *names] if fits else names
        perfect = False
        if y is not None and not hasattr(model, "classes_"):
            left = y - np.asarray(model.predict(regressors), dtype=np.float64).ravel()
            perfect = bool(np.allclose(left, 0, atol=1e-9 * max(1.0, float(np.abs(y).max(initial=0)))))
        checked = check_model(design, policy, outcome=y, names=labels, is_perfect=perfect, shown=shown)
        rows = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
        constants = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), (len(rows),))
        table = pl.DataFrame(
            {
                "outcome": np.repeat(np.arange(len(rows)), len(names) + 1),
                "term": ["intercept", *names] * len(rows),
                "coefficient": np.column_stack([constants, rows]).ravel(),
            }
        )
        return Draft(kind, {"coefficients": table}, checked, result=model)
    if hasattr(model, "cluster_centers_"):
        barn, what = "m", "Cluster analysis has no rules yet"
    else:
        barn, what = "g", "Machine-learning models are outside the model of statbarns"
    reason = f"{what}: a {kind} is for a human to judge."
    settings = model.get_params() if hasattr(model, "get_params") else {}
    table = pl.DataFrame({"setting": list(settings), "value": [str(value) for value in settings.values()]})
    open_question = Finding("not covered", barn, "review", reason)
    checked = CheckResult([open_question, *structure_findings(model, regressors, outcome, policy)])
    return Draft(kind, {"settings": table}, checked, result=model)


def _weights(model: Any, records: int) -> Floats | None:
    """Read the weights of a fit, whatever they are called; None where it has none or they are all the same."""
    for name in ("weights", "freq_weights", "var_weights"):
        given = getattr(model, name, None)
        if given is None or np.ndim(given) != 1 or len(given) != records:
            continue
        numbers = np.asarray(given, dtype=np.float64)
        if numbers.size and not np.allclose(numbers, numbers[0]):
            return numbers
    return None


def _records(matrix: Floats, names: Sequence[str], outcome: Floats | None) -> Microdata:
    """Take what a model was fitted to as a file of its own, so that its records can be told from others."""
    frame = {name: matrix[:, i] for i, name in enumerate(names)}
    y = {} if outcome is None or len(outcome) != len(matrix) else {"the outcome": outcome}
    return Microdata(pl.DataFrame({**frame, **y}))


def _tree(model: Any, names: list[str], policy: OutputPolicy) -> Draft:
    """Check a decision tree as the table it is: every node is a count."""
    tree = model.tree_
    counts = np.asarray(tree.n_node_samples, dtype=np.float64)
    findings = list(check_counts(counts, policy.but(zeros_are_disclosive=False)).findings)
    if hasattr(model, "classes_"):
        weights = np.asarray(tree.value, dtype=np.float64)[:, 0, :]
        shares = weights / weights.sum(axis=1, keepdims=True)
        leaves = np.asarray(tree.children_left) == -1
        people = np.round(shares[leaves] * counts[leaves][:, None])
        findings += check_counts(people, policy).findings
    feature = np.asarray(tree.feature)
    table = pl.DataFrame(
        {
            "node": np.arange(len(counts)),
            "split on": [names[i] if i >= 0 else "leaf" for i in feature],
            "at": [float(t) if i >= 0 else None for t, i in zip(tree.threshold, feature, strict=True)],
            "people": counts.astype(int),
        },
        strict=False,
    )
    return Draft("decision tree", {"nodes": table}, CheckResult(findings), result=model)


def _frame(
    formula: str,
    data: Microdata,
    subject: str | None,
    where: Mapping[str, Any] | None,
    options: Mapping[str, Any] | None,
) -> tuple[Any, Array | None]:
    """Bring the columns of the formula into pandas, which the formulas of statsmodels read."""
    load_extra("pandas", extra="models", purpose="Fitting a model")
    used = [name for name in data.columns if _mentions(formula, name)]
    if not used:
        raise ParameterError(
            "The formula names no column of the data. Write it as 'outcome ~ regressor + regressor'."
        )
    extra = _option_columns(data, options)
    wanted = dict.fromkeys([*used, *extra, *(where or {}), *([subject] if subject else [])])
    rows = fitting(collect(data, list(wanted)), where)
    who = rows[subject].to_numpy() if subject else None
    return rows.to_pandas(), who


def _option_columns(data: Microdata, options: Mapping[str, Any] | None) -> list[str]:
    return [value for value in (options or {}).values() if isinstance(value, str) and value in data.schema]


def _kept(model: Any, frame: Any) -> Any:
    """Return which records the model used: those with a missing value were left out."""
    labels = getattr(getattr(model, "data", None), "row_labels", None)
    if labels is None:
        return slice(None)
    return np.isin(np.asarray(frame.index), np.asarray(labels))


def _mentions(formula: str, column: str) -> bool:
    pattern = rf"(?<![\w.]){re.escape(column)}(?![\w.])"
    return re.search(pattern, formula) is not None


def _perfect(fitted: Any, outcome: Floats | None) -> bool:
    squared = _number(fitted, "rsquared")
    if squared is not None and squared >= 1 - 1e-10:
        return True
    left = _number(fitted, "ssr")
    if left is not None and outcome is not None and outcome.size:
        spread = float(np.square(outcome - outcome.mean()).sum())
        # What is left of an outcome that does not vary is rounding, and so is its spread: it is fitted perfectly.
        rounding = 1e-24 * float(np.square(outcome).sum())
        return left <= max(1e-12 * spread, rounding)
    likelihood = _number(fitted, "llf")
    is_discrete = _number(fitted, "prsquared") is not None
    return is_discrete and likelihood is not None and abs(likelihood) < 1e-6


def _number(fitted: Any, name: str) -> float | None:
    try:
        value = getattr(fitted, name)
        number = float(value)
    except (AttributeError, NotImplementedError, TypeError, ValueError):
        # A model of another kind does not have it, or has one for every outcome; anything else is an error.
        return None
    return None if math.isnan(number) else number


def _coefficients(fitted: Any) -> pl.DataFrame:
    def column(values: Any) -> Floats:
        return np.asarray(values, dtype=np.float64).ravel(order="F")

    params = fitted.params
    terms = [str(name) for name in getattr(params, "index", range(len(params)))]
    wide = getattr(params, "ndim", 1) == 2
    outcomes = [str(name) for name in params.columns] if wide and hasattr(params, "columns") else [""]
    frame: dict[str, Any] = {"outcome": np.repeat(outcomes, len(terms))} if wide else {}
    frame["term"] = terms * (len(outcomes) if wide else 1)
    frame["coefficient"] = column(params)
    for title, name in (("standard error", "bse"), ("statistic", "tvalues"), ("p-value", "pvalues")):
        values = getattr(fitted, name, None)
        if values is not None:
            frame[title] = column(values)
    return pl.DataFrame(frame)


def _fit_statistics(fitted: Any) -> pl.DataFrame:
    found = {name: _number(fitted, name) for name in _FIT}
    kept = {name: number for name, number in found.items() if number is not None and math.isfinite(number)}
    return pl.DataFrame({"statistic": list(kept), "value": list(kept.values())})


def _matrix(regressors: Any) -> tuple[Floats, list[str]]:
    names = [str(name) for name in getattr(regressors, "columns", [])]
    native = regressors.to_numpy() if hasattr(regressors, "to_numpy") else np.asarray(regressors)
    matrix = np.asarray(native, dtype=np.float64)
    if matrix.ndim != 2:
        raise ParameterError("X must be a matrix or a frame with one row a record.")
    return matrix, names or [f"x{i}" for i in range(matrix.shape[1])]


def _outcome(outcome: Any) -> Floats:
    native = outcome.to_numpy() if hasattr(outcome, "to_numpy") else np.asarray(outcome)
    native = np.asarray(native).ravel()
    if native.dtype.kind in "OUS":
        return np.unique(native.astype(str), return_inverse=True)[1].astype(np.float64)
    return native.astype(np.float64)
