"""Match records on several columns at once, each up to a tolerance of its own or by how similar numbers are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from discreet.core.arrays import Flags, Floats, Integers
from discreet.numerics.distance.boxes import Boxes, Likeness, Words, alike_words, in_boxes
from discreet.numerics.distance.space import as_float
from discreet.pairs.side_by_side import number_matrix, plain_rows


@dataclass(frozen=True)
class Comparison:
    """How two records are compared, column by column."""

    numeric: tuple[str, ...]
    labels: tuple[str, ...]
    kind: Kind
    offsets: Floats
    scales: Floats
    threshold: float
    likeness: Likeness
    likeness_threshold: float

    def search(
        self, ours: pl.DataFrame, theirs: pl.DataFrame, *, labels: bool = True, pairs: bool = False
    ) -> Boxes:
        """Find the possible matches of each record, on all columns or on the numbers alone."""
        reach = self.offsets + reach_of(self.threshold, self.kind) * self.scales
        left, right = plain_rows(ours), plain_rows(theirs)
        used = self.labels if labels else ()
        words: list[Words] = []
        if self.likeness != "exact":
            words = [self.alike(left[name], right[name])[0] for name in used]
        return in_boxes(
            number_matrix(ours, self.numeric),
            number_matrix(theirs, self.numeric),
            reach,
            equal=[(left[name], right[name]) for name in used] if self.likeness == "exact" else [],
            words=words,
            pairs=pairs,
        )

    def alike(self, ours: pl.Series, theirs: pl.Series) -> tuple[Words, Floats]:
        """Compare two text columns by the letters of their levels."""
        return alike_words(ours, theirs, likeness=self.likeness, threshold=self.likeness_threshold)

    def pairs(self, attack: Attack, position: Integers) -> pl.DataFrame:
        """List the possible matches with the score of each column and their mean."""
        listed = self.search(attack.ours, attack.theirs, pairs=True).pairs
        ours, theirs = attack.ours[listed[:, 0]], attack.theirs[listed[:, 1]]
        scores: dict[str, Any] = {}
        for j, name in enumerate(self.numeric):
            apart = np.abs(as_float(ours[name]) - as_float(theirs[name]))
            scores[f"{name} score"] = similarity(
                apart, kind=self.kind, offset=self.offsets[j], scale=self.scales[j]
            )
        for name in self.labels:
            if self.likeness == "exact" or not len(listed):
                scores[f"{name} score"] = np.ones(len(listed))
            else:
                words, table = self.alike(attack.ours[name], attack.theirs[name])
                scores[f"{name} score"] = table[words.codes[listed[:, 0]], words.others[listed[:, 1]]]
        mean = np.mean(list(scores.values()), axis=0) if scores else np.empty(0)
        return pl.DataFrame(
            {
                "original": position[listed[:, 0]],
                "released": attack.position[listed[:, 1]],
                **scores,
                "mean score": mean,
            }
        )


@dataclass(frozen=True)
class Attack:
    """What matching the outliers with one release found."""

    ours: pl.DataFrame
    theirs: pl.DataFrame
    position: Integers
    boxes: Boxes
    numeric_pairs: int
    standing_out: int
    excluded: int

    @property
    def matched(self) -> int:
        """Outliers with at least one possible match."""
        return int((self.boxes.counts > 0).sum())

    @property
    def single(self) -> int:
        """Outliers with exactly one possible match."""
        return int((self.boxes.counts == 1).sum())


def is_complete(table: pl.DataFrame) -> Flags:
    """Say for each record whether it knows every column."""
    return np.asarray(~table.select(pl.any_horizontal(pl.all().is_null())).to_series().to_numpy())


def attack(
    comparison: Comparison,
    ours: pl.DataFrame,
    release: pl.DataFrame,
    fitted: Any,
    *,
    sides: str,
    collapse: bool,
) -> Attack:
    """Match some original records with the complete records of a release."""
    complete = is_complete(release)
    theirs, position = release.filter(complete), np.flatnonzero(complete)
    flags = fitted(theirs, own=True)
    if sides == "both":
        theirs, position = theirs.filter(flags), position[flags]
    if collapse:
        first = (
            theirs.with_row_index("row").unique(theirs.columns, keep="first").sort("row")["row"].to_numpy()
        )
        theirs, position = theirs[first], position[first]
    return Attack(
        ours=ours,
        theirs=theirs,
        position=position.astype(np.int64),
        boxes=comparison.search(ours, theirs),
        numeric_pairs=int(comparison.search(ours, theirs, labels=False).counts.sum())
        if comparison.numeric
        else 0,
        standing_out=int(flags.sum()),
        excluded=int((~complete).sum()),
    )


# How similar are two numbers, as record linkage scores them: one up to an offset, one half a scale further out.


Kind = Literal["gauss", "linear", "exp", "squared", "step"]
# The score so many scales beyond the offset, and how many scales beyond it the score falls to a threshold.
_FALLING: Mapping[Kind, tuple[Callable[[Floats], Floats], Callable[[float], float]]] = {
    "gauss": (lambda steps: 2.0 ** -(steps**2), lambda threshold: np.sqrt(-np.log2(threshold))),
    "linear": (lambda steps: np.maximum(0.0, 1 - steps / 2), lambda threshold: 2 * (1 - threshold)),
    "exp": (lambda steps: 2.0**-steps, lambda threshold: -np.log2(threshold)),
    "squared": (
        lambda steps: np.maximum(0.0, 1 - steps**2 / 2),
        lambda threshold: np.sqrt(2 * (1 - threshold)),
    ),
}


def similarity(apart: Floats, *, kind: Kind = "gauss", offset: float, scale: float) -> Floats:
    """Score absolute differences between 0 and 1.

    Parameters
    ----------
    apart
        Absolute differences.
    kind
        How the score falls beyond the offset; ``step`` falls to zero at once.
    offset
        Difference up to which two numbers are as good as the same.
    scale
        How much further out the score is one half.

    Examples
    --------
    >>> similarity(np.array([5.0, 7.0, 10.0, 11.0]), offset=5, scale=5).round(4).tolist()
    [1.0, 0.895, 0.5, 0.3686]
    """
    if kind == "step":
        return np.asarray(apart <= offset, dtype=np.float64)
    beyond = np.maximum(apart - offset, 0.0)
    if scale <= 0:
        return np.asarray(beyond == 0, dtype=np.float64)
    return np.asarray(_FALLING[kind][0](beyond / scale))


def reach_of(threshold: float, kind: Kind) -> float:
    """Say how many scales beyond the offset the score falls to a threshold.

    Examples
    --------
    >>> [reach_of(0.5, kind) for kind in ("gauss", "linear", "exp", "squared", "step")]
    [1.0, 1.0, 1.0, 1.0, 0.0]
    """
    return 0.0 if kind == "step" else float(_FALLING[kind][1](threshold))
