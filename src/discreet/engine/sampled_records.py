"""A random sample of the records of a file, drawn where the data is: every record with the same chance.

The draw belongs to the record (its place, or its key), so that the same seed gives the same sample on every engine, and
two files whose records stand in the same order, or share a key, give the records that belong together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import narwhals as nw
import polars as pl

from discreet.arrays import Words
from discreet.engine.by_record import is_lazy, made_lazily
from discreet.engine.rebuild import whole_frame
from discreet.engine.record_batches import ByRecord, record_numbers
from discreet.microdata import Microdata
from discreet.randomness import KeyedDraws

_CHOSEN = "discreet chosen"


def record_sample(
    data: Microdata,
    share: float,
    draws: KeyedDraws,
    *,
    key: Sequence[str] = (),
    together: str | None = None,
    purpose: str,
) -> pl.DataFrame:
    """Bring a random share of the records home.

    Parameters
    ----------
    data
        The file; a query is not collected beyond the sample.
    share
        The chance of every record.
    draws
        What is drawn.
    key
        Columns that tell the records apart, where their place does not.
    together
        A column whose records are drawn all or none.
    purpose
        What the sample is for, in messages.

    Examples
    --------
    >>> data = Microdata(pl.LazyFrame({"age": range(1000)}))
    >>> 60 < record_sample(data, 0.1, KeyedDraws.of(1, "example"), purpose="an example").height < 140
    True
    """
    first = together or (key[0] if key else data.columns[0])
    work = ByRecord(
        (first,), {_CHOSEN: pl.Boolean()}, _Chosen(draws, share, together), draws=together is None
    )
    source = data if is_lazy(data) else data.with_frame(whole_frame(data).lazy())
    marked = made_lazily(source, work, key=() if together else tuple(key), purpose=purpose)
    kept = nw.from_native(marked).filter(nw.col(_CHOSEN)).drop(_CHOSEN)
    return whole_frame(Microdata(kept.to_native()))


@dataclass(frozen=True)
class _Chosen:
    """Marks the records of a batch that are in the sample."""

    draws: KeyedDraws
    share: float
    together: str | None

    def __call__(self, rows: pl.DataFrame, numbers: Words) -> dict[str, pl.Series]:
        own = numbers if self.together is None else record_numbers(rows, [self.together])
        return {_CHOSEN: pl.Series(_CHOSEN, self.draws.uniforms(own) < self.share)}
