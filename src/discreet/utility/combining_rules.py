"""What do several synthetic copies say together? Combining rules, and which one belongs to which kind of copies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Flags, Floats, numbers_of
from discreet.core.constraints import Above, Share
from discreet.core.errors import ParameterError, unknown_name
from discreet.core.parameters import checked

Rule = Literal["simple", "observed", "proper", "partial", "pseudo-likelihood", "bootstrap"]

_GENERATIONS: Mapping[str, tuple[Rule, ...]] = {
    "plain": ("simple", "observed", "pseudo-likelihood"),
    "posterior": ("proper", "observed"),
    "bootstrap": ("bootstrap", "proper", "observed"),
    "normal": ("pseudo-likelihood", "observed"),
    "none": ("pseudo-likelihood", "simple", "observed"),
    "partial": ("partial", "observed"),
}
# The rule that a fitted synthesizer names tells how its copies were made.
_MADE_BY_RULE = {
    "simple": "plain",
    "proper": "posterior",
    "partial": "partial",
    "pseudo-likelihood": "normal",
    "bootstrap": "bootstrap",
}
_TOO_FEW = 2


@dataclass(frozen=True, eq=False)
class Combined:
    """One estimate out of several copies.

    Attributes
    ----------
    estimate
        The mean over copies, a number or a vector.
    variance
        By the rule: numbers, or a matrix where covariances were given; NaN where one copy allows for none.
    df
        Degrees of freedom of the t distribution; infinite for the normal one.
    between, within
        Variance between the copies, and the mean of their own variances.
    flagged
        Where the rule gave a negative variance and the stand-in was used.
    """

    estimate: Any
    variance: Any
    df: Any
    between: Any
    within: Any
    rule: str
    copies: int
    flagged: Any
    notes: tuple[str, ...] = field(default=())

    @property
    def value(self) -> Any:
        """The estimate."""
        return self.estimate

    @property
    def standard_error(self) -> Any:
        """Root of the variance (of its diagonal)."""
        variance = np.asarray(self.variance)
        flat = np.diagonal(variance) if variance.ndim == 2 else variance
        with np.errstate(invalid="ignore"):
            return _plain(np.sqrt(flat))

    @checked
    def interval(self, level: Annotated[float, Share(above=True, below=True)] = 0.95) -> tuple[Any, Any]:
        """Return the ends of the confidence interval, by the t distribution where the rule has degrees of freedom."""
        from scipy.stats import t as student

        df = np.asarray(self.df, dtype=np.float64)
        normal = NormalDist().inv_cdf((1 + level) / 2)
        with np.errstate(invalid="ignore"):
            reach = np.where(
                np.isinf(df), normal, student.ppf((1 + level) / 2, np.where(np.isinf(df), 1, df))
            )
        reach = reach * np.asarray(self.standard_error)
        return _plain(np.asarray(self.estimate) - reach), _plain(np.asarray(self.estimate) + reach)

    @property
    def figures(self) -> dict[str, Any]:
        """Every number by its short name."""
        low, high = self.interval()
        return {
            "estimate": self.estimate,
            "variance": self.variance,
            "standard_error": self.standard_error,
            "df": self.df,
            "between": self.between,
            "within": self.within,
            "low": low,
            "high": high,
            "copies": self.copies,
            "flagged": self.flagged,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the figures, ready for JSON."""
        from discreet.core.values import jsonable

        return {"rule": self.rule, **jsonable(self.figures), "notes": list(self.notes)}


@checked
def combine(
    estimates: npt.ArrayLike,
    variances: npt.ArrayLike,
    rule: Rule | None = None,
    *,
    n: Annotated[float, Above(0)] | None = None,
    n_syn: Annotated[float, Above(0)] | None = None,
    generation: Any = None,
    fpc: Annotated[float, Share(below=True)] | None = None,
) -> Combined:
    """What do several synthetic copies say together, and how sure is it?

    Also known as: Rubin's rules; combining rules; Raghunathan-Reiter-Rubin; T_s; T_p.

    Parameters
    ----------
    estimates
        One estimate a copy (m numbers), or one row of estimates a copy.
    variances
        Their variances as each copy gives them, computed as if it were an original: the same shape, or one covariance
        matrix a copy.
    rule
        With q̄ the mean estimate, v̄ the mean variance and b the variance between the m copies:
        ``"simple"``: complete synthesis without draws of the parameters, v̄ (n_syn/n + 1/m), also for one copy;
        ``"observed"``: what the original would have given, v̄, for any kind of copies;
        ``"partial"``: only some columns synthesized, v̄ + b/m;
        ``"proper"``: complete synthesis with parameters drawn from their posterior, (1 + 1/m) b - v̄;
        ``"pseudo-likelihood"``: weighted synthesis of surveys with normal draws of the parameters or none,
        (1 + 1/m) b with m - 1 degrees of freedom;
        ``"bootstrap"``: parameters refitted to a bootstrap of the sample, (1 + 1/m) b - v̄. Unless named, the first that
        belongs to ``generation``, and ``"simple"`` where that is not told either.
    n, n_syn
        Records of the original and of each copy; taken as equal unless both are given.
    generation
        How the copies were made: the fitted synthesizer that drew them, or ``"plain"`` or ``"none"`` (no draws of the
        parameters), ``"normal"``, ``"posterior"``, ``"bootstrap"``, ``"partial"``. A rule that does not belong to it is
        refused.
    fpc
        Share of the population that was sampled; the variance is multiplied by 1 - fpc. Not part of the rules.

    Returns
    -------
    Combined
        ``estimate``, ``variance``, ``standard_error``, ``df``, ``between``, ``within``, ``interval(level)``,
        ``flagged``, ``notes``.

    How to read it
    --------------
    The estimate is the mean over copies. Its variance depends on how the copies were made, and the rules differ by
    factors of two and more: give the fitted synthesizer as ``generation``, so that no wrong one is used. The interval
    covers the population's value, except by the rule ``"observed"``, which covers what the original file would say.

    When not to trust it
    --------------------
    The rules of proper and bootstrap synthesis subtract two estimates and may turn out negative: the stand-in is then
    used and flagged, and more copies are the cure. With few copies the degrees of freedom are few. A design with very
    unequal weights makes ``"pseudo-likelihood"`` too sure. No rule repairs a synthesis whose model is wrong.

    Examples
    --------
    >>> five = combine([10.2, 9.8, 10.5, 9.9, 10.1], [0.04, 0.05, 0.045, 0.05, 0.04], "pseudo-likelihood")
    >>> round(five.estimate, 3), round(five.variance, 4), five.df
    (10.1, 0.09, 4.0)
    >>> round(combine([10.2, 9.8], [0.04, 0.05], "simple").variance, 4)
    0.0675
    """
    rule = _rule(rule, generation)
    # What a copy could not estimate is missing in the combined estimate too.
    q = numbers_of(estimates, "estimates", missing=True, infinite=True)
    v = numbers_of(variances, "variances", missing=True, infinite=True)
    m = len(q) if q.ndim else 0
    if q.ndim not in (1, 2) or not m or v.shape not in {q.shape, (*q.shape, q.shape[-1])}:
        raise ParameterError(
            "estimates must be m numbers or m rows, one a copy, and variances the same or one matrix a copy."
        )
    matrix = v.ndim == q.ndim + 1 and q.ndim == 2
    if not matrix and v.shape != q.shape:
        raise ParameterError("variances must have the shape of estimates, or be one matrix a copy.")
    if ((np.diagonal(v, axis1=1, axis2=2) if matrix else v) < 0).any():
        raise ParameterError("variances must not be negative. Give squared standard errors, one a copy.")
    ratio = _ratio(n, n_syn)
    if m < _TOO_FEW and rule in ("partial", "proper", "bootstrap"):
        raise ParameterError(
            f"The rule '{rule}' needs at least two copies: one says nothing about their variance."
        )
    within = v.mean(axis=0)
    between = _between(q, matrix) if m > 1 else np.full_like(within, np.nan)
    variance, df, flagged, notes = _applied(rule, within, between, m, ratio)
    if fpc is not None:
        variance = variance * (1 - fpc)
    return Combined(
        estimate=_plain(q.mean(axis=0)),
        variance=_plain(variance),
        df=_plain(df),
        between=_plain(between),
        within=_plain(within),
        rule=rule,
        copies=m,
        flagged=_plain(flagged),
        notes=tuple(notes),
    )


def _applied(
    rule: str, within: Floats, between: Floats, m: int, ratio: float
) -> tuple[Floats, Floats, Flags, list[str]]:
    own, apart = _diagonal(within), _diagonal(between)
    never = np.zeros(own.shape, dtype=np.bool_)
    normal = np.full(own.shape, np.inf)
    notes: list[str] = []
    if rule == "observed":
        return within, normal, never, notes
    if rule == "simple":
        return within * (ratio + 1 / m), normal, never, notes
    if rule == "pseudo-likelihood":
        if m == 1:
            notes.append("One copy says nothing about the variance between copies.")
        return (1 + 1 / m) * between, np.full(own.shape, float(m - 1)), never, notes
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if rule == "partial":
            df = np.where(apart > 0, (m - 1) * (1 + own / (apart / m)) ** 2, np.inf)
            return within + between / m, df, never, notes
        spread = (1 + 1 / m) * apart
        df = (m - 1) * (1 - own / spread) ** 2
    variance = (1 + 1 / m) * between - within
    negative = ~(_diagonal(variance) > 0)
    stand_in = within if rule == "proper" else ratio * within
    if negative.any():
        notes.append(
            "The rule gave a negative variance; the mean variance of the copies stands in for it. More copies help."
        )
        if variance.ndim == 2:
            variance, negative = stand_in, np.ones_like(negative)
        else:
            variance = np.where(negative, stand_in, variance)
        df = np.where(negative, float(m - 1), df)
    return variance, df, negative, notes


def _rule(rule: str | None, generation: Any) -> Rule:
    """Choose the rule by the way the copies were made, or refuse one that does not belong to it."""
    made = _made(generation)
    if rule is None:
        return _GENERATIONS[made or "plain"][0]
    if made is not None and rule not in _GENERATIONS[made]:
        fitting = " or ".join(f"'{name}'" for name in _GENERATIONS[made])
        raise ParameterError(
            f"The rule '{rule}' does not belong to copies made by generation '{made}': its variance would be wrong. "
            f"Use {fitting}."
        )
    return rule  # type: ignore[return-value]


def _made(generation: Any) -> str | None:
    """Say how the copies were made: by name, or by the rule of the synthesizer that drew them."""
    if generation is None:
        return None
    made = generation if isinstance(generation, str) else getattr(generation, "generation", None)
    if made is None:
        made = _MADE_BY_RULE.get(str(getattr(generation, "combining_rule", "")))
    if made is None:
        raise ParameterError(
            "generation must be the fitted synthesizer that drew the copies, or a name: "
            f"{', '.join(map(repr, _GENERATIONS))}."
        )
    if made not in _GENERATIONS:
        raise ParameterError(unknown_name(str(made), _GENERATIONS, what="generation"))
    return str(made)


def _ratio(n: float | None, n_syn: float | None) -> float:
    if (n is None) != (n_syn is None):
        raise ParameterError("Give both n and n_syn, the records of the original and of each copy, or none.")
    if n is None or n_syn is None:
        return 1.0
    return float(n_syn / n)


def _between(q: Floats, matrix: bool) -> Floats:
    if matrix:
        return np.atleast_2d(np.cov(q, rowvar=False, ddof=1))
    apart: Floats = np.asarray(q.var(axis=0, ddof=1))
    return apart


def _diagonal(values: Floats) -> Floats:
    return np.diagonal(values) if np.ndim(values) == 2 else np.asarray(values)


def _plain(values: Any) -> Any:
    array = np.asarray(values)
    return array.item() if array.ndim == 0 else array
