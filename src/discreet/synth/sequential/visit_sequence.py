"""In which order should the columns be synthesized?

Sequential synthesis draws each column given those before it, so columns that follow from others belong last. None
of the ways here finds causes: they are heuristics; what an order costs is measured with
`discreet.utility.cost_of_order`. How strongly columns are related is worked out in one pass over the data.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from discreet import engine
from discreet.core.arrays import Floats, Integers
from discreet.core.constraints import AtLeast
from discreet.core.errors import ColumnError, ParameterError, unknown_name
from discreet.core.parameters import check
from discreet.core.randomness import Seed, generator
from discreet.microdata import Microdata, require_microdata
from discreet.synth import column_forms
from discreet.synth.column_forms import Form
from discreet.synth.sequential.method_choice import names_in

WAYS = ("auto", "backward", "dependence-tree", "mutual-information", "levels")
CRITERIA = ("r2", "adj_r2", "p_value", "cv_r2")
_MANY_LEVELS = 30  # of a category; finer ones predict too well what they have seen
_MANY_VALUES = 1000  # of a number; how many more it has says nothing about how coarse it is


@dataclass(frozen=True)
class OrderChoice:
    """A proposed order and why.

    Attributes
    ----------
    order
        The columns, first to be synthesized first.
    trace
        One row a step: what was chosen and by which figures.
    blocks
        Groups of columns without a visible relation to one another; more than one suggests synthesizing them apart.
    predictors
        For each column those before it in its own block.
    notes
        What the user should know.
    """

    order: tuple[str, ...]
    trace: pl.DataFrame = field(repr=False)
    blocks: tuple[tuple[str, ...], ...]
    predictors: Mapping[str, tuple[str, ...]] = field(repr=False)
    notes: tuple[str, ...] = ()


def choose_order(
    data: Microdata,
    *,
    by: str = "auto",
    criterion: str = "r2",
    columns: Sequence[str] | None = None,
    fixed_first: Sequence[str] = (),
    fixed_last: Sequence[str] = (),
    ties: str = "input",
    block_threshold: float = 0.05,
    forms: Mapping[str, Form] | None = None,
    frame: pl.DataFrame | None = None,
    seed: Seed = None,
) -> OrderChoice:
    """In which order should the columns be synthesized?

    Also known as: visit sequence; order of synthesis.

    Parameters
    ----------
    data
        The file.
    by
        ``"backward"`` sets aside, again and again, the column that the remaining ones explain best, which is then
        synthesized last (categories of more than 30 levels come at the very end);
        ``"dependence-tree"`` walks the tree of strongest relations (Chow and Liu 1968) from its
        most connected column; ``"mutual-information"`` adds the column that those already there say most about;
        ``"levels"`` puts few distinct values first; numbers of a thousand values or more keep the order of the file
        among themselves, and categories of more than 30 levels come after the numbers: as predictors they explain by
        chance what others explain in truth. ``"auto"`` is ``"levels"``: on six of the eight files it was tried on it
        kept pairs of columns best, because coarse columns predict well and fine ones poorly, and on the two others
        nearly so.
    criterion
        Of the backward way: ``"r2"``, ``"adj_r2"``, ``"p_value"`` (of the overall F test, compared on the log scale) or
        ``"cv_r2"`` (leave-one-out). Within a step the first three rank single-column candidates alike.
    columns
        Which columns; all but identifiers and the weight unless named.
    fixed_first, fixed_last
        Columns whose place is known.
    ties
        ``"input"`` takes the first in the file, ``"random"`` draws.
    block_threshold
        Columns whose association is below this are not related.
    forms, frame
        The columns as they are modelled and the file in memory, where both are at hand.
    seed
        For random ties.

    Returns
    -------
    OrderChoice
        The order, a trace of the decisions, and blocks of columns that have nothing to do with one another.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> x = rng.exponential(5, 1000)
    >>> y = x / 2 + rng.normal(0, 0.1, 1000)
    >>> z = 2 * x + 3 * y + rng.normal(0, 0.1, 1000)
    >>> choose_order(Microdata(pl.DataFrame({"z": z, "x": x, "y": y})), by="backward").order[-1]
    'z'
    """
    if by not in WAYS:
        raise ParameterError(unknown_name(by, WAYS, what="way to choose an order"))
    if criterion not in CRITERIA:
        raise ParameterError(unknown_name(criterion, CRITERIA, what="criterion"))
    if ties not in ("input", "random"):
        raise ParameterError('ties must be "input" or "random".')
    require_microdata(data)
    check(block_threshold, Annotated[float, AtLeast(0)], "block_threshold")
    fixed_first, fixed_last = names_in(fixed_first, "fixed_first"), names_in(fixed_last, "fixed_last")
    hidden = (*data.roles.identifiers, *([data.roles.weight] if data.roles.weight else []))
    asked = None if columns is None else names_in(columns, "columns")
    names = [c for c in data.columns if c not in hidden] if asked is None else list(asked)
    _check_places(data, names, fixed_first, fixed_last)
    table = engine.collect(data, names) if frame is None else column_forms.columns_named(frame, names)
    links = Associations.of(table, forms)
    constant = [name for name in names if links.is_constant(name)]
    free = [name for name in names if name not in (*fixed_first, *fixed_last, *constant)]
    rng = generator(seed) if ties == "random" else None
    if by == "backward":
        # Of a category with many levels only some were looked at; as a source it would be too fine.
        late = [name for name in free if name in links.shortened]
        chosen, rows = _backward(links, [name for name in free if name not in late], criterion, rng)
        chosen += late
    elif by in ("auto", "levels"):
        chosen, rows = _by_levels(table, free)
    else:
        information = (
            mutual_information_matrix(column_forms.columns_named(table, free), forms)
            if free
            else np.zeros((0, 0))
        )
        chosen, rows = _by_information(information, free, tree=by == "dependence-tree")
    first = [*constant, *(name for name in fixed_first if name not in constant)]
    order = (*first, *chosen, *(name for name in fixed_last if name not in constant))
    blocks = links.blocks([name for name in names if name not in constant], block_threshold)
    notes = (*_collinear_notes(rows), *_notes(blocks, links))
    return OrderChoice(order, _trace(rows), blocks, _within_blocks(order, blocks), notes)


def in_order(order: Sequence[str], edges: Mapping[str, Collection[str]]) -> list[str]:
    """Keep the order, but put every column after those that its rules and formulas speak of.

    Columns that need each other in a circle stay as they stand.

    Examples
    --------
    >>> in_order(["a", "b", "c"], {"a": {"c"}})
    ['b', 'c', 'a']
    """
    waiting, done = list(order), []
    while waiting:
        ready = next((n for n in waiting if not set(edges.get(n, ())) & (set(waiting) - {n})), waiting[0])
        done.append(ready)
        waiting.remove(ready)
    return done


def _check_places(data: Microdata, names: Sequence[str], first: Sequence[str], last: Sequence[str]) -> None:
    column_forms.check_named({"columns": names}, data.columns)
    for setting, given in (("columns", names), ("fixed_first", first), ("fixed_last", last)):
        twice = next((name for name in given if list(given).count(name) > 1), None)
        if twice is not None:
            raise ColumnError(f"Column '{twice}' stands twice in {setting}. Name it once.")
    column_forms.check_named({"fixed_first or fixed_last": (*first, *last)}, names)
    both = [name for name in first if name in last]
    if both:
        raise ParameterError(f"Column '{both[0]}' is in fixed_first and in fixed_last. Decide for one.")


def _backward(
    links: Associations, free: Sequence[str], criterion: str, rng: np.random.Generator | None
) -> tuple[list[str], list[dict[str, Any]]]:
    remaining = list(free)
    aside: list[str] = []
    rows: list[dict[str, Any]] = []
    while len(remaining) > 1:
        fits = links.explained(remaining)
        best = np.array([fits[name].better(criterion) for name in remaining])
        top = np.flatnonzero(best >= best.max() - 1e-12)
        at = int(top[0] if rng is None else rng.choice(top))
        chosen = remaining[at]
        rows += [
            {
                "step": len(aside) + 1,
                "column": name,
                "r2": fits[name].r2,
                "log10_p": fits[name].log10_p,
                "chosen": name == chosen,
            }
            for name in remaining
        ]
        aside.append(chosen)
        remaining.remove(chosen)
    return [*remaining, *reversed(aside)], rows


def _by_levels(table: pl.DataFrame, free: Sequence[str]) -> tuple[list[str], list[dict[str, Any]]]:
    numeric = {name: column_forms.is_numeric(table.schema[name]) for name in free}
    distinct = {name: table[name].n_unique() for name in free}
    levels = {name: min(n, _MANY_VALUES) if numeric[name] else n for name, n in distinct.items()}
    late = {name: not numeric[name] and levels[name] > _MANY_LEVELS for name in free}
    order = sorted(free, key=lambda name: (late[name], levels[name], free.index(name)))
    return order, [
        {"step": at + 1, "column": name, "levels": levels[name], "chosen": True}
        for at, name in enumerate(order)
    ]


def _by_information(
    information: Floats, free: Sequence[str], *, tree: bool
) -> tuple[list[str], list[dict[str, Any]]]:
    """Start with the most connected column and add the one with the strongest link to those already there.

    Along a ``tree`` that is the link to one of them, which makes the maximal dependence tree; otherwise the links to
    all of them are added up.
    """
    if len(free) < 2:
        return list(free), []

    def row(column: int, link: float | None, parent: str | None) -> dict[str, Any]:
        told = {"step": len(there), "column": free[column], "information": link}
        return told | ({"parent": parent} if tree else {}) | {"chosen": True}

    there = [int(information.sum(axis=1).argmax())]
    rows = [row(there[0], None, None)]
    links, parent = information[there[0]].copy(), np.full(len(free), there[0])
    links[there] = -np.inf
    while len(there) < len(free):
        best = int(links.argmax())
        there.append(best)
        rows.append(row(best, float(links[best]), free[int(parent[best])]))
        nearer = information[best] > links
        parent[nearer] = best
        links = np.maximum(links, information[best]) if tree else links + information[best]
        links[there] = -np.inf
    return [free[at] for at in there], rows


def _within_blocks(order: Sequence[str], blocks: Sequence[Sequence[str]]) -> dict[str, tuple[str, ...]]:
    home = {name: block for block in blocks for name in block}
    return {
        name: tuple(other for other in order[:at] if other in home.get(name, ()))
        for at, name in enumerate(order)
    }


def _trace(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), infer_schema_length=None) if rows else pl.DataFrame()


def _collinear_notes(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Name the columns that follow exactly from others, as the first step of the backward way finds them."""
    exact = [row["column"] for row in rows if row["step"] == 1 and row.get("r2") == 1.0]
    if not exact:
        return []
    shown = ", ".join(exact[:6]) + (f" and {len(exact) - 6} more" if len(exact) > 6 else "")
    return [
        f"Collinear, each of them following exactly from the others: {shown}. Their order is as in the file, or drawn."
    ]


def _notes(blocks: Sequence[Sequence[str]], links: Associations) -> tuple[str, ...]:
    notes = [*links.notes]
    if len(blocks) > 1:
        notes.append(
            f"The columns fall into {len(blocks)} blocks without a visible relation; they can be synthesized apart by "
            "passing the proposed predictors as predictor_matrix."
        )
    notes.append(
        "The order is a heuristic: it says what follows from what in the numbers, not what causes what."
    )
    return tuple(notes)


# How strongly are columns of all kinds related? One pass over the data, then small matrices.
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


@dataclass(frozen=True, eq=False)
class Associations:
    """The correlations of all columns, categories as indicators of their most frequent levels."""

    correlation: Floats
    owner: npt.NDArray[np.str_]
    rows: int
    constant: set[str]
    shortened: tuple[str, ...]

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
        owner = np.array([column.owner for column in columns])
        return cls(correlation, owner, table.height, constant, tuple(shortened))

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
    if column_forms.is_numeric(series.dtype):
        return column_forms.NumberForm.of(series)
    return column_forms.CategoryForm.of(series)


@dataclass(frozen=True)
class _Column:
    """A number, or the indicator of one level, to be brought to mean 0 and standard deviation 1."""

    owner: str
    variable: column_forms.Variable
    level: int | None
    mean: float
    spread: float

    def part(self, rows: slice) -> Floats:
        values = self.variable.values[rows]
        return ((values if self.level is None else values == self.level) - self.mean) / self.spread


def _standardized(name: str, variable: column_forms.Variable) -> tuple[list[_Column], bool]:
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
