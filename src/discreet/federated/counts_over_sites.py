"""How safe is a joint release of several holders? Classes are counted over sites by secure sums.

Every site counts its own records in the cells of a table of *declared* levels; the sums over sites are the sizes of the
joint classes. What does not fall into a declared cell is counted as well, and said. Where the counts themselves shall
go out, every site adds noise to its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from discreet.core.arrays import Array
from discreet.core.errors import ParameterError, need_known
from discreet.core.parameters import checked
from discreet.core.randomness import Seed
from discreet.core.results import Detail, Measure
from discreet.core.wording import percent, shown
from discreet.dp.calibration import checked_epsilon
from discreet.dp.mechanisms import laplace
from discreet.federated.kinds import levels as levels_by_column
from discreet.federated.kinds import number
from discreet.federated.layouts import Layout, coordinated, laid_out
from discreet.federated.leakage import Leakage, account_of_sums, told_by_subsets
from discreet.federated.messages import MAIN, ProtocolError
from discreet.federated.parties import Holder, coded_by
from discreet.federated.quantities import Ring, quantity
from discreet.federated.secure_sums import sum_over

_MOST_CELLS = 2_000_000


@quantity("counts", {"levels": levels_by_column})
def _counts(holder: Holder, asked: Mapping[str, Any]) -> Array:
    """The counts of a site, where each cell has enough records of its own."""
    if holder.limits is not None:
        # What is not declared is a level of its own here: tables of other levels would tell it by subtraction.
        holder.limits.cells(np.bincount(_cells_of_records(holder, asked)[0]))
    return counted(holder, asked)


def counted(holder: Holder, asked: Mapping[str, Any]) -> Array:
    """How many records fall into each cell of declared levels; the last cell takes all others."""
    _, at, outside = _cells_of_records(holder, asked)
    cells = math.prod(len(levels) for levels in asked["levels"].values())
    found: Array = np.bincount(np.where(outside, cells, at), minlength=cells + 1).astype(np.float64)
    return found


def _cells_of_records(holder: Holder, asked: Mapping[str, Any]) -> tuple[Array, Array, Array]:
    """Return for each record its cell with all other values as a level, its declared cell, and whether it has none."""
    columns = [str(name) for name in asked["columns"]]
    frame = holder.frame(str(asked.get("block", MAIN)))
    if set(asked["levels"]) != set(columns):
        raise ProtocolError("Counts were asked for with levels of other columns than those that are named.")
    if math.prod(len(levels) for levels in asked["levels"].values()) > _MOST_CELLS:
        raise ProtocolError(f"The declared levels make more than {_MOST_CELLS:,} cells. Ask for fewer.")
    fine = np.zeros(frame.height, dtype=np.int64)
    at = np.zeros(frame.height, dtype=np.int64)
    outside = np.zeros(frame.height, dtype=bool)
    for name in columns:
        need_known([name], frame.columns, before=f"At '{holder.name}': ")
        levels = asked["levels"][name]
        place = {str(level): number for number, level in enumerate(levels)}
        codes = coded_by(frame[name], lambda one: -1 if one is None else place.get(_text(one), -1))  # noqa: B023
        outside |= codes < 0
        at = at * len(levels) + np.maximum(codes, 0)
        # Numbered anew after each column, so that many columns do not run over.
        fine = np.unique(fine * (len(levels) + 1) + codes + 1, return_inverse=True)[1].reshape(-1)
    return fine, at, outside


def declared_levels(levels: Mapping[str, Any]) -> tuple[dict[str, list[str]], int]:
    """Check the levels that were agreed on, and tell how many cells they make.

    Examples
    --------
    >>> declared_levels({"sex": ["f", "m"], "region": [1, 2, 3]})
    ({'sex': ['f', 'm'], 'region': ['1', '2', '3']}, 6)
    """
    for name, own in levels.items():
        if isinstance(own, str | bytes | Mapping) or not isinstance(own, Iterable):
            raise ParameterError(f"levels of '{name}' must be a list of the values that it may have.")
    declared = {str(name): [_text(level) for level in own] for name, own in levels.items()}
    for name, own in declared.items():
        if not own or len(set(own)) != len(own):
            raise ParameterError(f"levels of '{name}' must be named, each once.")
    cells = math.prod(len(own) for own in declared.values())
    if not declared or cells > _MOST_CELLS:
        raise ParameterError(
            f"The declared levels make {cells:,} cells; name some, and {_MOST_CELLS:,} at most."
        )
    return declared, cells


def cells_of(declared: Mapping[str, list[str]], which: Array) -> dict[str, list[str]]:
    """Tell the levels of cells, by column."""
    grid = np.indices([len(own) for own in declared.values()]).reshape(len(declared), -1)
    return {
        name: np.array(own, dtype=object)[grid[at][which]].tolist()
        for at, (name, own) in enumerate(declared.items())
    }


@dataclass(frozen=True, repr=False)
class JointAssessment:
    """What `federated.assess` found: the joint classes, and what each party learned.

    Attributes
    ----------
    classes
        One row for each class that occurs: the levels and ``count``.
    measures
        ``k_anonymity`` and ``uniqueness`` of the joint file.
    undeclared
        Records that fall outside the declared levels; they are in no class.
    """

    classes: pl.DataFrame
    measures: Mapping[str, Measure]
    undeclared: int
    leakage: Leakage = field(repr=False)

    @property
    def k(self) -> int | None:
        """The size of the smallest joint class."""
        value = self.measures["k_anonymity"].value
        return None if value is None else int(value)

    @property
    def records(self) -> int:
        """How many records there are over all sites."""
        return int(self.classes["count"].sum()) + self.undeclared

    def table(self, *by: str) -> pl.DataFrame:
        """Return the joint cross-table of some of the keys."""
        need_known(by, self.classes.columns[:-1])
        return self.classes.group_by(list(by), maintain_order=True).agg(pl.col("count").sum())

    def __str__(self) -> str:
        return "\n\n".join(str(measure) for measure in self.measures.values())

    __repr__ = __str__


@checked
def assess(
    sites: Any,
    levels: Mapping[str, Any],
    *,
    k: int = 3,
    rounds: int = 1,
    transport: Any = None,
    seed: Seed = None,
) -> JointAssessment:
    """How small are the groups of the joint file, when nobody shows their records?

    Parameters
    ----------
    sites
        One table for each site, or `horizontal`.
    levels
        ``{key: levels}``: the columns by which people could be found, and the values that they may have. They are
        agreed beforehand and not read off the data.
    k
        Groups of fewer people are counted as small.
    rounds
        As in `secure_sum`.
    transport
        How sites are reached; in this process unless given.
    seed
        For the same masks again; only for tests.

    Examples
    --------
    >>> one, two = pl.DataFrame({"sex": ["f", "m", "m"]}), pl.DataFrame({"sex": ["f", "m", "f"]})
    >>> found = assess([one, two], {"sex": ["f", "m"]})
    >>> found.k, found.records
    (3, 6)
    """
    declared, cells = declared_levels(levels)
    layout = rows_of(sites, list(declared), seed)
    carrier, central = coordinated(layout, transport, seed)
    asked = {"kind": "counts", "columns": list(declared), "levels": declared}
    found = sum_over(
        carrier, central, layout.nodes, asked, size=cells + 1, ring=Ring(64, 0), rounds=rounds, seed=seed
    )
    counts = np.rint(found).astype(np.int64)
    there = np.flatnonzero(counts[:-1])
    classes = pl.DataFrame({**cells_of(declared, there), "count": counts[:-1][there]})
    account = account_of_sums(
        f"the joint count of each of {cells:,} cells, small ones included, and no count of a single site",
        "learn its counts",
        "Joint counts of small classes tell about few people: keep them as the data are kept.",
        told_by_subsets(layout.nodes), carrier.transcript, seed,
    )  # fmt: skip
    return JointAssessment(
        classes, _measures(classes, int(counts[-1]), k, list(declared)), int(counts[-1]), account
    )


def _measures(classes: pl.DataFrame, undeclared: int, k: int, keys: Sequence[str]) -> dict[str, Measure]:
    sizes = classes["count"].to_numpy()
    total = int(sizes.sum())
    caveats = ["It counts records; where a person has several, company is smaller than it looks."]
    if undeclared:
        caveats.append(
            f"{shown(undeclared)} records have a missing value or one outside the declared levels and are in no class."
        )
    small = int(sizes[sizes < k].sum())
    smallest = int(sizes.min()) if len(sizes) else None
    unique = int((sizes == 1).sum())
    parameters = {"keys": list(keys), "k": k}
    detail = Detail(classes=lambda: classes)
    return {
        "k_anonymity": Measure(
            "k_anonymity", smallest,
            {"share_below_threshold": small / total if total else None, "classes": len(sizes), "records": total},
            f"Over all sites the rarest combination of {', '.join(keys)} is shared by "
            f"{'nobody' if smallest is None else shown(smallest)} of {shown(total)} records; "
            f"{percent(small / total) if total else 'none'} are in groups below {k}.",
            caveats, parameters, detail,
        ),
        "uniqueness": Measure(
            "uniqueness", unique / total if total else None, {"unique": unique, "records": total},
            f"{shown(unique)} of {shown(total)} records are alone with their combination over all sites.",
            caveats, parameters, detail,
        ),
    }  # fmt: skip


def rows_of(sites: Any, keys: list[str], seed: Seed) -> Layout:
    """Lay out tables of different people by the columns that are asked about; a layout stays as it is."""
    if isinstance(sites, Layout):
        return sites
    layout = laid_out(sites, seed=seed) if isinstance(sites, Mapping) else None
    if layout is not None and layout.kind == "horizontal":
        return layout
    from discreet.federated.layouts import Group, _holder, _named

    frames = _named(sites, numbered=False)
    holders = {name: _holder(name, frame, None, seed) for name, frame in frames.items()}
    return Layout("horizontal", tuple(Group((name,), (tuple(keys),)) for name in frames), holders)


def _text(level: Any) -> str:
    if isinstance(level, float) and level.is_integer():
        return str(int(level))
    return str(level)


# How many people of all sites are in each group, under a guarantee that every site keeps for its own people?
#
# Every site adds noise to its own counts before they enter the secure sum, and enters the price into its own ledger
# first. What comes out is protected even against all other parties together; a site whose budget is spent refuses.


@quantity("noisy-counts", {"levels": levels_by_column, "epsilon": number}, protected=True)
def _noisy_counts(holder: Holder, asked: Mapping[str, Any]) -> Array:
    """The counts of a site with noise of its own; a record is in one cell, so that it moves the answer by one."""
    exact = counted(holder, asked)
    if exact.shape != (int(asked["size"]),):  # before it is paid for
        raise ParameterError(
            f"'{holder.name}' counts {len(exact):,} cells, and another number was asked for."
        )
    purpose = f"joint counts by {', '.join(str(name) for name in asked['columns'])}"
    noisy = laplace(
        exact, sensitivity=1, epsilon=float(asked["epsilon"]), purpose=purpose, ledger=holder.ledger
    )
    return np.asarray(noisy.value, dtype=np.float64)


@dataclass(frozen=True, repr=False)
class NoisyCounts:
    """Joint counts with noise.

    Attributes
    ----------
    table
        One row for each cell of declared levels: the levels and ``count``, which may be below zero.
    undeclared
        Records outside the declared levels, with noise as well.
    epsilon
        What the release cost at every site.
    standard_deviation
        Of the noise of one count, over all sites.
    """

    table: pl.DataFrame
    undeclared: float
    epsilon: float
    standard_deviation: float
    guarantee: str
    leakage: Leakage = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return it, ready for JSON."""
        return {**vars(self), "table": self.table.to_dicts(), "leakage": self.leakage.to_dict()}

    def __str__(self) -> str:
        lines = [
            f"{', '.join(map(str, row[:-1]))}: {shown(round(row[-1]))}" for row in self.table.iter_rows()
        ]
        lines.append(
            f"Standard deviation of the noise of a count: {self.standard_deviation:.3g}. {self.guarantee}"
        )
        return "\n".join(lines)

    __repr__ = __str__


@checked
def noisy_counts_over_sites(
    sites: Any, levels: Mapping[str, Any], *, epsilon: float, transport: Any = None, seed: Seed = None
) -> NoisyCounts:
    """How many people of all sites are in each group, give or take noise with a guarantee?

    Also known as: distributed noise; secure aggregation with noise.

    Parameters
    ----------
    sites
        One table for each site, or `horizontal`.
    levels
        ``{key: levels}``, agreed beforehand and not read off the data.
    epsilon
        What the counts cost at every site. People are at one site each, so that it is also the price of the whole.
    transport
        How sites are reached; in this process unless given.
    seed
        For the same masks again; noise never takes a seed.

    Examples
    --------
    >>> one, two = pl.DataFrame({"sex": ["f", "m"] * 500}), pl.DataFrame({"sex": ["f"] * 800})
    >>> found = noisy_counts_over_sites([one, two], {"sex": ["f", "m"]}, epsilon=1.0)
    >>> found.table["sex"].to_list(), round(found.standard_deviation, 2)
    (['f', 'm'], 2.04)
    """
    checked_epsilon(epsilon)
    declared, cells = declared_levels(levels)
    layout = rows_of(sites, list(declared), seed)
    carrier, central = coordinated(layout, transport, seed)
    asked = {"kind": "noisy-counts", "columns": list(declared), "levels": declared, "epsilon": float(epsilon)}
    found = np.rint(
        sum_over(carrier, central, layout.nodes, asked, size=cells + 1, ring=Ring(64, 0), seed=seed)
    )
    every = np.arange(cells)
    table = pl.DataFrame({**cells_of(declared, every), "count": found[:-1].astype(np.int64)})
    # Laplace noise of scale 1 / epsilon, rounded to whole counts at each site: P(|N| >= k) = exp(-(k - 1/2) epsilon).
    ratio = math.exp(-epsilon)
    deviation = math.sqrt(len(layout.nodes) * math.exp(-epsilon / 2) * (1 + ratio)) / (1 - ratio)
    promise = (
        f"Every site added its own noise: {shown(epsilon)}-differential privacy for adding or removing one record, "
        "even against all other parties together. Exact answers of other protocols about the same people are not "
        "covered."
    )
    account = account_of_sums(
        f"the joint counts of {cells:,} cells with noise of {deviation:.3g} standard deviations, and no count of a "
        "single site",
        "learn its counts with its own noise, and nothing without",
        promise, (), carrier.transcript, seed,
    )  # fmt: skip
    return NoisyCounts(table, float(found[-1]), float(epsilon), deviation, promise, account)
