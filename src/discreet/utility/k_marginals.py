"""Are groups of people alike in every pair of columns? The k-marginal score, and what a subsample would reach."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Annotated, Any

import numpy as np
import polars as pl

from discreet import engine
from discreet.core.arrays import Integers
from discreet.core.cards import Figure, measure
from discreet.core.constraints import AtLeast, ColumnName, ColumnNames, HoldsValues
from discreet.core.errors import ParameterError, need_known
from discreet.core.findings import OfReleaseStudy, ReleaseFacts
from discreet.core.randomness import Seed, generator
from discreet.core.results import Measure
from discreet.engine.shared_tables import shared_tables
from discreet.microdata import Microdata, require_microdata
from discreet.numerics.codes import CodedColumns
from discreet.utility.table_codes import Coding

_NO_RECORDS = (
    "The tables were counted where the data is, so that no random subsample was held beside them. Read both files into "
    "memory to have sampling_equivalent."
)
_RATES = (0.01, 0.05, *(step / 100 for step in range(10, 95, 10)))


def _by_group(facts: ReleaseFacts) -> dict[str, Any] | None:
    return {"group": facts.group} if facts.group else None


@measure(
    room="utility",
    title="k-marginal score",
    headline="of 1,000 points for small tables by group",
    chapter="joint",
    place=40,
    work="class-wise",
    references=(
        "Task, C., Bhagat, K. and Howarth, G. (2023). SDNist v2: deidentified data report tool. National Institute of "
        "Standards and Technology. doi:10.18434/mds2-2943",
    ),
    figures={
        "value": Figure("k-marginal score, 1,000 at best", better="higher"),
        "mean_difference": Figure("Mean difference of the shares of a table", better="lower"),
        "tables": Figure("Tables compared"),
        "sampling_equivalent": Figure(
            "A random subsample of this share scores alike", unit="share", better="higher"
        ),
    },
    of_release=OfReleaseStudy(8, _by_group),
)
def k_marginal(
    original: Microdata,
    released: Any,
    *,
    group: ColumnName,
    columns: ColumnName | ColumnNames | None = None,
    bins: Annotated[int, AtLeast(2)] = 20,
    top_codes: Annotated[Mapping[str, float], HoldsValues(by_column=True)] | None = None,
    sampling: bool = True,
    seed: Seed = None,
) -> Measure:
    """Is every group of people alike in every pair of columns?

    For a column that says the group (a region) and every pair of others, the shares of all cells are compared:
    500 times 2 minus the mean sum of their differences. 1,000 means that all tables are the same, 0 that they have no
    cell in common.

    Also known as: NIST k-marginal score; k-marginal.

    Parameters
    ----------
    original, released
        The file before and after. The release may also be one of many tables, whose ``table_for`` gives the table of
        three columns.
    group
        The column of the groups.
    columns
        The others; all that both files have unless named.
    bins
        Numbers with more distinct values than this are cut into so many classes of about as many records.
    top_codes
        ``{column: value}``: values of numbers that are codes and a class of their own.
    sampling
        Whether to look for the share of a random subsample that scores alike. A query is counted where it is, and its
        records are not at hand for that.
    seed
        Of the subsamples.

    Returns
    -------
    Measure
        ``value`` is the score. ``figures``: ``mean_difference``, ``tables``, ``sampling_equivalent``. ``detail``:
        ``tables``, the worst first.

    Examples
    --------
    >>> people = Microdata(pl.DataFrame({"area": ["a", "b"] * 4, "sex": ["f", "m"] * 4, "job": ["x", "y"] * 4}))
    >>> k_marginal(people, people, group="area", sampling=False).value
    1000.0
    """
    many = hasattr(released, "table_for")
    if not many:
        require_microdata(released, "released")
    known = set(original.columns) if many else set(released.columns)
    shared = [name for name in original.columns if name in known]
    names = [columns] if isinstance(columns, str) else list(columns or shared)
    need_known((group, *names), shared)
    names = [name for name in names if name != group]
    if len(names) < 2:
        raise ParameterError("Two columns beside the group are needed.")
    by_counting = not many and (engine.is_lazy(original) or engine.is_lazy(released))
    if by_counting:
        rows = counted_differences(original, released, group, names, (bins, top_codes or {}))
    else:
        frame = engine.collect(original)
        codings = {name: Coding(frame[name], bins, (top_codes or {}).get(name)) for name in (group, *names)}
        real = {name: codings[name].codes(frame[name]) for name in codings}
        sizes = {name: codings[name].size for name in codings}
        rows = _differences(real, released, codings, group, names)
    tables = pl.DataFrame(rows, schema=["column", "other", "difference"], orient="row").sort(
        "difference", descending=True
    )
    mean = float(np.mean([row[2] for row in rows]))
    score = 500 * (2 - mean)
    alike, said = None, ""
    if sampling and not by_counting:
        alike = _equivalent(real, group, names, sizes, score, generator(seed, "subsamples"))
        said = f" A random subsample of {alike:.0%} of the records would score about as well."
    return Measure(
        "k_marginal",
        score,
        {"mean_difference": mean, "tables": len(rows), "sampling_equivalent": alike},
        f"Tables of '{group}' by two other columns score {score:.0f} of 1,000.{said}",
        caveats=[_NO_RECORDS] if sampling and by_counting else [],
        detail={"tables": tables},
        parameters={"group": group, "bins": bins},
    )


def _differences(
    real: Mapping[str, Integers],
    released: Any,
    codings: Mapping[str, Coding],
    group: str,
    names: Sequence[str],
) -> list[tuple[str, str, float]]:
    """Compare all tables of files in memory, or of the tables that were released."""
    sizes = {name: codings[name].size for name in codings}
    whole = None
    if not hasattr(released, "table_for"):
        held = engine.collect(released)
        whole = {name: codings[name].codes(held[name]) for name in codings}
    rows = []
    for one, other in combinations(names, 2):
        three = (group, one, other)
        made = whole
        if made is None:
            table = engine.collect(released.table_for(three))
            made = {name: codings[name].codes(table[name]) for name in three}
        rows.append((one, other, _difference(real, made, three, sizes)))
    return rows


def _difference(
    real: Mapping[str, Integers], made: Mapping[str, Integers], three: Sequence[str], sizes: Mapping[str, int]
) -> float:
    if not len(made[three[0]]):
        return 2.0
    shares = [
        CodedColumns([codes[name] for name in three], [sizes[name] for name in three]).counted()
        / len(codes[three[0]])
        for codes in (real, made)
    ]
    return float(np.abs(shares[0] - shares[1]).sum())


def _equivalent(  # noqa: PLR0917
    real: Mapping[str, Integers],
    group: str,
    names: Sequence[str],
    sizes: Mapping[str, int],
    score: float,
    rng: np.random.Generator,
) -> float:
    """Find the rate of subsampling whose score is nearest."""
    rows = len(real[group])
    pairs = list(combinations(names, 2))[:40]
    scores = {}
    for rate in _RATES:
        chosen = rng.permutation(rows)[: max(1, round(rate * rows))]
        part = {name: codes[chosen] for name, codes in real.items()}
        scores[rate] = 500 * (
            2 - float(np.mean([_difference(real, part, (group, *pair), sizes) for pair in pairs]))
        )
    return min(scores, key=lambda rate: abs(scores[rate] - score))


# The tables of the k-marginal score from queries: classes found by counting, and only cells brought home.


def counted_differences(
    original: Microdata,
    released: Microdata,
    group: str,
    names: Sequence[str],
    classes: tuple[int, Mapping[str, float]],
) -> list[tuple[str, str, float]]:
    """Add up the differences of shares over the cells of every table of the group and two other columns.

    Parameters
    ----------
    original, released
        The files, at least one of them a query.
    group, names
        The column of the groups, and the others.
    classes
        How many classes numbers are cut into, and the codes that are a class of their own, by column.
    """
    bins, tops = classes
    columns = [group, *names]
    different = engine.distinct_counts(original, columns)
    breaks = {
        name: _breaks(original, name, bins, tops.get(name))
        for name in columns
        if different[name] > bins and all(data.schema[name].is_numeric() for data in (original, released))
    }
    special = {name: [top] for name, top in tops.items() if name in breaks}
    coded = [
        name
        for name in columns
        if name not in breaks and any(data.schema[name].is_numeric() for data in (original, released))
    ]
    cutting = engine.Cutting(groups=bins, breaks=breaks, special=special)
    shared = shared_tables(original, released, columns, cutting, categorical=coded)
    sizes = [file.size[0] for file in (shared.original, shared.released)]
    tables = [(group, one, other) for one, other in combinations(names, 2)]
    found = []
    for (_, one, other), _, ours, theirs in shared.counted(tables):
        apart = np.abs(ours / sizes[0] - theirs / sizes[1]).sum() if sizes[1] else 2.0
        found.append((one, other, float(apart)))
    return found


def _breaks(data: Microdata, name: str, bins: int, top: float | None) -> list[float]:
    """Cut the numbers of the original into classes of about as many records."""
    without = [] if top is None else [top]
    known = engine.known_numbers([data], name, without=without)
    # The last place of every class, the places being shared out evenly.
    last = [-(-(own + 1) * (known + 1) // bins) - 1 for own in range(bins)]
    ranks = sorted({min(rank, known) for rank in last if rank >= 1})
    ends = np.unique(engine.values_at([data], name, ranks, without=without)) if ranks else np.zeros(0)
    # One class takes all numbers, also larger ones of the release.
    return [float(end) for end in ends[:-1]] or [sys.float_info.max]
