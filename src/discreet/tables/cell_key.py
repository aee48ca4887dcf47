"""CellKey: noise that is the same for the same people, whatever table they are counted in."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.special import logsumexp, softmax

from discreet import engine
from discreet.core.arrays import Floats, Integers
from discreet.core.constraints import ColumnName, Entries, Public, Share
from discreet.core.errors import ColumnError, ParameterError
from discreet.core.parameters import checked
from discreet.core.secret_keys import (
    DEFAULT_VARIABLE,
    STICKS_TO_ONE_TABLE,
    ReleaseCount,
    digest_of,
    most_tables,
    secret_key,
)
from discreet.dp.entropy import Stream
from discreet.tables.record_keys import (
    KEYS,
    NumbersOfTexts,
    check_identifier,
    check_known,
    summed_by_inner_cell,
)
from discreet.tables.table_counting import check_columns
from discreet.tables.table_protection import TableChange, TableProtection, added_up

if TYPE_CHECKING:
    from discreet.tables.table import Table


_GRID = 401


@dataclass(frozen=True)
class CellKey(TableProtection):
    """Add noise to every cell that depends on who is in it, so that the same people always get the same noise.

    It protects against differencing of two tables: small counts are uncertain, and asking for the same table again
    averages nothing away. It does not protect against many tables: see *When not to use it*.

    Every record has a secret key, uniform on [0, 1). The key of a cell is the fractional part of the sum of the keys
    of its records; the noise is looked up by true count and key in a perturbation table. Two tables that count the
    same people show the same number.

    Also known as: cell-key method; cell key method; CKM; ABS method; TBE.

    Parameters
    ----------
    id
        The column that identifies a record. Its key is drawn from it with the secret key.
    key_column
        A column of ready record keys in [0, 1), instead of ``id``. Of a table made from cells: the measure that holds
        the sums of the record keys.
    D, V, js
        Of counts: the largest noise, its variance, and the largest result that must not occur; see
        `perturbation_table`.
    reach, sd, gap
        Of sums: the noise of a cell is a random share of its largest contribution, at most ``reach`` up or down, with
        standard deviation ``sd`` and never smaller than ``gap``.
    multipliers
        Of sums: how much the largest, second largest… contribution takes part, each with noise of its own.
    key_variable, key_file
        Environment variable, or file, that holds the secret key. It never stands in a plan.
    count_file
        A file that counts the tables of these people (one for each data source, made where it is not there): one too
        many is refused.
    most_tables
        In how many different tables a column may be; unless given as many as leave the mean of their noise a standard
        error of half a person, 4 ``V``.

    Notes
    -----
    Every cell is treated on its own, so that the table is not additive; the deviations are small and have mean 0.
    Zeros stay zeros. A cell and the same cell with one person less get different keys: with many overlapping tables
    and an exact figure from elsewhere small cells can still be narrowed down.

    What it costs
    -------------
    Counts move by at most D, with variance V; sums by at most ``reach`` times their largest contributions.

    When not to use it
    ------------------
    Do not use it beside exact margins of the same people, nor change the secret key between tables about them. Do not
    publish many tables that share a column: the cells of ``place*sex``, ``place*job`` and so on add up to the same
    places with noise of their own each time, and the mean of forty such sums is the true count. ``count_file`` counts
    them.

    References
    ----------
    Fraser and Wooton (2005); Giessing (2016).

    Examples
    --------
    >>> import os
    >>> os.environ["DISCREET_KEY"] = "a secret of at least sixteen bytes"
    >>> from discreet.tables import Table
    >>> people = pl.DataFrame({"id": range(40), "place": ["a"] * 25 + ["b"] * 15, "sex": ["f", "m"] * 20})
    >>> protect = CellKey(id="id")
    >>> by_place = protect.apply(Table.from_microdata(people, "place")).table
    >>> by_both = protect.apply(Table.from_microdata(people, "place*sex")).table
    >>> bool(by_place.values[by_place.find(place="a")] == by_both.values[by_both.find(place="a")])
    True
    """

    id: ColumnName | None = None
    key_column: ColumnName | None = None
    D: int = 5
    V: float = 3.0
    js: int = 2
    reach: float = 0.3
    sd: float = 0.15
    gap: float = 0.05
    multipliers: Annotated[Sequence[Annotated[float, Share(above=True)]], Entries(1)] = (1.0,)
    key_variable: Annotated[str, Public()] = DEFAULT_VARIABLE
    key_file: Annotated[str, Public()] | None = None
    count_file: Annotated[str, Public()] | None = None
    most_tables: int | None = None

    def __post_init__(self) -> None:
        if self.most_tables is not None and self.count_file is None:
            raise ParameterError("most_tables is a limit of count_file, which is not given.")
        if (self.id is None) == (self.key_column is None):
            raise ParameterError(
                "The cell-key method needs to know the records apart: name the column that identifies them with id=, "
                "or "
                "one of ready record keys with key_column=."
            )
        perturbation_table(self.D, self.V, self.js)
        share_table(self.reach, self.sd, self.gap)

    def protect(self, table: Table, stream: Stream) -> TableChange:
        """Look up the noise of every cell."""
        inner_keys = self._inner_keys(table)
        keys = added_up(table, inner_keys) % KEYS
        design = perturbation_table(self.D, self.V, self.js)
        cells = self._counts(table.cells, keys, design)
        inner = self._counts(table.inner, inner_keys, design)
        skipped = [name for name in table.measures if name == self.key_column]
        for name in table.measures:
            if name not in skipped:
                cells[name] = self._sums(table, name, keys)
                # Noise of sums is scaled by contributions, which are known of published cells only.
                inner[name] = np.full(table.inner.height, np.nan)
        gap = np.abs(cells["count"] - table.cells["count"].to_numpy())
        notes = [
            f"Every count moved by at most {self.D}, with mean 0 and variance {self.V:g}; none is 1 to {self.js}."
            if self.js
            else f"Every count moved by at most {self.D}, with mean 0 and variance {self.V:g}.",
            "Every cell was treated on its own: totals need not equal the sum of their parts.",
            self._counted(table, inner_keys),
        ]
        return TableChange(
            cells=cells,
            inner=inner,
            notes=tuple(notes),
            figures={"moved": int((gap > 0).sum()), "largest_move": int(gap.max(initial=0))},
            internal={"record_keys": "from the secret key" if self.id else "from the data"},
            why_none="noise of bounded size leaves some results impossible for some counts.",
            detail={"perturbation": lambda: design.frame},
        )

    def _counted(self, table: Table, inner_keys: Integers) -> str:
        """Enter the table where tables are counted, and say what further tables would tell."""
        if self.count_file is None:
            return STICKS_TO_ONE_TABLE
        who = table.inner.select(table.dimensions).with_columns(pl.Series("\0who", inner_keys))
        content = digest_of(table.formula.text.encode(), who.sort(table.dimensions).write_csv().encode())
        limit = most_tables(self.V) if self.most_tables is None else self.most_tables
        return ReleaseCount(self.count_file, limit).said([(content, table.dimensions)])

    def _counts(
        self, frame: pl.DataFrame, keys: Integers, design: PerturbationTable
    ) -> dict[str, npt.NDArray[np.generic]]:
        counts = frame["count"].to_numpy().astype(np.int64)
        if (counts < 0).any():
            raise ParameterError("Some counts are negative, and the cell-key method knows no noise for them.")
        made = counts + design.look_up(counts, keys / KEYS)
        found: dict[str, npt.NDArray[np.generic]] = {"count": made}
        if "weighted" in frame.columns:
            # A weighted total follows its count, by the mean weight of the cell.
            weighted = frame["weighted"].cast(pl.Float64).to_numpy()
            found["weighted"] = weighted * np.where(counts > 0, made / np.maximum(counts, 1), 1.0)
        return found

    def _sums(self, table: Table, measure: str, keys: Integers) -> Floats:
        """Add a random share of the largest contributions, whose sizes bound what any contributor could learn."""
        wanted = len(self.multipliers)
        found = table.contributions(wanted, measure, weighting="multiply", negative="absolute")
        values, chances = share_table(self.reach, self.sd, self.gap)
        ends = np.cumsum(chances)
        noise = np.zeros(table.cells.height)
        # The last entry of each cell is what is left after its largest contributions.
        there = found.size - 1
        for rank, multiplier in enumerate(self.multipliers):
            has = there > rank
            size = np.zeros(len(noise))
            size[has] = found.values[found.starts[:-1][has] + rank]
            share = values[
                np.minimum(np.searchsorted(ends, _mixed(keys, rank), side="right"), len(values) - 1)
            ]
            noise += multiplier * size * share
        return np.asarray(table.cells[measure].cast(pl.Float64).to_numpy() + noise)

    def _inner_keys(self, table: Table) -> Integers:
        """The sums of the record keys of every inner cell."""
        if table.contributing is None:
            return self._given_sums(table)
        data = table.contributing.data
        column = self.id or self.key_column
        assert column is not None
        check_columns(data, [column], "id" if self.id else "key_column", numeric=self.id is None)
        if self.id:
            check_identifier(data, self.id)
            key = secret_key(self.name, variable=self.key_variable, file=self.key_file)
            drawn: Callable[[pl.DataFrame], Integers] = NumbersOfTexts(key, b"cell-key:", 1, self.id)
        else:
            check_known(data, column)
            least, most = engine.extremes(data, column)
            if least < 0 or most >= 1:
                raise ColumnError(
                    f"Column '{column}' must hold record keys: numbers from 0 to below 1, uniformly drawn."
                )
            drawn = _GivenKeys(column)
        return np.asarray(summed_by_inner_cell(table, data, [column], drawn)[:, 0])

    def _given_sums(self, table: Table) -> Integers:
        if self.key_column is None or self.key_column not in table.measures:
            raise ParameterError(
                "The cell-key method needs the keys of the records, and this table was made from cells. Sum them up "
                "when "
                "the cells are made, and name the column under measure= and key_column=."
            )
        sums = table.inner[self.key_column].cast(pl.Float64).to_numpy()
        return np.asarray(np.rint((sums % 1.0) * KEYS).astype(np.int64) % KEYS)


@dataclass(frozen=True)
class _GivenKeys:
    """Record keys that stand in a column, as whole numbers."""

    column: str

    def __call__(self, rows: pl.DataFrame) -> Integers:
        given = rows[self.column].cast(pl.Float64).to_numpy()
        return np.asarray((given * KEYS).astype(np.int64)).reshape(-1, 1)


def _mixed(keys: Integers, rank: int) -> Floats:
    """A further number in [0, 1) for every cell key and rank, so that contributions have noise of their own.

    The keys are secret and random already; this only has to scatter them (the finalizer of SplitMix64).
    """
    z = keys.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(rank + 1)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return (z >> np.uint64(11)).astype(np.float64) * 2.0**-53


@lru_cache(maxsize=64)
def share_table(reach: float, sd: float, gap: float) -> tuple[Floats, Floats]:
    """The possible shares of a contribution, a fine grid from -reach to reach without the gap, and their chances.

    Of all laws with mean 0 and this standard deviation it is the one of largest entropy.

    Examples
    --------
    >>> values, chances = share_table(0.3, 0.15, 0.05)
    >>> bool(np.abs(values).min() >= 0.05), round(float(chances @ values**2) ** 0.5, 6)
    (True, 0.15)
    """
    if not (reach > 0 and math.isfinite(reach)):
        raise ParameterError("reach must be more than 0.")
    if not 0 <= gap < sd < reach:
        raise ParameterError("sd must lie between gap and reach, and gap must be 0 or more.")
    values = np.linspace(-reach, reach, _GRID)
    values = values[np.abs(values) >= gap]
    return values, largest_entropy(values, sd**2)


# Among all laws of the noise with mean 0 and a given variance that never lead to a negative or too small a result, the
# one that assumes least is the one of largest entropy. Its chances are exp(a + b v + c v²), and b and c follow from the
# mean and the variance.


_ROUNDS = 200


@dataclass(frozen=True)
class PerturbationTable:
    """What becomes of each true count, by the key of its cell. Made by `perturbation_table`.

    Attributes
    ----------
    D, V, js
        The largest noise, its variance, and the largest result that must not occur.
    noise
        The possible noise, from -D to D.
    chances
        One row a true count 0, 1, …, one column a noise. Larger counts share the last row.
    """

    D: int
    V: float
    js: int
    noise: Integers = field(repr=False, compare=False)
    chances: Floats = field(repr=False, compare=False)

    @property
    def frame(self) -> pl.DataFrame:
        """In rows: ``count``, ``noise``, ``result``, ``chance``, and the keys ``from`` … ``to`` that lead there."""
        ends = np.cumsum(self.chances, axis=1)
        rows, columns = np.nonzero(self.chances)
        return pl.DataFrame(
            {
                "count": rows,
                "noise": self.noise[columns],
                "result": rows + self.noise[columns],
                "chance": self.chances[rows, columns],
                "from": (ends - self.chances)[rows, columns],
                "to": ends[rows, columns],
            }
        )

    def row(self, count: int) -> dict[int, float]:
        """The chance of every result of one true count.

        Examples
        --------
        >>> row = perturbation_table(5, 3, 2).row(1)
        >>> {result: round(chance, 7) for result, chance in row.items()}
        {0: 0.7344695, 3: 0.1367202, 4: 0.0727963, 5: 0.0374296, 6: 0.0185844}
        """
        chances = self.chances[min(count, len(self.chances) - 1)]
        kept = np.flatnonzero(chances)
        return {int(count + self.noise[at]): float(chances[at]) for at in kept}

    def look_up(self, counts: npt.ArrayLike, keys: npt.ArrayLike) -> Integers:
        """The noise of every cell, from its true count and its key in [0, 1).

        Examples
        --------
        >>> perturbation_table(5, 3, 2).look_up([0, 1, 1], [0.99, 0.1, 0.8]).tolist()
        [0, -1, 2]
        """
        true = np.asarray(counts, dtype=np.int64)
        drawn = np.asarray(keys, dtype=np.float64)
        rows = np.minimum(true, len(self.chances) - 1)
        ends = np.cumsum(self.chances, axis=1)
        # The last possible noise of each row takes whatever rounding leaves of the keys.
        last = len(self.noise) - 1 - np.argmax(self.chances[:, ::-1] > 0, axis=1)
        at = (drawn[:, None] >= ends[rows]).sum(axis=1) if len(true) else np.empty(0, dtype=np.int64)
        return np.asarray(self.noise[np.minimum(at, last[rows])], dtype=np.int64)


@checked
def perturbation_table(D: int = 5, V: float = 3.0, js: int = 2) -> PerturbationTable:
    """Design the noise of the cell-key method.

    Also known as: ptable.

    Parameters
    ----------
    D
        The largest noise, up or down.
    V
        The variance of the noise, for every count but 0.
    js
        No result may be 1, …, js; 0 allows all.

    Returns
    -------
    PerturbationTable
        Zeros stay zeros; every other count gets noise of mean 0 and variance V, of the largest entropy.

    Examples
    --------
    >>> table = perturbation_table(D=5, V=3, js=2)
    >>> table.row(0)
    {0: 1.0}
    """
    return _designed(D, float(V), js)


@lru_cache(maxsize=64)
def _designed(D: int, V: float, js: int) -> PerturbationTable:
    if isinstance(D, bool) or int(D) != D or D < 1:
        raise ParameterError("D must be a whole number of at least 1.")
    if js != int(js) or js < 0:
        raise ParameterError("js must be a whole number of 0 or more.")
    if not V > 0:
        raise ParameterError("V must be more than 0.")
    noise = np.arange(-D, D + 1)
    chances = np.zeros((D + js + 2, len(noise)))
    chances[0, D] = 1.0
    for count in range(1, len(chances)):
        results = count + noise
        allowed = (results == 0) | (results > js)
        chances[count, allowed] = _largest_entropy(noise[allowed].astype(np.float64), V, count, js)
    chances.setflags(write=False)
    return PerturbationTable(D, V, js, noise, chances)


def _largest_entropy(support: Floats, variance: float, count: int, js: int) -> Floats:
    """The law of largest entropy with mean 0 on these values."""
    _check_feasible(support, variance, f"a true count of {count}", "D, V or js" if js else "D or V")
    return largest_entropy(support, variance)


def largest_entropy(support: Floats, variance: float) -> Floats:
    """The law of largest entropy with mean 0 and this variance on these values, by Newton's method.

    Examples
    --------
    >>> largest_entropy(np.array([-1.0, 0.0, 1.0]), 0.5).round(6).tolist()
    [0.25, 0.5, 0.25]
    """
    scale = float(np.abs(support).max())
    v = support / scale
    features = np.stack([v, v**2 - variance / scale**2])
    slopes = np.zeros(2)
    chances = np.full(len(v), 1 / len(v))
    for _ in range(_ROUNDS):
        chances = softmax(slopes @ features)
        off = features @ chances
        if np.abs(off).max() < 1e-14:
            break
        spread = (features * chances) @ features.T - np.outer(off, off)
        step = np.linalg.solve(spread + 1e-15 * np.eye(2), off).astype(np.float64)
        slopes = _walked(slopes, step, features)
    return chances


def _walked(slopes: Floats, step: Floats, features: Floats) -> Floats:
    """Go along Newton's step as far as it lowers the convex function whose minimum is sought."""
    now = logsumexp(slopes @ features)
    size = 1.0
    while size > 1e-12 and logsumexp((slopes - size * step) @ features) > now:
        size /= 2
    return np.asarray(slopes - size * step)


def _check_feasible(support: Floats, variance: float, what: str, way_out: str) -> None:
    """Mean 0 needs values on both sides; the variance lies between what the nearest and the farthest pairs give."""
    below, above = support[support < 0], support[support > 0]
    least, most = np.inf, 0.0
    if len(below) and len(above):
        least, most = float(-below.max() * above.min()), float(-below.min() * above.max())
    if (support == 0).any():
        least = 0.0
    if not least < variance < most:
        raise ParameterError(
            f"Noise of mean 0 for {what} can have a variance between {least:g} and {most:g}, not {variance:g}. Choose "
            f"another {way_out}."
        )
