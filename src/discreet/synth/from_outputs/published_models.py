"""Published models: coefficients and, where they were printed, standard errors and measures of fit.

Terms are named after what they are: ``(Intercept)``, ``AGE``, ``AGE^2``, ``log(PAY)``, ``SEX[2]`` for the dummy of a
level, ``AGE:SEX[2]`` for a product. Reference levels are said, never guessed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np

from discreet.core.constraints import Above, Between
from discreet.core.errors import ParameterError, unknown_name
from discreet.synth.from_outputs import bound_targets
from discreet.synth.from_outputs.bound_targets import BoundModel
from discreet.synth.from_outputs.codebook import Codebook
from discreet.synth.from_outputs.published_targets import Target, checked_unit, checked_weight


class _Coefs(Target):
    """Published coefficients of a model."""

    outcome: str
    coefs: Mapping[str, float]
    unpublished: Sequence[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "unpublished", tuple(self.unpublished))

    @property
    def formula(self) -> str:
        """The model as a formula."""
        terms = []
        for term in (*self.coefs, *self.unpublished):
            plain = "1" if term == bound_targets.INTERCEPT else term
            for name, level in bound_targets.dummies_in(term):
                plain = plain.replace(f"{name}[{level}]", name)
            terms.append(plain)
        return f"{self.outcome} ~ {' + '.join(dict.fromkeys(terms))}"


@dataclass(frozen=True)
class LogitCoefs(_Coefs):
    """Coefficients of a logistic regression.

    Parameters
    ----------
    outcome
        The variable that is modeled.
    coefs
        ``{term: coefficient}``, the constant as ``(Intercept)``.
    reference
        The reference level of every variable that enters by dummies, ``{"SEX": 1}``.
    event
        The level of the outcome whose chance is modeled; 1 for an outcome with levels 0 and 1.
    se
        ``{term: standard error}``, where they were printed.
    unpublished
        Terms of the model whose coefficient was not printed, often ``["(Intercept)"]``.
    se_unit
        Printing unit of the standard errors.
    where, unit, weight, name
        As in `CrossTab`.

    Examples
    --------
    >>> model = LogitCoefs("CARS", {"(Intercept)": 6.4, "AGE": -0.08, "SEX[2]": -0.55}, reference={"SEX": 1})
    >>> model.formula
    'CARS ~ 1 + AGE + SEX'
    """

    outcome: str
    coefs: Mapping[str, float]
    reference: Mapping[str, Any] = field(default_factory=dict)
    event: Any = None
    se: Mapping[str, float] = field(default_factory=dict)
    unpublished: Sequence[str] = ()
    where: Mapping[str, Any] = field(default_factory=dict)
    unit: float | None = None
    se_unit: float | None = None
    weight: float = 1.0
    name: str = ""

    def bind(self, codebook: Codebook, n: int) -> BoundModel:
        """Make the model ready to fit."""
        title = self.name or f"logit of {self.outcome}"
        variable = codebook[self.outcome]
        if not variable.is_categorical or len(variable.levels) != 2:
            raise ParameterError(f"The outcome '{self.outcome}' of a logistic model must have two levels.")
        event = self.event
        if event is None:
            if {str(level) for level in variable.levels} != {"0", "1"}:
                raise ParameterError(
                    f"It is unclear which level of '{self.outcome}' is modeled in '{title}'. Say it: event=…."
                )
            event = 1
        outcome = bound_targets.level_column(codebook, self.outcome, [variable.position(event)])
        return _bound(self, "logit", title, outcome, codebook)


@dataclass(frozen=True)
class LinearCoefs(_Coefs):
    """Coefficients of a linear regression.

    Parameters
    ----------
    outcome
        The number that is modeled, or ``log(PAY)``.
    coefs, reference, se, unpublished, se_unit
        As in `LogitCoefs`.
    r2, residual_sd
        Share of variance explained and residual standard deviation, where they were printed.
    where, unit, weight, name
        As in `CrossTab`.

    Examples
    --------
    >>> LinearCoefs("PAY", {"(Intercept)": 9.1, "AGE": 0.2}, residual_sd=4.5).formula
    'PAY ~ 1 + AGE'
    """

    outcome: str
    coefs: Mapping[str, float]
    reference: Mapping[str, Any] = field(default_factory=dict)
    se: Mapping[str, float] = field(default_factory=dict)
    r2: Annotated[float, Between(0, 1, below=True)] | None = None
    residual_sd: Annotated[float, Above(0)] | None = None
    unpublished: Sequence[str] = ()
    where: Mapping[str, Any] = field(default_factory=dict)
    unit: float | None = None
    se_unit: float | None = None
    weight: float = 1.0
    name: str = ""

    def bind(self, codebook: Codebook, n: int) -> BoundModel:
        """Make the model ready to fit."""
        title = self.name or f"linear model of {self.outcome}"
        column = bound_targets.term_column(codebook, self.outcome)
        if len(column) != 1:
            raise ParameterError(f"The outcome of '{title}' must be one number.")
        return _bound(self, "linear", title, column[0], codebook)


def _bound(
    target: LogitCoefs | LinearCoefs,
    family: Literal["logit", "linear"],
    title: str,
    outcome: bound_targets.Factor,
    codebook: Codebook,
) -> BoundModel:
    terms = (*target.coefs, *target.unpublished)
    twice = [term for term in terms if terms.count(term) > 1]
    if twice:
        raise ParameterError(f"The term '{twice[0]}' of '{title}' is both published and unpublished.")
    if bound_targets.INTERCEPT not in terms:
        raise ParameterError(
            f"'{title}' has no constant. Give coefs['{bound_targets.INTERCEPT}'], "
            f"or unpublished=['{bound_targets.INTERCEPT}'] if it was not printed."
        )
    _check_references(target.reference, terms, codebook, title)
    matrix = tuple(bound_targets.term_column(codebook, term) for term in terms)
    if any(factor.variable == outcome.variable for column in matrix for factor in column):
        raise ParameterError(f"The outcome of '{title}' is also one of its predictors.")
    for term in target.se:
        if term not in target.coefs:
            raise ParameterError(
                f"Standard errors of '{title}': {unknown_name(term, target.coefs, what='term')}"
            )
    beta = np.array([float(target.coefs.get(term, math.nan)) for term in terms])
    se = np.array([float(target.se.get(term, math.nan)) for term in terms])
    if not np.isfinite(beta[: len(target.coefs)]).all() or (se <= 0).any():
        raise ParameterError(f"Coefficients of '{title}' must be numbers and standard errors above 0.")
    stated = {"R2": getattr(target, "r2", None), "residual SD": getattr(target, "residual_sd", None)}
    fit = {name: float(value) for name, value in stated.items() if value is not None}
    unit = checked_unit(target.unit, target.coefs.values(), title)
    se_unit = checked_unit(target.se_unit, target.se.values(), title)
    halves = [unit / 2] * len(target.coefs) + [se_unit / 2] * len(target.se)
    halves += [checked_unit(None, [value], title) / 2 for value in fit.values()]
    with_se = [term for term in terms if term in target.se]
    published = [*target.coefs.values(), *(target.se[term] for term in with_se), *fit.values()]
    return BoundModel(
        title,
        (*target.coefs, *(f"SE of {term}" for term in with_se), *fit),
        np.array(published, dtype=np.float64),
        np.array(halves),
        np.ones(len(published)),
        checked_weight(target.weight, title),
        bound_targets.filter_columns(codebook, target.where),
        family,
        terms,
        matrix,
        outcome,
        beta,
        se,
        fit.get("R2", math.nan),
        fit.get("residual SD", math.nan),
    )


def _check_references(
    reference: Mapping[str, Any], terms: Sequence[str], codebook: Codebook, title: str
) -> None:
    """Refuse a model whose dummies do not leave out exactly the stated reference level."""
    dummies: dict[str, set[int]] = {}
    for term in terms:
        found = bound_targets.dummies_in(term)
        if len(found) == 1 and ":" not in term:
            variable = codebook[found[0][0]]
            dummies.setdefault(variable.name, set()).add(variable.position(found[0][1]))
    for name, positions in dummies.items():
        variable = codebook[name]
        if name not in reference:
            raise ParameterError(
                f"The reference level of '{name}' in '{title}' is unclear. Say it: reference={{'{name}': …}}."
            )
        stated = variable.position(reference[name])
        if stated in positions:
            raise ParameterError(
                f"The reference level of '{name}' in '{title}' has a coefficient too. Mend one."
            )
        left = set(range(len(variable.levels))) - positions - {stated}
        if left:
            raise ParameterError(
                f"{len(left)} level(s) of '{name}' in '{title}' have neither a coefficient nor are they the reference. "
                "Name them under unpublished=[…] if they were not printed."
            )
    for name in reference:
        if name not in dummies:
            raise ParameterError(
                f"'{title}' names a reference level of '{name}' but has no coefficient such as '{name}[level]'."
            )
