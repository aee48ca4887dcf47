"""Which released records sit with real people in a small neighborhood of their own?

Shared Neighbor Identifiability: clusters of original and released records that have most of their nearest
neighbors in common; a released record in a tiny mixed cluster points at the few people beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
import scipy

from discreet import engine
from discreet.core.arrays import Flags, Integers
from discreet.core.cards import Figure, measure
from discreet.core.constraints import AtLeast, ColumnNames
from discreet.core.errors import ParameterError
from discreet.core.findings import OfBenchmark
from discreet.core.results import Measure
from discreet.core.wording import percent
from discreet.microdata import Microdata
from discreet.numerics.distance.search import nearest
from discreet.numerics.distance.space import MixedSpace
from discreet.pairs.side_by_side import check_categorical, column_caveats, compared_columns, tables_of
from discreet.risk.equivalence_classes import records_only

Noise = Literal["ignore", "risky"]
TRIED = (4, 5, 6, 7, 8)


@measure(
    room="risk",
    title="Shared neighbors",
    headline="of the released records sit alone with real people (SNI)",
    chapter="found",
    work="whole-file",
    place=22,
    references=(
        "Ertöz, L., Steinbach, M. and Kumar, V. (2003). Finding clusters of different sizes, shapes, and densities in "
        "noisy, high dimensional data. SIAM International Conference on Data Mining, 47–58.",
        "Miletic, M. and Sariyar, M. (2024). Assessing the potentials of LLMs and GANs as state-of-the-art "
        "tabular synthetic data generation methods. Privacy in Statistical Databases, Lecture Notes in "
        "Computer Science 14915. doi:10.1007/978-3-031-69651-0",
    ),
    figures={
        "value": Figure(unit="share", better="lower"),
        "sni": Figure("Shared neighbor index (SNI)", unit="share", better="lower", summary=True),
        "risky_records": Figure("Released records in small mixed clusters"),
        "risky_clusters": Figure("Small mixed clusters"),
        "clusters": Figure("Clusters"),
        "noise_share": Figure("Share outside every cluster", unit="share"),
        "sni_lowest": Figure("SNI, lowest over the lengths tried", unit="share", better="lower"),
        "sni_highest": Figure("SNI, highest over the lengths tried", unit="share", better="lower"),
    },
    benchmark=OfBenchmark(1, ("sni", "sni_lowest", "sni_highest"), "lower"),
)
def shared_neighbors(
    original: Microdata,
    released: Microdata,
    *,
    columns: ColumnNames | None = None,
    categorical: ColumnNames = (),
    k: int = 5,
    similarity: Annotated[int, AtLeast(1)] = 3,
    min_points: Annotated[int, AtLeast(1)] = 2,
    small: Annotated[int, AtLeast(1)] = 5,
    require_mixed: bool = True,
    noise: Noise = "ignore",
    scale: Literal["range", "none"] = "range",
    progress: bool = False,
) -> Measure:
    """Which released records sit with real people in a small neighborhood of their own?

    The records of both files are clustered by shared nearest neighbors: two records belong together when, of
    their ``k`` nearest, at least ``similarity`` are the same (one more if each is among the other's). SNI is the
    share of released records in clusters of fewer than ``small`` records that hold original ones, too.

    Also known as: SNI; shared neighborhood; shared nearest neighbors.

    Parameters
    ----------
    original, released
        The two files.
    columns
        Columns to compare; all but identifiers, weights and the like unless named.
    categorical
        Numeric columns whose numbers are codes.
    k, similarity, min_points
        Length of the neighbor lists, shared neighbors that make a link, and links (the record itself counted)
        that make a core of a cluster.
    small, require_mixed
        A cluster is risky below this size, and only if it holds records of both files.
    noise
        Whether a released record in no cluster counts as ``risky`` or is left alone (``ignore``).
    scale
        Numbers in units of the original's ``range`` or as they are (``none``); categories are 0/1 columns.
    progress
        Show how far it is, on a terminal.

    Returns
    -------
    Measure
        ``value`` is SNI. ``figures``: ``sni``, ``risky_records``, ``risky_clusters``, ``clusters``,
        ``noise_share`` (of all records), ``sni_lowest`` and ``sni_highest`` over the lengths k tried. ``detail``:
        ``records`` (of the released file), ``clusters`` and ``sensitivity``.

    How to read it
    --------------
    Compare generators on the same file, with the same k, and beside the value that people not used have. A generator
    that copies has more of its records in tiny clusters with real ones than fresh records would. Look at ``sni_lowest``
    and ``sni_highest`` too: where they lie far apart the figure says more about k than about the file.

    When not to trust it
    --------------------
    The measure is fragile: from k = 8 on nearly everything joins one cluster, at k = 3 most records are noise. A stray
    record that attaches to a small cluster can take it over the limit, and the figure to 0. A low value clears nobody.

    Examples
    --------
    >>> real = pl.DataFrame({"x": [0.0, 1, 0.1, 1.2, 0.5, 10, 10.3], "y": [0.0, 0.1, 1.1, 1, 0.45, 10, 10.1]})
    >>> fake = pl.DataFrame({"x": [0.6, 0.2, 0.9, 1.4, 0.4, 10.1, 10.4], "y": [0.2, 0.7, 0.8, 0.4, 1.3, 10.4, 10.35]})
    >>> round(shared_neighbors(Microdata(real), Microdata(fake), scale="none").value, 4)
    0.2857
    """
    if not 1 <= similarity <= k:
        raise ParameterError(f"similarity must be from 1 to k (here {k}).")
    compared = compared_columns(original, [released], columns)
    names = compared.names
    ours, theirs = tables_of([original, released], names)
    space = MixedSpace.fit(
        ours,
        theirs,
        distance="euclidean",
        scale=scale,
        categorical=check_categorical(names, categorical),
    )
    lists = neighbor_lists(space, ours, theirs, k, progress=progress)
    real = ours.height
    at = {
        tried: clusters_of(lists[:, :tried], similarity, min_points)
        for tried in sorted({*TRIED, k})
        if similarity <= tried <= lists.shape[1]
    }
    found = {tried: _judged(labels, real, small, require_mixed, noise) for tried, labels in at.items()}
    chosen, labels = found[k], at[k]
    values = [judged.sni for judged in found.values()]
    return Measure(
        name="shared_neighbors",
        value=chosen.sni,
        figures={
            "sni": chosen.sni,
            "risky_records": int(chosen.flags.sum()),
            "risky_clusters": int(chosen.table["risky"].sum()),
            "clusters": chosen.table.height,
            "noise_share": chosen.noise_share,
            "sni_lowest": min(values),
            "sni_highest": max(values),
        },
        meaning=(
            f"{int(chosen.flags.sum()):,} of {theirs.height:,} released records ({percent(chosen.sni)}) sit with "
            f"original records in isolated groups of fewer than {small}; with neighbor lists of other lengths it "
            f"is between {percent(min(values))} and {percent(max(values))}."
        ),
        caveats=[
            *records_only(original),
            *compared.caveats,
            *sni_caveats(theirs),
            *column_caveats(space, (ours, theirs), names),
        ],
        parameters={
            "columns": list(names),
            "categorical": list(categorical),
            "k": k,
            "similarity": similarity,
            "min_points": min_points,
            "small": small,
            "require_mixed": require_mixed,
            "noise": noise,
            "scale": scale,
        },
        detail=engine.tables_like(
            released,
            records={
                "record": np.arange(theirs.height),
                "cluster": pl.Series(labels[real:]).replace(-1, None),
                "risky": chosen.flags,
            },
            clusters=lambda: chosen.table,
            sensitivity=lambda: sensitivity_table(found),
        ),
    )


@dataclass(frozen=True)
class Judged:
    """What the clusters say about the released records."""

    sni: float
    noise_share: float
    flags: Flags
    table: pl.DataFrame


def sni_at(lists: Integers, real: int) -> dict[int, Judged]:
    """Judge the clusters, by the usual settings, for every length of the neighbor lists that can be tried."""
    similarity, min_points, small = 3, 2, 5
    clusters = {
        tried: clusters_of(lists[:, :tried], similarity, min_points)
        for tried in TRIED
        if similarity <= tried <= lists.shape[1]
    }
    return {
        tried: _judged(labels, real, small, require_mixed=True, noise="ignore")
        for tried, labels in clusters.items()
    }


def neighbor_lists(
    space: MixedSpace, ours: pl.DataFrame, theirs: pl.DataFrame, k: int, *, progress: bool
) -> Integers:
    """List the nearest other records of the original records followed by the released ones."""
    together = space.place(ours).with_rows_of(space.place(theirs))
    if len(together) < k + 1:
        raise ParameterError(
            f"There are {len(together)} records in the two files; neighbor lists of k={k} need at least {k + 1}."
        )
    longest = min(max(k, *TRIED), len(together) - 1)
    return nearest(space, together, k=longest, progress=progress, description="Shared neighbors").index


def clusters_of(lists: Integers, similarity: int, min_points: int) -> Integers:
    """Cluster records by the neighbors they share; -1 is noise, clusters are numbered by their first record."""
    from discreet.numerics.distance.distance_kernels import shared_counts

    n, k = lists.shape
    left = np.repeat(np.arange(n), k)
    right = lists.ravel()
    shared = shared_counts(np.ascontiguousarray(lists))
    strong = shared >= similarity
    low, high = np.minimum(left, right)[strong], np.maximum(left, right)[strong]
    pairs = np.unique(np.column_stack([low, high, shared[strong]]), axis=0)
    density = 1 + np.bincount(pairs[:, :2].ravel(), minlength=n)
    core = density >= min_points
    inner = core[pairs[:, 0]] & core[pairs[:, 1]]
    links = scipy.sparse.coo_array((np.ones(inner.sum()), (pairs[inner, 0], pairs[inner, 1])), shape=(n, n))
    _, component = scipy.sparse.csgraph.connected_components(links, directed=False)
    labels = np.where(core, component, -1)
    edge = np.concatenate([pairs, pairs[:, [1, 0, 2]]])
    edge = edge[~core[edge[:, 0]] & core[edge[:, 1]]]
    edge = edge[np.lexsort((edge[:, 1], -edge[:, 2], edge[:, 0]))]
    joins, first = np.unique(edge[:, 0], return_index=True)
    labels[joins] = component[edge[first, 1]]
    _, numbered = np.unique(labels, return_inverse=True)
    return np.where(labels < 0, -1, numbered - int((labels < 0).any())).astype(np.int64)


def sensitivity_table(found: dict[int, Judged]) -> pl.DataFrame:
    """Set SNI and the share of noise beside the length of the neighbor lists."""
    return pl.DataFrame(
        {
            "k": list(found),
            "sni": [judged.sni for judged in found.values()],
            "noise_share": [judged.noise_share for judged in found.values()],
        }
    )


def sni_caveats(released: pl.DataFrame) -> list[str]:
    """Say when SNI must not be trusted."""
    caveats = [
        "SNI is fragile: it depends on the length of the neighbor lists, and a few stray records that attach to a "
        "small cluster can take it to zero. Read it with its sensitivity table.",
    ]
    if released.n_unique() == 1:
        caveats.append("All released records are the same (mode collapse).")
    return caveats


def _judged(labels: Integers, real: int, small: int, require_mixed: bool, noise: Noise) -> Judged:
    clusters = int(labels.max()) + 1
    known = labels >= 0
    size = np.bincount(labels[known], minlength=clusters)
    ours = np.bincount(labels[:real][known[:real]], minlength=clusters)
    risky = (size < small) & (size > 0)
    if require_mixed:
        risky &= (ours > 0) & (ours < size)
    released = labels[real:]
    flags = np.where(released >= 0, risky[released] if clusters else False, noise == "risky")
    table: dict[str, Any] = {
        "cluster": np.arange(clusters),
        "size": size,
        "original": ours,
        "released": size - ours,
        "risky": risky,
    }
    return Judged(
        sni=float(flags.mean()),
        noise_share=float((~known).mean()),
        flags=flags.astype(bool),
        table=pl.DataFrame(table),
    )
