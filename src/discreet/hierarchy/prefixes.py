"""Hierarchies of codes that are read from the left: postcodes, classifications, regions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from discreet.core.errors import ParameterError
from discreet.core.values import canonical_text
from discreet.hierarchy.algebra import TOP, Hierarchy
from discreet.hierarchy.values import as_tuple, is_textual, through_distinct


@dataclass(frozen=True, repr=False)
class Prefixes(Hierarchy):
    """Keep ever fewer leading characters; masked codes keep their length, cut ones do not."""

    keep: Sequence[int]
    mask: str = TOP
    kind: ClassVar[str] = "prefixes"

    def __post_init__(self) -> None:
        keep = as_tuple(self.keep, "keep")
        if not keep or not all(
            type(c) is not bool and isinstance(c, (int, np.integer)) and c >= 1 for c in keep
        ):
            raise ParameterError("keep must list whole numbers of characters, each at least 1.")
        if any(next_ >= previous for previous, next_ in itertools.pairwise(keep)):
            raise ParameterError("keep must get smaller from level to level, e.g. [4, 3, 2].")
        if not isinstance(self.mask, str) or len(self.mask) > 1:
            raise ParameterError("mask must be one character, or an empty text to cut the rest off.")
        object.__setattr__(self, "keep", tuple(map(int, keep)))

    def __repr__(self) -> str:
        return f"<Hierarchy prefixes: height {self.height}, keep {', '.join(map(str, self.keep))}>"

    @property
    def height(self) -> int:
        """The number of prefix lengths, and one for the top."""
        return len(self.keep) + 1

    def _ancestors(self, values: pl.Series, level: int) -> pl.Series:
        return through_distinct(values, lambda distinct: self._masked(canonical_text(distinct), level))

    def _masked(self, text: pl.Series, level: int) -> pl.Series:
        if level == self.height:
            return pl.repeat(TOP, len(text), dtype=pl.String, eager=True)
        kept = text.str.head(self.keep[level - 1])
        if not self.mask:
            return kept
        # Only the tail is masked: replacing every one of its characters keeps the length of the code.
        return kept + text.str.slice(self.keep[level - 1]).str.replace_all(
            r"(?s).", self.mask.replace("$", "$$")
        )

    def _shares(self, values: pl.Series, level: int) -> pl.Series:
        def share(distinct: pl.Series) -> pl.Series:
            labels = canonical_text(distinct) if level == 0 else self._masked(canonical_text(distinct), level)
            label = pl.col("label")
            return pl.DataFrame({"label": labels}).select(pl.len().over(label) / pl.len()).to_series()

        return through_distinct(values, share)

    def _parameters(self) -> dict[str, Any]:
        return {"keep": list(self.keep), "mask": self.mask}

    def _misfit(self, values: pl.Series) -> str | None:
        return (
            None if is_textual(values.dtype) else "prefixes are for codes. Convert the column to text first."
        )
