"""What did generalization and suppression cost? Losses of a file whose keys were coarsened or suppressed.

Every loss is a share: 0 is best, 1 is a file in which all keys say nothing (the average class size only reaches
its ends in extreme files). Losses of cells (`coverage`, `normalized_entropy`, `precision_loss`) look at one
column at a time and average over columns; losses of classes (`discernibility`, `average_class_size`,
`classification_loss`) look at who can no longer be told apart. The search for the best generalization and the
information-loss report use the same functions.

References: Samarati and Sweeney 1998 and Sweeney 2002 (precision), Iyengar 2002 (coverage, there "loss metric",
and classification), Bayardo and Agrawal 2005 (discernibility), LeFevre et al. 2006 (average class size), Gionis
and Tassa 2009 (non-uniform entropy).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.core.arrays import Array, Floats, Integers
from discreet.core.errors import ParameterError

CELL_LOSSES = ("coverage", "normalized-entropy", "precision")
CLASS_LOSSES = ("discernibility", "average-class-size", "classification")
LOSSES = CELL_LOSSES + CLASS_LOSSES


def coverage(shares: npt.ArrayLike, weights: Sequence[float] | None = None) -> float:
    """Which share of its column's domain does a released cell cover, on average?

    Parameters
    ----------
    shares
        One row a record and one column a key: the share of the domain under the released label
        (`discreet.hierarchy.Hierarchy.leaf_share`). NaN is a suppressed or missing cell, which covers everything.
    weights
        Importance of the keys; equal unless given.

    Examples
    --------
    >>> coverage([[0.25, 0.5], [float("nan"), 0.25]])
    0.5
    """
    cells = np.asarray(shares, dtype=np.float64)
    cells = np.where(np.isnan(cells), 1.0, cells)
    return _weighted(cells.mean(axis=0), weights)


def normalized_entropy(
    original: Sequence[npt.ArrayLike],
    released: Sequence[npt.ArrayLike],
    suppressed: npt.ArrayLike | None = None,
    weights: Sequence[float] | None = None,
) -> float:
    """How many bits about the original values are lost, as a share of all there are?

    The non-uniform entropy of Gionis and Tassa (2009): a value v released as the label g loses
    ``log2(n_g / n_v)`` bits, with the numbers of records that have g's values and v in the original file. A
    suppressed cell may be any value of the file. Each key is divided by what removing it would lose.

    Parameters
    ----------
    original
        For each key the code of every record's value.
    released
        For each key the code of every record's label; a label stands for all values that have it. Negative is a
        suppressed cell whose label is not known.
    suppressed
        True for the records that lost all keys although their label is given.
    weights
        Importance of the keys; equal unless given.

    Examples
    --------
    >>> normalized_entropy([[0, 1, 2, 3]], [[0, 0, 1, 1]])
    0.5
    """
    losses = []
    for values, labels in zip(original, released, strict=True):
        leaf, label = np.asarray(values, dtype=np.int64), np.asarray(labels, dtype=np.int64)
        n = len(leaf)
        leaf_counts = np.bincount(leaf)
        members = np.zeros(max(int(label.max(initial=-1)) + 1, 1))
        kept = label >= 0
        pairs = np.unique(np.stack([label[kept], leaf[kept]]), axis=1)
        np.add.at(members, pairs[0], leaf_counts[pairs[1]])
        shown = kept if suppressed is None else kept & ~np.asarray(suppressed, dtype=np.bool_)
        stands_for = np.where(shown, members[np.maximum(label, 0)], n)
        lost = np.log2(stands_for / leaf_counts[leaf]).sum()
        all_bits = np.log2(n / leaf_counts[leaf]).sum()
        losses.append(lost / all_bits if all_bits > 0 else 0.0)
    return _weighted(np.asarray(losses), weights)


def precision_loss(
    levels: Sequence[int],
    heights: Sequence[int],
    suppressed: float = 0.0,
    weights: Sequence[float] | None = None,
) -> float:
    """How far up their hierarchies are the cells, on average? One minus the Precision of Sweeney (2002).

    Parameters
    ----------
    levels, heights
        For each key the level of its cells and the height of its hierarchy.
    suppressed
        The share of records whose keys are suppressed; their cells are at the top.
    weights
        Importance of the keys; equal unless given.

    Examples
    --------
    >>> precision_loss([1, 0], [2, 1], suppressed=0.5)
    0.625
    """
    climbed = np.asarray(levels, dtype=np.float64) / np.asarray(heights, dtype=np.float64)
    return _weighted((1.0 - suppressed) * climbed + suppressed, weights)


def discernibility(sizes: npt.ArrayLike, suppressed: int = 0) -> float:
    """How many others can a record not be told apart from, as a share of the file?

    Each record costs the size of its class, a suppressed one the whole file (Bayardo and Agrawal 2005); divided
    by the square of the number of records.

    Examples
    --------
    >>> discernibility([2, 2])
    0.5
    """
    released = np.asarray(sizes, dtype=np.float64)
    n = float(released.sum()) + suppressed
    return float(((released**2).sum() + suppressed * n) / n**2)


def average_class_size(sizes: npt.ArrayLike, suppressed: int = 0) -> float:
    """How large is a class on average, as a share of the file? Suppressed records make up one class.

    LeFevre et al. (2006) divide by k; dividing by the number of records makes it a share.

    Examples
    --------
    >>> average_class_size([2, 2])
    0.5
    """
    released = np.asarray(sizes)
    return 1.0 / (len(released) + (suppressed > 0))


def classification_loss(largest: npt.ArrayLike, records: int) -> float:
    """Which share of records would a classifier that knows only the classes get wrong?

    A record counts when its target value is not the most frequent one of its class, or when it is suppressed
    (Iyengar 2002).

    Parameters
    ----------
    largest
        For each released class how many of its records have its most frequent target value.
    records
        The number of records of the file.

    Examples
    --------
    >>> classification_loss([3, 1], records=8)
    0.5
    """
    return 1.0 - float(np.asarray(largest).sum()) / records


@dataclass(frozen=True)
class CellCosts:
    """What one key adds to a cell loss, for one record: by level and code when it is kept, and when suppressed.

    Summed over all records the costs of a key lie between 0 and 1, and they do not fall with the level; so the
    total without suppression is a lower bound of every total with it.
    """

    kept: tuple[Floats, ...]
    suppressed: float

    def scaled(self, factor: float) -> CellCosts:
        """Give the key another importance."""
        return CellCosts(tuple(costs * factor for costs in self.kept), self.suppressed * factor)


def cell_costs(kind: str, codes: Sequence[Integers], counts: Integers, shares: Sequence[Floats]) -> CellCosts:
    """Work out what a cell of one key costs under a cell loss.

    Parameters
    ----------
    kind
        One of `CELL_LOSSES`.
    codes
        For each level the code of every distinct value.
    counts
        The number of records of every distinct value.
    shares
        For each level the share of the domain that the label of every distinct value covers.
    """
    n = int(counts.sum())
    if kind == "coverage":
        return CellCosts(tuple(_by_code(c, s) / n for c, s in zip(codes, shares, strict=True)), 1.0 / n)
    if kind == "precision":
        height = len(codes) - 1
        climbed = [np.full(int(c.max()) + 1, level / height / n) for level, c in enumerate(codes)]
        return CellCosts(tuple(climbed), 1.0 / n)
    if kind == "normalized-entropy":
        least = float((counts * _log2(counts)).sum()) / n
        scale = n * (np.log2(n) - least) if np.log2(n) - least > 1e-12 else np.inf
        bits = (_log2(np.bincount(c, weights=counts)) for c in codes)
        return CellCosts(tuple((b - least) / scale for b in bits), float((np.log2(n) - least) / scale))
    raise ParameterError(f"'{kind}' is not a loss of cells: it is one of {', '.join(CELL_LOSSES)}.")


def _by_code(codes: Integers, values: Floats) -> Floats:
    found = np.zeros(int(codes.max()) + 1)
    found[codes] = values
    return found


def _log2(counts: Array) -> Floats:
    # A label that no record has costs nothing, whatever its logarithm.
    logs: Floats = np.log2(np.maximum(counts, 1.0))
    return logs


def _weighted(losses: Floats, weights: Sequence[float] | None) -> float:
    return float(np.average(losses, weights=weights))
