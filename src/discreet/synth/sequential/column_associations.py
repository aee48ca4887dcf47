"""How strongly are columns of all kinds related? One pass over the data, then small matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet.core.arrays import Floats, Integers
from discreet.synth.column_forms import CategoryForm, Form, NumberForm, Variable, is_numeric

_MOST_INDICATORS = 30
_BINS = 20
_CHUNK = 50_000
_SINGULAR = 1e-10
_RIDGE = 0.1
_FAR_OUT = -600.0
_SOUND = 1e6


@dataclass(frozen=True)
class Explained:
    """How well the other columns explain one."""

    r2: float
    log10_p: float
    adjusted: float
    cross_validated: float

    def better(self, criterion: str) -> float:
        """Return the figure to be made as large as possible."""
        return {
            "r2": self.r2,
            "adj_r2": self.adjusted,
            "p_value": -self.log10_p,
            "cv_r2": self.cross_validated,
        }[criterion]


class Associations:
    """The correlations of all columns, categories as indicators of their most frequent levels."""

    def __init__(
        self,
        correlation: Floats,
        owner: Sequence[str],
        rows: int,
        *,
        constant: set[str],
        shortened: tuple[str, ...],
    ) -> None:
        self.correlation = correlation
        self.owner = np.array(owner)
        self.rows = rows
        self.constant = constant
        self.shortened = shortened

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know about the correlations."""
        found = []
        if self.shortened:
            found.append(
                f"Only the {_MOST_INDICATORS} most frequent levels of {', '.join(self.shortened)} were looked at."
            )
        if 0 < self.rows <= len(self.owner):
            found.append(
                f"{self.rows:,} records are fewer than the columns to tell apart, so that correlations were shrunk."
            )
        return tuple(found)

    @classmethod
    def of(cls, table: pl.DataFrame, forms: Mapping[str, Form] | None = None) -> Associations:
        """Correlate all columns; missing values are states of their own, not dropped records."""
        columns: list[_Column] = []
        constant = {name for name in table.columns if table[name].n_unique() <= 1}
        shortened = []
        for name in table.columns:
            if name in constant:
                continue
            for variable in (forms or {}).get(name, _form(table[name])).split(table[name]):
                own, cut = _standardized(name, variable)
                columns += own
                if cut:
                    shortened.append(name)
        correlation = np.zeros((len(columns), len(columns)))
        for start in range(0, table.height, _CHUNK):
            rows = slice(start, start + _CHUNK)
            block = (
                np.column_stack([column.part(rows) for column in columns]) if columns else np.empty((0, 0))
            )
            correlation += block.T @ block / table.height
        owner = [column.owner for column in columns]
        return cls(correlation, owner, table.height, constant=constant, shortened=tuple(shortened))

    def is_constant(self, name: str) -> bool:
        """Whether a column has one value only."""
        return name in self.constant

    def explained(self, names: Sequence[str]) -> dict[str, Explained]:
        """Say for each column how well the others explain it, from one inverse of the correlations.

        For one number this is 1 - 1/C^-1_ii; for the indicators of a category the mean share of their (whitened)
        variance that is explained.
        """
        there = np.isin(self.owner, list(names))
        own = self.owner[there]
        block = self.correlation[np.ix_(there, there)]
        if self.rows <= len(block):
            # With fewer records than columns each would follow exactly from the others.
            block = (1 - _RIDGE) * block + _RIDGE * np.eye(len(block))
        inverse, exact = _inverse(block, own)
        places: dict[str, list[int]] = {}
        for place, name in enumerate(own.tolist()):
            places.setdefault(name, []).append(place)
        left = np.array(
            [0.0 if name in exact else _left_over(block, inverse, places[name]) for name in names]
        )
        others = np.array([len(own) - len(places[name]) for name in names])
        df = np.maximum(self.rows - others - 1, 1)
        log10_p = _log10_p(left, np.maximum(others, 1), df)
        adjusted = 1 - left * (self.rows - 1) / df
        crossed = 1 - left * (self.rows / df) ** 2
        figures = zip((1 - left).tolist(), log10_p.tolist(), adjusted.tolist(), crossed.tolist(), strict=True)
        return {name: Explained(*own_figures) for name, own_figures in zip(names, figures, strict=True)}

    def blocks(self, names: Sequence[str], threshold: float) -> tuple[tuple[str, ...], ...]:
        """Group columns that are related, directly or through others."""
        strength = np.zeros((len(names), len(names)))
        # Of n unrelated records about one correlation in a thousand exceeds this by chance.
        noise = 3.3 / np.sqrt(max(self.rows, 1))
        for i, name in enumerate(names):
            for j, other in enumerate(names[:i]):
                own = np.abs(self.correlation[np.ix_(self.owner == name, self.owner == other)])
                strength[i, j] = strength[j, i] = own.max() if own.size else 0.0
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        _, label = connected_components(csr_array(strength > max(threshold, noise)), directed=False)
        return tuple(
            tuple(name for name, own in zip(names, label, strict=True) if own == number)
            for number in dict.fromkeys(label.tolist())
        )


def mutual_information_matrix(table: pl.DataFrame, forms: Mapping[str, Form] | None = None) -> Floats:
    """Return the mutual information of every pair of columns in nats; numbers in 20 groups of equal size.

    What pure chance gives, (a-1)(b-1)/2n, is taken off, so that columns of many levels are not favored.
    """
    coded = [_grouped((forms or {}).get(name, _form(table[name])), table[name]) for name in table.columns]
    found = np.zeros((len(coded), len(coded)))
    for i, (one, a) in enumerate(coded):
        for j, (other, b) in enumerate(coded[:i]):
            joint = np.bincount(one.astype(np.int64) * b + other, minlength=a * b).reshape(a, b) / len(one)
            product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
            full = joint > 0
            total = float(np.sum(joint[full] * np.log(joint[full] / product[full])))
            chance = (np.count_nonzero(joint.any(axis=1)) - 1) * (np.count_nonzero(joint.any(axis=0)) - 1)
            found[i, j] = found[j, i] = max(total - chance / (2 * len(one)), 0.0)
    return found


def _form(series: pl.Series) -> Form:
    if is_numeric(series.dtype):
        return NumberForm.of(series)
    return CategoryForm.of(series)


@dataclass(frozen=True)
class _Column:
    """A number, or the indicator of one level, to be brought to mean 0 and standard deviation 1."""

    owner: str
    variable: Variable
    level: int | None
    mean: float
    spread: float

    def part(self, rows: slice) -> Floats:
        values = self.variable.values[rows]
        return ((values if self.level is None else values == self.level) - self.mean) / self.spread


def _standardized(name: str, variable: Variable) -> tuple[list[_Column], bool]:
    """Make the columns of one variable that vary; say whether some levels are left out."""
    if variable.is_number:
        mean, spread = float(variable.values.mean()), float(variable.values.std())
        return [_Column(name, variable, None, mean, spread)] if spread > 0 else [], False
    held = np.bincount(variable.values, minlength=variable.levels)
    largest = np.argsort(-held, kind="stable")
    # The most frequent level is the one that the others are measured against.
    shares = {int(level): held[level] / len(variable.values) for level in largest[1 : _MOST_INDICATORS + 1]}
    columns = [
        _Column(name, variable, level, float(share), float(np.sqrt(share * (1 - share))))
        for level, share in shares.items()
        if 0 < share < 1
    ]
    return columns, len(largest) > _MOST_INDICATORS + 1


def _inverse(block: Floats, owner: npt.NDArray[np.str_]) -> tuple[Floats, set[str]]:
    """Return the (pseudo-)inverse of correlations, and the columns that are linear functions of the others."""
    try:
        inverse = np.asarray(np.linalg.inv(block))
    except np.linalg.LinAlgError:
        inverse = np.full_like(block, np.inf)
    # The trace bounds the smallest eigenvalue from below: nothing is singular, and eigenvalues take far longer.
    if 0 < np.trace(inverse) < _SOUND and (np.diag(inverse) > 0).all():
        return inverse, set()
    values, vectors = np.linalg.eigh(block)
    usable = values > _SINGULAR * values.max()
    inverse = (vectors[:, usable] / values[usable]) @ vectors[:, usable].T
    return inverse, _exactly_explained(vectors[:, ~usable], owner)


def _left_over(block: Floats, inverse: Floats, places: Sequence[int]) -> float:
    """Return the share of a column's variance that the others do not explain."""
    if len(places) == 1:
        at = places[0]
        precision = inverse[at, at] * block[at, at]
        return float(np.clip(1 / precision, 0.0, 1.0)) if precision > 0 else 0.0
    own = np.ix_(places, places)
    rest = np.linalg.pinv(inverse[own])
    return float(np.clip(np.trace(np.linalg.pinv(block[own]) @ rest) / len(places), 0.0, 1.0))


def _log10_p(left: Floats, others: Integers, df: Integers) -> Floats:
    """Return the logarithm of the p-value of the overall F test, also where the p-value is too small for a float.

    The p-value is the incomplete beta function of the share that is left over; far out its series is used.
    """
    from scipy.special import betaln, hyp2f1
    from scipy.stats import f as f_law

    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = ((1 - left) / others) / (left / df)
        found = np.asarray(f_law.logsf(ratio, others, df))
        a, b = df / 2, others / 2
        series = hyp2f1(a + b, 1.0, a + 1, left)
        leading = 1 / np.maximum(1 - left * (a + b) / (a + 1), 1e-12)
        series = np.where(np.isfinite(series) & (series > 0), series, leading)
        far = a * np.log(left) + b * np.log1p(-left) - np.log(a) - betaln(a, b) + np.log(series)
    return np.asarray(np.where(found > _FAR_OUT, found, far) / np.log(10))


def _exactly_explained(null: Floats, owner: npt.NDArray[np.str_]) -> set[str]:
    """Find columns that are linear functions of the others: those that take part in a null direction."""
    return {str(name) for name in np.unique(owner) if null.size and np.abs(null[owner == name]).max() > 1e-6}


def _grouped(form: Form, series: pl.Series) -> tuple[Integers, int]:
    parts = form.split(series)
    value = parts[-1]
    if not value.is_number:
        return value.values.astype(np.int64), value.levels
    cuts = np.unique(np.quantile(value.values, np.arange(1, _BINS) / _BINS))
    codes = np.searchsorted(cuts, value.values, side="left").astype(np.int64)
    size = len(cuts) + 1
    if len(parts) == 2:
        codes = np.where(parts[0].values == 0, codes, size - 1 + parts[0].values)
        size += parts[0].levels - 1
    return codes, size
