"""How much of a file larger than memory can a synthesizer learn from? A random sample of stated size, and its fit.

A synthesizer looks at its records together. Of a query that is too large, as many records are drawn as the memory
allows, each with the same chance; whoever belongs together (a household, the records of a person) is drawn together.
The draw belongs to the record, so that the same seed gives the same sample on every engine. What a sample of that size
cannot show is said.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass

from discreet import engine
from discreet.errors import ParameterError
from discreet.microdata import Microdata
from discreet.parameters import checked
from discreet.randomness import KeyedDraws, Seed
from discreet.synth.synthesizer import Fitted, Synthesizer, seed_of
from discreet.wording import percent

TIMES_THE_RECORDS = 10
"""How much memory learning takes, in times the records alone: codes, trees and copies of columns."""
_LOOKED_AT = 10_000
_TOGETHER = ("household", "person", "contributor")


@dataclass(frozen=True, eq=False)
class FittingSample:
    """The records that a synthesizer learns from.

    Attributes
    ----------
    data
        The sample, in memory, with the roles of the file.
    rows, of_rows
        Its records, and those of the file.
    together
        The column whose records were drawn together, if there is one.
    """

    data: Microdata
    rows: int
    of_rows: int
    together: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it is the whole file."""
        return self.rows == self.of_rows

    @property
    def meaning(self) -> str:
        """Say how the sample was drawn and what it cannot show."""
        if self.is_whole:
            return f"All {self.of_rows:,} records were learned from."
        share = self.rows / self.of_rows
        # A group of g records is missed with chance (1 - share)^g: below one in a hundred from here on.
        seen = math.ceil(math.log(0.01) / math.log1p(-share)) if share < 1 else 1
        drawn = f", all of a '{self.together}' or none" if self.together else ""
        error = 1.96 * 0.5 / math.sqrt(self.rows) * math.sqrt(1 - share)
        return (
            f"The model was learned from a random sample of {self.rows:,} of {self.of_rows:,} records "
            f"({percent(share)}), drawn with equal chances{drawn}. Shares are off by up to {percent(error)} for that "
            f"reason alone (95 in 100 times), and what fewer than {seen:,} records have may be missing altogether."
        )


@checked
def fitting_sample(
    data: Microdata,
    *,
    memory: float | None = None,
    rows: int | None = None,
    record_key: str | Sequence[str] | None = None,
    seed: Seed = None,
) -> FittingSample:
    """How many records of a file can a synthesizer learn from here? Draw that many.

    Parameters
    ----------
    data
        The file; a query is not collected beyond the sample.
    memory
        Gigabytes that learning may take; half of what the machine has unless given. Learning is taken to need ten times
        the memory of the records alone.
    rows
        Instead of ``memory``: how many records, about.
    record_key
        Columns that tell the records apart, where their place does not: Spark needs it.
    seed
        Same file, same seed: same sample, on every engine.

    Examples
    --------
    >>> import polars as pl
    >>> people = Microdata(pl.LazyFrame({"age": range(1000), "sex": ["f", "m"] * 500}))
    >>> fitting_sample(people, memory=1).rows
    1000
    >>> 60 < fitting_sample(people, rows=100, seed=1).rows < 140
    True
    """
    for what, value in (("memory", memory), ("rows", rows)):
        if value is not None and not value > 0:
            raise ParameterError(f"{what} must be above 0.")
    if memory is not None and rows is not None:
        raise ParameterError("Give memory (gigabytes) or rows (records), not both.")
    of_rows = engine.overview(data, ()).rows
    wanted = rows if rows is not None else _affordable(data, of_rows, memory)
    together = next((str(getattr(data.roles, role)) for role in _TOGETHER if getattr(data.roles, role)), None)
    if wanted >= of_rows:
        whole = data.with_frame(engine.whole_frame(data)) if engine.is_lazy(data) else data
        return FittingSample(whole, of_rows, of_rows)
    key = (record_key,) if isinstance(record_key, str) else tuple(record_key or ())
    draws = KeyedDraws.of(seed_of(seed), "fitting sample")
    if key and together is None:
        engine.check_record_key(data, key, purpose="the sample to learn from")
    frame = engine.record_sample(
        data, wanted / of_rows, draws, key=key, together=together, purpose="the sample to learn from"
    )
    if frame.height < 2:
        raise ParameterError(
            f"A sample of about {wanted:,} records is too small to learn from. Allow more memory, or more rows."
        )
    return FittingSample(data.with_frame(frame), frame.height, of_rows, together)


def fit_on_sample(
    synthesizer: Synthesizer,
    data: Microdata,
    *,
    memory: float | None = None,
    rows: int | None = None,
    record_key: str | Sequence[str] | None = None,
    progress: bool = False,
    seed: Seed = None,
) -> Fitted:
    """Learn from as much of a file as the memory allows; the model draws as many records as the file has.

    What was learned from, and what that cannot show, is in ``fitted.learned_from``. A guarantee of differential privacy
    is not claimed for a model that was learned from a sample.

    Parameters
    ----------
    synthesizer
        What is to be fitted.
    data, memory, rows, record_key, seed
        See `fitting_sample`.
    progress
        Show how far it is, on a terminal.

    Examples
    --------
    >>> import polars as pl
    >>> from discreet.synth import Independent
    >>> people = Microdata(pl.LazyFrame({"age": range(1000), "sex": ["f", "m"] * 500}))
    >>> fitted = fit_on_sample(Independent(), people, rows=200, seed=1)
    >>> fitted.rows, "random sample" in fitted.learned_from
    (1000, True)
    """
    root = seed_of(seed)
    sample = fitting_sample(data, memory=memory, rows=rows, record_key=record_key, seed=root)
    fitted = synthesizer.fit(sample.data, progress=progress, seed=None if seed is None else root)
    fitted.learned_from = sample.meaning
    if sample.is_whole:
        return fitted
    if fitted.keeps_records:
        raise ParameterError(
            "Some columns are kept as they are, so that the model needs every record of the file. Synthesize those "
            "columns too, or fit to the whole file."
        )
    fitted.rows = sample.of_rows
    if fitted.guarantee is not None:
        fitted.guarantee, fitted.private = None, None
        fitted.why_none = "the model was learned from a sample, for which no guarantee was proved."
    return fitted


def _affordable(data: Microdata, rows: int, memory: float | None) -> int:
    """How many records a synthesizer can learn from in so many gigabytes."""
    limit = (
        memory * 10**9 if memory is not None else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2
    )
    few = engine.collect(engine.scan(data, {f"c{i}": n for i, n in enumerate(data.columns)}).head(_LOOKED_AT))
    each = max(few.estimated_size() / max(few.height, 1), 1.0)
    return min(rows, int(limit / (TIMES_THE_RECORDS * each)))
